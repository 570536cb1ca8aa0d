"""For everything that pytest runs here, tests and notebooks: progress is not that of whoever runs them.

Tests get a folder of their own as LESSON_HOME. Notebooks (nbval) keep no progress at all, so that what they show is what a
new learner sees, whatever ran before; stored outputs are made in the same way (lessonlib/lab/author.py).
"""

from __future__ import annotations

import os
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    home = tempfile.TemporaryDirectory(prefix="lesson-home-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    os.environ["LESSON_HOME"] = home.name
    if config.getoption("nbval", False) or config.getoption("nbval_lax", False):
        os.environ["LESSON_PROGRESS"] = "off"
