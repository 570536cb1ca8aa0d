"""Lanes: several vendors' streams as one story, found by comparing moments."""

from __future__ import annotations

import pytest

from lessonlib.lab import lanes, plots
from lessonlib.lab.alignment import LONGEST, NOTHING
from lessonlib.lab.stepper import Stepper

ENDS = ("why it stopped", "usage", "ends", "fails", NOTHING)
CASES = ("text", "tool_call", "parallel_calls", "reasoning", "cut", "length")


def test_one_call_is_told_by_three_vendors_in_the_same_moments() -> None:
    story = lanes("tool_call")
    assert story.rows == [
        "begins", "thinks: begins", "thinks: a piece", "thinks: is whole", "says: begins", "says: a piece", "says: is whole",
        "calls 1: begins", "calls 1: a piece", "calls 1: is whole", "why it stopped", "usage", "ends", NOTHING,
    ]  # fmt: skip
    assert [(row, wire) for row, wire in story.gaps() if wire != "openai-responses"] == []
    anthropic = story.table().column("anthropic-messages")
    assert anthropic[story.rows.index("calls 1: a piece")] == "content_block_delta ×2 (15-16)"
    assert anthropic[story.rows.index("usage")] == "message_start (1), message_delta (18)"


def test_a_gap_is_where_a_vendor_says_nothing() -> None:
    assert ("says: begins", "openai-responses") in lanes("tool_call").gaps()


def test_two_calls_are_two_rows_each() -> None:
    story = lanes("parallel_calls")
    for number in (1, 2):
        for moment in ("begins", "a piece", "is whole"):
            assert not [wire for row, wire in story.gaps() if row == f"calls {number}: {moment}"]


def test_interleaved_calls_stay_apart() -> None:
    openai = lanes("parallel_calls").lanes[0]
    pieces = [{step.number for step in openai.beats[f"calls {number}: a piece"].steps} for number in (1, 2)]
    assert pieces == [{15, 17, 19, 21}, {16, 18, 20, 22}]


def test_a_thought_without_readable_text_has_no_piece() -> None:
    gemini = lanes("parallel_calls").lanes[2]
    assert "thinks: is whole" in gemini.beats
    assert "thinks: a piece" not in gemini.beats


def test_a_cut_stream_fails_and_never_ends() -> None:
    story = lanes("cut_in_call")
    assert "fails" in story.rows
    assert "ends" not in story.rows
    assert not any(row.startswith("calls") and row.endswith("is whole") for row in story.rows)


@pytest.mark.parametrize("case", CASES)
def test_every_event_of_every_stream_has_a_place(case: str) -> None:
    for lane in lanes(case).lanes:
        placed = {step.number for beat in lane.beats.values() for step in beat.steps}
        assert placed >= {step.number for step in Stepper(lane.name).steps if step.sse is not None}


@pytest.mark.parametrize("case", CASES)
def test_rows_keep_the_order_of_the_first_lane(case: str) -> None:
    """Up to the ends, which stand last for all."""
    story = lanes(case)
    first = story.lanes[0]
    told = [first.beats[row].steps[0].number for row in story.rows if row in first.beats and row not in ENDS]
    assert told == sorted(told)


def test_a_long_stream_is_refused_with_its_length() -> None:
    events = [{"choices": [{"index": 0, "delta": {"content": "x"}}]}] * (LONGEST + 1)
    with pytest.raises(ValueError, match="502 steps"):
        lanes(events)


def test_the_picture_draws_a_gap_for_each_gap() -> None:
    picture = plots.story("tool_call")
    assert "3 places are empty" in picture.alt
    cells = [cell for row in picture.table.rows for cell in row[1:]]
    assert cells.count("-") == 3
    assert picture.png().startswith(b"\x89PNG")
