"""Resume: go on with an answer that broke off after something was shown, when asking again would say it all twice.

    try: ...
    except LessonError as error:
        found = resumption(request, error.partial, wire)
        rest = client.generate(found.request)
        text = found.join(rest.text)

How depends on the model's generation (docs/wire/anthropic.md 7). Models up to Claude 4.5 continue an assistant message that
stands last: the text so far is sent as one, a *prefill*. Later models refuse that, and no other vendor has it; they get the
text so far in the history and a user message that *quotes* its end and asks to go on. A prefill is also refused while a
thinking budget is set, so there it is a quote, too. Nothing visible had arrived: the request is sent *again*.

Only from the last text: half a call and half a thought are never continued. A call has lost an end that nobody can guess,
and a thought without its signature is refused. Both are left out, and `dropped` says so. Whole calls are left out as well:
the answer that made them did not end, so they were not run, and the model makes them again.

CannotResume says why there is nothing to go on with: the answer is whole, was declined, or has a schema to keep to, which no
fragment does.

What this file does not do: it sends nothing. A run that a service stores can be read again from any event instead of being
resumed (OpenAI's background responses, Gemini's stored interactions): that costs nothing, and is no business of this file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, Protocol

from lessonlib import capabilities
from lessonlib.errors import InvalidRequest, LessonError
from lessonlib.types import Message, Reasoning, Request, Response, StopReason, Text, ToolCall

QUOTED = 240
"""How many characters of the end are quoted."""

PROMPT = (
    "Your last answer was cut off. It ends with these words:\n\n{end}\n\nGo on from exactly there, with what comes next. Do "
    "not repeat anything, do not begin again, and do not mention that it was cut off."
)
"""What the user message says where there is no prefill."""

SHORTEST_REPEAT = 12
"""How many characters must agree before the beginning of an answer counts as a repetition of the end."""


class Named(Protocol):
    """Anything with the name of a wire format: a wire itself, for instance."""

    @property
    def name(self) -> str: ...


class CannotResume(InvalidRequest):
    """There is nothing to go on with. The message says why."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """How to go on.

    request: what to send. how: "prefill", "quote", or "again" where nothing visible had arrived. text: what had been shown.
    dropped: what of the broken answer is left out, and why.
    """

    request: Request
    how: Literal["prefill", "quote", "again"]
    text: str = ""
    dropped: tuple[str, ...] = ()

    def join(self, more: str) -> str:
        """The text so far and the text of the next answer as one. Behind a prefill nothing is ever said twice."""
        return join(self.text, more, repeats=self.how == "quote")


def resume(request: Request, partial: Response | LessonError | None, wire: Named | str | None = None) -> Request:
    """The request that goes on with a broken answer. Raises CannotResume. What else there is to know: `resumption`."""
    return resumption(request, partial, wire).request


def resumption(request: Request, partial: Response | LessonError | None, wire: Named | str | None = None) -> Resumption:
    """How to go on with a broken answer.

    request: what it was an answer to. partial: what had arrived, or the error that carries it. wire: the wire format that
    the next request goes to; by default the one of the broken answer.
    """
    found = partial.partial if isinstance(partial, LessonError) else partial
    if found is None:
        return Resumption(request, "again")
    _refuse_whole(request, found)
    text, dropped = found.text, _dropped(found.message)
    if not text.strip():
        return Resumption(request, "again", dropped=dropped)
    shown = Message.assistant(text)
    if _takes_prefill(request, found, wire):
        return Resumption(request.replace(messages=[*request.messages, shown]), "prefill", text, dropped)
    ask = Message.user(PROMPT.format(end=_end(text)))
    return Resumption(request.replace(messages=[*request.messages, shown, ask]), "quote", text, dropped)


def _refuse_whole(request: Request, partial: Response) -> None:
    why = {
        StopReason.END: "the answer is whole",
        StopReason.TOOL_USE: "the answer is whole: it waits for the results of its calls",
        StopReason.REFUSAL: "the model declined, and would again",
        StopReason.PAUSE: "the answer was paused, not cut: send it back as it is",
    }.get(partial.stop)
    if why is not None:
        raise CannotResume(f"cannot resume: {why}")
    if request.output_schema is not None and partial.text.strip():
        raise CannotResume("cannot resume: the answer must follow a schema, and the rest of one does not; ask again")


def _dropped(message: Message) -> tuple[str, ...]:
    """A word for each kind of part that is not continued."""
    kinds: Counter[str] = Counter()
    for part in message.parts:
        match part:
            case Text():
                continue
            case ToolCall():
                kinds["calls, which were not run" if part.args is not None else "unfinished calls"] += 1
            case Reasoning():
                kinds["pieces of reasoning"] += 1
            case _:
                kinds[f"parts of the kind {part.type}"] += 1
    return tuple(f"{count} {kind}" for kind, count in kinds.items())


def _takes_prefill(request: Request, partial: Response, wire: Named | str | None) -> bool:
    """Whether the model continues an assistant message: known to, by its own vendor's API, and without thinking set."""
    name = partial.wire if wire is None else wire if isinstance(wire, str) else wire.name
    model = request.model or getattr(wire, "model", None) or partial.model
    able = capabilities.of(model)
    return able.prefill is True and name.startswith(able.provider) and request.reasoning in (None, "none")


def _end(text: str) -> str:
    """The end of a text, from a word's beginning."""
    text = text.rstrip()
    if len(text) <= QUOTED:
        return text
    end = text[-QUOTED:]
    _, space, rest = end.partition(" ")
    return rest if space else end


# ---------------------------------------------------------------- putting the texts together


def join(before: str, after: str, *, repeats: bool = True) -> str:
    """Two pieces of a text as one.

    repeats: take out what a model says again before it goes on: the longest end of `before` with which `after` begins, from
    SHORTEST_REPEAT characters on, or the one word in which `before` broke off. White space at the seam stands once.
    """
    start = after.lstrip()
    repeated = _overlap(before.rstrip(), start, new_word=start != after) if repeats else 0
    if repeated:
        return before.rstrip() + start[repeated:]
    if before[-1:].isspace() and after[:1].isspace():
        return before.rstrip() + after
    return before + after


def _overlap(before: str, after: str, *, new_word: bool) -> int:
    """How many characters at the end of `before` begin `after` again."""
    word = 0 if new_word else len(before) - before.rfind(" ") - 1
    for length in range(min(len(before), len(after), 4 * QUOTED), 0, -1):
        if (length >= SHORTEST_REPEAT or (length == word > 1)) and before.endswith(after[:length]):
            return length
    return 0
