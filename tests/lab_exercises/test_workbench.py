"""Breaks of one's own: by marked lines, by a function, by hand, and in a cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessonlib.lab import scratch
from lessonlib.lab.scratch import ScratchError
from lessonlib.lab.workbench import Workbench, break_cell, edited, load_ipython_extension

BEFORE = """\
def one():
    return 1


class A:
    @property
    def two(self):
        return 2

    def three(self):
        return 3
"""


def test_marked_lines_replace_what_stands_there() -> None:
    assert edited(BEFORE, "-    return 1\n+    return 10\n") == BEFORE.replace("return 1\n", "return 10\n")


def test_context_says_which_of_two_equal_places() -> None:
    twice = "a\nx\nb\nx\n"
    assert edited(twice, " b\n-x\n+y\n") == "a\nx\nb\ny\n"


def test_lines_can_be_taken_out() -> None:
    assert edited("a\nb\nc\n", "-b\n") == "a\nc\n"


def test_a_function_takes_the_place_of_the_one_with_its_name_at_its_depth() -> None:
    change = "@property\ndef two(self):\n    return 20\n"
    assert edited(BEFORE, change) == BEFORE.replace("return 2\n", "return 20\n")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("-no such line\n+x\n", "0 times"),
        ("+only new\n", "where the new lines belong"),
        ("def four(): pass", "0 functions four"),
        ("x = 1", "one whole function"),
        ("def broken(:", "one whole function"),
    ],
)
def test_a_change_that_does_not_fit_says_why(change: str, why: str) -> None:
    with pytest.raises(ScratchError, match=why):
        edited(BEFORE, change)


def test_lines_that_stand_there_twice_are_not_guessed() -> None:
    with pytest.raises(ScratchError, match="2 times"):
        edited("x\nx\n", "-x\n+y\n")


def test_by_hand_with_a_diff_and_a_reset(tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "mine")
    path = bench.open("lessonlib/retry.py")
    assert path.read_text(encoding="utf-8") == scratch.source("retry.py")
    assert (bench.files(), "Nothing is changed" in repr(bench.diff())) == ([], True)
    assert "nothing was run" in repr(bench.run())
    path.write_text(path.read_text(encoding="utf-8").replace("call.started or ", ""), encoding="utf-8")
    assert bench.files() == ["retry.py"]
    assert "-        if not error.retryable or call.started" in repr(bench.diff())
    report = bench.run()
    assert report.noticed == ("nothing_is_said_twice",)
    assert "1 of" in repr(report)
    bench.reset()
    assert (bench.files(), path.exists()) == ([], False)


def test_a_change_that_nothing_notices_asks_for_the_sentence(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.edit("retry.py", "def _unreachable(error: LessonError) -> bool:\n    return False\n")
    assert "No behaviour" in repr(bench.run())


def test_only_files_of_the_library_can_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ScratchError, match="no file"):
        Workbench(tmp_path).open("../../secrets.txt")


def test_the_cell_magic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = break_cell("sse.py", '-        if name == b"data":\n+        if line.startswith(_DATA):\n')
    assert "`data:` needs no space" in repr(first)
    assert "does not fit" in repr(break_cell("sse.py", "-no such line\n+x\n"))
    assert "no file" in repr(break_cell("no_such.py", "-a\n+b\n"))


def test_the_magic_breaks_its_own_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cells, or two notebooks in one folder."""
    monkeypatch.chdir(tmp_path)
    mine = Workbench().open("retry.py")
    mine.write_text("not python at all", encoding="utf-8")
    report = break_cell("sse.py", '-        if name == b"data":\n+        if line.startswith(_DATA):\n')
    assert "Changed: sse.py." in repr(report)
    assert "does not fit" in repr(break_cell("retry.py", "-no such line\n+x\n"))
    assert mine.read_text(encoding="utf-8") == "not python at all"
    assert "%%break retry.py" in repr(break_cell("", "-a\n+b\n"))


def test_other_files_in_the_folder_are_no_breaks(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text("x = 1", encoding="utf-8")
    assert Workbench(tmp_path).files() == []
    assert "nothing was run" in repr(Workbench(tmp_path).run())


def test_an_edit_that_is_no_python_gives_no_result_and_the_next_step(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.open("sse.py").write_text("def (:", encoding="utf-8")
    assert "SyntaxError" in repr(bench.run())
    assert "Next:" in repr(bench.run())


def test_the_extension_registers_the_magic() -> None:
    class IPython:
        names: list[tuple[str, str]] = []  # noqa: RUF012

        def register_magic_function(self, function: object, magic_kind: str, magic_name: str) -> None:
            self.names.append((magic_kind, magic_name))

    load_ipython_extension(IPython())
    assert IPython.names == [("cell", "break")]
