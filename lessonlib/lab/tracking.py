"""How far a loop is, for whatever takes longer than a second.

    for size in track(range(1, 2000), "cuts"):
        ...

Nothing is shown before a second has passed, so a quick loop leaves no output and a stored one stays the same. Then one line
grows: in a notebook a bar with words, elsewhere text on standard error. When the loop ends, the line goes. Where outputs are
stored or compared (LESSON_PROGRESS=off) it never comes, because how fast a machine is would stand in them.

What this file does not do: no threads, no guess at the time that is left.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from lessonlib.lab.progress import is_off

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds before anything is shown."""

PAUSE = 0.2
"""Seconds between two looks."""

WIDTH = 24


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: `done` of `total` (None: not known) `words`."""

    done: int
    total: int | None
    words: str

    def __repr__(self) -> str:
        if not self.total:
            return f"{self.done:,} {self.words}"
        filled = WIDTH * self.done // self.total
        return f"[{'#' * filled}{'.' * (WIDTH - filled)}] {self.done:,} of {self.total:,} {self.words}"

    def _repr_html_(self) -> str:
        words = escape(f"{self.done:,}{f' of {self.total:,}' if self.total else ''} {self.words}")
        value = f' value="{self.done}" max="{self.total}"' if self.total else ""
        return f'<p><progress{value} aria-label="{words}"></progress> {words}</p>'


def track(
    things: Iterable[T],
    words: str = "done",
    total: int | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    line: Line | None = None,
) -> Iterator[T]:
    """The things, one after another. total: how many there are, if `things` does not say. line: where to show it."""
    if total is None and isinstance(things, Sized):
        total = len(things)
    line = line or (NotebookLine() if _in_notebook() else TerminalLine())
    look = clock() + PATIENCE if not is_off() else math.inf
    try:
        for done, thing in enumerate(things, 1):
            yield thing
            now = clock()
            if now >= look:
                line.show(Progress(done, total, words))
                look = now + PAUSE
    finally:
        line.close()


class Line:
    """One place that shows a Progress and can be cleared."""

    def show(self, progress: Progress) -> None:
        """Shows how far it is, instead of what was shown before."""
        raise NotImplementedError

    def close(self) -> None:
        """Takes the line away."""
        raise NotImplementedError


class TerminalLine(Line):
    """A line of standard error that is written again and again."""

    def __init__(self) -> None:
        self._length = 0

    def show(self, progress: Progress) -> None:
        text = repr(progress)
        sys.stderr.write(f"\r{text.ljust(self._length)}")
        sys.stderr.flush()
        self._length = len(text)

    def close(self) -> None:
        if self._length:
            sys.stderr.write(f"\r{' ' * self._length}\r")
            sys.stderr.flush()


class NotebookLine(Line):
    """An output of the cell that is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, progress: Progress) -> None:
        if self._handle is None:
            from IPython.display import display

            self._handle = display(progress, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(progress)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this. Nothing is imported for it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return type(shell).__name__ == "ZMQInteractiveShell"
