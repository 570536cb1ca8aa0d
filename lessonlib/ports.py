"""The ports of an agent: what its loop needs from outside, each a small protocol with one real implementation.

    model       Provider (flow.py)        Client, and every policy around one
    tools       ToolExecutor              LocalTools: Python functions, run together, checked before they are run
    person      Approver                  Approval: lets harmless calls pass and asks about the others, by their risk
    memory      Memory (memory.py)        ConversationMemory: compaction, and a search over what was compacted

A loop that is written against these four names can change its model, its tools, its terminal or its store without a line of
its own changing. `run_tools` needs none of them spelled out: it takes a provider, functions, and an `approve`.

What this file does not do: it has no loop (tool_loop.py), and no remote tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Literal, Protocol, Unpack, cast

from lessonlib.flow import Effect, Flow, arun, run
from lessonlib.tool_loop import Decision, Options, ToolLoop, ToolRun, Tools
from lessonlib.types import Request, Tool, ToolCall, ToolResult

Risk = Literal["low", "medium", "high"]


class ToolExecutor(Protocol):
    """Runs the calls of one answer together."""

    @property
    def definitions(self) -> list[Tool]:
        """What the model is offered."""
        ...

    def execute_batch(self, calls: Sequence[ToolCall], /) -> list[ToolResult]:
        """One result for each call, in their order, whatever happens to it."""
        ...


class Approver(Protocol):
    """A person, or a rule in a person's place, who decides whether a call may run."""

    def __call__(self, call: ToolCall, /) -> Decision:
        """Whether, with which arguments, and what the model is told if not."""
        ...


# ---------------------------------------------------------------- tools


class LocalTools:
    """Python functions as an executor. What the loop does about faulty calls, slow tools and exceptions, it does as well: it
    is the same code. Options: timeout, max_result, parallel, approve, repair (see ToolLoop)."""

    def __init__(self, tools: Tools, **options: Unpack[Options]) -> None:
        self._tools, self._options = tools, options
        self._tools = self._loop(is_async=True).tools  # made once; what cannot be a tool is refused here

    def _loop(self, *, is_async: bool) -> ToolLoop[Any]:
        return ToolLoop(cast(Any, _Nobody(is_async)), self._tools, **self._options)

    @property
    def definitions(self) -> list[Tool]:
        """The tools with their schemas."""
        return [cast(Tool, each) for each in cast(Mapping[str, Any], self._tools).values()]

    def execute_batch(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Run the calls in threads, and wait for all of them."""
        return cast(list[ToolResult], run(self._batch(self._loop(is_async=False), calls)))

    async def aexecute_batch(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """The same in the async colour: coroutine functions run as tasks."""
        return cast(list[ToolResult], await arun(self._batch(self._loop(is_async=True), calls)))

    @staticmethod
    def _batch(loop: ToolLoop[Any], calls: Sequence[ToolCall]) -> Flow:
        def flow() -> Generator[Effect, Any, Any]:
            return (yield from loop.execute(calls, ToolRun()))

        return flow()


class _Nobody:
    """A provider for a loop that only runs tools."""

    name = "nobody"

    def __init__(self, is_async: bool) -> None:
        self.is_async = is_async

    def generate(self, request: Request, /) -> Any:
        raise AssertionError("an executor asks no model")

    stream = generate


# ---------------------------------------------------------------- approval


class Approval:
    """Lets calls of low risk pass and asks about the others; `run_tools(..., approve=Approval({"refund": "high"}))`.

    risks: by the tool's name. default: of tools that are not listed: what nobody has thought about is not harmless.
    ask: how to ask: is given the call and its risk, and returns True, False, or a Decision with feedback for the model. The
        default asks on the terminal.
    """

    def __init__(
        self,
        risks: Mapping[str, Risk] | None = None,
        *,
        default: Risk = "high",
        ask: Callable[[ToolCall, Risk], bool | Decision] | None = None,
    ) -> None:
        self.risks = dict(risks or {})
        self.default: Risk = default
        self._ask = ask or on_terminal

    def risk(self, call: ToolCall) -> Risk:
        """The risk of a call."""
        return self.risks.get(call.name, self.default)

    def __call__(self, call: ToolCall) -> Decision:
        risk = self.risk(call)
        if risk == "low":
            return Decision(True)
        said = self._ask(call, risk)
        return said if isinstance(said, Decision) else Decision(said)

    async def aask(self, call: ToolCall) -> Decision:
        """The same without holding the event loop up while a person thinks: `approve=approval.aask` in the async colour."""
        return await asyncio.to_thread(self, call)


def on_terminal(call: ToolCall, risk: Risk, read: Callable[[str], str] = input) -> Decision:
    """Ask on the terminal. "y" lets the call run; anything else refuses it, and more than a "n" is told to the model."""
    said = read(f"{call.name}({call.raw_args})  risk: {risk}\nRun it? [y / n / what to do instead] ").strip()
    if said.lower() in ("y", "yes"):
        return Decision(True)
    return Decision(False, "" if said.lower() in ("", "n", "no") else said)
