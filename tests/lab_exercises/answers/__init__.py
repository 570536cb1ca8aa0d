"""Right and wrong answers to the build-it exercises: what checks must let pass, what they must refuse, and why.

One module per check. `base` is right, `also` are right answers in other styles, `wrong` are misunderstandings written
out. Mutants (`<check>.toml`) change one place of the base. Each wrong answer names the belief that the check must find in
it, in its first message.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

NAMES = (
    "sse",
    "usage",
    "trips",
    "decoder",
    "retry",
    "tool_loop",
    "repair_json",
    "schema",
    "count",
    "limiter",
    "fallback",
    "history",
    "chat_provider",
    "generate_provider",
)


@dataclass(frozen=True)
class Answers:
    """The answers for one check. wrong: (belief, the object)."""

    check: str
    base: Any
    also: Sequence[Any]
    wrong: Sequence[tuple[str, Any]] = field(default=())

    @property
    def right(self) -> list[Any]:
        return [self.base, *self.also]

    def refused(self) -> list[tuple[str, str, Callable[[], Any]]]:
        """(belief, what it is, how to make it) of every wrong answer."""
        file = Path(__file__).with_name(f"{self.check}.toml")
        made = [
            (
                entry["belief"],
                f"{entry['old'].strip()[:40]!r} -> {entry['new'].strip()[:40]!r}",
                partial(mutant, self.base, **entry),
            )
            for entry in tomllib.loads(file.read_text(encoding="utf-8"))["mutant"]
        ]
        written = [(belief, getattr(each, "__name__", repr(each)), partial(_itself, each)) for belief, each in self.wrong]
        return [*made, *written]


def _itself(answer: Any) -> Any:
    return answer


def mutant(base: Any, old: str, new: str, belief: str = "", of: str = "", also: dict[str, str] | None = None) -> Any:
    """`base` in a copy of its module, in which one text of its source is replaced; it must occur exactly once. of: the
    function of that module that changes instead of base itself. also: a second change of the same kind."""
    module = sys.modules[base.__module__]
    source = inspect.getsource(module).partition("ANSWERS = ")[0]
    for change in ({"old": old, "new": new, "of": of}, also or {}):
        if change:
            source = _replaced(source, module, base, **change)
    names: dict[str, Any] = {"__name__": base.__module__}
    exec(compile(source, f"<mutant of {base.__name__}>", "exec", dont_inherit=True), names)
    return names[base.__name__]


def _replaced(source: str, module: Any, base: Any, old: str, new: str, of: str = "") -> str:
    before = inspect.getsource(getattr(module, of) if of else base)
    assert before.count(old) == 1, f"{before.count(old)} times: {old!r}"
    return source.replace(before, before.replace(old, new))
