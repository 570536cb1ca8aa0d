"""Text from elsewhere on a page: made harmless, escaped, and cut to a width. All of lessonlib.lab shows texts through here.

Bytes that came over a wire may hold markup, terminal sequences and characters that reverse the reading direction; in a
notebook they must be shown, never obeyed. `html` is for `_repr_html_`, `plain` for `__repr__`.

What this file does not do: it knows nothing of streams or lessons.
"""

from __future__ import annotations

import html as escaping
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lessonlib.explain.render import harmless

WIDTH = 110
"""Characters of a line in an output; JupyterLab shows so many at laptop width."""


def plain(text: str, width: int | None = None) -> str:
    """The text on one line, harmless, cut in the middle to `width` characters."""
    one = harmless(text).replace("\n", "⏎").replace("\t", " ")
    if width is None or len(one) <= width:
        return one
    tail = min(width // 4, 24)
    return f"{one[: width - tail - 1]}…{one[-tail:]}"


def html(text: str, width: int | None = None) -> str:
    """The same as HTML."""
    return escaping.escape(plain(text, width))


def element(name: str, content: str, **attributes: str) -> str:
    """An element around HTML that is safe already. Attribute names are written with `_` for `-` and for a last keyword."""
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaping.escape(harmless(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{listed}>{content}</{name}>"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a header; text in a terminal, HTML in a notebook. `title` stands above it, `notes` below.

    marks: rows that are marked, by their number; the text form shows `>` before them, the HTML form bold. coded: cells are
    our own words, in which backticks mean code; never for what came over a wire."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    marks: frozenset[int] = frozenset()
    coded: bool = False

    def column(self, name: str) -> list[str]:
        """The cells below one heading. Raises ValueError if there is no such heading."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        if self.title:
            yield plain(self.title)
        lead = [("> " if number in self.marks else "  ") if self.marks else "" for number in range(len(self.rows))]
        cells = [[plain(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.header))]
        blank = "  " if self.marks else ""
        yield (blank + joined(cells[0], widths)).rstrip()
        yield blank + "  ".join("-" * width for width in widths)
        for mark, row in zip(lead, cells[1:], strict=True):
            yield (mark + joined(row, widths)).rstrip()
        yield from (plain(note) for note in self.notes)

    def _repr_html_(self) -> str:
        head = "".join(element("th", html(cell), scope="col", style="text-align:left") for cell in self.header)
        body = "".join(element("tr", self._row(number, row)) for number, row in enumerate(self.rows))
        caption = element("caption", html(self.title), style="text-align:left") if self.title else ""
        notes = "".join(element("p", element("small", html(note))) for note in self.notes)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _row(self, number: int, row: Sequence[str]) -> str:
        mark = number in self.marks
        shown = [re.sub("`([^`]+)`", r"<code>\1</code>", html(cell)) if self.coded else html(cell) for cell in row]
        first, *rest = (element("mark", cell) if mark and cell else cell for cell in shown)
        cells = "".join(element("td", cell, style="text-align:left") for cell in rest)
        return element("th", first, scope="row", style="text-align:left") + cells


def joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells of one row, each padded to its column's width."""
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
