"""Counts the tokens of a request and an answer, and plays the prompt cache.

Counts are real counts of the shipped vocabulary plus a small fixed cost per message and tool, the same for every vendor: a
simulator needs plausible numbers that add up, not Anthropic's own (nobody outside has that vocabulary).

The cache works by prefix, as in life: tools and system prompt first, then message by message. What was sent before with the
same prefix is cached; one changed character makes everything after it new. Real services cache from about 1,024 tokens on
and only for minutes; here the default minimum is small, so that a lesson's short prompt shows the effect.

What this file does not do: no vendor's field names (each frontend reports these counts by its vendor's own accounting).
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lessonlib.sim.ask import Ask
from lessonlib.sim.script import Call, Refuse, Say, ServerCall, Think, Turn
from lessonlib.sim.signing import digest
from lessonlib.types import Image, Message, Text, ToolCall, ToolResult
from lessonlib.vocabulary import count_text
from lessonlib.wire.base import compact

PER_MESSAGE = 4
PER_TOOL = 8
PER_IMAGE = 258
TTL = 300.0
"""Seconds that a cached prefix lives, as at the vendors that say so."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens of one exchange, by class: `fresh + cached + written` is the input, `visible + reasoning` the output."""

    fresh: int
    cached: int
    written: int
    visible: int
    reasoning: int

    @property
    def input(self) -> int:
        return self.fresh + self.cached + self.written

    @property
    def output(self) -> int:
        return self.visible + self.reasoning


def message_tokens(message: Message) -> int:
    """Tokens of one message. Pictures have a flat price; reasoning that was sent back costs what its text costs."""
    total = PER_MESSAGE
    for part in message.parts:
        match part:
            case Text():
                total += count_text(part.text)
            case Image():
                total += PER_IMAGE
            case ToolCall():
                total += count_text(f"{part.name}{part.raw_args}")
            case ToolResult():
                total += count_text(part.text)
            case _:
                total += count_text(getattr(part, "text", ""))
    return total


def prefix_tokens(ask: Ask) -> int:
    """Tokens of the system prompt and the tools, which stand before all messages."""
    tools = sum(PER_TOOL + count_text(f"{tool.name} {tool.description} {compact(tool.parameters)}") for tool in ask.tools)
    return (count_text(ask.system) + PER_MESSAGE if ask.system else 0) + tools


def input_tokens(ask: Ask) -> int:
    """All input tokens of a request."""
    return prefix_tokens(ask) + sum(message_tokens(message) for message in ask.messages)


def output_tokens(turn: Turn) -> tuple[int, int]:
    """(visible, reasoning) tokens of an answer."""
    visible, reasoning = turn.unseen, 0
    for segment in turn.segments:
        match segment:
            case Think(text, tokens):
                reasoning += count_text(text) if tokens is None else tokens
            case Say(text) | Refuse(text):
                visible += count_text(text)
            case Call():
                visible += PER_TOOL + count_text(segment.name + segment.text)
            case ServerCall(query):
                visible += PER_TOOL + count_text(query)
    return visible, reasoning


class PromptCache:
    """Prefixes that were sent before, per wire and model. Safe under threads. With `file`, it outlives the process."""

    def __init__(self, clock: Callable[[], float], minimum: int = 32, file: Path | None = None) -> None:
        self.clock, self.minimum, self.file = clock, minimum, file
        self._lock = threading.Lock()
        self._until: dict[str, float] = _load(file)

    def account(
        self, ask: Ask, turn: Turn, *, writes: bool = False, enabled: bool = True, messages: int | None = None
    ) -> Counts:
        """The counts for this exchange, and remembers its prefixes. writes: this vendor reports what it writes. messages:
        behind how many messages the last cache mark stands (0: behind tools and system prompt only); None for all."""
        visible, reasoning = output_tokens(turn)
        keys, sizes = _prefixes(ask)
        total = sizes[-1]
        if messages is not None:
            keys, sizes = keys[: messages + 1], sizes[: messages + 1]
        if not enabled:
            return Counts(total, 0, 0, visible, reasoning)
        now = self.clock()
        with self._lock:
            hit = max((size for key, size in zip(keys, sizes, strict=True) if self._until.get(key, 0) > now), default=0)
            self._until = {key: until for key, until in self._until.items() if until > now}
            self._until |= dict.fromkeys(keys, now + TTL)
            _save(self.file, self._until)
        cached = hit if hit >= self.minimum else 0
        written = sizes[-1] - cached if writes and sizes[-1] >= self.minimum else 0
        return Counts(total - cached - written, cached, written, visible, reasoning)


def _prefixes(ask: Ask) -> tuple[list[str], list[int]]:
    """For tools + system, then for each message: a key of everything up to there, and its tokens. Linear in the history."""
    key = digest(ask.wire, ask.model, ask.system, [tool.model_dump(mode="json") for tool in ask.tools])
    size = prefix_tokens(ask)
    keys, sizes = [key], [size]
    for message in ask.messages:
        key = digest(key, message.role, [_plain(part) for part in message.parts])
        size += message_tokens(message)
        keys.append(key)
        sizes.append(size)
    return keys, sizes


def _plain(part: object) -> object:
    """What of a part decides whether it is the same text for the model."""
    match part:
        case Text():
            return part.text
        case ToolCall():
            return [part.call_id, part.name, part.raw_args]
        case ToolResult():
            return [part.call_id, part.text]
        case Image():
            return [part.url, part.data]
        case _:
            return repr(type(part).__name__) + str(getattr(part, "text", ""))


def _load(file: Path | None) -> dict[str, float]:
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): float(until) for key, until in found.items()} if isinstance(found, dict) else {}


def _save(file: Path | None, until: dict[str, float]) -> None:
    """Atomic, and never a reason to fail: a cache that cannot be kept is only a cold cache."""
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(until, stream)
        Path(name).replace(file)
    except OSError:
        return
