"""The stream explorer: one step of a stream at a time, with the bytes, the state, the parts as they grow, and what it gave.

    walk = explorer("anthropic-messages/tool_call")    a fixture, a file, a tape folder, bytes, a list of events
    walk.jump(15)                                      shown as text or HTML; next, prev, play as in Stepper
    walk.diagram()                                     the decoder's state machine, the current state marked
    walk.widget()                                      the same with buttons and keys; no lesson needs it

What this file does not do: it decides nothing about a stream (stepper.py), and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lessonlib.explain.report import error_kind
from lessonlib.lab.machine import Diagram
from lessonlib.lab.page import WIDTH, element, html, plain
from lessonlib.lab.source import Source
from lessonlib.lab.stepper import PartView, Step, Stepper, shown

if TYPE_CHECKING:
    from lessonlib.lab.widgets import ExplorerWidget

DISPLAY_ONLY = "display only: never parsed, never run"
HELD = "ended, but held back: if the answer stopped here, it might be cut"
SHOWN_PARTS = 6
SHOWN_LINES = 6
SHOWN_EVENTS = 4
CODE_FONT = "font-family:var(--jp-code-font-family,monospace)"
"""The notebook's own font for code; a page without one takes any of fixed width."""


def explorer(source: Source, *, wire: str | None = None, at: int | str = 1, name: str | None = None) -> Explorer:
    """The explorer on a stream, at step `at` (a number or an event's name). wire: where the bytes do not say it."""
    found = Explorer(source, wire, name)
    found.jump(at)
    return found


class Explorer(Stepper):
    """A Stepper that shows its current step."""

    def diagram(self) -> Diagram:
        """The decoder's state machine with the current state; of the events that change no state, those of this stream."""
        return Diagram(self.wire, self.table, self.step.after, frozenset(step.name for step in self.steps))

    def widget(self) -> ExplorerWidget:
        """Buttons, a slider and keys over this explorer. Needs ipywidgets and a running kernel."""
        from lessonlib.lab.widgets import ExplorerWidget

        return ExplorerWidget(self)

    # ------------------------------------------------------------ as text

    def __repr__(self) -> str:
        step = self.step
        lines = [f"{plain(self.name)}, {self._place_words()}"]
        lines += [f"  > {line}" for line in self._raw_lines()]
        lines.append(f"state   {_state_words(step)}")
        for number, (part, words) in enumerate(self._part_words()):
            lines.append(f"{'parts' if not number else '':8}{part}  {words}")
        lines += [f"{'gives' if not number else '':8}{line}" for number, line in enumerate(self._gives())]
        return "\n".join(line.rstrip() for line in lines)

    def _place_words(self) -> str:
        step = self.step
        if step.sse is None:
            return f"end of the body, after {len(self) - 1} events and {len(self.stream.body):,} bytes"
        where = f", bytes {step.start:,} to {step.end:,}" if step.start >= 0 else ""
        when = f", {step.seconds:.3f} s after the request" if step.seconds is not None else ""
        return f"event {step.number} of {len(self) - 1}{where}{when}: {plain(step.name, 60)}"

    def _raw(self, step: Step) -> bytes:
        if step.sse is None:
            return b""
        return self.stream.body[step.start : step.end] if step.start >= 0 else step.sse.data

    def _raw_lines(self) -> list[str]:
        if self.step.sse is None:
            return ["(no more bytes)"]
        lines = self._raw(self.step).decode("utf-8", "replace").splitlines()
        kept = [plain(line, WIDTH - 4) for line in lines if line.strip()]
        return (
            kept if len(kept) <= SHOWN_LINES else [*kept[: SHOWN_LINES - 1], f"… {len(kept) - SHOWN_LINES + 1} more lines"]
        )

    def _part_words(self) -> Iterable[tuple[str, str]]:
        parts = self.moment().parts
        if not parts:
            yield "-", "none yet"
        for part in parts[:SHOWN_PARTS]:
            yield f"{part.place} {plain(part.kind, 40):9} {part.status:7}", plain(shown(part), 56) + _remark(part)
        if len(parts) > SHOWN_PARTS:
            yield "…", f"{len(parts) - SHOWN_PARTS} more"

    def _gives(self) -> list[str]:
        step = self.step
        if step.error is not None:
            return [f"{error_kind(step.error).replace('_', ' ')}: {plain(step.error.message, WIDTH - 30)}"]
        events = [_event(event) for event in step.events]
        if not events:
            return [f"no event; {plain(step.did, WIDTH - 20)}" if step.did else "no event"]
        return events if len(events) <= SHOWN_EVENTS else [*events[: SHOWN_EVENTS - 1], f"… {len(events)} events in all"]

    # ------------------------------------------------------------ as HTML

    def _repr_html_(self) -> str:
        heading = element("b", html(self.name)) + ", " + html(self._place_words())
        rows = [
            _row("bytes", self._raw_html()),
            _row("state", self._state_html()),
            _row("parts", self._parts_html()),
            _row("gives", "<br>".join(element("code", html(line)) for line in self._gives())),
        ]
        table = element("table", element("tbody", "".join(rows)), style="width:100%")
        return element("div", element("p", heading) + table)

    def _raw_html(self) -> str:
        """The current event marked, with the one before and the one after around it."""
        now = self._place - 1
        around = [self._excerpt(self.steps[place]) if 0 <= place < len(self) else "" for place in (now - 1, now + 1)]
        lines = [
            element("small", html(around[0])),
            *(element("mark", html(line)) for line in self._raw_lines()),
            element("small", html(around[1])),
        ]
        return element("pre", "\n".join(lines), style=f"white-space:pre-wrap;margin:0;{CODE_FONT}")

    def _excerpt(self, step: Step) -> str:
        if step.sse is None:
            return "(end of the body)"
        lines = self._raw(step).decode("utf-8", "replace").strip().splitlines()
        return plain(lines[-1] if lines else "", WIDTH - 20)

    def _state_html(self) -> str:
        """All states in a row, the current one marked."""
        names = [
            element("mark", element("b", html(name)), title="the current state") if name == self.step.after else html(name)
            for name in Diagram(self.wire, self.table).states
        ]
        return " · ".join(names) + element("small", f" &ensp; {html(_state_words(self.step))}")

    def _parts_html(self) -> str:
        rows = [
            element("tr", "".join(element("td", cell, style="text-align:left") for cell in _part_cells(part)))
            for part in self.moment().parts[:SHOWN_PARTS]
        ]
        more = len(self.moment().parts) - SHOWN_PARTS
        rest = element("small", f"… {more} more") if more > 0 else ""
        return (element("table", element("tbody", "".join(rows)), style="margin:0") if rows else "none yet") + rest


def _row(name: str, content: str) -> str:
    left = "text-align:left;vertical-align:top"
    head = element("th", name, scope="row", style=f"{left};width:4em")
    return element("tr", head + element("td", content, style=left))


def _part_cells(part: PartView) -> list[str]:
    remark = _remark(part)
    content = element("code", html(shown(part), 400)) + (element("small", f"<br>{html(remark.strip())}") if remark else "")
    return [html(str(part.place)), html(part.kind), element("b" if part.status == "whole" else "i", part.status), content]


def _remark(part: PartView) -> str:
    if part.display_only:
        return f"   ({DISPLAY_ONLY})"
    if part.problem:
        return f"   (cannot be run: {plain(part.problem, 60)})"
    return f"   ({HELD})" if part.status == "held" else ""


def _state_words(step: Step) -> str:
    return f"{step.after} (unchanged)" if step.before == step.after else f"{step.before} -> {step.after}"


def _event(event: object) -> str:
    """A unified event on one line. Long contents are cut in the middle."""
    name = type(event).__name__
    fields = {field: getattr(event, field) for field in type(event).__dataclass_fields__}  # type: ignore[attr-defined]
    if name == "Done":
        response = fields["response"]
        return f"Done(stop={response.stop}, {len(response.message.parts)} parts)"
    if name == "PartDone":
        return f"PartDone(index={fields['index']}, {type(fields['part']).__name__})"
    return f"{name}({', '.join(f'{key}={plain(repr(value), 50)}' for key, value in fields.items())})"
