"""The learner's process, seen from the judge: start it, run cells in it, ask for plain data, and end it.

One line of JSON goes in, one comes back. What does not come in time, or is no such line, is an `Ended`: from then on every
question gets one, so that an early exit scores nothing from there on.

What this file does not do: it knows no exercise, and nothing that comes back is ever executed or unpickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

from lessonlib.lab.checks.core import NotPlain, Seen, plain, printable
from lessonlib.lab.confined import environment
from lessonlib.lab.exercises import Exercise
from lessonlib.lab.grading.codec import decode, encode
from lessonlib.lab.scratch import kill


@dataclass(frozen=True, slots=True)
class Limits:
    """seconds: for the whole notebook. answer: for one answer. memory: bytes of address space (POSIX), None for no limit."""

    seconds: float = 120.0
    answer: float = 20.0
    memory: int | None = 2 * 1024**3


class Ended(Exception):
    """The learner's process is gone, or does not answer. The message says what was seen of it."""


class Student:
    """The learner's process. `with Student(limits) as student: student.run(source)`."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._until = time.monotonic() + limits.seconds
        self._folder = tempfile.TemporaryDirectory(prefix="lessonlib-student-", ignore_cleanup_errors=True)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = self._started()
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True)
        self._reader.start()
        self._over = ""

    def _started(self) -> subprocess.Popen[bytes]:
        bare = environment(self._folder.name, seconds=self.limits.seconds, memory=self.limits.memory)
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "lessonlib.lab.grading.student"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, cwd=self._folder.name, env=bare, start_new_session=os.name == "posix",
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process, and whatever it has started."""
        kill(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()
        self._reader.join(5)
        self._errors.close()
        self._folder.cleanup()

    # ------------------------------------------------------------ asking

    def run(self, source: str) -> str:
        """Runs one cell. "" or what it raised; an exit is an Ended at the next question."""
        try:
            answer = self._ask({"do": "run", "source": source}, self.limits.seconds)
        except Ended:
            return self._over
        return str(answer.get("raised", ""))

    def value(self, name: str) -> Seen:
        """The plain value of a name."""
        return _seen(self._ask({"do": "value", "name": name}, self.limits.answer))

    def observe(self, exercise: Exercise, given: Any) -> Seen:
        """What the object of that exercise does with an input."""
        question = {
            "do": "observe",
            "call": exercise.call,
            "about": exercise.about,
            "name": exercise.answer,
            "given": encode(given),
        }
        return _seen(self._ask(question, self.limits.answer))

    def _ask(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        if self._over:
            raise Ended(self._over)
        try:
            stdin: IO[bytes] = self._process.stdin  # type: ignore[assignment]
            stdin.write(json.dumps(question).encode() + b"\n")
            stdin.flush()
            line = self._lines.get(timeout=max(0.01, min(seconds, self._until - time.monotonic())))
        except queue.Empty:
            raise self._ended(f"no answer within {min(seconds, self.limits.seconds):g} s: does it loop or wait?") from None
        except OSError:
            line = b""
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            code = self._process.poll() if line else self._exit_code()
            raise self._ended(
                f"the notebook's process ended early{'' if code is None else f' (exit code {code})'}{self._last_words()}"
            )
        return answer

    def _ended(self, why: str) -> Ended:
        self._over = why
        kill(self._process)
        return Ended(why)

    def _exit_code(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(2)
        return None

    def _last_words(self) -> str:
        """The last line that it wrote to its error stream."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 4000))
        lines = self._errors.read(4000).decode("utf-8", "replace").strip().splitlines()
        return f": {printable(lines[-1][:200])}" if lines else ""


def _read(stream: IO[bytes] | None, lines: queue.Queue[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in stream or ():
            lines.put(line)
    lines.put(b"")


def _seen(answer: dict[str, Any]) -> Seen:
    """What came back, taken for nothing but plain data."""
    if answer.get("raised"):
        return Seen(raised=printable(str(answer["raised"])[:100]), message=printable(str(answer.get("message", ""))[:400]))
    try:
        return Seen(plain(decode(answer.get("value"))))
    except (NotPlain, ValueError, TypeError) as error:
        return Seen(raised="NotPlain", message=str(error)[:200])
