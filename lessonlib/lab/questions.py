"""Questions that a reader answers in words: two from earlier lessons at the start, a few at the end, and the new terms.

    recall("02")      what was taught earlier, with new numbers
    closing("02")     what the lesson's card promised
    glossary("02")    the new terms, one line each

The answers are folded in a notebook; in a terminal `closing("02").answers` prints them. All of it is data
(`data/course/NN.json`): each question says what it goes back to, so that a test can ask for every promise of a card.

What this file does not do: it judges no answer. Questions with options are predictions (predict.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lessonlib.lab.notice import marked
from lessonlib.lab.predict import course


@dataclass(frozen=True, slots=True)
class Question:
    """One question with a model answer. `about`: the lesson that taught it ("00"), or the promise it tests ("02.b")."""

    question: str
    answer: str
    about: str


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions with their answers folded away. `name` is how the reader writes it to see the answers."""

    name: str
    entries: tuple[Question, ...]

    @property
    def answers(self) -> str:
        """The answers as text."""
        return "\n".join(f"{number}. {entry.answer}" for number, entry in enumerate(self.entries, 1))

    def __repr__(self) -> str:
        lines = [f"{number}. {entry.question}" for number, entry in enumerate(self.entries, 1)]
        return "\n".join([*lines, f"Answers: print({self.name}.answers)"])

    def _repr_html_(self) -> str:
        return "<ol>" + "".join(f"<li>{_folded(entry)}</li>" for entry in self.entries) + "</ol>"


@dataclass(frozen=True, slots=True)
class Glossary:
    """Terms and what they mean, one line each."""

    terms: dict[str, str]

    def __repr__(self) -> str:
        width = max(map(len, self.terms), default=0)
        return "\n".join(f"{term.ljust(width)}  {line}" for term, line in self.terms.items())

    def _repr_html_(self) -> str:
        rows = (f"<dt><b>{marked(term)}</b></dt><dd>{marked(line)}</dd>" for term, line in self.terms.items())
        return f"<dl>{''.join(rows)}</dl>"


def recall(lesson: str) -> Questions:
    """The questions at the start of a lesson, about earlier ones."""
    return _questions("recall", lesson, "retrieval", "taught")


def closing(lesson: str) -> Questions:
    """The questions at the end of a lesson."""
    return _questions("closing", lesson, "closing", "exit")


def glossary(lesson: str) -> Glossary:
    """The terms that a lesson brings in."""
    return Glossary(dict(_data(lesson, "glossary", {})))


def _questions(function: str, lesson: str, key: str, about: str) -> Questions:
    entries = (Question(entry["question"], entry["answer"], entry[about]) for entry in _data(lesson, key, []))
    return Questions(f'{function}("{lesson}")', tuple(entries))


def _data(lesson: str, key: str, empty: Any) -> Any:
    found = course(lesson).get(key, empty)
    if not found:
        raise KeyError(f"lesson {lesson!r} has no {key}")
    return found


def _folded(entry: Question) -> str:
    return f"<details><summary>{marked(entry.question)}</summary><p>{marked(entry.answer)}</p></details>"
