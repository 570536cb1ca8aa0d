"""Tools from Python functions: the schema that the model sees, and the check of what the model sends.

    @tool
    def get_weather(city: str, days: Annotated[int, Field(ge=1, le=7)] = 1) -> str:
        \"\"\"Weather forecast for a city.

        Args:
            city: Name of the city.
            days: How many days.
        \"\"\"

    Request(messages=[...], tools=[get_weather])        it is a Tool
    get_weather("Oslo")                                 and still the function

The schema is pydantic's, made from the type hints; the descriptions are the docstring's. There is no second place in which
a parameter is written down, so schema and function cannot drift apart.

The arguments that a model sends are checked three times: they must be JSON (the wire format's decoder parses them once),
the tool must exist, and they must bind *strictly*: no unknown field, no missing one, no value of another type, no limit
passed. A string "5" is not the integer 5, because a model that writes the one may mean neither; `tool(coerce=True)` allows
what pydantic's lax mode does. Two things are not strictness: 5.0 is the integer 5 (JSON has one kind of number), and a null
for an optional parameter means "not given" (strict modes leave a model no other way to say so).

Each kind of fault has its own answer, written for the model to act on: `BadFormat` (what the parser said), `UnknownTool`
(the names that exist), `BadArguments` (the field, the limit, the piece of the schema).

What this file does not do: it runs nothing and repairs nothing (tool_loop.py runs). What each service takes of a schema is
in schema.py, what becomes of a function's result in results.py.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Generic, ParamSpec, TypeVar, get_args, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from lessonlib import docstrings
from lessonlib.schema import OPENAI_STRICT, adapt, followed, resolve, schema_at, without_nulls
from lessonlib.types import JSON, Tool, ToolCall

P = ParamSpec("P")
R = TypeVar("R")

# ---------------------------------------------------------------- faults: what the model is told


class CallFault(ValueError):
    """A call that is not run. The text is written for the model."""


class BadFormat(CallFault):
    """The arguments are not the JSON of an object."""


class UnknownTool(CallFault):
    """There is no such tool."""


class BadArguments(CallFault):
    """The arguments do not fit the tool: an unknown, missing or ill-typed field, or a limit that is passed."""


def bad_format(call: ToolCall) -> BadFormat:
    """The answer to a call whose arguments could not be read."""
    return BadFormat(
        f"{call.name} was not run: {call.args_error or 'its arguments are not a JSON object'}. "
        "Call it again with its arguments as one JSON object."
    )


def unknown_tool(name: str, names: Iterable[str]) -> UnknownTool:
    """The answer to a call of a tool that does not exist."""
    known = ", ".join(names)
    return UnknownTool(f"There is no tool {name!r}. " + (f"The tools are: {known}." if known else "There are no tools."))


# ---------------------------------------------------------------- a function as a tool


class FunctionTool(Tool, Generic[P, R]):
    """A Tool with the function that runs it. Calling it calls the function.

    function: what runs. timeout: seconds that one run may take, None for the loop's own.
    """

    _function: Callable[P, R] = PrivateAttr()
    _binder: _Binder = PrivateAttr()
    _timeout: float | None = PrivateAttr(default=None)

    @property
    def function(self) -> Callable[P, R]:
        """The function that runs."""
        return self._function

    @property
    def timeout(self) -> float | None:
        """Seconds that one run may take."""
        return self._timeout

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def bind(self, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
        """The arguments of a call, checked: `function(*bound.args, **bound.kwargs)`. Raises BadArguments."""
        return self._binder.bind(self.name, arguments)


@overload
def tool(target: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    target: None = None, /, *, name: str | None = None, description: str | None = None, strict: bool | None = None,
    coerce: bool = False, timeout: float | None = None, arguments: type[BaseModel] | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...  # fmt: skip
@overload
def tool(
    target: Callable[P, R], /, *, name: str | None = None, description: str | None = None, strict: bool | None = None,
    coerce: bool = False, timeout: float | None = None, arguments: type[BaseModel] | None = None,
) -> FunctionTool[P, R]: ...  # fmt: skip
def tool(
    target: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool | None = None,
    coerce: bool = False,
    timeout: float | None = None,
    arguments: type[BaseModel] | None = None,
) -> Any:
    """Make a tool of a function (also as a decorator, with or without options), or of a pydantic model.

    name, description: instead of the function's name and docstring.
    strict: ask the service to hold the model to the schema; a schema that cannot be held is an InvalidRequest here and now.
    coerce: let pydantic convert values ("5" for an int) instead of refusing them.
    timeout: seconds that one run may take, instead of the tool loop's.
    arguments: a model that describes the arguments; the function is then called with one instance of it.

    A model as the target is a tool whose result is the checked instance itself: a way to get structured answers.
    """
    if target is None:
        return functools.partial(
            tool, name=name, description=description, strict=strict, coerce=coerce, timeout=timeout, arguments=arguments
        )
    binder = _binder_of(target, arguments, coerce)
    said = str(name or getattr(_innermost(target), "__name__", type(target).__name__))
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", said):
        raise ValueError(f'{said!r} is no name for a tool: give it one of letters, digits, "_", "-" with name=')
    if strict:
        adapt(binder.schema, OPENAI_STRICT)
    text = description if description is not None else binder.docstring.description
    made: FunctionTool[..., Any] = FunctionTool(name=said, description=text, parameters=binder.schema, strict=strict)
    made._function = _same if isinstance(target, type) and issubclass(target, BaseModel) else target
    made._binder = binder
    made._timeout = timeout
    return made


def bind(function: Callable[..., Any], arguments: Mapping[str, Any]) -> inspect.BoundArguments:
    """The arguments that a model sent for `function`, checked against its type hints. Raises BadArguments."""
    made = function if isinstance(function, FunctionTool) else tool(function)
    return made.bind(arguments)


def _same(value: Any) -> Any:
    return value


def _innermost(target: Any) -> Any:
    while isinstance(target, functools.partial):
        target = target.func
    return target


# ---------------------------------------------------------------- the schema: pydantic's, from the type hints


class _Schema(GenerateJsonSchema):
    """pydantic's generator without the titles that only repeat the names, and without a warning for a default that has no
    JSON form (it is left out; the function still has it)."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Binder:
    """The model of a function's arguments, and how its fields become the function's parameters."""

    def __init__(
        self,
        model: type[BaseModel],
        signature: inspect.Signature,
        fields: Mapping[str, str] | None,
        docstring: docstrings.Docstring,
        coerce: bool,
    ) -> None:
        self.model = model
        self.signature = signature
        self.fields = fields  # model's field -> parameter; None if the whole instance is the one argument
        self.docstring = docstring
        self.coerce = coerce
        self.schema = _schema_of(model)

    def bind(self, name: str, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
        given = without_nulls(_whole_numbers(dict(arguments)), self.schema)
        problems = _unknown_fields(given, self.schema, self.schema, ())
        try:
            instance = self.model.model_validate_json(json.dumps(given), strict=not self.coerce)
        except ValidationError as error:
            problems += _problems(error, given, self.schema)
        if problems:
            raise _refused(name, problems)
        bound = self.signature.bind_partial()
        if self.fields is not None:
            bound.arguments.update(self._values(instance, self.fields))
        else:
            bound.arguments[next(iter(self.signature.parameters))] = instance
        bound.apply_defaults()
        return bound

    def _values(self, instance: BaseModel, fields: Mapping[str, str]) -> dict[str, Any]:
        """What was given, by parameter, in the signature's order; the rest is left to the function's own defaults."""
        given = {
            parameter: getattr(instance, name)
            for name, parameter in fields.items()
            if name in instance.model_fields_set or self._is_field_default(parameter)
        }
        values = {name: given[name] for name in self.signature.parameters if name in given}
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                values[name] = dict(instance.model_extra or {})
        return values

    def _is_field_default(self, name: str) -> bool:
        """`x: int = Field(3, ge=1)`: the function's own default is pydantic's description of it, not the value."""
        return isinstance(self.signature.parameters[name].default, FieldInfo)


def _schema_of(model: type[BaseModel]) -> JSON:
    schema = model.model_json_schema(schema_generator=_Schema)
    if "$ref" in schema:  # a model that refers to itself; services look for the properties at the top
        schema = {**(resolve(schema, schema["$ref"]) or {}), "$defs": schema["$defs"]}
    schema.pop("title", None)
    schema.pop("description", None)  # the tool has one
    for name, made in schema.get("$defs", {}).items():
        if made.get("title") == name:
            del made["title"]
    return {"type": "object", "properties": {}, **schema}


def _binder_of(target: Callable[..., Any], arguments: type[BaseModel] | None, coerce: bool) -> _Binder:
    if isinstance(target, type) and issubclass(target, BaseModel):
        doc = docstrings.parse(target.__doc__ if target.__doc__ != BaseModel.__doc__ else "")
        return _Binder(target, inspect.signature(_same), None, doc, coerce)
    try:
        signature = inspect.signature(target)
    except ValueError as error:
        raise TypeError(f"{target!r} cannot be a tool: Python does not say what its parameters are; wrap it") from error
    doc = docstrings.parse(inspect.getdoc(_innermost(target)))
    if arguments is not None:
        if len(signature.parameters) != 1:
            raise TypeError(f"{target!r} must take one parameter, the {arguments.__name__}")
        return _Binder(arguments, signature, None, doc, coerce)
    model, fields = _model_of(target, signature, doc)
    try:
        return _Binder(model, signature, fields, doc, coerce)
    except PydanticInvalidForJsonSchema as error:
        name = next((fields[name] for name in fields if not _has_schema(model, name)), "one of its parameters")
        raise TypeError(f"{target!r} cannot be a tool: no JSON Schema can say what {name} is") from error


def _has_schema(model: type[BaseModel], name: str) -> bool:
    """Whether the type of one field has a JSON Schema: a function, a class of one's own have none."""
    annotation: Any = model.model_fields[name].annotation
    try:
        TypeAdapter(annotation).json_schema()
    except PydanticInvalidForJsonSchema:
        return False
    return True


def _model_of(
    target: Callable[..., Any], signature: inspect.Signature, doc: docstrings.Docstring
) -> tuple[type[BaseModel], dict[str, str]]:
    """A pydantic model with one field per parameter. The fields have names of ours, and the parameter's as alias, because
    pydantic refuses names that a parameter may well have (`_x`, `schema`, `json`)."""
    hints = _hints(target)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    extra: Any = "allow" if takes_all else "forbid"
    rest: Any = Any
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind is parameter.VAR_POSITIONAL and takes_all:
            continue  # (*args, **kwargs): a wrapper or a mock, which takes whatever is named
        if parameter.kind is parameter.VAR_POSITIONAL or (place == 0 and name in ("self", "cls") and name not in hints):
            raise TypeError(f"{target!r} cannot be a tool: the model names its arguments, so it cannot fill {parameter}")
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = hints.get(name, Any)
            continue
        names[f"field_{place}"] = name
        fields[f"field_{place}"] = _field(name, hints.get(name, Any), parameter, doc.parameters.get(name))
    space = {"model_config": ConfigDict(extra=extra), "__module__": __name__}
    if rest is not Any:
        space["__annotations__"] = {"__pydantic_extra__": dict[str, rest]}
    try:
        return create_model("Arguments", __base__=type("Base", (BaseModel,), space), **fields), names
    except PydanticUserError as error:
        raise TypeError(f"{target!r} cannot be a tool: {str(error).splitlines()[0]}") from error


def _field(name: str, annotation: Any, parameter: inspect.Parameter, said: str | None) -> tuple[Any, Any]:
    """The annotation with the parameter's name and description added, and the default."""
    known = FieldInfo.from_annotation(annotation)
    own: dict[str, Any] = {} if known.alias else {"alias": name}
    text = next((note for note in get_args(annotation)[1:] if isinstance(note, str)), None) if known.metadata else None
    if not known.description and (text or said):
        own["description"] = text or said
    annotated = Annotated[annotation, Field(**own)]
    return annotated, ... if parameter.default is parameter.empty else parameter.default


def _hints(target: Callable[..., Any]) -> dict[str, Any]:
    """The type hints of the parameters, names in them resolved. The return type may be anything and is not looked at."""
    function = _innermost(target)
    if inspect.isclass(function):
        function = function.__init__ if inspect.isfunction(function.__init__) else function.__new__
    elif not (inspect.isfunction(function) or inspect.ismethod(function)):
        function = getattr(function, "__call__", function)  # noqa: B004
    inner = inspect.unwrap(getattr(function, "__func__", function))

    def probe() -> None: ...

    try:
        written = getattr(inner, "__annotations__", {})
        probe.__annotations__ = {name: hint for name, hint in written.items() if name != "return"}
        return get_type_hints(probe, globalns=getattr(inner, "__globals__", {}), localns={}, include_extras=True)
    except NameError as error:
        raise TypeError(f"{target!r} cannot be a tool: {error}; types must be defined at the module's level") from error


# ---------------------------------------------------------------- strict binding


def _whole_numbers(value: Any) -> Any:
    """5.0 as 5, everywhere: JSON has one kind of number, and some services send all of them as floats. A parameter of type
    float gets its float back from pydantic."""
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {key: _whole_numbers(item) for key, item in value.items()}
        case list():
            return [_whole_numbers(item) for item in value]
        case _:
            return value


def _unknown_fields(value: Any, schema: Any, root: JSON, place: tuple[str | int, ...]) -> list[str]:
    """A line for each field that the schema does not know, at any depth. pydantic ignores those inside models by default."""
    schema = followed(schema, root)
    if isinstance(value, list):
        items = schema.get("items", {})
        return [line for i, item in enumerate(value) for line in _unknown_fields(item, items, root, (*place, i))]
    if not isinstance(value, dict):
        return []
    branches = [branch for branch in schema.get("anyOf") or schema.get("oneOf") or () if _is_object(branch, root)]
    if branches:
        return min((_unknown_fields(value, branch, root, place) for branch in branches), key=len)
    properties, extra = schema.get("properties"), schema.get("additionalProperties")
    found: list[str] = []
    for name, item in value.items():
        if properties is not None and name in properties:
            found += _unknown_fields(item, properties[name], root, (*place, name))
        elif isinstance(extra, dict):
            found += _unknown_fields(item, extra, root, (*place, name))
        elif properties is not None and extra is not True:
            known = ", ".join(properties) or "none"
            found.append(f"{_dotted((*place, name))}: there is no such field; the fields are: {known}")
    return found


def _is_object(branch: Any, root: JSON) -> bool:
    found = followed(branch, root)
    return "properties" in found or found.get("type") == "object"


_MOST = 5
"""How many problems one answer names: a model corrects the first ones best."""


def _problems(error: ValidationError, given: JSON, schema: JSON) -> list[str]:
    """pydantic's errors as lines for the model: the place, what is wrong, what was sent, the piece of the schema."""
    by_place: dict[tuple[str | int, ...], list[str]] = {}
    for problem in error.errors(include_url=False, include_context=False):
        if problem["type"] == "json_invalid":  # it was JSON: this is the one thing in it that pydantic refuses
            return ["the arguments: a text in them holds half of a character (a lone surrogate)"]
        if problem["type"] == "extra_forbidden":
            continue  # said already, in better words
        place = _place_in(given, problem["loc"], problem["type"] == "missing")
        by_place.setdefault(place, [])
        if problem["msg"] not in by_place[place]:
            by_place[place].append(problem["msg"])
    lines = []
    for place, messages in by_place.items():
        piece = _excerpt(_json(schema_at(schema, place)))
        lines.append(f"{_dotted(place)}: {'; or '.join(messages)}{_sent(given, place)}. Schema: {piece}")
    return lines


def _place_in(given: Any, loc: tuple[str | int, ...], missing: bool) -> tuple[str | int, ...]:
    """pydantic's place without the names of union members, which are no fields."""
    place: list[str | int] = []
    value: Any = given
    for number, step in enumerate(loc):
        at = isinstance(value, list) and isinstance(step, int) and step < len(value)
        inside = at or (isinstance(value, dict) and step in value)
        if inside:
            value = value[step]
        if inside or (missing and number == len(loc) - 1):
            place.append(step)
    return tuple(place)


def _sent(given: Any, place: tuple[str | int, ...]) -> str:
    value = given
    try:
        for step in place:
            value = value[step]
    except (LookupError, TypeError):  # what is missing was not sent
        return ""
    return f" (sent: {_excerpt(_json(value))})"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if not any("\ud800" <= character <= "\udfff" for character in text) else json.dumps(value)


def _refused(name: str, lines: list[str]) -> BadArguments:
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    listed = "\n".join(f"- {line}" for line in lines[:_MOST] + more)
    return BadArguments(f"{name} was not run, its arguments do not fit:\n{listed}")


def _dotted(place: tuple[str | int, ...]) -> str:
    return ".".join(map(str, place)) or "the arguments"


def _excerpt(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
