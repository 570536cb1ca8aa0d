"""A streamed answer as the socket gave it: one entry per network read, bytes as they came.

    reads("anthropic", request)           the simulator's answer; it writes one event at a time
    cut(b"...", 1400)                     the same bytes, as another network would have cut them
    raw_stream("openai", body)            the stream that answers a body written by hand, joined

What this file does not do: it parses nothing. That is the reader's work, and then `lessonlib.sse`.
"""

from __future__ import annotations

from lessonlib.lab.offline import client
from lessonlib.sim import Simulator
from lessonlib.sim.transport import SimTransport
from lessonlib.types import JSON, Message, Request
from lessonlib.wire.base import HTTPRequest


def reads(vendor: str, request: Request, sim: Simulator | None = None) -> list[bytes]:
    """The network reads of one streamed answer of the simulator to `request`."""
    return _read(client(vendor).wire.encode(request, stream=True), sim)


def raw_stream(vendor: str, body: JSON, sim: Simulator | None = None) -> bytes:
    """The bytes of the stream that answers a request body written by hand."""
    encoded = client(vendor).wire.encode(Request(messages=[Message.user("x")]), stream=True)
    encoded.body = body
    return b"".join(_read(encoded, sim))


def cut(body: bytes, size: int) -> list[bytes]:
    """The bytes in reads of `size` bytes, the last one shorter. Raises ValueError for a size below 1."""
    if size < 1:
        raise ValueError(f"a read has at least one byte, not {size}")
    return [body[start : start + size] for start in range(0, len(body), size)]


def _read(encoded: HTTPRequest, sim: Simulator | None) -> list[bytes]:
    import httpx

    with (
        httpx.Client(transport=SimTransport(sim or Simulator())) as http,
        http.stream("POST", encoded.url, headers=encoded.headers, content=encoded.content) as answer,
    ):
        return list(answer.iter_raw())
