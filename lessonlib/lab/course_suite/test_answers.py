"""What is read of an answer, whole and streamed (lessons 00, 03, 04, 05, 12)."""

from __future__ import annotations

from typing import Any

import pytest

from lessonlib.lab.course_suite import behaviour, captures
from lessonlib.lab.course_suite.captures import CITY, JSON, chat_chunk, sse
from lessonlib.lab.course_suite.fakes import ASK, Server, answer, fold, only_call, read, streamed
from lessonlib.lab.course_suite.fakes import stream as reply
from lessonlib.tool_loop import run_tools
from lessonlib.types import Response, StopReason, Text

STREAMS: dict[str, bytes] = {
    "openai-responses": sse(*captures.openai_events()),
    "anthropic-messages": sse(*captures.anthropic_events()),
    "gemini-interactions": sse(*captures.gemini_events(), name="event_type", done=True),
    "openai-chat": sse(*captures.chat_events(), name="", done=True),
    "gemini-generate-content": sse(*captures.generate_events(), name=""),
}
WHOLE: dict[str, JSON] = {
    "openai-responses": captures.openai_whole(),
    "anthropic-messages": captures.anthropic_whole(),
    "gemini-interactions": captures.gemini_whole(),
    "openai-chat": captures.chat_whole(),
    "gemini-generate-content": captures.generate_whole(),
}


def told(response: Response) -> dict[str, Any]:
    """What an answer says, in plain values."""
    usage = response.usage
    return {
        "text": response.text,
        "calls": [(call.name, call.args) for call in response.tool_calls],
        "stop": response.stop,
        "input": usage and usage.input_tokens,
        "output": usage and usage.output_tokens,
    }


# ---------------------------------------------------------------- text and calls


@behaviour("text_by_type")
def test_text_behind_reasoning_and_in_two_pieces() -> None:
    thinking = captures.ANTHROPIC_BLOCKS[0]
    blocks = [thinking, {"type": "text", "text": "Sunny, "}, {"type": "text", "text": "22 °C."}]
    assert read("anthropic-messages", captures.anthropic_whole(*blocks, stop="end_turn")).text == "Sunny, 22 °C."


@behaviour("text_by_type")
def test_a_turn_of_calls_alone_has_no_text() -> None:
    response = read("openai-responses", captures.openai_whole())
    assert (response.text, response.stop) == ("", StopReason.TOOL_USE)


@behaviour("call_without_arguments")
@pytest.mark.parametrize("text", ["", "  "])
def test_blank_arguments_are_an_empty_object(text: str) -> None:
    call = {**captures.OPENAI_CALL, "arguments": text}
    assert only_call(read("openai-responses", captures.openai_whole(call))) == ("get_weather", {})


@behaviour("stream_equals_whole")
@pytest.mark.parametrize("wire", sorted(WHOLE))
def test_stream_and_whole_say_the_same(wire: str) -> None:
    assert told(fold(wire, STREAMS[wire])) == told(read(wire, WHOLE[wire]))


# ---------------------------------------------------------------- usage


@behaviour("anthropic_input_is_the_sum")
def test_the_cached_tokens_are_input_too() -> None:
    usage = read("anthropic-messages", captures.anthropic_whole()).usage
    assert usage is not None
    assert usage.input_tokens == 1030


@behaviour("unreported_is_none")
def test_what_was_not_reported_is_none() -> None:
    usage = read("anthropic-messages", captures.anthropic_whole()).usage
    assert usage is not None
    assert usage.reasoning_tokens is None


# ---------------------------------------------------------------- stops


@behaviour("unknown_stop_is_other")
@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("anthropic-messages", captures.anthropic_whole(stop="new_in_2027")),
        ("openai-responses", captures.openai_whole(status="new_in_2027")),
        ("gemini-interactions", captures.gemini_whole(status="new_in_2027")),
    ],
)
def test_a_new_word_is_other(wire: str, body: JSON) -> None:
    assert read(wire, body).stop is StopReason.OTHER


@behaviour("pause_is_not_the_end")
def test_a_continuation_is_gone_on_with() -> None:
    first = captures.gemini_whole(
        {"type": "model_output", "content": [{"type": "text", "text": "One "}]},
        status="requires_continuation",
        continuation_token="token-1",
    )
    last = captures.gemini_whole(
        {"type": "model_output", "content": [{"type": "text", "text": "answer."}]}, status="completed"
    )
    server = Server(answer(first), answer(last))
    with server.client("gemini-interactions") as client:
        run = run_tools(client, ASK)
    assert [part.text for part in run.response.message.parts if isinstance(part, Text)] == ["One ", "answer."]


# ---------------------------------------------------------------- Gemini's two spellings


@behaviour("gemini_recorded_arguments")
def test_the_form_that_the_service_sends() -> None:
    data = sse(*captures.gemini_events(captures.GEMINI_STEPS[2]), name="event_type", done=True)
    assert only_call(fold("gemini-interactions", data)) == ("get_weather", {"city": CITY})


@behaviour("gemini_guide_arguments")
def test_the_form_of_the_guide() -> None:
    data = sse(*captures.gemini_guide_events())
    assert only_call(fold("gemini-interactions", data)) == ("get_weather", {"city": CITY})


@behaviour("start_may_hold_content")
def test_words_in_the_start_of_a_step() -> None:
    events = captures.gemini_events({"type": "model_output", "content": [{"type": "text", "text": " is sunny."}]})
    events[1]["step"] = {"type": "model_output", "content": [{"type": "text", "text": "Beijing"}]}
    data = sse(*events, name="event_type")
    assert fold("gemini-interactions", data).text == "Beijing is sunny."


@behaviour("pieces_by_number")
def test_two_steps_whose_pieces_alternate() -> None:
    steps = [
        {"type": "function_call", "id": f"fc{n}", "name": "get_weather", "arguments": {"city": city}}
        for n, city in ((1, "北京"), (2, "上海"))
    ]
    one, other = (captures.gemini_step(index, step) for index, step in enumerate(steps))
    opening, *_, ending = captures.gemini_events(*steps)
    mixed = [one[0], other[0], *(event for pair in zip(one[1:], other[1:], strict=True) for event in pair)]
    response = fold("gemini-interactions", sse(opening, *mixed, ending, name="event_type"))
    assert [call.args for call in response.tool_calls] == [{"city": "北京"}, {"city": "上海"}]


@behaviour("pieces_by_number")
def test_two_blocks_whose_pieces_alternate() -> None:
    def delta(index: int, text: str) -> JSON:
        return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}

    blocks = [{"type": "text", "text": ""}, {"type": "text", "text": ""}]
    events = captures.anthropic_events(*blocks, stop="end_turn")
    starts = [event for event in events if event["type"] == "content_block_start"]
    stops = [event for event in events if event["type"] == "content_block_stop"]
    middle = [*starts, delta(0, "A"), delta(1, "X"), delta(0, "B"), delta(1, "Y"), *stops]
    message = fold("anthropic-messages", sse(events[0], *middle, *events[-2:])).message
    assert [part.text for part in message.parts if isinstance(part, Text)] == ["AB", "XY"]


# ---------------------------------------------------------------- Chat Completions


def call_piece(index: int, arguments: str, **head: Any) -> JSON:
    """A chunk with one piece of a call."""
    name = {"name": head.pop("name")} if "name" in head else {}
    return chat_chunk({"tool_calls": [{"index": index, **head, "function": {**name, "arguments": arguments}}]})


@behaviour("two_calls_one_index")
def test_two_ids_under_one_index() -> None:
    events = [
        call_piece(0, '{"city":"北京"}', id="call_a", type="function", name="get_weather"),
        call_piece(0, '{"city":"上海"}', id="call_b", type="function", name="get_weather"),
        chat_chunk({}, "tool_calls"),
    ]
    response = fold("openai-chat", sse(*events, name="", done=True))
    assert [call.args for call in response.tool_calls] == [{"city": "北京"}, {"city": "上海"}]


@behaviour("an_id_is_set_once")
def test_an_id_in_every_chunk() -> None:
    events = [
        call_piece(0, '{"city":', id="call_a", type="function", name="get_weather"),
        call_piece(0, '"北京"}', id="call_a", type="function"),
        chat_chunk({}, "tool_calls"),
    ]
    (call,) = fold("openai-chat", sse(*events, name="", done=True)).tool_calls
    assert (call.call_id, call.args) == ("call_a", {"city": "北京"})


@behaviour("usage_after_the_finish")
def test_the_last_usage_counts() -> None:
    early = {"prompt_tokens": 120, "completion_tokens": 1, "total_tokens": 121}
    events = [
        chat_chunk({"role": "assistant", "content": "Sunny."}, usage=early),
        chat_chunk({}, "stop"),
        {"id": "chatcmpl_1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": captures.CHAT_USAGE},
    ]
    response = streamed(Server(reply(sse(*events, name="", done=True))), "openai-chat")
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (120, 90)
