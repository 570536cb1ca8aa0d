"""What the simulated model takes from a prompt."""

from __future__ import annotations

import pytest

from lessonlib import Message, Tool
from lessonlib.sim.arguments import cities
from lessonlib.sim.ask import Ask
from lessonlib.sim.model import wanted_calls


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What is the weather in Beijing (北京)?", ["Beijing"]),
        ("What is the weather in 北京 (Beijing)?", ["北京"]),
        ("Compare 北京（Beijing）with Paris (Paris).", ["北京", "Paris"]),
        ("Rome or Oslo (or Lima)?", ["Rome", "Oslo", "Lima"]),
        ("What is the weather in Springfield?", ["Springfield"]),
        ("How are you?", []),
    ],
)
def test_a_place_with_its_name_in_another_script_is_one_place(prompt: str, expected: list[str]) -> None:
    assert cities(prompt) == expected


def test_a_train_is_no_rain() -> None:
    weather = Tool(name="get_weather", description="Weather of a city", parameters={"type": "object", "properties": {}})
    asked = {
        prompt: bool(wanted_calls(Ask(wire="", model="", messages=[Message.user(prompt)], tools=[weather])))
        for prompt in ("May I take a dog on the train?", "Will it rain in Paris?")
    }
    assert asked == {"May I take a dog on the train?": False, "Will it rain in Paris?": True}
