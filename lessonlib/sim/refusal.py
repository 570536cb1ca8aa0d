"""What a rule says when it refuses a request, and what it gets to see. The rules themselves are in `rules/`.

Each rule is one small function with its name, the wire formats that it guards, one sentence (its docstring) and a source.
`lesson rules` prints the list. A rule looks at the vendor's own JSON, not at the neutral form: its mistakes are its matter.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lessonlib import capabilities
from lessonlib.sim.shapes import Problem, Shape, problems
from lessonlib.types import JSON

if TYPE_CHECKING:
    from lessonlib.sim.core import Simulator


@dataclass(frozen=True, slots=True)
class Refusal:
    """A vendor's no: HTTP status, the vendor's own type or code words, and a message of ours.

    `rule` is the name of the rule that said it; faults have none. `wait`: seconds that the service asks to wait, which some
    vendors also write into the body.
    """

    status: int
    type: str
    message: str
    code: str | None = None
    param: str | None = None
    wait: float | None = None
    rule: str | None = None


@dataclass(slots=True)
class Context:
    """What a rule sees: the request as it came. `operation` is what is asked for ("answer", "count", "get", ...), `target`
    the id in the path. `broken`: why the body is no JSON object. `halves`: the body holds half characters (lone
    surrogates), which have been replaced. `tokens`, `cap`, `window`: the measured prompt, the output cap and the model's
    window (None: not known), for the rules that are asked when the prompt has been read."""

    wire: str
    operation: str
    path: str
    headers: Mapping[str, str]
    body: JSON
    size: int
    sim: Simulator
    model: str = ""
    target: str = ""
    broken: str | None = None
    halves: bool = False
    able: capabilities.Capabilities = capabilities.UNKNOWN
    tokens: int = 0
    cap: int | None = None
    window: int | None = None
    problems: list[Problem] = field(default_factory=list)

    def look(self, shape: Shape, *, nulls: bool) -> None:
        """Compares the body with the shape that the vendor documents; three rules per vendor say what was found."""
        self.problems = list(problems(self.body, shape, nulls=nulls))

    def problem(self, kind: str) -> Problem | None:
        """The first misfit of a kind."""
        return next((found for found in self.problems if found.kind == kind), None)

    def get(self, *path: str) -> Any:
        """The value at a path of field names; None where there is none."""
        value: Any = self.body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value


def model_names(provider: str) -> list[str]:
    """The model families of a maker, by name."""
    return sorted(name for name in capabilities.names() if capabilities.of(name).provider == provider)


def models_hint(name: str, provider: str) -> str:
    """What to write instead of a model's name that is none: a near one, and all that there are."""
    known = model_names(provider)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    meant = f"Did you mean {near[0]}? " if near else ""
    return f"{meant}The simulator knows {', '.join(known)}, each also with a date or a variant behind it."


Check = Callable[[Context], Refusal | None]

ANSWERS = frozenset({"answer"})
PROMPTS = frozenset({"answer", "count"})
"""The operations that bring a whole prompt along: most rules are about them."""
NAMED = PROMPTS | {"models"}
"""The operations that name a model; the list of all models names none."""
ALWAYS = frozenset({"answer", "count", "get", "delete", "cancel", "models"})
STORED = frozenset({"get", "delete", "cancel"})
WINDOW = frozenset({"window"})
"""Asked when the prompt has been read and measured."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `name` (the function's), `wires`, `sentence`, `source` (a section of docs/wire), and the check.

    `doubt`: what speaks against it, where the sources disagree or it is inferred from them; "" where they are clear. Such a
    rule is kept because a request that keeps it is right either way.
    """

    name: str
    wires: tuple[str, ...]
    sentence: str
    source: str
    check: Check
    operations: frozenset[str] = PROMPTS
    doubt: str = ""


class RuleBook:
    """The rules of one vendor, in the order in which they are asked; the first that refuses decides."""

    def __init__(self, *wires: str) -> None:
        self.wires = wires
        self.rules: list[Rule] = []

    def rule(self, source: str, *wires: str, on: frozenset[str] = PROMPTS, doubt: str = "") -> Callable[[Check], Check]:
        """Adds a function to the book: `@BOOK.rule("docs/wire/anthropic.md 3")`. `wires` narrows it, `on` says for which
        operations it is asked."""

        def add(check: Check) -> Check:
            sentence = " ".join((check.__doc__ or "").split())
            self.rules.append(Rule(check.__name__, wires or self.wires, sentence, source, check, on, doubt))
            return check

        return add

    def first_refusal(
        self, context: Context, operation: str | None = None, *, without: Collection[str] = ()
    ) -> Refusal | None:
        """The first rule's refusal, with the rule's name, or None. without: names of rules that are not asked, beside those
        that the simulator was told to leave out."""
        left_out = {*without, *context.sim.without}
        for rule in self.rules:
            asked = context.wire in rule.wires and (operation or context.operation) in rule.operations
            refusal = rule.check(context) if asked and rule.name not in left_out else None
            if refusal is not None:
                return replace(refusal, rule=rule.name)
        return None
