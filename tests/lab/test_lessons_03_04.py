"""The tables of lessons 03 and 04, and of their exercises, say what the library and the simulator do."""

from __future__ import annotations

import re
from typing import Any

from lessonlib.lab.checks.predicted import data
from lessonlib.lab.forms import forms
from lessonlib.lab.network import raw_stream
from lessonlib.lab.offline import client, send
from lessonlib.lab.stepper import Stepper
from lessonlib.lab.unnamed import captures
from lessonlib.sim import Call, Simulator, Turn
from lessonlib.types import StopReason
from lessonlib.wire.anthropic_messages import STOP

JSON = dict[str, Any]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TEXT = {"type": "text", "text": "One moment."}
DO = {
    StopReason.END: "show", StopReason.TOOL_USE: "run", StopReason.LENGTH: "warn", StopReason.PAUSE: "resend",
    StopReason.REFUSAL: "decline", StopReason.OTHER: "warn",
}  # fmt: skip
"""What the lesson does about each of our stop reasons."""


def first() -> JSON:
    return {
        "model": client("anthropic").wire.model,
        "max_tokens": 4096,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "What is the weather in Oslo and in Rome?"}],
        "tools": [{"name": "get_weather", "input_schema": CITY}],
    }


def result(block: JSON, **more: Any) -> JSON:
    return {"type": "tool_result", "tool_use_id": block["id"], "content": "Sunny.", **more}


class Conversation:
    """A question, an answer with calls, and what becomes of a next message."""

    def __init__(self, *cities: str) -> None:
        self.sim = Simulator(script=[Turn(tuple(Call("get_weather", {"city": city}) for city in cities))] if cities else ())
        status, self.answer = send("anthropic", first(), self.sim)
        assert status == 200

    @property
    def calls(self) -> list[JSON]:
        return [block for block in self.answer["content"] if block["type"] == "tool_use"]

    def then(self, message: JSON, content: list[JSON] | None = None, **changes: Any) -> tuple[int, JSON]:
        turn = {"role": "assistant", "content": self.answer["content"] if content is None else content}
        return send("anthropic", {**first(), **changes, "messages": [*first()["messages"], turn, message]}, self.sim)


def says(table: dict[str, str], found: dict[str, int]) -> None:
    assert table == {name: str(status) for name, status in found.items()}


def right(lesson: str, name: str) -> dict[str, str]:
    return {row.name: row.accepted[0] for row in forms(lesson)[name].rows}


def exercise(key: str) -> dict[str, str]:
    return {name: cell["is"] for name, cell in data(key[:2])[key]["cells"].items()}


def user(*blocks: JSON) -> JSON:
    return {"role": "user", "content": list(blocks)}


# ---------------------------------------------------------------- 03


def test_where_a_result_may_stand() -> None:
    talk = Conversation("Oslo")
    (call,) = talk.calls
    messages = {
        "role tool": {"role": "tool", "content": [result(call)]},
        "text first": user(TEXT, result(call)),
        "text after": user(result(call), TEXT),
        "text alone": user(TEXT),
    }
    says(right("03", "place"), {name: talk.then(message)[0] for name, message in messages.items()})


def test_what_may_change_in_a_history() -> None:
    talk = Conversation()
    thinking, *rest = talk.answer["content"]
    answers = user(*map(result, talk.calls))
    more = [*first()["tools"], {"name": "next_train", "input_schema": CITY}]
    found = {
        "left out": talk.then(answers, rest),
        "one word added": talk.then(answers, [{**thinking, "thinking": "Rain?"}, *rest]),
        "fields in another order": talk.then(answers, [dict(reversed(thinking.items())), *rest]),
        "another system prompt": talk.then(answers, system="It is 12:01."),
        "one more tool": talk.then(answers, tools=more),
    }
    says(right("03", "losses"), {name: status for name, (status, _) in found.items()})


def test_every_stop_reason_of_the_reference_is_in_the_table_and_means_what_it_says() -> None:
    table = right("03", "stops")
    beta = {"compaction"}
    assert set(table) - {"anything new"} == set(STOP) - beta
    assert {name: DO[STOP.get(name, StopReason.OTHER)] for name in table} == table


def test_five_messages_behind_two_calls() -> None:
    talk = Conversation("Oslo", "Rome")
    one, two = map(result, talk.calls)
    messages = {
        "A": user(one, TEXT, two),
        "B": user(two, one),
        "C": user(one, {**two, "is_error": True}),
        "D": user(one),
        "E": user(one, two, TEXT),
    }
    found = {name: talk.then(message) for name, message in messages.items()}
    table = exercise("03.results")
    assert table.pop("E, the answer") == "nothing"
    assert found["E"][1]["content"] == []
    says(table, {name: status for name, (status, _) in found.items()})


def test_five_captures_and_the_client_that_looks_at_blocks_only() -> None:
    table, found = exercise("03.traps"), {}
    for letter, body in captures("03.five").items():
        stop = _stop(body, "anthropic-messages")
        naive = "run" if b'"type":"tool_use"' in body else "show"
        found |= {f"{letter} / do": DO[stop], f"{letter} / trap": "no" if naive == DO[stop] else "yes"}
    assert table == found


def test_nine_answers() -> None:
    """The words of the nine, by their stop reason; the ninth has none."""
    reasons = (
        "end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "model_context_window_exceeded", "tool_use",
        "stop_sequence", "",
    )  # fmt: skip
    found = {str(number): DO[STOP.get(reason, StopReason.OTHER)] for number, reason in enumerate(reasons, 1)}
    assert exercise("03.actions") == found


# ---------------------------------------------------------------- 04


def _stop(body: bytes, wire: str) -> StopReason:
    walk = Stepper(body, wire=wire)
    stop = walk.moment(len(walk)).stop
    assert isinstance(stop, StopReason)
    return stop


def ending(body: bytes) -> str:
    """How a stream ends, in the words of the lesson."""
    walk = Stepper(body, wire="gemini-interactions")
    error = next((step.error for step in walk.steps if step.error is not None), None)
    if error is not None:
        kind = type(error).__name__
        return {"IncompleteStream": "cut"}.get(kind, "refused" if getattr(error, "refusal", False) else "error")
    words = {
        StopReason.END: "answer", StopReason.TOOL_USE: "calls", StopReason.PAUSE: "goes on", StopReason.LENGTH: "capped",
    }  # fmt: skip
    return words[_stop(body, "gemini-interactions")]


def test_the_nine_ends_of_the_lesson() -> None:
    assert {letter: ending(body) for letter, body in captures("04.ends").items()} == right("04", "ends")


def test_the_six_ends_of_the_exercise() -> None:
    found = {}
    for letter, body in captures("04.six").items():
        end = ending(body)
        found |= {f"{letter} / is": end, f"{letter} / run": "yes" if end == "calls" else "no"}
    assert exercise("04.six") == found


def test_the_slots_are_those_of_an_answer() -> None:
    body = {
        "model": client("gemini").wire.model,
        "input": "What is the weather in Oslo?",
        "tools": [{"type": "function", "name": "get_weather", "parameters": CITY}],
        "store": False,
    }
    sim = Simulator()
    _, answer = send("gemini", body, sim)
    slots = right("04", "slots")
    call = answer["steps"][-1]
    assert ("call_id" in call) == (slots["a call has"] == "two ids")
    stream = raw_stream("gemini", body | {"stream": True})
    pieces = re.findall(rb'"delta": *\{[^{}]*?"arguments": *(.)', stream)
    assert set(pieces) == {b'"' if slots["its arguments in a stream are"] == "text" else b"{"}
    asked = {"type": "user_input", "content": [{"type": "text", "text": body["input"]}]}
    failed = {"type": slots["the result is a"], slots["the result is paired by"]: call["id"], "name": call["name"]}
    failed |= {"result": "No such city.", "is_error": True}
    status, _ = send("gemini", body | {"input": [asked, *answer["steps"], failed]}, sim)
    assert (status == 200) == (slots["a field says that the tool failed"] == "yes")
    assert slots["the output cap is"] == "optional", "the request above has none, and was answered"
    assert (answer["status"] == "requires_action") == (slots["a field says that a tool is wanted"] == "yes")
    usage = answer["usage"]
    apart = (
        usage["total_tokens"] == usage["total_input_tokens"] + usage["total_output_tokens"] + usage["total_thought_tokens"]
    )
    assert apart == (slots["output tokens hold the thinking"] == "no")
