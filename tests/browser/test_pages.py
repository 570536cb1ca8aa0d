"""Every lesson with its stored outputs as a page, in both themes at laptop width: nothing is cut off, all can be read.

That is what a reader sees who has no kernel: a course on a web server, or a notebook on a hosting site.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import LAPTOP, ROOT, SCREENSHOTS

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))

TOO_WIDE = """() => [...document.querySelectorAll('.jp-Cell *')].filter(element => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && (box.right > document.documentElement.clientWidth + 1
        || (getComputedStyle(element).overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 2));
}).map(element => element.tagName + ' ' + (element.innerText || '').slice(0, 60))"""
"""What leaves the page, or has to be scrolled sideways inside of its cell."""

FAINT = """() => {
    const channel = value => { const x = value / 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; };
    const light = colour => {
        const [red, green, blue] = colour.match(/[0-9.]+/g).map(Number);
        return 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
    };
    const ground = element => {
        for (let each = element; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            const alpha = colour.match(/[0-9.]+/g)[3];
            if (alpha === undefined || Number(alpha) > 0.9) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    const told = new Set();
    for (const element of document.querySelectorAll('.jp-OutputArea-output *, .jp-MarkdownOutput *')) {
        const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
        if (!own || element.closest('svg, script, style, math') || element.getBoundingClientRect().width === 0) continue;
        const [one, other] = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
        const ratio = (one + 0.05) / (other + 0.05);
        if (ratio < 4.5) told.add(ratio.toFixed(1) + ' ' + element.tagName + ' ' + element.innerText.slice(0, 50));
    }
    return [...told];
}"""
"""Words of outputs and texts whose contrast is below 4.5 (WCAG 2.2, AA)."""


@pytest.fixture(scope="module", params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def sheet(browser: Any) -> Iterator[Any]:
    """A page that reads files and nothing else."""
    context = browser.new_context(viewport=LAPTOP)
    context.route(
        "**/*", lambda route: route.continue_() if route.request.url.startswith(("file:", "data:")) else route.abort()
    )
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_fits_the_page_and_can_be_read(path: Path, theme: str, sheet: Any, tmp_path: Path) -> None:
    from nbconvert import HTMLExporter

    html, _ = HTMLExporter(theme=theme).from_filename(str(path))
    file = tmp_path / f"{path.stem}.html"
    file.write_text(html, encoding="utf-8")
    sheet.goto(file.as_uri(), wait_until="domcontentloaded")
    sheet.evaluate("() => document.querySelectorAll('details').forEach(each => each.open = true)")
    sheet.wait_for_timeout(200)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    sheet.screenshot(path=str(SCREENSHOTS / f"{theme}-page-{path.stem[:2]}.png"), full_page=True)
    assert sheet.evaluate(TOO_WIDE) == []
    assert sheet.evaluate(FAINT) == []
    for image in sheet.locator(".jp-Cell img").all():
        assert image.evaluate("each => each.complete && each.naturalWidth > 0")
        assert len(image.get_attribute("alt") or "") >= 20


def test_the_measures_find_what_they_are_for(sheet: Any) -> None:
    faint = '<p style="color:#999;background:#fff">faint words</p>'
    wide = '<pre style="overflow-x:auto">' + "x" * 400 + "</pre>"
    far = '<table style="margin-left:1300px;white-space:nowrap"><tr><td>a far cell of a table</td></tr></table>'
    sound = '<p style="color:#333;background:#fff">sound words</p>'

    def cell(inside: str) -> str:
        return f'<body><div class="jp-Cell"><div class="jp-OutputArea-output">{inside}</div></div></body>'

    sheet.set_content(cell(sound))
    assert (sheet.evaluate(TOO_WIDE), sheet.evaluate(FAINT)) == ([], [])
    sheet.set_content(cell(sound + faint))
    assert [found.partition(" ")[2] for found in sheet.evaluate(FAINT)] == ["P faint words"]
    for bad in (wide, far):
        sheet.set_content(cell(sound + bad))
        assert sheet.evaluate(TOO_WIDE) != []
