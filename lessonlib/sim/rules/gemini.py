"""What Google's two APIs refuse, rule by rule: Interactions and generateContent. Messages are ours.

`type` of a refusal is the Interactions code in snake_case (`invalid_request`); generateContent's frontend turns the status
into its google.rpc word (`INVALID_ARGUMENT`). Sources: docs/wire/gemini-interactions.md and gemini-generate-content.md.
"""

from __future__ import annotations

import re
from typing import Any

from lessonlib.sim.refusal import Context, Refusal, RuleBook
from lessonlib.sim.signing import Verdict, check
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

INTERACTIONS, GENERATE = "gemini-interactions", "gemini-generate-content"
BOOK = RuleBook(INTERACTIONS, GENERATE)
DOC = "docs/wire/gemini-interactions.md"
GENERATE_DOC = "docs/wire/gemini-generate-content.md"

THOUGHT = "gemini thought"
"""The kind under which thought signatures are signed."""
SKIPPED = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""Documented values that switch the check off for a history from elsewhere."""


def refused(message: str, kind: str = "invalid_request", status: int = 400) -> Refusal:
    """A refusal in Google's form."""
    return Refusal(status, kind, message)


# ---------------------------------------------------------------- both APIs


@BOOK.rule(f"{DOC} (headers)")
def goog_key_present(c: Context) -> Refusal | None:
    """The key stands in `x-goog-api-key` (or in the query as `key`)."""
    query = re.search(r"[?&]key=([^&]+)", c.path)
    key = c.headers.get("x-goog-api-key", "").strip() or (query[1] if query else "")
    if not key:
        status = 401 if c.wire == INTERACTIONS else 403
        return refused(
            "No API key: send x-goog-api-key.", "authentication" if status == 401 else "permission_denied", status
        )
    if c.sim.keys is not None and key not in c.sim.keys:
        return refused("API key not valid. Please pass a valid API key.", "invalid_request")
    return None


@BOOK.rule(f"{DOC} (errors)")
def goog_request_not_too_large(c: Context) -> Refusal | None:
    """A request that is too large is refused before it is read."""
    if c.size > c.sim.max_body:
        return refused(f"The request has {c.size:,} bytes; {c.sim.max_body:,} are allowed.", "invalid_request", 413)
    return None


@BOOK.rule(f"{DOC} (request)")
def goog_model_exists(c: Context) -> Refusal | None:
    """The model exists: `model` in the body of Interactions, the path of generateContent."""
    if c.wire == INTERACTIONS and not c.model and not c.body.get("agent"):
        return refused("Exactly one of model and agent is required.", "parameter_missing")
    if c.model and c.able.provider != "gemini":
        return refused(f"models/{c.model} is not found.", "model_not_found", 404)
    return None


# ---------------------------------------------------------------- Interactions: parameters

KNOWN = frozenset(
    [
        "model",
        "agent",
        "agent_config",
        "input",
        "system_instruction",
        "tools",
        "generation_config",
        "response_format",
        "response_mime_type",
        "response_modalities",
        "store",
        "stream",
        "background",
        "previous_interaction_id",
        "continuation_token",
        "service_tier",
        "labels",
        "safety_settings",
        "cached_content",
        "webhook_config",
        "environment",
    ]
)
ELSEWHERE = {"tool_choice": "generation_config.tool_choice", "max_output_tokens": "generation_config.max_output_tokens",
             "temperature": "generation_config.temperature", "contents": "input", "systemInstruction": "system_instruction",
             "generationConfig": "generation_config", "messages": "input"}  # fmt: skip


@BOOK.rule(f"{DOC} (request)", INTERACTIONS)
def goog_parameters_known(c: Context) -> Refusal | None:
    """An unknown parameter is refused; `tool_choice` stands inside `generation_config`."""
    for name in c.body:
        if name not in KNOWN:
            hint = f" It is {ELSEWHERE[name]}." if name in ELSEWHERE else ""
            return refused(f"Unknown parameter: {name}.{hint}", "parameter_unknown")
    return None


@BOOK.rule(f"{DOC} (request)", INTERACTIONS)
def goog_input_present(c: Context) -> Refusal | None:
    """`input` is required, unless a stored interaction is continued by its token."""
    if not c.body.get("input") and not (c.body.get("continuation_token") and c.body.get("previous_interaction_id")):
        return refused("input is required.", "parameter_missing")
    return None


@BOOK.rule(f"{DOC} (server state)", INTERACTIONS)
def goog_previous_interaction_stored(c: Context) -> Refusal | None:
    """`previous_interaction_id` names an interaction that was stored; `store: false` stores nothing."""
    previous = c.body.get("previous_interaction_id")
    if previous is not None and previous not in c.sim.stored:
        return refused(f"Interaction {previous} not found; was it created with store: true?", "not_found", 404)
    return None


@BOOK.rule(f"{DOC} (server state)", INTERACTIONS)
def goog_background_needs_store(c: Context) -> Refusal | None:
    """`background: true` needs a stored interaction."""
    if c.body.get("background") is True and c.body.get("store") is False:
        return refused("background requires store: true.", "failed_precondition")
    return None


@BOOK.rule(f"{DOC} (tools)", INTERACTIONS)
def goog_tools_flat(c: Context) -> Refusal | None:
    """A function is defined flat: `type`, `name`, `parameters` side by side."""
    for place, tool in enumerate(as_list(c.body.get("tools"))):
        tool = as_dict(tool)
        if not tool.get("type"):
            return refused(f"tools[{place}].type is required.", "parameter_missing")
        if tool["type"] == "function" and not as_text(tool.get("name")):
            return refused(f"tools[{place}].name is required.", "parameter_missing")
    return None


@BOOK.rule(f"{DOC} (thinking)", INTERACTIONS)
def goog_thinking_level_known(c: Context) -> Refusal | None:
    """`thinking_level` takes the words that the model knows."""
    level = as_dict(c.body.get("generation_config")).get("thinking_level")
    if level is not None and c.able.efforts is not None and level not in c.able.efforts:
        return refused(f"thinking_level {level} is not supported by this model; use {', '.join(c.able.efforts)}.")
    return None


# ---------------------------------------------------------------- Interactions: steps


def steps(body: JSON) -> list[JSON]:
    """The input as steps: a text, one content or a list of contents is one `user_input` step."""
    value = body.get("input")
    if isinstance(value, str):
        return [{"type": "user_input", "content": [{"type": "text", "text": value}]}]
    found = [as_dict(value)] if isinstance(value, dict) else [as_dict(entry) for entry in as_list(value)]
    if found and all(entry.get("type") in ("text", "image", "audio", "video", "document") for entry in found):
        return [{"type": "user_input", "content": found}]
    return found


@BOOK.rule(f"{DOC} (steps)", INTERACTIONS)
def goog_steps_well_formed(c: Context) -> Refusal | None:
    """A step has its type's fields; `arguments` is an object here, a text only in a stream."""
    needed = {
        "function_call": ("id", "name", "arguments"),
        "function_result": ("call_id", "result"),
        "user_input": ("content",),
    }
    for place, step in enumerate(steps(c.body)):
        kind = as_text(step.get("type"))
        if not kind:
            return refused(f"input[{place}].type is required.", "parameter_missing")
        for name in needed.get(kind, ()):
            if name not in step:
                return refused(f"input[{place}].{name} is required.", "parameter_missing")
        if kind == "function_call" and not isinstance(step["arguments"], dict):
            return refused(f"input[{place}].arguments must be an object.")
    return None


def all_steps(c: Context) -> list[JSON]:
    """The stored steps before the request's own."""
    previous = c.body.get("previous_interaction_id")
    stored = as_list(c.sim.stored[previous]["steps"]) if previous in c.sim.stored else []
    return [*stored, *steps(c.body)]


@BOOK.rule(f"{DOC} (tool results)", INTERACTIONS)
def goog_every_call_answered(c: Context) -> Refusal | None:
    """Every `function_call` has its `function_result` by `call_id`, and every result its call, once."""
    found = all_steps(c)
    calls = [as_text(step.get("id")) for step in found if step.get("type") == "function_call"]
    results = [as_text(step.get("call_id")) for step in found if step.get("type") == "function_result"]
    for call_id in results:
        if call_id not in calls:
            return refused(f"function_result for {call_id}: there is no such function_call.")
    for call_id in calls:
        if call_id not in results:
            return refused(f"function_call {call_id} has no function_result.", "failed_precondition")
    if len(set(results)) != len(results):
        return refused("a function_call has more than one function_result.")
    return None


@BOOK.rule(f"{DOC} (thoughts)", INTERACTIONS)
def goog_thought_before_call(c: Context) -> Refusal | None:
    """While a tool turn runs, the thought step that came before its calls is there, with its signature."""
    found = steps(c.body)
    last_user = max((place for place, step in enumerate(found) if step.get("type") == "user_input"), default=-1)
    thought = False
    for step in found[last_user + 1 :]:
        if step.get("type") == "thought":
            thought = bool(step.get("signature"))
        elif step.get("type") == "function_call":
            if not thought and not _foreign(as_text(step.get("id"))):
                return refused("A function_call lacks the signed thought that came before it.", "missing_thought_signature")
        elif step.get("type") == "function_result":
            thought = False
    return None


def _foreign(call_id: str) -> bool:
    """Whether a call was not made here: a history from another vendor has no thoughts to bring."""
    return not re.fullmatch(r"fc_[0-9a-f]{24}", call_id)


@BOOK.rule(f"{DOC} (thoughts)", INTERACTIONS)
def goog_thoughts_unchanged(c: Context) -> Refusal | None:
    """A thought step comes back byte for byte: its signature belongs to its summary."""
    for place, step in enumerate(steps(c.body)):
        if step.get("type") == "thought" and step.get("signature"):
            verdict = check(as_text(step["signature"]), THOUGHT, step.get("summary") or [])
            if verdict is not Verdict.OK:
                return refused(f"input[{place}]: the thought signature is not valid.")
    return None


# ---------------------------------------------------------------- generateContent


def first(value: Any, *names: str) -> Any:
    """The field under its camelCase or its snake_case name: this API reads both."""
    return next((value[name] for name in names if name in value), None)


def contents(body: JSON) -> list[JSON]:
    """The `contents`."""
    return [as_dict(entry) for entry in as_list(body.get("contents"))]


def parts(content: JSON) -> list[JSON]:
    """A content's parts."""
    return [as_dict(part) for part in as_list(content.get("parts"))]


@BOOK.rule(f"{GENERATE_DOC} (request)", GENERATE)
def contents_present(c: Context) -> Refusal | None:
    """`contents` is a list of contents of role `user` or `model` (no `assistant`, no `system`), each with parts."""
    found = contents(c.body)
    if not found:
        return refused("contents is not specified.")
    for place, content in enumerate(found):
        if content.get("role", "user") not in ("user", "model", "function"):
            return refused("Please use a valid role: user, model.")
        if not parts(content):
            return refused(f"contents[{place}].parts must not be empty.")
    return None


PART_FIELDS = ("text", "functionCall", "function_call", "functionResponse", "function_response", "inlineData", "inline_data",
               "fileData", "file_data", "executableCode", "executable_code", "codeExecutionResult",
               "code_execution_result", "toolCall", "toolResponse")  # fmt: skip


@BOOK.rule(f"{GENERATE_DOC} (parts)", GENERATE)
def parts_well_formed(c: Context) -> Refusal | None:
    """A part holds one thing; `args` and `response` are objects, and the signature stands beside the call, not in it."""
    for place, content in enumerate(contents(c.body)):
        for number, part in enumerate(parts(content)):
            where = f"contents[{place}].parts[{number}]"
            if not any(name in part for name in PART_FIELDS):
                return refused(f"{where}.data: required oneof field must have one initialized field.")
            call = as_dict(first(part, "functionCall", "function_call"))
            if "thoughtSignature" in call or not isinstance(call.get("args", {}), dict):
                return refused(f"Invalid JSON payload received at {where}.functionCall: unknown name or wrong type.")
            response = first(part, "functionResponse", "function_response")
            if response is not None and not isinstance(as_dict(response).get("response"), dict):
                return refused(f"{where}.functionResponse.response must be an object.")
    return None


@BOOK.rule(f"{GENERATE_DOC} (tool results)", GENERATE)
def responses_match_calls(c: Context) -> Refusal | None:
    """The content after a content with function calls has as many function responses, by id or by name and order."""
    found = contents(c.body)
    for place, content in enumerate(found):
        calls = [as_dict(first(part, "functionCall", "function_call")) for part in parts(content) if _has_call(part)]
        if not calls:
            continue
        after = parts(found[place + 1]) if place + 1 < len(found) else []
        answers = [as_dict(first(part, "functionResponse", "function_response")) for part in after if _has_response(part)]
        if len(answers) != len(calls) or sorted(_key(call) for call in calls) != sorted(_key(answer) for answer in answers):
            text = "The number of function response parts must equal the number of function call parts of the call turn."
            return refused(f"Please ensure that function response turn comes immediately after a function call turn. {text}")
    return None


def _has_call(part: JSON) -> bool:
    return "functionCall" in part or "function_call" in part


def _has_response(part: JSON) -> bool:
    return "functionResponse" in part or "function_response" in part


def _key(value: JSON) -> str:
    """How call and response are matched: by id where there is one, else by name."""
    return as_text(value.get("id")) or as_text(value.get("name"))


@BOOK.rule(f"{GENERATE_DOC} (signatures)", GENERATE)
def first_call_signed(c: Context) -> Refusal | None:
    """In the current turn the first function call of each step brings its `thoughtSignature` (models from Gemini 3 on)."""
    if not c.able.family.startswith("gemini-3"):
        return None
    found = contents(c.body)
    last_text = max((place for place, content in enumerate(found) if _is_user_text(content)), default=-1)
    for place, content in enumerate(found[last_text + 1 :], last_text + 1):
        calls = [part for part in parts(content) if _has_call(part)]
        if calls and not first(calls[0], "thoughtSignature", "thought_signature"):
            name = as_text(as_dict(first(calls[0], "functionCall", "function_call")).get("name"))
            return refused(f"Function call {name} in content {place} is missing a thought_signature in functionCall parts.")
    return None


def _is_user_text(content: JSON) -> bool:
    return content.get("role", "user") == "user" and any("text" in part for part in parts(content))


@BOOK.rule(f"{GENERATE_DOC} (signatures)", GENERATE)
def signatures_genuine(c: Context) -> Refusal | None:
    """A `thoughtSignature` comes back on the part it came with, unchanged; the documented skip values pass."""
    for place, content in enumerate(contents(c.body)):
        for number, part in enumerate(parts(content)):
            signature = first(part, "thoughtSignature", "thought_signature")
            if not signature or signature in SKIPPED:
                continue
            if check(as_text(signature).replace("-", "+").replace("_", "/"), THOUGHT, signed(part)) is not Verdict.OK:
                return refused(f"contents[{place}].parts[{number}]: Thought signature is not valid.")
    return None


def signed(part: JSON) -> Any:
    """What of a part its signature covers: the call's name and arguments, or the text."""
    call = as_dict(first(part, "functionCall", "function_call"))
    return [call.get("name"), call.get("args") or {}] if call else as_text(part.get("text"))
