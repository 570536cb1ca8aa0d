"""Counts of a request's tokens, right and wrong."""

from __future__ import annotations

import json

from lessonlib.tokens import count
from lessonlib.types import Image, Text, ToolCall, ToolResult
from lessonlib.vocabulary import count_text
from tests.lab_exercises.answers import Answers


def base(request):
    tokens = 3
    if request.system:
        tokens += 4 + count_text(request.system)
    for message in request.messages:
        tokens += 4
        for part in message.parts:
            tokens += of_part(part)
    for tool in request.tools:
        tokens += 8 + count_text(tool.name + " " + tool.description) + schema_tokens(tool)
    return tokens


def of_part(part):
    match part:
        case Text():
            return count_text(part.text)
        case ToolCall():
            return 7 + count_text(part.name + part.raw_args)
        case ToolResult():
            return 5 + count_text(part.text)
    return 0


def schema_tokens(tool):
    return round(0.6 * count_text(json.dumps(tool.parameters)))


def by_library(request):
    """Without the round sum for pictures, which nobody outside can know."""
    pictures = sum(isinstance(part, Image) for message in request.messages for part in message.parts)
    return count(request) - 1000 * pictures


def by_leaves(request):
    """Another style: every text in the request's own JSON, and a sum for each object that stands around one."""
    tokens = 3 + count_text(request.system or "") + 4 * bool(request.system)
    for message in request.messages:
        tokens += 4 + sum(
            leaves(part.model_dump(exclude={"raw", "data", "media_type", "wire", "args"})) for part in message.parts
        )
    for tool in request.tools:
        tokens += leaves({"name": tool.name, "description": tool.description}) + 0.7 * count_text(
            json.dumps(tool.parameters)
        )
    return round(tokens)


def leaves(value):
    words = [
        count_text(text) for key, text in value.items() if isinstance(text, str) and key not in ("type", "call_id", "kind")
    ]
    return sum(words) + (6 if len(words) > 1 else 0)


def words(request):
    return sum(len(part.text.split()) for message in request.messages for part in message.parts if isinstance(part, Text))


def letters(request):
    return sum(len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text))


def quarters(request):
    return sum(len(part.text) // 4 for message in request.messages for part in message.parts if isinstance(part, Text)) + 7


def special(request):
    for message in request.messages:
        for part in message.parts:
            if "<|" in getattr(part, "text", ""):
                raise ValueError("a disallowed special token")
    return base(request)


def unknown(request):
    return base(request) if request.model.startswith("gpt") else 0


def unknown_raises(request):
    return {"gpt-4o": base}[request.model](request)


def base64_too(request):
    return base(request) + sum(
        count_text(part.data) for message in request.messages for part in message.parts if isinstance(part, Image)
    )


def needs_text(request):
    return base(request) + 0 * sum(
        len(part.raw_args if isinstance(part, ToolCall) else part.text) for m in request.messages for part in m.parts
    )


ANSWERS = Answers(
    "count",
    base,
    [by_library, by_leaves],
    [
        ("no_number", lambda request: str(base(request))),
        ("text_lost", lambda request: 5),
        ("words_are_tokens", words),
        ("characters_are_tokens", letters),
        ("four_letters_a_token", quarters),
        ("special_text_crashes", special),
        ("unknown_is_free", unknown),
        ("unknown_crashes", unknown_raises),
        ("picture_as_text", base64_too),
        ("picture_crashes", needs_text),
        ("not_written", None),
        ("wrong_shape", lambda: 0),
    ],
)
