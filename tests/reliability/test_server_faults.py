"""Faults through a real server on this machine, and what is left over afterwards: nothing.

tests/test_client.py has the plain cases (resets, each timeout, redirects, closing early). Here are the hostile ones, and the
counting: after thousands of streams that were closed early, no socket, no file descriptor, no thread, no task has stayed.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from lessonlib.client import AsyncClient, Client, Timeouts
from lessonlib.errors import EventTooLarge, LessonError, ProtocolError, TransportError, TransportTimeout
from lessonlib.flow import collect
from lessonlib.types import Request, TextDelta
from lessonlib.wire import AnthropicMessages
from tests.contract import KEY, TESTDATA, read_stream
from tests.fakes import drain
from tests.reliability.scale import times
from tests.servers import EVENT_STREAM, JSON_TYPE, Handler, Peer, Server

Serve = Callable[[Handler], Server]
ASK = Request(messages="Hi")
STREAM = (TESTDATA / "anthropic-messages" / "text" / "stream.sse").read_bytes()
HEAD = STREAM.partition(b"event: content_block_stop")[0]
SHOWN = read_stream(AnthropicMessages("m"), STREAM).response.text


def wire(server: Server) -> AnthropicMessages:
    return AnthropicMessages("m", api_key=KEY, base_url=server.url)


def failure(server: Server, **settings: Any) -> LessonError:
    """The error in which a stream ends, the same in both colours."""
    with Client(wire(server), **settings) as client, pytest.raises(LessonError) as caught:
        list(client.stream(ASK))

    async def other() -> LessonError:
        async with AsyncClient(wire(server), **settings) as asking:
            with pytest.raises(LessonError) as again:
                await drain(asking.stream(ASK))
            return again.value

    assert type(asyncio.run(other())) is type(caught.value)
    return caught.value


# ---------------------------------------------------------------- connections


def test_a_reset_keeps_what_had_arrived(serve: Serve) -> None:
    def handler(peer: Peer) -> None:
        peer.head(200, EVENT_STREAM)
        peer.chunk(HEAD)
        time.sleep(0.1)  # a reset throws away what the client has not read yet
        peer.reset()

    error = failure(serve(handler))
    assert isinstance(error, TransportError)
    assert error.retryable
    assert error.partial is not None
    assert error.partial.text == SHOWN


@pytest.mark.parametrize(
    ("sent", "limits", "phase"),
    [
        (b"", Timeouts(read=0.2), "read"),
        (HEAD, Timeouts(idle=0.2), "idle"),
        (HEAD, Timeouts(total=0.3, idle=5), "total"),
    ],
)
def test_a_half_open_connection_ends_with_each_timeout(serve: Serve, sent: bytes, limits: Timeouts, phase: str) -> None:
    """The other side is gone and nobody says so: no reset, no end, only silence."""

    def handler(peer: Peer) -> None:
        if sent:
            peer.head(200, EVENT_STREAM)
            peer.chunk(sent)
        peer.wait_until_gone(10)

    error = failure(serve(handler), timeout=limits)
    assert isinstance(error, TransportTimeout)
    assert error.phase == phase
    assert bool(error.partial and error.partial.text) == bool(sent)


def test_pings_without_end_are_bounded_by_the_total_timeout(serve: Serve) -> None:
    def handler(peer: Peer) -> None:
        peer.head(200, EVENT_STREAM)
        while not peer.gone.is_set():
            peer.chunk(b'event: ping\ndata: {"type": "ping"}\n\n')
            time.sleep(0.01)

    began = time.monotonic()
    error = failure(serve(handler), timeout=Timeouts(total=0.5, idle=5))
    assert isinstance(error, TransportTimeout)
    assert error.phase == "total"
    assert time.monotonic() - began < 20


def test_a_server_that_goes_on_after_the_end_and_ignores_the_close_holds_nobody_up(serve: Serve) -> None:
    def handler(peer: Peer) -> None:
        peer.keep = False
        peer.head(200, EVENT_STREAM)
        peer.chunk(STREAM)
        for _ in range(200_000):  # until the socket breaks
            peer.chunk(b": still here\n\n" * 100)

    server = serve(handler)
    began = time.monotonic()
    with Client(wire(server)) as client:
        for _ in range(3):
            assert "".join(event.text for event in client.stream(ASK) if isinstance(event, TextDelta))
    assert time.monotonic() - began < 20


# ---------------------------------------------------------------- too much


def test_a_hundred_megabytes_without_a_line_end_are_refused_early(serve: Serve) -> None:
    sent = [0]

    def handler(peer: Peer) -> None:
        peer.head(200, EVENT_STREAM)
        peer.chunk(b"data: ")
        for _ in range(100):
            peer.chunk(b"x" * (1 << 20))
            sent[0] += 1

    error = failure(serve(handler))
    assert isinstance(error, EventTooLarge)
    assert sent[0] < 2 * 40  # both colours, the buffers of the sockets included


def test_a_bomb_as_a_stream_is_refused_when_it_has_filled_one_event(serve: Serve) -> None:
    """200 MB of blank-free text, packed to 200 KB."""
    packed = gzip.compress(b"data: " + b"x" * (200 << 20), 1)
    assert len(packed) < 2 << 20
    error = failure(serve(lambda peer: peer.stream(packed, headers={**EVENT_STREAM, "content-encoding": "gzip"})))
    assert isinstance(error, EventTooLarge)


def test_a_bomb_as_a_whole_answer_is_refused_at_the_limit_of_a_body(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonlib.exchange.MAX_BODY_BYTES", 1 << 20)
    packed = gzip.compress(b" " * (64 << 20), 9)
    server = serve(lambda peer: peer.answer(packed, headers={"content-encoding": "gzip"}))
    with Client(wire(server)) as client, pytest.raises(ProtocolError, match="larger than"):
        client.generate(ASK)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "deflate, gzip", "compress"])
@pytest.mark.parametrize("stream", [True, False])
def test_encodings_without_a_bound_are_not_asked_for_and_not_read(serve: Serve, coding: str, stream: bool) -> None:
    body = gzip.compress(gzip.compress(STREAM)) if "gzip" in coding else zlib.compress(STREAM)

    def handler(peer: Peer) -> None:
        assert peer.asked.headers["accept-encoding"] == "gzip, deflate"
        kind = EVENT_STREAM if stream else JSON_TYPE
        peer.head(200, {**kind, "content-encoding": coding, "content-length": str(len(body))})
        peer.send(body)

    server = serve(handler)
    with Client(wire(server)) as client, pytest.raises(ProtocolError, match="not asked for"):
        collect(client.stream(ASK)) if stream else client.generate(ASK)


# ---------------------------------------------------------------- redirects


def test_a_redirect_to_another_host_carries_no_key_there(serve: Serve) -> None:
    other = serve(lambda peer: peer.stream(STREAM))
    first = serve(lambda peer: peer.answer(b"", 307, {"location": f"{other.url}/v1/messages"}))
    error = failure(first)
    assert "redirected" in str(error)
    assert KEY not in repr(error) + str(error)
    assert other.asked == []


# ---------------------------------------------------------------- nothing stays


def descriptors() -> int | None:
    """Open file descriptors of this process, sockets included; None where nobody counts them."""
    folder = Path("/proc/self/fd")
    if folder.is_dir():
        return len(list(folder.iterdir()))
    psutil = pytest.importorskip("psutil")
    counted: int = psutil.Process().num_handles() if hasattr(psutil.Process, "num_handles") else psutil.Process().num_fds()
    return counted


def settled(count: Callable[[], int | None], before: int | None) -> int | None:
    """The count, when the server's own threads and sockets have gone as well."""
    deadline = time.monotonic() + 20
    while True:
        gc.collect()
        now = count()
        if now is None or before is None or now <= before or time.monotonic() > deadline:
            return now
        time.sleep(0.02)


async def tasks_left() -> int:
    """How many tasks there are when Python has closed the generators that nobody holds (it makes a task of each)."""
    for _ in range(500):
        if len(asyncio.all_tasks()) == 1:
            break
        gc.collect()
        await asyncio.sleep(0.01)
    return len(asyncio.all_tasks())


def slow(peer: Peer) -> None:
    """Begins a stream and waits for the client to go."""
    peer.head(200, EVENT_STREAM)
    peer.chunk(HEAD)
    peer.wait_until_gone(20)


def test_streams_that_are_closed_early_leave_nothing_behind(serve: Serve) -> None:
    server = serve(slow)
    with Client(wire(server)) as client:
        with closing(client.stream(ASK)) as events:
            next(events)
        time.sleep(0.05)
        base = descriptors(), threading.active_count()
        for _ in range(times(400, 5000)):
            with closing(client.stream(ASK)) as events:
                next(events)
        assert (settled(descriptors, base[0]) or 0) <= (base[0] or 0) + 2
        assert (settled(threading.active_count, base[1]) or 0) <= base[1] + 1


def test_async_streams_that_are_closed_early_leave_nothing_behind(serve: Serve) -> None:
    """Counted when the client is closed: until then its pool may keep idle connections."""
    server = serve(slow)

    async def main() -> None:
        base = descriptors()
        async with AsyncClient(wire(server)) as client:

            async def once() -> None:
                async with aclosing(client.stream(ASK)) as events:
                    async for _ in events:
                        break

            for _ in range(times(40, 500)):
                await asyncio.gather(*(once() for _ in range(10)))
            assert await tasks_left() == 1
        await asyncio.to_thread(settled, descriptors, base)
        assert (descriptors() or 0) <= (base or 0) + 4

    asyncio.run(main())


def test_streams_that_are_cancelled_leave_nothing_behind(serve: Serve) -> None:
    server = serve(slow)

    async def main() -> None:
        base = descriptors()
        async with AsyncClient(wire(server)) as client:

            async def once(seconds: float) -> None:
                try:
                    async with asyncio.timeout(seconds):
                        async for _ in client.stream(ASK):
                            pass
                except TimeoutError:
                    pass

            for turn in range(times(20, 200)):
                await asyncio.gather(*(once(0.001 * (place + turn % 7)) for place in range(10)))
            assert await tasks_left() == 1
        await asyncio.to_thread(settled, descriptors, base)
        assert (descriptors() or 0) <= (base or 0) + 4

    asyncio.run(main())
