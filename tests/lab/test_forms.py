"""Tables that the reader fills in: only rows with a word are judged, and each lesson's table is complete."""

from __future__ import annotations

import pytest

from lessonlib.lab.forms import Filled, Form, Row, fill, forms, solved
from tests.lab.test_questions import LESSONS, data

FORM = Form(
    "99.stops", "99.a", ("stop", "do", "because"), ("show", "run"),
    (Row("end", ("show", "display"), "It is over.", {"run": "You expect calls."}), Row("calls", ("run",), "It waits.", {})),
)  # fmt: skip

ALL = [(lesson, name) for lesson in LESSONS for name in forms(lesson)]


def test_an_empty_table_only_asks() -> None:
    shown = repr(Filled(FORM, {"end": None, "calls": " "}))
    assert "Your words first" in shown
    assert "show, run" in shown
    assert "It is over" not in shown


def test_a_row_is_judged_alone_and_the_others_stay_hidden() -> None:
    filled = Filled(FORM, {"end": "Display ", "calls": None})
    assert (filled.hit, filled.missed) == (["end"], [])
    assert "1 of 1 as you said" in repr(filled)
    assert "1 still empty" in repr(filled)
    assert "It waits" not in repr(filled)


def test_a_listed_wrong_word_hears_what_it_assumes() -> None:
    filled = Filled(FORM, {"end": "run", "calls": "run"})
    assert (filled.hit, filled.missed) == (["calls"], ["end"])
    assert "missed  end: not run, but show. You expect calls. It is over." in repr(filled)


def test_a_row_that_does_not_exist_is_named_and_nothing_raised() -> None:
    assert "There is no row 'ends'; the rows are end, calls." in repr(Filled(FORM, {"ends": "show"}))


def test_later_cells_can_go_on() -> None:
    assert Filled(FORM, {}).right == {"end": "show", "calls": "run"}


def test_a_table_that_does_not_exist_is_an_error_of_the_notebook() -> None:
    with pytest.raises(KeyError, match=r"no table .99\.stops."):
        fill("99.stops", {})


@pytest.mark.parametrize(("lesson", "name"), ALL)
def test_tables_of_the_lessons(lesson: str, name: str) -> None:
    """At most 8 rows (12 for a score) and 3 columns, every reason given, wrong words not right as well, and a promise of the
    card that the table tests."""
    form = forms(lesson)[name]
    exits = data(lesson)["exits"]
    assert isinstance(exits, dict)
    assert form.exit in {f"{lesson}.{letter}" for letter in exits}
    assert len(form.heads) == 3
    assert 1 <= len(form.rows) <= 12
    assert all(row.because and not any(row.is_right(word) for word in row.wrong) for row in form.rows)
    assert not form.words or {word for row in form.rows for word in row.accepted} <= set(form.words)
    assert len(solved(f"{lesson}.{name}").rows) == len(form.rows)


def test_a_solved_table_sets_code_as_code() -> None:
    shown = solved("03.stops")._repr_html_()
    assert "<code>stop_details</code>" in shown
    assert "`" not in shown
