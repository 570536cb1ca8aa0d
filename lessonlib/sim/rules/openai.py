"""What OpenAI's two APIs refuse, rule by rule: Responses and Chat Completions.

The messages are our own words; status, type, code and param are OpenAI's.

Order matters: the first broken rule answers. Sources are sections of docs/wire/openai-responses.md and openai-chat.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lessonlib.sim.refusal import Context, Refusal, RuleBook
from lessonlib.sim.signing import Verdict, check
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

RESPONSES, CHAT = "openai-responses", "openai-chat"
BOOK = RuleBook(RESPONSES, CHAT)
DOC = "docs/wire/openai-responses.md"
CHAT_DOC = "docs/wire/openai-chat.md"

REASONING = "openai reasoning"
"""The kind under which encrypted reasoning is signed."""


def refused(message: str, code: str | None = None, param: str | None = None, status: int = 400) -> Refusal:
    """A refusal in OpenAI's form; the type follows from the status."""
    return Refusal(status, "invalid_request_error", message, code, param)


# ---------------------------------------------------------------- both APIs


@BOOK.rule(f"{DOC} (headers)")
def bearer_key_present(c: Context) -> Refusal | None:
    """The key stands in `Authorization: Bearer`."""
    scheme, _, key = c.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        return refused("You did not provide an API key: send Authorization: Bearer.", None, None, 401)
    if c.sim.keys is not None and key.strip() not in c.sim.keys:
        return refused("Incorrect API key provided.", "invalid_api_key", None, 401)
    return None


@BOOK.rule(f"{DOC} (errors)")
def request_not_too_large(c: Context) -> Refusal | None:
    """A request that is too large is refused before it is read."""
    if c.size > c.sim.max_body:
        return refused(f"The request has {c.size:,} bytes; {c.sim.max_body:,} are allowed.", "request_too_large", None, 413)
    return None


@BOOK.rule(f"{DOC} (request)")
def model_exists(c: Context) -> Refusal | None:
    """`model` is required, and one that exists."""
    if not c.model:
        return refused("Missing required parameter: 'model'.", "missing_required_parameter", "model")
    if c.able.provider == "anthropic" or (not c.able.family and c.wire == RESPONSES):
        return refused(f"The model '{c.model}' does not exist here.", "model_not_found", None, 404)
    return None


@BOOK.rule(f"{DOC} (request)")
def no_sampling_for_reasoning_models(c: Context) -> Refusal | None:
    """`temperature` and `top_p` are refused by models that reason."""
    if c.able.sampling is False:
        for name in ("temperature", "top_p"):
            if c.body.get(name) is not None:
                return refused(
                    f"Unsupported parameter: '{name}' is not supported with this model.", "unsupported_parameter", name
                )
    return None


@BOOK.rule(f"{DOC} (request)")
def effort_fits_the_model(c: Context) -> Refusal | None:
    """`reasoning.effort` (Chat: `reasoning_effort`) takes the words that the model knows; not every model takes `none`."""
    param = "reasoning.effort" if c.wire == RESPONSES else "reasoning_effort"
    effort = as_dict(c.body.get("reasoning")).get("effort") if c.wire == RESPONSES else c.body.get("reasoning_effort")
    if effort is None:
        return None
    if c.able.thinking == "none":
        return refused(f"Unsupported parameter: '{param}' is not supported with this model.", "unsupported_parameter", param)
    if c.able.efforts is not None and effort not in c.able.efforts:
        known = ", ".join(c.able.efforts)
        return refused(
            f"Unsupported value: '{effort}' is not supported with this model; use {known}.", "unsupported_value", param
        )
    return None


@BOOK.rule(f"{DOC} (tools)")
def tools_well_formed(c: Context) -> Refusal | None:
    """Responses defines a function flat (`name` beside `type`), Chat Completions nested under `function`."""
    for place, tool in enumerate(as_list(c.body.get("tools"))):
        tool = as_dict(tool)
        kind = as_text(tool.get("type"))
        if not kind:
            return refused(
                f"Missing required parameter: 'tools[{place}].type'.", "missing_required_parameter", f"tools[{place}].type"
            )
        if kind in ("function", "custom") and not as_text(_definition(c, tool).get("name")):
            where = f"tools[{place}].name" if c.wire == RESPONSES else f"tools[{place}].{kind}.name"
            return refused(f"Missing required parameter: '{where}'.", "missing_required_parameter", where)
    return None


@BOOK.rule(f"{DOC} (tools)")
def strict_schema_complete(c: Context) -> Refusal | None:
    """A strict function needs `additionalProperties: false` and every property in `required`, at every level."""
    for tool in as_list(c.body.get("tools")):
        definition = _definition(c, as_dict(tool))
        if as_dict(tool).get("type") == "function" and definition.get("strict") is True:
            problem = strict_problem(definition.get("parameters"))
            if problem:
                text = f"Invalid schema for function '{definition.get('name')}': {problem}"
                return refused(text, "invalid_function_parameters", "tools")
    return None


def strict_problem(schema: Any, where: str = "()") -> str | None:
    """Why a schema is not strict, or None."""
    schema = as_dict(schema)
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return f"In context={where}, 'additionalProperties' is required to be supplied and to be false."
        missing = [key for key in as_dict(schema.get("properties")) if key not in as_list(schema.get("required"))]
        if missing:
            return f"In context={where}, 'required' must name every key of properties; missing: {', '.join(missing)}."
    inner = [(f"{where}.{key}", value) for key, value in as_dict(schema.get("properties")).items()]
    inner += [(f"{where}.$defs.{key}", value) for key, value in as_dict(schema.get("$defs")).items()]
    inner += [(f"{where}.items", schema["items"])] if "items" in schema else []
    inner += [(f"{where}.anyOf", value) for value in as_list(schema.get("anyOf"))]
    return next((problem for path, value in inner if (problem := strict_problem(value, path))), None)


@BOOK.rule(f"{DOC} (tools)")
def chosen_tool_exists(c: Context) -> Refusal | None:
    """A named `tool_choice` is one of the tools; a choice without tools is refused."""
    choice = c.body.get("tool_choice")
    if choice is None:
        return None
    if not as_list(c.body.get("tools")):
        return refused("'tool_choice' is only allowed when 'tools' are specified.", None, "tool_choice")
    name = as_text(_definition(c, as_dict(choice)).get("name"))
    names = [as_text(_definition(c, as_dict(tool)).get("name")) for tool in as_list(c.body["tools"])]
    if name and name not in names:
        return refused(f"Tool choice '{name}' not found in 'tools' parameter.", None, "tool_choice")
    return None


def _definition(c: Context, tool: JSON) -> JSON:
    """Where name and schema stand: flat in Responses, under the type's name in Chat Completions."""
    return tool if c.wire == RESPONSES else as_dict(tool.get(as_text(tool.get("type"))))


# ---------------------------------------------------------------- Responses: parameters

KNOWN = frozenset(
    [
        "background",
        "background_options",
        "context_management",
        "conversation",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
)
OTHER_NAMES = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "system": "instructions",
    "reasoning_effort": "reasoning.effort",
}


@BOOK.rule(f"{DOC} (request)", RESPONSES)
def parameters_known(c: Context) -> Refusal | None:
    """An unknown parameter is refused; for the older API's names the message says the new one."""
    for name in c.body:
        if name not in KNOWN:
            hint = f" On this API it is '{OTHER_NAMES[name]}'." if name in OTHER_NAMES else ""
            return refused(f"Unknown parameter: '{name}'.{hint}", "unknown_parameter", name)
    return None


@BOOK.rule(f"{DOC} (request)", RESPONSES)
def input_present(c: Context) -> Refusal | None:
    """`input` is a text or a list of items, and not empty."""
    value = c.body.get("input")
    if not isinstance(value, (str, list)) or not value:
        return refused("Missing required parameter: 'input'.", "missing_required_parameter", "input")
    return None


@BOOK.rule(f"{DOC} (request)", RESPONSES)
def output_cap_large_enough(c: Context) -> Refusal | None:
    """`max_output_tokens` is at least 16."""
    value = c.body.get("max_output_tokens")
    if value is not None and (not isinstance(value, int) or value < 16):
        return refused("Invalid 'max_output_tokens': expected at least 16.", "integer_below_min_value", "max_output_tokens")
    return None


@BOOK.rule(f"{DOC} (request)", RESPONSES)
def encrypted_content_only_from_reasoning_models(c: Context) -> Refusal | None:
    """`include: reasoning.encrypted_content` is refused for a model that does not reason."""
    if "reasoning.encrypted_content" in as_list(c.body.get("include")) and c.able.thinking == "none":
        return refused("Encrypted content is not supported with this model.", None, "include")
    return None


@BOOK.rule(f"{DOC} (server state)", RESPONSES)
def previous_response_stored(c: Context) -> Refusal | None:
    """`previous_response_id` names a response that was stored; with `store: false` nothing is."""
    previous = c.body.get("previous_response_id")
    if previous is not None and previous not in c.sim.stored:
        return refused(
            f"Previous response with id '{previous}' not found.", "previous_response_not_found", "previous_response_id"
        )
    return None


# ---------------------------------------------------------------- Responses: items


def items(body: JSON) -> list[JSON]:
    """The input as items; a text is one user message."""
    value = body["input"]
    return (
        [{"type": "message", "role": "user", "content": value}]
        if isinstance(value, str)
        else [as_dict(item) for item in value]
    )


def item_type(item: JSON) -> str:
    """The item's type; a plain message may leave it out."""
    return as_text(item.get("type")) or ("message" if "role" in item else "")


NEEDED: dict[str, tuple[str, ...]] = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call_output": ("call_id", "output"),
    "reasoning": ("id", "summary"),
    "item_reference": ("id",),
}


@BOOK.rule(f"{DOC} (items)", RESPONSES)
def items_well_formed(c: Context) -> Refusal | None:
    """Each item has its type's fields; `arguments` is a JSON text, not an object."""
    for place, item in enumerate(items(c.body)):
        kind = item_type(item)
        if not kind:
            return refused(
                f"Missing required parameter: 'input[{place}].type'.", "missing_required_parameter", f"input[{place}]"
            )
        for name in NEEDED.get(kind, ()):
            if name not in item:
                where = f"input[{place}].{name}"
                return refused(f"Missing required parameter: '{where}'.", "missing_required_parameter", where)
        if kind == "function_call" and not isinstance(item["arguments"], str):
            return refused(
                f"Invalid type for 'input[{place}].arguments': expected a string.",
                "invalid_type",
                f"input[{place}].arguments",
            )
    return None


@BOOK.rule(f"{DOC} (replay)", RESPONSES)
def reasoning_without_output_fields(c: Context) -> Refusal | None:
    """`status` on a reasoning item that is sent back is an unknown parameter: replay is raw, but not byte for byte."""
    for place, item in enumerate(items(c.body)):
        if item_type(item) == "reasoning" and "status" in item:
            return refused(f"Unknown parameter: 'input[{place}].status'.", "unknown_parameter", f"input[{place}].status")
    return None


def _stores(c: Context) -> bool:
    return c.body.get("store") is not False


@BOOK.rule(f"{DOC} (replay)", RESPONSES)
def reasoning_can_be_read(c: Context) -> Refusal | None:
    """Without stored state a reasoning item must bring its `encrypted_content`; its id alone is not found (404)."""
    for item in items(c.body):
        if item_type(item) not in ("reasoning", "item_reference") or _stores(c):
            continue
        if not item.get("encrypted_content"):
            text = f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false."
            return refused(text, None, "input", 404)
    return None


@BOOK.rule(f"{DOC} (replay)", RESPONSES)
def encrypted_content_genuine(c: Context) -> Refusal | None:
    """`encrypted_content` comes back unchanged and under its own id."""
    for item in items(c.body):
        blob = item.get("encrypted_content")
        if item_type(item) != "reasoning" or not blob:
            continue
        verdict = check(as_text(blob).removeprefix("gAAAA"), REASONING, item["id"])
        if verdict is Verdict.FOREIGN:
            return refused(
                f"The encrypted content for item {item['id']} could not be verified.", "invalid_encrypted_content", "input"
            )
        if verdict is Verdict.CHANGED:
            return refused(
                f"item_id mismatch: the encrypted content does not belong to {item['id']}.",
                "invalid_encrypted_content",
                "input",
            )
    return None


def answer_key(item_id: str) -> str:
    """The part of a simulator's item id that tells which answer it was in."""
    return item_id.partition("_")[2].split("x", 1)[0]


def reasoned(item_id: str) -> bool:
    """Whether the id says that its answer began with reasoning (the simulator writes that into it)."""
    return item_id.endswith("r") and "x" in item_id


@BOOK.rule(f"{DOC} (replay)", RESPONSES)
def reasoning_followed_by_its_item(c: Context) -> Refusal | None:
    """A reasoning item stands before an item of its own answer, never alone and never with a message in between."""
    found = items(c.body)
    for place, item in enumerate(found):
        if item_type(item) != "reasoning":
            continue
        after = found[place + 1] if place + 1 < len(found) else {}
        kind = item_type(after)
        if not kind or (kind == "message" and after.get("role") != "assistant") or kind.endswith("_output"):
            text = f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            return refused(text, None, "input")
    return None


@BOOK.rule(f"{DOC} (replay)", RESPONSES)
def item_with_its_reasoning(c: Context) -> Refusal | None:
    """An item that keeps its server id needs the reasoning item that came before it; without ids nobody asks."""
    found = items(c.body)
    present = {answer_key(as_text(item.get("id"))) for item in found if item_type(item) == "reasoning"}
    for item in found:
        item_id = as_text(item.get("id"))
        if item_type(item) in ("function_call", "message", "custom_tool_call") and reasoned(item_id):
            orphan = answer_key(item_id) not in present and not _stores(c)
            if orphan:
                text = f"Item '{item_id}' of type '{item_type(item)}' was provided without its required 'reasoning' item."
                return refused(text, None, "input")
    return None


def _calls_and_outputs(c: Context) -> tuple[list[str], list[str]]:
    calls: list[str] = []
    outputs: list[str] = []
    for item in [*stored_items(c), *items(c.body)]:
        kind = item_type(item)
        if kind in ("function_call", "custom_tool_call"):
            calls.append(as_text(item.get("call_id")))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            outputs.append(as_text(item.get("call_id")))
    return calls, outputs


def stored_items(c: Context) -> list[JSON]:
    """The items of the stored conversation that `previous_response_id` continues."""
    previous = c.body.get("previous_response_id")
    return as_list(c.sim.stored[previous]["items"]) if previous in c.sim.stored else []


@BOOK.rule(f"{DOC} (tool results)", RESPONSES)
def every_output_has_its_call(c: Context) -> Refusal | None:
    """An output's `call_id` is a call's `call_id` (call_...), not the call item's own `id` (fc_...)."""
    calls, outputs = _calls_and_outputs(c)
    for call_id in outputs:
        if call_id not in calls:
            return refused(f"No tool call found for function call output with call_id {call_id}.", None, "input")
    if len(set(outputs)) != len(outputs):
        return refused("A function call has more than one output.", None, "input")
    return None


@BOOK.rule(f"{DOC} (tool results)", RESPONSES)
def every_call_has_its_output(c: Context) -> Refusal | None:
    """Every call in the input has its output in the input."""
    calls, outputs = _calls_and_outputs(c)
    for call_id in calls:
        if call_id not in outputs:
            return refused(f"No tool output found for function call {call_id}.", None, "input")
    return None


# ---------------------------------------------------------------- Chat Completions


@BOOK.rule(f"{CHAT_DOC} (request)", CHAT)
def chat_messages_present(c: Context) -> Refusal | None:
    """`messages` is a list with at least one message, each with a known role."""
    messages = c.body.get("messages")
    if not isinstance(messages, list) or not messages:
        hint = " ('input' belongs to the Responses API.)" if "input" in c.body else ""
        return refused(f"Missing required parameter: 'messages'.{hint}", "missing_required_parameter", "messages")
    roles = ("developer", "system", "user", "assistant", "tool", "function")
    for place, message in enumerate(messages):
        if as_dict(message).get("role") not in roles:
            return refused(f"Invalid value for 'messages[{place}].role'.", "invalid_value", f"messages[{place}].role")
    return None


@BOOK.rule(f"{CHAT_DOC} (request)", CHAT)
def chat_cap_has_its_name(c: Context) -> Refusal | None:
    """Models that reason refuse `max_tokens`; the cap is `max_completion_tokens`."""
    if "max_tokens" in c.body and c.able.provider == "openai" and c.able.thinking not in (None, "none"):
        text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        return refused(text, "unsupported_parameter", "max_tokens")
    return None


@BOOK.rule(f"{CHAT_DOC} (request)", CHAT)
def chat_stream_options_with_stream(c: Context) -> Refusal | None:
    """`stream_options` is only allowed with `stream: true`."""
    if c.body.get("stream_options") is not None and c.body.get("stream") is not True:
        return refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.", None, "stream_options")
    return None


@BOOK.rule(f"{CHAT_DOC} (request)", CHAT)
def chat_at_most_four_stops(c: Context) -> Refusal | None:
    """`stop` takes at most four sequences."""
    stop = c.body.get("stop")
    if isinstance(stop, list) and len(stop) > 4:
        return refused("Invalid 'stop': array too long. Expected at most 4 elements.", "array_above_max_length", "stop")
    return None


@BOOK.rule(f"{CHAT_DOC} (tool results)", CHAT)
def chat_calls_well_formed(c: Context) -> Refusal | None:
    """A call in an assistant message has id, type and `function` with name and `arguments` as a JSON text."""
    for place, message in enumerate(c.body["messages"]):
        for number, call in enumerate(as_list(message.get("tool_calls"))):
            call = as_dict(call)
            where = f"messages[{place}].tool_calls[{number}]"
            inner = as_dict(call.get(as_text(call.get("type")) or "function"))
            if not call.get("id") or not inner.get("name"):
                return refused(f"Missing required parameter: '{where}.id' or its name.", "missing_required_parameter", where)
            if "function" in call and not isinstance(inner.get("arguments"), str):
                return refused(f"Invalid type for '{where}.function.arguments': expected a string.", "invalid_type", where)
    return None


@BOOK.rule(f"{CHAT_DOC} (tool results)", CHAT)
def chat_every_call_answered(c: Context) -> Refusal | None:
    """After an assistant message with `tool_calls` come its tool messages, one for each call, before anything else."""
    for place, message in enumerate(c.body["messages"]):
        ids = [as_text(as_dict(call).get("id")) for call in as_list(message.get("tool_calls"))]
        answered = [as_text(tool.get("tool_call_id")) for tool in _tools_after(c.body["messages"], place)]
        missing = [call_id for call_id in ids if call_id not in answered]
        if missing:
            text = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
            )
            return refused(f"{text} Missing: {', '.join(missing)}.", None, "messages")
    return None


@BOOK.rule(f"{CHAT_DOC} (tool results)", CHAT)
def chat_tool_message_has_its_call(c: Context) -> Refusal | None:
    """A message of role `tool` answers a call of the assistant message before it."""
    open_ids: list[str] = []
    for place, message in enumerate(c.body["messages"]):
        if message["role"] == "assistant":
            open_ids = [as_text(as_dict(call).get("id")) for call in as_list(message.get("tool_calls"))]
        elif message["role"] == "tool":
            if as_text(message.get("tool_call_id")) not in open_ids:
                text = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                return refused(text, None, f"messages[{place}].role")
        else:
            open_ids = []
    return None


def _tools_after(messages: list[JSON], place: int) -> Iterator[JSON]:
    for message in messages[place + 1 :]:
        if message["role"] != "tool":
            return
        yield message


# ---------------------------------------------------------------- Chat Completions: reasoning of other makers

RETURNS_REASONING = ("deepseek", "kimi")


def hides_reasoning(model: str) -> bool:
    """Whether reasoning does not appear on this API: so it is for OpenAI's own models."""
    return model.lower().rsplit("/", 1)[-1].startswith(("gpt", "o1", "o3", "o4", "chatgpt"))


def chat_thinks(c: Context) -> bool:
    """Whether the model reasons: by its capabilities, and by default where they are not known but its maker is."""
    if c.body.get("reasoning_effort") in ("none", "minimal"):
        return False
    return c.able.thinking not in (None, "none") or c.model.lower().startswith(RETURNS_REASONING)


@BOOK.rule(f"{CHAT_DOC} (reasoning)", CHAT)
def chat_reasoning_comes_back(c: Context) -> Refusal | None:
    """DeepSeek and Kimi models want `reasoning_content` back on every assistant message with tool calls, be it empty."""
    if not c.model.lower().startswith(RETURNS_REASONING):
        return None
    for place, message in enumerate(c.body["messages"]):
        if message["role"] == "assistant" and message.get("tool_calls") and "reasoning_content" not in message:
            return refused(
                f"Missing `reasoning_content` field in the assistant message at messages[{place}].", None, "messages"
            )
    return None
