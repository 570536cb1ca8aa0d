"""The learner's own notebooks: judge the saved one, put an exercise back as it was, lay a solution beside it.

    folder.check(path, ["01.parser"])      the report of grading.grade, noted in the progress
    folder.reset_lesson(here, lesson)      the exercises of a lesson as they came; the old file is kept
    folder.reset_exercise(here, exercise)  one exercise of it
    folder.solution_of(exercise)           the solution as text
    folder.lay_solutions(here, lesson)     the solution notebook in the learner's folder

What this file does not do: it asks nothing and prints nothing (cli_course.py), and never touches a lesson.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from lessonlib.lab import exercises, grading, progress, start
from lessonlib.lab.exercises import Exercise, tags_of, text_of
from lessonlib.lab.notice import Notice, Piece, code, paragraph, title
from lessonlib.lab.outline import Lesson
from lessonlib.lab.start import StartError

KEPT = "before_reset"
"""Where notebooks go that were put back."""

NOT_WRITTEN, WRONG_PREDICTION = "not_written", "wrong_prediction"


# ---------------------------------------------------------------- judging


def check(path: Path, keys: Collection[str] | None = None) -> dict[str, Any]:
    """The report on a saved notebook, or on some of its exercises, noted in the progress. Only the first refusal takes one
    of the learner's hints."""
    given: list[str] = []

    def hint(key: str) -> int:
        given.append(key)
        return progress.next_hint(key) if len(given) == 1 else 0

    report = grading.grade(path, keys=keys, hint=hint)
    about = {each.key: each for each in exercises.registry()}
    for mark in report["exercises"]:
        _note(about[mark["key"]], mark)
    return report


def _note(exercise: Exercise, mark: dict[str, Any]) -> None:
    if mark["trouble"] or mark["belief"] == NOT_WRITTEN:
        return
    if exercise.call == "breaks.write_test":
        progress.note_test(exercise.about, accepted=mark["passed"])
    elif exercise.call != "breaks.run":
        progress.note_check(exercise.key, passed=mark["passed"], belief=mark["belief"])
    elif exercise.about not in progress.state().breaks:  # a guess that was corrected afterwards is no prediction
        progress.note_break(exercise.about, right=mark["passed"])


def judged(mark: dict[str, Any]) -> str:
    """What became of an exercise, in a word or two. A prediction is done when it was made, right or wrong."""
    if mark["trouble"]:
        return "not judged"
    if mark["belief"] == NOT_WRITTEN:
        return "to do"
    if mark["belief"] == WRONG_PREDICTION:
        return "surprised"
    return "passed" if mark["passed"] else "not yet"


# ---------------------------------------------------------------- putting back


def shipped(lesson: Lesson) -> str:
    """The exercise notebook of a lesson as it came. Raises StartError where the installation has none."""
    course = start.course_folder()
    source = course / lesson.solution_notebook
    if source.is_file():  # in a checkout the exercise itself may be what the learner has changed
        return exercises.text(exercises.make(json.loads(source.read_text(encoding="utf-8")), lesson.name))
    try:
        return (course / lesson.exercise_notebook).read_text(encoding="utf-8")
    except OSError as error:
        raise StartError(f"this installation has no exercises for lesson {lesson.number}: {error}") from None


def reset_lesson(here: Path, lesson: Lesson) -> Path | None:
    """Writes the exercises of a lesson as they came, and forgets what was recorded of them. Where the old file is now."""
    file = here / lesson.exercise_notebook
    kept = _put_aside(file, here)
    _write(file, shipped(lesson))
    _forget(lesson.exercises)
    return kept


def reset_exercise(here: Path, lesson: Lesson, exercise: Exercise) -> Path | None:
    """The same for one exercise: its own cells as they came, all others as they are. Raises ValueError if the notebook
    cannot be read, or holds none of its cells."""
    file = here / lesson.exercise_notebook
    try:
        notebook = json.loads(file.read_text(encoding="utf-8"))
        cells = notebook["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} cannot be read ({error}); `lesson reset {lesson.number}` writes it anew") from None
    fresh = _cells_of(json.loads(shipped(lesson))["cells"], exercise.key)
    ids = {cell["id"] for cell in fresh}
    places = [place for place, cell in enumerate(cells) if cell.get("id") in ids]
    if not places:
        raise ValueError(f"{file} has none of the cells of {exercise.key}; `lesson reset {lesson.number}` writes all anew")
    kept = _put_aside(file, here)
    others = [cell for cell in cells[places[0] :] if cell.get("id") not in ids]
    notebook["cells"] = [*cells[: places[0]], *fresh, *others]
    _write(file, json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
    _forget([exercise])
    return kept


def _cells_of(cells: list[Any], key: str) -> list[Any]:
    """The cells from the head of an exercise to its check."""
    found: list[Any] = []
    for cell in cells:
        if found or f"exercise:{key}" in tags_of(cell):
            found.append(cell)
        if found and exercises.CHECK in tags_of(cell):
            break
    return found


def _forget(own: Collection[Exercise]) -> None:
    names = [each.about for each in own if each.call.startswith("breaks.")]
    progress.forget_exercises([each.key for each in own], names)


def _put_aside(file: Path, here: Path) -> Path | None:
    """A copy under a name that is not taken. None if there is no file."""
    if not file.is_file():
        return None
    folder = here / KEPT
    folder.mkdir(exist_ok=True)
    number, target = 1, folder / file.name
    while target.exists():
        number += 1
        target = folder / f"{file.stem}-{number}{file.suffix}"
    target.write_bytes(file.read_bytes())
    return target


def _write(file: Path, text: str) -> None:
    """All at once: whoever reads sees the old or the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.new")
    fresh.write_text(text, encoding="utf-8", newline="\n")
    os.replace(fresh, file)


# ---------------------------------------------------------------- solutions


def _solution(lesson: Lesson) -> str:
    try:
        return (start.course_folder() / lesson.solution_notebook).read_text(encoding="utf-8")
    except OSError:
        raise StartError(f"this installation has no solutions for lesson {lesson.number}") from None


def solution_of(lesson: Lesson, exercise: Exercise) -> Notice:
    """The solution of an exercise, and what is said to it. Raises StartError where the installation has none."""
    cells = _cells_of(json.loads(_solution(lesson))["cells"], exercise.key)
    pieces: list[Piece] = [title(f"Solution of {exercise.key} · {exercise.title}")]
    return Notice(*pieces, *(piece for cell in cells for piece in _of_cell(cell)))


def _of_cell(cell: Any) -> Iterator[Piece]:
    """What of a cell is not in the exercise."""
    source = text_of(cell)
    hidden = exercises.ONLY_SOLUTION in tags_of(cell)
    if cell["cell_type"] == "code" and (hidden or exercises.BEGIN in source):
        yield code(exercises.solution_text(source))
    elif hidden:
        yield paragraph(source)


def lay_solutions(here: Path, lesson: Lesson) -> Path:
    """Writes the solution notebook of a lesson into the learner's folder; one that is there stays. Where it is."""
    file = here / lesson.solution_notebook
    if not file.exists():
        _write(file, _solution(lesson))
    return file
