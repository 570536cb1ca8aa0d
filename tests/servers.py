"""A small HTTP/1.1 server on 127.0.0.1 whose every byte a test decides: halves of bodies, resets, silence.

Real servers refuse to misbehave, so this one is written on sockets. One thread per connection; a handler gets a `Peer`,
which knows the request and sends what the test wants. What it does not do: anything that no test needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

EVENT_STREAM = {"content-type": "text/event-stream"}
JSON_TYPE = {"content-type": "application/json"}


@dataclass
class Asked:
    """One request as the server read it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Peer:
    """The server's end of one request."""

    sock: socket.socket
    asked: Asked
    gone: threading.Event = field(default_factory=threading.Event)
    keep: bool = True

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def head(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Status line and headers. Without a content length the body is chunked."""
        fields = {**(headers or {})}
        if not any(name.lower() == "content-length" for name in fields):
            fields["transfer-encoding"] = "chunked"
        lines = [f"HTTP/1.1 {status} Reason", *(f"{name}: {value}" for name, value in fields.items())]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        """The last chunk: the clean end of the body."""
        self.send(b"0\r\n\r\n")

    def answer(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer."""
        self.head(status, {**JSON_TYPE, **(headers or {}), "content-length": str(len(body))})
        self.send(body)

    def stream(self, body: bytes, size: int | None = None, headers: Mapping[str, str] | None = None) -> None:
        """A whole event stream, in chunks of `size` bytes."""
        self.head(200, headers if headers is not None else EVENT_STREAM)
        for start in range(0, len(body), size or max(1, len(body))):
            self.chunk(body[start : start + (size or len(body))])
        self.end()

    def hang_up(self) -> None:
        """Closes the connection in the middle of whatever it is doing."""
        self.keep = False

    def reset(self) -> None:
        """Closes the connection with a TCP reset."""
        linger = "hh" if os.name == "nt" else "ii"
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack(linger, 1, 0))
        self.keep = False

    def wait_until_gone(self, seconds: float = 5.0) -> bool:
        """Whether the client closed the connection within that time."""
        self.keep = False
        self.sock.settimeout(seconds)
        try:
            while self.sock.recv(4096):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        self.gone.set()
        return True


Handler = Callable[[Peer], None]


class Server:
    """Serves until `stop`. `url` is its address, `asked` what it was asked, in order, `connections` how many there were."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.asked: list[Asked] = []
        self.connections = 0
        self.failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def stop(self) -> None:
        """Closes everything, and raises what a handler raised."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        with socket.create_connection(("127.0.0.1", self.port)):  # wakes the thread that waits for one
            self._threads[0].join(timeout=10)
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)
        self._listener.close()
        if self.failures:
            raise self.failures[0]

    def _accept(self) -> None:
        while not self._stopping.is_set():
            sock, _ = self._listener.accept()
            if self._stopping.is_set():
                sock.close()
                return
            self.connections += 1
            self._open.add(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            sock.settimeout(30)
            keep = True
            while keep and not self._stopping.is_set():
                asked = _read(sock)
                if asked is None:
                    break
                self.asked.append(asked)
                peer = Peer(sock, asked)
                try:
                    self.handler(peer)
                except OSError:  # the client went away, which is what many tests are about
                    break
                except BaseException as error:
                    self.failures.append(error)
                    break
                keep = peer.keep
        self._open.discard(sock)


def _read(sock: socket.socket) -> Asked | None:
    """The next request on this connection, None when there is none."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            more = sock.recv(65536)
            if not more:  # the client went away in the middle of its request
                return None
            body += more
    except OSError:
        return None
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, body)
