"""What a person sees in JupyterLab: lessons run from a clean kernel, the explorer by mouse and keyboard, both themes.

The notebooks are those that `lesson start` writes. Every test leaves screenshots (build/screenshots/THEME-NAME.png).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonlib.lab import author, plots
from lessonlib.lab.author import METADATA
from tests.browser.conftest import PATIENCE, ROOT, SCREENSHOTS, Lab

LESSONS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb") if path.name[:2] in ("00", "06", "08"))
VIEWS = {
    "explorer": 'from lessonlib.lab import explorer\n\nwalk = explorer("anthropic-messages/tool_call", at=15)\nwalk',
    "machine": "walk.diagram()",
    "machine-openai": 'explorer("openai-responses/tool_call", at=27).diagram()',
    "rows": "walk.rows()",
    "lanes": 'from lessonlib.lab import lanes\n\nlanes("parallel_calls")',
    "viewer": (
        "from lessonlib import Message, Request, Tool\nfrom lessonlib.lab import viewer\n\n"
        'weather = Tool(name="get_weather", description="Weather of a city")\n'
        'asked = [Message.user("Weather in Oslo?")]\n'
        'viewer(Request(messages=asked, system="Be brief.", max_tokens=500, tools=[weather]))'
    ),
    "overview": "from lessonlib.lab import overview\n\noverview()",
    **{
        name: f"from lessonlib.lab import plots\n\nplots.{name}()"
        for name in plots.__all__
        if name not in ("diagram", "grid")
    },
}
"""One cell each, named as its screenshot is."""


NOTEBOOK = "window.jupyterapp.shell.currentWidget"
IDLE = f"() => {NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'"
FINISHED = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    const cells = panel.content.widgets.filter(cell => cell.model.type === 'code' && cell.model.sharedModel.source.trim());
    const expected = cell => (cell.model.getMetadata('tags') ?? []).includes('raises-exception');
    const failed = cell => cell.model.outputs.toJSON().some(output => output.output_type === 'error') && !expected(cell);
    const idle = panel.sessionContext.session.kernel.status === 'idle';
    return idle && (cells.every(cell => cell.model.executionCount !== null) || cells.some(failed));
}"""
SCROLL = "e => e.scrollBy(0, e.clientHeight - 60)"
AT_THE_END = "e => e.scrollTop + e.clientHeight >= e.scrollHeight - 5"


def scratch(lab: Lab, name: str, *sources: str) -> str:
    """A notebook of these cells in the learner's folder; its path there."""
    cells = [{"cell_type": "code", "id": f"cell-{number:02d}", "metadata": {}, "source": source, "outputs": [],
              "execution_count": None} for number, source in enumerate(sources)]  # fmt: skip
    path = lab.folder / "notebooks" / f"{name}.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": cells}), encoding="utf-8")
    return f"notebooks/{name}.ipynb"


def opened(page: Any, lab: Lab, notebook: str) -> None:
    """Opens a notebook and waits until its kernel is idle. No dialog may stand in the way."""
    page.goto(lab.notebook(notebook))
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    page.wait_for_function(IDLE)
    page.wait_for_selector(".jp-Spinner", state="detached")
    assert page.locator(".jp-Dialog").count() == 0
    assert page.locator(".jp-toast-button, .Toastify__toast").count() == 0


def run_all(page: Any) -> None:
    """Runs all cells by the menu, as a person does, and waits for the end."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function(FINISHED, timeout=PATIENCE * 1000)


def shoot(page: Any, name: str, target: Any = None) -> Path:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    (target or page).screenshot(path=str(path))
    return path


# ---------------------------------------------------------------- lessons


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_from_a_clean_kernel(page: Any, lab: Lab, theme: str, name: str) -> None:
    opened(page, lab, f"notebooks/{name}")
    shoot(page, f"{theme}-{name[:2]}-opened")
    run_all(page)
    assert saved_errors(page, lab, f"notebooks/{name}") == []
    notebook = page.locator(".jp-WindowedPanel-outer").first
    notebook.evaluate("e => e.scrollTo(0, 0)")
    for number in range(60):
        page.wait_for_timeout(400)  # cells are drawn as they come into view
        shoot(page, f"{theme}-{name[:2]}-{number:02d}")
        if notebook.evaluate(AT_THE_END):
            break
        notebook.evaluate(SCROLL)


def saved_errors(page: Any, lab: Lab, notebook: str) -> list[str]:
    """The cells that failed, of the notebook as saved, but for those that should."""
    page.keyboard.press("Escape")
    page.keyboard.press("Control+s")
    page.wait_for_timeout(1500)
    content = json.loads((lab.folder / notebook).read_text(encoding="utf-8"))
    assert any(cell.get("execution_count") for cell in content["cells"])
    return [
        f"{cell['id']}: {output['ename']}"
        for cell in content["cells"]
        for output in cell.get("outputs", ())
        if output["output_type"] == "error" and "raises-exception" not in cell["metadata"].get("tags", ())
    ]


def test_the_truth_is_not_on_the_page_before_the_guess(page: Any, lab: Lab, theme: str) -> None:
    """In the learner's copy the cells tagged `reveal` have no output, and the guess is None."""
    for path in sorted((lab.folder / "notebooks").glob("0*.ipynb")):
        content = json.loads(path.read_text(encoding="utf-8"))
        hidden = [cell for cell in content["cells"] if "reveal" in cell["metadata"].get("tags", ())]
        if not any(cell.get("execution_count") for cell in hidden):
            assert all(cell["outputs"] == [] for cell in hidden)


# ---------------------------------------------------------------- the explorer


@pytest.fixture
def explorer_page(page: Any, lab: Lab) -> Any:
    source = 'from lessonlib.lab import explorer\n\nwalk = explorer("anthropic-messages/tool_call")\nwalk.widget()'
    opened(page, lab, scratch(lab, "explorer_widget", source))
    run_all(page)
    page.wait_for_selector(".widget-slider")
    return page


def place(page: Any) -> str:
    return str(page.locator(".widget-html p").first.inner_text())


def test_the_explorer_by_mouse(explorer_page: Any, theme: str) -> None:
    page = explorer_page
    assert "event 1 of 19" in place(page)
    page.get_by_role("button", name="next").click()
    page.wait_for_function("() => document.querySelector('.widget-html p').innerText.includes('event 2 of 19')")
    page.get_by_role("button", name="last").click()
    page.wait_for_function("() => document.querySelector('.widget-html p').innerText.includes('end of the body')")
    page.get_by_role("button", name="back").click()
    page.wait_for_function("() => document.querySelector('.widget-html p').innerText.includes('event 19 of 19')")
    page.locator(".widget-dropdown select").select_option("message_delta")
    page.wait_for_function("() => document.querySelector('.widget-html p').innerText.includes('event 18 of 19')")
    shoot(page, f"{theme}-widget-mouse")


def test_the_explorer_by_keyboard(explorer_page: Any, theme: str) -> None:
    page = explorer_page
    page.get_by_role("button", name="first").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent.trim()") == "next"
    page.keyboard.press("Space")
    page.wait_for_function("() => document.querySelector('.widget-html p').innerText.includes('event 2 of 19')")
    page.locator(".widget-slider .noUi-handle").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.widget-html p').innerText.includes('event 5 of 19')")
    shoot(page, f"{theme}-widget-keyboard")


# ---------------------------------------------------------------- before anything was run


def test_stored_outputs_can_be_read_in_a_notebook_that_nobody_has_run(page: Any, lab: Lab, theme: str) -> None:
    """JupyterLab does not trust outputs that it did not make itself, and takes out much of their HTML."""
    sources = ("from lessonlib.lab import explorer, plots\n\nwalk = explorer('anthropic-messages/tool_call', at=15)\nwalk",
               "walk.diagram()", "plots.sieve()")  # fmt: skip
    path = lab.folder / scratch(lab, "stored", *sources)
    author.write(author.run(path), path)
    opened(page, lab, "notebooks/stored.ipynb")
    page.wait_for_selector(".jp-OutputArea-output img")
    page.wait_for_timeout(1000)
    images = page.locator(".jp-OutputArea-output img").all()
    assert len(images) == 2
    assert all(image.evaluate("e => e.complete && e.naturalWidth > 0") for image in images)
    words = page.locator(".jp-Notebook").inner_text()
    for said in (
        "event 15 of 19",
        "display only: never parsed, never run",
        "DONE is reached from ENDING",
        "Of 8 calls 1 runs",
    ):
        assert said in words
    shoot(page, f"{theme}-stored")


# ---------------------------------------------------------------- what everything looks like


def test_every_view_is_drawn_and_fits_the_width(page: Any, lab: Lab, theme: str) -> None:
    opened(page, lab, scratch(lab, "views", *VIEWS.values()))
    run_all(page)
    notebook = page.locator(".jp-WindowedPanel-outer").first
    for number, name in enumerate(VIEWS):
        cell = page.locator(f".jp-Cell[data-windowed-list-index='{number}']")
        for _ in range(60):
            if cell.count():
                break
            notebook.evaluate("e => e.scrollBy(0, 300)")
            page.wait_for_timeout(150)
        cell.scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        shoot(page, f"{theme}-view-{name}", cell)
        outputs = cell.locator(".jp-OutputArea-output")
        assert outputs.count() >= 1, name
        for image in cell.locator("img").all():
            assert image.evaluate("e => e.complete && e.naturalWidth > 0"), name
            assert image.evaluate("e => e.getBoundingClientRect().right <= window.innerWidth"), name
        assert "Traceback" not in cell.inner_text()
