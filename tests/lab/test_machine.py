"""State diagrams are the decoder's own table, and what they add about the end of the body is true."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lessonlib.errors import LessonError
from lessonlib.lab import diagram, explorer
from lessonlib.lab.machine import BODY_END, ENDS_WITH_BODY
from lessonlib.lab.stepper import Stepper
from lessonlib.wire import WIRES
from tests.lab.test_explorer import STREAMS, Balanced

DECODERS = {name: wire("m", api_key="").decoder() for name, wire in WIRES.items()}


@pytest.mark.parametrize("wire", list(WIRES))
def test_every_arrow_of_the_table_is_drawn_and_no_other(wire: str) -> None:
    drawn = {
        (edge.before, event, edge.after) for edge in diagram(wire).edges() for event in edge.events if event != BODY_END
    }
    table = type(DECODERS[wire]).TABLE
    assert drawn == {(before, event, after) for before, row in table.items() for event, after in row.items()}


@pytest.mark.parametrize("name", STREAMS)
def test_what_the_end_of_the_body_means_is_what_the_decoder_does(name: str) -> None:
    """After each event of every fixture the body ends: that must lead where the diagram says."""
    walk = Stepper(name)
    ends = {edge.before: edge.after for edge in diagram(walk.wire).edges() if BODY_END in edge.events}
    decoder = WIRES[walk.wire]("m", api_key="").decoder()
    for step in walk.steps:
        if step.sse is None or decoder.state in ("DONE", "FAILED"):
            break
        ended = copy.deepcopy(decoder)
        try:
            ended.close()
        except LessonError:
            if not (decoder.state in ENDS_WITH_BODY.get(walk.wire, ()) and ended.state == "FAILED"):
                assert ended.state == ends[decoder.state] == "FAILED"
        else:
            assert ended.state == ends[decoder.state] == "DONE"
        try:
            decoder.feed(step.sse)
        except LessonError:
            break


@pytest.mark.parametrize("wire", list(WIRES))
@pytest.mark.parametrize("state", [None, "OPEN", "DONE", "FAILED"])
def test_the_picture_is_valid_and_the_same_each_time(wire: str, state: str | None) -> None:
    first, second = diagram(wire, state), diagram(wire, state)
    assert first.svg() == second.svg()
    root = ET.fromstring(first.svg())
    words = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for name in first.states:
        assert any(word.startswith(name) for word in words), name
    assert sum("now" in word for word in words) == (1 if state else 0)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert 0 <= float(box.attrib.get("x", 0)) <= width - float(box.attrib["width"]) + 0.1
        assert 0 <= float(box.attrib.get("y", 0)) <= height - float(box.attrib["height"]) + 0.1
    Balanced.check(first._repr_html_())


@pytest.mark.parametrize("wire", list(WIRES))
def test_nothing_rests_on_colour(wire: str) -> None:
    """The ways to FAILED are dashed, those to DONE thick; so a print in grey tells them apart."""
    for path in re.findall(r'<path d="M[^>]*marker-end[^>]*>', diagram(wire).svg()):
        assert ("stroke-dasharray" in path) == ("#7a1010" in path)
        assert ('stroke-width="4"' in path) == ("#00662c" in path)


def test_ways_out_of_a_state_are_a_table() -> None:
    assert diagram("anthropic-messages").ways_out("OPEN").rows == (
        ("message_delta", "ENDING", "not the end yet"),
        ("message_stop", "FAILED", "no answer"),
        ("error", "FAILED", "no answer"),
        ("end of body", "FAILED", "no answer"),
    )


def test_mermaid_names_every_state_and_marks_the_current_one() -> None:
    text = diagram("openai-chat", "ENDING").mermaid
    assert text.startswith("stateDiagram-v2")
    assert "class ENDING now" in text
    assert {"WAIT", "OPEN", "ENDING", "DONE", "FAILED"} <= set(re.findall(r"[A-Z]{4,}", text))


def test_an_explorers_diagram_shows_its_state_and_the_events_of_its_stream() -> None:
    machine = explorer("openai-responses/tool_call", at=27).diagram()
    assert machine.current == "OPEN"
    assert ".function_call_arguments.delta" in machine.svg()
    assert ".refusal.delta" not in machine.svg()
    assert "now in OPEN" in repr(machine)
    assert "The current state is OPEN." in machine.alt


def test_the_text_form_fits_on_a_screen() -> None:
    for wire in WIRES:
        lines = repr(diagram(wire)).splitlines()
        assert len(lines) <= 20
        assert max(map(len, lines)) <= 110


def test_an_unknown_wire_format_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        diagram("openai")


def test_the_files_are_named_so_that_no_module_hides_a_function() -> None:
    """`lessonlib.lab.diagram` is the function, whatever was imported before it."""
    from lessonlib import lab

    modules = {path.stem for path in Path(lab.__file__).parent.glob("*.py")} | {
        path.name for path in Path(lab.__file__).parent.iterdir() if path.is_dir()
    }
    functions = {name for name in lab.__all__ if name not in lab._MODULES}
    assert modules & functions == set()
