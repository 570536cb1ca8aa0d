"""What the code itself must not do: run what it was given, open doors, or be built differently from the same source."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lessonlib.explain import read
from lessonlib.lab import start
from lessonlib.lab.grading.process import Ended, Limits, Student
from lessonlib.sim import Simulator
from lessonlib.sim.server import HOST, LOOPBACK_NAMES, running
from lessonlib.tape import Recorder

ROOT = Path(__file__).parents[2]
SOURCES = sorted(file for file in (ROOT / "lessonlib").rglob("*.py"))

# ---------------------------------------------------------------- nothing is run that was read

RUNS_CODE = {
    "lab/grading/student.py": {"compile", "eval", "exec"},  # the learner's own cells, in a process of their own with limits
}
"""The only places where text becomes code, and what they use for it."""

DANGEROUS = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"}
MARSHAL = {"lab/exercises.py": {"marshal"}}
"""An author's check of our own release: whether an answer hides in it in this form. It builds values and runs nothing."""


def name(file: Path) -> str:
    return file.relative_to(ROOT / "lessonlib").as_posix()


@pytest.mark.parametrize("file", SOURCES, ids=name)
def test_text_becomes_code_only_where_the_lab_runs_what_the_learner_wrote(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in DANGEROUS}
    assert used == RUNS_CODE.get(name(file), set())


@pytest.mark.parametrize("file", SOURCES, ids=name)
def test_nothing_is_unpickled_and_no_shell_is_started(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported & MODULES <= MARSHAL.get(name(file), set())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not [call for call in calls for word in call.keywords if word.arg == "shell"]
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    assert not [node.attr for node in attributes if node.value.id == "os" and node.attr in ("system", "popen")]  # type: ignore[attr-defined]


# ---------------------------------------------------------------- the learner's process


def test_a_cell_that_never_ends_is_ended() -> None:
    with Student(Limits(seconds=6, answer=1)) as student:
        assert student.run("while True: pass") != ""
        with pytest.raises(Ended):
            student.value("x")


@pytest.mark.skipif(os.name != "posix", reason="the limit of the address space is POSIX")
def test_a_cell_that_takes_all_memory_is_refused_it() -> None:
    with Student(Limits(seconds=30, answer=15, memory=2 << 30)) as student:
        assert student.run("x = bytearray(8 << 30)") == "MemoryError"


def test_a_cell_has_no_key_and_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-inv-any-1234567890")
    with Student(Limits(seconds=30)) as student:
        assert student.run("import os, socket; assert not [name for name in os.environ if name.endswith('_API_KEY')]") == ""
        assert student.run("socket.create_connection(('127.0.0.1', 9))") == "OSError"


# ---------------------------------------------------------------- the local server


def test_the_simulator_listens_on_this_machine_only_and_to_its_own_names() -> None:
    assert HOST == "127.0.0.1"
    assert {"127.0.0.1", "localhost", "[::1]"} == LOOPBACK_NAMES


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "169.254.169.254", ""]
)
def test_a_web_page_cannot_reach_the_simulator_by_a_name_of_its_own(host: str) -> None:
    """DNS rebinding: the name points to this machine, and the browser believes that the page may ask it."""
    with running(Simulator()) as url, socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=10) as sock:
        sock.sendall(f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while more := sock.recv(65536):
            answer += more
    assert answer.split(b" ")[1] in (b"403", b"400")


# ---------------------------------------------------------------- folders


def test_the_course_is_written_into_the_given_folder_and_nowhere_else(tmp_path: Path) -> None:
    target = tmp_path / "inside" / "course"
    done = start.start(target)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert done.written
    assert all(target in file.parents for file in files)


def test_a_tape_is_written_into_the_given_folder_and_nowhere_else(tmp_path: Path) -> None:
    Recorder(tmp_path / "tape")
    assert list(tmp_path.iterdir()) == []  # nothing before the first exchange


def test_a_file_of_a_capture_is_read_by_the_path_that_was_given_only(tmp_path: Path) -> None:
    """No name inside a capture is ever opened: a HAR file may name any."""
    har = {"log": {"entries": [{"request": {"url": "https://api.openai.com/v1/responses"},
                                "response": {"content": {"_file": "/etc/passwd", "text": "{}"}}}]}}  # fmt: skip
    file = tmp_path / "a.har"
    file.write_text(json.dumps(har), encoding="utf-8")
    assert [capture.body for capture in read(file)] == [b"{}"]


# ---------------------------------------------------------------- releases

HATCHLING = importlib.util.find_spec("hatchling") is not None


@pytest.mark.skipif(not HATCHLING, reason="the build backend is not installed")
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_two_builds_of_a_release_are_the_same_to_the_byte(tmp_path: Path, kind: str) -> None:
    """SOURCE_DATE_EPOCH is set as a release sets it; the second build runs later, elsewhere and with another hash seed."""
    found = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        environment = {
            **os.environ,
            "SOURCE_DATE_EPOCH": "1790000000",
            "PYTHONHASHSEED": str(number),
            "TZ": ("UTC", "Asia/Tokyo")[number - 1],
        }
        command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=100)
        (built,) = folder.iterdir()
        found.append((built.name, hashlib.sha256(built.read_bytes()).hexdigest()))
    assert found[0] == found[1]


def test_dependencies_are_audited_where_the_tests_run() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "pip-audit" in workflow
