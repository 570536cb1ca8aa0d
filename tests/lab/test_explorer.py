"""The stepper and the explorer: every stream can be walked, and what is shown is what a client would have."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from lessonlib.lab import Stepper, explorer
from lessonlib.lab.explore import DISPLAY_ONLY
from lessonlib.lab.source import body_of, locate, read_stream, stream_of
from lessonlib.lab.stepper import END
from lessonlib.sse import ServerSentEvent
from lessonlib.tape import Recorder
from lessonlib.types import ArgumentsDelta, Done, Message, Request
from lessonlib.wire import WIRES

TESTDATA = Path(__file__).parents[2] / "testdata"
STREAMS = sorted(path.parent.relative_to(TESTDATA).as_posix() for path in TESTDATA.glob("*/*/stream.sse"))


# ---------------------------------------------------------------- sources


def test_a_stream_is_named_by_wire_format_and_case() -> None:
    walk = Stepper("anthropic-messages/tool_call")
    assert (walk.name, walk.wire, len(walk)) == ("anthropic-messages/tool_call", "anthropic-messages", 20)


def test_a_file_of_the_readers_own_bytes_and_a_list_of_events_are_the_same_stream(tmp_path: Path) -> None:
    data = stream_of("openai-responses/text")
    file = tmp_path / "mine.sse"
    file.write_bytes(data)
    events = [ServerSentEvent(step.sse.event, step.sse.data) for step in Stepper(data).steps if step.sse]
    payloads = [step.sse.data for step in Stepper(data).steps if step.sse]
    walks = [Stepper(source) for source in (data, file, str(file), events, payloads)]
    assert {tuple(step.did for step in walk.steps) for walk in walks} == {tuple(step.did for step in walks[0].steps)}
    assert walks[1].name == "mine.sse"  # never an absolute path


def test_a_recorded_exchange_can_be_explored(tmp_path: Path) -> None:
    from lessonlib.client import Client
    from lessonlib.sim import SimTransport

    recorder = Recorder(tmp_path / "tape", SimTransport())
    with Client(WIRES["anthropic-messages"]("claude-opus-5-5", api_key="sim"), transport=recorder) as client:
        *_, done = client.stream(Request(messages=[Message.user("Hello")]))
    walk = explorer(recorder.folders[0], at=-1)
    assert isinstance(done, Done)
    assert walk.moment().parts[-1].text == done.response.text
    assert walk.moment().state == "DONE"


def test_a_folder_with_both_bodies_gives_its_stream() -> None:
    assert (locate("openai-chat/text") / "response.json").is_file()
    assert Stepper("openai-chat/text").stream.body == stream_of("openai-chat/text")
    assert body_of("openai-chat/text")["object"] == "chat.completion"
    assert "error" in body_of("anthropic-messages/rate_limit")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b'{"output": []}', "no stream, but a whole JSON answer"),
        (b"<html></html>", "no stream, but an HTML page"),
        (b"", "no stream, but an empty body"),
        (b'data: {"a": 1}\n\n', "cannot tell the wire format"),
    ],
)
def test_what_is_no_stream_says_what_it_is(source: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Stepper(source)


def test_a_name_that_is_nowhere_says_how_fixtures_are_named() -> None:
    with pytest.raises(FileNotFoundError, match="openai-chat/text"):
        explorer("anthropic/nothing")


# ---------------------------------------------------------------- walking


def test_next_prev_and_jump_stay_within_the_stream() -> None:
    walk = Stepper("anthropic-messages/tool_call")
    assert walk.step.number == 1
    assert walk.prev().step.number == 1
    assert walk.next(3).step.number == 4
    assert walk.next(1000).step.number == 20
    assert walk.jump(-1).step.name == END
    assert walk.jump("content_block_start", 2).step.number == 9
    for wrong in (0, 21, -21):
        with pytest.raises(ValueError, match="steps 1 to 20"):
            walk.jump(wrong)
    with pytest.raises(ValueError, match="comes 0 times"):
        walk.jump("response.created")


def test_play_passes_every_step_and_joins_runs_of_like_ones() -> None:
    walk = Stepper("anthropic-messages/tool_call")
    table = walk.play()
    assert walk.step.number == 20
    assert table.column("step")[3] == "4-5"
    assert table.column("what it gives")[3] == "part 0: reasoning “The question names Oslo, so one call is enough.”"
    assert len(Stepper("anthropic-messages/tool_call").play(4).rows) == 4  # steps 1 to 5, two of them joined


@pytest.mark.parametrize("name", STREAMS)
def test_any_order_of_steps_shows_the_same_moments(name: str) -> None:
    walk, other = Stepper(name), Stepper(name)
    forwards = [walk.moment(number) for number in range(1, len(walk) + 1)]
    backwards = [other.moment(number) for number in range(len(walk), 0, -1)]
    assert forwards == backwards[::-1]


@pytest.mark.parametrize("name", STREAMS)
def test_the_last_moment_is_what_the_decoder_says(name: str) -> None:
    walk = Stepper(name)
    stream = read_stream(name)
    moment = walk.moment(len(walk))
    done = [event.response for step in walk.steps for event in step.events if isinstance(event, Done)]
    assert [part.text for part in moment.parts if part.kind == "text"] == [
        part.text for part in (stream.report.arrived.message.parts if stream.report.arrived else []) if part.type == "text"
    ]
    assert (moment.state == "DONE") == bool(done)
    assert {part.status for part in moment.parts} <= {"whole", "cut"}
    if done:
        assert (moment.stop, moment.raw_stop, moment.usage) == (done[0].stop, done[0].raw_stop, done[0].usage)


@pytest.mark.parametrize("name", STREAMS)
def test_the_bytes_of_all_steps_are_the_bytes_of_the_stream(name: str) -> None:
    walk = Stepper(name)
    places = [(step.start, step.end) for step in walk.steps if step.sse is not None]
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    for step in walk.steps:
        if step.sse is not None:
            assert step.sse.data.split(b"\n")[0] in walk.stream.body[step.start : step.end]


def test_half_a_call_is_marked_and_never_parsed() -> None:
    walk = explorer("anthropic-messages/tool_call", at=15)
    call = walk.moment().parts[2]
    assert (call.status, call.text, call.display_only) == ("growing", '{"city": "Os', True)
    assert DISPLAY_ONLY in repr(walk)
    assert DISPLAY_ONLY in walk._repr_html_()
    held = walk.moment(17).parts[2]
    assert (held.status, held.display_only) == ("held", False)
    assert walk.moment(19).parts[2].status == "whole"


@pytest.mark.parametrize("wire", list(WIRES))
def test_a_call_that_was_cut_stays_display_only_on_every_wire(wire: str) -> None:
    walk = explorer(f"{wire}/cut_in_call", at=-1)
    assert walk.step.after == "FAILED"
    assert [part.display_only for part in walk.moment().parts if part.kind == "call"] == [True]
    assert "incomplete stream" in repr(walk)


def test_a_whole_call_of_an_answer_that_never_ended_cannot_be_run() -> None:
    whole = stream_of("anthropic-messages/tool_call").partition(b"event: message_delta")[0]
    call = explorer(whole, at=-1).moment().parts[2]
    assert call.problem == "the answer it belongs to never ended"
    assert "cannot be run" in repr(explorer(whole, at=-1)) or call.display_only


def test_a_whole_call_with_bad_arguments_says_why_it_cannot_be_run() -> None:
    assert "cannot be run" in repr(explorer("anthropic-messages/invalid_arguments", at=-1))


def test_diff_names_what_changed() -> None:
    walk = Stepper("anthropic-messages/tool_call")
    assert walk.diff(14, 15) == ["part 2: call +12 characters"]
    assert walk.diff(16, 17) == ["part 2: growing -> held"]
    assert walk.diff(17, 18) == ["state: OPEN -> ENDING", "stop: tool_use", "usage: input 2,094, output 85"]
    assert walk.diff(0, 1)[0] == "state: WAIT -> OPEN"
    assert walk.diff(3, 3) == []


# ---------------------------------------------------------------- what is shown


@pytest.mark.parametrize("name", STREAMS)
def test_every_step_fits_on_a_screen_and_its_html_is_well_formed(name: str) -> None:
    walk = explorer(name)
    for number in range(1, len(walk) + 1):
        text = repr(walk.jump(number))
        assert len(text.splitlines()) <= 20
        Balanced.check(walk._repr_html_())
    Balanced.check(walk.diagram()._repr_html_())


def test_what_the_wire_sent_is_never_obeyed() -> None:
    nasty = "<img src=x onerror=alert(1)>\x1b[31m\u202e</td>"
    events = [{"type": "message_start", "message": {"id": nasty, "model": nasty, "content": [], "usage": {}}},
              {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": nasty}}]  # fmt: skip
    for number in (1, 2):
        walk = explorer(events, at=number, name=nasty)
        html = walk._repr_html_() + walk.rows()._repr_html_() + walk.parts()._repr_html_()
        assert "<img" not in html
        assert "\x1b" not in html + repr(walk)
        assert "\u202e" not in html + repr(walk)
        Balanced.check(html)


def test_the_place_and_the_unified_events_are_said_in_words() -> None:
    walk = explorer("anthropic-messages/tool_call", at=15)
    assert "event 15 of 19, bytes 2,210 to 2,356: content_block_delta" in repr(walk)
    assert walk.step.events == (ArgumentsDelta(2, "toolu_01TideWeatherOslo0001", '{"city": "Os'),)
    assert "gives   ArgumentsDelta(index=2" in repr(walk)


def test_a_capture_with_times_says_when() -> None:
    from lessonlib.explain.capture import Capture

    data = stream_of("anthropic-messages/text")
    walk = explorer(Capture("timed", data, chunks=[(len(data), 1.25)]), at=3)
    assert "1.250 s after the request" in repr(walk)


class Balanced(HTMLParser):
    """Fails on HTML whose elements do not close in order."""

    VOID = ("br", "img", "hr", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    @classmethod
    def check(cls, html: str) -> None:
        parser = cls()
        parser.feed(html)
        assert parser.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


# ---------------------------------------------------------------- the widget


def test_the_widget_moves_the_explorer_and_says_the_same_without_a_kernel() -> None:
    pytest.importorskip("ipywidgets")
    walk = explorer("anthropic-messages/tool_call")
    widget = walk.widget()
    widget.buttons["next"].click()
    assert walk.step.number == 2
    widget.buttons["last"].click()
    widget.buttons["next"].click()
    assert walk.step.number == 20
    widget.buttons["first"].click()
    widget.buttons["prev"].click()
    assert walk.step.number == 1
    widget.jump.value = "content_block_stop"
    assert (walk.step.number, widget.jump.value, widget.player.value) == (8, "jump to", 8)
    widget.jump.value = "content_block_stop"
    assert walk.step.number == 12
    bundle = widget._repr_mimebundle_()
    assert bundle["text/plain"] == repr(walk)
    assert bundle["text/html"] == walk._repr_html_() == widget.page.value
    assert "application/vnd.jupyter.widget-view+json" in bundle
