"""Retry: ask again when the error says that asking again can help.

    client = Retry(Client(...))        up to 4 requests, waits of up to 1, 2, 4 s between them

The rules, in the order in which they are asked:

1. Only a retryable LessonError is retried; which errors are is data of the wire formats (a quota that is used up is a 429
   too, and is not).
2. Never after an event has been handed out: what a person has read cannot be taken back (`Call.started`).
3. The server's word first: a wait that it asks for is obeyed to the second. A wait of 0 is no wish but the habit of some
   gateways, and counts as none. Above `max_wait` Retry gives up at once, with the original error: a caller can do better
   things in ten minutes than to sleep, and sleeping less than was asked for only fails again.
4. Otherwise full jitter: a random wait in [0, min(base * 2**n, cap)). All clients that were turned away together must not
   come back together; of the usual kinds of jitter the full one spreads them best
   (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
5. A host that cannot be reached at all (unknown name, connection refused) gets one more try only: it is mostly a wrong URL.
6. Two layers do not multiply: a Retry around a Retry counts the inner one's requests as its own.

What this file does not do: it does not change the request (see compact.py, resume.py) nor the service (see fallback.py).
Put Retry inside Fallback to try each service several times, outside to repeat the whole chain.
"""

from __future__ import annotations

import logging
import random as _random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

from lessonlib.errors import LessonError, TransportError, TransportTimeout
from lessonlib.flow import Call, Do, Effect, Flow, P, Policy, Sleep, Sleeper, spent, with_attempts, with_retried
from lessonlib.types import Request, Response

log = logging.getLogger("lessonlib")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, for `on_attempt`. number: from 1. error: None if it succeeded. wait: seconds until the next attempt,
    None if there is none."""

    number: int
    provider: str
    error: LessonError | None
    wait: float | None


class Retry(Policy[P]):
    """Asks up to `max_attempts` times.

    base, cap: the n-th wait of our own choosing is random in [0, min(base * 2**n, cap)).
    max_wait: the longest wait that the server may ask for.
    sleep, random: for tests; `random()` gives a number in [0, 1).
    on_attempt: called with an `Attempt` after each one; may be a coroutine function in the async colour.

    The error that is raised in the end carries the earlier ones in `attempts`; the Response that is returned carries what
    they had used in `retried`.
    """

    def __init__(
        self,
        provider: P,
        max_attempts: int = 4,
        base: float = 1.0,
        cap: float = 10.0,
        max_wait: float = 60.0,
        sleep: Sleeper | None = None,
        random: Callable[[], float] | None = None,
        on_attempt: Callable[[Attempt], Any] | None = None,
    ) -> None:
        super().__init__(provider, sleep=sleep)
        if max_attempts < 1 or min(base, cap, max_wait) < 0:
            raise ValueError("Retry needs max_attempts of at least 1, and no negative base, cap or max_wait")
        self.max_attempts = max_attempts
        self.base = base
        self.cap = cap
        self.max_wait = max_wait
        self.on_attempt = on_attempt
        self._random = random or _random.random

    def flow(self, request: Request) -> Flow:
        provider = self._providers[0]
        failed: list[LessonError] = []
        made = 0
        while True:
            call = Call(provider, request)
            try:
                response: Response = yield call
            except LessonError as error:
                failed.append(error)
                made += 1 + error.retries
            else:
                yield from self._tell(Attempt(len(failed) + 1, provider.name, None, None))
                return with_retried(response, spent(*failed))
            wait = self._wait(call, failed, made)
            yield from self._tell(Attempt(len(failed), provider.name, failed[-1], wait))
            if wait is None:
                failed[-1].retries = made - 1
                raise with_attempts(failed.pop(), failed)
            yield Sleep(wait)

    def _wait(self, call: Call, failed: list[LessonError], made: int) -> float | None:
        """Seconds until the next attempt, None if there must not be one."""
        error = failed[-1]
        if not error.retryable or call.started or made >= self.max_attempts:
            return None
        if len([earlier for earlier in failed if _unreachable(earlier)]) > 1:
            return None
        if error.retry_after is not None and error.retry_after > 0:
            return error.retry_after if error.retry_after <= self.max_wait else None
        return self.backoff(made - 1)

    def backoff(self, n: int) -> float:
        """The n-th wait (from 0) when the server does not say: full jitter."""
        longest = min(self.base * 2.0 ** min(n, 1000), self.cap)  # 2.0**1024 is an OverflowError
        return self._random() * longest

    def _tell(self, attempt: Attempt) -> Generator[Effect, Any, None]:
        if attempt.error is not None:  # the error's type only: its message may quote what was sent
            log.info("%s: attempt %d failed (%s), next in %s s", attempt.provider, attempt.number,
                     type(attempt.error).__name__, "no" if attempt.wait is None else f"{attempt.wait:.2f}")  # fmt: skip
        if self.on_attempt is not None:
            yield Do(partial(self.on_attempt, attempt))


def _unreachable(error: LessonError) -> bool:
    """Whether no connection came about: an unknown name or a refused one. A slow connection may be faster next time."""
    return isinstance(error, TransportError) and error.phase == "connect" and not isinstance(error, TransportTimeout)
