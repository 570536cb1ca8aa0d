"""What the notebooks show. Nothing here is imported by `import lessonlib`, and no lesson needs a widget to be followed.

Names are imported when they are first used, so that a lesson waits only for what it shows: the lists below say where each
one lives. Everything shown is a plain object with a text form and an HTML form.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lessonlib.lab import breaks, plots, progress, quiz
    from lessonlib.lab import checks as check
    from lessonlib.lab.alignment import Lanes, lanes
    from lessonlib.lab.environment import ready
    from lessonlib.lab.explore import Explorer, explorer
    from lessonlib.lab.folding import fold, show
    from lessonlib.lab.forms import fill, solved
    from lessonlib.lab.live import go_live, go_offline
    from lessonlib.lab.machine import Diagram, diagram
    from lessonlib.lab.network import cut, raw_stream, reads
    from lessonlib.lab.offline import ask, client, send
    from lessonlib.lab.page import Table
    from lessonlib.lab.predict import reveal
    from lessonlib.lab.questions import closing, glossary, recall
    from lessonlib.lab.request_view import Viewer, viewer
    from lessonlib.lab.source import body_of, stream_of
    from lessonlib.lab.stepper import Stepper
    from lessonlib.lab.style import Picture
    from lessonlib.lab.tables import overview
    from lessonlib.lab.tracking import track
    from lessonlib.lab.unnamed import captures, last_lines

_HOMES = {
    "alignment": ("Lanes", "lanes"),
    "environment": ("ready",),
    "live": ("go_live", "go_offline"),
    "tracking": ("track",),
    "machine": ("Diagram", "diagram"),
    "explore": ("Explorer", "explorer"),
    "network": ("cut", "raw_stream", "reads"),
    "offline": ("ask", "client", "send"),
    "page": ("Table",),
    "predict": ("reveal",),
    "questions": ("closing", "glossary", "recall"),
    "folding": ("fold", "show"),
    "forms": ("fill", "solved"),
    "source": ("body_of", "stream_of"),
    "stepper": ("Stepper",),
    "style": ("Picture",),
    "tables": ("overview",),
    "unnamed": ("captures", "last_lines"),
    "request_view": ("Viewer", "viewer"),
}
_MODULES = {"breaks": "breaks", "check": "checks", "plots": "plots", "progress": "progress", "quiz": "quiz"}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Diagram",
    "Explorer",
    "Lanes",
    "Picture",
    "Stepper",
    "Table",
    "Viewer",
    "ask",
    "body_of",
    "breaks",
    "captures",
    "check",
    "client",
    "closing",
    "cut",
    "diagram",
    "explorer",
    "fill",
    "fold",
    "glossary",
    "go_live",
    "go_offline",
    "lanes",
    "last_lines",
    "overview",
    "plots",
    "progress",
    "quiz",
    "raw_stream",
    "reads",
    "ready",
    "recall",
    "reveal",
    "send",
    "show",
    "solved",
    "stream_of",
    "track",
    "viewer",
]


def __getattr__(name: str) -> object:
    """The name from its module, imported now."""
    if name in _MODULES:
        return import_module(f"lessonlib.lab.{_MODULES[name]}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"lessonlib.lab.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
