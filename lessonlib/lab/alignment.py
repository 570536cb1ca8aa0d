"""Several vendors' streams of the same story side by side: begin, think, say, call, pieces, why it stopped, usage, end.

    lanes("tool_call")                                       that fixture of the three vendors' present APIs
    lanes("openai-chat/tool_call", "captures/mine.sse")      any streams
    lanes("tool_call").picture()                             the same as a drawing

Which event belongs to which moment of the story is not listed anywhere. It is found by comparing what a client would have
before and after each event (`Stepper.moment`): a part that is new has begun, a text that is longer has got a piece. Events
that change nothing to see stand in a row of their own; an empty place shows where a vendor says nothing.

What this file does not do: it aligns by what happens, never by time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lessonlib.lab.course import WIRE_OF
from lessonlib.lab.page import Table
from lessonlib.lab.source import Source
from lessonlib.lab.stepper import END, Moment, PartView, Step, Stepper
from lessonlib.types import StopReason

LONGEST = 500
"""Steps that a stream may have here: every one of them is compared with the one before."""

GAP = "-"
NOTHING = "nothing to see"

VERBS = {"reasoning": "thinks", "text": "says", "call": "calls"}
"""What the model does in a part, in a word. Other kinds of part keep the wire's own word."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One moment of the story in one lane: its row, and the steps that belong to it."""

    row: str
    steps: tuple[Step, ...]

    @property
    def words(self) -> str:
        """The events by name, with how often and where they came."""
        names: dict[str, list[int]] = {}
        for step in self.steps:
            names.setdefault(step.name, []).append(step.number)
        many = {name: f" ×{len(places)}" if len(places) > 1 else "" for name, places in names.items()}
        return ", ".join(f"{name}{many[name]} ({_range(places)})" for name, places in names.items())


@dataclass(frozen=True, slots=True)
class Lane:
    """One stream as a story: row -> beat."""

    name: str
    wire: str
    beats: dict[str, Beat]


class Lanes:
    """Streams side by side, one row per moment of the story."""

    def __init__(self, steppers: Iterable[Stepper]) -> None:
        self.lanes = [_lane(stepper) for stepper in steppers]
        self.rows = _merged([list(lane.beats) for lane in self.lanes])

    def table(self) -> Table:
        """Rows are the moments of the story, columns the streams."""
        rows = tuple((row, *(_cell(lane, row) for lane in self.lanes)) for row in self.rows)
        return Table(("moment", *(lane.wire for lane in self.lanes)), rows)

    def gaps(self) -> list[tuple[str, str]]:
        """Where a vendor says nothing: (moment, wire format)."""
        return [(row, lane.wire) for row in self.rows for lane in self.lanes if row not in lane.beats]

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def lanes(*sources: Source) -> Lanes:
    """The streams side by side. One name without a slash is a case: its fixtures of the three present APIs. Raises
    ValueError for a stream of more than LONGEST steps."""
    if len(sources) == 1 and isinstance(sources[0], str) and "/" not in sources[0]:
        sources = tuple(f"{wire}/{sources[0]}" for wire in WIRE_OF.values())
    steppers = [source if isinstance(source, Stepper) else Stepper(source) for source in sources]
    for stepper in steppers:
        if len(stepper) > LONGEST:
            raise ValueError(f"{stepper.name} has {len(stepper):,} steps; lanes are for stories of at most {LONGEST}")
    return Lanes(steppers)


# ---------------------------------------------------------------- one lane


def _lane(stepper: Stepper) -> Lane:
    beats: dict[str, list[Step]] = {}
    before = Moment(stepper.steps[0].before)
    for step in stepper.steps:
        after = stepper.moment(step.number)
        rows = list(_rows(before, after, step))
        if not rows and step.name != END:
            rows = [NOTHING]
        for row in rows:
            beats.setdefault(row, []).append(step)
        before = after
    return Lane(stepper.name, stepper.wire, {row: Beat(row, tuple(steps)) for row, steps in beats.items()})


def _rows(before: Moment, after: Moment, step: Step) -> Iterator[str]:
    """The rows of the story to which a step belongs."""
    if step.number == 1:
        yield "begins"
    yield from _part_rows(before, after)
    if after.raw_stop != before.raw_stop and after.stop is not StopReason.OTHER:
        yield "why it stopped"
    if after.usage is not None and after.usage != before.usage:
        yield "usage"
    if after.state == "DONE" != before.state:
        yield "ends"
    if step.error is not None:
        yield "fails"


def _part_rows(before: Moment, after: Moment) -> Iterator[str]:
    earlier = {part.place: part for part in before.parts}
    for part in after.parts:
        name, old = _name(part, after.parts), earlier.get(part.place)
        if old is None:
            yield f"{name}: begins"
        if len(part.text) > len(old.text if old is not None else "") and part.status != "cut":
            yield f"{name}: a piece"
        if part.status in ("whole", "held") and (old is None or old.status == "growing"):
            yield f"{name}: is whole"


def _name(part: PartView, parts: tuple[PartView, ...]) -> str:
    """What the model does in this part, numbered if it does so more than once."""
    alike = [other.place for other in parts if other.kind == part.kind]
    number = f" {alike.index(part.place) + 1}" if part.kind == "call" or alike.index(part.place) else ""
    return VERBS.get(part.kind, part.kind) + number


# ---------------------------------------------------------------- all lanes


def _merged(orders: list[list[str]]) -> list[str]:
    """One order for all rows: a row that a lane does not know comes where another lane has it; what changes nothing and the
    ends stand last."""
    merged: list[str] = []
    for order in orders:
        place = 0
        for row in order:
            if row in merged:
                place = merged.index(row) + 1
            else:
                merged.insert(place, row)
                place += 1
    last = ("why it stopped", "usage", "ends", "fails", NOTHING)
    return [row for row in merged if row not in last] + [row for row in last if row in merged]


def _cell(lane: Lane, row: str) -> str:
    beat = lane.beats.get(row)
    if beat is None:
        return GAP
    if row == NOTHING and len(beat.steps) > 2:
        return f"{len(beat.steps)} events ({_range([step.number for step in beat.steps])})"
    return beat.words


def _range(places: list[int]) -> str:
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"{places[0]}-{places[-1]}"
    return ", ".join(map(str, places))
