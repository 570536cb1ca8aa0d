"""The quiz as data, what is said to every wrong answer, and the two ways to play it."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from lessonlib.lab import progress, quiz
from lessonlib.lab.quiz import Option, Question
from lessonlib.lab.quiz_play import Form, Play, in_terminal

ALL = quiz.questions()
each = pytest.mark.parametrize("question", ALL, ids=lambda question: question.key)


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "question", [question for question in ALL if question.kind in kinds], ids=lambda question: question.key
    )


# ---------------------------------------------------------------- the data


def test_the_fourteen_of_the_lesson_and_at_least_as_many_of_the_chapter() -> None:
    assert sorted(question.number for question in ALL if question.number) == list(range(1, 15))
    assert len([question for question in ALL if question.chapter]) >= 14
    assert all(bool(question.number) != bool(question.chapter) for question in ALL)


@each
def test_a_question_belongs_to_a_lesson_and_can_be_found_by_both_of_its_keys(question: Question) -> None:
    assert 0 <= int(question.lesson) <= 13
    assert quiz.get(question.key) is quiz.get(question.kept_as) is question


def test_every_kind_is_there_and_no_letter_is_right_too_often() -> None:
    assert Counter(question.kind for question in ALL).keys() == quiz.HOW.keys()
    letters = Counter(letter for question in ALL if question.kind == "one" for letter in question.right_letters)
    assert letters.most_common(1)[0][1] <= letters.total() / 2


@of_kind("one", "many")
def test_options_are_few_and_each_wrong_one_says_what_it_assumes_and_where_that_is_right(question: Question) -> None:
    assert 3 <= len(question.options) <= len(quiz.LETTERS)
    assert len(question.right_letters) == 1 or question.kind == "many"
    assert len(question.decides) > 20, "which bytes decide"
    for option in question.options:
        spoken_to = not option.right or question.kind == "many"
        assert (len(option.seems) > 10 and len(option.where) > 10) if spoken_to else not option.seems
        assert bool(option.belief) != option.right


@of_kind("number")
def test_numbers_that_people_give_are_known(question: Question) -> None:
    assert question.decides
    for blank in question.blanks:
        assert len(blank.wrong) >= 2
        assert blank.answer not in {known.value for known in blank.wrong}


@of_kind("free")
def test_free_answers_have_a_model_and_points_that_are_in_it(question: Question) -> None:
    assert 4 <= len(question.points) <= 6
    assert len(question.model) > 150


# ---------------------------------------------------------------- judging


@of_kind("one", "many")
def test_the_right_letters_are_right_in_every_way_of_writing_them(question: Question) -> None:
    right = sorted(question.right_letters)
    for guess in (set(right), right, tuple(right), "".join(right).upper(), ", ".join(right)):
        judged = quiz.judge(question, guess)
        assert (judged.right, judged.beliefs) == (True, ())


def wrong_letters(question: Question) -> Iterator[tuple[set[str], Option]]:
    """One mistake at a time, and the option that it is about."""
    for option in question.options:
        if question.kind == "one":
            if not option.right:
                yield {option.letter}, option
        else:
            yield set(question.right_letters) ^ {option.letter}, option


@of_kind("one", "many")
def test_every_single_mistake_is_diagnosed(question: Question) -> None:
    for guess, option in wrong_letters(question):
        judged = quiz.judge(question, guess or "none")
        said = " ".join(" ".join(piece.text.split()) for piece in judged.pieces)
        assert not judged.right
        assert judged.beliefs == (option.belief or f"misses_{option.letter}",)
        assert option.seems in said
        assert option.where in said
        assert " ".join(question.decides.split()) in said


@of_kind("number")
def test_numbers_are_judged_one_by_one(question: Question) -> None:
    answers = [blank.answer for blank in question.blanks]
    assert quiz.judge(question, answers).right
    assert quiz.judge(question, " ".join(map(str, answers))).right
    for place, blank in enumerate(question.blanks):
        for known in blank.wrong:
            judged = quiz.judge(question, [*answers[:place], known.value, *answers[place + 1 :]])
            assert (judged.right, judged.beliefs) == (False, (known.belief,))
            assert known.where in " ".join(" ".join(piece.text.split()) for piece in judged.pieces)
        assert quiz.judge(question, [*answers[:place], -1, *answers[place + 1 :]]).beliefs == ("another_number",)


@pytest.mark.parametrize(
    ("key", "guess", "says"),
    [
        ("02.pair", "z", "the letters are a, b, c"),
        ("02.pair", "ab", "one letter"),
        ("02.pair", "", "one letter"),
        ("03.totals", "many", "2 numbers"),
        ("03.totals", [1], "2 numbers"),
        ("03.totals", object(), "2 numbers"),
        ("03.results", "no idea", "one sentence"),
        ("03.results", None, "Your answer first"),
        ("02.pair", None, "Your answer first"),
    ],
)
def test_what_is_no_answer_is_asked_again_and_not_kept(key: str, guess: object, says: str) -> None:
    assert says in repr(quiz.answer(key, guess))
    assert progress.state().answers == {}


def test_an_answer_is_kept_and_a_wrong_one_comes_back() -> None:
    quiz.answer("02.pair", quiz.get("02.pair").right_letters)
    quiz.answer("03.totals", [45, 55])
    kept = progress.state().answers
    assert (kept["02.quiz.pair"].first_right, kept["02.quiz.pair"].due) == (True, None)
    assert (kept["03.quiz.totals"].right, kept["03.quiz.totals"].guess, kept["03.quiz.totals"].due) == (False, "45, 55", 4)
    assert quiz.score("03")[:2] == (0, 1)
    assert quiz.score()[:2] == (1, 2)


def test_a_free_answer_is_compared_first_and_counted_then() -> None:
    text = "They go into the next message of the user."
    compared = repr(quiz.answer("03.results", text))
    assert "had={1, 2, …}" in compared
    assert progress.state().answers == {}
    assert "2 of 4 points" in repr(quiz.answer("03.results", text, {1, 2, 99}))
    assert not progress.state().answers["03.quiz.results"].right
    assert "All points." in repr(quiz.answer("03.results", text, {1, 2, 3, 4}))
    assert progress.state().answers["03.quiz.results"].right


def test_the_question_does_not_give_the_answer_away() -> None:
    for question in ALL:
        shown = " ".join(repr(quiz.ask(question.key)).split())
        for text in (question.decides, question.more, question.model, *question.points):
            assert not text or text not in shown


def test_an_unknown_key_lists_the_keys() -> None:
    with pytest.raises(KeyError, match=r"02\.pair"):
        quiz.get("02.nothing")


# ---------------------------------------------------------------- in a notebook


def form(key: str) -> Form:
    import ipywidgets

    return Form(quiz.get(key), ipywidgets)


def test_one_letter_is_chosen_and_checked() -> None:
    made = form("02.pair")
    made.submit()
    assert "Your answer first" in made.feedback.value
    made.inputs[0].value = next(iter(quiz.get("02.pair").right_letters))
    made.button.click()
    assert "As you said." in made.feedback.value
    assert progress.state().answers["02.quiz.pair"].right


def test_boxes_are_ticked_and_an_untouched_form_is_no_answer() -> None:
    made, right = form("03.refusal"), quiz.get("03.refusal").right_letters
    made.button.click()
    assert progress.state().answers == {}
    for option, box in zip(made.question.options, made.inputs, strict=True):
        box.value = option.letter in right
    made.button.click()
    assert progress.state().answers["03.quiz.refusal"].right


def test_numbers_are_typed() -> None:
    made = form("03.totals")
    made.inputs[0].value, made.inputs[1].value = "2145", "55"
    made.button.click()
    assert progress.state().answers["03.quiz.totals"].right
    made.inputs[1].value = ""
    made.button.click()
    assert "Not an answer yet" in made.feedback.value


def test_words_are_compared_then_points_are_ticked() -> None:
    made = form("03.results")
    made.inputs[0].value = "Into the next message of the user, first."
    made.button.click()
    assert [box.description for box in made.points] == list(made.question.points)
    assert "A model answer" in made.feedback.value
    for box in made.points:
        box.value = True
    made.button.click()
    assert progress.state().answers["03.quiz.results"].right


def test_without_widgets_the_questions_stand_there_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 'quiz.answer("03.totals", …)' in repr(quiz.play("03"))
    assert {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"} <= quiz.play(
        "03"
    )._repr_mimebundle_().keys()
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert quiz.play("03")._repr_mimebundle_().keys() == {"text/plain", "text/html"}
    assert repr(quiz.play("00")) == "There is no question for this lesson."


def test_texts_are_escaped() -> None:
    evil = Question("02.x", "one", "<script>&", (Option("a", "<script>", False, "b", "s", "w"),))
    import ipywidgets

    made = Form(evil, ipywidgets)
    assert "<script>" not in made.box.children[0].value
    assert isinstance(Play([], "quiz.play()")._repr_html_(), str)


# ---------------------------------------------------------------- in a terminal


def typed(*answers: str) -> tuple[Callable[[str], str], Callable[[str], None], list[str]]:
    waiting, said = list(answers), []

    def read(prompt: str) -> str:
        said.append(prompt)
        return waiting.pop(0)

    return read, said.append, said


def test_a_quiz_in_a_terminal() -> None:
    keys = ["02.pair", "03.totals", "03.results", "02.store"]
    right = next(iter(quiz.get("02.pair").right_letters))
    read, say, said = typed("zzz", right, "", "In the next message of the user, first", "y", "y", "n", "", "q")
    in_terminal([quiz.get(key) for key in keys], read, say)
    assert "the letters are a, b, c" in "\n".join(said)
    assert said[-1] == "\n1 of 2 as you said. What was not comes back in a later lesson."
    assert progress.state().answers.keys() == {"02.quiz.pair", "03.quiz.results"}


def test_whatever_is_typed_the_terminal_never_fails() -> None:
    chance = random.Random(7)
    for _ in range(20):
        answers = [
            chance.choice(["a", "b", "abc", "none", "1, 2", "words and more words here", "", "y", "ü"]) for _ in range(400)
        ]
        read, say, _ = typed(*answers, *["q"] * 9)
        in_terminal(ALL, read, say)
