"""A small exchange for the tests of the network side: a question, its answers, and how to ask in both colours.

The answers are in Anthropic's format; what is tested with them is the same for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from lessonlib.client import AsyncClient, Client
from lessonlib.errors import LessonError
from lessonlib.types import Event, Message, Request, Response, TextDelta
from lessonlib.wire.anthropic_messages import AnthropicMessages
from tests.servers import Server

AnyClient = Client | AsyncClient

KEY = "sk-inv-SECRET-1234567890"
ASK = Request(messages=[Message.user("Where is the ferry?")])


# ---------------------------------------------------------------- what the service says


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
START = {
    "type": "message_start",
    "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 1}},
}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
PING = {"type": "ping"}


def delta(text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


END = (
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)
BEGINNING = sse(START, BLOCK, delta("At the "))
STREAM = BEGINNING + sse(PING, delta("quay."), *END)
ANSWER = {
    **MESSAGE,
    "content": [{"type": "text", "text": "At the quay."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 5},
}
WHOLE = json.dumps(ANSWER).encode()
ERROR = b'{"type":"error","error":{"type":"overloaded_error","message":"too many ferries"},"request_id":"req_7"}'


# ---------------------------------------------------------------- asking, in both colours


def wire_at(server: Server | None = None, **settings: Any) -> AnthropicMessages:
    base = {"base_url": server.url} if server else {}
    return AnthropicMessages(**{"model": "m", "api_key": KEY, **base, **settings})


def generate(client: AnyClient, request: Request = ASK) -> Response:
    """One whole answer; the client is closed afterwards."""
    if isinstance(client, Client):
        with client:
            return client.generate(request)

    async def ask() -> Response:
        async with client:
            return await client.generate(request)

    return asyncio.run(ask())


def stream(
    client: AnyClient, request: Request = ASK, take: int | None = None, seen: list[Event] | None = None
) -> list[Event]:
    """The events of one answer, or the first `take` of them; the client is closed afterwards."""
    events: list[Event] = [] if seen is None else seen
    if isinstance(client, Client):
        with client:
            for event in client.stream(request):
                events.append(event)
                if len(events) == take:
                    break
        return events

    async def ask() -> None:
        async with client, contextlib.aclosing(client.stream(request)) as stream:
            async for event in stream:
                events.append(event)
                if len(events) == take:
                    break

    asyncio.run(ask())
    return events


def fails(client: AnyClient, streamed: bool = True) -> LessonError:
    """The error that asking ends with."""
    with pytest.raises(LessonError) as caught:
        stream(client) if streamed else generate(client)
    return caught.value


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def replies(body: bytes = b"", status: int = 200, headers: dict[str, str] | None = None) -> httpx.MockTransport:
    """A transport that always answers so, without any header but those given."""
    return httpx.MockTransport(lambda _: httpx.Response(status, headers=headers or {}, stream=Body([body])))


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body in given pieces; an exception among them is raised when its turn comes. `closed`: by whoever read it."""

    def __init__(self, pieces: list[bytes | Exception]) -> None:
        self.pieces = pieces
        self.closed = False

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece
