"""Everything that can go wrong, as one tree. Each error knows whether asking again can help.

    LessonError                 retryable, retry_after (seconds), partial (a Response: what had arrived), attempts
    ├── APIError                the service said no: an HTTP status, or an error inside a stream that began with 200
    ├── IncompleteStream        the body ended, but the protocol's own end never came
    ├── ProtocolError           the events contradict each other, or are not JSON
    │   └── EventTooLarge       one server-sent event passed the size limit
    ├── NotAStream              status 200, but the body is not what was asked for (an HTML page, JSON instead of events)
    ├── TransportError          the connection failed: refused, reset, cut
    │   └── TransportTimeout    a connect, read, idle or total timeout passed
    ├── InvalidRequest          the request cannot be written for this wire format; nothing was sent (also a ValueError)
    ├── CircuitOpen             a breaker refuses calls for a while; nothing was sent
    ├── PromptTooLong           the prompt does not fit the model's window; nothing was sent
    ├── SpendLimit              the call could pass a cap on spending; nothing was sent
    └── MaxSteps                a tool loop reached its limit; `run` is what it did so far

Whose fault decides the class; what to do is in `retryable`. A stream that has already shown something must not be
retried silently even if the error is retryable: that is the caller's knowledge, not the error's (`Call.started` in flow.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lessonlib.types import Response


class LessonError(Exception):
    """Base of all errors that the library raises on purpose.

    retryable: asking again, unchanged, can help.
    retry_after: seconds that the server asked to wait, None if it did not say.
    partial: what had arrived, as a Response none of whose calls can be run; None if nothing had.
    attempts: the errors of the attempts before this one, oldest first (filled by Retry and Fallback).
    retries: how often a Retry has asked again already; one further out takes it into account, so that two do not multiply.
    run: when the error ended a tool loop, its ToolRun so far: nothing that was paid for is lost. Else None.
    """

    def __init__(
        self,
        message: str = "",
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        partial: Response | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.partial = partial
        self.attempts: list[LessonError] = []
        self.retries = 0
        self.run: Any = None


class APIError(LessonError):
    """The service answered with an error.

    status: the HTTP status; 200 when the error came inside a stream.
    type, code: the vendor's own words ("rate_limit_error", "insufficient_quota"), None if it gave none.
    refusal: the error is a policy block: the model will not answer this, however often it is asked.
    body: the error's JSON as it came, for a look at what we do not know. request_id: for the vendor's support.
    """

    def __init__(
        self,
        message: str = "",
        *,
        status: int = 200,
        type: str | None = None,
        code: str | None = None,
        refusal: bool = False,
        body: Any = None,
        request_id: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        partial: Response | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable, retry_after=retry_after, partial=partial)
        self.status = status
        self.type = type
        self.code = code
        self.refusal = refusal
        self.body = body
        self.request_id = request_id

    def __str__(self) -> str:
        words = [f"HTTP {self.status}" if self.status != 200 else "error inside a 200"]
        words += [word for word in dict.fromkeys((self.type, self.code)) if word]
        return f"{', '.join(words)}: {self.message}" if self.message else ", ".join(words)


class IncompleteStream(LessonError):
    """The stream ended before the protocol's own end. Whatever had arrived is in `partial`; no call in it may be run."""

    def __init__(self, message: str = "", *, retryable: bool = True, partial: Response | None = None) -> None:
        super().__init__(message, retryable=retryable, partial=partial)


class ProtocolError(LessonError):
    """The stream contradicts its own protocol, so nothing that it says can be trusted."""


class EventTooLarge(ProtocolError):
    """One event passed the size limit of the SSE parser (10 MiB unless set otherwise)."""


class NotAStream(LessonError):
    """Status 200, but the body is of another kind than the one asked for. `content_type` and `body` (its beginning)
    say what came."""

    def __init__(
        self, message: str = "", *, content_type: str = "", body: str = "", retryable: bool = False,
        partial: Response | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message, retryable=retryable, partial=partial)
        self.content_type = content_type
        self.body = body


class TransportError(LessonError):
    """The connection failed. The HTTP library's own exception is the `__cause__`.

    phase: "connect" (nothing was sent), "write", "pool" (no free connection), "read" (waiting for the answer, or within a
    whole one), "idle" (within a stream), "total"; the last two of timeouts only.
    """

    def __init__(
        self, message: str = "", *, phase: str = "read", retryable: bool = True, partial: Response | None = None
    ) -> None:
        super().__init__(message, retryable=retryable, partial=partial)
        self.phase = phase


class TransportTimeout(TransportError):
    """A timeout passed; `phase` says which."""


class InvalidRequest(LessonError, ValueError):
    """The request cannot be expressed in this wire format, or its history cannot be repaired. The message says where
    and what to do. Nothing was sent."""


class CircuitOpen(LessonError):
    """A breaker is open; `retry_after` says when it will let a probe through. Another provider may be tried at once."""


class PromptTooLong(LessonError):
    """The prompt does not fit. `tokens` is the count (an estimate for most vendors), `limit` what the model takes."""

    def __init__(self, message: str = "", *, tokens: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.tokens = tokens
        self.limit = limit


class SpendLimit(LessonError):
    """The call could cost more than a cap on spending leaves. The amounts are Decimal: `spent` so far (calls under way
    included), `needed` for this call, `limit`."""

    def __init__(self, message: str = "", *, spent: Any = None, needed: Any = None, limit: Any = None) -> None:
        super().__init__(message)
        self.spent = spent
        self.needed = needed
        self.limit = limit


class MaxSteps(LessonError):
    """A tool loop reached its limit. `run` is the ToolRun so far; its `messages` can be sent again."""

    def __init__(self, message: str = "", *, run: Any = None, partial: Response | None = None) -> None:
        super().__init__(message, partial=partial)
        self.run = run


def is_retryable(error: BaseException) -> bool:
    """Whether asking again can help. False for everything that is not a LessonError."""
    return isinstance(error, LessonError) and error.retryable
