"""What the notebooks show. Nothing here is imported by `import lessonlib`, and no lesson needs a widget to be followed."""

from __future__ import annotations

from lessonlib.lab.offline import ask, client, send
from lessonlib.lab.predict import reveal
from lessonlib.lab.questions import closing, glossary, recall
from lessonlib.lab.reads import cut, raw_stream, reads
from lessonlib.lab.show import fold, show
from lessonlib.lab.tables import overview

__all__ = [
    "ask",
    "client",
    "closing",
    "cut",
    "fold",
    "glossary",
    "overview",
    "raw_stream",
    "reads",
    "recall",
    "reveal",
    "send",
    "show",
]
