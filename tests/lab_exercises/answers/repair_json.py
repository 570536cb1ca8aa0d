"""Repairs of JSON, right and wrong."""

from __future__ import annotations

import ast
import json
import re

from lessonlib.repair import repair_json
from tests.lab_exercises.answers import Answers

TOKEN = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z]+|,|\s+|.""", re.S)
WORDS = {"True": "true", "False": "false", "None": "null"}


def base(text):
    try:
        return strict(text)
    except ValueError:
        text = text.strip()
    if text.startswith("```"):
        rest = text.partition("\n")[2]
        if not rest.endswith("```"):
            raise ValueError("the fence is not closed")
        text = rest[:-3].strip()
    tokens = []
    for token in TOKEN.findall(text):
        if token.startswith("'"):
            if len(token) < 2:
                raise ValueError("a quote that never closes")
            token = json.dumps(ast.literal_eval(token))
        token = WORDS.get(token, token)
        if token in "]}":
            while tokens and (tokens[-1].isspace() or tokens[-1] == ","):
                tokens.pop()
        tokens.append(token)
    return strict("".join(tokens))


def strict(text):
    value = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    if not isinstance(value, (dict, list)):
        raise ValueError("not an object")
    return value


def once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def refuse(name):
    raise ValueError(name)


def by_library(text):
    return repair_json(text).value


def by_ast(text):
    """Another style: Python's own parser, with JSON's words as names, and a look at every node."""
    text = text.strip()
    try:
        return strict(text)
    except ValueError:
        pass
    if text.startswith("```") and text.endswith("```") and text.count("```") >= 2:
        return by_ast(text.partition("\n")[2][:-3])
    if re.search(
        r"""(['"])\s*(?:'|")""", re.sub(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", "''", text).replace("''", "'", 0)
    ):
        plain = re.sub(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", "S", text)
        if re.search(r"S\s*S", plain):
            raise ValueError("two texts without a comma")
    try:
        return node_value(ast.parse(text, mode="eval").body, top=True)
    except SyntaxError as error:
        raise ValueError("no JSON") from error


def node_value(node, top=False):
    match node:
        case ast.Dict():
            return once([(node_key(key), node_value(value)) for key, value in zip(node.keys, node.values, strict=True)])
        case ast.List():
            return [node_value(item) for item in node.elts]
        case ast.Constant(value=value) if not top and type(value) in (str, int, float, bool, type(None)):
            return value
        case ast.Name(id=name) if name in ("true", "false", "null") and not top:
            return {"true": True, "false": False, "null": None}[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if type(value) in (int, float):
            return -value
    raise ValueError("no JSON")


def node_key(node):
    if isinstance(node, ast.Constant) and type(node.value) is str:
        return node.value
    raise ValueError("a key that is no text")


def by_literal_eval(text):
    """Python's own reader for all that JSON refuses."""
    try:
        return strict(text)
    except ValueError:
        pass
    text = re.sub(r"^```\w*\n(.*)\n```$", r"\1", text, flags=re.S)
    try:
        return ast.literal_eval(re.sub(r"\btrue\b", "True", text)) if text.strip() else refuse("nothing")
    except (SyntaxError, ValueError) as error:
        raise ValueError("no JSON") from error


def literal_only(text):
    """Knows Python's words or JSON's."""
    try:
        return strict(text)
    except ValueError:
        text = re.sub(r"^```\w*\n(.*)\n```$", r"\1", text, flags=re.S)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError) as error:
        raise ValueError("no JSON") from error


def by_replace(text):
    """The usual first version."""
    text = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    text = re.sub(r",(\s*[]}])", r"\1", text.replace("True", "true").replace("False", "false").replace("None", "null"))
    return strict(text.replace("'", '"'))


def finds(text):
    """Looks for the first object."""
    try:
        return base(text)
    except ValueError:
        found = re.search(r"```(?:json)?\n(.*?)\n```", text, re.S)
        return strict(found.group(1)) if found else refuse("none")


def first_only(text):
    """Takes the first value, whatever follows."""
    try:
        return base(text)
    except ValueError:
        value, _ = json.JSONDecoder().raw_decode(text.strip())
        return value


def bare(text):
    """Quotes bare keys."""
    try:
        return base(text)
    except ValueError:
        return base(re.sub(r"([{,]\s*)([A-Za-z_]\w*)\s*:", r'\1"\2":', text))


def adds_commas(text):
    try:
        return base(text)
    except ValueError:
        return base(re.sub(r'"\s+"', '", "', text))


def quotes_words(text):
    try:
        return strict(text)
    except ValueError:
        return base(re.sub(r"\b(True|False|None)\b", r'"\1"', text))


def unfenced(text):
    """Takes all backticks off."""
    try:
        return strict(text)
    except ValueError:
        return base(re.sub(r"```(?:json)?\n?", "", text))


def upper_words(text):
    """Replaces the words wherever they stand."""
    try:
        return strict(text)
    except ValueError:
        for word, plain in WORDS.items():
            text = text.replace(word, plain)
        return base(text)


def no_commas(text):
    """Removes the commas wherever they stand."""
    try:
        return strict(text)
    except ValueError:
        return base(re.sub(r",(\s*[]}])", r"\1", text))


def sorts(text):
    """Makes all values texts."""
    value = base(text)
    return {key: str(item) for key, item in value.items()} if isinstance(value, dict) and "days" in value else value


ANSWERS = Answers(
    "repair_json",
    base,
    [by_library, by_ast],
    [
        ("changes_valid_json", sorts),
        ("literals_become_text", quotes_words),
        ("one_dialect_only", literal_only),
        ("quotes_replaced_everywhere", by_replace),
        ("words_replaced_everywhere", upper_words),
        ("commas_removed_everywhere", no_commas),
        ("fences_removed_everywhere", unfenced),
        ("picks_one", finds),
        ("takes_the_first", first_only),
        ("bare_key", bare),
        ("missing_mark", adds_commas),
        ("python_is_json", by_literal_eval),
        ("no_fence", json.loads),
        ("not_written", None),
    ],
)
