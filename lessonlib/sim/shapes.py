"""What JSON a request may hold, as data: a shape is written like the value that it describes.

    str, int, float, bool, dict     a value of that type (an int is a number too; a bool is neither)
    object                          anything
    {"name": shape, ...}            an object; these fields have these shapes, others are not looked at
    Closed({...})                   an object with these fields and no others
    By("type", {word: {...}})       an object whose fields depend on the word in one of them
    Each(shape)                     an object whose values all have that shape (the properties of a schema)
    [shape]                         a list of such values
    words("auto", "none")           one of these texts
    (shape, shape, None)            one of several; None is null

`problems` walks a value and names what does not fit, with its path. A frontend has one shape for its request; a few rules of
each vendor (types, words, unknown fields) say what the walk found, so no other rule meets a list where a text belongs.

What this file does not do: no required fields, no ranges, nothing that depends on another field (rules/ does).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Shape = Any
Path = tuple[str | int, ...]


class Closed(dict[str, Shape]):
    """An object's fields, and no others."""


@dataclass(frozen=True)
class Each:
    """An object with values of one shape under any name."""

    value: Shape


@dataclass(frozen=True)
class By:
    """An object with a field that says what it is. `other` is the shape for words that are not listed. `required`: without
    that field nobody can read it."""

    field: str
    cases: Mapping[str, Shape]
    other: Shape = dict
    required: bool = False


def words(*allowed: str) -> frozenset[str]:
    """A text that is one of these."""
    return frozenset(allowed)


@dataclass(frozen=True, slots=True)
class Problem:
    """One misfit. kind: "type", "word" (a text that is none of the allowed ones), "field" (an unknown one) or "missing" (the
    field that says what an object is)."""

    kind: str
    path: Path
    expected: str
    value: Any

    @property
    def name(self) -> str:
        """The field's own name, without its path."""
        return str(self.path[-1]) if self.path else ""


def problems(value: Any, shape: Shape, path: Path = (), *, nulls: bool = True) -> Iterator[Problem]:
    """Everything in `value` that does not fit. nulls: a field that is null counts as one that is left out."""
    if isinstance(shape, tuple):
        fitting = next((one for one in shape if _fits(value, one)), ...)
        if fitting is ...:
            yield Problem("type", path, " or ".join(dict.fromkeys(_name(one) for one in shape)), value)
            return
        shape = fitting
    if not _fits(value, shape):
        yield Problem("type", path, _name(shape), value)
    elif isinstance(shape, frozenset):
        if value not in shape:
            yield Problem("word", path, ", ".join(f"'{word}'" for word in sorted(shape)), value)
    elif isinstance(shape, list):
        for place, entry in enumerate(value):
            yield from problems(entry, shape[0], (*path, place), nulls=nulls)
    elif isinstance(shape, (dict, By, Each)):
        yield from _in_object(value, shape, path, nulls)


def _in_object(value: Mapping[str, Any], shape: Shape, path: Path, nulls: bool) -> Iterator[Problem]:
    if isinstance(shape, By):
        word = value.get(shape.field)
        if word is None and shape.required:
            yield Problem("missing", (*path, shape.field), "", None)
        shape = shape.cases.get(word, shape.other) if isinstance(word, str) else shape.other
    if not isinstance(shape, (dict, Each)):
        return
    for name, inner in value.items():
        if isinstance(shape, dict) and name not in shape:
            if isinstance(shape, Closed):
                yield Problem("field", (*path, name), "", inner)
        elif inner is not None or not nulls:
            yield from problems(inner, shape.value if isinstance(shape, Each) else shape[name], (*path, name), nulls=nulls)


def _fits(value: Any, shape: Shape) -> bool:
    """Whether the outermost type is right."""
    if shape is None or shape is object:
        return shape is object or value is None
    if shape is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if shape is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(shape, frozenset):
        return isinstance(value, str)
    if isinstance(shape, (dict, By, Each)):
        return isinstance(value, dict)
    return isinstance(value, list if isinstance(shape, list) else shape)


_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "a boolean", dict: "an object", None: "null"}


def _name(shape: Shape) -> str:
    if isinstance(shape, frozenset):
        return "a string"
    if isinstance(shape, list):
        return "an array"
    if isinstance(shape, (dict, By, Each)):
        return "an object"
    return _NAMES.get(shape, "any value")


def kind_of(value: Any) -> str:
    """The JSON type of a value, for messages."""
    if value is None:
        return "null"
    return _name([object] if isinstance(value, list) else type(value))


def brackets(path: Path) -> str:
    """A path as OpenAI and Google write it: `input[0].content`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{shown(step)}" for step in path)
    return text.removeprefix(".")


def dots(path: Path) -> str:
    """A path as Anthropic writes it: `messages.0.content`."""
    return ".".join(shown(step) for step in path)


def shown(value: Any) -> str:
    """The beginning of a value, for messages."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


# ---------------------------------------------------------------- JSON Schema

SCHEMA: dict[str, Shape] = {}
"""The keywords that matter here, each with its type by the specification (draft 2020-12)."""
_SCHEMAS: list[Shape] = [SCHEMA]
SCHEMA |= {
    "type": (str, [str]),
    "properties": Each((SCHEMA, bool)),
    "required": [str],
    "additionalProperties": (SCHEMA, bool),
    "items": (SCHEMA, bool),
    "prefixItems": _SCHEMAS,
    "enum": [(str, int, float, bool, dict, [object], None)],
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "allOf": _SCHEMAS,
    "$defs": Each(SCHEMA),
    "definitions": Each(SCHEMA),
    "$ref": str,
    "description": str,
    "title": str,
    "pattern": str,
    "format": str,
    "minimum": float,
    "maximum": float,
    "exclusiveMinimum": float,
    "exclusiveMaximum": float,
    "multipleOf": float,
    "minLength": int,
    "maxLength": int,
    "minItems": int,
    "maxItems": int,
}
TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})


def schema_problem(schema: Any) -> str | None:
    """Why a value is no JSON Schema, or None."""
    found = next(problems(schema, SCHEMA, nulls=False), None)
    if found is not None:
        return f"{brackets(found.path) or 'schema'} should be {found.expected}, not {kind_of(found.value)}"
    return _unknown_type(schema, ())


def _unknown_type(schema: Any, path: Path) -> str | None:
    """A `type` that is no word of JSON Schema, wherever it stands. Google's own schemas write them in capitals."""
    if not isinstance(schema, dict):
        return None
    kinds = schema.get("type")
    if kinds == []:
        return f"{brackets((*path, 'type'))} should name at least one type"
    for kind in [kinds] if isinstance(kinds, str) else kinds or []:
        if kind.lower() not in TYPES:
            return f"{brackets((*path, 'type'))}: '{shown(kind)}' is no JSON type"
    inner: list[tuple[Path, Any]] = [((*path, "items"), schema.get("items"))]
    for keyword in ("properties", "$defs", "definitions"):
        inner += [((*path, keyword, name), value) for name, value in schema.get(keyword, {}).items()]
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner += [((*path, keyword, place), value) for place, value in enumerate(schema.get(keyword, []))]
    return next((found for where, value in inner if (found := _unknown_type(value, where))), None)
