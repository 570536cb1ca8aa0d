"""Chat Completions: one message per turn, with everything that the model did as fields of that message.

    POST {base}/chat/completions        Authorization: Bearer        docs/wire/openai-chat.md

What is peculiar to it: it is the wire format that everybody else speaks too, each a little differently. So reading is
tolerant, on one code path, and what a *request* must do differently stands in a table (dialects.py). The message is the unit
that comes and goes: its parts are pieces of it, `Part.raw` is the part's own piece, and joining the pieces gives the message
back (section 2.1). A stream sends pieces of the message without start or end marks; calls are told apart by an index that
may be missing, repeated or wrong. A stream is complete once a finish reason or `[DONE]` has been seen, and the usage may
still follow. Nothing in it says that a tool failed, or that several results belong together.

Exceptions to raw replay, each a small function below: a call goes back without nulls, with the id that we made up if it
had none, and with `{}` for blank arguments; arguments that are no JSON object go back inside an object that says so; the
deprecated `function_call` goes back as a tool call; reasoning and unknown fields go back to the service that sent them
only, and when its row in the table says so.

What this file does not do: audio, log probabilities and predictions are kept but not understood; of several choices the
first is the answer and the others stay in `Response.raw`; calls written into the text are text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote, urlsplit

from lessonlib import capabilities
from lessonlib.errors import IncompleteStream, InvalidRequest, ProtocolError
from lessonlib.history import arrange, result_pieces
from lessonlib.schema import OPENAI_STRICT, adapt
from lessonlib.sse import DONE, ServerSentEvent
from lessonlib.types import (
    JSON,
    ArgumentsDelta,
    Done,
    Event,
    Image,
    Message,
    Opaque,
    Part,
    PartDone,
    Reasoning,
    ReasoningDelta,
    Request,
    Response,
    StopReason,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)  # fmt: skip
from lessonlib.wire.base import (
    NOTHING,
    ErrorDetails,
    Slot,
    StreamDecoder,
    Table,
    WireFormat,
    an_object,
    as_count,
    as_dict,
    as_list,
    as_place,
    as_text,
    compact,
    cut_call,
    error_object,
    first_env,
    fitting_name,
    function_call,
    is_daily_quota,
    listed,
    named_kind,
    no_text,
    retryable_status,
    rpc_retry_delay,
    said,
    word,
)  # fmt: skip
from lessonlib.wire.dialects import REASONING, Dialect, guess, named

NAME = "openai-chat"

_OWN_PARAMS = ("messages", "max_tokens", "max_completion_tokens", "response_format", "stream_options", "functions")
"""Fields that only requests of this wire format have: an error's `param` that starts with one tells it apart."""

STOP: Mapping[str, StopReason] = {
    "stop": StopReason.END,
    "eos": StopReason.END,
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "tool_use": StopReason.TOOL_USE,
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}
"""Section 4.3. The five words of the specification and what services put in their place."""

NO_REASON = frozenset({"", "null", "None"})
"""Finish reasons that are none: some services send them on every chunk."""

REASONING_TEXTS = ("reasoning_content", "reasoning", "reasoning_text")
REASONING_FIELDS = (*REASONING_TEXTS, "reasoning_details")
"""Where services put readable reasoning. One that sends two of them says the same thing twice, so the first one counts."""

KNOWN_FIELDS = frozenset({"role", "content", "refusal", "tool_calls", "function_call", "index", *REASONING_FIELDS})
"""The fields of a message that this file reads (`index` is what some servers put beside them). Others become opaque."""

DELTA_FIELDS = frozenset({"index", "delta", "message", "text"})
"""The fields of a choice that are read before the others."""

CACHED = ("prompt_cache_hit_tokens", "cached_tokens")
"""Where services put the cached part of the prompt that leave its details out (section 5)."""

OPEN_TAG, CLOSE_TAG = "<think>", "</think>"

END_MARKERS = ("[DONE]", "DONE")
"""The end of a stream where it comes as JSON text, or without its brackets."""

QUOTAS = frozenset({
    "insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded", "organization_usage_limit_exceeded", "billing_hard_limit_reached",
    "billing_not_active", "usage_not_included", "usage_limit_reached",
    "exceeded_current_quota_error", "quota_exceeded", "1113",  # Moonshot, GitHub Copilot, Z.AI
    "insufficient_balance_error", "insufficient_balance",  # MiniMax, gateways
})  # fmt: skip
"""Types and codes of a 429 that no waiting will lift."""

RETRYABLE_WORDS = frozenset({
    "rate_limit_exceeded", "rate_limit_error", "rate_limit_reached_error", "server_error", "internal_error",
    "internal_server_error", "server_is_overloaded", "overloaded_error", "service_unavailable",
    "service_unavailable_error", "slow_down", "timeout", "timeout_error",
})  # fmt: skip
"""Types and codes of an error inside a stream, where there is no status to go by, that a retry can help."""

SKIP_SIGNATURE: JSON = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Google's documented stand-in for the thought signature of a call that its models did not make."""


class OpenAIChat(WireFormat):
    """The Chat Completions API, and the services that speak it.

    dialect: the name of a row in `dialects.DIALECTS`, or a row of one's own; by default guessed from the base URL.
    api_version: Azure's `api-version` query. Without it the requests go to `/openai/v1`, which needs none.
    """

    name: ClassVar[str] = NAME
    provider: ClassVar[str] = "openai"
    key_variables: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    base_url_variables: ClassVar[tuple[str, ...]] = ("OPENAI_BASE_URL",)
    default_base_url: ClassVar[str] = "https://api.openai.com/v1"

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        dialect: str | Dialect | None = None,
        api_version: str | None = None,
    ) -> None:
        row = named(dialect) if isinstance(dialect, str) else dialect
        variables = self.base_url_variables if row is None else row.url_variables
        url = base_url or first_env(*variables) or (self.default_base_url if row is None else row.base_url)
        if not url:
            raise InvalidRequest(f"the dialect {row.name if row else ''!r} has no base URL of its own: base_url=...")
        self.dialect = row or guess(url)
        # an empty key, not None: the key of another service in the environment must not be sent to this one
        key = api_key if api_key is not None else first_env(*self.dialect.key_variables) or ""
        super().__init__(model, api_key=key, base_url=url, headers=headers)
        self.api_version = api_version

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, base_url={self.base_url!r}, dialect={self.dialect.name!r})"

    # ------------------------------------------------------------ encode

    def path(self, model: str, stream: bool) -> str:
        query = f"?api-version={quote(self.api_version)}" if self.api_version else ""
        prefix = ""
        if self.dialect.deployments and not urlsplit(self.base_url).path:
            prefix = f"/openai/deployments/{quote(model, safe='')}" if self.api_version else "/openai/v1"
        return f"{prefix}/chat/completions{query}"

    def auth(self) -> dict[str, str]:
        if self._key is None:
            return {}
        key = self._key.reveal()
        header = self.dialect.key_header
        return {header: f"Bearer {key}" if header == "authorization" else key}

    def body(self, request: Request, model: str, stream: bool) -> JSON:
        dialect = self.dialect
        messages = encode_messages(request.messages, dialect)
        if request.system:
            messages.insert(0, {"role": dialect.system_role, "content": request.system})
        if not messages and "messages" not in request.extra.get(NAME, {}):
            raise InvalidRequest("nothing to send: no message has any content")
        body: JSON = {"model": model, "messages": messages}
        body |= _encode_tools(request, dialect)
        body |= _encode_reasoning(request, dialect, capabilities.of(model))
        body |= _encode_schema(request, dialect)
        if request.max_tokens is not None:
            body[dialect.cap] = request.max_tokens
        if request.stop:
            body["stop"] = _checked_stop(request.stop, dialect)
        if dialect.store:
            body["store"] = False
        if stream:
            body["stream"] = True
            if dialect.stream_usage:
                body["stream_options"] = {"include_usage": True}
        return body

    # ------------------------------------------------------------ decode

    def decode(self, payload: Any) -> Response:
        error = find_error(payload)
        if error is not None:
            raise self.api_error(200, error)
        answer = as_dict(payload)
        if _answer_of(answer) is None:
            raise ProtocolError(f"not a Chat Completions answer: no choices in {compact(payload)[:120]}")
        return self.respond(answer, [placed.part for placed in self.read(answer)])

    def read(self, answer: JSON) -> list[Placed]:
        """The parts of an answer's first choice, each with its place, marked with the service that sent them."""
        choice = _answer_of(answer) or {}
        placed = decode_message(_message_of(choice), as_text(answer.get("id")), raw_stop=finish_reason(choice))
        mark = {"service": self.dialect.name}
        return [Placed(item.kind, item.number, item.part.model_copy(update=mark)) for item in placed]

    def respond(self, answer: JSON, parts: Sequence[Part]) -> Response:
        """The Response for a whole answer whose parts have been read already."""
        choice = _answer_of(answer) or {}
        raw_stop = finish_reason(choice)
        return Response(
            id=as_text(answer.get("id")),
            model=as_text(answer.get("model")),
            provider=self.dialect.name,
            wire=NAME,
            message=Message(role="assistant", parts=list(parts)),
            stop=decode_stop(raw_stop, parts, refused=bool(as_text(_message_of(choice).get("refusal")))),
            raw_stop=raw_stop,
            usage=decode_usage(find_usage(answer)),
            raw=answer,
        )

    def decoder(self) -> StreamDecoder:
        return ChatDecoder(self)

    @classmethod
    def recognises(cls, payload: Any) -> int:
        answer = as_dict(payload[0]) if isinstance(payload, list) and payload else as_dict(payload)
        if as_text(answer.get("object")).startswith("chat.completion"):
            return 2
        choices = answer.get("choices")
        if isinstance(choices, list) and answer.get("object") != "text_completion":
            return 2 if not choices or "delta" in as_dict(choices[0]) or "message" in as_dict(choices[0]) else 1
        if "type" in answer and answer.get("object") != "error":  # an event or an object of another wire format
            return 1 if "code" in answer and "message" in answer and "sequence_number" not in answer else 0
        if as_text(as_dict(answer.get("error")).get("param")).startswith(_OWN_PARAMS):
            return 2  # the Responses API has errors of the same form, but no such field in its requests
        is_error = any(key in answer for key in ("error", "detail")) or ("message" in answer and "code" in answer)
        return 1 if is_error or answer.get("object") == "error" else 0

    # ------------------------------------------------------------ errors

    def error_details(self, status: int, payload: Any) -> ErrorDetails:
        """Section 6. Over HTTP the status decides, unless the quota is spent; inside a stream the code does, which some
        services send as a number and mean as a status. A service that gives a code and no type gets it as both."""
        error = error_object(payload)
        kind, code = word(error.get("type")), word(error.get("code"))
        words = {kind, code}
        number = status if status != 200 else _status_in(error)
        retryable = retryable_status(number) if number else bool(words & RETRYABLE_WORDS)
        return ErrorDetails(
            message=_error_message(error),
            type=kind or code,
            code=code,
            retryable=retryable and not words & QUOTAS and not is_daily_quota(error),
            retry_after=rpc_retry_delay(error),
            request_id=word(as_dict(payload).get("request_id")),
        )


# ---------------------------------------------------------------- encode: one function per thing


def encode_messages(messages: Sequence[Message], dialect: Dialect) -> list[JSON]:
    """The `messages` list: one message per turn of the model, and one per tool result."""
    arranged = arrange(messages, NAME, merge=False, drop=lambda part: _is_foreign(part, dialect))
    encoded: list[JSON] = []
    ids: dict[str, str] = {}
    for message in _joined_calls(arranged):
        if message.role == "assistant":
            encoded += encode_assistant(message, dialect, ids)
            continue
        results = [_encode_result(result, dialect, ids) for result in message.tool_results]
        encoded += results
        rest = [*_pictures(message.tool_results), *_user_content(message)]
        if dialect.bridge and rest and encoded and encoded[-1]["role"] == "tool":
            encoded.append({"role": "assistant", "content": dialect.bridge})
        encoded += rest
    return _alternating(encoded) if dialect.alternate else encoded


def _alternating(messages: Sequence[JSON]) -> list[JSON]:
    """Neighbours of one role as one message; results stay one each."""
    alternating: list[JSON] = []
    for message in messages:
        before = alternating[-1] if alternating else None
        if before is None or before["role"] != message["role"] or message["role"] == "tool":
            alternating.append(message)
        else:
            alternating[-1] = _as_one(before, message)
    return alternating


def _as_one(first: JSON, second: JSON) -> JSON:
    """Two messages as one, with a blank line between their texts. Lists are strung together."""
    one = {**first, **second}
    for key in first.keys() & second.keys() - {"role"}:
        before, after = first[key], second[key]
        if not before or not after:
            one[key] = before or after
        elif isinstance(before, str) and isinstance(after, str):
            one[key] = f"{before}\n\n{after}"
        elif key == "content":
            one[key] = _joined_content([before, after])
        elif isinstance(before, list) and isinstance(after, list):
            one[key] = [*before, *after]
    return one


def encode_assistant(message: Message, dialect: Dialect, ids: dict[str, str]) -> list[JSON]:
    """One turn of the model as one message, or none if nothing of it may be sent. Texts are joined as they stand."""
    calls = message.tool_calls
    returns = dialect.replay == "always" or (dialect.replay == "tool_turns" and bool(calls))
    pieces = [_encode_part(part, dialect, returns=returns) for part in message.parts if not part.inside]
    body = join([piece for piece in pieces if piece])
    if calls:
        body["tool_calls"] = [_encode_call(call, dialect, ids) for call in calls]
        _add_stand_ins(body, calls[0], dialect)
    if not body:
        return []
    return [{"role": "assistant", "content": body.pop("content", None), **body}]


def _encode_part(part: Part, dialect: Dialect, *, returns: bool) -> JSON:
    """The piece of the message for one part; calls are added apart."""
    own = _own_raw(part, dialect)
    match part:
        case ToolCall():
            return {}
        case Text() if own is None:
            return {"content": part.text}
        case Image():
            return {"content": "[a picture, which this wire format cannot carry in an assistant message]"}
        case Opaque(kind="audio") if own is not None and as_dict(own["audio"]).get("id"):
            return {"audio": {"id": own["audio"]["id"]}}  # what was spoken goes back as a reference, in every later turn
        case Reasoning() | Opaque() if own is not None:
            return _returned(own, dialect) if returns else {}
        case _ if own is not None:
            return own
        case _:
            raise InvalidRequest(f"a {part.type} part without its own JSON cannot be sent to {NAME}")


def _own_raw(part: Part, dialect: Dialect) -> JSON | None:
    """The part's own piece of a message, if it came from the same service."""
    return part.raw_for(NAME) if part.service in (None, dialect.name) else None


def _is_foreign(part: Part, dialect: Dialect) -> bool:
    """Reasoning and unknown fields of another service that speaks the same wire format: it could not read them."""
    return isinstance(part, (Reasoning, Opaque)) and part.service not in (None, dialect.name)


def _returned(raw: JSON, dialect: Dialect) -> JSON:
    """Of a reasoning that came in several fields, the one that the service wants back (section 3.2)."""
    wanted = next((name for name in dialect.replay_fields if name in raw), None)
    if wanted is None:
        return raw
    return {key: value for key, value in raw.items() if key == wanted or key not in REASONING_FIELDS}


def join(pieces: Iterable[JSON]) -> JSON:
    """The message that these pieces add up to: text is joined, lists are strung together, the rest is laid side by side.
    Content that is partly text and partly chunks becomes chunks. The pieces themselves are not changed."""
    message: JSON = {}
    contents: list[Any] = []
    for piece in pieces:
        for key, value in piece.items():
            if key == "content":
                contents.append(value)
            elif isinstance(value, list):
                message[key] = [*message.get(key, ()), *value]
            else:
                message[key] = value
    if contents:
        message["content"] = _joined_content(contents)
    return message


def _joined_content(contents: Sequence[Any]) -> Any:
    if all(isinstance(content, str) for content in contents):
        return "".join(contents)
    chunks: list[Any] = []
    for content in contents:
        chunks += [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
    return chunks


def _joined_calls(messages: Sequence[Message]) -> list[Message]:
    """A message with calls must be followed by their results, so an assistant message that comes between joins it."""
    joined: list[Message] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is not None and before.role == message.role == "assistant" and before.tool_calls:
            joined[-1] = Message(role="assistant", parts=[*before.parts, *message.parts])
        else:
            joined.append(message)
    return joined


# ---------------------------------------------------------------- encode: calls and results


def _encode_call(call: ToolCall, dialect: Dialect, ids: dict[str, str]) -> JSON:
    """One entry of `tool_calls`. An own call keeps every field that it came with, `extra_content` above all."""
    own = as_dict(next(iter(as_list((_own_raw(call, dialect) or {}).get("tool_calls"))), None))
    is_own = word(own.get("id")) == call.call_id
    ids[call.call_id] = call.call_id if is_own else _fitting_id(call.call_id, dialect)
    head = {key: value for key, value in own.items() if value is not None and key not in ("function", "custom")}
    head |= {"id": ids[call.call_id], "type": "function"}
    name = _fitting_name(call.name, dialect)
    if call.kind == "custom" and dialect.custom_tools:
        given = as_dict(own.get("custom"))
        return {**head, "type": "custom", "custom": {**given, "name": name, "input": call.raw_args}}
    given = {key: value for key, value in as_dict(own.get("function")).items() if value is not None}
    return {**head, "function": {**given, "name": name, "arguments": _encode_arguments(call, dialect)}}


def _encode_arguments(call: ToolCall, dialect: Dialect) -> Any:
    """JSON text, exactly as it came if it can be used. Text that is no JSON object is wrapped in one: many servers parse
    what they are sent, to fill a chat template, and would refuse the whole history."""
    if call.args is None:
        arguments: JSON = {"INVALID_JSON": call.raw_args}
    elif call.kind == "custom" or dialect.object_arguments or not call.raw_args.strip():
        arguments = call.args
    else:
        return call.raw_args
    return arguments if dialect.object_arguments else compact(arguments)


def _fitting_name(name: str, dialect: Dialect) -> str:
    return fitting_name(name) if dialect.plain_names else name


def _fitting_id(call_id: str, dialect: Dialect) -> str:
    """The id of a call that another service made. If it does not fit the target's rule, it is replaced."""
    if not dialect.call_ids or re.fullmatch(dialect.call_ids, call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def _add_stand_ins(body: JSON, first: ToolCall, dialect: Dialect) -> None:
    """What a service wants on a message with calls although the model that made them never gave it (section 3.2)."""
    if dialect.required_field:
        body.setdefault(dialect.required_field, "")
    if dialect.skip_signature and _own_raw(first, dialect) is None:
        body["tool_calls"][0].setdefault("extra_content", SKIP_SIGNATURE)


def _encode_result(result: ToolResult, dialect: Dialect, ids: Mapping[str, str]) -> JSON:
    """A tool message. It has no field for a failure, so the text says it."""
    text = _result_text(result)
    if result.is_error:
        text = f"ERROR: {text}" if text else "ERROR"
    message = {"role": "tool", "tool_call_id": ids.get(result.call_id, result.call_id), "content": text}
    named = dialect.result_name and result.name
    return {**message, "name": _fitting_name(result.name, dialect)} if named else message


def _result_text(result: ToolResult) -> str:
    """The text of a result. A tool message carries no pictures: each leaves a note, and follows in a user message."""
    notes: list[str] = []
    pictures = 0
    for piece in result_pieces(result):
        if isinstance(piece, Image):
            pictures += 1
            notes.append(f"[picture {pictures}: in the user message after the results]")
        else:
            notes.append(piece.text)
    return "\n".join(notes) if pictures else "".join(notes)


def _pictures(results: Sequence[ToolResult]) -> list[JSON]:
    """The user message with the pictures of all results, each result's behind a line that names its call."""
    content: list[JSON] = []
    for result in results:
        images = [piece for piece in result_pieces(result) if isinstance(piece, Image)]
        if images:
            content.append({"type": "text", "text": f"Pictures in the result of {result.name} ({result.call_id}):"})
            content += [_encode_image(image) for image in images]
    return [{"role": "user", "content": content}] if content else []


def _user_content(message: Message) -> list[JSON]:
    """What the person said, as one message; a plain text stays a plain text."""
    parts = [part for part in message.parts if not isinstance(part, ToolResult)]
    if not parts:
        return []
    if len(parts) == 1 and isinstance(parts[0], Text):
        return [{"role": "user", "content": parts[0].text}]
    return [{"role": "user", "content": [_encode_user_part(part) for part in parts]}]


def _encode_user_part(part: Part) -> JSON:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return _encode_image(part)
        case _:
            raise InvalidRequest(f"a {part.type} part cannot stand in a user message of {NAME}")


def _encode_image(image: Image) -> JSON:
    url = image.url if image.url is not None else f"data:{image.media_type};base64,{image.data}"
    return {"type": "image_url", "image_url": {"url": url}}


# ---------------------------------------------------------------- encode: the settings


def _encode_tools(request: Request, dialect: Dialect) -> JSON:
    if not request.tools:
        return {}
    tools = {tool.name: _encode_tool(tool, dialect) for tool in request.tools}
    fields: JSON = {"tools": list(tools.values())}
    choice = request.tool_choice
    if choice in ("auto", "none"):
        fields["tool_choice"] = choice
    elif choice is not None:
        fields |= _encode_forced(choice, tools, dialect)
    if request.parallel is not None and dialect.parallel:
        fields["parallel_tool_calls"] = request.parallel
    return fields


def _encode_forced(choice: str, tools: Mapping[str, JSON], dialect: Dialect) -> JSON:
    """A call that must be made. Where a tool cannot be named, naming it is the same as offering nothing else."""
    if dialect.choice == "auto":
        raise InvalidRequest(f'{dialect.name} refuses a forced tool_choice; use tool_choice="auto" and say it in the prompt')
    if choice == "required":
        return {"tool_choice": choice}
    if dialect.choice == "words":
        return {"tools": [tools[choice]], "tool_choice": "required"}
    kind = tools[choice]["type"]
    return {"tool_choice": {"type": kind, kind: {"name": choice}}}


def _encode_tool(tool: Tool, dialect: Dialect) -> JSON:
    described: JSON = {"name": tool.name} | ({"description": tool.description} if tool.description else {})
    if tool.kind == "custom" and dialect.custom_tools:
        return {"type": "custom", "custom": {**described, "format": tool.format} if tool.format else described}
    schema = tool.schema_for_function()
    strict = tool.strict if dialect.strict else None
    function: JSON = {**described, "parameters": adapt(schema, OPENAI_STRICT).schema if strict else schema}
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


def _encode_reasoning(request: Request, dialect: Dialect, able: capabilities.Capabilities) -> JSON:
    """Section 3.3: six forms. What an OpenAI model takes is known, so a wrong word is refused before it is sent."""
    asked = request.reasoning
    if asked is None:
        return {}
    if able.provider == "openai":
        if able.thinking == "none":
            if asked == "none":
                return {}
            raise InvalidRequest(f"{able.family} does not reason; leave reasoning unset")
        unknown = able.efforts is not None and asked not in (*able.efforts, "none")
        if unknown or (asked == "none" and able.can_disable_thinking is False):
            raise InvalidRequest(f"{able.family} takes reasoning={', '.join(able.efforts or ())}, not {asked!r}")
    return REASONING[dialect.reasoning](asked)


def _encode_schema(request: Request, dialect: Dialect) -> JSON:
    if request.output_schema is None:
        return {}
    if not dialect.schema:
        raise InvalidRequest(
            f"{dialect.name} takes no JSON Schema for the answer: force a tool with that schema, or ask for JSON in the "
            f'prompt, with extra={{"{NAME}": {{"response_format": {{"type": "json_object"}}}}}}'
        )
    schema: JSON = {"name": "answer", "schema": request.output_schema}
    if dialect.strict and _is_closed(request.output_schema):
        schema["strict"] = True
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _is_closed(schema: Any) -> bool:
    """Whether a schema keeps the rule of strict mode: every object lists its properties, requires all, allows no others."""
    if isinstance(schema, list):
        return all(_is_closed(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    if "properties" in schema or schema.get("type") == "object":
        properties = as_dict(schema.get("properties"))
        if schema.get("additionalProperties") is not False or set(as_list(schema.get("required"))) != set(properties):
            return False
    return all(_is_closed(value) for value in schema.values())


def _checked_stop(stop: Sequence[str], dialect: Dialect) -> list[str]:
    if dialect.max_stop is not None and len(stop) > dialect.max_stop:
        raise InvalidRequest(f"{dialect.name} takes at most {dialect.max_stop} stop sequences, not {len(stop)}")
    return list(stop)


# ---------------------------------------------------------------- decode: where things stand


def find_error(payload: Any) -> JSON | None:
    """The error in a body or chunk that came with status 200, None if it is an answer (section 6.1)."""
    outer = as_dict(payload[0]) if isinstance(payload, list) and payload else as_dict(payload)
    if outer.get("error"):
        return outer
    told = _told_beside(outer)
    if told is not None:
        return told
    choices = outer.get("choices")
    for choice in as_list(choices)[:1]:
        if as_dict(choice).get("error"):
            return {"error": choice["error"]}
        if finish_reason(choice) == "error":
            return {"error": {"message": "the service ended the answer with finish_reason error"}}
    return outer if not choices and _says_error(outer) else None


def _told_beside(outer: JSON) -> JSON | None:
    """An error that stands beside the choices: why Groq stopped a stream early, and MiniMax's own status."""
    why = as_dict(outer.get("x_groq")).get("error")
    if why:
        return {"error": why}
    status = as_dict(outer.get("base_resp"))
    if as_count(status.get("status_code")):
        return {"error": {"message": as_text(status.get("status_msg")), "code": status["status_code"]}}
    return None


def _says_error(outer: JSON) -> bool:
    """The error bodies without an `error` field: older vLLM, FastAPI, and gateways that write a code and a message."""
    if "detail" in outer or "error" in (outer.get("object"), outer.get("type")):
        return True
    return "code" in outer and bool(as_text(outer.get("message")) or as_text(outer.get("msg")))


def _answer_of(answer: JSON) -> JSON | None:
    """The choice that is the answer: number 0, or the lowest if there is no 0."""
    choices = [an_object(choice, "a choice") for choice in as_list(answer.get("choices")) if choice is not None]
    return min(choices, key=lambda choice: as_count(choice.get("index")) or 0, default=None)


def _message_of(choice: JSON) -> JSON:
    """The message of a whole choice; a few gateways leave it under the name that it has in a stream, or write the `text` of
    the older completions."""
    return an_object(choice.get("message"), "the message of a choice") or as_dict(choice.get("delta")) or _older_text(choice)


def _older_text(choice: JSON) -> JSON:
    text = choice.get("text")
    return {"content": text} if isinstance(text, str) else {}


def finish_reason(choice: Any) -> str | None:
    """Why a choice ended, None if it has not said so yet."""
    reason = as_dict(choice).get("finish_reason")
    if not reason:
        return None
    if not isinstance(reason, str):
        raise ProtocolError(f"a finish reason must be a word, not a {type(reason).__name__}")
    return None if reason in NO_REASON else reason


def find_usage(answer: JSON) -> JSON | None:
    """The usage object, from the three places where services put it (section 5)."""
    for holder in (answer, as_dict(answer.get("x_groq")), *as_list(answer.get("choices"))[:1]):
        usage = as_dict(holder).get("usage")
        if usage and isinstance(usage, dict):
            return usage
    return None


def _status_in(error: JSON) -> int:
    """The HTTP status that an error inside a stream names: as its code (OpenRouter), or beside it. 0 if none."""
    for value in (error.get("code"), error.get("status_code"), error.get("status")):
        number = int(value) if isinstance(value, str) and value.isdecimal() else as_count(value)
        if number is not None and 400 <= number <= 599:
            return number
    return 0


def _error_message(error: JSON) -> str:
    """What went wrong, with what the service behind a gateway said about it. An error of an unknown shape is quoted."""
    message = as_text(error.get("message")) or as_text(error.get("msg")) or compact(error)[:300]
    cause = as_text(as_dict(error.get("metadata")).get("raw"))
    return f"{message}: {cause[:300]}" if cause else message


# ---------------------------------------------------------------- decode: one function per thing


class Placed(NamedTuple):
    """A part and its place in the message: which field, and its number there. The stream finds its events' numbers by it."""

    kind: str
    number: int
    part: Part


def decode_message(message: JSON, response_id: str, *, raw_stop: str | None) -> list[Placed]:
    """The parts of a whole message in the order reasoning, text, refusal, calls, unknown fields (section 2.1)."""
    think, content = split_think(message.get("content"))
    placed = [Placed("reasoning", 0, part) for part in _decode_reasoning(message, think)]
    placed += _decode_content(content)
    refusal = said(message.get("refusal"))
    if refusal:
        placed.append(Placed("refusal", 0, Text(text=refusal, wire=NAME, raw={"refusal": refusal})))
    cut = raw_stop is not None and STOP.get(raw_stop) not in (StopReason.END, StopReason.TOOL_USE)
    for number, entry in enumerate(_entries(message.get("tool_calls"))):
        call = decode_call(as_dict(entry), made_up_id(response_id, number), cut=cut)
        if call.name or call.args or call.raw_args.strip():  # some servers close a stream with an entry that is all empty
            placed.append(Placed("call", number, call))
    deprecated = as_dict(message.get("function_call"))
    if deprecated.get("name"):
        placed.append(Placed("function", 0, _decode_function(deprecated, made_up_id(response_id, 0), cut=cut)))
    unknown = {key: value for key, value in message.items() if key not in KNOWN_FIELDS and not _is_empty(value)}
    for number, (key, value) in enumerate(unknown.items()):
        placed.append(Placed("rest", number, Opaque(kind=key, wire=NAME, raw={key: value})))
    return placed


def _entries(value: Any) -> list[Any]:
    """The calls of a message or delta; one that comes without its list is one call."""
    entries = [value] if isinstance(value, dict) else value or []
    if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries if entry):
        return [entry for entry in entries if entry]
    raise ProtocolError("tool_calls is neither a call nor a list of calls")


_OPENS = re.compile(rf"\s*{OPEN_TAG}")


def split_think(content: Any) -> tuple[str, Any]:
    """A leading <think>...</think> block with the white space around it, and the content after it. Only at the very start:
    further on it is something that the model writes about. Without its end, everything is thought."""
    if not isinstance(content, str) or not _OPENS.match(content):
        return "", content
    _, tag, after = content.partition(CLOSE_TAG)
    if not tag:
        return content, ""
    visible = after.lstrip()
    return content[: len(content) - len(visible)], visible


def _decode_reasoning(message: JSON, think: str) -> list[Reasoning]:
    """One part for all fields that hold reasoning. Its text is taken from the first that has any: the others repeat it."""
    raw = {key: message[key] for key in REASONING_FIELDS if message.get(key)}
    details = as_list(message.get("reasoning_details"))
    texts = {
        **{key: said(message.get(key)) for key in REASONING_TEXTS},
        "reasoning_details": "".join(_detail_text(as_dict(detail)) for detail in details),
        "content": think.lstrip().removeprefix(OPEN_TAG).partition(CLOSE_TAG)[0],
    }
    if think:
        raw["content"] = think
    thought = next((texts[key] for key in message if texts.get(key)), "")
    return [Reasoning(text=thought, wire=NAME, raw=raw)] if raw else []


def _detail_text(detail: JSON) -> str:
    return as_text(detail.get("text")) or as_text(detail.get("summary"))


def _decode_content(content: Any) -> list[Placed]:
    """A text is one part; of a list each chunk is."""
    if isinstance(content, str):
        return [Placed("content", 0, Text(text=content, wire=NAME, raw={"content": content}))] if content else []
    chunks = [content] if isinstance(content, dict) else listed(content, "content that is no text")
    return [Placed("content", number, _decode_chunk(chunk)) for number, chunk in enumerate(chunks) if chunk]


def _decode_chunk(chunk: Any) -> Part:
    raw: JSON = {"content": [chunk]}
    if isinstance(chunk, str):
        return Text(text=chunk, wire=NAME, raw=raw)
    kind = as_text(as_dict(chunk).get("type"))
    text = chunk_text(as_dict(chunk))
    if kind == "thinking":
        return Reasoning(text=text, wire=NAME, raw=raw)
    if text:
        return Text(text=text, wire=NAME, raw=raw)
    return Opaque(kind=kind or "content", wire=NAME, raw=raw)


def chunk_text(chunk: JSON) -> str:
    """The text of a content chunk: `thinking` holds text or chunks of text, a refusal has its own field."""
    if not isinstance(chunk, dict):
        raise no_text(chunk)
    thinking = chunk.get("thinking")
    text = thinking or chunk.get("text") or chunk.get("refusal") or ""
    if isinstance(thinking, list):
        text = "".join(map(chunk_text, thinking))
    if not isinstance(text, str):
        raise no_text(text)
    if chunk.get("type") is not None or text != chunk.get("text"):  # some servers leave the type of plain text out
        named_kind(chunk.get("type"), "a chunk of content")
    return text


def decode_call(entry: JSON, spare_id: str, *, cut: bool = False) -> ToolCall:
    """One entry of `tool_calls`, without the `index` that numbers the pieces of a stream (some services leave it in).
    `cut`: the answer was cut, so a call that is not whole JSON was not finished."""
    raw: JSON = {"tool_calls": [{key: value for key, value in entry.items() if key != "index"}]}
    call_id = word(entry.get("id")) or spare_id
    custom = entry.get("custom")
    if isinstance(custom, dict):
        text = as_text(custom.get("input"))
        name = as_text(custom.get("name"))
        if cut:
            return cut_call(call_id, name, text, wire=NAME)
        return ToolCall(
            call_id=call_id, name=name, args={"input": text}, raw_args=text, kind="custom", wire=NAME, raw=raw
        )  # fmt: skip
    return _whole_call(call_id, an_object(entry.get("function"), "the function of a call"), raw, cut=cut)


def _decode_function(function: JSON, call_id: str, *, cut: bool) -> ToolCall:
    return _whole_call(call_id, function, {"function_call": function}, cut=cut)


def _whole_call(call_id: str, function: JSON, raw: JSON, *, cut: bool) -> ToolCall:
    arguments = function.get("arguments")
    call = function_call(call_id, as_text(function.get("name")), "" if arguments is None else arguments, wire=NAME, raw=raw)
    if cut and (call.args is None or not call.raw_args.strip()):
        return cut_call(call_id, call.name, call.raw_args, wire=NAME)
    return call


def made_up_id(response_id: str, number: int) -> str:
    """An id for a call that came without one: the same for stream and whole answer, and different in every answer of a
    conversation, as other wire formats want it."""
    suffix = re.sub(r"[^a-zA-Z0-9_-]", "", response_id)
    return f"call_{number}_{suffix}" if suffix else f"call_{number}"


def _is_empty(value: Any) -> bool:
    """Whether a field says nothing; some servers write out every field that the specification knows."""
    if isinstance(value, dict):
        return all(_is_empty(item) for item in value.values())
    return value is None or value == "" or value == [] or value == 0


def decode_stop(raw_stop: str | None, parts: Iterable[Part], *, refused: bool) -> StopReason:
    """Section 4.3. Whether tools are wanted is decided by the calls, not by the word; the word alone is not believed."""
    stop = STOP.get(raw_stop or "", StopReason.OTHER)
    if stop not in (StopReason.END, StopReason.TOOL_USE) and raw_stop is not None:
        return stop
    if any(isinstance(part, ToolCall) for part in parts):
        return StopReason.TOOL_USE
    if refused:
        return StopReason.REFUSAL
    return StopReason.OTHER if stop is StopReason.TOOL_USE else stop


def decode_usage(usage: Any) -> Usage | None:
    """Section 5. Counts are taken as they are, unless they show that the reasoning stands beside the output."""
    if not isinstance(usage, dict):
        return None
    prompt_details = as_dict(usage.get("prompt_tokens_details"))
    prompt, output = as_count(usage.get("prompt_tokens")), as_count(usage.get("completion_tokens"))
    reasoning = as_count(as_dict(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    if reasoning is None:
        reasoning = as_count(usage.get("reasoning_tokens"))
    cached = [as_count(count) for count in (prompt_details.get("cached_tokens"), *map(usage.get, CACHED))]
    return Usage(
        input_tokens=prompt,
        output_tokens=_all_output(prompt, output, reasoning, as_count(usage.get("total_tokens"))),
        cached_tokens=next((count for count in cached if count is not None), None),
        cache_write_tokens=as_count(prompt_details.get("cache_write_tokens")),
        reasoning_tokens=reasoning,
        raw=usage,
    )


def _all_output(prompt: int | None, output: int | None, reasoning: int | None, total: int | None) -> int | None:
    """The output with the reasoning in it. It was left out if there is more of it than of all output, or if the total is
    larger than prompt and output together by just the reasoning (or by something that the service does not name)."""
    if output is None:
        return None
    if reasoning is not None and reasoning > output:
        return output + reasoning
    missing = total - prompt - output if total is not None and prompt is not None else 0
    if missing > 0 and reasoning in (None, missing):
        return output + missing
    return output


# ---------------------------------------------------------------- the stream: which call does a piece belong to?


_PLACEHOLDER = 8
"""A placeholder for arguments is shorter than this."""


@dataclass(slots=True)
class CallSlot:
    """A call that is being built. `whole` holds arguments that came as an object."""

    place: int
    index: int = 0  # of its events
    call_id: str = ""
    name: str = ""
    has_index: bool = False  # the service numbers its calls
    body: str = "function"
    fields: dict[str, list[Any]] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    size: int = 0  # of the pieces together
    whole: Any = None

    @property
    def has_arguments(self) -> bool:
        return bool(self.pieces) or self.whole is not None

    def set_name(self, name: str) -> None:
        """A name may be repeated, or come in fragments before the arguments do; it is never doubled."""
        if not self.name or name.startswith(self.name):
            self.name = name
        elif not self.has_arguments and not self.name.startswith(name):
            self.name += name

    def looks_ended_before(self, arguments: Any) -> bool:
        """Whether its arguments look whole and these look like a new beginning: never so within one JSON object."""
        if not isinstance(arguments, str):
            return self.has_arguments and arguments is not None
        if self.whole is not None:
            return bool(arguments)
        return bool(self.pieces) and self.pieces[-1].rstrip().endswith("}") and arguments.lstrip().startswith("{")

    def repeats(self, arguments: Any) -> bool:
        """Whether these are all of its arguments once more: gateways sum up at the end what they have streamed."""
        if not isinstance(arguments, str):
            return self.whole is not None and self.whole == arguments
        return len(arguments) == self.size > 0 and self.looks_ended_before(arguments) and arguments == "".join(self.pieces)

    def take(self, arguments: str) -> bool:
        """Adds a piece of the arguments, if it is one. What gateways send beside could never become one JSON object with
        them: all of it once more, a `{}` from before there were any arguments, or two quotes behind an empty object."""
        if self.body != "custom" and self._is_no_piece(arguments):
            return False
        self.pieces.append(arguments)
        self.size += len(arguments)
        return True

    def _is_no_piece(self, arguments: str) -> bool:
        if self.repeats(arguments):
            return True
        if self.size < _PLACEHOLDER and "".join(self.pieces).strip() == "{}":
            if arguments.strip() == '""':
                return True
            if self.looks_ended_before(arguments):
                self.pieces.clear()
                self.size = 0
        return False

    def fold(self) -> JSON:
        """The entry of `tool_calls` as a whole answer would hold it."""
        text = "".join(self.pieces)
        arguments = self.whole if self.whole is not None else text
        content = {"name": self.name, "input" if self.body == "custom" else "arguments": arguments}
        entry: JSON = {"id": self.call_id} if self.call_id else {}
        return {**entry, "type": self.body, self.body: content, **settled(self.fields)}


class CallAssembler:
    """Puts the pieces of calls together (section 4.2), in this order of belief: a known id; an index; a new id; a name.

    An index may be missing, all zero, or start at one. An id or a name may be repeated, empty, late or absent.
    """

    def __init__(self) -> None:
        self.slots: list[CallSlot] = []
        self._by_id: dict[str, CallSlot] = {}
        self._by_index: dict[int, CallSlot] = {}
        self._last: CallSlot | None = None

    def add(self, entry: JSON, touched: list[CallSlot]) -> tuple[CallSlot, str]:
        """The call that this piece belongs to, and its text of arguments. `touched`: the calls of the same chunk so far."""
        index = as_count(entry.get("index"))
        call_id = word(entry.get("id")) or ""
        content = entry.get("custom") or entry.get("function") or {}
        slot = self._find(index, call_id, content, touched)
        if index is not None:
            self._by_index[index] = slot
            slot.has_index = True
        if call_id and not slot.call_id:
            slot.call_id = call_id
            self._by_id[call_id] = slot
        self._last = slot
        touched.append(slot)
        return slot, self._fill(slot, entry, content)

    def _find(self, index: int | None, call_id: str, content: JSON, touched: list[CallSlot]) -> CallSlot:
        at_index = self._by_index.get(index) if index is not None else None
        known = self._by_id.get(call_id) if call_id else None
        if known is not None:
            return self._with_known_id(known, index, at_index, content)
        if index is None:
            return self._without_index(call_id, content, touched)
        if at_index is None:
            return self._at_new_index(call_id, content.get("name"))
        if call_id:
            return self._new() if at_index.call_id and self._is_head(at_index, content) else at_index
        return self._new() if self._begins(at_index, content) else at_index

    def _with_known_id(self, known: CallSlot, index: int | None, at_index: CallSlot | None, content: JSON) -> CallSlot:
        """The call with that id; but some services give all calls the same one, and then a new head is a new call."""
        if at_index is not None and at_index.call_id == known.call_id:
            known = at_index
        elif content.get("name") and index is not None and at_index is None and known.has_index:
            return self._new()
        return self._new() if self._begins(known, content) and not known.repeats(content.get("arguments")) else known

    def _at_new_index(self, call_id: str, name: Any) -> CallSlot:
        """Pieces that carry nothing but a new index follow a head that was sent under a wrong one, if there is such a head:
        the newest call, if it has no arguments yet."""
        newest = self.slots[-1] if self.slots else None
        waits = newest is not None and not newest.has_arguments and bool(newest.call_id or newest.name)
        return newest if newest is not None and waits and not call_id and not name else self._new()

    def _without_index(self, call_id: str, content: JSON, touched: list[CallSlot]) -> CallSlot:
        last, name = self._last, content.get("name")
        if last is None:
            return self._new()
        if call_id:
            return last if not last.call_id and not name else self._new()
        if name and any(slot is last for slot in touched):
            return self._new()  # two entries in one chunk, neither with an id: two calls
        return self._new() if self._begins(last, content) else last

    @staticmethod
    def _is_head(slot: CallSlot, content: JSON) -> bool:
        """Whether a piece with a new id begins another call. Some services make up an id for every piece; a piece without a
        name goes on with the call that has one, as long as its arguments are not whole."""
        return bool(content.get("name")) or not slot.name or slot.looks_ended_before(content.get("arguments"))

    @staticmethod
    def _begins(slot: CallSlot, content: JSON) -> bool:
        """Whether a piece with a name begins another call: its arguments do, or another name comes after our arguments."""
        name = content.get("name")
        if not name or not slot.name:
            return False
        return slot.looks_ended_before(content.get("arguments")) or (slot.has_arguments and name != slot.name)

    def _new(self) -> CallSlot:
        slot = CallSlot(len(self.slots))
        self.slots.append(slot)
        return slot

    @staticmethod
    def _fill(slot: CallSlot, entry: JSON, content: JSON) -> str:
        name = content.get("name")
        if name:
            slot.set_name(name)
        if "custom" in entry:
            slot.body = "custom"
        for key, value in entry.items():
            if key not in ("index", "id", "type", "function", "custom") and value is not None:
                slot.fields.setdefault(key, []).append(value)
        arguments = content.get("input") if slot.body == "custom" else content.get("arguments")
        if arguments is None or arguments == "":
            return ""
        if isinstance(arguments, str):
            return arguments if slot.take(arguments) else ""
        if slot.repeats(arguments):
            return ""
        slot.whole = arguments
        return compact(arguments)


def settled(fields: Mapping[str, Sequence[Any]]) -> JSON:
    """The values that unknown fields took in a stream, each as one: text and lists are joined, objects merged, of anything
    else the last counts. A value that only repeats the one before it is a label, not a piece."""
    return {key: _settle([value for value, _ in groupby(values)]) for key, values in fields.items()}


def _settle(values: Sequence[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    if all(isinstance(value, str) for value in values):
        return "".join(values)
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    if all(isinstance(value, dict) for value in values):
        merged: dict[str, list[Any]] = {}
        for value in values:
            for key, item in value.items():
                if item is not None:
                    merged.setdefault(key, []).append(item)
        return settled(merged)
    return values[-1]


# ---------------------------------------------------------------- the stream: one message


REASONING_INDEX, TEXT_INDEX, REFUSAL_INDEX = 0, 1, 2
"""Numbers of the events of a message's own fields; calls and further chunks of content follow in order of appearance."""


class MessageFold:
    """One message from its deltas. `finish` holds its finish reason, `fields` what else its choice carried."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.finish: str | None = None
        self.fields: JSON = {}
        self.logprobs: dict[str, list[Any]] = {}
        self._content: list[str] = []
        self._chunks: list[Slot] | None = None  # the content, once a list has come
        self._think = ThinkSplitter()
        self._is_plain = False  # content is text, and no tag can come any more
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[Slot] = []
        self._shown: str | None = None  # the field whose reasoning is shown: the others repeat it
        self._refusal: list[str] = []
        self._calls = CallAssembler()
        self._function: CallSlot | None = None
        self._unknown: dict[str, list[Any]] = {}
        self._next_index = REFUSAL_INDEX + 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been said yet."""
        return not (self._content or self._chunks or self._reasoning or self._details or self._calls.slots or self._refusal)

    def add(self, delta: JSON, events: list[Event], response_id: str) -> None:
        """Folds one delta in. Empty values say nothing: services repeat every field in every chunk."""
        for key, value in delta.items():
            if not value:
                continue
            if key == "content":
                if self._is_plain and type(value) is str:  # nearly every chunk of nearly every stream
                    self._content.append(value)
                    events.append(TextDelta(TEXT_INDEX, value))
                else:
                    self._add_content(value, events)
            elif key in REASONING_TEXTS:
                if not isinstance(value, str):
                    raise no_text(value)
                self._reasoning.setdefault(key, []).append(value)
                self._show(key, value, events)
            elif key == "tool_calls":
                self._add_calls(value, events, response_id)
            elif key != "role":
                self._add_rare(key, value, events, response_id)

    def _add_rare(self, key: str, value: Any, events: list[Event], response_id: str) -> None:
        if key == "refusal":
            if not isinstance(value, str):
                raise no_text(value)
            self._refusal.append(value)
            events.append(TextDelta(REFUSAL_INDEX, value))
        elif key == "reasoning_details":
            for detail in value:
                self._add_detail(detail, events)
        elif key == "function_call":
            self._add_function(value, events, response_id)
        elif key != "index":
            self._unknown.setdefault(key, []).append(value)

    def _show(self, source: str, text: str, events: list[Event]) -> None:
        if self._shown is None:
            self._shown = source
        if self._shown == source:
            events.append(ReasoningDelta(REASONING_INDEX, text))

    # ------------------------------------------------------------ content

    def _add_content(self, value: Any, events: list[Event]) -> None:
        if isinstance(value, str) and self._chunks is None:
            self._content.append(value)
            self._split(*self._think.feed(value), events)
            self._is_plain = self._think.passed
            return
        if not isinstance(value, (str, dict, list)):
            raise no_text(value)
        if self._think.has_begun:
            raise ProtocolError("content that began with a thought as text goes on as a list")
        self._is_plain = False
        for chunk in [value] if isinstance(value, (str, dict)) else value:
            self._add_chunk({"type": "text", "text": chunk} if isinstance(chunk, str) else chunk, events)

    def _split(self, thought: str, text: str, events: list[Event]) -> None:
        if thought:
            self._show("content", thought, events)
        if text:
            events.append(TextDelta(TEXT_INDEX, text))

    def _add_chunk(self, chunk: JSON, events: list[Event]) -> None:
        """Chunks of the same kind in a row are pieces of one chunk; text that came before the first list is one as well."""
        if self._chunks is None:
            self._split(*self._think.close(), events)
            text = "".join(self._content)
            self._chunks = [Slot(TEXT_INDEX, {"type": "text"}, [text])] if text else []
        kind, text = chunk.get("type"), chunk_text(chunk)
        last = self._chunks[-1] if self._chunks else None
        if last is None or last.raw.get("type") != kind or kind not in ("text", "thinking"):
            last = Slot(self._allot() if self._chunks else TEXT_INDEX, {"type": kind})
            self._chunks.append(last)
        last.raw |= {key: value for key, value in chunk.items() if value is not None and key not in ("text", "thinking")}
        last.pieces.append(text)
        if text:
            events.append((ReasoningDelta if kind == "thinking" else TextDelta)(last.index, text))

    def _folded_content(self) -> Any:
        if self._chunks is None:
            self._content = ["".join(self._content)]  # in their place: a long answer is not held twice
            return self._content[0] or None
        return [_folded_chunk(slot) for slot in self._chunks]

    # ------------------------------------------------------------ reasoning details

    def _add_detail(self, detail: JSON, events: list[Event]) -> None:
        """Text and summaries come in pieces under one index; an encrypted detail comes whole."""
        kind, text = detail.get("type"), _detail_text(detail)
        last = self._details[-1] if self._details else None
        key = (kind, detail.get("index"))
        if last is None or kind == "reasoning.encrypted" or (last.raw.get("type"), last.raw.get("index")) != key:
            last = Slot(0, {})
            self._details.append(last)
        last.raw |= {name: value for name, value in detail.items() if value is not None or name not in last.raw}
        last.pieces.append(text)
        if text:
            self._show("reasoning_details", text, events)

    # ------------------------------------------------------------ calls

    def _add_calls(self, entries: Any, events: list[Event], response_id: str) -> None:
        touched: list[CallSlot] = []
        for entry in _entries(entries):
            slot, text = self._calls.add(entry, touched)
            slot.index = slot.index or self._allot()
            if text:
                call_id = slot.call_id or made_up_id(response_id, slot.place)
                events.append(ArgumentsDelta(slot.index, call_id, text))

    def _add_function(self, content: JSON, events: list[Event], response_id: str) -> None:
        if self._function is None:
            self._function = CallSlot(0, self._allot())
        name, arguments = content.get("name"), content.get("arguments")
        if name:
            self._function.set_name(name)
        if arguments:
            arguments = arguments if isinstance(arguments, str) else compact(arguments)
            self._function.pieces.append(arguments)
            events.append(ArgumentsDelta(self._function.index, made_up_id(response_id, 0), arguments))

    # ------------------------------------------------------------ the end

    def growing(self) -> Iterable[list[str]]:
        """The lists of pieces that are still growing."""
        calls = self._calls.slots if self._function is None else [*self._calls.slots, self._function]
        slots = [*self._details, *(self._chunks or ())]
        yield from (self._content, self._refusal, *self._reasoning.values())
        yield from (slot.pieces for slot in calls)
        yield from (slot.pieces for slot in slots)

    def _allot(self) -> int:
        self._next_index += 1
        return self._next_index - 1

    def close(self) -> list[Event]:
        """The text that was held back because it might have become a tag."""
        events: list[Event] = []
        if self._chunks is None:
            self._split(*self._think.close(), events)
        return events

    def index_of(self, placed: Placed) -> int:
        """The number under which the events of this part went out."""
        match placed.kind:
            case "reasoning":
                return REASONING_INDEX
            case "content":
                return self._chunks[placed.number].index if self._chunks else TEXT_INDEX
            case "refusal":
                return REFUSAL_INDEX
            case "call":
                return self._calls.slots[placed.number].index
            case "function" if self._function is not None:
                return self._function.index
            case _:
                return self._next_index + placed.number

    def choice(self) -> JSON:
        """The choice as a whole answer would hold it."""
        message: JSON = {"role": "assistant"}
        thoughts: JSON = {key: "".join(pieces) for key, pieces in self._reasoning.items()}
        if self._details:
            thoughts["reasoning_details"] = [_folded_detail(slot) for slot in self._details]
        if self._shown in thoughts:
            message[self._shown] = thoughts[self._shown]  # first, so that it is the text of the reasoning, as it was shown
        message |= thoughts
        message["content"] = self._folded_content()
        if self._refusal:
            message["refusal"] = "".join(self._refusal)
        if self._calls.slots:
            message["tool_calls"] = [slot.fold() for slot in self._calls.slots]
        if self._function is not None:
            message["function_call"] = self._function.fold()["function"]
        message |= settled(self._unknown)
        logprobs = {"logprobs": self.logprobs} if self.logprobs else {}
        return {"index": self.number, "message": message, **self.fields, **logprobs, "finish_reason": self.finish}


def _folded_chunk(slot: Slot) -> JSON:
    text = slot.text()
    if slot.raw.get("type") == "thinking":
        return {**slot.raw, "thinking": [{"type": "text", "text": text}]}
    return {**slot.raw, "text": text} if text else slot.raw


def _folded_detail(slot: Slot) -> JSON:
    text = slot.text()
    return {**slot.raw, "summary" if "summary" in slot.raw else "text": text} if text else slot.raw


class ThinkSplitter:
    """Finds a leading <think>...</think> block in content that comes in pieces. `passed`: all that follows is text."""

    def __init__(self) -> None:
        self.passed = False
        self._stage = self._before
        self._held: list[str] = []

    @property
    def has_begun(self) -> bool:
        """Whether a thought has begun, ended or not."""
        return self._stage in (self._within, self._after)

    def feed(self, text: str) -> tuple[str, str]:
        """What of the text so far is now known to be (thought, text)."""
        return self._stage(text)

    def close(self) -> tuple[str, str]:
        """What was held back: half of an end tag belongs to the thought, half of a start tag to the text."""
        held = "".join(self._held)
        self._held.clear()
        return (held, "") if self._stage == self._within else ("", held)

    def _before(self, text: str) -> tuple[str, str]:
        self._held.append(text)
        if not text.strip():
            return "", ""
        held = "".join(self._held)
        body = held.lstrip()
        if OPEN_TAG.startswith(body) and body != OPEN_TAG:
            return "", ""
        self._held.clear()
        if not body.startswith(OPEN_TAG):
            self.passed = True
            return "", held
        self._stage = self._within
        return self._within(body.removeprefix(OPEN_TAG))

    def _within(self, text: str) -> tuple[str, str]:
        thought, tag, after = "".join([*self._held, text]).partition(CLOSE_TAG)
        self._held.clear()
        if not tag:
            half = next((n for n in range(len(CLOSE_TAG) - 1, 0, -1) if thought.endswith(CLOSE_TAG[:n])), 0)
            if half:
                self._held.append(thought[-half:])
            return thought[: len(thought) - half], ""
        self._stage = self._after
        return thought, self._after(after)[1]

    def _after(self, text: str) -> tuple[str, str]:
        visible = text.lstrip()
        self.passed = bool(visible)
        return "", visible


# ---------------------------------------------------------------- the stream: the state machine


class ChatDecoder(StreamDecoder):
    """Chunks, each with the next pieces of one or more messages; in between or at the end a chunk with nothing but notes
    (usage, a gateway's filter results).

    Section 4.1. A finish reason does not end the stream: usage follows it, and proxies repeat it on every chunk. So calls
    are finished by `[DONE]` or by `close`, and a stream without either a finish reason or `[DONE]` is incomplete.
    """

    TABLE: ClassVar[Table] = {
        "WAIT": {"chunk": "OPEN", "finish": "ENDING", "note": "WAIT", "error": "FAILED", "end": "FAILED"},
        "OPEN": {"chunk": "OPEN", "finish": "ENDING", "note": "OPEN", "error": "FAILED", "end": "DONE"},
        "ENDING": {"chunk": "ENDING", "finish": "ENDING", "note": "ENDING", "error": "FAILED", "end": "DONE"},
    }

    def __init__(self, wire: OpenAIChat) -> None:
        super().__init__(wire)
        self._wire = wire
        self._head: JSON = {}
        self._id = ""
        self._width = 0  # how many fields the usual chunk has: one with more or fewer brings something new
        self._latest: JSON = {}
        self._usage: JSON | None = None
        self._messages: dict[int, MessageFold] = {}

    def kind(self, payload: Any, sse: ServerSentEvent) -> str:
        choices = payload.get("choices") if type(payload) is dict else None
        if not choices:
            return self._kind_without_choices(payload, sse)
        if payload.get("error"):
            return "error"
        choice = choices[0]
        if not choice.get("finish_reason") or choice.get("index"):
            return "chunk"
        reason = finish_reason(choice)
        return "error" if reason == "error" else "chunk" if reason is None else "finish"

    def _kind_without_choices(self, payload: Any, sse: ServerSentEvent) -> str:
        if payload in END_MARKERS:
            return "end"
        if sse.event == "error" or find_error(payload) is not None:
            return "error"
        if "choices" in payload or "usage" in payload or "x_groq" in payload:
            return "note"
        return word(payload.get("object")) or word(payload.get("type")) or "unknown"

    def _payload(self, sse: ServerSentEvent) -> Any:
        """As in the base. Some servers forget the brackets of the end marker."""
        bare = sse.data.strip()
        return bare.decode("ascii") if bare in (b"DONE", DONE) else super()._payload(sse)

    def end_words(self) -> str:
        return "a finish reason or [DONE]"

    def close(self, stray: bytes = b"") -> Sequence[Event]:
        answer = self._answer()
        if self.state in ("OPEN", "ENDING") and answer is not None and answer.finish is not None:
            return self.feed(ServerSentEvent("message", DONE))
        return super().close(stray)

    def on_done_marker(self) -> Sequence[Event]:
        """The end that the protocol defines, if there was anything to end: an empty answer is none."""
        answer = self._answer()
        return super().on_done_marker() if answer is None else self._end(answer)

    def _on_end(self, payload: Any) -> Sequence[Event]:
        return self.on_done_marker()

    def _end(self, answer: MessageFold) -> Sequence[Event]:
        held = answer.close()
        payload = self._folded()
        placed = self._wire.read(payload)
        self._response = self._wire.respond(payload, [item.part for item in placed])
        self._move("DONE")
        return [*held, *(PartDone(answer.index_of(item), item.part) for item in placed), Done(self._response)]

    # ------------------------------------------------------------ chunks

    def _on_chunk(self, payload: JSON) -> Sequence[Event]:
        if len(payload) != self._width or payload.get("usage"):
            self._on_note(payload)
        self._latest = payload
        events: list[Event] = []
        for choice in payload["choices"]:
            index = choice.get("index")
            number = as_place(index) if index else 0
            message = self._messages.get(number)
            if message is None:
                message = self._messages[number] = MessageFold(number)
            delta = choice.get("delta")
            if delta is None and message.is_empty:
                delta = choice.get("message")  # a whole message where a delta was due
            if delta is None:
                delta = _older_text(choice)
            if delta:
                message.add(delta, events if number == 0 else [], self._id)
            for key in choice:
                if key not in DELTA_FIELDS and choice[key] is not None:
                    self._add_field(key, choice[key], message)
        return events

    def _on_finish(self, payload: JSON) -> Sequence[Event]:
        self._width = 0
        return self._on_chunk(payload)

    def _on_note(self, payload: JSON) -> Sequence[Event]:
        """Everything but the choices: of each field the last value counts, of id and model the first."""
        self._latest = payload
        told = _told_beside(payload)
        if told is not None:
            raise self.wire.api_error(200, told)
        self._add_to_head(payload)
        self._usage = find_usage(payload) or self._usage
        self._width = len(payload)
        return NOTHING

    def _on_error(self, payload: Any) -> Sequence[Event]:
        if isinstance(payload, dict) and payload.get("choices"):
            self._on_chunk(payload)
        elif isinstance(payload, dict) and payload.get("id"):
            self._on_note(payload)
        raise self.wire.api_error(200, find_error(payload) or payload)

    def _add_field(self, key: str, value: Any, message: MessageFold) -> None:
        if key == "finish_reason":
            message.finish = finish_reason({key: value}) or message.finish
        elif key == "logprobs" and isinstance(value, dict):
            for name, entries in value.items():
                message.logprobs.setdefault(name, []).extend(entries or ())
        elif key == "usage":
            self._usage = value or self._usage
        elif key == "error":
            raise self.wire.api_error(200, {"error": value})
        else:
            message.fields[key] = value

    def _add_to_head(self, payload: JSON) -> None:
        for key, value in payload.items():
            if key in ("id", "model", "created"):
                self._head[key] = self._head.get(key) or value
            elif value is not None and key not in ("choices", "usage", "obfuscation", "p", "error"):
                self._head[key] = value
        self._id = as_text(self._head.get("id"))

    # ------------------------------------------------------------ the answer

    def growing(self) -> Iterable[list[str]]:
        return [pieces for message in self._messages.values() for pieces in message.growing()]

    def _answer(self) -> MessageFold | None:
        return self._messages[min(self._messages)] if self._messages else None

    def _folded(self) -> JSON:
        """The answer that is not streamed, with the same content."""
        self._add_to_head(self._latest)
        choices = [message.choice() for _, message in sorted(self._messages.items())]
        folded = {**self._head, "object": "chat.completion", "choices": choices}
        return folded if self._usage is None else {**folded, "usage": self._usage}

    def build(self, *, finished: bool) -> Response:
        """What has arrived. Of an answer that never ended, text may be shown; no call can be run, nothing is replayed."""
        if not self._latest:
            raise IncompleteStream("nothing has arrived")
        payload = self._folded()
        parts = [_unfinished(item.part) for item in self._wire.read(payload)]
        return self._wire.respond(payload, parts)


def _unfinished(part: Part) -> Part:
    if isinstance(part, ToolCall):
        return cut_call(part.call_id, part.name, part.raw_args, wire=NAME)
    return part.model_copy(update={"raw": None})
