"""What the Interactions API refuses, beyond what google.py has for both APIs. docs/wire/gemini-interactions.md"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from lessonlib.sim.refusal import STORED, Context, Refusal
from lessonlib.sim.rules.google import BOOK, DOC, INTERACTIONS, THOUGHT, cap_problem, name_problem, refused
from lessonlib.sim.shapes import By, Closed, schema_problem, shown, words
from lessonlib.sim.signing import Verdict, check, digest
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

TOKEN = "gemini continuation"
"""The kind under which continuation tokens are signed."""

# ---------------------------------------------------------------- shapes

SERVER_TOOLS = ("code_execution", "file_search", "google_maps", "google_search", "mcp_server_tool", "processing",
                "retrieval", "tool_search", "url_context")  # fmt: skip
"""Tools that Google runs: the steps `..._call` and `..._result` of a history."""
TOOL_TYPES = words("function", "code_execution", "computer_use", "file_search", "google_maps", "google_search", "mcp_server",
                   "retrieval", "tool_search", "url_context")  # fmt: skip
CONTENT = By("type", {
    "text": {"text": str, "annotations": [dict]},
    **{kind: {"data": str, "uri": str, "mime_type": str} for kind in ("image", "audio", "video", "document")},
}, other={"type": words("text", "image", "audio", "video", "document")})  # fmt: skip
STEP = By("type", {
    "user_input": {"content": (str, [CONTENT])},
    "model_output": {"content": (str, [CONTENT])},
    "thought": {"signature": str, "summary": [CONTENT]},
    "function_call": {"id": str, "name": str, "arguments": dict},
    "function_result": {"call_id": str, "name": str, "is_error": bool, "result": (str, [CONTENT], dict)},
    **{f"{tool}_{end}": dict for tool in SERVER_TOOLS for end in ("call", "result")},
    **CONTENT.cases,
}, other={"type": words("user_input", "model_output", "thought", "function_call", "function_result", *CONTENT.cases,
                        *(f"{tool}_{end}" for tool in SERVER_TOOLS for end in ("call", "result")))})  # fmt: skip
MODES = words("auto", "any", "none", "validated")
CHOICE = (MODES, Closed({"allowed_tools": Closed({"mode": MODES, "tools": [str]})}))
SETTINGS = Closed({
    "image_config": dict, "max_output_tokens": int, "seed": int, "speech_config": object, "stop_sequences": [str],
    "temperature": float, "thinking_level": words("minimal", "low", "medium", "high", "xhigh"),
    "thinking_summaries": words("auto", "none"), "tool_choice": CHOICE, "top_p": float, "transcription_config": dict,
    "video_config": dict,
})  # fmt: skip
FORMAT: JSON = {"type": words("text", "audio", "image", "video"), "mime_type": str, "schema": dict}
SHAPE = Closed(
    {
        "model": str,
        "agent": str,
        "agent_config": dict,
        "input": (str, [STEP], STEP),
        "system_instruction": str,
        "tools": [{"type": TOOL_TYPES, "name": str, "description": str, "parameters": dict}],
        "generation_config": SETTINGS,
        "response_format": (FORMAT, [FORMAT]),
        "response_modalities": [str],
        "store": bool,
        "stream": bool,
        "background": bool,
        "previous_interaction_id": str,
        "continuation_token": str,
        "service_tier": str,
        "labels": dict,
        "safety_settings": [dict],
        "cached_content": str,
        "webhook_config": dict,
        "environment": object,
    }
)

CONTENT_TYPES = ("text", "image", "audio", "video", "document")

# ---------------------------------------------------------------- reading the input


def steps(body: JSON) -> list[JSON]:
    """The input as steps: a text, one content or a list of contents is one `user_input` step."""
    value = body.get("input")
    if isinstance(value, str):
        return [{"type": "user_input", "content": [{"type": "text", "text": value}]}]
    found = [value] if isinstance(value, dict) else [as_dict(entry) for entry in as_list(value)]
    if found and all(entry.get("type") in CONTENT_TYPES for entry in found):
        return [{"type": "user_input", "content": found}]
    return found


def all_steps(c: Context) -> list[JSON]:
    """The stored steps before the request's own."""
    stored = c.sim.kept(INTERACTIONS, c.body.get("previous_interaction_id"))
    return [*(stored.history if stored is not None else []), *steps(c.body)]


def _settings(c: Context) -> JSON:
    return as_dict(c.body.get("generation_config"))


# ---------------------------------------------------------------- parameters


@BOOK.rule(f"{DOC} 1.1", INTERACTIONS)
def goog_model_or_agent(c: Context) -> Refusal | None:
    """Exactly one of `model` and `agent`."""
    if (c.body.get("model") is None) == (c.body.get("agent") is None):
        return refused("Exactly one of model and agent is required.")
    return None


@BOOK.rule(f"{DOC} 1.1", INTERACTIONS)
def goog_input_present(c: Context) -> Refusal | None:
    """`input` is required, unless a stored interaction is continued by its token."""
    if not c.body.get("input") and not (c.body.get("continuation_token") and c.body.get("previous_interaction_id")):
        return refused("input is required.")
    return None


@BOOK.rule(f"{DOC} 1.5", INTERACTIONS)
def goog_state_not_without_store(c: Context) -> Refusal | None:
    """`previous_interaction_id` and `store: false` exclude each other."""
    if c.body.get("previous_interaction_id") is not None and c.body.get("store") is False:
        return refused("previous_interaction_id cannot be used with store: false.", "failed_precondition")
    return None


@BOOK.rule(f"{DOC} 1.5", INTERACTIONS)
def goog_previous_interaction_stored(c: Context) -> Refusal | None:
    """`previous_interaction_id` names an interaction that was stored; `store: false` stores nothing."""
    previous = c.body.get("previous_interaction_id")
    if previous is not None and c.sim.kept(INTERACTIONS, previous) is None:
        return refused(f"Interaction {shown(previous)} not found; was it created with store: true?", "not_found", 404)
    return None


@BOOK.rule(f"{DOC} 7; the background guide of ai.google.dev", INTERACTIONS)
def goog_previous_interaction_finished(c: Context) -> Refusal | None:
    """An interaction that still runs in the background cannot be continued."""
    stored = c.sim.kept(INTERACTIONS, c.body.get("previous_interaction_id"))
    if stored is not None and stored.pending:
        return refused("The previous interaction is still in progress.", "failed_precondition")
    return None


@BOOK.rule(f"{DOC} 1.5", INTERACTIONS)
def goog_background_needs_store(c: Context) -> Refusal | None:
    """`background: true` needs a stored interaction."""
    if c.body.get("background") is True and c.body.get("store") is False:
        return refused("background requires store: true.", "failed_precondition")
    return None


def token_for(c_body: JSON) -> str:
    """What a continuation token is bound to: the request that it continues, but for the token and the stream."""
    ours = {key: value for key, value in c_body.items() if key in ("model", "input", "system_instruction", "tools")}
    return digest(ours)


@BOOK.rule(f"{DOC} 1.4", INTERACTIONS)
def goog_continuation_token_genuine(c: Context) -> Refusal | None:
    """A `continuation_token` comes back with the original input (`store: false`), or with the id of the interaction that
    gave it and without input."""
    token = c.body.get("continuation_token")
    if token is None:
        return None
    stored = c.sim.kept(INTERACTIONS, c.body.get("previous_interaction_id"))
    original = stored.answer.body if stored is not None and not c.body.get("input") else c.body
    if check(token, TOKEN, token_for(original)) is not Verdict.OK:
        return refused("The continuation token does not belong to this request.")
    return None


@BOOK.rule(f"{DOC} 1.3; lessonlib/data/models.json", INTERACTIONS)
def goog_thinking_level_known(c: Context) -> Refusal | None:
    """`thinking_level` takes the words that the model knows."""
    level = _settings(c).get("thinking_level")
    if level is not None and c.able.efforts is not None and level not in c.able.efforts:
        return refused(f"thinking_level {level} is not supported by this model; use {', '.join(c.able.efforts)}.")
    return None


@BOOK.rule(f"{DOC} 1.1", INTERACTIONS)
def goog_cap_positive(c: Context) -> Refusal | None:
    """`max_output_tokens` is positive, and a number of 32 bits."""
    return cap_problem(_settings(c).get("max_output_tokens"))


# ---------------------------------------------------------------- tools and format


@BOOK.rule(f"{DOC} 1.2", INTERACTIONS)
def goog_tools_flat(c: Context) -> Refusal | None:
    """A function is defined flat: `type`, `name`, `parameters` side by side, with a legal name and a schema."""
    for place, tool in enumerate(as_list(c.body.get("tools"))):
        where = f"tools[{place}]"
        if not tool.get("type"):
            hint = " (functionDeclarations belong to generateContent)" if "functionDeclarations" in tool else ""
            return refused(f"{where}.type is required{hint}.")
        if tool["type"] != "function":
            continue
        problem = name_problem(tool.get("name"))
        if problem is not None:
            return refused(f"{where}.name {problem}.")
        schema = tool.get("parameters")
        if schema is not None and (problem := schema_problem(schema)) is not None:
            return refused(f"{where}.parameters: {problem}.")
    return None


@BOOK.rule(f"{DOC} 1.2", INTERACTIONS)
def goog_allowed_tools_exist(c: Context) -> Refusal | None:
    """`tool_choice.allowed_tools` names tools of the request; a forced choice needs tools."""
    choice = _settings(c).get("tool_choice")
    names = [tool.get("name") for tool in as_list(c.body.get("tools"))]
    allowed = as_dict(as_dict(choice).get("allowed_tools"))
    for name in as_list(allowed.get("tools")):
        if name not in names:
            return refused(f"generation_config.tool_choice.allowed_tools: '{shown(name)}' is not one of the tools.")
    if (choice == "any" or allowed.get("mode") == "any") and not names:
        return refused("generation_config.tool_choice: any needs tools.")
    return None


@BOOK.rule(f"{DOC} 1.1", INTERACTIONS)
def goog_format_well_formed(c: Context) -> Refusal | None:
    """`response_format` says its type; a schema goes with `mime_type: application/json`."""
    given = c.body.get("response_format")
    for format_ in given if isinstance(given, list) else [given] if given is not None else []:
        if not format_.get("type"):
            return refused("response_format.type is required.")
        schema = format_.get("schema")
        if schema is None:
            continue
        if format_.get("mime_type") != "application/json":
            return refused("response_format.schema needs mime_type: application/json.")
        if (problem := schema_problem(schema)) is not None:
            return refused(f"response_format.schema: {problem}.")
    return None


# ---------------------------------------------------------------- steps

NEEDED = {
    "function_call": ("id", "name", "arguments"),
    "function_result": ("call_id", "result"),
    "user_input": ("content",),
    "model_output": ("content",),
}


@BOOK.rule(f"{DOC} 2, 2.3", INTERACTIONS)
def goog_steps_well_formed(c: Context) -> Refusal | None:
    """A step has its type's fields: a call `id`, name and arguments, a result `call_id` (not `id`) and `result`."""
    for place, step in enumerate(steps(c.body)):
        kind = as_text(step.get("type"))
        if not kind and "role" in step:
            return refused("Use the step list input format instead of turns: steps have a type and no role.")
        if not kind:
            return refused(f"input[{place}].type is required.")
        for name in NEEDED.get(kind, ()):
            if step.get(name) is None:
                hint = " (a result is found by call_id, not by id)" if name == "call_id" else ""
                return refused(f"Missing {name} in input[{place}] of type {kind}{hint}.")
    return None


@BOOK.rule(f"{DOC} 2, 2.1; the types of the package google-genai", INTERACTIONS)
def goog_content_well_formed(c: Context) -> Refusal | None:
    """A content says its `type`, and a text content has a `text`."""
    for place, step in enumerate(steps(c.body)):
        for number, content in enumerate(as_list(step.get("content"))):
            for name in ("type", "text") if as_dict(content).get("type") in (None, "text") else ():
                if as_dict(content).get(name) is None:
                    return refused(f"input[{place}].content[{number}].{name} is required.")
    return None


@BOOK.rule(f"{DOC} 2.3", INTERACTIONS)
def goog_every_call_answered(c: Context) -> Refusal | None:
    """Every `function_call` has its `function_result` behind it, found by `call_id`, and every result its call."""
    calls: dict[str, bool] = {}
    for step in all_steps(c):
        if step.get("type") == "function_call":
            calls[as_text(step.get("id"))] = False
        elif step.get("type") == "function_result":
            call_id = as_text(step.get("call_id"))
            if call_id not in calls:
                return refused(f"function_result for {shown(call_id)}: there is no such function_call before it.")
            calls[call_id] = True
    missing = next((call_id for call_id, answered in calls.items() if not answered), None)
    if missing is not None:
        return refused(f"function_call {shown(missing)} has no function_result.", "failed_precondition")
    return None


@BOOK.rule(
    f"{DOC} 2.3", INTERACTIONS, doubt="the sources say that each call has its result, not that a second one is refused"
)
def goog_one_result_for_each_call(c: Context) -> Refusal | None:
    """A call has one result, and not a second one."""
    results = Counter(as_text(step.get("call_id")) for step in all_steps(c) if step.get("type") == "function_result")
    twice = next((call_id for call_id, number in results.items() if number > 1), None)
    return refused(f"function_call {shown(twice)} has more than one function_result.") if twice is not None else None


@BOOK.rule(f"{DOC} 2.2; allenhutchison/obsidian-gemini#1269", INTERACTIONS)
def goog_thought_before_call(c: Context) -> Refusal | None:
    """While a tool turn runs, the thought step that came before its calls is there, with its signature."""
    found = steps(c.body)
    last_user = max((place for place, step in enumerate(found) if step.get("type") == "user_input"), default=-1)
    thought = False
    for step in found[last_user + 1 :]:
        if step.get("type") == "thought":
            thought = bool(step.get("signature"))
        elif step.get("type") == "function_call":
            if not thought and not foreign(step.get("id")):
                return refused("A function_call lacks the signed thought that came before it.", "missing_thought_signature")
        elif step.get("type") == "function_result":
            thought = False
    return None


def foreign(call_id: Any) -> bool:
    """Whether a call was not made here: a history from another vendor has no thoughts to bring."""
    return not re.fullmatch(r"fc_[0-9a-f]{24}", as_text(call_id))


@BOOK.rule(f"{DOC} 2.2", INTERACTIONS)
def goog_thoughts_unchanged(c: Context) -> Refusal | None:
    """A thought step comes back byte for byte: its signature belongs to its summary."""
    for place, step in enumerate(steps(c.body)):
        if step.get("type") != "thought" or not step.get("signature"):
            continue
        if check(step["signature"], THOUGHT, step.get("summary") or []) is not Verdict.OK:
            return refused(f"input[{place}]: the thought signature is not valid.")
    return None


# ---------------------------------------------------------------- stored interactions, and what is not played


@BOOK.rule(f"{DOC} 1", INTERACTIONS, on=STORED)
def goog_interaction_is_stored(c: Context) -> Refusal | None:
    """An interaction that is asked for by its id was stored."""
    if c.sim.kept(INTERACTIONS, c.target) is None:
        return refused(f"Interaction {shown(c.target)} not found.", "not_found", 404)
    return None


NOT_PLAYED = ("agent", "cached_content", "environment", "webhook_config")


@BOOK.rule("docs/simulator.md 5", INTERACTIONS)
def goog_extras_are_not_simulated(c: Context) -> Refusal | None:
    """The simulator has no agents, explicit caches, environments or webhooks: it says so, instead of leaving them out."""
    for name in NOT_PLAYED:
        if c.body.get(name) is not None:
            return refused(f"The simulator does not play '{name}'.", "unimplemented", 501)
    return None
