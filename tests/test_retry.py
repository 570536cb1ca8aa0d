"""Retry: when it asks again, how long it waits, and what it says of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib.client import AsyncClient, Client
from lessonlib.errors import (
    APIError,
    CircuitOpen,
    IncompleteStream,
    LessonError,
    TransportError,
    TransportTimeout,
)
from lessonlib.flow import Call, Sleep, acollect, collect
from lessonlib.retry import Attempt, Retry
from lessonlib.types import StopReason, Usage
from lessonlib.wire import AnthropicMessages
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
    limited,
    overloaded,
    said,
    shown,
    streamed,
    whole,
)
from tests.servers import Server


def retry(provider: Any, clock: Clock | None = None, **options: Any) -> Retry[Any]:
    return Retry(provider, sleep=(clock or Clock()).sleep, **options)


# ---------------------------------------------------------------- the two tests of the lesson, over HTTP

ANSWER = (
    b'{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use",'
    b'"content":[{"type":"tool_use","id":"toolu_1","name":"get_time","input":{}}],'
    b'"usage":{"input_tokens":3,"output_tokens":5}}'
)
TRUNCATED = b"".join(
    b"event: " + name + b"\ndata: " + data + b"\n\n"
    for name, data in (
        (b"message_start", b'{"type":"message_start","message":{"id":"msg_2","type":"message","role":"assistant",'
                           b'"model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}'),
        (b"content_block_start", b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'),
        (b"content_block_delta",
         b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hal"}}'),
    )
)  # fmt: skip
OVERLOADED = b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}'
RATE_LIMITED = b'{"type":"error","error":{"type":"rate_limit_error","message":"x"}}'


def ask(url: str, asynchronous: bool, streaming: bool, clock: Clock, **options: Any) -> Any:
    """One question to a server through Retry around a client, in either colour."""
    wire = AnthropicMessages(model="m", base_url=url)
    if not asynchronous:
        with Client(wire) as client:
            policy = retry(client, clock, **options)
            return collect(policy.stream(ASK)) if streaming else policy.generate(ASK)

    async def main() -> Any:
        async with AsyncClient(wire) as client:
            policy = retry(client, clock, **options)
            return await (acollect(policy.stream(ASK)) if streaming else policy.generate(ASK))

    return asyncio.run(main())


@pytest.mark.parametrize("asynchronous", [False, True])
def test_529_then_429_with_retry_after_3_then_success(serve: Callable[[Any], Server], asynchronous: bool) -> None:
    """Two waits: the first our own, below a second; the second exactly what the server asked for."""

    def handler(peer: Any) -> None:
        match len(server.asked):
            case 1:
                peer.answer(OVERLOADED, 529)
            case 2:
                peer.answer(RATE_LIMITED, 429, {"retry-after": "3"})
            case _:
                peer.answer(ANSWER)

    server, clock = serve(handler), Clock()
    response = ask(server.url, asynchronous, False, clock, max_attempts=4, base=1.0, cap=10.0)
    assert response.stop is StopReason.TOOL_USE
    assert len(clock.waits) == 2
    assert 0 <= clock.waits[0] < 1
    assert clock.waits[1] == 3
    assert len(server.asked) == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_503_then_a_cut_stream_is_incomplete_after_two_requests(
    serve: Callable[[Any], Server], asynchronous: bool
) -> None:  # fmt: skip
    def handler(peer: Any) -> None:
        if len(server.asked) == 1:
            peer.answer(b"", 503)
        else:
            peer.stream(TRUNCATED)

    server = serve(handler)
    with pytest.raises(IncompleteStream) as caught:
        ask(server.url, asynchronous, True, Clock(), max_attempts=5, base=0.001, cap=0.001)
    assert len(server.asked) == 2
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hal"
    assert [type(error) for error in caught.value.attempts] == [APIError]


# ---------------------------------------------------------------- when


def test_a_retryable_error_is_retried_in_both_colours_whole_and_streamed() -> None:
    result = both(lambda colour: retry(colour(overloaded(), cut(), "Hi")), whole, lambda p: collect(streamed(p)))
    assert result.text == "Hi"


def test_an_error_that_a_retry_cannot_cure_is_raised_at_once() -> None:
    """A used-up quota is a 429 too; what is retryable is said by the error, not by its status."""
    quota = APIError("no credit left", status=429, code="insufficient_quota")
    for error in (bad_request(), quota, CircuitOpen("open")):
        for colour in (Fake, AFake):
            provider, clock = colour(error, "never"), Clock()
            with pytest.raises(type(error)) as caught:
                whole(retry(provider, clock))
            assert caught.value is error
            assert (provider.calls, clock.waits) == (1, [])


def test_a_stream_that_has_shown_something_is_never_retried() -> None:
    for colour in (Fake, AFake):
        provider = colour(said("a", then=cut()), "never")
        with pytest.raises(IncompleteStream):
            streamed(retry(provider))
        assert (provider.calls, provider.open) == (1, 0)


def test_a_stream_that_broke_before_its_first_event_is_retried() -> None:
    assert shown(both(lambda colour: retry(colour(cut(), said("b"))), streamed)) == "b"


def test_at_most_max_attempts_requests() -> None:
    for attempts in (1, 2, 5):
        for colour in (Fake, AFake):
            provider, clock = colour(overloaded(), for_ever=True), Clock()
            with pytest.raises(APIError):
                whole(retry(provider, clock, max_attempts=attempts))
            assert (provider.calls, len(clock.waits)) == (attempts, attempts - 1)


def test_two_layers_of_retries_do_not_multiply() -> None:
    """Three times three would be nine requests for one call; it is three."""
    for colour in (Fake, AFake):
        provider = colour(overloaded(), for_ever=True)
        with pytest.raises(APIError) as caught:
            whole(retry(retry(provider, max_attempts=3), max_attempts=3))
        assert provider.calls == 3
        assert len(caught.value.attempts) == 2


def test_an_outer_retry_with_more_patience_goes_on_where_the_inner_one_gave_up() -> None:
    provider = Fake(overloaded(), overloaded(), overloaded(), "Hi")
    assert whole(retry(retry(provider, max_attempts=2), max_attempts=4)).text == "Hi"
    assert provider.calls == 4


def test_a_host_that_cannot_be_reached_gets_one_more_try_only() -> None:
    """An unknown name or a refused connection is mostly a wrong URL; a slow connection may be faster next time."""
    refused = TransportError("connection refused", phase="connect")
    slow = TransportTimeout("slow", phase="connect")
    for error, calls in ((refused, 2), (slow, 4)):
        provider = Fake(error, for_ever=True)
        with pytest.raises(TransportError):
            whole(retry(provider))
        assert provider.calls == calls


@pytest.mark.parametrize("options", [{"max_attempts": 0}, {"base": -1.0}, {"cap": -1.0}, {"max_wait": -1.0}])
def test_settings_without_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Retry needs"):
        Retry(Fake(), **options)


# ---------------------------------------------------------------- how long


def test_backoff_is_full_jitter_below_the_doubling_limit_and_the_cap() -> None:
    almost_one = 1 - 2**-53
    policy = Retry(Fake(), base=1.0, cap=10.0, random=lambda: almost_one)
    assert [policy.backoff(n) == pytest.approx(limit) for n, limit in enumerate((1, 2, 4, 8, 10, 10))] == [True] * 6
    assert Retry(Fake(), random=lambda: 0.0).backoff(3) == 0.0
    assert Retry(Fake(), base=1.0, cap=10.0, random=lambda: 0.5).backoff(100_000) == 5.0


def test_the_servers_wait_is_obeyed_to_the_second_even_above_our_own_cap() -> None:
    clock = Clock()
    whole(retry(Fake(limited(17.25), "Hi"), clock, cap=10.0))
    assert clock.waits == [17.25]


def test_a_wait_above_max_wait_gives_up_at_once_with_the_original_error() -> None:
    for colour in (Fake, AFake):
        error, clock = limited(61), Clock()
        provider = colour(error, "never")
        with pytest.raises(APIError) as caught:
            whole(retry(provider, clock))
        assert caught.value is error
        assert (provider.calls, clock.waits, error.attempts) == (1, [], [])


def test_a_wait_of_zero_is_no_wish() -> None:
    """Some gateways send 0 or -1 with every 429; asking again at once would only be turned away again."""
    clock = Clock()
    whole(retry(Fake(limited(0), "Hi"), clock, random=lambda: 0.5))
    assert clock.waits == [0.5]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "-1"}, 2.0),
        ({"retry-after": "nan"}, 2.0),
        ({"retry-after": "inf"}, 2.0),
        ({"retry-after": ""}, 2.0),
        ({"retry-after": "soon"}, 2.0),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:00 GMT"}, 2.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ],
)
def test_waits_from_real_headers(headers: dict[str, str], expected: float) -> None:
    """Unreadable and past waits count as none: then it is the backoff, here 2 seconds."""
    error = AnthropicMessages(model="m").api_error(429, {"error": {"type": "rate_limit_error"}}, headers)
    clock = Clock()
    whole(retry(Fake(error, "Hi"), clock, base=4.0, random=lambda: 0.5))
    assert clock.waits == [expected]


@pytest.mark.parametrize(
    ("status", "body", "retried"),
    [
        (429, {"error": {"type": "rate_limit_error"}}, True),
        (429, {"error": {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}}, False),
        (401, {"error": {"type": "authentication_error"}}, False),
        (529, {"type": "error", "error": {"type": "overloaded_error"}}, True),
        (408, None, True),
        (409, None, True),
        (400, {"error": {"type": "invalid_request_error"}}, False),
        (501, None, False),
        (200, {"error": {"type": "overloaded_error"}}, True),
    ],
)
def test_what_is_retried_is_data_of_the_wire_format(status: int, body: Any, retried: bool) -> None:
    error = AnthropicMessages(model="m").api_error(status, body)
    provider = Fake(error, "Hi")
    if retried:
        assert whole(retry(provider)).text == "Hi"
    else:
        with pytest.raises(APIError):
            whole(retry(provider))
    assert provider.calls == 1 + retried


def test_cancellation_while_it_waits_returns_at_once() -> None:
    async def main() -> None:
        provider = AFake(overloaded(), "never")
        policy = Retry(provider, base=1000.0, cap=1000.0, random=lambda: 0.9)
        task = asyncio.ensure_future(policy.generate(ASK))
        while not provider.calls:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert provider.calls == 1

    asyncio.run(main())


def test_ctrl_c_while_it_waits_ends_it_at_once() -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    for body in (whole, streamed):
        provider = Fake(overloaded(), "never")
        with pytest.raises(KeyboardInterrupt):
            body(Retry(provider, sleep=interrupted))
        assert provider.calls == 1


def test_cancellation_at_every_await() -> None:
    async def asleep(seconds: float) -> None:
        await asyncio.sleep(0)

    def make(streaming: bool) -> Any:
        provider = AFake(overloaded(), cut(), said("a", "b"))
        policy = Retry(provider, sleep=asleep)

        def check() -> None:
            assert provider.open == 0

        return (drain(policy.stream(ASK)) if streaming else policy.generate(ASK)), check

    assert cancel_everywhere(lambda: make(False)) >= 5
    assert cancel_everywhere(lambda: make(True)) >= 7


# ---------------------------------------------------------------- what it says


def test_each_attempt_is_visible_to_a_hook() -> None:
    def attempts(colour: Any) -> list[Attempt]:
        seen: list[Attempt] = []
        whole(retry(colour(first := overloaded(), second := limited(3), "Hi"), random=lambda: 0.5, on_attempt=seen.append))
        assert [attempt.error for attempt in seen] == [first, second, None]
        return seen

    for colour in (Fake, AFake):
        seen = attempts(colour)
        assert [(attempt.number, attempt.provider, attempt.wait) for attempt in seen] == [
            (1, "fake", 0.5), (2, "fake", 3), (3, "fake", None),
        ]  # fmt: skip


def test_the_hook_may_be_async_in_the_async_colour() -> None:
    seen: list[int] = []

    async def hook(attempt: Attempt) -> None:
        await asyncio.sleep(0)
        seen.append(attempt.number)

    whole(retry(AFake(overloaded(), "Hi"), on_attempt=hook))
    assert seen == [1, 2]
    with pytest.raises(TypeError, match="async"):
        whole(retry(Fake("Hi"), on_attempt=hook))


def test_the_final_error_carries_the_earlier_ones() -> None:
    first, second, last = overloaded(), cut(), bad_request()
    with pytest.raises(APIError) as caught:
        whole(retry(Fake(first, second, last)))
    assert caught.value is last
    assert caught.value.attempts == [first, second]


def test_what_failed_attempts_used_stays_in_the_account() -> None:
    """The first attempt broke after the service had counted 800 tokens of input: they are paid for."""
    broken = cut(partial=answer("", tokens=800))
    response = both(lambda colour: retry(colour(broken, answer("Hi", tokens=800))), whole)
    assert response.usage == Usage(input_tokens=800, output_tokens=1)
    assert response.retried == Usage(input_tokens=800, output_tokens=1)


def test_an_answer_at_the_first_attempt_passes_through_untouched() -> None:
    response = answer("Hi")
    assert whole(retry(Fake(response))) is response


def test_log_lines_hold_no_message_of_the_service(caplog: pytest.LogCaptureFixture) -> None:
    """An error's message may quote what was sent."""
    secret = APIError("bad key sk-inv-SECRET-1234567890", status=529, retryable=True)
    with caplog.at_level("DEBUG", logger="lessonlib"):
        whole(retry(Fake(secret, "Hi")))
    assert "APIError" in caplog.text
    assert "SECRET" not in caplog.text


# ---------------------------------------------------------------- as values, and by the thousand


def test_retry_is_tested_without_a_driver() -> None:
    flow = Retry(Fake()).flow(ASK)
    assert isinstance(flow.send(None), Call)
    assert flow.throw(limited(7)) == Sleep(7)
    assert isinstance(flow.send(None), Call)


FAILURES = st.one_of(
    st.builds(overloaded, st.none() | st.floats(0, 120, allow_nan=False)),
    st.builds(limited, st.none() | st.floats(0, 120, allow_nan=False)),
    st.builds(cut),
    st.builds(bad_request),
    st.builds(lambda: TransportError("refused", phase="connect")),
)


@settings(max_examples=400, deadline=None)
@given(
    script=st.lists(FAILURES, max_size=8),
    attempts=st.integers(1, 6),
    base=st.floats(0, 20),
    cap=st.floats(0, 20),
    max_wait=st.floats(0, 100),
    seed=st.integers(),
    asynchronous=st.booleans(),
)
def test_no_schedule_passes_its_limits(
    script: list[LessonError], attempts: int, base: float, cap: float, max_wait: float, seed: int, asynchronous: bool
) -> None:
    clock, seen = Clock(), []
    provider = (AFake if asynchronous else Fake)(*script, "Hi")
    policy = retry(provider, clock, max_attempts=attempts, base=base, cap=cap, max_wait=max_wait,
                   random=random.Random(seed).random, on_attempt=seen.append)  # fmt: skip
    try:
        whole(policy)
        error = None
    except LessonError as raised:
        error = raised
    assert provider.calls <= attempts
    assert len(clock.waits) == provider.calls - 1
    for n, (attempt, wait) in enumerate(zip(seen, clock.waits, strict=False)):
        asked = attempt.error.retry_after
        if asked:
            assert wait == asked <= max_wait
        else:
            assert 0 <= wait <= min(base * 2**n, cap)
    if error is not None:
        assert error is script[provider.calls - 1]
        assert error.attempts == script[: provider.calls - 1]
