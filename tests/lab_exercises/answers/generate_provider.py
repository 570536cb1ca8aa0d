"""generateContent providers, right and wrong."""

from __future__ import annotations

import json

from lessonlib import GeminiGenerateContent, Message, Response, StopReason, Text, ToolCall, ToolResult, Usage
from lessonlib.errors import IncompleteStream
from lessonlib.types import Done, Reasoning
from lessonlib.wire.base import ErrorDetails, WireFormat, error_object
from tests.lab_exercises.answers import Answers

STOPS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "SAFETY": StopReason.REFUSAL,
    "PROHIBITED_CONTENT": StopReason.REFUSAL,
}


class Base(WireFormat):
    """A whole wire format of this course's size."""

    name = "my-generate"
    provider = "gemini"
    key_variables = ("GEMINI_API_KEY",)
    base_url_variables = ()
    default_base_url = "https://generativelanguage.googleapis.com"

    def path(self, model, stream):
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/{model}:{method}"

    def auth(self):
        return {"x-goog-api-key": self._key.reveal()}

    def body(self, request, model, stream):
        body = {"contents": [self.content(message, request.messages) for message in request.messages]}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [self.declared(tool) for tool in request.tools]}]
        if request.max_tokens:
            body["generationConfig"] = {"maxOutputTokens": request.max_tokens}
        return body

    def declared(self, tool):
        return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}

    def content(self, message, messages):
        calls = {call.call_id: call for each in messages for call in each.tool_calls}
        role = "model" if message.role == "assistant" else "user"
        return {"role": role, "parts": [self.part(part, calls) for part in message.parts]}

    def part(self, part, calls):
        if part.raw_for(self.name) is not None:
            return part.raw
        if isinstance(part, ToolResult):
            call = calls[part.call_id]
            return {"functionResponse": {"name": call.name, "response": {"output": part.text}, **self.id_of(call)}}
        if isinstance(part, ToolCall):
            return {"functionCall": {"name": part.name, "args": part.args}}
        return {"text": part.text}

    def id_of(self, call):
        raw = (call.raw or {}).get("functionCall", {})
        return {"id": raw["id"]} if raw.get("id") else {}

    def decode(self, payload):
        if payload.get("error"):
            raise self.api_error(200, payload)
        candidate = (payload.get("candidates") or [{}])[0]
        raw_parts = candidate.get("content", {}).get("parts", [])
        parts = [self.read(raw, number) for number, raw in enumerate(raw_parts) if raw != {"text": ""}]
        reason = candidate.get("finishReason")
        blocked = payload.get("promptFeedback", {}).get("blockReason")
        stop = StopReason.REFUSAL if blocked else STOPS.get(reason, StopReason.OTHER)
        if stop is StopReason.END and any(isinstance(part, ToolCall) for part in parts):
            stop = StopReason.TOOL_USE
        usage = payload.get("usageMetadata") or {}
        made = usage.get("candidatesTokenCount")
        output = None if made is None else made + usage.get("thoughtsTokenCount", 0)
        counts = Usage(input_tokens=usage.get("promptTokenCount"), output_tokens=output)
        message = Message(role="assistant", parts=parts)
        return Response(message=message, stop=stop, raw_stop=reason or blocked, usage=counts, raw=payload)

    def read(self, raw, number):
        if "functionCall" in raw:
            call = raw["functionCall"]
            made_up = f"call_{number}"
            return ToolCall(
                call_id=call.get("id") or made_up, name=call["name"], args=call.get("args") or {}, wire=self.name, raw=raw
            )
        kind = Reasoning if raw.get("thought") else Text
        return kind(text=raw.get("text", ""), wire=self.name, raw=raw)

    def error_details(self, status, payload):
        error = error_object(payload)
        return ErrorDetails(message=error.get("message", ""), code=str(error.get("code")), retryable=status >= 500)

    def decoder(self):
        return Decoder(self)


class Decoder:
    """Strings the parts of all chunks together."""

    def __init__(self, wire):
        self.wire = wire
        self.parts, self.finish, self.usage, self.feedback = [], None, None, {}
        self.done = False

    def feed(self, sse):
        chunk = json.loads(sse.data)
        if chunk.get("error"):
            raise self.wire.api_error(200, chunk)
        self.usage = chunk.get("usageMetadata") or self.usage
        self.feedback = chunk.get("promptFeedback") or self.feedback
        for candidate in chunk.get("candidates", [])[:1]:
            self.parts += candidate.get("content", {}).get("parts", [])
            self.finish = candidate.get("finishReason") or self.finish
        return []

    def close(self, stray=b""):
        if not (self.finish or self.feedback):
            raise IncompleteStream("no finish reason")
        self.done = True
        candidate = {"content": {"parts": self.parts}, "finishReason": self.finish}
        folded = {"candidates": [candidate], "usageMetadata": self.usage, "promptFeedback": self.feedback}
        self.response = self.wire.decode(folded)
        return [Done(self.response)]

    def partial(self):
        return None

    def result(self):
        return self.response


class Joined(Base):
    """Another style: ids from the answer's text, results as objects of their own, a list of whole answers as the stream."""

    def part(self, part, calls):
        if isinstance(part, ToolResult):
            return {
                "functionResponse": {"name": calls[part.call_id].name, "response": {"result": part.text}, "id": part.call_id}
            }
        return super().part(part, calls)

    def read(self, raw, number):
        part = super().read(raw, number)
        if isinstance(part, ToolCall) and not raw["functionCall"].get("id"):
            return part.model_copy(update={"call_id": f"{part.name}-{number}", "raw": raw})
        return part

    def id_of(self, call):
        return {}


ANSWERS = Answers(
    "generate_provider",
    Base,
    [GeminiGenerateContent, Joined],
    [
        ("not_written", None),
        ("wrong_shape", dict),
    ],
)
