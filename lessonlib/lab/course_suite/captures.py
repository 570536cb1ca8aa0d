"""What the services sent: one small answer per wire format, whole and as a stream, and builders for variations.

The answer is the same everywhere: a traveller asks for the weather in Beijing (北京), the model thinks, and calls
`get_weather`. All names and values are invented; order of fields and framing are each service's own (docs/wire/).
"""

from __future__ import annotations

import json
from typing import Any

JSON = dict[str, Any]

CITY = "北京"
ARGUMENTS = json.dumps({"city": CITY}, ensure_ascii=False)


def sse(*events: JSON, name: str = "type", done: bool = False) -> bytes:
    """The bytes of a stream: one event per object, named after its field `name`; "" leaves the name out."""
    blocks = []
    for event in events:
        head = f"event: {event[name]}\n" if name else ""
        blocks.append(f"{head}data: {json.dumps(event, ensure_ascii=False)}\n\n")
    return ("".join(blocks) + ("data: [DONE]\n\n" if done else "")).encode("utf-8")


def pieces(text: str, size: int = 4) -> list[str]:
    """A text cut into pieces of `size` characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


# ---------------------------------------------------------------- Anthropic

SIGNATURE = "c2lnbmF0dXJlIG9mIGFuIGludmVudGVkIHRob3VnaHQ"
ANTHROPIC_USAGE = {
    "input_tokens": 30,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 1000,
    "output_tokens": 60,
}
ANTHROPIC_BLOCKS: list[JSON] = [
    {"type": "thinking", "thinking": "One city, one call.", "signature": SIGNATURE},
    {"type": "text", "text": "I will look that up."},
    {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {"city": CITY}},
]


def anthropic_whole(*blocks: JSON, stop: str = "tool_use", usage: JSON | None = None) -> JSON:
    """A whole Messages answer."""
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks or ANTHROPIC_BLOCKS),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage or ANTHROPIC_USAGE,
    }


def anthropic_events(*blocks: JSON, stop: str = "tool_use", usage: JSON | None = None, first_output: int = 3) -> list[JSON]:
    """The same answer as events. `first_output`: the output count that `message_start` already carries."""
    counts = usage or ANTHROPIC_USAGE
    start = {**anthropic_whole(stop=stop), "content": [], "stop_reason": None}
    start["usage"] = {**counts, "output_tokens": first_output}
    events: list[JSON] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks or ANTHROPIC_BLOCKS):
        events += _anthropic_block(index, block)
    return [
        *events,
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": counts},
        {"type": "message_stop"},
    ]


def _anthropic_block(index: int, block: JSON) -> list[JSON]:
    def delta(kind: str, field: str, text: str) -> JSON:
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}}

    match block["type"]:
        case "thinking":
            empty: JSON = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [delta("thinking_delta", "thinking", piece) for piece in pieces(block["thinking"], 8)]
            deltas.append(delta("signature_delta", "signature", block["signature"]))
        case "text":
            empty = {**block, "text": ""}
            deltas = [delta("text_delta", "text", piece) for piece in pieces(block["text"], 6)]
        case _:
            empty = {**block, "input": {}}
            text = json.dumps(block["input"], ensure_ascii=False) if block["input"] else ""
            deltas = [delta("input_json_delta", "partial_json", piece) for piece in pieces(text)]
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *deltas,
        {"type": "content_block_stop", "index": index},
    ]


# ---------------------------------------------------------------- OpenAI Responses

BLOB = "Z0FBQUEgZW5jcnlwdGVkIHJlYXNvbmluZyBvZiB0aGUgZmluaXNoZWQgaXRlbQ"
EARLY_BLOB = "Z0FBQUEgaGFsZg"
OPENAI_USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 64},
    "output_tokens": 90,
    "output_tokens_details": {"reasoning_tokens": 70},
    "total_tokens": 210,
}
OPENAI_REASONING: JSON = {
    "id": "rs_1",
    "type": "reasoning",
    "encrypted_content": BLOB,
    "summary": [{"type": "summary_text", "text": "One city, one call."}],
}
OPENAI_CALL: JSON = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "arguments": ARGUMENTS,
    "call_id": "call_1",
    "name": "get_weather",
}


def openai_whole(*items: JSON, status: str = "completed") -> JSON:
    """A whole Responses answer."""
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "m",
        "output": list(items or (OPENAI_REASONING, OPENAI_CALL)),
        "usage": OPENAI_USAGE,
    }


def openai_message(text: str) -> JSON:
    """A message item."""
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def openai_events(*items: JSON, status: str = "completed") -> list[JSON]:
    """The same answer as events. A reasoning item is announced with an early, shorter blob, as the service does."""
    whole = openai_whole(*items, status=status)
    events: list[JSON] = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
    for index, item in enumerate(whole["output"]):
        events += _openai_item(index, item)
    return [*events, {"type": f"response.{status}", "response": whole}]


def _openai_item(index: int, item: JSON) -> list[JSON]:
    place = {"item_id": item["id"], "output_index": index}
    match item["type"]:
        case "reasoning":
            added = {**item, "encrypted_content": EARLY_BLOB, "summary": []}
            kind, texts, extra = "reasoning_summary_text", [part["text"] for part in item["summary"]], {"summary_index": 0}
        case "function_call":
            added = {**item, "arguments": "", "status": "in_progress"}
            kind, texts, extra = "function_call_arguments", [item["arguments"]], {}
        case _:
            added = {**item, "content": [], "status": "in_progress"}
            kind, texts, extra = "output_text", [part["text"] for part in item["content"]], {"content_index": 0}
    deltas = [
        {"type": f"response.{kind}.delta", **place, **extra, "delta": piece} for text in texts for piece in pieces(text)
    ]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": added},
        *deltas,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


# ---------------------------------------------------------------- Gemini Interactions

THOUGHT_SIGNATURE = "dGhvdWdodCBzaWduYXR1cmUsIGludmVudGVk"
GEMINI_USAGE = {
    "total_tokens": 155,
    "total_input_tokens": 100,
    "total_cached_tokens": 40,
    "total_output_tokens": 25,
    "total_thought_tokens": 30,
}
GEMINI_STEPS: list[JSON] = [
    {
        "type": "thought",
        "signature": THOUGHT_SIGNATURE,
        "summary": [{"type": "text", "text": "One city, one call."}],
    },
    {"type": "model_output", "content": [{"type": "text", "text": "I will look that up."}]},
    {"type": "function_call", "id": "fc1", "name": "get_weather", "arguments": {"city": CITY}},
]


def gemini_whole(*steps: JSON, status: str = "requires_action", **more: Any) -> JSON:
    """A whole interaction."""
    return {
        "id": "",
        "object": "interaction",
        "status": status,
        "model": "m",
        "steps": list(steps or GEMINI_STEPS),
        "usage": GEMINI_USAGE,
        **more,
    }


def gemini_events(*steps: JSON, status: str = "requires_action", **more: Any) -> list[JSON]:
    """The same answer as events, in the form that the service sends."""
    opening = {"id": "", "object": "interaction", "status": "in_progress", "model": "m"}
    events: list[JSON] = [{"event_type": "interaction.created", "interaction": opening}]
    for index, step in enumerate(steps or GEMINI_STEPS):
        events += gemini_step(index, step)
    ending = {key: value for key, value in gemini_whole(status=status, **more).items() if key != "steps"}
    return [*events, {"event_type": "interaction.completed", "interaction": ending}]


def gemini_step(index: int, step: JSON) -> list[JSON]:
    """One step as its events."""

    def delta(body: JSON) -> JSON:
        return {"event_type": "step.delta", "index": index, "delta": body}

    match step["type"]:
        case "thought":
            start: JSON = {"type": "thought"}
            texts = [content["text"] for content in step["summary"]]
            deltas = [delta({"type": "thought_summary", "content": {"type": "text", "text": text}}) for text in texts]
            deltas.append(delta({"type": "thought_signature", "signature": step["signature"]}))
        case "model_output":
            start = {"type": "model_output"}
            text = "".join(content["text"] for content in step["content"])
            deltas = [delta({"type": "text", "text": piece}) for piece in pieces(text, 6)]
        case _:
            start = {**step, "arguments": {}}
            text = json.dumps(step["arguments"], ensure_ascii=False) if step["arguments"] else ""
            deltas = [delta({"type": "arguments_delta", "arguments": piece}) for piece in pieces(text)]
    return [
        {"event_type": "step.start", "index": index, "step": start},
        *deltas,
        {"event_type": "step.stop", "index": index},
    ]


def gemini_guide_events() -> list[JSON]:
    """A call in the form of the migration guide: other names for the events, for the deltas and for the pause."""
    call = {"type": "function_call", "id": "fc1", "name": "get_weather"}
    deltas: list[JSON] = [
        {"type": "step.delta", "index": 0, "delta": {"type": "arguments", "partial_arguments": piece}}
        for piece in pieces(ARGUMENTS)
    ]
    return [
        {"type": "interaction.in_progress", "interaction": {"id": "int_1", "model": "m"}},
        {"type": "step.start", "index": 0, "step": call},
        *deltas,
        {"type": "step.stop", "index": 0},
        {"type": "interaction.requires_action", "interaction": {"id": "int_1", "status": "requires_action"}},
        {"type": "interaction.completed", "interaction": {"id": "int_1", "usage": GEMINI_USAGE}},
    ]


# ---------------------------------------------------------------- Chat Completions

CHAT_USAGE = {"prompt_tokens": 120, "completion_tokens": 90, "total_tokens": 210}
CHAT_CALL: JSON = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}


def chat_whole(message: JSON | None = None, finish: str = "tool_calls") -> JSON:
    """A whole Chat Completions answer."""
    message = message or {"role": "assistant", "content": "I will look that up.", "tool_calls": [CHAT_CALL]}
    return {
        "id": "chatcmpl_1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": CHAT_USAGE,
    }


def chat_chunk(delta: JSON, finish: str | None = None, **more: Any) -> JSON:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl_1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


def chat_events() -> list[JSON]:
    """The same answer as chunks; the usage comes after the finish reason, in a chunk without choices."""
    texts = [chat_chunk({"role": "assistant", "content": piece}) for piece in pieces("I will look that up.", 6)]
    function = {"name": "get_weather", "arguments": ""}
    head = chat_chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    args = [chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces(ARGUMENTS)]
    return [
        *texts,
        head,
        *args,
        chat_chunk({}, "tool_calls"),
        {"id": "chatcmpl_1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": CHAT_USAGE},
    ]


# ---------------------------------------------------------------- generateContent

GENERATE_USAGE = {
    "promptTokenCount": 100,
    "candidatesTokenCount": 25,
    "thoughtsTokenCount": 30,
    "totalTokenCount": 155,
}


def generate_whole(finish: str = "STOP") -> JSON:
    """A whole generateContent answer: STOP stands beside the call."""
    parts = [
        {"text": "I will look that up."},
        {"functionCall": {"name": "get_weather", "args": {"city": CITY}}, "thoughtSignature": THOUGHT_SIGNATURE},
    ]
    content = {"role": "model", "parts": parts}
    return {
        "candidates": [{"content": content, "finishReason": finish, "index": 0}],
        "usageMetadata": GENERATE_USAGE,
        "modelVersion": "m",
        "responseId": "r1",
    }


def generate_events() -> list[JSON]:
    """The same answer as chunks: text in pieces, the call whole."""
    whole = generate_whole()
    text, call = whole["candidates"][0]["content"]["parts"]

    def chunk(parts: list[JSON], finish: str | None = None) -> JSON:
        candidate: JSON = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        return {**whole, "candidates": [candidate]}

    texts = [chunk([{"text": piece}]) for piece in pieces(text["text"], 6)]
    return [*texts, chunk([call], "STOP")]
