"""What the simulated model says, in no vendor's words: a turn is a list of segments and a reason to stop.

    Simulator(script=[[Think("..."), Call("get_weather", {"city": "北京"})], [Say("Sunny.")]])

A script plays its turns in order, one per request. Without one, `model.py` decides by the request. A frontend renders the
same turn whole or as a stream, so that the two cannot differ.

What this file does not do: it knows no wire format, and cuts nothing (`core.py` applies the output cap).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lessonlib.types import JSON, StopReason
from lessonlib.wire.base import compact


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning. `text` is what a summary would show; `tokens` the count to report if it is not the text's own."""

    text: str
    tokens: int | None = None
    whole: bool = True


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
    """The model declines. `category` is the policy's name where the vendor reports one."""

    text: str = ""
    category: str = "general_harms"


Segment = Think | Say | Call | ServerCall | Refuse


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer. `stop` None: tool_use if there is a call, refusal if there is a refusal, else end.

    run_out: where the answer runs into its cap ("text", "reasoning" or "arguments"), even if the cap is far away.
    stop_sequence: the stop sequence that ended it. unseen: tokens that are counted and leave no trace in the answer.
    """

    segments: tuple[Segment, ...]
    stop: StopReason | None = None
    run_out: str | None = None
    stop_sequence: str | None = None
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


def turn(entry: Turn | str | Segment | Sequence[Segment]) -> Turn:
    """A script's entry as a Turn: a text, one segment, or several."""
    if isinstance(entry, Turn):
        return entry
    if isinstance(entry, str):
        return Turn((Say(entry),))
    if isinstance(entry, Segment):
        return Turn((entry,))
    return Turn(tuple(entry))
