"""The catalogue of breaks is true: the broken code imports, exactly the named behaviours of the course suite notice, and
where none does, the test that is kept for it notices.

One run of the course suite for each break. The tests that are kept are run together where one run says the same of all of
them: on the sound library, and on one in which only comments are new.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

from lessonlib.lab import breaks, scratch
from lessonlib.lab.breaks import PRELUDE, Break
from lessonlib.lab.scratch import Run, Scratch
from tests.lab_exercises.proving import Prover

CATALOGUE = breaks.catalogue()
SURVIVING = [broken for broken in CATALOGUE if broken.survives]
surviving = pytest.mark.parametrize("broken", SURVIVING, ids=lambda broken: broken.name)


@pytest.fixture(scope="module")
def prover() -> Iterator[Prover]:
    with Prover() as started:
        yield started


def breaking(broken: Break) -> Scratch:
    copy = Scratch()
    for edit in broken.edits:
        copy.replace(edit.file, edit.old, edit.new)
    return copy


def with_tests(prover: Prover, copy: Scratch, *chosen: Break) -> Run:
    """The tests that are kept for these breaks, on a copy."""
    files = []
    for broken in chosen:
        files.append(copy.folder / f"test_{broken.name.replace('-', '_')}.py")
        files[-1].write_text(f"{PRELUDE}\n\n{textwrap.dedent(broken.killing_test).strip()}\n", encoding="utf-8")
    return prover.course_suite(copy, *files)


@pytest.mark.parametrize("broken", CATALOGUE, ids=lambda broken: broken.name)
def test_exactly_the_named_behaviours_notice(broken: Break, prover: Prover) -> None:
    with breaking(broken) as copy:
        run = prover.course_suite(copy)
    assert run.trouble == ""
    assert set(run.behaviours) == broken.fails


@surviving
def test_the_test_that_is_kept_for_it_notices(broken: Break, prover: Prover) -> None:
    with breaking(broken) as copy:
        run = with_tests(prover, copy, broken)
    assert run.trouble == ""
    assert run.failed


def test_the_tests_that_are_kept_pass_on_the_sound_library(prover: Prover) -> None:
    with Scratch() as copy:
        run = with_tests(prover, copy, *SURVIVING)
    assert (run.trouble, run.failed) == ("", ())
    assert len(run.tests) == sum(broken.killing_test.count("def test_") for broken in SURVIVING)


def test_the_tests_that_are_kept_do_not_read_the_source(prover: Prover) -> None:
    with Scratch() as copy:
        for file in {edit.file for broken in SURVIVING for edit in broken.edits}:
            copy.write(file, copy.read(file) + "\n# a comment\n")
        run = with_tests(prover, copy, *SURVIVING)
    assert (run.trouble, run.failed) == ("", ())


@pytest.mark.parametrize("name", ["decode-per-read", "end-of-body-is-the-end"])
def test_what_a_learner_runs_says_the_same(name: str, prover: Prover) -> None:
    """`breaks.run` starts a process of its own for each run; here the process is forked."""
    own = breaks.break_and_run(breaks.get(name))
    with breaking(breaks.get(name)) as copy:
        forked = prover.course_suite(copy)
    assert [(test.test, test.passed) for test in forked.tests] == [(test.test, test.passed) for test in own.tests]
    assert scratch.sound_run().failed == ()
