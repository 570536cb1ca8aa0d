"""The scripted model: the same request always gets the same answer.

It is no language model. It looks for plain cues in the prompt (the table `CUES`), else calls the offered tools that the
prompt asks for, else reads the tool results aloud, else answers in text. That is enough to make a client meet everything
that a real model does: parallel calls, calls without arguments, unknown tools, invalid JSON, loops, refusals, pauses, and
answers that run into their cap.

What this file does not do: no wire format, no counting, no cap (core.py). It never looks at who the vendor is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from lessonlib.sim import arguments
from lessonlib.sim.ask import Ask
from lessonlib.sim.script import Call, Refuse, Say, Segment, ServerCall, Think, Turn
from lessonlib.types import StopReason, Tool, ToolCall, ToolResult
from lessonlib.wire.base import compact

# ---------------------------------------------------------------- cues


@dataclass(frozen=True, slots=True)
class Cue:
    """Plain words in a prompt that make the model do something particular."""

    name: str
    words: tuple[str, ...]
    what: str


CUES: tuple[Cue, ...] = (
    Cue("unknown_tool", ("unknown tool", "tool that does not exist"), "calls a tool that was not offered"),
    Cue("invalid_json", ("invalid json", "broken arguments"), "gives arguments that are not valid JSON"),
    Cue("wrong_arguments", ("wrong arguments", "out of range"), "gives arguments that break the tool's schema"),
    Cue("no_arguments", ("without arguments", "no arguments"), "calls a tool with no arguments at all"),
    Cue("loop", ("loop for ever", "loop forever", "never stop"), "calls a tool again after every result"),
    Cue("parallel", ("in parallel", "at the same time"), "calls several tools in one turn"),
    Cue("refuse", ("refuse",), "declines, in its own words"),
    Cue("forbidden", ("something forbidden",), "is stopped by the vendor's filter before its first word"),
    Cue("pause", ("pause", "search the web"), "stops while a search of the vendor's own server runs"),
    Cue("run_out_text", ("run out in text", "cut off in text"), "hits the output cap in visible text"),
    Cue("run_out_reasoning", ("run out in reasoning", "cut off in reasoning"), "hits the cap while it thinks, if it thinks"),
    Cue("run_out_arguments", ("run out in arguments", "cut off in arguments"), "hits the cap inside a call"),
    Cue("redacted", ("redacted thinking",), "thinks, and the vendor hides it (where that has a form of its own)"),
    Cue("think", ("think first", "think hard"), "thinks longer, if it thinks"),
    Cue("chinese", ("in chinese", "用中文"), "answers in Chinese"),
    Cue("emoji", ("emoji",), "answers with emoji and other characters of four bytes"),
    Cue("empty", ("say nothing",), "answers with no text at all"),
    Cue("long", ("long answer", "write a lot"), "answers with some hundred words"),
)

READ = 2000
"""Characters of a prompt that the model looks at; cues and questions stand at its beginning."""
ALOUD = 400
"""Characters of a tool result that it repeats."""


def cue(prompt: str) -> str | None:
    """The name of the first cue in the prompt, None if it holds none."""
    lower = prompt[:READ].lower()
    return next((cue.name for cue in CUES if any(word in lower for word in cue.words)), None)


# ---------------------------------------------------------------- the answer


def answer(ask: Ask) -> Turn:
    """What the model says to `ask`."""
    if ask.paused:
        return after_pause(ask)
    if ask.talked_over:
        return Turn((), unseen=3)
    found = cue(ask.prompt)
    if ask.results and found != "loop":
        return _with_thoughts(ask, _after_results(ask), found)
    special = _SPECIAL.get(found or "")
    turn = special(ask) if special is not None else None
    return _with_thoughts(ask, turn if turn is not None else _ordinary(ask, found), found)


def after_pause(ask: Ask) -> Turn:
    """The rest of a turn that was handed back while a search ran."""
    return Turn((ServerCall(_topic(ask), "One relevant page."), Say("The search found one page, and it says yes.")))


def _ordinary(ask: Ask, found: str | None) -> Turn:
    calls = wanted_calls(ask)
    if calls:
        return Turn((*_preamble(ask), *calls))
    if ask.output_schema is not None:
        return Turn((Say(compact(arguments.value_for(ask.output_schema, _read(ask)))),))
    return Turn((Say(_text(ask, found)),))


def _with_thoughts(ask: Ask, turn: Turn, found: str | None) -> Turn:
    """A model that reasons does so first, and again from the start if its earlier reasoning was not sent back."""
    filtered = any(isinstance(segment, Refuse) and not segment.text for segment in turn.segments)
    if not ask.thinks or filtered or any(isinstance(segment, Think) for segment in turn.segments):
        return turn
    thought = _thought(ask, turn) + " I check that once more." * (_EFFORTS.get(ask.effort or "", 0) + (found == "think"))
    if not ask.kept_reasoning:
        thought += " My earlier reasoning is not in the conversation, so I go through it again: " + thought
    return replace(turn, segments=(Think(thought, redacted=found == "redacted"), *turn.segments))


_EFFORTS = {"high": 1, "xhigh": 2, "max": 3}
"""How often the model checks what it thought."""


def _thought(ask: Ask, turn: Turn) -> str:
    if turn.calls:
        tools = " and ".join(dict.fromkeys(call.name for call in turn.calls))
        return f"The request is: {_topic(ask)}. I need {tools} for that."
    if ask.results:
        return "The results are there, so I can answer now."
    return f"The request is: {_topic(ask)}. I can answer this directly."


def _read(ask: Ask) -> str:
    return ask.prompt[:READ]


def _topic(ask: Ask) -> str:
    return " ".join(_read(ask).split())[:60]


def _preamble(ask: Ask) -> tuple[Segment, ...]:
    if _is_chinese(_read(ask)):
        return (Say("我查一下。"),)
    return (Say("I will look that up."),)


# ---------------------------------------------------------------- tools

_KINDS: tuple[tuple[str, str, str], ...] = (
    # kind, words in the tool's name or description, words in the prompt
    ("weather", r"weather|forecast|temperature|天气", r"weather|forecast|temperature|\brain|sunny|天气"),
    ("clock", r"\b(?:time|clock|now|date|today)\b|几点", r"\btime\b|\bclock\b|what day|\bdate\b|\bnow\b|o'clock|几点|时间"),
    ("calculator", r"calc|arithmetic|\bmath|comput|计算", r"calculat|comput|算"),
    ("search", r"search|\blook ?up\b|\bfind\b|查", r"search|find|look up|who |what is|查"),
)


def wanted_calls(ask: Ask) -> tuple[Call, ...]:
    """The calls that the prompt asks for, by the tools that are offered and the tool choice."""
    if not ask.tools or ask.tool_choice == "none":
        return ()
    calls = [call for tool in _candidates(ask) for call in _calls_of(tool, ask)]
    if not calls and ask.tool_choice not in (None, "auto"):
        forced = ask.tool(ask.tool_choice or "") or ask.tools[0]
        calls = [_call(forced, ask, 0)]
    return tuple(calls if ask.parallel else calls[:1])


def _candidates(ask: Ask) -> list[Tool]:
    if ask.tool_choice not in (None, "auto", "required"):
        return [tool for tool in ask.tools if tool.name == ask.tool_choice]
    return [tool for tool in ask.tools if _asked_for(tool, _read(ask))]


def _words(text: str) -> str:
    """`getTimeOf_city` as words, so that a tool called `update` is no clock."""
    return re.sub(r"[_\W]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text[:READ])).lower()


def _kind(tool: Tool) -> tuple[str, str] | None:
    for subject in (_words(tool.name), _words(f"{tool.name} {tool.description}")):
        for kind, of_tool, of_prompt in _KINDS:
            if re.search(of_tool, subject):
                return kind, of_prompt
    return None


def _asked_for(tool: Tool, prompt: str) -> bool:
    kind = _kind(tool)
    if kind is not None:
        sums = kind[0] == "calculator" and arguments.sums(prompt)
        return bool(sums) or re.search(kind[1], prompt, re.IGNORECASE) is not None
    words = [word for word in _words(tool.name).split() if len(word) > 2 and word not in ("get", "the")]
    return any(re.search(rf"\b{re.escape(word)}", prompt, re.IGNORECASE) for word in words)


def _calls_of(tool: Tool, ask: Ask) -> list[Call]:
    """One call, or one per city or sum where the prompt names several."""
    kind = (_kind(tool) or ("", ""))[0]
    several = {"weather": arguments.cities, "calculator": arguments.sums}.get(kind)
    count = min(max(1, len(several(_read(ask)))), MOST_CALLS) if several else 1
    return [_call(tool, ask, place) for place in range(count)]


MOST_CALLS = 16


def _call(tool: Tool, ask: Ask, place: int) -> Call:
    args = arguments.for_schema(tool.schema_for_function(), _read(ask), place)
    return Call(tool.name, str(args.get("input", "")) if tool.kind == "custom" else args)


# ---------------------------------------------------------------- after the results


def _after_results(ask: Ask) -> Turn:
    """Mend a failed call once, else say what the tools said."""
    mended = [call for pair in ask.results if (call := _mended(ask, *pair)) is not None]
    if mended and not _tried_before(ask):
        return Turn(tuple(mended if ask.parallel else mended[:1]))
    if ask.output_schema is not None:
        return Turn((Say(compact(arguments.value_for(ask.output_schema, _read(ask)))),))
    if _is_chinese(_read(ask)):
        return Turn((Say("；".join(_aloud(call, result).rstrip("。") for call, result in ask.results) + "。"),))
    return Turn((Say(" ".join(_aloud(call, result).rstrip(".") + "." for call, result in ask.results)),))


def _failed(result: ToolResult) -> bool:
    return result.is_error or result.text.startswith("ERROR")


def _mended(ask: Ask, call: ToolCall | None, result: ToolResult) -> Call | None:
    """A better call after an error: the tool that exists, or arguments that are valid."""
    if not _failed(result) or not ask.tools or ask.tool_choice == "none":
        return None
    lower = result.text.lower()
    offered = ask.tool(call.name) if call else None
    if offered is None:
        return _call(next(iter(_candidates(ask)), ask.tools[0]), ask, 0)
    if any(word in lower for word in ("json", "argument", "field", "valid", "required", "missing")):
        return _call(offered, ask, 0)
    return None


def _tried_before(ask: Ask) -> bool:
    """Whether something failed before these results, since the person asked."""
    failed = 0
    for message in reversed(ask.messages):
        failed += sum(_failed(result) for result in message.tool_results)
        if message.role == "user" and not message.tool_results:
            break
    return failed > len(ask.results)


def _aloud(call: ToolCall | None, result: ToolResult) -> str:
    text = " ".join(result.text[:ALOUD].split()) or "nothing"
    if _failed(result):
        return f"I could not get that: {text.removeprefix('ERROR:').strip()}"
    if call is None or call.args is None:
        return text
    asked = next((value for value in call.args.values() if isinstance(value, str)), "")[:ALOUD]
    return f"{asked} = {text}" if re.search(r"\d\s?[*+/^-]", asked) else f"{asked}: {text}" if asked else text


# ---------------------------------------------------------------- the cues' turns


def _first_tool(ask: Ask) -> Tool | None:
    """The tool that a cue is about; None if none may be called."""
    if not ask.tools or ask.tool_choice == "none":
        return None
    return next(iter(_candidates(ask)), ask.tools[0])


def _unknown_tool(ask: Ask) -> Turn | None:
    return Turn((Call("delete_all_bookings", {}),)) if _first_tool(ask) else None


def _invalid_json(ask: Ask) -> Turn | None:
    tool = _first_tool(ask)
    return Turn((Call(tool.name, '{"city": Paris}'),)) if tool else None


def _wrong_arguments(ask: Ask) -> Turn | None:
    tool = _first_tool(ask)
    return Turn((Call(tool.name, {"no_such_field": -1}),)) if tool else None


def _no_arguments(ask: Ask) -> Turn | None:
    if _first_tool(ask) is None:
        return None
    bare = [tool for tool in ask.tools if not tool.schema_for_function().get("required")]
    tool = bare[0] if bare else _first_tool(ask)
    return Turn((Call(tool.name),)) if tool else None


def _loop(ask: Ask) -> Turn | None:
    tool = _first_tool(ask)
    return Turn((_call(tool, ask, 0),)) if tool else None


def _parallel(ask: Ask) -> Turn | None:
    if _first_tool(ask) is None or not ask.parallel:
        return None
    calls = list(wanted_calls(ask)) or [_call(ask.tools[0], ask, 0)]
    while len(calls) < 2:
        calls.append(_call(ask.tools[len(calls) % len(ask.tools)], ask, len(calls)))
    return Turn(tuple(calls))


def _refuse(ask: Ask) -> Turn:
    return Turn((Refuse("I cannot help with that."),))


def _forbidden(ask: Ask) -> Turn:
    return Turn((Refuse(),))


def _pause(ask: Ask) -> Turn:
    return Turn((Say("I will search for that."), ServerCall(_topic(ask))), StopReason.PAUSE)


def _run_out_text(ask: Ask) -> Turn:
    return Turn((Say(_text(ask, "long")),), run_out="text")


def _run_out_reasoning(ask: Ask) -> Turn | None:
    if not ask.thinks:
        return None
    return Turn((Think("Step by step: " + "one more case to consider, " * 20), Say("Done.")), run_out="reasoning")


def _run_out_arguments(ask: Ask) -> Turn | None:
    tool = _first_tool(ask)
    return Turn((Say("I will do that."), _call(tool, ask, 0)), run_out="arguments") if tool else None


def _empty(ask: Ask) -> Turn:
    return Turn(())


_SPECIAL: dict[str, Callable[[Ask], Turn | None]] = {
    "unknown_tool": _unknown_tool,
    "invalid_json": _invalid_json,
    "wrong_arguments": _wrong_arguments,
    "no_arguments": _no_arguments,
    "loop": _loop,
    "parallel": _parallel,
    "refuse": _refuse,
    "forbidden": _forbidden,
    "pause": _pause,
    "run_out_text": _run_out_text,
    "run_out_reasoning": _run_out_reasoning,
    "run_out_arguments": _run_out_arguments,
    "empty": _empty,
}

# ---------------------------------------------------------------- text


def _text(ask: Ask, found: str | None) -> str:
    prompt = _read(ask)
    if found == "emoji":
        return "Certainly 🎉: a bicycle 🚲, a family 👨‍👩‍👧, and a rare sign 𓂀."
    if found == "long":
        return " ".join(f"Point {number}: this sentence stands here so that the answer is long." for number in range(1, 31))
    if found == "chinese" or _is_chinese(prompt):
        return "好的。这是模拟器的回答：它按请求的内容给出固定的文字。"
    if re.search(r"\bhello\b|\bhi\b", prompt, re.IGNORECASE):
        return "Hello!"
    if re.search(r"worth a visit|should i go", prompt, re.IGNORECASE):
        return f"Yes: {(arguments.cities(prompt) or ['it'])[0]} is mild and dry in May."
    return f"This is the simulator's answer to “{_topic(ask)}”. It is the same every time."


def _is_chinese(text: str) -> bool:
    return sum("一" <= character <= "鿿" for character in text) > len(text) * 0.3
