"""Counting whole requests: against recorded bills, and by rules.

testdata/tokens/recorded.json holds requests that others recorded, with the input tokens that were billed for them. The
table of docs/tokens.md is made from many more by tools/measure_tokens.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiktoken

from lessonlib import capabilities, tokens
from lessonlib.estimate import estimate_tokens
from lessonlib.tokens import FRAMES, count, count_tokens, typescript
from lessonlib.types import Image, Message, Opaque, Reasoning, Request, Text, Tool, ToolCall, ToolResult
from lessonlib.vocabulary import count_text
from lessonlib.wire import OpenAIResponses

RECORDED = Path(__file__).parent.parent / "testdata" / "tokens" / "recorded.json"
ROWS = json.loads(RECORDED.read_text(encoding="utf-8"))["rows"]
OPENAI = [row for row in ROWS if row["answered_by"].startswith("OpenAI")]
OTHERS = [row for row in ROWS if not row["answered_by"].startswith("OpenAI")]
WEATHER = Tool(
    name="get_weather",
    description="Weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def name(row: dict[str, Any]) -> str:
    return str(row["name"])[-40:]


# ---------------------------------------------------------------- against the bill


@pytest.mark.parametrize("row", OPENAI, ids=name)
def test_openais_own_bill_within_2_per_cent_or_3_tokens(row: dict[str, Any]) -> None:
    """Most of these requests have 20 to 150 tokens, where 2 % is one or two: the framing of tools is good to three."""
    request = Request(**row["request"])
    counted = count_tokens(request, row["model"], row["wire"])
    assert counted.exact == (request.output_schema is None)
    assert abs(counted.tokens - row["billed"]) <= max(3, 0.02 * row["billed"])


@pytest.mark.parametrize("row", OTHERS, ids=name)
def test_other_vendors_counts_are_estimates_and_say_so(row: dict[str, Any]) -> None:
    counted = count_tokens(Request(**row["request"]), row["model"], row["wire"])
    assert not counted.exact
    assert "estimate" in counted.why
    assert 0.6 * row["billed"] < counted.tokens < 1.4 * row["billed"]


def test_the_text_alone_is_far_from_the_bill() -> None:
    row = next(row for row in OPENAI if row["name"].endswith("run-streaming-with-tools-1"))
    request = Request(**row["request"])
    texts = (request.system or "") + "".join(message.text for message in request.messages)
    assert count_text(texts) < row["billed"] / 4


# ---------------------------------------------------------------- rules


def test_a_message_of_one_word() -> None:
    counted = count_tokens(Request(messages="Hello"), "gpt-4o")
    assert counted.parts == {"messages": 1, "framing": 7}
    assert counted.tokens == 8


def test_every_role_and_part_is_counted_and_the_parts_add_up() -> None:
    call = ToolCall(call_id="c1", name="get_weather", args={"city": "Köln"})
    request = Request(
        system="Be brief.",
        messages=[
            Message.user("Weather?"),
            Message.assistant("I look.", call),
            Message.user(ToolResult(call_id="c1", content="17 °C")),
        ],
        tools=[WEATHER],
        output_schema={"type": "object", "properties": {"celsius": {"type": "integer"}}},
    )
    counted = count_tokens(request, "gpt-4o", "openai-responses")
    assert counted.tokens == sum(counted.parts.values())
    assert set(counted.parts) == {"system", "messages", "calls", "results", "tools", "schema", "framing"}
    assert counted.parts["calls"] == count_text("get_weather") + count_text('{"city":"Köln"}')
    assert counted.parts["results"] == count_text("get_weather") + count_text("17 °C")
    frame = FRAMES["openai"]
    assert counted.parts["framing"] == 3 * frame.message + frame.reply + frame.call + frame.result + frame.tools


def test_a_call_without_text_and_a_picture_beside_text_are_no_error() -> None:
    """A null content counts nothing, text parts count, base64 is never text."""
    picture = Image(data="A" * 12_000, media_type="image/png")
    request = Request(messages=[
        Message.assistant(ToolCall(call_id="c", name="wx", args={"ort": "Köln"})),
        Message.user(ToolResult(call_id="c", content=""), "Was ist das?", picture),
    ])  # fmt: skip
    counted = count_tokens(request, "gpt-4o", "openai-chat")
    assert counted.tokens < 100
    assert counted.uncounted == {"image": 1}
    assert not counted.exact
    assert counted.allowing == counted.tokens + tokens.IMAGE_ALLOWANCE


def test_a_rule_for_pictures_counts_them() -> None:
    picture = Image(url="https://example.org/a.png")
    request = Request(messages=[Message.user("What?", picture)])
    counted = count_tokens(request, "gpt-4o", image=lambda each: 85)
    assert counted.tokens == count_tokens(Request(messages="What?"), "gpt-4o").tokens + 85
    assert counted.uncounted == {}


def test_a_picture_inside_a_result_is_a_picture() -> None:
    result = ToolResult(call_id="c", content=[Text(text="seen"), Image(data="A" * 9000, media_type="image/png")])
    request = Request(messages=[Message.assistant(ToolCall(call_id="c", name="look", args={})), Message.user(result)])
    assert count_tokens(request, "gpt-4o").uncounted == {"image": 1}


def test_names_of_special_tokens_are_text() -> None:
    plain = count_tokens(Request(messages="<|endoftext|><|im_start|>"), "gpt-4o")
    assert plain.parts["messages"] > 4


def test_reasoning_of_another_vendor_stays_behind_and_ones_own_is_reported() -> None:
    thought = Reasoning(text="Hm", wire="anthropic-messages", raw={"type": "thinking", "signature": "x"})
    search = Opaque(kind="web_search_call", wire="openai-responses", raw={"type": "web_search_call"})
    request = Request(messages=[Message.user("Hi"), Message.assistant(thought, search, "Hello"), Message.user("Bye")])
    assert count_tokens(request, "gpt-5", "openai-responses").uncounted == {"opaque": 1}
    assert count_tokens(request, "claude-opus-5", "anthropic-messages").uncounted == {"reasoning": 1}


def test_what_extra_adds_is_reported() -> None:
    request = Request(messages="Hi", extra={"openai-responses": {"tools": [{"type": "web_search"}]}})
    assert count_tokens(request, "gpt-5", "openai-responses").uncounted == {"extra": 1}
    assert count_tokens(request, "gpt-5", "openai-chat").uncounted == {}


def test_a_wire_gives_its_own_model_and_name() -> None:
    wire = OpenAIResponses("gpt-4o", api_key="k")
    assert count_tokens(Request(messages="Hello"), wire=wire) == count_tokens(Request(messages="Hello"), "gpt-4o")


def test_the_requests_own_model_wins() -> None:
    assert count_tokens(Request(messages="Hello", model="gpt-4o"), "claude-opus-5").exact


# ---------------------------------------------------------------- unknown models, missing vocabularies


@pytest.mark.parametrize("model", ["mystery-1", None, "gpt-99-unheard-of"])
def test_an_unknown_model_is_estimated_and_never_counts_0(model: str | None) -> None:
    counted = count_tokens(Request(messages="Hello"), model)
    assert counted.tokens >= count_text("Hello")
    assert not counted.exact
    assert "not known" in counted.why


def test_a_vocabulary_that_is_not_here_is_an_estimate_that_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    counted = count_tokens(Request(messages="Hello"), "gpt-4")
    assert counted.tokens == 8
    assert not counted.exact
    assert counted.vocabulary == "o200k_base"
    assert "cl100k_base" in counted.why
    assert "run once" in counted.why


def test_a_vocabulary_that_was_cut_while_it_was_fetched_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tiktoken would download it again; lessonlib never starts a download."""
    address = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
    import hashlib

    (tmp_path / hashlib.sha1(address.encode()).hexdigest()).write_bytes(b"IQ== 0\nIg== ")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: pytest.fail("tiktoken was asked, and would download"))
    assert not count_tokens(Request(messages="Hello"), "gpt-4").exact


def test_counts_do_not_depend_on_who_asks_first() -> None:
    assert count(Request(messages="Hello"), "gpt-4o") == count(Request(messages="Hello"), "gpt-4o") == 8


def test_the_rough_estimate_of_the_policies_is_not_below_the_count_of_english_text() -> None:
    request = Request(
        messages="The quick brown fox jumps over the lazy dog, and nobody minds at all. " * 20, tools=[WEATHER]
    )
    assert 0.9 < estimate_tokens(request) / count(request, "gpt-4o") < 1.4


# ---------------------------------------------------------------- tools as TypeScript


def test_a_tool_is_rendered_as_its_model_reads_it() -> None:
    tool = Tool(name="find", description="Find things.\nAll of them.", parameters={
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["a", "b"], "description": "What kind."},
            "limit": {"type": "integer", "default": 5},
            "tags": {"type": "array", "items": {"type": "string"}},
            "range": {"type": "object", "properties": {"from": {"type": ["number", "null"]}}, "required": ["from"]},
            "any": {},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["kind"],
    })  # fmt: skip
    assert typescript([tool, Tool(name="now")]) == "\n".join([
        "# Tools", "", "## functions", "", "namespace functions {", "",
        "// Find things.", "// All of them.", "type find = (_: {",
        "// What kind.", 'kind: "a" | "b",', "limit?: number, // default: 5", "tags?: string[],",
        "range?: {", "    from: number | null,", "    },", "any?: any,", "either?: string | null,",
        "}) => any;", "", "type now = () => any;", "", "} // namespace functions",
    ])  # fmt: skip


def test_what_was_measured_too_rarely_is_an_estimate() -> None:
    schema = count_tokens(Request(messages="Hi", output_schema={"type": "object"}), "gpt-5")
    custom = count_tokens(Request(messages="Hi", tools=[Tool(name="exp", kind="custom")]), "gpt-5")
    assert (schema.exact, custom.exact) == (False, False)
    assert "an output schema or a custom tool" in schema.why


def test_a_custom_tool_counts_its_grammar() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: INT PLUS INT"}
    with_grammar = Tool(name="exp", description="Adds.", kind="custom", format=grammar)
    assert count(Request(messages="Hi", tools=[with_grammar]), "gpt-5") > count(
        Request(messages="Hi", tools=[with_grammar.model_copy(update={"format": None})]), "gpt-5"
    )


# ---------------------------------------------------------------- the data


def test_every_default_model_is_listed_with_its_window() -> None:
    for wire in ("openai-responses", "anthropic-messages", "gemini-interactions", "openai-chat", "gemini-generate-content"):
        able = capabilities.of(capabilities.default_model(wire))
        assert None not in (able.window, able.max_output, able.checked, able.source)
    with pytest.raises(KeyError):
        capabilities.default_model("no-wire")
