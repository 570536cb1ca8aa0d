"""Lesson 07: `Retry`, a provider around a provider, as the source lesson asks for it.

    Retry(provider, max_attempts=4, base=1.0, cap=10.0, max_wait=60.0, sleep=time.sleep, random=random.random)

What is asked: `generate` and `stream`; only retryable errors are asked again (`is_retryable`); the n-th wait is random in
[0, min(base * 2**n, cap)), by full jitter; a wait that the service asks for is kept exactly, and above `max_wait` the
error is raised at once; a stream is asked again only while nothing of it has been handed on.

What this check does not do: nothing asynchronous, and no real waiting: it brings its own `sleep` and `random`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from lessonlib.errors import APIError, IncompleteStream, LessonError
from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call, method
from lessonlib.types import Done, Message, Request, Response, StopReason, TextDelta

ASK = Request(messages=[Message.user("Is the 10:04 to Ghent on time?")])


# ---------------------------------------------------------------- observe


class _Stop(KeyboardInterrupt):
    """The user's Ctrl-C."""


class Provider:
    """Plays a script: one entry per request. opened: streams that were begun; closed: those that were closed or ended."""

    name, is_async = "scripted", False

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self.script = script
        self.requests = 0
        self.pulled = 0
        self.opened = 0
        self.closed = 0

    def generate(self, request: Request) -> Any:
        entry = self._next()
        if (error := _error(entry)) is not None:
            raise error
        return _response(entry["answer"])

    def stream(self, request: Request) -> Iterator[Any]:
        entry = self._next()
        self.opened += 1
        try:
            for word in entry.get("words", ()):
                self.pulled += 1
                yield TextDelta(0, word)
            if (error := _error(entry)) is not None:
                raise error
            yield Done(_response("".join(entry["words"])))
        finally:
            self.closed += 1

    def _next(self) -> dict[str, Any]:
        self.requests += 1
        if self.requests > len(self.script) + 3:
            raise _Stop  # somebody asks for ever
        return self.script[min(self.requests, len(self.script)) - 1]


def _response(text: str) -> Response:
    return Response(id="r1", message=Message.assistant(text), stop=StopReason.END)


def _error(entry: dict[str, Any]) -> BaseException | None:
    match entry.get("error"):
        case None:
            return None
        case "bug":
            return KeyError("a bug in our own code")
        case "stop":
            return _Stop()
        case "cut":
            return IncompleteStream("the stream ended before its end")
        case status:
            return APIError(
                "invented", status=status, retryable=entry.get("retryable", True), retry_after=entry.get("retry_after")
            )


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """How often it asked, how long it waited, what came out."""
    provider, waits = Provider(given["script"]), list[float]()
    options = {"sleep": waits.append, "random": lambda: given["draw"], **given["options"]}
    retry = call("Retry", learner, provider, **options)
    seen: dict[str, Any] = {"events": []}
    try:
        if given["mode"] == "generate":
            answer = method(retry, "generate", "generate(request)")(ASK)
            seen["outcome"] = answer.text if type(answer) is Response else answer
        else:
            _stream(retry, provider, given, seen)
    except LessonError as error:
        seen["outcome"] = f"{type(error).__name__} {getattr(error, 'status', '')}".strip()
    except (KeyError, _Stop) as error:
        seen["outcome"] = type(error).__name__
    return {**seen, "requests": provider.requests, "waits": [round(float(wait), 6) for wait in waits]}


def _stream(retry: Any, provider: Provider, given: dict[str, Any], seen: dict[str, Any]) -> None:
    events = iter(method(retry, "stream", "stream(request) and gives the events")(ASK))
    if given["mode"] == "first event":
        seen["events"].append(_event(next(events)))
        seen["read from the provider"] = provider.pulled
        close = getattr(events, "close", None)
        if close is not None:
            close()
        seen["streams left open"] = provider.opened - provider.closed
        return
    for event in events:
        seen["events"].append(_event(event))
    seen["outcome"] = "ended"


def _event(event: Any) -> Any:
    return event.text if type(event) is TextDelta else "Done" if type(event) is Done else event


# ---------------------------------------------------------------- probes


def _waits(*waits: float) -> Sign:
    return lambda seen: not seen.raised and seen.value["waits"] == list(waits)


def _requests(test: Callable[[int], bool]) -> Sign:
    return lambda seen: not seen.raised and test(seen.value["requests"])


def _words(seen: Seen) -> str:
    return "; ".join(f"{name}: {value!r}" for name, value in seen.value.items() if value != [] or name == "waits")


def _told(entry: dict[str, Any]) -> str:
    if "answer" in entry:
        return "an answer"
    words = f"{len(entry['words'])} words, then " if entry.get("words") else ""
    match entry.get("error"):
        case None:
            return f"{words}the end"
        case "cut":
            return f"{words}a cut"
        case "bug":
            return "a KeyError of our own"
        case "stop":
            return "Ctrl-C"
        case status:
            final = "" if entry.get("retryable", True) else " (not retryable)"
            wait = f" (retry after {entry['retry_after']:g} s)" if entry.get("retry_after") else ""
            return f"{words}{status}{final}{wait}"


def _probe(
    script: list[dict[str, Any]],
    expected: dict[str, Any],
    belief: str,
    *signs: tuple[Sign, str],
    mode: str = "generate",
    draw: float = 0.5,
    where: str = "",
    **options: Any,
) -> Probe:
    given = {"mode": mode, "script": script, "options": options, "draw": draw}
    full = {"events": [], **expected}
    also = f" ({', '.join(f'{name}={value}' for name, value in options.items())})" if options else ""
    fed = f"{mode}: {'; '.join(map(_told, script))}{also}; random() gives {draw}"
    words = _words(Seen(full))
    return Probe(given, full, fed, where, belief, signs, expected_words=words, found_words=_words)


OVERLOAD: dict[str, Any] = {"error": 529}
BUSY: dict[str, Any] = {"error": 503}
GOOD: dict[str, Any] = {"answer": "on time"}
WORDS = ["It ", "is ", "on time."]


def probes(chance: random.Random) -> Iterator[Probe]:
    """One rule at a time: whole answers, then streams, then scripts by chance."""
    yield from _whole()
    yield from _asked_for()
    yield from _endings()
    yield from _streams()
    for _ in range(20):
        yield _by_chance(chance)


def _whole() -> Iterator[Probe]:
    good = {"outcome": "on time"}
    yield _probe([GOOD], {**good, "requests": 1, "waits": []}, "loses_the_answer", where="the number of requests")
    yield _probe(
        [OVERLOAD, GOOD],
        {**good, "requests": 2, "waits": [0.25]},
        "never_retries",
        (_waits(1.0), "no_draw"),
        (_waits(0.5), "starts_at_two"),
        draw=0.25,
        where="the first wait",
    )
    wrong = {"error": 400, "retryable": False}
    yield _probe(
        [wrong],
        {"outcome": "APIError 400", "requests": 1, "waits": []},
        "hides_the_error",
        (_requests(lambda n: n > 1), "retries_everything"),
        where="the number of requests",
    )
    quota = {"error": 429, "retryable": False}
    yield _probe(
        [quota],
        {"outcome": "APIError 429", "requests": 1, "waits": []},
        "hides_the_error",
        (_requests(lambda n: n > 1), "status_decides"),
        where="a 429 that is not retryable",
    )


def _asked_for() -> Iterator[Probe]:
    wait: dict[str, Any] = {"error": 429, "retry_after": 3.0}
    yield _probe(
        [OVERLOAD, wait, GOOD],
        {"outcome": "on time", "requests": 3, "waits": [0.5, 3.0]},
        "ignores_header",
        (_waits(0.5, 1.5), "jitters_header"),
        (_waits(0.5, 1.0), "ignores_header"),
        (_waits(0.5, 0.5), "no_growth"),
        where="the second wait",
    )
    long: dict[str, Any] = {"error": 429, "retry_after": 40.0}
    yield _probe(
        [long, GOOD],
        {"outcome": "on time", "requests": 2, "waits": [40.0]},
        "clips_the_header",
        (_requests(lambda n: n == 1), "clips_the_header"),
        where="a wait above `cap`, below `max_wait`",
    )
    too_long: dict[str, Any] = {"error": 429, "retry_after": 600.0}
    yield _probe(
        [too_long, GOOD],
        {"outcome": "APIError 429", "requests": 1, "waits": []},
        "clips_the_header",
        (_waits(600.0), "waits_for_ever"),
        (_waits(60.0), "clips_the_header"),
        where="a wait above `max_wait`",
    )
    habit: dict[str, Any] = {"error": 429, "retry_after": 0.0}
    yield _probe(
        [habit, GOOD],
        {"outcome": "on time", "requests": 2, "waits": [0.5]},
        "ignores_header",
        (_waits(0.0), "no_draw"),
        where="a wait of 0 s, which says nothing",
    )


def _endings() -> Iterator[Probe]:
    four = {"outcome": "APIError 503", "requests": 4}
    growth = [0.25, 0.5, 1.0]
    yield _probe(
        [BUSY],
        {**four, "waits": growth},
        "hides_the_error",
        (_requests(lambda n: n == 5), "attempts_as_retries"),
        (_requests(lambda n: n > 5), "attempts_as_retries"),
        (_waits(*growth, 2.0), "sleeps_after_the_last"),
        (lambda seen: len(seen.value["waits"]) == 4, "sleeps_after_the_last"),
        (_waits(0.25, 0.25, 0.25), "no_growth"),
        (_waits(1.0, 2.0, 4.0), "no_draw"),
        (_waits(0.5, 1.0, 2.0), "starts_at_two"),
        (lambda seen: seen.value["waits"] != growth, "no_growth"),
        draw=0.25,
        where="all attempts fail",
    )
    yield _probe([BUSY], {**four, "waits": [1.0, 2.0, 2.5]}, "no_cap", draw=0.25, base=4.0, cap=10.0, where="the third wait")
    yield _probe(
        [BUSY],
        {"outcome": "APIError 503", "requests": 1, "waits": []},
        "attempts_as_retries",
        max_attempts=1,
        where="the number of requests",
    )
    for error, name in (("bug", "KeyError"), ("stop", "_Stop")):
        expected = {"outcome": name, "requests": 1, "waits": []}
        yield _probe(
            [{"error": error}, GOOD], expected, "catches_everything", where="an exception that is not the service's"
        )


def _streams() -> Iterator[Probe]:
    whole = {"words": WORDS}
    everything = [*WORDS, "Done"]
    yield _probe(
        [whole],
        {"events": everything, "outcome": "ended", "requests": 1, "waits": []},
        "loses_the_answer",
        mode="stream",
        where="the events",
    )
    yield _probe(
        [BUSY, whole],
        {"events": everything, "outcome": "ended", "requests": 2, "waits": [0.5]},
        "never_retries",
        mode="stream",
        where="a stream that fails before its first event",
    )
    yield _probe(
        [whole],
        {"events": WORDS[:1], "read from the provider": 1, "streams left open": 0, "requests": 1, "waits": []},
        "leaves_the_stream_open",
        (lambda seen: not seen.raised and seen.value.get("read from the provider") != 1, "collects_the_stream"),
        mode="first event",
        where="the reader takes one event and closes",
    )
    cut: dict[str, Any] = {"words": WORDS[:2], "error": "cut"}
    yield _probe(
        [BUSY, cut],
        {"events": WORDS[:2], "outcome": "IncompleteStream", "requests": 2, "waits": [0.5]},
        "hides_the_error",
        (_requests(lambda n: n > 2), "retries_after_output"),
        (lambda seen: seen.value.get("outcome") == "ended", "ends_in_silence"),
        mode="stream",
        where="a cut after two words were handed on",
    )
    failed: dict[str, Any] = {"words": [], "error": 400, "retryable": False}
    yield _probe(
        [failed],
        {"outcome": "APIError 400", "requests": 1, "waits": []},
        "ends_in_silence",
        (_requests(lambda n: n > 1), "retries_everything"),
        mode="stream",
        where="the number of requests",
    )
    yield _probe(
        [BUSY],
        {"outcome": "APIError 503", "requests": 4, "waits": [0.5, 1.0, 2.0]},
        "ends_in_silence",
        (_requests(lambda n: n > 4), "attempts_as_retries"),
        (lambda seen: len(seen.value["waits"]) == 4, "sleeps_after_the_last"),
        mode="stream",
        where="all attempts fail",
    )


def _by_chance(chance: random.Random) -> Probe:
    """A few failures, then an answer: full jitter, capped, with waits of the service's here and there."""
    draw, waits, script = chance.randrange(1, 1000) / 1000, [], []
    for n in range(chance.randrange(4)):
        asked = chance.choice((None, None, 2.0, 7.5))
        script.append({"error": chance.choice((429, 503, 529)), **({"retry_after": asked} if asked else {})})
        waits.append(round(asked if asked else draw * min(2.0 * 2**n, 5.0), 6))
    expected = {"outcome": "on time", "requests": len(script) + 1, "waits": waits}
    return _probe([*script, GOOD], expected, "no_cap", draw=draw, base=2.0, cap=5.0, where="the waits")


check = Check.of("retry", observe, probes)
