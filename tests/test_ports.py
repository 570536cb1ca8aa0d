"""The ports: a tool executor with definitions and batches, and an approver with risks and feedback."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from lessonlib.ports import Approval, Approver, LocalTools, Risk, ToolExecutor, on_terminal
from lessonlib.tool_loop import Decision, run_tools
from lessonlib.types import ToolCall
from tests.fakes import ASK, Fake, answer, broken_call, call


def tide(place: str) -> str:
    """Tide at a place."""
    if place == "Z":
        raise OSError("no water")
    return f"{place}: 1.2 m"


async def slow_tide(place: str) -> str:
    await asyncio.sleep(0)
    return tide(place)


def test_definitions_are_what_the_model_is_offered() -> None:
    executor: ToolExecutor = LocalTools({"tide": tide})
    (offered,) = executor.definitions
    assert (offered.name, offered.description) == ("tide", "Tide at a place.")
    assert offered.parameters["required"] == ["place"]


def test_one_result_for_each_call_in_order_whatever_happens_to_it() -> None:
    calls = [
        call("tide", "a", place="Kiel"), call("tides", "b"), broken_call("tide", "{", "c"), call("tide", "d", place=1),
        call("tide", "e", place="Z"), broken_call("tide", "{'place': 'Sylt'}", "f"),
    ]  # fmt: skip
    results = LocalTools({"tide": tide}).execute_batch(calls)
    assert [result.call_id for result in results] == list("abcdef")
    assert [result.is_error for result in results] == [False, True, True, True, True, False]
    assert results[0].text == "Kiel: 1.2 m"
    assert results[-1].text.endswith("Sylt: 1.2 m")


def test_the_calls_of_a_batch_run_together() -> None:
    meeting = threading.Barrier(3, timeout=5)

    def meet() -> str:
        meeting.wait()
        return "met"

    assert [result.text for result in LocalTools([meet]).execute_batch([call("meet", each) for each in "abc"])] == [
        "met"
    ] * 3


def test_the_async_colour_runs_coroutine_functions() -> None:
    executor = LocalTools({"tide": slow_tide})
    results = asyncio.run(executor.aexecute_batch([call("tide", place="Kiel")]))
    assert results[0].text == "Kiel: 1.2 m"
    with pytest.raises(TypeError, match="async tools"):
        executor.execute_batch([call("tide", place="Kiel")])


def test_what_cannot_be_a_tool_is_refused_when_the_executor_is_made() -> None:
    with pytest.raises(TypeError):
        LocalTools([lambda *rest: None])  # type: ignore[list-item]


# ---------------------------------------------------------------- approval


def asked(*answers: bool | Decision) -> tuple[list[tuple[str, Risk]], Any]:
    log: list[tuple[str, Risk]] = []
    left = list(answers)

    def ask(each: ToolCall, risk: Risk) -> bool | Decision:
        log.append((each.name, risk))
        return left.pop(0)

    return log, ask


def test_harmless_calls_pass_and_a_person_is_asked_about_the_others() -> None:
    log, ask = asked(True, False)
    approve: Approver = Approval({"tide": "low", "refund": "high", "hold": "medium"}, ask=ask)
    assert [approve(call(name)).approved for name in ("tide", "refund", "hold")] == [True, True, False]
    assert log == [("refund", "high"), ("hold", "medium")]


def test_a_tool_that_nobody_has_judged_is_not_harmless() -> None:
    log, ask = asked(False)
    assert not Approval(ask=ask)(call("anything")).approved
    assert log == [("anything", "high")]


def test_feedback_reaches_the_model() -> None:
    _, ask = asked(Decision(False, "Ask for the booking number first."))
    provider = Fake(answer("", call("tide", place="Kiel")), "done")
    run = run_tools(provider, ASK, {"tide": tide}, approve=Approval(ask=ask))
    (result,) = run.messages[2].tool_results
    assert "Ask for the booking number first." in result.text
    assert run.tools_run == 0


@pytest.mark.parametrize(
    ("typed", "decision"),
    [
        ("y", Decision(True)), (" YES ", Decision(True)), ("n", Decision(False)), ("", Decision(False)),
        ("use Sylt instead", Decision(False, "use Sylt instead")),
    ],
)  # fmt: skip
def test_on_the_terminal(typed: str, decision: Decision) -> None:
    shown: list[str] = []

    def read(prompt: str) -> str:
        shown.append(prompt)
        return typed

    assert on_terminal(call("tide", place="Kiel"), "medium", read) == decision
    assert 'tide({"place":"Kiel"})' in shown[0]
    assert "medium" in shown[0]


def test_in_the_async_colour_the_loop_goes_on_while_a_person_thinks() -> None:
    thinking, passed = threading.Event(), threading.Event()

    def ask(each: ToolCall, risk: Risk) -> bool:
        thinking.set()
        return passed.wait(5)

    async def main() -> bool:
        task = asyncio.create_task(Approval(ask=ask).aask(call("tide")))
        await asyncio.to_thread(thinking.wait, 5)
        passed.set()  # only possible because the loop is free
        return (await task).approved

    assert asyncio.run(main())
