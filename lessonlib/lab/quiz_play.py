"""The quiz with controls, and the quiz in a terminal. Both only ask; what an answer is worth is said by quiz.py.

Every control is a native one: Tab reaches it, Space or the arrow keys work it. Feedback is text. Where ipywidgets is
missing, or no kernel runs, the questions stand there as text, with the line of code that answers them.

What this file does not do: no score beyond what the progress keeps, and nothing that is only said by a colour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from lessonlib.lab import progress, quiz
from lessonlib.lab.quiz import Question

WIDE = {"width": "auto", "max_width": "60em"}


class Play:
    """Some questions. As text: all of them, and how to answer. In a notebook with ipywidgets: forms."""

    def __init__(self, questions: Sequence[Question], name: str) -> None:
        self.questions = list(questions)
        self.name = name
        self.forms: list[Form] = []

    def __repr__(self) -> str:
        if not self.questions:
            return "There is no question for this lesson."
        return "\n\n".join(f'{quiz.ask(one.key)!r}\n    quiz.answer("{one.key}", …)' for one in self.questions)

    def _repr_html_(self) -> str:
        return "".join(
            f"{quiz.ask(one.key)._repr_html_()}<pre>quiz.answer({escape(repr(one.key))}, …)</pre>" for one in self.questions
        ) or escape(repr(self))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        plain = {"text/plain": repr(self), "text/html": self._repr_html_()}
        try:
            import ipywidgets  # type: ignore[import-untyped]
        except ImportError:
            return plain
        self.forms = [Form(one, ipywidgets) for one in self.questions]
        box = ipywidgets.VBox([form.box for form in self.forms])
        return {**dict(box._repr_mimebundle_() or {}), **plain}


class Form:
    """One question with its controls. `submit` is what the button does; tests press it, too."""

    def __init__(self, question: Question, widgets: Any) -> None:
        self.question = question
        self.widgets = widgets
        self.inputs: list[Any] = []
        self.points: list[Any] = []
        self.feedback = widgets.HTML()
        self.button = widgets.Button(description="Check", tooltip=f"check the answer to {question.key}")
        self.button.on_click(lambda _: self.submit())
        self.ticks = widgets.VBox([])
        head = widgets.HTML(f"<p><b>{escape(question.text)}</b></p>")
        self.box = widgets.VBox([head, *self._controls(), self.button, self.ticks, self.feedback])

    def _controls(self) -> list[Any]:
        kind, question = self.question.kind, self.question
        if kind == "one":
            choices = [(f"{option.letter}  {option.text}", option.letter) for option in question.options]
            self.inputs = [self.widgets.RadioButtons(options=choices, value=None, layout=WIDE)]
        elif kind == "many":
            self.inputs = [
                self.widgets.Checkbox(value=False, description=f"{option.letter}  {option.text}", indent=False, layout=WIDE)
                for option in question.options
            ]
        elif kind == "number":
            wide = {"description_width": "initial"}
            self.inputs = [
                self.widgets.Text(description=f"{number}  {blank.label}", style=wide, layout=WIDE)
                for number, blank in enumerate(question.blanks, 1)
            ]
        else:
            self.inputs = [self.widgets.Textarea(placeholder="in your own words", layout={"width": "60em", "height": "6em"})]
        return self.inputs

    def guess(self) -> Any:
        """What stands in the controls now; None if nothing does."""
        values = [each.value for each in self.inputs]
        match self.question.kind:
            case "many":
                offered = zip(self.question.options, values, strict=True)
                return [option.letter for option, ticked in offered if ticked] or None
            case "number":
                return values if any(values) else None
            case _:
                return values[0] or None

    def submit(self) -> None:
        """Judges what stands there. A free answer is first compared, then counted."""
        had = {number for number, tick in enumerate(self.points, 1) if tick.value} if self.points else None
        guess = self.guess()
        answered = quiz.answer(self.question.key, guess, had)
        if self.question.kind == "free" and had is None and quiz.is_answer(self.question, guess):
            self._ask_for_points()
        self.feedback.value = answered._repr_html_()

    def _ask_for_points(self) -> None:
        self.points = [
            self.widgets.Checkbox(value=False, description=point, indent=False, layout=WIDE)
            for point in self.question.points
        ]
        self.ticks.children = (self.widgets.HTML("<p>Tick what was in your answer, then check again.</p>"), *self.points)


# ---------------------------------------------------------------- in a terminal


def in_terminal(questions: Sequence[Question], read: Callable[[str], str], say: Callable[[str], None]) -> None:
    """Asks one question after the other. `read` gets a prompt; an empty line skips a question, "q" ends."""
    right = asked = 0
    for number, question in enumerate(questions, 1):
        say(f"\n{number} of {len(questions)}   {quiz.ask(question.key)!r}")
        outcome = one(question, read, say)
        if outcome is None:
            break
        if outcome == "answered":
            asked += 1
            right += progress.state().answers[question.kept_as].right if question.kept_as in progress.state().answers else 0
    if not asked:
        say("\nNothing was answered, so nothing is kept.")
    else:
        later = "" if right == asked else " What was not comes back in a later lesson."
        say(f"\n{right} of {asked} as you said.{later}")


PROMPT = "Your answer (empty: skip, q: end): "


def one(question: Question, read: Callable[[str], str], say: Callable[[str], None]) -> str | None:
    """Asks until there is an answer: "answered", "skipped", or None to end."""
    while True:
        guess = read(PROMPT).strip()
        if guess.lower() == "q":
            return None
        if not guess:
            return "skipped"
        if not quiz.is_answer(question, guess):
            say(repr(quiz.answer(question.key, guess)))
            continue
        had = _points(question, read, say) if question.kind == "free" else None
        say(repr(quiz.answer(question.key, guess, had)))
        return "answered"


def _points(question: Question, read: Callable[[str], str], say: Callable[[str], None]) -> set[int]:
    say("Compare. Was this in your answer?")
    return {
        number
        for number, point in enumerate(question.points, 1)
        if read(f"  {point} [y/N] ").strip().lower() in ("y", "yes")
    }
