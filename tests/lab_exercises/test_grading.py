"""Grading in a process of its own: what other courses' graders fell for, limits, and reports."""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lessonlib.lab import exercises, grading
from lessonlib.lab.checks.core import same
from lessonlib.lab.confined import LARGEST_FILE
from lessonlib.lab.grading import Ended, Limits, Student, grade, grade_all, score
from lessonlib.lab.grading.codec import decode, encode

ROOT = Path(__file__).parents[2]
SHORT = Limits(seconds=20, answer=3)


def notebook(folder: Path, *cells: str, name: str = "01_server_sent_events.ipynb") -> Path:
    entries = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells]
    path = folder / name
    path.write_text(json.dumps({"cells": entries, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    return path


def marks(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["key"]: entry for entry in report["exercises"]}


# ---------------------------------------------------------------- what a learner's process may try


ANSWER = {"answer": 42}


@pytest.mark.parametrize(
    ("source", "points"),
    [
        ("check = lambda *a, **k: True", 0),
        ("class A:\n    __eq__ = lambda s, o: True\nanswer = A()", 0),
        ("import os; os._exit(0)", 0),
        ("import sys; sys.exit(0)", 0),
        ("import builtins; builtins.len = lambda x: 3\nanswer = []", 0),
        ("answer = 42", 1),
        ("answer = 42.0", 0),
        ("answer = True", 0),
        ("class Int(int): pass\nanswer = Int(42)", 0),
        ("print('{\"value\": 42}')", 0),
        ("import os; os.write(1, b'{\"value\": 42}\\n')", 0),
        ("import sys; sys.stdout.write('x'); answer = 42", 1),
        ("raise RuntimeError('first')\nanswer = 42", 0),
    ],
)
def test_only_the_right_plain_value_scores(source: str, points: int) -> None:
    """PrairieLearn PR 5184, inducer/relate PR 1283: checks in one process can be replaced, overheard and left."""
    assert score(source, ANSWER, SHORT) == points


def test_an_early_exit_scores_nothing_even_behind_a_right_answer() -> None:
    assert score("answer = 42\nimport os; os._exit(0)", ANSWER, SHORT) == 0


def test_a_loop_is_given_up() -> None:
    began = time.monotonic()
    assert score("while True: pass", ANSWER, Limits(seconds=3, answer=2)) == 0
    assert time.monotonic() - began < 15


@pytest.mark.skipif(os.name != "posix" or sys.platform == "darwin", reason="address space is limited on Linux only")
def test_memory_is_limited() -> None:
    limits = Limits(seconds=20, answer=5, memory=700 * 1024**2)
    assert (
        score("answer = 42\nblock = bytearray(2 * 1024**3)", ANSWER, limits) == 1
    )  # MemoryError ends the cell, not the process
    with Student(limits) as student:
        assert student.run("block = bytearray(2 * 1024**3)") == "MemoryError"


def test_there_is_no_network_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-invented")
    with Student(SHORT) as student:
        assert student.run("import socket; socket.create_connection(('127.0.0.1', 9))") == "OSError"
        student.run("import os; found = os.environ.get('OPENAI_API_KEY', '')")
        assert student.value("found").value == ""


def test_nothing_of_the_environment_but_what_python_needs_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCHOOL_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "LESSON_PROGRESS"):
        monkeypatch.setenv(name, "invented")
    with Student(SHORT) as student:
        student.run("import os; found = sorted(name for name, value in os.environ.items() if 'invented' in value)")
        assert student.value("found").value == []


def test_home_and_temporary_files_are_in_a_folder_that_goes() -> None:
    with Student(SHORT) as student:
        student.run("import pathlib, tempfile; (pathlib.Path.home() / 'mine').touch(); made = tempfile.mkdtemp()")
        student.run("home = str(pathlib.Path.home())")
        home, made = Path(student.value("home").value), Path(student.value("made").value)
        assert (home / "mine").exists()
        assert made.is_relative_to(home)
    assert not home.exists()


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_what_it_writes_is_limited_too() -> None:
    with Student(SHORT) as student:
        assert (
            student.run(f"import os; os.truncate(os.open('big', os.O_CREAT | os.O_RDWR), {2 * LARGEST_FILE})") == "OSError"
        )


@pytest.mark.parametrize("source", ["-" * 100_000 + "1", "(" * 3000 + ")" * 3000, "x = 'a'\0", "x = '\ud800'"])
def test_a_source_that_python_cannot_read_harms_no_grader(source: str, tmp_path: Path) -> None:
    report = grade(notebook(tmp_path, source, "answer_fields = None"), keys=["01.fields"], limits=SHORT)
    assert [mark["belief"] for mark in report["exercises"]] == ["not_written"]


def test_a_line_that_looks_like_a_magic_is_code_where_it_must_be() -> None:
    with Student(SHORT) as student:
        student.run("answer = ('%d trains'\n          % 3)")
        assert student.value("answer").value == "3 trains"


def test_a_loop_in_one_exercise_costs_no_other(tmp_path: Path) -> None:
    loop = "class MyParser:\n    def feed(self, chunk):\n        while True: pass\n    def close(self): return []"
    cells = (loop, "check.sse(MyParser)", "answer_fields = {}", 'check.cells("01.fields", answer_fields)')
    report = grade(notebook(tmp_path, *cells), keys=["01.parser", "01.fields"])
    found = marks(report)
    assert (found["01.parser"]["belief"], found["01.fields"]["belief"]) == ("never_ends", "not_written")


@pytest.mark.parametrize("head", ["def mine():", "async def mine():", "class mine:"])
def test_a_test_may_be_a_function_or_a_class(head: str) -> None:
    assert grading.definition_of(["x = 1", f"{head}\n    pass"], "mine") == f"{head}\n    pass"


def test_last_words_write_nothing_to_a_terminal_but_letters(tmp_path: Path) -> None:
    report = grade(
        notebook(tmp_path, "import os; os.write(2, b'\\x1b[2Jgone\\n'); os._exit(1)"), keys=["01.fields"], limits=SHORT
    )
    assert "gone" in report["exercises"][0]["trouble"]
    assert report["exercises"][0]["trouble"].isprintable()


def test_what_a_learner_prints_is_no_answer() -> None:
    with Student(SHORT) as student:
        student.run("print('noise')\nn = 1")
        assert student.value("n").value == 1


def test_after_the_end_every_question_is_an_end() -> None:
    with Student(SHORT) as student:
        student.run("import os; os._exit(7)")
        for _ in range(2):
            with pytest.raises(Ended, match="exit code 7"):
                student.value("n")


def test_await_at_the_top_of_a_cell_works_and_magics_are_passed_over() -> None:
    with Student(SHORT) as student:
        assert student.run("import asyncio\nawait asyncio.sleep(0)\nn = 2\n%load_ext something\n!ls") == ""
        assert student.value("n").value == 2
        assert student.run("%%break sse.py\n-x\n+y") == ""


# ---------------------------------------------------------------- places


def test_a_check_is_judged_at_its_place_and_a_name_used_twice_is_reported() -> None:
    """ucbds-infra/otter-grader #793, #890: all cells first and the checks afterwards would fail a right answer."""
    cells = [
        {"id": "a1", "source": "n = 12"}, {"id": "k1", "check": 12},
        {"id": "a2", "source": "n = 7"}, {"id": "k2", "check": 7},
    ]  # fmt: skip
    seen = {}
    with Student(SHORT) as student:
        for cell in cells:
            if "source" in cell:
                student.run(str(cell["source"]))
            else:
                seen[cell["id"]] = same(cell["check"], student.value("n").value)
    assert seen == {"k1": True, "k2": True}
    assert exercises.reused_names([cell for cell in cells if "source" in cell]) == ["n set in a1 and a2"]


def test_a_later_cell_cannot_spoil_an_earlier_answer(tmp_path: Path) -> None:
    solved = "from lessonlib.sse import SSEParser\nclass MyParser(SSEParser): pass"
    path = notebook(tmp_path, solved, "check.sse(MyParser)", "MyParser = None")
    assert marks(grade(path))["01.parser"]["passed"]


def test_without_its_check_cell_an_answer_is_judged_at_the_end(tmp_path: Path) -> None:
    path = notebook(tmp_path, "from lessonlib.sse import SSEParser as MyParser")
    assert marks(grade(path))["01.parser"]["passed"]


def test_a_check_that_was_replaced_judges_nothing(tmp_path: Path) -> None:
    mine = "class MyParser: pass\ncheck = type('C', (), {'sse': lambda *a: True})"
    path = notebook(tmp_path, mine, "check.sse(MyParser)")
    mark = marks(grade(path))["01.parser"]
    assert (mark["passed"], mark["belief"]) == (False, "wrong_shape")


def test_a_table_of_the_known_answers_fails_at_what_chance_draws(tmp_path: Path) -> None:
    """The inputs that are always the same could be looked up in the package; those by chance cannot."""
    lookup = """
import random
from lessonlib.lab.checks.sse_parser import probes
KNOWN = {repr(p.given["reads"]): p.expected for s in range(3) for p in probes(random.Random(s)) if "reads" in p.given}
class MyParser:
    def __init__(self): self.reads = []
    def feed(self, chunk):
        self.reads.append(chunk)
        return [tuple(e) for e in KNOWN.get(repr(self.reads), [])]
    def close(self): return []
"""
    assert not marks(grade(notebook(tmp_path, lookup)))["01.parser"]["passed"]


# ---------------------------------------------------------------- reports


def test_a_report_is_plain_json(tmp_path: Path) -> None:
    report = grade(notebook(tmp_path, "x = 1"))
    assert json.loads(json.dumps(report)) == report
    assert (report["format"], report["lesson"], report["passed"], report["trouble"]) == (1, "01", 0, "")
    assert report["of"] == len([each for each in exercises.registry() if each.lesson == "01"])
    assert {entry["belief"] for entry in report["exercises"]} == {"not_written"}


def test_a_renamed_notebook_is_known_by_its_number(tmp_path: Path) -> None:
    assert grade(notebook(tmp_path, "x = 1", name="01 of Ada.ipynb"))["of"] > 0


@pytest.mark.parametrize("text", ["", "no json", "[]", "{}", '{"cells": 3}'])
def test_what_is_no_notebook_is_reported_not_raised(tmp_path: Path, text: str) -> None:
    path = tmp_path / "01_server_sent_events.ipynb"
    path.write_text(text, encoding="utf-8")
    report = grade(path)
    assert report["passed"] == 0
    assert "no notebook" in report["trouble"]


def test_a_missing_notebook_is_reported(tmp_path: Path) -> None:
    assert grade(tmp_path / "01_nothing.ipynb")["trouble"]


def test_an_early_exit_costs_what_comes_after_it(tmp_path: Path) -> None:
    path = notebook(
        tmp_path, "from lessonlib.sse import SSEParser as MyParser", "import os; os._exit(0)", "check.sse(MyParser)"
    )
    mark = marks(grade(path))["01.parser"]
    assert not mark["passed"]
    assert "exit code 0" in mark["trouble"]


def test_many_notebooks_over_any_executor(tmp_path: Path) -> None:
    paths = [notebook(tmp_path, f"x = {number}", name=f"01_{number}.ipynb") for number in range(2)]
    with ThreadPoolExecutor(2) as pool:
        reports = list(grade_all(paths, map=pool.map))
    assert [report["notebook"] for report in reports] == ["01_0.ipynb", "01_1.ipynb"]


# ---------------------------------------------------------------- what goes between the two


@pytest.mark.parametrize("value", [b"\x00\xff", {"$bytes": "x"}, {"a": [b"1", None, 1.5, True]}, {"$dict": {"$x": b"y"}}])
def test_plain_data_survives_the_journey(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_judging_lines_are_taken_out_of_a_cell_and_nothing_else() -> None:
    source = "x = check.sse\ncheck.sse(MyParser)\nbreaks.show('a')\nprint(x)"
    assert grading.without_judges(source) == "x = check.sse\nprint(x)"
