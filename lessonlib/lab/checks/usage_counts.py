"""Lesson 03: three vendors' usage objects as one account, `normalise(vendor, usage) -> five counts`.

What is asked (docs/wire/): input includes cached and cache-written tokens, output includes reasoning, and what was not
reported is None. `vendor` is "openai", "anthropic" or "gemini". The answer is a dict with the five names, or an object with
five such attributes.

What this check does not do: no prices, and no usage of the older APIs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, raised

NAMES = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")


def observe(learner: Any, given: list[Any]) -> Any:
    """The five counts; {"changed": ...} if the usage object is not as it was."""
    vendor, usage = given
    mine = _copy(usage)
    found = call("the function", learner, vendor, mine)
    if mine != usage:
        return {"changed": True}
    return dict(found) if isinstance(found, Mapping) else {name: getattr(found, name) for name in NAMES}


def _copy(value: Any) -> Any:
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, dict) else value


# ---------------------------------------------------------------- the three vendors' objects


def openai(
    given: int, made: int, cached: int | None = 0, written: int | None = None, thought: int | None = 0
) -> dict[str, Any]:
    """A usage object of the Responses API."""
    details: dict[str, Any] = {} if cached is None else {"cached_tokens": cached}
    details |= {} if written is None else {"cache_write_tokens": written}
    outputs = {} if thought is None else {"reasoning_tokens": thought}
    return {
        "input_tokens": given,
        "input_tokens_details": details,
        "output_tokens": made,
        "output_tokens_details": outputs,
        "total_tokens": given + made,
    }


def anthropic(
    new: int, made: int, read: int | None = 0, written: int | None = 0, thought: int | None = None
) -> dict[str, Any]:
    """A usage object of the Messages API."""
    usage: dict[str, Any] = {"input_tokens": new}
    usage |= {} if written is None else {"cache_creation_input_tokens": written}
    usage |= {} if read is None else {"cache_read_input_tokens": read}
    usage |= {"output_tokens": made}
    return usage if thought is None else {**usage, "output_tokens_details": {"thinking_tokens": thought}}


def gemini(given: int, said: int, thought: int | None, cached: int | None = 0, tools: int = 0) -> dict[str, Any]:
    """A usage object of the Interactions API."""
    usage: dict[str, Any] = {"total_tokens": given + said + (thought or 0) + tools, "total_input_tokens": given}
    usage |= {} if cached is None else {"total_cached_tokens": cached}
    usage |= {"total_output_tokens": said, "total_tool_use_tokens": tools}
    return usage if thought is None else {**usage, "total_thought_tokens": thought}


def account(given: int, made: int, cached: int | None, written: int | None, thought: int | None) -> dict[str, int | None]:
    """The five counts."""
    return dict(zip(NAMES, (given, made, cached, written, thought), strict=True))


# ---------------------------------------------------------------- probes


def _is(name: str, value: int | None) -> Sign:
    """The sign "this count has this wrong value"."""
    return lambda seen: type(seen.value) is dict and seen.value.get(name, "absent") == value and _exact(seen, name, value)


def _exact(seen: Seen, name: str, value: int | None) -> bool:
    return type(seen.value[name]) is type(value)


def _changed(seen: Seen) -> bool:
    return type(seen.value) is dict and "changed" in seen.value


def _probe(
    vendor: str, usage: dict[str, Any], expected: dict[str, int | None], belief: str, *signs: tuple[Sign, str]
) -> Probe:
    def wrong_fields(seen: Seen) -> str:
        if type(seen.value) is not dict or "changed" in seen.value:
            return "the usage object is not as it was" if _changed(seen) else seen.shown()
        wrong = [
            f"{name} = {seen.value.get(name, '(not there)')!r}"
            for name in NAMES
            if seen.value.get(name, "") != expected[name]
        ]
        return ", ".join(wrong) or f"fields {sorted(seen.value)}"

    right = ", ".join(f"{name} = {count}" for name, count in expected.items())
    first = (_changed, "changes_the_input")
    return Probe(
        [vendor, usage],
        expected,
        f"{vendor}: {usage}",
        "the counts that are named under Found",
        belief,
        (first, *signs),
        expected_words=right,
        found_words=wrong_fields,
    )


def probes(chance: random.Random) -> Iterator[Probe]:
    """One rule at a time, then numbers by chance."""
    zero = (_is("cached_tokens", 0), "unknown_is_zero"), (_is("reasoning_tokens", 0), "unknown_is_zero")
    yield _probe(
        "anthropic",
        anthropic(30, 60, read=1000),
        account(1030, 60, 1000, 0, None),
        "wrong_place",
        (_is("input_tokens", 30), "field_is_the_input"),
        (_is("reasoning_tokens", 0), "unknown_is_zero"),
        (_is("cache_write_tokens", None), "zero_is_unknown"),
    )
    yield _probe(
        "openai",
        openai(120, 90, cached=64, thought=70),
        account(120, 90, 64, None, 70),
        "wrong_place",
        (_is("input_tokens", 184), "cache_added_twice"),
        (_is("output_tokens", 160), "reasoning_added_twice"),
        (_is("cache_write_tokens", 0), "unknown_is_zero"),
    )
    yield _probe(
        "gemini",
        gemini(100, 25, 30, cached=40),
        account(100, 55, 40, None, 30),
        "wrong_place",
        (_is("output_tokens", 25), "thoughts_left_out"),
        (_is("input_tokens", 140), "cache_added_twice"),
        (_is("cache_write_tokens", 0), "unknown_is_zero"),
    )
    yield _probe(
        "anthropic",
        anthropic(30, 60, read=1000, written=500),
        account(1530, 60, 1000, 500, None),
        "wrong_place",
        (_is("input_tokens", 1030), "write_forgotten"),
        (_is("input_tokens", 530), "field_is_the_input"),
    )
    yield _probe(
        "anthropic",
        anthropic(30, 60, thought=40),
        account(30, 60, 0, 0, 40),
        "wrong_place",
        (_is("output_tokens", 100), "reasoning_added_twice"),
        (_is("cached_tokens", None), "zero_is_unknown"),
    )
    yield _probe(
        "openai", openai(120, 90, cached=None, thought=None), account(120, 90, None, None, None), "wrong_place", *zero
    )
    yield _probe(
        "anthropic", anthropic(30, 60, read=None, written=None), account(30, 60, None, None, None), "unknown_is_zero"
    )
    yield _probe(
        "openai",
        openai(120, 90, cached=0, written=16),
        account(120, 90, 0, 16, 0),
        "wrong_place",
        (_is("cached_tokens", None), "zero_is_unknown"),
        (_is("reasoning_tokens", None), "zero_is_unknown"),
        (_is("input_tokens", 136), "cache_added_twice"),
    )
    yield from _odd_ones()
    for _ in range(30):
        yield _by_chance(chance)


def _odd_ones() -> Iterator[Probe]:
    tools = gemini(100, 25, 30, tools=500)
    yield _probe("gemini", tools, account(100, 55, 0, None, 30), "total_recomputed")
    agent = {**gemini(100, 25, 30), "total_tokens": 9000}
    yield _probe("gemini", agent, account(100, 55, 0, None, 30), "total_recomputed")
    nulls = {**openai(120, 90), "input_tokens_details": None, "output_tokens_details": None}
    yield _probe(
        "openai",
        nulls,
        account(120, 90, None, None, None),
        "unknown_is_zero",
        (raised(), "null_details"),
    )
    no_thoughts = gemini(100, 25, None, cached=None)
    yield _probe(
        "gemini",
        no_thoughts,
        account(100, 25, None, None, None),
        "unknown_is_zero",
        (raised(), "null_details"),
    )
    bare = {"input_tokens": 7, "output_tokens": 20}
    for vendor in ("anthropic", "openai"):
        yield _probe(
            vendor,
            bare,
            account(7, 20, None, None, None),
            "vendors_mixed",
            (_is("cached_tokens", 0), "unknown_is_zero"),
            (raised(), "null_details"),
        )


def _by_chance(chance: random.Random) -> Probe:
    a, b, c, d, e = (chance.randrange(1, 5000) for _ in range(5))
    match chance.choice(("openai", "anthropic", "gemini")):
        case "openai":
            return _probe("openai", openai(a + b, c + d, cached=b, thought=d), account(a + b, c + d, b, None, d), "stuck")
        case "anthropic":
            return _probe("anthropic", anthropic(a, c, read=b, written=e), account(a + b + e, c, b, e, None), "stuck")
        case _:
            return _probe("gemini", gemini(a + b, c, d, cached=b), account(a + b, c + d, b, None, d), "stuck")


check = Check.of("usage", observe, probes)
