"""Raw streams for the lessons: the same bytes in any cut."""

from __future__ import annotations

import pytest

from lessonlib import Message, Request
from lessonlib.lab import client, cut, raw_stream, reads
from lessonlib.sim import Simulator
from lessonlib.sse import SSEParser

REQUEST = Request(messages=[Message.user("Hello")])


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "gemini"])
def test_the_simulator_writes_one_event_per_read(vendor: str) -> None:
    parser = SSEParser()
    assert {len(parser.feed(read)) for read in reads(vendor, REQUEST)} == {1}


@pytest.mark.parametrize("size", [1, 7, 1400])
def test_a_cut_keeps_the_bytes(size: int) -> None:
    body = b"".join(reads("anthropic", REQUEST))
    pieces = cut(body, size)
    assert b"".join(pieces) == body
    assert {len(piece) for piece in pieces[:-1]} <= {size}


def test_a_read_has_at_least_one_byte() -> None:
    with pytest.raises(ValueError, match="at least one byte"):
        cut(b"abc", 0)


def test_a_body_by_hand_is_sent_as_it_stands() -> None:
    sim = Simulator()
    body = {"model": client("openai").wire.model, "input": "Hello", "stream": True}
    assert raw_stream("openai", body, sim).count(b"event: response.completed\n") == 1
    assert sim.requests[-1][1] == body
