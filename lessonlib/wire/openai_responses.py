"""OpenAI Responses: the answer is a list of items, and so is the history.

    POST {base}/responses        Authorization: Bearer        docs/wire/openai-responses.md

What is peculiar to it: text, reasoning, calls and results are items on one level, in one order; a call has two ids, and
`call_id` is the one that pairs; arguments are a JSON text; a result has no error flag; `store` is true unless the body says
false; reasoning comes back encrypted and bound to its id; there is no stop reason for a call or a refusal, both are found by
looking at the items; a stream's last event holds the whole answer again, and sometimes an empty one.

Exceptions to raw replay, each a small function below: output-only fields and nulls go; reasoning that the server could not
find again goes, with the ids that hang on it; reasoning that nothing follows goes; a result has the kind of its call.

What this file does not do: the WebSocket form, background polling, the conversations endpoint. A tool that the server runs
is an opaque part. With `previous_response_id` in `extra`, `messages` is what came after that response: section R9.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from lessonlib import capabilities
from lessonlib.errors import IncompleteStream, InvalidRequest, ProtocolError
from lessonlib.history import arrange, result_pieces
from lessonlib.schema import OPENAI_STRICT, adapt
from lessonlib.sse import ServerSentEvent
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
    NO_NAME,
    NOTHING,
    ErrorDetails,
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
    listed,
    named_kind,
    no_text,
    read_json,
    retry_after,
    retryable_status,
    said,
    word,
)  # fmt: skip

NAME = "openai-responses"

LONGEST_ID = 64

ENCRYPTED = "reasoning.encrypted_content"
"""The `include` that asks for encrypted reasoning; a 400 on a model that does not reason (section R2)."""

SERVICES: Mapping[str, str] = {
    "api.openai.com": "openai",
    "openai.azure.com": "azure",
    "services.ai.azure.com": "azure",
    "cognitiveservices.azure.com": "azure",
    "api.x.ai": "xai",
    "api.deepseek.com": "deepseek",
    "api.perplexity.ai": "perplexity",
    "openrouter.ai": "openrouter",
    "api.groq.com": "groq",
    "chatgpt.com": "chatgpt",
}
"""Who speaks this wire format, by host (names below it count). Encrypted reasoning and server ids of one of them are refused
by the others; a host that is not listed is taken for whoever answered before."""

_OWN_PARAMS = ("input", "instructions", "max_output_tokens", "previous_response_id", "include", "text.", "reasoning.")
"""Fields that only requests of this wire format have: an error's `param` that starts with one tells it apart."""

INCOMPLETE: Mapping[str, StopReason] = {
    "max_output_tokens": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}
"""`incomplete_details.reason`; every other reason is `other`."""

CLIENT_CALLS: Mapping[str, str] = {
    "function_call": "function",
    "custom_tool_call": "custom",
    "shell_call": "shell",
    "local_shell_call": "local_shell",
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "tool_search_call": "tool_search",
}
"""Item types that ask the client to do something, and `ToolCall.kind`. All other calls are run by the server."""

RECORDS = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_list_tools", "mcp_call"}
)
"""What the server did by itself. On input these need their `id`, so they cannot outlive the reasoning that it hangs on."""

FREE_OF_ID = frozenset(
    {"message", "function_call", "custom_tool_call", "shell_call", "apply_patch_call", "tool_search_call"}
)
"""Item types whose `id` may be left out on input."""

FREE_OF_STATUS = frozenset({"reasoning", "message", "function_call", "custom_tool_call"})
"""Item types that go back without `status`: refused on reasoning, useless on the others. Hosted calls require theirs."""

OUTPUT_ONLY = frozenset({"created_by", "parsed", "parsed_arguments"})
NULLABLE = frozenset({"code", "outputs", "result", "keys"})
"""Fields that input requires even where they are null."""
VERBATIM = frozenset({"arguments", "tools"})
"""Fields that hold somebody else's JSON, in which a null means something."""

QUOTA = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "usage_not_included",
        "usage_limit_reached",
    }
)
POLICY = frozenset({"bio_policy", "misalignment_policy_violation", "image_content_policy_violation"})
FINAL = QUOTA | POLICY | {"context_length_exceeded", "invalid_prompt", "previous_response_not_found"}
"""Words in `error.type` or `error.code` that no waiting changes, whatever the status beside them says (section R7)."""
RETRYABLE = frozenset(
    {
        "rate_limit_exceeded",
        "rate_limit_error",
        "slow_down",
        "server_error",
        "server_is_overloaded",
        "service_unavailable_error",
        "vector_store_timeout",
    }
)
"""The words that allow a retry of an error inside a stream."""

log = logging.getLogger("lessonlib")


class OpenAIResponses(WireFormat):
    """The Responses API. `organization` and `project` are sent as headers; by default they come from the environment."""

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
        organization: str | None = None,
        project: str | None = None,
    ) -> None:
        super().__init__(model, api_key=api_key, base_url=base_url, headers=headers)
        self.organization = organization if organization is not None else first_env("OPENAI_ORG_ID")
        self.project = project if project is not None else first_env("OPENAI_PROJECT_ID")
        self.service = _service_of(self.base_url)

    # ------------------------------------------------------------ encode

    def path(self, model: str, stream: bool) -> str:
        return "/responses"

    def auth(self) -> dict[str, str]:
        headers = {} if self._key is None else {"authorization": f"Bearer {self._key.reveal()}"}
        if self.organization:
            headers["openai-organization"] = self.organization
        if self.project:
            headers["openai-project"] = self.project
        return headers

    def body(self, request: Request, model: str, stream: bool) -> JSON:
        able = capabilities.of(model)
        extra = request.extra.get(NAME, {})
        store = bool(extra.get("store", False))
        server_state = bool(extra.get("previous_response_id") or extra.get("conversation"))
        body: JSON = {"model": model}
        if request.system:
            body["instructions"] = request.system
        messages = _without_foreign_raw(request.messages, self.service)
        body["input"] = encode_input(messages, store=store, server_state=server_state)
        if not body["input"] and not server_state and not extra.keys() & {"input", "prompt"}:
            raise InvalidRequest("nothing to send: no message has any content")
        body |= _encode_tools(request)
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        body |= _encode_reasoning(request, able)
        body |= _encode_include(request, able, store)
        if request.output_schema is not None:
            body["text"] = {"format": _encode_schema(request.output_schema)}
        if request.stop:
            log.warning("the Responses API has no stop sequences; %d of them are not sent (section R2)", len(request.stop))
        body["store"] = store  # always there: left out, it means true
        if stream:
            body["stream"] = True
        return body

    # ------------------------------------------------------------ decode

    def decode(self, payload: Any) -> Response:
        response = as_dict(payload)
        items = [an_object(item, "an output item") for item in listed(response.get("output"), "output") if item is not None]
        whole = isinstance(response.get("output"), list) or response.get("object") == "response"
        if _reports_failure(response) or response.get("type") == "error":
            raise self.api_error(200, payload, partial=self._respond_whole(response, items) if whole else None)
        if not whole:
            raise ProtocolError(f"not a Responses answer: no output list in {compact(payload)[:120]}")
        return self._respond_whole(response, items)

    def _respond_whole(self, response: JSON, items: Sequence[JSON]) -> Response:
        return self.respond(response, items, [decode_item(item, place, self.service) for place, item in enumerate(items)])

    def respond(self, response: JSON, items: Sequence[JSON], parts: Sequence[Part]) -> Response:
        """The Response for a whole response object whose items have been decoded already, one part per item."""
        status = word(response.get("status"))
        settled = settle(items, parts, status)
        stop, raw_stop = decode_stop(response, items, settled)
        return Response(
            id=as_text(response.get("id")),
            model=as_text(response.get("model")),
            provider=self.service or self.provider,
            wire=NAME,
            message=Message(role="assistant", parts=settled),
            stop=stop,
            raw_stop=raw_stop,
            usage=decode_usage(response.get("usage")),
            raw=response,
        )

    def decoder(self) -> StreamDecoder:
        return ResponsesDecoder(self)

    @classmethod
    def recognises(cls, payload: Any) -> int:
        body = as_dict(payload)
        kind = as_text(body.get("type"))
        if kind.startswith("response.") or body.get("object") in ("response", "response.compaction"):
            return 2
        if kind == "error":  # Anthropic's has the same two levels, but neither a number nor these fields
            return 2 if "sequence_number" in body or {"code", "param"} & {*body, *as_dict(body.get("error"))} else 1
        if kind == "keepalive":
            return 1
        if isinstance(body.get("output"), list) and "status" in body:
            return 1
        error = as_dict(body.get("error"))
        if as_text(error.get("param")).startswith(_OWN_PARAMS):
            return 2  # Chat Completions has errors of the same form, but no such field in its requests
        return 1 if "message" in error else 0

    # ------------------------------------------------------------ errors

    def error_details(self, status: int, payload: Any) -> ErrorDetails:
        """Section R7. Over HTTP the status decides, inside a stream the error's own words; a word that says "never" wins."""
        error = _find_error(payload)
        kind, code = word(error.get("type")), word(error.get("code"))
        kind = None if kind in ("error", "response.failed") else kind
        words = {kind, code} - {None}
        retryable = any(map(_allows_retry, words)) if status == 200 else retryable_status(status)
        headers = {name.lower(): str(value) for name, value in as_dict(error.get("headers")).items()}
        message = as_text(error.get("message")) or code or kind or "the response failed, and no reason was given"
        wait = retry_after(headers)
        return ErrorDetails(
            message=message,
            type=kind,
            code=code,
            retryable=retryable and not words & FINAL,
            refusal=bool(words & POLICY),
            retry_after=wait if wait is not None else _wait_in_words(message),
            request_id=headers.get("x-request-id"),
        )


def _service_of(base_url: str) -> str | None:
    host = urlsplit(base_url).hostname or ""
    return next((name for known, name in SERVICES.items() if host == known or host.endswith("." + known)), None)


def _reports_failure(response: JSON) -> bool:
    """Some gateways send an error object that says nothing with every good answer."""
    error = response.get("error")
    told = any(error.get(key) for key in ("message", "code", "type")) if isinstance(error, dict) else bool(error)
    return told or response.get("status") == "failed"


def _find_error(payload: Any) -> JSON:
    """The error object: in `response.error` (failed), beside it (Perplexity), nested in `error`, or flat."""
    response = as_dict(as_dict(payload).get("response"))
    return error_object(response if response.get("error") else payload)


def _allows_retry(code: str | None) -> bool:
    """Some gateways put an HTTP status where the code belongs."""
    return code is not None and (code in RETRYABLE or (len(code) == 3 and code.isdecimal() and retryable_status(int(code))))


_WAIT = re.compile(r"try again in ((?:\d+(?:\.\d+)?(?:ms|[hms]))+)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def _wait_in_words(message: str) -> float | None:
    """Rate limit messages name the wait ("Please try again in 1m6.5s."), and an error inside a stream has no headers."""
    found = _WAIT.search(message)
    if found is None:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"([\d.]+)(ms|[hms])", found[1]))


# ---------------------------------------------------------------- encode: one function per thing


def encode_input(messages: Sequence[Message], *, store: bool = False, server_state: bool = False) -> list[JSON]:
    """The `input` list. server_state: the calls that the first results answer are held by the server."""
    items: list[JSON] = []
    if server_state:
        answers, messages = _answers_to_server(messages)
        items += [encode_result(result, None) for result in answers]
    calls: dict[str, ToolCall] = {}
    for message in arrange(messages, NAME, merge=False):
        if message.role == "assistant":
            calls |= {call.call_id: call for call in message.tool_calls}
            items += encode_assistant(message, store=store)
        else:
            items += encode_user(message, calls)
    return items


def _without_foreign_raw(messages: Sequence[Message], service: str | None) -> Sequence[Message]:
    """The parts that another service of this wire format sent, as if another wire format had: to be rebuilt or left out."""

    def foreign(part: Part) -> bool:
        return part.wire == NAME and None not in (part.service, service) and part.service != service

    return [
        Message(role=m.role, parts=[p.model_copy(update={"raw": None}) if foreign(p) else p for p in m.parts])
        if any(map(foreign, m.parts))
        else m
        for m in messages
    ]


def _answers_to_server(messages: Sequence[Message]) -> tuple[list[ToolResult], Sequence[Message]]:
    """The results before the first assistant message, and the messages without them."""
    first = next((place for place, message in enumerate(messages) if message.role == "assistant"), len(messages))
    results = [result for message in messages[:first] for result in message.tool_results]
    if not results:
        return [], messages
    rest = [[part for part in message.parts if not isinstance(part, ToolResult)] for message in messages[:first]]
    return results, [*(Message.user(*parts) for parts in rest if parts), *messages[first:]]


def encode_assistant(message: Message, *, store: bool) -> list[JSON]:
    """The items of one assistant message, by the replay rules (section R5)."""
    items = [encode_item(part) for part in message.parts if not _is_inside(part)]
    return _without_trailing_reasoning(items if store else _without_lost_reasoning(items))


def encode_item(part: Part) -> JSON:
    """One item of an assistant message: an own one as it came, but for what input refuses; a foreign one is rebuilt."""
    raw = part.raw_for(NAME)
    match part:
        case ToolCall(kind="function" | "custom") if raw is not None:
            return _replayed(raw) | _call_fields(part)
        case _ if raw is not None:
            return _replayed(raw)
        case Text():
            return {"role": "assistant", "content": part.text}
        case Image():
            return {"role": "assistant", "content": "[a picture, which this API cannot be given as the assistant's own]"}
        case ToolCall(kind="custom"):
            return {"type": "custom_tool_call"} | _call_fields(part)
        case ToolCall():
            return {"type": "function_call"} | _call_fields(part)
        case _:
            raise InvalidRequest(f"a {part.type} part does not belong into an assistant message for {NAME}")


def _call_fields(call: ToolCall) -> JSON:
    """What input requires of a call. Some servers leave it out or send the arguments as an object."""
    head = {"call_id": fitting_id(call.call_id), "name": fitting_name(call.name)}
    if call.kind == "custom":
        return {**head, "input": as_text((call.args or {"input": call.raw_args}).get("input"))}
    return {**head, "arguments": call.raw_args if call.raw_args or call.args is None else compact(call.args)}


def fitting_id(call_id: str) -> str:
    """The id of a call, which input takes with 1 to 64 characters. Other vendors' are longer, some servers give none."""
    if 0 < len(call_id) <= LONGEST_ID:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def encode_user(message: Message, calls: Mapping[str, ToolCall]) -> list[JSON]:
    """The items of one user message: results as items of their own, text and pictures as one message."""
    items: list[JSON] = []
    content: list[Text | Image] = []
    for part in message.parts:
        if isinstance(part, (Text, Image)):
            content.append(part)
            continue
        items += _user_item(content)
        content = []
        if isinstance(part, ToolResult):
            items.append(encode_result(part, calls.get(part.call_id)))
        elif (raw := part.raw_for(NAME)) is not None:  # an approval, or an item that only this API knows
            items.append(_replayed(raw))
        else:
            raise InvalidRequest(f"a {part.type} part does not belong into a user message")
    return items + _user_item(content)


def _user_item(content: Sequence[Text | Image]) -> list[JSON]:
    if not content:
        return []
    if len(content) == 1 and isinstance(content[0], Text):
        return [{"role": "user", "content": content[0].text}]
    return [{"role": "user", "content": [_encode_content(piece) for piece in content]}]


def _encode_content(piece: Text | Image) -> JSON:
    if isinstance(piece, Text):
        return {"type": "input_text", "text": piece.text}
    return {"type": "input_image", "image_url": _image_url(piece), "detail": "auto"}


def _image_url(image: Image) -> str:
    return image.url if image.url is not None else f"data:{image.media_type};base64,{image.data}"


def _is_inside(part: Part) -> bool:
    return part.inside and part.wire == NAME


def _encode_tools(request: Request) -> JSON:
    if not request.tools:
        return {}
    fields: JSON = {"tools": [_encode_tool(tool) for tool in request.tools]}
    if request.tool_choice in ("auto", "none", "required"):
        fields["tool_choice"] = request.tool_choice
    elif request.tool_choice is not None:
        kind = next(tool.kind for tool in request.tools if tool.name == request.tool_choice)
        fields["tool_choice"] = {"type": kind, "name": request.tool_choice}
    if request.parallel is not None:
        fields["parallel_tool_calls"] = request.parallel
    return fields


def _encode_tool(tool: Tool) -> JSON:
    encoded: JSON = {"type": tool.kind, "name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    if tool.kind == "custom":
        return {**encoded, "format": tool.format} if tool.format else encoded
    encoded["parameters"] = adapt(tool.parameters, OPENAI_STRICT).schema if tool.strict else tool.parameters
    if tool.strict is not None:
        encoded["strict"] = tool.strict
    return encoded


def _encode_reasoning(request: Request, able: capabilities.Capabilities) -> JSON:
    """An effort word, and a readable summary with it: without one the model's thinking stays invisible."""
    asked = request.reasoning
    if asked is None:
        return {}
    if isinstance(asked, int):
        raise InvalidRequest(f'the Responses API takes an effort word (reasoning="low"), not a budget of {asked} tokens')
    if able.thinking == "none":
        if asked == "none":
            return {}
        raise InvalidRequest(f"{able.family} does not reason; leave reasoning unset")
    if asked == "none" and able.can_disable_thinking is False:
        raise InvalidRequest(f"{able.family} always reasons; leave reasoning unset or use the lowest effort")
    if able.efforts is not None and asked != "none" and asked not in able.efforts:
        raise InvalidRequest(f"{able.family} takes the efforts {', '.join(able.efforts)}, not {asked!r}")
    return {"reasoning": {"effort": asked} if asked == "none" else {"effort": asked, "summary": "auto"}}


def _encode_include(request: Request, able: capabilities.Capabilities, store: bool) -> JSON:
    """Encrypted reasoning is asked for where it is needed and the model is one that reasons: the data says so, the request
    asks for an effort, or the history holds reasoning of this wire format. A model that does not reason refuses the word,
    so an unknown model without any such sign is not asked: api.openai.com sends the encrypted content by itself. Reasoning
    in the clear is no such sign: the servers that send it have nothing to encrypt."""
    if store or able.thinking == "none":
        return {}
    asked = request.reasoning not in (None, "none")
    raws = (part.raw_for(NAME) for message in request.messages for part in message.parts if isinstance(part, Reasoning))
    held = any(raw is not None and not raw.get("content") for raw in raws)
    return {"include": [ENCRYPTED]} if able.thinking is not None or asked or held else {}


def _encode_schema(schema: JSON) -> JSON:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", as_text(schema.get("title")))[:64] or "answer"
    strict = schema.get("type") == "object" and _fits_strict(schema)
    return {"type": "json_schema", "name": name, "schema": schema, "strict": strict}


_LOOSE_WORDS = frozenset({"default", "allOf", "oneOf", "not", "if", "patternProperties", "dependentRequired"})


def _fits_strict(schema: Any) -> bool:
    """Whether strict mode, which really holds the model to the schema, accepts it: every object closed, every property
    required, no word outside the subset. Other schemas go without it: strict mode would refuse the whole request."""
    if not isinstance(schema, dict) or _LOOSE_WORDS & schema.keys() or ("$ref" in schema and len(schema) > 1):
        return False
    properties = as_dict(schema.get("properties"))
    closed = schema.get("additionalProperties") is False and set(as_list(schema.get("required"))) == set(properties)
    if (properties or schema.get("type") == "object") and not closed:
        return False
    children = [*properties.values(), *as_dict(schema.get("$defs")).values(), *as_list(schema.get("anyOf"))]
    return all(map(_fits_strict, [*children, schema["items"]] if "items" in schema else children))


# ---------------------------------------------------------------- encode: a result, in the kind of its call


def encode_result(result: ToolResult, call: ToolCall | None) -> JSON:
    """The output item for one result. Its type follows the call's; a call that only the server knows is a function's."""
    own = result.raw_for(NAME)
    if own is not None:
        return _replayed(own)
    raw = as_dict(call.raw_for(NAME)) if call is not None else {}
    kind = call.kind if call is not None and (raw or call.kind == "custom") else "function"
    item = _RESULTS.get(kind, _function_result)(result, raw)
    caller = raw.get("caller")
    return {**item, "caller": caller} if caller else item


def _function_result(result: ToolResult, raw: JSON) -> JSON:
    return {"type": "function_call_output", "call_id": fitting_id(result.call_id), "output": _result_output(result)}


def _custom_result(result: ToolResult, raw: JSON) -> JSON:
    return {"type": "custom_tool_call_output", "call_id": fitting_id(result.call_id), "output": _result_output(result)}


def _result_output(result: ToolResult) -> str | list[JSON]:
    """A text, or a list once there is a picture. No field says that the tool failed, so the text has to."""
    pieces = [piece for piece in result_pieces(result) if not isinstance(piece, Text) or piece.text]
    if all(isinstance(piece, Text) for piece in pieces):
        return _error_text(result)
    encoded = [_encode_content(piece) for piece in pieces]
    return [{"type": "input_text", "text": "ERROR:"}, *encoded] if result.is_error else encoded


def _error_text(result: ToolResult) -> str:
    text = result.text
    return f"ERROR: {text}" if result.is_error and not text.startswith("ERROR") else text


def _shell_result(result: ToolResult, raw: JSON) -> JSON:
    """The result is the list of what each command gave, as JSON text, or plain text, which is the output of one command."""
    output = _json_of(result, list)
    if output is None:
        streams = {"stdout": "", "stderr": result.text} if result.is_error else {"stdout": result.text, "stderr": ""}
        output = [{**streams, "outcome": {"type": "exit", "exit_code": int(result.is_error)}}]
    item: JSON = {"type": "shell_call_output", "call_id": result.call_id, "output": output}
    limit = as_dict(raw.get("action")).get("max_output_length")
    return item if limit is None else {**item, "max_output_length": limit}


def _local_shell_result(result: ToolResult, raw: JSON) -> JSON:
    """This one carries the call's id in `id`, and its output is a JSON text."""
    text = _error_text(result)
    return {"type": "local_shell_call_output", "id": result.call_id, "output": text if _is_json(text) else compact(text)}


def _patch_result(result: ToolResult, raw: JSON) -> JSON:
    status = "failed" if result.is_error else "completed"
    return {"type": "apply_patch_call_output", "call_id": result.call_id, "status": status, "output": result.text}


def _computer_result(result: ToolResult, raw: JSON) -> JSON:
    """A screenshot. The tool saw the pending safety checks among its arguments; that it went on acknowledges them."""
    picture = next((piece for piece in result_pieces(result) if isinstance(piece, Image)), None)
    if picture is None:
        raise InvalidRequest(f"the result of computer call {result.call_id!r} must contain a screenshot (an Image)")
    screenshot = {"type": "computer_screenshot", "image_url": _image_url(picture)}
    item: JSON = {"type": "computer_call_output", "call_id": result.call_id, "output": screenshot}
    checks = as_list(raw.get("pending_safety_checks"))
    return {**item, "acknowledged_safety_checks": _without_output_fields(checks)} if checks and not result.is_error else item


def _tool_search_result(result: ToolResult, raw: JSON) -> JSON:
    tools = _json_of(result, list)
    if tools is None:
        raise InvalidRequest(f"the result of tool search {result.call_id!r} must be the JSON text of a list of tools")
    return {
        "type": "tool_search_output",
        "call_id": result.call_id,
        "execution": "client",
        "status": "completed",
        "tools": tools,
    }


def _json_of(result: ToolResult, kind: type) -> Any:
    """The JSON value that the result's text is, if it is one of this kind, else None."""
    try:
        value = read_json(result.text)
    except ValueError:
        return None
    return value if isinstance(value, kind) else None


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except ValueError:
        return False
    return True


_RESULTS: Mapping[str, Callable[[ToolResult, JSON], JSON]] = {
    "function": _function_result,
    "custom": _custom_result,
    "shell": _shell_result,
    "local_shell": _local_shell_result,
    "apply_patch": _patch_result,
    "computer": _computer_result,
    "tool_search": _tool_search_result,
}


# ---------------------------------------------------------------- encode: the exceptions to raw replay


def _replayed(raw: JSON) -> JSON:
    """An item as input takes it back: without `status` where it is refused, and without output-only fields and nulls."""
    dropped = "status" if as_text(raw.get("type")) in FREE_OF_STATUS else None
    return {key: value for key, value in as_dict(_without_output_fields(raw)).items() if key != dropped}


def _without_output_fields(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_output_fields(element) for element in value]
    if not isinstance(value, dict):
        return value
    return {
        key: element if key in VERBATIM else _without_output_fields(element)
        for key, element in value.items()
        if key not in OUTPUT_ONLY and (element is not None or key in NULLABLE)
    }


def _without_lost_reasoning(items: Iterable[JSON]) -> list[JSON]:
    """With `store` false the server cannot find a reasoning item by its id. One that carries neither the encrypted nor the
    open text would be a 404, so it goes; what followed it would then miss it, so that loses its server id as well."""
    kept: list[JSON] = []
    lost = False
    for item in items:
        kind = as_text(item.get("type"))
        if kind == "reasoning":
            lost = not (item.get("encrypted_content") or item.get("content"))
            kept += [] if lost else [item]
        elif not lost or kind not in RECORDS:
            kept.append(_without_id(item) if lost and kind in FREE_OF_ID else item)
    return kept


def _without_id(item: JSON) -> JSON:
    return {key: value for key, value in item.items() if key != "id"}


def _without_trailing_reasoning(items: Sequence[JSON]) -> list[JSON]:
    """Reasoning without the item that it led to is refused. It is what an answer cut while thinking leaves behind."""
    end = len(items)
    while end and items[end - 1].get("type") == "reasoning":
        end -= 1
    return list(items[:end])


# ---------------------------------------------------------------- decode: one function per thing


def decode_item(item: JSON, place: int = 0, service: str | None = None) -> Part:
    """The part for one output item. `place` names a call that came without any id."""
    part = _decode_item(item, as_text(item.get("type")), place)
    return part if service is None else part.model_copy(update={"service": service})


def _decode_item(item: JSON, kind: str, place: int) -> Part:
    if _is_answer(item):
        return Text(text=_said(item, "content"), wire=NAME, raw=item)
    if kind == "reasoning":
        return Reasoning(text=_said(item, "summary") + _said(item, "reasoning"), wire=NAME, raw=item)
    if kind in CLIENT_CALLS and not _server_runs(item):
        return _decode_call(item, kind, place)
    return Opaque(kind=kind or "unknown", wire=NAME, raw=item)


def _is_answer(item: JSON) -> bool:
    """A compacted conversation holds messages of the user too; those are not the answer."""
    if item.get("type") != "message":
        return False
    role = item.get("role") or "assistant"
    if not isinstance(role, str):
        raise ProtocolError(f"the role of a message must be a word, not a {type(role).__name__}")
    return role == "assistant"


def _server_runs(item: JSON) -> bool:
    if item.get("type") == "tool_search_call":
        return item.get("execution") != "client"
    return as_text(as_dict(item.get("environment")).get("type")).startswith("container")


def _decode_call(item: JSON, kind: str, place: int) -> ToolCall:
    call_id = as_text(item.get("call_id")) or as_text(item.get("id")) or f"call_{place}"
    named = kind in _TEXT_FIELD
    name = as_text(item.get("name")) or ("" if named else CLIENT_CALLS[kind])
    if item.get("status") == "incomplete":
        return cut_call(call_id, name, _said(item, _TEXT_FIELD.get(kind, "")), wire=NAME)
    if kind == "function_call":
        return function_call(call_id, name, item.get("arguments") or "", wire=NAME, raw=item)
    if kind == "custom_tool_call":
        text = said(item.get("input"))
        if not name:
            return cut_call(call_id, "", text, wire=NAME, why=NO_NAME)
        return ToolCall(call_id=call_id, name=name, args={"input": text}, raw_args=text, kind="custom", wire=NAME, raw=item)
    return ToolCall(call_id=call_id, name=name, args=_hosted_args(item, kind), kind=CLIENT_CALLS[kind], wire=NAME, raw=item)


_TEXT_FIELD = {"function_call": "arguments", "custom_tool_call": "input"}
"""Where a call keeps what the model wrote."""


def _hosted_args(item: JSON, kind: str) -> JSON:
    """The arguments of a tool that OpenAI defines and the client runs: the item's own fields, unset ones left out."""
    match kind:
        case "apply_patch_call":
            fields = an_object(item.get("operation"), "the operation of a call")
        case "computer_call":
            fields = {key: item.get(key) or None for key in ("action", "actions", "pending_safety_checks")}
        case "tool_search_call":
            return as_dict(item.get("arguments"))
        case _:
            fields = an_object(item.get("action"), "the action of a call")
    return {key: value for key, value in fields.items() if value is not None}


def _said(item: JSON, name: str) -> str:
    """The text that a whole item holds under one of the names by which a stream sends it."""
    match name:
        case "content":
            content = item.get("content")
            return content if isinstance(content, str) else "".join(map(_visible, listed(content, "content")))
        case "summary" | "reasoning":
            parts = listed(item.get("summary" if name == "summary" else "content"), name)
            return "".join(said(an_object(part, f"a part of the {name}").get("text")) for part in parts)
        case _:
            value = item.get(name)
            return value if isinstance(value, str) else "" if value is None else compact(value)


def _visible(part: Any) -> str:
    piece = an_object(part, "a part of the content")
    match named_kind(piece.get("type"), "a part of the content") if piece else "":
        case "output_text" | "text":
            return said(piece.get("text"))
        case "refusal":
            return said(piece.get("refusal"))
        case _:
            return ""


def _refuses(item: JSON) -> bool:
    return _is_answer(item) and any(as_dict(part).get("type") == "refusal" for part in as_list(item.get("content")))


def settle(items: Sequence[JSON], parts: Sequence[Part], status: str | None) -> list[Part]:
    """What only the whole answer tells about its calls: one whose result stands beside it was run by the server, and in an
    answer that did not complete only a call that says itself to be complete may be run."""
    answered = {
        word(item.get("call_id")) or word(item.get("id")) for item in items if as_text(item.get("type")).endswith("_output")
    }
    finished = status in ("completed", None)
    settled: list[Part] = []
    for item, part in zip(items, parts, strict=True):
        if isinstance(part, ToolCall) and part.call_id in answered:
            part = Opaque(kind=as_text(item.get("type")), wire=NAME, service=part.service, raw=item)
        elif isinstance(part, ToolCall) and part.raw is not None and not finished and item.get("status") != "completed":
            part = cut_call(part.call_id, part.name, part.raw_args, wire=NAME)
        settled.append(part)
    return settled


def decode_stop(response: JSON, items: Sequence[JSON], parts: Sequence[Part]) -> tuple[StopReason, str | None]:
    """Section R3: the status, then the items. An approval that waits for a human is no end, and resending cannot help it."""
    status = word(response.get("status"))
    if status == "incomplete":
        reason = word(as_dict(response.get("incomplete_details")).get("reason"))
        return INCOMPLETE.get(reason or "", StopReason.OTHER), reason or status
    if status != "completed":
        return StopReason.OTHER, status
    if any(map(_refuses, items)):
        return StopReason.REFUSAL, status
    if any(isinstance(part, ToolCall) for part in parts):
        return StopReason.TOOL_USE, status
    waits = any(item.get("type") == "mcp_approval_request" for item in items)
    return StopReason.OTHER if waits else StopReason.END, status


def decode_usage(usage: Any) -> Usage | None:
    """Section R6: cached and cache-written tokens are inside the input, reasoning inside the output; a total that is larger
    by exactly the reasoning shows a server that counts it apart."""
    if not isinstance(usage, dict) or not usage:
        return None
    given, made, total = (as_count(usage.get(key)) for key in ("input_tokens", "output_tokens", "total_tokens"))
    inputs, outputs = as_dict(usage.get("input_tokens_details")), as_dict(usage.get("output_tokens_details"))
    reasoning = as_count(outputs.get("reasoning_tokens"))
    if reasoning and None not in (given, made, total) and total == (given or 0) + (made or 0) + reasoning:
        made = (made or 0) + reasoning
    return Usage(
        input_tokens=given,
        output_tokens=made,
        cached_tokens=as_count(inputs.get("cached_tokens")),
        cache_write_tokens=as_count(inputs.get("cache_write_tokens")),
        reasoning_tokens=reasoning,
        raw=usage,
    )


# ---------------------------------------------------------------- the stream

Key = tuple[str, int]
"""One stretch of text inside an item: its name (content, summary, reasoning, arguments, input) and its number there."""

_ALLOWED: Mapping[str, frozenset[str]] = {
    "message": frozenset({"content"}),
    "reasoning": frozenset({"summary", "reasoning"}),
    "function_call": frozenset({"arguments"}),
    "custom_tool_call": frozenset({"input"}),
}
"""Which stretches an item of a known type can have. Other types may have any."""


@dataclass(slots=True)
class Item:
    """An output item that is being built: as it was added, the pieces that came since, and its part once it is done.

    doubts: texts of `.done` events that went on differently from the deltas; only the whole item can settle them.
    """

    index: int
    raw: JSON
    pieces: dict[Key, list[str]] = field(default_factory=dict)
    doubts: dict[Key, str] = field(default_factory=dict)
    refuses: bool = False
    part: Part | None = None
    is_answer: bool = False

    @property
    def kind(self) -> str:
        return as_text(self.raw.get("type"))

    @property
    def is_shown(self) -> bool:
        """Whether its pieces become events: not those of an unknown type, nor of a message that is not the model's."""
        return self.is_answer if self.kind == "message" else self.kind in _TEXTS

    @property
    def call_id(self) -> str:
        return as_text(self.raw.get("call_id")) or as_text(self.raw.get("id"))

    def open(self, key: Key) -> list[str]:
        """The pieces of a stretch that has not begun yet."""
        as_place(key[1])
        allowed = _ALLOWED.get(self.kind)
        if allowed is not None and key[0] not in allowed:
            raise ProtocolError(f"a piece of {key[0]} for output item {self.index}, which is a {self.kind}")
        return self.pieces.setdefault(key, [])

    def texts(self, name: str) -> list[str]:
        """What the deltas gave, one text per stretch, in order."""
        return ["".join(pieces) for _, pieces in sorted((k, v) for k, v in self.pieces.items() if k[0] == name)]

    def delta(self, name: str, text: str) -> Event:
        """The unified event for a piece of this item."""
        if name == "content":
            return TextDelta(self.index, text)
        if name in ("summary", "reasoning"):
            return ReasoningDelta(self.index, text)
        return ArgumentsDelta(self.index, self.call_id, text)


_STEPS: Mapping[str, Sequence[str]] = {
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_call_arguments": ("delta", "done"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "code_interpreter_call_code": ("delta", "done"),
    "shell_call_command": ("added", "delta", "done"),
    "shell_call_output_content": ("delta", "done"),
    "compaction": ("compacting",),
    "content_part": ("added", "done"),
    "reasoning_summary_part": ("added", "done"),
    "output_text.annotation": ("added",),
    "audio": ("delta", "done"),
    "audio.transcript": ("delta", "done"),
}
_PROGRESS = tuple(f"response.{thing}.{step}" for thing, steps in _STEPS.items() for step in steps)
"""Documented events that only say how far something is; what they announce stands whole in `response.output_item.done`."""

_STRETCHES = (
    "output_text",
    "refusal",
    "reasoning_summary_text",
    "reasoning_text",
    "function_call_arguments",
    "custom_tool_call_input",
)
_TEXT_EVENTS = tuple(f"response.{stretch}.{step}" for stretch in _STRETCHES for step in ("delta", "done"))


class ResponsesDecoder(StreamDecoder):
    """response.created, then items (added, deltas, done; told apart by `output_index`), then one terminal event.

    Section R4. Deltas are for showing; the item in `output_item.done` is the truth about the item (its encrypted reasoning
    too), the terminal event is the truth about status, error and usage. The first terminal event wins, everything after it
    is ignored, so the table has no row for "DONE": an `error` followed by `response.failed` is real.
    """

    TABLE: ClassVar[Table] = {
        "WAIT": {
            "response.created": "OPEN",
            "response.queued": "OPEN",
            "response.in_progress": "OPEN",
            "response.output_item.added": "OPEN",
            "response.output_item.done": "OPEN",
            "response.completed": "DONE",
            "response.incomplete": "DONE",
            "response.failed": "FAILED",
            "error": "FAILED",
            "keepalive": "WAIT",
        },
        "OPEN": {
            "response.created": "OPEN",
            "response.queued": "OPEN",
            "response.in_progress": "OPEN",
            "response.output_item.added": "OPEN",
            **{event: "OPEN" for event in _TEXT_EVENTS},
            "response.output_item.done": "OPEN",
            "response.completed": "DONE",
            "response.incomplete": "DONE",
            "response.failed": "FAILED",
            "error": "FAILED",
            "keepalive": "OPEN",
            **{event: "OPEN" for event in _PROGRESS},
        },
    }

    TYPE = "type"
    NAMES_EVENTS = True

    def __init__(self, wire: OpenAIResponses) -> None:
        super().__init__(wire)
        self._wire = wire
        self._seen: JSON = {}  # the response object, from the snapshots and the terminal event
        self._items: dict[int, Item] = {}
        self._named: dict[str, Item] = {}  # the same items by id and call id, for servers that send no index

    def kind(self, payload: Any, sse: ServerSentEvent) -> str:
        kind = payload.get("type")
        if kind is None:  # a proxy's bare error object, or a server that names the event in the SSE line only
            kind = "error" if payload.get("error") else sse.event
        name: str = kind
        return name

    def end_words(self) -> str:
        return "response.completed, response.incomplete or response.failed"

    # ------------------------------------------------------------ the response

    def _on_response_created(self, payload: JSON) -> Sequence[Event]:
        self._learn(payload.get("response"))
        return NOTHING

    _on_response_queued = _on_response_created
    _on_response_in_progress = _on_response_created

    def _on_response_completed(self, payload: JSON) -> Sequence[Event]:
        return self._finish(payload, "completed")

    def _on_response_incomplete(self, payload: JSON) -> Sequence[Event]:
        return self._finish(payload, "incomplete")

    def _on_response_failed(self, payload: JSON) -> Sequence[Event]:
        self._learn(payload.get("response"))
        raise self.wire.api_error(200, payload)

    def _on_error(self, payload: JSON) -> Sequence[Event]:
        raise self.wire.api_error(200, payload)

    def _learn(self, response: Any) -> None:
        """A later snapshot replaces an earlier one, but for what it leaves out."""
        known = self._seen
        self._seen = known | {
            key: value for key, value in as_dict(response).items() if value is not None or key not in known
        }

    def _finish(self, payload: JSON, event_says: str) -> Sequence[Event]:
        final = as_dict(payload.get("response"))
        self._learn(final)
        if _reports_failure(final):
            raise self.wire.api_error(200, payload)
        if final.get("status") not in ("completed", "incomplete", "cancelled"):
            self._seen["status"] = event_says
        output = [item for item in as_list(final.get("output")) if isinstance(item, dict)]
        events = self._take_missing(output)
        self._check_calls(output)
        left = [item for item in self._in_order() if item.part is None]
        if left and output and self._seen["status"] == "completed":
            raise ProtocolError(f"the response is completed without output item {left[0].index}, which was never done")
        events += [self._cut(item) for item in left]
        self._response = self.build(finished=True)
        return [*events, Done(self._response)]

    # ------------------------------------------------------------ items

    def _on_response_output_item_added(self, payload: JSON) -> Sequence[Event]:
        raw = payload.get("item")
        if isinstance(raw, dict):  # a null item is real, and nothing
            index = payload.get("output_index")
            index = self._next_index() if index is None else index
            if index in self._items:
                raise ProtocolError(f"output item {index} is added twice")
            self._add(index, raw)
        return NOTHING

    def _on_response_output_item_done(self, payload: JSON) -> Sequence[Event]:
        raw = payload.get("item")
        if not isinstance(raw, dict):
            return NOTHING
        index = payload.get("output_index")
        same = self._find(raw.get("id"), raw.get("call_id"))
        item = self._items.get(as_place(index)) if index is not None else same
        if item is None and same is not None and same.part is None:
            raise ProtocolError(f"output item {same.index} is done at the place {index}")
        if item is None:  # never added: the item is whole, so nothing is lost
            item = self._add(self._next_index() if index is None else index, raw)
        if item.part is None:
            return self._close(item, raw)
        part = self._decode(item, raw)
        if _says(part) != _says(item.part):
            raise _contradiction(item, "item")
        item.raw, item.part = raw, part  # a second "done" may bring more than the first, but says the same
        return NOTHING

    def _add(self, index: int, raw: JSON) -> Item:
        item = self._items[as_place(index)] = Item(index, raw, is_answer=_is_answer(raw))
        for name in (raw.get("id"), raw.get("call_id")):
            if name:
                self._named.setdefault(name, item)
        return item

    def _decode(self, item: Item, raw: JSON) -> Part:
        return decode_item(raw, item.index, self._wire.service)

    def _close(self, item: Item, raw: JSON) -> list[Event]:
        """The item is whole: what had not been shown of it, and its part."""
        events: list[Event] = []
        if (raw.get("type"), raw.get("role")) != (item.raw.get("type"), item.raw.get("role") or raw.get("role")):
            raise _contradiction(item, "type or role")
        for name in _TEXTS.get(as_text(raw.get("type")), ()):
            raw, rest = _reconcile(item, raw, name)
            events += [item.delta(name, rest)] if rest and item.is_shown else []
        item.pieces.clear()  # no more are taken, and they need much more room than the text
        item.raw = raw
        item.part = self._decode(item, raw)
        return [*events, PartDone(item.index, item.part)]

    def _cut(self, item: Item) -> PartDone:
        """An item that was still open at the terminal event, which had no copy of it."""
        if item.doubts:
            raise _contradiction(item, next(iter(item.doubts))[0])
        item.part = self._unfinished(item)
        item.raw = {**_filled(item), "status": "incomplete"}
        return PartDone(item.index, item.part)

    def _take_missing(self, output: Sequence[JSON]) -> list[Event]:
        """What the terminal event's copy of the output adds: items still open, and items that were never streamed. An empty
        copy (seen behind some backends) adds nothing; the collected items are the answer."""
        items = self._in_order()
        if len(output) <= len(items) and all(item.part is not None for item in items):
            return []
        events: list[Event] = []
        for raw, item in _matched(output, items):
            if item is None:
                item = self._add(self._next_index(), raw)
            if item.part is None:
                events += self._close(item, raw)
        return events

    def _check_calls(self, output: Sequence[JSON]) -> None:
        """The terminal event's copy repeats the calls as well. One that it tells otherwise would be another deed."""
        for raw, item in _matched(output, self._in_order()):
            if item is None or not isinstance(item.part, ToolCall):
                continue
            if any(raw.get(name) != item.raw.get(name) for name in _DEED):
                other = self._decode(item, raw)
                if not isinstance(other, ToolCall) or (other.name, other.args) != (item.part.name, item.part.args):
                    raise _contradiction(item, "call")

    def _in_order(self) -> list[Item]:
        return [item for _, item in sorted(self._items.items())]

    def _next_index(self) -> int:
        return max(self._items, default=-1) + 1

    def _find(self, *names: Any) -> Item | None:
        return next((self._named[name] for name in names if name in self._named), None)

    def _item(self, payload: JSON) -> Item:
        """The item that a delta belongs to: by `output_index`, because ids may change and some events have none."""
        index = payload.get("output_index")
        item = self._items.get(index) if index is not None else self._find(payload.get("item_id"))
        if item is None:
            raise ProtocolError(f"a piece of output item {index}, which was never added")
        return item

    # ------------------------------------------------------------ pieces of text

    def _on_response_output_text_delta(self, payload: JSON) -> Sequence[Event]:
        """Nearly every event of a stream is this one, so it is written out."""
        item = self._items.get(payload.get("output_index")) or self._item(payload)  # type: ignore[arg-type]
        text = payload["delta"]
        if not text or item.part is not None:
            return NOTHING
        if not isinstance(text, str):
            raise no_text(text)
        key = ("content", payload.get("content_index") or 0)
        pieces = item.pieces.get(key)
        if pieces is None:
            pieces = item.open(key)
        pieces.append(text)
        return (TextDelta(item.index, text),) if item.is_answer else NOTHING

    def _on_response_refusal_delta(self, payload: JSON) -> Sequence[Event]:
        self._item(payload).refuses = True
        return self._on_response_output_text_delta(payload)

    def _on_response_reasoning_summary_text_delta(self, payload: JSON) -> Sequence[Event]:
        return self._piece(payload, "summary", payload.get("summary_index") or 0)

    def _on_response_reasoning_text_delta(self, payload: JSON) -> Sequence[Event]:
        return self._piece(payload, "reasoning", payload.get("content_index") or 0)

    def _on_response_function_call_arguments_delta(self, payload: JSON) -> Sequence[Event]:
        return self._piece(payload, "arguments", 0)

    def _on_response_custom_tool_call_input_delta(self, payload: JSON) -> Sequence[Event]:
        return self._piece(payload, "input", 0)

    def _piece(self, payload: JSON, name: str, number: int) -> Sequence[Event]:
        item = self._item(payload)
        text = payload["delta"]
        if not text or item.part is not None:
            return NOTHING
        if not isinstance(text, str):
            raise no_text(text)
        key = (name, number)
        pieces = item.pieces.get(key)
        if pieces is None:
            pieces = item.open(key)
        pieces.append(text)
        return (item.delta(name, text),) if item.is_shown else NOTHING

    def _on_response_output_text_done(self, payload: JSON) -> Sequence[Event]:
        return self._whole(payload, "content", payload.get("content_index") or 0, payload.get("text"))

    def _on_response_refusal_done(self, payload: JSON) -> Sequence[Event]:
        self._item(payload).refuses = True
        return self._whole(payload, "content", payload.get("content_index") or 0, payload.get("refusal"))

    def _on_response_reasoning_summary_text_done(self, payload: JSON) -> Sequence[Event]:
        return self._whole(payload, "summary", payload.get("summary_index") or 0, payload.get("text"))

    def _on_response_reasoning_text_done(self, payload: JSON) -> Sequence[Event]:
        return self._whole(payload, "reasoning", payload.get("content_index") or 0, payload.get("text"))

    def _on_response_function_call_arguments_done(self, payload: JSON) -> Sequence[Event]:
        return self._whole(payload, "arguments", 0, payload.get("arguments"))

    def _on_response_custom_tool_call_input_done(self, payload: JSON) -> Sequence[Event]:
        return self._whole(payload, "input", 0, payload.get("input"))

    def _whole(self, payload: JSON, name: str, number: int, text: Any) -> Sequence[Event]:
        """A `.done` event repeats what its deltas gave. It may complete them (some servers send none); it must not
        contradict them. A text that begins as shown and then goes on differently is kept in doubt until the item comes."""
        item = self._item(payload)
        if item.part is not None or not isinstance(text, str):
            return NOTHING
        key = (name, number)
        pieces = item.pieces.get(key)
        if pieces is None:
            pieces = item.open(key)
        shown = _length_of_start(text, pieces)
        if shown is not None:
            rest = text[shown:]
            if rest or len(pieces) > 1:  # a single piece is kept: whoever was shown it still holds it
                item.pieces[key] = [text]
            return (item.delta(name, rest),) if rest and item.is_shown else NOTHING
        if name == "arguments" and _same_json(text, "".join(pieces)):
            return NOTHING
        if name in ("arguments", "input") or not text.startswith(pieces[0]):
            raise _contradiction(item, name)
        item.doubts[key] = text
        return NOTHING

    # ------------------------------------------------------------ the answer

    def growing(self) -> Iterable[list[str]]:
        return [pieces for item in self._items.values() if item.part is None for pieces in item.pieces.values()]

    def build(self, *, finished: bool) -> Response:
        if not self._seen and not self._items:
            raise IncompleteStream("nothing has arrived")
        items = self._in_order()
        parts = [item.part if item.part is not None else self._unfinished(item) for item in items]
        raws = [item.raw if item.part is not None else _filled(item) for item in items]
        return self._wire.respond({**self._seen, "output": raws}, raws, parts)

    def _unfinished(self, item: Item) -> Part:
        """An item that was never done. Its text may be shown; a call in it is never run and nothing of it is replayed."""
        part = self._decode(item, _filled(item))
        if isinstance(part, ToolCall):
            return cut_call(part.call_id, part.name, part.raw_args, wire=NAME)
        return part.model_copy(update={"raw": None})


_DEED = ("type", "name", "arguments", "input", "action", "actions", "operation", "status")
"""The fields of a call that say what is to be done."""

_TEXTS: Mapping[str, tuple[str, ...]] = {kind: tuple(sorted(names, reverse=True)) for kind, names in _ALLOWED.items()}
"""The stretches of each item type, in the order in which a whole item is read (the summary before the open reasoning)."""


def _contradiction(item: Item, name: str) -> ProtocolError:
    return ProtocolError(f"the whole {name} of output item {item.index} contradicts the pieces that were streamed before it")


def _says(part: Part) -> Any:
    """What a person has been shown of a part, or what would be run."""
    match part:
        case ToolCall():
            return part.type, part.name, part.args
        case Text() | Reasoning():
            return part.type, part.text
        case _:
            return part.type


def _length_of_start(text: str, pieces: Sequence[str]) -> int | None:
    """The length of the pieces if `text` begins with them, one after another. They are not joined: the text of a long answer
    would be held a third time."""
    place = 0
    for piece in pieces:
        if not text.startswith(piece, place):
            return None
        place += len(piece)
    return place


def _same_json(one: str, other: str) -> bool:
    """Whether two argument texts mean the same: a server may write them anew, with other spaces."""
    try:
        return bool(read_json(one) == read_json(other))
    except ValueError:
        return False


def _reconcile(item: Item, raw: JSON, name: str) -> tuple[JSON, str]:
    """The whole item, completed by what was streamed where it holds nothing, and the text that was not shown yet.
    Raises ProtocolError if the item and the stream contradict each other."""
    shown, told = "".join(item.texts(name)), _said(raw, name)
    doubted = {key: text for key, text in item.doubts.items() if key[0] == name}
    if doubted:  # the item and `.done` agree against the deltas: both are whole copies, so they are believed
        believed = "".join(
            doubted.get(key, "".join(pieces)) for key, pieces in sorted(item.pieces.items()) if key[0] == name
        )
        if told == believed:
            return raw, ""
        raise _contradiction(item, name)
    if shown and not told:
        return _filled(item, raw, name), ""
    if told.startswith(shown):
        return raw, told[len(shown) :]
    if told.strip() == shown.strip() or (name == "arguments" and _same_json(told, shown)):
        return raw, ""
    raise _contradiction(item, name)


def _filled(item: Item, raw: JSON | None = None, only: str | None = None) -> JSON:
    """The item with the streamed texts in their places, as the whole item would hold them."""
    filled = dict(item.raw if raw is None else raw)
    for name in (only,) if only else _TEXTS.get(item.kind, ()):
        texts = item.texts(name)
        if not texts:
            continue
        match name:
            case "content":
                key = "refusal" if item.refuses else "text"
                filled["content"] = [{"type": "refusal" if item.refuses else "output_text", key: text} for text in texts]
            case "summary":
                filled["summary"] = [{"type": "summary_text", "text": text} for text in texts]
            case "reasoning":
                filled["content"] = [{"type": "reasoning_text", "text": text} for text in texts]
            case _:
                filled[name] = "".join(texts)
    return filled


def _matched(output: Sequence[JSON], items: Sequence[Item]) -> list[tuple[JSON, Item | None]]:
    """Each item of the terminal copy with the streamed item that it repeats: the one with the same id or call id, else (some
    servers change the ids from event to event) the next one of its type."""
    by_id = {name: item for item in items for name in (item.raw.get("id"), item.raw.get("call_id")) if name}
    found = [by_id.get(raw.get("id") or "") or by_id.get(raw.get("call_id") or "") for raw in output]
    taken = {item.index for item in found if item is not None}
    free: dict[str, deque[Item]] = {}
    for item in items:
        if item.index not in taken:
            free.setdefault(item.kind, deque()).append(item)
    matched: list[tuple[JSON, Item | None]] = []
    for raw, same in zip(output, found, strict=True):
        waiting = free.get(as_text(raw.get("type")))
        matched.append((raw, same if same is not None else waiting.popleft() if waiting else None))
    return matched
