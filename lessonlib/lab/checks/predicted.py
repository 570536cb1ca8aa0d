"""Read-and-predict exercises: tables, matches, sorts and sequences, checked cell by cell, from data.

    check.cells("01.fields", answer)      {"row": "word"} or {"row": {"column": "word"}}; None where nothing is filled in yet
    check.order("06.order", answer)       a list

The data is `data/exercises/NN.json`, one entry per exercise:

    "01.fields": {
      "kind": "cells", "heading": "the events of eight byte strings",
      "words": ["0", "1", "2"],                     what may be filled in; without it anything
      "hints": ["...", "...", "..."],
      "cells": {
        "b'id: 7'": {
          "is": "0",                                 or a list of words that are all right
          "bytes": "There is no data line, and ...", which bytes decide
          "wrong": {"1": {"belief": "id_alone", "seems": "...", "where": "..."}}
        }
      }
    }

A wrong word that is listed gets its own diagnosis; any other gets the bytes that decide. Words are compared without
regard to case and spaces at the ends; a number may be written as one.

What this file does not do: it computes no answer. Tests hold the data of tables that the library can compute against it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from lessonlib.lab.checks.core import NOT_WRITTEN, WRONG_SHAPE, Belief, Check, Probe, Result, Seen, Sign, WrongShape

OTHER = "other"
QUOTES = " \"'`\t\n"
"""What may stand around a word without being part of it."""


@cache
def data(lesson: str) -> dict[str, Any]:
    """All read-and-predict exercises of a lesson ("01"), by key."""
    file = resources.files("lessonlib").joinpath(f"data/exercises/{lesson}.json")
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def entry(key: str, kind: str) -> dict[str, Any]:
    """The data of one exercise. Raises KeyError with the keys that there are."""
    lesson = key.partition(".")[0]
    found = data(lesson).get(key)
    if found is None or found["kind"] != kind:
        known = [name for name, each in data(lesson).items() if each["kind"] == kind]
        raise KeyError(f"no {kind} exercise {key!r}; lesson {lesson} has {', '.join(known) or 'none'}")
    return dict(found)


# ---------------------------------------------------------------- cells


def cells(key: str, answer: Any) -> Result:
    """Checks a table that was filled in: the first cell that is wrong is explained, and how many are right is said."""
    return cells_check(key)(answer)


TABLE = {
    NOT_WRITTEN: Belief("It is not filled in yet: cells are still None.", "That is how every table begins."),
    WRONG_SHAPE: Belief(
        "It is not the table that was asked for.",
        "Its rows and columns keep their names, so that each word is found at its place; only the words are yours.",
    ),
}
"""What can be said about a table as a whole."""


def cells_check(key: str) -> Check:
    """The check of a table."""
    about = entry(key, "cells")
    beliefs = {**TABLE, **_beliefs(about["cells"])}

    def probes(chance: random.Random) -> Iterator[Probe]:
        names = list(about["cells"])
        yield Probe(
            {"names": names},
            None,
            "the table as it is",
            "the cells that are empty",
            NOT_WRITTEN,
            ((lambda seen: bool(seen.value["unknown"]), WRONG_SHAPE),),
            accept=lambda seen: not seen["empty"] and not seen["unknown"],
            expected_words="a word in every cell",
            found_words=_what_is_missing,
        )
        for name in names:
            yield _cell_probe(name, about["cells"][name], about)

    return Check("cells", key, about["heading"], beliefs, tuple(about["hints"]), _observe_cells, probes)


def _observe_cells(answer: Any, given: dict[str, Any]) -> Any:
    filled = _flat(answer)
    if "name" in given:
        return _word(filled.get(given["name"]))
    names = given["names"]
    empty = [name for name in names if _word(filled.get(name)) == ""]
    return {"empty": empty, "unknown": [name for name in filled if name not in names]}


def _flat(answer: Any) -> dict[str, Any]:
    """{"row": {"column": word}} as {"row / column": word}."""
    if not isinstance(answer, Mapping):
        raise WrongShape(f"a table is a dictionary of words, not {type(answer).__name__}")
    flat: dict[str, Any] = {}
    for name, value in answer.items():
        if isinstance(value, Mapping):
            flat |= {f"{name} / {column}": word for column, word in value.items()}
        else:
            flat[str(name)] = value
    return flat


def _word(value: Any) -> str:
    if type(value) is float and value.is_integer():
        value = int(value)  # 10.0 is 10
    return "" if value is None else " ".join(str(value).strip(QUOTES).split()).casefold()


def _cell_probe(name: str, cell: dict[str, Any], about: dict[str, Any]) -> Probe:
    right = [_word(word) for word in (cell["is"] if isinstance(cell["is"], list) else [cell["is"]])]
    signs = tuple((_says(word), _key(name, word, wrong)) for word, wrong in cell.get("wrong", {}).items())
    words = f" The words are: {', '.join(about['words'])}." if "words" in about else ""
    return Probe(
        {"name": name},
        None,
        name,
        "this cell",
        f"{name}: {OTHER}",
        signs,
        accept=lambda seen: seen in right,
        expected_words=f"another word. {cell['bytes']}{words}",
        found_words=lambda seen: repr(seen.value),
    )


def _key(name: str, word: str, wrong: dict[str, Any]) -> str:
    """The key of a wrong word's belief. Two words of a cell may come from one belief and be told different things."""
    return f"{name}: {wrong['belief']} ({word})"


def _says(word: str) -> Sign:
    return lambda seen: not seen.raised and seen.value == _word(word)


def _what_is_missing(seen: Seen) -> str:
    unknown, empty = seen.value["unknown"], seen.value["empty"]
    if unknown:
        return f"a cell that the table does not have: {unknown[0]!r}"
    return f"{len(empty)} empty: {', '.join(empty[:3])}{' …' if len(empty) > 3 else ''}"


def _beliefs(cells: dict[str, Any]) -> dict[str, Belief]:
    found = {}
    for name, cell in cells.items():
        for word, wrong in cell.get("wrong", {}).items():
            found[_key(name, word, wrong)] = Belief(wrong["seems"], wrong["where"])
        found[f"{name}: {OTHER}"] = Belief(
            "This word is not the one that the bytes lead to.", "Read them once more, one by one."
        )
    return found


# ---------------------------------------------------------------- order


def order(key: str, answer: Any) -> Result:
    """Checks a sequence: the first place that is wrong is explained."""
    return order_check(key)(answer)


def order_check(key: str) -> Check:
    """The check of a sequence. Data: "order", the right list; "before": {"a > b": {belief, seems, where}} for whoever puts
    `a` before `b`; "bytes": what decides."""
    about = entry(key, "order")
    right = [_word(word) for word in about["order"]]
    beliefs = {OTHER: Belief("Something stands before what it depends on.", about["bytes"])}
    signs: list[tuple[Sign, str]] = []
    for pair, wrong in about.get("before", {}).items():
        first, second = (_word(word) for word in pair.split(" > "))
        beliefs[wrong["belief"]] = Belief(wrong["seems"], wrong["where"])
        signs.append((_puts_before(first, second), wrong["belief"]))

    def probes(chance: random.Random) -> Iterator[Probe]:
        yield Probe(
            {"items": right},
            None,
            "the list as it is",
            "what is in it",
            NOT_WRITTEN,
            accept=lambda seen: sorted(seen) == sorted(right),
            expected_words=f"each once: {', '.join(sorted(about['order']))}",
        )
        yield Probe(
            {"items": right},
            right,
            "the list as it is",
            "the first place that is wrong",
            OTHER,
            tuple(signs),
            expected_words="another order",
            found_words=lambda seen: _first_wrong(seen, right),
        )

    return Check("order", key, about["heading"], beliefs, tuple(about["hints"]), _observe_order, probes)


def _observe_order(answer: Any, given: dict[str, Any]) -> Any:
    return [_word(word) for word in list(answer)]


def _puts_before(first: str, second: str) -> Sign:
    return lambda seen: (
        not seen.raised
        and first in seen.value
        and second in seen.value
        and seen.value.index(first) < seen.value.index(second)
    )


def _first_wrong(seen: Seen, right: list[str]) -> str:
    place = next(number for number, (good, got) in enumerate(zip(right, seen.value, strict=True), 1) if good != got)
    return f"number {place} is {seen.value[place - 1]!r}"
