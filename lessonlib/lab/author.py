"""The author's tool: run notebooks in place and store their outputs in a form that does not churn.

    python -m lessonlib.lab.author run notebooks/06_state_machine.ipynb     run all cells, store the outputs
    python -m lessonlib.lab.author run                                      all notebooks
    python -m lessonlib.lab.author check                                    say what is not in that form; change nothing

The form: kernelspec `python3` without a machine's paths, the language's name and nothing of its version, no times of
execution, no widget state, stable cell ids, execution counts kept (nbval compares no cell without one), and
`jupyter.outputs_hidden` on the cells tagged `reveal` (`source_hidden` too if tagged `solution`). Outputs are those of a
fresh kernel, from top to bottom, where no progress is kept. A cell that fails stops the run and nothing is written, unless
it is tagged `raises-exception`; such a cell must then fail.

What this file does not do: it judges no lesson (tests/test_notebooks.py does), and compares no outputs (nbval does).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
METADATA: dict[str, Any] = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
CELL_TIMEOUT = 60
"""Seconds that one cell may take. A lesson's cell takes far less than one."""

WIDGET = "application/vnd.jupyter.widget-view+json"
FAILS = "raises-exception"
HIDDEN = "reveal"
SOLUTION = "solution"
"""Beside `reveal`: the code is an answer as well, so that it is folded like its output."""

_STABLE_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_RANDOM_ID = re.compile(r"[0-9a-f]{8}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class AuthorError(Exception):
    """A notebook that cannot be run or stored as it is."""


# ---------------------------------------------------------------- the form


def tidy(notebook: Any) -> Any:
    """The notebook (an nbformat object, or a dict) in its stored form. Text and code stay as they are."""
    notebook = deepcopy(notebook)
    notebook["metadata"] = deepcopy(METADATA)
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    taken: set[str] = set()
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = _cell_id(cell.get("id", ""), number, taken)
        taken.add(cell["id"])
        _tidy_cell(cell)
    return notebook


def _cell_id(given: str, number: int, taken: set[str]) -> str:
    """An id that a person gave stays; a random one, or one that occurs twice, is replaced by the cell's number."""
    if _STABLE_ID.fullmatch(given) and not _RANDOM_ID.fullmatch(given) and given not in taken:
        return given
    name = f"cell-{number:02d}"
    return name if name not in taken else f"cell-{number:02d}-new"


def _tidy_cell(cell: Any) -> None:
    metadata = cell["metadata"]
    tags = list(dict.fromkeys(metadata.get("tags", [])))
    kept: dict[str, Any] = {"tags": tags} if tags else {}
    if metadata.get("exceptions"):
        kept["exceptions"] = dict(metadata["exceptions"])
    if HIDDEN in tags and cell["cell_type"] == "code":
        kept["jupyter"] = {"outputs_hidden": True} | ({"source_hidden": True} if SOLUTION in tags else {})
    if cell["cell_type"] == "code":
        for output in cell["outputs"]:
            output.pop("transient", None)
            output.get("data", {}).pop(WIDGET, None)  # a widget without its kernel shows nothing; its text and HTML stay
            if output["output_type"] == "error":  # the frames hold a machine's paths; the reader needs the last line
                output["traceback"] = [f"{output['ename']}: {output['evalue']}"]
        cell["outputs"] = list(_joined(output for output in cell["outputs"] if not _gone(output)))
    cell["metadata"] = type(metadata)(kept) if isinstance(metadata, dict) else kept


def _gone(output: Any) -> bool:
    """A progress line that was taken away when its work ended; whether it was ever shown is a matter of the machine."""
    return output["output_type"] == "display_data" and not any(_text(value) for value in output["data"].values())


def _joined(outputs: Iterable[Any]) -> Iterable[Any]:
    """Neighbouring pieces of one stream as one: how often a kernel flushes is chance."""
    last: Any = None
    for output in outputs:
        if last is not None and output["output_type"] == "stream" == last["output_type"] and output["name"] == last["name"]:
            last["text"] = _text(last["text"]) + _text(output["text"])
            continue
        if last is not None:
            yield last
        last = output
    if last is not None:
        yield last


def _text(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else str(value)


def faults(notebook: Any) -> list[str]:
    """What is not in the stored form, in words."""
    wanted = tidy(notebook)
    found = []
    if notebook["metadata"] != wanted["metadata"]:
        found.append("the notebook's metadata is not the plain one (kernelspec python3, no version, no widget state)")
    for cell, tidied in zip(notebook["cells"], wanted["cells"], strict=True):
        name = cell.get("id") or tidied["id"]
        if cell.get("id") != tidied["id"]:
            found.append(f"cell {name}: its id is random, missing or there twice")
        if dict(cell["metadata"]) != dict(tidied["metadata"]):
            found.append(f"cell {name}: its metadata should be {dict(tidied['metadata'])}")
    return found


# ---------------------------------------------------------------- running


def run(path: Path) -> Any:
    """The notebook with the outputs of a fresh kernel, in its stored form. Raises AuthorError naming the cell that failed,
    or that should have failed and did not."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    notebook = tidy(notebook)
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT, kernel_name="python3", store_widget_state=False,
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )  # fmt: skip
    try:
        # the kernel's own notes are not the lesson's, and what is stored is what a new learner sees
        with client.setup_kernel(stderr=subprocess.DEVNULL, env={**os.environ, "LESSON_PROGRESS": "off"}):
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
    except CellExecutionError as error:
        raise AuthorError(f"{path}: a cell failed\n{error}") from error
    for cell in notebook.cells:
        if FAILS in cell.metadata.get("tags", []) and not any(o.output_type == "error" for o in cell.outputs):
            raise AuthorError(f"{path}: cell {cell.id} is tagged {FAILS}, but it did not fail")
    return tidy(notebook)


def write(notebook: Any, path: Path) -> bool:
    """Writes the notebook, UTF-8 and LF. Whether anything changed."""
    import nbformat

    text: str = nbformat.writes(notebook, version=4, indent=1) + "\n"  # type: ignore[no-untyped-call]
    old = path.read_bytes() if path.exists() else b""
    path.write_text(text, encoding="utf-8", newline="\n")
    return old != text.encode("utf-8")


# ---------------------------------------------------------------- the command


def notebooks(paths: Sequence[str]) -> list[Path]:
    """The notebooks that are meant: files, or all in folders; without any, those of the course."""
    found: list[Path] = []
    for path in map(Path, paths or ("notebooks",)):
        found += sorted(path.glob("*.ipynb")) if path.is_dir() else [path]
    missing = [path for path in found if not path.is_file()]
    if missing or not found:
        raise AuthorError(f"there is no notebook {missing[0] if missing else ', '.join(paths) or 'in notebooks/'}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: all is well (or was stored). 1: a cell failed, or a notebook is not in its stored form."""
    parser = argparse.ArgumentParser(
        prog="python -m lessonlib.lab.author", description="Run and tidy the course's notebooks."
    )
    parser.add_argument(
        "what", choices=("run", "tidy", "check"), help="run the cells; or only the form: write it, or check it"
    )
    parser.add_argument("paths", nargs="*", help="notebooks or folders; default: notebooks/")
    options = parser.parse_args(arguments)
    try:
        return max(_one(options.what, path) for path in notebooks(options.paths))
    except AuthorError as error:
        print(error, file=sys.stderr)
        return 1


def _one(what: str, path: Path) -> int:
    import nbformat

    if what == "run":
        print(f"{path}: {'new outputs' if write(run(path), path) else 'unchanged'}", flush=True)
        return 0
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    if what == "tidy":
        print(f"{path}: {'tidied' if write(tidy(notebook), path) else 'unchanged'}")
        return 0
    found = faults(notebook)
    for fault in found:
        print(f"{path}: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
