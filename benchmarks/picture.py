"""The drawing: what one event costs each reader, per wire, on a logarithmic scale. In the style of the lessons' pictures.

Readable without colour: every kind of reader has its own marker, and the spread is a line through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.report import WIRE_NAMES, Rows
from benchmarks.timing import Row
from lessonlib.lab.page import Table
from lessonlib.lab.style import BLUE, GREEN, INK, ORANGE, PALE, RED, Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (
    ("floor", "|", PALE, "floor: split and parse"),
    ("lessonlib, decoder alone", "o", BLUE, "lessonlib, decoder alone"),
    ("lessonlib", "s", BLUE, "lessonlib"),
    ("lessonlib, async", "D", GREEN, "lessonlib, async"),
    ("httpx-sse and json", "x", INK, "httpx-sse and json (no answer put together)"),
    ("raw", "^", ORANGE, "the vendor's package, raw events"),
    ("helper", "v", RED, "the vendor's package, helper"),
)


def picture(rows: Sequence[Row]) -> Picture:
    """The drawing with its finding and its data."""
    given = Rows(rows)
    wires = [wire for wire in WIRE_NAMES if given.pick("reading", case="text", wire=wire)]
    points = {(wire, kind): _values(given, wire, kind) for wire in wires for kind, *_ in KINDS}
    lines = [
        (WIRE_NAMES[wire], label, f"{median(values):.2f}")
        for wire in wires
        for kind, _, _, label in KINDS
        if (values := points[wire, kind])
    ]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for kind, marker, colour, label in KINDS:
            for place, wire in enumerate(wires):
                if values := points[wire, kind]:
                    axes.plot([min(values), max(values)], [place, place], color=colour, linewidth=1.2)
                    first = label if all(not points[before, kind] for before in wires[:place]) else None
                    size = 13 if marker == "|" else 6.5
                    axes.plot(
                        median(values), place, marker, color=colour, markersize=size, label=first, markerfacecolor="none"
                    )
        axes.set_xscale("log")
        axes.set_yticks(range(len(wires)), [WIRE_NAMES[wire] for wire in wires])
        axes.set_ylim(len(wires) - 0.5, -0.5)
        axes.set_xlabel("µs of CPU per event (logarithmic)")
        axes.set_title("Reading one event of a streamed text")
        axes.grid(axis="x", color=PALE, linewidth=0.4, alpha=0.6)
        figure.legend(loc="outside lower left", ncols=2, fontsize=8.5)

    worst = max((float(line[2]) for line in lines if line[1] == "lessonlib"), default=0.0)
    alt = f"lessonlib reads an event of a streamed text in at most {worst:.1f} µs of CPU on every wire."
    return Picture("What one event costs", alt, Table(("wire", "reader", "µs per event"), tuple(lines)), draw, (7.6, 4.4))


def _values(given: Rows, wire: str, kind: str) -> list[float]:
    for suite in ("reading", "cuts"):  # what is slow reads the shorter stream only
        for row in given.pick(suite, case="text", wire=wire, chunk=1400):
            if row.contestant == kind or row.contestant.endswith(f", {kind}"):
                return row.values
    return []
