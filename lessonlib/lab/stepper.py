"""Stepping through a stream: one step per event, what the decoder made of it, and what had arrived by then.

    walk = Stepper("anthropic-messages/tool_call")
    walk.next(), walk.prev(), walk.jump(15), walk.jump("message_delta"), walk.play(5)
    walk.step                    # the current Step: bytes, state before and after, unified events
    walk.moment()                # the parts as they are after it, from the decoder itself
    walk.diff(14, 15)            # what changed between two steps

The library's own decoder reads the stream, once for all steps; the parts of a moment are what it has folded by then, so the
view cannot know more than a client would. One more step stands at the end: the end of the HTTP body, which is no event.

What this file does not do: it draws nothing (explore.py shows a step), and never parses half a call's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

from lessonlib.errors import LessonError
from lessonlib.explain.report import CUT as NEVER_ENDED
from lessonlib.explain.report import deeds, describe, one_line
from lessonlib.lab.page import Table
from lessonlib.lab.source import Source, Stream, read_stream
from lessonlib.sse import ServerSentEvent
from lessonlib.types import (
    ArgumentsDelta,
    Event,
    Opaque,
    Part,
    PartDone,
    Reasoning,
    ReasoningDelta,
    Response,
    StopReason,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)  # fmt: skip
from lessonlib.wire import WIRES, StreamDecoder
from lessonlib.wire.base import Table as States

END = "(end of body)"
"""The name of the last step: the HTTP body is over. It is no event."""

PIECES = (TextDelta, ReasoningDelta, ArgumentsDelta)
"""The unified events that add a piece to a part."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event, or the end of the body.

    number: from 1. name: the wire's own name of the event. before, after: states. events: the unified events that it gave.
    did: what it did, in words. start, end: its bytes in the body, -1 if not known. sse: the event, None for the end.
    error: it ended the reading. seconds: when it came, if the capture knows.
    """

    number: int
    name: str
    before: str
    after: str
    events: tuple[Event, ...]
    did: str
    start: int = -1
    end: int = -1
    sse: ServerSentEvent | None = field(default=None, repr=False)
    error: LessonError | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of the answer at one moment. kind: text, reasoning, call, or the wire's own word for what is kept as it came.
    status: growing, held (ended, but not yet given out), whole, or cut (it will never be whole). problem: why a whole call
    cannot be run all the same."""

    place: int
    kind: str
    status: str
    text: str
    name: str = ""
    call_id: str = ""
    problem: str = ""

    @property
    def display_only(self) -> bool:
        """Half a call's arguments: to be shown, never to be parsed or run."""
        return self.kind == "call" and self.status in ("growing", "cut")


@dataclass(frozen=True, slots=True)
class Moment:
    """What a client would have after a step. raw_stop: the vendor's word for why it stopped, stop: ours."""

    state: str
    parts: tuple[PartView, ...] = ()
    raw_stop: str | None = None
    stop: StopReason | None = None
    usage: Usage | None = None


class Stepper:
    """A place in a stream, and the ways to move it. `source` is anything that `read_stream` takes. Raises ValueError where
    the bytes are no stream, or of a wire format that nobody can tell and `wire` does not say."""

    def __init__(self, source: Source, wire: str | None = None, name: str | None = None) -> None:
        self.stream: Stream = read_stream(source, wire, name)
        if self.stream.wire is None:
            raise ValueError(f"cannot tell the wire format of {self.stream.name}; say wire=, one of {', '.join(WIRES)}")
        self.wire: str = self.stream.wire
        self.name = self.stream.name
        self.steps: tuple[Step, ...] = tuple(_steps(self.stream, _decoder(self.wire)))
        self._place = 1
        self._growing = _Growing(self.wire)

    # ------------------------------------------------------------ moving

    @property
    def step(self) -> Step:
        """The current step."""
        return self.steps[self._place - 1]

    def __len__(self) -> int:
        return len(self.steps)

    def jump(self, to: int | str, occurrence: int = 1) -> Stepper:
        """Moves to a step by its number (from 1; -1 is the last), or to the named event's `occurrence`-th coming."""
        if isinstance(to, str):
            found = [step.number for step in self.steps if step.name == to]
            if len(found) < occurrence:
                names = ", ".join(dict.fromkeys(step.name for step in self.steps))
                raise ValueError(f"{to!r} comes {len(found)} times in this stream; its events are {names}")
            self._place = found[occurrence - 1]
            return self
        wanted = to if to > 0 else len(self) + 1 + to
        if not 1 <= wanted <= len(self):
            raise ValueError(f"there is no step {to}: this stream has steps 1 to {len(self)}")
        self._place = wanted
        return self

    def next(self, count: int = 1) -> Stepper:
        """Moves `count` steps on, at most to the end."""
        return self.jump(max(1, min(self._place + count, len(self))))

    def prev(self, count: int = 1) -> Stepper:
        """Moves `count` steps back, at most to the first."""
        return self.next(-count)

    def play(self, count: int | None = None) -> Table:
        """Moves on by `count` steps (to the end if None) and gives all steps that were passed as a table."""
        first = self._place
        self.next(len(self) if count is None else count)
        return self.rows(first, self._place)

    # ------------------------------------------------------------ looking

    def moment(self, number: int | None = None) -> Moment:
        """What had arrived after a step (the current one)."""
        return self._growing.after(self.steps, number or self._place)

    def diff(self, a: int, b: int) -> list[str]:
        """What changed from step `a` to step `b`, in words: the state, the parts, stop reason and usage."""
        return list(_changes(self.moment(a) if a else Moment(self.steps[0].before), self.moment(b)))

    def rows(self, first: int = 1, last: int = -1) -> Table:
        """The steps from `first` to `last` as a table, the current one marked. Runs of like steps are joined to one row."""
        last = last if last > 0 else len(self) + 1 + last
        lines: list[tuple[str, ...]] = []
        marks = set()
        for run in _runs(self.steps[first - 1 : last]):
            if run[0].number <= self._place <= run[-1].number:
                marks.add(len(lines))
            lines.append(_line(run))
        return Table(("step", "event", "state", "what it gives"), tuple(lines), title=self.name, marks=frozenset(marks))

    def parts(self) -> Table:
        """The parts at the current step."""
        cells = tuple((str(part.place), part.kind, part.status, shown(part)) for part in self.moment().parts)
        return Table(("part", "kind", "status", "so far"), cells)

    @property
    def table(self) -> States:
        """The decoder's own state table."""
        return type(_decoder(self.wire)).TABLE


def shown(part: PartView) -> str:
    """The content of a part as one text; a call with its name."""
    if part.kind == "reasoning" and part.status == "whole" and not part.text:
        return "(no readable text)"
    if part.kind != "call":
        return part.text
    return f"{part.name}({part.text}" + ("" if part.display_only or part.problem else ")")


# ---------------------------------------------------------------- all steps


def _decoder(wire: str) -> StreamDecoder:
    kind = WIRES[wire]
    return kind("model", api_key="", base_url=kind.default_base_url).decoder()


def _steps(stream: Stream, decoder: StreamDecoder) -> Iterable[Step]:
    rows = {row.first: row for row in stream.report.rows}
    for number, (start, end, sse) in enumerate(stream.frames, 1):
        before, row = decoder.state, rows[number]
        events, error = _given(partial(decoder.feed, sse))
        after, place = decoder.state, (start, end) if start >= 0 else (-1, -1)
        yield Step(number, row.event, before, after, events, row.did, *place, sse, error, row.seconds)
    before, size = decoder.state, len(stream.body)
    events, error = _given(partial(decoder.close, stream.stray))
    words = {"DONE": "the body is over; the answer was whole already", "FAILED": "the body is over"}
    did = error.message if error is not None else deeds(events)[0] if events else words[before]
    yield Step(len(stream.frames) + 1, END, before, decoder.state, events, did, size, size, None, error)


def _given(act: Callable[[], Sequence[Event]]) -> tuple[tuple[Event, ...], LessonError | None]:
    try:
        return tuple(act()), None
    except LessonError as error:
        return (), error


# ---------------------------------------------------------------- rows


def _runs(steps: Iterable[Step]) -> Iterable[list[Step]]:
    """Neighbours that did the same thing: one piece each of the same part, under the same name, in the same state."""
    for _, run in groupby(steps, key=lambda step: _likeness(step) or step.number):
        yield list(run)


def _likeness(step: Step) -> tuple[str, ...] | None:
    if len(step.events) != 1 or step.before != step.after:
        return None
    _, key, _, _ = deeds(step.events)
    return (step.name, step.after, key) if key else None


def _line(run: list[Step]) -> tuple[str, str, str, str]:
    first, last = run[0], run[-1]
    numbers = f"{first.number}" if first is last else f"{first.number}-{last.number}"
    state = first.before if first.before == last.after else f"{first.before} -> {last.after}"
    return numbers, first.name, state, _words(run)


def _words(run: list[Step]) -> str:
    what, key, _, _ = deeds(run[0].events) if run[0].events else ("", "", 0, "")
    if not key:
        return one_line(run[0].did, 70)
    text = "".join(event.text for step in run for event in step.events if isinstance(event, PIECES))
    return f"{what} “{one_line(text, 50)}”"


# ---------------------------------------------------------------- moments


class _Growing:
    """A decoder that is fed up to a step. Going on costs only the new events; going back starts again."""

    def __init__(self, wire: str) -> None:
        self._wire = wire
        self._restart()

    def _restart(self) -> None:
        self._decoder = _decoder(self._wire)
        self._fed = 0
        self._announced: list[Part] = []
        self._failed = False

    def after(self, steps: Sequence[Step], number: int) -> Moment:
        if number < self._fed:
            self._restart()
        for step in steps[self._fed : number]:
            self._feed(step)
        self._fed = number
        so_far = self._so_far()
        if so_far is None:
            return Moment(self._decoder.state)
        over = self._failed or self._decoder.done
        views = tuple(_view(place, part, self._announced, over) for place, part in enumerate(so_far.message.parts))
        if self._failed:
            views = tuple(
                replace(view, problem=view.problem or NEVER_ENDED) if view.kind == "call" else view for view in views
            )
        return Moment(self._decoder.state, views, so_far.raw_stop, so_far.stop, so_far.usage)

    def _so_far(self) -> Response | None:
        """What has been folded. `partial` would make its calls unusable, as it must; here their own state is shown."""
        if self._decoder.done:
            return self._decoder.result()
        try:
            return self._decoder.build(finished=False)
        except (LessonError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def _feed(self, step: Step) -> None:
        try:
            self._decoder.feed(step.sse) if step.sse is not None else self._decoder.close()
        except LessonError:
            self._failed = True
        self._announced += [event.part for event in step.events if isinstance(event, PartDone)]


def _unusable(view: PartView) -> PartView:
    """A call of an answer that failed: it cannot be run, however whole it is."""
    return replace(view, problem=view.problem or NEVER_ENDED) if view.kind == "call" else view


def _view(place: int, part: Part, announced: list[Part], over: bool) -> PartView:
    whole = any(part is other or part == other for other in announced)
    status = "whole" if whole else "cut" if over else "growing"
    match part:
        case Text():
            return PartView(place, "text", status, part.text)
        case Reasoning():
            return PartView(place, "reasoning", status, part.text)
        case ToolCall():
            held = part.args is not None and not whole
            status = "held" if held and not over else status
            problem = part.args_error if whole and part.args is None else None
            return PartView(place, "call", status, part.raw_args, part.name or "(no name yet)", part.call_id, problem or "")
        case Opaque():
            return PartView(place, part.kind, status, "kept as it came")
        case _:
            return PartView(place, part.type, status, describe(part))


def _changes(old: Moment, new: Moment) -> Iterable[str]:
    if old.state != new.state:
        yield f"state: {old.state} -> {new.state}"
    earlier = {part.place: part for part in old.parts}
    for part in new.parts:
        before = earlier.get(part.place)
        if before is None:
            yield f"part {part.place} begins: {part.kind}{f' {part.name}' if part.name else ''}, {part.status}"
        elif len(part.text) > len(before.text):
            yield f"part {part.place}: {part.kind} +{len(part.text) - len(before.text)} characters"
        if before is not None and before.status != part.status:
            yield f"part {part.place}: {before.status} -> {part.status}"
    if old.raw_stop != new.raw_stop:
        yield f"stop: {new.raw_stop}"
    if new.usage is not None and old.usage != new.usage:
        yield f"usage: input {_count(new.usage.input_tokens)}, output {_count(new.usage.output_tokens)}"


def _count(tokens: int | None) -> str:
    return "not reported" if tokens is None else f"{tokens:,}"
