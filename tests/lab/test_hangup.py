"""The line of lesson 06: it says what was sent and when the client hung up, in both colours."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from lessonlib import Message, Request, collect
from lessonlib.lab import reads
from lessonlib.lab.hangup import Line
from lessonlib.sim import Fault, Simulator

REQUEST = Request(messages=[Message.user("Hello")])


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "gemini", "openai-chat"])
def test_a_stream_that_is_read_to_its_end_is_sent_whole_and_closed(vendor: str) -> None:
    line = Line(vendor)
    assert collect(line.client.stream(REQUEST)).text
    assert not line.is_open
    assert line.sent > 3


def test_a_line_is_open_until_the_client_closes_it() -> None:
    line = Line("anthropic")
    events = line.client.stream(REQUEST)
    next(events)
    sent = line.sent
    assert line.is_open
    events.close()
    assert (line.is_open, line.sent) == (False, sent)
    assert sent < len(reads("anthropic", REQUEST))


def test_the_other_colour_is_told_as_well() -> None:
    async def first() -> tuple[bool, bool, int]:
        line = Line("anthropic")
        async with aclosing(line.async_client.stream(REQUEST)) as events:
            await anext(events)
            during = line.is_open
        return during, line.is_open, line.sent

    during, after, sent = asyncio.run(first())
    assert (during, after) == (True, False)
    assert 0 < sent < len(reads("anthropic", REQUEST))


def test_the_simulator_behind_it_may_be_the_readers_own() -> None:
    sim = Simulator(faults=[Fault("cut_events", events=2)])
    line = Line("anthropic", sim)
    with pytest.raises(Exception, match="before message_stop"):
        collect(line.client.stream(REQUEST))
    assert (line.sent, line.is_open, len(sim.requests)) == (2, False, 1)
