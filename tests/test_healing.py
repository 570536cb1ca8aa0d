"""Healing in the tool loop: read again, count tries, keep or fold, and what it costs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import Field

from lessonlib.budget import Metered
from lessonlib.client import Client
from lessonlib.errors import MaxSteps
from lessonlib.healing import may_fold, read_again
from lessonlib.history import arrange
from lessonlib.ledger import Ledger
from lessonlib.prices import Prices
from lessonlib.sim import SimTransport, Simulator
from lessonlib.tool_loop import Decision, ToolLoop, run_tools
from lessonlib.tools import BadFormat
from lessonlib.types import Message, Opaque, Reasoning, Request, StopReason, Text, ToolCall, ToolResult, Usage
from lessonlib.wire import WIRES
from lessonlib.wire.base import cut_call
from tests.fakes import ASK, AFake, Fake, answer, both, broken_call, call, streamed, whole


def tide(place: str, hours: Annotated[int, Field(ge=1, le=48)] = 6) -> str:
    return f"{place}: 1.2 m in {hours} h"


def run(*script: Any, **options: Any) -> Any:
    return run_tools(Fake(*script), ASK, {"tide": tide}, max_steps=20, **options)


def results(messages: list[Message]) -> list[ToolResult]:
    return [result for message in messages for result in message.tool_results]


FENCED = answer("", broken_call("tide", "```json\n{'place': 'Kiel', 'hours': 3,}\n```"))
GOOD = answer("", call("tide", place="Kiel"))
UNREADABLE = answer("", broken_call("tide", '{"place": Kiel}'))
UNFIT = answer("", call("tide", place="Kiel", hours=99))
INVENTED = answer("", call("tides", place="Kiel"))


# ---------------------------------------------------------------- reading again


def test_a_fault_of_presentation_costs_no_request_and_the_model_is_told() -> None:
    found = run(FENCED, "done")
    (result,) = results(found.messages)
    assert result.text == (
        "[The arguments were not valid JSON (code fence, single quotes, trailing comma) and were read as "
        '{"place": "Kiel", "hours": 3}]\nKiel: 1.2 m in 3 h'
    )
    assert not result.is_error
    assert (found.steps, found.tools_run, found.healing) == (2, 1, Usage())


def test_both_colours_whole_and_streamed() -> None:
    def make(colour: type[Fake]) -> ToolLoop[Any]:
        return ToolLoop(colour(FENCED, "done"), {"tide": tide})

    assert both(make, lambda loop: whole(loop).text, lambda loop: streamed(loop)[-1].response.text) == "done"


def test_the_history_keeps_the_call_as_it_came() -> None:
    """What a service sent goes back to it unchanged, so that ids and signatures stay valid."""
    assert run(FENCED, "done").messages[1] == FENCED.message


def test_what_was_read_again_is_bound_as_strictly_as_anything() -> None:
    """A text where a number belongs is refused, in single quotes too."""
    (result,) = results(run(answer("", broken_call("tide", "{'place': 'Kiel', 'hours': '3'}")), "done").messages)
    assert result.is_error
    assert "hours: Input should be a valid integer" in result.text


@pytest.mark.parametrize("raw", ['{"place": "Kiel', '{"place": "Kiel", "hours": 3', "[1, 2,]", "'Kiel'", "{place: 'Kiel'}"])
def test_nothing_is_invented(raw: str) -> None:
    (result,) = results(run(answer("", broken_call("tide", raw)), "done").messages)
    assert result.is_error
    assert "tide was not run" in result.text


def test_a_call_that_was_cut_is_never_read_again() -> None:
    """Its text may be balanced by chance."""
    cut = cut_call("c1", "tide", "{'place': 'Kiel'}", wire="openai-chat")
    with pytest.raises(BadFormat):
        read_again(cut)
    for stop in (StopReason.LENGTH, StopReason.REFUSAL, StopReason.OTHER):
        assert run(answer("", FENCED.message.tool_calls[0], stop=stop)).tools_run == 0


def test_a_person_is_asked_about_the_call_as_it_will_be_run() -> None:
    asked: list[ToolCall] = []

    def approve(each: ToolCall) -> Decision:
        asked.append(each)
        return Decision(False, "not now")

    (result,) = results(run(FENCED, "done", approve=approve).messages)
    assert asked[0].args == {"place": "Kiel", "hours": 3}
    assert "not now" in result.text


def test_reading_again_can_be_switched_off() -> None:
    (result,) = results(run(FENCED, "done", repair=False).messages)
    assert result.is_error


def test_half_of_a_surrogate_pair_can_be_told_to_the_model() -> None:
    _, note = read_again(broken_call("tide", "{'place': '\\ud83d'}"))
    assert "\\ud83d" in note
    note.encode("utf-8")


# ---------------------------------------------------------------- tries


@pytest.mark.parametrize("bad", [UNREADABLE, UNFIT, INVENTED], ids=["format", "arguments", "invented tool"])
def test_three_tries_of_the_same_call_then_an_honest_error(bad: Any) -> None:
    with pytest.raises(MaxSteps, match="called in vain 3 times in a row; the last time: ") as caught:
        run(bad, bad, bad, GOOD, "never")
    assert caught.value.run.steps == 3
    arrange(caught.value.run.messages, "openai-chat", merge=False)


def test_a_good_call_in_between_begins_the_count_anew() -> None:
    assert run(UNFIT, UNFIT, GOOD, UNFIT, UNFIT, GOOD, "done").response.text == "done"


def test_a_good_call_of_another_tool_beside_it_does_not() -> None:
    """A step that is only half faulty would otherwise go on for ever."""
    half = answer("", call("tide", "c1", place="Kiel"), call("tides", "c2"))
    with pytest.raises(MaxSteps, match="tides was called in vain 3 times"):
        run(half, half, half, half)


def test_several_faulty_calls_in_one_answer_are_one_try() -> None:
    many = answer("", *(call("tide", f"c{number}", place=1) for number in range(5)))
    assert run(many, many, GOOD, "done").response.text == "done"


def test_what_a_tool_raises_and_what_a_person_refuses_is_no_faulty_call() -> None:
    def fails(place: str) -> str:
        raise OSError("no water")

    looping = [answer("", call("tide", place="Kiel"))] * 5
    found = run_tools(Fake(*looping, "done"), ASK, {"tide": fails}, max_steps=20)
    assert (found.response.text, found.healing) == ("done", Usage())
    assert run(*looping, "done", approve=lambda each: False).response.text == "done"


def test_the_number_of_tries_can_be_set_or_left_to_the_step_limit() -> None:
    with pytest.raises(MaxSteps, match="2 times"):
        run(UNFIT, UNFIT, max_tries=2)
    assert run(*[UNFIT] * 9, "done", max_tries=None).response.text == "done"


# ---------------------------------------------------------------- keep or fold


def test_failed_tries_are_kept() -> None:
    found = run(UNFIT, UNREADABLE, GOOD, "done")
    assert len(found.messages) == 1 + 2 + 2 + 2 + 1
    assert found.folded == 0


def test_failed_tries_are_folded_once_a_step_has_succeeded() -> None:
    fake = Fake(UNFIT, UNREADABLE, GOOD, "done")
    found = run_tools(fake, ASK, {"tide": tide}, history="fold")
    assert found.messages == [*ASK.messages, GOOD.message, found.messages[2], answer("done").message]
    assert found.folded == 4
    assert len(fake.requests[2].messages) == 5  # while it was failing, the model saw why
    assert fake.requests[3].messages == found.messages[:3]


def test_a_step_with_a_good_call_beside_the_faulty_one_is_never_folded() -> None:
    half = answer("", call("tide", "c1", place="Kiel"), call("tides", "c2"))
    assert run(half, GOOD, "done", history="fold").folded == 0


def test_nothing_is_folded_before_a_success() -> None:
    found = run(UNFIT, "I give up.", history="fold")
    assert (found.folded, len(found.messages)) == (0, 4)


SEALED = [
    Reasoning(text="Hm", wire="anthropic-messages", raw={"type": "thinking", "signature": "s"}),
    Opaque(kind="thing", wire="x", raw={}),
    Text(text="x", wire="gemini-generate-content", raw={"text": "x", "thoughtSignature": "s"}),
    ToolCall(call_id="c9", name="tide", args={"place": "Kiel"}, raw={"function": {"extra": {"thought_signature": "s"}}}),
]


@pytest.mark.parametrize("part", SEALED, ids=["thinking", "opaque", "signed text", "signed call"])
@pytest.mark.parametrize("where", ["in a failed try", "in the answer after it"])
def test_nothing_is_folded_where_something_is_signed(part: Any, where: str) -> None:
    parts = [] if isinstance(part, ToolCall) else [part]
    bad = Message(role="assistant", parts=[*parts, *UNFIT.message.parts])
    good = Message(role="assistant", parts=[part, *GOOD.message.parts])
    script = [answer().model_copy(update={"message": bad, "stop": StopReason.TOOL_USE}), GOOD, "done"]
    if where != "in a failed try" or isinstance(part, ToolCall):
        script = [UNFIT, answer().model_copy(update={"message": good, "stop": StopReason.TOOL_USE}), "done"]
    assert run(*script, history="fold").folded == 0


def test_what_may_be_folded() -> None:
    assert may_fold([UNFIT.message, Message.user("x")])
    assert not may_fold([Message.assistant(SEALED[0])])


@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize("history", ["keep", "fold"])
def test_every_service_takes_the_history_after_healing(wire: str, history: Any) -> None:
    """The simulator gives wrong arguments once; it refuses a history whose thinking was moved."""
    models = {"openai": "gpt-6-astra", "anthropic": "claude-opus-5-5", "gemini": "gemini-3.8-flash"}
    tried: list[int] = []

    def get_weather(city: str) -> str:
        return f"sunny in {city}"

    with Client(WIRES[wire](models[wire.partition("-")[0]], api_key="k"), transport=SimTransport(Simulator())) as client:
        request = Request(messages=[Message.user("What is the weather in Oslo? Use wrong arguments.")])
        found = run_tools(
            client, request, {"get_weather": get_weather}, history=history, on_step=lambda step: tried.append(step.number)
        )
    arrange(found.messages, wire, merge=False)
    assert len(tried) >= 2


# ---------------------------------------------------------------- what it costs


def test_the_answers_that_call_again_are_counted_apart() -> None:
    """Two failed tries: the second try and the good one would not have been needed; the final answer would."""
    script = [answer("", call("tide", place=1), tokens=10), answer("", call("tide", place=2), tokens=20),
              answer("", call("tide", place="Kiel"), tokens=40), answer("done", tokens=80)]  # fmt: skip
    found = run(*script)
    assert found.healing == Usage(input_tokens=60, output_tokens=2)
    assert found.usage == Usage(input_tokens=150, output_tokens=4)


def test_giving_up_after_a_fault_is_no_healing() -> None:
    assert run(UNFIT, "I cannot.").healing == Usage()


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_the_ledger_is_told(colour: type[Fake]) -> None:
    book = Ledger(Prices({}))
    provider: Any = Metered(colour(UNFIT, GOOD, "done"), book)
    loop: Any = ToolLoop(provider, {"tide": tide}, on_heal=book.heal)
    whole(loop)
    total = book.total()
    assert (total.answers, total.input_tokens, total.healing.input_tokens) == (3, 30, 10)


def test_healing_ends_with_the_run_that_pays_for_it() -> None:
    with pytest.raises(MaxSteps) as caught:
        run(UNFIT, UNFIT, UNFIT)
    assert caught.value.run.healing == Usage(input_tokens=20, output_tokens=2)


def test_what_the_model_is_told_for_each_of_the_three_classes() -> None:
    unreadable, unfit, invented = (results(run(bad, "done").messages)[0].text for bad in (UNREADABLE, UNFIT, INVENTED))
    assert unreadable.startswith("tide was not run: the arguments are not valid JSON")
    assert "hours: Input should be less than or equal to 48 (sent: 99). Schema: " in unfit
    assert json.dumps("tides").strip('"') in invented
    assert "The tools are: tide." in invented
