"""Lesson 12: a Chat Completions provider, `class MyChat(WireFormat)`, as the source lesson's first option asks for it.

What is asked (docs/wire/openai-chat.md): the request with its roles and wrapped tools; a whole answer; a stream of
choices and deltas; the odd habits of servers that speak this wire: two calls under one index, an id in every chunk, null
choices, an error in a 200. Then a round of a tool with a real Client against the simulator, whole and streamed.

What this check does not do: no reasoning, no pictures, no dialect's own fields.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from lessonlib.lab.checks.contract import QUESTION, WEATHER, observe, sse
from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, raised
from lessonlib.lab.course import MODELS

JSON = dict[str, Any]
BASE = "https://api.openai.com/v1"
USAGE = {"prompt_tokens": 120, "completion_tokens": 90, "total_tokens": 210}


# ---------------------------------------------------------------- what a service says


def call(number: int, arguments: str, name: str = "get_weather") -> JSON:
    """One entry of tool_calls."""
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def whole(message: JSON, finish: Any = "stop", **more: Any) -> JSON:
    """A whole answer."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE, **more}


def chunk(delta: JSON, finish: Any = None, **more: Any) -> JSON:
    """One chunk."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


def piece(index: int | None, arguments: str, **head: Any) -> JSON:
    """A chunk with a piece of a call."""
    name = {"name": head.pop("name")} if "name" in head else {}
    number = {} if index is None else {"index": index}
    return chunk({"tool_calls": [{**number, **head, "function": {**name, "arguments": arguments}}]})


LAST: JSON = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": USAGE}


def answer(text: str = "", *calls: tuple[str, Any], stop: str = "end", counts: bool = True) -> JSON:
    """What must come out."""
    listed = [[call_id, "get_weather", args] for call_id, args in calls]
    return {"text": text, "calls": listed, "stop": stop, "input": 120 if counts else None, "output": 90 if counts else None}


# ---------------------------------------------------------------- probes


def _probe(given: JSON, expected: Any, belief: str, *signs: tuple[Sign, str], fed: str, where: str) -> Probe:
    return Probe({"base_url": BASE, **given}, expected, fed, where, belief, signs)


def _told(field: str, value: Any) -> Sign:
    return lambda seen: type(seen.value) is dict and seen.value.get(field, "absent") == value


def _error(name: str) -> Sign:
    return _told("error", name)


def probes(chance: random.Random) -> Iterator[Probe]:
    """The request, a whole answer, a stream, the odd habits, how a stream ends, and a round of a tool."""
    yield from _requests()
    yield from _whole()
    yield from _second_request()
    yield from _streams()
    yield from _habits()
    yield from _ends()
    yield from _rounds()
    for _ in range(8):
        yield _by_chance(chance)


def _accepts(given: JSON, accept: Any, belief: str, *, fed: str, where: str, expected: str) -> Probe:
    return Probe(
        {"base_url": BASE, "do": "request", **given},
        None,
        fed,
        where,
        belief,
        accept=accept,
        expected_words=expected,
        found_words=lambda seen: repr(seen.value["body"]),
    )


def _requests() -> Iterator[Probe]:
    user = {"role": "user", "content": QUESTION}
    yield _accepts(
        {},
        lambda seen: seen["body"].get("messages") == [user],
        "input_not_messages",
        fed="one question",
        where="messages",
        expected=f"messages: [{user}]",
    )
    yield _accepts(
        {},
        lambda seen: seen["url"] == "/chat/completions" and seen["key"] == ["authorization: Bearer offline"],
        "wrong_address",
        fed="one question",
        where="the path and the key's header",
        expected="/chat/completions, and authorization: Bearer <key>",
    )
    yield _accepts(
        {"system": "Be brief."},
        lambda seen: [m.get("role") for m in seen["body"].get("messages", ())] in _SYSTEM_FIRST,
        "system_is_no_message",
        fed="a question, and a system prompt",
        where="the first message",
        expected="a message of the role system (or developer) before the question",
    )
    function = {"name": "get_weather", "description": "Weather of a city", "parameters": WEATHER.parameters}
    wrapped = [{"type": "function", "function": function}]
    yield _accepts(
        {"tools": True},
        lambda seen: _without_strict(seen["body"].get("tools")) == wrapped,
        "tool_not_wrapped",
        fed="a question, and a tool",
        where="tools",
        expected=f"tools: {wrapped}",
    )
    yield _accepts(
        {"stream": True},
        lambda seen: seen["body"].get("stream") is True and _asks_usage(seen["body"]),
        "no_usage_asked",
        fed="a question, to be streamed",
        where="stream_options",
        expected='stream: true and stream_options: {"include_usage": true}',
    )


_SYSTEM_FIRST = (["system", "user"], ["developer", "user"])


def _asks_usage(body: JSON) -> bool:
    options = body.get("stream_options")
    return type(options) is dict and options.get("include_usage") is True


def _without_strict(tools: Any) -> Any:
    return [
        {**tool, "function": {key: value for key, value in tool.get("function", {}).items() if key != "strict"}}
        for tool in tools or ()
    ]


def _second_request() -> Iterator[Probe]:
    body = whole({"content": None, "tool_calls": [call(1, '{"city":"Oslo"}'), call(2, '{"city":"Rome"}')]}, "tool_calls")
    given = {"base_url": BASE, "do": "second request", "body": body}

    def roles(seen: Seen) -> list[Any]:
        return [message.get("role") for message in seen.value.get("messages", ())]

    def right(sent: Any) -> bool:
        _, said, *results = sent["messages"]
        pairs = [(result.get("role"), result.get("tool_call_id"), _text(result.get("content"))) for result in results]
        arguments = [entry["function"]["arguments"] for entry in said["tool_calls"]]
        return pairs == [("tool", "call_1", "sun 1"), ("tool", "call_2", "sun 2")] and all(type(a) is str for a in arguments)

    yield Probe(
        given,
        None,
        "an answer with two calls; then their results",
        "the messages behind the question",
        "result_under_another_name",
        (
            (lambda seen: not seen.raised and "tool" not in roles(seen), "result_is_the_users"),
            (lambda seen: not seen.raised and roles(seen).count("tool") == 1, "results_together"),
            (lambda seen: not seen.raised and not isinstance(_first_arguments(seen.value), str), "arguments_as_object"),
        ),
        accept=right,
        expected_words='the assistant message with its tool_calls, then one message of the role "tool" per result',
        found_words=lambda seen: repr(seen.value["messages"][1:]),
    )


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(each.get("text", "") for each in content or ())


def _first_arguments(body: JSON) -> Any:
    for message in body.get("messages", ()):
        for entry in message.get("tool_calls") or ():
            return entry.get("function", {}).get("arguments")
    return ""


def _whole() -> Iterator[Probe]:
    def ask(body: JSON, expected: Any, belief: str, *signs: tuple[Sign, str], fed: str, where: str) -> Probe:
        return _probe({"do": "whole", "body": body}, expected, belief, *signs, fed=fed, where=where)

    yield ask(
        whole({"content": "Sunny."}),
        answer("Sunny."),
        "text_lost",
        (_told("input", None), "usage_not_read"),
        fed="a whole answer",
        where="text, stop and usage",
    )
    calls = whole({"content": None, "tool_calls": [call(1, '{"city":"Oslo"}')]}, "tool_calls")
    yield ask(calls, answer("", ("call_1", {"city": "Oslo"}), stop="tool_use"), "call_lost", fed="a call", where="the call")
    believed = whole({"content": None, "tool_calls": [call(1, '{"city":"Oslo"}')]}, "stop")
    yield ask(
        believed,
        answer("", ("call_1", {"city": "Oslo"}), stop="tool_use"),
        "finish_is_believed",
        fed="a call, and finish_reason stop, as with a named tool_choice",
        where="stop",
    )
    blank = whole({"content": None, "tool_calls": [call(1, "")]}, "tool_calls")
    yield ask(
        blank,
        answer("", ("call_1", {}), stop="tool_use"),
        "blank_is_no_json",
        (raised(), "blank_is_no_json"),
        fed="a call without argument text",
        where="args",
    )
    broken = whole({"content": None, "tool_calls": [call(1, '{"city": "Os')]}, "tool_calls")
    yield ask(
        broken,
        answer("", ("call_1", None), stop="tool_use"),
        "broken_arguments",
        (raised(), "broken_arguments"),
        fed="a call whose arguments are no JSON",
        where="args",
    )
    yield ask(
        whole({"content": "Sun"}, "length"),
        answer("Sun", stop="length"),
        "stop_words",
        fed="finish_reason length",
        where="stop",
    )
    yield ask(
        whole({"content": "x"}, "new_in_2027"),
        answer("x", stop="other"),
        "unknown_is_end",
        fed="finish_reason new_in_2027",
        where="stop",
    )
    refused = {"error": "APIError"}
    yield Probe(
        {"base_url": BASE, "do": "whole", "body": {"error": {"message": "model is loading", "code": 503}}},
        refused,
        "status 200, and an error object in the body",
        "the error",
        "error_in_a_200",
        accept=lambda seen: seen.get("error") == "APIError",
        expected_words="an APIError",
    )


def _streams() -> Iterator[Probe]:
    def ask(chunks: list[JSON], expected: Any, belief: str, *signs: tuple[Sign, str], fed: str, where: str) -> Probe:
        return _probe({"do": "stream", "data": sse(chunks, done=True)}, expected, belief, *signs, fed=fed, where=where)

    texts = [chunk({"role": "assistant", "content": "Sun"}), chunk({"content": "ny."}), chunk({}, "stop"), LAST]
    yield ask(
        texts,
        answer("Sunny."),
        "stream_text",
        (_told("input", None), "left_at_the_finish"),
        (_error("IncompleteStream"), "end_not_seen"),
        fed="a text in two chunks, the finish, then the usage, then [DONE]",
        where="text and usage",
    )
    args = [piece(0, "", id="call_1", type="function", name="get_weather"), piece(0, '{"city":'), piece(0, '"北京"}')]
    yield ask(
        [*args, chunk({}, "tool_calls"), LAST],
        answer("", ("call_1", {"city": "北京"}), stop="tool_use"),
        "pieces_not_joined",
        fed="a call whose arguments come in pieces",
        where="the call's args",
    )
    two = [
        piece(0, "", id="call_1", type="function", name="get_weather"),
        piece(1, "", id="call_2", type="function", name="get_weather"),
        piece(0, '{"city":"Oslo"}'),
        piece(1, '{"city":"Rome"}'),
    ]
    both = answer("", ("call_1", {"city": "Oslo"}), ("call_2", {"city": "Rome"}), stop="tool_use")
    yield ask(
        [*two, chunk({}, "tool_calls"), LAST],
        both,
        "last_call",
        fed="two calls whose pieces alternate",
        where="the two calls' args",
    )
    early = {"prompt_tokens": 120, "completion_tokens": 1, "total_tokens": 121}
    running = [chunk({"role": "assistant", "content": "Sunny."}, usage=early), chunk({}, "stop", usage=early), LAST]
    yield ask(
        running,
        answer("Sunny."),
        "usage_added",
        (_told("output", 1), "first_usage_wins"),
        fed="a usage in every chunk",
        where="the usage",
    )


def _habits() -> Iterator[Probe]:
    def ask(chunks: list[JSON], expected: Any, belief: str, *signs: tuple[Sign, str], fed: str, where: str) -> Probe:
        return _probe({"do": "stream", "data": sse(chunks, done=True)}, expected, belief, *signs, fed=fed, where=where)

    finish = [chunk({}, "tool_calls"), LAST]
    both = answer("", ("call_1", {"city": "Oslo"}), ("call_2", {"city": "Rome"}), stop="tool_use")
    one_index = [
        piece(0, '{"city":"Oslo"}', id="call_1", name="get_weather"),
        piece(0, '{"city":"Rome"}', id="call_2", name="get_weather"),
    ]
    yield ask(
        [*one_index, *finish],
        both,
        "index_is_unique",
        fed="two calls with ids of their own, both with index 0",
        where="the two calls",
    )
    bare = [
        piece(None, '{"city":"Oslo"}', id="call_1", name="get_weather"),
        piece(None, '{"city":"Rome"}', id="call_2", name="get_weather"),
    ]
    yield ask(
        [*bare, *finish],
        both,
        "index_is_there",
        (raised(), "index_is_there"),
        fed="two calls without any index",
        where="the two calls",
    )
    again = [piece(0, '{"city":', id="call_1", name="get_weather"), piece(0, '"Oslo"}', id="call_1", name="get_weather")]
    one = answer("", ("call_1", {"city": "Oslo"}), stop="tool_use")
    yield ask([*again, *finish], one, "id_appended", fed="a call whose id and name come in every chunk", where="id and name")
    nulls = [
        {**LAST, "choices": None, "usage": None},
        chunk({"role": "assistant", "content": None, "tool_calls": None}),
        chunk({"content": "Sunny."}),
        chunk({}, "stop"),
        LAST,
    ]
    yield ask(
        nulls,
        answer("Sunny."),
        "nulls_crash",
        (raised(), "nulls_crash"),
        fed="chunks with null for choices, content and tool_calls",
        where="the nulls",
    )
    failed = [chunk({"content": "Sun"}), {"error": {"message": "overloaded", "code": 503}}]
    yield Probe(
        {"base_url": BASE, "do": "stream", "data": sse(failed)},
        None,
        "an error object in the middle of a stream",
        "the error",
        "error_in_a_stream",
        accept=lambda seen: seen.get("error") == "APIError",
        expected_words="an APIError",
    )


def _ends() -> Iterator[Probe]:
    texts = [chunk({"role": "assistant", "content": "Sunny."})]
    complete = answer("Sunny.", counts=False)
    yield _probe(
        {"do": "stream", "data": sse([*texts, chunk({}, "stop")])},
        complete,
        "done_is_needed",
        fed="a finish reason, and no [DONE]",
        where="the end",
    )
    cut = {"error": "IncompleteStream", "retryable": True}
    yield _probe(
        {"do": "stream", "data": sse(texts)},
        cut,
        "end_of_body_is_the_end",
        fed="a text; neither finish reason nor [DONE]",
        where="the end",
    )
    call_only = [piece(0, '{"city":"Oslo"}', id="call_1", name="get_weather")]
    yield _probe(
        {"do": "stream", "data": sse(call_only)},
        cut,
        "end_of_body_is_the_end",
        fed="a call that looks whole; neither finish reason nor [DONE]",
        where="the end",
    )
    for size in (1, 7):
        data = sse([*texts, chunk({"content": " 北京"}), chunk({}, "stop"), LAST], done=True)
        yield _probe(
            {"do": "stream", "data": data, "size": size},
            answer("Sunny. 北京"),
            "stream_text",
            fed=f"a stream in reads of {size} bytes",
            where="the text",
        )


def _rounds() -> Iterator[Probe]:
    for streamed in (False, True):
        yield Probe(
            {"base_url": BASE, "do": "round", "stream": streamed, "model": MODELS["openai-chat"]},
            None,
            f"a round of a tool with the simulator, {'streamed' if streamed else 'whole'}",
            "both requests",
            "round_fails",
            accept=lambda seen: seen["ended"] == "answered" and seen["ran"] == ["Oslo"] and seen["requests"] == 2,
            expected_words="two requests, get_weather run once, an answer",
            found_words=lambda seen: repr(seen.value),
        )


def _by_chance(chance: random.Random) -> Probe:
    """Two calls of invented arguments, cut anywhere, with the habits of some server."""
    cities = chance.sample(("Oslo", "北京", "Rome", "São Paulo"), k=2)
    chunks: list[JSON] = []
    indexed = chance.random() < 0.5
    waiting = []
    for number, city in enumerate(cities, 1):
        text = '{"city":"' + city + '"}'
        cut = chance.randrange(1, len(text))
        index = number - 1 if indexed else None
        head = piece(index, "", id=f"call_{number}", type="function", name="get_weather")
        waiting.append([head, piece(index, text[:cut]), piece(index, text[cut:])])
    if indexed:
        while any(waiting):
            chunks.append(chance.choice([queue for queue in waiting if queue]).pop(0))
        if chunks[0]["choices"][0]["delta"]["tool_calls"][0]["index"] == 1:
            chunks.sort(key=lambda each: each["choices"][0]["delta"]["tool_calls"][0]["index"])
    else:
        chunks = [each for queue in waiting for each in queue]
    expected = answer("", *((f"call_{n}", {"city": city}) for n, city in enumerate(cities, 1)), stop="tool_use")
    return _probe(
        {"do": "stream", "data": sse([*chunks, chunk({}, "tool_calls"), LAST], done=True)},
        expected,
        "last_call",
        fed=f"two calls {'with' if indexed else 'without'} an index, in pieces by chance",
        where="the two calls",
    )


check = Check.of("chat_provider", observe, probes)
