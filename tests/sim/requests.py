"""Second requests of a tool round trip, as the library writes them: what the rules let through, and tests then break."""

from __future__ import annotations

import copy
from typing import Any

from lessonlib.client import Client
from lessonlib.sim import SimReply, SimRequest, SimTransport, Simulator
from lessonlib.types import Message, Request, Tool, ToolResult
from lessonlib.wire import WIRES

MODELS = {
    "openai-responses": "gpt-6-astra",
    "openai-chat": "gpt-6-astra",
    "anthropic-messages": "claude-opus-5-5",
    "gemini-interactions": "gemini-3.8-flash",
    "gemini-generate-content": "gemini-3.8-flash",
}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = Tool(name="get_weather", description="Weather of a city", parameters=CITY, strict=True)


def conversation(wire_name: str, model: str | None = None) -> Request:
    """A question, an answer with two parallel calls (and reasoning where the wire shows it), and the two results."""
    wire = WIRES[wire_name](model or MODELS[wire_name], api_key="k")
    asked = Request(
        messages=[Message.user("What is the weather in Lima and in Oslo?")],
        system="Answer briefly.",
        tools=[WEATHER],
        max_tokens=2000,
    )
    with Client(wire, transport=SimTransport(Simulator())) as client:
        answer = client.generate(asked)
    results = [ToolResult(call_id=call.call_id, content="sunny") for call in answer.tool_calls]
    return asked.replace(messages=[*asked.messages, answer.message, Message.user(*results)])


def second_request(wire_name: str, model: str | None = None) -> tuple[str, dict[str, str], dict[str, Any]]:
    """(path, headers, body) of the request that brings the results back."""
    wire = WIRES[wire_name](model or MODELS[wire_name], api_key="k")
    encoded = wire.encode(conversation(wire_name, model))
    path = "/" + encoded.url.split("/", 3)[3]
    headers = {name.lower(): value for name, value in encoded.headers.items()}
    return path, headers, copy.deepcopy(encoded.body)


def body_of(reply: SimReply) -> Any:
    """The JSON in a whole answer."""
    from lessonlib.wire.base import read_json

    return read_json(b"".join(data for _, data in reply.chunks))


def send(sim: Simulator, path: str, headers: dict[str, str], body: Any) -> SimReply:
    """One request to the simulator's core."""
    from lessonlib.wire.base import compact

    data = body if isinstance(body, bytes) else compact(body).encode("utf-8")
    return sim.handle(SimRequest("POST", path, headers, data))
