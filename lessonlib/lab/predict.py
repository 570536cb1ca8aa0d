"""Predictions: the reader commits to an answer before the experiment shows it.

    guess = None                 # the reader writes "a", "b" or "c"
    reveal("00.first", guess)    # asks, until there is a guess; then says what the guess assumes and what decides

Questions and feedback are data (`data/course/NN.json`), one feedback per option, so that a test can ask for every one of
them. A wrong option carries the name of the belief that leads to it. Run All passes without a guess: nothing is raised.

What this file does not do: it keeps no score. A guess is kept with the progress (progress.py), and a wrong one comes back
(returns.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from lessonlib.lab import progress
from lessonlib.lab.notice import marked


@dataclass(frozen=True, slots=True)
class Option:
    """One answer: its letter, its text, the misconception behind it (None for the right one), and what to say to it."""

    letter: str
    text: str
    belief: str | None
    feedback: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """One question with its options; `answer` is the letter of the right one."""

    key: str
    question: str
    options: tuple[Option, ...]
    answer: str

    def option(self, letter: str) -> Option | None:
        """The option of that letter."""
        return next((option for option in self.options if option.letter == letter), None)


@dataclass(frozen=True, slots=True)
class Feedback:
    """What `reveal` shows, as text and as HTML."""

    title: str
    text: str

    def __repr__(self) -> str:
        return f"{self.title}\n{self.text}"

    def _repr_html_(self) -> str:
        body = "<br>".join(marked(line) for line in self.text.splitlines())
        return f"<p><b>{marked(self.title)}</b></p><p>{body}</p>"


def predictions(lesson: str) -> dict[str, Prediction]:
    """All predictions of a lesson ("00"), by their key without the lesson's number."""
    return {key: _prediction(f"{lesson}.{key}", entry) for key, entry in course(lesson).get("predictions", {}).items()}


def ask(key: str) -> Feedback:
    """The question and its options, to be shown before the guess."""
    found = find(key)
    return Feedback(found.question, "\n".join(f"{option.letter}  {option.text}" for option in found.options))


def reveal(key: str, guess: str | None) -> Feedback:
    """Feedback on a guess, which is noted. None, or a letter that is no option, only asks again; nothing is raised."""
    found = find(key)
    option = chosen(found, guess)
    if option is not None:
        progress.note_answer(key, option.letter, right=option.letter == found.answer)
    return feedback(found, guess)


def chosen(found: Prediction, guess: str | None) -> Option | None:
    """The option that a guess means, None if it means none."""
    return None if guess is None else found.option(str(guess).strip().lower())


def feedback(found: Prediction, guess: str | None) -> Feedback:
    """What is said to a guess; nothing is noted."""
    letters = ", ".join(option.letter for option in found.options)
    option = chosen(found, guess)
    if guess is None:
        return Feedback("Your guess first", f"Set guess to one of {letters}, run its cell, then this one again.")
    if option is None:
        return Feedback(f"{guess!r} is not one of {letters}", 'Write the letter in quotes, for example guess = "a".')
    if option.letter == found.answer:
        return Feedback("As you said.", option.feedback)
    right = found.option(found.answer)
    return Feedback(f"Not {option.letter}.", f"{option.feedback}\nIt is {found.answer}: {right.text if right else ''}")


def find(key: str) -> Prediction:
    """One prediction, by its key. Raises KeyError with the keys of its lesson."""
    lesson, _, name = key.partition(".")
    found = predictions(lesson).get(name)
    if found is None:
        raise KeyError(f"no prediction {key!r}; lesson {lesson} has {', '.join(predictions(lesson)) or 'none'}")
    return found


def _prediction(key: str, entry: dict[str, Any]) -> Prediction:
    options = tuple(
        Option(letter, option["text"], option.get("belief"), option["feedback"])
        for letter, option in entry["options"].items()
    )
    return Prediction(key, entry["question"], options, entry["answer"])


@cache
def course(lesson: str) -> dict[str, Any]:
    """The lesson's data: predictions, closing questions, glossary. Empty if the lesson has none yet."""
    file = resources.files("lessonlib").joinpath(f"data/course/{lesson}.json")
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}
