"""Faults that the simulator can be told to have: by the number of the request, or by a cue in the prompt.

    Simulator(faults=[Fault("status", status=529, at=1), Fault("status", status=429, retry_after=3, at=2)])
    lesson serve --fault "status=529@1" --fault "cut_events=5"

The kinds, and what else each takes:

    status        status, retry_after, type, code       an HTTP error instead of an answer
    error_event   events, type                          the answer begins, then the vendor's error event, then the end
    cut_events    events                                the body ends in good order after n events
    cut_bytes     bytes                                 the body ends in good order after n bytes
    reset         bytes                                 the connection is reset after n bytes
    hang          bytes                                 nothing more comes after n bytes
    content_type  text                                  the answer under a wrong content type
    html          status                                an HTML page, as a proxy sends it
    json          -                                     a whole JSON answer where a stream was asked
    slow          seconds                               each event that many seconds after the one before
    chunks        bytes                                 network reads of n bytes (1 cuts every wide character)

What this file does not do: it sleeps nowhere. Delays are numbers beside the bytes; what to do with them is the transport's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any

KINDS = (
    "status",
    "error_event",
    "cut_events",
    "cut_bytes",
    "reset",
    "hang",
    "content_type",
    "html",
    "json",
    "slow",
    "chunks",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `at`: the number of the request that has it (1 is the first), None for every request. `cue`: only for
    requests whose prompt holds these words. The other fields belong to the kinds above."""

    kind: str
    at: int | None = None
    cue: str | None = None
    status: int = 503
    retry_after: float | None = None
    type: str | None = None
    code: str | None = None
    events: int = 3
    bytes: int = 200
    seconds: float = 0.05
    text: str = "application/json"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}; the kinds are {', '.join(KINDS)}")

    def hits(self, number: int, prompt: str) -> bool:
        """Whether request `number` with this prompt has the fault."""
        return (self.at is None or self.at == number) and (self.cue is None or self.cue.lower() in prompt.lower())


_MAIN = {"status": "status", "error_event": "events", "cut_events": "events", "cut_bytes": "bytes", "reset": "bytes",
         "hang": "bytes", "content_type": "text", "html": "status", "slow": "seconds", "chunks": "bytes"}  # fmt: skip


def parse(text: str) -> Fault:
    """A fault from `kind[=value][@request][,field=value...]`: "status=429@2,retry_after=3". ValueError if it is none."""
    head, *rest = text.split(",")
    match = re.fullmatch(r"(\w+)(?:=([^@]+))?(?:@(\d+))?", head.strip())
    if match is None:
        raise ValueError(f"cannot read the fault {text!r}; write for example status=529@1 or cut_events=5")
    kind, value, at = match.groups()
    fault = Fault(kind, at=int(at) if at else None)
    pairs = [(_MAIN[kind], value)] if value and kind in _MAIN else []
    pairs += [tuple(pair.split("=", 1)) for pair in rest]  # type: ignore[misc]
    for name, given in pairs:
        changes: dict[str, Any] = {name.strip(): _typed(name.strip(), given.strip())}
        fault = replace(fault, **changes)
    return fault


def _typed(name: str, value: str) -> int | float | str:
    known = {field.name for field in fields(Fault)}
    if name not in known:
        raise ValueError(f"a fault has no field {name!r}; the fields are {', '.join(sorted(known))}")
    if name in ("at", "status", "events", "bytes"):
        return int(value)
    return float(value) if name in ("retry_after", "seconds") else value
