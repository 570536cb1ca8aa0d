"""What comes back: predictions, breaks and questions that went wrong, asked once more in a later lesson.

    returns.keys()                            what is due now (progress.due knows when)
    returns.ask("03.cumulative")              one of them, as it was asked the first time
    returns.answer("03.cumulative", "b")      the same feedback as then; right, and it rests for longer
    returns.in_terminal(input, print)         all of it in a terminal: `lesson next`

A key is that of the progress: "03.cumulative" is a prediction of lesson 03, "03.quiz.totals" a question of the quiz,
"03.break.cache-left-out" a prediction about a break. A break is not run again: what notices it is known.

What this file does not do: it decides nothing about when (progress.py), and shows no controls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lessonlib.lab import breaks, predict, progress, quiz, quiz_play
from lessonlib.lab.notice import Notice, lines, paragraph, title
from lessonlib.lab.scratch import Run


def keys() -> list[str]:
    """The keys that are due and still exist."""
    return [key for key in progress.due() if exists(key)]


def exists(key: str) -> bool:
    """Whether there is such a thing; a newer course may have dropped it."""
    try:
        ask(key)
    except KeyError:
        return False
    return True


def words(key: str) -> str:
    """What it is about, on one line. Raises KeyError."""
    lesson, kind, name = _parts(key)
    if kind == "quiz":
        return f"{lesson}, quiz: {quiz.get(f'{lesson}.{name}').text}"
    if kind == "break":
        return f"{lesson}, break: {breaks.get(name).title}"
    return f"{lesson}: {predict.find(key).question}"


def ask(key: str) -> Notice:
    """The question. Raises KeyError."""
    lesson, kind, name = _parts(key)
    if kind == "quiz":
        return quiz.ask(f"{lesson}.{name}")
    if kind == "break":
        return breaks.show(name)
    found = predict.find(key)
    offered = lines(f"{option.letter}  {option.text}" for option in found.options)
    return Notice(
        title(found.question), offered, paragraph(f"It was asked in lesson {lesson}; what it speaks of stands there.")
    )


def answer(key: str, guess: Any, had: Iterable[int] | None = None) -> Notice:
    """Feedback on an answer, and a note of it. What is no answer only asks again, and is not kept."""
    lesson, kind, name = _parts(key)
    if kind == "quiz":
        return quiz.answer(f"{lesson}.{name}", guess, had)
    if kind == "break":
        return _about_break(key, name, guess)
    return _about_prediction(key, guess)


def is_answer(key: str, guess: Any) -> bool:
    """Whether this answers the question at all, rightly or wrongly."""
    lesson, kind, name = _parts(key)
    if kind == "quiz":
        return quiz.is_answer(quiz.get(f"{lesson}.{name}"), guess)
    if kind == "break":
        return _predicted(breaks.get(name), guess) is not None
    return predict.chosen(predict.find(key), guess) is not None


def _about_prediction(key: str, guess: str | None) -> Notice:
    found = predict.find(key)
    option = predict.chosen(found, guess)
    if option is not None:
        right = option.letter == found.answer
        progress.note_answer(key, option.letter, right=right, reading=False, returning=True)
    return _as_notice(predict.feedback(found, guess))


def _about_break(key: str, name: str, guess: Any) -> Notice:
    broken = breaks.get(name)
    predicted = _predicted(broken, guess)
    if predicted is None:
        return Notice(title("Not an answer yet"), paragraph(f"Write letters; there are {', '.join(broken.choices)}."))
    outcome = breaks.Outcome(broken, frozenset(predicted), tuple(sorted(broken.fails)), Run())
    progress.note_answer(key, ",".join(sorted(predicted)), right=outcome.right, reading=False, returning=True)
    return outcome.shown(again=True)


def _predicted(broken: breaks.Break, guess: Any) -> set[str] | None:
    predicted, unknown = breaks.meant(broken, guess) if guess is not None else (set(), [])
    return None if unknown or not predicted else predicted


# ---------------------------------------------------------------- in a terminal

AT_ONCE = 3
"""How many come back before one goes on; the others wait."""


def in_terminal(read: Callable[[str], str], say: Callable[[str], None]) -> None:
    """Asks what is due, a few at a time. `read` gets a prompt; an empty line skips a question, "q" ends."""
    waiting = keys()
    if waiting:
        these = "This surprised you, and comes" if len(waiting) == 1 else f"{len(waiting)} surprised you, and come"
        say(f"{these} back now.")
    for key in waiting[:AT_ONCE]:
        say(f"\n{ask(key)!r}")
        if _asked(key, read, say) is None:
            break


def _asked(key: str, read: Callable[[str], str], say: Callable[[str], None]) -> str | None:
    """ "answered", "skipped", or None to end."""
    lesson, kind, name = _parts(key)
    if kind == "quiz":
        return quiz_play.one(quiz.get(f"{lesson}.{name}"), read, say)
    while True:
        guess = read(quiz_play.PROMPT).strip()
        if guess.lower() == "q":
            return None
        if not guess:
            return "skipped"
        answered = is_answer(key, guess)
        say(repr(answer(key, guess)))
        if answered:
            return "answered"


def _parts(key: str) -> tuple[str, str, str]:
    """The lesson, "quiz", "break" or "", and the name."""
    lesson, _, rest = key.partition(".")
    kind, _, name = rest.partition(".")
    return (lesson, kind, name) if kind in ("quiz", "break") and name else (lesson, "", rest)


def _as_notice(feedback: predict.Feedback) -> Notice:
    return Notice(title(feedback.title), *(paragraph(line) for line in feedback.text.splitlines()))
