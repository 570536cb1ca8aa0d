"""The completion page: the points by which the lesson behind this course says when one is done with it.

    completion.page()          each point, what of it is done, what is missing and how to do it
    completion.points()        the same as data

A point is met when everything in it is: exercises that passed, breaks that were run, tests that were accepted, questions
that were answered. What no program can see (that you can explain it, that you ran it with a key) only the learner can say:
`lesson progress --said NAME`.

What this file does not do: it certifies nothing. Whoever wants that grades the notebooks (grading).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lessonlib.lab import breaks, journey, outline, progress, quiz
from lessonlib.lab.notice import Notice, Piece, lines, paragraph, title
from lessonlib.lab.progress import State

HARDEST = (3, 5, 7, 12, 13)
"""The questions of the self-test that the lesson stresses."""

SAID = {
    "suite": "you can say of each behaviour of the course suite what it protects against",
    "live": "with a key of your own: one plain conversation and one with a tool were run, and their usage noted",
    "breaks": "you can explain why nothing notices break 5, how break 3 fools a comparison, and what break 2 costs unseen",
    "usage": "you can name two differences between the vendors' counts, and how to convert them",
}
"""What only the learner knows: name -> sentence. "live" is for who has a key."""

OPTIONAL = frozenset({"live"})


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a point. how: what to do for it. short: parts with such a name are listed on one line."""

    text: str
    done: bool
    how: str
    optional: bool = False
    short: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the page."""

    number: int
    text: str
    parts: tuple[Part, ...]

    @property
    def done(self) -> bool:
        """Whether all of it is, but for what is optional."""
        return all(part.done or part.optional for part in self.parts)


def points(now: State | None = None) -> list[Point]:
    """The seven points."""
    now = progress.state() if now is None else now
    return [
        Point(1, "You know what the tests protect.", (_exercise("06.lines", now), _said("suite", now))),
        Point(
            2,
            "You have drawn the states of a streamed tool call for three vendors.",
            (_exercise("06.states", now), _said("live", now)),
        ),
        Point(3, "You have broken the library in eight ways.", (*_eight(now), _said("breaks", now))),
        Point(
            4,
            "Your retry works, and two tests of yours hold it in place.",
            tuple(_exercise(key, now) for key in ("07.retry", "07.test-wait", "07.test-shown")),
        ),
        Point(5, "You have written three round trips with a tool from memory.", (_exercise("04.trips", now),)),
        Point(
            6, "You can convert the usage of one vendor into another's.", (_exercise("03.usage", now), _said("usage", now))
        ),
        Point(7, "You can answer the self-test.", tuple(_self_test(now))),
    ]


def _exercise(key: str, now: State) -> Part:
    found = outline.exercise(key)
    return Part(f"exercise {key}: {found.title}", journey.is_done(found, now), f"exercises/{found.notebook}.ipynb")


def _said(name: str, now: State) -> Part:
    how = f"if it is so: lesson progress --said {name}"
    return Part(SAID[name], name in now.said, how, optional=name in OPTIONAL)


def _eight(now: State) -> Iterator[Part]:
    """The eight breaks, and the tests for the two that need one."""
    for broken in sorted((each for each in breaks.catalogue() if each.number), key=lambda each: (each.number, each.name)):
        run = now.breaks.get(broken.name)
        name = broken.name
        shown = f'in a notebook: breaks.show("{name}"), then breaks.run("{name}", your guess)'
        yield Part(f"break {broken.number}: {broken.title}", bool(run and run.tries), _at("breaks.run", name) or shown)
        if broken.survives:
            shown = f'in a notebook: breaks.write_test("{name}", your test)'
            how = _at("breaks.write_test", name) or shown
            yield Part(f"a test that notices break {broken.number}", bool(run and run.test), how)


def _at(call: str, name: str) -> str:
    """The exercise about a break, "" if it has none."""
    found = (each for lesson in outline.lessons() for each in lesson.exercises if (each.call, each.about) == (call, name))
    return next((f"exercise {each.key}" for each in found), "")


def _self_test(now: State) -> Iterator[Part]:
    """The fourteen questions; those that matter most say so."""
    numbered = sorted((each for each in quiz.questions() if each.number), key=lambda each: each.number)
    for question in numbered:
        kept = now.answers.get(question.kept_as)
        stress = "!" if question.number in HARDEST else ""
        done = bool(kept and kept.right)
        yield Part(f"question {question.number}", done, QUIZ, short=f"{question.number}{stress} {question.key}")


QUIZ = "`lesson quiz KEY` asks one; those with ! matter most"


# ---------------------------------------------------------------- the page


def page(now: State | None = None) -> Notice:
    """The page. What is missing says how to do it."""
    now = progress.state() if now is None else now
    found = points(now)
    met = sum(point.done for point in found)
    core = [each for lesson in outline.lessons() for each in lesson.core]
    further = [each for lesson in outline.lessons() for each in lesson.further]
    pieces: list[Piece] = [title(f"Done when: {met} of {len(found)} points are met")]
    for point in found:
        pieces += _shown(point)
    pieces.append(
        paragraph(
            f"Exercises: {journey.counted(core, now)} core, {journey.counted(further, now)} further. {_last(found, now)}"
        )
    )
    return Notice(*pieces)


def _shown(point: Point) -> Iterator[Piece]:
    yield title(f"[{'x' if point.done else ' '}] {point.number}  {point.text}")
    left = [part for part in point.parts if not part.done]
    done = len(point.parts) - len(left)
    if left:
        rows = [
            f"{'if you can' if part.optional else 'missing'}: {part.text} ({part.how})" for part in left if not part.short
        ]
        listed = ", ".join(part.short for part in left if part.short)
        rows += [f"missing: questions {listed} ({QUIZ})"] if listed else []
        yield lines([f"{done} of {len(point.parts)} parts are done", *rows] if done else rows)


def _last(found: list[Point], now: State) -> str:
    if not all(point.done for point in found):
        return "Next: any line above that says missing."
    if journey.next_step(now) is None:
        return "That is all of it: there is nothing left to do here."
    return "The points are met. `lesson next` has what is left for who wants more."
