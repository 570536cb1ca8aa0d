"""Progress is shown for slow loops only, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from lessonlib.lab import scratch, track
from lessonlib.lab.author import tidy
from lessonlib.lab.tracking import Line, NotebookLine, Progress, TerminalLine
from lessonlib.lab.virtual import Clock


class Shown(Line):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.closed = 0

    def show(self, progress: Progress) -> None:
        self.lines.append(repr(progress))

    def close(self) -> None:
        self.closed += 1


def slow(clock: Clock, seconds: float, count: int) -> Iterator[int]:
    for number in range(count):
        clock.sleep(seconds)
        yield number


def test_a_quick_loop_shows_nothing() -> None:
    line = Shown()
    assert list(track(range(1000), clock=Clock(), line=line)) == list(range(1000))
    assert (line.lines, line.closed) == ([], 1)


def test_a_slow_loop_is_shown_after_a_second_and_not_at_every_step() -> None:
    clock, line = Clock(), Shown()
    assert list(track(slow(clock, 0.125, 20), "cuts", 20, clock=clock, line=line)) == list(range(20))
    assert line.lines[0] == "[#########...............] 8 of 20 cuts"
    assert [text[27:29] for text in line.lines] == ["8 ", "10", "12", "14", "16", "18", "20"]
    assert line.closed == 1


def test_a_loop_of_unknown_length_says_how_many_there_were() -> None:
    clock, line = Clock(), Shown()
    list(track(slow(clock, 2.0, 2), "events", clock=clock, line=line))
    assert line.lines == ["1 events", "2 events"]


def test_the_line_goes_also_when_the_loop_is_left() -> None:
    line = Shown()
    for number in track(range(10), clock=Clock(), line=line):
        if number == 3:
            break
    things = track((1 // (3 - number) for number in range(10)), clock=Clock(), line=line)
    with pytest.raises(ZeroDivisionError):
        list(things)
    assert line.closed == 2


def test_on_a_terminal_the_line_is_written_over_and_then_cleared(capsys: pytest.CaptureFixture[str]) -> None:
    line = TerminalLine()
    line.show(Progress(1, 2, "cuts"))
    line.show(Progress(2, 2, "cuts"))
    line.close()
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("\r[############............] 1 of 2 cuts\r[####")
    assert written.err.endswith(f"\r{' ' * len('[########################] 2 of 2 cuts')}\r")


def test_in_a_notebook_one_output_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    updates: list[object] = []

    class Handle:
        def update(self, value: object, **options: object) -> None:
            updates.append(value)

    monkeypatch.setattr("IPython.display.display", lambda value, display_id: updates.append(value) or Handle())
    line = NotebookLine()
    line.close()
    line.show(Progress(1, 3, "cuts"))
    line.show(Progress(2, 3, "<b>cuts</b>"))
    line.close()
    assert [repr(value) for value in updates[:2]] == [repr(Progress(1, 3, "cuts")), repr(Progress(2, 3, "<b>cuts</b>"))]
    assert updates[2] == {"text/plain": "", "text/html": ""}
    assert '<progress value="2" max="3"' in Progress(2, 3, "<b>")._repr_html_()
    assert "<b>" not in Progress(2, 3, "<b>")._repr_html_()


def test_a_run_of_the_course_suite_says_how_many_tests_have_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It takes seconds, so a bar is due; its length is the number of tests."""
    told: list[tuple[list[int], str, int | None]] = []

    def follow(things: Iterable[int], words: str, total: int | None) -> list[int]:
        told.append((list(things), words, total))
        return []

    monkeypatch.setattr(scratch, "track", follow)
    file = tmp_path / "test_own.py"
    file.write_text("def test_a(): pass\n\ndef test_b(): assert False\n\ndef test_c(): pass\n", encoding="utf-8")
    with scratch.Scratch() as copy:
        run = copy.run(file)
    assert (len(run.tests), len(run.failed)) == (3, 1)
    [(numbers, words, total)] = told
    assert (words, total) == ("tests", 3)
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_run_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with scratch.Scratch() as copy:
        copy.write("types.py", "import time\nwhile True:\n    time.sleep(0.05)\n")
        run = copy.run(time_limit=0.5)
    assert "did not end within 0.5 s" in run.trouble


def test_where_outputs_are_stored_or_compared_no_line_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """nbval compares what was displayed, also what was taken away again; on a slow machine there would be more of it."""
    monkeypatch.setenv("LESSON_PROGRESS", "off")
    clock, line = Clock(), Shown()
    assert list(track(slow(clock, 2.0, 5), "cuts", 5, clock=clock, line=line)) == list(range(5))
    assert line.lines == []


def test_the_line_that_was_taken_away_is_not_stored() -> None:
    """Whether it was shown depends on the machine, so the author's tool leaves it out."""
    gone = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "", "text/html": ""}}
    kept = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "[drawing]"}}
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "", "outputs": [gone, kept], "execution_count": 1}
    [tidied] = tidy({"cells": [cell], "metadata": {}})["cells"]
    assert tidied["outputs"] == [kept]
