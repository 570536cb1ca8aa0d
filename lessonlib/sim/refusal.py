"""What a rule says when it refuses a request, and what it gets to see. The rules themselves are in `rules/`.

Each rule is one small function with its name, the wire formats that it guards, one sentence (its docstring) and a source.
`lesson rules` prints the list. A rule looks at the vendor's own JSON, not at the neutral form: its mistakes are its matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lessonlib import capabilities
from lessonlib.types import JSON

if TYPE_CHECKING:
    from lessonlib.sim.core import Simulator


@dataclass(frozen=True, slots=True)
class Refusal:
    """A vendor's no: HTTP status, the vendor's own type or code words, and a message of ours.

    `rule` is the name of the rule that said it; faults have none.
    """

    status: int
    type: str
    message: str
    code: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    rule: str | None = None


@dataclass(slots=True)
class Context:
    """What a rule sees: the request as it came."""

    wire: str
    path: str
    headers: Mapping[str, str]
    body: JSON
    size: int
    sim: Simulator
    model: str = ""

    @property
    def able(self) -> capabilities.Capabilities:
        """What the asked model accepts."""
        return capabilities.of(self.model)


Check = Callable[[Context], Refusal | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `name` (the function's), `wires`, `sentence`, `source` (a section of docs/wire), and the check."""

    name: str
    wires: tuple[str, ...]
    sentence: str
    source: str
    check: Check


class RuleBook:
    """The rules of one vendor, in the order in which they are asked; the first that refuses decides."""

    def __init__(self, *wires: str) -> None:
        self.wires = wires
        self.rules: list[Rule] = []

    def rule(self, source: str, *wires: str) -> Callable[[Check], Check]:
        """Adds a function to the book: `@BOOK.rule("docs/wire/anthropic.md 3")`. `wires` narrows it."""

        def add(check: Check) -> Check:
            sentence = " ".join((check.__doc__ or "").split())
            self.rules.append(Rule(check.__name__, wires or self.wires, sentence, source, check))
            return check

        return add

    def first_refusal(self, context: Context) -> Refusal | None:
        """The first rule's refusal, with the rule's name, or None."""
        for rule in self.rules:
            if context.wire in rule.wires:
                refusal = rule.check(context)
                if refusal is not None:
                    return Refusal(
                        refusal.status,
                        refusal.type,
                        refusal.message,
                        refusal.code,
                        refusal.param,
                        refusal.headers,
                        rule.name,
                    )
        return None
