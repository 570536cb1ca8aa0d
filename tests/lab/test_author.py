"""The author's tool: notebooks run, and are stored in a form that is the same on every machine and in every run."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lessonlib.lab import author, progress
from tests.lab.test_lint import code, md, notebook, stdout

pytestmark = pytest.mark.enable_socket


def write(path: Path, *cells: dict[str, Any]) -> Path:
    raw = notebook(*cells, card=False)
    for cell in raw["cells"]:
        if cell["cell_type"] == "code":
            cell["execution_count"], cell["outputs"] = None, []
    path.write_text(json.dumps(raw), encoding="utf-8")
    return path


# ---------------------------------------------------------------- the form


def test_tidy_takes_away_what_differs_between_machines() -> None:
    churned = notebook(
        code("x", stdout("a"), stdout("b"), name="3f2b8c1d", execution={"iopub.status.busy": "2026"}, collapsed=True),
        code("y", tags=["reveal", "reveal"], name="named"),
        md("text", "0a1b2c3d-1111-2222-3333-444455556666"),
        code("z", tags=["reveal", "solution"], name="mine"),
        card=False,
    )
    churned["cells"][2]["id"] = "0a1b2c3d-1111-2222-3333-444455556666"
    churned["cells"][0]["id"] = "3f2b8c1d"
    language = {"name": "python", "version": "3.11.7"}
    churned["metadata"] = {"kernelspec": {"name": "mine"}, "language_info": language, "widgets": {}}
    tidied = author.tidy(churned)
    assert tidied["metadata"] == author.METADATA
    assert [cell["id"] for cell in tidied["cells"]] == ["cell-00", "named-1", "cell-02", "mine-3"]
    assert tidied["cells"][0]["outputs"] == [stdout("ab")]
    assert tidied["cells"][0]["metadata"] == {}
    assert tidied["cells"][1]["metadata"] == {"tags": ["reveal"], "jupyter": {"outputs_hidden": True}}
    assert tidied["cells"][3]["metadata"]["jupyter"] == {"outputs_hidden": True, "source_hidden": True}
    assert author.faults(tidied) == []
    assert len(author.faults(churned)) == 6


def test_tidy_changes_nothing_that_is_tidy_and_not_its_argument() -> None:
    once = author.tidy(notebook(code("x", stdout("a")), md("text")))
    before = copy.deepcopy(once)
    assert author.tidy(once) == once == before


def test_a_widgets_state_goes_and_its_text_stays() -> None:
    data = {author.WIDGET: {"model_id": "ab12"}, "text/plain": "step 1", "text/html": "<p>step 1</p>"}
    tidied = author.tidy(notebook(code("w", {"output_type": "display_data", "metadata": {}, "data": data})))
    assert tidied["cells"][1]["outputs"][0]["data"] == {"text/plain": "step 1", "text/html": "<p>step 1</p>"}


def test_two_cells_of_one_id_get_two() -> None:
    doubled = notebook(code("x"), code("y"), card=False)
    for cell in doubled["cells"]:
        cell["id"] = "same"
    assert [cell["id"] for cell in author.tidy(doubled)["cells"]] == ["same", "cell-01"]


# ---------------------------------------------------------------- running


def test_run_stores_outputs_counts_and_short_errors_and_runs_the_same_twice(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.ipynb", code(f"import os; os.getcwd() == {str(tmp_path)!r}"), code("print('π → 🚲')"),
        code("{'a': 1}['b']", tags=["raises-exception"]),
    )  # fmt: skip
    assert author.main(["run", str(path)]) == 0
    first = path.read_bytes()
    stored = nbformat.reads(first.decode("utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    assert [cell.execution_count for cell in stored.cells] == [1, 2, 3]
    assert stored.cells[0].outputs[0].data["text/plain"] == "True"  # it runs where the notebook is
    assert stored.cells[1].outputs[0].text == "π → 🚲\n"
    assert stored.cells[2].outputs[0].traceback == ["KeyError: 'b'"]
    assert b"\r\n" not in first
    assert author.main(["run", str(path)]) == 0
    assert path.read_bytes() == first
    assert author.main(["check", str(path)]) == 0


def test_what_is_stored_is_what_a_new_learner_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress of whoever runs the notebooks stands in no output, and running them is none."""
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "home"))
    progress.note_check("01.parser", passed=True)
    before = progress.path().read_bytes()
    path = write(tmp_path / "x.ipynb", code("from lessonlib.lab import progress\n\nprogress.show('01')"))
    assert author.main(["run", str(path)]) == 0
    [output] = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4).cells[0].outputs  # type: ignore[no-untyped-call]
    assert "to do  01.parser" in output.data["text/plain"]
    assert "done" not in output.data["text/plain"]
    assert "Nothing is recorded" not in output.data["text/plain"]
    assert progress.path().read_bytes() == before


def test_tests_and_notebooks_keep_nothing_in_the_home_of_whoever_runs_them() -> None:
    """The conftest.py at the top."""
    assert progress.path().parent != Path.home() / ".lessonlib"
    assert progress.path().is_relative_to(Path(tempfile.gettempdir()))


def test_a_cell_that_fails_or_that_should_and_does_not_changes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = write(tmp_path / "a.ipynb", code("1 / 0"))
    lenient = write(tmp_path / "b.ipynb", code("x = 1", tags=["raises-exception"]))
    before = failing.read_bytes(), lenient.read_bytes()
    assert author.main(["run", str(failing)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert author.main(["run", str(lenient)]) == 1
    assert "cell code-0 is tagged raises-exception, but it did not fail" in capsys.readouterr().err
    assert (failing.read_bytes(), lenient.read_bytes()) == before


def test_check_names_what_is_not_in_the_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.ipynb", code("x = 1", tags=["reveal"]))
    assert author.main(["check", str(path)]) == 1
    assert "outputs_hidden" in capsys.readouterr().err
    assert author.main(["tidy", str(path)]) == 0
    assert author.main(["check", str(path)]) == 0
    assert author.main(["check", str(tmp_path / "none.ipynb")]) == 1
    assert "there is no notebook" in capsys.readouterr().err


def test_a_folder_means_all_its_notebooks(tmp_path: Path) -> None:
    paths = [write(tmp_path / name, code("x = 1")) for name in ("b.ipynb", "a.ipynb")]
    assert author.notebooks([str(tmp_path)]) == sorted(paths)
