"""The `lesson` commands of the simulator: `serve` it on this machine, and list the `rules` that it keeps.

cli.py registers them. What this file does not do: no logic of its own (lessonlib/sim), and no answers of the real services.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lessonlib.sim import Simulator

PROVIDERS = {
    "openai": "openai-responses",
    "anthropic": "anthropic-messages",
    "gemini": "gemini-interactions",
    "openai-chat": "openai-chat",
    "gemini-generate-content": "gemini-generate-content",
}
"""Each vendor's present API by the vendor's name, and the two older ones."""


def wire_name(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """What an option that names a wire format means: the format by its own name, or a vendor's present one by the
    vendor's."""
    if value is None:
        return None
    if value not in PROVIDERS and value not in PROVIDERS.values():
        known = ", ".join(dict.fromkeys([*PROVIDERS, *PROVIDERS.values()]))
        raise click.BadParameter(f"{value!r} is no wire format; there are {known}")
    return PROVIDERS.get(value, value)


WIRES_ON_THE_PORT = (
    ("OpenAI (Responses, Chat Completions)", "{url}/v1", 'OpenAI(base_url="{url}/v1", api_key="any")'),
    ("Anthropic (Messages)", "{url}", 'Anthropic(base_url="{url}", api_key="any")'),
    ("Google (Interactions, generateContent)", "{url}", 'genai.Client(api_key="any", http_options={{"base_url": "{url}"}})'),
)
"""Whose packages, their base URL, and how each is pointed at the server."""


@click.command()
@click.option(
    "--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Where to listen; 0: a free one."
)
@click.option("--fault", "faults", multiple=True, metavar="FAULT", help="A fault to have, such as status=529@1; repeatable.")
@click.option(
    "--script",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="JSON: the turns to answer with, in order, before the scripted model decides by itself (docs/simulator.md).",
)
@click.option(
    "--without", multiple=True, metavar="RULE", help="Leave out a rule about which the sources are in doubt; repeatable."
)
def serve(port: int, faults: tuple[str, ...], script: Path | None, without: tuple[str, ...]) -> None:
    """Serve the simulator on this machine, for any client or SDK.

    All wire formats answer on one port of 127.0.0.1. Any key will do, but there must be one, as in life. `lesson rules
    --faults` lists the faults.

    \b
    Examples:
      lesson serve
      lesson serve --fault status=529@1 --fault cut_events=5@2
    """
    sim = _simulator(faults, script, without)
    try:
        from lessonlib.sim import server
    except ModuleNotFoundError as error:
        raise click.ClickException(f'{error.name} is missing: pip install "lessonlib[serve]"') from None
    try:
        listening = server.listen(port)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise click.ClickException(f"cannot listen on port {port}: {reason}; --port 0 takes a free one") from None
    _introduce(server.address(listening), faults)
    server.serve(sim, listening)


def _simulator(faults: Iterable[str], script: Path | None, without: Iterable[str]) -> Simulator:
    """The simulator that the options describe."""
    from lessonlib.sim import Simulator
    from lessonlib.sim.faults import parse
    from lessonlib.sim.script import read

    try:
        turns = [] if script is None else read(script.read_text(encoding="utf-8"))
        return Simulator(script=turns, faults=[parse(text) for text in faults], clock=time.time, without=without)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None


def _introduce(url: str, faults: Iterable[str]) -> None:
    click.echo(f"The simulator listens on {url} (Ctrl-C ends it). No model answers, and nothing leaves this machine.")
    for who, base, code in WIRES_ON_THE_PORT:
        click.echo(f"\n{who}\n  base URL  {base.format(url=url)}\n  in Python {code.format(url=url)}")
    for fault in faults:
        click.echo(f"\nfault: {fault}")
    sys.stdout.flush()


@click.command()
@click.option(
    "--wire", callback=wire_name, metavar="NAME", help="Only the rules of one wire format, such as anthropic or openai-chat."
)
@click.option("--cues", is_flag=True, help="The words in a prompt that make the model do something particular.")
@click.option("--faults", is_flag=True, help="The faults that the simulator can be told to have.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def rules(wire: str | None, cues: bool, faults: bool, as_json: bool) -> None:
    """List the rules that the simulator keeps, with their sources.

    A request that breaks one of them gets the error that the real service gives. `doubt` says where the sources disagree,
    or where a rule is inferred from them: a request that keeps it is right either way (`lesson serve --without RULE`).
    """
    if (wire is not None) + cues + faults > 1:
        raise click.UsageError("--wire, --cues and --faults are three lists: choose one")
    rows = _cue_rows() if cues else _fault_rows() if faults else _rule_rows(wire)
    for row in rows:
        click.echo(json.dumps(row, ensure_ascii=False) if as_json else _block(row))


def _rule_rows(wire: str | None) -> list[dict[str, str]]:
    from lessonlib.sim import all_rules

    return [
        {"rule": rule.name, "wires": ", ".join(rule.wires), "says": rule.sentence, "source": rule.source}
        | ({"doubt": rule.doubt} if rule.doubt else {})
        for rule in all_rules()
        if wire is None or wire in rule.wires
    ]


def _cue_rows() -> list[dict[str, str]]:
    from lessonlib.sim import CUES

    return [{"cue": cue.name, "words": ", ".join(cue.words), "what it does": cue.what} for cue in CUES]


def _fault_rows() -> list[dict[str, str]]:
    from lessonlib.sim.faults import ANYWHERE, KINDS

    return [
        {
            "fault": f"{kind.name}={kind.value.upper()}" if kind.value else kind.name,
            "also takes": ", ".join(f"{name}=" for name in (*kind.also, *ANYWHERE)),
            "what it does": kind.what,
        }
        for kind in KINDS.values()
    ]


def _block(row: dict[str, str]) -> str:
    """A row as a paragraph: its name, and the rest below it. Readable at any width, and greppable."""
    (_, name), *rest = row.items()
    return "\n".join([name, *(f"  {key}: {value}" for key, value in rest)])
