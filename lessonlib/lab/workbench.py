"""Breaks of one's own: edit a file of a copy of the library, see what notices, look at the difference, put it back.

    %load_ext lessonlib.lab.workbench
    %%break retry.py                    lines that begin with "-" are what stands there, lines with "+" what shall
    -        if not error.retryable or call.started or made >= self.max_attempts:
    +        if not error.retryable or made >= self.max_attempts:

    %%break retry.py                    or a whole function: it takes the place of the one with its name
    def _unreachable(error):
        return False

    bench = Workbench("my_breaks")      or by hand: bench.open("retry.py") puts the file there, edit it with any editor,
    bench.run()                         then run the course suite on the library with your files in it
    bench.diff(), bench.reset()

What this file does not do: it never writes to the installed package; the copies live in the folder that you name.
"""

from __future__ import annotations

import ast
import difflib
import textwrap
from pathlib import Path
from typing import Any

from lessonlib.lab import scratch
from lessonlib.lab.course_suite import behaviours
from lessonlib.lab.notice import Notice, code, folded, lines, paragraph, title
from lessonlib.lab.scratch import Run, Scratch, ScratchError

FOLDER = "my_breaks"
"""Where the edited files are, if no other folder is named."""


class Workbench:
    """Edited files of the library in a folder of the learner's. Files that are not there are as installed."""

    def __init__(self, folder: str | Path = FOLDER) -> None:
        self.folder = Path(folder)

    def open(self, file: str) -> Path:
        """Puts a file of the library ("retry.py") into the folder, ready to be edited; one that is there stays."""
        target = self._path(file)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(scratch.source(file), encoding="utf-8", newline="\n")
        return target

    def edit(self, file: str, change: str) -> None:
        """Applies a change: lines with - and +, or the source of a function that takes the place of the one with its name.
        Raises ScratchError where it does not fit."""
        path = self.open(file)
        before = path.read_text(encoding="utf-8")
        path.write_text(edited(before, change, file), encoding="utf-8", newline="\n")

    def files(self) -> list[str]:
        """The files that differ from the installed ones."""
        found = (
            sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.py"))
            if self.folder.is_dir()
            else []
        )
        return [file for file in found if scratch.is_file(file) and self._text(file) != scratch.source(file)]

    def diff(self) -> Notice:
        """What you have changed."""
        pieces = [difflib.unified_diff(scratch.source(file).splitlines(), self._text(file).splitlines(), f"lessonlib/{file}",
                                       f"{self.folder.name}/{file}", lineterm="", n=2) for file in self.files()]  # fmt: skip
        texts = ["\n".join(piece) for piece in pieces]
        return Notice(*map(code, texts)) if texts else Notice(paragraph("Nothing is changed."))

    def reset(self, file: str | None = None) -> Notice:
        """Puts one file back, or all: your copies are removed."""
        names = self.files() if file is None else [file]
        for name in names:
            self._path(name).unlink(missing_ok=True)
        return Notice(paragraph(f"Back as installed: {', '.join(names) or 'nothing was changed'}."))

    def run(self) -> Report:
        """Runs the course suite on a copy of the library with your files in it."""
        return _report({file: self._text(file) for file in self.files()})

    def alone(self, file: str, change: str) -> Report:
        """Applies a change to the installed file, puts the result into the folder, and runs the course suite with this file
        and no other of the folder. Raises ScratchError where it does not fit; then the folder is as it was."""
        path = self._path(file)
        name = path.relative_to(self.folder).as_posix()
        text = edited(scratch.source(name), change, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return _report({name: text} if text != scratch.source(name) else {})

    def _path(self, file: str) -> Path:
        name = file.replace("\\", "/").removeprefix("lessonlib/")
        scratch.source(name)  # raises ScratchError for what is no file of the library
        return self.folder / name

    def _text(self, file: str) -> str:
        return (self.folder / file).read_text(encoding="utf-8")


def _report(texts: dict[str, str]) -> Report:
    """Runs the course suite on a copy of the library in which these files have these texts."""
    with Scratch() as copy:
        for file, text in texts.items():
            copy.write(file, text)
        return Report(tuple(texts), copy.run() if texts else Run())


class Report:
    """What the course suite says to a break of one's own, as text and HTML."""

    def __init__(self, files: tuple[str, ...], run: Run) -> None:
        self.files = files
        self.run = run

    @property
    def noticed(self) -> tuple[str, ...]:
        """The behaviours that notice."""
        return self.run.behaviours

    def shown(self) -> Notice:
        """The pieces."""
        if not self.files:
            return Notice(paragraph("Nothing is changed, so nothing was run."))
        changed = paragraph(f"Changed: {', '.join(self.files)}.")
        if self.run.trouble:
            return Notice(title("There is no result"), changed, code(self.run.trouble), paragraph(AGAIN))
        if not self.noticed:
            return Notice(title("No behaviour of the course suite notices"), changed, paragraph(UNNOTICED))
        known = behaviours()
        first = self.run.failed[0]
        return Notice(
            title(f"{len(self.noticed)} of {len(known)} behaviours notice"),
            changed,
            lines(known[key].sentence for key in self.noticed),
            folded(f"The first failing assertion ({first.test})", code(first.assertion or first.error)),
        )

    def __repr__(self) -> str:
        return repr(self.shown())

    def _repr_html_(self) -> str:
        return self.shown()._repr_html_()


AGAIN = "Next: change the edit and run it again; the installed library is as it was."

UNNOTICED = (
    "Either your change changes nothing that anybody promised, or the suite has a gap here. Say in one sentence what a user "
    "would see; if you can, that sentence is the test that is missing."
)


# ---------------------------------------------------------------- applying a change


def edited(before: str, change: str, file: str = "the file") -> str:
    """The text with the change in it."""
    marked = [line for line in change.splitlines() if line.strip()]
    if marked and all(line[0] in "-+ " for line in marked) and any(line[0] in "-+" for line in marked):
        return _with_marks(before, change, file)
    return _with_function(before, change, file)


def _with_marks(before: str, change: str, file: str) -> str:
    """Lines with "-" (or with a space: context) are what stands there, lines with "+" (or a space) what shall."""
    marked = [line for line in change.splitlines() if line]
    old = [line[1:] for line in marked if line[0] in "- "]
    new = [line[1:] for line in marked if line[0] in "+ "]
    if not any(line.strip() for line in old):
        raise ScratchError('say with lines that begin with "-" or a space where the new lines belong')
    rows = before.splitlines()
    places = [place for place in range(len(rows) - len(old) + 1) if rows[place : place + len(old)] == old]
    if len(places) != 1:
        raise ScratchError(f"the lines to replace stand {len(places)} times in {file}; they must stand there exactly once")
    rows[places[0] : places[0] + len(old)] = new
    return "\n".join(rows) + "\n"


def _with_function(before: str, change: str, file: str) -> str:
    try:
        (function,) = ast.parse(textwrap.dedent(change)).body
    except (SyntaxError, ValueError):
        function = None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise ScratchError('write lines that begin with "-" and "+", or one whole function')
    found = [node for node in ast.walk(ast.parse(before)) if isinstance(node, type(function)) and node.name == function.name]
    if len(found) != 1:
        raise ScratchError(f"there are {len(found)} functions {function.name} in {file}; use lines with - and +")
    place = found[0]
    start = min([place.lineno, *(each.lineno for each in place.decorator_list)]) - 1
    rows = before.splitlines()
    new = textwrap.indent(textwrap.dedent(change).strip("\n"), " " * place.col_offset)
    return "\n".join([*rows[:start], new, *rows[place.end_lineno :]]) + "\n"


# ---------------------------------------------------------------- the cell magic


def break_cell(line: str, cell: str) -> Report | Notice:
    """`%%break FILE`: starts from the installed file, applies the cell, and runs the course suite. Files that were edited
    before, here or in another notebook, have no part in it."""
    if not line.strip():
        return Notice(title("Which file?"), paragraph("Name a file of lessonlib behind it: %%break retry.py"))
    try:
        return Workbench().alone(line.strip(), cell)
    except ScratchError as error:
        return Notice(title("This change does not fit"), paragraph(str(error)))


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext lessonlib.lab.workbench`"""
    ipython.register_magic_function(break_cell, magic_kind="cell", magic_name="break")
