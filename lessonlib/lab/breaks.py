"""Break the library on purpose: predict which behaviours will notice, then look.

    from lessonlib.lab import breaks

    breaks.show("cache-left-out")             the edit, and 5 to 8 behaviours to choose from
    guess = None                              {"a", "c"}, or {"none"}: no test notices
    breaks.run("cache-left-out", guess)       hit, missed, surprising; the first failing assertion; what production saw; why

Where no behaviour notices, the task is to write the test. It counts only if it passes on the sound library and fails on the
broken one:

    def test_a_cut_in_the_text_is_an_error(): ...
    breaks.write_test("end-of-body-is-the-end", test_a_cut_in_the_text_is_an_error)

The catalogue is data (`data/breaks/NN.toml`, one file per lesson): the edit as a unique text and its replacement, the
behaviours that must fail and only those, what to say to each wrong guess, what a user would have seen. CI proves all of it.
Edits of one's own: workbench.py. Nothing here ever touches the installed package (scratch.py).

What this file does not do: it stores no guess and no score (progress.py), and draws nothing but text and simple HTML.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import random
import string
import textwrap
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from lessonlib.lab import progress, scratch
from lessonlib.lab.course_suite import behaviours
from lessonlib.lab.exercises import registry
from lessonlib.lab.notice import Notice, code, folded, lines, paragraph, title
from lessonlib.lab.scratch import Run, Scratch, ScratchError

NONE = "none"
"""The choice "no test notices"."""

PRELUDE = """\
import contextlib, json
import pytest
from lessonlib import *
from lessonlib.lab.course_suite import captures
from lessonlib.lab.course_suite.captures import *
from lessonlib.lab.course_suite.fakes import *
from lessonlib.sse import SSEParser
"""
"""What stands before a test that a learner writes: the library, the captures and the fake service of the course suite."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: `old` occurs exactly once in `file` (a path inside of lessonlib)."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Break:
    """One way to break the library.

    name, title: how it is called. lesson: where it belongs. number: which of the source lesson's eight breaks it is, or
    None. edits: the change, mostly one. fails: the behaviours of the course suite that notice, and no others.
    offered: the behaviours to choose from; for each, what to say to who is wrong about it. NONE is always among the choices.
    production: what a user, or whoever reads the bill, would have seen. why: the explanation. hints: three, each says more.
    caught_by: tests of the full suite that fail. killing_test: for a break that nothing notices, a test that does.
    """

    name: str
    lesson: str
    title: str
    edits: tuple[Edit, ...]
    fails: frozenset[str]
    offered: dict[str, str]
    none: str
    production: str
    why: str
    hints: tuple[str, ...]
    caught_by: tuple[str, ...]
    number: int | None = None
    killing_test: str = ""

    @property
    def survives(self) -> bool:
        """Whether no behaviour of the course suite notices."""
        return not self.fails

    @property
    def choices(self) -> dict[str, str]:
        """Letter -> behaviour, in an order that says nothing; the last one is NONE."""
        keys = sorted(self.offered)
        random.Random(self.name).shuffle(keys)
        return dict(zip(string.ascii_lowercase, [*keys, NONE], strict=False))

    def diff(self) -> str:
        """The edits as a unified diff."""
        return "\n".join(_diff(edit.file, _edited(edit)) for edit in self.edits)


# ---------------------------------------------------------------- the catalogue


@cache
def catalogue() -> tuple[Break, ...]:
    """All breaks, in the order of the lessons."""
    return tuple(_load())


def get(name: str) -> Break:
    """The break of that name. Raises KeyError with the names that there are."""
    for each in catalogue():
        if each.name == name:
            return each
    raise KeyError(f"no break {name!r}; there are: {', '.join(each.name for each in catalogue())}")


def of_lesson(lesson: str) -> tuple[Break, ...]:
    """The breaks of one lesson ("06")."""
    return tuple(each for each in catalogue() if each.lesson == lesson)


def _load() -> Iterator[Break]:
    folder = resources.files("lessonlib").joinpath("data/breaks")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            for entry in tomllib.loads(file.read_text(encoding="utf-8"))["break"]:
                yield _break(file.name.removesuffix(".toml"), entry)


def _break(lesson: str, entry: dict[str, Any]) -> Break:
    offered = dict(entry["offered"])
    return Break(
        name=entry["name"],
        lesson=lesson,
        title=entry["title"],
        edits=tuple(Edit(edit["file"], edit["old"], edit["new"]) for edit in entry["edit"]),
        fails=frozenset(entry["fails"]),
        none=offered.pop(NONE),
        offered=offered,
        production=entry["production"].strip(),
        why=entry["why"].strip(),
        hints=tuple(entry["hints"]),
        caught_by=tuple(entry["caught_by"]),
        number=entry.get("number"),
        killing_test=entry.get("killing_test", ""),
    )


def _edited(edit: Edit) -> tuple[str, str]:
    before = scratch.source(edit.file)
    return before, before.replace(edit.old, edit.new)


def _diff(file: str, texts: tuple[str, str]) -> str:
    before, after = (text.splitlines() for text in texts)
    found = difflib.unified_diff(before, after, f"lessonlib/{file}", f"lessonlib/{file} (broken)", lineterm="", n=2)
    # without line numbers: they change with every edit elsewhere in the file, and with them every stored output
    return "\n".join("@@" if line.startswith("@@") else line for line in found)


# ---------------------------------------------------------------- before the run


def show(name: str) -> Notice:
    """The edit as a diff, and the behaviours to choose from."""
    broken = get(name)
    known = behaviours()
    rows = [
        f"{letter}  {known[key].sentence if key != NONE else 'No test notices.'}" for letter, key in broken.choices.items()
    ]
    return Notice(
        title(f"Break: {broken.title}"),
        code(broken.diff()),
        paragraph("Which of these behaviours will be noticed as broken? One, several, or the last line alone:"),
        lines(rows),
    )


def hint(name: str, number: int = 1) -> Notice:
    """One of the three hints."""
    hints = get(name).hints
    number = min(max(number, 1), len(hints))
    return Notice(paragraph(f"Hint {number} of {len(hints)}: {hints[number - 1]}"))


# ---------------------------------------------------------------- the run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a prediction. hit: predicted, and noticed. missed: noticed, and not predicted. surprising:
    predicted, but not noticed. run: the run on the broken copy."""

    broken: Break
    predicted: frozenset[str]
    noticed: tuple[str, ...]
    run: Run = field(repr=False)

    @property
    def hit(self) -> list[str]:
        """Predicted, and noticed."""
        return [key for key in self.noticed if key in self.predicted]

    @property
    def missed(self) -> list[str]:
        """Noticed, and not predicted."""
        return [key for key in self.noticed if key not in self.predicted]

    @property
    def surprising(self) -> list[str]:
        """Predicted, and not noticed."""
        return sorted(self.predicted - set(self.noticed) - {NONE})

    @property
    def right(self) -> bool:
        """Whether the prediction was exactly right."""
        expected = set(self.noticed) or {NONE}
        return self.predicted == expected

    def shown(self, *, again: bool = False) -> Notice:
        """The feedback: hit, missed, surprising; the first failing assertion; what production saw; why; what to do next.
        again: the break was met before, and only came back."""
        broken = self.broken
        parts = [title(f"{broken.title}: {'exactly as you said' if self.right else 'not quite as you said'}")]
        rows = [*self._rows("hit", self.hit), *self._rows("missed", self.missed), *self._rows("surprising", self.surprising)]
        parts += [lines(rows)] if rows else []
        if NONE in self.predicted and self.noticed:
            parts.append(paragraph(f"You said that no test notices. {broken.none}"))
        if not self.noticed:
            parts.append(paragraph(f"No behaviour of the course suite noticed. {broken.none if self.right else ''}"))
        said = [(self._letter(key), broken.offered.get(key, "")) for key in (*self.missed, *self.surprising)]
        parts += [paragraph(f"About {letter}: {text}") for letter, text in said if text]
        if self.run.failed:
            first = self.run.failed[0]
            parts.append(
                folded(f"The first failing assertion ({first.test})", code(_narrow(first.assertion or first.error)))
            )
        parts += [paragraph(f"In production: {broken.production}"), paragraph(f"Why: {broken.why}")]
        return Notice(*parts, *([] if again else [paragraph(self._next())]))

    def _next(self) -> str:
        """What to do now."""
        if self.broken.survives:
            return f'Next: write the test that notices, and pass it to breaks.write_test("{self.broken.name}", ...).'
        if self.right:
            return DONE
        return (
            "Next: say in one sentence why, then go on; nothing is to be corrected here. This prediction comes back later."
        )

    def _rows(self, word: str, keys: Collection[str]) -> list[str]:
        known = behaviours()
        return [f"{word:11} {self._letter(key)}  {known[key].sentence}" for key in keys]

    def _letter(self, key: str) -> str:
        return next((letter for letter, choice in self.broken.choices.items() if choice == key), key)

    def __repr__(self) -> str:
        return repr(self.shown())

    def _repr_html_(self) -> str:
        return self.shown()._repr_html_()


def _narrow(text: str, most: int = 140) -> str:
    """The text with its long lines cut: a diff of two streams fills a screen."""
    return "\n".join(line if len(line) <= most else line[:most] + " …" for line in text.splitlines())


def run(name: str, guess: Collection[str] | str | None) -> Outcome | Notice:
    """Breaks a copy, runs the course suite on it, and compares with the prediction: letters or behaviours, {"none"} if no
    test notices. None only asks for a prediction; nothing is raised for a wrong or misspelt one."""
    broken = get(name)
    if guess is None:
        return Notice(paragraph('Your prediction first: set guess to letters, for example {"a", "c"} or {"none"}.'))
    predicted, unknown = meant(broken, guess)
    if unknown or not predicted:
        letters = ", ".join(broken.choices)
        return Notice(paragraph(f"{', '.join(map(repr, unknown)) or 'An empty guess'} is not among the choices: {letters}."))
    if NONE in predicted and len(predicted) > 1:
        return Notice(paragraph("Either no test notices, or some do: leave one of the two out."))
    found = break_and_run(broken)
    if found.trouble:
        return Notice(title("There is no result"), code(found.trouble))
    ill = set(scratch.sound_run().behaviours)
    outcome = Outcome(broken, frozenset(predicted), tuple(key for key in found.behaviours if key not in ill), found)
    keep(outcome)
    return outcome


def keep(outcome: Outcome) -> None:
    """Notes a prediction in the progress; one that was wrong comes back."""
    broken = outcome.broken
    progress.note_break(broken.name, right=outcome.right)
    progress.note_answer(f"{broken.lesson}.break.{broken.name}", ",".join(sorted(outcome.predicted)), right=outcome.right)


def break_and_run(broken: Break) -> Run:
    """The course suite on a broken copy."""
    with Scratch() as copy:
        for edit in broken.edits:
            copy.replace(edit.file, edit.old, edit.new)
        return copy.run()


def meant(broken: Break, guess: Collection[str] | str) -> tuple[set[str], list[str]]:
    """The behaviours that a guess means, and what in it means nothing."""
    listed = guess if isinstance(guess, Iterable) else [guess]
    words = guess.replace(",", " ").split() if isinstance(guess, str) else [str(word) for word in listed]
    choices = broken.choices
    keys: set[str] = set()
    unknown: list[str] = []
    for word in words:
        key = choices.get(word.strip().lower(), word.strip())
        if key == NONE or key in behaviours():
            keys.add(key)
        else:
            unknown.append(word)
    return keys, unknown


# ---------------------------------------------------------------- writing the test


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a test that a learner wrote. accepted: it passes on the sound library and fails on the broken one.
    belief: which misunderstanding it shows, None if it is accepted. name: the break's."""

    accepted: bool
    belief: str | None
    message: str
    detail: str = ""
    name: str = ""

    def shown(self) -> Notice:
        """The verdict as text and HTML."""
        parts = [title("Your test is accepted" if self.accepted else "Not yet"), paragraph(self.message)]
        detail = [folded("What happened", code(self.detail))] if self.detail else []
        return Notice(*parts, *detail, paragraph(DONE if self.accepted else self._again()))

    def _again(self) -> str:
        key = next((each.key for each in registry() if each.call == "breaks.write_test" and each.about == self.name), "")
        hint = f"`lesson hint {key}` in a terminal" if key else f'`breaks.hint("{self.name}")`'
        return f"Next: change the test, run its cell, then this cell again. {hint} shows a hint."

    def __repr__(self) -> str:
        return repr(self.shown())

    def _repr_html_(self) -> str:
        return self.shown()._repr_html_()


def write_test(name: str, test: Callable[..., Any] | str | None) -> Verdict:
    """Judges a test for a break: a function, or source with functions named test_... It runs three times: on the sound
    library, on the broken copy, and on a copy in which only the layout is another."""
    broken = get(name)
    try:
        source = _source_of(test) if test is not None else "raise NotImplementedError"
    except (TypeError, OSError):  # no function, or one whose source nobody has
        return Verdict(False, "does_not_run", NO_SOURCE, name=name)
    verdict = judge_test(broken, source)
    if verdict.belief != "not_written":
        progress.note_test(name, accepted=verdict.accepted)
    return verdict


def judge_test(broken: Break, source: str) -> Verdict:
    """The judgement, from the source alone."""
    return replace(_judged(broken, source), name=broken.name)


def _judged(broken: Break, source: str) -> Verdict:
    if _only_raises(source):
        return Verdict(False, "not_written", NOT_WRITTEN)
    written = PRELUDE + "\n\n" + textwrap.dedent(source).strip() + "\n"
    edits = [(edit.file, edit.old, edit.new) for edit in broken.edits]
    sound = scratch.run_test(written)
    if sound.trouble:
        return Verdict(False, "does_not_run", DOES_NOT_RUN, sound.trouble)
    if sound.failed:
        return Verdict(False, "fails_on_sound", FAILS_ON_SOUND, _shown(sound))
    ill = scratch.run_test(written, edits)
    if ill.trouble or not ill.failed:
        return Verdict(False, "notices_nothing", f"{NOTICES_NOTHING} {broken.hints[1]}", ill.trouble)
    relaid = scratch.run_test(written, relaid=[edit.file for edit in broken.edits])
    if relaid.failed:
        return Verdict(False, "reads_the_source", READS_THE_SOURCE, _shown(relaid))
    return Verdict(True, None, ACCEPTED, _shown(ill))


def _only_raises(source: str) -> bool:
    """Whether the place for the learner's code is still as it was."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    body = next((node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), tree.body)
    if not body:
        return True
    raised = body[-1].exc if isinstance(body[-1], ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"


def _shown(run: Run) -> str:
    return run.failed[0].assertion or run.failed[0].error


NOT_WRITTEN = "It is not written yet: write the function, run its cell, and then this one again."
DOES_NOT_RUN = (
    "Your test does not run at all. The names of the course suite's captures.py and fakes.py are there for it; everything "
    "else it must import itself."
)
NO_SOURCE = "The source of your test cannot be seen. Write it in a cell as a function, def test_...(): and pass its name."
FAILS_ON_SOUND = (
    "It fails on the sound library, so it would be red for ever. A test says what must be, not what is wrong today."
)
NOTICES_NOTHING = "It passes on the broken library too, so it does not notice."
READS_THE_SOURCE = (
    "It fails on a copy that does the same, and is only written in another layout: it looks at the source text, not at what "
    "the library does."
)
ACCEPTED = "It passes on the sound library and fails on the broken one."
DONE = "Next: `lesson next` in a terminal says what comes."


def _source_of(test: Callable[..., Any] | str) -> str:
    return test if isinstance(test, str) else inspect.getsource(test)


__all__ = [
    "NONE",
    "PRELUDE",
    "Break",
    "Edit",
    "Outcome",
    "ScratchError",
    "Verdict",
    "catalogue",
    "get",
    "hint",
    "of_lesson",
    "run",
    "show",
    "write_test",
]
