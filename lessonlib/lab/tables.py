"""Comparison tables, built from data: every cell says what a vendor does and where it can be seen.

`overview()` is the one-page comparison of the three vendors. `overview("openai")` leaves one vendor's column empty, for the
reader to fill. Cells come from `data/course/overview.json`; tests hold them against fixtures and requests.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from lessonlib.lab.page import Table

VENDORS = ("openai", "anthropic", "gemini")
TITLES = {"openai": "OpenAI Responses", "anthropic": "Anthropic Messages", "gemini": "Gemini Interactions"}


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
