"""Lesson 10: `my_count(request) -> int`, the tokens of a whole request before it is sent.

What is asked: everything that the model reads counts (system prompt, texts, calls, results, tools, and what stands around
them), nothing that it does not read as text (base64 data), for any text and any model. The learner may use
`lessonlib.vocabulary.count_text`. A count within a quarter of the library's own is right: both are estimates for two of
three vendors.

What this check does not do: no pictures' prices, and no exact frame.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from typing import Any

from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, raised
from lessonlib.tokens import count_tokens
from lessonlib.types import Image, Message, Request, Tool, ToolCall, ToolResult

KNOWN, UNKNOWN = "gpt-4o", "brand-new-9"
NEAR = 0.25
"""How far from the library's count is near enough."""

LONG = "Nachtzugverbindung Friedrichshafen–Überlingen 20:14, reservierungspflichtig; Fahrradmitnahme ausgeschlossen. " * 8
CHINESE = "北京今天晴，最高气温二十二度。" * 20
PICTURE = base64.b64encode(bytes(range(256)) * 12).decode("ascii")
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Name of the city, in any language"},
        "days": {"type": "integer", "description": "How many days from today, at most seven"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city"],
}


def _request(given: dict[str, Any]) -> Request:
    """The request that a probe describes."""
    parts: list[Any] = [text.replace("<PICTURE>", "") for text in given.get("texts", ["Hi"])]
    if given.get("picture"):
        parts.append(Image(data=PICTURE, media_type="image/png"))
    messages = [Message.user(*parts)]
    for name, argument, result in given.get("calls", ()):
        messages.append(Message.assistant(ToolCall(call_id="c1", name=name, args={"query": argument})))
        messages.append(Message.user(ToolResult(call_id="c1", content=result)))
    messages += [Message.user("More?") if place % 2 else Message.assistant("Yes.") for place in range(given.get("turns", 0))]
    tools = [Tool(name="get_weather", description="Weather of a city", parameters=WEATHER)] if given.get("tools") else []
    return Request(messages=messages, system=given.get("system"), tools=tools, model=given.get("model", KNOWN))


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """The count; a float that is whole counts as one."""
    found = call("the function", learner, _request(given))
    return int(found) if type(found) is float and found.is_integer() else found


# ---------------------------------------------------------------- probes


def _near(given: dict[str, Any]) -> tuple[int, int]:
    right = count_tokens(_request(given)).tokens
    return round(right * (1 - NEAR)) - 4, round(right * (1 + NEAR)) + 4


def _probe(given: dict[str, Any], belief: str, *signs: tuple[Sign, str], fed: str, where: str) -> Probe:
    low, high = _near(given)
    return Probe(
        given,
        None,
        fed,
        where,
        belief,
        ((_no_number, "no_number"), *signs),
        accept=lambda seen: type(seen) is int and low <= seen <= high,
        expected_words=f"between {low} and {high} tokens",
        found_words=lambda seen: f"{seen.value!r}",
    )


def _no_number(seen: Seen) -> bool:
    return not seen.raised and type(seen.value) is not int


def _about(value: float, near: float = 0.06) -> Sign:
    return lambda seen: type(seen.value) is int and abs(seen.value - value) <= max(2, near * value)


def _is(test: Callable[[int], bool]) -> Sign:
    return lambda seen: type(seen.value) is int and test(seen.value)


def probes(chance: random.Random) -> Iterator[Probe]:
    """Texts of several kinds, then what stands beside the texts, then requests by chance."""
    words = (_about(len(LONG.split())), "words_are_tokens")
    letters = (_about(len(LONG)), "characters_are_tokens")
    yield _probe(
        {"texts": [LONG]},
        "text_lost",
        words,
        letters,
        fed=f"one German text of {len(LONG.split())} words",
        where="the count of a plain text",
    )
    yield _probe(
        {"texts": [CHINESE]},
        "four_letters_a_token",
        (_about(len(CHINESE) / 4, 0.2), "four_letters_a_token"),
        fed=f"one Chinese text of {len(CHINESE)} characters",
        where="the count of 北京今天晴…",
    )
    yield _probe(
        {"texts": ["Say <|endoftext|> and stop."]},
        "framing_too_dear",
        (raised(), "special_text_crashes"),
        fed="a text that holds <|endoftext|>",
        where="what a traveller typed",
    )
    yield _probe({"texts": [LONG, LONG]}, "first_part_only", fed="one message of two parts", where="the second part")
    yield _probe(
        {"texts": [LONG], "system": LONG},
        "system_free",
        fed="a system prompt as long as the text",
        where="the system prompt",
    )
    short = {"texts": ["Hi"], "turns": 40}
    yield _probe(
        short,
        "framing_free",
        (_is(lambda count: count > 400), "framing_too_dear"),
        fed="41 messages of one word each",
        where="what stands around each message",
    )
    yield _probe(
        {"texts": ["Hi"], "tools": True},
        "tools_free",
        fed="one word, and a tool with three parameters",
        where="the tool and its schema",
    )
    yield from _calls()
    yield _probe(
        {"texts": ["What is this?"], "picture": True},
        "picture_as_text",
        (raised(), "picture_crashes"),
        fed=f"a question, and a picture of {len(PICTURE)} characters of base64",
        where="the picture's data",
    )
    yield _probe(
        {"texts": [LONG], "model": UNKNOWN},
        "unknown_is_free",
        (raised(), "unknown_crashes"),
        fed="the long text, to a model that nobody knows",
        where="the unknown model",
    )
    for _ in range(6):
        yield _by_chance(chance)


def _calls() -> Iterator[Probe]:
    asked = {"texts": ["Find it."], "calls": [["search", LONG, "none"]]}
    yield _probe(asked, "calls_free", fed="a call with a long argument, and a short result", where="the call's arguments")
    found = {"texts": ["Find it."], "calls": [["search", "x", LONG]]}
    yield _probe(found, "results_free", (raised(), "results_free"), fed="a call, and a long result", where="the result")


def _by_chance(chance: random.Random) -> Probe:
    given = {
        "texts": [
            chance.choice((LONG, CHINESE, "def f(x):\n    return x + 1\n" * 20)) for _ in range(chance.randrange(1, 3))
        ],
        "system": chance.choice((None, "Answer briefly.")),
        "tools": chance.random() < 0.5,
        "turns": chance.randrange(6),
        "calls": [["search", "trains", LONG[: chance.randrange(50, 400)]]] if chance.random() < 0.5 else [],
    }
    words = ", ".join(f"{name}" for name, value in given.items() if value)
    return _probe(given, "stuck", fed=f"a request with {words}", where="the whole count")


check = Check.of("count", observe, probes)
