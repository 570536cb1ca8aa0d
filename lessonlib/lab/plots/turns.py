"""The picture of lesson 00: the same conversation as two timelines of entries, and as two people who take turns.

What is drawn is the body of the request that carries a tool's result, as each wire format's encoder writes it.

What this file does not do: it says nothing of what an entry holds. The overview (tables.py) does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessonlib.lab.page import Table
from lessonlib.lab.plots.wire import TITLES, WEATHER, _rectangle
from lessonlib.lab.style import HATCHES, PALE, Picture, no_axes
from lessonlib.types import JSON, Message, Part, Request, ToolResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PER_VENDOR = {"openai": "openai-responses", "gemini": "gemini-interactions", "anthropic": "anthropic-messages"}
STEP = 0.85


@dataclass(frozen=True)
class Entry:
    """One entry of a request. speaker: whose turn it stands in, "" where entries stand for themselves. kind: its type."""

    speaker: str
    kind: str
    is_result: bool


def turns(vendors: Sequence[str] = ("openai", "gemini", "anthropic")) -> Picture:
    """A question, an answer with a call, and the call's result, as the next request tells it to each vendor."""
    told = {vendor: conversation(vendor) for vendor in vendors}
    rows = tuple(
        (TITLES[PER_VENDOR[vendor]], f"{number}", entry.speaker or "-", entry.kind)
        for vendor, entries in told.items()
        for number, entry in enumerate(entries, 1)
    )
    spoken = [vendor for vendor, entries in told.items() if any(entry.speaker for entry in entries if entry.is_result)]
    alone = [vendor for vendor in vendors if vendor not in spoken]
    names = {vendor: TITLES[PER_VENDOR[vendor]] for vendor in vendors}
    parts = [
        f"{' and '.join(names[vendor] for vendor in alone)}: one timeline, and the tool's result is an entry of its own."
    ]
    for vendor in spoken:
        speaker = next(entry.speaker for entry in told[vendor] if entry.is_result)
        count = len(_grouped(told[vendor]))
        parts.append(f"{names[vendor]}: {count} turns of two speakers; the result is a block in a turn of the {speaker}.")

    def draw(figure: Figure) -> None:
        axes = no_axes(figure, 4.0 * len(vendors), 0.9 + STEP * max(map(len, told.values())) + 0.6)
        for column, (vendor, entries) in enumerate(told.items()):
            axes.text(4.0 * column + 0.1, 0.35, names[vendor], va="center", fontweight="bold")
            _column(axes, 4.0 * column + 0.1, entries)

    table = Table(("wire", "entry", "in a turn of", "type"), rows)
    title = f"{len(alone)} timelines of entries, and {len(spoken)} conversation in turns"
    return Picture(title, " ".join(parts), table, draw, (7.8, 3.3))


def conversation(vendor: str) -> list[Entry]:
    """The entries of the second request of a tool round trip, in order."""
    from lessonlib.lab.offline import client

    provider = client(vendor)
    first = Request(messages=[Message.user("What is the weather in Beijing (北京)?")], tools=[WEATHER], reasoning="low")
    answer = provider.generate(first)
    results: list[Part] = [ToolResult(call_id=call.call_id, content="sunny, 25 °C") for call in answer.tool_calls]
    second = first.replace(messages=[*first.messages, answer.message, Message(role="user", parts=results)])
    body = provider.wire.encode(second).body
    if "messages" in body:
        return [_entry(block, message["role"]) for message in body["messages"] for block in message["content"]]
    return [_entry(item, "") for item in body["input"]]


def _entry(item: JSON, speaker: str) -> Entry:
    kind = str(item.get("type") or f"message ({item['role']})")
    return Entry(speaker, kind, "result" in kind or kind.endswith("call_output"))


def _grouped(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries by turns: neighbours of one speaker."""
    groups: list[list[Entry]] = []
    for entry in entries:
        if groups and groups[-1][0].speaker == entry.speaker:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def _column(axes: Axes, x: float, entries: Sequence[Entry]) -> None:
    """One vendor's entries from top to bottom; a frame with the speaker's name around what one speaker says."""
    top = 0.75
    framed = any(entry.speaker for entry in entries)
    if not framed:
        axes.plot([x + 0.25] * 2, [top, top + STEP * len(entries)], color=PALE, linewidth=2, zorder=0)
    for group in _grouped(entries):
        if framed:
            _rectangle(axes, x, top, 3.7, STEP * len(group) + 0.1, "white", linestyle="--")
            axes.text(x + 0.08, top + 0.27, group[0].speaker, va="center", fontsize=7.5, fontstyle="italic")
        left = x + 1.15 if framed else x
        for entry in group:
            _rectangle(axes, left, top + 0.12, x + 3.6 - left, STEP - 0.2, "#fbe7cc" if entry.is_result else "#dbe6f3",
                       HATCHES[1] if entry.is_result else "")  # fmt: skip
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0} if entry.is_result else None
            axes.text(
                (left + x + 3.6) / 2,
                top + 0.12 + (STEP - 0.2) / 2,
                entry.kind,
                ha="center",
                va="center",
                fontsize=7.5,
                bbox=box,
            )
            top += STEP
        top += 0.2 if framed else 0.0
