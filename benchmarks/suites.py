"""What is measured in this process, by CPU time: reading, cuts of the network, growth, layers of policy, histories, tools.

Each suite gives rows (timing.py); report.py makes ratios of them. `Sizes` says how much is read: `FULL` for figures, `SHORT`
to see a change while working, `SMALLEST` so that a test can run everything in seconds.

What this file does not do: nothing that needs a server (loopback.py) or a process of its own (apart.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.contestants import KEY, OTHERS, OURS, REQUEST, Contestant, Found, Memory, Source, check
from benchmarks.sdks import sdk_contestants
from benchmarks.streams import MODELS, WRITERS, Stream, recordings, stream
from benchmarks.timing import Row, rounds
from lessonlib import WIRES, Client, Message, Request, Response, Retry, StopReason, Text, ToolCall, ToolResult, run_tools
from lessonlib.types import Usage

SLOW = "gemini-interactions"
"""Its package needs a millisecond for each event, so it is given the shorter streams only."""

CHUNK = 1400  # what one TCP segment carries


@dataclass(frozen=True)
class Sizes:
    """How much is read, and how often."""

    runs: int = 7
    deltas: int = 20_000
    thoughts: int = 5_000
    recordings: int = 20
    arguments: int = 256 * 1024
    event: int = 1024 * 1024
    chunks: tuple[int, ...] = (64, CHUNK, 65_536)
    cut_deltas: int = 5_000
    growing: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("text", (5_000, 20_000, 80_000)),
        ("arguments", (262_144, 1_048_576, 8_388_608)),
        ("one event", (1_048_576, 2_097_152, 4_194_304, 8_388_608)),
    )
    histories: tuple[int, ...] = (10, 100, 1_000, 10_000)
    layers: int = 4
    capture: int = 50 * 1024 * 1024
    starts: int = 9
    streams: tuple[int, ...] = (1, 10, 50, 100, 200, 500)
    stream_deltas: int = 100
    loops: int = 7


FULL = Sizes()
SHORT = Sizes(
    runs=7, deltas=6_000, thoughts=600, recordings=2, arguments=32_768, event=262_144, cut_deltas=2_000,
    growing=(("text", (2_000, 8_000)), ("arguments", (65_536, 524_288)), ("one event", (262_144, 2_097_152))),
    histories=(10, 100, 1_000), capture=4 * 1024 * 1024, starts=7, streams=(1, 20, 100), stream_deltas=50, loops=7,
)  # fmt: skip
SMALLEST = Sizes(
    runs=1, deltas=20, thoughts=3, recordings=1, arguments=900, event=2_000, chunks=(64, CHUNK), cut_deltas=10,
    growing=(("text", (10, 20)), ("arguments", (900, 1_800)), ("one event", (1_000, 2_000))), histories=(10, 20), layers=2,
    capture=20_000, starts=1, streams=(1, 3), stream_deltas=5, loops=1,
)  # fmt: skip

Suite = Callable[[Sizes], Iterator[Row]]


# ---------------------------------------------------------------- reading


def _compete(
    suite: str, given: Stream, contestants: dict[str, Contestant], runs: int, *, chunk: int = CHUNK, size: int = 0
) -> Iterator[Row]:
    """All contestants on one stream: microseconds of CPU per event."""
    with asyncio.Runner() as runner:
        source = Source(given.wire, given.chunks(chunk), loop=runner.get_loop())
        works = {name: prepared(source) for name, prepared in contestants.items()}
        seconds = rounds(works, runs, partial(check, given.expected))
        del works
    facts = {"events": given.expected.events, "bytes": len(given.body)}
    for name, values in seconds.items():
        each = [value * 1e6 / given.expected.events for value in values]
        yield Row(suite, given.case, name, "µs per event", each, given.wire, size, chunk, facts)


def reading(sizes: Sizes) -> Iterator[Row]:
    """Every stream in memory, in chunks of 1.4 KB: lessonlib, the packages, and what is below. The packages' asynchronous
    form reads in `cuts`, and what the helpers do to arguments is in `helpers`."""
    cases = {
        "text": sizes.deltas, "thinking and 8 calls": sizes.thoughts, "arguments": sizes.arguments, "one event": sizes.event,
    }  # fmt: skip
    for wire in WRITERS:
        for case, size in cases.items():
            given = stream(wire, case, size)
            kinds = ("raw", "helper") if case == "text" else ("raw",)
            packages = {name: each for name, each in sdk_contestants(wire).items() if name.endswith(kinds)}
            if wire == SLOW and case != "one event":
                packages = {}
            everyone = {**OTHERS, **OURS, **packages}
            yield from _compete("reading", given, everyone, sizes.runs, size=size)


def recorded(sizes: Sizes) -> Iterator[Row]:
    """The streams of testdata/, which keep the form of recordings; here many short ones, so their beginnings count."""
    for wire in WRITERS:
        given = recordings(wire, sizes.recordings)
        works: dict[str, Callable[[], list[Found]]] = {}
        for name, contestant in {**OTHERS, "lessonlib, decoder alone": OURS["lessonlib, decoder alone"]}.items():
            works[name] = partial(_all, [contestant(Source(wire, [body])) for _, body in given])
        texts = [text for text, _ in given]
        events = sum(found.events or 0 for found in works["floor"]())
        for name, values in rounds(works, sizes.runs, partial(_check_all, texts, events)).items():
            each = [value * 1e6 / events for value in values]
            yield Row("recorded", "recordings", name, "µs per event", each, wire, facts={"streams": len(given)})


def _all(works: Sequence[Callable[[], Found]]) -> list[Found]:
    return [work() for work in works]


def _check_all(texts: Sequence[str], events: int, found: Sequence[Found]) -> None:
    if found[0].events is not None:
        assert sum(each.events or 0 for each in found) == events, "not all events were counted"
    else:
        assert ["".join(each.text) for each in found] == texts, "a text is not what was sent"


def cuts(sizes: Sizes) -> Iterator[Row]:
    """The same text, cut by the network into small and large reads."""
    for wire in WRITERS:
        given = stream(wire, "text", sizes.cut_deltas)
        for chunk in sizes.chunks:
            everyone = {**OTHERS, **OURS, **sdk_contestants(wire)}
            if chunk != CHUNK:
                everyone = {name: each for name, each in everyone.items() if "async" not in name and "helper" not in name}
            yield from _compete("cuts", given, everyone, sizes.runs, chunk=chunk)


def helpers(sizes: Sizes) -> Iterator[Row]:
    """What the accumulating helpers cost as a tool's arguments grow: some parse all that has come again at each delta."""
    for wire in ("anthropic-messages", "openai-responses", "openai-chat"):
        helper = {name: each for name, each in sdk_contestants(wire).items() if "async" not in name}
        for size in (sizes.arguments // 16, sizes.arguments // 8, sizes.arguments // 4):
            given = stream(wire, "arguments", size)
            yield from _compete("helpers", given, helper | {"lessonlib": OURS["lessonlib"]}, sizes.runs, size=size)


# ---------------------------------------------------------------- growth


def growth(sizes: Sizes) -> Iterator[Row]:
    """lessonlib alone: does the cost grow with the stream, and no faster? CPU milliseconds for the whole stream."""
    for wire in WRITERS:
        for case, steps in sizes.growing:
            name = "one argument object" if wire == "gemini-generate-content" and case == "arguments" else case
            yield from _growing(wire, name, steps, sizes.runs)


def _growing(wire: str, case: str, steps: Sequence[int], runs: int) -> Iterator[Row]:
    works: dict[str, Callable[[], Found]] = {}
    about: dict[str, tuple[str, int]] = {}
    for size in steps:
        given = stream(wire, case, size)
        for contestant, prepared in (("lessonlib", OURS["lessonlib, decoder alone"]), ("floor", OTHERS["floor"])):
            name = f"{contestant} {size}"
            works[name], about[name] = prepared(Source(wire, given.chunks(CHUNK))), (contestant, size)
            check(given.expected, works[name]())
    for name, values in rounds(works, runs).items():
        contestant, size = about[name]
        yield Row("growth", case, contestant, "ms", [value * 1e3 for value in values], wire, size, CHUNK)


# ---------------------------------------------------------------- policies


def policies(sizes: Sizes) -> Iterator[Row]:
    """The same stream through none to several layers of Retry, each with a driver of its own."""
    for wire in ("anthropic-messages", "openai-chat"):
        given = stream(wire, "text", sizes.deltas)
        client = Client(WIRES[wire](model=MODELS[wire], api_key=KEY), transport=Memory(given.chunks(CHUNK)))
        works: dict[str, Callable[[], Found]] = {}
        provider: Any = client
        for number in range(sizes.layers + 1):
            works[f"{number}"] = partial(_drain, provider)
            provider = Retry(provider)
        seconds = rounds(works, sizes.runs, partial(check, given.expected))
        for layers, values in seconds.items():
            each = [value * 1e6 / given.expected.events for value in values]
            yield Row("policies", "text", "lessonlib", "µs per event", each, wire, int(layers), CHUNK)


def _drain(provider: Any) -> Found:
    last = None
    for event in provider.stream(REQUEST):
        last = event
    response = last.response  # type: ignore[union-attr]
    return Found([response.text], [(call.name, call.args) for call in response.tool_calls])


# ---------------------------------------------------------------- histories


def history(messages: int, wire: str = "") -> list[Message]:
    """A conversation of so many messages, with a tool call in every fourth pair. wire: whose answers they are; "" means
    that they come from elsewhere, so that nothing can be replayed as it came."""
    made: list[Message] = []
    for number in range(messages // 4):
        call = ToolCall(call_id=f"call_{number}", name="get_level", args={"place": "Oslo", "hour": number})
        made += [
            Message.user(f"How high is the tide at hour {number}?"),
            Message.assistant("I will look that up.", call),
            Message.user(ToolResult(call_id=call.call_id, name="get_level", content="1.2 metres and falling")),
            Message.assistant("It is 1.2 metres, and it falls."),
        ]
    return [*made, Message.user("And now?")]


def encode(sizes: Sizes) -> Iterator[Row]:
    """The request for a history of n messages, to its last byte. CPU milliseconds."""
    for wire in WRITERS:
        encoder = WIRES[wire](model=MODELS[wire], api_key=KEY)
        requests = {n: Request(messages=history(n)) for n in sizes.histories}
        works = {str(n): partial(_encode, encoder, request) for n, request in requests.items()}
        for name, values in rounds(works, sizes.runs).items():
            yield Row("encode", "history", "lessonlib", "ms", [value * 1e3 for value in values], wire, int(name))


def _encode(encoder: Any, request: Request) -> int:
    return len(encoder.encode(request, stream=True).content)


class _Model:
    """Answers at once: a call for a while, then a text. So only the loop is measured."""

    name, is_async = "model", False

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def generate(self, request: Request) -> Response:
        self.steps -= 1
        if self.steps < 0:
            message = Message.assistant("It is 1.2 metres.")
            return Response(message=message, stop=StopReason.END, usage=Usage(input_tokens=1, output_tokens=1))
        call = ToolCall(call_id=f"step_{self.steps}", name="get_level", args={"place": "Oslo"})
        message = Message(role="assistant", parts=[Text(text="I look."), call])
        return Response(message=message, stop=StopReason.TOOL_USE, usage=Usage(input_tokens=1, output_tokens=1))

    def stream(self, request: Request) -> Iterator[Any]:
        raise NotImplementedError("the loop is asked for whole answers here")


def get_level(place: str) -> str:
    """The level of the tide."""
    return "1.2 metres"


def tool_steps(sizes: Sizes) -> Iterator[Row]:
    """One step of `run_tools` over a history of n messages, without any service or encoding. CPU milliseconds."""
    steps = 8
    requests = {n: Request(messages=history(n)) for n in sizes.histories}
    works = {str(n): partial(_loop, request, steps) for n, request in requests.items()}
    for name, values in rounds(works, sizes.runs).items():
        each = [value * 1e3 / steps for value in values]
        yield Row("tool steps", "history", "lessonlib", "ms per step", each, size=int(name))


def _loop(request: Request, steps: int) -> None:
    run = run_tools(_Model(steps), request, tools={"get_level": get_level}, max_steps=steps + 1, parallel=False)
    assert run.steps == steps + 1
    assert len(run.messages) == len(request.messages) + 2 * steps + 1
