"""A capture: the bytes of one HTTP answer that somebody saved, and what is known around them.

People save answers in many ways, and what stands around the body says things that the body cannot: the status, the content
type, the address that was asked, when each piece came. `read` takes a path and `unwrap` takes bytes; both give captures with
the body alone, and note what had to be taken off:

    curl -i             status line and headers before the body (several blocks after a redirect or a proxy)
    curl --raw -i       the chunked transfer coding as well
    a browser's HAR     JSON with one entry per exchange; those with an address of one of the wire formats are taken
    a tape folder       request.json, response.json / stream.sse / error.json, meta.json
    gzip or deflate     saved without --compressed
    UTF-16              what `>` writes in Windows PowerShell 5

What this file does not do: it does not look at what the body means (reading.py does), and it never fails on bytes: what
cannot be unwrapped stays as it is. Only a path that cannot be read raises OSError.

Rules: RFC 9112 (HTTP/1.1 messages, chunked coding), http://www.softwareishard.com/blog/har-12-spec/ (HAR 1.2).
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lessonlib.explain.report import Finding
from lessonlib.wire import WIRES, WireFormat
from lessonlib.wire.base import as_dict, as_list, as_text, read_json

BODY_NAMES = ("response.json", "stream.sse", "error.json")
"""The names that a body has in a tape folder."""

MAX_INFLATED = 1 << 28
"""A compressed body is unpacked up to 256 MiB; a bomb is not."""


@dataclass(slots=True)
class Capture:
    """One answer. Everything but `body` may be unknown.

    name: the path as given ("-" for standard input, "x.har#3" for the third entry of a HAR file).
    status: the HTTP status, None if the capture does not say. headers: lower-case names.
    url, asked_stream: of the request. chunks: (bytes, seconds since the request) of each network read.
    offset: where `body` begins in the file, so that reported positions can be looked up there.
    broken: how the connection broke before the body was over, "" if it did not, or if nobody knows.
    notes: what had to be done to get at the body.
    """

    name: str
    body: bytes
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""
    asked_stream: bool | None = None
    chunks: list[tuple[int, float]] = field(default_factory=list)
    offset: int = 0
    broken: str = ""
    notes: list[Finding] = field(default_factory=list)

    @property
    def content_type(self) -> str:
        """The media type without its parameters, "" if unknown."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


# ---------------------------------------------------------------- from a path


def read(path: Path, name: str | None = None) -> list[Capture]:
    """The captures in a file, a tape folder, or a folder of tape folders. Raises OSError if it cannot be read, also for a
    folder that holds no tape."""
    if path.is_dir():
        bodies = [file for file in sorted(path.rglob("*")) if file.name in BODY_NAMES and file.is_file()]
        if not bodies:
            raise FileNotFoundError(f"the folder holds no {', '.join(BODY_NAMES)}")
        return [capture for file in bodies for capture in read(file)]
    captures = unwrap(path.read_bytes(), name if name is not None else str(path))
    if path.name in BODY_NAMES:
        for capture in captures:
            _add_tape(capture, path)
    return captures


def _add_tape(capture: Capture, path: Path) -> None:
    """What the files beside a tape's body say about it."""
    request, meta = _object(path.with_name("request.json")), _object(path.with_name("meta.json"))
    capture.url = as_text(request.get("url"))
    if sum(path.with_name(name).is_file() for name in BODY_NAMES) == 1:  # else the request is that of either body
        capture.asked_stream = _asked_stream(capture.url, request.get("body"))
    if capture.status is None:
        capture.status = _status(meta.get("status"))
    told = {str(key).lower(): str(value) for key, value in as_dict(meta.get("headers")).items()}
    capture.headers = {**told, **capture.headers}
    if meta.get("end") == "reset":
        capture.broken = "the connection broke when the tape was recorded"
    chunks = [(pair[0], pair[1]) for pair in as_list(meta.get("chunks")) if _is_chunk(pair)]
    if sum(size for size, _ in chunks) == len(capture.body):
        capture.chunks = chunks


def _object(path: Path) -> dict[str, Any]:
    try:
        return as_dict(read_json(path.read_bytes()))
    except (OSError, ValueError):
        return {}


def _is_chunk(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], int)
        and pair[0] >= 0
        and isinstance(pair[1], (int, float))
    )


def _status(value: Any) -> int | None:
    return value if isinstance(value, int) and 100 <= value <= 599 else None


# ---------------------------------------------------------------- from bytes


def unwrap(data: bytes, name: str = "-") -> list[Capture]:
    """The captures in the bytes of one file: one, or several if it is a HAR file."""
    capture = Capture(name, data)
    _take_off_utf16(capture)
    _take_off_headers(capture)
    _check_length(capture)
    _take_off_chunked(capture)
    _decompress(capture)
    if b'"log"' in capture.body[:4096]:
        entries = list(_har(capture))
        if entries:
            return entries
    return [capture]


def _take_off_utf16(capture: Capture) -> None:
    for mark, codec in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if capture.body.startswith(mark):
            capture.body = capture.body[2:].decode(codec, "replace").encode("utf-8", "replace")
            capture.notes.append(
                Finding("utf-16", "note", "the file was UTF-16 (Windows PowerShell's `>`); it was read as UTF-8")
            )


_STATUS_LINE = re.compile(rb"\s*HTTP/\d(?:\.\d)? (\d{3})[^\r\n]*\r?\n?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*)\r?\n?")
_BLANK = re.compile(rb"\r?\n")


def _take_off_headers(capture: Capture) -> None:
    """The status line and headers that `curl -i` prints before the body; of several blocks the last one counts."""
    place = 0
    while match := _STATUS_LINE.match(capture.body, place):
        capture.status, capture.headers = _status(int(match[1])), {}
        place = match.end()
        while header := _HEADER.match(capture.body, place):
            capture.headers[header[1].decode("ascii").lower()] = header[2].decode("latin-1").strip()
            place = header.end()
        if blank := _BLANK.match(capture.body, place):
            place = blank.end()
    if place:
        capture.body, capture.offset = capture.body[place:], place


def _check_length(capture: Capture) -> None:
    told = capture.headers.get("content-length", "")
    if told.isdecimal() and len(told) < 20 and "content-encoding" not in capture.headers and len(capture.body) < int(told):
        capture.broken = f"the body is {int(told) - len(capture.body):,} bytes shorter than its content-length says"


_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[^\r\n]*)?\r\n")


def _take_off_chunked(capture: Capture) -> None:
    """The chunked transfer coding, if it was saved with it (`curl --raw`). RFC 9112 section 7.1."""
    if "chunked" not in capture.headers.get("transfer-encoding", "").lower() or not _CHUNK_LINE.match(capture.body):
        return
    pieces: list[bytes] = []
    place, size = 0, -1
    while size and (match := _CHUNK_LINE.match(capture.body, place)):
        size = int(match[1], 16)
        pieces.append(capture.body[match.end() : match.end() + size])
        place = match.end() + size + 2
    if size:
        capture.broken = "the chunked body ends before its last, empty chunk"
    capture.body, capture.offset = b"".join(pieces), 0


def _decompress(capture: Capture) -> None:
    coding = capture.headers.get("content-encoding", "").lower()
    if capture.body.startswith(b"\x1f\x8b"):
        coding = "gzip"
    elif coding not in ("deflate", "gzip"):
        return
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        body = unpacker.decompress(capture.body, MAX_INFLATED)
    except zlib.error:
        return  # curl --compressed has unpacked it already, or it is something else
    capture.body, capture.offset = body, 0
    if not unpacker.eof and len(body) < MAX_INFLATED:
        capture.broken = capture.broken or f"the {coding} data ends in the middle"
    capture.notes.append(
        Finding("compressed", "note", f"the body was {coding}-compressed; it was unpacked to {len(body):,} bytes")
    )


# ---------------------------------------------------------------- HAR


def _har(capture: Capture) -> Iterator[Capture]:
    """The exchanges in a browser's recording that went to an address of one of the wire formats."""
    try:
        document = read_json(capture.body)
    except ValueError:
        return
    for number, entry in enumerate(as_list(as_dict(as_dict(document).get("log")).get("entries")), 1):
        request, response = as_dict(as_dict(entry).get("request")), as_dict(as_dict(entry).get("response"))
        url = as_text(request.get("url"))
        if wire_of_url(url) is None:
            continue
        headers = {
            as_text(as_dict(pair).get("name")).lower(): as_text(as_dict(pair).get("value"))
            for pair in as_list(response.get("headers"))
        }
        yield Capture(
            f"{capture.name}#{number}",
            _har_body(as_dict(response.get("content"))),
            status=_status(response.get("status")),
            headers=headers,
            url=url,
            asked_stream=_asked_stream(url, as_dict(request.get("postData")).get("text")),
            notes=[Finding("har", "note", f"entry {number} of a HAR file")],
        )


def _har_body(content: dict[str, Any]) -> bytes:
    text = as_text(content.get("text"))
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=False)
        except (binascii.Error, ValueError):
            pass
    return text.encode("utf-8", "replace")


# ---------------------------------------------------------------- the request


def wire_of_url(url: str) -> str | None:
    """The wire format that lives at an address, by the last word of its path; None if none does."""
    return _tails().get(_tail(url)) if url else None


def _tail(url: str) -> str:
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return path.rstrip("/").rpartition("/")[2].rpartition(":")[2]


@cache
def _tails() -> dict[str, str]:
    return {_tail(reader(wire).path("model", stream)): name for name, wire in WIRES.items() for stream in (False, True)}


def reader(wire: type[WireFormat]) -> WireFormat:
    """The wire format for reading only: whatever the environment says about keys and addresses does not matter."""
    return wire("model", api_key="", base_url=wire.default_base_url)


def _asked_stream(url: str, body: Any) -> bool | None:
    """Whether the request asked for a stream, None if that is not known."""
    if isinstance(body, str):
        try:
            body = read_json(body)
        except ValueError:
            return None
    if not isinstance(body, dict):
        return None
    return body.get("stream") is True or _tail(url).startswith("stream")
