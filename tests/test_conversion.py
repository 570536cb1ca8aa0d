"""A conversation begun on one wire format goes on on another: all twenty ordered pairs of the five.

What must hold: texts, calls and results survive in order; nothing that only the first vendor can read (signatures, encrypted
reasoning, server-side tools, ids of its own) is sent to the second; and the request keeps the second vendor's rules. Those
rules are written here once more, as a reader of each request format that refuses what the vendor would refuse.

Sources of the rules: docs/wire/*.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib.errors import InvalidRequest
from lessonlib.history import close_open_calls
from lessonlib.types import (
    JSON,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    dump_history,
    load_history,
)  # fmt: skip
from lessonlib.wire import WIRES
from tests.contract import KEY, TESTDATA, Case, leaves, read_stream

PAIRS = [(source, target) for source in WIRES for target in WIRES if source != target]

pairs = pytest.mark.parametrize(("source", "target"), PAIRS)
targets = pytest.mark.parametrize("target", WIRES)

TOOLS = [Tool(name="get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})]

MODELS = {
    "openai-responses": "gpt-6-astra",
    "anthropic-messages": "claude-sonnet-5-5",
    "gemini-interactions": "gemini-3.8-flash",
    "openai-chat": "gpt-4o",
    "gemini-generate-content": "gemini-3.8-flash",
}

Line = tuple[str, ...]
"""One step: ("user" | "assistant", text), ("call", name, arguments) or ("result", name of the call, text)."""


# ---------------------------------------------------------------- what a conversation says


def said(messages: list[Message]) -> list[Line]:
    """The steps that every vendor can be told, in order, neighbouring texts of one role joined."""
    lines: list[Line] = []
    names: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case Text(text=text) if text.strip():
                    lines.append((message.role, text))
                case ToolCall():
                    names[part.call_id] = part.name
                    lines.append(("call", part.name, arguments(part.args)))
                case ToolResult():
                    lines.append(("result", names[part.call_id], part.text))
    return joined(lines)


def in_order(messages: list[Message]) -> list[Message]:
    """The same conversation with the results in the order of the calls, before whatever else the message says."""
    tidy = messages[:1]
    for before, message in pairwise(messages):
        by_id = {each.call_id: each for each in message.tool_results}
        ordered = [by_id[each.call_id] for each in before.tool_calls if each.call_id in by_id]
        rest = [part for part in message.parts if not isinstance(part, ToolResult)]
        tidy.append(Message(role=message.role, parts=[*ordered, *rest]) if by_id else message)
    return tidy


def arguments(args: Any) -> str:
    return json.dumps(args, sort_keys=True)


def joined(lines: list[Line]) -> list[Line]:
    result: list[Line] = []
    for line in lines:
        if result and line[0] == result[-1][0] and line[0] in ("user", "assistant"):
            result[-1] = (line[0], result[-1][1] + line[1])
        else:
            result.append(line)
    return result


# ---------------------------------------------------------------- the vendors' rules, each a reader of its request


def read_responses(body: JSON) -> list[Line]:
    """OpenAI Responses: a list of items; each call is answered once, after it, by call_id."""
    lines: list[Line] = []
    open_calls: dict[str, str] = {}
    for item in body["input"]:
        match item.get("type", "message"):
            case "message":
                assert not open_calls, "a message before all calls are answered"
                lines.append((item["role"], _texts(item["content"], ("input_text", "output_text"))))
            case "function_call":
                assert item["call_id"] not in open_calls
                open_calls[item["call_id"]] = item["name"]
                lines.append(("call", item["name"], arguments(json.loads(item["arguments"]))))
            case "function_call_output":
                lines.append(("result", open_calls.pop(item["call_id"]), _texts(item["output"], ("input_text",))))
            case kind:
                raise AssertionError(f"an item of type {kind} in a converted history")
    assert not open_calls
    return joined(lines)


def read_messages(body: JSON) -> list[Line]:
    """Anthropic: roles alternate, beginning with the user; results stand first in the next message, complete and in any
    text no blank."""
    lines: list[Line] = []
    open_calls: dict[str, str] = {}
    assert body["messages"][0]["role"] == "user"
    for place, message in enumerate(body["messages"]):
        assert message["role"] == ("user", "assistant")[place % 2]
        assert message["content"]
        kinds = [block["type"] for block in message["content"]]
        answered = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        assert kinds[: len(answered)] == ["tool_result"] * len(answered)
        assert sorted(answered) == sorted(open_calls)
        for block in message["content"]:
            match block["type"]:
                case "text":
                    assert block["text"].strip()
                    lines.append((message["role"], block["text"]))
                case "tool_result":
                    lines.append(
                        ("result", open_calls.pop(block["tool_use_id"]), _texts(block.get("content", ""), ("text",)))
                    )
                case "tool_use":
                    assert isinstance(block["input"], dict)
                    assert block["id"] not in open_calls
                    open_calls[block["id"]] = block["name"]
                    lines.append(("call", block["name"], arguments(block["input"])))
                case kind:
                    raise AssertionError(f"a {kind} block in a converted history")
    assert not open_calls
    return joined(lines)


def read_interactions(body: JSON) -> list[Line]:
    """Gemini Interactions: a list of steps; each call is answered by call_id before anything else is said."""
    lines: list[Line] = []
    open_calls: dict[str, str] = {}
    for step in body["input"]:
        match step["type"]:
            case "user_input" | "model_output":
                assert not open_calls, "something is said before all calls are answered"
                role = "user" if step["type"] == "user_input" else "assistant"
                lines.append((role, _texts(step["content"], ("text",))))
            case "function_call":
                assert isinstance(step["arguments"], dict)
                open_calls[step["id"]] = step["name"]
                lines.append(("call", step["name"], arguments(step["arguments"])))
            case "function_result":
                name = open_calls.pop(step["call_id"])
                assert step["name"] == name
                lines.append(("result", name, _texts(step["result"], ("text",))))
            case kind:
                raise AssertionError(f"a {kind} step in a converted history")
    assert not open_calls
    return joined(lines)


def read_chat(body: JSON) -> list[Line]:
    """OpenAI Chat: the tool messages follow the message with the calls at once, one for each."""
    lines: list[Line] = []
    open_calls: dict[str, str] = {}
    for message in body["messages"]:
        if message["role"] == "tool":
            name = open_calls.pop(message["tool_call_id"])
            lines.append(("result", name, _texts(message["content"], ("text",))))
            continue
        assert not open_calls, "a message before all calls are answered"
        if message.get("content"):
            lines.append((message["role"], _texts(message["content"], ("text",))))
        assert message.get("content") or message.get("tool_calls")
        for call in message.get("tool_calls", []):
            assert call["id"] not in open_calls
            open_calls[call["id"]] = call["function"]["name"]
            lines.append(("call", call["function"]["name"], arguments(json.loads(call["function"]["arguments"]))))
    assert not open_calls
    return joined(lines)


def read_generate_content(body: JSON) -> list[Line]:
    """Gemini generateContent: roles alternate; all results of a content's calls stand in the next one, in call order; in the
    current turn the first call of each step is signed, and no other."""
    lines: list[Line] = []
    open_calls: list[JSON] = []
    contents = body["contents"]
    for place, content in enumerate(contents):
        assert content["role"] == ("user", "model")[place % 2]
        assert content["parts"]
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        assert [(call.get("id"), call["name"]) for call in open_calls] == [(a.get("id"), a["name"]) for a in answers]
        open_calls = []
        for part in content["parts"]:
            match part:
                case {"text": text}:
                    assert text
                    lines.append(("user" if content["role"] == "user" else "assistant", text))
                case {"functionCall": call}:
                    assert isinstance(call["args"], dict)
                    open_calls.append(call)
                    lines.append(("call", call["name"], arguments(call["args"])))
                case {"functionResponse": answer}:
                    (text,) = answer["response"].values()
                    lines.append(("result", answer["name"], text))
                case {"inlineData": _}:
                    pass
                case _:
                    raise AssertionError(f"a part {list(part)} in a converted history")
    assert not open_calls
    _check_signatures(contents)
    return joined(lines)


def _check_signatures(contents: list[JSON]) -> None:
    starts = [place for place, content in enumerate(contents) if any("text" in part for part in content["parts"])
              and content["role"] == "user"]  # fmt: skip
    for place, content in enumerate(contents):
        signed = ["thoughtSignature" in part for part in content["parts"] if "functionCall" in part]
        assert signed[:1] == ([place > starts[-1]] if signed else [])
        assert not any(signed[1:])


def _texts(content: Any, kinds: tuple[str, ...]) -> str:
    if isinstance(content, str):
        return content
    return "".join(piece["text"] for piece in content if piece["type"] in kinds)


READERS: dict[str, Callable[[JSON], list[Line]]] = {
    "openai-responses": read_responses,
    "anthropic-messages": read_messages,
    "gemini-interactions": read_interactions,
    "openai-chat": read_chat,
    "gemini-generate-content": read_generate_content,
}


def encode(target: str, messages: list[Message]) -> JSON:
    wire = WIRES[target](MODELS[target], api_key=KEY)
    return wire.encode(Request(messages=messages, tools=TOOLS)).body


def check(target: str, messages: list[Message]) -> None:
    """The request for `messages` keeps the target's rules, and says what they say. What a vendor has no field for (that a
    result is an error) may be said in words before the text."""
    expected, got = said(in_order(messages)), READERS[target](encode(target, messages))
    assert [line[:-1] for line in got] == [line[:-1] for line in expected]
    for told, line in zip(got, expected, strict=True):
        assert told[-1] == line[-1] or (line[0] == "result" and told[-1].endswith(line[-1]))


# ---------------------------------------------------------------- histories from each wire's own answers


def answer(source: str, case: str) -> Message:
    found = Case(TESTDATA / source / case)
    return read_stream(found.wire(), found.stream).response.message


def results(message: Message, *texts: str, error: bool = False) -> Message:
    filled = [*texts, *["?"] * (len(message.tool_calls) - len(texts))]
    return Message(role="user", parts=[ToolResult(call_id=call.call_id, content=text, is_error=error)
                                       for call, text in zip(message.tool_calls, filled, strict=False)])  # fmt: skip


def conversation(source: str) -> list[Message]:
    """What `run_tools` leaves behind, and two turns more: reasoning, one call, two at once (one of an unknown tool), a tool
    that failed, a server-side tool."""
    one, two, none = (answer(source, case) for case in ("tool_call", "parallel_calls", "no_argument_call"))
    first, second = two.tool_calls
    return [
        Message.user("What is the weather in Oslo?"), one, results(one, "4 °C, rain"),
        two, Message(role="user", parts=[
            ToolResult(call_id=second.call_id, content="18 °C"),  # not in the order of the calls
            ToolResult(call_id=first.call_id, content="unknown tool: get_weather; there are: list_stations", is_error=True),
        ]),
        none, results(none, "TimeoutError", error=True),
        answer(source, "text"), Message.user("How fast is 20 knots?"),
        answer(source, "reasoning"), Message.user("Look it up."),
        answer(source, "server_tool"), Message.user("Thank you."),
    ]  # fmt: skip


def secrets(messages: list[Message]) -> set[str]:
    """Every text in the raw JSON of the answers that the unified parts do not say: signatures, encrypted content, ids of the
    vendor's own, what server-side tools sent and got."""
    told = [text for message in messages for part in message.parts for _, text in leaves(_unified(part))]
    found = {text for message in messages for part in message.parts for _, text in leaves(part.raw or {}) if len(text) >= 8}
    return {text for text in found if not any(text in other for other in told)} - WORDS


def _unified(part: Part) -> JSON:
    fields = part.model_dump(exclude={"raw", "wire", "inside", "kind", "type"})
    return {} if isinstance(part, (Reasoning, Opaque)) else fields


WORDS = {
    "completed", "in_progress", "assistant", "function", "function_call", "output_text", "reasoning", "thinking", "tool_use",
    "model_output", "text/plain", "get_weather", "list_stations",
}  # fmt: skip
"""Words of the formats themselves, which mean nothing alone."""


@pytest.mark.parametrize("source", WIRES)
def test_the_sources_have_something_to_leak(source: str) -> None:
    """A guard for the tests below: each history has reasoning, opaque parts, three kinds of calls, and secrets."""
    history = conversation(source)
    kinds = {part.type for message in history for part in message.parts}
    assert kinds >= {"text", "reasoning", "tool_call", "tool_result", "opaque"}
    assert len(secrets(history)) >= 3


@pairs
def test_text_calls_and_results_survive_and_the_target_s_rules_are_kept(source: str, target: str) -> None:
    history = conversation(source)
    check(target, history)
    check(target, history[:3])  # in the middle of the loop, where the next request is the one with results
    check(target, history[:5])
    check(target, load_history(dump_history(history)))


@pairs
def test_nothing_signed_or_opaque_leaks(source: str, target: str) -> None:
    history = conversation(source)
    for end in (place + 1 for place, message in enumerate(history) if message.role == "user"):
        body = encode(target, history[:end])
        sent = [text for _, text in leaves(body)]
        assert [secret for secret in secrets(history) if any(secret in text for text in sent)] == []
        assert not OUR_OWN & set(fields(body))


OUR_OWN = {"raw", "wire", "raw_args", "args_error", "inside"}
"""Names of the library's own fields."""


def fields(value: Any) -> Iterator[str]:
    """The names of all fields in a JSON value."""
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from fields(item)


@pairs
def test_what_came_back_from_another_wire_is_still_whole(source: str, target: str) -> None:
    """A turn on the target in the middle takes nothing from the source's parts: back home they are replayed as before."""
    history = conversation(source)
    visit = [*history[:-1], Message.user("And you?"), answer(target, "text"), Message.user("Thank you.")]
    before, after = (encode(source, each) for each in (history, visit))
    assert secrets(history) & {text for _, text in leaves(after)} == secrets(history) & {text for _, text in leaves(before)}
    assert not secrets([answer(target, "text")]) & {text for _, text in leaves(after)}


@pairs
def test_two_vendors_in_one_history(source: str, target: str) -> None:
    """Answers of both, with calls of both in one turn: each wire gets its own raw and rebuilds the other's."""
    ours, theirs = answer(target, "tool_call"), answer(source, "tool_call")
    history = [
        Message.user("Oslo?"),
        theirs,
        results(theirs, "4 °C"),
        Message.user("And again?"),
        ours,
        results(ours, "5 °C"),
    ]
    sent = {text for _, text in leaves(encode(target, history))}
    assert not secrets([theirs]) & sent
    assert {text for _, text in leaves(encode(target, history[3:]))} <= sent


# ---------------------------------------------------------------- repairs and refusals, for every target


def call(call_id: str, **args: Any) -> ToolCall:
    return ToolCall(call_id=call_id, name="get_weather", args=args)


def result(call_id: str, text: str = "4 °C") -> ToolResult:
    return ToolResult(call_id=call_id, content=text)


@targets
def test_results_in_any_order_and_in_several_messages_are_put_right(target: str) -> None:
    history = [
        Message.user("Oslo and Lima?"), Message.assistant("I look.", call("c1", city="Oslo"), call("c2", city="Lima")),
        Message.user("one moment", result("c2", "18 °C")), Message.user(result("c1", "4 °C"), "done"),
    ]  # fmt: skip
    tidy = [*history[:2], Message.user(result("c1", "4 °C"), result("c2", "18 °C"), "one moment", "done")]
    assert READERS[target](encode(target, history)) == said(tidy)


@targets
def test_two_calls_that_share_an_id_stay_apart(target: str) -> None:
    """Some models number their calls so; the readers above refuse an id that is open already."""
    history = [
        Message.user("Oslo and Lima?"), Message.assistant(call("c1", city="Oslo"), call("c1", city="Lima")),
        Message.user(result("c1", "4 °C"), result("c1", "18 °C")),
    ]  # fmt: skip
    apart = [
        history[0], Message.assistant(call("c1", city="Oslo"), call("c2", city="Lima")),
        Message.user(result("c1", "4 °C"), result("c2", "18 °C")),
    ]  # fmt: skip
    assert READERS[target](encode(target, history)) == said(apart)


@pytest.mark.parametrize("source", ["openai-chat", "gemini-interactions", "openai-responses"])
def test_a_shared_id_is_renamed_in_the_vendor_s_own_call_too(source: str) -> None:
    own = answer(source, "parallel_calls")
    first = own.tool_calls[0]
    twice = Message(role="assistant", parts=[first, first])
    body = encode(source, [Message.user("?"), twice, results(twice, "one", "two")])
    assert [line[2] for line in READERS[source](body) if line[0] == "result"] == ["one", "two"]


@targets
def test_neighbours_and_empty_texts_are_accepted(target: str) -> None:
    check(
        target,
        [Message.user("a", ""), Message.user("b"), Message.assistant("c"), Message.assistant("", "d"), Message.user("e")],
    )


@targets
@pytest.mark.parametrize("history", [
    [Message.user("?"), Message.assistant(call("c1")), Message.user("and?")],
    [Message.user("?"), Message.assistant(call("c1"))],
    [Message.user("?"), Message.assistant(call("c1"), call("c2")), Message.user(result("c1"))],
    [Message.user("?"), Message.user(result("c1"))],
    [Message.user("?"), Message.assistant(call("c1")), Message.user(result("c1"), result("c1"))],
    [Message.user("?"), Message.assistant(call("c1")), Message.user(result("c1"), result("c2"))],
])  # fmt: skip
def test_what_cannot_be_repaired_is_refused_on_every_wire(target: str, history: list[Message]) -> None:
    with pytest.raises(InvalidRequest):
        encode(target, history)


@targets
def test_a_history_that_was_interrupted_can_be_closed_and_sent(target: str) -> None:
    """Text that went on behind an open call in one assistant message (a retry after an interruption)."""
    broken = [Message.user("Oslo?"), Message.assistant("I look.", call("c1"), "Going on."), Message.user("And?")]
    check(target, close_open_calls(broken))


@targets
def test_a_cut_call_without_an_answer_stays_behind(target: str) -> None:
    dead = ToolCall(call_id="c9", name="get_weather", raw_args='{"ci', args_error="cut")
    history = [Message.user("Oslo?"), Message.assistant("I look.", dead), Message.user("Go on.")]
    assert READERS[target](encode(target, history)) == [("user", "Oslo?"), ("assistant", "I look."), ("user", "Go on.")]


@targets
def test_a_cut_call_that_was_answered_is_sent_with_its_answer(target: str) -> None:
    dead = ToolCall(call_id="c9", name="get_weather", raw_args='{"ci', args_error="cut")
    body = encode(target, [Message.user("Oslo?"), Message.assistant(dead), Message.user(result("c9", "the call was cut"))])
    assert any("the call was cut" in text for _, text in leaves(body))
    assert sum("get_weather" in text for _, text in leaves({key: body[key] for key in body if key != "tools"})) >= 1


PICTURE = Image.from_bytes(b"not really a picture", "image/png")


@targets
def test_a_picture_in_a_result_is_sent_or_said_to_be_missing(target: str) -> None:
    shown = ToolResult(call_id="c1", content=[Text(text="the map"), PICTURE])
    sent = json.dumps(encode(target, [Message.user("?"), Message.assistant(call("c1")), Message.user(shown)]))
    assert "the map" in sent
    assert PICTURE.data is not None
    assert PICTURE.data in sent or "image" in sent


# ---------------------------------------------------------------- any history

words = st.text(st.sampled_from("ab 京🌊\u2028\n"), min_size=1, max_size=6).filter(str.strip)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Conversations as a loop makes them: calls are answered in the next user message, in any order, with words around."""
    messages = [Message.user(draw(words))]
    for turn in range(draw(st.integers(0, 4))):
        count = draw(st.integers(0, 3))
        texts: list[str | Part] = [draw(words) for _ in range(draw(st.integers(0 if count else 1, 2)))]
        calls = [call(f"c{turn}_{n}", city=draw(words)) for n in range(count)]
        messages.append(Message.assistant(*texts, *calls))
        answers: list[str | Part] = [result(each.call_id, draw(words)) for each in draw(st.permutations(calls))]
        after: list[str | Part] = [draw(words) for _ in range(draw(st.integers(0 if count else 1, 2)))]
        messages.append(Message.user(*answers, *after))
    return messages


@targets
@settings(max_examples=60, deadline=None)
@given(history=histories())
def test_any_history_that_a_loop_can_make_keeps_the_rules_of_every_wire(target: str, history: list[Message]) -> None:
    check(target, history)
