"""One loop on every wire format: the recorded answers of each service go through a client, the loop, and back.

What is checked is the request that follows: everything that only its own service can read must be in it as it came, and
every call must have its result in the form of that service.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lessonlib.client import AsyncClient, Client
from lessonlib.errors import LessonError
from lessonlib.flow import acollect, collect
from lessonlib.tool_loop import ToolRun, arun_tools, astream_tools, run_tools, stream_tools
from lessonlib.types import Request, StopReason
from lessonlib.wire import WIRES

TESTDATA = Path(__file__).parents[1] / "testdata"
ASK = Request(messages="What is the weather in Oslo?")


def get_weather(city: str, unit: str = "celsius") -> str:
    """The weather in a city.

    Args:
        city: Name of the city.
        unit: Unit of the temperature.
    """
    return f"9 degrees in {city}"


class Service:
    """Plays recorded answers in order, whole or streamed as it is asked, and keeps what it was asked."""

    def __init__(self, wire: str, *cases: str) -> None:
        self.folders = [TESTDATA / wire / case for case in cases]
        self.bodies: list[Any] = []
        self.wire = WIRES[wire](model="m", api_key="sk-inv-0000000000")
        self.transport = httpx.MockTransport(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        folder = self.folders[len(self.bodies)]
        self.bodies.append(json.loads(request.content))
        if request.headers.get("accept") == "text/event-stream":
            body = (folder / "stream.sse").read_bytes()
            return httpx.Response(200, content=body, headers={"content-type": "text/event-stream"})
        return httpx.Response(
            200, content=(folder / "response.json").read_bytes(), headers={"content-type": "application/json"}
        )

    def run(self, asynchronous: bool, streaming: bool) -> ToolRun:
        return asyncio.run(self._arun(streaming)) if asynchronous else self._run(streaming)

    def _run(self, streaming: bool) -> ToolRun:
        with Client(self.wire, self.transport) as client:
            if not streaming:
                return run_tools(client, ASK, [get_weather])
            with stream_tools(client, ASK, [get_weather]) as events:
                collect(events)
            return events.run

    async def _arun(self, streaming: bool) -> ToolRun:
        async with AsyncClient(self.wire, self.transport) as client:
            if not streaming:
                return await arun_tools(client, ASK, [get_weather])
            async with astream_tools(client, ASK, [get_weather]) as events:
                await acollect(events)
            return events.run


def everything_in(value: Any) -> Iterator[Any]:
    """Every value inside a JSON value."""
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from everything_in(inner)


SIGNED = {"encrypted_content", "signature", "thoughtSignature", "id", "call_id"}
"""Where the services keep what only they can read, and what they pair calls and results by."""


def signed(value: Any) -> set[str]:
    """All values inside `value` that must go back unchanged."""
    found = [each for each in everything_in(value) if isinstance(each, dict)]
    return {each[key] for each in found for key in SIGNED if isinstance(each.get(key), str)}


def ways(*cases: str) -> Any:
    """Wire, case and way of use, for each recording of these cases that there is."""
    found = [
        pytest.param(wire, case, asynchronous, streaming, id=f"{wire}-{case}-{'a' * asynchronous}{file.partition('.')[0]}")
        for wire in WIRES
        for case in cases
        for streaming, file in ((False, "response.json"), (True, "stream.sse"))
        if (TESTDATA / wire / case / file).exists()
        for asynchronous in (False, True)
    ]
    return pytest.mark.parametrize(("wire", "case", "asynchronous", "streaming"), found)


def expectations(service: Service) -> list[Any]:
    return [json.loads((folder / "expect.json").read_text(encoding="utf-8")) for folder in service.folders]


@ways("tool_call")
def test_ask_call_result_answer(wire: str, case: str, asynchronous: bool, streaming: bool) -> None:
    service = Service(wire, case, "text")
    run = service.run(asynchronous, streaming)
    first, last = expectations(service)
    assert (run.steps, run.tools_run) == (2, 1)
    assert run.response.text == last["text"]
    for count in ("input_tokens", "output_tokens"):
        assert getattr(run.usage, count) == first["usage"][count] + last["usage"][count]
    _, assistant, result, _ = run.messages
    (call,), (answered,) = assistant.tool_calls, result.tool_results
    assert (answered.call_id, answered.text, answered.is_error) == (call.call_id, "9 degrees in Oslo", False)
    assert "get_weather" in json.dumps(service.bodies[0]["tools"])


@ways("tool_call", "parallel_calls")
def test_what_only_the_service_can_read_goes_back_as_it_came(
    wire: str, case: str, asynchronous: bool, streaming: bool
) -> None:  # fmt: skip
    """Signatures, encrypted thoughts and ids; and the result stands in the request, in the service's own form."""
    service = Service(wire, case, "text")
    run = service.run(asynchronous, streaming)
    texts = {each for each in everything_in(service.bodies[1]) if isinstance(each, str)}
    for part in run.messages[1].parts:
        assert signed(part.raw) <= texts, f"{part.type} did not go back as it came"
    for result in run.messages[2].tool_results:
        assert any(result.text in each for each in texts)


@ways("parallel_calls")
def test_parallel_calls_are_answered_together_and_in_order(
    wire: str, case: str, asynchronous: bool, streaming: bool
) -> None:  # fmt: skip
    run = Service(wire, case, "text").run(asynchronous, streaming)
    calls = run.messages[1].tool_calls
    assert len(calls) >= 2
    assert [each.call_id for each in run.messages[2].tool_results] == [each.call_id for each in calls]


@ways("invalid_arguments")
def test_invalid_arguments_are_answered_with_an_error(wire: str, case: str, asynchronous: bool, streaming: bool) -> None:
    """The call goes back in a form that its service takes, with an error result beside it."""
    service = Service(wire, case, "text")
    run = service.run(asynchronous, streaming)
    assert run.tools_run == 0
    assert all(each.is_error and "was not run" in each.text for each in run.messages[2].tool_results)


@ways("length", "length_in_call", "refusal", "cut", "cut_in_call", "error_midstream", "bad_request")
def test_an_answer_that_did_not_end_well_runs_nothing(wire: str, case: str, asynchronous: bool, streaming: bool) -> None:
    """Whatever it was: no tool runs, and what is left can be sent again."""
    service, run = Service(wire, case), None
    try:
        run = service.run(asynchronous, streaming)
    except LessonError as error:
        run = error.run
    assert run.tools_run == 0
    assert service.wire.encode(Request(messages=[*run.messages, *ASK.messages])).body


@ways("pause_next")
def test_a_paused_answer_goes_on(wire: str, case: str, asynchronous: bool, streaming: bool) -> None:
    service = Service(wire, "pause", case)
    run = service.run(asynchronous, streaming)
    assert run.steps == 2
    assert run.response.stop is StopReason.END
    assert not [part for message in run.messages for part in message.parts if getattr(part, "kind", "") == "continuation"]
    assert "".join(message.text for message in run.messages[1:]) == "".join(each["text"] for each in expectations(service))
