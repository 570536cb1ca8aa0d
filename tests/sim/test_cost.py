"""What the simulator bills: real counts, each vendor's own accounting, a prompt cache that works, and reasoning that is paid
for again when it was not sent back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lessonlib.client import Client
from lessonlib.sim import SimTransport, Simulator
from lessonlib.types import JSON, Message, Reasoning, Request, Response, ToolResult, Usage
from lessonlib.vocabulary import count_text
from lessonlib.wire import WIRES
from tests.sim.requests import MODELS, WEATHER, body_of, conversation, second_request, send
from tests.timing import seconds

RESPONSES, CHAT, MESSAGES = "openai-responses", "openai-chat", "anthropic-messages"
INTERACTIONS, GENERATE = "gemini-interactions", "gemini-generate-content"
LONG = "The quick brown fox jumps over the lazy dog. " * 20
MARK = {"cache_control": {"type": "ephemeral"}}


def generate(wire: str, request: Request, sim: Simulator, model: str | None = None) -> Response:
    with Client(WIRES[wire](model or MODELS[wire], api_key="k"), transport=SimTransport(sim)) as client:
        return client.generate(request)


def usage(wire: str, request: Request, sim: Simulator | None = None, model: str | None = None) -> Usage:
    found = generate(wire, request, sim or Simulator(), model).usage
    assert found is not None
    return found


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize("wire", WIRES)
def test_counts_are_those_of_the_vocabulary(wire: str) -> None:
    few, many = (usage(wire, Request(messages=[Message.user(text)])) for text in ("Hello", "Hello " + LONG))
    assert many.input_tokens is not None
    assert few.input_tokens is not None
    assert abs(many.input_tokens - few.input_tokens - count_text(LONG)) <= 2
    assert few.output_tokens == (few.reasoning_tokens or 0) + count_text("Hello!")


@pytest.mark.parametrize("wire", WIRES)
def test_the_vendors_own_totals_add_up(wire: str) -> None:
    raw = usage(wire, conversation(wire)).raw
    names = {
        RESPONSES: ("total_tokens", "input_tokens", "output_tokens"),
        CHAT: ("total_tokens", "prompt_tokens", "completion_tokens"),
        INTERACTIONS: ("total_tokens", *(f"total_{name}_tokens" for name in ("input", "output", "thought", "tool_use"))),
        GENERATE: ("totalTokenCount", "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"),
    }  # fmt: skip
    if wire in names:  # Messages reports no total
        total, *rest = (raw.get(name, 0) for name in names[wire])
        assert total == sum(rest) > 0


@pytest.mark.parametrize("wire", WIRES)
def test_input_grows_with_the_history_by_what_it_holds(wire: str) -> None:
    counts = []
    for turns in (1, 2, 3, 4):
        history = [message for _ in range(turns) for message in (Message.user("One more?"), Message.assistant("One more."))]
        counts.append(usage(wire, Request(messages=[*history, Message.user("Done?")])).input_tokens or 0)
    steps = {later - earlier for earlier, later in pairwise(counts)}
    assert len(steps) == 1


# ---------------------------------------------------------------- the cache

CACHED: dict[str, JSON] = {MESSAGES: {MESSAGES: MARK}}


@pytest.mark.parametrize("wire", WIRES)
def test_the_second_run_is_cached_and_only_the_new_turn_is_fresh(wire: str) -> None:
    sim = Simulator()
    request = Request(messages=[Message.user(LONG)], system="Be brief.", tools=[WEATHER], extra=CACHED.get(wire, {}))
    first, again = usage(wire, request, sim), usage(wire, request, sim)
    more = request.replace(messages=[*request.messages, Message.assistant("Yes."), Message.user("And?")])
    grown = usage(wire, more, sim)
    other = usage(wire, request.replace(system="Be long."), sim)
    assert (first.cached_tokens or 0, other.cached_tokens or 0) == (0, 0)
    assert again.cached_tokens == again.input_tokens == first.input_tokens
    assert grown.cached_tokens == first.input_tokens
    assert grown.input_tokens is not None
    assert first.input_tokens is not None
    assert 0 < grown.input_tokens - first.input_tokens < 20


def test_messages_caches_nothing_without_a_mark() -> None:
    sim = Simulator()
    request = Request(messages=[Message.user(LONG)])
    for _ in range(2):
        found = usage(MESSAGES, request, sim)
        assert (found.cached_tokens, found.cache_write_tokens) == (0, 0)


def test_messages_caches_up_to_the_mark_and_tells_writes_from_reads() -> None:
    sim = Simulator()
    system: JSON = {"system": [{"type": "text", "text": LONG, **MARK}]}
    raws = [
        usage(MESSAGES, Request(messages=[Message.user(text)], extra={MESSAGES: system}), sim).raw for text in ("One", "Two")
    ]
    first, second = raws
    assert first["cache_creation_input_tokens"] == second["cache_read_input_tokens"] > 100
    assert (first["cache_read_input_tokens"], second["cache_creation_input_tokens"]) == (0, 0)
    assert first["input_tokens"] == second["input_tokens"] < 10
    assert first["cache_creation"] == {"ephemeral_5m_input_tokens": first["cache_creation_input_tokens"],
                                       "ephemeral_1h_input_tokens": 0}  # fmt: skip


def test_a_mark_for_an_hour_lives_an_hour_and_says_so() -> None:
    now = [0.0]
    sim = Simulator(clock=lambda: now[0])
    marks = [(0, "5m", False), (299, "5m", True), (700, "5m", False), (701, "1h", True), (4000, "1h", True)]
    for second, ttl, cached in marks:
        now[0] = second
        request = Request(
            messages=[Message.user(LONG)], extra={MESSAGES: {"cache_control": {"type": "ephemeral", "ttl": ttl}}}
        )
        raw = usage(MESSAGES, request, sim).raw
        assert (raw["cache_read_input_tokens"] > 0) is cached
    assert set(raw["cache_creation"]) == {"ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"}


def test_a_mark_counts_neighbours_of_one_role_as_one_turn() -> None:
    """Two user messages in a row are one turn: the mark on the second covers both."""
    marked = {"type": "text", "text": "And?", **MARK}
    messages = [{"role": "user", "content": LONG}, {"role": "user", "content": [marked]}]
    body = {"model": MODELS[MESSAGES], "max_tokens": 99, "messages": messages}
    headers = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
    sim = Simulator()
    written, read = (body_of(send(sim, "/v1/messages", headers, body))["usage"] for _ in range(2))
    assert written["cache_creation_input_tokens"] == read["cache_read_input_tokens"] > 100
    assert (written["input_tokens"], read["input_tokens"]) == (0, 0)


def test_openai_reports_writes_from_the_generation_that_bills_them() -> None:
    new, old = (usage(RESPONSES, Request(messages=[Message.user(LONG)]), model=model).cache_write_tokens
                for model in ("gpt-6-astra", "gpt-4o"))  # fmt: skip
    assert (new or 0) > 100
    assert not old


def test_chat_reports_writes_where_openai_bills_them_and_deepseek_what_it_missed() -> None:
    def counted(model: str) -> list[dict[str, Any]]:
        sim, asked = Simulator(), {"model": model, "messages": [{"role": "user", "content": LONG}]}
        path, headers, _ = second_request(CHAT)
        return [body_of(send(sim, path, headers, asked))["usage"] for _ in range(2)]

    new, old, other = (counted(model) for model in ("gpt-6-astra", "gpt-4o", "deepseek-v4-pro"))
    prompt = new[0]["prompt_tokens"]
    assert [one["prompt_tokens_details"]["cache_write_tokens"] for one in new] == [prompt, 0]
    assert "cache_write_tokens" not in old[0]["prompt_tokens_details"]
    assert [(one["prompt_cache_hit_tokens"], one["prompt_cache_miss_tokens"]) for one in other] == [(0, prompt), (prompt, 0)]


def test_short_prompts_are_not_cached() -> None:
    sim = Simulator(cache_minimum=1024)
    request = Request(messages=[Message.user(LONG)])
    assert [usage(RESPONSES, request, sim).cached_tokens for _ in range(2)] == [0, 0]


def test_the_cache_outlives_the_process_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "cache.json"
    request = Request(messages=[Message.user(LONG)])
    counts = [usage(GENERATE, request, Simulator(cache_file=file)).cached_tokens for _ in range(2)]
    assert counts[0] in (0, None)
    assert (counts[1] or 0) > 100
    for broken in ("", "[]", '{"a": []}', "{"):
        file.write_text(broken, encoding="utf-8")
        assert usage(GENERATE, request, Simulator(cache_file=file)).cached_tokens in (0, None)


def test_the_cache_does_not_grow_for_ever() -> None:
    sim = Simulator()
    for number in range(3):
        sim.cache._until |= {f"{number}-{key}": 0.0 for key in range(9_000)}
        usage(RESPONSES, Request(messages=[Message.user(f"{number} {LONG}")]), sim)
    assert len(sim.cache._until) < 10_000


# ---------------------------------------------------------------- reasoning


def bare(request: Request) -> Request:
    """The same history, rebuilt: the reasoning is gone, and with it every id of the vendor's."""
    messages = []
    for message in request.messages:
        kept = [
            part.model_copy(update={"raw": None, "wire": None}) for part in message.parts if not isinstance(part, Reasoning)
        ]
        messages.append(Message(role=message.role, parts=kept))
    return request.replace(messages=messages)


def test_reasoning_that_is_dropped_is_thought_and_paid_for_again() -> None:
    kept, dropped = usage(RESPONSES, conversation(RESPONSES)), usage(RESPONSES, bare(conversation(RESPONSES)))
    assert (dropped.reasoning_tokens or 0) > 2 * (kept.reasoning_tokens or 0) > 0


def test_chat_carries_no_reasoning_so_a_tool_turn_costs_more_than_on_responses() -> None:
    """OpenAI's older API has no place for it; a model of another maker, which gets it back, does not think it all again."""
    chat, responses = (usage(wire, conversation(wire)).reasoning_tokens or 0 for wire in (CHAT, RESPONSES))
    other = usage(CHAT, conversation(CHAT, "deepseek-v4-pro"), model="deepseek-v4-pro").reasoning_tokens or 0
    assert chat > 2 * responses > 0
    assert other == responses


def test_reasoning_of_another_model_is_removed_and_the_answer_says_so() -> None:
    request = conversation(RESPONSES)
    same, other = (generate(RESPONSES, request, Simulator(), model) for model in ("gpt-6-astra", "gpt-5.6"))
    [reasoning] = [item for item in request.messages[1].parts if isinstance(item, Reasoning)]
    assert "input_transformations" not in same.raw
    assert reasoning.raw is not None
    assert other.raw["input_transformations"] == [
        {"id": reasoning.raw["id"], "type": "reasoning", "action": "removed", "reason": "model_mismatch"}
    ]
    assert same.usage is not None
    assert other.usage is not None
    assert (other.usage.reasoning_tokens or 0) > (same.usage.reasoning_tokens or 0)


def test_messages_drops_the_thinking_of_another_model_without_a_word() -> None:
    request = conversation(MESSAGES)
    other = generate(MESSAGES, request, Simulator(), "claude-sonnet-5-5")
    assert other.usage is not None
    assert (other.usage.reasoning_tokens or 0) > (usage(MESSAGES, request).reasoning_tokens or 0)
    assert "input_transformations" not in other.raw


BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}


def test_thinking_that_lost_its_place_is_dropped_on_request_and_reported() -> None:
    path, headers, body = second_request(MESSAGES)
    binding = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    moved: dict[str, Any] = {**body, "system": "Answer in rhyme.", **binding}
    assert send(Simulator(), path, headers, moved).status == 400
    answer = body_of(send(Simulator(), path, {**headers, **BETA}, moved))
    assert answer["input_transformations"] == [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    ]
    streamed = b"".join(data for _, data in send(Simulator(), path, {**headers, **BETA}, {**moved, "stream": True}).chunks)
    assert b'"input_transformations":[{"type":"thinking_dropped"' in streamed


# ---------------------------------------------------------------- long histories


def long_history(wire: str, turns: int) -> tuple[str, dict[str, str], JSON]:
    """A conversation of many tool turns, each made by the simulator, as the library writes it."""
    sim = Simulator()
    request = Request(messages=[], tools=[WEATHER], max_tokens=2000)
    with Client(WIRES[wire](MODELS[wire], api_key="k"), transport=SimTransport(sim)) as client:
        for _ in range(turns):
            request = request.replace(messages=[*request.messages, Message.user("What is the weather in Lima?")])
            answer = client.generate(request)
            results = [ToolResult(call_id=call.call_id, content="sunny") for call in answer.tool_calls]
            request = request.replace(
                messages=[*request.messages, answer.message, Message.user(*results), Message.assistant("Sunny.")]
            )
    encoded = client.wire.encode(request.replace(messages=[*request.messages, Message.user("Thanks.")]))
    return "/" + encoded.url.split("/", 3)[3], {k.lower(): v for k, v in encoded.headers.items()}, encoded.body


def copies(body: JSON, times: int) -> JSON:
    """The same conversation several times over. Ids and signatures stay right as far as the rules look."""
    name = next(name for name in ("input", "messages", "contents") if name in body)
    *turns, last = body[name]
    return {**body, name: [*turns * times, last]}


def answered(path: str, headers: dict[str, str], body: JSON) -> None:
    assert send(Simulator(), path, headers, body).status == 200


@pytest.mark.parametrize("wire", [RESPONSES, CHAT, INTERACTIONS, GENERATE])
def test_a_thousand_messages_are_answered_at_once_and_ten_thousand_in_ten_times_that(wire: str) -> None:
    path, headers, body = long_history(wire, 4)
    if "input" in body:  # calls of these two may not stand there twice
        body["input"] = [item for item in body["input"] if "function" not in item.get("type", "") and "id" not in item]
    took = {}
    for times in (70, 700):
        data = copies(body, times)
        took[times] = seconds(lambda data=data: answered(path, headers, data))
    assert took[70] < 2
    assert took[700] < 25 * took[70]


def test_thinking_in_a_long_history_is_checked_in_linear_time() -> None:
    """Every block is signed over all that stands before it: one running digest, not one digest of everything for each."""
    path, headers, body = long_history(MESSAGES, 40)
    assert seconds(lambda: answered(path, headers, body), enough=1) < 1
