"""The `lesson` command: ask a model, see the request as curl, read a captured answer, serve the simulator, open the course.

    lesson chat "..."          the answer on standard output, one line of figures on standard error
    lesson explain FILE...     what a captured answer is, event by event, and what is wrong with it
    lesson curl "..."          the request as a curl command
    lesson serve, rules        the simulator (cli_sim.py)
    lesson start, lab          the course
    lesson list, next, ...     going through it (cli_course.py)

Exit codes, the same for all: 0 all well, 1 the answer (or one of the captures) has an error, 2 wrong usage, 130 interrupted.
Answers go to standard output, everything else to standard error, so that both can be piped.

What this file does not do: no logic of its own. It turns words into calls of the library and results into text. The library
is imported inside the commands, so that `lesson --help` answers at once. Why click and rich: docs/decisions/cli.md.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lessonlib import capabilities, cli_course, cli_sim
from lessonlib.cli_sim import PROVIDERS, wire_name
from lessonlib.errors import APIError, LessonError

if TYPE_CHECKING:
    from httpx import BaseTransport

    from lessonlib.client import Client
    from lessonlib.explain import Report
    from lessonlib.tool_loop import Step, ToolRun
    from lessonlib.types import Event, Request, Tool
    from lessonlib.wire import WireFormat

WIRE_NAMES = ("openai-responses", "anthropic-messages", "gemini-interactions", "openai-chat", "gemini-generate-content")

DEFAULT_MODELS = {name: capabilities.default_model(name) for name in PROVIDERS.values()}
MODELS_AS_OF = capabilities.defaults_checked()
"""Models are retired within a year or two; `-m` names another one."""


CACHE_MARK: dict[str, dict[str, object]] = {"anthropic-messages": {"cache_control": {"type": "ephemeral"}}}
"""Anthropic caches nothing without a mark (docs/wire/anthropic.md); the others need none."""


class _Commands(click.Group):
    """Errors that the library raises on purpose become one line and exit code 1, not a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except LessonError as error:
            raise click.ClickException(_one_line(str(error))) from None


def _one_line(text: str) -> str:
    from lessonlib.explain.render import harmless

    return harmless(" ".join(text.split()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="lessonlib", prog_name="lesson")
def lesson() -> None:
    """See how the APIs of large language models really work."""


# ---------------------------------------------------------------- lesson explain


@lesson.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--wire",
    callback=wire_name,
    metavar="NAME",
    help=f"The wire format, where the content does not say it: {', '.join(WIRE_NAMES)}.",
)
@click.option(
    "--status",
    type=click.IntRange(100, 599),
    metavar="NUMBER",
    help="The HTTP status. Default: what the capture says, else 200.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per capture and line, for programs.")
@click.option("--problems", is_flag=True, help="With --json: add the findings to each object.")
@click.option("--all", "everything", is_flag=True, help="A row for every single event, and every text in full.")
def explain(
    files: tuple[str, ...], wire: str | None, status: int | None, as_json: bool, problems: bool, everything: bool
) -> None:
    """Read captured answers and say what they are.

    FILE is a saved event stream, a whole JSON answer or an error body, of any of the five wire formats; the output of
    `curl -i`; a browser's HAR file; or a folder that a tape was recorded into. `-` reads standard input.

    Exit code 0: every capture is a complete answer. 1: some are not. 2: wrong usage.

    \b
    Examples:
      curl -sN -i https://api.example.com/v1/messages ... > capture.txt
      lesson explain capture.txt
      lesson explain --json --problems captures/*.sse
      some-proxy | lesson explain --wire openai-chat -
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


# ---------------------------------------------------------------- what chat and curl share


def _asking(command: Callable[..., None]) -> Callable[..., None]:
    """The options that describe a request."""
    models = ", ".join(dict.fromkeys(DEFAULT_MODELS.values()))
    for option in (
        click.argument("prompt"),
        click.option("--tools", "with_tools", is_flag=True, help="Offer the model a clock and a calculator."),
        click.option("--stream/--no-stream", default=True, help="Ask for the answer as it comes (the default), or whole."),
        click.option("--base-url", metavar="URL", help="Where the API is, for example http://localhost:11434/v1."),
        click.option("-m", "--model", metavar="NAME", help=f"The model. Default ({MODELS_AS_OF}): {models}."),
        click.option(
            "-p",
            "--provider",
            callback=wire_name,
            metavar="NAME",
            default="openai",
            help=f"Whose API to speak: {', '.join(PROVIDERS)}. Default: openai.",
        ),
    ):
        command = option(command)
    return command


def _prompt(text: str) -> str:
    """`-` means standard input, which is UTF-8 whatever the console is."""
    return sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text


def _request(prompt: str, with_tools: bool) -> Request:
    from lessonlib.tools import tool
    from lessonlib.types import Message, Request

    tools: list[Tool] = [tool(function) for function in _tools().values()] if with_tools else []
    return Request(messages=[Message.user(_prompt(prompt))], tools=tools, extra=CACHE_MARK)


def _wire(name: str, model: str | None, base_url: str | None, key: str | None) -> WireFormat:
    """The wire format. key None takes the vendor's environment variable, "" goes without."""
    from lessonlib.wire import WIRES

    return WIRES[name](model or DEFAULT_MODELS[name], api_key=key, base_url=base_url)


# ---------------------------------------------------------------- lesson curl


@lesson.command()
@_asking
@click.option("--powershell", is_flag=True, help="For PowerShell instead of a POSIX shell.")
def curl(
    prompt: str, provider: str, model: str | None, base_url: str | None, stream: bool, with_tools: bool, powershell: bool
) -> None:
    """Print the request as a curl command.

    The key is a shell variable, so the command can be shown, stored and shared. `-` as PROMPT reads standard input.

    \b
    Examples:
      lesson curl -p gemini "Hello" | sh
      lesson curl -p anthropic --tools --no-stream "What time is it?"
    """
    from lessonlib.curl import KEY, for_powershell, for_shell

    wire = _wire(provider, model, base_url, KEY)
    write = for_powershell if powershell else for_shell
    encoded = wire.encode(_request(prompt, with_tools), stream=stream)
    sys.stdout.write(write(encoded, wire.key_variables[0], stream=stream) + "\n")


# ---------------------------------------------------------------- lesson chat


@lesson.command()
@_asking
@click.option("--live", is_flag=True, help="Ask the real service. Needs its API key in the environment, and costs money.")
def chat(
    prompt: str, provider: str, model: str | None, base_url: str | None, stream: bool, with_tools: bool, live: bool
) -> None:
    """Ask a model, and print its answer as it comes.

    The answer goes to standard output; one line with stop reason and token counts goes to standard error. Without --live
    nothing is sent: the simulator answers, by the service's rules but without a model. Its prompt cache is kept between
    runs, for five minutes: the second run of the same command shows cached tokens. `-` as PROMPT reads standard input.

    \b
    Examples:
      lesson chat --tools "What is (17 + 4) * 2, and what time is it?"
      lesson chat -p anthropic --live "Three facts about tides"
      lesson chat --live -p openai-chat --base-url http://localhost:11434/v1 Hi
    """
    from lessonlib.client import Client

    if base_url and not live:
        raise click.UsageError("--base-url goes with --live; without --live nothing is sent anywhere")
    request = _request(prompt, with_tools)
    if live:
        wire = _wire(provider, model, base_url, None)
        _check_key(wire)
    else:
        wire = _wire(provider, model, "http://localhost", "offline")  # whatever the environment says: nothing is sent
        click.echo("offline: the simulator answers, no model has read your question (--live asks one)", err=True)
    with Client(wire, transport=None if live else offline_transport()) as client:
        try:
            _converse(client, request, stream)
        except APIError as error:
            if error.status == 401 and not wire.has_key:
                said = _one_line(str(error)).rstrip(".")
                raise click.ClickException(f"{said}. No key was sent: {_how_to_set_a_key(wire)}") from None
            raise


def _check_key(wire: WireFormat) -> None:
    """A service of one's own may need no key; a vendor's does."""
    if not wire.has_key and wire.base_url == wire.default_base_url:
        raise click.ClickException(f"--live needs an API key: {_how_to_set_a_key(wire)}")


def _how_to_set_a_key(wire: WireFormat) -> str:
    first, *others = wire.key_variables
    also = f" (or {' or '.join(others)})" if others else ""
    return f"set the environment variable {first}{also}"


def offline_transport() -> BaseTransport:
    """What answers without --live: the simulator. Its prompt cache is kept between runs, so that a second run of the same
    command shows cached tokens, as it would in life."""
    import time

    from lessonlib.sim import SimTransport, Simulator

    cache = Path(click.get_app_dir("lessonlib")) / "simulated-prompt-cache.json"
    return SimTransport(Simulator(cache_file=cache, clock=time.time))


class _Page:
    """Standard output while an answer comes: texts at once, and a line end before anything else is said."""

    def __init__(self) -> None:
        self._line_open = False

    def write(self, text: str) -> None:
        """On a terminal nothing in the text may act on it; in a pipe it goes as it is."""
        from lessonlib.explain.render import harmless

        if text:
            self._line_open = not text.endswith("\n")  # first: Ctrl-C may come as soon as the text is out
            sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)
            sys.stdout.flush()

    def end_line(self) -> None:
        if self._line_open:
            self.write("\n")

    def show_tools(self, step: Step) -> None:
        """The calls of one answer and what came of them, on standard error."""
        if step.results:
            self.end_line()
        for call, result in zip(step.response.tool_calls, step.results, strict=False):
            click.echo(_one_line(f"tool {call.name}({call.raw_args}) -> {result.text}"), err=True)


def _converse(client: Client, request: Request, stream: bool) -> None:
    """Prints the answer, and the figures below it. Leaving early, by an error or Ctrl-C, closes the connection."""
    from lessonlib.tool_loop import ToolRun
    from lessonlib.types import TextDelta

    page, run = _Page(), ToolRun()
    try:
        with closing(_events(client, request, stream, run, page)) as events:
            for event in events:
                if isinstance(event, TextDelta):
                    page.write(event.text)
    finally:
        page.end_line()
    click.echo(_figures(run), err=True)


def _events(client: Client, request: Request, stream: bool, run: ToolRun, page: _Page) -> Generator[Event, None, None]:
    """The events of the answer and of those before it; of a whole answer its text as one piece. Without tools the loop asks
    once."""
    from lessonlib.tool_loop import run_tools, stream_tools
    from lessonlib.types import TextDelta

    tools = _tools() if request.tools else {}
    if stream:
        with stream_tools(client, request, tools, run=run, on_step=page.show_tools) as events:
            yield from events
    else:
        yield TextDelta(0, run_tools(client, request, tools, run=run, on_step=page.show_tools).response.text)


def _tools() -> dict[str, Callable[..., str]]:
    from lessonlib.example_tools import calculator, clock

    return {"calculator": calculator, "clock": clock}


def _figures(run: ToolRun) -> str:
    """Stop reason and token counts of the whole run, on one line."""
    from lessonlib.explain.report import stop_words

    usage = run.usage
    counts = {
        "input": usage.input_tokens,
        "cached": usage.cached_tokens,
        "output": usage.output_tokens,
        "reasoning": usage.reasoning_tokens,
    }
    words = [f"{name} {'not reported' if count is None else count}" for name, count in counts.items()]
    requests = [f"{run.steps} requests"] if run.steps > 1 else []
    return _one_line(", ".join([f"stop {stop_words(run.response)}", *words, *requests]))


# ---------------------------------------------------------------- lesson start, lesson lab


@lesson.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("lessonlib-course"), metavar="[DIR]")
@click.argument("jupyter", nargs=-1, type=click.UNPROCESSED, metavar="[-- JUPYTER OPTIONS]")
@click.option("--open/--no-open", "opens", default=None, help="Open JupyterLab on it. Default: on a terminal, yes.")
def start(folder: Path, jupyter: tuple[str, ...], opens: bool | None) -> None:
    """Write the course into a folder of your own, and open it.

    DIR (default: lessonlib-course) gets the lessons, the exercises and their data. What you have changed in it is never
    written over; run the command again after an update to get what is new. What follows -- goes to JupyterLab.
    """
    from lessonlib.lab import start as course

    if str(folder).startswith("-"):
        raise click.UsageError(f"{folder} is no folder; name one before --, as in  lesson start mine -- {folder}")
    try:
        done = course.start(folder)
        for line in done.lines():
            click.echo(line)
        if opens if opens is not None else sys.stdout.isatty():
            sys.exit(course.open_lab(done.folder, *jupyter))
    except (course.StartError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(
        f"Next: change into that folder and run  lesson lab  (it opens {course.FIRST});  lesson next  says what comes"
    )


@lesson.command()
@click.argument("jupyter", nargs=-1, type=click.UNPROCESSED, metavar="[-- JUPYTER OPTIONS]")
def lab(jupyter: tuple[str, ...]) -> None:
    """Open JupyterLab on the course.

    In the folder that `lesson start` wrote, or in a checkout. What follows -- goes to JupyterLab, for example
    -- --no-browser --port 8890, or -- --allow-root in a container.
    """
    from lessonlib.lab import start as course

    try:
        sys.exit(course.open_lab(course.opened_folder(Path.cwd()), *jupyter))
    except course.StartError as error:
        raise click.ClickException(str(error)) from None


# ---------------------------------------------------------------- lesson serve, lesson rules

lesson.add_command(cli_sim.serve)
lesson.add_command(cli_sim.rules)


# ---------------------------------------------------------------- going through the course

for command in cli_course.COMMANDS:
    lesson.add_command(command)


# ---------------------------------------------------------------- the entry


def main() -> None:
    """The command as a console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a console that knows few characters (a Windows code page) shows the others as escapes, and never crashes
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run())


def _run() -> int:
    """The exit code. Errors of the library become one line."""
    try:
        return lesson.main(standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:  # click makes it of a KeyboardInterrupt
        return 130


if __name__ == "__main__":
    main()
