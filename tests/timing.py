"""Processor time in tests, for bounds that only a mistake of another order passes (quadratic instead of linear).

A busy machine makes work slower and never faster, so the best of a few runs is what the work takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(work: Callable[[], object], enough: float = 0.0, tries: int = 3) -> float:
    """Processor seconds of the best of `tries` runs; the first that takes at most `enough` is good enough."""
    best = float("inf")
    for _ in range(tries):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
        if best <= enough:
            break
    return best
