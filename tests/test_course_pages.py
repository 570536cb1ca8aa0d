"""The two pages about the course as a whole: what it covers, and the tables. Both are made, and what they name exists."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@cache
def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- coverage


def test_every_point_has_a_place_and_something_that_fails_without_it() -> None:
    assert list(script("coverage_page").faults()) == []


def test_the_page_is_what_the_rows_make() -> None:
    coverage = script("coverage_page")
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page()


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"point": "lesson §24"}, "no such section"),
        ({"place": "notebooks/02_openai_responses.ipynb#No such heading"}, "there is no place"),
        ({"place": "docs/wire/anthropic.md#no-such-anchor"}, "there is no place"),
        ({"fails_without": "02.no_such_prediction"}, "nothing is called"),
        ({"fails_without": "02.z"}, "nothing is called"),
        ({"fails_without": "tests/test_sse.py::test_that_nobody_wrote"}, "nothing is called"),
        ({"fails_without": "tests/test_sse.py"}, "nothing is called"),
        ({"fails_without": "quiz 02.nobody_asks"}, "nothing is called"),
        ({"fails_without": "no-such-break"}, "nothing is called"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_a_row_that_names_nothing_is_a_fault(
    row: dict[str, str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coverage = script("coverage_page")
    sound = {"point": "lesson §4", "what": "x", "place": "docs/wire/anthropic.md#5-usage", "fails_without": "02.arguments"}
    (tmp_path / "02.json").write_text(json.dumps([{**sound, **row}]), encoding="utf-8")
    monkeypatch.setattr(coverage, "ROWS", tmp_path)
    found = [fault for fault in coverage.faults() if "has no row" not in fault]
    assert len(found) == 1
    assert complaint in found[0]


def test_a_section_without_a_row_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coverage = script("coverage_page")
    monkeypatch.setattr(coverage, "ROWS", tmp_path)
    assert "chapter 5.4.2 has no row" in list(coverage.faults())


# ---------------------------------------------------------------- tables


def test_the_tables_are_what_the_library_says() -> None:
    tables = script("reference_tables")
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page()
    assert list(tables.faults()) == []


def test_a_changed_translation_changes_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from lessonlib.types import StopReason
    from lessonlib.wire import anthropic_messages

    tables = script("reference_tables")
    monkeypatch.setitem(anthropic_messages.STOP, "pause_turn", StopReason.END)
    assert tables.page() != tables.PAGE.read_text(encoding="utf-8")


def test_evidence_that_leads_nowhere_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = script("reference_tables")
    broken = {
        "x": {"title": "X", "lead": "", "heads": ["a", "evidence"], "rows": [["b", "wire/anthropic.md#nowhere"], ["c"]]}
    }
    monkeypatch.setattr(tables, "WRITTEN", broken)
    faults = list(tables.faults())
    assert any("nowhere" in fault for fault in faults)
    assert any("has 1 cells, not 2" in fault for fault in faults)
