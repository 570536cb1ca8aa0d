"""Every notebook of the course against the lint (lessonlib/lab/lint.py), and what only holds over all of them together.

That the stored outputs are what the cells give is nbval's to say: `make notebooks`.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lessonlib import capabilities
from lessonlib.lab import lint
from lessonlib.lab.predict import course, predictions

ROOT = Path(__file__).parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXERCISES = sorted(file for name in ("exercises", "solutions") for file in (ROOT / name).glob("*.ipynb"))


@cache
def notebook(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# ---------------------------------------------------------------- one notebook


@pytest.mark.parametrize("path", LESSONS, ids=named)
def test_a_lesson_keeps_to_the_rules(path: Path) -> None:
    assert [str(fault) for fault in lint.lint(notebook(path), path, lint.course_checks())] == []


@pytest.mark.parametrize("path", EXERCISES, ids=named)
def test_an_exercise_keeps_to_the_rules_that_hold_for_it(path: Path) -> None:
    assert [str(fault) for fault in lint.lint(notebook(path), path, lint.EVERYWHERE)] == []


@pytest.mark.parametrize("path", LESSONS, ids=named)
def test_a_lesson_is_small_enough_to_open_on_any_machine(path: Path) -> None:
    assert path.stat().st_size <= lint.BYTES_OF_A_NOTEBOOK


@pytest.mark.parametrize("path", LESSONS, ids=named)
def test_the_library_that_a_lesson_shows_is_the_library_that_there_is(path: Path) -> None:
    """nbval says so as well, a minute later: whoever edits a method that a lesson shows should hear it from the tests."""
    names: dict[str, Any] = {}
    for name, cell in lint.cells(notebook(path), "code"):
        tree = ast.parse(lint.source(cell))
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), name, "exec"), names)
        shown = [
            node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "inspect.getsource"
        ]
        for call in shown:
            lines = inspect.getsource(eval(ast.unparse(call.args[0]), names)).split("\n")
            stored = "".join(lint.text(output.get("text", "")) for output in cell["outputs"])
            there = [line.strip() for line in lines if line.strip()]
            told = [line.strip() for line in stored.split("\n") if line.strip()]
            assert told, f"{name} shows nothing"
            places = range(len(there) - len(told) + 1)  # a lesson may show a part of a method, but a part in one piece
            assert any(there[at : at + len(told)] == told for at in places), f"{name}: run the author's tool on {path.name}"


# ---------------------------------------------------------------- all of them


def test_there_are_lessons() -> None:
    assert LESSONS


def test_lessons_are_numbered_and_named_alike() -> None:
    names = [path.stem for path in LESSONS]
    assert [name for name in names if not re.fullmatch(r"\d\d_[a-z0-9]+(_[a-z0-9]+)*", name)] == []
    numbers = [name[:2] for name in names]
    assert sorted(set(numbers)) == numbers


def test_every_prediction_in_the_data_is_sound() -> None:
    """Also those that no notebook uses yet."""
    keys = [f"{lesson}.{key}" for lesson in lint.lessons_with_data() for key in predictions(lesson)]
    assert keys
    assert [fault for key in keys for fault in lint.prediction_faults(key)] == []


def test_every_prediction_of_a_lesson_is_asked_in_it() -> None:
    """Data that no lesson uses would be kept up for nothing."""
    unused = []
    for path in LESSONS:
        code = "\n".join(lint.source(cell) for _, cell in lint.cells(notebook(path), "code"))
        unused += [f"{path.stem[:2]}.{key}" for key in predictions(path.stem[:2]) if f"{path.stem[:2]}.{key}" not in code]
    assert unused == []


def test_a_term_is_explained_in_one_lesson_only() -> None:
    terms = [term for lesson in lint.lessons_with_data() for term in course(lesson).get("glossary", {})]
    assert sorted({term for term in terms if terms.count(term) > 1}) == []


ORDINARY = {
    "arguments", "attempt", "binding", "block", "burst", "choice", "chunk", "event", "fallback", "field", "item", "loop",
    "part", "port", "read", "repair", "request", "response", "state", "status", "step", "strict", "token", "window",
}  # fmt: skip
"""Terms that are everyday words as well; where they mean more than that, only a reader can say."""


@pytest.mark.parametrize("path", LESSONS, ids=named)
def test_a_term_is_not_used_before_its_lesson(path: Path) -> None:
    number = path.stem[:2]
    later = {term for lesson in lint.lessons_with_data() if lesson > number for term in course(lesson).get("glossary", {})}
    _, *texts = lint.cells(notebook(path), "markdown")  # the card may say what comes
    used = [
        (name, term)
        for name, cell in texts
        for term in sorted(later - ORDINARY)
        if re.search(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", lint.prose(lint.source(cell)), re.IGNORECASE)
    ]
    assert used == []


def test_the_names_of_models_are_dated() -> None:
    data = json.loads((ROOT / "lessonlib/data/models.json").read_text(encoding="utf-8"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", data["checked"])
    assert capabilities.names()


# ---------------------------------------------------------------- spelling

KNOWN_WORDS = "wil,fo,te"
"""Words that codespell takes for misspelt, in lower case, joined by commas."""


def written() -> list[tuple[str, str]]:
    """All prose of the course, line by line, with its place: texts of notebooks and the course's data."""
    lines: list[tuple[str, str]] = []
    for path in [*LESSONS, *EXERCISES]:
        for name, cell in lint.cells(notebook(path), "markdown"):
            lines += [(f"{named(path)} {name}", line) for line in lint.prose(lint.source(cell)).splitlines()]
    return lines + data_prose()


def data_prose() -> list[tuple[str, str]]:
    """The words of the course's data that are no notebook's: feedback, hints, explanations, quiz."""
    lines: list[tuple[str, str]] = []
    for path in sorted((ROOT / "lessonlib" / "data").rglob("*")):
        if path.parent.name in ("course", "exercises") and path.suffix == ".json":
            lines += [(path.name, text) for text in strings(json.loads(path.read_text(encoding="utf-8")))]
        elif path.suffix == ".toml" and path.parent.name in ("data", "breaks", "checks"):
            lines += [(path.name, text) for text in strings(tomllib.loads(path.read_text(encoding="utf-8")))]
    return lines


def test_feedback_hints_and_questions_keep_to_the_courses_words() -> None:
    assert [(place, phrase) for place, text in data_prose() for phrase in lint.banned_in(text)] == []


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in strings(item)]


def test_the_prose_is_spelt_as_a_dictionary_of_common_mistakes_wants_it() -> None:
    lines = [(place, " ".join(line.split())) for place, line in written()]
    run = subprocess.run(
        [sys.executable, "-m", "codespell_lib", "--ignore-words-list", KNOWN_WORDS, "-"],
        input="\n".join(line for _, line in lines), capture_output=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    found = re.findall(r"^(\d+): .*\n\s*(\S+ ==> .*)$", run.stdout, re.MULTILINE)
    assert run.returncode == 0 or found, f"codespell did not run: {run.stderr}{run.stdout}"
    assert [f"{lines[int(number) - 1][0]}: {words}" for number, words in found] == []


def test_the_spelling_test_finds_a_misspelt_word() -> None:
    run = subprocess.run([sys.executable, "-m", "codespell_lib", "-"], input="the recieved bytes", capture_output=True,
                         encoding="utf-8", check=False, timeout=60)  # fmt: skip
    assert "recieved ==> received" in run.stdout
