"""Policies decide, drivers act: how retry, fallback, breaker, limits and the tool loop are written once for four uses.

A client is used in four ways: synchronous or asynchronous, whole or streamed. A policy written four times drifts apart four
ways. So a policy writes one *flow*: a generator that yields what should happen next (an effect) and is sent what came of it.

    def flow(self, request):                                Call      ask a provider       -> a Response, or a LessonError
        response = yield Call(self._providers[0], request)  Sleep     wait                 -> None
        return response                                     Emit      show an event        -> None
                                                            Do        run the user's code  -> its value
                                                            RunTools  run jobs together    -> one outcome per job

Four small drivers perform the effects: `run`, `run_stream`, `arun`, `arun_stream`. The model is httpx's `auth_flow`. A flow
needs no clock and no network to be tested: `flow.send(None)` gives the first effect, `flow.throw(error)` plays a failure.

The six rules that make policies nest in any order:

1. Only a LessonError enters a flow. Cancellation, KeyboardInterrupt and foreign errors close the flow and go on outwards.
2. A streamed Call passes on every event but Done. At Done the inner stream is closed, the Response is sent in, and when the
   flow returns exactly one Done follows. So a policy has booked the outcome before the consumer sees Done.
3. `Call.started` says that an event has been handed out. A policy that asks *again* may do so only while it is False; one
   that asks for a *new* answer (the tool loop) always may.
4. When the consumer closes: the inner stream first, then the flow. What a flow holds (a probe's slot, a reservation) it
   gives back in `finally`, which yields nothing. No lock is held across a yield.
5. A policy inside a policy is a provider with a driver of its own. No task group and no timeout is open across a yield to
   the consumer (PEP 789 says why).
6. Every provider says `is_async`; one policy takes one colour, and a mixture is a TypeError.

Leaving `async for` by `break` closes an async generator only when the loop's finaliser gets to it; `contextlib.aclosing`
closes it at once.

What this file does not do: it knows no vendor, no HTTP and no policy. Why it is so: docs/decisions/effects-as-generators.md.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any, Generic, Protocol, TypeVar, cast, overload

from lessonlib.errors import IncompleteStream, LessonError
from lessonlib.types import Done, Event, Request, Response, Usage

logging.getLogger("lessonlib").addHandler(logging.NullHandler())  # silent until a program asks to hear it

# ---------------------------------------------------------------- providers


class Provider(Protocol):
    """Anything that answers a Request: a Client, or a policy around one. `stream` gives events, `Done` last and once;
    closing the iterator closes the connection."""

    @property
    def name(self) -> str: ...
    @property
    def is_async(self) -> bool: ...
    def generate(self, request: Request, /) -> Response: ...
    def stream(self, request: Request, /) -> Iterator[Event]: ...


class AsyncProvider(Protocol):
    """The same with `await` and `async for`."""

    @property
    def name(self) -> str: ...
    @property
    def is_async(self) -> bool: ...
    def generate(self, request: Request, /) -> Awaitable[Response]: ...
    def stream(self, request: Request, /) -> AsyncIterator[Event]: ...


AnyProvider = Provider | AsyncProvider


def is_async(provider: AnyProvider) -> bool:
    """The colour of a provider: what it says, or, if it says nothing, what kind of function its `generate` is."""
    said = getattr(provider, "is_async", None)
    return inspect.iscoroutinefunction(provider.generate) if said is None else bool(said)


def model_of(provider: AnyProvider) -> str | None:
    """The model that a provider asks, as far as it says so: its own `model`, or that of its wire format."""
    model = getattr(provider, "model", None) or getattr(getattr(provider, "wire", None), "model", None)
    return model if isinstance(model, str) else None


# ---------------------------------------------------------------- effects


@dataclass(slots=True)
class Call:
    """Ask a provider. Sent back: its Response. Thrown in: its LessonError.

    show: False asks for the whole answer and keeps it from the consumer (a summary, a compaction).
    started: set by the driver before it hands out the first event of this answer.
    """

    provider: AnyProvider
    request: Request
    show: bool = True
    started: bool = field(default=False, init=False)


@dataclass(slots=True)
class Sleep:
    """Wait for so many seconds."""

    seconds: float


@dataclass(slots=True)
class Emit:
    """Hand the consumer an event of the flow's own; dropped when the answer is asked for whole."""

    event: Event


@dataclass(slots=True)
class Do:
    """Run code of the user's (a hook, an approval). Sent back: its value. In the async colour it may be a coroutine."""

    work: Callable[[], Any]


PENDING: Any = type("Pending", (), {"__repr__": lambda self: "PENDING"})()
"""The outcome of a job that has not finished."""


@dataclass(slots=True)
class RunTools:
    """Run jobs at the same time. Sent back, in the order of the jobs: each one's value, or the exception it raised.

    Each job runs in a thread, or, if it is a coroutine function in the async colour, in a task. It sees the caller's context
    variables. A job that takes longer than `timeout` seconds (one number for all, or one for each) counts as a TimeoutError:
    a task is cancelled; a thread cannot be, so it is abandoned, and what it still brings is dropped.

    together: False runs them in turn, synchronous ones in the caller's own thread, where nothing can time out: for tools
        that belong to one thread, such as an SQLite connection. Where threads are missing (Pyodide) it happens by itself.
    outcomes: filled as jobs finish, for a flow that is closed while it waits: what has happened must not be lost.
    """

    jobs: Sequence[Callable[[], Any]]
    timeout: float | Sequence[float | None] | None = None
    together: bool = True
    outcomes: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.outcomes = [PENDING] * len(self.jobs)

    def timeouts(self) -> list[float | None]:
        """One timeout for each job."""
        if self.timeout is None or isinstance(self.timeout, (int, float)):
            return [self.timeout] * len(self.jobs)
        return list(self.timeout)


Effect = Call | Sleep | Emit | Do | RunTools
Flow = Generator[Effect, Any, Response]
Sleeper = Callable[[float], Any]

# ---------------------------------------------------------------- the four drivers


def run(flow: Flow, sleep: Sleeper = time.sleep) -> Response:
    """Drive a flow to its Response: synchronous, whole."""
    value: Any = None
    failure: LessonError | None = None
    try:
        while True:
            try:  # nothing else inside: a StopIteration from user code must not look like the flow's return
                effect = flow.send(value) if failure is None else flow.throw(failure)
            except StopIteration as end:
                return cast(Response, end.value)
            value, failure = None, None
            try:
                value = _perform(effect, sleep)
            except LessonError as error:
                failure = error
    finally:
        failure = None  # it holds this frame by its traceback; without the cycle everything is freed at once
        flow.close()


def run_stream(flow: Flow, sleep: Sleeper = time.sleep) -> Generator[Event, None, None]:
    """Drive a flow as a stream of events, one Done at the end: synchronous."""
    value: Any = None
    failure: LessonError | None = None
    try:
        while True:
            try:
                effect = flow.send(value) if failure is None else flow.throw(failure)
            except StopIteration as end:
                yield Done(end.value)
                return
            value, failure = None, None
            try:
                match effect:
                    case Call(show=True):
                        with _closing(cast(Provider, effect.provider).stream(effect.request)) as events:
                            for event in events:
                                if event.__class__ is Done:
                                    value = event.response
                                    break
                                effect.started = True
                                yield event
                            else:
                                raise _no_done(effect.provider)
                    case Emit():
                        yield effect.event
                    case _:
                        value = _perform(effect, sleep)
            except LessonError as error:
                failure = error
    finally:
        failure = None
        flow.close()


async def arun(flow: Flow, sleep: Sleeper = asyncio.sleep) -> Response:
    """Drive a flow to its Response: asynchronous, whole."""
    value: Any = None
    failure: LessonError | None = None
    try:
        while True:
            try:
                effect = flow.send(value) if failure is None else flow.throw(failure)
            except StopIteration as end:
                return cast(Response, end.value)
            value, failure = None, None
            try:
                value = await _aperform(effect, sleep)
            except LessonError as error:
                failure = error
    finally:
        failure = None
        flow.close()


async def arun_stream(flow: Flow, sleep: Sleeper = asyncio.sleep) -> AsyncGenerator[Event, None]:
    """Drive a flow as a stream of events, one Done at the end: asynchronous."""
    value: Any = None
    failure: LessonError | None = None
    try:
        while True:
            try:
                effect = flow.send(value) if failure is None else flow.throw(failure)
            except StopIteration as end:
                yield Done(end.value)
                return
            value, failure = None, None
            try:
                match effect:
                    case Call(show=True):
                        async with _aclosing(cast(AsyncProvider, effect.provider).stream(effect.request)) as events:
                            async for event in events:
                                if event.__class__ is Done:
                                    value = event.response
                                    break
                                effect.started = True
                                yield event
                            else:
                                raise _no_done(effect.provider)
                    case Emit():
                        yield effect.event
                    case _:
                        value = await _aperform(effect, sleep)
            except LessonError as error:
                failure = error
    finally:
        failure = None
        flow.close()


def _perform(effect: Effect, sleep: Sleeper) -> Any:
    """One effect, with the answer of a Call taken whole."""
    match effect:
        case Call():
            return cast(Provider, effect.provider).generate(effect.request)
        case Sleep():
            sleep(effect.seconds)
        case Do():
            return _not_awaitable(effect.work())
        case RunTools():
            return _run_jobs(effect)
        case Emit():
            pass
    return None


async def _aperform(effect: Effect, sleep: Sleeper) -> Any:
    match effect:
        case Call():
            return await cast(AsyncProvider, effect.provider).generate(effect.request)
        case Sleep():
            await _maybe(sleep(effect.seconds))
        case Do():
            return await _maybe(effect.work())
        case RunTools():
            return await _arun_jobs(effect)
        case Emit():
            pass
    return None


def _no_done(provider: AnyProvider) -> IncompleteStream:
    return IncompleteStream(f"the stream of {provider.name} ended without Done")


def _closing(events: Any) -> AbstractContextManager[Iterator[Event]]:
    return closing(events) if hasattr(events, "close") else nullcontext(events)


def _aclosing(events: Any) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
    return aclosing(events) if hasattr(events, "aclose") else nullcontext(events)


async def _maybe(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _not_awaitable(value: Any) -> Any:
    """Rule 6 for the user's own code: a coroutine that nobody can await here is refused, not silently dropped."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("an async function in the synchronous colour: use the async twin, or a plain function")
    return value


# ---------------------------------------------------------------- running jobs

_SLICE = 0.25
"""Seconds of one wait for a thread. On Windows a lock that is waited for cannot be interrupted by Ctrl-C
(https://bugs.python.org/issue35935), so the wait comes up for air."""


def is_async_function(function: Any) -> bool:
    """Whether calling `function` gives a coroutine: partials and objects with an async `__call__` included."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _run_jobs(effect: RunTools) -> list[Any]:
    places = range(len(effect.jobs))
    if not effect.together:
        for place in places:
            _record(effect, place)
        return list(effect.outcomes)
    began = time.monotonic()
    futures = [_in_thread(partial(_record, effect, place)) for place in places]
    results: list[Any] = []  # not `outcomes` itself: an abandoned thread may still write there
    for future, timeout, place in zip(futures, effect.timeouts(), places, strict=True):
        if not _wait_for(future, None if timeout is None else began + timeout):
            results.append(_too_late(timeout))
        elif (fatal := future.exception()) is not None:
            raise fatal  # a SystemExit or KeyboardInterrupt inside a tool means the program, not the model
        else:
            results.append(effect.outcomes[place])
    return results


def _record(effect: RunTools, place: int) -> None:
    """Run one job in this thread and note its outcome."""
    try:
        outcome = _not_awaitable(effect.jobs[place]())
    except Exception as error:
        outcome = error
    effect.outcomes[place] = outcome


def _wait_for(future: Future[Any], deadline: float | None) -> bool:
    """Whether `future` is done by `deadline`."""
    while not future.done():
        left = _SLICE if deadline is None else min(_SLICE, deadline - time.monotonic())
        if left <= 0:
            return False
        wait([future], left)
    return True


def _too_late(timeout: float | None) -> TimeoutError:
    return TimeoutError(f"no result within {timeout:g} s; it may still take effect later")


def _in_thread(work: Callable[[], Any]) -> Future[Any]:
    """Start `work` in a thread of its own, which does not keep the interpreter from ending; without threads, run it now."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # from here on nobody can cancel it under the thread's feet
    context = contextvars.copy_context()

    def body() -> None:
        try:
            value = context.run(work)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(value)

    try:
        threading.Thread(target=body, name="lessonlib-tool", daemon=True).start()
    except RuntimeError:  # "can't start new thread": Pyodide has none, and a busy machine may have no more
        body()
    return future


async def _arun_jobs(effect: RunTools) -> list[Any]:
    timeouts = effect.timeouts()
    if not effect.together:
        for place, timeout in enumerate(timeouts):
            await _arecord(effect, place, timeout)
    else:
        async with asyncio.TaskGroup() as group:  # cancelled from outside, it cancels the tasks and waits for them
            for place, timeout in enumerate(timeouts):
                group.create_task(_arecord(effect, place, timeout))
    return list(effect.outcomes)


async def _arecord(effect: RunTools, place: int, timeout: float | None) -> None:
    """Run one job in this task and note its outcome."""
    outcome: Any
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            outcome = await _run_job(effect.jobs[place], effect.together)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        outcome = RuntimeError(f"the tool cancelled itself ({error!r})")
    except Exception as error:
        outcome = _too_late(timeout) if limit.expired() else error
    effect.outcomes[place] = outcome


async def _run_job(job: Callable[[], Any], in_thread: bool) -> Any:
    if is_async_function(job):
        return await job()
    return await _maybe(await asyncio.wrap_future(_in_thread(job)) if in_thread else job())


# ---------------------------------------------------------------- the policy base

P = TypeVar("P", Provider, AsyncProvider)
"""The two colours; a type checker picks one from the provider that a policy is given."""


class Policy(Generic[P]):
    """A provider that is made of a flow. A subclass writes `flow` and gets `generate` and `stream` in its providers' colour.

    sleep: how to wait, for tests; `time.sleep` or `asyncio.sleep` if not given.
    """

    def __init__(self, *providers: AnyProvider, sleep: Sleeper | None = None) -> None:
        if not providers:
            raise ValueError(f"{type(self).__name__} needs at least one provider")
        self._providers: tuple[AnyProvider, ...] = providers
        self.is_async: bool = is_async(providers[0])
        if any(is_async(provider) != self.is_async for provider in providers):
            raise TypeError(f"{self.name} mixes synchronous and asynchronous providers; one policy takes one colour")
        self._sleep: Sleeper = sleep or (asyncio.sleep if self.is_async else time.sleep)

    @property
    def name(self) -> str:
        """The policy and what is inside it, for messages: `retry(anthropic)`."""
        return f"{type(self).__name__.lower()}({', '.join(provider.name for provider in self._providers)})"

    @property
    def model(self) -> str | None:
        """The model that is asked first, None if the provider does not say."""
        return model_of(self._providers[0])

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def flow(self, request: Request) -> Flow:
        """What should happen for `request`, as effects."""
        raise NotImplementedError

    @overload
    def generate(self: Policy[Provider], request: Request, /) -> Response: ...
    @overload
    def generate(self: Policy[AsyncProvider], request: Request, /) -> Awaitable[Response]: ...
    def generate(self, request: Request, /) -> Any:
        """The whole answer (to be awaited in the async colour)."""
        return (arun if self.is_async else run)(self.flow(request), self._sleep)

    @overload
    def stream(self: Policy[Provider], request: Request, /) -> Iterator[Event]: ...
    @overload
    def stream(self: Policy[AsyncProvider], request: Request, /) -> AsyncIterator[Event]: ...
    def stream(self, request: Request, /) -> Any:
        """The answer as events, `Done` last and once. Closing the iterator closes everything inside."""
        return (arun_stream if self.is_async else run_stream)(self.flow(request), self._sleep)


# ---------------------------------------------------------------- what policies share


def with_attempts(error: LessonError, earlier: Iterable[LessonError]) -> LessonError:
    """`error` with everything that failed before it in `attempts`: flat, oldest first, whatever policies were inside."""
    before = [failed for attempt in earlier for failed in (*attempt.attempts, attempt)]
    error.attempts = [*before, *error.attempts]
    return error


def spent(*failed: LessonError) -> Usage | None:
    """What failed attempts had used, as far as the service reported it before it failed; None if nothing is known."""
    partials = [error.partial for attempt in failed for error in (*attempt.attempts, attempt)]
    return total(partial.usage for partial in partials if partial is not None)


def total(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum of those that are known, None if none is."""
    known = [usage for usage in usages if usage is not None]
    return reduce(add, known) if known else None


def with_retried(response: Response, *more: Usage | None) -> Response:
    """`response` with what failed attempts had used added to `retried`; unchanged if nothing is known of them."""
    retried = total((response.retried, *more))
    return response if retried == response.retried else response.model_copy(update={"retried": retried})


def collect(events: Iterable[Event]) -> Response:
    """The Response at the end of a stream. Raises IncompleteStream if the stream ends without one."""
    with _closing(events) as stream:
        for event in stream:
            if isinstance(event, Done):
                return event.response
    raise IncompleteStream("the events ended without Done")


async def acollect(events: AsyncIterator[Event]) -> Response:
    """The same for an asynchronous stream."""
    async with _aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, Done):
                return event.response
    raise IncompleteStream("the events ended without Done")
