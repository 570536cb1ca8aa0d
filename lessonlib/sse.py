"""Server-sent events: bytes in, events out. Incremental, by the WHATWG rules, and bounded in size.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

The rules that clients get wrong, each with a test of its own: a line ends with LF, CR or CRLF and nothing else (U+2028 in a
JSON string is not a line end); a CRLF may be cut between two reads, and so may a character, so lines are cut on *bytes* and
never decoded piecemeal; a byte order mark at the start is skipped; at most one space after the colon is dropped; several
`data` lines are joined by LF; an event without data is not dispatched; a line that starts with a colon is a comment.

Two things are ours, on purpose:

* The standard drops an event that is still open when the body ends. Some servers forget the last blank line, so `close()`
  delivers such an event if its data is whole JSON or `[DONE]`; half a JSON is never delivered.
* The standard knows no limit. Here one event's data may have `max_event_bytes`, and so may any other line. What a stream
  gives does not depend on how the network cut it: the events before the one that is too large are delivered first.

What this file does not do: no JSON (data stays bytes, each wire's decoder parses it once), no network, no reconnecting, and
no end-of-stream judgement: whether an answer is complete is for the decoder to say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lessonlib.errors import EventTooLarge

MAX_EVENT_BYTES = 10 * 1024 * 1024
"""Default limit of one event: enough for a base64 picture, small enough to stop a stream that never sends a line end."""

DONE = b"[DONE]"
_LF, _CR = 10, 13  # as numbers: `_CR in chunk` looks for a byte, which is several times faster than for a string of bytes
_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "
_STRAY_BYTES = 16 * 1024
_LONGEST_RETRY = 15  # digits: thousands of years in milliseconds; more would be no number of anyone's
_NAMES_KEPT = 64


@dataclass(slots=True)
class ServerSentEvent:
    """One event. `event` is the name ("message" if the stream gave none), `data` the payload as bytes, `id` the last
    event id seen so far."""

    event: str
    data: bytes
    id: str = ""


class SSEParser:
    """Push bytes in with `feed`, get the events that they completed; call `close` once at the clean end of the body.

    Time is linear in the bytes, for one huge event in tiny reads and for one huge read of tiny events alike.

    retry: the reconnection time in milliseconds that the server asked for, or None.
    stray: the beginning of the lines that are no field of the standard. A correct stream has none; some services send a
        bare JSON error line, and a report about a broken stream should quote it.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.max_event_bytes = max_event_bytes
        self.retry: int | None = None
        self.stray = b""
        self._line = bytearray()  # the line that has begun but not ended
        self._data: list[bytes] = []  # the data lines of the event that has begun but not ended
        self._data_size = 0
        self._event = ""
        self._id = ""
        self._after_cr = False  # the last read ended with CR: a LF at the start of the next one belongs to it
        self._start = True  # still waiting for the first three bytes, which may be a byte order mark
        self._fault: EventTooLarge | None = None
        self._names: dict[bytes, str] = {}  # `event:` lines seen: a stream has a handful, each thousands of times

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that `chunk` completed. Raises EventTooLarge when one event passes the limit: in this call if it has
        no event to give, else in the next."""
        if self._fault is not None:
            raise self._fault
        events: list[ServerSentEvent] = []
        lines = self._lines(chunk)
        if not lines and len(self._line) <= self.max_event_bytes:
            return events  # a small read within a line
        try:
            self._read(lines, events)
        except EventTooLarge as fault:
            self._fault = fault
            if not events:
                raise
        return events

    def close(self) -> list[ServerSentEvent]:
        """The event that was still open at the clean end of the body, if its data is whole (the deviation above)."""
        events = self.feed(b"\n" if self._line else b"")
        if self._data and _is_whole(b"\n".join(self._data)):
            self._after_cr = False  # the body may have ended between CR and LF
            events += self.feed(b"\n")
        return events

    @property
    def pending(self) -> bytes:
        """What has been read of an event that is not complete, for reports (its beginning only)."""
        return b"\n".join([*self._data, bytes(self._line[:_STRAY_BYTES])])[:_STRAY_BYTES]

    # ------------------------------------------------------------ lines

    def _lines(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` ended. A line without its end is collected; it becomes bytes once, when it ends."""
        if self._start or self._after_cr:
            chunk = self._continued(chunk)
        if _CR in chunk:
            self._after_cr = chunk.endswith(b"\r")
            lines = chunk.splitlines()  # on bytes: at LF, CR and CRLF, and nowhere else
            tail = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        elif _LF not in chunk:  # a small read, within a line
            lines, tail = [], chunk
        else:
            lines = chunk.split(b"\n")
            tail = lines.pop()
        if lines and self._line:
            self._line += lines[0]
            lines[0] = bytes(self._line)
            self._line.clear()
        self._line += tail
        return lines

    def _continued(self, chunk: bytes) -> bytes:
        """`chunk` without a byte order mark at the start of the stream, and without the LF of a CRLF that was cut."""
        if self._start:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        return chunk

    def _without_bom(self, chunk: bytes) -> bytes:
        """Holds back up to two bytes until it is clear whether the stream starts with a byte order mark."""
        head = bytes(self._line) + chunk
        self._line.clear()
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._line += head
            return b""
        self._start = False
        return head.removeprefix(_BOM)

    # ------------------------------------------------------------ fields

    def _read(self, lines: list[bytes], events: list[ServerSentEvent]) -> None:
        """Adds to `events` those that `lines` complete. Nearly every event is one line of name and one of data; both are
        handled here, in few steps, and the rest in `_field`. only: the first data line of an event, while it is the only one
        and nothing else has come after it; it does not go through the list."""
        data, names, event, limit, last_id = self._data, self._names, self._event, self.max_event_bytes, self._id
        only: bytes | None = None
        for line in lines:
            if not line:
                if only is not None:
                    events.append(ServerSentEvent(event or "message", only, last_id))
                    only = None
                elif data:
                    events.append(ServerSentEvent(event or "message", b"\n".join(data), last_id))
                    data.clear()
                event = ""
            elif line[:6] == _DATA and only is None and not data:
                only = line[6:]
                if len(only) > limit:
                    data.append(only)
                    raise self._too_large()
            elif line in names:
                event = names[line]
            else:
                self._keep(only, event)
                only = None
                self._field(line)
                event, last_id = self._event, self._id
        self._keep(only, event)
        if len(self._line) > self.max_event_bytes + len(_DATA):  # it may become a line of data, so it gets the room of one
            raise self._too_large()

    def _keep(self, only: bytes | None, event: str) -> None:
        """What has been read of an event that goes on."""
        self._event = event
        if only is not None:
            self._data.append(only)
            self._data_size = len(only)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data_size = self._data_size + 1 + len(value) if self._data else len(value)
            self._data.append(value)
            if self._data_size > self.max_event_bytes:
                raise self._too_large()
        elif len(line) > self.max_event_bytes + len(_DATA):
            raise self._too_large()
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
            if len(self._names) < _NAMES_KEPT and len(line) < 100:
                self._names[line] = self._event
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _LONGEST_RETRY:
            self.retry = int(value)
        elif name not in (b"", b"id", b"retry"):  # an empty name is a comment
            self.stray = (self.stray + line[:_STRAY_BYTES] + b"\n")[:_STRAY_BYTES]

    def _too_large(self) -> EventTooLarge:
        return EventTooLarge(
            f"one server-sent event is larger than {self.max_event_bytes:,} bytes; "
            "raise max_event_bytes if the service really sends such events"
        )


def _is_whole(data: bytes) -> bool:
    """Whether `data` can be the whole payload of an event: the end marker, or JSON to its last bracket."""
    if data.strip() == DONE:
        return True
    try:
        json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True
