"""A clock that nobody waits for, and a service that is down when it is told to: what the pictures of the policies run on.

    clock = Clock()
    service = Service("first", clock, down=lambda now: now < 600)
    Retry(service, sleep=clock.sleep).generate(request)       # ten minutes pass at once
    service.asked                                             # when it was asked, in seconds

The policies themselves are the library's own; only time and the service are played.

What this file does not do: no wire format, no bytes (the simulator has those), no threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lessonlib.errors import APIError
from lessonlib.types import Done, Event, Message, Request, Response, StopReason, Usage

REQUEST = Request(messages=[Message.user("Is there a seat on the night train?")])
"""What is asked where it does not matter what is asked."""


@dataclass
class Clock:
    """Seconds that pass only when somebody sleeps."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds


@dataclass
class Service:
    """A provider that answers at once, or, while `down(now)`, is overloaded. asked: when each request came. takes: seconds
    that a failure takes."""

    name: str
    clock: Clock
    down: Callable[[float], bool] = lambda now: False
    takes: float = 0.0
    asked: list[float] = field(default_factory=list)
    is_async: bool = False

    def generate(self, request: Request) -> Response:
        """An answer, or a 529."""
        self.asked.append(self.clock.now)
        if self.down(self.clock.now):
            self.clock.sleep(self.takes)
            raise APIError("Overloaded", status=529, type="overloaded_error", retryable=True)
        return Response(
            message=Message.assistant("Yes."),
            stop=StopReason.END,
            provider=self.name,
            usage=Usage(input_tokens=9, output_tokens=2),
        )

    def stream(self, request: Request) -> Iterator[Event]:
        """The same as a stream."""
        yield Done(self.generate(request))
