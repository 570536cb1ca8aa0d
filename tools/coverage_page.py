"""docs/coverage.md, made from docs/coverage/NN.json: each point of the documents behind this course, its place, its proof.

    python tools/coverage_page.py            writes the page
    python tools/coverage_page.py --check    only compares: exit code 1 and what is wrong

A row names the point ("lesson §9", "chapter 5.4.2", "lesson self-test 7"), what it says, the place where a reader learns it
(a notebook's heading, or a reference page's), and `fails_without`: what a reader would fail who has not learned it, or the
test that would fail without it. That is one of

    "03.blank"          a prediction, a table to fill in, or an exercise of that key
    "03.b"              a promise of the lesson's card; its closing questions or predictions test it
    "usage"             a build-it check; "cache-left-out": a break; "stream_equals_whole": a behaviour of the course suite
    "quiz 03.results"   a question of the quiz
    "tests/...::test"   a test of the full suite

`faults` says of each row whether both exist, and of the two documents whether a section has no row at all.

What this file does not do: it does not know whether a place teaches its point well. Readers do.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # run as a script from a checkout
    sys.path.insert(0, str(ROOT))

from lessonlib.lab import breaks, checks, exercises, lint, quiz  # noqa: E402
from lessonlib.lab.course_suite import behaviours  # noqa: E402
from lessonlib.lab.predict import course  # noqa: E402

PAGE = ROOT / "docs" / "coverage.md"
ROWS = ROOT / "docs" / "coverage"

SECTIONS = (
    *(f"lesson §{number}" for number in range(1, 24)),
    *(f"lesson ability {number}" for number in range(1, 7)),
    *(f"lesson self-test {number}" for number in range(1, 15)),
    *(f"lesson break {number}" for number in range(1, 9)),
    *(f"lesson logged line {number}" for number in range(1, 4)),
    "lesson exercise 1.1", "lesson exercise 1.2", "lesson exercise 1.3", "lesson exercise 3",
    "lesson option 1", "lesson option 2",
    *(f"lesson table §{number}" for number in (1, 2, 9, 11, 13, 14, 17, 20, 23)),
    "chapter 5.1", "chapter 5.1.1", "chapter 5.1.2", "chapter 5.1.3", "chapter 5.1.4", "chapter 5.2", "chapter 5.3",
    "chapter 5.4", "chapter 5.4.1", "chapter 5.4.2", "chapter 5.5.1", "chapter 5.5.2", "chapter 5.6", "chapter table 5-1",
)  # fmt: skip
"""Everything that the two documents are made of. "lesson": on the three present APIs, 23 sections, questions, breaks,
exercises. "chapter": on ports and adapters, fallback, tools, tokens. Tables whose text was lost are rebuilt."""


def rows() -> list[dict[str, str]]:
    """All rows, lesson by lesson, each with its lesson's number."""
    found = []
    for file in sorted(ROWS.glob("[0-9][0-9].json")):
        found += [{"lesson": file.stem, **row} for row in json.loads(file.read_text(encoding="utf-8"))]
    return found


# ---------------------------------------------------------------- what is wrong


def faults() -> Iterator[str]:
    """Rows whose place or proof does not exist, and sections without a row."""
    every = rows()
    for row in every:
        name = f"{row['lesson']}: {row['point']}, {row['what']!r}"
        if row["point"] not in SECTIONS:
            yield f"{name}: no such section"
        if not place_exists(row["place"]):
            yield f"{name}: there is no place {row['place']}"
        if not proof_exists(row["fails_without"]):
            yield f"{name}: nothing is called {row['fails_without']!r}"
    told = {row["point"] for row in every}
    yield from (f"{section} has no row" for section in SECTIONS if section not in told)


def place_exists(place: str) -> bool:
    """Whether there is such a heading: "notebooks/02_x.ipynb#What you pay for", "docs/wire/x.md#r2-the-request"."""
    name, _, heading = place.partition("#")
    path = ROOT / name
    if not path.is_file():
        return False
    return not heading or heading in (lint.anchors(path) if path.suffix == ".md" else headings(path))


@cache
def headings(path: Path) -> frozenset[str]:
    """The headings of a notebook."""
    return frozenset(re.findall(r"^#+ +(.+?) *$", "\n".join(_cells(path, "markdown")), re.MULTILINE))


@cache
def _cells(path: Path, kind: str) -> tuple[str, ...]:
    content = json.loads(path.read_text(encoding="utf-8"))
    return tuple(lint.source(cell) for cell in content["cells"] if cell["cell_type"] == kind)


def proof_exists(proof: str) -> bool:
    """Whether something of that name exists, and is asked or run where a reader meets it."""
    if proof.startswith("tests/"):
        return _test_exists(proof)
    if proof.startswith("quiz "):
        return proof.removeprefix("quiz ") in {question.key for question in quiz.questions()}
    if re.fullmatch(r"\d\d\.[a-z]", proof):
        return _promise_is_tested(proof)
    if re.fullmatch(r"\d\d\.\S+", proof):
        return _is_asked(proof)
    names = {broken.name for broken in breaks.catalogue()} | set(checks.NAMES) | set(behaviours())
    return proof in names


def _test_exists(proof: str) -> bool:
    file, _, name = proof.partition("::")
    path = ROOT / file
    if not path.is_file():
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in tree.body)


def _promise_is_tested(promise: str) -> bool:
    """A promise of a card: a closing question or a prediction carries it, and the lesson asks its closing questions."""
    number = promise[:2]
    data = course(number)
    carried = [each.get("exit") for each in (*data.get("closing", ()), *data.get("predictions", {}).values())]
    return promise[3:] in data.get("exits", {}) and promise in carried and f'closing("{number}")' in _code(number)


def _is_asked(key: str) -> bool:
    number, _, short = key.partition(".")
    data = course(number)
    if short in data.get("predictions", {}):
        return f'reveal("{key}"' in _code(number)
    if short in data.get("tables", {}):
        return f'fill("{key}"' in _code(number)
    return key in {each.key for each in exercises.registry()}


@cache
def _code(number: str) -> str:
    return "\n".join(cell for path in (ROOT / "notebooks").glob(f"{number}_*.ipynb") for cell in _cells(path, "code"))


# ---------------------------------------------------------------- the page

HEAD = """\
# Coverage

<!-- made by tools/coverage_page.py from docs/coverage/*.json; edit those -->

Two documents are behind this course: a **lesson** on the three present APIs (23 sections, fourteen questions, eight breaks,
three exercises) and a **chapter** on ports and adapters, fallback, tools and tokens (5.1 to 5.6). Where a point has changed
since, its row says so. For each: where it is learned, and what a reader would fail without it. A test checks both.

"""


def page() -> str:
    """The page's text."""
    every = rows()
    lines = [HEAD + f"{len(every)} points, by section."]
    for title, begins in (("The lesson", "lesson"), ("The chapter", "chapter")):
        lines += ["", f"## {title}", "", "| point | what | where | fails without |", "|---|---|---|---|"]
        for section in (each for each in SECTIONS if each.startswith(begins)):
            lines += [_line(row) for row in every if row["point"] == section]
    return "\n".join(lines) + "\n"


def _line(row: dict[str, str]) -> str:
    name, _, heading = row["place"].partition("#")
    target = f"../{name}" if not name.startswith("docs/") else name.removeprefix("docs/")
    if name.endswith(".md") and heading:
        target += f"#{heading}"
    shown = f"{Path(name).stem}: {heading}" if heading else Path(name).stem
    cells = (row["point"].partition(" ")[2], row["what"], f"[{shown}]({target})", f"`{row['fails_without']}`")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(arguments: list[str]) -> int:
    wrong = list(faults())
    text: Any = page()
    if "--check" in arguments:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            wrong.append("docs/coverage.md is not what docs/coverage/*.json makes; run tools/coverage_page.py")
    else:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
