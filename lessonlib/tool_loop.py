"""The tool loop: ask, run the tools that the model calls, send the results, until it answers. The same for every service.

    run = run_tools(Retry(client), request, tools={"get_weather": get_weather}, max_steps=8)
    run.response, run.messages, run.usage, run.steps

What it keeps to, whatever happens:

* The assistant message goes into the history as it came, with everything in it that only its own service can read.
* Every call gets a result, in call order: also one of a tool that does not exist, one whose arguments are no JSON or do not
  fit, one that a person refused, one that was too slow or raised. Errors go to the model, which mostly corrects itself.
* Calls are run only when the answer stopped for them, or says that it is complete: some services say only that (strands
  #1827). An answer that was cut, declined or paused runs nothing, and text that looks like a call is text.
* The history can be sent again after every end: an answer, an error, the step limit, Ctrl-C, a cancelled task. Calls that
  were not run are answered as such; of those that were interrupted it is said that nobody knows.
* At most `max_steps` requests. At the limit MaxSteps is raised with the run: what was paid for is not lost.
* `run.usage` counts every request, failed attempts included as far as the service reported them.

A pause (a server-side tool is still working) is sent again as it is. A pause with a continuation token is one answer in
several hops: the messages are joined, the usage of each hop is added, and a token that repeats ends it.

Put Retry inside of the loop, around the client. Around the loop it would run the tools again, so after a tool has run the
loop's errors are not retryable.

A faulty call is healed as far as that is honest (healing.py): arguments that are JSON but for their presentation are read
again, the model is told what was wrong with the others, and after three tries in vain an error ends the run.

What this file does not do: it knows no vendor, it invents no arguments, and it does not shorten the history (compact.py).
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack, cast

from lessonlib.errors import LessonError, MaxSteps, ProtocolError
from lessonlib.flow import (
    PENDING,
    AsyncProvider,
    Call,
    Do,
    Effect,
    Emit,
    Flow,
    P,
    Policy,
    Provider,
    RunTools,
    Sleeper,
    arun,
    arun_stream,
    is_async_function,
    run_stream,
    spent,
    total,
)  # fmt: skip
from lessonlib.flow import run as run_whole
from lessonlib.healing import Strategy, Tries, may_fold, read_again
from lessonlib.history import NOT_RUN, close_open_calls
from lessonlib.results import Content, cut_content, error_text, result_content
from lessonlib.tools import CallFault, FunctionTool, bad_format, tool, unknown_tool
from lessonlib.types import (
    JSON,
    Event,
    Message,
    Opaque,
    Part,
    PartDone,
    Request,
    Response,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)  # fmt: skip

log = logging.getLogger("lessonlib")

INTERRUPTED = "This call was interrupted. Whether it took effect is not known."
UNFINISHED = "This call was not run: the answer ended before it was complete."

Steps = Generator[Effect, Any, None]


# ---------------------------------------------------------------- what a run is


@dataclass
class ToolRun:
    """A run of the loop; it is filled as the loop goes, so it tells how far it came whatever ended it.

    messages: the request's messages and everything since; can be sent again at any time after the run.
    usage: of all requests so far. steps: requests to the model so far. tools_run: tools that were started.
    answer: the last answer so far. healing: the part of `usage` that answers used which called again after a faulty call.
    folded: messages of failed tries that were taken out of the history.
    """

    messages: list[Message] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    tools_run: int = 0
    answer: Response | None = None
    healing: Usage = field(default_factory=Usage)
    folded: int = 0

    @property
    def response(self) -> Response:
        """The last answer: after a run that came to its end, the final one."""
        if self.answer is None:
            raise LookupError("the run has no answer yet")
        return self.answer


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model and what followed, for `on_step`.

    number: requests so far. results: in call order; empty for a final answer and for a pause. errors: for each result the
    exception behind it, as it was raised, or None. run: the run so far.
    """

    number: int
    response: Response
    results: list[ToolResult]
    errors: list[BaseException | None]
    run: ToolRun


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person says about a call. feedback: told to the model when it is refused. args: run it with these instead."""

    approved: bool
    feedback: str = ""
    args: JSON | None = None


Approver = Callable[[ToolCall], "bool | Decision | Awaitable[bool | Decision]"]
Tools = Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]]


class Options(TypedDict, total=False):
    """Options of the loop, beside `tools` and `max_steps`; explained at ToolLoop."""

    timeout: float | None
    max_result: int | None
    parallel: bool
    approve: Approver | None
    on_step: Callable[[Step], Any] | None
    max_faults: int | None
    max_repeats: int | None
    max_tries: int | None
    repair: bool
    history: Strategy
    on_heal: Callable[[Response], Any] | None


# ---------------------------------------------------------------- the loop


@dataclass(slots=True)
class _Planned:
    """A call on its way to a result: `job` runs it; without one, `outcome` is already why not."""

    call: ToolCall
    job: Callable[[], Any] | None = None
    timeout: float | None = None
    outcome: Any = PENDING
    note: str = ""


class ToolLoop(Policy[P]):
    """The loop as a policy: a provider whose answers have already used the tools. One flow, so there is one loop for both
    colours, whole and streamed. `run_tools` and its three sisters are this with a ToolRun.

    tools: {name: function}, or functions whose names count: plain ones, async ones, `@tool`s, pydantic models. They fill
        an empty `request.tools` too.
    max_steps: requests to the model, hops of one answer included.
    timeout: seconds that one tool may take, unless it has its own (`tool(timeout=...)`); None for no limit. A late tool in a
        thread is abandoned and its result dropped, one in a task is cancelled.
    max_result: characters of text in one result; what is beyond is cut, and the cut is stated.
    parallel: run the calls of one answer at the same time; False runs them in turn, in the caller's thread.
    approve: asked about each call before any of the answer's is run: True, False, or a Decision.
    on_step: called with a Step after each answer and its results.
    max_faults: end the run after so many steps in a row whose calls were all faulty (MaxSteps); None leaves it to max_steps.
    max_repeats: the same for steps in a row with the same calls and the same results.
    max_tries: the same for answers in a row that all called one tool in vain (healing.py); None leaves it to max_steps.
    repair: read arguments again that are JSON but for their presentation (repair.py); the model is told how they were read.
    history: "keep" the failed tries, or "fold" them once a step has succeeded, where nothing signed stands in the way.
    on_heal: called with each answer that was only needed because a call before it was faulty; see Ledger.heal.

    The hooks may be coroutine functions in the async colour. What they raise ends the run.
    A forced `tool_choice` holds until tools have run; forced for ever, the model could never answer.
    """

    def __init__(
        self,
        provider: P,
        tools: Tools = (),
        max_steps: int = 8,
        *,
        timeout: float | None = 60.0,
        max_result: int | None = 100_000,
        parallel: bool = True,
        approve: Approver | None = None,
        on_step: Callable[[Step], Any] | None = None,
        max_faults: int | None = None,
        max_repeats: int | None = None,
        max_tries: int | None = 3,
        repair: bool = True,
        history: Strategy = "keep",
        on_heal: Callable[[Response], Any] | None = None,
        sleep: Sleeper | None = None,
    ) -> None:
        super().__init__(provider, sleep=sleep)
        if max_steps < 1:
            raise ValueError("max_steps must be at least 1")
        self.tools = _toolbox(tools)
        self.max_steps = max_steps
        self.timeout = timeout
        self.max_result = max_result
        self.parallel = parallel
        self.approve = approve
        self.on_step = on_step
        self.max_faults = max_faults
        self.max_repeats = max_repeats
        self.max_tries = max_tries
        self.repair = repair
        self.history = history
        self.on_heal = on_heal
        if not self.is_async:
            late = [name for name, each in self.tools.items() if is_async_function(each.function)]
            if late:
                raise TypeError(f"{', '.join(late)}: async tools need arun_tools or astream_tools, and an async provider")

    def flow(self, request: Request, run: ToolRun | None = None) -> Flow:
        """run: filled as the loop goes; a new one, or the outcome would be mixed."""
        run = ToolRun() if run is None else run
        before = list(request.messages)
        run.messages[:] = before
        try:
            response = yield from self._steps(request, run)
        except LessonError as error:
            error.run = run
            error.retryable = error.retryable and not run.tools_run
            raise
        finally:  # whatever ended it: no call stays open
            run.messages[:] = before + close_open_calls(run.messages[len(before) :], NOT_RUN)
        return response

    def _steps(self, request: Request, run: ToolRun) -> Flow:
        request = request if request.tools else request.replace(tools=list(self.tools.values()))
        streaks, tries = _Streaks(), Tries()
        while True:
            response = yield from self._answer(request, run)
            run.answer = response
            calls = response.tool_calls
            if response.stop in (StopReason.TOOL_USE, StopReason.END) and calls:
                if tries.open:
                    yield from self._healed(response, run)
                place = len(run.messages) - 1
                planned = yield from self._run_calls(calls, run)
                results = [self._result(each) for each in planned]
                run.messages.append(Message(role="user", parts=list[Part](results)))
                for index, result in enumerate(results):
                    yield Emit(PartDone(index, result))
                yield from self._report(run, response, results, planned)
                began = tries.count(calls, [each.outcome for each in planned], place)
                self._limit(streaks, planned, results, run)
                self._limit_tries(tries, results, run)
                if began is not None and self.history == "fold" and may_fold(run.messages[began:]):
                    run.folded += place - began
                    del run.messages[began:place]
                if request.tool_choice not in (None, "auto", "none"):
                    request = request.replace(tool_choice=None)
            else:
                if response.stop is not StopReason.PAUSE:
                    run.messages[-1:] = close_open_calls(run.messages[-1:], UNFINISHED)
                yield from self._report(run, response, [], [])
                if response.stop is not StopReason.PAUSE:
                    return response

    def _answer(self, request: Request, run: ToolRun) -> Flow:
        """One answer, in as many hops as the service makes of it. Its message is in the history afterwards."""
        seen: list[list[Any]] = []
        whole: Response | None = None
        while True:
            if run.steps >= self.max_steps:
                raise MaxSteps(
                    f"asked {run.steps} times, and the model still wants to go on; raise max_steps, or go on from "
                    "error.run.messages", run=run, partial=run.answer,
                )  # fmt: skip
            run.steps += 1
            try:
                hop: Response = yield Call(self._providers[0], request.replace(messages=list(run.messages)))
            except LessonError as error:
                _add(run, spent(error))
                raise
            _add(run, total((hop.usage, hop.retried)))
            if whole is None:
                run.messages.append(hop.message)
            else:
                hop = _joined(whole, hop)
                run.messages[-1] = hop.message
            token = continuation(hop.message)
            if hop.stop is not StopReason.PAUSE or token is None:
                return hop
            words = [value for key, value in (token.raw or {}).items() if "token" in key.lower()]  # beside it stands an id,
            if words in seen:  # which is another one in each hop
                raise ProtocolError("the service sent the same continuation token twice: it would never end", partial=hop)
            seen.append(words)
            whole = hop

    # ------------------------------------------------------------ calls

    def execute(self, calls: Sequence[ToolCall], run: ToolRun) -> Generator[Effect, Any, list[ToolResult]]:
        """Only run some calls, as the loop would: one result for each, in their order."""
        planned = yield from self._run_calls(calls, run)
        return [self._result(each) for each in planned]

    def _run_calls(self, calls: Sequence[ToolCall], run: ToolRun) -> Generator[Effect, Any, list[_Planned]]:
        """Check, ask for approval, run together. One outcome per call, in their order."""
        planned = [self._plan(call) for call in calls]
        if self.approve is not None:
            for place, each in enumerate(planned):
                if each.job is not None:
                    planned[place] = yield from self._approved(each)
        ready = [each for each in planned if each.job is not None]
        effect = RunTools([cast(Any, each.job) for each in ready], [each.timeout for each in ready], self.parallel)
        run.tools_run += len(ready)
        outcomes = effect.outcomes
        try:
            outcomes = yield effect
        except GeneratorExit:  # interrupted: what has been done must not be lost, nor be called undone
            for each, outcome in zip(ready, list(outcomes), strict=True):
                each.outcome = outcome
            run.messages.append(Message(role="user", parts=[self._result(each) for each in planned]))
            raise
        for each, outcome in zip(ready, outcomes, strict=True):
            each.outcome = outcome
        return planned

    def _plan(self, call: ToolCall) -> _Planned:
        note = ""
        try:
            if call.name not in self.tools:
                raise unknown_tool(call.name, self.tools)
            if call.args is None:
                if not self.repair:
                    raise bad_format(call)
                call, note = read_again(call)
            found = self.tools[call.name]
            bound = found.bind(call.args or {})
        except Exception as error:  # a validator of the user's own may raise anything
            return _Planned(call, outcome=error)
        timeout = self.timeout if found.timeout is None else found.timeout
        return _Planned(call, partial(found.function, *bound.args, **bound.kwargs), timeout, note=note)

    def _approved(self, planned: _Planned) -> Generator[Effect, Any, _Planned]:
        call = planned.call
        said = yield Do(partial(cast(Approver, self.approve), call))
        if isinstance(said, bool):
            said = Decision(said)
        if not isinstance(said, Decision):
            raise TypeError(f"approve must return True, False or a Decision, not {said!r}")
        if not said.approved:
            why = f" {said.feedback}" if said.feedback else ""
            return _Planned(call, outcome=CallFault(f"{call.name} was not run: the user did not allow it.{why}"))
        if said.args is None or said.args == call.args:
            return planned
        edited = self._plan(call.model_copy(update={"args": said.args}))
        edited.note = f"[The user changed the arguments before the run: {json.dumps(said.args, ensure_ascii=False)}]\n"
        return edited

    def _result(self, planned: _Planned) -> ToolResult:
        call, outcome = planned.call, planned.outcome
        is_error = True
        content: Content
        if outcome is PENDING:
            content = INTERRUPTED
        elif isinstance(outcome, CallFault):
            content = str(outcome)
        elif isinstance(outcome, BaseException):
            content = error_text(outcome)
            log.info("tool %s failed: %s", call.name, type(outcome).__name__)
        else:
            try:
                content, is_error = result_content(outcome), False
            except TypeError as error:
                content = str(error)
        content = cut_content(content, self.max_result)
        if planned.note:
            content = planned.note + content if isinstance(content, str) else [Text(text=planned.note), *content]
        return ToolResult(call_id=call.call_id, name=call.name, content=content, is_error=is_error)

    # ------------------------------------------------------------ hooks and limits

    def _report(self, run: ToolRun, response: Response, results: list[ToolResult], planned: list[_Planned]) -> Steps:
        log.debug("step %d: %s, %d tools", run.steps, response.stop, len(results))
        if self.on_step is not None:
            errors = [each.outcome if isinstance(each.outcome, BaseException) else None for each in planned]
            yield Do(partial(self.on_step, Step(run.steps, response, results, errors, run)))

    def _healed(self, response: Response, run: ToolRun) -> Steps:
        used = total((response.usage, response.retried))
        if used is not None:
            run.healing += used
        if self.on_heal is not None:
            yield Do(partial(self.on_heal, response))

    def _limit_tries(self, tries: Tries, results: list[ToolResult], run: ToolRun) -> None:
        name, count = tries.most()
        if self.max_tries is not None and count >= self.max_tries:
            said = next((result.text for result in reversed(results) if result.name == name and result.is_error), "")
            raise MaxSteps(f"{name} was called in vain {count} times in a row; the last time: {said}",
                           run=run, partial=run.answer)  # fmt: skip

    def _limit(self, streaks: _Streaks, planned: list[_Planned], results: list[ToolResult], run: ToolRun) -> None:
        streaks.count(planned, results)
        for limit, length, what in (
            (self.max_faults, streaks.faults, "only faulty calls"),
            (self.max_repeats, streaks.repeats, "the same calls with the same results"),
        ):
            if limit is not None and length >= limit:
                raise MaxSteps(f"{length} steps in a row had {what}", run=run, partial=run.answer)


@dataclass(slots=True)
class _Streaks:
    """How many steps in a row had only faults, or the same calls and results."""

    faults: int = 0
    repeats: int = 0
    last: list[tuple[str, str, str]] = field(default_factory=list)

    def count(self, planned: list[_Planned], results: list[ToolResult]) -> None:
        now = [(each.call.name, each.call.raw_args, result.text) for each, result in zip(planned, results, strict=True)]
        self.repeats = self.repeats + 1 if now == self.last else 1
        self.faults = self.faults + 1 if all(isinstance(each.outcome, CallFault) for each in planned) else 0
        self.last = now


def _add(run: ToolRun, usage: Usage | None) -> None:
    if usage is not None:
        run.usage += usage


def _toolbox(tools: Tools) -> dict[str, FunctionTool[..., Any]]:
    """The tools by name, each with its schema and its checks."""
    named = tools.items() if isinstance(tools, Mapping) else ((None, each) for each in tools)
    box: dict[str, FunctionTool[..., Any]] = {}
    for name, target in named:
        if not callable(target):
            raise TypeError(f"{target!r} is no function; a tool of the loop must be one")
        made = target if isinstance(target, FunctionTool) else tool(target, name=name)
        if name is not None and made.name != name:
            made = made.model_copy(update={"name": name})
        if made.name in box:
            raise ValueError(f"two tools have the name {made.name!r}")
        box[made.name] = made
    return box


# ---------------------------------------------------------------- answers in several hops


def continuation(message: Message) -> Opaque | None:
    """The continuation token at the end of a message that is not whole yet; None if there is none."""
    last = message.parts[-1] if message.parts else None
    return last if isinstance(last, Opaque) and last.kind.startswith("continuation") else None


def _joined(first: Response, second: Response) -> Response:
    """Two hops of one answer as one: the parts of both without the first one's token, the usage of both."""
    parts = [*first.message.parts[:-1], *second.message.parts]
    changes = {
        "message": Message(role="assistant", parts=parts),
        "usage": total((first.usage, second.usage)),
        "retried": total((first.retried, second.retried)),
    }
    return second.model_copy(update=changes)


# ---------------------------------------------------------------- four ways to run it


def run_tools(
    provider: Provider, request: Request, tools: Tools = (), max_steps: int = 8, *, run: ToolRun | None = None,
    **options: Unpack[Options],
) -> ToolRun:  # fmt: skip
    """Run the loop to its end. Options: see ToolLoop.

    run: a ToolRun of your own, filled as the loop goes: after Ctrl-C its `messages` can be sent again. Every LessonError
    that ends the loop carries it too (`error.run`).
    """
    loop = _loop(False, provider, tools, max_steps, options)
    run = ToolRun() if run is None else run
    run_whole(loop.flow(request, run), loop._sleep)
    return run


async def arun_tools(
    provider: AsyncProvider, request: Request, tools: Tools = (), max_steps: int = 8, *, run: ToolRun | None = None,
    **options: Unpack[Options],
) -> ToolRun:  # fmt: skip
    """The same in the async colour. Tools may be coroutine functions; plain ones run in threads."""
    loop = _loop(True, provider, tools, max_steps, options)
    run = ToolRun() if run is None else run
    await arun(loop.flow(request, run), loop._sleep)
    return run


def stream_tools(
    provider: Provider, request: Request, tools: Tools = (), max_steps: int = 8, *, run: ToolRun | None = None,
    **options: Unpack[Options],
) -> ToolStream:  # fmt: skip
    """Run the loop as a stream: the events of all answers, a PartDone(ToolResult) for each result, and one Done at the end.
    `index` begins anew with each answer."""
    loop = _loop(False, provider, tools, max_steps, options)
    run = ToolRun() if run is None else run
    return ToolStream(run_stream(loop.flow(request, run), loop._sleep), run)


def astream_tools(
    provider: AsyncProvider, request: Request, tools: Tools = (), max_steps: int = 8, *, run: ToolRun | None = None,
    **options: Unpack[Options],
) -> AsyncToolStream:  # fmt: skip
    """The same in the async colour."""
    loop = _loop(True, provider, tools, max_steps, options)
    run = ToolRun() if run is None else run
    return AsyncToolStream(arun_stream(loop.flow(request, run), loop._sleep), run)


def _loop(asynchronous: bool, provider: Any, tools: Tools, max_steps: int, options: Options) -> ToolLoop[Any]:
    loop: ToolLoop[Any] = ToolLoop(provider, tools, max_steps, **options)
    if loop.is_async != asynchronous:
        wanted = "arun_tools or astream_tools" if loop.is_async else "run_tools or stream_tools"
        raise TypeError(f"{loop.name} is {'a' if loop.is_async else ''}synchronous: use {wanted}")
    return loop


class ToolStream:
    """The events of a run, and the run itself, which is filled as they come. Closing it ends the run."""

    def __init__(self, events: Generator[Event, None, None], run: ToolRun) -> None:
        self._events = events
        self.run = run

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def close(self) -> None:
        """End the run: the connection is closed, tools are abandoned, the history is left in order."""
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncToolStream:
    """The same in the async colour: `async with`, `async for`."""

    def __init__(self, events: AsyncGenerator[Event, None], run: ToolRun) -> None:
        self._events = events
        self.run = run

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        return await anext(self._events)

    async def aclose(self) -> None:
        """End the run: the connection is closed, tasks are cancelled, the history is left in order."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


__all__ = [
    "INTERRUPTED",
    "UNFINISHED",
    "AsyncToolStream",
    "Decision",
    "Options",
    "Step",
    "ToolLoop",
    "ToolRun",
    "ToolStream",
    "arun_tools",
    "astream_tools",
    "run_tools",
    "stream_tools",
]
