"""A service in a list: it plays its replies in order, remembers what it was asked, and knows when it was hung up on.

    server = Server(answer(anthropic_whole()), failure(529), stream(sse(*anthropic_events())))
    client = server.client("anthropic-messages")
    server.asked[0]["messages"], server.bodies[2].closed, server.bodies[2].sent

No socket, no thread, no clock: the client meets it through its `transport`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from lessonlib.client import Client
from lessonlib.flow import collect
from lessonlib.sse import SSEParser
from lessonlib.types import JSON, Message, Request, Response, Tool
from lessonlib.wire import WIRES
from lessonlib.wire.base import WireFormat

WEATHER = Tool(
    name="get_weather",
    description="Weather of a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ASK = Request(messages=[Message.user("What is the weather in Beijing (北京)?")], tools=[WEATHER])


@dataclass
class Reply:
    """One reply of the service; the body is sent in these pieces."""

    status: int = 200
    pieces: list[bytes] = field(default_factory=list)
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def answer(body: JSON, status: int = 200, **headers: str) -> Reply:
    """A JSON body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, [json.dumps(body).encode("utf-8")], headers=named)


def failure(status: int, kind: str = "api_error", **headers: str) -> Reply:
    """An error body; Anthropic's form, which every wire format can read."""
    return answer({"type": "error", "error": {"type": kind, "message": "invented"}}, status, **headers)


def stream(data: bytes, kind: str = "text/event-stream") -> Reply:
    """An event stream, one piece per event."""
    *blocks, rest = data.split(b"\n\n")
    return Reply(200, [block + b"\n\n" for block in blocks] + ([rest] if rest else []), kind)


class Body(httpx.SyncByteStream):
    """The body of one reply. sent: pieces that were asked for. closed: the client hung up, or came to the end."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.sent = 0
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            self.sent += 1
            yield piece

    def close(self) -> None:
        self.closed = True


class Server(httpx.BaseTransport):
    """Plays `replies` in order. asked: the request bodies, parsed. bodies: what became of each reply's body."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.asked: list[JSON] = []
        self.bodies: list[Body] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(json.loads(request.read()))
        if not self._replies:
            raise AssertionError(f"request number {len(self.asked)}, and the service has only {len(self.bodies)} replies")
        reply = self._replies.pop(0)
        self.bodies.append(Body(reply.pieces))
        headers = {"content-type": reply.kind, **reply.headers}
        return httpx.Response(reply.status, headers=headers, stream=self.bodies[-1], request=request)

    def client(self, wire: str = "anthropic-messages") -> Client:
        """A client of this service."""
        return Client(make(wire), transport=self)


def make(wire: str) -> WireFormat:
    """A wire format with a model and a key that mean nothing."""
    return WIRES[wire]("m", api_key="offline")


def read(wire: str, body: JSON) -> Response:
    """A whole answer, read."""
    return make(wire).decode(body)


def fold(wire: str, data: bytes, size: int | None = None) -> Response:
    """A streamed answer, read in pieces of `size` bytes, then a clean end of the body."""
    parser, decoder = SSEParser(), make(wire).decoder()
    for start in range(0, len(data), size or len(data)):
        for event in parser.feed(data[start : start + (size or len(data))]):
            decoder.feed(event)
    for event in parser.close():
        decoder.feed(event)
    decoder.close(parser.stray)
    return decoder.result()


def streamed(server: Server, wire: str = "anthropic-messages", request: Request = ASK) -> Response:
    """One streamed answer of the server."""
    with server.client(wire) as client:
        return collect(client.stream(request))


def only_call(response: Response) -> tuple[str, Any]:
    """Name and arguments of the one call of an answer."""
    (call,) = response.tool_calls
    return call.name, call.args
