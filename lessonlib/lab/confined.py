"""What a process that runs somebody's code gets to see and may use: a bare environment, a home of its own, limits.

    Popen(..., env=environment(folder, seconds=120, memory=2 * 1024**3))       by whoever starts it
    limit_resources()                                                          by the process itself, first of all

Passed on is what Python needs to start, by name; a key, a token or a password under any other name is not. Home and the
folder for temporary files are `folder`, so that what is written "at home" goes with it.

What this file does not do: it is no sandbox. The process still runs as you, and can read and write what you can by its full
path. The limits are those of POSIX; elsewhere there are none.
"""

from __future__ import annotations

import contextlib
import os
import site
from collections.abc import Iterator
from pathlib import Path

PASSED_ON = frozenset((
    "PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
    "LANG", "LANGUAGE", "TZ", "TZDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
    "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONUTF8", "PYTHONWARNINGS",
    "TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR",
))  # fmt: skip
"""Variables that a process may see, next to those of the locale (LC_...)."""

LARGEST_FILE = 64 * 1024**2
"""Bytes of a file that such a process may write, its error stream among them."""


def environment(folder: str | Path, *, seconds: float, memory: int | None) -> dict[str, str]:
    """The environment of a process whose home is `folder`. seconds: of processor time; memory: bytes of address space."""
    home = str(folder)
    kept = {name: value for name, value in os.environ.items() if name.upper() in PASSED_ON or name.startswith("LC_")}
    homes = dict.fromkeys(("HOME", "USERPROFILE", "LESSON_HOME", "TMPDIR", "TEMP", "TMP"), home)
    limits = {"LESSON_SECONDS": str(int(seconds) + 1), "LESSON_MEMORY": str(memory or 0)}
    return {
        **kept,
        **homes,
        **limits,
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONIOENCODING": "utf-8",
        "MPLBACKEND": "agg",
    }


def limit_resources() -> None:
    """Sets this process's limits, where the system has them. What it starts inherits them."""
    with contextlib.suppress(ImportError):
        import resource

        for kind, limit in _limits():
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(getattr(resource, kind), (limit, limit))


def _limits() -> Iterator[tuple[str, int]]:
    for kind, name in (("RLIMIT_AS", "LESSON_MEMORY"), ("RLIMIT_CPU", "LESSON_SECONDS")):
        if limit := int(os.environ.get(name, "0")):
            yield kind, limit
    yield "RLIMIT_FSIZE", LARGEST_FILE
    yield "RLIMIT_CORE", 0
