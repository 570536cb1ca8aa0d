"""Memory: what was said earlier and no longer stands in the conversation can still be found.

    memory = ConversationMemory(client)
    request = memory.compact_if_needed(request)      old turns become a summary (compact.py); the originals are kept here
    memory.search_memory("booking number")           passages of them, the best first, as text for the model
    run_tools(client, request, [memory.tool()])      or let the model search by itself

The search is by words, not by meaning: no model, no index, nothing to install, and the same answer every time. A passage is
one text, call or result. It scores by BM25, the classic of full-text search: for each word of the query, how rare the word
is among the passages, times how often it stands in this one, with diminishing returns and with long passages held back
(k1 = 1.2, b = 0.75; https://en.wikipedia.org/wiki/Okapi_BM25). Words are compared in lower case; scripts that put no spaces
between words are compared by pairs of characters. A query and a passage without a word in common do not match: ask in the
words in which it was said.

What this file does not do: no embeddings, no file or database. `messages` can be stored with types.dump_history.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from lessonlib.compact import (
    HEAD,
    Compaction,
    Compactor,
    acompact_if_needed,
    aforce_compact,
    compact_if_needed,
    force_compact,
)
from lessonlib.flow import AsyncProvider, Provider
from lessonlib.tools import FunctionTool, tool
from lessonlib.types import Message, Request, Text, ToolCall, ToolResult

K1, B = 1.2, 0.75
EXCERPT = 400
"""Characters of a passage that a search shows."""


class Memory(Protocol):
    """What an agent needs of a memory."""

    def compact_if_needed(self, request: Request, /) -> Request:
        """The request, with its old turns summed up if it would not fit."""
        ...

    def force_compact(self, request: Request, /) -> Request:
        """The same whether or not it fits: for a service that found it too long."""
        ...

    def search_memory(self, query: str, /) -> str:
        """What earlier turns say about `query`, as text for the model."""
        ...


# ---------------------------------------------------------------- searching


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a conversation that was found. place: the number of its message. who: "user", "assistant", or the tool."""

    place: int
    who: str
    text: str
    score: float


def search(query: str, messages: Sequence[Message], limit: int = 5) -> list[Passage]:
    """The passages that match `query` best, best first; of equal ones the newest first."""
    passages = list(_passages(messages))
    counts = [Counter(_terms(text)) for _, _, text in passages]
    found = zip(passages, _scores(set(_terms(query)), counts), strict=True)
    hits = [Passage(place, who, text, score) for (place, who, text), score in found if score > 0]
    return sorted(hits, key=lambda hit: (-hit.score, -hit.place))[:limit]


def _passages(messages: Sequence[Message]) -> Iterator[tuple[int, str, str]]:
    for place, message in enumerate(messages):
        for part in message.parts:
            match part:
                case Text() if part.text.strip():
                    yield place, message.role, part.text
                case ToolCall():
                    yield place, f"{part.name} was called", part.raw_args
                case ToolResult() if part.text.strip():
                    yield place, f"{part.name or 'a tool'} gave", part.text


_WORD = re.compile(r"[^\W_]+")
_NO_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")
"""Kana, Chinese characters, Thai: written without spaces between words."""


def _terms(text: str) -> Iterator[str]:
    """The words of a text; runs of characters without spaces as pairs."""
    for found in _WORD.finditer(text.lower()):
        word = found.group()
        yield from _NO_SPACES.sub(" ", word).split()
        for run in _NO_SPACES.findall(word):
            yield from (run[place : place + 2] for place in range(max(1, len(run) - 1)))


def _scores(wanted: set[str], counts: Sequence[Counter[str]]) -> Iterator[float]:
    """BM25 of each passage."""
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    weights = {}
    for term in sorted(wanted):
        holding = sum(term in count for count in counts)
        weights[term] = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
    for count, length in zip(counts, lengths, strict=True):
        norm = K1 * (1 - B + B * length / average) if average else K1
        yield sum(weight * count[term] * (K1 + 1) / (count[term] + norm) for term, weight in weights.items() if count[term])


def _excerpt(text: str, query: str) -> str:
    """The part of a long passage around the first word of the query in it."""
    text = " ".join(text.split())
    if len(text) <= EXCERPT:
        return text
    lower = text.lower()
    places = [place for term in _terms(query) if (place := lower.find(term)) >= 0]
    start = max(0, min(places, default=0) - EXCERPT // 4)
    end = start + EXCERPT
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


# ---------------------------------------------------------------- a memory


class ConversationMemory:
    """The turns that compaction took out of a conversation, word by word.

    provider: writes the summaries. limit: tokens that fit; by default what the model's window leaves. compactor: how.
    messages: what was taken out so far, oldest first; give the ones of an earlier session to go on with them.
    """

    def __init__(
        self,
        provider: Provider | AsyncProvider,
        *,
        limit: int | None = None,
        compactor: Compactor | None = None,
        messages: Iterable[Message] = (),
    ) -> None:
        self._provider = provider
        self.limit = limit
        self.compactor = compactor or Compactor()
        self.messages = list(messages)

    def compact_if_needed(self, request: Request) -> Request:
        """The request, with its old turns summed up if it would not fit."""
        return self._kept(request, compact_if_needed(self._sync(), request, self.limit, self.compactor))

    def force_compact(self, request: Request) -> Request:
        """The request with all turns but the last summed up."""
        return self._kept(request, force_compact(self._sync(), request, self.limit, self.compactor))

    async def acompact_if_needed(self, request: Request) -> Request:
        """`compact_if_needed` in the async colour."""
        return self._kept(request, await acompact_if_needed(self._async(), request, self.limit, self.compactor))

    async def aforce_compact(self, request: Request) -> Request:
        """`force_compact` in the async colour."""
        return self._kept(request, await aforce_compact(self._async(), request, self.limit, self.compactor))

    def search_memory(self, query: str, limit: int = 5) -> str:
        """What earlier turns say about `query`: the best passages, or that there is none."""
        found = search(query, self.messages, limit)
        if not found:
            return f"Nothing in the earlier conversation holds a word of {query!r}."
        return "\n".join(f"[{hit.place}] {hit.who}: {_excerpt(hit.text, query)}" for hit in found)

    def tool(self) -> FunctionTool[[str], str]:
        """The search as a tool for the model."""

        def search_memory(query: str) -> str:
            """Search the earlier part of this conversation, which is no longer shown, for the words of a query.

            Args:
                query: Words that stood there, such as a name, a place or a number.
            """
            return self.search_memory(query)

        return tool(search_memory)

    def _kept(self, request: Request, compaction: Compaction) -> Request:
        self.messages += [
            message for message in request.messages[: compaction.replaced] if not message.text.startswith(HEAD)
        ]
        return compaction.request

    def _sync(self) -> Provider:
        if self._provider.is_async:
            raise TypeError("this memory's provider is asynchronous: use acompact_if_needed or aforce_compact")
        return self._provider  # type: ignore[return-value]

    def _async(self) -> AsyncProvider:
        if not self._provider.is_async:
            raise TypeError("this memory's provider is synchronous: use compact_if_needed or force_compact")
        return self._provider  # type: ignore[return-value]
