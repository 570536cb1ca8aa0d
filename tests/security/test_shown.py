"""What a model or a capture says is shown, never obeyed: not by a browser, not by a terminal."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from click.testing import CliRunner

from lessonlib import cli
from lessonlib.curl import KEY as KEY_MARK
from lessonlib.curl import for_powershell, for_shell
from lessonlib.explain import explain, unwrap
from lessonlib.explain.render import to_pipe, to_terminal
from lessonlib.lab import explorer, viewer
from lessonlib.lab.notice import Notice, code, folded, lines, paragraph, table, title
from lessonlib.lab.page import Table
from lessonlib.types import Message, Request, Text, Tool, ToolCall, ToolResult
from lessonlib.wire import WIRES
from tests.security.strings import ESCAPES, HARMFUL, INJECTIONS, TAG, injected
from tests.servers import Peer

ALL = (*INJECTIONS, *ESCAPES)


def streams(text: str) -> dict[str, bytes]:
    """A stream of each wire in which everything that can be a text is this one."""
    call = json.dumps({"q": text})
    events: dict[str, list[dict[str, Any]]] = {
        "anthropic-messages": [
            {"type": "message_start", "message": {"id": text, "model": text, "content": [], "usage": {"input_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1,
             "content_block": {"type": "tool_use", "id": text, "name": text, "input": {}}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": call}},
            {"type": "content_block_stop", "index": 1},
            {"type": "content_block_start", "index": 2, "content_block": {"type": text, "x": text}},
            {"type": "content_block_stop", "index": 2},
            {"type": text, "x": text},
            {"type": "message_delta", "delta": {"stop_reason": text}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ],
        "openai-chat": [
            {"id": text, "model": text, "choices": [{"index": 0, "delta": {"content": text, "reasoning_content": text}}]},
            {"id": text, "choices": [{"index": 0, "delta": {"tool_calls": [
                {"index": 0, "id": text, "function": {"name": text, "arguments": call}}]}}]},
            {"id": text, "choices": [{"index": 0, "delta": {text: text}, "finish_reason": text}]},
        ],
        "openai-responses": [
            {"type": "response.created", "response": {"id": text, "model": text, "status": "in_progress", "output": []}},
            {"type": "error", "code": text, "message": text, "param": text, "sequence_number": 1},
        ],
        "gemini-generate-content": [
            {"candidates": [{"content": {"parts": [{"text": text}, {"functionCall": {"name": text, "args": {"q": text}}}]},
                             "finishReason": text}], "modelVersion": text, "responseId": text},
        ],
        "gemini-interactions": [
            {"event_type": "interaction.created", "interaction": {"id": text, "model": text, "status": "in_progress"}},
            {"event_type": "step.start", "index": 0,
             "step": {"type": "model_output", "content": [{"type": "text", "text": text}]}},
            {"event_type": "step.stop", "index": 0},
            {"event_type": text, "x": text},
            {"event_type": "interaction.completed", "interaction": {"id": text, "status": "completed"}},
        ],
    }  # fmt: skip
    return {
        name: b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in payloads)
        for name, payloads in events.items()
    }


# ---------------------------------------------------------------- in a page


@pytest.mark.parametrize("text", ALL, ids=ascii)
def test_the_explorer_escapes_what_came(text: str) -> None:
    for name, data in streams(text).items():
        steps = len(data.split(b"\n\n")) - 1
        for at in range(1, steps + 1):
            shown = explorer(data, wire=name, at=at)
            assert injected(shown._repr_html_()) == []
            assert not HARMFUL.search(repr(shown))
        assert not HARMFUL.search(shown._repr_html_())


@pytest.mark.parametrize("text", ALL, ids=ascii)
def test_the_viewer_escapes_what_is_asked(text: str) -> None:
    request = Request(
        messages=[
            Message.user(text),
            Message.assistant(Text(text=text), ToolCall(call_id="c1", name="f", args={"q": text})),
            Message.user(ToolResult(call_id="c1", content=text)),
        ],
        system=text,
        tools=[Tool(name="f", description=text, parameters={"type": "object", "properties": {"q": {"description": text}}})],
    )
    shown = viewer(request)
    assert injected(shown._repr_html_()) == []
    assert not HARMFUL.search(repr(shown))


@pytest.mark.parametrize("text", ALL, ids=ascii)
def test_tables_and_notices_escape_their_cells(text: str) -> None:
    made = Table([text, "b"], [[text, text], ["1", "2"]])
    assert injected(made._repr_html_()) == []
    assert not HARMFUL.search(repr(made))
    inside = table([text], [[text]])
    notice = Notice(title(text), paragraph(text), lines([text]), code(text), folded(text, paragraph(text)), inside)
    assert injected(notice._repr_html_()) == []


def test_the_parser_would_have_seen_it() -> None:
    """The checks above can fail: each injection works where nobody escapes."""
    assert injected(f"<td>{TAG}</td>") == ["xinject", "xinject onxinject=1"]
    assert injected('<a title="" onxinject="1">')
    assert injected('<a href=" javascript:alert(1)">')
    assert injected("<b>fine</b>") == []
    assert all(HARMFUL.search(text) for text in ESCAPES)


# ---------------------------------------------------------------- on a terminal


@pytest.mark.parametrize("text", ESCAPES, ids=ascii)
def test_explain_prints_nothing_that_a_terminal_acts_on(text: str) -> None:
    from rich.console import Console

    for data in streams(text).values():
        for body in (data, data[: len(data) // 2], text.encode(), json.dumps({"error": {"message": text}}).encode()):
            for capture in unwrap(body, f"name{text}"):
                report = explain(capture)
                pipe, terminal = io.StringIO(), io.StringIO()
                to_pipe(report, pipe, everything=True)
                to_terminal(report, Console(file=terminal, force_terminal=False, width=100), everything=True)
                assert not HARMFUL.search(pipe.getvalue())
                assert not HARMFUL.search(terminal.getvalue())


@pytest.mark.parametrize("text", ESCAPES, ids=ascii)
@pytest.mark.parametrize("name", WIRES)
def test_curl_prints_nothing_that_a_terminal_acts_on(text: str, name: str) -> None:
    encoded = WIRES[name]("m", api_key=KEY_MARK, base_url="http://localhost").encode(
        Request(messages=f"a{text}"), stream=True
    )
    for write in (for_shell, for_powershell):
        command = write(encoded, "SOME_KEY", stream=True)
        assert not HARMFUL.search(command)
        assert KEY_MARK not in command


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("text", ESCAPES, ids=ascii)
def test_chat_writes_an_answer_to_a_terminal_as_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pipe the text goes as it is: what a program reads must be what the model wrote."""
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    page = cli._Page()
    page.write(f"before{text}after")
    page.end_line()
    assert not HARMFUL.search(out.getvalue())
    assert out.getvalue().startswith("before")


@pytest.mark.parametrize("text", ESCAPES, ids=ascii)
def test_an_error_of_the_service_is_one_harmless_line(text: str, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(peer: Peer) -> None:
        peer.answer(json.dumps({"error": {"message": f"no{text}", "type": text, "code": text}}).encode(), 400)

    monkeypatch.setenv("OPENAI_API_KEY", "sk-inv-any-1234567890")
    result = CliRunner().invoke(cli.lesson, ["chat", "--live", "--base-url", serve(handler).url, "-p", "openai", "Hi"])
    assert result.exit_code == 1
    assert not HARMFUL.search(result.output)
    assert len(result.output.strip().splitlines()) == 1
