"""The exercises as nbgrader's source notebooks: its cell metadata, in version 3 of its schema, made from the solutions.

    nbgrader.export(Path("course"), outline.lessons())     course/source/01_.../01_....ipynb, one assignment per lesson

A cell that holds a solution is a *manually written* one (`solution`), a check is an *autograded test* with points (`grade`,
locked), and the statement of an exercise is read-only (locked). The marker words are nbgrader's own, so that its
`generate_assignment` makes the students' version. Lines `#:` are taken out of the regions first: they are what our own
exercises show, and nbgrader puts its own stub there.

nbgrader counts an autograded test as failed when its cell raises. Our checks raise nothing, they explain; so the exported
cell says `require(check.sse(MyParser))`, which shows the explanation and then raises.

The format: https://nbgrader.readthedocs.io/en/stable/contributor_guide/metadata.html. Why nbgrader's own validator judges
this in the tests, and why nothing of nbgrader is needed here: docs/decisions/nbgrader.md.

What this file does not do: it grades nothing, and needs no nbgrader. Its checks run in the student's own kernel; grading.py
says what that cannot prove.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lessonlib.lab import exercises, start
from lessonlib.lab.checks.core import Result
from lessonlib.lab.exercises import BEGIN, CHECK, ONLY_SOLUTION, STUB, tags_of, text_of
from lessonlib.lab.outline import Lesson

SCHEMA = 3
IMPORT = "from lessonlib.lab.nbgrader import require"


class NotYet(AssertionError):
    """An exercise has not passed; the explanation stands above."""


def require(found: Any) -> None:
    """Shows what a check, a break or a test of one's own answered, and raises NotYet unless it is right. A prediction counts
    only if it is exactly right."""
    from IPython.display import display

    display(found)  # type: ignore[no-untyped-call]
    if not _is_right(found):
        raise NotYet("not yet; what to do next stands above")


def _is_right(found: Any) -> bool:
    """By exact type: whatever else says yes to everything is no answer of ours."""
    from lessonlib.lab.breaks import Outcome, Verdict

    if type(found) is Result:
        return found.passed
    if type(found) is Outcome:
        return found.right
    return type(found) is Verdict and found.accepted


# ---------------------------------------------------------------- the notebooks


def export(folder: Path, lessons: Iterable[Lesson], points: float = 1.0) -> list[Path]:
    """Writes the assignments of some lessons, and returns their files. Raises StartError where there are no solutions."""
    written = []
    for lesson in lessons:
        if not lesson.exercises:
            continue
        source = start.course_folder() / lesson.solution_notebook
        if not source.is_file():
            raise start.StartError("this installation of lessonlib has no solutions in it")
        notebook = assignment(json.loads(source.read_text(encoding="utf-8")), points)
        file = folder / "source" / lesson.name / f"{lesson.name}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(exercises.text(notebook), encoding="utf-8", newline="\n")
        written.append(file)
    return written


def assignment(solution: Any, points: float = 1.0) -> Any:
    """nbgrader's source notebook of a solution notebook. Cells that only a solution should show are left out."""
    cells = []
    used: Counter[str] = Counter()
    key = ""
    for cell in solution["cells"]:
        key = next((tag.partition(":")[2] for tag in tags_of(cell) if tag.startswith("exercise:")), key)
        if ONLY_SOLUTION in tags_of(cell):
            continue
        made = {**cell, "source": text_of(cell), "metadata": dict(cell["metadata"])}
        if cell["cell_type"] == "code":
            made |= {"outputs": [], "execution_count": None}
        about = _about(made, points)
        if about is not None:
            made["metadata"]["nbgrader"] = {**about, "grade_id": _grade_id(key, about, used)}
        cells.append(made)
    return {**solution, "cells": cells}


def _grade_id(key: str, about: dict[str, Any], used: Counter[str]) -> str:
    """The name under which a teacher finds a cell in the grade book: of its exercise ("03-usage-check"), so that it stays
    when cells are added to a later version of the course. used: how often each was given out."""
    kind = "check" if about["grade"] else "answer" if about["solution"] else "text"
    name = re.sub(r"[^a-zA-Z0-9_-]", "-", f"{key}-{kind}")
    used[name] += 1
    return name if used[name] == 1 else f"{name}-{used[name]}"


def _about(cell: dict[str, Any], points: float) -> dict[str, Any] | None:
    """The metadata of a cell, which is changed to what nbgrader wants; None if it means nothing to it."""
    if CHECK in tags_of(cell):
        *before, call = cell["source"].rstrip().split("\n")
        cell["source"] = "\n".join([IMPORT, "", *before, f"require({call})"])
        return _cell(grade=True, locked=True, points=points)
    if cell["cell_type"] == "code" and BEGIN in cell["source"]:
        lines = cell["source"].split("\n")
        cell["source"] = "\n".join(line for line in lines if not line.strip().startswith(STUB))
        return _cell(solution=True)
    if any(tag.startswith("exercise:") for tag in tags_of(cell)):
        return _cell(locked=True)
    return None


def _cell(*, grade: bool = False, solution: bool = False, locked: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA,
        "grade": grade,
        "solution": solution,
        "locked": locked,
        "task": False,
        **more,
    }
