"""How a stream ends: well, too early, with an error, or because the reader has had enough (lesson 06)."""

from __future__ import annotations

import contextlib

import pytest

from lessonlib.errors import APIError, LessonError, NotAStream
from lessonlib.lab.course_suite import behaviour, captures
from lessonlib.lab.course_suite.captures import sse
from lessonlib.lab.course_suite.fakes import ASK, Reply, Server, fold, stream, streamed
from lessonlib.tool_loop import stream_tools
from lessonlib.types import TextDelta

STREAM = sse(*captures.anthropic_events())
CUT = STREAM[: STREAM.rindex("京".encode())]
"""The stream up to the middle of the call's arguments."""

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@behaviour("half_a_call_never_runs")
def test_a_stream_that_is_cut_inside_the_arguments_runs_nothing() -> None:
    ran: list[str] = []

    def get_weather(city: str) -> str:
        ran.append(city)
        return "Sunny."

    server = Server(stream(CUT))
    with server.client() as client, contextlib.suppress(LessonError):
        for _ in stream_tools(client, ASK, [get_weather]):
            pass
    assert ran == []


@behaviour("failed_calls_cannot_be_run")
def test_what_arrived_of_a_call_cannot_be_run() -> None:
    """The error comes right after the event that closes the call: the call is whole, the answer is not."""
    whole = captures.anthropic_events(*captures.ANTHROPIC_BLOCKS[1:])
    last = max(place for place, event in enumerate(whole) if event["type"] == "content_block_stop")
    server = Server(stream(sse(*whole[: last + 1], OVERLOADED)))
    with pytest.raises(APIError) as caught:
        streamed(server)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "I will look that up."
    assert [call.args for call in caught.value.partial.tool_calls] == [None]


@behaviour("a_page_is_no_stream")
def test_a_page_is_reported_as_one() -> None:
    page = Reply(200, [b"<html><body>Please sign in</body></html>"], "text/html")
    with pytest.raises(NotAStream):
        streamed(Server(page))


@behaviour("unknown_events_are_ignored")
def test_a_new_event_changes_nothing() -> None:
    start, *rest = captures.anthropic_events()
    with_news = sse(start, {"type": "new_in_2027", "load": {"a": [1, None]}}, *rest)
    assert fold("anthropic-messages", with_news).message == fold("anthropic-messages", STREAM).message


@behaviour("an_error_event_raises")
def test_an_error_in_the_middle() -> None:
    events = captures.anthropic_events()[:4]
    with pytest.raises(APIError, match="overloaded_error"):
        streamed(Server(stream(sse(*events, OVERLOADED))))


@behaviour("closing_hangs_up")
def test_close_reaches_the_service() -> None:
    """It is not enough to leave the loop: what `close()` raises after a `break` is only printed. So close, then ask the
    service."""
    server = Server(stream(STREAM))
    with server.client() as client:
        events = client.stream(ASK)
        while not isinstance(next(events), TextDelta):
            pass
        sent = server.bodies[0].sent
        events.close()
    assert server.bodies[0].closed
    assert server.bodies[0].sent == sent
