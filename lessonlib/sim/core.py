"""The simulator: one HTTP request in, status, headers and timed pieces of a body out. No sockets, no threads, no clock.

    request -> route -> early faults -> JSON -> rules -> Ask -> script or model -> cap -> usage -> frontend -> bytes

It is strict where the vendors are strict (rules/), and deterministic: the same requests in the same order get the same
bytes. Two mounts carry it: `transport.py` (in process, httpx) and `server.py` (a real server on the loopback address).

State, all of it: the number of requests, the prompt cache, and answers that were stored because the request asked for it.

What this file does not do: it knows no vendor's JSON (`front/`), decides nothing about the answer (`model.py`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lessonlib import capabilities
from lessonlib.sim import model
from lessonlib.sim.ask import Ask
from lessonlib.sim.faults import Fault
from lessonlib.sim.pieces import head
from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.script import Call, Refuse, Say, Segment, Think, Turn, turn
from lessonlib.sim.signing import digest
from lessonlib.sim.usage import PER_TOOL, Counts, PromptCache, input_tokens
from lessonlib.types import JSON, StopReason
from lessonlib.vocabulary import count_text
from lessonlib.wire.base import compact, read_json

if TYPE_CHECKING:
    from lessonlib.sim.front.base import Front

EPOCH = 1_796_040_000
"""The simulator's own "now" in Unix seconds (30 November 2026, noon UTC), so that ids and dates do not change."""

MAX_BODY = 32 * 1024 * 1024
KEPT_REQUESTS = 1000
"""How many requests `Simulator.requests` remembers: a server that runs for days must not grow."""


class Reset(Exception):
    """The connection is reset here."""


class Hang(Exception):
    """Nothing more will come."""


@dataclass(frozen=True, slots=True)
class SimRequest:
    """A request as it came. Header names are lower-case; `path` holds the query too."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class SimReply:
    """An answer. `chunks`: (seconds to wait first, bytes); iterating may raise Reset or Hang."""

    status: int
    headers: dict[str, str]
    chunks: Iterable[tuple[float, bytes]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished turn with all that a frontend needs to write it down."""

    ask: Ask
    turn: Turn
    counts: Counts
    id: str
    created: int
    body: JSON
    sim: Simulator = field(repr=False)

    def part_id(self, place: int, kind: str) -> str:
        """A stable id for the segment number `place`."""
        return digest(self.id, place, kind)[:24]


class Simulator:
    """The three vendors in one object.

    script: turns to play, one per request, before the model decides by itself. faults: see faults.py. keys: the API keys
    that are accepted; None accepts every non-empty one. cache_minimum: tokens below which nothing is cached. cache_file:
    where the prompt cache outlives the process. clock: seconds, for the cache and for dates. max_body: bytes before "413".

    `requests` holds what came, for tests that look at what was really sent: (request, parsed body, refusal or None).
    """

    def __init__(
        self,
        script: Iterable[Turn | str | Segment | Sequence[Segment]] = (),
        faults: Iterable[Fault] = (),
        *,
        keys: Iterable[str] | None = None,
        cache_minimum: int = 32,
        cache_file: Path | None = None,
        clock: Callable[[], float] | None = None,
        max_body: int = MAX_BODY,
    ) -> None:
        self.script = [turn(entry) for entry in script]
        self.faults = list(faults)
        self.keys = None if keys is None else frozenset(keys)
        self.max_body = max_body
        self.requests: deque[tuple[SimRequest, JSON | None, Refusal | None]] = deque(maxlen=KEPT_REQUESTS)
        self.stored: dict[str, JSON] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._played = 0
        self._clock = clock or (lambda: float(EPOCH + self._number))
        self.cache = PromptCache(self._clock, cache_minimum, cache_file)

    # ------------------------------------------------------------ one request

    def handle(self, request: SimRequest) -> SimReply:
        """The answer to one request. Never raises for a bad request: that is an answer too."""
        from lessonlib.sim.front import route

        with self._lock:
            self._number += 1
            number = self._number
        front = route(request.method, request.path)
        if front is None:
            self._note(request, None, None)
            return _json_reply(404, {"error": {"message": f"no such path: {request.method} {request.path}"}})
        too_large = len(request.body) > self.max_body
        body = {} if too_large else _parsed(request.body)  # a rule says so, in the vendor's words
        prompt = front.prompt(body or {})
        faults = [fault for fault in self.faults if fault.hits(number, prompt)]
        early = next((fault for fault in faults if fault.kind in ("status", "html")), None)
        if early is not None:
            return self._early(early, front, request, body)
        if body is None:
            return self._refuse(front, request, None, Refusal(400, front.bad_request, "The body is not a JSON object."))
        return self._answer(front, request, body, number, faults)

    def _answer(self, front: Front, request: SimRequest, body: JSON, number: int, faults: list[Fault]) -> SimReply:
        context = Context(
            front.wire, request.path, request.headers, body, len(request.body), self, front.model(request.path, body)
        )
        refusal = front.book.first_refusal(context)
        if refusal is not None:
            return self._refuse(front, request, body, refusal)
        ask = front.read(context)
        refusal = front.too_long(context, input_tokens(ask)) if _too_long(ask) else None
        if refusal is not None:
            return self._refuse(front, request, body, refusal)
        said = self._turn(ask, front.pauses)
        counts = self.cache.account(ask, said, **front.cache_options(context))
        answer = Answer(ask, said, counts, digest(number, request.path, body)[:24], int(self._clock()), body, self)
        refusal = front.refuses(answer)
        streams = front.streams(answer, request.path)
        if refusal is not None and not streams:
            return self._refuse(front, request, body, refusal)
        self._note(request, body, refusal)
        front.remember(answer)
        return _reply(front, answer, faults, streams)

    def _turn(self, ask: Ask, pauses: bool) -> Turn:
        with self._lock:
            scripted = self.script[self._played] if self._played < len(self.script) else None
            self._played += scripted is not None
        said = scripted if scripted is not None else model.answer(ask)
        if said.reason is StopReason.PAUSE and not pauses:
            said = Turn((*said.segments[:-1], *model.answer(replace(ask, paused=True)).segments))
        return capped(stopped(said, ask.stop), ask.max_tokens)

    # ------------------------------------------------------------ refusals

    def _refuse(self, front: Front, request: SimRequest, body: JSON | None, refusal: Refusal) -> SimReply:
        self._note(request, body, refusal)
        return _json_reply(refusal.status, front.error(refusal), {**front.headers(self._number), **refusal.headers})

    def _early(self, fault: Fault, front: Front, request: SimRequest, body: JSON | None) -> SimReply:
        self._note(request, body, None)
        headers = front.headers(self._number)
        if fault.retry_after is not None:
            headers["retry-after"] = f"{fault.retry_after:g}"
        if fault.kind == "html":
            page = f"<html><head><title>{fault.status}</title></head><body><h1>Bad gateway</h1></body></html>\n"
            return SimReply(fault.status, {**headers, "content-type": "text/html"}, [(0.0, page.encode("utf-8"))])
        refusal = front.fault_refusal(fault)
        return _json_reply(fault.status, front.error(refusal), headers)

    def _note(self, request: SimRequest, body: JSON | None, refusal: Refusal | None) -> None:
        with self._lock:
            self.requests.append((request, body, refusal))


# ---------------------------------------------------------------- the cap and the stop sequences


def capped(said: Turn, max_tokens: int | None) -> Turn:
    """The turn as it comes out under an output cap (which reasoning counts against), or under a wanted `run_out`."""
    if said.run_out is not None:
        max_tokens = _tokens_before(said, said.run_out)
    if max_tokens is None:
        return said
    left = max_tokens
    kept: list[Segment] = []
    for segment in said.segments:
        cost = _cost(segment)
        if cost <= left:
            kept.append(segment)
            left -= cost
            continue
        cut = _cut(segment, left)
        return replace(said, segments=(*kept, *([cut] if cut else [])), stop=StopReason.LENGTH, run_out=None)
    return said


def _tokens_before(said: Turn, where: str) -> int:
    """A cap that falls into the middle of the first segment of the wanted kind."""
    kinds = {"text": Say, "reasoning": Think, "arguments": Call}
    spent = 0
    for segment in said.segments:
        if isinstance(segment, kinds[where]):
            return spent + (PER_TOOL if where == "arguments" else 0) + max(1, (_cost(segment) - PER_TOOL) * 2 // 3)
        spent += _cost(segment)
    return spent


def _cost(segment: Segment) -> int:
    match segment:
        case Think(text, tokens):
            return count_text(text) if tokens is None else tokens
        case Say(text) | Refuse(text):
            return count_text(text)
        case Call():
            return PER_TOOL + count_text(segment.name + segment.text)
        case _:
            return PER_TOOL


def _cut(segment: Segment, left: int) -> Segment | None:
    match segment:
        case Think(text):
            return Think(head(text, left), tokens=left, whole=False) if left else None
        case Say(text):
            return Say(head(text, left), whole=False) if left else None
        case Call(name):
            tokens = max(0, left - PER_TOOL - count_text(name))
            return Call(name, head(segment.text, tokens)[: max(0, len(segment.text) - 1)], whole=False)
        case _:
            return None


def stopped(said: Turn, sequences: Sequence[str]) -> Turn:
    """The turn up to the first stop sequence in its visible text."""
    kept: list[Segment] = []
    for segment in said.segments:
        hits = [(segment.text.find(word), word) for word in sequences if isinstance(segment, Say) and word in segment.text]
        if hits and isinstance(segment, Say):
            place, word = min(hits)
            kept += [Say(segment.text[:place])] if place else []
            return replace(said, segments=tuple(kept), stop=StopReason.END, stop_sequence=word)
        kept.append(segment)
    return said


def _too_long(ask: Ask) -> bool:
    window = capabilities.of(ask.model).window
    return window is not None and input_tokens(ask) + (ask.max_tokens or 0) > window


# ---------------------------------------------------------------- replies


def _parsed(body: bytes) -> JSON | None:
    try:
        value = read_json(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _json_reply(status: int, payload: object, headers: Mapping[str, str] | None = None) -> SimReply:
    data = compact(payload).encode("utf-8", "backslashreplace")
    return SimReply(
        status, {**(headers or {}), "content-type": "application/json", "content-length": str(len(data))}, [(0.0, data)]
    )


def _reply(front: Front, answer: Answer, faults: list[Fault], streams: bool) -> SimReply:
    by_kind = {fault.kind: fault for fault in faults}
    headers = front.headers(answer.sim._number)
    if not streams or "json" in by_kind:
        return _json_reply(200, front.whole(answer), headers)
    kind = by_kind["content_type"].text if "content_type" in by_kind else "text/event-stream"
    frames = _faulty_frames(front, front.frames(answer), by_kind)
    return SimReply(200, {**headers, "content-type": kind, "cache-control": "no-cache"}, _faulty_bytes(frames, by_kind))


def _faulty_frames(front: Front, frames: Iterator[bytes], faults: Mapping[str, Fault]) -> Iterator[tuple[float, bytes]]:
    """The frames with the faults that count events."""
    delay = faults["slow"].seconds if "slow" in faults else 0.0
    cut = faults.get("cut_events") or faults.get("error_event")
    for number, frame in enumerate(frames):
        if cut is not None and number >= cut.events:
            break
        yield delay, frame
    if "error_event" in faults:
        yield delay, front.error_frame(front.fault_refusal(faults["error_event"]))


def _faulty_bytes(frames: Iterator[tuple[float, bytes]], faults: Mapping[str, Fault]) -> Iterator[tuple[float, bytes]]:
    """The bytes with the faults that count bytes: resets, hangs, cuts, and the size of the network reads."""
    size = faults["chunks"].bytes if "chunks" in faults else 0
    ends = [fault for kind, fault in faults.items() if kind in ("cut_bytes", "reset", "hang")]
    left = ends[0].bytes if ends else None
    for delay, frame in frames:
        data = frame if left is None else frame[:left]
        for start in range(0, len(data), size or len(data) or 1):
            yield (delay if start == 0 else 0.0), data[start : start + (size or len(data))]
        if left is not None:
            left -= len(data)
            if left <= 0:
                break
    if ends and ends[0].kind == "reset":
        raise Reset
    if ends and ends[0].kind == "hang":
        raise Hang
