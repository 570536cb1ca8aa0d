"""A key is in no output of any kind. Everything is run with a key set, against services that repeat it where they can; then
everything that came out is searched for it: texts, logs, errors with their causes, files, each also in its usual disguises.
"""

from __future__ import annotations

import base64
import copy
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from lessonlib import cli
from lessonlib.client import Client
from lessonlib.errors import LessonError
from lessonlib.lab import progress
from lessonlib.tape import Player, Recorder
from lessonlib.types import Request
from lessonlib.wire import WIRES
from tests.contract import TESTDATA
from tests.servers import Handler, Peer, Server

KEY = "sk-inv-SECRET-abc+/def=1234567890"
DISGUISES = (
    KEY,
    base64.b64encode(KEY.encode()).decode().rstrip("="),
    quote(KEY, safe=""),
    json.dumps(KEY)[1:-1],
    KEY[::-1],
    KEY[:16],
)

Serve = Callable[[Handler], Server]
every_wire = pytest.mark.parametrize("name", WIRES)


def leaks(text: str) -> list[str]:
    return [form for form in DISGUISES if form in text]


@pytest.fixture(autouse=True)
def _key_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for wire in WIRES.values():
        for variable in wire.key_variables:
            monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "home"))


def echo(peer: Peer) -> None:
    """An error that repeats the whole request, key and all: in the body, in headers, in the reason."""
    sent = dict(peer.asked.headers)
    body = json.dumps({"error": {"message": f"bad key {sent}", "type": KEY, "code": KEY, "param": sent}}).encode()
    peer.answer(body, 401, {"x-request-id": KEY, "x-echo": KEY, "set-cookie": f"k={KEY}"})


def broken(peer: Peer) -> None:
    """A stream that breaks off in the middle and names the key before."""
    peer.head(200, {"content-type": "text/event-stream"})
    peer.chunk(f"key {KEY}\n\n".encode() + b'data: {"error": {"message": "' + KEY.encode() + b'"}}\n\n')
    peer.reset()


def page(peer: Peer) -> None:
    """A proxy's page instead of a stream."""
    peer.answer(f"<html>your key {KEY} is fine</html>".encode(), 200, {"content-type": "text/html"})


def told(error: BaseException) -> Iterator[str]:
    """All that is printed of an error: text, repr, fields, traceback with causes. Variables of its frames: the request's are
    searched in tests/test_client.py; the bytes of an answer are the service's own, and only a debugger shows those."""
    yield from (str(error), repr(error), repr(error.args), repr(vars(error)))
    full = traceback.TracebackException.from_exception(error)
    yield "".join(full.format())


@every_wire
@pytest.mark.parametrize("handler", [echo, broken, page])
@pytest.mark.parametrize("stream", [True, False])
def test_no_error_and_no_log_holds_the_key(
    name: str,
    handler: Handler,
    stream: bool,
    serve: Serve,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    client = Client(WIRES[name]("m", base_url=serve(handler).url))
    with client, pytest.raises(LessonError) as caught:
        list(client.stream(Request(messages="Hi"))) if stream else client.generate(Request(messages="Hi"))
    for text in told(caught.value):
        assert leaks(text) == []
    assert leaks(caplog.text + "".join(repr(record.args) for record in caplog.records)) == []
    assert leaks("".join(capfd.readouterr())) == []


@every_wire
def test_no_repr_copy_or_pickle_holds_the_key(name: str) -> None:
    wire = WIRES[name]("m")
    assert wire.has_key
    things = [wire, copy.copy(wire), vars(wire), wire.encode(Request(messages="Hi")), Client(wire), wire.decoder()]
    assert [leaks(repr(thing) + str(thing)) for thing in things] == [[]] * len(things)
    with pytest.raises(TypeError):
        pickle.dumps(wire)


@every_wire
@pytest.mark.parametrize("handler", [echo, broken, page])
def test_no_tape_and_no_explanation_of_it_holds_the_key(name: str, handler: Handler, serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "tape"
    url = serve(handler).url
    client = Client(WIRES[name]("m", base_url=url), transport=Recorder(folder))
    with client, pytest.raises(LessonError):
        list(client.stream(Request(messages="Hi")))
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    for file in files:
        assert leaks(file.read_bytes().decode("utf-8", "replace")) == [], file.name
    for options in ([], ["--json", "--problems"], ["--all"]):
        assert leaks(CliRunner().invoke(cli.lesson, ["explain", *options, str(folder)]).output) == []
    with Client(WIRES[name]("m", base_url=url), transport=Player(folder)) as again, pytest.raises(LessonError) as caught:
        list(again.stream(Request(messages="Hi")))
    assert [text for text in told(caught.value) if leaks(text)] == []


@pytest.mark.parametrize("provider", cli.PROVIDERS)
@pytest.mark.parametrize("handler", [echo, broken, page])
def test_no_command_prints_the_key(provider: str, handler: Handler, serve: Serve, tmp_path: Path) -> None:
    run = CliRunner().invoke
    url = serve(handler).url
    outputs = [
        run(cli.lesson, ["chat", "-p", provider, "--live", "--base-url", url, "Hi"]),
        run(cli.lesson, ["chat", "-p", provider, "--live", "--no-stream", "--base-url", url, "--tools", "Hi"]),
        run(cli.lesson, ["chat", "-p", provider, "Hi"]),
        run(cli.lesson, ["curl", "-p", provider, "Hi"]),
        run(cli.lesson, ["curl", "-p", provider, "--base-url", url, "--tools", "Hi"]),
    ]
    assert [leaks(result.output + repr(result.exception)) for result in outputs] == [[]] * len(outputs)


def test_what_the_lab_keeps_and_shows_holds_no_key(tmp_path: Path) -> None:
    from lessonlib.lab import viewer

    shown = viewer(Request(messages="Hi"))
    assert leaks(repr(shown) + shown._repr_html_()) == []
    assert leaks(repr(shown.curl("anthropic-messages")) + repr(shown["anthropic-messages"])) == []
    progress.note_read("01")
    assert leaks(repr(progress.show())) == []
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert leaks(file.read_text(encoding="utf-8", errors="replace")) == []


def test_no_file_of_the_repository_holds_anything_like_a_key() -> None:
    """Vendors' keys by their form, in every fixture, notebook, page and source."""
    import re

    forms = re.compile(
        rb"\bsk-(?!inv-)(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{24,}|\bAIza[0-9A-Za-z_-]{35}|\bsk-ant-api03-[A-Za-z0-9_-]{20,}"
    )
    root = TESTDATA.parent
    folders = ("lessonlib", "testdata", "notebooks", "exercises", "solutions", "docs", "tests", "tools")
    files = [
        file
        for folder in folders
        for file in (root / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]
    assert len(files) > 300
    found = {str(file.relative_to(root)): match[0] for file in files if (match := forms.search(file.read_bytes()))}
    assert found == {}


def test_the_search_would_have_found_it() -> None:
    def handler() -> Any:
        raise LessonError(f"the key {KEY}")

    with pytest.raises(LessonError) as caught:
        handler()
    assert all(leaks(text) for text in told(caught.value))
    assert leaks(quote(KEY, safe="")) and leaks(base64.b64encode(KEY.encode()).decode())  # noqa: PT018
