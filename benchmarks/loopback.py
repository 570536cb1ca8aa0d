"""What needs a server: loopback sockets, the time to the first event, and many streams at once. Wall time.

The server is a process of its own on 127.0.0.1 (`python -m benchmarks.loopback`), written on asyncio streams: it sends one
body to everybody who asks, in chunks of the size that the path names, and does nothing else. It writes a chunk when the one
before it has gone out, so the reader is what limits.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.contestants import KEY, OTHERS, OURS, REQUEST, Contestant, Found, Source, check
from benchmarks.sdks import _opened, sdk_contestants
from benchmarks.streams import MODELS, Stream, stream
from benchmarks.suites import CHUNK, Sizes
from benchmarks.timing import Row, rounds
from lessonlib import WIRES, AsyncClient, Client, Done

ROOT = Path(__file__).parent.parent
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
COMPARED = ("anthropic-messages", "openai-responses", "openai-chat")


# ---------------------------------------------------------------- the server


async def _answer(body: bytes, size: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers every request on this connection with the body."""
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
            await reader.readexactly(length)
            writer.write(HEAD)
            for chunk in chunks:
                writer.write(chunk)
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):  # the client has gone
        pass
    finally:
        writer.close()


async def serve(path: Path, size: int) -> None:
    """Serves until it is ended; the first line that it prints is the port."""
    body = path.read_bytes()
    server = await asyncio.start_server(partial(_answer, body, size), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


@contextmanager
def serving(given: Stream, size: int) -> Iterator[str]:
    """The URL of a server for one stream, in a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stream.sse"
        path.write_bytes(given.body)
        command = [sys.executable, "-m", "benchmarks.loopback", str(path), str(size)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
            try:
                assert child.stdout is not None
                yield f"http://127.0.0.1:{int(child.stdout.readline())}"
            finally:
                child.terminate()


# ---------------------------------------------------------------- one stream


def loopback(sizes: Sizes) -> Iterator[Row]:
    """The text once more, through sockets. Microseconds of the wall per event: the server's work is in it."""
    for wire in COMPARED:
        given = stream(wire, "text", sizes.cut_deltas)
        for size in sizes.chunks:
            with serving(given, size) as url, asyncio.Runner() as runner:
                source = Source(wire, [], url, runner.get_loop())
                everyone: dict[str, Contestant] = {**OTHERS, **OURS, **sdk_contestants(wire)}
                del everyone["floor"], everyone["lessonlib, decoder alone"]  # they read no socket
                everyone = {name: each for name, each in everyone.items() if "helper" not in name}
                works = {name: each(source) for name, each in everyone.items()}
                seconds = rounds(works, sizes.loops, partial(check, given.expected), time.perf_counter)
                for name, values in seconds.items():
                    each_event = [value * 1e6 / given.expected.events for value in values]
                    yield Row("loopback", "text", name, "µs per event, wall", each_event, wire, chunk=size)


def first_event(sizes: Sizes) -> Iterator[Row]:
    """Wall milliseconds from the call to the first event in the user's hands, on a connection that is open already."""
    for wire in COMPARED:
        with serving(stream(wire, "text", 20), CHUNK) as url:
            source = Source(wire, [], url)
            ours = Client(WIRES[wire](model=MODELS[wire], api_key=KEY, base_url=url))
            opened, _ = _opened(source, is_async=False)
            package = next(iter(sdk_contestants(wire)))
            works: dict[str, Callable[[], Any]] = {
                "lessonlib": lambda ours=ours: _first(lambda: ours.stream(REQUEST)),  # type: ignore[misc]
                package: lambda opened=opened: _first(lambda: iter(opened())),  # type: ignore[misc]
            }
            values: dict[str, list[float]] = {name: [] for name in works}
            for number in range(sizes.loops * 5 + 1):
                for name, work in works.items():
                    elapsed = work()
                    if number:
                        values[name].append(elapsed * 1e3)
            for name, each in values.items():
                yield Row("first event", "text", name, "ms, wall", each, wire, chunk=CHUNK)


def _first(opened: Callable[[], Iterator[Any]]) -> float:
    before = time.perf_counter()
    events = opened()
    next(events)
    elapsed = time.perf_counter() - before
    for _ in events:  # to the end, so that the connection can be used again
        pass
    return elapsed


# ---------------------------------------------------------------- many streams


def concurrency(sizes: Sizes) -> Iterator[Row]:
    """n streams at once, in tasks of one event loop and in threads: events per second of all, and the slowest stream."""
    wire = "anthropic-messages"
    given = stream(wire, "text", sizes.stream_deltas)
    with serving(given, CHUNK) as url:
        crowds = _crowds(Source(wire, [], url), given)
        for count in sizes.streams:
            throughput: dict[str, list[float]] = {name: [] for name in crowds}
            slowest: dict[str, list[float]] = {name: [] for name in crowds}
            for number in range(sizes.loops + 1):  # the first round is not measured
                for name, (_, run) in crowds.items():
                    slow, whole = run(count)
                    if number:
                        throughput[name].append(count * given.expected.events / whole)
                        slowest[name].append(slow * 1e3)
            for name, (case, _) in crowds.items():
                yield Row("concurrency", case, name, "events per second, wall", throughput[name], wire, count, CHUNK)
                yield Row("slowest stream", case, name, "ms, wall", slowest[name], wire, count, CHUNK)


def _crowds(source: Source, given: Stream) -> dict[str, tuple[str, Callable[[int], tuple[float, float]]]]:
    right = partial(check, given.expected)
    return {
        "lessonlib, async": ("tasks", lambda count: asyncio.run(_in_tasks(_our_task(source, right), count))),
        "anthropic, raw async": ("tasks", lambda count: asyncio.run(_in_tasks(_their_task(source, right), count))),
        "lessonlib": ("threads", partial(_in_threads, OURS["lessonlib"](source), right)),
        "anthropic, raw": ("threads", partial(_in_threads, sdk_contestants(source.wire)["anthropic, raw"](source), right)),
    }


Task = Callable[[], Awaitable[None]]


def _our_task(source: Source, right: Callable[[Found], None]) -> Task:
    ours = AsyncClient(WIRES[source.wire](model=MODELS[source.wire], api_key=KEY, base_url=source.base_url))

    async def read() -> None:
        last = None
        async for event in ours.stream(REQUEST):
            last = event
        assert isinstance(last, Done)
        right(Found([last.response.text], [(call.name, call.args) for call in last.response.tool_calls]))

    return read


def _their_task(source: Source, right: Callable[[Found], None]) -> Task:
    opened, take = _opened(source, is_async=True)

    async def read() -> None:
        found = Found()
        async for event in await opened():
            take(event, found)
        right(found)

    return read


async def _in_tasks(task: Task, count: int) -> tuple[float, float]:
    """The slowest stream and the whole, in seconds."""

    async def timed() -> float:
        before = time.perf_counter()
        await task()
        return time.perf_counter() - before

    before = time.perf_counter()
    each = await asyncio.gather(*(timed() for _ in range(count)))
    return max(each), time.perf_counter() - before


def _in_threads(read: Callable[[], Found], right: Callable[[Found], None], count: int) -> tuple[float, float]:
    def timed(_: int) -> float:
        before = time.perf_counter()
        right(read())
        return time.perf_counter() - before

    with ThreadPoolExecutor(count) as pool:
        before = time.perf_counter()
        each = list(pool.map(timed, range(count)))
        return max(each), time.perf_counter() - before


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
