"""Providers, clocks and loops that do as they are told: tests of policies need no network and no waiting.

`Fake("Hi")` answers once; `Fake(overloaded(), "Hi")` fails, then answers; `Fake(said("a", "b", then=cut()))` shows two
pieces and breaks off. `AFake` is the same in the async colour. `both` runs one test body over both and compares.

What this file does not do: it knows no wire format. Policies see only Requests, events, Responses and errors.
"""

from __future__ import annotations

import asyncio
import copy
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lessonlib.errors import APIError, IncompleteStream, LessonError
from lessonlib.types import (
    Done,
    Event,
    Message,
    PartDone,
    Request,
    Response,
    StopReason,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)

T = TypeVar("T")

# ---------------------------------------------------------------- what a fake says


@dataclass
class Turn:
    """One answer: the events that are shown, then how it ends."""

    events: list[Event]
    outcome: Response | BaseException


def answer(text: str = "", *calls: ToolCall, stop: StopReason | None = None, tokens: int = 10, **fields: Any) -> Response:
    """A Response with a text and calls; it stops for the calls if there are any."""
    parts = [*([Text(text=text)] if text else []), *calls]
    reason = stop or (StopReason.TOOL_USE if calls else StopReason.END)
    usage = Usage(input_tokens=tokens, output_tokens=1)
    return Response(**{"message": Message(role="assistant", parts=parts), "stop": reason, "usage": usage, **fields})


def call(name: str, call_id: str = "c1", /, **args: Any) -> ToolCall:
    """A call that the model makes."""
    return ToolCall(call_id=call_id, name=name, args=args)


def broken_call(name: str, raw: str, call_id: str = "c1", problem: str = "the arguments are not valid JSON") -> ToolCall:
    """A call whose arguments are no JSON."""
    return ToolCall(call_id=call_id, name=name, raw_args=raw, args_error=problem)


def said(*pieces: str, then: Response | BaseException | None = None) -> Turn:
    """Pieces of text, then an error, or (if none is given) the finished answer."""
    events: list[Event] = [TextDelta(0, piece) for piece in pieces]
    return Turn(events, then if then is not None else answer("".join(pieces)))


def overloaded(wait: float | None = None, status: int = 529) -> APIError:
    """The service is overloaded: retryable."""
    return APIError("overloaded", status=status, type="overloaded_error", retryable=True, retry_after=wait)


def limited(wait: float | None = None) -> APIError:
    """Too many requests: retryable."""
    return APIError("slow down", status=429, type="rate_limit_error", retryable=True, retry_after=wait)


def bad_request() -> APIError:
    """The caller's fault: not retryable."""
    return APIError("no", status=400, type="invalid_request_error")


def cut(**fields: Any) -> IncompleteStream:
    """The body ended before the protocol's end."""
    return IncompleteStream("cut", **fields)


Script = str | Response | BaseException | Turn


def as_turn(entry: Script) -> Turn:
    """What one entry of a script means."""
    match entry:
        case str():
            return said(entry)
        case Response():
            parts: list[Event] = [PartDone(index, part) for index, part in enumerate(entry.message.parts)]
            shown: list[Event] = [TextDelta(0, entry.text)] if entry.text else []
            return Turn([*shown, *parts], entry)
        case BaseException():
            return Turn([], entry)
        case _:
            return entry


# ---------------------------------------------------------------- providers


class Fake:
    """A synchronous provider that plays a script, one entry per call; with `for_ever` the last entry repeats.

    requests: what it was asked. open: streams that are not closed yet. starts: the clock's time of each call.
    """

    is_async = False

    def __init__(
        self, *script: Script, name: str = "fake", model: str | None = None, for_ever: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self.script = list(script)
        self.name = name
        self.model = model
        self.for_ever = for_ever
        self.clock = clock
        self.requests: list[Request] = []
        self.starts: list[float] = []
        self.open = 0

    @property
    def calls(self) -> int:
        return len(self.requests)

    def _next(self, request: Request) -> Turn:
        self.requests.append(request)
        if self.clock is not None:
            self.starts.append(self.clock())
        place = min(self.calls, len(self.script)) if self.for_ever else self.calls
        assert place <= len(self.script), f"{self.name} was asked {self.calls} times, but has {len(self.script)} answers"
        entry = self.script[place - 1]
        if self.for_ever and isinstance(entry, LessonError):  # a new one each time: policies write into errors
            entry = copy.copy(entry)
            entry.attempts, entry.retries = [], 0
        return as_turn(entry)

    def generate(self, request: Request) -> Any:
        outcome = self._next(request).outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def stream(self, request: Request) -> Any:
        turn = self._next(request)
        self.open += 1
        try:
            yield from turn.events
            if isinstance(turn.outcome, BaseException):
                raise turn.outcome
            yield Done(turn.outcome)
        finally:
            self.open -= 1


class AFake(Fake):
    """The same, asynchronous. It comes up for air before each event, so that it can be cancelled there."""

    is_async = True

    async def generate(self, request: Request) -> Response:
        await asyncio.sleep(0)
        outcome = self._next(request).outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        await asyncio.sleep(0)
        turn = self._next(request)
        self.open += 1
        try:
            for event in turn.events:
                await asyncio.sleep(0)
                yield event
            await asyncio.sleep(0)
            if isinstance(turn.outcome, BaseException):
                raise turn.outcome
            yield Done(turn.outcome)
        finally:
            self.open -= 1


ASK = Request(messages=[Message.user("Hello")])

# ---------------------------------------------------------------- running a provider of either colour


def whole(provider: Any, request: Request = ASK) -> Response:
    """The whole answer, whatever the colour."""
    if provider.is_async:
        return asyncio.run(provider.generate(request))
    return provider.generate(request)


def streamed(provider: Any, request: Request = ASK, into: list[Event] | None = None) -> list[Event]:
    """All events, whatever the colour. `into` has them even if an error ends the stream."""
    events = [] if into is None else into
    if not provider.is_async:
        for event in provider.stream(request):
            events.append(event)
        return events

    async def read() -> list[Event]:
        async with aclosing(provider.stream(request)) as stream:
            async for event in stream:
                events.append(event)
        return events

    return asyncio.run(read())


def first_event(provider: Any, request: Request = ASK) -> Event:
    """The first event, after which the consumer closes the stream."""
    if not provider.is_async:
        events = provider.stream(request)
        event = next(events)
        events.close()
        return event

    async def peek() -> Event:
        async with aclosing(provider.stream(request)) as events:
            return await anext(events)

    return asyncio.run(peek())


def both(make: Callable[[type[Fake]], T], *bodies: Callable[[T], Any]) -> Any:
    """What `body(make(Fake))` gives, in both colours and for each body; all must agree. A LessonError is given back."""
    results = []
    for body in bodies:
        for colour in (Fake, AFake):
            provider = make(colour)
            try:
                results.append(body(provider))
            except LessonError as error:
                results.append((type(error), str(error)))
    assert all(result == results[0] for result in results), results
    return results[0]


def shown(events: Sequence[Event]) -> str:
    """The text that a consumer has seen."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


# ---------------------------------------------------------------- time


@dataclass
class Clock:
    """Virtual seconds: `sleep` moves them on. `waits` remembers each wait."""

    now: float = 0.0
    waits: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0, f"a wait of {seconds} seconds"
        self.waits.append(seconds)
        self.now += seconds


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when everybody waits, and then at once."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self.now = 0.0
        self._selector: Any
        real = self._selector.select

        def select(timeout: float | None = None) -> Any:
            assert timeout is not None, "deadlock: nothing is due, and nobody can wake anybody"
            self.now += max(0.0, timeout)
            return real(0)

        self._selector.select = select

    def time(self) -> float:
        return self.now


def run_virtually(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Runs `main(loop)` on virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


# ---------------------------------------------------------------- cancelling at every point


def cancel_at(coroutine: Coroutine[Any, Any, T], point: int) -> bool:
    """Steps a coroutine and cancels it at its await number `point`. False if it ended before it came to that."""
    try:
        for _ in range(point + 1):
            coroutine.send(None)
        coroutine.throw(asyncio.CancelledError())
    except StopIteration:
        return False
    except (asyncio.CancelledError, LessonError) as error:
        return isinstance(error, asyncio.CancelledError)
    raise AssertionError("the coroutine swallowed its cancellation")


def cancel_everywhere(make: Callable[[], tuple[Coroutine[Any, Any, Any], Callable[[], None]]]) -> int:
    """Cancels a fresh coroutine at each of its awaits and runs its check each time. Returns the number of awaits."""
    point = 0
    while True:
        coroutine, check = make()
        cancelled = cancel_at(coroutine, point)
        coroutine.close()
        check()
        if not cancelled:
            return point
        point += 1


async def drain(events: AsyncIterator[Event]) -> list[Event]:
    """All events of an async stream, closed properly on the way out."""
    async with aclosing(events) as stream:  # type: ignore[type-var]
        return [event async for event in stream]
