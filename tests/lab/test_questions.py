"""Questions with folded answers, and the glossary: the data of every lesson, shown as text and as HTML."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from lessonlib.lab import closing, glossary, recall
from lessonlib.lab.notice import marked
from lessonlib.lab.predict import feedback, find

FOLDER = resources.files("lessonlib").joinpath("data/course")
LESSONS = sorted(
    file.name.removesuffix(".json") for file in FOLDER.iterdir() if file.name[:2].isdigit() and file.name.endswith(".json")
)


def data(lesson: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(FOLDER.joinpath(f"{lesson}.json").read_text(encoding="utf-8"))
    return found


WITH_CLOSING = [lesson for lesson in LESSONS if "closing" in data(lesson)]
WITH_RETRIEVAL = [lesson for lesson in LESSONS if "retrieval" in data(lesson)]


@pytest.mark.parametrize("lesson", WITH_CLOSING)
def test_three_to_five_closing_questions_each_for_a_promise_of_the_card(lesson: str) -> None:
    exits = data(lesson)["exits"]
    assert isinstance(exits, dict)
    assert 3 <= len(closing(lesson).entries) <= 5
    assert {entry.about for entry in closing(lesson).entries} <= {f"{lesson}.{letter}" for letter in exits}


@pytest.mark.parametrize("lesson", WITH_RETRIEVAL)
def test_two_questions_about_earlier_lessons(lesson: str) -> None:
    assert len(recall(lesson).entries) == 2
    assert all(entry.about[:2] < lesson for entry in recall(lesson).entries)


@pytest.mark.parametrize("lesson", WITH_CLOSING)
def test_answers_are_folded(lesson: str) -> None:
    questions = closing(lesson)
    first = questions.entries[0]
    assert first.question in repr(questions)
    assert first.answer not in repr(questions)
    assert first.answer in questions.answers
    assert questions._repr_html_().count("<details>") == len(questions.entries)


@pytest.mark.parametrize("lesson", LESSONS)
def test_at_most_eight_new_terms_a_line_each(lesson: str) -> None:
    terms = glossary(lesson).terms
    assert 1 <= len(terms) <= 8
    assert all("\n" not in line for line in terms.values())
    assert repr(glossary(lesson)).count("\n") == len(terms) - 1


def test_markup_in_data_is_shown_and_backticks_are_code() -> None:
    from lessonlib.lab.questions import Question, Questions

    shown = Questions("x", (Question("Is `<b>` bold?", "No: <b>", "00.a"),))._repr_html_()
    assert "<code>&lt;b&gt;</code>" in shown
    assert "<b>" not in shown


def test_a_lesson_without_questions_says_so() -> None:
    with pytest.raises(KeyError, match="lesson '99' has no closing"):
        closing("99")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("in *every* chunk", "in <em>every</em> chunk"),
        ("`a*b*c` and *so on*.", "<code>a*b*c</code> and <em>so on</em>."),
        ("2 * 3 * 4, **bold** and a*b*c", "2 * 3 * 4, **bold** and a*b*c"),
        ("<b> *<i>* `<u>`", "&lt;b&gt; <em>&lt;i&gt;</em> <code>&lt;u&gt;</code>"),
    ],
)
def test_code_and_emphasis_are_set_and_the_rest_is_escaped(text: str, html: str) -> None:
    assert marked(text) == html


def test_feedback_sets_its_code_as_code() -> None:
    """What decides is a field or some bytes; in a notebook they stand out, and nothing is left of the backticks."""
    shown = feedback(find("01.count"), "b")._repr_html_()
    assert "<code>data:</code>" in shown
    assert "`" not in shown
