"""Chat Completions' face: `POST /v1/chat/completions`, whole and streamed. docs/wire/openai-chat.md

For OpenAI's models there is no reasoning on this API, only its token count. For models of other makers it comes as
`reasoning_content`, and those that reason must get it back in a tool turn (rules.openai). A stream has usage only if the
request asks for it, in a last chunk without choices.
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
from lessonlib.sim.script import Call, Refuse, Say, Think
from lessonlib.sim.signing import digest
from lessonlib.types import JSON, Image, Message, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, function_call

WIRE = rules.CHAT


class OpenAIChatFront(Front):
    """The Chat Completions frontend."""

    wire: ClassVar[str] = WIRE
    book = rules.BOOK
    paths: ClassVar[tuple[str, ...]] = (r"/v1/chat/completions", r"/chat/completions")
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
        schema = as_dict(as_dict(body.get("response_format")).get("json_schema")).get("schema")
        system = [
            _text(message.get("content")) for message in body["messages"] if message["role"] in ("system", "developer")
        ]
        stop = body.get("stop")
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=_messages(body["messages"]),
            system="\n".join(system),
            tools=[tool for entry in as_list(body.get("tools")) for tool in _tools(as_dict(entry))],
            tool_choice=_choice(body.get("tool_choice")),
            parallel=body.get("parallel_tool_calls") is not False,
            max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
            thinks=rules.chat_thinks(context),
            stop=[stop] if isinstance(stop, str) else [text for text in as_list(stop) if isinstance(text, str)],
            output_schema=as_dict(schema) or None,
            stream=body.get("stream") is True,
        )

    def too_long(self, context: Context, tokens: int) -> Refusal | None:
        text = f"This model's maximum context length is {context.able.window:,} tokens; the messages have {tokens:,}."
        return rules.refused(text, "context_length_exceeded", "messages")

    # ------------------------------------------------------------ the answer

    def headers(self, number: int) -> dict[str, str]:
        return {"x-request-id": f"req_sim{number:06d}", "x-ratelimit-remaining-requests": "99"}

    def whole(self, answer: Answer) -> JSON:
        choice = {"index": 0, "message": _message(answer), "logprobs": None, "finish_reason": _finish(answer)}
        return {**_envelope(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def frames(self, answer: Answer) -> Iterator[bytes]:
        counted = as_dict(answer.body.get("stream_options")).get("include_usage") is True
        for place, choices in enumerate(_choices(answer)):
            chunk = {
                **_envelope(answer, "chat.completion.chunk"),
                "choices": choices,
                **({"usage": None} if counted else {}),
            }
            yield frame({**chunk, **_obfuscation(answer, place)})
        if counted:
            yield frame({**_envelope(answer, "chat.completion.chunk"), "choices": [], "usage": _usage(answer)})
        yield b"data: [DONE]\n\n"

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal) -> JSON:
        error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
        return {"error": error}

    def error_frame(self, refusal: Refusal) -> bytes:
        return frame(self.error(refusal))


# ---------------------------------------------------------------- read


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(as_text(as_dict(entry).get("text")) for entry in as_list(content))


def _messages(found: list[JSON]) -> list[Message]:
    """Chat messages of five roles -> messages of two; neighbours of the same role are joined."""
    messages: list[Message] = []
    for entry in found:
        if entry["role"] in ("system", "developer"):
            continue
        role = "assistant" if entry["role"] == "assistant" else "user"
        parts = _parts(entry)
        if messages and messages[-1].role == role:
            messages[-1] = Message(role=messages[-1].role, parts=[*messages[-1].parts, *parts])
        else:
            messages.append(Message(role="assistant" if role == "assistant" else "user", parts=parts))
    return messages


def _parts(entry: JSON) -> list[Part]:
    if entry["role"] == "tool":
        return [ToolResult(call_id=as_text(entry.get("tool_call_id")), content=_text(entry.get("content")))]
    parts: list[Part] = []
    if entry.get("reasoning_content"):
        parts.append(Reasoning(text=as_text(entry["reasoning_content"])))
    if text := _text(entry.get("content")):
        parts.append(Text(text=text))
    for piece in as_list(entry.get("content")) if isinstance(entry.get("content"), list) else []:
        if as_dict(piece).get("type") == "image_url":
            parts.append(Image(url=as_text(as_dict(piece["image_url"]).get("url"))[:200]))
    return [*parts, *(_call(as_dict(call)) for call in as_list(entry.get("tool_calls")))]


def _call(call: JSON) -> ToolCall:
    if call.get("type") == "custom":
        inner = as_dict(call["custom"])
        return ToolCall(call_id=call["id"], name=inner["name"], args={"input": as_text(inner.get("input"))})
    inner = as_dict(call["function"])
    return function_call(call["id"], inner["name"], as_text(inner.get("arguments")), wire=WIRE, raw=None)


def _tools(entry: JSON) -> list[Tool]:
    kind = as_text(entry.get("type"))
    inner = as_dict(entry.get(kind))
    if kind == "custom":
        return [Tool(name=inner["name"], description=as_text(inner.get("description")), kind="custom")]
    if kind != "function":
        return []
    schema = as_dict(inner.get("parameters")) or {"type": "object", "properties": {}}
    return [Tool(name=inner["name"], description=as_text(inner.get("description")), parameters=schema)]


def _choice(choice: Any) -> str | None:
    if isinstance(choice, str):
        return choice
    named = as_dict(choice)
    return as_text(as_dict(named.get(as_text(named.get("type")))).get("name")) or None


# ---------------------------------------------------------------- write


def _envelope(answer: Answer, kind: str) -> JSON:
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": kind,
        "created": answer.created,
        "model": answer.ask.model,
        "service_tier": "default",
        "system_fingerprint": "fp_simulator",
    }


def _usage(answer: Answer) -> JSON:
    counts = answer.counts
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": counts.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _finish(answer: Answer) -> str:
    """`tool_calls`, except after a named tool choice, where this API says `stop` although there are calls."""
    named = isinstance(answer.body.get("tool_choice"), dict)
    words = {StopReason.LENGTH: "length", StopReason.TOOL_USE: "stop" if named else "tool_calls"}
    return words.get(answer.turn.reason, "stop")


def _said(answer: Answer) -> str:
    return "".join(segment.text for segment in answer.turn.segments if isinstance(segment, Say))


def _thought(answer: Answer) -> str:
    """The reasoning, shown only for models that are not OpenAI's."""
    if rules.hides_reasoning(answer.ask.model):
        return ""
    return "".join(segment.text for segment in answer.turn.segments if isinstance(segment, Think))


def _calls(answer: Answer) -> list[JSON]:
    return [_call_json(answer, place, call) for place, call in enumerate(answer.turn.calls)]


def _call_json(answer: Answer, place: int, call: Call) -> JSON:
    tool = answer.ask.tool(call.name)
    call_id = f"call_{answer.part_id(place, 'call')}"
    if tool is not None and tool.kind == "custom":
        text = call.args if isinstance(call.args, str) else call.text
        return {"id": call_id, "type": "custom", "custom": {"name": call.name, "input": text}}
    arguments = call.text if call.text or not call.whole else "{}"
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _message(answer: Answer) -> JSON:
    refusal = next((segment.text for segment in answer.turn.segments if isinstance(segment, Refuse)), None)
    message: JSON = {"role": "assistant", "content": _said(answer) or None, "refusal": refusal, "annotations": []}
    if thought := _thought(answer):
        message["reasoning_content"] = thought
    if calls := _calls(answer):
        message["tool_calls"] = calls
    return message


def _choices(answer: Answer) -> Iterator[list[JSON]]:
    """The `choices` of each chunk."""
    message = _message(answer)
    yield [_delta({"role": "assistant", "content": "" if not message.get("tool_calls") else None, "refusal": None})]
    for field in ("reasoning_content", "content", "refusal"):
        for piece in text_pieces(message.get(field) or ""):
            yield [_delta({field: piece})]
    for index, call in enumerate(message.get("tool_calls", [])):
        kind = call["type"]
        field = "arguments" if kind == "function" else "input"
        yield [_delta({"tool_calls": [{"index": index, **call, kind: {**call[kind], field: ""}}]})]
        for piece in text_pieces(call[kind][field]):
            yield [_delta({"tool_calls": [{"index": index, kind: {field: piece}}]})]
    yield [_delta({}, _finish(answer))]


def _delta(delta: JSON, finish: str | None = None) -> JSON:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _obfuscation(answer: Answer, place: int) -> JSON:
    if as_dict(answer.body.get("stream_options")).get("include_obfuscation") is False:
        return {}
    return {"obfuscation": digest(answer.id, place)[: 4 + place % 9]}
