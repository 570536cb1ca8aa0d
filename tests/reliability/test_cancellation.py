"""Cancellation at every await point of every async policy: it gets out, and it leaves nothing open behind it.

The coroutine is stepped by a loop that counts its own steps: for every n the task is cancelled after n turns of the loop, so
every place is hit where it can wait. Each policy has a test of what it must give back beside its own tests; this one is over
all of them, and fails for a policy that somebody adds without a row here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import lessonlib
from lessonlib.breaker import Breaker
from lessonlib.budget import Metered, WindowGuard
from lessonlib.errors import LessonError
from lessonlib.fallback import Fallback
from lessonlib.flow import Policy
from lessonlib.ledger import Ledger
from lessonlib.limits import Limits
from lessonlib.retry import Retry
from lessonlib.tool_loop import ToolLoop, arun_tools, astream_tools
from lessonlib.types import Request, Tool
from tests.fakes import ASK, AFake, answer, call, cut, drain, overloaded, said


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


POLICIES: dict[type[Any], Callable[[AFake, AFake], Any]] = {
    Retry: lambda one, two: Retry(one, sleep=no_wait),
    Fallback: lambda one, two: Fallback([one, two]),
    Breaker: lambda one, two: Breaker(one),
    Limits: lambda one, two: Limits(one, requests_per_minute=600),
    WindowGuard: lambda one, two: WindowGuard(one, window=100_000, count=lambda request: 10),
    Metered: lambda one, two: Metered(one, Ledger()),
}


def scripts(policy: type[Any]) -> tuple[AFake, AFake]:
    """A provider that fails first, where the policy has something to do about it, and one that stands in."""
    fails = [overloaded()] if policy in (Retry, Fallback) else []
    return AFake(*fails, said("a", "b"), model="m"), AFake(said("c", "d"), model="m")


def test_every_policy_has_a_row() -> None:
    known = {policy for policy in Policy.__subclasses__() if policy.__module__.startswith("lessonlib.")}
    assert known == {*POLICIES, ToolLoop}
    assert lessonlib.Retry is Retry


async def cancelled_after(work: Any, turns: int) -> bool:
    """Whether the work was still going on after that many turns of the loop, when it was cancelled."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
        if task.done():
            break
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    except LessonError:
        return False
    return False


def everywhere(make: Callable[[], tuple[Any, Callable[[], None]]], most: int = 200) -> int:
    """Cancels fresh work after 0, 1, 2 ... turns until it ends by itself. The number of places that were hit."""
    for turns in range(most):

        async def main(turns: int = turns) -> bool:
            work, check = make()
            hit = await cancelled_after(work, turns)
            check()
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return hit

        if not asyncio.run(main()):
            return turns
    raise AssertionError(f"still going on after {most} turns")


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.__name__)
def test_a_policy_gets_out_and_closes_what_is_inside(policy: type[Any], streaming: bool) -> None:
    def make() -> tuple[Any, Callable[[], None]]:
        one, two = scripts(policy)
        made = POLICIES[policy](one, two)

        def check() -> None:
            assert one.open == two.open == 0

        return (drain(made.stream(ASK)) if streaming else made.generate(ASK)), check

    assert everywhere(make) >= (4 if streaming else 2)


@pytest.mark.parametrize("streaming", [False, True])
def test_all_policies_inside_each_other_get_out(streaming: bool) -> None:
    def make() -> tuple[Any, Callable[[], None]]:
        one, two = AFake(said(then=cut()), said("a", "b"), model="m"), AFake(said("c"), model="m")
        inner = Limits(Breaker(one), requests_per_minute=600)
        made = Metered(Fallback([Retry(inner, sleep=no_wait), two]), Ledger())

        def check() -> None:
            assert one.open == two.open == 0

        return (drain(made.stream(ASK)) if streaming else made.generate(ASK)), check

    assert everywhere(make) >= 4


ASKED = Request(messages="Hi", tools=[Tool(name="slow", parameters={"type": "object"})])


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("streaming", [False, True])
def test_the_tool_loop_gets_out_while_tools_run(streaming: bool, together: bool) -> None:
    def make() -> tuple[Any, Callable[[], None]]:
        running: list[str] = []
        calls = [call("slow", "c1"), call("slow", "c2")]
        provider = AFake(answer("", *calls), said("done"))

        async def slow() -> str:
            running.append("in")
            try:
                for _ in range(3):
                    await asyncio.sleep(0)
            finally:
                running.append("out")
            return "ok"

        async def streamed() -> None:
            async with astream_tools(provider, ASKED, {"slow": slow}, parallel=together) as events:
                async for _ in events:
                    pass

        def check() -> None:
            assert provider.open == 0
            assert running.count("in") == running.count("out")

        whole = arun_tools(provider, ASKED, {"slow": slow}, parallel=together)
        if not streaming:
            return whole, check
        whole.close()
        return streamed(), check

    assert everywhere(make) >= 6


def test_no_thread_is_started_by_any_of_this() -> None:
    assert not [thread for thread in threading.enumerate() if thread.name == "lessonlib-tool"]
