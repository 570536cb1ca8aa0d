"""What the Responses front plays beyond its rules."""

from __future__ import annotations

import pytest

from lessonlib.lab import client, send
from lessonlib.sim import Simulator
from lessonlib.types import JSON


def history(sim: Simulator) -> tuple[str, list[JSON]]:
    """A model's name and one finished turn, as items that may go back."""
    model, question = client("openai").wire.model or "", {"role": "user", "content": "Hello"}
    _, body = send("openai", {"model": model, "input": [question], "store": False}, sim)
    items = [{key: value for key, value in item.items() if key != "status"} for item in body["output"]]
    return model, [question, *items]


@pytest.mark.parametrize(("context", "expected"), [("current_turn", ["turn_boundary"]), ("all_turns", []), (None, [])])
def test_reasoning_of_earlier_turns_is_removed_where_the_request_says_so(context: str | None, expected: list[str]) -> None:
    sim = Simulator()
    model, earlier = history(sim)
    request = {"model": model, "input": [*earlier, {"role": "user", "content": "And now?"}], "store": False}
    status, body = send("openai", {**request, "reasoning": {"context": context}}, sim)
    assert status == 200
    assert [entry["reason"] for entry in body.get("input_transformations", [])] == expected
