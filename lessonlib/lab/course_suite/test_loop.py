"""The tool loop and the arguments of calls (lessons 08 and 09)."""

from __future__ import annotations

import contextlib
import sys
import threading

import pytest

from lessonlib.errors import LessonError, MaxSteps
from lessonlib.lab.course_suite import behaviour, captures
from lessonlib.lab.course_suite.captures import JSON
from lessonlib.lab.course_suite.fakes import ASK, Reply, Server, answer
from lessonlib.repair import Unrepairable, repair_json
from lessonlib.tool_loop import ToolRun, run_tools
from lessonlib.types import ToolResult


def calling(*calls: tuple[str, JSON], stop: str = "tool_use") -> Reply:
    """An answer that makes these calls."""
    blocks = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    return answer(captures.anthropic_whole(*blocks, stop=stop))


SUNNY = answer(captures.anthropic_whole({"type": "text", "text": "Sunny."}, stop="end_turn"))


def results(run: ToolRun) -> list[ToolResult]:
    """All results of a run."""
    return [result for message in run.messages for result in message.tool_results]


@behaviour("an_unknown_tool_is_answered")
def test_an_unknown_tool_gets_a_result_that_names_the_tools() -> None:
    server = Server(calling(("get_wether", {"city": "Oslo"}), ("get_weather", {"city": "Oslo"})), SUNNY)

    def get_weather(city: str) -> str:
        return "rain"

    with server.client() as client:
        unknown, known = results(run_tools(client, ASK, [get_weather]))
    assert (unknown.call_id, unknown.is_error) == ("toolu_1", True)
    assert "get_weather" in unknown.text
    assert known.text == "rain"


@behaviour("each_call_its_own_result")
def test_the_call_that_ends_first_does_not_take_the_others_result() -> None:
    ended = threading.Event()

    def slow() -> str:
        assert ended.wait(5)
        return "slow"

    def quick() -> str:
        ended.set()
        return "quick"

    server = Server(calling(("slow", {}), ("quick", {})), SUNNY)
    with server.client() as client:
        run = run_tools(client, ASK.replace(tools=[]), {"slow": slow, "quick": quick})
    assert [(result.name, result.text) for result in results(run)] == [("slow", "slow"), ("quick", "quick")]


@behaviour("a_length_stop_runs_nothing")
def test_nothing_of_a_shortened_answer_is_run() -> None:
    ran: list[str] = []

    def hold_seat(train: str) -> str:
        ran.append(train)
        return "held"

    server = Server(calling(("hold_seat", {"train": "G1"}), ("hold_seat", {"train": "G"}), stop="max_tokens"), SUNNY)
    with server.client() as client:
        run_tools(client, ASK, [hold_seat])
    assert ran == []


@behaviour("the_loop_ends")
def test_a_model_that_never_stops_is_stopped() -> None:
    def get_weather(city: str) -> str:
        return "rain"

    server = Server(*[calling(("get_weather", {"city": "Oslo"}))] * 9)
    with server.client() as client, pytest.raises(MaxSteps):
        run_tools(client, ASK, [get_weather], max_steps=3)
    assert len(server.asked) == 3


# ---------------------------------------------------------------- arguments


@behaviour("repair_invents_nothing")
@pytest.mark.parametrize("text", ['{"amount": 1', '{"amount": 1, "booking": "L-2', '["a", "b"'])
def test_a_text_that_was_cut_is_refused(text: str) -> None:
    with pytest.raises(Unrepairable):
        repair_json(text)


@behaviour("arguments_are_typed")
def test_a_text_is_no_number() -> None:
    ran: list[int] = []

    def forecast(days: int) -> str:
        ran.append(days)
        return "rain"

    server = Server(calling(("forecast", {"days": "10"})), SUNNY)
    with server.client() as client:
        (told,) = results(run_tools(client, ASK, [forecast]))
    assert ran == []
    assert told.is_error
    assert "days" in told.text


@behaviour("only_offered_tools_run")
def test_a_function_of_the_program_is_not_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[bool] = []
    monkeypatch.setattr(sys.modules["__main__"], "delete_all_bookings", lambda: ran.append(True), raising=False)

    def get_weather(city: str) -> str:
        return "rain"

    server = Server(calling(("delete_all_bookings", {})), SUNNY)
    with server.client() as client, contextlib.suppress(LessonError):
        run_tools(client, ASK, [get_weather])
    assert ran == []
