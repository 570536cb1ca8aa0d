"""Tool loops, right and wrong."""

from __future__ import annotations

from lessonlib import MaxSteps, Message, StopReason, ToolResult, run_tools
from lessonlib.errors import LessonError
from tests.lab_exercises.answers import Answers


def base(provider, request, tools, max_steps=8):
    messages = list(request.messages)
    for _ in range(max_steps):
        response = provider.generate(request.replace(messages=messages))
        messages = [*messages, response.message]
        if response.stop is StopReason.PAUSE:
            continue
        if response.stop is not StopReason.TOOL_USE or not response.tool_calls:
            return response, messages
        results = []
        for call in response.tool_calls:
            error = True
            if call.name not in tools:
                text = f"There is no tool {call.name}. The tools are: {', '.join(tools)}."
            elif call.args is None:
                text = f"Not run: {call.args_error}"
            else:
                try:
                    text, error = tools[call.name](**call.args), False
                except Exception as problem:
                    text = f"{type(problem).__name__}: {problem}"
            results.append(ToolResult(call_id=call.call_id, name=call.name, content=text, is_error=error))
        messages = [*messages, Message.user(*results)]
    raise MaxSteps("too many steps")


def by_library(provider, request, tools, max_steps=8):
    return run_tools(provider, request, tools, max_steps=max_steps)


def by_recursion(provider, request, tools, max_steps=8):
    """Another style: recursion, errors without the flag."""
    if max_steps == 0:
        raise MaxSteps("enough")
    response = provider.generate(request)
    history = [*request.messages, response.message]
    if response.stop == "pause":
        return by_recursion(provider, request.replace(messages=history), tools, max_steps - 1)
    if response.stop != "tool_use" or not response.tool_calls:
        return response, history
    said = Message.user(*[ToolResult(call_id=call.call_id, content=answer(call, tools)) for call in response.tool_calls])
    return by_recursion(provider, request.replace(messages=[*history, said]), tools, max_steps - 1)


def answer(call, tools):
    if call.args is None:
        return call.args_error
    try:
        return tools[call.name](**call.args)
    except KeyError:
        return f"unknown tool; there are {list(tools)}"
    except Exception as error:
        return repr(error)


def keeps_by_name(provider, request, tools, max_steps=8):
    """One result per tool name."""
    messages = list(request.messages)
    for _ in range(max_steps):
        response = provider.generate(request.replace(messages=messages))
        messages.append(response.message)
        if response.stop != "tool_use" or not response.tool_calls:
            return response, messages
        by_name = {call.name: (call, answer(call, tools)) for call in response.tool_calls}
        messages.append(Message.user(*[ToolResult(call_id=call.call_id, content=text) for call, text in by_name.values()]))
    raise MaxSteps("enough")


def appends(provider, request, tools, max_steps=8):
    """The caller's own list grows."""
    messages = request.messages
    for _ in range(max_steps):
        response = provider.generate(request)
        messages.append(response.message)
        if response.stop == "pause":
            continue
        if response.stop != "tool_use" or not response.tool_calls:
            return response, messages
        messages.append(
            Message.user(*[ToolResult(call_id=c.call_id, content=answer(c, tools)) for c in response.tool_calls])
        )
    raise MaxSteps("enough")


def assumes(provider, request, tools, max_steps=8):
    """Makes arguments up where there are none."""
    known = {
        name: (lambda city="here", tool=tool, **rest: tool(city, **rest) if not rest else tool(**rest))
        for name, tool in tools.items()
    }
    messages = list(request.messages)
    for _ in range(max_steps):
        response = provider.generate(request.replace(messages=messages))
        messages.append(response.message)
        if response.stop == "pause":
            continue
        if response.stop != "tool_use" or not response.tool_calls:
            return response, messages
        results = []
        for call in response.tool_calls:
            try:
                text = known[call.name](**(call.args or {}))
            except Exception as error:
                text = repr(error)
            results.append(ToolResult(call_id=call.call_id, content=text))
        messages.append(Message.user(*results))
    raise MaxSteps("enough")


def swallows(provider, request, tools, max_steps=8):
    try:
        return base(provider, request, tools, max_steps)
    except LessonError:
        return provider.generate(request), request.messages


LOOP = "for _ in range(max_steps):"
PAUSE = "        if response.stop is StopReason.PAUSE:\n            continue\n"
STOP = "if response.stop is not StopReason.TOOL_USE or not response.tool_calls:"

ANSWERS = Answers(
    "tool_loop",
    base,
    [by_library, by_recursion, lambda *given, **named: list(base(*given, **named))],
    [
        ("dict_by_name", keeps_by_name),
        ("history_mutated", appends),
        ("runs_without_arguments", assumes),
        ("limit_in_silence", swallows),
        ("wrong_shape", lambda provider: provider),
        ("wrong_shape", lambda *given, **named: base(*given, **named)[0]),
    ],
)  # fmt: skip
