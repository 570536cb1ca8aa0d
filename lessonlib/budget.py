"""Budget: two policies that look before the call. Does it fit the model's window, and may it still be spent?

    WindowGuard(client)                            PromptTooLong, with the counts, instead of a request that cannot fit
    WindowGuard(client, on_full="compact")         the model sums its old turns up first (compact.py)
    Metered(client, ledger)                        every answer and every failed attempt is booked (ledger.py)
    Metered(client, ledger, limit="5.00")          and a call that could pass the limit is refused: SpendLimit

To look before is cheaper than to be told: a service that refuses a prompt has cost a round trip and leaves a tool loop
standing half way. A refusal costs nothing here, and nothing is sent.

A window that is not known is not guarded, and a price that is not known is never taken for 0: under a limit, a call without
a price is refused, because no limit could be kept (`unpriced="allow"` lets it pass).

Where to put them: Metered directly around a client, inside of Retry, so that each attempt is booked under its own name; the
guard outside of Retry, since what does not fit now will not fit in a second.

What this file does not do: no rates (limits.py), no thinking budgets, and no vendor's own quota.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator
from decimal import Decimal
from functools import partial
from typing import Any, Literal

from lessonlib import capabilities
from lessonlib.compact import Compaction, Compactor, room
from lessonlib.errors import APIError, CircuitOpen, InvalidRequest, LessonError, PromptTooLong, SpendLimit
from lessonlib.flow import Call, Do, Effect, Flow, P, Policy, model_of, with_retried
from lessonlib.ledger import Hold, Ledger
from lessonlib.prices import MILLION
from lessonlib.tokens import count as count_request
from lessonlib.types import Message, Request, Response

log = logging.getLogger("lessonlib")

TOO_LONG = frozenset({"context_length_exceeded"})
"""Error codes with which a service says that a prompt does not fit (docs/wire/openai.md, errors)."""


# ---------------------------------------------------------------- the window


class WindowGuard(Policy[P]):
    """Sends a request only if it fits the model's window.

    on_full: "raise" refuses what does not fit; "compact" has old turns summed up, then sends.
    buffer: tokens of the window that are left free, for the answer and for the error of the count; a tenth of the window if
        not given (13,000 of 128,000). A request whose `max_tokens` is larger gets that.
    window: of the model; by default what capabilities.py knows. Without either, every request passes.
    count: tokens of a request; by default tokens.count for the model.
    compactor: how conversations are compacted. on_compact: called with each Compaction; may be a coroutine function.

    The caller's history is not touched, so the next request brings the old turns again. A conversation that begins as one
    that has been compacted gets the same summary again: it is written once, and the beginning that the model sees stays the
    same, and so do its prompt cache and its signed thinking. `remember`: for how many conversations that is kept.

    With "compact" a service that says that a prompt is too long (an error code, not a text) is asked once more with it
    compacted, as long as nothing was handed out.
    """

    def __init__(
        self,
        provider: P,
        on_full: Literal["raise", "compact"] = "raise",
        *,
        buffer: int | None = None,
        window: int | None = None,
        count: Callable[[Request], int] | None = None,
        compactor: Compactor | None = None,
        on_compact: Callable[[Compaction], Any] | None = None,
        remember: int = 16,
    ) -> None:
        super().__init__(provider)
        if on_full not in ("raise", "compact"):
            raise ValueError(f'on_full is "raise" or "compact", not {on_full!r}')
        self.on_full = on_full
        self.buffer = buffer
        self.window = window
        self.compactor = compactor or Compactor(count=count)
        self.on_compact = on_compact
        self._count = count
        self._known: deque[tuple[list[Message], list[Message]]] = deque(maxlen=remember)  # (as asked, as sent)

    def count(self, request: Request) -> int:
        """Tokens of a request as this guard counts them."""
        return self._count(request) if self._count is not None else count_request(request, self.model)

    def limit(self, request: Request) -> int | None:
        """Tokens of input that fit, None if the window is not known."""
        return room(request, self.model, self.window, self.buffer)

    def flow(self, request: Request) -> Flow:
        asked = request
        compaction: Compaction | None = None
        if self.on_full == "compact":
            request = self._remembered(request)
        limit = self.limit(request)
        if limit is not None and (tokens := self.count(request)) > limit:
            if self.on_full == "raise":
                raise PromptTooLong(
                    f"the prompt has about {tokens} tokens, and {limit} fit{self._of(request)}", tokens=tokens, limit=limit
                )
            compaction = yield from self._compact(asked, request, limit, force=False)
            request = compaction.request
        call = Call(self._providers[0], request)
        try:
            response: Response = yield call
        except APIError as error:
            if self.on_full == "raise" or call.started or error.code not in TOO_LONG or compaction is not None:
                raise
            compaction = yield from self._compact(asked, request, limit or self.count(request), force=True)
            response = yield Call(self._providers[0], compaction.request)
        return with_retried(response, None if compaction is None else compaction.usage)

    def _compact(self, asked: Request, request: Request, limit: int, *, force: bool) -> Generator[Effect, Any, Compaction]:
        compaction = yield from self.compactor.compact(self._providers[0], request, limit, force=force)
        if compaction.replaced:
            self._known.append((list(asked.messages), list(compaction.request.messages)))
            if self.on_compact is not None:
                yield Do(partial(self.on_compact, compaction))
        return compaction

    def _remembered(self, request: Request) -> Request:
        """The request with the beginning that was sent last time, if it begins as one that was compacted."""
        longest = 0
        messages = request.messages
        for asked, sent in list(self._known):
            if len(asked) > longest and request.messages[: len(asked)] == asked:
                longest = len(asked)
                messages = sent + request.messages[longest:]
        return request.replace(messages=messages) if longest else request

    def _of(self, request: Request) -> str:
        name = request.model or self.model
        return f" the window of {name}" if name else ""


# ---------------------------------------------------------------- the money


class Metered(Policy[P]):
    """Books what its provider uses, and, with a limit, refuses the call that could pass it.

    limit: amount in the ledger's currency, as text, int or Decimal (a float is no amount of money). Before each call its
        price is estimated and put aside, so that calls at the same time cannot spend the same money twice.
    output: tokens of the answer in that estimate, for requests without `max_tokens`. Such an answer may be longer and pass
        the limit by as much; with `max_tokens` it cannot.
    unpriced: under a limit, "refuse" or "allow" calls whose price is not known.
    count: tokens of a request; by default tokens.count for the model.

    What is booked: a finished answer; a failed call, with what it had used as far as that is known; a stream that the
    consumer closed, as unfinished. A call that was refused before anything was sent is nothing.
    """

    def __init__(
        self,
        provider: P,
        ledger: Ledger,
        limit: str | int | Decimal | None = None,
        *,
        output: int = 1000,
        unpriced: Literal["refuse", "allow"] = "refuse",
        count: Callable[[Request], int] | None = None,
    ) -> None:
        super().__init__(provider)
        if isinstance(limit, float):
            raise TypeError("a limit is an amount of money: write it as text, int or Decimal")
        if _books_in(provider, ledger):
            raise ValueError("this ledger is already in use inside: every answer would be booked twice")
        self.ledger = ledger
        self.limit = None if limit is None else Decimal(limit)
        self._output = output
        self._unpriced = unpriced
        self._count = count

    def flow(self, request: Request) -> Flow:
        provider = self._providers[0]
        name, model = provider.name, request.model or model_of(provider) or ""
        hold = self._hold(request, model)
        closed = True
        try:
            response: Response = yield Call(provider, request)
            closed = False
            self.ledger.add(response, name, model)
            return response
        except LessonError as error:
            closed = False
            if error.attempts or not _nothing_sent(error):
                self.ledger.add_error(error, name, model)
            raise
        finally:
            if closed:  # the consumer closed the stream, or the task was cancelled
                self.ledger.add_unfinished(name, model)
            if hold is not None:
                self.ledger.release(hold)

    def _hold(self, request: Request, model: str) -> Hold | None:
        if self.limit is None:
            return None
        needed = self._price(request, model)
        if needed is None:
            if self._unpriced == "allow":
                return None
            raise InvalidRequest(
                f"the price of {model or 'the model'} is not known, so no limit could be kept: give the ledger prices that "
                'list it, or set unpriced="allow"'
            )
        hold = self.ledger.hold(needed, self.limit)
        if hold is None:
            spent = self.ledger.cost + self.ledger.held
            raise SpendLimit(
                f"{spent:.4f} of {self.limit} {self.ledger.prices.currency} are spent or under way, and this call may need "
                f"{needed:.4f}",
                spent=spent, needed=needed, limit=self.limit,
            )  # fmt: skip
        return hold

    def price(self, request: Request) -> Decimal | None:
        """About the most that a request may cost: all of its input fresh, the longest answer that it asks for. None: not
        known. This is what is put aside under a limit."""
        return self._price(request, request.model or model_of(self._providers[0]) or "")

    def _price(self, request: Request, model: str) -> Decimal | None:
        price = self.ledger.price(model)
        if price is None:
            return None
        tokens = self._count(request) if self._count is not None else count_request(request, model)
        rates = price.long if price.long is not None and price.above is not None and tokens > price.above else price.rates
        most = capabilities.of(model).max_output
        output = min(request.max_tokens or self._output, most) if most else request.max_tokens or self._output
        return (tokens * max(rates.input, rates.cache_write or rates.input) + output * rates.output) / MILLION


def _nothing_sent(error: LessonError) -> bool:
    return isinstance(error, (CircuitOpen, InvalidRequest, PromptTooLong, SpendLimit))


def _books_in(provider: Any, ledger: Ledger) -> bool:
    """Whether a policy inside books in `ledger` already."""
    if isinstance(provider, Metered) and provider.ledger is ledger:
        return True
    return any(_books_in(inner, ledger) for inner in getattr(provider, "_providers", ()))
