"""Chat Completions providers, right and wrong."""

from __future__ import annotations

import json

from lessonlib import Message, OpenAIChat, Response, StopReason, Text, ToolCall, ToolResult, Usage
from lessonlib.errors import IncompleteStream
from lessonlib.types import Done
from lessonlib.wire.base import ErrorDetails, StreamDecoder, WireFormat, error_object, function_call
from tests.lab_exercises.answers import Answers

STOPS = {
    "stop": StopReason.END,
    "tool_calls": StopReason.TOOL_USE,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}


class Base(WireFormat):
    """A whole wire format of this course's size."""

    name = "my-chat"
    provider = "openai"
    key_variables = ("OPENAI_API_KEY",)
    base_url_variables = ()
    default_base_url = "https://api.openai.com/v1"

    def path(self, model, stream):
        return "/chat/completions"

    def auth(self):
        return {"authorization": f"Bearer {self._key.reveal()}"}

    def body(self, request, model, stream):
        messages = [{"role": "system", "content": request.system}] if request.system else []
        for message in request.messages:
            messages += self.said(message) if message.role == "assistant" else self.asked(message)
        body = {"model": model, "messages": messages}
        if request.tools:
            body["tools"] = [self.tool(tool) for tool in request.tools]
        if request.max_tokens:
            body["max_completion_tokens"] = request.max_tokens
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def tool(self, tool):
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        return {"type": "function", "function": function}

    def said(self, message):
        said = {"role": "assistant", "content": message.text or None}
        calls = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.args)}}
            for call in message.tool_calls
        ]
        return [said | ({"tool_calls": calls} if calls else {})]

    def asked(self, message):
        results = [
            {"role": "tool", "tool_call_id": part.call_id, "content": part.text}
            for part in message.parts
            if isinstance(part, ToolResult)
        ]
        words = [{"role": "user", "content": part.text} for part in message.parts if isinstance(part, Text)]
        return results + words

    def decode(self, payload):
        if payload.get("error"):
            raise self.api_error(200, payload)
        choice = payload["choices"][0]
        message = choice["message"]
        parts = [Text(text=message["content"])] if message.get("content") else []
        for entry in message.get("tool_calls") or []:
            function = entry["function"]
            parts.append(function_call(entry["id"], function["name"], function["arguments"], wire=self.name, raw=None))
        calls = any(isinstance(part, ToolCall) for part in parts)
        raw_stop = choice.get("finish_reason")
        stop = StopReason.TOOL_USE if calls and raw_stop in ("stop", "tool_calls") else STOPS.get(raw_stop, StopReason.OTHER)
        usage = payload.get("usage")
        counts = Usage(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"]) if usage else None
        return Response(
            message=Message(role="assistant", parts=parts), stop=stop, raw_stop=raw_stop, usage=counts, raw=payload
        )

    def error_details(self, status, payload):
        error = error_object(payload)
        return ErrorDetails(message=error.get("message", ""), code=str(error.get("code")), retryable=status >= 500)

    def decoder(self):
        return Decoder(self)


class Decoder:
    """Folds the chunks into the message of a whole answer."""

    def __init__(self, wire):
        self.wire = wire
        self.texts, self.calls, self.by_id, self.by_index = [], [], {}, {}
        self.finish = self.usage = None
        self.marked = self.done = False

    def feed(self, sse):
        if sse.data == b"[DONE]":
            self.marked = True
            return self.end()
        chunk = json.loads(sse.data)
        if chunk.get("error"):
            raise self.wire.api_error(200, chunk)
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk.get("choices") or []:
            delta = choice.get("delta") or {}
            self.texts.append(delta.get("content") or "")
            for entry in delta.get("tool_calls") or []:
                self.piece(entry)
            self.finish = choice.get("finish_reason") or self.finish
        return []

    def piece(self, entry):
        call_id, index, function = entry.get("id"), entry.get("index"), entry.get("function") or {}
        if call_id in self.by_id:
            call = self.by_id[call_id]
        elif call_id or not self.calls:
            call = {"id": call_id, "type": "function", "function": {"name": "", "arguments": ""}}
            self.calls.append(call)
            self.by_id[call_id] = call
        else:
            call = self.by_index.get(index, self.calls[-1])
        if index is not None:
            self.by_index[index] = call
        call["function"]["name"] = function.get("name") or call["function"]["name"]
        call["function"]["arguments"] += function.get("arguments") or ""

    def close(self, stray=b""):
        if self.done:
            return []
        if not self.marked and not self.finish:
            raise IncompleteStream("neither a finish reason nor [DONE]")
        return self.end()

    def end(self):
        self.done = True
        message = {"content": "".join(self.texts), "tool_calls": self.calls}
        choice = {"message": message, "finish_reason": self.finish}
        self.response = self.wire.decode({"choices": [choice], "usage": self.usage})
        return [Done(self.response)]

    def partial(self):
        return None

    def result(self):
        return self.response


class OnTheFrame(Base):
    """Another style: the library's frame of a decoder, with its table."""

    def decoder(self):
        return OnTable(self)


class OnTable(StreamDecoder):
    TABLE = {"OPEN": {"chunk": "OPEN", "error": "FAILED"}}  # noqa: RUF012

    def __init__(self, wire):
        super().__init__(wire)
        self.inner = Decoder(wire)

    def kind(self, payload, sse):
        return "error" if payload.get("error") else "chunk"

    def _on_error(self, payload):
        raise self.wire.api_error(200, payload)

    def _on_chunk(self, payload):
        self.inner.feed(type("Event", (), {"data": json.dumps(payload).encode()}))
        return []

    def on_done_marker(self):
        return self.finished()

    def finished(self):
        events = self.inner.end()
        self._response = self.inner.response
        self._move("DONE")
        return events

    def close(self, stray=b""):
        return self.finished() if not self.done and self.inner.finish else super().close(stray)

    def build(self, *, finished):
        return self.inner.response


ANSWERS = Answers(
    "chat_provider",
    Base,
    [OpenAIChat, OnTheFrame],
    [
        ("not_written", None),
        ("wrong_shape", dict),
    ],
)
