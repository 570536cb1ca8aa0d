"""Grading for others: a learner's notebook in a process of its own, judged from outside, by plain data.

    grade("exercises/01_server_sent_events.ipynb")          -> a dict, ready for JSON
    grade_all(paths, map=executor.map)                      any executor: a process pool, a Dask client, or plain map

Two processes. One runs the learner's cells and uses the learner's objects (`student.py`); it gets inputs and gives back
plain data. The other, this one, knows what is right, and never runs a line of the learner's. So a `check` that always
says yes, an `__eq__` that does, a changed `len`, or leaving early with code 0 are worth nothing: what is judged is what
came back, by exact type, and an answer that did not come is wrong. Part of every check's inputs is drawn by chance, so no
table of answers helps.

Each check is judged at its place: the cells before it have run, those after it have not. A name that a later exercise
uses again spoils nothing.

What this cannot prove: the library itself is on the learner's disk, so `MyParser = SSEParser` passes; reading the code is
still the teacher's work. Memory, processor time and the size of files are limited where the system can (POSIX), the
environment holds no key, and home is a folder that goes with the process (`confined.py`); the network is switched off by
a patch. A guard against accidents and short cuts: a file's full path, your disk and your other processes are still there.
Whoever expects attacks runs the grader in a container.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lessonlib.lab import breaks, checks, exercises, scratch
from lessonlib.lab.checks.core import NOT_WRITTEN, Check, Seen
from lessonlib.lab.checks.predicted import cells_check, order_check
from lessonlib.lab.exercises import Exercise, tags_of, text_of
from lessonlib.lab.grading.process import Ended, Limits, Student

FORMAT = 1
"""The version of the report."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What became of one exercise. belief: the misunderstanding that was found. message: what the learner would have read.
    trouble: why it could not be judged at all."""

    key: str
    title: str
    kind: str
    core: bool
    passed: bool
    belief: str | None = None
    message: str = ""
    trouble: str = ""


def first_hint(key: str) -> int:
    """The first hint of every exercise: a report must not depend on what a learner has seen."""
    return 1


def grade(
    path: str | Path,
    *,
    seed: int | None = None,
    limits: Limits | None = None,
    keys: Collection[str] | None = None,
    hint: Callable[[str], int] = first_hint,
) -> dict[str, Any]:
    """The report on one notebook: {"format", "notebook", "lesson", "passed", "of", "exercises": [...], "trouble"}. Never
    raises for what is in the notebook. keys: only these exercises. hint: which of its hints an exercise's refusal shows, 0
    for none."""
    path = Path(path)
    report: dict[str, Any] = {"format": FORMAT, "notebook": path.name, "lesson": path.name[:2]}
    known = [each for each in exercises.registry() if each.notebook == path.stem] or _by_lesson(path.name[:2])
    wanted = [each for each in known if keys is None or each.key in keys]
    try:
        cells = _code_cells(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        marks = [_mark(each, False, trouble="the notebook cannot be read") for each in wanted]
        return _report(report, marks, f"{path.name} is no notebook that can be read: {error}")
    marks = list(Grading(cells, wanted, seed, limits or Limits(), hint).marks())
    return _report(report, marks, "" if wanted else f"no exercises are known for {path.name}")


def grade_all(paths: Iterable[str | Path], map: Callable[..., Iterable[dict[str, Any]]] = map) -> Iterator[dict[str, Any]]:
    """Reports on many notebooks, in order. map: of any executor; each notebook is graded in processes of its own anyway."""
    yield from map(grade, list(paths))


def _by_lesson(number: str) -> list[Exercise]:
    """A notebook that was renamed is found by its number."""
    return [each for each in exercises.registry() if each.lesson == number]


def _report(report: dict[str, Any], marks: list[Mark], trouble: str) -> dict[str, Any]:
    passed = sum(mark.passed for mark in marks)
    return {**report, "passed": passed, "of": len(marks), "exercises": [asdict(mark) for mark in marks], "trouble": trouble}


def _mark(exercise: Exercise, passed: bool, belief: str | None = None, message: str = "", trouble: str = "") -> Mark:
    return Mark(exercise.key, exercise.title, exercise.kind, exercise.core, passed, belief, message, trouble)


# ---------------------------------------------------------------- the learner's cells


def _code_cells(notebook: Any) -> list[str]:
    return [text_of(cell) for cell in notebook["cells"] if cell["cell_type"] == "code" and "solution" not in tags_of(cell)]


ON_DISK = "Next: change it, save the notebook, run `lesson check {exercise}`. `lesson hint {exercise}` shows the next hint."
"""What to do where the saved notebook was judged, not an object in a running one."""

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python says to a source that it cannot read: a null byte, half a character or a thousand brackets among them."""

JUDGES = ("check", "breaks")
"""Calls of these at the top level of a cell are ours to make; the rest of the cell is the learner's."""


def without_judges(source: str) -> str:
    """The cell without the lines that only ask for a judgement; as it is, if it is no plain Python (a magic)."""
    try:
        tree = ast.parse(source)
    except UNREADABLE:
        return source
    if not any(map(_asks, tree.body)):
        return source  # as it was typed: its lines are those that the learner sees
    tree.body = [node for node in tree.body if not _asks(node)]
    return ast.unparse(tree)


def _asks(node: ast.stmt) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    function = node.value.func
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in JUDGES


def place_of(cells: list[str], exercise: Exercise) -> int:
    """How many cells have run when this exercise is judged: up to the one that asks for it, or all if none does."""
    for number, source in enumerate(cells):
        for node in _statements(source):
            if _asks(node) and _is_about(node.value, exercise):  # type: ignore[attr-defined]
                return number
    return len(cells)


def _statements(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except UNREADABLE:
        return []


def _is_about(call: ast.Call, exercise: Exercise) -> bool:
    words = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    names = [argument.id for argument in call.args if isinstance(argument, ast.Name)]
    return ast.unparse(call.func) == exercise.call and (
        exercise.about in words if exercise.about else exercise.answer in names
    )


def definition_of(cells: list[str], name: str) -> str:
    """The source of the last function, or class of tests, of that name; "" if there is none."""
    found = ""
    for source in cells:
        for node in _statements(source):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
                found = ast.unparse(node)
    return found


# ---------------------------------------------------------------- one notebook


class Grading:
    """One notebook being graded: the cells run one after the other, and each exercise is judged at its place."""

    def __init__(
        self,
        cells: list[str],
        wanted: list[Exercise],
        seed: int | None,
        limits: Limits,
        hint: Callable[[str], int] = first_hint,
    ) -> None:
        self.hint = hint
        self.cells = cells
        self.wanted = wanted
        self.seed = random.SystemRandom().randrange(2**32) if seed is None else seed
        self.limits = limits

    def marks(self) -> Iterator[Mark]:
        """The marks, in the order of the exercises."""
        found: dict[str, Mark] = {}
        places = {exercise.key: place_of(self.cells, exercise) for exercise in self.wanted}
        with Student(self.limits) as student:
            for number in range(max(places.values(), default=-1) + 1):  # nothing that comes later is of any use
                for exercise in self.wanted:
                    if places[exercise.key] == number:
                        found[exercise.key] = self.judge(student, exercise, number)
                if number < len(self.cells):
                    student.run(without_judges(self.cells[number]))
        for exercise in self.wanted:
            yield found[exercise.key]

    def judge(self, student: Student, exercise: Exercise, number: int) -> Mark:
        """One exercise, where so many of the cells have run."""
        try:
            match exercise.call:
                case "breaks.run":
                    return self._break(student, exercise)
                case "breaks.write_test":
                    return self._test(exercise, number)
                case _:
                    return self._check(student, exercise)
        except Ended as error:
            return _mark(exercise, False, trouble=str(error))

    def _check(self, student: Student, exercise: Exercise) -> Mark:
        check = check_of(exercise)
        for probe in check.questions(self.seed):
            seen = student.observe(exercise, probe.given)
            belief = probe.judge(seen)
            if belief is not None:
                advice = ON_DISK.format(exercise=exercise.key)
                number = 0 if belief == NOT_WRITTEN else self.hint(exercise.key)
                result = replace(check.refusal(probe, seen, belief, hint=number), advice=advice)
                return _mark(exercise, False, belief, result.message)
        return _mark(exercise, True)

    def _break(self, student: Student, exercise: Exercise) -> Mark:
        broken = breaks.get(exercise.about)
        seen = student.value(exercise.answer)
        guess = seen.value if not seen.raised else None
        words = guess if isinstance(guess, (list, str)) else None
        predicted, unknown = breaks.meant(broken, words) if words is not None else (set(), [])
        if not predicted or unknown:
            return _mark(exercise, False, "not_written", f"{exercise.answer} is no prediction: {seen.shown()}")
        outcome = breaks.Outcome(broken, frozenset(predicted), tuple(sorted(broken.fails)), scratch.Run())
        return _mark(exercise, outcome.right, None if outcome.right else "wrong_prediction", repr(outcome))

    def _test(self, exercise: Exercise, number: int) -> Mark:
        source = definition_of(self.cells[: number + 1], exercise.answer)
        if not source:
            return _mark(exercise, False, "not_written", f"there is no function {exercise.answer}")
        verdict = breaks.judge_test(breaks.get(exercise.about), source)
        return _mark(exercise, verdict.accepted, verdict.belief, repr(verdict))


def check_of(exercise: Exercise) -> Check:
    """The check that an exercise's cell calls."""
    match exercise.call:
        case "check.cells":
            return cells_check(exercise.about)
        case "check.order":
            return order_check(exercise.about)
        case call:
            return checks.get(call.removeprefix("check."))


# ---------------------------------------------------------------- plain values


def score(source: str, expected: Mapping[str, Any], limits: Limits | None = None) -> int:
    """1 if the source, run in a process of its own, leaves exactly these plain values under these names; else 0."""
    from lessonlib.lab.checks.core import same

    with Student(limits or Limits()) as student:
        try:
            student.run(source)
            found = {name: student.value(name) for name in expected}
        except Ended:
            return 0
    return int(all(not seen.raised and same(expected[name], seen.value) for name, seen in found.items()))


__all__ = ["Ended", "Grading", "Limits", "Mark", "Seen", "Student", "check_of", "grade", "grade_all", "score"]
