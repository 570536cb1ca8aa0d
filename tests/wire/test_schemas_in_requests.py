"""Each wire sends a tool's schema in the words that its service takes, and as it came where it fits already."""

from __future__ import annotations

from typing import Any

import pytest

from lessonlib.errors import InvalidRequest
from lessonlib.types import JSON, Message, Request, Tool
from lessonlib.wire import WIRES

OPEN: JSON = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "unit": {"const": "C"},
        "days": {"type": ["integer", "null"]},
    },
    "required": ["city"],
}
CLOSED: JSON = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WHERE = {
    "openai-responses": lambda tool: tool["parameters"],
    "openai-chat": lambda tool: tool["function"]["parameters"],
    "anthropic-messages": lambda tool: tool["input_schema"],
    "gemini-interactions": lambda tool: tool["parameters"],
    "gemini-generate-content": lambda tool: tool["functionDeclarations"][0]["parametersJsonSchema"],
}
OPENAI = ("openai-responses", "openai-chat")
GEMINI = ("gemini-interactions", "gemini-generate-content")


def sent(wire: str, parameters: JSON, strict: bool | None) -> Any:
    tool = Tool(name="get_weather", parameters=parameters, strict=strict)
    body = WIRES[wire]("m-1", api_key="k").encode(Request(messages=[Message.user("Hi")], tools=[tool])).body
    return WHERE[wire](body["tools"][0])


@pytest.mark.parametrize("strict", [None, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_schema_that_fits_goes_out_byte_for_byte(wire: str, strict: bool | None) -> None:
    schema = sent(wire, CLOSED, strict)
    assert schema == CLOSED
    assert list(schema) == list(CLOSED)


@pytest.mark.parametrize("wire", OPENAI)
def test_openai_strict_requires_everything_and_makes_the_optional_nullable(wire: str) -> None:
    schema = sent(wire, OPEN, True)
    assert sorted(schema["required"]) == ["city", "days", "unit"]
    assert schema["additionalProperties"] is False
    assert "minLength" not in schema["properties"]["city"]
    assert {"type": "null"} in schema["properties"]["unit"]["anyOf"]


@pytest.mark.parametrize("wire", [*OPENAI, "anthropic-messages"])
def test_without_strict_the_schema_is_the_persons_own(wire: str) -> None:
    assert sent(wire, OPEN, None) == OPEN


@pytest.mark.parametrize("wire", GEMINI)
def test_gemini_gets_the_subset_that_it_reads(wire: str) -> None:
    properties = sent(wire, OPEN, None)["properties"]
    assert properties["unit"]["enum"] == ["C"]
    assert "const" not in properties["unit"]


@pytest.mark.parametrize("wire", OPENAI)
def test_free_keys_cannot_be_strict_and_the_error_names_the_place(wire: str) -> None:
    free = {"type": "object", "properties": {"options": {"type": "object", "additionalProperties": {"type": "integer"}}}}
    with pytest.raises(InvalidRequest, match="options"):
        sent(wire, free, True)


@pytest.mark.parametrize("wire", GEMINI)
def test_gemini_gets_the_schema_of_the_answer_in_the_same_subset(wire: str) -> None:
    body = WIRES[wire]("m-1", api_key="k").encode(Request(messages="Hi", output_schema=OPEN)).body
    schema = body["generationConfig"]["responseJsonSchema"] if "contents" in body else body["response_format"]["schema"]
    assert schema == sent(wire, OPEN, None)
    assert schema["properties"]["unit"] == {"enum": ["C"], "type": "string"}
