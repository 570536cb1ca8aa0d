"""The Messages API's face: `POST /v1/messages`, whole and streamed. docs/wire/anthropic.md

Thinking blocks are signed over their text, their model and everything before them (signing.py); the rules check all three.
Usage has the vendor's three disjoint input counts; `message_start` holds a small placeholder for the output, `message_delta`
the total. Nothing is cached without a mark.

The service keeps a model to valid JSON, unless a tool has `eager_input_streaming` and the answer is streamed; so invalid
arguments come as valid ones that break the schema.

Beside answers: `POST /v1/messages/count_tokens`, and the list of models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pydantic_core import from_json

from lessonlib import capabilities
from lessonlib.sim.ask import Ask, conversation, note
from lessonlib.sim.core import Answer
from lessonlib.sim.front.base import Front, frame
from lessonlib.sim.pieces import coarse_pieces, text_pieces
from lessonlib.sim.refusal import Context, Refusal, model_names
from lessonlib.sim.rules import anthropic as rules
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think, Turn
from lessonlib.sim.signing import Verdict, sign
from lessonlib.sim.usage import TTL, CacheOptions
from lessonlib.types import JSON, Image, Message, Opaque, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, compact, read_json

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
    shape = rules.SHAPE
    nulls: ClassVar[bool] = False
    routes: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("POST", r"/v1/messages", "answer"),
        ("POST", r"/v1/messages/count_tokens", "count"),
        ("GET", r"/v1/models(?:/([^/]+))?", "models"),
    )
    status_types: ClassVar[dict[int, str]] = {
        400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
        404: "not_found_error", 409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error",
        500: "api_error", 504: "timeout_error", 529: "overloaded_error",
    }  # fmt: skip

    # ------------------------------------------------------------ the request

    def owns(self, headers: Mapping[str, str]) -> bool:
        return bool({"anthropic-version", "x-api-key"} & headers.keys())

    def read(self, context: Context) -> Ask:
        body = context.body
        schema = as_dict(as_dict(as_dict(body.get("output_config")).get("format")).get("schema"))
        choice = as_dict(body.get("tool_choice"))
        kind = as_text(choice.get("type"))
        messages = conversation((message["role"], _parts(message)) for message in body["messages"])
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=messages,
            system=_system(body.get("system")),
            tools=[_tool(tool) for tool in as_list(body.get("tools")) if tool.get("input_schema") is not None],
            tool_choice={"any": "required", "tool": as_text(choice.get("name"))}.get(kind, kind or None),
            parallel=not choice.get("disable_parallel_tool_use", False),
            max_tokens=body.get("max_tokens"),
            thinks=rules.thinks(context),
            effort=as_dict(body.get("output_config")).get("effort"),
            summary=_shows_thinking(context),
            stop=as_list(body.get("stop_sequences")),
            output_schema=schema or None,
            stream=body.get("stream") is True,
            kept_reasoning=not any(place >= len(body["messages"]) - 2 for place, *_ in _lost(context)),
            paused=_dangling(body) is not None,
            talked_over=_talked_over(messages[-1]),
        )

    def findings(self, context: Context) -> JSON:
        """The thinking that the model does not get to see; reported under the beta header only."""
        if rules.BINDING_BETA not in context.headers.get("anthropic-beta", ""):
            return {}
        entries = [{"type": "thinking_dropped", "path": f"messages.{place}.content.{number}", "reason": reason}
                   for place, number, reason in _lost(context)]  # fmt: skip
        return {"input_transformations": entries} if entries else {}

    def cache_options(self, context: Context) -> CacheOptions:
        """Nothing is cached without a mark: `cache_control` at the top level (the last block), or on blocks."""
        marks = rules.marked_blocks(context.body)
        places = [place for place, _ in marks]
        top = as_dict(context.body.get("cache_control"))
        if top:
            places.append(len(context.body["messages"]))
        if not places:
            return CacheOptions(upto=None)
        hour = any(as_dict(mark).get("ttl") == "1h" for mark in (top, *(block["cache_control"] for _, block in marks)))
        return CacheOptions(upto=_step(context.body, max(places)), writes=True, ttl=3600.0 if hour else TTL)

    # ------------------------------------------------------------ the answer

    def adapt(self, said: Turn, ask: Ask, context: Context) -> Turn:
        eager = {tool.get("name") for tool in as_list(context.body.get("tools")) if tool.get("eager_input_streaming")}
        return replace(said, segments=tuple(_valid(segment, ask.stream, eager) for segment in said.segments))

    def headers(self, number: int) -> dict[str, str]:
        return {
            "request-id": self.request_id(number),
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-requests-reset": "2026-11-30T12:00:01Z",
        }

    def whole(self, answer: Answer) -> JSON:
        content = [block for _, block in _content(answer)]
        return {**_envelope(answer), "content": content, **_ending(answer), "usage": _usage(answer), **answer.extra}

    def frames(self, answer: Answer) -> Iterator[bytes]:
        usage = _usage(answer)
        start = {**_envelope(answer), "content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None,
                 "usage": {**usage, "output_tokens": 1}}  # fmt: skip
        start["usage"].pop("output_tokens_details")
        yield frame({"type": "message_start", "message": start}, "message_start")
        for index, (segment, block) in enumerate(_content(answer)):
            for number, block_frame in enumerate(_block_frames(index, block, segment)):
                yield block_frame
                if index == number == 0:
                    yield frame({"type": "ping"}, "ping")
        delta = {
            "type": "message_delta",
            "delta": _ending(answer),
            "usage": {name: value for name, value in usage.items() if name in _DELTA_USAGE},
            **answer.extra,
        }
        yield frame(delta, "message_delta")
        yield frame({"type": "message_stop"}, "message_stop")

    # ------------------------------------------------------------ other operations

    def models(self, name: str) -> JSON:
        if name:
            return _model(name)
        data = [_model(one) for one in model_names("anthropic")]
        return {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}

    def count(self, tokens: int) -> JSON:
        return {"input_tokens": tokens}

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal, request_id: str) -> JSON:
        error: JSON = {"type": refusal.type, "message": refusal.message}
        if refusal.code:
            error["details"] = {"error_code": refusal.code}
        return {"type": "error", "error": error, "request_id": request_id}

    def error_frames(self, refusal: Refusal, answer: Answer, number: int) -> Iterator[bytes]:
        yield frame(self.error(refusal, f"req_{answer.id}"), "error")


# ---------------------------------------------------------------- read


def _shows_thinking(context: Context) -> bool:
    """Whether thinking comes as text: on request, and by default up to 4.6."""
    display = as_dict(context.body.get("thinking")).get("display")
    return display == "summarized" or (display is None and rules.generation(context.able.family) < (4, 7))


def _lost(context: Context) -> list[tuple[int, int, str]]:
    """(message, place, reason) of the thinking blocks that are dropped without an error: another model wrote them, or they
    have lost their place and the request says that such blocks may go."""
    lost = []
    drops = rules.bound(context) and rules.drops_moved_thinking(context)
    for place, number, block, before in rules.prefixes(context.body):
        if block.get("type") not in rules.THOUGHTS:
            continue
        found = rules.judge(block, before, context.able.family)
        if found is Verdict.OTHER:
            lost.append((place, number, "model_binding_mismatch"))
        elif found is Verdict.MOVED and drops:
            lost.append((place, number, "prefix_binding_mismatch"))
    return lost


def _dangling(body: JSON) -> str | None:
    """The id of the search that still ran when the last turn, which comes back as last message, was handed out."""
    last = body["messages"][-1]
    if last["role"] != "assistant":
        return None
    content = rules.blocks(last)
    answered = {block.get("tool_use_id") for block in content if "tool_use_id" in block}
    open_ids = [block["id"] for block in content if block["type"] == "server_tool_use" and block["id"] not in answered]
    return open_ids[-1] if open_ids else None


def _talked_over(message: Message) -> bool:
    """Whether text stands behind tool results (section 2.3): allowed, and the model ends its turn with next to nothing."""
    kinds = [type(part) for part in message.parts]
    return ToolResult in kinds and Text in kinds[kinds.index(ToolResult) :]


def _step(body: JSON, place: int) -> int:
    """The step of the measured prompt that message number `place` (0 is before all messages) is part of: neighbours of one
    role are one message there."""
    step, before = 0, None
    for message in body["messages"][:place]:
        role = message["role"] == "assistant"
        step += role != before
        before = role
    return step


def _system(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "".join(as_text(as_dict(block).get("text")) for block in as_list(value))


def _tool(tool: JSON) -> Tool:
    return Tool(name=tool["name"], description=as_text(tool.get("description")), parameters=tool["input_schema"])


def _parts(message: JSON) -> list[Part]:
    if message["role"] == "system":
        return [note(_system(message["content"]))]
    return [part for block in rules.blocks(message) for part in _part(block)]


def _part(block: JSON) -> list[Part]:
    match block["type"]:
        case "text":
            return [Text(text=block["text"])]
        case "tool_use":
            return [ToolCall(call_id=block["id"], name=block["name"], args=block["input"])]
        case "tool_result":
            return [ToolResult(call_id=block["tool_use_id"], content=_system(block.get("content")),
                               is_error=block.get("is_error") is True)]  # fmt: skip
        case "thinking":
            return [Reasoning(text=block["thinking"])]
        case "image":
            source = as_dict(block["source"])
            return [Image(url=next((as_text(source[name]) for name in ("url", "data", "file_id") if name in source), "?"))]
        case kind:
            return [Opaque(kind=kind)]


def _valid(segment: Segment, streams: bool, eager: set[Any]) -> Segment:
    """A call as constrained decoding lets it out: arguments that are no JSON become an object that breaks the schema."""
    if not isinstance(segment, Call) or isinstance(segment.args, dict) or (streams and segment.name in eager):
        return segment
    return segment if _is_object(segment.args) else replace(segment, args={"no_such_field": segment.args})


def _is_object(text: str) -> bool:
    try:
        return isinstance(read_json(text), dict)
    except ValueError:
        return False


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
    turn = answer.turn
    refusal = next((segment for segment in turn.segments if isinstance(segment, Refuse)), None)
    details = {"type": "refusal", "category": refusal.category, "explanation": None} if refusal else None
    word = STOPS.get(turn.reason, "end_turn")
    if turn.stop_sequence:
        word = "stop_sequence"
    elif turn.full and turn.reason is StopReason.LENGTH:
        word = "model_context_window_exceeded"
    return {"stop_reason": word, "stop_sequence": turn.stop_sequence, "stop_details": details}


def _usage(answer: Answer) -> JSON:
    counts = answer.counts
    marks = [as_dict(answer.body.get("cache_control"))]
    marks += [as_dict(block["cache_control"]) for _, block in rules.marked_blocks(answer.body)]
    hour = any(mark.get("ttl") == "1h" for mark in marks)
    return {
        "input_tokens": counts.fresh,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": 0 if hour else counts.written,
            "ephemeral_1h_input_tokens": counts.written if hour else 0,
        },
        "output_tokens": counts.output,
        "output_tokens_details": {"thinking_tokens": counts.reasoning},
        "service_tier": "standard",
        "inference_geo": "not_available",
    }


def _content(answer: Answer) -> list[tuple[Segment, JSON]]:
    """The content blocks, each with the segment that it comes from. Thinking is signed over all that stands before it."""
    running = rules.prefix(answer.body)
    content: list[tuple[Segment, JSON]] = []
    for place, segment in enumerate(answer.turn.segments):
        for block in _blocks(answer, place, segment, running):
            content.append((segment, block))
            running = rules.after_block(running, "assistant", block)
    return content


def _blocks(answer: Answer, place: int, segment: Segment, before: str) -> list[JSON]:
    match segment:
        case Think():
            return _thinking(answer, segment, before)
        case Say(text) | Refuse(text):
            return [{"type": "text", "text": text}] if text else []
        case Call(name):
            thought = "t" if any(isinstance(one, Think) for one in answer.turn.segments) else ""
            call_id = f"toolu_{answer.part_id(place, 'call')}{thought}"
            return [{"type": "tool_use", "id": call_id, "name": name, "input": _input(segment)}]
        case ServerCall(query, result):
            return _search(answer, place, query, result)


def _input(call: Call) -> JSON:
    """The call's input as an object. One that was cut may lack keys, and looks as good as a whole one."""
    if isinstance(call.args, dict):
        return call.args
    try:
        value = from_json(call.args or "{}", allow_partial=True)
    except ValueError:
        value = {}
    return value if isinstance(value, dict) else {}


def _thinking(answer: Answer, segment: Think, before: str) -> list[JSON]:
    family = capabilities.of(answer.ask.model).family
    if segment.redacted:
        data = sign(rules.THINKING, "redacted", before, family)
        return [{"type": "redacted_thinking", "data": data}] if segment.whole else []
    text = segment.text if answer.ask.summary else ""
    signature = sign(rules.THINKING, text, before, family) if segment.whole else ""
    return [{"type": "thinking", "thinking": text, "signature": signature}]


def _search(answer: Answer, place: int, query: str, result: str | None) -> list[JSON]:
    """A search with its result; of one that was begun in the turn before only the result."""
    begun = _dangling(answer.body)
    call_id = begun or f"srvtoolu_{answer.part_id(place, 'search')}"
    use = {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": query}}
    if result is None:
        return [use]
    page = {"type": "web_search_result", "url": "https://example.com/", "title": result, "page_age": None,
            "encrypted_content": sign("anthropic search", result)}  # fmt: skip
    found = {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [page]}
    return [found] if begun else [use, found]


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


# ---------------------------------------------------------------- write: models


def _model(name: str) -> JSON:
    able = capabilities.of(name)
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": able.window,
        "max_tokens": able.max_output,
    }
