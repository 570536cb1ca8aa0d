"""docs/teaching.md names exercises, beliefs, breaks, questions and commands: all of them exist."""

from __future__ import annotations

import re
from pathlib import Path

from lessonlib.cli import lesson
from lessonlib.lab import breaks, checks, exercises, quiz

PAGE = (Path(__file__).parents[2] / "docs/teaching.md").read_text(encoding="utf-8")
KEYS = {each.key: each for each in exercises.registry()}


def test_every_exercise_and_question_that_is_named_exists() -> None:
    named = set(re.findall(r"`(\d\d\.[a-z_-]+)`", PAGE)) - {"03.name"}
    assert len(named) > 15
    known = KEYS.keys() | {question.key for question in quiz.questions()}
    assert named - known == set()


def test_every_belief_that_is_named_is_one_of_its_check() -> None:
    named = re.findall(r"`(\d\d\.[a-z_-]+)`: (\w+)", PAGE)
    assert len(named) > 5
    for key, belief in named:
        assert belief in checks.get(KEYS[key].call.removeprefix("check.")).beliefs, key


def test_every_break_that_is_named_exists() -> None:
    lists = re.findall(r"\bbreaks? ((?:`[a-z-]+`(?:, )?)+)", PAGE)
    named = {name for found in lists for name in re.findall(r"`([a-z-]+)`", found)}
    assert len(named) > 5
    assert named <= {broken.name for broken in breaks.catalogue()}


def test_every_command_that_is_named_exists_with_its_options() -> None:
    lines = re.findall(r"(?:`|^    )lesson ([a-z-]+)([^`\n]*)", PAGE, re.MULTILINE)
    assert {"start", "list", "next", "progress", "grade", "export-nbgrader"} <= {name for name, _ in lines}
    for name, rest in lines:
        options = {word for parameter in lesson.commands[name].params for word in parameter.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z]+", rest)) <= options, f"{name}{rest}"


def test_the_core_builds_are_those_that_the_page_says() -> None:
    builds = {each.lesson for each in KEYS.values() if each.kind == "build" and each.core}
    assert builds == {"01", "03", "06", "07", "08", "04"}, "04 writes its round trips from memory, and builds nothing"
