"""The values that the simulated model takes from a prompt."""

from __future__ import annotations

import pytest

from lessonlib.sim.arguments import cities


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
