"""One request and its answer, without I/O: bytes go in, events or a Response or an error come out.

An answer counts only after three checks, each written once, for both colours of client, whole and streamed:

    1 HTTP status      `http_error`      anything but 2xx is an APIError, redirects included
    2 content type     `media_type`, `not_a_stream`, `whole_answer`   a page is no stream, a stream is no whole answer
    3 protocol's end   the wire's decoder: the end of the HTTP body alone is never success

`Exchange` applies them to what the client tells it. It also keeps the time, by a clock that a test may set, and completes
every error with what only it knows: what had arrived, the hints of the headers, and who was asked; keys are blotted out.

What this file does not do: it reads nothing, waits for nothing, knows no HTTP library (client.py) and retries nothing;
no vendor is known by name (wire/). Rules: docs/decisions/three-checks.md and timeouts.md.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import from_json

from lessonlib.errors import (
    APIError,
    IncompleteStream,
    LessonError,
    NotAStream,
    ProtocolError,
    TransportError,
    TransportTimeout,
)
from lessonlib.secrets import Secret, blot_out
from lessonlib.sse import MAX_EVENT_BYTES, SSEParser
from lessonlib.types import Done, Event, Response
from lessonlib.wire.base import WireFormat, read_json, retry_after

log = logging.getLogger("lessonlib")
log.addHandler(logging.NullHandler())

EVENT_STREAM = "text/event-stream"

MAX_ERROR_BYTES = 64 * 1024
"""What is read of a body that is no answer: error bodies say what they have to say at their beginning."""

MAX_BODY_BYTES = 256 * 1024 * 1024
"""What is read of a whole answer. Generated pictures are large; a body that never ends is larger."""

CODINGS = frozenset({"", "identity", "gzip", "deflate"})
"""Content encodings that are read. One network read (64 KiB) of deflate unpacks to 66 MB at most (1032 times, RFC 1951).
Others, and several one upon the other, know no such bound: a small body could fill the memory."""

TIDY_EVERY = 250
"""Events after which the decoder joins the pieces that it holds."""

_SHOWN = 2000


# ---------------------------------------------------------------- timeouts


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds; None is for ever. Each one raises TransportTimeout with its name as `phase`.

    connect: until the connection stands, TLS included (and for a free one, if all are in use).
    read: until the answer's head has come, and between two reads of a whole answer.
    idle: between two reads of a stream. Comments and pings count: the service is alive.
    total: for the whole exchange, the stream included. It is looked at between reads, so a stream that falls silent can
        pass it by no more than `idle`.
    """

    connect: float | None = 10.0
    read: float | None = 600.0
    idle: float | None = 300.0
    total: float | None = 3600.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and not value > 0:
                raise ValueError(f"the {item.name} timeout must be above 0 seconds, or None for no limit; it is {value!r}")

    @classmethod
    def of(cls, value: Timeouts | float | None) -> Timeouts:
        """From what a person writes: a number bounds the whole exchange, and so each wait in it; None bounds nothing."""
        if isinstance(value, Timeouts):
            return value
        if value is None:
            return cls(None, None, None, None)
        return cls(connect=min(value, cls().connect or value), read=value, idle=value, total=value)


DEFAULT_TIMEOUTS = Timeouts()
"""Models may think for minutes before the first byte, so `read` and `idle` are long; see docs/decisions/timeouts.md."""


# ---------------------------------------------------------------- the three checks


def http_error(wire: WireFormat, status: int, headers: Mapping[str, str], body: bytes) -> APIError:
    """Check 1: the error for a status that is not 2xx."""
    if 300 <= status < 400:
        target = urlsplit(headers.get("location", ""))
        where = f"{target.scheme}://{target.netloc.rpartition('@')[2]}" if target.netloc else "another path"
        return APIError(
            f"redirected to {where}; redirects are not followed, because the request carries the API key. "
            "If that is the right place, set it as base_url",
            status=status,
        )
    return wire.decode_error(status, headers, body)


def media_type(headers: Mapping[str, str]) -> str:
    """Check 2: the content type without its parameters, "" if the service sent none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def may_be_events(head: bytes) -> bool | None:
    """Whether a body without a content type can be an event stream, by its first byte; None while that has not come.

    Some services forget the header on a stream that is fine. JSON and HTML give themselves away at once.
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return None if not start else start not in (b"{", b"[", b"<")


def not_a_stream(wire: WireFormat, kind: str, body: bytes) -> LessonError:
    """Check 2 for a stream that is none: the service's own error if the body holds one, else NotAStream with an excerpt."""
    error = _error_in(wire, body)
    if error is not None:
        return error
    hint = ""
    if body.lstrip()[:5] in (b"data:", b"event"):
        hint = "; the body does look like one, so the service, or a proxy before it, mislabels it"
    return _wrong_kind(f"asked for a stream ({EVENT_STREAM}), got {kind or 'no content type'}{hint}", kind, body)


def whole_answer(wire: WireFormat, kind: str, body: bytes) -> Response:
    """Checks 2 and 3 for a whole answer: it must be JSON, all of it, and an answer of this wire format. JSON is JSON under
    any name: what the content type says only matters if it is none."""
    if not body.strip():
        raise IncompleteStream("the body of the answer is empty")
    try:
        payload = read_json(body)
    except ValueError as error:
        raise _not_json(kind, body, error) from None
    try:
        return wire.decode(payload)
    except LessonError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ProtocolError(f"the answer lacks a field or has one of the wrong type ({error!r})") from error


def _not_json(kind: str, body: bytes, error: ValueError) -> LessonError:
    if "json" not in kind:
        return _wrong_kind(f"asked for a whole answer (application/json), got {kind or 'no content type'}", kind, body)
    try:
        from_json(body, allow_partial=True)
    except ValueError:
        return ProtocolError(f"the answer is not JSON ({error}): {_excerpt(body)}")
    return IncompleteStream("the JSON of the answer is cut off")


def _error_in(wire: WireFormat, body: bytes) -> APIError | None:
    """The service's error in a body that came with status 200."""
    try:
        wire.decode(read_json(body))
    except APIError as error:
        return error
    except (LessonError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return None


def _wrong_kind(message: str, kind: str, body: bytes) -> NotAStream:
    shown = body[:_SHOWN].decode("utf-8", "replace")
    return NotAStream(f"{message}: {_excerpt(body)}", content_type=kind, body=shown)


def _excerpt(body: bytes) -> str:
    text = " ".join(body[:_SHOWN].decode("utf-8", "replace").split())
    return (text if len(text) <= 200 else text[:200] + "…") or "(empty)"


# ---------------------------------------------------------------- the exchange


class Exchange:
    """One request and its answer. The client tells it what came (`begin`, `feed`) until it is `finished`: the protocol's own
    end has come, something went wrong, enough of a body that is no answer has been read, or the body has ended. Then `close`
    judges a stream, and `answer` a whole answer."""

    def __init__(
        self,
        wire: WireFormat,
        *,
        name: str,
        host: str,
        stream: bool,
        secrets: Sequence[Secret] = (),
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        clock: Callable[[], float] = time.monotonic,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self.host = host
        self.done = False
        self.finished = False
        self._wire = wire
        self._name = name
        self._stream = stream
        self._secrets = secrets
        self._timeouts = timeouts
        self._clock = clock
        self._started = clock()
        self._deadline = math.inf if timeouts.total is None else self._started + timeouts.total
        self._phase = "total" if first(timeouts.total, timeouts.read) else "read"
        self._parser = SSEParser(max_event_bytes)
        self._decoder = wire.decoder()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._is_events: bool | None = False
        self._body: list[bytes] = []
        self._room = 0
        self._untidied = 0
        self._last: Sequence[Event] = ()
        self._failure: LessonError | None = None

    # ------------------------------------------------------------ what came

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """The head of the answer."""
        log.debug("%s: HTTP %d after %.2f s", self._name, status, self._clock() - self._started)
        self._status = status
        self._headers = {name.lower(): value for name, value in headers.items()}
        kind = media_type(self._headers)
        if self._stream and self._ok and kind in (EVENT_STREAM, ""):
            self._is_events = True if kind else None
        whole = self._ok and not self._stream
        self._room = MAX_BODY_BYTES if whole else MAX_ERROR_BYTES
        coding = self._headers.get("content-encoding", "").strip().lower()
        if coding not in CODINGS:
            raise self.failed(ProtocolError(f"the body is {coding}-encoded, which was not asked for"))

    def feed(self, chunk: bytes | None) -> list[Event]:
        """The next bytes of the body, None at its end: the events that they completed. Those that end the answer are for
        `close`, and so is an error: what arrived before it is handed out first."""
        if chunk is None:
            self.finished = True
            return [] if self._is_events is False else self._fold(chunk)
        if self._is_events is None:
            self._is_events = may_be_events(chunk)  # blank bytes before it mean nothing to either reader
        if self._is_events:
            return self._fold(chunk)
        self._body.append(chunk[: self._room + 1])
        self._room -= len(chunk)
        self.finished = self._room < 0
        return []

    def close(self) -> Sequence[Event]:
        """The events that end the stream, the last one Done. Raises what went wrong, and unless it ended as its protocol
        says."""
        if self._failure is not None:
            raise self._failure
        if self._is_events is False:
            raise self.failed(self._refusal())
        if not self.done:
            try:
                self._end(self._decoder.close(self._parser.stray))
            except LessonError as error:
                self.failed(error)
                raise
        return self._last

    def answer(self) -> Response:
        """The whole answer. Raises what the three checks find."""
        try:
            if not self._ok:
                raise http_error(self._wire, self._status, self._headers, self._clean_body())
            if self._room < 0:
                raise ProtocolError(f"the answer is larger than {MAX_BODY_BYTES:,} bytes")
            response = self._named(whole_answer(self._wire, media_type(self._headers), b"".join(self._body)))
        except LessonError as error:
            self.failed(error)
            raise
        log.debug("%s: stopped with %s (%s)", self._name, response.stop, response.raw_stop)
        return response

    # ------------------------------------------------------------ streams

    def _fold(self, chunk: bytes | None) -> list[Event]:
        """One list for each read: handing each event out through every layer costs more than decoding it."""
        decoder = self._decoder
        events: list[Event] = []
        try:
            batch = self._parser.close() if chunk is None else self._parser.feed(chunk)
            self._untidied += len(batch)
            if self._untidied > TIDY_EVERY:
                self._untidied = 0
                decoder.tidy()
            for sse in batch:
                found = decoder.feed(sse)
                if decoder.done:
                    self._end(found)
                    break
                events += found
        except LessonError as error:
            self._failure = self.failed(error)
            self.finished = True
        return events

    def _end(self, events: Sequence[Event]) -> None:
        """The events that finish the stream: the last one is Done, with the name of who answered."""
        self.done = self.finished = True
        self._last = [Done(self._named(event.response)) if isinstance(event, Done) else event for event in events]
        for event in self._last:
            if isinstance(event, Done):
                log.debug("%s: stopped with %s (%s)", self._name, event.response.stop, event.response.raw_stop)

    def _refusal(self) -> LessonError:
        if not self._ok:
            return http_error(self._wire, self._status, self._headers, self._clean_body())
        return not_a_stream(self._wire, media_type(self._headers), self._clean_body())

    # ------------------------------------------------------------ what went wrong

    def failed(self, error: LessonError) -> LessonError:
        """`error` with what only the exchange knows: what had arrived, the head's hints; and without the key."""
        if error.partial is None and self._is_events:
            error.partial = self._decoder.partial()
        if error.partial is not None:
            error.partial = self._named(error.partial)
        if isinstance(error, APIError):
            error.request_id = error.request_id or self._headers.get("request-id") or self._headers.get("x-request-id")
            error.retry_after = error.retry_after if error.retry_after is not None else retry_after(self._headers)
        for name, value in vars(error).items():
            if isinstance(value, (str, dict, list)):
                setattr(error, name, self.cleaned(value))
        error.args = self.cleaned(error.args)
        log.debug("%s: failed with %s", self._name, type(error).__name__)
        return error

    def broken(self, message: str, *, phase: str = "read") -> LessonError:
        """The error for a connection that failed: what the status said counts for more than how its body ended."""
        if self._status and not self._ok:
            return self.failed(self._refusal())
        return self.failed(TransportError(message, phase=phase))

    def timed_out(self, phase: str | None = None) -> LessonError:
        """The error for a timeout; without a phase, the one that was being waited for."""
        if self._status and not self._ok:
            return self.failed(self._refusal())
        phase = phase or self._phase
        limit = getattr(self._timeouts, _LIMITS.get(phase, phase))
        words = f"{_WORDS[phase]} {limit:g} s" if limit is not None else f"{phase} timeout"
        return self.failed(TransportTimeout(f"{words} ({self.host})", phase=phase))

    # ------------------------------------------------------------ time

    def patience(self) -> float | None:
        """Seconds to wait for the next bytes of the body."""
        pause = self._timeouts.idle if self._is_events is not False else self._timeouts.read
        left = None if self._timeouts.total is None else max(0.001, self._deadline - self._clock())
        total_is_first = first(left, pause)
        self._phase = "total" if total_is_first else "idle" if self._is_events is not False else "read"
        return left if total_is_first else pause

    def check_total(self) -> None:
        """Raises TransportTimeout when the whole exchange has taken too long."""
        if self._clock() >= self._deadline:
            raise self.timed_out("total")

    # ------------------------------------------------------------ inside

    @property
    def _ok(self) -> bool:
        return 200 <= self._status < 300

    def cleaned(self, value: Any) -> Any:
        """A text, bytes or JSON without the secrets of the request."""
        try:
            return blot_out(value, self._secrets)
        except RecursionError:  # JSON that is nested to the limit of the reader
            return "(nested too deeply to be shown)"

    def _clean_body(self) -> bytes:
        body: bytes = blot_out(b"".join(self._body), self._secrets)
        return body

    def _named(self, response: Response) -> Response:
        return response if response.provider == self._name else response.model_copy(update={"provider": self._name})


_LIMITS = {"pool": "connect", "write": "read"}
_WORDS = {
    "connect": "no connection within",
    "pool": "no free connection within",
    "write": "the request could not be written within",
    "read": "no answer within",
    "idle": "the stream was silent for",
    "total": "the whole exchange took longer than",
}


def first(limit: float | None, other: float | None) -> bool:
    """Whether `limit` passes before `other`; None never passes."""
    return limit is not None and (other is None or limit <= other)
