"""The table, and the ratios with their bounds. Everything is made of the rows of results.json, nothing is measured here.

A bound is a promise (`at most` or `at least` a number); docs/benchmarks.md says what became of each one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.streams import WRITERS
from benchmarks.timing import Row, exponent, ratio

WIRE_NAMES = {
    "anthropic-messages": "Messages",
    "openai-responses": "Responses",
    "openai-chat": "Chat",
    "gemini-interactions": "Interactions",
    "gemini-generate-content": "generateContent",
}
RAW = {"anthropic-messages": 7, "openai-responses": 20, "openai-chat": 20, "gemini-interactions": 100}
HELPER = {"anthropic-messages": 20, "openai-responses": 35, "openai-chat": 50}
ALONE, CLIENT, ASYNC = "lessonlib, decoder alone", "lessonlib", "lessonlib, async"


@dataclass(frozen=True)
class Ratio:
    """One figure. bound: what it must not pass; None where nothing is promised."""

    name: str
    wire: str
    value: float
    bound: float | None = None
    at_least: bool = False

    @property
    def held(self) -> bool | None:
        if self.bound is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def rows_of(results: dict[str, Any]) -> list[Row]:
    """The rows of a results.json."""
    return [Row(**row) for row in results["rows"]]


class Rows(list[Row]):
    """Rows that can be asked for."""

    def pick(self, suite: str, **wanted: Any) -> Rows:
        return Rows(
            row for row in self if row.suite == suite and all(getattr(row, name) == value for name, value in wanted.items())
        )

    def values(self, suite: str, **wanted: Any) -> list[float]:
        found = self.pick(suite, **wanted)
        return found[0].values if found else []


# ---------------------------------------------------------------- ratios


def ratios(rows: Sequence[Row]) -> list[Ratio]:
    """Every ratio that the rows allow."""
    given = Rows(rows)
    makers = (_floors, _packages, _colours, _cuts, _layers, _growths, _peaks, _imports)
    return [each for make in makers for each in make(given)]


def _between(rows: Rows, suite: str, ours: str, others: str, **wanted: Any) -> float | None:
    a, b = rows.values(suite, contestant=ours, **wanted), rows.values(suite, contestant=others, **wanted)
    return ratio(a, b) if a and b else None


def _ratio(name: str, wire: str, value: float | None, bound: float | None = None, at_least: bool = False) -> Iterator[Ratio]:
    if value is not None:
        yield Ratio(name, WIRE_NAMES.get(wire, wire), value, bound, at_least)


def _floors(rows: Rows) -> Iterator[Ratio]:
    for case in ("text", "thinking and 8 calls", "arguments", "one event"):
        bound = 2.5 if case == "text" else None
        for ours in (ALONE, CLIENT):
            for wire in WRITERS:
                value = _between(rows, "reading", ours, "floor", wire=wire, case=case)
                yield from _ratio(f"{ours} : floor, {case}", wire, value, bound)


def _packages(rows: Rows) -> Iterator[Ratio]:
    for kind, bounds in (("raw", RAW), ("helper", HELPER)):
        for wire in WRITERS:
            suite, theirs = _package(rows, wire, kind)
            value = _between(rows, suite, theirs, CLIENT, wire=wire, case="text", chunk=1400)
            yield from _ratio(f"package, {kind} : lessonlib, text", wire, value, bounds.get(wire), at_least=True)


def _package(rows: Rows, wire: str, kind: str) -> tuple[str, str]:
    """The suite in which the vendor's package read the text, and its name there."""
    for suite in ("reading", "cuts"):
        for row in rows.pick(suite, wire=wire, case="text"):
            if row.contestant.endswith(kind):
                return suite, row.contestant
    return "", ""


def _colours(rows: Rows) -> Iterator[Ratio]:
    for wire in WRITERS:
        value = _between(rows, "reading", ASYNC, CLIENT, wire=wire, case="text")
        yield from _ratio("async : sync, text", wire, value, 1.3)


def _cuts(rows: Rows) -> Iterator[Ratio]:
    for ours in (ALONE, CLIENT):
        for wire in WRITERS:
            small, usual = (rows.values("cuts", wire=wire, contestant=ours, chunk=size) for size in (64, 1400))
            value = median(small) / median(usual) if small and usual else None
            yield from _ratio(f"{ours}: reads of 64 bytes : 1.4 KB", wire, value, 3.0)


def _layers(rows: Rows) -> Iterator[Ratio]:
    for wire in WRITERS:
        found = rows.pick("policies", wire=wire)
        if len(found) > 1:
            most = found[-1]
            value = median((a - b) / most.size for a, b in zip(most.values, found[0].values, strict=True))
            yield from _ratio("one layer of policy, µs per event", wire, value, 0.5)


def _growths(rows: Rows) -> Iterator[Ratio]:
    for suite in ("growth", "encode", "tool steps"):
        keys = dict.fromkeys((row.case, row.contestant, row.wire) for row in rows.pick(suite))
        for case, contestant, wire in keys:
            found = rows.pick(suite, case=case, contestant=contestant, wire=wire)
            value = exponent([row.size for row in found], [median(row.values) for row in found]) if len(found) > 1 else None
            what = case if suite == "growth" else suite
            bound = 1.05 if contestant == CLIENT else None
            yield from _ratio(f"growth of {what}, exponent: {contestant}", wire, value, bound)


def _peaks(rows: Rows) -> Iterator[Ratio]:
    for row in rows.pick("memory"):
        bound = 3.0 if row.contestant == CLIENT else None
        yield from _ratio(f"peak of memory : the answer, {row.case}: {row.contestant}", row.wire, median(row.values), bound)


def _imports(rows: Rows) -> Iterator[Ratio]:
    yield from _ratio("import lessonlib : import openai", "", _between(rows, "import", "lessonlib", "openai"), 1 / 3)
    clients = _between(rows, "import", "lessonlib and a client", "openai and a client")
    yield from _ratio("import and a client, lessonlib : openai", "", clients)


# ---------------------------------------------------------------- tables


def markdown(results: dict[str, Any]) -> str:
    """The whole report."""
    rows = rows_of(results)
    machine = " · ".join(f"{name} {value}" for name, value in results["machine"].items())
    short = [suite for suite, mode in results["modes"].items() if mode != "full"]
    note = f" Shortened streams in: {', '.join(short)}." if short else ""
    parts = [f"Machine: {machine}.{note}", "### Ratios", ratio_table(ratios(rows))]
    for suite in dict.fromkeys(row.suite for row in rows):
        parts += [f"### {TITLES.get(suite, suite)}", row_table([row for row in rows if row.suite == suite])]
    return "\n\n".join(parts) + "\n"


TITLES = {
    "reading": "Reading, in memory, reads of 1.4 KB",
    "recorded": "The short streams of testdata/",
    "cuts": "The same text, cut by the network",
    "helpers": "Accumulating helpers while arguments grow",
    "growth": "Growth",
    "policies": "Layers of policy (`size` is how many)",
    "encode": "Encoding a history of n messages",
    "tool steps": "One step of run_tools over a history of n messages",
    "import": "Importing",
    "installed": "Installed, with all requirements",
    "memory": "Peak of memory as a multiple of the answer",
    "explain": "lesson explain on a large capture",
    "loopback": "Through loopback sockets",
    "first event": "From the call to the first event",
    "concurrency": "Many streams at once: throughput",
    "slowest stream": "Many streams at once: the slowest one",
}


def ratio_table(given: Sequence[Ratio]) -> str:
    """One line for each figure, one column for each wire."""
    wires = list(dict.fromkeys(each.wire for each in given))
    columns = [wire for wire in WIRE_NAMES.values() if wire in wires]
    lines = []
    for name in dict.fromkeys(each.name for each in given):
        found = {each.wire: each for each in given if each.name == name}
        some = next((each for each in found.values() if each.bound is not None), None)
        bounds = {each.bound for each in found.values() if each.bound is not None}
        word = "" if some is None else "at least " if some.at_least else "at most "
        bound = word + ", ".join(f"{each:.3g}" for each in sorted(bounds))
        cells = [_ratio_cell(found.get(wire)) for wire in columns]
        if "" in found:
            cells[:1] = [_ratio_cell(found[""])]
        lines.append([name, *cells, bound])
    return _table(["", *columns, "bound"], lines)


def _ratio_cell(each: Ratio | None) -> str:
    if each is None:
        return ""
    text = f"{each.value:.3g}" if each.value < 100 else f"{each.value:.0f}"
    return f"**{text}** (missed)" if each.held is False else text


def row_table(given: Sequence[Row]) -> str:
    """Median, with the lowest and the highest value; one column for each wire."""
    wires = list(dict.fromkeys(row.wire for row in given))
    named = {(row.case, row.size, row.chunk, row.contestant, row.unit): None for row in given}
    lines = []
    for key in named:
        case, size, chunk, contestant, unit = key
        cells = []
        for wire in wires:
            row = next((r for r in given if (r.case, r.size, r.chunk, r.contestant, r.unit) == key and r.wire == wire), None)
            cells.append(_cell(row.values) if row is not None else "")
        lines.append([contestant, case, f"{size:,.0f}" if size else "", f"{chunk:,}" if chunk else "", unit, *cells])
    return _table(["", "case", "size", "read", "unit", *(WIRE_NAMES.get(wire, "value") for wire in wires)], lines)


def _cell(values: Sequence[float]) -> str:
    middle = _number(median(values))
    return middle if len(values) == 1 else f"{middle} ({_number(min(values))}-{_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    wanted = [place for place in range(len(head)) if place == 0 or any(line[place] for line in lines)]
    shown = [[row[place] for place in wanted] for row in (head, ["---"] * len(head), *lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in shown)
