"""The quiz: the fourteen self-test questions of the lesson behind this course, and as many again from the chapter.

    quiz.play("03")                          the questions of a lesson, with controls (in a notebook)
    quiz.ask("03.totals")                    one question, as text
    quiz.answer("03.totals", [2145, 55])     one answer: what it assumes, where that would be right, which bytes decide
    quiz.answer("03.results", "in the ...")  an answer in words: the model answer, and the points to compare
    quiz.answer("03.results", "in the ...", had={1, 2, 4})    says which of the points were in it

Nothing but data (`data/quiz.toml`) knows a question; a test asks for the feedback of every wrong option. Answers are kept
with the progress, and those that were wrong come back in a later lesson (`lesson next`).

What this file does not do: it reads no free answer. Nobody but the learner can say whether a point was in it.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from lessonlib.lab import progress
from lessonlib.lab.notice import Notice, Piece, lines, paragraph, title

if TYPE_CHECKING:
    from lessonlib.lab.quiz_play import Play

LETTERS = "abcdefgh"
NONE_OF_THEM = "none"
HOW = {
    "one": 'one letter, such as "a"',
    "many": 'all letters that are right, such as "ac", or "none"',
    "number": "the numbers in their order, such as [1, 2]",
    "free": "a text in your own words",
}
"""How each kind is answered."""


# ---------------------------------------------------------------- the data


@dataclass(frozen=True, slots=True)
class Option:
    """One option. seems and where speak to whoever took it wrongly, or left it out wrongly."""

    letter: str
    text: str
    right: bool
    belief: str | None
    seems: str
    where: str


@dataclass(frozen=True, slots=True)
class Known:
    """A wrong number that people give, and why."""

    value: float
    belief: str
    seems: str
    where: str


@dataclass(frozen=True, slots=True)
class Blank:
    """A number to be typed in."""

    label: str
    answer: float
    wrong: tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question. number: in the lesson's self-test, 0 if it comes from the chapter, whose section is `chapter`."""

    key: str
    kind: str
    text: str
    options: tuple[Option, ...] = ()
    blanks: tuple[Blank, ...] = ()
    model: str = ""
    points: tuple[str, ...] = ()
    decides: str = ""
    more: str = ""
    number: int = 0
    chapter: str = ""

    @property
    def lesson(self) -> str:
        """The lesson that taught it."""
        return self.key.partition(".")[0]

    @property
    def kept_as(self) -> str:
        """Its key in the progress, where predictions have keys of the same form."""
        return f"{self.lesson}.quiz.{self.key.partition('.')[2]}"

    @property
    def right_letters(self) -> frozenset[str]:
        """The letters of the right options."""
        return frozenset(option.letter for option in self.options if option.right)

    def lines(self) -> list[str]:
        """What is offered, or asked for, line by line."""
        offered = [f"{option.letter}  {option.text}" for option in self.options]
        return offered or [f"{number}  {blank.label}" for number, blank in enumerate(self.blanks, 1)]


@cache
def _all() -> dict[str, Question]:
    text = resources.files("lessonlib").joinpath("data/quiz.toml").read_text(encoding="utf-8")
    found = (_question(entry) for entry in tomllib.loads(text)["question"])
    return {question.key: question for question in sorted(found, key=lambda question: question.lesson)}


def _question(entry: dict[str, Any]) -> Question:
    offered = list(entry.get("option", ()))
    random.Random(entry["key"]).shuffle(offered)  # the same order every time; in the file the right one stands where it may
    options = tuple(
        Option(letter, one["text"], one.get("right", False), one.get("belief"), one.get("seems", ""), one.get("where", ""))
        for letter, one in zip(LETTERS, offered, strict=False)
    )
    blanks = tuple(
        Blank(one["label"], one["answer"], tuple(Known(**known) for known in one.get("wrong", ())))
        for one in entry.get("blank", ())
    )
    words = {name: entry.get(name, "") for name in ("model", "decides", "more", "chapter")}
    return Question(
        entry["key"],
        entry["kind"],
        entry["text"],
        options,
        blanks,
        number=entry.get("number", 0),
        points=tuple(entry.get("points", ())),
        **words,
    )


def questions(lesson: str | None = None) -> list[Question]:
    """All questions, or those of a lesson ("03"), in the order of the lessons."""
    return [question for question in _all().values() if lesson in (None, question.lesson)]


def get(key: str) -> Question:
    """One question, by its key; the key that the progress keeps is as good."""
    found = _all().get(key.replace(".quiz.", ".", 1))
    if found is None:
        raise KeyError(f"no question {key!r}; there are {', '.join(_all())}")
    return found


# ---------------------------------------------------------------- judging


@dataclass(frozen=True, slots=True)
class Judged:
    """What an answer is worth. guess: as it is kept. beliefs: what its mistakes come from. pieces: what is said to it."""

    right: bool
    guess: str
    beliefs: tuple[str, ...]
    pieces: tuple[Piece, ...]


class NoAnswer(ValueError):
    """What was given is no answer to this kind of question; the message says what would be."""


def judge(question: Question, guess: Any, had: Iterable[int] | None = None) -> Judged:
    """The judgement on an answer; nothing is kept. Raises NoAnswer."""
    if question.kind == "number":
        return _judge_numbers(question, _numbers(question, guess))
    if question.kind == "free":
        return _judge_words(question, str(guess).strip(), had)
    return _judge_letters(question, _letters(question, guess))


def _letters(question: Question, guess: Any) -> frozenset[str]:
    given = [str(letter).strip().lower() for letter in guess] if isinstance(guess, (set, frozenset, list, tuple)) else None
    text = str(guess).strip().lower()
    if given is None:
        given = [] if text == NONE_OF_THEM else [letter for letter in text if letter not in " ,;"]
    elif given == [NONE_OF_THEM]:
        given = []
    known = {option.letter for option in question.options}
    strange = [letter for letter in given if letter not in known]
    if strange or (question.kind == "one" and len(set(given)) != 1):
        raise NoAnswer(f"Write {HOW[question.kind]}; the letters are {', '.join(sorted(known))}.")
    return frozenset(given)


def _numbers(question: Question, guess: Any) -> list[float]:
    given = guess.replace(",", " ").replace(";", " ").split() if isinstance(guess, str) else guess
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    try:
        numbers = [float(number) for number in given]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != len(question.blanks):
        raise NoAnswer(
            f"Write {len(question.blanks)} numbers, in this order: {_joined(blank.label for blank in question.blanks)}."
        )
    return numbers


def _judge_letters(question: Question, chosen: frozenset[str]) -> Judged:
    pieces, beliefs = [], []
    for option in question.options:
        taken = option.letter in chosen
        if taken == option.right or (question.kind == "one" and not taken):
            continue
        head = f"Not {option.letter}." if taken else f"{option.letter} is right, too."
        pieces.append(_belief(f"{head} {option.text}", option.seems, option.where))
        beliefs.append(option.belief or f"misses_{option.letter}")
    right = chosen == question.right_letters
    if not right:
        letters = ", ".join(sorted(question.right_letters)) or NONE_OF_THEM
        pieces.append(paragraph(f"Right: {letters}."))
    return Judged(right, ",".join(sorted(chosen)) or NONE_OF_THEM, tuple(beliefs), (*pieces, *_reasons(question)))


def _judge_numbers(question: Question, numbers: Sequence[float]) -> Judged:
    pieces, beliefs = [], []
    for blank, number in zip(question.blanks, numbers, strict=True):
        if abs(number - blank.answer) < 1e-9:
            continue
        known = next((known for known in blank.wrong if abs(number - known.value) < 1e-9), None)
        head = f"Not {number:g}, but {blank.answer:g}: {blank.label}."
        pieces.append(_belief(head, known.seems, known.where) if known else paragraph(head))
        beliefs.append(known.belief if known else "another_number")
    guess = ", ".join(f"{number:g}" for number in numbers)
    return Judged(not pieces, guess, tuple(beliefs), (*pieces, *_reasons(question)))


def _judge_words(question: Question, text: str, had: Iterable[int] | None) -> Judged:
    if len(text.split()) < 4:
        raise NoAnswer("Write your own answer first, at least one sentence; then compare.")
    counted = {number for number in had if 1 <= number <= len(question.points)} if had is not None else set()
    missing = [point for number, point in enumerate(question.points, 1) if number not in counted]
    model = [title("A model answer"), paragraph(question.model)]
    if had is None:
        points = [f"{number}  {point}" for number, point in enumerate(question.points, 1)]
        ask_back = paragraph("Which of them were in yours? Answer again with had={1, 2, …}.")
        return Judged(False, text, (), (*model, title("Points to compare"), lines(points), ask_back))
    said = f"{len(counted)} of {len(question.points)} points."
    left = [paragraph(f"{said} Missing in yours:"), lines(missing)] if missing else [paragraph(f"{said} All of them.")]
    return Judged(not missing, text, (), (*left, *model))


def _belief(head: str, seems: str, where: str) -> Piece:
    return paragraph(f"{head} You seem to believe: {seems} Where that would be right: {where}" if seems else head)


def _reasons(question: Question) -> Iterator[Piece]:
    if question.decides:
        yield paragraph(f"What decides: {question.decides}")
    if question.more:
        yield paragraph(question.more)


# ---------------------------------------------------------------- asking and answering


def is_answer(question: Question, guess: Any) -> bool:
    """Whether this answers the question at all, rightly or wrongly."""
    try:
        judge(question, guess)
    except NoAnswer:
        return False
    return guess is not None


def ask(key: str) -> Notice:
    """The question, and how to answer it."""
    question = get(key)
    how = paragraph(f"Answer: {HOW[question.kind]}.")
    return Notice(title(question.key), paragraph(question.text), lines(question.lines()), how)


def answer(key: str, guess: Any, had: Iterable[int] | None = None) -> Notice:
    """Feedback on an answer, and a note of it in the progress. None, or what is no answer, only asks again."""
    question = get(key)
    if guess is None:
        return Notice(title("Your answer first"), paragraph(f"Write {HOW[question.kind]}."))
    try:
        judged = judge(question, guess, had)
    except NoAnswer as error:
        return Notice(title("Not an answer yet"), paragraph(str(error)))
    if question.kind == "free" and had is None:
        return Notice(*judged.pieces)
    progress.note_answer(question.kept_as, judged.guess, right=judged.right, reading=False, returning=True)
    return Notice(title(_head(question, judged)), *judged.pieces)


def _head(question: Question, judged: Judged) -> str:
    if judged.right:
        return "As you said." if question.kind != "free" else "All points."
    return "Not quite; it comes back in a later lesson."


def play(lesson: str | None = None) -> Play:
    """The questions of a lesson, or all, with controls; without ipywidgets as text."""
    from lessonlib.lab.quiz_play import Play

    return Play(questions(lesson), f'quiz.play("{lesson}")' if lesson else "quiz.play()")


def score(lesson: str | None = None) -> tuple[int, int, int]:
    """How many questions were answered right the last time, how many were answered, how many there are."""
    kept = progress.state().answers
    asked = [question.kept_as for question in questions(lesson)]
    answered = [kept[key] for key in asked if key in kept]
    return sum(entry.right for entry in answered), len(answered), len(asked)


def _joined(words: Iterable[str]) -> str:
    return "; ".join(words)
