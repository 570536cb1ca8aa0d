"""A scratch copy of the library that may be broken: copy, edit, run the course suite in a subprocess, look, throw away.

    with Scratch() as scratch:
        scratch.replace("retry.py", old, new)
        run = scratch.run()
        run.failed            # the tests that failed, each with its behaviour, error and assertion

The installed package is never touched. The subprocess imports the copy (it is first on the path, and the run says where the
library came from), loads no pytest plugins, and has a time limit, because an edit can make anything loop for ever.

What this file does not do: it knows no break, no prediction and no learner (breaks.py, progress.py).
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lessonlib.lab.confined import environment
from lessonlib.lab.tracking import track

PACKAGE = Path(__file__).resolve().parents[1]
TIME_LIMIT = 60.0
"""Seconds for one run of the course suite; it takes about one."""

MEMORY = 2 * 1024**3
"""Bytes of address space for it: an edit, or a test, can also make something grow for ever."""

LOOK = 0.05
"""Seconds between two looks at how far it is."""


@dataclass(frozen=True, slots=True)
class Tested:
    """How one test ended. behaviour: the key of what it tests, "" for a learner's own test. assertion: the failing lines."""

    test: str
    behaviour: str
    passed: bool
    error: str = ""
    assertion: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the suite. trouble: why there is no result at all (the copy does not import, or ran into the limit)."""

    tests: tuple[Tested, ...] = ()
    trouble: str = ""

    @property
    def failed(self) -> tuple[Tested, ...]:
        """The tests that failed."""
        return tuple(test for test in self.tests if not test.passed)

    @property
    def behaviours(self) -> tuple[str, ...]:
        """The behaviours with a failed test, each once, in the order of the tests."""
        return tuple(dict.fromkeys(test.behaviour for test in self.failed if test.behaviour))


class ScratchError(Exception):
    """The copy cannot be edited so: the text does not occur, or occurs more than once. The message is for the learner."""

    def _render_traceback_(self) -> list[str]:
        """IPython asks for this instead of printing the frames: the message says all."""
        return [f"{type(self).__name__}: {self}"]


class Scratch:
    """A copy of the package in a temporary folder, removed at the end."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lessonlib-scratch-"))
        shutil.copytree(PACKAGE, self.folder / PACKAGE.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Removes the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, file: str) -> Path:
        """Where a file of the package ("wire/base.py") is in the copy. Raises ScratchError if there is none."""
        return _inside(self.folder / PACKAGE.name, file)

    def read(self, file: str) -> str:
        """The text of a file in the copy."""
        return self.path(file).read_text(encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        """Replaces a whole file. Its compiled form goes too: a new file of the same size and second would not be seen."""
        path = self.path(file)
        path.write_text(text, encoding="utf-8", newline="\n")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()

    def replace(self, file: str, old: str, new: str) -> None:
        """Replaces a text that occurs exactly once."""
        text = self.read(file)
        if (times := text.count(old)) != 1:
            raise ScratchError(f"the text to replace occurs {times} times in {file}; it must occur exactly once")
        self.write(file, text.replace(old, new))

    def run(self, *own: Path, time_limit: float = TIME_LIMIT) -> Run:
        """Runs the course suite on the copy, or test files of one's own instead; says how far it is, if that takes long."""
        out, printed = self.folder / "result.json", self.folder / "printed.txt"
        for old in (out, _progress(out)):
            old.unlink(missing_ok=True)
        command = [sys.executable, "-P", "-m", "lessonlib.lab.course_suite", str(out), *map(str, own)]
        with printed.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=os.name == "posix",
            )  # fmt: skip
            try:
                _watch(process, out, time.monotonic() + time_limit)
            except subprocess.TimeoutExpired:
                return Run(trouble=f"the run did not end within {time_limit:g} s: the edit makes something loop or wait")
            finally:  # also when somebody interrupts
                kill(process)
                process.wait()
        words = printed.read_text(encoding="utf-8", errors="replace")
        return _read(out, subprocess.CompletedProcess(command, process.returncode, "", words), self.folder)

    def environment(self) -> dict[str, str]:
        """The subprocess's environment: the copy first, no plugins, no compiled files, no keys."""
        return {
            **environment(self.folder, seconds=TIME_LIMIT, memory=MEMORY),
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
        }


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads a session of its own, and what it has started."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _watch(process: subprocess.Popen[bytes], out: Path, deadline: float) -> None:
    """Waits for the end, and shows how many tests have run. Raises TimeoutExpired at the deadline."""
    while not (total := _counts(out)[0]) and not _ended(process, deadline):
        pass
    for _ in track(_tests(process, out, deadline), "tests", total or None):
        pass


def _tests(process: subprocess.Popen[bytes], out: Path, deadline: float) -> Iterator[int]:
    """One number for each test that has run, as it ends."""
    seen = 0
    while not _ended(process, deadline):
        ran = _counts(out)[1]
        yield from range(seen + 1, ran + 1)
        seen = ran


def _ended(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Whether the process has ended; looks for a moment."""
    try:
        process.wait(LOOK)
    except subprocess.TimeoutExpired:
        if time.monotonic() > deadline:
            raise
        return False
    return True


def _counts(out: Path) -> tuple[int, int]:
    """How many tests there are, and how many have run; (0, 0) while that is not known."""
    try:
        total, _, dots = _progress(out).read_text(encoding="utf-8").partition("\n")
    except OSError:
        return 0, 0
    return int(total or 0), len(dots)


def _progress(out: Path) -> Path:
    return out.with_name(f"{out.name}.progress")


def _inside(package: Path, file: str) -> Path:
    path = (package / file.removeprefix("lessonlib/").removeprefix("lessonlib\\")).resolve()
    if not path.is_relative_to(package.resolve()) or not path.is_file():
        raise ScratchError(f"there is no file {file!r} in lessonlib")
    return path


def is_file(file: str) -> bool:
    """Whether the package has such a file."""
    try:
        return bool(_inside(PACKAGE, file))
    except ScratchError:
        return False


def source(file: str) -> str:
    """The text of a file of the installed package, as it is."""
    return _inside(PACKAGE, file).read_text(encoding="utf-8")


def _read(out: Path, done: subprocess.CompletedProcess[str], folder: Path) -> Run:
    if not out.is_file():
        return Run(trouble=f"the edited library cannot be imported:\n{_last_lines(done.stderr)}")
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    if not Path(found["library"]).resolve().is_relative_to(folder.resolve()):
        return Run(trouble=f"the tests ran on {found['library']}, not on the copy; is PYTHONPATH ignored here?")
    tests = tuple(Tested(**test) for test in found["tests"])
    if found["collection_errors"]:
        return Run(tests, f"the tests cannot be imported:\n{_last_lines(found['collection_errors'][0])}")
    return Run(tests, "" if tests else f"no test was run:\n{_last_lines(found['printed'])}")


def _last_lines(text: str, most: int = 6) -> str:
    return "\n".join(text.strip().splitlines()[-most:])


# ---------------------------------------------------------------- the sound library


@lru_cache(maxsize=2)
def _sound(fingerprint: str) -> Run:
    with Scratch() as scratch:
        return scratch.run()


def sound_run() -> Run:
    """The course suite on the library as it is installed. Run once per state of the files."""
    return _sound(fingerprint())


def fingerprint() -> str:
    """A short text that changes when a file of the package does."""
    files = sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml", ".json"))
    stats = [(str(path.relative_to(PACKAGE)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(stats).encode()).hexdigest()[:16]


# ---------------------------------------------------------------- tests of a learner's own


def run_test(test: str, edits: Iterable[tuple[str, str, str]] = (), relaid: Sequence[str] = ()) -> Run:
    """Runs the source of a test on a copy with these edits (file, old, new). relaid: files to write in another layout, with
    the same code but none of its comments, line ends and quotes."""
    with Scratch() as scratch:
        for file, old, new in edits:
            scratch.replace(file, old, new)
        for file in dict.fromkeys(relaid):
            scratch.write(file, f"# another layout\n{ast.unparse(ast.parse(scratch.read(file)))}\n")
        path = scratch.folder / "test_mine.py"
        path.write_text(test, encoding="utf-8")
        return scratch.run(path)


__all__ = ["Run", "Scratch", "ScratchError", "Tested", "fingerprint", "is_file", "run_test", "sound_run", "source"]
