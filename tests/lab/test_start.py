"""`lesson start` never writes over what a learner has changed, gives nothing away, and works from a wheel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from lessonlib.lab import start as course
from lessonlib.lab.start import MANIFEST, StartError, start, without_answers

ROOT = Path(__file__).parents[2]
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "See [the page](../docs/page.md#it)."},
            {"cell_type": "code", "id": "a", "metadata": {}, "source": "guess = None", "outputs": [], "execution_count": 1},
            {"cell_type": "code", "id": "b", "metadata": {"tags": ["reveal"], "jupyter": {"outputs_hidden": True}},
             "source": "truth()", "execution_count": 2,
             "outputs": [{"output_type": "stream", "name": "stdout", "text": "the answer\n"}]},
            {"cell_type": "code", "id": "c", "metadata": {}, "source": "print(1)", "execution_count": 3,
             "outputs": [{"output_type": "stream", "name": "stdout", "text": "1\n"}]},
        ],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    }
)  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    files = {
        "notebooks/00_start_here.ipynb": NOTEBOOK,
        "notebooks/01_more.ipynb": NOTEBOOK,
        "notebooks/.ipynb_checkpoints/x.ipynb": NOTEBOOK,
        "notebooks/notes.txt": "mine",
        "testdata/a/b/stream.sse": "data: 1\r\n\r\n",
        "docs/page.md": "# Größe → 🚲\n\n[more](wire/more.md) [outside](../README.md) [web](https://example.com/x.md)\n",
        "docs/wire/more.md": "# More\n\n[back](../page.md)\n",
        "docs/authoring.md": "# For authors\n",
        "docs/decisions/why.md": "# Why\n",
        "README.md": "# Not the course\n",
        "solutions/01.ipynb": NOTEBOOK,
        "lessonlib/x.py": "",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-8"))
    return folder


def written(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def test_it_writes_lessons_data_and_pages_and_nothing_else(source: Path, tmp_path: Path) -> None:
    done = start(tmp_path / "mine", source)
    assert written(tmp_path / "mine") == [
        MANIFEST, "docs/page.md", "docs/wire/more.md", "notebooks/00_start_here.ipynb", "notebooks/01_more.ipynb",
        "testdata/a/b/stream.sse",
    ]  # fmt: skip
    assert len(done.written) == 5
    assert (tmp_path / "mine/testdata/a/b/stream.sse").read_bytes() == b"data: 1\r\n\r\n"
    assert (tmp_path / "mine/docs/page.md").read_bytes() == (source / "docs/page.md").read_bytes()


def test_the_answers_are_left_out_and_nothing_else_is() -> None:
    _, *cells = json.loads(without_answers(NOTEBOOK.encode()))["cells"]
    assert [cell["outputs"] != [] for cell in cells] == [False, False, True]
    assert cells[1] == {"cell_type": "code", "id": "b", "metadata": {"tags": ["reveal"]}, "source": "truth()", "outputs": [],
                        "execution_count": None}  # fmt: skip
    assert cells[0]["source"] == "guess = None"


def test_code_that_is_folded_stays_folded() -> None:
    notebook = json.loads(NOTEBOOK)
    notebook["cells"][2]["metadata"]["jupyter"]["source_hidden"] = True
    _, _, truth, _ = json.loads(without_answers(json.dumps(notebook).encode()))["cells"]
    assert truth["metadata"] == {"tags": ["reveal"], "jupyter": {"source_hidden": True}}


def test_what_the_learner_changed_is_never_written_over(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    start(folder, source)
    mine, untouched = folder / "notebooks/00_start_here.ipynb", folder / "notebooks/01_more.ipynb"
    mine.write_text("my work", encoding="utf-8")
    for name in ("00_start_here", "01_more"):
        (source / f"notebooks/{name}.ipynb").write_text(NOTEBOOK.replace("print(1)", "print(2)"), encoding="utf-8")
    (source / "notebooks/02_new.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    done = start(folder, source)
    assert (done.written, done.updated, done.kept) == (
        ["notebooks/02_new.ipynb"], ["notebooks/01_more.ipynb"], ["notebooks/00_start_here.ipynb"],
    )  # fmt: skip
    assert mine.read_text(encoding="utf-8") == "my work"
    assert "print(2)" in untouched.read_text(encoding="utf-8")
    assert "notebooks/00_start_here.ipynb" in "\n".join(done.lines())
    assert start(folder, source).kept == ["notebooks/00_start_here.ipynb"]  # and again


def test_a_deleted_file_comes_back(source: Path, tmp_path: Path) -> None:
    start(tmp_path / "mine", source)
    (tmp_path / "mine/notebooks/01_more.ipynb").unlink()
    assert start(tmp_path / "mine", source).written == ["notebooks/01_more.ipynb"]


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"schema": 99, "files": {}}', '{"schema": 1, "files": 3}'])
def test_without_a_readable_manifest_nothing_is_written_over(source: Path, tmp_path: Path, manifest: str) -> None:
    folder = tmp_path / "mine"
    start(folder, source)
    (folder / MANIFEST).write_text(manifest, encoding="utf-8")
    (source / "docs/page.md").write_text("new", encoding="utf-8")
    assert start(folder, source).kept == ["docs/page.md"]


def test_a_file_that_was_there_before_the_course_is_left_alone(source: Path, tmp_path: Path) -> None:
    (tmp_path / "mine/docs").mkdir(parents=True)
    (tmp_path / "mine/docs/page.md").write_text("mine", encoding="utf-8")
    assert start(tmp_path / "mine", source).kept == ["docs/page.md"]
    assert start(tmp_path / "mine", source).kept == ["docs/page.md"]
    assert (tmp_path / "mine/docs/page.md").read_text(encoding="utf-8") == "mine"


def test_wrong_places_are_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for target in (tmp_path / "file", source, source / "notebooks"):
        with pytest.raises(StartError):
            start(target, source)


def test_a_learner_gets_the_pages_that_lessons_link_to_and_no_others() -> None:
    pages = {page.relative_to(ROOT).as_posix() for page in course.linked_pages(ROOT)}
    assert {"docs/tables.md", "docs/tokens.md", "docs/wire/anthropic.md"} <= pages
    assert [page for page in pages if "decisions" in page or "authoring" in page or "coverage" in page] == []


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["lab"], []),
        (["lab", "--", "--allow-root", "--port", "8890"], ["--allow-root", "--port", "8890"]),
        (["start", "mine", "--open", "--", "--no-browser"], ["--no-browser"]),
    ],
)
def test_options_behind_two_dashes_go_to_jupyterlab(
    words: list[str], options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from lessonlib.cli import lesson

    ran: list[list[str]] = []
    monkeypatch.setattr(
        subprocess, "run", lambda command, **more: ran.append(command) or subprocess.CompletedProcess(command, 0)
    )
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(lesson, words)
    assert result.exit_code == 0, result.output
    assert ran[0][: len(course.lab_command())] == course.lab_command()
    assert ran[0][len(course.lab_command()) :] == [*options, course.FIRST]


def test_an_option_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from lessonlib.cli import lesson

    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(lesson, ["start", "--", "--allow-root"])
    assert (result.exit_code, "name one before --" in result.output) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_the_course_of_a_checkout_is_the_checkout() -> None:
    assert course.course_folder() == ROOT
    assert course.opened_folder(ROOT / "tests" / "lab") == ROOT


def test_lab_opens_the_folder_that_start_wrote(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = start(tmp_path / "mine", source).folder
    assert course.opened_folder(folder / "testdata") == folder
    ran: list[tuple[list[str], Path]] = []

    def fake(command: list[str], cwd: Path, env: dict[str, str], check: bool) -> subprocess.CompletedProcess[bytes]:
        ran.append((command, cwd))
        assert (Path(env["JUPYTER_CONFIG_PATH"].split(os.pathsep)[-1]) / "labconfig/page_config.json").is_file()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", fake)
    assert course.open_lab(folder) == 0
    command, cwd = ran[0]
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert "--LabApp.news_url=None" in command
    assert cwd == folder


def test_without_jupyterlab_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(StartError, match="lessonlib\\[lab\\]"):
        course.open_lab(tmp_path)


def test_the_command_says_what_to_do_next(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from lessonlib.cli import lesson

    first = CliRunner().invoke(lesson, ["start", str(tmp_path / "mine")])
    assert first.exit_code == 0, first.output
    assert "lesson lab" in first.output
    assert (tmp_path / "mine/notebooks/00_start_here.ipynb").is_file()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    second = CliRunner().invoke(lesson, ["start", str(tmp_path / "file")])
    assert (second.exit_code, "name a folder" in second.output) == (1, True)


def test_the_course_works_from_a_wheel(tmp_path: Path) -> None:
    """The wheel is built, unpacked into a folder of its own and used from there; only the dependencies are the test's."""
    pytest.importorskip("hatchling")
    env = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_INDEX": "1"}

    def run(*command: str, cwd: Path = tmp_path, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], cwd=cwd, env={**env, **more}, capture_output=True, encoding="utf-8", timeout=110,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT))
    wheel = next(tmp_path.glob("*.whl"))
    run("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path / "site"), str(wheel))
    site = {"PYTHONPATH": str(tmp_path / "site")}
    where = run("-c", "import lessonlib; print(lessonlib.__file__)", **site).strip()
    assert Path(where).is_relative_to(tmp_path / "site")
    assert "written" in run("-m", "lessonlib", "start", "mine", "--no-open", **site)
    lessons = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {path.name for path in (tmp_path / "mine/notebooks").glob("*.ipynb")} == lessons
    code = "from lessonlib.lab import explorer; print(explorer('anthropic-messages/tool_call', at=-1).moment().state)"
    assert run("-c", code, cwd=tmp_path / "mine" / "notebooks", **site).strip() == "DONE"
    assert run("-c", code, **site).strip() == "DONE"  # from anywhere: the fixtures came along
    first = run("-m", "lessonlib.lab.headless", str(tmp_path / "mine/notebooks/00_start_here.ipynb"), **site)
    assert "What you can do now" in first  # the first lesson runs to its end


def test_in_jupyterlab_the_command_is_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opened it with `.venv/bin/lesson lab` has activated nothing, and `!lesson next` must work all the same."""
    monkeypatch.setenv("PATH", "elsewhere")
    first, *others = course.lab_environment()["PATH"].split(os.pathsep)
    assert Path(first) == Path(sysconfig.get_path("scripts"))
    assert others == ["elsewhere"]


def test_only_the_course_inside_of_the_package_is_no_place_to_work_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout may be called `course`, too."""
    checkout = tmp_path / "course"
    monkeypatch.setattr(course, "course_folder", lambda: checkout)
    assert course.opened_folder(tmp_path) == checkout
    monkeypatch.setattr(course, "INSIDE", checkout)
    with pytest.raises(StartError, match="lesson start"):
        course.opened_folder(tmp_path)
