"""Each rule of the simulator: a request that keeps it passes, the same one with one thing broken is refused by that rule.

The good requests are second requests of a tool round trip, written by the library's own encoders. `BREACHES` says for each
rule how to break it; a test asks that no rule is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lessonlib.sim import Simulator, all_rules
from lessonlib.wire import WIRES
from tests.sim.requests import MODELS, second_request, send

RESPONSES, CHAT, MESSAGES = "openai-responses", "openai-chat", "anthropic-messages"
INTERACTIONS, GENERATE = "gemini-interactions", "gemini-generate-content"

Body = dict[str, Any]
Breach = Callable[[Body, dict[str, str]], object]


def put(key: str, value: Any) -> Breach:
    return lambda body, headers: body.__setitem__(key, value)


def drop(key: str) -> Breach:
    return lambda body, headers: body.pop(key)


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
    def breach(body: Body, headers: dict[str, str]) -> None:
        body["input"].remove(of_type(body["input"], kind))

    return breach


def last_message(change: Callable[[list[Body]], object]) -> Breach:
    return lambda body, headers: change(body["messages"][-1]["content"])


def parts(place: int, change: Callable[[list[Body]], object]) -> Breach:
    return lambda body, headers: change(body["contents"][place]["parts"])


def reasoning_moved(body: Body, headers: dict[str, str]) -> None:
    reasoning = of_type(body["input"], "reasoning")
    body["input"].remove(reasoning)
    body["input"].append(reasoning)


def answered_by_item_id(body: Body, headers: dict[str, str]) -> None:
    of_type(body["input"], "function_call_output")["call_id"] = of_type(body["input"], "function_call").get("id", "fc_1")


def two_tools_one_name(body: Body, headers: dict[str, str]) -> None:
    body["tools"] = body["tools"] * 2


BREACHES: list[tuple[str, str, Breach]] = [
    *[(wire, "bearer_key_present", header("authorization", None)) for wire in (RESPONSES, CHAT)],
    *[(wire, "request_not_too_large", put("metadata", {"note": "x" * 40_000})) for wire in (RESPONSES, CHAT)],
    *[(wire, "model_exists", drop("model")) for wire in (RESPONSES, CHAT)],
    (RESPONSES, "model_exists", put("model", "no-such-model")),
    *[(wire, "no_sampling_for_reasoning_models", put("temperature", 0.2)) for wire in (RESPONSES, CHAT)],
    (RESPONSES, "effort_fits_the_model", put("reasoning", {"effort": "none"})),
    (CHAT, "effort_fits_the_model", put("reasoning_effort", "none")),
    (RESPONSES, "tools_well_formed", put("tools", [{"type": "function", "function": {"name": "get_weather"}}])),
    (CHAT, "tools_well_formed", put("tools", [{"type": "function", "name": "get_weather"}])),
    (RESPONSES, "strict_schema_complete", lambda body, _: body["tools"][0]["parameters"].pop("additionalProperties")),
    (CHAT, "strict_schema_complete", lambda body, _: body["tools"][0]["function"]["parameters"].pop("required")),
    (RESPONSES, "chosen_tool_exists", put("tool_choice", {"type": "function", "name": "get_time"})),
    (CHAT, "chosen_tool_exists", put("tool_choice", {"type": "function", "function": {"name": "get_time"}})),
    (RESPONSES, "parameters_known", put("max_tokens", 100)),
    (RESPONSES, "input_present", drop("input")),
    (RESPONSES, "output_cap_large_enough", put("max_output_tokens", 1)),
    (RESPONSES, "previous_response_stored", put("previous_response_id", "resp_gone")),
    (RESPONSES, "items_well_formed", item("function_call", "arguments", {"city": "Lima"})),
    (RESPONSES, "reasoning_without_output_fields", item("reasoning", "status", "completed")),
    (RESPONSES, "reasoning_can_be_read", item("reasoning", "encrypted_content")),
    (RESPONSES, "encrypted_content_genuine", item("reasoning", "id", "rs_other")),
    (RESPONSES, "encrypted_content_genuine", item("reasoning", "encrypted_content", "gAAAAnonsense")),
    (RESPONSES, "reasoning_followed_by_its_item", reasoning_moved),
    (RESPONSES, "item_with_its_reasoning", without("reasoning")),
    (RESPONSES, "every_output_has_its_call", answered_by_item_id),
    (RESPONSES, "every_call_has_its_output", without("function_call_output")),
    (CHAT, "chat_messages_present", drop("messages")),
    (CHAT, "chat_cap_has_its_name", put("max_tokens", 100)),
    (CHAT, "chat_stream_options_with_stream", put("stream_options", {"include_usage": True})),
    (CHAT, "chat_at_most_four_stops", put("stop", ["1", "2", "3", "4", "5"])),
    (CHAT, "chat_calls_well_formed", lambda body, _: body["messages"][2]["tool_calls"][0]["function"].update(arguments={})),
    (CHAT, "chat_every_call_answered", lambda body, _: body["messages"].pop()),
    (CHAT, "chat_tool_message_has_its_call", lambda body, _: body["messages"].pop(2)),
    (MESSAGES, "api_key_present", header("x-api-key", None)),
    (MESSAGES, "version_present", header("anthropic-version", None)),
    (MESSAGES, "version_present", header("anthropic-version", "2020-01-01")),
    (MESSAGES, "body_not_too_large", put("metadata", {"user_id": "x" * 40_000})),
    (MESSAGES, "model_named", put("model", "gpt-6-astra")),
    (MESSAGES, "max_tokens_present", drop("max_tokens")),
    (MESSAGES, "messages_present", put("messages", [])),
    (MESSAGES, "messages_present", lambda body, _: body["messages"][0].update(role="system")),
    (MESSAGES, "user_first", lambda body, _: body["messages"].pop(0)),
    (MESSAGES, "no_sampling_parameters", put("temperature", 1.0)),
    (MESSAGES, "thinking_fits_the_model", put("thinking", {"type": "disabled"})),
    (MESSAGES, "thinking_fits_the_model", put("thinking", {"type": "enabled", "budget_tokens": 1024})),
    (MESSAGES, "tools_well_formed", put("tools", [{"name": "get_weather", "parameters": {"type": "object"}}])),
    (MESSAGES, "tools_well_formed", two_tools_one_name),
    (MESSAGES, "forced_choice_allowed", put("tool_choice", {"type": "any"})),
    (MESSAGES, "no_empty_text", last_message(lambda blocks: blocks.append({"type": "text", "text": " "}))),
    (MESSAGES, "blocks_well_formed", item("thinking", "signature")),
    (MESSAGES, "blocks_well_formed", item("tool_use", "input", '{"city": "Lima"}')),
    (MESSAGES, "content_not_empty", lambda body, _: body["messages"].insert(0, {"role": "user", "content": []})),
    (MESSAGES, "every_call_answered", last_message(lambda blocks: blocks.pop())),
    (MESSAGES, "every_result_has_its_call", last_message(lambda blocks: blocks.append({**blocks[0], "tool_use_id": "t"}))),
    (MESSAGES, "every_result_has_its_call", last_message(lambda blocks: blocks.append(dict(blocks[0])))),
    (MESSAGES, "results_first", last_message(lambda blocks: blocks.insert(0, {"type": "text", "text": "Here:"}))),
    (MESSAGES, "thinking_unchanged", item("thinking", "thinking", "something else")),
    (MESSAGES, "thinking_unchanged", item("thinking", "signature", "bm90IG9uZSBvZiBvdXJz")),
    (MESSAGES, "thinking_kept_in_tool_turn", lambda body, _: body["messages"][1]["content"].pop(0)),
    (MESSAGES, "thinking_not_moved", put("system", "Answer in rhyme.")),
    (MESSAGES, "no_prefill_on_new_models", lambda body, _: body["messages"].append({"role": "assistant", "content": "It"})),
    *[(wire, "goog_key_present", header("x-goog-api-key", None)) for wire in (INTERACTIONS, GENERATE)],
    *[(wire, "goog_request_not_too_large", put("labels", {"note": "x" * 40_000})) for wire in (INTERACTIONS, GENERATE)],
    (INTERACTIONS, "goog_model_exists", put("model", "gemini-0")),
    (INTERACTIONS, "goog_parameters_known", put("tool_choice", "auto")),
    (INTERACTIONS, "goog_input_present", put("input", [])),
    (INTERACTIONS, "goog_previous_interaction_stored", put("previous_interaction_id", "v1_gone")),
    (INTERACTIONS, "goog_background_needs_store", put("background", True)),
    (INTERACTIONS, "goog_tools_flat", put("tools", [{"functionDeclarations": [{"name": "get_weather"}]}])),
    (INTERACTIONS, "goog_thinking_level_known", put("generation_config", {"thinking_level": "heroic"})),
    (INTERACTIONS, "goog_steps_well_formed", item("function_call", "arguments", '{"city": "Lima"}')),
    (INTERACTIONS, "goog_every_call_answered", without("function_result")),
    (INTERACTIONS, "goog_every_call_answered", item("function_result", "call_id", "fc_other")),
    (INTERACTIONS, "goog_thought_before_call", without("thought")),
    (INTERACTIONS, "goog_thoughts_unchanged", item("thought", "signature", "bm90IG9uZSBvZiBvdXJz")),
    (GENERATE, "contents_present", lambda body, _: body["contents"][1].update(role="assistant")),
    (GENERATE, "parts_well_formed", parts(0, lambda found: found.append({}))),
    (GENERATE, "responses_match_calls", parts(2, lambda found: found.pop())),
    (GENERATE, "first_call_signed", parts(1, lambda found: [part.pop("thoughtSignature", None) for part in found])),
    (GENERATE, "signatures_genuine", parts(1, lambda found: found[-2]["functionCall"]["args"].update(city="Rome"))),
]  # fmt: skip

OTHER_MODELS = {
    "encrypted_content_only_from_reasoning_models": (RESPONSES, "gpt-4o", put("include", ["reasoning.encrypted_content"])),
    "chat_reasoning_comes_back": (CHAT, "deepseek-v4-pro", lambda body, _: body["messages"][2].pop("reasoning_content")),
}


@pytest.mark.parametrize("wire", WIRES)
def test_a_round_trip_of_the_library_keeps_every_rule(wire: str) -> None:
    sim = Simulator()
    path, headers, body = second_request(wire)
    assert send(sim, path, headers, body).status == 200, sim.requests[-1][2]


@pytest.mark.parametrize(("wire", "rule", "breach"), BREACHES, ids=[f"{wire}-{rule}" for wire, rule, _ in BREACHES])
def test_a_broken_rule_is_refused_by_that_rule(wire: str, rule: str, breach: Breach) -> None:
    sim = Simulator(max_body=30_000)
    path, headers, body = second_request(wire)
    breach(body, headers)
    reply = send(sim, path, headers, body)
    refusal = sim.requests[-1][2]
    assert refusal is not None, "the simulator let it through"
    assert (rule, refusal.status) == (refusal.rule, reply.status)
    assert 400 <= reply.status < 500


@pytest.mark.parametrize("rule", OTHER_MODELS)
def test_rules_of_other_models(rule: str) -> None:
    wire, model, breach = OTHER_MODELS[rule]
    sim = Simulator()
    path, headers, body = second_request(wire, model)
    assert send(sim, path, headers, body).status == 200, sim.requests[-1][2]
    breach(body, headers)
    assert send(sim, path, headers, body).status == 400
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert rule == refusal.rule


def test_generate_content_takes_its_model_from_the_path() -> None:
    sim = Simulator()
    path, headers, body = second_request(GENERATE)
    reply = send(sim, path.replace(MODELS[GENERATE], "gemini-0"), headers, body)
    refusal = sim.requests[-1][2]
    assert refusal is not None
    assert (refusal.rule, reply.status) == ("goog_model_exists", 404)


def test_every_rule_has_a_breach_on_every_wire_that_it_guards_or_is_named_here() -> None:
    broken = {(wire, rule) for wire, rule, _ in BREACHES}
    broken |= {(wire, rule) for rule, (wire, _, _) in OTHER_MODELS.items()}
    broken |= {(GENERATE, "goog_model_exists")}
    assert {(wire, rule.name) for rule in all_rules() for wire in rule.wires} == broken


def test_every_rule_has_a_sentence_and_a_source() -> None:
    assert [
        rule.name for rule in all_rules() if not rule.sentence.endswith(".") or not rule.source.startswith("docs/wire/")
    ] == []
