"""The error tree: who inherits from whom, what each error knows, and what it says."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

from lessonlib import errors
from lessonlib.errors import (
    APIError,
    CircuitOpen,
    EventTooLarge,
    IncompleteStream,
    InvalidRequest,
    LessonError,
    MaxSteps,
    NotAStream,
    PromptTooLong,
    ProtocolError,
    TransportError,
    TransportTimeout,
    is_retryable,
)
from lessonlib.types import Message, Response, StopReason

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, LessonError)]
PARTIAL = Response(id="r", message=Message.assistant("Half"), stop=StopReason.OTHER)


def test_the_tree_in_the_module_docstring_is_the_tree() -> None:
    """Name and depth of every class, in the order of the drawing."""
    drawn: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    ([│ ├└─]*)([A-Z]\w+Error|[A-Z]\w+)(?:  |$)", line)
        if match is not None:
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            drawn[match[2]] = path[depth - 1] if depth else "Exception"
    assert drawn == {kind.__name__: kind.__mro__[1].__name__ for kind in CLASSES}


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (LessonError("m"), False),
        (APIError("m", status=429), False),  # the wire format decides, not the class
        (APIError("m", status=429, retryable=True), True),
        (IncompleteStream("m"), True),
        (ProtocolError("m"), False),
        (EventTooLarge("m"), False),
        (NotAStream("m"), False),
        (TransportError("m"), True),
        (TransportTimeout("m"), True),
        (InvalidRequest("m"), False),
        (CircuitOpen("m"), False),
        (PromptTooLong("m"), False),
        (MaxSteps("m"), False),
        (ValueError("m"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_whether_a_retry_can_help(error: BaseException, retryable: bool) -> None:
    assert is_retryable(error) is retryable


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_can_be_made_from_nothing_and_carries_what_had_arrived(kind: type[LessonError]) -> None:
    error = kind()
    assert [error.message, error.partial, error.retry_after, error.attempts, error.retries, error.run] == [
        "",
        None,
        None,
        [],
        0,
        None,
    ]
    error.partial = PARTIAL
    assert error.partial.text == "Half"


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_can_be_copied_and_sent_to_another_process(kind: type[LessonError]) -> None:
    error = kind("what happened")
    error.retry_after, error.partial, error.attempts = 1.5, PARTIAL, [TransportError("before")]
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert [twin.message, twin.retryable, twin.retry_after, twin.partial] == [
            "what happened",
            error.retryable,
            1.5,
            PARTIAL,
        ]
        assert [str(each) for each in twin.attempts] == ["before"]


def test_attempts_are_not_shared_between_errors() -> None:
    assert LessonError().attempts is not LessonError().attempts


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (APIError("busy", status=529, type="overloaded_error"), "HTTP 529, overloaded_error: busy"),
        (APIError("no money", status=429, type="insufficient_quota", code="insufficient_quota"),
         "HTTP 429, insufficient_quota: no money"),
        (APIError("m", status=400, type="invalid_request_error", code="bad"), "HTTP 400, invalid_request_error, bad: m"),
        (APIError("busy", type="overloaded_error"), "error inside a 200, overloaded_error: busy"),
        (APIError(status=500), "HTTP 500"),
        (IncompleteStream("the stream ended"), "the stream ended"),
    ],
)  # fmt: skip
def test_what_an_error_says(error: LessonError, text: str) -> None:
    assert str(error) == text


def test_an_error_of_the_service_keeps_the_services_own_words() -> None:
    error = APIError("m", status=403, type="t", code="c", refusal=True, body={"x": 1}, request_id="req_1", retry_after=2.0)
    assert [error.status, error.type, error.code, error.refusal, error.body, error.request_id, error.retry_after] == [
        403, "t", "c", True, {"x": 1}, "req_1", 2.0,
    ]  # fmt: skip


def test_a_request_that_cannot_be_written_is_a_value_error_too() -> None:
    """So code that checks its input with `except ValueError` meets it."""
    with pytest.raises(ValueError, match="no model"):
        raise InvalidRequest("no model")


def test_what_only_one_kind_of_error_knows() -> None:
    assert [TransportTimeout("m", phase="idle").phase, TransportError("m").phase] == ["idle", "read"]
    assert [NotAStream("m", content_type="text/html", body="<html>").body, NotAStream("m").content_type] == ["<html>", ""]
    assert [PromptTooLong("m", tokens=9, limit=8).tokens, PromptTooLong("m").limit] == [9, 0]
    assert MaxSteps("m", run="a run", partial=PARTIAL).run == "a run"
