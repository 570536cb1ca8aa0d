"""What is read: one answer, written as each of the five wires would send it.

An answer is a list of blocks (text, thinking, calls), each in pieces. A writer turns it into the bytes of one vendor's
stream: its order of keys, its framing, and what it adds to every event (padding, obfuscation, pings, usage on each chunk).
The forms are those of the recordings in testdata/ (docs/wire/ says where they come from). Everything is made from a seed, so
every run reads the same bytes.

What this file does not do: no reading. `expected` is known before the bytes are written, so no reader checks itself.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

Payloads = Iterator[dict[str, Any]]

TESTDATA = Path(__file__).parent.parent / "testdata"
MODELS = {
    "anthropic-messages": "claude-opus-5-5",
    "openai-responses": "gpt-6-astra",
    "openai-chat": "gpt-6-astra",
    "gemini-interactions": "gemini-3.8-flash",
    "gemini-generate-content": "gemini-3.8-flash",
}
_TEXT = (
    "the a of harbour tide ferry opens at six and first leaves half past wind from north west light rain over fjord boats "
    "remain moored until morning forecast says that it will clear by noon temperature twelve degrees Zürich naïve 北京 "
    "東京 🌊 value = compute(x); \n\n - * ** return result"
)
WORDS = _TEXT.split(" ")
PIECE = 12  # characters in one delta of a tool's arguments


# ---------------------------------------------------------------- answers


@dataclass(frozen=True)
class Block:
    """A piece of an answer. kind: "text", "thinking" or "call". name: of the tool."""

    kind: str
    pieces: tuple[str, ...]
    name: str = ""

    @property
    def whole(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Expected:
    """What every reader must find in a stream. calls: name and arguments. events: payloads, `[DONE]` not counted."""

    text: str
    calls: list[tuple[str, Any]]
    events: int


@dataclass(frozen=True)
class Stream:
    """One vendor's bytes of one answer."""

    wire: str
    case: str
    body: bytes = field(repr=False)
    expected: Expected = field(repr=False)

    def chunks(self, size: int) -> list[bytes]:
        """The body as a network that reads `size` bytes at a time delivers it."""
        return [self.body[start : start + size] for start in range(0, len(self.body), size)]


def words(count: int, seed: int = 1) -> tuple[str, ...]:
    """Text as models stream it: a word or two at a time."""
    chance = random.Random(seed)
    return tuple(" " + chance.choice(WORDS) for _ in range(count))


def arguments(size: int, seed: int = 1) -> str:
    """The arguments of a tool call that writes a table: JSON of about `size` characters, thousands of objects in it."""
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    room = size
    while room > 0:
        row = {"id": len(rows), "place": " ".join(chance.choices(WORDS[:24], k=3)), "level": chance.random(), "open": True}
        rows.append(row)
        room -= 25 + len(json.dumps(row, ensure_ascii=False))
    return json.dumps({"path": "tide.json", "rows": rows}, ensure_ascii=False)


def cut(text: str, size: int = PIECE) -> tuple[str, ...]:
    return tuple(text[start : start + size] for start in range(0, len(text), size))


def text_answer(deltas: int) -> list[Block]:
    return [Block("text", words(deltas))]


def arguments_answer(size: int) -> list[Block]:
    return [Block("call", cut(arguments(size)), "write_table")]


def one_event_answer(size: int) -> list[Block]:
    return [Block("text", (" ".join(words(size // 7)).ljust(size, ".")[:size],))]


def parallel_answer(thoughts: int, calls: int = 8) -> list[Block]:
    """Thinking, a line of text, and calls in parallel."""
    called = [Block("call", cut(arguments(600, seed=number)), f"tool_{number}") for number in range(calls)]
    return [Block("thinking", words(thoughts)), Block("text", words(20)), *called]


def objects(size: int) -> list[Block]:
    """A call whose arguments come in one piece: one large argument object."""
    return [Block("call", (arguments(size),), "write_table")]


@lru_cache(maxsize=2)
def stream(wire: str, case: str, size: int) -> Stream:
    """The stream of one case (a key of CASES) at a size, for one wire."""
    blocks = CASES[case](size)
    body, events = _encoded(wire, WRITERS[wire](blocks))
    text = "".join(block.whole for block in blocks if block.kind == "text")
    calls = [(block.name, json.loads(block.whole)) for block in blocks if block.kind == "call"]
    return Stream(wire, case, body, Expected(text, calls, events))


CASES: dict[str, Callable[[int], list[Block]]] = {
    "text": text_answer,
    "arguments": arguments_answer,
    "one event": one_event_answer,
    "thinking and 8 calls": parallel_answer,
    "one argument object": objects,
}


# ---------------------------------------------------------------- recordings


def recordings(wire: str, times: int) -> list[tuple[str, bytes]]:
    """The streams of testdata/ that end well, `times` over: the text that must be read, and the bytes."""
    kept: list[tuple[str, bytes]] = []
    for folder in sorted((TESTDATA / wire).iterdir()):
        path, expect = folder / "stream.sse", folder / "expect.json"
        told = json.loads(expect.read_text(encoding="utf-8")) if path.is_file() and expect.is_file() else {"error": "none"}
        if told["error"] is None:
            kept.append((told["text"], path.read_bytes()))
    return kept * times


# ---------------------------------------------------------------- bytes


def _encoded(wire: str, payloads: Payloads) -> tuple[bytes, int]:
    named = wire in ("anthropic-messages", "openai-responses", "gemini-interactions")
    spaced = wire == "gemini-generate-content"  # its server writes a space after a colon, and none after a comma
    end = "\r\n" if spaced else "\n"
    lines: list[bytes] = []
    for payload in payloads:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ": ") if spaced else (",", ":"))
        if wire == "anthropic-messages":  # blanks before the last bracket hide the length of the text
            text = text[:-1] + " " * (len(lines) * 7 % 11) + "}"
        name = f"event: {payload.get('event_type') or payload['type']}\n" if named else ""
        lines.append(f"{name}data: {text}{end}{end}".encode())
    count = len(lines)
    if wire == "gemini-interactions":
        lines.append(b"event: done\ndata: [DONE]\n\n")
    if wire == "openai-chat":
        lines.append(b"data: [DONE]\n\n")
    return b"".join(lines), count


def _obfuscation(number: int) -> str:
    return "i8qihHeFVQeRyxS7"[: 3 + number * 5 % 13]


# ---------------------------------------------------------------- one writer per wire


def messages(blocks: Sequence[Block]) -> Payloads:
    usage = {"input_tokens": 812, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 2048, "output_tokens": 1}
    message = {
        "model": MODELS["anthropic-messages"],
        "id": "msg_01TideBench000000000",
        "type": "message",
        "role": "assistant",
    }
    yield {
        "type": "message_start",
        "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage},
    }
    for index, block in enumerate(blocks):
        start, kind, name = _messages_block(block, index)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        if index == 0:
            yield {"type": "ping"}
        for piece in block.pieces:
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}}
        if block.kind == "thinking":
            yield {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "signature_delta", "signature": "aW52ZW50ZWQ" * 40},
            }
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if any(block.kind == "call" for block in blocks) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {**usage, "output_tokens": 4711},
    }
    yield {"type": "message_stop"}


def _messages_block(block: Block, index: int) -> tuple[dict[str, Any], str, str]:
    if block.kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"
    if block.kind == "text":
        return {"type": "text", "text": ""}, "text_delta", "text"
    call = {"type": "tool_use", "id": f"toolu_01Tide{index:012}", "name": block.name, "input": {}}
    return call, "input_json_delta", "partial_json"


def responses(blocks: Sequence[Block]) -> Payloads:
    numbered = _responses(blocks)
    for number, payload in enumerate(numbered):
        yield {**payload, "sequence_number": number}


def _responses(blocks: Sequence[Block]) -> Payloads:
    response = {
        "id": "resp_982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a85", "object": "response", "created_at": 1793738957,
        "status": "in_progress", "background": False, "error": None, "incomplete_details": None, "instructions": None,
        "max_output_tokens": None, "model": MODELS["openai-responses"], "output": [], "parallel_tool_calls": True,
        "previous_response_id": None, "reasoning": {"effort": "low", "summary": "auto"}, "store": False, "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled", "usage": None, "user": None, "metadata": {},
    }  # fmt: skip
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    output = []
    for index, block in enumerate(blocks):
        item = yield from RESPONSES_ITEMS[block.kind](block, index)
        output.append(item)
    details = {"input_tokens_details": {"cached_tokens": 1024}, "output_tokens_details": {"reasoning_tokens": 64}}
    usage = {"input_tokens": 2860, "output_tokens": 4711, "total_tokens": 7571, **details}
    yield {"type": "response.completed", "response": {**response, "status": "completed", "output": output, "usage": usage}}


Items = Callable[[Block, int], Any]


def _message_item(block: Block, index: int) -> Any:
    item: dict[str, Any] = {
        "id": f"msg_{index:050}",
        "type": "message",
        "status": "in_progress",
        "content": [],
        "role": "assistant",
    }
    at = {"content_index": 0, "item_id": item["id"], "output_index": index}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    yield {"type": "response.output_item.added", "item": item, "output_index": index}
    yield {"type": "response.content_part.added", **at, "part": part}
    for number, piece in enumerate(block.pieces):
        yield {
            "type": "response.output_text.delta", "content_index": 0, "delta": piece, "item_id": item["id"], "logprobs": [],
            "obfuscation": _obfuscation(number), "output_index": index,
        }  # fmt: skip
    whole = {**part, "text": block.whole}
    yield {"type": "response.output_text.done", **at, "logprobs": [], "text": block.whole}
    yield {"type": "response.content_part.done", **at, "part": whole}
    item = {**item, "status": "completed", "content": [whole]}
    yield {"type": "response.output_item.done", "item": item, "output_index": index}
    return item


def _reasoning_item(block: Block, index: int) -> Any:
    item: dict[str, Any] = {
        "id": f"rs_{index:050}",
        "type": "reasoning",
        "content": [],
        "encrypted_content": "gAAAA" * 80,
        "summary": [],
    }
    at = {"item_id": item["id"], "output_index": index, "summary_index": 0}
    yield {"type": "response.output_item.added", "item": item, "output_index": index}
    yield {"type": "response.reasoning_summary_part.added", **at, "part": {"type": "summary_text", "text": ""}}
    for number, piece in enumerate(block.pieces):
        hidden = {"obfuscation": _obfuscation(number)}
        yield {"type": "response.reasoning_summary_text.delta", "delta": piece, **at, **hidden}
    whole = {"type": "summary_text", "text": block.whole}
    yield {"type": "response.reasoning_summary_text.done", **at, "text": block.whole}
    yield {"type": "response.reasoning_summary_part.done", **at, "part": whole}
    item = {**item, "summary": [whole]}
    yield {"type": "response.output_item.done", "item": item, "output_index": index}
    return item


def _call_item(block: Block, index: int) -> Any:
    item = {"id": f"fc_{index:050}", "type": "function_call", "status": "in_progress", "arguments": ""}
    item = {**item, "call_id": f"call_{index:024}", "name": block.name}
    at = {"item_id": item["id"], "output_index": index}
    yield {"type": "response.output_item.added", "item": item, "output_index": index}
    for number, piece in enumerate(block.pieces):
        hidden = {"obfuscation": _obfuscation(number)}
        yield {"type": "response.function_call_arguments.delta", "delta": piece, **at, **hidden}
    yield {"type": "response.function_call_arguments.done", "arguments": block.whole, **at}
    item = {**item, "status": "completed", "arguments": block.whole}
    yield {"type": "response.output_item.done", "item": item, "output_index": index}
    return item


RESPONSES_ITEMS: dict[str, Items] = {"text": _message_item, "thinking": _reasoning_item, "call": _call_item}


def chat(blocks: Sequence[Block]) -> Payloads:
    number = 0

    def chunk(delta: dict[str, Any] | None, reason: str | None = None, usage: Any = None) -> dict[str, Any]:
        nonlocal number
        number += 1
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {
            "id": "chatcmpl-ctiA9a7bsz6XYk54dUjc7mBaJfwcA", "object": "chat.completion.chunk", "created": 1793738957,
            "model": MODELS["openai-chat"], "service_tier": "default", "system_fingerprint": "fp_2a7c0e91d4",
            "choices": [] if delta is None else [choice], "usage": usage, "obfuscation": _obfuscation(number),
        }  # fmt: skip

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    calls = 0
    for block in blocks:
        if block.kind == "call":
            head = {"id": f"call_{calls:024}", "type": "function", "function": {"name": block.name, "arguments": ""}}
            yield chunk({"tool_calls": [{"index": calls, **head}]})
            for piece in block.pieces:
                yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
            calls += 1
        else:  # reasoning as DeepSeek, Qwen and vLLM send it
            name = "content" if block.kind == "text" else "reasoning_content"
            for piece in block.pieces:
                yield chunk({name: piece})
    yield chunk({}, "tool_calls" if calls else "stop")
    details = {"prompt_tokens_details": {"cached_tokens": 1024}, "completion_tokens_details": {"reasoning_tokens": 64}}
    yield chunk(None, usage={"prompt_tokens": 2860, "completion_tokens": 4711, "total_tokens": 7571, **details})


def interactions(blocks: Sequence[Block]) -> Payloads:
    interaction = {"id": "v1_TideBench", "status": "in_progress", "object": "interaction", "model": "gemini-3.8-flash"}
    yield {"interaction": interaction, "event_type": "interaction.created"}
    yield {"interaction_id": "v1_TideBench", "status": "in_progress", "event_type": "interaction.status_update"}
    for index, block in enumerate(blocks):
        step: dict[str, Any] = {"type": {"text": "model_output", "thinking": "thought"}.get(block.kind, "function_call")}
        if block.kind == "call":
            step = {"id": f"u7k2m9q{index}", **step, "name": block.name, "arguments": {}}
        yield {"index": index, "step": step, "event_type": "step.start"}
        for piece in block.pieces:
            yield {"index": index, "delta": _interactions_delta(block.kind, piece), "event_type": "step.delta"}
        if block.kind == "thinking":
            signature = {"signature": "aW52ZW50ZWQ" * 40, "type": "thought_signature"}
            yield {"index": index, "delta": signature, "event_type": "step.delta"}
        yield {"index": index, "event_type": "step.stop"}
    status = "requires_action" if any(block.kind == "call" for block in blocks) else "completed"
    usage = {"total_tokens": 7571, "total_input_tokens": 2860, "total_output_tokens": 4647, "total_thought_tokens": 64}
    times = {"created": "2026-11-18T09:14:02Z", "updated": "2026-11-18T09:14:05Z"}
    yield {
        "interaction": {**interaction, "status": status, "usage": usage, **times},
        "event_type": "interaction.completed",
    }


def _interactions_delta(kind: str, piece: str) -> dict[str, Any]:
    if kind == "text":
        return {"text": piece, "type": "text"}
    if kind == "thinking":
        return {"content": {"text": piece, "type": "text"}, "type": "thought_summary"}
    return {"arguments": piece, "type": "arguments_delta"}


def generate_content(blocks: Sequence[Block]) -> Payloads:
    produced = 0
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if block.kind == "call":  # whole: this wire has no deltas of arguments
            call = {"name": block.name, "args": json.loads(block.whole), "id": f"u7k2m9q{len(parts)}"}
            parts.append({"functionCall": call})
        else:
            thought = {"thought": True} if block.kind == "thinking" else {}
            parts += [{"text": piece, **thought} for piece in block.pieces]
    for number, part in enumerate(parts, 1):
        produced += 4
        candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}}
        if number == len(parts):
            candidate["finishReason"] = "STOP"
        counts = {"promptTokenCount": 2860, "candidatesTokenCount": produced, "totalTokenCount": 2860 + produced}
        yield {
            "candidates": [{**candidate, "index": 0}],
            "usageMetadata": {**counts, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 2860}]},
            "modelVersion": MODELS["gemini-generate-content"],
            "responseId": "hXkraInventedAnswer01",
        }


WRITERS: dict[str, Callable[[Sequence[Block]], Payloads]] = {
    "anthropic-messages": messages,
    "openai-responses": responses,
    "openai-chat": chat,
    "gemini-interactions": interactions,
    "gemini-generate-content": generate_content,
}
