"""Gemini Interactions: one timeline of steps, and a stream that has to be put together by index.

    POST {base}/{version}/interactions        x-goog-api-key        docs/wire/gemini-interactions.md

What is peculiar to it: a *step* is the unit, for both sides: what a person said (`user_input`), what the model thought, said
and called, what a tool answered. One step is one part. Thoughts are steps of their own and carry the signature that a call
after them needs, so the steps of an answer go back unchanged and in order. `store` is true unless the request says false.
`total_output_tokens` leaves the thoughts out. A policy block is an *error code*, not a status. An answer can stop in the
middle (`requires_continuation`) and go on in the next request, which carries a token instead of the answer.

Exceptions to raw replay, each a small function below: a call without an id gets the one that its result refers to, a call
whose arguments were no object goes back as an object that says so, a bare content of the revision of early 2026 is wrapped
into a step, and steps which only repeat what the client sent (`user_input`, `function_result`) stay behind.

Three written forms of the events exist, and all are read (section 4): the reference's, which is what the service sends; the
migration guide's, which its REST examples still show; and the revision that was removed in June 2026.

What this file does not do: background runs and their polling, agents' environments, live sessions, files, webhooks. Steps of
tools that the service ran itself are opaque parts. Automatic continuation is the tool loop's work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

from lessonlib import capabilities
from lessonlib.errors import APIError, IncompleteStream, InvalidRequest, ProtocolError
from lessonlib.history import arrange
from lessonlib.schema import GEMINI_JSON, adapt
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
    NOTHING,
    ErrorDetails,
    HTTPRequest,
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
    function_call,
    is_daily_quota,
    join_middle,
    listed,
    named_kind,
    no_text,
    parse_args,
    rpc_details,
    rpc_retry_delay,
    said,
    total_count,
    word,
)  # fmt: skip

NAME = "gemini-interactions"

VERSION = "v1"
"""The path's version. The API is generally available on v1 since June 2026; v1beta is still served."""

LEVELS = ("minimal", "low", "medium", "high", "xhigh")
"""The words of `thinking_level`. Which of them a model takes, the model decides."""

ONE_CALL = "Call at most one tool at a time, and wait for its result before you call the next one."
"""The API has no switch against parallel calls, so `Request.parallel=False` can only be asked for, in the system
instruction. The model usually follows; a caller must still be ready for two calls."""

CONTINUATION = "continuation"
"""Kind of the opaque part at the end of an answer that goes on in the next request. Its raw JSON: `continuation_token`, and
`interaction_id` if the interaction has an id."""

STOP: Mapping[str, StopReason] = {
    "completed": StopReason.END,  # or TOOL_USE, if a call is in it
    "requires_action": StopReason.TOOL_USE,
    "incomplete": StopReason.LENGTH,
    "budget_exceeded": StopReason.LENGTH,
    "requires_continuation": StopReason.PAUSE,
    "in_progress": StopReason.OTHER,
    "queued": StopReason.OTHER,
    "idle": StopReason.OTHER,
    "failed": StopReason.OTHER,  # raised as an APIError; this is what its `partial` says
    "cancelled": StopReason.OTHER,
}

WHOLE = ("completed", "requires_action")
"""The statuses of an answer in which nothing was cut off."""

POLICY_CODES = frozenset(
    {"safety", "recitation", "language", "prohibited_content", "spii", "blocklist", "content_blocked"}
)  # fmt: skip
"""Error codes that mean "this will not be answered"; every code that starts with `image_` is one too."""

RETRYABLE_CODES = frozenset({
    "rate_limit_exceeded", "too_many_requests", "resource_exhausted",
    "api_error", "internal", "service_unavailable", "unavailable",
    "deadline_exceeded", "gateway_timeout",
    "malformed_function_call", "malformed_tool_call", "unexpected_tool_call",  # the model's slip, another sample may do
})  # fmt: skip
FINAL_CODES = frozenset({"quota_exceeded", "cancelled", "unimplemented", "already_exists", "aborted"})
"""Codes that no waiting helps against, whatever the HTTP status says: a daily quota is a 429, too."""

RPC_CODES = (
    "ok", "cancelled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists",
    "permission_denied", "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented",
    "internal", "unavailable", "data_loss", "unauthenticated",
)  # fmt: skip
"""google.rpc.Code by number: the form in which a `model_output.error` gives its code."""

CONTENTS = ("text", "image", "audio", "video", "document")
"""Kinds of content. In the removed revision they stood in `outputs` without a step around them."""

ECHOES = ("user_input", "function_result")
"""Steps that the client wrote; a GET of an interaction repeats them, a POST of mid-2026 sometimes did."""

LISTS: Mapping[str, str] = {"model_output": "content", "thought": "summary"}
"""The steps that hold a list of contents, and where."""


class GeminiInteractions(WireFormat):
    """The Interactions API. `version` is the path's version; `revision` is sent as `Api-Revision` if given (it chose between
    the revisions of spring 2026 and means nothing on v1)."""

    name: ClassVar[str] = NAME
    provider: ClassVar[str] = "gemini"
    key_variables: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    base_url_variables: ClassVar[tuple[str, ...]] = ("GOOGLE_GEMINI_BASE_URL",)
    default_base_url: ClassVar[str] = "https://generativelanguage.googleapis.com"

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        version: str = VERSION,
        revision: str | None = None,
    ) -> None:
        super().__init__(model, api_key=api_key, base_url=base_url, headers=headers)
        self.base_url = self.base_url.removesuffix(f"/{version}")  # both spellings are in use; the path below has it
        self.version = version
        self.revision = revision

    # ------------------------------------------------------------ encode

    def encode(self, request: Request, *, stream: bool = False) -> HTTPRequest:
        return super().encode(_without_stale_chain(request), stream=stream)

    def path(self, model: str, stream: bool) -> str:
        return f"/{self.version}/interactions"

    def auth(self) -> dict[str, str]:
        headers = {"api-revision": self.revision} if self.revision else {}
        if self._key is not None and "authorization" not in self.headers:  # an OAuth token takes the key's place
            headers["x-goog-api-key"] = self._key.reveal()
        return headers

    def body(self, request: Request, model: str, stream: bool) -> JSON:
        extra = request.extra.get(NAME, {})
        body: JSON = {} if "agent" in extra else {"model": model}  # exactly one of the two is allowed
        system = _system(request)
        if system:
            body["system_instruction"] = system
        body |= _encode_input(request, extra)
        if request.tools:
            body["tools"] = [_encode_tool(tool) for tool in request.tools]
        config = _generation_config(request, capabilities.of(model))
        if config:
            body["generation_config"] = config
        if request.output_schema is not None:
            schema = adapt(request.output_schema, GEMINI_JSON).schema
            body["response_format"] = {"type": "text", "mime_type": "application/json", "schema": schema}
        body["store"] = False  # left out, it would be true
        body["stream"] = stream
        return body

    # ------------------------------------------------------------ decode

    def decode(self, payload: Any) -> Response:
        if _holds_error(payload):
            raise self.api_error(200, payload)
        interaction = as_dict(payload)
        response = self.respond(interaction, _decode_steps(interaction))
        if response.raw_stop == "failed":
            raise self.failure(response)
        return response

    def respond(self, interaction: JSON, parts: Sequence[Part]) -> Response:
        """The Response for a whole interaction object whose steps have been decoded already."""
        raw_stop = word(interaction.get("status"))
        stop = STOP.get(raw_stop or "", StopReason.OTHER)
        if stop is StopReason.END and any(isinstance(part, ToolCall) for part in parts):
            stop = StopReason.TOOL_USE
        goes_on = [] if stop is not StopReason.PAUSE else _continuation(interaction)
        return Response(
            id=as_text(interaction.get("id")),
            model=as_text(interaction.get("model")),
            provider=self.provider,
            wire=NAME,
            message=Message(role="assistant", parts=[*parts, *goes_on]),
            stop=stop,
            raw_stop=raw_stop,
            usage=decode_usage(interaction.get("usage")),
            raw=interaction,
        )

    def decoder(self) -> StreamDecoder:
        return InteractionsDecoder(self)

    @classmethod
    def recognises(cls, payload: Any) -> int:
        if isinstance(payload, list) and len(payload) == 1:
            payload = payload[0]
        outer = as_dict(payload)
        if "event_type" in outer or outer.get("object") == "interaction":
            return 2
        if as_text(outer.get("type")).startswith(("interaction.", "step.")):  # the guide's form
            return 2
        status = as_text(as_dict(outer.get("interaction")).get("status")) or as_text(outer.get("status"))
        if status in STOP and any(key in outer for key in ("interaction", "steps", "outputs")):
            return 2
        return _recognises_error(outer)

    # ------------------------------------------------------------ errors

    def error_details(self, status: int, payload: Any) -> ErrorDetails:
        """Section 6. Two shapes: this API's own (`code` is a word) and google.rpc's (`code` is a number, `status` a word).
        The word decides before the HTTP status does."""
        error = error_object(payload)
        code, number = error.get("code"), as_count(error.get("code"))
        words = {text.lower() for text in (code, error.get("status")) if isinstance(text, str)}
        if is_daily_quota(error):
            words.add("quota_exceeded")  # this API's word for it
        if status == 200 and number is not None:
            status = number  # inside a stream the body is the only place for it
        refusal = any(text in POLICY_CODES or text.startswith("image_") for text in words)
        return ErrorDetails(
            message=as_text(error.get("message")),
            type=word(error.get("status")) or word(code),
            code=_reason(error) or word(code),
            retryable=not refusal and _retryable(status, words),
            refusal=refusal,
            retry_after=rpc_retry_delay(error),
        )

    def failure(self, response: Response) -> APIError:
        """The error behind status `failed`: the first of `errors`, else the `error` of a step, else the status alone."""
        steps = as_list(response.raw.get("steps")) or as_list(response.raw.get("outputs"))
        own = [response.raw.get("error"), *as_list(response.raw.get("errors"))]
        found = [*own, *(as_dict(step).get("error") for step in steps)]
        error = next((as_dict(each) for each in found if as_dict(each)), {})
        number = as_count(error.get("code"))
        if number is not None and number < len(RPC_CODES):
            error = {**error, "code": RPC_CODES[number]}
        message = as_text(error.get("message")) or "the interaction failed, and the service did not say why"
        return self.api_error(200, {"error": {**error, "message": message}}, partial=response)


# ---------------------------------------------------------------- encode: one function per thing


def encode_steps(messages: Sequence[Message], *, chained: bool = False) -> list[JSON]:
    """The `input` list. `chained`: the conversation before these messages is held by the service, so results at their
    beginning may answer calls that are not among them."""
    steps: list[JSON] = []
    if chained:
        results, messages = _answers_to_service(messages)
        steps += [_encode_result(result) for result in results]
    for message in arrange(messages, NAME, merge=False, drop=_stays_here):
        steps += _user_steps(message) if message.role == "user" else _model_steps(message)
    return steps


def _encode_input(request: Request, extra: JSON) -> JSON:
    """The conversation; or, where an answer goes on, the token and what the service needs beside it (section 1.4): the
    original input, or the id of the stored interaction that gave the token."""
    messages, hop = _split_continuation(request.messages)
    owner = as_text(hop.get("interaction_id")) if extra.get("store") else ""
    token = {"continuation_token": hop["continuation_token"]} if hop else {}
    if owner:
        return {"previous_interaction_id": owner, **token}
    steps = encode_steps(messages, chained="previous_interaction_id" in extra)
    if not steps and "input" not in extra:
        raise InvalidRequest("nothing to send: no message has any content")
    return {"input": steps, **token}


def _user_steps(message: Message) -> list[JSON]:
    """Each result is a step of its own; the rest of the message is one `user_input`."""
    results = [_encode_result(part) for part in message.parts if isinstance(part, ToolResult)]
    contents = [_encode_content(part) for part in message.parts if not isinstance(part, ToolResult)]
    return [*results, {"type": "user_input", "content": contents}] if contents else list(results)


def _model_steps(message: Message) -> list[JSON]:
    """Own steps as they came; foreign text and pictures as `model_output`, foreign calls as `function_call`."""
    steps: list[JSON] = []
    rebuilt: list[JSON] | None = None  # the content list of the `model_output` that is being rebuilt
    for part in message.parts:
        if part.inside and part.wire == NAME:
            continue
        raw = part.raw_for(NAME)
        if raw is None and not isinstance(part, ToolCall):
            if rebuilt is None:
                rebuilt = []
                steps.append({"type": "model_output", "content": rebuilt})
            rebuilt.append(_encode_content(part))
            continue
        rebuilt = None
        steps.append(_encode_call(part, raw) if isinstance(part, ToolCall) else _as_step(raw or {}))
    return steps


def _encode_content(part: Part) -> JSON:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return {"type": "image", **_image_source(part)}
        case Opaque(wire=wire, raw=dict(raw)) if wire == NAME:  # a document, a recording: a content of this API's own
            return raw
        case _:
            raise InvalidRequest(f"a {part.type} part without its own JSON cannot be sent to {NAME} in this place")


def _image_source(image: Image) -> JSON:
    """A data URL, which OpenAI takes as a URL, is base64 here."""
    if image.url is None:
        return {"mime_type": image.media_type, "data": image.data}
    if image.url.startswith("data:"):
        head, _, data = image.url.removeprefix("data:").partition(",")
        label, *parameters = head.split(";")
        if "base64" not in parameters:
            raise InvalidRequest("a data URL must be base64: data:image/png;base64,...")
        return {"mime_type": label, "data": data}
    return {"uri": image.url, **({"mime_type": image.media_type} if image.media_type else {})}


def _encode_result(result: ToolResult) -> JSON:
    """Section 2.3: a text stays a text, a list becomes a list of contents."""
    step: JSON = {"type": "function_result", "call_id": result.call_id}
    if result.name:
        step["name"] = result.name
    content = result.content
    step["result"] = content if isinstance(content, str) else [_encode_content(piece) for piece in content]
    return {**step, "is_error": True} if result.is_error else step


def _encode_tool(tool: Tool) -> JSON:
    encoded: JSON = {"type": "function", "name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    return {**encoded, "parameters": adapt(tool.schema_for_function(), GEMINI_JSON).schema}


def _system(request: Request) -> str:
    asks = request.parallel is False and request.tools and request.tool_choice != "none"
    return "\n\n".join(text for text in (request.system, ONE_CALL if asks else None) if text)


def _generation_config(request: Request, able: capabilities.Capabilities) -> JSON:
    config: JSON = {}
    if request.max_tokens is not None:
        config["max_output_tokens"] = request.max_tokens
    config |= _encode_reasoning(request, able)
    if request.stop:
        config["stop_sequences"] = request.stop
    choice = _tool_choice(request)
    return {**config, "tool_choice": choice} if choice is not None else config


def _encode_reasoning(request: Request, able: capabilities.Capabilities) -> JSON:
    """Section 1.3: levels, no budget, no off. Without `thinking_summaries` there would be signatures only."""
    asked = request.reasoning
    if asked is None:
        return {}
    if isinstance(asked, int):
        raise InvalidRequest(f'this API takes a thinking level (reasoning="low"), not a budget of {asked} tokens')
    levels = able.efforts or LEVELS
    if asked not in levels:
        hint = f'; thinking cannot be switched off here, "{levels[0]}" thinks least' if asked == "none" else ""
        raise InvalidRequest(f"{able.family or 'this API'} has no reasoning {asked!r}, only {', '.join(levels)}{hint}")
    return {"thinking_level": asked, "thinking_summaries": "auto"}


def _tool_choice(request: Request) -> str | JSON | None:
    """Section 1.2. `validated` is the free choice of `auto` with arguments held to the schema: what `strict` asks for."""
    choice = request.tool_choice
    if not (request.tools or request.extra.get(NAME, {}).get("tools")):
        return None
    if choice in (None, "auto"):
        return "validated" if any(tool.strict for tool in request.tools) else choice
    words = {"none": "none", "required": "any"}
    return words.get(choice or "") or {"allowed_tools": {"mode": "any", "tools": [choice]}}


# ---------------------------------------------------------------- encode: continuation and server-held state


def _split_continuation(messages: Sequence[Message]) -> tuple[Sequence[Message], JSON]:
    """(The conversation without the answer that goes on, what its continuation part holds); {} if no answer goes on."""
    hop: JSON = {}
    while messages and messages[-1].role == "assistant" and messages[-1].parts and _is_continuation(messages[-1].parts[-1]):
        hop = hop or as_dict(messages[-1].parts[-1].raw)
        messages = messages[:-1]
    return messages, hop


def _is_continuation(part: Part) -> bool:
    raw = part.raw_for(NAME)
    return isinstance(part, Opaque) and part.kind == CONTINUATION and bool(as_dict(raw).get("continuation_token"))


def _without_stale_chain(request: Request) -> Request:
    """Where a stored answer goes on, `previous_interaction_id` must name it, not the turn before it: the caller's own id,
    which `extra` would lay over the body, belonged to the first hop."""
    extra = request.extra.get(NAME, {})
    owner = _split_continuation(request.messages)[1].get("interaction_id")
    if not (owner and extra.get("store") and "previous_interaction_id" in extra):
        return request
    kept = {key: value for key, value in extra.items() if key not in ("previous_interaction_id", "input")}
    return request.replace(extra={**request.extra, NAME: kept})


def _answers_to_service(messages: Sequence[Message]) -> tuple[list[ToolResult], list[Message]]:
    """The results before the first answer, and the messages without them."""
    first = next((place for place, message in enumerate(messages) if message.role == "assistant"), len(messages))
    results = [result for message in messages[:first] for result in message.tool_results]
    rest = [
        Message(role="user", parts=[part for part in message.parts if not isinstance(part, ToolResult)])
        for message in messages[:first]
    ]
    return results, [*rest, *messages[first:]]


# ---------------------------------------------------------------- encode: the exceptions to raw replay


def _stays_here(part: Part) -> bool:
    """Tokens of continuations that are over, and steps that repeat what the client itself sent."""
    return isinstance(part, Opaque) and part.wire == NAME and (part.kind in ECHOES or _is_continuation(part))


def _encode_call(call: ToolCall, raw: JSON | None) -> JSON:
    """A call. Its id must be the one that the result names, its arguments must be an object (a string is refused)."""
    # the service documents no form for arguments that were no JSON; an object that says so keeps them visible to the model
    arguments = call.args if call.args is not None else {"INVALID_JSON": call.raw_args}
    if raw is None:
        return {"type": "function_call", "id": call.call_id, "name": call.name, "arguments": arguments}
    changes: JSON = {} if raw.get("id") == call.call_id else {"id": call.call_id}
    if call.args is None or not isinstance(raw.get("arguments"), dict):
        changes["arguments"] = arguments
    return {**raw, **changes} if changes else raw


def _as_step(raw: JSON) -> JSON:
    """A step as it came; a bare content of the removed revision inside a step."""
    return {"type": "model_output", "content": [raw]} if raw.get("type") in CONTENTS else raw


# ---------------------------------------------------------------- decode: one function per thing


def _decode_steps(interaction: JSON) -> list[Part]:
    """The parts of all steps; `outputs` is what the removed revision called them."""
    steps = interaction.get("steps")
    if steps is None:
        steps = interaction.get("outputs")
    status = interaction.get("status")
    if not isinstance(steps, list):
        if not isinstance(status, str) or status in WHOLE or steps is not None:
            raise ProtocolError(f"not an interaction: neither steps nor outputs in {compact(interaction)[:120]}")
        steps = []  # a run that has not finished, or that stopped before its first step
    anchor = as_text(interaction.get("id"))
    parts: list[Part] = []
    for place, step in enumerate(steps):
        made = decode_step(step, made_up_id(anchor, place))
        parts += made if status in WHOLE or not isinstance(status, str) else _without_unwritten(made)
        anchor = as_text(interaction.get("id")) or as_text(as_dict(step).get("signature")) or anchor
    return parts


def decode_step(step: Any, spare_id: str = "", arguments: str | None = None) -> list[Part]:
    """The parts of one whole step; the first one carries its JSON. `spare_id`: for a call without an id. `arguments`: the
    JSON text of streamed arguments that are no valid object."""
    raw = as_dict(step)
    match raw.get("type"):
        case "model_output":
            return _decode_output(raw)
        case "thought":
            return _decode_thought(raw)
        case "function_call":
            given = raw.get("arguments") if arguments is None else arguments
            call_id, name = as_text(raw.get("id")) or spare_id, as_text(raw.get("name"))
            return [function_call(call_id, name, {} if given is None else given, wire=NAME, raw=raw)]
        case kind if kind in CONTENTS:
            return [_decode_content(raw, raw)]
        case kind:
            return [Opaque(kind=as_text(kind) or "unknown", wire=NAME, raw=raw)]


def _without_unwritten(parts: Sequence[Part]) -> list[Part]:
    """The parts of a step in an answer that was cut or still goes on. A call that holds no arguments at all was not written
    to its end, and "no arguments" is not what the model said (section 4)."""
    return [
        cut_call(part.call_id, part.name, "", wire=NAME)
        if isinstance(part, ToolCall) and as_dict(part.raw).get("arguments") is None
        else part
        for part in parts
    ]


def _decode_output(raw: JSON) -> list[Part]:
    """All text of the step as one part, then what else is in it."""
    given = raw.get("content")
    contents = _given_contents(given)
    texts = [content.get("text") or "" for content in contents if content.get("type") == "text"]
    others = [content for content in contents if content.get("type") != "text"]
    parts: list[Part] = []
    if texts or not others:
        parts.append(Text(text="".join(texts), wire=NAME, raw=raw))
    parts += [_decode_content(content, None if parts or place else raw) for place, content in enumerate(others)]
    if raw.get("error"):
        parts.append(Opaque(kind="error", wire=NAME, inside=True))
    return parts


def _decode_thought(raw: JSON) -> list[Part]:
    """The summary's text; pictures in it stay opaque, so that no other vendor ever gets them as pictures of the answer."""
    summary = _given_contents(raw.get("summary"))
    text = "".join(content.get("text") or "" for content in summary if content.get("type") == "text")
    others = [as_text(content.get("type")) or "unknown" for content in summary if content.get("type") != "text"]
    return [Reasoning(text=text, wire=NAME, raw=raw), *(Opaque(kind=kind, wire=NAME, inside=True) for kind in others)]


def _decode_content(content: JSON, raw: JSON | None) -> Part:
    """One content. `raw`: the JSON of its step if it is the step's first part, None if it stands inside."""
    data, uri, media_type = (said(content.get(key)) or None for key in ("data", "uri", "mime_type"))
    match content.get("type"):
        case "text":
            return Text(text=said(content.get("text")), wire=NAME, raw=raw, inside=raw is None)
        case "image" if data and media_type:
            return Image(data=data, media_type=media_type, wire=NAME, raw=raw, inside=raw is None)
        case "image" if uri and not data:
            return Image(url=uri, media_type=media_type, wire=NAME, raw=raw, inside=raw is None)
        case kind:
            return Opaque(kind=as_text(kind) or "unknown", wire=NAME, raw=raw, inside=raw is None)


def decode_usage(usage: Any) -> Usage | None:
    """Section 5: the output count leaves the thoughts out; the input count holds the cached tokens. What the service's own
    tools read (`total_tool_use_tokens`) is a class of its own and stays in `raw`; totals are never computed anew.

    `prompt_tokens` and `completion_tokens` are the migration guide's names."""
    if not isinstance(usage, dict):
        return None
    answer, thoughts = usage.get("total_output_tokens"), usage.get("total_thought_tokens")
    output = None if answer is None and thoughts is None else total_count(0, answer, thoughts)
    given = as_count(usage.get("total_input_tokens"))
    return Usage(
        input_tokens=as_count(usage.get("prompt_tokens")) if given is None else given,
        output_tokens=as_count(usage.get("completion_tokens")) if output is None else output,
        cached_tokens=as_count(usage.get("total_cached_tokens")),
        reasoning_tokens=as_count(thoughts),
        raw=usage,
    )


def made_up_id(anchor: str, place: int) -> str:
    """An id for a call that came without one. Read twice, whole or streamed, the same answer gives the same id, and two
    answers give different ones as far as they can be told apart (`anchor`: interaction id, or the last signature)."""
    return f"call_{hashlib.sha256(f'{anchor}/{place}'.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _continuation(interaction: JSON) -> list[Part]:
    """The part that makes the next request go on with this answer, if the service gave a token for it."""
    token = said(interaction.get("continuation_token"))
    if not token:
        return []
    owner = as_text(interaction.get("id"))
    raw = {"continuation_token": token, **({"interaction_id": owner} if owner else {})}
    return [Opaque(kind=CONTINUATION, wire=NAME, raw=raw)]


# ---------------------------------------------------------------- decode: errors


def _holds_error(payload: Any) -> bool:
    outer = as_dict(payload[0]) if isinstance(payload, list) and payload else as_dict(payload)
    return bool(outer.get("error")) and "status" not in outer


def _recognises_error(outer: JSON) -> int:
    """An error in this API's own shape has a word as `code` and neither `type` nor `param`, which OpenAI's has."""
    error = as_dict(outer.get("error"))
    code = error.get("code")
    if isinstance(code, str) and "message" in error and not ({"type", "param", "status"} & error.keys()):
        return 2 if code in POLICY_CODES | RETRYABLE_CODES | FINAL_CODES else 1
    return 1 if isinstance(code, int) and "status" in error else 0  # google.rpc's shape, which generateContent shares


def _retryable(status: int, words: set[str]) -> bool:
    """An error inside a stream that has no code at all is a service, or a gateway before it, that broke down."""
    if words & FINAL_CODES:
        return False
    broke_down = status == 200 and not words
    return broke_down or bool(words & RETRYABLE_CODES) or status in (408, 429) or (status >= 500 and status != 501)


def _reason(error: JSON) -> str | None:
    """google.rpc's finer word for an error: `reason` of its ErrorInfo."""
    return next((as_text(entry.get("reason")) or None for entry in rpc_details(error, "ErrorInfo")), None)


# ---------------------------------------------------------------- the stream


@dataclass(slots=True)
class StepSlot(Slot):
    """A step that is being built.

    number: its number in the events. joined: how many pieces are no longer apart. mode: "output", "thought", "call" or
    "other". contents: the contents that are whole.
    written: the text content that is being written; its text is in `pieces`. unknown: deltas of kinds that we do not know.
    """

    number: int = 0
    joined: int = 0
    mode: str = "other"
    contents: list[JSON] = field(default_factory=list)
    written: JSON = field(default_factory=lambda: {"type": "text"})
    unknown: list[JSON] = field(default_factory=list)

    def whole_contents(self) -> list[JSON]:
        """All contents, the one that is being written included."""
        if not self.pieces and len(self.written) == 1:
            return self.contents
        return [*self.contents, {**self.written, "text": self.text()}]

    def join(self) -> None:
        """All pieces as one: apart they take ten times the room."""
        if self.pieces:
            self.joined += len(self.pieces) - 1
            self.pieces = [self.text()]

    def end_text(self) -> None:
        """A new text content may begin."""
        self.contents = self.whole_contents()
        self.pieces, self.written = [], {"type": "text"}


Handler = Callable[["InteractionsDecoder", StepSlot, JSON], Sequence[Event]]

MODES: Mapping[str, str] = {
    "model_output": "output", "thought": "thought", "function_call": "call", **dict.fromkeys(CONTENTS, "output"),
}  # fmt: skip


class InteractionsDecoder(StreamDecoder):
    """interaction.created, then steps (start, deltas, stop; told apart by `index`, possibly interleaved), then
    interaction.completed, then `[DONE]`, which alone means nothing.

    Section 4. The event's name is `event_type` in the data, else `type` (the guide's form), else the SSE name. The start of
    a step may already hold content, which its deltas continue. Rows marked "guide" and "2026-05" read the two other forms.
    """

    TABLE: ClassVar[Table] = {
        "WAIT": {
            "interaction.created": "OPEN",
            "interaction.status_update": "OPEN",
            "step.start": "OPEN",
            "interaction.completed": "DONE",
            "error": "FAILED",
            "interaction.in_progress": "OPEN",  # guide
            "interaction.start": "OPEN",  # 2026-05
            "content.start": "OPEN",  # 2026-05
            "content.delta": "OPEN",  # 2026-05
        },
        "OPEN": {
            "interaction.status_update": "OPEN",
            "step.start": "OPEN",
            "step.delta": "OPEN",
            "step.stop": "OPEN",
            "interaction.completed": "DONE",
            "error": "FAILED",
            "interaction.in_progress": "OPEN",  # guide
            "interaction.requires_action": "ENDING",  # guide
            "content.start": "OPEN",  # 2026-05
            "content.delta": "OPEN",  # 2026-05
            "content.stop": "OPEN",  # 2026-05
            "interaction.complete": "DONE",  # 2026-05
        },
        "ENDING": {  # guide: the answer is whole; interaction.completed may follow and bring the usage, or the stream ends
            "interaction.status_update": "ENDING",
            "step.stop": "ENDING",
            "interaction.completed": "DONE",
            "error": "FAILED",
        },
        "DONE": {"interaction.status_update": "DONE", "step.stop": "DONE", "content.stop": "DONE", "error": "DONE"},
    }
    TYPE = "event_type"
    NAMES_EVENTS = True

    def __init__(self, wire: GeminiInteractions) -> None:
        super().__init__(wire)
        self._wire = wire
        self._interaction: JSON = {}
        self._list = "steps"  # "outputs" in the removed revision
        self._slots: dict[int, StepSlot] = {}
        self._open: dict[int, StepSlot] = {}  # those of them that have not stopped
        self._parts: dict[int, list[Part]] = {}
        self._numbers = count()
        self._signature = ""  # the last one, see `made_up_id`
        self._checkpoint: tuple[str, int] | None = None

    def kind(self, payload: Any, sse: ServerSentEvent) -> str:
        try:
            kind: str = payload["event_type"]
        except (KeyError, TypeError):
            kind = as_text(as_dict(payload).get("type"))
        return kind or ("error" if _holds_error(payload) else sse.event)

    def end_words(self) -> str:
        return "interaction.completed"

    def close(self, stray: bytes = b"") -> Sequence[Event]:
        if self.state == "ENDING":
            return self._end()
        if self.state == "OPEN" and self._interaction.get("status") == "failed":
            raise self._failed(self._wire.failure(self.build(finished=False)))
        return super().close(stray)

    def on_done_marker(self) -> Sequence[Event]:
        if self.state == "ENDING":
            return self._end()
        if self._interaction.get("status") == "failed":
            raise self._wire.failure(self.build(finished=False))
        return super().on_done_marker()

    def _end(self) -> Sequence[Event]:
        events = self._finish()
        self._move("DONE")
        return events

    # ------------------------------------------------------------ the interaction

    def _on_interaction_created(self, payload: JSON) -> Sequence[Event]:
        self._update(payload["interaction"])
        self._note_usage(payload)
        return NOTHING

    def _on_interaction_status_update(self, payload: JSON) -> Sequence[Event]:
        """May carry a checkpoint: a token from which a broken stream can go on, as long as no output has followed it."""
        if self.done:
            return NOTHING
        self._update({"status": payload.get("status"), "id": payload.get("interaction_id")})
        self._note_usage(payload)
        token = as_text(payload.get("continuation_token"))
        if token:
            self._checkpoint = token, self._progress()
            self._interaction["continuation_token"] = token
        return NOTHING

    def _on_interaction_completed(self, payload: JSON) -> Sequence[Event]:
        interaction: JSON = payload["interaction"]
        status, token = interaction.get("status"), interaction.get("continuation_token")
        said(token)  # now: later, what had arrived could not be attached
        self._update({**interaction, "status": status or "completed", "continuation_token": token or ""})
        return self._finish()

    def _on_interaction_requires_action(self, payload: JSON) -> Sequence[Event]:
        self._update({**as_dict(payload.get("interaction")), "status": "requires_action"})
        return NOTHING

    def _on_error(self, payload: JSON) -> Sequence[Event]:
        if self.done:
            return NOTHING
        raise self.wire.api_error(200, payload)

    def _update(self, interaction: JSON) -> None:
        """What is there and not null replaces, the rest stays; an empty id says nothing (`store` was false)."""
        self._interaction |= {
            key: value for key, value in interaction.items() if value is not None and not (key == "id" and value == "")
        }

    def _note_usage(self, payload: JSON) -> None:
        """Reports on the way are cumulative; the last one counts if the end brings none."""
        metadata = as_dict(payload.get("metadata"))
        usage = payload.get("usage") or metadata.get("total_usage") or metadata.get("usage")
        if isinstance(usage, dict):
            self._interaction["usage"] = usage

    def _progress(self) -> int:
        return sum(1 + slot.joined + len(slot.pieces) + len(slot.contents) for slot in self._slots.values())

    def _finish(self) -> Sequence[Event]:
        events: list[Event] = []
        if not self._slots:  # nothing was streamed: take the steps of the last event, should it have any
            given = self._interaction.get("steps") or self._interaction.get("outputs")
            for index, step in enumerate(as_list(given)):
                events += self._start(index, step)
        for _, slot in sorted(self._open.items()):
            events += self._stop(slot, self._cut_or_fold(slot))
        response = self.build(finished=True)
        if response.raw_stop == "failed":
            raise self._wire.failure(response)
        events += [PartDone(next(self._numbers), part) for part in response.message.parts[-1:] if _is_continuation(part)]
        self._response = response
        return [*events, Done(response)]

    def _cut_or_fold(self, slot: StepSlot) -> list[Part]:
        """A step without its stop. A call in it is whole only if the service says that the answer is."""
        if slot.mode == "call" and self._interaction.get("status") not in WHOLE:
            return self._unfinished(slot)
        return self._fold(slot)

    # ------------------------------------------------------------ steps

    def _on_step_start(self, payload: JSON) -> Sequence[Event]:
        return self._start(payload["index"], payload["step"])

    def _start(self, index: int, step: JSON) -> Sequence[Event]:
        if as_place(index) in self._slots:
            raise ProtocolError(f"step {index} starts twice")
        kind = as_text(step.get("type"))
        contents = _given_contents(step.get(LISTS[kind])) if kind in LISTS else [step]
        slot = self._slots[index] = self._open[index] = StepSlot(index, {**step}, number=next(self._numbers))
        slot.mode = MODES.get(kind, "other")
        if isinstance(step.get("arguments"), str):
            slot.pieces.append(step["arguments"])
        if slot.mode in ("output", "thought"):
            slot.contents = contents
        return self._seed(slot)

    def _seed(self, slot: StepSlot) -> Sequence[Event]:
        """Content that came with the start: shown like a delta, and a text at its end is what the deltas continue."""
        text = "".join(as_text(content.get("text")) for content in slot.contents if content.get("type") == "text")
        if slot.contents and slot.contents[-1].get("type") == "text":
            slot.written = slot.contents.pop()
            slot.pieces = [as_text(slot.written.get("text"))]
        event = ReasoningDelta if slot.mode == "thought" else TextDelta
        return (event(slot.number, text),) if text else NOTHING

    def _on_step_delta(self, payload: JSON) -> Sequence[Event]:
        index, delta = payload["index"], payload["delta"]
        try:
            slot = self._open[index]
        except KeyError:
            raise ProtocolError(f"a delta for step {index}, which is not open") from None
        if "metadata" in payload:
            self._note_usage(payload)
        kind = delta["type"]
        if kind == "text" and slot.mode == "output" and type(text := delta["text"]) is str and text:  # nearly every event
            slot.pieces.append(text)
            return (TextDelta(slot.number, text),)
        handler: Handler = self._DELTAS.get(kind, InteractionsDecoder._other)
        return handler(self, slot, delta)

    def _on_step_stop(self, payload: JSON) -> Sequence[Event]:
        if self.done:
            return NOTHING
        slot = self._open.get(payload["index"])
        if slot is None:
            raise ProtocolError(f"step {payload['index']} stops, but is not open")
        self._note_usage(payload)
        slot.join()
        return self._stop(slot, self._fold(slot))

    def _stop(self, slot: StepSlot, parts: list[Part]) -> Sequence[Event]:
        del self._open[slot.index]
        self._parts[slot.index] = parts
        numbers = [slot.number, *(next(self._numbers) for _ in parts[1:])]
        return [PartDone(number, part) for number, part in zip(numbers, parts, strict=True)]

    # ------------------------------------------------------------ deltas

    def _odd_text(self, slot: StepSlot, delta: JSON) -> Sequence[Event]:
        if slot.mode != "output":
            return self._misplaced(slot, delta)
        if delta["text"]:
            raise no_text(delta["text"])
        return NOTHING

    def _arguments(self, slot: StepSlot, delta: JSON) -> Sequence[Event]:
        """`arguments_delta` with `arguments` is the reference's form, `arguments` with `partial_arguments` the guide's."""
        if slot.mode in ("output", "thought"):
            return self._misplaced(slot, delta)
        text = delta["arguments"] if "arguments" in delta else delta["partial_arguments"]
        if isinstance(text, dict):  # whole
            slot.raw["arguments"] = text
            return NOTHING
        if not isinstance(text, str):
            raise ProtocolError(f"arguments are neither a JSON text nor an object: {text!r}")
        slot.pieces.append(text)
        return (ArgumentsDelta(slot.number, self._call_id(slot), text),) if text and slot.mode == "call" else NOTHING

    def _summary(self, slot: StepSlot, delta: JSON) -> Sequence[Event]:
        """`thought_summary` holds one content; the guide's `thought` holds the text itself."""
        if slot.mode != "thought":
            return self._misplaced(slot, delta)
        content: Any = delta.get("content")
        if delta["type"] != "thought_summary":
            content = {"type": "text", "text": delta.get("text")}
        if as_dict(content).get("type") != "text":
            return self._content(slot, as_dict(content)) if content else NOTHING
        text = content.get("text")
        if text is None:
            return NOTHING
        if not isinstance(text, str):
            raise no_text(text)
        slot.pieces.append(text)
        return (ReasoningDelta(slot.number, text),) if text else NOTHING

    def _signed(self, slot: StepSlot, delta: JSON) -> Sequence[Event]:
        if delta["signature"]:  # empty ones are placeholders and must not replace the real one
            slot.raw["signature"] = self._signature = delta["signature"]
        return NOTHING

    def _annotation(self, slot: StepSlot, delta: JSON) -> Sequence[Event]:
        if slot.mode != "output":
            return self._misplaced(slot, delta)
        slot.written.setdefault("annotations", []).extend(as_list(delta.get("annotations")))
        return NOTHING

    def _content(self, slot: StepSlot, delta: JSON) -> Sequence[Event]:
        """A picture, a recording: a content of its own, or what a placeholder in the start announced."""
        if slot.mode not in ("output", "thought"):
            return self._misplaced(slot, delta)
        for key in ("data", "uri", "mime_type"):
            said(delta.get(key))
        slot.end_text()
        last = slot.contents[-1] if slot.contents else {}
        if last.get("type") == delta["type"] and not last.get("data") and not last.get("uri"):
            last.update(delta)
        else:
            slot.contents.append(delta)
        return NOTHING

    def _other(self, slot: StepSlot, delta: JSON) -> Sequence[Event]:
        """A delta of the step's own type is the step, whole (tools of the service, and calls in the removed revision): it
        replaces. Any other is kept as it came, beside the step, and counted."""
        if delta["type"] == slot.raw.get("type") and slot.mode in ("call", "other"):
            slot.raw |= {key: value for key, value in delta.items() if not (key == "signature" and not value)}
            return NOTHING
        name = f"step.delta {named_kind(delta['type'], f'a delta for step {slot.index}')}"
        self.ignored[name] = self.ignored.get(name, 0) + 1
        slot.unknown.append(delta)
        return NOTHING

    def _misplaced(self, slot: StepSlot, delta: JSON) -> Sequence[Event]:
        """A known delta on a step of another known kind contradicts it; on a step that we do not know it is kept."""
        if slot.mode == "other":
            return self._other(slot, delta)
        raise ProtocolError(f"a {delta['type']} delta for step {slot.index}, which is a {slot.raw.get('type')}")

    _DELTAS: ClassVar[Mapping[str, Handler]] = {
        "text": _odd_text,  # the usual one is handled before the look-up
        "arguments_delta": _arguments,
        "thought_summary": _summary,
        "thought_signature": _signed,
        "text_annotation_delta": _annotation,
        "image": _content,
        "audio": _content,
        "video": _content,
        "document": _content,
        "arguments": _arguments,  # guide
        "thought": _summary,  # guide
        "text_annotation": _annotation,  # 2026-05
    }

    # ------------------------------------------------------------ the two other written forms

    _on_interaction_in_progress = _on_interaction_created  # guide
    _on_interaction_start = _on_interaction_created  # 2026-05
    _on_interaction_complete = _on_interaction_completed  # 2026-05
    _on_content_stop = _on_step_stop  # 2026-05

    def _on_content_start(self, payload: JSON) -> Sequence[Event]:
        self._list = "outputs"
        return self._start(payload["index"], payload["content"])

    def _on_content_delta(self, payload: JSON) -> Sequence[Event]:
        """Here a delta without a start opens its content: the deltas of that revision said what they belonged to."""
        index, kind = payload["index"], payload["delta"]["type"]
        if index not in self._slots:
            self._list = "outputs"
            thought = kind in ("thought_signature", "thought_summary")
            self._start(index, {"type": "thought" if thought else kind})
        return self._on_step_delta(payload)

    # ------------------------------------------------------------ the answer

    def tidy(self) -> None:
        for slot in self._open.values():
            slot.joined += join_middle(slot.pieces)

    def build(self, *, finished: bool) -> Response:
        if not self._interaction and not self._slots:
            raise IncompleteStream("nothing has arrived")
        parts: list[Part] = []
        for index, slot in sorted(self._slots.items()):
            parts += self._parts[index] if index in self._parts else self._unfinished(slot)
        steps = [part.raw for part in parts if part.raw is not None and not part.inside]
        interaction = {key: value for key, value in self._interaction.items() if value != ""}
        if not finished:
            parts += self._resumable()
        return self._wire.respond({**interaction, self._list: steps}, parts)

    def _resumable(self) -> list[Part]:
        """A broken stream can go on from its last checkpoint, if no output has been shown since."""
        ends_so = self._interaction.get("status") == "requires_continuation"  # then `respond` adds the token
        if self._checkpoint is None or ends_so or self._checkpoint[1] != self._progress():
            return []
        return _continuation({**self._interaction, "continuation_token": self._checkpoint[0]})

    def _call_id(self, slot: StepSlot) -> str:
        given = as_text(slot.raw.get("id"))
        return given or made_up_id(as_text(self._interaction.get("id")) or self._signature, slot.index)

    def _fold(self, slot: StepSlot) -> list[Part]:
        """A whole step, as the whole answer would hold it."""
        raw = {key: value for key, value in slot.raw.items() if not (key == "signature" and value == "")}
        kind = as_text(raw.get("type"))
        arguments = None
        if slot.mode in ("output", "thought"):
            contents = slot.whole_contents()
            if kind in CONTENTS:
                raw = contents[0] if len(contents) == 1 else {"type": "model_output", "content": contents}
            elif contents or LISTS[kind] in raw:
                raw[LISTS[kind]] = contents
        elif slot.mode == "call":
            raw, arguments = _fold_arguments(raw, slot.text())
        elif slot.pieces:  # a tool of the service whose arguments came in pieces
            folded, broken = _fold_arguments(raw, slot.text())
            raw = folded if broken is None else {**raw, "arguments": broken}
        unknown = [
            Opaque(kind=as_text(delta["type"]) or "unknown", wire=NAME, raw=delta, inside=True) for delta in slot.unknown
        ]
        return [*decode_step(raw, self._call_id(slot), arguments), *unknown]

    def _unfinished(self, slot: StepSlot) -> list[Part]:
        """A step that never stopped. Its text may be shown; a call in it can never be run and nothing of it is replayed."""
        if slot.mode == "call":
            return [cut_call(self._call_id(slot), as_text(slot.raw.get("name")), slot.text(), wire=NAME)]
        return [part.model_copy(update={"raw": None}) for part in self._fold(slot)]


def _given_contents(value: Any) -> list[JSON]:
    """The contents of a step: a list, or a text alone."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    contents = [an_object(content, "a content of a step") for content in listed(value, "the contents of a step")]
    for content in contents:
        if content.get("type") == "text":
            said(content.get("text"))
    return contents


def _fold_arguments(raw: JSON, text: str) -> tuple[JSON, str | None]:
    """(The step with its arguments, their text if they are no valid object). No text at all: what the start held counts."""
    given = raw.get("arguments")
    if isinstance(given, str):  # whole, as a JSON text
        text = text or given
    elif not text.strip():
        return {**raw, "arguments": {} if given is None else given}, None
    arguments, problem = parse_args(text)
    return {**raw, "arguments": text if arguments is None else arguments}, text if problem else None
