"""Where a learner stands: what is done, what comes next, and what it looks like.

    journey.summary()          all lessons, a line each
    journey.of_lesson("03")    one lesson, an exercise a line
    journey.next_step()        the one thing to do now

Done means: a check passed; a break was run after a prediction, right or wrong (a wrong one comes back); a test for a break
was accepted. Words say what is done, never a colour.

What this file does not do: it keeps nothing (progress.py), and judges nothing (checks, breaks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lessonlib.lab import outline, progress, quiz, returns
from lessonlib.lab.exercises import Exercise
from lessonlib.lab.notice import Notice, Piece, lines, paragraph, table, title
from lessonlib.lab.outline import Lesson
from lessonlib.lab.progress import State

DONE, TRIED, OPEN = "done", "tried", "to do"
NEXT = "Next: `lesson next` in a terminal says what to do now."


# ---------------------------------------------------------------- what is done


def word(exercise: Exercise, now: State) -> str:
    """How far an exercise is: "done", "tried" or "to do"."""
    if exercise.call.startswith("breaks."):
        entry = now.breaks.get(exercise.about)
        if exercise.call == "breaks.run":
            return DONE if entry and entry.tries else OPEN
        return OPEN if entry is None or not entry.tests else DONE if entry.test else TRIED
    made = now.exercises.get(exercise.key)
    return OPEN if made is None or not made.tries else DONE if made.passed else TRIED


def is_done(exercise: Exercise, now: State) -> bool:
    """Whether an exercise is done."""
    return word(exercise, now) == DONE


def counted(own: Iterable[Exercise], now: State) -> str:
    """How many of them are done, as "2 of 3"; "none" if there are none."""
    listed = list(own)
    return f"{sum(is_done(each, now) for each in listed)} of {len(listed)}" if listed else "none"


def was_read(lesson: Lesson, now: State) -> bool:
    """Whether the learner is through with a lesson: its last cell was run, or an exercise or a later lesson was begun."""
    begun = any(word(exercise, now) != OPEN for exercise in lesson.exercises)
    return lesson.number in now.read or begun or now.lesson > int(lesson.number)


# ---------------------------------------------------------------- what comes next


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: read a lesson (exercise is None), or do an exercise of it."""

    lesson: Lesson
    exercise: Exercise | None = None

    @property
    def file(self) -> str:
        """The notebook to open."""
        return self.lesson.notebook if self.exercise is None else self.lesson.exercise_notebook

    def shown(self) -> Notice:
        """What to do, and where."""
        if self.exercise is None:
            time = f" ({self.lesson.minutes} minutes)" if self.lesson.minutes else ""
            head = f"Next: lesson {self.lesson.number} · {self.lesson.title}{time}"
            return Notice(
                title(head), paragraph(self.lesson.question), paragraph(f"Open {self.file} and go to its last cell.")
            )
        key = self.exercise.key
        level = "core" if self.exercise.core else "further"
        return Notice(
            title(f"Next: exercise {key} · {self.exercise.title} ({level})"),
            paragraph(f"Open {self.file}. When the notebook is saved, `lesson check {key}` judges it here, too."),
            paragraph(f"Stuck? `lesson hint {key}`."),
        )


def next_step(now: State | None = None) -> Step | None:
    """The step that comes now; None when everything is done. The lesson at hand first, then those after it; what was left
    out before comes at the end, core exercises first."""
    now = progress.state() if now is None else now
    return next(_steps(now), None)


def _steps(now: State) -> Iterator[Step]:
    course = outline.lessons()
    here = min(max(now.lesson, 0), len(course) - 1)
    at_hand = course[here]
    if not was_read(at_hand, now):
        yield Step(at_hand)
    yield from _open(at_hand, at_hand.core, now)
    if here + 1 < len(course):
        yield Step(course[here + 1])
    for lesson in course:
        yield from _open(lesson, lesson.core, now)
    for lesson in course:
        yield from _open(lesson, lesson.further, now)


def _open(lesson: Lesson, own: Iterable[Exercise], now: State) -> Iterator[Step]:
    return (Step(lesson, each) for each in own if not is_done(each, now))


def left_out(now: State) -> list[Exercise]:
    """Exercises of earlier lessons that everybody should do, and that are not done."""
    return [
        each
        for lesson in outline.lessons()
        if int(lesson.number) < now.lesson
        for each in lesson.core
        if not is_done(each, now)
    ]


# ---------------------------------------------------------------- what it looks like


def summary(now: State | None = None) -> Notice:
    """All lessons: what is done, what comes back, and what keeps progress from being recorded, if something does."""
    now = progress.state() if now is None else now
    rows = [_row(lesson, now) for lesson in outline.lessons()]
    return Notice(
        table(["", "lesson", "minutes", "core", "further", "quiz"], rows), *_coming_back(now), *_trouble(), paragraph(NEXT)
    )


def _row(lesson: Lesson, now: State) -> list[str]:
    core_done = all(is_done(each, now) for each in lesson.core)
    mark = DONE if was_read(lesson, now) and core_done else "here" if int(lesson.number) == max(now.lesson, 0) else ""
    right, _, asked = quiz.score(lesson.number)
    return [
        mark,
        f"{lesson.number} · {lesson.title}",
        str(lesson.minutes),
        counted(lesson.core, now),
        counted(lesson.further, now),
        f"{right} of {asked}" if asked else "none",
    ]


def of_lesson(number: str, now: State | None = None) -> Notice:
    """One lesson: its exercises, the predictions that surprised, the quiz. Raises KeyError."""
    now = progress.state() if now is None else now
    lesson = outline.lesson(number)
    rows = [_exercise_row(each, now) for each in lesson.exercises]
    return Notice(
        title(f"Lesson {lesson.number} · {lesson.title}"),
        *([table(["", "exercise", "", "what"], rows)] if rows else [paragraph("This lesson has no exercises.")]),
        *_surprises(lesson, now),
        *_quiz(lesson),
        *_trouble(),
        paragraph(NEXT),
    )


def _exercise_row(exercise: Exercise, now: State) -> list[str]:
    made = now.exercises.get(exercise.key)
    said = [word(exercise, now)]
    if made is not None and made.tries and not made.passed:
        said = ["1 try" if made.tries == 1 else f"{made.tries} tries"]
    if exercise.key in now.opened:
        said.append("solution opened")
    return [", ".join(said), exercise.key, "core" if exercise.core else "further", exercise.title]


def _surprises(lesson: Lesson, now: State) -> Iterator[Piece]:
    """The predictions that went wrong, and when they come back."""
    found = progress.surprises(lesson.number, now)
    later = {key: when for key, when in found.items() if returns.exists(key)}
    if later:
        yield paragraph(f"{'This' if len(later) == 1 else 'These'} surprised you, and {_come(later.values())}:")
        yield lines(returns.words(key) for key in later)


def _come(when: Iterable[int]) -> str:
    places = sorted(set(when))
    return f"will be asked again with lesson {' and '.join(f'{place:02d}' for place in places)}"


def _quiz(lesson: Lesson) -> Iterator[Piece]:
    right, answered, asked = quiz.score(lesson.number)
    if asked:
        said = f"{right} right of {answered} answered" if answered else "not begun"
        counted = "1 question" if asked == 1 else f"{asked} questions"
        yield paragraph(f"Quiz: {counted}, {said}. `lesson quiz {lesson.number}` asks them.")


def _coming_back(now: State) -> Iterator[Piece]:
    waiting = [key for key in progress.due(now) if returns.exists(key)]
    if waiting:
        yield paragraph(
            f"{len(waiting)} that surprised you {'comes' if len(waiting) == 1 else 'come'} back now: `lesson next`."
        )


def _trouble() -> Iterator[Piece]:
    said = "" if progress.is_off() else progress.trouble()  # who switches it off knows, and it must not be stored
    if said:
        yield paragraph(f"Nothing is recorded: {said}.")
