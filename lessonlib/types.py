"""The vocabulary of the library: what a conversation, a request, an answer and a stream are made of.

One vocabulary for five wire formats. Two rules explain its shape:

* Same wire, no loss; other wire, honest loss. Every part of an answer remembers which wire format it came from (`wire`)
  and its JSON as it came (`raw`). Sent back to that wire format the raw JSON goes; sent to another one, the part is rebuilt
  from its unified fields, and what only the first vendor can read stays behind.
* Unified and raw. Wherever several vendors' words become one word of ours (stop reason, usage), the vendor's own value
  stands beside it. "Not reported" is None, never 0; unknown is `other`, never `end`.

Two roles are enough. Tool results are parts of a *user* message, which is the strictest form that any vendor asks for
(Anthropic's); going from strict to loose loses nothing, the other direction would have to guess.

What this file does not do: it knows no vendor's field names (see `wire/`), and no I/O. What people write and store is a
pydantic model, which checks it; the events of a stream are plain slotted dataclasses, because thousands of them are made.
"""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator, model_validator

JSON = dict[str, Any]
"""A JSON object as Python reads it."""


class Record(BaseModel):
    """Base of all stored types: frozen, no unknown fields, and a JSON round trip that loses nothing.

    JSON is read and written by the standard library. pydantic's own writer replaces lone surrogates (half of an emoji, which
    models really send, as `"\\ud83d"`) where they stand in a key, and refuses deep nesting. Validators are built at first
    use, not at import.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants", defer_build=True)

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """JSON text of this record. Takes the options of `model_dump` as well."""
        value = self.model_dump(**options) if options else self
        separators = (",", ":") if indent is None else None
        try:
            text = json.dumps(value, default=_fields_of, ensure_ascii=False, indent=indent, separators=separators)
            text.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form; as an ASCII escape it survives
            text = json.dumps(value, default=_fields_of, indent=indent, separators=separators)
        except RecursionError:
            raise ValueError("nested too deeply for JSON") from None
        return text

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """The record that `model_dump_json` wrote. Raises pydantic.ValidationError where it is not one."""
        try:
            value = json.loads(json_data)
        except (ValueError, RecursionError):
            return super().model_validate_json(json_data, **options)  # to say what is wrong, in pydantic's words
        return cls.model_validate(value, **options)


def _fields_of(record: Record) -> JSON:
    return {name: getattr(record, name) for name in type(record).model_fields}


# ---------------------------------------------------------------- parts of a message


class PartBase(Record):
    """What all parts share: where the part came from.

    wire: name of the wire format that produced the part ("anthropic-messages"), None when a person wrote it.
    raw: the part's JSON exactly as that wire format sent it.
    inside: the part stands inside the same wire item as the part before it (a picture in a text step); that earlier
        part's `raw` carries both, so a replay to the same wire sends nothing for this one.
    service: who answered, where one wire format is spoken by many ("deepseek"): what one of them signed or added is not
        sent to another. None where the wire format has one vendor.
    """

    wire: str | None = None
    service: str | None = Field(default=None, repr=False)
    raw: JSON | None = Field(default=None, repr=False)
    inside: bool = Field(default=False, repr=False)

    def raw_for(self, wire: str) -> JSON | None:
        """The raw JSON if this part may be replayed as it is to the wire format `wire`, else None."""
        return self.raw if self.wire == wire else None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, with some fields changed. An edited part is no longer what the vendor sent, so it loses its `raw` (which
        would be replayed instead of the edit), unless the update brings one."""
        edited = any(name not in ("wire", "service", "raw", "inside") for name in update or ())
        if edited and "raw" not in (update or ()):
            update = {**(update or {}), "raw": None}
        return super().model_copy(update=update, deep=deep)


class Text(PartBase):
    """Text that a person sees."""

    type: Literal["text"] = "text"
    text: str


class Image(PartBase):
    """A picture: either `data` (base64, with its `media_type`) or a `url`."""

    type: Literal["image"] = "image"
    data: str | None = Field(default=None, repr=False)
    url: str | None = None
    media_type: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.data is None) == (self.url is None):
            raise ValueError("an Image needs exactly one of data (base64) and url")
        if self.data is not None and self.data.startswith("data:"):
            raise ValueError("that is a data URL: pass it as url=, or only what stands behind its comma as data=")
        if self.data is not None and not self.media_type:
            raise ValueError('an Image with data needs its media_type, for example "image/png"')
        return self

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> Image:
        """A picture from its bytes."""
        return cls(data=base64.b64encode(data).decode("ascii"), media_type=media_type)

    @classmethod
    def from_path(cls, path: str | Path, media_type: str | None = None) -> Image:
        """A picture from a file; the media type is guessed from the file's name if not given."""
        path = Path(path)
        kind = media_type or mimetypes.guess_type(path.name)[0]
        if kind is None:
            raise ValueError(f"cannot tell the media type of {path.name!r}; pass media_type=")
        return cls.from_bytes(path.read_bytes(), kind)


class Reasoning(PartBase):
    """What the model thought. `text` is the readable summary, often empty; the part that counts for a replay (signature,
    encrypted content) is in `raw`, is bound to its vendor, and never shown."""

    type: Literal["reasoning"] = "reasoning"
    text: str = ""


class ToolCall(PartBase):
    """A call that the *client* is asked to run.

    call_id: the id that pairs call and result (OpenAI's `call_id`, not the item's own `id`).
    args: the arguments as an object, or None when they cannot be used.
    raw_args: the arguments' text as the model wrote it.
    args_error: why `args` is None.
    kind: "function", or a wire's own kind of client call ("custom", "shell", "apply_patch", "computer", ...).
    """

    type: Literal["tool_call"] = "tool_call"
    call_id: str
    name: str
    args: JSON | None = None
    raw_args: str = ""
    args_error: str | None = None
    kind: str = "function"

    @model_validator(mode="before")
    @classmethod
    def _fill_raw_args(cls, value: Any) -> Any:
        if isinstance(value, dict) and "raw_args" not in value and isinstance(value.get("args"), dict):
            return {**value, "raw_args": json.dumps(value["args"], ensure_ascii=False, separators=(",", ":"))}
        return value

    @model_validator(mode="after")
    def _args_or_reason(self) -> Self:
        if self.args is None and not self.args_error:
            raise ValueError("a ToolCall without args needs args_error: the reason why it cannot be run")
        return self


class ToolResult(PartBase):
    """The answer to one ToolCall, found by `call_id`. `name` may be left empty: the encoder takes it from the call."""

    type: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str = ""
    content: str | list[Annotated[Text | Image, Field(discriminator="type")]] = ""
    is_error: bool = False

    @field_validator("content", mode="before")
    @classmethod
    def _is_text_or_parts(cls, value: Any) -> Any:
        if isinstance(value, str):
            return value
        if isinstance(value, (list, tuple)):
            return list(_as_parts(value))
        kind = type(value).__name__
        raise ValueError(f"a result is text or a list of Text and Image; a {kind} goes in as json.dumps(value)")

    @property
    def text(self) -> str:
        """The text of the result, pictures left out."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, Text))


class Opaque(PartBase):
    """Something that the unified vocabulary has no word for (a server-side search, a compaction, a continuation token).

    It is kept and replayed to its own wire format, and never sent to another one. `kind` is the wire's own type word.
    """

    type: Literal["opaque"] = "opaque"
    kind: str


Part = Annotated[Text | Image | Reasoning | ToolCall | ToolResult | Opaque, Field(discriminator="type")]


class Message(Record):
    """One turn of a conversation. `role` is "user" or "assistant"; tool results are user parts."""

    role: Literal["user", "assistant"]
    parts: list[Part]

    @model_validator(mode="before")
    @classmethod
    def _explain(cls, value: Any) -> Any:
        """Other libraries' messages get an answer that says what to write here."""
        if not isinstance(value, dict):
            return value
        if (hint := _ROLE_HINTS.get(str(value.get("role")))) is not None:
            raise ValueError(hint)
        if "content" in value and "parts" not in value:
            raise ValueError('a Message has `parts`, not `content`: write Message.user("...") or Message.assistant("...")')
        parts = value.get("parts")
        return {**value, "parts": list(_as_parts(parts))} if isinstance(parts, (list, tuple)) else value

    @model_validator(mode="after")
    def _parts_fit_the_role(self) -> Self:
        wrong = ToolResult if self.role == "assistant" else (ToolCall, Reasoning)
        for part in self.parts:
            if isinstance(part, wrong):
                raise ValueError(f"a {type(part).__name__} does not belong into a message of the {self.role}")
        return self

    @classmethod
    def user(cls, *content: str | Part) -> Message:
        """A user message from texts and parts: `Message.user("What is this?", Image.from_path("a.png"))`."""
        return cls(role="user", parts=list(_as_parts(content)))

    @classmethod
    def assistant(cls, *content: str | Part) -> Message:
        """An assistant message from texts and parts, for examples and for histories from elsewhere."""
        return cls(role="assistant", parts=list(_as_parts(content)))

    @property
    def text(self) -> str:
        """The visible text, all pieces in order, nothing put in between."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        """The readable reasoning, all pieces in order."""
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls which the client must answer, in order."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def tool_results(self) -> list[ToolResult]:
        """The results in this (user) message, in order."""
        return [part for part in self.parts if isinstance(part, ToolResult)]


_ROLE_HINTS = {
    "system": "there is no system role: the system prompt goes into Request(system=...)",
    "developer": "there is no developer role: the system prompt goes into Request(system=...)",
    "tool": "there is no tool role: write Message.user(ToolResult(call_id=..., content=...))",
    "model": 'the role is "assistant", not "model"',
}


def _as_parts(content: Iterable[str | Part]) -> Iterator[Part]:
    for piece in content:
        yield Text(text=piece) if isinstance(piece, str) else piece


@cache
def _history() -> TypeAdapter[list[Message]]:
    return TypeAdapter(list[Message])


def dump_history(messages: Iterable[Message]) -> str:
    """A whole conversation as one JSON text (a list), raw parts included. `load_history` gives it back unchanged."""
    return "[" + ",".join(message.model_dump_json() for message in messages) + "]"


def load_history(text: str | bytes) -> list[Message]:
    """The conversation that `dump_history` wrote. Raises ValueError where it is not one (what does not fit is a
    pydantic.ValidationError, which names the place)."""
    try:
        return _history().validate_python(json.loads(text))
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


# ---------------------------------------------------------------- a request


class Tool(Record):
    """A tool that the model may call.

    name, description: what the model sees.
    parameters: JSON Schema of the arguments, always an object schema.
    strict: ask the vendor to hold the model to the schema; None leaves it to the vendor's default.
    kind: "function", or "custom": free text as input instead of JSON (OpenAI). A custom tool's call has
        args {"input": text}; on wire formats without custom tools it is offered as a function with that one argument.
    format: of a custom tool, OpenAI's grammar or text format.
    """

    name: str
    description: str = ""
    parameters: JSON = Field(default_factory=lambda: {"type": "object", "properties": {}})
    strict: bool | None = None
    kind: Literal["function", "custom"] = "function"
    format: JSON | None = None

    @field_validator("name")
    @classmethod
    def _has_a_name(cls, name: str) -> str:
        if not name.strip():
            raise ValueError("a tool needs a name")
        return name

    def schema_for_function(self) -> JSON:
        """The JSON Schema of the arguments; for a custom tool the schema of its single text."""
        if self.kind == "custom":
            return {
                "type": "object",
                "properties": {"input": {"type": "string"}},
                "required": ["input"],
                "additionalProperties": False,
            }
        return self.parameters


class Request(Record):
    """What to ask a model, in no vendor's words.

    messages: the whole conversation so far (a plain string means one user message).
    system: the system prompt.
    tools, tool_choice: "auto", "none", "required", or the name of one of the tools.
    parallel: False asks for at most one call at a time; None leaves the vendor's default.
    max_tokens: cap on the output, reasoning included (all vendors count it so).
    reasoning: how much to think: an effort word ("none", "minimal", "low", "medium", "high", "xhigh", "max"), or a
        budget in tokens (int) where the vendor takes one. None leaves the model's default.
    stop: stop sequences.
    output_schema: JSON Schema (or a pydantic model class) that the answer must follow.
    model: overrides the wire's model.
    extra: {wire name: object}, merged last and deep into that wire's request body, so it can override anything.
    """

    messages: list[Message]
    system: str | None = None
    tools: list[Tool] = Field(default_factory=list)
    tool_choice: str | None = None
    parallel: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    reasoning: str | int | None = None
    stop: list[str] = Field(default_factory=list)
    output_schema: JSON | None = None
    model: str | None = None
    extra: dict[str, JSON] = Field(default_factory=dict)

    @field_validator("messages", mode="before")
    @classmethod
    def _text_is_a_message(cls, value: Any) -> Any:
        if isinstance(value, str):
            return [Message.user(value)]
        return [value] if isinstance(value, Message) else value

    @field_validator("output_schema", mode="before")
    @classmethod
    def _schema_of_a_model(cls, value: Any) -> Any:
        if isinstance(value, type) and issubclass(value, BaseModel):
            return value.model_json_schema()
        return value

    @model_validator(mode="after")
    def _choice_exists(self) -> Self:
        names = [tool.name for tool in self.tools]
        if len(set(names)) != len(names):
            raise ValueError(f"two tools have the same name: {sorted(n for n in names if names.count(n) > 1)[0]!r}")
        if self.tool_choice not in (None, "auto", "none", "required") and self.tool_choice not in names:
            raise ValueError(f"tool_choice {self.tool_choice!r} is neither auto, none, required nor one of {names}")
        return self

    def replace(self, **changes: Any) -> Request:
        """This request with some fields changed, checked again."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return Request(**{**fields, **changes})


# ---------------------------------------------------------------- an answer


class StopReason(StrEnum):
    """Why the model stopped, in one vocabulary. The vendor's own word is `Response.raw_stop`."""

    END = "end"
    LENGTH = "length"
    TOOL_USE = "tool_use"
    REFUSAL = "refusal"
    PAUSE = "pause"
    OTHER = "other"


class Usage(Record):
    """Tokens as one account for all vendors; None means that the vendor did not report it.

    input_tokens: all input, cached and cache-written tokens included.
    output_tokens: all output, reasoning included.
    cached_tokens, cache_write_tokens: parts of the input. reasoning_tokens: part of the output.
    raw: the vendor's own usage object. Quantities only: prices differ per class and vendor.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    raw: JSON = Field(default_factory=dict, repr=False)

    def __add__(self, other: Usage) -> Usage:
        """The sum over two answers. A count that neither reported stays None; `raw` does not survive a sum."""
        sums: dict[str, Any] = {name: _add(getattr(self, name), getattr(other, name)) for name in COUNTS}
        return Usage(**sums)


COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")


def _add(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


class Response(Record):
    """A finished answer; the same whether it came whole or as a stream.

    id: the vendor's id, "" if there is none. model: as the vendor named it. provider: who answered ("anthropic").
    wire: the wire format's name. message: the assistant message, ready to be appended to the history.
    stop, raw_stop: why it ended, in our word and in the vendor's. usage: None if not reported.
    retried: what attempts before this answer had used, as far as it is known (filled by Retry and Fallback); not in `usage`.
    raw: the whole response JSON (of a stream: the JSON that it folds into).
    """

    id: str = ""
    model: str = ""
    provider: str = ""
    wire: str = ""
    message: Message
    stop: StopReason
    raw_stop: str | None = None
    usage: Usage | None = None
    retried: Usage | None = Field(default=None, repr=False)
    raw: JSON = Field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """The visible text, all pieces in order."""
        return self.message.text

    @property
    def reasoning(self) -> str:
        """The readable reasoning, all pieces in order."""
        return self.message.reasoning

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls which the client must answer."""
        return self.message.tool_calls


# ---------------------------------------------------------------- events of a stream


@dataclass(slots=True)
class TextDelta:
    """A piece of visible text of part number `index`."""

    index: int
    text: str


@dataclass(slots=True)
class ReasoningDelta:
    """A piece of readable reasoning of part number `index`."""

    index: int
    text: str


@dataclass(slots=True)
class ArgumentsDelta:
    """A piece of the JSON text of a call's arguments: for display only, never to be parsed or run."""

    index: int
    call_id: str
    text: str


@dataclass(slots=True)
class PartDone:
    """Part number `index` is whole. Only now may a call's arguments be looked at."""

    index: int
    part: Part


@dataclass(slots=True)
class Done:
    """The last event of every stream that ended as its protocol says, once."""

    response: Response


Event = TextDelta | ReasoningDelta | ArgumentsDelta | PartDone | Done
"""`index` tells the parts of one answer apart; it rises with the position in the message but may have gaps."""
