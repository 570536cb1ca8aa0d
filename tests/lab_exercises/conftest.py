"""Every test has a progress file of its own: nothing is written into the home of whoever runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "lesson-home"))
    return tmp_path / "lesson-home"
