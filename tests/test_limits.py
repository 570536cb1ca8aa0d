"""Limits: nothing starts too early, nobody waits for ever, and what is reserved is given back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib.errors import CircuitOpen, InvalidRequest, PromptTooLong
from lessonlib.estimate import estimate_text, estimate_tokens
from lessonlib.flow import Call, Sleep
from lessonlib.limits import Limiter, Limits
from lessonlib.types import Image, Message, Request, Text, Tool, ToolCall, ToolResult, Usage
from lessonlib.vocabulary import count_text
from tests.fakes import (
    ASK,
    AFake,
    Clock,
    Fake,
    answer,
    bad_request,
    both,
    cancel_everywhere,
    cut,
    drain,
    first_event,
    run_virtually,
    said,
    streamed,
    whole,
)


def limits(provider: Any, clock: Clock, *given: Any, **options: Any) -> Limits[Any]:
    return Limits(provider, *given, clock=clock, sleep=clock.sleep, **options)


def most_in_any_window(starts: list[tuple[float, float]], seconds: float = 60.0) -> float:
    """The largest sum of costs that started within `seconds` of each other."""
    return max(
        (sum(cost for when, cost in starts if first <= when < first + seconds) for first, _ in starts),
        default=0.0,
    )


# ---------------------------------------------------------------- one after the other


@pytest.mark.parametrize("body", [whole, streamed])
@pytest.mark.parametrize("colour", [Fake, AFake])
def test_requests_per_minute(colour: type[Fake], body: Any) -> None:
    clock = Clock()
    provider = colour("Hi", for_ever=True, clock=clock)
    policy = limits(provider, clock, 3)
    for _ in range(7):
        body(policy)
    assert provider.starts == [0, 0, 0, 60, 60, 60, 120]


def test_burst_spreads_the_same_rate() -> None:
    """60 a minute, but no more than 5 in any 5 seconds."""
    clock = Clock()
    provider = Fake("Hi", for_ever=True, clock=clock)
    policy = limits(provider, clock, 60, burst=5)
    for _ in range(70):
        whole(policy)
    assert provider.starts[:11] == [0] * 5 + [5] * 5 + [10]
    pairs = [(when, 1.0) for when in provider.starts]
    assert most_in_any_window(pairs, 5) == 5
    assert most_in_any_window(pairs) == 60


def test_tokens_per_minute_are_reserved_before_and_corrected_after() -> None:
    clock = Clock()
    provider = Fake(answer("x", tokens=89), answer("x", tokens=9), for_ever=True, clock=clock)
    policy = limits(provider, clock, None, 100, count=lambda request: 50)
    for _ in range(3):
        whole(policy)
    assert provider.starts == [0, 60, 60], "90 used instead of 50: the second does not fit; 10 instead of 50: the third does"


def test_a_correction_upwards_makes_the_next_ones_wait() -> None:
    clock = Clock()
    provider = Fake(answer("x", tokens=299), for_ever=True, clock=clock)
    policy = limits(provider, clock, None, 100, count=lambda request: 10)
    whole(policy)
    whole(policy)
    assert provider.starts == [0, 60]


def test_both_limits_hold_together() -> None:
    clock = Clock()
    provider = Fake(answer("x", tokens=39), for_ever=True, clock=clock)
    policy = limits(provider, clock, 4, 100, count=lambda request: 40)
    for _ in range(5):
        whole(policy)
    assert provider.starts == [0, 0, 60, 60, 120]


def test_the_output_cap_is_reserved_as_far_as_the_limit_allows() -> None:
    clock = Clock()
    provider = Fake(answer("x", tokens=9), for_ever=True, clock=clock)
    policy = limits(provider, clock, None, 100, count=lambda request: 10)
    flow = policy.flow(ASK.replace(max_tokens=5000))
    assert isinstance(flow.send(None), Call), "10 + 5000 is cut to 100: it may go, alone"
    assert policy.flow(ASK).send(None) == Sleep(60)
    flow.close()


def test_usage_of_failed_attempts_inside_is_booked_too() -> None:
    clock = Clock()
    retried = answer("x", tokens=9).model_copy(update={"retried": Usage(input_tokens=80)})
    policy = limits(Fake(retried, "y"), clock, None, 100, count=lambda request: 20)
    whole(policy)
    assert policy.flow(ASK).send(None) == Sleep(60)


def test_what_counts_as_used_can_be_chosen() -> None:
    """Where cached input does not count against the limit."""
    clock = Clock()
    cached = answer("x").model_copy(update={"usage": Usage(input_tokens=95, cached_tokens=90, output_tokens=1)})
    fresh = lambda usage: usage.input_tokens - usage.cached_tokens  # noqa: E731
    policy = limits(Fake(cached, "y"), clock, None, 100, count=lambda request: 50, used=fresh)
    whole(policy)
    assert isinstance(policy.flow(ASK).send(None), Call)


def test_an_answer_without_usage_keeps_the_reservation() -> None:
    clock = Clock()
    silent = answer("x").model_copy(update={"usage": None})
    policy = limits(Fake(silent, "y"), clock, None, 100, count=lambda request: 60)
    whole(policy)
    assert policy.flow(ASK).send(None) == Sleep(60)


# ---------------------------------------------------------------- errors at once, and what is given back


def test_a_request_larger_than_the_limit_is_an_error_at_once() -> None:
    for colour in (Fake, AFake):
        clock = Clock()
        provider = colour("never")
        with pytest.raises(PromptTooLong, match=r"150 tokens.* 100 a minute") as caught:
            whole(limits(provider, clock, None, 100, count=lambda request: 150))
        assert (caught.value.tokens, caught.value.limit) == (150, 100)
        assert (provider.calls, clock.waits) == (0, [])


def test_after_one_that_is_too_large_and_one_that_gave_up_the_next_goes_through() -> None:
    """No deadlock: neither leaves anything behind."""
    clock = Clock()
    limiter = Limiter(tokens_per_minute=100, clock=clock)
    with pytest.raises(PromptTooLong):
        limiter.reserve(150)
    limiter.wait(limiter.reserve(95))
    cancelled, last = limiter.reserve(10), limiter.reserve(5)
    assert limiter.wait(last) == 60
    limiter.give_back(cancelled)
    assert limiter.wait(last) == 0


@pytest.mark.parametrize("bad", [(), (None, 100, 5), (0.5,), (10, 0)])
def test_settings_without_sense_are_refused(bad: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"Limits needs|below 1"):
        Limiter(*bad)


@pytest.mark.parametrize("error", [InvalidRequest("cannot be written"), CircuitOpen("open")])
def test_a_call_that_was_never_sent_costs_nothing(error: Exception) -> None:
    clock = Clock()
    policy = limits(Fake(error, "Hi"), clock, 1, 100, count=lambda request: 100)
    with pytest.raises(type(error)):
        whole(policy)
    whole(policy)
    assert clock.waits == []


def test_a_call_that_failed_after_it_was_sent_costs_what_is_known() -> None:
    clock = Clock()
    policy = limits(Fake(bad_request(), cut(partial=answer("x", tokens=9)), "Hi"), clock, None, 100,
                    count=lambda request: 60)  # fmt: skip
    for error in (bad_request, cut):
        with pytest.raises(type(error())):
            whole(policy)
    assert clock.waits == [60], "the first is kept as reserved, the second corrected to 10"
    whole(policy)
    assert clock.waits == [60]


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_a_stream_closed_after_its_start_has_been_sent(colour: type[Fake]) -> None:
    clock = Clock()
    provider = colour(said("a", "b"), "Hi", clock=clock)
    policy = limits(provider, clock, 1)
    first_event(policy)
    whole(policy)
    assert (provider.open, provider.starts) == (0, [0, 60])


def test_a_waiting_call_that_is_closed_gives_its_place_back() -> None:
    clock = Clock()
    policy = limits(Fake("Hi", for_ever=True), clock, 1)
    whole(policy)
    waiting = policy.flow(ASK)
    assert waiting.send(None) == Sleep(60)
    behind = policy.flow(ASK)
    assert behind.send(None) == Sleep(120)
    waiting.close()
    clock.now = 60
    assert isinstance(behind.send(None), Call)


@pytest.mark.parametrize("streaming", [False, True])
def test_cancellation_at_every_await(streaming: bool) -> None:
    async def asleep(seconds: float) -> None:
        await asyncio.sleep(0)
        clock.now += seconds

    clock = Clock()

    def make() -> Any:
        limiter = Limiter(1, clock=clock)
        clock.now = 0
        limiter.wait(limiter.reserve())
        provider = AFake(said("a", "b"))
        policy = Limits(provider, limiter=limiter, sleep=asleep)

        def check() -> None:
            assert provider.open == 0
            assert not limiter._waiting
            assert len(limiter._windows[0].started) <= 1 + provider.calls

        return (drain(policy.stream(ASK)) if streaming else policy.generate(ASK)), check

    assert cancel_everywhere(make) >= 2


# ---------------------------------------------------------------- together, on virtual time


def test_concurrent_calls_do_not_all_pass_before_the_first_is_counted() -> None:
    """Limit 90 tokens a minute, four calls of 70 at once: one goes, the others follow in order."""

    async def main(loop: Any) -> list[tuple[int, float]]:
        began: list[tuple[int, float]] = []

        class Notes(AFake):
            async def generate(self, request: Request) -> Any:
                began.append((int(request.messages[0].text), loop.time()))
                return answer("x", tokens=69)

        policy = Limits(Notes(), None, 90, count=lambda request: 70, clock=loop.time)
        await asyncio.gather(*(policy.generate(Request(messages=str(number))) for number in range(4)))
        return began

    assert run_virtually(main) == [(0, 0), (1, 60), (2, 120), (3, 180)]


@pytest.mark.parametrize("rate", [1, 7])
def test_a_thousand_tasks_start_in_order_and_within_the_limit(rate: int) -> None:
    async def main(loop: Any) -> list[tuple[int, float]]:
        began: list[tuple[int, float]] = []

        class Notes(AFake):
            async def generate(self, request: Request) -> Any:
                began.append((int(request.messages[0].text), loop.time()))
                return answer("x")

        policy = Limits(Notes(), rate * 60, clock=loop.time)
        await asyncio.gather(*(policy.generate(Request(messages=str(number))) for number in range(1000)))
        return began

    began = run_virtually(main)
    assert dict(began) == {number: number // (rate * 60) * 60 for number in range(1000)}


def test_sixty_four_threads_share_one_limiter() -> None:
    """Every start is checked against those before it, under the lock; time passes only when somebody sleeps."""
    clock, lock = Clock(), threading.Lock()
    starts: list[tuple[float, float]] = []

    class Watched(Limiter):
        def wait(self, ticket: Any) -> float:
            with lock:
                delay = super().wait(ticket)
                if delay == 0:
                    starts.append((ticket.entries[0].start, 1.0))
                return delay

    limiter = Watched(50, clock=clock)

    def sleep(seconds: float) -> None:
        with lock:
            clock.now += max(seconds / 64, 0.1)

    policy = Limits(Fake("Hi", for_ever=True), limiter=limiter, sleep=sleep)
    threads = [threading.Thread(target=lambda: [whole(policy) for _ in range(8)]) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(starts) == 64 * 8
    assert most_in_any_window(starts) <= 50
    assert not limiter._waiting


JOB = st.tuples(
    st.floats(0, 200),  # arrives
    st.integers(1, 100),  # estimate
    st.integers(0, 150),  # real use
    st.none() | st.floats(0, 150),  # cancelled so long after its arrival
)


@settings(max_examples=300, deadline=None)
@given(jobs=st.lists(JOB, max_size=25), rpm=st.none() | st.integers(1, 8), tpm=st.integers(100, 200), data=st.data())
def test_no_schedule_exceeds_a_limit_in_any_window(jobs: list[Any], rpm: int | None, tpm: int, data: Any) -> None:
    """Whatever arrives, is corrected or is cancelled, and however late sleepers wake: what started in any 60 seconds was
    within the limits by what was known when the last of it started, and everybody who stayed got through."""
    burst = data.draw(st.none() | st.integers(1, rpm)) if rpm else None
    late = random.Random(data.draw(st.integers(0, 2**32)))
    began: list[tuple[float, int]] = []

    async def main(loop: Any) -> int:
        limiter = Limiter(rpm, tpm, burst, clock=loop.time)

        class Asked(AFake):
            async def generate(self, request: Request) -> Any:
                began.append((loop.time(), int(request.messages[0].text)))
                known = sum(entry.cost for entry in limiter._windows[-1].started)
                assert known <= max(tpm, over[0])
                await asyncio.sleep(late.random())
                used = int(request.messages[1].text)
                over[0] = max(over[0], known - int(request.messages[0].text) + used)
                return answer("x", tokens=used - 1) if used else bad

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(seconds + late.choice([0, 0, 0.5, 20]))

        bad = answer("x").model_copy(update={"usage": None})
        over = [0.0]
        policy = Limits(Asked(), limiter=limiter, sleep=sleep, count=lambda request: int(request.messages[0].text))

        async def one(arrives: float, estimate: int, used: int, patience: float | None) -> None:
            await asyncio.sleep(arrives)
            request = Request(messages=[Message.user(str(estimate)), Message.user(str(used))])
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(policy.generate(request), patience)

        await asyncio.gather(*(one(*job) for job in jobs))
        assert not limiter._waiting
        return sum(patience is None for *_, patience in jobs)

    stayed = run_virtually(main)
    assert len(began) >= stayed
    if rpm:
        pairs = [(when, 1.0) for when, _ in began]
        assert most_in_any_window(pairs) <= rpm
        if burst:
            assert most_in_any_window(pairs, 60 * burst / rpm) <= burst


def test_both_colours_agree() -> None:
    def story(provider: Any) -> list[float]:
        clock = Clock()
        policy = limits(provider, clock, 2, 100, count=lambda request: 30)
        for _ in range(5):
            whole(policy)
        return clock.waits

    assert both(lambda colour: colour(answer("x", tokens=59), for_ever=True), story) == [60, 60]


# ---------------------------------------------------------------- the default estimate


def test_the_estimate_is_the_stated_rule() -> None:
    assert estimate_text("") == 0
    assert estimate_text("abcd") == 1
    assert estimate_text("abcde") == 2
    assert estimate_text("天气") == 2
    assert estimate_text("a天b") == 2


@pytest.mark.parametrize(
    ("file", "low", "high"),
    [("docs/decisions/limits.md", 0.9, 1.1), ("lessonlib/limits.py", 1.0, 1.3), ("lessonlib/data/models.json", 0.9, 1.3)],
)
def test_the_estimate_is_near_the_count(file: str, low: float, high: float) -> None:
    text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    estimate = estimate_text(json.dumps(json.loads(text)), 3) if file.endswith(".json") else estimate_text(text)
    count = count_text(json.dumps(json.loads(text)) if file.endswith(".json") else text)
    assert low < estimate / count < high


def test_the_estimate_counts_every_part_and_never_base64() -> None:
    picture = Image(data="A" * 100_000, media_type="image/png")
    request = Request(
        system="abcd",
        messages=[
            Message.user("abcd", picture),
            Message.assistant(ToolCall(call_id="1", name="abcd", args={})),
            Message.user(ToolResult(call_id="1", content="abcdefgh"), ToolResult(call_id="2", content=[Text(text="ab")])),
        ],
        tools=[Tool(name="abcd", description="abcd", parameters={})],
        output_schema={"a": 1},
    )
    parts = 1 + (4 + 1 + 1000) + (4 + 4 + 2) + (4 + 4 + 2 + 4 + 1) + (4 + 2 + 1) + 3
    assert estimate_tokens(request) == parts
