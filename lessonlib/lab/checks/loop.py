"""Lesson 08: the tool loop, `my_loop(provider, request, tools, max_steps=8) -> (response, messages)`.

What is asked: ask, run the tools that the answer calls, send the results, until an answer needs none. `provider` has
`generate(request)`, `tools` is {name: function}. The loop returns the last Response and the whole history; at the step limit
it raises MaxSteps. Every call gets one result, in call order, in one user message; what a tool raises, an unknown tool and
arguments that are None become results for the model. Only an answer that stopped for its calls is acted on; a pause is sent
again as it is.

What this check does not do: nothing streamed, nothing at the same time, no approval, no time limit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lessonlib.errors import LessonError
from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, WrongShape, call, told
from lessonlib.types import Message, Opaque, Reasoning, Request, Response, StopReason, Text, ToolCall, ToolResult

WIRE = "anthropic-messages"


class _Endless(BaseException):
    """Somebody asks for ever; nothing that a learner catches by mistake."""


# ---------------------------------------------------------------- what a scripted service says


def _answer(entry: dict[str, Any]) -> Response:
    """The Response for a script's entry: {"say", "think", "calls": [[id, name, args]], "stop", "paused"}."""
    parts: list[Any] = []
    if "think" in entry:
        raw = {"type": "thinking", "thinking": entry["think"], "signature": "c2ln"}
        parts.append(Reasoning(text=entry["think"], wire=WIRE, raw=raw))
    if "say" in entry:
        parts.append(Text(text=entry["say"], wire=WIRE, raw={"type": "text", "text": entry["say"]}))
    for call_id, name, args in entry.get("calls", ()):
        why = None if args is not None else "the arguments are not valid JSON"
        parts.append(ToolCall(call_id=call_id, name=name, args=args, args_error=why, raw_args="" if args is None else "{}"))
    if "paused" in entry:
        parts.append(Opaque(kind="server_tool_use", wire=WIRE, raw={"type": "server_tool_use", "id": entry["paused"]}))
    stop = StopReason(entry.get("stop", "tool_use" if entry.get("calls") else "end"))
    return Response(id="r", message=Message(role="assistant", parts=parts), stop=stop)


class Provider:
    """Plays a script; its last entry is repeated for a while, then the asking is cut short."""

    name, is_async = "scripted", False

    def __init__(self, script: Sequence[dict[str, Any]]) -> None:
        self.script = script
        self.asked: list[list[str]] = []

    def generate(self, request: Request) -> Response:
        self.asked.append([_told(message) for message in request.messages])
        if len(self.asked) > len(self.script) + 12:
            raise _Endless
        return _answer(self.script[min(len(self.asked), len(self.script)) - 1])


def _tools(ran: list[Any]) -> dict[str, Callable[..., str]]:
    def get_weather(city: str) -> str:
        ran.append(["get_weather", city])
        return f"Sunny in {city}."

    def next_train(origin: str, to: str) -> str:
        ran.append(["next_train", origin])
        raise TimeoutError("no answer from the timetable")

    def hold_seat(train: str) -> str:
        ran.append(["hold_seat", train])
        return f"Held on {train}."

    return {"get_weather": get_weather, "next_train": next_train, "hold_seat": hold_seat}


# ---------------------------------------------------------------- observe


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """What was run, what the last request and the history hold, how it ended."""
    ran: list[Any] = []
    provider = Provider(given["script"])
    request = Request(messages=[Message.user("Is it sunny?")])
    seen: dict[str, Any] = {}
    for _ in range(given.get("runs", 1)):
        provider.asked.clear()
        try:
            found = call("the loop", learner, provider, request, _tools(ran), **given.get("options", {}))
            response, messages = _two(found)
            seen = {"ended": response.text or str(response.stop), "history": [_told(message) for message in messages]}
        except LessonError as error:
            seen = {"ended": type(error).__name__}
        except _Endless:
            seen = {"ended": "asked for ever"}
        except (NotImplementedError, WrongShape):
            raise
        except Exception as error:
            seen = {"ended": f"raised {type(error).__name__}: {told(error)}"}
    last = provider.asked[-1] if provider.asked else []
    return {**seen, "requests": len(provider.asked), "ran": ran, "last request": last}


def _two(found: Any) -> tuple[Response, list[Message]]:
    """What the loop returned, as two things or as an object that has them."""
    response, messages = found if isinstance(found, (tuple, list)) and len(found) == 2 else (
        getattr(found, "response", None), getattr(found, "messages", None),
    )  # fmt: skip
    if not isinstance(response, Response) or not isinstance(messages, (list, tuple)):
        raise WrongShape(f"the loop returns (response, messages), not {type(found).__name__}")
    return response, list(messages)


def _told(message: Message) -> str:
    """A message in one line, such as "user: result c1 (error)"."""
    return f"{message.role}: {', '.join(map(_part, message.parts))}"


def _part(part: Any) -> str:
    match part:
        case ToolCall():
            return f"call {part.call_id}"
        case ToolResult():
            return f"result {part.call_id}{' (error)' if part.is_error else ''}: {part.text}"
        case Text():
            return part.text + ("" if part.raw is not None or part.wire is None else " (rebuilt)")
        case Reasoning():
            return "signed thought" if part.raw else "thought without its signature"
        case _:
            return f"{part.kind} as it came" if part.raw else f"{part.kind} without its JSON"


# ---------------------------------------------------------------- probes


USER = "user: Is it sunny?"
DONE: dict[str, Any] = {"say": "Yes."}


def _probe(
    script: Sequence[dict[str, Any]],
    belief: str,
    accept: Callable[[dict[str, Any]], bool],
    *signs: tuple[Sign, str],
    fed: str,
    where: str,
    expected: str,
    remark: Callable[[Any], str | None] | None = None,
    **given: Any,
) -> Probe:
    return Probe(
        {"script": list(script), **given},
        None,
        fed,
        where,
        belief,
        signs,
        accept=accept,
        expected_words=expected,
        found_words=_shown,
        remark=remark,
    )


def _shown(seen: Seen) -> str:
    return "\n".join(
        [
            f"ended: {seen.value['ended']}; {seen.value['requests']} requests; run: {seen.value['ran']}",
            "the last request:",
            *(f"  {line}" for line in seen.value["last request"]),
        ]
    )


def _ended(*words: str) -> Sign:
    return lambda seen: not seen.raised and seen.value["ended"].startswith(words)


def _requests(test: Callable[[int], bool]) -> Sign:
    return lambda seen: not seen.raised and test(seen.value["requests"])


def _last(seen: dict[str, Any]) -> list[str]:
    lines: list[str] = seen["last request"]
    return lines


def _in_last(word: str) -> Sign:
    return lambda seen: not seen.raised and any(word in line for line in _last(seen.value))


def _ran(seen: Seen) -> bool:
    return not seen.raised and seen.value["ran"] != []


def probes(chance: random.Random) -> Iterator[Probe]:
    """One call, then several, then calls that go wrong, then answers that are not for calls, then the limit;
    then whole conversations by chance."""
    yield from _one_call()
    yield from _several()
    yield from _going_wrong()
    yield from _stops()
    yield from _limits()
    for _ in range(4):
        yield _by_chance(chance)


def _one_call() -> Iterator[Probe]:
    yield _probe(
        [DONE],
        "asks_too_often",
        lambda seen: seen["ended"] == "Yes." and seen["requests"] == 1,
        (_ended("raised"), "needs_calls"),
        fed="an answer without calls",
        where="the number of requests",
        expected="one request, and the answer",
    )
    asks = {"think": "Which city?", "say": "I look.", "calls": [["c1", "get_weather", {"city": "Oslo"}]]}
    second = [USER, "assistant: signed thought, I look., call c1", "user: result c1: Sunny in Oslo."]
    yield _probe(
        [asks, DONE],
        "result_lost",
        lambda seen: _last(seen) == second and seen["ended"] == "Yes.",
        (_in_last("rebuilt"), "rebuilds_the_message"),
        (_in_last("without its signature"), "rebuilds_the_message"),
        (lambda seen: not seen.raised and not any("thought" in line for line in _last(seen.value)), "rebuilds_the_message"),
        (_ended("asked for ever"), "result_lost"),
        fed="an answer with a thought, a text and one call; then the last answer",
        where="the second request",
        expected="\n".join(second),
    )
    yield _probe(
        [asks, DONE],
        "answer_not_in_history",
        lambda seen: seen["history"] == [*second, "assistant: Yes."],
        fed="the same",
        where="the history that is returned",
        expected="\n".join([*second, "assistant: Yes."]),
    )
    yield _probe(
        [asks, DONE],
        "history_mutated",
        lambda seen: _last(seen) == second,
        fed="the same request, run twice",
        where="the second run's last request",
        expected="\n".join(second),
        runs=2,
    )


def _several() -> Iterator[Probe]:
    two = {"calls": [["c1", "get_weather", {"city": "Oslo"}], ["c2", "get_weather", {"city": "Rome"}]]}
    right = [USER, "assistant: call c1, call c2", "user: result c1: Sunny in Oslo., result c2: Sunny in Rome."]

    def apart(seen: Seen) -> bool:
        return not seen.raised and sum("result" in line for line in _last(seen.value)) > 1

    def one_missing(seen: Seen) -> bool:
        return not seen.raised and not all(
            any(f"result {name}" in line for line in _last(seen.value)) for name in ("c1", "c2")
        )

    yield _probe(
        [two, DONE],
        "wrong_order",
        lambda seen: _last(seen) == right,
        (apart, "results_apart"),
        (one_missing, "dict_by_name"),
        fed="two calls of the same tool",
        where="the results in the second request",
        expected="\n".join(right),
    )
    mixed = {"calls": [["c1", "hold_seat", {"train": "G1"}], ["c2", "get_weather", {"city": "Rome"}]]}
    right_mixed = "user: result c1: Held on G1., result c2: Sunny in Rome."
    yield _probe(
        [mixed, DONE],
        "wrong_order",
        lambda seen: _last(seen)[-1:] == [right_mixed],
        fed="two calls, the first one of the tool that comes later in the alphabet",
        where="the order of the results",
        expected=right_mixed,
    )


def _going_wrong() -> Iterator[Probe]:
    unknown = {"calls": [["c1", "get_wether", {"city": "Oslo"}], ["c2", "get_weather", {"city": "Oslo"}]]}

    def answered(name: str) -> Callable[[dict[str, Any]], bool]:
        return lambda seen: seen["ended"] == "Yes." and any(f"result {name}" in line for line in _last(seen))

    yield _probe(
        [unknown, DONE],
        "unknown_skipped",
        answered("c1"),
        (_ended("raised", "asked"), "unknown_raises"),
        fed="a call of get_wether, which does not exist, and one of get_weather",
        where="the result of the first call",
        expected="a result for c1 that says so, one for c2, and the last answer",
        remark=_no_flag,
    )
    failing = {"calls": [["c1", "next_train", {"origin": "Ghent", "to": "Bruges"}]]}
    yield _probe(
        [failing, DONE],
        "tool_error_lost",
        lambda seen: answered("c1")(seen) and "timetable" in _last(seen)[-1],
        (_ended("raised"), "tool_error_escapes"),
        (_ended("asked"), "tool_error_lost"),
        fed="a call whose tool raises TimeoutError: no answer from the timetable",
        where="the result of the call",
        expected="a result for c1 with the error's words, and the last answer",
        remark=_no_flag,
    )
    broken = {"calls": [["c1", "get_weather", None]]}
    yield _probe(
        [broken, DONE],
        "broken_arguments_skipped",
        lambda seen: answered("c1")(seen) and seen["ran"] == [] and "NoneType" not in _last(seen)[-1],
        (_ended("raised", "asked"), "runs_without_arguments"),
        (_ran, "runs_without_arguments"),
        (_in_last("NoneType"), "runs_without_arguments"),
        (_in_last("must be a mapping"), "runs_without_arguments"),
        fed="a call whose arguments are no JSON (args is None)",
        where="the result of the call",
        expected="nothing is run; a result for c1 says why, and the last answer comes",
    )


NO_FLAG = (
    "your results of failed calls do not say is_error=True. Anthropic and Gemini have a field for it, and the model looks "
    "at it; OpenAI has none, and there the encoder writes it into the text."
)


def _no_flag(seen: Any) -> str | None:
    """Said with a pass: without the flag the words must do."""
    return None if any("(error)" in line for line in seen["last request"]) else NO_FLAG


def _stops() -> Iterator[Probe]:
    shortened = {"calls": [["c1", "hold_seat", {"train": "G1"}]], "stop": "length"}
    yield _probe(
        [shortened, DONE],
        "runs_on_length",
        lambda seen: seen["ran"] == [] and seen["requests"] == 1,
        (_ran, "runs_on_length"),
        fed="an answer that ended at its output cap, with a call in it",
        where="what is run",
        expected="nothing, and no second request",
    )
    refused = {"say": "I cannot help with that.", "stop": "refusal"}
    yield _probe(
        [refused, DONE],
        "asks_on_refusal",
        lambda seen: seen["requests"] == 1,
        fed="a refusal",
        where="the number of requests",
        expected="one request",
    )
    bare = {"say": "Hm.", "stop": "tool_use"}
    yield _probe(
        [bare, DONE],
        "loops_on_the_word",
        lambda seen: seen["requests"] == 1,
        fed="stop is tool_use, and there is no call",
        where="the number of requests",
        expected="one request: there is nothing to run",
    )
    pause = {"say": "Searching.", "paused": "srv1", "stop": "pause"}
    right = [USER, "assistant: Searching., server_tool_use as it came"]
    yield _probe(
        [pause, DONE],
        "pause_is_answered",
        lambda seen: _last(seen) == right and seen["ended"] == "Yes.",
        (_requests(lambda n: n == 1), "pause_is_the_end"),
        fed="a pause: the service's own search is still running",
        where="the second request",
        expected="\n".join(right),
    )
    strange = {"calls": [["c1", "hold_seat", {"train": "G1"}]], "stop": "other"}
    yield _probe(
        [strange, DONE],
        "runs_on_unknown_stop",
        lambda seen: seen["ran"] == [],
        (_ran, "runs_on_unknown_stop"),
        fed="a stop reason that nobody knows, with a call in the answer",
        where="what is run",
        expected="nothing",
    )


def _limits() -> Iterator[Probe]:
    again = {"calls": [["c1", "get_weather", {"city": "Oslo"}]]}
    yield _probe(
        [again],
        "limit_off_by_one",
        lambda seen: seen["ended"] == "MaxSteps" and seen["requests"] == 3,
        (_ended("asked for ever"), "no_limit"),
        (lambda seen: not seen.raised and seen.value["ended"] != "MaxSteps", "limit_in_silence"),
        fed="a model that calls again after every result; max_steps=3",
        where="the number of requests",
        expected="MaxSteps after 3 requests",
        options={"max_steps": 3},
    )
    paused = {"say": "…", "paused": "srv1", "stop": "pause"}
    yield _probe(
        [paused],
        "pauses_not_counted",
        lambda seen: seen["ended"] == "MaxSteps",
        fed="a service that pauses for ever; max_steps=3",
        where="the number of requests",
        expected="MaxSteps: a pause is a request too",
        options={"max_steps": 3},
    )


def _by_chance(chance: random.Random) -> Probe:
    """A few answers with a few calls each, then the last one; what is expected is worked out here, call by call."""
    said = chance.choice(("Yes.", "No.", "Perhaps."))
    script: list[dict[str, Any]] = []
    ran: list[list[str]] = []
    right, number = [USER], chance.randrange(100)
    for _ in range(chance.randrange(1, 4)):
        calls, results = [], []
        for _ in range(chance.randrange(1, 4)):
            number += 1
            call_id, place = f"c{number}", chance.choice(("Oslo", "Rome", "北京", "G1", "G20"))
            if chance.random() < 0.5:
                calls.append([call_id, "get_weather", {"city": place}])
                results.append(f"result {call_id}: Sunny in {place}.")
                ran.append(["get_weather", place])
            else:
                calls.append([call_id, "hold_seat", {"train": place}])
                results.append(f"result {call_id}: Held on {place}.")
                ran.append(["hold_seat", place])
        script.append({"calls": calls})
        right += [f"assistant: {', '.join(f'call {entry[0]}' for entry in calls)}", f"user: {', '.join(results)}"]
    return _probe(
        [*script, {"say": said}],
        "wrong_order",
        lambda seen: (_last(seen), sorted(seen["ran"]), seen["ended"]) == (right, sorted(ran), said),
        (_ended("MaxSteps"), "limit_off_by_one"),
        fed=f"{len(script)} answers with calls, by chance, then the last answer",
        where="the last request, what was run, and the end",
        expected="\n".join([f"ended: {said}; run: {ran}", *right]),
    )


check = Check.of("tool_loop", observe, probes)
