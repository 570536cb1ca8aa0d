"""What a wire format of a learner's own must do, asked as the library's own are asked: encode, decode, stream, one round
of a tool.

    observe(MyChat, {"do": "whole", "body": {...}})      what an answer says, in plain values

The learner's class is a WireFormat (`path`, `auth`, `body`, `decode`, `error_details`, `decoder`), so a real Client works
with it, and the simulator judges its requests.

What this file does not do: it knows no vendor (chat_wire.py, generate_wire.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from lessonlib.client import Client
from lessonlib.errors import LessonError
from lessonlib.lab.checks.core import WrongShape, call
from lessonlib.sim import Simulator
from lessonlib.sim.transport import SimTransport
from lessonlib.sse import SSEParser
from lessonlib.tool_loop import run_tools, stream_tools
from lessonlib.types import JSON, Message, Request, Response, Tool, ToolResult
from lessonlib.wire.base import WireFormat

WEATHER = Tool(
    name="get_weather",
    description="Weather of a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
QUESTION = "What is the weather in Oslo?"


def make(learner: Any, given: JSON) -> WireFormat:
    """An instance of the learner's class."""
    if not (isinstance(learner, type) and issubclass(learner, WireFormat)):
        raise WrongShape("a wire format is a class that inherits from lessonlib.wire.base.WireFormat")
    wire: WireFormat = call(
        "the wire format", learner, given.get("model", "m"), api_key="offline", base_url=given["base_url"]
    )
    return wire


def observe(learner: Any, given: JSON) -> Any:
    """What the learner's wire format does with one of the five things that are asked."""
    wire = make(learner, given)
    match given["do"]:
        case "request":
            sent = wire.encode(_request(given), stream=given.get("stream", False))
            return {"url": sent.url.removeprefix(given["base_url"]), "key": _key_header(sent.headers), "body": sent.body}
        case "second request":
            answer = wire.decode(given["body"])
            results = [ToolResult(call_id=each.call_id, content=f"sun {n}") for n, each in enumerate(answer.tool_calls, 1)]
            messages = [Message.user(QUESTION), answer.message, Message.user(*results)]
            return wire.encode(Request(messages=messages, tools=[WEATHER])).body
        case "whole":
            return _told_or_error(lambda: wire.decode(given["body"]))
        case "stream":
            return _told_or_error(lambda: fold(wire, given["data"], given.get("size", 0)))
        case _:
            return _loop(wire, given.get("stream", False))


def _request(given: JSON) -> Request:
    tools = [WEATHER] if given.get("tools") else []
    return Request(
        messages=[Message.user(QUESTION)], system=given.get("system"), tools=tools, max_tokens=given.get("max_tokens")
    )


def _key_header(headers: dict[str, str]) -> list[str]:
    return sorted(f"{name.lower()}: {value}" for name, value in headers.items() if "offline" in value)


def fold(wire: WireFormat, data: bytes, size: int = 0) -> Response:
    """A streamed answer, read in pieces, then the clean end of the body."""
    parser, decoder = SSEParser(), wire.decoder()
    for start in range(0, len(data), size or len(data)):
        for event in parser.feed(data[start : start + (size or len(data))]):
            decoder.feed(event)
    for event in parser.close():
        decoder.feed(event)
    decoder.close(parser.stray)
    return decoder.result()


def _told_or_error(work: Any) -> JSON:
    try:
        return told(work())
    except LessonError as error:
        return {"error": type(error).__name__, "retryable": error.retryable}


def told(response: Any) -> JSON:
    """What an answer says, in plain values."""
    if type(response) is not Response:
        return {"answer": f"a {type(response).__name__}, not a Response"}
    usage = response.usage
    return {
        "text": response.text,
        "calls": [[each.call_id, each.name, each.args] for each in response.tool_calls],
        "stop": response.stop.value,
        "input": None if usage is None else usage.input_tokens,
        "output": None if usage is None else usage.output_tokens,
    }


def _loop(wire: WireFormat, streamed: bool) -> JSON:
    """A round of a tool against the simulator: what was refused, what came out, what the second request held."""
    sim = Simulator()
    ran: list[str] = []

    def get_weather(city: str) -> str:
        ran.append(city)
        return f"Sunny in {city}."

    request = Request(messages=[Message.user(QUESTION)], tools=[WEATHER])
    ended = ""
    try:
        with Client(wire, transport=SimTransport(sim)) as client:
            if streamed:
                with stream_tools(client, request, [get_weather]) as events:
                    for _ in events:
                        pass
                ended = "answered" if events.run.response.text else "no text"
            else:
                ended = "answered" if run_tools(client, request, [get_weather]).response.text else "no text"
    except LessonError as error:
        ended = f"{type(error).__name__}: {str(error)[:120]}"
    refused = [refusal.message for _, _, refusal in sim.requests if refusal is not None]
    return {"ended": ended, "requests": len(sim.requests), "ran": ran, "refused": refused[:1]}


def sse(chunks: Iterable[JSON], *, done: bool = False) -> bytes:
    """Chunks without names, as the two older APIs send them."""
    text = "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks)
    return (text + ("data: [DONE]\n\n" if done else "")).encode("utf-8")
