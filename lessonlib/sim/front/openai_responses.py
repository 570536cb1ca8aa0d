"""The Responses API's face: `POST /v1/responses`, whole and streamed. docs/wire/openai-responses.md

Items have ids that say which answer they belong to, so that the rules can ask for a missing partner. Encrypted reasoning is
a signature over its id. Reasoning items carry no `status`: the service writes none, and refuses one. This API never pauses:
a search of the server's own is finished before the answer ends.

Beside answers: counting (`/input_tokens`), stored responses (GET, also as a stream from a given event on; DELETE; cancel),
and background runs, which are done when somebody looks at them for the second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from lessonlib.sim import model
from lessonlib.sim.ask import Ask, conversation
from lessonlib.sim.core import EPOCH, Answer, Simulator, Stored
from lessonlib.sim.faults import Fault
from lessonlib.sim.front.base import Front, Performed, frame, query
from lessonlib.sim.pieces import text_pieces
from lessonlib.sim.refusal import Context, Refusal, model_names
from lessonlib.sim.rules import openai
from lessonlib.sim.rules import responses as rules
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think, Turn
from lessonlib.sim.signing import Verdict, digest, sign
from lessonlib.sim.usage import CacheOptions
from lessonlib.types import JSON, Image, Opaque, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, function_call

WIRE = openai.RESPONSES
PADDING = 16
"""Deltas are padded to a multiple of this many characters, so that their length tells less (`obfuscation`)."""
STATUS_TYPES = {
    400: "invalid_request_error", 401: "invalid_request_error", 403: "invalid_request_error", 404: "invalid_request_error",
    429: "requests", 500: "server_error", 503: "service_unavailable_error",
}  # fmt: skip
STATUS_CODES = {429: "rate_limit_exceeded", 503: "server_is_overloaded"}
"""Codes by status; everything else from 500 on is a server_error."""


class OpenAIResponsesFront(Front):
    """The Responses frontend."""

    wire: ClassVar[str] = WIRE
    book = openai.BOOK
    shape = rules.SHAPE
    routes: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("POST", r"(?:/v1)?/responses", "answer"),
        ("POST", r"(?:/v1)?/responses/input_tokens", "count"),
        ("GET", r"(?:/v1)?/responses/([^/]+)", "get"),
        ("DELETE", r"(?:/v1)?/responses/([^/]+)", "delete"),
        ("POST", r"(?:/v1)?/responses/([^/]+)/cancel", "cancel"),
        ("GET", r"(?:/v1)?/models(?:/([^/]+))?", "models"),
    )
    status_types: ClassVar[dict[int, str]] = STATUS_TYPES

    # ------------------------------------------------------------ the request

    def owns(self, headers: Mapping[str, str]) -> bool:
        return not {"anthropic-version", "x-api-key", "x-goog-api-key"} & headers.keys()

    def read(self, context: Context) -> Ask:
        body = context.body
        kept = _kept(context)
        reasoning = as_dict(body.get("reasoning"))
        thinks = context.able.thinking not in (None, "none") and reasoning.get("effort") not in ("none", "minimal")
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=conversation(_turn(item) for item in kept),
            system=as_text(body.get("instructions")),
            tools=[tool for entry in openai.tools_of(context) for tool in _tools(entry)],
            tool_choice=choice(WIRE, body.get("tool_choice")),
            parallel=body.get("parallel_tool_calls") is not False,
            max_tokens=body.get("max_output_tokens"),
            thinks=thinks,
            effort=reasoning.get("effort"),
            summary=reasoning.get("summary") is not None,
            output_schema=as_dict(as_dict(as_dict(body.get("text")).get("format")).get("schema")) or None,
            stream=body.get("stream") is True,
            kept_reasoning=_kept_reasoning(kept),
        )

    def findings(self, context: Context) -> JSON:
        """The reasoning that the model does not get to see, and why."""
        removed = [
            {"id": item["id"], "type": "reasoning", "action": "removed", "reason": reason}
            for item, reason in _judged(context)
            if reason is not None
        ]
        return {"input_transformations": removed} if removed else {}

    def truncates(self, context: Context) -> bool:
        return context.body.get("truncation") == "auto"

    def cache_options(self, context: Context) -> CacheOptions:
        """Automatic; writes are reported (and billed) from gpt-5.6 on."""
        return CacheOptions(writes=bills_writes(context.able.family))

    # ------------------------------------------------------------ the answer

    def adapt(self, said: Turn, ask: Ask, context: Context) -> Turn:
        return without_pause(said, ask)

    def headers(self, number: int) -> dict[str, str]:
        return {**openai_headers(number), "openai-version": "2020-10-01"}

    def whole(self, answer: Answer) -> JSON:
        if answer.body.get("background") is True:
            return _response(answer, [], "queued")
        return _response(answer, _items(answer))

    def frames(self, answer: Answer) -> Iterator[bytes]:
        for number, event in enumerate(_events(answer)):
            yield frame({**event, "sequence_number": number}, event["type"])

    def remember(self, answer: Answer, sim: Simulator) -> None:
        """With `store` (true unless the request says false) a later request may continue from this response's id."""
        if answer.body.get("store") is False:
            return
        before = sim.kept(WIRE, answer.body.get("previous_response_id"))
        own = [*rules.items(answer.body), *_items(answer)]
        pending = answer.body.get("background") is True and not answer.ask.stream
        history = [*(before.history if before is not None else []), *own]
        sim.keep(f"resp_{answer.id}", Stored(WIRE, answer, own, history, pending))

    # ------------------------------------------------------------ other operations

    def models(self, name: str) -> JSON:
        named = [name] if name else model_names("openai")
        data = [{"id": one, "object": "model", "created": EPOCH, "owned_by": "openai"} for one in named]
        return data[0] if name else {"object": "list", "data": data}

    def count(self, tokens: int) -> JSON:
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def stored(self, context: Context) -> Performed:
        name, sim = context.target, context.sim
        stored = sim.kept(WIRE, name)
        if stored is None:
            raise KeyError(name)  # a rule has refused that
        if context.operation == "delete":
            sim.forget(name)
            return {"id": name, "object": "response", "deleted": True}
        if context.operation == "cancel":
            stored.cancelled, stored.pending = stored.cancelled or stored.pending, False
            return _stored_response(stored)
        if query(context.path, "stream") == "true":
            return _resumed(stored.answer, query(context.path, "starting_after"))
        shown = _stored_response(stored)
        stored.pending = False
        return shown

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal, request_id: str) -> JSON:
        return openai_error(refusal)

    def error_frames(self, refusal: Refusal, answer: Answer, number: int) -> Iterator[bytes]:
        """The pair that was captured: a nested error, then response.failed. The first one is enough to end on."""
        error = {"type": refusal.type, "code": refusal.code, "message": refusal.message, "param": None}
        yield frame({"type": "error", "sequence_number": number, "error": error}, "error")
        failed = {**_response(answer, [], "failed"), "error": {"code": refusal.code, "message": refusal.message}}
        event = {"type": "response.failed", "sequence_number": number + 1, "response": failed}
        yield frame(event, "response.failed")

    def fault_refusal(self, fault: Fault) -> Refusal:
        return openai_fault(super().fault_refusal(fault), fault)


# ---------------------------------------------------------------- shared with Chat Completions


def openai_headers(number: int) -> dict[str, str]:
    """Request id and rate limits, whose resets are durations in words."""
    return {
        "x-request-id": f"req_sim{number:06d}",
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
    }


def openai_error(refusal: Refusal) -> JSON:
    """The error body of both APIs."""
    return {"error": {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}}


def openai_fault(refusal: Refusal, fault: Fault) -> Refusal:
    """A fault in OpenAI's words: a code beside the type."""
    code = STATUS_CODES.get(fault.status, "server_error" if fault.status >= 500 else None)
    return replace(refusal, code=fault.code or code)


def choice(wire: str, given: Any) -> str | None:
    """A `tool_choice` in neutral words."""
    if isinstance(given, str) or given is None:
        return given
    if given.get("type") == "allowed_tools":
        names = openai.chosen_names(wire, given)
        mode = (given if wire == WIRE else as_dict(given.get("allowed_tools"))).get("mode")
        return names[0] if names and mode == "required" else "auto"
    names = openai.chosen_names(wire, given)
    return names[0] if names else None


def without_pause(said: Turn, ask: Ask) -> Turn:
    """An API that never hands a turn back half way plays it to its end."""
    if said.reason is not StopReason.PAUSE:
        return said
    return Turn((*said.segments[:-1], *model.after_pause(ask).segments))


# ---------------------------------------------------------------- read


def _judged(context: Context) -> list[tuple[JSON, str | None]]:
    """The request's items, each with the reason why the model does not see it (None: it does): another model's reasoning,
    and with `reasoning.context: current_turn` that of earlier turns."""
    found = rules.items(context.body)
    earlier = _last_user(found) if context.get("reasoning", "context") == "current_turn" else 0
    return [(item, _reason(item, context, place < earlier)) for place, item in enumerate(found)]


def _reason(item: JSON, context: Context, earlier: bool) -> str | None:
    if rules.item_type(item) != "reasoning":
        return None
    if item.get("encrypted_content") and rules.verdict(item, context.able.family) is Verdict.OTHER:
        return "model_mismatch"
    return "turn_boundary" if earlier else None


def _last_user(found: list[JSON]) -> int:
    """The place of the last message of the user; what follows belongs to the running turn."""
    kinds = [(rules.item_type(item), item.get("role")) for item in found]
    return max((place for place, kind in enumerate(kinds) if kind == ("message", "user")), default=-1)


def _kept(context: Context) -> list[JSON]:
    """The items that the model gets to see: stored ones first, references resolved."""
    own = [
        context.sim.item(item["id"]) or item if rules.item_type(item) == "item_reference" else item
        for item, reason in _judged(context)
        if reason is None
    ]
    return [*rules.stored_items(context), *own]


def _turn(item: JSON) -> tuple[str, list[Part]]:
    match rules.item_type(item):
        case "message":
            return as_text(item.get("role")), _content(item.get("content"))
        case "function_call":
            call = function_call(as_text(item.get("call_id")), as_text(item.get("name")), as_text(item.get("arguments")),
                                 wire=WIRE, raw=None)  # fmt: skip
            return "assistant", [call]
        case "custom_tool_call":
            text = as_text(item.get("input"))
            call = ToolCall(call_id=as_text(item.get("call_id")), name=as_text(item.get("name")), args={"input": text})
            return "assistant", [call]
        case "function_call_output" | "custom_tool_call_output":
            text = "".join(part.text for part in _content(item.get("output")) if isinstance(part, Text))
            return "user", [ToolResult(call_id=as_text(item.get("call_id")), content=text)]
        case "reasoning":
            summaries = [as_text(as_dict(summary).get("text")) for summary in as_list(item.get("summary"))]
            return "assistant", [Reasoning(text="".join(summaries))]
        case kind:
            return "assistant", [Opaque(kind=kind)]


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(text=content)]
    parts: list[Part] = []
    for entry in (as_dict(entry) for entry in as_list(content)):
        if entry.get("type") == "input_image":
            parts.append(Image(url=as_text(entry.get("image_url")) or as_text(entry.get("file_id")) or "file"))
        else:
            parts.append(Text(text=as_text(entry.get("text")) or as_text(entry.get("refusal"))))
    return parts


def _tools(entry: JSON) -> list[Tool]:
    if entry.get("type") == "function":
        schema = as_dict(entry.get("parameters")) or {"type": "object", "properties": {}}
        return [Tool(name=entry["name"], description=as_text(entry.get("description")), parameters=schema)]
    if entry.get("type") == "custom":
        return [Tool(name=entry["name"], description=as_text(entry.get("description")), kind="custom")]
    return []


def _kept_reasoning(found: list[JSON]) -> bool:
    """Whether the running turn's calls still have their reasoning: the calls after the last message of the user."""
    running = {rules.item_type(item) for item in found[_last_user(found) + 1 :]}
    return not running.intersection(rules.CALLS) or "reasoning" in running


# ---------------------------------------------------------------- write


def _response(answer: Answer, output: list[JSON], status: str | None = None) -> JSON:
    """The response object. `status` given: a snapshot of a response that has not ended in an answer."""
    body = answer.body
    asked = as_dict(body.get("reasoning"))
    reason = _incomplete(answer)
    ended = status is None
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "status": status or ("incomplete" if reason else "completed"),
        "background": body.get("background") is True,
        "completed_at": answer.created + 1 if ended and not reason else None,
        "error": None,
        "incomplete_details": {"reason": reason} if ended and reason else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": answer.ask.model,
        "output": output,
        "parallel_tool_calls": answer.ask.parallel,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": asked.get("effort"), "summary": asked.get("summary")},
        "service_tier": "default",
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": [{"strict": None, "parameters": None, **tool} if tool.get("type") == "function" else tool
                  for tool in as_list(body.get("tools"))],
        "truncation": body.get("truncation") or "disabled",
        "usage": _usage(answer) if ended else None,
        "metadata": as_dict(body.get("metadata")),
        **answer.extra,
    }  # fmt: skip


def bills_writes(family: str) -> bool:
    """Whether OpenAI reports what goes into the prompt cache: it bills that from gpt-5.6 on."""
    return family.startswith(("gpt-5.6", "gpt-6"))


def _incomplete(answer: Answer) -> str | None:
    """Why the answer is incomplete, None if it is not."""
    if answer.turn.reason is StopReason.LENGTH:
        return "max_output_tokens"
    filtered = any(isinstance(segment, Refuse) and not segment.text for segment in answer.turn.segments)
    return "content_filter" if filtered else None


def _usage(answer: Answer) -> JSON:
    counts = answer.counts
    return {
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": counts.written},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.input + counts.output,
    }


def _items(answer: Answer) -> list[JSON]:
    return [item for place, segment in enumerate(answer.turn.segments) for item in _item(answer, place, segment)]


def _id(answer: Answer, prefix: str, place: int) -> str:
    """An id that names its answer and says whether that answer was reasoned (rules.reasoned)."""
    mark = "r" if any(isinstance(segment, Think) for segment in answer.turn.segments) else "0"
    return f"{prefix}_{answer.id}x{place:02d}{mark}"


def _item(answer: Answer, place: int, segment: Segment) -> list[JSON]:
    match segment:
        case Think(text):
            item_id = _id(answer, "rs", place)
            summary = [{"type": "summary_text", "text": text}] if answer.ask.summary and not segment.redacted else []
            blob = rules.BLOB + sign(rules.REASONING, item_id, None, _family(answer))
            return [{"id": item_id, "type": "reasoning", "summary": summary, "encrypted_content": blob}]
        case Say(text, whole):
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
            return [_message_item(answer, place, part, whole)]
        case Refuse(text):
            return [_message_item(answer, place, {"type": "refusal", "refusal": text}, True)] if text else []
        case Call():
            return [_call_item(answer, place, segment)]
        case ServerCall(search):
            action = {"type": "search", "query": search, "queries": [search]}
            return [{"id": _id(answer, "ws", place), "type": "web_search_call", "status": "completed", "action": action}]


def _family(answer: Answer) -> str:
    from lessonlib import capabilities

    return capabilities.of(answer.ask.model).family


def _message_item(answer: Answer, place: int, part: JSON, whole: bool) -> JSON:
    """A message says by `phase` whether it is the answer or a word before a call."""
    more = any(isinstance(later, Call) for later in answer.turn.segments[place + 1 :])
    return {
        "id": _id(answer, "msg", place),
        "type": "message",
        "status": "completed" if whole else "incomplete",
        "role": "assistant",
        "content": [part],
        "phase": "commentary" if more else "final_answer",
    }


def _call_item(answer: Answer, place: int, call: Call) -> JSON:
    tool = answer.ask.tool(call.name)
    ids = {"call_id": f"call_{answer.part_id(place, 'call')}", "name": call.name}
    if tool is not None and tool.kind == "custom":
        text = call.args if isinstance(call.args, str) else call.text
        return {"id": _id(answer, "ctc", place), "type": "custom_tool_call", "input": text, **ids}
    arguments = call.text or ("{}" if call.whole else "")
    status = "completed" if call.whole else "incomplete"
    return {"id": _id(answer, "fc", place), "type": "function_call", "status": status, "arguments": arguments, **ids}


# ---------------------------------------------------------------- write: the stream


def _events(answer: Answer) -> Iterator[JSON]:
    """All events in their order; sequence numbers are added outside."""
    items = _items(answer)
    yield {"type": "response.created", "response": _response(answer, [], "in_progress")}
    yield {"type": "response.in_progress", "response": _response(answer, [], "in_progress")}
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        for event in _inner_events(answer, item):
            yield {**event, "item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    final = _response(answer, items)
    yield {"type": f"response.{final['status']}", "response": final}


def _begun(item: JSON) -> JSON:
    """An item as `output_item.added` shows it. The encrypted content there is not whole: the blob of `done` is the one."""
    empty: dict[str, JSON] = {
        "message": {"content": []},
        "reasoning": {"summary": [], "encrypted_content": as_text(item.get("encrypted_content"))[:24]},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
    }
    status = {"status": "in_progress"} if "status" in item else {}
    return {**item, **status, **empty.get(item["type"], {})}


def _inner_events(answer: Answer, item: JSON) -> Iterator[JSON]:
    match item["type"]:
        case "reasoning":
            for number, summary in enumerate(item["summary"]):
                yield from _summary_events(answer, number, summary)
        case "message":
            yield from _content_events(answer, item["content"][0])
        case "function_call":
            yield from _deltas(answer, "response.function_call_arguments", item["arguments"], "arguments")
        case "custom_tool_call":
            yield from _deltas(answer, "response.custom_tool_call_input", item["input"], "input")
        case "web_search_call":
            for step in ("in_progress", "searching", "completed"):
                yield {"type": f"response.web_search_call.{step}"}


def _summary_events(answer: Answer, number: int, summary: JSON) -> Iterator[JSON]:
    place = {"summary_index": number}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {"type": "summary_text", "text": ""}}
    for event in _deltas(answer, "response.reasoning_summary_text", summary["text"], "text"):
        yield {**event, **place}
    yield {"type": "response.reasoning_summary_part.done", **place, "part": summary}


def _content_events(answer: Answer, part: JSON) -> Iterator[JSON]:
    place = {"content_index": 0}
    field = "text" if part["type"] == "output_text" else "refusal"
    logprobs: JSON = {"logprobs": []} if field == "text" else {}
    yield {"type": "response.content_part.added", **place, "part": {**part, field: ""}}
    for event in _deltas(answer, f"response.{part['type']}", part[field], field):
        yield {**event, **place, **logprobs}
    yield {"type": "response.content_part.done", **place, "part": part}


def _deltas(answer: Answer, name: str, text: str, field: str) -> Iterator[JSON]:
    padded = as_dict(answer.body.get("stream_options")).get("include_obfuscation") is not False
    for place, piece in enumerate(text_pieces(text)):
        event = {"type": f"{name}.delta", "delta": piece}
        yield {**event, "obfuscation": _padding(answer.id, place, piece)} if padded else event
    yield {"type": f"{name}.done", field: text}


def _padding(answer_id: str, place: int, piece: str) -> str:
    return digest(answer_id, place)[: PADDING - len(piece) % PADDING]


# ---------------------------------------------------------------- write: stored responses


def _stored_response(stored: Stored) -> JSON:
    """A stored response as it is now: still queued, cancelled, or the answer."""
    if stored.cancelled or stored.pending:
        return _response(stored.answer, [], "cancelled" if stored.cancelled else "in_progress")
    return _response(stored.answer, _items(stored.answer))


def _resumed(answer: Answer, after: str) -> Iterator[tuple[float, bytes]]:
    """The stored stream from the event behind number `after` on."""
    first = int(after) + 1 if re.fullmatch(r"\d{1,9}", after) else 0
    for number, event in enumerate(_events(answer)):
        if number >= first:
            yield 0.0, frame({**event, "sequence_number": number}, event["type"])
