"""Breaker: the three states, the window, the probe, and many callers at once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lessonlib.breaker import Breaker, Circuit, State
from lessonlib.errors import APIError, CircuitOpen, InvalidRequest, LessonError, NotAStream
from lessonlib.types import Done
from tests.fakes import (
    ASK,
    AFake,
    Clock,
    Fake,
    bad_request,
    both,
    cancel_everywhere,
    cut,
    drain,
    first_event,
    overloaded,
    said,
    streamed,
    whole,
)

COLOURS = [Fake, AFake]
BODIES = [whole, streamed]


def fails(policy: Any, times: int = 1, body: Any = whole) -> None:
    for _ in range(times):
        with pytest.raises(LessonError):
            body(policy)


def opened(provider: Any, clock: Clock, **settings: Any) -> Breaker[Any]:
    """A breaker whose circuit two failures have just opened; the provider's script goes on after them."""
    breaker: Breaker[Any] = Breaker(provider, threshold=2, cooldown=30, clock=clock, **settings)
    fails(breaker, 2)
    assert breaker.state is State.OPEN
    return breaker


# ---------------------------------------------------------------- the three states


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("body", BODIES)
def test_it_opens_at_the_threshold_and_then_sends_nothing(colour: type[Fake], body: Any) -> None:
    provider, clock = colour(overloaded(), for_ever=True), Clock()
    breaker = Breaker(provider, threshold=3, cooldown=30, clock=clock)
    fails(breaker, 3, body)
    clock.now = 12
    with pytest.raises(CircuitOpen, match=r"18\.0 s") as caught:
        body(breaker)
    assert caught.value.retry_after == 18
    assert not caught.value.retryable
    assert provider.calls == 3


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("body", BODIES)
def test_after_the_cooldown_a_probe_that_succeeds_closes_it(colour: type[Fake], body: Any) -> None:
    clock = Clock()
    breaker = opened(colour(overloaded(), overloaded(), "Hi", "Hi"), clock)
    clock.now = 30
    assert breaker.state is State.HALF_OPEN
    body(breaker)
    assert breaker.state is State.CLOSED
    body(breaker)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("body", BODIES)
def test_a_probe_that_fails_opens_it_for_another_cooldown(colour: type[Fake], body: Any) -> None:
    clock = Clock()
    provider = colour(overloaded(), for_ever=True)
    breaker = opened(provider, clock)
    clock.now = 30
    fails(breaker, 1, body)
    assert provider.calls == 3
    clock.now = 59
    with pytest.raises(CircuitOpen):
        body(breaker)
    assert provider.calls == 3


def test_while_the_probe_is_under_way_nobody_else_passes() -> None:
    clock = Clock()
    breaker = opened(Fake(overloaded(), overloaded(), said("a", "b")), clock)
    clock.now = 30
    probe = breaker.stream(ASK)
    next(probe)
    with pytest.raises(CircuitOpen, match="probe is under way") as caught:
        whole(breaker)
    assert caught.value.retry_after is None
    assert [type(event) for event in probe][-1] is Done
    assert breaker.state is State.CLOSED


@pytest.mark.parametrize("colour", COLOURS)
def test_a_probe_that_is_given_up_leaves_its_place_to_the_next(colour: type[Fake]) -> None:
    """The consumer closed the stream: that says nothing about the endpoint."""
    clock = Clock()
    provider = colour(overloaded(), overloaded(), said("a", "b"), said("c"))
    breaker = opened(provider, clock)
    clock.now = 30
    first_event(breaker)
    assert provider.open == 0
    assert breaker.state is State.HALF_OPEN
    streamed(breaker)
    assert breaker.state is State.CLOSED


def test_a_success_is_booked_before_the_consumer_sees_done() -> None:
    clock = Clock()
    breaker = opened(Fake(overloaded(), overloaded(), said("a")), clock)
    clock.now = 30
    for event in (events := breaker.stream(ASK)):
        if isinstance(event, Done):
            break
    assert breaker.state is State.CLOSED
    events.close()


# ---------------------------------------------------------------- the window


def test_failures_older_than_the_window_do_not_count() -> None:
    clock = Clock()
    breaker = Breaker(Fake(overloaded(), for_ever=True), threshold=2, window=60, clock=clock)
    fails(breaker)
    clock.now = 60
    fails(breaker)
    assert breaker.state is State.CLOSED
    clock.now = 119
    fails(breaker)
    assert breaker.state is State.OPEN


def test_a_few_failures_among_many_successes_do_not_open_it() -> None:
    """Five failures in a minute mean much among ten calls, and nothing among a thousand."""
    busy = Circuit(threshold=5, ratio=0.5, clock=Clock())
    for number in range(1000):
        busy.settle(busy.admit(), failed=number % 100 == 0)
    assert busy.state is State.CLOSED
    quiet = Circuit(threshold=5, ratio=0.5, clock=Clock())
    for number in range(10):
        quiet.settle(quiet.admit(), failed=number % 2 == 1)
    assert quiet.state is State.OPEN


def test_an_outcome_from_before_the_last_change_is_no_news() -> None:
    """A slow call that was let through while the circuit was closed must not close the open one, nor end a probe."""
    clock = Clock()
    circuit = Circuit(threshold=2, cooldown=30, clock=clock)
    slow, slow_too = circuit.admit(), circuit.admit()
    for _ in range(2):
        circuit.settle(circuit.admit(), failed=True)
    circuit.settle(slow, failed=False)
    assert circuit.state is State.OPEN
    clock.now = 30
    probe = circuit.admit()
    circuit.settle(slow_too, failed=True)
    with pytest.raises(CircuitOpen, match="under way"):
        circuit.admit()
    circuit.settle(probe, failed=False)
    assert circuit.state is State.CLOSED


# ---------------------------------------------------------------- what counts


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (overloaded(), True),
        (APIError("server", status=503, retryable=True), True),
        (cut(), True),
        (NotAStream("a page"), True),
        (bad_request(), False),
        (APIError("no credit", status=429), False),
        (InvalidRequest("cannot be written"), None),
        (CircuitOpen("further in"), None),
    ],
)
def test_what_an_error_says_about_the_endpoint(error: LessonError, verdict: bool | None) -> None:
    """Ill, well, or nothing: seen by what a probe that ends so does to the circuit."""
    clock = Clock()
    breaker = opened(Fake(overloaded(), overloaded(), error), clock)
    clock.now = 30
    fails(breaker)
    assert breaker.state is {True: State.OPEN, False: State.CLOSED, None: State.HALF_OPEN}[verdict]


def test_a_foreign_error_says_nothing() -> None:
    clock = Clock()
    breaker = opened(Fake(overloaded(), overloaded(), ZeroDivisionError()), clock)
    clock.now = 30
    with pytest.raises(ZeroDivisionError):
        whole(breaker)
    assert breaker.state is State.HALF_OPEN


def test_a_rule_of_ones_own() -> None:
    breaker = Breaker(Fake(bad_request(), for_ever=True), threshold=2, failure=lambda error: True, clock=Clock())
    fails(breaker, 2)
    assert breaker.state is State.OPEN


@pytest.mark.parametrize("bad", [{"threshold": 0}, {"window": 0}, {"cooldown": -1}, {"ratio": 1.5}])
def test_settings_without_sense_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Circuit needs"):
        Breaker(Fake(), **bad)


# ---------------------------------------------------------------- changes, sharing, cancellation


def test_changes_are_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    changes: list[tuple[State, State]] = []
    clock = Clock()
    with caplog.at_level("INFO", logger="lessonlib"):
        breaker = opened(Fake(overloaded(), overloaded(), "Hi"), clock, on_change=lambda a, b: changes.append((a, b)))
        clock.now = 30
        whole(breaker)
    assert changes == [(State.CLOSED, State.OPEN), (State.OPEN, State.HALF_OPEN), (State.HALF_OPEN, State.CLOSED)]
    assert "closed -> open" in caplog.text


def test_breakers_of_one_endpoint_share_a_circuit_whatever_their_colour() -> None:
    circuit = Circuit(threshold=2, clock=Clock())
    fails(Breaker(Fake(overloaded()), circuit=circuit))
    fails(Breaker(AFake(overloaded()), circuit=circuit))
    with pytest.raises(CircuitOpen):
        whole(Breaker(Fake("never"), circuit=circuit))


def test_both_colours_agree_step_by_step() -> None:
    def story(provider: Any) -> list[Any]:
        clock = Clock()
        breaker = Breaker(provider, threshold=2, cooldown=10, clock=clock)
        told = []
        for now in (0, 1, 2, 11, 12, 30):
            clock.now = now
            try:
                told.append(whole(breaker).text)
            except LessonError as error:
                told.append(type(error).__name__)
            told.append(breaker.state)
        return told

    story_told = both(lambda colour: colour(overloaded(), cut(), bad_request(), "Hi", "Hi"), story)
    assert story_told == [
        "APIError", "closed", "IncompleteStream", "open", "CircuitOpen", "open", "APIError", "closed", "Hi", "closed", "Hi",
        "closed",
    ]  # fmt: skip


@pytest.mark.parametrize("streaming", [False, True])
def test_cancellation_at_every_await_gives_the_probe_back(streaming: bool) -> None:
    def make() -> Any:
        clock = Clock()
        provider = AFake(overloaded(), overloaded(), said("a", "b"))
        breaker = opened(provider, clock)
        clock.now = 30

        def check() -> None:
            assert provider.open == 0
            assert breaker.state in (State.HALF_OPEN, State.CLOSED)
            breaker.circuit.admit()

        return (drain(breaker.stream(ASK)) if streaming else breaker.generate(ASK)), check

    assert cancel_everywhere(make) >= 1


# ---------------------------------------------------------------- many at once


def test_sixty_four_threads_make_one_probe() -> None:
    clock = Clock()
    circuit = Circuit(threshold=1, cooldown=0, clock=clock)
    circuit.settle(circuit.admit(), failed=True)
    line_up = threading.Barrier(64)
    passed: list[int] = []
    refused: list[CircuitOpen] = []

    def one() -> None:
        line_up.wait()
        try:
            passed.append(circuit.admit())
        except CircuitOpen as error:
            refused.append(error)

    threads = [threading.Thread(target=one) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(passed), len(refused)) == (1, 63)


def test_sixty_four_threads_lose_no_outcome() -> None:
    circuit = Circuit(threshold=10**9, clock=Clock())

    def many() -> None:
        for number in range(200):
            circuit.settle(circuit.admit(), failed=number % 2 == 0)

    threads = [threading.Thread(target=many) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (circuit._failures, len(circuit._ended)) == (64 * 100, 64 * 200)


def test_a_thousand_tasks_make_one_probe_at_a_time() -> None:
    async def main() -> None:
        clock = Clock()
        provider = AFake(overloaded(), "Hi", for_ever=True)
        breaker = Breaker(provider, threshold=1, cooldown=0, clock=clock)
        with pytest.raises(APIError):
            await breaker.generate(ASK)
        results = await asyncio.gather(*(breaker.generate(ASK) for _ in range(1000)), return_exceptions=True)
        refused = [result for result in results if isinstance(result, CircuitOpen)]
        assert len(refused) == 999
        assert provider.calls == 2
        assert breaker.state is State.CLOSED

    asyncio.run(main())


# ---------------------------------------------------------------- any schedule


class AnySchedule(RuleBasedStateMachine):
    """Calls begin, end and pass out of sight in any order; a simple model of the three states must agree."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.circuit = Circuit(threshold=3, window=20, cooldown=10, ratio=0, clock=self.clock)
        self.pending: list[tuple[int, int]] = []  # (epoch of the model, number from the circuit)
        self.model = State.CLOSED
        self.epoch = 0
        self.failed_at: list[float] = []
        self.opened_at = 0.0
        self.probing = False

    @rule(seconds=st.floats(0, 15))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def a_call_begins(self) -> None:
        due = self.model is State.OPEN and self.opened_at + 10 - self.clock.now <= 0
        if due:
            self.move(State.HALF_OPEN)
        expected = self.model is State.CLOSED or (self.model is State.HALF_OPEN and not self.probing)
        try:
            number = self.circuit.admit()
        except CircuitOpen:
            assert not expected
            return
        assert expected
        self.probing = self.model is State.HALF_OPEN
        self.pending.append((self.epoch, number))

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), failed=st.sampled_from([True, False, None]))
    def a_call_ends(self, data: Any, failed: bool | None) -> None:
        epoch, number = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
        self.circuit.settle(number, failed)
        if epoch != self.epoch:
            return
        self.probing = False
        if self.model is State.HALF_OPEN and failed is not None:
            self.move(State.OPEN if failed else State.CLOSED)
        elif self.model is State.CLOSED and failed:
            self.failed_at = [when for when in (*self.failed_at, self.clock.now) if when > self.clock.now - 20]
            if len(self.failed_at) >= 3:
                self.move(State.OPEN)

    def move(self, state: State) -> None:
        self.model, self.epoch, self.failed_at, self.probing = state, self.epoch + 1, [], False
        self.opened_at = self.clock.now

    @invariant()
    def states_agree(self) -> None:
        due = self.model is State.OPEN and self.opened_at + 10 - self.clock.now <= 0
        assert self.circuit.state is (State.HALF_OPEN if due else self.model)


TestAnySchedule = AnySchedule.TestCase
TestAnySchedule.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
