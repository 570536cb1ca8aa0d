"""Each break is noticed by the full suite, too. Only the tests that `caught_by` names are run, on a scratch copy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lessonlib.lab import breaks
from lessonlib.lab.breaks import Break
from lessonlib.lab.scratch import Scratch
from tests.lab_exercises.proving import Prover


@pytest.fixture(scope="module")
def prover() -> Iterator[Prover]:
    with Prover() as started:
        yield started


@pytest.mark.parametrize("broken", breaks.catalogue(), ids=lambda broken: broken.name)
def test_the_full_suite_notices(broken: Break, prover: Prover) -> None:
    assert broken.caught_by
    with Scratch() as copy:
        for edit in broken.edits:
            copy.replace(edit.file, edit.old, edit.new)
        done = prover.full_suite(copy, *broken.caught_by)
    assert done.returncode == 1, done.stdout[-2000:]  # 1: tests were run, and some failed
    assert " error" not in done.stdout.splitlines()[-1]


def test_on_the_sound_library_the_same_tests_pass(prover: Prover) -> None:
    """Or a failure above would prove nothing."""
    named = sorted({test for broken in breaks.catalogue() for test in broken.caught_by})
    with Scratch() as copy:
        done = prover.full_suite(copy, *named)
    assert done.returncode == 0, done.stdout[-2000:]
