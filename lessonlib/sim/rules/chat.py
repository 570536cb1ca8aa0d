"""What Chat Completions refuses, beyond what openai.py has for both APIs. docs/wire/openai-chat.md

Other makers' models (deepseek-..., kimi-...) are taken as well. For them unknown parameters pass: each service has its own.
"""

from __future__ import annotations

from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.rules.openai import (
    BOOK,
    CHAT,
    CHAT_DOC,
    COMMON_FIELDS,
    EFFORTS,
    VERBOSITY,
    format_problem,
    missing,
    refused,
)
from lessonlib.sim.rules.responses import LIMITS
from lessonlib.sim.shapes import By, shown, words
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

# ---------------------------------------------------------------- shapes

PART: JSON = {"type": str, "text": str, "refusal": str, "image_url": {"url": str, "detail": str}, "input_audio": dict,
              "file": dict}  # fmt: skip
CALL = By("type", {
    "custom": {"id": str, "type": str, "custom": {"name": str, "input": str}},
}, other={"id": str, "type": str, "function": {"name": str, "arguments": str}})  # fmt: skip
ROLES = ("developer", "system", "user", "assistant", "tool", "function")
MESSAGE: JSON = {"role": words(*ROLES), "content": (str, [PART]), "refusal": str, "name": str, "tool_call_id": str,
                 "tool_calls": [CALL], "reasoning_content": str}  # fmt: skip
_FUNCTION: JSON = {"name": str, "description": str, "parameters": dict, "strict": bool}
TOOL: JSON = {"type": str, "function": _FUNCTION, "custom": {"name": str, "description": str, "format": dict}}
FORMAT = By("type", {
    "json_schema": {"json_schema": {"name": str, "schema": dict, "strict": bool, "description": str}},
}, other={"type": words("text", "json_schema", "json_object")}, required=True)  # fmt: skip
CHOICE = By("type", {
    "function": {"function": {"name": str}}, "custom": {"custom": {"name": str}},
    "allowed_tools": {"allowed_tools": {"mode": words("auto", "required"), "tools": [dict]}},
}, other={"type": words("function", "custom", "allowed_tools")}, required=True)  # fmt: skip

SHAPE: JSON = {
    **COMMON_FIELDS,
    "audio": dict,
    "frequency_penalty": float,
    "function_call": object,
    "functions": [dict],
    "logit_bias": dict,
    "logprobs": bool,
    "max_completion_tokens": int,
    "max_tokens": int,
    "messages": [MESSAGE],
    "modalities": [words("text", "audio")],
    "n": int,
    "prediction": dict,
    "presence_penalty": float,
    "reasoning_effort": EFFORTS,
    "response_format": FORMAT,
    "seed": int,
    "service_tier": words("auto", "default", "flex", "scale", "priority", "fast"),
    "stop": (str, [str]),
    "tool_choice": (words("none", "auto", "required"), CHOICE),
    "tools": [TOOL],
    "verbosity": VERBOSITY,
    "web_search_options": dict,
}  # fmt: skip

OTHER_NAMES = {
    "input": "messages",
    "max_output_tokens": "max_completion_tokens",
    "text": "response_format",
    "instructions": "a message of role developer",
    "system": "a message of role developer",
    "reasoning": "reasoning_effort",
    "stop_sequences": "stop",
}


def messages(c: Context) -> list[JSON]:
    """The messages of the request."""
    return [as_dict(message) for message in as_list(c.body.get("messages"))]


# ---------------------------------------------------------------- parameters


@BOOK.rule(f"{CHAT_DOC} 1; the parameters of the package openai", CHAT)
def chat_parameters_known(c: Context) -> Refusal | None:
    """OpenAI's own models refuse an unknown parameter; for the newer API's names the message says the older one."""
    if c.able.provider != "openai":
        return None
    for name in c.body:
        if name not in SHAPE:
            hint = f" On this API it is {OTHER_NAMES[name]}." if name in OTHER_NAMES else ""
            return refused(f"Unknown parameter: '{shown(name)}'.{hint}", "unknown_parameter", name)
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT)
def chat_messages_present(c: Context) -> Refusal | None:
    """`messages` is a list with at least one message, each with a role."""
    found = messages(c)
    if not found:
        hint = " ('input' belongs to the Responses API)" if "input" in c.body else ""
        return missing("messages", hint)
    for place, message in enumerate(found):
        if message.get("role") is None:
            return missing(f"messages[{place}].role")
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT)
def chat_cap_has_its_name(c: Context) -> Refusal | None:
    """OpenAI's models that reason refuse `max_tokens`; the cap is `max_completion_tokens`."""
    reasons = c.able.provider == "openai" and c.able.thinking not in (None, "none")
    if c.body.get("max_tokens") is not None and reasons:
        text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        return refused(text, "unsupported_parameter", "max_tokens")
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT)
def chat_stream_options_with_stream(c: Context) -> Refusal | None:
    """`stream_options` is only allowed with `stream: true`."""
    if c.body.get("stream_options") is not None and c.body.get("stream") is not True:
        return refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.", None, "stream_options")
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT)
def chat_at_most_four_stops(c: Context) -> Refusal | None:
    """`stop` takes at most four sequences."""
    if len(as_list(c.body.get("stop"))) > 4:
        return refused("Invalid 'stop': array too long. Expected at most 4 elements.", "array_above_max_length", "stop")
    return None


@BOOK.rule(f"{CHAT_DOC} 2; the description of n in the API reference", CHAT)
def chat_choices_in_range(c: Context) -> Refusal | None:
    """`n`, the number of choices, is 1 to 128."""
    n = c.body.get("n")
    if n is not None and not 1 <= n <= 128:
        code = "integer_below_min_value" if n < 1 else "integer_above_max_value"
        return refused(f"Invalid 'n': expected 1 to 128, got {n}.", code, "n")
    return None


@BOOK.rule(f"{CHAT_DOC} 1; openai/swarm#30", CHAT)
def chat_parallel_needs_tools(c: Context) -> Refusal | None:
    """`parallel_tool_calls` is only allowed with `tools`."""
    if c.body.get("parallel_tool_calls") is not None and not c.body.get("tools"):
        text = "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified."
        return refused(text, None, "parallel_tool_calls")
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT)
def chat_format_nested(c: Context) -> Refusal | None:
    """`response_format` of type json_schema has name and schema nested under `json_schema`."""
    format_ = as_dict(c.body.get("response_format"))
    if format_.get("type") == "json_schema":
        where = "response_format.json_schema"
        if not isinstance(format_.get("json_schema"), dict):
            return missing(where)
        return format_problem(format_["json_schema"], where)
    return None


# ---------------------------------------------------------------- messages

OWNERS = {"tool_calls": "assistant", "refusal": "assistant", "tool_call_id": "tool"}


@BOOK.rule(f"{CHAT_DOC} 1; the types of the package openai", CHAT)
def chat_fields_fit_the_role(c: Context) -> Refusal | None:
    """`tool_calls` and `refusal` are the assistant's, `tool_call_id` is the tool's."""
    for place, message in enumerate(messages(c)):
        for name, owner in OWNERS.items():
            if message.get(name) is not None and message["role"] != owner:
                where = f"messages[{place}].{name}"
                return refused(f"'{where}' is only allowed with role '{owner}'.", "unknown_parameter", where)
    return None


PARTS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}


@BOOK.rule(f"{CHAT_DOC} 1; docker/docker-agent#63", CHAT)
def chat_content_present(c: Context) -> Refusal | None:
    """A message has content; only an assistant's may be null, if it calls tools or refuses."""
    for place, message in enumerate(messages(c)):
        called = message["role"] == "assistant" and (message.get("tool_calls") or message.get("refusal"))
        called = called or message.get("function_call") or message.get("audio")
        if message.get("content") is None and not called:
            text = "Invalid value for 'content': expected a string, got null."
            return refused(text, None, f"messages.[{place}].content")
    return None


@BOOK.rule(f"{CHAT_DOC} 1; the types of the package openai", CHAT)
def chat_content_fits_the_role(c: Context) -> Refusal | None:
    """A list as content holds parts of the kinds that the role may send: pictures are the user's alone."""
    for place, message in enumerate(messages(c)):
        allowed = PARTS.get(message["role"], ("text",))
        for number, part in enumerate(as_list(message.get("content"))):
            kind = as_text(as_dict(part).get("type"))
            where = f"messages[{place}].content[{number}]"
            if not kind:
                return missing(f"{where}.type")
            if kind not in allowed:
                known = ", ".join(f"'{word}'" for word in allowed)
                return refused(f"Invalid value: '{shown(kind)}'. Supported values are: {known}.", "invalid_value", where)
            if as_dict(part).get(kind) is None:
                return missing(f"{where}.{kind}")
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT)
def chat_calls_well_formed(c: Context) -> Refusal | None:
    """A call in an assistant message has id, type and `function` with name and `arguments` as a JSON text."""
    for place, message in enumerate(messages(c)):
        for number, call in enumerate(as_list(message.get("tool_calls"))):
            where = f"messages[{place}].tool_calls[{number}]"
            kind = shown(as_text(call.get("type")))
            text = "input" if kind == "custom" else "arguments"
            inner = as_dict(call.get(kind))
            for name, value in (("id", call.get("id")), ("type", kind), (f"{kind}.name", inner.get("name"))):
                if not value:
                    return missing(f"{where}.{name}")
            if inner.get(text) is None:
                return missing(f"{where}.{kind}.{text}")
    return None


@BOOK.rule(f"{CHAT_DOC} 1; openai-python#2061", CHAT)
def chat_calls_not_an_empty_list(c: Context) -> Refusal | None:
    """`tool_calls` is left out where there is no call: an empty list is refused."""
    for place, message in enumerate(messages(c)):
        if message.get("tool_calls") == []:
            where = f"messages[{place}].tool_calls"
            text = (
                f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
            )
            return refused(text, "empty_array", where)
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT)
def chat_every_call_answered(c: Context) -> Refusal | None:
    """After an assistant message with `tool_calls` come its tool messages, one for each call, before anything else."""
    waiting: list[str] = []
    for message in [*messages(c), {"role": "end"}]:
        if message["role"] == "tool":
            waiting = [call_id for call_id in waiting if call_id != message.get("tool_call_id")]
        elif waiting:
            text = "An assistant message with 'tool_calls' must be followed by tool messages for each 'tool_call_id'."
            return refused(f"{text} Missing: {', '.join(shown(one) for one in waiting)}.", None, "messages")
        else:
            waiting = [as_text(call.get("id")) for call in as_list(message.get("tool_calls"))]
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT)
def chat_tool_message_has_its_call(c: Context) -> Refusal | None:
    """A message of role `tool` answers a call of the assistant message before it."""
    made: list[str] = []
    for place, message in enumerate(messages(c)):
        if message["role"] != "tool":
            made = [as_text(call.get("id")) for call in as_list(message.get("tool_calls"))]
        elif message.get("tool_call_id") not in made:
            text = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            return refused(text, None, f"messages[{place}].role")
    return None


@BOOK.rule(f"{CHAT_DOC} 1", CHAT, doubt="the sources say that each call has its message, not that a second one is refused")
def chat_calls_answered_once(c: Context) -> Refusal | None:
    """A call has one message of role `tool`, and not a second one."""
    answered: set[str] = set()
    for place, message in enumerate(messages(c)):
        if message["role"] != "tool":
            answered = set()
        elif message["tool_call_id"] in answered:
            text = f"The call {shown(message['tool_call_id'])} has more than one message with role 'tool'."
            return refused(text, None, f"messages[{place}].tool_call_id")
        else:
            answered.add(message["tool_call_id"])
    return None


# ---------------------------------------------------------------- other makers' models

RETURNS_REASONING = ("deepseek", "kimi")


def hides_reasoning(model: str) -> bool:
    """Whether reasoning does not appear on this API: so it is for OpenAI's own models."""
    return model.lower().rsplit("/", 1)[-1].startswith(("gpt", "o1", "o3", "o4", "chatgpt"))


def chat_thinks(c: Context) -> bool:
    """Whether the model reasons: by its capabilities, and by default where they are not known but its maker is."""
    if c.body.get("reasoning_effort") in ("none", "minimal") or as_dict(c.body.get("thinking")).get("type") == "disabled":
        return False
    return c.able.thinking not in (None, "none") or c.model.lower().startswith(RETURNS_REASONING)


@BOOK.rule(f"{CHAT_DOC} 3.2", CHAT)
def chat_reasoning_comes_back(c: Context) -> Refusal | None:
    """DeepSeek and Kimi models want `reasoning_content` back on every assistant message with tool calls, be it empty."""
    if not c.model.lower().startswith(RETURNS_REASONING) or not chat_thinks(c):
        return None
    for place, message in enumerate(messages(c)):
        if message["role"] == "assistant" and message.get("tool_calls") and "reasoning_content" not in message:
            text = f"Missing `reasoning_content` field in the assistant message at messages[{place}]."
            return refused(text, None, "messages")
    return None


@BOOK.rule(f"{CHAT_DOC} 3.1; octopus#251", CHAT)
def chat_kimi_chooses_itself(c: Context) -> Refusal | None:
    """Kimi models that think refuse a forced tool choice, `required` as well as a named tool."""
    choice = c.body.get("tool_choice")
    forced = choice == "required" or isinstance(choice, dict)
    if forced and c.model.lower().startswith("kimi") and chat_thinks(c):
        return refused("tool_choice 'required' and named tools are incompatible with thinking.", None, "tool_choice")
    return None


# ---------------------------------------------------------------- what this simulator does not do

NOT_PLAYED = ("logprobs", "top_logprobs", "audio", "prediction", "functions", "function_call", "web_search_options")


@BOOK.rule(LIMITS, CHAT)
def chat_extras_are_not_simulated(c: Context) -> Refusal | None:
    """The simulator has no log probabilities, audio, predictions, functions of 2023 or searches here: it says so, instead of
    leaving them out."""
    asked = [name for name in NOT_PLAYED if c.body.get(name) not in (None, False)]
    asked += ["modalities"] if "audio" in as_list(c.body.get("modalities")) else []
    return refused(f"The simulator does not play '{asked[0]}'.", "not_simulated", asked[0]) if asked else None
