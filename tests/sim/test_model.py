"""The scripted model through the library's own clients: every cue, cap, stop sequence on every wire, whole and streamed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from lessonlib.client import Client
from lessonlib.errors import APIError, MaxSteps
from lessonlib.example_tools import calculator, clock
from lessonlib.sim import CUES, Call, Fault, Refuse, Say, ServerCall, SimRequest, SimTransport, Simulator, Think, Turn
from lessonlib.sim.model import cue
from lessonlib.sim.script import read
from lessonlib.tool_loop import ToolRun, run_tools, stream_tools
from lessonlib.tools import tool
from lessonlib.types import COUNTS, ArgumentsDelta, Done, Image, Message, Request, Response, StopReason, Tool
from lessonlib.wire import WIRES
from tests.sim.requests import CITY, MODELS, WEATHER, body_of, send

RESPONSES, CHAT, MESSAGES = "openai-responses", "openai-chat", "anthropic-messages"
INTERACTIONS, GENERATE = "gemini-interactions", "gemini-generate-content"
CLOCK = Tool(name="clock", description="The time", parameters={"type": "object", "properties": {"zone": {"type": "string"}}})


def ask(wire: str, request: Request, *, stream: bool, sim: Simulator | None = None, model: str | None = None) -> Response:
    with Client(WIRES[wire](model or MODELS[wire], api_key="k"), transport=SimTransport(sim or Simulator())) as client:
        if not stream:
            return client.generate(request)
        *_, last = client.stream(request)
        assert isinstance(last, Done)
        return last.response


def said(response: Response) -> dict[str, Any]:
    """All that an answer says, without the ids."""
    usage = response.usage
    assert usage is not None
    return {
        "text": response.text,
        "reasoning": response.reasoning,
        "calls": [(call.name, call.args) for call in response.tool_calls],
        "kinds": [part.type for part in response.message.parts],
        "stop": response.stop,
        "raw_stop": response.raw_stop,
        "usage": tuple(getattr(usage, name) for name in COUNTS),
    }


def prompt(words: str) -> Request:
    asked = [Message.user(f"What is the weather in Lima, {words}?")]
    return Request(messages=asked, tools=[WEATHER, CLOCK], reasoning="low", max_tokens=4000)


# ---------------------------------------------------------------- cues

PAUSES = (MESSAGES, INTERACTIONS, GENERATE)
STOPS: dict[str, StopReason] = {
    "unknown_tool": StopReason.TOOL_USE,
    "invalid_json": StopReason.TOOL_USE,
    "wrong_arguments": StopReason.TOOL_USE,
    "no_arguments": StopReason.TOOL_USE,
    "loop": StopReason.TOOL_USE,
    "parallel": StopReason.TOOL_USE,
    "refuse": StopReason.REFUSAL,
    "forbidden": StopReason.REFUSAL,
    "pause": StopReason.END,
    "run_out_text": StopReason.LENGTH,
    "run_out_reasoning": StopReason.LENGTH,
    "run_out_arguments": StopReason.LENGTH,
    "redacted": StopReason.TOOL_USE,
    "think": StopReason.TOOL_USE,
    "chinese": StopReason.TOOL_USE,
    "emoji": StopReason.TOOL_USE,
    "empty": StopReason.END,
    "long": StopReason.TOOL_USE,
}
"""Without an exception below, every wire stops so."""
OTHERWISE: dict[tuple[str, str], StopReason | type[Exception]] = {
    **{("pause", wire): StopReason.PAUSE for wire in PAUSES},
    ("invalid_json", GENERATE): StopReason.OTHER,  # MALFORMED_FUNCTION_CALL
    ("invalid_json", INTERACTIONS): APIError,  # malformed_function_call
    ("refuse", INTERACTIONS): APIError,  # a policy block is an error there
    ("forbidden", INTERACTIONS): APIError,
}


def test_the_table_names_every_cue() -> None:
    assert list(STOPS) == [one.name for one in CUES]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("one", CUES, ids=lambda one: one.name)
def test_every_cue_on_every_wire_whole_and_streamed(one: Any, wire: str) -> None:
    expected = OTHERWISE.get((one.name, wire), STOPS[one.name])
    for words in one.words:
        assert cue(f"What is the weather in Lima, {words}?") == one.name
        if isinstance(expected, type):
            for stream in (False, True):
                with pytest.raises(expected):
                    ask(wire, prompt(words), stream=stream)
            continue
        whole, streamed = (said(ask(wire, prompt(words), stream=stream)) for stream in (False, True))
        if (one.name, wire) == ("run_out_arguments", INTERACTIONS):  # the whole answer has no place for half a call
            assert streamed.pop("calls") == [("get_weather", None)]
            assert whole.pop("calls") == []
            assert streamed.pop("kinds") == [*whole.pop("kinds"), "tool_call"]
        assert whole == streamed
        assert whole["stop"] is expected


def test_what_each_cue_does() -> None:
    """The particular of each cue, on one wire that shows it."""
    shown = {one.name: ask(MESSAGES, prompt(one.words[0]), stream=True) for one in CUES}
    calls = {name: [(call.name, call.args) for call in response.tool_calls] for name, response in shown.items()}
    assert calls["unknown_tool"] == [("delete_all_bookings", {})]
    assert calls["wrong_arguments"] == [("get_weather", {"no_such_field": -1})]
    assert calls["no_arguments"] == [("clock", {})]
    assert calls["parallel"] == [("get_weather", {"city": "Lima"}), ("clock", {})]
    assert shown["refuse"].text == "I cannot help with that."
    assert shown["forbidden"].message.parts == []
    assert (shown["run_out_text"].text[:8], shown["run_out_text"].tool_calls) == ("Point 1:", [])
    assert shown["run_out_reasoning"].text == ""
    assert [call.args for call in shown["run_out_arguments"].tool_calls] == [None]
    assert [block["type"] for block in shown["redacted"].raw["content"]][:1] == ["redacted_thinking"]
    assert len(shown["think"].reasoning) > len(ask(MESSAGES, prompt("briefly"), stream=True).reasoning)
    assert shown["empty"].text == ""
    bare = {name: ask(MESSAGES, Request(messages=[Message.user(f"Answer {name}")]), stream=True).text
            for name in ("in Chinese", "with an emoji", "with a long answer")}  # fmt: skip
    assert bare["in Chinese"].startswith("好的")
    assert "🚲" in bare["with an emoji"]
    assert len(bare["with a long answer"].split()) > 300


@pytest.mark.parametrize("wire", [RESPONSES, CHAT])
def test_invalid_arguments_are_given_as_they_are_where_they_are_text(wire: str) -> None:
    for stream in (False, True):
        [call] = ask(wire, prompt("invalid JSON"), stream=stream).tool_calls
        assert (call.args, call.raw_args) == (None, '{"city": Paris}')


def test_messages_shows_invalid_json_only_where_nobody_checks_it() -> None:
    """An eager tool in a stream; otherwise the service lets no invalid JSON out."""
    eager = {"tools": [{"name": "get_weather", "input_schema": CITY, "eager_input_streaming": True}]}
    request = prompt("invalid JSON").replace(tools=[], extra={MESSAGES: eager})
    [whole] = ask(MESSAGES, request, stream=False).tool_calls
    [streamed] = ask(MESSAGES, request, stream=True).tool_calls
    assert whole.args == {"no_such_field": '{"city": Paris}'}
    assert (streamed.args, streamed.raw_args) == (None, '{"city": Paris}')


def test_a_model_that_does_not_reason_shows_none() -> None:
    request = Request(messages=[Message.user("Think hard, then run out in reasoning.")])
    response = ask(RESPONSES, request, stream=False, model="gpt-4o")
    assert (response.reasoning, response.stop) == ("", StopReason.END)
    assert response.usage is not None
    assert response.usage.reasoning_tokens == 0


def test_effort_is_thought() -> None:
    counts = []
    for effort in ("low", "high", "xhigh"):
        usage = ask(RESPONSES, Request(messages=[Message.user("Why?")], reasoning=effort), stream=False).usage
        assert usage is not None
        assert usage.reasoning_tokens is not None
        counts.append(usage.reasoning_tokens)
    assert counts == sorted(set(counts))


# ---------------------------------------------------------------- caps, windows, stop sequences

THOUGHT, SAID = Think("One, two, three, four, five, six."), Say("Seven 北京 eight 🚲 nine.")
ANSWER = Turn((THOUGHT, SAID, Call("get_weather", {"city": "厦门市"})))
LONGEST = 60


def tries(wire: str) -> Iterator[int]:
    yield from range(16 if wire == RESPONSES else 1, LONGEST)


@pytest.mark.parametrize("wire", WIRES)
def test_every_cap_gives_a_truthful_answer(wire: str) -> None:
    """A fixed answer under each cap: never a wrong success, never half a call that could run, stream and whole the same."""
    complete = said(ask(wire, capped(LONGEST), stream=False, sim=Simulator([ANSWER])))
    assert (complete["stop"], complete["calls"]) == (StopReason.TOOL_USE, [("get_weather", {"city": "厦门市"})])
    price = complete["usage"][1]
    for cap in tries(wire):
        whole, streamed = (said(ask(wire, capped(cap), stream=stream, sim=Simulator([ANSWER]))) for stream in (False, True))
        if wire == INTERACTIONS:  # half a call is in the stream only
            streamed["calls"] = [call for call in streamed["calls"] if call[1] is not None]
            streamed["kinds"] = streamed["kinds"][: len(whole["kinds"])]
        assert whole == streamed
        assert whole["usage"][1] == min(cap, price) or (whole["usage"][1] < cap < price)
        if cap >= price:
            assert {**whole, "usage": 0} == {**complete, "usage": 0}
            continue
        assert whole["stop"] is StopReason.LENGTH
        assert [call for call in whole["calls"] if call[1] is not None] == []
        assert complete["text"].startswith(whole["text"])
        assert complete["reasoning"].startswith(whole["reasoning"])


def capped(cap: int) -> Request:
    return Request(messages=[Message.user("Go.")], tools=[WEATHER], max_tokens=cap, reasoning="low")


@pytest.mark.parametrize("wire", [CHAT, MESSAGES, INTERACTIONS, GENERATE])
@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_sequence_ends_the_text_before_it(wire: str, stream: bool) -> None:
    sim = Simulator([Turn((Say("one, two; three, four"), Call("get_weather", {"city": "Lima"})))])
    request = Request(messages=[Message.user("Count.")], tools=[WEATHER], stop=[";", "three"])
    response = ask(wire, request, stream=stream, sim=sim)
    assert (response.text, response.stop, response.tool_calls) == ("one, two", StopReason.END, [])
    if wire == MESSAGES:
        assert (response.raw_stop, response.raw["stop_sequence"]) == ("stop_sequence", ";")


def test_a_full_window_has_its_own_stop_reason_on_messages() -> None:
    request = Request(messages=[Message.user("Write a lot.")], max_tokens=4000)
    response = ask(MESSAGES, request, stream=True, sim=Simulator(window=60))
    assert (response.stop, response.raw_stop) == (StopReason.LENGTH, "model_context_window_exceeded")


def test_chat_counts_the_cap_into_the_window_and_responses_does_not() -> None:
    request = Request(messages=[Message.user("Hello")], max_tokens=500)
    assert ask(RESPONSES, request, stream=False, sim=Simulator(window=100)).text == "Hello!"
    with pytest.raises(APIError, match="context window") as error:
        ask(CHAT, request, stream=False, sim=Simulator(window=100))
    assert error.value.code == "context_length_exceeded"


def test_truncation_auto_drops_the_oldest_messages() -> None:
    history = [Message.user("word " * 40), Message.assistant("yes"), Message.user("Hello")]
    request = Request(messages=history, extra={RESPONSES: {"truncation": "auto"}})
    usage = ask(RESPONSES, request, stream=False, sim=Simulator(window=30)).usage
    assert usage is not None
    assert usage.input_tokens is not None
    assert usage.input_tokens <= 30
    with pytest.raises(APIError, match="context window"):
        ask(RESPONSES, request.replace(extra={}), stream=False, sim=Simulator(window=30))


def test_max_tokens_zero_warms_the_cache_and_says_nothing() -> None:
    sim = Simulator()
    marked = {"cache_control": {"type": "ephemeral"}}
    request = Request(messages=[Message.user("word " * 50)], extra={MESSAGES: {"max_tokens": 0, **marked}})
    warm = ask(MESSAGES, request, stream=False, sim=sim)
    then = ask(MESSAGES, request.replace(extra={MESSAGES: marked}), stream=False, sim=sim)
    assert (warm.message.parts, warm.usage and warm.usage.output_tokens) == ([], 0)
    assert then.usage is not None
    assert then.usage.cached_tokens == then.usage.input_tokens


# ---------------------------------------------------------------- scripts


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [False, True])
def test_a_script_plays_its_turns_in_order(wire: str, stream: bool) -> None:
    sim = Simulator(["first", [Say("second"), Call("get_weather", {"city": "Lima"})], Say("third")])
    request = Request(messages=[Message.user("Go.")], tools=[WEATHER])
    answers = [ask(wire, request, stream=stream, sim=sim) for _ in range(4)]
    assert [answer.text for answer in answers][:3] == ["first", "second", "third"]
    assert [len(answer.tool_calls) for answer in answers] == [0, 1, 0, 0]
    assert answers[3].text.startswith("This is the simulator's answer")


@pytest.mark.parametrize("segment", [Refuse("No."), ServerCall("tides", "High at six.")], ids=["refusal", "search"])
@pytest.mark.parametrize("wire", [RESPONSES, MESSAGES, GENERATE])
def test_scripted_segments_come_the_same_whole_and_streamed(wire: str, segment: Any) -> None:
    request = Request(messages=[Message.user("Go.")])
    script = [[Say("Well."), segment]]
    whole, streamed = (said(ask(wire, request, stream=stream, sim=Simulator(script))) for stream in (False, True))
    assert whole == streamed


def test_a_turn_of_a_script_is_checked_when_it_is_given() -> None:
    sim = Simulator(script=["a", Say("b"), [Think("c"), "d"], Turn((Say("e"),))])
    assert [[segment.text for segment in one.segments] for one in sim.script] == [["a"], ["b"], ["c", "d"], ["e"]]  # type: ignore[union-attr]
    for wrong in (42, None, {"say": "x"}, [Say("x"), 3]):
        with pytest.raises(TypeError, match="a turn is made of texts and of Say"):
            Simulator(script=[wrong])  # type: ignore[list-item]


def test_a_script_is_read_from_json() -> None:
    text = """["Hi.", {"say": "So."}, [{"think": "Hm.", "tokens": 9}, {"call": "f", "args": {"a": 1}}, "text"],
        {"call": "g", "args": "{no json"}, {"search": "tides", "result": null},
        [{"refuse": "No.", "category": "cyber"}], []]"""
    assert read(text) == [
        Turn((Say("Hi."),)),
        Turn((Say("So."),)),
        Turn((Think("Hm.", 9), Call("f", {"a": 1}), Say("text"))),
        Turn((Call("g", "{no json"),)),
        Turn((ServerCall("tides"),)),
        Turn((Refuse("No.", "cyber"),)),
        Turn(()),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("{}", "a script is a list of turns"),
        ("[1]", "turn 1: write a text, or an object with one of say, think, call, search, refuse"),
        ('["a", ["b", {"say": "a", "call": "b"}]]', "turn 2, segment 2: write a text"),
        ('[{"say": 1}]', "turn 1: 'say' is not what 'say' takes"),
        ('[{"say": "a", "args": {}}]', "turn 1: 'args' is not what 'say' takes"),
        ('[{"think": "a", "tokens": true}]', "turn 1: 'tokens' is not what 'think' takes"),
    ],
)
def test_a_script_that_is_none_says_where(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        read(text)


# ---------------------------------------------------------------- loops of tools


@pytest.mark.parametrize("question", ["What is 12 plus 5?", "2**10", "And the clock, and 2 times 3?"])
def test_arithmetic_in_other_words_is_calculated_too(question: str) -> None:
    with Client(WIRES["anthropic-messages"]("claude-opus-5-5", api_key="k"), transport=SimTransport(Simulator())) as client:
        run = run_tools(client, Request(messages=[Message.user(question)]), {"clock": clock, "calculator": calculator})
    assert any(sum_ in run.response.text for sum_ in ("12 + 5 = 17", "2**10 = 1024", "2 * 3 = 6"))
    assert ("UTC" in run.response.text) == ("clock" in question)


LESSON = ["现在几点？再算一下 17*23", "What time is it? Also compute 17*23."]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("question", LESSON)
def test_the_lessons_own_prompt_is_answered_right(wire: str, question: str) -> None:
    client = Client(WIRES[wire](MODELS[wire], api_key="k"), transport=SimTransport(Simulator()))
    run = run_tools(client, Request(messages=[Message.user(question)]), {"clock": clock, "calculator": calculator})
    assert "17*23 = 391" in run.response.text
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d", run.response.text)
    assert (run.steps, run.response.stop) == (2, StopReason.END)


@pytest.mark.parametrize("wire", WIRES)
def test_a_loop_for_ever_meets_the_step_cap(wire: str) -> None:
    sim = Simulator()
    client = Client(WIRES[wire](MODELS[wire], api_key="k"), transport=SimTransport(sim))
    with pytest.raises(MaxSteps):
        run_tools(client, prompt("loop for ever"), {"get_weather": lambda city: "rain", "clock": clock}, max_steps=4)
    assert len(sim.requests) == 4


BAD = [(wire, words) for wire in WIRES for words in ("unknown tool", "invalid JSON", "wrong arguments")
       if words != "invalid JSON" or wire not in (INTERACTIONS, GENERATE)]  # fmt: skip
"""On Google's two APIs the service itself gives up on a call that is no JSON."""


@pytest.mark.parametrize(("wire", "words"), BAD)
def test_a_bad_call_is_mended_after_its_error_result(wire: str, words: str) -> None:
    client = Client(WIRES[wire](MODELS[wire], api_key="k"), transport=SimTransport(Simulator()))
    asked: list[str] = []

    def get_weather(city: str) -> str:
        """Weather of a city."""
        asked.append(city)
        return "rain"

    run = run_tools(client, Request(messages=[Message.user(f"Weather in Lima? {words}")], tools=[tool(get_weather)]),
                    {"get_weather": get_weather})  # fmt: skip
    assert (asked, run.steps, run.response.text) == (["Lima"], 3, "Lima: rain.")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("wire", "store"), [*((wire, False) for wire in PAUSES), (INTERACTIONS, True)])
def test_a_paused_turn_is_continued(wire: str, stream: bool, store: bool) -> None:
    sim = Simulator()
    client = Client(WIRES[wire](MODELS[wire], api_key="k"), transport=SimTransport(sim))
    request = Request(messages=[Message.user("Please search the web for tides.")], extra={INTERACTIONS: {"store": store}})
    if stream:
        run = ToolRun()
        with stream_tools(client, request, {}, run=run) as events:
            list(events)
    else:
        run = run_tools(client, request, {})
    assert [refusal for _, _, refusal in sim.requests] == [None, None]
    assert run.response.text.endswith("The search found one page, and it says yes.")
    assert run.response.stop is StopReason.END


def test_the_second_half_of_a_paused_turn_answers_the_open_search() -> None:
    sim = Simulator()
    client = Client(WIRES[MESSAGES](MODELS[MESSAGES], api_key="k"), transport=SimTransport(sim))
    first = client.generate(Request(messages=[Message.user("Please search the web for tides.")]))
    [use] = [block for block in first.raw["content"] if block["type"] == "server_tool_use"]
    then = client.generate(Request(messages=[Message.user("Please search the web for tides."), first.message]))
    assert [block["type"] for block in then.raw["content"]] == ["web_search_tool_result", "text"]
    assert then.raw["content"][0]["tool_use_id"] == use["id"]


# ---------------------------------------------------------------- bytes


@pytest.mark.parametrize("wire", WIRES)
def test_two_fresh_simulators_give_the_same_bytes(wire: str) -> None:
    def played() -> list[bytes]:
        sim = Simulator()
        encoded = WIRES[wire](MODELS[wire], api_key="k").encode(prompt("in parallel"), stream=True)
        path, headers = "/" + encoded.url.split("/", 3)[3], {name.lower(): value for name, value in encoded.headers.items()}
        replies = [sim.handle(SimRequest("POST", path, headers, encoded.content)) for _ in range(2)]
        return [data for reply in replies for _, data in reply.chunks]

    assert played() == played()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("words", ["in Chinese", "with an emoji"])
def test_reads_of_one_byte_lose_no_character(wire: str, words: str) -> None:
    request = Request(messages=[Message.user(f"Answer {words}.")])
    torn = ask(wire, request, stream=True, sim=Simulator(faults=[Fault("chunks", bytes=1)]))
    assert said(torn) == said(ask(wire, request, stream=False))


@pytest.mark.parametrize("wire", [RESPONSES, CHAT, MESSAGES, INTERACTIONS])  # generateContent sends calls in one piece
def test_a_stream_cuts_arguments_anywhere_even_inside_a_key(wire: str) -> None:
    args = {"city": 'a "quoted" \\ line\nand 北京 ' * 3, "a_rather_long_key": 1}
    sim = Simulator([[Call("get_weather", args)]])
    with Client(WIRES[wire](MODELS[wire], api_key="k"), transport=SimTransport(sim)) as client:
        events = list(client.stream(Request(messages=[Message.user("Go.")], tools=[WEATHER])))
    pieces = [event.text for event in events if isinstance(event, ArgumentsDelta) and event.text]
    cuts = [sum(map(len, pieces[:place])) for place in range(1, len(pieces))]
    key = "".join(pieces).index("a_rather_long_key")
    assert [cut for cut in cuts if key < cut < key + len("a_rather_long_key")] != []
    done = events[-1]
    assert isinstance(done, Done)
    assert [call.args for call in done.response.tool_calls] == [args]


# ---------------------------------------------------------------- more than the library asks for


def chat(body: dict[str, Any]) -> Any:
    reply = send(Simulator(), "/v1/chat/completions", {"authorization": "Bearer k"}, {"model": MODELS[CHAT], **body})
    assert reply.status == 200
    return body_of(reply)


def test_chat_gives_n_choices_and_counts_them_all() -> None:
    one, three = (chat({"messages": [{"role": "user", "content": "Hello"}], "n": n}) for n in (1, 3))
    assert [choice["index"] for choice in three["choices"]] == [0, 1, 2]
    assert {choice["message"]["content"] for choice in three["choices"]} == {"Hello!"}
    assert three["usage"]["completion_tokens"] == 3 * one["usage"]["completion_tokens"]


CUSTOM = {
    RESPONSES: {"type": "custom", "name": "run_sql", "description": "SQL"},
    CHAT: {"type": "custom", "custom": {"name": "run_sql", "description": "SQL"}},
}


@pytest.mark.parametrize("wire", CUSTOM)
@pytest.mark.parametrize("stream", [False, True])
def test_custom_tools_are_called_with_plain_text(wire: str, stream: bool) -> None:
    request = Request(messages=[Message.user("Call run_sql with `select 1`.")], tools=[Tool(name="run_sql", kind="custom")])
    [call] = ask(wire, request, stream=stream).tool_calls
    assert (call.kind, call.args) == ("custom", {"input": "select 1"})


@pytest.mark.parametrize("wire", WIRES)
def test_pictures_are_taken_and_counted(wire: str) -> None:
    picture = Image(data="iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
                    media_type="image/png")  # fmt: skip
    asked = (Message.user("Hello", picture), Message.user("Hello"))
    with_it, without = (ask(wire, Request(messages=[one]), stream=False).usage for one in asked)
    assert with_it is not None
    assert without is not None
    assert (with_it.input_tokens or 0) > (without.input_tokens or 0) + 100
