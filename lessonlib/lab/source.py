"""Where a stream or an answer that a lesson looks at comes from: a fixture, a file, a tape, bytes, or a list of events.

    stream_of("anthropic-messages/tool_call")     the bytes of that fixture's stream
    body_of("openai-responses/tool_call")         the JSON of that fixture's whole answer
    read_stream(anything)                         a Stream: its bytes, its events with their places, its wire format

A fixture is named by wire format and case, as the folders in `testdata/` are. It is looked for in the working folder and
above it, so that a copy of one's own wins, then in the repository, then in what the package brings along.

What this file does not do: it decodes nothing (stepper.py), and judges nothing (`lesson explain`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lessonlib.explain import classify, explain
from lessonlib.explain.capture import Capture, read, unwrap
from lessonlib.explain.reading import Frame, Framing, line_frames, list_frames, sse_frames
from lessonlib.explain.report import KINDS, Report
from lessonlib.sse import ServerSentEvent
from lessonlib.wire.base import compact, read_json

Source = str | Path | bytes | Capture | Sequence[Any]
"""What can be looked at: a fixture's name, a path, bytes, a capture, or a list of events."""

STREAM_KINDS = ("stream", "json-lines", "json-list")


@dataclass(frozen=True, slots=True)
class Stream:
    """One streamed answer. frames: (first byte, byte after the last, event); -1 where the place is not known. stray: lines
    between the events that are no field of the standard; a service may have put its error there."""

    name: str
    wire: str | None
    body: bytes
    frames: tuple[Frame, ...]
    report: Report
    stray: bytes = b""


def read_stream(source: Source, wire: str | None = None, name: str | None = None) -> Stream:
    """The stream in `source`. Raises ValueError if it is a whole answer, a page or nothing, FileNotFoundError if there is
    no such file or fixture. wire: the wire format, where the bytes do not say it."""
    capture = _capture(source, name)
    kind, payload = classify(capture.body)
    if kind not in STREAM_KINDS:
        raise ValueError(f"{capture.name} is no stream, but {KINDS[kind]}")
    report = explain(capture, wire=wire, status=200, each=True, max_rows=None)
    frames: Iterable[Frame]
    framing = Framing()
    if kind == "stream":
        frames = sse_frames(capture.body, framing)
    else:
        frames = line_frames(capture.body) if kind == "json-lines" else list_frames(payload, capture.body)
    return Stream(capture.name, report.wire, capture.body, tuple(frames), report, framing.stray_text)


def stream_of(source: str | Path) -> bytes:
    """The bytes of a fixture's or a file's stream, as they came."""
    return _capture(source, None).body


def body_of(source: str | Path) -> Any:
    """The parsed whole answer of a fixture or a tape folder, or of a JSON file; of an error fixture the error's body."""
    path = locate(source)
    if path.is_dir():
        path = next((path / name for name in ("response.json", "error.json") if (path / name).is_file()), path)
    return read_json(path.read_bytes())


def _capture(source: Source, name: str | None) -> Capture:
    if isinstance(source, Capture):
        return source
    if isinstance(source, bytes):
        return unwrap(source, name or f"{len(source):,} bytes")[0]
    if isinstance(source, (str, Path)):
        path = locate(source)
        shown = name or _shown(source, path)
        return next(iter(read(path / "stream.sse", shown) if (path / "stream.sse").is_file() else read(path, shown)))
    return Capture(name or "a list of events", b"".join(_as_bytes(entry) for entry in source))


def _as_bytes(event: Any) -> bytes:
    """One event of a list as bytes: a ServerSentEvent, a payload, or the bytes of an event's data."""
    if isinstance(event, ServerSentEvent):
        head = b"" if event.event == "message" else f"event: {event.event}\n".encode()
        data = event.data
    else:
        head, data = b"", event if isinstance(event, bytes) else compact(event).encode("utf-8", "replace")
    return head + b"".join(b"data: " + line + b"\n" for line in data.split(b"\n")) + b"\n"


# ---------------------------------------------------------------- where files are


def locate(source: str | Path) -> Path:
    """The file or folder that is meant: a path, or a fixture's name. Raises FileNotFoundError."""
    path = Path(source)
    for place in (path, *(root / path for root in _roots())):
        if place.exists():
            return place
    raise FileNotFoundError(f"there is no file and no fixture {str(source)!r}; fixtures are named like 'openai-chat/text'")


def _roots() -> list[Path]:
    here = Path.cwd()
    package = Path(__file__).parents[1]
    return [*(folder / "testdata" for folder in (here, *here.parents[:3], package.parent)), package / "course" / "testdata"]


def _shown(source: str | Path, path: Path) -> str:
    """The name as it was given, but never an absolute path: a stored output must be the same on every machine."""
    return path.name if Path(source).is_absolute() else Path(source).as_posix()


__all__ = ["Capture", "Source", "Stream", "body_of", "locate", "read_stream", "stream_of"]
