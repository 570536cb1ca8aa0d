"""What a lesson's notebook must be like, as checks that name the cell: `python -m lessonlib.lab.lint notebooks`.

Five kinds of checks, each a function that takes a notebook (a dict, as the file holds it) and yields faults:

    form       counts, outputs, metadata: what makes nbval compare the cells, and the file the same on every machine
    secrets    nothing that looks like a key, anywhere; the fault names the place and never the key
    size       short texts, short cells, short outputs
    words      phrases that the course does not use, names of models, links, alternative texts
    lesson     the card, the predictions, the glossary

An exception is a tag's name with its reason in the cell's metadata: `"exceptions": {"long-cell": "the decoder as a whole"}`.
The numbers are the course's own: they were chosen before its lessons were written.

What this file does not do: it runs nothing (nbval and author.py do), and does not spell (the test suite asks codespell).
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from lessonlib.lab.author import FAILS, HIDDEN, SOLUTION, faults
from lessonlib.lab.predict import course, predictions

Notebook = Mapping[str, Any]
Cell = Mapping[str, Any]

WORDS_IN_A_TEXT = 80
WORDS_IN_A_CARD = 130
TEXTS_IN_A_ROW = 2
MEDIAN_LINES = 5
LINES_IN_A_CELL = 12
MOST_LINES = 25
LINES_OF_OUTPUT = 20
BYTES_OF_A_PICTURE = 150_000
BYTES_OF_A_NOTEBOOK = 1_500_000
NEW_TERMS = 8

TAGS = {HIDDEN, SOLUTION, FAILS, "nbval-ignore-output", "nbval-check-output", "nbval-skip"}
EXCEPTIONS = {"long-cell", "long-output", "nbval-ignore-output", "nbval-skip", "stderr", "absolute-path", "traceback"}

BANNED = (
    "let's", "dive", "delve", "explore", "in this section", "as we can see", "it is important to note", "note that",
    "powerful", "robust", "seamless", "crucial", "simply", "of course", "well done", "great job", "congratulations",
    "diving", "exploring", "explores", "seamlessly", "robustly", "crucially", "it is worth noting",
)  # fmt: skip
"""Phrases that say nothing, or praise the reader."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. where: "cell c1 source"; "" for the whole notebook."""

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where or 'notebook'}: {self.message} [{self.rule}]"


Check = Callable[[Notebook], Iterable[Fault]]


def lint(notebook: Notebook, path: Path | None = None, checks: Iterable[Check] | None = None) -> list[Fault]:
    """All faults of a notebook. path: where it is, for its links."""
    found = [fault for check in (checks if checks is not None else CHECKS) for fault in check(notebook)]
    return [*found, *(links(notebook, path) if path is not None else ())]


# ---------------------------------------------------------------- the parts of a notebook


def text(value: Any) -> str:
    """A text of a notebook's file: one string, or a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def cells(notebook: Notebook, kind: str | None = None) -> Iterator[tuple[str, Cell]]:
    """The cells with their names, of one type or all."""
    for number, cell in enumerate(notebook.get("cells", ())):
        if kind is None or cell.get("cell_type") == kind:
            yield f"cell {cell.get('id') or number}", cell


def source(cell: Cell) -> str:
    """What stands in the cell."""
    return text(cell.get("source", ""))


def tags(cell: Cell) -> list[str]:
    """The cell's tags."""
    return list(cell.get("tags") or cell.get("metadata", {}).get("tags", ()))


def excepted(cell: Cell, name: str) -> bool:
    """Whether the cell gives a reason for this exception."""
    return bool(str(cell.get("metadata", {}).get("exceptions", {}).get(name, "")).strip())


def prose(markdown: str) -> str:
    """A text without its code blocks, code words and link targets."""
    without = re.sub(r"```.*?```", " ", markdown, flags=re.DOTALL)
    without = re.sub(r"`[^`\n]*`", " ", without)
    return re.sub(r"\]\([^)]*\)", "]", without)


# ---------------------------------------------------------------- form


def form(notebook: Notebook) -> Iterator[Fault]:
    """The stored form (author.py), and execution from top to bottom in one go."""
    yield from (Fault("form", "", words) for words in faults(_whole(notebook)))
    expected = 0
    for name, cell in cells(notebook, "code"):
        if not source(cell).strip():
            yield Fault("empty", name, "the cell is empty")
            continue
        expected += 1
        count = cell.get("execution_count")
        if count is None:
            yield Fault("counts", name, "it has no execution count, so nbval would not compare it: run the author's tool")
        elif count != expected:
            yield Fault("counts", name, f"its execution count is {count}, not {expected}: it was not run in one go")
        yield from _outputs(name, cell)
        yield from _tags(name, cell)


def _whole(notebook: Notebook) -> dict[str, Any]:
    return {
        **notebook,
        "metadata": dict(notebook.get("metadata", {})),
        "cells": [{"metadata": {}, **({"outputs": []} if cell.get("cell_type") == "code" else {}), **cell}
                  for cell in notebook.get("cells", ())],
    }  # fmt: skip


def _tags(name: str, cell: Cell) -> Iterator[Fault]:
    for tag in tags(cell):
        if tag not in TAGS:
            yield Fault("tags", name, f"unknown tag {tag!r}; there are {', '.join(sorted(TAGS))}")
        elif tag in EXCEPTIONS and not excepted(cell, tag):
            yield Fault("tags", name, f"{tag} needs a reason: metadata.exceptions[{tag!r}]")
    for key in cell.get("metadata", {}).get("exceptions", {}):
        if key not in EXCEPTIONS:
            yield Fault("tags", name, f"unknown exception {key!r}; there are {', '.join(sorted(EXCEPTIONS))}")


_UNSTORED = re.compile(
    r"\b(?:clear_output|update_display|interact(?:ive|_manual)?|Output)\(|^%%?time(?:it)?\b", re.MULTILINE
)
"""What shows something else in a browser than nbval sees, or something else each time."""


def _outputs(name: str, cell: Cell) -> Iterator[Fault]:
    outputs = cell.get("outputs", ())
    if trap := _UNSTORED.search(source(cell)):
        yield Fault(
            "traps", name, f"{trap[0].strip('(')} changes its output later, and nbval does not follow: show a new output"
        )
    if any(line.rstrip().endswith(";") for line in source(cell).splitlines()):
        yield Fault("semicolon", name, "a trailing ; does not suppress the output under nbval: assign to _ instead")
    if not outputs and _shows_something(source(cell)):
        yield Fault("outputs", name, "its last line shows a value, but no output is stored: run the author's tool")
    for output in outputs:
        if "application/vnd.jupyter.widget-view+json" in output.get("data", {}):
            yield from _readable(name, output)
        if output.get("output_type") == "stream" and output.get("name") == "stderr" and not excepted(cell, "stderr"):
            yield Fault("stderr", name, "something was written to stderr; warnings differ between machines")


def _readable(name: str, output: Mapping[str, Any]) -> Iterator[Fault]:
    """A widget shows nothing without its kernel, so the output must say the same in another form."""
    data = output["data"]
    plain = text(data.get("text/plain", ""))
    if "text/html" in data:
        return
    if not plain:
        yield Fault("widget", name, "a widget's output has no readable form")
    elif re.fullmatch(r"\w+\(.*\)", plain.strip(), re.DOTALL):
        yield Fault("widget", name, "a widget's output has only a repr: say what a reader should see")


def _shows_something(code: str) -> bool:
    """Whether the last line certainly has a value to show, or something is printed."""
    try:
        body = ast.parse(re.sub(r"^[%!].*$", "", code, flags=re.MULTILINE)).body
    except SyntaxError:
        return False
    if not body or not isinstance(body[-1], ast.Expr):
        return False
    last = body[-1].value
    if isinstance(last, ast.Call):
        return isinstance(last.func, ast.Name) and last.func.id in ("print", "show", "reveal", "explorer", "viewer", "lanes")
    return not (isinstance(last, ast.Constant) and last.value is None)


_PRINTED_ERROR = re.compile(r"^Traceback \(most recent call last\)|^\[ERROR\]", re.MULTILINE)


def errors(notebook: Notebook) -> Iterator[Fault]:
    """An error is stored only where the lesson says so, and there it must be."""
    for name, cell in cells(notebook):
        stored = [output for output in cell.get("outputs", ()) if output.get("output_type") == "error"]
        expected = FAILS in tags(cell)
        if stored and not expected:
            yield Fault("errors", name, f"it failed with {stored[0].get('ename')}, and is not tagged {FAILS}")
        if expected and not stored and "outputs" in cell:
            yield Fault("errors", name, f"it is tagged {FAILS}, but no error is stored: what was to fail no longer fails")
        for output in cell.get("outputs", ()):
            shown = text(output.get("text", ""))
            if _PRINTED_ERROR.search(shown) and not excepted(cell, "traceback"):
                yield Fault("errors", name, "an error was printed as text")


_ABSOLUTE = re.compile(
    r"(?<![\w.~/:])/(?:home|root|Users|tmp|work|opt|usr|private|var/folders)/[\w.-]+|\b[A-Z]:\\\\?(?:Users|Temp)"
)


def paths(notebook: Notebook) -> Iterator[Fault]:
    """No path of somebody's machine, in code or in outputs."""
    for name, cell in cells(notebook, "code"):
        for place, content in _contents(name, cell):
            found = _ABSOLUTE.search(content)
            if found and not excepted(cell, "absolute-path"):
                yield Fault("paths", place, f"an absolute path: {found[0]}")


def encodings(notebook: Notebook) -> Iterator[Fault]:
    """Files are read and written as UTF-8 by name: without it Windows takes its own code page."""
    for name, cell in cells(notebook, "code"):
        try:
            tree = ast.parse(re.sub(r"^[%!].*$", "", source(cell), flags=re.MULTILINE))
        except SyntaxError:
            continue
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if _opens_a_text(call) and not any(keyword.arg == "encoding" for keyword in call.keywords):
                yield Fault("encoding", name, 'a text file is opened without encoding="utf-8"')


def _opens_a_text(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ("open", "read_text", "write_text"):
        return False
    modes = [each.value for each in (*call.args, *(key.value for key in call.keywords)) if isinstance(each, ast.Constant)]
    return name != "open" or not any(isinstance(mode, str) and re.fullmatch(r"[rwxa+]*b[rwxa+]*", mode) for mode in modes)


# ---------------------------------------------------------------- secrets

_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{16,}|AKIA[0-9A-Z]{16}|"
    r"hf_[A-Za-z0-9]{20,}|eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+|"
    r"[Bb]earer\s+[A-Za-z0-9._~+/-]{20,}|"
    r"(?:x-goog-api-key|x-api-key|api[-_]key|apikey|authorization)[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9._-]{20,})",
    re.IGNORECASE,
)


def secrets(notebook: Notebook) -> Iterator[Fault]:
    """Nothing that looks like a key: in source, outputs, tracebacks, metadata, widgets' states and attachments."""
    words = "something that looks like a key (it is not repeated here): take it out and revoke it"
    for name, cell in cells(notebook):
        for place, content in _contents(name, cell):
            if _KEYS.search(content):
                yield Fault("secrets", place, words)
    for place, content in _metadata("metadata", notebook.get("metadata", {})):
        if _KEYS.search(content):
            yield Fault("secrets", place, words)


def _contents(name: str, cell: Cell) -> Iterator[tuple[str, str]]:
    """All texts of a cell with their places."""
    yield f"{name} source", source(cell)
    for output in cell.get("outputs", ()):
        yield f"{name} output", text(output.get("text", ""))
        yield f"{name} output", f"{output.get('ename', '')} {output.get('evalue', '')}"
        yield f"{name} traceback", "\n".join(map(str, output.get("traceback", ())))
        for kind, data in output.get("data", {}).items():
            if not kind.startswith("image/"):
                yield f"{name} output", text(data) if isinstance(data, (str, list)) else str(data)
        yield f"{name} output", str(output.get("metadata", ""))
    yield f"{name} metadata", str(cell.get("metadata", ""))
    yield f"{name} attachment", str(cell.get("attachments", ""))


def _metadata(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """The notebook's metadata; of widgets' states each one for itself."""
    states = value.get("widgets", {}) if isinstance(value, dict) else {}
    for bundle in states.values() if isinstance(states, dict) else ():
        for model, state in bundle.get("state", {}).items():
            yield f"{place} widget {model}", str(state)
    yield place, str({key: item for key, item in value.items() if key != "widgets"})


# ---------------------------------------------------------------- size


def size(notebook: Notebook) -> Iterator[Fault]:
    """Short texts, never three in a row; short cells; short outputs; small pictures."""
    yield from _text_sizes(notebook)
    lines = []
    for name, cell in cells(notebook, "code"):
        count = len([line for line in source(cell).splitlines() if line.strip()])
        lines.append(count)
        if count > MOST_LINES or (count > LINES_IN_A_CELL and not excepted(cell, "long-cell")):
            yield Fault("size", name, f"{count} lines of code; at most {LINES_IN_A_CELL}, with a reason {MOST_LINES}")
        yield from _output_sizes(name, cell)
    if lines and statistics.median(lines) > MEDIAN_LINES:
        yield Fault("size", "", f"the median code cell has {statistics.median(lines):g} lines; at most {MEDIAN_LINES}")


def _text_sizes(notebook: Notebook) -> Iterator[Fault]:
    for number, (name, cell) in enumerate(cells(notebook)):
        if cell.get("cell_type") == "markdown":
            words, most = count_words(source(cell)), WORDS_IN_A_CARD if number == 0 else WORDS_IN_A_TEXT
            if words > most:
                yield Fault("size", name, f"{words} words of text; at most {most}")
    for kind, run in groupby(cells(notebook), key=lambda pair: pair[1].get("cell_type")):
        names = [name for name, _ in run]
        if kind == "markdown" and len(names) > TEXTS_IN_A_ROW:
            yield Fault("size", names[TEXTS_IN_A_ROW], f"{len(names)} text cells in a row; at most {TEXTS_IN_A_ROW}")


def count_words(markdown: str) -> int:
    """The words of a text that a reader reads: code blocks and the lines of tables do not count as prose."""
    return len(re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", prose(markdown)))


def _output_sizes(name: str, cell: Cell) -> Iterator[Fault]:
    shown = sum(_visible_lines(output) for output in cell.get("outputs", ()))
    if shown > LINES_OF_OUTPUT and not excepted(cell, "long-output"):
        yield Fault("size", name, f"{shown} lines of output; at most {LINES_OF_OUTPUT}")
    for output in cell.get("outputs", ()):
        for kind, data in output.get("data", {}).items():
            if kind.startswith("image/") and len(text(data)) * 3 // 4 > BYTES_OF_A_PICTURE:
                yield Fault("size", name, f"a picture of {len(text(data)) * 3 // 4:,} bytes; at most {BYTES_OF_A_PICTURE:,}")


def _visible_lines(output: Mapping[str, Any]) -> int:
    data = output.get("data", {})
    if any(kind.startswith("image/") for kind in data):
        return 0
    if "text/html" in data:
        counter = _Lines()
        counter.feed(text(data["text/html"]))
        return counter.lines
    shown = text(data.get("text/plain", "")) + text(output.get("text", ""))
    return len(shown.rstrip("\n").splitlines())


class _Lines(HTMLParser):
    """Counts the lines that HTML shows: rows, paragraphs, list entries and lines of code outside of what is folded."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = self._folded = self._code = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._folded += tag == "details"
        self._code += tag == "pre"
        shown = tag in ("tr", "p", "li", "br", "dt", "summary")
        self.lines += shown and (not self._folded or tag == "summary")

    def handle_endtag(self, tag: str) -> None:
        self._folded -= tag == "details"
        self._code -= tag == "pre"

    def handle_data(self, data: str) -> None:
        if self._code and not self._folded:
            self.lines += data.count("\n")


# ---------------------------------------------------------------- words


def words(notebook: Notebook) -> Iterator[Fault]:
    """Phrases that the course does not use."""
    for name, cell in cells(notebook, "markdown"):
        for phrase in banned_in(source(cell)):
            yield Fault("words", name, f"the course does not say {phrase!r}")


def banned_in(markdown: str) -> Iterator[str]:
    """The banned phrases of a text; code does not count."""
    shown = " ".join(prose(markdown).lower().replace("’", "'").split())
    for phrase in BANNED:
        if re.search(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])", shown):
            yield phrase


_MODEL = re.compile(
    r"(?<![\w./-])(?:gpt|claude|gemini|gemma|deepseek|qwen|mistral|llama|grok|kimi|glm|o[1-9])-[a-z0-9.]*(?:-[a-z0-9.]+)*\b",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"\bmodel\s*=\s*[\"'][^\"']+[\"']|[\"']model[\"']\s*:\s*[\"'][^\"']+[\"']")


def models(notebook: Notebook) -> Iterator[Fault]:
    """Names of models come from the dated data, never from a cell: they are retired within a year or two."""
    for name, cell in cells(notebook):
        for found in _MODEL.finditer(source(cell)):
            if any(character.isdigit() for character in found[0]) or found[0].lower() in _known_models():
                yield Fault("models", name, f"model name outside the one place (lab.course.MODELS): {found[0]}")
        if cell.get("cell_type", "code") == "code" and (assigned := _ASSIGNED.search(source(cell))):
            yield Fault("models", name, f"model name outside the one place (lab.course.MODELS): {assigned[0]}")


@cache
def _known_models() -> frozenset[str]:
    from lessonlib import capabilities

    return frozenset(capabilities.names())


_LINK = re.compile(r"!?\[([^\]]*)\]\(\s*<?([^)\s>]+)>?[^)]*\)")


def links(notebook: Notebook, path: Path) -> Iterator[Fault]:
    """Relative links lead to something; pictures in texts say in words what they show."""
    for name, cell in cells(notebook, "markdown"):
        for match in _LINK.finditer(re.sub(r"```.*?```", "", source(cell), flags=re.DOTALL)):
            target = match[2]
            if match[0].startswith("!") and len(match[1].split()) < 4:
                yield Fault("alt", name, f"the picture {target} needs an alternative text that says what it shows")
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            file, _, anchor = target.partition("#")
            if not (path.parent / file if file else path).exists():
                yield Fault("links", name, f"the link {target} leads nowhere")
            elif anchor and file.endswith(".md") and anchor not in anchors(path.parent / file):
                yield Fault("links", name, f"{file} has no heading #{anchor}")


def anchors(page: Path) -> set[str]:
    """The anchors of a Markdown page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+\s+(.+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        plain = re.sub(r"[`*\[\]]|\([^)]*\)", "", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def pictures(notebook: Notebook) -> Iterator[Fault]:
    """Every drawing has an alternative text, a sentence, and the same cell says it in an output that everybody gets."""
    for name, cell in cells(notebook, "code"):
        for output in cell.get("outputs", ()):
            for kind in output.get("data", {}):
                if kind.startswith("image/"):
                    alt = str(output.get("metadata", {}).get(kind, {}).get("alt", ""))
                    if len(alt.split()) < 5 or not alt.rstrip().endswith("."):
                        yield Fault(
                            "alt", name, "a drawing without an alternative text (in its metadata) that states the finding"
                        )
                    elif not any(alt in text(other.get("data", {}).get("text/plain", "")) for other in cell["outputs"]):
                        yield Fault("alt", name, "the drawing's finding stands only in its metadata: print it as well")
            for tag in re.findall(r"<img\b[^>]*>", text(output.get("data", {}).get("text/html", ""))):
                if not re.search(r"alt=\"[^\"]{20,}\"", tag):
                    yield Fault("alt", name, "an <img> without an alternative text")


# ---------------------------------------------------------------- the lesson

_CARD = ("Question", "You can, at the end", "Time", "You need", "Next")
_REVEAL = re.compile(r"\breveal\(\s*[\"']([^\"']+)[\"']")


def lesson(notebook: Notebook) -> Iterator[Fault]:
    """The card; predictions that exist, with their options above them; guesses that nobody filled in; glossary lines."""
    every = list(cells(notebook))
    if not every or every[0][1].get("cell_type") != "markdown":
        yield Fault("card", "", "the first cell must be the lesson's card")
        return
    card = source(every[0][1])
    number = re.match(r"# (\d\d) · \S", card)
    if number is None:
        yield Fault("card", every[0][0], "the card begins with a heading like “# 06 · Who ordered that refund?”")
        return
    for row in _CARD:
        if f"**{row}**" not in card:
            yield Fault("card", every[0][0], f"the card has no row **{row}**")
    if any(re.match(r"# \S", source(cell)) for _, cell in every[1:] if cell.get("cell_type") == "markdown"):
        yield Fault("card", "", "a lesson has one heading of the first level")
    yield from _predictions(every)
    yield from _terms(number[1])


def _predictions(every: list[tuple[str, Cell]]) -> Iterator[Fault]:
    above = ""
    for name, cell in every:
        if cell.get("cell_type") == "markdown":
            above += " ".join(source(cell).split()) + "\n"
            continue
        for key in _REVEAL.findall(source(cell)):
            yield from _prediction(name, key, above)
        given = re.search(r"^(guess\w*)\s*=(?!\s*None\b)(.+)$", source(cell), re.MULTILINE)
        if given:
            yield Fault("predictions", name, f"{given[1]} is filled in; in the course it is None")


def _prediction(name: str, key: str, above: str) -> Iterator[Fault]:
    number, _, short = key.partition(".")
    found = predictions(number).get(short)
    if found is None:
        yield Fault("predictions", name, f"there is no prediction {key!r} in data/course/{number}.json")
        return
    for option in found.options:
        if " ".join(option.text.split()) not in above.replace("`", "") and " ".join(option.text.split()) not in above:
            yield Fault("predictions", name, f"option {option.letter} of {key} does not stand above it: {option.text!r}")
    yield from (Fault("predictions", name, fault) for fault in prediction_faults(key))


def prediction_faults(key: str) -> Iterator[str]:
    """What is wrong with a prediction's data: every option has feedback, every wrong one a belief, the right one none."""
    number, _, short = key.partition(".")
    found = predictions(number)[short]
    if found.option(found.answer) is None:
        yield f"{key}: the answer {found.answer!r} is none of its options"
    if len(found.options) < 3:
        yield f"{key} has {len(found.options)} options; two wrong ones at least"
    for option in found.options:
        if len(option.feedback.split()) < 5:
            yield f"{key}: option {option.letter} has no feedback"
        if option.letter != found.answer and not (option.belief or "").strip():
            yield f"{key}: the wrong option {option.letter} names no belief"
        if option.letter == found.answer and option.belief:
            yield f"{key}: the right option {option.letter} names a belief"


def _terms(number: str) -> Iterator[Fault]:
    terms: Mapping[str, str] = course(number).get("glossary", {})
    if len(terms) > NEW_TERMS:
        yield Fault("glossary", "", f"{len(terms)} new terms; at most {NEW_TERMS}")
    for term, line in terms.items():
        if "\n" in line or not 4 <= len(line.split()) <= 40:
            yield Fault("glossary", "", f"{term!r} needs one line of 4 to 40 words")


def lessons_with_data() -> list[str]:
    """The numbers of the lessons that have data."""
    folder = resources.files("lessonlib").joinpath("data/course")
    return sorted(file.name[:2] for file in folder.iterdir() if re.fullmatch(r"\d\d\.json", file.name))


# ---------------------------------------------------------------- all

EVERYWHERE: tuple[Check, ...] = (errors, paths, encodings, secrets, words, models, pictures)
"""What holds for exercises and solutions too."""

CHECKS: tuple[Check, ...] = (form, *EVERYWHERE, size, lesson)
"""What holds for a lesson, also one of your own."""


def course_checks() -> tuple[Check, ...]:
    """What holds for a lesson of this course: its shape as well."""
    from lessonlib.lab.lesson_shape import shape

    return (*CHECKS, shape)


def main(arguments: list[str]) -> int:
    """Prints the faults of the notebooks. Exit code 1 if there are any."""
    from lessonlib.lab.author import AuthorError, notebooks
    from lessonlib.wire.base import read_json

    count = 0
    try:
        for path in notebooks(arguments):
            notebook = read_json(path.read_bytes())
            ours = path.resolve().parent.name == "notebooks" and path.name[:2] in lessons_with_data()
            for fault in lint(notebook, path, course_checks() if ours else None):
                print(f"{path}: {fault}")
                count += 1
    except AuthorError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
