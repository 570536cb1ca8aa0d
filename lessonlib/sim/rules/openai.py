"""What both of OpenAI's APIs refuse, rule by rule; `responses.py` and `chat.py` add what only one of them does.

Status, type, code and param are OpenAI's, and so are the few fixed phrases by which people look an error up; the rest of a
message is our own words. Order matters: the first broken rule answers. The source of a rule is a section of
docs/wire/openai-responses.md or openai-chat.md, and, where it stands in neither, the public report or the official package's
own description of the field.
"""

from __future__ import annotations

import re
from typing import Any

from lessonlib.sim.refusal import ALWAYS, NAMED, WINDOW, Context, Refusal, RuleBook, models_hint
from lessonlib.sim.shapes import Each, Problem, brackets, kind_of, schema_problem, shown, words
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

RESPONSES, CHAT = "openai-responses", "openai-chat"
BOOK = RuleBook(RESPONSES, CHAT)
DOC = "docs/wire/openai-responses.md"
CHAT_DOC = "docs/wire/openai-chat.md"


def refused(message: str, code: str | None = None, param: str | None = None, status: int = 400) -> Refusal:
    """A refusal in OpenAI's form."""
    return Refusal(status, "invalid_request_error", message, code, param)


# ---------------------------------------------------------------- shapes that both share

METADATA = Each(str)
EFFORTS = words("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITY = words("low", "medium", "high")
CACHE_FIELDS: JSON = {"prompt_cache_key": str, "prompt_cache_options": dict, "prompt_cache_retention": str}
COMMON_FIELDS: JSON = {
    "metadata": METADATA,
    "model": str,
    "parallel_tool_calls": bool,
    "safety_identifier": str,
    "store": bool,
    "stream": bool,
    "stream_options": {"include_obfuscation": bool, "include_usage": bool},
    "temperature": float,
    "top_p": float,
    "top_logprobs": int,
    "user": str,
    "moderation": dict,
    **CACHE_FIELDS,
}


def definition(wire: str, tool: Any) -> JSON:
    """Where a tool's name and schema stand: flat in Responses, under the type's name in Chat Completions."""
    tool = as_dict(tool)
    return tool if wire == RESPONSES else as_dict(tool.get(as_text(tool.get("type"))))


def tools_of(c: Context) -> list[JSON]:
    """The tools of the request."""
    return [as_dict(tool) for tool in as_list(c.body.get("tools"))]


# ---------------------------------------------------------------- headers, size, JSON, types


@BOOK.rule(f"{DOC} R1", on=ALWAYS)
def bearer_key_present(c: Context) -> Refusal | None:
    """The key stands in `Authorization: Bearer`."""
    scheme, _, key = c.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        return refused("You did not provide an API key: send Authorization: Bearer.", None, None, 401)
    if c.sim.keys is not None and key.strip() not in c.sim.keys:
        return refused("Incorrect API key provided.", "invalid_api_key", None, 401)
    return None


@BOOK.rule(f"{DOC} R7")
def request_not_too_large(c: Context) -> Refusal | None:
    """A request that is too large is refused before it is read."""
    if c.size > c.sim.max_body:
        return refused(f"The request has more than {c.sim.max_body:,} bytes.", "request_too_large", None, 413)
    return None


@BOOK.rule(f"{DOC} R7")
def body_is_json(c: Context) -> Refusal | None:
    """The body is one JSON object."""
    return refused(f"We could not parse the body of your request: {c.broken}.") if c.broken else None


@BOOK.rule(f"{DOC} R2; the types of the package openai")
def parameters_have_their_types(c: Context) -> Refusal | None:
    """Every parameter has its JSON type, at every level."""
    problem = c.problem("type")
    return wrong_type(problem) if problem is not None else None


def wrong_type(problem: Problem) -> Refusal:
    """OpenAI's words for a value of the wrong type."""
    where = brackets(problem.path)
    text = f"Invalid type for '{where}': expected {problem.expected}, but got {kind_of(problem.value)} instead."
    return refused(text, "invalid_type", where)


@BOOK.rule(f"{DOC} R2; the types of the package openai")
def words_known(c: Context) -> Refusal | None:
    """A parameter that takes a few words takes only those."""
    problem = c.problem("word")
    if problem is None:
        return None
    where = brackets(problem.path)
    text = f"Invalid value: '{shown(problem.value)}'. Supported values are: {problem.expected}."
    return refused(text, "invalid_value", where)


@BOOK.rule(f"{DOC} R2; the types of the package openai")
def objects_say_their_type(c: Context) -> Refusal | None:
    """What comes in several kinds says which it is: an output format and a `tool_choice` that is an object have a `type`."""
    problem = c.problem("missing")
    return missing(brackets(problem.path)) if problem is not None else None


def missing(where: str, hint: str = "") -> Refusal:
    """OpenAI's words for a parameter that is not there."""
    return refused(f"Missing required parameter: '{where}'{hint}.", "missing_required_parameter", where)


# ---------------------------------------------------------------- the model and what it takes


@BOOK.rule(f"{DOC} R2", on=NAMED)
def model_exists(c: Context) -> Refusal | None:
    """`model` is required, and one that exists."""
    if c.operation == "models" and not c.model:
        return None  # all of them
    if not c.model.strip():
        return missing("model")
    elsewhere = c.able.provider in ("anthropic", "gemini")
    if elsewhere or (not c.able.family and (c.wire == RESPONSES or OPENAIS_NAMES.match(c.model))):
        text = f"The model '{shown(c.model)}' does not exist here. {models_hint(c.model, 'openai')}"
        return refused(text, "model_not_found", None, 404)
    return None


OPENAIS_NAMES = re.compile(r"gpt-(?!oss)|chatgpt|o\d|codex", re.IGNORECASE)
"""How OpenAI's own models are called. Many services speak Chat Completions, so another name may be one of theirs."""


@BOOK.rule(f"{DOC} R2; lessonlib/data/models.json; tmc/langchaingo#1355 (Chat)")
def no_sampling_for_reasoning_models(c: Context) -> Refusal | None:
    """`temperature` and `top_p` are refused by models that reason; on Chat Completions their default, 1, passes."""
    if c.able.sampling is not False:
        return None
    for name in ("temperature", "top_p"):
        value = c.body.get(name)
        if value is not None and c.wire == RESPONSES:
            return unsupported(name)
        if value not in (None, 1):
            text = f"Unsupported value: '{name}' does not support {value} with this model, only the default (1)."
            return refused(text, "unsupported_value", name)
    return None


def unsupported(name: str) -> Refusal:
    """A parameter that this model does not take."""
    text = f"Unsupported parameter: '{name}' is not supported with this model."
    return refused(text, "unsupported_parameter", name)


@BOOK.rule(f"{DOC} R2")
def effort_fits_the_model(c: Context) -> Refusal | None:
    """`reasoning.effort` (Chat: `reasoning_effort`) takes the words that the model knows; not every model takes `none`."""
    param = "reasoning.effort" if c.wire == RESPONSES else "reasoning_effort"
    effort = c.get(*param.split("."))
    if effort is None:
        return None
    if c.able.thinking == "none":
        return unsupported(param)
    if c.able.efforts is not None and effort not in c.able.efforts:
        known = ", ".join(f"'{word}'" for word in c.able.efforts)
        text = f"Unsupported value: '{effort}' is not supported with this model. Supported values are: {known}."
        return refused(text, "unsupported_value", param)
    return None


CAPS = {RESPONSES: ("max_output_tokens",), CHAT: ("max_completion_tokens", "max_tokens")}
SMALLEST_CAP = {RESPONSES: 16, CHAT: 1}


@BOOK.rule(f"{DOC} R2; vectorize-io/hindsight#58 (the 16)")
def output_cap_not_too_small(c: Context) -> Refusal | None:
    """The output cap is at least 16 (Chat: 1)."""
    for name in CAPS[c.wire]:
        value, least = c.body.get(name), SMALLEST_CAP[c.wire]
        if value is not None and value < least:
            text = f"Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {value} instead."
            return refused(text, "integer_below_min_value", name)
    return None


@BOOK.rule(
    f"{DOC} R2; lessonlib/data/models.json",
    doubt="reported for Chat Completions alone; for Responses it is inferred from that",
)
def output_cap_within_the_model(c: Context) -> Refusal | None:
    """The output cap is at most what the model can write."""
    for name in CAPS[c.wire]:
        value = c.body.get(name)
        if value is not None and c.able.max_output is not None and value > c.able.max_output:
            text = f"{name} is too large: {value}. This model can write at most {c.able.max_output} tokens."
            return refused(text, "invalid_value", name)
    return None


@BOOK.rule(f"{DOC} R2; the descriptions of metadata and safety_identifier in the package openai")
def labels_short(c: Context) -> Refusal | None:
    """`metadata` has at most 16 pairs, keys of 64 and values of 512 characters; `safety_identifier` has 128."""
    pairs = as_dict(c.body.get("metadata"))
    if len(pairs) > 16:
        return refused("Invalid 'metadata': at most 16 pairs.", "object_above_max_properties", "metadata")
    texts = [("safety_identifier", as_text(c.body.get("safety_identifier")), 128)]
    texts += [("metadata", key, 64) for key in pairs]
    texts += [(f"metadata.{shown(key)}", as_text(value), 512) for key, value in pairs.items()]
    for where, text, longest in texts:
        if len(text) > longest:
            message = f"Invalid '{where}': string too long. Expected at most {longest} characters, got {len(text)}."
            return refused(message, "string_above_max_length", where)
    return None


# ---------------------------------------------------------------- tools


TOOL_TYPES = {
    RESPONSES: ("function", "custom", "apply_patch", "code_interpreter", "computer", "computer_use_preview", "file_search",
                "image_generation", "local_shell", "mcp", "namespace", "programmatic_tool_calling", "shell", "tool_search",
                "web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"),
    CHAT: ("function", "custom"),
}  # fmt: skip


@BOOK.rule(f"{DOC} R2; the types of the package openai")
def tool_types_exist(c: Context) -> Refusal | None:
    """A tool's `type` is there, and one that this API has (on Chat Completions other makers have more of them)."""
    for place, tool in enumerate(tools_of(c)):
        kind, where = as_text(tool.get("type")), f"tools[{place}].type"
        if not kind:
            return missing(where)
        if kind not in TOOL_TYPES[c.wire] and (c.wire == RESPONSES or c.able.provider == "openai"):
            known = ", ".join(f"'{word}'" for word in TOOL_TYPES[c.wire])
            return refused(f"Invalid value: '{shown(kind)}'. Supported values are: {known}.", "invalid_value", where)
    return None


@BOOK.rule(f"{DOC} R2")
def tools_well_formed(c: Context) -> Refusal | None:
    """Responses defines a function flat (`name` beside `type`), Chat Completions nested under `function`."""
    for place, tool in enumerate(tools_of(c)):
        kind = as_text(tool.get("type"))
        if kind in ("function", "custom") and not as_text(definition(c.wire, tool).get("name")):
            where = f"tools[{place}].name" if c.wire == RESPONSES else f"tools[{place}].{kind}.name"
            hint = " (Responses has it flat, Chat Completions nested)" if kind in tool or "name" in tool else ""
            return missing(where, hint)
    return None


@BOOK.rule(f"{DOC} R2; FunctionDefinition.name in the package openai")
def tool_names_legal(c: Context) -> Refusal | None:
    """A tool's name has at most 64 letters, digits, underscores and dashes."""
    for place, tool in enumerate(tools_of(c)):
        name = definition(c.wire, tool).get("name")
        if isinstance(name, str) and not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
            where = f"tools[{place}].name" if c.wire == RESPONSES else f"tools[{place}].function.name"
            text = f"Invalid '{where}': string does not match pattern '^[a-zA-Z0-9_-]{{1,64}}$'."
            return refused(text, "invalid_value", where)
    return None


@BOOK.rule(f"{DOC} R2; the descriptions of the fields in the package openai")
def schemas_valid(c: Context) -> Refusal | None:
    """The parameters of a function are a JSON Schema of type object."""
    for tool in tools_of(c):
        function = definition(c.wire, tool)
        schema = function.get("parameters")
        if tool.get("type") != "function" or schema is None:
            continue
        problem = schema_problem(schema)
        if problem is None and schema and schema.get("type") != "object":
            problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {schema.get('type')!r}'"
        if problem is not None:
            text = f"Invalid schema for function '{function.get('name')}': {problem}."
            return refused(text, "invalid_function_parameters", "tools")
    return None


@BOOK.rule(f"{DOC} R2")
def strict_schema_complete(c: Context) -> Refusal | None:
    """A strict function closes every object, requires every property, and does without what strict mode cannot enforce."""
    for tool in tools_of(c):
        function = definition(c.wire, tool)
        if tool.get("type") == "function" and function.get("strict") is True:
            problem = strict_problem(function.get("parameters") or {})
            if problem:
                text = f"Invalid schema for function '{function.get('name')}': {problem}"
                return refused(text, "invalid_function_parameters", "tools")
    return None


NOT_STRICT = ("default", "allOf", "oneOf", "not")


def strict_problem(schema: Any, where: str = "()", top: bool = True) -> str | None:
    """Why a schema is not strict, or None."""
    schema = as_dict(schema)
    if top and "anyOf" in schema:
        return f"In context={where}, 'anyOf' is not permitted at the top."
    for keyword in NOT_STRICT:
        if keyword in schema:
            return f"In context={where}, '{keyword}' is not permitted."
    if "$ref" in schema and len(schema) > 1 and not top:
        return f"In context={where}, '$ref' cannot stand beside other keywords."
    if schema.get("type") == "object" or "properties" in schema or top:
        if schema.get("additionalProperties") is not False:
            return f"In context={where}, 'additionalProperties' is required to be supplied and to be false."
        missing = [key for key in as_dict(schema.get("properties")) if key not in as_list(schema.get("required"))]
        if missing:
            return f"In context={where}, 'required' must name every key of properties; missing: {', '.join(missing)}."
    inner = [(f"{where}.{key}", value) for key, value in as_dict(schema.get("properties")).items()]
    inner += [(f"{where}.$defs.{key}", value) for key, value in as_dict(schema.get("$defs")).items()]
    inner += [(f"{where}.items", schema["items"])] if "items" in schema else []
    inner += [(f"{where}.anyOf", value) for value in as_list(schema.get("anyOf"))]
    return next((problem for path, value in inner if (problem := strict_problem(value, path, False))), None)


@BOOK.rule(f"{DOC} R2")
def chosen_tool_exists(c: Context) -> Refusal | None:
    """A `tool_choice` needs tools (on Responses not `auto` and `none`), and one that names tools (`function`, `custom`,
    `allowed_tools`) names some of them."""
    choice = c.body.get("tool_choice")
    if choice is None or (c.wire == RESPONSES and choice in ("auto", "none")):
        return None
    if not tools_of(c):
        return refused("'tool_choice' is only allowed when 'tools' are specified.", None, "tool_choice")
    if not isinstance(choice, dict):
        return None
    known = [definition(c.wire, tool).get("name") for tool in tools_of(c)]
    for name in chosen_names(c.wire, choice):
        if name not in known:
            return refused(f"Tool choice '{shown(name)}' not found in 'tools' parameter.", None, "tool_choice")
    return None


def chosen_names(wire: str, choice: JSON) -> list[str]:
    """The tools that a `tool_choice` object names."""
    kind = as_text(choice.get("type"))
    if kind == "allowed_tools":
        allowed = choice if wire == RESPONSES else as_dict(choice.get("allowed_tools"))
        listed = [as_dict(tool) for tool in as_list(allowed.get("tools"))]
        return [as_text(definition(wire, tool).get("name")) for tool in listed if tool.get("type") in ("function", "custom")]
    return [as_text(definition(wire, choice).get("name"))] if kind in ("function", "custom") else []


def format_problem(format_: JSON, where: str) -> Refusal | None:
    """What is wrong with a JSON Schema output format: `format_` holds name, schema and strict."""
    if not as_text(format_.get("name")):
        return missing(f"{where}.name")
    schema = format_.get("schema")
    if schema is None:
        return missing(f"{where}.schema")
    problem = schema_problem(schema)
    if problem is None and format_.get("strict") is True:
        problem = strict_problem(schema)
    if problem is not None:
        text = f"Invalid schema for response_format '{format_.get('name')}': {problem}"
        return refused(text, "invalid_json_schema", where)
    return None


# ---------------------------------------------------------------- the window


@BOOK.rule(f"{DOC} R7; lessonlib/data/models.json", on=WINDOW)
def context_window_not_exceeded(c: Context) -> Refusal | None:
    """The prompt fits the model's window; on Chat Completions with the asked output cap."""
    cap = (c.cap or 0) if c.wire == CHAT else 0
    if c.window is None or c.tokens + cap <= c.window:
        return None
    text = f"Your input exceeds the context window of this model: {c.tokens:,} tokens"
    text += f" and {cap:,} for the answer" if cap else ""
    return refused(f"{text}, of {c.window:,}.", "context_length_exceeded", "input" if c.wire == RESPONSES else "messages")
