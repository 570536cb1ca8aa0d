"""Run a notebook without a screen and print what it shows: `python -m lessonlib.lab.headless notebooks/00_start_here.ipynb`.

For machines without a browser, and to see that a fresh set-up works. Cells run in a real kernel (nbclient), in order, and
the run stops at the first cell that fails. Text, code and plain-text outputs are printed; pictures are named, not drawn.

What this file does not do: it compares nothing with the stored outputs (nbval does) and writes nothing back.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CELL_TIMEOUT = 120
"""Seconds that one cell may take before the run is given up."""


def run(path: Path) -> Iterator[str]:
    """The notebook's cells as blocks of text, each with the outputs of a fresh run. Raises nbclient's CellExecutionError
    when a cell fails, FileNotFoundError when there is no such notebook."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    # the kernel's own notes are not the lesson's, and nobody has read it only because it ran
    with client.setup_kernel(stderr=subprocess.DEVNULL, env={**os.environ, "LESSON_PROGRESS": "off"}):
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                client.execute_cell(cell, index)
            yield from blocks(cell)


def blocks(cell: Any) -> Iterator[str]:
    """One cell as text: prose as it is, code behind a prompt, outputs below it."""
    if not cell.source.strip():
        return
    if cell.cell_type != "code":
        yield cell.source
        return
    yield "\n".join(f"  > {line}" for line in cell.source.splitlines())
    for output in cell.outputs:
        text = shown(output)
        if text.strip():
            yield text.rstrip("\n")


def shown(output: Any) -> str:
    """The plain text of one output."""
    if output.output_type == "stream":
        return str(output.text)
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    data = output.get("data", {})
    if "text/plain" in data:
        return str(data["text/plain"])
    return f"[{', '.join(sorted(data))}]" if data else ""


def main(arguments: list[str]) -> int:
    """Print a run of each named notebook. 0 if all cells ran, 1 if one failed, 2 without a notebook."""
    if not arguments:
        print("usage: python -m lessonlib.lab.headless NOTEBOOK...", file=sys.stderr)
        return 2
    if hasattr(sys.stdout, "reconfigure"):  # Windows consoles do not speak UTF-8 by default
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    from nbclient.exceptions import CellExecutionError

    for name in arguments:
        path = Path(name)
        if not path.is_file():
            print(f"there is no notebook {name}", file=sys.stderr)
            return 2
        try:
            for block in run(path):
                print(block, end="\n\n", flush=True)
        except CellExecutionError as error:
            print(f"a cell of {name} failed:\n{error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
