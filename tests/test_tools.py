"""Tools from functions: the schema, the strict binding, and the three kinds of answers to a faulty call."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any
from unittest.mock import Mock

import jsonschema
import pytest
from pydantic import BaseModel, Field

from lessonlib import schema
from lessonlib.errors import InvalidRequest
from lessonlib.tools import (
    BadArguments,
    BadFormat,
    CallFault,
    FunctionTool,
    UnknownTool,
    bad_format,
    bind,
    tool,
    unknown_tool,
)
from lessonlib.types import Request, Tool
from tests import signatures
from tests.fakes import broken_call
from tests.signatures import BAD, GOOD, OPEN, SIGNATURES

by_name = lambda function: getattr(function, "__name__", "")  # noqa: E731


def get_weather(city: str, days: Annotated[int, Field(ge=1, le=7)] = 1) -> str:
    """Weather forecast for a city.

    From the national service.

    Args:
        city: Name of the city.
        days: How many days.

    Returns:
        A sentence.
    """
    return f"{city} {days}"


# ---------------------------------------------------------------- the schema


def test_a_function_gives_name_description_and_schema() -> None:
    made = tool(get_weather)
    assert (made.name, made.description) == ("get_weather", "Weather forecast for a city.\n\nFrom the national service.")
    assert made.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city."},
            "days": {"type": "integer", "description": "How many days.", "minimum": 1, "maximum": 7, "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_tool_is_still_the_function_and_goes_into_a_request() -> None:
    made = tool(get_weather)
    assert made("Oslo", days=2) == "Oslo 2"
    assert made.function is get_weather
    request = Request(messages="Hello", tools=[made])
    assert request.tools[0] is made
    assert request.replace(system="x").tools[0] is made


def test_stored_it_is_a_plain_tool() -> None:
    """The function is not part of what is stored."""
    made = tool(get_weather)
    again = Tool.model_validate_json(made.model_dump_json())
    assert again == Tool(name=made.name, description=made.description, parameters=made.parameters)


def test_the_decorator_takes_options() -> None:
    @tool(name="forecast", description="Short.", strict=True, timeout=5)
    def f(city: str) -> str:
        return city

    assert (f.name, f.description, f.strict, f.timeout) == ("forecast", "Short.", True, 5)
    assert f("x") == "x"
    assert tool(get_weather, name="again").name == "again"


def test_there_are_forty_signatures() -> None:
    assert len(SIGNATURES) == len({by_name(each) for each in SIGNATURES}) == 40


@pytest.mark.parametrize("function", SIGNATURES, ids=by_name)
def test_each_schema_is_valid_json_schema_without_noise(function: Any) -> None:
    made = tool(function)
    jsonschema.Draft202012Validator.check_schema(made.parameters)
    assert made.parameters["type"] == "object"
    titled = [each for each in _objects(made.parameters) if isinstance(each.get("title"), str)]
    assert [each for each in titled if each["title"] not in ("X", "Y")] == [], "older pydantics title a named tuple's fields"


@pytest.mark.parametrize(("function", "arguments"), [(f, a) for f, a, _ in GOOD], ids=[by_name(f) for f, _, _ in GOOD])
def test_what_binds_is_valid_by_the_schema_too(function: Any, arguments: dict[str, Any]) -> None:
    """Schema and binding say the same, nulls for "not given" aside."""
    made = tool(function)
    given = schema.without_nulls(arguments, made.parameters)
    if function is signatures.unique:
        given = {"names": ["a"]}  # a set takes a list with doubles; the schema rightly asks for none
    jsonschema.validate(given, made.parameters, jsonschema.Draft202012Validator)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a JSON value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def test_a_default_without_a_json_form_is_left_out_of_the_schema() -> None:
    marker = object()

    def f(x: Any = marker) -> bool:
        return x is marker

    made = tool(f)
    assert made.parameters["properties"] == {"x": {}}
    bound = made.bind({})
    assert f(*bound.args, **bound.kwargs)


def test_names_that_pydantic_refuses_as_fields_are_good_names() -> None:
    def f(_x: int, schema: str, model_config: str, json: bool = False) -> tuple[Any, ...]:
        return _x, schema, model_config, json

    bound = bind(f, {"_x": 1, "schema": "s", "model_config": "m", "json": True})
    assert f(*bound.args, **bound.kwargs) == (1, "s", "m", True)


def test_an_alias_is_the_name_that_the_model_sees() -> None:
    def f(from_: Annotated[str, Field(alias="from")]) -> str:
        return from_

    made = tool(f)
    assert list(made.parameters["properties"]) == ["from"]
    assert made.bind({"from": "Oslo"}).arguments == {"from_": "Oslo"}


def test_a_field_as_the_default_is_a_description_not_a_value() -> None:
    def f(days: int = Field(default=3, ge=1)) -> int:
        return days

    made = tool(f)
    assert made.parameters["properties"]["days"] == {"type": "integer", "default": 3, "minimum": 1}
    bound = made.bind({})
    assert f(*bound.args, **bound.kwargs) == 3


def test_partials_methods_callables_and_wrappers() -> None:
    class Station:
        def read(self, place: str) -> str:
            return f"at {place}"

        def __call__(self, place: str) -> str:
            return place

    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    assert list(tool(functools.partial(get_weather, days=2)).parameters["required"]) == ["city"]
    assert tool(Station().read).name == "read"
    assert tool(Station(), name="station").parameters["required"] == ["place"]
    assert tool(logged(get_weather)).parameters == tool(get_weather).parameters


def test_a_mock_takes_whatever_is_named() -> None:
    mock = Mock(return_value="x")
    made = tool(mock, name="mock")
    bound = made.bind({"anything": 1})
    made(*bound.args, **bound.kwargs)
    mock.assert_called_once_with(anything=1)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (lambda x: x, "no name for a tool"),
        (inspect.unwrap(type("C", (), {"f": lambda self, x: x}).f), "no name|cannot be a tool"),
        (print, "no name|cannot be a tool"),
    ],
)
def test_what_cannot_be_a_tool_says_so_when_it_is_made(target: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        tool(target)


def unknown_type(x: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821
    ...


def all_positional(*names: str) -> None: ...


class NoSchema:
    pass


def no_schema(x: NoSchema) -> None: ...


class Station:
    def read(self, place: str) -> str:
        return place


@pytest.mark.parametrize("target", [unknown_type, all_positional, no_schema, Station.read, threading.get_ident])
def test_hints_that_have_no_schema_say_so_when_the_tool_is_made(target: Any) -> None:
    with pytest.raises(TypeError, match="cannot be a tool"):
        tool(target)


# ---------------------------------------------------------------- models


class Query(BaseModel):
    """What to look for.

    In the archive.
    """

    text: str
    limit: int = Field(default=5, ge=1)


def test_a_parameter_that_no_schema_can_say_is_named() -> None:
    def broken(city: str, key: Callable[[int], int]) -> str:
        return city

    with pytest.raises(TypeError, match="cannot be a tool: no JSON Schema can say what key is"):
        tool(broken)


@dataclass
class Order:
    """An order."""

    dish: str
    count: int = 1
    extras: list[str] = field(default_factory=list)


def test_a_dataclass_keeps_the_types_of_its_fields() -> None:
    made = tool(Order)
    assert {name: each["type"] for name, each in made.parameters["properties"].items()} == {
        "dish": "string",
        "count": "integer",
        "extras": "array",
    }
    assert made.parameters["required"] == ["dish"]
    bound = made.bind({"dish": "soup"})
    assert Order(*bound.args, **bound.kwargs) == Order("soup", 1, [])
    with pytest.raises(BadArguments):
        made.bind({"dish": 5})


def test_a_model_is_a_tool_whose_result_is_the_instance() -> None:
    made = tool(Query)
    assert (made.name, made.description) == ("Query", "What to look for.\n\nIn the archive.")
    assert made.parameters["required"] == ["text"]
    bound = made.bind({"text": "x"})
    assert made.function(*bound.args, **bound.kwargs) == Query(text="x")


def test_a_model_may_describe_the_arguments_of_a_function() -> None:
    @tool(arguments=Query)
    def search(query: Query) -> int:
        """Search."""
        return query.limit

    assert (search.name, search.description) == ("search", "Search.")
    assert search.parameters == tool(Query).parameters
    bound = search.bind({"text": "x"})
    assert search.function(*bound.args, **bound.kwargs) == 5
    with pytest.raises(TypeError, match="one parameter"):
        tool(get_weather, arguments=Query)


def test_a_recursive_model_has_its_properties_at_the_top() -> None:
    assert set(tool(signatures.Branch).parameters) >= {"type", "properties", "$defs"}


# ---------------------------------------------------------------- strict binding


@pytest.mark.parametrize(("function", "arguments", "expected"), GOOD, ids=[by_name(f) for f, _, _ in GOOD])
def test_good_arguments_arrive_as_the_right_types(
    function: Any, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = copy.deepcopy(arguments)
    bound = bind(function, arguments)
    assert dict(bound.arguments) == expected
    assert {key: type(value) for key, value in bound.arguments.items()} == {k: type(v) for k, v in expected.items()}
    assert arguments == before, "what was sent is not changed"


@pytest.mark.parametrize(
    ("function", "arguments", "words"), BAD, ids=[f"{by_name(f)}-{number}" for number, (f, _, _) in enumerate(BAD)]
)
def test_bad_arguments_are_refused_with_the_place_and_the_reason(
    function: Any, arguments: dict[str, Any], words: str
) -> None:  # fmt: skip
    with pytest.raises(BadArguments) as caught:
        bind(function, arguments)
    assert str(caught.value).startswith(f"{function.__name__} was not run, its arguments do not fit:\n- ")
    assert words in str(caught.value)


def test_the_answer_shows_the_piece_of_the_schema() -> None:
    with pytest.raises(BadArguments) as caught:
        bind(signatures.nested_models, {"voyage": {"start": {"name": 1}, "end": {"name": "x"}}})
    assert str(caught.value).splitlines()[1] == (
        "- voyage.start.name: Input should be a valid string (sent: 1). "
        'Schema: {"description": "As on the chart.", "type": "string"}'
    )


def test_many_problems_are_told_as_five() -> None:
    with pytest.raises(BadArguments) as caught:
        bind(signatures.text_list, {"names": list(range(30))})
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 + 5 + 1
    assert lines[-1] == "- and 25 more"


def test_a_huge_value_is_quoted_in_part() -> None:
    with pytest.raises(BadArguments) as caught:
        bind(signatures.text_list, {"names": "x" * 10_000})
    assert len(str(caught.value)) < 1000


def test_half_a_character_is_refused_in_words_that_can_be_sent() -> None:
    with pytest.raises(BadArguments, match="lone surrogate") as caught:
        bind(signatures.one_text, {"city": "\ud83d"})
    str(caught.value).encode("utf-8")
    with pytest.raises(BadArguments) as caught:
        bind(signatures.all_scalars, {"text": "x", "number": "\ud83d", "ratio": 1, "flag": 1})
    str(caught.value).encode("utf-8")


def test_coercion_is_what_a_tool_must_ask_for() -> None:
    @tool(coerce=True)
    def f(number: int) -> int:
        return number

    assert f.bind({"number": "5"}).arguments == {"number": 5}
    with pytest.raises(BadArguments):
        bind(f.function, {"number": "5"})


def test_large_whole_floats_stay_floats() -> None:
    assert bind(signatures.anything, {"value": [1e300, 2.0**60, 3.0]}).arguments["value"] == [1e300, 2.0**60, 3]


# ---------------------------------------------------------------- the three answers


def test_three_kinds_of_faults() -> None:
    format_fault = bad_format(broken_call("tide", "{", problem="the arguments are not valid JSON: EOF at column 1"))
    assert isinstance(format_fault, BadFormat)
    assert str(format_fault) == (
        "tide was not run: the arguments are not valid JSON: EOF at column 1. "
        "Call it again with its arguments as one JSON object."
    )
    assert str(unknown_tool("tides", ["tide", "clock"])) == "There is no tool 'tides'. The tools are: tide, clock."
    assert str(unknown_tool("tides", [])) == "There is no tool 'tides'. There are no tools."
    assert isinstance(unknown_tool("x", []), UnknownTool)
    assert all(
        issubclass(kind, CallFault) and issubclass(kind, ValueError) for kind in (BadFormat, UnknownTool, BadArguments)
    )


# ---------------------------------------------------------------- strict tools


@pytest.mark.parametrize("function", SIGNATURES, ids=by_name)
def test_a_strict_tool_that_cannot_be_strict_says_so_when_it_is_made(function: Any) -> None:
    if function in OPEN:
        with pytest.raises(InvalidRequest, match=r"schema of .*strict"):
            tool(function, strict=True)
    else:
        assert tool(function, strict=True).strict


def test_an_open_dict_is_named_with_the_way_out() -> None:
    def set_lamp(name: str, options: dict[str, int]) -> str:
        return name

    with pytest.raises(InvalidRequest, match=r"schema of options: .*free keys; use .*without strict=True"):
        tool(set_lamp, strict=True)
    assert list(tool(set_lamp).parameters["properties"]) == ["name", "options"]


# ---------------------------------------------------------------- the official packages


@pytest.mark.parametrize("function", [each for each in SIGNATURES if each not in OPEN], ids=by_name)
def test_openais_own_strict_converter_has_nothing_to_add(function: Any) -> None:
    strict = pytest.importorskip("openai.lib._pydantic", reason="the openai package is not installed")
    adapted = schema.adapt(tool(function).parameters, schema.OPENAI_STRICT).schema
    again = copy.deepcopy(adapted)
    assert strict._ensure_strict_json_schema(again, path=(), root=again) == adapted
    jsonschema.Draft202012Validator.check_schema(adapted)


@pytest.mark.parametrize("function", SIGNATURES, ids=by_name)
def test_openais_types_take_the_tool(function: Any) -> None:
    openai = pytest.importorskip("openai.types.responses.function_tool", reason="the openai package is not installed")
    made = tool(function)
    fields = {"name": made.name, "description": made.description, "parameters": made.parameters}
    assert openai.FunctionTool.model_validate({"type": "function", "strict": False, **fields}).parameters == made.parameters


@pytest.mark.parametrize("function", SIGNATURES, ids=by_name)
def test_anthropics_tool_helper_takes_the_function_and_our_schema(function: Any) -> None:
    anthropic = pytest.importorskip("anthropic", reason="the anthropic package is not installed")
    made = tool(function)
    helper = anthropic.beta_tool(lambda **given: "x", name=made.name, description="x", input_schema=made.parameters)
    assert helper.to_dict()["input_schema"] == made.parameters


@pytest.mark.parametrize("function", [each for each in SIGNATURES if each not in OPEN], ids=by_name)
def test_anthropics_own_converter_has_nothing_to_move(function: Any) -> None:
    """What the official converter would put into a description is there already."""
    transform = pytest.importorskip("anthropic.lib._parse._transform", reason="the anthropic package is not installed")
    adapted = schema.adapt(tool(function).parameters, schema.ANTHROPIC_STRICT).schema
    theirs = transform.transform_schema(copy.deepcopy(adapted))
    assert json.dumps(theirs).count("description") == json.dumps(adapted).count("description")
    assert theirs.get("properties", {}).keys() == adapted["properties"].keys()


@pytest.mark.parametrize("function", SIGNATURES, ids=by_name)
def test_googles_types_take_both_forms(function: Any) -> None:
    types = pytest.importorskip("google.genai.types", reason="the google-genai package is not installed")
    made = tool(function)
    json_form = schema.adapt(made.parameters, schema.GEMINI_JSON).schema
    types.FunctionDeclaration(name=made.name, description="x", parameters_json_schema=json_form)
    if function in OPEN | {signatures.recursive}:
        return  # the older form has no words for free keys, nor for a type that refers to itself
    openapi = schema.adapt(made.parameters, schema.GEMINI_OPENAPI).schema
    types.FunctionDeclaration(name=made.name, description="x", parameters=types.Schema.model_validate(openapi))


# ---------------------------------------------------------------- odds and ends


def test_a_function_tool_survives_copying() -> None:
    made = tool(get_weather)
    renamed = made.model_copy(update={"name": "other"})
    assert (renamed.name, renamed("x")) == ("other", "x 1")
    assert isinstance(renamed, FunctionTool)
    assert copy.copy(made)("x") == "x 1"


def test_a_plain_tool_can_be_pickled() -> None:
    plain = Tool(name="x")
    assert pickle.loads(pickle.dumps(plain)) == plain
