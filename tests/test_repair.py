"""repair_json puts presentation right and never invents: a table, and two properties.

The table is testdata/repair.json. Half of its texts must be refused: a repair that is wrong is a call that nobody made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonlib.repair import FENCE, LITERAL, SINGLE_QUOTES, Unrepairable, preview_json, repair_json
from tests.timing import seconds

ROWS = json.loads((Path(__file__).parent.parent / "testdata" / "repair.json").read_text(encoding="utf-8"))["rows"]
SAID = [row for row in ROWS if "value" in row]
REFUSED = [row for row in ROWS if "refused" in row]


def name(row: dict[str, Any]) -> str:
    return str(row["name"])


@pytest.mark.parametrize("row", SAID, ids=name)
def test_what_the_text_says(row: dict[str, Any]) -> None:
    repaired = repair_json(row["text"])
    assert json.dumps(repaired.value) == json.dumps(row["value"])  # as text: true is not 1
    assert list(repaired.changes) == row["changes"]


@pytest.mark.parametrize("row", REFUSED, ids=name)
def test_what_nobody_can_be_sure_of(row: dict[str, Any]) -> None:
    with pytest.raises(Unrepairable) as refusal:
        repair_json(row["text"])
    assert row["refused"] in str(refusal.value)


def test_the_table_is_long_enough_and_a_third_of_it_is_refused() -> None:
    assert len(ROWS) >= 60
    assert len(REFUSED) >= len(ROWS) / 3


def test_every_repair_is_valid_json_and_repairs_to_itself() -> None:
    for row in SAID:
        value = repair_json(row["text"]).value
        assert json.dumps(repair_json(json.dumps(value)).value) == json.dumps(value)


def test_a_text_with_bare_quotes_is_never_shortened_and_gives_no_new_keys() -> None:
    text = '{"note": "Words such as "ebb", "flood" and "tide".", "n": 2}'
    with pytest.raises(Unrepairable):
        repair_json(text)


def test_a_cut_list_can_be_shown_but_not_repaired() -> None:
    cut = '{"commands":["git add .","git commit"'
    assert preview_json(cut) == {"commands": ["git add .", "git commit"]}
    with pytest.raises(Unrepairable, match="cut"):
        repair_json(cut)


def test_a_preview_shows_the_text_so_far_and_nothing_of_what_is_no_json() -> None:
    assert preview_json('{"city": "Os') == {"city": "Os"}
    assert preview_json("city: Oslo") is None


# ---------------------------------------------------------------- properties

CHARACTERS = st.text(alphabet="ab'\"\\/*#,:{}[]` \n1é", max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-999, 999) | CHARACTERS
NESTED = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(CHARACTERS, inner, max_size=3))
VALUES = st.dictionaries(CHARACTERS, NESTED, max_size=3)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def says_nothing_else(text: str, value: Any) -> None:
    """A text that is not JSON is refused, or says `value`."""
    try:
        repaired = repair_json(text).value
    except Unrepairable:
        return
    assert json.dumps(repaired, sort_keys=True) == json.dumps(value, sort_keys=True)


@given(VALUES)
def test_pythons_own_way_of_writing_a_value_is_always_understood(value: Any) -> None:
    text = repr(value)
    repaired = repair_json(text)
    assert json.dumps(repaired.value) == json.dumps(value)
    assert set(repaired.changes) <= {SINGLE_QUOTES, LITERAL}
    assert json.dumps(repair_json(f"```python\n{text}\n```").value) == json.dumps(value)


@given(VALUES, st.integers(0, 400))
def test_a_text_that_was_cut_says_what_it_said_or_nothing(value: Any, place: int) -> None:
    for text in (json.dumps(value), json.dumps(json.dumps(value)), f"```json\n{json.dumps(value)}\n```", repr(value)):
        cut = text[: place % len(text)]
        if not is_json(cut):
            says_nothing_else(cut, value)


@given(VALUES, st.integers(0, 400), st.sampled_from("\"'`,:{}[]\\/ a1\n"))
def test_a_mark_too_many_or_too_few_never_makes_another_value(value: Any, place: int, character: str) -> None:
    text = json.dumps(value)
    marks = [at for at, mark in enumerate(text) if mark in '"{}[],:\\']  # without a digit it may be good JSON that says less
    at, without = place % len(text), marks[place % len(marks)]
    for changed in (text[:without] + text[without + 1 :], text[:at] + character + text[at:]):
        by_chance = "\\'" in changed  # an escaped apostrophe, which nobody could tell from one that was meant
        if not is_json(changed) and not by_chance:
            says_nothing_else(changed, value)


def test_a_fence_adds_nothing() -> None:
    assert repair_json('```json\n{"a": 1}\n```').changes == (FENCE,)


# ---------------------------------------------------------------- cost


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ' + "/*" * 200_000,
        '{"a":"' + '\\"' * 200_000,
        "{'a':" + "'x'," * 100_000,
        "[" * 200_000,
        "}" * 100_000 + " " * 100_000 + "x",
        "```" + " " * 200_000 + "x```",
        '{"a": ' + "9" * 100_000 + ",}",
    ],
    ids=["comments", "escapes", "texts", "brackets", "blanks", "fence", "digits"],
)
def test_hostile_texts_cost_time_in_proportion_to_their_length(text: str) -> None:
    def refused() -> None:
        with pytest.raises(Unrepairable):
            repair_json(text)

    assert seconds(refused, enough=5) < 5
