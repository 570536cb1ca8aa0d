"""Text behind tool results: allowed on every wire format, and what each simulated model makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lessonlib.sim import Simulator
from tests.sim.requests import second_request, send

MESSAGES = "anthropic-messages"
HURRY = {"type": "text", "text": "Hurry."}


def answered(extra: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer to two results with these blocks behind them."""
    path, headers, body = second_request(MESSAGES)
    body["messages"][-1]["content"] += extra
    reply = send(Simulator(), path, headers, body)
    assert reply.status == 200
    found: dict[str, Any] = json.loads(b"".join(data for _, data in reply.chunks))
    return found


def test_text_behind_the_results_ends_the_turn_with_next_to_nothing() -> None:
    answer = answered([HURRY])
    assert answer["content"] == []
    assert answer["stop_reason"] == "end_turn"
    assert answer["usage"]["output_tokens"] == 3


def test_results_alone_are_answered() -> None:
    assert answered([])["content"][-1]["type"] == "text"


@pytest.mark.parametrize("extra", [{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}])
def test_a_picture_behind_the_results_is_no_text(extra: dict[str, Any]) -> None:
    assert answered([extra])["content"] != []
