"""The simulator as a real HTTP server on this machine only: `lesson serve --port 8080 --fault status=529@1`.

One port, all wire formats, any client or SDK: point its base URL at the printed address and give it any key. Real sockets,
real chunks, real time: a fault that hangs does hang.

Safety: it binds to 127.0.0.1 and answers only requests whose Host header names this machine, so no web page can reach it
through a name of its own (DNS rebinding). It has no secrets and runs nothing; keys that clients send are not kept.

What this file does not do: no answers of its own (core.py), no TLS, no second process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvicorn

from lessonlib.sim.core import Hang, Reset, SimReply, SimRequest, Simulator

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

HOST = "127.0.0.1"
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
STOP_TIMEOUT = 10.0
READ_FIRST = 0.05
"""Seconds in which a client can read what was sent before the connection is reset: a reset may overtake it."""


class SimApp:
    """The ASGI application around one Simulator."""

    def __init__(self, sim: Simulator) -> None:
        self.sim = sim

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if _host_name(headers.get("host", "")) not in LOOPBACK_NAMES:
            await _send_plain(send, 403, "This server answers only to 127.0.0.1 and localhost.\n")
            return
        body = await _body(receive, self.sim.max_body + 1)
        if body is None:
            return
        path = (scope.get("raw_path") or scope["path"].encode("utf-8")).decode("latin-1")
        query = scope.get("query_string", b"").decode("latin-1")
        request = SimRequest(scope["method"], f"{path}?{query}" if query else path, headers, body)
        await _respond(self.sim.handle(request), receive, send)


# ---------------------------------------------------------------- one exchange


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The request's body up to `limit` bytes (one more than is allowed, so that a rule can refuse it); None if the client
    has gone."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        if size < limit:
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
        if not message.get("more_body", False):
            return b"".join(pieces)[:limit]


async def _respond(reply: SimReply, receive: Receive, send: Send) -> None:
    """Sends the reply; when the client leaves, the writing stops at once."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    writing = asyncio.ensure_future(_write(reply, send))
    leaving = asyncio.ensure_future(_until_gone(receive))
    try:
        await asyncio.wait((writing, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (writing, leaving):
            task.cancel()
        outcomes = await asyncio.gather(writing, leaving, return_exceptions=True)
    if isinstance(outcomes[0], Reset):
        await _reset(send)
        raise outcomes[0]  # and if it could not be reset: uvicorn closes it without the end of the body


async def _write(reply: SimReply, send: Send) -> None:
    try:
        for delay, data in reply.chunks:
            if delay:
                await asyncio.sleep(delay)
            await send({"type": "http.response.body", "body": data, "more_body": True})
    except Hang:
        await asyncio.Event().wait()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _reset(send: Send) -> None:
    """Resets the connection under an answer: to linger for no time turns the close into a reset. ASGI has no word for it, so
    uvicorn's own transport is asked, if there is one."""
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is None:
        return
    await asyncio.sleep(READ_FIRST)
    linger = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    transport.abort()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_plain(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode("utf-8"), "more_body": False})


def _host_name(host: str) -> str:
    """The Host header without its port."""
    if host.startswith("["):
        return host.split("]")[0] + "]"
    return host.rsplit(":", 1)[0].lower()


# ---------------------------------------------------------------- running it


def listen(port: int) -> socket.socket:
    """A socket on the loopback address that takes connections from now on; port 0 is a free one. OSError if it is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # there it means "even if the last server's connections are still closing"; not on Windows
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(512)
    except OSError:
        listening.close()
        raise
    return listening


def address(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    return f"http://{HOST}:{listening.getsockname()[1]}"


def server(sim: Simulator) -> uvicorn.Server:
    """uvicorn around a simulator: quiet, no lifespan events, and no waiting for slow streams when it stops."""
    config = uvicorn.Config(
        SimApp(sim), log_level="critical", access_log=False, lifespan="off", server_header=False, timeout_graceful_shutdown=1
    )
    return uvicorn.Server(config)


def serve(sim: Simulator, listening: socket.socket) -> None:
    """Serve until Ctrl-C, which is the way to end it and no error."""
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn closes its connections first, and then raises the signal again
        server(sim).run(sockets=[listening])


@contextlib.contextmanager
def running(sim: Simulator, port: int = 0) -> Iterator[str]:
    """A server in a thread for the time of a `with` block; gives its base URL. Port 0 takes a free one."""
    listening, running_server = listen(port), server(sim)
    thread = threading.Thread(
        target=running_server.run, kwargs={"sockets": [listening]}, name="lessonlib simulator", daemon=True
    )
    thread.start()
    try:
        yield address(listening)
    finally:
        running_server.should_exit = running_server.force_exit = True
        thread.join(STOP_TIMEOUT)
