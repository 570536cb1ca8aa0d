"""Long answers: pieces are joined on the way, so that memory stays near to what the answer takes; nothing else changes."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

import lessonlib
from lessonlib.exchange import TIDY_EVERY
from lessonlib.sse import ServerSentEvent
from lessonlib.types import TextDelta
from lessonlib.wire import WIRES
from lessonlib.wire.base import StreamDecoder, join_middle

PACKAGE = Path(lessonlib.__file__).parent  # what other threads of the test run hold does not count
COUNT = 6_000
PIECES = [f" {number:04}" for number in range(COUNT)]


def delta(wire: str, text: str) -> str:
    """One event with a piece of text."""
    body = {
        "anthropic-messages": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        "openai-responses": {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text},
        "openai-chat": {"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]},
        "gemini-interactions": {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": text}},
        "gemini-generate-content": {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}}]},
    }
    return json.dumps(body[wire])


STARTS = {
    "anthropic-messages": [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"id": "i", "type": "message", "content": []}},
    ],
    "openai-chat": [],
    "gemini-interactions": [
        {"event_type": "interaction.created", "interaction": {"id": "v"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
    ],
    "gemini-generate-content": [],
}


def fed(wire: str) -> tuple[StreamDecoder, str]:
    """A decoder that has read the whole text, and the text that it handed out."""
    decoder = WIRES[wire](model="m", api_key="any").decoder()
    shown = []
    for start in STARTS[wire]:
        decoder.feed(ServerSentEvent("message", json.dumps(start).encode()))
    for number, piece in enumerate(PIECES):
        if number % TIDY_EVERY == 0:
            decoder.tidy()
        for event in decoder.feed(ServerSentEvent("message", delta(wire, piece).encode())):
            assert isinstance(event, TextDelta)
            shown.append(event.text)
    return decoder, "".join(shown)


@pytest.mark.parametrize("wire", STARTS)
def test_a_long_text_is_whole_and_takes_little_room(wire: str) -> None:
    """Apart, six thousand pieces of five letters take fifteen times the room of the text."""
    text = "".join(PIECES)
    decoder, shown = fed(wire)
    partial = decoder.partial()
    assert partial is not None
    assert (partial.text, shown) == (text, text)
    tracemalloc.start()
    try:
        decoder, _ = fed(wire)
        ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, str(PACKAGE / "*"))])
    finally:
        tracemalloc.stop()
    assert len(text) < sum(each.size for each in ours.statistics("filename")) < 6 * len(text)


def test_first_and_last_piece_stay_apart() -> None:
    """Two rules of the wires look at them."""
    pieces = [*PIECES]
    assert join_middle(pieces) == COUNT - 3
    assert pieces == [PIECES[0], "".join(PIECES[1:-1]), PIECES[-1]]


def test_little_is_not_worth_it() -> None:
    """Neither a short list, nor a few pieces after a long text: joining them each time would be quadratic."""
    short = PIECES[:200]
    assert join_middle(short) == 0
    long = ["a", "b" * 1_000_000, *PIECES[:2_000]]
    assert join_middle(long) == 0
