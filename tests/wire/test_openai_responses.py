"""The Responses wire format: what goes out, what every answer means, what may be replayed, and every way a stream can go.

The numbers are sections of docs/wire/openai-responses.md. The fixtures in testdata/openai-responses are read whole and
streamed; the other answers are written out where they are used.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from lessonlib.errors import APIError, IncompleteStream, InvalidRequest, LessonError, ProtocolError
from lessonlib.sse import ServerSentEvent, SSEParser
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
from lessonlib.wire.openai_responses import ENCRYPTED, NAME, OpenAIResponses, ResponsesDecoder, decode_usage

FIXTURES = Path(__file__).parents[2] / "testdata" / NAME
CASES = sorted(folder.name for folder in FIXTURES.iterdir())
STREAMED = [case for case in CASES if (FIXTURES / case / "stream.sse").is_file()]
WHOLE = [case for case in CASES if (FIXTURES / case / "response.json").is_file()]
FAILED = [case for case in CASES if (FIXTURES / case / "error.json").is_file()]
BOTH = [case for case in STREAMED if case in WHOLE]
BROKEN = ["cut", "cut_in_call", "error_flat", "error_midstream", "failed"]

WEATHER = Tool(
    name="get_weather",
    description="Weather of a city",
    strict=True,
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
SQL = Tool(name="run_sql", description="Runs one SQL query", kind="custom", format={"type": "text"})
PICTURE = Image.from_bytes(b"not really a picture", "image/png")
PICTURE_URL = "data:image/png;base64,bm90IHJlYWxseSBhIHBpY3R1cmU="


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def wire(model: str = "gpt-6-astra", **options: Any) -> OpenAIResponses:
    return OpenAIResponses(model, api_key="test-key", **options)


def body(*messages: Message, model: str = "gpt-6-astra", stream: bool = False, **fields: Any) -> JSON:
    return wire(model).encode(Request(messages=list(messages) or "Hello", **fields), stream=stream).body


def items(*messages: Message, **fields: Any) -> list[JSON]:
    return body(*messages, **fields)["input"]


def answer(*output: JSON, status: str = "completed", **fields: Any) -> Response:
    """What is read from a whole answer with these items."""
    return wire().decode(
        {"id": "resp_1", "object": "response", "model": "m", "status": status, "output": list(output), **fields}
    )


def replayed(*output: JSON, answers: Sequence[ToolResult] = (), **fields: Any) -> list[JSON]:
    """The items that go back after an answer with these items, the user's two messages left out."""
    return items(Message.user("?"), answer(*output).message, Message.user(*answers, "go on"), **fields)[1:-1]


def message(text: str = "Hi", **fields: Any) -> JSON:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content, **fields}


def thought(*summary: str, **fields: Any) -> JSON:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": "rs_1", "type": "reasoning", "summary": texts, "encrypted_content": "gAAAA", **fields}


def call(arguments: Any = '{"city":"Oslo"}', call_id: str = "call_1", **fields: Any) -> JSON:
    given = {"id": "fc_1", "type": "function_call", "call_id": call_id, "name": "get_weather", "status": "completed"}
    return {**given, "arguments": arguments, **fields}


def result(content: Any = "12 degrees", call_id: str = "call_1", **fields: Any) -> ToolResult:
    return ToolResult(call_id=call_id, content=content, **fields)


# ---------------------------------------------------------------- reading


def sse(*payloads: Any) -> bytes:
    return b"".join(b"data: " + (p if isinstance(p, bytes) else json.dumps(p).encode()) + b"\n\n" for p in payloads)


def read(data: bytes, size: int | None = None) -> tuple[list[Event], Response]:
    """All events of a stream that arrives in pieces of `size` bytes, and its result. Raises what a client would see."""
    decoder, parser = wire().decoder(), SSEParser()
    events: list[Event] = []
    step = size or max(len(data), 1)
    for start in range(0, len(data), step):
        for event in parser.feed(data[start : start + step]):
            events += decoder.feed(event)
    for event in parser.close():
        events += decoder.feed(event)
    events += decoder.close(parser.stray)
    return events, decoder.result()


def events_of(*payloads: Any) -> tuple[list[Event], Response]:
    return read(sse(*payloads))


def failure(data: bytes) -> LessonError:
    with pytest.raises(LessonError) as caught:
        read(data)
    return caught.value


def failure_of(*payloads: Any) -> LessonError:
    return failure(sse(*payloads))


CREATED: JSON = {
    "type": "response.created",
    "response": {"id": "resp_1", "model": "m", "status": "in_progress", "output": []},
}


def added(item: Any, index: int = 0) -> JSON:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item: Any, index: int = 0) -> JSON:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def text_delta(text: Any, index: int = 0, part: int = 0) -> JSON:
    place = {"item_id": "msg_1", "output_index": index, "content_index": part}
    return {"type": "response.output_text.delta", **place, "delta": text}


def text_done(text: str, index: int = 0, part: int = 0) -> JSON:
    return {"type": "response.output_text.done", "output_index": index, "content_index": part, "text": text}


def args_delta(text: str, index: int = 0) -> JSON:
    return {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": index, "delta": text}


def args_done(text: str, index: int = 0) -> JSON:
    return {"type": "response.function_call_arguments.done", "output_index": index, "arguments": text}


def completed(*output: JSON, **fields: Any) -> JSON:
    response = {"id": "resp_1", "model": "m", "status": "completed", "output": list(output), **fields}
    return {"type": "response.completed", "response": response}


def fixture(case: str, name: str) -> bytes:
    return (FIXTURES / case / name).read_bytes()


def fixture_json(case: str, name: str) -> Any:
    return json.loads(fixture(case, name))


def explained(response: Response | None, error: LessonError | None) -> JSON:
    """The answer in the vocabulary of `expect.json`."""
    line: JSON = {"wire": NAME, "id": None, "model": None, "text": "", "reasoning": "", "tool_calls": [], "stop": None}
    line |= {"raw_stop": None, "usage": None, "error": None}
    if response is not None:
        calls = [
            {"id": c.call_id, "name": c.name, "args": c.args, "args_error": {"$set": True} if c.args_error else None}
            for c in response.tool_calls
        ]
        usage = response.usage
        line |= {"id": response.id, "model": response.model, "text": response.text, "reasoning": response.reasoning}
        line |= {"tool_calls": calls, "raw_stop": response.raw_stop, "stop": str(response.stop) if error is None else None}
        line["usage"] = usage.model_dump(exclude={"raw"}) if usage is not None else None
    if error is not None:
        kind = {APIError: "provider_error", IncompleteStream: "incomplete_stream"}[type(error)]
        kind_and_code = {"type": getattr(error, "type", None), "code": getattr(error, "code", None)}
        line["error"] = {"kind": kind, **kind_and_code, "retryable": error.retryable}
    return line


def outcome(data: bytes, size: int | None = None) -> JSON:
    try:
        return explained(read(data, size)[1], None)
    except LessonError as error:
        return explained(error.partial, error)


# ---------------------------------------------------------------- the fixtures


@pytest.mark.parametrize("case", STREAMED)
def test_a_streamed_fixture_reads_as_expected(case: str) -> None:
    assert outcome(fixture(case, "stream.sse")) == fixture_json(case, "expect.json")


@pytest.mark.parametrize("case", WHOLE)
def test_a_whole_fixture_reads_as_expected(case: str) -> None:
    assert explained(wire().decode(fixture_json(case, "response.json")), None) == fixture_json(case, "expect.json")


@pytest.mark.parametrize("case", FAILED)
def test_an_error_body_reads_as_expected(case: str) -> None:
    meta = fixture_json(case, "meta.json")
    error = wire().decode_error(meta["status"], meta["headers"], fixture(case, "error.json"))
    assert explained(None, error) == fixture_json(case, "expect.json")
    assert error.request_id == meta["headers"]["x-request-id"]


@pytest.mark.parametrize("case", BOTH)
def test_a_stream_folds_into_the_whole_answer(case: str) -> None:
    whole = wire().decode(fixture_json(case, "response.json"))
    assert read(fixture(case, "stream.sse"))[1] == whole


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("case", STREAMED)
def test_the_network_s_pieces_do_not_matter(case: str, size: int) -> None:
    data = fixture(case, "stream.sse")
    assert outcome(data, size) == outcome(data)


@pytest.mark.parametrize("case", BOTH)
def test_deltas_add_up_to_what_the_parts_say(case: str) -> None:
    events, response = read(fixture(case, "stream.sse"))
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == response.text
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == response.reasoning
    arguments = {e.call_id: "" for e in events if isinstance(e, ArgumentsDelta)}
    for event in events:
        if isinstance(event, ArgumentsDelta):
            arguments[event.call_id] += event.text
    spelled = {c.call_id: c.raw_args for c in response.tool_calls if c.kind in ("function", "custom") and c.raw_args}
    assert arguments == spelled
    finished = {e.index: e.part for e in events if isinstance(e, PartDone)}
    assert [finished[index] for index in sorted(finished)] == response.message.parts
    assert events[-1] == Done(response)
    assert sum(isinstance(event, Done) for event in events) == 1


def terminal_end(data: bytes) -> int:
    """How many bytes there are up to the end of the terminal event's data."""
    places = [data.find(b"event: " + name) for name in (b"response.completed\n", b"response.incomplete\n")]
    start = next(place for place in places if place >= 0)
    return data.index(b"\n\n", start)


def cuts(data: bytes) -> Iterable[int]:
    """Every event's end, and a sample of other places, before the terminal event is whole."""
    end = terminal_end(data)
    edges = [place + 2 for place in range(end) if data[place : place + 2] == b"\n\n"]
    return [0, *edges, *random.Random(len(data)).sample(range(end), 60), end - 1]


@pytest.mark.parametrize("case", BOTH)
def test_no_prefix_of_a_stream_is_a_success(case: str) -> None:
    data = fixture(case, "stream.sse")
    for place in cuts(data):
        error = failure(data[:place])
        assert isinstance(error, IncompleteStream), place
        assert error.retryable
    assert outcome(data[: terminal_end(data)])["error"] is None  # the last byte of the data is enough


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_stream_stays_broken_at_every_cut(case: str) -> None:
    data = fixture(case, "stream.sse")
    for place in [*range(0, len(data), 97), len(data)]:
        assert outcome(data[:place])["error"] is not None


def test_what_stands_in_a_fixture_s_request_is_what_is_sent() -> None:
    ask: JSON = {"system": "Answer briefly."}
    requests = {
        "text": Request(messages="When does the harbour open?", **ask),
        "tool_call": Request(messages="What is the weather in Oslo?", tools=[WEATHER], reasoning="low", **ask),
        "custom_call": Request(messages="Which lighthouses are lit?", tools=[SQL], **ask),
        "length": Request(messages="Explain the tides.", max_tokens=16, **ask),
    }
    for case, request in requests.items():
        sent = wire().encode(request, stream=True)
        headers = {name: value for name, value in sent.headers.items() if name != "authorization"}
        recorded = fixture_json(case, "request.json")
        assert recorded == {"method": sent.method, "url": sent.url, "headers": headers, "body": sent.body}
        assert json.loads(sent.content) == recorded["body"]


# ---------------------------------------------------------------- 1 and 2: what is sent


def test_the_smallest_request() -> None:
    sent = wire().encode(Request(messages="Hello", model="some-model"))
    assert (sent.method, sent.url) == ("POST", "https://api.openai.com/v1/responses")
    assert sent.headers == {"content-type": "application/json", "authorization": "Bearer test-key"}
    assert sent.body == {"model": "some-model", "input": [{"role": "user", "content": "Hello"}], "store": False}
    assert b'"store":false' in sent.content


def test_a_stream_is_asked_for_in_the_body() -> None:
    assert body(stream=True)["stream"] is True
    assert "stream" not in body()


def test_settings_come_from_the_environment_by_the_vendor_s_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1/")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-a")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-b")
    sent = OpenAIResponses("m").encode(Request(messages="Hello"))
    assert sent.url == "https://gateway.example/v1/responses"
    assert sent.headers["authorization"] == "Bearer key-from-the-environment"
    assert (sent.headers["openai-organization"], sent.headers["openai-project"]) == ("org-a", "proj-b")
    assert "key-from-the-environment" not in repr(sent)
    named = OpenAIResponses("m", api_key="", organization="org-c", project="").encode(Request(messages="Hello"))
    assert named.headers == {"content-type": "application/json", "openai-organization": "org-c"}


def test_store_is_false_unless_extra_says_otherwise_and_is_always_there() -> None:
    assert body()["store"] is False
    assert body(extra={NAME: {"store": True}})["store"] is True
    assert body(extra={"openai-chat": {"store": True}})["store"] is False


def test_system_prompt_and_output_cap() -> None:
    sent = body(system="Be brief.", max_tokens=64)
    assert (sent["instructions"], sent["max_output_tokens"]) == ("Be brief.", 64)


def test_tools_are_flat() -> None:
    bare = Tool(name="now")
    sent = body(tools=[WEATHER, bare, SQL], parallel=False, tool_choice="required")
    assert sent["tools"] == [
        {"type": "function", "name": "get_weather", "description": "Weather of a city", "parameters": WEATHER.parameters,
         "strict": True},
        {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}},
        {"type": "custom", "name": "run_sql", "description": "Runs one SQL query", "format": {"type": "text"}},
    ]  # fmt: skip
    assert (sent["tool_choice"], sent["parallel_tool_calls"]) == ("required", False)


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("get_weather", {"type": "function", "name": "get_weather"}),
        ("run_sql", {"type": "custom", "name": "run_sql"}),
    ],
)
def test_tool_choice(choice: str, sent: Any) -> None:
    assert body(tools=[WEATHER, SQL], tool_choice=choice)["tool_choice"] == sent


def test_without_tools_nothing_is_said_about_them() -> None:
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body(parallel=False, tool_choice="auto").keys()
    assert not {"tool_choice", "parallel_tool_calls"} & body(tools=[WEATHER]).keys()


def test_effort_comes_with_a_readable_summary() -> None:
    assert body(reasoning="low")["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body(reasoning="none", model="gpt-5.6")["reasoning"] == {"effort": "none"}
    assert "reasoning" not in body()
    assert "reasoning" not in body(reasoning="none", model="gpt-4o")


@pytest.mark.parametrize(
    ("model", "asked", "words"),
    [
        ("gpt-6-astra", 4096, "effort word"),
        ("gpt-6-astra", "none", "always reasons"),
        ("gpt-6-astra", "max", "minimal, low, medium, high, xhigh"),
        ("gpt-4o", "low", "does not reason"),
    ],
)
def test_an_effort_that_the_model_refuses_is_refused_before_sending(model: str, asked: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        body(reasoning=asked, model=model)


def test_an_unknown_model_is_sent_what_was_asked() -> None:
    assert body(reasoning="turbo", model="someone-s-model")["reasoning"]["effort"] == "turbo"


@pytest.mark.parametrize(
    ("model", "fields", "asked"),
    [
        ("gpt-6-astra", {}, True),  # known to reason
        ("gpt-4o", {}, False),  # known not to: it would be a 400
        ("someone-s-model", {}, False),  # no sign that it reasons
        ("someone-s-model", {"reasoning": "low"}, True),
        ("someone-s-model", {"reasoning": "none"}, False),
        ("gpt-6-astra", {"extra": {NAME: {"store": True}}}, False),  # the server keeps it
    ],
)
def test_encrypted_reasoning_is_asked_for_where_it_is_right(model: str, fields: JSON, asked: bool) -> None:
    assert body(model=model, **fields).get("include", []) == ([ENCRYPTED] if asked else [])


def test_encrypted_reasoning_is_asked_for_when_the_history_holds_reasoning() -> None:
    def include(item: JSON) -> Any:
        return body(Message.user("?"), answer(item, message()).message, Message.user("go on"), model="m").get("include")

    assert include(thought()) == [ENCRYPTED]
    assert include(thought(encrypted_content=None)) == [ENCRYPTED]  # it was missed: ask for it now
    assert include(thought(encrypted_content=None, content=[{"type": "reasoning_text", "text": "in the clear"}])) is None


def test_structured_output_is_strict_where_the_schema_allows_it() -> None:
    class_like = {**WEATHER.parameters, "title": "Weather report"}
    assert body(output_schema=class_like)["text"] == {
        "format": {"type": "json_schema", "name": "Weather_report", "schema": class_like, "strict": True}
    }
    nested = {"type": "object", "properties": {"a": {"type": "array", "items": class_like}}, "required": ["a"]}
    closed = {**nested, "additionalProperties": False}
    for schema, strict in [
        (closed, True),
        (nested, False),
        ({**closed, "required": []}, False),
        ({**closed, "properties": {"a": {"type": "integer", "default": 1}}}, False),
        ({**closed, "properties": {"a": {"$ref": "#/$defs/b", "description": "beside"}}}, False),
        ({**closed, "properties": {"a": {"anyOf": [nested, {"type": "null"}]}}}, False),
        ({**closed, "$defs": {"b": {"type": "object"}}}, False),
        ({"type": "array", "items": closed}, False),
    ]:
        format_sent = body(output_schema=schema)["text"]["format"]
        assert (format_sent["strict"], format_sent["name"]) == (strict, "answer"), schema


def test_stop_sequences_are_left_out_with_a_word_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="lessonlib"):
        assert "stop" not in body(stop=["END"])
    assert "no stop sequences" in caplog.text
    assert body(extra={NAME: {"stop": ["END"]}})["stop"] == ["END"]  # for a server that takes them


def test_extra_is_merged_last_and_deep() -> None:
    sent = body(reasoning="low", extra={NAME: {"reasoning": {"summary": None}, "input": [], "truncation": "auto"}})
    assert sent["reasoning"] == {"effort": "low", "summary": None}
    assert (sent["input"], sent["truncation"]) == ([], "auto")


# ---------------------------------------------------------------- the conversation


def test_text_and_pictures_of_the_user() -> None:
    assert items(Message.user("Hello")) == [{"role": "user", "content": "Hello"}]
    url = Image(url="https://harbour.example/a.png")
    assert items(Message.user("Look:", PICTURE, url)) == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look:"},
                {"type": "input_image", "image_url": PICTURE_URL, "detail": "auto"},
                {"type": "input_image", "image_url": "https://harbour.example/a.png", "detail": "auto"},
            ],
        }
    ]


def test_a_history_of_other_origin_is_rebuilt_and_nothing_signed_or_opaque_goes_along() -> None:
    other = "anthropic-messages"
    made = Message.assistant(
        Reasoning(text="secret", wire=other, raw={"type": "thinking", "signature": "s"}),
        Text(text="I will look.", wire=other, raw={"type": "text", "text": "I will look."}),
        Opaque(kind="server_tool_use", wire=other, raw={"type": "server_tool_use"}),
        ToolCall(call_id="toolu_1", name="get_weather", args={"city": "Tromsø"}, wire=other, raw={"type": "tool_use"}),
        ToolCall(call_id="c2", name="run_sql", args={"input": "SELECT 1"}, kind="custom"),
    )
    results = Message.user("Thanks", result("ok", "c2"), result("4 degrees", "toolu_1"))
    assert items(Message.user("?"), made, results) == [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "I will look."},
        {"type": "function_call", "name": "get_weather", "call_id": "toolu_1", "arguments": '{"city":"Tromsø"}'},
        {"type": "custom_tool_call", "name": "run_sql", "call_id": "c2", "input": "SELECT 1"},
        {"type": "function_call_output", "call_id": "toolu_1", "output": "4 degrees"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        {"role": "user", "content": "Thanks"},
    ]


def test_a_picture_that_another_model_made_is_not_lost_silently() -> None:
    sent = items(Message.user("Draw"), Message.assistant("Here:", PICTURE), Message.user("Thanks"))
    assert [item["content"] for item in sent[1:3]] == [
        "Here:",
        "[a picture, which this API cannot be given as the assistant's own]",
    ]


def test_an_unanswered_call_and_an_unasked_result_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="call_1"):
        items(Message.user("?"), answer(call()).message, Message.user("go on"))
    with pytest.raises(InvalidRequest, match="call_9"):
        items(Message.user("?"), answer(message()).message, Message.user(result(call_id="call_9")))


def test_with_server_state_the_messages_are_what_came_after_it() -> None:
    """Section R9: the call is on the server, so its result may come without it."""
    for state in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
        extra = {NAME: {**state, "store": True}}
        assert items(Message.user(result(), "And tomorrow?"), extra=extra) == [
            {"type": "function_call_output", "call_id": "call_1", "output": "12 degrees"},
            {"role": "user", "content": "And tomorrow?"},
        ]
        later = [Message.user(result()), answer(call(call_id="call_2")).message, Message.user(result("ok", "call_2"))]
        assert [item["type"] for item in items(*later, extra=extra)] == [
            "function_call_output",
            "function_call",
            "function_call_output",
        ]
    with pytest.raises(InvalidRequest):
        items(Message.user(result(), "And tomorrow?"))


# ---------------------------------------------------------------- 5: replay


def test_an_answer_goes_back_item_by_item_in_order_with_every_field_that_counts() -> None:
    output = [
        thought("Why", content=[]),
        message("Looking.", phase="commentary", mood="calm"),
        {"id": "cm_1", "type": "program", "call_id": "call_p", "code": "await f()", "fingerprint": "fp"},
        call(namespace="weather", caller={"type": "program", "caller_id": "call_p"}),
    ]
    back = replayed(*output, answers=[result()])
    assert back[:4] == [
        thought("Why", content=[]),
        {key: value for key, value in output[1].items() if key != "status"},
        output[2],
        {key: value for key, value in output[3].items() if key != "status"},
    ]


def test_output_only_fields_and_nulls_do_not_go_back() -> None:
    """Rule 1: the API returns them and refuses them."""
    output = [
        thought(status="completed", content=None),
        message(created_by="someone", parsed={"a": 1}),
        call(parsed_arguments={"city": "Oslo"}, caller=None, namespace=None),
    ]
    output[1]["content"][0] |= {"parsed": {"a": 1}, "logprobs": None}
    back = replayed(*output, answers=[result()])
    assert back[0] == {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    assert back[1] == {"id": "msg_1", "type": "message", "role": "assistant", "content": message()["content"]}
    assert back[2] == {key: value for key, value in call().items() if key != "status"}


def test_nulls_that_mean_something_stay() -> None:
    code: JSON = {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": None, "container_id": "c"}
    search = {"type": "tool_search_call", "execution": "server", "arguments": {"path": None}, "status": "completed"}
    kept = {**code, "outputs": None}
    assert replayed(kept, {**search, "call_id": None}, message()) == [kept, search, replayed(message())[0]]


def test_a_hosted_call_keeps_its_status() -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "a"}}
    assert replayed(search, message())[0] == search


def test_reasoning_that_the_server_cannot_find_goes_with_the_ids_that_hang_on_it() -> None:
    """Rule 3: without the encrypted content and with store false, the id is a 404 and the call's id misses it."""
    lost = thought(encrypted_content=None)
    back = replayed(lost, call(), answers=[result()])
    assert [item["type"] for item in back] == ["function_call", "function_call_output"]
    assert back[0] == {"type": "function_call", "name": "get_weather", "call_id": "call_1", "arguments": '{"city":"Oslo"}'}


def test_what_the_server_did_by_itself_cannot_outlive_its_reasoning() -> None:
    lost = thought(encrypted_content=None)
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "a"}}
    back = replayed(lost, search, message(id="msg_1"), thought(id="rs_2"), message("more", id="msg_2"))
    assert [(item["type"], item.get("id")) for item in back] == [
        ("message", None),
        ("reasoning", "rs_2"),
        ("message", "msg_2"),
    ]


def test_ids_that_input_requires_stay_even_then() -> None:
    lost = thought(encrypted_content=None)
    program = {"id": "cm_1", "type": "program", "call_id": "p", "code": "1", "fingerprint": "fp"}
    assert replayed(lost, program, message())[0] == program


def test_reasoning_in_the_clear_needs_no_encrypted_content() -> None:
    clear = thought(encrypted_content=None, content=[{"type": "reasoning_text", "text": "Hm."}])
    back = replayed(clear, call(), answers=[result()])
    assert [item.get("id") for item in back] == ["rs_1", "fc_1", None]


def test_a_server_that_stores_finds_reasoning_by_its_id() -> None:
    lost = thought(encrypted_content=None)
    back = replayed(lost, call(), answers=[result()], extra={NAME: {"store": True}})
    assert [item.get("id") for item in back] == ["rs_1", "fc_1", None]


def test_reasoning_that_nothing_follows_does_not_go_back() -> None:
    """Rule 4: an answer cut while thinking leaves it behind."""
    cut = answer(thought(), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert items(Message.user("?"), cut.message, Message.user("go on")) == [
        {"role": "user", "content": "?"},
        {"role": "user", "content": "go on"},
    ]
    assert [item["id"] for item in replayed(message(), thought(id="rs_2"))] == ["msg_1"]
    assert [item["id"] for item in replayed(thought(), thought(id="rs_2"), message())] == ["rs_1", "rs_2", "msg_1"]
    cut_call = answer(thought(), call('{"ci', status="incomplete"), status="incomplete")
    assert len(items(Message.user("?"), cut_call.message, Message.user("go on"))) == 2


def test_another_service_s_reasoning_and_ids_stay_behind() -> None:
    """Rule 5: encrypted content is bound to whoever made it."""
    elsewhere = wire("grok-4.3", base_url="https://api.x.ai/v1")
    made = elsewhere.decode({"status": "completed", "output": [thought(), message(), call()]}).message
    history = Request(messages=[Message.user("?"), made, Message.user(result())])
    assert wire().encode(history).body["input"][1:] == [
        {"role": "assistant", "content": "Hi"},
        {"type": "function_call", "name": "get_weather", "call_id": "call_1", "arguments": '{"city":"Oslo"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "12 degrees"},
    ]
    for same in (elsewhere, wire(base_url="http://127.0.0.1:8080/v1")):  # itself, and a host that says nothing
        assert [item.get("id") for item in same.encode(history).body["input"][1:4]] == ["rs_1", "msg_1", "fc_1"]


def test_a_call_that_could_not_be_read_goes_back_as_the_model_wrote_it() -> None:
    back = replayed(call('{"city": Oslo}'), answers=[result("not JSON", is_error=True)])
    assert back[0]["arguments"] == '{"city": Oslo}'
    assert back[1]["output"] == "ERROR: not JSON"


def test_an_empty_custom_input_stays_empty() -> None:
    made = Message.assistant(ToolCall(call_id="call_1", name="run_sql", args={"input": ""}, kind="custom"))
    assert items(Message.user("?"), made, Message.user(result()))[1]["input"] == ""
    assert replayed({**CUSTOM, "input": ""}, answers=[result()])[0]["input"] == ""


def test_a_call_without_id_or_with_an_object_goes_back_as_input_requires() -> None:
    sloppy = {"type": "function_call", "name": "get_weather", "arguments": {"city": "Oslo"}}
    read_call = answer(message(), sloppy).tool_calls[0]
    assert (read_call.call_id, read_call.args) == ("call_1", {"city": "Oslo"})
    back = replayed(message(), sloppy, answers=[result()])
    assert back[1:] == [
        {"type": "function_call", "name": "get_weather", "call_id": "call_1", "arguments": '{"city":"Oslo"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "12 degrees"},
    ]


@pytest.mark.parametrize("case", BOTH)
def test_a_stored_history_is_sent_as_if_it_had_not_been_stored(case: str) -> None:
    made = read(fixture(case, "stream.sse"))[1].message
    answers = [result("ok", c.call_id) for c in made.tool_calls]
    history = [Message.user("?"), made, Message.user(*answers, "go on")]
    assert items(*load_history(dump_history(history))) == items(*history)
    sent = json.dumps(items(*history))
    assert "null" not in sent
    assert "args_error" not in sent


# ---------------------------------------------------------------- 5: results


def output_for(item: JSON, answered: ToolResult) -> JSON:
    """The item that answers this call."""
    return replayed(item, answers=[answered])[-1]


def test_a_result_is_text_or_a_list_once_there_is_a_picture() -> None:
    assert output_for(call(), result("12"))["output"] == "12"
    assert output_for(call(), result([Text(text="1"), Text(text=""), Text(text="2")]))["output"] == "12"
    assert output_for(call(), result([Text(text="Look:"), PICTURE]))["output"] == [
        {"type": "input_text", "text": "Look:"},
        {"type": "input_image", "image_url": PICTURE_URL, "detail": "auto"},
    ]


def test_an_error_can_only_be_said_in_the_text() -> None:
    assert output_for(call(), result("no such city", is_error=True))["output"] == "ERROR: no such city"
    assert output_for(call(), result("ERROR 404", is_error=True))["output"] == "ERROR 404"
    assert output_for(call(), result([PICTURE], is_error=True))["output"][0] == {"type": "input_text", "text": "ERROR:"}


def test_the_caller_is_echoed() -> None:
    caller = {"type": "program", "caller_id": "call_p"}
    assert output_for(call(caller=caller), result()) == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": "12 degrees",
        "caller": caller,
    }


CUSTOM = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_1", "name": "run_sql", "input": '{"not": "parsed"'}
SHELL = {"id": "sh_1", "type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"], "max_output_length": 99}}
LOCAL = {"id": "lsh_1", "type": "local_shell_call", "call_id": "call_1", "action": {"type": "exec", "command": ["ls"]}}
PATCH = {"id": "ap_1", "type": "apply_patch_call", "call_id": "call_1", "operation": {"type": "delete_file", "path": "a"}}
CHECK = {"id": "sc_1", "code": "malicious_instructions", "message": None}
COMPUTER = {
    "id": "cu_1",
    "type": "computer_call",
    "call_id": "call_1",
    "status": "completed",
    "actions": [{"type": "screenshot"}],
    "pending_safety_checks": [CHECK],
}
SEARCH = {"type": "tool_search_call", "execution": "client", "call_id": "call_1", "arguments": {"query": "rates"}}


@pytest.mark.parametrize(
    ("item", "content", "is_error", "sent"),
    [
        (CUSTOM, "3 rows", False, {"type": "custom_tool_call_output", "call_id": "call_1", "output": "3 rows"}),
        (
            SHELL,
            "a.txt",
            False,
            {
                "type": "shell_call_output",
                "call_id": "call_1",
                "output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
                "max_output_length": 99,
            },
        ),
        (
            SHELL,
            "not found",
            True,
            {
                "type": "shell_call_output",
                "call_id": "call_1",
                "output": [{"stdout": "", "stderr": "not found", "outcome": {"type": "exit", "exit_code": 1}}],
                "max_output_length": 99,
            },
        ),
        (
            {**SHELL, "action": {"commands": ["sleep 9"]}},
            '[{"stdout":"","stderr":"","outcome":{"type":"timeout"}}]',
            False,
            {
                "type": "shell_call_output",
                "call_id": "call_1",
                "output": [{"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}],
            },
        ),
        (LOCAL, "a.txt", False, {"type": "local_shell_call_output", "id": "call_1", "output": '"a.txt"'}),
        (LOCAL, '{"stdout":""}', False, {"type": "local_shell_call_output", "id": "call_1", "output": '{"stdout":""}'}),
        (
            PATCH,
            "gone",
            False,
            {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed", "output": "gone"},
        ),
        (
            PATCH,
            "no such file",
            True,
            {"type": "apply_patch_call_output", "call_id": "call_1", "status": "failed", "output": "no such file"},
        ),
        (
            COMPUTER,
            [PICTURE],
            False,
            {
                "type": "computer_call_output",
                "call_id": "call_1",
                "output": {"type": "computer_screenshot", "image_url": PICTURE_URL},
                "acknowledged_safety_checks": [{"id": "sc_1", "code": "malicious_instructions"}],
            },
        ),
        (
            COMPUTER,
            [PICTURE],
            True,  # the tool did not go on, so nothing is acknowledged
            {
                "type": "computer_call_output",
                "call_id": "call_1",
                "output": {"type": "computer_screenshot", "image_url": PICTURE_URL},
            },
        ),
        (
            SEARCH,
            '[{"type":"function","name":"rate"}]',
            False,
            {
                "type": "tool_search_output",
                "call_id": "call_1",
                "execution": "client",
                "status": "completed",
                "tools": [{"type": "function", "name": "rate"}],
            },
        ),
    ],
)
def test_a_result_has_the_kind_of_its_call(item: JSON, content: Any, is_error: bool, sent: JSON) -> None:
    assert output_for(item, result(content, is_error=is_error)) == sent


@pytest.mark.parametrize(("item", "words"), [(COMPUTER, "screenshot"), (SEARCH, "list of tools")])
def test_a_result_that_the_kind_cannot_carry_is_refused(item: JSON, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        output_for(item, result("just text"))


@pytest.mark.parametrize("call_id", ["", "x" * 65, "codex_mcp__calendar.search_events_" + "é" * 40])
@pytest.mark.parametrize("kind", ["function", "custom"])
def test_an_id_that_input_does_not_take_is_replaced_on_call_and_output(call_id: str, kind: str) -> None:
    call = ToolCall(call_id=call_id, name="f", args={"input": "x"}, kind=kind)
    sent, output = body(Message.user("Hi"), Message.assistant(call), Message.user(ToolResult(call_id=call_id)))["input"][1:]
    assert sent["call_id"] == output["call_id"]
    assert 1 <= len(sent["call_id"]) <= 64
    longest = ToolCall(call_id="x" * 64, name="f", args={})
    sent = body(Message.user("Hi"), Message.assistant(longest), Message.user(ToolResult(call_id="x" * 64)))["input"][1]
    assert sent["call_id"] == "x" * 64


@pytest.mark.parametrize(
    ("name", "sent"),
    [("browser.tabs.open", "browser_tabs_open"), ("", "unnamed"), ("a" * 70, "a" * 64), ("get_tide", "get_tide")],
)
def test_a_name_that_the_model_made_up_does_not_spoil_the_history(name: str, sent: str) -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": name, "arguments": "{}", "status": "completed"}
    own = wire().decode({"object": "response", "status": "completed", "output": [item]}).message
    for message in (own, Message.assistant(ToolCall(call_id="c1", name=name, args={}))):
        items = body(Message.user("Hi"), message, Message.user(ToolResult(call_id="c1", content="no such tool")))["input"]
        assert items[1]["name"] == sent


def test_a_call_without_a_name_cannot_be_run() -> None:
    for item in (call(name=None), {**CUSTOM, "name": ""}):
        (made,) = answer(item).tool_calls
        assert (made.args, made.args_error) == (None, "the call has no name")


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "content": 7},
        {"type": "message", "content": [{"type": "output_text", "text": 7}]},
        {"type": "message", "content": [{"text": "Hi"}]},
        {"type": "message", "role": 7, "content": []},
        {"type": "reasoning", "summary": "Hm"},
        {"type": "shell_call", "call_id": "c", "action": "ls"},
        7,
    ],
)
def test_what_would_be_lost_for_its_type_is_a_protocol_error(item: Any) -> None:
    with pytest.raises(ProtocolError):
        answer(item)


def test_no_call_of_an_answer_that_failed_can_be_run() -> None:
    with pytest.raises(APIError) as caught:
        answer(call(), status="failed", error={"code": "server_error", "message": "m"})
    assert caught.value.partial is not None
    assert [made.args for made in caught.value.partial.tool_calls] == [None]


def test_a_hosted_call_of_another_service_is_rebuilt_as_a_whole_function_call() -> None:
    item = {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"}
    answer = OpenAIResponses("m", api_key="k", base_url="https://api.x.ai/v1").decode(
        {"object": "response", "status": "completed", "output": [item]}
    )
    call, output = body(Message.user("Hi"), answer.message, Message.user(ToolResult(call_id="c1", content="a.txt")))[
        "input"
    ][1:]
    assert call == {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"commands":["ls"]}'}
    assert output == {"type": "function_call_output", "call_id": "c1", "output": "a.txt"}


def test_one_call_id_used_in_two_turns_is_answered_by_kind_each_time() -> None:
    sent = items(
        Message.user("?"), answer(CUSTOM).message, Message.user(result()), answer(call()).message, Message.user(result())
    )
    assert [item["type"] for item in sent if "output" in item] == ["custom_tool_call_output", "function_call_output"]


def test_an_approval_is_given_as_an_item_of_its_own() -> None:
    asked = {"id": "mcpr_1", "type": "mcp_approval_request", "name": "f", "arguments": "{}", "server_label": "s"}
    given = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    yes = Opaque(kind="mcp_approval_response", wire=NAME, raw=given)
    assert items(Message.user("?"), answer(asked).message, Message.user(yes, "go on"))[1:] == [
        asked,
        given,
        {"role": "user", "content": "go on"},
    ]


# ---------------------------------------------------------------- 3: items


@pytest.mark.parametrize(
    ("item", "name", "args", "kind"),
    [
        (call(), "get_weather", {"city": "Oslo"}, "function"),
        (call(""), "get_weather", {}, "function"),
        (call(None), "get_weather", {}, "function"),
        (call({"city": "Oslo"}), "get_weather", {"city": "Oslo"}, "function"),
        (call(status="in_progress"), "get_weather", {"city": "Oslo"}, "function"),  # a program's calls come so
        (CUSTOM, "run_sql", {"input": '{"not": "parsed"'}, "custom"),
        (SHELL, "shell", {"commands": ["ls"], "max_output_length": 99}, "shell"),
        ({**SHELL, "environment": {"type": "local"}}, "shell", {"commands": ["ls"], "max_output_length": 99}, "shell"),
        (LOCAL, "local_shell", {"type": "exec", "command": ["ls"]}, "local_shell"),
        (PATCH, "apply_patch", {"type": "delete_file", "path": "a"}, "apply_patch"),
        (
            COMPUTER,
            "computer",
            {"actions": [{"type": "screenshot"}], "pending_safety_checks": [CHECK]},
            "computer",
        ),
        (SEARCH, "tool_search", {"query": "rates"}, "tool_search"),
    ],
)
def test_calls_for_the_client(item: JSON, name: str, args: JSON, kind: str) -> None:
    read_answer = answer(item)
    (made,) = read_answer.tool_calls
    assert (made.call_id, made.name, made.args, made.kind, made.raw) == ("call_1", name, args, kind, item)
    assert read_answer.stop is StopReason.TOOL_USE


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call_output", "call_id": "x", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "x", "output": "1"},
        {"type": "web_search_call", "status": "completed"},
        {"type": "file_search_call", "queries": ["a"], "results": None},
        {"type": "code_interpreter_call", "code": "1"},
        {"type": "image_generation_call", "result": "aGk="},
        {"type": "computer_call_output", "call_id": "x"},
        {"type": "local_shell_call_output", "id": "x", "output": "{}"},
        {"type": "shell_call_output", "call_id": "x", "output": []},
        {"type": "apply_patch_call_output", "call_id": "x", "status": "completed"},
        {**SHELL, "environment": {"type": "container_reference", "container_id": "c"}},
        {**SHELL, "environment": {"type": "container_auto"}},
        {"type": "mcp_list_tools", "tools": []},
        {"type": "mcp_call", "name": "f", "arguments": "{}", "output": "1"},
        {"type": "mcp_approval_response", "approve": True},
        {"type": "program", "call_id": "p", "code": "1", "fingerprint": "f"},
        {"type": "program_output", "call_id": "p", "result": "1"},
        {"type": "tool_search_call", "execution": "server", "call_id": None, "arguments": {}},
        {"type": "tool_search_call", "arguments": {}},
        {"type": "tool_search_output", "tools": []},
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"type": "compaction", "encrypted_content": "gAAAA"},
        {"type": "x_search_call", "call_id": "", "name": "x_semantic_search"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "compacted"}]},
        {"no": "type"},
    ],
    ids=lambda item: item.get("type", "none"),
)
def test_what_the_server_did_and_what_nobody_knows_is_opaque_and_goes_back(item: JSON) -> None:
    read_answer = answer(item, message())
    assert read_answer.message.parts[0] == Opaque(kind=item.get("type", "unknown"), wire=NAME, service="openai", raw=item)
    assert (read_answer.text, read_answer.tool_calls, read_answer.stop) == ("Hi", [], StopReason.END)


def test_text_is_what_a_person_sees() -> None:
    parts = [
        {"type": "output_text", "text": "One "},
        {"type": "hologram", "text": "?"},
        {"type": "refusal", "refusal": "no"},
        {"type": "output_text", "text": None},
        None,
    ]
    assert answer(message(content=parts)).text == "One no"
    assert answer(message(content="as a string")).text == "as a string"
    assert answer(message(content=None)).text == ""
    assert answer(message(role=None)).text == "Hi"


def test_reasoning_is_its_summary_and_what_is_open_of_it() -> None:
    clear = [{"type": "reasoning_text", "text": "open"}]
    assert answer(thought("a", "b"), message()).reasoning == "ab"
    assert answer(thought(content=clear), message()).reasoning == "open"
    assert answer({"type": "reasoning", "summary": None, "content": None}, message()).reasoning == ""


def test_a_call_with_bad_arguments_is_there_but_cannot_be_run() -> None:
    for arguments in ('{"city": Oslo}', "[1]", '"text"', 7):
        made = answer(call(arguments)).tool_calls[0]
        assert made.args is None
        assert made.args_error
    assert answer(call('{"city": Oslo}')).tool_calls[0].raw_args == '{"city": Oslo}'


def test_a_call_that_says_it_is_incomplete_can_never_be_run() -> None:
    for arguments in ('{"city":"Oslo"}', {"city": "Oslo"}):
        made = answer(call(arguments, status="incomplete")).tool_calls[0]
        assert (made.args, made.raw, made.raw_args) == (None, None, '{"city":"Oslo"}')
        assert made.args_error


@pytest.mark.parametrize("status", ["incomplete", "in_progress", "queued", "cancelled"])
def test_in_an_unfinished_answer_only_a_completed_call_is_whole(status: str) -> None:
    cut = answer(call(), call(call_id="call_2", status="in_progress"), CUSTOM | {"call_id": "call_3"}, status=status)
    assert [made.args is not None for made in cut.tool_calls] == [True, False, False]


def test_a_call_whose_result_stands_beside_it_was_run_by_the_server() -> None:
    ran = answer(call(), {"type": "function_call_output", "call_id": "call_1", "output": "1"}, message())
    assert [part.type for part in ran.message.parts] == ["opaque", "opaque", "text"]
    assert ran.stop is StopReason.END


@pytest.mark.parametrize(
    ("output", "fields", "stop", "raw_stop"),
    [
        ([message()], {}, "end", "completed"),
        ([message(), call()], {}, "tool_use", "completed"),
        ([message(content=[{"type": "refusal", "refusal": "No."}])], {}, "refusal", "completed"),
        ([message(content=[{"type": "refusal", "refusal": "No."}]), call()], {}, "refusal", "completed"),
        ([{"type": "mcp_approval_request", "id": "m"}], {}, "other", "completed"),
        ([message()], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length",
         "max_output_tokens"),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refusal", "content_filter"),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "other", "steered"),
        ([], {"status": "incomplete", "incomplete_details": None}, "other", "incomplete"),
        ([], {"status": "queued"}, "other", "queued"),
        ([message()], {"status": "in_progress"}, "other", "in_progress"),
        ([message()], {"status": "cancelled"}, "other", "cancelled"),
        ([message()], {"status": "brewing"}, "other", "brewing"),
        ([message()], {"status": None}, "other", None),
    ],
)  # fmt: skip
def test_stop_reasons(output: list[JSON], fields: JSON, stop: str, raw_stop: str | None) -> None:
    read_answer = answer(*output, **fields)
    assert (read_answer.stop, read_answer.raw_stop) == (stop, raw_stop)


def test_an_answer_without_output_yet_is_an_answer() -> None:
    waiting = wire().decode({"object": "response", "id": "resp_1", "status": "queued", "output": None})
    assert (waiting.id, waiting.stop, waiting.message.parts) == ("resp_1", StopReason.OTHER, [])


@pytest.mark.parametrize("payload", [{}, {"choices": []}, [], "text", None, {"status": "completed"}])
def test_something_else_is_a_protocol_error(payload: Any) -> None:
    with pytest.raises(ProtocolError, match="not a Responses answer"):
        wire().decode(payload)


# ---------------------------------------------------------------- 6: usage


def test_usage_is_taken_as_it_is_and_not_reported_is_not_zero() -> None:
    full = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 900, "cache_write_tokens": 64},
        "output_tokens": 90,
        "output_tokens_details": {"reasoning_tokens": 70},
        "total_tokens": 1090,
    }
    usage = decode_usage(full)
    assert usage is not None
    assert usage.model_dump(exclude={"raw"}) == {
        "input_tokens": 1000,
        "output_tokens": 90,
        "cached_tokens": 900,
        "cache_write_tokens": 64,
        "reasoning_tokens": 70,
    }
    assert usage.raw == full
    bare = decode_usage({"input_tokens": 3, "output_tokens": 1, "input_tokens_details": None})
    assert bare is not None
    assert (bare.input_tokens, bare.cached_tokens, bare.cache_write_tokens, bare.reasoning_tokens) == (3, None, None, None)
    assert decode_usage(None) is None
    assert decode_usage({}) is None


def test_a_total_shows_reasoning_that_was_counted_apart() -> None:
    counts = {"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 7}}
    apart, inside = decode_usage({**counts, "total_tokens": 22}), decode_usage({**counts, "total_tokens": 15})
    assert apart is not None
    assert inside is not None
    assert (apart.output_tokens, inside.output_tokens) == (12, 5)


# ---------------------------------------------------------------- 7: errors


@pytest.mark.parametrize(
    ("status", "error", "retryable"),
    [
        (400, {"type": "invalid_request_error", "code": "context_length_exceeded"}, False),
        (401, {"type": "invalid_request_error", "code": "invalid_api_key"}, False),
        (403, {"type": "permission_error"}, False),
        (404, {"code": "model_not_found"}, False),
        (408, {}, True),
        (409, {}, True),
        (413, {}, False),
        (422, {}, False),
        (429, {"type": "tokens", "code": "rate_limit_exceeded"}, True),
        (429, {"type": "rate_limit_error", "code": "slow_down"}, True),
        (429, {"type": "insufficient_quota", "code": "credit_balance_exhausted"}, False),
        (429, {"type": None, "code": "insufficient_quota"}, False),
        (429, {"type": "insufficient_quota", "code": None}, False),
        (429, {"code": "project_spend_limit_exceeded"}, False),
        (429, {"type": "usage_limit_reached"}, False),
        (500, {"type": "server_error"}, True),
        (500, {"code": "context_length_exceeded"}, False),  # a gateway's mapping
        (501, {}, False),
        (503, {"code": "server_is_overloaded"}, True),
    ],
)
def test_which_http_errors_a_retry_can_help(status: int, error: JSON, retryable: bool) -> None:
    told = wire().decode_error(status, {}, json.dumps({"error": {"message": "m", **error}}).encode())
    assert (told.retryable, told.status, told.message) == (retryable, status, "m")
    assert (told.type, told.code) == (error.get("type"), error.get("code"))


@pytest.mark.parametrize(
    ("error", "retryable", "refusal"),
    [
        ({"code": "rate_limit_exceeded", "type": "tokens"}, True, False),
        ({"code": "server_error"}, True, False),
        ({"type": "server_error", "code": None}, True, False),
        ({"code": "server_is_overloaded"}, True, False),
        ({"code": "slow_down"}, True, False),
        ({"code": 503}, True, False),
        ({"code": "502"}, True, False),
        ({"code": 400}, False, False),
        ({"code": "context_length_exceeded"}, False, False),
        ({"code": "insufficient_quota"}, False, False),
        ({"code": "rate_limit_exceeded", "type": "insufficient_quota"}, False, False),
        ({"code": "usage_not_included"}, False, False),
        ({"code": "invalid_prompt"}, False, False),
        ({"code": "bio_policy"}, False, True),
        ({"code": "something_new"}, False, False),
        ({}, False, False),
    ],
)
def test_which_errors_inside_a_stream_a_retry_can_help(error: JSON, retryable: bool, refusal: bool) -> None:
    told = failure_of(CREATED, {"type": "error", "error": {"message": "m", **error}})
    assert isinstance(told, APIError)
    assert (told.retryable, told.refusal, told.status, told.message) == (retryable, refusal, 200, "m")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "t", "code": "c", "message": "m", "param": None}},
        {"type": "error", "code": "c", "message": "m", "param": None, "sequence_number": 3},
        {
            "type": "response.failed",
            "response": {"id": "resp_1", "status": "failed", "error": {"code": "c", "message": "m"}},
        },
        {
            "type": "response.failed",
            "response": {"status": "failed", "output": None},
            "error": {"code": "c", "message": "m"},
        },
        {"type": "response.failed", "error": {"code": "c", "message": "m"}},  # Perplexity
        {"type": "response.completed", "response": {"status": "failed", "error": {"code": "c", "message": "m"}}},
        {"error": {"code": "c", "message": "m"}},  # a proxy's, without a type
    ],
)
def test_every_shape_of_error_event(event: JSON) -> None:
    told = failure_of(CREATED, added(message()), text_delta("Half"), event)
    assert isinstance(told, APIError)
    assert (told.code, told.message) == ("c", "m")
    assert told.partial is not None
    assert (told.partial.id, told.partial.text) == ("resp_1", "Half")


@pytest.mark.parametrize(
    "payload",
    [
        {"error": {"code": "c", "message": "m"}},
        {"object": "response", "id": "resp_1", "status": "failed", "error": {"code": "c", "message": "m"}, "output": []},
        {"type": "error", "code": "c", "message": "m"},
    ],
)
def test_an_error_in_a_whole_body_with_status_200(payload: JSON) -> None:
    with pytest.raises(APIError) as caught:
        wire().decode(payload)
    assert (caught.value.code, caught.value.message, caught.value.status) == ("c", "m", 200)


def test_a_failed_answer_keeps_what_had_arrived() -> None:
    with pytest.raises(APIError) as caught:
        answer(message("Half"), status="failed", error={"code": "server_error", "message": "m"})
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Half"
    assert str(failure_of(CREATED, {"type": "response.failed", "response": {"status": "failed"}})).endswith(
        "no reason was given"
    )


def test_an_error_object_that_says_nothing_is_no_error() -> None:
    assert answer(message(), error={"message": "", "code": None}).text == "Hi"


@pytest.mark.parametrize(
    ("body_sent", "words"),
    [
        (b'{"detail": "Could not parse your token."}', "Could not parse your token."),
        (b'{"error": "no such model"}', "no such model"),
        (b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (b"", "HTTP 502 without a body"),
    ],
)
def test_error_bodies_of_gateways(body_sent: bytes, words: str) -> None:
    assert wire().decode_error(502, {}, body_sent).message == words


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        ({"headers": {"Retry-After": "3"}}, 3.0),
        ({"headers": {"retry-after": "9", "retry-after-ms": "250"}}, 0.25),
        ({"message": "Rate limit reached. Please try again in 6.57s."}, 6.57),
        ({"message": "Please try again in 634ms."}, 0.634),
        ({"message": "Please try again in 1m6.5s. Visit https://harbour.example"}, 66.5),
        ({"message": "Please try again in 2h0m1s."}, 7201.0),
        ({"message": "Please try again in a while."}, None),
        ({"headers": {"retry-after": "-1"}}, None),
    ],
)
def test_the_wait_that_an_error_inside_a_stream_asks_for(error: JSON, wait: float | None) -> None:
    told = failure_of(CREATED, {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "m", **error}})
    assert told.retry_after == (None if wait is None else pytest.approx(wait))


def test_the_header_beats_the_words() -> None:
    words = json.dumps({"error": {"message": "Please try again in 20s.", "code": "rate_limit_exceeded"}}).encode()
    assert wire().decode_error(429, {"Retry-After-Ms": "1500"}, words).retry_after == 1.5
    assert wire().decode_error(429, {}, words).retry_after == 20.0


# ---------------------------------------------------------------- 4: the stream


def test_text_arrives_piece_by_piece_and_a_part_is_done_once() -> None:
    events, response = events_of(
        CREATED, added(message("")), text_delta("H"), text_delta(""), text_delta("i"), text_done("Hi"), done(message()),
        completed(message()),
    )  # fmt: skip
    assert events == [TextDelta(0, "H"), TextDelta(0, "i"), PartDone(0, response.message.parts[0]), Done(response)]
    assert (response.text, response.stop, response.id, response.model) == ("Hi", StopReason.END, "resp_1", "m")


def test_interleaved_items_are_told_apart_by_index_not_by_id() -> None:
    one, two = call('{"city":"Oslo"}'), call('{"city":"Bodø"}', "call_2", id="fc_2")
    pieces = [args_delta('{"city":', 1), args_delta('{"city":', 0), args_delta('"Bodø"}', 1), args_delta('"Oslo"}', 0)]
    for piece in pieces:
        piece["item_id"] = "changes every time"
    events, response = events_of(
        CREATED, added(call("")), added({**two, "arguments": ""}, 1), *pieces, done(two, 1), done(one), completed(one, two)
    )
    assert [made.args for made in response.tool_calls] == [{"city": "Oslo"}, {"city": "Bodø"}]
    assert [event.call_id for event in events if isinstance(event, ArgumentsDelta)] == [
        "call_2",
        "call_1",
        "call_2",
        "call_1",
    ]
    assert [event.index for event in events if isinstance(event, PartDone)] == [1, 0]


def test_refusal_and_reasoning_and_custom_input_are_streamed_too() -> None:
    place = {"output_index": 1, "content_index": 0}
    refused = message(content=[{"type": "refusal", "refusal": "No."}])
    summary = {"output_index": 0, "summary_index": 0}
    events, response = events_of(
        CREATED,
        added(thought()),
        {"type": "response.reasoning_summary_text.delta", **summary, "delta": "Hm"},
        {"type": "response.reasoning_summary_text.delta", **summary, "summary_index": 1, "delta": "Well"},
        done(thought("Hm", "Well")),
        added(message(content=[]), 1),
        {"type": "response.refusal.delta", **place, "delta": "No"},
        {"type": "response.refusal.delta", **place, "delta": "."},
        {"type": "response.refusal.done", **place, "refusal": "No."},
        done(refused, 1),
        added({**CUSTOM, "input": ""}, 2),
        {"type": "response.custom_tool_call_input.delta", "output_index": 2, "delta": '{"not": '},
        {"type": "response.custom_tool_call_input.delta", "output_index": 2, "delta": '"parsed"'},
        {"type": "response.custom_tool_call_input.done", "output_index": 2, "input": CUSTOM["input"]},
        done(CUSTOM, 2),
        completed(thought("Hm", "Well"), refused, CUSTOM),
    )
    assert [event for event in events if not isinstance(event, (PartDone, Done))] == [
        ReasoningDelta(0, "Hm"),
        ReasoningDelta(0, "Well"),
        TextDelta(1, "No"),
        TextDelta(1, "."),
        ArgumentsDelta(2, "call_1", '{"not": '),
        ArgumentsDelta(2, "call_1", '"parsed"'),
    ]
    assert (response.reasoning, response.text, response.stop) == ("HmWell", "No.", StopReason.REFUSAL)


def test_open_reasoning_is_streamed_as_reasoning() -> None:
    clear = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    events, response = events_of(
        CREATED,
        added({**clear, "content": []}),
        {"type": "response.reasoning_part.added", "output_index": 0},  # Bedrock's own event
        {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "Hm."},
        {"type": "response.reasoning_text.done", "output_index": 0, "content_index": 0, "text": "Hm."},
        done(clear),
        completed(clear),
    )
    assert events[0] == ReasoningDelta(0, "Hm.")
    assert response.reasoning == "Hm."


def test_encrypted_content_comes_from_the_item_s_own_done_event() -> None:
    """Rule 7: the added event's may be incomplete, and the terminal event's is another one."""
    events, response = events_of(
        CREATED, added(thought(encrypted_content="gA")), done(thought(encrypted_content="gAAAA whole")), done(message(), 1),
        completed(thought(encrypted_content="gAAAA other"), message()),
    )  # fmt: skip
    assert response.message.parts[0].raw == thought(encrypted_content="gAAAA whole")
    assert response.raw["output"][0]["encrypted_content"] == "gAAAA whole"
    assert events[-1] == Done(response)


@pytest.mark.parametrize("output", [[], None, "nothing", [None]])
def test_an_empty_final_output_is_recovered_from_the_items(output: Any) -> None:
    final = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": output}}
    _, response = events_of(CREATED, done(thought()), added(message(""), 1), text_delta("Hi", 1), done(message(), 1), final)
    assert (response.text, len(response.message.parts), response.stop) == ("Hi", 2, StopReason.END)


def test_items_that_were_only_in_the_terminal_event_are_read() -> None:
    events, response = events_of(CREATED, done(thought("Why")), completed(thought("Why"), message("Late"), call()))
    assert (response.text, response.stop) == ("Late", StopReason.TOOL_USE)
    shown = [event for event in events if isinstance(event, (TextDelta, ArgumentsDelta))]
    assert shown == [TextDelta(1, "Late"), ArgumentsDelta(2, "call_1", '{"city":"Oslo"}')]
    assert [event.index for event in events if isinstance(event, PartDone)] == [0, 1, 2]


def test_an_item_that_is_open_at_the_end_is_taken_from_the_terminal_event() -> None:
    for ids in ({}, {"id": "another id"}):  # some servers change ids from event to event
        events, response = events_of(
            CREATED, added(thought(**ids)), added(message("", **ids), 3), text_delta("H", 3),
            completed(thought("Why"), message("Hi there")),
        )  # fmt: skip
        assert (response.text, response.reasoning, len(response.message.parts)) == ("Hi there", "Why", 2)
        assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta(3, "H"), TextDelta(3, "i there")]


def test_an_item_that_is_open_at_the_end_and_nowhere_else_is_kept_but_never_run() -> None:
    for terminal in ("completed", "incomplete"):
        final = {"status": terminal, "output": [], "incomplete_details": {"reason": "max_output_tokens"}}
        events, response = events_of(
            CREATED, added(message("")), text_delta("Half"), added(call(""), 1), args_delta('{"city":"Oslo"}', 1),
            added({"type": "web_search_call", "id": "ws_1"}, 2), {"type": f"response.{terminal}", "response": final},
        )  # fmt: skip
        assert response.text == "Half"
        assert response.tool_calls[0].args is None
        assert response.tool_calls[0].raw_args == '{"city":"Oslo"}'
        assert all(part.raw is None for part in response.message.parts)
        assert [type(event) for event in events[-4:]] == [PartDone, PartDone, PartDone, Done]
        assert items(Message.user("?"), response.message, Message.user("go on"))[1] == {
            "role": "assistant",
            "content": "Half",
        }


def test_incomplete_is_an_answer_with_its_reason() -> None:
    for reason, stop in [("max_output_tokens", "length"), ("content_filter", "refusal"), ("steered", "other")]:
        final = {
            "status": "incomplete",
            "incomplete_details": {"reason": reason},
            "output": [],
            "usage": {"output_tokens": 9},
        }
        _, response = events_of(CREATED, done(message("Half")), {"type": "response.incomplete", "response": final})
        assert (response.text, response.stop, response.raw_stop) == ("Half", stop, reason)
        assert response.usage is not None
        assert response.usage.output_tokens == 9


def test_a_complete_call_in_an_incomplete_answer_is_whole() -> None:
    final = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    _, response = events_of(
        CREATED, done(call()), done(call('{"ci', "call_2", status="incomplete"), 1), done(CUSTOM | {"call_id": "call_3"}, 2),
        {"type": "response.incomplete", "response": final},
    )  # fmt: skip
    assert [made.args is not None for made in response.tool_calls] == [True, False, False]
    assert response.stop is StopReason.LENGTH


@pytest.mark.parametrize(
    "start",
    [
        [],
        [{"type": "response.queued", "response": {"id": "resp_1", "status": "queued"}}, CREATED],
        [{"type": "keepalive", "sequence_number": 0}, CREATED],
        [CREATED, CREATED, {"type": "response.in_progress", "response": {"id": "resp_1"}}],
        [{"type": "response.future", "anything": 1}, CREATED],
    ],
)
def test_ways_to_begin(start: list[JSON]) -> None:
    _, response = events_of(*start, added(message("")), text_delta("Hi"), done(message()), completed(message()))
    assert (response.text, response.id) == ("Hi", "resp_1")


def test_the_terminal_event_may_be_the_only_one() -> None:
    _, response = events_of(completed(message(), usage={"input_tokens": 1, "output_tokens": 2}))
    assert (response.text, response.stop) == ("Hi", StopReason.END)


def test_what_the_terminal_event_leaves_out_is_known_from_the_snapshots() -> None:
    _, response = events_of(CREATED, done(message()), {"type": "response.completed", "response": {"usage": None}})
    assert (response.id, response.model, response.stop, response.raw_stop) == ("resp_1", "m", StopReason.END, "completed")
    _, bare = events_of(CREATED, done(message()), {"type": "response.incomplete"})
    assert (bare.id, bare.raw_stop, bare.stop) == ("resp_1", "incomplete", StopReason.OTHER)


def test_the_status_in_the_terminal_event_counts_not_its_name() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    _, response = events_of(CREATED, done(message()), {"type": "response.completed", "response": cut})
    assert response.stop is StopReason.LENGTH


def test_progress_keepalives_unknown_events_and_null_items_are_passed_over() -> None:
    decoder = wire().decoder()
    for payload in (
        CREATED,
        {"type": "keepalive", "sequence_number": 1},
        added(None, 0),
        {"type": "response.web_search_call.searching", "output_index": 1},
        {"type": "response.shell_call_command.delta", "output_index": 1, "command_index": 0, "delta": "ls"},
        {"type": "response.audio.delta", "delta": "AAAA"},
        {"type": "response.reasoning.started", "thought": "hm"},
        done(None, 0),
    ):
        assert list(decoder.feed(ServerSentEvent("message", json.dumps(payload).encode()))) == []
    assert decoder.ignored == {"response.reasoning.started": 1}
    assert not decoder.done


def test_the_table_knows_every_event_that_the_official_package_knows() -> None:
    events = pytest.importorskip("openai.types.responses.response_stream_event", reason="the extra `sdk` is not installed")
    kinds = get_args(get_args(events.ResponseStreamEvent)[0])
    documented = {get_args(kind.model_fields["type"].annotation)[0] for kind in kinds}
    assert set(ResponsesDecoder.TABLE["OPEN"]) == documented | {"keepalive"}
    assert set(ResponsesDecoder.TABLE["WAIT"]) <= set(ResponsesDecoder.TABLE["OPEN"])


def test_after_the_first_terminal_event_nothing_is_read() -> None:
    for tail in (
        [completed(message("other"))],
        [{"type": "response.failed", "response": {"error": {"code": "c"}}}],
        [added(message(), 0)],
        [b"[DONE]"],
        [b"not JSON"],
    ):
        events, response = events_of(CREATED, done(message()), completed(message()), *tail)
        assert response.text == "Hi"
        assert sum(isinstance(event, Done) for event in events) == 1


def test_an_error_followed_by_failed_is_one_error() -> None:
    decoder = wire().decoder()
    error = {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "first"}}
    with pytest.raises(APIError, match="first"):
        decoder.feed(ServerSentEvent("error", json.dumps(error).encode()))
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "second"}}}
    assert list(decoder.feed(ServerSentEvent("message", json.dumps(failed).encode()))) == []
    assert list(decoder.close()) == []
    assert not decoder.done


def test_done_is_accepted_never_required_and_never_success() -> None:
    whole = sse(CREATED, done(message()), completed(message()))
    assert read(whole)[1] == read(whole + sse(b"[DONE]"))[1]
    error = failure_of(CREATED, done(message()), b"[DONE]", completed(message()))
    assert isinstance(error, IncompleteStream)
    assert isinstance(failure_of(b"[DONE]"), IncompleteStream)


def test_an_empty_body_and_a_body_of_comments_are_no_answer() -> None:
    for data in (b"", b": keep-alive\n\n: keep-alive\n\n", sse({"type": "keepalive"})):
        error = failure(data)
        assert isinstance(error, IncompleteStream)
        assert error.partial is None


def test_whole_looking_arguments_in_a_cut_stream_are_no_call() -> None:
    error = failure_of(CREATED, added(call("")), args_delta('{"city":"Oslo"}'))
    assert error.partial is not None
    assert (error.partial.tool_calls[0].args, error.partial.tool_calls[0].raw) == (None, None)


@pytest.mark.parametrize(
    ("payloads", "words"),
    [
        ([text_delta("Hi")], "state WAIT"),
        ([args_done("{}")], "state WAIT"),
        ([CREATED, text_delta("Hi")], "never added"),
        ([CREATED, added(message("")), text_delta("Hi", 5)], "never added"),
        ([CREATED, added(message("")), {"type": "response.output_text.delta", "delta": "Hi"}], "never added"),
        ([CREATED, added(message("")), added(message(""))], "added twice"),
        ([CREATED, done(message()), added(message(""))], "added twice"),
        ([CREATED, added(call("")), text_delta("prose")], "which is a function_call"),
        ([CREATED, added(message("")), args_delta("{}")], "which is a message"),
        ([CREATED, added(message("")), text_delta({"not": "text"})], "wrong type"),
        ([CREATED, added(message("")), {"type": "response.output_text.delta", "output_index": 0}], "lacks a field"),
        ([CREATED, ["a", "list"]], "lacks a field"),
        ([CREATED, b'{"type": "response.comp'], "not JSON"),
    ],
)
def test_streams_that_contradict_themselves(payloads: list[Any], words: str) -> None:
    error = failure_of(*payloads, completed())
    assert isinstance(error, ProtocolError)
    assert words in str(error)


@pytest.mark.parametrize(
    "payloads",
    [
        [added(message("")), text_delta("Hello"), text_done("Goodbye")],
        [added(message("")), text_delta("Hello"), text_done("")],
        [added(call("")), args_delta('{"gate":4}'), args_done('{"gate":5}')],
        [added(call("")), args_delta('{"city":"Oslo"}'), done(call('{"city":"Rome"}'))],
        [added({**CUSTOM, "input": ""}), {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "a"},
         {"type": "response.custom_tool_call_input.done", "output_index": 0, "input": "b"}],
        [added(message("")), text_delta("Hello"), done(message("Goodbye"))],
        # begins alike and goes on differently: only the item could have settled it, and it does not
        [added(message("")), text_delta("It is"), text_delta(" 6."), text_done("It is 7."), done(message("It is 6."))],
        [added(message("")), text_delta("It is"), text_delta(" 6."), text_done("It is 7.")],
        [added(thought()), {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm"},
         {"type": "response.reasoning_summary_text.done", "output_index": 0, "text": "Well"}],
    ],
)  # fmt: skip
def test_a_whole_text_that_contradicts_its_deltas_is_a_protocol_error(payloads: list[JSON]) -> None:
    assert isinstance(failure_of(CREATED, *payloads, completed()), ProtocolError)


@pytest.mark.parametrize(
    ("start", "pieces", "whole"),
    [
        (message(""), [text_delta("Hello"), text_delta(" you")], text_done("Goodbye")),
        (call(""), [args_delta('{"gate":'), args_delta("4}")], args_done('{"gate":5}')),
    ],
)
def test_another_beginning_or_other_arguments_are_refused_at_once(start: JSON, pieces: list[JSON], whole: JSON) -> None:
    """Whatever the item would say: a person has read the one, or a tool would be run with the other."""
    decoder = wire().decoder()
    for payload in (CREATED, added(start), *pieces):
        decoder.feed(ServerSentEvent("message", json.dumps(payload).encode()))
    with pytest.raises(ProtocolError, match="contradicts"):
        decoder.feed(ServerSentEvent("message", json.dumps(whole).encode()))
    assert decoder.state == "FAILED"


def test_two_whole_copies_that_agree_are_believed_against_shortened_deltas() -> None:
    whole = "It is six, and the harbour is open."
    events, response = events_of(
        CREATED, added(message("")), text_delta("It is six"), text_delta("."), text_done(whole), done(message(whole)),
        completed(message(whole)),
    )  # fmt: skip
    assert response.text == whole
    assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta(0, "It is six"), TextDelta(0, ".")]


@pytest.mark.parametrize(
    ("pieces", "spelled"),
    [
        (['{"city": ', '"Oslo"}'], '{"city":"Oslo"}'),  # written anew, with other spaces
        (["{}"], "{ }"),
    ],
)
def test_arguments_that_mean_the_same_are_no_contradiction(pieces: list[str], spelled: str) -> None:
    for last in ([args_done(spelled), done(call(spelled))], [done(call(spelled))]):
        _, response = events_of(CREATED, added(call("")), *map(args_delta, pieces), *last, completed())
        assert response.tool_calls[0].raw_args == spelled


@pytest.mark.parametrize(
    ("payloads", "deltas"),
    [
        ([text_done("Hi"), done(message())], ["Hi"]),  # no deltas at all
        ([text_delta("H"), text_done("Hi"), done(message())], ["H", "i"]),
        ([text_delta("H"), done(message())], ["H", "i"]),
        ([done(message())], ["Hi"]),
        ([text_delta("H"), text_delta("i"), done(message(content=[]))], ["H", "i"]),  # an item that forgot its text
        ([text_delta("H", part=1), text_delta("i", part=1), text_done("Hi", part=1), done(message())], ["H", "i"]),
        ([text_delta("Hi\n"), done(message())], ["Hi\n"]),  # trimmed at the end
        ([text_delta("Hi"), done(message()), text_delta("late"), text_done("late"), done(message())], ["Hi"]),
    ],
)
def test_what_was_not_streamed_is_shown_when_it_is_known(payloads: list[JSON], deltas: list[str]) -> None:
    events, response = events_of(CREATED, added(message("")), *payloads, completed(message()))
    assert response.text == "Hi"
    assert [event.text for event in events if isinstance(event, TextDelta)] == deltas


def test_an_item_that_forgot_its_arguments_has_those_that_were_streamed() -> None:
    _, response = events_of(
        CREATED, added(call("")), args_delta('{"city":'), args_delta('"Oslo"}'), done(call("")), completed()
    )
    assert response.tool_calls[0].args == {"city": "Oslo"}
    assert response.message.parts[0].raw == call('{"city":"Oslo"}')


def test_arguments_that_come_as_an_object_at_the_end_are_compared_too() -> None:
    pieces = [CREATED, added(call("")), args_delta('{"city": "Oslo"}')]
    _, response = events_of(*pieces, done(call({"city": "Oslo"})), completed())
    assert response.tool_calls[0].args == {"city": "Oslo"}
    assert isinstance(failure_of(*pieces, done(call({"city": "Rome"})), completed()), ProtocolError)


def test_a_second_done_for_an_item_replaces_the_first() -> None:
    events, response = events_of(
        CREATED, done(thought("Why")), done(thought("Why", encrypted_content="new")), done(message(), 1), completed()
    )
    assert response.message.parts[0].raw == thought("Why", encrypted_content="new")
    assert [event.index for event in events if isinstance(event, PartDone)] == [0, 1]


def test_a_call_without_any_deltas_is_whole() -> None:
    events, response = events_of(CREATED, added(call("")), args_done('{"city":"Oslo"}'), done(call()), completed(call()))
    assert response.tool_calls[0].args == {"city": "Oslo"}
    assert events[0] == ArgumentsDelta(0, "call_1", '{"city":"Oslo"}')


def test_servers_that_leave_the_index_out_are_read_by_id() -> None:
    def bare(payload: JSON) -> JSON:
        return {key: value for key, value in payload.items() if key not in ("output_index", "content_index")}

    two = call(id=None)
    _, response = events_of(
        CREATED,
        bare(added(message(""))), bare(text_delta("Hi")), bare(done(message())),
        bare(added(call("", id=None))), {**bare(args_delta('{"city":"Oslo"}')), "item_id": "call_1"}, bare(done(two)),
        completed(message(), two),
    )  # fmt: skip
    assert (response.text, [made.args for made in response.tool_calls]) == ("Hi", [{"city": "Oslo"}])


def test_the_event_line_is_not_needed_and_the_type_in_the_data_wins() -> None:
    data = sse(CREATED, done(message()), completed(message()))
    named = data.replace(b"data: ", b"event: something.else\ndata:")
    assert read(named)[1] == read(data)[1]
    lines = [(json.loads(line[6:]), line) for line in data.split(b"\n\n") if line]
    typeless = b"".join(
        b"event: %s\ndata: %s\n\n" % (payload.pop("type").encode(), json.dumps(payload).encode()) for payload, _ in lines
    )
    assert read(typeless)[1] == read(data)[1]


def test_two_hundred_items_take_no_more_than_their_share() -> None:
    """Items missing from the stream are matched by id, not by trying each against each."""
    many = [call("{}", f"call_{number}", id=f"fc_{number}") for number in range(200)]
    _, response = events_of(CREATED, *(added(item, place) for place, item in enumerate(many)), completed(*many))
    assert [made.call_id for made in response.tool_calls] == [f"call_{number}" for number in range(200)]


# ---------------------------------------------------------------- captures


@pytest.mark.parametrize(
    ("payload", "sure"),
    [
        (CREATED, 2),
        ({"type": "response.anything"}, 2),
        ({"object": "response", "status": "completed"}, 2),
        ({"type": "error", "sequence_number": 2, "error": {"message": "m"}}, 2),
        ({"type": "error", "code": "c", "message": "m", "param": None}, 2),
        ({"type": "error", "error": {"message": "m", "code": None}}, 2),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, 1),  # Anthropic's
        ({"type": "keepalive"}, 1),
        ({"status": "completed", "output": []}, 1),
        ({"error": {"message": "m", "type": "t", "param": None, "code": None}}, 1),  # Chat Completions has the same
        ({"type": "message_start"}, 0),
        ({"choices": []}, 0),
        ({"candidates": []}, 0),
        ([], 0),
    ],
)
def test_captures_are_recognised(payload: Any, sure: int) -> None:
    assert OpenAIResponses.recognises(payload) == sure


def test_an_item_whose_type_is_no_text_is_kept_and_sent_back_as_it_came() -> None:
    odd = {"type": ["later"], "id": {"a": 1}, "call_id": [], "data": 1}
    response = wire().decode({"id": "r", "status": "completed", "output": [odd]})
    body = wire().encode(Request(messages=[Message.user("q"), response.message, Message.user("go on")])).body
    assert odd in body["input"]


# ---------------------------------------------------------------- copies that contradict each other


@pytest.mark.parametrize("index", ["1", True, 1.5])
def test_an_item_whose_place_is_no_number_is_refused_and_what_was_shown_is_attached(index: Any) -> None:
    error = failure_of(CREATED, added(message("")), text_delta("Hello"), added(message(""), index))
    assert isinstance(error, ProtocolError)
    assert error.partial is not None
    assert error.partial.text == "Hello"


@pytest.mark.parametrize("change", [{"name": "delete_all"}, {"arguments": '{"city":"Rome"}'}, {"type": "custom_tool_call"}])
def test_a_call_that_the_terminal_event_tells_otherwise_is_not_run(change: JSON) -> None:
    error = failure_of(CREATED, added(call("")), done(call()), completed({**call(), **change}))
    assert isinstance(error, ProtocolError)
    assert [made.args for made in error.partial.tool_calls] == [None] if error.partial else False


def test_a_call_that_the_terminal_event_writes_with_other_spaces_is_the_same() -> None:
    _, response = events_of(CREATED, added(call("")), done(call()), completed(call('{ "city": "Oslo" }')))
    assert [made.args for made in response.tool_calls] == [{"city": "Oslo"}]


@pytest.mark.parametrize("change", [{"type": "reasoning"}, {"role": "user"}])
def test_an_item_that_is_done_as_another_thing_than_it_was_added_is_refused(change: JSON) -> None:
    error = failure_of(CREATED, added(message("")), text_delta("Hi"), done({**message("Hi"), **change}), completed())
    assert isinstance(error, ProtocolError)


def test_a_completed_response_that_leaves_out_an_item_which_was_begun_is_refused() -> None:
    shown = [added(message("")), text_delta("Hi"), added({**message(""), "id": "msg_2"}, 1), done(message("Hi"))]
    assert isinstance(failure_of(CREATED, *shown, completed(message("Hi"))), ProtocolError)


def test_text_of_an_item_of_an_unknown_type_is_not_shown() -> None:
    """The answer would not hold it: what the item is, only its vendor knows."""
    item = {"id": "msg_1", "type": "hologram"}
    events, response = events_of(CREATED, added(item), text_delta("Hi"), done(item), completed(item))
    assert [event for event in events if isinstance(event, TextDelta)] == []
    assert [part.type for part in response.message.parts] == ["opaque"]


def test_text_of_a_message_that_is_not_the_models_is_not_shown_however_it_comes() -> None:
    """In pieces, whole in an event of its own, or only with the item (a find of the fuzzer)."""
    item = {**message("Hi"), "role": "user"}
    whole = {"type": "response.output_text.done", "output_index": 0, "content_index": 5, "text": "Hi"}
    empty = added({**message(""), "role": "user"})
    for pieces in ([text_delta("Hi")], [whole], []):
        events, response = events_of(CREATED, empty, *pieces, done(item), completed(item))
        assert [event for event in events if isinstance(event, TextDelta)] == []
        assert response.text == ""


@pytest.mark.parametrize("second", [message("Bye"), call(), {"type": "hologram"}])
def test_an_item_that_is_done_twice_says_the_same_twice(second: JSON) -> None:
    """What was shown would be in no answer."""
    error = failure_of(CREATED, added(message("")), text_delta("Hi"), done(message("Hi")), done(second), completed())
    assert isinstance(error, ProtocolError)
    assert error.partial is not None
    assert error.partial.text == "Hi"
