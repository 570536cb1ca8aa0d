"""Chat Completions is spoken by dozens of services, each a little differently: what a request must do differently, as data.

Reading needs no table, it is tolerant on one code path (openai_chat.py). Writing does: the cap on the output has two names,
reasoning is switched on in six ways, and what one service demands back another one answers with a 400. Each row says what
one service takes; `docs/wire/openai-chat.md` section 3 shows the rows as a table, with their sources.

    OpenAIChat(dialect="deepseek")                       a row by its name
    OpenAIChat(base_url="https://api.deepseek.com")      the row guessed from the host
    OpenAIChat(dialect=replace(DIALECTS["vllm"], cap="max_completion_tokens"))       a row of one's own

What this file does not do: no request is written here, and no model is judged (capabilities.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from lessonlib.errors import InvalidRequest
from lessonlib.types import JSON


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one service takes in a request. The defaults are what most of the compatible services take.

    name: also the `service` of the parts that it answers. base_url, hosts: where it is (a host, or host and port; names
        below it count). key_variables, url_variables: the environment variables of its own documentation.
    key_header: "authorization" (as a Bearer token) or the header that takes the bare key. deployments: models are
        deployments with an address of their own once an API version is given (Azure).
    system_role, cap: the words for the system prompt's role and for the cap on the output.
    reasoning: how reasoning is asked for, a key of `REASONING`.
    replay: when reasoning and other fields that only this service knows go back to it: on every assistant message, on those
        with tool calls, or never. replay_fields: if a service sends its reasoning twice, the first of these that came goes
        back; empty for all. required_field: must stand on a message with tool calls, if need be empty.
    skip_signature: calls of other origin need the documented stand-in for a thought signature.
    stream_usage, parallel, strict, schema, custom_tools: whether it understands `stream_options`, `parallel_tool_calls`,
        `strict`, `response_format` with a JSON Schema, custom tools. store: whether `store: false` has to be said.
    choice: what `tool_choice` may say: "named" anything, "words" no tool's name, "auto" only auto and none.
    max_stop: how many stop sequences it takes, None if it does not say.
    object_arguments: wants a call's arguments as an object, not as JSON text.
    result_name: wants the tool's name on its result. call_ids: a regular expression that ids of calls must match.
    plain_names: takes only letters, digits, `_` and `-` in the name of a call, and 64 of them.
    alternate: two messages of one role in a row are sent as one; many services, and the chat templates of many models,
        refuse them.
    bridge: what to put into the model's mouth where a user message follows tool results, for services that refuse that.
    """

    name: str
    base_url: str
    hosts: tuple[str, ...] = ()
    key_variables: tuple[str, ...] = ("OPENAI_API_KEY",)
    url_variables: tuple[str, ...] = ()
    key_header: str = "authorization"
    deployments: bool = False
    system_role: Literal["system", "developer"] = "system"
    cap: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    reasoning: str = "effort"
    replay: Literal["never", "tool_turns", "always"] = "tool_turns"
    replay_fields: tuple[str, ...] = ()
    required_field: str = ""
    skip_signature: bool = False
    stream_usage: bool = True
    parallel: bool = True
    strict: bool = True
    schema: bool = True
    custom_tools: bool = False
    store: bool = False
    choice: Literal["named", "words", "auto"] = "named"
    max_stop: int | None = None
    object_arguments: bool = False
    result_name: bool = False
    call_ids: str = ""
    plain_names: bool = False
    alternate: bool = True
    bridge: str = ""


_ROWS = (
    Dialect(
        "openai",
        "https://api.openai.com/v1",
        hosts=("api.openai.com",),
        url_variables=("OPENAI_BASE_URL",),
        system_role="developer",
        cap="max_completion_tokens",
        custom_tools=True,
        store=True,
        max_stop=4,
        call_ids=".{1,40}",
        plain_names=True,
        alternate=False,
    ),
    Dialect(
        "azure",
        "",  # every resource has its own
        hosts=("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"),
        key_variables=("AZURE_OPENAI_API_KEY",),
        url_variables=("AZURE_OPENAI_ENDPOINT",),
        key_header="api-key",
        deployments=True,
        cap="max_completion_tokens",
        max_stop=4,
        call_ids=".{1,40}",
        plain_names=True,
        alternate=False,
    ),
    Dialect(
        "deepseek",
        "https://api.deepseek.com",
        hosts=("api.deepseek.com",),
        key_variables=("DEEPSEEK_API_KEY",),
        reasoning="thinking",
        required_field="reasoning_content",
        parallel=False,
        strict=False,
        schema=False,
        plain_names=True,
    ),
    Dialect(
        "qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        hosts=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", "maas.aliyuncs.com"),
        key_variables=("DASHSCOPE_API_KEY",),
        reasoning="enable_thinking",
        strict=False,
    ),
    Dialect(
        "moonshot",
        "https://api.moonshot.ai/v1",
        hosts=("api.moonshot.ai", "api.moonshot.cn"),
        key_variables=("MOONSHOT_API_KEY",),
        cap="max_completion_tokens",
        reasoning="thinking",
        required_field="reasoning_content",
        parallel=False,
        strict=False,
        choice="auto",
        plain_names=True,
    ),
    Dialect(
        "mistral",
        "https://api.mistral.ai/v1",
        hosts=("api.mistral.ai",),
        key_variables=("MISTRAL_API_KEY",),
        replay="always",
        stream_usage=False,
        result_name=True,
        call_ids="[a-zA-Z0-9]{9}",
        plain_names=True,
        bridge="I have the results of the tools.",
    ),
    Dialect(
        "groq",
        "https://api.groq.com/openai/v1",
        hosts=("api.groq.com",),
        key_variables=("GROQ_API_KEY",),
        cap="max_completion_tokens",
        replay="never",
    ),
    Dialect(
        "together",
        "https://api.together.xyz/v1",
        hosts=("api.together.xyz", "api.together.ai"),
        key_variables=("TOGETHER_API_KEY",),
        parallel=False,
        strict=False,
    ),
    Dialect(
        "openrouter",
        "https://openrouter.ai/api/v1",
        hosts=("openrouter.ai",),
        key_variables=("OPENROUTER_API_KEY",),
        reasoning="object",
        replay="always",
        replay_fields=("reasoning_details", "reasoning", "reasoning_content"),
        call_ids=".{1,40}",
        plain_names=True,
    ),
    Dialect(
        "vllm",
        "http://localhost:8000/v1",
        key_variables=("VLLM_API_KEY",),
        reasoning="template",
        replay_fields=("reasoning", "reasoning_content"),
        strict=False,
    ),
    Dialect(
        "ollama",
        "http://localhost:11434/v1",
        hosts=("localhost:11434", "127.0.0.1:11434", "ollama.com"),
        key_variables=("OLLAMA_API_KEY",),
        parallel=False,
        strict=False,
    ),
    Dialect(
        "llamacpp",
        "http://localhost:8080/v1",
        key_variables=("LLAMA_API_KEY",),
        reasoning="template",
        strict=False,
        choice="words",
    ),
    Dialect(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        hosts=("generativelanguage.googleapis.com",),
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        reasoning="google",
        replay="always",
        skip_signature=True,
        parallel=False,
        strict=False,
        result_name=True,
    ),
    Dialect(
        "xai",
        "https://api.x.ai/v1",
        hosts=("api.x.ai",),
        key_variables=("XAI_API_KEY",),
        cap="max_completion_tokens",
    ),
    Dialect("compatible", "", url_variables=("OPENAI_BASE_URL",), strict=False),
)

DIALECTS: Mapping[str, Dialect] = {row.name: row for row in _ROWS}
"""The rows by name. "compatible" is for a service that is not listed: everything that it sends goes back to it."""


def guess(base_url: str) -> Dialect:
    """The row of the service at `base_url`, by host; "compatible" if none is known. Local servers share their usual ports
    with everything else, so of them only Ollama's own port is taken as a sign."""
    place = urlsplit(base_url if "//" in base_url else f"//{base_url}").netloc.rpartition("@")[2].lower()
    host = place.partition(":")[0]
    for row in _ROWS:
        if any(found == known or found.endswith(f".{known}") for known in row.hosts for found in (place, host)):
            return row
    return DIALECTS["compatible"]


def named(name: str) -> Dialect:
    """The row with this name. Raises InvalidRequest with the known names."""
    row = DIALECTS.get(name)
    if row is None:
        raise InvalidRequest(f"no dialect {name!r}; known: {', '.join(DIALECTS)}")
    return row


# ---------------------------------------------------------------- how reasoning is asked for


def _effort(asked: str | int) -> JSON:
    return {"reasoning_effort": _word(asked)}


def _thinking(asked: str | int) -> JSON:
    """A switch, and an effort beside it."""
    if asked == "none":
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled"}, "reasoning_effort": _word(asked)}


def _enable_thinking(asked: str | int) -> JSON:
    """A switch, and a budget in tokens; there is no word for the effort, so a word only switches on."""
    return {"enable_thinking": asked != "none"} | ({"thinking_budget": asked} if isinstance(asked, int) else {})


def _object(asked: str | int) -> JSON:
    return {"reasoning": {"max_tokens": asked} if isinstance(asked, int) else {"effort": asked}}


def _template(asked: str | int) -> JSON:
    """A variable of the model's chat template for the switch, and the effort for templates that know one."""
    if asked == "none":
        return {"chat_template_kwargs": {"enable_thinking": False}}
    return {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": _word(asked)}


def _google(asked: str | int) -> JSON:
    """An effort, or a budget in Google's own words, under a field that really is called `extra_body` in the JSON."""
    if isinstance(asked, int):
        return {"extra_body": {"google": {"thinking_config": {"thinking_budget": asked}}}}
    return _effort(asked)


def _word(asked: str | int) -> str:
    if isinstance(asked, int):
        raise InvalidRequest('this service takes an effort word (reasoning="low"), not a budget in tokens')
    return asked


REASONING: Mapping[str, Callable[[str | int], JSON]] = {
    "effort": _effort,
    "thinking": _thinking,
    "enable_thinking": _enable_thinking,
    "object": _object,
    "template": _template,
    "google": _google,
}
"""The forms that `Dialect.reasoning` names: from what was asked for to the fields of the request."""
