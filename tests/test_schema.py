"""Schemas in the words of each service: nothing refused, nothing lost in silence, nothing of the original changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib.errors import InvalidRequest
from lessonlib.schema import (
    ANTHROPIC_STRICT,
    GEMINI_JSON,
    GEMINI_OPENAPI,
    INLINE,
    MAX_NODES,
    OPENAI_STRICT,
    Target,
    adapt,
    allows_null,
    resolve,
    schema_at,
    without_nulls,
)
from lessonlib.tools import bind, tool
from tests import signatures
from tests.signatures import GOOD, OPEN, SIGNATURES
from tests.timing import seconds

TARGETS = [OPENAI_STRICT, ANTHROPIC_STRICT, GEMINI_OPENAPI, GEMINI_JSON, INLINE]
CLOSED = [OPENAI_STRICT, ANTHROPIC_STRICT]
by_name = lambda value: getattr(value, "__name__", getattr(value, "name", None))  # noqa: E731


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema; names of properties are no keywords."""
    yield schema
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            for item in value.values():
                yield from nodes(item)
        elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            yield from nodes(value)
        elif key in ("anyOf", "prefixItems"):
            for item in value:
                yield from nodes(item)


def adapted(schema: dict[str, Any], target: Target) -> dict[str, Any]:
    before = copy.deepcopy(schema)
    made = adapt(schema, target).schema
    assert schema == before, "what a person wrote is never changed"
    return made


def first(schema: dict[str, Any], target: Target) -> dict[str, Any]:
    """What becomes of the property `x`."""
    root = {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": {"D": {"type": "boolean"}}}
    return adapted(root, target)["properties"]["x"]


# ---------------------------------------------------------------- every signature, every target


@pytest.mark.parametrize("function", SIGNATURES, ids=by_name)
@pytest.mark.parametrize("target", TARGETS, ids=by_name)
def test_each_signature_uses_only_the_words_of_the_target(function: Any, target: Target) -> None:
    schema = tool(function).parameters
    try:
        made = adapted(schema, target)
    except InvalidRequest:
        cannot = OPEN if target.closed else {signatures.recursive} if target.inline else set()
        cannot = cannot | (OPEN - {signatures.anything, signatures.no_hints} if target is GEMINI_OPENAPI else set())
        assert function in cannot
        return
    for node in nodes(made):
        assert node.keys() <= target.keywords, node
        assert "$ref" not in node or len(node) == 1
        assert not (target.closed and node.get("type") == "object" and node["additionalProperties"] is not False)
        assert not (target.required and "properties" in node and node["required"] != list(node["properties"]))
        assert target.required or not isinstance(node.get("type"), list)
    assert set(made.get("$defs", {})) == {node["$ref"][8:] for node in nodes(made) if "$ref" in node}, "no more, no less"


EXPRESSIBLE = [
    (target, *case)
    for target in (*CLOSED, GEMINI_JSON, INLINE)
    for case in GOOD
    if not (target.closed and case[0] in OPEN) and not (target.inline and case[0] is signatures.recursive)
]


@pytest.mark.parametrize(
    ("target", "function", "arguments", "expected"),
    EXPRESSIBLE,
    ids=[f"{by_name(t)}-{by_name(f)}" for t, f, *_ in EXPRESSIBLE],
)
def test_what_a_model_may_send_is_still_allowed(target: Target, function: Any, arguments: Any, expected: Any) -> None:
    """And what a strict service makes of it (every field there, nulls for what is not given) binds to the same."""
    schema = tool(function).parameters
    made = adapted(schema, target)
    sent = without_nulls(arguments, schema)
    if target.required:
        sent = with_nulls(sent, made, made)
        assert dict(bind(function, sent).arguments) == expected
    if function is signatures.unique:
        sent = {"names": ["a"]}
    jsonschema.validate(sent, made, jsonschema.Draft202012Validator)


def with_nulls(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """The value as a strict service gives it: a null for every property that is not there."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"][8:]]
    if isinstance(value, list):
        return [with_nulls(item, schema.get("items", {}), root) for item in value]
    if not isinstance(value, dict):
        return value
    for branch in schema.get("anyOf", []):
        found = root["$defs"][branch["$ref"][8:]] if "$ref" in branch else branch
        if value.keys() <= found.get("properties", {}).keys():
            return with_nulls(value, found, root)
    return {name: with_nulls(value.get(name), item, root) for name, item in schema.get("properties", {}).items()}


# ---------------------------------------------------------------- OpenAI strict


def test_strict_closes_every_object_and_requires_every_property() -> None:
    made = adapted(
        {"type": "object", "properties": {"a": obj(b={"type": "string"}), "c": {"type": "integer"}}}, OPENAI_STRICT
    )
    assert made == {
        "type": "object",
        "properties": {
            "a": {
                "type": ["object", "null"],
                "properties": {"b": {"type": "string"}},
                "required": ["b"],
                "additionalProperties": False,
            },
            "c": {"type": ["integer", "null"]},
        },
        "required": ["a", "c"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("schema", "nullable"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}),
        ({"type": "string", "enum": ["a"]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        (
            {"const": "a", "description": "d"},
            {"description": "d", "anyOf": [{"const": "a", "type": "string"}, {"type": "null"}]},
        ),
        ({"enum": ["a", None]}, {"enum": ["a", None], "type": "string"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"$ref": "#/$defs/N"}, {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}),
    ],
)
def test_optional_becomes_nullable(schema: dict[str, Any], nullable: dict[str, Any]) -> None:
    root = {"type": "object", "properties": {"x": schema}, "$defs": {"N": {"type": "string"}}}
    assert adapted(root, OPENAI_STRICT)["properties"]["x"] == nullable


def test_a_described_use_of_a_type_is_written_out_and_keeps_its_description() -> None:
    """A `$ref` beside other words is refused; the description is worth more than the reference."""
    schema = obj(goal={"$ref": "#/$defs/Harbour", "description": "Goal"}, other={"$ref": "#/$defs/Harbour"})
    schema["$defs"] = {"Harbour": obj(name={"type": "string"})}
    made = adapted(schema, OPENAI_STRICT)
    assert made["properties"]["goal"]["description"] == "Goal"
    assert made["properties"]["goal"]["properties"] == {"name": {"type": "string"}}
    assert made["properties"]["other"] == {"$ref": "#/$defs/Harbour"}
    assert all(node.get("additionalProperties") is False for node in nodes(made) if node.get("type") == "object")


def test_a_recursive_type_keeps_its_reference() -> None:
    made = adapted(tool(signatures.recursive).parameters, OPENAI_STRICT)
    assert made["properties"]["tree"] == {"$ref": "#/$defs/Branch"}
    assert made["$defs"]["Branch"]["properties"]["branches"]["items"] == {"$ref": "#/$defs/Branch"}


def test_a_described_use_of_a_recursive_type_inside_itself() -> None:
    schema = {"$ref": "#/$defs/K", "$defs": {"K": obj(next={"$ref": "#/$defs/K", "description": "The next one."})}}
    made = adapted(schema, OPENAI_STRICT)
    assert made["type"] == "object"
    assert all("$ref" not in node or len(node) == 1 for node in nodes(made))


def test_limits_that_strict_mode_refuses_go_into_the_description_and_the_report() -> None:
    result = adapt(obj(code={"type": "string", "minLength": 2, "description": "The code."}), OPENAI_STRICT)
    assert result.schema["properties"]["code"] == {"type": "string", "description": "The code. (minLength: 2)"}
    assert result.notes == ["code: minLength: 2: only said in the description, OpenAI strict mode cannot express it"]


def test_a_default_is_said_but_is_no_loss() -> None:
    """Every field is required there, so a default has no meaning; that null stands for it does."""
    result = adapt({"type": "object", "properties": {"n": {"type": "integer", "default": 5}}}, OPENAI_STRICT)
    assert result.schema["properties"]["n"] == {"type": ["integer", "null"], "description": "(default: 5)"}
    assert result.notes == []


@pytest.mark.parametrize("target", CLOSED, ids=by_name)
@pytest.mark.parametrize(
    "free", [{"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "object"},
             {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True}],
)  # fmt: skip
def test_free_keys_are_an_error_that_names_the_parameter(free: dict[str, Any], target: Target) -> None:
    """Never an object without any keys: the model could then say nothing at all."""
    with pytest.raises(InvalidRequest, match=r"schema of options: .*free keys.*strict=True"):
        adapt(obj(name={"type": "string"}, options=free), target)


@pytest.mark.parametrize("target", CLOSED, ids=by_name)
def test_a_place_without_a_type_is_an_error(target: Target) -> None:
    for schema in ({}, True, {"description": "anything"}):
        with pytest.raises(InvalidRequest, match=r"schema of x: .*needs a type"):
            adapt(obj(x=schema), target)
    with pytest.raises(InvalidRequest, match=r"schema of items\[\]"):
        adapt(obj(items={"type": "array", "items": {}}), target)


@pytest.mark.parametrize("target", CLOSED, ids=by_name)
def test_the_outermost_schema_must_be_an_object(target: Target) -> None:
    for schema in ({"type": "string"}, {"anyOf": [obj(a={"type": "string"})]}):
        with pytest.raises(InvalidRequest, match="outermost"):
            adapt(schema, target)


def test_an_empty_object_is_closed_not_refused() -> None:
    assert adapted({"type": "object", "properties": {}}, OPENAI_STRICT) == {
        "type": "object", "properties": {}, "required": [], "additionalProperties": False,
    }  # fmt: skip


# ---------------------------------------------------------------- references


def test_a_type_that_is_used_twice_is_no_cycle() -> None:
    schema = obj(leaves={"$ref": "#/$defs/Time"}, arrives={"$ref": "#/$defs/Time"})
    schema["$defs"] = {"Time": {"type": "object", "properties": {"hour": {"type": "integer"}}}}
    written = {"type": "object", "properties": {"hour": {"type": "integer"}}}
    assert adapted(schema, INLINE)["properties"] == {"leaves": written, "arrives": written}


@pytest.mark.parametrize("target", [INLINE, GEMINI_OPENAPI], ids=by_name)
def test_a_cycle_is_an_error_that_names_it(target: Target) -> None:
    direct = {"$ref": "#/$defs/K", "$defs": {"K": obj(kids={"type": "array", "items": {"$ref": "#/$defs/K"}})}}
    with pytest.raises(InvalidRequest, match=r"kids\[\]: the type refers to itself \(K -> K\)"):
        adapt(direct, target)
    around = {"$ref": "#/$defs/A", "$defs": {"A": obj(b={"$ref": "#/$defs/B"}), "B": obj(a={"$ref": "#/$defs/A"})}}
    with pytest.raises(InvalidRequest, match=r"A -> B -> A"):
        adapt(around, target)


@pytest.mark.parametrize("target", TARGETS, ids=by_name)
def test_diamonds_do_not_blow_up(target: Target) -> None:
    """Twenty layers that use the next one twice are a million objects when they are written out."""
    layers = {
        f"L{n}": obj(l={"$ref": f"#/$defs/L{n + 1}"}, r={"$ref": f"#/$defs/L{n + 1}"}) if n < 20 else {"type": "string"}
        for n in range(21)
    }

    def work() -> None:
        if target.inline:
            with pytest.raises(InvalidRequest, match=f"grows beyond {MAX_NODES}"):
                adapt({"$ref": "#/$defs/L0", "$defs": layers}, target)
        else:
            assert len(json.dumps(adapted({"$ref": "#/$defs/L0", "$defs": layers}, target))) < 10_000

    assert seconds(work, enough=1) < 1


@pytest.mark.parametrize("target", TARGETS, ids=by_name)
def test_deep_nesting_is_an_error_not_a_crash(target: Target) -> None:
    deep: dict[str, Any] = {"type": "string"}
    wide: dict[str, Any] = {"type": "string"}
    for _ in range(3000):
        deep = obj(x=deep)
        wide = {"anyOf": [wide]}
    for schema in (deep, obj(x=wide)):
        with pytest.raises(InvalidRequest, match=r"levels|deeply"):
            adapt(schema, target)


def test_a_reference_to_nothing_is_an_error() -> None:
    for ref in ("#/$defs/None", "https://example.org/schema.json"):
        with pytest.raises(InvalidRequest, match="refers to nothing"):
            adapt(obj(x={"$ref": ref}), OPENAI_STRICT)


def test_a_schema_may_refer_to_its_own_top() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    assert adapted(schema, OPENAI_STRICT)["properties"]["next"] == {"$ref": "#"}
    with pytest.raises(InvalidRequest, match=r"grows beyond|refers to itself"):
        adapt(schema, INLINE)


def test_references_in_a_circle_are_an_error_not_a_loop() -> None:
    schema = {**obj(x={"allOf": [{"$ref": "#/$defs/A"}]}), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}
    with pytest.raises(InvalidRequest, match="only refers to itself"):
        adapt(schema, OPENAI_STRICT)
    with pytest.raises(InvalidRequest, match="refers to itself"):
        adapt({**obj(x={"$ref": "#/$defs/A"}), "$defs": schema["$defs"]}, INLINE)


def test_older_definitions_are_understood() -> None:
    schema = {**obj(x={"$ref": "#/definitions/N"}), "definitions": {"N": {"type": "string"}}}
    assert adapted(schema, OPENAI_STRICT)["$defs"] == {"N": {"type": "string"}}
    assert adapted(schema, INLINE)["properties"]["x"] == {"type": "string"}


# ---------------------------------------------------------------- one keyword after the other


def test_what_one_vendor_refuses_is_said_otherwise() -> None:
    """`$schema`, `const`, a list of types: words that the OpenAPI subset does not know."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"m": {"type": ["string", "null"]}, "k": {"const": "a"}},
        "required": ["k"],
    }
    assert adapted(schema, GEMINI_OPENAPI) == {
        "type": "object",
        "properties": {"m": {"type": "string", "nullable": True}, "k": {"type": "string", "enum": ["a"]}},
        "required": ["k"],
    }
    assert adapted(schema, GEMINI_JSON)["properties"] == {
        "m": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "k": {"type": "string", "enum": ["a"]},
    }


@pytest.mark.parametrize(
    ("schema", "target", "expected"),
    [
        ({"oneOf": [{"type": "string"}, {"type": "integer"}], "discriminator": {"propertyName": "x"}}, OPENAI_STRICT,
         {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"allOf": [{"type": "string"}], "description": "d"}, OPENAI_STRICT, {"type": "string", "description": "d"}),
        ({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}, INLINE,
         {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}),
        ({"allOf": [{"$ref": "#/$defs/D"}], "description": "d"}, OPENAI_STRICT, {"type": "boolean", "description": "d"}),
        ({"type": ["string"]}, ANTHROPIC_STRICT, {"type": "string"}),
        ({"type": ["string", "null"], "enum": ["a", None]}, ANTHROPIC_STRICT,
         {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        (True, INLINE, {}),
        ({"type": ["string", "null"], "maxLength": 3, "description": "d"}, INLINE,
         {"description": "d", "anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]}),
        ({"enum": [1, 2]}, GEMINI_OPENAPI, {"type": "integer", "description": "(one of [1, 2])"}),
        ({"type": "string", "enum": ["a", None]}, GEMINI_OPENAPI, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}, GEMINI_OPENAPI,
         {"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": True}),
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}, GEMINI_OPENAPI,
         {"type": "integer", "minimum": 1, "maximum": 9}),
        ({"type": "number", "exclusiveMinimum": 0}, GEMINI_OPENAPI,
         {"type": "number", "description": "(exclusiveMinimum: 0)"}),
        ({"type": "number", "exclusiveMinimum": 0}, OPENAI_STRICT, {"type": "number", "exclusiveMinimum": 0}),
        ({"type": "string", "format": "date"}, GEMINI_OPENAPI, {"type": "string", "description": "(format: date)"}),
        ({"type": "string", "format": "date-time"}, GEMINI_OPENAPI, {"type": "string", "format": "date-time"}),
        ({"type": "string", "format": "uri"}, OPENAI_STRICT, {"type": "string", "description": "(format: uri)"}),
        ({"type": "string", "format": "uri"}, ANTHROPIC_STRICT, {"type": "string", "format": "uri"}),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3}, ANTHROPIC_STRICT,
         {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "(maxItems: 3)"}),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, ANTHROPIC_STRICT,
         {"type": "array", "items": {"type": "string"}, "description": "(minItems: 2)"}),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, OPENAI_STRICT,
         {"type": "array", "items": {"type": "string"}, "description": "(uniqueItems: True)"}),
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "maxItems": 2}, OPENAI_STRICT,
         {"type": "array", "items": {"type": "number"}, "maxItems": 2}),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, OPENAI_STRICT,
         {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, GEMINI_JSON,
         {"type": "array", "prefixItems": [{"type": "string"}]}),
        ({"type": "string", "examples": ["a"], "x-internal": 1, "deprecated": True}, OPENAI_STRICT, {"type": "string"}),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, ANTHROPIC_STRICT,
         {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}),
        ({"const": 3}, ANTHROPIC_STRICT, {"const": 3, "type": "integer"}),
        ({"type": "string", "enum": ["a", ""]}, GEMINI_OPENAPI,
         {"type": "string", "enum": ["a"], "description": "(or empty)"}),
        ({"type": "string", "enum": ["a", ""]}, GEMINI_JSON, {"type": "string", "enum": ["a"], "description": "(or empty)"}),
        ({"type": "string", "enum": ["a", ""]}, ANTHROPIC_STRICT, {"type": "string", "enum": ["a", ""]}),
        ({"type": "array"}, GEMINI_OPENAPI, {"type": "array", "items": {}}),
        ({"type": "array"}, INLINE, {"type": "array", "items": {}}),
        ({"const": None}, ANTHROPIC_STRICT, {"const": None, "type": "null"}),
    ],
)  # fmt: skip
def test_each_keyword(schema: dict[str, Any], target: Target, expected: dict[str, Any]) -> None:
    assert first(schema, target) == expected


@pytest.mark.parametrize("target", [GEMINI_OPENAPI, GEMINI_JSON, ANTHROPIC_STRICT, OPENAI_STRICT, INLINE])
def test_a_required_property_that_is_not_described_is_left_out(target: Target) -> None:
    """Gemini: "required[1]: property is not defined". An `allOf` may also require one twice."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b", "a"]}
    assert adapted(schema, target)["required"] == ["a"]


@pytest.mark.parametrize("target", [ANTHROPIC_STRICT, OPENAI_STRICT])
def test_a_list_of_anything_needs_a_type_in_a_strict_schema(target: Target) -> None:
    with pytest.raises(InvalidRequest, match=r"schema of x\[\]: .* needs a type"):
        adapt(obj(x={"type": "array"}), target)


@pytest.mark.parametrize("word", ["not", "if", "patternProperties", "dependentRequired"])
def test_logic_that_nobody_takes_is_an_error(word: str) -> None:
    with pytest.raises(InvalidRequest, match=f"schema of x: .*no '{word}'"):
        adapt(obj(x={"type": "string", word: {}}), GEMINI_JSON)


def test_a_contradiction_in_allof_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match="two different things about 'type'"):
        adapt(obj(x={"allOf": [{"type": "string"}, {"type": "integer"}]}), INLINE)


def test_a_schema_that_allows_nothing_is_an_error() -> None:
    with pytest.raises(InvalidRequest):
        adapt(obj(x=False), INLINE)


def test_properties_may_be_called_like_keywords() -> None:
    names = ("title", "type", "default", "const", "format", "minLength", "properties", "$ref", "enum", "x-y")
    schema = obj(**{name: {"type": "string"} for name in names})
    for target in TARGETS:
        assert list(adapted(schema, target)["properties"]) == list(names)


# ---------------------------------------------------------------- nulls


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "null"}, True), ({"type": "string"}, False), ({"type": ["string", "null"]}, True), ({"const": None}, True),
        ({"const": 1}, False), ({"enum": [1, None]}, True), ({"enum": [1]}, False), ({}, True), (True, True), (False, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True), ({"oneOf": [{"type": "string"}]}, False),
        ({"$ref": "#/$defs/N"}, True), ({"$ref": "#/$defs/Loop"}, False), ({"properties": {}}, False),
        ({"description": "anything"}, True),
    ],
)  # fmt: skip
def test_where_null_is_a_value(schema: Any, expected: bool) -> None:
    root = {"$defs": {"N": {"type": ["string", "null"]}, "Loop": {"$ref": "#/$defs/Loop"}}}
    assert allows_null(schema, root) is expected


def test_nulls_that_can_only_mean_not_given_are_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {
            "needed": {"type": "string"},
            "optional": {"type": "integer"},
            "nullable": {"type": ["integer", "null"]},
            "inner": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
        },
        "required": ["needed"],
        "$defs": {"Inner": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    value = {
        "needed": None,
        "optional": None,
        "nullable": None,
        "inner": {"a": None},
        "list": [{"a": None}],
        "unknown": None,
    }
    assert without_nulls(value, schema) == {"needed": None, "nullable": None, "inner": {}, "list": [{}], "unknown": None}


# ---------------------------------------------------------------- finding things


def test_the_piece_of_a_schema_for_a_place() -> None:
    schema = tool(signatures.model_list).parameters
    assert schema_at(schema, ("harbours", 1, "berths")) == {"default": 1, "minimum": 1, "type": "integer"}
    assert schema_at(schema, ("home", "name")) == {"description": "As on the chart.", "type": "string"}
    assert schema_at(schema, ("harbours", 0))["type"] == "object"
    assert schema_at(schema, ("nowhere",))["type"] == "object", "as near as it can be found"
    assert schema_at(tool(signatures.mapping).parameters, ("options", "any")) == {"type": "integer"}


def test_references_are_resolved_inside_the_document_only() -> None:
    root = {"$defs": {"a/b": {"type": "string"}}}
    assert resolve(root, "#/$defs/a~1b") == {"type": "string"}
    assert resolve(root, "#") is root
    assert resolve(root, "#/$defs/none") is None
    assert resolve(root, "other.json#/x") is None


# ---------------------------------------------------------------- any schema at all


LEAVES = st.sampled_from([
    {"type": "string"}, {"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}, {"type": ["string", "null"]},
    {"enum": ["a", None]}, {"const": 1}, {"type": "string", "format": "date", "maxLength": 3}, {"$ref": "#/$defs/D"},
    {"$ref": "#/$defs/D", "description": "used"}, {"type": "boolean", "default": False}, {}, {"type": "object"},
])  # fmt: skip
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda union: {"anyOf": union}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda properties, needed: {"type": "object", "properties": properties, "required": sorted(properties)[:needed]},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.integers(0, 3),
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=500, deadline=None)
@given(schema=SCHEMAS, target=st.sampled_from(TARGETS))
def test_adapting_any_schema_ends_in_the_targets_words_or_in_a_clear_error(schema: dict[str, Any], target: Target) -> None:
    root = {**obj(x=copy.deepcopy(schema)), "$defs": {"D": obj(d={"type": "string"})}}
    try:
        made = adapted(root, target)
    except InvalidRequest as error:
        made = {"message": str(error)}
    if "message" in made:
        assert made["message"].startswith("schema of ")
        return
    jsonschema.Draft202012Validator.check_schema(made)
    assert all(node.keys() <= target.keywords for node in nodes(made))
    assert adapted(made, target) == made, "adapting again changes nothing"
