"""A vendor's request in neutral words: what the scripted model gets to see.

Each frontend reads its own vendor's JSON into an `Ask`, strictly and without the client's encoders, so that a mistake of an
encoder is a mistake here too. The parts are those of `lessonlib.types`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from lessonlib.types import JSON, Message, Opaque, Part, Tool, ToolCall, ToolResult


@dataclass(slots=True)
class Ask:
    """One request. `thinks`: the model will reason. `kept_reasoning`: the reasoning of the running tool turn was sent back
    (or there was none); without it the model thinks it all again. `paused`: the last message is a paused turn of its own.
    `talked_over`: text stands behind the results that have just arrived, which ends the turn on some models."""

    wire: str
    model: str
    messages: list[Message]
    system: str = ""
    tools: list[Tool] = field(default_factory=list)
    tool_choice: str | None = None
    parallel: bool = True
    max_tokens: int | None = None
    thinks: bool = False
    effort: str | None = None
    summary: bool = True
    stop: list[str] = field(default_factory=list)
    output_schema: JSON | None = None
    stream: bool = False
    kept_reasoning: bool = True
    paused: bool = False
    talked_over: bool = False

    @property
    def prompt(self) -> str:
        """The last thing that the person wrote: the text of the last user message that has any."""
        for message in reversed(self.messages):
            if message.role == "user" and message.text.strip():
                return message.text
        return ""

    @property
    def results(self) -> list[tuple[ToolCall | None, ToolResult]]:
        """The tool results that have just arrived, with the calls that they answer."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "user" or not last.tool_results:
            return []
        calls = {call.call_id: call for message in self.messages for call in message.tool_calls}
        return [(calls.get(result.call_id), result) for result in last.tool_results]

    def tool(self, name: str) -> Tool | None:
        """The offered tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


def conversation(turns: Iterable[tuple[str, list[Part]]]) -> list[Message]:
    """(role, parts) in their order -> messages of two roles. Neighbours of the same role are one message, whatever the
    vendor calls the roles; everything that the model did not say is the user's."""
    roles = (("assistant" if role == "assistant" else "user", parts) for role, parts in turns)
    messages = []
    for role, group in groupby(roles, key=lambda turn: turn[0]):
        parts = [part for _, some in group for part in some]
        if parts:
            messages.append(Message(role="assistant" if role == "assistant" else "user", parts=parts))
    return messages


def note(text: str) -> Opaque:
    """An instruction of the developer in the middle of a conversation: no words of the person, but tokens all the same."""
    return Opaque(kind="note", raw={"text": text})


def note_text(part: Opaque) -> str:
    """The text of a note; other opaque parts have none that could be counted."""
    return str((part.raw or {}).get("text", ""))
