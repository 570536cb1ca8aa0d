"""What is sent: the first request, and what goes back in the second (lessons 02 to 05, 11)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lessonlib.lab.course_suite import behaviour, captures
from lessonlib.lab.course_suite.fakes import ASK, Server, answer, make, read, stream
from lessonlib.tool_loop import run_tools, stream_tools
from lessonlib.types import JSON, Message, Reasoning, Request, ToolResult, dump_history, load_history

WHOLE: dict[str, JSON] = {
    "openai-responses": captures.openai_whole(),
    "anthropic-messages": captures.anthropic_whole(),
    "gemini-interactions": captures.gemini_whole(),
}
LAST: dict[str, JSON] = {
    "openai-responses": captures.openai_whole(captures.openai_message("Sunny.")),
    "anthropic-messages": captures.anthropic_whole({"type": "text", "text": "Sunny."}, stop="end_turn"),
    "gemini-interactions": captures.gemini_whole(
        {"type": "model_output", "content": [{"type": "text", "text": "Sunny."}]}, status="completed"
    ),
}


def get_weather(city: str) -> str:
    return f"Sunny in {city}."


def second_request(wire: str) -> str:
    """The loop's second request after a whole first answer, as text."""
    server = Server(answer(WHOLE[wire]), answer(LAST[wire]))
    with server.client(wire) as client:
        run_tools(client, ASK, [get_weather])
    return json.dumps(server.asked[1], ensure_ascii=False)


def second_request_of_a_stream(wire: str, first: bytes, last: bytes) -> str:
    """The same where both answers were streamed."""
    server = Server(stream(first), stream(last))
    with server.client(wire) as client, stream_tools(client, ASK, [get_weather]) as events:
        for _ in events:
            pass
    return json.dumps(server.asked[1], ensure_ascii=False)


# ---------------------------------------------------------------- OpenAI


@behaviour("store_false_is_sent")
def test_the_bytes_say_store_false() -> None:
    sent = make("openai-responses").encode(ASK).content
    assert b'"store":false' in sent


@behaviour("openai_call_id_pairs")
def test_the_output_names_the_call_id() -> None:
    sent = json.loads(second_request("openai-responses"))
    (output,) = [item for item in sent["input"] if item.get("type") == "function_call_output"]
    assert output["call_id"] == captures.OPENAI_CALL["call_id"]


@behaviour("openai_reasoning_goes_back")
def test_the_encrypted_reasoning_is_in_the_second_request() -> None:
    assert captures.BLOB in second_request("openai-responses")


@behaviour("openai_finished_blob")
def test_the_blob_is_that_of_the_finished_item() -> None:
    first = captures.sse(*captures.openai_events())
    last = captures.sse(*captures.openai_events(captures.openai_message("Sunny.")))
    assert captures.BLOB in second_request_of_a_stream("openai-responses", first, last)


# ---------------------------------------------------------------- Anthropic


@behaviour("anthropic_reasoning_goes_back")
def test_the_signed_thinking_is_in_the_second_request() -> None:
    assert captures.SIGNATURE in second_request("anthropic-messages")


@behaviour("anthropic_streamed_signature")
def test_a_streamed_thinking_block_keeps_its_signature() -> None:
    first = captures.sse(*captures.anthropic_events())
    last = captures.sse(*captures.anthropic_events({"type": "text", "text": "Sunny."}, stop="end_turn"))
    assert captures.SIGNATURE in second_request_of_a_stream("anthropic-messages", first, last)


@behaviour("results_stand_first")
def test_results_come_before_the_users_words_and_in_one_message() -> None:
    calls = [{"type": "tool_use", "id": f"toolu_{n}", "name": "get_weather", "input": {"city": "Oslo"}} for n in (1, 2)]
    said = read("anthropic-messages", captures.anthropic_whole(*calls)).message
    messages = [
        *ASK.messages,
        said,
        Message.user("And hurry.", ToolResult(call_id="toolu_2", content="rain")),
        Message.user(ToolResult(call_id="toolu_1", content="snow")),
    ]
    sent = make("anthropic-messages").encode(Request(messages=messages)).body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert [block["type"] for block in sent[2]["content"]] == ["tool_result", "tool_result", "text"]


# ---------------------------------------------------------------- Gemini


@behaviour("gemini_reasoning_goes_back")
def test_the_signed_thought_is_in_the_second_request() -> None:
    assert captures.THOUGHT_SIGNATURE in second_request("gemini-interactions")


# ---------------------------------------------------------------- all


@behaviour("history_survives_json")
@pytest.mark.parametrize("wire", sorted(WHOLE))
def test_a_stored_history_sends_the_same_request(wire: str) -> None:
    said = read(wire, WHOLE[wire])
    results = [ToolResult(call_id=call.call_id, content="Sunny.") for call in said.tool_calls]
    messages = [*ASK.messages, said.message, Message.user(*results)]
    again = load_history(dump_history(messages))
    assert make(wire).encode(Request(messages=again)).body == make(wire).encode(Request(messages=messages)).body


SECRETS = {
    "openai-responses": captures.BLOB,
    "anthropic-messages": captures.SIGNATURE,
    "gemini-interactions": captures.THOUGHT_SIGNATURE,
}


@behaviour("foreign_reasoning_stays")
@pytest.mark.parametrize(
    ("before", "after"), [(before, after) for before in sorted(WHOLE) for after in sorted(WHOLE) if before != after]
)
def test_what_one_vendor_signed_is_not_sent_to_another(before: str, after: str) -> None:
    said = read(before, WHOLE[before])
    assert any(isinstance(part, Reasoning) for part in said.message.parts)
    results = [ToolResult(call_id=call.call_id, content="Sunny.") for call in said.tool_calls]
    sent: Any = make(after).encode(Request(messages=[*ASK.messages, said.message, Message.user(*results)])).body
    assert SECRETS[before] not in json.dumps(sent)


@behaviour("no_key_in_a_repr")
@pytest.mark.parametrize("wire", sorted(WHOLE))
def test_a_key_is_masked(wire: str) -> None:
    from lessonlib.wire import WIRES

    one = WIRES[wire]("m", api_key="sk-invented-1234567890")
    for shown in (one, one.encode(ASK), one.decoder(), vars(one)):
        assert "sk-invented-1234567890" not in repr(shown)
