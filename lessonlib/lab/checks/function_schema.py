"""Lesson 09: `my_schema(function) -> dict`, the JSON Schema of a function's arguments.

What is asked: an object schema with a property for each parameter; those without a default are required; no other
property is allowed; `str`, `int`, `float`, `bool`, `list[...]`, `X | None`, `Literal[...]` and pydantic models are
understood; any other type raises TypeError.

A schema is judged by what it lets pass: arguments that fit must, others must not. So it may be written in any style.

What this check does not do: no descriptions, no docstrings, and no words of a vendor's strict mode.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from typing import Any, Literal

from pydantic import BaseModel

from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, plain, raised


class Address(BaseModel):
    """A model for a parameter."""

    street: str
    number: int = 1


def get_weather(city: str) -> str:
    """One text."""
    return city


def hold_seats(train: str, seats: int = 1) -> str:
    """A number with a default."""
    return f"{train} {seats}"


def refund(booking: str, amount: float, confirmed: bool) -> str:
    """Three types."""
    return f"{booking} {amount} {confirmed}"


def label(names: list[str]) -> str:
    """A list."""
    return ", ".join(names)


def note(text: str, until: str | None = None) -> str:
    """A text, or none."""
    return f"{text} {until}"


def ticket(kind: Literal["single", "return"]) -> str:
    """One of two words."""
    return kind


def send_to(address: Address) -> str:
    """A model."""
    return address.street


def remind(when: datetime.date) -> str:
    """A type that the exercise does not name."""
    return str(when)


FUNCTIONS: dict[str, Callable[..., str]] = {
    function.__name__: function for function in (get_weather, hold_seats, refund, label, note, ticket, send_to, remind)
}
TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list[str]": list[str],
    "list[int]": list[int],
}
GOOD: dict[str, Any] = {"str": "x", "int": 3, "float": 1.5, "bool": True, "list[str]": ["x"], "list[int]": [1, 2]}
BAD: dict[str, Any] = {"str": 3, "int": "3", "float": "x", "bool": 1, "list[str]": [1], "list[int]": ["x"]}


# ---------------------------------------------------------------- what a schema lets pass


def allows(schema: Any, value: Any, root: Any = None) -> bool:
    """Whether a value fits a JSON Schema, as far as such schemas need: the words that pydantic writes for arguments."""
    root = schema if root is None else root
    if not isinstance(schema, dict):
        return bool(schema)
    if "$ref" in schema:
        return allows(_followed(schema["$ref"], root), value, root)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices and not any(allows(choice, value, root) for choice in choices):
        return False
    if not all(allows(part, value, root) for part in schema.get("allOf", ())):
        return False
    if "enum" in schema and not any(_equal(value, word) for word in schema["enum"]):
        return False
    if "const" in schema and not _equal(value, schema["const"]):
        return False
    return _type_fits(schema.get("type"), value) and _inside_fits(schema, value, root)


def _followed(reference: str, root: Any) -> Any:
    found = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _type_fits(kind: Any, value: Any) -> bool:
    if kind is None:
        return True
    kinds = kind if isinstance(kind, list) else [kind]
    return any(_is(each, value) for each in kinds)


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "integer":
            return type(value) is int
        case "number":
            return type(value) in (int, float)
        case _:
            names = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}
            return type(value) is names.get(kind)


def _inside_fits(schema: dict[str, Any], value: Any, root: Any) -> bool:
    if type(value) is list and "items" in schema:
        return all(allows(schema["items"], item, root) for item in value)
    if type(value) is not dict:
        return True
    known, extra = (
        schema.get("properties", {}),
        schema.get("additionalProperties", schema.get("unevaluatedProperties", True)),
    )
    if any(name not in value for name in schema.get("required", ())):
        return False
    if not all(allows(schema.get("propertyNames", True), name, root) for name in value):
        return False
    return all(allows(known.get(name, extra), item, root) for name, item in value.items())


# ---------------------------------------------------------------- observe


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """Whether the schema lets each of the values pass; or that it is none, or was refused."""
    function = FUNCTIONS[given["function"]] if "function" in given else _made(given["parameters"])
    try:
        schema = call("the function", learner, function)
    except TypeError as error:
        if "function" not in given or given["function"] != "remind":
            raise
        return {"refused": type(error).__name__}
    schema = plain(schema, depth=40, bare=True)
    if type(schema) is not dict or schema.get("type") != "object":
        return {"schema": "is no object schema"}
    return {"passes": [allows(schema, value) for value in given["values"]]}


def _made(parameters: list[list[Any]]) -> Callable[..., str]:
    """A function with these parameters: [name, type's name, has a default]."""
    import inspect

    def function(**named: Any) -> str:
        return str(named)

    signature = []
    for name, kind, optional in parameters:
        default = GOOD[kind] if optional else inspect.Parameter.empty
        parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=TYPES[kind])
        signature.append(parameter)
    function.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    function.__annotations__ = {name: TYPES[kind] for name, kind, _ in parameters}
    function.__name__ = "made"
    return function


# ---------------------------------------------------------------- probes


def _probe(
    function: str, cases: list[tuple[dict[str, Any], bool, str]], *signs: tuple[Sign, str], fed: str
) -> Iterator[Probe]:
    """One probe per value, so that the message shows the value that is judged wrongly. cases: (arguments, whether they fit,
    the belief behind a wrong judgement)."""
    for value, fits, belief in cases:
        words = f"{'lets' if fits else 'does not let'} {value!r} pass"
        yield Probe(
            {"function": function, "values": [value]},
            {"passes": [fits]},
            fed,
            f"the arguments {value!r}",
            belief,
            signs,
            expected_words=f"a schema that {words}",
            found_words=_shown,
        )


def _shown(seen: Seen) -> str:
    if "passes" not in seen.value:
        return str(seen.value)
    return f"it {'lets' if seen.value['passes'][0] else 'does not let'} them pass"


def _no_object(seen: Seen) -> bool:
    return not seen.raised and "schema" in seen.value


NO_OBJECT: tuple[Sign, str] = (_no_object, "no_object")


def probes(chance: random.Random) -> Iterator[Probe]:
    """One type at a time, then functions by chance."""
    yield from _probe(
        "get_weather",
        [
            ({"city": "Oslo"}, True, "right_is_refused"),
            ({"city": 3}, False, "types_forgotten"),
            ({}, False, "nothing_required"),
            ({"city": "Oslo", "unit": "C"}, False, "extras_allowed"),
        ],
        NO_OBJECT,
        fed="def get_weather(city: str)",
    )
    yield from _probe(
        "hold_seats",
        [
            ({"train": "G1", "seats": 2}, True, "everything_is_text"),
            ({"train": "G1"}, True, "all_required"),
            ({"train": "G1", "seats": "2"}, False, "everything_is_text"),
            ({"train": "G1", "seats": 1.5}, False, "int_is_number"),
        ],
        NO_OBJECT,
        fed="def hold_seats(train: str, seats: int = 1)",
    )
    yield from _probe(
        "refund",
        [
            ({"booking": "L", "amount": 1.5, "confirmed": True}, True, "everything_is_text"),
            ({"booking": "L", "amount": 1, "confirmed": True}, True, "float_refuses_whole"),
            ({"booking": "L", "amount": 1.5, "confirmed": 1}, False, "bool_is_int"),
        ],
        fed="def refund(booking: str, amount: float, confirmed: bool)",
    )
    yield from _larger()
    yield Probe(
        {"function": "remind", "values": []},
        {"refused": "TypeError"},
        "def remind(when: datetime.date)",
        "the type that is not named",
        "unknown_is_text",
        (),
        expected_words="TypeError: nobody said how a date is written",
        found_words=lambda seen: "a schema",
    )
    for _ in range(20):
        yield from _by_chance(chance)


def _larger() -> Iterator[Probe]:
    unknown = (raised("TypeError", "KeyError", "AttributeError"), "type_not_understood")
    yield from _probe(
        "label",
        [
            ({"names": ["a", "b"]}, True, "list_is_text"),
            ({"names": "a"}, False, "list_is_text"),
            ({"names": [1]}, False, "items_forgotten"),
        ],
        unknown,
        fed="def label(names: list[str])",
    )
    yield from _probe(
        "note",
        [
            ({"text": "x", "until": "noon"}, True, "optional_is_null"),
            ({"text": "x", "until": None}, True, "optional_is_not_nullable"),
            ({"text": "x"}, True, "optional_is_required"),
            ({"text": "x", "until": 3}, False, "optional_is_anything"),
        ],
        unknown,
        fed="def note(text: str, until: str | None = None)",
    )
    yield from _probe(
        "ticket",
        [({"kind": "single"}, True, "literal_refused"), ({"kind": "weekly"}, False, "literal_is_text")],
        unknown,
        fed='def ticket(kind: Literal["single", "return"])',
    )
    yield from _probe(
        "send_to",
        [
            ({"address": {"street": "Quai 1", "number": 2}}, True, "model_refused"),
            ({"address": {"number": 2}}, False, "model_is_any_object"),
            ({"address": "Quai 1"}, False, "model_is_any_object"),
        ],
        unknown,
        fed="def send_to(address: Address), a pydantic model with street: str and number: int = 1",
    )


def _by_chance(chance: random.Random) -> Iterator[Probe]:
    names = chance.sample(("city", "days", "train", "kind", "when", "x"), k=chance.randrange(1, 4))
    parameters: list[list[Any]] = [[name, chance.choice(sorted(TYPES)), chance.random() < 0.4] for name in names]
    good = {name: GOOD[kind] for name, kind, _ in parameters}
    wrong = chance.choice(parameters)
    cases = [(good, True), ({**good, wrong[0]: BAD[wrong[1]]}, False)]
    for name, _, optional in parameters:
        cases.append(({key: value for key, value in good.items() if key != name}, optional))
    fed = (
        "def made(" + ", ".join(f"{name}: {kind}{' = ...' if optional else ''}" for name, kind, optional in parameters) + ")"
    )
    for value, fits in cases:
        yield Probe(
            {"parameters": parameters, "values": [value]},
            {"passes": [fits]},
            fed,
            f"the arguments {value!r}",
            "stuck",
            expected_words=f"a schema that {'lets' if fits else 'does not let'} them pass",
            found_words=_shown,
        )


check = Check.of("schema", observe, probes)
