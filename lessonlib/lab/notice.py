"""What a check, a break or a question answers, once: as plain text for a terminal and as HTML for a notebook.

    Notice(title("Not yet"), paragraph("..."), folded("More", code("...")))

Every text is escaped in the HTML, where `code` in backticks is set as code and a *word* between asterisks is emphasised.
Nothing depends on colour, and folded content is a plain <details>, which a keyboard opens.

What this file does not do: no widgets, no styles beyond what makes code readable, no Markdown.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

WIDTH = 100
"""Columns of the plain text."""

CODE = "font-family:var(--jp-code-font-family,monospace)"
LIST = "list-style:none;white-space:pre-wrap"
"""Code in the notebook's font for it; lists keep the spaces between a letter and its words."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of an answer: as text, and as HTML."""

    text: str
    html: str


class Notice:
    """Pieces under each other."""

    def __init__(self, *pieces: Piece) -> None:
        self.pieces = pieces

    def __repr__(self) -> str:
        return "\n".join(piece.text for piece in self.pieces if piece.text)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return "\n".join(piece.html for piece in self.pieces)


def marked(text: str) -> str:
    """The text as HTML: `code` in backticks, a *word* between asterisks emphasised, all else escaped."""
    pieces = re.split(r"`([^`\n]+)`", escape(text))
    pieces[::2] = [_EMPHASIS.sub(r"<em>\1</em>", piece) for piece in pieces[::2]]
    pieces[1::2] = [f"<code>{piece}</code>" for piece in pieces[1::2]]
    return "".join(pieces)


_EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s](?:[^*\n]*[^*\s])?)\*(?![\w*])")


def title(text: str) -> Piece:
    """A line in bold."""
    return Piece(text, f"<p><b>{marked(text)}</b></p>")


def paragraph(text: str) -> Piece:
    """Running text; blank lines part paragraphs."""
    blocks = [" ".join(block.split()) for block in text.strip().split("\n\n")]
    plain = "\n\n".join(textwrap.fill(block, WIDTH, break_long_words=False, break_on_hyphens=False) for block in blocks)
    return Piece(plain, "".join(f"<p>{marked(block)}</p>" for block in blocks))


def lines(texts: Iterable[str]) -> Piece:
    """A list, one entry per line."""
    entries = list(texts)
    items = "".join(f"<li>{marked(entry)}</li>" for entry in entries)
    return Piece("\n".join(f"  {entry}" for entry in entries), f"<ul style='{LIST}'>{items}</ul>" if entries else "")


def code(text: str) -> Piece:
    """Text as it stands."""
    return Piece(textwrap.indent(text, "    "), f"<pre style='{CODE}'>{escape(text)}</pre>")


def folded(head: str, *inside: Piece) -> Piece:
    """Pieces behind a line that opens them; in plain text they stand open."""
    plain = "\n".join([f"{head}:", *(piece.text for piece in inside)])
    html = "".join(piece.html for piece in inside)
    return Piece(plain, f"<details><summary>{escape(head)}</summary>{html}</details>")


def table(head: list[str], rows: Iterable[list[str]]) -> Piece:
    """A small table, readable in both forms."""
    body = [head, *rows]
    widths = [max(len(row[column]) for row in body) for column in range(len(head))]
    plain = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in body]
    plain.insert(1, "  ".join("-" * width for width in widths))
    cells = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head)
    html = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body[1:])
    return Piece("\n".join(plain), f"<table><thead><tr>{cells}</tr></thead><tbody>{html}</tbody></table>")
