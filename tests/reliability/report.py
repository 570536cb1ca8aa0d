"""The tables of docs/reliability.md, written from counts between two marks; the words around them are written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.reliability.limits import REASONS
from tests.reliability.mutations import FAULTS, WHOLE_FAULTS

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- counted: begin -->\n", "<!-- counted: end -->\n"
VERDICTS = ("right", "corrected", "error", "marked")

Rows = Mapping[str, Mapping[str, int]]


def tables(rows: Rows) -> str:
    """The counted part of the page."""
    return "\n".join(_lines(rows)) + "\n"


def _lines(rows: Rows) -> Iterator[str]:
    total = sum(count for row in rows.values() for count in row.values())
    yield f"{total:,} inputs: 0 exceptions of another kind, 0 wrong successes."
    for form, faults, title in (
        ("stream", FAULTS, "Streams"), ("whole", WHOLE_FAULTS, "Whole answers"), ("error", WHOLE_FAULTS, "Error bodies"),
    ):  # fmt: skip
        yield f"\n### {title}\n"
        yield "| wire format | fault | tried | right | corrected | error | marked | not noticed |"
        yield "|---|---|--:|--:|--:|--:|--:|---|"
        for name, row in rows.items():
            kind, wire, fault = name.split(" ")
            if kind == form and fault in faults:
                counts = " | ".join(f"{row.get(verdict, 0):,}" for verdict in VERDICTS)
                missed = ", ".join(f"{row[reason]:,} {reason}" for reason in REASONS if reason in row)
                yield f"| {wire} | {fault} | {sum(row.values()):,} | {counts} | {missed or '–'} |"
    yield "\n### Why something is not noticed\n"
    yield from (f"* **{reason}**: {words}" for reason, words in REASONS.items())


def write(rows: Rows) -> None:
    """Puts the counts into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{tables(rows)}\n{END}{after}", encoding="utf-8")


def counted() -> str:
    """What the page says now."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip("\n") + "\n"
