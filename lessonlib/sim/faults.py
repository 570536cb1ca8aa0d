"""Faults that the simulator can be told to have: by the number of the request, or by a cue in the prompt.

    Simulator(faults=[Fault("status", status=529, at=1), Fault("status", status=429, retry_after=3, at=2)])
    lesson serve --fault "status=529@1" --fault "cut_events=5"

The table `KINDS` says what there is and what each takes.

What this file does not do: it sleeps nowhere. Delays are numbers beside the bytes; what to do with them is the transport's.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault. `value` is the field that stands behind its name on the command line, None if there is none."""

    name: str
    value: str | None
    also: tuple[str, ...]
    what: str


KINDS = {
    kind.name: kind
    for kind in (
        Kind("status", "status", ("retry_after", "type", "code"), "an HTTP error instead of an answer"),
        Kind("error_event", "events", ("status", "type", "code"),
             "n events of the answer, then the vendor's error event, then the end; a whole answer is that error"),
        Kind("cut_events", "events", (), "the stream ends in good order after n events"),
        Kind("cut_bytes", "bytes", (), "the body ends in good order after n bytes"),
        Kind("reset", "bytes", (), "the connection is reset after n bytes of the body"),
        Kind("hang", "bytes", (), "nothing more comes after n bytes of the body"),
        Kind("content_type", "text", (), "the answer under a wrong content type"),
        Kind("html", "status", ("retry_after",), "an HTML page, as a proxy sends it"),
        Kind("json", None, (), "a whole JSON answer where a stream was asked"),
        Kind("slow", "seconds", (), "each event, or the whole answer, that many seconds late"),
        Kind("chunks", "bytes", (), "network reads of n bytes; 1 cuts every wide character"),
    )
}  # fmt: skip
ANYWHERE = ("at", "cue")
"""Fields that every kind takes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `at`: the number of the request that has it (1 is the first), None for every request. `cue`: only for
    requests whose prompt holds these words. The other fields belong to the kinds that name them."""

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
        least = {"at": 1, "events": 0, "bytes": int(self.kind == "chunks"), "seconds": 0, "retry_after": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and not bound <= value < math.inf:
                raise ValueError(f"{name} of a {self.kind} fault is {value}; it must be {bound} or more")
        if not 100 <= self.status <= 599 or (self.kind == "status" and self.status < 400):
            raise ValueError(f"status {self.status} is no HTTP error; write for example status=503")

    def hits(self, number: int, prompt: str) -> bool:
        """Whether request `number` with this prompt has the fault."""
        return (self.at is None or self.at == number) and (self.cue is None or self.cue.lower() in prompt.lower())


def parse(text: str) -> Fault:
    """A fault from `kind[=value][@request][,field=value...]`: "status=429@2,retry_after=3". ValueError if it is none."""
    head, *rest = text.split(",")
    match = re.fullmatch(r"(\w+)(?:=([^@]*))?(?:@(\d+))?", head.strip())
    if match is None:
        raise ValueError(f"cannot read the fault {text!r}; write for example status=529@1 or cut_events=5")
    name, value, at = match.groups()
    if name not in KINDS:
        raise ValueError(f"unknown fault {name!r}; the kinds are {', '.join(KINDS)}")
    kind = KINDS[name]
    pairs = [] if at is None else [("at", at)]
    if value is not None:
        if kind.value is None:
            raise ValueError(f"{name} takes no value; write {name} or {name}@2")
        pairs.append((kind.value, value))
    pairs += [_pair(piece, kind) for piece in rest]
    return replace(Fault(name), **{field: _typed(field, given) for field, given in pairs})  # type: ignore[arg-type]


def _pair(piece: str, kind: Kind) -> tuple[str, str]:
    name, equals, value = piece.partition("=")
    allowed = [*([kind.value] if kind.value else []), *kind.also, *ANYWHERE]
    if not equals or name.strip() not in allowed:
        raise ValueError(
            f"{piece.strip()!r} does not belong to {kind.name}; it takes {', '.join(f'{one}=' for one in allowed)}"
        )
    return name.strip(), value.strip()


_NUMBERS = {
    field.name: int if "int" in str(field.type) else float for field in fields(Fault) if "str" not in str(field.type)
}


def _typed(name: str, value: str) -> int | float | str:
    """The value as the field's type."""
    read = _NUMBERS.get(name)
    if read is None:
        return value
    try:
        return read(value)
    except ValueError:
        raise ValueError(f"{name} takes a number, not {value!r}") from None
