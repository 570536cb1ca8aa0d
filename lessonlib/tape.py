"""Tapes: record live exchanges into readable files, and replay them without a network.

    client = Client(wire, transport=tape.Recorder("tapes/weather"))     # asks the service, writes 001/, 002/, ...
    client = Client(wire, transport=tape.Player("tapes/weather"))       # answers from them, byte for byte

One exchange is one folder, which a person can read, compare and write by hand:

    request.json    {"method", "url", "headers", "body"}
    response.json   a whole answer, or stream.sse an event stream, or error.json the body of an HTTP error: the exact bytes
    meta.json       {"status", "headers", "chunks": [[bytes, seconds], ...]}: how many bytes came in each read, and when;
                    "end": "reset" if the connection broke. Without it: status 200, the content type of the kind of file

Both are httpx transports of both colours, so they stand below any client, an official SDK's included, and record what was
really on the wire: decompressed, and before anybody read it.

Nothing that identifies an account is written. Of the headers only those on a list of harmless ones are kept; keys are
blotted out of URLs and bodies, as are the end-user ids that the request named. The ids of answers stay (they are part of
the bytes, and worth nothing without the key). What the conversation itself says is kept: look before you publish a tape.

What this file does not do: it knows no wire format, and plays no simulator (see sim/): a tape answers one question.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

from lessonlib.errors import LessonError
from lessonlib.secrets import MASK, SHORTEST, Secret, blot_out, is_account_header, is_secret_header, secrets_in
from lessonlib.types import JSON

WHOLE, STREAM, ERROR = "response.json", "stream.sse", "error.json"
BODIES = (WHOLE, STREAM, ERROR)

CONTENT_TYPES = {WHOLE: "application/json", STREAM: "text/event-stream", ERROR: "application/json"}

REQUEST_HEADERS = ("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta")
"""Kept of a request: what changes the answer's form. Everything else (keys, organizations, projects) is left out."""

RESPONSE_HEADERS = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")
"""Kept of an answer: what a client acts upon. Request ids, cookies, organizations and limits belong to an account."""

RATE_LIMITS = ("x-ratelimit-", "anthropic-ratelimit-")
"""Headers that say how much of a limit is left: kept too, since a client may slow down by them."""

_ACCOUNT_IDS = re.compile(rb"\b(?:org-|proj_)[A-Za-z0-9]{8,}")

Match = Literal["path", "body", "any"]


class TapeMismatch(LessonError):
    """The request is not the one on the tape, or the tape is over. Nothing was answered; asking again will not help."""


# ---------------------------------------------------------------- one tape


@dataclass(slots=True)
class Tape:
    """One recorded exchange. `bodies`: file name -> bytes; a hand-written folder may hold the same answer whole and
    streamed. `chunks` and `end` belong to the body that was recorded."""

    request: JSON | None = None
    bodies: dict[str, bytes] = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str | None] = field(default_factory=dict)
    chunks: list[tuple[int, float]] = field(default_factory=list)
    end: str = "clean"
    name: str = ""

    @classmethod
    def load(cls, folder: str | Path) -> Tape:
        """The tape in `folder`. Raises FileNotFoundError if there is no body in it."""
        folder = Path(folder)
        meta = _read_json(folder / "meta.json") or {}
        bodies = {name: (folder / name).read_bytes() for name in BODIES if (folder / name).is_file()}
        if not bodies:
            raise FileNotFoundError(f"no tape in {folder}: none of {', '.join(BODIES)} is there")
        return cls(
            request=_read_json(folder / "request.json"),
            bodies=bodies,
            status=meta.get("status", 200),
            headers={name.lower(): value for name, value in (meta.get("headers") or {}).items()},
            chunks=[(size, seconds) for size, seconds in meta.get("chunks") or []],
            end=meta.get("end", "clean"),
            name=str(folder),
        )

    def save(self, folder: str | Path) -> None:
        """Writes the tape into `folder`, which is made."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self.request is not None:
            _write_json(folder / "request.json", self.request)
        for name, body in self.bodies.items():
            (folder / name).write_bytes(body)
        meta: JSON = {"status": self.status, "headers": self.headers, "chunks": self.chunks}
        if self.end != "clean":
            meta["end"] = self.end
        _write_json(folder / "meta.json", meta)

    def kind(self, streamed: bool) -> str | None:
        """The file that answers a request for a stream, or for a whole answer; None if this tape has none.

        An error answers both. A single body of the other kind is the answer if the recorded request asked the same way:
        then the service itself sent what it was not asked for.
        """
        if ERROR in self.bodies:
            return ERROR
        wanted = STREAM if streamed else WHOLE
        if wanted in self.bodies:
            return wanted
        same = self.request is not None and _asks_for_stream(self.request) == streamed
        return next(iter(self.bodies)) if same else None

    def head(self, kind: str) -> dict[str, str]:
        """The headers of the answer. A header that meta.json sets to null is not sent. The content type of a folder that
        holds the answer both ways goes by the file."""
        headers = {"content-type": CONTENT_TYPES[kind], **self.headers}
        if len(self.bodies) > 1:
            headers["content-type"] = CONTENT_TYPES[kind]
        return {name: value for name, value in headers.items() if value is not None}

    def pieces(self, kind: str, chunk_size: int | None = None) -> list[tuple[bytes, float]]:
        """The body in reads, each with the seconds since the request: as recorded, or in pieces of `chunk_size` bytes."""
        body = self.bodies[kind]
        if chunk_size is not None:
            return [(body[start : start + chunk_size], 0.0) for start in range(0, len(body), chunk_size)]
        if sum(size for size, _ in self.chunks) != len(body):  # none recorded, or those of the other body
            return [(body, 0.0)]
        pieces, start = [], 0
        for size, seconds in self.chunks:
            pieces.append((body[start : start + size], seconds))
            start += size
        return pieces


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _write_json(path: Path, value: JSON) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can write
        data = json.dumps(value, indent=2).encode("ascii")
    path.write_bytes(data + b"\n")


def find(path: str | Path) -> list[Path]:
    """The folders of the tapes at `path`: the folder itself, or those in it, by name."""
    path = Path(path)
    if any((path / name).is_file() for name in BODIES):
        return [path]
    return sorted(inner for inner in path.iterdir() if any((inner / name).is_file() for name in BODIES))


# ---------------------------------------------------------------- what a request is


def _described(request: httpx.Request) -> JSON:
    """A request in the form of request.json, nothing left out yet. A body that is not JSON stands as text."""
    content = request.content.decode("utf-8", "replace")
    try:
        body = json.loads(content) if content else None
    except ValueError:
        body = content
    return {"method": request.method, "url": str(request.url), "headers": dict(request.headers), "body": body}


def _asks_for_stream(described: JSON) -> bool:
    """Whether a request asks for a stream, by any of the ways in which services are asked."""
    headers = {name.lower(): value for name, value in (described.get("headers") or {}).items()}
    body = described.get("body")
    return (
        (isinstance(body, dict) and body.get("stream") is True)
        or "streamGenerateContent" in str(described.get("url"))
        or "text/event-stream" in str(headers.get("accept"))
    )


def _difference(recorded: JSON, asked: JSON, match: Match) -> str | None:
    """Where `asked` is another request than `recorded`; None if it is the same as far as `match` looks."""
    if match == "any":
        return None
    for name, ours, theirs in (
        ("method", recorded.get("method", "POST"), asked["method"]),
        ("path", _path(recorded.get("url", "")), _path(asked["url"])),
    ):
        if ours != theirs:
            return f"{name}: recorded {ours}, asked {theirs}"
    if match == "path":
        return None
    return _first_difference(_without_stream(recorded.get("body")), _without_stream(asked["body"]), "body")


def _path(url: str) -> str:
    """The path of a URL; generateContent's two methods, whole and streamed, count as one."""
    return httpx.URL(url).path.replace(":streamGenerateContent", ":generateContent")


def _without_stream(body: Any) -> Any:
    """A body without the fields that only say whether to stream: one tape may hold both answers."""
    return {k: v for k, v in body.items() if k not in ("stream", "stream_options")} if isinstance(body, dict) else body


def _first_difference(recorded: Any, asked: Any, place: str) -> str | None:
    if recorded in (asked, MASK):  # what was masked may be anything
        return None
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for key in dict.fromkeys([*recorded, *asked]):
            if key not in recorded or key not in asked:
                return f"{place}.{key} is only in the {'asked' if key in asked else 'recorded'} request"
            if found := _first_difference(recorded[key], asked[key], f"{place}.{key}"):
                return found
        return None
    if isinstance(recorded, list) and isinstance(asked, list) and len(recorded) == len(asked):
        pairs = enumerate(zip(recorded, asked, strict=True))
        return next((d for n, (a, b) in pairs if (d := _first_difference(a, b, f"{place}[{n}]"))), None)
    return f"{place}: recorded {_short(recorded)}, asked {_short(asked)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:80] + "…"


# ---------------------------------------------------------------- play

Tapes = str | Path | Sequence[str | Path]


class _Reel:
    """Tapes in their order, each played once; a single one is played as often as it is asked for."""

    def __init__(self, tapes: Tapes) -> None:
        folders = [tapes] if isinstance(tapes, (str, Path)) else list(tapes)
        self.tapes = [Tape.load(inner) for folder in folders for inner in find(folder)]
        if not self.tapes:
            raise FileNotFoundError(f"no tape in {', '.join(str(folder) for folder in folders)}")
        self.left = list(self.tapes)

    def take(self, asked: JSON, match: Match) -> Tape:
        """The tape that answers `asked`: the next one, or, if bodies are compared, the next one that fits."""
        if len(self.tapes) == 1:
            self.left = list(self.tapes)
        if not self.left:
            what = f"request {len(self.tapes) + 1} ({asked['method']} {_path(asked['url'])})"
            raise TapeMismatch(f"the tape is over: {len(self.tapes)} exchanges were recorded, {what} was not")
        reasons = []
        for tape in self.left if match == "body" else self.left[:1]:
            reason = None if tape.request is None else _difference(tape.request, asked, match)
            if reason is None:
                self.left.remove(tape)
                return tape
            reasons.append(f"{tape.name}: {reason}")
        looser = {"body": "path", "path": "any"}[match]
        raise TapeMismatch(f"the tape answers another request ({reasons[0]}); match={looser!r} compares less")


class Player(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Answers requests from tapes: `Client(wire, transport=Player("testdata/openai-chat/text"))`, in both colours.

    tapes: a folder with one tape (played again and again), a folder of such folders or a sequence (each played once, in
        order), or a mapping from a part of the URL to any of these, for several services at once.
    match: how much of a request must be as recorded: "path" (method and path), "body" (that and the JSON body; the tapes may
        then be asked for in any order), "any". A folder without request.json answers everything.
    chunk_size: the body in pieces of so many bytes; None gives the reads that were recorded, or all at once.
    timing: wait as the recorded service did. sleep: how (time.sleep and asyncio.sleep unless given).

    asked: the JSON bodies of the requests so far.
    """

    def __init__(
        self,
        tapes: Tapes | Mapping[str, Tapes],
        *,
        match: Match = "path",
        chunk_size: int | None = None,
        timing: bool = False,
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        if chunk_size is not None and chunk_size < 1:
            raise ValueError("chunk_size must be at least 1")
        self.match = match
        self.chunk_size = chunk_size
        self.timing = timing
        self.asked: list[Any] = []
        self._sleep = sleep
        sorted_in = tapes if isinstance(tapes, Mapping) else {"": tapes}
        self._reels = {part: _Reel(inner) for part, inner in sorted_in.items()}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._answer(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self._answer(request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        asked = _described(request)
        reel = next((reel for part, reel in self._reels.items() if part in asked["url"]), None)
        if reel is None:
            raise TapeMismatch(
                f"no tape for {request.url.host}{request.url.path}; there are some for {', '.join(self._reels)}"
            )
        tape = reel.take(asked, self.match)
        kind = tape.kind(_asks_for_stream(asked))
        if kind is None:
            other = "stream" if _asks_for_stream(asked) else "whole answer"
            raise TapeMismatch(f"{tape.name} holds no {other}, only {', '.join(tape.bodies)}")
        self.asked.append(asked["body"])
        stream = _Playing(tape.pieces(kind, self.chunk_size), tape.end, self._sleep, self.timing)
        return httpx.Response(tape.status, headers=tape.head(kind), stream=stream)


@dataclass(slots=True)
class _Playing(httpx.SyncByteStream, httpx.AsyncByteStream):
    pieces: list[tuple[bytes, float]]
    end: str
    sleep: Callable[[float], Any] | None
    timing: bool

    def __iter__(self) -> Iterator[bytes]:
        for piece, wait in self._waits():
            if wait:
                (self.sleep or time.sleep)(wait)
            yield piece
        self._finish()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece, wait in self._waits():
            if wait:
                waiting = (self.sleep or asyncio.sleep)(wait)
                if inspect.isawaitable(waiting):
                    await waiting
            yield piece
        self._finish()

    def _waits(self) -> Iterator[tuple[bytes, float]]:
        before = 0.0
        for piece, seconds in self.pieces:
            yield piece, max(0.0, seconds - before) if self.timing else 0.0
            before = seconds

    def _finish(self) -> None:
        if self.end == "reset":
            raise httpx.ReadError("the connection broke here when the tape was recorded")


# ---------------------------------------------------------------- record

Inner = httpx.BaseTransport | httpx.AsyncBaseTransport | httpx.Client | httpx.AsyncClient


class Recorder(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Passes requests on and writes each exchange into a folder of its own: `Client(wire, transport=Recorder("tapes/a"))`.

    folder: gets 001/, 002/, ... Tapes that are already there are not mixed with new ones: FileExistsError, unless
        `overwrite` is set; then they go when the first new one is written.
    transport: who really asks; an httpx transport, or an httpx client (proxies, certificates). Default: the network.
    keep_headers: names of headers to keep beyond REQUEST_HEADERS and RESPONSE_HEADERS.
    clock: monotonic seconds, for the times of the reads.

    folders: what has been written. An exchange is written when its answer has been read or closed; one that nobody
    answered is not.
    """

    def __init__(
        self,
        folder: str | Path,
        transport: Inner | None = None,
        *,
        keep_headers: Iterable[str] = (),
        overwrite: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = Path(folder)
        self.folders: list[Path] = []
        self.clock = clock
        self._inner = transport
        self._kept = tuple(name.lower() for name in keep_headers)
        self._numbers = itertools.count(1)
        old = find(self.folder) if self.folder.is_dir() else []
        if old and not overwrite:
            raise FileExistsError(f"there are tapes in {self.folder} already; choose another folder or pass overwrite=True")
        self._old = old

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        started = self.clock()
        if self._inner is None:
            self._inner = httpx.HTTPTransport()
        if isinstance(self._inner, httpx.Client):
            response = self._inner.send(request, stream=True, follow_redirects=False)
        elif isinstance(self._inner, httpx.BaseTransport):
            response = self._inner.handle_request(request)
        else:
            raise TypeError(f"a synchronous client needs a synchronous transport, not {type(self._inner).__name__}")
        return self._taped(request, response, started)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        started = self.clock()
        if self._inner is None:
            self._inner = httpx.AsyncHTTPTransport()
        if isinstance(self._inner, httpx.AsyncClient):
            response = await self._inner.send(request, stream=True, follow_redirects=False)
        elif isinstance(self._inner, httpx.AsyncBaseTransport):
            response = await self._inner.handle_async_request(request)
        else:
            raise TypeError(f"an asynchronous client needs an asynchronous transport, not {type(self._inner).__name__}")
        return self._taped(request, response, started)

    def close(self) -> None:
        if isinstance(self._inner, httpx.BaseTransport):
            self._inner.close()

    async def aclose(self) -> None:
        if isinstance(self._inner, httpx.AsyncBaseTransport):
            await self._inner.aclose()

    def _taped(self, request: httpx.Request, response: httpx.Response, started: float) -> httpx.Response:
        exchange = _Recording(self, self.folder / f"{next(self._numbers):03}", request, response, started)
        decoded = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in decoded]
        return httpx.Response(response.status_code, headers=headers, stream=exchange, extensions=response.extensions)

    def write(self, folder: Path, tape: Tape) -> None:
        """Writes one exchange; the first one makes room for it."""
        for old in self._old:
            for name in ("request.json", "meta.json", *BODIES):
                (old / name).unlink(missing_ok=True)
            if old != self.folder and not any(old.iterdir()):
                old.rmdir()
        self._old = []
        tape.save(folder)
        self.folders.append(folder)

    def headers_of(self, headers: Mapping[str, str], listed: Sequence[str]) -> dict[str, str]:
        """Those of `headers` that may be written."""
        lower = {name.lower(): value for name, value in headers.items()}
        return {
            name: value
            for name, value in lower.items()
            if name in listed or name in self._kept or name.startswith(RATE_LIMITS)
        }


class _Recording(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of one answer, on its way to the reader: each read is noted, and at the end the tape is written."""

    def __init__(self, recorder: Recorder, folder: Path, request: httpx.Request, response: httpx.Response, started: float):
        self._recorder = recorder
        self._folder = folder
        self._request = request
        self._response = response
        self._started = started
        self._pieces: list[bytes] = []
        self._chunks: list[tuple[int, float]] = []
        self._end = "clean"
        self._written = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._response.iter_bytes():
                self._note(piece)
                yield piece
        except httpx.TransportError:
            self._end = "reset"
            raise

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.aiter_bytes():
                self._note(piece)
                yield piece
        except httpx.TransportError:
            self._end = "reset"
            raise

    def close(self) -> None:
        self._response.close()
        self._write()

    async def aclose(self) -> None:
        await self._response.aclose()
        self._write()

    def _note(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._chunks.append((len(piece), round(self._recorder.clock() - self._started, 3)))

    def _write(self) -> None:
        if self._written:
            return
        self._written = True
        described = _described(self._request)
        accounts = [*self._request.headers.items(), *self._response.headers.items()]
        secrets = [
            *secrets_in(described["headers"]),
            *_secrets_in_url(self._request.url),
            *_people_and_accounts(described["body"], accounts),
        ]
        body = _without_account_ids(blot_out(b"".join(self._pieces), secrets, same_length=True))
        headers = self._recorder.headers_of(self._response.headers, RESPONSE_HEADERS)
        tape = Tape(
            request={
                "method": described["method"],
                "url": _safe_url(self._request.url),
                "headers": self._recorder.headers_of(described["headers"], REQUEST_HEADERS),
                "body": blot_out(described["body"], secrets),
            },
            bodies={_kind(self._response, described): body},
            status=self._response.status_code,
            headers={**({} if "content-type" in headers else {"content-type": None}), **headers},
            chunks=self._chunks,
            end=self._end,
        )
        self._recorder.write(self._folder, tape)


def _kind(response: httpx.Response, asked: JSON) -> str:
    if not response.is_success:
        return ERROR
    sent = response.headers.get("content-type", "")
    return STREAM if sent.startswith("text/event-stream") or (not sent and _asks_for_stream(asked)) else WHOLE


def _safe_url(url: httpx.URL) -> str:
    """The URL without a password, and without the value of any parameter that may be a key."""
    safe = url.copy_with(username=None, password=None) if url.userinfo else url
    for name in set(url.params):
        if is_secret_header(name):
            safe = safe.copy_set_param(name, MASK)
    return str(safe)


def _secrets_in_url(url: httpx.URL) -> list[Secret]:
    return [*secrets_in(dict(url.params)), *([Secret(url.password)] if url.password else [])]


def _people_and_accounts(body: Any, headers: Iterable[tuple[str, str]]) -> list[Secret]:
    """What the request says about the person for whom it is sent, and which organization and project pay for it: some
    services repeat them in the answer."""
    fields = body if isinstance(body, dict) else {}
    metadata = fields.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    texts = [fields.get("user"), fields.get("safety_identifier"), user]
    texts += [value for name, value in headers if is_account_header(name)]
    return [Secret(text) for text in texts if isinstance(text, str) and len(text) >= SHORTEST]


def _without_account_ids(body: bytes) -> bytes:
    """OpenAI names the organization in the text of its errors."""
    return _ACCOUNT_IDS.sub(lambda found: b"*" * len(found[0]), body)
