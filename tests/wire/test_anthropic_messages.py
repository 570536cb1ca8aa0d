"""The Messages wire format: what it sends, what it reads whole and streamed, what goes back.

Rules and their sources: docs/wire/anthropic.md. Fixtures: testdata/anthropic-messages, invented, in the API's own framing.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lessonlib.errors import APIError, IncompleteStream, InvalidRequest, LessonError, ProtocolError
from lessonlib.history import OPENING
from lessonlib.sse import ServerSentEvent, SSEParser
from lessonlib.types import (
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
    ToolCall,
    ToolResult,
    dump_history,
    load_history,
)
from lessonlib.wire.anthropic_messages import (
    BUDGETS,
    DEFAULT_MAX_TOKENS,
    NO_MESSAGE,
    NO_PICTURE,
    STOP,
    AnthropicMessages,
    MessagesDecoder,
    decode_usage,
)

TESTDATA = Path(__file__).parents[2] / "testdata" / "anthropic-messages"
CASES = sorted(path.name for path in TESTDATA.iterdir())
STREAMS = [case for case in CASES if (TESTDATA / case / "stream.sse").exists()]
WHOLES = [case for case in CASES if (TESTDATA / case / "response.json").exists()]
ERRORS = [case for case in CASES if (TESTDATA / case / "error.json").exists()]
COMPLETE = [case for case in STREAMS if case not in ("cut", "cut_in_call", "error_midstream")]
COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")

NEW = "claude-opus-5-5"  # thinks by itself, refuses a forced choice and a prefill
TOMORROW = "claude-of-tomorrow"  # not listed, so the vendor decides
OLD = "claude-sonnet-4-5"  # takes a thinking budget, a forced choice and a prefill


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


# ---------------------------------------------------------------- helpers


def wire(model: str = NEW, **options: Any) -> AnthropicMessages:
    return AnthropicMessages(model, api_key="sk-test-key", **options)


def fixture_bytes(case: str, name: str) -> bytes:
    return (TESTDATA / case / name).read_bytes()


def fixture(case: str, name: str) -> Any:
    return json.loads(fixture_bytes(case, name))


def feed(body: bytes, chunk: int | None = None, **options: Any) -> Iterator[Event]:
    """The events of a stream that ends cleanly after `body`."""
    parser, decoder = SSEParser(), wire(**options).decoder()
    step = chunk or len(body) or 1
    for start in range(0, len(body), step):
        for sse in parser.feed(body[start : start + step]):
            yield from decoder.feed(sse)
    for sse in parser.close():
        yield from decoder.feed(sse)
    yield from decoder.close(parser.stray)


def collect(body: bytes, chunk: int | None = None, **options: Any) -> Response:
    last = list(feed(body, chunk, **options))[-1]
    assert isinstance(last, Done)
    return last.response


def failure(body: bytes, **options: Any) -> LessonError:
    with pytest.raises(LessonError) as caught:
        list(feed(body, **options))
    return caught.value


def stream(*payloads: Any) -> bytes:
    """Payloads in the API's framing; bytes are put in as they are."""
    frames = [
        payload if isinstance(payload, bytes) else f"event: {payload['type']}\ndata: {json.dumps(payload)}\n\n".encode()
        for payload in payloads
    ]
    return b"".join(frames)


def message_start(**fields: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": NEW, "content": [], "stop_reason": None}
    usage = {"input_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 90, "output_tokens": 1}
    return {"type": "message_start", "message": {**message, "usage": usage, **fields}}


def block_start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def block_stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message_delta(stop: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}


STOPPED = {"type": "message_stop"}


def end(stop: str = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    return [message_delta(stop, **(usage or {"output_tokens": 4})), STOPPED]


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    start = block_start(index, type="text", text="")
    return [start, *(delta(index, type="text_delta", text=piece) for piece in pieces), block_stop(index)]


def call(
    index: int, *pieces: str, kind: str = "tool_use", given: Any = None, call_id: str = "toolu_1"
) -> list[dict[str, Any]]:
    start = block_start(index, type=kind, id=call_id, name="get_weather", input={} if given is None else given)
    return [start, *(delta(index, type="input_json_delta", partial_json=piece) for piece in pieces), block_stop(index)]


def body_of(request: Request, model: str = NEW) -> dict[str, Any]:
    """The request body as it goes over the wire, so that it is JSON for certain."""
    body: dict[str, Any] = json.loads(wire(model).encode(request).content)
    return body


def sent(*messages: Message, model: str = OLD) -> list[dict[str, Any]]:
    """The `messages` list of a request."""
    listed: list[dict[str, Any]] = body_of(Request(messages=list(messages)), model)["messages"]
    return listed


def own(*blocks: dict[str, Any], stop: str = "end_turn") -> Message:
    """An assistant message as this wire format decodes it, after a round trip through storage."""
    whole = {"type": "message", "id": "m", "role": "assistant", "content": list(blocks), "stop_reason": stop}
    return load_history(dump_history([wire().decode(whole).message]))[0]


def seen(response: Response | None, error: LessonError | None = None) -> dict[str, Any]:
    """A result in the words of the expect.json files."""
    line: dict[str, Any] = dict.fromkeys(("id", "model", "stop", "raw_stop", "usage"))
    line |= {"wire": "anthropic-messages", "text": "", "reasoning": "", "tool_calls": [], "error": None}
    if response is not None:
        line |= {name: getattr(response, name) for name in ("id", "model", "text", "reasoning", "raw_stop")}
        line["stop"] = None if error else response.stop.value
        line["tool_calls"] = [
            {"id": each.call_id, "name": each.name, "args": each.args, "args_error": each.args_error}
            for each in response.tool_calls
        ]
        if response.usage is not None:
            line["usage"] = {name: getattr(response.usage, name) for name in COUNTS}
    if error is not None:
        kind = {APIError: "provider_error", IncompleteStream: "incomplete_stream"}.get(type(error), "protocol_error")
        words = {"type": getattr(error, "type", None), "code": getattr(error, "code", None)}
        line["error"] = {"kind": kind, **words, "retryable": error.retryable}
    return line


def expectation(case: str) -> dict[str, Any]:
    """What must be read. The number of opaque parts is for the contract suite."""
    return {key: value for key, value in fixture(case, "expect.json").items() if key != "opaque_min"}


def matches(expected: Any, actual: Any) -> bool:
    """Equality, with `{"$contains": text}` for a part of a text."""
    if isinstance(expected, dict):
        if "$contains" in expected:
            return isinstance(actual, str) and expected["$contains"] in actual
        return isinstance(actual, dict) and expected.keys() == actual.keys() and all(
            matches(expected[key], actual[key]) for key in expected
        )  # fmt: skip
    if isinstance(expected, list):
        return isinstance(actual, list) and len(expected) == len(actual) and all(map(matches, expected, actual))
    return bool(expected == actual)


def read(case: str, chunk: int | None = None) -> dict[str, Any]:
    try:
        return seen(collect(fixture_bytes(case, "stream.sse"), chunk))
    except LessonError as error:
        return seen(error.partial, error)


def outcome(body: bytes) -> tuple[list[Event], LessonError | None]:
    """The events of a stream, and the error that ended it."""
    events: list[Event] = []
    try:
        events.extend(feed(body))
    except LessonError as error:
        return events, error
    return events, None


# ---------------------------------------------------------------- fixtures


def test_every_case_that_all_wire_formats_share_is_there() -> None:
    shared = {
        "text", "tool_call", "parallel_calls", "no_argument_call", "invalid_arguments", "reasoning", "server_tool",
        "refusal", "length", "length_in_call", "cut", "cut_in_call", "error_midstream", "unknown", "pause",
        "rate_limit", "overloaded", "bad_request", "unicode",
    }  # fmt: skip
    assert shared <= set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_request_of_a_fixture_is_what_the_encoder_writes(case: str) -> None:
    asked, expected = fixture(case, "ask.json"), fixture(case, "request.json")
    encoded = wire().encode(Request.model_validate(asked["request"]), stream=asked["stream"])
    headers = {name: value for name, value in encoded.headers.items() if name != "x-api-key"}
    assert [encoded.method, encoded.url, headers] == [expected[name] for name in ("method", "url", "headers")]
    assert list(json.loads(encoded.content).items()) == list(expected["body"].items())


@pytest.mark.parametrize("case", STREAMS)
@pytest.mark.parametrize("chunk", [None, 1, 2, 3, 7, 1400])
def test_a_stream_is_read_as_expected_however_the_network_cut_it(case: str, chunk: int | None) -> None:
    expected, actual = expectation(case), read(case, chunk)
    assert matches(expected, actual), (expected, actual)


@pytest.mark.parametrize("case", WHOLES)
def test_a_whole_answer_is_read_as_expected(case: str) -> None:
    expected, actual = expectation(case), seen(wire().decode(fixture(case, "response.json")))
    assert matches(expected, actual), (expected, actual)


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_body_is_read_as_expected(case: str) -> None:
    meta = fixture(case, "meta.json")
    error = wire().decode_error(meta["status"], meta["headers"], fixture_bytes(case, "error.json"))
    assert seen(None, error) == expectation(case)
    assert error.status == meta["status"]
    assert error.request_id == meta["headers"]["request-id"]


@pytest.mark.parametrize("case", WHOLES)
def test_a_stream_folds_into_the_whole_answer(case: str) -> None:
    """The same parts, stop, usage, and the very same JSON."""
    whole = wire().decode(fixture(case, "response.json"))
    assert collect(fixture_bytes(case, "stream.sse")) == whole


@pytest.mark.parametrize("case", COMPLETE)
def test_the_events_of_a_stream_tell_the_same_as_its_response(case: str) -> None:
    events = list(feed(fixture_bytes(case, "stream.sse")))
    assert [type(event) for event in events].count(Done) == 1
    last = events[-1]
    assert isinstance(last, Done)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == last.response.text
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == last.response.reasoning
    parts = {event.index: event.part for event in events if isinstance(event, PartDone)}  # a later one replaces an earlier
    assert [parts[index] for index in sorted(parts)] == last.response.message.parts


@pytest.mark.parametrize("case", STREAMS)
def test_no_prefix_that_ends_before_the_last_byte_of_message_stop_is_a_success(case: str) -> None:
    body = fixture_bytes(case, "stream.sse")
    marker = body.rfind(b'data: {"type":"message_stop"')
    complete = body.find(b"}", marker) + 1 if marker >= 0 else len(body) + 1
    for size in range(len(body) + 1):
        events, error = outcome(body[:size])
        assert (size >= complete) == any(isinstance(event, Done) for event in events)
        assert size >= complete or isinstance(error, (IncompleteStream, APIError))


@pytest.mark.parametrize("case", COMPLETE)
def test_an_answer_goes_back_as_it_came(case: str) -> None:
    """Every block of its own, unknown fields and all, without nulls and blank text; a cut call stays behind."""
    response = collect(fixture_bytes(case, "stream.sse"))
    history = load_history(dump_history([Message.user("Hello"), response.message]))
    answers = [ToolResult(call_id=each.call_id, content="ok") for each in response.tool_calls if each.args is not None]
    back = sent(*history, Message.user(*(answers or ["Go on."])))[1]
    expected = [
        {key: value for key, value in block.items() if value is not None}
        for block in response.raw["content"]
        if not isinstance(block.get("input"), str)
    ]
    assert back == {"role": "assistant", "content": expected}


# ---------------------------------------------------------------- the state machine


def test_blocks_of_all_kinds_in_one_stream() -> None:
    body = stream(
        message_start(),
        block_start(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="Short"),
        delta(0, type="thinking_delta", thinking="."),
        delta(0, type="signature_delta", signature="SIG-1"),
        block_stop(0),
        block_start(1, type="redacted_thinking", data="BLOB-2"),
        block_stop(1),
        *call(2, '{"a":1,', '"b":2}'),
        *end("tool_use"),
    )
    assert collect(body).raw["content"] == [
        {"type": "thinking", "thinking": "Short.", "signature": "SIG-1"},
        {"type": "redacted_thinking", "data": "BLOB-2"},
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"a": 1, "b": 2}},
    ]


def test_pieces_are_events_and_empty_pieces_are_not() -> None:
    body = stream(message_start(), *text(0, "", "a", ""), *call(1, "", "{}"), *end("tool_use"))
    events = list(feed(body))
    response = events[-1].response if isinstance(events[-1], Done) else None
    assert response is not None
    assert events == [
        TextDelta(0, "a"),
        PartDone(0, response.message.parts[0]),
        ArgumentsDelta(1, "toolu_1", "{}"),
        PartDone(1, response.message.parts[1]),
        Done(response),
    ]


def test_what_a_block_start_holds_is_shown_and_kept() -> None:
    body = stream(
        message_start(),
        block_start(0, type="text", text="Good "),
        delta(0, type="text_delta", text="day"),
        block_stop(0),
        block_start(1, type="thinking", thinking="Hm", signature="S"),
        block_stop(1),
        *end(),
    )
    events = list(feed(body))
    assert events[:2] == [TextDelta(0, "Good "), TextDelta(0, "day")]
    assert ReasoningDelta(1, "Hm") in events
    assert collect(body).text == "Good day"


@pytest.mark.parametrize("pieces", [(), ("",), (" ", "\n")])
def test_blank_argument_text_leaves_the_input_of_the_block_start(pieces: tuple[str, ...]) -> None:
    """Gateways put the whole input into the start and send no delta."""
    body = stream(message_start(), *call(0, *pieces, given={"city": "Oslo"}), *end("tool_use"))
    assert collect(body).tool_calls[0].args == {"city": "Oslo"}


def test_argument_text_replaces_the_input_of_the_block_start() -> None:
    body = stream(message_start(), *call(0, '{"city": "Lima"}', given={"city": "Oslo"}), *end("tool_use"))
    assert collect(body).tool_calls[0].args == {"city": "Lima"}


@pytest.mark.parametrize("pieces", [(), ("",), ("{}",), (" ",)])
@pytest.mark.parametrize("given", [{}, [], ""])
def test_a_tool_without_parameters_has_the_arguments_of_an_empty_object(pieces: tuple[str, ...], given: Any) -> None:
    body = stream(message_start(), *call(0, *pieces, given=given), *end("tool_use"))
    assert collect(body).tool_calls[0].args == {}


@pytest.mark.parametrize("written", ['{"city": Oslo}', "[1]", '"Oslo"', "null", '{"a": NaN}', '{"a": 1}{"b": 2}'])
def test_arguments_that_are_no_object_reach_the_caller_as_text(written: str) -> None:
    """The answer is whole and delivered; the call cannot be run, and nobody repairs it."""
    response = collect(stream(message_start(), *call(0, written), *text(1, "Well."), *end("tool_use")))
    (bad,) = response.tool_calls
    assert [bad.call_id, bad.name, bad.args, bad.raw_args] == ["toolu_1", "get_weather", None, written]
    assert bad.args_error
    assert wire().decode(response.raw) == response  # decoded again, it is no runnable call either


def test_messages_deltas_are_merged_field_by_field() -> None:
    body = stream(
        message_start(
            usage={"input_tokens": 7, "cache_read_input_tokens": 90, "output_tokens": 1, "service_tier": "standard"}
        ),
        *text(0, "No."),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "container": {"id": "container_1"}},
            "usage": {"input_tokens": 3120, "output_tokens": 4, "cache_read_input_tokens": None},
            "context_management": {"applied_edits": []},
        },
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 5}},
        STOPPED,
    )
    response = collect(body)
    assert response.raw_stop == "end_turn"
    assert response.raw["container"] == {"id": "container_1"}
    assert response.raw["context_management"] == {"applied_edits": []}
    assert response.raw["usage"] == {
        "input_tokens": 3120, "cache_read_input_tokens": 90, "output_tokens": 5, "service_tier": "standard",
    }  # fmt: skip
    assert response.usage is not None
    assert [response.usage.input_tokens, response.usage.output_tokens, response.usage.cached_tokens] == [3210, 5, 90]


@pytest.mark.parametrize(("later", "counts"), [
    ({"input_tokens": 0}, [97, 4, 90]),
    ({"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}, [97, 4, 90]),
    ({"input_tokens": 97, "cache_read_input_tokens": 0}, [97, 4, 0]),
    ({"input_tokens": 0, "cache_read_input_tokens": 97}, [97, 4, 97]),
])  # fmt: skip
def test_zeros_for_all_input_are_no_count(later: dict[str, Any], counts: list[int]) -> None:
    """envoyproxy/ai-gateway#1631: "typically input_tokens=0, which overwrites the correct count"."""
    first = message_start(usage={"input_tokens": 7, "cache_read_input_tokens": 90, "output_tokens": 1})
    last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {**later, "output_tokens": 4}}
    usage = collect(stream(first, *text(0, "Hi"), last, STOPPED)).usage
    assert usage is not None
    assert [usage.input_tokens, usage.output_tokens, usage.cached_tokens] == counts


def test_usage_that_nobody_reported_is_none() -> None:
    body = stream(
        message_start(usage=None), *text(0, "Hi"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, STOPPED
    )
    assert collect(body).usage is None
    for nothing in (None, {}, [], "none"):
        assert wire().decode({"type": "message", "content": [], "usage": nothing}).usage is None


def test_blocks_are_ordered_by_index_even_with_gaps() -> None:
    body = stream(message_start(), *text(4, "b"), *text(2, "a"), *end())
    assert collect(body).text == "ab"


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([message_start(), message_start()], "message_start"),
        ([block_start(0, type="text", text="")], "state WAIT"),
        ([message_start(), delta(0, type="text_delta", text="x")], "not open"),
        ([message_start(), *text(0, "x"), delta(0, type="text_delta", text="y")], "not open"),
        ([message_start(), *text(0, "x"), block_start(0, type="text", text="")], "starts twice"),
        ([message_start(), block_stop(0)], "not open"),
        ([message_start(), *text(0, "x"), block_stop(0)], "not open"),
        ([message_start(), *text(0), *end()[:1], *text(1, "x")], "state ENDING"),
        ([message_start(), block_start(0, type="text", text=""), *end()], "block 0 was open"),
        ([message_start(), *text(0), *end(), STOPPED], "state DONE"),
        ([message_start(), *text(0), *end(), {"type": "error", "error": {"type": "api_error"}}], "state DONE"),
        ([message_start(), *text(0), *end(), message_start()], "state DONE"),
        ([message_start(), *call(0)[:1], delta(0, type="text_delta", text="Moment, ")], "text_delta for content block 0"),
        ([message_start(), *text(0)[:1], delta(0, type="input_json_delta", partial_json="{")], "which is text"),
        ([message_start(), *text(0)[:1], delta(0, type="thinking_delta", thinking="x")], "which is text"),
        ([message_start(), block_start(0, type="server_tool_use"), delta(0, type="text_delta", text="x")], "text_delta"),
        ([message_start(), {"type": "content_block_start", "index": 0}], "lacks a field"),
        ([message_start(), {"type": "content_block_start", "index": 0, "content_block": None}], "lacks a field"),
        ([{"type": "message_start"}], "lacks a field"),
        ([message_start(), b'data: {"type": "content_block_sta\n\n'], "not JSON"),
        ([message_start(), b"data: [1]\n\n"], "lacks a field"),
        ([message_start(), b"data: null\n\n"], "lacks a field"),
    ],
)  # fmt: skip
def test_a_stream_that_contradicts_itself_is_a_protocol_error(events: list[Any], words: str) -> None:
    error = failure(stream(*events))
    assert isinstance(error, ProtocolError)
    assert words in str(error)
    assert not error.retryable


def test_a_protocol_error_carries_what_had_arrived() -> None:
    error = failure(stream(message_start(), *text(0, "The harbour"), block_start(0, type="text", text="")))
    assert error.partial is not None
    assert error.partial.text == "The harbour"


def test_after_a_failure_nothing_more_is_read() -> None:
    parser, decoder = SSEParser(), wire().decoder()
    (first,) = parser.feed(stream({"type": "error", "error": {"type": "api_error", "message": "no"}}))
    with pytest.raises(APIError):
        decoder.feed(first)
    assert [list(decoder.feed(event)) for event in parser.feed(stream(message_start(), *text(0, "x")))] == [[]] * 4
    assert list(decoder.close()) == []
    assert not decoder.done
    with pytest.raises(IncompleteStream):
        decoder.result()


def test_pings_come_anywhere() -> None:
    ping = {"type": "ping"}
    body = stream(ping, message_start(), ping, text(0)[0], ping, *text(0, "a")[1:], ping, end()[0], ping, STOPPED, ping)
    assert collect(body).text == "a"


def test_the_data_decides_what_an_event_is_and_the_name_only_where_it_says_nothing() -> None:
    frames = [f"data: {json.dumps(payload)}\n\n".encode() for payload in (message_start(), *text(0, "a"), *end())]
    assert collect(b"".join(frames)).text == "a"
    nameless = stream(message_start(), *text(0, "a"), end()[0], b"event: message_stop\ndata: {}\n\n")
    assert collect(nameless).text == "a"
    misnamed = stream(message_start(), *text(0, "a"), end()[0]).replace(b"event: content_block_delta", b"event: ping")
    assert collect(misnamed + stream(STOPPED)).text == "a"


def test_an_end_marker_of_a_gateway_is_ignored_after_the_end_and_is_no_end_before_it() -> None:
    whole = stream(message_start(), *text(0, "a"), *end())
    assert collect(whole + b"data: [DONE]\n\n").text == "a"
    error = failure(stream(message_start(), *text(0, "a"), end()[0]) + b"data: [DONE]\n\n")
    assert isinstance(error, IncompleteStream)


def test_events_without_data_to_speak_of_are_ignored() -> None:
    body = stream(message_start(), b"data:\n\n", b": comment\n\n", *text(0, "a"), b"event: ping\ndata: \n\n", *end())
    assert collect(body).text == "a"


def test_a_missing_message_stop_is_incomplete_unless_the_wire_is_told_of_such_a_gateway() -> None:
    body = stream(message_start(), *text(0, "a"), *call(1, "{}"), message_delta("tool_use", output_tokens=3))
    error = failure(body)
    assert isinstance(error, IncompleteStream)
    assert error.retryable
    response = collect(body, message_stop_required=False)
    assert [response.text, response.stop, len(response.tool_calls)] == ["a", StopReason.TOOL_USE, 1]
    cut = stream(message_start(), *text(0, "a"))
    assert isinstance(failure(cut, message_stop_required=False), IncompleteStream)
    stray = body + b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n'
    assert isinstance(failure(stray, message_stop_required=False), APIError)


def test_message_stop_without_a_stop_reason_event_is_incomplete() -> None:
    assert isinstance(failure(stream(message_start(), *text(0, "a"), STOPPED)), IncompleteStream)


def test_an_empty_stream_is_incomplete_and_has_nothing_to_show() -> None:
    error = failure(b"\n")
    assert isinstance(error, IncompleteStream)
    assert error.partial is None


def test_an_error_event_ends_the_stream_with_what_had_arrived() -> None:
    error = failure(
        stream(
            message_start(),
            *text(0, "Hal", "f")[:-1],
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}, "request_id": "req_1"},
        )
    )
    assert isinstance(error, APIError)
    assert [error.status, error.type, error.message, error.retryable] == [200, "overloaded_error", "busy", True]
    assert error.request_id == "req_1"
    assert error.partial is not None
    assert [error.partial.text, error.partial.stop] == ["Half", StopReason.OTHER]


@pytest.mark.parametrize(
    ("frame", "retryable"),
    [
        (b'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"m"}}\n\n', True),
        (b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"m"}}\n\n', True),
        (b'event: error\ndata: {"type":"error","error":{"type":"timeout_error","message":"m"}}\n\n', True),
        (b'event: error\ndata: {"type":"error","error":{"type":"invalid_request_error","message":"m"}}\n\n', False),
        (b'event: error\ndata: {"error":{"type":"invalid_request_error","message":"m"}}\n\n', False),
        (b'data: {"error":{"type":"api_error","code":"enforced_spend_limit_reached","message":"m"}}\n\n', False),
        (b'data: {"error":{"message":"m"}}\n\n', True),
        (b'data: {"error":"m"}\n\n', True),
        (b"event: error\ndata: m\n\n", True),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}\n', True),
    ],
)
def test_errors_inside_a_stream_in_every_form_that_services_and_gateways_send(frame: bytes, retryable: bool) -> None:
    error = failure(stream(message_start(), *text(0, "a")) + frame)
    assert isinstance(error, APIError)
    assert [error.message, error.retryable, error.status] == ["m", retryable, 200]


def test_unknown_events_deltas_blocks_and_stop_reasons_pass() -> None:
    body = stream(
        message_start(),
        {"type": "message_progress", "percent": 40},
        text(0)[0],
        delta(0, type="confidence_delta", value=0.7),
        *text(0, "a")[1:],
        block_start(1, type="hologram", payload={"x": 1}),
        block_stop(1),
        block_start(2, type="sketch"),
        delta(2, type="text_delta", text="not "),
        delta(2, type="text_delta", text="shown"),
        block_stop(2),
        {"type": "message_delta", "delta": {"stop_reason": "brand_new"}, "usage": {}},
        STOPPED,
    )
    parser, decoder = SSEParser(), wire().decoder()
    events = [event for sse in parser.feed(body) for event in decoder.feed(sse)]
    response = decoder.result()
    assert decoder.ignored == {"message_progress": 1, "confidence_delta": 1}
    assert [response.text, response.stop, response.raw_stop] == ["a", StopReason.OTHER, "brand_new"]
    assert response.message.parts[1:] == [
        Opaque(kind="hologram", wire="anthropic-messages", raw={"type": "hologram", "payload": {"x": 1}}),
        Opaque(kind="sketch", wire="anthropic-messages", raw={"type": "sketch", "text": "not shown"}),
    ]
    assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta(0, "a")]


def test_an_unknown_block_keeps_to_the_first_kind_of_piece() -> None:
    mixed = [delta(0, type="text_delta", text="a"), delta(0, type="thinking_delta", thinking="b")]
    assert isinstance(failure(stream(message_start(), block_start(0, type="sketch"), *mixed)), ProtocolError)


def test_citations_are_appended() -> None:
    cites = [delta(0, type="citations_delta", citation={"cited_text": str(number)}) for number in range(3)]
    for start in ({}, {"citations": None}, {"citations": []}):
        body = stream(message_start(), block_start(0, type="text", text="", **start), *cites, *text(0, "a")[1:], *end())
        assert [each["cited_text"] for each in collect(body).raw["content"][0]["citations"]] == ["0", "1", "2"]


def seconds(body: bytes, chunk: int) -> float:
    """Processor time of the best of three readings: what else the machine does, and the garbage collector, are not ours.
    Below two hundredths of a second some clocks are too coarse."""
    times = []
    gc.disable()
    try:
        for _ in range(3):
            began = time.process_time()
            collect(body, chunk)
            times.append(time.process_time() - began)
    finally:
        gc.enable()
    return max(min(times), 0.02)


@pytest.mark.parametrize("kind", ["text", "input", "citations", "blocks"])
def test_reading_is_linear_in_the_number_of_pieces(kind: str) -> None:
    """Eight times the pieces take about eight times as long; a copy of what has been folded so far would make it 64."""

    def body(count: int) -> bytes:
        if kind == "text":
            return stream(message_start(), *text(0, *["tide "] * count), *end())
        if kind == "input":
            return stream(message_start(), *call(0, '{"a": "', *["tide "] * count, '"}'), *end("tool_use"))
        if kind == "blocks":
            return stream(message_start(), *(event for n in range(count // 3) for event in text(n, "tide ")), *end())
        cites = [delta(0, type="citations_delta", citation={"cited_text": "tide"})] * count
        return stream(message_start(), *text(0)[:1], *cites, block_stop(0), *end())

    small, large = body(3_000), body(24_000)
    assert seconds(large, 65_536) < 32 * seconds(small, 65_536)


def test_the_last_signature_counts_and_is_not_joined() -> None:
    signatures = [delta(0, type="signature_delta", signature=each) for each in ("A", "B")]
    body = stream(
        message_start(), block_start(0, type="thinking", thinking="", signature=""), *signatures, block_stop(0), *end()
    )
    assert collect(body).raw["content"] == [{"type": "thinking", "thinking": "", "signature": "B"}]


def test_every_event_of_the_table_has_its_place_in_every_state() -> None:
    assert set(MessagesDecoder.TABLE) == {"WAIT", "OPEN", "ENDING", "DONE"}
    assert MessagesDecoder.TABLE["ENDING"]["message_stop"] == "DONE"


# ---------------------------------------------------------------- calls that were cut


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "refusal"])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("written", ['{"path": "a.txt"', '{"path": "a.txt"}', ""])
def test_a_call_that_stands_last_in_a_cut_answer_is_never_runnable(stop: str, closed: bool, written: str) -> None:
    """Not even when its JSON happens to be whole: the service closes what it cuts."""
    pieces = call(1, written) if closed else call(1, written)[:-1]
    events = list(feed(stream(message_start(), *text(0, "I write."), *pieces, *end(stop))))
    last = events[-1]
    assert isinstance(last, Done)
    (cut,) = last.response.tool_calls
    assert [cut.args, cut.raw] == [None, None]
    assert "cut" in (cut.args_error or "")
    assert [event.part for event in events if isinstance(event, PartDone) and event.index == 1] == [cut]


def test_a_call_before_the_last_block_of_a_cut_answer_is_whole() -> None:
    body = stream(message_start(), *call(0, '{"a": 1}'), *call(1, '{"b": ', call_id="toolu_2"), *end("max_tokens"))
    first, second = collect(body).tool_calls
    assert [first.args, second.args] == [{"a": 1}, None]


def test_a_whole_answer_that_was_cut_in_a_call_holds_no_runnable_call() -> None:
    """Whole answers hold an object that looks complete; the last block is the one that was cut."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {"path": "a.txt"}}
    cut = wire().decode({"type": "message", "content": [block], "stop_reason": "max_tokens"})
    assert [each.args for each in cut.tool_calls] == [None]
    assert cut.tool_calls[0].raw_args == '{"path":"a.txt"}'
    whole = wire().decode({"type": "message", "content": [block], "stop_reason": "tool_use"})
    assert [each.args for each in whole.tool_calls] == [{"path": "a.txt"}]


def test_a_finished_call_is_announced_when_the_answer_goes_on() -> None:
    body = stream(message_start(), *call(0, "{}"), *text(1, "a"), *call(2, "{}", call_id="toolu_2"), *end("tool_use"))
    order = [(type(event).__name__, getattr(event, "index", None)) for event in feed(body)]
    assert order == [
        ("ArgumentsDelta", 0),
        ("PartDone", 0),
        ("TextDelta", 1),
        ("PartDone", 1),
        ("ArgumentsDelta", 2),
        ("PartDone", 2),
        ("Done", None),
    ]


def test_calls_of_a_stream_that_broke_off_cannot_be_mistaken_for_whole_ones() -> None:
    error = failure(stream(message_start(), *call(0, '{"gate": 4}')[:-1]))
    assert error.partial is not None
    assert [each.args for each in error.partial.tool_calls] == [None]
    assert error.partial.tool_calls[0].raw_args == '{"gate": 4}'


@pytest.mark.parametrize(
    ("events", "part"),
    [
        (text(0, "Hal", "f")[:-1], Text(text="Half", wire="anthropic-messages")),
        (
            [block_start(0, type="thinking", thinking="H"), delta(0, type="thinking_delta", thinking="m")],
            Reasoning(text="Hm", wire="anthropic-messages"),
        ),
        (call(0, '{"q": 1}', kind="server_tool_use")[:-1], Opaque(kind="server_tool_use", wire="anthropic-messages")),
        ([block_start(0, payload=1)], Opaque(kind="unknown", wire="anthropic-messages")),
    ],
)
def test_what_had_arrived_of_a_block_that_never_stopped(events: list[Any], part: Part) -> None:
    """It is shown, and only its text is ever sent again: a thinking block without its signature would be refused."""
    partial = failure(stream(message_start(), *events)).partial
    assert partial is not None
    assert partial.message.parts == [part]
    listed = sent(Message.user("?"), partial.message, Message.user("Go on."))
    assert [message["role"] for message in listed] == (["user", "assistant", "user"] if isinstance(part, Text) else ["user"])


def test_a_server_tool_whose_input_is_no_object_is_kept_for_the_record_and_not_sent_back() -> None:
    response = collect(stream(message_start(), *call(0, '{"q": ', kind="server_tool_use"), *text(1, "a"), *end()))
    assert response.message.parts[0] == Opaque(kind="server_tool_use", wire="anthropic-messages")
    assert response.raw["content"][0]["input"] == '{"q": '
    assert [block["type"] for block in sent(Message.user("?"), response.message, Message.user("!"))[1]["content"]] == [
        "text"
    ]


# ---------------------------------------------------------------- whole answers, usage


def test_a_stop_reason_of_every_kind() -> None:
    ours = {
        word: wire().decode({"type": "message", "content": [], "stop_reason": word}).stop.value for word in (*STOP, "new")
    }
    assert ours == {
        "end_turn": "end", "stop_sequence": "end", "max_tokens": "length", "model_context_window_exceeded": "length",
        "tool_use": "tool_use", "pause_turn": "pause", "compaction": "pause", "refusal": "refusal", "new": "other",
    }  # fmt: skip
    missing = wire().decode({"type": "message", "content": []})
    assert [missing.stop, missing.raw_stop, missing.usage] == [StopReason.OTHER, None, None]


def test_a_200_that_is_an_error_is_raised_as_one() -> None:
    with pytest.raises(APIError, match="busy") as caught:
        wire().decode({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    assert [caught.value.status, caught.value.retryable] == [200, True]
    with pytest.raises(APIError, match="busy"):
        wire().decode({"error": {"message": "busy"}})
    content = [{"type": "text", "text": "a"}]
    assert wire().decode({"error": None, "type": "message", "content": content}).text == "a"
    assert wire().decode({"error": {"message": "was busy"}, "type": "message", "content": content}).text == "a"


@pytest.mark.parametrize("payload", [None, [], "text", {}, {"content": "text"}, {"choices": []}])
def test_what_is_no_answer_at_all_is_a_protocol_error(payload: Any) -> None:
    with pytest.raises(ProtocolError):
        wire().decode(payload)


def test_blocks_that_are_no_objects_are_kept_opaque() -> None:
    parts = (
        wire()
        .decode({"type": "message", "content": [{"payload": 1}, {"type": 3}, None], "stop_reason": "end_turn"})
        .message.parts
    )
    assert [part.kind for part in parts if isinstance(part, Opaque)] == ["unknown"] * 3


@pytest.mark.parametrize(
    ("raw", "counts"),
    [
        ({"input_tokens": 30, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 5, "output_tokens": 60},
         [1035, 60, 1000, 5, None]),
        ({"input_tokens": 3, "output_tokens": 6, "output_tokens_details": {"thinking_tokens": 4}}, [3, 6, None, None, 4]),
        ({"input_tokens": 30, "output_tokens": 60, "cache_read_input_tokens": None}, [30, 60, None, None, None]),
        ({"output_tokens": 0}, [None, 0, None, None, None]),
        ({"input_tokens": True, "output_tokens": "60"}, [None, None, None, None, None]),
    ],
)  # fmt: skip
def test_usage_counts_cached_and_written_tokens_as_input(raw: dict[str, Any], counts: list[int | None]) -> None:
    usage = decode_usage(raw)
    assert usage is not None
    assert [getattr(usage, name) for name in COUNTS] == counts
    assert usage.raw == raw


@pytest.mark.parametrize(
    ("payload", "score"),
    [
        ({"type": "message", "content": []}, 2),
        ({"type": "message_start", "message": {}}, 2),
        ({"type": "content_block_delta"}, 2),
        ({"type": "message"}, 0),
        ({"type": "text", "content": []}, 0),
        ({"type": "error", "code": "server_error", "message": "m", "sequence_number": 3}, 0),  # of the Responses API
        ({"type": "error", "error": {}, "request_id": "req_1"}, 2),
        ({"type": "error", "error": {"type": "api_error"}}, 2),
        ({"type": "error", "error": {"type": "server_error", "code": None, "message": "m"}}, 1),  # of the Responses API
        ({"type": "ping"}, 1),
        ({"type": "response.created"}, 0),
        ({"error": {"message": "m", "code": "x"}}, 0),
        ([], 0),
        (None, 0),
    ],
)
def test_a_capture_that_does_not_say_what_it_is_is_recognised(payload: Any, score: int) -> None:
    assert AnthropicMessages.recognises(payload) == score


# ---------------------------------------------------------------- errors over HTTP


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request_error", False),
        (401, "authentication_error", False),
        (402, "billing_error", False),
        (403, "permission_error", False),
        (404, "not_found_error", False),
        (408, "timeout_error", True),
        (409, "conflict_error", True),
        (413, "request_too_large", False),
        (422, "invalid_request_error", False),
        (429, "rate_limit_error", True),
        (500, "api_error", True),
        (501, "api_error", False),
        (502, "api_error", True),
        (503, "api_error", True),
        (504, "timeout_error", True),
        (529, "overloaded_error", True),
    ],
)
def test_whether_a_retry_can_help_by_status(status: int, kind: str, retryable: bool) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": "m"}, "request_id": "req_1"}).encode()
    error = wire().decode_error(status, {}, body)
    assert [error.status, error.type, error.message, error.retryable, error.request_id] == [
        status,
        kind,
        "m",
        retryable,
        "req_1",
    ]


@pytest.mark.parametrize(
    ("code", "retryable"),
    [("ramp_limit_exceeded", True), ("enforced_spend_limit_reached", False), ("contract_spend_limit_reached", False)],
)
def test_a_spend_limit_is_not_retried(code: str, retryable: bool) -> None:
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "m", "details": {"error_code": code}}}
    error = wire().decode_error(429, {"retry-after": "20"}, json.dumps(body).encode())
    assert [error.code, error.retryable, error.retry_after] == [code, retryable, 20.0]


@pytest.mark.parametrize(
    ("headers", "retryable", "wait"),
    [
        ({"x-should-retry": "false"}, False, None),
        ({"X-Should-Retry": "true", "Retry-After": "1.5"}, True, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, True, 0.25),
        ({"retry-after": "-1"}, True, None),
        ({"retry-after": "soon"}, True, None),
    ],
)
def test_the_headers_of_an_error_are_obeyed(headers: dict[str, str], retryable: bool, wait: float | None) -> None:
    error = wire().decode_error(429, headers, b'{"type":"error","error":{"type":"rate_limit_error","message":"m"}}')
    assert [error.retryable, error.retry_after] == [retryable, wait]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "HTTP 502 without a body"),
        (b"<html>Bad   Gateway</html>", "<html>Bad Gateway</html>"),
        (b"\xff\xfe", "��"),
        (b'{"error": "no such model"}', "no such model"),
        (b'{"detail": "gateway"}', "gateway"),
        (b'{"message": "Too many tokens"}', "Too many tokens"),
        (b"[]", "HTTP 502"),
    ],
)
def test_an_error_body_of_a_proxy_is_quoted(body: bytes, message: str) -> None:
    error = wire().decode_error(502, {}, body)
    assert [error.message, error.type, error.retryable] == [message, None, True]


# ---------------------------------------------------------------- headers and address


def test_the_key_goes_into_one_header_and_the_version_beside_it() -> None:
    plain = wire().encode(Request(messages="Hi"))
    assert plain.headers == {
        "content-type": "application/json",
        "anthropic-version": "2026-10-21",
        "x-api-key": "sk-test-key",
    }
    bearer = wire(bearer=True, version="2023-06-01").encode(Request(messages="Hi"), stream=True)
    assert bearer.headers == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "anthropic-version": "2023-06-01",
        "authorization": "Bearer sk-test-key",
    }


@pytest.mark.parametrize("name", ["X-Api-Key", "Authorization"])
def test_a_key_in_the_users_own_headers_replaces_ours(name: str) -> None:
    headers = wire(headers={name: "theirs", "Anthropic-Beta": "mcp"}).encode(Request(messages="Hi")).headers
    assert {key: value for key, value in headers.items() if "theirs" in value or "sk-test" in value} == {
        name.lower(): "theirs"
    }
    assert headers["anthropic-beta"] == "mcp"


def test_the_environment_gives_key_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example/anthropic/")
    encoded = AnthropicMessages(NEW).encode(Request(messages="Hi"))
    assert encoded.url == "https://gateway.example/anthropic/v1/messages"
    assert encoded.headers["authorization"] == "Bearer token"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    encoded = AnthropicMessages(NEW).encode(Request(messages="Hi"))
    assert encoded.headers["x-api-key"] == "key"
    assert "authorization" not in encoded.headers
    assert "x-api-key" not in AnthropicMessages(NEW, api_key="").encode(Request(messages="Hi")).headers


def test_a_base_url_may_end_with_the_version() -> None:
    assert wire(base_url="http://localhost:1/v1/").encode(Request(messages="Hi")).url == "http://localhost:1/v1/messages"


def test_a_request_needs_a_model_and_may_name_its_own() -> None:
    with pytest.raises(InvalidRequest, match="no model"):
        AnthropicMessages(api_key="k").encode(Request(messages="Hi"))
    assert body_of(Request(messages="Hi", model="claude-x"))["model"] == "claude-x"


def test_the_key_is_in_no_repr() -> None:
    shown = repr(wire()) + repr(wire().encode(Request(messages="Hi"))) + repr(vars(wire()))
    assert "sk-test" not in shown


# ---------------------------------------------------------------- the request body


def test_the_smallest_request() -> None:
    assert body_of(Request(messages="Hi")) == {
        "model": NEW,
        "max_tokens": DEFAULT_MAX_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }


def test_system_stop_cap_and_stream() -> None:
    request = Request(messages="Hi", system="Be brief.", stop=["END"], max_tokens=5)
    body = wire().encode(request, stream=True).body
    assert [body["system"], body["stop_sequences"], body["max_tokens"], body["stream"]] == ["Be brief.", ["END"], 5, True]
    assert "system" not in body_of(Request(messages="Hi", system=" \n"))


def test_a_stop_sequence_of_white_space_is_refused_here_and_not_by_the_service() -> None:
    with pytest.raises(InvalidRequest, match="white space"):
        body_of(Request(messages="Hi", stop=["END", "\n\n"]))


def test_extra_is_merged_last_and_deep() -> None:
    extra = {"anthropic-messages": {"thinking": {"display": "omitted"}, "max_tokens": 0, "service_tier": "auto"}}
    body = body_of(Request(messages="Hi", reasoning="low", extra=extra))
    assert body["thinking"] == {"type": "adaptive", "display": "omitted"}
    assert [body["max_tokens"], body["service_tier"]] == [0, "auto"]


def test_there_is_no_store_field() -> None:
    assert "store" not in body_of(Request(messages="Hi"))


TOOL = Tool(
    name="get_weather", description="The weather.", parameters={"type": "object", "properties": {"city": {"type": "string"}}}
)


def test_tools_of_both_kinds() -> None:
    body = body_of(Request(messages="Hi", tools=[TOOL, Tool(name="run_sql", kind="custom", description="SQL.")]))
    assert body["tools"] == [
        {"name": "get_weather", "description": "The weather.", "input_schema": TOOL.parameters},
        {
            "name": "run_sql",
            "description": "SQL.",
            "input_schema": {
                "type": "object",
                "properties": {"input": {"type": "string"}},
                "required": ["input"],
                "additionalProperties": False,
            },
        },
    ]
    assert "tool_choice" not in body


def test_a_strict_tool_has_a_closed_schema_and_the_others_keep_theirs() -> None:
    strict = body_of(Request(messages="Hi", tools=[TOOL.model_copy(update={"strict": True})]))["tools"][0]
    assert [strict["strict"], strict["input_schema"]["additionalProperties"]] == [True, False]
    loose = body_of(Request(messages="Hi", tools=[TOOL.model_copy(update={"strict": False})]))["tools"][0]
    assert [loose["strict"], loose["input_schema"]] == [False, TOOL.parameters]


@pytest.mark.parametrize(
    ("choice", "parallel", "encoded"),
    [
        ("auto", None, {"type": "auto"}),
        ("none", None, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("get_weather", None, {"type": "tool", "name": "get_weather"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        ("get_weather", False, {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ("auto", True, {"type": "auto"}),
        (None, True, None),
    ],
)
def test_tool_choice_and_the_switch_for_parallel_calls(choice: str | None, parallel: bool | None, encoded: Any) -> None:
    body = body_of(Request(messages="Hi", tools=[TOOL], tool_choice=choice, parallel=parallel), OLD)
    assert body.get("tool_choice") == encoded


def test_a_choice_without_tools_is_not_sent_but_with_tools_from_extra_it_is() -> None:
    assert "tool_choice" not in body_of(Request(messages="Hi", tool_choice="auto"))
    extra = {"anthropic-messages": {"tools": [{"type": "web_search_20260318", "name": "web_search"}]}}
    assert body_of(Request(messages="Hi", tool_choice="auto", extra=extra))["tool_choice"] == {"type": "auto"}


@pytest.mark.parametrize("choice", ["required", "get_weather"])
def test_a_forced_choice_is_refused_where_the_model_refuses_it(choice: str) -> None:
    request = Request(messages="Hi", tools=[TOOL], tool_choice=choice)
    with pytest.raises(InvalidRequest, match="forced tool_choice"):
        body_of(request, NEW)
    assert "tool_choice" in body_of(request, "claude-opus-5")
    assert "tool_choice" in body_of(request, TOMORROW)
    with pytest.raises(InvalidRequest, match="thinking budget"):
        body_of(request.replace(reasoning=2048), OLD)


def test_structured_output_is_an_output_format() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    output = body_of(Request(messages="Hi", output_schema=schema, reasoning="high"))["output_config"]
    assert output["effort"] == "high"
    assert output["format"]["type"] == "json_schema"
    sent_schema = output["format"]["schema"]
    assert sent_schema["additionalProperties"] is False
    assert "minimum" not in sent_schema["properties"]["n"]
    assert "1" in sent_schema["properties"]["n"]["description"]
    assert schema["properties"] == {"n": {"type": "integer", "minimum": 1}}  # what the user wrote is not touched


# ---------------------------------------------------------------- thinking


@pytest.mark.parametrize(
    ("model", "asked", "encoded"),
    [
        (NEW, None, {}),
        (NEW, "low", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}}),
        (NEW, "minimal", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}}),
        (NEW, "max", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}}),
        ("claude-opus-5", "none", {"thinking": {"type": "disabled"}}),
        (OLD, "none", {"thinking": {"type": "disabled"}}),
        (OLD, 2048, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        (OLD, "high", {"thinking": {"type": "enabled", "budget_tokens": BUDGETS["high"]}}),
        (TOMORROW, 4096, {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        (TOMORROW, "low", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}}),
    ],
)  # fmt: skip
def test_how_a_model_is_told_to_think(model: str, asked: str | int | None, encoded: dict[str, Any]) -> None:
    body = body_of(Request(messages="Hi", reasoning=asked), model)
    assert {key: body[key] for key in ("thinking", "output_config") if key in body} == encoded


@pytest.mark.parametrize(
    ("model", "asked", "cap", "words"),
    [
        (NEW, "none", None, "always thinks"),
        (NEW, 2048, None, "effort word"),
        ("claude-opus-4-6", "xhigh", None, "low, medium, high, max"),
        (OLD, "deeply", None, "neither a number"),
        (OLD, 512, None, "at least 1024"),
        (OLD, 4096, 4096, "larger than the budget"),
        (OLD, "low", 1500, "raise max_tokens"),
    ],
)
def test_thinking_that_a_model_cannot_do_is_refused(model: str, asked: str | int, cap: int | None, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        body_of(Request(messages="Hi", reasoning=asked, max_tokens=cap), model)


def test_the_default_cap_leaves_room_for_the_answer_beside_the_budget() -> None:
    for asked in (1024, 40_000, *BUDGETS):
        body = body_of(Request(messages="Hi", reasoning=asked), OLD)
        assert body["max_tokens"] - body["thinking"]["budget_tokens"] == DEFAULT_MAX_TOKENS


def test_a_budget_for_an_effort_word_gives_way_to_the_users_cap() -> None:
    body = body_of(Request(messages="Hi", reasoning="high", max_tokens=6000), OLD)
    assert [body["max_tokens"], body["thinking"]["budget_tokens"]] == [6000, 3000]


def test_with_a_budget_a_tool_turn_that_another_model_began_is_finished_without_thinking() -> None:
    """The API would refuse it: with a budget, the turn must begin with thinking."""
    foreign = Message.assistant(ToolCall(call_id="call_1", name="get_weather", args={}, wire="openai-chat"))
    result = Message.user(ToolResult(call_id="call_1", content="4 °C"))
    request = Request(messages=[Message.user("?"), foreign, result], reasoning=2048)
    assert "thinking" not in body_of(request, OLD)
    after = Message.assistant("It is 4 °C.")
    assert "thinking" in body_of(request.replace(messages=[*request.messages, after, Message.user("And Lima?")]), OLD)
    thought = own(
        {"type": "thinking", "thinking": "", "signature": "S"},
        {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {}},
        stop="tool_use",
    )
    assert "thinking" in body_of(request.replace(messages=[Message.user("?"), thought, result]), OLD)


# ---------------------------------------------------------------- messages


def blocks(*parts: Any, before: str | None = "Hello") -> list[dict[str, Any]]:
    """The blocks of an assistant message of `parts`, with what its calls need after it."""
    message = Message.assistant(*parts)
    answers = [ToolResult(call_id=each.call_id, content="ok") for each in message.tool_calls]
    listed = sent(*([Message.user(before)] if before else []), message, Message.user(*(answers or ["Go on."])))
    content: list[dict[str, Any]] = listed[1]["content"]
    return content


def user_blocks(*parts: str | Part) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = sent(Message.user(*parts))[0]["content"]
    return content


def result_block(result: ToolResult) -> dict[str, Any]:
    calling = Message.assistant(ToolCall(call_id=result.call_id, name="f", args={}))
    block: dict[str, Any] = sent(Message.user("Hello"), calling, Message.user(result))[2]["content"][0]
    return block


def test_foreign_parts_are_rebuilt_and_what_is_signed_for_others_stays_behind() -> None:
    foreign = "openai-responses"
    secret = {"type": "reasoning", "encrypted_content": "opaque"}
    content = blocks(
        Reasoning(text="hm", wire=foreign, raw=secret),
        Opaque(kind="web_search_call", wire=foreign, raw={"id": "ws_1"}),
        Text(text="I look.", wire=foreign, raw={"type": "message", "phase": "commentary"}),
        ToolCall(call_id="call_1", name="f", args={"a": 1}, wire=foreign, raw={"type": "function_call", "id": "fc_1"}),
    )
    assert content == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}},
    ]


def test_parts_that_stand_inside_another_wires_item_are_rebuilt_too() -> None:
    inside = Text(text="second", wire="gemini-interactions", inside=True)
    assert [block["text"] for block in blocks("first", inside)] == ["first", "second"]
    ours = Text(text="second", wire="anthropic-messages", inside=True)  # stands in the raw block before it
    assert [block["text"] for block in blocks("first", ours)] == ["first"]


def test_thinking_in_all_forms_goes_back_byte_for_byte_and_in_order() -> None:
    sent_back = [
        {"type": "redacted_thinking", "data": "BLOB"},
        {"type": "thinking", "thinking": "", "signature": "SIG"},  # display omitted: empty, not missing
        {"type": "thinking", "thinking": " spaced ", "signature": "SIG2"},
        {"type": "text", "text": "Well."},
    ]
    assert sent(Message.user("Hello"), own(*sent_back), Message.user("?"))[1]["content"] == sent_back


def test_server_tools_go_back_with_their_encrypted_content_even_without_a_result() -> None:
    sent_back = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"encrypted_content": "E", "page_age": None}],
        },
        {
            "type": "text",
            "text": "x",
            "citations": [{"type": "web_search_result_location", "title": None, "encrypted_index": "I"}],
        },
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {}},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}, "caller": {"type": "direct"}},
    ]
    listed = sent(
        Message.user("?"), own(*sent_back, stop="tool_use"), Message.user(ToolResult(call_id="toolu_1", content="ok"))
    )
    assert listed[1]["content"] == sent_back
    assert [block.get("tool_use_id") for block in listed[2]["content"]] == ["toolu_1"]  # server tools are not answered


def test_a_paused_turn_goes_back_last_and_its_continuation_is_the_same_turn() -> None:
    paused = own({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, stop="pause_turn")
    assert [message["role"] for message in sent(Message.user("?"), paused, model=NEW)] == ["user", "assistant"]
    went_on = own({"type": "text", "text": "Done."})
    listed = sent(Message.user("?"), paused, went_on, Message.user("!"))
    assert [[block["type"] for block in message["content"]] for message in listed] == [
        ["text"],
        ["server_tool_use", "text"],
        ["text"],
    ]


def test_what_another_service_signed_is_not_sent_to_this_one() -> None:
    """Many services speak this wire format. Their signatures are their own, and an unknown one is refused with every later
    request of the conversation."""
    content = [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "text", "text": "I look.", "their_field": 1},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}, "their_index": 0},
    ]
    theirs = wire(base_url="https://gateway.example/anthropic")
    whole = {"type": "message", "content": content, "stop_reason": "tool_use"}
    streamed = stream(
        message_start(), *(event for n, raw in enumerate(content) for event in (block_start(n, **raw), block_stop(n)))
    )
    parser, decoder = SSEParser(), theirs.decoder()
    for sse in parser.feed(streamed + stream(*end("tool_use"))):
        decoder.feed(sse)
    message = load_history(dump_history([theirs.decode(whole).message]))[0]
    assert decoder.result().message == message
    history = [Message.user("?"), message, Message.user(ToolResult(call_id="call_1", content="ok"))]
    assert sent(*history)[1]["content"] == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}},
    ]
    back = theirs.encode(Request(messages=history)).body["messages"][1]["content"]
    assert back == content
    mixed = Message(role="assistant", parts=[Text(text="Mine."), *message.parts])
    assert [block["type"] for block in sent(history[0], mixed, history[2])[1]["content"]] == ["text", "text", "tool_use"]
    ours = own(*content[:2])
    assert (
        theirs.encode(Request(messages=[Message.user("?"), ours, Message.user("!")])).body["messages"][1]["content"]
        == content[:2]
    )


def test_nulls_are_left_out() -> None:
    message = own(
        {"type": "text", "text": "x", "citations": None},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": None},
    )
    listed = sent(Message.user("?"), message, Message.user(ToolResult(call_id="t", content="ok")))
    assert listed[1]["content"] == [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
def test_blank_text_is_left_out_even_where_the_api_itself_sent_it(blank: str) -> None:
    listed = sent(
        Message.user("?", blank), own({"type": "text", "text": blank}, {"type": "text", "text": "x"}), Message.user("!")
    )
    assert [block["text"] for message in listed for block in message["content"]] == ["?", "x", "!"]


def test_a_message_of_which_nothing_is_left_is_left_out_and_its_neighbours_are_joined() -> None:
    thinking = {"type": "thinking", "thinking": "cut here", "signature": "S"}
    for empty in (Message.assistant(" "), own(thinking, stop="max_tokens"), own(stop="refusal")):
        assert sent(Message.user("a"), empty, Message.user("b")) == [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
        ]
    with pytest.raises(InvalidRequest, match="nothing to send"):
        sent(Message.user(" "))
    with pytest.raises(InvalidRequest, match="nothing to send"):
        sent()


def test_an_assistant_message_does_not_end_with_thinking() -> None:
    cut = own({"type": "text", "text": "x"}, {"type": "thinking", "thinking": "", "signature": "S"}, stop="max_tokens")
    assert [block["type"] for block in sent(Message.user("a"), cut, Message.user("b"))[1]["content"]] == ["text"]


def test_a_call_whose_json_was_invalid_goes_back_as_an_object_that_says_so() -> None:
    response = collect(stream(message_start(), *call(0, '{"city": Oslo}'), *text(1, "x"), *end("tool_use")))
    answer = Message.user(ToolResult(call_id="toolu_1", content="not JSON", is_error=True))
    listed = sent(Message.user("?"), response.message, answer)
    assert listed[1]["content"][0] == {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "get_weather",
        "input": {"INVALID_JSON": '{"city": Oslo}'},
    }
    unanswered = sent(Message.user("?"), response.message, Message.user("!"))
    assert [block["type"] for block in unanswered[1]["content"]] == ["text"]


def test_what_the_declined_model_began_does_not_go_back() -> None:
    kept = [
        {"type": "text", "text": "I will"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
        {"type": "thinking", "thinking": "mine", "signature": "S2"},
        {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {}},
    ]
    gone = [
        {"type": "thinking", "thinking": "declined", "signature": "S1"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {}},
    ]
    gone.append({"type": "server_tool_use", "id": "srvtoolu_3", "name": "web_search", "input": '{"cut'})
    message = own(gone[0], *kept[:3], *gone[1:], *kept[3:], stop="tool_use")
    assert [each.call_id for each in message.tool_calls] == ["toolu_2"]
    assert own(gone[1], kept[3]).tool_calls == []  # nothing came after it
    listed = sent(Message.user("?"), message, Message.user(ToolResult(call_id="toolu_2", content="ok")))
    assert listed[1]["content"] == kept


def test_the_calls_of_the_declined_model_are_no_calls_in_the_stream_either() -> None:
    """The last one is announced as what it is; one before it, which had been announced, is announced anew."""
    body = stream(
        message_start(),
        *call(0, "{}", call_id="toolu_1"),
        *call(1, "{}", call_id="toolu_2"),
        block_start(2, type="fallback", **{"from": {"model": "a"}, "to": {"model": "b"}}),
        block_stop(2),
        *call(3, "{}", call_id="toolu_3"),
        *end("tool_use"),
    )
    done = [(event.index, type(event.part)) for event in feed(body) if isinstance(event, PartDone)]
    assert done == [(0, ToolCall), (2, Opaque), (0, Opaque), (1, Opaque), (3, ToolCall)]
    assert [each.call_id for each in collect(body).tool_calls] == ["toolu_3"]


def test_white_space_at_the_end_of_a_prefill_is_stripped_and_nowhere_else() -> None:
    assert sent(Message.user("a "), Message.assistant("Once upon \n"))[1]["content"][0]["text"] == "Once upon"
    assert (
        sent(Message.user("a"), Message.assistant("Once upon \n"), Message.user("b"))[1]["content"][0]["text"]
        == "Once upon \n"
    )


def test_a_prefill_is_refused_where_the_model_refuses_it() -> None:
    with pytest.raises(InvalidRequest, match="end with a user message"):
        sent(Message.user("a"), Message.assistant("Once"), model=NEW)
    assert sent(Message.user("a"), Message.assistant("Once"), model=TOMORROW)[1]["role"] == "assistant"


def test_a_block_of_no_known_shape_may_stand_last() -> None:
    odd = {"payload": 1}
    assert sent(Message.user("a"), own({"type": "text", "text": "b "}, odd), model=NEW)[1]["content"] == [
        {"type": "text", "text": "b "},
        odd,
    ]


def test_a_conversation_that_the_assistant_opens_gets_a_user_message_before_it() -> None:
    listed = sent(Message.assistant("How may I help?"), Message.user("Tides, please."))
    assert [message["role"] for message in listed] == ["user", "assistant", "user"]
    assert listed[0]["content"] == [{"type": "text", "text": OPENING}]


def test_results_of_parallel_calls_come_back_in_one_message_first_and_in_call_order() -> None:
    calls = Message.assistant(ToolCall(call_id="a", name="f", args={}), ToolCall(call_id="b", name="f", args={}))
    listed = sent(
        Message.user("Two harbours"),
        calls,
        Message.user(ToolResult(call_id="b", content="0.9")),
        Message.user("Thanks, and C?", ToolResult(call_id="a", content="1.2")),
    )
    assert [message["role"] for message in listed] == ["user", "assistant", "user"]
    assert [block.get("tool_use_id", block["type"]) for block in listed[2]["content"]] == ["a", "b", "text"]


def test_a_call_that_nobody_answered_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no result for f"):
        sent(Message.user("?"), Message.assistant(ToolCall(call_id="a", name="f", args={})))


@pytest.mark.parametrize(
    ("result", "block"),
    [
        (ToolResult(call_id="t", content="4 °C"), {"content": "4 °C"}),
        (ToolResult(call_id="t", content=""), {}),
        (ToolResult(call_id="t", content=" \n"), {}),
        (ToolResult(call_id="t", content=[]), {}),
        (ToolResult(call_id="t", content=[Text(text=""), Text(text="x")]), {"content": [{"type": "text", "text": "x"}]}),
        (ToolResult(call_id="t", content="no city", is_error=True), {"content": "no city", "is_error": True}),
        (ToolResult(call_id="t", content="", is_error=True), {"content": NO_MESSAGE, "is_error": True}),
        (
            ToolResult(call_id="t", content=[Text(text="x"), Image(url="https://h.example/a.png")]),
            {"content": [{"type": "text", "text": "x"},
                         {"type": "image", "source": {"type": "url", "url": "https://h.example/a.png"}}]},
        ),
        (
            ToolResult(call_id="t", content=[Image(data="AAAA", media_type="image/png")], is_error=True),
            {"content": [{"type": "text", "text": NO_PICTURE}], "is_error": True},
        ),
    ],
)  # fmt: skip
def test_a_tool_result(result: ToolResult, block: dict[str, Any]) -> None:
    """Empty content is left out; an error needs words and takes nothing but words."""
    assert result_block(result) == {"type": "tool_result", "tool_use_id": "t", **block}


def test_the_toolset_of_a_call_is_named_in_its_result() -> None:
    message = own({"type": "tool_use", "id": "t", "name": "click", "input": {}, "toolset_name": "computer"}, stop="tool_use")
    listed = sent(Message.user("?"), message, Message.user(ToolResult(call_id="t", content="ok")))
    assert listed[2]["content"] == [{"type": "tool_result", "tool_use_id": "t", "content": "ok", "toolset_name": "computer"}]


PNG = "iVBORw0KGgoAAAANSUhEUg"


@pytest.mark.parametrize(
    ("image", "source"),
    [
        (Image(url="https://h.example/a.png"), {"type": "url", "url": "https://h.example/a.png"}),
        (Image(data=PNG, media_type="image/png"), {"type": "base64", "media_type": "image/png", "data": PNG}),
        (Image(data=PNG, media_type="image/jpeg"), {"type": "base64", "media_type": "image/png", "data": PNG}),
        (Image(data="/9j/4AAQ", media_type="image/jpg"), {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"}),
        (Image(data="AAAA", media_type="image/heic"), {"type": "base64", "media_type": "image/heic", "data": "AAAA"}),
        (Image(url=f"data:image/png;base64,{PNG}"), {"type": "base64", "media_type": "image/png", "data": PNG}),
    ],
)
def test_a_picture(image: Image, source: dict[str, Any]) -> None:
    assert user_blocks(image, "What is this?") == [
        {"type": "image", "source": source},
        {"type": "text", "text": "What is this?"},
    ]


def test_a_data_url_that_is_not_base64_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="base64"):
        user_blocks(Image(url="data:image/svg+xml,<svg/>"))


def test_a_picture_from_another_model_is_named_where_it_cannot_stand() -> None:
    drawn = Image(data="AAAA", media_type="image/png", wire="gemini-interactions")
    assert blocks("Here:", drawn) == [{"type": "text", "text": "Here:"}, {"type": "text", "text": NO_PICTURE}]


def test_a_document_goes_in_as_an_opaque_part() -> None:
    document = {"type": "document", "source": {"type": "url", "url": "https://h.example/a.pdf"}}
    opaque = Opaque(kind="document", wire="anthropic-messages", raw=document)
    assert user_blocks(opaque, "Sum it up.")[0] == document


# ---------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("name", "sent_name"), [("", "unnamed"), ("x" * 201, "x" * 200), ("multi_tool.parallel", "multi_tool.parallel")]
)
def test_the_name_of_a_call_is_not_empty_and_not_too_long(name: str, sent_name: str) -> None:
    """Models call what does not exist. The call was answered with an error, and the conversation must go on."""
    assert blocks(ToolCall(call_id="t", name=name, args={}))[0]["name"] == sent_name
    raw = {"type": "tool_use", "id": "t", "name": name, "input": {}, "caller": {"type": "direct"}}
    given = {} if name else {"INVALID_JSON": "{}"}  # a call without a name is not run, so it is one that was not valid
    assert blocks(*own(raw, stop="tool_use").parts)[0] == {**raw, "name": sent_name, "input": given}


def ids_sent(*turns: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """For each turn of foreign calls, the ids under which calls and results are sent."""
    messages = [Message.user("?")]
    for turn in turns:
        messages.append(Message.assistant(*(ToolCall(call_id=each, name="f", args={}) for each in turn)))
        messages.append(Message.user(*(ToolResult(call_id=each, content="ok") for each in turn)))
    listed = sent(*messages)[1:]
    return [
        ([block["id"] for block in calls["content"]], [block["tool_use_id"] for block in results["content"]])
        for calls, results in zip(listed[::2], listed[1::2], strict=True)
    ]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([["toolu_1", "call_A-2"]], [["toolu_1", "call_A-2"]]),
        ([["functions.f:0", "functions.f:1"]], [["functions_f_0", "functions_f_1"]]),
        ([["call_0"], ["call_0"], ["call_0"]], [["call_0"], ["call_0_2"], ["call_0_3"]]),
        ([["x", "x"]], [["x", "x_2"]]),
        ([["", ""]], [["call", "call_2"]]),
        ([["a.b", "a_b"]], [["a_b", "a_b_2"]]),
        ([["x"], ["x"], ["x_2"]], [["x"], ["x_2"], ["x_2_2"]]),
        ([["日本"]], [["__"]]),
    ],
)
def test_ids_of_other_vendors_are_made_legal_and_unique(turns: list[list[str]], expected: list[list[str]]) -> None:
    """`^[a-zA-Z0-9_-]+$`, and every id once in a conversation; calls and results stay paired."""
    assert ids_sent(*turns) == [(ids, ids) for ids in expected]


def test_an_id_of_its_own_that_a_gateway_used_twice_is_renamed_in_the_raw_block() -> None:
    message = own({"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}}, stop="tool_use")
    result = Message.user(ToolResult(call_id="t", content="ok"))
    listed = sent(Message.user("?"), message, result, message, result)
    assert [listed[3]["content"][0]["id"], listed[4]["content"][0]["tool_use_id"]] == ["t_2", "t_2"]
    assert listed[3]["content"][0]["caller"] == {"type": "direct"}


def test_two_results_of_one_id_stay_with_their_calls() -> None:
    calls = Message.assistant(ToolCall(call_id="x", name="f", args={"n": 1}), ToolCall(call_id="x", name="f", args={"n": 2}))
    results = Message.user(ToolResult(call_id="x", content="one"), ToolResult(call_id="x", content="two"))
    listed = sent(Message.user("?"), calls, results)
    named = {block["tool_use_id"]: block["content"] for block in listed[2]["content"]}
    assert [named[block["id"]] for block in listed[1]["content"]] == ["one", "two"]


def test_ten_thousand_calls_of_one_id_are_renamed_in_linear_time() -> None:
    """Each new name is looked for from where the last search ended."""
    (pair,) = ids_sent(["x"] * 10_000)
    assert len(set(pair[0])) == 10_000
    assert pair[0][-1] == "x_10000"


# ---------------------------------------------------------------- fields of the wrong type


@pytest.mark.parametrize("index", ["1", None, True, 1.5, [1]])
def test_a_block_whose_place_is_no_number_is_refused_and_what_was_shown_is_attached(index: Any) -> None:
    """Its place would stand among numbers that it cannot be compared with, and nothing could be built any more."""
    error = failure(stream(message_start(), *text(0, "Hello"), {**block_start(1), "index": index}))
    assert isinstance(error, ProtocolError)
    assert error.partial is not None
    assert error.partial.text == "Hello"


@pytest.mark.parametrize("kind", [None, 7, True, "", {"x": 1}])
def test_a_delta_that_does_not_say_what_it_is_is_no_unknown_one(kind: Any) -> None:
    error = failure(stream(message_start(), *text(0, "Hello")[:-1], delta(0, type=kind, text="!"), *end()))
    assert isinstance(error, ProtocolError)


@pytest.mark.parametrize("kind", [7, True, ["x"]])
def test_an_event_whose_type_is_no_word_is_no_unknown_one(kind: Any) -> None:
    assert isinstance(failure(stream(message_start(), {"type": kind}, *end())), ProtocolError)


def test_an_event_that_has_two_names_is_refused() -> None:
    """A type that nobody knows is ignored, unless the SSE name says that it is one that counts."""
    decoder = wire().decoder()
    decoder.feed(ServerSentEvent("message_start", json.dumps(message_start()).encode()))
    assert decoder.feed(ServerSentEvent("invented", b'{"type": "invented"}')) == ()
    with pytest.raises(ProtocolError, match="called 'content_block_start', but its data calls it 'sontent_block_start'"):
        decoder.feed(ServerSentEvent("content_block_start", b'{"type": "sontent_block_start"}'))


def test_an_input_count_that_cannot_be_read_makes_no_smaller_sum() -> None:
    counts = {"input_tokens": 30, "cache_read_input_tokens": "1000", "output_tokens": 5}
    usage = wire().decode({"type": "message", "content": [], "stop_reason": "end_turn", "usage": counts}).usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (None, None, 5)


def test_a_call_without_a_name_cannot_be_run() -> None:
    (part,) = own({"type": "tool_use", "id": "t", "input": {"city": "Oslo"}}, stop="tool_use").parts
    assert isinstance(part, ToolCall)
    assert (part.args, part.args_error, part.raw_args) == (None, "the call has no name", '{"city":"Oslo"}')
