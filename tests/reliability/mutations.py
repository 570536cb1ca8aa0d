"""Every small thing that can happen to a stream between the service and us, one at a time.

    cut      the body ends after n bytes, for every n
    drop     an event is missing                    double   an event comes twice
    swap     an event comes before its neighbour    flip     one bit of one byte is another
    remove   a field is missing                     retype   a field holds a value of another type

A mutant knows its fault and its place: what kind of event was hit, and which field of it, so that results can be counted by
place. Indices of lists are left out of a place: the second call of an answer is the same kind of place as the first.

What this file does not do: it reads nothing and judges nothing (verdicts.py).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lessonlib.wire.base import compact, read_json

FAULTS = ("cut", "drop", "double", "swap", "flip", "remove", "retype")
WHOLE_FAULTS = ("cut", "flip", "remove", "retype")
"""What can happen to an answer that is no stream."""

OTHER_VALUES: tuple[Any, ...] = (None, True, 7, "x", ["x"], {"x": 1})
"""What a field is given whose type is to be wrong: one value of every JSON type."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A disturbed body. `place`: the kind of event and the field that were hit, "" for a cut."""

    fault: str
    place: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Block:
    """The bytes of one event, up to and with its blank line; `payload` is its JSON, None if it has none."""

    data: bytes
    payload: Any
    kind: str


def blocks(data: bytes) -> list[Block]:
    """The stream in pieces that each hold one event (or comments only)."""
    found: list[Block] = []
    lines: list[bytes] = []
    for line in data.splitlines(keepends=True):  # on bytes: at LF, CR and CRLF only
        lines.append(line)
        if not line.strip(b"\r\n"):
            found.append(_block(lines))
            lines = []
    return [*found, _block(lines)] if lines else found


def _block(lines: list[bytes]) -> Block:
    fields = [line.rstrip(b"\r\n").partition(b":") for line in lines]
    values = {name: value.removeprefix(b" ").decode("utf-8", "replace") for name, _, value in fields}
    text = b"\n".join(value.removeprefix(b" ") for name, _, value in fields if name == b"data")
    try:
        payload = read_json(text)
    except ValueError:
        payload = None
    kind = kind_of(payload) or values.get(b"event") or text.decode("utf-8", "replace")[:10]
    return Block(b"".join(lines), payload, kind)


def kind_of(payload: Any) -> str:
    """A word for an event: its type, with that of the delta or item inside where there is one."""
    if not isinstance(payload, dict):
        return ""
    name = payload.get("event_type") or payload.get("type")
    for key in ("delta", "content_block", "item", "step"):
        inner = payload.get(key)
        if name and isinstance(inner, dict) and isinstance(inner.get("type"), str):
            return f"{name}/{inner['type']}"
    if isinstance(name, str):
        return name
    if payload.get("error"):
        return "error"
    return "chunk" if payload.get("choices") or payload.get("candidates") else "note"


# ---------------------------------------------------------------- streams


def mutants(data: bytes, fault: str, seed: str = "") -> Iterator[Mutant]:
    """All mutants of a stream by one fault. seed: decides which bit of a byte is flipped, the same in every run."""
    if fault == "cut":
        yield from (Mutant(fault, "", data[:size]) for size in range(len(data)))
    elif fault == "flip":
        yield from _flips(data, random.Random(seed), _places(data))
    elif fault in ("remove", "retype"):
        yield from _field_mutants(data, fault)
    else:
        yield from _event_mutants(data, fault)


def _event_mutants(data: bytes, fault: str) -> Iterator[Mutant]:
    parts = blocks(data)
    for place, block in enumerate(parts):
        before, after = parts[:place], parts[place + 1 :]
        changed: list[Block] = before
        if fault == "double":
            changed = [*before, block, block, *after]
        elif fault == "drop":
            changed = [*before, *after]
        elif after:
            changed = [*before, after[0], block, *after[1:]]
        else:
            continue
        kind = f"{block.kind} <> {after[0].kind}" if fault == "swap" else block.kind
        yield Mutant(fault, kind, b"".join(_ended(each.data) for each in changed))


def _ended(block: bytes) -> bytes:
    """A block may be the last one and lack its blank line; elsewhere it would run into the next."""
    return block if block.endswith((b"\n\n", b"\r\r", b"\r\n\r\n")) else block.rstrip(b"\r\n") + b"\n\n"


def _places(data: bytes) -> list[str]:
    """For each byte, the kind of the event that it stands in."""
    return [block.kind for block in blocks(data) for _ in block.data]


def _flips(data: bytes, chance: random.Random, places: list[str]) -> Iterator[Mutant]:
    for place, byte in enumerate(data):
        flipped = bytes([byte ^ (1 << chance.randrange(8))])
        yield Mutant("flip", places[place] if places else "", data[:place] + flipped + data[place + 1 :])


def _field_mutants(data: bytes, fault: str) -> Iterator[Mutant]:
    parts = blocks(data)
    for place, block in enumerate(parts):
        if block.payload is None:
            continue
        before = b"".join(_ended(each.data) for each in parts[:place])
        after = b"".join(each.data for each in parts[place + 1 :])
        for path, changed in changes(block.payload, fault):
            yield Mutant(fault, f"{block.kind} {path}", before + _rewritten(block, changed) + after)


def _rewritten(block: Block, payload: Any) -> bytes:
    """The event with another payload; its other lines stay."""
    lines = [line for line in block.data.splitlines(keepends=True) if line.strip(b"\r\n") and not line.startswith(b"data")]
    return b"".join(lines) + b"data: " + json.dumps(payload).encode("ascii") + b"\n\n"


# ---------------------------------------------------------------- whole answers


def whole_mutants(data: bytes, fault: str, seed: str = "") -> Iterator[Mutant]:
    """All mutants of a whole JSON body by one fault."""
    if fault == "cut":
        yield from (Mutant(fault, "", data[:size]) for size in range(len(data.rstrip())))
    elif fault == "flip":
        yield from _flips(data, random.Random(seed), [])
    else:
        for path, changed in changes(read_json(data), fault):
            yield Mutant(fault, path, compact(changed).encode("utf-8", "surrogatepass"))


# ---------------------------------------------------------------- fields


def changes(payload: Any, fault: str) -> Iterator[tuple[str, Any]]:
    """(path of the field, the payload with that one change), for every field at every depth."""
    change = _without if fault == "remove" else _retyped
    for path, put in _fields(payload, "", lambda value: value):
        yield from ((path[0] + put_in, new) for put_in, new in change(path, put))


Put = Callable[[Any], Any]
Field = tuple[str, Any, Any]
"""(path, the container that holds the field, its key in it)"""


def _fields(value: Any, path: str, put: Put) -> Iterator[tuple[Field, Put]]:
    """Every field below `value`; `put` rebuilds the whole payload around a changed container."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        name = f"{path}.{key}" if isinstance(value, dict) else f"{path}[]"

        def put_item(new: Any, key: Any = key) -> Any:
            return put(_replaced(value, key, new))

        yield (name.removeprefix("."), value, key), put
        yield from _fields(item, name, put_item)


def _replaced(container: Any, key: Any, new: Any) -> Any:
    if isinstance(container, dict):
        return {**container, key: new}
    return [*container[:key], new, *container[key + 1 :]]


def _without(field: Field, put: Put) -> Iterator[tuple[str, Any]]:
    _, container, key = field
    if isinstance(container, dict):
        yield "", put({name: item for name, item in container.items() if name != key})
    else:
        yield "", put([*container[:key], *container[key + 1 :]])


def _retyped(field: Field, put: Put) -> Iterator[tuple[str, Any]]:
    _, container, key = field
    for value in OTHER_VALUES:
        if type(value) is not type(container[key]):
            yield f" = {json.dumps(value)}", put(_replaced(container, key, value))


def words(payload: Any) -> Iterator[str]:
    """The names of all fields in a payload, and the short texts: the vocabulary of its wire format."""
    if isinstance(payload, dict):
        yield from payload
        payload = list(payload.values())
    if isinstance(payload, list):
        for item in payload:
            yield from words(item)
    elif isinstance(payload, str) and len(payload) < 24:
        yield payload
