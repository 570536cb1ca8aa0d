"""The tool loop: every call gets a result, every end leaves a history that can be sent again."""

from __future__ import annotations

import ast
import asyncio
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from lessonlib import tool_loop
from lessonlib.errors import APIError, CircuitOpen, InvalidRequest, LessonError, MaxSteps, ProtocolError
from lessonlib.fallback import Fallback
from lessonlib.flow import acollect, collect
from lessonlib.history import NOT_RUN, arrange
from lessonlib.retry import Retry
from lessonlib.tool_loop import (
    INTERRUPTED,
    UNFINISHED,
    Decision,
    Step,
    ToolLoop,
    ToolRun,
    arun_tools,
    astream_tools,
    run_tools,
    stream_tools,
)
from lessonlib.tools import tool
from lessonlib.types import (
    Done,
    Event,
    Image,
    Message,
    Opaque,
    PartDone,
    Reasoning,
    Request,
    Response,
    StopReason,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from lessonlib.wire import WIRES
from tests.fakes import ASK, AFake, Clock, Fake, answer, bad_request, broken_call, call, cut, overloaded, said, shown

# ---------------------------------------------------------------- tools, and four ways to run them


def tide(place: str) -> str:
    """Height of the tide at a place.

    Args:
        place: Name of the harbour.
    """
    return {"A": "1.2", "B": "0.9"}[place]


def must_not_run(place: str) -> str:
    raise AssertionError("this tool must not run")


async def atide(place: str) -> str:
    """Height of the tide at a place.

    Args:
        place: Name of the harbour.
    """
    await asyncio.sleep(0)
    return tide(place)


def run_whole(provider: Any, request: Request = ASK, tools: Any = (), max_steps: int = 8, **options: Any) -> ToolRun:
    return run_tools(provider, request, tools, max_steps, **options)


def run_awaited(provider: Any, request: Request = ASK, tools: Any = (), max_steps: int = 8, **options: Any) -> ToolRun:
    return asyncio.run(arun_tools(provider, request, tools, max_steps, **options))


def run_streamed(provider: Any, request: Request = ASK, tools: Any = (), max_steps: int = 8, **options: Any) -> ToolRun:
    with stream_tools(provider, request, tools, max_steps, **options) as events:
        response = collect(events)
    assert response == events.run.response
    return events.run


def run_streamed_async(
    provider: Any, request: Request = ASK, tools: Any = (), max_steps: int = 8, **options: Any
) -> ToolRun:
    async def main() -> ToolRun:
        async with astream_tools(provider, request, tools, max_steps, **options) as events:
            response = await acollect(events)
        assert response == events.run.response
        return events.run

    return asyncio.run(main())


Way = tuple[type[Fake], Callable[..., ToolRun]]
WAYS: list[Way] = [(Fake, run_whole), (AFake, run_awaited), (Fake, run_streamed), (AFake, run_streamed_async)]
each_way = pytest.mark.parametrize("way", WAYS, ids=["run", "arun", "stream", "astream"])


def results(run: ToolRun) -> list[ToolResult]:
    return [result for message in run.messages for result in message.tool_results]


def can_be_sent(run: ToolRun) -> bool:
    """Whether every call in the history has its result in the right place, by the rules that the encoders enforce."""
    arrange(run.messages, "any", merge=True)
    return True


# ---------------------------------------------------------------- the loop of the lesson


@each_way
def test_ask_run_send_answer(way: Way) -> None:
    colour, run_it = way
    provider = colour(answer("Let me look.", call("tide", place="A")), answer("1.2 m"))
    run = run_it(provider, ASK, {"tide": tide})
    assert run.response.text == "1.2 m"
    assert (run.steps, run.tools_run) == (2, 1)
    assert run.usage == Usage(input_tokens=20, output_tokens=2)
    assert [message.role for message in run.messages] == ["user", "assistant", "user", "assistant"]
    assert results(run) == [ToolResult(call_id="c1", name="tide", content="1.2")]
    assert provider.requests[1].messages == run.messages[:3]
    assert can_be_sent(run)


@each_way
def test_the_assistant_message_goes_into_the_history_as_it_came(way: Way) -> None:
    colour, run_it = way
    thought = Reasoning(text="hm", wire="x", raw={"signature": "abc"})
    first = answer("", call("tide", place="A"))
    first = first.model_copy(update={"message": Message(role="assistant", parts=[thought, *first.message.parts])})
    run = run_it(colour(first, "ok"), ASK, {"tide": tide})
    assert run.messages[1] is first.message


@each_way
def test_an_unknown_tool_is_answered_with_the_real_names_and_its_siblings_run(way: Way) -> None:
    colour, run_it = way
    turn = answer("", call("tides", "t1"), call("tide", "t2", place="A"))
    run = run_it(colour(turn, "1.2 m"), ASK, {"tide": tide, "clock": lambda: "noon"})
    first, second = results(run)
    assert (first.call_id, first.is_error) == ("t1", True)
    assert "'tides'" in first.text
    assert "tide, clock" in first.text
    assert (second.call_id, second.is_error, second.text) == ("t2", False, "1.2")
    assert (run.steps, run.response.text) == (2, "1.2 m")


def test_a_function_of_the_program_that_was_not_offered_is_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names come from the model, so from anybody whose text it reads: the program's own names are no tools."""
    ran: list[str] = []
    for module in ("__main__", __name__, "builtins"):
        monkeypatch.setattr(sys.modules[module], "delete_all", lambda: ran.append("deleted"), raising=False)
    run = run_tools(Fake(answer("", call("delete_all")), "Sorry."), ASK, {"tide": tide})
    (result,) = results(run)
    assert (ran, result.is_error) == ([], True)


@each_way
def test_a_tools_exception_goes_to_the_model(way: Way) -> None:
    colour, run_it = way

    def fails() -> None:
        raise ConnectionError("the weather service is down")

    run = run_it(colour(answer("", call("fails")), "Sorry."), ASK, {"fails": fails})
    (result,) = results(run)
    assert (result.is_error, result.text) == (True, "ConnectionError: the weather service is down")
    assert run.response.text == "Sorry."


@each_way
def test_an_exception_without_a_text_still_says_its_name(way: Way) -> None:
    colour, run_it = way

    def w() -> None:
        raise TimeoutError

    run = run_it(colour(answer("", call("w", "t7")), "ok"), ASK, {"w": w})
    assert [(result.call_id, result.is_error, result.text) for result in results(run)] == [("t7", True, "TimeoutError")]


@each_way
def test_a_pause_is_sent_again_as_it_is(way: Way) -> None:
    colour, run_it = way
    provider = colour(answer("searching", stop=StopReason.PAUSE), answer("found"))
    run = run_it(provider)
    assert [message.text for message in provider.requests[1].messages] == ["Hello", "searching"]
    assert [message.text for message in run.messages] == ["Hello", "searching", "found"]
    assert run.usage.input_tokens == 20


@each_way
def test_the_step_limit_is_an_error_with_the_run(way: Way) -> None:
    """A model that repeats the same call for ever: four requests, no fifth, and nothing that was paid for is lost."""
    colour, run_it = way
    provider = colour(answer("", call("list_dir", path=".")), for_ever=True)
    with pytest.raises(MaxSteps) as caught:
        run_it(provider, ASK, {"list_dir": lambda path: "empty"}, max_steps=4)
    run = caught.value.run
    assert provider.calls == 4
    assert run.messages[-1].role == "user", "the last answer has its results"
    assert run.usage.input_tokens == 40
    assert caught.value.partial is run.answer
    assert can_be_sent(run)


@each_way
def test_a_run_goes_on_from_where_the_limit_stopped_it(way: Way) -> None:
    colour, run_it = way
    with pytest.raises(MaxSteps) as caught:
        run_it(colour(answer("", call("tide", place="A"))), ASK, {"tide": tide}, max_steps=1)
    run = run_it(colour("1.2 m"), ASK.replace(messages=caught.value.run.messages), {"tide": tide})
    assert run.response.text == "1.2 m"


@each_way
@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.REFUSAL, StopReason.OTHER])
def test_other_ends_run_nothing_and_leave_a_history_that_can_be_sent(way: Way, stop: StopReason) -> None:
    """No call of an answer that was cut or declined is run, whole or not."""
    colour, run_it = way
    dead = ToolCall(call_id="c2", name="tide", args_error="the answer was cut", raw_args='{"pl')
    run = run_it(colour(answer("I will", call("tide", place="A"), dead, stop=stop)), ASK, {"tide": must_not_run})
    assert (run.response.stop, run.steps, run.tools_run) == (stop, 1, 0)
    assert [(result.call_id, result.text) for result in results(run)] == [("c1", UNFINISHED)]
    assert can_be_sent(run)


@each_way
def test_the_calls_of_an_answer_that_says_only_that_it_is_complete_are_run(way: Way) -> None:
    """`end_turn` beside a whole call: Claude on Bedrock, gateways (strands #1827)."""
    colour, run_it = way
    provider = colour(answer("I look.", call("tide", place="A"), stop=StopReason.END), "1.2 m")
    run = run_it(provider, ASK, {"tide": lambda place: "1.2"})
    assert (run.response.text, run.tools_run, [result.text for result in results(run)]) == ("1.2 m", 1, ["1.2"])


@each_way
def test_text_that_looks_like_a_call_is_text(way: Way) -> None:
    colour, run_it = way
    shown_only = 'It looks like this:\n```json\n{"name": "delete_all", "arguments": {}}\n```'
    run = run_it(colour(shown_only), ASK, {"delete_all": must_not_run})
    assert (run.response.text, run.tools_run) == (shown_only, 0)


@each_way
def test_an_answer_that_stopped_for_calls_but_has_none_is_the_last(way: Way) -> None:
    colour, run_it = way
    assert run_it(colour(answer("odd", stop=StopReason.TOOL_USE))).steps == 1


# ---------------------------------------------------------------- arguments


@each_way
def test_arguments_that_are_no_json_are_answered_with_the_parsers_words(way: Way) -> None:
    colour, run_it = way
    turn = answer("", broken_call("tide", '{"place": Kiel}', problem="the arguments are not valid JSON: at column 11"))
    (result,) = results(run_it(colour(turn, "ok"), ASK, {"tide": must_not_run}))
    assert result.is_error
    assert "at column 11" in result.text


@each_way
def test_arguments_that_do_not_fit_are_answered_with_field_limit_and_schema(way: Way) -> None:
    colour, run_it = way

    def forecast(city: str, days: Annotated[int, Field(ge=1, le=7)] = 1) -> str:
        pytest.fail("must not run")

    turn = answer("", call("forecast", city="Oslo", days=30, units="metric"))
    (result,) = results(run_it(colour(turn, "ok"), ASK, {"forecast": forecast}))
    assert result.is_error
    assert "units: there is no such field; the fields are: city, days" in result.text
    assert "days: Input should be less than or equal to 7 (sent: 30). Schema: " in result.text
    assert '"maximum": 7' in result.text


@each_way
def test_a_validator_that_raises_anything_is_answered_too(way: Way) -> None:
    colour, run_it = way

    class Odd(BaseModel):
        x: int

        def model_post_init(self, context: Any) -> None:
            raise KeyError("inside")

    (result,) = results(run_it(colour(answer("", call("Odd", x=1)), "ok"), ASK, [tool(Odd)]))
    assert (result.is_error, result.text) == (True, "KeyError: 'inside'")


@each_way
def test_arguments_arrive_as_the_types_that_the_function_wants(way: Way) -> None:
    colour, run_it = way
    got: list[Any] = []

    def keep(when: Annotated[int, "hours"], point: Point, /, *, note: str = "none") -> None:
        got.append((when, point, note))

    run = run_it(colour(answer("", call("keep", when=3.0, point={"x": 1, "y": 2})), "ok"), ASK, {"keep": keep})
    assert got == [(3, Point(x=1, y=2), "none")]
    assert results(run)[0].content == ""


class Point(BaseModel):
    x: int
    y: int


# ---------------------------------------------------------------- tools= and request.tools


@each_way
def test_tools_fill_an_empty_request(way: Way) -> None:
    colour, run_it = way
    provider = colour("ok")
    run_it(provider, ASK, {"high_water": tide})
    (made,) = provider.requests[0].tools
    assert (made.name, made.description) == ("high_water", "Height of the tide at a place.")
    assert made.parameters["properties"] == {"place": {"type": "string", "description": "Name of the harbour."}}


def test_tools_that_the_request_has_are_left_alone() -> None:
    provider, own = Fake("ok"), Tool(name="tide", description="mine")
    run_tools(provider, ASK.replace(tools=[own]), {"tide": tide})
    assert provider.requests[0].tools == [own]


def test_tools_may_be_a_list_of_functions_tools_and_models() -> None:
    @tool(name="noon", timeout=3)
    def clock() -> str:
        return "12:00"

    provider = Fake(answer("", call("Point", "1", x=1, y=2), call("noon", "2")), "ok")
    run = run_tools(provider, ASK, [tide, clock, Point])
    assert [each.name for each in provider.requests[0].tools] == ["tide", "noon", "Point"]
    assert [result.text for result in results(run)] == ['{"x":1,"y":2}', "12:00"]


def test_a_tool_goes_by_the_name_that_it_is_given_here() -> None:
    provider = Fake(answer("", call("height", place="A")), "ok")
    run = run_tools(provider, ASK, {"height": tool(tide)})
    assert [each.name for each in provider.requests[0].tools] == ["height"]
    assert results(run)[0].text == "1.2"


def test_what_is_no_tool_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(TypeError, match="no function"):
        run_tools(Fake(), ASK, {"x": Tool(name="x")})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="two tools"):
        run_tools(Fake(), ASK, [tide, tide])
    with pytest.raises(ValueError, match="max_steps"):
        run_tools(Fake(), ASK, max_steps=0)


def test_colours_do_not_mix() -> None:
    with pytest.raises(TypeError, match="atide: async tools need arun_tools"):
        run_tools(Fake(), ASK, {"atide": atide})
    with pytest.raises(TypeError, match="use arun_tools"):
        run_tools(AFake(), ASK)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="use run_tools"):
        asyncio.run(arun_tools(Fake(), ASK))  # type: ignore[arg-type]


def test_async_tools_and_plain_ones_work_side_by_side() -> None:
    turn = answer("", call("atide", "1", place="A"), call("tide", "2", place="B"))
    run = run_awaited(AFake(turn, "ok"), ASK, {"atide": atide, "tide": tide})
    assert [result.text for result in results(run)] == ["1.2", "0.9"]


def test_a_forced_choice_holds_until_tools_have_run() -> None:
    """Forced for ever, the model could never answer."""
    provider = Fake(answer("", call("tide", place="A")), "ok")
    run_tools(provider, ASK.replace(tools=[tool(tide)], tool_choice="required"), {"tide": tide})
    assert [request.tool_choice for request in provider.requests] == ["required", None]
    provider = Fake(answer("", call("tide", place="A")), "ok")
    run_tools(provider, ASK.replace(tools=[tool(tide)], tool_choice="auto"), {"tide": tide})
    assert [request.tool_choice for request in provider.requests] == ["auto", "auto"]


# ---------------------------------------------------------------- results


PNG = Image(data="AAAA", media_type="image/png")


@pytest.mark.parametrize(
    ("value", "content", "is_error"),
    [
        ("text", "text", False),
        (None, "", False),
        (12, "12", False),
        ({"a": ["ü", 1.5, None]}, '{"a":["ü",1.5,null]}', False),
        (Point(x=1, y=2), '{"x":1,"y":2}', False),
        ([Point(x=1, y=2)], '[{"x":1,"y":2}]', False),
        (PNG, [PNG], False),
        ([Text(text="see"), PNG], [Text(text="see"), PNG], False),
        ([], "[]", False),
        ({"half": "\ud83d"}, '{"half": "\\ud83d"}', False),
        (b"raw", "the tool returned bytes, which mean nothing to a model; return text, or Image.from_bytes(...)", True),
        (object, "the tool returned a type, which has no JSON form; return text", True),
    ],
)
def test_what_becomes_of_a_result(value: Any, content: Any, is_error: bool) -> None:
    run = run_tools(Fake(answer("", call("f")), "ok"), ASK, {"f": lambda: value})
    (result,) = results(run)
    assert (result.content, result.is_error) == (content, is_error)


def test_a_large_result_is_cut_and_says_so() -> None:
    run = run_tools(Fake(answer("", call("f")), "ok"), ASK, {"f": lambda: "x" * 500}, max_result=100)
    (result,) = results(run)
    assert result.text == "x" * 100 + "\n[cut: the first 100 of 500 characters are shown]"
    whole = run_tools(Fake(answer("", call("f")), "ok"), ASK, {"f": lambda: "x" * 500}, max_result=None)
    assert len(results(whole)[0].text) == 500


def test_an_exceptions_text_keeps_keys_and_paths_to_itself() -> None:
    def f() -> None:
        raise OSError("no /home/someone/project/data.csv, token=abcdef123, Bearer abcdef123456")

    (result,) = results(run_tools(Fake(answer("", call("f")), "ok"), ASK, {"f": f}))
    assert result.text == "OSError: no …/data.csv, token=***, Bearer ***"


# ---------------------------------------------------------------- together, in time


@each_way
def test_calls_of_one_answer_run_at_the_same_time_and_results_keep_their_order(way: Way) -> None:
    colour, run_it = way
    meet = threading.Barrier(3, timeout=10)

    def wait_for_the_others(name: str) -> str:
        meet.wait()
        return name

    turn = answer("", *(call("w", str(number), name=f"n{number}") for number in range(3)))
    run = run_it(colour(turn, "ok"), ASK, {"w": wait_for_the_others})
    assert [(result.call_id, result.text) for result in results(run)] == [("0", "n0"), ("1", "n1"), ("2", "n2")]


@each_way
def test_in_turn_they_run_in_the_callers_thread(way: Way) -> None:
    colour, run_it = way
    turn = answer("", call("w", "1"), call("w", "2"))
    run = run_it(colour(turn, "ok"), ASK, {"w": lambda: threading.get_ident()}, parallel=False)
    assert [result.text for result in results(run)] == [str(threading.get_ident())] * 2


@each_way
def test_a_late_tool_is_answered_with_a_timeout_error(way: Way) -> None:
    colour, run_it = way
    let_go = threading.Event()

    @tool(timeout=0.01)
    def late() -> str:
        let_go.wait(10)
        return "too late"

    turn = answer("", call("late", "1"), call("tide", "2", place="A"))
    try:
        run = run_it(colour(turn, "ok"), ASK, {"late": late, "tide": tide}, timeout=30)
    finally:
        let_go.set()
    first, second = results(run)
    assert first.is_error
    assert first.text.startswith("TimeoutError: no result within 0.01 s")
    assert second.text == "1.2"


# ---------------------------------------------------------------- people


@each_way
def test_approval_is_asked_in_order_before_anything_runs(way: Way) -> None:
    colour, run_it = way
    diary: list[str] = []

    def approve(asked: ToolCall) -> bool:
        diary.append(f"ask {asked.call_id}")
        return True

    def act(n: int) -> str:
        diary.append("run")
        return "done"

    turn = answer("", call("act", "1", n=1), call("unknown", "x"), call("act", "2", n=2))
    run_it(colour(turn, "ok"), ASK, {"act": act}, approve=approve)
    assert diary == ["ask 1", "ask 2", "run", "run"], "what cannot run is not asked about"


@each_way
def test_a_refused_call_is_answered_with_the_feedback(way: Way) -> None:
    colour, run_it = way
    said_no = iter([Decision(False, feedback="Ask me tomorrow."), False, Decision(True)])
    turn = answer("", *(call("tide", str(number), place="A") for number in range(3)))
    run = run_it(colour(turn, "ok"), ASK, {"tide": tide}, approve=lambda asked: next(said_no))
    first, second, third = results(run)
    assert (first.is_error, first.text) == (True, "tide was not run: the user did not allow it. Ask me tomorrow.")
    assert (second.is_error, second.text) == (True, "tide was not run: the user did not allow it.")
    assert (third.is_error, third.text) == (False, "1.2")
    assert run.tools_run == 1


@each_way
def test_edited_arguments_are_checked_and_the_model_is_told(way: Way) -> None:
    colour, run_it = way
    edits = iter([Decision(True, args={"place": place}) for place in ("B", 5, "A")])
    turn = answer("", *(call("tide", str(number), place="A") for number in range(3)))
    run = run_it(colour(turn, "ok"), ASK, {"tide": tide}, approve=lambda asked: next(edits))
    first, second, third = results(run)
    assert first.text == '[The user changed the arguments before the run: {"place": "B"}]\n0.9'
    assert second.is_error
    assert "place: Input should be a valid string" in second.text
    assert third.text == "1.2", "the same arguments are no edit"
    assert run.messages[1].tool_calls[0].args == {"place": "A"}, "the history keeps what the model wrote"


def test_edited_arguments_before_a_picture() -> None:
    run = run_tools(Fake(answer("", call("f", n=1)), "ok"), ASK, {"f": lambda n: PNG},
                    approve=lambda asked: Decision(True, args={"n": 2}))  # fmt: skip
    content = results(run)[0].content
    assert isinstance(content, list)
    assert [type(part) for part in content] == [Text, Image]


def test_approval_may_be_async() -> None:
    async def approve(asked: ToolCall) -> bool:
        await asyncio.sleep(0)
        return False

    run = run_awaited(AFake(answer("", call("tide", place="A")), "ok"), ASK, {"tide": must_not_run}, approve=approve)
    assert results(run)[0].is_error


@pytest.mark.parametrize("nonsense", [None, "yes", 1])
def test_an_approval_that_is_none_runs_nothing(nonsense: Any) -> None:
    """A hook that forgot its `return` must not count as a yes."""
    run = ToolRun()
    with pytest.raises(TypeError, match="approve must return"):
        run_tools(
            Fake(answer("", call("tide", place="A"))), ASK, {"tide": must_not_run}, approve=lambda _: nonsense, run=run
        )
    assert [result.text for result in results(run)] == [NOT_RUN]


@each_way
def test_each_step_is_visible_to_a_hook(way: Way) -> None:
    colour, run_it = way
    steps: list[Step] = []
    turn = answer("", call("tide", "1", place="A"), call("tide", "2", place="Z"))
    run = run_it(colour(turn, "ok"), ASK, {"tide": tide}, on_step=steps.append)
    assert [(step.number, step.response.text, len(step.results)) for step in steps] == [(1, "", 2), (2, "ok", 0)]
    assert [type(error) for error in steps[0].errors] == [type(None), KeyError], "as it was raised, for whoever debugs"
    assert steps[1].run is run


def test_the_hook_may_be_async_and_what_it_raises_ends_the_run() -> None:
    async def hook(step: Step) -> None:
        raise ZeroDivisionError

    run = ToolRun()
    with pytest.raises(ZeroDivisionError):
        run_awaited(AFake(answer("", call("tide", place="A")), "never"), ASK, {"tide": tide}, on_step=hook, run=run)
    assert can_be_sent(run)
    assert results(run)[0].text == "1.2"


# ---------------------------------------------------------------- limits of the loop


@each_way
def test_faulty_calls_in_a_row_may_end_the_run_early(way: Way) -> None:
    colour, run_it = way
    good, bad = answer("", call("tide", place="A")), answer("", call("tides", place="A"))
    provider = colour(bad, good, bad, bad, bad, for_ever=True)
    with pytest.raises(MaxSteps, match="3 steps in a row had only faulty calls") as caught:
        run_it(provider, ASK, {"tide": tide}, max_steps=20, max_faults=3)
    assert provider.calls == 5
    assert can_be_sent(caught.value.run)


@each_way
def test_repeated_calls_with_the_same_results_may_end_the_run_early(way: Way) -> None:
    colour, run_it = way
    same, other = answer("", call("tide", place="A")), answer("", call("tide", place="B"))
    provider = colour(same, other, same, same, same, for_ever=True)
    with pytest.raises(MaxSteps, match="3 steps in a row had the same calls"):
        run_it(provider, ASK, {"tide": tide}, max_steps=20, max_repeats=3)
    assert provider.calls == 5


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize("asynchronous", [False, True])
def test_events_of_all_steps_results_included_and_one_done(asynchronous: bool) -> None:
    colour = AFake if asynchronous else Fake
    provider = colour(answer("Let me look.", call("tide", place="A")), said("1.2", " m"))

    async def events_of(stream: Any) -> list[Event]:
        return [event async for event in stream]

    if asynchronous:
        events = asyncio.run(events_of(astream_tools(provider, ASK, {"tide": tide})))
    else:
        events = list(stream_tools(provider, ASK, {"tide": tide}))
    assert [type(event) for event in events] == [TextDelta, PartDone, PartDone, PartDone, TextDelta, TextDelta, Done]
    assert shown(events) == "Let me look.1.2 m"
    assert events[3] == PartDone(0, ToolResult(call_id="c1", name="tide", content="1.2"))


def test_the_run_is_filled_while_the_events_come() -> None:
    events = stream_tools(Fake(answer("", call("tide", place="A")), said("1.2 m")), ASK, {"tide": tide})
    assert events.run.steps == 0
    with pytest.raises(LookupError):
        _ = events.run.response
    for event in events:
        if isinstance(event, PartDone) and isinstance(event.part, ToolResult):
            assert events.run.messages[-1].tool_results
            break
    events.close()
    assert (events.run.steps, events.run.tools_run) == (1, 1)
    assert can_be_sent(events.run)


# ---------------------------------------------------------------- answers in several hops


def hop(text: str, token: str | None, **fields: Any) -> Response:
    """An answer that goes on if it has a token; the id beside the token changes with each hop."""
    parts: list[Any] = [Text(text=text)]
    if token:
        raw = {"continuation_token": token, "interaction_id": text}
        parts.append(Opaque(kind="continuation", wire="x", raw=raw))
    stop = StopReason.PAUSE if token else StopReason.END
    usage = Usage(input_tokens=10, output_tokens=1)
    return Response(message=Message(role="assistant", parts=parts), stop=stop, usage=usage, **fields)


@each_way
def test_hops_are_joined_and_their_usage_is_added(way: Way) -> None:
    colour, run_it = way
    provider = colour(hop("one ", "t1"), hop("two ", "t2"), hop("three", None))
    run = run_it(provider)
    assert run.response.text == "one two three"
    assert run.response.usage == run.usage == Usage(input_tokens=30, output_tokens=3)
    assert [message.role for message in run.messages] == ["user", "assistant"]
    assert [part.type for part in run.messages[1].parts] == ["text", "text", "text"]
    second, third = provider.requests[1:]
    assert [part.type for part in second.messages[1].parts] == ["text", "opaque"], "the token is last, for the encoder"
    assert [part.type for part in third.messages[1].parts] == ["text", "text", "opaque"]


@each_way
def test_calls_of_all_hops_are_run_when_the_answer_is_whole(way: Way) -> None:
    colour, run_it = way
    first = hop("", "t1")
    made = first.message.model_copy(update={"parts": [call("tide", "1", place="A"), *first.message.parts]})
    first = first.model_copy(update={"message": made})
    run = run_it(colour(first, answer("", call("tide", "2", place="B")), "ok"), ASK, {"tide": tide})
    assert [result.text for result in results(run)] == ["1.2", "0.9"]
    assert can_be_sent(run)


@each_way
def test_a_token_that_repeats_ends_it(way: Way) -> None:
    colour, run_it = way
    provider = colour(hop("one", "t1"), hop("two", "t2"), hop("three", "t1"), for_ever=True)
    with pytest.raises(ProtocolError, match="twice") as caught:
        run_it(provider, max_steps=50)
    assert provider.calls == 3
    assert caught.value.run.usage.input_tokens == 30
    assert caught.value.partial is not None
    assert caught.value.partial.text == "onetwothree"


@each_way
def test_hops_count_as_steps(way: Way) -> None:
    colour, run_it = way
    provider = colour(*(hop(str(number), f"t{number}") for number in range(9)))
    with pytest.raises(MaxSteps):
        run_it(provider, max_steps=3)
    assert provider.calls == 3


# ---------------------------------------------------------------- errors


@each_way
def test_an_error_of_the_service_carries_the_run(way: Way) -> None:
    colour, run_it = way
    error = bad_request()
    with pytest.raises(APIError) as caught:
        run_it(colour(answer("", call("tide", place="A")), error), ASK, {"tide": tide})
    assert caught.value is error
    assert (error.run.steps, error.run.tools_run) == (2, 1)
    assert results(error.run)[0].text == "1.2"
    assert can_be_sent(error.run)


@each_way
def test_usage_of_failed_attempts_is_in_the_total(way: Way) -> None:
    """The attempt that Retry repeated, and the one that ended the run."""
    colour, run_it = way
    paid = cut(partial=answer("", tokens=800))
    last = bad_request()
    last.partial = answer("", tokens=5000)
    provider = colour(paid, answer("", call("tide", place="A"), tokens=7), last)
    with pytest.raises(APIError) as caught:
        run_it(Retry(provider, sleep=Clock().sleep), ASK, {"tide": tide})
    assert caught.value.run.usage == Usage(input_tokens=5807, output_tokens=3)


@each_way
def test_after_a_tool_has_run_the_loops_errors_are_not_retried(way: Way) -> None:
    """A Retry or a Fallback around the loop would run the tools again."""
    colour, _ = way
    for error in (overloaded(), CircuitOpen("open")):
        ran: list[str] = []
        provider = colour(answer("", call("act")), error, for_ever=True)
        loop = ToolLoop(provider, {"act": partial(ran.append, "once")})
        around = Fallback([Retry(loop, sleep=Clock().sleep), loop])
        with pytest.raises(LessonError):
            asyncio.run(around.generate(ASK)) if colour is AFake else around.generate(ASK)
        assert ran == ["once"]
    provider = colour(overloaded(), "ok")
    around_again = Retry(ToolLoop(provider), sleep=Clock().sleep)
    again = asyncio.run(around_again.generate(ASK)) if colour is AFake else around_again.generate(ASK)
    assert again.text == "ok", "before any tool has run it is as good as any provider"


@each_way
def test_the_users_own_history_is_not_touched(way: Way) -> None:
    colour, run_it = way
    mine = [Message.user("Hello")]
    request = Request(messages=mine)
    run = run_it(colour(answer("", call("tide", place="A")), "ok"), request, {"tide": tide})
    assert (len(mine), len(request.messages), len(run.messages)) == (1, 1, 4)


# ---------------------------------------------------------------- interrupted


def test_ctrl_c_while_tools_run_leaves_a_history_that_can_be_sent() -> None:
    """What was done is kept; of what was interrupted it is said that nobody knows."""
    let_go = threading.Event()
    run = ToolRun()

    def quick() -> str:
        return "done"

    def interrupts() -> None:
        raise KeyboardInterrupt

    turn = answer("", call("quick", "1"), call("slow", "2"), call("stop", "3"), call("unknown", "4"))
    tools = {"quick": quick, "slow": lambda: let_go.wait(10), "stop": interrupts}
    try:
        with pytest.raises(KeyboardInterrupt):
            run_tools(Fake(turn), ASK, {**tools, "slow": tool(tools["slow"], name="slow", timeout=0.05)}, run=run)
    finally:
        let_go.set()
    texts = [result.text for result in results(run)]
    assert texts[0] == "done"
    assert texts[1:3] == [INTERRUPTED, INTERRUPTED]
    assert "unknown" in texts[3]
    assert can_be_sent(run)


def test_ctrl_c_while_the_model_answers_leaves_the_history_as_it_was() -> None:
    run = ToolRun()
    with pytest.raises(KeyboardInterrupt):
        run_tools(Fake(answer("", call("tide", place="A")), KeyboardInterrupt()), ASK, {"tide": tide}, run=run)
    assert [message.role for message in run.messages] == ["user", "assistant", "user"]
    assert can_be_sent(run)


def test_ctrl_c_at_the_question_runs_nothing() -> None:
    run = ToolRun()

    def approve(asked: ToolCall) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tools(Fake(answer("", call("tide", place="A"))), ASK, {"tide": must_not_run}, approve=approve, run=run)
    assert [result.text for result in results(run)] == [NOT_RUN]


@pytest.mark.parametrize("streaming", [False, True])
def test_cancelling_at_every_turn_of_the_event_loop(streaming: bool) -> None:
    """Whenever the task is cancelled: tasks are ended, connections closed, and the history can be sent again."""
    open_tools: list[int] = [0]

    async def slow(n: int) -> str:
        open_tools[0] += 1
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            return str(n)
        finally:
            open_tools[0] -= 1

    async def main(turns: int) -> bool:
        provider = AFake(answer("a", call("slow", "1", n=1), call("slow", "2", n=2)), answer("b", call("slow", "3", n=3)),
                         said("x", "y"))  # fmt: skip
        run = ToolRun()

        async def work() -> None:
            if not streaming:
                await arun_tools(provider, ASK, {"slow": slow}, run=run)
                return
            async with astream_tools(provider, ASK, {"slow": slow}, run=run) as events:
                async for _ in events:
                    await asyncio.sleep(0)

        task = asyncio.ensure_future(work())
        for _ in range(turns):
            await asyncio.sleep(0)
        ended = task.done()
        task.cancel()
        await asyncio.wait([task])
        assert (provider.open, open_tools) == (0, [0])
        assert can_be_sent(run) or not run.messages
        assert [result.is_error for result in results(run) if result.text in ("1", "2", "3")] == [
            False for result in results(run) if result.text in ("1", "2", "3")
        ]
        return ended

    turns = 0
    while not asyncio.run(main(turns)):
        turns += 1
    assert turns > 10


@pytest.mark.parametrize("events_read", range(7))
def test_closing_a_stream_after_any_event(events_read: int) -> None:
    provider = Fake(answer("a", call("tide", "1", place="A"), call("tide", "2", place="B")), said("x"))
    with closing(stream_tools(provider, ASK, {"tide": tide})) as events:
        for _ in range(events_read):
            next(events)
    assert provider.open == 0
    assert can_be_sent(events.run)


# ---------------------------------------------------------------- any conversation


@st.composite
def turns(draw: st.DrawFn) -> list[Any]:
    """Answers of all kinds, some with calls: good, unknown, unreadable, ill-fitting, failing."""
    made: list[Any] = []
    for _ in range(draw(st.integers(0, 5))):
        kinds = draw(st.lists(st.sampled_from(["good", "unknown", "broken", "unfit", "failing"]), max_size=4))
        calls = [
            {
                "good": lambda i=i: call("tide", i, place="A"),
                "unknown": lambda i=i: call("tides", i),
                "broken": lambda i=i: broken_call("tide", "{", i),
                "unfit": lambda i=i: call("tide", i, place=1),
                "failing": lambda i=i: call("tide", i, place="Z"),
            }[kind]()
            for i, kind in zip("abcd", kinds, strict=False)
        ]
        stop = draw(st.sampled_from([None, None, None, StopReason.PAUSE if not calls else StopReason.LENGTH]))
        made.append(answer(draw(st.sampled_from(["", "text"])), *calls, stop=stop))
    return [*made, draw(st.sampled_from(["end", overloaded(), bad_request()]))]


@settings(max_examples=300, deadline=None)
@given(script=turns(), max_steps=st.integers(1, 6), asynchronous=st.booleans())
def test_whatever_the_model_does_the_history_can_be_sent(script: list[Any], max_steps: int, asynchronous: bool) -> None:
    provider, run = (AFake if asynchronous else Fake)(*script), ToolRun()
    caught: list[LessonError] = []
    try:
        (run_awaited if asynchronous else run_whole)(provider, ASK, {"tide": tide}, max_steps, run=run)
    except LessonError as error:
        caught.append(error)
    assert all(error.run is run and not isinstance(error, InvalidRequest) for error in caught)
    assert can_be_sent(run)
    assert run.steps == provider.calls <= max_steps
    answered = [message for message in run.messages if message.role == "assistant" and message.tool_calls]
    for message in answered:
        following = run.messages[run.messages.index(message) + 1 :][:1]
        ids = [result.call_id for each in following for result in each.tool_results]
        assert ids == [each.call_id for each in message.tool_calls if each.call_id in ids]
        assert {each.call_id for each in message.tool_calls if each.args is not None} <= set(ids)


# ---------------------------------------------------------------- the loop knows no vendor


def test_the_loop_and_what_it_uses_name_no_vendor() -> None:
    """Neither a wire format, nor a company, nor a product: in names, texts and imports."""
    folder = Path(tool_loop.__file__).parent
    words = {word for name in WIRES for word in name.split("-")} - {"chat", "content", "generate", "messages", "responses"}
    words |= {"claude", "gpt", "google"}
    for file in ("tool_loop", "flow", "retry", "fallback", "breaker", "limits", "results", "history", "estimate"):
        tree = ast.parse((folder / f"{file}.py").read_text(encoding="utf-8"))
        docstrings = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}
        for node in ast.walk(tree):
            for text in _texts(node) if id(node) not in docstrings else ():
                assert not [word for word in words if word in text.lower()], f"{file}: {text!r}"


def _has_docstring(node: ast.AST) -> bool:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, kinds) and ast.get_docstring(node) is not None


def _texts(node: ast.AST) -> list[str]:
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return [name]
        case ast.ImportFrom(module=str() as module):
            return [module]
    return []
