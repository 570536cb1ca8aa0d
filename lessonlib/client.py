"""The one place that does network I/O: `Client` and `AsyncClient` send one request and read one answer, whole or streamed.

An answer counts only after three checks, each written once, as a function without I/O:

    1 HTTP status      `http_error`      anything but 2xx is an APIError, redirects included
    2 content type     `media_type`, `not_a_stream`, `whole_answer`   a page is no stream, a stream is no whole answer
    3 protocol's end   the wire's decoder: the end of the HTTP body alone is never success

`Exchange` holds all that is decided about one request and its answer: bytes in, events or a Response or an error out. It
neither reads nor waits, so the two clients are only two short loops around it, one with `await`.

What this file does not do: nothing is retried and nothing is guessed (see retry.py, fallback.py), and no vendor is known by
name (see wire/). Redirects are not followed: the request carries a key, and a POST that becomes a GET helps nobody.

Keys are secrets. They go into one header, over https or to this machine only; an error that quotes the service has them
blotted out; and the HTTP library's exception is kept as the cause without its stack frames, whose variables hold headers.

httpx is imported at first use: docs/decisions/httpx.md. The rules of the checks: docs/decisions/three-checks.md; of the
timeouts: docs/decisions/timeouts.md.
"""

from __future__ import annotations

import asyncio
import inspect
import ipaddress
import logging
import re
import socket
import threading
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar
from urllib.parse import urlsplit

from pydantic_core import from_json

from lessonlib.errors import (
    APIError,
    IncompleteStream,
    InvalidRequest,
    LessonError,
    NotAStream,
    ProtocolError,
    TransportError,
    TransportTimeout,
)
from lessonlib.secrets import MASK, blot_out, is_account_header, is_secret_header, secrets_in
from lessonlib.sse import MAX_EVENT_BYTES, SSEParser
from lessonlib.types import Done, Event, Request, Response
from lessonlib.wire.base import HTTPRequest, WireFormat, read_json, retry_after

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("lessonlib")
log.addHandler(logging.NullHandler())

EVENT_STREAM = "text/event-stream"

MAX_ERROR_BYTES = 64 * 1024
"""What is read of a body that is no answer: error bodies say what they have to say at their beginning."""

MAX_BODY_BYTES = 256 * 1024 * 1024
"""What is read of a whole answer. Generated pictures are large; a body that never ends is larger."""

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
    """Checks 2 and 3 for a whole answer: it must be JSON, all of it, and an answer of this wire format."""
    if kind in (EVENT_STREAM, "text/html"):
        raise _wrong_kind(f"asked for a whole answer (application/json), got {kind}", kind, body)
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
    """The service's error in a body that came with status 200, in a list of one element too (Gemini)."""
    try:
        payload = read_json(body)
        wire.decode(payload[0] if isinstance(payload, list) and payload else payload)
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


# ---------------------------------------------------------------- secrets


def unsendable_header(headers: Mapping[str, str]) -> str | None:
    """The name of a header whose value HTTP cannot carry: a key pasted with a line end or a typographic quote would
    otherwise stand in the HTTP library's own message."""
    return next((name for name, value in headers.items() if not (value.isascii() and value.isprintable())), None)


def check_key_is_safe(url: httpx.URL, names: Sequence[str]) -> None:
    """Raises InvalidRequest when a key would go over plain http to another machine. Takes the headers' names only."""
    if url.scheme == "http" and not is_loopback(url.host) and any(is_secret_header(name) for name in names):
        raise InvalidRequest(
            f"an API key would be sent unencrypted to {url.host}; use https, a tunnel to localhost, "
            'or api_key="" if that server needs no key'
        )


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _MaskedHeaders(logging.Filter):
    """httpcore's debug log never shows a request's headers, but those of the answer: here without cookies and account
    names. They stand in it as the repr of pairs of bytes."""

    _PAIR = re.compile(r"\(b'([^']+)', b('[^']*'|\"[^\"]*\")\)")

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = self._PAIR.sub(self._masked, record.msg)
        return True

    @staticmethod
    def _masked(pair: re.Match[str]) -> str:
        name = pair[1]
        return f"(b'{name}', {MASK})" if is_secret_header(name) or is_account_header(name) else pair[0]


_MASKED_HEADERS = _MaskedHeaders()


# ---------------------------------------------------------------- one exchange, without I/O


class Exchange:
    """One request and its answer. The client tells it what came (`begin`, `feed`) and that no more will come (`close` for
    a stream, `answer` for a whole answer); `finished` says that no more is wanted."""

    def __init__(self, client: _Base[Any, Any], sent: httpx.Request, stream: bool) -> None:
        self.sent = sent
        self.done = False
        self._stream = stream
        self._wire = client.wire
        self._name = client.name
        self._timeouts = client.timeouts
        self._clock = client.clock
        self._started = client.clock()
        self._phase = "total" if _first(self._timeouts.total, self._timeouts.read) else "read"
        self._secrets = secrets_in(sent.headers)
        self._parser = SSEParser(client.max_event_bytes)
        self._decoder = client.wire.decoder()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._is_events: bool | None = False
        self._body: list[bytes] = []
        self._room = 0

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

    def feed(self, chunk: bytes) -> Iterable[Sequence[Event]]:
        """The next bytes of the body: the events that they completed."""
        if self._is_events is None:
            self._is_events = may_be_events(chunk)  # blank bytes before it mean nothing to either reader
        if self._is_events:
            return self._fold(chunk)
        self._body.append(chunk[: self._room + 1])
        self._room -= len(chunk)
        return ()

    def close(self) -> Iterable[Sequence[Event]]:
        """No more will come of the stream. Raises unless it ended as its protocol says."""
        if self._is_events is not False:
            return self._end()
        raise self.failed(self._refusal())

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

    @property
    def finished(self) -> bool:
        """No more bytes are wanted: the protocol's own end has come, or enough of a body that is no answer."""
        return self.done or self._room < 0

    # ------------------------------------------------------------ streams

    def _fold(self, chunk: bytes) -> Iterator[Sequence[Event]]:
        decoder = self._decoder
        try:
            for sse in self._parser.feed(chunk):
                events = decoder.feed(sse)
                if decoder.done:
                    yield self._last(events)
                    return
                if events:
                    yield events
        except LessonError as error:
            self.failed(error)
            raise

    def _end(self) -> Iterator[Sequence[Event]]:
        decoder = self._decoder
        try:
            for sse in self._parser.close():
                events = decoder.feed(sse)
                if decoder.done:
                    yield self._last(events)
                    return
                yield events
            yield self._last(decoder.close(self._parser.stray))
        except LessonError as error:
            self.failed(error)
            raise

    def _last(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events that finish the stream: the last one is Done, with the name of who answered."""
        self.done = True
        named = [Done(self._named(event.response)) if isinstance(event, Done) else event for event in events]
        for event in named:
            if isinstance(event, Done):
                log.debug("%s: stopped with %s (%s)", self._name, event.response.stop, event.response.raw_stop)
        return named

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

    def translate(self, error: BaseException) -> LessonError | None:
        """Our error for one of the HTTP library; None for anything else, which is not ours to catch."""
        import httpx

        if self._status and not self._ok and isinstance(error, httpx.RequestError):
            return self.failed(self._refusal())  # the status says more than the connection that broke after it
        if isinstance(error, httpx.TimeoutException):
            return self.failed(self._timeout(_PHASES.get(type(error).__name__, self._phase)))
        if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL)):
            return self.failed(
                InvalidRequest(f"the request cannot be sent to {self.sent.url.host or self.sent.url}: {error}")
            )
        if isinstance(error, httpx.ConnectError):
            return self.failed(TransportError(_why_no_connection(self.sent.url, error), phase="connect"))
        if isinstance(error, httpx.RequestError):
            what = "the stream was cut off" if self._is_events else "the connection failed"
            return self.failed(TransportError(f"{what} ({self.sent.url.host}): {error or type(error).__name__}"))
        return None

    # ------------------------------------------------------------ time

    def reading(self) -> _Reading:
        """Stands around every wait for the network: looks at the clock before it and translates its errors."""
        return _Reading(self)

    def patience(self) -> float | None:
        """Seconds to wait for the next bytes of the body."""
        pause = self._timeouts.idle if self._is_events is not False else self._timeouts.read
        left = None if self._timeouts.total is None else max(0.001, self._timeouts.total - self._elapsed())
        total_is_first = _first(left, pause)
        self._phase = "total" if total_is_first else "idle" if self._is_events is not False else "read"
        return left if total_is_first else pause

    def check_total(self) -> None:
        """Raises TransportTimeout when the whole exchange has taken too long."""
        total = self._timeouts.total
        if total is not None and self._elapsed() >= total:
            raise self.failed(self._timeout("total"))

    def _elapsed(self) -> float:
        return self._clock() - self._started

    def _timeout(self, phase: str) -> TransportTimeout:
        limit = getattr(self._timeouts, _LIMITS.get(phase, phase))
        words = f"{_TIMEOUTS[phase]} {limit:g} s" if limit is not None else f"{phase} timeout"
        return TransportTimeout(f"{words} ({self.sent.url.host})", phase=phase)

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


_PHASES = {"ConnectTimeout": "connect", "WriteTimeout": "write", "PoolTimeout": "pool"}
_LIMITS = {"pool": "connect", "write": "read"}
_TIMEOUTS = {
    "connect": "no connection within",
    "pool": "no free connection within",
    "write": "the request could not be written within",
    "read": "no answer within",
    "idle": "the stream was silent for",
    "total": "the whole exchange took longer than",
}


def _first(limit: float | None, other: float | None) -> bool:
    """Whether `limit` passes before `other`."""
    return limit is not None and (other is None or limit <= other)


class _Reading:
    """The `with` block of `Exchange.reading`. It is never open while a consumer has control."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __enter__(self) -> None:
        self._exchange.check_total()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            return
        translated = self._exchange.translate(error)
        if translated is not None:
            raise translated from _without_keys(error, self._exchange)


def _without_keys(error: BaseException, exchange: Exchange) -> BaseException:
    """The HTTP library's exception and its causes without their stack frames and headers: the frames' variables hold the
    headers too, and a debugger or a notebook that prints variables would print the key."""
    import httpx

    sent = exchange.sent
    chain: list[BaseException | None] = [error]
    seen: set[int] = set()
    while chain:
        link = chain.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        link.__traceback__ = None
        link.args = exchange.cleaned(link.args)
        if isinstance(link, httpx.RequestError):
            link.request = httpx.Request(sent.method, sent.url)
        chain += [link.__cause__, link.__context__, *getattr(link, "exceptions", ())]
    return error


def _why_no_connection(url: httpx.URL, error: BaseException) -> str:
    """The usual two reasons in plain words: configuration errors, which no retry will mend, should be read at once."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, socket.gaierror):
            return f"the host name {url.host!r} cannot be resolved; is base_url right, and is there a network?"
        if isinstance(link, ConnectionRefusedError):
            return f"{url.netloc.decode('ascii')} refused the connection; is a server running there?"
        group = getattr(link, "exceptions", ())
        link = group[0] if group else link.__cause__ or link.__context__
    return f"no connection to {url.host}: {error or type(error).__name__}"


# ---------------------------------------------------------------- the clients


T = TypeVar("T")  # the colour's transport
H = TypeVar("H")  # the colour's httpx client


class _Base(Generic[T, H]):
    """What the two colours share: the settings, and how a request is written and checked before anything is sent."""

    is_async: ClassVar[bool]
    _method: ClassVar[str]

    def __init__(
        self,
        wire: WireFormat,
        transport: T | None = None,
        *,
        timeout: Timeouts | float | None = DEFAULT_TIMEOUTS,
        http: H | None = None,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
        max_event_bytes: int = MAX_EVENT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._check_colour(transport, http)
        self.wire = wire
        self.timeouts = Timeouts.of(timeout)
        self.name = name or _name_of(wire)
        self.max_event_bytes = max_event_bytes
        self.clock = clock
        self._headers = {key.lower(): value for key, value in (headers or {}).items()}
        self._transport = transport
        self._lock = threading.Lock()
        self._given = http
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.wire!r}, name={self.name!r})"

    def _check_colour(self, transport: Any, http: Any) -> None:
        if transport is not None and http is not None:
            raise TypeError("give a transport or an httpx client of your own, not both: the client brings its transport")
        if transport is not None and not hasattr(transport, self._method):
            raise TypeError(f"{type(self).__name__} needs a transport with {self._method}(), not {type(transport).__name__}")
        if http is not None and inspect.iscoroutinefunction(http.send) != self.is_async:
            raise TypeError(f"{type(self).__name__} needs an httpx client of its own colour, not {type(http).__name__}")

    def _settings(self) -> dict[str, Any]:
        """For an httpx client of ours. Requests to this machine never go through the environment's proxy."""
        for name in ("httpcore.http11", "httpcore.http2"):
            logging.getLogger(name).addFilter(_MASKED_HEADERS)
        local = ("all://localhost", "all://*.localhost", "all://127.0.0.1", "all://[::1]")
        return {"transport": self._transport, "mounts": dict.fromkeys(local)}

    def _exchange(self, http: httpx.Client | httpx.AsyncClient, request: Request, stream: bool) -> Exchange:
        """The exchange for `request`, ready to be sent. Raises InvalidRequest for what must not be sent."""
        import httpx

        encoded = self.wire.encode(request, stream=stream)
        encoded.headers = {"user-agent": "lessonlib", **encoded.headers, **self._headers}
        if (name := unsendable_header(encoded.headers)) is not None:
            raise InvalidRequest(f"header {name!r} has a character that HTTP cannot carry; was more than the key pasted?")
        try:
            url = httpx.URL(encoded.url)
        except httpx.InvalidURL as error:
            raise InvalidRequest(f"base_url {self.wire.base_url!r} is not a URL: {error}") from None
        wait = self.timeouts
        read = wait.total if _first(wait.total, wait.read) else wait.read
        connect = wait.total if _first(wait.total, wait.connect) else wait.connect
        limits = httpx.Timeout(connect=connect, read=read, write=read, pool=connect)
        sent = http.build_request(encoded.method, url, headers=encoded.headers, content=encoded.content, timeout=limits)
        self._check(sent, encoded)
        log.debug("%s: %s %s (%s)", self.name, sent.method, sent.url, "stream" if stream else "whole")
        return Exchange(self, sent, stream)

    def _check(self, sent: httpx.Request, encoded: HTTPRequest) -> None:
        check_key_is_safe(sent.url, list(sent.headers))
        ours = self._transport is None and self._given is None
        if (
            ours
            and _is_default_host(self.wire, sent.url.host)
            and not any(is_secret_header(name) for name in encoded.headers)
        ):
            kind, variables = type(self.wire).__name__, " or ".join(self.wire.key_variables)
            raise InvalidRequest(
                f"no API key for {sent.url.host}: set the environment variable {variables}, or {kind}(api_key=...)"
            )

    def _wait_for_body(self, exchange: Exchange) -> None:
        """From now on the pause between two reads counts. httpx has one read timeout; its transport looks it up when the
        body begins, in the request's `timeout` extension (https://www.python-httpx.org/advanced/extensions/)."""
        limits = exchange.sent.extensions.get("timeout")
        if isinstance(limits, dict):
            limits["read"] = exchange.patience()


def _name_of(wire: WireFormat) -> str:
    """Who answers: the vendor at its own host (or at a stand-in on this machine), else the host that was set."""
    host = urlsplit(wire.base_url).hostname or ""
    return wire.provider if not host or is_loopback(host) or _is_default_host(wire, host) else host


def _is_default_host(wire: WireFormat, host: str) -> bool:
    return host == urlsplit(wire.default_base_url).hostname


class Client(_Base["httpx.BaseTransport", "httpx.Client"]):
    """Asks one service, in one wire format. A provider: `name`, `is_async`, `generate`, `stream`.

        with Client(AnthropicMessages(model="...")) as client:
            response = client.generate(Request(messages=[Message.user("...")]))

    transport: an httpx transport, e.g. `httpx.MockTransport` or `tape.Player`.
    timeout: seconds for the whole exchange, or `Timeouts`; None waits for ever.
    http: an httpx.Client of your own (proxies, certificates). It is never closed here; our timeouts go with each request.
    headers: sent with every request; they replace those of the wire format.
    name: who answers, for `Response.provider`.
    max_event_bytes: the largest event that a stream may have.
    clock: monotonic seconds, for the total timeout.

    Can be used from several threads, and within a running event loop (a notebook), where it blocks as any function does.
    """

    is_async: ClassVar[bool] = False
    _method: ClassVar[str] = "handle_request"
    _http: httpx.Client | None = None

    def generate(self, request: Request) -> Response:
        """Asks, and returns the whole answer. Raises LessonError."""
        exchange, reply = self._send(request, stream=False)
        try:
            chunks = reply.iter_bytes()
            while not exchange.finished and (chunk := self._read(exchange, chunks)) is not None:
                exchange.feed(chunk)
        finally:
            reply.close()
        return exchange.answer()

    def stream(self, request: Request) -> Generator[Event, None, None]:
        """Asks, and yields the answer's events as they come; the last one is Done. Raises LessonError.

        Nothing is sent before the first event is asked for. Closing the iterator closes the connection: `break` does it
        in CPython, `contextlib.closing(client.stream(request))` does it everywhere. At Done it is closed already.
        """
        exchange, reply = self._send(request, stream=True)
        try:
            chunks = reply.iter_bytes()
            while not exchange.finished and (chunk := self._read(exchange, chunks)) is not None:
                for events in exchange.feed(chunk):
                    if exchange.done:
                        reply.close()
                    yield from events
            if not exchange.done:
                for events in exchange.close():
                    yield from events
        finally:
            reply.close()

    def close(self) -> None:
        """Closes the connections. A client of your own stays open."""
        self._closed = True
        if self._http is not None and self._given is None:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # ------------------------------------------------------------ inside

    def _send(self, request: Request, stream: bool) -> tuple[Exchange, httpx.Response]:
        http = self._open()
        exchange = self._exchange(http, request, stream)
        with exchange.reading():
            reply = http.send(exchange.sent, stream=True, follow_redirects=False)
        exchange.begin(reply.status_code, reply.headers)
        self._wait_for_body(exchange)
        return exchange, reply

    def _read(self, exchange: Exchange, chunks: Iterator[bytes]) -> bytes | None:
        with exchange.reading():
            return next(chunks, None)

    def _open(self) -> httpx.Client:
        if self._closed:
            raise RuntimeError("this Client has been closed")
        with self._lock:
            if self._http is None:
                self._http = self._given or self._new()
            return self._http

    def _new(self) -> httpx.Client:
        import httpx

        http = httpx.Client(**self._settings())
        weakref.finalize(self, http.close)  # a client that nobody closed gives its sockets back when it goes
        return http


class AsyncClient(_Base["httpx.AsyncBaseTransport", "httpx.AsyncClient"]):
    """`Client` with `await` and `async for`; the same settings, with httpx.AsyncClient and asynchronous transports.

    async with AsyncClient(AnthropicMessages(model="...")) as client:
        response = await client.generate(Request(messages=[Message.user("...")]))
    """

    is_async: ClassVar[bool] = True
    _method: ClassVar[str] = "handle_async_request"
    _http: httpx.AsyncClient | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def generate(self, request: Request) -> Response:
        """Asks, and returns the whole answer. Raises LessonError."""
        exchange, reply = await self._send(request, stream=False)
        try:
            chunks = reply.aiter_bytes()
            while not exchange.finished and (chunk := await self._read(exchange, chunks)) is not None:
                exchange.feed(chunk)
        finally:
            await reply.aclose()
        return exchange.answer()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Asks, and yields the answer's events as they come; the last one is Done. Raises LessonError.

        Nothing is sent before the first event is asked for. Leaving the loop early does not close an asynchronous
        iterator: write `async with contextlib.aclosing(client.stream(request)) as events`. At Done the connection is
        closed already.
        """
        exchange, reply = await self._send(request, stream=True)
        try:
            chunks = reply.aiter_bytes()
            while not exchange.finished and (chunk := await self._read(exchange, chunks)) is not None:
                for events in exchange.feed(chunk):
                    if exchange.done:
                        await reply.aclose()
                    for event in events:
                        yield event
            if not exchange.done:
                for events in exchange.close():
                    for event in events:
                        yield event
        finally:
            await reply.aclose()

    async def aclose(self) -> None:
        """Closes the connections. A client of your own stays open."""
        self._closed = True
        if self._http is not None and self._given is None:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    # ------------------------------------------------------------ inside

    async def _send(self, request: Request, stream: bool) -> tuple[Exchange, httpx.Response]:
        http = self._open()
        exchange = self._exchange(http, request, stream)
        with exchange.reading():
            reply = await http.send(exchange.sent, stream=True, follow_redirects=False)
        exchange.begin(reply.status_code, reply.headers)
        self._wait_for_body(exchange)
        return exchange, reply

    async def _read(self, exchange: Exchange, chunks: AsyncIterator[bytes]) -> bytes | None:
        with exchange.reading():
            return await anext(chunks, None)

    def _open(self) -> httpx.AsyncClient:
        """Connections belong to the event loop that opened them: when that one is gone (`asyncio.run` a second time), so
        are they, and a new client takes over."""
        if self._closed:
            raise RuntimeError("this AsyncClient has been closed")
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._http is None or (self._loop is not loop and self._loop is not None and self._loop.is_closed()):
                self._http, self._loop = self._new(), loop
            return self._http

    def _new(self) -> httpx.AsyncClient:
        import httpx

        return httpx.AsyncClient(**self._settings())
