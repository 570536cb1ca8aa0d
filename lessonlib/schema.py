"""JSON Schema for each service: what pydantic writes, in the words that the service takes.

Every service takes a subset of its own, and refuses the rest with a 400 or silently ignores it. So a schema is written once,
in full JSON Schema, and adapted where it is sent:

    adapt(tool.parameters, OPENAI_STRICT)  ->  Adapted(schema, notes)

The subsets are rows of one table (`Target`), not code. Adapting never changes what a person wrote, only the copy that is
sent, and it is honest about what it cannot keep:

* what can be said otherwise is (a list of types as anyOf, `const` as an enum of one, `oneOf` as anyOf, an exclusive bound of
  an integer as the next integer);
* a limit that the service has no word for goes into the description, so that the model reads it, and is reported in `notes`;
  the strict binding of the arguments (tools.py) still enforces it;
* what would change the meaning is an InvalidRequest that names the place and the way out: an object with free keys in a
  closed schema, a recursion where references must be written out, a growth beyond all measure.

`without_nulls` is the way back: where optional fields had to become nullable ones, a null means "not given".

Sources, besides the official SDKs' own converters:
OpenAI strict mode  https://platform.openai.com/docs/guides/structured-outputs (supported schemas); openai-node PR 1988
    (default, minLength and maxLength are refused), openai-agents-python issue 794 (free keys)
Anthropic           the SDK's `transform_schema`: limits go into the description, every object is closed
Gemini, `parameters`             the API's Schema type, a subset of OpenAPI 3.0; formats: "enum" and "date-time" only
Gemini, `parametersJsonSchema`   the keywords that the API reference lists for its sibling `responseJsonSchema`

What this file does not do: it validates no values, and it knows no request, only schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lessonlib.errors import InvalidRequest
from lessonlib.types import JSON

MAX_NODES = 5_000
"""How large a schema may become when references are written out: twenty layers that use each other twice are a million."""

MAX_DEPTH = 60

# ---------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class Target:
    """The subset of JSON Schema that one service takes.

    keywords: those that are sent; others go into the description.
    inline: references are written out (else they stay, alone in their place, with the definitions they need).
    closed: every object is closed, so free keys are an error. required: every property is required; optional ones become
        nullable. nullable: null is said as `nullable: true`, as in OpenAPI.
    formats: the values of `format` that are sent, None for all. text_enums: enums of texts only.
    least_items: the values of minItems that are sent, None for all. empty_objects: an object without properties is taken.
    empty_texts: an enum may hold the empty text.
    """

    name: str
    keywords: frozenset[str]
    inline: bool = False
    closed: bool = False
    required: bool = False
    nullable: bool = False
    formats: frozenset[str] | None = None
    text_enums: bool = False
    least_items: frozenset[int] | None = None
    empty_objects: bool = True
    empty_texts: bool = True


_BASIC = {"type", "title", "description", "properties", "required", "items", "enum", "anyOf"}
_NUMBERS = {"minimum", "maximum"}
_ITEMS = {"minItems", "maxItems"}
_REFERENCES = {"$ref", "$defs"}
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

OPENAI_STRICT = Target(
    "OpenAI strict mode",
    frozenset(
        _BASIC | _REFERENCES | _NUMBERS | _ITEMS
        | {"additionalProperties", "const", "pattern", "format", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"}
    ),
    closed=True,
    required=True,
    formats=frozenset(_FORMATS),
)  # fmt: skip
ANTHROPIC_STRICT = Target(
    "Anthropic strict mode",
    frozenset(_BASIC | _REFERENCES | {"additionalProperties", "const", "format", "minItems"}),
    closed=True,
    formats=frozenset(_FORMATS | {"uri"}),
    least_items=frozenset({0, 1}),
)
GEMINI_OPENAPI = Target(
    "Gemini's parameters",
    frozenset(
        _BASIC | _NUMBERS | _ITEMS
        | {"format", "nullable", "minLength", "maxLength", "pattern", "minProperties", "maxProperties", "default", "example"}
    ),
    inline=True,
    nullable=True,
    formats=frozenset({"date-time", "enum", "float", "double", "int32", "int64"}),
    text_enums=True,
    empty_objects=False,
    empty_texts=False,
)  # fmt: skip
GEMINI_JSON = Target(
    "Gemini's parametersJsonSchema",
    frozenset(_BASIC | _REFERENCES | _NUMBERS | _ITEMS | {"format", "prefixItems", "additionalProperties"}),
    empty_texts=False,
)
INLINE = Target(
    "a service without references",
    frozenset(
        _BASIC | _NUMBERS | _ITEMS
        | {"additionalProperties", "const", "default", "format", "pattern", "minLength", "maxLength", "multipleOf",
           "exclusiveMinimum", "exclusiveMaximum", "prefixItems", "uniqueItems", "minProperties", "maxProperties"}
    ),
    inline=True,
)  # fmt: skip


@dataclass(slots=True)
class Adapted:
    """A schema that may be sent, and what had to be said otherwise: one line for each limit that is now only a text."""

    schema: JSON
    notes: list[str] = field(default_factory=list)


def adapt(schema: Mapping[str, Any], target: Target) -> Adapted:
    """`schema` in the words of `target`. Raises InvalidRequest where its meaning cannot be kept."""
    return _Adapter(schema, target).adapt()


# ---------------------------------------------------------------- one schema, one target

_ANNOTATIONS = {"title", "description", "examples", "example", "deprecated", "readOnly", "writeOnly", "discriminator"}
_HANDLED = {"properties", "items", "prefixItems", "anyOf", "additionalProperties", "$defs", "definitions",
            "$schema", "$id", "$anchor", "$comment", "propertyOrdering"}  # fmt: skip
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_LOGIC = ("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties")


def _in_order_of(given: Mapping[str, Any], out: JSON) -> JSON:
    """The keys in the order in which they were written, new ones last: a schema that fits already goes out as it came, and a
    prompt cache that knows its bytes stays warm."""
    return {key: out[key] for key in given if key in out} | out


class _Adapter:
    def __init__(self, schema: Mapping[str, Any], target: Target) -> None:
        self.root = schema
        self.target = target
        self.notes: list[str] = []
        self.nodes = 0
        self.kept: dict[str, JSON] = {}  # definitions that the result refers to

    def adapt(self) -> Adapted:
        try:
            root = self.node(self.root, (), ())
        except RecursionError:
            raise self.error((), "the schema is nested too deeply") from None
        if "$ref" in root:  # a service looks for type and properties at the top
            root = self.node(self.resolve(root["$ref"], ()), (), (root["$ref"],))
        if self.target.closed and (root.get("type") != "object" or "anyOf" in root):
            raise self.error((), "the outermost schema must be an object; give the tool one parameter that is the union")
        if self.kept:
            root["$defs"] = self.kept
        return Adapted(root, self.notes)

    def node(self, schema: Any, path: tuple[str, ...], stack: tuple[str, ...]) -> JSON:
        """One schema. path: where it stands, for messages. stack: the references that led here, to see a cycle."""
        self.nodes += 1
        if self.nodes > MAX_NODES or len(path) > MAX_DEPTH:
            raise self.error(path, f"the schema grows beyond {MAX_NODES} parts or {MAX_DEPTH} levels")
        if not isinstance(schema, Mapping):
            return self.any_value(path, schema)
        if "$ref" in schema:
            return self.reference(schema, path, stack)
        schema = self.merged(schema, path)
        out: JSON = {}
        said: list[str] = []
        for key, value in schema.items():
            self.keyword(key, value, schema, path, out, said)
        self.children(schema, path, stack, out)
        self.shape(schema, path, out)
        return _in_order_of(schema, self.described(out, said, path))

    # ------------------------------------------------------------ references

    def reference(self, schema: Mapping[str, Any], path: tuple[str, ...], stack: tuple[str, ...]) -> JSON:
        ref = schema["$ref"]
        siblings = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "definitions")}
        if not self.target.inline and not siblings:
            return self.keep(ref, path)
        if ref in stack:
            if not self.target.inline:  # a described use of a recursive type: the description goes, the reference stays
                return self.keep(ref, path)
            cycle = " -> ".join(name.rsplit("/", 1)[-1] for name in (*stack[stack.index(ref) :], ref))
            raise self.error(path, f"the type refers to itself ({cycle}) and references must be written out; "
                                   "give it a fixed depth, or take it as a JSON text")  # fmt: skip
        return self.node({**self.resolve(ref, path), **siblings}, path, (*stack, ref))

    def keep(self, ref: str, path: tuple[str, ...]) -> JSON:
        name = ref.rsplit("/", 1)[-1]
        if ref == "#":
            return {"$ref": ref}
        if name not in self.kept:
            self.kept[name] = {}  # before its own references are followed
            self.kept[name] = self.node(self.resolve(ref, path), (name,), (ref,))
        return {"$ref": f"#/$defs/{name}"}

    def resolve(self, ref: str, path: tuple[str, ...]) -> Mapping[str, Any]:
        found = resolve(self.root, ref)
        if found is None:
            raise self.error(path, f"{ref} refers to nothing")
        return found

    # ------------------------------------------------------------ one keyword

    def keyword(
        self, key: str, value: Any, schema: Mapping[str, Any], path: tuple[str, ...], out: JSON, said: list[str]
    ) -> None:
        """Put one keyword into `out`, or its meaning into `said`, for the description."""
        convert = _CONVERSIONS.get(key)
        if convert is not None:
            convert(self, value, schema, out, said)
        elif key in _LOGIC:
            raise self.error(path, f"{self.target.name} has no {key!r}; check it inside the tool instead")
        elif key in _HANDLED or key.startswith("x-"):
            return
        elif key in self.target.keywords:
            out[key] = value
        elif key not in _ANNOTATIONS:
            said.append(f"{key}: {_short(value)}")

    def const(self, value: Any, schema: Mapping[str, Any], out: JSON, said: list[str]) -> None:
        if "const" in self.target.keywords:
            out["const"] = value
            if not self.target.closed:
                return
            out.setdefault("type", _type_of(value))
        else:
            self.enum([value], schema, out, said)

    def enum(self, values: Any, schema: Mapping[str, Any], out: JSON, said: list[str]) -> None:
        if self.target.text_enums and not all(isinstance(value, str) or value is None for value in values):
            said.append(f"one of {_short(values)}")
        else:
            if not self.target.empty_texts and "" in values:
                said.append("or empty")
                values = [value for value in values if value != ""]
            out["enum"] = [value for value in values if not (self.target.nullable and value is None)]
            if self.target.nullable and None in values:
                out["nullable"] = True
        if "type" not in schema and len(kinds := {_type_of(value) for value in values if value is not None}) == 1:
            out["type"] = kinds.pop()

    def default(self, value: Any, schema: Mapping[str, Any], out: JSON, said: list[str]) -> None:
        if "default" in self.target.keywords:
            out["default"] = value
        elif value is not None:
            said.append(f"default: {_short(value)}")

    def form(self, value: Any, schema: Mapping[str, Any], out: JSON, said: list[str]) -> None:
        if self.target.formats is None or value in self.target.formats:
            out["format"] = value
        else:
            said.append(f"format: {value}")

    def least_items(self, value: Any, schema: Mapping[str, Any], out: JSON, said: list[str]) -> None:
        allowed = self.target.least_items
        if "minItems" in self.target.keywords and (allowed is None or value in allowed):
            out["minItems"] = value
        else:
            said.append(f"minItems: {value}")

    def above(self, value: Any, schema: Mapping[str, Any], out: JSON, said: list[str]) -> None:
        self.bound("exclusiveMinimum", "minimum", value, 1, schema, out, said)

    def below(self, value: Any, schema: Mapping[str, Any], out: JSON, said: list[str]) -> None:
        self.bound("exclusiveMaximum", "maximum", value, -1, schema, out, said)

    def bound(
        self, key: str, inclusive: str, value: Any, step: int, schema: Mapping[str, Any], out: JSON, said: list[str]
    ) -> None:  # fmt: skip
        if key in self.target.keywords:
            out[key] = value
        elif inclusive in self.target.keywords and schema.get("type") == "integer" and isinstance(value, int):
            out[inclusive] = value + step
        else:
            said.append(f"{key}: {_short(value)}")

    # ------------------------------------------------------------ what is inside

    def children(self, schema: Mapping[str, Any], path: tuple[str, ...], stack: tuple[str, ...], out: JSON) -> None:
        if isinstance(properties := schema.get("properties"), Mapping):
            out["properties"] = {name: self.node(item, (*path, name), stack) for name, item in properties.items()}
        bare = _is_array(schema) and not schema.keys() & {"items", "prefixItems"}
        if bare or "items" in schema:  # every service wants to be told what is in a list
            out["items"] = self.node(schema.get("items", {}), (*path, "[]"), stack)
        if isinstance(prefix := schema.get("prefixItems"), list):
            self.positions(prefix, path, stack, out)
        if isinstance(union := schema.get("anyOf"), list):
            out["anyOf"] = [self.node(item, path, stack) for item in union]
        extra = schema.get("additionalProperties")
        if isinstance(extra, Mapping) and "additionalProperties" in self.target.keywords and not self.target.closed:
            out["additionalProperties"] = self.node(extra, (*path, "*"), stack)

    def positions(self, prefix: list[Any], path: tuple[str, ...], stack: tuple[str, ...], out: JSON) -> None:
        items = [self.node(item, (*path, f"[{place}]"), stack) for place, item in enumerate(prefix)]
        if "prefixItems" in self.target.keywords:
            out["prefixItems"] = items
            return
        different = [item for place, item in enumerate(items) if item not in items[:place]]
        out["items"] = different[0] if len(different) == 1 else {"anyOf": different}
        if len(different) > 1:
            self.note(path, "the order of the types in the list")

    def shape(self, schema: Mapping[str, Any], path: tuple[str, ...], out: JSON) -> None:
        """What the type as a whole must look like: objects, null, and the types that must be said."""
        self.one_type(out)
        if out.get("type") == "object" or "properties" in out:
            self.whole_object(schema, path, out)
        if self.target.nullable:
            _say_nullable(out)
        elif isinstance(out.get("type"), list) and not self.target.required:
            _split_types(out)
        if self.target.closed and not out.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
            self.any_value(path, schema)

    def one_type(self, out: JSON) -> None:
        if "type" not in out and "properties" in out:
            out["type"] = "object"
        if isinstance(out.get("type"), list) and len(out["type"]) == 1:
            out["type"] = out["type"][0]

    def whole_object(self, schema: Mapping[str, Any], path: tuple[str, ...], out: JSON) -> None:
        extra = schema.get("additionalProperties")
        free = extra is True or isinstance(extra, Mapping) or ("properties" not in schema and path and extra is None)
        if free and (self.target.closed or not (self.target.empty_objects or out.get("properties"))):
            raise self.error(path, f"{self.target.name} has no objects with free keys; use a model with fixed fields, or a "
                                   f"list of objects with a key and a value field{self.way_out()}")  # fmt: skip
        if self.target.closed or (extra is not None and "additionalProperties" in self.target.keywords):
            out["additionalProperties"] = out.get("additionalProperties", False if self.target.closed else extra)
        if self.target.closed:
            out.setdefault("properties", {})
        if self.target.required:
            self.require_all(schema, path, out)
        elif "required" in out:
            self.require_known(path, out)

    def require_known(self, path: tuple[str, ...], out: JSON) -> None:
        """A property that is required but not described is refused, and could not come in a closed object anyway."""
        known = [name for name in dict.fromkeys(out["required"]) if name in (out.get("properties") or {})]
        for name in out["required"]:
            if name not in known:
                self.notes.append(f"{_place(path)}: {name!r} is required but not described, so it is left out")
        out["required"] = known

    def require_all(self, schema: Mapping[str, Any], path: tuple[str, ...], out: JSON) -> None:
        required = schema.get("required") or []
        for name, item in out["properties"].items():
            if name not in required and not allows_null(item, {"$defs": self.kept}):
                out["properties"][name] = _nullable(item)
        out["required"] = list(out["properties"])

    # ------------------------------------------------------------ merging, describing, complaining

    def merged(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
        """`oneOf` as anyOf, and `allOf` laid over each other where nothing is said twice."""
        if "oneOf" in schema and "anyOf" not in schema:
            schema = {("anyOf" if key == "oneOf" else key): value for key, value in schema.items()}
        if "allOf" not in schema:
            return schema
        whole = {key: value for key, value in schema.items() if key != "allOf"}
        for piece in schema["allOf"]:
            if "$ref" in piece:
                self.resolve(piece["$ref"], path)  # an error if there is nothing
                piece = followed(piece, self.root)
            if "$ref" in piece:
                raise self.error(path, f"{piece['$ref']} only refers to itself")
            for key, value in piece.items():
                if key in ("properties", "$defs") and key in whole:
                    whole[key] = {**value, **whole[key]}
                elif key == "required":
                    whole[key] = [*whole.get(key, []), *value]
                elif whole.setdefault(key, value) != value and key not in _ANNOTATIONS:
                    raise self.error(path, f"allOf says two different things about {key!r}")
        return whole

    def any_value(self, path: tuple[str, ...], schema: Any) -> JSON:
        """`{}` and `true` allow everything; `false` allows nothing."""
        if schema is False or self.target.closed:
            raise self.error(path, f"{self.target.name} needs a type here; say which one{self.way_out()}")
        return {}

    def described(self, out: JSON, said: list[str], path: tuple[str, ...]) -> JSON:
        if said:
            limits = f"({'; '.join(said)})"
            out["description"] = f"{out['description']} {limits}" if out.get("description") else limits
            for limit in said:
                if not limit.startswith("default"):
                    self.note(path, limit)
        return out

    def note(self, path: tuple[str, ...], what: str) -> None:
        self.notes.append(f"{_place(path)}: {what}: only said in the description, {self.target.name} cannot express it")

    def way_out(self) -> str:
        return ", or use a tool without strict=True" if self.target.closed else ""

    def error(self, path: tuple[str, ...], what: str) -> InvalidRequest:
        return InvalidRequest(f"schema of {_place(path)}: {what}")


_CONVERSIONS: dict[str, Callable[[_Adapter, Any, Mapping[str, Any], JSON, list[str]], None]] = {
    "const": _Adapter.const,
    "enum": _Adapter.enum,
    "default": _Adapter.default,
    "format": _Adapter.form,
    "minItems": _Adapter.least_items,
    "exclusiveMinimum": _Adapter.above,
    "exclusiveMaximum": _Adapter.below,
}


def _place(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[", "[") or "the arguments"


def _is_array(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:200] + "…"


def _type_of(value: Any) -> str:
    names: list[tuple[type, str]] = [(bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"),
                                     (list, "array"), (dict, "object")]  # fmt: skip
    return next((name for kind, name in names if isinstance(value, kind)), "null")


# ---------------------------------------------------------------- null


def _nullable(schema: JSON) -> JSON:
    """`schema`, or null."""
    if isinstance(schema.get("type"), str) and not schema.keys() & {"enum", "const", "anyOf"}:
        return {**schema, "type": [schema["type"], "null"]}
    if isinstance(schema.get("type"), list):
        return {**schema, "type": [*schema["type"], "null"]}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    outer: JSON = {key: schema[key] for key in ("title", "description") if key in schema}
    inner = {key: value for key, value in schema.items() if key not in outer}
    return {**outer, "anyOf": [inner, {"type": "null"}]}


def _say_nullable(out: JSON) -> None:
    """Null the OpenAPI way: beside the type, not among the types."""
    _split_types(out)
    union = out.get("anyOf")
    if union is None:
        return
    rest = [item for item in union if item.get("type") != "null"]
    if len(rest) > 1:
        out["anyOf"] = rest
    else:
        del out["anyOf"]
        for key, value in (rest[0] if rest else {"type": "null"}).items():
            out.setdefault(key, value)
    if 0 < len(rest) < len(union):
        out["nullable"] = True


def _split_types(out: JSON) -> None:
    """A list of types as a union of one schema for each."""
    kinds = out.get("type")
    if not isinstance(kinds, list) or "anyOf" in out:
        return
    outer: JSON = {key: out.pop(key) for key in ("title", "description", "default") if key in out}
    inner = {key: value for key, value in out.items() if key != "type"}
    if isinstance(inner.get("enum"), list):
        inner["enum"] = [value for value in inner["enum"] if value is not None]
    out.clear()
    out |= outer
    out["anyOf"] = [{"type": kind} if kind == "null" else {"type": kind, **inner} for kind in kinds]


def allows_null(schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether null is a value of `schema`, as far as it says so. root: the schema that holds the definitions."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and "$ref" in schema and schema["$ref"] not in seen:
        seen.add(schema["$ref"])
        schema = resolve(root, schema["$ref"])
    if not isinstance(schema, Mapping) or "$ref" in schema:
        return schema is True
    if "const" in schema:
        return schema["const"] is None
    if "enum" in schema:
        return None in schema["enum"]
    if "type" in schema:
        return "null" in ([schema["type"]] if isinstance(schema["type"], str) else schema["type"])
    union = schema.get("anyOf") or schema.get("oneOf")
    return any(allows_null(item, root) for item in union) if union else not schema.keys() & {"allOf", "properties"}


def without_nulls(value: Any, schema: Any, root: Mapping[str, Any] | None = None) -> Any:
    """`value` without the nulls that can only mean "not given": of an optional property whose schema has no null.

    Strict mode makes every property required and the optional ones nullable, so a model that leaves one out says null.
    """
    root = schema if root is None else root
    schema = followed(schema, root)
    if isinstance(value, list):
        return [without_nulls(item, schema.get("items", {}), root) for item in value]
    if not isinstance(value, dict):
        return value
    for branch in schema.get("anyOf") or schema.get("oneOf") or ():
        found = followed(branch, root)
        if isinstance(found.get("properties"), Mapping) and value.keys() <= found["properties"].keys():
            return without_nulls(value, found, root)
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return {
        name: without_nulls(item, properties.get(name, {}), root)
        for name, item in value.items()
        if not (item is None and name in properties and name not in required and not allows_null(properties[name], root))
    }


# ---------------------------------------------------------------- finding things in a schema


def resolve(root: Mapping[str, Any], ref: str) -> Mapping[str, Any] | None:
    """What a local reference (`#/$defs/Name`) points to, None if to nothing. Remote ones are never fetched."""
    if not ref.startswith("#"):
        return None
    found: Any = root
    for step in ref.lstrip("#").strip("/").split("/") if len(ref) > 1 else ():
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def schema_at(schema: Mapping[str, Any], place: tuple[str | int, ...]) -> JSON:
    """The piece of `schema` for one value in the arguments: ("stops", 0, "name"). As near as it can be found."""
    found = followed(schema, schema)
    for step in place:
        below = _below(found, step, schema)
        if below is None:
            break
        found = followed(below, schema)
    return {key: value for key, value in found.items() if key != "$defs"}


def _below(found: Mapping[str, Any], step: str | int, root: Mapping[str, Any]) -> Any:
    if isinstance(step, int):
        return found.get("items")
    properties = found.get("properties")
    if isinstance(properties, Mapping) and step in properties:
        return properties[step]
    for branch in found.get("anyOf") or found.get("oneOf") or ():
        below = _below(followed(branch, root), step, root)
        if below is not None:
            return below
    extra = found.get("additionalProperties")
    return extra if isinstance(extra, Mapping) else None


def followed(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` with the reference in it followed, if it is one."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and "$ref" in schema and schema["$ref"] not in seen:
        seen.add(schema["$ref"])
        schema = {**(resolve(root, schema["$ref"]) or {}), **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema if isinstance(schema, Mapping) else {}
