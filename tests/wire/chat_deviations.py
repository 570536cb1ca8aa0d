"""The 47 ways in which services deviate from Chat Completions, each as the smallest answer that shows it.

`docs/wire/openai-chat.md` sections 3.1, 7 and 8 hold the tables that this file renders; test_openai_chat.py compares them,
reads every answer, and lets the official SDK's helper read the streams too. A `Deviation` with several answers gives several
`Answer`s. Where a deviation concerns the request, it has none: a test in test_openai_chat.py bears its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from lessonlib.wire.dialects import DIALECTS, Dialect

Call = tuple[str | None, str, Any]
"""(id, name, args); id None where the service gave none, args None where they cannot be used."""


@dataclass(frozen=True)
class Answer:
    """A stream (bytes) or a whole body (JSON), and what is in it. `error` is the class of the error, if it is one."""

    body: Any
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    stop: str = "end"
    usage: tuple[int, int] | None = None
    error: str = ""


@dataclass(frozen=True)
class Deviation:
    number: int
    title: str
    who: str
    source: str
    answers: tuple[Answer, ...] = ()


# ---------------------------------------------------------------- the pieces of a stream


def choice(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish, **more}


def chunk(delta: Any = None, finish: Any = None, **top: Any) -> dict[str, Any]:
    """One chunk of an answer; `top` are fields beside the choices, or replace them."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1793738957, "model": "m-1"}
    return {**head, "choices": [choice(delta, finish)], **top}


def sse(*chunks: Any, done: bool = True) -> bytes:
    """The bytes of a stream; a text among the chunks goes in as it is."""
    lines = [each if isinstance(each, str) else f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in chunks]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def calls(*entries: Any) -> dict[str, Any]:
    return {"tool_calls": list(entries)}


def entry(name: Any = ..., arguments: Any = ..., **more: Any) -> dict[str, Any]:
    """An entry of `tool_calls`; what is not given is not there."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
    return {**more, "function": function} if function else more


def whole(message: Any, finish: Any = "stop", **top: Any) -> dict[str, Any]:
    choices = [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}]
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "m-1", "choices": choices, **top}


def usage(prompt: int, completion: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


END = chunk(finish="tool_calls")
STOP = chunk(finish="stop")
OSLO, LIMA = '{"city":"Oslo"}', '{"city":"Lima"}'
A, B = ("a", "f", {"city": "Oslo"}), ("b", "f", {"city": "Lima"})


def called(*chunks: Any, result: tuple[Call, ...] = (A,), **more: Any) -> Answer:
    """A stream of these deltas that ends as tool calls do."""
    return Answer(sse(*(chunk(delta) for delta in chunks), END), calls=result, stop="tool_use", **more)


# ---------------------------------------------------------------- the deviations

DEVIATIONS = (
    Deviation(
        1, "`tool_calls[].index` is missing", "Gemini's endpoint, servers built on SGLang, gateways",
        "openai-python #2806, #3246; vercel/ai #15879",
        (called(calls(entry("f", OSLO, id="a")), calls(entry("f", '{"city":', id="b")), calls(entry(arguments='"Lima"}')),
                result=(A, B)),
         called(calls(entry("f", OSLO, id="a"), entry("f", LIMA, id="b")), result=(A, B)),
         called(calls(entry("f", OSLO), entry("g", "{}")), result=((None, "f", A[2]), (None, "g", {})))),
    ),
    Deviation(
        2, "parallel calls all have index 0", "Ollama, also through LiteLLM", "litellm #37792; openclaude #1394",
        (called(calls(entry("f", OSLO, index=0, id="a")), calls(entry("f", LIMA, index=0, id="b")), result=(A, B)),
         called(calls(entry("f", OSLO, index=0)), calls(entry("f", LIMA, index=0)),
                result=((None, "f", A[2]), (None, "f", B[2]))),
         called(calls(entry("f", OSLO, index=0, id="a")), calls(entry("f", "", index=0, id="b")),
                calls(entry(arguments=LIMA, index=1)), result=(A, B))),
    ),
    Deviation(
        3, "two entries with the same index in one chunk", "vLLM with speculative decoding", "openai-python #3201, #3425",
        (called(calls(entry("f", '{"city"', index=0, id="a"), entry(arguments=':"Oslo"}', index=0))),),
    ),
    Deviation(
        4, "the first index is 1 or more", "LiteLLM in front of Anthropic, others", "pipecat #5342; litellm #11407",
        (called(calls(entry("f", '{"city":', index=1, id="a")), calls(entry(arguments='"Oslo"}', index=1))),
         called(calls(entry("f", OSLO, index=3, id="a")), calls(entry("f", LIMA, index=7, id="b")), result=(A, B))),
    ),
    Deviation(
        5, '`id: ""` on the later chunks of a call', "Qwen on DashScope", "symfony/ai #2220; spring-ai #6369",
        (called(calls(entry("f", '{"city":', index=0, id="a")), calls(entry(arguments='"Oslo"}', index=0, id=""))),),
    ),
    Deviation(
        6, "the full id is repeated in every chunk", "DeepSeek and Qwen behind some gateways", "langchain4j #4544",
        (called(calls(entry("f", '{"city":', index=0, id="a")), calls(entry(arguments='"Oslo"}', index=0, id="a"))),
         called(calls(entry("f", '{"city":', id="a")), calls(entry(arguments='"Oslo"}', id="a")))),
    ),
    Deviation(
        7, "the name is repeated in every chunk", "early llama.cpp", "llama.cpp #12379; langchain #40044",
        (called(calls(entry("f", '{"city":', index=0, id="a")), calls(entry("f", '"Oslo"}', index=0))),
         called(calls(entry("f", '{"city":', index=0, id="a", type="function")),
                calls(entry("f", '"Oslo"}', index=0, id="a", type="function")))),
    ),
    Deviation(
        8, '`name: ""` or null on the later chunks', "LM Studio, DashScope",
        "lmstudio-bug-tracker #649; spring-ai-alibaba #83",
        (called(calls(entry("f", '{"city":', index=0, id="a")), calls(entry("", '"Os', index=0)),
                calls(entry(None, 'lo"}', index=0, id=None))),),
    ),
    Deviation(
        9, "the name comes in fragments, or after the arguments", "gateways, SGLang", "Switchyard #785; vercel/ai #14760",
        (called(calls(entry("get_", "", index=0, id="a")), calls(entry("weather", OSLO, index=0)),
                result=(("a", "get_weather", A[2]),)),
         called(calls(entry(arguments=OSLO, index=0)), calls(entry("f", index=0, id="a"))),
         called(calls(entry("get", "", index=0, id="a")), calls(entry("get_weather", OSLO, index=0)),
                result=(("a", "get_weather", A[2]),))),
    ),
    Deviation(
        10, "a call has no id, or an empty one", "vLLM, LM Studio, Gemini's endpoint", "vllm #18412; lmstudio #830",
        (called(calls(entry("f", OSLO, index=0)), result=((None, "f", A[2]),)),
         Answer(whole({"content": None, **calls(entry("f", OSLO, id="", type="function"))}, "tool_calls"),
                calls=((None, "f", A[2]),), stop="tool_use")),
    ),
    Deviation(
        11, "the arguments come whole at once", "Gemini's endpoint, Ollama, Mistral", "suitenumerique/conversations #51",
        (called(calls(entry("f", OSLO, index=0, id="a"), entry("f", LIMA, index=1, id="b")), result=(A, B)),),
    ),
    Deviation(
        12, "the arguments are an object", "llama.cpp for a time, TGI, Ollama's own format",
        "llama.cpp #20198, #20202; text-generation-inference #2136",
        (called(calls(entry("f", {"city": "Oslo"}, index=0, id="a"))),
         called(calls(entry("f", {"city": "Oslo"}), entry("f", {"city": "Lima"})),
                result=((None, "f", A[2]), (None, "f", B[2]))),
         Answer(whole({"content": None, **calls(entry("f", {"city": "Oslo"}, id="a", type="function"))}, "tool_calls"),
                calls=(A,), stop="tool_use")),
    ),
    Deviation(
        13, "no arguments, or empty ones, for a tool without parameters", "OpenAI, gateways", "langchainjs #8581; xaibo #36",
        (called(calls(entry("f", "", index=0, id="a")), result=(("a", "f", {}),)),
         called(calls(entry("f", index=0, id="a")), result=(("a", "f", {}),)),
         called(calls(entry("f", None, index=0, id="a")), result=(("a", "f", {}),))),
    ),
    Deviation(14, "the request must carry arguments as an object", "some chat templates", "ollama #10604; OpenJarvis #69"),
    Deviation(
        15, "`content: null`, the budget was spent on reasoning", "DeepSeek, GLM, Kimi", "octo-smart-summary #2",
        (Answer(sse(chunk({"content": None, "reasoning_content": "Hm"}), chunk({"content": None}, "length")),
                reasoning="Hm", stop="length"),),
    ),
    Deviation(
        16, "`content` is a list of chunks", "Mistral's reasoning models", "symfony/ai #2423; docs.mistral.ai reasoning",
        (Answer(sse(chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Ad"}]}]}),
                    chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "d."}]}]}),
                    chunk({"content": "Fo"}), chunk({"content": [{"type": "text", "text": "ur"}]}), STOP),
                text="Four", reasoning="Add."),
         Answer(whole({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Add."}]},
                                   {"type": "text", "text": "Four"}]}), text="Four", reasoning="Add.")),
    ),
    Deviation(
        17, "reasoning in `reasoning_content`", "DeepSeek, Qwen, Moonshot, llama.cpp, SGLang",
        "api-docs.deepseek.com thinking_mode; openai-php #780",
        (Answer(sse(chunk({"reasoning_content": "Hm"}), chunk({"reasoning_content": "m."}), chunk({"content": "Yes"}), STOP),
                text="Yes", reasoning="Hmm."),
         Answer(whole({"content": "Yes", "reasoning_content": "Hmm."}), text="Yes", reasoning="Hmm.")),
    ),
    Deviation(
        18, "reasoning in `reasoning`, or in `reasoning_text`",
        "vLLM from 0.16, Ollama, Together, Groq, OpenRouter; GitHub Copilot", "vllm #27755, #33402; litellm #35021",
        (Answer(sse(chunk({"reasoning": "Hm"}), chunk({"reasoning": "m."}), chunk({"content": "Yes"}), STOP),
                text="Yes", reasoning="Hmm."),
         Answer(sse(chunk({"reasoning_text": "Ha"}), chunk({"reasoning_text": "Ha"}), chunk({"reasoning_opaque": "c2ln"}),
                    chunk({"content": "Yes"}), STOP), text="Yes", reasoning="HaHa"),
         Answer(whole({"content": "Yes", "reasoning_text": "Hmm."}), text="Yes", reasoning="Hmm."),
         Answer(sse(chunk({"reasoning": "Hmm.", "reasoning_content": "Hmm."}), chunk({"content": "Yes"}), STOP),
                text="Yes", reasoning="Hmm.")),
    ),
    Deviation(
        19, "reasoning in `reasoning_details`, mostly beside `reasoning`", "OpenRouter", "openrouter.ai reasoning-tokens",
        (Answer(sse(chunk({"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.text", "text": "Hm", "index": 0}]}),
                    chunk({"reasoning": "m.", "reasoning_details": [{"type": "reasoning.text", "text": "m.", "index": 0}]}),
                    chunk({"content": "Yes"}), STOP), text="Yes", reasoning="Hmm."),
         Answer(whole({"content": "Yes", "reasoning_details": [{"type": "reasoning.summary", "summary": "Hmm."},
                                                               {"type": "reasoning.encrypted", "data": "e30="}]}),
                text="Yes", reasoning="Hmm.")),
    ),
    Deviation(
        20, "reasoning leaks into the content", "Kimi, local servers without a reasoning parser", "Kimi-K3 #45",
        (Answer(sse(chunk({"content": "<thi"}), chunk({"content": "nk>Hmm.</th"}), chunk({"content": "ink>\n\nYes"}), STOP),
                text="Yes", reasoning="Hmm."),
         Answer(sse(chunk({"content": "<think>Hmm."}), chunk(finish="length")), reasoning="Hmm.", stop="length"),
         Answer(sse(chunk({"content": "Use the <think> tag."}), STOP), text="Use the <think> tag.")),
    ),
    Deviation(
        21, '`finish_reason: "stop"` although tools are called', "Gemini's endpoint; OpenAI with a named tool_choice",
        "python-genai #2868; vllm #25054",
        (Answer(sse(chunk(calls(entry("f", OSLO, index=0, id="a"))), STOP), calls=(A,), stop="tool_use"),
         Answer(whole({"content": None, **calls(entry("f", OSLO, id="a", type="function"))}), calls=(A,), stop="tool_use")),
    ),
    Deviation(
        22, '`finish_reason: ""` on every chunk', "SGLang, old Ollama, GLM routes", "sglang #3912; ollama #4357",
        (Answer(sse(chunk({"content": "Hi"}, ""), chunk({"content": "!"}, "")), text="Hi!", stop="other"),
         Answer(sse(chunk(calls(entry("f", '{"city":', index=0, id="a")), ""),
                    chunk(calls(entry(arguments='"Oslo"}', index=0)), "")), calls=(A,), stop="tool_use")),
    ),
    Deviation(
        23, "no finish reason at all", "NVIDIA NIM, free gateways", "pi #6226, #8473; opencode #43882",
        (Answer(sse(chunk({"content": "Hi"}), chunk({"content": " th"}), done=False), text="Hi th",
                error="IncompleteStream"),
         Answer(sse(chunk({"content": "Hi"})), text="Hi", stop="other")),
    ),
    Deviation(
        24, '`finish_reason` missing in the middle, or the text "null"', "Bedrock gateways, KoboldCpp", "LibreChat #5563",
        (Answer(sse(chunk(choices=[{"index": 0, "delta": {"content": "Hi"}}]), chunk({"content": "!"}, "null"), STOP),
                text="Hi!"),
         Answer(sse(chunk({"content": "Hi"}, "null"), done=False), text="Hi", error="IncompleteStream")),
    ),
    Deviation(
        25, "the last text and the finish reason in one chunk", "vLLM", "vllm #36944",
        (Answer(sse(chunk({"content": "Hi"}), chunk({"content": "!"}, "stop")), text="Hi!"),),
    ),
    Deviation(
        26, "other finish reasons", "Together (`eos`), LiteLLM (`end_turn`), DeepSeek, OpenRouter (`error`)",
        "litellm #12481; openrouter.ai errors",
        (Answer(sse(chunk({"content": "Hi"}), chunk(finish="eos")), text="Hi"),
         Answer(sse(chunk({"content": "Hi"}), chunk(finish="end_turn")), text="Hi"),
         Answer(sse(chunk({"content": "Hi"}), chunk(finish="insufficient_system_resource")), text="Hi", stop="other"),
         Answer(sse(chunk({"content": "Hi"}), chunk(finish="error")), text="Hi", error="APIError")),
    ),
    Deviation(
        27, "usage in the chunk with the finish reason", "DeepSeek, Together, llama.cpp", "mlflow #11557",
        (Answer(sse(chunk({"content": "Hi"}), chunk(finish="stop", usage=usage(5, 2))), text="Hi", usage=(5, 2)),),
    ),
    Deviation(
        28, "usage so far in every chunk", "vLLM and SGLang with continuous usage, gateways", "vllm #5708; sglang #12241",
        (Answer(sse(chunk({"content": "Hi"}, usage=usage(5, 1)), chunk({"content": "!"}, "stop", usage=usage(5, 2))),
                text="Hi!", usage=(5, 2)),),
    ),
    Deviation(
        29, "another chunk after the one with the usage", "xAI", "litellm #17136",
        (Answer(sse(chunk({"content": "Hi"}), STOP, chunk(choices=[], usage=usage(5, 2)),
                    chunk({"content": ""}, usage=None)), text="Hi", usage=(5, 2)),),
    ),
    Deviation(
        30, "usage in `x_groq.usage`", "Groq", "vercel/ai #1651; Portkey #1338",
        (Answer(sse(chunk({"content": "Hi"}, x_groq={"id": "r1"}), chunk(finish="stop", x_groq={"usage": usage(5, 2)})),
                text="Hi", usage=(5, 2)),),
    ),
    Deviation(
        31, "usage in `choices[0].usage`", "Moonshot", "pi #2017",
        (Answer(sse(chunk({"content": "Hi"}), chunk(choices=[choice(finish="stop", usage=usage(5, 2))])), text="Hi",
                usage=(5, 2)),),
    ),
    Deviation(
        32, "reasoning tokens beside, not inside, `completion_tokens`", "Grok on Vertex AI, Gemini's endpoint",
        "cloud.google.com Grok reasoning",
        (Answer(sse(chunk({"content": "Hi"}), STOP, chunk(choices=[], usage={
            "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 17,
            "completion_tokens_details": {"reasoning_tokens": 10}})), text="Hi", usage=(5, 12)),),
    ),
    Deviation(
        33, "a first chunk without choices, with an empty id", "Azure", "mentat #429; pydantic-ai #164",
        (Answer(sse({"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": [{}]},
                    chunk({"content": "Hi"}), STOP), text="Hi"),),
    ),
    Deviation(
        34, "a choice without a delta", "Azure with asynchronous filters", "autogen #6465",
        (Answer(sse(chunk({"content": "Hi"}), chunk(choices=[{"index": 0, "finish_reason": None, "content_filter_offsets": {
            "check_offset": 44}}]), chunk(choices=[{"index": 0, "delta": None, "finish_reason": "stop"}])), text="Hi"),),
    ),
    Deviation(
        35, "comments and empty lines between the events", "OpenRouter, DeepSeek",
        "openrouter.ai streaming; api-docs.deepseek.com rate_limit",
        (Answer(sse(": OPENROUTER PROCESSING\n\n", chunk({"content": "Hi"}), ": keep-alive\n\n\n\n", STOP), text="Hi"),),
    ),
    Deviation(
        36, "`data:` without the space, or with nothing", "Spring proxies, iflow", "openai-python #498; openfang #194",
        (Answer(sse("data:" + json.dumps(chunk({"content": "Hi"})) + "\n\n", "data:\n\n", STOP), text="Hi"),),
    ),
    Deviation(
        37, "no `[DONE]`, or one without brackets", ".NET hosts, textgen, test stubs",
        "textgen #4778; agent-framework #8532; codex #8708",
        (Answer(sse(chunk({"content": "Hi"}), STOP, done=False), text="Hi"),
         Answer(sse(chunk({"content": "Hi"}), STOP, "data: DONE\n\n", done=False), text="Hi"),
         Answer(sse(chunk({"content": "Hi"}), "data: DONE\n\n", done=False), text="Hi", stop="other")),
    ),
    Deviation(
        38, "an error as an ordinary event of a stream with status 200", "OpenAI, OpenRouter, SGLang",
        "openrouter.ai errors; sglang #12081",
        (Answer(sse(chunk({"content": "Hi"}), {"error": {"message": "Sorry", "type": "server_error"}}, done=False),
                text="Hi", error="APIError"),
         Answer(sse(chunk({"content": "Hi"}), chunk({"content": ""}, "error", error={"code": 502, "message": "Bad"})),
                text="Hi", error="APIError"),
         Answer(sse(chunk({"content": "Hi"}), "event: error\n", {"message": "Sorry"}, done=False), text="Hi",
                error="APIError")),
    ),
    Deviation(
        39, "an error in a whole body with status 200", "OpenRouter, gateways, Gemini's filters",
        "openai-agents-python #2850; xaibo #36",
        (Answer({"error": {"message": "Rate limited", "code": 429}, "choices": None}, error="APIError"),
         Answer({"code": "rate_limit_daily", "message": "Come back tomorrow"}, error="APIError"),
         Answer({"id": "x", "object": "chat.completion", "choices": []}, error="ProtocolError"),
         Answer({"id": "x", "object": "chat.completion", "choices": None, "usage": usage(5, 0)}, error="ProtocolError"),
         Answer({"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "error"}]}, error="APIError")),
    ),
    Deviation(40, "HTML or JSON where a stream was asked for", "proxies", "n8n #37959"),
    Deviation(41, "a signature in `extra_content` that must come back", "Gemini's endpoint", "aionrs #93; pi #7745"),
    Deviation(
        42, "the role in every delta, with empty content", "Gemini's endpoint, Ollama", "ollama openai.go",
        (Answer(sse(*(chunk({"role": "assistant", "content": text}) for text in ("Hi", "", "!")),
                    chunk({"role": "assistant", "content": ""}, "stop")), text="Hi!"),),
    ),
    Deviation(
        43, "the id changes from chunk to chunk", "LiteLLM proxies", "litellm #1571",
        (Answer(sse(chunk({"content": "Hi"}), chunk({"content": "!"}, id="chatcmpl-2"),
                    chunk(finish="stop", id="chatcmpl-3")), text="Hi!"),),
    ),
    Deviation(44, "what others demand is refused", "Groq (reasoning), Kimi (a forced tool)", "gptel #774; octopus #251"),
    Deviation(
        45, "a new id in every chunk of a call", "vLLM for gpt-oss, mlx-openai-server",
        "vllm #23522; mlx-openai-server #216",
        (called(calls(entry("f", "", index=0, id="a")), calls(entry(arguments='{"city":', index=0, id="x")),
                calls(entry(arguments='"Oslo"}', index=0, id="y"))),
         called(calls(entry("f", OSLO, index=0, id="a")), calls(entry(None, '{"city":', index=1, id="b")),
                calls(entry("f", '"Lima"}', index=1)), result=(A, B))),
    ),
    Deviation(
        46, "`{}` before the arguments, or `\"\"` behind an empty object", "gateways in front of Bedrock, and others",
        "openai-agents-js #712; WeKnora #2952",
        (called(calls(entry("f", "{}", index=0, id="a")), calls(entry(arguments=OSLO, index=0))),
         called(calls(entry("f", "{}", index=0, id="a")), calls(entry(arguments='{"city":', index=0)),
                calls(entry(arguments='"Oslo"}', index=0))),
         called(calls(entry("f", "{}", index=0, id="a")), calls(entry(arguments="", index=0)), result=(("a", "f", {}),)),
         called(calls(entry("f", "{}", index=0, id="a")), calls(entry(arguments='""', index=0)), result=(("a", "f", {}),))),
    ),
    Deviation(
        47, "all arguments of a call once more at its end", "LiteLLM and other gateways",
        "litellm #20480; opencodex #361; cogito #66",
        (called(calls(entry("f", '{"city":', index=0, id="a")), calls(entry(arguments='"Oslo"}', index=0)),
                calls(entry("f", OSLO, index=0, id="a"))),
         called(calls(entry("f", "", index=0, id="a")), calls(entry(arguments=OSLO, index=0)),
                calls(entry(arguments=OSLO, index=0))),
         called(calls(entry("f", OSLO, id="a")), calls(entry("f", OSLO, id="a"))),
         called(calls(entry("f", {"city": "Oslo"}, index=0, id="a")), calls(entry("f", {"city": "Oslo"}, index=0, id="a")))),
    ),
)  # fmt: skip


# ---------------------------------------------------------------- the tables of the reference page


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def deviations_table() -> str:
    return table(("", "deviation", "seen at", "source"), ((str(d.number), d.title, d.who, d.source) for d in DEVIATIONS))


def helper_table(outcomes: Mapping[int, str]) -> str:
    titles = {deviation.number: deviation.title for deviation in DEVIATIONS}
    rows = ((str(number), titles[number], outcome) for number, outcome in sorted(outcomes.items()))
    return table(("", "deviation", "the official helper"), rows)


def dialects_tables() -> str:
    """The rows of the dialect table: where each service is and what it is told, and what else differs from the defaults."""
    places = table(
        ("dialect", "base URL", "key from", "system role", "cap", "reasoning as", "sent back"),
        (
            (row.name, row.base_url or "–", ", ".join(row.key_variables), row.system_role, row.cap, row.reasoning,
             _sent_back(row))
            for row in DIALECTS.values()
        ),
    )  # fmt: skip
    shown = {"name", "base_url", "hosts", "key_variables", "url_variables", "system_role", "cap", "reasoning", "replay",
             "replay_fields", "required_field"}  # fmt: skip
    usual = {each.name: each.default for each in fields(Dialect) if each.name not in shown}
    others = table(
        ("dialect", "differs from the defaults in"),
        (
            (row.name, ", ".join(f"{name}={_said(getattr(row, name))}" for name, value in usual.items()
                                 if getattr(row, name) != value) or "–")
            for row in DIALECTS.values()
        ),
    )  # fmt: skip
    return f"{places}\n\n{others}"


def _sent_back(row: Dialect) -> str:
    words = [{"never": "never", "tool_turns": "turns with calls", "always": "always"}[row.replay]]
    if row.replay_fields:
        words.append(f"first of {', '.join(row.replay_fields)}")
    if row.required_field:
        words.append(f"{row.required_field} even if empty")
    return "; ".join(words)


def _said(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, f"`{value}`") if isinstance(value, bool) else f"`{value}`"
