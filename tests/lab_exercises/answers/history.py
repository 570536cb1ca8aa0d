"""Histories for another vendor, right and wrong."""

from __future__ import annotations

import json

from lessonlib import Message, Opaque, Reasoning, Request, Text, ToolCall, ToolResult
from lessonlib.wire import WIRES
from tests.lab_exercises.answers import Answers

OPENAI, ANTHROPIC, GEMINI = "openai-responses", "anthropic-messages", "gemini-interactions"


def base(messages, wire):
    found = []
    for message in messages:
        parts = [part for part in message.parts if keeps(part, wire)]
        parts.sort(key=lambda part: message.role == "user" and not isinstance(part, ToolResult))
        items = [item(part, message.role, wire) for part in parts]
        if wire == ANTHROPIC:
            found.append({"role": message.role, "content": items})
        else:
            found += items
    return found


def keeps(part, wire):
    return part.wire == wire or not isinstance(part, (Reasoning, Opaque))


def item(part, role, wire):
    if part.wire == wire and part.raw is not None:
        return part.raw
    if wire == OPENAI:
        return for_openai(part, role)
    return for_anthropic(part) if wire == ANTHROPIC else for_gemini(part, role)


def for_openai(part, role):
    match part:
        case Text():
            return {"role": role, "content": part.text}
        case ToolCall():
            return {"type": "function_call", "call_id": part.call_id, "name": part.name, "arguments": json.dumps(part.args)}
        case ToolResult():
            return {"type": "function_call_output", "call_id": part.call_id, "output": part.text}


def for_anthropic(part):
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case ToolCall():
            return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": part.args}
        case ToolResult():
            failed = {"is_error": True} if part.is_error else {}
            return {"type": "tool_result", "tool_use_id": part.call_id, "content": part.text, **failed}


def for_gemini(part, role):
    kind = "user_input" if role == "user" else "model_output"
    match part:
        case Text():
            return {"type": kind, "content": [{"type": "text", "text": part.text}]}
        case ToolCall():
            return {"type": "function_call", "id": part.call_id, "name": part.name, "arguments": part.args}
        case ToolResult():
            result = {"type": "function_result", "name": part.name, "call_id": part.call_id, "result": part.text}
            return result | ({"is_error": True} if part.is_error else {})


def by_library(messages, wire):
    """The library's own encoder."""
    body = WIRES[wire]("m", api_key="k").encode(Request(messages=messages)).body
    return body["messages"] if wire == ANTHROPIC else body["input"]


def text_for(wire):
    if wire == ANTHROPIC:
        return lambda part, role: {"type": "text", "text": part.text}
    if wire == OPENAI:
        kinds = {"assistant": "output_text", "user": "input_text"}
        return lambda part, role: {"role": role, "content": [{"type": kinds[role], "text": part.text}]}
    kinds = {"assistant": "model_output", "user": "user_input"}
    return lambda part, role: {"type": kinds[role], "content": [{"type": "text", "text": part.text}]}


def contents(part):
    return [{"type": "text", "text": part.text}]


TABLE = {
    **{(wire, "text"): text_for(wire) for wire in (OPENAI, ANTHROPIC, GEMINI)},
    (OPENAI, "tool_call"): for_openai,
    (ANTHROPIC, "tool_call"): lambda part, role: for_anthropic(part),
    (GEMINI, "tool_call"): for_gemini,
    (OPENAI, "tool_result"): for_openai,
    (ANTHROPIC, "tool_result"): lambda part, role: {**for_anthropic(part), "content": contents(part)},
    (GEMINI, "tool_result"): lambda part, role: {**for_gemini(part, role), "result": contents(part)},
}


def by_table(messages, wire):
    """Another style: a table by wire and kind, contents as lists."""
    entries = []
    for message in messages:
        pieces = []
        for part in message.parts:
            if part.raw_for(wire):
                pieces.append(part.raw)
            elif (wire, part.type) in TABLE:
                pieces.append(TABLE[wire, part.type](part, message.role))
        results = [piece for piece in pieces if piece.get("type") == "tool_result"]
        pieces = results + [piece for piece in pieces if piece not in results]
        entries += [{"role": message.role, "content": pieces}] if wire == ANTHROPIC else pieces
    return entries


def results_apart(messages, wire):
    found = []
    for entry in base(messages, wire):
        blocks = entry.get("content")
        if wire == ANTHROPIC and len(blocks) > 1 and blocks[0]["type"] == "tool_result":
            found += [{"role": "user", "content": [block]} for block in blocks]
        else:
            found.append(entry)
    return found


def mutates(messages, wire):
    for message in messages:
        message.parts[:] = [part for part in message.parts if keeps(part, wire)]
    return base(messages, wire)


def reversed_calls(messages, wire):
    turned = [
        Message(role=m.role, parts=list(reversed(m.parts)) if len(m.parts) == 2 and m.tool_calls[1:] else m.parts)
        for m in messages
    ]
    return base(turned, wire)


def only_the_last_round(messages, wire):
    return base(messages if len(messages) <= 3 else messages[-3:], wire)


def older_gemini(messages, wire):
    if wire != GEMINI:
        return base(messages, wire)
    return [{"role": "model" if m.role == "assistant" else "user", "parts": [{"text": m.text}]} for m in messages]


ANSWERS = Answers(
    "history",
    base,
    [by_library, by_table],
    [
        ("results_apart", results_apart),
        ("changes_the_history", mutates),
        ("order_lost", reversed_calls),
        ("stuck", only_the_last_round),
        ("wrong_role", older_gemini),
        ("not_written", None),
        ("wrong_shape", lambda messages: []),
    ],
)
