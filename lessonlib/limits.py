"""Limits: keep to requests per minute and tokens per minute, by waiting before the request instead of being turned away.

Reserve first, wait, then send; correct when the real usage is known; give back what was not used. Booking afterwards lets
every concurrent call through before the first one is counted.

A limit is a sliding window, and exact: in no stretch of 60 seconds do more requests, or more tokens, start than it says.
(A bucket that refills lets twice the limit through in its first minute.) `burst` is one more window, shorter and of the same
rate: with 60 requests a minute and a burst of 5, no more than 5 start in any 5 seconds.

Waiting is in order of arrival: a call may start when everything that waits before it could start too. It sleeps until the
first moment at which that can be true and looks again, because meanwhile a usage may have been corrected or a call before it
cancelled. A request that is larger than the limit could never start, so it is an error at once.

One `Limiter` is safe under threads and tasks and may be shared by several policies: limits belong to an account, not to an
object. Its lock is held for a few instructions, never across a wait. Put Retry outside of Limits, so that each attempt is
counted. Compared with the known libraries: docs/decisions/limits.md.

What this file does not do: it does not read the service's own rate limit headers, and it cannot see other processes.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lessonlib.errors import CircuitOpen, InvalidRequest, LessonError, PromptTooLong, SpendLimit
from lessonlib.estimate import estimate_tokens
from lessonlib.flow import Call, Flow, P, Policy, Sleep, Sleeper, spent, total
from lessonlib.types import Request, Response, Usage

NOTHING_SENT = (CircuitOpen, InvalidRequest, PromptTooLong, SpendLimit)
"""Errors that were raised before anything went out: what was reserved for it is given back."""


@dataclass(slots=True, eq=False)
class Entry:
    """One call in one window: what it costs there, and when it started."""

    cost: float
    start: float = math.inf
    counted: bool = False


@dataclass(slots=True, eq=False)
class Window:
    """At most `limit` may start in any `seconds`. Not safe by itself: the Limiter holds the lock."""

    limit: float
    seconds: float
    started: deque[Entry] = field(default_factory=deque)
    used: float = 0.0

    def delay(self, now: float, ahead: float, cost: float) -> float:
        """Seconds until `cost` can start after `ahead` has; 0 if now. Never more than the true time, so that a caller who
        sleeps that long and asks again is never late."""
        while self.started and self.started[0].start + self.seconds <= now:
            gone = self.started.popleft()
            gone.counted = False
            self.used -= gone.cost
        if not self.started:
            self.used = 0.0  # no rest of rounding may keep anybody waiting
        total = self.used + ahead + cost
        if total <= self.limit:
            return 0.0
        # What is asked for is number `total` in the row of all that has started or waits. It can start `seconds` after what
        # stands a whole limit before it; counted back like that, it comes to something that has started, or to now.
        turns = math.ceil((total - self.used) / self.limit)
        if total - (turns - 1) * self.limit <= self.limit:
            return (turns - 1) * self.seconds
        place = total - turns * self.limit
        for entry in self.started:
            place -= entry.cost
            if place <= 0:
                return entry.start + turns * self.seconds - now
        return turns * self.seconds  # only if rounding left a rest of `place`

    def start(self, entry: Entry, now: float) -> None:
        entry.start = now
        entry.counted = True
        self.started.append(entry)
        self.used += entry.cost

    def change(self, entry: Entry, cost: float) -> None:
        if entry.counted:
            self.used += cost - entry.cost
        entry.cost = cost


class Ticket:
    """A place in the queue, and what it costs in each window."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries


class Limiter:
    """The windows of one account, and the queue before them.

    requests_per_minute, tokens_per_minute: None does not limit. burst: requests that may start together.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        burst: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given = [limit for limit in (requests_per_minute, tokens_per_minute, burst) if limit is not None]
        if requests_per_minute is None and (tokens_per_minute is None or burst is not None):
            raise ValueError("Limits needs requests_per_minute, tokens_per_minute or both; burst needs the first")
        if min(given) < 1:
            raise ValueError("a limit below 1 would never let a request through")
        self.tokens_per_minute = tokens_per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[Ticket, None] = {}  # a dict keeps the order and forgets any one at once
        self._windows: list[Window] = []
        if requests_per_minute is not None:
            self._windows.append(Window(requests_per_minute, 60.0))
            if burst is not None:
                self._windows.append(Window(burst, 60.0 * burst / requests_per_minute))
        self._tokens = len(self._windows)  # the place of the token window; those before it count requests
        if tokens_per_minute is not None:
            self._windows.append(Window(tokens_per_minute, 60.0))

    def reserve(self, tokens: float = 0) -> Ticket:
        """Take a place at the end of the queue. Raises PromptTooLong if so many tokens can never start."""
        limit = self.tokens_per_minute
        if limit is not None and tokens > limit:
            raise PromptTooLong(
                f"about {tokens:.0f} tokens, but the limit is {limit:.0f} a minute: no waiting would make it fit",
                tokens=math.ceil(tokens), limit=math.floor(limit),
            )  # fmt: skip
        ticket = Ticket([Entry(1.0 if place < self._tokens else tokens) for place in range(len(self._windows))])
        with self._lock:
            self._waiting[ticket] = None
        return ticket

    def wait(self, ticket: Ticket) -> float:
        """0 if the call starts now; else the seconds to sleep before asking again."""
        with self._lock:
            now = self._clock()
            ahead = self._ahead(ticket)
            delay = max(
                window.delay(now, before, entry.cost)
                for window, before, entry in zip(self._windows, ahead, ticket.entries, strict=True)
            )
            if delay <= 0:
                del self._waiting[ticket]
                for window, entry in zip(self._windows, ticket.entries, strict=True):
                    window.start(entry, now)
            return delay

    def correct(self, ticket: Ticket, tokens: float) -> None:
        """The call has used so many tokens: more than reserved make the next ones wait longer."""
        with self._lock:
            for window, entry in list(zip(self._windows, ticket.entries, strict=True))[self._tokens :]:
                window.change(entry, tokens)

    def give_back(self, ticket: Ticket) -> None:
        """The call was not sent: it has cost nothing, and whoever comes next may have its place."""
        with self._lock:
            self._waiting.pop(ticket, None)
            for window, entry in zip(self._windows, ticket.entries, strict=True):
                window.change(entry, 0.0)

    def _ahead(self, ticket: Ticket) -> list[float]:
        """What waits before `ticket`, in each window."""
        ahead = [0.0] * len(self._windows)
        for other in self._waiting:
            if other is ticket:
                break
            for place, entry in enumerate(other.entries):
                ahead[place] += entry.cost
        return ahead


def total_tokens(usage: Usage) -> int | None:
    """Input and output together; None if neither was reported."""
    counts = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return sum(counts) if counts else None


class Limits(Policy[P]):
    """Waits until a request fits the limits, then asks its provider.

    count: tokens of a request's input, before it is sent (an estimate: see estimate.py for the default).
    used: tokens that an answer has used, for the correction. The default adds input and output; where a service does not
        count cached input, leave it out here.
    limiter: shared with other policies of the same account; without it, the settings make one of its own.

    The output is reserved as the request's `max_tokens`, as far as the limit allows; without a cap nothing is reserved for
    it, and the correction books it.
    """

    def __init__(
        self,
        provider: P,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        burst: int | None = None,
        *,
        count: Callable[[Request], float] = estimate_tokens,
        used: Callable[[Usage], float | None] = total_tokens,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleeper | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        super().__init__(provider, sleep=sleep)
        self.limiter = limiter or Limiter(requests_per_minute, tokens_per_minute, burst, clock)
        self._count = count
        self._used = used

    def flow(self, request: Request) -> Flow:
        ticket = self.limiter.reserve(self._reservation(request))
        sent = False
        try:
            while (delay := self.limiter.wait(ticket)) > 0:
                yield Sleep(delay)
            sent = True
            response: Response = yield Call(self._providers[0], request)
            self._correct(ticket, total((response.usage, response.retried)))
            return response
        except LessonError as error:
            sent = sent and (bool(error.attempts) or not isinstance(error, NOTHING_SENT))
            self._correct(ticket, spent(error))
            raise
        finally:  # also when the flow is closed while it waits
            if not sent:
                self.limiter.give_back(ticket)

    def _reservation(self, request: Request) -> float:
        limit = self.limiter.tokens_per_minute
        if limit is None:
            return 0
        tokens = self._count(request)
        return tokens if tokens > limit else min(limit, tokens + (request.max_tokens or 0))

    def _correct(self, ticket: Ticket, usage: Usage | None) -> None:
        tokens = self._used(usage) if usage is not None else None
        if tokens is not None:
            self.limiter.correct(ticket, tokens)
