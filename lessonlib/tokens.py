"""How many tokens a whole request is: not only its texts, but roles, framing, tools, calls and results too.

    count_tokens(request, model="gpt-4o")
    TokenCount(tokens=59, vocabulary='o200k_base', exact=True, ...)

A service bills what its model reads, and that is more than the texts: each message stands in a frame, each tool's schema is
rendered into the prompt, a call and its result carry names and marks. OpenAI publishes its vocabularies and, for its open
models, the frame as well (https://github.com/openai/harmony). What follows from that was measured against recorded requests
and their bills; docs/tokens.md has the table. `exact` means: this model's own vocabulary and a frame that was measured.

Every other count is an estimate and says so in `why`. Anthropic and Google publish no vocabulary; their text is counted
with OpenAI's o200k, in frames fitted to recorded requests. The error is in the table; it is not small, and no number of
digits makes it smaller. An unknown model is counted the same way and never as 0: a guard that counts 0 lets all pass.

What nobody outside can count is not counted, and is listed in `uncounted`: pictures (unless a rule is given as `image=`;
their base64 text is never counted as text), reasoning that is encrypted or signed, parts of a service's own, what `extra`
adds. `allowing` adds a round sum for pictures, for guards, which must err on the high side.

What this file does not do: it asks no service (OpenAI, Anthropic and Google each have an endpoint that counts for them, the
only exact answer there is), and it does not know what a server-side conversation or tool will add.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lessonlib import capabilities
from lessonlib.types import JSON, Image, Message, Opaque, Part, Reasoning, Request, Text, Tool, ToolCall, ToolResult
from lessonlib.vocabulary import SHIPPED, VocabularyMissing, count_text

IMAGE_ALLOWANCE = 1000
"""What `allowing` adds for each picture. Real ones cost from under 100 to a few thousand, by size, model and setting."""

ImageRule = Callable[[Image], int | None]
"""Tokens of a picture, None if they are not known."""


class Named(Protocol):
    """Anything with the name of a wire format: a wire itself, for instance."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The tokens of a request.

    tokens: everything that was counted. vocabulary: counted with which one. exact: the model's own vocabulary and a measured
    frame, so within about 2 % of the bill; False is an estimate. why: what the count rests on, in words.
    uncounted: what is in the request but not in `tokens`, by kind ("image", "reasoning", "opaque", "extra"), with how often.
    parts: `tokens` by where they come from: "system", "messages", "calls", "results", "tools", "schema", "framing".
    """

    tokens: int
    vocabulary: str
    exact: bool
    why: str
    uncounted: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def allowing(self) -> int:
        """`tokens` with a round sum for each picture that was not counted: for guards."""
        return self.tokens + IMAGE_ALLOWANCE * self.uncounted.get("image", 0)


# ---------------------------------------------------------------- the frames


@dataclass(frozen=True, slots=True)
class Frame:
    """What a service's model reads around the texts, in tokens.

    message: around each message. reply: for the beginning of the answer. call, result: around each, beside name and content.
    tools: for the heading of all tools. tool: around each tool. typescript: schemas are rendered as TypeScript (OpenAI);
    else they are counted as JSON, times `json`. measured: against recorded requests, with the model's own vocabulary.
    """

    message: float
    reply: float
    call: float
    result: float
    tools: float
    tool: float = 0
    json: float = 1
    typescript: bool = False
    measured: bool = False


FRAMES: Mapping[str, Frame] = {
    "openai": Frame(message=4, reply=3, call=7, result=5, tools=-1, typescript=True, measured=True),
    "openai-reasoning": Frame(message=4, reply=2, call=10, result=7, tools=2, typescript=True, measured=True),
    "anthropic": Frame(message=4, reply=4, call=30, result=28, tools=480, tool=20),
    "gemini": Frame(message=1, reply=0, call=4, result=6, tools=0, json=0.8),
    "other": Frame(message=4, reply=3, call=12, result=12, tools=90, tool=8),
}
"""By who made the model. Where they come from, and how far they are off: docs/tokens.md."""

_MAKERS = {"gpt-": "openai", "chatgpt-": "openai", "claude-": "anthropic", "gemini-": "gemini"}
"""Who made a model that is not listed, by the beginning of its name: good enough for an estimate."""

_WIRE_MAKERS = {
    "openai-responses": "openai",
    "openai-chat": "openai",
    "anthropic-messages": "anthropic",
    "gemini-interactions": "gemini",
    "gemini-generate-content": "gemini",
}


def count_tokens(
    request: Request, model: str | None = None, wire: Named | str | None = None, *, image: ImageRule | None = None
) -> TokenCount:
    """The tokens of `request` as `model` reads them.

    model: the request's own if it names one. wire: the wire format that it goes to, which tells what is not sent at all
    (another vendor's reasoning) and, for an unknown model, whose frame to take. image: a rule for pictures.
    """
    asked = request.model or model or getattr(wire, "model", None)
    name = wire if isinstance(wire, str) or wire is None else wire.name
    able = capabilities.of(asked)
    maker = able.provider or _maker(asked, name)
    frame = FRAMES.get(_frame_name(maker, able), FRAMES["other"])
    vocabulary, why = _vocabulary(able.encoding, asked, frame)
    counter = _Counter(vocabulary, frame, name, image)
    counter.request(request)
    parts = {kind: tokens for kind, tokens in counter.parts.items() if tokens}
    rare = request.output_schema is not None or any(tool.kind == "custom" for tool in request.tools)
    return TokenCount(
        tokens=sum(parts.values()),
        vocabulary=vocabulary,
        exact=frame.measured and vocabulary == able.encoding and not counter.uncounted and not rare,
        why=f"{why}; what an output schema or a custom tool adds is an estimate" if rare else why,
        uncounted=counter.uncounted,
        parts=parts,
    )


def count(request: Request, model: str | None = None) -> int:
    """The tokens of a request as one number, pictures with a round sum: for policies that must decide before sending."""
    return count_tokens(request, model).allowing


def _maker(model: str | None, wire: str | None) -> str:
    if not model:
        return _WIRE_MAKERS.get(wire or "", "other")
    name = model.rsplit("/", 1)[-1].lower()
    return next((maker for start, maker in _MAKERS.items() if name.startswith(start)), "other")


def _frame_name(maker: str, able: capabilities.Capabilities) -> str:
    return "openai-reasoning" if maker == "openai" and able.thinking not in (None, "none") else maker


def _vocabulary(encoding: str | None, model: str | None, frame: Frame) -> tuple[str, str]:
    """The vocabulary to count with, and what that makes of the count."""
    if encoding is None:
        named = f"the vocabulary of {model}" if model else "the model"
        return SHIPPED, f"an estimate: {named} is not known, so it is counted with OpenAI's {SHIPPED}"
    try:
        count_text("", encoding)
    except VocabularyMissing as missing:
        return SHIPPED, f"an estimate with {SHIPPED}: {missing}"
    return encoding, f"{model}'s own vocabulary" + (
        " and a measured frame" if frame.measured else "; the frame is estimated"
    )


# ---------------------------------------------------------------- counting


class _Counter:
    """Adds a request up, by kind."""

    def __init__(self, vocabulary: str, frame: Frame, wire: str | None, image: ImageRule | None) -> None:
        self.vocabulary = vocabulary
        self.frame = frame
        self.wire = wire
        self.image = image
        self.uncounted: dict[str, int] = {}
        self._sums: dict[str, float] = {}

    @property
    def parts(self) -> dict[str, int]:
        return {kind: round(tokens) for kind, tokens in self._sums.items()}

    def request(self, request: Request) -> None:
        self._add("framing", self.frame.reply)
        if request.system:
            self._add("system", self._text(request.system))
            self._add("framing", self.frame.message)
        names = {call.call_id: call.name for message in request.messages for call in message.tool_calls}
        for message in request.messages:
            self._message(message, names)
        self._tools(request.tools)
        if request.output_schema is not None:
            self._add("schema", self._text(_json(request.output_schema)))
        if request.extra.get(self.wire or ""):
            self._skip("extra")

    def _message(self, message: Message, names: Mapping[str, str]) -> None:
        """The texts and pictures of a message stand in one frame, each call and each result in one of its own."""
        framed = False
        for part in message.parts:
            match part:
                case ToolCall():
                    self._add("calls", self._text(part.name) + self._text(part.raw_args))
                    self._add("framing", self.frame.call)
                case ToolResult():
                    self._result(part, names)
                case _:
                    framed = self._content(part) or framed
        if framed:
            self._add("framing", self.frame.message)

    def _content(self, part: Part) -> bool:
        """Count one part of a message's own; whether it is sent at all."""
        match part:
            case Text():
                self._add("messages", self._text(part.text))
                return bool(part.text)
            case Image():
                self._picture(part, "messages")
                return True
            case Reasoning() | Opaque():
                if self.wire is None or part.wire == self.wire:  # another vendor's stays behind
                    self._skip("reasoning" if isinstance(part, Reasoning) else "opaque")
        return False

    def _result(self, result: ToolResult, names: Mapping[str, str]) -> None:
        self._add("results", self._text(result.name or names.get(result.call_id, "")))
        self._add("framing", self.frame.result)
        for piece in [Text(text=result.content)] if isinstance(result.content, str) else result.content:
            if isinstance(piece, Image):
                self._picture(piece, "results")
            else:
                self._add("results", self._text(piece.text))

    def _tools(self, tools: Sequence[Tool]) -> None:
        if not tools:
            return
        self._add("framing", self.frame.tools)
        if self.frame.typescript:
            self._add("tools", self._text(typescript(tools)))
            return
        for tool in tools:
            written = self._text(f"{tool.name} {tool.description} {_json(tool.schema_for_function())}")
            self._add("tools", written * self.frame.json)
            self._add("framing", self.frame.tool)

    def _picture(self, picture: Image, kind: str) -> None:
        tokens = self.image(picture) if self.image is not None else None
        if tokens is None:
            self._skip("image")
        else:
            self._add(kind, tokens)

    def _text(self, text: str) -> int:
        return count_text(text, self.vocabulary) if text else 0

    def _add(self, kind: str, tokens: float) -> None:
        self._sums[kind] = self._sums.get(kind, 0) + tokens

    def _skip(self, kind: str) -> None:
        self.uncounted[kind] = self.uncounted.get(kind, 0) + 1


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---------------------------------------------------------------- tools as OpenAI's models read them


def typescript(tools: Sequence[Tool]) -> str:
    """The tools as a namespace of TypeScript types, which is how OpenAI's models get them (harmony's README shows it)."""
    lines = ["# Tools", "", "## functions", "", "namespace functions {", ""]
    for tool in tools:
        lines += [f"// {line.rstrip()}" for line in tool.description.splitlines()]
        lines += [f"// {line}" for line in _grammar(tool).splitlines()]
        schema = tool.schema_for_function() if tool.kind == "function" else {}
        if schema.get("properties"):
            lines += [f"type {tool.name} = (_: {_type(schema, '', top=True)}) => any;", ""]
        else:
            lines += [f"type {tool.name} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def _grammar(tool: Tool) -> str:
    """The grammar of a custom tool, which its model reads as it stands."""
    definition = (tool.format or {}).get("definition")
    return definition if isinstance(definition, str) else ""


def _type(schema: Any, indent: str, *, top: bool = False) -> str:
    if not isinstance(schema, dict):
        return "any"
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return " | ".join(_type(branch, indent) for branch in branches)
    if schema.get("enum"):
        return " | ".join(_json(value) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_SCALARS.get(each, str(each)) for each in kind)
    if kind == "array":
        return f"{_type(schema.get('items'), indent)}[]"
    if kind == "object" or (kind is None and "properties" in schema):
        return "\n".join(["{", *_fields(schema, indent, top), indent + "}"])
    return _SCALARS.get(str(kind), "any")


_SCALARS = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def _fields(schema: JSON, indent: str, top: bool) -> Iterator[str]:
    """The lines of an object: comments with titles and descriptions, then `name?: type,`."""
    if top and schema.get("title"):
        yield f"// {schema['title']}"
    required = schema.get("required") or ()
    for name, field_schema in (schema.get("properties") or {}).items():
        described = field_schema if isinstance(field_schema, dict) else {}
        for key in ("title", "description"):
            if described.get(key):
                yield f"{indent}// {described[key]}"
        default = f" // default: {_json(described['default'])}" if "default" in described else ""
        mark = "" if name in required else "?"
        yield f"{indent}{name}{mark}: {_type(field_schema, indent + '    ')},{default}"
