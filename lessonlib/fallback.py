"""Fallback: when one service cannot answer, ask the next one, and say openly that and why.

    client = Fallback([Retry(Breaker(first)), Retry(Breaker(second))])

Which errors go on: rate limits and used-up quotas (429), server errors (5xx) and overload, broken connections and streams,
an open circuit, and, if `on_refusal` says so, a refusal. Everything else stops here: a wrong key or a bad request would be
wrong everywhere, and another service would only hide it. And never after an event has been handed out (`Call.started`):
half of one answer and half of another are no answer.

A switch is not a repair. Another model has another window, other tools, other manners, so:

* what the next model is known not to take is looked up before it is asked, reported (`Switch.differences`), and, where the
  service would refuse, the provider is passed over (capabilities.py; what is not known is not guessed);
* a request that names a model is refused: models belong to wires;
* the history goes along; each encoder leaves out what only another vendor could read (reasoning, opaque parts). What is lost
  by that can be carried over as text: with `handover` the old model, where it still answers, writes a summary first;
* each switch goes to the log and to `on_switch`, and the Response names who answered.

Why a chain is no breaker, and how to use both: breaker.py.

What this file does not do: it does not retry (put Retry inside), and it does not choose by price or speed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lessonlib import capabilities
from lessonlib.errors import APIError, CircuitOpen, IncompleteStream, InvalidRequest, LessonError, TransportError
from lessonlib.estimate import estimate_tokens
from lessonlib.flow import (
    AnyProvider,
    Call,
    Do,
    Effect,
    Flow,
    P,
    Policy,
    model_of,
    spent,
    total,
    with_attempts,
    with_retried,
)  # fmt: skip
from lessonlib.types import Image, Message, Part, Request, Response, StopReason, Text, ToolResult, Usage

log = logging.getLogger("lessonlib")

HANDOVER = (
    "Another model will continue this conversation and cannot see your reasoning. Write for it, in a few sentences: what "
    "was asked, what is known and decided so far, which tools were called with what outcome, and what remains to be done."
)
"""What the old model is asked to write before a switch, if `handover=True`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that the request needs and the next model is known not to take. blocking: the service would refuse."""

    field: str
    needs: str
    has: str
    blocking: bool = True

    def __str__(self) -> str:
        return f"{self.field} (needs {self.needs}, takes {self.has})"


@dataclass(frozen=True, slots=True)
class Switch:
    """One step along the chain, for `on_switch`.

    before, after: the providers' names. error: what `before` raised; or refusal: the Response in which it declined.
    differences: what `after` is known not to take; if one of them is blocking, `after` is passed over without being asked,
    and the next one is looked at. summary: the hand-over text that goes along, "" without one.
    """

    before: str
    after: str
    error: LessonError | None = None
    refusal: Response | None = None
    differences: list[Difference] = field(default_factory=list)
    summary: str = ""

    @property
    def passed_over(self) -> bool:
        """Whether `after` will not be asked."""
        return any(difference.blocking for difference in self.differences)


def goes_on(error: LessonError) -> bool:
    """Whether another service may do better, by the kind of error. A used-up quota is not retryable, but it is 429."""
    if isinstance(error, APIError):
        return error.retryable or error.status == 429 or error.status >= 500
    if error.run is not None:
        return error.retryable  # it ended a tool loop, whose tools must not run again
    return error.retryable or isinstance(error, (CircuitOpen, IncompleteStream, TransportError))


class Fallback(Policy[P]):
    """Asks `providers` in order until one answers.

    on_refusal: a refusal goes on to the next one too.
    on_switch: called with a `Switch` before the next provider is asked; may be a coroutine function in the async colour.
    go_on: which errors go on. count: tokens of a request, for the check against the next model's window.
    handover: True, or a prompt of your own: the old model writes a summary first. It is asked only after a refusal: a
        service that is down or overloaded writes none.

    When nobody answers, the last error is raised with the earlier ones in `attempts`.
    """

    def __init__(
        self,
        providers: Sequence[P],
        on_refusal: bool = False,
        *,
        on_switch: Callable[[Switch], Any] | None = None,
        go_on: Callable[[LessonError], bool] = goes_on,
        count: Callable[[Request], int] = estimate_tokens,
        handover: bool | str = False,
    ) -> None:
        super().__init__(*providers)
        self.on_refusal = on_refusal
        self.on_switch = on_switch
        self._go_on = go_on
        self._count = count
        self._handover = HANDOVER if handover is True else handover

    def flow(self, request: Request) -> Flow:
        _refuse_model(request)
        failed: list[LessonError] = []
        paid: list[Usage | None] = []  # for answers that were not given: refusals that went on, summaries
        place = 0
        while True:
            provider = self._providers[place]
            call = Call(provider, request)
            response: Response | None = None
            try:
                response = yield call
                final = not (self.on_refusal and response.stop is StopReason.REFUSAL)
            except LessonError as error:
                failed.append(error)
                final = not self._may_follow(error)
            after = None
            if not (final or call.started):
                switch = Switch(provider.name, "", None if response is not None else failed[-1], response)
                after = yield from self._switch(place, request, switch, paid)
            if after is not None:
                paid.append(None if response is None else total((response.usage, response.retried)))
                place, request = after
            elif response is not None:
                return with_retried(_named(response, provider), spent(*failed), *paid)
            else:
                raise with_attempts(failed.pop(), failed)

    def _may_follow(self, error: LessonError) -> bool:
        return self.on_refusal if getattr(error, "refusal", False) else self._go_on(error)

    def _switch(
        self, place: int, request: Request, switch: Switch, paid: list[Usage | None]
    ) -> Generator[Effect, Any, tuple[int, Request] | None]:
        """The next provider that can take the request, and the request as it will be asked; None if there is none."""
        for number in range(place + 1, len(self._providers)):
            after = self._providers[number]
            found = differences(request, model_of(after), self._count)
            switch = replace(switch, after=after.name, differences=found)
            if switch.passed_over:
                yield from self._report(switch)
                continue
            if self._handover and _still_answers(switch):
                summary = yield from self._summary(self._providers[place], request, paid)
                switch = replace(switch, summary=summary)
                request = with_note(request, summary) if summary else request
            yield from self._report(switch)
            return number, request
        return None

    def _summary(self, provider: AnyProvider, request: Request, paid: list[Usage | None]) -> Generator[Effect, Any, str]:
        """What the old model leaves for the new one; "" if it cannot or will not."""
        messages = [*request.messages, Message.user(str(self._handover))]
        ask = request.replace(messages=messages, tool_choice="none" if request.tools else None, output_schema=None)
        try:
            response: Response = yield Call(provider, ask, show=False)
        except LessonError as error:
            log.info("%s wrote no summary (%s)", provider.name, type(error).__name__)
            paid.append(spent(error))
            return ""
        paid.append(total((response.usage, response.retried)))
        return response.text.strip() if response.stop is StopReason.END else ""

    def _report(self, switch: Switch) -> Generator[Effect, Any, None]:
        why = "refusal" if switch.refusal is not None else type(switch.error).__name__ if switch.error else "passed over"
        log.warning("fallback from %s (%s) to %s%s", switch.before, why, switch.after,
                    f", which lacks {'; '.join(map(str, switch.differences))}" if switch.differences else "")  # fmt: skip
        if self.on_switch is not None:
            yield Do(partial(self.on_switch, switch))


def _refuse_model(request: Request) -> None:
    if request.model is not None:
        raise InvalidRequest(
            f"the request names the model {request.model!r}, but models belong to wires: "
            "set the model of each provider in the chain instead"
        )


def _named(response: Response, provider: AnyProvider) -> Response:
    """`response` with the names of who answered, where the provider did not fill them in."""
    names = {
        "provider": response.provider or provider.name,
        "model": response.model or model_of(provider) or "",
    }
    changed = {key: name for key, name in names.items() if name != getattr(response, key)}
    return response.model_copy(update=changed) if changed else response


def _still_answers(switch: Switch) -> bool:
    return switch.refusal is not None or bool(getattr(switch.error, "refusal", False))


def with_note(request: Request, note: str) -> Request:
    """`request` with a text before the last thing that the user said. Results stay first: the encoders see to that."""
    text = Text(text=f"[Summary of the conversation so far, written by the model before you]\n{note}")
    *before, last = request.messages
    if last.role == "user":
        return request.replace(messages=[*before, Message(role="user", parts=[text, *last.parts])])
    return request.replace(messages=[*request.messages, Message(role="user", parts=[text])])


# ---------------------------------------------------------------- what the next model does not take


def differences(request: Request, model: str | None, count: Callable[[Request], int] = estimate_tokens) -> list[Difference]:
    """What `request` needs and `model` is known not to take. What is not known is not reported."""
    able = capabilities.of(model)
    return [*_sizes(request, able, count), *_features(request, able), *_thinking(request, able)]


def _sizes(request: Request, able: capabilities.Capabilities, count: Callable[[Request], int]) -> list[Difference]:
    found = []
    if able.window is not None and (tokens := count(request)) > able.window:
        found.append(Difference("window", f"about {tokens} tokens", f"{able.window}"))
    if able.max_output is not None and (request.max_tokens or 0) > able.max_output:
        found.append(Difference("max_tokens", f"{request.max_tokens}", f"at most {able.max_output}"))
    return found


def _features(request: Request, able: capabilities.Capabilities) -> list[Difference]:
    forced = request.tool_choice not in (None, "auto", "none")
    rows = [
        ("tools", bool(request.tools), able.tools, True),
        ("forced_tool_choice", forced, able.forced_tool_choice, True),
        ("parallel_calls", request.parallel is True, able.parallel_calls, False),
        ("structured_output", request.output_schema is not None, able.structured_output, True),
        ("images", any(_has_image(message.parts) for message in request.messages), able.images, True),
        ("prefill", bool(request.messages) and request.messages[-1].role == "assistant", able.prefill, True),
    ]
    return [Difference(name, "yes", "no", blocking) for name, needed, has, blocking in rows if needed and has is False]


def _has_image(parts: Sequence[Part]) -> bool:
    return any(
        isinstance(part, Image)
        or (isinstance(part, ToolResult) and not isinstance(part.content, str) and _has_image(part.content))
        for part in parts
    )


def _thinking(request: Request, able: capabilities.Capabilities) -> list[Difference]:
    asked = request.reasoning
    if asked is None or able.thinking is None:
        return []
    if asked == "none":
        return [Difference("reasoning", "none", "always thinks")] if able.can_disable_thinking is False else []
    if able.thinking == "none":
        return [Difference("reasoning", f"{asked}", "none", blocking=False)]
    if isinstance(asked, int):
        return [] if able.thinking == "budget" else [Difference("reasoning", f"{asked} tokens", "effort words only")]
    if able.efforts is not None and asked not in able.efforts:
        return [Difference("reasoning", asked, ", ".join(able.efforts))]
    return []
