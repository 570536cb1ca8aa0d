"""How is measured: contestants take turns, what they read is checked before its time counts, and every value is kept.

CPU time of this process (`time.process_time`) for ratios: another program that takes the processor away changes it little.
Wall time where waiting is the point (loopback.py). A ratio is the median of the ratios of each round, in which the two ran
right after each other; so what slows the machine for a while slows both.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Work = Callable[[], Any]
Check = Callable[[Any], None]


@dataclass
class Row:
    """One contestant in one case. values: one for each round, in `unit`. size: what the case is scaled by."""

    suite: str
    case: str
    contestant: str
    unit: str
    values: list[float]
    wire: str = ""
    size: float = 0
    chunk: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


def rounds(
    works: Mapping[str, Work], runs: int, check: Check = lambda found: None, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Seconds of every contestant in every round. Each runs once before, unmeasured; who begins changes with the round.

    The garbage collector stays on, but what exists before (all the packages) is taken out of its sight, so that everybody
    pays for the own objects only."""
    for work in works.values():
        check(work())
    gc.collect()
    gc.freeze()
    names = list(works)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(runs):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            gc.collect()
            before = clock()
            found = works[name]()
            seconds[name].append(clock() - before)
            check(found)
            del found
    gc.unfreeze()
    return seconds


def ratio(ours: Sequence[float], others: Sequence[float]) -> float:
    """How many times as much `ours` is, as the median over the rounds."""
    return median(a / b for a, b in zip(ours, others, strict=True) if b > 0)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The growth: the slope of the line through the points on paper with logarithmic axes. 1 is linear."""
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)
