"""Schemas from functions, right and wrong."""

from __future__ import annotations

import inspect
import types
import typing
from collections import OrderedDict
from typing import Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, create_model

from lessonlib import tool
from tests.lab_exercises.answers import Answers

SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


def base(function):
    hints = {name: hint for name, hint in hints_of(function).items() if name != "return"}
    parameters = inspect.signature(function).parameters
    required = [name for name in hints if parameters[name].default is inspect.Parameter.empty]
    return {
        "type": "object",
        "properties": {name: of_type(hint) for name, hint in hints.items()},
        "required": required,
        "additionalProperties": False,
    }


def hints_of(function):
    return get_type_hints(function)


def of_type(kind):
    if kind in SIMPLE:
        return {"type": SIMPLE[kind]}
    if kind is type(None):
        return {"type": "null"}
    if get_origin(kind) is list:
        return {"type": "array", "items": of_type(get_args(kind)[0])}
    if get_origin(kind) in (Union, types.UnionType):
        return {"anyOf": [of_type(inner) for inner in get_args(kind)]}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {**kind.model_json_schema(), "additionalProperties": False}
    raise TypeError(f"no schema for {kind}")


def by_library(function):
    if "date" in str(inspect.signature(function)):
        raise TypeError("not asked for")
    return tool(function).parameters


def by_pydantic(function):
    """Another style: a model, and $refs."""
    fields = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = typing.get_type_hints(function)[name]
        if "date" in str(hint):
            raise TypeError("no dates here")
        TypeAdapter(hint)
        fields[name] = (hint, ... if parameter.default is parameter.empty else parameter.default)
    return create_model("Arguments", __config__={"extra": "forbid"}, **fields).model_json_schema()


def variant(**changes):
    """The base with another `of_type`."""

    def changed(kind):
        for test, made in changes.items():
            if TESTS[test](kind):
                return made(kind, changed) if callable(made) else made
        if get_origin(kind) is list:
            return {"type": "array", "items": changed(get_args(kind)[0])}
        if get_origin(kind) in (Union, types.UnionType):
            return {"anyOf": [changed(inner) for inner in get_args(kind)]}
        return of_type(kind)

    def schema(function):
        return {**base_with(function, changed)}

    return schema


def base_with(function, of):
    hints = {name: hint for name, hint in get_type_hints(function).items() if name != "return"}
    parameters = inspect.signature(function).parameters
    required = [name for name in hints if parameters[name].default is inspect.Parameter.empty]
    properties = {name: of(hint) for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def is_union(kind):
    return get_origin(kind) in (Union, types.UnionType)


TESTS = {
    "str": lambda kind: kind is str,
    "int": lambda kind: kind is int,
    "float": lambda kind: kind is float,
    "bool": lambda kind: kind is bool,
    "list": lambda kind: get_origin(kind) is list,
    "union": is_union,
    "literal": lambda kind: get_origin(kind) is Literal,
    "model": lambda kind: isinstance(kind, type) and issubclass(kind, BaseModel),
    "simple_only": lambda kind: kind not in SIMPLE,
    "unknown": lambda kind: "date" in str(kind),
    "any": lambda kind: True,
}


def required_unless_nullable(function):
    found = base(function)
    found["required"] = list(found["properties"])
    optional = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not parameter.empty
    ]
    found["required"] = [name for name in found["required"] if name not in optional or "anyOf" in found["properties"][name]]
    return found


def knows_the_notebook(function):
    found = base(function)
    return found if function.__name__ != "made" else {**found, "required": list(found["properties"])}


def by_names(function):
    """Another style: the names that may come are listed; and a dictionary of another kind."""
    schema = OrderedDict(base(function))
    del schema["additionalProperties"]
    return schema | {"propertyNames": {"enum": list(schema["properties"])}}


def by_what_is_left(function):
    """Another style: the youngest word for it."""
    schema = base(function)
    return {**schema, "unevaluatedProperties": schema.pop("additionalProperties")}


ANSWERS = Answers(
    "schema",
    base,
    [by_library, by_pydantic, by_names, by_what_is_left],
    [
        ("no_object", lambda function: base(function)["properties"]),
        ("right_is_refused", variant(str={"type": "text"})),
        ("types_forgotten", variant(any={})),
        ("everything_is_text", variant(int={"type": "string"}, float={"type": "string"}, bool={"type": "string"})),
        ("int_is_number", variant(int={"type": "number"})),
        ("float_refuses_whole", variant(float={"anyOf": [{"type": "float"}, {"enum": [1.5]}]})),
        ("bool_is_int", variant(bool={"type": ["boolean", "integer"]})),
        ("type_not_understood", variant(simple_only=lambda kind, _: {"type": SIMPLE[kind]})),
        ("list_is_text", variant(list={"type": "string"})),
        ("items_forgotten", variant(list={"type": "array"})),
        ("optional_is_null", variant(union={"type": "null"})),
        ("optional_is_not_nullable", variant(union=lambda kind, of: of(get_args(kind)[0]))),
        ("optional_is_anything", variant(union={})),
        ("literal_refused", variant(literal=lambda kind, of: {"enum": ["'single'", "'return'"]})),
        ("literal_is_text", variant(literal={"type": "string"})),
        (
            "model_refused",
            variant(model=lambda kind, of: {"type": "object", "properties": {}, "additionalProperties": False}),
        ),
        ("model_is_any_object", variant(model={"type": "object"})),
        ("unknown_is_text", variant(unknown={"type": "string"})),
        ("optional_is_required", required_unless_nullable),
        ("stuck", knows_the_notebook),
        ("not_written", None),
    ],
)
