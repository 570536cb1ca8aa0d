"""generateContent's face: `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent`.

Rules and facts: docs/wire/gemini-generate-content.md

The model stands in the path. Every streamed event is a whole response object; calls come in one piece, signed on the first
call of a step, or on an empty last text part. There is no end marker. `alt=sse` asks for events; without it the stream is a
JSON list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from lessonlib.sim.ask import Ask
from lessonlib.sim.core import Answer
from lessonlib.sim.faults import Fault
from lessonlib.sim.front.base import Front, frame
from lessonlib.sim.pieces import text_pieces
from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.rules import gemini as rules
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think
from lessonlib.sim.signing import digest, sign
from lessonlib.types import JSON, Image, Message, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, compact

WIRE = rules.GENERATE
GROUP = 6
"""Tokens per streamed text part: this API sends few large pieces."""

RPC = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
       413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED",
       503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}  # fmt: skip


class GeminiGenerateContentFront(Front):
    """The generateContent frontend."""

    wire: ClassVar[str] = WIRE
    book = rules.BOOK
    paths: ClassVar[tuple[str, ...]] = (r"/v1(?:beta)?/models/[^/:]+:(?:generateContent|streamGenerateContent)",)
    bad_request: ClassVar[str] = "invalid_request"
    pauses: ClassVar[bool] = False
    status_types: ClassVar[dict[int, str]] = RPC

    # ------------------------------------------------------------ the request

    def model(self, path: str, body: JSON) -> str:
        match = re.search(r"/models/([^/:]+):", path)
        return match[1] if match else ""

    def read(self, context: Context) -> Ask:
        body = context.body
        settings = as_dict(rules.first(body, "generationConfig", "generation_config"))
        thinking = as_dict(rules.first(settings, "thinkingConfig", "thinking_config"))
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=[_message(content) for content in rules.contents(body)],
            system=_instruction(rules.first(body, "systemInstruction", "system_instruction")),
            tools=[tool for entry in as_list(body.get("tools")) for tool in _tools(as_dict(entry))],
            tool_choice=_choice(as_dict(rules.first(body, "toolConfig", "tool_config"))),
            max_tokens=rules.first(settings, "maxOutputTokens", "max_output_tokens"),
            thinks=context.able.thinking not in (None, "none") and _level(thinking) != "minimal",
            summary=rules.first(thinking, "includeThoughts", "include_thoughts") is True,
            stop=[
                text for text in as_list(rules.first(settings, "stopSequences", "stop_sequences")) if isinstance(text, str)
            ],
            output_schema=as_dict(rules.first(settings, "responseJsonSchema", "response_json_schema", "responseSchema"))
            or None,
            stream=":streamGenerateContent" in context.path,
        )

    def too_long(self, context: Context, tokens: int) -> Refusal | None:
        text = f"The input token count ({tokens:,}) exceeds the maximum number of tokens allowed."
        return rules.refused(text, "invalid_request")

    # ------------------------------------------------------------ the answer

    def whole(self, answer: Answer) -> JSON | list[JSON]:
        if answer.ask.stream:  # without alt=sse a stream is a JSON list of its events
            return list(_events(answer))
        return _response(answer, _parts(answer), _finish(answer))

    def streams(self, answer: Answer, path: str) -> bool:
        """Events only with `alt=sse`."""
        return answer.ask.stream and "alt=sse" in path

    def frames(self, answer: Answer) -> Iterator[bytes]:
        for event in _events(answer):
            yield frame(event).replace(b"\n\n", b"\r\n\r\n")

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal) -> JSON:
        return {"error": {"code": refusal.status, "message": refusal.message, "status": RPC.get(refusal.status, "UNKNOWN")}}

    def error_frame(self, refusal: Refusal) -> bytes:
        return frame(self.error(refusal)).replace(b"\n\n", b"\r\n\r\n")

    def fault_refusal(self, fault: Fault) -> Refusal:
        return Refusal(fault.status, RPC.get(fault.status, "UNKNOWN"), "The simulator was told to fail here.", fault.code)


# ---------------------------------------------------------------- read


def _instruction(value: Any) -> str:
    return "".join(as_text(part.get("text")) for part in rules.parts(as_dict(value)))


def _level(thinking: JSON) -> str:
    return as_text(rules.first(thinking, "thinkingLevel", "thinking_level")).lower()


def _message(content: JSON) -> Message:
    role = "assistant" if content.get("role") == "model" else "user"
    parts = [part for entry in rules.parts(content) for part in _read_part(entry)]
    return Message(role="assistant" if role == "assistant" else "user", parts=parts)


def _read_part(part: JSON) -> list[Part]:
    call = rules.first(part, "functionCall", "function_call")
    if call is not None:
        call = as_dict(call)
        name = as_text(call.get("name"))
        return [ToolCall(call_id=as_text(call.get("id")) or name, name=name, args=as_dict(call.get("args")))]
    response = rules.first(part, "functionResponse", "function_response")
    if response is not None:
        response = as_dict(response)
        name, value = as_text(response.get("name")), as_dict(response.get("response"))
        text = as_text(value.get("output")) or as_text(value.get("result")) or as_text(value.get("error")) or compact(value)
        return [ToolResult(call_id=as_text(response.get("id")) or name, name=name, content=text, is_error="error" in value)]
    if rules.first(part, "inlineData", "inline_data", "fileData", "file_data") is not None:
        return [Image(url="data:image")]
    if part.get("thought") is True:
        return [Reasoning(text=as_text(part.get("text")))]
    return [Text(text=as_text(part.get("text")))]


def _tools(entry: JSON) -> list[Tool]:
    declared = as_list(rules.first(entry, "functionDeclarations", "function_declarations"))
    return [_tool(as_dict(declaration)) for declaration in declared]


def _tool(declaration: JSON) -> Tool:
    schema = rules.first(declaration, "parametersJsonSchema", "parameters_json_schema", "parameters")
    parameters = as_dict(schema) or {"type": "object", "properties": {}}
    return Tool(name=declaration["name"], description=as_text(declaration.get("description")), parameters=parameters)


def _choice(config: JSON) -> str | None:
    calling = as_dict(rules.first(config, "functionCallingConfig", "function_calling_config"))
    allowed = as_list(rules.first(calling, "allowedFunctionNames", "allowed_function_names"))
    mode = as_text(calling.get("mode")).upper()
    if mode == "ANY":
        return str(allowed[0]) if len(allowed) == 1 else "required"
    return {"NONE": "none", "AUTO": "auto", "VALIDATED": "auto"}.get(mode)


# ---------------------------------------------------------------- write


def _response(answer: Answer, parts: list[JSON], finish: str | None) -> JSON:
    candidate: JSON = {"content": {"parts": parts, "role": "model"} if parts else {"role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(answer),
        "modelVersion": answer.ask.model,
        "responseId": answer.id[:22],
    }


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


def _finish(answer: Answer) -> str:
    """STOP for an answer and for calls alike; the call tells them apart."""
    words = {StopReason.LENGTH: "MAX_TOKENS", StopReason.REFUSAL: "SAFETY"}
    return words.get(answer.turn.reason, "STOP")


def _parts(answer: Answer) -> list[JSON]:
    """The parts of the whole answer."""
    parts = [part for place, segment in enumerate(answer.turn.segments) for part in _part(answer, place, segment)]
    return _signed(answer, parts)


def _part(answer: Answer, place: int, segment: Segment) -> list[JSON]:
    match segment:
        case Think(text):
            return [{"text": text, "thought": True}] if answer.ask.summary else []
        case Say(text):
            return [{"text": text}]
        case Refuse():
            return []
        case Call(name, args):
            if not segment.whole:
                return []
            given = args if isinstance(args, dict) else {}
            return [{"functionCall": {"name": name, "args": given, "id": digest(answer.id, place)[:8]}}]
        case ServerCall(query):
            return [{"executableCode": {"language": "PYTHON", "code": f"search({query!r})"}}]


def _signed(answer: Answer, parts: list[JSON]) -> list[JSON]:
    """The first call of the step carries the signature; without calls an empty text part at the end does."""
    if not answer.ask.thinks or not any(isinstance(segment, Think) for segment in answer.turn.segments):
        return parts
    for place, part in enumerate(parts):
        if "functionCall" in part:
            return [
                *parts[:place],
                {**part, "thoughtSignature": sign(rules.THOUGHT, rules.signed(part))},
                *parts[place + 1 :],
            ]
    return [*parts, {"text": "", "thoughtSignature": sign(rules.THOUGHT, "")}]


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
