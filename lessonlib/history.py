"""The rules that a conversation must keep, whichever vendor reads it: every call answered once, in the right place.

Vendors differ in how loudly they complain, not in the rule: an Anthropic request whose tool results do not all stand
first in the very next user message is refused; OpenAI refuses a call without output and an output without call; Gemini the
same. So the encoders share this file. It *repairs* what can be put right without inventing anything (order of results,
results spread over several messages, empty text, neighbours of the same role, an id that two calls of one turn share), and
*refuses* what it cannot:

* a result without its call, a call answered twice: InvalidRequest, with the place;
* a whole call that nobody answered: InvalidRequest. `close_open_calls` is the deliberate way out, after an interruption.

A call that can never be run (cut off or invalid, so `args` is None) and that has no answer is left out: the vendors would
refuse it, and nothing was run. With it goes the reasoning that led to it and to nothing else, which they refuse just so.

Neighbours of the same role are one turn, as every vendor sees them: an answer that was paused and then went on is two
assistant messages, and the results of one turn may have been stored as several user messages.

Sources: docs/wire/anthropic.md 2.3 and 2.5 (placement), and the pages of the other wire formats beside it (pairing).
What this file does not do: it knows no vendor's JSON; each encoder says which repairs its vendor needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from lessonlib.errors import InvalidRequest
from lessonlib.types import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

NOT_RUN = "This call was not run: the turn was interrupted before it."
"""The answer to a call of which the loop knows that nobody ran it."""

NOT_KNOWN = "This call has no result: the turn was interrupted. Whether it was run, and took effect, is not known."
"""What `close_open_calls` answers. A stored history does not show it; "not run" would invite a second try."""

OPENING = "(The conversation begins with the assistant.)"
"""The user message before a conversation that the assistant opens, for the vendors that want the user first."""


def arrange(
    messages: Sequence[Message], wire: str, *, merge: bool, drop: Callable[[Part], bool] = lambda part: False
) -> list[Message]:
    """The conversation in the order that every vendor accepts, without the parts that `wire` cannot be sent.

    merge: join neighbours of the same role into one message (Anthropic, Gemini's contents). drop: further parts that this
    vendor refuses. A message of which nothing is left is left out. Raises InvalidRequest where repair would mean inventing.
    """
    arranged: list[Message] = []
    open_calls: list[ToolCall] = []
    turns = _turns(messages)
    for (place, turn), answered in zip(turns, _answers_after(turns), strict=True):
        if turn[0].role == "assistant":  # never two in a row, so no call is open here
            kept = _without_dead_calls(turn, answered)
            open_calls = [call for message in kept for call in message.tool_calls]
        else:
            kept = _results_first(turn, open_calls, place)
            open_calls = []
        for message in _with_own_ids(kept):
            parts = [part for part in message.parts if not (stays_behind(part, wire) or drop(part))]
            if parts:
                arranged.append(message if len(parts) == len(message.parts) else Message(role=message.role, parts=parts))
    _refuse_unanswered(open_calls, len(messages))
    return merge_neighbours(arranged) if merge else arranged


def stays_behind(part: Part, wire: str) -> bool:
    """Whether `part` is not sent to `wire`: reasoning and opaque parts that are not its own or never became whole (they
    are signed or encrypted for one vendor), and text that is empty (unless its own wire put something beside it)."""
    match part:
        case Reasoning() | Opaque():
            return part.raw_for(wire) is None and not (part.inside and part.wire == wire)
        case Text(text=""):
            return part.raw_for(wire) is None
        case _:
            return False


def merge_neighbours(messages: Iterable[Message]) -> list[Message]:
    """Neighbours of the same role joined into one message each, so that the roles alternate."""
    return [
        turn[0] if len(turn) == 1 else Message(role=turn[0].role, parts=[part for m in turn for part in m.parts])
        for _, turn in _turns(messages)
    ]


def result_pieces(result: ToolResult) -> list[Text | Image]:
    """The content of a result as a list of parts, whichever way it was written."""
    return [Text(text=result.content)] if isinstance(result.content, str) else list(result.content)


def close_open_calls(messages: Sequence[Message], text: str = NOT_KNOWN) -> list[Message]:
    """The same conversation with an error result for every whole call that has none. Nothing is removed.

    For histories that were interrupted: a cancelled tool loop, a crash, an assistant message that went on after its own
    calls. Where some calls of a turn were answered, the missing results join theirs. Where none was, the results come right
    behind the calls, and text that follows them in the same message becomes an assistant message of its own: the order in
    which it must have been meant.
    """
    closed: list[Message] = []
    turns = _turns(messages)
    for (_, turn), answered in zip(turns, _answers_after(turns), strict=True):
        calls = [call for message in turn for call in message.tool_calls]
        open_calls = _open_calls(calls, answered)
        if not open_calls:
            closed += turn
        elif any(call.call_id in answered for call in calls):
            closed += [*turn, _not_run(open_calls, text)]
        else:
            closed += [piece for message in turn for piece in _closed(message, text)]
    return closed


def _open_calls(calls: Sequence[ToolCall], answered: Counter[str]) -> list[ToolCall]:
    """The whole calls for which `answered` holds no result; one result answers one call, even if an id was used twice."""
    left = answered.copy()
    open_calls = []
    for call in calls:
        if call.args is None:
            continue
        if left[call.call_id] <= 0:
            open_calls.append(call)
        left[call.call_id] -= 1
    return open_calls


def _closed(message: Message, text: str) -> list[Message]:
    """An assistant message none of whose calls was answered: up to its last whole call, the results, and the tail."""
    places = [place for place, part in enumerate(message.parts) if isinstance(part, ToolCall) and part.args is not None]
    if not places:
        return [message]
    cut = places[-1] + 1
    head = Message(role="assistant", parts=message.parts[:cut])
    results = _not_run([call for call in head.tool_calls if call.args is not None], text)
    tail = message.parts[cut:]
    return [head, results, Message(role="assistant", parts=tail)] if tail else [head, results]


def _not_run(calls: Iterable[ToolCall], text: str) -> Message:
    return Message.user(*(ToolResult(call_id=call.call_id, name=call.name, content=text, is_error=True) for call in calls))


# ---------------------------------------------------------------- turns


def _turns(messages: Iterable[Message]) -> list[tuple[int, list[Message]]]:
    """Neighbours of the same role, with the number of the first message: what every vendor sees as one turn."""
    turns: list[tuple[int, list[Message]]] = []
    for number, message in enumerate(messages):
        if turns and turns[-1][1][0].role == message.role:
            turns[-1][1].append(message)
        else:
            turns.append((number, [message]))
    return turns


def _answers_after(turns: list[tuple[int, list[Message]]]) -> list[Counter[str]]:
    """For each turn, the call ids that the turn right after it answers, and how often."""
    answers = [Counter(result.call_id for message in turn for result in message.tool_results) for _, turn in turns]
    return [*answers[1:], Counter()] if answers else []


def _refuse_unanswered(calls: Sequence[ToolCall], place: int) -> None:
    if calls:
        names = ", ".join(f"{call.name} ({call.call_id})" for call in calls)
        raise InvalidRequest(
            f"no result for {names} before message {place}: every call needs a ToolResult in the next user message; "
            "lessonlib.history.close_open_calls(messages) answers the open calls"
        )


# ---------------------------------------------------------------- repairs


def _with_own_ids(turn: list[Message]) -> list[Message]:
    """The turn with an id of its own for each call, or each result: some models give two calls the same, and nobody takes
    that back. Results stand in call order, so they are renamed as their calls are."""
    given = Counter(part.call_id for message in turn for part in message.parts if isinstance(part, (ToolCall, ToolResult)))
    if all(number == 1 for number in given.values()):
        return turn
    last: dict[str, int] = {}  # the number that an id had last
    renamed: list[Message] = []
    for message in turn:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, (ToolCall, ToolResult)):
                number = last[part.call_id] = _next_number(part.call_id, last, given)
                if number > 1:
                    part = part.model_copy(update={"call_id": _numbered(part.call_id, number), "raw": part.raw})
            parts.append(part)
        renamed.append(Message(role=message.role, parts=parts))
    return renamed


def _next_number(call_id: str, last: dict[str, int], given: Counter[str]) -> int:
    """1 for the first use of an id; after that the next number whose name nobody has."""
    number = last.get(call_id, 0) + 1
    while number > 1 and _numbered(call_id, number) in given:
        number += 1
    return number


def _numbered(call_id: str, number: int) -> str:
    return f"{call_id or 'call'}_{number}"


def _without_dead_calls(turn: list[Message], answered: Counter[str]) -> list[Message]:
    """The assistant turn without the calls that can never be run and were not answered."""
    calls = [call for message in turn for call in message.tool_calls]
    if all(call.args is not None for call in calls):
        return turn
    spare = answered.copy()
    spare.subtract(call.call_id for call in calls if call.args is not None)
    return [Message(role="assistant", parts=_alive(message.parts, spare)) for message in turn]


def _alive(parts: Sequence[Part], spare: Counter[str]) -> list[Part]:
    """`parts` without dead calls; `spare` counts the results that are left for calls without arguments."""
    alive: list[Part] = []
    after_dead = False
    for part in parts:
        if isinstance(part, ToolCall) and part.args is None:
            spare[part.call_id] -= 1
            if spare[part.call_id] < 0:
                after_dead = True
                continue
        if after_dead and isinstance(part, Reasoning):
            _drop_last_reasoning(alive)
        after_dead = False
        alive.append(part)
    if after_dead:
        _drop_last_reasoning(alive)
    return alive


def _drop_last_reasoning(parts: list[Part]) -> None:
    while parts and isinstance(parts[-1], Reasoning):
        parts.pop()


def _results_first(turn: list[Message], calls: list[ToolCall], place: int) -> list[Message]:
    """All results of the turn in its first message, first and in call order. The other parts stay where they were."""
    results = [result for message in turn for result in message.tool_results]
    if not results and not calls:
        return turn
    ordered: list[Part] = [*_in_call_order(results, calls, place)]
    rest: list[list[Part]] = [[part for part in message.parts if not isinstance(part, ToolResult)] for message in turn]
    rest[0] = ordered + rest[0]
    return [Message(role="user", parts=parts) for parts in rest]


def _in_call_order(results: list[ToolResult], calls: list[ToolCall], place: int) -> list[ToolResult]:
    """One result per call. A provider that used one id twice gets its results in the order in which they stand."""
    by_id: dict[str, list[ToolResult]] = {}
    for result in reversed(results):
        by_id.setdefault(result.call_id, []).append(result)
    ordered: list[ToolResult] = []
    unanswered: list[ToolCall] = []
    for call in calls:
        waiting = by_id.get(call.call_id)
        if not waiting:
            unanswered.append(call)
            continue
        result = waiting.pop()
        named = {"name": call.name, "raw": result.raw}
        ordered.append(result if result.name else result.model_copy(update=named))
    _refuse_unanswered(unanswered, place)
    _refuse_surplus(by_id, calls, place)
    return ordered


def _refuse_surplus(by_id: dict[str, list[ToolResult]], calls: list[ToolCall], place: int) -> None:
    made = dict.fromkeys(call.call_id for call in calls)
    for call_id in (call_id for call_id, left in by_id.items() if left):
        if call_id in made:
            raise InvalidRequest(f"message {place}: call {call_id!r} is answered twice")
        raise InvalidRequest(
            f"message {place}: a result for call {call_id!r}, but the assistant turn before it made no such call "
            f"(it made: {', '.join(made) or 'none'})"
        )
