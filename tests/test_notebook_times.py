"""The bound on the lessons' time counts what it should, and makes the run fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import notebook_times

ROOT = Path(__file__).parent.parent


def test_what_takes_too_long_is_named() -> None:
    times = {"a.ipynb": 3.0, "b.ipynb": 12.5}
    assert list(notebook_times.faults(times, 15.5, 12, 120)) == ["b.ipynb took 12.5 s; at most 12"]
    assert list(notebook_times.faults(times, 130, 20, 120)) == ["all notebooks took 130 s; at most 120"]
    assert list(notebook_times.faults(times, 15.5, 20, 120)) == []


@pytest.mark.enable_socket
@pytest.mark.parametrize(("bound", "code"), [("0.05", 1), ("100", 0)])
def test_a_slow_notebook_makes_the_run_fail(bound: str, code: int, tmp_path: Path) -> None:
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": 1, "outputs": [], "source": "x = 1"}
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "n.ipynb").write_text(json.dumps(content), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:warnings", "-p", "tests.notebook_times",
         "--rootdir", str(tmp_path), "-c", os.devnull, "--nbval", "--nbval-current-env",
         "--slowest-notebook", bound, str(tmp_path / "n.ipynb")],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=False, timeout=100,
    )  # fmt: skip
    assert run.returncode == code, run.stdout + run.stderr
    assert ("TOO SLOW" in run.stdout) is (code == 1)


def test_make_and_ci_ask_for_the_bound() -> None:
    assert "-p tests.notebook_times" in (ROOT / "Makefile").read_text(encoding="utf-8")
