"""Effects, drivers and the policy base: the six rules of flow.py, in both colours, whole and streamed."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import time
from contextlib import aclosing
from typing import Any

import pytest

from lessonlib import flow as flow_module
from lessonlib.errors import APIError, IncompleteStream, LessonError
from lessonlib.flow import (
    PENDING,
    Call,
    Do,
    Emit,
    Policy,
    RunTools,
    Sleep,
    acollect,
    arun,
    collect,
    is_async,
    is_async_function,
    model_of,
    run,
    run_stream,
    spent,
    total,
    with_attempts,
    with_retried,
)
from lessonlib.types import Done, PartDone, Response, Text, TextDelta, Usage
from tests.fakes import (
    ASK,
    AFake,
    Fake,
    answer,
    bad_request,
    both,
    cancel_everywhere,
    cut,
    drain,
    first_event,
    limited,
    overloaded,
    said,
    shown,
    streamed,
    whole,
)


class Pass(Policy[Any]):
    """The smallest policy: it asks, and keeps a diary."""

    def __init__(self, *providers: Any) -> None:
        super().__init__(*providers)
        self.diary: list[str] = []

    def flow(self, request: Any) -> Any:
        self.diary.append("in")
        try:
            response = yield Call(self._providers[0], request)
            self.diary.append("booked")
            return response
        except LessonError as error:
            self.diary.append(type(error).__name__)
            raise
        finally:
            self.diary.append("out")


def made_of(*steps: Any, end: Response | None = None) -> Any:
    """A flow that yields `steps` and keeps what was sent back in its last event."""

    class Steps(Policy[Any]):
        sent: list[Any]

        def flow(self, request: Any) -> Any:
            self.sent = []
            for step in steps:
                self.sent.append((yield step() if callable(step) else step))
            return end or answer("done")

    return Steps


# ---------------------------------------------------------------- whole and streamed


def test_a_policy_gives_the_same_answer_in_both_colours_whole_and_streamed() -> None:
    assert both(lambda colour: Pass(colour(said("Hi ", "there"))), whole, lambda p: collect(streamed(p))).text == "Hi there"


def test_events_pass_through_unchanged_and_exactly_one_done_ends_the_stream() -> None:
    events = both(lambda colour: Pass(Pass(colour(said("a", "b")))), streamed)
    assert events == [TextDelta(0, "a"), TextDelta(0, "b"), Done(answer("ab"))]


def test_an_error_of_the_provider_is_thrown_into_the_flow_and_leaves_through_it() -> None:
    for colour in (Fake, AFake):
        for body in (whole, streamed):
            policy = Pass(colour(bad_request()))
            with pytest.raises(APIError):
                body(policy)
            assert policy.diary == ["in", "APIError", "out"]


def test_a_stream_that_ends_without_done_is_incomplete() -> None:
    """Rule 2. The inner provider simply stops; that is never success."""

    class Stops(Fake):
        def stream(self, request: Any) -> Any:
            yield TextDelta(0, "half")

    class AStops(AFake):
        async def stream(self, request: Any) -> Any:
            yield TextDelta(0, "half")

    for provider in (Stops("x"), AStops("x")):
        with pytest.raises(IncompleteStream, match="without Done"):
            streamed(Pass(provider))


def test_the_outcome_is_booked_before_the_consumer_sees_done() -> None:
    """Rule 2. A consumer that stops exactly at Done must not leave the policy in doubt."""
    policy = Pass(Fake(said("a")))
    events = policy.stream(ASK)
    while not isinstance(next(events), Done):
        pass
    assert policy.diary == ["in", "booked", "out"]
    events.close()


def test_the_inner_stream_is_closed_before_the_response_is_sent_in() -> None:
    """Rule 2. When a policy goes on after an answer, its connection is free already."""
    inner = Fake(said("a"), said("b"))

    class Twice(Policy[Any]):
        def flow(self, request: Any) -> Any:
            yield Call(inner, request)
            assert inner.open == 0
            return (yield Call(inner, request))

    assert shown(streamed(Twice(inner))) == "ab"


def test_started_says_whether_an_event_was_handed_out() -> None:
    calls: list[Call] = []

    class Watch(Policy[Any]):
        def flow(self, request: Any) -> Any:
            for _ in range(3):
                calls.append(Call(self._providers[0], request))
                try:
                    return (yield calls[-1])
                except LessonError:
                    pass
            raise AssertionError

    for colour in (Fake, AFake):
        calls.clear()
        streamed(Watch(colour(overloaded(), said("a", then=cut()), said("b"))))
        assert [call.started for call in calls] == [False, True, True]
        calls.clear()
        whole(Watch(colour(overloaded(), "b")))
        assert [call.started for call in calls] == [False, False], "whole answers hand out no events"


def test_a_hidden_call_shows_nothing() -> None:
    """A summary that a policy has written for itself is none of the consumer's business."""

    class HandOver(Policy[Any]):
        def flow(self, request: Any) -> Any:
            summary = yield Call(self._providers[0], request, show=False)
            return (yield Call(self._providers[1], request.replace(messages=summary.text)))

    events = both(lambda colour: HandOver(colour(said("SECRET")), colour("Hi")), streamed)
    assert shown(events) == "Hi"


def test_an_emitted_event_is_shown_in_a_stream_and_dropped_when_whole() -> None:
    event = PartDone(0, Text(text="mine"))
    steps = made_of(Emit(event))
    assert both(lambda colour: steps(colour()), streamed) == [event, Done(answer("done"))]
    assert both(lambda colour: steps(colour()), whole) == answer("done")


# ---------------------------------------------------------------- what may enter a flow


@pytest.mark.parametrize("foreign", [KeyboardInterrupt, ZeroDivisionError, StopIteration])
def test_foreign_errors_close_the_flow_and_go_on_outwards(foreign: type[BaseException]) -> None:
    """Rule 1. Only a LessonError enters: the flow sees itself closed, and its `finally` runs."""
    for colour in (Fake, AFake):
        for body in (whole, streamed):
            policy = Pass(colour(foreign()))
            with pytest.raises(
                (foreign, RuntimeError)
            ) as caught:  # PEP 479: StopIteration leaves generators as RuntimeError
                body(policy)
            assert foreign in (caught.type, type(caught.value.__cause__))
            assert policy.diary == ["in", "out"]


def test_a_stop_iteration_from_a_hook_is_no_return_value() -> None:
    steps = made_of(lambda: Do(lambda: next(iter(()))))
    with pytest.raises(StopIteration):
        whole(steps(Fake()))


def test_closing_a_stream_closes_the_inner_stream_first_then_the_flow() -> None:
    """Rule 4."""
    for colour in (Fake, AFake):
        provider = colour(said("a", "b", "c"))
        inner, outer = Pass(provider), None
        outer = Pass(inner)
        assert first_event(outer) == TextDelta(0, "a")
        assert provider.open == 0
        assert inner.diary == ["in", "out"]
        assert outer.diary == ["in", "out"]


def test_cancellation_at_every_await_closes_everything() -> None:
    """Rule 1 and 4, at each point at which an asynchronous stream can be cancelled."""
    for body in (lambda p: p.generate(ASK), lambda p: drain(p.stream(ASK))):

        def make(body: Any = body) -> Any:
            provider = AFake(said("a", "b"))
            policies = [Pass(provider)]
            policies += [Pass(policies[0])]

            def check() -> None:
                assert provider.open == 0
                assert all(policy.diary[-1:] != ["in"] for policy in policies)

            return body(policies[-1]), check

        assert cancel_everywhere(make) >= 1


def test_a_break_out_of_async_for_is_closed_by_aclosing_at_once() -> None:
    async def main() -> int:
        provider = AFake(said("a", "b"))
        async with aclosing(Pass(provider).stream(ASK)) as events:
            async for _ in events:
                break
        return provider.open

    assert asyncio.run(main()) == 0


def test_an_error_leaves_no_reference_cycle() -> None:
    """What a failed attempt held (a response, a connection) is freed at once, not at the next collection."""
    gc.collect()
    gc.disable()
    try:
        flow = Pass(Fake(bad_request())).flow(ASK)
        with pytest.raises(APIError):
            run(flow)
        frame_locals = flow.gi_frame
        assert frame_locals is None
    finally:
        gc.enable()


# ---------------------------------------------------------------- sleep and user code


def test_sleep_waits_with_the_given_function() -> None:
    waits: list[float] = []

    async def asleep(seconds: float) -> None:
        waits.append(seconds)

    class Waits(Policy[Any]):
        def flow(self, request: Any) -> Any:
            yield Sleep(2.5)
            return answer("done")

    for provider, sleep in ((Fake(), waits.append), (AFake(), asleep), (AFake(), waits.append)):
        for body in (whole, streamed):
            body(Waits(provider, sleep=sleep))
    assert waits == [2.5] * 6


def test_without_a_sleep_of_ones_own_the_colour_decides() -> None:
    assert Pass(Fake())._sleep is time.sleep
    assert Pass(AFake())._sleep is asyncio.sleep


def test_user_code_may_be_async_in_the_async_colour() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "value"

    policy = made_of(lambda: Do(later), lambda: Do(lambda: "plain"))(AFake())
    whole(policy)
    assert policy.sent == ["value", "plain"]


def test_async_user_code_in_the_synchronous_colour_is_refused() -> None:
    async def never() -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="async"):
        whole(made_of(lambda: Do(never))(Fake()))


def test_a_lesson_error_of_user_code_enters_the_flow_where_it_was_asked_for() -> None:
    def hook() -> None:
        raise bad_request()

    class Hooked(Policy[Any]):
        def flow(self, request: Any) -> Any:
            try:
                yield Do(hook)
            except LessonError:
                return answer("caught")

    assert both(lambda colour: Hooked(colour()), whole, lambda p: collect(streamed(p))).text == "caught"


# ---------------------------------------------------------------- colours and names


def test_one_policy_takes_one_colour() -> None:
    """Rule 6."""
    with pytest.raises(TypeError, match="mixes"):
        Pass(Fake(), AFake())
    with pytest.raises(ValueError, match="at least one"):
        Pass()


def test_a_provider_that_does_not_say_its_colour_is_judged_by_its_generate() -> None:
    class Plain:
        name = "plain"

        def generate(self, request: Any) -> Any: ...

    class Later:
        name = "later"

        async def generate(self, request: Any) -> Any: ...

    assert (is_async(Plain()), is_async(Later())) == (False, True)  # type: ignore[arg-type]


def test_names_and_models_show_what_is_inside() -> None:
    policy = Pass(Pass(Fake(name="a", model="m-1")), Fake(name="b"))
    assert policy.name == "pass(pass(a), b)"
    assert repr(policy) == "<pass(pass(a), b)>"
    assert policy.model == "m-1"
    assert model_of(Fake()) is None


# ---------------------------------------------------------------- running tools together


def outcomes(job_list: list[Any], timeout: Any = None, together: bool = True, colour: type[Fake] = Fake) -> Any:
    policy = made_of(lambda: RunTools(job_list, timeout, together))(colour())
    whole(policy)
    return policy.sent[0]


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_jobs_run_at_the_same_time_and_outcomes_keep_their_order(colour: type[Fake]) -> None:
    """Each job waits for the other: in turn they would never end."""
    meet = threading.Barrier(2, timeout=10)

    def job(name: str) -> Any:
        def body() -> str:
            meet.wait()
            return name

        return body

    assert outcomes([job("first"), job("second")], colour=colour) == ["first", "second"]


def test_async_jobs_run_as_tasks_at_the_same_time() -> None:
    async def main() -> Any:
        meet = asyncio.Event()

        async def first() -> str:
            await meet.wait()
            return "first"

        async def second() -> str:
            meet.set()
            return "second"

        policy = made_of(lambda: RunTools([first, second]))(AFake())
        await policy.generate(ASK)
        return policy.sent[0]

    assert asyncio.run(main()) == ["first", "second"]


@pytest.mark.parametrize("colour", [Fake, AFake])
@pytest.mark.parametrize("together", [True, False])
def test_an_exception_is_an_outcome(colour: type[Fake], together: bool) -> None:
    def fails() -> None:
        raise KeyError("x")

    first, second = outcomes([fails, lambda: 2], together=together, colour=colour)
    assert isinstance(first, KeyError)
    assert second == 2


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_a_late_thread_is_abandoned_and_its_result_dropped(colour: type[Fake]) -> None:
    let_go = threading.Event()
    ended = threading.Event()

    def late() -> str:
        let_go.wait(10)
        ended.set()
        return "too late"

    first, second = outcomes([late, lambda: "quick"], timeout=0.02, colour=colour)
    assert isinstance(first, TimeoutError)
    assert "0.02 s" in str(first)
    assert second == "quick"
    let_go.set()
    assert ended.wait(10)
    assert isinstance(first, TimeoutError)


def test_each_job_may_have_its_own_timeout() -> None:
    let_go = threading.Event()
    try:
        first, second = outcomes([lambda: let_go.wait(10), lambda: "unlimited"], timeout=[0.01, None])
    finally:
        let_go.set()
    assert isinstance(first, TimeoutError)
    assert second == "unlimited"


def test_a_late_task_is_cancelled() -> None:
    cleaned: list[str] = []

    async def late() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("yes")

    (outcome,) = outcomes([late], timeout=0.01, colour=AFake)
    assert isinstance(outcome, TimeoutError)
    assert cleaned == ["yes"]


def test_a_tools_own_timeout_error_is_its_own() -> None:
    async def fails() -> None:
        raise TimeoutError("the shop is closed")

    (outcome,) = outcomes([fails], timeout=5, colour=AFake)
    assert str(outcome) == "the shop is closed"


def test_a_task_that_cancels_itself_is_an_outcome_not_an_end() -> None:
    async def gives_up() -> None:
        raise asyncio.CancelledError

    first, second = outcomes([gives_up, lambda: 2], colour=AFake)
    assert "cancelled itself" in str(first)
    assert second == 2


def test_cancelling_a_run_cancels_its_tasks_and_waits_for_them() -> None:
    cleaned: list[int] = []

    async def main() -> None:
        began = asyncio.Event()

        async def job(number: int) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                cleaned.append(number)

        effect = RunTools([lambda: 7, *((lambda n=n: job(n)) for n in (1, 2))])
        policy = made_of(effect)(AFake())
        task = asyncio.ensure_future(policy.generate(ASK))
        await began.wait()
        while effect.outcomes[0] is PENDING:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(cleaned) == [1, 2]
        assert effect.outcomes == [7, PENDING, PENDING], "what has happened is not lost"

    asyncio.run(main())


@pytest.mark.parametrize("fatal", [SystemExit, KeyboardInterrupt])
def test_a_tool_that_ends_the_program_ends_it(fatal: type[BaseException]) -> None:
    def leaves() -> None:
        raise fatal

    with pytest.raises(fatal):
        outcomes([leaves])


def test_an_async_job_in_the_synchronous_colour_is_an_error_outcome() -> None:
    async def job() -> None:
        raise AssertionError

    (outcome,) = outcomes([job])
    assert isinstance(outcome, TypeError)


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_jobs_see_the_callers_context_variables(colour: type[Fake]) -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    class Sets(Policy[Any]):
        sent: Any = None

        def flow(self, request: Any) -> Any:
            variable.set("from the caller")
            self.sent = yield RunTools([variable.get, variable.get])
            return answer("done")

    policy = Sets(colour())
    contextvars.copy_context().run(whole, policy)
    assert policy.sent == ["from the caller"] * 2


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_in_turn_synchronous_jobs_run_in_the_callers_thread(colour: type[Fake]) -> None:
    seen = outcomes([threading.get_ident, threading.get_ident], together=False, colour=colour)
    assert seen == [threading.get_ident()] * 2


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_without_threads_jobs_run_in_turn(colour: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyodide raises exactly this."""

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert outcomes([threading.get_ident, lambda: 2], timeout=1, colour=colour) == [threading.get_ident(), 2]


def test_an_abandoned_tool_does_not_keep_the_interpreter_from_ending() -> None:
    program = (
        "import threading\n"
        "from lessonlib.flow import RunTools, _run_jobs\n"
        "print(_run_jobs(RunTools([threading.Event().wait], 0.01)))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "TimeoutError" in ended.stdout


def test_the_wait_for_a_thread_comes_up_for_air(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows a lock that is waited for cannot be interrupted, so no single wait is long."""
    waits: list[float] = []
    real = flow_module.wait

    def watched(futures: Any, timeout: float) -> Any:
        waits.append(timeout)
        return real(futures, 0.001)

    monkeypatch.setattr(flow_module, "wait", watched)
    let_go = threading.Event()
    threading.Timer(0.02, let_go.set).start()
    outcomes([let_go.wait])
    assert waits
    assert max(waits) <= 0.25


def test_what_counts_as_an_async_function() -> None:
    from functools import partial

    async def coroutine(x: int = 0) -> None: ...

    class Callable:
        async def __call__(self) -> None: ...

    assert is_async_function(coroutine)
    assert is_async_function(partial(coroutine, 1))
    assert is_async_function(Callable())
    assert not is_async_function(print)


# ---------------------------------------------------------------- driving by hand, and what policies share


def test_a_flow_is_tested_without_a_driver() -> None:
    flow = Pass(Fake()).flow(ASK)
    effect = flow.send(None)
    assert isinstance(effect, Call)
    with pytest.raises(StopIteration) as end:
        flow.send(answer("by hand"))
    assert end.value.value.text == "by hand"


def test_the_drivers_drive_a_bare_flow_too() -> None:
    assert run(Pass(Fake("x")).flow(ASK)).text == "x"
    assert asyncio.run(arun(Pass(AFake("x")).flow(ASK))).text == "x"
    assert shown(list(run_stream(Pass(Fake("x")).flow(ASK)))) == "x"


def test_collect_is_generate() -> None:
    assert collect(iter([TextDelta(0, "a"), Done(answer("a"))])) == answer("a")
    assert asyncio.run(acollect(AFake(said("a")).stream(ASK))) == answer("a")
    with pytest.raises(IncompleteStream):
        collect(iter([TextDelta(0, "a")]))


def test_collect_closes_a_stream_that_fails_in_the_middle() -> None:
    provider = Fake(said("a", then=cut()))
    with pytest.raises(IncompleteStream):
        collect(Pass(provider).stream(ASK))
    assert provider.open == 0


def test_attempts_are_flat_and_oldest_first() -> None:
    inner_first, inner_last, other, last = limited(), overloaded(), cut(), bad_request()
    with_attempts(inner_last, [inner_first])
    assert with_attempts(last, [inner_last, other]).attempts == [inner_first, inner_last, other]


def test_usage_of_failed_attempts_is_added_where_it_is_known() -> None:
    """An attempt that broke after its head has been paid for: the sum keeps it."""
    paid = cut(partial=answer("half", tokens=800))
    failed = with_attempts(cut(), [paid, overloaded()])
    assert spent(failed) == Usage(input_tokens=800, output_tokens=1)
    assert spent(overloaded()) is None
    assert total([None, None]) is None
    response = with_retried(answer("x"), spent(failed), None)
    assert response.retried == Usage(input_tokens=800, output_tokens=1)
    assert response.usage == answer("x").usage
    untouched = answer("x")
    assert with_retried(untouched, None) is untouched


# ---------------------------------------------------------------- cost


NUMBER = 20_000
PIECE = TextDelta(0, "x")


class Many(Fake):
    def stream(self, request: Any) -> Any:
        for _ in range(NUMBER):
            yield PIECE
        yield Done(answer("x"))


class AMany(AFake):
    async def stream(self, request: Any) -> Any:
        for _ in range(NUMBER):
            yield PIECE
        yield Done(answer("x"))


def seconds(provider: Any) -> float:
    """The processor time that it takes to read a stream; what other processes do does not count."""

    async def consume() -> None:
        async for _ in provider.stream(ASK):
            pass

    began = time.process_time()
    if provider.is_async:
        asyncio.run(consume())
    else:
        for _ in provider.stream(ASK):
            pass
    return time.process_time() - began


@pytest.mark.parametrize("colour", [Many, AMany])
def test_a_layer_costs_at_most_half_a_microsecond_per_event(colour: type[Fake]) -> None:
    """The stated limit, with room for a busy machine: the best of several runs counts."""
    bare = min(seconds(colour()) for _ in range(5))
    layered = min(seconds(Pass(Pass(Pass(Pass(colour()))))) for _ in range(5))
    assert (layered - bare) / NUMBER / 4 < 0.5e-6
