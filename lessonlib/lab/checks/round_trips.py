"""Lesson 04: three round trips from memory, judged by meaning: {"openai": {"request", "answer", "second"}, "anthropic":
..., "gemini": ...}.

What is asked: a system prompt, a question about Beijing, the tool `get_weather` with one required `city`, nothing kept by
the vendor. The model thinks and calls the tool; 100 tokens in, 40 of them cached, 55 written, 30 of them thinking. The
second request brings "Sunny, 25 °C". Ids, wording and the order of fields are free, and so is every form that the service
takes.

Requests are read by the simulator: its rules refuse what the service refuses, and its frontend says in neutral words what
was asked. Answers are read by the library. So a right answer in another style passes, and the message names the field.

What this check does not do: it verifies no signature and no encrypted content (they are the learner's inventions), and
knows no model names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lessonlib.errors import LessonError
from lessonlib.lab.checks.core import Check, Probe, Seen, WrongShape, call
from lessonlib.lab.course import MODELS, WIRE_OF
from lessonlib.sim.ask import Ask
from lessonlib.sim.reading import read
from lessonlib.sim.refusal import Refusal
from lessonlib.types import JSON, Reasoning, Response, ToolCall, Usage
from lessonlib.wire import WIRES
from lessonlib.wire.base import as_dict, as_list, as_text

PARTS = ("request", "answer", "second")
PLACES = ("Beijing", "北京")
SAID = "Sunny"

CONVERSATION = {"openai": "input", "anthropic": "messages", "gemini": "input"}
ITEMS = {"openai": "output", "anthropic": "content", "gemini": "steps"}
CARRIER = {"openai": "encrypted_content", "anthropic": "signature", "gemini": "signature"}
ARGUMENTS = {"openai": "arguments", "anthropic": "input", "gemini": "arguments"}
STOPS = {"openai": "completed", "anthropic": "tool_use", "gemini": "requires_action"}
THINKING = ("reasoning", "thinking", "redacted_thinking", "thought")
CALLS = ("function_call", "tool_use")

UNJUDGED = {"encrypted_content_genuine", "thinking_unchanged", "thinking_not_moved", "goog_thoughts_unchanged"}
"""Rules of the simulator that only its own signatures can keep."""

RULES = {
    "parameters_known": "unknown_field", "no_extra_inputs": "unknown_field", "goog_fields_known": "unknown_field",
    "max_tokens_present": "max_tokens_left_out", "messages_present": "role_not_there", "user_first": "role_not_there",
    "tools_well_formed": "tool_form", "client_tools_well_formed": "tool_form", "goog_tools_flat": "tool_form",
    "strict_schema_complete": "tool_form", "tool_types_exist": "tool_form", "tool_types_known": "tool_form",
    "items_well_formed": "item_form", "blocks_well_formed": "item_form", "goog_steps_well_formed": "item_form",
    "content_has_its_text": "item_form", "goog_content_well_formed": "item_form",
    "items_without_invented_fields": "status_sent_back", "reasoning_without_status": "status_sent_back",
    "results_first": "text_before_result",
    "every_output_has_its_call": "wrong_pair", "every_result_has_its_call": "wrong_pair",
    "every_call_has_its_output": "result_missing", "every_call_answered": "result_missing",
}  # fmt: skip
"""A rule of the simulator -> what its breach says about the learner. All others: "refused"."""

Fault = tuple[str, str]
"""A belief, and what was found, in words."""
Bodies = dict[str, JSON]
Judge = Callable[[str, Bodies], Fault | None]


@dataclass(frozen=True, slots=True)
class Look:
    """One thing to look at: in which bodies, where, what is expected, and who judges."""

    parts: tuple[str, ...]
    where: str
    expected: str
    judge: Judge


# ---------------------------------------------------------------- requests, read by the simulator


def _read(vendor: str, body: JSON) -> Ask | Refusal:
    """What the request asks for, or the service's refusal, but for the rules about signatures."""
    wire = WIRE_OF[vendor]
    return read(wire, {**body, "model": MODELS[wire]} if body.get("model") else body, without=UNJUDGED)


def _ask(vendor: str, body: JSON) -> Ask:
    """The request in neutral words."""
    found = _read(vendor, body)
    if isinstance(found, Refusal):
        raise ValueError(found.message)
    return found


def _taken(part: str) -> Judge:
    def judge(vendor: str, bodies: Bodies) -> Fault | None:
        found = _read(vendor, bodies[part])
        if isinstance(found, Ask):
            return None
        return _belief(found), f"{found.status} {found.message}"

    return judge


def _belief(found: Refusal) -> str:
    """What the breach of a rule says about the learner; of some rules only the message tells."""
    match found.rule:
        case "goog_every_call_answered":
            return "result_missing" if "has no function_result" in found.message else "wrong_pair"
        case "words_allowed" if ".role:" in found.message:
            return "role_not_there"
        case "no_extra_inputs" if found.message.startswith("store:"):
            return "store_everywhere"
        case "no_extra_inputs" if found.message.startswith("messages."):
            return "item_form"
    return RULES.get(found.rule or "", "refused")


def _system(vendor: str, bodies: Bodies) -> Fault | None:
    said = [_ask(vendor, bodies["request"]).system, *_developer(vendor, bodies["request"])]
    return None if "".join(said).strip() else ("system_left_out", "no system prompt was read")


def _developer(vendor: str, body: JSON) -> list[str]:
    """The texts that OpenAI takes for the developer's in the conversation itself, instead of in `instructions`."""
    entries = [as_dict(entry) for entry in as_list(body.get(CONVERSATION[vendor]))] if vendor == "openai" else []
    contents = [entry.get("content") for entry in entries if entry.get("role") in ("developer", "system")]
    return [
        content if isinstance(content, str) else "".join(as_text(as_dict(part).get("text")) for part in as_list(content))
        for content in contents
    ]


def _question(part: str) -> Judge:
    def judge(vendor: str, bodies: Bodies) -> Fault | None:
        messages = _ask(vendor, bodies[part]).messages
        first = messages[0].text if messages else ""
        return (
            None if any(place in first for place in PLACES) else ("question_left_out", f"the first message says {first!r}")
        )

    return judge


def _tool(vendor: str, bodies: Bodies) -> Fault | None:
    tool = _ask(vendor, bodies["request"]).tool("get_weather")
    schema = tool.schema_for_function() if tool is not None else {}
    if "city" in as_dict(schema.get("properties")) and "city" in as_list(schema.get("required")):
        return None
    return "tool_form", "no tool get_weather was read" if tool is None else f"its schema was read as {schema}"


def _kept(vendor: str, bodies: Bodies) -> Fault | None:
    body = bodies["request"]
    if vendor == "anthropic":
        return ("store_everywhere", f"store: {body['store']}") if "store" in body else None
    return None if body.get("store") is False else ("store_left_out", f"store: {body.get('store', 'is not there')}")


# ---------------------------------------------------------------- answers, read by the library


def _response(vendor: str, body: JSON) -> Response:
    kind = WIRES[WIRE_OF[vendor]]
    return kind(MODELS[WIRE_OF[vendor]], api_key="", base_url=kind.default_base_url).decode(body)


def _readable(vendor: str, bodies: Bodies) -> Fault | None:
    try:
        response = _response(vendor, bodies["answer"])
    except LessonError as error:
        return "not_an_answer", error.message
    return None if response.message.parts else ("not_an_answer", f"nothing was read in {ITEMS[vendor]!r}")


def _thinking(vendor: str, bodies: Bodies) -> Fault | None:
    first = _response(vendor, bodies["answer"]).message.parts[0]
    if not isinstance(first, Reasoning):
        return "no_thinking", f"the first entry was read as {first.type}"
    value = (first.raw or {}).get(CARRIER[vendor])
    return None if value or (first.raw or {}).get("data") else ("no_carrier", f"{CARRIER[vendor]}: {value!r}")


def _one_call(vendor: str, bodies: Bodies) -> Fault | None:
    calls = _response(vendor, bodies["answer"]).tool_calls
    if len(calls) != 1 or calls[0].name != "get_weather":
        return "no_call", f"calls that were read: {[call.name for call in calls]}"
    return _ids(vendor, calls[0]) or _form(vendor, calls[0])


def _ids(vendor: str, call: ToolCall) -> Fault | None:
    raw = call.raw or {}
    if vendor == "openai" and not raw.get("call_id"):
        return "one_id_only", f"id: {raw.get('id')!r}, no call_id"
    return None if call.call_id else ("one_id_only", "the call has no id")


def _form(vendor: str, call: ToolCall) -> Fault | None:
    given = (call.raw or {}).get(ARGUMENTS[vendor])
    found = f"{ARGUMENTS[vendor]}: {given!r}"
    if vendor == "openai" and not isinstance(given, str):
        return "arguments_as_object", found
    if vendor != "openai" and not isinstance(given, dict):
        return "arguments_as_text", found
    city = as_dict(call.args).get("city")
    return None if city in PLACES else ("arguments_wrong", found)


def _stop(vendor: str, bodies: Bodies) -> Fault | None:
    found = _response(vendor, bodies["answer"]).raw_stop
    return None if found == STOPS[vendor] else ("status_wrong", f"{found!r}")


def _counts(vendor: str, bodies: Bodies) -> Fault | None:
    usage = _response(vendor, bodies["answer"]).usage or Usage()
    found = f"{usage.input_tokens} in, {usage.cached_tokens} of them cached, {usage.output_tokens} out"
    if usage.input_tokens == 140:
        return "cache_counted_in", found
    told = usage.raw.get("output_tokens", usage.raw.get("total_output_tokens"))
    if told in (25, 55, 85) and told != (25 if vendor == "gemini" else 55):
        return "thoughts_misplaced", f"{told} written"
    right = (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (100, 40, 55)
    return None if right else ("usage_wrong", found)


# ---------------------------------------------------------------- the second request


def _same_settings(vendor: str, bodies: Bodies) -> Fault | None:
    first, second = bodies["request"], bodies["second"]
    for name, value in first.items():
        if name not in (CONVERSATION[vendor], "stream") and second.get(name) != value:
            return "settings_dropped", f"{name}: {second.get(name, 'is not there')!r}"
    if _developer(vendor, first) != (said := _developer(vendor, second)):
        return "settings_dropped", f"the developer's message: {said or 'is not there'}"
    return None


def _sent(vendor: str, body: JSON) -> list[JSON]:
    """The entries of a request's conversation."""
    entries = [as_dict(entry) for entry in as_list(body.get(CONVERSATION[vendor]))]
    if vendor != "anthropic":
        return entries
    return [as_dict(block) for message in entries for block in as_list(message.get("content"))]


def _goes_back(kinds: tuple[str, ...], left_out: str, changed: str) -> Judge:
    def judge(vendor: str, bodies: Bodies) -> Fault | None:
        came = [as_dict(item) for item in as_list(bodies["answer"].get(ITEMS[vendor]))]
        back = [item for item in _sent(vendor, bodies["second"]) if item.get("type") in kinds]
        for item in came:
            if item.get("type") in kinds and not any(_alike(item, other) for other in back):
                return (changed, f"{back[0]}") if back else (left_out, f"no entry of the type {item['type']}")
        return None

    return judge


def _alike(item: JSON, other: JSON) -> bool:
    """Whether an item went back as it came; `status` and nulls may stay behind."""
    bare = [{key: value for key, value in each.items() if key != "status" and value is not None} for each in (item, other)]
    return bare[0] == bare[1]


def _result(vendor: str, bodies: Bodies) -> Fault | None:
    ask = _ask(vendor, bodies["second"])
    if ask.talked_over:
        return "text_after_result", "text behind the result, in the same message"
    said = [result.text for _, result in ask.results]
    return None if any(SAID in text for text in said) else ("result_missing", f"results that were read: {said}")


# ---------------------------------------------------------------- probes


LOOKS = (
    Look(("request",), "the whole request", "what the service takes", _taken("request")),
    Look(("request",), "the system prompt", "a text, where this vendor has it", _system),
    Look(("request",), "the first message", "a question that names Beijing", _question("request")),
    Look(("request",), "the tool", "get_weather, with a required city", _tool),
    Look(("request",), "store", "nothing is kept by the vendor", _kept),
    Look(("answer",), "the list of entries", "an answer of this vendor", _readable),
    Look(("answer",), "the first entry", "what the model thought, as it can go back", _thinking),
    Look(("answer",), "why it stopped", "this vendor's word when a tool is wanted", _stop),
    Look(("answer",), "the call", "get_weather for Beijing, in this vendor's form", _one_call),
    Look(("answer",), "usage", "100 in, 40 of them cached, 55 out (30 of them thinking)", _counts),
    Look(("second",), "the whole request", "what the service takes", _taken("second")),
    Look(("second",), "the first message", "the question, again", _question("second")),
    Look(("request", "second"), "what is not the conversation", "the same as in the first request", _same_settings),
    Look(("answer", "second"), "the thinking", "the entry of the answer, as it came",
         _goes_back(THINKING, "thinking_left_out", "thinking_changed")),
    Look(("answer", "second"), "the call", "the entry of the answer, as it came",
         _goes_back(CALLS, "call_left_out", "call_changed")),
    Look(("second",), "the result", "“Sunny, 25 °C”, alone, found by its call", _result),
)  # fmt: skip
"""What is looked at, in this order, for each vendor."""


def observe(learner: Any, given: list[Any]) -> Any:
    """The bodies that a look needs. A function without parameters is as good as a dictionary."""
    vendor, parts = given
    trips = call("the function", learner) if callable(learner) else learner
    try:
        bodies = {part: trips[vendor][part] for part in parts}
    except (KeyError, TypeError):
        raise WrongShape(f"there is no [{vendor!r}][{parts[0]!r}] in it") from None
    if any(body is None for body in bodies.values()):
        raise NotImplementedError
    if not all(isinstance(body, dict) for body in bodies.values()):
        raise WrongShape(f"[{vendor!r}][{parts[0]!r}] must be a dictionary, the JSON of a body")
    return bodies


def probes(chance: random.Random) -> Iterator[Probe]:
    """Every look at every vendor, in the order of the lessons."""
    for vendor in WIRE_OF:
        for look in LOOKS:
            yield _probe(vendor, look)


def _probe(vendor: str, look: Look) -> Probe:
    def fault(value: Any) -> Fault | None:
        try:
            return look.judge(vendor, value)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:  # a form that nobody foresaw
            return "refused", f"it cannot be read ({type(error).__name__}: {error})"

    def says(belief: str) -> Callable[[Seen], bool]:
        return lambda seen: not seen.raised and (fault(seen.value) or ("", ""))[0] == belief

    return Probe(
        [vendor, list(look.parts)],
        None,
        f"{vendor}: {' and '.join(look.parts)}",
        look.where,
        "refused",
        tuple((says(belief), belief) for belief in check.beliefs),
        accept=lambda value: fault(value) is None,
        expected_words=look.expected,
        found_words=lambda seen: (fault(seen.value) or ("", "nothing"))[1],
    )


check = Check.of("trips", observe, probes)
