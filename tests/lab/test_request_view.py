"""The request viewer says what the encoders do: it finds places by experiment, the tests say what must be there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lessonlib.errors import InvalidRequest
from lessonlib.lab import viewer
from lessonlib.lab.request_view import NOT_SENT, REFUSED, rules
from lessonlib.types import Message, Request, Tool, ToolCall, ToolResult
from lessonlib.wire import WIRES
from tests.lab.test_explorer import Balanced

ROOT = Path(__file__).parents[2]
WEATHER = Tool(
    name="get_weather", description="Weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}}
)
FULL = Request(
    messages=[Message.user("Weather in Oslo?")], system="Be brief.", max_tokens=500, reasoning="low", tools=[WEATHER],
    tool_choice="auto", parallel=False, stop=["END"],
)  # fmt: skip
TRIP = Request(
    messages=[
        Message.user("Weather in Oslo?"),
        Message.assistant("I will look.", ToolCall(call_id="c1", name="get_weather", args={"city": "Oslo"})),
        Message.user(ToolResult(call_id="c1", content="sunny")),
    ],
    tools=[WEATHER],
)


def cells(request: Request, field: str) -> dict[str, str]:
    shown = viewer(request, wires=tuple(WIRES))
    return dict(next(row.cells for row in shown.rows if row.field == field))


@pytest.mark.parametrize(
    ("field", "places"),
    [
        ("system", ["instructions", "system", "system_instruction", "messages[0]", "systemInstruction"]),
        ("max_tokens", ["max_output_tokens", "max_tokens", "generation_config.max_output_tokens", "max_completion_tokens",
                        "generationConfig.maxOutputTokens"]),
        ("tools", ["tools", "tools", "tools", "tools", "tools"]),
        ("stop", [NOT_SENT, "stop_sequences", "generation_config.stop_sequences", "stop", "generationConfig.stopSequences"]),
        ("parallel", ["parallel_tool_calls", "tool_choice.disable_parallel_tool_use", "at the end of system_instruction",
                      "parallel_tool_calls", "at the end of systemInstruction.parts[0].text"]),
        ("text of the user (1)", ["input[0].content", "messages[0].content[0].text", "input[0].content[0].text",
                                  "messages[1].content", "contents[0].parts[0].text"]),
    ],
)  # fmt: skip
def test_where_each_wire_writes_a_field(field: str, places: list[str]) -> None:
    assert [cell.partition(": ")[0] for cell in cells(FULL, field).values()] == places


def test_arguments_are_a_text_for_openai_and_an_object_for_the_others() -> None:
    found = cells(TRIP, "arguments of a call (2)")
    assert found["openai-responses"] == r'input[2].arguments: "{\"city\":\"Oslo\"}"'
    assert found["anthropic-messages"] == 'messages[1].content[1].input.city: "Oslo"'
    assert found["gemini-interactions"] == 'input[2].arguments.city: "Oslo"'


def test_a_result_stands_in_a_message_an_item_or_a_step() -> None:
    found = cells(TRIP, "result of a call (3)")
    assert found["openai-chat"].startswith("messages[2].content")
    assert found["anthropic-messages"].startswith("messages[2].content[0].content")


def test_the_model_of_generate_content_is_in_the_url() -> None:
    assert cells(FULL, "model")["gemini-generate-content"].startswith("in the URL: /v1beta/models/")


def test_what_stands_there_unasked_is_shown() -> None:
    found = cells(FULL, "always there")
    assert "store: false" in found["openai-responses"]
    assert "store: false" in found["gemini-interactions"]
    assert "max_tokens" in cells(TRIP, "always there")["anthropic-messages"]


def test_a_wire_that_refuses_the_request_says_why_once() -> None:
    shown = viewer(FULL.replace(tool_choice="get_weather"))
    refused = next(row for row in shown.rows if row.field == "refused")
    assert "refuses a forced tool_choice" in refused.cells["anthropic-messages"]
    assert all(row.cells["anthropic-messages"] == REFUSED for row in shown.rows if row.field != "refused")
    with pytest.raises(InvalidRequest):
        shown["anthropic"]


def test_only_the_wanted_rows_are_shown_and_a_wrong_name_lists_them() -> None:
    assert [row.field for row in viewer(FULL, fields=("system", "tools")).rows] == ["system", "tools"]
    with pytest.raises(ValueError, match="max_tokens"):
        viewer(FULL, fields=("max_output_tokens",))


def test_equal_cells_are_not_marked() -> None:
    shown = viewer(FULL, wires=("openai", "openai-responses"))
    assert all(row.same for row in shown.rows)
    assert "> " not in repr(shown).partition("\n")[2]


@pytest.mark.parametrize("request_", [FULL, TRIP])
@pytest.mark.parametrize("stream", [True, False])
def test_no_key_is_anywhere_and_the_page_is_well_formed(request_: Request, stream: bool) -> None:
    shown = viewer(request_, wires=tuple(WIRES), stream=stream)
    everything = repr(shown) + shown._repr_html_() + "".join(str(shown.curl(wire)) for wire in shown.wires)
    assert "key-goes-here" not in everything
    Balanced.check(shown._repr_html_())


def test_the_curl_command_carries_the_whole_body() -> None:
    shown = viewer(FULL)
    command = shown.curl("openai")
    assert repr(command) == str(command)
    body = json.loads(re.search(r"-d '(.*)'\Z", str(command), re.DOTALL)[1])  # type: ignore[index]
    assert body == shown["openai"].body
    assert "$OPENAI_API_KEY" in command
    assert shown.curl("openai", powershell=True).startswith("'{")


def test_text_of_others_is_escaped() -> None:
    nasty = "<script>alert(1)</script>\x1b[2J"
    html = viewer(Request(messages=[Message.user(nasty)], system=nasty))._repr_html_()
    assert "<script" not in html
    assert "\x1b" not in html


def test_every_footnote_leads_to_a_section_that_there_is() -> None:
    """The page holds a heading with that number."""
    missing = []
    for field, by_wire in rules().items():
        for wire, rule in by_wire.items():
            assert wire in WIRES
            page = (ROOT / rule["page"]).read_text(encoding="utf-8")
            if not re.search(rf"^#+ {re.escape(rule['section'])}\.?\s", page, re.MULTILINE):
                missing.append(f"{field}, {wire}: {rule['page']} has no section {rule['section']}")
    assert missing == []


def test_footnotes_belong_to_rows_that_exist() -> None:
    fields = {row.field.rpartition(" (")[0] or row.field for request in (FULL, TRIP) for row in viewer(request, WIRES).rows}
    assert set(rules()) <= fields
