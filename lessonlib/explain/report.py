"""What a reading gives: `Report` with its rows and findings, the words for what events and parts say, and the JSON line.

What this file does not do: it reads nothing and judges nothing (reading.py, findings.py), and it prints nothing. Texts from
a capture stand in a report as they came; whoever shows them must make them harmless (render.py does).

The shape of `Report.line` is a contract, described in docs/explain.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from lessonlib.errors import APIError, IncompleteStream, LessonError, NotAStream, ProtocolError, TransportError
from lessonlib.types import (
    COUNTS,
    JSON,
    ArgumentsDelta,
    Done,
    Event,
    Opaque,
    Part,
    PartDone,
    Reasoning,
    ReasoningDelta,
    Response,
    Text,
    TextDelta,
    ToolCall,
)  # fmt: skip
from lessonlib.wire.base import as_dict, compact

CUT = "the answer it belongs to never ended"
"""Why a call that was whole itself is not to be run."""

Severity = Literal["error", "warning", "note"]

Kind = Literal["stream", "json-lines", "json-list", "response", "error", "html", "text", "empty", "unreadable"]

KINDS: dict[Kind, str] = {
    "stream": "a stream of server-sent events",
    "json-lines": "one JSON object per line, without the framing of server-sent events",
    "json-list": "a JSON list of stream events",
    "response": "a whole JSON answer",
    "error": "a JSON error body",
    "html": "an HTML page",
    "text": "neither JSON nor server-sent events",
    "empty": "an empty body",
    "unreadable": "a file that cannot be read",
}


@dataclass(slots=True)
class Finding:
    """One thing that a reader of the capture should know. `code` is the section of docs/explain.md that explains the rule,
    `place` says where ("event 14, byte 2310"), "" if it concerns the whole."""

    code: str
    severity: Severity
    message: str
    place: str = ""

    @property
    def rule(self) -> str:
        """Where the rule stands."""
        return f"docs/explain.md#{self.code}"


@dataclass(slots=True)
class Row:
    """One event, or a run of events that did the same thing (`last` > `first`).

    offset: byte in the file where the first one begins, -1 if not known. seconds: since the request, if the capture knows.
    chars, sample: of the text that it added. failed: the reading ended here. did: what it did, in words.
    """

    first: int
    last: int
    offset: int
    seconds: float | None
    event: str
    before: str
    after: str
    what: str
    key: str = ""
    chars: int = 0
    sample: str = ""
    failed: bool = False

    @property
    def did(self) -> str:
        """What the event did, in words."""
        if not self.chars:
            return self.what
        count = self.last - self.first + 1
        many = f", {self.chars:,} characters in {count:,} events:" if count > 1 else ""
        return f"{self.what}{many} “{self.sample}{'…' if self.chars > len(self.sample) else ''}”"


@dataclass(slots=True)
class Report:
    """What one capture is. `response` is the finished answer, None if there is none; then `error` says why, and what had
    arrived is in `error.partial`. `how`: why this wire format. `omitted`: rows that were left out in the middle."""

    name: str
    size: int
    kind: Kind
    wire: str | None = None
    how: str = ""
    status: int | None = None
    request_id: str = ""
    events: int = 0
    rows: list[Row] = field(default_factory=list)
    omitted: int = 0
    response: Response | None = None
    error: LessonError | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def arrived(self) -> Response | None:
        """The answer, or what had arrived of it."""
        return self.response or (self.error.partial if self.error is not None else None)

    def add(self, code: str, severity: Severity, message: str, place: str = "") -> None:
        """One more finding."""
        self.findings.append(Finding(code, severity, message, place))

    def line(self) -> JSON:
        """The report as one JSON object, for programs."""
        answer = self.arrived
        parts = [] if answer is None else answer.message.parts
        usage = None if answer is None else answer.usage
        return {
            "file": self.name,
            "wire": self.wire,
            "id": answer.id or None if answer else None,
            "model": answer.model or None if answer else None,
            "text": answer.text if answer else "",
            "reasoning": answer.reasoning if answer else "",
            "tool_calls": [self._call(part) for part in parts if isinstance(part, ToolCall)],
            "stop": str(answer.stop) if answer and self.error is None else None,
            "raw_stop": answer.raw_stop if answer else None,
            "usage": {name: getattr(usage, name) for name in COUNTS} if usage is not None else None,
            "parts": [self._part(part) for part in parts],
            "error": None if self.error is None else error_line(self.error),
        }

    def _part(self, part: Part) -> JSON:
        match part:
            case Text() | Reasoning():
                return {"type": part.type, "text": part.text}
            case ToolCall():
                return {"type": "tool_call", **self._call(part)}
            case Opaque():
                return {"type": "opaque", "kind": part.kind}
            case _:
                return {"type": "opaque", "kind": part.type}

    def _call(self, call: ToolCall) -> JSON:
        """A call that had become whole before the error cannot be run either: the answer that asks for it never came."""
        failed = self.error is not None
        problem = call.args_error or (CUT if failed else None)
        return {"id": call.call_id, "name": call.name, "args": None if failed else call.args, "args_error": problem}


_ERROR_KINDS: tuple[tuple[type[LessonError], str], ...] = (
    (APIError, "provider_error"),
    (IncompleteStream, "incomplete_stream"),
    (ProtocolError, "protocol_error"),
    (NotAStream, "not_a_stream"),
    (TransportError, "transport_error"),
)


def error_kind(error: LessonError) -> str:
    """The word for the error's class."""
    return next((kind for cls, kind in _ERROR_KINDS if isinstance(error, cls)), "protocol_error")


def error_line(error: LessonError) -> JSON:
    """The error as a JSON object."""
    api = error if isinstance(error, APIError) else None
    return {
        "kind": error_kind(error),
        "message": error.message,
        "retryable": error.retryable,
        "status": api.status if api else None,
        "type": api.type if api else None,
        "code": api.code if api else None,
    }


def to_json(value: JSON) -> str:
    """One line of ASCII that every JSON reader takes: lone surrogates as escapes, no NaN, no number without end."""
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return json.dumps(_printable(value, 0), allow_nan=False)


def _printable(value: Any, depth: int) -> Any:
    """`value` with everything as a text that JSON has no form for."""
    if depth > 100:
        return "(nested too deeply to print)"
    if isinstance(value, dict):
        return {key: _printable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable(item, depth + 1) for item in value]
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return hex(value) if isinstance(value, int) and value.bit_length() > 10_000 else value


# ---------------------------------------------------------------- words for events and parts

SAMPLE_CHARS = 60
"""How much of a text is shown in a row."""


def deeds(events: Sequence[Event]) -> tuple[str, str, int, str]:
    """What unified events say: words, a key that like runs share, and the text that was added."""
    if len(events) == 1:
        match events[0]:
            case TextDelta(index, text):
                return f"part {index}: text", f"text {index}", len(text), _sample(text)
            case ReasoningDelta(index, text):
                return f"part {index}: reasoning", f"reasoning {index}", len(text), _sample(text)
            case ArgumentsDelta(index, _, text):
                return f"part {index}: arguments", f"arguments {index}", len(text), _sample(text)
    return "; ".join(_deed(event) for event in events), "", 0, ""


def _sample(text: str) -> str:
    return one_line(text[:SAMPLE_CHARS], SAMPLE_CHARS)


def _deed(event: Event) -> str:
    match event:
        case TextDelta(index, text):
            return f"part {index}: text “{one_line(text, SAMPLE_CHARS)}”"
        case ReasoningDelta(index, text):
            return f"part {index}: reasoning “{one_line(text, SAMPLE_CHARS)}”"
        case ArgumentsDelta(index, _, text):
            return f"part {index}: arguments “{one_line(text, SAMPLE_CHARS)}”"
        case PartDone(index, part):
            return f"part {index} is whole: {describe(part)}"
        case Done(response):
            return f"the answer is whole: stop is {stop_words(response)}"


def stop_words(response: Response) -> str:
    """The stop reason in our word and, where it differs, in the vendor's."""
    raw = response.raw_stop
    return f"{response.stop} ({one_line(raw, 60)})" if raw and raw != response.stop else str(response.stop)


def describe(part: Part) -> str:
    """A part in a few words."""
    match part:
        case Text():
            return f"text, {len(part.text):,} characters"
        case Reasoning():
            return f"reasoning, {len(part.text):,} characters" if part.text else "reasoning without readable text"
        case ToolCall() if part.args is None:
            return f"call {part.name or '(no name)'}, which cannot be run"
        case ToolCall():
            return f"call {part.name or '(no name)'}({one_line(part.raw_args or compact(part.args), 100)})"
        case Opaque():
            return f"{part.kind}, kept as it came"
        case _:
            return f"{part.type}, kept as it came"


def one_line(text: str, limit: int) -> str:
    """The beginning of a text, on one line."""
    text = text[: limit + 1].replace("\r", "").replace("\n", "⏎")
    return text if len(text) <= limit else text[:limit] + "…"


@cache
def _notes() -> dict[str, dict[str, str]]:
    data: dict[str, dict[str, str]] = json.loads(
        resources.files("lessonlib").joinpath("data/events.json").read_text(encoding="utf-8")
    )
    return data


_BLANK_TO_FILL = re.compile(r"\{([\w.]+)\}")


def note(wire: str, state: str, kind: str, payload: Any) -> str:
    """What an event says that adds nothing to the answer yet (`data/events.json`), its blanks filled in. A text may be meant
    for one state only ("WAIT:chunk")."""

    def fill(match: re.Match[str]) -> str:
        value = payload
        for name in match[1].split("."):
            value = value[int(name)] if name.isdigit() and isinstance(value, list) and value else as_dict(value).get(name)
        return one_line(str(value), 60) if isinstance(value, (str, int, float)) else "…"

    notes = _notes().get(wire, {})
    return _BLANK_TO_FILL.sub(fill, notes.get(f"{state}:{kind}", notes.get(kind, "")))
