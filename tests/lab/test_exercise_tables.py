"""Read-and-predict tables that the library can compute: the data of lessons 01 and 02 against what it really does."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from lessonlib.lab import Stepper, client, send
from lessonlib.lab.checks.predicted import data
from lessonlib.sim import Call, Simulator, Think
from lessonlib.sse import SSEParser

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def words(key: str) -> dict[str, Any]:
    """The right word of each cell."""
    return {name: cell["is"] for name, cell in data(key[:2])[key]["cells"].items()}


def assigned(notebook: str, name: str) -> Any:
    """The literal that a solution notebook gives to a name."""
    cells = json.loads((SOLUTIONS / notebook).read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for node in (node for source in code if f"{name} = {{" in source for node in ast.parse(source).body):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise LookupError(name)


def test_the_events_and_bytes_of_eight_byte_strings() -> None:
    expected = words("01.fields")
    found = {}
    for name, stream in assigned("01_server_sent_events.ipynb", "streams").items():
        parser = SSEParser()
        events = parser.feed(stream) + parser.close()
        found[f"{name} / events"] = str(len(events))
        found[f"{name} / bytes"] = str(sum(len(event.data) for event in events))
    assert found == expected


def test_the_states_of_two_calls_that_take_turns() -> None:
    steps = Stepper("openai-responses/parallel_calls")
    found = {}
    for number in (12, 15, 22, 24, 25):
        parts = {part.place: part.status for part in steps.moment(number + 1).parts}
        for place in (1, 2):
            status = {"growing": "open", "held": "open", "whole": "done"}.get(parts.get(place, ""), "none")
            found[f"after {number} / {place}"] = status
    assert found == {name: word for name, word in words("02.items").items() if name.startswith("after")}


def test_an_item_that_only_ends_is_an_item() -> None:
    item = {
        "type": "function_call",
        "id": "fc_3",
        "call_id": "call_3",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    steps = Stepper([{"type": "response.output_item.done", "output_index": 3, "item": item}], wire="openai-responses")
    assert [part.status for part in steps.moment(1).parts] == ["whole"]
    assert words("02.items")["only done / 3"] == "done"


def test_the_request_with_its_six_gaps_filled_is_accepted() -> None:
    gap = {name[0]: word for name, word in words("02.gaps").items()}
    question = {"role": "user", "content": "When is the next train from Ghent to Bruges?"}
    request = {"model": client("openai").wire.model, "store": json.loads(gap["1"])}
    sim = Simulator(script=[[Think("Ghent to Bruges."), Call("next_train", {"origin": "Ghent", "to": "Bruges"})]])
    _, answer = send("openai", {**request, "input": [question]}, sim)
    thought, call = answer["output"]
    items = [
        question,
        {"id": thought["id"], "type": gap["2"], "summary": [], gap["3"]: thought["encrypted_content"]},
        {key: call[key] for key in ("id", "type", "call_id", "name", "arguments")},
        {"type": gap["5"], "call_id": call["call_id"], "output": "14:10, platform 3"},
    ]
    assert isinstance(call["arguments"], str)
    assert gap["4"] == "text"
    assert gap["6"].startswith(call["call_id"][:5])
    status, body = send("openai", {**request, "input": items}, sim)
    assert status == 200, body
