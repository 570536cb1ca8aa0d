"""What the Messages API refuses, rule by rule. Status and type are Anthropic's, and so are the few fixed phrases by which
people look an error up; the rest of a message is our own words.

Order matters: like the real service, the first broken rule answers. The source of a rule is a section of
docs/wire/anthropic.md, and, where it does not stand there, the public report or the official package's own description.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from lessonlib.sim.refusal import ALWAYS, ANSWERS, NAMED, WINDOW, Context, Refusal, RuleBook, models_hint
from lessonlib.sim.shapes import By, Closed, dots, kind_of, schema_problem, shown, words
from lessonlib.sim.signing import Verdict, check, digest
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

BOOK = RuleBook("anthropic-messages")
VERSIONS = ("2023-06-01", "2026-10-21")
DOC = "docs/wire/anthropic.md"

THINKING = "anthropic thinking"
"""The kind under which thinking blocks are signed."""
BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The beta header under which a block that has lost its place is dropped, and not refused."""


def refused(message: str, kind: str = "invalid_request_error", status: int = 400) -> Refusal:
    """A refusal in Anthropic's form."""
    return Refusal(status, kind, message)


# ---------------------------------------------------------------- shapes

_MARK = (By("type", {"ephemeral": Closed({"type": str, "ttl": words("5m", "1h")})}, other={"type": words("ephemeral")},
            required=True), None)  # fmt: skip
_TEXT: JSON = {"type": str, "text": str, "cache_control": _MARK, "citations": ([dict], None)}
TEXT = Closed(_TEXT)
IMAGE = Closed({"type": str, "source": By("type", {
    "base64": Closed({"type": str, "media_type": words("image/jpeg", "image/png", "image/gif", "image/webp"), "data": str}),
    "url": Closed({"type": str, "url": str}),
    "file": Closed({"type": str, "file_id": str}),
}, other={"type": words("base64", "url", "file")}, required=True), "cache_control": _MARK,
    "transformations": (dict, None)})  # fmt: skip
DOCUMENT = Closed({"type": str, "source": dict, "cache_control": _MARK, "citations": (dict, None), "context": (str, None),
                   "title": (str, None)})  # fmt: skip
SEARCH = Closed({"type": str, "source": str, "title": str, "content": [TEXT], "cache_control": _MARK, "citations": dict})
RESULT_PART = By("type", {"text": TEXT, "image": IMAGE, "document": DOCUMENT, "search_result": SEARCH})
BLOCKS: JSON = {
    "text": TEXT,
    "image": IMAGE,
    "document": DOCUMENT,
    "search_result": SEARCH,
    "tool_use": Closed({"type": str, "id": str, "name": str, "input": dict, "cache_control": _MARK, "caller": dict,
                        "toolset_name": (str, None)}),
    "tool_result": Closed({"type": str, "tool_use_id": str, "content": (str, [RESULT_PART]), "is_error": bool,
                           "cache_control": _MARK, "toolset_name": (str, None)}),
    "thinking": Closed({"type": str, "thinking": str, "signature": str}),
    "redacted_thinking": Closed({"type": str, "data": str}),
    "server_tool_use": Closed({"type": str, "id": str, "name": str, "input": dict, "cache_control": _MARK,
                               "caller": dict}),
    "web_search_tool_result": Closed({"type": str, "tool_use_id": str, "content": ([dict], dict), "cache_control": _MARK,
                                      "caller": dict}),
    "container_upload": Closed({"type": str, "file_id": str, "cache_control": _MARK}),
}  # fmt: skip
BLOCK = By("type", BLOCKS)
MESSAGE = Closed({"role": words("user", "assistant", "system"), "content": (str, [BLOCK]), "clear_at": (str, None),
                  "output_config": (dict, None)})  # fmt: skip
TOOL: JSON = {"name": str, "type": (str, None), "description": str, "input_schema": dict, "strict": bool,
              "eager_input_streaming": (bool, None), "cache_control": _MARK, "defer_loading": bool,
              "input_examples": [dict], "allowed_callers": [str]}  # fmt: skip
_DISPLAY = (words("summarized", "omitted", "updates"), None)
THINKING_CONFIG = By("type", {
    "enabled": Closed({"type": str, "budget_tokens": int, "display": _DISPLAY}),
    "adaptive": Closed({"type": str, "display": _DISPLAY, "block_binding": (
        Closed({"prefix_mismatch_behavior": (words("error", "drop_block"), None)}), None)}),
    "disabled": Closed({"type": str}),
    "between_tools": Closed({"type": str}),
}, other={"type": words("enabled", "adaptive", "disabled", "between_tools")}, required=True)  # fmt: skip
FORMAT = By("type", {"json_schema": Closed({"type": str, "schema": dict})}, other={"type": words("json_schema")},
            required=True)  # fmt: skip
_CHOICE: JSON = {"type": str, "disable_parallel_tool_use": bool}
CHOICE = By("type", {
    "auto": Closed(_CHOICE), "any": Closed(_CHOICE), "none": Closed(_CHOICE), "tool": Closed({**_CHOICE, "name": str}),
}, other={"type": words("auto", "any", "tool", "none")}, required=True)  # fmt: skip

FIELDS: JSON = {
    "cache_control": _MARK,
    "container": (str, dict, None),
    "diagnostics": (dict, None),
    "inference_geo": (str, None),
    "max_tokens": int,
    "messages": [MESSAGE],
    "metadata": Closed({"user_id": (str, None)}),
    "model": str,
    "output_config": Closed({"effort": (words("low", "medium", "high", "xhigh", "max"), None), "format": (FORMAT, None),
                             "task_budget": (dict, None)}),
    "service_tier": words("auto", "standard_only"),
    "speed": (words("fast", "standard"), None),
    "stop_sequences": [str],
    "stream": bool,
    "system": (str, [TEXT]),
    "thinking": THINKING_CONFIG,
    "tool_choice": CHOICE,
    "tools": [TOOL],
    "user_profile_id": str,
    "workspace_id": str,
    "temperature": float,
    "top_p": float,
    "top_k": int,
}  # fmt: skip
BETA_FIELDS = ("billing_policy", "compaction", "context_management", "fallback_credit_token", "fallbacks", "mcp_servers",
               "output_format", "thread")  # fmt: skip
SHAPE = Closed({**FIELDS, **dict.fromkeys(BETA_FIELDS, object)})

OTHER_NAMES = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "stop": "stop_sequences",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "response_format": "output_config.format",
    "reasoning": "thinking and output_config.effort",
    "reasoning_effort": "output_config.effort",
    "instructions": "system",
    "input": "messages",
    "tool_calls": "blocks of type tool_use in content",
    "tool_call_id": "tool_use_id of a tool_result block",
}

# ---------------------------------------------------------------- headers, size, JSON, types


@BOOK.rule(f"{DOC} 1", on=ALWAYS)
def api_key_present(c: Context) -> Refusal | None:
    """The key stands in `x-api-key` or in `Authorization: Bearer`."""
    scheme, _, bearer = c.headers.get("authorization", "").partition(" ")
    key = c.headers.get("x-api-key", "").strip() or (bearer.strip() if scheme.lower() == "bearer" else "")
    if not key:
        return refused("No API key: send x-api-key or Authorization: Bearer.", "authentication_error", 401)
    if c.sim.keys is not None and key not in c.sim.keys:
        return refused("The API key is not valid.", "authentication_error", 401)
    return None


@BOOK.rule(f"{DOC} 1.1", on=ALWAYS)
def version_present(c: Context) -> Refusal | None:
    """The header `anthropic-version` is required and names a version that exists."""
    version = c.headers.get("anthropic-version", "")
    if version not in VERSIONS:
        return refused(f"anthropic-version is {shown(version) or 'missing'}; it must be one of {', '.join(VERSIONS)}.")
    return None


@BOOK.rule(f"{DOC} 6")
def body_not_too_large(c: Context) -> Refusal | None:
    """A request may have 32 MB."""
    if c.size > c.sim.max_body:
        return refused(f"The request has more than {c.sim.max_body:,} bytes.", "request_too_large", 413)
    return None


@BOOK.rule(f"{DOC} 6; anthropics/claude-code#6376 (half characters)")
def messages_body_is_json(c: Context) -> Refusal | None:
    """The body is one JSON object, without half characters (a text that was cut inside an emoji)."""
    if c.broken:
        return refused(f"The request body is not valid JSON: {c.broken}.")
    return refused("The request body is not valid JSON: no low surrogate in string.") if c.halves else None


@BOOK.rule(f"{DOC} 1.2; the types of the package anthropic")
def fields_have_their_types(c: Context) -> Refusal | None:
    """Every field has its JSON type, at every level, and is not null where the package's types do not say so."""
    problem = c.problem("type")
    if problem is None:
        return None
    return refused(f"{dots(problem.path)}: should be {problem.expected}, not {kind_of(problem.value)}.")


@BOOK.rule(f"{DOC} 1.2; the types of the package anthropic")
def words_allowed(c: Context) -> Refusal | None:
    """A field that takes a few words takes only those."""
    problem = c.problem("word")
    if problem is None:
        return None
    if problem.name == "role" and problem.value == "tool":
        return refused(f"{dots(problem.path)}: there is no role 'tool'. Results are `tool_result` blocks of a user message.")
    return refused(f"{dots(problem.path)}: '{shown(problem.value)}' is none of {problem.expected}.")


@BOOK.rule(f"{DOC} 1.2; the types of the package anthropic")
def kinds_named(c: Context) -> Refusal | None:
    """What comes in several kinds says which it is: `thinking`, `tool_choice`, `cache_control`, a source and a format have a
    `type`."""
    problem = c.problem("missing")
    return refused(f"{dots(problem.path)}: Field required.") if problem is not None else None


@BOOK.rule(f"{DOC} 1.2; the types of the package anthropic")
def no_extra_inputs(c: Context) -> Refusal | None:
    """A field that the API does not know is refused, at every level; for other vendors' names the message says its own."""
    problem = c.problem("field")
    if problem is None:
        return None
    hint = f" Here it is {OTHER_NAMES[problem.name]}." if problem.name in OTHER_NAMES else ""
    return refused(f"{dots(problem.path)}: Extra inputs are not permitted.{hint}")


# ---------------------------------------------------------------- required fields


@BOOK.rule(f"{DOC} 1.2", on=NAMED)
def model_named(c: Context) -> Refusal | None:
    """`model` is required, and one that exists."""
    if c.operation == "models" and not c.model:
        return None  # all of them
    if not c.model:
        return refused("model: Field required.")
    if not c.able.family or c.able.provider != "anthropic":
        text = f"model: {shown(c.model)} does not exist here. {models_hint(c.model, 'anthropic')}"
        return refused(text, "not_found_error", 404)
    return None


@BOOK.rule(f"{DOC} 1.2; lessonlib/data/models.json", on=ANSWERS)
def max_tokens_present(c: Context) -> Refusal | None:
    """`max_tokens` is required, not negative (0 only warms the cache), and at most what the model can write."""
    value = c.body.get("max_tokens")
    if value is None:
        return refused("max_tokens: Field required.")
    if value < 0:
        return refused("max_tokens: should be greater than or equal to 0.")
    if c.able.max_output is not None and value > c.able.max_output:
        most = c.able.max_output
        return refused(f"max_tokens: {value} > {most}, which is the maximum number of output tokens for {c.able.family}.")
    return None


@BOOK.rule(f"{DOC} 1.6")
def messages_present(c: Context) -> Refusal | None:
    """`messages` has at least one message and at most 100,000, each with role and content."""
    found = c.body.get("messages")
    if not found:
        return refused("messages: at least one message is required.")
    if len(found) > 100_000:
        return refused("messages: at most 100,000 messages.")
    for place, message in enumerate(found):
        for name in ("role", "content"):
            if name not in message:
                return refused(f"messages.{place}.{name}: Field required.")
    return None


@BOOK.rule(
    f"{DOC} 1.6; lobehub/lobehub#1601",
    doubt="the report is of 2024; the present reference does not say that the first message must be the user's",
)
def user_first(c: Context) -> Refusal | None:
    """The first message is the user's."""
    if c.body["messages"][0]["role"] != "user":
        return refused('messages: first message must use the "user" role.')
    return None


def generation(family: str) -> tuple[int, int]:
    """The version in a model's name: claude-opus-4-8 is (4, 8)."""
    found = re.match(r"claude-[a-z]+-(\d+)(?:-(\d{1,2})(?!\d))?", family)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


@BOOK.rule(f"{DOC} 1.6; simonw/llm-anthropic#73")
def system_role_placed(c: Context) -> Refusal | None:
    """A message of role `system` is for Opus 4.8 and later models: text alone, directly behind a message of the user."""
    roles = [message["role"] for message in c.body["messages"]]
    for place, message in enumerate(c.body["messages"]):
        if message["role"] != "system":
            continue
        if generation(c.able.family) < (4, 8):
            return refused(
                f"messages.{place}.role: {c.able.family} takes user and assistant; the system prompt is `system`."
            )
        if roles[place - 1] != "user":
            return refused(f"messages.{place}: a system message stands directly behind a message of the user.")
        if any(block.get("type") != "text" for block in blocks(message)):
            return refused(f"messages.{place}: a system message holds text alone.")
    return None


# ---------------------------------------------------------------- parameters


SAMPLING = {"temperature": 1, "top_p": 1, "top_k": None}
"""The parameters of sampling with their defaults."""


@BOOK.rule(f"{DOC} 0")
def no_sampling_parameters(c: Context) -> Refusal | None:
    """`temperature`, `top_p` and `top_k` are refused from version 2026-10-21 on, and before it, unless they say the default,
    by models from 4.7 on."""
    for name, default in SAMPLING.items():
        if name not in c.body:
            continue
        if c.headers.get("anthropic-version") != "2023-06-01":
            return refused(f"{name}: Extra inputs are not permitted.")
        if c.able.sampling is False and c.body[name] != default:
            return refused(f"{name}: {c.able.family} takes no other value than the default; leave it out.")
    return None


@BOOK.rule(f"{DOC} 0; the migration guide in anthropics/skills")
def sampling_goes_together(c: Context) -> Refusal | None:
    """Where sampling is allowed: not both `temperature` and `top_p`, and with thinking neither moves from its default."""
    temperature, top_p = c.body.get("temperature"), c.body.get("top_p")
    if temperature is not None and top_p is not None:
        return refused("temperature and top_p cannot both be specified for this model.")
    if thinks(c) and temperature not in (None, 1):
        return refused("temperature may only be set to 1 when thinking is enabled.")
    if thinks(c) and top_p is not None and top_p < 0.95:
        return refused("top_p must be 0.95 or more when thinking is enabled.")
    return None


@BOOK.rule(f"{DOC} 1.2; BerriAI/litellm#3286")
def stop_sequences_not_blank(c: Context) -> Refusal | None:
    """A stop sequence holds more than white space."""
    for place, text in enumerate(as_list(c.body.get("stop_sequences"))):
        if not text.strip():
            return refused(f"stop_sequences.{place}: each stop sequence must contain non-whitespace.")
    return None


@BOOK.rule(f"{DOC} 1.4")
def thinking_fits_the_model(c: Context) -> Refusal | None:
    """A thinking budget is for models up to 4.6, `adaptive` from 4.6 on, `between_tools` for Sonnet 5.5; the newest models
    cannot be told not to think."""
    kind = as_dict(c.body.get("thinking")).get("type")
    family = c.able.family
    if kind == "disabled" and c.able.can_disable_thinking is False:
        return refused(f"thinking.type: {family} always thinks; disabled is not supported.")
    if kind == "enabled" and c.able.thinking == "adaptive" and c.able.sampling is not True:
        return refused(f"thinking.type: {family} takes adaptive, not enabled with a budget.")
    if kind == "adaptive" and c.able.thinking == "budget":
        return refused(f"thinking.type: {family} takes enabled with budget_tokens, not adaptive.")
    if kind == "between_tools" and family != "claude-sonnet-5-5":
        return refused(f"thinking.type: {family} does not take between_tools.")
    return None


@BOOK.rule(f"{DOC} 1.4; the models' migration guides")
def disabled_thinking_needs_low_effort(c: Context) -> Refusal | None:
    """Opus 5 and Haiku 5.5 can be told not to think only with an effort up to high."""
    effort = as_dict(c.body.get("output_config")).get("effort")
    disabled = as_dict(c.body.get("thinking")).get("type") == "disabled"
    if disabled and c.able.family in ("claude-opus-5", "claude-haiku-5-5") and effort in ("xhigh", "max"):
        return refused(f"thinking.type: disabled needs an effort of at most high on {c.able.family}.")
    return None


@BOOK.rule(f"{DOC} 1.4", on=ANSWERS)
def budget_in_range(c: Context) -> Refusal | None:
    """`budget_tokens` is at least 1,024 and less than `max_tokens`."""
    thinking = as_dict(c.body.get("thinking"))
    if thinking.get("type") != "enabled":
        return None
    budget = thinking.get("budget_tokens")
    if budget is None:
        return refused("thinking.enabled.budget_tokens: Field required.")
    if budget < 1024:
        return refused("thinking.enabled.budget_tokens: should be greater than or equal to 1024.")
    if budget >= c.body["max_tokens"]:
        return refused("max_tokens must be greater than thinking.budget_tokens.")
    return None


@BOOK.rule(f"{DOC} 1.4; lessonlib/data/models.json")
def effort_known_to_the_model(c: Context) -> Refusal | None:
    """`output_config.effort` takes the words that the model knows."""
    effort = as_dict(c.body.get("output_config")).get("effort")
    if effort is not None and c.able.efforts is not None and effort not in c.able.efforts:
        return refused(f"output_config.effort: {c.able.family} takes {', '.join(c.able.efforts)}, not '{effort}'.")
    return None


@BOOK.rule(f"{DOC} 1.2; sub2api#176")
def at_most_four_cache_marks(c: Context) -> Refusal | None:
    """`cache_control` stands on at most four blocks, and never on empty text or on thinking."""
    marked = [place for place, block in marked_blocks(c.body)]
    if len(marked) > 4:
        return refused(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}.")
    return None


def marked_blocks(body: JSON) -> list[tuple[int, JSON]]:
    """(step, block) of everything with a cache mark: step 0 is tools and system prompt, then one per message."""
    found = [(0, as_dict(tool)) for tool in as_list(body.get("tools"))]
    found += [(0, as_dict(block)) for block in as_list(body.get("system"))]
    for place, message in enumerate(as_list(body.get("messages"))):
        for block in blocks(message):
            found.append((place + 1, block))
            found += [(place + 1, as_dict(inner)) for inner in as_list(block.get("content"))]
    return [(place, block) for place, block in found if block.get("cache_control") is not None]


# ---------------------------------------------------------------- tools


def client_tools(c: Context) -> Iterator[tuple[str, JSON]]:
    """(path, tool) of the tools that the client runs itself. Those that Anthropic defines bring their own schema."""
    for place, tool in enumerate(as_list(c.body.get("tools"))):
        if tool.get("type") in (None, "custom"):
            yield f"tools.{place}", tool


OWN_TOOLS = re.compile(
    r"(bash|text_editor|memory|computer|computer_toolset|browser_toolset|code_execution|web_search|web_fetch|advisor"
    r"|tool_search_tool_bm25|tool_search_tool_regex)_\d{8}|tool_search_tool_(bm25|regex)|mcp_toolset|custom"
)


@BOOK.rule(f"{DOC} 1.3; the types of the package anthropic")
def tool_types_known(c: Context) -> Refusal | None:
    """A tool's `type` is left out, `custom`, or one of the tools that Anthropic defines, most with a date."""
    for place, tool in enumerate(as_list(c.body.get("tools"))):
        kind = tool.get("type")
        if kind is not None and not OWN_TOOLS.fullmatch(kind):
            hint = " (leave it out, or write custom)" if kind == "function" else ""
            return refused(f"tools.{place}: Input tag '{shown(kind)}' is none of the expected tags{hint}.")
    return None


@BOOK.rule(f"{DOC} 1.3")
def client_tools_well_formed(c: Context) -> Refusal | None:
    """A client tool has a `name` and an object schema as `input_schema` (not `parameters`), and no other fields than the
    API knows."""
    for where, tool in client_tools(c):
        if not tool.get("name"):
            hint = " (there is no level called function here)" if "function" in tool else ""
            return refused(f"{where}.name: Field required{hint}.")
        if tool.get("input_schema") is None:
            hint = " (parameters is the other vendors' word)" if "parameters" in tool else ""
            return refused(f"{where}.input_schema: Field required{hint}.")
        unknown = next((name for name in tool if name not in TOOL), None)
        if unknown is not None:
            return refused(f"{where}.custom.{shown(unknown)}: Extra inputs are not permitted.")
    return None


@BOOK.rule(f"{DOC} 1.3")
def tool_names_legal_and_unique(c: Context) -> Refusal | None:
    """A client tool's name has 1 to 128 letters, digits, `_` and `-`, and no other tool has it."""
    names: set[str] = set()
    for where, tool in client_tools(c):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]):
            return refused(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'.")
        if tool["name"] in names:
            return refused("tools: Tool names must be unique.")
        names.add(tool["name"])
    return None


@BOOK.rule(f"{DOC} 1.3")
def input_schemas_valid(c: Context) -> Refusal | None:
    """`input_schema` is a JSON Schema of type object."""
    for place, tool in enumerate(as_list(c.body.get("tools"))):
        schema = tool.get("input_schema")
        if schema is None:
            continue
        problem = schema_problem(schema)
        if problem is not None:
            return refused(f"tools.{place}.input_schema: JSON schema is invalid: {problem}.")
        if schema.get("type") != "object":
            return refused(f"tools.{place}.input_schema.type: should be 'object'.")
    return None


@BOOK.rule(f"{DOC} 1.5")
def grammar_schemas_closed(c: Context) -> Refusal | None:
    """The schema of a strict tool or of `output_config.format` closes every object, and has no bounds."""
    schemas = [(f"tools.{place}.input_schema", tool.get("input_schema")) for place, tool in
               enumerate(as_list(c.body.get("tools"))) if tool.get("strict") is True]  # fmt: skip
    format_ = as_dict(as_dict(c.body.get("output_config")).get("format"))
    if format_:
        if format_.get("schema") is None:
            return refused("output_config.format.schema: Field required.")
        schemas.append(("output_config.format.schema", format_["schema"]))
    for where, schema in schemas:
        problem = schema_problem(schema) or grammar_problem(schema)
        if problem is not None:
            return refused(f"{where}: {problem}.")
    return None


BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems")


def grammar_problem(schema: Any, where: str = "schema") -> str | None:
    """Why a schema cannot be compiled into a grammar, or None."""
    schema = as_dict(schema)
    for keyword in BOUNDS:
        if keyword in schema:
            return f"{where}: '{keyword}' is not supported"
    if "$ref" in schema and len(schema) > 1 and "$defs" not in schema:
        return f"{where}: nothing may stand beside '$ref'"
    if (schema.get("type") == "object" or "properties" in schema) and schema.get("additionalProperties") is not False:
        return f"{where}: 'additionalProperties' must be set to false"
    inner = [(f"{where}.{key}", value) for key, value in as_dict(schema.get("properties")).items()]
    inner += [(f"{where}.$defs.{key}", value) for key, value in as_dict(schema.get("$defs")).items()]
    inner += [(f"{where}.items", schema["items"])] if "items" in schema else []
    for keyword in ("anyOf", "allOf", "oneOf"):
        inner += [(f"{where}.{keyword}", value) for value in as_list(schema.get(keyword))]
    return next((problem for path, value in inner if (problem := grammar_problem(value, path))), None)


@BOOK.rule(f"{DOC} 1.3")
def forced_choice_allowed(c: Context) -> Refusal | None:
    """The newest models, and a thinking budget, refuse a forced `tool_choice` (any or tool)."""
    choice = as_dict(c.body.get("tool_choice"))
    forced = choice.get("type") in ("any", "tool")
    if forced and (c.able.forced_tool_choice is False or as_dict(c.body.get("thinking")).get("type") == "enabled"):
        return refused(f"tool_choice: type {choice['type']} is not supported here; use auto or none.")
    return None


@BOOK.rule(f"{DOC} 1.3")
def choice_names_a_tool(c: Context) -> Refusal | None:
    """`tool_choice` needs tools, and {"type": "tool"} the name of one of them."""
    choice = as_dict(c.body.get("tool_choice"))
    if not choice:
        return None
    if choice["type"] != "none" and not c.body.get("tools"):
        return refused("tool_choice may only be specified while providing tools.")
    names = [tool.get("name") for tool in as_list(c.body.get("tools"))]
    if choice["type"] == "tool" and choice.get("name") not in names:
        return refused(f"tool_choice.name: '{shown(choice.get('name'))}' is not one of the tools.")
    return None


# ---------------------------------------------------------------- content blocks


def blocks(message: JSON) -> list[JSON]:
    """A message's blocks; a string is one text block."""
    content = message.get("content")
    return (
        [{"type": "text", "text": content}] if isinstance(content, str) else [as_dict(block) for block in as_list(content)]
    )


def all_blocks(c: Context) -> Iterator[tuple[str, str, JSON]]:
    """(path, role, block) of every block of the conversation."""
    for place, message in enumerate(c.body["messages"]):
        for number, block in enumerate(blocks(message)):
            yield f"messages.{place}.content.{number}", message["role"], block


@BOOK.rule(f"{DOC} 2")
def block_types_known(c: Context) -> Refusal | None:
    """A block has a type that this API knows (not `input_text`, not `image_url`)."""
    for where, _, block in all_blocks(c):
        kind = as_text(block.get("type"))
        if not kind:
            return refused(f"{where}.type: Field required.")
        if kind not in BLOCKS and not (kind.endswith("_tool_result") or kind in _BETA_BLOCKS):
            return refused(f"{where}: Input tag '{shown(kind)}' is none of the expected tags: {', '.join(BLOCKS)}.")
    return None


_BETA_BLOCKS = ("compaction", "fallback", "mcp_tool_use", "mcp_tool_result", "mcp_tool_listing", "tool_addition",
                "tool_removal", "tool_reference")  # fmt: skip


@BOOK.rule(f"{DOC} 2.1; anthropics/anthropic-sdk-python#461")
def no_empty_text(c: Context) -> Refusal | None:
    """A text block must not be empty or blank, not even one that the API itself returned."""
    for place, block in enumerate(as_list(c.body.get("system"))):
        if not as_text(as_dict(block).get("text")).strip():
            return refused(f"system.{place}.text: text content blocks must be non-empty.")
    for where, _, block in all_blocks(c):
        if block.get("type") == "text" and not as_text(block.get("text")).strip():
            return refused(f"{where}.text: text content blocks must be non-empty.")
    return None


NEEDED: dict[str, tuple[str, ...]] = {
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "image": ("source",),
    "document": ("source",),
    "server_tool_use": ("id", "name", "input"),
    "web_search_tool_result": ("tool_use_id", "content"),
}


@BOOK.rule(f"{DOC} 2.1, 2.2")
def blocks_well_formed(c: Context) -> Refusal | None:
    """A block has its type's fields: `tool_use` id, name and input; `thinking` its signature; an image its source."""
    for where, _, block in all_blocks(c):
        for name in NEEDED.get(block["type"], ()):
            if name not in block:
                return refused(f"{where}.{name}: Field required.")
    return None


WRONG_ROLE = {
    "user": ("tool_use", "thinking", "redacted_thinking", "server_tool_use"),
    "assistant": ("tool_result", "image", "container_upload"),
}


@BOOK.rule(f"{DOC} 2.1; SEMOSS/Semoss#2323 (pictures)")
def blocks_fit_the_role(c: Context) -> Refusal | None:
    """Calls and thinking are the assistant's, results and pictures the user's."""
    for where, role, block in all_blocks(c):
        if block["type"] in WRONG_ROLE.get(role, ()):
            return refused(f"{where}: a block of type {block['type']} does not belong into a message of the {role}.")
    return None


@BOOK.rule(f"{DOC} 0")
def citations_and_documents_by_version(c: Context) -> Refusal | None:
    """From version 2026-10-21 on: no `document` directly in an assistant message, no citations on text of the user."""
    if c.headers.get("anthropic-version") == "2023-06-01":
        return None
    for where, role, block in all_blocks(c):
        if role == "assistant" and block["type"] == "document":
            return refused(f"{where}: a document must not stand in a message of the assistant.")
        texts = [block, *as_list(block.get("content"))] if block["type"] == "search_result" else [block]
        if role == "user" and any(text.get("type") == "text" and text.get("citations") for text in texts):
            return refused(f"{where}: text of the user must not carry citations.")
    return None


_FIRST_BYTES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


@BOOK.rule(f"{DOC} 2.1; BoundaryML/baml#1292, home-assistant/core#167208")
def pictures_are_what_they_say(c: Context) -> Refusal | None:
    """A picture's data is base64 (no data URL), and its label is compared with its bytes."""
    for where, _, block in all_blocks(c):
        pictures = [block, *as_list(block.get("content"))] if block["type"] == "tool_result" else [block]
        for source in (as_dict(as_dict(picture).get("source")) for picture in pictures):
            if source.get("type") != "base64" or as_text(source.get("media_type")) not in _FIRST_BYTES.values():
                continue
            data = as_text(source.get("data"))
            try:
                start = base64.b64decode(data[:16], validate=True)
            except (ValueError, binascii.Error):
                return refused(f"{where}.source.base64: invalid base64 data.")
            kind = next((kind for first, kind in _FIRST_BYTES.items() if start.startswith(first)), None)
            if kind != source["media_type"]:
                text = f"the image was specified using the {source['media_type']} media type, but does not appear to be one"
                return refused(f"{where}.source.base64.data: {text}.")
    return None


@BOOK.rule(f"{DOC} 1.6")
def content_not_empty(c: Context) -> Refusal | None:
    """Every message has content, except an assistant message at the very end."""
    for place, message in enumerate(c.body["messages"]):
        last = place == len(c.body["messages"]) - 1
        if not message["content"] and not (last and message["role"] == "assistant"):
            return refused(f"messages.{place}: all messages must have non-empty content.")
    return None


# ---------------------------------------------------------------- calls and results


@BOOK.rule(f"{DOC} 2.3; HKUDS/nanobot#4356, anomalyco/opencode#1279")
def call_ids_legal(c: Context) -> Refusal | None:
    """Ids of calls have letters, digits, `_` and `-`, and each stands for one call in the whole request."""
    seen: set[str] = set()
    for where, _, block in all_blocks(c):
        call_id = block.get("tool_use_id" if block["type"] == "tool_result" else "id")
        if block["type"] not in ("tool_use", "tool_result") or not isinstance(call_id, str):
            continue
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", call_id):
            return refused(f"{where}.{block['type']}.id: String should match pattern '^[a-zA-Z0-9_-]+$'.")
        if block["type"] == "tool_use":
            if call_id in seen:
                return refused(f"{where}: `tool_use` ids must be unique.")
            seen.add(call_id)
    return None


@BOOK.rule(f"{DOC} 2.2; ding113/claude-code-hub#470")
def server_call_ids_legal(c: Context) -> Refusal | None:
    """The id of a `server_tool_use` begins with `srvtoolu_`: it is the service's own."""
    for where, _, block in all_blocks(c):
        if block["type"] == "server_tool_use" and not re.fullmatch(r"srvtoolu_[a-zA-Z0-9_]+", block["id"]):
            return refused(f"{where}.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'.")
    return None


@BOOK.rule(f"{DOC} 2.5; sipeed/picoclaw#1658, openclaw/openclaw#13134")
def call_names_legal(c: Context) -> Refusal | None:
    """The name of a call has 1 to 200 characters."""
    for where, _, block in all_blocks(c):
        if block["type"] == "tool_use" and not 1 <= len(block["name"]) <= 200:
            return refused(f"{where}.tool_use.name: String should have 1 to 200 characters.")
    return None


def turns(messages: list[JSON]) -> list[tuple[str, list[JSON]]]:
    """(role, blocks) with neighbours of the same role merged, as the API reads them. A system message is part of no turn."""
    merged: list[tuple[str, list[JSON]]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks(message))
        else:
            merged.append((message["role"], blocks(message)))
    return merged


@BOOK.rule(f"{DOC} 2.3; MoonshotAI/kosong#45")
def every_call_answered(c: Context) -> Refusal | None:
    """Every `tool_use` of an assistant turn has its `tool_result` in the very next user message, all in that one."""
    found = c.body["messages"]
    for place, message in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else {"role": "end", "content": ""}
        if message["role"] != "assistant" or after["role"] == "assistant":
            continue
        start = place
        while start and found[start - 1]["role"] == "assistant":
            start -= 1
        calls = [block for one in found[start : place + 1] for block in blocks(one) if block["type"] == "tool_use"]
        answered = {block.get("tool_use_id") for block in blocks(after)}
        missing = [block["id"] for block in calls if block["id"] not in answered]
        if missing:
            text = f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after"
            return refused(f"{text}: {', '.join(shown(one) for one in missing)}.")
    return None


@BOOK.rule(f"{DOC} 2.3")
def every_result_has_its_call(c: Context) -> Refusal | None:
    """A `tool_result` answers a `tool_use` of the assistant turn right before it, once; server tools are not answered."""
    merged = turns(c.body["messages"])
    for place, (_, content) in enumerate(merged):
        made = {block["id"] for block in merged[place - 1][1] if block["type"] == "tool_use"} if place else set()
        for block in content:
            if block["type"] != "tool_result":
                continue
            if block["tool_use_id"] not in made:
                text = "unexpected `tool_use_id` found in `tool_result` blocks (unknown, or answered twice)"
                return refused(f"{text}: {shown(block['tool_use_id'])}.")
            made.remove(block["tool_use_id"])
    return None


@BOOK.rule(f"{DOC} 2.3")
def results_first(c: Context) -> Refusal | None:
    """In a user message the `tool_result` blocks stand before everything else."""
    for place, message in enumerate(c.body["messages"]):
        other = False
        for block in blocks(message):
            if block["type"] == "tool_result" and other:
                return refused(f"messages.{place}: tool_result blocks must come first in the message.")
            other = other or block["type"] != "tool_result"
    return None


@BOOK.rule(f"{DOC} 2.3; bytedance/trae-agent#230, vellum-ai/vellum-assistant#18387")
def error_results_are_text(c: Context) -> Refusal | None:
    """A result with `is_error` has content, and text alone."""
    for where, _, block in all_blocks(c):
        if block["type"] != "tool_result" or block.get("is_error") is not True:
            continue
        if not block.get("content"):
            return refused(f"{where}.tool_result: content cannot be empty if `is_error` is true.")
        if any(as_dict(part).get("type") != "text" for part in as_list(block["content"])):
            return refused(f"{where}.tool_result: all content must be type 'text' if `is_error` is true.")
    return None


# ---------------------------------------------------------------- thinking


def prefixes(body: JSON) -> Iterator[tuple[int, int, JSON, str]]:
    """(message, place in it, block, what stands before it) of every block. What stands before is one running digest over
    system prompt, tools and all earlier blocks with their roles, so a long history costs no more than its length; how
    neighbours of one role are split into messages does not matter."""
    running = _opening(body)
    for place, message in enumerate(as_list(body.get("messages"))):
        for number, block in enumerate(blocks(message)):
            yield place, number, block, running
            running = after_block(running, message["role"], block)


def prefix(body: JSON) -> str:
    """The running digest over the whole request: what stands before the answer."""
    running = _opening(body)
    for message in as_list(body.get("messages")):
        for block in blocks(message):
            running = after_block(running, message["role"], block)
    return running


def after_block(running: str, role: str, block: JSON) -> str:
    """The running digest with one more block."""
    return digest(running, role, _bare(block))


def _opening(body: JSON) -> str:
    system = body.get("system") or ""
    text = system if isinstance(system, str) else "".join(as_text(as_dict(block).get("text")) for block in system)
    return digest(text, [_bare(as_dict(tool)) for tool in as_list(body.get("tools"))])


def _bare(block: JSON) -> JSON:
    """A block without its cache mark and without nulls: neither changes what the model reads."""
    return {key: value for key, value in block.items() if key != "cache_control" and value is not None}


THOUGHTS = ("thinking", "redacted_thinking")


def signature_of(block: JSON) -> tuple[str, str]:
    """(signature, signed text) of a thinking block; redacted thinking is one opaque text with both inside."""
    if block["type"] == "redacted_thinking":
        return as_text(block.get("data")), "redacted"
    return as_text(block.get("signature")), as_text(block.get("thinking"))


def judge(block: JSON, before: str, model: str) -> Verdict:
    """What a thinking block's signature says."""
    signature, text = signature_of(block)
    return check(signature, THINKING, text, before, model)


@BOOK.rule(f"{DOC} 2.4; anthropics/claude-code#63357")
def thinking_unchanged(c: Context) -> Refusal | None:
    """A thinking block's signature, or a redacted block's data, is the one that the service gave to this very text."""
    for where, _, block in all_blocks(c):
        if block["type"] in THOUGHTS and judge(block, "", c.able.family) in (Verdict.FOREIGN, Verdict.CHANGED):
            name = "signature in thinking" if block["type"] == "thinking" else "data in redacted_thinking"
            return refused(f"{where}: Invalid {name} block.")
    return None


@BOOK.rule(f"{DOC} 2.5; tailcallhq/forgecode#2107")
def thinking_not_last(c: Context) -> Refusal | None:
    """An assistant message does not end with thinking."""
    for place, (role, content) in enumerate(turns(c.body["messages"])):
        if role == "assistant" and content and content[-1]["type"] in THOUGHTS:
            return refused(f"messages.{place}: The final block in an assistant message cannot be `thinking`.")
    return None


def bound(c: Context) -> bool:
    """Whether the model checks what stands before a thinking block."""
    return c.able.binds_thinking is True


def drops_moved_thinking(c: Context) -> bool:
    """Whether the request asks to drop blocks that have lost their place (beta)."""
    binding = as_dict(as_dict(c.body.get("thinking")).get("block_binding"))
    return binding.get("prefix_mismatch_behavior") == "drop_block" and BINDING_BETA in c.headers.get("anthropic-beta", "")


def running_tool_turn(c: Context) -> list[JSON]:
    """The blocks of the assistant whose calls are being answered; none where no tool turn runs."""
    merged = turns(c.body["messages"])
    answering = len(merged) > 1 and any(block["type"] == "tool_result" for block in merged[-1][1])
    return merged[-2][1] if answering else []


def without_thinking(found: list[JSON]) -> Refusal:
    """The refusal of a tool turn that lacks its thinking."""
    return refused(f"Expected thinking or redacted_thinking, but found {found[0]['type']}.")


@BOOK.rule(f"{DOC} 1.4, 2.4")
def budget_turn_starts_with_thinking(c: Context) -> Refusal | None:
    """With a thinking budget, the assistant message of a running tool turn starts with thinking."""
    found = running_tool_turn(c)
    by_budget = as_dict(c.body.get("thinking")).get("type") == "enabled"
    return without_thinking(found) if found and by_budget and found[0]["type"] not in THOUGHTS else None


@BOOK.rule(
    f"{DOC} 2.4; build-with-claude/thinking-tool-workflows in the documentation",
    doubt="the page on tool workflows says that thinking must come back and that a rebuilt message is a 400; the page on "
    "adaptive thinking says that earlier turns need not start with it, and some clients leave it out unpunished",
)
def thinking_kept_in_tool_turn(c: Context) -> Refusal | None:
    """While a tool turn runs, its assistant message starts with the thinking that led to the calls, if the model that is
    asked thought about them."""
    found = running_tool_turn(c)
    thought = thinks(c) and any(block["type"] == "tool_use" and thought_about(block["id"]) for block in found)
    return without_thinking(found) if thought and found[0]["type"] not in THOUGHTS else None


def thought_about(call_id: str) -> bool:
    """Whether the id says that its answer began with thinking (the simulator writes that into it)."""
    return re.fullmatch(r"toolu_[0-9a-f]{24}t", call_id) is not None


@BOOK.rule(f"{DOC} 2.4; anomalyco/opencode#48637, pydantic/pydantic-ai#7989")
def thinking_not_moved(c: Context) -> Refusal | None:
    """On models that bind thinking, nothing before a thinking block may change: not the system prompt, not the tools."""
    if not bound(c) or drops_moved_thinking(c):
        return None
    for place, number, block, before in prefixes(c.body):
        if block["type"] in THOUGHTS and judge(block, before, c.able.family) is Verdict.MOVED:
            where = f"messages.{place}.content.{number}"
            return refused(f"{where}: The block is bound to a different conversation: what stands before it has changed.")
    return None


def thinks(c: Context) -> bool:
    """Whether this request has thinking on: asked for, or the model's default (from Sonnet 5 and Opus 5 on)."""
    kind = as_dict(c.body.get("thinking")).get("type")
    if kind is not None:
        return kind in ("enabled", "adaptive")
    return c.able.thinking == "adaptive" and generation(c.able.family) >= (5, 0)


# ---------------------------------------------------------------- the last message


@BOOK.rule(f"{DOC} 1.6")
def no_prefill_on_new_models(c: Context) -> Refusal | None:
    """From 4.6 on the conversation must end with a user message, unless it ends with a paused turn."""
    if _prefill(c) is not None and c.able.prefill is False:
        text = "This model does not support assistant message prefill. The conversation must end with a user message."
        return refused(text)
    return None


@BOOK.rule(f"{DOC} 1.6; langchain-ai/langchain#35071")
def prefill_well_formed(c: Context) -> Refusal | None:
    """A prefill does not end in white space, and does not go with a thinking budget."""
    found = _prefill(c)
    if found is None:
        return None
    if as_dict(c.body.get("thinking")).get("type") == "enabled":
        return refused("A final assistant message cannot be continued when thinking is enabled.")
    if found and found[-1]["type"] == "text" and found[-1]["text"] != found[-1]["text"].rstrip():
        return refused("messages: final assistant content cannot end with trailing whitespace.")
    return None


def _prefill(c: Context) -> list[JSON] | None:
    """The blocks of a last assistant message that is to be continued; None if the user is last, or the turn was paused."""
    last = c.body["messages"][-1]
    if last["role"] != "assistant" or any(block["type"] in ("server_tool_use", "compaction") for block in blocks(last)):
        return None
    return blocks(last)


# ---------------------------------------------------------------- the window, and what is not played


@BOOK.rule(f"{DOC} 3; lessonlib/data/models.json", on=WINDOW)
def prompt_fits_the_window(c: Context) -> Refusal | None:
    """The prompt fits the model's window. A cap may go beyond it: the answer ends where the window does."""
    if c.window is not None and c.tokens > c.window:
        return refused(f"prompt is too long: {c.tokens} tokens > {c.window} maximum.")
    return None


@BOOK.rule("docs/simulator.md 5; lib/threads in the package anthropic")
def message_threads_are_not_simulated(c: Context) -> Refusal | None:
    """The simulator holds no message threads. It says so with the code on which the package goes on without them."""
    if c.body.get("thread") not in (None, False):
        code = "thread_unsupported_request"
        return Refusal(400, "invalid_request_error", "The simulator does not play message threads.", code)
    return None


NOT_PLAYED = ("mcp_servers", "compaction", "context_management", "fallbacks", "container")


@BOOK.rule("docs/simulator.md 5")
def messages_extras_are_not_simulated(c: Context) -> Refusal | None:
    """The simulator has no MCP servers, compaction, fallbacks or containers: it says so, instead of leaving them out."""
    for name in NOT_PLAYED:
        if c.body.get(name) is not None:
            return refused(f"The simulator does not play '{name}'.")
    return None
