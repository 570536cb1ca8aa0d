"""What the course consists of: its lessons, as their own cards say, with their exercises.

    outline.lessons()            all of them, in order
    outline.lesson("03")         one; "3" is as good

What this file does not do: it knows nothing of the learner (journey.py does).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lessonlib.lab import exercises, start
from lessonlib.lab.exercises import Exercise, text_of


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson. number: "03". name: of its notebook, without the ending. minutes: 0 if its card does not say."""

    number: str
    name: str
    title: str
    question: str
    minutes: int
    exercises: tuple[Exercise, ...]

    @property
    def core(self) -> list[Exercise]:
        """The exercises that everybody should do."""
        return [exercise for exercise in self.exercises if exercise.core]

    @property
    def further(self) -> list[Exercise]:
        """The others."""
        return [exercise for exercise in self.exercises if not exercise.core]

    @property
    def notebook(self) -> str:
        """Its file within the course."""
        return f"notebooks/{self.name}.ipynb"

    @property
    def exercise_notebook(self) -> str:
        """The file of its exercises, "" if it has none."""
        return f"exercises/{self.exercises[0].notebook}.ipynb" if self.exercises else ""

    @property
    def solution_notebook(self) -> str:
        """The file of their solutions, "" if it has none."""
        return f"solutions/{self.exercises[0].notebook}.ipynb" if self.exercises else ""


@cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons. Raises StartError where the installation has none."""
    listed = exercises.registry()
    found = []
    for path in sorted((start.course_folder() / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        number = path.name[:2]
        own = tuple(exercise for exercise in listed if exercise.lesson == number)
        found.append(Lesson(number, path.stem, *_card(path), own))
    return tuple(found)


def lesson(number: str | int) -> Lesson:
    """One lesson. Raises KeyError with the numbers that there are."""
    wanted = f"{int(number):02d}" if str(number).isdecimal() else str(number)
    for each in lessons():
        if each.number == wanted:
            return each
    raise KeyError(f"there is no lesson {number}; there are {lessons()[0].number} to {lessons()[-1].number}")


def exercise(key: str) -> Exercise:
    """One exercise, by its key. Raises KeyError with the keys of its lesson."""
    number = key.partition(".")[0]
    own = [each for each in exercises.registry() if each.lesson == number]
    for each in own:
        if each.key == key:
            return each
    raise KeyError(f"there is no exercise {key}; lesson {number} has {', '.join(each.key for each in own) or 'none'}")


def _card(path: Path) -> tuple[str, str, int]:
    """Title, question and minutes of a lesson's first cell."""
    text = text_of(json.loads(path.read_text(encoding="utf-8"))["cells"][0])
    heading = re.search(r"^# (?:\d\d · )?(.+)$", text, re.MULTILINE)
    question = re.search(r"\*\*Question\*\* \| (.+?) \|", text)
    minutes = re.search(r"\*\*Time\*\* \| (\d+) minutes", text)
    return (
        heading[1].strip() if heading else path.stem,
        question[1].strip() if question else "",
        int(minutes[1]) if minutes else 0,
    )
