"""The Interactions API's face: `POST /v1/interactions` (and `/v1beta`), whole and streamed. docs/wire/gemini-interactions.md

Thoughts are steps with a signature over their summary. A policy block is an error here, not an answer. A turn that pauses
comes as `requires_continuation` with a token; the request that brings the token back gets the rest. With `store: false` a
stream carries an empty id and a whole answer none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from lessonlib.sim.ask import Ask
from lessonlib.sim.core import Answer
from lessonlib.sim.front.base import Front, frame
from lessonlib.sim.pieces import coarse_pieces, text_pieces
from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.rules import gemini as rules
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think
from lessonlib.sim.signing import sign
from lessonlib.types import JSON, Image, Message, Opaque, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, compact

WIRE = rules.INTERACTIONS
CREATED = "2026-11-30T12:00:00Z"


class GeminiInteractionsFront(Front):
    """The Interactions frontend."""

    wire: ClassVar[str] = WIRE
    book = rules.BOOK
    paths: ClassVar[tuple[str, ...]] = (r"/v1(?:beta)?/interactions",)
    bad_request: ClassVar[str] = "invalid_request"
    status_types: ClassVar[dict[int, str]] = {
        400: "invalid_request", 401: "authentication", 403: "permission_denied",
        404: "not_found", 429: "rate_limit_exceeded",
        500: "api_error", 503: "service_unavailable", 504: "deadline_exceeded",
    }  # fmt: skip

    # ------------------------------------------------------------ the request

    def model(self, path: str, body: JSON) -> str:
        return as_text(body.get("model")).removeprefix("models/")

    def read(self, context: Context) -> Ask:
        body = context.body
        settings = as_dict(body.get("generation_config"))
        shape = body.get("response_format")
        shape = as_dict(shape[0] if isinstance(shape, list) and shape else shape)
        choice = settings.get("tool_choice")
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=_messages(rules.all_steps(context)),
            system=as_text(body.get("system_instruction")),
            tools=[tool for entry in as_list(body.get("tools")) for tool in _tools(as_dict(entry))],
            tool_choice=_choice(choice),
            max_tokens=settings.get("max_output_tokens"),
            thinks=context.able.thinking not in (None, "none"),
            summary=settings.get("thinking_summaries") == "auto",
            stop=[text for text in as_list(settings.get("stop_sequences")) if isinstance(text, str)],
            output_schema=as_dict(shape.get("schema")) or None,
            stream=body.get("stream") is True,
            paused=bool(body.get("continuation_token")),
        )

    def too_long(self, context: Context, tokens: int) -> Refusal | None:
        return rules.refused(f"The input has {tokens:,} tokens, more than the model's window.", "invalid_request")

    # ------------------------------------------------------------ the answer

    def refuses(self, answer: Answer) -> Refusal | None:
        """A policy block is an error on this API: HTTP 400 with the policy's code."""
        if answer.turn.reason is StopReason.REFUSAL:
            return rules.refused("The request was blocked by a content policy.", "safety")
        return None

    def whole(self, answer: Answer) -> JSON:
        stored = {"id": f"v1_{answer.id}"} if answer.body.get("store") is not False else {}
        return {**_resource(answer, _status(answer)), **stored, "steps": _steps(answer), "usage": _usage(answer)}

    def frames(self, answer: Answer) -> Iterator[bytes]:
        stored = {"id": f"v1_{answer.id}" if answer.body.get("store") is not False else ""}
        created = {"id": stored["id"], "status": "in_progress", "object": "interaction", "model": answer.ask.model}
        yield _named("interaction.created", {"interaction": created})
        yield _named("interaction.status_update", {"interaction_id": stored["id"], "status": "in_progress"})
        if (refusal := self.refuses(answer)) is not None:
            yield self.error_frame(refusal)
            return
        for index, (step, segment) in enumerate(zip(_steps(answer), _segments(answer), strict=True)):
            yield from _step_frames(index, step, segment)
        final = {**_resource(answer, _status(answer)), **stored, "usage": _usage(answer)}
        yield _named("interaction.completed", {"interaction": final})
        yield b"event: done\ndata: [DONE]\n\n"

    def remember(self, answer: Answer) -> None:
        """With `store` (true unless the request says false) a later request may continue from this id."""
        if answer.body.get("store") is False:
            return
        before = as_list(answer.sim.stored.get(as_text(answer.body.get("previous_interaction_id")), {}).get("steps"))
        answer.sim.stored[f"v1_{answer.id}"] = {"steps": [*before, *rules.steps(answer.body), *_steps(answer)]}

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal) -> JSON:
        return {"error": {"code": refusal.code or refusal.type, "message": refusal.message}}

    def error_frame(self, refusal: Refusal) -> bytes:
        return _named("error", self.error(refusal))


# ---------------------------------------------------------------- read


def _messages(found: list[JSON]) -> list[Message]:
    """Steps on one time line -> messages of two roles."""
    messages: list[Message] = []
    for step in found:
        role, parts = _parts(step)
        if messages and messages[-1].role == role:
            messages[-1] = Message(role=messages[-1].role, parts=[*messages[-1].parts, *parts])
        else:
            messages.append(Message(role="user" if role == "user" else "assistant", parts=parts))
    return messages


def _parts(step: JSON) -> tuple[str, list[Part]]:
    match step.get("type"):
        case "user_input":
            return "user", _content(step["content"])
        case "model_output":
            return "assistant", _content(step.get("content"))
        case "function_call":
            return "assistant", [ToolCall(call_id=step["id"], name=step["name"], args=step["arguments"])]
        case "function_result":
            text = _result_text(step["result"])
            return "user", [ToolResult(call_id=step["call_id"], content=text, is_error=step.get("is_error") is True)]
        case "thought":
            return "assistant", [
                Reasoning(text="".join(as_text(as_dict(s).get("text")) for s in as_list(step.get("summary"))))
            ]
        case kind:
            return "assistant", [Opaque(kind=as_text(kind))]


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(text=content)]
    parts: list[Part] = []
    for entry in (as_dict(entry) for entry in as_list(content)):
        if entry.get("type") == "image":
            parts.append(Image(url=as_text(entry.get("uri")) or "data:image"))
        else:
            parts.append(Text(text=as_text(entry.get("text"))))
    return parts


def _result_text(result: Any) -> str:
    if isinstance(result, str):
        return result
    if isinstance(result, dict) and not isinstance(result.get("content"), list):
        return compact(result)
    entries = result["content"] if isinstance(result, dict) else as_list(result)
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
        return str(names[0]) if names and allowed.get("mode") in ("any", "validated") else "auto"
    return {"any": "required", "validated": "auto"}.get(choice, choice) if isinstance(choice, str) else None


# ---------------------------------------------------------------- write


def _status(answer: Answer) -> str:
    words = {
        StopReason.TOOL_USE: "requires_action",
        StopReason.LENGTH: "incomplete",
        StopReason.PAUSE: "requires_continuation",
    }
    return words.get(answer.turn.reason, "completed")


def _resource(answer: Answer, status: str) -> JSON:
    token = {"continuation_token": sign("gemini continuation", answer.id)} if status == "requires_continuation" else {}
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


def _segments(answer: Answer) -> list[Segment]:
    """The segments that become steps, one each; a finished search is two steps."""
    found: list[Segment] = []
    for segment in answer.turn.segments:
        found += [segment, segment] if isinstance(segment, ServerCall) and segment.result is not None else [segment]
    return found


def _steps(answer: Answer) -> list[JSON]:
    return [step for place, segment in enumerate(answer.turn.segments) for step in _step(answer, place, segment)]


def _step(answer: Answer, place: int, segment: Segment) -> list[JSON]:
    match segment:
        case Think(text):
            summary = [{"type": "text", "text": text}] if answer.ask.summary else []
            return [
                {"type": "thought", "signature": sign(rules.THOUGHT, summary), **({"summary": summary} if summary else {})}
            ]
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


def _named(event: str, payload: JSON) -> bytes:
    return frame({**payload, "event_type": event}, event)


def _step_frames(index: int, step: JSON, segment: Segment) -> Iterator[bytes]:
    """start, deltas, stop. A call that was cut has no stop."""
    start, deltas = _start_and_deltas(step, segment)
    yield _named("step.start", {"index": index, "step": start})
    for delta in deltas:
        yield _named("step.delta", {"index": index, "delta": delta})
    if not (isinstance(segment, Call) and not segment.whole):
        yield _named("step.stop", {"index": index})


def _start_and_deltas(step: JSON, segment: Segment) -> tuple[JSON, list[JSON]]:
    match step["type"]:
        case "thought":
            summaries = [{"type": "thought_summary", "content": content} for content in step.get("summary", [])]
            return {"type": "thought"}, [*summaries, {"type": "thought_signature", "signature": step["signature"]}]
        case "model_output":
            pieces = text_pieces(step["content"][0]["text"])
            return {"type": "model_output"}, [{"type": "text", "text": piece} for piece in pieces]
        case "function_call":
            text = (segment.text if isinstance(segment, Call) else "") or compact(step["arguments"])
            deltas = [{"type": "arguments_delta", "arguments": piece} for piece in coarse_pieces(text)]
            return {**step, "arguments": {}}, deltas
        case _:
            return step, []
