"""Lesson 12: a generateContent provider, `class MyGenerate(WireFormat)`, as the source lesson's second option asks for it.

What is asked (docs/wire/gemini-generate-content.md): contents with the roles user and model; declarations of tools; a
call's own signature back on its own part; whole answers, in which STOP stands beside a call; a stream of whole response
objects without any mark at its end. Then a round of a tool with a real Client against the simulator, whole and streamed.

What this check does not do: no pictures, no thinking settings, no continuation.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from lessonlib.lab.checks.contract import QUESTION, WEATHER, observe, sse
from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, raised
from lessonlib.lab.course import MODELS

JSON = dict[str, Any]
BASE = "https://generativelanguage.googleapis.com"
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 25, "thoughtsTokenCount": 30, "totalTokenCount": 155}
SIGNATURE = "c2lnbmF0dXJl"


# ---------------------------------------------------------------- what the service says


def call(name: str, args: JSON | None, **more: Any) -> JSON:
    """A part that is a call."""
    inside = {"name": name, **({} if args is None else {"args": args}), **more.pop("inside", {})}
    return {"functionCall": inside, **more}


def response(*parts: JSON, finish: str | None = "STOP", usage: JSON | None = None, **more: Any) -> JSON:
    """A whole answer, or one chunk of a stream."""
    candidate: JSON = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": usage or USAGE, "modelVersion": "m", "responseId": "r1", **more}


def answer(text: str = "", *calls: tuple[str, Any], stop: str = "end") -> JSON:
    """What must come out; ids are made up where the service gives none, so they are not compared."""
    listed = [[name, args] for name, args in calls]
    return {"text": text, "calls": listed, "stop": stop, "input": 100, "output": 55}


# ---------------------------------------------------------------- probes


def _without_ids(value: Any) -> Any:
    calls = [each[1:] for each in value["calls"]] if "calls" in value else None
    return {**value, **({} if calls is None else {"calls": calls})}


def _probe(given: JSON, expected: Any, belief: str, *signs: tuple[Sign, str], fed: str, where: str) -> Probe:
    def right(seen: Any) -> bool:
        ids = [each[0] for each in seen.get("calls", ())]
        return bool(_without_ids(seen) == expected and all(ids) and len(set(ids)) == len(ids))

    return Probe(
        {"base_url": BASE, **given},
        None,
        fed,
        where,
        belief,
        signs,
        accept=right,
        expected_words=repr(expected),
        found_words=lambda seen: repr(seen.value),
    )


def _told(field: str, value: Any) -> Sign:
    return lambda seen: seen.value.get(field, "absent") == value


def _error(name: str) -> Sign:
    return _told("error", name)


def _whole(body: JSON, expected: Any, belief: str, *signs: tuple[Sign, str], fed: str, where: str) -> Probe:
    return _probe({"do": "whole", "body": body}, expected, belief, *signs, fed=fed, where=where)


def _stream(
    chunks: list[JSON], expected: Any, belief: str, *signs: tuple[Sign, str], fed: str, where: str, size: int = 0
) -> Probe:
    return _probe({"do": "stream", "data": sse(chunks), "size": size}, expected, belief, *signs, fed=fed, where=where)


def probes(chance: random.Random) -> Iterator[Probe]:
    """The request, a whole answer, what goes back, a stream, how it ends, and a round of a tool."""
    yield from _requests()
    yield from _answers()
    yield from _odd_answers()
    yield from _second_request()
    yield from _streams()
    yield from _ends()
    yield from _rounds()
    for _ in range(8):
        yield _by_chance(chance)


def _asks(given: JSON, accept: Any, belief: str, *, fed: str, where: str, expected: str) -> Probe:
    return Probe(
        {"base_url": BASE, "do": "request", **given},
        None,
        fed,
        where,
        belief,
        accept=accept,
        expected_words=expected,
        found_words=lambda seen: f"{seen.value['url']} {seen.value['body']}",
    )


def _requests() -> Iterator[Probe]:
    user = {"role": "user", "parts": [{"text": QUESTION}]}
    yield _asks(
        {},
        lambda seen: seen["body"].get("contents") == [user],
        "messages_not_contents",
        fed="one question",
        where="contents",
        expected=f"contents: [{user}]",
    )
    yield _asks(
        {},
        lambda seen: seen["url"].endswith("/models/m:generateContent") and seen["key"] == ["x-goog-api-key: offline"],
        "model_in_the_body",
        fed="one question, to the model m",
        where="the path and the key's header",
        expected="/v1beta/models/m:generateContent (or /v1), and x-goog-api-key: <key>",
    )
    yield _asks(
        {"stream": True},
        lambda seen: "/models/m:streamGenerateContent" in seen["url"] and "alt=sse" in seen["url"],
        "stream_in_the_body",
        fed="one question, to be streamed",
        where="the path",
        expected="…/models/m:streamGenerateContent?alt=sse",
    )
    yield _asks(
        {"system": "Be brief."},
        lambda seen: _system(seen["body"]) == "Be brief." and len(seen["body"]["contents"]) == 1,
        "system_is_no_content",
        fed="a question, and a system prompt",
        where="systemInstruction",
        expected='systemInstruction: {"parts": [{"text": "Be brief."}]}, and one content',
    )
    yield _asks(
        {"tools": True},
        lambda seen: _declared(seen["body"]) == ("get_weather", WEATHER.parameters),
        "tool_not_declared",
        fed="a question, and a tool",
        where="tools",
        expected='tools: [{"functionDeclarations": [{"name", "description", "parameters" or "parametersJsonSchema"}]}]',
    )
    yield _asks(
        {"max_tokens": 500},
        lambda seen: seen["body"].get("generationConfig", {}).get("maxOutputTokens") == 500,
        "cap_elsewhere",
        fed="a question, with at most 500 tokens of output",
        where="generationConfig",
        expected='generationConfig: {"maxOutputTokens": 500}',
    )


def _system(body: JSON) -> str:
    return "".join(part["text"] for part in body["systemInstruction"]["parts"])


def _declared(body: JSON) -> tuple[str, Any]:
    (group,) = body["tools"]
    (declared,) = group["functionDeclarations"]
    return declared["name"], declared.get("parametersJsonSchema") or declared.get("parameters")


def _answers() -> Iterator[Probe]:
    yield _whole(
        response({"text": "Sunny."}),
        answer("Sunny."),
        "text_lost",
        (_told("output", 25), "thoughts_left_out"),
        (_told("input", None), "usage_not_read"),
        fed="a whole answer",
        where="text and usage",
    )
    said: list[JSON] = [{"text": "Which city?", "thought": True}, {"text": "Sunny."}]
    yield _whole(response(*said), answer("Sunny."), "thought_is_text", fed="a thought, then a text", where="text")
    oslo = call("get_weather", {"city": "Oslo"}, thoughtSignature=SIGNATURE, inside={"id": "fc1"})
    yield _whole(
        response({"text": "I look."}, oslo),
        answer("I look.", ("get_weather", {"city": "Oslo"}), stop="tool_use"),
        "stop_is_believed",
        (_told("calls", []), "call_lost"),
        fed="a text and a call; the finish reason is STOP",
        where="stop",
    )
    two = [call("get_weather", {"city": "Oslo"}), call("get_weather", {"city": "Rome"})]
    both = answer("", ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}), stop="tool_use")
    yield _whole(
        response(*two),
        both,
        "ids_are_there",
        (raised(), "ids_are_there"),
        fed="two calls, neither with an id",
        where="their call ids, which you must make up, each another one",
    )
    bare = answer("", ("get_weather", {}), stop="tool_use")
    yield _whole(
        response(call("get_weather", None)),
        bare,
        "args_are_there",
        (raised(), "args_are_there"),
        fed="a call without args",
        where="args",
    )


def _odd_answers() -> Iterator[Probe]:
    yield _whole(
        response({"text": "Sun"}, finish="MAX_TOKENS"),
        answer("Sun", stop="length"),
        "stop_words",
        fed="MAX_TOKENS",
        where="stop",
    )
    yield _whole(
        response({"text": "x"}, finish="SAFETY"), answer("x", stop="refusal"), "refusal_is_other", fed="SAFETY", where="stop"
    )
    yield _whole(
        response(finish="MALFORMED_FUNCTION_CALL"),
        answer(stop="other"),
        "unknown_is_end",
        fed="MALFORMED_FUNCTION_CALL, and no part",
        where="stop",
    )
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE, "responseId": "r1"}
    yield _whole(
        blocked,
        answer(stop="refusal"),
        "candidates_are_there",
        (raised(), "candidates_are_there"),
        fed="no candidates; the prompt was blocked",
        where="stop",
    )
    empty = {**response(), "candidates": [{"finishReason": "STOP", "index": 0}]}
    yield _whole(
        empty,
        answer(),
        "content_is_there",
        (raised(), "content_is_there"),
        fed="a candidate without content",
        where="the parts",
    )
    body = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    yield Probe(
        {"base_url": BASE, "do": "whole", "body": body},
        None,
        "an error object in the body",
        "the error",
        "error_in_a_200",
        accept=lambda seen: seen["error"] == "APIError",
        expected_words="an APIError",
    )


def _second_request() -> Iterator[Probe]:
    first = call("get_weather", {"city": "Oslo"}, thoughtSignature=SIGNATURE)
    second = call("get_weather", {"city": "Rome"}, inside={"id": "fc2"})
    given = {"base_url": BASE, "do": "second request", "body": response({"text": "I look."}, first, second)}

    def results(value: Any) -> list[JSON]:
        return [part for content in value["contents"] for part in content["parts"] if "functionResponse" in part]

    def right(value: Any) -> bool:
        roles = [content["role"] for content in value["contents"]]
        model = value["contents"][1]["parts"]
        names = [part["functionResponse"]["name"] for part in results(value)]
        objects = all(type(part["functionResponse"]["response"]) is dict for part in results(value))
        signed = [part.get("thoughtSignature") for part in model if "functionCall" in part]
        return (
            roles == ["user", "model", "user"] and signed == [SIGNATURE, None] and names == ["get_weather"] * 2 and objects
        )

    def signature_lost(seen: Seen) -> bool:
        return SIGNATURE not in repr(seen.value)

    yield Probe(
        given,
        None,
        "an answer with a text and two calls, the first one signed; then their results",
        "the contents behind the question",
        "result_form",
        (
            (lambda seen: any(content["role"] == "assistant" for content in seen.value["contents"]), "role_assistant"),
            (
                lambda seen: [content["role"] for content in seen.value["contents"]] != ["user", "model", "user"],
                "results_apart",
            ),
            (signature_lost, "signature_lost"),
            (
                lambda seen: any(
                    SIGNATURE in repr(part) and "functionCall" not in part for part in seen.value["contents"][1]["parts"]
                ),
                "signature_moved",
            ),
            (lambda seen: not all(part["functionResponse"].get("name") for part in results(seen.value)), "name_missing"),
            (
                lambda seen: any(type(part["functionResponse"].get("response")) is str for part in results(seen.value)),
                "result_as_text",
            ),
        ),
        accept=right,
        expected_words="user, model (the parts as they came, the signature on its call), user (one functionResponse per "
        "call, with its name, and an object as response)",
        found_words=lambda seen: repr(seen.value["contents"][1:]),
    )


def _streams() -> Iterator[Probe]:
    zero = {"promptTokenCount": 100, "totalTokenCount": 100}
    texts = [response({"text": "Sun"}, finish=None, usage=zero), response({"text": "ny."})]
    yield _stream(
        texts,
        answer("Sunny."),
        "last_chunk_only",
        (_told("text", "Sun"), "first_chunk_only"),
        (_error("IncompleteStream"), "end_not_seen"),
        (_told("output", None), "first_usage_wins"),
        fed="a text in two chunks, each a whole response object; no mark at the end",
        where="the text",
    )
    running = {**USAGE, "candidatesTokenCount": 5, "thoughtsTokenCount": 30}
    counted = [response({"text": "Sun"}, finish=None, usage=running), response({"text": "ny."})]
    yield _stream(
        counted,
        answer("Sunny."),
        "usage_added",
        (_told("output", 35), "first_usage_wins"),
        fed="usageMetadata in both chunks",
        where="the usage",
    )
    oslo = call("get_weather", {"city": "Oslo"}, thoughtSignature=SIGNATURE)
    late = [response({"text": "I look."}, finish=None, usage=zero), response(oslo, finish=None), response({"text": ""})]
    yield _stream(
        late,
        answer("I look.", ("get_weather", {"city": "Oslo"}), stop="tool_use"),
        "last_chunk_only",
        (_told("stop", "end"), "stop_is_believed"),
        fed="a call in the middle, STOP in a last chunk without it",
        where="the call",
    )


def _ends() -> Iterator[Probe]:
    cut = {"error": "IncompleteStream", "retryable": True}
    yield _stream(
        [response({"text": "Sunny."}, finish=None)],
        cut,
        "end_of_body_is_the_end",
        fed="a text, and no finish reason",
        where="the end",
    )
    yield _stream(
        [response(call("get_weather", {"city": "Oslo"}), finish=None)],
        cut,
        "end_of_body_is_the_end",
        fed="a whole call, and no finish reason",
        where="the end",
    )
    failed = [
        response({"text": "Sun"}, finish=None),
        {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}},
    ]
    yield Probe(
        {"base_url": BASE, "do": "stream", "data": sse(failed)},
        None,
        "an error object in the middle of a stream",
        "the error",
        "error_in_a_stream",
        accept=lambda seen: seen["error"] == "APIError",
        expected_words="an APIError",
    )
    wide = [response({"text": "Sunny in "}, finish=None), response({"text": "北京."})]
    yield _stream(
        wide, answer("Sunny in 北京."), "last_chunk_only", fed="a stream in reads of 1 byte", where="the text", size=1
    )


def _rounds() -> Iterator[Probe]:
    for streamed in (False, True):
        yield Probe(
            {"base_url": BASE, "do": "round", "stream": streamed, "model": MODELS["gemini-generate-content"]},
            None,
            f"a round of a tool with the simulator, {'streamed' if streamed else 'whole'}",
            "both requests",
            "round_fails",
            accept=lambda seen: seen["ended"] == "answered" and seen["ran"] == ["Oslo"] and seen["requests"] == 2,
            expected_words="two requests, get_weather run once, an answer",
            found_words=lambda seen: repr(seen.value),
        )


def _by_chance(chance: random.Random) -> Probe:
    """Texts and calls by chance, in chunks by chance; the finish reason with the last part or behind it."""
    parts: list[JSON] = []
    words, calls = "", []
    for _ in range(chance.randrange(1, 6)):
        if chance.random() < 0.6:
            said = chance.choice(("Sunny. ", "北京 ", "é"))
            words += said
            parts.append({"text": said})
        else:
            city = chance.choice(("Oslo", "Rome"))
            calls.append(("get_weather", {"city": city}))
            parts.append(call("get_weather", {"city": city}))
    chunks = [response(part, finish=None) for part in parts]
    if chance.random() < 0.5:
        chunks[-1] = response(parts[-1])
    else:
        chunks.append(response({"text": ""}))
    return _stream(
        chunks,
        answer(words, *calls, stop="tool_use" if calls else "end"),
        "last_chunk_only",
        fed=f"{len(parts)} parts in {len(chunks)} chunks",
        where="text and calls",
    )


check = Check.of("generate_provider", observe, probes)
