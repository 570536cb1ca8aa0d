"""Reading a capture: what came, what each event did, what it adds up to, and what is wrong with it.

    [capture] = read(Path("stream.sse"))   # or unwrap(b"..."), for bytes
    report = explain(capture)
    report.response, report.error    # the answer, or why there is none (with what had arrived in error.partial)
    report.rows                      # the events, with the state before and after
    report.findings                  # what is worth knowing, in plain words, each with a pointer to its rule
    report.line()                    # the same for a program: one JSON object

    capture.py    what people save, down to the body            findings.py   what the facts mean
    reading.py    a stream, event by event                      report.py     what comes out
    render.py     for the eyes: tables, and no harmful characters

The decoders of the library do the reading and its client's checks judge it, so the report shows what a client built on them
would have seen. It never fails on any bytes, and its time and memory are linear in the size of the capture.

What this package does not do: no network, no guessing at what is missing. The rules stand in docs/explain.md, the wire
formats in docs/wire/.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pydantic_core import from_json

from lessonlib.errors import APIError, IncompleteStream, LessonError, NotAStream, ProtocolError, TransportError
from lessonlib.exchange import http_error, whole_answer
from lessonlib.explain.capture import Capture, read, reader, unwrap, wire_of_url
from lessonlib.explain.findings import judge_answer, judge_body, judge_error, judge_framing, judge_reading
from lessonlib.explain.reading import Frame, Framing, Reading, Rows, line_frames, lines, list_frames, sse_frames
from lessonlib.explain.report import KINDS, Finding, Kind, Report, Row, one_line, to_json
from lessonlib.types import JSON
from lessonlib.wire import WIRES, WireFormat
from lessonlib.wire.base import as_dict, compact, read_json

DEFAULT_WIRE = "openai-chat"
"""What an error body is taken for that fits several wire formats alike: most services speak this one."""

MAX_ROWS = 400
"""How many rows a report keeps unless asked otherwise."""


# ---------------------------------------------------------------- the entry


def explain(
    capture: Capture | bytes,
    *,
    wire: str | None = None,
    status: int | None = None,
    each: bool = False,
    max_rows: int | None = MAX_ROWS,
) -> Report:
    """What the capture is. `wire` and `status` say what it does not say itself (or says wrongly).

    each: a row for each event instead of one for a run of like ones. max_rows: of more, the middle ones are left out; None
    keeps all.
    """
    capture = Capture("-", capture) if isinstance(capture, bytes) else capture
    status = status if status is not None else capture.status
    body = capture.body.removeprefix(codecs.BOM_UTF8)
    kind, payload = classify(body)
    report = Report(capture.name, len(capture.body), kind, status=status, findings=list(capture.notes))
    reading_as = _find_wire(report, capture, payload, wire)
    if status is not None and not 200 <= status < 300:
        report.error = _http_error(status, capture, kind, body, reading_as)
    elif kind in ("stream", "json-lines", "json-list"):
        _read_stream(report, capture, payload, reading_as, Rows(each, max_rows))
    elif kind in ("response", "error"):
        _read_whole(report, body, payload, reading_as)
        if capture.broken and isinstance(report.error, IncompleteStream):
            report.error = TransportError(capture.broken)
    else:
        report.error = _no_answer(kind, capture)
    report.request_id = _request_id(report, capture)
    judge_body(report, capture)
    judge_error(report)
    judge_answer(report)
    report.findings.sort(key=lambda finding: ("error", "warning", "note").index(finding.severity))
    return report


def _request_id(report: Report, capture: Capture) -> str:
    """What the service's support will ask for."""
    told = capture.headers.get("request-id") or capture.headers.get("x-request-id")
    return told or (report.error.request_id if isinstance(report.error, APIError) else None) or ""


def unreadable(name: str, error: OSError) -> Report:
    """The report for a file that cannot be read."""
    words = f"the file cannot be read: {error.strerror or error}"
    report = Report(name, 0, "unreadable", error=TransportError(words, retryable=False))
    judge_error(report)
    return report


# ---------------------------------------------------------------- what it is

_FIELD = re.compile(rb"(?:\A|[\r\n])(?:data|event)[ \t]?:")
_COMMENT = re.compile(rb"\s*:")
_BEFORE_ELEMENT = re.compile(r"[\s,]*")
_HTML = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)


def classify(body: bytes) -> tuple[Kind, Any]:
    """What kind of body it is, and its JSON if the whole of it is JSON."""
    if not body.strip():
        return "empty", None
    if _HTML.match(body):
        return "html", None
    is_json = body.lstrip()[:1] in (b"{", b"[")
    if is_json:
        try:
            payload = read_json(body)
        except ValueError:
            if _is_json_lines(body):
                return "json-lines", None
            if elements := _whole_elements(body):
                return "json-list", elements
        else:
            return _kind_of_json(payload), payload
    if _FIELD.search(body) or _COMMENT.match(body):
        return "stream", None
    return ("response" if is_json else "text"), None  # JSON that is cut or broken


def _kind_of_json(payload: Any) -> Kind:
    if isinstance(payload, list):
        return "error" if len(payload) == 1 and "error" in as_dict(payload[0]) else "json-list"
    return "error" if _is_error(as_dict(payload)) else "response"


_CONTENT = ("choices", "output", "content", "steps", "candidates", "outputs")


def _is_error(payload: JSON) -> bool:
    """Whether a JSON object is an error body and nothing else. Answers have an `error` field too, null or beside content."""
    if payload.get("error"):
        return not any(payload.get(name) for name in _CONTENT)
    return bool(payload.get("detail")) or ("message" in payload and "code" in payload)


def _whole_elements(body: bytes) -> list[Any]:
    """The elements of a JSON list of objects that was cut: those that are whole."""
    text = body.decode("utf-8", "replace").lstrip()
    if not text.startswith("["):
        return []
    read = json.JSONDecoder().raw_decode
    elements: list[Any] = []
    place = _BEFORE_ELEMENT.match(text, 1)
    while place is not None and text.startswith("{", place.end()):
        try:
            element, end = read(text, place.end())
        except (ValueError, RecursionError):
            break
        elements.append(element)
        place = _BEFORE_ELEMENT.match(text, end)
    return elements


def _is_json_lines(body: bytes) -> bool:
    """Whether the first two lines that are not blank are JSON objects."""
    found = 0
    for line, _, _ in lines(body):
        if found == 2:
            return True
        try:
            found += isinstance(read_json(line), dict)
        except ValueError:
            return False
    return found == 2


# ---------------------------------------------------------------- which wire format


def _find_wire(report: Report, capture: Capture, payload: Any, wanted: str | None) -> type[WireFormat] | None:
    """Sets `wire` and `how`. What a person says counts, then what the content says for certain, then the address."""
    found, sure = recognise(_samples(report.kind, payload, capture.body))
    address = wire_of_url(capture.url)
    if wanted is not None:
        report.wire, report.how = wanted, "as you said"
        if found and sure and found != wanted:
            report.add("wire-mismatch", "warning", f"you said {wanted}, but the content looks like {found}")
    elif found and (address is None or (sure and report.kind != "error")):  # error bodies are much alike
        report.wire, report.how = found, "by content"
        if not sure:
            words = f"the content fits several wire formats; it was read as {found}; --wire says which one it is"
            report.add("wire-guessed", "note", words)
    elif address is not None:
        report.wire, report.how = address, "by the address of the request"
    elif report.kind == "error":
        report.wire, report.how = DEFAULT_WIRE, "a guess"
        words = f"an error body of no known form; it was read as {DEFAULT_WIRE}; --wire says which format it is"
        report.add("wire-guessed", "note", words)
    return WIRES[report.wire] if report.wire is not None else None


def recognise(payloads: Iterable[Any]) -> tuple[str | None, bool]:
    """The wire format of some payloads of one answer, and whether that is certain."""
    scores: Counter[str] = Counter()
    for payload in payloads:
        marks = {name: _score(wire, payload) for name, wire in WIRES.items()}
        certain = [name for name, mark in marks.items() if mark >= 2]
        if len(certain) == 1:
            return certain[0], True
        scores.update(marks)
    best = max(scores.values(), default=0)
    if not best:
        return None, False
    names = [name for name, score in scores.items() if score == best]
    return (DEFAULT_WIRE if DEFAULT_WIRE in names else names[0]), len(names) == 1


def _score(wire: type[WireFormat], payload: Any) -> int:
    try:
        return wire.recognises(payload)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError):
        return 0


def _samples(kind: Kind, payload: Any, body: bytes, limit: int = 200) -> Iterator[Any]:
    """The payloads by which the wire format is recognised: the whole body, or the first events."""
    if kind in ("response", "error"):
        yield payload if payload is not None else _half_json(body)
    elif kind == "json-list":
        yield from payload[:limit]
    elif kind in ("stream", "json-lines"):
        frames = sse_frames(body[:_SAMPLE], Framing()) if kind == "stream" else line_frames(body[:_SAMPLE])
        for _, _, sse in islice(frames, limit):
            try:
                yield read_json(sse.data)
            except ValueError:
                continue


_SAMPLE = 4 << 20


def _half_json(body: bytes) -> Any:
    """What a JSON that was cut says so far: enough to recognise it, never an answer."""
    try:
        return from_json(body, allow_partial=True)
    except ValueError:
        return None


# ---------------------------------------------------------------- the ways to read a body


def _read_stream(report: Report, capture: Capture, payload: Any, wire: type[WireFormat] | None, rows: Rows) -> None:
    framing = Framing()
    frames: Iterable[Frame]
    if report.kind == "stream":
        frames = sse_frames(capture.body, framing)
    elif report.kind == "json-lines":
        frames = line_frames(capture.body)
    else:
        frames = list_frames(payload, capture.body)
    reading = Reading(capture, reader(wire).decoder() if wire is not None else None, rows)
    reading.run(frames, framing, capture.broken)
    report.events, report.rows, report.omitted = reading.count, rows.kept(), rows.omitted
    report.response, report.error = reading.response, reading.error
    if wire is None and report.error is None:
        report.error = _unknown_stream(reading.count - reading.end_markers, capture.body)
    if report.error is not None:
        report.error.partial = report.error.partial or report.response
        report.response = None
    judge_framing(report, capture, framing)
    judge_reading(report, capture, reading)


def _unknown_stream(events: int, body: bytes) -> LessonError:
    shown = one_line(" ".join(body[:400].decode("utf-8", "replace").split()), 120)
    if not events:  # an end marker is the end of something: alone it says that nothing came
        return IncompleteStream(f"the body ended before the first event of an answer; it begins with: {shown}")
    return ProtocolError(f"a stream of events, but of none of the five wire formats; it begins with: {shown}")


def _read_whole(report: Report, body: bytes, payload: Any, wire: type[WireFormat] | None) -> None:
    if isinstance(payload, list) and len(payload) == 1:  # Google wraps error bodies so
        payload, body = payload[0], compact(payload[0]).encode("utf-8", "replace")
    if wire is None and payload is not None:
        keys = ", ".join(list(as_dict(payload))[:8]) or "none"
        words = f"JSON, but not an answer of any of the five wire formats; its keys are: {one_line(keys, 200)}"
        report.error = NotAStream(words, content_type="application/json", body=one_line(keys, 200))
        return
    try:
        report.response = whole_answer(reader(wire or WIRES[DEFAULT_WIRE]), "application/json", body)
    except LessonError as error:
        report.error = error


def _http_error(status: int, capture: Capture, kind: Kind, body: bytes, wire: type[WireFormat] | None) -> LessonError:
    """Whatever the body is, it is no answer. Some services write the error as an event all the same."""
    if kind == "stream":
        body = next((sse.data for _, _, sse in sse_frames(body, Framing())), body)
    return http_error(reader(wire or WIRES[DEFAULT_WIRE]), status, capture.headers, body)


def _no_answer(kind: Kind, capture: Capture) -> LessonError:
    if kind == "empty":
        return IncompleteStream("the body is empty")
    shown = " ".join(capture.body[:2000].decode("utf-8", "replace").split())
    return NotAStream(f"{KINDS[kind]}: {one_line(shown, 200)}", content_type=capture.content_type, body=shown)


__all__ = [
    "KINDS",
    "MAX_ROWS",
    "Capture",
    "Finding",
    "Report",
    "Row",
    "explain",
    "read",
    "to_json",
    "unreadable",
    "unwrap",
]
