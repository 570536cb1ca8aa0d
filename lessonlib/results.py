"""What a tool's function gave back, as the model reads it: a value, a picture, a cut text, an exception.

What this file does not do: it knows no call and no history (tool_loop.py builds the ToolResult), and no vendor: how an error
or a picture is written on the wire is the encoder's business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from lessonlib.types import Image, Text

Content = str | list[Text | Image]


def result_content(value: Any) -> Content:
    """What a tool returned, as the content of a ToolResult.

    Text as it is, nothing as "", pictures and lists of texts and pictures as parts, everything else as JSON (pydantic
    models, dataclasses, dates, sets included). Raises TypeError for bytes, and for what has no JSON form.
    """
    match value:
        case str():
            return value
        case None:
            return ""
        case Text() | Image():
            return [value]
        case list() | tuple() if value and all(isinstance(item, (Text, Image)) for item in value):
            return list(value)
        case bytes() | bytearray() | memoryview():
            raise TypeError("the tool returned bytes, which mean nothing to a model; return text, or Image.from_bytes(...)")
    try:
        return to_json(value, inf_nan_mode="constants").decode("utf-8")
    except ValueError as error:
        try:
            return json.dumps(value)  # half of a surrogate pair has no UTF-8 form; as an ASCII escape it has one
        except (TypeError, ValueError):
            raise TypeError(f"the tool returned a {type(value).__name__}, which has no JSON form; return text") from error


def cut_content(content: Content, limit: int | None) -> Content:
    """`content` with at most `limit` characters of text, and a note that says so where something was cut. Pictures stay."""
    if limit is None:
        return content
    if isinstance(content, str):
        return content if len(content) <= limit else _cut(content, limit, limit, len(content))
    total = sum(len(part.text) for part in content if isinstance(part, Text))
    if total <= limit:
        return content
    kept: list[Text | Image] = []
    left = limit
    for part in content:
        if isinstance(part, Image):
            kept.append(part)
        elif left >= 0:  # the first text that does not fit carries the note; those after it are dropped
            fits = len(part.text) <= left
            kept.append(part if fits else Text(text=_cut(part.text, left, limit, total)))
            left = left - len(part.text) if fits else -1
    return kept


def _cut(text: str, limit: int, shown: int, total: int) -> str:
    if 0 < limit < len(text) and "\ud800" <= text[limit - 1] <= "\udbff" and "\udc00" <= text[limit] <= "\udfff":
        limit -= 1  # the two halves of one character stay together
    return f"{text[:limit]}\n[cut: the first {shown} of {total} characters are shown]"


# ---------------------------------------------------------------- exceptions

_SECRET_NAMES = r"api[_-]?key|access[_-]?key|secret|token|password|passwd|credentials?"
_HIDDEN: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), r"\1 ***"),
    (re.compile(rf"(?i)((?:{_SECRET_NAMES})[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;)}}]+"), r"\1***"),
    (re.compile(r"(?i)([?&]key=)[^\s&\"']+"), r"\1***"),
    (re.compile(r"(\w+://)[^\s/@:]+:[^\s/@]+@"), r"\1***@"),
    (re.compile(r"\b(?:[spr]k|ghp|xox[abp])[-_][\w-]{8,}|\bAIza[\w-]{20,}|\bAKIA[A-Z0-9]{12,}"), "***"),
    (re.compile(r"(?<![\w:/.])(?:/[\w.@+-]+){2,}/?"), lambda found: "…/" + found.group().rstrip("/").rsplit("/", 1)[-1]),
    (re.compile(r"\b[A-Za-z]:\\(?:[^\\\s\"'<>|]+\\)*([^\\\s\"'<>|]*)"), r"…\\\1"),
]
"""What an exception's text may say that a model, and whoever reads its answers, should not see: keys and paths."""


def error_text(error: BaseException) -> str:
    """What the model is told of a tool's exception: its type and message, never empty, no traceback. Paths are shortened to
    the file's name, and what looks like a key is masked: the text was written for a developer."""
    text = str(error).strip()
    for pattern, replacement in _HIDDEN:
        text = pattern.sub(replacement, text)
    name = type(error).__name__
    return f"{name}: {text}" if text else name
