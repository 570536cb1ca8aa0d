"""Chat Completions' face: `POST /v1/chat/completions`, whole and streamed. docs/wire/openai-chat.md

For OpenAI's models there is no reasoning on this API, only its token count; it is not carried from request to request, so a
tool turn is thought through again each time. For models of other makers it comes as `reasoning_content`, and those that
reason must get it back in a tool turn (rules.chat). A stream has usage only if the request asks for it, in a last chunk
without choices. With `n` all choices say the same: the model is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from lessonlib.sim.ask import Ask, conversation
from lessonlib.sim.core import Answer
from lessonlib.sim.faults import Fault
from lessonlib.sim.front.base import Front, frame
from lessonlib.sim.front.openai_responses import (
    STATUS_TYPES,
    bills_writes,
    choice,
    openai_error,
    openai_fault,
    openai_headers,
    without_pause,
)
from lessonlib.sim.pieces import text_pieces
from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.rules import chat as rules
from lessonlib.sim.rules import openai
from lessonlib.sim.script import Call, Refuse, Say, Think, Turn
from lessonlib.sim.signing import digest
from lessonlib.sim.usage import CacheOptions
from lessonlib.types import JSON, Image, Part, Reasoning, StopReason, Text, Tool, ToolCall, ToolResult
from lessonlib.wire.base import as_dict, as_list, as_text, function_call

WIRE = openai.CHAT


class OpenAIChatFront(Front):
    """The Chat Completions frontend."""

    wire: ClassVar[str] = WIRE
    book = openai.BOOK
    shape = rules.SHAPE
    routes: ClassVar[tuple[tuple[str, str, str], ...]] = (("POST", r"(?:/v1)?/chat/completions", "answer"),)
    status_types: ClassVar[dict[int, str]] = STATUS_TYPES

    # ------------------------------------------------------------ the request

    def read(self, context: Context) -> Ask:
        body = context.body
        found = rules.messages(context)
        schema = as_dict(as_dict(body.get("response_format")).get("json_schema")).get("schema")
        stop = body.get("stop")
        said = [message for message in found if message["role"] not in ("system", "developer")]
        messages = conversation((message["role"], _parts(message)) for message in said)
        return Ask(
            wire=WIRE,
            model=context.model,
            messages=messages,
            system="\n".join(_text(one.get("content")) for one in found if one["role"] in ("system", "developer")),
            tools=[tool for entry in openai.tools_of(context) for tool in _tools(entry)],
            tool_choice=choice(WIRE, body.get("tool_choice")),
            parallel=body.get("parallel_tool_calls") is not False,
            max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
            thinks=rules.chat_thinks(context),
            effort=body.get("reasoning_effort"),
            stop=[stop] if isinstance(stop, str) and stop else [text for text in as_list(stop) if text],
            output_schema=as_dict(schema) or None,
            stream=body.get("stream") is True,
            kept_reasoning=_kept_reasoning(said),
        )

    def cache_options(self, context: Context) -> CacheOptions:
        """Automatic, as in Responses."""
        return CacheOptions(writes=bills_writes(context.able.family))

    # ------------------------------------------------------------ the answer

    def adapt(self, said: Turn, ask: Ask, context: Context) -> Turn:
        return without_pause(said, ask)

    def headers(self, number: int) -> dict[str, str]:
        return openai_headers(number)

    def whole(self, answer: Answer) -> JSON:
        choices = [
            {"index": index, "message": _message(answer, index), "logprobs": None, "finish_reason": _finish(answer)}
            for index in range(_n(answer))
        ]
        return {**_envelope(answer, "chat.completion"), "choices": choices, "usage": _usage(answer)}

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

    def error(self, refusal: Refusal, request_id: str) -> JSON:
        return openai_error(refusal)

    def error_frames(self, refusal: Refusal, answer: Answer, number: int) -> Iterator[bytes]:
        yield frame(openai_error(refusal))

    def fault_refusal(self, fault: Fault) -> Refusal:
        return openai_fault(super().fault_refusal(fault), fault)


# ---------------------------------------------------------------- read


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(as_text(as_dict(entry).get("text")) for entry in as_list(content))


def _parts(entry: JSON) -> list[Part]:
    if entry["role"] == "tool":
        return [ToolResult(call_id=as_text(entry.get("tool_call_id")), content=_text(entry.get("content")))]
    parts: list[Part] = []
    if entry["role"] == "assistant" and entry.get("reasoning_content"):
        parts.append(Reasoning(text=as_text(entry["reasoning_content"])))
    if text := _text(entry.get("content")):
        parts.append(Text(text=text))
    for piece in as_list(entry.get("content")) if isinstance(entry.get("content"), list) else []:
        if as_dict(piece).get("type") == "image_url":
            parts.append(Image(url=as_text(as_dict(piece["image_url"]).get("url")) or "?"))
    return [*parts, *(_call(as_dict(call)) for call in as_list(entry.get("tool_calls")))]


def _call(call: JSON) -> ToolCall:
    if call.get("type") == "custom":
        inner = as_dict(call["custom"])
        return ToolCall(call_id=call["id"], name=inner["name"], args={"input": as_text(inner.get("input"))})
    inner = as_dict(call.get("function"))
    return function_call(call["id"], as_text(inner.get("name")), as_text(inner.get("arguments")), wire=WIRE, raw=None)


def _tools(entry: JSON) -> list[Tool]:
    inner = openai.definition(WIRE, entry)
    if entry.get("type") == "custom":
        return [Tool(name=inner["name"], description=as_text(inner.get("description")), kind="custom")]
    if entry.get("type") != "function":
        return []
    schema = as_dict(inner.get("parameters")) or {"type": "object", "properties": {}}
    return [Tool(name=inner["name"], description=as_text(inner.get("description")), parameters=schema)]


def _kept_reasoning(found: list[JSON]) -> bool:
    """Whether the running tool turn brings its reasoning along: only other makers' models give and take any here."""
    last_user = max((place for place, message in enumerate(found) if message["role"] == "user"), default=-1)
    running = [message for message in found[last_user + 1 :] if message.get("tool_calls")]
    return not running or all(message.get("reasoning_content") for message in running)


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


def _n(answer: Answer) -> int:
    return answer.body.get("n") or 1


def _usage(answer: Answer) -> JSON:
    """OpenAI's account; DeepSeek says beside it how much of the prompt was found in its cache, and how much was not."""
    counts, n, model = answer.counts, _n(answer), answer.ask.model.lower()
    written = {"cache_write_tokens": counts.written} if bills_writes(model) else {}
    deepseek = {"prompt_cache_hit_tokens": counts.cached, "prompt_cache_miss_tokens": counts.input - counts.cached}
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output * n,
        "total_tokens": counts.input + counts.output * n,
        **(deepseek if model.startswith("deepseek") else {}),
        "prompt_tokens_details": {"cached_tokens": counts.cached, **written, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": counts.reasoning * n,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _finish(answer: Answer) -> str:
    """`tool_calls`, except after a named tool choice, where this API says `stop` although there are calls."""
    if any(isinstance(segment, Refuse) and not segment.text for segment in answer.turn.segments):
        return "content_filter"
    choice = as_dict(answer.body.get("tool_choice"))
    named = choice.get("type") in ("function", "custom")
    words = {StopReason.LENGTH: "length", StopReason.TOOL_USE: "stop" if named else "tool_calls"}
    return words.get(answer.turn.reason, "stop")


def _said(answer: Answer) -> str:
    return " ".join(segment.text for segment in answer.turn.segments if isinstance(segment, Say))


def _thought(answer: Answer) -> str:
    """The reasoning, shown only for models that are not OpenAI's."""
    if rules.hides_reasoning(answer.ask.model):
        return ""
    return "".join(segment.text for segment in answer.turn.segments if isinstance(segment, Think))


def _call_json(answer: Answer, place: int, index: int, call: Call) -> JSON:
    tool = answer.ask.tool(call.name)
    call_id = f"call_{answer.part_id(place, f'call{index or str()}')}"
    if tool is not None and tool.kind == "custom":
        text = call.args if isinstance(call.args, str) else call.text
        return {"id": call_id, "type": "custom", "custom": {"name": call.name, "input": text}}
    arguments = call.text if call.text or not call.whole else "{}"
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _message(answer: Answer, index: int) -> JSON:
    """The message of choice number `index`. An answer without any text has the empty text, one with calls alone null."""
    refusal = next((segment.text for segment in answer.turn.segments if isinstance(segment, Refuse)), None) or None
    calls = [_call_json(answer, place, index, call) for place, call in enumerate(answer.turn.calls)]
    content = _said(answer) or (None if calls or refusal else "")
    message: JSON = {"role": "assistant", "content": content, "refusal": refusal, "annotations": []}
    if thought := _thought(answer):
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    return message


def _choices(answer: Answer) -> Iterator[list[JSON]]:
    """The `choices` of each chunk, one choice after the other."""
    for index in range(_n(answer)):
        for delta, finish in _deltas(answer, index):
            yield [{"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}]


def _deltas(answer: Answer, index: int) -> Iterator[tuple[JSON, str | None]]:
    message = _message(answer, index)
    yield {"role": "assistant", "content": None if message["content"] is None else "", "refusal": None}, None
    for field in ("reasoning_content", "content", "refusal"):
        for piece in text_pieces(message.get(field) or ""):
            yield {field: piece}, None
    for number, call in enumerate(message.get("tool_calls", [])):
        kind = call["type"]
        field = "arguments" if kind == "function" else "input"
        yield {"tool_calls": [{"index": number, **call, kind: {**call[kind], field: ""}}]}, None
        for piece in text_pieces(call[kind][field]):
            yield {"tool_calls": [{"index": number, kind: {field: piece}}]}, None
    yield {}, _finish(answer)


def _obfuscation(answer: Answer, place: int) -> JSON:
    if as_dict(answer.body.get("stream_options")).get("include_obfuscation") is False:
        return {}
    return {"obfuscation": digest(answer.id, place)[: 4 + place % 9]}
