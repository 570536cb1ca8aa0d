"""Gemini Interactions' own rules: what it sends, byte for byte, what it reads, and what it refuses.

The numbers are sections of docs/wire/gemini-interactions.md. The fixtures are in testdata/gemini-interactions; all their
content is invented.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonlib.errors import APIError, IncompleteStream, InvalidRequest, LessonError, ProtocolError
from lessonlib.sse import SSEParser
from lessonlib.types import (
    JSON,
    ArgumentsDelta,
    Done,
    Event,
    Image,
    Message,
    Opaque,
    Part,
    PartDone,
    Reasoning,
    ReasoningDelta,
    Request,
    Response,
    StopReason,
    Text,
    TextDelta,
    Tool,
    ToolResult,
    Usage,
    dump_history,
    load_history,
)  # fmt: skip
from lessonlib.wire.anthropic_messages import AnthropicMessages
from lessonlib.wire.gemini_interactions import NAME, ONE_CALL, STOP, GeminiInteractions, InteractionsDecoder

TESTDATA = Path(__file__).parents[2] / "testdata" / NAME
CASES = sorted(path.name for path in TESTDATA.iterdir())
STREAMED = [case for case in CASES if (TESTDATA / case / "stream.sse").exists()]
WHOLE = [case for case in CASES if (TESTDATA / case / "response.json").exists()]
BOTH = [case for case in WHOLE if case in STREAMED]
REFUSED = [case for case in CASES if (TESTDATA / case / "error.json").exists()]

WEATHER = Tool(
    name="get_weather",
    description="The weather in a city, now.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
CALL = {"type": "function_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Oslo"}}
THOUGHT = {"type": "thought", "signature": "c2lnbmF0dXJl", "summary": [{"type": "text", "text": "Oslo, then."}]}
PICTURE = Image.from_bytes(b"not really a picture", "image/png")


def wire(**options: Any) -> GeminiInteractions:
    return GeminiInteractions("gemini-3.8-flash", api_key="test-key", **options)


def body(*messages: Message, **fields: Any) -> JSON:
    return wire().encode(Request(messages=list(messages) or [Message.user("Hi")], **fields)).body


def steps(*messages: Message) -> list[JSON]:
    """What goes over the wire for this conversation."""
    sent: list[JSON] = body(*messages)["input"]
    return sent


def answer(*raws: Any, status: str = "completed", **fields: Any) -> Response:
    return wire().decode({"id": "v1_x", "status": status, "steps": list(raws), **fields})


def own(*raws: JSON) -> Message:
    """The assistant message for an answer with these steps."""
    return answer(*raws).message


def file(case: str, name: str) -> bytes:
    return (TESTDATA / case / name).read_bytes()


def load(case: str, name: str) -> Any:
    return json.loads(file(case, name))


def read(data: bytes, size: int | None = None) -> tuple[list[Event], Response]:
    """All events of a stream that arrives in pieces of `size` bytes, and its result."""
    parser, decoder, events = SSEParser(), wire().decoder(), list[Event]()
    size = size or len(data) or 1
    for place in range(0, len(data), size):
        events += [event for sse in parser.feed(data[place : place + size]) for event in decoder.feed(sse)]
    events += [event for sse in parser.close() for event in decoder.feed(sse)]
    events += decoder.close(parser.stray)
    return events, decoder.result()


def sse(*payloads: Any) -> bytes:
    """Payloads as the service frames them. A pair is (event name, payload)."""
    blocks = []
    for each in payloads:
        name, payload = each if isinstance(each, tuple) else (each.get("event_type") or each.get("type"), each)
        text = payload if isinstance(payload, str) else json.dumps(payload)
        blocks.append(f"event: {name}\ndata: {text}\n\n")
    return "".join(blocks).encode()


DONE = ("done", "[DONE]")
CREATED = {"event_type": "interaction.created", "interaction": {"id": "", "status": "in_progress", "model": "m"}}


def completed(status: str = "completed", **fields: Any) -> JSON:
    return {"event_type": "interaction.completed", "interaction": {"id": "", "status": status, **fields}}


def start(index: int, **step: Any) -> JSON:
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, **fields: Any) -> JSON:
    return {"event_type": "step.delta", "index": index, "delta": fields}


def stop(index: int, **fields: Any) -> JSON:
    return {"event_type": "step.stop", "index": index, **fields}


def streamed(*payloads: Any, status: str = "completed", **fields: Any) -> Response:
    """The result of a stream with these events between its beginning and its end."""
    return read(sse(CREATED, *payloads, completed(status, **fields), DONE))[1]


def failure(*payloads: Any) -> LessonError:
    """The error in which a stream of these events ends."""
    with pytest.raises(LessonError) as caught:
        read(sse(*payloads))
    return caught.value


def call_step(index: int, *pieces: str, arguments: Any = None, **fields: Any) -> list[JSON]:
    """The events of one whole function call."""
    given = {"arguments": {} if arguments is None else arguments}
    begin = start(index, type="function_call", id=f"c{index}", name="f", **{**given, **fields})
    return [begin, *(delta(index, type="arguments_delta", arguments=piece) for piece in pieces), stop(index)]


# ---------------------------------------------------------------- 1 the request


def test_a_whole_request_is_exactly_this() -> None:
    request = Request(
        messages="What is the weather in Oslo?",
        system="Answer briefly.",
        tools=[WEATHER],
        tool_choice="auto",
        max_tokens=2048,
        reasoning="low",
        stop=["END"],
        output_schema={"type": "object"},
    )
    encoded = wire().encode(request, stream=True)
    assert (encoded.method, encoded.url) == ("POST", "https://generativelanguage.googleapis.com/v1/interactions")
    assert encoded.headers == {
        "content-type": "application/json",
        "x-goog-api-key": "test-key",
        "accept": "text/event-stream",
    }
    assert encoded.content.decode() == (
        '{"model":"gemini-3.8-flash","system_instruction":"Answer briefly.",'
        '"input":[{"type":"user_input","content":[{"type":"text","text":"What is the weather in Oslo?"}]}],'
        '"tools":[{"type":"function","name":"get_weather","description":"The weather in a city, now.","parameters":'
        '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}],'
        '"generation_config":{"max_output_tokens":2048,"thinking_level":"low","thinking_summaries":"auto",'
        '"stop_sequences":["END"],"tool_choice":"auto"},'
        '"response_format":{"type":"text","mime_type":"application/json","schema":{"type":"object"}},'
        '"store":false,"stream":true}'
    )


def test_the_smallest_request_still_says_that_nothing_is_stored() -> None:
    assert body() == {
        "model": "gemini-3.8-flash",
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}],
        "store": False,
        "stream": False,
    }


def test_store_may_be_overridden() -> None:
    assert body(extra={NAME: {"store": True}})["store"] is True


def test_version_revision_and_base_url_are_settings() -> None:
    encoded = wire(version="v1beta", revision="2026-05-20", base_url="http://127.0.0.1:9/").encode(Request(messages="Hi"))
    assert encoded.url == "http://127.0.0.1:9/v1beta/interactions"
    assert encoded.headers["api-revision"] == "2026-05-20"


def test_the_key_comes_from_the_vendors_variables_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "second-choice")
    assert GeminiInteractions("m").auth() == {"x-goog-api-key": "second-choice"}
    monkeypatch.setenv("GEMINI_API_KEY", "first-choice")
    ours = GeminiInteractions("m")
    assert ours.auth() == {"x-goog-api-key": "first-choice"}
    assert "choice" not in repr(ours) + repr(ours.encode(Request(messages="Hi")))


def test_no_key_no_header() -> None:
    assert "x-goog-api-key" not in GeminiInteractions("m").encode(Request(messages="Hi")).headers


def test_a_token_in_the_headers_takes_the_keys_place() -> None:
    sent = wire(headers={"Authorization": "Bearer invented"}).encode(Request(messages="Hi")).headers
    assert sent["authorization"] == "Bearer invented"
    assert "x-goog-api-key" not in sent


def test_a_base_url_may_hold_the_version() -> None:
    encoded = wire(base_url="https://gateway.example.org/gemini/v1/").encode(Request(messages="Hi"))
    assert encoded.url == "https://gateway.example.org/gemini/v1/interactions"


@pytest.mark.parametrize("messages", [[], [Message.user("")]])
def test_a_request_without_content_is_refused(messages: list[Message]) -> None:
    with pytest.raises(InvalidRequest, match="nothing to send"):
        wire().encode(Request(messages=messages))
    own_input = Request(messages=messages, extra={NAME: {"input": "Hi"}})
    assert wire().encode(own_input).body["input"] == "Hi"


def test_the_base_url_comes_from_the_official_sdks_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    assert GeminiInteractions("m").base_url == "http://127.0.0.1:9"


def test_an_agent_takes_the_models_place() -> None:
    sent = body(extra={NAME: {"agent": "some-agent", "background": True}})
    assert "model" not in sent
    assert sent["agent"] == "some-agent"


# ---------------------------------------------------------------- 1.2 tools


@pytest.mark.parametrize(
    ("choice", "encoded"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "any"),
        ("get_weather", {"allowed_tools": {"mode": "any", "tools": ["get_weather"]}}),
    ],
)
def test_the_tool_choice_lives_in_the_generation_config(choice: str, encoded: Any) -> None:
    sent = body(tools=[WEATHER], tool_choice=choice)
    assert sent["generation_config"] == {"tool_choice": encoded}
    assert "tool_choice" not in sent


def test_strict_asks_for_validated_arguments_where_the_choice_is_free() -> None:
    strict = Tool(name="f", strict=True)
    assert body(tools=[strict])["generation_config"] == {"tool_choice": "validated"}
    assert body(tools=[strict], tool_choice="required")["generation_config"] == {"tool_choice": "any"}
    assert "generation_config" not in body(tools=[Tool(name="f")])


def test_tools_of_the_service_come_in_by_extra_and_may_be_chosen() -> None:
    sent = body(extra={NAME: {"tools": [{"type": "google_search"}]}}, tool_choice="none")
    assert (sent["tools"], sent["generation_config"]) == ([{"type": "google_search"}], {"tool_choice": "none"})


def test_a_custom_tool_is_offered_as_a_function_of_one_text() -> None:
    (tool,) = body(tools=[Tool(name="run_sql", kind="custom")])["tools"]
    assert tool["parameters"]["required"] == ["input"]
    assert (tool["type"], tool["name"]) == ("function", "run_sql")
    assert "description" not in tool


def test_one_call_at_a_time_can_only_be_asked_for() -> None:
    assert body(tools=[WEATHER], parallel=False)["system_instruction"] == ONE_CALL
    assert body(tools=[WEATHER], parallel=False, system="Be brief.")["system_instruction"] == f"Be brief.\n\n{ONE_CALL}"
    assert "system_instruction" not in body(tools=[WEATHER])
    assert "system_instruction" not in body(parallel=False)
    assert "system_instruction" not in body(tools=[WEATHER], parallel=False, tool_choice="none")


# ---------------------------------------------------------------- 1.3 thinking


def test_a_level_brings_the_summaries_along() -> None:
    assert body(reasoning="high")["generation_config"] == {"thinking_level": "high", "thinking_summaries": "auto"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [(4096, "not a budget"), ("none", "thinks least"), ("minimal", "only low, medium, high"), ("max", "no reasoning 'max'")],
)
def test_thinking_that_cannot_be_had_is_refused_with_a_way_out(asked: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        body(reasoning=asked)


def test_an_unlisted_model_gets_any_level_of_the_api() -> None:
    sent = body(model="gemini-9-invented", reasoning="xhigh")
    assert sent["generation_config"]["thinking_level"] == "xhigh"


# ---------------------------------------------------------------- 2 the conversation as steps


def test_pictures_stand_among_the_contents() -> None:
    linked = Image(url="https://example.org/boat.png")
    assert steps(Message.user("What is this?", PICTURE, linked)) == [
        {
            "type": "user_input",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "mime_type": "image/png", "data": PICTURE.data},
                {"type": "image", "uri": "https://example.org/boat.png"},
            ],
        }
    ]


def test_a_data_url_is_sent_as_its_data() -> None:
    (step,) = steps(Message.user(Image(url="data:image/gif;base64,R0lGODdh")))
    assert step["content"] == [{"type": "image", "mime_type": "image/gif", "data": "R0lGODdh"}]
    with pytest.raises(InvalidRequest, match="must be base64"):
        steps(Message.user(Image(url="data:image/svg+xml,<svg/>")))


def test_a_content_of_this_api_can_be_sent_as_it_is() -> None:
    document = {"type": "document", "uri": "https://example.org/tides.pdf", "mime_type": "application/pdf"}
    (step,) = steps(Message.user("Sum this up.", Opaque(kind="document", wire=NAME, raw=document)))
    assert step["content"][1] == document


def test_a_result_names_its_call_and_keeps_the_form_in_which_it_was_given() -> None:
    two = own(CALL, {**CALL, "id": "c2", "name": "get_map"})
    results = Message.user(
        ToolResult(call_id="c1", content="No such city", is_error=True),
        ToolResult(call_id="c2", content=[Text(text="A map:"), PICTURE]),
        "And now?",
    )
    assert steps(Message.user("Hi"), two, results)[3:] == [
        {"type": "function_result", "call_id": "c1", "name": "get_weather", "result": "No such city", "is_error": True},
        {
            "type": "function_result",
            "call_id": "c2",
            "name": "get_map",
            "result": [
                {"type": "text", "text": "A map:"},
                {"type": "image", "mime_type": "image/png", "data": PICTURE.data},
            ],
        },
        {"type": "user_input", "content": [{"type": "text", "text": "And now?"}]},
    ]


def test_results_are_put_into_call_order_in_front() -> None:
    two = own(CALL, {**CALL, "id": "c2"})
    sent = steps(Message.user("Hi"), two, Message.user("So?", ToolResult(call_id="c2", content="B")),
                 Message.user(ToolResult(call_id="c1", content="A")))  # fmt: skip
    assert [step.get("call_id") or step["type"] for step in sent[3:]] == ["c1", "c2", "user_input"]


def test_an_unanswered_call_and_a_result_without_its_call_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="no result for get_weather"):
        steps(Message.user("Hi"), own(CALL))
    with pytest.raises(InvalidRequest, match="made no such call"):
        steps(Message.user("Hi"), own(CALL), Message.user(ToolResult(call_id="c1"), ToolResult(call_id="other")))


@pytest.mark.parametrize("case", [case for case in WHOLE if not case.startswith("old_") and case != "failed"])
def test_an_answer_goes_back_step_by_step_unchanged_and_in_order(case: str) -> None:
    """3: signatures, unknown fields, steps of unknown types: all of it, however the answer had come."""
    payload = load(case, "response.json")
    if payload["status"] == "requires_continuation":
        payload["status"] = "completed"
    message = load_history(dump_history([wire().decode(payload).message]))[0]
    results = [ToolResult(call_id=call.call_id, content="ok") for call in message.tool_calls]
    sent = steps(Message.user("Hi"), message, Message.user(*results, "Go on."))
    assert sent[1 : 1 + len(payload["steps"])] == payload["steps"]


@pytest.mark.parametrize("case", [case for case in BOTH if case not in ("unknown", "failed")])
def test_a_stream_folds_into_the_steps_of_the_whole_answer(case: str) -> None:
    payload, (_, response) = load(case, "response.json"), read(file(case, "stream.sse"))
    key = "outputs" if "outputs" in payload else "steps"
    assert response.raw[key] == payload[key]


def test_foreign_history_is_rebuilt_and_nothing_signed_leaks() -> None:
    foreign = AnthropicMessages("m").decode(
        {
            "type": "message",
            "content": [
                {"type": "thinking", "thinking": "secret thought", "signature": "foreign-signature"},
                {"type": "text", "text": "Let me look."},
                {"type": "text", "text": " Now."},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}},
            ],
        }
    )
    sent = steps(Message.user("Hi"), foreign.message, Message.user(ToolResult(call_id="t1", content="4 °C")))
    assert sent[1:] == [
        {"type": "model_output", "content": [{"type": "text", "text": "Let me look."}, {"type": "text", "text": " Now."}]},
        {"type": "function_call", "id": "t1", "name": "get_weather", "arguments": {"city": "Oslo"}},
        {"type": "function_result", "call_id": "t1", "name": "get_weather", "result": "4 °C"},
    ]
    assert "secret" not in json.dumps(sent)


def test_a_foreign_picture_inside_a_step_is_rebuilt_beside_its_text() -> None:
    foreign = [Text(text="A boat:", wire="other", raw={}), PICTURE.model_copy(update={"wire": "other", "inside": True})]
    (step,) = steps(Message.user("Hi"), Message(role="assistant", parts=foreign))[1:]
    assert [content["type"] for content in step["content"]] == ["text", "image"]


def test_own_history_gives_another_vendor_text_and_calls_only() -> None:
    answered = [Message.user("Hi"), own(THOUGHT, CALL), Message.user(ToolResult(call_id="c1", content="4 °C"))]
    sent = json.dumps(AnthropicMessages("m").encode(Request(messages=answered)).body)
    assert "c2lnbmF0dXJl" not in sent
    assert "Oslo, then." not in sent
    assert '"input": {"city": "Oslo"}' in sent


# ---------------------------------------------------------------- 3 the exceptions to raw replay


def test_a_call_without_an_id_goes_back_with_the_one_its_result_names() -> None:
    nameless = {key: value for key, value in CALL.items() if key != "id"}
    response = answer(THOUGHT, nameless, {**nameless, "id": ""})
    first, second = response.tool_calls
    assert first.call_id
    assert first.call_id != second.call_id
    assert first.raw == nameless
    results = [ToolResult(call_id=call.call_id, content="ok") for call in response.tool_calls]
    sent = steps(Message.user("Hi"), response.message, Message.user(*results))
    assert [step["id"] for step in sent[2:4]] == [step["call_id"] for step in sent[4:6]] == [first.call_id, second.call_id]


def test_made_up_ids_are_the_same_in_the_stream_and_differ_between_answers() -> None:
    nameless = {key: value for key, value in CALL.items() if key != "id"}
    raws = [{"type": "thought", "signature": "first"}, nameless]
    whole = wire().decode({"status": "requires_action", "steps": raws}).tool_calls[0].call_id
    other = wire().decode({"status": "requires_action", "steps": [{**raws[0], "signature": "second"}, nameless]})
    events, response = read(sse(CREATED, start(0, type="thought"), delta(0, type="thought_signature", signature="first"),
                                stop(0), start(1, type="function_call", name="get_weather"),
                                delta(1, type="arguments_delta", arguments='{"city": "Oslo"}'), stop(1),
                                completed("requires_action")))  # fmt: skip
    assert [response.tool_calls[0].call_id, [e.call_id for e in events if isinstance(e, ArgumentsDelta)]] == [whole, [whole]]
    assert other.tool_calls[0].call_id != whole


def test_arguments_that_were_no_object_go_back_as_an_object_that_says_so() -> None:
    response = streamed(*call_step(0, '{"city": Os', "lo}"), status="requires_action")
    (call,) = response.tool_calls
    assert call.args is None
    sent = steps(Message.user("Hi"), response.message, Message.user(ToolResult(call_id="c0", content="?", is_error=True)))
    assert sent[1] == {"type": "function_call", "id": "c0", "name": "f", "arguments": {"INVALID_JSON": '{"city": Oslo}'}}


def test_arguments_that_came_as_a_text_go_back_as_an_object() -> None:
    message = own({**CALL, "arguments": '{"city": "Oslo"}'})
    sent = steps(Message.user("Hi"), message, Message.user(ToolResult(call_id="c1", content="4 °C")))
    assert sent[1]["arguments"] == {"city": "Oslo"}


def test_a_call_that_was_cut_and_never_answered_is_left_out() -> None:
    _, response = read(file("length_in_call", "stream.sse"))
    assert response.tool_calls[0].raw is None
    sent = steps(Message.user("Hi"), response.message, Message.user("Shorter!"))
    assert not {step["type"] for step in sent} & {"function_call", "function_result"}


def test_contents_of_the_removed_revision_are_wrapped_into_a_step() -> None:
    payload = load("old_revision", "response.json")
    sent = steps(Message.user("Hi"), wire().decode(payload).message, Message.user("Thanks."))
    assert sent[1:4] == payload["outputs"][:3]
    assert sent[4] == {"type": "model_output", "content": [payload["outputs"][3]]}


def test_steps_that_repeat_what_the_client_sent_stay_behind() -> None:
    echo = {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}
    response = answer(echo, {"type": "model_output", "content": [{"type": "text", "text": "Hello."}]})
    assert response.text == "Hello."
    assert steps(Message.user("Hi"), response.message, Message.user("Bye")) == [
        echo,
        {"type": "model_output", "content": [{"type": "text", "text": "Hello."}]},
        {"type": "user_input", "content": [{"type": "text", "text": "Bye"}]},
    ]


# ---------------------------------------------------------------- 1.4 answers that go on


def paused(token: str = "token-1", text: str = "Part one. ", **fields: Any) -> Message:
    output = {"type": "model_output", "content": [{"type": "text", "text": text}]}
    return answer(output, status="requires_continuation", continuation_token=token, **fields).message


def test_an_answer_that_goes_on_ends_with_its_token() -> None:
    assert paused().parts[-1] == Opaque(
        kind="continuation", wire=NAME, raw={"continuation_token": "token-1", "interaction_id": "v1_x"}
    )
    assert paused(id="").parts[-1].raw == {"continuation_token": "token-1"}


def test_the_next_request_sends_the_original_input_and_the_token() -> None:
    sent = body(Message.user("Write."), paused(), system="Be brief.", tools=[WEATHER])
    assert sent["input"] == [{"type": "user_input", "content": [{"type": "text", "text": "Write."}]}]
    assert sent["continuation_token"] == "token-1"
    assert (sent["system_instruction"], len(sent["tools"]), sent["store"]) == ("Be brief.", 1, False)


def test_joined_hops_send_the_last_token() -> None:
    joined = Message(role="assistant", parts=[*paused("token-1").parts, *paused("token-2").parts])
    for history in ([Message.user("Write."), joined], [Message.user("Write."), paused("token-1"), paused("token-2")]):
        sent = body(*history)
        assert (sent["continuation_token"], len(sent["input"])) == ("token-2", 1)


def test_a_stored_answer_goes_on_by_its_id_alone() -> None:
    """The service wants the id of the hop that gave the token, not the one that the turn began with."""
    extra = {NAME: {"store": True, "previous_interaction_id": "v1_earlier"}}
    sent = body(Message.user("Write."), paused(), extra=extra)
    assert (sent["previous_interaction_id"], sent["continuation_token"], sent["store"]) == ("v1_x", "token-1", True)
    assert "input" not in sent
    first = body(Message.user("Write."), extra=extra)
    assert first["previous_interaction_id"] == "v1_earlier"


def test_a_token_that_is_not_last_is_over() -> None:
    sent = body(Message.user("Write."), paused(), Message.user("Enough, thanks."))
    assert [step["type"] for step in sent["input"]] == ["user_input", "model_output", "user_input"]
    assert "continuation_token" not in sent


def test_a_pause_without_a_token_is_an_ordinary_history() -> None:
    message = answer({"type": "model_output"}, status="requires_continuation").message
    sent = body(Message.user("Write."), message)
    assert [step["type"] for step in sent["input"]] == ["user_input", "model_output"]
    assert "continuation_token" not in sent


def test_the_second_hop_is_what_the_fixture_says() -> None:
    message = wire().decode(load("pause", "response.json")).message
    request = Request(messages=[Message.user("Write the story of tide tables."), message])
    assert wire().encode(request, stream=True).body == load("pause_next", "request.json")["body"]


def test_results_for_calls_that_the_service_holds_need_no_call_here() -> None:
    chained = {NAME: {"store": True, "previous_interaction_id": "v1_x"}}
    results = Message.user(ToolResult(call_id="c1", content="4 °C"), "In Oslo.")
    sent = body(results, extra=chained)
    assert sent["input"] == [
        {"type": "function_result", "call_id": "c1", "result": "4 °C"},
        {"type": "user_input", "content": [{"type": "text", "text": "In Oslo."}]},
    ]
    with pytest.raises(InvalidRequest):
        body(results)


# ---------------------------------------------------------------- the fixtures, whole and streamed


def as_expected(response: Response | None, error: LessonError | None) -> JSON:
    """What was read, in the vocabulary of the expect.json files."""
    usage = response.usage if response else None
    told = None
    if error is not None:
        kinds = {APIError: "provider_error", IncompleteStream: "incomplete_stream", ProtocolError: "protocol_error"}
        told = {"kind": kinds[type(error)], "retryable": error.retryable}
        told |= {"type": getattr(error, "type", None), "code": getattr(error, "code", None)}
    return {
        "wire": NAME,
        "id": (response.id if response else "") or None,
        "model": (response.model if response else "") or None,
        "text": response.text if response else "",
        "reasoning": response.reasoning if response else "",
        "tool_calls": [
            {"id": call.call_id, "name": call.name, "args": call.args, "args_error": call.args_error}
            for call in (response.tool_calls if response else [])
        ],
        "stop": response.stop.value if response and not error else None,
        "raw_stop": response.raw_stop if response else None,
        "usage": None if usage is None else usage.model_dump(exclude={"raw"}),
        "error": told,
    }


def assert_expected(case: str, response: Response | None, error: LessonError | None) -> None:
    expected = load(case, "expect.json")
    opaque = expected.pop("opaque_min", 0)
    expected.pop("differs", None)  # why stream and whole cannot be equal part for part: the contract suite's matter
    actual = as_expected(response, error)
    for call, wanted in zip(actual["tool_calls"], expected["tool_calls"], strict=True):
        if wanted["args_error"] == {"$set": True}:
            assert call["args_error"]
            wanted["args_error"] = call["args_error"]
    assert actual == expected
    assert sum(isinstance(part, Opaque) for part in (response.message.parts if response else [])) >= opaque


@pytest.mark.parametrize("size", [1, 2, 3, 7, None])
@pytest.mark.parametrize("case", STREAMED)
def test_a_stream_is_read_as_expected_however_the_network_cuts_it(case: str, size: int | None) -> None:
    try:
        assert_expected(case, read(file(case, "stream.sse"), size)[1], None)
    except LessonError as error:
        assert_expected(case, error.partial, error)


@pytest.mark.parametrize("case", WHOLE)
def test_a_whole_answer_is_read_as_expected(case: str) -> None:
    try:
        assert_expected(case, wire().decode(load(case, "response.json")), None)
    except LessonError as error:
        assert_expected(case, error.partial, error)


@pytest.mark.parametrize("case", REFUSED)
def test_an_error_body_is_read_as_expected(case: str) -> None:
    meta = load(case, "meta.json")
    error = wire().decode_error(meta["status"], meta["headers"], file(case, "error.json"))
    assert error.status == meta["status"]
    assert error.message
    assert_expected(case, None, error)


@pytest.mark.parametrize("case", [case for case in BOTH if case not in ("unknown", "failed")])
def test_a_stream_and_the_whole_answer_give_the_same_response(case: str) -> None:
    """`unknown` differs on purpose: its unknown delta has no counterpart in a whole answer."""
    whole, (_, response) = wire().decode(load(case, "response.json")), read(file(case, "stream.sse"))
    assert response.model_copy(update={"raw": {}}) == whole.model_copy(update={"raw": {}})


@pytest.mark.parametrize("case", STREAMED)
def test_the_deltas_are_the_parts_and_done_is_last_and_once(case: str) -> None:
    try:
        events, response = read(file(case, "stream.sse"))
    except LessonError:
        return
    assert [event for event in events if isinstance(event, Done)] == [Done(response)] == [events[-1]]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == response.text
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == response.reasoning
    whole = {event.index: event.part for event in events if isinstance(event, PartDone)}
    assert list(map(whole.get, sorted(whole))) == response.message.parts


COMPLETING = (b"interaction.completed", b"interaction.complete", b"interaction.requires_action")


def completing_byte(data: bytes) -> int:
    """Where the data of the first completing event ends; past the end if there is none."""
    ends, place = [], 0
    for block in data.split(b"\n\n"):
        name, _, rest = block.partition(b"\n")
        if name.removeprefix(b"event: ") in COMPLETING and rest:
            ends.append(place + len(block))
        place += len(block) + 2
    return min(ends, default=len(data) + 1)


def outcome(data: bytes) -> Response | LessonError:
    try:
        return read(data)[1]
    except LessonError as error:
        return error


@pytest.mark.parametrize("case", STREAMED)
def test_no_stream_that_ends_before_its_completing_event_is_a_success(case: str) -> None:
    """Every prefix of every fixture. The completing event counts as arrived with the last byte of its data."""
    data = file(case, "stream.sse")
    outcomes = [outcome(data[:length]) for length in range(len(data))]
    first = next((length for length, got in enumerate(outcomes) if isinstance(got, Response)), None)
    whole = completing_byte(data)
    assert first == (whole if whole < len(data) and case != "failed" else None)
    for got in outcomes[:whole]:
        assert isinstance(got, LessonError)
        assert got.partial is None or all(call.args is None or call.raw for call in got.partial.tool_calls)


@pytest.mark.parametrize("case", CASES)
def test_what_is_expected_is_what_the_encoder_sends(case: str) -> None:
    """The request of each fixture is what our encoder makes of the same wishes."""
    sent = load(case, "request.json")
    config = sent["body"].get("generation_config", {})
    version = sent["url"].rsplit("/", 2)[-2]
    prompt = next(content["text"] for content in sent["body"]["input"][0]["content"])
    messages = [Message.user(prompt)]
    if case == "tool_result":
        messages += [own(*sent["body"]["input"][1:4]), Message.user(ToolResult(call_id="u7k2m9qa", content="4 °C, rain"))]
    if case == "pause_next":
        messages.append(wire().decode(load("pause", "response.json")).message)
    functions = [tool for tool in sent["body"].get("tools", []) if tool["type"] == "function"]
    hosted = [tool for tool in sent["body"].get("tools", []) if tool["type"] != "function"]
    request = Request(
        messages=messages,
        system=sent["body"].get("system_instruction"),
        tools=[Tool(name=t["name"], description=t["description"], parameters=t["parameters"]) for t in functions],
        max_tokens=config.get("max_output_tokens"),
        reasoning=config.get("thinking_level"),
        extra={NAME: {"tools": hosted}} if hosted else {},
    )
    encoded = wire(version=version).encode(request, stream=sent["body"]["stream"])
    assert (encoded.method, encoded.url, encoded.body) == (sent["method"], sent["url"], sent["body"])
    assert {name: value for name, value in encoded.headers.items() if name != "x-goog-api-key"} == sent["headers"]


# ---------------------------------------------------------------- 2 steps and contents


SERVER_TOOLS = ("google_search", "code_execution", "url_context", "file_search", "google_maps", "retrieval", "tool_search",
                "processing", "mcp_server_tool")  # fmt: skip


@pytest.mark.parametrize("kind", [f"{tool}_{end}" for tool in SERVER_TOOLS for end in ("call", "result")])
def test_the_steps_of_a_server_tool_stay_opaque_whole_and_streamed(kind: str) -> None:
    raw = {"type": kind, "id": "s1", "arguments": {"q": "tide"}, "result": [{"a": 1}], "signature": "c2ln"}
    assert answer(raw).message.parts == [Opaque(kind=kind, wire=NAME, raw=raw)]
    response = streamed(start(0, type=kind, id="s1", signature=""), delta(0, **raw), stop(0))
    assert response.message.parts == [Opaque(kind=kind, wire=NAME, raw=raw)]
    assert response.stop is StopReason.END


def test_a_step_that_is_no_object_or_has_no_type_is_kept_opaque() -> None:
    assert [part.kind for part in answer({"a": 1}, {"type": ""}).message.parts if isinstance(part, Opaque)] == [
        "unknown"
    ] * 2


def test_all_text_of_a_step_is_one_part_and_the_other_contents_stand_inside() -> None:
    picture = {"type": "image", "mime_type": "image/png", "data": "aGk="}
    raw = {
        "type": "model_output",
        "content": [
            {"type": "text", "text": "A "},
            picture,
            {"type": "image", "uri": "https://example.org/a.png"},
            {"type": "audio", "data": "aGk=", "mime_type": "audio/wav"},
            {"type": "video", "uri": "https://example.org/a.mp4"},
            {"type": "document", "uri": "https://example.org/a.pdf"},
            {"type": "hologram"},
            {"type": "image"},
            {"type": "text", "text": "B"},
        ],
        "error": {"code": 13, "message": "half"},
    }
    parts = answer(raw).message.parts
    assert parts[0] == Text(text="A B", wire=NAME, raw=raw)
    assert parts[1] == Image(data="aGk=", media_type="image/png", wire=NAME, inside=True)
    assert parts[2] == Image(url="https://example.org/a.png", wire=NAME, inside=True)
    assert [(part.kind, part.inside, part.raw) for part in parts[3:] if isinstance(part, Opaque)] == [
        (kind, True, None) for kind in ("audio", "video", "document", "hologram", "image", "error")
    ]
    assert steps(Message.user("Hi"), Message(role="assistant", parts=parts), Message.user("So?"))[1] == raw


def test_a_step_with_a_picture_alone_is_that_picture() -> None:
    raw = {"type": "model_output", "content": [{"type": "image", "mime_type": "image/png", "data": "aGk="}]}
    assert answer(raw).message.parts == [Image(data="aGk=", media_type="image/png", wire=NAME, raw=raw)]


def test_an_output_without_content_or_with_a_bare_text_is_not_lost() -> None:
    assert answer({"type": "model_output"}).message.parts == [Text(text="", wire=NAME, raw={"type": "model_output"})]
    assert answer({"type": "model_output", "content": "Hello."}).text == "Hello."


def test_a_picture_in_a_thought_is_not_a_picture_of_the_answer() -> None:
    raw = {"type": "thought", "summary": [{"type": "image", "uri": "https://example.org/a.png"}], "signature": "c2ln"}
    assert answer(raw).message.parts == [
        Reasoning(wire=NAME, raw=raw),
        Opaque(kind="image", wire=NAME, inside=True),
    ]


def test_the_signature_is_never_reasoning_text() -> None:
    assert answer({"type": "thought", "signature": "c2ln"}).reasoning == ""


# ---------------------------------------------------------------- 7 statuses


@pytest.mark.parametrize(
    ("status", "stop"),
    [
        ("completed", StopReason.END),
        ("requires_action", StopReason.TOOL_USE),
        ("incomplete", StopReason.LENGTH),
        ("budget_exceeded", StopReason.LENGTH),
        ("requires_continuation", StopReason.PAUSE),
        ("in_progress", StopReason.OTHER),
        ("queued", StopReason.OTHER),
        ("idle", StopReason.OTHER),
        ("cancelled", StopReason.OTHER),
        ("invented_status", StopReason.OTHER),
    ],
)
def test_each_status_has_one_stop_reason(status: str, stop: StopReason) -> None:
    for response in (answer(status=status), streamed(status=status)):
        assert (response.stop, response.raw_stop) == (stop, status)


def test_the_table_of_statuses_is_complete() -> None:
    assert set(STOP) >= {"completed", "requires_action", "incomplete", "budget_exceeded", "requires_continuation",
                         "in_progress", "queued", "idle", "failed", "cancelled"}  # fmt: skip


def test_completed_with_a_call_is_tool_use() -> None:
    assert answer(CALL).stop is StopReason.TOOL_USE
    assert streamed(*call_step(0)).stop is StopReason.TOOL_USE


def test_a_background_run_has_no_steps_yet() -> None:
    response = wire().decode({"id": "v1_x", "status": "in_progress", "object": "interaction", "agent": "a"})
    assert (response.stop, response.message.parts, response.id) == (StopReason.OTHER, [], "v1_x")


@pytest.mark.parametrize(
    "payload", [{}, [], "text", None, {"id": "x"}, {"status": "completed"}, {"status": "completed", "x": []}]
)
def test_what_is_no_answer_is_never_an_empty_success(payload: Any) -> None:
    with pytest.raises(ProtocolError, match="not an interaction"):
        wire().decode(payload)


@pytest.mark.parametrize(
    ("fields", "steps", "code", "retryable", "message"),
    [
        ({}, [], None, True, "did not say why"),
        ({"errors": [{"code": "api_error", "message": "Sorry."}]}, [], "api_error", True, "Sorry."),
        (
            {"errors": []},
            [{"type": "model_output", "error": {"code": 14, "message": "Down."}}],
            "unavailable",
            True,
            "Down.",
        ),
        ({}, [{"type": "model_output", "error": {"code": 3, "message": "Bad."}}], "invalid_argument", False, "Bad."),
        ({"error": {"code": "safety", "message": "No."}}, [], "safety", False, "No."),
    ],
)
def test_a_failed_run_is_an_error_and_says_why_if_it_can(
    fields: JSON, steps: list[JSON], code: str | None, retryable: bool, message: str
) -> None:
    with pytest.raises(APIError, match=message) as whole:
        answer(*steps, status="failed", **fields)
    with pytest.raises(APIError, match=message) as live:
        streamed(status="failed", steps=steps, **fields)
    for error in (whole.value, live.value):
        assert (error.status, error.code, error.retryable) == (200, code, retryable)
        assert error.partial is not None
        assert (error.partial.stop, error.partial.raw_stop) == (StopReason.OTHER, "failed")


def test_a_failed_run_that_is_cut_off_is_still_that_failure() -> None:
    failed = {"event_type": "interaction.status_update", "interaction_id": "", "status": "failed"}
    assert isinstance(failure(CREATED, failed), APIError)
    assert isinstance(failure(CREATED, failed, DONE), APIError)


# ---------------------------------------------------------------- 5 usage


def test_usage_counts_thoughts_as_output_and_leaves_tool_tokens_apart() -> None:
    """53 + 15 + 65 = 133, as published; a total that does not add up is never computed anew."""
    raw = {
        "total_input_tokens": 53,
        "total_cached_tokens": 40,
        "total_output_tokens": 15,
        "total_thought_tokens": 65,
        "total_tool_use_tokens": 198,
        "total_tokens": 9999,
    }
    usage = answer(usage=raw).usage
    assert usage == Usage(input_tokens=53, output_tokens=80, cached_tokens=40, reasoning_tokens=65, raw=raw)


@pytest.mark.parametrize(
    ("raw", "counts"),
    [
        (None, None),
        ({}, (None, None, None, None)),
        ({"total_output_tokens": 3}, (None, 3, None, None)),
        ({"total_thought_tokens": 3}, (None, 3, None, 3)),
        ({"prompt_tokens": 7, "completion_tokens": 2}, (7, 2, None, None)),
        ({"total_input_tokens": "many"}, (None, None, None, None)),
    ],
)
def test_what_is_not_reported_is_none(raw: Any, counts: Any) -> None:
    usage = answer(usage=raw).usage
    assert counts == (usage and (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens))


@pytest.mark.parametrize(
    "report",
    [
        {**delta(0, type="text", text="!"), "metadata": {"total_usage": {"total_input_tokens": 7}}},
        {**delta(0, type="text", text="!"), "metadata": {"usage": {"total_input_tokens": 7}}},
        stop(0, usage={"total_input_tokens": 7}, step_usage={"total_input_tokens": 1}),
        {"event_type": "interaction.status_update", "status": "in_progress", "usage": {"total_input_tokens": 7}},
    ],
)  # fmt: skip
def test_the_last_report_counts_if_the_end_brings_none(report: JSON) -> None:
    begin = [CREATED, start(0, type="model_output"), delta(0, type="text", text="Hi")]
    end = [] if report["event_type"] == "step.stop" else [stop(0)]
    for ending, expected in ((completed(), 7), (completed(usage={"total_input_tokens": 9}), 9)):
        usage = read(sse(*begin, report, *end, ending))[1].usage
        assert usage is not None
        assert usage.input_tokens == expected


# ---------------------------------------------------------------- 6 errors


def refusal(http_status: int, code: Any, **fields: Any) -> APIError:
    content = json.dumps({"error": {"code": code, "message": "No.", **fields}}).encode()
    return wire().decode_error(http_status, {}, content)


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "invalid_request", False),
        (400, "parameter_unknown", False),
        (400, "failed_precondition", False),
        (400, "missing_thought_signature", False),
        (400, "malformed_function_call", True),
        (401, "authentication", False),
        (402, "payment_required", False),
        (403, "permission_denied", False),
        (404, "not_found", False),
        (404, "model_not_found", False),
        (408, "invented", True),
        (409, "already_exists", False),
        (409, "aborted", False),
        (416, "out_of_range", False),
        (429, "rate_limit_exceeded", True),
        (429, "too_many_requests", True),
        (429, "quota_exceeded", False),
        (499, "cancelled", False),
        (500, "api_error", True),
        (501, "unimplemented", False),
        (501, "invented", False),
        (502, "invented", True),
        (503, "service_unavailable", True),
        (504, "deadline_exceeded", True),
        (200, "gateway_timeout", True),
        (200, "not_found", False),
        (200, "invented", False),
    ],
)
def test_the_code_decides_whether_a_retry_can_help(status: int, code: str, retryable: bool) -> None:
    error = refusal(status, code)
    assert (error.code, error.type, error.retryable, error.refusal) == (code, code, retryable, False)


@pytest.mark.parametrize("code", ["safety", "recitation", "language", "prohibited_content", "spii", "blocklist",
                                  "content_blocked", "image_safety", "image_other"])  # fmt: skip
def test_a_policy_code_is_a_refusal_and_never_retried(code: str) -> None:
    for status in (400, 200, 503):
        error = refusal(status, code)
        assert (error.refusal, error.retryable) == (True, False)


def test_no_image_is_a_fault_of_the_model_not_a_refusal() -> None:
    assert not refusal(400, "no_image").refusal


@pytest.mark.parametrize(
    ("status", "word", "retryable"),
    [
        (400, "INVALID_ARGUMENT", False),
        (403, "PERMISSION_DENIED", False),
        (409, "ABORTED", False),
        (429, "RESOURCE_EXHAUSTED", True),
        (499, "CANCELLED", False),
        (500, "INTERNAL", True),
        (501, "UNIMPLEMENTED", False),
        (503, "UNAVAILABLE", True),
        (504, "DEADLINE_EXCEEDED", True),
    ],
)
def test_google_rpc_bodies_are_read_alone_and_in_a_list(status: int, word: str, retryable: bool) -> None:
    body = {"error": {"code": status, "message": "No.", "status": word}}
    for payload in (body, [body]):
        over_http = wire().decode_error(status, {}, json.dumps(payload).encode())
        in_a_stream = wire().api_error(200, payload)
        for error in (over_http, in_a_stream):
            assert (error.type, error.code, error.retryable) == (word, str(status), retryable)
            assert error.message == "No."


def test_the_wait_stands_in_the_header_or_in_the_details() -> None:
    info = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "58.5s"}]
    content = json.dumps({"error": {"code": 429, "message": "Slow down.", "details": info}}).encode()
    assert wire().decode_error(429, {}, content).retry_after == 58.5
    assert wire().decode_error(429, {"Retry-After": "2"}, content).retry_after == 2.0


@pytest.mark.parametrize("delay", ["soon", "-3s", "nans", "infs", "", None, 5])
def test_an_unreadable_wait_counts_as_absent(delay: Any) -> None:
    error = refusal(429, 429, details=[{"@type": "x/google.rpc.RetryInfo", "retryDelay": delay}])
    assert error.retry_after is None


def test_a_daily_quota_is_not_retried_and_a_reason_is_the_code() -> None:
    daily = {"@type": "x/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDayPerProject-FreeTier"}]}
    minute = {"@type": "x/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerMinutePerProject"}]}
    assert not refusal(429, 429, status="RESOURCE_EXHAUSTED", details=[daily]).retryable
    assert refusal(429, 429, status="RESOURCE_EXHAUSTED", details=[minute]).retryable
    key = {"@type": "x/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    assert refusal(400, 400, status="INVALID_ARGUMENT", details=[key, "odd"]).code == "API_KEY_INVALID"


def test_an_error_in_a_200_body_is_raised() -> None:
    for payload in ({"error": {"code": "safety", "message": "No."}}, [{"error": {"code": "safety", "message": "No."}}]):
        with pytest.raises(APIError, match="No\\.") as caught:
            wire().decode(payload)
        assert caught.value.refusal


# ---------------------------------------------------------------- 4 the stream: its machine


def test_the_events_of_a_text_answer_are_exactly_these() -> None:
    events, response = read(file("text", "stream.sse"))
    (part,) = response.message.parts
    assert events == [
        TextDelta(0, "The tide at Brest turns"),
        TextDelta(0, " at about four o'clock"),
        TextDelta(0, " this afternoon."),
        PartDone(0, part),
        Done(response),
    ]


def test_interleaved_steps_are_told_apart_by_index() -> None:
    events, _ = read(file("parallel_calls", "stream.sse"))
    pieces = {
        index: "".join(e.text for e in events if isinstance(e, ArgumentsDelta) and e.index == index) for index in (1, 2)
    }
    assert pieces == {1: '{"city":"Oslo"}', 2: '{"city":"Lima"}'}


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([start(0, type="model_output"), start(0, type="model_output")], "step 0 starts twice"),
        ([delta(0, type="text", text="x")], "step 0, which is not open"),
        ([start(0, type="model_output"), stop(0), delta(0, type="text", text="x")], "step 0, which is not open"),
        ([stop(3)], "step 3 stops, but is not open"),
        ([start(0, type="model_output"), stop(0), stop(0)], "step 0 stops, but is not open"),
        ([CREATED], "'interaction.created' must not come"),
        (
            [start(0, type="function_call"), delta(0, type="text", text="x")],
            "a text delta for step 0, which is a function_call",
        ),
        ([start(0, type="thought"), delta(0, type="text", text="x")], "a text delta for step 0, which is a thought"),
        ([start(0, type="thought"), delta(0, type="arguments_delta", arguments="")], "an? arguments_delta delta for step 0"),
        ([start(0, type="model_output"), delta(0, type="thought_summary")], "a thought_summary delta for step 0"),
        ([start(0, type="function_call"), delta(0, type="image", data="x")], "a image delta for step 0"),
        ([start(0, type="thought"), delta(0, type="text_annotation_delta")], "a text_annotation_delta delta for step 0"),
        ([start(0, type="model_output"), {"event_type": "step.delta", "index": 0}], "lacks a field"),
        ([{"event_type": "step.start", "index": 0, "step": "thought"}], "wrong type"),
        ([("step.delta", "not json")], "not JSON"),
    ],
)
def test_events_that_contradict_each_other_are_a_protocol_error(events: list[Any], words: str) -> None:
    error = failure(CREATED, *events, completed(), DONE)
    assert isinstance(error, ProtocolError)
    with pytest.raises(ProtocolError, match=words):
        raise error


def test_a_completed_event_without_a_status_says_completed() -> None:
    assert streamed(status=None).stop is StopReason.END  # type: ignore[arg-type]


def test_a_second_terminal_event_is_a_protocol_error() -> None:
    assert isinstance(failure(CREATED, completed(), completed()), ProtocolError)
    assert isinstance(failure(CREATED, completed(), start(0, type="thought")), ProtocolError)


def test_what_may_follow_the_end_is_ignored() -> None:
    late = [stop(0), {"event_type": "interaction.status_update", "status": "failed", "continuation_token": "t"},
            {"event_type": "error", "error": {"message": "late"}}, {"event_type": "invented"}, DONE]  # fmt: skip
    response = read(sse(CREATED, completed(usage={"total_input_tokens": 1}), *late))[1]
    assert (response.stop, response.raw["status"]) == (StopReason.END, "completed")


@pytest.mark.parametrize(
    "events",
    [
        [],
        [DONE],
        [CREATED],
        [CREATED, DONE],
        [CREATED, start(0, type="model_output"), delta(0, type="text", text="Hi"), stop(0), DONE],
        [CREATED, {"event_type": "interaction.status_update", "status": "completed"}, DONE],
        [CREATED, {"event_type": "interaction.invented_end", "interaction": {"status": "completed"}}],
    ],
)
def test_no_end_no_answer(events: list[Any]) -> None:
    """`[DONE]` says nothing by itself, a status on the way neither."""
    error = failure(*events)
    assert isinstance(error, IncompleteStream)
    assert error.retryable


def test_an_error_event_keeps_what_had_arrived() -> None:
    error = failure(CREATED, start(0, type="model_output"), delta(0, type="text", text="The harbour"),
                    {"event_type": "error", "error": {"code": "api_error", "message": "Sorry."}}, DONE)  # fmt: skip
    assert isinstance(error, APIError)
    assert error.partial is not None
    assert (error.partial.text, error.partial.model, error.partial.usage) == ("The harbour", "m", None)


@pytest.mark.parametrize("payload", [{"error": {"code": "api_error", "message": "Sorry."}},
                                     [{"error": {"code": 500, "status": "INTERNAL", "message": "Sorry."}}]])  # fmt: skip
@pytest.mark.parametrize("name", ["error", "message"])
def test_an_error_is_recognised_without_its_discriminator(payload: Any, name: str) -> None:
    error = failure(CREATED, (name, payload))
    assert isinstance(error, APIError)
    assert (error.message, error.retryable) == ("Sorry.", True)


def test_plain_words_as_an_error_event_are_a_gateway_that_broke_down() -> None:
    error = failure(CREATED, ("error", "upstream connect error"))
    assert isinstance(error, APIError)
    assert (error.message, error.code, error.retryable) == ("upstream connect error", None, True)


def test_a_bare_json_line_is_the_error_that_it_is() -> None:
    """Seen in September 2026: the refusal came without `data:`, so every SSE parser skipped it."""
    data = file("refusal_bare_line", "stream.sse")
    for text in (data, data + b"\n", data.replace(b'{"error": {"message"', b'{"error":\n {"message"')):
        with pytest.raises(APIError) as caught:
            read(text)
        assert (caught.value.code, caught.value.refusal, caught.value.retryable) == ("prohibited_content", True, False)


def test_other_stray_lines_leave_the_stream_incomplete() -> None:
    with pytest.raises(IncompleteStream):
        read(sse(CREATED) + b'upstream closed\n{"note": "not an error"}\n{"error": null}\n')


def test_stray_lines_do_not_matter_once_the_answer_is_whole() -> None:
    _, response = read(sse(CREATED, completed()) + b'{"error": {"message": "late"}}\n')
    assert response.stop is StopReason.END


def test_unknown_events_are_ignored_and_counted() -> None:
    decoder, parser = InteractionsDecoder(wire()), SSEParser()
    odd = {"event_type": "interaction.sparkle"}
    for event in parser.feed(sse(CREATED, odd, odd, completed())):
        decoder.feed(event)
    assert decoder.ignored == {"interaction.sparkle": 2}
    assert decoder.result().stop is StopReason.END


def test_an_answer_may_come_with_its_last_event_alone() -> None:
    given = [THOUGHT, CALL, {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}]
    events, response = read(sse(CREATED, completed("requires_action", steps=given)))
    assert response.message == answer(*given).message
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hi"]
    assert isinstance(events[-1], Done)


def test_a_step_that_never_stopped_is_whole_only_if_the_answer_is() -> None:
    open_call = [start(0, type="function_call", id="c0", name="f"), delta(0, type="arguments_delta", arguments='{"a": 1}')]
    assert streamed(*open_call, status="requires_action").tool_calls[0].args == {"a": 1}
    for status in ("incomplete", "requires_continuation", "cancelled", "invented"):
        (call,) = streamed(*open_call, status=status).tool_calls
        assert (call.args, call.raw, call.raw_args) == (None, None, '{"a": 1}')
    text = streamed(start(0, type="model_output"), delta(0, type="text", text="Hi"), status="incomplete")
    assert text.message.parts == answer({"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}).message.parts


def test_looking_at_what_has_arrived_changes_nothing() -> None:
    data = file("image", "stream.sse")
    decoder, parser = wire().decoder(), SSEParser()
    for event in parser.feed(data):
        decoder.partial()
        decoder.feed(event)
    assert decoder.result() == read(data)[1]


def test_the_id_is_the_one_that_is_not_empty() -> None:
    update = {"event_type": "interaction.status_update", "interaction_id": "v1_late", "status": "in_progress"}
    assert streamed(update).id == "v1_late"
    assert streamed().id == ""
    assert "id" not in streamed().raw


# ---------------------------------------------------------------- 4 the stream: its deltas


def test_no_deltas_mean_no_arguments_but_those_of_the_start() -> None:
    assert streamed(*call_step(0)).tool_calls[0].args == {}
    assert streamed(*call_step(0, "")).tool_calls[0].args == {}
    assert streamed(*call_step(0, arguments={"a": 1})).tool_calls[0].args == {"a": 1}
    assert streamed(*call_step(0, '{"b":', " 2}", arguments={"a": 1})).tool_calls[0].args == {"b": 2}
    assert streamed(*call_step(0, " 2}", arguments='{"b":')).tool_calls[0].args == {"b": 2}
    assert streamed(*call_step(0, arguments="")).message.parts[0].raw == {**CALL, "id": "c0", "name": "f", "arguments": {}}


@pytest.mark.parametrize("text", ["[1]", "7", "null", '{"a": 1', '{"a": 1} {"b": 2}', '"{}"'])
def test_arguments_that_are_no_object_cannot_be_run(text: str) -> None:
    (call,) = streamed(*call_step(0, text), status="requires_action").tool_calls
    assert (call.args, call.raw_args) == (None, text)
    assert call.args_error


def test_deltas_of_arguments_as_an_object_are_taken_whole() -> None:
    begin = start(0, type="function_call", id="c0", name="f")
    assert streamed(begin, delta(0, type="arguments_delta", arguments={"a": 1}), stop(0)).tool_calls[0].args == {"a": 1}


def test_an_empty_signature_is_a_placeholder() -> None:
    begin = start(0, type="thought", signature="")
    signed = [delta(0, type="thought_signature", signature=each) for each in ("", "c2ln", "")]
    assert streamed(begin, *signed, stop(0)).message.parts[0].raw == {"type": "thought", "signature": "c2ln"}
    assert streamed(begin, stop(0)).message.parts[0].raw == {"type": "thought"}


def test_a_start_with_content_is_continued_not_replaced() -> None:
    events, _ = read(file("start_with_content", "stream.sse"))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["The blue boat", " arrives first."]
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == [
        "**Sorting the clues**\n\n",
        "The red boat is last.",
    ]


@pytest.mark.parametrize("kind", ["text_annotation_delta", "text_annotation"])
def test_annotations_join_the_text_that_they_are_about(kind: str) -> None:
    one, two = {"type": "url_citation", "url": "https://example.org/1"}, {"type": "file_citation"}
    raw = streamed(start(0, type="model_output"), delta(0, type="text", text="Hi"), delta(0, type=kind, annotations=[one]),
                   delta(0, type=kind, annotations=[two]), stop(0)).message.parts[0].raw  # fmt: skip
    assert raw == {"type": "model_output", "content": [{"type": "text", "text": "Hi", "annotations": [one, two]}]}


def test_the_deltas_of_a_server_tool_replace_each_other() -> None:
    begin = start(0, type="code_execution_call", id="s1", signature="")
    deltas = [
        delta(0, type="code_execution_call", arguments={"code": code}, signature=sig)
        for code, sig in (("1", "c2ln"), ("1+1", ""))
    ]
    assert streamed(begin, *deltas, stop(0)).message.parts[0].raw == {
        "type": "code_execution_call", "id": "s1", "arguments": {"code": "1+1"}, "signature": "c2ln"}  # fmt: skip


def test_the_arguments_of_a_server_tool_may_come_in_pieces() -> None:
    begin = start(0, type="mcp_server_tool_call", id="s1", name="f", server_name="docs")
    for pieces, arguments in ((('{"a":', " 1}"), {"a": 1}), (('{"a":',), '{"a":')):
        deltas = [delta(0, type="arguments_delta", arguments=piece) for piece in pieces]
        (part,) = streamed(begin, *deltas, stop(0)).message.parts
        assert part.raw == {
            "type": "mcp_server_tool_call",
            "id": "s1",
            "name": "f",
            "server_name": "docs",
            "arguments": arguments,
        }
        assert isinstance(part, Opaque)


def test_each_picture_or_recording_is_a_content_of_its_own() -> None:
    one, two = ({"type": "audio", "mime_type": "audio/l16", "data": data} for data in ("aGk=", "aG8="))
    response = streamed(start(0, type="model_output"), delta(0, **one), delta(0, **two), stop(0))
    assert response.message.parts[0].raw == {"type": "model_output", "content": [one, two]}
    assert [(part.type, part.inside) for part in response.message.parts] == [("opaque", False), ("opaque", True)]


def test_a_picture_in_a_summary_is_kept_in_its_place() -> None:
    picture = {"type": "image", "uri": "https://example.org/a.png"}
    summary = [{"type": "text", "text": "Look: "}, picture, {"type": "text", "text": "there."}]
    deltas = [delta(0, type="thought_summary", content=content) for content in summary]
    response = streamed(start(0, type="thought"), *deltas, delta(0, type="thought_summary"), stop(0))
    assert response.message.parts[0].raw == {"type": "thought", "summary": summary}
    assert response.reasoning == "Look: there."


def test_deltas_of_an_unknown_kind_are_kept_beside_the_step_and_counted() -> None:
    decoder, parser = wire().decoder(), SSEParser()
    odd = {"type": "text_highlight", "start": 0}
    events = sse(
        CREATED, start(0, type="model_output"), delta(0, type="text", text="Hi"), delta(0, **odd), stop(0), completed()
    )
    for event in parser.feed(events):
        decoder.feed(event)
    step = {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}
    assert decoder.ignored == {"step.delta text_highlight": 1}
    assert decoder.result().message.parts == [
        Text(text="Hi", wire=NAME, raw=step),
        Opaque(kind="text_highlight", wire=NAME, raw=odd, inside=True),
    ]
    assert steps(Message.user("Hi"), decoder.result().message, Message.user("So?"))[1] == step


def test_known_deltas_on_an_unknown_step_are_kept_too() -> None:
    response = streamed(start(0, type="dream"), delta(0, type="text", text="Hi"), stop(0))
    assert [part.type for part in response.message.parts] == ["opaque", "opaque"]
    assert response.text == ""


def test_a_checkpoint_lets_a_broken_stream_go_on_if_nothing_followed_it() -> None:
    checkpoint = {
        "event_type": "interaction.status_update",
        "interaction_id": "",
        "status": "in_progress",
        "continuation_token": "t1",
    }
    begin = [CREATED, start(0, type="model_output"), delta(0, type="text", text="Part one."), checkpoint]
    for events, kinds in ((begin, ["text", "opaque"]), ([*begin, delta(0, type="text", text=" And")], ["text"])):
        error = failure(*events)
        assert isinstance(error, IncompleteStream)
        assert error.partial is not None
        assert [part.type for part in error.partial.message.parts] == kinds
        assert error.partial.raw_stop == "in_progress"
    error = failure(*begin)
    assert error.partial is not None
    assert body(Message.user("Write."), error.partial.message)["continuation_token"] == "t1"


def test_the_token_of_the_end_decides() -> None:
    checkpoint = {"event_type": "interaction.status_update", "status": "requires_continuation", "continuation_token": "t1"}
    tokens = [
        [part.raw for part in streamed(checkpoint, status="requires_continuation", **end).message.parts]
        for end in ({}, {"continuation_token": "t2"})
    ]
    assert tokens == [[], [{"continuation_token": "t2"}]]
    (part,) = failure(CREATED, checkpoint).partial.message.parts  # type: ignore[union-attr]
    assert part.raw == {"continuation_token": "t1"}


# ---------------------------------------------------------------- 4.3, 4.4 the other written forms


def test_the_guides_requires_action_ends_the_answer_at_the_end_of_the_body() -> None:
    decoder, parser = wire().decoder(), SSEParser()
    events = [event for each in parser.feed(file("guide_tool_call", "stream.sse")) for event in decoder.feed(each)]
    assert not decoder.done
    assert not any(isinstance(event, Done) for event in events)
    assert isinstance(decoder.close()[-1], Done)
    assert decoder.done


def test_after_the_guides_requires_action_the_completed_event_brings_the_usage() -> None:
    end = {"type": "interaction.completed", "interaction": {"status": "requires_action", "usage": {"prompt_tokens": 5}}}
    _, response = read(file("guide_tool_call", "stream.sse") + sse(end, DONE))
    assert response.usage is not None
    assert (response.usage.input_tokens, response.stop) == (5, StopReason.TOOL_USE)


def test_after_the_guides_requires_action_no_step_may_begin_and_an_error_counts() -> None:
    data = file("guide_tool_call", "stream.sse")
    with pytest.raises(ProtocolError):
        read(data + sse(start(9, type="thought")))
    with pytest.raises(ProtocolError):
        read(data + sse({"type": "interaction.requires_action"}))
    with pytest.raises(APIError):
        read(data + sse({"type": "error", "error": {"message": "Sorry."}}))
    assert read(data + sse(DONE))[1].stop is StopReason.TOOL_USE


@pytest.mark.parametrize("kind", ["arguments_delta", "arguments"])
@pytest.mark.parametrize("field", ["arguments", "partial_arguments"])
def test_both_written_forms_of_an_arguments_delta_are_read(kind: str, field: str) -> None:
    begin = start(0, type="function_call", id="c0", name="f")
    pieces = [{"event_type": "step.delta", "index": 0, "delta": {"type": kind, field: piece}} for piece in ('{"a":', " 1}")]
    events, response = read(sse(CREATED, begin, *pieces, stop(0), completed("requires_action")))
    assert response.tool_calls[0].args == {"a": 1}
    assert [event for event in events if isinstance(event, ArgumentsDelta)] == [
        ArgumentsDelta(0, "c0", '{"a":'),
        ArgumentsDelta(0, "c0", " 1}"),
    ]


def test_the_name_of_an_event_is_event_type_then_type_then_the_sse_name() -> None:
    assert read(sse(("x", {**CREATED, "type": "y"}), ("z", completed())))[1].stop is StopReason.END
    bare = {key: value for key, value in completed().items() if key != "event_type"}
    assert read(sse(CREATED, ("x", {**bare, "type": "interaction.completed"})))[1].stop is StopReason.END
    assert read(sse(CREATED, ("interaction.completed", bare)))[1].stop is StopReason.END


def test_in_the_removed_revision_a_delta_without_a_start_opens_its_content() -> None:
    def old(name: str, **fields: Any) -> JSON:
        return {"event_type": name, **fields}

    events = [
        old("interaction.start", interaction={"id": "v1_x", "status": "in_progress"}),
        old("content.delta", index=0, delta={"type": "thought_signature", "signature": "c2ln"}),
        old("content.delta", index=1, delta={"type": "text", "text": "Ebb "}),
        old("content.delta", index=1, delta={"type": "text", "text": "at noon."}),
        old("content.delta", index=2, delta={"type": "function_call", "id": "c1", "name": "f", "arguments": {}}),
        old("interaction.complete", interaction={"id": "v1_x", "status": "requires_action"}),
    ]
    response = read(sse(*events))[1]
    assert (response.text, response.stop, response.tool_calls[0].args) == ("Ebb at noon.", StopReason.TOOL_USE, {})
    assert response.raw["outputs"][:2] == [
        {"type": "thought", "signature": "c2ln"},
        {"type": "text", "text": "Ebb at noon."},
    ]
    with pytest.raises(ProtocolError):
        read(
            sse(
                *events[:4], old("content.stop", index=1), old("content.delta", index=1, delta={"type": "text", "text": "x"})
            )
        )


def test_in_the_removed_revision_a_picture_is_announced_and_then_comes() -> None:
    begin = {"event_type": "content.start", "index": 0, "content": {"type": "image"}}
    picture = {
        "event_type": "content.delta",
        "index": 0,
        "delta": {"type": "image", "mime_type": "image/png", "data": "aGk="},
    }
    end = [
        {"event_type": "content.stop", "index": 0},
        {"event_type": "interaction.complete", "interaction": {"status": "completed"}},
    ]
    response = read(sse(begin, picture, *end))[1]
    raw = {"type": "image", "mime_type": "image/png", "data": "aGk="}
    assert response.message.parts == [Image(data="aGk=", media_type="image/png", wire=NAME, raw=raw)]
    more = read(sse(begin, picture, picture, *end))[1].message.parts
    assert [part.type for part in more] == ["image", "image"]


# ---------------------------------------------------------------- recognition


@pytest.mark.parametrize(
    ("payload", "sure"),
    [
        (CREATED, 2),
        (completed(), 2),
        (delta(0, type="text", text="x"), 2),
        ({"event_type": "content.delta", "index": 0}, 2),
        ({"event_type": "error", "error": {"message": "x"}}, 2),
        ({"type": "step.delta", "index": 0}, 2),
        ({"type": "interaction.created"}, 2),
        ({"interaction": {"id": "", "status": "requires_action"}}, 2),
        ({"status": "completed", "steps": []}, 2),
        ({"status": "completed", "outputs": []}, 2),
        ({"object": "interaction", "status": "invented"}, 2),
        ({"error": {"code": "rate_limit_exceeded", "message": "x"}}, 2),
        ([{"error": {"code": "prohibited_content", "message": "x"}}], 2),
        ({"error": {"code": "invented_code", "message": "x"}}, 1),
        ({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x"}}, 1),
        ({"error": {"code": "rate_limit_exceeded", "message": "x", "type": "requests", "param": None}}, 0),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, 0),
        ({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}, 0),
        ({"type": "response.created", "response": {"status": "in_progress"}}, 0),
        ({"object": "response", "status": "completed", "output": []}, 0),
        ({"object": "chat.completion", "choices": []}, 0),
        ({"candidates": [], "usageMetadata": {}}, 0),
        ({"status": ["odd"], "steps": []}, 0),
        ([], 0),
        (None, 0),
        ("text", 0),
    ],
)
def test_its_own_payloads_are_recognised_and_others_are_not(payload: Any, sure: int) -> None:
    assert GeminiInteractions.recognises(payload) == sure


def test_parts_survive_storage() -> None:
    messages: list[Message] = []
    for case in BOTH:
        try:
            messages += [wire().decode(load(case, "response.json")).message, read(file(case, "stream.sse"))[1].message]
        except LessonError:
            assert case == "failed"
    parts: list[Part] = [part for message in load_history(dump_history(messages)) for part in message.parts]
    assert parts == [part for message in messages for part in message.parts]


# ---------------------------------------------------------------- fields of the wrong type


@pytest.mark.parametrize("status", ["incomplete", "in_progress", "budget_exceeded"])
def test_a_call_without_arguments_in_an_answer_that_was_cut_cannot_be_run(status: str) -> None:
    """Nothing says that its arguments were written; {} is not what the model said."""
    step = {"type": "function_call", "id": "c1", "name": "delete_all"}
    assert [call.args for call in answer(step, status=status).tool_calls] == [None]
    assert [call.args for call in answer({**step, "arguments": {}}, status=status).tool_calls] == [{}]
    assert [call.args for call in answer(step, status="requires_action").tool_calls] == [{}]


@pytest.mark.parametrize("index", ["1", None, True, 1.5])
def test_a_step_whose_place_is_no_number_is_refused_and_what_was_shown_is_attached(index: Any) -> None:
    shown = [start(0, type="model_output"), delta(0, type="text", text="Hello"), stop(0)]
    error = failure(CREATED, *shown, {**start(1, type="model_output"), "index": index})
    assert isinstance(error, ProtocolError)
    assert error.partial is not None
    assert error.partial.text == "Hello"


@pytest.mark.parametrize("kind", [None, 7, True, ""])
def test_a_delta_that_does_not_say_what_it_is_is_no_unknown_one(kind: Any) -> None:
    assert isinstance(failure(CREATED, start(0, type="model_output"), delta(0, type=kind, text="a")), ProtocolError)


def test_a_summary_that_is_no_text_is_refused() -> None:
    late = delta(0, type="thought_summary", content={"type": "text", "text": 7})
    assert isinstance(failure(CREATED, start(0, type="thought"), late), ProtocolError)


def test_an_output_count_that_cannot_be_read_makes_no_smaller_sum() -> None:
    usage = answer(usage={"total_output_tokens": 5, "total_thought_tokens": "7"}).usage
    assert usage is not None
    assert (usage.output_tokens, usage.reasoning_tokens) == (None, None)


@pytest.mark.parametrize(
    "steps",
    [
        "text",
        [{"type": "model_output", "content": 7}],
        [{"type": "model_output", "content": [{"type": "text", "text": 7}]}],
        [{"type": "model_output", "content": [{"type": "image", "data": 7, "mime_type": "image/png"}]}],
        [{"type": "thought", "summary": {"type": "text"}}],
    ],
)
def test_what_would_be_lost_for_its_type_is_a_protocol_error(steps: Any) -> None:
    with pytest.raises(ProtocolError):
        wire().decode({"id": "v1_x", "status": "incomplete", "steps": steps})


def test_a_text_alone_may_stand_where_a_step_has_contents() -> None:
    response = streamed(start(0, type="model_output", content="Hel"), delta(0, type="text", text="lo"), stop(0))
    assert response.text == "Hello"
