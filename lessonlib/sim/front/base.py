"""What a frontend is: one vendor's face on the simulator.

    route     which method and path are its own          prompt, model    what faults and rules need before reading
    book      its rules                                   read             the vendor's JSON -> Ask
    whole     Answer -> the whole response JSON           frames           Answer -> server-sent events, byte for byte
    error     Refusal -> error body                       error_frame      Refusal -> the error event in mid-stream

Five files, the same sections in the same order. Strict, and on its own: a frontend never uses the client's coders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from lessonlib.sim.ask import Ask
from lessonlib.sim.core import Answer
from lessonlib.sim.faults import Fault
from lessonlib.sim.refusal import Context, Refusal, RuleBook
from lessonlib.types import JSON
from lessonlib.wire.base import compact


class Front:
    """Base of the frontends. Subclasses fill in the class variables and the methods."""

    wire: ClassVar[str]
    book: ClassVar[RuleBook]
    paths: ClassVar[tuple[str, ...]]
    """Regular expressions of the paths, without the query."""
    bad_request: ClassVar[str]
    """The vendor's word for a malformed request."""
    status_types: ClassVar[dict[int, str]]
    """HTTP status -> the vendor's error type, for faults."""
    pauses: ClassVar[bool] = True
    """Whether this API can hand a turn back while its own server still works; if not, the turn is played to its end."""

    # ------------------------------------------------------------ the request

    @classmethod
    def serves(cls, method: str, path: str) -> bool:
        """Whether this path is the frontend's."""
        plain = path.split("?", 1)[0]
        return method == "POST" and any(re.fullmatch(pattern, plain) for pattern in cls.paths)

    def prompt(self, body: JSON) -> str:
        """All text in the request, for the cues of faults."""
        return " ".join(_strings(body))

    def model(self, path: str, body: JSON) -> str:
        """The asked model."""
        return str(body.get("model") or "")

    def read(self, context: Context) -> Ask:
        """The request in neutral words. Only called when no rule refused."""
        raise NotImplementedError

    def too_long(self, context: Context, tokens: int) -> Refusal | None:
        """The vendor's refusal of a prompt that does not fit the window."""
        raise NotImplementedError

    def cache_options(self, context: Context) -> dict[str, Any]:
        """How the prompt cache works for this request: keywords of PromptCache.account."""
        return {}

    # ------------------------------------------------------------ the answer

    def headers(self, number: int) -> dict[str, str]:
        """The vendor's own response headers (request id, rate limits)."""
        return {}

    def refuses(self, answer: Answer) -> Refusal | None:
        """The error that the answer turns into, on an API where a policy block is one."""
        return None

    def streams(self, answer: Answer, path: str) -> bool:
        """Whether the answer goes out as events."""
        return answer.ask.stream

    def whole(self, answer: Answer) -> JSON | list[JSON]:
        """The response body."""
        raise NotImplementedError

    def frames(self, answer: Answer) -> Iterator[bytes]:
        """The stream, one server-sent event at a time."""
        raise NotImplementedError

    def remember(self, answer: Answer) -> None:
        """Store the answer, where the vendor does so and the request asked for it."""

    # ------------------------------------------------------------ errors

    def error(self, refusal: Refusal) -> JSON:
        """The error body."""
        raise NotImplementedError

    def error_frame(self, refusal: Refusal) -> bytes:
        """The error event inside a stream."""
        raise NotImplementedError

    def fault_refusal(self, fault: Fault) -> Refusal:
        """The refusal that a fault asks for, in the vendor's words."""
        kind = fault.type or self.status_types.get(fault.status, self.status_types[500])
        return Refusal(fault.status, kind, "The simulator was told to fail here.", fault.code)


def frame(payload: Any, event: str | None = None) -> bytes:
    """One server-sent event, with or without its name."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {compact(payload)}\n\n".encode("utf-8", "backslashreplace")


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
