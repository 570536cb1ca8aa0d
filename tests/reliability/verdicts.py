"""What came of a disturbed body, judged against the undisturbed one.

The *answer* of a body is what a user acts on: text, reasoning, calls (name and arguments, or that they cannot be used), the
unified stop reason, the token counts, and how many opaque parts there are. The rest are labels: ids (which only pair a call
with its result), the model's name, the vendor's own stop word, and the insides of opaque parts, which only the vendor reads.

    right      the same answer as the undisturbed body gives
    corrected  the same answer, although the pieces shown before its end were not those: a later whole copy corrected them
    error      an error of the LessonError family that has everything that was shown: no character of the text and the
               reasoning that the consumer had been given is missing in its `partial`, and no call in that can be run
    marked     an answer that says itself where it is not to be trusted: the stop is `other`; a part is opaque and of kind
               "unknown", because it does not say what it is; the calls that differ cannot be run (`args` is None, with the
               reason in `args_error`); the token counts that differ are None, not reported
    different  any other answer. Where the protocol gives no means to notice it, limits.py says why; else it is a fault of
               ours, a *wrong success*

Everything else (another exception, an error without what had arrived, an answer other than the right one whose text is not
what the consumer was shown) is a fault, whatever the mutant.

What this file does not do: it makes no mutants, and no network is needed: `Exchange` is all of the client that judges.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from lessonlib.errors import LessonError
from lessonlib.exchange import EVENT_STREAM, Exchange
from lessonlib.types import COUNTS, Done, Event, Opaque, ReasoningDelta, Response, StopReason, TextDelta
from lessonlib.wire import WireFormat

RIGHT, CORRECTED, ERROR, MARKED, DIFFERENT = "right", "corrected", "error", "marked", "different"
VERDICTS = (RIGHT, CORRECTED, ERROR, MARKED, DIFFERENT)


class Fault(AssertionError):
    """What must never come of any bytes at all."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client would see of one body."""

    result: Response | LessonError
    events: list[Event]

    def shown(self, kind: type[TextDelta] | type[ReasoningDelta]) -> str:
        return "".join(event.text for event in self.events if isinstance(event, kind))


def read(wire: WireFormat, data: bytes, *, stream: bool) -> Outcome:
    """The body as the client reads it, with status 200 and a clean end."""
    exchange = Exchange(wire, name=wire.provider, host="localhost", stream=stream)
    events: list[Event] = []
    try:
        exchange.begin(200, {"content-type": EVENT_STREAM if stream else "application/json"})
        events += exchange.feed(data)
        if not exchange.finished:
            events += exchange.feed(None)
        if not stream:
            return Outcome(exchange.answer(), events)
        events += exchange.close()
    except LessonError as error:
        return Outcome(error, events)
    last = events[-1] if events else None
    if not isinstance(last, Done):
        raise Fault("the stream ended neither with Done nor with an error")
    return Outcome(last.response, events)


def answer(response: Response) -> dict[str, Any]:
    """What a user acts on."""
    usage = response.usage
    return {
        "text": response.text,
        "reasoning": response.reasoning,
        "calls": [(call.name, _exact(call.args)) for call in response.tool_calls],
        "stop": response.stop,
        "usage": {name: getattr(usage, name) for name in COUNTS} if usage else None,
        "opaque": sum(isinstance(part, Opaque) for part in response.message.parts),
    }


def _exact(value: Any) -> Any:
    """Arguments with their types, so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return [_exact(item) for item in value] if isinstance(value, list) else (type(value).__name__, value)


def judge(undisturbed: Outcome, got: Outcome) -> tuple[str, frozenset[str]]:
    """The verdict, and for `marked` and `different` the fields of the answer that differ. Raises Fault."""
    if isinstance(got.result, LessonError):
        _check_error(got.result, got)
        return ERROR, frozenset()
    now = answer(got.result)
    if isinstance(undisturbed.result, LessonError):
        return (MARKED if now["stop"] is StopReason.OTHER else DIFFERENT), frozenset({"error"})
    before = answer(undisturbed.result)
    differs = frozenset(name for name in before if before[name] != now[name])
    as_shown = _as_shown(got)
    if not differs:
        return RIGHT if as_shown else CORRECTED, differs
    if not as_shown and not _same_pieces(got):
        raise Fault(f"shown {got.shown(TextDelta)!r}, answered {got.result.text!r}, and neither is right")
    return (MARKED if _unknown_part(got.result) or _marked(differs, before, now) else DIFFERENT), differs


def _unknown_part(response: Response) -> bool:
    return any(isinstance(part, Opaque) and part.kind == "unknown" for part in response.message.parts)


def _marked(differs: frozenset[str], before: dict[str, Any], now: dict[str, Any]) -> bool:
    if now["stop"] is StopReason.OTHER and before["stop"] is not StopReason.OTHER:
        return True
    if not differs <= {"calls", "stop", "usage"}:
        return False
    return _only_unusable(before["calls"], now["calls"]) and _only_unknown(before["usage"], now["usage"])


def _only_unusable(before: list[Any], now: list[Any]) -> bool:
    """Whether the calls are as many, and every one that can be run is one that the undisturbed answer has too."""
    usable = [call for call in now if isinstance(call[1], dict)]
    return len(now) == len(before) and all(call in before for call in usable)


def _only_unknown(before: dict[str, Any] | None, now: dict[str, Any] | None) -> bool:
    """Whether no count is another number."""
    return now is None or all(count is None or count == (before or {}).get(name) for name, count in now.items())


def _check_error(error: LessonError, got: Outcome) -> None:
    partial = error.partial
    text, reasoning = got.shown(TextDelta), got.shown(ReasoningDelta)
    if (text or reasoning) and partial is None:
        raise Fault(f"{error!r} has nothing of what had arrived: {text!r} {reasoning!r}")
    if partial is None:
        return
    if _missing(text, partial.text) or _missing(reasoning, partial.reasoning):
        raise Fault(f"{error!r}: shown {text!r} {reasoning!r}, attached {partial.text!r} {partial.reasoning!r}")
    if any(call.args is not None for call in partial.tool_calls):
        raise Fault(f"{error!r}: a call of a broken answer can be run")


def _as_shown(got: Outcome) -> bool:
    """Whether the pieces add up to the text and the reasoning of the answer. A whole answer has none."""
    assert isinstance(got.result, Response)
    streamed = any(isinstance(event, Done) for event in got.events)
    return not streamed or (got.shown(TextDelta), got.shown(ReasoningDelta)) == (got.result.text, got.result.reasoning)


def _same_pieces(got: Outcome) -> bool:
    """Whether the answer holds just what was shown, if in another order: parts that came interleaved stand apart in it."""
    assert isinstance(got.result, Response)
    shown = Counter(got.shown(TextDelta)), Counter(got.shown(ReasoningDelta))
    return shown == (Counter(got.result.text), Counter(got.result.reasoning))


def _missing(shown: str, attached: str) -> bool:
    return not attached.startswith(shown) and bool(Counter(shown) - Counter(attached))
