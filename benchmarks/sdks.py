"""The vendors' own packages as contestants: their raw events, synchronous and asynchronous, and their accumulating helpers.

What a user would do with the raw events is done with them: the pieces of text and of arguments are collected. The helpers
give the whole answer themselves. google-genai has none for Interactions; for generateContent its chat session is the nearest
thing, which keeps the chunks as history. No retries, and no continuation of its own, so that one read is one request.

What this file does not do: no measuring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2

from benchmarks.contestants import HEADERS, KEY, Body, Contestant, Found, Prepared, Source, in_loop
from benchmarks.streams import MODELS

Take = Callable[[Any, Found], None]
ASK = "What is the tide?"


class Body2(Body, httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The same body, of the type that httpx2 looks for."""


class Memory2(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """A network in memory, for httpx2."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=HEADERS, stream=Body2(self._chunks))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=HEADERS, stream=Body2(self._chunks))


def _http(source: Source) -> httpx2.Client:
    return httpx2.Client(transport=None if source.url else Memory2(source.chunks))


def _ahttp(source: Source) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=1000)  # what the packages set themselves
    return httpx2.AsyncClient(transport=None if source.url else Memory2(source.chunks), limits=limits)


# ---------------------------------------------------------------- anthropic


def anthropic_client(source: Source, is_async: bool = False) -> Any:
    import anthropic

    kind: Any = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    http = _ahttp(source) if is_async else _http(source)
    return kind(api_key=KEY, base_url=source.base_url, max_retries=0, http_client=http)


MESSAGES: dict[str, Any] = {
    "model": MODELS["anthropic-messages"],
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": ASK}],
}


def take_messages(event: Any, found: Found) -> None:
    if event.type == "content_block_delta":
        delta = event.delta
        if delta.type == "text_delta":
            found.text.append(delta.text)
        elif delta.type == "input_json_delta":
            found.pieces[event.index].append(delta.partial_json)
    elif event.type == "content_block_start" and event.content_block.type == "tool_use":
        found.start(event.index, event.content_block.name)


def messages_helper(source: Source) -> Prepared:
    sdk = anthropic_client(source)

    def read() -> Found:
        with sdk.messages.stream(**MESSAGES) as stream:
            for _ in stream:
                pass
            message = stream.get_final_message()
        calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
        return Found([block.text for block in message.content if block.type == "text"], calls, response=message)

    return read


# ---------------------------------------------------------------- openai


def openai_client(source: Source, is_async: bool = False) -> Any:
    import openai

    kind: Any = openai.AsyncOpenAI if is_async else openai.OpenAI
    http = _ahttp(source) if is_async else _http(source)
    return kind(api_key=KEY, base_url=source.base_url, max_retries=0, http_client=http)


RESPONSES: dict[str, Any] = {"model": MODELS["openai-responses"], "input": ASK}
CHAT: dict[str, Any] = {"model": MODELS["openai-chat"], "messages": [{"role": "user", "content": ASK}]}


def take_responses(event: Any, found: Found) -> None:
    if event.type == "response.output_text.delta":
        found.text.append(event.delta)
    elif event.type == "response.function_call_arguments.delta":
        found.pieces[event.output_index].append(event.delta)
    elif event.type == "response.output_item.added" and event.item.type == "function_call":
        found.start(event.output_index, event.item.name)


def take_chat(chunk: Any, found: Found) -> None:
    for choice in chunk.choices:
        if choice.delta.content:
            found.text.append(choice.delta.content)
        for call in choice.delta.tool_calls or ():
            if call.function.name:
                found.start(call.index, call.function.name)
            found.pieces[call.index].append(call.function.arguments)


def responses_helper(source: Source) -> Prepared:
    sdk = openai_client(source)

    def read() -> Found:
        with sdk.responses.stream(**RESPONSES) as stream:
            for _ in stream:
                pass
            response = stream.get_final_response()
        found = Found([response.output_text], response=response)
        for number, item in enumerate(response.output):
            if item.type == "function_call":
                found.start(number, item.name)
                found.pieces[number].append(item.arguments)
        return found

    return read


def chat_helper(source: Source) -> Prepared:
    sdk = openai_client(source)

    def read() -> Found:
        with sdk.chat.completions.stream(**CHAT) as stream:
            for _ in stream:
                pass
            completion = stream.get_final_completion()
        message = completion.choices[0].message
        found = Found([message.content or ""], response=completion)
        for number, call in enumerate(message.tool_calls or ()):
            found.start(number, call.function.name)
            found.pieces[number].append(call.function.arguments)
        return found

    return read


# ---------------------------------------------------------------- google-genai


def genai_client(source: Source) -> Any:
    from google import genai

    options = genai.types.HttpOptions(
        base_url=source.base_url,
        retry_options=genai.types.HttpRetryOptions(attempts=1),
        httpx_client=_http(source),
        httpx_async_client=_ahttp(source),
    )
    return genai.Client(api_key=KEY, http_options=options)


INTERACTIONS: dict[str, Any] = {
    "model": MODELS["gemini-interactions"], "input": ASK, "automatic_continuation": False, "stream": True,
}  # fmt: skip
GENERATE: dict[str, Any] = {
    "model": MODELS["gemini-generate-content"], "contents": ASK, "config": {"automatic_continuation": False},
}  # fmt: skip


def take_interactions(event: Any, found: Found) -> None:
    if event.event_type == "step.delta":
        if event.delta.type == "text":
            found.text.append(event.delta.text)
        elif event.delta.type == "arguments_delta":
            found.pieces[event.index].append(event.delta.arguments)
    elif event.event_type == "step.start" and event.step.type == "function_call":
        found.start(event.index, event.step.name)


def take_generate(chunk: Any, found: Found) -> None:
    for candidate in chunk.candidates or ():
        for part in (candidate.content and candidate.content.parts) or ():
            if part.function_call:
                found.calls.append((part.function_call.name, part.function_call.args))
            elif part.text and not part.thought:
                found.text.append(part.text)


def generate_helper(source: Source) -> Prepared:
    sdk = genai_client(source)

    def read() -> Found:
        chat, found = sdk.chats.create(model=GENERATE["model"]), Found()
        for chunk in chat.send_message_stream(ASK):
            take_generate(chunk, found)
        found.response = chat.get_history()
        return found

    return read


# ---------------------------------------------------------------- raw events, in both colours


def _opened(source: Source, is_async: bool) -> tuple[Callable[[], Any], Take]:
    """How the stream of a wire is opened, and what is taken from its events."""
    match source.wire:
        case "anthropic-messages":
            messages = anthropic_client(source, is_async).messages
            return lambda: messages.create(**MESSAGES, stream=True), take_messages
        case "openai-responses":
            responses = openai_client(source, is_async).responses
            return lambda: responses.create(**RESPONSES, stream=True), take_responses
        case "openai-chat":
            completions = openai_client(source, is_async).chat.completions
            return lambda: completions.create(**CHAT, stream=True), take_chat
    sdk = genai_client(source)
    sdk = sdk.aio if is_async else sdk
    if source.wire == "gemini-interactions":
        return lambda: sdk.interactions.create(**INTERACTIONS), take_interactions
    return lambda: sdk.models.generate_content_stream(**GENERATE), take_generate


def raw(source: Source) -> Prepared:
    opened, take = _opened(source, is_async=False)

    def read() -> Found:
        found = Found()
        for event in opened():
            take(event, found)
        return found

    return read


def async_raw(source: Source) -> Prepared:
    opened, take = _opened(source, is_async=True)

    async def read() -> Found:
        found = Found()
        async for event in await opened():
            take(event, found)
        return found

    return in_loop(source, read)


PACKAGES = {
    "anthropic-messages": "anthropic",
    "openai-responses": "openai",
    "openai-chat": "openai",
    "gemini-interactions": "google-genai",
    "gemini-generate-content": "google-genai",
}
HELPERS: dict[str, Contestant] = {
    "anthropic-messages": messages_helper,
    "openai-responses": responses_helper,
    "openai-chat": chat_helper,
    "gemini-generate-content": generate_helper,
}


def sdk_contestants(wire: str) -> dict[str, Contestant]:
    """The readers that the vendor's package offers for this wire."""
    package = PACKAGES[wire]
    helper = {f"{package}, helper": HELPERS[wire]} if wire in HELPERS else {}
    return {f"{package}, raw": raw, f"{package}, raw async": async_raw, **helper}
