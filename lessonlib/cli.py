"""The `lesson` command: ask a model, see the request as curl, read a captured answer.

    lesson chat "..."          the answer on standard output, one line of figures on standard error
    lesson explain FILE...     what a captured answer is, event by event, and what is wrong with it
    lesson curl "..."          the request as a curl command

Exit codes, the same for all: 0 all well, 1 the answer (or one of the captures) has an error, 2 wrong usage, 130 interrupted.
Answers go to standard output, everything else to standard error, so that both can be piped.

What this file does not do: no logic of its own. It turns words into calls of the library and results into text. The library
is imported inside the commands, so that `lesson --help` answers at once. Why click and rich: docs/decisions/cli.md.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lessonlib.explain import Report

WIRE_NAMES = ("openai-responses", "anthropic-messages", "gemini-interactions", "openai-chat", "gemini-generate-content")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="lessonlib", prog_name="lesson")
def lesson() -> None:
    """See how the APIs of large language models really work."""


# ---------------------------------------------------------------- lesson explain


@lesson.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--wire", type=click.Choice(WIRE_NAMES), help="The wire format, where the content does not say it.")
@click.option("--status", type=click.IntRange(100, 599), help="The HTTP status (default: what the capture says, else 200).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per capture and line, for programs.")
@click.option("--problems", is_flag=True, help="With --json: add the findings to each object.")
@click.option("--all", "everything", is_flag=True, help="A row for every single event, and every text in full.")
def explain(
    files: tuple[str, ...], wire: str | None, status: int | None, as_json: bool, problems: bool, everything: bool
) -> None:
    """Read captured answers and say what they are.

    FILE is a saved event stream, a whole JSON answer or an error body, of any of the five wire formats; the output of
    `curl -i`; a browser's HAR file; or a folder that a tape was recorded into. `-` reads standard input.

    Exit code 0: every capture is a complete answer. 1: some are not.
    """
    if problems and not as_json:
        raise click.UsageError("--problems goes with --json; without --json the findings are always shown")
    complete = True
    for number, report in enumerate(_reports(files, wire, status, everything, rows=not as_json)):
        complete = complete and report.error is None
        if as_json:
            _print_line(report, problems)
        else:
            _print_report(report, everything, first=number == 0)
    sys.exit(0 if complete else 1)


def _reports(files: tuple[str, ...], wire: str | None, status: int | None, everything: bool, rows: bool) -> Iterator[Report]:
    """One report per capture. A file that cannot be read gives one that says so; nothing stops the others."""
    from lessonlib import explain as reading

    most = None if everything else reading.MAX_ROWS
    for file in files:
        try:
            captures = reading.unwrap(sys.stdin.buffer.read()) if file == "-" else reading.read(Path(file), file)
        except OSError as error:
            yield reading.unreadable(file, error)
            continue
        for capture in captures:
            yield reading.explain(capture, wire=wire, status=status, each=everything, max_rows=most if rows else 0)


def _print_line(report: Report, problems: bool) -> None:
    from lessonlib.explain import to_json

    line = report.line()
    if problems:
        line["problems"] = [
            {
                "severity": found.severity,
                "code": found.code,
                "message": found.message,
                "place": found.place,
                "rule": found.rule,
            }
            for found in report.findings
        ]
    sys.stdout.write(to_json(line) + "\n")


def _print_report(report: Report, everything: bool, first: bool) -> None:
    from lessonlib.explain.render import to_pipe, to_terminal

    if not first:
        sys.stdout.write("\n\n")
    if not sys.stdout.isatty():
        to_pipe(report, sys.stdout, everything=everything)
        return
    from rich.console import Console

    to_terminal(report, Console(highlight=False), everything=everything)


# ---------------------------------------------------------------- the entry


def main() -> None:
    """The command as a console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a console that knows few characters (a Windows code page) shows the others as escapes, and never crashes
            stream.reconfigure(errors="backslashreplace")
    lesson()
