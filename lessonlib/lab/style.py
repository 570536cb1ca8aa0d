"""One restrained style for the course's pictures, and `Picture`: a figure with its finding in words and its data as a table.

    picture = load(clients=200)     (plots.py)
    picture                         in a notebook: the drawing, its finding below it, its data folded
    picture.alt, picture.table      the same as words and as a table; what tests look at
    picture.png(), picture.svg()    bytes that are the same on every run

A picture is readable without colour: every series has its own hatch, marker or line style and a label. It has a light ground
of its own, so it is readable in a dark theme, too. matplotlib is imported when a picture is drawn, never before, and nothing
of its global state is used, so a notebook's own plots are left alone.

What this file does not do: it knows no lesson.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lessonlib.lab.page import Table, element, html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PALE, GROUND = "#1a1a1a", "#8c8c8c", "#ffffff"
BLUE, ORANGE, GREEN, RED = "#3b73b9", "#e08a1e", "#2e7d4f", "#b3322f"
HATCHES = ("", "///", "...", "xxx", "---", "ooo")
"""A pattern for each series, so that nothing rests on colour."""

DPI = 144
"""Drawn twice as fine as shown, for sharp screens."""

TITLE = 0.32
"""Inches that the title of a picture takes."""

SETTINGS: Any = {  # matplotlib's own type for this is a list of 300 names
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": GROUND,
    "figure.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 0.7,
    "hatch.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "lessonlib",
    "svg.fonttype": "path",
    "path.simplify": False,
}


@dataclass(frozen=True)
class Picture:
    """A drawing with its finding and its data.

    title: the finding in a few words, drawn above. alt: the finding, in one or two sentences. table: the data. draw: draws
    on an empty figure. size: inches of the drawing without its title; a notebook's column is about nine wide.
    """

    title: str
    alt: str
    table: Table
    draw: Callable[[Figure], None] = field(repr=False)
    size: tuple[float, float] = (7.6, 3.2)

    def figure(self) -> Figure:
        """A new matplotlib figure with the drawing."""
        from matplotlib.figure import Figure as New

        with style():
            figure = New(figsize=(self.size[0], self.size[1] + TITLE), dpi=DPI, layout="constrained")
            self.draw(figure)
            figure.suptitle(self.title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        return figure

    def png(self) -> bytes:
        """The drawing as PNG."""
        return self._saved("png", metadata={"Software": None})

    def svg(self) -> str:
        """The drawing as SVG."""
        return self._saved("svg", metadata={"Date": None, "Creator": None}).decode("utf-8")

    def _saved(self, kind: str, **options: Any) -> bytes:
        out = io.BytesIO()
        with style():
            self.figure().savefig(out, format=kind, **options)
        return out.getvalue()

    # ------------------------------------------------------------ forms

    def __repr__(self) -> str:
        return f"{self.title}\n{self.alt}\n{self.table!r}"

    def _repr_html_(self) -> str:
        """The finding and the data; the drawing itself is an output of its own."""
        data = element("details", element("summary", "The data as a table") + self.table._repr_html_())
        return element("p", html(self.alt)) + data

    def _ipython_display_(self) -> None:
        """Two outputs: the drawing with its alternative text, then the finding with the data, which every reader gets."""
        from IPython.display import display

        width, height = round(self.size[0] * 96), round((self.size[1] + TITLE) * 96)
        about = {"alt": self.alt, "width": width, "height": height}
        drawing = {"image/png": self.png(), "text/plain": f"[drawing: {self.title}]"}
        display(drawing, raw=True, metadata={"image/png": about, "needs_background": "light"})  # type: ignore[no-untyped-call]
        display({"text/plain": repr(self), "text/html": self._repr_html_()}, raw=True)  # type: ignore[no-untyped-call]


@contextmanager
def style() -> Iterator[None]:
    """The settings of all pictures, for as long as the block lasts."""
    import matplotlib

    with matplotlib.rc_context(SETTINGS):
        yield


def one_axes(figure: Figure, title: str = "") -> Axes:
    """The only axes of a figure."""
    axes: Axes = figure.subplots()
    if title:
        axes.set_title(title)
    return axes


def no_axes(figure: Figure, width: float, height: float, title: str = "") -> Axes:
    """A sheet to draw on, from 0 to `width` and from 0 (top) to `height`, without ticks."""
    axes = one_axes(figure, title)
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    return axes
