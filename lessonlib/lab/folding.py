"""Showing JSON in a lesson: the fields in play, everything else folded to `…`.

A whole response is sixty lines, of which a lesson means three. `show(body["output"], "type", "text")` prints those fields,
at every level, and marks where others were left out, so that nobody believes that they are not there. `fold` gives the same
as a text.

What this file does not do: it changes nothing in the value, and prints no picture data or signatures in full (long strings
are cut in the middle, with their length).
"""

from __future__ import annotations

import json
from typing import Any

LONGEST = 72
"""Characters of a string that are shown whole."""
WIDEST = 96
"""A value that fits into so many characters stays on one line."""


def show(value: Any, *keys: str, width: int = WIDEST) -> None:
    """Prints a JSON value. `keys`: the fields of objects to keep, at every level, in the order of the value; a field that is
    kept keeps everything below it that is no object or list. Without keys all is kept."""
    print(fold(value, *keys, width=width))


def fold(value: Any, *keys: str, width: int = WIDEST) -> str:
    """The text that `show` prints. Raises KeyError if a key occurs nowhere: most likely it is misspelt."""
    for key in keys:
        if not _occurs(key, value):
            raise KeyError(f"no field {key!r} in this value")
    return _Printer(frozenset(keys), width).text(value, 0)


def _occurs(key: str, value: Any) -> bool:
    if isinstance(value, dict):
        return key in value or any(_occurs(key, inner) for inner in value.values())
    return isinstance(value, list) and any(_occurs(key, inner) for inner in value)


class _Printer:
    """Lays a value out: on one line where it fits, else a field or an entry per line."""

    def __init__(self, keys: frozenset[str], width: int) -> None:
        self.keys, self.width = keys, width

    def text(self, value: Any, indent: int) -> str:
        if not isinstance(value, (dict, list)) or not value:
            return _scalar(value)
        flat = self._joined(self._pieces(value, None), value, ", ")
        if len(flat) + indent <= self.width:
            return flat
        pad = "\n" + " " * (indent + 2)
        return self._joined(self._pieces(value, indent + 2), value, "," + pad, pad, "\n" + " " * indent)

    def _pieces(self, value: dict[str, Any] | list[Any], indent: int | None) -> list[str]:
        def inner(item: Any) -> str:
            return self.text(item, 0) if indent is None else self.text(item, indent)

        if isinstance(value, list):
            return [inner(item) for item in value]
        kept = {key: item for key, item in value.items() if not self.keys or key in self.keys}
        pieces = [f"{json.dumps(key)}: {inner(item)}" for key, item in kept.items()]
        return [*pieces, "…"] if len(kept) < len(value) else pieces

    @staticmethod
    def _joined(pieces: list[str], value: Any, between: str, start: str = "", end: str = "") -> str:
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        return opening + start + between.join(pieces) + end + closing


def _scalar(value: Any) -> str:
    if isinstance(value, str) and len(value) > LONGEST:
        value = f"{value[:28]}…{value[-8:]} ({len(value)} characters)"
    return json.dumps(value, ensure_ascii=False)
