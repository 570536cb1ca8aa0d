"""generateContent's own rules: what the contract suite, which is the same for all wires, cannot know.

The numbers are sections of docs/wire/gemini-generate-content.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from lessonlib.errors import APIError, IncompleteStream, InvalidRequest, ProtocolError
from lessonlib.history import OPENING
from lessonlib.sse import SSEParser
from lessonlib.types import (
    JSON,
    ArgumentsDelta,
    Done,
    Event,
    Image,
    Message,
    Opaque,
    PartDone,
    Reasoning,
    ReasoningDelta,
    Request,
    Response,
    StopReason,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
    dump_history,
    load_history,
)  # fmt: skip
from lessonlib.wire.gemini_generate_content import NAME, ONE_CALL, SKIP_SIGNATURE, STOP, GeminiGenerateContent, assemble

WEATHER = Tool(
    name="get_weather",
    description="Weather of a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
PICTURE = Image.from_bytes(b"not really a picture", "image/png")


def wire(model: str = "gemini-3.8-flash", **options: Any) -> GeminiGenerateContent:
    return GeminiGenerateContent(model, api_key="test-key", **options)


def body(*messages: Message, model: str = "gemini-3.8-flash", **fields: Any) -> JSON:
    return wire(model).encode(Request(messages=list(messages), **fields)).body


def contents(*messages: Message, model: str = "gemini-3.8-flash") -> list[JSON]:
    return body(*messages, model=model)["contents"]


def own(*raws: JSON, response_id: str = "r1") -> Message:
    """The assistant message for an answer with these parts."""
    return answer(*raws, response_id=response_id).message


def answer(*raws: JSON, finish: Any = "STOP", response_id: str = "r1", **fields: Any) -> Response:
    candidate = {"content": {"role": "model", "parts": list(raws)}, "finishReason": finish}
    return wire().decode({"candidates": [candidate], "responseId": response_id, **fields})


def chunk(*raws: JSON, finish: Any = None, **fields: Any) -> JSON:
    candidate: JSON = {"content": {"role": "model", "parts": list(raws)}} if raws else {}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r1", **fields}


def stream(*chunks: Any, tail: bytes = b"") -> tuple[list[Event], Response]:
    """All events of a stream of these payloads, and its result."""
    decoder, parser = wire().decoder(), SSEParser()
    data = b"".join(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in chunks) + tail
    events = [event for sse in parser.feed(data) + parser.close() for event in decoder.feed(sse)]
    events += decoder.close(parser.stray)
    return events, decoder.result()


def call_part(name: str = "get_weather", signature: str | None = None, **args: Any) -> JSON:
    part: JSON = {"functionCall": {"name": name, "args": args}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def results(message: Message, *texts: str) -> Message:
    pairs = zip(message.tool_calls, texts, strict=True)
    return Message(role="user", parts=[ToolResult(call_id=call.call_id, content=text) for call, text in pairs])


# ---------------------------------------------------------------- 1: address and key


@pytest.mark.parametrize(
    ("model", "options", "stream", "url"),
    [
        ("gemini-3.8-flash", {}, False, "/v1beta/models/gemini-3.8-flash:generateContent"),
        ("gemini-3.8-flash", {}, True, "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"),
        ("models/gemini-3.8-flash", {"version": "v1"}, False, "/v1/models/gemini-3.8-flash:generateContent"),
        ("tunedModels/tides", {}, False, "/v1beta/tunedModels/tides:generateContent"),
        ("a?key=b", {}, False, "/v1beta/models/a%3Fkey%3Db:generateContent"),
    ],
)  # fmt: skip
def test_the_model_and_the_method_stand_in_the_path(model: str, options: JSON, stream: bool, url: str) -> None:
    sent = wire(model, **options).encode(Request(messages="Hi"), stream=stream)
    assert sent.url == "https://generativelanguage.googleapis.com" + url
    assert "model" not in sent.body
    assert sent.headers["x-goog-api-key"] == "test-key"


def test_the_key_comes_from_gemini_api_key_then_google_api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "second")
    assert GeminiGenerateContent("m").encode(Request(messages="Hi")).headers["x-goog-api-key"] == "second"
    monkeypatch.setenv("GEMINI_API_KEY", "first")
    assert GeminiGenerateContent("m").encode(Request(messages="Hi")).headers["x-goog-api-key"] == "first"


def test_without_a_key_no_key_header_is_sent() -> None:
    assert "x-goog-api-key" not in GeminiGenerateContent("m").encode(Request(messages="Hi")).headers


# ---------------------------------------------------------------- 2: the request


def test_a_whole_request() -> None:
    request = Request(
        messages=[Message.user("Weather in Oslo?", PICTURE, Image(url="https://example.com/a.jpg?size=2"))],
        system="Be brief.", tools=[WEATHER], tool_choice="required", max_tokens=100, reasoning="low", stop=["END"],
        output_schema={"type": "object"}, extra={NAME: {"generationConfig": {"temperature": 0}, "safetySettings": []}},
    )  # fmt: skip
    assert wire().encode(request).body == {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "Weather in Oslo?"},
                    {"inlineData": {"mimeType": "image/png", "data": PICTURE.data}},
                    {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.com/a.jpg?size=2"}},
                ],
            }
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "get_weather",
                        "description": "Weather of a city",
                        "parametersJsonSchema": WEATHER.parameters,
                    }
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "generationConfig": {
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
            "temperature": 0,
        },
        "safetySettings": [],
    }


def test_a_plain_request_holds_nothing_but_its_contents() -> None:
    assert body(Message.user("Hi")) == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


def test_neighbours_of_one_role_are_merged_and_empty_text_is_left_out() -> None:
    sent = contents(
        Message.user("a", ""), Message.user("b"), Message.assistant("c"), Message.assistant(""), Message.user("d")
    )
    assert sent == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [{"text": "c"}]},
        {"role": "user", "parts": [{"text": "d"}]},
    ]


def test_a_history_that_a_call_opens_gets_a_user_before_it() -> None:
    """google-gemini/gemini-cli#11814: "function call turn comes immediately after a user turn"."""
    call = Message.assistant(ToolCall(call_id="c1", name="look", args={}, raw_args="{}"))
    result = Message.user(ToolResult(call_id="c1", content="seen"))
    opening, called, _ = contents(call, result)
    assert opening == {"role": "user", "parts": [{"text": OPENING}]}
    assert called["parts"][0]["functionCall"]["name"] == "look"
    assert called["parts"][0]["thoughtSignature"] == SKIP_SIGNATURE
    assert contents(Message.user("Look"), call, result)[0]["parts"] == [{"text": "Look"}]
    assert contents(Message.assistant("Hello"), Message.user("Hi"))[0]["role"] == "model"


@pytest.mark.parametrize(
    ("choice", "strict", "config"),
    [
        (None, None, None),
        ("auto", None, {"mode": "AUTO"}),
        ("none", None, {"mode": "NONE"}),
        ("required", True, {"mode": "ANY"}),
        ("get_weather", None, {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}),
        (None, True, {"mode": "VALIDATED"}),
        ("auto", True, {"mode": "VALIDATED"}),
    ],
)
def test_tool_choice(choice: str | None, strict: bool | None, config: JSON | None) -> None:
    tool = WEATHER.model_copy(update={"strict": strict})
    sent = body(Message.user("Hi"), tools=[tool], tool_choice=choice)
    assert sent.get("toolConfig") == ({"functionCallingConfig": config} if config else None)


def test_a_tool_whose_name_is_a_mode_is_still_a_tool() -> None:
    sent = body(Message.user("Hi"), tools=[Tool(name="validated")], tool_choice="validated")
    assert sent["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["validated"]}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": {}, "required": [], "additionalProperties": False}, False),
        ({"type": "object", "additionalProperties": {"type": "string"}}, True),
        ({"$ref": "#/$defs/City", "$defs": {"City": {"type": "object"}}}, True),
    ],
)
def test_a_tool_without_parameters_is_declared_without_a_schema(schema: JSON, sent: bool) -> None:
    (tool,) = body(Message.user("Hi"), tools=[Tool(name="t", parameters=schema)])["tools"][0]["functionDeclarations"]
    assert ("parametersJsonSchema" in tool) is sent


def test_a_custom_tool_becomes_a_function_with_one_text() -> None:
    (tool,) = body(Message.user("Hi"), tools=[Tool(name="sql", kind="custom")])["tools"][0]["functionDeclarations"]
    assert tool["parametersJsonSchema"]["required"] == ["input"]


def test_at_most_one_call_is_asked_for_in_the_system_instruction_because_there_is_no_switch() -> None:
    sent = body(Message.user("Hi"), system="Be brief.", tools=[WEATHER], parallel=False)
    assert sent["systemInstruction"] == {"parts": [{"text": f"Be brief.\n\n{ONE_CALL}"}]}
    assert "systemInstruction" not in body(Message.user("Hi"), parallel=False)
    assert "systemInstruction" not in body(Message.user("Hi"), tools=[WEATHER], tool_choice="none", parallel=False)


@pytest.mark.parametrize(
    ("model", "asked", "config"),
    [
        ("gemini-3.8-flash", "medium", {"thinkingLevel": "medium", "includeThoughts": True}),
        ("gemini-3.8-flash", 512, {"thinkingBudget": 512, "includeThoughts": True}),
        ("gemini-2.5-pro", "medium", {"thinkingBudget": 8192, "includeThoughts": True}),
        ("gemini-2.5-pro", -1, {"thinkingBudget": -1, "includeThoughts": True}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("some-new-model", "high", {"thinkingLevel": "high", "includeThoughts": True}),
        ("some-new-model", "none", {"thinkingBudget": 0}),
    ],
)
def test_thinking_is_asked_for_in_the_words_of_the_model(model: str, asked: str | int, config: JSON) -> None:
    assert body(Message.user("Hi"), model=model, reasoning=asked)["generationConfig"] == {"thinkingConfig": config}


@pytest.mark.parametrize(
    ("model", "asked", "hint"),
    [
        ("gemini-3.8-flash", "none", '"low" thinks least'),
        ("gemini-3.8-flash", "max", "only low, medium, high"),
        ("gemini-2.5-pro", "enormous", "neither a number of tokens nor one of"),
        ("some-new-model", "enormous", "this API has no reasoning"),
    ],
)
def test_thinking_that_the_model_cannot_do_is_refused_before_sending(model: str, asked: str, hint: str) -> None:
    with pytest.raises(InvalidRequest, match=hint):
        body(Message.user("Hi"), model=model, reasoning=asked)


# ---------------------------------------------------------------- 3: calls and results


def test_results_of_calls_without_ids_pair_by_name_and_order() -> None:
    calls = own(call_part(city="Oslo", signature="s1"), call_part(city="Lima"))
    first, second = calls.tool_calls
    late = Message(role="user", parts=[ToolResult(call_id=second.call_id, content="hot"),
                                       ToolResult(call_id=first.call_id, content="cold")])  # fmt: skip
    assert contents(Message.user("?"), calls, late)[1:] == [
        {"role": "model", "parts": [call_part(city="Oslo", signature="s1"), call_part(city="Lima")]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "get_weather", "response": {"output": "cold"}}},
                {"functionResponse": {"name": "get_weather", "response": {"output": "hot"}}},
            ],
        },
    ]


def test_the_id_of_a_call_is_echoed_and_a_failure_uses_the_error_key() -> None:
    part = {"functionCall": {"id": "c7", "name": "get_weather", "args": {}}, "thoughtSignature": "s1"}
    failed = Message(role="user", parts=[ToolResult(call_id="c7", content="no such city", is_error=True)])
    (sent,) = contents(Message.user("?"), own(part), failed)[2]["parts"]
    assert sent == {"functionResponse": {"id": "c7", "name": "get_weather", "response": {"error": "no such city"}}}


def test_a_foreign_call_is_rebuilt_with_its_id_and_its_result_has_the_same() -> None:
    call = ToolCall(
        call_id="toolu_1", name="get_weather", args={"city": "Oslo"}, wire="anthropic-messages", raw={"type": "x"}
    )
    sent = contents(Message.user("?"), Message.assistant(call), results(Message.assistant(call), "cold"))
    assert sent[1]["parts"][0]["functionCall"] == {"id": "toolu_1", "name": "get_weather", "args": {"city": "Oslo"}}
    assert sent[2]["parts"][0]["functionResponse"]["id"] == "toolu_1"


@pytest.mark.parametrize("model", ["gemini-3.8-flash", "gemini-flash-latest"])
def test_pictures_in_a_result_stand_inside_it_from_gemini_3_on(model: str) -> None:
    calls = own(call_part(signature="s1"))
    shown = ToolResult(call_id=calls.tool_calls[0].call_id, content=[Text(text="the map"), PICTURE])
    (sent,) = contents(Message.user("?"), calls, Message(role="user", parts=[shown]), model=model)[2]["parts"]
    assert sent["functionResponse"] == {
        "name": "get_weather",
        "response": {"output": "the map"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE.data}}],
    }


def test_earlier_models_get_the_pictures_behind_the_last_result() -> None:
    calls = own(call_part(city="Oslo"), call_part(city="Lima"))
    shown = [ToolResult(call_id=call.call_id, content=[PICTURE, Text(text="map")]) for call in calls.tool_calls]
    sent = contents(
        Message.user("?"), calls, Message(role="user", parts=[*shown, Text(text="Go on")]), model="gemini-2.5-pro"
    )
    assert [next(iter(part)) for part in sent[2]["parts"]] == [
        "functionResponse", "functionResponse", "inlineData", "inlineData", "text"
    ]  # fmt: skip


def test_a_call_that_could_not_be_used_goes_back_as_an_object_that_says_so() -> None:
    message = own({"functionCall": {"name": "get_weather", "args": "Oslo"}, "thoughtSignature": "s1"})
    (call,) = message.tool_calls
    assert (call.args, call.raw_args) == (None, '"Oslo"')
    sent = contents(Message.user("?"), message, results(message, "those arguments are no object"))
    assert sent[1]["parts"] == [
        {"functionCall": {"name": "get_weather", "args": {"INVALID_JSON": '"Oslo"'}}, "thoughtSignature": "s1"}
    ]
    foreign = ToolCall(call_id="c1", name="get_weather", args_error="cut", raw_args='{"ci', wire="openai-chat")
    sent = contents(Message.user("?"), Message.assistant(foreign), results(Message.assistant(foreign), "cut"))
    assert sent[1]["parts"][0]["functionCall"] == {"id": "c1", "name": "get_weather", "args": {"INVALID_JSON": '{"ci'}}


# ---------------------------------------------------------------- 4: thought signatures


def test_all_parts_of_a_step_go_back_in_one_content_with_the_signature_where_it_was() -> None:
    """Parallel calls that are stored one per message lose the signature of the second (js-genai #1275)."""
    first, second = own(call_part("tide", p="A", signature="TS-1"), call_part("tide", p="B")).parts
    apart = [Message.user("?"), Message.assistant(first), Message.assistant(second)]
    sent = contents(*apart, results(Message.assistant(first, second), "1.2 m", "0.9 m"))
    assert [content["role"] for content in sent] == ["user", "model", "user"]
    assert sent[1]["parts"] == [call_part("tide", p="A", signature="TS-1"), call_part("tide", p="B")]


def test_a_signature_on_empty_text_goes_back_and_empty_text_without_one_does_not() -> None:
    signed = {"text": "", "thoughtSignature": "s1"}
    message = own({"text": "thinking", "thought": True}, {"text": "37 km/h"}, {"text": ""}, signed)
    assert [type(part) for part in message.parts] == [Reasoning, Text, Text]
    assert contents(Message.user("?"), message, Message.user("Thanks"))[1]["parts"] == [
        {"text": "thinking", "thought": True}, {"text": "37 km/h"}, signed
    ]  # fmt: skip
    stored = Message.assistant(Text(text="", wire=NAME, raw={"text": ""}), "yes")
    assert contents(Message.user("?"), stored)[1]["parts"] == [{"text": "yes"}]


def test_unknown_fields_of_a_part_go_back_and_survive_a_store() -> None:
    raw = {"functionCall": {"name": "t", "args": {}, "id": "1"}, "thoughtSignature": "s", "partMetadata": {"a": [1]}}
    message = own(raw)
    (stored,) = load_history(dump_history([message]))
    assert contents(Message.user("?"), stored, results(message, "ok"))[1]["parts"] == [raw]


FOREIGN = Message.assistant(
    ToolCall(call_id="a", name="get_weather", args={"city": "Oslo"}), ToolCall(call_id="b", name="get_weather", args={})
)


def signatures(sent: list[JSON]) -> list[list[str | None]]:
    return [[part.get("thoughtSignature") for part in content["parts"]] for content in sent if content["role"] == "model"]


def test_foreign_calls_of_the_current_turn_get_the_skip_value_the_first_of_each_step_only() -> None:
    second = Message.assistant("Now the other.", ToolCall(call_id="c", name="get_weather", args={}))
    history = [Message.user("?"), FOREIGN, results(FOREIGN, "1", "2"), second, results(second, "3")]
    assert signatures(contents(*history)) == [[SKIP_SIGNATURE, None], [None, SKIP_SIGNATURE]]


def test_the_current_turn_begins_with_the_last_message_of_the_user() -> None:
    step = own(call_part(signature="real"))
    history = [Message.user("?"), FOREIGN, results(FOREIGN, "1", "2"), Message.assistant("Cold."), Message.user("And now?")]
    assert signatures(contents(*history, step, results(step, "4"))) == [[None, None], [None], ["real"]]


@pytest.mark.parametrize(("model", "skipped"), [
    ("gemini-3-flash-preview", True), ("gemini-3.1-pro-preview", True), ("models/gemini-4-pro", True),
    ("gemini-flash-latest", True), ("gemini-2.5-pro", False), ("gemini-2.0-flash", False), ("gemma-3-27b-it", False),
])  # fmt: skip
def test_only_models_that_check_signatures_get_the_skip_value(model: str, skipped: bool) -> None:
    sent = contents(Message.user("?"), FOREIGN, results(FOREIGN, "1", "2"), model=model)
    assert signatures(sent) == [[SKIP_SIGNATURE if skipped else None, None]]


def test_the_skip_value_never_gets_into_the_history() -> None:
    message = own(call_part(city="Oslo"))
    contents(Message.user("?"), message, results(message, "cold"))
    assert message.parts[0].raw == call_part(city="Oslo")


# ---------------------------------------------------------------- 5: usage


def test_thoughts_are_output_and_missing_counts_are_not_zero() -> None:
    counts = {
        "promptTokenCount": 9,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 30,
        "cachedContentTokenCount": 6,
        "toolUsePromptTokenCount": 7,
    }
    usage = answer({"text": "x"}, usageMetadata=counts).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens) == (9, 34, 6, 30)
    sparse = answer({"text": "x"}, usageMetadata={"promptTokenCount": 9, "totalTokenCount": 9}).usage
    assert sparse is not None
    assert (sparse.input_tokens, sparse.output_tokens, sparse.cached_tokens, sparse.reasoning_tokens) == (
        9,
        None,
        None,
        None,
    )
    assert answer({"text": "x"}).usage is None


def test_the_last_report_of_a_stream_counts_and_one_without_counts_does_not_replace_it() -> None:
    full = {"promptTokenCount": 20, "candidatesTokenCount": 3, "totalTokenCount": 23}
    _, response = stream(
        chunk({"text": "a"}, usageMetadata={"promptTokenCount": 99, "totalTokenCount": 99}),
        chunk({"text": "b"}, usageMetadata=full), chunk(finish="STOP", usageMetadata={"trafficType": "ON_DEMAND"}),
    )  # fmt: skip
    assert response.usage is not None
    assert response.usage.raw == full


# ---------------------------------------------------------------- 6: finish reasons


REASONS = {
    "STOP": "end", "MAX_TOKENS": "length", "CONTINUATION": "pause",
    "SAFETY": "refusal", "RECITATION": "refusal", "BLOCKLIST": "refusal", "PROHIBITED_CONTENT": "refusal", "SPII": "refusal",
    "IMAGE_SAFETY": "refusal", "IMAGE_PROHIBITED_CONTENT": "refusal", "IMAGE_RECITATION": "refusal",
    "MODEL_ARMOR": "refusal", "ESCALATION": "refusal", "PUP_LIMITED_DISABLED": "refusal",
    "LANGUAGE": "other", "OTHER": "other", "MALFORMED_FUNCTION_CALL": "other", "UNEXPECTED_TOOL_CALL": "other",
    "TOO_MANY_TOOL_CALLS": "other", "MISSING_THOUGHT_SIGNATURE": "other", "MALFORMED_RESPONSE": "other", "NO_IMAGE": "other",
    "IMAGE_OTHER": "other", "INVENTED_LATER": "other", "1": "end", "2": "length", "3": "refusal", "4": "refusal",
}  # fmt: skip


@pytest.mark.parametrize(("reason", "stop"), REASONS.items())
def test_every_finish_reason_whole_and_streamed(reason: str, stop: str) -> None:
    value = int(reason) if reason.isdigit() else reason
    whole = answer({"text": "x"}, finish=value)
    _, streamed = stream(chunk({"text": "x"}), chunk(finish=value))
    assert (whole.stop, whole.raw_stop) == (streamed.stop, streamed.raw_stop) == (stop, reason)


def test_the_table_of_finish_reasons_is_tested_in_full() -> None:
    assert set(STOP) <= set(REASONS)


def test_stop_with_a_call_is_tool_use_and_a_length_stop_stays_one() -> None:
    assert answer(call_part()).stop is StopReason.TOOL_USE
    assert answer(call_part(), finish="MAX_TOKENS").stop is StopReason.LENGTH
    assert answer(call_part(), finish="SAFETY").stop is StopReason.REFUSAL


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "JAILBREAK", "INVENTED_LATER"])
@pytest.mark.parametrize("rest", [{}, {"candidates": []}, {"candidates": [{"index": 0}]}])
def test_a_blocked_prompt_is_a_refusal_whatever_the_reason(reason: str, rest: JSON) -> None:
    response = wire().decode({"promptFeedback": {"blockReason": reason}, **rest})
    assert (response.stop, response.raw_stop, response.message.parts) == (StopReason.REFUSAL, reason, [])


@pytest.mark.parametrize("payload", [
    {"candidates": [], "promptFeedback": {"blockReasonMessage": "No."}},
    {"candidates": [{"content": {"parts": [{"text": "half"}]}}]},
    {"candidates": [{"content": {"parts": [{"text": "half"}]}, "finishReason": "FINISH_REASON_UNSPECIFIED"}]},
    {"usageMetadata": {"promptTokenCount": 3}},
])  # fmt: skip
def test_a_whole_answer_that_does_not_say_why_it_ended_is_no_success(payload: JSON) -> None:
    assert wire().decode(payload).stop is StopReason.OTHER


# ---------------------------------------------------------------- 3: decoding parts


def test_every_kind_of_part() -> None:
    parts = own(
        {"text": "t"}, {"text": "r", "thought": True}, call_part(), {"functionResponse": {"name": "t", "response": {}}},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thought": True, "thoughtSignature": "s"},
        {"fileData": {"fileUri": "u"}}, {"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}},
        {"toolCall": {"id": "1"}}, {"toolResponse": {"id": "1"}}, {"thoughtSignature": "alone"}, {"new_thing": {}}, {},
    ).parts  # fmt: skip
    assert [part.kind if isinstance(part, Opaque) else part.type for part in parts] == [
        "text", "reasoning", "tool_call", "functionResponse", "inlineData", "fileData", "executableCode",
        "codeExecutionResult", "toolCall", "toolResponse", "reasoning", "new_thing",
    ]  # fmt: skip
    assert all(part.wire == NAME and part.raw for part in parts)


def test_snake_case_is_read_as_well() -> None:
    payload = {
        "candidates": [
            {
                "content": {"parts": [{"function_call": {"id": "c1", "name": "t", "args": {}}, "thought_signature": "s"}]},
                "finish_reason": "STOP",
            }
        ],
        "usage_metadata": {"prompt_token_count": 5, "candidates_token_count": 2, "total_token_count": 7},
        "model_version": "m",
        "response_id": "r",
    }
    whole = wire().decode(payload)
    _, streamed = stream(payload)
    assert whole == streamed
    assert (whole.id, whole.model, whole.stop, whole.tool_calls[0].call_id) == ("r", "m", "tool_use", "c1")
    assert whole.usage is not None
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (5, 2)
    sent = contents(Message.user("?"), whole.message, results(whole.message, "ok"))
    assert sent[1]["parts"] == [{"function_call": {"id": "c1", "name": "t", "args": {}}, "thought_signature": "s"}]
    assert sent[2]["parts"][0]["functionResponse"]["id"] == "c1"


def test_calls_without_ids_get_ids_that_pair_them_and_are_the_same_at_each_reading() -> None:
    parts = [call_part(city="Oslo"), call_part(city="Oslo"), call_part("list")]
    ids = [call.call_id for call in answer(*parts).tool_calls]
    assert len(set(ids)) == 3
    assert ids == [call.call_id for call in answer(*parts).tool_calls]
    assert ids == [call.call_id for call in stream(*(chunk(part) for part in parts), chunk(finish="STOP"))[1].tool_calls]
    assert not set(ids) & {call.call_id for call in answer(*parts, response_id="r2").tool_calls}


def test_a_call_without_a_name_cannot_be_run() -> None:
    (call,) = answer({"functionCall": {}}).tool_calls
    assert (call.args, call.args_error) == (None, "the call has no name")


def test_candidate_0_is_the_answer_wherever_it_stands() -> None:
    payload = {"candidates": [{"index": 1, "content": {"parts": [{"text": "B"}]}, "finishReason": "STOP"},
                              {"index": 0, "content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}]}  # fmt: skip
    assert wire().decode(payload).text == stream(payload)[1].text == "A"


def test_a_json_list_of_response_objects_is_read_as_the_stream_that_it_is() -> None:
    chunks = [chunk({"text": "15 * 3"}), chunk({"text": " = 45 \ud83d"}, finish="STOP")]
    assert wire().decode(chunks).text == "15 * 3 = 45 \ud83d"
    with pytest.raises(IncompleteStream):
        wire().decode(chunks[:1])
    with pytest.raises(APIError):
        wire().decode([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}}])
    with pytest.raises(APIError):
        wire().decode([chunks[0], {"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}}])


@pytest.mark.parametrize("payload", [{}, {"id": "x", "choices": []}, "text", None, [], [{}]])
def test_what_is_no_response_is_refused(payload: Any) -> None:
    with pytest.raises((ProtocolError, IncompleteStream)):
        wire().decode(payload)


def test_an_error_with_status_200_is_raised() -> None:
    with pytest.raises(APIError, match="overloaded") as caught:
        wire().decode({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})
    assert (caught.value.status, caught.value.retryable) == (200, True)


# ---------------------------------------------------------------- 7.1: the stream


def test_the_events_of_a_stream() -> None:
    events, response = stream(
        chunk({"text": "Hm", "thought": True}), chunk({"text": "m.", "thought": True}, {"text": "I "}),
        chunk({"text": "look."}), chunk(call_part(city="Oslo", signature="s")), chunk({"text": ""}, finish="STOP"),
    )  # fmt: skip
    thought, text, call = response.message.parts
    assert isinstance(call, ToolCall)
    assert events == [
        ReasoningDelta(0, "Hm"), ReasoningDelta(0, "m."), PartDone(0, thought),
        TextDelta(1, "I "), TextDelta(1, "look."), PartDone(1, text),
        ArgumentsDelta(2, call.call_id, '{"city":"Oslo"}'), PartDone(2, call), Done(response),
    ]  # fmt: skip


def test_signed_and_unsigned_text_are_never_joined() -> None:
    parts = [{"text": "a"}, {"text": "b", "thoughtSignature": "s"}, {"text": "c"}, {"text": "d"}, {"text": "e", "x": 1}]
    events, response = stream(*(chunk(part) for part in parts), chunk(finish="STOP"))
    assert [part.raw for part in response.message.parts] == [
        {"text": "a"}, {"text": "b", "thoughtSignature": "s"}, {"text": "cd"}, {"text": "e", "x": 1}
    ]  # fmt: skip
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "abcde"


def test_a_finish_reason_on_every_chunk_ends_nothing_until_the_stream_does() -> None:
    events, response = stream(*(chunk({"text": word}, finish="STOP") for word in ("one ", "two ", "three")))
    assert response.text == "one two three"
    assert [type(event) for event in events[-2:]] == [PartDone, Done]


@pytest.mark.parametrize("empty", [None, "", "FINISH_REASON_UNSPECIFIED", 0])
def test_a_finish_reason_that_says_nothing_is_none(empty: Any) -> None:
    unfinished = {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": empty}]}
    with pytest.raises(IncompleteStream):
        stream(unfinished)
    _, response = stream(chunk(finish="STOP"), unfinished)
    assert (response.text, response.raw_stop) == ("x", "STOP")


def test_the_finish_of_another_candidate_is_not_the_end_of_the_answer() -> None:
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "B"}]}, "finishReason": "STOP"}]}
    with pytest.raises(IncompleteStream):
        stream(chunk({"text": "A"}), other)


def test_an_error_is_an_error_even_after_a_finish_reason() -> None:
    error = {"error": {"code": 500, "status": "INTERNAL", "message": "internal"}}
    for broken in (error, [error]):
        with pytest.raises(APIError) as caught:
            stream(chunk({"text": "x"}, finish="STOP"), broken)
        assert caught.value.partial is not None
        assert caught.value.partial.text == "x"


@pytest.mark.parametrize("finish", [None, "STOP"])
def test_a_bare_json_error_line_is_raised(finish: str | None) -> None:
    tail = b'{\n  "error": {"code": 499, "message": "The operation was cancelled.", "status": "CANCELLED"}\n}\n'
    with pytest.raises(APIError, match="cancelled") as caught:
        stream(chunk({"text": "x"}, finish=finish), tail=tail)
    assert not caught.value.retryable


def test_a_done_marker_is_no_success_by_itself() -> None:
    assert stream(chunk({"text": "x"}, finish="STOP"), tail=b"data: [DONE]\n\n")[1].text == "x"
    with pytest.raises(IncompleteStream):
        stream(chunk({"text": "x"}), tail=b"data: [DONE]\n\n")


@pytest.mark.parametrize("payload", [
    1, "x", None, {"candidates": 5}, {"candidates": ["x"]}, {"candidates": [{"content": "x"}]},
    {"candidates": [{"content": {"parts": ["x"]}}]},
    {"candidates": [{"content": {"parts": [{"text": 5}]}, "finishReason": {}}]},
])  # fmt: skip
def test_payloads_of_the_wrong_type_never_pass_for_an_answer(payload: Any) -> None:
    with pytest.raises((ProtocolError, IncompleteStream)):
        stream(payload)


def test_nothing_is_read_after_the_end() -> None:
    decoder, parser = wire().decoder(), SSEParser()
    for sse in parser.feed(b"data: " + json.dumps(chunk({"text": "x"}, finish="STOP")).encode() + b"\n\n"):
        decoder.feed(sse)
    assert not decoder.done
    with pytest.raises(IncompleteStream):
        decoder.result()
    assert [type(event) for event in decoder.close()] == [PartDone, Done]
    assert decoder.done
    assert list(decoder.close()) == []


# ---------------------------------------------------------------- 7.2: arguments in pieces (Vertex AI)


def piece(path: str, more: bool = False, **value: Any) -> JSON:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value, "willContinue": more}], "willContinue": True}}


OPEN = {"functionCall": {"name": "cook", "id": "c1", "willContinue": True}, "thoughtSignature": "s"}
END: JSON = {"functionCall": {}}


def test_pieces_fold_into_the_part_of_a_whole_answer() -> None:
    events, response = stream(chunk(OPEN), chunk(piece("$.name", True, stringValue="Fish")),
                              chunk(piece("$.name", stringValue=" soup")), chunk(END, finish="STOP"))  # fmt: skip
    raw = {"functionCall": {"name": "cook", "id": "c1", "args": {"name": "Fish soup"}}, "thoughtSignature": "s"}
    assert [part.raw for part in response.message.parts] == [raw]
    assert [type(event) for event in events] == [ArgumentsDelta, PartDone, Done]


def test_a_call_without_pieces_takes_no_arguments() -> None:
    _, response = stream(chunk(OPEN), chunk(END, finish="STOP"))
    assert response.tool_calls[0].args == {}


def test_the_last_piece_may_hold_arguments_and_an_end_too_many_is_no_call() -> None:
    last = {"functionCall": {"partialArgs": [{"jsonPath": "$.name", "stringValue": "Fish"}]}}
    _, response = stream(chunk(OPEN), chunk(last), chunk(END, finish="STOP"))
    assert [(call.name, call.args) for call in response.tool_calls] == [("cook", {"name": "Fish"})]


@pytest.mark.parametrize(("pieces", "problem"), [
    ([piece("$.a[1]", stringValue="x")], "does not fit"),
    ([piece("$.a", stringValue="x"), piece("$.a.b", stringValue="x")], "does not fit"),
    ([piece("$.a.b", stringValue="x"), piece("$.a", numberValue=1)], "does not fit"),
    ([piece("$.a[0]", stringValue="x"), piece("$.a.b", stringValue="x")], "does not fit"),
    ([piece("$..a", stringValue="x")], "can be read"),
    ([piece("$", stringValue="x")], "can be read"),
    ([piece("a", stringValue="x")], "can be read"),
])  # fmt: skip
def test_pieces_that_contradict_each_other_make_a_call_that_cannot_be_run(pieces: list[JSON], problem: str) -> None:
    _, response = stream(chunk(OPEN), *(chunk(each) for each in pieces), chunk(END, finish="STOP"))
    (call,) = response.tool_calls
    assert call.args is None
    assert call.raw is None
    assert problem in (call.args_error or "")


@pytest.mark.parametrize("name", ["functionCall", "function_call"])
def test_arguments_that_come_in_a_part_of_their_own_belong_to_the_call_before_them(name: str) -> None:
    """vscode-unify-chat-provider issue 48: a name with `{}`, then arguments without a name. `f({})` must not run."""
    bare: JSON = {name: {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
    more: JSON = {name: {"args": {"path": "/a"}}}
    events, response = stream(chunk(bare), chunk(more), chunk(call_part("g", q=1), finish="STOP"))
    assert [(call.name, call.args) for call in response.tool_calls] == [("f", {"path": "/a"}), ("g", {"q": 1})]
    assert [type(event).__name__ for event in events] == ["ArgumentsDelta", "PartDone"] * 2 + ["Done"]
    assert response.tool_calls[0].raw == {
        "functionCall": {"name": "f", "args": {"path": "/a"}}, "thoughtSignature": "c2ln",
    }  # fmt: skip


@pytest.mark.parametrize("behind", [{"text": "Hm."}, {"functionCall": {"name": "g", "args": {}}}, {"inlineData": {}}])
def test_a_call_without_arguments_stays_one_and_keeps_its_place(behind: JSON) -> None:
    events, response = stream(chunk({"functionCall": {"name": "f", "args": {}}}), chunk(behind, finish="STOP"))
    assert (response.tool_calls[0].name, response.tool_calls[0].args) == ("f", {})
    assert response.message.parts[0] is response.tool_calls[0]
    assert [event.index for event in events if isinstance(event, PartDone)] == [0, 1]


def test_a_call_whose_arguments_may_still_come_is_not_run_after_a_cut() -> None:
    with pytest.raises(IncompleteStream) as raised:
        stream(chunk({"functionCall": {"name": "f", "args": {}}}))
    assert raised.value.partial is not None
    assert [(call.name, call.args) for call in raised.value.partial.tool_calls] == [("f", None)]


def test_a_call_whose_last_piece_never_came_cannot_be_run_though_the_stream_ended_well() -> None:
    events, response = stream(chunk(OPEN), chunk(piece("$.name", stringValue="Fish")), chunk(finish="STOP"))
    (call,) = response.tool_calls
    assert (call.call_id, call.args, call.raw_args, call.raw) == ("c1", None, '{"name":"Fish"}', None)
    assert PartDone(0, call) in events


def test_a_new_name_cuts_the_call_that_was_still_open() -> None:
    second = {"functionCall": {"name": "lay_table", "args": {"places": 4}}}
    _, response = stream(chunk(OPEN), chunk(piece("$.name", stringValue="Fish")), chunk(second, finish="STOP"))
    assert [(call.name, call.args) for call in response.tool_calls] == [("cook", None), ("lay_table", {"places": 4})]


def test_json_paths() -> None:
    values = {"$.a.b[0].c": 1, "$['x y'].z": 2, '$["d.e"]': 3, "$.a.b[0].d": None, "$.a.b[1]": "s", "$.m[0][0]": True}
    assert assemble(values, {"given": 0}) == {
        "given": 0, "a": {"b": [{"c": 1, "d": None}, "s"]}, "x y": {"z": 2}, "d.e": 3, "m": [[True]]
    }  # fmt: skip


# ---------------------------------------------------------------- 7.3: continuation


def test_an_answer_that_goes_on_is_replaced_by_its_token() -> None:
    def paused(text: str, token: str) -> Response:
        content = {"role": "model", "parts": [{"text": text}]}
        return wire().decode(
            {"candidates": [{"content": content, "finishReason": "CONTINUATION", "continuationToken": token}]}
        )

    first, second = paused("part 1", "dG9rZW4x"), paused("part 2", "dG9rZW4y")
    assert first.stop is StopReason.PAUSE
    assert first.message.parts[-1] == Opaque(kind="continuation", wire=NAME, raw={"continuationToken": "dG9rZW4x"})
    sent = body(Message.user("Tell me"), first.message, second.message)
    assert sent == {"contents": [{"role": "user", "parts": [{"text": "Tell me"}]}], "continuationToken": "dG9rZW4y"}


def test_a_finish_without_a_token_leaves_nothing_to_go_on_with() -> None:
    response = answer({"text": "part 1"}, finish="CONTINUATION")
    assert (response.stop, [part.type for part in response.message.parts]) == (StopReason.PAUSE, ["text"])


def test_a_continuation_that_is_over_leaves_only_its_text() -> None:
    token = Opaque(kind="continuation", wire=NAME, raw={"continuationToken": "dG9rZW4x"})
    sent = body(Message.user("Tell me"), Message.assistant("part 1", token, "part 2"), Message.user("Thanks"))
    assert sent["contents"][1] == {"role": "model", "parts": [{"text": "part 1"}, {"text": "part 2"}]}
    assert "continuationToken" not in sent


def test_the_continuation_of_another_api_is_not_taken_for_ours() -> None:
    foreign = Opaque(kind="continuation", wire="gemini-interactions", raw={"continuation_token": "x"})
    sent = body(Message.user("Tell me"), Message.assistant("part 1", foreign))
    assert sent["contents"][1] == {"role": "model", "parts": [{"text": "part 1"}]}
    assert "continuationToken" not in sent


# ---------------------------------------------------------------- 8: errors


def rpc(code: int, status: str, *details: JSON) -> bytes:
    return json.dumps({"error": {"code": code, "status": status, "message": "why", "details": list(details)}}).encode()


@pytest.mark.parametrize(("status", "word", "retryable"), [
    (400, "INVALID_ARGUMENT", False), (401, "UNAUTHENTICATED", False), (403, "PERMISSION_DENIED", False),
    (404, "NOT_FOUND", False), (408, "CANCELLED", True), (409, "ABORTED", False), (416, "OUT_OF_RANGE", False),
    (429, "RESOURCE_EXHAUSTED", True), (499, "CANCELLED", False), (500, "INTERNAL", True), (501, "UNIMPLEMENTED", False),
    (502, "UNAVAILABLE", True), (503, "UNAVAILABLE", True), (504, "DEADLINE_EXCEEDED", True),
])  # fmt: skip
def test_what_a_retry_can_help_over_http_and_inside_a_stream(status: int, word: str, retryable: bool) -> None:
    over_http = wire().decode_error(status, {}, rpc(status, word))
    inside = wire().api_error(200, json.loads(rpc(status, word)))
    assert (over_http.status, over_http.type, over_http.code, over_http.message) == (status, word, str(status), "why")
    assert over_http.retryable is inside.retryable is retryable


def test_an_error_in_a_list_without_a_number_is_read_by_its_word() -> None:
    error = wire().api_error(200, [{"error": {"status": "UNAVAILABLE", "message": "later"}}])
    assert (error.type, error.code, error.message, error.retryable) == ("UNAVAILABLE", None, "later", True)


QUOTA = "type.googleapis.com/google.rpc.QuotaFailure"


@pytest.mark.parametrize(("detail", "retryable"), [
    ({"@type": QUOTA, "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}, True),
    ({"@type": QUOTA, "violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"},
                                     {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}, False),
    ({"reason": "RATE_LIMIT_EXCEEDED", "metadata": {"quota_limit": "GenerateContentRequestsPerMinutePerProject"}}, True),
    ({"reason": "RATE_LIMIT_EXCEEDED", "metadata": {"quota_limit": "GenerateContentRequestsPerDayPerProject"}}, False),
    ({"violations": "odd", "metadata": None}, True),
])  # fmt: skip
def test_a_quota_per_day_is_not_retried_and_one_per_minute_is(detail: JSON, retryable: bool) -> None:
    assert wire().decode_error(429, {}, rpc(429, "RESOURCE_EXHAUSTED", detail)).retryable is retryable


@pytest.mark.parametrize(("delay", "seconds"), [("58s", 58.0), ("0.5s", 0.5), ("7.25s", 7.25), ("-3s", None), ("soon", None),
                                                (None, None), (5, None)])  # fmt: skip
def test_retry_info_names_the_wait_and_a_header_comes_first(delay: Any, seconds: float | None) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    answered = rpc(429, "RESOURCE_EXHAUSTED", info)
    assert wire().decode_error(429, {}, answered).retry_after == seconds
    assert wire().decode_error(429, {"Retry-After": "3"}, answered).retry_after == 3.0


def test_the_reason_in_error_info_is_the_code() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    assert wire().decode_error(400, {}, rpc(400, "INVALID_ARGUMENT", info)).code == "API_KEY_INVALID"


@pytest.mark.parametrize(("status", "text"), [(502, b"<html><body>Bad gateway</body></html>"), (503, b""), (500, b"[]")])
def test_error_bodies_that_are_not_of_this_api_still_make_an_error(status: int, text: bytes) -> None:
    error = wire().decode_error(status, {}, text)
    assert (error.status, error.retryable) == (status, True)
    assert error.message


# ---------------------------------------------------------------- recognising captures


@pytest.mark.parametrize(("payload", "sure"), [
    (chunk({"text": "x"}), 2),
    ({"promptFeedback": {"blockReason": "SAFETY"}}, 2),
    ({"usage_metadata": {}}, 2),
    ([chunk({"text": "x"})], 2),
    (json.loads(rpc(429, "RESOURCE_EXHAUSTED")), 2),
    ([json.loads(rpc(400, "INVALID_ARGUMENT"))], 2),
    ({"error": {"code": "rate_limit_exceeded", "message": "m"}}, 0),  # Interactions
    ({"event_type": "step.delta", "index": 0, "delta": {}}, 0),
    ({"id": "i", "status": "completed", "steps": [], "usage": {}}, 0),
    ({"error": {"message": "m", "type": "t", "code": None}}, 0),  # OpenAI
    ({"choices": []}, 0), ({}, 0), ([], 0), ([1], 0), ("x", 0), (None, 0),
])  # fmt: skip
def test_captures_of_this_format_are_told_from_others(payload: Any, sure: int) -> None:
    assert GeminiGenerateContent.recognises(payload) == sure


def test_a_piece_of_an_argument_without_its_path_gives_a_call_that_cannot_be_run() -> None:
    piece = {"functionCall": {"name": "f", "partialArgs": [{"stringValue": "Oslo"}]}}
    _, response = stream(chunk(piece, finish="STOP"))
    [call] = response.tool_calls
    assert (call.args, "not a path" in (call.args_error or "")) == (None, True)


def test_a_text_that_is_no_text_is_a_protocol_error_also_at_the_end() -> None:
    with pytest.raises(ProtocolError, match="a piece of text has the wrong type, dict"):
        stream(chunk({"text": {"a": 1}}, finish="STOP"))


# ---------------------------------------------------------------- fields of the wrong type


@pytest.mark.parametrize(
    "value",
    [{}, {"stringValue": 7}, {"stringValue": ["x"]}, {"numberValue": "7"}, {"numberValue": True}, {"boolValue": 1},
     {"boolValue": None}, {"nullValue": 7}],
)  # fmt: skip
def test_a_piece_of_a_call_without_a_readable_value_makes_the_call_unusable(value: JSON) -> None:
    """Left out, the call would be another one, and it would be run."""
    first = {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}}
    piece = {"functionCall": {"partialArgs": [{"jsonPath": "$.b", **value}]}}
    _, response = stream(chunk(first), chunk(piece), chunk(finish="STOP"))
    assert [call.args for call in response.tool_calls] == [None]


def test_a_piece_that_follows_the_end_of_its_call_is_a_contradiction() -> None:
    """The call has been taken for whole; it was not."""
    first = {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}}
    late = {"functionCall": {"partialArgs": [{"jsonPath": "$.b", "stringValue": "y"}]}}
    with pytest.raises(ProtocolError, match="a piece of a call that has ended"):
        stream(chunk(first), chunk(late), chunk(finish="STOP"))


@pytest.mark.parametrize("part", [{"functionCall": 7}, {"functionCall": "f"}, {"text": {"x": 1}}, {"text": 7}])
def test_a_known_field_of_the_wrong_type_is_no_opaque_part(part: JSON) -> None:
    with pytest.raises(ProtocolError):
        answer(part)
    with pytest.raises(ProtocolError):
        stream(chunk(part, finish="STOP"))


def test_a_candidate_whose_number_is_none_is_refused() -> None:
    with pytest.raises(ProtocolError, match="whole number"):
        stream(chunk({"text": "a"}), {"candidates": [{"index": "1", "content": {"parts": [{"text": "b"}]}}]})


def test_an_output_count_that_cannot_be_read_makes_no_smaller_sum() -> None:
    usage = answer({"text": "a"}, usageMetadata={"candidatesTokenCount": 5, "thoughtsTokenCount": "7"}).usage
    assert usage is not None
    assert (usage.output_tokens, usage.reasoning_tokens) == (None, None)


@pytest.mark.parametrize("content", [7, "text", ["a"], {"parts": 7}, {"parts": {"text": "a"}}, {"parts": ["a"]}])
def test_what_would_be_lost_for_its_type_is_a_protocol_error(content: Any) -> None:
    with pytest.raises(ProtocolError):
        wire().decode({"candidates": [{"content": content, "finishReason": "STOP"}]})
