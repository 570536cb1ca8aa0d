"""Each break is noticed by the full suite, too. Only the tests that `caught_by` names are run, on a scratch copy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lessonlib.lab import breaks
from lessonlib.lab.breaks import Break
from lessonlib.lab.scratch import Scratch

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("broken", breaks.catalogue(), ids=lambda broken: broken.name)
def test_the_full_suite_notices(broken: Break) -> None:
    assert broken.caught_by
    with Scratch() as copy:
        for edit in broken.edits:
            copy.replace(edit.file, edit.old, edit.new)
        done = full_suite(copy, *broken.caught_by)
    assert done.returncode == 1, done.stdout[-2000:]  # 1: tests were run, and some failed
    assert " error" not in done.stdout.splitlines()[-1]


def full_suite(copy: Scratch, *tests: str) -> subprocess.CompletedProcess[str]:
    """Some tests of tests/ on the copy. The library is imported first, because pytest puts the checkout before
    everything."""
    start = "import lessonlib, pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(copy.folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        [sys.executable, "-P", "-c", start, *options, *tests], cwd=ROOT, env=environment, capture_output=True, text=True,
        encoding="utf-8", check=False, timeout=100,
    )  # fmt: skip
