"""The tables of exercises 05 and 06 say what the library does: every cell is computed here from the fixtures."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from lessonlib import Message, Opaque, Reasoning, Request, Text, ToolCall, ToolResult
from lessonlib.lab import Stepper, body_of, stream_of
from lessonlib.lab.course import MODELS, WIRE_OF
from lessonlib.lab.plots.wire import WEATHER
from lessonlib.types import Part
from lessonlib.wire import WIRES, WireFormat

WIRES_BY_NAME = {"OpenAI": WIRE_OF["openai"], "Anthropic": WIRE_OF["anthropic"], "Gemini": WIRE_OF["gemini"]}


def cells(key: str) -> dict[str, str]:
    """The right words, by "row / column"."""
    file = resources.files("lessonlib").joinpath(f"data/exercises/{key[:2]}.json")
    return {name: cell["is"] for name, cell in json.loads(file.read_text(encoding="utf-8"))[key]["cells"].items()}


# ---------------------------------------------------------------- 06.states

LETTERS = {"A": "anthropic-messages", "O": "openai-responses", "G": "gemini-interactions"}
STATES = cells("06.states")


@pytest.mark.parametrize("row", dict.fromkeys(name.rpartition(" / ")[0] for name in STATES))
def test_a_row_of_the_state_table_is_what_the_decoder_does(row: str) -> None:
    wire, place = LETTERS[row[0]], int(row[1:].replace(",", " ").split()[0])
    if "end of the body" in row:
        frames = stream_of(f"{wire}/tool_call").split(b"\n\n")[:place]
        walk = Stepper(b"\n\n".join(frames) + b"\n\n" + (b"data: [DONE]\n\n" if "[DONE]" in row else b""), wire=wire)
        place = len(walk)
    else:
        walk = Stepper(f"{wire}/tool_call")
        assert row.partition(" ")[2] in walk.steps[place - 1].name
    moment = walk.moment(place)
    assert STATES[f"{row} / state"] == moment.state
    assert STATES[f"{row} / call"] == call_word(moment.state, [part.status for part in moment.parts if part.kind == "call"])


def call_word(state: str, statuses: list[str]) -> str:
    """The table's word: a call may run in DONE alone, and never after a failure."""
    if not statuses:
        return "none"
    if state in ("DONE", "FAILED"):
        return "runs" if state == "DONE" else "never"
    return "growing" if statuses == ["growing"] else "ended"


# ---------------------------------------------------------------- 05.parts

PARTS = cells("05.parts")


def wire_of(vendor: str) -> WireFormat:
    name = WIRES_BY_NAME[vendor]
    return WIRES[name](MODELS[name], api_key="", base_url=WIRES[name].default_base_url)


def parts_of(vendor: str, case: str, kind: type[Any]) -> Any:
    """The first part of that kind in a fixture's whole answer."""
    message = wire_of(vendor).decode(body_of(f"{WIRES_BY_NAME[vendor]}/{case}")).message
    return next(part for part in message.parts if isinstance(part, kind))


def example(row: str) -> Part:
    match row:
        case "OpenAI reasoning" | "Anthropic thinking" | "Gemini thought":
            return parts_of(row.partition(" ")[0], "tool_call", Reasoning)
        case "OpenAI remark with a phase":
            part = parts_of("OpenAI", "text", Text)
            assert "phase" in (part.raw or {})
            return part
        case "OpenAI web search":
            return parts_of("OpenAI", "server_tool", Opaque)
        case "Anthropic empty text":
            body = {**body_of("anthropic-messages/text"), "content": [{"type": "text", "text": ""}]}
            return wire_of("Anthropic").decode(body).message.parts[0]
        case "Anthropic call":
            return parts_of("Anthropic", "tool_call", ToolCall)
        case _:
            assert row == "our tool's result"
            return ToolResult(call_id="call_1", content="Sunny")


def history(part: Part | None) -> list[Message]:
    """A conversation in which the part stands where it may, with a text on either side."""
    if isinstance(part, ToolResult):
        call = ToolCall(call_id="call_1", name="get_weather", args={"city": "Oslo"})
        return [Message.user("Oslo?"), Message.assistant(call), Message.user(part)]
    parts = [Text(text="before"), *([part] if part is not None else []), Text(text="after")]
    results = [ToolResult(call_id=part.call_id, content="Sunny")] if isinstance(part, ToolCall) else [Text(text="Go on.")]
    return [Message.user("Oslo?"), Message(role="assistant", parts=parts), Message(role="user", parts=results)]


def entries(body: dict[str, Any]) -> list[Any]:
    """All objects of the conversation, also those inside a message's content."""
    outer = body.get("messages") or body["input"]
    return [*outer, *(inner for entry in outer if isinstance(entry.get("content"), list) for inner in entry["content"])]


def sent(vendor: str, part: Part | None) -> list[Any]:
    return entries(wire_of(vendor).encode(Request(messages=history(part), tools=[WEATHER])).body)


def fate(part: Part, vendor: str) -> str:
    """As it came: the same JSON goes, minus output-only fields. Left behind: the request is the same without the part."""
    with_it = sent(vendor, part)
    if isinstance(part, ToolResult):
        return "rebuilt" if "Sunny" in json.dumps(with_it) else "left behind"
    if with_it == sent(vendor, None):
        return "left behind"
    raw = {key: value for key, value in (part.raw or {}).items() if key != "status" and value is not None}
    return "as it came" if any(raw.items() <= entry.items() for entry in with_it) else "rebuilt"


@pytest.mark.parametrize("row", dict.fromkeys(name.rpartition(" / ")[0] for name in PARTS))
@pytest.mark.parametrize("vendor", WIRES_BY_NAME)
def test_a_cell_of_the_parts_table_is_what_the_encoder_does(row: str, vendor: str) -> None:
    assert PARTS[f"{row} / {vendor}"] == fate(example(row), vendor)
