"""Policies in policies: the twelve orders of Retry, Fallback, Breaker and Limits that make sense, in every way of use.

A breaker belongs to one endpoint, so it stands inside of the fallback chain: that leaves twelve of the twenty-four orders. A
policy outside of the chain is there once, one inside stands before each endpoint. What the orders mean is written down in
docs/decisions/policy-order.md; its table is the one that is checked here.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from lessonlib.breaker import Breaker, State
from lessonlib.errors import CircuitOpen, LessonError
from lessonlib.fallback import Fallback
from lessonlib.flow import collect
from lessonlib.limits import Limiter, Limits
from lessonlib.retry import Retry
from lessonlib.types import Done, Event
from tests.fakes import (
    ASK,
    AFake,
    Clock,
    Fake,
    bad_request,
    cancel_everywhere,
    cut,
    drain,
    first_event,
    limited,
    overloaded,
    said,
    shown,
    streamed,
    whole,
)

ORDERS = ["".join(order) for order in itertools.permutations("RFBL") if order.index("F") < order.index("B")]
COLOURS = [Fake, AFake]
BODIES = [whole, lambda provider: collect(streamed(provider))]


class Nest:
    """Four policies in one order around two endpoints, the first letter outermost; and what is inside, to look at."""

    def __init__(self, order: str, *endpoints: Any, clock: Clock | None = None, attempts: int = 2, rate: int = 1000) -> None:
        self.order = order
        self.clock = clock or Clock()
        self.attempts = attempts
        self.rate = rate
        self.endpoints = endpoints
        self.limiters: list[Limiter] = []
        self.breakers: list[Breaker[Any]] = []
        outside, inside = order.split("F")
        self.policy = self.around(outside, Fallback([self.around(inside, endpoint) for endpoint in endpoints]))

    def around(self, letters: str, provider: Any) -> Any:
        for letter in reversed(letters):
            provider = getattr(self, letter)(provider)
        return provider

    def R(self, provider: Any) -> Any:
        return Retry(provider, max_attempts=self.attempts, sleep=self.sleep, random=lambda: 0.5)

    def B(self, provider: Any) -> Any:
        self.breakers.append(Breaker(provider, threshold=3, cooldown=1000, ratio=0, clock=self.clock))
        return self.breakers[-1]

    def L(self, provider: Any) -> Any:
        self.limiters.append(Limiter(self.rate, clock=self.clock))
        return Limits(provider, limiter=self.limiters[-1], sleep=self.sleep)

    def sleep(self, seconds: float) -> Any:
        """Moves the clock; in the async colour it is also a point at which the call can be cancelled."""
        self.clock.sleep(seconds)
        return _pause() if self.endpoints[0].is_async else None

    def counted(self) -> list[int]:
        return [round(limiter._windows[0].used) for limiter in self.limiters]


async def _pause() -> None:
    await asyncio.sleep(0)


# ---------------------------------------------------------------- what each order means


TABLE = {  # order: requests to (a, b) for each of four questions, waits between attempts, requests that the limits counted
    "RFBL": ([(1, 1), (1, 1), (1, 1), (0, 1)], 0, [3, 4]),
    "RFLB": ([(1, 1), (1, 1), (1, 1), (0, 1)], 0, [3, 4]),
    "RLFB": ([(1, 1), (1, 1), (1, 1), (0, 1)], 0, [4]),
    "LRFB": ([(1, 1), (1, 1), (1, 1), (0, 1)], 0, [4]),
    "FRBL": ([(2, 1), (1, 1), (0, 1), (0, 1)], 2, [3, 4]),
    "FRLB": ([(2, 1), (1, 1), (0, 1), (0, 1)], 2, [3, 4]),
    "FLRB": ([(2, 1), (1, 1), (0, 1), (0, 1)], 2, [2, 4]),
    "LFRB": ([(2, 1), (1, 1), (0, 1), (0, 1)], 2, [4]),
    "FBRL": ([(2, 1), (2, 1), (2, 1), (0, 1)], 3, [6, 4]),
    "FBLR": ([(2, 1), (2, 1), (2, 1), (0, 1)], 3, [3, 4]),
    "FLBR": ([(2, 1), (2, 1), (2, 1), (0, 1)], 3, [3, 4]),
    "LFBR": ([(2, 1), (2, 1), (2, 1), (0, 1)], 3, [4]),
}


def test_there_are_twelve_orders() -> None:
    assert sorted(TABLE) == sorted(ORDERS)
    assert len(ORDERS) == 12


def test_the_page_shows_this_table() -> None:
    page = (Path(__file__).parents[1] / "docs" / "decisions" / "policy-order.md").read_text(encoding="utf-8")
    for order, (questions, waits, counted) in TABLE.items():
        asked = " ".join(f"{a}+{b}" for a, b in questions)
        assert f"| {' > '.join(order)} | {asked} | {waits} | {', '.join(map(str, counted))} |" in page


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("body", BODIES)
def test_four_questions_while_the_first_endpoint_is_down(order: str, colour: type[Fake], body: Any) -> None:
    a, b = colour(overloaded(), for_ever=True, name="a"), colour(said("Hi"), for_ever=True, name="b")
    nest = Nest(order, a, b)
    asked = []
    for _ in range(4):
        before = (a.calls, b.calls)
        response = body(nest.policy)
        assert (response.text, response.provider) == ("Hi", "b" if order[-1] == "F" else response.provider)
        asked.append((a.calls - before[0], b.calls - before[1]))
    assert (asked, len(nest.clock.waits), nest.counted()) == TABLE[order]
    assert [breaker.state for breaker in nest.breakers] == [State.OPEN, State.CLOSED]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("body", BODIES)
def test_when_every_endpoint_is_down_the_error_tells_the_whole_story(order: str, colour: type[Fake], body: Any) -> None:
    a, b = colour(overloaded(), for_ever=True, name="a"), colour(overloaded(), for_ever=True, name="b")
    nest = Nest(order, a, b)
    with pytest.raises(LessonError) as caught:
        body(nest.policy)
    assert (a.calls, b.calls) == (2, 2)
    assert len(caught.value.attempts) == 3
    for _ in range(3):
        with pytest.raises(LessonError):
            body(nest.policy)
    sent = (a.calls, b.calls)
    with pytest.raises(CircuitOpen):
        body(nest.policy)
    assert (a.calls, b.calls) == sent, "both circuits are open: nothing is sent"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("body", BODIES)
def test_a_request_that_is_wrong_everywhere_is_asked_once(order: str, colour: type[Fake], body: Any) -> None:
    error = bad_request()
    a, b = colour(error, name="a"), colour("never", name="b")
    nest = Nest(order, a, b)
    with pytest.raises(LessonError) as caught:
        body(nest.policy)
    assert caught.value is error
    assert (a.calls, b.calls, error.attempts) == (1, 0, [])
    assert [breaker.state for breaker in nest.breakers] == [State.CLOSED, State.CLOSED]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("colour", COLOURS)
def test_after_the_first_event_nothing_is_asked_again(order: str, colour: type[Fake]) -> None:
    a, b = colour(said("half", then=cut()), name="a"), colour("never", name="b")
    nest = Nest(order, a, b)
    seen: list[Event] = []
    with pytest.raises(LessonError):
        streamed(nest.policy, into=seen)
    assert (a.calls, b.calls, a.open) == (1, 0, 0)
    assert shown(seen) == "half"


# ---------------------------------------------------------------- leaving early, everywhere


def settled(nest: Nest) -> None:
    """Nothing is held any more: no stream, no probe, no place in a queue."""
    assert all(endpoint.open == 0 for endpoint in nest.endpoints)
    assert all(not breaker.circuit._probing for breaker in nest.breakers)
    assert all(not limiter._waiting for limiter in nest.limiters)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("colour", COLOURS)
def test_closing_after_the_first_event_settles_everything(order: str, colour: type[Fake]) -> None:
    nest = Nest(order, colour(overloaded(), overloaded(), name="a"), colour(said("a", "b"), name="b"))
    first_event(nest.policy)
    settled(nest)


@pytest.mark.parametrize("order", ORDERS)
def test_stopping_exactly_at_done_settles_everything(order: str) -> None:
    nest = Nest(order, Fake(overloaded(), overloaded(), name="a"), Fake(said("a", "b"), name="b"))
    events = nest.policy.stream(ASK)
    for event in events:
        if isinstance(event, Done):
            break
    settled(nest)
    events.close()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("streaming", [False, True])
def test_cancellation_at_every_await_settles_everything(order: str, streaming: bool) -> None:
    """The tight limit makes the limiters wait too; each wait is an await of its own."""

    def make() -> Any:
        nest = Nest(order, AFake(overloaded(), cut(), name="a"), AFake(said("a", "b"), name="b"), rate=1)
        coroutine = drain(nest.policy.stream(ASK)) if streaming else nest.policy.generate(ASK)
        return coroutine, lambda: settled(nest)

    assert cancel_everywhere(make) >= 2


# ---------------------------------------------------------------- ten thousand schedules

OUTCOMES = [overloaded, limited, cut, bad_request, lambda: "Hi", lambda: "Hi"]
WISHES = [None, 0.0, 1.0, 30.0, 59.9, 61.0, 600.0]  # what a server asks to wait; above 60 Retry gives up


def random_nest(dice: random.Random) -> Nest:
    """Any order around two endpoints that fail as the dice fall."""
    clock = Clock()
    endpoints = []
    for name in "ab":
        script = [dice.choice(OUTCOMES)() for _ in range(20)]
        for entry in script:
            if isinstance(entry, LessonError):
                entry.retry_after = dice.choice(WISHES)
        endpoints.append(Fake(*script, name=name, clock=clock))
    return Nest(dice.choice(ORDERS), *endpoints, clock=clock, attempts=dice.randint(1, 4), rate=dice.randint(1, 6))


def requests_are_counted(order: str) -> bool:
    """Whether each limiter stands before one endpoint and inside of Retry: then it sees every single request."""
    return order.index("L") > max(order.index("F"), order.index("R"))


def most_in_a_minute(starts: list[float]) -> int:
    return max((sum(first <= when < first + 60 for when in starts) for first in starts), default=0)


def test_ten_thousand_random_schedules_keep_every_promise(caplog: pytest.LogCaptureFixture) -> None:
    """Attempts, waits and limits, and nothing held in the end, whatever fails when."""
    caplog.set_level("CRITICAL", logger="lessonlib")
    for seed in range(10_000):
        dice = random.Random(seed)
        nest = random_nest(dice)
        for _ in range(dice.randint(1, 3)):
            before = [endpoint.calls for endpoint in nest.endpoints]
            nest.clock.now += dice.choice([0, 1, 70])
            with contextlib.suppress(LessonError):
                (whole if dice.random() < 0.5 else streamed)(nest.policy)
            made = [endpoint.calls - calls for endpoint, calls in zip(nest.endpoints, before, strict=True)]
            assert max(made) <= nest.attempts, seed
        assert max(nest.clock.waits, default=0) <= 60 + 1e-6, seed
        settled(nest)
        if requests_are_counted(nest.order):
            assert max(most_in_a_minute(endpoint.starts) for endpoint in nest.endpoints) <= nest.rate, seed
        for limiter in nest.limiters:
            assert most_in_a_minute([entry.start for entry in limiter._windows[0].started if entry.cost]) <= nest.rate, seed
