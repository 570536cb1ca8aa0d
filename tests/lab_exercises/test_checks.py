"""Every build-it check lets right answers of any style pass, and refuses and diagnoses every wrong one."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from lessonlib.lab import checks
from lessonlib.lab.checks.core import GENERAL
from tests.lab_exercises.answers import NAMES, Answers
from tests.timing import seconds


def answers(name: str) -> Answers:
    found: Answers = importlib.import_module(f"tests.lab_exercises.answers.{name}").ANSWERS
    return found


RIGHT = [(name, number, each) for name in NAMES for number, each in enumerate(answers(name).right)]
WRONG = [(name, belief, what, each) for name in NAMES for belief, what, each in answers(name).refused()]


@pytest.mark.parametrize(("name", "number", "answer"), RIGHT, ids=[f"{name}-{number}" for name, number, _ in RIGHT])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_right_answer_passes_in_any_style(name: str, number: int, answer: Any, seed: int) -> None:
    result = checks.get(name).examine(answer, seed=seed, hint=1)
    assert result.passed, result.message


@pytest.mark.parametrize(
    ("name", "belief", "what", "answer"), WRONG, ids=[f"{n}-{b}-{i}" for i, (n, b, _, _) in enumerate(WRONG)]
)
def test_a_wrong_answer_is_refused_and_its_belief_named(name: str, belief: str, what: str, answer: Any) -> None:
    result = checks.get(name).examine(answer(), seed=7, hint=1)
    assert (result.belief, result.passed) == (belief, False), f"{what}\n{result.message}"
    for word in ("Expected", "Found", "Hint 1 of 3", "Next"):
        assert word in result.message


@pytest.mark.parametrize("name", NAMES)
def test_there_are_at_least_ten_wrong_answers(name: str) -> None:
    assert len({belief for belief, _, _ in answers(name).refused()} - GENERAL.keys()) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_every_belief_of_a_check_is_met_by_a_wrong_answer(name: str) -> None:
    assert checks.get(name).beliefs.keys() - {belief for belief, _, _ in answers(name).refused()} == set()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_and_a_constant_are_refused(name: str) -> None:
    check = checks.get(name)
    assert check.examine(None, hint=1).belief == "not_written"
    for constant in (lambda *arguments, **named: None, lambda *arguments, **named: 42, type("Empty", (), {})):
        assert not check.examine(constant, hint=1).passed


@pytest.mark.parametrize("name", NAMES)
def test_a_check_takes_less_than_two_seconds(name: str) -> None:
    check = checks.get(name)
    assert seconds(lambda: check.examine(answers(name).base, seed=1, hint=1), enough=2) < 2


@pytest.mark.parametrize("name", NAMES)
def test_three_hints_each_says_more(name: str) -> None:
    hints = checks.get(name).hints
    assert len(hints) == 3
    assert "____" in hints[2]


def test_the_rules_that_a_check_knows_are_rules_of_the_simulator() -> None:
    from lessonlib.lab.checks.round_trips import RULES, UNJUDGED
    from lessonlib.sim import all_rules

    assert {*RULES, *UNJUDGED} - {rule.name for rule in all_rules()} == set()
