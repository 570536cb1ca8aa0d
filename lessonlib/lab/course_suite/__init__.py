"""The course's own small test suite: some forty behaviours of the library, one sentence each, with a test or a few.

Learners break the library on purpose and predict which *behaviours* will be noticed as broken. So a behaviour is named in
plain words (`manifest.toml`), and its tests are marked with its key:

    @behaviour("store_false_is_sent")
    def test_...

The suite is shipped with the package, runs in a subprocess on a scratch copy (`lessonlib.lab.breaks`), and takes a few
seconds. It has gaps on purpose; the manifest lists them. The project's full suite in `tests/` has none of these gaps.

What this package does not do: its tests never open a socket, never wait, and use captures of their own (`captures.py`),
so that a break in the simulator cannot hide a break in the client.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One promise of the library. key: its name in predictions. lesson: where it is taught. sentence: what is promised."""

    key: str
    lesson: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the library promises and this suite does not ask about, on purpose. shown_by: the break that goes
    unnoticed because of it."""

    key: str
    sentence: str
    shown_by: str


def behaviour(key: str) -> Callable[[T], T]:
    """Marks a test as one of the tests of a behaviour."""

    def mark(test: T) -> T:
        test.behaviour = key  # type: ignore[attr-defined]
        return test

    return mark


@cache
def behaviours() -> dict[str, Behaviour]:
    """All behaviours by key, in the order of the lessons."""
    rows = _manifest()["behaviour"]
    return {row["key"]: Behaviour(row["key"], row["lesson"], row["sentence"]) for row in rows}


@cache
def gaps() -> dict[str, Gap]:
    """The deliberate gaps by key."""
    return {row["key"]: Gap(row["key"], row["sentence"], row["shown_by"]) for row in _manifest()["gap"]}


def _manifest() -> dict[str, Any]:
    return tomllib.loads(resources.files(__name__).joinpath("manifest.toml").read_text(encoding="utf-8"))
