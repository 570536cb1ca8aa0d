"""Is this kernel the right Python? One line says what is wrong and the command that helps.

    ready()          in the first code cell: nothing but a short line if all is well, one short error if not

The usual mistake is that packages were installed for one Python and the notebook's kernel runs another. So the message names
the interpreter of *this* kernel, what it has, and `%pip install`, which installs for this kernel and no other.

What this file does not do: it installs nothing. Where lessonlib itself is missing its import fails, and the text above the
first cell says the same.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version

REQUIRED = {"ipywidgets": ">=8.1", "matplotlib": ">=3.9", "pandas": ">=2.2"}
"""What the lessons need beyond lessonlib: the extra `lab`, but for JupyterLab, which may run in another environment."""


class WrongEnvironment(Exception):
    """This kernel lacks something. In a notebook only the message is shown, no traceback."""

    def _render_traceback_(self) -> list[str]:
        """IPython asks for this instead of printing the frames, which would help nobody here."""
        return [f"{type(self).__name__}: {self}"]


def installed(name: str) -> str | None:
    """The version of a package in this Python, None without it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def problem(
    required: Mapping[str, str] = REQUIRED,
    find: Callable[[str], str | None] = installed,
    executable: str = sys.executable,
) -> str | None:
    """What is wrong, in one line with the command that helps; None if nothing is. required: name -> ">=1.2"."""
    wrong = {name: wanted for name, wanted in required.items() if not _fits(find(name), wanted)}
    if not wrong:
        return None
    has = ", ".join(f"{name} {find(name) or 'not installed'} (needs {wanted})" for name, wanted in wrong.items())
    command = " ".join(f'"{name}{wanted}"' for name, wanted in wrong.items())
    return f"this kernel runs {executable} and has {has}. In a cell:  %pip install {command}  and then restart the kernel."


def ready() -> None:
    """Says that the notebook can run. Raises WrongEnvironment if it cannot."""
    found = problem()
    if found is not None:
        raise WrongEnvironment(found)
    print("This kernel has what the lessons need.")


def _fits(there: str | None, wanted: str) -> bool:
    return there is not None and _numbers(there) >= _numbers(wanted)


def _numbers(words: str) -> tuple[int, ...]:
    """The leading numbers of a version: "2.10.1rc1" -> (2, 10, 1)."""
    match = re.search(r"\d+(?:\.\d+)*", words)
    return tuple(map(int, match[0].split("."))) if match else ()
