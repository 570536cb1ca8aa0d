"""Lesson 10: `MyLimiter(requests_per_minute, tokens_per_minute, clock)`, two buckets.

    wait = limiter.reserve(tokens)      seconds to wait before this request may be sent; it is booked at once
    limiter.settle(reserved, used)      what it really used

What is asked: each bucket starts full and holds one minute's worth; it fills drop by drop and may go below zero. A
request takes one from the first and its tokens from the second, and waits for the bucket that takes longer. A request
that is larger than the token bucket raises PromptTooLong, and takes nothing. `settle` gives the difference back, or takes
it. Nothing sleeps: the caller does.

What this check does not do: no threads, and no fairness between callers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

from lessonlib.errors import PromptTooLong
from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, method

Step = list[Any]
"""["reserve", tokens], ["settle", reserved, used] or ["pass", seconds]."""


class _Slept(Exception):
    """Somebody really sleeps."""


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """The waits of the reservations, in order; "too long" for a refused one."""
    now = [1000.0]
    asleep, time.sleep = time.sleep, _no_sleep  # a wait of twelve seconds would be a check of twelve seconds
    try:
        limiter = call("the limiter", learner, given["requests"], given["tokens"], lambda: now[0])
        return [wait for step in given["steps"] for wait in _done(limiter, step, now)]
    except _Slept:
        return ["slept"]
    finally:
        time.sleep = asleep


def _no_sleep(seconds: Any, /) -> None:
    raise _Slept


def _done(limiter: Any, step: Step, now: list[float]) -> list[Any]:
    match step:
        case ["pass", seconds]:
            now[0] += seconds
        case ["settle", reserved, used]:
            method(limiter, "settle", "settle(reserved, used)")(reserved, used)
        case ["reserve", tokens]:
            try:
                wait = method(limiter, "reserve", "reserve(tokens)")(tokens)
            except PromptTooLong:
                return ["too long"]
            return [round(float(wait), 3)] if _is_number(wait) else [wait]
    return []


def _is_number(value: Any) -> bool:
    """Whether it is one, of whatever kind; a truth is none."""
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


# ---------------------------------------------------------------- probes


def _probe(
    steps: Sequence[Step],
    waits: list[Any],
    belief: str,
    *signs: tuple[Sign, str],
    where: str,
    requests: int = 60,
    tokens: int = 30_000,
) -> Probe:
    told = "; ".join(" ".join(map(str, step)) for step in steps)
    fed = f"{requests} requests and {tokens} tokens a minute: {told}"
    given = {"requests": requests, "tokens": tokens, "steps": list(steps)}
    general = ((_gave(["slept"]), "sleeps"), (_no_number, "no_number"))
    return Probe(
        given,
        waits,
        fed,
        where,
        belief,
        (*general, *signs),
        expected_words=f"the waits {waits}",
        found_words=lambda seen: f"the waits {seen.value}",
    )


def _gave(waits: list[Any]) -> Sign:
    return lambda seen: not seen.raised and seen.value == waits


def _no_number(seen: Seen) -> bool:
    return not seen.raised and any(type(wait) not in (float, str) for wait in seen.value)


def _huge(count: int, tokens: int = 12_000) -> list[Step]:
    return [["reserve", tokens] for _ in range(count)]


def probes(chance: random.Random) -> Iterator[Probe]:
    """One bucket, the other, both, time, corrections, then a day by chance."""
    yield _probe([["reserve", 100]], [0.0], "starts_empty", where="the first request")
    yield from _tokens()
    yield from _requests()
    yield from _time()
    yield from _settling()
    for _ in range(10):
        yield _by_chance(chance)


def _tokens() -> Iterator[Probe]:
    yield _probe(
        _huge(3),
        [0.0, 0.0, 12.0],
        "one_bucket",
        (_gave([0.0, 0.0, 60.0]), "refills_at_the_minute"),
        (_gave([0.0, 0.0, 0.0]), "one_bucket"),
        (_gave([0.0, 0.0, "too long"]), "refuses_instead_of_waiting"),
        (_gave([0.0, 0.0, 24.0]), "waits_for_the_whole"),
        (_gave([0.0, 0.0, 12.033]), "waits_added"),
        where="the third wait",
    )
    yield _probe(
        _huge(4),
        [0.0, 0.0, 12.0, 36.0],
        "books_after",
        (_gave([0.0, 0.0, 12.0, 12.0]), "books_after"),
        where="the fourth wait: the third is booked already",
    )
    yield _probe([["reserve", 30_001]], ["too long"], "too_large_waits", where="a request larger than the bucket")
    yield _probe(
        [["reserve", 40_000], ["reserve", 30_000]],
        ["too long", 0.0],
        "refused_is_booked",
        where="the request after the one that was refused",
    )


def _requests() -> Iterator[Probe]:
    small = [["reserve", 1] for _ in range(4)]
    yield _probe(
        small,
        [0.0, 0.0, 0.0, 20.0],
        "requests_not_counted",
        (_gave([0.0, 0.0, 0.0, 60.0]), "refills_at_the_minute"),
        requests=3,
        where="the fourth wait",
    )
    both = [["reserve", 15_000], ["reserve", 15_000], ["reserve", 10_000]]
    yield _probe(
        both,
        [0.0, 0.0, 30.0],
        "one_bucket",
        (_gave([0.0, 0.0, 50.0]), "waits_added"),
        (_gave([0.0, 0.0, 20.0]), "shorter_wait"),
        requests=2,
        where="the third wait: both buckets are empty",
    )


def _time() -> Iterator[Probe]:
    yield _probe(
        [*_huge(2), ["pass", 12], *_huge(1)], [0.0, 0.0, 0.0], "time_stands_still", where="the wait after 12 seconds"
    )
    yield _probe(
        [*_huge(2), ["pass", 6], *_huge(1)],
        [0.0, 0.0, 6.0],
        "refills_at_the_minute",
        (_gave([0.0, 0.0, 12.0]), "time_stands_still"),
        where="the wait after 6 seconds",
    )
    idle = [["pass", 600], *_huge(3)]
    yield _probe(idle, [0.0, 0.0, 12.0], "overfills", where="the third wait after ten quiet minutes")
    again = [*_huge(3), ["pass", 12], *_huge(1)]
    yield _probe(again, [0.0, 0.0, 12.0, 24.0], "debt_forgotten", where="the wait of the fourth, 12 seconds later")


def _settling() -> Iterator[Probe]:
    cheap = [["reserve", 30_000], ["settle", 30_000, 6_000], ["reserve", 12_000]]
    yield _probe(
        cheap,
        [0.0, 0.0],
        "settle_forgotten",
        (_gave([0.0, 72.0]), "settle_wrong_way"),
        (_gave([0.0, 36.0]), "settle_takes_again"),
        where="the wait after 24,000 tokens came back",
    )
    dear = [["reserve", 12_000], ["settle", 12_000, 24_000], ["reserve", 12_000]]
    yield _probe(
        dear,
        [0.0, 12.0],
        "settle_only_down",
        (_gave([0.0, 0.0]), "settle_only_down"),
        where="the wait after it used more than was reserved",
    )
    full = [["reserve", 1_000], ["pass", 60], ["settle", 1_000, 0], ["reserve", 30_000], ["reserve", 3_000]]
    yield _probe(full, [0.0, 0.0, 6.0], "overfills", where="what comes back into a full bucket is lost")


def _by_chance(chance: random.Random) -> Probe:
    """Reservations and pauses by chance, and what two buckets make of them."""
    per_minute, limit = chance.choice((6, 20, 60)), chance.choice((6_000, 30_000))
    levels, now, last = [float(per_minute), float(limit)], 0.0, 0.0
    steps: list[Step] = []
    waits: list[Any] = []
    for _ in range(12):
        if chance.random() < 0.3:
            seconds = float(chance.choice((1, 7, 30)))
            steps.append(["pass", seconds])
            now += seconds
            continue
        tokens = chance.randrange(1, limit)
        levels = [
            min(full, level + (now - last) * full / 60) for level, full in zip(levels, (per_minute, limit), strict=True)
        ]
        last = now
        levels = [levels[0] - 1, levels[1] - tokens]
        steps.append(["reserve", tokens])
        waits.append(round(max(0.0, -levels[0] * 60 / per_minute, -levels[1] * 60 / limit), 3))
    return _probe(steps, waits, "stuck", requests=per_minute, tokens=limit, where="the first wait that differs")


check = Check.of("limiter", observe, probes)
