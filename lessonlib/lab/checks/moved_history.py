"""Lesson 11: `my_history(messages, wire) -> list`, a conversation as the JSON that another vendor takes.

What is asked: `messages` are the library's (Text, Reasoning, ToolCall, ToolResult, Opaque parts), `wire` is
"openai-responses", "anthropic-messages" or "gemini-interactions". The list is what stands in the body as `input`,
`messages` or `input`. Parts that came from this wire go back as their raw JSON; texts, calls and results of others are
rebuilt; others' reasoning and opaque parts stay behind.

Judged by meaning: the list is read back into plain lines, so one text block or two, a text or a list of contents are all
right.

What this check does not do: no pictures, no repairs of a history that is not in order.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from lessonlib.lab.checks.core import Check, Probe, Seen, Sign, call
from lessonlib.types import Message, Opaque, Reasoning, Text, ToolCall, ToolResult

OPENAI, ANTHROPIC, GEMINI = "openai-responses", "anthropic-messages", "gemini-interactions"
WIRES = (OPENAI, ANTHROPIC, GEMINI)

RAW: dict[str, dict[str, Any]] = {
    OPENAI: {
        "reasoning": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "BLOB-OF-OPENAI"},
        "text": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        "opaque": {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    },
    ANTHROPIC: {
        "reasoning": {"type": "thinking", "thinking": "Which?", "signature": "SIGNATURE-OF-ANTHROPIC"},
        "text": {"type": "text", "text": "I look."},
        "opaque": {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
    },
    GEMINI: {
        "reasoning": {"type": "thought", "summary": [], "signature": "SIGNATURE-OF-GEMINI"},
        "text": {"type": "model_output", "content": [{"type": "text", "text": "I look."}]},
        "opaque": {"type": "google_search_call", "id": "gs_1"},
    },
}  # fmt: skip


def raw_call(wire: str, call_id: str, name: str, args: dict[str, Any]) -> dict[str, Any]:
    """A call as that wire sent it."""
    match wire:
        case "openai-responses":
            return {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name, "arguments": json.dumps(args)}
        case "anthropic-messages":
            return {"type": "tool_use", "id": call_id, "name": name, "input": args}
        case _:
            return {"type": "function_call", "id": call_id, "name": name, "arguments": args}


def conversation(given: dict[str, Any]) -> list[Message]:
    """The messages that a probe describes: who said them, and what is in them."""
    source = given["from"]
    messages: list[Message] = []
    for role, kinds in given["turns"]:
        messages.append(Message(role=role, parts=[_part(kind, source) for kind in kinds]))
    return messages


def _part(kind: str, source: str) -> Any:
    name, number = [*kind.split(), ""][:2]
    match name:
        case "question":
            return Text(text="Is it sunny?")
        case "thanks":
            return Text(text="Thank you.")
        case "text":
            return Text(text="I look.", wire=source, raw=RAW[source]["text"])
        case "reasoning":
            return Reasoning(text="Which?", wire=source, raw=RAW[source]["reasoning"])
        case "opaque":
            return Opaque(kind=RAW[source]["opaque"]["type"], wire=source, raw=RAW[source]["opaque"])
        case "call":
            args = {"city": f"city {number}"}
            raw = raw_call(source, f"c{number}", "get_weather", args)
            return ToolCall(
                call_id=f"c{number}", name="get_weather", args=args, raw_args=json.dumps(args), wire=source, raw=raw
            )
        case _:
            return ToolResult(call_id=f"c{number}", name="get_weather", content=f"sun {number}", is_error="error" in kind)


# ---------------------------------------------------------------- reading back


def observe(learner: Any, given: dict[str, Any]) -> Any:
    """The list in plain lines, or what in it is no JSON of that wire."""
    messages = conversation(given)
    before = [message.model_dump_json() for message in messages]
    found = call("the function", learner, messages, given["to"])
    if [message.model_dump_json() for message in messages] != before:
        return {"changed": True}
    lines = [line for entry in json.loads(json.dumps(found)) for line in READERS[given["to"]](entry)]
    return {"lines": _joined(lines), "leak": _leak(found, given)}


def _leak(found: Any, given: dict[str, Any]) -> str:
    """Another vendor's secret in the list."""
    text = json.dumps(found)
    secrets = ("BLOB-OF-OPENAI", "SIGNATURE-OF-ANTHROPIC", "SIGNATURE-OF-GEMINI", "Which?")
    own = json.dumps(RAW[given["to"]])
    return next((secret for secret in secrets if secret in text and (given["from"] != given["to"] or secret not in own)), "")


def _joined(lines: list[str]) -> list[str]:
    """Neighbouring texts of one side as one line: how they are cut means nothing."""
    joined: list[str] = []
    for line in lines:
        side, mark, text = line.partition(" says ")
        if mark and joined and joined[-1].startswith(f"{side} says "):
            joined[-1] += text
        else:
            joined.append(line)
    return joined


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(piece.get("text", "")) for piece in content if isinstance(piece, dict))


def _arguments(value: Any) -> str:
    if isinstance(value, str):
        return f"text {json.dumps(json.loads(value), sort_keys=True)}"
    return f"object {json.dumps(value, sort_keys=True)}"


def _read_openai(item: Any) -> Iterator[str]:
    kind = item.get("type", "message")
    match kind:
        case "message":
            yield f"{item.get('role')} says {_words(item.get('content', ''))}"
        case "function_call":
            yield f"call {item.get('call_id')} {item.get('name')} {_arguments(item.get('arguments'))}"
        case "function_call_output":
            yield f"result {item.get('call_id')} {_words(item.get('output', ''))}"
        case _:
            yield f"{kind} as it came" if item in RAW[OPENAI].values() else f"{kind} changed"


def _read_anthropic(message: Any) -> Iterator[str]:
    content = message.get("content", [])
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    yield f"-- {message.get('role')}"
    for block in blocks:
        match block.get("type"):
            case "text":
                yield f"{message.get('role')} says {block.get('text')}"
            case "tool_use":
                yield f"call {block.get('id')} {block.get('name')} {_arguments(block.get('input'))}"
            case "tool_result":
                flag = " (error)" if block.get("is_error") else ""
                yield f"result {block.get('tool_use_id')} {_words(block.get('content', ''))}{flag}"
            case kind:
                yield f"{kind} as it came" if block in RAW[ANTHROPIC].values() else f"{kind} changed"


def _read_gemini(step: Any) -> Iterator[str]:
    match step.get("type"):
        case "user_input":
            yield f"user says {_words(step.get('content', ''))}"
        case "model_output":
            yield f"assistant says {_words(step.get('content', ''))}"
        case "function_call":
            yield f"call {step.get('id')} {step.get('name')} {_arguments(step.get('arguments'))}"
        case "function_result":
            name = step.get("name")
            flag = " (error)" if step.get("is_error") else ""
            yield f"result {step.get('call_id')} of {name or 'nothing'} {_words(step.get('result', ''))}{flag}"
        case kind:
            yield f"{kind} as it came" if step in RAW[GEMINI].values() else f"{kind} changed"


READERS: dict[str, Callable[[Any], Iterator[str]]] = {OPENAI: _read_openai, ANTHROPIC: _read_anthropic, GEMINI: _read_gemini}


# ---------------------------------------------------------------- what must come


def expected_lines(given: dict[str, Any]) -> list[str]:
    """The lines of a right answer."""
    source, wire = given["from"], given["to"]
    own = source == wire
    lines: list[str] = []
    for role, kinds in given["turns"]:
        lines += [f"-- {role}"] if wire == ANTHROPIC else []
        results_first = sorted(kinds, key=lambda kind: not kind.startswith("result")) if role == "user" else kinds
        for kind in results_first:
            lines += _expected(kind, role, wire, own)
    return _joined(lines)


def _expected(kind: str, role: str, wire: str, own: bool) -> list[str]:
    name, number = [*kind.split(), ""][:2]
    match name:
        case "question" | "thanks" | "text":
            words = {"question": "Is it sunny?", "thanks": "Thank you.", "text": "I look."}[name]
            return [f"{role} says {words}"]
        case "reasoning" | "opaque":
            return [f"{RAW[wire][name]['type']} as it came"] if own else []
        case "call":
            arguments = {"city": f"city {number}"}
            form = "text" if wire == OPENAI else "object"
            return [f"call c{number} get_weather {form} {json.dumps(arguments)}"]
        case _:
            of = " of get_weather" if wire == GEMINI else ""
            flag = " (error)" if "error" in kind and wire != OPENAI else ""
            return [f"result c{number}{of} sun {number}{flag}"]


# ---------------------------------------------------------------- probes


def _probe(source: str, wire: str, turns: list[Any], belief: str, *signs: tuple[Sign, str], where: str) -> Probe:
    given = {"from": source, "to": wire, "turns": turns}
    lines = expected_lines(given)
    fed = f"from {source} to {wire}: " + "; ".join(f"{role}: {', '.join(kinds)}" for role, kinds in turns)
    general = ((_changed, "changes_the_history"), (_leaks, "reasoning_leaks"))

    def right(seen: Any) -> bool:
        flagged = [line.removesuffix(" (error)") for line in seen["lines"]] if wire == OPENAI else seen["lines"]
        return not seen["leak"] and bool(flagged == lines)

    return Probe(
        given,
        None,
        fed,
        where,
        belief,
        (*general, *signs),
        accept=lambda seen: "lines" in seen and right(seen),
        expected_words="\n".join(lines),
        found_words=_shown,
    )


def _changed(seen: Seen) -> bool:
    return not seen.raised and "changed" in seen.value


def _leaks(seen: Seen) -> bool:
    return not seen.raised and bool(seen.value["leak"])


def _shown(seen: Seen) -> str:
    if "changed" in seen.value:
        return "the messages that were passed in are not as they were"
    leak = f"\nand in it: {seen.value['leak']}" if seen.value["leak"] else ""
    return "\n".join(seen.value["lines"]) + leak


def _line(test: Callable[[str], bool]) -> Sign:
    return lambda seen: not seen.raised and "lines" in seen.value and any(map(test, seen.value["lines"]))


def _without(words: str) -> Sign:
    return lambda seen: not seen.raised and "lines" in seen.value and not any(words in line for line in seen.value["lines"])


ASK: list[Any] = ["user", ["question"]]
ROUND: list[Any] = [ASK, ["assistant", ["reasoning", "text", "call 1"]], ["user", ["result 1"]]]
TWO: list[Any] = [ASK, ["assistant", ["call 1", "call 2"]], ["user", ["result 1", "result 2"]]]


def probes(chance: random.Random) -> Iterator[Probe]:
    """A question; a round of a tool to each other wire; the same wire; several calls; errors; by chance."""
    for wire in WIRES:
        other = next(each for each in WIRES if each != wire)
        yield _probe(other, wire, [ASK], "wrong_role", where="the question")
        yield _probe(
            other,
            wire,
            [ASK, ["assistant", ["text"]], ["user", ["thanks"]]],
            "wrong_role",
            (_line(_is_foreign), "foreign_raw"),
            (_without("I look."), "text_lost"),
            where="who says what",
        )
    for source in WIRES:
        for wire in WIRES:
            if source != wire:
                yield _round(source, wire)
    for wire in WIRES:
        yield _probe(
            wire, wire, ROUND, "own_parts_rebuilt", (_without(" as it came"), "own_parts_rebuilt"), where="the reasoning"
        )
        kept: list[Any] = [ASK, ["assistant", ["opaque", "text"]], ["user", ["thanks"]]]
        yield _probe(wire, wire, kept, "opaque_lost", where="the service's own search")
    yield from _more()
    for _ in range(12):
        yield _by_chance(chance)


def _is_foreign(line: str) -> bool:
    return "changed" in line or "None" in line


def _round(source: str, wire: str) -> Probe:
    text_or_object = (
        _line(lambda line: line.startswith("call") and f"{'object' if wire == OPENAI else 'text'} {{" in line),
        "arguments_in_the_wrong_form",
    )
    return _probe(
        source,
        wire,
        ROUND,
        "call_and_result",
        (_line(_is_foreign), "foreign_raw"),
        text_or_object,
        (_without("call c"), "call_lost"),
        (_without("result "), "result_lost"),
        (_line(lambda line: " of nothing" in line), "name_missing"),
        where="the round of the tool",
    )


def _more() -> Iterator[Probe]:
    for wire in WIRES:
        other = WIRES[WIRES.index(wire) - 1]

        def apart(seen: Seen) -> bool:
            return not seen.raised and "lines" in seen.value and seen.value["lines"].count("-- user") > 2

        yield _probe(other, wire, TWO, "order_lost", (apart, "results_apart"), where="two calls and their results")
        late: list[Any] = [ASK, ["assistant", ["call 1"]], ["user", ["thanks", "result 1"]]]
        if wire == ANTHROPIC:
            yield _probe(other, wire, late, "words_before_results", where="the order inside the last message")
        failed: list[Any] = [ASK, ["assistant", ["call 1"]], ["user", ["result 1 error"]]]
        if wire != OPENAI:
            yield _probe(other, wire, failed, "error_flag_lost", where="the result of a tool that failed")
        searched: list[Any] = [ASK, ["assistant", ["opaque", "text"]], ["user", ["thanks"]]]
        yield _probe(other, wire, searched, "opaque_leaks", where="the other service's own search")


def _by_chance(chance: random.Random) -> Probe:
    source, wire = chance.choice(WIRES), chance.choice(WIRES)
    turns: list[Any] = [ASK]
    number = 0
    for _ in range(chance.randrange(1, 4)):
        calls = range(number, number + chance.randrange(1, 4))
        number += 5
        turns.append(["assistant", [*chance.choice((["reasoning"], [])), "text", *(f"call {n}" for n in calls)]])
        turns.append(["user", [f"result {n}" for n in calls]])
    return _probe(source, wire, turns, "stuck", where="the first line that differs")


check = Check.of("history", observe, probes)
