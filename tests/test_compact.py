"""Compaction: what stays, what becomes a summary, and that every service takes the outcome."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib.client import Client
from lessonlib.compact import (
    HEAD,
    UNANSWERED,
    Compaction,
    Compactor,
    acompact_if_needed,
    aforce_compact,
    compact_if_needed,
    force_compact,
    room,
    transcript,
)
from lessonlib.errors import APIError, PromptTooLong
from lessonlib.history import arrange, close_open_calls
from lessonlib.sim import SimTransport, Simulator
from lessonlib.tool_loop import run_tools
from lessonlib.types import Image, Message, Reasoning, Request, StopReason, Text, Tool, ToolCall, ToolResult, Usage
from lessonlib.wire import WIRES
from tests.fakes import AFake, Fake, answer, call, cut

WIRE_MODELS = [
    ("openai-responses", "gpt-6-astra"),
    ("openai-chat", "gpt-6-astra"),
    ("anthropic-messages", "claude-opus-5-5"),
    ("anthropic-messages", "claude-opus-5"),
    ("anthropic-messages", "claude-sonnet-4-5"),
    ("gemini-interactions", "gemini-3.8-flash"),
    ("gemini-generate-content", "gemini-3.8-flash"),
]
WEATHER = Tool(name="get_weather", description="Weather of a city", parameters={
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False,
})  # fmt: skip


def result(call_id: str, text: str = "sunny") -> Message:
    return Message.user(ToolResult(call_id=call_id, content=text))


def thought(wire: str = "anthropic-messages") -> Reasoning:
    return Reasoning(text="Hm", wire=wire, raw={"type": "thinking", "thinking": "Hm", "signature": "s"})


def sized(request: Request) -> int:
    """Tokens by a rule that a person can follow: one for each character of text."""
    return len(request.system or "") + len(transcript(request.messages))


def talk(turns: int, text: str = "x" * 100) -> list[Message]:
    """Turns of question and answer, and a last question."""
    said = [
        each
        for number in range(turns)
        for each in (Message.user(f"q{number} {text}"), Message.assistant(f"a{number} {text}"))
    ]
    return [*said, Message.user("and now?")]


def compacted(request: Request, limit: int, *summaries: Any, keep_turns: int = 2, **fake: Any) -> tuple[Compaction, Fake]:
    provider = Fake(*(summaries or ("what was said",)), for_ever=True, **fake)
    found = compact_if_needed(provider, request, limit, Compactor(keep_turns, prompt="Sum up.", count=sized))
    return found, provider


# ---------------------------------------------------------------- what stays


def test_what_fits_stays_as_it_is_and_nobody_is_asked() -> None:
    request = Request(messages=talk(2))
    found, provider = compacted(request, 10_000)
    assert (found, provider.calls) == (Compaction(request), 0)


def test_old_turns_become_a_summary_and_the_newest_stay() -> None:
    request = Request(messages=talk(5), system="Be brief.", tools=[WEATHER])
    found, _ = compacted(request, 1000)
    assert found.request.messages == [Message.user(f"{HEAD}\nwhat was said"), *request.messages[-3:]]
    assert found.replaced == 8
    assert (found.request.system, found.request.tools) == (request.system, request.tools)
    assert found.usage == Usage(input_tokens=10, output_tokens=1)


def test_the_summary_is_asked_for_behind_the_conversation_as_it_was() -> None:
    """The cache serves it, and signed thinking in it is still valid."""
    request = Request(messages=talk(5), system="Be brief.", tools=[WEATHER], tool_choice="required", output_schema={})
    _, provider = compacted(request, 1000)
    asked = provider.requests[0]
    assert asked.messages == [*request.messages[:8], Message.user("Sum up.")]
    assert (asked.system, asked.tools, asked.tool_choice, asked.output_schema) == ("Be brief.", [WEATHER], "none", None)


def test_fewer_turns_stay_where_two_would_fill_more_than_half_of_the_room() -> None:
    found, _ = compacted(Request(messages=talk(5)), 400)
    assert found.request.messages == [Message.user(f"{HEAD}\nwhat was said"), Message.user("and now?")]


def test_a_running_tool_turn_stays_whole_with_its_question() -> None:
    running = [Message.user("weather?"), Message.assistant(call("get_weather", "c1", city="Oslo")), result("c1")]
    request = Request(messages=[*talk(4)[:-1], *running])
    found, _ = compacted(request, 700, keep_turns=1)
    assert found.request.messages[1:] == running


def test_a_running_turn_that_is_itself_too_long_is_cut_between_two_steps() -> None:
    steps = [
        each for number in range(8)
        for each in (Message.assistant(call("look", f"c{number}")), result(f"c{number}", "r" * 200))
    ]  # fmt: skip
    request = Request(messages=[Message.user("Look everywhere."), *steps])
    found, _ = compacted(request, 1200)
    tail = found.request.messages[1:]
    assert tail == steps[-len(tail) :]
    assert tail[0].tool_calls
    assert 0 < len(tail) < len(steps)
    arrange(found.request.messages, "openai-chat", merge=False)  # no result without its call, no call without a result


def test_what_the_last_turn_alone_is_too_long_for_is_refused_with_the_counts() -> None:
    with pytest.raises(PromptTooLong) as refusal:
        compacted(Request(messages=[*talk(2)[:-1], Message.user("x" * 2000)]), 1000)
    assert refusal.value.tokens > refusal.value.limit == 1000


def test_a_paused_answer_goes_back_as_it_is() -> None:
    request = Request(messages=[*talk(3)[:-1]])
    with pytest.raises(PromptTooLong, match="paused"):
        compacted(request, 100)
    assert force_compact(Fake(), request, 10_000).replaced == 0


def test_a_summary_of_earlier_turns_is_summed_up_with_the_next_ones() -> None:
    once, _ = compacted(Request(messages=talk(5)), 1000)
    more = Request(messages=[*once.request.messages, Message.assistant("x" * 800), Message.user("and?")])
    twice, provider = compacted(more, 1000, "both", keep_turns=1)
    assert twice.request.messages == [Message.user(f"{HEAD}\nboth"), Message.user("and?")]
    assert "what was said" in transcript(provider.requests[0].messages)


# ---------------------------------------------------------------- signed thinking


def test_bound_thinking_behind_a_summary_is_left_out_with_its_reason() -> None:
    messages = [*talk(4)[:-1], Message.user("q"), Message.assistant(thought(), "yes"), Message.user("now?")]
    found, _ = compacted(Request(messages=messages), 700, model="claude-opus-5-5")
    assert found.request.messages[-2] == Message.assistant("yes")
    assert found.dropped == ("1 thinking blocks: they are signed together with what stood before them",)


@pytest.mark.parametrize("model", ["claude-opus-4-8", "gpt-6-astra", "gemini-3.8-flash"])
def test_thinking_that_is_not_bound_stays(model: str) -> None:
    messages = [*talk(4)[:-1], Message.user("q"), Message.assistant(thought(), "yes"), Message.user("now?")]
    found, _ = compacted(Request(messages=messages), 700, model=model)
    assert found.request.messages[-2].parts[0] == thought()
    assert found.dropped == ()


def test_a_running_turn_with_bound_thinking_becomes_text_and_nothing_unanswered_is_lost() -> None:
    picture = Image(url="https://example.org/a.png")
    first = ToolResult(call_id="c1", content=[Text(text="17 °C"), picture])
    running = [
        Message.user("Weather in Oslo and Lima?"),
        Message.assistant(thought(), call("get_weather", "c1", city="Oslo"), call("get_weather", "c2", city="Lima")),
        Message.user(first, ToolResult(call_id="c2", content="no such city", is_error=True)),
    ]
    found, provider = compacted(Request(messages=[*talk(4)[:-1], *running], tools=[WEATHER]), 700, model="claude-opus-5-5")
    summary, last = found.request.messages
    assert summary.text == f"{HEAD}\nwhat was said"
    assert last.text == (
        f"Weather in Oslo and Lima?\n{UNANSWERED}"
        '\nget_weather({"city":"Oslo"}) -> 17 °C\nget_weather({"city":"Lima"}) -> no such city'
    )
    assert picture in last.parts
    assert "became text" in found.dropped[0]
    assert "17 °C" in "".join(transcript(asked.messages) for asked in provider.requests)


# ---------------------------------------------------------------- the summary


def test_a_conversation_that_does_not_fit_at_all_is_summed_up_piece_by_piece() -> None:
    request = Request(messages=talk(60), tools=[WEATHER])
    found, provider = compacted(request, 4000, *[f"summary {number}" for number in range(99)])
    assert provider.calls > 1
    assert found.summary == f"summary {provider.calls - 1}"
    assert all(sized(asked) <= 4000 for asked in provider.requests)
    assert "summary 0" in provider.requests[1].messages[0].text
    written = "".join(asked.messages[0].text for asked in provider.requests)
    assert all(f"q{number} " in written for number in range(58))
    assert found.usage == Usage(input_tokens=10 * provider.calls, output_tokens=provider.calls)


@pytest.mark.parametrize(
    "said", [answer("half of", stop=StopReason.LENGTH), answer("", stop=StopReason.REFUSAL), answer("")]
)
def test_without_a_whole_summary_nothing_is_thrown_away(said: Any) -> None:
    with pytest.raises(PromptTooLong, match="no summary"):
        compacted(Request(messages=talk(5)), 1000, said)


def test_a_summary_that_fails_raises_its_own_error() -> None:
    with pytest.raises(APIError):
        compacted(Request(messages=talk(5)), 1000, APIError("no", status=400))


def test_a_summary_as_long_as_what_it_stands_for_does_not_help() -> None:
    with pytest.raises(PromptTooLong, match="summed up"):
        compacted(Request(messages=talk(5)), 1000, "x" * 2000)


# ---------------------------------------------------------------- forced, and the async colour


def test_forced_down_to_the_last_turn() -> None:
    request = Request(messages=talk(3))
    found = force_compact(Fake("short"), request)
    assert found.request.messages == [Message.user(f"{HEAD}\nshort"), Message.user("and now?")]


def test_there_may_be_nothing_to_compact() -> None:
    request = Request(messages="Hi")
    assert force_compact(Fake(), request) == Compaction(request)


def test_both_colours_do_the_same() -> None:
    request = Request(messages=talk(5))
    compactor = Compactor(prompt="Sum up.", count=sized)
    once = compact_if_needed(Fake("s", for_ever=True), request, 1000, compactor)
    sync = once, force_compact(Fake("s", for_ever=True), request, 1000, compactor)

    async def main() -> tuple[Compaction, Compaction]:
        one = await acompact_if_needed(AFake("s", for_ever=True), request, 1000, compactor)
        return one, await aforce_compact(AFake("s", for_ever=True), request, 1000, compactor)

    assert asyncio.run(main()) == sync


def test_an_unknown_window_is_not_guarded() -> None:
    request = Request(messages=talk(5))
    assert compact_if_needed(Fake(model="unheard-of"), request) == Compaction(request)


def test_the_room_is_the_window_without_its_buffer_or_the_longest_answer() -> None:
    assert room(Request(messages="x"), "gpt-4o", buffer=13_000) == 115_000
    assert room(Request(messages="x"), "gpt-4o") == 128_000 - 12_800
    assert room(Request(messages="x", max_tokens=16_384), "gpt-4o") == 128_000 - 16_384
    assert room(Request(messages="x"), None, window=1000, buffer=0) == 1000
    assert room(Request(messages="x"), "unheard-of") is None


def test_keep_at_least_the_turn_that_is_to_be_answered() -> None:
    with pytest.raises(ValueError, match="keep_turns"):
        Compactor(0)


# ---------------------------------------------------------------- every service takes it


@pytest.mark.parametrize(("wire", "model"), WIRE_MODELS)
def test_a_service_takes_a_compacted_conversation(wire: str, model: str) -> None:
    """The simulator checks pairing, order, signatures, what thinking is bound to, and reasoning items by their ids."""
    with Client(WIRES[wire](model, api_key="k"), transport=SimTransport(Simulator())) as client:
        messages: list[Message] = []
        for city in ("Lima", "Oslo", "Rome"):
            asked = [*messages, Message.user(f"What is the weather in {city}?")]
            ask = Request(messages=asked, tools=[WEATHER], reasoning=_reasoning(model))
            messages = run_tools(client, ask, {"get_weather": lambda city: f"sunny in {city}"}).messages
        request = ask.replace(messages=[*messages, Message.user("What is the weather in Cairo?")])
        found = force_compact(client, request)
        assert found.replaced == len(messages)
        assert client.generate(found.request).tool_calls


@pytest.mark.parametrize(("wire", "model"), WIRE_MODELS)
def test_a_service_takes_a_running_tool_turn_behind_a_summary(wire: str, model: str) -> None:
    with Client(WIRES[wire](model, api_key="k"), transport=SimTransport(Simulator())) as client:
        first = Request(messages="What is the weather in Lima?", tools=[WEATHER], reasoning=_reasoning(model))  # type: ignore[arg-type]
        messages = run_tools(client, first, {"get_weather": lambda city: f"sunny in {city}"}).messages
        asked = first.replace(messages=[*messages, Message.user("What is the weather in Oslo?")])
        response = client.generate(asked)
        results = [ToolResult(call_id=each.call_id, content="17 degrees") for each in response.tool_calls]
        request = asked.replace(messages=[*asked.messages, response.message, Message.user(*results)])
        found = force_compact(client, request)
        assert found.replaced
        assert "17 degrees" in transcript(found.request.messages)
        client.generate(found.request)


def _reasoning(model: str) -> str | None:
    return "high" if not model.startswith("gpt-4") else None


# ---------------------------------------------------------------- any conversation


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 6))):
        messages.append(Message.user("q" * draw(st.integers(1, 60))))
        for step in range(draw(st.integers(0, 3))):
            calls = [call("look", f"c{turn}.{step}.{number}") for number in range(draw(st.integers(1, 2)))]
            thinking = [thought()] if draw(st.booleans()) else []
            messages.append(Message.assistant(*thinking, *calls))
            results = [ToolResult(call_id=each.call_id, content="r" * draw(st.integers(0, 60))) for each in calls]
            split = draw(st.booleans())
            messages += [Message.user(each) for each in results] if split else [Message.user(*results)]
        messages.append(Message.assistant("a" * draw(st.integers(1, 60))))
    end = draw(st.integers(1, 4))
    return messages[:-end] if messages[:-end] and messages[:-end][-1].role == "user" else messages[:-1]


@settings(max_examples=200, deadline=None)
@given(
    conversations(),
    st.integers(50, 400),
    st.sampled_from(["claude-opus-5-5", "claude-opus-4-8", "gpt-6-astra"]),
    st.booleans(),
)
def test_whatever_comes_out_fits_and_keeps_every_rule(messages: list[Message], limit: int, model: str, force: bool) -> None:
    request = Request(messages=close_open_calls(messages))
    compactor = Compactor(count=sized)
    provider = Fake("s", model=model, for_ever=True)
    compact = force_compact if force else compact_if_needed
    try:
        found = compact(provider, request, limit, compactor)
    except PromptTooLong:
        too_long = sized(request) > limit
        assert too_long
        return
    made = found.request
    assert sized(made) <= limit
    arrange(made.messages, "anthropic-messages", merge=True)
    if made.messages[-1].role == "user":
        asked = [part.text for part in request.messages[-1].parts if isinstance(part, (Text, ToolResult))]
        assert all(text in transcript(made.messages) for text in asked)
    if found.replaced and model == "claude-opus-5-5":
        assert not any(isinstance(part, Reasoning) for message in made.messages for part in message.parts)


def test_a_forced_summary_that_is_longer_than_what_it_replaces_is_not_taken() -> None:
    signed = {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}  # bound: the running turn becomes text
    turn = Message.assistant(
        Reasoning(wire="anthropic-messages", text="Hm", raw=signed), ToolCall(call_id="c0.0.0", name="look", args={})
    )
    request = Request(messages=[Message.user("q"), turn, Message.user(ToolResult(call_id="c0.0.0", content=""))])
    provider = Fake("s", model="claude-opus-5-5", for_ever=True)
    assert sized(request) <= 51
    found = force_compact(provider, request, 51, Compactor(count=sized))
    assert (found.request, found.replaced) == (request, 0)


def test_a_cut_summary_stream_is_no_summary() -> None:
    with pytest.raises(Exception, match="cut"):
        compacted(Request(messages=talk(5)), 1000, cut())


def test_what_a_transcript_says() -> None:
    messages = [
        Message.user("Look.", Image(url="https://example.org/a.png")),
        Message.assistant("I look.", ToolCall(call_id="c", name="look", args={"at": "sea"})),
        Message.user(ToolResult(call_id="c", content="fog", is_error=True)),
    ]
    assert transcript(messages).split("\n\n") == [
        "user: Look.", "user: [a picture]", "assistant: I look.", 'assistant called look({"at":"sea"})',
        'look({"at":"sea"}) failed with: fog',
    ]  # fmt: skip
