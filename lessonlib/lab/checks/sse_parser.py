"""Lesson 01: a parser of server-sent events, `feed(bytes) -> events` and `close() -> events`.

What is asked: the field rules of https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation,
whichever way the bytes are cut; and at the clean end of the body the last event, if its data is whole JSON or `[DONE]`.
An event may be a tuple (name, data), a dict or an object with `event` and `data`; data may be bytes or text.

What this check does not do: it asks for no `id` and no `retry`, and for no limit on the size of an event.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, equals, method, raised

# ---------------------------------------------------------------- observe


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """The events of these reads, as [name, data]; or for "grow" the seconds for one size and for four times as much."""
    if "grow" in given:
        return [_seconds(learner, size) for size in given["grow"]]
    parser = call("the parser", learner)
    feed = method(parser, "feed", "feed(bytes) and returns the events that these bytes completed")
    found = [event for read in given["reads"] for event in _events(feed(read))]
    if given["close"]:
        found += _events(method(parser, "close", "close() and returns the events that were left")())
    return found


def _seconds(learner: Any, size: int) -> float:
    reads = [b"data: ", *[b"x" * 64] * (size // 64), b"\n\n"]
    best = float("inf")
    for _ in range(2):
        feed = learner().feed
        began = time.process_time()
        for read in reads:
            feed(read)
        best = min(best, time.process_time() - began)
    return best


def _events(found: Any) -> list[list[Any]]:
    return [] if found is None else [[_text(part) for part in _name_and_data(event)] for event in found]


def _name_and_data(event: Any) -> tuple[Any, Any]:
    if type(event) is dict:
        return event.get("event"), event.get("data")
    if isinstance(event, (tuple, list)) and len(event) == 2:
        return event[0], event[1]
    return getattr(event, "event", None), getattr(event, "data", event)


def _text(value: Any) -> Any:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, bytearray, memoryview)) else value


# ---------------------------------------------------------------- probes


def _probe(
    reads: bytes | Sequence[bytes],
    expected: list[list[str]],
    belief: str,
    *signs: tuple[Sign, str],
    where: str = "",
    close: bool = False,
) -> Probe:
    pieces = [reads] if isinstance(reads, bytes) else list(reads)
    fed = " then ".join(map(repr, pieces)) + (" then close()" if close else "")
    place = f"{len(pieces)} reads; {where}" if len(pieces) > 1 and where else where
    return Probe({"reads": pieces, "close": close}, expected, fed, place, belief, signs)


def _replaced(seen: Seen) -> bool:
    return "�" in repr(seen.value)


def _fewer(count: int) -> Sign:
    return lambda seen: not seen.raised and len(seen.value) < count


def _named(name: Any) -> Sign:
    return lambda seen: not seen.raised and any(event[0] == name for event in seen.value)


ONE = [["message", "1"]]
STREAM_NAMES = ("message_start", "content_block_delta", "ping", "message_stop")


def probes(chance: random.Random) -> Iterator[Probe]:
    """From one line to whole streams, cut at every byte and by chance."""
    yield from _first_rules()
    yield from _bytes_and_lines()
    yield from _the_end()
    yield from _cuts(chance)
    yield Probe(
        {"grow": [64 * 1024, 256 * 1024]},
        None,
        "one event of 64 KiB, then one of 256 KiB, in reads of 64 bytes",
        "the time that feed takes",
        "rescans",
        ((raised("TooLong"), "rescans"),),
        accept=_grows_with_the_data,
        expected_words="about four times the time",
        found_words=_growth,
    )


def _first_rules() -> Iterator[Probe]:
    unnamed = (_named(None), "no_default_name"), (_named(""), "no_default_name")
    yield _probe(b"data: 1\n\n", ONE, "no_event", *unnamed, where="the one event")
    yield _probe(b"event: ping\ndata: 1\n\n", [["ping", "1"]], "names_lost", where="the event's name")
    two = [["message", "1"], ["message", "2"]]
    yield _probe(
        b"data: 1\n\ndata: 2\n\n", two, "one_read_one_event", (_named(None), "no_default_name"), where="both events"
    )
    yield _probe([b"data: 1", b"2\n\n"], [["message", "12"]], "one_read_one_event", where="cut inside the data")
    yield _probe(b"data:1\n\n", ONE, "space_required", where="the character behind the colon")
    yield _probe(b"data:  1\n\n", [["message", " 1"]], "strips_all", where="the second space")
    yield _probe(
        b"data: a\ndata: b\n\n",
        [["message", "a\nb"]],
        "each_line_is_an_event",
        (equals([["message", "ab"]]), "joins_without_lf"),
        (equals([["message", "b"]]), "last_line_wins"),
        where="the two data lines of one event",
    )
    yield _probe(b": alive\n\ndata: 1\n\n", ONE, "comment_is_event", where="the line that begins with a colon")
    yield _probe(
        b"event: ping\n\ndata: 1\n\n",
        ONE,
        "event_without_data",
        (equals([["ping", "1"]]), "name_sticks"),
        where="the event that has a name and no data",
    )
    yield _probe(
        b"event: a\ndata: 1\n\ndata: 2\n\n", [["a", "1"], ["message", "2"]], "name_sticks", where="the second event's name"
    )
    yield _probe(b'data: {"t":"a:b"}\n\n', [["message", '{"t":"a:b"}']], "splits_at_every_colon", where="the second colon")


def _bytes_and_lines() -> Iterator[Probe]:
    city = "data: 北京\n\n".encode()
    broken = (raised("UnicodeDecodeError"), "decodes_each_read"), (_replaced, "decodes_each_read")
    for cut in (10, 11):
        reads = [city[:cut], city[cut:]]
        yield _probe(reads, [["message", "北京"]], "depends_on_cuts", *broken, where=f"cut at byte {cut}, inside 京")
    separator = "data: 北\u2028京\n\n".encode()
    yield _probe(separator, [["message", "北\u2028京"]], "splitlines", where="U+2028 inside the data")
    yield _probe(b"data: 1\r\n\r\n", ONE, "lf_only", where="CRLF at the line ends")
    yield _probe(
        b"data: 1\r\rdata: 2\r\r:", [["message", "1"], ["message", "2"]], "lf_only", where="CR alone at the line ends"
    )
    yield _probe(
        [b"event: a\r", b"\ndata: 1\r", b"\n\r\n"],
        [["a", "1"]],
        "crlf_cut_counts_twice",
        (_fewer(1), "crlf_cut_counts_twice"),
        where="the cut between CR and LF",
    )
    yield _probe(b"\xef\xbb\xbfdata: 1\n\n", ONE, "bom_is_text", where="the three bytes before `data`")
    yield _probe(b"id: 7\nretry: 10\nnews: x\ndata: 1\n\n", ONE, "unknown_fields", where="the fields before `data`")


def _the_end() -> Iterator[Probe]:
    whole, half = b'data: {"a": 1}', b'data: {"a": '
    yield _probe(whole, [["message", '{"a": 1}']], "drops_the_last", where="the clean end of the body", close=True)
    yield _probe(half, [], "delivers_half", where="the clean end of the body, inside the JSON", close=True)
    yield _probe(b"data: 1\n\n", ONE, "delivers_half", where="close() after a whole event", close=True)


def _cuts(chance: random.Random) -> Iterator[Probe]:
    """One small stream cut at every place, then larger ones cut by chance, at last byte by byte."""
    small, expected = _stream(chance, 2)
    for cut in range(1, len(small)):
        yield _probe([small[:cut], small[cut:]], expected, "depends_on_cuts", where=f"cut at byte {cut}")
    for size in (1, 2, 3, 7):
        reads = [small[start : start + size] for start in range(0, len(small), size)]
        yield _in_reads(reads, expected, f"{len(small)} bytes in reads of {size}")
    for count in (2, 5, 20, 80):
        large, expected = _stream(chance, 40)
        places = sorted({0, len(large), *(chance.randrange(len(large)) for _ in range(count))})
        reads = [large[start:end] for start, end in pairwise(places)]
        yield _in_reads(reads, expected, f"{len(large)} bytes, cut at {count} places by chance")


def _in_reads(reads: list[bytes], expected: list[list[str]], fed: str) -> Probe:
    def first_difference(seen: Seen) -> str:
        for number, (good, got) in enumerate(zip(expected, seen.value, strict=False)):
            if good != got:
                return f"event {number + 1} is {got!r}, not {good!r}"
        return f"{len(seen.value)} events instead of {len(expected)}"

    return Probe(
        {"reads": reads, "close": False},
        expected,
        fed,
        "the first event that differs",
        "depends_on_cuts",
        expected_words="the same events as in one read",
        found_words=first_difference,
    )


def _stream(chance: random.Random, count: int) -> tuple[bytes, list[list[str]]]:
    """A stream of invented events and what they are: names, wide characters, comments, all three line ends."""
    blocks, expected = [], []
    for _ in range(count):
        name = chance.choice((*STREAM_NAMES, ""))
        data = json.dumps(
            {"n": chance.randrange(1000), "t": chance.choice(("北京", "é", "a: b", "🚄", "x\u2028y"))}, ensure_ascii=False
        )
        end = chance.choice(("\n", "\r\n"))
        head = [f"event: {name}"] if name else []
        noise = [": alive"] if chance.random() < 0.2 else []
        blocks.append(end.join([*noise, *head, f"data: {data}", "", ""]))
        expected.append([name or "message", data])
    return "".join(blocks).encode(), expected


def _grows_with_the_data(seconds: Any) -> bool:
    once, four = seconds
    return bool(four < 0.04 or four < 9 * once)


def _growth(seen: Seen) -> str:
    once, four = seen.value
    return f"{four / once:.0f} times the time ({once * 1000:.0f} ms, then {four * 1000:.0f} ms)"


check = Check.of("sse", observe, probes)
