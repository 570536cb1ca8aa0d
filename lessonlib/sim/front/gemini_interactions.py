"""The Interactions API's face: `POST /v1/interactions` (and `/v1beta`), whole and streamed. docs/wire/gemini-interactions.md

Thoughts are steps with a signature over their summary. A policy block is an error here, not an answer, and so is a call
whose arguments came out as no JSON. A turn that pauses comes as `requires_continuation` with a token; the request that
brings the token back gets the rest. With `store: false` a stream carries an empty id and a whole answer none.

Beside answers: stored interactions (GET, also as a stream from a given event on; DELETE; cancel), and background runs, which
are done when somebody looks at them for the second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from lessonlib.sim.ask import Ask, conversation
from lessonlib.sim.core import Answer, Simulator, Stored
from lessonlib.sim.front.base import Front, Performed, frame, query
from lessonlib.sim.pieces import coarse_pieces, text_pieces
from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.rules import google
from lessonlib.sim.rules import interactions as rules
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think
from lessonlib.sim.signing import sign
from lessonlib.types import JSON, Image, Opaque, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, compact

WIRE = google.INTERACTIONS
CREATED = "2026-11-30T12:00:00Z"


class GeminiInteractionsFront(Front):
    """The Interactions frontend."""

    wire: ClassVar[str] = WIRE
    book = google.BOOK
    shape = rules.SHAPE
    routes: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("POST", r"/v1(?:beta)?/interactions", "answer"),
        ("GET", r"/v1(?:beta)?/interactions/([^/]+)", "get"),
        ("DELETE", r"/v1(?:beta)?/interactions/([^/]+)", "delete"),
        ("POST", r"/v1(?:beta)?/interactions/([^/]+)/cancel", "cancel"),
    )
    status_types: ClassVar[dict[int, str]] = {
        400: "invalid_request", 401: "authentication", 402: "payment_required", 403: "permission_denied",
        404: "not_found", 409: "aborted", 429: "rate_limit_exceeded", 499: "cancelled",
        500: "api_error", 501: "unimplemented", 503: "service_unavailable", 504: "deadline_exceeded",
    }  # fmt: skip

    # ------------------------------------------------------------ the request

    def model(self, target: str, body: JSON) -> str:
        return as_text(body.get("model")).removeprefix("models/")

    def read(self, context: Context) -> Ask:
        body = context.body
        settings = as_dict(body.get("generation_config"))
        shape = body.get("response_format")
        shape = as_dict(shape[0] if isinstance(shape, list) and shape else shape)
        found = _asked(context)
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=conversation(_turn(step) for step in found),
            system=as_text(body.get("system_instruction")),
            tools=[tool for entry in as_list(body.get("tools")) for tool in _tools(as_dict(entry))],
            tool_choice=_choice(settings.get("tool_choice")),
            max_tokens=settings.get("max_output_tokens"),
            thinks=context.able.thinking not in (None, "none"),
            effort=settings.get("thinking_level"),
            summary=settings.get("thinking_summaries") == "auto",
            stop=[text for text in as_list(settings.get("stop_sequences")) if text],
            output_schema=as_dict(shape.get("schema")) or None,
            stream=body.get("stream") is True,
            kept_reasoning=_kept_reasoning(found),
            paused=bool(body.get("continuation_token")),
        )

    # ------------------------------------------------------------ the answer

    def headers(self, number: int) -> dict[str, str]:
        return {"server-timing": f"gfet4t7; dur={number % 97}"}

    def refuses(self, answer: Answer) -> Refusal | None:
        """A policy block, and a call that is no JSON, are errors on this API: HTTP 400 with their code."""
        if any(isinstance(segment, Refuse) for segment in answer.turn.segments):
            return google.refused("The request was blocked by a content policy.", "safety")
        if any(call.whole and isinstance(call.args, str) for call in answer.turn.calls):
            return google.refused("The model wrote a function call that cannot be read.", "malformed_function_call")
        return None

    def whole(self, answer: Answer) -> JSON:
        stored = {"id": f"v1_{answer.id}"} if answer.body.get("store") is not False else {}
        if answer.body.get("background") is True:
            return {**_resource(answer, "in_progress"), **stored}
        return {**_resource(answer, _status(answer)), **stored, "steps": _steps(answer), "usage": _usage(answer)}

    def frames(self, answer: Answer) -> Iterator[bytes]:
        refusal = self.refuses(answer)
        for event, payload in _events(answer, refusal is None):
            yield _named(event, payload)
        if refusal is not None:
            yield _named("error", self.error(refusal, ""))
        yield b"event: done\ndata: [DONE]\n\n"

    def remember(self, answer: Answer, sim: Simulator) -> None:
        """With `store` (true unless the request says false) a later request may continue from this id."""
        if answer.body.get("store") is False or self.refuses(answer) is not None:
            return
        before = sim.kept(WIRE, answer.body.get("previous_interaction_id"))
        own = [*rules.steps(answer.body), *_steps(answer)]
        pending = answer.body.get("background") is True and not answer.ask.stream
        history = [*(before.history if before is not None else []), *own]
        sim.keep(f"v1_{answer.id}", Stored(WIRE, answer, own, history, pending))

    # ------------------------------------------------------------ other operations

    def stored(self, context: Context) -> Performed:
        name, sim = context.target, context.sim
        stored = sim.kept(WIRE, name)
        if stored is None:
            raise KeyError(name)  # a rule has refused that
        if context.operation == "delete":
            sim.forget(name)
            return {}
        if context.operation == "cancel":
            stored.cancelled, stored.pending = stored.cancelled or stored.pending, False
        elif query(context.path, "stream") == "true":
            return _resumed(stored.answer, query(context.path, "last_event_id"))
        shown = _stored_interaction(stored, query(context.path, "include_input") == "true")
        stored.pending = False
        return shown

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal, request_id: str) -> JSON:
        return {"error": {"code": refusal.code or refusal.type, "message": refusal.message}}

    def error_frames(self, refusal: Refusal, answer: Answer, number: int) -> Iterator[bytes]:
        yield _named("error", self.error(refusal, ""))
        yield b"event: done\ndata: [DONE]\n\n"


# ---------------------------------------------------------------- read


def _asked(context: Context) -> list[JSON]:
    """The steps that the model sees. A stored interaction that is continued by its token brings its own input along, without
    the half that it answered."""
    stored = context.sim.kept(WIRE, context.body.get("previous_interaction_id"))
    if context.body.get("continuation_token") and stored is not None and not context.body.get("input"):
        return stored.history[: len(stored.history) - len(_steps(stored.answer))]
    return rules.all_steps(context)


def _turn(step: JSON) -> tuple[str, list[Part]]:
    match step.get("type"):
        case "user_input":
            return "user", _content(step.get("content"))
        case "model_output":
            return "assistant", _content(step.get("content"))
        case "function_call":
            name, args = as_text(step.get("name")), as_dict(step.get("arguments"))
            return "assistant", [ToolCall(call_id=as_text(step.get("id")), name=name, args=args)]
        case "function_result":
            text = _result_text(step.get("result"))
            result = ToolResult(call_id=as_text(step.get("call_id")), content=text, is_error=step.get("is_error") is True)
            return "user", [result]
        case "thought":
            summaries = [as_text(as_dict(summary).get("text")) for summary in as_list(step.get("summary"))]
            return "assistant", [Reasoning(text="".join(summaries))]
        case kind if kind in rules.CONTENT_TYPES:
            return "user", _content([step])
        case kind:
            return "assistant", [Opaque(kind=as_text(kind))]


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(text=content)]
    parts: list[Part] = []
    for entry in (as_dict(entry) for entry in as_list(content)):
        if entry.get("type") == "image":
            parts.append(Image(url=as_text(entry.get("uri")) or as_text(entry.get("data")) or "?"))
        else:
            parts.append(Text(text=as_text(entry.get("text"))))
    return parts


def _result_text(result: Any) -> str:
    if isinstance(result, str):
        return result
    if isinstance(result, dict) and not isinstance(result.get("content"), list):
        return compact(result)
    entries = as_list(result["content"] if isinstance(result, dict) else result)
    return "".join(as_text(as_dict(entry).get("text")) for entry in entries)


def _tools(entry: JSON) -> list[Tool]:
    if entry.get("type") != "function":
        return []
    schema = as_dict(entry.get("parameters")) or {"type": "object", "properties": {}}
    return [Tool(name=entry["name"], description=as_text(entry.get("description")), parameters=schema)]


def _choice(choice: Any) -> str | None:
    allowed = as_dict(as_dict(choice).get("allowed_tools"))
    if allowed:
        names = as_list(allowed.get("tools"))
        forced = allowed.get("mode") == "any"
        return str(names[0]) if names and forced else "required" if forced else as_text(allowed.get("mode")) or "auto"
    return {"any": "required", "validated": "auto"}.get(choice, choice) if isinstance(choice, str) else None


def _kept_reasoning(found: list[JSON]) -> bool:
    """Whether the running turn's calls have a thought before them. A rule refuses own calls without one, so this is about
    histories from elsewhere."""
    last_user = max((place for place, step in enumerate(found) if step.get("type") == "user_input"), default=-1)
    running = [step.get("type") for step in found[last_user + 1 :]]
    return "function_call" not in running or "thought" in running


# ---------------------------------------------------------------- write


def _status(answer: Answer) -> str:
    words = {
        StopReason.TOOL_USE: "requires_action",
        StopReason.LENGTH: "incomplete",
        StopReason.PAUSE: "requires_continuation",
    }
    return words.get(answer.turn.reason, "completed")


def _resource(answer: Answer, status: str) -> JSON:
    continues = status == "requires_continuation"
    token = {"continuation_token": sign(rules.TOKEN, rules.token_for(answer.body))} if continues else {}
    return {
        "status": status,
        "object": "interaction",
        "model": answer.ask.model,
        "created": CREATED,
        "updated": CREATED,
        **token,
    }


def _usage(answer: Answer) -> JSON:
    """Output without thoughts: they are counted apart."""
    counts = answer.counts
    return {
        "total_input_tokens": counts.input,
        "total_cached_tokens": counts.cached,
        "total_output_tokens": counts.visible,
        "total_thought_tokens": counts.reasoning,
        "total_tool_use_tokens": 0,
        "total_tokens": counts.input + counts.output,
    }


def _steps(answer: Answer) -> list[JSON]:
    """The steps of the whole answer. A call that was cut is none: its arguments are an object here, and half an object would
    look like a whole one."""
    return [step for segment, step in _pairs(answer) if not (isinstance(segment, Call) and not segment.whole)]


def _pairs(answer: Answer) -> list[tuple[Segment, JSON]]:
    """The steps, each with the segment that it comes from."""
    return [(segment, step) for place, segment in enumerate(answer.turn.segments) for step in _step(answer, place, segment)]


def _step(answer: Answer, place: int, segment: Segment) -> list[JSON]:
    match segment:
        case Think(text):
            summary = [{"type": "text", "text": text}] if answer.ask.summary and not segment.redacted else []
            signature = sign(google.THOUGHT, summary)
            return [{"type": "thought", "signature": signature, **({"summary": summary} if summary else {})}]
        case Say(text) | Refuse(text):
            return [{"type": "model_output", "content": [{"type": "text", "text": text}]}]
        case Call(name, args):
            given = args if isinstance(args, dict) else {}
            return [{"type": "function_call", "id": f"fc_{answer.part_id(place, 'call')}", "name": name, "arguments": given}]
        case ServerCall(query, result):
            call_id = f"gs_{answer.part_id(place, 'search')}"
            call = {"type": "google_search_call", "id": call_id, "arguments": {"queries": [query]},
                    "signature": sign("gemini search", query)}  # fmt: skip
            found = {"type": "google_search_result", "call_id": call_id, "result": [{"search_suggestions": result}],
                     "signature": sign("gemini search", result)}  # fmt: skip
            return [call] if result is None else [call, found]


# ---------------------------------------------------------------- write: the stream


def _named(event: str, payload: JSON) -> bytes:
    return frame({**payload, "event_type": event}, event)


def _events(answer: Answer, answered: bool = True) -> Iterator[tuple[str, JSON]]:
    """(event, payload) in their order, without the end line. answered: False stops before the first step."""
    name = f"v1_{answer.id}" if answer.body.get("store") is not False else ""
    created = {"id": name, "status": "in_progress", "object": "interaction", "model": answer.ask.model}
    yield "interaction.created", {"interaction": created}
    yield "interaction.status_update", {"interaction_id": name, "status": "in_progress"}
    if not answered:
        return
    for index, (segment, step) in enumerate(_pairs(answer)):
        yield from _step_events(index, step, segment)
    yield (
        "interaction.completed",
        {"interaction": {**_resource(answer, _status(answer)), "id": name, "usage": _usage(answer)}},
    )


def _step_events(index: int, step: JSON, segment: Segment) -> Iterator[tuple[str, JSON]]:
    """start, deltas, stop. A call that was cut has no stop."""
    start, deltas = _start_and_deltas(step, segment)
    yield "step.start", {"index": index, "step": start}
    for delta in deltas:
        yield "step.delta", {"index": index, "delta": delta}
    if not (isinstance(segment, Call) and not segment.whole):
        yield "step.stop", {"index": index}


def _start_and_deltas(step: JSON, segment: Segment) -> tuple[JSON, list[JSON]]:
    match step["type"]:
        case "thought":
            summaries = [{"type": "thought_summary", "content": content} for content in step.get("summary", [])]
            return {"type": "thought"}, [*summaries, {"type": "thought_signature", "signature": step["signature"]}]
        case "model_output":
            pieces = text_pieces(step["content"][0]["text"])
            return {"type": "model_output"}, [{"type": "text", "text": piece} for piece in pieces]
        case "function_call":
            text = segment.text if isinstance(segment, Call) else ""
            text = text or ("{}" if isinstance(segment, Call) and segment.whole else "")
            deltas = [{"type": "arguments_delta", "arguments": piece} for piece in coarse_pieces(text)]
            return {**step, "arguments": {}}, deltas
        case _:
            return step, []


# ---------------------------------------------------------------- write: stored interactions


def _stored_interaction(stored: Stored, with_input: bool) -> JSON:
    """A stored interaction as it is now: still running, cancelled, or the answer."""
    answer = stored.answer
    name = {"id": f"v1_{answer.id}"}
    if stored.cancelled or stored.pending:
        return {**_resource(answer, "cancelled" if stored.cancelled else "in_progress"), **name}
    steps = stored.own if with_input else _steps(answer)
    return {**_resource(answer, _status(answer)), **name, "steps": steps, "usage": _usage(answer)}


def _resumed(answer: Answer, after: str) -> Iterator[tuple[float, bytes]]:
    """The stored stream from the event behind `after` on. Here events have ids."""
    first = int(after) + 1 if re.fullmatch(r"\d{1,9}", after) else 0
    for number, (event, payload) in enumerate(_events(answer)):
        if number >= first:
            yield 0.0, _named(event, {**payload, "event_id": str(number)})
    yield 0.0, b"event: done\ndata: [DONE]\n\n"
