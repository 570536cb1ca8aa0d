"""Retry, limits and fallback (lessons 07, 10, 11)."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from lessonlib.errors import APIError, LessonError
from lessonlib.fallback import Fallback
from lessonlib.flow import Provider, collect
from lessonlib.lab.course_suite import behaviour, captures
from lessonlib.lab.course_suite.captures import sse
from lessonlib.lab.course_suite.fakes import ASK, Server, answer, failure, make, stream
from lessonlib.limits import Limits
from lessonlib.retry import Retry
from lessonlib.tokens import count
from lessonlib.types import Event, Request, Response, TextDelta

GOOD = answer(captures.anthropic_whole())
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
HALF = sse(*captures.anthropic_events({"type": "text", "text": "Sunny in Beijing."}, stop="end_turn")[:4], OVERLOADED)
"""Words have come, then an error that a retry could cure."""


def retry(server: Server, waits: list[float]) -> Retry[Provider]:
    """A Retry that notes its waits instead of waiting."""
    return Retry(server.client(), sleep=waits.append, random=lambda: 0.5)


# ---------------------------------------------------------------- retry


@behaviour("a_bad_request_is_asked_once")
@pytest.mark.parametrize("status", [400, 401])
def test_a_request_that_is_wrong_is_not_repeated(status: int) -> None:
    server = Server(*[failure(status, "invalid_request_error")] * 4)
    with pytest.raises(APIError):
        retry(server, []).generate(ASK)
    assert len(server.asked) == 1


@behaviour("an_overload_is_asked_again")
def test_two_failures_then_an_answer() -> None:
    server = Server(failure(529, "overloaded_error"), failure(429, "rate_limit_error"), GOOD)
    waits: list[float] = []
    assert retry(server, waits).generate(ASK).tool_calls
    assert (len(server.asked), len(waits)) == (3, 2)


@behaviour("the_service_says_how_long")
@pytest.mark.parametrize("seconds", [3, 40])
def test_the_wait_is_kept_to_the_second(seconds: int) -> None:
    server = Server(failure(429, "rate_limit_error", retry_after=str(seconds)), GOOD)
    waits: list[float] = []
    retry(server, waits).generate(ASK)
    assert waits == [seconds]


@behaviour("nothing_is_said_twice")
def test_no_second_request_after_the_first_word() -> None:
    server = Server(*[stream(HALF)] * 4)
    words: list[str] = []
    with pytest.raises(LessonError):
        words += [event.text for event in retry(server, []).stream(ASK) if isinstance(event, TextDelta)]
    assert len(server.asked) == 1


# ---------------------------------------------------------------- limits


class Ready:
    """A provider that answers at once."""

    name, is_async = "ready", False

    def generate(self, request: Request) -> Response:
        return make("anthropic-messages").decode(captures.anthropic_whole())

    def stream(self, request: Request) -> Iterator[Event]:
        raise NotImplementedError


@behaviour("both_limits_count")
def test_tokens_make_a_request_wait() -> None:
    now = 0.0
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        waits.append(seconds)

    limited = Limits(Ready(), 60, 30_000, count=lambda request: 12_000, used=lambda usage: None,
                     clock=lambda: now, sleep=sleep)  # fmt: skip
    for _ in range(3):
        limited.generate(ASK)
    assert sum(waits) == 60


@behaviour("unknown_models_are_counted")
def test_an_unknown_model_is_not_free() -> None:
    assert count(ASK, "new-in-2027") > 10


# ---------------------------------------------------------------- fallback


@behaviour("a_wrong_key_stops_the_chain")
def test_a_wrong_key_is_shown() -> None:
    second = Server(GOOD)
    chain = Fallback([Server(failure(401, "authentication_error")).client(), second.client()])
    with pytest.raises(APIError):
        chain.generate(ASK)
    assert second.asked == []


@behaviour("no_switch_in_mid_answer")
def test_no_other_service_finishes_the_sentence() -> None:
    second = Server(stream(sse(*captures.anthropic_events())))
    chain = Fallback([Server(stream(HALF)).client(), second.client()])
    with pytest.raises(LessonError):
        collect(chain.stream(ASK))
    assert second.asked == []


class NobodyThere(Server):
    """A host that refuses the connection."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)


@behaviour("a_dead_host_goes_on")
def test_a_refused_connection_goes_to_the_next() -> None:
    second = Server(GOOD)
    Fallback([NobodyThere().client(), second.client()]).generate(ASK)
    assert len(second.asked) == 1
