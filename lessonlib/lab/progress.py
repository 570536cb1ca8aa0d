"""What a learner has done so far: one small file, written whole or not at all.

    progress.note_check("01.parser", passed=False, belief="decodes_each_read")
    progress.state().exercises["01.parser"].tries
    progress.due()                          predictions that went wrong and are to come back now
    progress.show(), progress.show("03")    how far one is, in all or in a lesson

The file is `progress.json` in LESSON_HOME, or in ~/.lessonlib; with LESSON_PROGRESS=off nothing is kept. It has a version. A
file of a newer version is read by nobody here and never overwritten; a damaged one is put aside under another name, and a
new one begun. Recording never breaks a lesson: where nothing can be written, nothing is, and `trouble()` says so.

How wrong predictions come back: one lesson later; once right then, three lessons after that; then never again. Only an
answer that was given when it came back counts for that: whoever runs a notebook again with the right letter in it has not
been asked. "Now" is the highest lesson in which anything was recorded; after the last one everything that waits comes back.

What this file does not do: it judges nothing (checks, breaks.py, quiz.py), and knows neither lessons nor exercises
(journey.py, which `show` asks).
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from lessonlib.lab.notice import Notice

VERSION = 1
FIRST_RETURN, SECOND_RETURN = 1, 3
"""Lessons after which a wrong prediction comes back, and after which it comes back once more when it was right then."""

LAST_LESSON = 13
"""After it there is no later lesson: what still waits comes back at once, and is done with when it is right."""

STALE_LOCK = 10.0
"""Seconds after which another process's lock counts as left behind."""


@dataclass
class Exercise:
    """One exercise. tries: checks so far. hints: how many were shown. belief: what the last refusal was about."""

    passed: bool = False
    tries: int = 0
    hints: int = 0
    belief: str | None = None


@dataclass
class BreakTry:
    """One break. tries: runs after a prediction. right: some prediction was exactly right. first_right: the first one was.
    tests: how many were judged. test: one was accepted."""

    tries: int = 0
    right: bool = False
    first_right: bool = False
    tests: int = 0
    test: bool = False


@dataclass
class Answer:
    """One prediction or question. due: the lesson at which it comes back, None if it does not. box: times it was right since
    it was wrong."""

    right: bool = False
    first_right: bool = False
    guess: str = ""
    due: int | None = None
    box: int = 0


@dataclass
class State:
    """All of it. lesson: the highest lesson with anything recorded, -1 at the beginning. opened: exercises whose solution
    was looked at before they had passed. said: points of the completion page that only the learner can know. read: lessons
    whose last cell was run."""

    version: int = VERSION
    lesson: int = -1
    exercises: dict[str, Exercise] = field(default_factory=dict)
    breaks: dict[str, BreakTry] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)


T = TypeVar("T")
_KINDS: dict[str, type] = {"exercises": Exercise, "breaks": BreakTry, "answers": Answer}


# ---------------------------------------------------------------- the file


def path() -> Path:
    """Where the state is."""
    home = os.environ.get("LESSON_HOME")
    return (Path(home) if home else Path.home() / ".lessonlib") / "progress.json"


def is_off() -> bool:
    """Whether nothing is kept: LESSON_PROGRESS=off, for demonstrations and for stored outputs."""
    return os.environ.get("LESSON_PROGRESS", "").strip().lower() == "off"


def state() -> State:
    """The state now; an empty one if there is none that can be read."""
    if is_off():
        return State()
    try:
        text = path().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return State()
    return _parse(text) or State()


def trouble() -> str:
    """Why nothing is recorded, "" if all is well."""
    if is_off():
        return "progress is not kept, because LESSON_PROGRESS is off"
    file = path()
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            return "" if os.access(file.parent, os.W_OK) else f"progress cannot be written to {file.parent}"
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"progress cannot be kept in {file}: {error}"
    if _is_newer(text):
        return f"{file} was written by a newer version of lessonlib; this one leaves it alone"
    return ""


def change(work: Callable[[State], T]) -> T | None:
    """Reads, changes and writes the state, alone among all processes. None where nothing can be written."""
    if is_off():
        return None
    file = path()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _locked(file):
            now = _readable(file)
            if now is None:
                return None
            result = work(now)
            _write(file, json.dumps(asdict(now), ensure_ascii=False, indent=1))
            return result
    except OSError:
        return None


def forget() -> None:
    """Begins anew: the file is removed."""
    with contextlib.suppress(OSError):
        path().unlink()


def _readable(file: Path) -> State | None:
    """The state to change; None if the file must be left alone. A damaged one is put aside."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return State()
    except UnicodeDecodeError:
        text = ""
    if _is_newer(text):
        return None
    found = _parse(text)
    if found is None:
        file.replace(file.with_name(f"{file.stem}.damaged-{int(time.time())}.json"))
        return State()
    return found


def _is_newer(text: str) -> bool:
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("version"), int) and found["version"] > VERSION


def _parse(text: str) -> State | None:
    """The state in a text, None if it is none. Fields that are not known are dropped, missing ones take their defaults."""
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            return None
        values = {one.name: found[one.name] for one in fields(State) if one.name in found}
        for name, kind in _KINDS.items():
            known = {one.name for one in fields(kind)}
            values[name] = {
                key: kind(**{field: value for field, value in entry.items() if field in known})
                for key, entry in values.get(name, {}).items()
            }
        return State(**values)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _write(file: Path, text: str) -> None:
    """A new file beside the old one, then one rename: whoever reads sees the old or the new, never half."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """A lock file: two notebooks may record at the same moment."""
    lock = file.with_name(file.name + ".lock")
    give_up = time.monotonic() + 2 * STALE_LOCK
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            with contextlib.suppress(OSError):
                if time.time() - lock.stat().st_mtime > STALE_LOCK:
                    lock.unlink()
            if time.monotonic() > give_up:
                raise OSError(f"{lock} is held by another process") from None
            time.sleep(0.01)
        except PermissionError:  # Windows, while another process is removing the lock
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()


# ---------------------------------------------------------------- recording


def lesson_of(key: str) -> int:
    """The number of the lesson in a key such as "01.parser", -1 if it has none."""
    number = key.partition(".")[0]
    return int(number) if number.isdecimal() else -1


def note_check(key: str, *, passed: bool, belief: str | None = None) -> None:
    """An exercise was checked."""

    def work(now: State) -> None:
        entry = now.exercises.setdefault(key, Exercise())
        entry.tries += 1
        entry.passed = entry.passed or passed
        entry.belief = None if passed else belief
        now.lesson = max(now.lesson, lesson_of(key))

    change(work)


def next_hint(key: str, most: int = 3) -> int:
    """The number of the next hint of an exercise, from 1; at the last one it stays. Counts it as shown."""

    def work(now: State) -> int:
        entry = now.exercises.setdefault(key, Exercise())
        entry.hints = min(entry.hints + 1, most)
        return entry.hints

    return change(work) or 1


def note_break(name: str, *, right: bool) -> None:
    """A break was run after a prediction."""

    def work(now: State) -> None:
        first = name not in now.breaks or not now.breaks[name].tries
        entry = now.breaks.setdefault(name, BreakTry())
        entry.tries += 1
        entry.right = entry.right or right
        entry.first_right = entry.first_right or (first and right)

    change(work)


def note_test(name: str, *, accepted: bool) -> None:
    """A test for a break was judged."""

    def work(now: State) -> None:
        entry = now.breaks.setdefault(name, BreakTry())
        entry.tests += 1
        entry.test = entry.test or accepted

    change(work)


def note_answer(key: str, guess: str, *, right: bool, reading: bool = True, returning: bool = False) -> None:
    """A prediction or a question was answered; a wrong answer makes it come back. reading: it was met in its lesson, so the
    learner has come that far. returning: it was asked again, on purpose; only such an answer can end its coming back."""

    def work(now: State) -> None:
        now.lesson = max(now.lesson, lesson_of(key)) if reading else now.lesson
        first = key not in now.answers
        entry = now.answers.setdefault(key, Answer())
        again = not first and not returning and guess == entry.guess  # the notebook was only run once more
        entry.right, entry.guess = right, guess
        entry.first_right = entry.first_right or (first and right)
        if not right and not again:
            entry.due, entry.box = min(max(now.lesson, lesson_of(key)) + FIRST_RETURN, LAST_LESSON), 0
        elif right and returning and entry.due is not None and now.lesson >= entry.due:
            entry.box += 1
            ends = entry.box > 1 or now.lesson >= LAST_LESSON
            entry.due = None if ends else min(now.lesson + SECOND_RETURN, LAST_LESSON)

    change(work)


def note_said(point: str) -> None:
    """The learner says that a point of the completion page is done, which nothing here can see."""

    def work(now: State) -> None:
        if point not in now.said:
            now.said.append(point)

    change(work)


def forget_exercises(keys: Iterable[str], breaks: Iterable[str] = ()) -> None:
    """What was recorded of some exercises, and of some breaks, is forgotten."""
    gone, broken = set(keys), set(breaks)

    def work(now: State) -> None:
        now.exercises = {key: entry for key, entry in now.exercises.items() if key not in gone}
        now.breaks = {name: entry for name, entry in now.breaks.items() if name not in broken}
        now.opened = [key for key in now.opened if key not in gone]

    change(work)


def note_opened(key: str) -> None:
    """The solution of an exercise was opened before it had passed."""

    def work(now: State) -> None:
        if key not in now.opened:
            now.opened.append(key)

    change(work)


def note_read(lesson: str) -> None:
    """A lesson was gone through to its last cell; those before it count as begun."""

    def work(now: State) -> None:
        now.lesson = max(now.lesson, lesson_of(lesson))
        if lesson not in now.read:
            now.read.append(lesson)

    change(work)


# ---------------------------------------------------------------- asking


def due(now: State | None = None) -> list[str]:
    """The keys of the predictions and questions that come back now, oldest first."""
    now = now or state()
    return [key for key, entry in now.answers.items() if entry.due is not None and now.lesson >= entry.due]


def surprises(lesson: str, now: State | None = None) -> dict[str, int]:
    """The predictions of a lesson that went wrong the first time -> the lesson at which they come back."""
    now = now or state()
    return {
        key: entry.due
        for key, entry in now.answers.items()
        if key.startswith(f"{lesson}.") and entry.due is not None and not entry.first_right
    }


# ---------------------------------------------------------------- showing


def show(lesson: str | None = None) -> Notice:
    """How far one is: in all lessons, or in one. The last cell of a lesson calls it, so the lesson counts as read."""
    from lessonlib.lab import journey

    if lesson is None:
        return journey.summary()
    note_read(lesson)
    return journey.of_lesson(lesson)
