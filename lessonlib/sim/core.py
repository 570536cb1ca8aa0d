"""The simulator: one HTTP request in, status, headers and timed pieces of a body out. No sockets, no threads, no clock.

    request -> route -> early faults -> rules -> Ask -> script or model -> stop sequences, cap -> usage -> frontend -> bytes

It is strict where the vendors are strict (rules/), and deterministic: the same requests in the same order get the same
bytes. Two mounts carry it: `transport.py` (in process, httpx) and `server.py` (a real server on the loopback address).

State, all of it: the number of requests, the prompt cache, and answers that were stored because the request asked for it.

What this file does not do: it knows no vendor's JSON (`front/`), decides nothing about the answer (`model.py`).
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessonlib import capabilities
from lessonlib.sim import model
from lessonlib.sim.ask import Ask
from lessonlib.sim.faults import Fault
from lessonlib.sim.pieces import head
from lessonlib.sim.refusal import PROMPTS, Context, Refusal
from lessonlib.sim.script import Call, Say, Segment, Think, Turn, turn
from lessonlib.sim.signing import digest
from lessonlib.sim.usage import PER_TOOL, Counts, PromptCache, cost, count, measure
from lessonlib.types import JSON, StopReason
from lessonlib.wire.base import compact, read_json

if TYPE_CHECKING:
    from lessonlib.sim.front.base import Front

EPOCH = 1_796_040_000
"""The simulator's own "now" in Unix seconds (30 November 2026, noon UTC), so that ids and dates do not change."""

MAX_BODY = 32 * 1024 * 1024
MAX_DEPTH = 100
"""Levels of nesting in a request's JSON; more is refused, as by every service that protects its stack."""
MAX_NUMBER = 1e300
KEPT_REQUESTS = 1000
KEPT_ANSWERS = 1000
"""How many requests and stored answers are remembered: a server that runs for days must not grow."""


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
    extra: JSON = field(default_factory=dict)
    """What a frontend found out while it read the request, and needs again when it writes the answer."""

    def part_id(self, place: int, kind: str) -> str:
        """A stable id for the segment number `place`."""
        return digest(self.id, place, kind)[:24]


@dataclass(slots=True)
class Stored:
    """An answer that the vendor keeps. `own`: the vendor's items of this exchange. `history`: those of the conversation up
    to and with it. `pending`: it was asked for in the background, and nobody has looked at it yet. `cancelled`: before."""

    wire: str
    answer: Answer
    own: list[JSON]
    history: list[JSON]
    pending: bool = False
    cancelled: bool = False


class Simulator:
    """The three vendors in one object.

    script: turns to play, one per request, before the model decides by itself. faults: see faults.py. keys: the API keys
    that are accepted; None accepts every non-empty one. cache_minimum: tokens below which nothing is cached. cache_file:
    where the prompt cache outlives the process. clock: seconds, for the cache and for dates. max_body: bytes before "413".
    window: tokens that a model's window holds, instead of the real one, so that a short prompt can be too long. without:
    names of rules to leave out, of those about which the sources are in doubt (`lesson rules` says which).

    `requests` holds what came, for tests that look at what was really sent: (request, parsed body, refusal or None).
    """

    def __init__(
        self,
        script: Iterable[Turn | str | Segment | Sequence[Segment | str]] = (),
        faults: Iterable[Fault] = (),
        *,
        keys: Iterable[str] | None = None,
        cache_minimum: int = 32,
        cache_file: Path | None = None,
        clock: Callable[[], float] | None = None,
        max_body: int = MAX_BODY,
        window: int | None = None,
        without: Iterable[str] = (),
    ) -> None:
        self.script = [turn(entry) for entry in script]
        self.faults = list(faults)
        self.keys = None if keys is None else frozenset(keys)
        self.max_body = max_body
        self.window = window
        self.without = frozenset(without)
        if self.without:
            _check_doubtful(self.without)
        self.requests: deque[tuple[SimRequest, JSON | None, Refusal | None]] = deque(maxlen=KEPT_REQUESTS)
        self._stored: dict[str, Stored] = {}
        self._items: dict[str, JSON] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._played = 0
        self._clock = clock or (lambda: float(EPOCH + self._number))
        self.cache = PromptCache(self._clock, cache_minimum, cache_file)

    # ------------------------------------------------------------ one request

    def handle(self, request: SimRequest) -> SimReply:
        """The answer to one request. Never raises for a bad request: that is an answer too."""
        from lessonlib.sim.front import route

        found = route(request.method, request.path, request.headers)
        if found is None:  # no vendor's request: it has no number, so a look at the address moves no fault
            self._note(request, None, None)
            return _nowhere(request)
        with self._lock:
            self._number += 1
            number = self._number
        front, operation, target = found
        context = self.context(front, operation, target, request)
        faults = self._faults(front, context, number)
        refusal = _early(faults, front)
        if refusal is None:
            refusal = front.book.first_refusal(context)
        if refusal is not None:
            return self._refuse(front, request, context, refusal, number, faults)
        if operation == "answer":
            return self._answer(front, request, context, number, faults)
        self._note(request, context.body, None)
        result = front.perform(context)
        if isinstance(result, dict):
            return _whole(200, result, front.headers(number), {})
        return _streamed(result, front.headers(number), {})

    def context(self, front: Front, operation: str, target: str, request: SimRequest) -> Context:
        """The request as the rules see it."""
        body: JSON = {}
        broken, halves = None, False
        if operation in PROMPTS and len(request.body) <= self.max_body:  # a larger one is refused unread, by a rule
            body, broken, halves = parsed(request.body)
        asked = target if operation == "models" else front.model(target, body)
        context = Context(
            front.wire, operation, request.path, request.headers, body, len(request.body), self, asked, target, broken,
            halves, capabilities.of(asked),
        )  # fmt: skip
        context.look(front.shape, nulls=front.nulls)
        return context

    def _faults(self, front: Front, context: Context, number: int) -> dict[str, Fault]:
        """The faults of this request by kind; of one kind the first that was given."""
        prompt = front.prompt(context.body) if any(fault.cue for fault in self.faults) else ""
        hits = [fault for fault in self.faults if fault.hits(number, prompt)]
        return {fault.kind: fault for fault in reversed(hits)}

    def _answer(
        self, front: Front, request: SimRequest, context: Context, number: int, faults: dict[str, Fault]
    ) -> SimReply:
        ask = front.read(context)
        window = self.window if self.window is not None else context.able.window
        if window is not None and front.truncates(context):
            ask.messages = _newest(ask, window)
        prompt = measure(ask)
        context.tokens, context.cap, context.window = prompt.total, ask.max_tokens, window
        refusal = front.book.first_refusal(context, "window")
        if refusal is not None:
            return self._refuse(front, request, context, refusal, number, faults)
        left = None if window is None else max(0, window - prompt.total)
        said = limited(stopped(front.adapt(self._turn(ask), ask, context), ask.stop), ask.max_tokens, left)
        counts = self.cache.account(prompt, said, front.cache_options(context))
        answer_id = digest(number, request.path, context.body)[:24]
        answer = Answer(ask, said, counts, answer_id, int(self._clock()), context.body, front.findings(context))
        refusal = front.refuses(answer)
        streams = front.streams(answer, context)
        if not streams and refusal is None:
            refusal = _instead(faults, front)
        if refusal is not None and not streams:
            return self._refuse(front, request, context, refusal, number, faults)
        self._note(request, context.body, refusal)
        front.remember(answer, self)
        headers = front.headers(number)
        if not streams or "json" in faults:
            return _whole(200, front.whole(answer), headers, faults)
        return _streamed(_faulty_frames(front, answer, faults), headers, faults)

    def _turn(self, ask: Ask) -> Turn:
        with self._lock:
            scripted = self.script[self._played] if self._played < len(self.script) else None
            self._played += scripted is not None
        return scripted if scripted is not None else model.answer(ask)

    def _refuse(
        self, front: Front, request: SimRequest, context: Context, refusal: Refusal, number: int, faults: dict[str, Fault]
    ) -> SimReply:
        self._note(request, None if context.broken else context.body, refusal if refusal.rule else None)
        headers = front.headers(number)
        if refusal.wait is not None:
            headers["retry-after"] = f"{refusal.wait:g}"
        if "html" in faults and refusal.rule is None:
            page = f"<html><head><title>{refusal.status}</title></head><body><h1>Bad gateway</h1></body></html>\n"
            return SimReply(refusal.status, {**headers, "content-type": "text/html"}, [(0.0, page.encode("utf-8"))])
        return _whole(refusal.status, front.error(refusal, front.request_id(number)), headers, {})

    def _note(self, request: SimRequest, body: JSON | None, refusal: Refusal | None) -> None:
        with self._lock:
            self.requests.append((request, body, refusal))

    # ------------------------------------------------------------ stored answers

    def keep(self, name: str, stored: Stored) -> None:
        """Store an answer under the vendor's id; the oldest gives way."""
        with self._lock:
            self._stored[name] = stored
            self._items |= {item["id"]: item for item in stored.own if isinstance(item.get("id"), str)}
            while len(self._stored) > KEPT_ANSWERS:
                self._drop(next(iter(self._stored)))

    def kept(self, wire: str, name: object) -> Stored | None:
        """The stored answer of a wire format with that id."""
        with self._lock:
            stored = self._stored.get(name) if isinstance(name, str) else None
        return stored if stored is not None and stored.wire == wire else None

    def item(self, item_id: object) -> JSON | None:
        """An item of any stored answer, by its id."""
        with self._lock:
            return self._items.get(item_id) if isinstance(item_id, str) else None

    def forget(self, name: str) -> None:
        """Delete a stored answer."""
        with self._lock:
            self._drop(name)

    def _drop(self, name: str) -> None:
        for item in self._stored.pop(name).own:
            self._items.pop(str(item.get("id")), None)


def _check_doubtful(names: Iterable[str]) -> None:
    """Only a rule that is in doubt can be left out: the others are what the services do, and later rules rely on them."""
    from lessonlib.sim.rules import all_rules

    doubtful = [rule.name for rule in all_rules() if rule.doubt]
    wrong = sorted(set(names) - set(doubtful))
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: no rule in doubt; those that can be left out are {', '.join(doubtful)}")


# ---------------------------------------------------------------- the request


def parsed(data: bytes) -> tuple[JSON, str | None, bool]:
    """(the body, why it is no JSON object, whether it held half characters)."""
    try:
        value = read_json(data.decode("utf-8"), constants=False)
    except ValueError:
        return {}, "it is not JSON", False
    if not isinstance(value, dict):
        return {}, "it is JSON, but not an object", False
    problem = _beyond(value)
    if problem is not None:
        return {}, problem, False
    if re.search(rb"\\u[dD][89a-fA-F]", data) is None:
        return value, None, False
    text = json.dumps(value, ensure_ascii=False)
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return json.loads(clean), None, clean != text


def _beyond(value: Any) -> str | None:
    """Whether a JSON value is nested too deeply, or has a number that no computation survives. No recursion."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        if not level:
            return None
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, (int, float)) and not -MAX_NUMBER < one < MAX_NUMBER:
                return "it has a number out of range"
        level = below
    return f"it is nested more than {MAX_DEPTH} levels deep"


def _newest(ask: Ask, window: int) -> list[Any]:
    """The newest messages that fit into the window, at least one; the oldest go first."""
    sizes = measure(ask).sizes
    first = next((place for place in range(len(ask.messages)) if sizes[-1] - sizes[place] + sizes[0] <= window), None)
    return ask.messages[-1:] if first is None else ask.messages[first:]


# ---------------------------------------------------------------- stop sequences, the cap and the window


def limited(said: Turn, max_tokens: int | None, left: int | None) -> Turn:
    """The turn under the request's cap, or under what is left of the model's window if that is less."""
    if left is None or (max_tokens is not None and max_tokens <= left):
        return capped(said, max_tokens)
    cut = capped(said, left)
    return replace(cut, full=cut.stop is StopReason.LENGTH)


def capped(said: Turn, max_tokens: int | None) -> Turn:
    """The turn as it comes out under an output cap (which reasoning counts against), or under a wanted `run_out`."""
    if said.run_out is not None:
        wanted = _tokens_before(said, said.run_out)
        max_tokens = wanted if max_tokens is None else min(wanted, max_tokens)
    if max_tokens is None:
        return said
    left = max_tokens
    kept: list[Segment] = []
    for segment in said.segments:
        price = cost(segment)
        if price > left:
            cut = _cut(segment, left)
            return replace(said, segments=(*kept, *([cut] if cut else [])), stop=StopReason.LENGTH, run_out=None)
        kept.append(segment)
        left -= price
    return said


def _tokens_before(said: Turn, where: str) -> int:
    """A cap that falls into the middle of the first segment of the wanted kind."""
    kinds = {"text": Say, "reasoning": Think, "arguments": Call}
    spent = 0
    for segment in said.segments:
        if isinstance(segment, Call) and where == "arguments":
            return spent + PER_TOOL + count(segment.name) + max(1, count(segment.text) // 2)
        if isinstance(segment, kinds[where]):
            return spent + max(1, cost(segment) * 2 // 3)
        spent += cost(segment)
    return max(0, spent - 1)


def _cut(segment: Segment, left: int) -> Segment | None:
    """What comes out of a segment that costs more than is left; None if nothing does."""
    match segment:
        case Think(text):
            return replace(segment, text=head(text, left), tokens=left, whole=False) if left else None
        case Say(text):
            said = head(text, left)
            return Say(said, whole=False) if said else None
        case Call(name) if left > PER_TOOL + count(name):
            text = head(segment.text, left - PER_TOOL - count(name))
            return Call(name, text[: max(0, len(segment.text) - 1)], whole=False)
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


# ---------------------------------------------------------------- replies


def _nowhere(request: SimRequest) -> SimReply:
    """The answer to a path that no vendor has, readable by each vendor's package."""
    path = request.path.split("?", 1)[0]
    message = f"Invalid URL ({request.method} {path}). `lesson serve` prints the base URL for each API."
    if "/v1/v1" in path or "/v1/v1beta" in path:
        message += " This one has its version twice: the base URL must not end in /v1 here."
    error = {"type": "invalid_request_error", "message": message, "param": None, "code": "not_found"}
    return _whole(404, {"type": "error", "error": error}, {}, {})


def _early(faults: Mapping[str, Fault], front: Front) -> Refusal | None:
    """The error that a fault puts in the place of any answer."""
    fault = faults.get("status") or faults.get("html")
    return front.fault_refusal(fault) if fault is not None else None


def _instead(faults: Mapping[str, Fault], front: Front) -> Refusal | None:
    """The error in the place of a whole answer, where a stream would have had it in its middle."""
    fault = faults.get("error_event")
    return front.fault_refusal(fault) if fault is not None else None


def _whole(status: int, payload: object, headers: Mapping[str, str], faults: Mapping[str, Fault]) -> SimReply:
    """A JSON body. Its length is announced, unless a fault will not keep it."""
    data = compact(payload).encode("utf-8", "replace")
    kind = faults["content_type"].text if "content_type" in faults else "application/json"
    length = {} if faults else {"content-length": str(len(data))}
    delay = faults["slow"].seconds if "slow" in faults else 0.0
    return SimReply(status, {**headers, "content-type": kind, **length}, _faulty_bytes(iter([(delay, data)]), faults))


def _streamed(frames: Iterator[tuple[float, bytes]], headers: Mapping[str, str], faults: Mapping[str, Fault]) -> SimReply:
    """A body of server-sent events."""
    kind = faults["content_type"].text if "content_type" in faults else "text/event-stream"
    return SimReply(200, {**headers, "content-type": kind, "cache-control": "no-cache"}, _faulty_bytes(frames, faults))


def _faulty_frames(front: Front, answer: Answer, faults: Mapping[str, Fault]) -> Iterator[tuple[float, bytes]]:
    """The frames with the faults that count events."""
    delay = faults["slow"].seconds if "slow" in faults else 0.0
    error = faults.get("error_event")
    ends = [fault.events for fault in (error, faults.get("cut_events")) if fault is not None]
    end = min(ends) if ends else math.inf
    number = 0
    for frame in front.frames(answer):
        if number >= end:
            break
        yield delay, frame
        number += 1
    if error is not None and error.events == end:
        for frame in front.error_frames(front.fault_refusal(error), answer, number):
            yield delay, frame


def _faulty_bytes(frames: Iterator[tuple[float, bytes]], faults: Mapping[str, Fault]) -> Iterator[tuple[float, bytes]]:
    """The bytes with the faults that count bytes: resets, hangs, cuts, and the size of the network reads."""
    size = faults["chunks"].bytes if "chunks" in faults else 0
    ends = [fault for kind, fault in faults.items() if kind in ("cut_bytes", "reset", "hang")]
    end = min(ends, key=lambda fault: fault.bytes) if ends else None
    left = end.bytes if end is not None else None
    for delay, frame in frames:
        data = frame if left is None else frame[:left]
        for start in range(0, len(data), size or len(data) or 1):
            yield (delay if start == 0 else 0.0), data[start : start + (size or len(data))]
        if left is not None:
            left -= len(data)
            if left <= 0:
                break
    if end is not None and end.kind == "reset":
        raise Reset
    if end is not None and end.kind == "hang":
        raise Hang
