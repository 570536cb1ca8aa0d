"""What each model accepts, as dated data: which parameters, how it is told to think, how much it reads and writes.

The data is `data/models.json`, one entry per model family, each with the day on which it was checked and its source. A model
that is not listed is *unknown*, which is not the same as "cannot": every field of `UNKNOWN` is None, and an encoder that
meets None sends what was asked and lets the vendor decide.

What this file does not do: no prices (see budget.py), no network, no guessing from a name that is not listed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one model family takes. None always means "not known".

    family: the listed name. provider: who makes it. window, max_output: tokens. thinking: how it is told to think:
    "effort" (OpenAI words), "adaptive" or "budget" (Anthropic), "level" or "budget" (Gemini), "none". efforts: the effort
    words it takes. can_disable_thinking, forced_tool_choice, prefill, sampling (temperature and the like), tools,
    parallel_calls, structured_output, images: whether it takes them. binds_thinking: its signed thinking is refused once
    anything before it has changed. encoding: tiktoken's name of its vocabulary.
    checked: the day on which this was checked (ISO date). source: where it stands.
    """

    family: str = ""
    provider: str = ""
    window: int | None = None
    max_output: int | None = None
    thinking: str | None = None
    efforts: tuple[str, ...] | None = None
    can_disable_thinking: bool | None = None
    forced_tool_choice: bool | None = None
    prefill: bool | None = None
    binds_thinking: bool | None = None
    sampling: bool | None = None
    tools: bool | None = None
    parallel_calls: bool | None = None
    structured_output: bool | None = None
    images: bool | None = None
    encoding: str | None = None
    checked: str | None = None
    source: str | None = None


UNKNOWN = Capabilities()


def of(model: str | None) -> Capabilities:
    """The capabilities of a model by the longest listed name that it is, or starts with at a boundary
    (`gpt-6-astra-2026-08-01` is a `gpt-6-astra`); `UNKNOWN` if none fits. A path prefix (`models/`) is dropped. The next
    version, while it is not listed (`claude-opus-5-6`), is not the one before it."""
    name = (model or "").rsplit("/", 1)[-1].lower()
    for family, capabilities in _table():
        if name.startswith(family) and _is_variant(name[len(family) :]):
            return capabilities
    return UNKNOWN


def _is_variant(rest: str) -> bool:
    """Whether what follows a family's name is a date or a variant, and not the next number of a version."""
    version = rest[1:].partition("-")[0]
    return not rest or (rest[0] in "-:@" and not (version.isdigit() and len(version) < 3))


def default_model(wire: str) -> str:
    """The model that is asked on a wire format when nobody names one: a present one as of the data's date. Raises KeyError
    for a wire format that has none."""
    model: str = _data()["default_models"]["models"][wire]
    return model


def defaults_checked() -> str:
    """The day (ISO date) on which the default models were present ones. Models are retired within a year or two."""
    checked: str = _data()["default_models"]["checked"]
    return checked


@cache
def _data() -> dict[str, Any]:
    from importlib import resources  # here, not above: it is a tenth of this package's import time

    data: dict[str, Any] = json.loads(resources.files("lessonlib").joinpath("data/models.json").read_text(encoding="utf-8"))
    return data


@cache
def _table() -> list[tuple[str, Capabilities]]:
    data = _data()
    known = {field.name for field in fields(Capabilities)}
    rows = [(name, _row(name, {**data["defaults"].get(entry.get("provider"), {}), **entry}, known))
            for name, entry in data["models"].items()]  # fmt: skip
    return sorted(rows, key=lambda row: -len(row[0]))


def _row(name: str, entry: dict[str, Any], known: set[str]) -> Capabilities:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items() if key in known
    }
    return Capabilities(**{**values, "family": name})


def names() -> list[str]:
    """All listed model families, in the data's order of length."""
    return [name for name, _ in _table()]
