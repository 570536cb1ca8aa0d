"""Anthropic Messages: two people taking turns, each turn a list of content blocks.

    POST {base}/v1/messages        x-api-key, anthropic-version        docs/wire/anthropic.md

What is peculiar to it: `max_tokens` is required; tool results are blocks of a *user* message, first in it and complete; a
tool's input is an object, which a stream sends as pieces of JSON text; thinking blocks are signed and go back unchanged;
`input_tokens` leaves the cached tokens out; usage in a stream is cumulative, so it is overwritten, never added; a refusal is
HTTP 200. A block, not a message, is the unit: one block is one part.

Exceptions to raw replay, each a small function below: nulls and blank text are left out (the API returns them and refuses
them), a call whose JSON was invalid goes back as an object that says so, and before a `fallback` block the declined
model's thinking and unanswered calls go.

What this file does not do: beta message threads, files, batches. A server tool's use and result are opaque parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lessonlib import capabilities
from lessonlib.errors import IncompleteStream, InvalidRequest, ProtocolError
from lessonlib.history import arrange, result_pieces
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
    Slot,
    StreamDecoder,
    Table,
    WireFormat,
    as_count,
    as_dict,
    as_text,
    compact,
    cut_call,
    error_object,
    function_call,
    parse_args,
    retryable_status,
    word,
)  # fmt: skip

NAME = "anthropic-messages"

VERSION = "2026-10-21"
"""The API version that the official SDK sends; 2023-06-01 still works. On the newer one sampling parameters are refused."""

DEFAULT_MAX_TOKENS = 8192
"""The output cap is required here, so a request without one gets this. It covers thinking too."""

STOP: Mapping[str, StopReason] = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "pause_turn": StopReason.PAUSE,
    "compaction": StopReason.PAUSE,
    "refusal": StopReason.REFUSAL,
}

RETRYABLE_TYPES = frozenset({"rate_limit_error", "overloaded_error", "api_error", "timeout_error"})
SPEND_LIMITS = frozenset({"enforced_spend_limit_reached", "contract_spend_limit_reached"})

BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 49152}
"""Thinking budgets for effort words, on models (4.5 and earlier) that take a budget only. Our choice, not Anthropic's."""


class AnthropicMessages(WireFormat):
    """The Messages API. `version` is the `anthropic-version` header; `bearer=True` sends the key as `Authorization: Bearer`
    (what the official SDK does) instead of `x-api-key`. Send one of the two, never both."""

    name: ClassVar[str] = NAME
    provider: ClassVar[str] = "anthropic"
    key_variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY",)
    base_url_variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_BASE_URL",)
    default_base_url: ClassVar[str] = "https://api.anthropic.com"

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        version: str = VERSION,
        bearer: bool = False,
    ) -> None:
        super().__init__(model, api_key=api_key, base_url=base_url, headers=headers)
        self.version = version
        self.bearer = bearer

    # ------------------------------------------------------------ encode

    def path(self, model: str, stream: bool) -> str:
        return "/v1/messages"

    def auth(self) -> dict[str, str]:
        headers = {"anthropic-version": self.version}
        if self._key is not None:
            key = self._key.reveal()
            headers |= {"authorization": f"Bearer {key}"} if self.bearer else {"x-api-key": key}
        return headers

    def body(self, request: Request, model: str, stream: bool) -> JSON:
        able = capabilities.of(model)
        body: JSON = {"model": model, "max_tokens": request.max_tokens or _default_cap(request)}
        if request.system:
            body["system"] = request.system
        body["messages"] = encode_messages(request.messages)
        body |= _encode_tools(request, able)
        body |= _encode_reasoning(request, able)
        if request.output_schema is not None:
            schema = {"type": "json_schema", "schema": request.output_schema}
            body["output_config"] = {**as_dict(body.get("output_config")), "format": schema}
        if request.stop:
            body["stop_sequences"] = request.stop
        if stream:
            body["stream"] = True
        return body

    # ------------------------------------------------------------ decode

    def decode(self, payload: Any) -> Response:
        message = as_dict(payload)
        if message.get("type") == "error" or "error" in message:
            raise self.api_error(200, payload)
        blocks = message.get("content")
        if not isinstance(blocks, list):
            raise ProtocolError(f"not a Messages response: no content list in {compact(payload)[:120]}")
        return self.respond(message, [decode_block(block) for block in blocks])

    def respond(self, message: JSON, parts: Sequence[Part]) -> Response:
        """The Response for a whole message object whose blocks have been decoded already."""
        raw_stop = word(message.get("stop_reason"))
        return Response(
            id=as_text(message.get("id")),
            model=as_text(message.get("model")),
            provider=self.provider,
            wire=NAME,
            message=Message(role="assistant", parts=list(parts)),
            stop=STOP.get(raw_stop or "", StopReason.OTHER),
            raw_stop=raw_stop,
            usage=decode_usage(message.get("usage")),
            raw=message,
        )

    def decoder(self) -> StreamDecoder:
        return MessagesDecoder(self)

    @classmethod
    def recognises(cls, payload: Any) -> int:
        message = as_dict(payload)
        kind = as_text(message.get("type"))
        if kind == "message" and "content" in message:
            return 2
        if kind == "error" and "error" in message:  # the body of an HTTP error, or the event of a broken stream
            return 2 if "request_id" in message or not as_dict(message["error"]).keys() & {"code", "param"} else 1
        if kind == "ping":
            return 1
        return 2 if kind == "message_start" or kind in MessagesDecoder.TABLE["OPEN"] else 0

    # ------------------------------------------------------------ errors

    def error_details(self, status: int, payload: Any) -> ErrorDetails:
        """Section 6. Inside a stream (status 200) the error's type decides; over HTTP the status does, but a spend limit
        is a 429 that no waiting will lift."""
        error = error_object(payload)
        kind = word(error.get("type"))
        code = word(as_dict(error.get("details")).get("error_code")) or word(error.get("code"))
        retryable = kind in RETRYABLE_TYPES if status == 200 else retryable_status(status)
        return ErrorDetails(
            message=as_text(error.get("message")),
            type=kind if kind != "error" else None,
            code=code,
            retryable=retryable and code not in SPEND_LIMITS,
            request_id=word(as_dict(payload).get("request_id")),
        )


# ---------------------------------------------------------------- encode: one function per thing


def encode_messages(messages: Sequence[Message]) -> list[JSON]:
    """The `messages` list: alternating roles, results first, no blank text."""
    arranged = arrange(messages, NAME, merge=True, drop=_is_blank)
    calls = {call.call_id: call for message in arranged for call in message.tool_calls}
    encoded = [
        {"role": message.role, "content": [encode_part(part, calls) for part in _without_declined(message.parts)
                                           if not part.inside]}
        for message in arranged
    ]  # fmt: skip
    return _without_trailing_space(encoded)


def encode_part(part: Part, calls: Mapping[str, ToolCall]) -> JSON:
    """One block. Own parts go back as they came, without nulls; foreign ones are rebuilt."""
    raw = part.raw_for(NAME)
    if raw is not None and not (isinstance(part, ToolCall) and part.args is None):
        return {key: value for key, value in raw.items() if value is not None}
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return {"type": "image", "source": _image_source(part)}
        case ToolCall():
            # the API wants an object; this is the form that its documentation names for invalid JSON
            arguments = part.args if part.args is not None else {"INVALID_JSON": part.raw_args}
            return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": arguments}
        case ToolResult():
            return _encode_result(part, calls)
        case _:
            raise InvalidRequest(f"a {part.type} part without its own JSON cannot be sent to {NAME}")


def _encode_result(result: ToolResult, calls: Mapping[str, ToolCall]) -> JSON:
    block: JSON = {"type": "tool_result", "tool_use_id": result.call_id}
    pieces = [encode_part(piece, calls) for piece in result_pieces(result) if not _is_blank(piece)]
    if pieces:
        block["content"] = result.content if isinstance(result.content, str) else pieces
    if result.is_error:
        block["is_error"] = True
    call = calls.get(result.call_id)
    toolset = (call.raw_for(NAME) or {}).get("toolset_name") if call else None
    return {**block, "toolset_name": toolset} if toolset else block


def _image_source(image: Image) -> JSON:
    if image.url is not None:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.data}


def _encode_tools(request: Request, able: capabilities.Capabilities) -> JSON:
    if not request.tools:
        return {}
    fields: JSON = {"tools": [_encode_tool(tool) for tool in request.tools]}
    words = {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}}
    choice = request.tool_choice or ("auto" if request.parallel is False else None)
    if choice is None:
        return fields
    encoded: JSON = dict(words.get(choice) or {"type": "tool", "name": choice})
    if encoded["type"] in ("any", "tool") and able.forced_tool_choice is False:
        raise InvalidRequest(f'{able.family} refuses a forced tool_choice; use tool_choice="auto" and say it in the prompt')
    if request.parallel is False and encoded["type"] != "none":
        encoded["disable_parallel_tool_use"] = True
    return {**fields, "tool_choice": encoded}


def _encode_tool(tool: Tool) -> JSON:
    encoded: JSON = {"name": tool.name, "input_schema": tool.schema_for_function()}
    if tool.description:
        encoded["description"] = tool.description
    if tool.strict is not None:
        encoded["strict"] = tool.strict
    return encoded


def _encode_reasoning(request: Request, able: capabilities.Capabilities) -> JSON:
    """Section 1.2: models from 4.6 on decide themselves (`adaptive`) and take an effort; earlier ones take a budget."""
    asked = request.reasoning
    if asked is None:
        return {}
    if asked == "none":
        if able.can_disable_thinking is False:
            raise InvalidRequest(f"{able.family} always thinks; leave reasoning unset or use a low effort")
        return {"thinking": {"type": "disabled"}}
    if able.thinking == "budget" or isinstance(asked, int):
        if able.thinking == "adaptive":
            raise InvalidRequest(f'{able.family} takes an effort word (reasoning="low"), not a budget in tokens')
        return {"thinking": {"type": "enabled", "budget_tokens": _budget(asked)}}
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": asked}}


def _budget(asked: str | int) -> int:
    if isinstance(asked, int):
        return asked
    if asked not in BUDGETS:
        raise InvalidRequest(f"reasoning {asked!r} is neither a number of tokens nor one of {', '.join(BUDGETS)}")
    return BUDGETS[asked]


def _default_cap(request: Request) -> int:
    """A thinking budget must be smaller than the cap, which covers both."""
    return DEFAULT_MAX_TOKENS + (request.reasoning if isinstance(request.reasoning, int) else 0)


# ---------------------------------------------------------------- encode: the exceptions to raw replay


def _is_blank(part: Part) -> bool:
    """The API itself returns blank text blocks and refuses them when they come back."""
    return isinstance(part, Text) and not part.text.strip()


def _without_declined(parts: Sequence[Part]) -> Sequence[Part]:
    """Before a `fallback` block stands what the declined model began; its thinking must not be replayed."""
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if isinstance(part, Opaque) and part.kind == "fallback":
            return [*(part for part in parts[:place] if not isinstance(part, Reasoning)), *parts[place:]]
    return parts


def _without_trailing_space(encoded: list[JSON]) -> list[JSON]:
    """A final assistant message (a prefill) must not end in white space: the API answers 400."""
    if encoded and encoded[-1]["role"] == "assistant":
        last = encoded[-1]["content"][-1]
        if last.get("type") == "text":
            encoded[-1]["content"][-1] = {**last, "text": last["text"].rstrip()}
    return encoded


# ---------------------------------------------------------------- decode: one function per thing


def decode_block(block: Any, arguments: str | None = None) -> Part:
    """The part for one whole content block. `arguments`: the JSON text of a streamed tool input that is no valid object."""
    raw = as_dict(block)
    match raw.get("type"):
        case "text":
            return Text(text=as_text(raw.get("text")), wire=NAME, raw=raw)
        case "thinking":
            return Reasoning(text=as_text(raw.get("thinking")), wire=NAME, raw=raw)
        case "redacted_thinking":
            return Reasoning(wire=NAME, raw=raw)
        case "tool_use":
            given = raw.get("input") if arguments is None else arguments
            return function_call(as_text(raw.get("id")), as_text(raw.get("name")), given or {}, wire=NAME, raw=raw)
        case kind:
            return Opaque(kind=as_text(kind) or "unknown", wire=NAME, raw=raw)


def decode_usage(usage: Any) -> Usage | None:
    """Section 5: the three input counts are disjoint, so all input is their sum; output includes thinking."""
    if not isinstance(usage, dict):
        return None
    fresh = as_count(usage.get("input_tokens"))
    written = as_count(usage.get("cache_creation_input_tokens"))
    read = as_count(usage.get("cache_read_input_tokens"))
    return Usage(
        input_tokens=None if fresh is None else fresh + (written or 0) + (read or 0),
        output_tokens=as_count(usage.get("output_tokens")),
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=as_count(as_dict(usage.get("output_tokens_details")).get("thinking_tokens")),
        raw=usage,
    )


# ---------------------------------------------------------------- the stream


class MessagesDecoder(StreamDecoder):
    """message_start, then blocks (start, deltas, stop; told apart by `index`), then message_delta, then message_stop.

    Section 4. The state machine dispatches on `type` in the data, not on the SSE name. Blocks are folded into the whole
    message's JSON; a block's start may already hold content, and some blocks have nothing but a start.
    """

    TABLE: ClassVar[Table] = {
        "WAIT": {"message_start": "OPEN", "ping": "WAIT", "error": "FAILED"},
        "OPEN": {
            "content_block_start": "OPEN",
            "content_block_delta": "OPEN",
            "content_block_stop": "OPEN",
            "message_delta": "ENDING",
            "message_stop": "FAILED",
            "ping": "OPEN",
            "error": "FAILED",
        },
        "ENDING": {"message_delta": "ENDING", "message_stop": "DONE", "ping": "ENDING", "error": "FAILED"},
        "DONE": {"ping": "DONE"},
    }

    def __init__(self, wire: AnthropicMessages) -> None:
        super().__init__(wire)
        self._wire = wire
        self._message: JSON = {}
        self._blocks: dict[int, Slot] = {}
        self._parts: dict[int, Part] = {}

    def kind(self, payload: Any, sse: ServerSentEvent) -> str:
        kind: str = payload["type"]
        return kind

    def end_words(self) -> str:
        return "message_stop"

    # ------------------------------------------------------------ the message

    def _on_message_start(self, payload: JSON) -> Sequence[Event]:
        self._message = {**payload["message"], "content": []}
        return NOTHING

    def _on_message_delta(self, payload: JSON) -> Sequence[Event]:
        """Cumulative: what is there and not null replaces, the rest stays."""
        changes = {**payload, **as_dict(payload.get("delta"))}
        usage = {key: value for key, value in as_dict(payload.get("usage")).items() if value is not None}
        self._message |= {
            key: value for key, value in changes.items() if value is not None and key not in ("type", "delta", "usage")
        }
        self._message["usage"] = {**as_dict(self._message.get("usage")), **usage}
        return NOTHING

    def _on_message_stop(self, payload: JSON) -> Sequence[Event]:
        if self.state == "OPEN":
            raise IncompleteStream("message_stop came without a message_delta that says why the model stopped")
        events = [self._cut(slot) for _, slot in sorted(self._blocks.items()) if not slot.closed]
        self._response = self.build(finished=True)
        return [*events, Done(self._response)]

    def _on_error(self, payload: JSON) -> Sequence[Event]:
        raise self.wire.api_error(200, payload)

    # ------------------------------------------------------------ blocks

    def _on_content_block_start(self, payload: JSON) -> Sequence[Event]:
        index, block = payload["index"], payload["content_block"]
        if index in self._blocks:
            raise ProtocolError(f"content block {index} starts twice")
        self._blocks[index] = Slot(index, block)
        for key, event in (("text", TextDelta), ("thinking", ReasoningDelta)):
            if block.get("type") == key and block.get(key):
                return (event(index, block[key]),)
        return NOTHING

    def _on_content_block_delta(self, payload: JSON) -> Sequence[Event]:
        index = payload["index"]
        slot = self._blocks.get(index)
        if slot is None or slot.closed:
            raise ProtocolError(f"a delta for content block {index}, which is not open")
        delta = payload["delta"]
        handler = self._DELTAS.get(delta["type"])
        return NOTHING if handler is None else handler(self, slot, delta)

    def _on_content_block_stop(self, payload: JSON) -> Sequence[Event]:
        index = payload["index"]
        slot = self._blocks.get(index)
        if slot is None or slot.closed:
            raise ProtocolError(f"content block {index} stops, but is not open")
        slot.closed = True
        part = self._parts[index] = _fold(slot)
        return (PartDone(index, part),)

    def _cut(self, slot: Slot) -> PartDone:
        """A block without its stop: real when the output cap fell inside a tool's input, else a contradiction."""
        if STOP.get(self._message.get("stop_reason") or "") is not StopReason.LENGTH:
            raise ProtocolError(f"message_stop came while content block {slot.index} was open")
        part = self._parts[slot.index] = _unfinished(slot)
        return PartDone(slot.index, part)

    # ------------------------------------------------------------ deltas

    def _text(self, slot: Slot, delta: JSON) -> Sequence[Event]:
        _must_be(slot, "text", "text_delta")
        text = delta["text"]
        slot.pieces.append(text)
        return (TextDelta(slot.index, text),) if text else NOTHING

    def _thinking(self, slot: Slot, delta: JSON) -> Sequence[Event]:
        _must_be(slot, "thinking", "thinking_delta")
        text = delta["thinking"]
        slot.pieces.append(text)
        return (ReasoningDelta(slot.index, text),) if text else NOTHING

    def _input(self, slot: Slot, delta: JSON) -> Sequence[Event]:
        if slot.raw.get("type") in ("text", "thinking"):
            raise ProtocolError(f"an input_json_delta for content block {slot.index}, which is {slot.raw['type']}")
        text = delta["partial_json"]
        slot.pieces.append(text)
        if not text or slot.raw.get("type") != "tool_use":
            return NOTHING
        return (ArgumentsDelta(slot.index, slot.raw["id"], text),)

    def _signature(self, slot: Slot, delta: JSON) -> Sequence[Event]:
        slot.raw = {**slot.raw, "signature": delta["signature"]}  # assigned, never joined: the SDK does the same
        return NOTHING

    def _citation(self, slot: Slot, delta: JSON) -> Sequence[Event]:
        slot.raw = {**slot.raw, "citations": [*(slot.raw.get("citations") or []), delta["citation"]]}
        return NOTHING

    def _compaction(self, slot: Slot, delta: JSON) -> Sequence[Event]:
        slot.raw = {**slot.raw, **{key: value for key, value in delta.items() if key != "type"}}
        return NOTHING

    _DELTAS: ClassVar[Mapping[str, Any]] = {
        "text_delta": _text,
        "input_json_delta": _input,
        "thinking_delta": _thinking,
        "signature_delta": _signature,
        "citations_delta": _citation,
        "compaction_delta": _compaction,
    }

    # ------------------------------------------------------------ the answer

    def build(self, *, finished: bool) -> Response:
        if not self._message:
            raise IncompleteStream("nothing has arrived")
        parts = [
            self._parts[index] if index in self._parts else _unfinished(slot) for index, slot in sorted(self._blocks.items())
        ]
        message = {**self._message, "content": [part.raw for part in parts if part.raw is not None]}
        return self._wire.respond(message, parts)


def _must_be(slot: Slot, kind: str, delta: str) -> None:
    if slot.raw.get("type") != kind:
        raise ProtocolError(f"a {delta} for content block {slot.index}, which is {slot.raw.get('type')}")


def _fold(slot: Slot) -> Part:
    """A whole block, as the non-streaming answer would hold it."""
    joined = slot.text()
    kind = slot.raw.get("type")
    if kind in ("text", "thinking"):
        return decode_block({**slot.raw, kind: as_text(slot.raw.get(kind)) + joined})
    if not joined.strip():  # no argument text at all: what the start held is the input ({} for a tool without parameters)
        return decode_block(slot.raw)
    arguments, problem = parse_args(joined)
    if problem is not None:
        return decode_block({**slot.raw, "input": {}}, joined)
    return decode_block({**slot.raw, "input": arguments})


def _unfinished(slot: Slot) -> Part:
    """A block that never stopped. Its text may be shown; a call in it can never be run and nothing of it is replayed."""
    joined = slot.text()
    match slot.raw.get("type"):
        case "text":
            return Text(text=as_text(slot.raw.get("text")) + joined, wire=NAME)
        case "thinking":
            return Reasoning(text=as_text(slot.raw.get("thinking")) + joined, wire=NAME)
        case "tool_use":
            return cut_call(as_text(slot.raw.get("id")), as_text(slot.raw.get("name")), joined, wire=NAME)
        case kind:
            return Opaque(kind=as_text(kind) or "unknown", wire=NAME)
