"""A decoder's state machine as a picture and as a table, both drawn from the decoder's own `TABLE`.

    diagram("anthropic-messages")                     the machine
    diagram("anthropic-messages", current="OPEN")     with one state marked
    diagram("anthropic-messages").mermaid             for a text cell
    diagram("anthropic-messages").ways_out("OPEN")    a table

Every state of the table is a box that lists the events it stays in; an arrow carries the events that lead on. One kind of
arrow is not in the table, because it is no event: the end of the HTTP body. It fails everywhere but in the states named in
`ENDS_WITH_BODY`. Nothing rests on colour: the way to DONE is a thick line, the ways to FAILED are dashed.

What this file does not do: it knows no vendor but for those states, and runs no decoder.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from lessonlib.lab.page import Table, element, html, plain
from lessonlib.wire import WIRES
from lessonlib.wire.base import Table as States

BODY_END = "end of body"
"""What an arrow says that no event makes."""

ENDS_WITH_BODY = {
    "openai-chat": ("ENDING",),
    "gemini-interactions": ("ENDING",),
    "gemini-generate-content": ("ENDING",),
}
"""The states in which the end of the body is a good end, by wire format; everywhere else it is a failure."""


@dataclass(frozen=True, slots=True)
class Edge:
    """All that leads from one state to another."""

    before: str
    after: str
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A state machine: text, HTML, mermaid and SVG. seen: the events of one stream; of the events that stay in a state, only
    those are named then."""

    wire: str
    table: States
    current: str | None = None
    seen: frozenset[str] | None = None

    @property
    def states(self) -> list[str]:
        """All states, the first one first and FAILED last."""
        names = dict.fromkeys([*self.table, *(after for row in self.table.values() for after in row.values())])
        return [*(name for name in names if name not in ("DONE", "FAILED")), "DONE", "FAILED"]

    def edges(self) -> list[Edge]:
        """The arrows, those that stay in a state included, in the order of the table."""
        found: dict[tuple[str, str], list[str]] = {}
        for before, row in self.table.items():
            for event, after in row.items():
                found.setdefault((before, after), []).append(event)
            if before != "DONE":
                good = before in ENDS_WITH_BODY.get(self.wire, ())
                found.setdefault((before, "DONE" if good else "FAILED"), []).append(BODY_END)
        order = {name: place for place, name in enumerate(self.states)}
        pairs = sorted(found.items(), key=lambda item: (order[item[0][0]], order[item[0][1]]))
        return [Edge(before, after, tuple(events)) for (before, after), events in pairs]

    def ways_out(self, state: str) -> Table:
        """Every way out of a state, with what it means."""
        rows = [(event, edge.after, _meaning(edge.after)) for edge in self.edges() if edge.before == state != edge.after
                for event in edge.events]  # fmt: skip
        return Table(("on", "leads to", "which is"), tuple(rows), title=f"{self.wire}: ways out of {state}")

    def as_table(self, width: int = 76) -> Table:
        """The machine as a table of arrows, the current state's marked."""
        edges = self.edges()
        rows = tuple((edge.before, edge.after, _listed(self._named(edge), len(edge.events), width)) for edge in edges)
        marks = frozenset(place for place, edge in enumerate(edges) if edge.before == self.current)
        return Table(("from", "to", "on"), rows, title=self._title(), marks=marks)

    # ------------------------------------------------------------ forms

    @property
    def mermaid(self) -> str:
        """A mermaid state diagram, for a text cell (JupyterLab and GitHub draw it)."""
        lines = ["stateDiagram-v2", "    direction LR", f"    [*] --> {self.states[0]}"]
        for edge in self.edges():
            label = _listed(self._named(edge), len(edge.events), 60).replace(":", "#58;")
            lines.append(f"    {edge.before} --> {edge.after}: {label}")
        if self.current is not None:
            lines += ["    classDef now stroke-width:4px", f"    class {self.current} now"]
        return "\n".join(lines)

    def svg(self) -> str:
        """The picture as an SVG document."""
        return _Drawing(self).svg()

    @property
    def alt(self) -> str:
        """What the picture shows, in words."""
        good = [
            f"{edge.before} on {' or '.join(edge.events)}" for edge in self.edges() if edge.after == "DONE" != edge.before
        ]
        now = f" The current state is {self.current}." if self.current else ""
        ways = ", or from ".join(good)
        return f"{self.wire}: DONE is reached from {ways}; every other end of the stream leads to FAILED.{now}"

    def __repr__(self) -> str:
        return repr(self.as_table())

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg().encode("utf-8")).decode("ascii")
        picture = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(self.alt)}" style="max-width:100%">'
        table = element("details", element("summary", "The same as a table") + self.as_table(10_000)._repr_html_())
        return element("figure", picture + element("figcaption", html(self.alt)), style="margin:0") + table

    def _title(self) -> str:
        return f"{self.wire}, from the decoder's own table" + (f"; now in {self.current}" if self.current else "")

    def _named(self, edge: Edge) -> list[str]:
        """The events of an arrow that are named: all, or of those that stay in a state the ones that were seen."""
        if self.seen is None or edge.before != edge.after:
            return list(edge.events)
        return [event for event in edge.events if event in self.seen]


def diagram(wire: str, current: str | None = None) -> Diagram:
    """The state machine of a wire format. Raises KeyError if there is no such wire format."""
    kind = WIRES[wire]
    return Diagram(wire, type(kind("model", api_key="", base_url=kind.default_base_url).decoder()).TABLE, current)


def _meaning(state: str) -> str:
    return {"DONE": "the good end", "FAILED": "no answer"}.get(state, "not the end yet")


def _listed(names: Sequence[str], count: int, width: int) -> str:
    """Names on one line, as many as there is room for, with how many there are in all."""
    whole = ", ".join(names)
    if len(whole) <= width and len(names) == count:
        return whole
    if not names:
        return f"({count} that did not come here)"
    kept: list[str] = []
    for name in names:
        if len(", ".join([*kept, name])) > width - 16:
            break
        kept.append(name)
    return ", ".join([*kept, f"… ({count} in all)"])


# ---------------------------------------------------------------- the picture

_CHAR, _LINE, _PAD = 6.3, 15, 10
_BOW, _MOST_LINES = 24, 8


@dataclass(slots=True)
class _Box:
    name: str
    x: float
    width: float
    lines: list[str]


class _Drawing:
    """Boxes in a row, FAILED as a bar below them. Sizes follow from the texts, so the same table gives the same bytes."""

    def __init__(self, machine: Diagram) -> None:
        self.machine = machine
        self.edges = machine.edges()
        self.prefix = _prefix([event for edge in self.edges for event in edge.events])
        self.boxes = self._boxes()
        self.bows = self._bows()
        self.top = _PAD + _BOW * len(self.bows) + (6 if self.bows else 0)
        self.height = max(2 + len(box.lines) for box in self.boxes) * _LINE + 2 * _PAD
        self.failed_top = self.top + self.height + 26 + _LINE * max(map(len, self._failures().values()), default=0)
        self.width = self.boxes[-1].x + self.boxes[-1].width + _PAD

    def svg(self) -> str:
        body = [
            *map(self._box, self.boxes),
            *self._straights(),
            *map(self._bow, self.bows, range(len(self.bows))),
            *self._bar(),
        ]
        width, height = round(self.width), round(self.failed_top + 34 + _PAD)
        if self.prefix:
            body.append(_text(_PAD, height + 10, f"where a name begins with a dot, put {self.prefix[:-1]} before it"))
            height += 20
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">'
            f"<title>{escape(plain(self.machine.alt))}</title>{_MARKERS}"
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>{"".join(body)}</svg>'
        )

    # ------------------------------------------------------------ places

    def _boxes(self) -> list[_Box]:
        names = [name for name in self.machine.states if name != "FAILED"]
        boxes: list[_Box] = []
        x = float(_PAD)
        for place, name in enumerate(names):
            lines = self._lines(name, name)
            width = max([len(line) for line in lines] + [16]) * _CHAR + 2 * _PAD
            width = max([width, *(len(label) * _CHAR + 2 * _PAD for label in self._failures().get(name, []))])
            boxes.append(_Box(name, x, width, lines))
            following = names[place + 1] if place + 1 < len(names) else None
            gap = max((len(line) for line in self._lines(name, following)), default=0) if following else 0
            x += width + gap * _CHAR + 34
        return boxes

    def _lines(self, before: str, after: str | None) -> list[str]:
        """The event names of one arrow, one per line, the many shortened."""
        edge = next((edge for edge in self.edges if (edge.before, edge.after) == (before, after)), None)
        if edge is None:
            return []
        names = [self._short(name) for name in self.machine._named(edge)]
        if len(edge.events) == len(names) <= _MOST_LINES or not names:
            return names
        kept = names[: _MOST_LINES - 1]
        return [*kept, f"… {len(edge.events) - len(kept)} more"]

    def _short(self, event: str) -> str:
        return "." + event.removeprefix(self.prefix) if self.prefix and event.startswith(self.prefix) else event

    def _failures(self) -> dict[str, list[str]]:
        return {edge.before: self._lines(edge.before, "FAILED") for edge in self.edges if edge.after == "FAILED"}

    # ------------------------------------------------------------ shapes

    def _box(self, box: _Box) -> str:
        now, done = box.name == self.machine.current, box.name == "DONE"
        fill, stroke = ("#fff3c4", 4) if now else ("#eaf5ec", 3) if done else ("#f4f4f4", 1.5)
        words = f"{box.name}  ◀ now" if now else box.name
        shape = (
            f'<rect x="{box.x:.1f}" y="{self.top}" width="{box.width:.1f}" height="{self.height}" rx="6" fill="{fill}" '
            f'stroke="#222222" stroke-width="{stroke}"/>'
        )
        heading = _text(box.x + _PAD, self.top + 20, words, size=13, bold=True)
        lines = [_text(box.x + _PAD, self.top + 20 + (number + 1) * _LINE, line) for number, line in enumerate(box.lines)]
        return shape + heading + "".join(lines)

    def _bows(self) -> list[Edge]:
        """The arrows that pass over other boxes, the longest first."""
        places = {box.name: number for number, box in enumerate(self.boxes)}
        lengths = [
            (places[edge.after] - places[edge.before], edge)
            for edge in self.edges
            if edge.after != "FAILED" and places[edge.after] - places[edge.before] not in (0, 1)
        ]
        return [edge for _, edge in sorted(lengths, key=lambda pair: -abs(pair[0]))]

    def _straights(self) -> Iterable[str]:
        """The arrows from each box to the next."""
        for box, target in pairwise(self.boxes):
            lines = self._lines(box.name, target.name)
            if lines:
                yield self._straight(box, target, lines)

    def _straight(self, box: _Box, target: _Box, lines: list[str]) -> str:
        x1, x2 = box.x + box.width, target.x
        y = min(max(self.top + self.height / 2, self.top + len(lines) * _LINE + 6), self.top + self.height - 8)
        labels = "".join(
            _text((x1 + x2 - 8) / 2, y - 8 - (len(lines) - 1 - number) * _LINE, line, anchor="middle")
            for number, line in enumerate(lines)
        )
        return _arrow(f"M{x1:.1f} {y:.1f} L{x2 - 3:.1f} {y:.1f}", good=target.name == "DONE") + labels

    def _bow(self, edge: Edge, number: int) -> str:
        box, target = (next(box for box in self.boxes if box.name == name) for name in (edge.before, edge.after))
        x1, x2 = box.x + box.width / 2, target.x + 16 + 18 * number
        y = _PAD + _BOW * number + 14
        path = f"M{x1:.1f} {self.top} L{x1:.1f} {y} L{x2:.1f} {y} L{x2:.1f} {self.top - 3}"
        label = _text(x1 + 10, y - 5, ", ".join(map(self._short, edge.events)))
        return _arrow(path, good=target.name == "DONE") + label

    def _bar(self) -> Iterable[str]:
        width = self.width - 2 * _PAD
        yield (
            f'<rect x="{_PAD}" y="{self.failed_top}" width="{width:.1f}" height="34" rx="6" fill="#fbecec" '
            f'stroke="#222222" stroke-width="{4 if self.machine.current == "FAILED" else 1.5}" stroke-dasharray="6 3"/>'
        )
        words = "FAILED  ◀ now" if self.machine.current == "FAILED" else "FAILED"
        yield _text(_PAD + 10, self.failed_top + 22, f"{words}: no answer, and it stays so", size=12, bold=True)
        bottom = self.top + self.height
        for box in self.boxes:
            lines = self._failures().get(box.name)
            if lines:
                x = box.x + 8
                yield _arrow(f"M{x:.1f} {bottom} L{x:.1f} {self.failed_top - 3}", bad=True)
                yield "".join(
                    _text(x + 8, bottom + 16 + number * _LINE, line) for number, line in enumerate(lines)
                )  # fmt: skip


_MARKERS = (
    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto" '
    'markerUnits="userSpaceOnUse"><path d="M0 0 L8 4 L0 8 z" fill="#222222"/></marker></defs>'
)


def _arrow(path: str, *, good: bool = False, bad: bool = False) -> str:
    colour, width, dash = (
        ("#00662c", 4, "") if good else ("#7a1010", 1.6, ' stroke-dasharray="5 3"') if bad else ("#222222", 1.6, "")
    )
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash} marker-end="url(#a)"/>'


def _text(x: float, y: float, text: str, *, size: int = 10, bold: bool = False, anchor: str = "start") -> str:
    weight = ' font-weight="bold"' if bold else ""
    middle = f' text-anchor="{anchor}"' if anchor != "start" else ""
    font = f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{size}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {font} fill="#111111"{weight}{middle}>{escape(plain(text))}</text>'


def _prefix(events: list[str]) -> str:
    """The first word with its dot, if most names begin with it: said once, not fifty times."""
    firsts = [event.partition(".")[0] + "." for event in events if "." in event]
    if not firsts:
        return ""
    common = max(dict.fromkeys(firsts), key=firsts.count)
    return common if firsts.count(common) > len(events) / 2 else ""
