"""What a cache mark of the Messages API caches: everything up to where it stands, and nothing behind it."""

from __future__ import annotations

from typing import Any

import pytest

from lessonlib.lab.offline import ask
from lessonlib.sim import Simulator
from lessonlib.types import JSON, Message, Request

LONG = "You are Desk, the assistant of a small travel agency. You know the trains and the hotels. " * 8
MARK = {"cache_control": {"type": "ephemeral"}}


def usages(*, top: bool = False, system: bool = False, message: bool = False) -> list[JSON]:
    """The usage of a question, of the same one again, and of another one behind the same system prompt."""
    sim = Simulator()
    found = []
    for question in ("Is there a train to Oslo?", "Is there a train to Oslo?", "Is there a hotel in Bergen?"):
        extra: dict[str, Any] = dict(MARK) if top else {}
        if system:
            extra["system"] = [{"type": "text", "text": LONG, **MARK}]
        if message:
            extra["messages"] = [{"role": "user", "content": [{"type": "text", "text": question, **MARK}]}]
        request = Request(messages=[Message.user(question)], system=LONG, extra={"anthropic-messages": extra})
        found.append(ask("anthropic", request, sim)["usage"])
    return found


def counts(usage: JSON) -> tuple[int, int, int]:
    return usage["input_tokens"], usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]


def test_without_a_mark_nothing_is_cached() -> None:
    assert [counts(usage)[1:] for usage in usages()] == [(0, 0)] * 3


def test_a_mark_on_the_system_prompt_leaves_the_question_outside() -> None:
    first, again, other = map(counts, usages(system=True))
    assert first[0] > 0
    assert first[1] > 100
    assert first[2] == 0
    assert again == (first[0], 0, first[1])
    assert other[1:] == (0, first[1])


@pytest.mark.parametrize("where", ["top", "message"])
def test_a_mark_behind_the_question_caches_it_too(where: str) -> None:
    first, again, other = map(counts, usages(**{where: True}))
    assert (first[0], first[2]) == (0, 0)
    assert again == (0, 0, first[1])
    assert other[0] == 0
    assert 0 < other[1] < other[2] < first[1]  # the system prompt is read, the new question is written
