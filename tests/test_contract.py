"""What every wire format must do, tried on every case of every wire that has a folder in testdata/.

A sixth format is tested by its files alone. What only one format knows stands in tests/wire/.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lessonlib.errors import InvalidRequest, LessonError
from lessonlib.sse import ServerSentEvent
from lessonlib.types import (
    JSON,
    ArgumentsDelta,
    Done,
    Event,
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
)  # fmt: skip
from lessonlib.wire import WIRES, WireFormat
from lessonlib.wire.base import compact, read_json
from tests.contract import (
    KEY,
    TESTDATA,
    Case,
    case_names,
    cases,
    differences,
    event_ends,
    every,
    leaves,
    map_data,
    read_stream,
    read_whole,
    sse_events,
    successful_cuts,
    unmet,
    with_unknown_events,
    with_unknown_fields,
)  # fmt: skip

CORE = {
    "text", "tool_call", "parallel_calls", "no_argument_call", "invalid_arguments", "reasoning", "server_tool", "refusal",
    "length", "length_in_call", "cut", "cut_in_call", "error_midstream", "unknown", "unicode", "rate_limit", "overloaded",
    "bad_request",
}  # fmt: skip
"""The cases that every wire format has. Further ones are its own."""


def on(*needed: str) -> Any:
    """Runs a test on each case that has these files."""
    found = cases("expect.json", *needed)
    return pytest.mark.parametrize("case", found, ids=str)


streams = on("stream.sse")
both = pytest.mark.parametrize("case", cases("expect.json", "stream.sse", "response.json"), ids=str)
answered = pytest.mark.parametrize(
    "case", [case for case in cases("expect.json") if case.succeeds and not case.has("error.json")], ids=str
)
every_wire = pytest.mark.parametrize("wire_name", WIRES)


def read(case: Case) -> Response:
    """The answer of a case, streamed if it is."""
    wire = case.wire()
    if case.has("stream.sse"):
        return read_stream(wire, case.stream).response
    return read_whole(wire, (case.folder / "response.json").read_bytes()).response


# ---------------------------------------------------------------- the files


@every_wire
def test_every_wire_format_has_the_core_cases(wire_name: str) -> None:
    assert sorted(CORE - case_names(wire_name)) == []


@on()
def test_a_case_is_complete(case: Case) -> None:
    """It says what must be read, what was asked, and holds an answer of one kind."""
    assert case.expect["wire"] == case.wire_name
    assert case.has("request.json")
    assert case.has("ask.json")
    assert case.has("error.json") != (case.has("response.json") or case.has("stream.sse"))


@on()
def test_no_case_holds_a_key(case: Case) -> None:
    for file in case.folder.iterdir():
        text = file.read_bytes().lower()
        assert not any(word in text for word in (b"x-api-key", b'api-key"', b"x-goog-api-key", b"bearer ", b"sk-", b"aiza"))


# ---------------------------------------------------------------- encode


@on("request.json", "ask.json")
def test_the_request_is_written_byte_for_byte(case: Case) -> None:
    expected = case.json("request.json")
    request, stream = case.request()
    sent = case.wire().encode(request, stream=stream)
    assert (sent.method, sent.url) == (expected["method"], expected["url"])
    assert sent.content.decode() == compact(expected["body"])
    assert {name: sent.headers.get(name) for name in expected["headers"]} == expected["headers"]


# ---------------------------------------------------------------- decode


@on("response.json")
def test_the_whole_answer_is_read(case: Case) -> None:
    assert unmet(case, read_whole(case.wire(), (case.folder / "response.json").read_bytes())) == []


@streams
def test_the_stream_is_read(case: Case) -> None:
    assert unmet(case, read_stream(case.wire(), case.stream)) == []


@on("error.json")
def test_the_error_body_is_read(case: Case) -> None:
    meta = case.json("meta.json")
    error = case.wire().decode_error(meta["status"], meta.get("headers"), (case.folder / "error.json").read_bytes())
    got = {"kind": "provider_error", "type": error.type, "code": error.code, "retryable": error.retryable}
    assert differences(case.expect["error"], got) == []
    assert error.status == meta["status"]
    assert error.message
    headers = {name.lower(): value for name, value in meta.get("headers", {}).items()}
    if "retry-after" in headers and "retry-after-ms" not in headers:
        assert error.retry_after == float(headers["retry-after"])


@both
def test_stream_and_whole_give_the_same_answer(case: Case) -> None:
    streamed = read_stream(case.wire(), case.stream)
    whole = read_whole(case.wire(), (case.folder / "response.json").read_bytes())
    if not case.succeeds:
        assert type(streamed.outcome) is type(whole.outcome)
        return
    one, other = streamed.response, whole.response
    if "differs" in case.expect:  # the folder says why the two cannot be the same part for part
        assert streamed.line() | {"opaque": 0} == whole.line() | {"opaque": 0}
        return
    assert one.message == other.message
    assert (one.stop, one.raw_stop, one.model) == (other.stop, other.raw_stop, other.model)
    assert counts(one) == counts(other)


def counts(response: Response) -> JSON | None:
    return response.usage.model_dump(exclude={"raw"}) if response.usage else None


@answered
def test_a_response_survives_json(case: Case) -> None:
    response = read(case)
    assert Response.model_validate_json(response.model_dump_json()) == response


# ---------------------------------------------------------------- streams


@streams
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_the_size_of_the_reads_changes_nothing(case: Case, size: int) -> None:
    at_once = read_stream(case.wire(), case.stream)
    in_pieces = read_stream(case.wire(), case.stream, every(size, case.stream))
    assert in_pieces.comparable() == at_once.comparable()


@streams
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_cuts_change_nothing(case: Case, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(case.stream)), max_size=12))
    at_once = read_stream(case.wire(), case.stream)
    assert read_stream(case.wire(), case.stream, cuts).comparable() == at_once.comparable()


@streams
def test_no_cut_before_the_completing_event_is_a_success(case: Case) -> None:
    """Every cut of the stream: a success must not come before the last byte of an event's data, and must hold everything
    that the whole stream holds. Of a stream that fails no cut is a success."""
    wire = case.wire()
    found = list(successful_cuts(wire, case.stream))
    if not case.succeeds:
        assert [cut for cut, _ in found] == []
        return
    whole = read_stream(wire, case.stream).response
    assert [cut for cut, _ in found] == list(range(found[0][0], len(case.stream) + 1))
    assert found[0][0] in event_ends(case.stream)
    assert {id(response): response.message for _, response in found if response.message != whole.message} == {}
    assert {response.stop for _, response in found} == {whole.stop}


@streams
def test_the_events_tell_the_same_as_the_result(case: Case) -> None:
    """Deltas add up to the parts, the last PartDone of an index is the part of the answer, Done comes last and once."""
    reading = read_stream(case.wire(), case.stream)
    seen = reading.seen
    assert text_of(reading.events, TextDelta) == (seen.text if seen else "")
    assert text_of(reading.events, ReasoningDelta) == (seen.reasoning if seen else "")
    if not case.succeeds:
        assert not any(isinstance(event, Done) for event in reading.events)
        return
    assert [event for event in reading.events if isinstance(event, Done)] == [Done(reading.response)]
    assert isinstance(reading.events[-1], Done)
    done = {event.index: event.part for event in reading.events if isinstance(event, PartDone)}
    assert [part for part in reading.response.message.parts if is_token(part) and part not in done.values()] == []
    shown = [
        part for part in reading.response.message.parts if isinstance(part, (Text, Reasoning, ToolCall)) and not part.inside
    ]
    assert [part for _, part in sorted(done.items()) if part in shown] == shown
    for event in reading.events:
        if isinstance(event, ArgumentsDelta):
            assert event.call_id == as_call(done[event.index]).call_id


def as_call(part: Part) -> ToolCall:
    assert isinstance(part, ToolCall)
    return part


def text_of(events: list[Event], kind: type[TextDelta] | type[ReasoningDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


@streams
def test_unknown_events_and_comments_are_harmless(case: Case) -> None:
    plain = read_stream(case.wire(), case.stream.replace(b"\r\n", b"\n"))
    noisy = read_stream(case.wire(), with_unknown_events(case.stream))
    assert noisy.line() == plain.line()
    assert noisy.events == plain.events


@streams
def test_unknown_fields_in_a_stream_are_harmless(case: Case) -> None:
    assert unmet(case, read_stream(case.wire(), map_data(case.stream, with_unknown_fields))) == []


@on("response.json")
def test_unknown_fields_in_a_whole_answer_are_harmless(case: Case) -> None:
    payload = with_unknown_fields(case.json("response.json"))
    assert unmet(case, read_whole(case.wire(), json.dumps(payload).encode())) == []


@answered
def test_a_stop_reason_that_nobody_knows_is_other_and_never_end(case: Case) -> None:
    """The vendor's word is replaced wherever it stands, in the name of the terminal event too: then the stream has no
    end."""
    word = (case.expect["raw_stop"] or "no stop reason").encode()
    for name in ("stream.sse", "response.json"):
        if not case.has(name):
            continue
        data = re.sub(rb'(["._])' + word + rb'(?=["\r\n])', rb"\1invented_later", (case.folder / name).read_bytes())
        reading = read_stream(case.wire(), data) if name == "stream.sse" else read_whole(case.wire(), data)
        if not isinstance(reading.outcome, LessonError):
            assert reading.outcome.stop in (StopReason.OTHER, StopReason.REFUSAL)


@every_wire
def test_the_cases_show_every_kind_of_stop(wire_name: str) -> None:
    shown = {case.expect["stop"] for case in cases("expect.json") if case.wire_name == wire_name and case.succeeds}
    assert {"end", "length", "tool_use"} <= shown <= {*StopReason, None}


# ---------------------------------------------------------------- calls


@on()
def test_no_call_of_a_failed_or_shortened_answer_can_be_run(case: Case) -> None:
    """Arguments are whole, or there are none: half of them never look like a call."""
    for call in case.expect["tool_calls"]:
        assert (call["args"] is None) == (call["args_error"] is not None)


@on("stream.sse")
def test_calls_have_ids_of_their_own(case: Case) -> None:
    seen = read_stream(case.wire(), case.stream).seen
    ids = [call.call_id for call in seen.tool_calls] if seen else []
    assert all(ids)
    assert len(set(ids)) == len(ids)


# ---------------------------------------------------------------- replay


def next_request(case: Case, response: Response, *, stored: bool = False) -> JSON:
    """The body of the next turn: the question, the answer as it came, results for its calls, or thanks."""
    asked, _ = case.request()
    results: list[Part] = [ToolResult(call_id=call.call_id, content="4 °C, rain") for call in response.tool_calls]
    messages = [*asked.messages, response.message, Message(role="user", parts=results or [Text(text="Thank you.")])]
    if stored:
        messages = load_history(dump_history(messages))
    return case.wire().encode(asked.replace(messages=messages)).body


@answered
def test_what_was_decoded_goes_back_as_it_came(case: Case) -> None:
    """Every text of some length in the raw JSON of every part stands in the next request, save what `left_out` names."""
    response = read(case)
    sent = {text for _, text in leaves(next_request(case, response))}
    replayed = [part.raw for part in response.message.parts if not (part.inside or is_token(part))]
    lost = {text for raw in replayed for _, text in leaves(raw) if len(text) >= 16} - sent
    assert lost == set(case.expect.get("left_out", {}))


def is_token(part: Part) -> bool:
    """A continuation token goes back in another place, and only while the answer is the last message."""
    return isinstance(part, Opaque) and part.kind == "continuation"


@answered
def test_a_store_in_between_changes_nothing(case: Case) -> None:
    response = read(case)
    assert compact(next_request(case, response, stored=True)) == compact(next_request(case, response))


@answered
def test_encoding_changes_nothing_in_the_history(case: Case) -> None:
    response = read(case)
    before = response.model_dump_json()
    next_request(case, response)
    assert response.model_dump_json() == before


# ---------------------------------------------------------------- keys


@every_wire
def test_a_key_is_in_no_repr_no_text_and_no_error(wire_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given_key = WIRES[wire_name]("m", api_key=KEY)
    for variable in WIRES[wire_name].key_variables:
        monkeypatch.setenv(variable, KEY)
    from_environment = WIRES[wire_name]("m")
    for wire in (given_key, from_environment):
        sent = wire.encode(Request(messages="Hi"), stream=True)
        assert any(KEY in value for value in sent.headers.values())
        assert KEY not in sent.url
        shown: list[Any] = [wire, sent, sent.safe_headers(), wire.decoder(), vars(wire), wire.decode_error(401, {}, b"{}")]
        assert not any(KEY in repr(thing) or KEY in str(thing) for thing in shown)


# ---------------------------------------------------------------- encode: rules for all


EVERYTHING = Request(
    messages="What is the weather in Oslo?", system="Be brief.", max_tokens=500, stop=["END"], parallel=False,
    tools=[Tool(name="get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})],
)  # fmt: skip


def wire_for(wire_name: str) -> WireFormat:
    return WIRES[wire_name]("some-model", api_key=KEY)


@every_wire
@pytest.mark.parametrize("messages", [[], [Message(role="user", parts=[])], [Message.user("")]])
def test_a_conversation_without_any_content_is_refused(wire_name: str, messages: list[Message]) -> None:
    """Every vendor answers 400 (docs/wire); the message here says it before anything is sent."""
    with pytest.raises(InvalidRequest, match="nothing to send"):
        wire_for(wire_name).encode(Request(messages=messages))


@every_wire
@pytest.mark.parametrize("stream", [False, True])
def test_extra_is_merged_last_and_deep(wire_name: str, stream: bool) -> None:
    plain = wire_for(wire_name).encode(EVERYTHING, stream=stream).body
    field = next(iter(plain))
    asked = EVERYTHING.replace(extra={wire_name: {field: "replaced", "invented_later": {"a": 1}}})
    body = wire_for(wire_name).encode(asked, stream=stream).body
    assert body == {**plain, field: "replaced", "invented_later": {"a": 1}}


@every_wire
def test_the_extra_of_another_wire_is_ignored(wire_name: str) -> None:
    others = {name: {"invented_later": 1} for name in WIRES if name != wire_name}
    assert "invented_later" not in wire_for(wire_name).encode(EVERYTHING.replace(extra=others)).body


@every_wire
def test_encoding_twice_gives_the_same_bytes(wire_name: str) -> None:
    assert wire_for(wire_name).encode(EVERYTHING).content == wire_for(wire_name).encode(EVERYTHING).content


@every_wire
def test_the_words_of_a_request_are_in_the_body(wire_name: str) -> None:
    sent = wire_for(wire_name).encode(EVERYTHING).content.decode()
    for words in ("What is the weather in Oslo?", "Be brief.", "get_weather", "500"):
        assert words in sent


@every_wire
def test_a_lone_surrogate_can_be_sent_and_read_back(wire_name: str) -> None:
    sent = wire_for(wire_name).encode(Request(messages="half an emoji: \ud83d")).content
    assert "half an emoji: \ud83d" in [text for _, text in leaves(read_json(sent))]


# ---------------------------------------------------------------- fields of the wrong type

WRONG: tuple[Any, ...] = (None, 0, 1.5, True, "", "x", "\ud83d", [], [None], ["x"], [{}], {}, {"a": 1}, {"type": None})


def mutants(data: bytes, count: int, seed: str) -> Iterator[list[ServerSentEvent]]:
    """The events of a stream, each time with one field of one event lost or of a type that no one expects there."""
    events, chance = sse_events(data), random.Random(seed)
    for _ in range(count):
        number = chance.randrange(len(events))
        try:
            payload = deepcopy(read_json(events[number].data))
        except ValueError:
            continue
        holder, key = chance.choice(list(places(payload)))
        if chance.random() < 0.2:
            del holder[key]
        else:
            holder[key] = chance.choice(WRONG)
        broken = ServerSentEvent(events[number].event, json.dumps(payload).encode())
        yield [*events[:number], broken, *events[number + 1 :]]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (object or list, key) inside a JSON value."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from places(item)


def shown(events: list[Event]) -> list[Any]:
    return [event.text for event in events if isinstance(event, (TextDelta, ReasoningDelta, ArgumentsDelta))]


@streams
def test_a_field_of_the_wrong_type_never_gives_anything_but_an_error_of_ours_or_an_answer(case: Case) -> None:
    """No foreign exception, nothing but text in a piece of text, and an answer that can be stored and sent back."""
    for events in mutants(case.stream, 25, str(case)):
        decoder, seen = case.wire().decoder(), []
        try:
            for sse in events:
                seen += decoder.feed(sse)
            seen += decoder.close()
        except LessonError:
            pass
        else:
            message = decoder.result().message
            assert load_history(dump_history([message])) == [message]
            results = [ToolResult(call_id=call.call_id, content="x") for call in message.tool_calls if call.args is not None]
            asked = [Message.user("q"), message, Message.user(*(results or ["go on"]))]
            try:
                assert case.wire().encode(Request(messages=asked, model="m")).content
            except LessonError:
                assert any(call.args is None for call in message.tool_calls)
        assert all(isinstance(text, str) for text in shown(seen))


@pytest.mark.parametrize("wire_name", WIRES)
def test_no_call_of_a_cut_stream_can_be_run_not_even_a_whole_one(wire_name: str) -> None:
    """Cut anywhere in two calls: what had arrived is shown, and none of it is runnable."""
    case = Case(TESTDATA / wire_name / "parallel_calls")
    decoder = case.wire().decoder()
    seen: list[ToolCall] = []
    for event in sse_events(case.stream):
        decoder.feed(event)
        if not decoder.done and (partial := decoder.partial()):
            seen += partial.message.tool_calls
    assert seen
    assert [call for call in seen if call.args is not None or not call.args_error] == []
