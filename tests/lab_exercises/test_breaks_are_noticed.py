"""The catalogue of breaks is true: the broken code imports, exactly the named behaviours of the course suite notice, and
where none does, the test that is kept for it notices. One run of the course suite for each break, about a second."""

from __future__ import annotations

import pytest

from lessonlib.lab import breaks
from lessonlib.lab.breaks import Break


@pytest.mark.parametrize("broken", breaks.catalogue(), ids=lambda broken: broken.name)
def test_exactly_the_named_behaviours_notice(broken: Break) -> None:
    run = breaks.break_and_run(broken)
    assert run.trouble == ""
    assert set(run.behaviours) == broken.fails


@pytest.mark.parametrize(
    "broken", [broken for broken in breaks.catalogue() if broken.survives], ids=lambda broken: broken.name
)
def test_the_test_that_is_kept_for_it_is_accepted(broken: Break) -> None:
    verdict = breaks.judge_test(broken, broken.killing_test)
    assert verdict.accepted, verdict
