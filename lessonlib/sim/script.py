"""What the simulated model says, in no vendor's words: a turn is a list of segments and a reason to stop.

    Simulator(script=[[Think("..."), Call("get_weather", {"city": "北京"})], [Say("Sunny.")]])

A script plays its turns in order, one per request. Without one, or behind its end, `model.py` decides by the request. A
frontend renders the same turn whole or as a stream, so that the two cannot differ. `read` takes a script from JSON:

    ["Hello.", [{"think": "..."}, {"call": "get_weather", "args": {"city": "北京"}}], {"say": "Sunny."}]

What this file does not do: it knows no wire format, and cuts nothing (`core.py` applies the output cap).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lessonlib.types import JSON, StopReason
from lessonlib.wire.base import compact


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning. `text` is what a summary would show; `tokens` the count to report if it is not the text's own. `redacted`:
    the vendor hides it (Anthropic sends such a block encrypted)."""

    text: str
    tokens: int | None = None
    whole: bool = True
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """Visible text."""

    text: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """A client tool call. `args`: an object, or a text that is sent as it stands (for invalid JSON)."""

    name: str
    args: JSON | str = field(default_factory=dict)
    whole: bool = True

    @property
    def text(self) -> str:
        """The arguments' JSON text; empty for a tool without parameters, as the vendors send it."""
        if isinstance(self.args, str):
            return self.args
        return compact(self.args) if self.args else ""


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A search which the vendor's own server runs, with its result (None: it is still running when the turn pauses)."""

    query: str
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """The model declines. `category` is the policy's name where the vendor reports one. Without a text the vendor's filter
    stopped the answer before its first word."""

    text: str = ""
    category: str = "general_harms"


Segment = Think | Say | Call | ServerCall | Refuse


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer. `stop` None: tool_use if there is a call, refusal if there is a refusal, else end.

    run_out: where the answer runs into its cap ("text", "reasoning" or "arguments"), even if the cap is far away.
    stop_sequence: the stop sequence that ended it. full: not the request's cap ended it, but the model's window. unseen:
    tokens that are counted and leave no trace in the answer.
    """

    segments: tuple[Segment, ...]
    stop: StopReason | None = None
    run_out: str | None = None
    stop_sequence: str | None = None
    full: bool = False
    unseen: int = 0

    @property
    def reason(self) -> StopReason:
        """Why it stops, given or derived."""
        if self.stop is not None:
            return self.stop
        if any(isinstance(segment, Refuse) for segment in self.segments):
            return StopReason.REFUSAL
        if any(isinstance(segment, Call) for segment in self.segments):
            return StopReason.TOOL_USE
        return StopReason.END

    @property
    def calls(self) -> list[Call]:
        """The client calls, in order."""
        return [segment for segment in self.segments if isinstance(segment, Call)]


def turn(entry: Turn | str | Segment | Sequence[Segment | str]) -> Turn:
    """A script's entry as a Turn: a text, one segment, or several of either."""
    if isinstance(entry, Turn):
        return entry
    entries = entry if isinstance(entry, (list, tuple)) else (entry,)
    segments = tuple(Say(one) if isinstance(one, str) else one for one in entries)
    for one in segments:
        if not isinstance(one, Segment):
            raise TypeError(f"a turn is made of texts and of Say, Think, Call, ServerCall and Refuse, not of {one!r:.60}")
    return Turn(segments)


# ---------------------------------------------------------------- a script in a file


_SEGMENTS: dict[str, tuple[Callable[..., Segment], dict[str, tuple[type, ...]]]] = {
    "say": (Say, {}),
    "think": (Think, {"tokens": (int,), "redacted": (bool,)}),
    "call": (Call, {"args": (dict, str)}),
    "search": (ServerCall, {"result": (str, type(None))}),
    "refuse": (Refuse, {"category": (str,)}),
}
"""The word of each segment, whose value is its first field, with its other fields and their types."""


def read(text: str) -> list[Turn]:
    """A script from JSON: a list of turns, each a text, a segment or a list of segments. ValueError says what is wrong."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the script is no JSON: {error}") from None
    if not isinstance(found, list):
        raise ValueError('a script is a list of turns, such as ["Hello.", {"say": "Goodbye."}]')
    return [_turn(entry, f"turn {number}") for number, entry in enumerate(found, 1)]


def _turn(entry: Any, place: str) -> Turn:
    if isinstance(entry, list):
        return Turn(tuple(_segment(one, f"{place}, segment {number}") for number, one in enumerate(entry, 1)))
    return turn(_segment(entry, place))


def _segment(entry: Any, place: str) -> Segment:
    if isinstance(entry, str):
        return Say(entry)
    words = [word for word in _SEGMENTS if isinstance(entry, dict) and word in entry]
    if len(words) != 1:
        raise ValueError(f"{place}: write a text, or an object with one of {', '.join(_SEGMENTS)}")
    make, fields = _SEGMENTS[words[0]]
    given = {name: value for name, value in entry.items() if name != words[0]}
    wrong = [name for name, value in given.items() if type(value) not in fields.get(name, ())]
    if not isinstance(entry[words[0]], str) or wrong:
        raise ValueError(f"{place}: {wrong[0] if wrong else words[0]!r} is not what {words[0]!r} takes")
    return make(entry[words[0]], **given)
