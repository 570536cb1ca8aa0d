"""A report for the eyes: tables on a terminal, plain lines in a pipe, and nothing from a capture that could do harm.

Everything in a capture was written by others, so every text is made harmless before it is shown: terminal control sequences,
characters that reverse the reading direction, and invisible ones appear as escapes, and rich never sees them as markup.

A report becomes sections of plain cells first, and is written in one of two ways. `to_terminal` uses rich: colours, and the
last column wraps at the terminal's width. `to_pipe` wraps, colours and cuts nothing: one event stays one line for grep. No
table has lines around it, so that columns survive a copy, a log and a screen reader.

What this file does not do: it decides nothing, and it opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

from lessonlib.explain.report import KINDS, Finding, Report, Row, error_kind, one_line, stop_words
from lessonlib.types import Opaque, Part, Reasoning, Response, StopReason, Text, ToolCall, Usage

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

SHOWN_TEXT = 1200
"""How much of a text part is shown unless everything is asked for."""

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, of which \x1b and \x9b start terminal sequences
    "\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"  # direction, and invisible ones
    "\ud800-\udfff\U000e0000-\U000e007f]"  # what UTF-8 cannot write; tags, which are invisible letters
)


def harmless(text: str) -> str:
    """`text` with everything as an escape that a terminal would act on or hide. Line ends and tabs stay."""
    return _HARMFUL.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# ---------------------------------------------------------------- sections

Cell = tuple[str, str]
"""A harmless text and the name of its style."""

STYLES = {
    "": "", "title": "bold", "name": "dim", "good": "bold green", "error": "bold red", "warning": "yellow", "note": "cyan",
}  # fmt: skip


@dataclass(slots=True)
class Section:
    """A titled table. The last column may wrap and may hold line ends; `right` are the columns that are set to the right."""

    title: str
    rows: list[list[Cell]]
    header: list[str] | None = None
    right: tuple[int, ...] = ()


def cell(text: str, style: str = "") -> Cell:
    """A cell from any text."""
    return harmless(text), style


def sections(report: Report, *, everything: bool = False) -> Iterator[Section]:
    """The report as tables. everything: texts in full."""
    yield _heading(report)
    if report.rows:
        yield _events(report)
    if report.arrived is not None:
        title = "answer" if report.error is None else "what had arrived (not an answer)"
        stop = stop_words(report.arrived) if report.error is None else "none, as it never ended"
        yield Section(title, list(_answer(report.arrived, stop, everything)))
    if report.findings:
        yield Section("findings", list(_findings(report.findings)))


def _heading(report: Report) -> Section:
    wire = f"{report.wire} ({report.how})" if report.wire else "wire format not known"
    status = f"HTTP {report.status}" if report.status is not None else "HTTP status not known"
    facts = [wire, KINDS[report.kind], status, f"{report.size:,} bytes"]
    if report.events:
        facts.append(f"{report.events:,} event{'s' if report.events != 1 else ''}")
    if report.request_id:
        facts.append(f"request id {one_line(report.request_id, 80)}")
    verdict = cell("")
    if report.response is not None:
        good = report.response.stop in (StopReason.END, StopReason.TOOL_USE)
        words = f"complete{':' if good else ', but'} stop is {stop_words(report.response)}"
        verdict = cell(words, "good" if good else "warning")
    elif report.error is not None:
        verdict = cell(f"no complete answer: {error_kind(report.error).replace('_', ' ')}", "error")
    return Section(harmless(report.name), [[cell(", ".join(facts))], [verdict]])


def _events(report: Report) -> Section:
    timed = any(row.seconds is not None for row in report.rows)
    header = ["event", "byte", *(["seconds"] if timed else []), "name", "state", "what it did"]
    rows = [list(_event(row, timed)) for row in report.rows]
    if report.omitted:
        gap = [cell("...") for _ in header]
        gap[-1] = cell(f"{report.omitted:,} rows left out; --all shows them")
        rows.insert(len(rows) // 2, gap)
    return Section("events", rows, header, right=tuple(range(len(header) - 3)))


def _event(row: Row, timed: bool) -> Iterator[Cell]:
    yield cell("" if not row.first else f"{row.first}" if row.first == row.last else f"{row.first}-{row.last}")
    yield cell(f"{row.offset}" if row.offset >= 0 else "")
    if timed:
        yield cell("" if row.seconds is None else f"{row.seconds:.3f}")
    yield cell(one_line(row.event, 60))
    yield cell(row.after if row.before == row.after else f"{row.before} -> {row.after}")
    yield cell(row.did, "error" if row.failed else "")


def _answer(answer: Response, stop: str, everything: bool) -> Iterator[list[Cell]]:
    facts = {"id": answer.id, "model": answer.model, "stop": stop, "usage": usage(answer.usage)}
    for name, value in facts.items():
        yield [cell(name, "name"), cell(value or "not reported")]
    for part in answer.message.parts:
        yield [cell("call" if isinstance(part, ToolCall) else part.type, "name"), cell(_part(part, everything))]


def _part(part: Part, everything: bool) -> str:
    match part:
        case Text():
            return _short(part.text, everything) or "(empty)"
        case Reasoning():
            return _short(part.text, everything) or "(no readable text)"
        case ToolCall():
            head = f"{part.name or '(no name)'}, id {part.call_id or '(none)'}"
            reason = "" if part.args is not None else f"\ncannot be run: {_short(part.args_error or '', everything)}"
            return f"{head}{reason}\n{_short(part.raw_args, everything)}"
        case Opaque():
            return f"{part.kind}, kept as it came"
        case _:
            return "kept as it came"


def _short(text: str, everything: bool) -> str:
    if everything or len(text) <= SHOWN_TEXT:
        return text
    return f"{text[:SHOWN_TEXT]}… ({len(text):,} characters; --all shows them)"


def usage(counts: Usage | None) -> str:
    """Token counts in one line; what was not reported says so."""
    if counts is None:
        return "not reported"
    names = (
        ("input", counts.input_tokens),
        ("cached", counts.cached_tokens),
        ("cache written", counts.cache_write_tokens),
        ("output", counts.output_tokens),
        ("reasoning", counts.reasoning_tokens),
    )
    return ", ".join(f"{name} {'not reported' if count is None else f'{count:,}'}" for name, count in names)


def _findings(findings: Iterable[Finding]) -> Iterator[list[Cell]]:
    for finding in findings:
        message = finding.message[:1].upper() + finding.message[1:]
        place = f" ({finding.place})" if finding.place else ""
        stop = "" if message[-1:] in (".", "!", "?", "…") and not place else "."
        yield [cell(finding.severity, finding.severity), cell(f"{message}{place}{stop} See {finding.rule}")]


# ---------------------------------------------------------------- in a pipe


def to_pipe(report: Report, out: TextIO, *, everything: bool = False) -> None:
    """Plain text: one line per row, as wide as it is; a text with line ends goes on in the next line, indented."""
    for number, section in enumerate(sections(report, everything=everything)):
        out.write(f"{'' if number == 0 else chr(10)}{section.title}\n")
        table = [[text for text, _ in row] for row in section.rows]
        if section.header is not None:
            table.insert(0, section.header)
        widths = _widths(table)
        for row in table:
            out.write(_line(row, widths, section.right))


def _widths(table: list[list[str]]) -> list[int]:
    return [max(len(row[place]) for row in table) for place in range(len(table[0]) - 1)]


def _line(row: list[str], widths: list[int], right: tuple[int, ...]) -> str:
    fixed = [
        text.rjust(width) if place in right else text.ljust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=False))
    ]
    indent = "  " + " " * sum(width + 2 for width in widths)
    last = row[-1].split("\n")
    return "".join(
        f"{line.rstrip()}\n" for line in ["  " + "  ".join([*fixed, last[0]]), *(indent + line for line in last[1:])]
    )


# ---------------------------------------------------------------- on a terminal

_PAGE = 500
"""rich measures every cell before it prints the first, so a long table goes out in pages."""

_NARROW = 32
"""Columns that the words of an event need at least."""


def to_terminal(report: Report, console: Console, *, everything: bool = False) -> None:
    """With colours, the last column wrapped at the terminal's width."""
    from rich.padding import Padding
    from rich.text import Text as Words

    for number, section in enumerate(sections(report, everything=everything)):
        console.print(Words("" if number == 0 else "\n").append(section.title, style="bold"), soft_wrap=True)
        widths = _widths([[text for text, _ in row] for row in section.rows])
        if section.header is not None and console.width - sum(width + 2 for width in widths) < _NARROW:
            for row in section.rows:
                console.print(_stacked(row, widths))
            continue
        for start in range(0, len(section.rows), _PAGE):
            console.print(Padding(_page(section, start, widths), (0, 0, 0, 2)))


def _stacked(row: list[Cell], widths: list[int]) -> Group:
    """A row whose last column goes below the others, where there is no room beside them."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text as Words

    pairs = enumerate(zip(row, widths, strict=False))
    first = "  ".join(text.rjust(width) if place < 2 else text for place, ((text, _), width) in pairs)
    return Group(
        Words(f"  {first}".rstrip()), Padding(Words(row[-1][0], style=STYLES[row[-1][1]]), (0, 0, 0, widths[0] + 4))
    )


def _page(section: Section, start: int, widths: list[int]) -> Table:
    from rich.table import Table
    from rich.text import Text as Words

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.show_header = section.header is not None and start == 0
    header = section.header or [""] * (len(widths) + 1)
    for place, (name, width) in enumerate(zip(header, widths, strict=False)):
        justify: Literal["left", "right"] = "right" if place in section.right else "left"
        table.add_column(name, justify=justify, no_wrap=True, min_width=width)
    table.add_column(header[-1], overflow="fold")
    for row in section.rows[start : start + _PAGE]:
        table.add_row(*(Words(text, style=STYLES[style]) for text, style in row))
    return table
