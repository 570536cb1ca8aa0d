"""Lesson 11: `MyFallback(providers)`, a provider that asks the next service when one cannot answer.

What is asked: `generate` and `stream`. Overload, server errors, a used-up quota (429), broken connections and broken
streams go on; a wrong request or key (400, 401) is shown; once an event was handed on, nothing goes on. When nobody
answers, the last error is raised. The Response that comes out is the one that was given, and says who answered.

What this check does not do: no hand-over, no look at what the next model takes, nothing asynchronous.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from lessonlib.errors import APIError, IncompleteStream, LessonError, TransportError
from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, method
from lessonlib.types import Done, Message, Request, Response, StopReason, TextDelta, Usage

ASK = Request(messages=[Message.user("Is the 10:04 to Ghent on time?")])
WORDS = ["It ", "is."]
USED = Usage(input_tokens=12, output_tokens=3)


class _Stop(KeyboardInterrupt):
    """The user's Ctrl-C."""


class Service:
    """One service of the chain: what it says is an answer, an error, or words and then an error."""

    is_async = False

    def __init__(self, name: str, says: dict[str, Any]) -> None:
        self.name = name
        self.says = says
        self.asked = 0
        self.pulled = 0
        self.left_open = 0

    def generate(self, request: Request) -> Response:
        self.asked += 1
        if (error := _error(self.says)) is not None:
            raise error
        return self._answer()

    def stream(self, request: Request) -> Iterator[Any]:
        self.asked += 1
        self.left_open += 1
        try:
            for word in self.says.get("words", () if "error" in self.says else WORDS):
                self.pulled += 1
                yield TextDelta(0, word)
            if (error := _error(self.says)) is not None:
                raise error
            yield Done(self._answer())
        finally:
            self.left_open -= 1

    def _answer(self) -> Response:
        return Response(
            id=f"r-{self.name}",
            message=Message.assistant("It is."),
            stop=StopReason(self.says.get("stop", "end")),
            usage=USED,
            raw={"id": self.name},
        )


def _error(says: dict[str, Any]) -> BaseException | None:
    match says.get("error"):
        case None:
            return None
        case "cut":
            return IncompleteStream("cut")
        case "refused":
            return TransportError("connection refused", phase="connect")
        case "reset":
            return TransportError("reset", phase="read", retryable=False)
        case "bug":
            return KeyError("a bug of our own")
        case "stop":
            return _Stop()
        case status:
            return APIError("invented", status=status, retryable=says.get("retryable", status in (429, 500, 503, 529)))


# ---------------------------------------------------------------- observe


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """Who was asked how often, and what came out."""
    services = [Service(name, says) for name, says in zip("abcde", given["services"], strict=False)]
    chain = call("the fallback", learner, services)
    seen: dict[str, Any] = {"events": []}
    try:
        if given["mode"] == "generate":
            seen["answer"] = _told(method(chain, "generate", "generate(request)")(ASK))
        else:
            _stream(method(chain, "stream", "stream(request)")(ASK), services, given["mode"], seen)
    except LessonError as error:
        seen["answer"] = f"{type(error).__name__} {getattr(error, 'status', '')}".strip()
    except (KeyError, _Stop) as error:
        seen["answer"] = type(error).__name__
    return {**seen, "asked": [service.asked for service in services]}


def _stream(events: Any, services: list[Service], mode: str, seen: dict[str, Any]) -> None:
    events = iter(events)
    for event in events:
        seen["events"].append(event.text if type(event) is TextDelta else "Done")
        if type(event) is Done:
            seen["answer"] = _told(event.response)
        if mode == "first event":
            seen["read"] = sum(service.pulled for service in services)
            getattr(events, "close", lambda: None)()  # an iterator without it leaves the stream open
            seen["left open"] = sum(service.left_open for service in services)
            return


def _told(response: Any) -> Any:
    if type(response) is not Response:
        return response
    kept = (response.text, response.usage, f"r-{(response.raw or {}).get('id')}") == ("It is.", USED, response.id)
    return f"{response.id} by {response.provider or 'nobody'}{'' if kept else ', changed'}"


# ---------------------------------------------------------------- probes


def _probe(
    services: Sequence[dict[str, Any]],
    expected: dict[str, Any],
    belief: str,
    *signs: tuple[Sign, str],
    mode: str = "generate",
    where: str,
) -> Probe:
    fed = f"{mode}: " + "; ".join(f"{name} {_words(says)}" for name, says in zip("abcde", services, strict=False))
    full = {"events": [], **expected}
    given = {"mode": mode, "services": list(services)}
    return Probe(given, full, fed, where, belief, signs, expected_words=_shown(Seen(full)), found_words=_shown)


def _words(says: dict[str, Any]) -> str:
    said = f"says {len(says['words'])} words, then " if says.get("words") else ""
    match says.get("error"):
        case None:
            return f"{said}answers"
        case "cut":
            return f"{said}is cut off"
        case "refused":
            return "refuses the connection"
        case "reset":
            return "resets the connection"
        case "bug":
            return "raises KeyError, a bug of our own"
        case "stop":
            return "is interrupted by Ctrl-C"
        case status:
            return f"{said}{status}{' (quota used up)' if says.get('retryable') is False and status == 429 else ''}"


def _shown(seen: Seen) -> str:
    return "; ".join(f"{name}: {value!r}" for name, value in seen.value.items() if value != [])


def _asked(*counts: int) -> Sign:
    return lambda seen: not seen.raised and seen.value["asked"] == list(counts)


def _answered(words: str) -> Sign:
    return lambda seen: not seen.raised and str(seen.value.get("answer")).startswith(words)


GOOD: dict[str, Any] = {}
EVERYTHING = [*WORDS, "Done"]


def probes(chance: random.Random) -> Iterator[Probe]:
    """What goes on, what does not, who gets the blame; then streams, then chains by chance."""
    yield _probe(
        [GOOD, GOOD],
        {"answer": "r-a by a", "asked": [1, 0]},
        "answer_changed",
        (_asked(1, 1), "asks_all"),
        (_answered("r-a by nobody"), "nobody_named"),
        (_answered("r-b"), "asks_all"),
        where="who is asked",
    )
    yield _probe(
        [{"error": 529}, GOOD],
        {"answer": "r-b by b", "asked": [1, 1]},
        "never_goes_on",
        (_answered("r-b by nobody"), "nobody_named"),
        (_answered("r-b by a"), "first_named"),
        (lambda seen: not seen.raised and seen.value["asked"][0] > 1, "asks_twice"),
        where="an overload",
    )
    yield from _no_switch()
    yield from _switch()
    down: dict[str, Any] = {"error": 503}
    yield _probe(
        [down, {"error": 529}],
        {"answer": "APIError 529", "asked": [1, 1]},
        "hides_the_error",
        (_answered("APIError 503"), "first_error_wins"),
        where="nobody answers",
    )
    yield _probe(
        [down, {"error": "refused"}, GOOD], {"answer": "r-c by c", "asked": [1, 1, 1]}, "two_only", where="a chain of three"
    )
    for error, name in (("bug", "KeyError"), ("stop", "_Stop")):
        yield _probe(
            [{"error": error}, GOOD],
            {"answer": name, "asked": [1, 0]},
            "catches_everything",
            where="an exception that is not the service's",
        )
    yield from _streams()
    for _ in range(20):
        yield _by_chance(chance)


def _no_switch() -> Iterator[Probe]:
    for status in (401, 400):
        yield _probe(
            [{"error": status}, GOOD],
            {"answer": f"APIError {status}", "asked": [1, 0]},
            "hides_the_error",
            (_asked(1, 1), "any_error_goes_on"),
            where=f"a {status}",
        )


def _switch() -> Iterator[Probe]:
    yield _probe(
        [{"error": 429, "retryable": False}, GOOD],
        {"answer": "r-b by b", "asked": [1, 1]},
        "quota_stops",
        where="a quota that is used up",
    )
    yield _probe(
        [{"error": "refused"}, GOOD], {"answer": "r-b by b", "asked": [1, 1]}, "dead_host_stops", where="no connection"
    )
    yield _probe(
        [{"error": "reset"}, GOOD], {"answer": "r-b by b", "asked": [1, 1]}, "dead_host_stops", where="a broken connection"
    )
    yield _probe(
        [{"error": "cut"}, GOOD], {"answer": "r-b by b", "asked": [1, 1]}, "cut_stops", where="an answer that was cut off"
    )


def _streams() -> Iterator[Probe]:
    yield _probe(
        [GOOD, GOOD],
        {"events": EVERYTHING, "answer": "r-a by a", "asked": [1, 0]},
        "stream_not_passed_on",
        mode="stream",
        where="the events",
    )
    yield _probe(
        [{"error": 529}, GOOD],
        {"events": EVERYTHING, "answer": "r-b by b", "asked": [1, 1]},
        "stream_never_goes_on",
        mode="stream",
        where="a stream that fails before its first event",
    )
    yield _probe(
        [GOOD, GOOD],
        {"events": WORDS[:1], "read": 1, "left open": 0, "asked": [1, 0]},
        "leaves_the_stream_open",
        (lambda seen: not seen.raised and seen.value.get("read") != 1, "collects_the_stream"),
        mode="first event",
        where="the reader takes one event and closes",
    )
    cut: dict[str, Any] = {"words": WORDS[:1], "error": "cut"}
    yield _probe(
        [cut, GOOD],
        {"events": WORDS[:1], "answer": "IncompleteStream", "asked": [1, 0]},
        "ends_in_silence",
        (_asked(1, 1), "switches_in_mid_answer"),
        mode="stream",
        where="a cut after one word was handed on",
    )
    key: dict[str, Any] = {"error": 401}
    yield _probe(
        [key, GOOD],
        {"answer": "APIError 401", "asked": [1, 0]},
        "ends_in_silence",
        (_asked(1, 1), "any_error_goes_on"),
        mode="stream",
        where="a 401 before the first event",
    )
    yield _probe(
        [{"error": 503}, {"error": 529}],
        {"answer": "APIError 529", "asked": [1, 1]},
        "ends_in_silence",
        (_answered("APIError 503"), "first_error_wins"),
        mode="stream",
        where="nobody answers",
    )


def _by_chance(chance: random.Random) -> Probe:
    services: list[dict[str, Any]] = []
    for _ in range(chance.randrange(4)):
        services.append({"error": chance.choice((429, 500, 503, 529, "refused", "cut"))})
    services += [GOOD, GOOD]
    place = len(services) - 2
    name = "abcde"[place]
    return _probe(
        services, {"answer": f"r-{name} by {name}", "asked": [1] * (place + 1) + [0]}, "two_only", where="who answers"
    )


check = Check.of("fallback", observe, probes)
