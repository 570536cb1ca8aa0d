"""Resuming a broken answer: by the model's rule, from the last text only, and not at all where that would be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from lessonlib.client import Client
from lessonlib.errors import IncompleteStream, InvalidRequest, LessonError
from lessonlib.resume import QUOTED, CannotResume, join, resume, resumption
from lessonlib.sim import SimTransport, Simulator
from lessonlib.types import Message, Opaque, Part, Reasoning, Request, Response, StopReason, Text, ToolCall, ToolResult
from lessonlib.wire import WIRES, AnthropicMessages
from lessonlib.wire.base import cut_call

OLD, NEW = "claude-sonnet-4-5", "claude-opus-5-5"
ASKED = Request(messages="Tell me of the tide.")
TEXT = "The tide comes twice a day, because the sea"


def broken(
    *parts: str | Part, model: str = NEW, wire: str = "anthropic-messages", stop: StopReason = StopReason.OTHER
) -> Response:
    return Response(message=Message.assistant(*parts), stop=stop, model=model, wire=wire)


# ---------------------------------------------------------------- the rule of each generation


@pytest.mark.parametrize("model", ["claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5-20251001"])
def test_up_to_4_5_the_text_so_far_is_a_prefill(model: str) -> None:
    found = resumption(ASKED, broken(TEXT, model=model))
    assert found.how == "prefill"
    assert found.request.messages == [*ASKED.messages, Message.assistant(TEXT)]


@pytest.mark.parametrize(
    ("model", "wire"),
    [
        ("claude-opus-4-6", "anthropic-messages"),
        ("claude-opus-5-5", "anthropic-messages"),
        ("claude-of-tomorrow", "anthropic-messages"),
        ("gpt-6-astra", "openai-responses"),
        ("gemini-3.8-flash", "gemini-interactions"),
        ("claude-sonnet-4-5", "openai-chat"),
    ],
)
def test_all_others_get_a_user_message_that_quotes_the_end(model: str, wire: str) -> None:
    found = resumption(ASKED, broken(TEXT, model=model, wire=wire))
    assert found.how == "quote"
    first, shown, ask = found.request.messages
    assert (first, shown) == (ASKED.messages[0], Message.assistant(TEXT))
    assert ask.role == "user"
    assert TEXT in ask.text


def test_only_the_end_of_a_long_text_is_quoted_from_a_words_beginning() -> None:
    text = " ".join(f"word{number}" for number in range(500))
    ask = resume(ASKED, broken(text)).messages[-1].text
    assert "word499" in ask
    assert "word0 " not in ask
    (quoted,) = [line for line in ask.splitlines() if "word499" in line]
    assert quoted.startswith("word")
    assert QUOTED - 10 < len(quoted) <= QUOTED


def test_no_prefill_beside_a_thinking_budget() -> None:
    assert resumption(ASKED.replace(reasoning=2048), broken(TEXT, model=OLD)).how == "quote"
    assert resumption(ASKED.replace(reasoning="none"), broken(TEXT, model=OLD)).how == "prefill"


def test_the_next_wire_decides_not_the_one_that_broke() -> None:
    """A fallback to an older model may be continued where the first one could not."""
    wire = AnthropicMessages(OLD, api_key="k")
    assert resumption(ASKED, broken(TEXT, model="gpt-6-astra", wire="openai-responses"), wire).how == "prefill"
    assert resumption(ASKED, broken(TEXT, model=OLD), "openai-chat").how == "quote"


def test_the_error_itself_can_be_given() -> None:
    error = IncompleteStream("cut", partial=broken(TEXT))
    assert resume(ASKED, error) == resume(ASKED, broken(TEXT))


# ---------------------------------------------------------------- from the last text only


def test_half_a_call_and_half_a_thought_are_left_out_and_named() -> None:
    thought = Reasoning(text="Hm, the mo", wire="anthropic-messages")
    half = cut_call("c1", "tide", '{"pla', wire="anthropic-messages")
    found = resumption(ASKED, broken(thought, TEXT, half))
    assert found.request.messages[1] == Message.assistant(TEXT)
    assert found.dropped == ("1 pieces of reasoning", "1 unfinished calls")


def test_whole_calls_of_an_answer_that_did_not_end_are_left_out_too() -> None:
    call = ToolCall(call_id="c1", name="tide", args={"place": "Kiel"}, wire="anthropic-messages", raw={"type": "tool_use"})
    found = resumption(ASKED, broken(TEXT, call))
    assert not any(message.tool_calls for message in found.request.messages)
    assert found.dropped == ("1 calls, which were not run",)


def test_text_before_and_after_something_else_is_one_text() -> None:
    search = Opaque(kind="web_search", wire="anthropic-messages", raw={"type": "server_tool_use"})
    found = resumption(ASKED, broken("Let me look. ", search, "The tide"))
    assert found.text == "Let me look. The tide"
    assert found.dropped == ("1 parts of the kind opaque",)


@pytest.mark.parametrize("parts", [[], ["  \n"], [Reasoning(text="Hm", wire="anthropic-messages")],
                                   [cut_call("c", "tide", '{"p', wire="anthropic-messages")]])  # fmt: skip
def test_without_visible_text_the_request_is_sent_again(parts: list[Any]) -> None:
    found = resumption(ASKED, broken(*parts))
    assert (found.request, found.how) == (ASKED, "again")


def test_nothing_arrived_at_all() -> None:
    assert resume(ASKED, None) == ASKED
    assert resume(ASKED, LessonError("refused")) == ASKED


# ---------------------------------------------------------------- where it cannot


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        (StopReason.END, "whole"),
        (StopReason.TOOL_USE, "calls"),
        (StopReason.REFUSAL, "declined"),
        (StopReason.PAUSE, "paused"),
    ],
)
def test_answers_that_are_not_cut_are_refused_with_the_reason(stop: StopReason, why: str) -> None:
    with pytest.raises(CannotResume, match=why):
        resume(ASKED, broken(TEXT, stop=stop))
    assert issubclass(CannotResume, InvalidRequest)


def test_an_answer_that_ran_into_its_cap_can_go_on() -> None:
    assert resumption(ASKED, broken(TEXT, stop=StopReason.LENGTH)).how == "quote"


def test_an_answer_with_a_schema_cannot_be_continued() -> None:
    asked = ASKED.replace(output_schema={"type": "object"})
    with pytest.raises(CannotResume, match="schema"):
        resume(asked, broken('{"a": 1, "b'))
    assert resume(asked, broken()) == asked


# ---------------------------------------------------------------- joining


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("The tide", " is high", "The tide is high"),
        ("The tide ", " is high", "The tide is high"),
        ("The tide ", "is high", "The tide is high"),
        ("The ti", "de is high", "The tide is high"),
        ("The ti", "tide is high", "The tide is high"),
        ("because the sea", "because the sea is pulled", "because the sea is pulled"),
        ("because the sea ", "\nbecause the sea is pulled", "because the sea is pulled"),
        ("It was very", " very cold", "It was very very cold"),
        ("a", "and b", "aand b"),
        ("", "Hello", "Hello"),
        ("Hello", "", "Hello"),
        ("北京今天", "天气晴", "北京今天天气晴"),
        ("one\n\n", "\ntwo", "one\ntwo"),
    ],
)
def test_two_pieces_become_one_text(before: str, after: str, joined: str) -> None:
    assert join(before, after) == joined


def test_behind_a_prefill_a_repetition_is_meant() -> None:
    found = resumption(ASKED, broken("- yes, and again\n- yes, and again\n", model=OLD))
    assert found.join("- yes, and again\n") == "- yes, and again\n- yes, and again\n- yes, and again\n"
    assert resumption(ASKED, broken(TEXT)).join(f"{TEXT} is pulled.") == f"{TEXT} is pulled."


# ---------------------------------------------------------------- the services take it


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        ("anthropic-messages", OLD),
        ("anthropic-messages", NEW),
        ("openai-responses", "gpt-6-astra"),
        ("openai-chat", "gpt-6-astra"),
        ("gemini-interactions", "gemini-3.8-flash"),
        ("gemini-generate-content", "gemini-3.8-flash"),
    ],
)
def test_a_service_takes_the_request(wire: str, model: str) -> None:
    """After a tool round trip, with the thinking of the broken answer gone, and with white space at its end."""
    with Client(WIRES[wire](model, api_key="k"), transport=SimTransport(Simulator())) as client:
        thinks = broken(Reasoning(text="Hm", wire=wire), f"{TEXT} ", model=model, wire=wire)
        answer = client.generate(resume(ASKED, thinks, client.wire))
        assert answer.stop is StopReason.END


def test_after_results_the_text_stands_behind_them() -> None:
    call = ToolCall(call_id="c1", name="tide", args={})
    asked = Request(
        messages=[Message.user("Tide?"), Message.assistant(call), Message.user(ToolResult(call_id="c1", content="1 m"))]
    )
    roles = [message.role for message in resume(asked, broken(Text(text="It is"))).messages]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
