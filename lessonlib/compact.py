"""Compaction: when a conversation grows too long, its old turns become a summary that the model itself writes.

    found = compact_if_needed(client, request)         found.request fits, or is the same one if it fitted before
    WindowGuard(client, on_full="compact")             the same before every request: budget.py

The newest turns stay as they are, and so does a tool turn that is running: a call and its result are never separated. The
cut falls before a message of the user's; only where the running turn alone is too long, between two of its steps. What comes
out keeps the rules of every wire format (history.py).

One thing cannot be kept. Some models sign their thinking together with everything that stands before it, and refuse it once
that has changed (docs/wire/anthropic.md, thinking and signatures). So behind a summary such thinking is left out, and
`dropped` says so. In a running tool turn it must not be left out either. There the turn becomes text: it goes into the
summary with the rest, and the user's words and the results that the model has not yet answered follow word by word.

The summary costs a request, loses details and breaks the prompt cache. It is asked for behind the conversation as it was, so
that the cache serves that request. A conversation that does not even fit for this, or that ends with results, is written out
as text and summed up piece by piece.

What this file does not do: it does not decide when (budget.py), and it keeps no history for you: go on from the messages of
`Compaction.request`, and the beginning stays the same from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, cast

from lessonlib import capabilities
from lessonlib.errors import PromptTooLong
from lessonlib.flow import AnyProvider, AsyncProvider, Call, Effect, Flow, Provider, arun, model_of, run, total
from lessonlib.history import result_pieces
from lessonlib.tokens import count as count_request
from lessonlib.types import Image, Message, Part, Reasoning, Request, Response, StopReason, Text, ToolCall, ToolResult, Usage

log = logging.getLogger("lessonlib")

PROMPT = (
    "The conversation is getting too long, and what stands above will be replaced by what you write now. Write, for "
    "yourself, what is needed to go on: what was asked, and in which words where they matter; what is known and decided; "
    "which tools were called, with which results, names, numbers and identifiers; what was promised; and what remains to be "
    "done. Write nothing that is not above, and do not go on with the task itself."
)
"""What the model is asked to write."""

HEAD = "[Summary of the conversation so far]"
UNANSWERED = "[The last calls and their results, which have not been answered yet]"

Counter = Callable[[Request], int]
Compacting = Generator[Effect, Any, "Compaction"]


@dataclass(frozen=True, slots=True)
class Compaction:
    """What became of a request.

    request: as it will be sent. replaced: how many messages the summary stands for; 0 if nothing was changed.
    summary: its text. dropped: what else was left out, and why. usage: what the summary cost, None if that is not known.
    """

    request: Request
    replaced: int = 0
    summary: str = ""
    dropped: tuple[str, ...] = ()
    usage: Usage | None = None


def room(request: Request, model: str | None, window: int | None = None, buffer: int | None = None) -> int | None:
    """How many tokens of input fit; None if the model's window is not known.

    buffer: tokens of the window that are left free, for the answer and for the error of the count; a tenth if not given. A
    request that asks for a longer answer gets the room for it.
    """
    window = capabilities.of(request.model or model).window if window is None else window
    if window is None:
        return None
    return window - max(window // 10 if buffer is None else buffer, request.max_tokens or 0)


class Compactor:
    """How conversations are compacted.

    keep_turns: how many of the newest turns stay as they are, as far as they fit in half of the room.
    prompt: what the model is asked to write. max_summary: cap on its tokens (reasoning included).
    count: tokens of a request; by default tokens.count for the provider's model.
    """

    def __init__(
        self, keep_turns: int = 2, *, prompt: str = PROMPT, max_summary: int | None = None, count: Counter | None = None
    ) -> None:
        if keep_turns < 1:
            raise ValueError("keep_turns must be at least 1: the last turn is what the model is to answer")
        self.keep_turns = keep_turns
        self.prompt = prompt
        self.max_summary = max_summary
        self._count = count

    def counter(self, provider: AnyProvider) -> Counter:
        """How requests to `provider` are counted."""
        model = model_of(provider)
        return self._count or (lambda request: count_request(request, model))

    def compact(self, provider: AnyProvider, request: Request, limit: int, *, force: bool = False) -> Compacting:
        """The flow: a plan, one or more summaries, the new request. Raises PromptTooLong where it cannot be made to fit.

        force: compact although it fits.
        """
        count = self.counter(provider)
        if not force and count(request) <= limit:
            return Compaction(request)
        plan = _Planner(request, limit, count, self.keep_turns, force).plan(_binds(provider, request))
        if plan is None:
            return Compaction(request)
        summary, usage = yield from self._summary(provider, request, plan.old, limit, count)
        made = request.replace(messages=[Message.user(f"{HEAD}\n{summary}"), *plan.tail])
        if (tokens := count(made)) > limit:
            if count(request) <= limit:  # forced, and the summary is longer than what it would replace
                return Compaction(request, usage=usage)
            raise _too_long("it still does not fit after its old turns were summed up", tokens, limit)
        log.info("compacted %d of %d messages", len(plan.old), len(request.messages))
        return Compaction(made, len(plan.old), summary, plan.dropped, usage)

    # ------------------------------------------------------------ the summary

    def _summary(
        self, provider: AnyProvider, request: Request, old: Sequence[Message], limit: int, count: Counter
    ) -> Generator[Effect, Any, tuple[str, Usage | None]]:
        ask = request.replace(
            messages=[*old, Message.user(self.prompt)],
            tool_choice="none" if request.tools else None, output_schema=None, max_tokens=self.max_summary,
        )  # fmt: skip
        after_an_answer = old[-1].role == "assistant"  # behind results the prompt would talk the model out of answering
        if after_an_answer and count(ask) <= limit:
            return (yield from self._written(provider, ask))
        used: list[Usage | None] = []
        summary = ""
        for piece in _pieces(old, limit, count, self.prompt):
            before = f"{HEAD}\n{summary}\n\n" if summary else ""
            asked = Message.user(f"{before}[The conversation, written out]\n{piece}", self.prompt)
            summary, usage = yield from self._written(provider, Request(messages=[asked], max_tokens=self.max_summary))
            used.append(usage)
        return summary, total(used)

    def _written(self, provider: AnyProvider, ask: Request) -> Generator[Effect, Any, tuple[str, Usage | None]]:
        response: Response = yield Call(provider, ask, show=False)
        text = response.text.strip()
        if response.stop is not StopReason.END or not text:
            raise PromptTooLong(
                f"the conversation is too long, and the model wrote no summary of it (it stopped with {response.stop})"
            )
        return text, total((response.usage, response.retried))


def _too_long(why: str, tokens: int, limit: int) -> PromptTooLong:
    return PromptTooLong(f"the conversation has about {tokens} tokens, {limit} fit, and {why}", tokens=tokens, limit=limit)


# ---------------------------------------------------------------- where to cut


@dataclass(frozen=True, slots=True)
class _Plan:
    old: list[Message]
    tail: list[Message]
    dropped: tuple[str, ...] = ()


class _Planner:
    """Finds what stays. `starts`: where a turn of the user's begins; `steps`: where a step of the running tool turn does."""

    def __init__(self, request: Request, limit: int, count: Counter, keep_turns: int, force: bool) -> None:
        self.request = request
        self.messages = list(request.messages)
        self.limit = limit
        self.count = count
        self.starts = [place for place in range(1, len(self.messages)) if _turn_begins(self.messages, place)]
        self.running = self.starts[-1] if self.starts else 0
        self.steps = [place for place in range(self.running + 1, len(self.messages)) if _step_begins(self.messages, place)]
        self.wanted = [*self.starts[-1:], *self.steps[-1:]] if force else [*self.starts[-keep_turns:], *self.steps]

    def plan(self, binds: bool) -> _Plan | None:
        """What is summed up and what stays. None if there is nothing to sum up; PromptTooLong if it cannot fit."""
        if self.messages and self.messages[-1].role == "assistant":
            self._must_fit("an answer that was paused goes back as it is")
            return None
        running = self.messages[self.running :]
        if binds and self.messages[-1].tool_results and any(_is_bound(part) for part in _parts(running)):
            why = "the running tool turn became text: its thinking is signed together with what stood before it"
            return _Plan(self.messages, [_as_text(running)], (why,))
        cut = self._cut()
        if cut is None:
            self._must_fit("its last turn alone is too long")
            return None
        tail, dropped = _without_bound(self.messages[cut:]) if binds else (self.messages[cut:], ())
        return _Plan(self.messages[:cut], tail, dropped)

    def _must_fit(self, why: str) -> None:
        tokens = self.count(self.request)
        if tokens > self.limit:
            raise _too_long(why, tokens, self.limit)

    def _cut(self) -> int | None:
        """The first wanted place behind which at most half of the room is used, else the last place there is, if it fits."""
        tokens = self.count(self.request.replace(messages=[], tool_choice=None))
        sizes = [tokens] * (len(self.messages) + 1)
        for place in range(len(self.messages) - 1, -1, -1):
            sizes[place] = tokens = tokens + self.count(Request(messages=[self.messages[place]]))
        fitting = [place for place in self.wanted if sizes[place] <= self.limit // 2]
        if fitting:
            return fitting[0]
        places = [*self.starts, *self.steps]
        return places[-1] if places and sizes[places[-1]] <= self.limit else None


def _turn_begins(messages: Sequence[Message], place: int) -> bool:
    """Whether the user says something new there: after an answer, and not with results."""
    if messages[place].role != "user" or messages[place - 1].role != "assistant":
        return False
    for message in messages[place:]:
        if message.role != "user":
            return True
        if message.tool_results:
            return False
    return True


def _step_begins(messages: Sequence[Message], place: int) -> bool:
    """Whether the model goes on there after results."""
    if messages[place].role != "assistant" or messages[place - 1].role != "user":
        return False
    for message in reversed(messages[:place]):
        if message.role != "user":
            return False
        if message.tool_results:
            return True
    return False


# ---------------------------------------------------------------- thinking that is bound to what stands before it


def _binds(provider: AnyProvider, request: Request) -> bool:
    """Whether the model that is asked refuses signed thinking once something before it has changed. Not known counts as yes,
    except for models of other vendors, who are not sent it."""
    able = capabilities.of(request.model or model_of(provider))
    return able.binds_thinking is not False and able.provider in ("", "anthropic")


def _is_bound(part: Part) -> bool:
    return isinstance(part, Reasoning) and part.wire == "anthropic-messages" and part.raw is not None


def _parts(messages: Sequence[Message]) -> Iterator[Part]:
    return (part for message in messages for part in message.parts)


def _without_bound(messages: list[Message]) -> tuple[list[Message], tuple[str, ...]]:
    """The messages without thinking that a changed beginning invalidates, and a word about it."""
    bound = sum(_is_bound(part) for part in _parts(messages))
    if not bound:
        return messages, ()
    kept = [Message(role=each.role, parts=[part for part in each.parts if not _is_bound(part)]) for each in messages]
    why = f"{bound} thinking blocks: they are signed together with what stood before them"
    return [message for message in kept if message.parts], (why,)


def _as_text(messages: Sequence[Message]) -> Message:
    """A running tool turn as words of the user: the question, then each call of the last step with its result. Pictures stay
    pictures."""
    calls = {call.call_id: call for message in messages for call in message.tool_calls}
    asked = list(takewhile(lambda message: message.role == "user", messages))
    last = list(takewhile(lambda message: message.role == "user", reversed(messages)))
    parts: list[Part] = [*_parts(asked), Text(text=f"\n{UNANSWERED}")]
    for part in _parts(last[::-1]):
        if not isinstance(part, ToolResult):
            parts.append(part)
            continue
        parts.append(Text(text=f"\n{_call(calls.get(part.call_id), part)} -> {part.text}"))
        parts += [piece for piece in result_pieces(part) if isinstance(piece, Image)]
    return Message(role="user", parts=parts)


def _call(call: ToolCall | None, result: ToolResult) -> str:
    return f"{call.name}({call.raw_args})" if call is not None else result.name


# ---------------------------------------------------------------- written out


def transcript(messages: Sequence[Message]) -> str:
    """A conversation as plain text, one paragraph for each thing that was said, called or answered."""
    calls = {call.call_id: call for message in messages for call in message.tool_calls}
    return "\n\n".join(line for message in messages for line in _said(message, calls))


def _said(message: Message, calls: dict[str, ToolCall]) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text() if part.text.strip():
                yield f"{message.role}: {part.text}"
            case Image():
                yield f"{message.role}: [a picture]"
            case ToolCall():
                yield f"assistant called {part.name}({part.raw_args})"
            case ToolResult():
                mark = "failed with" if part.is_error else "gave"
                yield f"{_call(calls.get(part.call_id), part)} {mark}: {part.text}"


def _pieces(messages: Sequence[Message], limit: int, count: Counter, prompt: str) -> Iterator[str]:
    """The conversation written out, in pieces of which each fits with a summary of the earlier ones beside it."""
    text = transcript(messages)
    size = max(
        1000, (limit // 2 - count(Request(messages=[Message.user(prompt)]))) * 2
    )  # two characters a token: safe for any script but few
    while text:
        cut = text.rfind("\n\n", 0, size) if len(text) > size else len(text)
        cut = size if cut <= 0 else cut
        yield text[:cut]
        text = text[cut:].lstrip("\n")


# ---------------------------------------------------------------- on its own


def compact_if_needed(
    provider: Provider, request: Request, limit: int | None = None, compactor: Compactor | None = None
) -> Compaction:
    """Compact a request that does not fit. limit: tokens that fit; by default what the provider's window leaves (`room`). A
    request whose limit is not known stays as it is."""
    return _finished(run(_alone(provider, request, limit, compactor, False)))


def force_compact(
    provider: Provider, request: Request, limit: int | None = None, compactor: Compactor | None = None
) -> Compaction:
    """Compact a request whether or not it fits, down to its last turn: for a service that said that it is too long."""
    return _finished(run(_alone(provider, request, limit, compactor, True)))


async def acompact_if_needed(
    provider: AsyncProvider, request: Request, limit: int | None = None, compactor: Compactor | None = None
) -> Compaction:
    """`compact_if_needed` in the async colour."""
    return _finished(await arun(_alone(provider, request, limit, compactor, False)))


async def aforce_compact(
    provider: AsyncProvider, request: Request, limit: int | None = None, compactor: Compactor | None = None
) -> Compaction:
    """`force_compact` in the async colour."""
    return _finished(await arun(_alone(provider, request, limit, compactor, True)))


UNLIMITED = 10**9


def _alone(provider: AnyProvider, request: Request, limit: int | None, compactor: Compactor | None, force: bool) -> Flow:
    """A flow that returns a Compaction; the drivers hand on whatever a flow returns."""
    known = room(request, model_of(provider)) if limit is None else limit
    flow = (compactor or Compactor()).compact(provider, request, UNLIMITED if known is None else known, force=force)
    return cast(Flow, flow)


def _finished(value: Any) -> Compaction:
    return cast(Compaction, value)
