"""Breaker: stop asking an endpoint that keeps failing, and find out cautiously when it is well again.

    CLOSED      calls pass; failures within the window are counted
      | too many: at least `threshold` failures, and at least `ratio` of the calls in the window
    OPEN        no call passes: CircuitOpen at once, nothing is sent
      | `cooldown` seconds later
    HALF_OPEN   one call passes, the probe; success closes the circuit, failure opens it for another `cooldown`

A fallback chain is not a breaker. A chain asks its first provider every single time and learns nothing: while that one is
down, every request pays for its timeout first. A breaker remembers; inside a chain it makes the switch immediate. So: one
breaker around each endpoint, one chain around the breakers.

What counts as a failure: an error of the service that a retry could cure (5xx, overload, rate limit), a broken connection,
an answer that is none. A 400 says that the endpoint is well. A call that was cancelled, whose stream the consumer closed, or
that was never sent, says nothing; if it was the probe, the next call is one. A call from before the last change of state is
no news and changes nothing.

Both colours, threads and tasks may share one `Circuit`: its lock is held for a few instructions, never across a wait.
Compared with the known libraries: docs/decisions/breaker.md. The pattern: https://martinfowler.com/bliki/CircuitBreaker.html
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum

from lessonlib.errors import APIError, CircuitOpen, InvalidRequest, LessonError, PromptTooLong, SpendLimit
from lessonlib.flow import Call, Flow, P, Policy
from lessonlib.types import Request, Response

log = logging.getLogger("lessonlib")


class State(StrEnum):
    """The three states."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Circuit:
    """What is known about one endpoint. Knows no provider, so that several Breakers can share it.

    threshold, window, ratio: it opens at `threshold` failures within `window` seconds, if they are at least `ratio` of the
        calls that ended in that time: five failures mean much among ten calls and nothing among a thousand.
    cooldown: seconds until a probe may pass.
    clock: monotonic seconds.
    on_change: called with the old and the new state, outside the lock; a plain, quick function. What it raises reaches the
        call that caused the change.
    """

    def __init__(
        self,
        threshold: int = 5,
        window: float = 60.0,
        cooldown: float = 30.0,
        ratio: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[State, State], object] | None = None,
    ) -> None:
        if threshold < 1 or window <= 0 or cooldown < 0 or not 0 <= ratio <= 1:
            raise ValueError("a Circuit needs threshold >= 1, window > 0, cooldown >= 0 and a ratio between 0 and 1")
        self.threshold = threshold
        self.window = window
        self.cooldown = cooldown
        self.ratio = ratio
        self.on_change = on_change
        self._clock = clock
        self._lock = threading.Lock()
        self._state = State.CLOSED
        self._epoch = 0  # number of changes of state: outcomes of earlier epochs are old news
        self._ended: deque[tuple[float, bool]] = deque()  # (when, failed) of the calls in the window
        self._failures = 0
        self._opened = 0.0
        self._probing = False

    @property
    def state(self) -> State:
        """The state now: an open circuit whose cooldown is over is half open, whether or not somebody has tried."""
        with self._lock:
            return State.HALF_OPEN if self._state is State.OPEN and self._left() <= 0 else self._state

    def admit(self) -> int:
        """Let a call pass, or raise CircuitOpen. The number that is returned goes into `settle`, once."""
        with self._lock:
            before = self._state
            if before is not State.CLOSED:
                self._admit_probe()
            after, epoch = self._state, self._epoch
        self._report(before, after)
        return epoch

    def settle(self, epoch: int, failed: bool | None) -> None:
        """How the call ended; None if that says nothing about the endpoint."""
        with self._lock:
            before = self._state
            if epoch == self._epoch:
                self._probing = False
                if failed is not None:
                    self._count(failed)
            after = self._state
        self._report(before, after)

    # ------------------------------------------------------------ inside the lock

    def _left(self) -> float:
        return self._opened + self.cooldown - self._clock()

    def _admit_probe(self) -> None:
        if self._state is State.OPEN:
            left = self._left()
            if left > 0:
                raise _open(left)
            self._move(State.HALF_OPEN)
        if self._probing:
            raise _open(None)
        self._probing = True

    def _count(self, failed: bool) -> None:
        if self._state is State.HALF_OPEN:
            self._move(State.OPEN if failed else State.CLOSED)
            return
        now = self._clock()
        self._ended.append((now, failed))
        self._failures += failed
        while self._ended[0][0] <= now - self.window:
            self._failures -= self._ended.popleft()[1]
        if failed and self._failures >= max(self.threshold, self.ratio * len(self._ended)):
            self._move(State.OPEN)

    def _move(self, state: State) -> None:
        self._state = state
        self._epoch += 1
        self._probing = False
        self._ended.clear()
        self._failures = 0
        if state is State.OPEN:
            self._opened = self._clock()

    def _report(self, before: State, after: State) -> None:
        if before is not after:
            log.info("circuit: %s -> %s", before, after)
            if self.on_change is not None:
                self.on_change(before, after)


def _open(left: float | None) -> CircuitOpen:
    when = "a probe is under way" if left is None else f"a probe may pass in {left:.1f} s"
    error = CircuitOpen(f"the circuit is open, because this endpoint kept failing; {when}")
    error.retry_after = left
    return error


NOTHING_SENT = (CircuitOpen, InvalidRequest, PromptTooLong, SpendLimit)
"""Errors that were raised before anything went out."""


def is_failure(error: LessonError) -> bool | None:
    """Whether an error says that the endpoint is ill (True) or well (False); None if it says nothing."""
    if isinstance(error, NOTHING_SENT):
        return None
    return error.retryable if isinstance(error, APIError) else True


class Breaker(Policy[P]):
    """Asks its provider only while the circuit lets calls pass; else raises CircuitOpen at once.

    circuit: shared with other Breakers of the same endpoint; without it, the settings make one of its own.
    failure: what an error says about the endpoint: ill (True), well (False), nothing (None).
    """

    def __init__(
        self,
        provider: P,
        threshold: int = 5,
        window: float = 60.0,
        cooldown: float = 30.0,
        ratio: float = 0.5,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[State, State], object] | None = None,
        circuit: Circuit | None = None,
        failure: Callable[[LessonError], bool | None] = is_failure,
    ) -> None:
        super().__init__(provider)
        self.circuit = circuit or Circuit(threshold, window, cooldown, ratio, clock, on_change)
        self._is_failure = failure

    @property
    def state(self) -> State:
        """The circuit's state."""
        return self.circuit.state

    def flow(self, request: Request) -> Flow:
        epoch = self.circuit.admit()
        failed: bool | None = None
        try:
            response: Response = yield Call(self._providers[0], request)
            failed = False
            return response
        except LessonError as error:
            failed = self._is_failure(error)
            raise
        finally:  # also when the flow is closed: the probe's place is given back
            self.circuit.settle(epoch, failed)
