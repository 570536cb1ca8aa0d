"""The way through the course: one step after the other up to the completion page, and what came back in between."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lessonlib.lab import breaks, completion, journey, outline, predict, progress, quiz, returns
from lessonlib.lab.exercises import Exercise
from lessonlib.lab.journey import Step

FIRST = f"03.{next(iter(predict.predictions('03')))}"
"""A prediction of lesson 03."""


def do(step: Step) -> None:
    """What a learner does at a step, as far as the progress sees it."""
    if step.exercise is None:
        progress.note_read(step.lesson.number)
    else:
        finish(step.exercise)


def finish(exercise: Exercise) -> None:
    match exercise.call:
        case "breaks.run":
            progress.note_break(exercise.about, right=False)
        case "breaks.write_test":
            progress.note_test(exercise.about, accepted=True)
        case _:
            progress.note_check(exercise.key, passed=True)


def walk() -> Iterator[Step]:
    """All steps, each done before the next is asked for."""
    while (step := journey.next_step()) is not None:
        yield step
        do(step)


# ---------------------------------------------------------------- the outline


def test_the_outline_has_what_the_cards_say() -> None:
    lessons = outline.lessons()
    assert [lesson.number for lesson in lessons] == [f"{number:02d}" for number in range(14)]
    assert all(lesson.question.endswith("?") and 10 <= lesson.minutes <= 60 for lesson in lessons)
    assert all(lesson.exercises and lesson.core for lesson in lessons)


@pytest.mark.parametrize("number", ["3", "03", 3])
def test_a_lesson_is_found_by_its_number(number: str | int) -> None:
    assert outline.lesson(number).number == "03"


@pytest.mark.parametrize("number", ["14", "x", "", "03.usage"])
def test_what_is_no_lesson_is_said_with_what_there_is(number: str) -> None:
    with pytest.raises(KeyError, match="00 to 13"):
        outline.lesson(number)


def test_what_is_no_exercise_is_said_with_what_there_is() -> None:
    with pytest.raises(KeyError, match=r"01\.fields, 01\.decode, 01\.parser"):
        outline.exercise("01.no")
    with pytest.raises(KeyError, match="has none"):
        outline.exercise("77.x")


# ---------------------------------------------------------------- steps


def test_the_way_leads_through_all_lessons_then_to_what_was_left_and_ends() -> None:
    steps = list(walk())
    read = [step.lesson.number for step in steps if step.exercise is None]
    done = [step.exercise for step in steps if step.exercise is not None]
    every = [each for lesson in outline.lessons() for each in (*lesson.core, *lesson.further)]
    assert read == [lesson.number for lesson in outline.lessons()]
    assert sorted(each.key for each in done) == sorted(each.key for each in every)
    assert [each.core for each in done] == sorted((each.core for each in done), reverse=True), "core before further"


def test_a_lesson_comes_before_its_exercises() -> None:
    for step in walk():
        if step.exercise is not None and step.exercise.core:
            assert step.exercise.lesson in progress.state().read


def test_whoever_begins_in_the_middle_is_not_sent_back_at_once() -> None:
    progress.note_read("06")
    step = journey.next_step()
    assert step is not None
    assert step.exercise is not None
    assert step.exercise.lesson == "06"
    assert {each.lesson for each in journey.left_out(progress.state())} == {f"{number:02d}" for number in range(6)}


def test_an_exercise_that_was_begun_is_as_good_as_reading() -> None:
    progress.note_answer("01.events", "a", right=True)
    assert journey.next_step() == Step(outline.lesson("01"))
    progress.note_check("01.parser", passed=False, belief="strips_all_spaces")
    step = journey.next_step()
    assert step is not None
    assert step.exercise == outline.exercise("01.fields")


def test_a_step_says_which_file_to_open_and_what_helps() -> None:
    assert "Open notebooks/00_start_here.ipynb" in repr(Step(outline.lesson("00")).shown())
    shown = repr(Step(outline.lesson("01"), outline.exercise("01.parser")).shown())
    for words in ("exercises/01_server_sent_events.ipynb", "`lesson check 01.parser`", "`lesson hint 01.parser`"):
        assert words in shown


# ---------------------------------------------------------------- what is shown


def test_words_say_how_far_an_exercise_is() -> None:
    parser, decode, limit = (outline.exercise(f"01.{name}") for name in ("parser", "decode", "limit"))
    progress.next_hint("01.parser")
    assert {journey.word(each, progress.state()) for each in (parser, decode, limit)} == {"to do"}
    progress.note_check("01.parser", passed=False)
    progress.note_test(limit.about, accepted=False)
    progress.note_break(decode.about, right=False)
    assert [journey.word(each, progress.state()) for each in (parser, decode, limit)] == ["tried", "done", "tried"]
    shown = repr(journey.of_lesson("01"))
    assert "1 try  01.parser" in shown
    assert "done   01.decode" in shown


def test_a_prediction_and_its_test_are_two_exercises_about_one_break() -> None:
    progress.note_break("tool-error-ends-the-loop", right=True)
    raises, test = outline.exercise("08.raises"), outline.exercise("08.test")
    assert [journey.word(each, progress.state()) for each in (raises, test)] == ["done", "to do"]
    progress.forget()
    progress.note_test("tool-error-ends-the-loop", accepted=True)
    assert [journey.word(each, progress.state()) for each in (raises, test)] == ["to do", "done"]


def test_the_end_of_a_lesson_says_what_surprised_and_when_it_comes_back() -> None:
    predict.reveal(FIRST, "b" if predict.find(FIRST).answer != "b" else "a")
    shown = " ".join(repr(progress.show("03")).split())
    assert "This surprised you, and will be asked again with lesson 04:" in shown
    assert predict.find(FIRST).question in shown
    assert "03" in progress.state().read, "the last cell of the lesson was run"


def test_progress_in_a_notebook_is_text_and_html() -> None:
    for shown in (progress.show(), progress.show("01")):
        assert "lesson" in repr(shown).lower()
        assert "<table>" in shown._repr_html_()


def test_a_file_that_cannot_be_kept_is_said_in_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "trouble", lambda: "the disk is full")
    assert "Nothing is recorded: the disk is full." in repr(progress.show("01"))


# ---------------------------------------------------------------- what comes back


def wrong(key: str) -> str:
    found = predict.find(key)
    return next(option.letter for option in found.options if option.letter != found.answer)


def test_a_prediction_that_went_wrong_is_asked_again_with_the_next_lesson() -> None:
    predict.reveal(FIRST, wrong(FIRST))
    assert returns.keys() == []
    progress.note_read("04")
    assert returns.keys() == [FIRST]
    asked = repr(returns.ask(FIRST))
    assert predict.find(FIRST).question in asked
    assert "It was asked in lesson 03" in asked
    assert all(f"{option.letter}  {option.text}" in asked for option in predict.find(FIRST).options)
    assert "As you said" in repr(returns.answer(FIRST, predict.find(FIRST).answer))
    assert returns.keys() == []


def test_what_is_no_answer_is_not_kept() -> None:
    predict.reveal(FIRST, "z")
    predict.reveal(FIRST, None)
    assert progress.state().answers == {}


def test_a_break_and_a_question_come_back_too_and_no_break_is_run_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = breaks.get("cache-left-out")
    breaks.keep(breaks.Outcome(broken, frozenset({"none"}), tuple(broken.fails), breaks.Run()))
    quiz.answer("03.totals", [1, 2])
    progress.note_read("05")
    assert returns.keys() == ["03.break.cache-left-out", "03.quiz.totals"]
    monkeypatch.setattr(breaks, "break_and_run", lambda broken: pytest.fail("it was run"))
    assert "Not an answer yet" in repr(returns.answer("03.break.cache-left-out", "z"))
    assert "exactly as you said" in repr(returns.answer("03.break.cache-left-out", set(broken.fails)))
    assert returns.keys() == ["03.quiz.totals"]


def test_a_key_that_the_course_no_longer_has_is_passed_over() -> None:
    progress.note_answer("03.gone", "a", right=False)
    progress.note_answer("03.break.gone", "a", right=False)
    progress.note_answer("03.quiz.gone", "a", right=False)
    progress.note_read("05")
    assert returns.keys() == []
    assert "surprised" not in repr(journey.of_lesson("03"))


def dialogue(*typed: str) -> tuple[list[str], Iterator[str]]:
    return [], iter(typed)


def test_in_a_terminal_at_most_three_come_back_at_once_and_q_ends() -> None:
    keys = [f"03.{name}" for name in list(predict.predictions("03"))[:5]]
    for key in keys:
        predict.reveal(key, wrong(key))
    progress.note_read("04")
    said, typed = dialogue("?", predict.find(keys[0]).answer, "", wrong(keys[2]))
    returns.in_terminal(lambda prompt: next(typed), said.append)
    assert said[0] == "5 surprised you, and come back now."
    assert "is not one of" in "".join(said)
    assert returns.keys() == [keys[1], keys[3], keys[4]], "skipped, and not asked yet"
    said, typed = dialogue("q")
    returns.in_terminal(lambda prompt: next(typed), said.append)
    assert len(said) == 2


def test_in_a_terminal_a_break_and_a_free_answer_can_be_given() -> None:
    broken = breaks.get("cache-left-out")
    breaks.keep(breaks.Outcome(broken, frozenset({"none"}), tuple(broken.fails), breaks.Run()))
    free = next(question for question in quiz.questions() if question.kind == "free")
    quiz.answer(free.key, "four words are enough", had=set())
    progress.note_read("13")
    letters = ",".join(letter for letter, key in broken.choices.items() if key in broken.fails)
    said, typed = dialogue(letters, "four words are enough", *["y"] * len(free.points))
    returns.in_terminal(lambda prompt: next(typed), said.append)
    assert returns.keys() == []


# ---------------------------------------------------------------- the completion page


def test_the_completion_page_is_empty_at_the_start_and_full_at_the_end() -> None:
    assert [point.done for point in completion.points()] == [False] * 7
    assert "0 of 7 points" in repr(completion.page())
    for _ in walk():
        pass
    assert "Next: any line above that says missing." in " ".join(repr(completion.page()).split())
    progress.note_break("cumulative-usage-added", right=True)
    for name in completion.SAID:
        progress.note_said(name)
    for question in quiz.questions():
        if question.number:
            progress.note_answer(question.kept_as, "", right=True, reading=False)
    shown = " ".join(repr(completion.page()).split())
    assert [point.done for point in completion.points()] == [True] * 7
    assert "there is nothing left to do here" in shown
    assert "missing" not in shown


def test_each_of_the_eight_breaks_and_fourteen_questions_counts() -> None:
    texts = [part.text for part in completion.points()[2].parts]
    assert [number for number in range(1, 9) if not any(text.startswith(f"break {number}:") for text in texts)] == []
    assert {text for text in texts if text.startswith("a test")} == {
        "a test that notices break 5",
        "a test that notices break 8",
    }
    assert [part.text for part in completion.points()[6].parts] == [f"question {number}" for number in range(1, 15)]


def test_a_key_of_ones_own_is_not_demanded() -> None:
    progress.note_check("06.states", passed=True)
    point = completion.points()[1]
    assert point.done
    assert "if you can:" in repr(completion.page())


def test_every_missing_part_says_how() -> None:
    for point in completion.points():
        assert all(len(part.how) > 5 for part in point.parts)
    assert "lesson quiz" in repr(completion.page())
