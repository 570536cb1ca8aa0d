"""Every fixture, disturbed in one place: the answer is right, or there is a named error with everything that had arrived, or
the protocol has no means to notice (limits.py says why). All events, a sample of the bytes and fields; `make soak`: all.
"""

from __future__ import annotations

import pytest

from lessonlib.errors import ProtocolError
from lessonlib.types import Message, Response, StopReason, Text, TextDelta, ToolCall
from tests.contract import Case, cases
from tests.reliability import report
from tests.reliability.campaign import errors, stored, streamed, whole
from tests.reliability.limits import LIMITS, REASONS, WHOLE_LIMITS, why
from tests.reliability.mutations import FAULTS, WHOLE_FAULTS, Mutant, blocks, changes, mutants, whole_mutants
from tests.reliability.verdicts import CORRECTED, DIFFERENT, ERROR, MARKED, RIGHT, VERDICTS, Fault, Outcome, judge

ONE_IN = {"cut": 97, "flip": 61, "remove": 11, "retype": 61}
"""How many of a fault's mutants are tried in a test run; all events are dropped, doubled and swapped."""


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", cases("stream.sse"), ids=str)
def test_a_disturbed_stream_is_right_or_a_named_error(case: Case, fault: str) -> None:
    assert streamed(case, fault, ONE_IN.get(fault, 1)).wrong == []


@pytest.mark.parametrize("fault", WHOLE_FAULTS)
@pytest.mark.parametrize("case", cases("response.json"), ids=str)
def test_a_disturbed_whole_answer_is_right_or_a_named_error(case: Case, fault: str) -> None:
    assert whole(case, fault, ONE_IN[fault]).wrong == []


@pytest.mark.parametrize("fault", WHOLE_FAULTS)
@pytest.mark.parametrize("case", cases("error.json"), ids=str)
def test_a_disturbed_error_body_is_an_api_error(case: Case, fault: str) -> None:
    assert errors(case, fault, 7).wrong == []


# ---------------------------------------------------------------- the page


def test_the_page_holds_what_was_counted() -> None:
    assert report.counted() == report.tables(stored())


def test_the_run_over_everything_tried_every_fault_of_every_wire_and_found_nothing() -> None:
    rows = stored()
    for form, faults in (("stream", FAULTS), ("whole", WHOLE_FAULTS), ("error", WHOLE_FAULTS)):
        for wire in {case.wire_name for case in cases("expect.json")}:
            for fault in faults:
                assert sum(rows[f"{form} {wire} {fault}"].values()) > 0
    assert {verdict for row in rows.values() for verdict in row} <= {*VERDICTS, *REASONS}


@pytest.mark.parametrize("wire", sorted({case.wire_name for case in cases("stream.sse")}))
def test_no_cut_is_ever_taken_for_another_answer(wire: str) -> None:
    assert set(stored()[f"stream {wire} cut"]) <= {RIGHT, ERROR, MARKED}


@pytest.mark.parametrize("fault", ["drop", "double", "swap", "remove", "retype"])
def test_responses_says_everything_twice_so_that_nothing_is_missed(fault: str) -> None:
    assert set(stored()[f"stream openai-responses {fault}"]) <= {RIGHT, CORRECTED, ERROR, MARKED}


def test_every_reason_is_needed() -> None:
    assert {verdict for row in stored().values() for verdict in row} - {*VERDICTS} == set(REASONS)
    assert {row.reason for row in (*LIMITS, *WHOLE_LIMITS)} == set(REASONS)


# ---------------------------------------------------------------- the judge itself


STREAM = b'event: a\ndata: {"type": "a", "n": [1, {"m": null}]}\n\ndata: {"type": "b"}\n\ndata: [DONE]\n\n'


def test_blocks_are_the_events() -> None:
    assert [block.kind for block in blocks(STREAM)] == ["a", "b", "[DONE]"]
    assert b"".join(block.data for block in blocks(STREAM)) == STREAM


@pytest.mark.parametrize(
    ("fault", "count"), [("cut", len(STREAM)), ("drop", 3), ("double", 3), ("swap", 2), ("flip", len(STREAM))]
)
def test_every_place_is_hit_once(fault: str, count: int) -> None:
    made = list(mutants(STREAM, fault))
    assert len(made) == count
    assert all(mutant.data != STREAM for mutant in made)


def test_every_field_at_every_depth_is_removed_and_given_every_other_type() -> None:
    payload = {"a": [1, {"b": None}]}
    assert list(changes(payload, "remove")) == [
        ("a", {}),
        ("a[]", {"a": [{"b": None}]}),
        ("a[]", {"a": [1]}),
        ("a[].b", {"a": [1, {}]}),
    ]
    retyped = [place for place, _ in changes(payload, "retype")]
    assert len(retyped) == 5 + 5 + 5 + 5
    assert 'a[].b = "x"' in retyped
    assert len(list(whole_mutants(b'{"a": 1}', "cut"))) == 8


def answered(text: str, *, shown: str | None = None, stop: StopReason = StopReason.END, args: object = None) -> Outcome:
    parts = [Text(text=text)] if args is None else [Text(text=text), ToolCall(call_id="1", name="f", args=args)]
    message = Message(role="assistant", parts=parts)
    response = Response(
        id="r", model="m", provider="p", wire="w", message=message, stop=stop, raw_stop="x", usage=None, raw={}
    )
    return Outcome(response, [TextDelta(0, text if shown is None else shown)])


def test_the_judge_knows_right_from_wrong() -> None:
    before = answered("Hello", args={"n": 1})
    assert judge(before, answered("Hello", args={"n": 1})) == (RIGHT, frozenset())
    assert judge(before, answered("Hello", args={"n": 1.0})) == (DIFFERENT, frozenset({"calls"}))
    assert judge(before, answered("Hello", args={"n": True})) == (DIFFERENT, frozenset({"calls"}))
    assert judge(before, answered("Hallo", args={"n": 1})) == (DIFFERENT, frozenset({"text"}))
    assert judge(before, answered("Hallo", stop=StopReason.OTHER))[0] == MARKED
    assert judge(answered("Hello"), Outcome(ProtocolError("no"), []))[0] == ERROR


@pytest.mark.parametrize(
    "got",
    [
        Outcome(ProtocolError("nothing attached"), [TextDelta(0, "Hello")]),
        Outcome(ProtocolError("less attached", partial=answered("Hell").result), [TextDelta(0, "Hello")]),  # type: ignore[arg-type]
        Outcome(ProtocolError("a call", partial=answered("", args={}).result), []),  # type: ignore[arg-type]
    ],
)
def test_an_error_without_what_was_shown_is_a_fault(got: Outcome) -> None:
    with pytest.raises(Fault):
        judge(answered("Hello"), got)


def test_a_difference_that_fits_no_row_has_no_reason() -> None:
    assert why("openai-responses", Mutant("drop", "response.output_text.delta", b""), {"text"}, stream=True) is None
    assert why("openai-chat", Mutant("retype", "chunk choices[].index = true", b""), {"text"}, stream=True) is None
    assert why("openai-chat", Mutant("drop", "chunk", b""), {"text"}, stream=True) == "unnumbered"
