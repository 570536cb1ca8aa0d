"""Many runs on many copies of the library, without starting Python and importing pytest for each of them.

    with Prover() as prover:
        prover.course_suite(copy)                 what `Scratch.run` gives
        prover.full_suite(copy, "tests/...")      exit code and output of these tests on the copy

One process imports what is not lessonlib (pytest, httpx, pydantic, ...), then forks for each run; the child puts the copy
first on its path and imports lessonlib from there. So no run sees anything of another, as before, and the imports of others
are paid once. Where there is no fork (Windows), or threads make it unsafe (macOS), each run is a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lessonlib.lab import scratch
from lessonlib.lab.scratch import Run, Scratch

ROOT = Path(__file__).parents[2]
FORKS = sys.platform == "linux"
LONGEST = 100.0
"""Seconds for one run."""

SERVER = """
import json, os, signal, sys
import pytest, httpx, pydantic, pydantic_core, tiktoken, asyncio, email.message, importlib.metadata, ssl, tomllib

assert not any(name.partition(".")[0] == "lessonlib" for name in sys.modules)
answers = os.fdopen(os.dup(1), "w")

def work(job):
    os.chdir(job["cwd"])
    for place in (1, 2):
        os.dup2(os.open(job["printed"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), place)
    os.environ.update(job["environment"])
    sys.path.insert(0, job["folder"])
    import lessonlib
    sys.argv = job["argv"]
    if job["suite"] == "course":
        from lessonlib.lab.course_suite.__main__ import main
        return main(sys.argv[1:])
    return pytest.main(sys.argv[1:])

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm(int(job["seconds"]))
        code = 99
        try:
            code = int(work(job))
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    answers.write(json.dumps(os.waitstatus_to_exitcode(status)) + "\\n")
    answers.flush()
"""

WITHOUT = ("-p", "no:nbval", "-p", "no:xdist", "-p", "no:xdist.looponfail")
"""Plugins that take a second to import and that no test of a break needs."""

START = "import lessonlib, pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
"""The library is imported first, because pytest puts the checkout before everything."""


class Prover:
    """The process that forks, as long as it is needed."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._server is not None:
            self._server.communicate(timeout=10)

    def course_suite(self, copy: Scratch, *own: Path) -> Run:
        """The course suite on the copy, or tests of one's own."""
        if not FORKS:
            return copy.run(*own)
        out = copy.folder / "result.json"
        out.unlink(missing_ok=True)
        plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
        done = self._run("course", copy, copy.folder, [str(out), *map(str, own)], plain)
        return scratch._read(out, done, copy.folder)

    def full_suite(self, copy: Scratch, *tests: str) -> subprocess.CompletedProcess[str]:
        """Some tests of tests/ on the copy."""
        options = ["-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider", *WITHOUT, *tests]
        if FORKS:
            return self._run("full", copy, ROOT, options, {"PYTEST_ADDOPTS": ""})
        environment = {**os.environ, "PYTHONPATH": str(copy.folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""}
        return subprocess.run(
            [sys.executable, "-P", "-c", START, *options], cwd=ROOT, env=environment, capture_output=True, text=True,
            encoding="utf-8", check=False, timeout=LONGEST,
        )  # fmt: skip

    def _run(
        self, suite: str, copy: Scratch, cwd: Path, arguments: list[str], environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        server = self._started()
        assert server.stdin is not None
        assert server.stdout is not None
        printed = copy.folder / "printed.txt"
        printed.unlink(missing_ok=True)
        job: dict[str, Any] = {
            "suite": suite, "folder": str(copy.folder), "cwd": str(cwd), "argv": [suite, *arguments],
            "printed": str(printed), "environment": environment, "seconds": LONGEST,
        }  # fmt: skip
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        code = json.loads(server.stdout.readline())
        text = printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else ""
        return subprocess.CompletedProcess(arguments, code, text, text)

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))}
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                encoding="utf-8", env={**kept, "PYTHONIOENCODING": "utf-8"},
            )  # fmt: skip
        return self._server
