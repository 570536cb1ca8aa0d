"""What `lesson export-nbgrader` writes is what nbgrader takes: judged by nbgrader's own validator, and once by nbgrader
itself, from the source notebook over the students' version to the points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lessonlib.lab import breaks, checks, exercises, nbgrader, outline
from lessonlib.lab.nbgrader import NotYet, assignment, require
from tests.lab_exercises.answers.usage import ANSWERS

ROOT = Path(__file__).parents[2]
LESSONS = [lesson for lesson in outline.lessons() if lesson.exercises]
each = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.number)


@cache
def made(number: str) -> Any:
    return assignment(json.loads((ROOT / outline.lesson(number).solution_notebook).read_text(encoding="utf-8")), points=2)


def about(notebook: Any) -> list[dict[str, Any]]:
    return [cell["metadata"]["nbgrader"] for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]


def sources(notebook: Any, *, of: str) -> list[str]:
    return [cell["source"] for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get(of)]


@cache
def validator() -> Any:
    """nbgrader's own. Its packages are old in places; their warnings are not ours."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nbformat = pytest.importorskip("nbgrader.nbgraderformat")
    return nbformat.MetadataValidator()


# ---------------------------------------------------------------- the metadata


@each
def test_nbgraders_own_validator_takes_it(lesson: outline.Lesson) -> None:
    import nbformat

    validator().validate_nb(nbformat.from_dict(made(lesson.number)))


def test_the_validator_is_no_rubber_stamp() -> None:
    import nbformat

    bad = json.loads(json.dumps(made("01")))
    del next(cell for cell in bad["cells"] if "nbgrader" in cell["metadata"])["metadata"]["nbgrader"]["locked"]
    with pytest.raises(Exception, match="locked"):
        validator().validate_nb(nbformat.from_dict(bad))


@each
def test_every_check_is_worth_points_and_every_answer_is_a_cell_of_the_student(lesson: outline.Lesson) -> None:
    notebook = made(lesson.number)
    graded = sources(notebook, of="grade")
    assert len(graded) == len(lesson.exercises)
    assert [meta["points"] for meta in about(notebook) if meta["grade"]] == [2] * len(graded)
    for exercise, source in zip(lesson.exercises, graded, strict=True):
        assert f"require({exercise.call}(" in source
    for source in sources(notebook, of="solution"):
        assert exercises.BEGIN in source
        assert "#:" not in source


@each
def test_what_a_student_must_not_change_is_locked_and_ids_are_unique(lesson: outline.Lesson) -> None:
    metas = about(made(lesson.number))
    assert all(meta["locked"] != meta["solution"] for meta in metas)
    ids = [meta["grade_id"] for meta in metas]
    assert len(set(ids)) == len(ids)


@each
def test_the_grade_book_names_the_exercises(lesson: outline.Lesson) -> None:
    """Names by place would shift with the next version, and say nothing to a teacher."""
    graded = [meta["grade_id"] for meta in about(made(lesson.number)) if meta["grade"]]
    assert graded == [f"{exercise.key.replace('.', '-')}-check" for exercise in lesson.exercises]


@each
def test_cells_that_only_a_solution_shows_are_left_out(lesson: outline.Lesson) -> None:
    tags = [exercises.tags_of(cell) for cell in made(lesson.number)["cells"]]
    assert not [cell for cell in tags if "solution" in cell]
    assert all(cell["outputs"] == [] for cell in made(lesson.number)["cells"] if cell["cell_type"] == "code")


def test_exporting_leaves_the_solutions_as_they_are() -> None:
    file = ROOT / outline.lesson("01").solution_notebook
    before = json.loads(file.read_text(encoding="utf-8"))
    assignment(before)
    assert before == json.loads(file.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- require


def test_require_shows_the_explanation_and_raises(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotYet):
        require(checks.get("usage")(lambda wire, usage: None))
    assert "Not yet" in capsys.readouterr().out
    require(checks.get("usage")(ANSWERS.base))
    broken = breaks.get("cache-left-out")
    require(breaks.Outcome(broken, broken.fails, tuple(broken.fails), breaks.Run()))
    require(breaks.Verdict(True, None, "good"))


class Yes:
    """Says yes to everything."""

    passed = right = accepted = True

    def __eq__(self, other: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


@pytest.mark.parametrize("found", [None, True, 1, Yes(), breaks.Verdict(False, "x", "no"), breaks.hint("cache-left-out")])
def test_require_takes_nothing_but_a_right_answer_of_ours(found: object) -> None:
    with pytest.raises(NotYet):
        require(found)


# ---------------------------------------------------------------- nbgrader itself


@pytest.mark.timeout(360)
def test_nbgrader_makes_the_students_version_and_gives_the_points(tmp_path: Path) -> None:
    """Lesson 04: one student hands in what came, one the solution."""
    validator()
    name = outline.lesson("04").name
    nbgrader.export(tmp_path, [outline.lesson("04")], points=2)
    tool(tmp_path, "generate_assignment", name)
    released = (tmp_path / "release" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    hidden = exercises.secrets(json.loads((ROOT / outline.lesson("04").solution_notebook).read_text(encoding="utf-8")))
    assert exercises.leaks(released.encode("utf-8"), hidden) == []
    for student, origin in (("ada", "source"), ("ben", "release")):
        folder = tmp_path / "submitted" / student / name
        folder.mkdir(parents=True)
        text = (tmp_path / origin / name / f"{name}.ipynb").read_text(encoding="utf-8")
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
    tool(tmp_path, "autograde", name)
    script = (
        "import sys; from nbgrader.api import Gradebook\n"
        "with Gradebook('sqlite:///gradebook.db') as book:\n"
        "    print([(s.student.id, s.score, s.max_score) for s in book.assignment_submissions(sys.argv[1])])"
    )
    marks = subprocess.run(
        [sys.executable, "-c", script, name], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True,
        timeout=60,
    )  # fmt: skip
    points = 2.0 * len(outline.lesson("04").exercises)
    assert sorted(json.loads(marks.stdout.replace("(", "[").replace(")", "]").replace("'", '"'))) == [
        ["ada", points, points], ["ben", 0.0, points],
    ]  # fmt: skip


def environment() -> dict[str, str]:
    """nbgrader calls `alembic` by its name, so the environment's own programs must be on the path."""
    programs = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    return {**os.environ, "LESSON_PROGRESS": "off", "PYTHONPATH": str(ROOT), "PATH": programs}


def tool(folder: Path, command: str, name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "nbgrader", command, name], cwd=folder, env=environment(), capture_output=True, text=True,
        encoding="utf-8", errors="replace", check=False, timeout=110,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
