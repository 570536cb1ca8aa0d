"""Learners send wrong things. Whatever comes, the simulator answers as the vendor would, and never with a traceback."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lessonlib.sim import Fault, SimReply, SimRequest, Simulator
from lessonlib.sim.core import Hang, Reset
from lessonlib.wire import WIRES
from tests.sim.requests import second_request

REQUESTS = {wire: second_request(wire) for wire in WIRES}
HEADERS = {
    "authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2026-10-21", "x-goog-api-key": "k",
    "content-type": "application/json",
}  # fmt: skip
PATHS = [
    "/v1/responses", "/v1/responses/input_tokens", "/v1/responses/resp_1", "/v1/responses/resp_1/cancel",
    "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/interactions", "/v1/interactions/v1_1",
    "/v1/models", "/v1/models/x",
    "/v1beta/models/gemini-3.8-flash:generateContent", "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
    "/v1beta/models/gemini-3.8-flash:countTokens", "/v1/models/:generateContent", "/", "", "?", "/v1/v1/messages",
]  # fmt: skip

NAMES = ["type", "role", "content", "text", "id", "call_id", "name", "input", "anyOf", "items", "properties", "required",
         "minimum", "multipleOf", "enum", "$ref", "x"]  # fmt: skip

odd = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8),
        st.sampled_from(["", " ", "text", "user", "assistant", "function", "tool_use", "thinking", "auto", "object", "$ref",
                         "type", "#", 10**40, -(10**40), 1e299, 2**63]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    ),
    max_leaves=5,
)  # fmt: skip

words = st.sampled_from([
    "user", "assistant", "system", "developer", "tool", "function", "model", "text", "image", "input_text", "output_text",
    "input_image", "image_url", "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document",
    "message", "function_call", "function_call_output", "custom_tool_call", "custom", "reasoning", "item_reference",
    "user_input", "model_output", "function_result", "thought", "auto", "any", "required", "none", "AUTO", "get_weather",
    "gpt-4o", "gpt-5.6", "deepseek-v4-pro", "kimi-k2.6", "claude-sonnet-4-5", "claude-opus-4-8", "gemini-2.5-flash",
    "object", "array", "string", "integer", "null", "low", "json_object",
])  # fmt: skip
"""Words that stand in the right place somewhere."""


def read(reply: SimReply) -> bytes:
    try:
        return b"".join(data for _, data in reply.chunks)
    except (Reset, Hang):
        return b""


def answered(reply: SimReply) -> None:
    """An answer, or an error that has a message in the vendor's place."""
    data = read(reply)
    assert reply.status == 200 or 400 <= reply.status < 500 or reply.status == 501
    if reply.status != 200:
        assert json.loads(data)["error"]["message"]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "DELETE", "PUT", "", "OPTIONS"]),
    st.one_of(st.sampled_from(PATHS), st.text(max_size=30)),
    st.sampled_from([HEADERS, {}, {"x-goog-api-key": "k"}, {"authorization": "Bearer"}]),
    st.one_of(st.binary(max_size=60), odd.map(lambda value: json.dumps(value).encode())),
)
@example("POST", "/v1/messages", HEADERS, b"\xed\xa0\x80")
@example("POST", "/v1/%zz/%00", HEADERS, b"")
def test_any_bytes_at_any_path(method: str, path: str, headers: dict[str, str], body: bytes) -> None:
    answered(Simulator().handle(SimRequest(method, path, headers, body)))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything in a JSON value."""
    found = [path]
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        found += places(inner, (*path, step))
    return found


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def spoiled(body: Any, path: tuple[Any, ...], change: str, value: Any) -> Any:
    """The body with the value at a path replaced, removed, doubled or joined by another one."""
    if not path:
        return value if change == "replace" else body
    *way, last = path
    inner = body
    for step in way:
        inner = inner[step]
    if change == "remove":
        del inner[last]
    elif change == "add" and isinstance(inner, dict):
        inner[str(value)] = value
    elif change == "double" and isinstance(inner, list):
        inner.insert(last, copy.deepcopy(inner[last]))
    else:
        inner[last] = value
    return body


@pytest.mark.parametrize("wire", WIRES)
def test_one_thing_wrong_in_a_good_request(wire: str) -> None:
    path, headers, good = REQUESTS[wire]
    good = {**good, **EXTRA[wire]}

    @settings(max_examples=150, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        body = copy.deepcopy(good)
        for _ in range(data.draw(st.integers(1, 3))):
            where = data.draw(st.sampled_from(places(body)))
            change = data.draw(st.sampled_from(["replace", "replace", "remove", "double", "add"]))
            plain = isinstance(at(body, where), str) and data.draw(st.booleans())
            body = spoiled(body, where, change, data.draw(words if plain else odd))
            if not isinstance(body, (dict, list)):
                break
        streamed = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
        target = streamed if data.draw(st.booleans()) else path
        answered(Simulator().handle(SimRequest("POST", target, headers, json.dumps(body).encode())))

    check()


@pytest.mark.parametrize("wire", WIRES)
def test_a_refusal_does_not_repeat_all_that_was_sent(wire: str) -> None:
    """Every text and every name of the request in turn, grown very long."""
    path, headers, good = REQUESTS[wire]
    good = {**good, **EXTRA[wire]}
    for where in places(good):
        for change in ("replace", "add"):
            body = spoiled(copy.deepcopy(good), where, change, "x" * 5000)
            if not isinstance(body, dict):
                continue
            reply = Simulator().handle(SimRequest("POST", path, headers, json.dumps(body).encode()))
            if reply.status != 200:
                assert len(json.loads(read(reply))["error"]["message"]) < 1000, where


TOOLS = ["get_weather"]
EXTRA: dict[str, dict[str, Any]] = {
    "openai-responses": {"tool_choice": {"type": "function", "name": "get_weather"}, "metadata": {"a": "b"}, "store": True,
                         "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
                         "reasoning": {"effort": "low", "summary": "auto"}, "truncation": "auto"},
    "openai-chat": {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}, "n": 2, "stop": ["x"],
                    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}},
    "anthropic-messages": {"tool_choice": {"type": "auto"}, "stop_sequences": ["x"], "cache_control": {"type": "ephemeral"},
                           "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
    "gemini-interactions": {"generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": TOOLS}},
                                                  "stop_sequences": ["x"], "thinking_level": "low"}, "store": True,
                            "response_format": {"type": "text", "mime_type": "application/json",
                                                "schema": {"type": "object"}}},
    "gemini-generate-content": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": TOOLS}},
                                "generationConfig": {"stopSequences": ["x"], "thinkingConfig": {"thinkingLevel": "low"},
                                                     "responseMimeType": "application/json",
                                                     "responseJsonSchema": {"type": "object"}}},
}  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(list(WIRES)), odd)
def test_any_schema_for_a_tool(wire: str, schema: Any) -> None:
    """A schema that is none is refused, one that is gives a call."""
    path, headers, body = copy.deepcopy(REQUESTS[wire])
    names = {"anthropic-messages": "input_schema", "gemini-generate-content": "parametersJsonSchema"}
    tool = body["tools"][0]
    tool = tool.get("function") or tool.get("functionDeclarations", [tool])[0]
    tool.pop("strict", None)
    tool[names.get(wire, "parameters")] = schema if not isinstance(schema, dict) else {"type": "object", **schema}
    for name, first in (("input", 1), ("messages", 2 if wire == "openai-chat" else 1), ("contents", 1)):
        if name in body:
            body[name] = body[name][:first]
    answered(Simulator().handle(SimRequest("POST", path, headers, json.dumps(body).encode())))


@pytest.mark.parametrize("wire", ["openai-responses"])
def test_a_very_long_prompt_of_blanks_is_counted(wire: str) -> None:
    """The tokeniser itself breaks on some millions of blanks."""
    path, headers, body = copy.deepcopy(REQUESTS[wire])
    text = json.dumps(body).replace("What is the weather", "What is" + " " * 3_000_000 + "the weather")
    answered(Simulator().handle(SimRequest("POST", path, headers, text.encode())))


def test_any_fault_on_any_wire_gives_bytes_or_a_broken_connection() -> None:
    for wire in WIRES:
        path, headers, body = REQUESTS[wire]
        for fault in (Fault("cut_bytes", bytes=0), Fault("reset", bytes=0), Fault("hang", bytes=10**9),
                      Fault("chunks", bytes=1), Fault("cut_events", events=0), Fault("error_event", events=0),
                      Fault("content_type", text="")):  # fmt: skip
            reply = Simulator(faults=[fault]).handle(SimRequest("POST", path, headers, json.dumps(body).encode()))
            read(reply)
