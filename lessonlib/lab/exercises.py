"""Exercise notebooks are made from solution notebooks. This file knows the format, and makes the one from the other.

    python -m lessonlib.lab.exercises build        solutions/NN_*.ipynb -> exercises/NN_*.ipynb and the list of exercises
    python -m lessonlib.lab.exercises check        the same, only compared: exit code 1 and what differs

The format of a solution notebook, for whoever writes one
---------------------------------------------------------

It is an ordinary notebook that runs from top to bottom, with stored outputs (`python -m lessonlib.lab.author run`).

1. The first cell is Markdown: one H1 (`# Exercises 01 · Server-sent events`), then what is core, what is further, and
minutes.
   The second is code: imports, among them `from lessonlib.lab import breaks, check`.

2. An exercise is a run of cells. It begins with a Markdown cell with the tags

       exercise:01.parser      its key: the lesson, a point, a short name; the same key that its check or its data has
       build                   or: predict, break, write-test
       core                    or: further

   and one H2. It says what is asked, with every name and signature that the check will use, and nothing of the answer.

3. The learner's cell is code with one or more regions between nbgrader's own markers, each on a line of its own:

       class MyParser:
           def feed(self, chunk):
               ### BEGIN SOLUTION
               #: return []                      # what the exercise shows instead; may be several lines
               ...the solution...
               ### END SOLUTION

   Without a line `#:` the exercise shows `raise NotImplementedError  # your code here`. For a prediction the line is
   `#: guess_05 = None`, so that Run All passes. Everything outside the regions goes into the exercise as it stands.

4. The check is a code cell with the tag `check`, whose last line is one call with names as arguments:

       check.sse(MyParser)                      a build-it check, one file each in lessonlib/lab/checks/
       check.cells("01.fields", answer_fields)  a table, a match, a sort: its data is lessonlib/data/exercises/NN.json
       check.order("06.order", answer_order)    a sequence, data in the same place
       breaks.run("store-only-when-true", guess_store)
       breaks.write_test("tool-error-ends-the-loop", test_tool_error)

   The names are what a grader looks for in the learner's notebook, at the place of this cell. No two exercises of a notebook
   may use one name (`guess_store`, not `guess`), or a grader that runs all cells first would take the later one for both.

5. Plain cells in between (a capture to look at, an experiment) stay. What only a solution should show has the tag
`solution`;
   such cells are left out of the exercise. Explanations of a solution belong there.

What the lint demands is in `faults`. What must be true of every exercise is tested for all notebooks at once
(tests/lab_exercises/test_notebooks.py): unsolved it fails its check for the right reason, solved it passes, and a blank, a
constant and a plausible wrong answer are refused. A new notebook needs no test code.

What this file does not do: it runs no cell (author.py does) and judges no answer (checks, grading.py).
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import json
import marshal
import re
import sys
import types
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lessonlib.lab import author

BEGIN, END, STUB = "### BEGIN SOLUTION", "### END SOLUTION", "#:"
NOT_WRITTEN = "raise NotImplementedError  # your code here"
KINDS = ("build", "predict", "break", "write-test")
LEVELS = ("core", "further")
CHECK, ONLY_SOLUTION = "check", "solution"

REGISTRY = Path(__file__).resolve().parents[1] / "data" / "exercises" / "exercises.json"
"""The list of all exercises, made by `build`; the package reads it, so that `lesson` needs no notebook to know them."""


class FormatError(Exception):
    """A solution notebook that is not in the format; the message names the notebook and the cell."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise. key: "01.parser". title: its heading. call: what its check calls ("check.sse"). about: the break's
    name or the data's key, "" for a build-it check. answer: the name that the learner's object has."""

    key: str
    lesson: str
    title: str
    kind: str
    core: bool
    notebook: str
    call: str
    about: str
    answer: str


# ---------------------------------------------------------------- cells


def text_of(cell: Any) -> str:
    """The source of a cell, however it is stored."""
    source = cell["source"]
    return "".join(source) if isinstance(source, list) else str(source)


def tags_of(cell: Any) -> list[str]:
    """The tags of a cell."""
    return list(cell.get("metadata", {}).get("tags", []))


def _key_of(cell: Any) -> str | None:
    return next((tag.removeprefix("exercise:") for tag in tags_of(cell) if tag.startswith("exercise:")), None)


# ---------------------------------------------------------------- solution -> exercise


def without_solution(source: str, place: str = "") -> str:
    """The source of a cell as the exercise shows it. Raises FormatError where a marker has no partner."""
    kept: list[str] = []
    region: list[str] | None = None
    indent = ""
    for line in source.split("\n"):
        mark = line.strip()
        if mark == BEGIN:
            if region is not None:
                raise FormatError(f"{place}: a solution begins inside a solution")
            region, indent = [], line[: len(line) - len(line.lstrip())]
        elif mark == END:
            if region is None:
                raise FormatError(f"{place}: a solution ends that never began")
            kept += _stub(region, indent)
            region = None
        elif region is None:
            kept.append(line)
        else:
            region.append(line)
    if region is not None:
        raise FormatError(f"{place}: a solution begins and never ends")
    return "\n".join(kept)


def _stub(region: Iterable[str], indent: str) -> list[str]:
    shown = [line.strip().removeprefix(STUB) for line in region if line.strip().startswith(STUB)]
    return [f"{indent}{line.removeprefix(' ')}".rstrip() for line in shown] or [f"{indent}{NOT_WRITTEN}"]


def solution_text(source: str) -> str:
    """The cell as a solution reads it: without markers and stub lines."""
    lines = (line for line in source.split("\n") if line.strip() not in (BEGIN, END))
    return "\n".join(line for line in lines if not line.strip().startswith(STUB))


def make(notebook: Any, place: str = "") -> Any:
    """The exercise notebook of a solution notebook: regions emptied, outputs and counts gone, solution cells left out."""
    cells = []
    for cell in notebook["cells"]:
        if ONLY_SOLUTION in tags_of(cell):
            continue
        made = {**cell, "metadata": dict(cell["metadata"])}
        if cell["cell_type"] == "code":
            made |= {"source": without_solution(text_of(cell), f"{place} {cell.get('id')}"), "outputs": []}
            made["execution_count"] = None
        cells.append(made)
    return author.tidy({**notebook, "cells": cells})


def text(notebook: Any) -> str:
    """A notebook as the text of its file, in the form in which Jupyter writes it."""
    cells = [{**cell, "source": text_of(cell).splitlines(keepends=True)} for cell in notebook["cells"]]
    return json.dumps({**notebook, "cells": cells}, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


# ---------------------------------------------------------------- the list of exercises


def exercises_in(notebook: Any, name: str) -> list[Exercise]:
    """The exercises of a solution notebook, in order."""
    found: list[Exercise] = []
    head: Any = None
    for cell in notebook["cells"]:
        if _key_of(cell) is not None:
            head = cell
        if CHECK in tags_of(cell):
            if head is None:
                raise FormatError(f"{name} {cell.get('id')}: a check without an exercise before it")
            found.append(_exercise(head, cell, name))
            head = None
    return found


def _exercise(head: Any, check: Any, name: str) -> Exercise:
    key, tags = _key_of(head) or "", tags_of(head)
    function, arguments = _call_in(text_of(check), f"{name} {check.get('id')}")
    about = next((value for value in arguments if not value.isidentifier() or value.startswith("'")), "")
    answers = [value for value in arguments if value.isidentifier()]
    title = re.search(r"^## (.+)$", text_of(head), re.MULTILINE)
    kind = next((tag for tag in tags if tag in KINDS), "")
    return Exercise(
        key=key,
        lesson=key.partition(".")[0],
        title=title.group(1).strip() if title else "",
        kind=kind,
        core="core" in tags,
        notebook=name,
        call=function,
        about=about.strip("'"),
        answer=" ".join(answers),
    )


def _call_in(source: str, place: str) -> tuple[str, list[str]]:
    """The function that the last line of a check calls, and its arguments: names, and texts in quotes."""
    try:
        last = ast.parse(source).body[-1]
    except (SyntaxError, IndexError) as error:
        raise FormatError(f"{place}: a check must be Python ({error})") from error
    call = last.value if isinstance(last, ast.Expr) else None
    if not isinstance(call, ast.Call) or call.keywords:
        raise FormatError(f"{place}: the last line of a check is one call, such as check.sse(MyParser)")
    if not all(isinstance(argument, (ast.Name, ast.Constant)) for argument in call.args):
        raise FormatError(f"{place}: the arguments of a check are names and texts, nothing else")
    return ast.unparse(call.func), [ast.unparse(argument) for argument in call.args]


def registry() -> list[Exercise]:
    """All exercises, as the package knows them."""
    if not REGISTRY.is_file():
        return []
    return [Exercise(**entry) for entry in json.loads(REGISTRY.read_text(encoding="utf-8"))["exercises"]]


# ---------------------------------------------------------------- lint


def faults(notebook: Any, name: str) -> list[str]:
    """What is not in the format, in words; an empty list if all is well."""
    try:
        found = exercises_in(notebook, name)
        make(notebook, name)
    except FormatError as error:
        return [str(error)]
    heads = [cell for cell in notebook["cells"] if _key_of(cell) is not None]
    problems = [f"{name}: exercise {_key_of(cell)} has no check" for cell in heads if _key_of(cell) not in _keys(found)]
    for exercise in found:
        problems += [f"{name}: {exercise.key} {problem}" for problem in _problems(exercise, name)]
    problems += [f"{name}: {problem}" for problem in reused_names(_code_cells(notebook))]
    return problems


def _keys(found: Iterable[Exercise]) -> set[str]:
    return {exercise.key for exercise in found}


def _problems(exercise: Exercise, name: str) -> list[str]:
    wrong = []
    if not re.fullmatch(r"\d\d\.[a-z0-9_-]+", exercise.key) or not name.startswith(exercise.lesson):
        wrong.append("is not a key such as 01.parser in a notebook of that lesson")
    if not exercise.kind:
        wrong.append(f"has none of the tags {', '.join(KINDS)}")
    if not exercise.title:
        wrong.append("has no heading of the second level")
    if not exercise.answer:
        wrong.append("has a check without a name of the learner's")
    return wrong


def _code_cells(notebook: Any) -> list[dict[str, str]]:
    return [
        {"id": str(cell.get("id")), "source": text_of(cell)}
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and CHECK not in tags_of(cell)
    ]


def reused_names(cells: Iterable[dict[str, str]]) -> list[str]:
    """The names that are set by more than one cell. In a notebook a check runs at its place; whoever runs all cells first
    and the checks afterwards would judge the last value for all of them."""
    set_in: dict[str, list[str]] = {}
    for cell in cells:
        for name in sorted(_names_set(cell.get("source", ""))):
            set_in.setdefault(name, []).append(cell["id"])
    return [f"{name} set in {' and '.join(ids)}" for name, ids in set_in.items() if len(ids) > 1]


def _names_set(source: str) -> set[str]:
    """The names that a cell sets at its top level and does not keep private (`_`)."""
    try:
        tree = ast.parse(solution_text(source))
    except SyntaxError:  # a cell with a magic
        return set()
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}
    return {name for name in names if not name.startswith("_")}


# ---------------------------------------------------------------- what goes to learners


def secrets(notebook: Any) -> list[str]:
    """The lines of a solution notebook that an exercise must not hold: those inside regions and of solution cells, as far as
    they are long enough to mean something and are not said in the open as well."""
    hidden: list[str] = []
    said: list[str] = []
    for cell in notebook["cells"]:
        for line, is_hidden in _marked_lines(cell):
            (hidden if is_hidden else said).append(line.strip().removeprefix(STUB).strip())
    text = "\n".join(said)
    return [line for line in dict.fromkeys(hidden) if len(line) >= SHORTEST_SECRET and line not in text]


SHORTEST_SECRET = 24


def _marked_lines(cell: Any) -> Iterator[tuple[str, bool]]:
    """Each line of a cell, and whether it is hidden from learners. Stub lines and markers are not."""
    within = False
    for line in text_of(cell).split("\n"):
        mark = line.strip()
        if mark in (BEGIN, END):
            within = mark == BEGIN
        else:
            yield line, ONLY_SOLUTION in tags_of(cell) or (within and not mark.startswith(STUB))


_BLOB = re.compile(rb"[A-Za-z0-9+/_-]{32,}={0,2}")


def leaks(release: bytes, hidden: Iterable[str]) -> list[str]:
    """The secrets that stand in a release: in plain, behind base64 (also compressed), or as marshalled code."""
    found = []
    layers = [release, *_unpacked(release)]
    for secret in hidden:
        needles = (secret.encode("utf-8"), json.dumps(secret)[1:-1].encode("utf-8"), secret.encode("utf-8").hex().encode())
        if any(needle in layer for needle in needles for layer in layers):
            found.append(secret)
    return found + [f"marshalled code ({len(layer)} bytes)" for layer in layers[1:] if _is_code(layer)]


def _unpacked(release: bytes) -> Iterator[bytes]:
    """What is behind each run of base64 in the release, and behind its compression."""
    for blob in _BLOB.findall(release):
        for alphabet in (None, b"-_"):
            try:
                data = base64.b64decode(blob + b"=" * (-len(blob) % 4), alphabet)
            except ValueError:
                continue
            yield data
            with contextlib.suppress(zlib.error):
                yield zlib.decompress(data)


def _is_code(data: bytes) -> bool:
    with contextlib.suppress(ValueError, TypeError, EOFError):
        return isinstance(marshal.loads(data), types.CodeType)
    return False


# ---------------------------------------------------------------- building


@dataclass(frozen=True, slots=True)
class Folders:
    """Where things are in the repository."""

    solutions: Path = Path("solutions")
    exercises: Path = Path("exercises")
    registry: Path = REGISTRY


def build(folders: Folders = Folders(), *, write: bool = True) -> list[str]:
    """Makes all exercise notebooks and the list. What differed from what is there, in words; `write=False` only says so."""
    different: list[str] = []
    found: list[Exercise] = []
    wanted: dict[Path, str] = {}
    for path in sorted(folders.solutions.glob("[0-9][0-9]_*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        problems = faults(notebook, path.stem)
        if problems:
            raise FormatError("\n".join(problems))
        wanted[folders.exercises / path.name] = text(make(notebook, path.stem))
        found += exercises_in(notebook, path.stem)
    wanted[folders.registry] = json.dumps({"exercises": [asdict(one) for one in found]}, ensure_ascii=False, indent=1) + "\n"
    for stray in set(folders.exercises.glob("*.ipynb")) - wanted.keys():
        different.append(f"{stray}: no solution makes it")
    for path, content in wanted.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            different.append(f"{path}: not what the solutions make")
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8", newline="\n")
    return different


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: all is well (or was written). 1: something is not in the format, or differs."""
    parser = argparse.ArgumentParser(prog="python -m lessonlib.lab.exercises", description="Make the exercise notebooks.")
    parser.add_argument("what", choices=("build", "check"), help="write, or compare")
    options = parser.parse_args(arguments)
    try:
        different = build(write=options.what == "build")
    except FormatError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(different) or "all exercises are what the solutions make")
    return 1 if different and options.what == "check" else 0


if __name__ == "__main__":
    sys.exit(main())
