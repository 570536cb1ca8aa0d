"""Lesson 06: the decoder of one vendor's stream, Anthropic's, as a state machine without I/O.

    decoder = MyDecoder()
    decoder.feed(event)      the JSON object of one server-sent event, already parsed
    decoder.close()          the body has ended in good order
    decoder.result()         {"text", "calls": [{"id", "name", "args"}], "stop", "output_tokens"}

What is asked (docs/wire/anthropic.md, section 4): blocks are told apart by `index` and come out in its order; arguments are
parsed once, when their block has stopped, and are None where they are no JSON object; `close` raises IncompleteStream unless
the protocol's own end has come; an error event raises APIError; a piece for a block that is not open raises ProtocolError;
what is unknown is ignored.

What this check does not do: it asks for no unified events, no signatures, and no partial answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from lessonlib.errors import LessonError
from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, method, raised
from lessonlib.lab.course_suite.captures import anthropic_events

Event = dict[str, Any]


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """The result, or the name of the error that came instead."""
    decoder = call("the decoder", learner)
    feed = method(decoder, "feed", "feed(event) with the parsed JSON of one event")
    try:
        for event in given["events"]:
            feed(json.loads(json.dumps(event)))
        method(decoder, "close", "close() at the end of the body")()
        return method(decoder, "result", "result() and returns a dict")()
    except LessonError as error:
        return {"error": type(error).__name__}


# ---------------------------------------------------------------- streams


def text(words: str) -> Event:
    """A text block."""
    return {"type": "text", "text": words}


def tool(number: int, name: str, arguments: Event) -> Event:
    """A call."""
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def usage(output: int) -> Event:
    """A usage object."""
    return {"input_tokens": 9, "output_tokens": output}


def answer(words: str, *calls: tuple[int, str, Any], stop: str, output: int = 60) -> Event:
    """What must come out."""
    listed = [{"id": f"toolu_{number}", "name": name, "args": args} for number, name, args in calls]
    return {"text": words, "calls": listed, "stop": stop, "output_tokens": output}


def piece(index: int, kind: str, **fields: Any) -> Event:
    """One delta."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


REFUND = tool(1, "refund", {"booking": "L-204", "amount": 100})
REFUND_CALL = (1, "refund", {"booking": "L-204", "amount": 100})


# ---------------------------------------------------------------- probes


def _probe(events: Sequence[Event], expected: Event, belief: str, *signs: tuple[Sign, str], fed: str, where: str) -> Probe:
    return Probe({"events": list(events)}, expected, fed, where, belief, signs)


def _field(name: str, value: Any) -> Sign:
    return lambda seen: type(seen.value) is dict and name in seen.value and seen.value[name] == value


def _no_error(seen: Seen) -> bool:
    return not seen.raised and type(seen.value) is dict and "error" not in seen.value


def _error(name: str) -> Sign:
    return _field("error", name)


JSON_ERRORS = ("JSONDecodeError", "ValueError")


def probes(chance: random.Random) -> Iterator[Probe]:
    """Whole answers first, then odd ones, then every way to break off, then answers by chance."""
    yield from _whole()
    yield from _arguments()
    yield from _news_and_faults()
    yield from _cuts(chance)
    for _ in range(10):
        yield _by_chance(chance)


def _whole() -> Iterator[Probe]:
    plain = anthropic_events(text("Sunny in Beijing."), stop="end_turn", usage=usage(60))
    added = answer("Sunny in Beijing.", stop="end_turn", output=63)["output_tokens"]
    yield _probe(
        plain,
        answer("Sunny in Beijing.", stop="end_turn"),
        "text_lost",
        (_field("output_tokens", added), "usage_added"),
        (_field("output_tokens", 3), "first_usage_wins"),
        (_field("stop", None), "stop_lost"),
        (_error("IncompleteStream"), "end_not_seen"),
        (_error("ProtocolError"), "unknown_raises"),
        fed=f"one text block in three pieces; {len(plain)} events",
        where="text, stop and output_tokens",
    )
    thought = {"type": "thinking", "thinking": "Which city?", "signature": "c2ln"}
    yield _probe(
        anthropic_events(thought, text("Sunny."), stop="end_turn", usage=usage(60)),
        answer("Sunny.", stop="end_turn"),
        "thinking_is_text",
        (raised("KeyError"), "unknown_raises"),
        (_error("ProtocolError"), "unknown_raises"),
        fed="a thinking block, then a text block",
        where="text",
    )
    yield _probe(
        anthropic_events(text("I refund it."), REFUND, usage=usage(60)),
        answer("I refund it.", REFUND_CALL, stop="tool_use"),
        "start_is_whole",
        (raised(*JSON_ERRORS), "parses_each_piece"),
        (_args_are([None]), "parses_each_piece"),
        (_args_type(str), "arguments_stay_text"),
        fed="a text block and a call whose arguments come in pieces",
        where="the call's args",
    )
    events = anthropic_events(text(""), text("B"), stop="end_turn", usage=usage(60))
    events[1]["content_block"]["text"] = "A"
    yield _probe(
        events,
        answer("AB", stop="end_turn"),
        "start_text_lost",
        fed="a block whose start already holds a text",
        where="the first letter",
    )


def _args_are(values: list[Any]) -> Sign:
    return lambda seen: type(seen.value) is dict and [each.get("args", 0) for each in seen.value.get("calls", ())] == values


def _args_type(kind: type) -> Sign:
    return lambda seen: (
        type(seen.value) is dict and any(type(each.get("args")) is kind for each in seen.value.get("calls", ()))
    )


def _arguments() -> Iterator[Probe]:
    yield _probe(
        anthropic_events(tool(1, "list_bookings", {}), usage=usage(60)),
        answer("", (1, "list_bookings", {}), stop="tool_use"),
        "blank_is_no_json",
        (_args_type(str), "arguments_stay_text"),
        fed="a call without any argument text",
        where="the call's args",
    )
    events = anthropic_events(REFUND, usage=usage(60))
    for event in events:
        if event["type"] == "content_block_delta":
            event["delta"]["partial_json"] = event["delta"]["partial_json"].replace("}", "")
    yield _probe(
        events,
        answer("", (1, "refund", None), stop="tool_use"),
        "invalid_is_repaired",
        (raised(*JSON_ERRORS), "invalid_raises"),
        (_error("ProtocolError"), "invalid_raises"),
        (_args_are([{}]), "invalid_is_empty"),
        fed="a call whose argument text lacks its last bracket; the block and the message end as they should",
        where="the call's args",
    )
    yield from _places()


def _places() -> Iterator[Probe]:
    """Blocks whose pieces alternate, and blocks that end in another order than they began."""
    cities = [tool(number, "get_weather", {"city": city}) for number, city in ((1, "Oslo"), (2, "Rome"))]
    start, *middle, ending, stop = anthropic_events(*cities, usage=usage(60))
    first = [event for event in middle if event["index"] == 0]
    second = [event for event in middle if event["index"] == 1]
    right = answer("", (1, "get_weather", {"city": "Oslo"}), (2, "get_weather", {"city": "Rome"}), stop="tool_use")
    mixed = [first[0], second[0], *(event for pair in zip(first[1:-1], second[1:-1], strict=True) for event in pair)]
    yield _probe(
        [start, *mixed, first[-1], second[-1], ending, stop],
        right,
        "last_block",
        fed="two calls whose pieces alternate",
        where="the two calls' args",
    )
    yield _probe(
        [start, first[0], second[0], *first[1:-1], *second[1:], first[-1], ending, stop],
        right,
        "order_of_arrival",
        fed="two calls; index 1 stops before index 0",
        where="the order of the calls",
    )


def _news_and_faults() -> Iterator[Probe]:
    start, opening, *rest = anthropic_events(text("Sunny."), stop="end_turn", usage=usage(60))
    right = answer("Sunny.", stop="end_turn")
    ping = {"type": "ping"}
    news = {"type": "new_in_2027", "index": 0, "load": [1]}
    yield _probe(
        [start, ping, opening, news, *rest, ping],
        right,
        "unknown_raises",
        fed="a ping, an event from 2027, and a ping behind the end",
        where="the events that say nothing",
    )
    strange = piece(0, "new_delta", load=1)
    yield _probe(
        [start, opening, strange, *rest],
        right,
        "unknown_raises",
        fed="a delta of a type that nobody knows",
        where="the unknown delta",
    )
    overload = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    yield _probe(
        [start, opening, rest[0], overload],
        {"error": "APIError"},
        "error_ignored",
        (_error("IncompleteStream"), "error_ignored"),
        (_error("ProtocolError"), "error_is_protocol"),
        fed="an error event in the middle, then the end of the body",
        where="the error event",
    )
    lost = piece(7, "text_delta", text="x")
    yield _probe(
        [start, opening, lost, *rest],
        {"error": "ProtocolError"},
        "piece_for_nothing",
        (raised("KeyError", "IndexError"), "piece_for_nothing"),
        fed="a piece for block 7, which was never opened",
        where="the piece for nothing",
    )


def _cuts(chance: random.Random) -> Iterator[Probe]:
    """Every place at which the events may stop coming; behind the last block and behind the stop reason it is tempting."""
    events = anthropic_events(text("I refund it."), REFUND, usage=usage(60))
    kinds = [event["type"] for event in events]
    for keep in range(1, len(events)):
        last = kinds[keep - 1]
        signs = {
            "message_delta": ((_no_error, "message_delta_is_the_end"),),
            "content_block_stop": ((_no_error, "block_stop_is_the_end"),),
        }.get(last, ((_no_error, "end_of_body_is_the_end"),))
        yield _probe(
            events[:keep],
            {"error": "IncompleteStream"},
            "end_of_body_is_the_end",
            (raised(*JSON_ERRORS), "parses_at_the_end"),
            *signs,
            fed=f"the same stream, cut after event {keep} of {len(events)} ({last})",
            where="close()",
        )


def _by_chance(chance: random.Random) -> Probe:
    """A few blocks of invented content, their pieces interleaved."""
    blocks, words, calls = [], "", []
    for number in range(chance.randrange(1, 5)):
        if chance.random() < 0.5:
            said = chance.choice(("Sunny. ", "北京 ", "é", 'a "b"'))
            blocks.append(text(said))
            words += said
        else:
            arguments = {"city": chance.choice(("北京", "Oslo", 'a\\"b')), "days": chance.randrange(9)}
            blocks.append(tool(number, "forecast", arguments))
            calls.append((number, "forecast", arguments))
    output = chance.randrange(5, 500)
    start, *middle, ending, stop = anthropic_events(*blocks, usage=usage(output), stop="tool_use")
    waiting = [[event for event in middle if event["index"] == index] for index in range(len(blocks))]
    mixed = [queue.pop(0) for queue in waiting]
    while any(waiting):
        mixed.append(chance.choice([queue for queue in waiting if queue]).pop(0))
    expected = answer(words, *calls, stop="tool_use", output=output)
    return _probe(
        [start, *mixed, ending, stop],
        expected,
        "last_block",
        fed=f"{len(blocks)} blocks whose pieces alternate by chance",
        where="the first field that differs",
    )


check = Check.of("decoder", observe, probes)
