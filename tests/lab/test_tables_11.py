"""The table of exercise 11 says what the library does: every cell is computed here, by an encoder or by a compaction."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lessonlib import Message, Opaque, Reasoning, Request, Text, ToolCall, ToolResult
from lessonlib.compact import Compaction, Compactor, compact_if_needed
from lessonlib.lab import body_of, client
from lessonlib.lab.checks.predicted import data
from lessonlib.lab.plots.wire import WEATHER
from lessonlib.sim import Simulator
from lessonlib.types import Part
from tests.lab.test_tables_05_06 import WIRES_BY_NAME, fate, parts_of, wire_of

TABLE = data("11")["11.sixteen"]
SIXTEEN = {name: cell["is"] for name, cell in TABLE["cells"].items()}
DIRECTIONS = {"A": ("Anthropic", "Gemini"), "B": ("Gemini", "OpenAI"), "C": ("OpenAI", "OpenAI")}
KINDS: dict[str, tuple[str, type[Any]]] = {
    "thinking": ("tool_call", Reasoning),
    "thought": ("tool_call", Reasoning),
    "reasoning": ("tool_call", Reasoning),
    "remark": ("text", Text),
    "call": ("tool_call", ToolCall),
    "search record": ("server_tool", Opaque),
    "web search": ("server_tool", Opaque),
}


def example(row: str) -> Part:
    kind = row.partition(" ")[2]
    if kind.endswith("result"):
        return ToolResult(call_id="call_1", content="Sunny", is_error="failed" in kind)
    case, part = KINDS[kind]
    found: Part = parts_of(DIRECTIONS[row[0]][0], case, part)
    return found


def test_there_are_sixteen_in_four_directions() -> None:
    assert [name[0] for name in SIXTEEN] == list("AAAABBBBCCCCDDDD")


@pytest.mark.parametrize("row", [name for name in SIXTEEN if name[0] in DIRECTIONS])
def test_a_part_is_sent_as_the_table_says(row: str) -> None:
    assert SIXTEEN[row] == fate(example(row), DIRECTIONS[row[0]][1])


@pytest.mark.parametrize("row", SIXTEEN)
def test_a_wrong_word_that_is_diagnosed_is_no_right_one_and_may_be_filled_in(row: str) -> None:
    cell = TABLE["cells"][row]
    assert cell["is"] in TABLE["words"]
    assert set(cell["wrong"]) <= {*TABLE["words"]} - {cell["is"]}


# ---------------------------------------------------------------- D: a summary, the same model goes on


def turn(number: int, extra: str = "") -> list[Message]:
    """A question, thinking and a call, its result, and an answer; thinking and call as Anthropic sent them."""
    answer = wire_of("Anthropic").decode(body_of(f"{WIRES_BY_NAME['Anthropic']}/tool_call")).message
    thought = next(part for part in answer.parts if isinstance(part, Reasoning))
    made = next(part for part in answer.parts if isinstance(part, ToolCall))
    call_id = f"toolu_{number}"
    call = made.model_copy(update={"call_id": call_id, "raw": {**(made.raw or {}), "id": call_id}})
    return [
        Message.user(f"Question {number}? {extra}"),
        Message.assistant(thought, call),
        Message.user(ToolResult(call_id=call_id, content=f"Sunny {number}")),
        Message.assistant(f"Answer {number}."),
    ]


def compacted() -> Compaction:
    history = [*turn(1, "word " * 3000), *turn(2), Message.user("And now?")]
    return compact_if_needed(
        client("anthropic", Simulator(script=["A summary."] * 50)),
        Request(messages=history, tools=[WEATHER]),
        2000,
        Compactor(2),
    )


def test_the_fourth_direction_is_a_summary_of_the_first_turn() -> None:
    found = compacted()
    body = wire_of("Anthropic").encode(found.request).body["messages"]
    text = json.dumps(body)
    assert found.replaced == 4
    first = {word for word in ("Question 1", "toolu_1", "Sunny 1", "Answer 1") if word in text}
    assert (first, {SIXTEEN["D1 first question"], SIXTEEN["D2 first call"]}) == (set(), {"summed up"})
    kinds = [block["type"] for message in body if isinstance(message["content"], list) for block in message["content"]]
    assert (kinds.count("thinking"), SIXTEEN["D3 last thinking"]) == (0, "left behind")
    assert len(found.dropped) == 1
    call = turn(2)[1].tool_calls[0]
    assert any(call.raw_for("anthropic-messages") == block for message in body for block in message["content"])
    assert SIXTEEN["D4 last call"] == "as it came"
