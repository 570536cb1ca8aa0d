"""docs/simulator.md says what the code does: its tables are compared with the code, its examples are run.

`python -m tests.sim.test_docs` writes the tables again after a change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from lessonlib.sim import CUES, Call, Refuse, Say, ServerCall, SimRequest, Simulator, Think, Turn, all_rules, faults
from lessonlib.sim.refusal import Rule
from lessonlib.sim.rules import anthropic, chat, generate_content, interactions, responses
from lessonlib.sim.script import read

PAGE = Path(__file__).parent.parent.parent / "docs" / "simulator.md"
TEXT = PAGE.read_text(encoding="utf-8")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cues() -> str:
    return table(
        ["cue", "words", "what the model does"],
        [[f"`{cue.name}`", ", ".join(f'"{word}"' for word in cue.words), cue.what] for cue in CUES],
    )


def kinds() -> str:
    return table(
        ["fault", "also takes", "what happens"],
        [
            [
                f"`{kind.name}={kind.value}`" if kind.value else f"`{kind.name}`",
                ", ".join(f"`{name}`" for name in kind.also),
                kind.what,
            ]
            for kind in faults.KINDS.values()
        ],
    )


def rules() -> str:
    """One table for each set of wire formats that rules are about."""
    parts = [
        f"**{', '.join(wires)}**\n\n"
        + table(["rule", "what it says", "source"], [[_named(rule), rule.sentence, rule.source] for rule in found])
        for wires, found in groupby(all_rules(), key=lambda rule: rule.wires)
    ]
    return "\n".join(parts)


def _named(rule: Rule) -> str:
    return f"`{rule.name}` (in doubt)" if rule.doubt else f"`{rule.name}`"


def doubts() -> str:
    return table(["rule", "what speaks against it"], [[f"`{rule.name}`", rule.doubt] for rule in all_rules() if rule.doubt])


def not_played() -> str:
    books = [
        ("Responses", responses.NOT_PLAYED),
        ("Chat Completions", chat.NOT_PLAYED),
        ("Messages", ("thread", *anthropic.NOT_PLAYED)),
        ("Interactions", interactions.NOT_PLAYED),
        ("generateContent", generate_content.NOT_PLAYED),
    ]
    return "".join(f"* {name}: {', '.join(f'`{word}`' for word in words)}.\n" for name, words in books)


TABLES = {"cues": cues, "faults": kinds, "doubts": doubts, "rules": rules, "not played": not_played}


def between(name: str) -> str:
    return TEXT.partition(f"<!-- {name} -->\n")[2].partition("<!-- end -->")[0]


@pytest.mark.parametrize("name", TABLES)
def test_each_table_is_that_of_the_code(name: str) -> None:
    """If this fails after a change of the code: python -m tests.sim.test_docs"""
    assert between(name) == TABLES[name]()


def test_no_cell_breaks_its_table() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in rows}
    assert widths == {3, 4, 7}, "tables of two, three and six columns"
    assert [line for line in rows if not line.endswith("|")] == []


def test_the_script_of_the_page_is_one() -> None:
    [example] = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert [type(turn.segments[-1]) for turn in read(example)] == [Say, Call, Say, Call, Refuse, ServerCall]
    assert read(example)[1] == Turn((Think("I need the weather."), Call("get_weather", {"city": "北京"})))


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "simulator.md", "exec"), names)
    names["client"].close()
    status, answer = capsys.readouterr().out.split("\n", 1)
    assert status == "529"
    assert answer.startswith("This is the simulator's answer")


@pytest.mark.parametrize("text", re.findall(r"--fault (\S+)", TEXT) + re.findall(r"`(\w+=\d+@\d+,\w+=\d+)`", TEXT))
def test_the_faults_of_the_page_are_read(text: str) -> None:
    assert faults.parse(text).at == int(re.search(r"@(\d+)", text)[1])  # type: ignore[index]


@pytest.mark.parametrize(
    "path", ["/v1/files", "/v1/batches", "/v1/embeddings", "/v1/messages/batches", "/v1/images/generations"]
)
def test_what_is_not_there_says_so(path: str) -> None:
    reply = Simulator().handle(SimRequest("POST", path, {"authorization": "Bearer k"}, b"{}"))
    assert reply.status == 404
    assert "lesson serve" in json.loads(b"".join(data for _, data in reply.chunks))["error"]["message"]


def main() -> None:
    text = TEXT
    for name, build in TABLES.items():
        text = text.replace(f"<!-- {name} -->\n{between(name)}", f"<!-- {name} -->\n{build()}")
    PAGE.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
