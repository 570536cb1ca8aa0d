"""What the Messages API refuses, rule by rule. The messages are our own words; status and type are Anthropic's.

Order matters: like the real service, the first broken rule answers. Sources are sections of docs/wire/anthropic.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lessonlib.sim.refusal import Context, Refusal, RuleBook
from lessonlib.sim.signing import Verdict, check
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

BOOK = RuleBook("anthropic-messages")
VERSIONS = ("2023-06-01", "2026-10-21")
DOC = "docs/wire/anthropic.md"

THINKING = "anthropic thinking"
"""The kind under which thinking blocks are signed."""


def refused(message: str, kind: str = "invalid_request_error", status: int = 400) -> Refusal:
    """A refusal in Anthropic's form."""
    return Refusal(status, kind, message)


# ---------------------------------------------------------------- headers


@BOOK.rule(f"{DOC} (headers)")
def api_key_present(c: Context) -> Refusal | None:
    """The key stands in `x-api-key` or in `Authorization: Bearer`."""
    key = c.headers.get("x-api-key") or c.headers.get("authorization", "").removeprefix("Bearer ").strip()
    if not key:
        return refused("No API key: send x-api-key or Authorization: Bearer.", "authentication_error", 401)
    if c.sim.keys is not None and key not in c.sim.keys:
        return refused("The API key is not valid.", "authentication_error", 401)
    return None


@BOOK.rule(f"{DOC} (headers)")
def version_present(c: Context) -> Refusal | None:
    """The header `anthropic-version` is required and names a version that exists."""
    version = c.headers.get("anthropic-version", "")
    if version not in VERSIONS:
        return refused(f"anthropic-version is {version or 'missing'}; it must be one of {', '.join(VERSIONS)}.")
    return None


@BOOK.rule(f"{DOC} (errors)")
def body_not_too_large(c: Context) -> Refusal | None:
    """A request may have 32 MB."""
    if c.size > c.sim.max_body:
        return refused(f"The request has {c.size:,} bytes; {c.sim.max_body:,} are allowed.", "request_too_large", 413)
    return None


# ---------------------------------------------------------------- required fields


@BOOK.rule(f"{DOC} (request)")
def model_named(c: Context) -> Refusal | None:
    """`model` is required, and one that exists."""
    if not c.model:
        return refused("model: Field required.")
    if not c.able.family or c.able.provider != "anthropic":
        return refused(f"model: {c.model} does not exist here.", "not_found_error", 404)
    return None


@BOOK.rule(f"{DOC} (request)")
def max_tokens_present(c: Context) -> Refusal | None:
    """`max_tokens` is required and at least 1 here (0 would only warm the cache)."""
    value = c.body.get("max_tokens")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        return refused("max_tokens: Field required, a whole number of at least 1.")
    return None


@BOOK.rule(f"{DOC} (request)")
def messages_present(c: Context) -> Refusal | None:
    """`messages` is a list with at least one message of role user or assistant, each with content."""
    messages = c.body.get("messages")
    if not isinstance(messages, list) or not messages:
        return refused("messages: at least one message is required.")
    for place, message in enumerate(messages):
        if as_dict(message).get("role") not in ("user", "assistant"):
            return refused(f"messages.{place}.role: must be user or assistant (there is no tool role).")
        if not isinstance(message.get("content"), (str, list)):
            return refused(f"messages.{place}.content: Field required, a string or a list of blocks.")
    return None


@BOOK.rule(f"{DOC} (conversation rules)")
def user_first(c: Context) -> Refusal | None:
    """The first message is the user's."""
    if c.body["messages"][0]["role"] != "user":
        return refused("messages.0: the first message must have the role user.")
    return None


# ---------------------------------------------------------------- parameters


@BOOK.rule(f"{DOC} (what changed)")
def no_sampling_parameters(c: Context) -> Refusal | None:
    """`temperature`, `top_p` and `top_k` are refused from version 2026-10-21 on, and by models from 4.7 on."""
    for name in ("temperature", "top_p", "top_k"):
        if name in c.body and (c.headers.get("anthropic-version") != "2023-06-01" or c.able.sampling is False):
            return refused(f"{name}: Extra inputs are not permitted.")
    return None


@BOOK.rule(f"{DOC} (thinking)")
def thinking_fits_the_model(c: Context) -> Refusal | None:
    """A thinking budget is for models up to 4.6, `adaptive` from 4.6 on; the newest models cannot be told not to think."""
    thinking = as_dict(c.body.get("thinking"))
    kind = thinking.get("type")
    if kind == "disabled" and c.able.can_disable_thinking is False:
        return refused(f"thinking.type: {c.able.family} always thinks; disabled is not supported.")
    if kind == "enabled" and c.able.thinking == "adaptive" and c.able.sampling is not True:
        return refused(f"thinking.type: {c.able.family} takes adaptive, not enabled with a budget.")
    if kind == "adaptive" and c.able.thinking == "budget":
        return refused(f"thinking.type: {c.able.family} takes enabled with budget_tokens, not adaptive.")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or budget < 1024 or budget >= c.body["max_tokens"]:
            return refused("thinking.budget_tokens: at least 1024, and less than max_tokens.")
    return None


@BOOK.rule(f"{DOC} (tools)")
def tools_well_formed(c: Context) -> Refusal | None:
    """A client tool has a `name` and an object as `input_schema` (not `parameters`); names are unique."""
    names: list[str] = []
    for place, tool in enumerate(as_list(c.body.get("tools"))):
        tool = as_dict(tool)
        if not as_text(tool.get("name")):
            return refused(f"tools.{place}.name: Field required.")
        typed = as_text(tool.get("type"))
        if typed in ("", "custom") and as_dict(tool.get("input_schema")).get("type") != "object":
            hint = " (parameters is the other vendors' word)" if "parameters" in tool else ""
            return refused(f"tools.{place}.input_schema: Field required, a schema of type object{hint}.")
        names.append(tool["name"])
    if len(set(names)) != len(names):
        return refused("tools: tool names must be unique.")
    return None


@BOOK.rule(f"{DOC} (tools)")
def forced_choice_allowed(c: Context) -> Refusal | None:
    """The newest models, and manual thinking, refuse a forced `tool_choice` (any or tool)."""
    choice = as_dict(c.body.get("tool_choice"))
    if choice.get("type") not in ("any", "tool"):
        return None
    if c.able.forced_tool_choice is False or as_dict(c.body.get("thinking")).get("type") == "enabled":
        return refused(f"tool_choice: type {choice['type']} is not supported here; use auto or none.")
    names = [as_dict(tool).get("name") for tool in as_list(c.body.get("tools"))]
    if choice["type"] == "tool" and choice.get("name") not in names:
        return refused(f"tool_choice.name: {choice.get('name')} is not one of the tools.")
    return None


# ---------------------------------------------------------------- content blocks


def blocks(message: JSON) -> list[JSON]:
    """A message's blocks; a string is one text block."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else [as_dict(block) for block in content]


def _all_blocks(c: Context) -> Iterator[tuple[str, str, JSON]]:
    for place, message in enumerate(c.body["messages"]):
        for number, block in enumerate(blocks(message)):
            yield f"messages.{place}.content.{number}", message["role"], block


@BOOK.rule(f"{DOC} (content blocks)")
def no_empty_text(c: Context) -> Refusal | None:
    """A text block must not be empty or blank, not even one that the API itself returned."""
    for where, _, block in _all_blocks(c):
        if block.get("type") == "text" and not as_text(block.get("text")).strip():
            return refused(f"{where}.text: text content blocks must be non-empty.")
    return None


@BOOK.rule(f"{DOC} (content blocks)")
def blocks_well_formed(c: Context) -> Refusal | None:
    """A block has its type's fields: `tool_use` id, name, an input object; `thinking` a signature; an image its source."""
    needed: dict[str, tuple[str, ...]] = {
        "tool_use": ("id", "name", "input"),
        "tool_result": ("tool_use_id",),
        "thinking": ("thinking", "signature"),
        "redacted_thinking": ("data",),
        "image": ("source",),
    }
    for where, role, block in _all_blocks(c):
        for name in needed.get(as_text(block.get("type")), ()):
            if name not in block:
                return refused(f"{where}.{name}: Field required.")
        if block.get("type") == "tool_use" and not isinstance(block["input"], dict):
            return refused(f"{where}.input: must be an object (a JSON text is OpenAI's form).")
        wrong = {"tool_use": "user", "thinking": "user", "tool_result": "assistant"}.get(as_text(block.get("type")))
        if wrong == role:
            return refused(f"{where}: a {block['type']} block does not belong into a message of the {role}.")
    return None


@BOOK.rule(f"{DOC} (content blocks)")
def content_not_empty(c: Context) -> Refusal | None:
    """Every message has content, except an assistant message at the very end."""
    for place, message in enumerate(c.body["messages"]):
        last = place == len(c.body["messages"]) - 1
        if not message["content"] and not (last and message["role"] == "assistant"):
            return refused(f"messages.{place}: all messages must have non-empty content.")
    return None


# ---------------------------------------------------------------- tool results


def turns(messages: list[JSON]) -> list[tuple[str, list[JSON]]]:
    """(role, blocks) with neighbours of the same role merged, as the API reads them."""
    merged: list[tuple[str, list[JSON]]] = []
    for message in messages:
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks(message))
        else:
            merged.append((message["role"], blocks(message)))
    return merged


@BOOK.rule(f"{DOC} (tool results)")
def every_call_answered(c: Context) -> Refusal | None:
    """Every `tool_use` of an assistant turn has its `tool_result` in the very next user message."""
    merged = turns(c.body["messages"])
    for place, (role, content) in enumerate(merged):
        ids = [block["id"] for block in content if role == "assistant" and block.get("type") == "tool_use"]
        if not ids:
            continue
        answers = merged[place + 1][1] if place + 1 < len(merged) else []
        answered = [block.get("tool_use_id") for block in answers if block.get("type") == "tool_result"]
        missing = [call_id for call_id in ids if call_id not in answered]
        if missing:
            return refused(f"tool_use ids without tool_result blocks immediately after: {', '.join(missing)}.")
    return None


@BOOK.rule(f"{DOC} (tool results)")
def every_result_has_its_call(c: Context) -> Refusal | None:
    """A `tool_result` answers a `tool_use` of the assistant turn right before it, once; server tools are not answered."""
    merged = turns(c.body["messages"])
    for place, (_, content) in enumerate(merged):
        results = [as_text(block.get("tool_use_id")) for block in content if block.get("type") == "tool_result"]
        before = merged[place - 1][1] if place else []
        made = [block.get("id") for block in before if block.get("type") == "tool_use"]
        for result in results:
            if result not in made:
                return refused(f"unexpected tool_use_id in a tool_result: {result} was not called in the turn before.")
        if len(set(results)) != len(results):
            return refused("a tool_use has more than one tool_result.")
    return None


@BOOK.rule(f"{DOC} (tool results)")
def results_first(c: Context) -> Refusal | None:
    """In a user message the `tool_result` blocks stand before everything else."""
    for place, message in enumerate(c.body["messages"]):
        other = False
        for block in blocks(message):
            if block.get("type") == "tool_result" and other:
                return refused(f"messages.{place}: tool_result blocks must come first in the message.")
            other = other or block.get("type") != "tool_result"
    return None


# ---------------------------------------------------------------- thinking


def before_block(c_body: JSON, place: int, number: int) -> Any:
    """What stands before a block, in the form over which thinking is signed: system, tools, and all earlier blocks."""
    earlier = [[message["role"], [_bare(block) for block in blocks(message)]] for message in c_body["messages"][:place]]
    tools = [as_dict(tool).get("name") for tool in as_list(c_body.get("tools"))]
    system = c_body.get("system") or ""
    text = system if isinstance(system, str) else "".join(as_text(as_dict(block).get("text")) for block in system)
    return [text, tools, earlier, number]


def _bare(block: JSON) -> JSON:
    """A block without its cache mark and without nulls: neither changes what the model reads."""
    return {key: value for key, value in block.items() if key != "cache_control" and value is not None}


def signed_content(block: JSON) -> str:
    """What of a thinking block is signed."""
    return as_text(block.get("thinking")) or as_text(block.get("data"))


@BOOK.rule(f"{DOC} (thinking and signatures)")
def thinking_unchanged(c: Context) -> Refusal | None:
    """A thinking block's signature is the one that the service gave to this very text."""
    for where, _, block in _all_blocks(c):
        if block.get("type") == "thinking":
            verdict = check(as_text(block.get("signature")), THINKING, signed_content(block))
            if verdict in (Verdict.FOREIGN, Verdict.CHANGED):
                return refused(f"{where}: Invalid signature in thinking block.")
    return None


@BOOK.rule(f"{DOC} (thinking and signatures)")
def thinking_kept_in_tool_turn(c: Context) -> Refusal | None:
    """While a tool turn runs, an assistant message that was thought about starts with its thinking block."""
    merged = turns(c.body["messages"])
    if not _thinks(c) or len(merged) < 2 or merged[-1][0] != "user":
        return None
    if not any(block.get("type") == "tool_result" for block in merged[-1][1]):
        return None
    content = merged[-2][1]
    if not any(was_thought_about(as_text(block.get("id"))) for block in content):
        return None
    if content[0].get("type") not in ("thinking", "redacted_thinking"):
        return refused("Expected thinking or redacted_thinking at the start of the assistant turn, but found "
                       f"{content[0].get('type')}.")  # fmt: skip
    return None


def was_thought_about(call_id: str) -> bool:
    """Whether a call's id says that its turn began with thinking; ids from elsewhere say nothing."""
    return call_id.startswith("toolu_") and call_id.endswith("t")


@BOOK.rule(f"{DOC} (thinking and signatures)")
def thinking_not_moved(c: Context) -> Refusal | None:
    """On models that bind thinking, nothing before a thinking block may change: not the system prompt, not the tools."""
    if c.able.forced_tool_choice is not False:  # the generation that binds is the one that refuses a forced choice
        return None
    for place, message in enumerate(c.body["messages"]):
        for number, block in enumerate(blocks(message)):
            if block.get("type") != "thinking":
                continue
            before = before_block(c.body, place, number)
            if check(as_text(block.get("signature")), THINKING, signed_content(block), before) is Verdict.MOVED:
                return refused("The block is bound to a different conversation: what stands before it has changed.")
    return None


def _thinks(c: Context) -> bool:
    """Whether this request has thinking on: asked for, or the model's default."""
    kind = as_dict(c.body.get("thinking")).get("type")
    return kind in ("enabled", "adaptive") or (kind is None and c.able.can_disable_thinking is False)


# ---------------------------------------------------------------- the last message


@BOOK.rule(f"{DOC} (conversation rules)")
def no_prefill_on_new_models(c: Context) -> Refusal | None:
    """From 4.6 on the conversation must end with a user message, unless it ends with a paused turn."""
    last = c.body["messages"][-1]
    if last["role"] != "assistant":
        return None
    found = blocks(last)
    if any(block.get("type") == "server_tool_use" for block in found):
        return None
    if c.able.prefill is False:
        return refused(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    if (
        found
        and found[-1].get("type") == "text"
        and as_text(found[-1].get("text")) != as_text(found[-1].get("text")).rstrip()
    ):
        return refused("The final assistant content cannot end with trailing whitespace.")
    return None
