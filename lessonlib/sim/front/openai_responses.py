"""The Responses API's face: `POST /v1/responses`, whole and streamed. docs/wire/openai-responses.md

Items have ids that say which answer they belong to, so that the rules can ask for a missing partner. Encrypted reasoning is
a signature over its id. Reasoning items carry `status` on the way out, which is refused on the way back, as in life. This
API never pauses: a search of the server's own is finished before the answer ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from lessonlib.sim.ask import Ask
from lessonlib.sim.core import Answer
from lessonlib.sim.front.base import Front, frame
from lessonlib.sim.pieces import text_pieces
from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.rules import openai as rules
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think
from lessonlib.sim.signing import digest, sign
from lessonlib.types import JSON, Image, Message, Opaque, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, function_call

WIRE = rules.RESPONSES
PADDING = 16
"""Deltas are padded to a multiple of this many characters, so that their length tells less (`obfuscation`)."""


class OpenAIResponsesFront(Front):
    """The Responses frontend."""

    wire: ClassVar[str] = WIRE
    book = rules.BOOK
    paths: ClassVar[tuple[str, ...]] = (r"/v1/responses", r"/responses")
    bad_request: ClassVar[str] = "invalid_request_error"
    pauses: ClassVar[bool] = False
    status_types: ClassVar[dict[int, str]] = {
        400: "invalid_request_error", 401: "invalid_request_error", 403: "invalid_request_error",
        404: "invalid_request_error",
        429: "requests", 500: "server_error", 502: "server_error", 503: "service_unavailable_error", 504: "server_error",
    }  # fmt: skip

    # ------------------------------------------------------------ the request

    def read(self, context: Context) -> Ask:
        body = context.body
        found = [*rules.stored_items(context), *rules.items(body)]
        reasoning = as_dict(body.get("reasoning"))
        thinks = context.able.thinking not in (None, "none") and reasoning.get("effort") not in ("none", "minimal")
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=_messages(found),
            system=as_text(body.get("instructions")),
            tools=[tool for entry in as_list(body.get("tools")) for tool in _tools(as_dict(entry))],
            tool_choice=_choice(body.get("tool_choice")),
            parallel=body.get("parallel_tool_calls") is not False,
            max_tokens=body.get("max_output_tokens"),
            thinks=thinks,
            summary=reasoning.get("summary") is not None,
            output_schema=as_dict(as_dict(as_dict(body.get("text")).get("format")).get("schema")) or None,
            stream=body.get("stream") is True,
            kept_reasoning=_kept_reasoning(found),
        )

    def too_long(self, context: Context, tokens: int) -> Refusal | None:
        text = f"Your input exceeds the context window of this model ({tokens:,} tokens)."
        return rules.refused(text, "context_length_exceeded", "input")

    def cache_options(self, context: Context) -> dict[str, Any]:
        """Automatic; writes are reported (and billed) from gpt-5.6 on."""
        return {"writes": context.able.family.startswith(("gpt-5.6", "gpt-6"))}

    # ------------------------------------------------------------ the answer

    def headers(self, number: int) -> dict[str, str]:
        return {
            "x-request-id": f"req_sim{number:06d}",
            "x-ratelimit-remaining-requests": "99",
            "openai-version": "2020-10-01",
        }

    def whole(self, answer: Answer) -> JSON:
        return _response(answer, _items(answer))

    def frames(self, answer: Answer) -> Iterator[bytes]:
        for number, event in enumerate(_events(answer)):
            yield frame({**event, "sequence_number": number}, event["type"])

    def remember(self, answer: Answer) -> None:
        """With `store` (true unless the request says false) a later request may continue from this response's id."""
        if answer.body.get("store") is False:
            return
        before = as_list(answer.sim.stored.get(as_text(answer.body.get("previous_response_id")), {}).get("items"))
        answer.sim.stored[f"resp_{answer.id}"] = {"items": [*before, *rules.items(answer.body), *_items(answer)]}

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal) -> JSON:
        error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
        return {"error": error}

    def error_frame(self, refusal: Refusal) -> bytes:
        """The pair that was captured: a nested error, then response.failed. The first one is enough to end on."""
        error = {"type": refusal.type, "code": refusal.code or refusal.type, "message": refusal.message, "param": None}
        return frame({"type": "error", "sequence_number": 99, "error": error}, "error")


# ---------------------------------------------------------------- read


def _messages(found: list[JSON]) -> list[Message]:
    """Items on one time line -> messages of two roles. Outputs belong to the user."""
    messages: list[Message] = []
    for item in found:
        role, parts = _parts(item)
        if messages and messages[-1].role == role:
            messages[-1] = Message(role=messages[-1].role, parts=[*messages[-1].parts, *parts])
        elif parts:
            messages.append(Message(role="assistant" if role == "assistant" else "user", parts=parts))
    return messages


def _parts(item: JSON) -> tuple[str, list[Part]]:
    match rules.item_type(item):
        case "message":
            role = "assistant" if item["role"] == "assistant" else "user"
            return role, _content(item["content"])
        case "function_call":
            return "assistant", [function_call(item["call_id"], item["name"], item["arguments"], wire=WIRE, raw=None)]
        case "custom_tool_call":
            return "assistant", [ToolCall(call_id=item["call_id"], name=item["name"], args={"input": item["input"]})]
        case "function_call_output" | "custom_tool_call_output":
            text = "".join(part.text for part in _content(item["output"]) if isinstance(part, Text))
            return "user", [ToolResult(call_id=item["call_id"], content=text)]
        case "reasoning":
            return "assistant", [Reasoning(text="".join(as_text(as_dict(s).get("text")) for s in as_list(item["summary"])))]
        case kind:
            return "assistant", [Opaque(kind=kind)]


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(text=content)]
    parts: list[Part] = []
    for entry in (as_dict(entry) for entry in as_list(content)):
        if entry.get("type") == "input_image":
            parts.append(Image(url=as_text(entry.get("image_url"))[:200] or "file"))
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


def _choice(choice: Any) -> str | None:
    if isinstance(choice, str):
        return choice
    return as_text(as_dict(choice).get("name")) or None


def _kept_reasoning(found: list[JSON]) -> bool:
    """Whether the running turn's calls still have their reasoning: the calls after the last message of the user."""
    running = [rules.item_type(item) for item in found[_turn_start(found) :]]
    return "function_call" not in running or "reasoning" in running


def _turn_start(found: list[JSON]) -> int:
    """The place of the last message of the user: what follows belongs to the running turn."""
    places = [at for at, item in enumerate(found) if rules.item_type(item) == "message" and item.get("role") == "user"]
    return places[-1] if places else 0


def _removed(body: JSON) -> list[JSON]:
    """The reasoning of earlier turns, which `reasoning.context: current_turn` takes out (section R5). This is the one reason
    of `input_transformations` that is played here."""
    if as_dict(body.get("reasoning")).get("context") != "current_turn":
        return []
    found = rules.items(body)
    return [
        {"id": item["id"], "type": "reasoning", "action": "removed", "reason": "turn_boundary"}
        for item in found[: _turn_start(found)]
        if rules.item_type(item) == "reasoning"
    ]


# ---------------------------------------------------------------- write


def _response(answer: Answer, output: list[JSON], status: str | None = None) -> JSON:
    """The response object. `status` given: a snapshot of a stream that has not ended."""
    body = answer.body
    asked = as_dict(body.get("reasoning"))
    cut = answer.turn.reason is StopReason.LENGTH
    ended = status is None
    removed = _removed(body)
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "status": status or ("incomplete" if cut else "completed"),
        "background": False,
        "completed_at": answer.created + 1 if ended and not cut else None,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if ended and cut else None,
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
        "truncation": "disabled",
        "usage": _usage(answer) if ended else None,
        "metadata": as_dict(body.get("metadata")),
        **({"input_transformations": removed} if removed else {}),
    }  # fmt: skip


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
    return [_item(answer, place, segment) for place, segment in enumerate(answer.turn.segments)]


def _id(answer: Answer, prefix: str, place: int) -> str:
    """An id that names its answer and says whether that answer was reasoned (rules.reasoned)."""
    mark = "r" if any(isinstance(segment, Think) for segment in answer.turn.segments) else "0"
    return f"{prefix}_{answer.id}x{place:02d}{mark}"


def _item(answer: Answer, place: int, segment: Segment) -> JSON:
    status = "completed" if getattr(segment, "whole", True) else "incomplete"
    match segment:
        case Think(text):
            item_id = _id(answer, "rs", place)
            summary = [{"type": "summary_text", "text": text}] if answer.ask.summary else []
            blob = "gAAAA" + sign(rules.REASONING, item_id)
            return {"id": item_id, "type": "reasoning", "summary": summary, "encrypted_content": blob, "status": status}
        case Say(text):
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
            return _message_item(answer, place, part, status)
        case Refuse(text):
            return _message_item(answer, place, {"type": "refusal", "refusal": text}, status)
        case Call(name):
            return _call_item(answer, place, name, segment, status)
        case ServerCall(query):
            action = {"type": "search", "query": query, "queries": [query]}
            return {"id": _id(answer, "ws", place), "type": "web_search_call", "status": "completed", "action": action}


def _message_item(answer: Answer, place: int, part: JSON, status: str) -> JSON:
    """A message says by `phase` whether it is the answer or a word before a call."""
    more = any(isinstance(later, Call) for later in answer.turn.segments[place + 1 :])
    item: JSON = {
        "id": _id(answer, "msg", place),
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": [part],
    }
    return {**item, "phase": "commentary" if more else "final_answer"}


def _call_item(answer: Answer, place: int, name: str, segment: Call, status: str) -> JSON:
    tool = answer.ask.tool(name)
    call_id = f"call_{answer.part_id(place, 'call')}"
    if tool is not None and tool.kind == "custom":
        text = segment.args if isinstance(segment.args, str) else segment.text
        return {"id": _id(answer, "ctc", place), "type": "custom_tool_call", "call_id": call_id, "name": name, "input": text,
                "status": status}  # fmt: skip
    return {"id": _id(answer, "fc", place), "type": "function_call", "status": status, "arguments": segment.text or "{}",
            "call_id": call_id, "name": name}  # fmt: skip


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
    return {**item, "status": "in_progress", **empty.get(item["type"], {})}


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
