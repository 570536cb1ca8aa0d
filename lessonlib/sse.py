"""Server-sent events: bytes in, events out. Incremental, by the WHATWG rules, and bounded in size.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

The rules that clients get wrong, each with a test of its own: a line ends with LF, CR or CRLF and nothing else (U+2028 in a
JSON string is not a line end); a CRLF may be cut between two reads, and so may a character, so lines are cut on *bytes* and
never decoded piecemeal; a byte order mark at the start is skipped; at most one space after the colon is dropped; several
`data` lines are joined by LF; an event without data is not dispatched; a line that starts with a colon is a comment.

One deviation, on purpose: the standard drops an event that is still open when the body ends. Some servers forget the last
blank line, so `close()` delivers such an event if its data is whole JSON or `[DONE]`; half a JSON is never delivered.

What this file does not do: no JSON (data stays bytes, each wire's decoder parses it once), no network, no reconnecting, and
no end-of-stream judgement: whether an answer is complete is for the decoder to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_core import from_json

from lessonlib.errors import EventTooLarge

MAX_EVENT_BYTES = 10 * 1024 * 1024
"""Default limit of one event: enough for a base64 picture, small enough to stop a stream that never sends a line end."""

DONE = b"[DONE]"
_BOM = b"\xef\xbb\xbf"
_STRAY_BYTES = 4096


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
        self._pieces: list[bytes] = []  # the line that has begun but not ended
        self._pieces_size = 0
        self._data: list[bytes] = []  # the data lines of the event that has begun but not ended
        self._data_size = 0
        self._event = ""
        self._id = ""
        self._after_cr = False  # the last read ended with CR: a LF at the start of the next one belongs to it
        self._start = True  # still waiting for the first three bytes, which may be a byte order mark

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that `chunk` completed. Raises EventTooLarge when one event passes the limit."""
        lines = self._lines(chunk)
        events: list[ServerSentEvent] = []
        for line in lines:
            if line[:5] == b"data:":  # nearly every line; the rest is rare
                value = line[6:] if line[5:6] == b" " else line[5:]
                self._data.append(value)
                self._data_size += len(value) + 1
                if self._data_size > self.max_event_bytes:
                    raise self._too_large()
            elif line:
                self._field(line)
            elif self._data:
                events.append(self._dispatch())
            else:
                self._event = ""
        return events

    def close(self) -> list[ServerSentEvent]:
        """The event that was still open at the clean end of the body, if its data is whole (the deviation above)."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        if self._start and rest.startswith(_BOM):
            rest = rest[3:]
        events = self.feed(rest + b"\n") if rest else []
        if self._data and _is_whole(b"\n".join(self._data)):
            events.append(self._dispatch())
        return events

    @property
    def pending(self) -> bytes:
        """What has been read of an event that is not complete, for reports (its beginning only)."""
        return b"\n".join([*self._data, *self._pieces])[:_STRAY_BYTES]

    # ------------------------------------------------------------ lines

    def _lines(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` ended. A line without its end is kept in pieces, joined only once it ends."""
        if self._start:
            chunk = self._skip_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_cr = chunk[-1:] == b"\r"
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        tail = lines.pop()
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._pieces_size = 0
        if tail:
            self._pieces.append(tail)
            self._pieces_size += len(tail)
            if self._pieces_size + (self._data_size if not lines else 0) > self.max_event_bytes:
                raise self._too_large()
        return lines

    def _skip_bom(self, chunk: bytes) -> bytes:
        """Holds back up to two bytes until it is clear whether the stream starts with a byte order mark."""
        head = b"".join([*self._pieces, chunk])
        self._pieces.clear()
        self._pieces_size = 0
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._pieces.append(head)
            self._pieces_size = len(head)
            return b""
        self._start = False
        return head[3:] if head.startswith(_BOM) else head

    # ------------------------------------------------------------ fields

    def _field(self, line: bytes) -> None:
        """A line that is neither blank nor the common `data:` form."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"data":  # the bare word, without a colon: an empty data line
            self._data.append(b"")
            self._data_size += 1
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value.isdigit():
                self.retry = int(value)
        elif name and len(self.stray) < _STRAY_BYTES:  # an empty name is a comment
            self.stray += line[:_STRAY_BYTES] + b"\n"

    def _dispatch(self) -> ServerSentEvent:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        event = ServerSentEvent(self._event or "message", data, self._id)
        self._data.clear()
        self._data_size = 0
        self._event = ""
        return event

    def _too_large(self) -> EventTooLarge:
        return EventTooLarge(
            f"one server-sent event is larger than {self.max_event_bytes:,} bytes; "
            "raise max_event_bytes if the service really sends such events"
        )


def _is_whole(data: bytes) -> bool:
    if data.strip() == DONE:
        return True
    try:
        from_json(data)
    except ValueError:
        return False
    return True
