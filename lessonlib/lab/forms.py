"""Tables that the reader fills in, row by row: what was learned on one wire format is tried on the next.

    mine = {"system prompt": None, "tool result": None}
    fill("03.differences", mine)      each row that is filled in: hit or missed, and why; an empty row shows nothing
    solved("03.differences")          the whole table

One row is enough to see something, and only that row is shown, so nobody reads an answer before giving one. Run All passes
with an empty table: nothing is raised. Where later cells need the answers, `fill(...).right` has them.

The data is `data/course/NN.json`, under "tables":

    "stops": {
      "exit": "03.e", "heads": ["stop_reason", "what you do", "because"], "words": ["show", "run", "resend"],
      "rows": {"end_turn": {"is": "show", "because": "The model had nothing more to say.",
                            "wrong": {"resend": "You expect more to come. ..."}}}
    }

`is` may be a list of words that are all right; `words`, what may be written at all, may be left out.

What this file does not do: it keeps no score and stores nothing, and checks no exercise (checks/predicted.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lessonlib.lab.notice import Notice, lines, paragraph, title
from lessonlib.lab.page import Table
from lessonlib.lab.predict import course


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what is right (the first of `accepted` is shown), why, and what to say to particular wrong words."""

    name: str
    accepted: tuple[str, ...]
    because: str
    wrong: Mapping[str, str]

    def is_right(self, word: object) -> bool:
        """Whether a reader's word is right; case and spaces at the ends do not matter."""
        return _plain(word) in map(_plain, self.accepted)

    def about(self, word: object) -> str:
        """What to say to a word: for a listed wrong one what it assumes, and always why the right one is right."""
        said = {_plain(each): text for each, text in self.wrong.items()}.get(_plain(word), "")
        return f"{said} {self.because}".strip()


@dataclass(frozen=True, slots=True)
class Form:
    """A table of data/course/NN.json."""

    key: str
    exit: str
    heads: tuple[str, ...]
    words: tuple[str, ...]
    rows: tuple[Row, ...]


class Filled:
    """What a reader filled in, row by row. `right`: the right word of every row, for the cells that go on with it."""

    def __init__(self, form: Form, mine: Mapping[str, object]) -> None:
        self.form = form
        self.mine = {name: word for name, word in mine.items() if word is not None and _plain(word)}
        self.right = {row.name: row.accepted[0] for row in form.rows}

    @property
    def hit(self) -> list[str]:
        """The rows that are right."""
        return [row.name for row in self.form.rows if row.name in self.mine and row.is_right(self.mine[row.name])]

    @property
    def missed(self) -> list[str]:
        """The rows that are filled in and wrong."""
        return [row.name for row in self.form.rows if row.name in self.mine and not row.is_right(self.mine[row.name])]

    def shown(self) -> Notice:
        """The rows that are filled in; for an empty table, what may be written."""
        strange = [name for name in self.mine if name not in self.right]
        if strange:
            return Notice(paragraph(f"There is no row {strange[0]!r}; the rows are {', '.join(self.right)}."))
        words = f" Words: {', '.join(self.form.words)}." if self.form.words else ""
        if not self.mine:
            return Notice(title("Your words first"), paragraph(f"Fill in a row, run its cell, then this one again.{words}"))
        filled = [row for row in self.form.rows if row.name in self.mine]
        left = len(self.form.rows) - len(filled)
        more = [paragraph(f"{left} still empty.{words}")] if left else []
        return Notice(title(f"{len(self.hit)} of {len(filled)} as you said"), lines(map(self._line, filled)), *more)

    def _line(self, row: Row) -> str:
        word = self.mine[row.name]
        if row.is_right(word):
            return f"hit     {row.name}: {word}. {row.because}"
        return f"missed  {row.name}: not {word}, but {row.accepted[0]}. {row.about(word)}"

    def __repr__(self) -> str:
        return repr(self.shown())

    def _repr_html_(self) -> str:
        return self.shown()._repr_html_()


def fill(key: str, mine: Mapping[str, object]) -> Filled:
    """Feedback on a table, row by row. `mine`: {row: word}, None where nothing is filled in yet."""
    return Filled(_form(key), mine)


def solved(key: str) -> Table:
    """The whole table, with the reasons."""
    form = _form(key)
    return Table(form.heads, tuple((row.name, row.accepted[0], row.because) for row in form.rows), coded=True)


def forms(lesson: str) -> dict[str, Form]:
    """All tables of a lesson ("03"), by their key without the lesson's number."""
    return {name: _read(f"{lesson}.{name}", entry) for name, entry in course(lesson).get("tables", {}).items()}


def _form(key: str) -> Form:
    lesson, _, name = key.partition(".")
    found = forms(lesson)
    if name not in found:
        raise KeyError(f"no table {key!r}; lesson {lesson} has {', '.join(found) or 'none'}")
    return found[name]


def _read(key: str, entry: dict[str, Any]) -> Form:
    rows = tuple(
        Row(name, (row["is"],) if isinstance(row["is"], str) else tuple(row["is"]), row["because"], row.get("wrong", {}))
        for name, row in entry["rows"].items()
    )
    return Form(key, entry["exit"], tuple(entry["heads"]), tuple(entry.get("words", ())), rows)


def _plain(word: object) -> str:
    return " ".join(str(word).split()).casefold()
