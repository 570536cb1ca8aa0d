"""The public names are a contract: which they are, that each can be imported, and what importing costs."""

from __future__ import annotations

import ast
import importlib
import statistics
import subprocess
import sys
import time
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import lessonlib

CONTRACT = """
    Client AsyncClient Retry Fallback
    OpenAIResponses AnthropicMessages GeminiInteractions OpenAIChat GeminiGenerateContent WIRES
    Request Message Text Image Reasoning ToolCall ToolResult Opaque Tool tool Response Usage StopReason
    TextDelta ReasoningDelta ArgumentsDelta PartDone Done collect run_tools arun_tools
    LessonError APIError IncompleteStream ProtocolError NotAStream TransportError MaxSteps is_retryable
"""

HEAVY = ("pandas", "matplotlib", "ipywidgets", "IPython", "uvicorn", "tiktoken", "httpx", "openai", "anthropic")


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_all_is_the_contract() -> None:
    assert sorted(lessonlib.__all__) == sorted(CONTRACT.split())


@pytest.mark.parametrize("name", CONTRACT.split())
def test_name_can_be_imported(name: str) -> None:
    value = getattr(lessonlib, name)
    assert value is getattr(importlib.import_module(lessonlib._HOME[name]), name)
    assert name in dir(lessonlib)


def test_star_import_gives_all_names() -> None:
    assert in_a_fresh_process("from lessonlib import *; print(Client.__name__, collect.__name__)") == "Client collect"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Klient'"):
        _ = lessonlib.Klient  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="Klient"):
        exec("from lessonlib import Klient")


def test_type_checkers_and_the_lazy_import_see_the_same_names() -> None:
    tree = ast.parse(Path(lessonlib.__file__).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    seen = {
        alias.name: node.module
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == lessonlib._HOME
    assert sorted(lessonlib._HOME) == sorted(lessonlib.__all__)


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(lessonlib.__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert lessonlib.__version__ == project["project"]["version"]


def test_import_loads_nothing_heavy() -> None:
    loaded = in_a_fresh_process("import sys, lessonlib; print(*sys.modules)").split()
    assert [name for name in (*HEAVY, "pydantic") if name in loaded] == []


def test_no_public_name_needs_the_network_or_a_plot() -> None:
    """httpx comes with the first request, tiktoken with the first count; a client can be made without either."""
    code = "import sys; from lessonlib import *; Client(AnthropicMessages(model='m')); print(*sys.modules)"
    loaded = in_a_fresh_process(code).split()
    assert [name for name in HEAVY if name in loaded] == []


@pytest.mark.skipif(find_spec("openai") is None, reason="the openai package is not installed: nothing to compare with")
def test_import_takes_at_most_a_third_of_openai() -> None:
    """Medians of fresh processes, taken in turn so that a busy machine slows both, less what Python itself takes."""
    times: dict[str, list[float]] = {"pass": [], "import lessonlib": [], "import openai": []}
    for _ in range(5):
        for code, taken in times.items():
            start = time.perf_counter()
            in_a_fresh_process(code)
            taken.append(time.perf_counter() - start)
    nothing, ours, theirs = (statistics.median(taken) for taken in times.values())
    assert ours - nothing <= (theirs - nothing) / 3
