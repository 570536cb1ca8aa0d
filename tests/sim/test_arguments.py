"""What the simulated model takes from a prompt, and that it fits any schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib import Client, Message, Request, Tool, collect
from lessonlib.sim import SimTransport, Simulator
from lessonlib.sim.arguments import cities, for_schema, sums, value_for
from lessonlib.sim.ask import Ask
from lessonlib.sim.model import wanted_calls
from lessonlib.sim.shapes import schema_problem
from lessonlib.wire import WIRES
from tests.sim.requests import MODELS


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What is the weather in Beijing (北京)?", ["Beijing"]),
        ("What is the weather in 北京 (Beijing)?", ["北京"]),
        ("Compare 北京（Beijing）with Paris (Paris).", ["北京", "Paris"]),
        ("Rome or Oslo (or Lima)?", ["Rome", "Oslo", "Lima"]),
        ("What is the weather in Springfield?", ["Springfield"]),
        ("How are you?", []),
    ],
)
def test_a_place_with_its_name_in_another_script_is_one_place(prompt: str, expected: list[str]) -> None:
    assert cities(prompt) == expected


def test_a_train_is_no_rain() -> None:
    weather = Tool(name="get_weather", description="Weather of a city", parameters={"type": "object", "properties": {}})
    asked = {
        prompt: bool(wanted_calls(Ask(wire="", model="", messages=[Message.user(prompt)], tools=[weather])))
        for prompt in ("May I take a dog on the train?", "Will it rain in Paris?")
    }
    assert asked == {"May I take a dog on the train?": False, "Will it rain in Paris?": True}


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("compute 17*23", ["17*23"]),
        ("再算一下 17*23", ["17*23"]),
        ("What is (17 + 4) × 2, and 2**10?", ["(17 + 4) * 2", "2**10"]),
        ("12 x 3 − 4", ["12 * 3 - 4"]),
        ("2^10", ["2**10"]),
        ("in 2026", []),
        ("-3*4", ["-3*4"]),
        ("from 5-3 on", ["5-3"]),
        ("What is 17 times 23?", ["17 * 23"]),
        ("12 plus 5, and 10 divided by 4 minus 1", ["12 + 5", "10 / 4 - 1"]),
        ("3 multiplied by (4 plus 1)", ["3 * (4 + 1)"]),
        ("15% of 80", ["15 / 100 * 80"]),
        ("1,000 + 2,500", ["1000 + 2500"]),
        ("What happened on 2026-12-01?", []),
    ],
)
def test_sums_come_with_plain_operators(prompt: str, expected: list[str]) -> None:
    assert sums(prompt) == expected


def test_the_prompt_is_read_before_anything_is_made_up() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"}, "date": {"type": "string", "format": "date"}, "nights": {"type": "integer"},
            "unit": {"enum": ["celsius", "fahrenheit"]}, "booking": {"type": "string"}, "note": {"type": "string"},
        },
        "required": ["city", "date", "nights", "booking"],
    }  # fmt: skip
    asked = "Change booking AB-12 in 厦门 to 2026-12-24 for 3 nights, in fahrenheit."
    assert for_schema(schema, asked) == {
        "city": "厦门", "date": "2026-12-24", "nights": 3, "unit": "fahrenheit", "booking": "AB-12"
    }  # fmt: skip


def test_an_optional_property_needs_its_word_not_its_letters() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "to": {"type": "string"}}}
    assert for_schema(schema, "What day is today?") == {}
    assert for_schema(schema, "Send it to Oslo") == {"to": "example to"}


# ---------------------------------------------------------------- any schema


def bounded(low: str, high: str, kind: str) -> Any:
    numbers = st.integers(-50, 50) if kind == "integer" else st.floats(-50, 50, allow_nan=False)
    return st.tuples(numbers, numbers).map(
        lambda pair: {"type": kind, low: min(pair), high: max(pair) + (2 if low.startswith("excl") else 0)}
    )


leaves = st.one_of(
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": "string"}, {"type": "number"}, {"type": "integer"}, {},
                     {"type": ["string", "null"]}, {"const": 7}, {"type": "string", "format": "date-time"}]),
    st.lists(st.one_of(st.text(max_size=4), st.integers(), st.none()), min_size=1, max_size=3).map(lambda e: {"enum": e}),
    st.tuples(st.integers(0, 9), st.integers(0, 9)).map(
        lambda pair: {"type": "string", "minLength": min(pair), "maxLength": max(pair)}),
    bounded("minimum", "maximum", "integer"),
    bounded("minimum", "maximum", "number"),
    bounded("exclusiveMinimum", "exclusiveMaximum", "integer"),
    st.integers(1, 9).map(lambda step: {"type": "integer", "multipleOf": step, "minimum": 3}),
)  # fmt: skip


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.text("abcxyz", min_size=1, max_size=3), inner, max_size=3)
    objects = st.tuples(named, st.booleans()).map(
        lambda made: {"type": "object", "properties": made[0], "required": list(made[0]) if made[1] else [],
                      "additionalProperties": False})  # fmt: skip
    lists = st.tuples(inner, st.integers(0, 3)).map(
        lambda made: {"type": "array", "items": made[0], "minItems": made[1], "maxItems": made[1] + 1})  # fmt: skip
    return st.one_of(objects, lists, st.lists(inner, min_size=1, max_size=2).map(lambda some: {"anyOf": some}))


@settings(max_examples=200, deadline=None)
@given(st.recursive(leaves, deeper, max_leaves=8), st.text(max_size=20))
def test_a_value_fits_its_schema(schema: dict[str, Any], prompt: str) -> None:
    assert schema_problem(schema) is None
    jsonschema.validate(value_for(schema, prompt), schema)


NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                   "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "required": ["v", "next", "kids"],
    "additionalProperties": False,
}  # fmt: skip
WHOLE: list[dict[str, Any]] = [
    {"$defs": {"node": NODE}, "$ref": "#/$defs/node"},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
               {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
    {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
    {"type": "object", "required": ["free"]},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    {"type": "object", "properties": {"a/b": {"$ref": "#/properties/c~1d"}, "c/d": {"const": 1}}, "required": ["a/b"]},
]  # fmt: skip


@pytest.mark.parametrize("schema", WHOLE, ids=str)
def test_references_unions_and_tuples(schema: dict[str, Any]) -> None:
    jsonschema.validate(value_for(schema), schema)


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#"}, {"$ref": "#/nowhere"}, {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]},
     {"anyOf": [{"$ref": "#"}]}, {"type": "string", "minLength": 10**9}, {"type": "array", "minItems": 10**9, "items": {}},
     {"type": "number", "minimum": 5, "maximum": 1}, {"type": "integer", "multipleOf": 0}, {"enum": []}, {"allOf": [{}]},
     {"type": "number", "exclusiveMinimum": 1e299}],
    ids=str,
)  # fmt: skip
def test_a_schema_that_nothing_fits_gives_something_small(schema: dict[str, Any]) -> None:
    assert len(json.dumps(value_for(schema))) < 100_000


TRIP = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "season": {"enum": ["spring", "autumn"]},
        "legs": {"type": "array", "items": {
            "type": "object",
            "properties": {"port": {"type": "string"}, "hours": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            "required": ["port", "hours"], "additionalProperties": False}},
    },
    "required": ["city", "season", "legs"],
    "additionalProperties": False,
}  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [False, True])
def test_structured_output_fits_its_schema_on_every_wire(wire: str, stream: bool) -> None:
    request = Request(messages=[Message.user("A trip to Lima in autumn.")], output_schema=TRIP)
    with Client(WIRES[wire](MODELS[wire], api_key="k"), transport=SimTransport(Simulator())) as client:
        response = collect(client.stream(request)) if stream else client.generate(request)
    value = json.loads(response.text)
    jsonschema.validate(value, TRIP)
    assert (value["city"], value["season"]) == ("Lima", "autumn")
