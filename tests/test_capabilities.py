"""What each model takes: dated data, and how a name finds its entry."""

from __future__ import annotations

import datetime
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import lessonlib
from lessonlib import capabilities
from lessonlib.capabilities import UNKNOWN, Capabilities, of

DATA: dict[str, Any] = json.loads((Path(lessonlib.__file__).parent / "data" / "models.json").read_text(encoding="utf-8"))
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("claude-opus-5-5-20261021", "claude-opus-5-5"),
        ("claude-opus-5", "claude-opus-5"),
        ("claude-opus-5-20260801", "claude-opus-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("CLAUDE-Opus-5-5", "claude-opus-5-5"),
        ("claude-opus-5-5@20261021", "claude-opus-5-5"),
        ("anthropic/claude-opus-5-5", "claude-opus-5-5"),
        ("anthropic/claude-opus-5-5:beta", "claude-opus-5-5"),
        ("models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("gpt-6-astra-2026-08-01", "gpt-6-astra"),
        ("gemini-3-flash-preview", "gemini-3"),
    ],
)
def test_a_name_finds_its_family(model: str, family: str) -> None:
    assert of(model).family == family


@pytest.mark.parametrize(
    "model",
    [
        None, "", "claude", "claude-opus-5-6", "claude-opus-5-6-20270101", "claude-fable-5-3", "claude-opus-55", "gpt-6",
        "gpt-5.9", "tide-1",
    ],
)  # fmt: skip
def test_a_name_that_is_not_listed_is_unknown_and_not_the_version_before_it(model: str | None) -> None:
    assert of(model) is UNKNOWN


def test_nothing_is_known_about_the_unknown() -> None:
    assert {name: getattr(UNKNOWN, name) for name in CAN} == dict.fromkeys(CAN)


CAN = [field.name for field in fields(Capabilities) if field.name not in ("family", "provider")]


@pytest.mark.parametrize("name", capabilities.names())
def test_every_entry_is_complete_and_dated(name: str) -> None:
    able = of(name)
    assert able.family == name
    assert able.provider in ("anthropic", "openai", "gemini", "deepseek", "moonshot")
    assert able.source
    assert datetime.date.fromisoformat(able.checked or "") <= datetime.date.fromisoformat(DATA["checked"])
    assert able.thinking in ("effort", "adaptive", "budget", "level", "none", None)  # not known where the maker does not say
    assert set(able.efforts or ()) <= set(EFFORTS)
    for count in (able.window, able.max_output):
        assert count is None or count > 0


def test_every_word_in_the_data_is_a_field() -> None:
    """A misspelt one would be left out in silence."""
    known = {field.name for field in fields(Capabilities)}
    assert {key for entry in (*DATA["models"].values(), *DATA["defaults"].values()) for key in entry} <= known


def test_every_listed_name_can_be_found() -> None:
    assert sorted(capabilities.names()) == sorted(DATA["models"])


def test_an_entry_says_what_its_provider_says_unless_it_says_otherwise() -> None:
    assert of("claude-opus-5-5").images is DATA["defaults"]["anthropic"]["images"]
    assert of("claude-opus-5-5").checked == DATA["defaults"]["anthropic"]["checked"]


@pytest.mark.parametrize(
    ("model", "thinking", "can_disable", "forced", "prefill"),
    [
        ("claude-opus-5-5", "adaptive", False, False, False),
        ("claude-sonnet-5-5", "adaptive", False, False, False),
        ("claude-opus-5", "adaptive", True, True, False),
        ("claude-opus-4-6", "adaptive", True, True, False),
        ("claude-opus-4-5", "budget", True, True, True),
    ],
)
def test_what_changed_with_the_generations_of_claude(
    model: str, thinking: str, can_disable: bool, forced: bool, prefill: bool
) -> None:
    able = of(model)
    assert [able.thinking, able.can_disable_thinking, able.forced_tool_choice, able.prefill] == [
        thinking, can_disable, forced, prefill,
    ]  # fmt: skip
