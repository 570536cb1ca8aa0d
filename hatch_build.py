"""Build hook: a wheel brings the course along, below `lessonlib/course/`, for `lesson start` and `lesson solution`.

What this file does not do: an editable install gets nothing; there the checkout is the course.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("notebooks", "exercises", "solutions", "testdata", "docs")


class CourseHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the course's folders, as far as there are any, to a standard wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built; `version` is "standard" or "editable"."""
        if version == "standard":
            for name in FOLDERS:
                if (Path(self.root) / name).is_dir():
                    build_data["force_include"][name] = f"lessonlib/course/{name}"
