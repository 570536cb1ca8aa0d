"""The table of exercise 12 says what the library reads: every cell is computed from the captures of the notebook."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lessonlib import Response
from lessonlib.errors import IncompleteStream
from lessonlib.lab import check, client
from lessonlib.lab.checks.predicted import data
from lessonlib.sse import SSEParser

SOLUTION = Path(__file__).parents[2] / "solutions" / "12_older_dialects.ipynb"
CELLS: dict[str, Any] = data("12")["12.captures"]["cells"]


def captures() -> dict[str, bytes]:
    """The streams of the notebook, by name: an event for each line, and a line that begins with a space goes on."""
    sources = ["".join(cell["source"]) for cell in json.loads(SOLUTION.read_text(encoding="utf-8"))["cells"]]
    source = next(source for source in sources if source.startswith("captures = "))
    (assignment,) = ast.parse(source).body
    assert isinstance(assignment, ast.Assign)
    text = ast.literal_eval(assignment.value).replace("\n ", "")
    found = {}
    for name, body in re.findall(r"^(\d [^\n]*)\n(.*?)(?=^\d |\Z)", text, re.MULTILINE | re.DOTALL):
        found[name] = "".join(f"data: {line}\n\n" for line in body.splitlines()).encode()
    return found


def read(name: str, stream: bytes) -> Response:
    wire = client("gemini-generate-content" if name.endswith("generateContent") else "openai-chat").wire
    parser, decoder = SSEParser(), wire.decoder()
    for event in parser.feed(stream) + parser.close():
        decoder.feed(event)
    decoder.close()
    response: Response = decoder.result()
    return response


def told(name: str, stream: bytes) -> dict[str, str]:
    try:
        answer = read(name, stream)
    except IncompleteStream:
        return {"calls": "none", "stop": "cut", "usage": "none"}
    assert all(call.name == "get_weather" and call.args for call in answer.tool_calls)
    cities = [str((call.args or {})["city"]) for call in answer.tool_calls]
    output = answer.usage.output_tokens if answer.usage else None
    return {
        "calls": "both" if cities == ["Lima", "Cusco"] else "".join(cities) or "none",
        "stop": answer.stop.value,
        "usage": "none" if output is None else str(output),
    }


def test_each_of_the_six_captures_is_read_as_the_table_says() -> None:
    rows = {name: told(name, stream) for name, stream in captures().items()}
    found = {f"{name} / {column}": word for name, row in rows.items() for column, word in row.items()}
    assert found == {name: cell["is"] for name, cell in CELLS.items()}


def test_no_call_of_the_capture_that_has_no_end_can_be_run() -> None:
    with pytest.raises(IncompleteStream) as raised:
        read("5 no end", captures()["5 no end"])
    assert raised.value.partial is not None
    assert [call.args for call in raised.value.partial.tool_calls] == [None]


@pytest.mark.parametrize("name", CELLS)
def test_a_wrong_word_that_is_diagnosed_is_refused_with_its_belief(name: str) -> None:
    right = {each: cell["is"] for each, cell in CELLS.items()}
    for word, wrong in CELLS[name]["wrong"].items():
        result = check.cells("12.captures", {**right, name: word})
        assert (result.passed, result.belief) == (False, f"{name}: {wrong['belief']} ({word})")
