"""What a model reads of a tool's result and of its exceptions."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from lessonlib.results import cut_content, error_text, result_content
from lessonlib.types import Image, Text


class Harbour(BaseModel):
    name: str


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Span:
    start: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("half \ud83d", "half \ud83d"),
        (True, "true"),
        (0, "0"),
        (float("nan"), "NaN"),
        (Harbour(name="Kiel"), '{"name":"Kiel"}'),
        ({"at": date(2026, 1, 2), "by": Colour.RED, "for": Decimal("1.50")}, '{"at":"2026-01-02","by":"red","for":"1.50"}'),
        ((Span(1), Span(2)), '[{"start":1},{"start":2}]'),
        ({1: "a"}, '{"1":"a"}'),
        ([Text(text="a"), "b"], None),
    ],
)
def test_values_become_text(value: Any, expected: str | None) -> None:
    content = result_content(value)
    assert isinstance(content, str)
    assert expected is None or content == expected


@pytest.mark.parametrize("value", [b"", bytearray(b"x"), memoryview(b"x")])
def test_bytes_are_refused_with_the_way_out(value: Any) -> None:
    with pytest.raises(TypeError, match=r"Image\.from_bytes"):
        result_content(value)


@pytest.mark.parametrize("value", [object(), {"x": object()}, {"x": lambda: 1}])
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="no JSON form"):
        result_content(value)


# ---------------------------------------------------------------- cutting


@given(text=st.text(max_size=50), limit=st.integers(0, 60))
def test_a_cut_keeps_the_beginning_and_says_what_is_missing(text: str, limit: int) -> None:
    cut = cut_content(text, limit)
    assert isinstance(cut, str)
    if len(text) <= limit:
        assert cut == text
    else:
        assert cut == f"{text[:limit]}\n[cut: the first {limit} of {len(text)} characters are shown]"


def test_a_cut_never_parts_a_surrogate_pair() -> None:
    """Python text holds whole characters, but text from elsewhere may hold their two halves."""
    assert str(cut_content("ab\ud83d\ude00cd", 3)).startswith("ab\n[cut")
    assert str(cut_content("ab\ud83d\ude00cd", 4)).startswith("ab\ud83d\ude00\n[cut")


def test_several_texts_share_one_limit_and_pictures_stay() -> None:
    picture = Image(data="AAAA", media_type="image/png")
    content = [Text(text="abc"), picture, Text(text="defg"), Text(text="hij"), picture]
    assert cut_content(list(content), 10) == content
    assert cut_content(list(content), 5) == [
        Text(text="abc"),
        picture,
        Text(text="de\n[cut: the first 5 of 10 characters are shown]"),
        picture,
    ]
    assert cut_content(list(content), None) == content


def test_a_limit_that_falls_between_two_texts() -> None:
    assert cut_content([Text(text="abc"), Text(text="def")], 3) == [
        Text(text="abc"), Text(text="\n[cut: the first 3 of 6 characters are shown]"),
    ]  # fmt: skip


# ---------------------------------------------------------------- exceptions


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(), "TimeoutError"),
        (ValueError("  "), "ValueError"),
        (KeyError("city"), "KeyError: 'city'"),
        (ValueError("no key: city"), "ValueError: no key: city"),
        (FileNotFoundError(2, "No such file", "/home/someone/data/x.csv"),
         "FileNotFoundError: [Errno 2] No such file: '…/x.csv'"),
        (ValueError(r"C:\Users\someone\x.csv is empty"), r"ValueError: …\x.csv is empty"),
        (ValueError("GET https://api.example.org/v1/tides?key=abc123&x=1 failed"),
         "ValueError: GET https://api.example.org/v1/tides?key=***&x=1 failed"),
        (ValueError("https://user:pass@example.org/x"), "ValueError: https://***@example.org/x"),
        (ValueError("Authorization: Bearer abcdef123456"), "ValueError: Authorization: Bearer ***"),
        (ValueError('{"api_key": "abc", "secret":"x"}'), 'ValueError: {"api_key": "***", "secret":"***"}'),
        (ValueError("key sk-inv-SECRET-1234567890 is wrong"), "ValueError: key *** is wrong"),
        (ValueError("1/2 of and/or 10/20 read"), "ValueError: 1/2 of and/or 10/20 read"),
        (ValueError("天气服务不可用"), "ValueError: 天气服务不可用"),
    ],
)  # fmt: skip
def test_what_is_told_of_an_exception(error: BaseException, expected: str) -> None:
    """Its type and message; never empty, no paths, no keys."""
    assert error_text(error) == expected


def test_a_traceback_is_never_told() -> None:
    try:
        raise ValueError("outer") from KeyError("inner")
    except ValueError as error:
        assert error_text(error) == "ValueError: outer"  # noqa: PT017
