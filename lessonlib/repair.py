"""Repair of arguments that are JSON but for their presentation. Nothing is ever invented.

    repair_json("```json\\n{'city': 'Oslo', 'metric': True,}\\n```")
    Repaired(value={'city': 'Oslo', 'metric': True},
             changes=('code fence', 'single quotes', 'Python literal', 'trailing comma'))

A model writes arguments as text, and some of that text is not JSON although nobody doubts what it says. Six faults of
presentation are put right, and no other:

    code fence         three backticks (or one) around the whole text, with a word such as `json` behind the first
    outer quotes       quotes around the whole object, one or two, on one side or both, with or without escapes inside
    single quotes      of keys and texts, as Python writes them
    Python literal     True, False, None
    trailing comma     before a closing bracket
    comment            //, /* */ or #, outside of texts

What is left must be strict JSON, must be an object or a list, and must have one reading only: a key that stands twice, or
two ways of taking the quotes off that give two values, is refused. So is everything else, and a text that was cut above all:
closing its brackets would decide what the model had not yet said (an amount, the last of five commands). A bare key, a
missing comma, a smart quote, words around the object are refused too. Asking the model again costs one request; running a
call that it did not make can cost anything.

`preview_json` is for the eye: it shows what has arrived of a text that is not whole. Never run what it returns.

What this file does not do: it does not know whether the turn ended as it should. Only a call from a whole answer may be
repaired; a cut list can be closed by chance of its own brackets, and no parser sees the loss. The loop checks that first
(tool_loop.py). How the known repair libraries answer the same inputs: docs/decisions/json-repair.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

FENCE = "code fence"
OUTER_QUOTES = "outer quotes"
SINGLE_QUOTES = "single quotes"
LITERAL = "Python literal"
TRAILING_COMMA = "trailing comma"
COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Repaired:
    """What the text says. changes: what was put right, in the order in which it was met; empty if it was valid JSON."""

    value: Any
    changes: tuple[str, ...] = ()


class Unrepairable(ValueError):
    """The text is not JSON, and more than its presentation is wrong. The message says what, for the model to read."""


def repair_json(text: str) -> Repaired:
    """The object or list that `text` says. Raises Unrepairable where that is not beyond doubt."""
    if not text.strip():
        raise Unrepairable("there is no text")
    readings: list[Repaired] = []
    problems: list[str] = []
    for candidate, taken_off in _unwrapped(text.strip()):
        try:
            readings.append(_read(candidate, taken_off))
        except Unrepairable as problem:
            problems.append(str(problem))
    if not readings:
        raise Unrepairable(problems[0])
    if any(_differ(reading.value, readings[0].value) for reading in readings[1:]):
        raise Unrepairable("the quotes around it can be read in two ways, which give different values")
    return min(readings, key=lambda reading: len(reading.changes))


def preview_json(text: str) -> Any:
    """What has arrived of a JSON text that may be cut, for showing only; None if nothing can be read."""
    try:
        return from_json(text, allow_partial="trailing-strings", allow_inf_nan=False)
    except ValueError:
        return None


# ---------------------------------------------------------------- around the whole text

_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*[\w+-]*|`(?=[\[{])")
_QUOTED = re.compile(r"""(?:(["'])\1?)?\s*([\[{].*[\]}])\s*(?:(["'])\3?)?""", re.DOTALL)


def _unwrapped(text: str) -> Iterator[tuple[str, list[str]]]:
    """The readings of what stands around the object: as it is (but for a fence), without quotes, with its escapes undone."""
    changes: list[str] = []
    fence = _FENCE.match(text)
    if fence is not None:
        mark = fence.group(1) or "`"
        if not text[fence.end() :].endswith(mark):
            raise Unrepairable("the code fence is not closed; the text may have been cut")
        text, changes = text[fence.end() : -len(mark)].strip(), [FENCE]
    yield text, changes
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return
    inside = quoted.group(2)
    changes = [*changes, OUTER_QUOTES]
    if inside != text:
        yield inside, changes
    if '\\"' in inside:
        try:
            yield json.loads(f'"{inside}"', strict=False).strip(), changes
        except ValueError:
            return


def _differ(one: Any, other: Any) -> bool:
    """Whether two JSON values differ; true is not 1 here."""
    return json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)


# ---------------------------------------------------------------- inside it


def _read(text: str, changes: list[str]) -> Repaired:
    """The value of `text`: strictly, and if that fails, strictly again once its presentation is put right."""
    try:
        return Repaired(_strict(text), tuple(changes))
    except _NotJSON as error:
        rewritten, found = _rewritten(text)
        if not found:
            raise Unrepairable(str(error)) from error
    try:
        return Repaired(_strict(rewritten), tuple(dict.fromkeys([*changes, *found])))
    except _NotJSON as error:
        raise Unrepairable(str(error)) from error


class _NotJSON(Exception):
    pass


def _strict(text: str) -> Any:
    """The JSON object or list in `text`, every key once. Raises _NotJSON where it is none, Unrepairable where no change of
    its presentation could help: a key that stands twice, a number that is none."""
    try:
        value = json.loads(text, object_pairs_hook=_each_key_once, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _NotJSON(_explained(error)) from error
    except Unrepairable:
        raise
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits; nesting
        raise Unrepairable("it is nested too deeply, or holds a number that is too long") from error
    if not isinstance(value, (dict, list)):
        raise _NotJSON(f"it is JSON, but a {_NAMES.get(type(value), 'value')}, not an object")
    return value


_NAMES: dict[type, str] = {str: "text", bool: "boolean", int: "number", float: "number", type(None): "null"}


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Unrepairable(f"the key {twice!r} stands twice in one object")
    return value


def _no_constant(name: str) -> Any:
    raise Unrepairable(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise Unrepairable(f"{digits} is too large a number")
    return number


def _explained(error: json.JSONDecodeError) -> str:
    """The parser's words and place; where the text simply ends, that it does."""
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return "the text ends before the value does; it may have been cut"
    near = error.doc[max(0, error.pos - 10) : error.pos + 10]
    return f"{error.msg} at line {error.lineno}, column {error.colno} (near {near!r})"


# ---------------------------------------------------------------- the rewriting: token by token, never inside a text

_TOKEN = re.compile(
    r"""
    (?P<double>"[^"\\]*+(?:\\.[^"\\]*+)*+")
  | (?P<single>'[^'\\]*+(?:\\.[^'\\]*+)*+')
  | (?P<comment>//(?![ \t]*[\d(])[^\r\n]*|\#[^\r\n]*|/\*.*?\*/)
  | (?P<open>(?:["']|/\*).*)
  | (?P<word>[^\W\d]\w*)
  | (?P<comma>,)
  | (?P<space>\s+)
  | (?P<other>[\d.+-]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""`open` is a text or a comment that never ends; it takes the rest. `//` before a digit is no comment, since it may be
Python's division."""

_LITERALS = {"True": "true", "False": "false", "None": "null"}
_NO_VALUE = frozenset({"", "[", "{", ",", ":"})
"""The tokens after which a comma is not one behind a value."""


def _rewritten(text: str) -> tuple[str, list[str]]:
    """`text` with its presentation put right as far as the rules go, and what was changed. Whether the outcome is JSON is
    for the parser to say: what is neither a text, a comment, a word nor a comma goes through as it is."""
    pieces: list[str] = []
    changes: list[str] = []
    before = ""  # the last token that counts
    comma: int | None = None  # the place in `pieces` of a comma behind a value, until the next token that counts
    for kind, token in _tokens(text):
        if kind == "open":
            raise Unrepairable("a quote or a comment opens and never closes: it was cut, or a text holds a bare quote")
        written, change = _REWRITE[kind](token) if kind in _REWRITE else (token, None)
        if change is not None:
            changes.append(change)
        pieces.append(written)
        if kind in ("space", "comment"):
            continue
        if token in ("]", "}") and comma is not None:
            pieces[comma] = ""
            changes.append(TRAILING_COMMA)
        comma = len(pieces) - 1 if kind == "comma" and before not in _NO_VALUE else None
        before = token
    return "".join(pieces), changes


def _tokens(text: str) -> Iterable[tuple[str, str]]:
    return ((str(found.lastgroup), found.group()) for found in _TOKEN.finditer(text))


_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPE_OR_QUOTE = re.compile(_ESCAPE.pattern + '|"', re.DOTALL)


def _double(token: str) -> tuple[str, str | None]:
    """A text in double quotes stays as it is, but for an escaped apostrophe, which only languages with two kinds of quotes
    have, and which means the same in all of them."""
    plain = _ESCAPE.sub(lambda found: "'" if found.group() == "\\'" else found.group(), token)
    return plain, SINGLE_QUOTES if plain != token else None


def _single(token: str) -> tuple[str, str | None]:
    """A text in single quotes as JSON writes it. An escape that JSON does not have stays, and makes the parser refuse."""
    inside = _ESCAPE_OR_QUOTE.sub(lambda found: _in_double_quotes(found.group()), token[1:-1])
    return f'"{inside}"', SINGLE_QUOTES


def _in_double_quotes(found: str) -> str:
    if found == '"':
        return '\\"'
    if found == "\\'":
        return "'"
    return f"\\u00{found[2:]}" if found.startswith("\\x") and len(found) == 4 else found


def _word(token: str) -> tuple[str, str | None]:
    literal = _LITERALS.get(token)
    return (token, None) if literal is None else (literal, LITERAL)


def _comment(token: str) -> tuple[str, str | None]:
    """A comment becomes a space. With an odd number of quotes in it, it is more likely the rest of a text that lost one."""
    if _ESCAPE.sub("", token).count('"') % 2:
        return token, None
    return " ", COMMENT


_REWRITE: dict[str, Callable[[str], tuple[str, str | None]]] = {
    "double": _double,
    "single": _single,
    "word": _word,
    "comment": _comment,
}
