"""Captures under letters: the bytes are the fixtures', and nothing in what is shown gives a name away."""

from __future__ import annotations

import pytest

from lessonlib.lab.forms import forms
from lessonlib.lab.predict import course
from lessonlib.lab.source import stream_of
from lessonlib.lab.unnamed import captures, last_lines
from tests.lab.test_questions import LESSONS

ALL = [(lesson, name) for lesson in LESSONS for name in course(lesson).get("captures", {})]


@pytest.mark.parametrize(("lesson", "name"), ALL)
def test_every_set_can_be_read_and_has_a_table_in_its_lesson_where_one_is_named_alike(lesson: str, name: str) -> None:
    found = captures(f"{lesson}.{name}")
    assert all(body.strip() for body in found.values())
    if name in forms(lesson):
        assert list(found) == [row.name for row in forms(lesson)[name].rows]


def test_a_capture_is_the_fixture_and_one_without_an_event_lacks_only_that() -> None:
    found = captures("04.ends")
    whole = stream_of("gemini-interactions/text")
    assert found["a"] == whole
    assert b"interaction.completed" not in found["g"]
    assert found["g"] == whole[: whole.index(b"event: interaction.completed")] + b"event: done\ndata: [DONE]\n\n"


def test_last_lines_are_those_with_content() -> None:
    body = b"event: a\ndata: 1\n\nevent: b\ndata: " + b"x" * 200 + b"\n\n"
    first, second = last_lines(body)
    assert first == "data: 1"
    assert len(second) == 104
    assert second.startswith("data: xxx")
    assert " … " in second


def test_a_set_that_does_not_exist_is_an_error_of_the_notebook() -> None:
    with pytest.raises(KeyError, match="no captures"):
        captures("04.none")
