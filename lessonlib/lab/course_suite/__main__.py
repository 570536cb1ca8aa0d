"""Run the course suite and write what happened as JSON: `python -m lessonlib.lab.course_suite OUT.json [TEST...]`.

Meant for a subprocess (see `lessonlib.lab.scratch`). Test files of a learner's own may be named after OUT; without any, the
whole suite runs. The JSON is {"library": where lessonlib was imported from, "tests": [{"test", "behaviour", "passed",
"error", "assertion"}], "collection_errors", "printed"}. While it runs, OUT.progress holds the number of tests, then a dot
for each that has ended. Exit code 0 whenever the run came to its end: failing tests are a result, not a failure of the run.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

LONGEST = 1200
"""Characters of a failure that are kept."""


class Recorder:
    """A pytest plugin that notes how each test ended. progress: where to say how far it is."""

    def __init__(self, progress: Path) -> None:
        self.progress = progress
        self.tests: dict[str, dict[str, Any]] = {}
        self._behaviours: dict[str, str] = {}
        self.collection_errors: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            self._behaviours[item.nodeid] = getattr(item.function, "behaviour", "")
        self.progress.write_text(f"{len(items)}\n", encoding="utf-8")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.collection_errors.append(str(report.longrepr)[-LONGEST:])

    def pytest_runtest_logfinish(self) -> None:
        with self.progress.open("a", encoding="utf-8") as file:
            file.write(".")

    def pytest_runtest_logreport(self, report: Any) -> None:
        entry = self.tests.setdefault(
            report.nodeid,
            {"test": report.nodeid.rpartition("/")[2], "behaviour": self._behaviours.get(report.nodeid, ""), "passed": True},
        )
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            entry |= {
                "passed": False,
                "error": (crash.message if crash is not None else str(report.longrepr))[:LONGEST],
                "assertion": _failing_lines(report.longrepr),
            }


def _failing_lines(longrepr: Any) -> str:
    """The statement of the test that failed, with the comparison below it: the end of the traceback's entry in the test."""
    entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", [])
    lines = list(entries[0].lines) if entries else str(longrepr).splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(">")), 0)
    return "\n".join(lines[start:])[:LONGEST]


def main(arguments: list[str]) -> int:
    """Run and write the JSON."""
    import pytest

    import lessonlib
    from lessonlib.lab.confined import limit_resources

    limit_resources()

    out, *own = arguments
    recorder = Recorder(Path(f"{out}.progress"))
    here = Path(__file__).parent
    targets = own or [str(here)]
    looks = ["-q", "--tb=long", "--color=no"]  # a notebook's kernel asks for colours, and an output is no terminal
    options = [*looks, "-p", "no:cacheprovider", "-c", str(here / "pytest.ini"), "--rootdir", str(here)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = pytest.main([*options, *targets], plugins=[recorder])
    result = {
        "library": str(Path(lessonlib.__file__ or "").parent),
        "exit": int(code),
        "tests": list(recorder.tests.values()),
        "collection_errors": recorder.collection_errors,
        "printed": printed.getvalue()[-LONGEST:],
    }
    Path(out).write_text(json.dumps(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
