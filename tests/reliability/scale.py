"""How much is tried: a sample in every test run, everything in `make soak` (LESSON_SOAK=1; N: N times as long).

The sample is drawn by the name of the case, so it is the same in every run and on every machine; nobody meets a failure
that goes away by itself.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from hypothesis import HealthCheck, settings

SOAK = int(os.environ.get("LESSON_SOAK", "0") or "0")

T = TypeVar("T")


def examples(usual: int) -> settings:
    """Hypothesis settings: `usual` examples in a test run, a hundred times as many in a soak."""
    return settings(
        max_examples=usual * 100 * SOAK if SOAK else usual,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )


def sample(items: Iterable[T], one_in: int, name: str) -> Iterator[T]:
    """One of `one_in` items, beginning somewhere."""
    first = zlib.crc32(name.encode("utf-8")) % one_in
    return islice(items, first, None, one_in)


def times(usual: int, soak: int) -> int:
    return soak * SOAK if SOAK else usual
