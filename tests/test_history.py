"""The rules that a conversation must keep: every repair, every refusal, and the way out after an interruption."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonlib.errors import InvalidRequest
from lessonlib.history import NOT_KNOWN, arrange, close_open_calls, merge_neighbours, result_pieces, stays_behind
from lessonlib.types import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

WIRE = "anthropic-messages"


# ---------------------------------------------------------------- helpers


def call(call_id: str, name: str = "f") -> ToolCall:
    return ToolCall(call_id=call_id, name=name, args={})


def dead(call_id: str) -> ToolCall:
    """A call that can never be run."""
    return ToolCall(call_id=call_id, name="f", args_error="cut")


def result(call_id: str, text: str = "ok") -> ToolResult:
    return ToolResult(call_id=call_id, content=text)


def thought(text: str, wire: str = WIRE) -> Reasoning:
    return Reasoning(text=text, wire=wire, raw={"type": "thinking", "thinking": text})


def user(*parts: str | Part) -> Message:
    return Message.user(*parts)


def assistant(*parts: str | Part) -> Message:
    return Message.assistant(*parts)


def shape(messages: list[Message]) -> list[str]:
    """One line per message: `user: result(a) text`."""
    return [f"{message.role}: {' '.join(map(word, message.parts))}" for message in messages]


def word(part: Part) -> str:
    match part:
        case ToolCall():
            return f"{'call' if part.args is not None else 'dead'}({part.call_id})"
        case ToolResult():
            return f"{'error' if part.is_error else 'result'}({part.call_id})"
        case Text() | Reasoning():
            return part.text
        case _:
            return part.type


def arranged(*messages: Message, merge: bool = True) -> list[str]:
    return shape(arrange(messages, WIRE, merge=merge))


# ---------------------------------------------------------------- repairs


def test_a_good_conversation_is_left_as_it_is() -> None:
    messages = [user("a"), assistant(thought("t"), "b", call("1")), user(ToolResult(call_id="1", name="f")), assistant("c")]
    kept = arrange(messages, WIRE, merge=False)
    assert kept == messages
    assert all(mine is theirs for mine, theirs in zip(kept[:2], messages[:2], strict=True))


def test_results_come_first_and_in_call_order() -> None:
    assert arranged(user("a"), assistant(call("1"), call("2")), user("and?", result("2"), result("1"))) == [
        "user: a",
        "assistant: call(1) call(2)",
        "user: result(1) result(2) and?",
    ]


def test_results_spread_over_several_messages_are_gathered() -> None:
    messages = [user("a"), assistant(call("1"), call("2")), user(result("2")), user("Thanks, and C?"), user(result("1"))]
    assert arranged(*messages)[2:] == ["user: result(1) result(2) Thanks, and C?"]
    assert arranged(*messages, merge=False)[2:] == ["user: result(1) result(2)", "user: Thanks, and C?"]


def test_a_result_without_a_name_gets_the_name_of_its_call() -> None:
    named = arrange([assistant(call("1", "get_weather")), user(result("1"))], WIRE, merge=True)[1].tool_results
    assert [each.name for each in named] == ["get_weather"]
    raw = ToolResult(call_id="1", wire=WIRE, raw={"type": "tool_result"})
    assert arrange([assistant(call("1")), user(raw)], WIRE, merge=True)[1].tool_results[0].raw == {"type": "tool_result"}


def test_neighbours_of_the_same_role_are_joined_only_when_asked() -> None:
    messages = [user("a"), user("b"), assistant("c"), assistant("d"), user("e")]
    assert arranged(*messages) == ["user: a b", "assistant: c d", "user: e"]
    assert arranged(*messages, merge=False) == ["user: a", "user: b", "assistant: c", "assistant: d", "user: e"]


def test_calls_of_neighbouring_assistant_messages_are_answered_together() -> None:
    """A turn that was paused and then went on is one turn."""
    paused = assistant(Opaque(kind="server_tool_use", wire=WIRE, raw={"type": "server_tool_use"}), call("1"))
    assert arranged(user("a"), paused, assistant("b", call("2")), user(result("2"), result("1"))) == [
        "user: a",
        "assistant: opaque call(1) b call(2)",
        "user: result(1) result(2)",
    ]


def test_empty_text_and_foreign_reasoning_and_opaque_parts_stay_behind() -> None:
    foreign = Opaque(kind="web_search_call", wire="openai-responses", raw={"id": "ws_1"})
    assert arranged(user("a", ""), assistant(thought("t", "openai-responses"), foreign, "b", ""), user("c")) == [
        "user: a",
        "assistant: b",
        "user: c",
    ]


def test_a_message_that_becomes_empty_is_left_out_and_its_neighbours_are_joined() -> None:
    assert arranged(user("a"), assistant(thought("t", "gemini-interactions")), user("b")) == ["user: a b"]
    assert arranged(user(""), assistant("b")) == ["assistant: b"]
    assert arranged() == []


def test_an_encoder_can_drop_what_its_vendor_refuses() -> None:
    messages = [user("a", " "), assistant("b")]
    kept = arrange(messages, WIRE, merge=True, drop=lambda part: isinstance(part, Text) and not part.text.strip())
    assert shape(kept) == ["user: a", "assistant: b"]


def test_the_conversation_that_came_in_is_never_changed() -> None:
    messages = [user("a", ""), assistant(dead("0"), call("1")), user("b", result("1")), user("c")]
    before = [message.model_dump_json() for message in messages]
    arrange(messages, WIRE, merge=True)
    close_open_calls(messages)
    assert [message.model_dump_json() for message in messages] == before


@pytest.mark.parametrize(
    ("part", "behind"),
    [
        (Text(text="a"), False),
        (Text(text=""), True),
        (Text(text="", wire=WIRE, raw={"type": "text"}), False),
        (Text(text="", wire="other", raw={"type": "text"}), True),
        (Reasoning(text="a"), True),
        (Reasoning(text="", wire=WIRE, raw={"type": "thinking"}), False),
        (Reasoning(text="cut", wire=WIRE), True),
        (Reasoning(text="a", wire=WIRE, inside=True), False),
        (Reasoning(text="a", wire="other", inside=True), True),
        (Opaque(kind="x", wire="other", raw={}), True),
        (Opaque(kind="x", wire=WIRE, raw={}), False),
        (Image(url="https://h.example/a.png"), False),
        (call("1"), False),
        (dead("1"), False),
        (result("1"), False),
    ],
)
def test_what_stays_behind(part: Part, behind: bool) -> None:
    assert stays_behind(part, WIRE) is behind


def test_merging_alone_drops_nothing() -> None:
    assert shape(merge_neighbours([user(""), user("a"), assistant(), assistant("b")])) == ["user:  a", "assistant: b"]


def test_the_pieces_of_a_result() -> None:
    pieces: list[Text | Image] = [Text(text="a"), Image(url="https://h.example/a.png")]
    assert result_pieces(result("1", "a")) == [Text(text="a")]
    assert result_pieces(ToolResult(call_id="1", content=pieces)) == pieces


# ---------------------------------------------------------------- calls that can never be run


def test_a_dead_call_without_an_answer_is_left_out() -> None:
    assert arranged(user("a"), assistant("b", call("1"), dead("2")), user(result("1"))) == [
        "user: a",
        "assistant: b call(1)",
        "user: result(1)",
    ]


def test_a_dead_call_with_an_answer_stays_and_is_paired() -> None:
    assert arranged(user("a"), assistant(call("1"), dead("2")), user(result("2"), result("1")))[1:] == [
        "assistant: call(1) dead(2)",
        "user: result(1) result(2)",
    ]


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ((thought("t"), dead("1")), None),
        ((thought("t"), thought("u"), dead("1"), dead("2")), None),
        (("b", thought("t"), dead("1")), "assistant: b"),
        ((thought("t"), "b", dead("1")), "assistant: t b"),
        ((thought("t"), call("1"), dead("2")), "assistant: t call(1)"),
        ((thought("t"), dead("1"), call("2")), "assistant: t call(2)"),
        ((thought("t"), dead("1"), thought("u"), "b"), "assistant: u b"),
        ((thought("t"),), "assistant: t"),
    ],
)
def test_reasoning_that_led_to_a_dead_call_alone_goes_with_it(parts: tuple[Part, ...], left: str | None) -> None:
    answers = [result(part.call_id) for part in parts if isinstance(part, ToolCall) and part.args is not None]
    listed = arranged(user("a"), assistant(*parts), user("c", *answers))
    assert listed[1:-1] == ([left] if left else [])


def test_a_dead_call_never_takes_the_answer_of_a_whole_call_with_the_same_id() -> None:
    assert arranged(user("a"), assistant(dead("x"), call("x")), user(result("x")))[1:] == [
        "assistant: call(x)",
        "user: result(x)",
    ]
    assert arranged(user("a"), assistant(call("x"), dead("x")), user(result("x"), result("x", "2")))[1:] == [
        "assistant: call(x) dead(x_2)",
        "user: result(x) result(x_2)",
    ]


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([user("a"), assistant(call("1"))], r"no result for f \(1\) before message 2"),
        ([user("a"), assistant(call("1")), user("b")], r"no result for f \(1\) before message 2"),
        ([user("a"), assistant(call("1"), call("2")), user(result("2"))], r"no result for f \(1\)"),
        ([user("a"), assistant(call("1")), user("b"), assistant("c"), user(result("1"))], r"no result for f \(1\)"),
        ([user("a"), assistant(call("1")), assistant("b"), user("c")], r"no result for f \(1\)"),
        ([user("a"), assistant(call("x"), call("x")), user(result("x"))], r"no result for f \(x\)"),
        ([user(result("1"))], "message 0: a result for call '1', but .* made: none"),
        ([user("a"), assistant("b"), user(result("1"))], "message 2: a result for call '1'"),
        ([user("a"), assistant(call("1")), user(result("1"), result("2"))], "made: 1"),
        ([user("a"), assistant(call("1")), user(result("1"), result("1"))], "call '1' is answered twice"),
        ([user("a"), assistant(call("1")), user(result("1")), assistant("b"), user(result("1"))], "made: none"),
    ],
)
def test_what_cannot_be_repaired_is_refused_with_its_place(messages: list[Message], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        arrange(messages, WIRE, merge=True)


def test_the_refusal_of_an_open_call_names_the_way_out() -> None:
    with pytest.raises(InvalidRequest, match="close_open_calls"):
        arrange([assistant(call("1"))], WIRE, merge=True)


def test_one_id_used_twice_gets_its_results_in_their_order() -> None:
    messages = [assistant(call("x"), call("x")), user(result("x", "first"), result("x", "second"))]
    assert [each.text for each in arrange(messages, WIRE, merge=True)[1].tool_results] == ["first", "second"]
    again = [*messages, assistant(call("x")), user(result("x", "third"))]
    assert [each.text for message in arrange(again, WIRE, merge=True) for each in message.tool_results] == [
        "first",
        "second",
        "third",
    ]


def test_two_calls_of_one_turn_with_one_id_get_two() -> None:
    """Refused by OpenAI as a "duplicate value for 'tool_call_id'" (agno #5116, openclaw #47136)."""
    messages = [assistant(call("x"), call("x_2"), call("x")), user(result("x", "1"), result("x_2", "2"), result("x", "3"))]
    asked, answered = arrange(messages, WIRE, merge=True)
    assert [each.call_id for each in asked.tool_calls] == ["x", "x_2", "x_3"]
    assert [(each.call_id, each.text) for each in answered.tool_results] == [("x", "1"), ("x_2", "2"), ("x_3", "3")]
    later = arrange([*messages, assistant(call("x")), user(result("x", "4"))], WIRE, merge=True)
    assert [each.call_id for each in later[2].tool_calls + later[3].tool_results] == ["x", "x"]
    assert [each.call_id for each in messages[0].tool_calls] == ["x", "x_2", "x"]


def test_many_calls_of_one_id_are_renamed_in_linear_time() -> None:
    messages = [assistant(*[call("x")] * 5000), user(*[result("x", "ok")] * 5000)]
    assert arrange(messages, WIRE, merge=True)[1].tool_results[-1].call_id == "x_5000"


# ---------------------------------------------------------------- after an interruption


def closed(*messages: Message) -> list[str]:
    """The shape of a closed conversation, which any encoder takes, and which closing again does not change."""
    listed = close_open_calls(messages)
    arrange(listed, WIRE, merge=True)
    assert close_open_calls(listed) == listed
    return shape(listed)


def test_text_that_went_on_behind_an_open_call_becomes_a_turn_of_its_own() -> None:
    assert closed(user("Go"), assistant("Good.", call("t1"), "I go on."), user("Yes")) == [
        "user: Go",
        "assistant: Good. call(t1)",
        "user: error(t1)",
        "assistant: I go on.",
        "user: Yes",
    ]


def test_the_last_message_may_have_open_calls() -> None:
    listed = close_open_calls([user("a"), assistant(call("1", "get_weather"), call("2"))])
    assert shape(listed) == ["user: a", "assistant: call(1) call(2)", "user: error(1) error(2)"]
    assert [[each.name, each.text] for each in listed[2].tool_results] == [["get_weather", NOT_KNOWN], ["f", NOT_KNOWN]]
    assert close_open_calls([assistant(call("1"))], text="stopped")[1].tool_results[0].text == "stopped"


def test_where_some_calls_were_answered_the_missing_results_join_theirs() -> None:
    assert closed(user("a"), assistant(call("1"), call("2"), "tail"), user(result("1"), "b")) == [
        "user: a",
        "assistant: call(1) call(2) tail",
        "user: error(2)",
        "user: result(1) b",
    ]


def test_a_turn_of_several_messages_is_closed_as_one() -> None:
    assert closed(user("a"), assistant(call("1"), call("2")), assistant("b"), user(result("1"))) == [
        "user: a",
        "assistant: call(1) call(2)",
        "assistant: b",
        "user: error(2)",
        "user: result(1)",
    ]
    assert closed(assistant(call("1")), assistant("b", call("2")), user("c")) == [
        "assistant: call(1)",
        "user: error(1)",
        "assistant: b call(2)",
        "user: error(2)",
        "user: c",
    ]


def test_calls_that_cannot_be_run_are_not_answered() -> None:
    assert closed(user("a"), assistant("b", dead("1")), user("c")) == ["user: a", "assistant: b dead(1)", "user: c"]
    assert closed(user("a"), assistant(dead("1"), call("2"))) == ["user: a", "assistant: dead(1) call(2)", "user: error(2)"]
    assert closed(user("a"), assistant(call("1"), dead("2")), user("c")) == [
        "user: a",
        "assistant: call(1)",
        "user: error(1)",
        "assistant: dead(2)",
        "user: c",
    ]


def test_of_two_calls_with_one_id_and_one_result_the_second_is_closed() -> None:
    assert closed(assistant(call("x"), call("x")), user(result("x"))) == [
        "assistant: call(x) call(x)",
        "user: error(x)",
        "user: result(x)",
    ]


def test_a_conversation_without_open_calls_is_left_as_it_is() -> None:
    messages = [user("a"), assistant(call("1")), user(result("1")), assistant("b")]
    assert close_open_calls(messages) == messages
    assert close_open_calls([]) == []


IDS = st.sampled_from("abc")
PARTS = st.one_of(
    st.just(Text(text="x")), st.just(thought("t")), IDS.map(call), IDS.map(dead), st.just(Text(text=""))
)  # fmt: skip
CONVERSATIONS = st.lists(
    st.one_of(
        st.lists(PARTS, max_size=4).map(lambda parts: Message(role="assistant", parts=parts)),
        st.just(user("y")),
    ),
    max_size=8,
)


@given(CONVERSATIONS)
def test_every_interrupted_conversation_can_be_closed_and_is_then_accepted(messages: list[Message]) -> None:
    """However the calls lie, closing leaves nothing open, removes nothing, and is done once."""
    listed = close_open_calls(messages)
    arrange(listed, WIRE, merge=True)
    assert close_open_calls(listed) == listed
    parts = [id(part) for message in messages for part in message.parts]
    assert [id(part) for message in listed for part in message.parts if id(part) in set(parts)] == parts


@given(CONVERSATIONS, st.data())
def test_a_conversation_that_was_answered_in_part_can_be_closed(messages: list[Message], data: st.DataObject) -> None:
    answered: list[Message] = []
    for message in messages:
        answered.append(message)
        whole = {each.call_id for each in message.tool_calls if each.args is not None}
        ids = [each for each in sorted(whole) if data.draw(st.booleans())]
        if ids:
            answered.append(user(*map(result, ids)))
    listed = close_open_calls(answered)
    arrange(listed, WIRE, merge=True)
    assert close_open_calls(listed) == listed


@given(CONVERSATIONS)
def test_what_was_arranged_is_arranged(messages: list[Message]) -> None:
    once = arrange(close_open_calls(messages), WIRE, merge=True)
    assert arrange(once, WIRE, merge=True) == once
    assert [message.role for message in once] == [message.role for message in merge_neighbours(once)]


# ---------------------------------------------------------------- time


def seconds(pairs: int) -> float:
    """Processor time for a conversation of 4 messages per pair, the best of three."""
    messages: list[Message] = []
    for number in range(pairs):
        ids = [f"{number}-{each}" for each in range(3)]
        messages += [user("a"), assistant(thought("t"), *map(call, ids)), user(*map(result, reversed(ids))), assistant("b")]
    times = []
    for _ in range(3):
        began = time.process_time()
        assert len(arrange(messages, WIRE, merge=True)) == len(messages)
        assert len(close_open_calls(messages)) == len(messages)
        times.append(time.process_time() - began)
    return max(min(times), 0.02)


def test_ten_thousand_messages_take_eight_times_as_long_as_an_eighth_of_them() -> None:
    assert seconds(2_496) < 32 * seconds(312)


def test_a_turn_of_ten_thousand_calls_is_no_different() -> None:
    ids = [str(number) for number in range(10_000)]
    messages = [assistant(*map(call, ids)), user(*map(result, reversed(ids)))]
    assert [each.call_id for each in arrange(messages, WIRE, merge=True)[1].tool_results] == ids
    same = [assistant(*(call("x") for _ in ids)), user(*(result("x", each) for each in ids))]
    assert [each.text for each in arrange(same, WIRE, merge=True)[1].tool_results] == ids
    assert len(close_open_calls(messages[:1])[1].tool_results) == 10_000
