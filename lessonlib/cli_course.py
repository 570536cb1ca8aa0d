"""The `lesson` commands of the course: list, next, check, hint, reset, solution, progress, quiz; for teachers grade and
export-nbgrader.

cli.py registers them. Exit codes as there; `check` ends with 1 while something that was tried has not passed.

What this file does not do: no logic of its own (lessonlib/lab: journey, folder, completion, returns, grading).
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lessonlib.lab.exercises import Exercise
    from lessonlib.lab.outline import Lesson

T = TypeVar("T")


# ---------------------------------------------------------------- what they share


def _found(look: Callable[[], T]) -> T:
    """What `look` finds; what it cannot find is wrong usage, in its own words."""
    try:
        return look()
    except KeyError as error:
        raise click.UsageError(str(error.args[0])) from None


def _here() -> Path:
    """The learner's folder."""
    from lessonlib.lab import start

    return _started(lambda: start.opened_folder(Path.cwd()))


def _started(work: Callable[[], T]) -> T:
    """The result of something that needs the course's files."""
    from lessonlib.lab.start import StartError

    try:
        return work()
    except (StartError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _meant(what: str) -> tuple[Lesson, Exercise | None]:
    """The lesson or the exercise that a word means: "3", "03" or "03.usage"."""
    from lessonlib.lab import outline

    if "." in what:
        found = _found(lambda: outline.exercise(what))
        return _started(lambda: outline.lesson(found.lesson)), found
    return _started(lambda: _found(lambda: outline.lesson(what))), None


def _exercise(key: str | None) -> Exercise:
    """The exercise that is named, or the one that comes next."""
    from lessonlib.lab import journey

    if key is not None:
        lesson, found = _meant(key)
        if found is None:
            raise click.UsageError(f"which one? Lesson {lesson.number} has {_keys(lesson)}")
        return found
    step = _started(journey.next_step)
    if step is None or step.exercise is None:
        raise click.UsageError("no exercise is at hand; name one, for example 01.parser (`lesson list 01` shows them)")
    return step.exercise


def _keys(lesson: Lesson) -> str:
    return ", ".join(each.key for each in lesson.exercises) or "no exercises"


def _sure(question: str, yes: bool) -> bool:
    """Asks, unless the answer was given with the command. Raises if nobody is there to answer."""
    if yes:
        return True
    try:
        return click.confirm(question)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            raise click.ClickException("nobody has answered; --yes answers in advance") from None
        raise


def _read(prompt: str) -> str:
    """A line from the person; the end of the input ends the questions."""
    try:
        return input(prompt)
    except EOFError:
        return "q"


def _say(thing: object) -> None:
    click.echo(thing if isinstance(thing, str) else repr(thing))


def _trouble() -> None:
    from lessonlib.lab import progress

    said = progress.trouble()
    if said:
        click.echo(f"nothing is recorded: {said}", err=True)


# ---------------------------------------------------------------- where one is


@click.command("list", short_help="List the lessons and exercises, and what is done.")
@click.argument("lesson", required=False, metavar="[NN]")
def list_lessons(lesson: str | None) -> None:
    """List the lessons, or the exercises of one, and what is done.

    \b
    Examples:
      lesson list
      lesson list 03
    """
    from lessonlib.lab import journey

    _say(_started(journey.summary) if lesson is None else _started(lambda: journey.of_lesson(_meant(lesson)[0].number)))


@click.command("next", short_help="Say what to do now; first ask what comes back.")
@click.option("--ask/--no-ask", default=None, help="Ask what comes back. Default: if somebody is at the keyboard.")
def next_step(ask: bool | None) -> None:
    """Say what to do now; first ask again what surprised you earlier.

    A prediction that went wrong comes back with the next lesson, and once more three lessons later.
    """
    from lessonlib.lab import completion, journey, progress, returns

    if sys.stdin.isatty() if ask is None else ask:
        returns.in_terminal(_read, _say)
        _say("")
    elif returns.keys():
        _say(f"{len(returns.keys())} that surprised you come back: run `lesson next` in a terminal to answer.\n")
    now = progress.state()
    step = _started(lambda: journey.next_step(now))
    _say(step.shown() if step is not None else completion.page(now))
    if step is not None and step.exercise is None and (left := journey.left_out(now)):
        _say(f"Left out so far: {', '.join(each.key for each in left)}.")
    _trouble()


@click.command("progress", short_help="Show the completion page: what is done, what is missing.")
@click.argument("lesson", required=False, metavar="[NN]")
@click.option("--said", metavar="NAME", help="Note a point of the page that only you can know.")
def show_progress(lesson: str | None, said: str | None) -> None:
    """Show the completion page: by which points you are done with the course, and what is missing.

    With NN, how far one lesson is.
    """
    from lessonlib.lab import completion, journey, progress

    if said is not None:
        if said not in completion.SAID:
            raise click.UsageError(f"there is no point {said!r}; there are {', '.join(completion.SAID)}")
        progress.note_said(said)
        _say(f"Noted: {completion.SAID[said]}.\n")
    _say(_started(completion.page) if lesson is None else _started(lambda: journey.of_lesson(_meant(lesson)[0].number)))
    _trouble()


# ---------------------------------------------------------------- doing exercises


@click.command(short_help="Check saved exercises, and say what to do next.")
@click.argument("what", required=False, metavar="[NN|KEY|FILE]")
def check(what: str | None) -> None:
    """Check the exercises of a lesson, or one of them, as the saved notebook has them.

    NN is a lesson (03), KEY an exercise (03.usage); without either, the exercise that comes next. FILE is a notebook that
    lies elsewhere. The notebook runs in a process of its own, without a network.

    Exit code 0: what was asked for has passed. 1: not yet.
    """
    from lessonlib.lab import folder

    path, keys = _notebook(what)
    if not path.is_file():
        raise click.ClickException(f"there is no {path}; `lesson start` writes it")
    report = folder.check(path, keys)
    if report["trouble"]:
        raise click.ClickException(report["trouble"])
    sys.exit(_told(report, path))


def _notebook(what: str | None) -> tuple[Path, list[str] | None]:
    """The notebook that is meant, and which of its exercises; None for all."""
    if what is not None and what.endswith(".ipynb"):
        return Path(what), None
    lesson, exercise = _meant(what) if what is not None else _meant(_exercise(None).key)
    if not lesson.exercises:
        raise click.UsageError(f"lesson {lesson.number} has no exercises; `lesson next` says what comes")
    return _here() / lesson.exercise_notebook, None if exercise is None else [exercise.key]


def _told(report: dict[str, Any], path: Path) -> int:
    """Prints what became of the exercises: a line each, the first refusal in full, and what to do next. The exit code."""
    from lessonlib.lab import folder
    from lessonlib.lab.notice import table

    marks = report["exercises"]
    words = [folder.judged(mark) for mark in marks]
    _say(
        table(
            ["", "exercise", "what"], [[word, mark["key"], mark["title"]] for word, mark in zip(words, marks, strict=True)]
        ).text
    )
    _say("")
    red = [mark for word, mark in zip(words, marks, strict=True) if word in ("not yet", "not judged")]
    new = [mark for word, mark in zip(words, marks, strict=True) if word in ("passed", "surprised") and mark["message"]]
    if red:
        _say(red[0]["message"] or f"{red[0]['key']} was not judged: {red[0]['trouble']}.\n{NOT_JUDGED}")
    elif len(marks) == 1 and new:
        _say(new[0]["message"])
    elif "to do" in words:
        first = marks[words.index("to do")]["key"]
        _say(f"Next: {first}, in {path}. If you have written it already: is the notebook saved?")
    else:
        _say("Next: `lesson next` says what comes.")
    return 1 if red or "to do" in words else 0


NOT_JUDGED = (
    "Next: run the notebook from top to bottom (Run > Restart Kernel and Run All Cells) and see which cell does that."
)


@click.command(short_help="Give the next of an exercise's three hints.")
@click.argument("key", required=False)
def hint(key: str | None) -> None:
    """Give the next of an exercise's three hints; without KEY, of the exercise that comes next."""
    from lessonlib.lab import breaks, grading, progress
    from lessonlib.lab.notice import Notice, title

    exercise = _exercise(key)
    if exercise.call.startswith("breaks."):
        found = breaks.hint(exercise.about, progress.next_hint(exercise.key))
    else:
        found = grading.check_of(exercise).hint()
    _say(Notice(title(f"{exercise.key} · {exercise.title}"), *found.pieces))
    number = progress.state().exercises[exercise.key].hints if not progress.trouble() else 0
    _say(f"Next: `lesson hint {exercise.key}` says more." if number < 3 else LAST_HINT.format(key=exercise.key))


LAST_HINT = "That was the last hint. `lesson solution {key}` shows one way to do it, if you ask for it."


@click.command(short_help="Open a solution: after a pass, or on request.")
@click.argument("what", metavar="NN|KEY")
@click.option("--yes", is_flag=True, help="Do not ask.")
def solution(what: str, yes: bool) -> None:
    """Show the solution of an exercise, or lay the solutions of a lesson into your folder.

    Once an exercise has passed, its solution is open. Before that it opens on request: you are asked, and it is noted.
    """
    from lessonlib.lab import folder, journey, progress

    lesson, exercise = _meant(what)
    own = [exercise] if exercise is not None else list(lesson.exercises)
    if not own:
        raise click.UsageError(f"lesson {lesson.number} has no exercises")
    now = progress.state()
    before = [each for each in own if not journey.is_done(each, now)]
    if before and not _sure(_ask_for(before), yes):
        _say(f"It stays closed. `lesson hint {before[0].key}` says a little more each time.")
        return
    for each in before:
        progress.note_opened(each.key)
    if exercise is not None:
        _say(_started(lambda: folder.solution_of(lesson, exercise)))
    else:
        _say(f"The solutions are in {_started(lambda: folder.lay_solutions(_here(), lesson))}.")
    said = (
        f"opened before it had passed: {', '.join(each.key for each in before)}" if before else "open, because it has passed"
    )
    _say(f"\n({said})")


def _ask_for(before: Iterable[Exercise]) -> str:
    keys = ", ".join(each.key for each in before)
    return f"Not passed yet: {keys}. Open the solution all the same?"


@click.command(short_help="Put exercises back as they came; asks first.")
@click.argument("what", required=False, metavar="[NN|KEY]")
@click.option("--everything", is_flag=True, help="Forget all progress. No notebook is changed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(what: str | None, everything: bool, yes: bool) -> None:
    """Put the exercises of a lesson, or one of them, back as they came, and forget what was recorded of them.

    It asks first, and keeps your notebook in before_reset/.
    """
    from lessonlib.lab import folder, progress

    if (what is None) == (not everything):
        raise click.UsageError("name a lesson (03) or an exercise (03.usage), or take --everything")
    if what is None:
        if _sure(f"Forget all progress ({progress.path()})?", yes):
            progress.forget()
            _say("Forgotten. Next: `lesson next` begins anew.")
        return
    lesson, exercise = _meant(what)
    if not lesson.exercises:
        raise click.UsageError(f"lesson {lesson.number} has no exercises")
    here = _here()
    if not _sure(f"Put {what} in {here / lesson.exercise_notebook} back as it came?", yes):
        _say("Nothing was changed.")
        return
    try:
        kept = _started(
            lambda: folder.reset_lesson(here, lesson) if exercise is None else folder.reset_exercise(here, lesson, exercise)
        )
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    _say(f"{what} is as it came." + (f" Your notebook is kept in {kept}." if kept else ""))
    _say("Is it open in JupyterLab? Then File > Reload Notebook from Disk.")


@click.command("quiz", short_help="Ask the questions of a lesson.")
@click.argument("what", required=False, metavar="[NN|KEY]")
def ask_quiz(what: str | None) -> None:
    """Ask the questions of a lesson in the terminal, or all of them.

    An empty line skips a question, "q" ends.
    """
    from lessonlib.lab import quiz, quiz_play

    if what is not None and "." in what:
        asked = [_found(lambda: quiz.get(what))]
    else:
        asked = quiz.questions(None if what is None else _meant(what)[0].number)
    if not asked:
        raise click.UsageError(f"there are no questions for lesson {what}")
    quiz_play.in_terminal(asked, _read, _say)
    _trouble()


# ---------------------------------------------------------------- for teachers


@click.command(short_help="For teachers: grade notebooks, count what is believed.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Notebooks at a time.")
@click.option(
    "--json", "as_json", is_flag=True, help="One report per line, with the messages that learners would have read."
)
@click.option("--csv", "as_csv", is_flag=True, help="One line per exercise: file, key, core, passed, belief, trouble.")
@click.option("--seed", type=int, metavar="NUMBER", help="Draw the same inputs for everybody. Default: new ones each time.")
def grade(files: tuple[str, ...], jobs: int, as_json: bool, as_csv: bool, seed: int | None) -> None:
    """Grade exercise notebooks of others, each in a process of its own with limits.

    What was believed is said beside what was wrong, and counted at the end. docs/teaching.md says what grading cannot prove.

    Exit code 0: all could be judged, whatever they are worth. 1: some could not.

    \b
    Examples:
      lesson grade handed-in/*.ipynb
      lesson grade --csv -j 2 handed-in/*/01_server_sent_events.ipynb > marks.csv
    """
    from lessonlib.lab import grading

    if as_json and as_csv:
        raise click.UsageError("--json and --csv are two forms: choose one")
    with ThreadPoolExecutor(jobs) as pool:
        reports = list(zip(files, pool.map(lambda file: grading.grade(file, seed=seed), files), strict=True))
    (_as_json if as_json else _as_csv if as_csv else _as_text)(reports)
    sys.exit(1 if any(_is_troubled(report) for _, report in reports) else 0)


Reports = list[tuple[str, dict[str, Any]]]


def _is_troubled(report: dict[str, Any]) -> bool:
    return bool(report["trouble"] or any(mark["trouble"] for mark in report["exercises"]))


def _as_json(reports: Reports) -> None:
    for file, report in reports:
        click.echo(json.dumps({"file": file, **report}, ensure_ascii=False))


def _as_csv(reports: Reports) -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    names = ("key", "kind", "core", "passed", "belief", "trouble")
    out.writerow(["file", *names])
    for file, report in reports:
        out.writerows([file, *(mark[name] for name in names)] for mark in report["exercises"])


def _as_text(reports: Reports) -> None:
    from collections import Counter

    from lessonlib.lab.notice import table

    seen: Counter[tuple[str, str]] = Counter()
    for file, report in reports:
        _say(f"{file}: {report['passed']} of {report['of']}{'; ' + report['trouble'] if report['trouble'] else ''}")
        for mark in report["exercises"]:
            if not mark["passed"]:
                _say(f"  {mark['key']}: {mark['trouble'] or mark['belief']}")
            if mark["belief"] not in (None, "not_written"):
                seen[(mark["key"], mark["belief"])] += 1
    if seen:
        _say("\nWhat was believed, and by how many:")
        _say(table(["", "exercise", "belief"], [[str(times), *pair] for pair, times in seen.most_common()]).text)


@click.command("export-nbgrader", short_help="For teachers: the exercises as nbgrader's assignments.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--lesson", "numbers", multiple=True, metavar="NN", help="Only this lesson; repeatable. Default: all.")
@click.option("--points", default=1.0, show_default=True, type=click.FloatRange(min=0), help="Points of an exercise.")
def export_nbgrader(folder: Path, numbers: tuple[str, ...], points: float) -> None:
    """Write the exercises as assignments for nbgrader: DIR/source/NN_name/NN_name.ipynb, with its cell metadata.

    They are made from the solutions, so these are in them; `nbgrader generate_assignment` takes them out. docs/teaching.md
    says how to go on.
    """
    from lessonlib.lab import nbgrader, outline

    wanted = [_meant(number)[0] for number in numbers] or list(_started(outline.lessons))
    written = _started(lambda: nbgrader.export(folder, wanted, points))
    for file in written:
        _say(str(file))
    if not written:
        raise click.UsageError("these lessons have no exercises")
    _say(f"Next: cd {folder}, then  nbgrader generate_assignment {written[0].parent.name}")


COMMANDS = (
    list_lessons, next_step, check, hint, reset, solution, show_progress, ask_quiz, grade, export_nbgrader,
)  # fmt: skip
