"""Every streamed event, of every cue, validates against the official package's own types with no unknown field.

Without sockets: the bytes come from the simulator's core. The one exception is OpenAI's `obfuscation`, which the service
sends and the package's event types of Responses do not name.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from lessonlib.sim import CUES, Fault, SimRequest, Simulator
from lessonlib.sse import SSEParser
from lessonlib.types import Message, Request, Tool
from lessonlib.wire import WIRES
from tests.sim.requests import MODELS, WEATHER

PADDING = {"obfuscation"}
SQL = Tool(name="run_sql", kind="custom")


def unknown_fields(value: Any, path: str = "") -> list[str]:
    """Paths of all fields that the package's types do not know."""
    if isinstance(value, BaseModel):
        extra = [f"{path}.{name}" for name in (value.model_extra or {}) if name not in PADDING]
        return extra + [
            found for name in type(value).model_fields for found in unknown_fields(getattr(value, name), f"{path}.{name}")
        ]
    if isinstance(value, list):
        return [found for place, item in enumerate(value) for found in unknown_fields(item, f"{path}[{place}]")]
    return []


@cache
def event_type(wire: str) -> TypeAdapter[Any]:
    """The package's type of a stream's events. The import is slow, so each is made once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if wire == "openai-responses":
            from openai.types.responses import ResponseStreamEvent

            return TypeAdapter(ResponseStreamEvent)
        if wire == "openai-chat":
            from openai.types.chat import ChatCompletionChunk

            return TypeAdapter(ChatCompletionChunk)
        if wire == "anthropic-messages":
            from anthropic.types import RawMessageStreamEvent

            return TypeAdapter(RawMessageStreamEvent)
        if wire == "gemini-interactions":
            from google.genai._gaos.types.interactions.interactionsseevent import InteractionSSEEvent

            return TypeAdapter(InteractionSSEEvent)
        from google.genai.types import GenerateContentResponse

        return TypeAdapter(GenerateContentResponse)


def payloads(wire: str, request: Request, sim: Simulator) -> Iterator[Any]:
    encoded = WIRES[wire](MODELS[wire], api_key="k").encode(request, stream=True)
    headers = {name.lower(): value for name, value in encoded.headers.items()}
    reply = sim.handle(SimRequest("POST", "/" + encoded.url.split("/", 3)[3], headers, encoded.content))
    parser = SSEParser()
    for data in [*(data for _, data in reply.chunks), b""]:
        for event in parser.feed(data) if data else parser.close():
            if not event.data.startswith(b"[DONE]"):
                yield json.loads(event.data)


def check(wire: str, request: Request, sim: Simulator | None = None) -> None:
    adapter, count = event_type(wire), 0
    for payload in payloads(wire, request, sim or Simulator()):
        if wire == "anthropic-messages" and payload["type"] == "ping":
            continue  # the package drops it before its types come in
        event = adapter.validate_python(payload)
        assert (unknown_fields(event, payload.get("type", "")), getattr(event, "is_unknown", False)) == ([], False)
        count += 1
    assert count > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wire", WIRES)
def test_every_event_of_every_cue_is_of_the_packages_types(wire: str) -> None:
    for one in CUES:
        text = f"What is the weather in Lima, {one.words[0]}?"
        check(wire, Request(messages=[Message.user(text)], tools=[WEATHER], reasoning="low", max_tokens=4000))
        check(wire, Request(messages=[Message.user(one.words[0])]))
    check(wire, Request(messages=[Message.user("Hello")], max_tokens=16))
    check(wire, Request(messages=[Message.user("Hello")], extra={"openai-chat": {"n": 2}}))


@pytest.mark.filterwarnings("ignore")
def test_custom_calls_of_responses_are_of_the_packages_types() -> None:
    """(Chat Completions' delta type in the package knows functions only.)"""
    check("openai-responses", Request(messages=[Message.user("Call run_sql with `select 1`.")], tools=[SQL]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wire", WIRES)
def test_the_events_after_a_break_are_of_the_packages_types(wire: str) -> None:
    """The vendor's own error inside a stream. OpenAI's is a nested object, which the package's types do not describe but its
    reader looks for (test_sdk.py), and so is that of the others but Interactions; what comes before and after them fits."""
    sim = Simulator(faults=[Fault("error_event", events=3, status=529)])
    found = list(payloads(wire, Request(messages=[Message.user("Hello")]), sim))
    plain = [payload for payload in found if wire == "gemini-interactions" or not payload.get("error")]
    for payload in plain:
        if payload.get("type") != "ping":
            assert unknown_fields(event_type(wire).validate_python(payload)) == []
    assert len(found) - len(plain) == (0 if wire == "gemini-interactions" else 1)
    if wire == "openai-responses":  # the pair that was captured
        assert [payload["type"] for payload in found[3:]] == ["error", "response.failed"]
        assert [payload["sequence_number"] for payload in found] == list(range(5))
