"""A bound on time for the lessons: `pytest -p tests.notebook_times --nbval notebooks` fails when one takes too long.

A notebook's time is that of its cells and of its kernel's start and end. All of them together: the session, by the clock.
The bounds are for two idle cores; `--slowest-notebook` and `--all-notebooks` raise them for a busy machine.

What this file does not do: it measures no test. pytest's own `--durations` says which cell was slow.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

SLOWEST, ALL = 12.0, 120.0
SHOWN = 5

_times: dict[str, float] = defaultdict(float)
_began = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("notebook times")
    group.addoption(
        "--slowest-notebook", type=float, default=SLOWEST, help=f"seconds for one notebook (default {SLOWEST:g})"
    )
    group.addoption("--all-notebooks", type=float, default=ALL, help=f"seconds for all of them (default {ALL:g})")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """With xdist this runs in the process that collects the reports, too."""
    path = report.nodeid.partition("::")[0]
    if path.endswith(".ipynb"):
        _times[path] += report.duration


def faults(times: Mapping[str, float], whole: float, slowest: float, every: float) -> Iterator[str]:
    """What took too long, in words."""
    for path, seconds in sorted(times.items(), key=lambda pair: -pair[1]):
        if seconds > slowest:
            yield f"{path} took {seconds:.1f} s; at most {slowest:g}"
    if times and whole > every:
        yield f"all notebooks took {whole:.0f} s; at most {every:g}"


def _found(config: Any) -> list[str]:
    if hasattr(config, "workerinput"):  # an xdist worker: the collecting process judges
        return []
    return list(faults(_times, time.monotonic() - _began, config.option.slowest_notebook, config.option.all_notebooks))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _found(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not _times:
        return
    slow = sorted(_times.items(), key=lambda pair: -pair[1])[:SHOWN]
    terminalreporter.section("notebook times")
    terminalreporter.line(
        f"{len(_times)} notebooks; slowest: " + ", ".join(f"{path} {seconds:.1f} s" for path, seconds in slow)
    )
    for fault in _found(config):
        terminalreporter.line(f"TOO SLOW: {fault}", red=True)
