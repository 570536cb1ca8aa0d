"""Each rule about a lesson's shape, and the smallest change to a sound lesson that breaks it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lessonlib.lab import lesson_shape, lint

FILE = Path(__file__).parents[2] / "notebooks" / "01_server_sent_events.ipynb"
LESSON = json.loads(FILE.read_text(encoding="utf-8"))
DATA = json.loads((FILE.parents[1] / "lessonlib" / "data" / "course" / "01.json").read_text(encoding="utf-8"))


def rules(notebook: Any) -> set[str]:
    return {fault.rule for fault in lesson_shape.shape(notebook)}


def without(notebook: Any, piece: str) -> None:
    before = len(notebook["cells"])
    notebook["cells"] = [cell for cell in notebook["cells"] if piece not in lint.source(cell)]
    assert len(notebook["cells"]) < before, f"the sound lesson has no {piece!r}"


def no_fence(notebook: Any) -> None:
    notebook["cells"][1]["source"] = "The proxy was changed, and Beijing broke."


def long_artefact(notebook: Any) -> None:
    notebook["cells"][1]["source"] = lint.text(notebook["cells"][1]["source"]) + " word" * 30


def nothing_folded(notebook: Any) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def another_promise(notebook: Any) -> None:
    notebook["cells"][0]["source"] = lint.text(notebook["cells"][0]["source"]).replace("(d) ", "(e) ")


def nobody_asks(notebook: Any) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and "## The library" in lint.source(cell):
            cell["source"] = "## The library\n\nThe parser."
        if cell["cell_type"] == "markdown" and "Look at the second read" in lint.source(cell):
            cell["source"] = "Then the end."


def test_a_sound_lesson_has_no_faults() -> None:
    assert list(lesson_shape.shape(LESSON)) == []


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (no_fence, "artefact"),
        (long_artefact, "artefact"),
        (lambda lesson: without(lesson, 'recall("01")'), "retrieval"),
        (nothing_folded, "truth"),
        (another_promise, "promises"),
        (lambda lesson: without(lesson, 'closing("01")'), "closing"),
        (lambda lesson: without(lesson, 'glossary("01")'), "closing"),
        (lambda lesson: without(lesson, "../exercises/01_"), "closing"),
        (nobody_asks, "source"),
        (lambda lesson: lesson["cells"].pop(0), "card"),
    ],
)
def test_each_rule_is_broken_by_one_change(damage: Callable[[Any], None], rule: str) -> None:
    lesson = copy.deepcopy(LESSON)
    damage(lesson)
    assert rules(lesson) == {rule}


@pytest.mark.parametrize(
    ("change", "rule", "words"),
    [
        ({"retrieval": DATA["retrieval"][:1]}, "retrieval", "1 questions from earlier lessons"),
        ({"retrieval": [{**each, "taught": "01.a"} for each in DATA["retrieval"]]}, "retrieval", "is none on an"),
        ({"closing": DATA["closing"][:2]}, "closing", "2 closing questions"),
        ({"exits": {**DATA["exits"], "e": "fly"}}, "promises", "the card promises"),
        ({"closing": [{**each, "exit": "01.a"} for each in DATA["closing"]],
          "predictions": {key: {**each, "exit": "01.a"} for key, each in DATA["predictions"].items()}},
         "promises", "nothing tests the promise (b)"),
    ],
)  # fmt: skip
def test_the_data_is_held_to_the_same_shape(
    change: dict[str, Any], rule: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lesson_shape, "course", lambda number: {**DATA, **change})
    faults = list(lesson_shape.shape(LESSON))
    assert {fault.rule for fault in faults} == {rule}
    assert any(words in fault.message for fault in faults)
