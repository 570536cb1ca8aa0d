"""Server-sent events: the WHATWG rules one by one, then all of them against a second reader, then the limits.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation ("9.2.6 Interpreting an event
stream" below). Every rule is tried whole, byte by byte, and at every single cut.
"""

from __future__ import annotations

import gc
import json
import re
import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonlib.errors import EventTooLarge
from lessonlib.sse import MAX_EVENT_BYTES, ServerSentEvent, SSEParser

BOM = b"\xef\xbb\xbf"


def parse(chunks: Iterable[bytes], limit: int = MAX_EVENT_BYTES) -> tuple[list[ServerSentEvent], SSEParser]:
    """The events of a body that came in these chunks, without what `close` adds at its end."""
    parser = SSEParser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)], parser


def pieces(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


def events(body: bytes) -> list[ServerSentEvent]:
    """The events of a body, the same whole, byte by byte, and with every single cut."""
    whole, _ = parse([body])
    assert parse(pieces(body, 1))[0] == whole
    for cut in range(len(body) + 1):
        assert parse([body[:cut], body[cut:]])[0] == whole
    return whole


def data(body: bytes) -> list[bytes]:
    return [event.data for event in events(body)]


# ---------------------------------------------------------------- the examples of the specification


def test_whatwg_example_stock_ticker() -> None:
    assert data(b"data: YHOO\ndata: +2\ndata: 10\n\n") == [b"YHOO\n+2\n10"]


def test_whatwg_example_four_blocks() -> None:
    """A comment; an event with an id; an event that clears the id; one space of two is kept."""
    body = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
    assert events(body) == [
        ServerSentEvent("message", b"first event", "1"),
        ServerSentEvent("message", b"second event", ""),
        ServerSentEvent("message", b" third event", ""),
    ]


def test_whatwg_example_events_with_empty_data_and_an_unfinished_one() -> None:
    assert data(b"data\n\ndata\ndata\n\ndata:") == [b"", b"\n"]


def test_whatwg_example_the_space_after_the_colon_is_optional() -> None:
    assert data(b"data:test\n\ndata: test\n\n") == [b"test", b"test"]


# ---------------------------------------------------------------- lines


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_a_line_ends_with_lf_cr_or_crlf_cut_anywhere(line_end: bytes) -> None:
    body = line_end.join([b"event: a", b"data: 1", b"data: 2", b"", b"data: 3", b"", b""])
    assert events(body) == [ServerSentEvent("a", b"1\n2"), ServerSentEvent("message", b"3")]


def test_line_ends_of_all_kinds_in_one_stream() -> None:
    assert data(b"data: 1\r\ndata: 2\rdata: 3\n\r\ndata: 4\r\rdata: 5\n\n") == [b"1\n2\n3", b"4", b"5"]


def test_a_crlf_that_is_cut_is_one_line_end() -> None:
    """Else the LF would be a blank line of its own and would end the event too early."""
    once = [ServerSentEvent("message", b"1\n2")]
    assert parse([b"data: 1\r", b"\ndata: 2\r", b"\n\r", b"\n"])[0] == once
    assert parse([b"data: 1\r", b"", b"\ndata: 2\r", b"", b"", b"\n\r", b"", b"\n"])[0] == once


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"])
def test_nothing_else_ends_a_line(character: str) -> None:
    """`str.splitlines` knows eight more; U+2028 stands raw in JSON texts that were copied from the web."""
    text = f'{{"text": "a{character}b"}}'.encode()
    assert data(b"data: " + text + b"\n\n") == [text]


def test_a_character_that_is_cut_is_still_one_character() -> None:
    assert data("data: Fähre nach 東京 🚲\n\n".encode()) == ["Fähre nach 東京 🚲".encode()]


def test_bytes_that_are_no_utf_8_are_left_to_the_reader_of_the_data() -> None:
    assert data(b"data: \xff\xfe\n\n") == [b"\xff\xfe"]


# ---------------------------------------------------------------- the byte order mark


def test_one_byte_order_mark_at_the_start_is_skipped_cut_anywhere() -> None:
    assert data(BOM + b"data: 1\n\n") == [b"1"]


def test_only_one_and_only_at_the_start() -> None:
    assert data(BOM + BOM + b"data: 1\n\ndata: 2\n\n") == [b"2"]
    assert data(b"data: 1\n\n" + BOM + b"data: 2\n\ndata: 3\n\n") == [b"1", b"3"]


@pytest.mark.parametrize("start", [b"", BOM[:1], BOM[:2], b"\xef\xbb\n", b"\xef"])
def test_half_a_byte_order_mark_is_a_line_like_any_other(start: bytes) -> None:
    assert data(start + b"\n\ndata: 1\n\n") == [b"1"]


# ---------------------------------------------------------------- fields


def test_comments_are_skipped() -> None:
    assert data(b": ping\n:\n::data: 0\ndata: 1\n: inside\ndata: 2\n\n:\n\n") == [b"1\n2"]


def test_an_event_without_data_is_not_dispatched_and_its_name_is_forgotten() -> None:
    assert events(b"event: ping\n\ndata: 1\n\n") == [ServerSentEvent("message", b"1")]


def test_blank_lines_between_events_are_nothing() -> None:
    assert data(b"\n\n\ndata: 1\n\n\n\nid: 2\n\n\n\ndata: 3\n\n") == [b"1", b"3"]


def test_empty_data_is_data() -> None:
    assert data(b"data:\n\ndata: \n\ndata\n\n") == [b"", b"", b""]


def test_at_most_one_space_is_dropped_and_no_other_white_space() -> None:
    assert data(b"data:1\n\ndata: 2\n\ndata:  3\n\ndata:\t4\n\ndata: 5 \n\n") == [b"1", b"2", b" 3", b"\t4", b"5 "]


def test_the_name_of_a_field_must_be_exact() -> None:
    body = b"Data: 1\n\n data: 2\n\ndata : 3\n\ndatax: 4\n\ndat: 5\n\n\tdata: 6\n\n"
    assert data(body) == []


def test_the_last_name_of_an_event_counts_and_an_empty_one_is_none() -> None:
    assert [
        event.event for event in events(b"event: a\nevent: b\ndata: 1\n\nevent: a\nevent\ndata: 2\n\nevent:c\ndata\n\n")
    ] == [
        "b",
        "message",
        "c",
    ]


def test_a_name_that_comes_again_and_again_is_the_same_every_time() -> None:
    body = b"event: a\ndata: 1\n\nevent:b\ndata: 2\n\ndata: 3\n\n"
    assert [event.event for event in events(body * 3)] == ["a", "b", "message"] * 3


def test_colons_in_a_value_are_part_of_it() -> None:
    assert events(b"event: a:b\nid: c:d\ndata: e:f\n\n") == [ServerSentEvent("a:b", b"e:f", "c:d")]


def test_an_id_stays_until_another_comes() -> None:
    ids = [event.id for event in events(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid\ndata: d\n\n")]
    assert ids == ["1", "1", "2", ""]


def test_an_id_with_a_nul_is_ignored() -> None:
    assert [event.id for event in events(b"id: 1\ndata: a\n\nid: 2\x00\ndata: b\n\n")] == ["1", "1"]


def test_names_and_ids_are_text_with_replacement_characters() -> None:
    assert events(b"event: \xff\nid: \xfe\ndata: 1\n\n") == [ServerSentEvent("�", b"1", "�")]


@pytest.mark.parametrize(
    ("line", "retry"),
    [
        (b"retry: 3000", 3000),
        (b"retry:0", 0),
        (b"retry: 007", 7),
        (b"retry", None),
        (b"retry:", None),
        (b"retry: ", None),
        (b"retry: -1", None),
        (b"retry: +1", None),
        (b"retry: 1.5", None),
        (b"retry: 1 ", None),
        ("retry: ٣".encode(), None),  # a digit, but not an ASCII digit
        (b"retry: " + b"9" * 5_000, None),  # more digits than `int` takes
    ],
)
def test_a_reconnection_time_is_ascii_digits_alone(line: bytes, retry: int | None) -> None:
    found, parser = parse([line + b"\ndata: 1\n\n"])
    assert [parser.retry, [event.data for event in found]] == [retry, [b"1"]]


def test_a_line_that_is_no_field_is_kept_for_a_report() -> None:
    _, parser = parse([b'data: 1\n\n{"error": {\n"message": "busy"}}\n: comment\nid\nretry: x\nid: \x00\n'])
    assert parser.stray == b'{"error": {\n"message": "busy"}}\n'


# ---------------------------------------------------------------- the clean end of a body


def at_the_end(body: bytes) -> list[bytes]:
    """What `close` gives, the same for every cut."""
    found = []
    for chunks in ([body], pieces(body, 1)):
        _, parser = parse(chunks)
        found.append([event.data for event in parser.close()])
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("whole", [b'{"a": 1}', b"[1]", b"[DONE]", b'{"a": "\\ud83d"}', b"[" * 500 + b"]" * 500])
def test_an_event_without_its_blank_line_is_delivered_if_its_data_is_whole(whole: bytes, end: bytes) -> None:
    """The standard drops it; services and proxies leave the last line end out."""
    assert at_the_end(b"event: x\ndata: " + whole + end) == [whole]


@pytest.mark.parametrize("half", [b'{"a": 1', b'{"a": "}', b"[DON", b"", b"[1] [2]", b"data", b"[" * 100_000])
def test_half_an_event_is_never_delivered(half: bytes) -> None:
    assert at_the_end(b"data: " + half) == []


def test_an_event_of_several_lines_is_judged_as_a_whole() -> None:
    assert at_the_end(b'data: {"a":\ndata: 1}') == [b'{"a":\n1}']
    assert at_the_end(b'data: {"a":\ndata: 1') == []


def test_nothing_is_left_after_a_whole_event() -> None:
    assert at_the_end(b"data: 1\n\n") == []
    assert at_the_end(b"") == []
    assert at_the_end(BOM[:2]) == []
    assert at_the_end(b": comment") == []


def test_what_is_pending_can_be_shown() -> None:
    _, parser = parse([b"data: 1\n\ndata: a\ndata: b"])
    assert parser.pending == b"a\ndata: b"
    assert parse([b"data: 1\n\n"])[1].pending == b""


# ---------------------------------------------------------------- a second reader


def reference(body: bytes) -> list[tuple[str, str, str]]:
    """The specification, step by step, on the whole text at once: 9.2.6."""
    text = body.removeprefix(BOM).decode("utf-8", "replace")
    lines = re.split("\r\n|\n|\r", text)[:-1]  # the last piece has no line end, and is discarded
    found = []
    data_buffer, event_type, last_id = "", "", ""
    for line in lines:
        if line == "":
            if data_buffer != "":
                found.append((event_type or "message", data_buffer.removesuffix("\n"), last_id))
            data_buffer, event_type = "", ""
            continue
        if line.startswith(":"):
            continue
        field, colon, value = line.partition(":")
        if colon and value.startswith(" "):
            value = value[1:]
        if field == "event":
            event_type = value
        elif field == "data":
            data_buffer += value + "\n"
        elif field == "id" and "\0" not in value:
            last_id = value
    return found


WORDS = st.sampled_from(
    [b"data", b"event", b"id", b"retry", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"data: ", b"event: a", b"\0", BOM,
     b"\xef", b"\xbb", "東".encode(), "🚲".encode(), "\u2028".encode(), b"x", b'{"a":1}', b"[DONE]", b"\xff"]
)  # fmt: skip
BODIES = st.one_of(st.binary(max_size=60), st.lists(WORDS, max_size=30).map(b"".join))


@st.composite
def cut_bodies(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A body and one way in which a network may cut it, empty reads included."""
    body = draw(BODIES)
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=12)))
    return body, [body[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@given(cut_bodies())
def test_any_bytes_in_any_cutting_give_the_events_of_the_specification(cut: tuple[bytes, list[bytes]]) -> None:
    body, chunks = cut
    found, _ = parse(chunks)
    assert [(event.event, event.data.decode("utf-8", "replace"), event.id) for event in found] == reference(body)


@given(cut_bodies(), st.integers(0, 12))
def test_any_bytes_in_any_cutting_meet_the_limit_at_the_same_event(cut: tuple[bytes, list[bytes]], limit: int) -> None:
    body, chunks = cut
    assert until_too_large(chunks, limit) == until_too_large([body], limit)


def until_too_large(chunks: list[bytes], limit: int) -> tuple[list[bytes], bool, bytes]:
    """The events before the one that is too large, whether there was one, and the stray lines."""
    parser = SSEParser(limit)
    found: list[bytes] = []
    try:
        for chunk in chunks:
            found += [event.data for event in parser.feed(chunk)]
        parser.feed(b"")
    except EventTooLarge:
        return found, True, parser.stray
    return found, False, parser.stray


# ---------------------------------------------------------------- the limit


def fits(body: bytes, limit: int) -> bool:
    """Whether a body passes, the same whole and byte by byte."""
    results = {until_too_large(chunks, limit)[1] for chunks in ([body], pieces(body, 1), pieces(body, 3))}
    assert len(results) == 1
    return not results.pop()


@pytest.mark.parametrize("form", [b"data: %b\n\n", b"data:%b\n\n", b"data: %b\r\n\r\n", b"event: e\nid: 1\ndata: %b\n\n"])
def test_an_event_of_exactly_the_limit_passes_and_one_byte_more_does_not(form: bytes) -> None:
    assert fits(form % (b"x" * 100), 100)
    assert not fits(form % (b"x" * 101), 100)


def test_the_line_feeds_between_data_lines_count() -> None:
    assert fits(b"data: 12345\ndata: 678\ndata\n\n", 10)
    assert not fits(b"data: 12345\ndata: 6789\ndata\n\n", 10)


def test_tiny_events_in_a_huge_read_never_fail() -> None:
    body = b"data: 1234567890\n\n" * 5_000
    assert fits(body, 10)
    assert len(parse([body], 10)[0]) == 5_000


def test_the_events_before_the_one_that_is_too_large_are_delivered_first() -> None:
    parser = SSEParser(10)
    assert [event.data for event in parser.feed(b"data: 1\n\ndata: 2\n\ndata: " + b"x" * 11 + b"\n\ndata: 3\n\n")] == [
        b"1",
        b"2",
    ]
    for call in (lambda: parser.feed(b"data: 4\n\n"), parser.close):
        with pytest.raises(EventTooLarge, match="larger than 10 bytes"):
            call()


def test_a_line_that_never_ends_is_refused_before_it_fills_the_memory() -> None:
    parser = SSEParser(1_000)
    for _ in range(10):
        assert parser.feed(b"x" * 100) == []
    with pytest.raises(EventTooLarge):
        parser.feed(b"x" * 100)


@pytest.mark.parametrize("start", [b": ", b"event: ", b"id: ", b"retry: ", b"unknown: ", b"unknown"])
def test_lines_that_are_no_data_are_bounded_too(start: bytes) -> None:
    assert fits(start + b"x" * 90 + b"\n", 100)
    assert not fits(start + b"x" * 110 + b"\n", 100)
    assert not fits(start + b"x" * 110, 100)


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_that_is_no_data_may_be_as_long_as_one_that_is(end: bytes) -> None:
    """While it has not ended, nobody can say what it is, except by its first bytes, which need not have come alone."""
    assert fits(b":" + b"x" * 105 + end, 100)
    assert not fits(b":" + b"x" * 106 + end, 100)


def test_what_is_kept_for_a_report_is_bounded() -> None:
    _, parser = parse([b"stray line\n" * 100_000])
    assert len(parser.stray) <= 16 * 1024
    assert parser.stray.startswith(b"stray line\nstray line\n")


def test_event_names_that_never_repeat_are_not_kept() -> None:
    found, parser = parse([b"event: %d\ndata: x\n\n" % number for number in range(1_000)])
    assert [event.event for event in found] == [str(number) for number in range(1_000)]
    assert len(parser._names) <= 64


def test_the_default_limit_is_ten_mebibytes() -> None:
    text = json.dumps({"data": "x" * (MAX_EVENT_BYTES - 12)}).encode()
    assert len(text) == MAX_EVENT_BYTES == 10 * 1024 * 1024
    assert [len(event.data) for event in parse(pieces(b"data: " + text + b"\n\n", 65_536))[0]] == [MAX_EVENT_BYTES]


# ---------------------------------------------------------------- time


def seconds(body: bytes, size: int) -> float:
    """Processor time of the best of three readings: what else the machine does, and the garbage collector, are not ours.
    Below two hundredths of a second some clocks are too coarse."""
    chunks, times = pieces(body, size), []
    gc.disable()
    try:
        for _ in range(3):
            began = time.process_time()
            parse(chunks)
            times.append(time.process_time() - began)
    finally:
        gc.enable()
    return max(min(times), 0.02)


@pytest.mark.parametrize("size", [1, 7, 65_536])
def test_one_huge_event_is_read_in_linear_time(size: int) -> None:
    """Eight times the bytes take about eight times as long; joining at every read would make it 64."""
    small, large = (b"data: " + b"x" * count + b"\n\n" for count in (60_000 * min(size, 10), 480_000 * min(size, 10)))
    assert seconds(large, size) < 32 * seconds(small, size)


@pytest.mark.parametrize("size", [64, 1 << 30])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_tiny_events_are_read_in_linear_time(size: int, line_end: bytes) -> None:
    event = b"data: {}" + line_end * 2
    assert seconds(event * 160_000, size) < 32 * seconds(event * 20_000, size)


def test_an_event_of_many_lines_is_read_in_linear_time() -> None:
    small, large = (b"data: x\n" * count + b"\n" for count in (40_000, 320_000))
    assert seconds(large, 8) < 32 * seconds(small, 8)


def test_two_megabytes_in_reads_of_one_byte() -> None:
    line = b"data: " + b"x" * 2_000_000 + b"\n\n"
    assert [len(event.data) for event in parse(pieces(line, 1))[0]] == [2_000_000]
