"""generateContent's face: `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent` (and `/v1`).

Rules and facts: docs/wire/gemini-generate-content.md

The model stands in the path. Every streamed event is a whole response object; calls come in one piece, signed on the first
call of a step, or on an empty last text part. There is no end marker. `alt=sse` asks for events; without it the stream is a
JSON list. A call whose arguments came out as no JSON is HTTP 200 with MALFORMED_FUNCTION_CALL and nothing else; a blocked
prompt is HTTP 200 without a candidate.

Beside answers: `:countTokens`, and the list of models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from lessonlib import capabilities
from lessonlib.sim.ask import Ask, conversation
from lessonlib.sim.core import Answer
from lessonlib.sim.front.base import Front, frame, query
from lessonlib.sim.pieces import text_pieces
from lessonlib.sim.refusal import Context, Refusal, model_names
from lessonlib.sim.rules import generate_content as rules
from lessonlib.sim.rules import google
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think
from lessonlib.sim.signing import digest, sign
from lessonlib.types import JSON, Image, Opaque, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, compact

WIRE = google.GENERATE
GROUP = 6
"""Tokens per streamed text part: this API sends few large pieces."""

RPC = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
       413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED",
       503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}  # fmt: skip


class GeminiGenerateContentFront(Front):
    """The generateContent frontend."""

    wire: ClassVar[str] = WIRE
    book = google.BOOK
    shape = rules.SHAPE
    routes: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("POST", r"/v1(?:beta)?/models/([^/:]+):(?:generateContent|streamGenerateContent)", "answer"),
        ("POST", r"/v1(?:beta)?/models/([^/:]+):countTokens", "count"),
        ("GET", r"/v1(?:beta)?/models(?:/([^/:]+))?", "models"),
    )
    status_types: ClassVar[dict[int, str]] = RPC

    # ------------------------------------------------------------ the request

    def owns(self, headers: Mapping[str, str]) -> bool:
        return True  # the other two have been asked before

    def model(self, target: str, body: JSON) -> str:
        return target

    def read(self, context: Context) -> Ask:
        body = context.body
        settings, thinking = rules.settings(body), rules.thinking(body)
        schema = google.first(settings, "responseJsonSchema", "response_json_schema", "responseSchema", "response_schema")
        found = rules.contents(body)
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=conversation(_turns(found)),
            system=_instruction(google.first(body, "systemInstruction", "system_instruction")),
            tools=[_tool(function) for function in rules.functions(body)],
            tool_choice=_choice(rules.calling(body)),
            max_tokens=google.first(settings, "maxOutputTokens", "max_output_tokens"),
            thinks=_thinks(context, thinking),
            effort=as_text(google.first(thinking, "thinkingLevel", "thinking_level")).lower() or None,
            summary=google.first(thinking, "includeThoughts", "include_thoughts") is True,
            stop=[text for text in as_list(google.first(settings, "stopSequences", "stop_sequences")) if text],
            output_schema=as_dict(schema) or None,
            stream=":streamGenerateContent" in context.path,
            kept_reasoning=_kept_reasoning(found),
            paused=google.first(body, "continuationToken", "continuation_token") is not None,
        )

    # ------------------------------------------------------------ the answer

    def whole(self, answer: Answer) -> JSON | list[JSON]:
        if answer.ask.stream:  # without alt=sse a stream is a JSON list of its events
            return list(_events(answer))
        return _response(answer, _parts(answer), _finish(answer))

    def streams(self, answer: Answer, context: Context) -> bool:
        """Events only with `alt=sse`."""
        return answer.ask.stream and query(context.path, "alt") == "sse"

    def frames(self, answer: Answer) -> Iterator[bytes]:
        for event in _events(answer):
            yield _frame(event)

    # ------------------------------------------------------------ other operations

    def models(self, name: str) -> JSON:
        return _model(name) if name else {"models": [_model(one) for one in model_names("gemini")]}

    def count(self, tokens: int) -> JSON:
        return {"totalTokens": tokens}

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal, request_id: str) -> JSON:
        error = {"code": refusal.status, "message": refusal.message, "status": RPC.get(refusal.status, "UNKNOWN")}
        details = []
        if refusal.code:
            details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": refusal.code,
                            "domain": "googleapis.com"})  # fmt: skip
        if refusal.wait is not None:
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{refusal.wait:g}s"})
        return {"error": {**error, "details": details} if details else error}

    def error_frames(self, refusal: Refusal, answer: Answer, number: int) -> Iterator[bytes]:
        yield _frame(self.error(refusal, ""))


# ---------------------------------------------------------------- read


def _instruction(value: Any) -> str:
    return "".join(as_text(part.get("text")) for part in rules.parts(as_dict(value)))


def _thinks(context: Context, thinking: JSON) -> bool:
    """Whether the model reasons: Gemini 3 always, unless at its lowest level; 2.5 unless its budget is 0."""
    if google.first(thinking, "thinkingBudget", "thinking_budget") == 0 and context.able.thinking == "budget":
        return False
    lowest = as_text(google.first(thinking, "thinkingLevel", "thinking_level")).lower() == "minimal"
    return context.able.thinking not in (None, "none") and not lowest


def _role(content: JSON) -> str:
    return "assistant" if content.get("role") == "model" else "user"


def _turns(found: list[JSON]) -> Iterator[tuple[str, list[Part]]]:
    """(role, parts) of each content. A response without an id answers the first open call of its name."""
    calls: list[ToolCall] = []
    for content in found:
        parts = [_read_part(part, _role(content)) for part in rules.parts(content)]
        for place, part in enumerate(parts):
            match = next((call for call in calls if isinstance(part, ToolResult) and part.name == call.name), None)
            if match is not None and isinstance(part, ToolResult) and part.call_id == part.name:
                parts[place] = part.model_copy(update={"call_id": match.call_id})
                calls.remove(match)
        calls = [part for part in parts if isinstance(part, ToolCall)]
        yield _role(content), parts


def _read_part(part: JSON, role: str) -> Part:
    call, response = rules.call_of(part), rules.response_of(part)
    if call is not None and role == "assistant":
        name = as_text(call.get("name"))
        return ToolCall(call_id=as_text(call.get("id")) or name, name=name, args=as_dict(call.get("args")))
    if response is not None and role == "user":
        name, value = as_text(response.get("name")), as_dict(response.get("response"))
        text = next((value[key] for key in ("output", "result", "error") if isinstance(value.get(key), str)), compact(value))
        return ToolResult(call_id=as_text(response.get("id")) or name, name=name, content=text, is_error="error" in value)
    if google.first(part, "inlineData", "inline_data", "fileData", "file_data") is not None:
        blob = as_dict(google.first(part, "inlineData", "inline_data", "fileData", "file_data"))
        return Image(url=as_text(google.first(blob, "data", "fileUri", "file_uri")) or "?")
    if part.get("thought") is True and role == "assistant":
        return Reasoning(text=as_text(part.get("text")))
    return Text(text=as_text(part.get("text"))) if "text" in part else Opaque(kind=next(iter(part), "part"))


def _tool(declaration: JSON) -> Tool:
    parameters = as_dict(rules.schema_of(declaration)) or {"type": "object", "properties": {}}
    return Tool(name=declaration["name"], description=as_text(declaration.get("description")), parameters=parameters)


def _choice(config: JSON) -> str | None:
    allowed = as_list(google.first(config, "allowedFunctionNames", "allowed_function_names"))
    mode = as_text(config.get("mode")).upper()
    if mode == "ANY":
        return str(allowed[0]) if len(allowed) == 1 else "required"
    return {"NONE": "none", "AUTO": "auto", "VALIDATED": "auto"}.get(mode)


def _kept_reasoning(found: list[JSON]) -> bool:
    """Whether the running turn's calls bring a signature of the model's own. A rule refuses calls without any where they are
    checked, so this is about the documented skip values and about models that do not check."""
    signatures: list[str] = []
    for content in reversed(found):
        calls = [part for part in rules.parts(content) if rules.call_of(part) is not None]
        signatures += [rules.signature_of(part) for part in calls[:1]]
        if any(part.get("text") for part in rules.parts(content)) and _role(content) == "user":
            break
    return all(signature and signature not in rules.SKIPPED for signature in signatures)


# ---------------------------------------------------------------- write


def _response(answer: Answer, parts: list[JSON], finish: str | None) -> JSON:
    usage = {"usageMetadata": _usage(answer), "modelVersion": answer.ask.model, "responseId": answer.id[:22]}
    if any(isinstance(segment, Refuse) and not segment.text for segment in answer.turn.segments):
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **usage}
    candidate: JSON = {"content": {"parts": parts, "role": "model"} if parts else {"role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    if finish == "CONTINUATION":
        candidate["continuationToken"] = sign(rules.TOKEN, rules.token_for(answer.body))
    return {"candidates": [candidate], **usage}


def _usage(answer: Answer) -> JSON:
    """Candidates without thoughts: they are counted apart. A count of zero is left out, as protobuf does."""
    counts = answer.counts
    optional = {"cachedContentTokenCount": counts.cached, "thoughtsTokenCount": counts.reasoning}
    return {
        "promptTokenCount": counts.input,
        "candidatesTokenCount": counts.visible,
        "totalTokenCount": counts.input + counts.output,
        **{name: count for name, count in optional.items() if count},
    }


def _malformed(answer: Answer) -> bool:
    return any(call.whole and isinstance(call.args, str) for call in answer.turn.calls)


def _finish(answer: Answer) -> str:
    """STOP for an answer and for calls alike; the call tells them apart."""
    if _malformed(answer):
        return "MALFORMED_FUNCTION_CALL"
    words = {StopReason.LENGTH: "MAX_TOKENS", StopReason.REFUSAL: "SAFETY", StopReason.PAUSE: "CONTINUATION"}
    return words.get(answer.turn.reason, "STOP")


def _parts(answer: Answer) -> list[JSON]:
    """The parts of the whole answer."""
    if _malformed(answer):
        return []
    parts = [part for place, segment in enumerate(answer.turn.segments) for part in _part(answer, place, segment)]
    return _signed(answer, parts)


def _part(answer: Answer, place: int, segment: Segment) -> list[JSON]:
    match segment:
        case Think(text):
            return [{"text": text, "thought": True}] if answer.ask.summary and not segment.redacted else []
        case Say(text):
            return [{"text": text}]
        case Refuse():
            return []
        case Call(name, args):
            if not segment.whole:
                return []  # half a call never appears here
            given = args if isinstance(args, dict) else {}
            return [{"functionCall": {"name": name, "args": given, "id": digest(answer.id, place)[:8]}}]
        case ServerCall(search):
            return [{"executableCode": {"language": "PYTHON", "code": f"print(google_search(queries={[search]!r}))"}}]


def _signed(answer: Answer, parts: list[JSON]) -> list[JSON]:
    """The first call of the step carries the signature; without calls an empty text part at the end does."""
    thought = any(isinstance(segment, Think) and segment.whole for segment in answer.turn.segments)
    if not thought or not rules.checks_signatures(capabilities.of(answer.ask.model).family):
        return parts
    for place, part in enumerate(parts):
        if "functionCall" in part:
            signed = {**part, "thoughtSignature": sign(google.THOUGHT, rules.signed(part))}
            return [*parts[:place], signed, *parts[place + 1 :]]
    return [*parts, {"text": "", "thoughtSignature": sign(google.THOUGHT, "")}]


def _events(answer: Answer) -> Iterator[JSON]:
    """One response object per piece; the last one has the finish reason."""
    pieces = [piece for part in _parts(answer) for piece in _pieces(part)]
    for piece in pieces[:-1]:
        yield _response(answer, [piece], None)
    yield _response(answer, pieces[-1:], _finish(answer))


def _pieces(part: JSON) -> list[JSON]:
    if "text" not in part or "thoughtSignature" in part:
        return [part]
    tokens = text_pieces(part["text"])
    return [{**part, "text": "".join(tokens[start : start + GROUP])} for start in range(0, len(tokens), GROUP)]


def _frame(payload: JSON) -> bytes:
    """This API separates lines with CR LF."""
    return frame(payload).replace(b"\n\n", b"\r\n\r\n")


# ---------------------------------------------------------------- write: models


def _model(name: str) -> JSON:
    able = capabilities.of(name)
    limits = {"inputTokenLimit": able.window, "outputTokenLimit": able.max_output}
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name.replace("-", " ").title(),
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        **{key: value for key, value in limits.items() if value is not None},
    }
