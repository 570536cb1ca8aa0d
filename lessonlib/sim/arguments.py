"""Arguments that are valid for any JSON Schema, taken from the prompt where it names them.

A simulated model must call the tools that it is offered, whatever they are. For each property it looks into the prompt
first (a city, a sum, a date, one of the enum's words), and makes up a plain valid value otherwise. The same prompt and
schema give the same arguments.

What this file does not do: `pattern` (a valid string for any regular expression is a project of its own) and `not`; a tool
that needs them gets a value that breaks them, which is what a real model would do now and then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lessonlib.types import JSON

CITIES = ("Beijing", "Shanghai", "Guangzhou", "Paris", "London", "Berlin", "Tokyo", "Madrid", "Rome", "Lima", "Oslo",
          "北京", "上海", "广州", "厦门", "青岛")  # fmt: skip

_SUM = re.compile(r"\(?\d[\d\s.,()]*(?:[*×x+\-−/÷^%][\s(]*\d[\d\s.()]*)+")
_PLACE = re.compile(r"\b(?:in|to|from|for|of|at)\s+([A-Z][\w-]+(?:\s[A-Z][\w-]+)?)")
_TWO_NAMES = re.compile(rf"({'|'.join(CITIES)})\s?[(（](?:{'|'.join(CITIES)})[)）]")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“「'`]([^\"”」'`]{1,80})[\"”」'`]")
_CODE = re.compile(r"\b[A-Z]{1,3}[- ]?\d+\b")

FORMATS = {
    "date-time": "2026-12-01T09:00:00Z", "date": "2026-12-01", "time": "09:00:00Z", "duration": "PT1H",
    "email": "sam@example.com", "uri": "https://example.com/", "uuid": "6f1d1c0e-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.com",
}  # fmt: skip


def cities(prompt: str) -> list[str]:
    """The places that a prompt names, in its order. A name in brackets behind another is the same place, written again."""
    prompt = _TWO_NAMES.sub(r"\1", prompt)
    found = {prompt.find(city): city for city in CITIES if city in prompt}
    for match in _PLACE.finditer(prompt):
        if not any(city in match[1] for city in found.values()):
            found[match.start(1)] = match[1]
    return [found[place] for place in sorted(found)]


def sums(prompt: str) -> list[str]:
    """The arithmetic that a prompt contains, with plain operators."""
    plain = str.maketrans({"×": "*", "x": "*", "−": "-", "÷": "/", "^": "**"})
    return [match[0].strip(" .,").translate(plain) for match in _SUM.finditer(prompt)]


def for_schema(schema: JSON, prompt: str = "", place: int = 0) -> JSON:
    """An object that is valid for an object schema. `place`: which of several cities or sums in the prompt to take."""
    value = _Maker(schema, prompt, place).make(schema, "")
    return value if isinstance(value, dict) else {}


class _Maker:
    """One schema, one prompt. Recursion stops at depth 6: by then only required properties are filled."""

    def __init__(self, root: JSON, prompt: str, place: int) -> None:
        self.root, self.prompt, self.place = root, prompt, place
        self.depth = 0

    def make(self, schema: Any, name: str) -> Any:
        """A value for `schema`; `name` is the property's name, which often says more than its type."""
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._choice(schema["enum"])
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        makers: Mapping[str | None, Any] = {
            "object": self._object, "array": self._array, "string": self._string, "integer": self._integer,
            "number": self._number, "boolean": lambda schema, name: True, "null": lambda schema, name: None,
        }  # fmt: skip
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
        return makers.get(str(kind).lower(), self._string)(schema, name)

    def _resolved(self, schema: Any) -> JSON:
        """`$ref`, `allOf` and the first useful branch of `anyOf` and `oneOf` put in place."""
        for _ in range(20):
            if not isinstance(schema, dict):
                return {}
            if "$ref" in schema:
                schema = {**self._target(schema["$ref"]), **{k: v for k, v in schema.items() if k != "$ref"}}
            elif schema.get("allOf"):
                merged: JSON = {}
                for branch in schema["allOf"]:
                    merged = {**merged, **self._resolved(branch)}
                schema = {**merged, **{k: v for k, v in schema.items() if k != "allOf"}}
            elif schema.get("anyOf") or schema.get("oneOf"):
                branches = schema.get("anyOf") or schema["oneOf"]
                real = [branch for branch in branches if self._resolved(branch).get("type") != "null"] or branches
                rest = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf")}
                schema = {**rest, **self._resolved(real[0])}
            else:
                return schema
        return {}

    def _target(self, ref: str) -> JSON:
        target: Any = self.root
        for step in ref.lstrip("#/").split("/"):
            target = target.get(step, {}) if isinstance(target, dict) else {}
        return target if isinstance(target, dict) else {}

    # ------------------------------------------------------------ by type

    def _object(self, schema: JSON, name: str) -> JSON:
        required = schema.get("required", [])
        self.depth += 1
        try:
            return {
                key: self.make(value, key)
                for key, value in schema.get("properties", {}).items()
                if key in required or (self.depth == 1 and self._named(key, value))
            }
        finally:
            self.depth -= 1

    def _named(self, key: str, schema: Any) -> bool:
        """Whether the prompt says something about an optional property."""
        enum = self._resolved(schema).get("enum", [])
        return any(str(word).lower() in self.prompt.lower() for word in enum) or key.lower() in self.prompt.lower()

    def _array(self, schema: JSON, name: str) -> list[Any]:
        count = max(1 if self.depth < 6 else 0, int(schema.get("minItems", 0)))
        self.depth += 1
        try:
            items = [self.make(schema.get("items", {}), name) for _ in range(count)]
        finally:
            self.depth -= 1
        return items[: int(schema.get("maxItems", len(items)))]

    def _string(self, schema: JSON, name: str) -> str:
        if schema.get("format") in FORMATS:
            dates = _DATE.findall(self.prompt)
            return dates[0] if dates and schema["format"] == "date" else FORMATS[schema["format"]]
        text = self._from_prompt(name.lower()) or f"example {name}".strip()
        text = text.ljust(int(schema.get("minLength", 0)), "x")
        return text[: int(schema.get("maxLength", len(text)))]

    def _from_prompt(self, name: str) -> str:
        if any(word in name for word in ("city", "place", "location", "port", "town", "destination", "to", "origin")):
            found = cities(self.prompt)
            if found:
                return found[min(self.place, len(found) - 1)]
        if any(word in name for word in ("expr", "formula", "sum", "calculation", "input")):
            found = sums(self.prompt)
            if found:
                return found[min(self.place, len(found) - 1)]
        if any(word in name for word in ("zone", "tz")):
            return "UTC"
        if any(word in name for word in ("booking", "train", "flight", "order")) and (match := _CODE.search(self.prompt)):
            return match[0]
        if any(word in name for word in ("query", "question", "search", "text", "topic")):
            quoted = _QUOTED.search(self.prompt)
            return quoted[1] if quoted else self.prompt.strip()[:120]
        quoted = _QUOTED.search(self.prompt)
        return quoted[1] if quoted else ""

    def _integer(self, schema: JSON, name: str) -> int:
        return int(self._number(schema, name, step=1))

    def _number(self, schema: JSON, name: str, step: float = 0.5) -> float:
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is None and "exclusiveMinimum" in schema:
            low = schema["exclusiveMinimum"] + step
        if high is None and "exclusiveMaximum" in schema:
            high = schema["exclusiveMaximum"] - step
        numbers = [float(text) for text in _NUMBER.findall(self.prompt)]
        fitting = [value for value in numbers if (low is None or value >= low) and (high is None or value <= high)]
        value = fitting[min(self.place, len(fitting) - 1)] if fitting else low if low is not None else min(1, high or 1)
        multiple = schema.get("multipleOf")
        if multiple:
            value = multiple * max(round(value / multiple), -(-low // multiple) if low is not None else 0)
        return int(value) if float(value).is_integer() else float(value)

    def _choice(self, values: list[Any]) -> Any:
        named = [value for value in values if str(value).lower() in self.prompt.lower()]
        return (named or values or [None])[0]
