"""Forty signatures as people write them, each with arguments that fit and arguments that do not.

They are at module level because type hints are resolved there. `GOOD` holds what a model may send and what the function must
then get; `BAD` holds what must be refused and a word of the answer. `OPEN` names those that no closed schema can express.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union
from uuid import UUID

from annotated_types import Ge, Len, MultipleOf
from pydantic import AnyUrl, BaseModel, ConfigDict, EmailStr, Field, StringConstraints
from typing_extensions import TypedDict

_ = EmailStr  # imported to show that it is not needed: the optional package behind it may be missing


class Colour(enum.Enum):
    """A colour of the rainbow."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Harbour(BaseModel):
    """A place where ships rest."""

    name: str = Field(description="As on the chart.")
    berths: int = Field(default=1, ge=1)


class Voyage(BaseModel):
    start: Harbour
    end: Harbour = Field(description="Where it ends.")
    stops: list[Harbour] = []


class Branch(BaseModel):
    label: str
    branches: list[Branch] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


@dataclass
class Span:
    start: int
    end: int
    tags: list[str] = field(default_factory=list)


class Point(NamedTuple):
    x: float
    y: float


class Options(TypedDict):
    quiet: bool
    depth: NotRequired[int]


def no_arguments() -> str: ...
def one_text(city: str) -> str: ...
def all_scalars(text: str, number: int, ratio: float, flag: bool) -> str: ...
def defaults(city: str, days: int = 3, unit: str = "metric") -> str: ...
def optional(city: str, region: str | None = None) -> str: ...
def old_optional(city: str, region: Optional[str] = None) -> str: ...  # noqa: UP045
def required_but_nullable(region: str | None) -> str: ...
def literal(mode: Literal["bus", "rail"]) -> str: ...
def literal_numbers(size: Literal[1, 2, 3]) -> str: ...
def literal_one(kind: Literal["only"]) -> str: ...
def enumeration(colour: Colour) -> str: ...
def int_enumeration(level: Level = Level.LOW) -> str: ...
def union(value: int | str) -> str: ...
def old_union(value: Union[int, list[int]]) -> str: ...  # noqa: UP007
def text_list(names: list[str]) -> str: ...
def any_sequence(names: Sequence[str]) -> str: ...
def nested_lists(grid: list[list[int]]) -> str: ...
def pair(point: tuple[float, float]) -> str: ...
def mixed_tuple(entry: tuple[str, int]) -> str: ...
def any_tuple(numbers: tuple[int, ...]) -> str: ...
def unique(names: set[str]) -> str: ...
def mapping(options: dict[str, int]) -> str: ...
def anything(value: Any) -> str: ...
def no_hints(value) -> str: ...  # type: ignore[no-untyped-def]
def free_dict(data: dict) -> str: ...  # type: ignore[type-arg]
def number_limits(days: Annotated[int, Field(ge=1, le=7)], ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5) -> str: ...
def text_limits(code: Annotated[str, Field(min_length=2, max_length=4, pattern="^[A-Z]+$")]) -> str: ...
def list_limits(names: Annotated[list[str], Len(1, 3)]) -> str: ...
def other_limits(
    step: Annotated[int, MultipleOf(5), Ge(0)], name: Annotated[str, StringConstraints(max_length=9)]
) -> str: ...
def described(
    city: Annotated[str, "Name of the city."], days: Annotated[int, Field(description="How many.")] = 1
) -> str: ...
def model(harbour: Harbour) -> str: ...
def nested_models(voyage: Voyage) -> str: ...
def model_list(harbours: list[Harbour], home: Harbour | None = None) -> str: ...
def recursive(tree: Branch) -> str: ...
def discriminated(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str: ...
def open_model(thing: Free) -> str: ...
def others(span: Span, options: Options, point: Point) -> str: ...
def times(when: datetime, day: date, at: time, lasting: timedelta) -> str: ...
def formats(id: UUID, url: AnyUrl, path: Path, host: IPv4Address, price: Decimal) -> str: ...
def keywords(a: int, /, b: int = 2, *, c: int = 3, **rest: int) -> str: ...


HARBOUR = {"name": "Kiel"}

GOOD: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (no_arguments, {}, {}),
    (one_text, {"city": "奥斯陆 🌊"}, {"city": "奥斯陆 🌊"}),
    (all_scalars, {"text": "", "number": 2.0, "ratio": 1, "flag": True},
     {"text": "", "number": 2, "ratio": 1.0, "flag": True}),
    (defaults, {"city": "x", "days": None}, {"city": "x", "days": 3, "unit": "metric"}),
    (optional, {"city": "x", "region": None}, {"city": "x", "region": None}),
    (old_optional, {"city": "x"}, {"city": "x", "region": None}),
    (required_but_nullable, {"region": None}, {"region": None}),
    (literal, {"mode": "bus"}, {"mode": "bus"}),
    (literal_numbers, {"size": 2}, {"size": 2}),
    (literal_one, {"kind": "only"}, {"kind": "only"}),
    (enumeration, {"colour": "red"}, {"colour": Colour.RED}),
    (int_enumeration, {"level": 2}, {"level": Level.HIGH}),
    (union, {"value": "5"}, {"value": "5"}),
    (old_union, {"value": [1]}, {"value": [1]}),
    (text_list, {"names": []}, {"names": []}),
    (any_sequence, {"names": ["a"]}, {"names": ["a"]}),
    (nested_lists, {"grid": [[1], []]}, {"grid": [[1], []]}),
    (pair, {"point": [1, 2.5]}, {"point": (1.0, 2.5)}),
    (mixed_tuple, {"entry": ["a", 1]}, {"entry": ("a", 1)}),
    (any_tuple, {"numbers": [1, 2]}, {"numbers": (1, 2)}),
    (unique, {"names": ["a", "a"]}, {"names": {"a"}}),
    (mapping, {"options": {"a": 1}}, {"options": {"a": 1}}),
    (anything, {"value": {"a": [None]}}, {"value": {"a": [None]}}),
    (no_hints, {"value": 5}, {"value": 5}),
    (free_dict, {"data": {"a": {"b": 1}}}, {"data": {"a": {"b": 1}}}),
    (number_limits, {"days": 7}, {"days": 7, "ratio": 0.5}),
    (text_limits, {"code": "OSL"}, {"code": "OSL"}),
    (list_limits, {"names": ["a"]}, {"names": ["a"]}),
    (other_limits, {"step": 10, "name": "x"}, {"step": 10, "name": "x"}),
    (described, {"city": "x"}, {"city": "x", "days": 1}),
    (model, {"harbour": HARBOUR}, {"harbour": Harbour(name="Kiel")}),
    (nested_models, {"voyage": {"start": HARBOUR, "end": HARBOUR, "stops": None}},
     {"voyage": Voyage(start=Harbour(name="Kiel"), end=Harbour(name="Kiel"))}),
    (model_list, {"harbours": [HARBOUR], "home": {"name": "x", "berths": None}},
     {"harbours": [Harbour(name="Kiel")], "home": Harbour(name="x")}),
    (recursive, {"tree": {"label": "a", "branches": [{"label": "b"}]}},
     {"tree": Branch(label="a", branches=[Branch(label="b")])}),
    (discriminated, {"pet": {"kind": "dog", "tricks": ["sit"]}}, {"pet": Dog(kind="dog", tricks=["sit"])}),
    (open_model, {"thing": {"name": "x", "more": 1}}, {"thing": Free(name="x", more=1)}),  # type: ignore[call-arg]
    (others, {"span": {"start": 1, "end": 2}, "options": {"quiet": True}, "point": [1, 2]},
     {"span": Span(1, 2), "options": {"quiet": True}, "point": Point(1.0, 2.0)}),
    (times, {"when": "2026-01-02T03:04:05", "day": "2026-01-02", "at": "03:04:05", "lasting": "PT90S"},
     {"when": datetime(2026, 1, 2, 3, 4, 5), "day": date(2026, 1, 2), "at": time(3, 4, 5),
      "lasting": timedelta(seconds=90)}),
    (formats, {"id": "12345678-1234-5678-1234-567812345678", "url": "https://example.org/", "path": "a/b",
               "host": "127.0.0.1", "price": "1.50"},
     {"id": UUID("12345678-1234-5678-1234-567812345678"), "url": AnyUrl("https://example.org/"), "path": Path("a/b"),
      "host": IPv4Address("127.0.0.1"), "price": Decimal("1.50")}),
    (keywords, {"a": 1, "z": 9}, {"a": 1, "b": 2, "c": 3, "rest": {"z": 9}}),
]  # fmt: skip

BAD: list[tuple[Any, dict[str, Any], str]] = [
    (no_arguments, {"x": 1}, "x: there is no such field; the fields are: none"),
    (one_text, {}, "city: Field required"),
    (one_text, {"city": 5}, "city: Input should be a valid string (sent: 5)"),
    (one_text, {"city": "x", "cities": 1}, "cities: there is no such field"),
    (all_scalars, {"text": "x", "number": "5", "ratio": 1, "flag": True}, "number: Input should be a valid integer"),
    (all_scalars, {"text": "x", "number": 5.5, "ratio": 1, "flag": True}, "number: "),
    (all_scalars, {"text": "x", "number": True, "ratio": 1, "flag": True}, "number: "),
    (all_scalars, {"text": "x", "number": 5, "ratio": "1", "flag": True}, "ratio: "),
    (all_scalars, {"text": "x", "number": 5, "ratio": 1, "flag": "true"}, "flag: "),
    (all_scalars, {"text": "x", "number": 5, "ratio": 1, "flag": 1}, "flag: "),
    (required_but_nullable, {}, "region: Field required"),
    (one_text, {"city": None}, "city: "),
    (literal, {"mode": "car"}, "'bus' or 'rail'"),
    (literal_numbers, {"size": "2"}, "size: "),
    (enumeration, {"colour": "green"}, "colour: "),
    (union, {"value": 1.5}, "valid integer"),
    (union, {"value": 1.5}, "; or "),
    (text_list, {"names": ["a", 1]}, "names.1: Input should be a valid string"),
    (text_list, {"names": "a"}, "names: "),
    (pair, {"point": [1]}, "point.1: "),
    (mapping, {"options": {"a": "1"}}, "options.a: Input should be a valid integer"),
    (number_limits, {"days": 8}, "days: Input should be less than or equal to 7 (sent: 8)"),
    (number_limits, {"days": 1, "ratio": 1}, "ratio: Input should be less than 1"),
    (text_limits, {"code": "osl"}, "code: String should match pattern '^[A-Z]+$'"),
    (list_limits, {"names": []}, "names: List should have at least 1 item"),
    (model, {"harbour": {}}, "harbour.name: Field required"),
    (model, {"harbour": {"name": "x", "depth": 1}}, "harbour.depth: there is no such field; the fields are: name, berths"),
    (nested_models, {"voyage": {"start": HARBOUR, "end": {"name": 1}}}, 'voyage.end.name: Input should be a valid string'),
    (model_list, {"harbours": [HARBOUR, {"name": "x", "berths": 0}]}, "harbours.1.berths: Input should be greater"),
    (recursive, {"tree": {"label": "a", "branches": [{"name": "b"}]}}, "tree.branches.0.name: there is no such field"),
    (discriminated, {"pet": {"kind": "dog", "lives": 9}}, "pet"),
    (discriminated, {"pet": {"kind": "cow"}}, "pet: "),
    (others, {"span": {"start": 1, "end": 2, "x": 1}, "options": {"quiet": True}, "point": [1, 2]}, "span.x: "),
    (others, {"span": {"start": 1, "end": 2}, "options": {}, "point": [1, 2]}, "options.quiet: Field required"),
    (times, {"when": "yesterday", "day": "2026-01-02", "at": "03:04:05", "lasting": "PT90S"}, "when: "),
    (keywords, {"a": 1, "z": "9"}, "z: Input should be a valid integer"),
]  # fmt: skip

SIGNATURES = [function for function, _, _ in GOOD]

OPEN = {mapping, anything, no_hints, free_dict, open_model, keywords}
"""Free keys or any type at all: strict modes cannot express them."""
