"""The one place that does network I/O: `Client` and `AsyncClient` send one request and read one answer, whole or streamed.

All that is decided about an exchange is decided in exchange.py; here are only two short loops around it, one with `await`,
what must hold before anything is sent, and the HTTP library's exceptions in our words.

Keys are secrets. They go over https, or to this machine, or nowhere; never to where a redirect points. The HTTP library's
exception stays as the cause of ours, without its stack frames, whose variables hold the headers.

What this file does not do: nothing is retried (retry.py), no redirect is followed, no vendor is known by name (wire/).
httpx is imported at first use; why httpx, and how it is used: docs/decisions/httpx.md. Where keys may go:
docs/decisions/keys.md.
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
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

from lessonlib.errors import InvalidRequest, LessonError
from lessonlib.exchange import DEFAULT_TIMEOUTS, Exchange, Timeouts, first
from lessonlib.secrets import MASK, Secret, blot_out, is_account_header, is_secret_header, secrets_in
from lessonlib.sse import MAX_EVENT_BYTES
from lessonlib.types import Event, Request, Response
from lessonlib.wire.base import HTTPRequest, WireFormat

if TYPE_CHECKING:
    import httpx

__all__ = ["AsyncClient", "Client", "Timeouts"]

log = logging.getLogger("lessonlib")

MAX_CONNECTIONS, KEPT_CONNECTIONS = 1000, 100
"""Streams at the same time, and connections kept open for the next ones. A stream holds its connection for minutes, so
httpx's own 100 would let the 101st fail with a timeout; the official SDKs take the same numbers."""


# ---------------------------------------------------------------- before anything is sent

OURS = {"user-agent": "lessonlib", "accept-encoding": "gzip, deflate"}
"""Headers of every request. Only encodings that grow a read by a known factor are asked for (exchange.CODINGS)."""


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


_SECRETS_KEPT = 64


class _MaskedHeaders(logging.Filter):
    """httpcore's debug log never shows a request's headers, but those of the answer: here without cookies and account
    names. They stand in it as the repr of pairs of bytes."""

    _PAIR = re.compile(r"\(b'([^']+)', b('[^']*'|\"[^\"]*\")\)")

    def __init__(self) -> None:
        super().__init__()
        self._sent: deque[Secret] = deque(maxlen=_SECRETS_KEPT)

    def note(self, secrets: Sequence[Secret]) -> None:
        """Keys that have been sent: an answer may repeat them in a header of any name."""
        known = {secret.reveal() for secret in self._sent}
        self._sent += [secret for secret in secrets if secret.reveal() not in known]

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = blot_out(self._PAIR.sub(self._masked, record.msg), list(self._sent))
        return True

    @staticmethod
    def _masked(pair: re.Match[str]) -> str:
        name = pair[1]
        return f"(b'{name}', {MASK})" if is_secret_header(name) or is_account_header(name) else pair[0]


_MASKED_HEADERS = _MaskedHeaders()


# ---------------------------------------------------------------- the HTTP library's errors

_PHASES = {"ConnectTimeout": "connect", "WriteTimeout": "write", "PoolTimeout": "pool"}


class _Waiting:
    """What surrounds every wait for the network: a look at the clock before it, and our error for the HTTP library's. Never
    around a consumer's code. Not a `with` block, because it costs too much where a read brings 64 bytes."""

    __slots__ = ("_exchange", "_sent", "begin")

    def __init__(self, exchange: Exchange, sent: httpx.Request) -> None:
        self.begin = exchange.check_total
        self._exchange = exchange
        self._sent = sent

    def failed(self, error: Exception) -> NoReturn:
        """Raises our error for one of the HTTP library, and anything else as it is."""
        translated = _translate(error, self._exchange, self._sent.url)
        if translated is None:
            raise error
        raise translated from _without_keys(error, self._exchange, self._sent)


def _translate(error: BaseException, exchange: Exchange, url: httpx.URL) -> LessonError | None:
    """Our error for one of the HTTP library; None for anything else, which is not ours to catch."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return exchange.timed_out(_PHASES.get(type(error).__name__))
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL)):
        return exchange.failed(InvalidRequest(f"the request cannot be sent to {url.host or url}: {error}"))
    if isinstance(error, httpx.ConnectError):
        return exchange.broken(_why_no_connection(url, error), phase="connect")
    if isinstance(error, httpx.RequestError):
        return exchange.broken(f"the connection to {url.host} broke off: {error or type(error).__name__}")
    return None


def _without_keys(error: BaseException, exchange: Exchange, sent: httpx.Request) -> BaseException:
    """The HTTP library's exception and its causes without their stack frames and headers: the frames' variables hold the
    headers too, and a debugger or a notebook that prints variables would print the key."""
    import httpx

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
        import httpx

        local = ("all://localhost", "all://*.localhost", "all://127.0.0.1", "all://[::1]")
        limits = httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=KEPT_CONNECTIONS)
        return {"transport": self._transport, "mounts": dict.fromkeys(local), "limits": limits}

    def _prepare(
        self, http: httpx.Client | httpx.AsyncClient, request: Request, stream: bool
    ) -> tuple[httpx.Request, Exchange]:
        """`request` as it will be sent, and the exchange that begins with it. Raises InvalidRequest for what must not be
        sent."""
        import httpx

        encoded = self.wire.encode(request, stream=stream)
        encoded.headers = {**OURS, **encoded.headers, **self._headers}
        if (name := unsendable_header(encoded.headers)) is not None:
            raise InvalidRequest(f"header {name!r} has a character that HTTP cannot carry; was more than the key pasted?")
        try:
            url = httpx.URL(encoded.url)
        except httpx.InvalidURL as error:
            raise InvalidRequest(f"base_url {self.wire.base_url!r} is not a URL: {error}") from None
        wait = self.timeouts
        read = wait.total if first(wait.total, wait.read) else wait.read
        connect = wait.total if first(wait.total, wait.connect) else wait.connect
        limits = httpx.Timeout(connect=connect, read=read, write=read, pool=connect)
        sent = http.build_request(encoded.method, url, headers=encoded.headers, content=encoded.content, timeout=limits)
        self._check(sent, encoded)
        log.debug("%s: %s %s (%s)", self.name, sent.method, sent.url, "stream" if stream else "whole")
        secrets = secrets_in(sent.headers)
        _MASKED_HEADERS.note(secrets)
        exchange = Exchange(
            self.wire,
            name=self.name,
            host=sent.url.host,
            stream=stream,
            secrets=secrets,
            timeouts=self.timeouts,
            clock=self.clock,
            max_event_bytes=self.max_event_bytes,
        )
        return sent, exchange

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

    @staticmethod
    def _wait_for_body(sent: httpx.Request, exchange: Exchange) -> None:
        """From now on the pause between two reads counts. httpx has one read timeout; its transport looks it up when the
        body begins, in the request's `timeout` extension (https://www.python-httpx.org/advanced/extensions/)."""
        limits = sent.extensions.get("timeout")
        if isinstance(limits, dict):
            limits["read"] = exchange.patience()


def _is_plain(reply: httpx.Response) -> bool:
    """Whether the body can be read as it comes. httpx takes each read through its decoders even where nothing is encoded,
    a fifth of what the client does for a read. (A body that a stand-in gave whole has been consumed.)"""
    return "content-encoding" not in reply.headers and not reply.is_stream_consumed


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
        exchange, waiting, reply = self._send(request, stream=False)
        try:
            chunks = reply.iter_bytes()
            while not exchange.finished:
                exchange.feed(self._read(waiting, chunks))
        finally:
            reply.close()
        return exchange.answer()

    def stream(self, request: Request) -> Generator[Event, None, None]:
        """Asks, and yields the answer's events as they come; the last one is Done. Raises LessonError.

        Nothing is sent before the first event is asked for. Closing the iterator closes the connection: `break` does it
        in CPython, `contextlib.closing(client.stream(request))` does it everywhere. At Done it is closed already.
        """
        exchange, waiting, reply = self._send(request, stream=True)
        try:
            chunks = reply.iter_raw() if _is_plain(reply) else reply.iter_bytes()
            while not exchange.finished:
                yield from exchange.feed(self._read(waiting, chunks))
            last = exchange.close()
            reply.close()
            yield from last
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

    def _send(self, request: Request, stream: bool) -> tuple[Exchange, _Waiting, httpx.Response]:
        http = self._open()
        sent, exchange = self._prepare(http, request, stream)
        waiting = _Waiting(exchange, sent)
        waiting.begin()
        try:
            reply = http.send(sent, stream=True, follow_redirects=False)
        except Exception as error:
            waiting.failed(error)
        try:
            exchange.begin(reply.status_code, reply.headers)
        except LessonError:
            reply.close()
            raise
        self._wait_for_body(sent, exchange)
        return exchange, waiting, reply

    def _read(self, waiting: _Waiting, chunks: Iterator[bytes]) -> bytes | None:
        waiting.begin()
        try:
            return next(chunks, None)
        except Exception as error:
            waiting.failed(error)

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
        exchange, waiting, reply = await self._send(request, stream=False)
        try:
            chunks = reply.aiter_bytes()
            while not exchange.finished:
                exchange.feed(await self._read(waiting, chunks))
        finally:
            await reply.aclose()
        return exchange.answer()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Asks, and yields the answer's events as they come; the last one is Done. Raises LessonError.

        Nothing is sent before the first event is asked for. Leaving the loop early does not close an asynchronous
        iterator: write `async with contextlib.aclosing(client.stream(request)) as events`. At Done the connection is
        closed already.
        """
        exchange, waiting, reply = await self._send(request, stream=True)
        try:
            chunks = reply.aiter_raw() if _is_plain(reply) else reply.aiter_bytes()
            while not exchange.finished:
                for event in exchange.feed(await self._read(waiting, chunks)):
                    yield event
            last = exchange.close()
            await reply.aclose()
            for event in last:
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

    async def _send(self, request: Request, stream: bool) -> tuple[Exchange, _Waiting, httpx.Response]:
        http = self._open()
        sent, exchange = self._prepare(http, request, stream)
        waiting = _Waiting(exchange, sent)
        waiting.begin()
        try:
            reply = await http.send(sent, stream=True, follow_redirects=False)
        except Exception as error:
            waiting.failed(error)
        try:
            exchange.begin(reply.status_code, reply.headers)
        except LessonError:
            await reply.aclose()
            raise
        self._wait_for_body(sent, exchange)
        return exchange, waiting, reply

    async def _read(self, waiting: _Waiting, chunks: AsyncIterator[bytes]) -> bytes | None:
        waiting.begin()
        try:
            return await anext(chunks, None)
        except Exception as error:
            waiting.failed(error)

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
