"""What needs a process of its own: importing, memory, `lesson explain` on a large capture, and what an installation weighs.

`python -m benchmarks.apart memory <wire> <contestant> <file>` is the child: it reads a stream from a file in chunks, so that
the bytes themselves are never in its memory, and prints what its own objects took at most.

Peak and size of the answer are counted by tracemalloc in bytes of Python objects; the whole answer is what is still held
when everything else has gone. Child processes are timed by the CPU time that the operating system reports for them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.contestants import OURS, Contestant, Source
from benchmarks.sdks import sdk_contestants
from benchmarks.streams import WRITERS, stream
from benchmarks.suites import CHUNK, Sizes
from benchmarks.timing import Row, rounds

ROOT = Path(__file__).parent.parent


# ---------------------------------------------------------------- importing


IMPORTS = {"lessonlib": "lessonlib", "openai": "openai", "anthropic": "anthropic", "google-genai": "google.genai"}


def imports(sizes: Sizes) -> Iterator[Row]:
    """CPU milliseconds from the start of Python to the end of the import, without those of Python alone."""
    programs = {"python": "pass"} | {name: f"import {module}" for name, module in IMPORTS.items()}
    ours = "from lessonlib import *; Client(AnthropicMessages(api_key='k', base_url='http://127.0.0.1:9'))._open()"
    programs["lessonlib and a client"] = ours
    programs["openai and a client"] = "import openai; openai.OpenAI(api_key='k', base_url='http://127.0.0.1:9')"
    works = {name: partial(_cpu_of, "-c", program) for name, program in programs.items()}
    values: dict[str, list[float]] = {name: [] for name in works}
    for number in range(sizes.starts + 1):  # the first round fills the caches of files
        for name, work in works.items():
            spent = work()
            if number:
                values[name].append(spent)
    for name in list(works)[1:]:
        each = [(a - b) * 1e3 for a, b in zip(values[name], values["python"], strict=True)]
        yield Row("import", "import", name, "ms", each)


def _cpu_of(*arguments: str) -> float:
    """CPU seconds of a Python of its own (on Windows, which does not say it of children, seconds)."""
    before, began = _children_cpu(), time.perf_counter()
    child(*arguments)
    return time.perf_counter() - began if os.name == "nt" else _children_cpu() - before


def child(*arguments: str) -> bytes:
    """The output of a Python of its own. Raises when it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, env=environment, check=True).stdout


def _children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


# ---------------------------------------------------------------- what an installation weighs


def installed(sizes: Sizes) -> Iterator[Row]:
    """Megabytes of a package with all that it requires."""
    for name in IMPORTS:
        names = _closure(name)
        total = sum(_weight(each) for each in names)
        yield Row("installed", "installed", name, "MB", [total / 1e6], facts={"packages": len(names)})


def _closure(name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop().lower().replace("_", "-")
        if each in found:
            continue
        try:
            required = metadata.distribution(each).requires or []
        except metadata.PackageNotFoundError:  # for another system, or another Python
            continue
        found.add(each)
        waiting += [_requirement(text) for text in required if "extra ==" not in text]
    return found


def _requirement(text: str) -> str:
    end = next((place for place, letter in enumerate(text) if not (letter.isalnum() or letter in "-_.")), len(text))
    return text[:end]


def _weight(name: str) -> int:
    if name == "lessonlib":  # it may be installed from this folder, as a link
        folder = ROOT / "lessonlib"
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    files = metadata.distribution(name).files or []
    paths = (Path(str(file.locate())) for file in files if file.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file())


# ---------------------------------------------------------------- memory


def memory(sizes: Sizes) -> Iterator[Row]:
    """The peak while a stream is read, as a multiple of the whole answer; facts: both in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        for wire in WRITERS:
            for case, size in (("text", sizes.deltas), ("arguments", sizes.arguments * 4), ("one event", sizes.event)):
                path = Path(folder) / "stream.sse"
                path.write_bytes(stream(wire, case, size).body)
                names = ["lessonlib", *(name for name in sdk_contestants(wire) if "helper" in name)]
                if case == "arguments":
                    names = names[:1]  # a helper that parses at every delta would take minutes
                for name in names:
                    found = json.loads(child("-m", "benchmarks.apart", "memory", wire, name, str(path)))
                    yield Row(
                        "memory", case, name, "× the answer", [found["peak"] / found["held"]], wire, size, CHUNK, found
                    )


class _Chunks(list[bytes]):
    """The chunks of a file, read when they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb", buffering=0) as file:
            while chunk := file.read(CHUNK):
                yield chunk


def measure_memory(wire: str, name: str, path: Path) -> dict[str, int]:
    """In the child: the peak while reading, and what the answer itself holds."""
    contestants: dict[str, Contestant] = {**OURS, **sdk_contestants(wire)}
    with asyncio.Runner() as runner:
        warm = Source(wire, stream(wire, "text", 5).chunks(CHUNK), loop=runner.get_loop())
        contestants[name](warm)()  # imports and caches are not the stream's
        read = contestants[name](Source(wire, _Chunks(path), loop=runner.get_loop()))
        gc.collect()
        tracemalloc.start()
        found = read()
        _, peak = tracemalloc.get_traced_memory()
        found.text, found.calls = [], []
        found.pieces.clear()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return {"peak": peak, "held": held}


# ---------------------------------------------------------------- lesson explain


def explain(sizes: Sizes) -> Iterator[Row]:
    """`lesson explain --json` on one large capture, beside the floor on the same bytes in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for wire in ("anthropic-messages", "openai-responses"):
            small = stream(wire, "text", 1_000)
            given = stream(wire, "text", max(1, sizes.capture * 1_000 // len(small.body)))
            path = Path(folder) / "capture.sse"
            path.write_bytes(given.body)
            works: dict[str, Callable[[], Any]] = {
                "lesson explain": partial(_explained, path), "floor": partial(_floor_apart, path, given.expected.events),
            }  # fmt: skip
            seconds = rounds(works, sizes.loops, clock=time.perf_counter if os.name == "nt" else _children_cpu)
            peak = int(child("-c", _PEAK, str(path)))
            for name, values in seconds.items():
                facts = {"megabytes": len(given.body) / 1e6, "events": given.expected.events}
                more = {"peak megabytes": peak / 1e6} if name == "lesson explain" else {}
                yield Row("explain", "capture", name, "s", values, wire, len(given.body), facts=facts | more)


_PEAK = """
import contextlib, io, pathlib, sys
sys.argv = ["lesson", "explain", "--json", sys.argv[1]]
from lessonlib.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
status = pathlib.Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
print(sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
"""
"""The largest size in memory as Linux counts it for a process; 0 elsewhere. What the parent reads of a child begins with the
parent's own size."""


def _explained(path: Path) -> None:
    assert json.loads(child("-m", "lessonlib", "explain", "--json", str(path)))["stop"] == "end"


def _floor_apart(path: Path, events: int) -> None:
    program = "import sys; from benchmarks.contestants import *; "
    program += "print(floor(Source('', [open(sys.argv[1], 'rb').read()]))().events)"
    assert int(child("-c", program, str(path))) == events


def main(arguments: Sequence[str]) -> None:
    """The child process."""
    _, wire, name, path = arguments
    print(json.dumps(measure_memory(wire, name, Path(path))))


if __name__ == "__main__":
    main(sys.argv[1:])
