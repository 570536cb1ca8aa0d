"""What the wire formats share: reading JSON, arguments, headers, errors and waits, and the frame of a stream decoder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonlib.errors import APIError, IncompleteStream, InvalidRequest, LessonError, ProtocolError
from lessonlib.sse import ServerSentEvent
from lessonlib.types import JSON, Done, Event, Message, Request, Response, StopReason, TextDelta
from lessonlib.wire import WIRES
from lessonlib.wire.base import (
    CUT,
    NOTHING,
    ErrorDetails,
    HTTPRequest,
    StreamDecoder,
    Table,
    WireFormat,
    as_count,
    as_dict,
    as_list,
    as_text,
    compact,
    cut_call,
    error_object,
    first_env,
    function_call,
    merge_extra,
    method_name,
    parse_args,
    read_json,
    retry_after,
    retryable_status,
    should_retry,
    word,
)

# ---------------------------------------------------------------- JSON and arguments


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        ('{"a": "\u6771"}', {"a": "東"}),
        (b'"\\ud83d"', "\ud83d"),  # a lone surrogate: the fast reader refuses it
        ('{"a": "\ud83d"}', {"a": "\ud83d"}),  # the same within text that has been decoded once: arguments
        (b'"\xff"', "�"),  # no UTF-8: replaced, as the rules of event streams say
        (b"[1e400]", [float("inf")]),
        (b"Infinity", float("inf")),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"[" * 300 + b"]" * 300, json.loads("[" * 300 + "]" * 300)),
    ],
)
def test_json_is_read_also_where_the_fast_reader_refuses(data: bytes | str, value: Any) -> None:
    assert read_json(data) == value


@pytest.mark.parametrize("data", [b"", b"{", b"{'a': 1}", b"nul", b"[DONE]", b"[" * 100_000, b'{"a":1}{"b":2}', "\ufeff{}"])
def test_what_is_no_json_is_a_value_error(data: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(data)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', '{"a": NaN, "b": "\\ud83d"}'])
def test_constants_that_json_does_not_have_can_be_refused(text: str) -> None:
    read_json(text)
    with pytest.raises(ValueError, match=r"."):
        read_json(text, constants=False)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "{}", " {} "])
def test_blank_arguments_are_an_empty_object(text: str) -> None:
    assert parse_args(text) == ({}, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"city": "Oslo"', "not valid JSON"),
        ('{"city": Oslo}', "not valid JSON"),
        ('{"city": "Oslo",}', "not valid JSON"),
        ("{'city': 'Oslo'}", "not valid JSON"),
        ('```json\n{"city": "Oslo"}\n```', "not valid JSON"),
        ('{"height": NaN}', "not valid JSON"),
        ('["Oslo"]', "not an object"),
        ('"{}"', "not an object"),
        ("null", "not an object"),
        ("[" + "1," * 500 + "1]", "…"),
    ],
)
def test_arguments_that_are_no_object_are_never_repaired(text: str, problem: str) -> None:
    args, why = parse_args(text)
    assert args is None
    assert problem in (why or "")


@pytest.mark.parametrize(
    ("given", "args", "raw_args"),
    [
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        ({"a": 1}, {"a": 1}, '{"a":1}'),
        ("", {}, ""),
        ("{", None, "{"),
        ([1], None, "[1]"),
        (None, None, "null"),
    ],
)
def test_a_call_from_a_text_or_an_object(given: Any, args: Any, raw_args: str) -> None:
    call = function_call("1", "f", given, wire="w", raw={"x": 1})
    assert [call.call_id, call.name, call.args, call.raw_args, call.wire, call.raw] == [
        "1",
        "f",
        args,
        raw_args,
        "w",
        {"x": 1},
    ]
    assert (call.args_error is None) == (args is not None)


def test_a_cut_call_cannot_be_run_and_is_not_replayed() -> None:
    call = cut_call("1", "f", '{"a": 1}', wire="w")
    assert [call.args, call.args_error, call.raw_args, call.raw] == [None, CUT, '{"a": 1}', None]


def test_values_of_the_wrong_type_are_read_as_nothing() -> None:
    assert [as_dict(value) for value in ({"a": 1}, None, [], "x")] == [{"a": 1}, {}, {}, {}]
    assert [as_list(value) for value in ([1], None, {}, "x")] == [[1], [], [], []]
    assert [as_text(value) for value in ("x", None, 1, [])] == ["x", "", "", ""]
    assert [as_count(value) for value in (0, 7, None, True, "7", 7.5)] == [0, 7, None, None, None, None]
    assert [as_count(7.0), type(as_count(7.0)), as_count(float("nan"))] == [7, int, None]
    assert [word(value) for value in ("x", "", None, 429, True, [])] == ["x", None, None, "429", None, None]


def test_extra_is_merged_deep_and_replaces_everything_but_objects() -> None:
    body = {"a": {"b": 1, "c": [1]}, "d": 1}
    assert merge_extra(body, {"a": {"c": [2], "e": {"f": 1}}, "d": None}) == {
        "a": {"b": 1, "c": [2], "e": {"f": 1}},
        "d": None,
    }
    assert body == {"a": {"b": 1, "c": [1]}, "d": 1}


# ---------------------------------------------------------------- requests


def http_request(body: JSON, **headers: str) -> HTTPRequest:
    return HTTPRequest("POST", "https://h.example/v1", headers, body)


def test_a_body_is_compact_utf_8() -> None:
    assert http_request({"a": "東 \u2028", "b": [1, 2.5]}).content == '{"a":"東 \u2028","b":[1,2.5]}'.encode()


def test_half_an_emoji_is_sent_as_an_escape() -> None:
    """Cutting a tool's output in the middle of a character leaves one; as raw bytes it would be no UTF-8."""
    assert http_request({"a": "東\ud83d"}).content == b'{"a":"\\u6771\\ud83d"}'


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "half \ud83d".encode("utf-16", "surrogatepass"), object(), {1, 2}]
)
def test_what_json_cannot_hold_is_refused_before_it_is_sent(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="not JSON"):
        _ = http_request({"a": ["\ud83d", value]}).content


def test_a_request_shows_no_secrets_and_not_all_of_its_body() -> None:
    request = http_request({"text": "x" * 5_000}, **{"X-Api-Key": "sk-1", "authorization": "Bearer sk-2", "accept": "*/*"})
    assert request.safe_headers() == {"X-Api-Key": "***", "authorization": "***", "accept": "*/*"}
    assert "sk-" not in repr(request)
    assert len(repr(request)) < 500


def test_the_first_variable_that_is_set_and_not_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDE_A", " ")
    monkeypatch.setenv("TIDE_B", " key ")
    monkeypatch.setenv("TIDE_C", "other")
    assert first_env("TIDE_NONE", "TIDE_A", "TIDE_B", "TIDE_C") == "key"
    assert first_env("TIDE_NONE", "TIDE_A") is None


# ---------------------------------------------------------------- a wire format and a decoder to try the frame with


class Toy(WireFormat):
    """start, any number of `word` events, end; `fail` is an error."""

    name: ClassVar[str] = "toy"
    provider: ClassVar[str] = "toys"
    key_variables: ClassVar[tuple[str, ...]] = ("TOY_API_KEY", "TOY_OTHER_API_KEY")
    base_url_variables: ClassVar[tuple[str, ...]] = ("TOY_BASE_URL",)
    default_base_url: ClassVar[str] = "https://toys.example"

    def path(self, model: str, stream: bool) -> str:
        return f"/{model}"

    def auth(self) -> dict[str, str]:
        return {"x-api-key": self._key.reveal()} if self._key else {}

    def body(self, request: Request, model: str, stream: bool) -> JSON:
        return {"model": model, "options": {"a": 1}}

    def decoder(self) -> StreamDecoder:
        return ToyDecoder(self)

    def error_details(self, status: int, payload: Any) -> ErrorDetails:
        error = error_object(payload)
        return ErrorDetails(
            message=as_text(error.get("message")), type=word(error.get("type")), retryable=retryable_status(status)
        )


class ToyDecoder(StreamDecoder):
    TABLE: ClassVar[Table] = {
        "WAIT": {"start": "OPEN", "fail": "FAILED"},
        "OPEN": {"word.said": "OPEN", "end": "DONE", "fail": "FAILED", "tick": "OPEN"},
    }

    def __init__(self, wire: WireFormat) -> None:
        super().__init__(wire)
        self.words: list[str] = []

    def kind(self, payload: Any, sse: ServerSentEvent) -> str:
        kind: str = payload["type"]
        return kind

    def _on_word_said(self, payload: JSON) -> Sequence[Event]:
        self.words.append(payload["text"])
        return (TextDelta(0, payload["text"]),)

    def _on_end(self, payload: JSON) -> Sequence[Event]:
        self._response = self.build(finished=True)
        return (Done(self._response),)

    def _on_fail(self, payload: JSON) -> Sequence[Event]:
        raise self.wire.api_error(200, payload)

    def build(self, *, finished: bool) -> Response:
        return Response(message=Message.assistant("".join(self.words)), stop=StopReason.END)


class StrictDecoder(ToyDecoder):
    TABLE: ClassVar[Table] = {**ToyDecoder.TABLE, "DONE": {"tick": "DONE"}}


def event(payload: Any, name: str = "message") -> ServerSentEvent:
    return ServerSentEvent(name, payload if isinstance(payload, bytes) else json.dumps(payload).encode())


def said(text: Any) -> dict[str, Any]:
    return {"type": "word.said", "text": text}


START, END = {"type": "start"}, {"type": "end"}


def fed(*payloads: Any, kind: type[StreamDecoder] = ToyDecoder) -> StreamDecoder:
    decoder = kind(Toy())
    for payload in payloads:
        decoder.feed(payload if isinstance(payload, ServerSentEvent) else event(payload))
    return decoder


def failed(*payloads: Any, kind: type[StreamDecoder] = ToyDecoder) -> LessonError:
    decoder = fed(*payloads[:-1], kind=kind)
    last = payloads[-1] if isinstance(payloads[-1], ServerSentEvent) else event(payloads[-1])
    with pytest.raises(LessonError) as caught:
        decoder.feed(last)
    assert decoder.state == "FAILED"
    assert list(decoder.feed(event(END))) == []
    return caught.value


def test_a_comment_that_a_gateway_made_an_event_of_is_ignored() -> None:
    """`data: : OPENROUTER PROCESSING` (mnfst/llm-gateway #2053)."""
    decoder = fed(event(b": OPENROUTER PROCESSING"), START, event(b" : ping"), said("Hi"), event(b":"), END)
    assert decoder.result().text == "Hi"


# ---------------------------------------------------------------- a wire format


def test_settings_come_from_the_arguments_then_the_environment_then_the_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [Toy().base_url, Toy().has_key] == ["https://toys.example", False]
    monkeypatch.setenv("TOY_OTHER_API_KEY", " other ")
    monkeypatch.setenv("TOY_BASE_URL", "https://env.example/")
    assert Toy().encode(Request(messages="Hi", model="m")).headers["x-api-key"] == "other"
    assert Toy().base_url == "https://env.example"
    assert Toy(base_url="http://localhost:1/x/").base_url == "http://localhost:1/x"
    assert [Toy(api_key="").has_key, Toy(api_key=" ").has_key, Toy(api_key="k").has_key] == [False, False, True]


@pytest.mark.parametrize(
    "base_url", ["https://user:secret@h.example", "https://h.example/?key=secret", "https://h.example/#secret"]
)
def test_a_base_url_carries_no_secret_and_the_refusal_does_not_repeat_it(base_url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Toy(base_url=base_url)
    assert "secret" not in str(caught.value)


def test_an_encoded_request() -> None:
    request = Request(messages="Hi", extra={"toy": {"options": {"b": 2}}, "openai-chat": {"x": 1}})
    encoded = Toy("m", api_key="k", headers={"X-Beta": "1"}).encode(request, stream=True)
    assert encoded == HTTPRequest(
        "POST",
        "https://toys.example/m",
        {"content-type": "application/json", "x-api-key": "k", "x-beta": "1", "accept": "text/event-stream"},
        {"model": "m", "options": {"a": 1, "b": 2}},
    )
    assert Toy("m").encode(request.replace(model="other")).url == "https://toys.example/other"
    assert Toy("m", headers={"Accept": "*/*", "X-API-KEY": "mine"}, api_key="k").encode(request, stream=True).headers == {
        "content-type": "application/json",
        "x-api-key": "mine",
        "accept": "*/*",
    }


def test_extra_for_no_wire_format_is_a_mistake() -> None:
    with pytest.raises(InvalidRequest, match="'anthropic' is none"):
        Toy("m").encode(Request(messages="Hi", extra={"anthropic": {"x": 1}}))


def test_no_repr_shows_the_key() -> None:
    wire = Toy("m", api_key="sk-secret")
    assert "secret" not in f"{wire!r} {wire} {vars(wire)} {wire.encode(Request(messages='Hi'))}"


# ---------------------------------------------------------------- errors and waits


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Tue, 03 Nov 2026 05:10:10 GMT"}, 10.0),
        ({"retry-after": "Tue, 03 Nov 2026 05:09:50 GMT"}, 0.0),
        ({"retry-after": "Tue, 03 Nov 2026 05:10:10"}, 10.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after-ms": "-250"}, None),
    ],
)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    """Now is Tue, 03 Nov 2026 05:10:00 GMT."""
    assert retry_after(headers, now=lambda: 1793682600.0) == seconds


def test_which_statuses_say_that_a_retry_can_help() -> None:
    assert [status for status in range(400, 600) if retryable_status(status)] == [
        408, 409, 429, 500, *range(502, 600),
    ]  # fmt: skip


def test_what_the_server_says_about_retrying() -> None:
    told = [should_retry({"x-should-retry": value}) for value in ("true", " True ", "false", "maybe", "")]
    assert [*told, should_retry({})] == [True, True, False, None, None, None]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"error": {"message": "m"}}, "m"),
        ({"error": "m"}, "m"),
        ({"message": "m"}, "m"),
        ({"detail": "m"}, "m"),
        ({"detail": [{"loc": ["body"], "msg": "m"}]}, '[{"loc":["body"],"msg":"m"}]'),
        ([{"error": {"message": "m"}}], "m"),
        ({"error": None, "message": "m"}, "m"),
        ([], None),
        (None, None),
        ("m", None),
    ],
)
def test_the_shapes_in_which_services_describe_an_error(payload: Any, message: str | None) -> None:
    assert error_object(payload).get("message") == message


def test_an_error_takes_the_headers_words_over_its_own() -> None:
    headers = {"X-Should-Retry": "false", "Retry-After": "3", "X-Request-ID": "req_1"}
    error = Toy().decode_error(500, headers, b'{"error": {"message": "m", "type": "t"}}')
    assert [error.status, error.message, error.type, error.retryable, error.retry_after, error.request_id] == [
        500, "m", "t", False, 3.0, "req_1",
    ]  # fmt: skip
    assert error.body == {"error": {"message": "m", "type": "t"}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "HTTP 502 without a body"),
        (b" \n", "HTTP 502 without a body"),
        (b"<h1>Bad\n  Gateway</h1>", "<h1>Bad Gateway</h1>"),
        (b"{}", "HTTP 502"),
        (b'"text"', '"text"'),
        (b"x" * 5_000, "x" * 300),
    ],
)
def test_an_error_body_that_is_no_error_object_is_quoted(body: bytes, message: str) -> None:
    assert Toy().decode_error(502, {}, body).message == message


# ---------------------------------------------------------------- a stream decoder


def test_a_stream_from_start_to_end() -> None:
    decoder = fed(START, said("Hel"), said("lo"))
    assert not decoder.done
    assert list(decoder.feed(event(END))) == [Done(decoder.result())]
    assert [decoder.done, decoder.state, decoder.result().text, list(decoder.close())] == [True, "DONE", "Hello", []]


def test_the_name_of_an_event_gives_the_name_of_its_method() -> None:
    assert method_name("response.output_item.done") == "_on_response_output_item_done"


def test_an_event_without_a_method_only_moves_the_state() -> None:
    decoder = fed(START)
    assert [decoder.state, list(decoder.feed(event({"type": "tick"}))), decoder.state] == ["OPEN", [], "OPEN"]


def test_an_event_that_the_table_does_not_know_is_ignored_and_counted() -> None:
    assert fed(START, {"type": "new"}, {"type": "new"}, said("a"), END).ignored == {"new": 2}


def test_a_known_event_in_the_wrong_state_is_a_protocol_error() -> None:
    error = failed(START, START)
    assert isinstance(error, ProtocolError)
    assert str(error) == "event 'start' must not come in state OPEN"


def test_after_the_end_nothing_is_read_unless_the_table_says_what_may_come() -> None:
    assert fed(START, END, END, b"no JSON", said("x")).result().text == ""
    assert fed(START, END, {"type": "tick"}, {"type": "new"}, kind=StrictDecoder).done
    assert isinstance(failed(START, END, END, kind=StrictDecoder), ProtocolError)


@pytest.mark.parametrize("payload", [b'{"type": "wor', b"plain words", b"[1", b'{"a": }'])
def test_data_that_is_no_json_is_a_protocol_error_that_quotes_it(payload: bytes) -> None:
    error = failed(START, payload)
    assert isinstance(error, ProtocolError)
    assert payload.decode() in str(error)


@pytest.mark.parametrize("payload", [{"type": "word.said"}, {}, [], None, 1, "x", {"type": ["x"]}, said(3), said(None)])
def test_an_event_of_the_wrong_shape_is_a_protocol_error_and_no_crash(payload: Any) -> None:
    error = failed(START, said("a"), payload) if payload not in (said(3), said(None)) else None
    if error is None:  # the toy joins its words at the end
        decoder = fed(START, payload)
        with pytest.raises(ProtocolError):
            decoder.feed(event(END))
        return
    assert isinstance(error, ProtocolError)
    assert error.partial is not None
    assert error.partial.text == "a"


def test_an_error_inside_the_stream_carries_what_had_arrived() -> None:
    error = failed(START, said("Half"), {"type": "fail", "error": {"message": "busy"}})
    assert isinstance(error, APIError)
    assert [error.message, error.status, error.partial and error.partial.text] == ["busy", 200, "Half"]


def test_an_error_event_in_plain_words_is_an_error_of_the_service() -> None:
    error = failed(START, event(b"upstream connect error", name="error"))
    assert isinstance(error, APIError)
    assert error.message == "upstream connect error"


@pytest.mark.parametrize("data", [b"", b" ", b"\n"])
def test_an_event_without_data_says_nothing(data: bytes) -> None:
    assert fed(START, data, END).done


@pytest.mark.parametrize("marker", [b"[DONE]", b"[DONE] "])
def test_the_end_marker_is_no_success_by_itself(marker: bytes) -> None:
    assert isinstance(failed(START, marker), IncompleteStream)
    assert fed(START, END, marker).done


def test_the_end_of_the_body_is_never_success() -> None:
    decoder = fed(START, said("Half"))
    with pytest.raises(IncompleteStream, match="state OPEN, before the protocol's own end") as caught:
        decoder.close()
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Half"
    assert list(decoder.close()) == []


def test_there_is_no_result_before_the_end() -> None:
    with pytest.raises(IncompleteStream, match="state OPEN") as caught:
        fed(START, said("Half")).result()
    assert caught.value.partial is not None


@pytest.mark.parametrize(
    "stray",
    [b'{"error": {"message": "busy"}}\n', b'{"error":\n{"message": "busy"}}\n', b'junk\n[{"error": {"message": "busy"}}]\n'],
)
def test_a_bare_error_line_between_the_events_is_raised_at_the_end(stray: bytes) -> None:
    with pytest.raises(APIError, match="busy"):
        fed(START).close(stray)


@pytest.mark.parametrize("stray", [b"junk\n", b'{"error": null}\n', b"[]\n", b"1\n"])
def test_other_stray_lines_are_not(stray: bytes) -> None:
    with pytest.raises(IncompleteStream):
        fed(START).close(stray)


def test_a_decoder_of_a_wire_that_answers_nothing_has_no_partial() -> None:
    class Broken(ToyDecoder):
        def build(self, *, finished: bool) -> Response:
            raise KeyError("not yet")

    assert fed(START, kind=Broken).partial() is None


def test_a_subclass_without_a_table_of_its_own_shares_its_parents() -> None:
    class Louder(StrictDecoder):
        pass

    assert fed(START, END, {"type": "tick"}, kind=Louder).done


# ---------------------------------------------------------------- all wire formats: whatever comes, no crash

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
FIELDS = """type error content message choices output candidates steps usage index delta parts id content_block response
    item step event_type interaction role model status code text"""
KINDS = """message_start content_block_start content_block_delta message_delta message_stop error text tool_use
    response.created response.output_item.added response.completed function_call interaction.created step.start step.delta
    interaction.completed STOP stop tool_calls"""
PAYLOADS = st.recursive(
    st.one_of(SCALARS, st.sampled_from(KINDS.split())),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS.split()), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", WIRES)
@given(payload=PAYLOADS)
def test_no_whole_answer_makes_a_decoder_crash(name: str, payload: Any) -> None:
    wire = WIRES[name](model="m", api_key="k")
    assert wire.recognises(payload) in (0, 1, 2)
    try:
        response = wire.decode(payload)
    except LessonError:
        return
    assert response.wire == name


@pytest.mark.parametrize("name", WIRES)
@given(payloads=st.lists(PAYLOADS, max_size=4))
def test_no_stream_makes_a_decoder_crash(name: str, payloads: list[Any]) -> None:
    decoder = WIRES[name](model="m", api_key="k").decoder()
    try:
        for payload in payloads:
            decoder.feed(event(payload))
        decoder.close()
    except LessonError:
        assert not decoder.done
        return
    assert decoder.result().wire == name


@pytest.mark.parametrize("name", WIRES)
@given(status=st.integers(400, 599), payload=PAYLOADS, body=st.binary(max_size=20), as_json=st.booleans())
def test_no_error_body_makes_a_decoder_crash(name: str, status: int, payload: Any, body: bytes, as_json: bool) -> None:
    headers: Mapping[str, str] = {"retry-after": body.decode("latin-1")}
    error = WIRES[name](model="m", api_key="k").decode_error(
        status, headers, json.dumps(payload).encode() if as_json else body
    )
    assert error.status == status
    assert error.message


def test_what_is_shared_is_exported() -> None:
    assert compact({"a": "東"}) == '{"a":"東"}'
    assert NOTHING == ()
