"""The course in a folder of the learner's own: `lesson start [DIR]`, and JupyterLab on it: `lesson lab`.

The folder gets lessons, exercises, fixtures and the reference pages that lessons link to, in the layout of the repository,
so that links and names of fixtures are the same in both. In the lessons the outputs that give answers away are left out
(cells tagged `reveal`); guesses stand at None as they do in the course.

A file that the learner has changed is never written over. What was written is remembered by its hash in `.lessonlib.json`; a
second `lesson start`, say with a newer version, brings what is new, replaces what nobody touched, and names what it left
alone. A file that was deleted comes back: that is how one starts a lesson afresh.

What this file does not do: no network, and nothing outside of the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

MANIFEST = ".lessonlib.json"
SCHEMA = 1
FIRST = "notebooks/00_start_here.ipynb"
PARTS = ("notebooks", "exercises", "testdata", "docs")
ENDINGS = {"notebooks": (".ipynb",), "exercises": (".ipynb",), "docs": (".md",), "testdata": ()}
"""What belongs to the course in each folder; of the fixtures, everything."""

HIDDEN = "reveal"
SHOWN = 8
"""How many names of files are listed."""


class StartError(Exception):
    """The course cannot be written there, or cannot be found; the message says what to do."""


@dataclass
class Started:
    """What `start` did, file by file (paths within the folder)."""

    folder: Path
    written: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    same: int = 0

    def lines(self) -> Iterator[str]:
        """What a person should know, and what to do next."""
        counts = f"{_counted(self.written)} written, {_counted(self.updated)} updated, {self.same} as before"
        yield f"The course is in {self.folder}: {counts}."
        if self.kept:
            more = " and more" if len(self.kept) > SHOWN else ""
            yield f"Left alone, because you have changed them: {', '.join(self.kept[:SHOWN])}{more}."
            yield "To start one of them afresh, rename or delete it and run this command again."


def _counted(names: list[str]) -> str:
    return f"{len(names)} file{'' if len(names) == 1 else 's'}"


# ---------------------------------------------------------------- where the course is


INSIDE = Path(__file__).resolve().parents[1] / "course"
"""Where a wheel has the course."""


def course_folder() -> Path:
    """The course's files: those that the package brought along, or the checkout that it runs from. Raises StartError."""
    for folder in (INSIDE, INSIDE.parents[1]):
        if (folder / FIRST).is_file():
            return folder
    raise StartError("this installation of lessonlib has no lessons in it; install it from its wheel or from a checkout")


def opened_folder(here: Path) -> Path:
    """The folder of the course in or above `here`, else the checkout that lessonlib runs from. Raises StartError."""
    for folder in (here, *here.parents):
        if (folder / FIRST).is_file():
            return folder
    found = course_folder()
    if found == INSIDE:  # in the installed package: nobody should work there
        raise StartError("there is no course here; `lesson start` writes one into a folder of yours")
    return found


# ---------------------------------------------------------------- writing it


def start(target: Path, source: Path | None = None) -> Started:
    """Writes the course into `target`. Raises StartError where that is impossible, OSError where the disk says no."""
    source = source or course_folder()
    target = target.resolve()
    if target.exists() and not target.is_dir():
        raise StartError(f"{target} is a file; name a folder")
    if target == source or source in target.parents:
        raise StartError(f"{target} lies in the course itself; name a folder of your own")
    known = _manifest(target)
    done, hashes = Started(target), {}
    for name, data in _files(source):
        hashes[name] = _place(target / name, name, data, known.get(name), done)
    _save(target / MANIFEST, hashes)
    return done


def _place(file: Path, name: str, data: bytes, written: str | None, done: Started) -> str:
    """Writes one file, if that loses nothing of the learner's. The hash to remember for it."""
    wanted = _hash(data)
    if not file.exists():
        done.written.append(name)
    else:
        there = _hash(file.read_bytes())
        if there == wanted:
            done.same += 1
            return wanted
        if there != written:
            done.kept.append(name)
            return written or ""
        done.updated.append(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return wanted


def _files(source: Path) -> Iterator[tuple[str, bytes]]:
    pages = linked_pages(source)
    for part in PARTS:
        for file in sorted(_wanted(source / part, ENDINGS[part])):
            if part == "docs" and file not in pages:
                continue
            data = file.read_bytes()
            yield file.relative_to(source).as_posix(), without_answers(data) if part == "notebooks" else data


def _wanted(folder: Path, endings: tuple[str, ...]) -> Iterable[Path]:
    for file in folder.rglob("*") if folder.is_dir() else ():
        hidden = any(part.startswith((".", "__")) for part in file.relative_to(folder).parts)
        if file.is_file() and not hidden and (not endings or file.suffix in endings):
            yield file


_PAGE = re.compile(r"\]\(([^)#\s:]+\.md)\b")


def linked_pages(source: Path) -> set[Path]:
    """The reference pages that lessons and exercises link to, and those that these link to."""
    notebooks = [file for part in ("notebooks", "exercises") for file in _wanted(source / part, ENDINGS[part])]
    found: set[Path] = set()
    todo = [page for file in notebooks for page in _links_of(file)]
    while todo:
        page = todo.pop()
        if page not in found and page.is_file() and (source / "docs").resolve() in page.parents:
            found.add(page)
            todo += _links_of(page)
    return {source / page.relative_to(source.resolve()) for page in found}


def _links_of(file: Path) -> list[Path]:
    return [(file.parent / target).resolve() for target in _PAGE.findall(file.read_text(encoding="utf-8"))]


def without_answers(notebook: bytes) -> bytes:
    """A notebook's bytes without the outputs of the cells tagged `reveal`. They are no longer hidden either: what learners
    run there themselves, they want to see. Code that is folded stays so."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        if HIDDEN in cell["metadata"].get("tags", []) and cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            if cell["metadata"].pop("jupyter", {}).get("source_hidden"):
                cell["metadata"]["jupyter"] = {"source_hidden": True}
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


# ---------------------------------------------------------------- the manifest


def _manifest(target: Path) -> dict[str, str]:
    """The hashes of what was written before. An unreadable manifest counts as none: then nothing is written over."""
    try:
        content: Any = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    files = content.get("files") if isinstance(content, dict) and content.get("schema") == SCHEMA else None
    return {str(name): str(value) for name, value in files.items()} if isinstance(files, dict) else {}


def _save(file: Path, hashes: dict[str, str]) -> None:
    """All at once, so that a crash leaves the old one."""
    content = {"schema": SCHEMA, "version": _version(), "files": {name: value for name, value in hashes.items() if value}}
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8", newline="\n")
    os.replace(fresh, file)


def _version() -> str:
    try:
        return version("lessonlib")
    except PackageNotFoundError:
        return ""


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---------------------------------------------------------------- opening it

OPTIONS = ("--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate")
"""JupyterLab asks nobody for news or updates."""

SETTINGS = Path(__file__).resolve().parents[1] / "data" / "jupyter"
"""One more place where Jupyter looks for settings. It switches the announcements off, so that no pop-up asks about them; the
learner's own settings are not touched."""


def lab_command(*arguments: str) -> list[str]:
    """What opens JupyterLab, with the Python that runs now: its kernel then has this very lessonlib."""
    return [sys.executable, "-m", "jupyterlab", *OPTIONS, *arguments]


def lab_environment() -> dict[str, str]:
    """The environment for it: this one, with our settings in addition, and `lesson` on the path: `!lesson next` works in a
    notebook even if the environment was never activated."""
    others = [path for path in (os.environ.get("JUPYTER_CONFIG_PATH"),) if path]
    programs = [sysconfig.get_path("scripts"), *(path for path in (os.environ.get("PATH"),) if path)]
    return {
        **os.environ,
        "JUPYTER_CONFIG_PATH": os.pathsep.join([*others, str(SETTINGS)]),
        "PATH": os.pathsep.join(programs),
    }


def open_lab(folder: Path, *options: str, notebook: str = FIRST) -> int:
    """Opens JupyterLab in `folder`, with `options` of its own, and waits for its end. Raises StartError without it."""
    from importlib.util import find_spec

    if find_spec("jupyterlab") is None:
        raise StartError(f'JupyterLab is not installed for {sys.executable}: run  python -m pip install "lessonlib[lab]"')
    return subprocess.run(lab_command(*options, notebook), cwd=folder, env=lab_environment(), check=False).returncode
