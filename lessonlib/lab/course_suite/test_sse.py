"""From bytes to events (lesson 01)."""

from __future__ import annotations

import json

import pytest

from lessonlib.lab.course_suite import behaviour
from lessonlib.lab.course_suite.captures import anthropic_events, sse
from lessonlib.sse import SSEParser

STREAM = sse(*anthropic_events())


def events(data: bytes, size: int | None = None) -> list[tuple[str, bytes]]:
    """What a parser gives for these bytes, read in pieces of `size`."""
    parser = SSEParser()
    found = []
    for start in range(0, len(data), size or len(data)):
        found += parser.feed(data[start : start + (size or len(data))])
    found += parser.close()
    return [(event.event, event.data) for event in found]


@behaviour("sse_any_cut")
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_size_of_the_reads_changes_nothing(size: int) -> None:
    assert events(STREAM, size) == events(STREAM)


@behaviour("sse_any_cut")
def test_a_cr_lf_may_be_cut_in_the_middle() -> None:
    assert events(b"data: 1\r\n\r\ndata: 2\r\n\r\n", 1) == [("message", b"1"), ("message", b"2")]


@behaviour("sse_space_is_optional")
def test_no_space_one_space_two_spaces() -> None:
    assert events(b"data:1\n\ndata: 2\n\ndata:  3\n\n") == [("message", b"1"), ("message", b"2"), ("message", b" 3")]


@behaviour("sse_three_line_ends")
def test_a_line_separator_inside_a_text_ends_no_line() -> None:
    data = json.dumps({"text": "one\u2028two"}, ensure_ascii=False).encode("utf-8")
    assert events(b"data: " + data + b"\n\n") == [("message", data)]


@behaviour("sse_three_line_ends")
def test_cr_alone_ends_a_line() -> None:
    assert events(b"data: 1\r\rdata: 2\r\r") == [("message", b"1"), ("message", b"2")]


@behaviour("sse_last_event")
def test_a_whole_last_event_is_delivered() -> None:
    assert events(b'data: {"a": 1}\n\ndata: {"b": 2}') == [("message", b'{"a": 1}'), ("message", b'{"b": 2}')]


@behaviour("sse_comments_are_silent")
def test_comments_and_events_without_data_give_nothing() -> None:
    assert events(b": ping\n\nevent: only_a_name\n\nid: 7\n\ndata: 1\n\n") == [("message", b"1")]
