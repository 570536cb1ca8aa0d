"""Every build-it check lets right answers of any style pass, and refuses and diagnoses every wrong one."""

from __future__ import annotations

import importlib
import linecache
import signal
import threading
from types import MappingProxyType
from typing import Any

import pytest

from lessonlib.lab import checks
from lessonlib.lab.checks import core
from lessonlib.lab.checks.core import GENERAL
from lessonlib.lab.checks.patience import TooLong, patience
from lessonlib.lab.checks.predicted import cells_check
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


# ---------------------------------------------------------------- code that misbehaves


class Mute(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class NoException(BaseException):
    """Passes every `except Exception`."""


def raising(error: BaseException) -> Any:
    def learner(*given: Any, **named: Any) -> Any:
        raise error

    return learner


@pytest.mark.parametrize("name", sorted({*NAMES} - {"chat_provider", "generate_provider"}))
@pytest.mark.parametrize(
    "error", [Mute(), NoException("mine"), GeneratorExit(), SystemExit(0)], ids=lambda error: type(error).__name__
)
def test_whatever_a_learner_raises_is_a_refusal(name: str, error: BaseException) -> None:
    result = checks.get(name).examine(raising(error), seed=1, hint=1)
    assert not result.passed
    assert "Next" in result.message


def loops(*given: Any) -> Any:
    while True:
        pass


def waits(*given: Any) -> Any:
    threading.Event().wait()


def catches_everything_twice(*given: Any) -> Any:
    for _ in range(2):
        try:
            loops()
        except BaseException:
            continue


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="only a timer can interrupt a wait")
@pytest.mark.parametrize("learner", [loops, waits, catches_everything_twice])
def test_what_never_comes_back_is_stopped_and_named(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "patience", lambda: patience(0.05, again=0.05))
    result = checks.get("usage").examine(learner, seed=1, hint=1)
    assert not result.passed
    if learner is not catches_everything_twice:
        assert (result.belief, "stopped after 0.05 s" in result.found) == ("never_ends", True)


def test_no_timer_is_left_behind() -> None:
    before = signal.getsignal(signal.SIGALRM) if hasattr(signal, "SIGALRM") else None
    with patience(5):
        pass
    if before is not None:
        assert (signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM)) == ((0.0, 0.0), before)


def test_the_persons_own_interrupt_is_theirs() -> None:
    with pytest.raises(KeyboardInterrupt):
        checks.get("usage").examine(raising(KeyboardInterrupt()), seed=1, hint=1)


def test_a_refusal_says_which_line_of_the_cell_raised() -> None:
    source = "def mine(vendor, usage):\n    return usage['nowhere']\n"
    names: dict[str, Any] = {}
    linecache.cache["<cell 7>"] = (len(source), None, source.splitlines(keepends=True), "<cell 7>")
    exec(compile(source, "<cell 7>", "exec"), names)
    assert "(line 2 of your cell: return usage['nowhere'])" in checks.get("usage").examine(names["mine"], hint=1).found


class Yes(dict):  # type: ignore[type-arg]
    """Says that it equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_of_a_subclass_only_its_content_counts() -> None:
    assert core.plain(Yes(a=(1, Yes())), bare=True) == {"a": [1, {}]}
    assert not checks.get("repair_json").examine(lambda text: Yes(), seed=1, hint=1).passed
    with pytest.raises(core.NotPlain):
        core.plain(Yes())


def test_a_bug_in_the_loop_is_shown_with_its_words() -> None:
    def loop(provider: Any, request: Any, tools: Any, max_steps: int = 8) -> Any:
        raise NameError("name 'respons' is not defined")

    assert "name 'respons' is not defined" in checks.get("tool_loop").examine(loop, seed=1, hint=1).found


# ---------------------------------------------------------------- tables


GAPS = {
    "1 store": "false",
    "2 type": "reasoning",
    "3 field": "encrypted_content",
    "4 arguments": "text",
    "5 type": "function_call_output",
    "6 call_id": "call_7",
}


def test_words_count_with_the_quotes_that_they_have_in_the_body_too() -> None:
    assert cells_check("02.gaps").examine(GAPS, hint=1).passed
    answer = {name: f'"{word}"' if name[0] != "1" else False for name, word in GAPS.items()}
    assert cells_check("02.gaps").examine(answer, hint=1).passed
    assert cells_check("02.gaps").examine(MappingProxyType(GAPS), hint=1).passed


@pytest.mark.parametrize("answer", [{**GAPS, "7 more": "x"}, 42, ["false"]])
def test_what_is_not_the_table_is_told_from_what_is_not_filled_in(answer: Any) -> None:
    result = cells_check("02.gaps").examine(answer, hint=1)
    assert (result.belief, "not the table" in result.seems) == ("wrong_shape", True)
    empty = cells_check("02.gaps").examine({**GAPS, "2 type": None}, hint=0)
    assert (empty.belief, "cells are still None" in empty.seems) == ("not_written", True)


def test_where_the_system_has_no_timer_a_thread_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "setitimer", raising=False)
    with pytest.raises(TooLong, match=r"stopped after 0\.05 s"), patience(0.05):
        loops()
    with patience(0.05):
        pass
