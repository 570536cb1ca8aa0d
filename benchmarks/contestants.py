"""Who reads: lessonlib in three ways, httpx-sse with json, and the floor. The vendors' packages are in sdks.py.

A contestant is prepared for a source (its client is built, its connection pool too) and then reads it as often as it is
asked. In memory the source stands in for the network at the place where each HTTP library plugs one in, its transport, so
everything above the socket is measured. What a contestant found is a `Found`; `check` compares it with what was written.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx
import orjson

from benchmarks.streams import MODELS, Expected
from lessonlib import WIRES, AsyncClient, Client, Done, Message, Request
from lessonlib.sse import SSEParser

KEY = "any"
HEADERS = {"content-type": "text/event-stream"}
REQUEST = Request(messages=[Message.user("What is the tide?")])


# ---------------------------------------------------------------- what is found


@dataclass
class Found:
    """What a reader gave its user. calls: name and arguments, as text if the reader leaves it to its user to parse. events:
    only readers that know nothing of the wire count them. response: what was put together, for the peak of memory."""

    text: list[str] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    pieces: dict[Any, list[str]] = field(default_factory=dict)
    names: dict[Any, str] = field(default_factory=dict)
    events: int | None = None
    response: Any = None

    def start(self, key: Any, name: str) -> None:
        self.names[key] = name
        self.pieces[key] = []

    def all_calls(self) -> list[tuple[str, Any]]:
        return self.calls or [(self.names[key], json.loads("".join(self.pieces[key]))) for key in self.names]


def check(expected: Expected, found: Found) -> None:
    """Raises AssertionError unless the contestant was right: a wrong answer has no time."""
    if found.events is not None:
        assert found.events == expected.events, f"{found.events} events instead of {expected.events}"
        return
    assert "".join(found.text) == expected.text, "the text is not what was sent"
    assert found.all_calls() == expected.calls, "the calls are not what was sent"


# ---------------------------------------------------------------- the source


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Chunks as a body, for httpx and for httpx2, whose interface is the same."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


class Memory(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A network in memory, for httpx."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=HEADERS, stream=Body(self._chunks))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=HEADERS, stream=Body(self._chunks))


@dataclass
class Source:
    """Where the bytes come from: from memory, in these chunks, or from the server at `url`."""

    wire: str
    chunks: list[bytes]
    url: str = ""
    loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def base_url(self) -> str:
        return self.url or "http://127.0.0.1:9"

    def transport(self) -> Memory | None:
        return None if self.url else Memory(self.chunks)


Prepared = Callable[[], Found]
Contestant = Callable[[Source], Prepared]


# ---------------------------------------------------------------- lessonlib


def _response(found: Found, response: Any) -> Found:
    found.text = [response.text]
    found.calls = [(call.name, call.args) for call in response.tool_calls]
    found.response = response
    return found


def _wire(source: Source) -> Any:
    return WIRES[source.wire](model=MODELS[source.wire], api_key=KEY, base_url=source.base_url)


def decoder(source: Source) -> Prepared:
    """The parser and the decoder alone, without HTTP."""
    wire = _wire(source)

    def read() -> Found:
        parser, machine = SSEParser(), wire.decoder()
        for chunk in source.chunks:
            for sse in parser.feed(chunk):
                for _ in machine.feed(sse):
                    pass
        if not machine.done:
            machine.close()
        return _response(Found(), machine.result())

    return read


def client(source: Source) -> Prepared:
    """`Client.stream`, every event handed out."""
    ours = Client(_wire(source), transport=source.transport())

    def read() -> Found:
        last = None
        for event in ours.stream(REQUEST):
            last = event
        assert isinstance(last, Done)
        return _response(Found(), last.response)

    return read


def async_client(source: Source) -> Prepared:
    """`AsyncClient.stream`."""
    ours = AsyncClient(_wire(source), transport=source.transport())

    async def read() -> Found:
        last = None
        async for event in ours.stream(REQUEST):
            last = event
        assert isinstance(last, Done)
        return _response(Found(), last.response)

    return in_loop(source, read)


def in_loop(source: Source, read: Callable[[], Any]) -> Prepared:
    """`read` in the source's event loop, so that no loop is set up within the measured time."""
    assert source.loop is not None
    return lambda: source.loop.run_until_complete(read())  # type: ignore[union-attr]


# ---------------------------------------------------------------- the floor, and httpx-sse


def floor(source: Source) -> Prepared:
    """The least that any reader must do: split the body at the blank lines, and parse each payload with orjson."""
    body = b"".join(source.chunks)
    blank = b"\r\n\r\n" if b"\r\n" in body[:100_000] else b"\n\n"

    def read() -> Found:
        events, loads = 0, orjson.loads
        for block in body.split(blank):
            start = block.find(b"data: ")
            if start >= 0 and (payload := block[start + 6 :]) != b"[DONE]":
                loads(payload)
                events += 1
        return Found(events=events)

    return read


def httpx_sse(source: Source) -> Prepared:
    """httpx-sse and json, the usual parts of a reader written by hand; it counts, and puts nothing together."""
    from httpx_sse import EventSource

    http = httpx.Client(transport=source.transport())

    def read() -> Found:
        events = 0
        with http.stream("POST", source.base_url, content=b"{}") as reply:
            for sse in EventSource(reply).iter_sse():
                if sse.data and sse.data != "[DONE]":
                    sse.json()
                    events += 1
        return Found(events=events)

    return read


OURS: dict[str, Contestant] = {
    "lessonlib, decoder alone": decoder,
    "lessonlib": client,
    "lessonlib, async": async_client,
}
OTHERS: dict[str, Contestant] = {"floor": floor, "httpx-sse and json": httpx_sse}
