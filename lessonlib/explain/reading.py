"""One pass over a stream: each event with its place, what the wire's decoder makes of it, and what no decoder looks at.

The library's own parser and decoder do the reading, so a row shows what a client built on them saw. Beside it stand facts
that both skip without a word: comments, lines that are no field, gaps in sequence numbers, what comes after the end.

What this file does not do: it does not say what the facts mean (findings.py). Time is linear in the size of the capture, and
so is memory, whatever the number of events: like rows are joined, and beyond a limit the middle ones are left out.
"""

from __future__ import annotations

import bisect
import codecs
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from lessonlib.errors import LessonError, TransportError
from lessonlib.explain.capture import Capture
from lessonlib.explain.report import SAMPLE_CHARS, Row, deeds, error_kind, note, one_line
from lessonlib.sse import DONE, ServerSentEvent, SSEParser
from lessonlib.types import Done, Event, Response
from lessonlib.wire import StreamDecoder
from lessonlib.wire.base import as_dict, as_text, compact, read_json

Frame = tuple[int, int, ServerSentEvent]
"""Where an event begins in the body, where it was complete, and the event."""

UNKNOWN = -1
"""The place of an event whose place is not known."""


# ---------------------------------------------------------------- the events, however they are framed


@dataclass(slots=True)
class Framing:
    """What a parser skips without a word. Positions are in the body."""

    comments: int = 0
    stray: list[tuple[int, bytes]] = field(default_factory=list)
    stray_count: int = 0
    stray_text: bytes = b""  # what the parser kept of them: an error may stand there
    nameless: int = 0  # events with a name but no data: the standard drops them
    no_blank_line: bool = False
    half: tuple[int, int] | None = None  # where an unfinished event begins, and its size


_LINE = re.compile(rb"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")
_FIELDS = frozenset({b"data", b"event", b"id", b"retry"})
_SHOWN_STRAY = 3


def sse_frames(body: bytes, facts: Framing) -> Iterator[Frame]:
    """The events of a stream. The parser is fed line by line, so that each event's first byte is known."""
    parser = SSEParser()
    start: int | None = None
    named = False
    for match in _LINE.finditer(body):
        line, place = match.group(), match.start()
        text = line.rstrip(b"\r\n")
        if place == 0:
            text = text.removeprefix(codecs.BOM_UTF8)
        name = text.partition(b":")[0]
        if name in _FIELDS or (name and match.end() == len(body) and line[-1:] not in b"\r\n"):  # or a field that was cut
            start = place if start is None else start
            named = named or name == b"event"
        elif text:
            _note_skipped(facts, place, text)
        events = parser.feed(line)
        for sse in events:
            yield start or 0, match.end(), sse
        if not text:
            facts.nameless += named and not events
            start, named = None, False
    events = parser.close()
    facts.stray_text = parser.stray
    for sse in events:
        facts.no_blank_line = True
        yield start or 0, len(body), sse
    if start is not None and not events:
        facts.half = (start, len(body) - start)


def _note_skipped(facts: Framing, place: int, text: bytes) -> None:
    """A line that every parser skips: a comment, or no field of the standard at all."""
    if text[:1] == b":":
        facts.comments += 1
        return
    facts.stray_count += 1
    if len(facts.stray) < _SHOWN_STRAY:
        facts.stray.append((place, text[:300]))


def lines(body: bytes) -> Iterator[tuple[bytes, int, int]]:
    """The lines that are not blank, with their places."""
    for match in _LINE.finditer(body):
        if match.group().strip():
            yield match.group().strip(), match.start(), match.end()


def line_frames(body: bytes) -> Iterator[Frame]:
    """JSON lines as events."""
    for line, start, end in lines(body):
        yield start, end, ServerSentEvent("message", line)


def list_frames(payloads: Sequence[Any], body: bytes) -> Iterator[Frame]:
    """The elements of a JSON list as events. Their places are not known."""
    for payload in payloads:
        try:
            data = compact(payload).encode("utf-8", "replace")
        except (ValueError, RecursionError):
            data = b"null"
        yield UNKNOWN, len(body), ServerSentEvent("message", data)


# ---------------------------------------------------------------- a stream, event by event


class Rows:
    """The rows, like ones in a run joined, the middle left out when there are too many."""

    def __init__(self, each: bool, limit: int | None) -> None:
        self._each = each
        self._head: list[Row] = []
        self._room = limit // 2 if limit is not None else None
        self._tail: deque[Row] = deque(maxlen=self._room)
        self._last: Row | None = None
        self._added = 0

    def add(self, row: Row) -> None:
        last = self._last
        if last is not None and not self._each and _alike(last, row):
            last.last, last.chars = row.last, last.chars + row.chars
            if len(last.sample) < SAMPLE_CHARS:
                last.sample = (last.sample + row.sample)[:SAMPLE_CHARS]
            return
        self._added += 1
        self._last = row
        (self._head if self._room is None or len(self._head) < self._room else self._tail).append(row)

    def kept(self) -> list[Row]:
        """The rows, in order."""
        return [*self._head, *self._tail]

    @property
    def omitted(self) -> int:
        """How many rows were left out in the middle."""
        return self._added - len(self._head) - len(self._tail)


def _alike(last: Row, row: Row) -> bool:
    return (
        bool(row.key)
        and row.key == last.key
        and row.event == last.event
        and row.before == row.after == last.after == last.before
    )  # fmt: skip


class Reading:
    """One pass over a stream: the decoder's own reading, and what it has no reason to look at."""

    def __init__(self, capture: Capture, decoder: StreamDecoder | None, rows: Rows) -> None:
        self.decoder = decoder
        self.rows = rows
        self.count = 0
        self.error: LessonError | None = None
        self.response: Response | None = None
        self.after_end = 0
        self.first_after_end = ""
        self.second_end = ""
        self.misnamed: Counter[str] = Counter()
        self.gaps = 0
        self.first_gap = ""
        self.ids: dict[str, str] = {}  # each id that the answer had, and where it came first
        self.biggest = (0, 0)
        self.done_marker = 0
        self.end_markers = 0
        self._offset = capture.offset
        self._sequence: int | None = None
        self._ends = list(accumulate(size for size, _ in capture.chunks))
        self._seconds = [seconds for _, seconds in capture.chunks]
        self._terminal = _terminal_events(decoder) if decoder is not None else frozenset()

    def run(self, frames: Iterable[Frame], framing: Framing, broken: str) -> None:
        """Reads everything, also what stands after the end or after an error. broken: how the connection broke, or ""."""
        try:
            for start, end, sse in frames:
                self._event(start, end, sse)
        except LessonError as error:  # the parser's: an event without end
            row = self._row("(too large)", UNKNOWN, None)
            self._fail(error, row)
            self._add(row)
            return
        self._close(framing.stray_text, broken)

    # ------------------------------------------------------------ inside

    def _event(self, start: int, end: int, sse: ServerSentEvent) -> None:
        self.count += 1
        payload = _payload(sse.data)
        kind = self._kind(payload, sse)
        row = self._row(kind, start, self._when(end))
        ignored = self._ignored(kind)
        try:
            events = self.decoder.feed(sse) if self.decoder is not None else ()
        except LessonError as error:
            self._fail(error, row)
        else:
            self._keep(events)
            row.what, row.key, row.chars, row.sample = deeds(events) if events else ("", kind, 0, "")
        unknown = self._ignored(kind) > ignored
        if not row.what:
            row.what = self._nothing(row, payload, unknown)
        self._note(row, payload, sse, unknown)
        self._add(row)

    def _close(self, stray: bytes, broken: str) -> None:
        if self.decoder is None:
            return
        row = self._row("(end of body)", UNKNOWN, None)
        if broken and self.response is None and self.error is None:  # no end of the body, so nobody may call close
            self._fail(TransportError(broken, partial=self.decoder.partial()), row)
            self._add(row)
            return
        try:
            events = self.decoder.close(stray)
        except LessonError as error:
            self._fail(error, row)
        else:
            self._keep(events)
            row.what = deeds(events)[0] if events else ""
        if row.what:
            self._add(row)

    def _row(self, kind: str, start: int, seconds: float | None) -> Row:
        number, offset = (self.count, start + self._offset) if start != UNKNOWN else (0, UNKNOWN)
        return Row(number, number, offset, seconds, kind, self._state(), "", "")

    def _add(self, row: Row) -> None:
        row.after = self._state()
        self.rows.add(row)

    def _keep(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Done):
                self.response = event.response

    def _fail(self, error: LessonError, row: Row) -> None:
        """The first error counts."""
        self.error = self.error or error
        row.what, row.failed = f"{error_kind(error).replace('_', ' ')}: {one_line(error.message, 100)}", True

    def _state(self) -> str:
        return self.decoder.state if self.decoder is not None else ""

    def _kind(self, payload: Any, sse: ServerSentEvent) -> str:
        if sse.data[: len(DONE)] == DONE:
            self.done_marker = self.done_marker or self.count
            self.end_markers += 1
            return "[DONE]"
        if self.decoder is not None and payload is not None:
            try:
                return str(self.decoder.kind(payload, sse))  # a payload may name its kind by anything
            except (LookupError, TypeError, ValueError, AttributeError):
                pass
        return sse.event

    def _ignored(self, kind: str) -> int:
        return self.decoder.ignored.get(kind, 0) if self.decoder is not None else 0

    def _nothing(self, row: Row, payload: Any, unknown: bool) -> str:
        """Words for an event that gave the reader of the answer nothing."""
        if row.before in ("DONE", "FAILED") and row.event != "[DONE]":
            return f"after the {'end' if row.before == 'DONE' else 'error'}, not read"
        if unknown:
            return "unknown event, ignored"
        return note(self.decoder.wire.name, row.before, row.event, payload) if self.decoder is not None else ""

    def _note(self, row: Row, payload: Any, sse: ServerSentEvent, unknown: bool) -> None:
        """What no decoder looks at."""
        if len(sse.data) > self.biggest[0]:
            self.biggest = (len(sse.data), self.count)
        if row.before == "DONE" and row.event not in ("[DONE]", "ping"):
            self.after_end += 1
            self.first_after_end = self.first_after_end or _place(row)
            if row.event in self._terminal and not unknown:
                self.second_end = self.second_end or f"{row.event} ({_place(row)})"
        if not isinstance(payload, dict):
            return
        if (answer_id := _id_of(payload)) and answer_id not in self.ids:
            self.ids[answer_id] = _place(row)
        name = payload.get("event_type", payload.get("type"))
        if isinstance(name, str) and sse.event not in ("message", name):
            self.misnamed[f"{sse.event} holds {name}"] += 1
        number = payload.get("sequence_number")
        if isinstance(number, int) and not isinstance(number, bool):
            if self._sequence is not None and number != self._sequence + 1:
                self.gaps += 1
                self.first_gap = self.first_gap or f"{self._sequence} is followed by {number} ({_place(row)})"
            self._sequence = number

    def _when(self, end: int) -> float | None:
        """When the network read came that completed the event."""
        index = bisect.bisect_left(self._ends, end)
        return self._seconds[index] if index < len(self._seconds) else None


def _place(row: Row) -> str:
    """Words for where an event stands."""
    return f"event {row.first}" if row.offset == UNKNOWN else f"event {row.first}, byte {row.offset}"


def _id_of(payload: dict[str, Any]) -> str:
    """The answer's id in an event, where it has one: in a snapshot of the answer, or beside the choices of a chunk."""
    holder = next((payload[name] for name in ("response", "message", "interaction") if name in payload), payload)
    if holder is payload and "choices" not in payload:
        return as_text(payload.get("responseId"))
    return as_text(as_dict(holder).get("id"))


def _terminal_events(decoder: StreamDecoder) -> frozenset[str]:
    return frozenset(event for row in decoder.TABLE.values() for event, after in row.items() if after == "DONE")


def _payload(data: bytes) -> Any:
    try:
        return read_json(data)
    except ValueError:
        return None
