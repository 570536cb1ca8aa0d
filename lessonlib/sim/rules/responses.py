"""What the Responses API refuses, beyond what openai.py has for both APIs. docs/wire/openai-responses.md"""

from __future__ import annotations

from collections import Counter

from lessonlib.sim.refusal import STORED, Context, Refusal
from lessonlib.sim.rules.openai import (
    BOOK,
    COMMON_FIELDS,
    DOC,
    EFFORTS,
    RESPONSES,
    VERBOSITY,
    format_problem,
    missing,
    refused,
)
from lessonlib.sim.shapes import By, Closed, brackets, shown, words
from lessonlib.sim.signing import Verdict, check
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

REASONING = "openai reasoning"
"""The kind under which encrypted reasoning is signed."""
BLOB = "gAAAA"
"""How encrypted content begins."""

# ---------------------------------------------------------------- shapes

_TEXT = Closed({"type": str, "text": str, "prompt_cache_breakpoint": dict})
_IMAGE = Closed({"type": str, "detail": words("low", "high", "auto", "original"), "file_id": str, "image_url": str,
                 "prompt_cache_breakpoint": dict})  # fmt: skip
_FILE = Closed({"type": str, "detail": str, "file_data": str, "file_id": str, "file_url": str, "filename": str,
                "prompt_cache_breakpoint": dict})  # fmt: skip
PART = By("type", {
    "input_text": _TEXT, "input_image": _IMAGE, "input_file": _FILE,
    "output_text": Closed({"type": str, "text": str, "annotations": [dict], "logprobs": [dict]}),
    "refusal": Closed({"type": str, "refusal": str}),
})  # fmt: skip
_STATUS = words("in_progress", "completed", "incomplete")
_MESSAGE: JSON = {"type": str, "id": str, "role": words("user", "assistant", "system", "developer"),
                  "content": (str, [PART]), "status": _STATUS, "phase": words("commentary", "final_answer")}  # fmt: skip
_CALL: JSON = {"type": str, "id": str, "call_id": str, "name": str, "namespace": str, "caller": dict, "async": bool}
_OUTPUT: JSON = {"type": str, "id": str, "call_id": str, "output": (str, [PART]), "name": str, "namespace": str,
                 "caller": dict, "status": _STATUS}  # fmt: skip
ITEM = By("type", {
    "message": Closed(_MESSAGE),
    "function_call": Closed({**_CALL, "arguments": str, "status": _STATUS}),
    "custom_tool_call": Closed({**_CALL, "input": str}),
    "function_call_output": Closed(_OUTPUT),
    "custom_tool_call_output": Closed(_OUTPUT),
    "reasoning": Closed({"type": str, "id": str, "summary": [{"type": str, "text": str}],
                         "content": [{"type": str, "text": str}], "encrypted_content": str, "status": str}),
    "item_reference": Closed({"type": str, "id": str}),
}, other={"type": str, "id": str, "call_id": str, "role": _MESSAGE["role"], "content": (str, [PART])})  # fmt: skip
TOOL: JSON = {"type": str, "name": str, "description": str, "parameters": dict, "strict": bool, "format": dict}
FORMAT = By("type", {
    "json_schema": Closed({"type": str, "name": str, "schema": dict, "strict": bool, "description": str}),
}, other=Closed({"type": words("text", "json_schema", "json_object")}), required=True)  # fmt: skip
CHOICE = By("type", {
    "function": Closed({"type": str, "name": str}),
    "custom": Closed({"type": str, "name": str}),
    "allowed_tools": Closed({"type": str, "mode": words("auto", "required"), "tools": [dict]}),
    "mcp": Closed({"type": str, "server_label": str, "name": str}),
}, other=Closed({"type": words(
    "function", "custom", "allowed_tools", "mcp", "apply_patch", "code_interpreter", "computer", "computer_use",
    "computer_use_preview", "file_search", "image_generation", "programmatic_tool_calling", "shell", "web_search",
    "web_search_preview", "web_search_preview_2025_03_11")}), required=True)  # fmt: skip

INCLUDES = words("file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
                 "message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
                 "reasoning.encrypted_content", "message.output_text.logprobs")  # fmt: skip

SHAPE = Closed({
    **COMMON_FIELDS,
    "access_programs": dict,
    "background": bool,
    "background_options": dict,
    "context_management": [dict],
    "conversation": (str, {"id": str}),
    "image": dict,
    "include": [INCLUDES],
    "input": (str, [ITEM]),
    "instructions": str,
    "max_output_tokens": int,
    "max_tool_calls": int,
    "previous_response_id": str,
    "prompt": dict,
    "reasoning": Closed({"effort": EFFORTS, "summary": words("auto", "concise", "detailed"), "generate_summary": str,
                         "context": words("auto", "current_turn", "all_turns"), "mode": str}),
    "service_tier": words("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
    "text": Closed({"format": FORMAT, "verbosity": VERBOSITY}),
    "tool_choice": (words("none", "auto", "required"), CHOICE),
    "tools": [TOOL],
    "truncation": words("auto", "disabled"),
})  # fmt: skip

OTHER_NAMES = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "system": "instructions",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "functions": "tools",
}

# ---------------------------------------------------------------- reading the input

CALLS = ("function_call", "custom_tool_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")


def items(body: JSON) -> list[JSON]:
    """The input as items; a text is one user message."""
    value = body.get("input")
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    return [as_dict(item) for item in as_list(value)]


def item_type(item: JSON) -> str:
    """The item's type; a plain message may leave it out."""
    return as_text(item.get("type")) or ("message" if "role" in item else "")


def stored_items(c: Context) -> list[JSON]:
    """The items of the stored conversation that `previous_response_id` continues."""
    stored = c.sim.kept(RESPONSES, c.body.get("previous_response_id"))
    return stored.history if stored is not None else []


def _stores(c: Context) -> bool:
    return c.body.get("store") is not False


# ---------------------------------------------------------------- parameters


@BOOK.rule(f"{DOC} R2; R5 for items that are sent back", RESPONSES)
def parameters_known(c: Context) -> Refusal | None:
    """An unknown parameter is refused, in the request and in its items; for the older API's names the message says the new
    one."""
    problem = c.problem("field")
    if problem is None:
        return None
    where = brackets(problem.path)
    hint = f" On this API it is '{OTHER_NAMES[where]}'." if where in OTHER_NAMES else ""
    return refused(f"Unknown parameter: '{shown(where)}'.{hint}", "unknown_parameter", where)


@BOOK.rule(f"{DOC} R2", RESPONSES)
def input_present(c: Context) -> Refusal | None:
    """`input` is a text or a list of items, and not empty."""
    if not c.body.get("input"):
        return missing("input")
    return None


@BOOK.rule(f"{DOC} R2; pydantic-ai#3326", RESPONSES)
def encrypted_content_only_from_reasoning_models(c: Context) -> Refusal | None:
    """`include: reasoning.encrypted_content` is refused for a model that does not reason."""
    if "reasoning.encrypted_content" in as_list(c.body.get("include")) and c.able.thinking == "none":
        return refused("Encrypted content is not supported with this model.", None, "include")
    return None


@BOOK.rule(f"{DOC} R2", RESPONSES)
def output_format_well_formed(c: Context) -> Refusal | None:
    """`text.format` of type json_schema has a name and a schema beside its type; `strict` wants a strict schema."""
    format_ = c.get("text", "format")
    if isinstance(format_, dict) and format_.get("type") == "json_schema":
        return format_problem(format_, "text.format")
    return None


@BOOK.rule(f"{DOC} R9", RESPONSES)
def one_kind_of_state(c: Context) -> Refusal | None:
    """`previous_response_id` and `conversation` exclude each other."""
    if c.body.get("previous_response_id") is not None and c.body.get("conversation") is not None:
        text = "'previous_response_id' and 'conversation' are mutually exclusive."
        return refused(text, "mutually_exclusive_parameters", "conversation")
    return None


@BOOK.rule(f"{DOC} R9", RESPONSES)
def previous_response_stored(c: Context) -> Refusal | None:
    """`previous_response_id` names a response that was stored; with `store: false` nothing is."""
    previous = c.body.get("previous_response_id")
    if previous is not None and c.sim.kept(RESPONSES, previous) is None:
        text = f"Previous response with id '{shown(previous)}' not found."
        return refused(text, "previous_response_not_found", "previous_response_id")
    return None


@BOOK.rule(f"{DOC} R9", RESPONSES)
def background_is_stored(c: Context) -> Refusal | None:
    """`background: true` needs a stored response: a later request asks for it."""
    if c.body.get("background") is True and not _stores(c):
        return refused("'background' requires 'store' to be true.", None, "background")
    return None


# ---------------------------------------------------------------- items

NEEDED: dict[str, tuple[str, ...]] = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call_output": ("call_id", "output"),
    "reasoning": ("id", "summary"),
    "item_reference": ("id",),
}


@BOOK.rule(f"{DOC} R8", RESPONSES)
def items_well_formed(c: Context) -> Refusal | None:
    """Each item has its type's fields."""
    for place, item in enumerate(items(c.body)):
        kind = item_type(item)
        where = f"input[{place}]"
        if not kind:
            return missing(f"{where}.type")
        for name in NEEDED.get(kind, ()):
            if item.get(name) is None:
                return missing(f"{where}.{name}")
    return None


NULLABLE = ("encrypted_content", "caller", "phase")
"""Fields of what the model wrote that may be null on the way in."""


@BOOK.rule(
    f"{DOC} R5; litellm#13420, 1jehuang/jcode#1028",
    RESPONSES,
    doubt="some clients were refused for it, others send it unpunished; which models and accounts check it is not known",
)
def reasoning_without_status(c: Context) -> Refusal | None:
    """A reasoning item comes back without `status`: the service does not write one, a model_dump() adds it."""
    for place, item in enumerate(items(c.body)):
        if item_type(item) == "reasoning" and item.get("status") is not None:
            where = f"input[{place}].status"
            hint = "The service writes none on reasoning, so none comes back"
            return refused(f"Unknown parameter: '{where}'. {hint}.", "unknown_parameter", where)
    return None


@BOOK.rule(f"{DOC} R5; openai-python#3008, litellm#13420", RESPONSES)
def items_without_invented_fields(c: Context) -> Refusal | None:
    """What the model wrote comes back without nulls: a model_dump() adds them, the service neither wrote nor reads them."""
    for place, item in enumerate(items(c.body)):
        if item_type(item) not in (*CALLS, "reasoning") and item.get("role") != "assistant":
            continue
        places = [(f"input[{place}].{name}", name, value) for name, value in item.items()]
        for number, part in enumerate(as_list(item.get("content"))):
            places += [(f"input[{place}].content[{number}].{name}", name, value) for name, value in as_dict(part).items()]
        for where, name, value in places:
            if value is None and name not in NULLABLE:
                hint = "It is null: leave it out, as model_dump(exclude_none=True) does"
                return refused(f"Unknown parameter: '{shown(where)}'. {hint}.", "unknown_parameter", where)
    return None


PARTS = {
    "assistant": ("output_text", "refusal"),
    "": ("input_text", "input_image", "input_file"),
}
"""Content types by role; everyone but the assistant may send the second kind."""


@BOOK.rule(f"{DOC} R8; jeremychone/rust-genai#119", RESPONSES)
def content_fits_the_role(c: Context) -> Refusal | None:
    """A message of the assistant holds output_text and refusal, every other one input_text, input_image and input_file."""
    for place, item in enumerate(items(c.body)):
        content = item.get("content") if item_type(item) == "message" else item.get("output")
        role = "assistant" if item.get("role") == "assistant" else ""
        if item_type(item) not in ("message", "function_call_output", "custom_tool_call_output"):
            continue
        for number, part in enumerate(as_list(content)):
            kind = as_text(as_dict(part).get("type"))
            if kind not in PARTS[role]:
                allowed = ", ".join(f"'{word}'" for word in PARTS[role])
                where = f"input[{place}].{'content' if item_type(item) == 'message' else 'output'}[{number}]"
                return refused(f"Invalid value: '{shown(kind)}'. Supported values are: {allowed}.", "invalid_value", where)
    return None


PART_TEXTS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}


@BOOK.rule(f"{DOC} R8; the types of the package openai", RESPONSES)
def content_has_its_text(c: Context) -> Refusal | None:
    """A part of content that is a text has one: `text`, in a refusal `refusal`."""
    for place, item in enumerate(items(c.body)):
        for name in ("content", "output"):
            for number, part in enumerate(as_list(item.get(name))):
                needed = PART_TEXTS.get(as_text(as_dict(part).get("type")))
                if needed is not None and part.get(needed) is None:
                    return missing(f"input[{place}].{name}[{number}].{needed}")
    return None


# ---------------------------------------------------------------- reasoning that comes back


@BOOK.rule(f"{DOC} R5; openai-agents-python#919, vercel/ai#7543", RESPONSES)
def referenced_items_found(c: Context) -> Refusal | None:
    """Reasoning without its `encrypted_content`, or an `item_reference`, is looked up by id; without stored state it is not
    found (404)."""
    for item in items(c.body):
        if item_type(item) not in ("reasoning", "item_reference") or item.get("encrypted_content"):
            continue
        if _stores(c) and c.sim.item(item["id"]) is not None:
            continue
        hint = "" if _stores(c) else " Items are not persisted when `store` is set to false."
        return refused(f"Item with id '{shown(item['id'])}' not found.{hint}", None, "input", 404)
    return None


def verdict(item: JSON, model: str) -> Verdict:
    """What the encrypted content of a reasoning item says about it."""
    return check(as_text(item["encrypted_content"]).removeprefix(BLOB), REASONING, item["id"], None, model)


@BOOK.rule(f"{DOC} R5; inspect_ai#3978", RESPONSES)
def encrypted_content_genuine(c: Context) -> Refusal | None:
    """`encrypted_content` comes back unchanged and under its own id."""
    for item in items(c.body):
        if item_type(item) != "reasoning" or not item.get("encrypted_content"):
            continue
        found = verdict(item, c.able.family)
        if found is Verdict.FOREIGN:
            text = f"The encrypted content for item {shown(item['id'])} could not be verified."
            return refused(text, "invalid_encrypted_content", "input")
        if found is Verdict.CHANGED:
            text = f"item_id mismatch: the encrypted content does not belong to {shown(item['id'])}."
            return refused(text, "invalid_encrypted_content", "input")
    return None


def answer_key(item_id: str) -> str:
    """The part of a simulator's item id that tells which answer it was in."""
    return item_id.partition("_")[2].split("x", 1)[0]


def reasoned(item_id: str) -> bool:
    """Whether the id says that its answer began with reasoning (the simulator writes that into it)."""
    return item_id.endswith("r") and "x" in item_id


@BOOK.rule(f"{DOC} R5; openai-node#1567, vercel/ai#7099", RESPONSES)
def reasoning_followed_by_its_item(c: Context) -> Refusal | None:
    """A reasoning item stands before an item of its own answer, never alone and never with a message in between."""
    found = items(c.body)
    for place, item in enumerate(found):
        if item_type(item) != "reasoning":
            continue
        after = found[place + 1] if place + 1 < len(found) else {}
        kind = item_type(after)
        if not kind or (kind == "message" and after.get("role") != "assistant") or kind.endswith("_output"):
            text = f"Item '{shown(item['id'])}' of type 'reasoning' was provided without its required following item."
            return refused(text, None, "input")
    return None


@BOOK.rule(f"{DOC} R5; omnigent#5066, mastra#13418", RESPONSES)
def item_with_its_reasoning(c: Context) -> Refusal | None:
    """An item that keeps its server id needs the reasoning item that came before it; without ids nobody asks."""
    found = items(c.body)
    reasoning = [item for item in [*stored_items(c), *found] if item_type(item) in ("reasoning", "item_reference")]
    present = {answer_key(as_text(item.get("id"))) for item in reasoning}
    for item in found:
        item_id = as_text(item.get("id"))
        if item_type(item) not in ("function_call", "message", "custom_tool_call") or not reasoned(item_id):
            continue
        if answer_key(item_id) not in present:
            text = f"Item '{shown(item_id)}' of type '{item_type(item)}' was provided without its required 'reasoning' item."
            return refused(text, None, "input")
    return None


# ---------------------------------------------------------------- calls and outputs


def _conversation(c: Context) -> list[JSON]:
    """The stored items and the request's own, references resolved."""
    own = [c.sim.item(item["id"]) or item if item_type(item) == "item_reference" else item for item in items(c.body)]
    return [*stored_items(c), *own]


@BOOK.rule(f"{DOC} R5", RESPONSES)
def every_output_has_its_call(c: Context) -> Refusal | None:
    """An output comes after its call and is found by the call's `call_id` (call_...), not by the call item's own `id`
    (fc_...)."""
    calls: dict[str, str] = {}
    for item in _conversation(c):
        call_id = as_text(item.get("call_id"))
        if item_type(item) in CALLS:
            calls[call_id] = as_text(item.get("id"))
        elif item_type(item) in OUTPUTS and call_id not in calls:
            hint = " That is the item's id; a call is answered by its call_id." if call_id in calls.values() else ""
            text = f"No tool call found for function call output with call_id {shown(call_id)}.{hint}"
            return refused(text, None, "input")
    return None


@BOOK.rule(f"{DOC} R5", RESPONSES, doubt="the sources say that each call has its output, not that a second one is refused")
def one_output_for_each_call(c: Context) -> Refusal | None:
    """A call has one output, and not a second one."""
    outputs = Counter(as_text(item.get("call_id")) for item in _conversation(c) if item_type(item) in OUTPUTS)
    twice = next((call_id for call_id, number in outputs.items() if number > 1), None)
    return refused(f"Function call {shown(twice)} has more than one output.", None, "input") if twice is not None else None


@BOOK.rule(f"{DOC} R5", RESPONSES)
def every_call_has_its_output(c: Context) -> Refusal | None:
    """Every call in the input has its output in the input."""
    found = _conversation(c)
    outputs = Counter(as_text(item.get("call_id")) for item in found if item_type(item) in OUTPUTS)
    for item in found:
        if item_type(item) in CALLS and not outputs[as_text(item.get("call_id"))]:
            return refused(f"No tool output found for function call {shown(as_text(item.get('call_id')))}.", None, "input")
    return None


# ---------------------------------------------------------------- stored responses


@BOOK.rule(f"{DOC} R1", RESPONSES, on=STORED)
def response_is_stored(c: Context) -> Refusal | None:
    """A response that is asked for by its id was stored."""
    if c.sim.kept(RESPONSES, c.target) is None:
        return refused(f"Response with id '{shown(c.target)}' not found.", None, None, 404)
    return None


@BOOK.rule(f"{DOC} R1; Responses.cancel in the package openai", RESPONSES, on=frozenset({"cancel"}))
def only_background_is_cancelled(c: Context) -> Refusal | None:
    """Only a response that runs in the background can be cancelled."""
    stored = c.sim.kept(RESPONSES, c.target)
    if stored is not None and stored.answer.body.get("background") is not True:
        return refused("Only responses that were created with 'background' can be cancelled.")
    return None


# ---------------------------------------------------------------- what this simulator does not do

LIMITS = "docs/simulator.md 5"
NOT_PLAYED = ("conversation", "prompt", "context_management")


@BOOK.rule(LIMITS, RESPONSES)
def responses_extras_are_not_simulated(c: Context) -> Refusal | None:
    """The simulator keeps no conversations, prompt templates or compactions: it says so, instead of leaving them out."""
    for name in NOT_PLAYED:
        if c.body.get(name) is not None:
            return refused(f"The simulator does not play '{name}'.", "not_simulated", name)
    return None
