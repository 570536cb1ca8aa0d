"""All exercise notebooks at once, by their solutions: a new one needs no test code.

Each exercise must fail its check unsolved, for the right reason, and pass solved; a blank, a constant and a plausible wrong
answer are refused; what goes to learners holds nothing of the solution.
"""

from __future__ import annotations

import base64
import json
import marshal
import random
import re
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lessonlib.lab import breaks, checks, exercises, grading
from lessonlib.lab.checks import predicted
from lessonlib.lab.exercises import Exercise, FormatError, make, tags_of, text_of
from lessonlib.lab.grading import Limits, Student

ROOT = Path(__file__).parents[2]
SOLUTIONS = sorted((ROOT / "solutions").glob("[0-9][0-9]_*.ipynb"))
FOLDERS = exercises.Folders(ROOT / "solutions", ROOT / "exercises")

notebooks = pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)


@cache
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def solved(path: Path) -> dict[str, Any]:
    return grading.grade(path)


# ---------------------------------------------------------------- the format


def test_the_exercises_are_what_the_solutions_make() -> None:
    assert exercises.build(FOLDERS, write=False) == []


@notebooks
def test_a_solution_notebook_keeps_to_the_format(path: Path) -> None:
    assert exercises.faults(read(path), path.stem) == []


@notebooks
def test_core_exercises_are_marked(path: Path) -> None:
    found = exercises.exercises_in(read(path), path.stem)
    assert [each.key for each in found if each.core]
    assert all(each.kind in exercises.KINDS for each in found)


@notebooks
def test_every_check_names_something_that_there_is(path: Path) -> None:
    for each in exercises.exercises_in(read(path), path.stem):
        if each.call.startswith("breaks."):
            assert breaks.get(each.about).lesson == each.lesson
        else:
            assert grading.check_of(each).heading


@notebooks
def test_a_build_it_exercise_has_the_key_of_its_check(path: Path) -> None:
    for each in exercises.exercises_in(read(path), path.stem):
        if each.kind == "build":
            assert checks.get(each.call.removeprefix("check.")).exercise == each.key


def test_every_check_is_used_and_every_lesson_has_a_break() -> None:
    used = {each.call.removeprefix("check.") for each in exercises.registry()}
    lessons = {each.lesson for each in exercises.registry()}
    assert {name for name in checks.NAMES if checks.get(name).exercise[:2] in lessons} - used == set()
    assert {each.lesson for each in exercises.registry() if each.call.startswith("breaks.")} == lessons


def test_the_source_lessons_eight_breaks_can_all_be_met() -> None:
    eight = {broken.name for broken in breaks.catalogue() if broken.number is not None}
    lessons = {each.lesson for each in exercises.registry()}
    shown = "".join(text_of(cell) for path in SOLUTIONS for cell in read(path)["cells"])
    assert {name for name in eight if breaks.get(name).lesson in lessons and f'"{name}"' not in shown} == set()


# ---------------------------------------------------------------- solved, unsolved


@notebooks
def test_solved_every_exercise_passes(path: Path) -> None:
    assert [mark for mark in solved(path)["exercises"] if not mark["passed"]] == []


@notebooks
def test_unsolved_every_exercise_fails_for_the_right_reason(path: Path, tmp_path: Path) -> None:
    unsolved = tmp_path / path.name
    unsolved.write_text(json.dumps(make(read(path), path.stem)), encoding="utf-8")
    report = grading.grade(unsolved)
    assert {mark["key"]: (mark["belief"], mark["trouble"]) for mark in report["exercises"]} == {
        mark["key"]: ("not_written", "") for mark in solved(path)["exercises"]
    }


@notebooks
def test_run_all_of_an_unsolved_notebook_stops_nowhere_but_in_a_learners_own_call(path: Path) -> None:
    """The cells outside of the exercises run, so that a learner who begins at the end is not stopped at the start."""
    cells = [text_of(cell) for cell in make(read(path), path.stem)["cells"] if cell["cell_type"] == "code"]
    with Student(Limits()) as student:
        raised = [student.run(grading.without_judges(source)) for source in cells]
    assert set(raised) <= {"", "NotImplementedError"}


# ---------------------------------------------------------------- wrong answers


def variants(each: Exercise) -> Iterator[tuple[str, str]]:
    """(what it is, source that sets the learner's name to it)."""
    yield "blank", f"{each.answer} = None"
    yield "constant", f"{each.answer} = 42"
    yield "empty", f"{each.answer} = ''"
    match each.call:
        case "check.cells":
            yield from wrong_tables(each)
        case "check.order":
            yield "reversed", f"{each.answer} = {list(reversed(predicted.entry(each.about, 'order')['order']))!r}"
        case "breaks.run":
            yield from wrong_predictions(each)
        case "breaks.write_test":
            yield "does nothing", f"def {each.answer}():\n    assert True"
        case _:
            yield "does nothing", f"def {each.answer}(*arguments, **named):\n    return None"
            yield (
                "an empty class",
                f"class {each.answer}:\n    def feed(self, *a): return []\n    def close(self): return []",
            )


def wrong_tables(each: Exercise) -> Iterator[tuple[str, str]]:
    """The right table with one cell as somebody who believes the wrong thing would fill it in; and all cells alike."""
    cells = predicted.entry(each.about, "cells")["cells"]
    right = {name: first(cell["is"]) for name, cell in cells.items()}
    listed = [(name, word) for name, cell in cells.items() for word in cell.get("wrong", {})]
    for name, word in random.Random(each.key).sample(listed, k=min(4, len(listed))):
        yield f"{name}: {word}", f"{each.answer} = { ({**right, name: word})!r}"
    yield "all alike", f"{each.answer} = {dict.fromkeys(right, next(iter(right.values())))!r}"


def first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def wrong_predictions(each: Exercise) -> Iterator[tuple[str, str]]:
    broken = breaks.get(each.about)
    near = sorted(broken.offered.keys() - broken.fails)
    yield "everything", f"{each.answer} = {sorted(broken.offered)!r}"
    yield "a near miss", f"{each.answer} = {near[:1]!r}"
    if broken.fails:
        yield "no test notices", f"{each.answer} = {{'none'}}"


@notebooks
def test_blank_constant_and_plausible_wrong_answers_are_refused(path: Path) -> None:
    """Each is put where the check stands, behind everything before it."""
    accepted = []
    with Student(Limits()) as student:
        for each in exercises.exercises_in(read(path), path.stem):
            for what, source in variants(each):
                student.run(source)
                mark = grading.Grading([source], [each], 5, Limits()).judge(student, each, 1)
                if mark.passed or not mark.message:
                    accepted.append(f"{each.key}: {what} {mark.trouble}")
    assert accepted == []


@notebooks
def test_a_refusal_says_what_to_do_next(path: Path) -> None:
    for each in exercises.exercises_in(read(path), path.stem):
        if each.call.startswith("check."):
            assert f"`lesson hint {each.key}`" in grading.check_of(each).examine(None, hint=1).message


# ---------------------------------------------------------------- read and predict: the data


TABLES = [
    (key, entry)
    for file in sorted((ROOT / "lessonlib/data/exercises").glob("[0-9][0-9].json"))
    for key, entry in json.loads(file.read_text(encoding="utf-8")).items()
]
tables = pytest.mark.parametrize(("key", "entry"), TABLES, ids=[key for key, _ in TABLES])


@tables
def test_a_table_has_three_hints_and_says_for_every_cell_which_bytes_decide(key: str, entry: dict[str, Any]) -> None:
    assert len(set(entry["hints"])) == 3
    if entry["kind"] == "cells":
        assert all(len(cell["bytes"]) > 10 for cell in entry["cells"].values())
        assert sum(len(cell.get("wrong", {})) for cell in entry["cells"].values()) >= 3


@tables
def test_each_listed_wrong_word_is_refused_with_its_own_diagnosis(key: str, entry: dict[str, Any]) -> None:
    if entry["kind"] != "cells":
        return
    check = predicted.cells_check(key)
    right = {name: first(cell["is"]) for name, cell in entry["cells"].items()}
    assert check.examine(right, hint=1).passed
    for name, cell in entry["cells"].items():
        for word, wrong in cell.get("wrong", {}).items():
            result = check.examine({**right, name: word}, hint=1)
            assert (result.passed, result.belief) == (False, f"{name}: {wrong['belief']} ({word})")
            assert wrong["seems"] in result.seems
            assert wrong["where"] in result.seems


@tables
def test_every_word_that_may_be_right_is(key: str, entry: dict[str, Any]) -> None:
    if entry["kind"] == "cells" and "words" in entry:
        allowed = {str(word).casefold() for word in entry["words"]}
        rights = {str(word).casefold() for cell in entry["cells"].values() for word in _as_list(cell["is"])}
        assert rights <= allowed


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# ---------------------------------------------------------------- what goes to learners


@notebooks
def test_an_exercise_holds_nothing_of_its_solution(path: Path) -> None:
    release = json.dumps(make(read(path), path.stem), ensure_ascii=False).encode("utf-8")
    hidden = exercises.secrets(read(path))
    assert hidden, "a solution without a line of its own"
    assert exercises.leaks(release, hidden) == []


@notebooks
def test_an_exercise_has_no_outputs_and_no_solution_cells(path: Path) -> None:
    for cell in make(read(path), path.stem)["cells"]:
        assert "solution" not in tags_of(cell)
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            assert not re.search(r"### (BEGIN|END) SOLUTION|^\s*#:", text_of(cell), re.MULTILINE)


SECRET = "answer_states = {'after message_stop': 'DONE'}"


@pytest.mark.parametrize(
    "packed",
    [
        SECRET.encode(),
        base64.b64encode(SECRET.encode()),
        base64.urlsafe_b64encode(b"x" + SECRET.encode()),
        base64.b64encode(zlib.compress(SECRET.encode())),
        base64.b64encode(marshal.dumps(compile(SECRET, "hidden", "exec"))),
        SECRET.encode().hex().encode(),
        json.dumps(SECRET).encode(),
    ],
    ids=["plain", "base64", "base64 of a part", "compressed", "marshalled", "hex", "json"],
)
def test_a_hidden_answer_is_found_in_any_wrapping(packed: bytes) -> None:
    """sagemathinc/cocalc #4781, jupyter/nbgrader #869: hidden tests in the returned notebook, obfuscated or not."""
    release = b'{"cells": [{"source": "' + packed + b'"}]}'
    assert exercises.leaks(release, [SECRET])
    assert exercises.leaks(b'{"cells": []}', [SECRET]) == []


# ---------------------------------------------------------------- making exercises


CELL = """class A:
    def one(self):
        ### BEGIN SOLUTION
        return 1
        ### END SOLUTION

    def two(self):
        ### BEGIN SOLUTION
        #: return 0   # fill in
        return 2
        ### END SOLUTION
"""


def test_a_region_becomes_its_stub_or_says_that_it_is_not_written() -> None:
    assert exercises.without_solution(CELL) == (
        "class A:\n    def one(self):\n        raise NotImplementedError  # your code here\n\n"
        "    def two(self):\n        return 0   # fill in\n"
    )


def test_a_solution_reads_without_markers() -> None:
    assert "###" not in exercises.solution_text(CELL)
    assert "fill in" not in exercises.solution_text(CELL)
    assert "return 2" in exercises.solution_text(CELL)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("### BEGIN SOLUTION\nx = 1", "never ends"),
        ("x = 1\n### END SOLUTION", "never began"),
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", "inside"),
    ],
)
def test_markers_without_a_partner_are_refused(source: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        exercises.without_solution(source, "01 cell-1")


def cell(kind: str, source: str, *tags: str) -> dict[str, Any]:
    extra = {"outputs": [], "execution_count": 1} if kind == "code" else {}
    return {
        "cell_type": kind,
        "id": f"c{abs(hash(source)) % 10**6}",
        "source": source,
        "metadata": {"tags": list(tags)},
        **extra,
    }


def made(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


HEAD = cell("markdown", "## Build\n", "exercise:01.x", "build", "core")


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ([HEAD], "has no check"),
        ([cell("code", "check.sse(A)", "check")], "without an exercise"),
        ([HEAD, cell("code", "x = check.sse(A)", "check")], "one call"),
        ([HEAD, cell("code", "check.sse(A())", "check")], "names and texts"),
        ([cell("markdown", "## B", "exercise:01.x", "core"), cell("code", "check.sse(A)", "check")], "none of the tags"),
        ([cell("markdown", "B", "exercise:01.x", "build"), cell("code", "check.sse(A)", "check")], "no heading"),
        ([cell("markdown", "## B", "exercise:1x", "build"), cell("code", "check.sse(A)", "check")], "not a key"),
        (
            [HEAD, cell("code", "guess = 1"), cell("code", "guess = 2"), cell("code", "check.sse(A)", "check")],
            "guess set in",
        ),
    ],
)
def test_the_lint_says_what_is_not_in_the_format(cells: list[dict[str, Any]], why: str) -> None:
    assert why in "\n".join(exercises.faults(made(*cells), "01_x"))


def test_building_writes_only_what_differs_and_names_strays(tmp_path: Path) -> None:
    folders = exercises.Folders(tmp_path / "solutions", tmp_path / "exercises", tmp_path / "exercises.json")
    (tmp_path / "solutions").mkdir()
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises/99_stray.ipynb").write_text("{}", encoding="utf-8")
    source = cell("code", "class A:\n    ### BEGIN SOLUTION\n    x = 1\n    ### END SOLUTION")
    notebook = made(HEAD, source, cell("code", "check.sse(A)", "check"))
    (tmp_path / "solutions/01_x.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    said = exercises.build(folders)
    assert any("99_stray" in line for line in said)
    assert (tmp_path / "exercises/01_x.ipynb").is_file()
    (tmp_path / "exercises/99_stray.ipynb").unlink()
    assert exercises.build(folders, write=False) == []
