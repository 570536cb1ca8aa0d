"""What the wire formats share: the two protocols, reading JSON, errors and waits, and the frame of a stream decoder.

A wire format is four answers about one vendor's HTTP API:

    encode(request, stream=...)  -> HTTPRequest     how to ask
    decode(payload)              -> Response        what a whole answer says
    decode_error(status, ...)    -> APIError        what a refusal to answer says
    decoder()                    -> StreamDecoder   what a streamed answer says, event by event

and a stream decoder is a state machine that does no I/O and knows no time: `feed(event)`, `close()`, `done`, `result()`.
Its machine is a table (`TABLE`: state -> event -> next state) with one small method per event; the diagrams of the course
are drawn from the same table. A stream *folds into the JSON of the whole answer*, and the same code decodes both.

Two rules about the unknown: an unknown event is ignored, an unknown part is kept opaque. An event that the table knows, in
a state where it must not come, is a ProtocolError. The end of the HTTP body is never success (`close`).

What this file does not do: it knows no vendor. Sources of the shared rules: docs/wire/*.md.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic_core import from_json

from lessonlib.errors import APIError, IncompleteStream, InvalidRequest, LessonError, ProtocolError
from lessonlib.secrets import MASK, Secret, is_secret_header
from lessonlib.sse import DONE, ServerSentEvent
from lessonlib.types import JSON, Event, Part, Request, Response, StopReason, ToolCall, Usage

# ---------------------------------------------------------------- JSON


def read_json(data: bytes | str, *, constants: bool = True) -> Any:
    """The JSON value in `data`. The fast reader first; the standard library where it refuses (lone surrogates, bytes that
    are not UTF-8, which the SSE rules tell us to replace). Raises ValueError if it is not JSON. constants: whether NaN and
    Infinity, which JSON does not have but some services write, are taken."""
    try:
        return from_json(data, cache_strings="keys", allow_inf_nan=constants)
    except (ValueError, TypeError):  # TypeError: a `str` with a lone surrogate
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        try:
            return json.loads(text, parse_constant=None if constants else _no_constant)
        except RecursionError:
            raise ValueError("JSON nested too deeply") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def compact(value: Any) -> str:
    """JSON text without spaces, non-ASCII as it is: the form in which arguments are sent and compared."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_args(text: str) -> tuple[JSON | None, str | None]:
    """A call's arguments: (object, None), or (None, why it cannot be used).

    Blank means `{}`: that is how a tool without parameters arrives. Anything but an object is refused, and nothing is
    ever repaired here: a repaired call is a call that the model did not make.
    """
    if not text.strip():
        return {}, None
    try:
        value = read_json(text, constants=False)
    except ValueError as error:
        return None, f"the arguments are not valid JSON: {error}"
    if not isinstance(value, dict):
        return None, f"the arguments are JSON, but not an object: {_excerpt(text)}"
    return value, None


def function_call(call_id: str, name: str, arguments: str | JSON, *, wire: str, raw: JSON | None) -> ToolCall:
    """A ToolCall from the arguments as the wire gave them: a JSON text, or already an object."""
    if not name:
        text = arguments if isinstance(arguments, str) else compact(arguments)
        return ToolCall(call_id=call_id, name="", args_error=NO_NAME, raw_args=text, wire=wire, raw=raw)
    if isinstance(arguments, str):
        args, problem = parse_args(arguments)
        return ToolCall(call_id=call_id, name=name, args=args, raw_args=arguments, args_error=problem, wire=wire, raw=raw)
    if isinstance(arguments, dict):
        return ToolCall(call_id=call_id, name=name, args=arguments, wire=wire, raw=raw)
    problem = f"the arguments are neither a JSON text nor an object: {_excerpt(compact(arguments))}"
    return ToolCall(call_id=call_id, name=name, args_error=problem, raw_args=compact(arguments), wire=wire, raw=raw)


CUT = "the answer was cut before this call was whole"
"""Why a call from a cut or unfinished stream cannot be run."""

NO_NAME = "the call has no name"
"""Why a call that does not say which tool it wants cannot be run."""


def cut_call(call_id: str, name: str, raw_args: str, *, wire: str, why: str = CUT) -> ToolCall:
    """A call that never became whole: shown, never run, never replayed (no `raw`)."""
    return ToolCall(call_id=call_id, name=name, raw_args=raw_args, args_error=why, wire=wire)


def _excerpt(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def as_dict(value: Any) -> JSON:
    """`value` if it is an object, else an empty one: vendors send null where they mean nothing."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """`value` if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def no_text(value: Any) -> ProtocolError:
    """The error for a piece of text that is none: shown as it came, it would break whoever joins or prints the pieces."""
    return ProtocolError(f"a piece of text has the wrong type, {type(value).__name__}: {_excerpt(repr(value))}")


def said(value: Any) -> str:
    """A text of the answer: "" where there is none. Anything else raises ProtocolError: it would be lost without a word."""
    if value is None or isinstance(value, str):
        return value or ""
    raise no_text(value)


def listed(value: Any, thing: str) -> list[Any]:
    """A list in the answer, empty where there is none. Raises ProtocolError for anything else."""
    if value is None or isinstance(value, list):
        return value or []
    raise ProtocolError(f"{thing} must be a list, not {_excerpt(repr(value))}")


def an_object(value: Any, thing: str) -> JSON:
    """An object in the answer, empty where there is none. Raises ProtocolError for anything else."""
    if value is None or isinstance(value, dict):
        return value or {}
    raise ProtocolError(f"{thing} must be an object, not {_excerpt(repr(value))}")


def as_count(value: Any) -> int | None:
    """A token count, or None where the vendor reported none. Some gateways write whole numbers as 12.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def fitting_name(name: str) -> str:
    """The name of a call as OpenAI's APIs take it back: models call tools that nobody has, `browser.tabs.open` or nothing at
    all, and a history with such a name is refused in every later request."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def total_count(needed: Any, *further: Any) -> int | None:
    """The sum of counts that a vendor reports apart. Further ones may be left out or null, which is none; one that is no
    count at all makes the sum unknown, because a sum without it would be a wrong number."""
    counts = [as_count(needed), *(as_count(value) for value in further if value is not None)]
    return None if None in counts else sum(count for count in counts if count is not None)


def as_place(value: Any) -> int:
    """The number that tells the parts of a stream apart. Raises ProtocolError for anything but a whole number: the parts
    could no longer be put in order."""
    if type(value) is not int:
        raise ProtocolError(f"the place of a part must be a whole number, not {_excerpt(repr(value))}")
    return value


def named_kind(value: Any, thing: str) -> str:
    """The type of an event, a delta or a piece. A new one is none of our business, but one that is no word, or is missing,
    leaves open what the thing is: ProtocolError."""
    if isinstance(value, str) and value:
        return value
    raise ProtocolError(f"{thing} has no type" if value is None else f"the type of {thing} is {_excerpt(repr(value))}")


def merge_extra(body: JSON, extra: Mapping[str, Any]) -> JSON:
    """`extra` laid over `body`: objects are merged deep, everything else is replaced."""
    merged = dict(body)
    for key, value in extra.items():
        old = merged.get(key)
        merged[key] = merge_extra(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


# ---------------------------------------------------------------- requests


@dataclass(slots=True)
class HTTPRequest:
    """An encoded request: what would be sent, nothing is sent yet. The repr masks keys."""

    method: str
    url: str
    headers: dict[str, str]
    body: JSON

    @property
    def content(self) -> bytes:
        """The body as the bytes that go over the wire. A lone surrogate has no UTF-8 form, so it goes as an escape. Raises
        InvalidRequest for what JSON cannot hold (NaN, an object of a Python class in `extra`)."""
        try:
            return json.dumps(self.body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
        except UnicodeEncodeError:
            return json.dumps(self.body, separators=(",", ":"), allow_nan=False).encode("ascii")
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidRequest(f"the request body is not JSON: {error}") from error

    def safe_headers(self) -> dict[str, str]:
        """The headers with every secret masked, for showing."""
        return {name: MASK if is_secret_header(name) else value for name, value in self.headers.items()}

    def __repr__(self) -> str:
        return f"HTTPRequest({self.method} {self.url}, headers={self.safe_headers()}, body={_excerpt(repr(self.body), 200)})"


def first_env(*names: str) -> str | None:
    """The first environment variable among `names` that is set and not blank."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            return value
    return None


def _plain_url(base_url: str) -> str:
    """The base URL without its last slash. A query or a password in it would be shown by every repr and log line, and the
    path could not be appended to it. The message does not repeat the URL."""
    parts = urlsplit(base_url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest("base_url must begin with https:// (or http:// for a server on this machine) and name a host")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidRequest("base_url is scheme, host and path only; a key goes into api_key=, anything else into headers=")
    return base_url.strip().rstrip("/")


def _wire_names(kind: type[WireFormat]) -> set[str]:
    """The names of all wire formats there are, a user's own included."""
    names = {kind.name} if "name" in kind.__dict__ else set()
    return names.union(*map(_wire_names, kind.__subclasses__()))


class WireFormat:
    """One vendor's HTTP API. Subclasses write `path`, `auth`, `body`, `decode`, `error_details` and `decoder`.

    model: the default model; a request may name another. api_key, base_url: default to the vendor's environment
    variables. headers: sent in addition, e.g. a beta switch. A missing key is not an error here: local servers need none.
    """

    name: ClassVar[str]
    provider: ClassVar[str]
    key_variables: ClassVar[tuple[str, ...]]
    base_url_variables: ClassVar[tuple[str, ...]]
    default_base_url: ClassVar[str]

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        key = api_key if api_key is not None else first_env(*self.key_variables)
        self.model = model
        self.base_url = _plain_url(base_url or first_env(*self.base_url_variables) or self.default_base_url)
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}  # so that they replace ours
        self._key = Secret(key.strip()) if key and key.strip() else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, base_url={self.base_url!r})"

    @property
    def has_key(self) -> bool:
        """Whether an API key is set."""
        return self._key is not None

    # ------------------------------------------------------------ encode

    def encode(self, request: Request, *, stream: bool = False) -> HTTPRequest:
        """The HTTP request for `request`. Raises InvalidRequest when it cannot be written in this wire format."""
        model = request.model or self.model
        if not model:
            raise InvalidRequest(f'no model: {type(self).__name__}(model="...") or Request(model="...")')
        if unknown := request.extra.keys() - _wire_names(WireFormat):
            raise InvalidRequest(f"extra is keyed by wire format ({self.name!r}, ...), and {min(unknown)!r} is none")
        body = merge_extra(self._written(request, model, stream), request.extra.get(self.name, {}))
        headers = {"content-type": "application/json", **self.auth(), **self.headers}
        if stream:
            headers.setdefault("accept", "text/event-stream")
        return HTTPRequest("POST", self.base_url + self.path(model, stream), headers, body)

    def _written(self, request: Request, model: str, stream: bool) -> JSON:
        """The body. Parts go back by their own JSON, and what was stored may be any: then the message says so."""
        try:
            return self.body(request, model, stream)
        except LessonError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise InvalidRequest(
                f"the conversation cannot be written for {self.name}: the JSON (raw) of a part lacks a field or has one of "
                f"the wrong type ({error!r})"
            ) from error

    def path(self, model: str, stream: bool) -> str:
        """The path below the base URL."""
        raise NotImplementedError

    def auth(self) -> dict[str, str]:
        """The headers that carry the key and the API version."""
        raise NotImplementedError

    def body(self, request: Request, model: str, stream: bool) -> JSON:
        """The request body, before `extra`."""
        raise NotImplementedError

    # ------------------------------------------------------------ decode

    def decode(self, payload: Any) -> Response:
        """The answer in a whole response body. Raises APIError when a 200 carries an error, ProtocolError when the body
        is no answer of this wire format at all."""
        raise NotImplementedError

    def decoder(self) -> StreamDecoder:
        """A new state machine for one stream."""
        raise NotImplementedError

    @classmethod
    def recognises(cls, payload: Any) -> int:
        """How sure it is that `payload` (a whole body, an error body, or the data of one stream event) is of this wire
        format: 2 certain, 1 possible, 0 no. For captures that do not say what they are."""
        raise NotImplementedError

    # ------------------------------------------------------------ errors

    def decode_error(
        self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"", *, partial: Response | None = None
    ) -> APIError:
        """The error in the body of an HTTP error response. Never raises: a body that is not JSON is quoted."""
        try:
            payload = read_json(body) if body.strip() else None
        except ValueError:
            payload = None
        if isinstance(payload, (dict, list)):
            return self.api_error(status, payload, headers or {}, partial)
        text = " ".join(body[:2000].decode("utf-8", "replace").split())
        message = text[:300] or f"HTTP {status} without a body"
        return self.api_error(status, {"error": {"message": message}}, headers or {}, partial)

    def api_error(
        self, status: int, payload: Any, headers: Mapping[str, str] | None = None, partial: Response | None = None
    ) -> APIError:
        """The APIError for an error object; `status` is 200 for one inside a stream."""
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        details = self.error_details(status, payload)
        retryable = details.retryable if (told := should_retry(lower)) is None else told
        wait = retry_after(lower)
        return APIError(
            details.message or f"HTTP {status}",
            status=status,
            type=details.type,
            code=details.code,
            refusal=details.refusal,
            body=payload,
            request_id=lower.get("request-id") or lower.get("x-request-id") or details.request_id,
            retryable=retryable,
            retry_after=wait if wait is not None else details.retry_after,
            partial=_not_runnable(partial) if partial is not None else None,
        )

    def error_details(self, status: int, payload: Any) -> ErrorDetails:
        """The vendor's words in an error object, and whether a retry can help, by its own table."""
        raise NotImplementedError


# ---------------------------------------------------------------- errors and waits


@dataclass(slots=True)
class ErrorDetails:
    """What an error body says. `type` and `code` are the vendor's words, None where it gave none."""

    message: str = ""
    type: str | None = None
    code: str | None = None
    retryable: bool = False
    refusal: bool = False
    retry_after: float | None = None
    request_id: str | None = None


def retryable_status(status: int) -> bool:
    """Whether an HTTP status alone says that a retry can help: 408, 409 (a lock), 429 and 5xx except 501."""
    return status in (408, 409, 429) or (status >= 500 and status != 501)


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """`x-should-retry`, which OpenAI and Anthropic send and their SDKs obey; None if it is not there."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds to wait by `retry-after-ms` (milliseconds) or `retry-after` (seconds or an HTTP date), lower-case names.

    A negative, empty, infinite or unreadable value counts as absent (RFC 9110 10.2.3). A date in the past means 0.
    """
    milliseconds = _finite(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _finite(text)
    if seconds is not None:
        return seconds
    from email.utils import parsedate_to_datetime  # rare, and slow to import

    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, when.timestamp() - now())


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    if "_" in text:  # which Python's numbers may have
        return None
    return value if math.isfinite(value) and value >= 0 else None


def error_object(payload: Any) -> JSON:
    """The object that describes an error, from the shapes that services send: `{"error": {...}}`, `{"error": "text"}`,
    `{"detail": ...}`, `{"message": ...}`, and any of them in a list of one element."""
    if isinstance(payload, list) and payload:
        payload = payload[0]
    outer = as_dict(payload)
    inner = outer.get("error")
    if isinstance(inner, dict):
        return inner
    if isinstance(inner, str):
        return {**outer, "message": inner}
    detail = outer.get("detail")
    if detail and "message" not in outer:
        return {**outer, "message": detail if isinstance(detail, str) else compact(detail)}
    return outer


def rpc_details(error: JSON, kind: str = "") -> list[JSON]:
    """The entries of google.rpc's `details`, or those of one kind. Google's services send them over every wire format."""
    entries = [as_dict(entry) for entry in as_list(error.get("details"))]
    return [entry for entry in entries if not kind or as_text(entry.get("@type")).endswith(f"google.rpc.{kind}")]


def is_daily_quota(error: JSON) -> bool:
    """Whether a quota per day is spent: named in the violations of QuotaFailure, or in the metadata of ErrorInfo. It stays
    so until the day is over, whatever wait the error names."""
    details = rpc_details(error)
    violations = [as_dict(violation) for detail in details for violation in as_list(detail.get("violations"))]
    quotas = [violation.get("quotaId") or violation.get("quota_id") for violation in violations]
    quotas += [as_dict(detail.get("metadata")).get("quota_limit") for detail in details]
    return any("PerDay" in as_text(quota) for quota in quotas)


def rpc_retry_delay(error: JSON) -> float | None:
    """Seconds by google.rpc's RetryInfo: `"retryDelay": "58s"`, with a fraction if need be."""
    for entry in rpc_details(error, "RetryInfo"):
        delay = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)s", as_text(entry.get("retryDelay") or entry.get("retry_delay")))
        if delay:
            return float(delay[1])
    return None


def word(value: Any) -> str | None:
    """A vendor's code as text: some send numbers."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


# ---------------------------------------------------------------- streams

Table = Mapping[str, Mapping[str, str]]
"""state -> event -> next state."""

Handler = Callable[[Any, Any], Sequence[Event]]

Entry = tuple[Handler | None, str | None]
"""What an event does in a state: its method, if it has one, and the next state, if it is another."""

IGNORED: Entry = (None, None)

NOTHING: tuple[Event, ...] = ()


@dataclass(slots=True)
class Slot:
    """A part that is being built: its JSON so far and the pieces that are still apart (joined once, at the end)."""

    index: int
    raw: JSON
    pieces: list[str] = field(default_factory=list)
    closed: bool = False

    def text(self) -> str:
        return "".join(self.pieces)


def join_middle(pieces: list[str]) -> int:
    """Joins the pieces but for the first and the last, if that is worth it, and says how many there are fewer now. A piece
    of five letters takes sixty bytes. What was joined before is copied only when enough have come to make up for it."""
    before = len(pieces)
    if before > 250 and before * 128 > len(pieces[1]):
        pieces[1:-1] = ["".join(pieces[1:-1])]
    return before - len(pieces)


class StreamDecoder:
    """The frame of a state machine over a stream's events.

    Subclasses give `kind(payload, sse)`, `build(finished)`, one method `_on_<event>` for each event that does more than move
    the state (dots in the event's name become underscores), and `TABLE`. Its first state is where a stream starts; reaching
    "DONE" means that the protocol's own end has come. After that everything is ignored, unless "DONE" has a row of its own:
    then the events which that row leaves out are protocol errors. `kind` is asked only where `TYPE` does not settle it.
    """

    TABLE: ClassVar[Table]
    TYPE: ClassVar[str] = ""  # the field in which nearly every event says what it is, if the wire has one
    NAMES_EVENTS: ClassVar[bool] = False  # the wire repeats the type of an event as its SSE name
    _rows: ClassVar[dict[str, dict[str, Entry]]]
    _known: ClassVar[frozenset[str]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "TABLE" not in cls.__dict__:
            return
        cls._rows = {
            state: {
                event: (getattr(cls, method_name(event), None), after if after != state else None)
                for event, after in row.items()
            }
            for state, row in cls.TABLE.items()
        }
        cls._known = frozenset(event for row in cls.TABLE.values() for event in row)

    def __init__(self, wire: WireFormat) -> None:
        self.wire = wire
        self.state = next(iter(self.TABLE))
        self.done = False  # the protocol's own end has come; nothing after it is read
        self.ignored: dict[str, int] = {}  # events that the table does not know, and how often they came: for reports
        self._row: Mapping[str, Entry] | None = self._rows[self.state]
        self._response: Response | None = None

    def feed(self, sse: ServerSentEvent) -> Sequence[Event]:
        """The unified events of one server-sent event. Raises APIError for an error inside the stream, ProtocolError for
        a contradiction; both carry what had arrived in `partial`. After an error the machine stays in "FAILED"."""
        row = self._row
        if row is None:
            return NOTHING
        data = sse.data
        try:
            try:
                payload = from_json(data, cache_strings="keys")
            except ValueError:  # rare: the end marker, nothing at all, or what only the slower reader takes
                if data.startswith(DONE):
                    return NOTHING if self.done else self.on_done_marker()
                if data.strip()[:1] in (b"", b":"):  # ":": a comment to which a gateway has put a `data:`
                    return NOTHING
                payload = self._payload(sse)
            name = self.TYPE
            try:  # nearly every event is of a kind that the state expects
                handler, after = row[payload[name] if name else self.kind(payload, sse)]
            except (KeyError, TypeError):
                handler, after = self._entry(row, payload, sse)
            events = handler(self, payload) if handler is not None else NOTHING
            if after is not None:
                self._move(after)
            return events
        except LessonError as error:
            raise self._failed(error) from error.__cause__
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise self._failed(
                ProtocolError(f"an event lacks a field or has one of the wrong type ({error!r}): {self._shown(data)}")
            ) from error

    def close(self, stray: bytes = b"") -> Sequence[Event]:
        """Call once at the clean end of the body. Raises IncompleteStream unless the protocol's own end has come.

        stray: `SSEParser.stray`, the lines that were no field of the standard. If they hold an error object (a service that
        forgot the `data:` before it), that error is raised: it says why the stream ended.
        """
        if self.state in ("DONE", "FAILED"):
            return NOTHING
        error = self._stray_error(stray)
        raise self._failed(error or IncompleteStream(f"the stream ended in state {self.state}, before {self.end_words()}"))

    def result(self) -> Response:
        """The finished answer. Raises IncompleteStream if the stream is not done."""
        if self._response is None or not self.done:
            raise IncompleteStream(f"no result: the stream is in state {self.state}", partial=self.partial())
        return self._response

    def partial(self) -> Response | None:
        """What has arrived so far. None of its calls can be run, not even a whole one: the model was not finished, and what
        it would have called after it, or instead, is not known. None if nothing has arrived."""
        try:
            return _not_runnable(self.build(finished=False))
        except (LessonError, ValueError, KeyError, TypeError, AttributeError, IndexError):
            return None

    # ------------------------------------------------------------ for subclasses

    def kind(self, payload: Any, sse: ServerSentEvent) -> str:
        """The name of the event."""
        raise NotImplementedError

    def build(self, *, finished: bool) -> Response:
        """The answer from what has been folded so far."""
        raise NotImplementedError

    def growing(self) -> Iterable[list[str]]:
        """The lists of pieces that are still growing."""
        return ()

    def tidy(self) -> None:
        """Joins what has piled up. Who feeds a long answer calls it now and then (exchange.py: after 250 events), so
        that the answer takes no more than a few times its own room while it comes."""
        for pieces in self.growing():
            join_middle(pieces)

    def on_done_marker(self) -> Sequence[Event]:
        """The `[DONE]` line: no success by itself (the formats where it is one say so)."""
        raise IncompleteStream(f"[DONE] came before {self.end_words()}")

    def end_words(self) -> str:
        """The protocol's own end, for messages."""
        return "the protocol's own end"

    # ------------------------------------------------------------ inside

    def _payload(self, sse: ServerSentEvent) -> Any:
        """The payload that the fast reader refused. A gateway that breaks down may send plain words as an `error` event."""
        try:
            return read_json(sse.data)
        except ValueError as error:
            if sse.event == "error":
                raise self.wire.api_error(200, {"error": {"message": self._shown(sse.data)}}) from error
            raise ProtocolError(f"a data line is not JSON ({error}): {self._shown(sse.data)}") from error

    def _move(self, state: str) -> None:
        self.state = state
        self.done = state == "DONE"
        self._row = self._rows.get(state)

    def _entry(self, row: Mapping[str, Entry], payload: Any, sse: ServerSentEvent) -> Entry:
        """What an event does that does not say plainly what it is, or has no place in this state."""
        kind = self.kind(payload, sse)
        return row[kind] if kind in row else self._unexpected(kind, sse.event)

    def _unexpected(self, kind: str, name: str) -> Entry:
        """An event that has no place in this state. `name`: what the SSE line called it."""
        if kind in self._known:
            raise ProtocolError(f"event {kind!r} must not come in state {self.state}")
        named_kind(kind, "an event")
        if self.NAMES_EVENTS and name in self._known:
            raise ProtocolError(f"an event is called {name!r}, but its data calls it {kind!r}")
        self.ignored[kind] = self.ignored.get(kind, 0) + 1
        return IGNORED

    def _stray_error(self, stray: bytes) -> APIError | None:
        """The error that stands bare between the events: over all stray lines (pretty-printed) or on one of them."""
        for text in (stray, *stray.splitlines()):
            try:
                payload = read_json(text)
            except ValueError:
                continue
            outer = payload[0] if isinstance(payload, list) and payload else payload
            if as_dict(outer).get("error"):
                return self.wire.api_error(200, payload)
        return None

    def _failed(self, error: LessonError) -> LessonError:
        if error.partial is None:
            error.partial = self.partial()
        self._move("FAILED")
        return error

    @staticmethod
    def _shown(data: bytes) -> str:
        return _excerpt(data[:200].decode("utf-8", "replace"))


def _not_runnable(response: Response) -> Response:
    """The answer with every call made unusable; what the model had written of it stays in `raw_args`."""
    if not response.tool_calls:
        return response
    cut = {"args": None, "args_error": CUT, "raw": None}
    parts = [part.model_copy(update=cut) if isinstance(part, ToolCall) and part.args is not None else part
             for part in response.message.parts]  # fmt: skip
    return response.model_copy(update={"message": response.message.model_copy(update={"parts": parts})})


def method_name(event: str) -> str:
    """The method that handles an event: `response.output_item.done` -> `_on_response_output_item_done`."""
    return "_on_" + event.replace(".", "_")


__all__ = [
    "CUT",
    "NOTHING",
    "NO_NAME",
    "ErrorDetails",
    "HTTPRequest",
    "Part",
    "Secret",
    "Slot",
    "StopReason",
    "StreamDecoder",
    "Table",
    "Usage",
    "WireFormat",
    "an_object",
    "as_count",
    "as_dict",
    "as_list",
    "as_place",
    "as_text",
    "compact",
    "cut_call",
    "error_object",
    "first_env",
    "fitting_name",
    "function_call",
    "is_daily_quota",
    "is_secret_header",
    "join_middle",
    "listed",
    "merge_extra",
    "method_name",
    "named_kind",
    "no_text",
    "parse_args",
    "read_json",
    "retry_after",
    "retryable_status",
    "rpc_details",
    "rpc_retry_delay",
    "said",
    "should_retry",
    "total_count",
    "word",
]
