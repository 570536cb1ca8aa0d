"""The checks of the exercises: `from lessonlib.lab import check`, then `check.sse(MyParser)`.

One file per check, one check per file; a name is imported when it is first used. Every check takes the learner's object as
its argument, answers in under two seconds, and says with a refusal what it fed, what it expected and found, what the learner
seems to believe, and one more hint. How a check is made: core.py. How to add one: docs/teaching.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lessonlib.lab.checks.core import Belief, Check, Probe, Result
from lessonlib.lab.checks.predicted import cells, order

if TYPE_CHECKING:
    from lessonlib.lab.checks.chat_wire import check as chat_provider
    from lessonlib.lab.checks.fallback_chain import check as fallback
    from lessonlib.lab.checks.function_schema import check as schema
    from lessonlib.lab.checks.generate_wire import check as generate_provider
    from lessonlib.lab.checks.json_repair import check as repair_json
    from lessonlib.lab.checks.loop import check as tool_loop
    from lessonlib.lab.checks.moved_history import check as history
    from lessonlib.lab.checks.request_count import check as count
    from lessonlib.lab.checks.retry_policy import check as retry
    from lessonlib.lab.checks.round_trips import check as trips
    from lessonlib.lab.checks.sse_parser import check as sse
    from lessonlib.lab.checks.stream_decoder import check as decoder
    from lessonlib.lab.checks.two_buckets import check as limiter
    from lessonlib.lab.checks.usage_counts import check as usage

HOMES = {
    "sse": "sse_parser",
    "usage": "usage_counts",
    "trips": "round_trips",
    "decoder": "stream_decoder",
    "retry": "retry_policy",
    "tool_loop": "loop",
    "repair_json": "json_repair",
    "schema": "function_schema",
    "count": "request_count",
    "limiter": "two_buckets",
    "fallback": "fallback_chain",
    "history": "moved_history",
    "chat_provider": "chat_wire",
    "generate_provider": "generate_wire",
}
"""The checks that there are, in the order of the lessons, and the module of each."""

NAMES = tuple(HOMES)

__all__ = [
    "NAMES",
    "Belief",
    "Check",
    "Probe",
    "Result",
    "cells",
    "chat_provider",
    "count",
    "decoder",
    "fallback",
    "generate_provider",
    "get",
    "history",
    "limiter",
    "order",
    "repair_json",
    "retry",
    "schema",
    "sse",
    "tool_loop",
    "trips",
    "usage",
]


def get(name: str) -> Check:
    """The check of that name. Raises KeyError with the names that there are."""
    if name not in NAMES:
        raise KeyError(f"no check {name!r}; there are: {', '.join(NAMES)}")
    found: Check = import_module(f"lessonlib.lab.checks.{HOMES[name]}").check
    return found


def __getattr__(name: str) -> object:
    if name not in NAMES:
        raise AttributeError(f"there is no check {name!r}; there are: {', '.join(NAMES)}")
    found = get(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
