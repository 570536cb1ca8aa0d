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
from dataclasses import dataclass

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
    Cue("refuse", ("refuse", "something forbidden"), "declines to answer"),
    Cue("pause", ("pause", "search the web"), "stops while a search of the vendor's own server runs"),
    Cue("run_out_text", ("run out in text", "cut off in text"), "hits the output cap in visible text"),
    Cue("run_out_reasoning", ("run out in reasoning", "cut off in reasoning"), "hits the cap before any visible text"),
    Cue("run_out_arguments", ("run out in arguments", "cut off in arguments"), "hits the cap inside a call"),
    Cue("think", ("think first", "think hard"), "thinks before it answers, if the model can"),
    Cue("chinese", ("in chinese", "用中文"), "answers in Chinese"),
    Cue("emoji", ("emoji",), "answers with emoji and other characters of four bytes"),
    Cue("empty", ("say nothing",), "answers with no text at all"),
    Cue("long", ("long answer", "write a lot"), "answers with some hundred words"),
)


def cue(prompt: str) -> str | None:
    """The name of the first cue in the prompt, None if it holds none."""
    lower = prompt.lower()
    return next((cue.name for cue in CUES if any(word in lower for word in cue.words)), None)


# ---------------------------------------------------------------- the answer


def answer(ask: Ask) -> Turn:
    """What the model says to `ask`."""
    found = cue(ask.prompt)
    if ask.paused:
        return Turn((ServerCall(ask.prompt[:60], "One relevant page."), Say("The search found one page, and it says yes.")))
    if ask.talked_over:
        return Turn((), unseen=3)
    if ask.results and found != "loop":
        return _after_results(ask)
    special = _SPECIAL.get(found or "")
    turn = special(ask) if special is not None else None
    if turn is None:
        turn = _ordinary(ask, found)
    return _with_thoughts(ask, turn)


def _ordinary(ask: Ask, found: str | None) -> Turn:
    calls = wanted_calls(ask)
    if calls:
        return Turn((*_preamble(ask), *calls))
    if ask.output_schema is not None:
        return Turn((Say(compact(arguments.for_schema(ask.output_schema, ask.prompt))),))
    return Turn((Say(_text(ask.prompt, found)),))


def _with_thoughts(ask: Ask, turn: Turn) -> Turn:
    """A model that reasons does so first, and again from the start if its earlier reasoning was not sent back."""
    if not ask.thinks or any(isinstance(segment, Think) for segment in turn.segments):
        return turn
    thought = _thought(ask, turn)
    if not ask.kept_reasoning:
        thought += " My earlier reasoning is not in the conversation, so I go through it again: " + thought
    return Turn((Think(thought), *turn.segments), turn.stop, turn.run_out, turn.stop_sequence)


def _thought(ask: Ask, turn: Turn) -> str:
    topic = " ".join(ask.prompt.split())[:60]
    if turn.calls:
        return f"The request is: {topic}. I need {' and '.join(dict.fromkeys(call.name for call in turn.calls))} for that."
    if ask.results:
        return "The results are there, so I can answer now."
    return f"The request is: {topic}. I can answer this directly."


def _preamble(ask: Ask) -> tuple[Segment, ...]:
    if _is_chinese(ask.prompt):
        return (Say("我查一下。"),)
    return (Say("I will look that up."),)


# ---------------------------------------------------------------- tools

_KINDS: tuple[tuple[str, str, str], ...] = (
    # kind, words in the tool's name or description, words in the prompt
    ("weather", r"weather|forecast|temperature|天气", r"weather|forecast|temperature|\brain|sunny|天气"),
    ("clock", r"time|clock|now|date|几点", r"\btime\b|what day|\bdate\b|\bnow\b|o'clock|几点|时间"),
    ("calculator", r"calc|arithmetic|math|comput|计算", r"\d\s*[*×x+/÷^−-]\s*\d|calculat|comput|算"),
    ("search", r"search|lookup|look_up|find|查", r"search|find|look up|who |what is|查"),
)


def wanted_calls(ask: Ask) -> tuple[Call, ...]:
    """The calls that the prompt asks for, by the tools that are offered and the tool choice."""
    if not ask.tools or ask.tool_choice == "none":
        return ()
    calls = [call for tool in _candidates(ask) for call in _calls_of(tool, ask)]
    if not calls and ask.tool_choice not in (None, "auto"):
        forced = ask.tool(ask.tool_choice or "") or ask.tools[0]
        calls = [_call(forced, ask.prompt, 0)]
    return tuple(calls if ask.parallel else calls[:1])


def _candidates(ask: Ask) -> list[Tool]:
    if ask.tool_choice not in (None, "auto", "required"):
        return [tool for tool in ask.tools if tool.name == ask.tool_choice]
    return [tool for tool in ask.tools if _asked_for(tool, ask.prompt)]


def _kind(tool: Tool) -> tuple[str, str] | None:
    described = f"{tool.name} {tool.description}".lower()
    for subject in (tool.name.lower(), described):
        for kind, of_tool, of_prompt in _KINDS:
            if re.search(of_tool, subject):
                return kind, of_prompt
    return None


def _asked_for(tool: Tool, prompt: str) -> bool:
    kind = _kind(tool)
    if kind is not None:
        return re.search(kind[1], prompt, re.IGNORECASE) is not None
    words = [word for word in re.split(r"[_\W]+", tool.name.lower()) if len(word) > 2 and word not in ("get", "the")]
    return any(re.search(rf"\b{re.escape(word)}", prompt, re.IGNORECASE) for word in words)


def _calls_of(tool: Tool, ask: Ask) -> list[Call]:
    """One call, or one per city or sum where the prompt names several."""
    kind = (_kind(tool) or ("", ""))[0]
    several = {"weather": arguments.cities, "calculator": arguments.sums}.get(kind)
    count = max(1, len(several(ask.prompt))) if several else 1
    return [_call(tool, ask.prompt, place) for place in range(count)]


def _call(tool: Tool, prompt: str, place: int) -> Call:
    args = arguments.for_schema(tool.schema_for_function(), prompt, place)
    return Call(tool.name, str(args.get("input", "")) if tool.kind == "custom" else args)


# ---------------------------------------------------------------- after the results


def _after_results(ask: Ask) -> Turn:
    """Mend a failed call once, else say what the tools said."""
    mended = [call for pair in ask.results if (call := _mended(ask, *pair)) is not None]
    if mended and not _tried_before(ask):
        return _with_thoughts(ask, Turn(tuple(mended)))
    if ask.output_schema is not None:
        said = compact(arguments.for_schema(ask.output_schema, ask.prompt))
    elif _is_chinese(ask.prompt):
        said = "；".join(_aloud(call, result) for call, result in ask.results) + "。"
    else:
        said = " ".join(_aloud(call, result).rstrip(".") + "." for call, result in ask.results)
    return _with_thoughts(ask, Turn((Say(said),)))


def _failed(result: ToolResult) -> bool:
    return result.is_error or result.text.startswith("ERROR")


def _mended(ask: Ask, call: ToolCall | None, result: ToolResult) -> Call | None:
    """A better call after an error: the tool that exists, or arguments that are valid."""
    if not _failed(result) or not ask.tools or ask.tool_choice == "none":
        return None
    lower = result.text.lower()
    offered = ask.tool(call.name) if call else None
    if offered is None:
        return _call(next(iter(_candidates(ask)), ask.tools[0]), ask.prompt, 0)
    if any(word in lower for word in ("json", "argument", "field", "valid", "required", "missing")):
        return _call(offered, ask.prompt, 0)
    return None


def _tried_before(ask: Ask) -> bool:
    failed = sum(_failed(result) for message in ask.messages for result in message.tool_results)
    return failed > len(ask.results)


def _aloud(call: ToolCall | None, result: ToolResult) -> str:
    text = " ".join(result.text.split()) or "nothing"
    if _failed(result):
        return f"I could not get that: {text.removeprefix('ERROR:').strip()}"
    if call is None or call.args is None:
        return text
    asked = next((str(value) for value in call.args.values() if isinstance(value, str)), "")
    return f"{asked} = {text}" if re.search(r"\d\s*[*+/^-]", asked) else f"{asked}: {text}" if asked else text


# ---------------------------------------------------------------- the cues' turns


def _first_tool(ask: Ask) -> Tool | None:
    return next(iter(_candidates(ask)), ask.tools[0] if ask.tools else None)


def _unknown_tool(ask: Ask) -> Turn | None:
    return Turn((Call("delete_all_bookings", {}),)) if ask.tools else None


def _invalid_json(ask: Ask) -> Turn | None:
    tool = _first_tool(ask)
    return Turn((Call(tool.name, '{"city": Paris}'),)) if tool else None


def _wrong_arguments(ask: Ask) -> Turn | None:
    tool = _first_tool(ask)
    return Turn((Call(tool.name, {"no_such_field": -1}),)) if tool else None


def _no_arguments(ask: Ask) -> Turn | None:
    bare = [tool for tool in ask.tools if not tool.schema_for_function().get("required")]
    tool = bare[0] if bare else _first_tool(ask)
    return Turn((Call(tool.name),)) if tool else None


def _loop(ask: Ask) -> Turn | None:
    tool = _first_tool(ask)
    return Turn((_call(tool, ask.prompt, 0),)) if tool else None


def _parallel(ask: Ask) -> Turn | None:
    calls = wanted_calls(ask)
    if not ask.tools or ask.tool_choice == "none" or not ask.parallel:
        return None
    while 0 < len(calls) < 2:
        calls = (*calls, _call(ask.tools[len(calls) % len(ask.tools)], ask.prompt, len(calls)))
    if not calls:
        calls = tuple(_call(ask.tools[place % len(ask.tools)], ask.prompt, place) for place in range(2))
    return Turn(calls)


def _refuse(ask: Ask) -> Turn:
    return Turn((Refuse("I cannot help with that."),))


def _pause(ask: Ask) -> Turn:
    return Turn((Say("I will search for that."), ServerCall(ask.prompt[:60])), StopReason.PAUSE)


def _run_out_text(ask: Ask) -> Turn:
    return Turn((Say(_text(ask.prompt, "long")),), run_out="text")


def _run_out_reasoning(ask: Ask) -> Turn:
    return Turn((Think("Step by step: " + "one more case to consider, " * 20), Say("Done.")), run_out="reasoning")


def _run_out_arguments(ask: Ask) -> Turn | None:
    tool = _first_tool(ask)
    return Turn((Say("I will do that."), _call(tool, ask.prompt, 0)), run_out="arguments") if tool else None


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
    "pause": _pause,
    "run_out_text": _run_out_text,
    "run_out_reasoning": _run_out_reasoning,
    "run_out_arguments": _run_out_arguments,
    "empty": _empty,
}

# ---------------------------------------------------------------- text


def _text(prompt: str, found: str | None) -> str:
    topic = " ".join(prompt.split())[:60]
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
    return f"This is the simulator's answer to “{topic}”. It is the same every time."


def _is_chinese(text: str) -> bool:
    return sum("一" <= character <= "鿿" for character in text) > len(text) * 0.3
