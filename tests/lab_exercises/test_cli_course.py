"""The commands of the course, as a learner and as a teacher uses them: in a folder that `lesson start` wrote."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lessonlib.cli import lesson
from lessonlib.lab import completion, exercises, folder, outline, predict, progress, start
from tests.lab_exercises.test_journey import finish

ROOT = Path(__file__).parents[2]
FIRST = "exercises/01_server_sent_events.ipynb"


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("written") / "course"
    start.start(target)
    return target


@pytest.fixture
def course(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder, and the learner in it."""
    for name in ("notebooks", "exercises"):
        shutil.copytree(written / name, tmp_path / "course" / name)
    monkeypatch.chdir(tmp_path / "course")
    return tmp_path / "course"


def run(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(lesson, list(words), input=typed, catch_exceptions=False)


def said(*words: str, typed: str | None = None, code: int = 0) -> str:
    """What a command prints, on one line; its exit code must be this one."""
    result = run(*words, typed=typed)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def notebook(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def edit(file: Path, change: dict[str, str]) -> None:
    """Saves a notebook in which some cells, by their ids or by a word in them, have another source."""
    content = notebook(file)
    for old, new in change.items():
        cells = [cell for cell in content["cells"] if old in "".join(cell["source"])]
        assert cells, old
        cells[0]["source"] = new
    file.write_text(json.dumps(content), encoding="utf-8")


def solve(course: Path, number: str) -> None:
    """Puts the solutions where the learner's work would be."""
    name = outline.lesson(number).exercises[0].notebook
    shutil.copy(ROOT / "solutions" / f"{name}.ipynb", course / "exercises" / f"{name}.ipynb")


FIELDS = "answer_fields = {"
WRONG_PARSER = """class MyParser:
    def feed(self, chunk):
        return [("message", chunk.decode("utf-8", "replace"))]
    def close(self):
        return []
"""


# ---------------------------------------------------------------- where one is


def test_a_new_learner_is_told_where_to_begin(course: Path) -> None:
    assert "here 00 · Where is the answer?" in said("list")
    assert "Open notebooks/00_start_here.ipynb" in said("next")
    assert "0 of 7 points are met" in said("progress")


def test_one_lesson_can_be_listed_by_either_form_of_its_number(course: Path) -> None:
    assert said("list", "3") == said("list", "03") == said("progress", "03")
    assert "to do 03.usage core" in said("list", "3")


@pytest.mark.parametrize("words", [("list", "14"), ("check", "01.no"), ("quiz", "77"), ("hint", "01"), ("hint", "x"),
                                   ("reset",), ("reset", "01", "--everything"), ("quiz", "01.no"),
                                   ("progress", "--said", "all"), ("hint",),
                                   ("grade", "--json", "--csv", "x.ipynb")])  # fmt: skip
def test_wrong_usage_says_what_there_is(words: tuple[str, ...], course: Path) -> None:
    text = said(*words, code=2)
    assert "Error: " in text
    assert not text.endswith(("'", '"')), "a message, not the repr of a KeyError"


def test_next_leads_to_the_exercise_at_hand_and_names_what_was_left_out(course: Path) -> None:
    progress.note_read("00")
    for each in outline.lesson("00").exercises:
        finish(each)
    assert "Next: lesson 01 · Server-sent events (35 minutes)" in said("next")
    progress.note_read("01")
    assert "Next: exercise 01.fields" in said("next")
    progress.note_read("02")
    for each in outline.lesson("02").core:
        progress.note_check(each.key, passed=True)
        progress.note_break(each.about, right=True)
    assert "Next: lesson 03" in said("next")
    assert "Left out so far: 01.fields, 01.decode, 01.parser." in said("next")


def test_next_asks_what_comes_back_if_somebody_is_there(course: Path) -> None:
    key = f"03.{next(iter(predict.predictions('03')))}"
    found = predict.find(key)
    predict.reveal(key, next(option.letter for option in found.options if option.letter != found.answer))
    progress.note_read("04")
    text = said("next")
    assert "1 that surprised you come back: run `lesson next` in a terminal" in text
    text = said("next", "--ask", typed=f"{found.answer}\n")
    assert "This surprised you, and comes back now." in text
    assert "As you said." in text
    assert "Next: exercise 04.trips" in text
    assert "surprised" not in said("next")


def test_the_end_of_the_input_ends_the_questions(course: Path) -> None:
    predict.reveal("03.old", "a")
    progress.note_read("04")
    assert "Next: exercise 04.trips" in said("next", "--ask", typed="")


def test_what_only_the_learner_knows_can_be_said(course: Path) -> None:
    assert "Noted: with a key of your own" in said("progress", "--said", "live")
    assert progress.state().said == ["live"]


def test_trouble_with_the_file_is_said_and_stops_nothing(course: Path) -> None:
    progress.path().parent.mkdir(parents=True)
    progress.path().write_text('{"version": 99}', encoding="utf-8")
    assert "nothing is recorded" in said("next")
    assert "Hint 1 of 3" in said("hint", "01.parser")


def test_outside_of_a_course_everything_but_the_notebooks_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("list",), ("next",), ("progress",), ("hint", "01.parser")):
        said(*words)


# ---------------------------------------------------------------- check


def test_before_anything_is_written_check_says_where_to_begin(course: Path) -> None:
    text = said("check", "01", code=1)
    assert "to do 01.fields" in text
    assert "If you have written it already: is the notebook saved?" in text
    assert progress.state().exercises == {}


def test_a_solved_notebook_passes_and_is_recorded(course: Path) -> None:
    solve(course, "01")
    text = said("check", "1")
    assert text.count("passed") == 4
    assert "Next: `lesson next`" in text
    assert all(journey_word(key) == "done" for key in ("01.fields", "01.decode", "01.parser", "01.limit"))
    assert "passed" in said("check", "01.parser")


def journey_word(key: str) -> str:
    from lessonlib.lab import journey

    return journey.word(outline.exercise(key), progress.state())


def test_the_first_refusal_is_told_in_full_and_says_what_to_do_next(course: Path) -> None:
    edit(course / FIRST, {"class MyParser": WRONG_PARSER})
    text = said("check", "01", code=1)
    assert "not yet 01.parser" in text
    for words in ("Fed:", "Expected:", "Found:", "Hint 1 of 3:", "save the notebook, run `lesson check 01.parser`"):
        assert words in text
    assert "Hint 2 of 3" in said("check", "01.parser", code=1)
    assert "Hint 3 of 3" in said("hint", "01.parser")
    assert progress.state().exercises["01.parser"].tries == 2


def test_a_wrong_prediction_is_done_and_says_what_surprised(course: Path) -> None:
    edit(course / FIRST, {"guess_decode = None": 'guess_decode = {"none"}'})
    text = said("check", "01.decode")
    assert "surprised 01.decode" in text
    assert "You said that no test notices." in text
    assert not progress.state().breaks["decode-per-read"].right
    edit(course / FIRST, {"guess_decode = ": 'guess_decode = {"sse_any_cut"}'})
    said("check", "01.decode")
    assert progress.state().breaks["decode-per-read"].tries == 1, "a guess that was corrected afterwards is no prediction"


def test_without_a_word_the_exercise_at_hand_is_checked(course: Path) -> None:
    progress.note_read("01")
    text = said("check", code=1)
    assert "01.fields" in text
    assert "01.parser" not in text


def test_a_notebook_elsewhere_can_be_checked_and_one_that_is_not_there_is_named(course: Path, tmp_path: Path) -> None:
    solve(course, "01")
    other = tmp_path / "01_mine.ipynb"
    shutil.move(course / FIRST, other)
    assert said("check", str(other)).count("passed") == 4
    assert "`lesson start` writes it" in said("check", "01", code=1)
    (tmp_path / "01_broken.ipynb").write_text("{", encoding="utf-8")
    assert "no notebook that can be read" in said("check", str(tmp_path / "01_broken.ipynb"), code=1)


def test_a_notebook_that_leaves_early_is_not_judged_and_says_what_to_do(course: Path) -> None:
    edit(course / FIRST, {"class MyParser": "import os; os._exit(3)"})
    text = said("check", "01.parser", code=1)
    assert "not judged 01.parser" in text
    assert "exit code 3" in text
    assert "Restart Kernel and Run All Cells" in text


# ---------------------------------------------------------------- hint, solution


@pytest.mark.parametrize("key", ["01.fields", "01.decode", "01.parser", "01.limit"])
def test_every_kind_of_exercise_has_three_hints_and_then_points_to_the_solution(key: str, course: Path) -> None:
    texts = [said("hint", key) for _ in range(3)]
    assert [f"Hint {number} of 3" in text for number, text in enumerate(texts, 1)] == [True] * 3
    assert f"`lesson hint {key}` says more" in texts[0]
    assert f"`lesson solution {key}`" in texts[2]


def test_a_solution_stays_closed_until_it_is_asked_for_and_says_so(course: Path) -> None:
    text = said("solution", "01.parser", typed="n\n")
    assert "Not passed yet: 01.parser" in text
    assert "`lesson hint 01.parser`" in text
    assert "class MyParser" not in text
    text = said("solution", "01.parser", typed="y\n")
    assert "class MyParser" in text
    assert "SOLUTION" not in text
    assert "(opened before it had passed: 01.parser)" in text
    assert progress.state().opened == ["01.parser"]
    assert "solution opened" in said("list", "01")


def test_after_a_pass_a_solution_is_open(course: Path) -> None:
    progress.note_check("01.parser", passed=True)
    assert "(open, because it has passed)" in said("solution", "01.parser")
    assert progress.state().opened == []


def test_the_solutions_of_a_lesson_are_laid_into_the_folder_once(course: Path) -> None:
    said("solution", "01", "--yes")
    file = course / "solutions/01_server_sent_events.ipynb"
    assert file.read_bytes() == (ROOT / "solutions/01_server_sent_events.ipynb").read_bytes()
    file.write_text("mine", encoding="utf-8")
    said("solution", "01", "--yes")
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("key", [each.key for each in exercises.registry()])
def test_every_exercise_has_a_solution_to_show(key: str) -> None:
    found = outline.exercise(key)
    shown = repr(folder.solution_of(outline.lesson(found.lesson), found))
    name, *rest = shown.splitlines()
    assert key in name
    assert "".join(rest).strip(), "nothing but the title"


def test_if_nobody_answers_it_says_what_answers_in_advance(course: Path) -> None:
    assert "--yes" in said("solution", "01.parser", typed="", code=1)
    assert "--yes" in said("reset", "01", typed="", code=1)


# ---------------------------------------------------------------- reset


def test_reset_asks_and_no_means_no(course: Path) -> None:
    edit(course / FIRST, {FIELDS: "answer_fields = 'mine'"})
    before = (course / FIRST).read_bytes()
    progress.note_check("01.parser", passed=True)
    assert "Nothing was changed." in said("reset", "01", typed="n\n")
    assert (course / FIRST).read_bytes() == before
    assert progress.state().exercises["01.parser"].passed


def test_a_lesson_is_put_back_as_it_came_and_the_old_notebook_is_kept(course: Path, written: Path) -> None:
    for number, kept in enumerate(("01_server_sent_events.ipynb", "01_server_sent_events-2.ipynb")):
        edit(course / FIRST, {FIELDS: f"answer_fields = 'mine {number}'"})
        progress.note_check("01.parser", passed=True)
        progress.note_check("02.gaps", passed=True)
        text = said("reset", "01", typed="y\n")
        assert "Reload Notebook from Disk" in text
        assert (course / FIRST).read_bytes() == (written / FIRST).read_bytes()
        assert f"mine {number}" in (course / "before_reset" / kept).read_text(encoding="utf-8")
    assert list(progress.state().exercises) == ["02.gaps"]


def test_one_exercise_is_put_back_and_the_others_stay(course: Path, written: Path) -> None:
    edit(course / FIRST, {"class MyParser": "class MyParser: mine", FIELDS: "answer_fields = 'mine'"})
    content = notebook(course / FIRST)
    content["cells"].append({"cell_type": "code", "id": "own", "source": "1 + 1", "metadata": {}, "outputs": []})
    (course / FIRST).write_text(json.dumps(content), encoding="utf-8")
    progress.note_check("01.parser", passed=True)
    progress.note_check("01.fields", passed=True)
    said("reset", "01.parser", "--yes")
    cells = ["".join(cell["source"]) for cell in notebook(course / FIRST)["cells"]]
    came = ["".join(cell["source"]) for cell in notebook(written / FIRST)["cells"]]
    assert [text for text in cells if text not in came] == ["answer_fields = 'mine'", "1 + 1"]
    assert len(cells) == len(came) + 1
    assert list(progress.state().exercises) == ["01.fields"]


def test_a_cell_that_was_deleted_comes_back_at_its_place(course: Path, written: Path) -> None:
    content = notebook(course / FIRST)
    content["cells"] = [cell for cell in content["cells"] if "class MyParser" not in "".join(cell["source"])]
    (course / FIRST).write_text(json.dumps(content), encoding="utf-8")
    said("reset", "01.parser", "--yes")
    assert [cell["id"] for cell in notebook(course / FIRST)["cells"]] == [
        cell["id"] for cell in notebook(written / FIRST)["cells"]
    ]


@pytest.mark.parametrize("text", ["{", '{"cells": []}'])
def test_a_notebook_that_is_none_is_not_patched_but_can_be_written_anew(text: str, course: Path, written: Path) -> None:
    (course / FIRST).write_text(text, encoding="utf-8")
    assert "`lesson reset 01` writes" in said("reset", "01.parser", "--yes", code=1)
    said("reset", "01", "--yes")
    assert (course / FIRST).read_bytes() == (written / FIRST).read_bytes()


def test_all_progress_can_be_forgotten_and_no_notebook_is_touched(course: Path) -> None:
    edit(course / FIRST, {FIELDS: "answer_fields = 'mine'"})
    progress.note_check("01.parser", passed=True)
    said("reset", "--everything", typed="y\n")
    assert progress.state().exercises == {}
    assert "mine" in (course / FIRST).read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [lesson.number for lesson in outline.lessons() if lesson.exercises])
def test_what_reset_writes_is_what_was_shipped(number: str) -> None:
    found = outline.lesson(number)
    assert folder.shipped(found) == (ROOT / found.exercise_notebook).read_text(encoding="utf-8")


# ---------------------------------------------------------------- quiz


def test_the_quiz_asks_one_lesson_or_one_question(course: Path) -> None:
    assert "1 of 1 03.totals" in said("quiz", "03.totals", typed="q\n")
    text = said("quiz", "03", typed="\n\n\n\n")
    assert "4 of 4" in text
    assert "Nothing was answered" in text


# ---------------------------------------------------------------- for teachers


@pytest.fixture
def handed_in(course: Path, tmp_path: Path) -> list[str]:
    """Three notebooks of lesson 01: solved, with one misunderstanding, and unreadable."""
    files = [tmp_path / name / "01_server_sent_events.ipynb" for name in ("ada", "ben", "cy")]
    for file in files:
        file.parent.mkdir()
    shutil.copy(ROOT / "solutions/01_server_sent_events.ipynb", files[0])
    shutil.copy(course / FIRST, files[1])
    edit(files[1], {"class MyParser": WRONG_PARSER})
    files[2].write_text("{", encoding="utf-8")
    return [str(file) for file in files]


def test_grades_as_text_count_what_was_believed(handed_in: list[str]) -> None:
    text = said("grade", "--seed", "1", "-j", "2", *handed_in[:2])
    assert f"{handed_in[0]}: 4 of 4" in text
    assert f"{handed_in[1]}: 0 of 4" in text
    assert "What was believed, and by how many:" in text
    assert progress.state().exercises == {}, "the teacher's own progress is not touched"


def test_a_notebook_that_cannot_be_graded_is_exit_code_1(handed_in: list[str]) -> None:
    assert "no notebook that can be read" in said("grade", handed_in[2], code=1)


def test_grades_as_csv_and_json(handed_in: list[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(run("grade", "--csv", "--seed", "1", handed_in[1]).stdout)))
    assert [row["key"] for row in rows] == ["01.fields", "01.decode", "01.parser", "01.limit"]
    assert {row["file"] for row in rows} == {handed_in[1]}
    assert [row["passed"] for row in rows] == ["False"] * 4
    assert [row["belief"] == "not_written" for row in rows] == [True, True, False, True]
    report = json.loads(run("grade", "--json", handed_in[0]).stdout)
    assert (report["file"], report["passed"], report["of"]) == (handed_in[0], 4, 4)


def test_the_export_says_what_it_wrote_and_how_to_go_on(course: Path, tmp_path: Path) -> None:
    text = said("export-nbgrader", str(tmp_path / "school"), "--lesson", "01")
    assert (tmp_path / "school/source/01_server_sent_events/01_server_sent_events.ipynb").is_file()
    assert "nbgrader generate_assignment 01_server_sent_events" in text
    said("export-nbgrader", str(tmp_path / "school"), "--lesson", "99", code=2)


# ---------------------------------------------------------------- to the end


def test_from_the_first_command_to_the_completion_page(course: Path) -> None:
    """Step after step, as `next` says it. What a check would find is noted: test_notebooks.py has all solutions checked."""
    read = []
    for _ in range(100):
        step = said("next")
        if "Next: lesson " in step:
            read.append(step.partition("Next: lesson ")[2][:2])
            progress.note_read(read[-1])
        elif "Next: exercise " in step:
            finish(outline.exercise(step.partition("Next: exercise ")[2].split()[0]))
        else:
            break
    assert read == [lesson.number for lesson in outline.lessons()]
    assert "points are met" in said("next")
    progress.note_break("cumulative-usage-added", right=True)
    for name in completion.SAID:
        said("progress", "--said", name)
    assert "6 of 7 points are met" in said("progress"), "the self-test is still to be answered"
