"""The benchmarks run, in their smallest mode, and tell the truth about what they measured. No time is looked at.

What is checked: that the streams are ones which the library reads to their end with nothing to complain about; that a wrong
answer stops a benchmark; and that table, ratios and drawing are made of the JSON.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("httpx_sse", reason="the benchmarks' own packages are not installed")
pytest.importorskip("orjson", reason="the benchmarks' own packages are not installed")

from benchmarks import loopback, suites
from benchmarks.__main__ import BEGIN, DOCS, renewed, run, write
from benchmarks.apart import child
from benchmarks.contestants import OTHERS, OURS, Found, Source, check
from benchmarks.picture import picture
from benchmarks.report import Ratio, markdown, ratios, rows_of
from benchmarks.streams import CASES, WRITERS, Expected, stream
from benchmarks.suites import SMALLEST
from benchmarks.timing import Row, exponent, ratio, rounds
from lessonlib.explain import explain

OFFLINE = ("policies", "encode", "recorded")
"""Suites that need neither a vendor's package nor a server, and are soon over."""


# ---------------------------------------------------------------- the streams


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("wire", WRITERS)
def test_the_library_has_nothing_to_complain_about(wire: str, case: str) -> None:
    """A benchmark of streams that no vendor would send would measure nothing."""
    report = explain(stream(wire, case, 300).body)
    assert (report.wire, report.error) == (wire, None)
    assert [finding.code for finding in report.findings] == []


@pytest.mark.parametrize("name", ["lessonlib, decoder alone", "lessonlib", "floor", "httpx-sse and json"])
@pytest.mark.parametrize("wire", WRITERS)
def test_a_contestant_finds_what_was_sent(wire: str, name: str) -> None:
    given = stream(wire, "thinking and 8 calls", 5)
    found = {**OTHERS, **OURS}[name](Source(wire, given.chunks(64)))()
    check(given.expected, found)


def test_a_wrong_answer_has_no_time() -> None:
    expected = Expected("low tide", [("get_level", {"place": "Oslo"})], 3)
    check(expected, Found(["low ", "tide"], [("get_level", {"place": "Oslo"})]))
    for wrong in (
        Found(["low tid"], [("get_level", {"place": "Oslo"})]),
        Found(["low tide"], []),
        Found(["low tide"], [("get_level", {"place": "Bergen"})]),
        Found(events=2),
    ):
        with pytest.raises(AssertionError):
            check(expected, wrong)


def test_a_contestant_that_goes_wrong_later_is_noticed() -> None:
    answers = iter([1, 1, 2])
    with pytest.raises(AssertionError, match="not one"):
        rounds({"ours": lambda: next(answers)}, 2, _is_one)


def _is_one(found: int) -> None:
    assert found == 1, "not one"


# ---------------------------------------------------------------- the arithmetic


def test_every_contestant_runs_once_in_every_round_and_they_take_turns() -> None:
    order: list[str] = []
    works = {name: (lambda name=name: order.append(name)) for name in "abc"}  # type: ignore[misc]
    seconds = rounds(works, 3)
    assert {name: len(values) for name, values in seconds.items()} == {"a": 3, "b": 3, "c": 3}
    assert "".join(order) == "abc" + "abc" + "bca" + "cab"


def test_exponent_of_lines_and_squares() -> None:
    sizes = [10, 100, 1000]
    assert exponent(sizes, [3 * size for size in sizes]) == pytest.approx(1.0)
    assert exponent(sizes, [size**2 for size in sizes]) == pytest.approx(2.0)


def test_a_ratio_is_taken_round_by_round() -> None:
    """A slow round slows both, so it changes nothing."""
    assert ratio([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]) == 2.0


def test_a_bound_is_held_or_not() -> None:
    assert Ratio("x", "", 2.5, 2.5).held is True
    assert Ratio("x", "", 2.6, 2.5).held is False
    assert Ratio("x", "", 6.9, 7, at_least=True).held is False
    assert Ratio("x", "", 1.0).held is None


# ---------------------------------------------------------------- the whole


def test_the_smallest_run_can_be_stored_and_read(tmp_path: Path) -> None:
    results = run("smallest", OFFLINE)
    write(results, tmp_path)
    stored = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert stored == results
    assert {row["suite"] for row in stored["rows"]} == {"policies", "encode", "recorded"}


def test_the_table_shows_the_numbers_of_the_json_and_says_what_was_missed() -> None:
    floor = Row("reading", "text", "floor", "µs per event", [1.0, 1.1, 0.9], "openai-chat", 100, 1400)
    ours = replace(floor, contestant="lessonlib", values=[2.0, 2.2, 1.8])
    slow = replace(floor, contestant="lessonlib, decoder alone", values=[4.0, 4.4, 3.6])
    results = {"modes": {"reading": "full"}, "machine": {"cores": "2"}, "rows": [asdict(row) for row in (floor, ours, slow)]}
    assert {(each.name, round(each.value, 3), each.held) for each in ratios(rows_of(results))} == {
        ("lessonlib : floor, text", 2.0, True),
        ("lessonlib, decoder alone : floor, text", 4.0, False),
    }
    table = markdown(results)
    assert "| lessonlib | text | 100 | 1,400 | µs per event | 2 (1.8-2.2) |" in table
    assert "**4** (missed)" in table


def test_the_tables_in_the_documentation_are_made_of_its_json() -> None:
    """Numbers in prose grow old; these cannot differ from what was measured."""
    stored = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert page == renewed(page, stored)


def test_what_was_missed_is_explained() -> None:
    """Every ratio that does not keep its bound has its line in the documentation."""
    stored = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))
    prose, _, _ = (DOCS / "benchmarks.md").read_text(encoding="utf-8").partition(BEGIN)
    missed = sorted({each.name for each in ratios(rows_of(stored)) if each.held is False})
    assert [name for name in missed if f"`{name}`" not in prose] == []


def test_the_drawing_is_made_of_the_same_rows() -> None:
    rows = [
        Row("reading", "text", name, "µs per event", [value], wire, 100, 1400)
        for wire in WRITERS
        for name, value in (("floor", 1.0), ("lessonlib", 2.5), ("openai, raw", 70.0))
    ]
    drawn = picture(rows)
    assert ("Chat", "lessonlib", "2.50") in drawn.table.rows
    assert "2.5 µs" in drawn.alt
    assert drawn.svg().startswith("<?xml")


def test_through_a_server_as_well() -> None:
    """The server of the benchmarks sends what it should, to one after the other."""
    given = stream("anthropic-messages", "text", 5)
    with loopback.serving(given, 64) as url:
        read = OURS["lessonlib"](Source(given.wire, [], url))
        check(given.expected, read())
        check(given.expected, read())


def test_a_vendors_package_runs_too() -> None:
    pytest.importorskip("anthropic", reason="the anthropic package is not installed")
    from benchmarks.sdks import messages_helper, raw

    given = stream("anthropic-messages", "thinking and 8 calls", 5)
    for contestant in (raw, messages_helper):
        check(given.expected, contestant(Source(given.wire, given.chunks(1400)))())


def test_histories_are_as_long_as_they_should_be() -> None:
    assert [len(suites.history(n)) for n in SMALLEST.histories] == [9, 21]


@pytest.mark.parametrize(("case", "size"), [("text", 1_000), ("text", 4_000), ("one event", 200_000)])
@pytest.mark.parametrize("wire", WRITERS)
def test_the_peak_of_a_text_is_at_most_three_times_the_answer(wire: str, case: str, size: int, tmp_path: Path) -> None:
    """Some wires repeat the whole text three times at the end. Memory is counted, not timed, so a bound can be tested."""
    path = tmp_path / "stream.sse"
    path.write_bytes(stream(wire, case, size).body)
    found = json.loads(child("-m", "benchmarks.apart", "memory", wire, "lessonlib", str(path)))
    assert found["peak"] < 3 * found["held"]
