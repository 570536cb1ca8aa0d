"""What the contract suite needs: the case folders in testdata/, a reader for each kind of body, and how to compare.

One case is one folder, testdata/<wire>/<case>/, in the form of a tape: `request.json`, then `response.json` and `stream.sse`
(the same answer, whole and streamed) or `error.json` with its `meta.json`. Beside them stand `ask.json`, the request before
it was written in the wire's own words ({"wire": options of the wire format, "stream", "request"}), and `expect.json`, what
must be read.

`expect.json` has the fields of one line of `lesson explain --json`. A value may be a matcher: {"$set": true} any non-empty
value, {"$any": [...]} one of them, {"$contains": "..."} a part of a text. `opaque_min` counts the opaque parts. A call whose
expected id is null came without one; what id it gets is not compared. `differs` says in words why the parts of the stream
and of the whole answer cannot be equal; then only what the line tells is compared. `left_out` names what a replay does not
send back, {text: why}: the format's exceptions to raw replay.

What this file does not do: it knows no wire. A new wire format brings files and no test code.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from lessonlib.errors import APIError, IncompleteStream, LessonError, NotAStream, ProtocolError
from lessonlib.sse import ServerSentEvent, SSEParser
from lessonlib.types import COUNTS, JSON, Event, Message, Opaque, Request, Response
from lessonlib.wire import WIRES, WireFormat
from lessonlib.wire.base import read_json

TESTDATA = Path(__file__).parent.parent / "testdata"

KEY = "sk-inv-SECRET-1234567890"

KINDS = {
    APIError: "provider_error",
    IncompleteStream: "incomplete_stream",
    ProtocolError: "protocol_error",
    NotAStream: "not_a_stream",
}


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """One case folder. Everything is read when it is asked for."""

    folder: Path

    def __str__(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def wire_name(self) -> str:
        return self.folder.parent.name

    def wire(self) -> WireFormat:
        """The wire format as this case was asked: some speak to another host, or an older version."""
        options = self.json("ask.json").get("wire", {}) if self.has("ask.json") else {}
        return WIRES[self.wire_name](api_key=KEY, **options)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def json(self, name: str) -> Any:
        return read_json((self.folder / name).read_bytes())

    @cached_property
    def expect(self) -> JSON:
        expected: JSON = self.json("expect.json")
        return expected

    @cached_property
    def stream(self) -> bytes:
        return (self.folder / "stream.sse").read_bytes()

    def request(self) -> tuple[Request, bool]:
        """The request behind this case, and whether it asks for a stream."""
        ask = self.json("ask.json")
        return Request.model_validate(ask["request"]), ask["stream"]

    @property
    def succeeds(self) -> bool:
        return self.expect["error"] is None


def cases(*needed: str) -> list[Case]:
    """All cases that have these files."""
    folders = sorted(folder for name in WIRES for folder in (TESTDATA / name).glob("*") if folder.is_dir())
    return [case for case in map(Case, folders) if all(case.has(file) for file in needed)]


def case_names(wire_name: str) -> set[str]:
    return {case.name for case in cases("expect.json") if case.wire_name == wire_name}


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Reading:
    """What came of one body: a Response, or the error that stands in its place."""

    outcome: Response | LessonError
    events: list[Event]

    @property
    def response(self) -> Response:
        """The answer; fails the test if there is none."""
        if isinstance(self.outcome, LessonError):
            raise AssertionError(f"expected an answer, got {self.outcome!r}") from self.outcome
        return self.outcome

    @property
    def seen(self) -> Response | None:
        """The answer, or what had arrived before the error."""
        return self.outcome.partial if isinstance(self.outcome, LessonError) else self.outcome

    def line(self) -> JSON:
        """The fields of `expect.json`."""
        seen = self.seen
        usage = seen.usage if seen else None
        return {
            "id": seen.id if seen else None,
            "model": seen.model if seen else None,
            "text": seen.text if seen else "",
            "reasoning": seen.reasoning if seen else "",
            "tool_calls": calls_of(seen.message) if seen else [],
            "stop": seen.stop.value if seen else None,
            "raw_stop": seen.raw_stop if seen else None,
            "usage": {name: getattr(usage, name) for name in COUNTS} if usage else None,
            "error": _error_line(self.outcome) if isinstance(self.outcome, LessonError) else None,
            "opaque": sum(isinstance(part, Opaque) for part in seen.message.parts) if seen else 0,
        }

    def comparable(self) -> Any:
        """A value that is equal for equal readings."""
        if isinstance(self.outcome, LessonError):
            return type(self.outcome), str(self.outcome), self.outcome.retryable, self.outcome.partial, self.events
        return self.outcome, self.events


def calls_of(message: Message) -> list[JSON]:
    return [
        {"id": call.call_id, "name": call.name, "args": call.args, "args_error": call.args_error}
        for call in message.tool_calls
    ]


def _error_line(error: LessonError) -> JSON:
    return {
        "kind": KINDS[type(error)],
        "type": getattr(error, "type", None),
        "code": getattr(error, "code", None),
        "retryable": error.retryable,
    }


def read_stream(wire: WireFormat, data: bytes, cuts: Iterable[int] = ()) -> Reading:
    """What a client would see of a body that ends cleanly, read in pieces that end at `cuts`."""
    parser, decoder = SSEParser(), wire.decoder()
    events: list[Event] = []
    try:
        for piece in pieces(data, cuts):
            for sse in parser.feed(piece):
                events += decoder.feed(sse)
        for sse in parser.close():
            events += decoder.feed(sse)
        events += decoder.close(parser.stray)
        return Reading(decoder.result(), events)
    except LessonError as error:
        return Reading(error, events)


def read_whole(wire: WireFormat, data: bytes) -> Reading:
    try:
        return Reading(wire.decode(read_json(data)), [])
    except LessonError as error:
        return Reading(error, [])


def pieces(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    places = [0, *sorted(cuts), len(data)]
    return (data[start:end] for start, end in pairwise(places))


def every(size: int, data: bytes) -> range:
    """The cuts that give pieces of this size."""
    return range(size, len(data), size)


# ---------------------------------------------------------------- comparing


def differences(expected: Any, got: Any, place: str = "") -> list[str]:
    """Where `got` is not what `expected` asks for; an empty list means that it is met."""
    if isinstance(expected, dict) and len(expected) == 1:
        ((word, value),) = expected.items()
        if word == "$set":
            return [] if got else [f"{place}: nothing"]
        if word == "$any":
            return [] if any(not differences(each, got) for each in value) else [f"{place}: {got!r} is none of {value!r}"]
        if word == "$contains":
            return [] if value in (got or "") else [f"{place}: {value!r} is not in {got!r}"]
    if isinstance(expected, dict) and isinstance(got, dict):
        return [text for key in expected for text in differences(expected[key], got.get(key), f"{place}.{key}")]
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        return [
            text for i, pair in enumerate(zip(expected, got, strict=True)) for text in differences(*pair, f"{place}[{i}]")
        ]
    return [] if expected == got and type(expected) is type(got) else [f"{place}: expected {expected!r}, got {got!r}"]


NOT_IN_THE_LINE = ("wire", "opaque_min", "differs", "left_out")


def unmet(case: Case, reading: Reading) -> list[str]:
    """Everything in which a reading falls short of `expect.json`. What is compared after an error: the error, and what
    had arrived; its stop and usage say nothing."""
    line = reading.line()
    expected = {key: value for key, value in case.expect.items() if key not in NOT_IN_THE_LINE}
    if not case.succeeds:
        expected = {key: value for key, value in expected.items() if key in ("text", "reasoning", "tool_calls", "error")}
    for name in ("id", "model"):  # "" and null are the same: there is none
        if name in expected:
            expected[name], line[name] = expected[name] or "", line[name] or ""
    expected["tool_calls"] = [
        {key: value for key, value in call.items() if key != "id" or value is not None} for call in expected["tool_calls"]
    ]
    missing = case.expect.get("opaque_min", 0) - line["opaque"]
    return differences(expected, line) + ([f"{missing} opaque parts are missing"] if missing > 0 else [])


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text inside a JSON value, with the name of the field that it stands in."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, key)


# ---------------------------------------------------------------- taking a stream apart


def sse_events(data: bytes) -> list[ServerSentEvent]:
    parser = SSEParser()
    return parser.feed(data) + parser.close()


def event_ends(data: bytes) -> list[int]:
    """For each event of a stream, the offset right behind the last byte of its data."""
    parser, ends = SSEParser(), []
    for place in range(len(data)):
        if parser.feed(data[place : place + 1]):
            ends.append(len(data[: place + 1].rstrip(b"\r\n")))
    if parser.close():
        ends.append(len(data.rstrip(b"\r\n")))
    return ends


def successful_cuts(wire: WireFormat, data: bytes) -> Iterator[tuple[int, Response]]:
    """Every n for which the first n bytes, followed by a clean end of the body, are read as a finished answer.

    Between two events nothing changes but the open event, so each event starts a new parser, and the events before it are
    read again only where the open one could be delivered."""
    parser, before = SSEParser(), 0
    done: list[ServerSentEvent] = []
    settled: Response | None = None
    for cut in range(len(data) + 1):
        opened = SSEParser()
        late = opened.feed(data[before:cut]) + opened.close()
        response = _finished(wire, [*done, *late]) if late else settled
        if response is not None:
            yield cut, response
        new = parser.feed(data[cut : cut + 1])
        if new:
            done += new
            before = cut + 1
            settled = _finished(wire, done)


def _finished(wire: WireFormat, events: Sequence[ServerSentEvent]) -> Response | None:
    decoder = wire.decoder()
    try:
        for sse in events:
            decoder.feed(sse)
        decoder.close()
        return decoder.result()
    except LessonError:
        return None


def with_unknown_events(data: bytes) -> bytes:
    """The stream with an event from the future and a comment before each event and at the end."""
    unknown = json.dumps({"type": "invented_later", "event_type": "invented_later", "load": {"a": [1, None]}})
    noise = f": a comment\n\nevent: invented_later\ndata: {unknown}\n\n".encode()
    *blocks, rest = data.replace(b"\r\n", b"\n").split(b"\n\n")
    return b"".join(noise + block + b"\n\n" for block in blocks) + noise + rest


WRITTEN_BY_THE_MODEL = frozenset({"args", "arguments", "input", "partial_arguments", "partialArgs"})
"""Fields whose content is the model's own JSON: a field that is added there is a different call, not an unknown field."""


def with_unknown_fields(value: Any, depth: int = 4) -> Any:
    """The JSON value with a field from the future in every object of its upper levels."""
    if isinstance(value, list):
        return [with_unknown_fields(item, depth) for item in value]
    if not isinstance(value, dict) or depth == 0:
        return value
    inner = {
        key: item if key in WRITTEN_BY_THE_MODEL else with_unknown_fields(item, depth - 1) for key, item in value.items()
    }
    return {**inner, "invented_later": {"a": [1, None]}}


def map_data(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """The stream with `change` applied to the JSON of each `data:` line; all other lines stay as they are."""
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    for place, line in enumerate(lines):
        if line.startswith(b"data: "):
            with contextlib.suppress(ValueError):
                lines[place] = b"data: " + json.dumps(change(read_json(line[6:]))).encode()
    return b"\n".join(lines)
