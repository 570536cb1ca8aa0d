"""Histories whose raw parts are any JSON at all: what was stored by hand, by another version, or came from a service that
nobody knows. Encoding gives a request that is JSON, or a LessonError; reading an answer or an error gives a Response or a
LessonError. Never another exception.

Raw parts are replayed as they came, so encoders look into JSON that they did not write.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonlib.errors import APIError, LessonError
from lessonlib.types import JSON, Image, Message, Opaque, Part, Reasoning, Request, Response, Text, ToolCall, ToolResult
from lessonlib.wire import WIRES
from tests.contract import KEY, cases
from tests.reliability.mutations import changes, words
from tests.reliability.scale import examples, sample

every_wire = pytest.mark.parametrize("wire_name", WIRES)
thorough = examples(60)

WORDS = sorted(
    {word for case in cases("response.json") for word in words(case.json("response.json"))}
    | {"type", "role", "content", "function", "name", "id", "call_id", "input", "status"}
)
"""The names of fields and the short words in the fixtures: what an encoder looks for."""

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=4)
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(WORDS), anything, max_size=6)


@st.composite
def parts(draw: st.DrawFn, wire: str, role: str) -> Part:
    made_by = draw(st.sampled_from([wire, wire, *WIRES]))
    raw: dict[str, Any] = {"wire": made_by, "raw": draw(objects), "inside": draw(st.booleans())}
    text, call_id = draw(st.text(max_size=3)), draw(st.sampled_from(["c1", "c2", ""]))
    kind = draw(st.sampled_from(KINDS))
    made: list[Part] = [
        Text(text=text, **raw),
        Opaque(kind=draw(st.sampled_from(WORDS)), **raw),
        Image(data="AAAA", media_type="image/png", **raw),
    ]
    if role == "user":
        made += [ToolResult(call_id=call_id, content=text, **raw)]
    else:
        made += [
            Reasoning(text=text, **raw),
            ToolCall(call_id=call_id, name=text, args=draw(objects), kind=kind, **raw),
            ToolCall(call_id=call_id, name=text, args_error="cut", kind=kind, **raw),
        ]
    return draw(st.sampled_from(made))


@st.composite
def histories(draw: st.DrawFn, wire: str) -> list[Message]:
    roles = draw(st.lists(st.sampled_from(["user", "assistant"]), min_size=1, max_size=4))
    return [Message(role=role, parts=draw(st.lists(parts(wire, role), max_size=4))) for role in roles]


KINDS = ["function", "custom", "shell", "local_shell", "apply_patch", "computer", "tool_search", "later"]


def encoded(wire_name: str, messages: list[Message], *, stream: bool = False) -> JSON | LessonError:
    try:
        sent = WIRES[wire_name]("some-model", api_key=KEY).encode(Request(messages=messages), stream=stream)
        assert isinstance(sent.content, bytes)
    except LessonError as error:
        return error
    return sent.body


@every_wire
@thorough
@given(data=st.data())
def test_any_history_is_encoded_or_refused(wire_name: str, data: st.DataObject) -> None:
    messages = data.draw(histories(wire_name))
    encoded(wire_name, messages, stream=data.draw(st.booleans()))


@every_wire
@thorough
@given(data=st.data())
def test_a_part_that_is_alone_is_encoded_or_refused(wire_name: str, data: st.DataObject) -> None:
    """The answer of a call is there, so that nothing else is in the way."""
    part = data.draw(parts(wire_name, "assistant"))
    results = [ToolResult(call_id=part.call_id, content="ok")] if isinstance(part, ToolCall) else []
    encoded(wire_name, [Message.user("Hi"), Message.assistant(part), Message.user(*(results or ["Go on."]))])


@pytest.mark.parametrize("fault", ["remove", "retype"])
@pytest.mark.parametrize("case", [case for case in cases("response.json", "expect.json") if case.succeeds], ids=str)
def test_an_answer_with_one_field_wrong_goes_back_or_is_refused(case: Any, fault: str) -> None:
    """Every field of every whole answer, missing or of another type: what is read of it can be sent again."""
    for path, payload in sample(changes(case.json("response.json"), fault), 12, f"{case} {fault}"):
        try:
            response = case.wire().decode(payload)
        except LessonError:
            continue
        results = [ToolResult(call_id=call.call_id, content="ok") for call in response.tool_calls]
        got = encoded(case.wire_name, [Message.user("Hi"), response.message, Message.user(*(results or ["Go on."]))])
        assert isinstance(got, (dict, LessonError)), path


# ---------------------------------------------------------------- decoders


@every_wire
@thorough
@given(payload=anything | objects)
def test_any_json_is_an_answer_or_an_error(wire_name: str, payload: Any) -> None:
    try:
        response = WIRES[wire_name]("m").decode(payload)
    except LessonError:
        return
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        # a field of the wrong type deep inside: the client turns these into a ProtocolError (exchange.whole_answer)
        return
    assert isinstance(response, Response)


@every_wire
@thorough
@given(payload=anything | objects, status=st.integers(100, 599))
def test_any_json_is_an_error_body(wire_name: str, payload: Any, status: int) -> None:
    error = WIRES[wire_name]("m").api_error(status, payload)
    assert isinstance(error, APIError)
    assert str(error)


def test_the_words_are_those_that_the_encoders_look_for() -> None:
    assert {"tool_use", "function_call", "reasoning", "thoughtSignature", "tool_calls", "encrypted_content"} <= set(WORDS)
