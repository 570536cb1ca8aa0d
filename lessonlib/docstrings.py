"""What a docstring says about a function and its parameters, in the three styles that people write.

    Google   Args:             numpy   Parameters           Sphinx   :param city: Where.
                 city: Where.          ----------
                                       city : str
                                           Where.

The description is everything before the first section. Weighed against a library in docs/decisions/tool-schemas.md: the
three styles fit on this page, and a tool's description must not depend on an optional package.

What this file does not do: it takes no types from a docstring (annotations say them, and are checked), and it reads no
sections but those of parameters.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

_PARAMETERS = frozenset({
    "args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters",
})  # fmt: skip
_OTHERS = frozenset({
    "returns", "return", "yields", "yield", "raises", "warns", "example", "examples", "note", "notes", "warning", "warnings",
    "see also", "references", "attributes", "todo", "methods", "receives",
})  # fmt: skip

_GOOGLE_ENTRY = re.compile(r"(\*{0,2}\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*))?$")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_FIELD = re.compile(r"[:@](\w+)(?:\s+([^:]*?))?\s*:(?:\s+(.*))?$")
_SPHINX_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})


@dataclass(slots=True)
class Docstring:
    """What a docstring says: the text before its sections, and a description for each parameter that it names."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def parse(text: str | None) -> Docstring:
    """Read a docstring of any of the three styles, or of none."""
    found = Docstring()
    description: list[str] = []
    for title, style, body in _sections(inspect.cleandoc(text or "").splitlines()):
        if not title:
            description += _without_fields(body, found.parameters)
        elif title in _PARAMETERS:
            found.parameters.update(_entries(body, _NUMPY_ENTRY if style == "numpy" else _GOOGLE_ENTRY))
    found.description = "\n".join(description).strip()
    return found


def _sections(lines: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """(title, style, lines) of each section; the text outside of sections has no title."""
    title, style, body = "", "", list[str]()
    place = 0
    while place < len(lines):
        line = lines[place]
        heading = line.strip().lower().rstrip(":")
        known = heading in _PARAMETERS or heading in _OTHERS
        below = lines[place + 1].strip() if place + 1 < len(lines) else ""
        if known and not line.startswith(" ") and len(below) >= 3 and set(below) <= {"-", "="}:
            yield title, style, body
            title, style, body = heading, "numpy", []
            place += 1
        elif known and not line.startswith(" ") and line.rstrip().endswith(":"):
            yield title, style, body
            title, style, body = heading, "google", []
        elif style == "google" and line.strip() and not line.startswith(" "):
            yield title, style, body
            title, style, body = "", "", [line]
        else:
            body.append(line)
        place += 1
    yield title, style, body


def _entries(body: list[str], entry: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """(name, description) of each entry; what is indented below an entry belongs to it."""
    names: list[str] = []
    text: list[str] = []
    for line in textwrap.dedent("\n".join(body)).splitlines():
        match = None if line.startswith(" ") else entry.match(line)
        if match is None:
            text.append(line.strip())
            continue
        yield from ((name, _joined(text)) for name in names)
        names = [name.strip().lstrip("*") for name in match.group(1).split(",")]
        text = [match.group(2) or ""] if match.re.groups > 1 else []
    yield from ((name, _joined(text)) for name in names)


def _without_fields(body: list[str], parameters: dict[str, str]) -> list[str]:
    """The lines that are no Sphinx fields; the fields of parameters go into `parameters`."""
    rest: list[str] = []
    name: str | None = None
    text: list[str] = []
    for line in [*body, ":end:"]:
        match = _SPHINX_FIELD.match(line)
        if match is None and name is not None and (line.startswith(" ") or not line.strip()):
            text.append(line.strip())
            continue
        if name:
            parameters[name] = _joined(text)
        name = None
        if match is None:
            rest.append(line)
        else:
            words = (match.group(2) or "").split()
            name = words[-1].lstrip("*") if words and match.group(1) in _SPHINX_PARAMETERS else ""
            text = [match.group(3) or ""]
    return rest


def _joined(lines: list[str]) -> str:
    return " ".join(line for line in lines if line)
