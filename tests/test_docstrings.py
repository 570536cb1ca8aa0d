"""Docstrings in three styles, read the same."""

from __future__ import annotations

import pytest

from lessonlib.docstrings import Docstring, parse

GOOGLE = """Weather forecast for a city.

    From the national service: a few days, no more.

    Args:
        city (str): Name of the city.
            In its own language.
        days (list[tuple[int, str]], optional): How many: one to seven.
        *rest: What else.

    Returns:
        dict: a sentence for each day.

    Raises:
        KeyError: no such city
    """

NUMPY = """Weather forecast for a city.

    From the national service: a few days, no more.

    Parameters
    ----------
    city : str
        Name of the city.
        In its own language.
    days : list of (int, str), optional
        How many: one to seven.
    *rest
        What else.

    Returns
    -------
    dict
        a sentence for each day
    """

SPHINX = """Weather forecast for a city.

    From the national service: a few days, no more.

    :param str city: Name of the city.
        In its own language.
    :param days: How many: one to seven.
    :type days: list
    :param *rest: What else.
    :returns: a sentence for each day
    :raises KeyError: no such city
    """

EPYDOC = """Weather forecast for a city.

    From the national service: a few days, no more.

    @param city: Name of the city.
        In its own language.
    @param days: How many: one to seven.
    @param rest: What else.
    @return: a sentence for each day
    """

EXPECTED = Docstring(
    "Weather forecast for a city.\n\nFrom the national service: a few days, no more.",
    {"city": "Name of the city. In its own language.", "days": "How many: one to seven.", "rest": "What else."},
)


@pytest.mark.parametrize(
    "text", [GOOGLE, NUMPY, SPHINX.replace("\\*", "*"), EPYDOC], ids=["google", "numpy", "sphinx", "epydoc"]
)
def test_each_style_says_the_same(text: str) -> None:
    assert parse(text) == EXPECTED


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_nothing_says_nothing(text: str | None) -> None:
    assert parse(text) == Docstring()


def test_plain_text_is_the_description() -> None:
    assert parse("One line.").description == "One line."
    assert (
        parse("One.\n\n    Indented code: x = {1: 2}\n\nTwo.").description == "One.\n\n    Indented code: x = {1: 2}\n\nTwo."
    )


def test_words_that_only_look_like_sections_stay() -> None:
    text = "Note: this is no section, and neither is Returns: that.\nArgs are described elsewhere."
    assert parse(text) == Docstring(text)


def test_text_after_a_section_belongs_to_the_description() -> None:
    found = parse("One.\n\nArgs:\n    x: An x.\n\nTwo.")
    assert found == Docstring("One.\n\nTwo.", {"x": "An x."})


def test_several_numpy_names_share_a_description() -> None:
    assert parse("Parameters\n----------\nx, y : int\n    A number.").parameters == {"x": "A number.", "y": "A number."}


def test_more_than_one_section_of_parameters() -> None:
    found = parse("One.\n\nArgs:\n    x: An x.\n\nKeyword Args:\n    y: A y.\n\nExample:\n    z: no parameter\n")
    assert found.parameters == {"x": "An x.", "y": "A y."}


def test_a_parameter_without_a_description() -> None:
    assert parse("One.\n\nArgs:\n    x:\n    y: A y.").parameters == {"x": "", "y": "A y."}


@pytest.mark.parametrize(
    "text", [GOOGLE, NUMPY, EPYDOC.replace("@arg rest", "@param rest")], ids=["google", "numpy", "epydoc"]
)
def test_the_usual_library_reads_the_same(text: str) -> None:
    library = pytest.importorskip("docstring_parser", reason="the docstring_parser package is not installed")
    theirs = {each.arg_name.lstrip("*"): " ".join((each.description or "").split()) for each in library.parse(text).params}
    assert parse(text).parameters == theirs
