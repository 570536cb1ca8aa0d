"""Each rule of the simulator: a request that keeps it passes, the same one with one thing broken is refused by that rule.

The good requests are second requests of a tool round trip, written by the library's own encoders. `CASES` says for each rule
how to break it; a test asks that no rule is left out.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from lessonlib.sim import SimReply, SimRequest, Simulator, all_rules
from lessonlib.sim.core import MAX_DEPTH
from lessonlib.sim.rules import anthropic, chat, generate_content, google, interactions, openai, responses
from lessonlib.wire import WIRES
from tests.sim.requests import MODELS, body_of, second_request, send

RESPONSES, CHAT, MESSAGES = "openai-responses", "openai-chat", "anthropic-messages"
INTERACTIONS, GENERATE = "gemini-interactions", "gemini-generate-content"
ROOT = Path(__file__).parent.parent.parent

Body = dict[str, Any]
Breach = Callable[[Body, dict[str, str]], object]


@dataclass(frozen=True)
class Case:
    """One way to break one rule. model: another model than the usual one. window: a small context window."""

    wire: str
    rule: str
    breach: Breach
    model: str | None = None
    window: int | None = None

    def __str__(self) -> str:
        return f"{self.wire}-{self.rule}"


# ---------------------------------------------------------------- ways to break a request


def put(key: str, value: Any) -> Breach:
    """Sets a field; a dotted key goes down into objects."""

    def breach(body: Body, headers: dict[str, str]) -> None:
        *path, last = key.split(".")
        for name in path:
            body = body.setdefault(name, {})
        body[last] = value

    return breach


def drop(key: str) -> Breach:
    return lambda body, headers: body.pop(key)


def both(*breaches: Breach) -> Breach:
    return lambda body, headers: [breach(body, headers) for breach in breaches]


def header(name: str, value: str | None) -> Breach:
    return lambda body, headers: headers.pop(name) if value is None else headers.__setitem__(name, value)


def of_type(entries: list[Body], kind: str) -> Body:
    return next(entry for entry in entries if entry.get("type") == kind)


def item(kind: str, key: str, value: Any = ...) -> Breach:
    """Changes (or without a value drops) a field of the first item of a kind."""

    def breach(body: Body, headers: dict[str, str]) -> None:
        entry = of_type(body.get("input") or [block for m in body["messages"] for block in m["content"]], kind)
        entry.pop(key) if value is ... else entry.__setitem__(key, value)

    return breach


def without(kind: str) -> Breach:
    return lambda body, headers: body["input"].remove(of_type(body["input"], kind))


def add(entry: Body, place: int | None = None) -> Breach:
    """One more item or message."""

    def breach(body: Body, headers: dict[str, str]) -> None:
        entries = next(body[name] for name in ("input", "messages", "contents") if name in body)
        entries.insert(len(entries) if place is None else place, entry)

    return breach


def message(place: int, change: Callable[[Body], object]) -> Breach:
    return lambda body, headers: change(body["messages"][place])


def blocks(place: int, change: Callable[[list[Body]], object]) -> Breach:
    """Changes the blocks of one message; a text becomes a list first."""

    def breach(body: Body, headers: dict[str, str]) -> None:
        one = body["messages"][place]
        if isinstance(one["content"], str):
            one["content"] = [{"type": "text", "text": one["content"]}]
        change(one["content"])

    return breach


def parts(place: int, change: Callable[[list[Body]], object]) -> Breach:
    return lambda body, headers: change(body["contents"][place]["parts"])


def tool(change: Callable[[Body], object]) -> Breach:
    return lambda body, headers: change(body["tools"][0])


def function(change: Callable[[Body], object]) -> Breach:
    return lambda body, headers: change(body["tools"][0]["functionDeclarations"][0])


def reasoning_last(body: Body, headers: dict[str, str]) -> None:
    reasoning = of_type(body["input"], "reasoning")
    body["input"].remove(reasoning)
    body["input"].append(reasoning)


def output_first(body: Body, headers: dict[str, str]) -> None:
    body["input"].insert(0, body["input"].pop())


def answered_by_item_id(body: Body, headers: dict[str, str]) -> None:
    of_type(body["input"], "function_call_output")["call_id"] = of_type(body["input"], "function_call").get("id", "fc_1")


def results_in_two_messages(body: Body, headers: dict[str, str]) -> None:
    last = body["messages"].pop()
    body["messages"] += [{"role": "user", "content": [block]} for block in last["content"]]


def marked(count: int) -> Breach:
    mark = {"cache_control": {"type": "ephemeral"}}
    return put("system", [{"type": "text", "text": "Answer briefly.", **mark} for _ in range(count)])


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
OPEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
BAD_SCHEMA = {"type": "object", "properties": {"a": {"type": "strin"}}}
CLOSED = {"type": "object", "additionalProperties": False}
NOT_STRICT = [
    {"type": "object", "anyOf": [SCHEMA]},
    {**CLOSED, "properties": {"a": {"allOf": [{"type": "string"}]}}, "required": ["a"]},
    {**CLOSED, "properties": {"a": {"$ref": "#/$defs/a", "type": "string"}}, "required": ["a"], "$defs": {"a": {}}},
    {**CLOSED, "properties": {"a": {"type": "array", "items": OPEN_SCHEMA}}, "required": ["a"]},
    {**CLOSED, "properties": {"a": {"anyOf": [OPEN_SCHEMA]}}, "required": ["a"]},
    {**CLOSED, "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"], "$defs": {"a": OPEN_SCHEMA}},
    {**CLOSED, "properties": {"a": {"type": "string"}}, "required": []},
]
"""Schemas that strict mode of OpenAI refuses, each for one reason."""
NO_GRAMMAR = [
    {**CLOSED, "properties": {"a": {"type": "integer", "minimum": 1}}},
    {**CLOSED, "properties": {"a": {"$ref": "#/$defs/a", "description": "x"}}, "$defs": {"a": {}}},
    {**CLOSED, "properties": {"a": {"type": "array", "items": OPEN_SCHEMA}}},
    {**CLOSED, "properties": {"a": {"anyOf": [OPEN_SCHEMA]}}},
    {**CLOSED, "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": OPEN_SCHEMA}},
    {**CLOSED, "properties": {"a": {"properties": {}}}},
    BAD_SCHEMA,
]
"""Schemas that Anthropic cannot compile, each for one reason."""
OTHER_DIALECT = [
    {"type": "object", "properties": {"a": {"const": "x"}}},
    {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
    {"type": "object", "properties": {"a": {"type": "array"}}},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}},
    {"type": "object", "properties": {"a": {"anyOf": [{"type": "string", "examples": ["x"]}]}}},
    {"type": "object", "additionalProperties": True},
]
"""Schemas that are good JSON Schema, and not Google's own dialect."""
OLD = "claude-sonnet-4-5"
FOREIGN = "bm90IG9uZSBvZiBvdXJz"
DEEPSEEK, KIMI = "deepseek-v4-pro", "kimi-k2.6"

OPENAI = (RESPONSES, CHAT)
GOOGLE = (INTERACTIONS, GENERATE)

CASES: list[Case] = [
    # -------------------------------------------------------- OpenAI, both
    *[Case(wire, "bearer_key_present", header("authorization", None)) for wire in OPENAI],
    Case(RESPONSES, "bearer_key_present", header("authorization", "Basic k")),
    *[Case(wire, "request_not_too_large", put("metadata", {"note": "x" * 40_000})) for wire in OPENAI],
    *[Case(wire, "parameters_have_their_types", put("temperature", "hot")) for wire in OPENAI],
    Case(RESPONSES, "parameters_have_their_types", item("function_call", "arguments", {"city": "Lima"})),
    Case(RESPONSES, "parameters_have_their_types", put("input", [[], {}])),
    Case(CHAT, "parameters_have_their_types", message(1, lambda one: one.update(content=7))),
    *[Case(wire, "words_known", put("service_tier", "best")) for wire in OPENAI],
    Case(RESPONSES, "words_known", add({"role": "tool", "content": "sunny"})),
    Case(CHAT, "words_known", message(0, lambda one: one.update(role="model"))),
    *[Case(wire, "model_exists", drop("model")) for wire in OPENAI],
    Case(RESPONSES, "model_exists", put("model", "no-such-model")),
    Case(CHAT, "model_exists", put("model", "claude-opus-5-5")),
    *[Case(wire, "no_sampling_for_reasoning_models", put("temperature", 0.2)) for wire in OPENAI],
    Case(RESPONSES, "effort_fits_the_model", put("reasoning.effort", "none")),
    Case(CHAT, "effort_fits_the_model", put("reasoning_effort", "none")),
    Case(CHAT, "effort_fits_the_model", put("reasoning_effort", "low"), model="gpt-4o"),
    Case(RESPONSES, "output_cap_not_too_small", put("max_output_tokens", 15)),
    Case(RESPONSES, "output_cap_within_the_model", put("max_output_tokens", 99_999_999)),
    Case(CHAT, "output_cap_within_the_model", put("max_completion_tokens", 300_000)),
    Case(CHAT, "output_cap_not_too_small", put("max_completion_tokens", 0)),
    *[Case(wire, "labels_short", put("safety_identifier", "x" * 129)) for wire in OPENAI],
    Case(RESPONSES, "labels_short", put("metadata", {str(number): "x" for number in range(17)})),
    Case(RESPONSES, "labels_short", put("metadata", {"k": "x" * 513})),
    *[Case(wire, "model_exists", put("model", " ")) for wire in OPENAI],
    Case(CHAT, "model_exists", put("model", "gpt-6-astraa")),
    Case(CHAT, "no_sampling_for_reasoning_models", put("top_p", 0.5)),
    Case(RESPONSES, "no_sampling_for_reasoning_models", put("temperature", 1)),
    *[Case(wire, "objects_say_their_type", put("tool_choice", {"name": "get_weather"})) for wire in OPENAI],
    Case(RESPONSES, "objects_say_their_type", put("text.format", {"name": "n", "schema": SCHEMA})),
    Case(CHAT, "objects_say_their_type", put("response_format", {"json_schema": {"name": "n", "schema": SCHEMA}})),
    *[Case(wire, "tool_types_exist", tool(lambda one: one.pop("type"))) for wire in OPENAI],
    *[Case(wire, "tool_types_exist", tool(lambda one: one.update(type="functoin"))) for wire in OPENAI],
    *[Case(wire, "labels_short", put("metadata", {"k" * 65: "x"})) for wire in OPENAI],
    Case(RESPONSES, "tools_well_formed", put("tools", [{"type": "function", "function": {"name": "get_weather"}}])),
    Case(CHAT, "tools_well_formed", put("tools", [{"type": "function", "name": "get_weather"}])),
    Case(RESPONSES, "tool_names_legal", tool(lambda one: one.update(name="get weather"))),
    Case(CHAT, "tool_names_legal", tool(lambda one: one["function"].update(name="get.weather"))),
    Case(RESPONSES, "schemas_valid", tool(lambda one: one.update(parameters={"type": "string"}))),
    Case(CHAT, "schemas_valid", tool(lambda one: one["function"].update(parameters=BAD_SCHEMA))),
    Case(RESPONSES, "strict_schema_complete", tool(lambda one: one["parameters"].pop("additionalProperties"))),
    Case(RESPONSES, "strict_schema_complete", tool(lambda one: one["parameters"].update(default={}))),
    Case(CHAT, "strict_schema_complete", tool(lambda one: one["function"]["parameters"].pop("required"))),
    *[Case(RESPONSES, "strict_schema_complete", tool(lambda one, schema=schema: one.update(parameters=schema)))
      for schema in NOT_STRICT],
    Case(RESPONSES, "chosen_tool_exists", put("tool_choice", {"type": "function", "name": "get_time"})),
    Case(RESPONSES, "chosen_tool_exists", put("tool_choice", {"type": "allowed_tools", "mode": "auto", "tools": [
        {"type": "function", "name": "get_time"}]})),
    Case(RESPONSES, "chosen_tool_exists", both(drop("tools"), put("tool_choice", "required"))),
    Case(CHAT, "chosen_tool_exists", both(drop("tools"), put("tool_choice", "auto"))),
    Case(CHAT, "chosen_tool_exists", put("tool_choice", {"type": "allowed_tools", "allowed_tools": {
        "mode": "auto", "tools": [{"type": "function", "function": {"name": "get_time"}}]}})),
    Case(CHAT, "chosen_tool_exists", put("tool_choice", {"type": "function", "function": {"name": "get_time"}})),
    *[Case(wire, "context_window_not_exceeded", put("metadata", {}), window=20) for wire in OPENAI],
    # -------------------------------------------------------- Responses
    Case(RESPONSES, "parameters_known", put("max_tokens", 100)),
    Case(RESPONSES, "parameters_known", put("stop", ["x"])),
    Case(RESPONSES, "parameters_known", item("function_call", "parsed_arguments", {})),
    Case(RESPONSES, "parameters_known", put("reasoning", {"effort": "low", "budget": 9})),
    Case(RESPONSES, "parameters_known", put("text", {"formats": {}})),
    Case(RESPONSES, "input_present", drop("input")),
    Case(RESPONSES, "input_present", put("input", [])),
    Case(RESPONSES, "encrypted_content_only_from_reasoning_models", put("include", ["reasoning.encrypted_content"]),
         model="gpt-4o"),
    Case(RESPONSES, "output_format_well_formed", put("text.format", {"type": "json_schema", "schema": SCHEMA})),
    Case(RESPONSES, "output_format_well_formed",
         put("text.format", {"type": "json_schema", "name": "n", "schema": OPEN_SCHEMA, "strict": True})),
    Case(RESPONSES, "output_format_well_formed", put("text.format", {"type": "json_schema", "name": "n"})),
    Case(RESPONSES, "output_format_well_formed", put("text.format", {"type": "json_schema", "name": "n",
                                                                     "schema": BAD_SCHEMA})),
    Case(RESPONSES, "one_kind_of_state", both(put("conversation", "conv_1"), put("previous_response_id", "resp_1"))),
    Case(RESPONSES, "previous_response_stored", put("previous_response_id", "resp_gone")),
    Case(RESPONSES, "background_is_stored", put("background", True)),
    Case(RESPONSES, "items_well_formed", item("function_call", "name")),
    Case(RESPONSES, "items_well_formed", item("function_call_output", "output", None)),
    Case(RESPONSES, "items_well_formed", add({"content": "Hi"})),
    Case(RESPONSES, "reasoning_without_status", item("reasoning", "status", "completed")),
    Case(RESPONSES, "items_without_invented_fields", item("reasoning", "content", None)),
    Case(RESPONSES, "items_without_invented_fields", add({"role": "assistant", "content": [
        {"type": "output_text", "text": "Hi", "annotations": None}]}, 1)),
    Case(RESPONSES, "items_without_invented_fields", item("function_call", "namespace", None)),
    Case(RESPONSES, "content_fits_the_role", add({"role": "user", "content": [{"type": "text", "text": "Hi"}]})),
    Case(RESPONSES, "content_fits_the_role",
         add({"role": "assistant", "content": [{"type": "input_text", "text": "Hi"}]}, 1)),
    Case(RESPONSES, "content_fits_the_role", item("function_call_output", "output", [{"type": "text", "text": "sunny"}])),
    Case(RESPONSES, "content_has_its_text", add({"role": "user", "content": [{"type": "input_text"}]})),
    Case(RESPONSES, "content_has_its_text", item("function_call_output", "output", [{"type": "input_text"}])),
    Case(RESPONSES, "content_has_its_text", add({"role": "assistant", "content": [{"type": "refusal"}]}, 1)),
    Case(RESPONSES, "referenced_items_found", item("reasoning", "encrypted_content")),
    Case(RESPONSES, "referenced_items_found", both(put("store", True), add({"type": "item_reference", "id": "rs_9"}))),
    Case(RESPONSES, "encrypted_content_genuine", item("reasoning", "id", "rs_other")),
    Case(RESPONSES, "encrypted_content_genuine", item("reasoning", "encrypted_content", "gAAAAnonsense")),
    Case(RESPONSES, "reasoning_followed_by_its_item", reasoning_last),
    Case(RESPONSES, "item_with_its_reasoning", without("reasoning")),
    Case(RESPONSES, "every_output_has_its_call", answered_by_item_id),
    Case(RESPONSES, "every_output_has_its_call", output_first),
    Case(RESPONSES, "one_output_for_each_call", lambda body, _: body["input"].append(body["input"][-1])),
    Case(RESPONSES, "every_call_has_its_output", without("function_call_output")),
    Case(RESPONSES, "responses_extras_are_not_simulated", put("prompt", {"id": "pmpt_1"})),
    # -------------------------------------------------------- Chat Completions
    Case(CHAT, "chat_parameters_known", put("input", "Hi")),
    Case(CHAT, "chat_messages_present", drop("messages")),
    Case(CHAT, "chat_messages_present", message(1, lambda one: one.pop("role"))),
    Case(CHAT, "chat_cap_has_its_name", put("max_tokens", 100)),
    Case(CHAT, "chat_stream_options_with_stream", put("stream_options", {"include_usage": True})),
    Case(CHAT, "chat_at_most_four_stops", put("stop", ["1", "2", "3", "4", "5"])),
    *[Case(CHAT, "chat_choices_in_range", put("n", number)) for number in (0, 129)],
    Case(CHAT, "chat_parallel_needs_tools", both(drop("tools"), put("parallel_tool_calls", True))),
    Case(CHAT, "chat_format_nested",
         put("response_format", {"type": "json_schema", "name": "n", "schema": SCHEMA})),
    Case(CHAT, "chat_format_nested", put("response_format", {"type": "json_schema", "json_schema": {"schema": SCHEMA}})),
    Case(CHAT, "chat_fields_fit_the_role", message(2, lambda one: one.update(role="user"))),
    Case(CHAT, "chat_content_present", message(1, lambda one: one.update(content=None))),
    Case(CHAT, "chat_content_fits_the_role", message(1, lambda one: one.update(
        content=[{"type": "input_text", "text": "Hi"}]))),
    Case(CHAT, "chat_content_fits_the_role", message(3, lambda one: one.update(
        content=[{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]))),
    Case(CHAT, "chat_content_fits_the_role", message(1, lambda one: one.update(content=[{"text": "Hi"}]))),
    Case(CHAT, "chat_content_fits_the_role", message(1, lambda one: one.update(content=[{"type": "text"}]))),
    Case(CHAT, "chat_calls_well_formed", message(2, lambda one: one["tool_calls"][0].pop("id"))),
    Case(CHAT, "chat_calls_well_formed", message(2, lambda one: one["tool_calls"][0]["function"].pop("arguments"))),
    Case(CHAT, "chat_calls_not_an_empty_list", add({"role": "assistant", "content": "Hi", "tool_calls": []})),
    Case(CHAT, "chat_every_call_answered", lambda body, _: body["messages"].pop()),
    Case(CHAT, "chat_every_call_answered", add({"role": "user", "content": "And?"}, 4)),
    Case(CHAT, "chat_tool_message_has_its_call", lambda body, _: body["messages"].pop(2)),
    Case(CHAT, "chat_calls_answered_once", lambda body, _: body["messages"].append(body["messages"][-1])),
    Case(CHAT, "chat_reasoning_comes_back", message(2, lambda one: one.pop("reasoning_content")), model=DEEPSEEK),
    Case(CHAT, "chat_kimi_chooses_itself", put("tool_choice", "required"), model=KIMI),
    Case(CHAT, "chat_extras_are_not_simulated", put("logprobs", True)),
    Case(CHAT, "chat_extras_are_not_simulated", put("functions", [{"name": "f"}])),
    Case(CHAT, "chat_extras_are_not_simulated", put("modalities", ["text", "audio"])),
    # -------------------------------------------------------- Messages
    Case(MESSAGES, "api_key_present", header("x-api-key", None)),
    Case(MESSAGES, "version_present", header("anthropic-version", None)),
    Case(MESSAGES, "version_present", header("anthropic-version", "2020-01-01")),
    Case(MESSAGES, "body_not_too_large", put("metadata", {"user_id": "x" * 40_000})),
    Case(MESSAGES, "fields_have_their_types", put("max_tokens", "many")),
    Case(MESSAGES, "fields_have_their_types", put("system", None)),
    Case(MESSAGES, "fields_have_their_types", put("tool_choice", "auto")),
    Case(MESSAGES, "fields_have_their_types", item("tool_use", "input", '{"city": "Lima"}')),
    Case(MESSAGES, "fields_have_their_types", item("tool_use", "caller", None)),
    Case(MESSAGES, "words_allowed", add({"role": "tool", "content": "sunny"})),
    Case(MESSAGES, "words_allowed", put("tool_choice", {"type": "required"})),
    *[Case(MESSAGES, "kinds_named", put(key, {})) for key in ("thinking", "tool_choice", "cache_control")],
    Case(MESSAGES, "kinds_named", put("output_config", {"format": {"schema": SCHEMA}})),
    Case(MESSAGES, "kinds_named", blocks(0, lambda found: found.append({"type": "image", "source": {"data": PNG}}))),
    Case(MESSAGES, "no_extra_inputs", put("output_config", {"efort": "low"})),
    Case(MESSAGES, "no_extra_inputs", put("metadata", {"note": "x"})),
    Case(MESSAGES, "no_extra_inputs", put("thinking", {"type": "adaptive", "budget_tokens": 2000})),
    Case(MESSAGES, "no_extra_inputs", put("tool_choice", {"type": "auto", "parallel": False})),
    Case(MESSAGES, "no_extra_inputs", put("parallel_tool_calls", True)),
    Case(MESSAGES, "no_extra_inputs", message(1, lambda one: one.update(tool_calls=[]))),
    Case(MESSAGES, "model_named", put("model", "gpt-6-astra")),
    Case(MESSAGES, "model_named", drop("model")),
    Case(MESSAGES, "max_tokens_present", drop("max_tokens")),
    Case(MESSAGES, "max_tokens_present", put("max_tokens", -1)),
    Case(MESSAGES, "max_tokens_present", put("max_tokens", 99_999_999)),
    Case(MESSAGES, "messages_present", put("messages", [])),
    Case(MESSAGES, "messages_present", message(0, lambda one: one.pop("content"))),
    Case(MESSAGES, "user_first", add({"role": "assistant", "content": "Hi"}, 0), model=OLD),
    Case(MESSAGES, "system_role_placed", add({"role": "system", "content": "Be brief."}, 1), model=OLD),
    Case(MESSAGES, "system_role_placed", both(lambda body, _: body["messages"].pop(), lambda body, _: body["messages"][1].
         update(content="Hm."), add({"role": "system", "content": "Be brief."}))),
    Case(MESSAGES, "system_role_placed", add({"role": "system", "content": [PICTURE]}, 1)),
    Case(MESSAGES, "no_sampling_parameters", put("temperature", 1.0)),
    Case(MESSAGES, "no_sampling_parameters", both(header("anthropic-version", "2023-06-01"), put("temperature", 0.9))),
    *[Case(MESSAGES, "sampling_goes_together", both(header("anthropic-version", "2023-06-01"), put(name, 0.5),
           put("thinking", {"type": "enabled", "budget_tokens": 1024})), model=OLD) for name in ("temperature", "top_p")],
    Case(MESSAGES, "sampling_goes_together", both(header("anthropic-version", "2023-06-01"), put("temperature", 1),
                                                  put("top_p", 1)), model=OLD),
    Case(MESSAGES, "stop_sequences_not_blank", put("stop_sequences", ["\n"])),
    Case(MESSAGES, "thinking_fits_the_model", put("thinking", {"type": "disabled"})),
    Case(MESSAGES, "thinking_fits_the_model", put("thinking", {"type": "enabled", "budget_tokens": 1024})),
    Case(MESSAGES, "thinking_fits_the_model", put("thinking", {"type": "adaptive"}), model=OLD),
    Case(MESSAGES, "thinking_fits_the_model", put("thinking", {"type": "between_tools"})),
    Case(MESSAGES, "disabled_thinking_needs_low_effort", both(put("thinking", {"type": "disabled"}),
         put("output_config", {"effort": "max"})), model="claude-opus-5"),
    Case(MESSAGES, "budget_in_range", put("thinking", {"type": "enabled", "budget_tokens": 1000}), model=OLD),
    Case(MESSAGES, "budget_in_range", put("thinking", {"type": "enabled", "budget_tokens": 2000}), model=OLD),
    Case(MESSAGES, "budget_in_range", put("thinking", {"type": "enabled"}), model=OLD),
    Case(MESSAGES, "effort_known_to_the_model", put("output_config", {"effort": "xhigh"}), model="claude-opus-4-6"),
    Case(MESSAGES, "at_most_four_cache_marks", marked(5)),
    Case(MESSAGES, "client_tools_well_formed", put("tools", [{"name": "get_weather", "parameters": {"type": "object"}}])),
    Case(MESSAGES, "client_tools_well_formed", put("tools", [{"type": "custom", "function": {"name": "get_weather"}}])),
    Case(MESSAGES, "client_tools_well_formed", tool(lambda one: one.update(parallel=True))),
    Case(MESSAGES, "tool_types_known", tool(lambda one: one.update(type="function"))),
    Case(MESSAGES, "tool_types_known", tool(lambda one: one.update(type="web_search"))),
    Case(MESSAGES, "tool_names_legal_and_unique", lambda body, _: body["tools"].append(body["tools"][0])),
    Case(MESSAGES, "tool_names_legal_and_unique", tool(lambda one: one.update(name="get weather"))),
    Case(MESSAGES, "input_schemas_valid", tool(lambda one: one.update(input_schema=BAD_SCHEMA))),
    Case(MESSAGES, "input_schemas_valid", tool(lambda one: one.update(input_schema={"type": "string"}))),
    Case(MESSAGES, "input_schemas_valid", tool(lambda one: one["input_schema"].update(type=[]))),
    Case(MESSAGES, "grammar_schemas_closed", put("output_config", {"format": {"type": "json_schema",
                                                                              "schema": OPEN_SCHEMA}})),
    Case(MESSAGES, "grammar_schemas_closed", tool(lambda one: one["input_schema"].pop("additionalProperties"))),
    Case(MESSAGES, "grammar_schemas_closed", put("output_config", {"format": {"type": "json_schema"}})),
    *[Case(MESSAGES, "grammar_schemas_closed", put("output_config", {"format": {"type": "json_schema", "schema": schema}}))
      for schema in NO_GRAMMAR],
    Case(MESSAGES, "forced_choice_allowed", put("tool_choice", {"type": "any"})),
    Case(MESSAGES, "choice_names_a_tool", put("tool_choice", {"type": "tool", "name": "get_time"}), model=OLD),
    Case(MESSAGES, "choice_names_a_tool", both(drop("tools"), put("tool_choice", {"type": "auto"})), model=OLD),
    Case(MESSAGES, "block_types_known", blocks(0, lambda found: found.append({"type": "input_text", "text": "Hi"}))),
    Case(MESSAGES, "block_types_known", blocks(0, lambda found: found.append({"text": "Hi"}))),
    Case(MESSAGES, "no_empty_text", blocks(2, lambda found: found.append({"type": "text", "text": " "}))),
    Case(MESSAGES, "no_empty_text", put("system", [{"type": "text", "text": ""}])),
    Case(MESSAGES, "blocks_well_formed", item("thinking", "signature")),
    Case(MESSAGES, "blocks_well_formed", item("tool_result", "tool_use_id")),
    Case(MESSAGES, "blocks_fit_the_role", blocks(0, lambda found: found.append(
        {"type": "tool_use", "id": "t", "name": "n", "input": {}}))),
    Case(MESSAGES, "blocks_fit_the_role", blocks(1, lambda found: found.insert(1, PICTURE))),
    Case(MESSAGES, "citations_and_documents_by_version", blocks(1, lambda found: found.insert(1, {
        "type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}))),
    Case(MESSAGES, "citations_and_documents_by_version", blocks(0, lambda found: found[0].update(citations=[{}]))),
    Case(MESSAGES, "pictures_are_what_they_say", blocks(0, lambda found: found.append(
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PNG}}))),
    Case(MESSAGES, "pictures_are_what_they_say", blocks(0, lambda found: found.append(
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": f"data:image/png,{PNG}"}}))),
    Case(MESSAGES, "content_not_empty", add({"role": "user", "content": []}, 0)),
    Case(MESSAGES, "call_ids_legal", blocks(2, lambda found: found[0].update(tool_use_id="functions.get_weather:0"))),
    Case(MESSAGES, "call_ids_legal", blocks(1, lambda found: found.append(dict(found[-1])))),
    Case(MESSAGES, "server_call_ids_legal", blocks(1, lambda found: found.insert(1, {
        "type": "server_tool_use", "id": "toolu_1", "name": "web_search", "input": {"query": "x"}}))),
    *[Case(MESSAGES, "call_names_legal", item("tool_use", "name", name)) for name in ("", "n" * 201)],
    Case(MESSAGES, "every_call_answered", blocks(2, lambda found: found.pop())),
    Case(MESSAGES, "every_call_answered", results_in_two_messages),
    Case(MESSAGES, "every_result_has_its_call", blocks(2, lambda found: found.append({**found[0], "tool_use_id": "t"}))),
    Case(MESSAGES, "every_result_has_its_call", blocks(2, lambda found: found.append(dict(found[0])))),
    Case(MESSAGES, "results_first", blocks(2, lambda found: found.insert(0, {"type": "text", "text": "Here:"}))),
    Case(MESSAGES, "error_results_are_text", blocks(2, lambda found: found[0].update(is_error=True, content=""))),
    Case(MESSAGES, "error_results_are_text", blocks(2, lambda found: found[0].update(is_error=True, content=[PICTURE]))),
    Case(MESSAGES, "thinking_unchanged", item("thinking", "thinking", "something else")),
    Case(MESSAGES, "thinking_unchanged", item("thinking", "signature", FOREIGN)),
    Case(MESSAGES, "thinking_unchanged", blocks(1, lambda found: found.insert(0, {"type": "redacted_thinking",
                                                                                  "data": FOREIGN}))),
    Case(MESSAGES, "thinking_not_last", both(lambda body, _: body["messages"].pop(), blocks(1, lambda found: found.
         __delitem__(slice(1, None))), add({"role": "user", "content": "And?"}))),
    Case(MESSAGES, "thinking_kept_in_tool_turn", blocks(1, lambda found: found.pop(0))),
    Case(MESSAGES, "budget_turn_starts_with_thinking", put("thinking", {"type": "enabled", "budget_tokens": 1024}),
         model=OLD),
    Case(MESSAGES, "thinking_not_moved", put("system", "Answer in rhyme.")),
    Case(MESSAGES, "thinking_not_moved", tool(lambda one: one.update(description="Weather, anywhere"))),
    Case(MESSAGES, "no_prefill_on_new_models", add({"role": "assistant", "content": "It"})),
    Case(MESSAGES, "prefill_well_formed", add({"role": "assistant", "content": "It "}), model=OLD),
    Case(MESSAGES, "prefill_well_formed", both(add({"role": "assistant", "content": "It"}),
         put("thinking", {"type": "enabled", "budget_tokens": 1024})), model=OLD),
    Case(MESSAGES, "prompt_fits_the_window", put("metadata", {}), window=20),
    Case(MESSAGES, "message_threads_are_not_simulated", put("thread", {"type": "create"})),
    Case(MESSAGES, "messages_extras_are_not_simulated", put("container", "c_1")),
    # -------------------------------------------------------- Google, both
    *[Case(wire, "goog_key_present", header("x-goog-api-key", None)) for wire in GOOGLE],
    *[Case(wire, "goog_request_not_too_large", put("labels", {"note": "x" * 40_000})) for wire in GOOGLE],
    Case(INTERACTIONS, "goog_fields_have_their_types", item("function_call", "arguments", '{"city": "Lima"}')),
    Case(INTERACTIONS, "goog_fields_have_their_types", item("function_result", "result", 42)),
    Case(GENERATE, "goog_fields_have_their_types", put("generationConfig", [])),
    Case(INTERACTIONS, "goog_words_known", put("generation_config.thinking_level", "heroic")),
    Case(INTERACTIONS, "goog_words_known", put("generation_config.tool_choice", "required")),
    Case(INTERACTIONS, "goog_words_known", tool(lambda one: one.update(type="functoin"))),
    Case(INTERACTIONS, "goog_words_known", put("response_format", {"type": "json"})),
    Case(INTERACTIONS, "goog_words_known", add({"type": "tool_result", "call_id": "c", "result": "x"})),
    Case(INTERACTIONS, "goog_words_known", add({"type": "user_input", "content": [{"type": "input_text", "text": "x"}]})),
    Case(INTERACTIONS, "goog_fields_known", put("generation_config.tool_choice", {"function": "get_weather"})),
    Case(INTERACTIONS, "goog_fields_known", put("tool_choice", "auto")),
    Case(INTERACTIONS, "goog_fields_known", put("generation_config.top_k", 3)),
    Case(INTERACTIONS, "goog_fields_known", put("response_mime_type", "application/json")),
    Case(GENERATE, "goog_fields_known", put("messages", [])),
    Case(GENERATE, "goog_fields_known", put("generationConfig.max_tokens", 9)),
    Case(GENERATE, "goog_fields_known", parts(1, lambda found: next(part for part in found if "functionCall" in part)[
        "functionCall"].update(thoughtSignature=FOREIGN))),
    Case(INTERACTIONS, "goog_model_exists", put("model", "gemini-0")),
    *[Case(wire, "goog_window_not_exceeded", put("labels" if wire == INTERACTIONS else "safetySettings", {}
           if wire == INTERACTIONS else []), window=20) for wire in GOOGLE],
    # -------------------------------------------------------- Interactions
    Case(INTERACTIONS, "goog_model_or_agent", put("agent", "deep-research")),
    Case(INTERACTIONS, "goog_model_or_agent", drop("model")),
    Case(INTERACTIONS, "goog_input_present", put("input", [])),
    Case(INTERACTIONS, "goog_state_not_without_store", put("previous_interaction_id", "v1_gone")),
    Case(INTERACTIONS, "goog_previous_interaction_stored", both(put("store", True),
                                                                put("previous_interaction_id", "v1_gone"))),
    Case(INTERACTIONS, "goog_background_needs_store", put("background", True)),
    Case(INTERACTIONS, "goog_continuation_token_genuine", put("continuation_token", FOREIGN)),
    Case(INTERACTIONS, "goog_thinking_level_known", put("generation_config.thinking_level", "xhigh")),
    *[Case(INTERACTIONS, "goog_cap_positive", put("generation_config.max_output_tokens", cap)) for cap in (0, 2**31)],
    Case(INTERACTIONS, "goog_tools_flat", put("tools", [{"functionDeclarations": [{"name": "get_weather"}]}])),
    Case(INTERACTIONS, "goog_tools_flat", tool(lambda one: one.update(name="9 lives"))),
    Case(INTERACTIONS, "goog_tools_flat", tool(lambda one: one.update(parameters=BAD_SCHEMA))),
    Case(INTERACTIONS, "goog_allowed_tools_exist",
         put("generation_config.tool_choice", {"allowed_tools": {"mode": "any", "tools": ["get_time"]}})),
    Case(INTERACTIONS, "goog_allowed_tools_exist", both(drop("tools"), put("generation_config.tool_choice", "any"))),
    Case(INTERACTIONS, "goog_allowed_tools_exist", both(drop("tools"), put(
        "generation_config.tool_choice", {"allowed_tools": {"mode": "any"}}))),
    Case(INTERACTIONS, "goog_format_well_formed", put("response_format", {"type": "text", "schema": SCHEMA})),
    Case(INTERACTIONS, "goog_format_well_formed", put("response_format", {"mime_type": "application/json"})),
    Case(INTERACTIONS, "goog_format_well_formed",
         put("response_format", [{"type": "text", "mime_type": "application/json", "schema": BAD_SCHEMA}])),
    Case(INTERACTIONS, "goog_steps_well_formed", item("function_result", "call_id")),
    Case(INTERACTIONS, "goog_steps_well_formed", add({"role": "user", "content": [{"type": "text", "text": "Hi"}]}, 0)),
    Case(INTERACTIONS, "goog_steps_well_formed", add({"content": "Hi"})),
    Case(INTERACTIONS, "goog_content_well_formed", add({"type": "user_input", "content": [{"text": "Hi"}]})),
    Case(INTERACTIONS, "goog_content_well_formed", add({"type": "user_input", "content": [{"type": "text"}]})),
    Case(INTERACTIONS, "goog_every_call_answered", without("function_result")),
    Case(INTERACTIONS, "goog_every_call_answered", item("function_result", "call_id", "fc_other")),
    Case(INTERACTIONS, "goog_one_result_for_each_call", lambda body, _: body["input"].append(body["input"][-1])),
    Case(INTERACTIONS, "goog_thought_before_call", without("thought")),
    Case(INTERACTIONS, "goog_thoughts_unchanged", item("thought", "signature", FOREIGN)),
    Case(INTERACTIONS, "goog_thoughts_unchanged", item("thought", "summary", [{"type": "text", "text": "mine"}])),
    Case(INTERACTIONS, "goog_extras_are_not_simulated", put("cached_content", "cachedContents/1")),
    # -------------------------------------------------------- generateContent
    Case(GENERATE, "contents_present", drop("contents")),
    Case(GENERATE, "contents_present", lambda body, _: body["contents"][1].update(role="assistant")),
    Case(GENERATE, "contents_present", parts(0, lambda found: found.clear())),
    Case(GENERATE, "one_way_to_think", put("generationConfig.thinkingConfig", {"thinkingLevel": "heroic"})),
    Case(GENERATE, "goog_fields_have_their_types", put("systemInstruction", "Be brief.")),
    Case(GENERATE, "one_way_to_think",
         put("generationConfig.thinkingConfig", {"thinkingLevel": "low", "thinkingBudget": 9})),
    Case(GENERATE, "one_way_to_think", put("generationConfig.thinkingConfig", {"thinkingLevel": "low"}),
         model="gemini-2.5-flash"),
    *[Case(GENERATE, "output_cap_positive", put("generationConfig.maxOutputTokens", cap)) for cap in (0, 2**31)],
    Case(GENERATE, "schema_needs_its_mime_type", put("generationConfig.responseJsonSchema", SCHEMA)),
    Case(GENERATE, "functions_well_formed", function(lambda one: one.update(name="9 lives"))),
    Case(GENERATE, "schema_needs_its_mime_type", put("generationConfig", {"responseMimeType": "application/json",
                                                                          "responseSchema": BAD_SCHEMA})),
    Case(GENERATE, "functions_well_formed", function(lambda one: one.update(parametersJsonSchema=BAD_SCHEMA))),
    Case(GENERATE, "functions_well_formed", function(lambda one: one.update(parameters=SCHEMA))),
    Case(GENERATE, "functions_well_formed", lambda body, _: body["tools"].append(body["tools"][0])),
    *[Case(GENERATE, "own_dialect_kept", function(lambda one, schema=schema: [
        one.pop("parametersJsonSchema"), one.update(parameters=schema)])) for schema in OTHER_DIALECT],
    Case(GENERATE, "own_dialect_kept", put("generationConfig", {
        "responseMimeType": "application/json", "responseSchema": {"type": "OBJECT", "$schema": "x"}})),
    Case(GENERATE, "calling_mode_fits", put("toolConfig.functionCallingConfig", {"mode": "REQUIRED"})),
    Case(GENERATE, "calling_mode_fits", put("toolConfig.functionCallingConfig",
                                            {"mode": "AUTO", "allowedFunctionNames": ["get_weather"]})),
    Case(GENERATE, "calling_mode_fits", put("toolConfig.functionCallingConfig",
                                            {"mode": "ANY", "allowedFunctionNames": ["get_time"]})),
    Case(GENERATE, "calling_mode_fits", both(drop("tools"), put("toolConfig.functionCallingConfig", {"mode": "ANY"}))),
    Case(GENERATE, "arguments_not_streamed", put("toolConfig.functionCallingConfig.streamFunctionCallArguments", True)),
    Case(GENERATE, "parts_well_formed", parts(0, lambda found: found.append({}))),
    Case(GENERATE, "parts_well_formed", parts(0, lambda found: found.append({"text": ""}))),
    Case(GENERATE, "parts_well_formed", parts(0, lambda found: found[0].update(inlineData={"mimeType": "image/png",
                                                                                          "data": PNG}))),
    Case(GENERATE, "calls_and_responses_named", parts(2, lambda found: found[0]["functionResponse"].pop("name"))),
    Case(GENERATE, "calls_and_responses_named", parts(2, lambda found: found[0]["functionResponse"].pop("response"))),
    Case(GENERATE, "calls_and_responses_named", parts(1, lambda found: found[-1]["functionCall"].pop("name"))),
    Case(GENERATE, "calls_follow_the_user", lambda body, _: body["contents"].pop(0)),
    Case(GENERATE, "responses_match_calls", parts(2, lambda found: found.pop())),
    Case(GENERATE, "responses_match_calls", lambda body, _: body["contents"].pop()),
    Case(GENERATE, "responses_match_calls", parts(2, lambda found: found.append(found[0]))),
    Case(GENERATE, "first_call_signed", parts(1, lambda found: [part.pop("thoughtSignature", None) for part in found])),
    Case(GENERATE, "signatures_genuine", parts(1, lambda found: found[-2]["functionCall"]["args"].update(city="Rome"))),
    Case(GENERATE, "continuation_token_genuine", put("continuationToken", FOREIGN)),
    Case(GENERATE, "generate_extras_are_not_simulated", put("generationConfig.candidateCount", 2)),
]  # fmt: skip


def good(case: Case, **options: Any) -> tuple[Simulator, str, dict[str, str], Body]:
    """A simulator, and the request that the case breaks, which it takes as it is."""
    path, headers, body = second_request(case.wire, case.model)
    sim = Simulator(**options)
    assert send(sim, path, headers, body).status == 200, sim.requests[-1][2]
    return sim, path, headers, body


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_broken_rule_is_refused_by_that_rule(case: Case) -> None:
    sim, path, headers, body = good(case, max_body=30_000)
    case.breach(body, headers)
    sim.window = case.window
    reply = send(sim, path, headers, body)
    refusal = sim.requests[-1][2]
    assert refusal is not None, "the simulator let it through"
    assert (case.rule, refusal.status) == (refusal.rule, reply.status)
    assert 400 <= reply.status < 500 or reply.status == 501
    assert body_of(reply)["error"]["message"]


# ---------------------------------------------------------------- what stands close to a rule, and keeps it

THINKING_LEFT_OUT = blocks(1, lambda found: found.pop(0))
WITHOUT_SAMPLING = header("anthropic-version", "2023-06-01")
KEPT: dict[str, Case] = {
    "a mild effort": Case(RESPONSES, "", put("reasoning.effort", "low")),
    "auto needs no tools on Responses": Case(RESPONSES, "", both(drop("tools"), put("input", "Hi"),
                                                                 put("tool_choice", "auto"))),
    "a tool by its name on Responses": Case(RESPONSES, "", put("tool_choice", {"type": "function", "name": "get_weather"})),
    "a tool by its name on Chat": Case(CHAT, "", put("tool_choice", {"type": "function", "function": {
        "name": "get_weather"}})),
    "allowed tools": Case(RESPONSES, "", put("tool_choice", {"type": "allowed_tools", "mode": "auto", "tools": [
        {"type": "function", "name": "get_weather"}, {"type": "web_search_preview"}]})),
    "a strict format on Responses": Case(RESPONSES, "", put("text.format", {
        "type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True})),
    "an open format on Chat": Case(CHAT, "", put("response_format", {
        "type": "json_schema", "json_schema": {"name": "n", "schema": OPEN_SCHEMA}})),
    "a format without a schema": Case(CHAT, "", put("response_format", {"type": "json_object"})),
    "nulls in what the client wrote": Case(RESPONSES, "", item("function_call_output", "name", None)),
    "reasoning in the clear": Case(RESPONSES, "", item("reasoning", "content", [{"type": "reasoning_text", "text": "x"}])),
    "a tool that OpenAI runs": Case(RESPONSES, "", put("tool_choice", {"type": "web_search_preview"})),
    "the smallest cap": Case(RESPONSES, "", put("max_output_tokens", 16)),
    "an open schema that is not strict": Case(
        RESPONSES, "", tool(lambda one: one.update(parameters=OPEN_SCHEMA, strict=False))),
    "items without their ids": Case(RESPONSES, "", both(without("reasoning"), lambda body, _: [
        one.pop("id", None) for one in body["input"]])),
    "the default temperature on Chat": Case(CHAT, "", both(put("temperature", 1), put("top_p", 1.0))),
    "sampling where it is taken": Case(CHAT, "", put("temperature", 0.2), model="gpt-4o"),
    "four stops": Case(CHAT, "", put("stop", ["1", "2", "3", "4"]), model="gpt-4o"),
    "text and a picture on Chat": Case(CHAT, "", message(1, lambda one: one.update(content=[
        {"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]))),
    "another maker's model": Case(CHAT, "", put("model", "mistral-medium-3-5")),
    "a model of open weights": Case(CHAT, "", put("model", "gpt-oss-120b")),
    "a variant of a model": Case(CHAT, "", put("model", "gpt-6-astra-2026-08-01")),
    "another maker's parameter": Case(CHAT, "", both(put("model", "qwen3-8b"), put("enable_thinking", False))),
    "another maker's tool": Case(CHAT, "", both(put("model", "mistral-medium-3-5"), put(
        "tools", [{"type": "web_search"}]), put("messages", [{"role": "user", "content": "Hi"}]))),
    "empty reasoning that comes back": Case(
        CHAT, "", message(2, lambda one: one.update(reasoning_content="")), model=DEEPSEEK),
    "the default temperature on the older version": Case(MESSAGES, "", both(WITHOUT_SAMPLING, put("temperature", 1))),
    "temperature on the older version and model": Case(MESSAGES, "", both(WITHOUT_SAMPLING, put("temperature", 0.5)),
                                                       model=OLD),
    "a system message behind the results": Case(MESSAGES, "", add({"role": "system", "content": [
        {"type": "text", "text": "Be brief."}]})),
    "a stop sequence": Case(MESSAGES, "", put("stop_sequences", ["END"])),
    "a document of the assistant on the older version": Case(MESSAGES, "", both(WITHOUT_SAMPLING, blocks(
        1, lambda found: found.insert(0, {"type": "document", "source": {
            "type": "text", "media_type": "text/plain", "data": "x"}}))), model=OLD),
    "thinking that lost its place, if it is to be dropped": Case(MESSAGES, "", both(
        header("anthropic-beta", anthropic.BINDING_BETA), put("system", "Answer in rhyme."), put("thinking", {
            "type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}))),
    "a picture in a result": Case(MESSAGES, "", blocks(2, lambda found: found[0].update(content=[PICTURE]))),
    "text behind the results": Case(MESSAGES, "", blocks(2, lambda found: found.append({"type": "text", "text": "So?"}))),
    "an error with words": Case(MESSAGES, "", blocks(2, lambda found: found[0].update(is_error=True, content="no"))),
    "a prefill": Case(MESSAGES, "", add({"role": "assistant", "content": "It"}), model=OLD),
    "four cache marks": Case(MESSAGES, "", marked(4), model=OLD),
    "tools that Anthropic runs or defines": Case(MESSAGES, "", lambda body, _: body["tools"].extend([
        {"type": "web_search_20260318", "name": "web_search"}, {"type": "bash_20250124", "name": "bash"}]), model=OLD),
    "a tool with all its fields": Case(MESSAGES, "", tool(lambda one: one.update(
        type="custom", input_examples=[{"city": "Lima"}], eager_input_streaming=True)), model=OLD),
    "a schema that the grammar takes": Case(MESSAGES, "", put("output_config", {"effort": "low", "format": {
        "type": "json_schema", "schema": SCHEMA}})),
    "a forced choice on an older model": Case(MESSAGES, "", put("tool_choice", {"type": "any"}), model=OLD),
    "a budget without a tool turn": Case(MESSAGES, "", both(put("thinking", {"type": "enabled", "budget_tokens": 1024}),
        put("messages", [{"role": "user", "content": "Hi"}])), model=OLD),
    "a signature that is skipped": Case(GENERATE, "", parts(1, lambda found: [
        part.update(thoughtSignature="skip_thought_signature_validator") for part in found if "thoughtSignature" in part])),
    "Google's own dialect": Case(GENERATE, "", function(lambda one: [one.pop("parametersJsonSchema"), one.update(
        parameters={"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": True}}})])),
    "snake case": Case(GENERATE, "", both(drop("systemInstruction"), put(
        "system_instruction", {"parts": [{"text": "Be brief."}]}))),
    "a level that the model knows": Case(GENERATE, "", put("generationConfig.thinkingConfig", {"thinkingLevel": "LOW"})),
    "input that is a text": Case(INTERACTIONS, "", put("input", "Hi")),
    "input that is one content": Case(INTERACTIONS, "", put("input", {"type": "text", "text": "Hi"})),
    "input that is a list of contents": Case(INTERACTIONS, "", put("input", [{"type": "text", "text": "Hi"}])),
    "calls of another vendor have no thoughts": Case(INTERACTIONS, "", put("input", [
        {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]},
        {"type": "function_call", "id": "call_1", "name": "get_weather", "arguments": {"city": "Lima"}},
        {"type": "function_result", "call_id": "call_1", "result": "sunny"}])),
    "a tool that Google runs": Case(INTERACTIONS, "", lambda body, _: body["tools"].append({"type": "google_search"})),
    "allowed tools of Interactions": Case(INTERACTIONS, "", put("generation_config.tool_choice", {
        "allowed_tools": {"mode": "auto", "tools": ["get_weather"]}})),
    "a format with a schema": Case(INTERACTIONS, "", put("response_format", {
        "type": "text", "mime_type": "application/json", "schema": SCHEMA})),
    "a format that is only text": Case(INTERACTIONS, "", put("response_format", [{"type": "text"}])),
    "a schema of Google's for the answer": Case(GENERATE, "", put("generationConfig", {
        "responseMimeType": "application/json", "responseSchema": {"type": "OBJECT", "properties": {
            "a": {"type": "ARRAY", "items": {"type": "STRING"}}}}})),
    "a forced call": Case(GENERATE, "", put("toolConfig.functionCallingConfig", {
        "mode": "ANY", "allowedFunctionNames": ["get_weather"]})),
    "steps of a tool that Google runs": Case(INTERACTIONS, "", add({"type": "google_search_call", "id": "g", "arguments": {
        "queries": ["x"]}, "signature": "s"})),
    "a picture": Case(INTERACTIONS, "", add({"type": "user_input", "content": [
        {"type": "image", "mime_type": "image/png", "data": PNG}]})),
}  # fmt: skip
"""Requests that are right, each one step away from a breach."""


@pytest.mark.parametrize("name", KEPT)
def test_what_stands_close_to_a_rule_passes(name: str) -> None:
    sim, path, headers, body = good(KEPT[name])
    KEPT[name].breach(body, headers)
    assert send(sim, path, headers, body).status == 200, sim.requests[-1][2]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b"null", b"\xff\xfe{}", b'{"a": NaN}', b'{"a": 1e999}',
     b'{"a": ' + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b"}"],
)  # fmt: skip
def test_a_body_that_is_no_json_object_is_refused(wire: str, body: bytes) -> None:
    path, headers, _ = second_request(wire)
    sim = Simulator()
    reply = send(sim, path, headers, body)
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert (reply.status, refusal.rule) == (400, {MESSAGES: "messages_body_is_json", INTERACTIONS: "goog_body_is_json",
                                                  GENERATE: "goog_body_is_json"}.get(wire, "body_is_json"))  # fmt: skip


def test_half_a_character_is_refused_by_messages_and_replaced_elsewhere() -> None:
    half = b'{"role": "user", "content": "\\ud83d"}'
    sim = Simulator()
    for wire, status in ((MESSAGES, 400), (CHAT, 200)):
        path, headers, body = second_request(wire)
        data = b'{"model": "%s", "max_completion_tokens": 99, "messages": [%s]}' % (body["model"].encode(), half)
        data = data.replace(b"max_completion", b"max") if wire == MESSAGES else data
        assert send(sim, path, headers, data).status == status


def test_too_many_messages_are_refused() -> None:
    path, headers, body = second_request(MESSAGES)
    sim = Simulator()
    many = [{"role": "user", "content": "x"}] * 100_001
    assert send(sim, path, headers, {**body, "messages": many}).status == 400
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert refusal.rule == "messages_present"


PAUSED = {
    INTERACTIONS: ("input", "continuation_token", lambda answer: answer["continuation_token"]),
    GENERATE: ("contents", "continuationToken", lambda answer: answer["candidates"][0]["continuationToken"]),
}


@pytest.mark.parametrize("wire", PAUSED)
def test_a_continuation_token_belongs_to_its_request(wire: str) -> None:
    name, field, read = PAUSED[wire]
    path, headers, body = second_request(wire)
    texts = [{"type": "text", "text": text} if wire == INTERACTIONS else {"role": "user", "parts": [{"text": text}]}
             for text in ("Please search the web.", "Please search the net.")]  # fmt: skip
    asked = {key: value for key, value in body.items() if key in ("model", "store")}
    sim = Simulator()
    paused = body_of(send(sim, path, headers, {**asked, name: texts[:1]}))
    assert send(sim, path, headers, {**asked, name: texts[:1], field: read(paused)}).status == 200
    assert send(sim, path, headers, {**asked, name: texts[1:], field: read(paused)}).status == 400


def test_generate_content_takes_its_model_from_the_path() -> None:
    sim = Simulator()
    path, headers, body = second_request(GENERATE)
    reply = send(sim, path.replace(MODELS[GENERATE], "gemini-0"), headers, body)
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert (refusal.rule, reply.status) == ("goog_model_exists", 404)


# ---------------------------------------------------------------- keys, stored answers


@pytest.mark.parametrize(
    ("wire", "status"), [(RESPONSES, 401), (CHAT, 401), (MESSAGES, 401), (INTERACTIONS, 400), (GENERATE, 400)]
)
def test_a_wrong_key_is_the_vendors_own_error(wire: str, status: int) -> None:
    path, headers, body = second_request(wire)
    assert send(Simulator(keys=["k"]), path, headers, body).status == 200
    assert send(Simulator(keys=["another"]), path, headers, body).status == status


def ask_for(sim: Simulator, wire: str, method: str, path: str) -> SimReply:
    _, headers, _ = second_request(wire)
    return sim.handle(SimRequest(method, path, headers, b""))


@pytest.mark.parametrize(
    ("wire", "path", "rule"),
    [
        (RESPONSES, "/v1/models", "model_exists"),
        (MESSAGES, "/v1/models", "model_named"),
        (GENERATE, "/v1beta/models", "goog_model_exists"),
    ],
)
def test_a_model_that_is_asked_for_by_name_exists(wire: str, path: str, rule: str) -> None:
    sim = Simulator()
    assert ask_for(sim, wire, "GET", f"{path}/no-such-model").status == 404
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert refusal.rule == rule
    listed = body_of(ask_for(sim, wire, "GET", path))
    entries = next(value for value in listed.values() if isinstance(value, list))
    assert len(entries) >= 3
    for entry in entries[:3]:
        name = entry.get("id") or entry["name"].removeprefix("models/")
        assert body_of(ask_for(sim, wire, "GET", f"{path}/{name}")) == entry


STORED = [
    (RESPONSES, "/v1/responses/", "response_is_stored"),
    (INTERACTIONS, "/v1/interactions/", "goog_interaction_is_stored"),
]


@pytest.mark.parametrize(("wire", "path", "rule"), STORED)
@pytest.mark.parametrize(("method", "end"), [("GET", ""), ("DELETE", ""), ("POST", "/cancel")])
def test_what_was_not_stored_is_not_found(wire: str, path: str, rule: str, method: str, end: str) -> None:
    sim = Simulator()
    reply = ask_for(sim, wire, method, f"{path}gone{end}")
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert (reply.status, refusal.rule) == (404, rule)


def test_only_a_background_response_can_be_cancelled() -> None:
    sim = Simulator()
    path, headers, body = second_request(RESPONSES)
    answer = body_of(send(sim, path, headers, {**body, "store": True}))
    assert ask_for(sim, RESPONSES, "POST", f"/v1/responses/{answer['id']}/cancel").status == 400
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert refusal.rule == "only_background_is_cancelled"


def test_an_interaction_that_still_runs_cannot_be_continued() -> None:
    sim = Simulator()
    path, headers, body = second_request(INTERACTIONS)
    running = body_of(send(sim, path, headers, {"model": body["model"], "input": "Hi", "background": True}))
    more = {"model": body["model"], "input": "And?", "previous_interaction_id": running["id"]}
    assert send(sim, path, headers, more).status == 400
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert refusal.rule == "goog_previous_interaction_finished"
    ask_for(sim, INTERACTIONS, "GET", f"/v1/interactions/{running['id']}")
    assert send(sim, path, headers, more).status == 200


# ---------------------------------------------------------------- the list itself

ELSEWHERE = {
    *[(wire, "body_is_json") for wire in OPENAI],
    (MESSAGES, "messages_body_is_json"),
    *[(wire, "goog_body_is_json") for wire in GOOGLE],
    (GENERATE, "goog_words_known"),  # no field of it takes words that a type could list: rules look at them
    (GENERATE, "goog_model_exists"),
    (RESPONSES, "response_is_stored"),
    (RESPONSES, "only_background_is_cancelled"),
    (INTERACTIONS, "goog_interaction_is_stored"),
    (INTERACTIONS, "goog_previous_interaction_finished"),
}
"""Rules whose breaches are tests of their own."""


def test_every_rule_has_a_breach_on_every_wire_that_it_guards() -> None:
    broken = {(case.wire, case.rule) for case in CASES} | ELSEWHERE
    assert broken == {(wire, rule.name) for rule in all_rules() for wire in rule.wires}


def test_every_rule_has_a_sentence_and_a_source_that_exists() -> None:
    """A source is a page and the numbers of its sections; behind a semicolon stands what else says so."""
    missing = []
    for rule in all_rules():
        match = re.fullmatch(r"(docs/[\w/-]+\.md) (R?\d[\d.]*(?:, R?\d[\d.]*)*)(;.*)?", rule.source.split("; docs/")[0])
        page = (ROOT / match[1]).read_text(encoding="utf-8") if match else ""
        numbers = match[2].split(", ") if match else []
        found = [re.search(rf"^#+ {re.escape(number)}[. ]", page, re.MULTILINE) for number in numbers]
        if not match or not all(found) or not rule.sentence.endswith("."):
            missing.append((rule.name, rule.source))
    assert missing == []


DOUBTED = [case for case in CASES for rule in all_rules() if rule.name == case.rule and rule.doubt]


@pytest.mark.parametrize("case", DOUBTED, ids=str)
def test_a_rule_in_doubt_can_be_left_out(case: Case) -> None:
    sim, path, headers, body = good(case, without=[case.rule])
    case.breach(body, headers)
    assert send(sim, path, headers, body).status == 200, sim.requests[-1][2]


def test_every_rule_in_doubt_has_such_a_test_and_no_other_rule_can_be_left_out() -> None:
    assert {case.rule for case in DOUBTED} == {rule.name for rule in all_rules() if rule.doubt}
    with pytest.raises(ValueError, match="version_present: no rule in doubt; those that can be left out are"):
        Simulator(without=["version_present"])


REFUSING = {"refused", "missing", "unsupported", "wrong_type", "without_thinking", "format_problem", "cap_problem"}


def refusals(module: ModuleType) -> set[tuple[str, int]]:
    """(function, line) of every `return` in a module of rules that is a refusal, or a text that says what is wrong."""
    found: set[tuple[str, int]] = set()
    for function in ast.parse(inspect.getsource(module)).body:
        for node in ast.walk(function):
            value = node.value if isinstance(node, ast.Return) else None
            named = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in REFUSING
            said = isinstance(value, ast.JoinedStr) and getattr(function, "name", "").endswith("_problem")
            if isinstance(function, ast.FunctionDef) and isinstance(node, ast.Return) and (named or said):
                found.add((function.name, node.lineno))
    return found


RULE_MODULES = [openai, responses, chat, anthropic, google, interactions, generate_content]
OTHER_WAYS = {"refused", "unsupported", "wrong_type", "missing", "without_thinking"}
"""Functions that only write a refusal down."""


def test_every_refusal_of_every_rule_is_one_that_a_breach_gets() -> None:
    """Not only each rule: each way in which it says no. Lines are watched while all breaches run."""
    wanted = {module.__file__: refusals(module) for module in RULE_MODULES}
    reached: dict[str, set[int]] = {str(file): set() for file in wanted}

    def watch(frame: FrameType, event: str, argument: object) -> Any:
        lines = reached.get(frame.f_code.co_filename)
        if lines is None:
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        for case in CASES:
            test_a_broken_rule_is_refused_by_that_rule(case)
        for wire in ("openai-responses", "openai-chat", "anthropic-messages", "gemini-interactions"):
            test_a_body_that_is_no_json_object_is_refused(wire, b"[]")
        test_half_a_character_is_refused_by_messages_and_replaced_elsewhere()
        test_too_many_messages_are_refused()
        test_generate_content_takes_its_model_from_the_path()
        for wire, status in (("openai-chat", 401), ("anthropic-messages", 401), ("gemini-interactions", 400)):
            test_a_wrong_key_is_the_vendors_own_error(wire, status)
        test_only_a_background_response_can_be_cancelled()
        test_an_interaction_that_still_runs_cannot_be_continued()
        for wire, path, rule in STORED:
            test_what_was_not_stored_is_not_found(wire, path, rule, "GET", "")
    finally:
        sys.settrace(before)
    never = {
        name
        for file, found in wanted.items()
        for name, line in found
        if line not in reached[str(file)] and name not in OTHER_WAYS
    }
    assert never == set()


def test_names_of_rules_are_unique() -> None:
    names = [rule.name for rule in all_rules()]
    assert len(set(names)) == len(names)
