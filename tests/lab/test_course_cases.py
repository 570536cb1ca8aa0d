"""Reports from other courses, as tests of ours: what broke there must not break here. Each test names its source."""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lessonlib.client import AsyncClient
from lessonlib.lab import client, lint
from lessonlib.lab.environment import REQUIRED, WrongEnvironment, installed, problem, ready
from lessonlib.lab.offline import KEY
from lessonlib.sim import SimTransport
from lessonlib.types import Message, Request
from lessonlib.wire import AnthropicMessages
from tests.lab.test_lint import code, failure, notebook

ROOT = Path(__file__).parents[2]
REQUEST = Request(messages=[Message.user("Hello")])


# ---------------------------------------------------------------- outputs


def masked(text: str) -> str:
    """`text` as nbval compares it, by the file that the Makefile names."""
    config = configparser.RawConfigParser()
    config.read(ROOT / "testdata/nbval.cfg", encoding="utf-8")
    for section in config.sections():
        text = re.sub(config[section]["regex"], config[section]["replace"], text)
    return text


def test_addresses_durations_and_ids_are_masked_and_nothing_else_is() -> None:
    """computationalmodelling/nbval #125: where everything volatile fails, the check gets switched off."""
    stored = "<Client at 0x7f3a00aa1100> took 1.83 s id=resp_0a1b"
    assert masked(stored) == masked("<Client at 0x7fee12345678> took 0.94 s id=resp_ff99")
    assert masked(stored) != masked("<Server at 0x7f3a00aa1100> took 1.83 s id=resp_0a1b")
    for text in ("call_1aae3c4f561b3c0048a8ff5a", "E5 8C 97", "wait 3.0 s", "1,030 tokens"):
        assert masked(text) == text


def test_the_makefile_uses_the_masks() -> None:
    assert "--nbval-sanitize-with testdata/nbval.cfg" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_a_learners_own_progress_is_not_compared() -> None:
    """A lesson ends with how far one is; what is stored is what a new learner sees."""
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([\w ]+):.*export LESSON_PROGRESS = off", make, re.MULTILINE)
    comparing = re.findall(r"^(\w+):[^\n]*\n(?:\t[^\n]*\n)*?\t[^\n]*--nbval", make, re.MULTILINE)
    assert comparing
    assert set(comparing) <= {name for line in targets for name in line.split()}


def test_an_error_that_nobody_noticed_is_noticed() -> None:
    """openai-cookbook PR 926: stored tracebacks, because the run allowed errors."""
    cells = notebook(
        code("a", failure("IndexError"), name="e1"),
        code("b", failure("IncompleteStream"), name="e2", count=2, tags=["raises-exception"]),
        code("c", name="e3", count=3, tags=["raises-exception"]),
        card=False,
    )
    assert [fault.where for fault in lint.lint(cells, checks=[lint.errors])] == ["cell e1-0", "cell e3-2"]


# ---------------------------------------------------------------- widgets


def test_a_widget_without_its_kernel_still_says_something() -> None:
    """ipywidgets #3773: after the kernel has gone, `model not found` is all that a reader sees."""

    def widget(**data: str) -> dict[str, Any]:
        view = {"application/vnd.jupyter.widget-view+json": {"model_id": "ab12"}}
        return {"output_type": "display_data", "metadata": {}, "data": {**view, **data}}

    bad = notebook(code("w", widget(**{"text/plain": "IntSlider(value=3)"}), widget()), card=False)
    words = [fault.message for fault in lint.lint(bad, checks=[lint.form]) if fault.rule == "widget"]
    assert words == [
        "a widget's output has only a repr: say what a reader should see", "a widget's output has no readable form",
    ]  # fmt: skip
    good = notebook(code("w", widget(**{"text/plain": "x", "text/html": "<p>step 1</p>"})), card=False)
    assert not [fault for fault in lint.lint(good, checks=[lint.form]) if fault.rule == "widget"]


# ---------------------------------------------------------------- asyncio


def test_calls_work_in_a_cell_where_a_loop_is_running() -> None:
    """pydantic-ai #3014: the first example of the documentation failed in every notebook."""
    pytest.importorskip("httpx")

    async def cell() -> tuple[str, str, str]:
        plain = client("anthropic").generate(REQUEST).text
        other = AsyncClient(AnthropicMessages(client("anthropic").wire.model, api_key=KEY), transport=SimTransport())
        async with other:
            awaited = (await other.generate(REQUEST)).text
            coroutine = other.generate(REQUEST)
            with pytest.raises(RuntimeError, match="cannot be called from a running event loop") as caught:
                asyncio.run(coroutine)
            coroutine.close()
        return plain, awaited, str(caught.value)

    plain, awaited, _ = asyncio.run(cell())
    assert plain == awaited != ""


def test_the_lesson_says_why_asyncio_run_fails_in_a_cell() -> None:
    """And shows the form that works: a bare `await`."""
    content = json.loads((ROOT / "notebooks/06_stream_state_machine.ipynb").read_text(encoding="utf-8"))
    texts = [lint.source(cell) for _, cell in lint.cells(content, "markdown")]
    assert [text for text in texts if "asyncio.run" in text and "await" in text]
    assert not [cell for _, cell in lint.cells(content, "code") if "asyncio.run(" in lint.source(cell)]


# ---------------------------------------------------------------- models


def test_a_models_name_stands_in_one_place() -> None:
    """anthropics/courses #181: a model was retired, and every cell that named it failed."""
    cells = notebook(
        code("MODEL = 'brot-3'", name="m1"), code("ask(model='brot-3-mini-20240307')", name="m2", count=2),
        code("ask()", name="m3", count=3, tags=["raises-exception"]), card=False,
    )  # fmt: skip
    found = [(fault.where, fault.rule) for fault in lint.lint(cells, checks=[lint.models, lint.errors])]
    assert found == [("cell m2-1", "models"), ("cell m3-2", "errors")]


# ---------------------------------------------------------------- the kernel


def test_a_wrong_environment_is_one_line_with_the_command_that_helps() -> None:
    """LLMs-from-scratch #8: the packages were installed, but for another Python than the kernel's."""
    words = problem({"coursepack": ">=1.2"}, {"coursepack": "1.0"}.get, "/opt/other/bin/python")
    assert words is not None
    for part in ("/opt/other/bin/python", "coursepack", "1.0", "%pip install", '"coursepack>=1.2"'):
        assert part in words
    assert "\n" not in words


@pytest.mark.parametrize(
    ("there", "wanted", "fits"),
    [("1.2", ">=1.2", True), ("1.10", ">=1.9", True), ("2.0.0rc1", ">=1.9", True), ("1.1.9", ">=1.2", False),
     (None, ">=1", False)],
)  # fmt: skip
def test_versions_are_compared_as_numbers(there: str | None, wanted: str, fits: bool) -> None:
    assert (problem({"x": wanted}, lambda name: there, "python") is None) == fits


def test_the_error_shows_no_frames(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    error = WrongEnvironment("this kernel runs ...")
    assert error._render_traceback_() == ["WrongEnvironment: this kernel runs ..."]
    monkeypatch.setattr("lessonlib.lab.environment.problem", lambda: "no numpy")
    with pytest.raises(WrongEnvironment, match="no numpy"):
        ready()
    monkeypatch.setattr("lessonlib.lab.environment.problem", lambda: None)
    ready()
    assert capsys.readouterr().out == "This kernel has what the lessons need.\n"


def test_what_is_required_is_the_extra_lab() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = re.search(r"^lab = \[(.*)\]", pyproject, re.MULTILINE)
    assert extra is not None
    for name, wanted in REQUIRED.items():
        assert f'"{name}{wanted}' in extra[1]
    assert installed("no-such-package-anywhere") is None


# ---------------------------------------------------------------- portability


def test_tools_and_lessons_name_their_encoding(tmp_path: Path) -> None:
    """nbconvert #1868: Windows reads and writes with its own code page. Here every open without an encoding is an error."""
    words = "Größe → 🚲"
    (tmp_path / "words.ipynb").write_bytes(
        ('{"cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "' + words + '"}], "metadata": {}, '
         '"nbformat": 4, "nbformat_minor": 5}').encode()
    )  # fmt: skip
    script = f"""
import pathlib, warnings
import nbformat, lessonlib.lab.live, lessonlib.lab.widgets  # what others import is not ours to judge
warnings.simplefilter("error", EncodingWarning)
from lessonlib.lab import author, lint, start, explorer, overview, viewer
from lessonlib.lab.predict import reveal
folder = pathlib.Path({str(tmp_path)!r})
assert author.main(["tidy", str(folder / "words.ipynb")]) == 0
lint.main([str(folder / "words.ipynb")])
start.start(folder / "course")
repr(explorer("anthropic-messages/unicode", at=-1)), repr(overview()), repr(reveal("00.first", "a"))
"""
    command = [sys.executable, "-X", "utf8=0", "-X", "warn_default_encoding", "-c", script]
    run = subprocess.run(command, capture_output=True, timeout=110, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr.decode("utf-8", "replace")
    assert words.encode() in (tmp_path / "words.ipynb").read_bytes()


def test_a_console_of_few_characters_is_printed_to_without_an_error(tmp_path: Path) -> None:
    """fastai PR 2334: printing to a cp1252 console raised UnicodeEncodeError."""
    script = "import sys; sys.argv = ['lesson', 'start', sys.argv[1]]; from lessonlib.cli import main; main()"
    target = tmp_path / "größe"
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PATH": "", "SYSTEMROOT": "C:\\Windows"}
    command = [sys.executable, "-c", script, str(target)]
    run = subprocess.run(command, env=env, capture_output=True, timeout=110, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert b"The course is in" in run.stdout
