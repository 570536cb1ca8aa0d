"""The shape of a lesson of this course, beyond what any good notebook needs: checks like those of lint.py.

    artefact     the second cell shows something from work, in at most 60 words
    retrieval    two questions from earlier lessons (from 01 on)
    truth        what shows a prediction's answer is tagged `reveal`, and stands between the guess and its reveal
    promises     the card's (a), (b), ... are the data's, and each is tested by a prediction, a table or a closing question
    closing      three to five questions, the glossary, a link to the exercises
    source       where code of the library is shown, somebody asks something about it

`python -m lessonlib.lab.lint` applies them to what lies in `notebooks/` and has data. Your own need not follow.

What this file does not do: it does not know whether a question is a good one. Readers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lessonlib.lab.author import HIDDEN
from lessonlib.lab.lint import Cell, Fault, Notebook, cells, source, tags
from lessonlib.lab.predict import course

WORDS_OF_THE_ARTEFACT = 60
RETRIEVED = 2
CLOSING = range(3, 6)


def shape(notebook: Notebook) -> Iterator[Fault]:
    """All of them."""
    every = list(cells(notebook))
    number = re.match(r"# (\d\d) · ", source(every[0][1])) if every else None
    if number is None:
        yield Fault("card", "", "the first cell is no lesson's card")
        return
    data = course(number[1])
    yield from _artefact(every)
    yield from _retrieval(every, number[1], data)
    yield from _truth(every)
    yield from _promises(every, data)
    yield from _closing(every, number[1], data)
    yield from _source(every)


def _artefact(every: list[tuple[str, Cell]]) -> Iterator[Fault]:
    name, cell = every[1] if len(every) > 1 else every[0]
    words = len(source(cell).split())
    if cell.get("cell_type") != "markdown" or "```" not in source(cell):
        yield Fault("artefact", name, "the second cell must show a log line, a bill, a capture: something from work")
    elif words > WORDS_OF_THE_ARTEFACT:
        yield Fault("artefact", name, f"the artefact has {words} words; at most {WORDS_OF_THE_ARTEFACT}")


def _retrieval(every: list[tuple[str, Cell]], number: str, data: Mapping[str, Any]) -> Iterator[Fault]:
    if number == "00":
        return
    if not _called(every, f'recall("{number}")'):
        yield Fault("retrieval", "", f'no cell asks recall("{number}")')
    questions = data.get("retrieval", [])
    if len(questions) != RETRIEVED:
        yield Fault("retrieval", "", f"{len(questions)} questions from earlier lessons; {RETRIEVED}")
    for question in questions:
        if not "" < question.get("taught", "")[:2] < number:
            yield Fault("retrieval", "", f"a question on {question.get('taught')!r} is none on an earlier lesson")


def _truth(every: list[tuple[str, Cell]]) -> Iterator[Fault]:
    """Between a guess and its reveal stands the cell that shows the truth, and it is folded."""
    shown = False
    for name, cell in every:
        if cell.get("cell_type") != "code":
            continue
        if re.match(r"guess\s*=\s*None", source(cell)):
            shown = False
        shown = shown or HIDDEN in tags(cell)
        key = re.search(r"^reveal\(\s*[\"']([^\"']+)[\"'],\s*guess\)", source(cell), re.MULTILINE)
        if key and not shown:
            yield Fault("truth", name, f"nothing between the guess and the reveal of {key[1]} is tagged {HIDDEN}")


def _promises(every: list[tuple[str, Cell]], data: Mapping[str, Any]) -> Iterator[Fault]:
    promised = set(re.findall(r"\(([a-z])\) ", source(every[0][1])))
    known = set(data.get("exits", {}))
    if promised != known:
        yield Fault("promises", every[0][0], f"the card promises {sorted(promised)}, the data {sorted(known)}")
    parts = (*data.get("predictions", {}).values(), *data.get("tables", {}).values(), *data.get("closing", ()))
    tested = {str(part.get("exit", ""))[-1:] for part in parts}
    for letter in sorted(known - tested):
        yield Fault("promises", "", f"nothing tests the promise ({letter}): {data['exits'][letter]}")


def _closing(every: list[tuple[str, Cell]], number: str, data: Mapping[str, Any]) -> Iterator[Fault]:
    for call in (f'closing("{number}")', f'glossary("{number}")'):
        if not _called(every, call):
            yield Fault("closing", "", f"no cell asks {call}")
    count = len(data.get("closing", ()))
    if count not in CLOSING:
        yield Fault("closing", "", f"{count} closing questions; three to five")
    if not any(f"../exercises/{number}_" in source(cell) for _, cell in every):
        yield Fault("closing", "", "no link to the exercises")


def _source(every: list[tuple[str, Cell]]) -> Iterator[Fault]:
    for place, (name, cell) in enumerate(every):
        if cell.get("cell_type") == "code" and "inspect.getsource(" in source(cell):
            beside = [each for _, each in every[max(0, place - 1) : place + 2] if each.get("cell_type") == "markdown"]
            if not any(re.search(r"\?|\b(?:[Ff]ind|[Cc]ount|[Rr]ead) ", source(each)) for each in beside):
                yield Fault("source", name, "code of the library is shown, and nobody asks anything about it")


def _called(every: list[tuple[str, Cell]], call: str) -> bool:
    return any(call in source(cell) for _, cell in every if cell.get("cell_type") == "code")
