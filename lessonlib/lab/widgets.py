"""Buttons, a slider and keys over the stream explorer. A thin layer: the explorer moves and shows itself.

Every control is a native one, so it works with the keyboard: Tab reaches it, the arrow keys move the slider, Space presses a
button. Nothing plays by itself. The output holds the explorer's text and HTML as well, so that a notebook without a running
kernel, and a reader without widgets, see the step that was current when it was shown.

What this file does not do: no lesson needs it, and nothing else imports it. It needs ipywidgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from lessonlib.lab.explore import Explorer

STEP_MILLISECONDS = 700
"""How long Play stays on each step."""


class ExplorerWidget:
    """The controls and the page of one explorer. `explorer` is moved by them, and can be read and moved by code as well."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        last = len(explorer)
        self.slider = ipywidgets.IntSlider(
            explorer.step.number, 1, last, description="step", continuous_update=True, layout={"width": "60%"}
        )
        self.player = ipywidgets.Play(
            value=explorer.step.number, min=1, max=last, interval=STEP_MILLISECONDS, show_repeat=False, playing=False
        )
        self.buttons = {
            name: ipywidgets.Button(description=words, tooltip=tooltip, layout={"width": "auto"})
            for name, words, tooltip in (
                ("first", "first", "to the first step"),
                ("prev", "back", "one step back"),
                ("next", "next", "one step on"),
                ("last", "last", "to the last step"),
            )
        }
        names = list(dict.fromkeys(step.name for step in explorer.steps))
        self.jump = ipywidgets.Dropdown(options=["jump to", *names], value="jump to", layout={"width": "auto"})
        self.page = ipywidgets.HTML()
        self.machine = ipywidgets.HTML()
        self.box = self._laid_out()
        self._connect()
        self._show()

    def _laid_out(self) -> Any:
        controls = ipywidgets.HBox([*self.buttons.values(), self.player, self.jump], layout={"flex_flow": "row wrap"})
        return ipywidgets.VBox([controls, self.slider, self.page, self.machine])

    def _connect(self) -> None:
        ipywidgets.link((self.slider, "value"), (self.player, "value"))
        self.slider.observe(self._moved, names="value")
        moves = {"first": lambda: 1, "last": lambda: len(self.explorer),
                 "prev": lambda: max(1, self.slider.value - 1),
                 "next": lambda: min(len(self.explorer), self.slider.value + 1)}  # fmt: skip
        for name, button in self.buttons.items():
            button.on_click(lambda _, where=moves[name]: setattr(self.slider, "value", where()))
        self.jump.observe(self._jumped, names="value")

    def _moved(self, change: dict[str, Any]) -> None:
        self.explorer.jump(int(change["new"]))
        self._show()

    def _jumped(self, change: dict[str, Any]) -> None:
        """To the next event of that name, from the start again after the last one."""
        name, here = change["new"], self.slider.value
        places = [step.number for step in self.explorer.steps if step.name == name]
        if places:
            self.slider.value = next((place for place in places if place > here), places[0])
            self.jump.value = "jump to"

    def _show(self) -> None:
        self.page.value = self.explorer._repr_html_()
        self.machine.value = self.explorer.diagram()._repr_html_()

    # ------------------------------------------------------------ forms

    def __repr__(self) -> str:
        return repr(self.explorer)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widget, and what it shows now as HTML and as text."""
        bundle: dict[str, Any] = dict(self.box._repr_mimebundle_() or {})
        return {**bundle, "text/plain": repr(self), "text/html": self.explorer._repr_html_()}
