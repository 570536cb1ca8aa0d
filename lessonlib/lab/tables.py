"""Comparison tables, built from data: every cell says what a vendor does and where it can be seen.

`overview()` is the one-page comparison of the three vendors. `overview("openai")` leaves one vendor's column empty, for the
reader to fill. Cells come from `data/course/overview.json`; tests hold them against fixtures and requests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources

VENDORS = ("openai", "anthropic", "gemini")
TITLES = {"openai": "OpenAI Responses", "anthropic": "Anthropic Messages", "gemini": "Gemini Interactions"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a header; shown as text in a terminal and as HTML in a notebook."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.header))]
        texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([texts[0], "  ".join("-" * width for width in widths), *texts[1:]])

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in self.header)
        body = "".join("<tr>" + "".join(_cell(place, cell) for place, cell in enumerate(row)) + "</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(place: int, text: str) -> str:
    return f'<th scope="row">{escape(text)}</th>' if place == 0 else f"<td>{escape(text)}</td>"


@cache
def _overview() -> list[dict[str, str]]:
    file = resources.files("lessonlib").joinpath("data/course/overview.json")
    rows: list[dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return rows


def overview(*hidden: str, rows: tuple[str, ...] = ()) -> Table:
    """The three vendors side by side. hidden: vendors whose column is left empty. rows: only these rows, by their name."""
    wanted = [row for row in _overview() if not rows or row["what"] in rows]
    cells = tuple((row["what"], *("" if vendor in hidden else row[vendor] for vendor in VENDORS)) for row in wanted)
    return Table(("", *(TITLES[vendor] for vendor in VENDORS)), cells)
