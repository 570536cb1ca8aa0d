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

NAMES = ("sse", "usage", "trips", "decoder", "retry", "tool_loop", "repair_json", "schema", "count", "limiter", "fallback")


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


def mutant(base: Any, old: str, new: str, belief: str = "") -> Any:
    """`base` with one text of its source replaced, which must occur exactly once."""
    source = inspect.getsource(base)
    assert source.count(old) == 1, f"{source.count(old)} times: {old!r}"
    names = dict(vars(sys.modules[base.__module__]))
    exec(compile(source.replace(old, new), f"<mutant of {base.__name__}>", "exec"), names)
    return names[base.__name__]
