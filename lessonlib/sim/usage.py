"""Counts the tokens of a request and an answer, and plays the prompt cache.

Counts are real counts of the shipped vocabulary plus a small fixed cost per message and tool, the same for every vendor: a
simulator needs plausible numbers that add up, not Anthropic's own (nobody outside has that vocabulary).

The cache works by prefix, as in life: tools and system prompt first, then message by message. What was sent before with the
same prefix is cached; one changed character makes everything after it new. Real services cache from about 1,024 tokens on;
here the default minimum is small, so that a lesson's short prompt shows the effect.

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

from lessonlib import vocabulary
from lessonlib.sim.ask import Ask, note_text
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think, Turn
from lessonlib.sim.signing import digest
from lessonlib.types import Image, Message, Opaque, Text, ToolCall, ToolResult
from lessonlib.wire.base import compact

PER_MESSAGE = 4
PER_TOOL = 8
PER_IMAGE = 258
TTL = 300.0
"""Seconds that a cached prefix lives, as at the vendors that say so."""
SLICE = 20_000
"""Characters that are tokenised at once: the tokeniser's time grows faster than the text, and a text of nothing but blanks,
some millions of them, breaks it."""
CROWD = 10_000
"""Prefixes that are remembered before the expired ones are thrown out, and (of the rest) more than the newest half."""


# ---------------------------------------------------------------- counting


def count(text: str) -> int:
    """Tokens of a text of any length."""
    return sum(vocabulary.count_text(text[start : start + SLICE]) for start in range(0, len(text), SLICE))


def cost(segment: Segment) -> int:
    """Output tokens of one segment."""
    match segment:
        case Think(text, tokens):
            return count(text) if tokens is None else tokens
        case Say(text) | Refuse(text):
            return count(text)
        case Call():
            return PER_TOOL + count(segment.name + segment.text)
        case ServerCall(query):
            return PER_TOOL + count(query)


def output_tokens(turn: Turn) -> tuple[int, int]:
    """(visible, reasoning) tokens of an answer."""
    reasoning = sum(cost(segment) for segment in turn.segments if isinstance(segment, Think))
    return turn.unseen + sum(cost(segment) for segment in turn.segments) - reasoning, reasoning


def message_tokens(message: Message) -> int:
    """Tokens of one message. Pictures have a flat price; reasoning that was sent back costs what its text costs."""
    total = PER_MESSAGE
    for part in message.parts:
        match part:
            case Image():
                total += PER_IMAGE
            case ToolCall():
                total += count(f"{part.name}{part.raw_args}")
            case Opaque():
                total += count(note_text(part))
            case _:
                total += count(part.text)
    return total


def prefix_tokens(ask: Ask) -> int:
    """Tokens of the system prompt and the tools, which stand before all messages."""
    tools = sum(PER_TOOL + count(f"{tool.name} {tool.description} {compact(tool.parameters)}") for tool in ask.tools)
    return (count(ask.system) + PER_MESSAGE if ask.system else 0) + tools


@dataclass(frozen=True, slots=True)
class Measure:
    """A prompt, measured after each of its steps: tools and system prompt, then message by message. `keys` name everything
    up to a step, `sizes` are its tokens."""

    keys: list[str]
    sizes: list[int]

    @property
    def total(self) -> int:
        """Tokens of the whole prompt."""
        return self.sizes[-1]


def measure(ask: Ask) -> Measure:
    """The prompt's prefixes. Linear in the history."""
    key = digest(ask.wire, ask.model, ask.system, [tool.model_dump(mode="json") for tool in ask.tools])
    size = prefix_tokens(ask)
    keys, sizes = [key], [size]
    for message in ask.messages:
        key = digest(key, message.role, [_plain(part) for part in message.parts])
        size += message_tokens(message)
        keys.append(key)
        sizes.append(size)
    return Measure(keys, sizes)


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
        case Opaque():
            return [part.kind, note_text(part)]
        case _:
            return [type(part).__name__, getattr(part, "text", "")]


# ---------------------------------------------------------------- the cache


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


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """How a vendor's cache works for one request. upto: the step up to which the prompt may be cached (-1: all of it, None:
    nothing). writes: what is written is reported. ttl: seconds that it lives."""

    upto: int | None = -1
    writes: bool = False
    ttl: float = TTL


class PromptCache:
    """Prefixes that were sent before, per wire and model. Safe under threads. With `file`, it outlives the process."""

    def __init__(self, clock: Callable[[], float], minimum: int = 32, file: Path | None = None) -> None:
        self.clock, self.minimum, self.file = clock, minimum, file
        self._lock = threading.Lock()
        self._until: dict[str, float] = _load(file)

    def account(self, prompt: Measure, turn: Turn, options: CacheOptions) -> Counts:
        """The counts for this exchange; remembers the prompt's prefixes."""
        visible, reasoning = output_tokens(turn)
        if options.upto is None:
            return Counts(prompt.total, 0, 0, visible, reasoning)
        keys, sizes = prompt.keys[: options.upto + 1 or None], prompt.sizes[: options.upto + 1 or None]
        cached = self._hit(keys, sizes, options.ttl)
        written = sizes[-1] - cached if options.writes and sizes[-1] >= self.minimum else 0
        return Counts(prompt.total - cached - written, cached, written, visible, reasoning)

    def _hit(self, keys: list[str], sizes: list[int], ttl: float) -> int:
        """Tokens of the longest prefix that is known; from now on all of these are."""
        now = self.clock()
        with self._lock:
            known = [size for key, size in zip(keys, sizes, strict=True) if self._until.get(key, 0) > now]
            self._until |= dict.fromkeys(keys, now + ttl)
            if self.file is not None or len(self._until) > max(CROWD, 4 * len(keys)):
                live = [(key, until) for key, until in self._until.items() if until > now]
                self._until = dict(live[-max(CROWD // 2, 2 * len(keys)) :])
            _save(self.file, self._until)
        hit = max(known, default=0)
        return hit if hit >= self.minimum else 0


def _load(file: Path | None) -> dict[str, float]:
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {str(key): float(until) for key, until in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


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
