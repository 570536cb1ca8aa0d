"""What a frontend is: one vendor's face on the simulator.

    routes    which method and path are its own          prompt, model    what faults and rules need before reading
    book      its rules; `shape` what its JSON holds      read             the vendor's JSON -> Ask
    whole     Answer -> the whole response JSON           frames           Answer -> server-sent events, byte for byte
    error     Refusal -> error body                       error_frames     Refusal -> the error inside a stream
    perform   everything else: counting, stored answers, the list of models

Five files, the same sections in the same order. Strict, and on its own: a frontend never uses the client's coders.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import unquote

from lessonlib.sim.ask import Ask
from lessonlib.sim.core import Answer, Simulator
from lessonlib.sim.faults import Fault
from lessonlib.sim.refusal import Context, Refusal, RuleBook
from lessonlib.sim.script import Turn
from lessonlib.sim.shapes import Shape
from lessonlib.sim.usage import CacheOptions, measure
from lessonlib.types import JSON
from lessonlib.wire.base import as_text, compact

Performed = JSON | Iterator[tuple[float, bytes]]
"""A whole body, or the timed frames of a stream."""


class Front(ABC):
    """Base of the frontends. Subclasses fill in the class variables and the methods."""

    wire: ClassVar[str]
    book: ClassVar[RuleBook]
    shape: ClassVar[Shape]
    """What the request's JSON may hold (shapes.py)."""
    nulls: ClassVar[bool] = True
    """Whether a field that is null counts as left out."""
    routes: ClassVar[tuple[tuple[str, str, str], ...]]
    """(method, pattern of the path without the query, operation). A group in the pattern is the operation's target."""
    status_types: ClassVar[dict[int, str]]
    """HTTP status -> the vendor's error type, for faults."""
    request_ids: ClassVar[str] = "req_sim{:06d}"

    # ------------------------------------------------------------ the request

    def find(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[str, str] | None:
        """(operation, target) if this path is the frontend's."""
        plain = unquote(path.split("?", 1)[0])
        for wanted, pattern, operation in self.routes:
            match = re.fullmatch(pattern, plain) if wanted == method else None
            if match is not None and (operation != "models" or self.owns(headers)):
                return operation, next((group for group in match.groups() if group), "")
        return None

    def owns(self, headers: Mapping[str, str]) -> bool:
        """Whether a request to a path that vendors share (`/v1/models`) comes from a client of this one."""
        return False

    def prompt(self, body: JSON) -> str:
        """All text in the request, for the cues of faults."""
        return " ".join(_strings(body))

    def model(self, target: str, body: JSON) -> str:
        """The asked model."""
        return as_text(body.get("model"))

    @abstractmethod
    def read(self, context: Context) -> Ask:
        """The request in neutral words. Only called when no rule refused."""

    def findings(self, context: Context) -> JSON:
        """What reading found that the answer must say."""
        return {}

    def truncates(self, context: Context) -> bool:
        """Whether the request allows the service to drop its oldest messages."""
        return False

    def cache_options(self, context: Context) -> CacheOptions:
        """How the prompt cache works for this request."""
        return CacheOptions()

    # ------------------------------------------------------------ the answer

    def adapt(self, said: Turn, ask: Ask, context: Context) -> Turn:
        """The model's turn as this vendor's API can say it."""
        return said

    def request_id(self, number: int) -> str:
        """The id of request number `number`."""
        return self.request_ids.format(number)

    def headers(self, number: int) -> dict[str, str]:
        """The vendor's own response headers (request id, rate limits)."""
        return {}

    def refuses(self, answer: Answer) -> Refusal | None:
        """The error that the answer turns into, on an API where a policy block is one."""
        return None

    def streams(self, answer: Answer, context: Context) -> bool:
        """Whether the answer goes out as events."""
        return answer.ask.stream

    @abstractmethod
    def whole(self, answer: Answer) -> JSON | list[JSON]:
        """The response body."""

    @abstractmethod
    def frames(self, answer: Answer) -> Iterator[bytes]:
        """The stream, one server-sent event at a time."""

    def remember(self, answer: Answer, sim: Simulator) -> None:  # noqa: B027 - three of five APIs keep nothing
        """Store the answer, where the vendor does so and the request asked for it."""

    # ------------------------------------------------------------ other operations

    def perform(self, context: Context) -> Performed:
        """Everything but an answer. Rules have seen to it that what is asked for exists."""
        if context.operation == "models":
            return self.models(context.target)
        if context.operation == "count":
            return self.count(measure(self.read(context)).total)
        return self.stored(context)

    def models(self, name: str) -> JSON:
        """The list of models, or one of them. This and the next two are only called where a route leads to them."""
        return {}

    def count(self, tokens: int) -> JSON:
        """The answer to "how many tokens would this be"."""
        return {}

    def stored(self, context: Context) -> Performed:
        """Looking at a stored answer, cancelling it, deleting it."""
        return {}

    # ------------------------------------------------------------ errors

    @abstractmethod
    def error(self, refusal: Refusal, request_id: str) -> JSON:
        """The error body."""

    @abstractmethod
    def error_frames(self, refusal: Refusal, answer: Answer, number: int) -> Iterator[bytes]:
        """The error inside a stream; `number` frames came before it."""

    def fault_refusal(self, fault: Fault) -> Refusal:
        """The refusal that a fault asks for, in the vendor's words."""
        kind = fault.type or self.status_types.get(fault.status) or self.status_types[500 if fault.status >= 500 else 400]
        return Refusal(fault.status, kind, "The simulator was told to fail here.", fault.code, wait=fault.retry_after)


def query(path: str, name: str) -> str:
    """The value of a parameter in a path's query, "" if it is not there."""
    match = re.search(rf"[?&]{name}=([^&]*)", path)
    return unquote(match[1]) if match else ""


def frame(payload: Any, event: str | None = None) -> bytes:
    """One server-sent event, with or without its name."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {compact(payload)}\n\n".encode("utf-8", "replace")


def _strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
