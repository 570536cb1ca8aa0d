"""Captures under letters: a fixture's name says what is in it, and a reader who is to find out must not see it.

    captures("04.ends")          {"a": b"event: ...", "b": ...}
    last_lines(body, 2)          its last lines that are no event's name, long ones cut in the middle

The data is `data/course/NN.json`, under "captures":

    {"ends": {"a": "gemini-interactions/text", "g": {"of": "gemini-interactions/text", "without": "interaction.completed"}}}

`without` takes the events of that name out, for a stream that no fixture holds.

What this file does not do: it judges nothing; the table that goes with the captures does (forms.py, checks/predicted.py).
"""

from __future__ import annotations

import re
from typing import Any

from lessonlib.lab.predict import course
from lessonlib.lab.source import stream_of

WIDTH = 104
"""Characters of a line that are shown whole."""


def captures(key: str) -> dict[str, bytes]:
    """The captures of a table, by letter. Raises KeyError with the keys that there are."""
    lesson, _, name = key.partition(".")
    sets: dict[str, Any] = course(lesson).get("captures", {})
    if name not in sets:
        raise KeyError(f"no captures {key!r}; lesson {lesson} has {', '.join(sets) or 'none'}")
    return {letter: _capture(entry) for letter, entry in sets[name].items()}


def _capture(entry: str | dict[str, str]) -> bytes:
    if isinstance(entry, str):
        return stream_of(entry)
    body = stream_of(entry["of"])
    event = re.escape(entry["without"].encode("utf-8"))
    left, found = re.subn(rb"event: " + event + rb"\n(?:[^\n]+\n)*\n", b"", body)
    if not found:
        raise ValueError(f"{entry['of']} has no event {entry['without']!r}")
    return left


def last_lines(body: bytes, count: int = 2) -> list[str]:
    """The last lines of a stream, without blank lines and without the lines that only name an event."""
    lines = [line for line in body.decode("utf-8", "replace").splitlines() if line and not line.startswith("event:")]
    return [line if len(line) <= WIDTH else f"{line[:60]} … {line[-41:]}" for line in lines[-count:]]
