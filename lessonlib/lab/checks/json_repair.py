"""Lesson 09: `my_repair(text) -> value`, which puts presentation right and invents nothing.

What is asked: valid JSON comes out as it is; a code fence around all of it, single quotes, `True`, `False`, `None` and a
trailing comma are put right; what is left must be an object or a list. Everything else raises ValueError, above all text
that was cut.

What this check does not do: it does not ask about comments or about quotes around the whole object; both answers are fine.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, equals

REFUSED = {"refused": True}


def observe(learner: Any, given: str) -> Any:
    """The value in a list of one, or that it was refused."""
    try:
        return {"value": call("the function", learner, given)}
    except ValueError:
        return REFUSED


def _probe(text: str, value: Any, belief: str, *signs: tuple[Sign, str], where: str) -> Probe:
    expected = REFUSED if value is REFUSED else {"value": value}
    words = "ValueError" if value is REFUSED else repr(value)
    return Probe(text, expected, text, where, belief, signs, expected_words=words, found_words=_shown)


def _shown(seen: Seen) -> str:
    return "ValueError" if seen.value == REFUSED else repr(seen.value["value"])


def _value(value: Any) -> Sign:
    return equals({"value": value})


def _taken(seen: Seen) -> bool:
    return not seen.raised and seen.value != REFUSED


REFUSES: Sign = equals(REFUSED)


def probes(chance: random.Random) -> Iterator[Probe]:
    """What is valid, what is put right, what must stay as it is, what must be refused."""
    yield _probe('{"city": "Oslo", "days": 3}', {"city": "Oslo", "days": 3}, "changes_valid_json", where="valid JSON")
    yield from _put_right()
    yield from _texts()
    yield from _refused()
    for _ in range(20):
        yield from _by_chance(chance)


def _put_right() -> Iterator[Probe]:
    yield _probe('```json\n{"city": "Oslo"}\n```', {"city": "Oslo"}, "no_fence", where="the fence")
    yield _probe("```\n[1, 2]\n```", [1, 2], "no_fence", where="a fence without a word")
    yield _probe("{'city': 'Oslo'}", {"city": "Oslo"}, "no_single_quotes", where="the quotes")
    yield _probe(
        '{"a": True, "b": False, "c": None}',
        {"a": True, "b": False, "c": None},
        "no_literals",
        (_value({"a": "True", "b": "False", "c": "None"}), "literals_become_text"),
        where="True, False, None",
    )
    yield _probe(
        '{"a": [1, 2,], "b": 3,}', {"a": [1, 2], "b": 3}, "no_trailing_comma", where="the commas before the brackets"
    )
    yield _probe(
        "{'a': true, 'b': None}", {"a": True, "b": None}, "one_dialect_only", where="JSON's and Python's words together"
    )


def _texts() -> Iterator[Probe]:
    """The same characters inside a text are content."""
    yield _probe('{"t": "it\'s 5 o\'clock"}', {"t": "it's 5 o'clock"}, "quotes_replaced_everywhere", where="the apostrophe")
    yield _probe(
        "{'t': \"it's\"}", {"t": "it's"}, "quotes_replaced_everywhere", where="the apostrophe inside the double quotes"
    )
    yield _probe(
        "{'t': 'say \"hi\"'}",
        {"t": 'say "hi"'},
        "quotes_replaced_everywhere",
        where="the double quotes inside the single ones",
    )
    yield _probe("{'t': 'True, None'}", {"t": "True, None"}, "words_replaced_everywhere", where="the words inside the text")
    yield _probe("{'t': 'a, ] b,}'}", {"t": "a, ] b,}"}, "commas_removed_everywhere", where="the commas inside the text")
    yield _probe("{'t': '```x```'}", {"t": "```x```"}, "fences_removed_everywhere", where="the fence inside the text")


def _refused() -> Iterator[Probe]:
    closes = (_taken, "closes_brackets")
    yield _probe('{"booking": "L-204", "amount": 1', REFUSED, "closes_brackets", closes, where="the end of the text")
    yield _probe('["rm a", "rm b"', REFUSED, "closes_brackets", closes, where="the end of the text")
    yield _probe('{"city": "Os', REFUSED, "closes_brackets", closes, where="the end of the text")
    yield _probe('```json\n{"city": "Oslo"}', REFUSED, "fence_not_closed", where="the fence that never ends")
    yield _probe(
        'Here you are:\n```json\n{"city": "Oslo"}\n```\nor better {"city": "Rome"}',
        REFUSED,
        "picks_one",
        where="the words around the fence",
    )
    yield _probe('{"city": "Oslo"} {"city": "Rome"}', REFUSED, "takes_the_first", where="the second object")
    yield _probe('{"city": "Oslo"} and so on', REFUSED, "takes_the_first", where="the words behind the object")
    yield _probe("('a', 1)", REFUSED, "python_is_json", where="the round brackets")
    yield _probe("{'a', 'b'}", REFUSED, "python_is_json", where="a set of Python's")
    yield _probe('{"amount": 1, "amount": 100}', REFUSED, "key_twice", where="the key that stands twice")
    yield _probe("{city: 'Oslo'}", REFUSED, "bare_key", where="the key without quotes")
    yield _probe('{"a" 1}', REFUSED, "missing_mark", where="the missing colon")
    yield _probe('["a" "b"]', REFUSED, "missing_mark", where="the missing comma")
    yield _probe('{"amount": NaN}', REFUSED, "not_a_number", where="NaN")
    yield _probe('"Oslo"', REFUSED, "scalar", where="a text alone")
    yield _probe("", REFUSED, "nothing_is_empty", where="no text at all")


def _by_chance(chance: random.Random) -> Iterator[Probe]:
    """A value of invented content, as JSON and as Python writes it, whole and cut."""
    value = {
        chance.choice(("city", "an'd", "x")): chance.choice(("北京", "it's", 'a "b"', "True", "a, }")),
        "n": chance.randrange(1000),
        "flags": [chance.choice((True, False, None)) for _ in range(3)],
    }
    yield _probe(json.dumps(value, ensure_ascii=False), value, "changes_valid_json", where="valid JSON")
    yield _probe(repr(value), value, "quotes_replaced_everywhere", where="the value as Python writes it")
    text = json.dumps(value)
    cut = chance.randrange(1, len(text) - 1)
    yield _probe(text[:cut], REFUSED, "closes_brackets", where=f"cut after {cut} of {len(text)} characters")


check = Check.of("repair_json", observe, probes)
