"""The file that keeps progress: never half written, never overwritten when it is newer, never in the way of a lesson; and
when what went wrong comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lessonlib.lab import progress
from lessonlib.lab.progress import Exercise, State


def kept() -> State:
    return progress.state()


# ---------------------------------------------------------------- the file


def test_what_is_recorded_is_there_for_the_next_process(own_progress: Path) -> None:
    progress.note_check("01.parser", passed=False, belief="decodes_each_read")
    script = "from lessonlib.lab import progress; print(progress.state().exercises['01.parser'].belief)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "decodes_each_read"
    assert [file.name for file in own_progress.iterdir()] == ["progress.json"], "no temporary file and no lock stays"


def test_the_file_has_a_version_and_is_json() -> None:
    progress.note_read("02")
    assert json.loads(progress.path().read_text(encoding="utf-8"))["version"] == progress.VERSION


def test_a_file_of_a_newer_version_is_left_alone() -> None:
    progress.path().parent.mkdir(parents=True)
    progress.path().write_text('{"version": 99, "new": "things"}', encoding="utf-8")
    progress.note_check("01.parser", passed=True)
    assert progress.path().read_text(encoding="utf-8") == '{"version": 99, "new": "things"}'
    assert kept() == State()
    assert "newer version" in progress.trouble()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"version": 1, "exercises": 3}', b'{"version": "1"}'])
def test_a_damaged_file_is_put_aside_and_a_new_one_begun(content: bytes, own_progress: Path) -> None:
    own_progress.mkdir()
    progress.path().write_bytes(content)
    progress.note_check("01.parser", passed=True)
    assert kept().exercises["01.parser"].passed
    assert [file.read_bytes() for file in own_progress.glob("progress.damaged-*")] == [content]


def test_fields_of_a_later_release_are_dropped_and_missing_ones_take_their_defaults() -> None:
    progress.path().parent.mkdir(parents=True)
    content = {"version": 1, "exercises": {"01.parser": {"passed": True, "opened": False}}, "unknown": 1}
    progress.path().write_text(json.dumps(content), encoding="utf-8")
    assert kept() == State(exercises={"01.parser": Exercise(passed=True)})


def test_a_crash_while_writing_leaves_the_old_file(monkeypatch: pytest.MonkeyPatch, own_progress: Path) -> None:
    progress.note_read("01")

    def crash(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        progress.note_read("02")
    monkeypatch.undo()
    monkeypatch.setenv("LESSON_HOME", str(own_progress))
    assert kept().read == ["01"]
    assert [file.name for file in own_progress.iterdir()] == ["progress.json"]


def test_two_notebooks_at_once_lose_nothing() -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: progress.note_check(f"01.x{number}", passed=True), range(24)))
    assert len(kept().exercises) == 24


def test_where_nothing_can_be_written_nothing_is_and_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a file").write_text("", encoding="utf-8")
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "a file"))
    progress.note_check("01.parser", passed=True)
    assert progress.next_hint("01.parser") == 1
    assert kept() == State()
    assert "cannot be kept" in progress.trouble()


def test_switched_off_it_keeps_nothing_and_shows_what_a_new_learner_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    progress.note_check("01.parser", passed=True)
    monkeypatch.setenv("LESSON_PROGRESS", "off")
    progress.note_check("01.fields", passed=True)
    assert kept() == State()
    assert "0 of 3" in repr(progress.show())
    monkeypatch.delenv("LESSON_PROGRESS")
    assert list(kept().exercises) == ["01.parser"]


def test_forgetting_some_exercises_leaves_the_others() -> None:
    for key in ("01.parser", "01.fields"):
        progress.note_check(key, passed=True)
    progress.note_break("decode-per-read", right=True)
    progress.note_opened("01.parser")
    progress.forget_exercises(["01.parser"], ["decode-per-read"])
    assert (list(kept().exercises), kept().breaks, kept().opened) == (["01.fields"], {}, [])
    progress.forget()
    assert kept() == State()


# ---------------------------------------------------------------- what counts


def test_a_pass_stays_whatever_comes_after_it() -> None:
    for passed in (False, True, False):
        progress.note_check("01.parser", passed=passed, belief=None if passed else "strips_all_spaces")
    assert kept().exercises["01.parser"] == Exercise(passed=True, tries=3, belief="strips_all_spaces")


def test_hints_go_up_to_three_and_stay_there() -> None:
    assert [progress.next_hint("01.parser") for _ in range(4)] == [1, 2, 3, 3]


def test_only_the_first_prediction_of_a_break_can_be_right_at_once() -> None:
    progress.note_test("decode-per-read", accepted=False)
    progress.note_break("decode-per-read", right=True)
    assert kept().breaks["decode-per-read"].first_right
    progress.note_break("no-raw-replay", right=False)
    progress.note_break("no-raw-replay", right=True)
    assert (kept().breaks["no-raw-replay"].right, kept().breaks["no-raw-replay"].first_right) == (True, False)


# ---------------------------------------------------------------- what comes back


def test_what_was_right_at_once_never_comes_back() -> None:
    progress.note_answer("03.output", "a", right=True)
    progress.note_read("13")
    assert progress.due() == []


def test_what_was_wrong_comes_back_one_lesson_later_then_three_then_never() -> None:
    progress.note_answer("03.output", "b", right=False)
    assert progress.due() == []
    assert progress.surprises("03") == {"03.output": 4}
    progress.note_read("04")
    assert progress.due() == ["03.output"]
    progress.note_answer("03.output", "a", right=True, reading=False, returning=True)
    assert (progress.due(), kept().answers["03.output"].due) == ([], 7)
    progress.note_read("07")
    assert progress.due() == ["03.output"]
    progress.note_answer("03.output", "a", right=True, reading=False, returning=True)
    assert kept().answers["03.output"].due is None


def test_wrong_again_it_begins_anew() -> None:
    progress.note_answer("03.output", "b", right=False)
    progress.note_read("04")
    progress.note_answer("03.output", "a", right=True, reading=False, returning=True)
    progress.note_read("07")
    progress.note_answer("03.output", "c", right=False, reading=False, returning=True)
    assert (kept().answers["03.output"].due, kept().answers["03.output"].box) == (8, 0)


def test_running_the_notebook_again_is_no_answer() -> None:
    """The right letter stands in the notebook since the reveal; a wrong one that was left there moves nothing either."""
    progress.note_answer("03.output", "b", right=False)
    progress.note_answer("03.output", "a", right=True)
    progress.note_answer("03.kept", "c", right=False)
    progress.note_read("06")
    progress.note_answer("03.output", "a", right=True)
    progress.note_answer("03.kept", "c", right=False)
    assert progress.due() == ["03.output", "03.kept"]


def test_after_the_last_lesson_what_waits_comes_back_at_once_and_once() -> None:
    progress.note_read("13")
    progress.note_answer("13.complaint", "b", right=False)
    assert progress.due() == ["13.complaint"]
    progress.note_answer("13.complaint", "a", right=True, reading=False, returning=True)
    assert kept().answers["13.complaint"].due is None


def test_an_answer_that_came_back_says_nothing_about_how_far_one_is() -> None:
    progress.note_answer("11.quiz.thinking", "a", right=True, reading=False)
    assert kept().lesson == -1
    progress.note_answer("02.sent", "a", right=True)
    assert kept().lesson == 2
