"""Anthropic Messages: two people taking turns, each turn a list of content blocks.

    POST {base}/v1/messages        x-api-key, anthropic-version        docs/wire/anthropic.md

What is peculiar to it: `max_tokens` is required; tool results are blocks of a *user* message, first in it and complete; a
tool's input is an object, which a stream sends as pieces of JSON text; thinking blocks are signed and go back unchanged;
`input_tokens` leaves the cached tokens out; usage in a stream is cumulative, so it is overwritten, never added; a refusal is
HTTP 200. A block, not a message, is the unit: one block is one part.

Blocks of its own go back as they came. The exceptions are listed in section 2.5, each a small function below.

What this file does not do: beta message threads, files, batches; it keeps no container between requests (`extra` can pass
one on). A server tool's use and result are opaque parts.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from lessonlib import capabilities
from lessonlib.capabilities import Capabilities
from lessonlib.errors import IncompleteStream, InvalidRequest, ProtocolError
from lessonlib.history import OPENING, arrange, merge_neighbours, result_pieces
from lessonlib.schema import ANTHROPIC_STRICT, adapt
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
    StreamDecoder,
    Table,
    WireFormat,
    as_count,
    as_dict,
    as_place,
    as_text,
    compact,
    cut_call,
    error_object,
    first_env,
    function_call,
    named_kind,
    no_text,
    parse_args,
    retryable_status,
    said,
    total_count,
    word,
)  # fmt: skip

NAME = "anthropic-messages"

VERSION = "2026-10-21"
"""The API version that the official SDK sends; 2023-06-01 still works. On the newer one sampling parameters are refused."""

DEFAULT_MAX_TOKENS = 16_384
"""The output cap is required here, so a request without one gets this. It covers thinking, which is on by default since
the 5 generation, and stays below the length from which the official SDK insists on streaming (section 1.2)."""

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

CUTTING = frozenset({StopReason.LENGTH, StopReason.REFUSAL})
"""Stops that may fall inside a block: the output cap and the classifier. A call that stands last was not finished."""

RETRYABLE_TYPES = frozenset({"rate_limit_error", "overloaded_error", "api_error", "timeout_error"})
SPEND_LIMITS = frozenset({"enforced_spend_limit_reached", "contract_spend_limit_reached"})

BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 49152}
"""Thinking budgets for effort words, on models (4.5 and earlier) that take a budget only. Our choice, not Anthropic's."""

SMALLEST_BUDGET = 1024

NO_MESSAGE = "The tool failed without a message."
"""The text of an error result that has none: the API refuses an empty one."""

NO_NAME = "unnamed"
LONGEST_NAME = 200
"""What models call is not always a tool that exists: a name may be empty or a whole command, and the API refuses both."""

NO_PICTURE = "[A picture, which cannot stand here.]"
"""What stands for a picture in an assistant message or an error result: the API takes text only in both."""


class AnthropicMessages(WireFormat):
    """The Messages API.

    version: the `anthropic-version` header. bearer: send the key as `Authorization: Bearer` (what the official SDK does)
    instead of `x-api-key`; by default only a key from ANTHROPIC_AUTH_TOKEN goes so. A header of either name in `headers`
    takes the place of both. message_stop_required: False accepts a stream that ends after its stop reason but without
    `message_stop`, for gateways that leave it out (section 4.3).
    """

    name: ClassVar[str] = NAME
    provider: ClassVar[str] = "anthropic"
    key_variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
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
        bearer: bool | None = None,
        message_stop_required: bool = True,
    ) -> None:
        super().__init__(model, api_key=api_key, base_url=base_url, headers=headers)
        self.base_url = self.base_url.removesuffix("/v1")  # both spellings are in use; the path below has it
        host = urlsplit(self.base_url).hostname
        self.service = None if host == urlsplit(self.default_base_url).hostname else host
        self.version = version
        self.bearer = bearer if bearer is not None else api_key is None and first_env("ANTHROPIC_API_KEY") is None
        self.message_stop_required = message_stop_required

    # ------------------------------------------------------------ encode

    def path(self, model: str, stream: bool) -> str:
        return "/v1/messages"

    def auth(self) -> dict[str, str]:
        headers = {"anthropic-version": self.version}
        if self._key is None or not self.headers.keys().isdisjoint(("x-api-key", "authorization")):
            return headers
        key = self._key.reveal()
        return headers | ({"authorization": f"Bearer {key}"} if self.bearer else {"x-api-key": key})

    def body(self, request: Request, model: str, stream: bool) -> JSON:
        able = capabilities.of(model)
        messages = encode_messages(request.messages, able, self.service)
        reasoning = _encode_reasoning(request, able, messages)
        body: JSON = {"model": model, "max_tokens": request.max_tokens or _default_cap(reasoning, able)}
        if request.system and request.system.strip():
            body["system"] = request.system
        body["messages"] = messages
        body |= _encode_tools(request)
        body |= _encode_choice(request, able, reasoning)
        body |= reasoning
        if request.output_schema is not None:
            output = {"type": "json_schema", "schema": adapt(request.output_schema, ANTHROPIC_STRICT).schema}
            body["output_config"] = {**as_dict(body.get("output_config")), "format": output}
        if request.stop:
            body["stop_sequences"] = _encode_stop(request.stop)
        if stream:
            body["stream"] = True
        return body

    # ------------------------------------------------------------ decode

    def decode(self, payload: Any) -> Response:
        message = as_dict(payload)
        blocks = message.get("content")
        if message.get("type") == "error" or (message.get("error") and blocks is None):
            raise self.api_error(200, payload)
        if not isinstance(blocks, list):
            raise ProtocolError(f"not a Messages response: no content list in {compact(payload)[:120]}")
        return self.respond(message, [decode_block(block, self.service) for block in blocks])

    def respond(self, message: JSON, parts: Sequence[Part]) -> Response:
        """The Response for a whole message object whose blocks have been decoded already."""
        raw_stop = word(message.get("stop_reason"))
        stop = STOP.get(raw_stop or "", StopReason.OTHER)
        return Response(
            id=as_text(message.get("id")),
            model=as_text(message.get("model")),
            provider=self.provider,
            wire=NAME,
            message=Message(role="assistant", parts=settle(parts, stop)),
            stop=stop,
            raw_stop=raw_stop,
            usage=_without_half_a_sum(decode_usage(message.get("usage"))),
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
        if kind == "error":  # the body of an HTTP error, or the event of a broken stream
            if "error" not in message:
                return 0
            # the Responses API has an event of the same two levels, with these fields
            return 2 if "request_id" in message or not {"code", "param"} & as_dict(message["error"]).keys() else 1
        if kind == "ping":
            return 1
        return 2 if kind == "message_start" or kind in MessagesDecoder.TABLE["OPEN"] else 0

    # ------------------------------------------------------------ errors

    def error_details(self, status: int, payload: Any) -> ErrorDetails:
        """Section 6. Inside a stream (status 200) the error's type decides; over HTTP the status does, but a spend limit
        is a 429 that no waiting will lift. An error without a type inside a stream is a gateway that broke down."""
        error = error_object(payload)
        kind = word(error.get("type"))
        kind = kind if kind != "error" else None
        code = word(as_dict(error.get("details")).get("error_code")) or word(error.get("code"))
        retryable = (kind is None or kind in RETRYABLE_TYPES) if status == 200 else retryable_status(status)
        return ErrorDetails(
            message=as_text(error.get("message")),
            type=kind,
            code=code,
            retryable=retryable and code not in SPEND_LIMITS,
            request_id=word(as_dict(payload).get("request_id")),
        )


# ---------------------------------------------------------------- encode: one function per thing


def encode_messages(messages: Sequence[Message], able: Capabilities, service: str | None) -> list[JSON]:
    """The `messages` list: the user first, alternating roles, results first, no blank text."""
    readable = [_without_declined(_without_foreign(message, service)) for message in messages]
    arranged = arrange(readable, NAME, merge=True, drop=_is_blank)
    arranged = merge_neighbours(message for message in map(_without_last_thinking, arranged) if message.parts)
    if not arranged:
        raise InvalidRequest("nothing to send: no message has any content")
    if arranged[-1].role == "assistant":
        _refuse_prefill(arranged[-1], able)
    if arranged[0].role == "assistant":
        arranged.insert(0, Message.user(OPENING))
    ids = CallIds()
    encoded = [_encode_message(message, ids) for message in arranged]
    return _without_trailing_space(encoded)


def _encode_message(message: Message, ids: CallIds) -> JSON:
    parts = [part for part in message.parts if not (part.inside and part.wire == NAME)]
    if message.role == "assistant":
        parts = [Text(text=NO_PICTURE) if isinstance(part, Image) else part for part in parts]
    return {"role": message.role, "content": [encode_part(part, ids) for part in parts]}


def encode_part(part: Part, ids: CallIds) -> JSON:
    """One block. Own parts go back as they came, without nulls; foreign ones are rebuilt."""
    match part:
        case ToolCall():
            return _encode_call(part, ids)
        case ToolResult():
            return _encode_result(part, ids)
    raw = part.raw_for(NAME)
    if raw is not None:
        return _without_nulls(raw)
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return {"type": "image", "source": _image_source(part)}
        case _:
            raise InvalidRequest(f"a {part.type} part without its own JSON cannot be sent to {NAME}")


def _encode_call(call: ToolCall, ids: CallIds) -> JSON:
    block = _without_nulls(call.raw_for(NAME) or {"type": "tool_use", "id": "", "name": "", "input": call.args})
    if call.args is None:  # the API wants an object; this is the form that its documentation names for invalid JSON
        block["input"] = {"INVALID_JSON": call.raw_args}
    return {**block, "id": ids.issue(call), "name": call.name[:LONGEST_NAME] or NO_NAME}


def _encode_result(result: ToolResult, ids: CallIds) -> JSON:
    call_id, toolset = ids.answer()
    block: JSON = {"type": "tool_result", "tool_use_id": call_id}
    pieces = result_pieces(result)
    if result.is_error:
        pieces = [Text(text=NO_PICTURE) if isinstance(piece, Image) else piece for piece in pieces]
    blocks = [encode_part(piece, ids) for piece in pieces if not _is_blank(piece)]
    if blocks:
        block["content"] = result.content if isinstance(result.content, str) else blocks
    elif result.is_error:
        block["content"] = NO_MESSAGE
    if result.is_error:
        block["is_error"] = True
    return {**block, "toolset_name": toolset} if toolset else block


_FIRST_BYTES = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How the four kinds of picture that the API takes begin, in base64."""


def _image_source(image: Image) -> JSON:
    """Section 2.1. The API compares the label with the bytes and refuses `image/jpg`, so the bytes give the label. A data
    URL, which OpenAI takes as a URL, is base64 here."""
    data, label = image.data, image.media_type
    if image.url is not None:
        if not image.url.startswith("data:"):
            return {"type": "url", "url": image.url}
        head, _, data = image.url.removeprefix("data:").partition(",")
        label, *parameters = head.split(";")
        if "base64" not in parameters:
            raise InvalidRequest("a data URL must be base64: data:image/png;base64,...")
    kind = next((kind for start, kind in _FIRST_BYTES.items() if (data or "").startswith(start)), label)
    return {"type": "base64", "media_type": kind, "data": data}


def _encode_tools(request: Request) -> JSON:
    return {"tools": [_encode_tool(tool) for tool in request.tools]} if request.tools else {}


def _encode_tool(tool: Tool) -> JSON:
    """A schema that the model is held to must be in the subset that constrained decoding takes (section 1.5)."""
    schema = tool.schema_for_function()
    if tool.strict:
        schema = adapt(schema, ANTHROPIC_STRICT).schema
    encoded: JSON = {"name": tool.name, "input_schema": schema}
    if tool.description:
        encoded["description"] = tool.description
    if tool.strict is not None:
        encoded["strict"] = tool.strict
    return encoded


def _encode_choice(request: Request, able: Capabilities, reasoning: JSON) -> JSON:
    """`tool_choice`, in which the switch for parallel calls lives (section 1.3). Server tools come in by `extra`."""
    if not (request.tools or request.extra.get(NAME, {}).get("tools")):
        return {}
    choice = request.tool_choice or ("auto" if request.parallel is False else None)
    if choice is None:
        return {}
    words = {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}}
    encoded: JSON = dict(words.get(choice) or {"type": "tool", "name": choice})
    if encoded["type"] in ("any", "tool"):
        if able.forced_tool_choice is False:
            raise InvalidRequest(f'{able.family} refuses a forced tool_choice; use tool_choice="auto" and ask in the prompt')
        if _budget_in(reasoning):
            raise InvalidRequest(
                'a thinking budget excludes a forced tool_choice; use tool_choice="auto", or reasoning="none"'
            )
    if request.parallel is False and encoded["type"] != "none":
        encoded["disable_parallel_tool_use"] = True
    return {"tool_choice": encoded}


def _encode_stop(sequences: Sequence[str]) -> list[str]:
    if any(not sequence.strip() for sequence in sequences):
        raise InvalidRequest("a stop sequence of white space alone is refused by this API; cut the text yourself instead")
    return list(sequences)


# ---------------------------------------------------------------- encode: thinking (section 1.4)


def _encode_reasoning(request: Request, able: Capabilities, messages: Sequence[JSON]) -> JSON:
    """Models from 4.6 on decide themselves (`adaptive`) and take an effort; earlier ones take a budget."""
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
        if _tool_turn_without_thinking(messages):
            return {}
        return {"thinking": {"type": "enabled", "budget_tokens": _budget(asked, request.max_tokens)}}
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": _effort(asked, able)}}


def _effort(asked: str, able: Capabilities) -> str:
    if asked == "minimal":
        return "low"  # the least that there is here
    if able.efforts is not None and asked not in able.efforts:
        raise InvalidRequest(f"{able.family} takes the efforts {', '.join(able.efforts)}, not {asked!r}")
    return asked


def _budget(asked: str | int, cap: int | None) -> int:
    """A budget as a number must fit; one for an effort word is ours, so it gives way and leaves half of the cap."""
    if isinstance(asked, str) and asked not in BUDGETS:
        raise InvalidRequest(f"reasoning {asked!r} is neither a number of tokens nor one of {', '.join(BUDGETS)}")
    budget = asked if isinstance(asked, int) else min(BUDGETS[asked], cap // 2 if cap else BUDGETS[asked])
    if budget < SMALLEST_BUDGET:
        raise InvalidRequest(
            f"a thinking budget is at least {SMALLEST_BUDGET} tokens, here it would be {budget}; raise max_tokens"
        )
    if cap is not None and budget >= cap:
        raise InvalidRequest(f"max_tokens ({cap}) covers thinking too, so it must be larger than the budget ({budget})")
    return budget


def _budget_in(reasoning: JSON) -> int:
    budget: int = as_dict(reasoning.get("thinking")).get("budget_tokens", 0)
    return budget


def _default_cap(reasoning: JSON, able: Capabilities) -> int:
    cap = DEFAULT_MAX_TOKENS + _budget_in(reasoning)
    return min(cap, able.max_output) if able.max_output else cap


def _tool_turn_without_thinking(messages: Sequence[JSON]) -> bool:
    """Whether a tool turn is open that did not begin with thinking, because another model made the calls. With a budget the
    API then refuses to think in this turn."""
    if messages[-1]["content"][0].get("type") != "tool_result":
        return False
    return messages[-2]["content"][0].get("type") not in ("thinking", "redacted_thinking")


# ---------------------------------------------------------------- encode: the exceptions to raw replay (section 2.5)


class CallIds:
    """The ids under which calls and results are sent. The API takes letters, digits, `_` and `-`, and every id once; another
    vendor's ids may be empty, hold dots or colons, or come back in every turn. What is legal and new stays as it is."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}  # id -> how often it was asked for
        self._open: deque[tuple[str, str | None]] = deque()  # sent ids of the calls that wait for their results, in order

    def issue(self, call: ToolCall) -> str:
        """The id for a call."""
        wanted = re.sub(r"[^a-zA-Z0-9_-]", "_", call.call_id) or "call"
        call_id = wanted
        while call_id in self._used:
            self._used[wanted] += 1
            call_id = f"{wanted}_{self._used[wanted]}"
        self._used[call_id] = 1
        self._open.append((call_id, (call.raw_for(NAME) or {}).get("toolset_name")))
        return call_id

    def answer(self) -> tuple[str, str | None]:
        """The id of the call that the next result answers, and the toolset it belongs to. `arrange` has put the results of
        a turn in call order, so no id needs to be looked up."""
        return self._open.popleft()


def _without_foreign(message: Message, service: str | None) -> Message:
    """Other services speak this wire format, with signatures and fields of their own: what one of them signed is refused by
    the next, so it stays behind, and the rest is rebuilt."""
    if all(part.service in (None, service) for part in message.parts):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if part.service in (None, service):
            parts.append(part)
        elif not isinstance(part, (Reasoning, Opaque)):
            parts.append(part.model_copy(update={"raw": None}))
    return Message(role=message.role, parts=parts)


def _without_nulls(block: JSON) -> JSON:
    """The API returns fields that are null, and refuses some of them (`caller`) when they come back."""
    return {key: value for key, value in block.items() if value is not None}


def _is_blank(part: Part) -> bool:
    """The API itself returns blank text blocks and refuses them when they come back."""
    return isinstance(part, Text) and not part.text.strip()


def _without_last_thinking(message: Message) -> Message:
    """An assistant message must not end with thinking, which is how one ends that was cut there."""
    count = len(message.parts)
    while count and isinstance(message.parts[count - 1], Reasoning):
        count -= 1
    return message if count == len(message.parts) else Message(role=message.role, parts=message.parts[:count])


def _without_declined(message: Message) -> Message:
    """Before a `fallback` block stands what the declined model began: its thinking must not be replayed, nor its calls,
    nor a server tool's use that has no result."""
    place = _last_fallback(message.parts)
    if place is None:
        return message
    answered = {part.raw.get("tool_use_id") for part in message.parts[:place] if isinstance(part, Opaque) and part.raw}
    kept = [part for part in message.parts[:place] if not _is_declined(part, answered)]
    return Message(role=message.role, parts=[*kept, *message.parts[place:]])


def _is_declined(part: Part, answered: set[Any]) -> bool:
    if isinstance(part, Opaque):
        return part.kind.endswith("tool_use") and (part.raw or {}).get("id") not in answered
    return isinstance(part, (Reasoning, ToolCall))


def _last_fallback(parts: Sequence[Part]) -> int | None:
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if isinstance(part, Opaque) and part.kind == "fallback":
            return place
    return None


def _refuse_prefill(last: Message, able: Capabilities) -> None:
    """Section 1.6. A turn that was paused goes back last; it holds a server tool's blocks or a compaction."""
    if able.prefill is False and not any(isinstance(part, Opaque) for part in last.parts):
        raise InvalidRequest(
            f"{able.family} does not continue an assistant message: end with a user message that asks it to go on"
        )


def _without_trailing_space(encoded: list[JSON]) -> list[JSON]:
    """A final assistant message (a prefill) must not end in white space: the API answers 400."""
    last = encoded[-1]["content"][-1]
    if encoded[-1]["role"] == "assistant" and last.get("type") == "text":
        encoded[-1]["content"][-1] = {**last, "text": last["text"].rstrip()}
    return encoded


# ---------------------------------------------------------------- decode: one function per thing


def decode_block(block: Any, service: str | None = None) -> Part:
    """The part for one whole content block. An `input` that is text is what a stream sent and is no valid object."""
    raw = as_dict(block)
    match raw.get("type"):
        case "text":
            return Text(text=said(raw.get("text")), wire=NAME, service=service, raw=raw)
        case "thinking":
            return Reasoning(text=said(raw.get("thinking")), wire=NAME, service=service, raw=raw)
        case "redacted_thinking":
            return Reasoning(wire=NAME, service=service, raw=raw)
        case "tool_use":
            given = raw.get("input") or {}
            call = function_call(as_text(raw.get("id")), as_text(raw.get("name")), given, wire=NAME, raw=raw)
            return call if service is None else call.model_copy(update={"service": service})
        case kind:
            whole = not isinstance(raw.get("input"), str)
            return Opaque(kind=as_text(kind) or "unknown", wire=NAME, service=service, raw=raw if whole else None)


def settle(parts: Sequence[Part], stop: StopReason) -> list[Part]:
    """What only the whole message tells about its parts: which calls the client may run (section 4.4).

    A call that stands last when the output was cut may look whole and not be: the service closes what it cuts. And a call
    before a `fallback` block is one of the model that declined; it is kept for the record.
    """
    settled = list(parts)
    for place in range(_last_fallback(settled) or 0):
        part = settled[place]
        if isinstance(part, ToolCall):
            settled[place] = Opaque(kind="tool_use", wire=NAME, service=part.service, raw=part.raw)
    last = settled[-1] if settled else None
    if stop in CUTTING and isinstance(last, ToolCall):
        settled[-1] = cut_call(last.call_id, last.name, last.raw_args, wire=NAME)
    return settled


INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The fields whose sum is all input."""


def decode_usage(usage: Any) -> Usage | None:
    """Section 5: the three input counts are disjoint, so all input is their sum; output includes thinking."""
    if not isinstance(usage, dict) or not usage:
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


def _without_half_a_sum(usage: Usage | None) -> Usage | None:
    """A cache count that is there and no number makes all input unknown: the sum without it would be a wrong one."""
    if usage is None or usage.input_tokens is None:
        return usage
    raw = usage.raw or {}
    counts = (raw.get(name) for name in INPUT)
    return usage if total_count(*counts) is not None else usage.model_copy(update={"input_tokens": None})


# ---------------------------------------------------------------- the stream

GROWS = {"text": "text", "thinking": "thinking", "tool_use": "input", "server_tool_use": "input", "mcp_tool_use": "input"}
"""Block type -> the field that grows piece by piece. A block of a new type takes the first kind of piece that comes."""

PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("input", "partial_json"),
}
"""Delta type -> the field of the block that it feeds, and the field of the delta that holds the piece."""


USUAL = {"text": ("text_delta", "text", TextDelta), "thinking": ("thinking_delta", "thinking", ReasoningDelta)}
"""Block type -> nearly every delta of such a block, the field that holds its piece, and the event that shows it."""


@dataclass(slots=True)
class Block:
    """A content block that is being built: `raw` as it started, and the pieces, joined once at the end."""

    index: int
    raw: JSON
    kind: str
    grows: str | None
    call_id: str
    usual: str | None = None
    piece: str = ""
    event: type[TextDelta | ReasoningDelta] = TextDelta
    pieces: list[str] = field(default_factory=list)


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
    TYPE = "type"
    NAMES_EVENTS = True

    def __init__(self, wire: AnthropicMessages) -> None:
        super().__init__(wire)
        self._wire = wire
        self._message: JSON = {}
        self._blocks: dict[int, Block] = {}
        self._open: dict[int, Block] = {}  # those of them that have not stopped
        self._parts: dict[int, Part] = {}  # of the blocks that have stopped
        self._announced: dict[int, Part] = {}  # by a PartDone
        self._held: int | None = None  # a call that has stopped, but is the last so far, so it may yet prove to be cut

    def kind(self, payload: Any, sse: ServerSentEvent) -> str:
        """Some gateways leave `type` out; then the SSE name tells, or that there is an `error`."""
        kind: str = payload.get("type") or ("error" if payload.get("error") else sse.event)
        return kind

    def end_words(self) -> str:
        return "message_stop"

    def close(self, stray: bytes = b"") -> Sequence[Event]:
        if self.state == "ENDING" and not self._wire.message_stop_required and not stray:
            return self.feed(ServerSentEvent("message_stop", b'{"type":"message_stop"}'))
        return super().close(stray)

    # ------------------------------------------------------------ the message

    def _on_message_start(self, payload: JSON) -> Sequence[Event]:
        self._message = {**payload["message"], "content": []}
        return NOTHING

    def _on_message_delta(self, payload: JSON) -> Sequence[Event]:
        """Cumulative: what is there and not null replaces, the rest stays. No input at all is no count that can follow one:
        some gateways fill the fields of the input with zeros here."""
        changes = _without_nulls({**payload, **as_dict(payload.get("delta"))})
        self._message |= {key: value for key, value in changes.items() if key not in ("type", "delta", "usage", "content")}
        reported = payload.get("usage")
        if reported is not None and not isinstance(reported, dict):
            raise ProtocolError(f"usage must be an object, not a {type(reported).__name__}")
        usage = _without_nulls(as_dict(reported))
        if usage:
            known = as_dict(self._message.get("usage"))
            if not any(usage.get(key) for key in INPUT) and any(known.get(key) for key in INPUT):
                usage = {key: value for key, value in usage.items() if key not in INPUT}
            self._message["usage"] = {**known, **usage}
        return NOTHING

    def _on_message_stop(self, payload: JSON) -> Sequence[Event]:
        if self.state == "OPEN":
            raise IncompleteStream("message_stop came without a message_delta that says why the model stopped")
        self._refuse_open_blocks()
        response = self._response = self.build(finished=True)
        announced = self._announced
        late = [
            PartDone(index, part)
            for index, part in zip(sorted(self._blocks), response.message.parts, strict=True)
            if announced.get(index) is not part
        ]
        return [*late, Done(response)]

    def _refuse_open_blocks(self) -> None:
        """A block without its stop: real when the output was cut inside a tool's input, else a contradiction."""
        if self._open and STOP.get(self._message.get("stop_reason") or "") not in CUTTING:
            raise ProtocolError(f"message_stop came while content block {min(self._open)} was open")

    def _on_error(self, payload: JSON) -> Sequence[Event]:
        raise self.wire.api_error(200, payload)

    # ------------------------------------------------------------ blocks

    def _on_content_block_start(self, payload: JSON) -> Sequence[Event]:
        index, raw = as_place(payload["index"]), payload["content_block"]
        if index in self._blocks:
            raise ProtocolError(f"content block {index} starts twice")
        kind = as_text(raw.get("type"))
        block = Block(index, raw, kind, GROWS.get(kind), as_text(raw.get("id")), *USUAL.get(kind, ()))
        self._blocks[index] = self._open[index] = block
        if kind == "fallback":
            self._held = None  # a call of the model that declined, which may be cut as well: `settle` says what it is
        text = as_text(raw.get(block.grows)) if block.grows in ("text", "thinking") else ""
        return [*self._release(), *(self._show(block, text) if text else NOTHING)]

    def _on_content_block_delta(self, payload: JSON) -> Sequence[Event]:
        index = payload["index"]
        try:
            block = self._open[index]
        except KeyError:
            raise ProtocolError(f"a delta for content block {index}, which is not open") from None
        delta = payload["delta"]
        kind = delta["type"]
        if kind == block.usual and type(text := delta[block.piece]) is str and text:
            block.pieces.append(text)
            return (block.event(index, text),)
        piece = PIECES.get(kind)
        if piece is None:
            return self._other_delta(block, kind, delta)
        grows, name = piece
        if block.grows != grows:
            _claim(block, grows, kind)
        text = delta[name]
        if not text:
            return NOTHING
        if not isinstance(text, str):
            raise no_text(text)
        block.pieces.append(text)
        return self._show(block, text)

    def _on_content_block_stop(self, payload: JSON) -> Sequence[Event]:
        index = payload["index"]
        block = self._open.get(index)
        if block is None:
            raise ProtocolError(f"content block {index} stops, but is not open")
        block.pieces = ["".join(block.pieces)]  # before the arguments are parsed: the pieces take ten times the room
        block.raw = _fold(block)
        block.pieces.clear()
        part = self._parts[index] = decode_block(block.raw, self._wire.service)
        del self._open[index]
        released = self._release()
        if isinstance(part, ToolCall):
            self._held = index
            return released
        self._announced[index] = part
        return [*released, PartDone(index, part)]

    def _release(self) -> Sequence[Event]:
        """The call that was the last one: now that the answer goes on, it is known to be whole."""
        index = self._held
        if index is None:
            return NOTHING
        self._held = None
        part = self._announced[index] = self._parts[index]
        return (PartDone(index, part),)

    # ------------------------------------------------------------ deltas

    @staticmethod
    def _show(block: Block, text: str) -> Sequence[Event]:
        """The event that shows a piece. What server tools and unknown blocks hold is not for the eye."""
        if block.usual:
            return (block.event(block.index, text),)
        return (ArgumentsDelta(block.index, block.call_id, text),) if block.kind == "tool_use" else NOTHING

    def _other_delta(self, block: Block, kind: str, delta: JSON) -> Sequence[Event]:
        """Deltas that are not a piece of something. An unknown one is ignored, and counted for reports."""
        match kind:
            case "signature_delta":
                block.raw["signature"] = delta["signature"]  # assigned, never joined: the SDK does the same
            case "citations_delta":
                if not isinstance(block.raw.get("citations"), list):
                    block.raw["citations"] = []
                block.raw["citations"].append(delta["citation"])
            case "compaction_delta":
                block.raw |= {key: value for key, value in delta.items() if key != "type"}
            case _:
                name = named_kind(kind, f"a delta for content block {block.index}")
                self.ignored[name] = self.ignored.get(name, 0) + 1
        return NOTHING

    # ------------------------------------------------------------ the answer

    def growing(self) -> Iterable[list[str]]:
        return [block.pieces for block in self._open.values()]

    def build(self, *, finished: bool) -> Response:
        if not self._message:
            raise IncompleteStream("nothing has arrived")
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        parts = [_unfinished(block) if block.index in self._open else self._parts[block.index] for block in blocks]
        content = [_folded_text(block) if block.index in self._open else block.raw for block in blocks]
        return self._wire.respond({**self._message, "content": content}, parts)


def _claim(block: Block, grows: str, delta: str) -> None:
    """A block of an unknown type grows as its first delta says; any other must keep to its own kind."""
    if block.kind in GROWS or block.grows is not None:
        raise ProtocolError(f"a {delta} for content block {block.index}, which is {block.kind or 'of no type'}")
    block.grows = grows


def _fold(block: Block) -> JSON:
    """A whole block, as the non-streaming answer would hold it. A tool's input is parsed here, once; text that is no object
    stays text, so that nobody takes it for one."""
    folded = _folded_text(block)
    if block.grows != "input" or folded is block.raw:
        return folded
    arguments, problem = parse_args(folded["input"])
    return folded if problem is not None else {**folded, "input": arguments}


def _folded_text(block: Block) -> JSON:
    """The block with its pieces joined."""
    joined = "".join(block.pieces)
    if block.grows is None:
        return block.raw
    if block.grows == "input":  # without any argument text, what the start held is the input
        return {**block.raw, "input": joined} if joined.strip() else block.raw
    return {**block.raw, block.grows: as_text(block.raw.get(block.grows)) + joined}


def _unfinished(block: Block) -> Part:
    """A block that never stopped. Its text may be shown; a call in it can never be run and nothing of it is replayed."""
    raw = _folded_text(block)
    match block.kind:
        case "text":
            return Text(text=as_text(raw.get("text")), wire=NAME)
        case "thinking":
            return Reasoning(text=as_text(raw.get("thinking")), wire=NAME)
        case "tool_use":
            return cut_call(block.call_id, as_text(raw.get("name")), "".join(block.pieces), wire=NAME)
        case kind:
            return Opaque(kind=kind or "unknown", wire=NAME)
