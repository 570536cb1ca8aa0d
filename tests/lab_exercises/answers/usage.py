"""Accounts of three vendors' usage, right and wrong."""

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType

from lessonlib.types import Usage
from lessonlib.wire import anthropic_messages, gemini_interactions, openai_responses
from tests.lab_exercises.answers import Answers


def base(vendor, usage):
    counts = {"cached_tokens": None, "cache_write_tokens": None, "reasoning_tokens": None}
    if vendor == "openai":
        inputs = usage.get("input_tokens_details") or {}
        outputs = usage.get("output_tokens_details") or {}
        counts["cached_tokens"] = inputs.get("cached_tokens")
        counts["cache_write_tokens"] = inputs.get("cache_write_tokens")
        counts["reasoning_tokens"] = outputs.get("reasoning_tokens")
        return {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"], **counts}
    if vendor == "anthropic":
        read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
        details = usage.get("output_tokens_details") or {}
        counts |= {"cached_tokens": read, "cache_write_tokens": written}
        counts["reasoning_tokens"] = details.get("thinking_tokens")
        total = usage["input_tokens"] + (read or 0) + (written or 0)
        return {"input_tokens": total, "output_tokens": usage["output_tokens"], **counts}
    thought = usage.get("total_thought_tokens")
    counts |= {"cached_tokens": usage.get("total_cached_tokens"), "reasoning_tokens": thought}
    output = usage["total_output_tokens"] + (thought or 0)
    return {"input_tokens": usage["total_input_tokens"], "output_tokens": output, **counts}


def by_objects(vendor, usage):
    """The library's own, which gives objects."""
    wires = {"openai": openai_responses, "anthropic": anthropic_messages, "gemini": gemini_interactions}
    return wires[vendor].decode_usage(usage)


def dig(value, *path):
    """The value at a path, None where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


PATHS = {
    "openai": (["input_tokens"], ["output_tokens"], ["input_tokens_details", "cached_tokens"],
               ["input_tokens_details", "cache_write_tokens"], ["output_tokens_details", "reasoning_tokens"]),
    "anthropic": (["input_tokens"], ["output_tokens"], ["cache_read_input_tokens"], ["cache_creation_input_tokens"],
                  ["output_tokens_details", "thinking_tokens"]),
    "gemini": (["total_input_tokens"], ["total_output_tokens"], ["total_cached_tokens"], ["nowhere"],
               ["total_thought_tokens"]),
}  # fmt: skip


def by_table(vendor, usage):
    """A table of paths, and two exceptions."""
    given, made, cached, written, thought = (dig(usage, *path) for path in PATHS[vendor])
    if vendor == "anthropic":
        given += sum(count for count in (cached, written) if count is not None)
    if vendor == "gemini" and thought is not None:
        made += thought
    return Usage(
        input_tokens=given, output_tokens=made, cached_tokens=cached, cache_write_tokens=written, reasoning_tokens=thought
    )


def by_guess(vendor, usage):
    """Tells the vendors apart by the fields."""
    if "total_input_tokens" in usage:
        return base("gemini", usage)
    if "cache_read_input_tokens" in usage or "output_tokens_details" not in usage:
        read, written = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
        found = base("anthropic", usage)
        if vendor == "openai" and "input_tokens_details" not in usage:
            found["output_tokens"] = found["input_tokens"] + read + written
        return found
    return base("openai", usage)


def stuck(vendor, usage):
    """Knows the documented examples by heart."""
    found = base(vendor, usage)
    known = {120, 30, 100, 7}
    first = usage.get("input_tokens", usage.get("total_input_tokens"))
    return found if first in known else {**found, "input_tokens": 1030}


def in_order(vendor, usage):
    """Another style: a dictionary of another kind."""
    return OrderedDict(base(vendor, usage))


ANSWERS = Answers(
    "usage",
    base,
    [by_objects, by_table, in_order, lambda vendor, usage: MappingProxyType(base(vendor, usage))],
    [
        ("stuck", stuck),
        ("vendors_mixed", by_guess),
        ("not_written", None),
        ("wrong_shape", lambda usage: {}),
    ],
)  # fmt: skip
