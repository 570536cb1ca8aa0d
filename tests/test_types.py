"""The vocabulary: what may be written, what is said when something else is, and that storing loses nothing."""

from __future__ import annotations

import base64
import copy
import json
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from lessonlib.types import (
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    Response,
    StopReason,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    dump_history,
    load_history,
)

# ---------------------------------------------------------------- JSON round trips

TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)  # lone surrogates too: models send them
NUMBERS = st.one_of(
    st.integers(), st.integers(10**30, 10**31), st.floats(allow_nan=False), st.just(math.inf), st.just(-0.0)
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
ORIGIN = {
    "wire": st.one_of(st.none(), st.just("anthropic-messages")),
    "raw": st.one_of(st.none(), OBJECTS),
    "inside": st.booleans(),
}
TEXT_PARTS = st.builds(Text, text=TEXTS, **ORIGIN)
IMAGES = st.builds(Image, url=TEXTS, **ORIGIN)
ASSISTANT_PARTS = st.one_of(
    TEXT_PARTS,
    IMAGES,
    st.builds(Reasoning, text=TEXTS, **ORIGIN),
    st.builds(ToolCall, call_id=TEXTS, name=TEXTS, args=OBJECTS, raw_args=TEXTS, **ORIGIN),
    st.builds(ToolCall, call_id=TEXTS, name=TEXTS, args=st.none(), args_error=st.just("cut"), **ORIGIN),
    st.builds(Opaque, kind=TEXTS, **ORIGIN),
)
USER_PARTS = st.one_of(
    TEXT_PARTS,
    IMAGES,
    st.builds(
        ToolResult,
        call_id=TEXTS,
        content=st.one_of(TEXTS, st.lists(st.one_of(TEXT_PARTS, IMAGES), max_size=2)),
        is_error=st.booleans(),
        **ORIGIN,
    ),
)
MESSAGES = st.one_of(
    st.lists(ASSISTANT_PARTS, max_size=3).map(lambda parts: Message(role="assistant", parts=parts)),
    st.lists(USER_PARTS, max_size=3).map(lambda parts: Message(role="user", parts=parts)),
)


@given(st.lists(MESSAGES, max_size=4))
def test_a_history_goes_through_json_without_loss(messages: list[Message]) -> None:
    stored = dump_history(messages)
    assert load_history(stored) == messages
    assert load_history(stored.encode("utf-8")) == messages


@given(MESSAGES, OBJECTS)
def test_a_response_goes_through_json_without_loss(message: Message, raw: dict[str, Any]) -> None:
    if message.role == "user":
        message = Message.assistant("a")
    response = Response(id="r", message=message, stop=StopReason.END, usage=Usage(input_tokens=10**20, raw=raw), raw=raw)
    assert Response.model_validate_json(response.model_dump_json()) == response
    assert Response.model_validate_json(response.model_dump_json(indent=2).encode("utf-8")) == response


@given(st.lists(MESSAGES, max_size=2), OBJECTS)
def test_a_request_goes_through_json_without_loss(messages: list[Message], extra: dict[str, Any]) -> None:
    request = Request(
        messages=messages,
        system="s",
        tools=[Tool(name="f", parameters=extra, strict=True), Tool(name="g", kind="custom", format=extra)],
        tool_choice="f",
        parallel=False,
        max_tokens=5,
        reasoning=1024,
        stop=["x"],
        output_schema=extra,
        model="m",
        extra={"anthropic-messages": extra},
    )
    assert Request.model_validate_json(request.model_dump_json()) == request


def test_nan_survives_storage() -> None:
    """Models write it in arguments and logprobs; it is equal to nothing, so it needs a test of its own."""
    message = load_history(dump_history([Message.user(Text(text="a", raw={"x": [math.nan, -math.inf]}))]))[0]
    assert message.parts[0].raw is not None
    first, second = message.parts[0].raw["x"]
    assert math.isnan(first)
    assert second == -math.inf


@pytest.mark.parametrize("depth", [100, 200, 300])
def test_deep_nesting_survives_storage(depth: int) -> None:
    """Deeper than pydantic's own writer goes."""
    raw: dict[str, Any] = {}
    inner = raw
    for _ in range(depth):
        inner["a"] = [{}]
        inner = inner["a"][0]
    message = Message.user(Text(text="a", raw=raw))
    text = message.model_dump_json()
    assert Message.model_validate_json(text).model_dump_json() == text
    assert load_history(dump_history([message]))[0].model_dump_json() == text


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '[{"role":"user","parts":[{"type":"text","text":"a","raw":' + '{"a":' * 100_000]
)
def test_what_is_nested_without_end_is_refused_like_any_other_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|recursion|JSON|EOF"):
        load_history(text)
    with pytest.raises(ValidationError):
        Message.model_validate_json(text)


def test_the_json_text_is_readable_where_it_can_be() -> None:
    assert "東京" in Message.user("東京").model_dump_json()
    assert json.loads(Message.user("half \ud83d").model_dump_json())["parts"][0]["text"] == "half \ud83d"
    assert Message.user("half \ud83d").model_dump_json(indent=1).count("\n") > 5
    assert "wire" not in Message.user("half \ud83d").model_dump_json(exclude_none=True)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"role": "user"}', '{"role": "user", "parts": [], "x": 1}'])
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        Message.model_validate_json(text)


@pytest.mark.parametrize("text", ["", "{", "null", "{}", "[1]", '[{"role": "user"}]'])
def test_what_is_no_history_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_history(text)


def test_records_can_be_copied_and_pickled() -> None:
    message = Message.assistant("a", ToolCall(call_id="1", name="f", args={"x": 1}))
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.deepcopy(message) == message


# ---------------------------------------------------------------- parts


def test_messages_are_written_from_texts_and_parts() -> None:
    picture = Image(url="https://h.example/a.png")
    message = Message.user("What is this?", picture)
    assert message.parts == [Text(text="What is this?"), picture]
    assert Message(role="user", parts=["a", picture]).parts == [Text(text="a"), picture]
    assert Message.model_validate({"role": "user", "parts": ["a", {"type": "text", "text": "b"}]}).text == "ab"


def test_what_a_message_holds_by_kind() -> None:
    call = ToolCall(call_id="1", name="f", args={})
    message = Message.assistant(Reasoning(text="r1"), "a", call, Reasoning(text="r2"), "b", Opaque(kind="x"))
    assert [message.text, message.reasoning, message.tool_calls, message.tool_results] == ["ab", "r1r2", [call], []]
    answer = ToolResult(call_id="1", content=[Text(text="x"), Image(url="https://h.example/a.png"), Text(text="y")])
    assert [Message.user(answer).tool_results, answer.text, ToolResult(call_id="1", content="z").text] == [
        [answer],
        "xy",
        "z",
    ]


def test_a_picture_has_one_source() -> None:
    data = base64.b64encode(b"\x89PNG").decode()
    assert Image.from_bytes(b"\x89PNG", "image/png") == Image(data=data, media_type="image/png")
    with pytest.raises(ValidationError, match="exactly one"):
        Image()
    with pytest.raises(ValidationError, match="exactly one"):
        Image(data=data, url="https://h.example/a.png", media_type="image/png")
    with pytest.raises(ValidationError, match="media_type"):
        Image(data=data)
    with pytest.raises(ValidationError, match="pass it as url="):
        Image(data=f"data:image/png;base64,{data}", media_type="image/png")


def test_a_picture_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "harbour.png"
    path.write_bytes(b"\x89PNG")
    assert Image.from_path(path) == Image.from_path(str(path), "image/png") == Image.from_bytes(b"\x89PNG", "image/png")
    unnamed = tmp_path / "harbour"
    unnamed.write_bytes(b"")
    with pytest.raises(ValueError, match="media_type="):
        Image.from_path(unnamed)


def test_a_call_has_arguments_or_the_reason_why_not() -> None:
    assert ToolCall(call_id="1", name="f", args={"city": "Zürich"}).raw_args == '{"city":"Zürich"}'
    assert ToolCall(call_id="1", name="f", args={}, raw_args="").raw_args == ""
    with pytest.raises(ValidationError, match="args_error"):
        ToolCall(call_id="1", name="f")


def test_raw_json_is_for_its_own_wire_only() -> None:
    part = Text(text="a", wire="x", raw={"a": 1})
    assert [part.raw_for("x"), part.raw_for("y"), Text(text="a").raw_for("x")] == [{"a": 1}, None, None]


def test_an_edited_part_is_no_longer_what_the_vendor_sent() -> None:
    """Else the raw JSON would be replayed, and the edit would be lost in silence."""
    part = Text(text="call me at 555", wire="x", raw={"text": "call me at 555"})
    assert part.model_copy(update={"text": "call me"}).raw is None
    assert part.model_copy(update={"text": "b", "raw": {"text": "b"}}).raw == {"text": "b"}
    assert part.model_copy().raw == part.model_copy(update={"inside": True}).raw == part.raw
    assert part.model_copy(deep=True) == part


@pytest.mark.parametrize("part", [Text(text="a"), Message.user("a"), Usage(), Request(messages="a")])
def test_records_are_frozen_and_take_no_unknown_fields(part: BaseModel) -> None:
    name = next(iter(type(part).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(part, name, None)
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(part).model_validate({**part.model_dump(), "colour": "blue"})


def test_a_repr_shows_no_payloads() -> None:
    part = Image(data="AAAA" * 1000, media_type="image/png", wire="x", raw={"secret": "signature"})
    assert len(repr(part)) < 200


# ---------------------------------------------------------------- what is said when something else was written


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"role": "user", "content": "Hi"}, "Message.user"),
        ({"role": "system", "content": "Be brief."}, "Request(system="),
        ({"role": "developer", "content": "Be brief."}, "Request(system="),
        ({"role": "tool", "tool_call_id": "1", "content": "ok"}, "ToolResult"),
        ({"role": "model", "parts": []}, '"assistant"'),
        ({"role": "user", "parts": [{"type": "input_text", "text": "Hi"}]}, "'text', 'image', 'reasoning'"),
        (
            {"role": "assistant", "parts": [ToolResult(call_id="1")]},
            "ToolResult does not belong into a message of the assistant",
        ),
        ({"role": "user", "parts": [ToolCall(call_id="1", name="f", args={})]}, "ToolCall does not belong"),
        ({"role": "user", "parts": [Reasoning(text="hm")]}, "Reasoning does not belong"),
        ({"role": "user"}, "parts"),
        ({"role": "user", "parts": "Hi"}, "parts"),
        ("Hi", "Message"),
    ],
)
def test_a_message_of_another_library_is_refused_with_what_to_write_here(value: Any, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Message.model_validate(value)
    assert words in str(caught.value)


@pytest.mark.parametrize("content", [{"temperature": 4}, 4, None, True])
def test_a_result_that_is_no_text_is_refused_with_what_to_write(content: Any) -> None:
    with pytest.raises(ValidationError, match=r"json\.dumps"):
        ToolResult(call_id="1", content=content)


def test_a_result_takes_a_list_of_texts_and_pictures() -> None:
    picture = Image(url="https://h.example/a.png")
    assert ToolResult(call_id="1", content=["a", picture]).content == [Text(text="a"), picture]  # type: ignore[list-item]
    with pytest.raises(ValidationError, match="'text', 'image'"):
        ToolResult(call_id="1", content=[ToolCall(call_id="1", name="f", args={})])  # type: ignore[list-item]


# ---------------------------------------------------------------- requests


def test_a_text_or_a_message_is_a_conversation() -> None:
    assert Request(messages="Hi").messages == Request(messages=Message.user("Hi")).messages == [Message.user("Hi")]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tool_choice": "get_wether"}, r"'get_wether' is neither auto, none, required nor one of \['get_weather'\]"),
        ({"tools": [Tool(name="a"), Tool(name="a")]}, "two tools have the same name: 'a'"),
        ({"max_tokens": 0}, "greater than or equal to 1"),
        ({"temperature": 0.2}, "temperature"),
        ({"tools": [{"name": " "}]}, "a tool needs a name"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Request(**{"messages": "Hi", "tools": [Tool(name="get_weather")], **fields})


def test_replacing_fields_checks_them_again() -> None:
    request = Request(messages="Hi", tools=[Tool(name="f")], tool_choice="f")
    changed = request.replace(messages=[Message.user("Ho")], max_tokens=9)
    assert [changed.messages[0].text, changed.max_tokens, changed.tools] == ["Ho", 9, request.tools]
    with pytest.raises(ValidationError, match="neither"):
        request.replace(tools=[])


def test_a_pydantic_model_is_an_output_schema() -> None:
    class Tide(BaseModel):
        height: float

    assert Request(messages="Hi", output_schema=Tide).output_schema == Tide.model_json_schema()  # type: ignore[arg-type]


def test_the_schema_of_a_custom_tool_as_a_function_is_its_one_text() -> None:
    assert Tool(name="f").schema_for_function() == {"type": "object", "properties": {}}
    assert Tool(name="f", kind="custom").schema_for_function()["required"] == ["input"]


# ---------------------------------------------------------------- answers


def test_usage_adds_up_and_what_nobody_reported_stays_unknown() -> None:
    first = Usage(input_tokens=1, output_tokens=2, cached_tokens=0, raw={"a": 1})
    second = Usage(input_tokens=10, reasoning_tokens=5)
    assert first + second == Usage(input_tokens=11, output_tokens=2, cached_tokens=0, reasoning_tokens=5)
    assert Usage() + Usage() == Usage()


def test_a_response_shows_what_its_message_holds() -> None:
    call = ToolCall(call_id="1", name="f", args={})
    response = Response(message=Message.assistant(Reasoning(text="r"), "a", call), stop="tool_use")  # type: ignore[arg-type]
    assert [response.text, response.reasoning, response.tool_calls, response.stop] == ["a", "r", [call], StopReason.TOOL_USE]
    assert f"{response.stop}" == "tool_use"


# ---------------------------------------------------------------- first use


def test_many_threads_may_be_the_first_to_use_a_type() -> None:
    """Validators are built at first use; a server's threads all come at once."""
    code = """
import sys, threading
sys.setswitchinterval(1e-6)
from lessonlib.types import Message, Request, Response, ToolCall
barrier, failures = threading.Barrier(8), []
def use():
    barrier.wait()
    try:
        Request(messages=[Message.user("x")]).model_dump_json()
        Response(message=Message.assistant(ToolCall(call_id="1", name="f", args={})), stop="end").model_dump_json()
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=use) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failures, failures
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


PARTS: list[Part] = [Text(text="a"), Image(url="u"), Opaque(kind="k"), ToolResult(call_id="1"), Reasoning()]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.type)
def test_every_part_says_its_type(part: Part) -> None:
    assert json.loads(part.model_dump_json())["type"] == part.type
