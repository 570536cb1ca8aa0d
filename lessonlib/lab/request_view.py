"""The request viewer: one Request in several wire formats side by side, what is written differently, and the rule behind it.

    viewer(request)                                 the three vendors' present APIs
    viewer(request, wires=tuple(WIRES))             all five
    viewer(request, fields=("system", "tools"))     some of the rows
    viewer(request)["anthropic-messages"]           that wire's HTTPRequest; .body, .url, safe_headers()
    viewer(request).curl("openai-responses")        the same as a curl command, the key as a shell variable

Which place of a body comes from which field of the request is not listed anywhere: it is found by experiment. The request is
encoded with the field and without it (a text: with another one), and what differs is the field's place. So the table says
what the encoders do, and nothing else. The footnotes are data (`data/course/request_rules.json`), each with its section in
docs/wire.

What this file does not do: it sends nothing and shows no key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from lessonlib.curl import KEY, for_powershell, for_shell
from lessonlib.errors import InvalidRequest
from lessonlib.lab.course import MODELS, WIRE_OF
from lessonlib.lab.page import Table, element, html, plain
from lessonlib.types import Message, Part, Request, Text, ToolCall, ToolResult
from lessonlib.wire import WIRES
from lessonlib.wire.base import HTTPRequest, WireFormat, compact

NOT_SENT = "(not sent)"
NOTHING = "nothing"
REFUSED = "(refused)"
CELL = 64
"""Characters of a value that a cell shows."""

Change = Callable[[Request, str], tuple[Request, Request]]
"""Makes two requests that differ in one thing, without it and with it. The text is the wire's own model."""


@dataclass(frozen=True, slots=True)
class Row:
    """One field of the request: where each wire writes it, and what. notes: the numbers of its footnotes."""

    field: str
    cells: Mapping[str, str]
    notes: tuple[int, ...] = ()

    @property
    def same(self) -> bool:
        """All wires write the same at the same place."""
        return len(set(self.cells.values())) == 1


@dataclass(frozen=True, slots=True)
class Rule:
    """Why a wire writes something as it does, and where that stands."""

    wire: str
    text: str
    page: str
    section: str

    def __str__(self) -> str:
        return f"{self.wire}: {self.text} ({self.page}, section {self.section})"


class Viewer:
    """A request in several wire formats. A wire that cannot write it holds the error instead."""

    def __init__(
        self, request: Request, wires: Iterable[str], *, stream: bool = True, fields: Iterable[str] | None = None
    ) -> None:
        self.request, self.stream = request, stream
        self.wires = tuple(WIRE_OF.get(name, name) for name in wires)
        self.encoded: dict[str, HTTPRequest | InvalidRequest] = {name: _encode(name, request, stream) for name in self.wires}
        self.rules: list[Rule] = []
        rows = self._all_rows()
        self.rows = [self._noted(row) for row in rows if fields is None or row.field in tuple(fields)]
        if fields is not None and (wrong := set(fields) - {row.field for row in rows}):
            raise ValueError(f"no row {min(wrong)!r}; the rows are {', '.join(row.field for row in rows)}")

    def _all_rows(self) -> list[Row]:
        rows = [Row("address", {wire: urlsplit(found.url).path for wire, found in self._good()})]
        for field, change in _changes(self.request):
            rows.append(Row(field, {wire: self._cell(wire, change) for wire, _ in self._good()}))
        rows += [Row("stream", self._stream_cells()), Row("always there", self._rest_cells())]
        refused = {wire: found.message for wire, found in self.encoded.items() if isinstance(found, InvalidRequest)}
        if refused:
            rows.append(Row("refused", {wire: refused.get(wire, "-") for wire in self.wires}))
        return [Row(row.field, {wire: row.cells.get(wire, REFUSED) for wire in self.wires}) for row in rows]

    def _noted(self, row: Row) -> Row:
        """The row with the numbers of its footnotes."""
        numbers = []
        for wire in self.wires:
            rule = rules().get(row.field.rpartition(" (")[0] or row.field, {}).get(wire)
            if rule is not None and row.cells[wire] != REFUSED:
                self.rules.append(Rule(wire, rule["rule"], rule["page"], rule["section"]))
                numbers.append(len(self.rules))
        return Row(row.field, row.cells, tuple(numbers))

    def __getitem__(self, wire: str) -> HTTPRequest:
        found = self.encoded[WIRE_OF.get(wire, wire)]
        if isinstance(found, InvalidRequest):
            raise found
        return found

    def curl(self, wire: str, *, powershell: bool = False) -> Command:
        """The request as a curl command. The key is a shell variable."""
        name = WIRE_OF.get(wire, wire)
        write = for_powershell if powershell else for_shell
        return Command(write(self[name], WIRES[name].key_variables[0], stream=self.stream))

    # ------------------------------------------------------------ rows

    def _cell(self, wire: str, change: Change) -> str:
        without, with_it = (_encode(wire, request, self.stream) for request in change(self.request, MODELS[wire]))
        if isinstance(with_it, InvalidRequest):
            return REFUSED
        if isinstance(without, InvalidRequest):
            return "required"
        return _written(without, with_it) or NOT_SENT

    def _stream_cells(self) -> dict[str, str]:
        others = {wire: _encode(wire, self.request, not self.stream) for wire, _ in self._good()}
        return {
            wire: (_written(other, self[wire]) if isinstance(other, HTTPRequest) else "") or NOT_SENT
            for wire, other in others.items()
        }

    def _rest_cells(self) -> dict[str, str]:
        """What stands in the body although the request said nothing of it."""
        cells = {}
        for wire, found in self._good():
            bare = _encode(wire, Request(messages=[Message.user("?")]), self.stream)
            body = bare.body if isinstance(bare, HTTPRequest) else {}
            said = {key: value for key, value in body.items() if found.body.get(key) == value}
            for name in ("model", "stream", "stream_options"):  # these have rows of their own
                said.pop(name, None)
            cells[wire] = ", ".join(f"{key}: {compact(value)}" for key, value in said.items()) or NOTHING
        return cells

    def _good(self) -> Iterator[tuple[str, HTTPRequest]]:
        for wire, found in self.encoded.items():
            if isinstance(found, HTTPRequest):
                yield wire, found

    # ------------------------------------------------------------ forms

    def table(self) -> Table:
        """The fields and how each wire writes them; rows in which the wires differ are marked."""
        rows = [(_label(row), *(plain(row.cells[wire], CELL) for wire in self.wires)) for row in self.rows]
        marks = frozenset(number for number, row in enumerate(self.rows) if not row.same)
        return Table(("field", *self.wires), tuple(rows), marks=marks)

    def __repr__(self) -> str:
        lines = [f"one request in {len(self.wires)} wire formats; > marks what they write differently"]
        for row in self.rows:
            if row.same:
                lines.append(f"  {_label(row)}: {plain(row.cells[self.wires[0]], 90)}")
                continue
            lines.append(f"> {_label(row)}")
            lines += [f"    {wire:{max(map(len, self.wires))}}  {plain(row.cells[wire], 84)}" for wire in self.wires]
        return "\n".join([*lines, *self._footnotes()])

    def _footnotes(self) -> list[str]:
        return [f"[{number}] {rule}" for number, rule in enumerate(self.rules, 1)]

    def _repr_html_(self) -> str:
        left = "text-align:left;vertical-align:top;overflow-wrap:anywhere"
        head = "".join(element("th", html(name), scope="col", style="text-align:left") for name in ("field", *self.wires))
        body = ""
        for row in self.rows:
            cells = "".join(element("td", _cell_html(row, wire), style=left) for wire in self.wires)
            body += element("tr", element("th", html(_label(row)), scope="row", style=left) + cells)
        notes = "".join(element("li", html(str(rule))) for rule in self.rules)
        whole = "".join(self._whole(wire) for wire in self.wires)
        footnotes = (
            element("details", element("summary", f"{len(self.rules)} rules") + element("ol", notes)) if notes else ""
        )
        return f'<table style="width:100%"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{footnotes}{whole}'

    def _whole(self, wire: str) -> str:
        """The body and the curl command of one wire, folded."""
        found = self.encoded[wire]
        if isinstance(found, InvalidRequest):
            return ""
        body = element("pre", html_lines(json.dumps(found.body, ensure_ascii=False, indent=2)))
        command = element("pre", html_lines(str(self.curl(wire))))
        summary = element("summary", f"{html(wire)}: the whole body, and the curl command")
        return element("details", summary + body + command)


class Command(str):
    """A command line that shows itself as it is, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return element("pre", html_lines(self))


def viewer(
    request: Request,
    wires: Iterable[str] = ("openai", "anthropic", "gemini"),
    *,
    stream: bool = True,
    fields: Iterable[str] | None = None,
) -> Viewer:
    """The request in the wire formats `wires` (names, or the vendors' names for their present APIs). fields: only these
    rows. Raises ValueError, which names the rows there are, if there is no such row."""
    return Viewer(request, wires, stream=stream, fields=None if fields is None else tuple(fields))


def html_lines(text: str) -> str:
    """A text of several lines as HTML."""
    return "\n".join(html(line) for line in text.split("\n"))


@cache
def rules() -> dict[str, dict[str, dict[str, str]]]:
    """The footnotes: field -> wire format -> the rule, its page and section."""
    file = resources.files("lessonlib").joinpath("data/course/request_rules.json")
    data: dict[str, dict[str, dict[str, str]]] = json.loads(file.read_text(encoding="utf-8"))["rules"]
    return data


def _label(row: Row) -> str:
    return row.field + "".join(f" [{number}]" for number in row.notes)


def _cell_html(row: Row, wire: str) -> str:
    """The place in bold. Marked is who stands alone where others agree, and who sends nothing."""
    cell, others = row.cells[wire], [text for name, text in row.cells.items() if name != wire]
    place, colon, value = html(cell, CELL * 2).partition(": ")
    text = (element("b", place) if not row.same and colon else place) + colon + value
    agree = any(others.count(text) > 1 for text in others)
    alone = cell not in others and (agree or cell in (NOT_SENT, REFUSED))
    return element("code", element("mark", text) if alone else text)


# ---------------------------------------------------------------- the experiments


def _wire(name: str) -> WireFormat:
    kind = WIRES[name]
    return kind(MODELS[name], api_key=KEY, base_url=kind.default_base_url)


def _encode(name: str, request: Request, stream: bool) -> HTTPRequest | InvalidRequest:
    try:
        return _wire(name).encode(request, stream=stream)
    except InvalidRequest as error:
        return error


_DEFAULTS: dict[str, Any] = {
    "system": None, "tools": [], "tool_choice": None, "parallel": None, "max_tokens": None, "reasoning": None, "stop": [],
    "output_schema": None,
}  # fmt: skip


def _changes(request: Request) -> Iterator[tuple[str, Change]]:
    """What can be taken out of the request or changed in it, one thing at a time."""
    yield "model", _other_model
    for number, message in enumerate(request.messages, 1):
        for place, part in enumerate(message.parts):
            changed = _other(part)
            if changed is not None:
                label = _LABELS[part.type].format(message.role)
                yield f"{label} ({number})", partial(_with_part, number - 1, place, changed)
    for name, default in _DEFAULTS.items():
        if getattr(request, name) != default:
            yield name, partial(_without, name, default)


_LABELS = {"text": "text of the {}", "tool_call": "arguments of a call", "tool_result": "result of a call"}


def _other_model(request: Request, model: str) -> tuple[Request, Request]:
    """One of the same family, so that nothing else changes with it."""
    return request.replace(model=f"{request.model or model}-latest"), request


def _without(name: str, default: Any, request: Request, _: str) -> tuple[Request, Request]:
    if name == "system":  # some wires ask there in words for one call at a time
        request = request.replace(parallel=None)
    if name == "tools":  # what says how tools are used would go with them
        request = request.replace(tool_choice=None, parallel=None)
    return request.replace(**{name: default}), request


def _with_part(number: int, place: int, part: Part, request: Request, _: str) -> tuple[Request, Request]:
    messages = list(request.messages)
    parts = list(messages[number].parts)
    parts[place] = part
    messages[number] = Message(role=messages[number].role, parts=parts)
    return request.replace(messages=messages), request


def _other(part: Part) -> Part | None:
    """The part with another content, so that its place can be found."""
    match part:
        case Text():
            return Text(text=part.text + "\u2020")
        case ToolCall() if part.args is not None:
            return part.model_copy(update={"args": {"\u2020": 1}, "raw_args": '{"\u2020":1}'})
        case ToolResult():
            return part.model_copy(update={"content": "\u2020"})
    return None


def _written(without: HTTPRequest, encoded: HTTPRequest) -> str:
    """Where and what: the places of the body that are different, or the URL."""
    found = [f"{place}: {value}" for place, value in _differences(without.body, encoded.body, "")]
    old, new = urlsplit(without.url), urlsplit(encoded.url)
    if (old.path, old.query) != (new.path, new.query):
        found.append(f"in the URL: {new.path}{'?' if new.query else ''}{new.query}")
    return "; ".join(found)


def _differences(old: Any, new: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in new.items():
            below = f"{place}.{key}" if place else key
            if key not in old:
                yield below, _shown(value)
            elif old[key] != value:
                yield from _differences(old[key], value, below)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_differences(old, new, place)
    elif isinstance(old, str) and isinstance(new, str) and old and new.startswith(old):
        yield f"at the end of {place}", _shown(new[len(old) :].strip())
    else:
        yield place, _shown(new)


def _list_differences(old: list[Any], new: list[Any], place: str) -> Iterator[tuple[str, str]]:
    """Entries that were put in or changed; equal ones at the beginning and the end are passed over."""
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if len(old) == len(new):
        for number in range(start, len(new) - end):
            yield from _differences(old[number], new[number], f"{place}[{number}]")
        return
    for number in range(start, len(new) - end):
        yield f"{place}[{number}]", _shown(new[number])


def _shown(value: Any) -> str:
    return compact(value)
