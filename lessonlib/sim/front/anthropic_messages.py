"""The Messages API's face: `POST /v1/messages`, whole and streamed. docs/wire/anthropic.md

Thinking blocks are signed over their text and over everything before them (signing.py); the rules check both. Usage has the
vendor's three disjoint input counts; `message_start` holds a small placeholder for the output, `message_delta` the total.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from lessonlib.sim.ask import Ask
from lessonlib.sim.core import Answer
from lessonlib.sim.front.base import Front, frame
from lessonlib.sim.pieces import coarse_pieces, text_pieces
from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.rules import anthropic as rules
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think
from lessonlib.sim.signing import sign
from lessonlib.types import JSON, Image, Message, Opaque, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, compact

WIRE = "anthropic-messages"

STOPS = {
    StopReason.END: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
    StopReason.REFUSAL: "refusal",
    StopReason.PAUSE: "pause_turn",
}


class AnthropicMessagesFront(Front):
    """The Messages frontend."""

    wire: ClassVar[str] = WIRE
    book = rules.BOOK
    paths: ClassVar[tuple[str, ...]] = (r"/v1/messages",)
    bad_request: ClassVar[str] = "invalid_request_error"
    status_types: ClassVar[dict[int, str]] = {
        400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
        404: "not_found_error", 409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error",
        500: "api_error", 503: "api_error", 504: "timeout_error", 529: "overloaded_error",
    }  # fmt: skip

    # ------------------------------------------------------------ the request

    def read(self, context: Context) -> Ask:
        body = context.body
        thinking = as_dict(body.get("thinking"))
        schema = as_dict(as_dict(as_dict(body.get("output_config")).get("format")).get("schema"))
        messages = [_message(message) for message in body["messages"]]
        choice = as_dict(body.get("tool_choice"))
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=messages,
            system=_system(body.get("system")),
            tools=[_tool(as_dict(tool)) for tool in as_list(body.get("tools")) if "input_schema" in as_dict(tool)],
            tool_choice={"any": "required", "tool": as_text(choice.get("name"))}.get(
                as_text(choice.get("type")), as_text(choice.get("type")) or None
            ),
            parallel=not choice.get("disable_parallel_tool_use", False),
            max_tokens=body["max_tokens"],
            thinks=_thinks(context),
            summary=(thinking.get("display") != "omitted" and "display" in thinking) or thinking.get("type") == "enabled",
            stop=[text for text in as_list(body.get("stop_sequences")) if isinstance(text, str) and text],
            output_schema=schema or None,
            stream=body.get("stream") is True,
            paused=messages[-1].role == "assistant" and any(isinstance(part, Opaque) for part in messages[-1].parts),
            talked_over=_talked_over(messages[-1]),
        )

    def too_long(self, context: Context, tokens: int) -> Refusal | None:
        return rules.refused(f"prompt is too long: {tokens:,} tokens and the output cap are more than the window holds.")

    def cache_options(self, context: Context) -> dict[str, Any]:
        """Nothing is cached without a mark: `cache_control`, at the top level (everything) or on a block (all up to it)."""
        if "cache_control" in context.body:
            return {"writes": True}
        marked = _marked(context.body)
        return {"writes": True, "enabled": marked is not None, "messages": marked}

    # ------------------------------------------------------------ the answer

    def headers(self, number: int) -> dict[str, str]:
        return {"request-id": f"req_sim{number:06d}", "anthropic-ratelimit-requests-remaining": "99"}

    def whole(self, answer: Answer) -> JSON:
        return {
            **_envelope(answer),
            "content": [
                block for place, segment in enumerate(answer.turn.segments) for block in _blocks(answer, place, segment)
            ],
            **_ending(answer),
            "usage": _usage(answer),
        }

    def frames(self, answer: Answer) -> Iterator[bytes]:
        usage = _usage(answer)
        start = {**_envelope(answer), "content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None,
                 "usage": {**usage, "output_tokens": 1}}  # fmt: skip
        start["usage"].pop("output_tokens_details", None)
        yield frame({"type": "message_start", "message": start}, "message_start")
        index = 0
        for place, segment in enumerate(answer.turn.segments):
            for block in _blocks(answer, place, segment):
                yield from _block_frames(index, block, segment)
                index += 1
                if index == 1:
                    yield frame({"type": "ping"}, "ping")
        delta = {
            "type": "message_delta",
            "delta": _ending(answer),
            "usage": {k: v for k, v in usage.items() if k in _DELTA_USAGE},
        }
        yield frame(delta, "message_delta")
        yield frame({"type": "message_stop"}, "message_stop")

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal) -> JSON:
        error: JSON = {"type": refusal.type, "message": refusal.message}
        if refusal.code:
            error["details"] = {"error_code": refusal.code}
        return {"type": "error", "error": error, "request_id": "req_sim"}

    def error_frame(self, refusal: Refusal) -> bytes:
        return frame(self.error(refusal), "error")


# ---------------------------------------------------------------- read


def _thinks(context: Context) -> bool:
    """From Sonnet 5 and Opus 5 on, leaving `thinking` out means adaptive; before, it means off."""
    kind = as_dict(context.body.get("thinking")).get("type")
    return kind in ("enabled", "adaptive") or (kind is None and context.able.can_disable_thinking is False)


def _system(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "".join(as_text(as_dict(block).get("text")) for block in as_list(value))


def _tool(tool: JSON) -> Tool:
    return Tool(name=tool["name"], description=as_text(tool.get("description")), parameters=tool["input_schema"])


def _message(message: JSON) -> Message:
    return Message(role=message["role"], parts=[part for block in rules.blocks(message) for part in _parts(block)])


def _parts(block: JSON) -> list[Part]:
    match block.get("type"):
        case "text":
            return [Text(text=block["text"])]
        case "tool_use":
            return [ToolCall(call_id=block["id"], name=block["name"], args=block["input"])]
        case "tool_result":
            return [ToolResult(call_id=block["tool_use_id"], content=_result_text(block.get("content")),
                               is_error=block.get("is_error") is True)]  # fmt: skip
        case "thinking":
            return [Reasoning(text=block["thinking"])]
        case "image":
            source = as_dict(block["source"])
            return [Image(url=as_text(source.get("url")) or "data:" + as_text(source.get("data"))[:64])]
        case "server_tool_use" | "web_search_tool_result":
            return [Opaque(kind=str(block["type"]))]
        case _:
            return []


def _talked_over(message: Message) -> bool:
    """Whether text stands behind tool results (section 2.3): allowed, and the model ends its turn with next to nothing."""
    kinds = [type(part) for part in message.parts]
    return ToolResult in kinds and Text in kinds[kinds.index(ToolResult) :]


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(as_text(as_dict(block).get("text")) for block in as_list(content))


def _marked(body: JSON) -> int | None:
    """How many messages the last mark stands behind, 0 if it is in the system prompt or the tools; None without a mark."""
    head = [*as_list(body.get("system")), *as_list(body.get("tools"))]
    marks = [0] if any("cache_control" in as_dict(block) for block in head) else []
    for number, message in enumerate(body["messages"], 1):
        if any("cache_control" in as_dict(block) for block in rules.blocks(message)):
            marks.append(number)
    return max(marks, default=None)


# ---------------------------------------------------------------- write

_DELTA_USAGE = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
)


def _envelope(answer: Answer) -> JSON:
    return {"model": answer.ask.model, "id": f"msg_{answer.id}", "type": "message", "role": "assistant"}


def _ending(answer: Answer) -> JSON:
    reason = answer.turn.reason
    refusal = next((segment for segment in answer.turn.segments if isinstance(segment, Refuse)), None)
    details = {"type": "refusal", "category": refusal.category, "explanation": None} if refusal else None
    word = "stop_sequence" if answer.turn.stop_sequence else STOPS.get(reason, "end_turn")
    return {"stop_reason": word, "stop_sequence": answer.turn.stop_sequence, "stop_details": details}


def _usage(answer: Answer) -> JSON:
    counts = answer.counts
    return {
        "input_tokens": counts.fresh,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": counts.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": counts.output,
        "output_tokens_details": {"thinking_tokens": counts.reasoning},
        "service_tier": "standard",
        "inference_geo": "not_available",
    }


def _blocks(answer: Answer, place: int, segment: Segment) -> list[JSON]:
    """The content blocks of one segment, whole."""
    match segment:
        case Think():
            return [_thinking(answer, place, segment)]
        case Say(text) | Refuse(text):
            return [{"type": "text", "text": text}] if text else []
        case Call(name, args):
            given = args if isinstance(args, dict) else {}
            return [{"type": "tool_use", "id": _call_id(answer, place), "name": name, "input": given}]
        case ServerCall(query, result):
            return _server_blocks(answer, place, query, result)


def _call_id(answer: Answer, place: int) -> str:
    """An id that says whether its turn began with thinking (rules.was_thought_about)."""
    thought = any(isinstance(segment, Think) for segment in answer.turn.segments)
    return f"toolu_{answer.part_id(place, 'call')}{'t' if thought else ''}"


def _thinking(answer: Answer, place: int, segment: Think) -> JSON:
    text = segment.text if answer.ask.summary else ""
    if not segment.whole:
        return {"type": "thinking", "thinking": text, "signature": ""}
    number = sum(len(_blocks(answer, earlier, answer.turn.segments[earlier])) for earlier in range(place))
    before = rules.before_block(answer.body, len(answer.body["messages"]), number)
    return {"type": "thinking", "thinking": text, "signature": sign(rules.THINKING, text, before)}


def _server_blocks(answer: Answer, place: int, query: str, result: str | None) -> list[JSON]:
    call_id = f"srvtoolu_{answer.part_id(place, 'search')}"
    use = {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": query}}
    if result is None:
        return [use]
    page = {"type": "web_search_result", "url": "https://example.com/", "title": result, "page_age": None,
            "encrypted_content": sign("anthropic search", result)}  # fmt: skip
    return [use, {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [page]}]


def _block_frames(index: int, block: JSON, segment: Segment) -> Iterator[bytes]:
    """start, deltas, stop. A call that was cut has no stop: the output ended inside it."""
    start, deltas = _start_and_deltas(block, segment)
    yield frame({"type": "content_block_start", "index": index, "content_block": start}, "content_block_start")
    for delta in deltas:
        yield frame({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
    if not (isinstance(segment, Call) and not segment.whole):
        yield frame({"type": "content_block_stop", "index": index}, "content_block_stop")


def _start_and_deltas(block: JSON, segment: Segment) -> tuple[JSON, list[JSON]]:
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in text_pieces(block["text"])]
        case "thinking":
            thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in text_pieces(block["thinking"])]
            signature = [{"type": "signature_delta", "signature": block["signature"]}] if block["signature"] else []
            return {"type": "thinking", "thinking": "", "signature": ""}, thoughts + signature
        case "tool_use" | "server_tool_use":
            text = segment.text if isinstance(segment, Call) else compact(block["input"])
            pieces = ["", *coarse_pieces(text)]  # the first is usually empty, and without arguments there is no other
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        case _:
            return block, []
