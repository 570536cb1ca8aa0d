"""Values that are valid for a JSON Schema, taken from the prompt where it names them.

A simulated model must call the tools that it is offered, whatever they are. For each property it looks into the prompt
first (a city, a sum, a date, one of the enum's words), and makes up a plain valid value otherwise. The same prompt and
schema give the same value.

What this file does not do: `pattern` (a valid string for any regular expression is a project of its own), `not`, `if`,
`contains`, `patternProperties`, `dependentRequired`, `minProperties`. A schema that needs one of them gets a value that
breaks it, which is what a real model does now and then. Schemas come checked (shapes.schema_problem): keywords have their
types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from lessonlib.types import JSON

CITIES = ("Beijing", "Shanghai", "Guangzhou", "Paris", "London", "Berlin", "Tokyo", "Madrid", "Rome", "Lima", "Oslo",
          "北京", "上海", "广州", "厦门", "青岛")  # fmt: skip

_SUM = re.compile(r"(?:(?<![\w)])-)?\(?\d[\d\s.,()]*(?:(?:\*\*|[*×x+\-−/÷^%])[\s(]*\d[\d\s.()]*)+")
_SPOKEN = (
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (re.compile(r"(?<=\d)\s*%\s+of\s+(?=\d)"), " / 100 * "),
    (re.compile(r"(?<=[\d)])\s+plus\s+(?=[\d(])"), " + "),
    (re.compile(r"(?<=[\d)])\s+minus\s+(?=[\d(])"), " - "),
    (re.compile(r"(?<=[\d)])\s+(?:times|multiplied by)\s+(?=[\d(])"), " * "),
    (re.compile(r"(?<=[\d)])\s+divided by\s+(?=[\d(])"), " / "),
)
"""Arithmetic as people write it, and as signs."""
_PLACE = re.compile(r"\b(?:in|to|from|for|of|at)\s+([A-Z][\w-]+(?:\s[A-Z][\w-]+)?)")
_TWO_NAMES = re.compile(rf"({'|'.join(CITIES)})\s?[(（](?:{'|'.join(CITIES)})[)）]")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_NUMBER = re.compile(r"(?<![\w.-])-?\d{1,15}(?:\.\d{1,15})?(?![\w-])")
_QUOTED = re.compile(r"[\"“「'`]([^\"”」'`]{1,80})[\"”」'`]")
_CODE = re.compile(r"\b[A-Z]{1,3}[- ]?\d+\b")

FORMATS = {
    "date-time": "2026-12-01T09:00:00Z", "date": "2026-12-01", "time": "09:00:00Z", "duration": "PT1H",
    "email": "sam@example.com", "uri": "https://example.com/", "uuid": "6f1d1c0e-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.com",
}  # fmt: skip

DEPTH = 3
"""From this depth on what may be null is null, and lists are as short as they may be: recursive schemas end there."""
NODES = 2000
"""A recursive schema can ask for endless values; after this many they are empty."""
LONGEST = 2000
"""Characters or entries that a schema gets by asking for them (`minLength`, `minItems`)."""


def cities(prompt: str) -> list[str]:
    """The places that a prompt names, in its order. A name in brackets behind another is the same place, written again."""
    prompt = _TWO_NAMES.sub(r"\1", prompt)
    found = {prompt.find(city): city for city in CITIES if city in prompt}
    for match in _PLACE.finditer(prompt):
        if not any(city in match[1] for city in found.values()):
            found[match.start(1)] = match[1]
    return [found[place] for place in sorted(found)]


def sums(prompt: str) -> list[str]:
    """The arithmetic that a prompt contains, in signs or in words, with plain operators. A date is none."""
    for words, signs in _SPOKEN:
        prompt = words.sub(signs, prompt)
    plain = str.maketrans({"×": "*", "x": "*", "−": "-", "÷": "/", "^": "**"})
    return [match[0].strip(" .,").translate(plain) for match in _SUM.finditer(_DATE.sub("", prompt))]


def for_schema(schema: JSON, prompt: str = "", place: int = 0) -> JSON:
    """An object that is valid for an object schema. `place`: which of several cities or sums in the prompt to take."""
    value = value_for(schema, prompt, place)
    return value if isinstance(value, dict) else {}


def value_for(schema: JSON, prompt: str = "", place: int = 0) -> Any:
    """A value that is valid for a schema of any type."""
    return _Maker(schema, prompt, place).make(schema, "")


def named(word: str, prompt: str) -> bool:
    """Whether the prompt contains a word. Chinese has no spaces, so there any place counts."""
    if not word.strip():
        return False
    pattern = re.escape(word.lower())
    return re.search(rf"(?<![a-z0-9]){pattern}(?![a-z0-9])" if word.isascii() else pattern, prompt.lower()) is not None


class _Maker:
    """One schema, one prompt."""

    def __init__(self, root: JSON, prompt: str, place: int) -> None:
        self.root, self.prompt, self.place = root, prompt, place
        self.depth = self.nodes = 0

    def make(self, schema: Any, name: str) -> Any:
        """A value for `schema`; `name` is the property's name, which often says more than its type."""
        self.nodes += 1
        if self.nodes > NODES or self.depth > 4 * DEPTH:
            return None
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._choice(schema["enum"])
        makers: Mapping[str, Any] = {
            "object": self._object, "array": self._array, "string": self._string,
            "integer": lambda schema, name: self._number(schema, whole=True),
            "number": lambda schema, name: self._number(schema, whole=False),
            "boolean": lambda schema, name: True, "null": lambda schema, name: None,
        }  # fmt: skip
        return makers.get(_type_of(schema), self._string)(schema, name)

    def _resolved(self, schema: Any) -> JSON:
        """`$ref`, `allOf` and the first useful branch of `anyOf` and `oneOf` put in place."""
        for _ in range(20):
            if not isinstance(schema, dict):
                return {}
            if "$ref" in schema:
                schema = {**self._target(schema["$ref"]), **{k: v for k, v in schema.items() if k != "$ref"}}
            elif schema.get("allOf"):
                schema = self._merged(schema)
            elif schema.get("anyOf") or schema.get("oneOf"):
                branches = schema.get("anyOf") or schema["oneOf"]
                deep = self.depth > DEPTH
                real = [branch for branch in branches if self._is_null(branch) is deep] or branches
                rest = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf")}
                schema = {**rest, **real[0]} if isinstance(real[0], dict) else rest
            else:
                return schema
        return {}

    def _merged(self, schema: JSON) -> JSON:
        """`allOf`: later branches add properties and requirements to earlier ones."""
        merged: JSON = {}
        branches = [self._target(branch["$ref"]) if "$ref" in branch else branch for branch in schema["allOf"]]
        for branch in [*branches, {k: v for k, v in schema.items() if k != "allOf"}]:
            joined = {
                "properties": {**merged.get("properties", {}), **branch.get("properties", {})},
                "required": [*merged.get("required", []), *branch.get("required", [])],
            }
            merged = {**merged, **branch, **{key: value for key, value in joined.items() if value}}
        return merged

    def _is_null(self, branch: Any) -> bool:
        if isinstance(branch, dict) and "$ref" in branch:
            branch = self._target(branch["$ref"])
        return not isinstance(branch, dict) or branch.get("type") == "null" or branch.get("enum") == [None]

    def _target(self, ref: str) -> JSON:
        target: Any = self.root
        for step in ref.lstrip("#/").split("/") if ref not in ("#", "#/") else ():
            target = target.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, dict) else {}
        return target if isinstance(target, dict) else {}

    # ------------------------------------------------------------ by type

    def _object(self, schema: JSON, name: str) -> JSON:
        required = schema.get("required", [])
        properties = dict(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False:
            properties |= {key: {} for key in required if key not in properties}
        self.depth += 1
        try:
            return {
                key: self.make(value, key)
                for key, value in properties.items()
                if key in required or (self.depth == 1 and self._asked_for(key, value))
            }
        finally:
            self.depth -= 1

    def _asked_for(self, key: str, schema: Any) -> bool:
        """Whether the prompt says something about an optional property."""
        enum = self._resolved(schema).get("enum", [])
        return named(key, self.prompt) or any(isinstance(word, str) and named(word, self.prompt) for word in enum)

    def _array(self, schema: JSON, name: str) -> list[Any]:
        least = min(max(0, schema.get("minItems", 0)), LONGEST)
        first = schema.get("prefixItems", [])
        count = max(least, len(first), 0 if self.depth > DEPTH or schema.get("items") is False else 1)
        count = min(count, max(least, schema.get("maxItems", count)))
        self.depth += 1
        try:
            made = [
                self.make(first[place] if place < len(first) else schema.get("items", {}), name) for place in range(count)
            ]
        finally:
            self.depth -= 1
        return _distinct(made) if schema.get("uniqueItems") is True else made

    def _string(self, schema: JSON, name: str) -> str:
        if schema.get("format") in FORMATS:
            dates = _DATE.findall(self.prompt)
            return dates[0] if dates and schema["format"] == "date" else FORMATS[schema["format"]]
        text = self._from_prompt(name.lower()) or f"example {name}".strip()
        text = text.ljust(min(max(0, schema.get("minLength", 0)), LONGEST), "x")
        return text[: max(0, schema.get("maxLength", len(text)))]

    def _from_prompt(self, name: str) -> str:
        """What the prompt says about a property of that name."""
        for words, find in _FINDERS:
            if any(word in name for word in words):
                found = find(self.prompt)
                if found:
                    return found[min(self.place, len(found) - 1)]
        quoted = _QUOTED.search(self.prompt)
        return quoted[1] if quoted else ""

    def _number(self, schema: JSON, *, whole: bool) -> float:
        """The first that fits of: the prompt's numbers, the bounds, small round ones."""
        step = 1 if whole else 0.5
        low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf) + step)
        high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf) - step)
        multiple = abs(schema.get("multipleOf", 0)) or (1 if whole else 0)
        wanted = [float(text) for text in _NUMBER.findall(self.prompt)]
        wanted = [*wanted[self.place :], *wanted[: self.place], 1.0, 0.0, low, high, (low + high) / 2]
        if multiple:
            wanted += [multiple, math.ceil(low / multiple) * multiple if math.isfinite(low) else 0.0]
        fitting = [value for value in wanted if low <= value <= high and math.isfinite(value) and _fits(value, multiple)]
        value = fitting[0] if fitting else 1.0
        return int(value) if float(value).is_integer() else float(value)

    def _choice(self, values: list[Any]) -> Any:
        said = [value for value in values if named(str(value), self.prompt)]
        return (said or values)[0]


def _type_of(schema: JSON) -> str:
    """The type that a schema asks for; where it does not say, the one that its keywords are about."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one.lower() != "null"), "null")
    if kind is None:
        kind = "object" if "properties" in schema or "required" in schema else "array" if "items" in schema else "string"
    return str(kind).lower()


def _fits(value: float, multiple: float) -> bool:
    return not multiple or (value / multiple).is_integer()


def _distinct(values: list[Any]) -> list[Any]:
    """Entries that must all differ: texts and numbers get a running number, others stay."""
    return [
        f"{value} {place + 1}"
        if isinstance(value, str) and place
        else value + place
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else value
        for place, value in enumerate(values)
    ]


def _codes(prompt: str) -> list[str]:
    return _CODE.findall(prompt)


def _topics(prompt: str) -> list[str]:
    quoted = _QUOTED.search(prompt)
    return [quoted[1] if quoted else prompt.strip()[:120]]


_FINDERS: tuple[tuple[tuple[str, ...], Callable[[str], list[str]]], ...] = (
    # words in the property's name, and where its values stand in the prompt
    (("city", "place", "location", "port", "town", "destination", "origin"), cities),
    (("expr", "formula", "sum", "calculation", "input"), sums),
    (("zone", "tz"), lambda prompt: ["UTC"]),
    (("booking", "train", "flight", "order"), _codes),
    (("query", "question", "search", "text", "topic"), _topics),
)
