"""The served simulator: many streams at once, clients that leave, faults on a real socket, and who may talk to it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing

import httpx
import pytest

from lessonlib.client import AsyncClient, Client, Timeouts
from lessonlib.errors import IncompleteStream, TransportError, TransportTimeout
from lessonlib.sim import Fault, Simulator
from lessonlib.sim import server as module
from lessonlib.types import Done, Message, Request
from lessonlib.wire import WIRES
from tests.sim.requests import MODELS, WEATHER

STREAMS = 200


@pytest.fixture
def sim() -> Simulator:
    return Simulator()


@pytest.fixture
def url(sim: Simulator) -> Iterator[str]:
    with module.running(sim) as address:
        yield address


def base_url(wire: str, url: str) -> str:
    return url + ("/v1" if wire.startswith("openai") else "")


def asked(text: str = "What is the weather in Lima?") -> Request:
    return Request(messages=[Message.user(text)], tools=[WEATHER])


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether a condition comes true soon: for what another thread does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        threading.Event().wait(0.01)
    return condition()


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_format_on_one_port(url: str, wire: str) -> None:
    with Client(WIRES[wire](MODELS[wire], api_key="k", base_url=base_url(wire, url))) as client:
        whole = client.generate(asked())
        with closing(client.stream(asked())) as events:
            streamed = [event for event in events if isinstance(event, Done)]
    assert len(streamed) == 1
    assert [call.name for call in whole.tool_calls] == ["get_weather"]
    assert [call.args for call in whole.tool_calls] == [call.args for call in streamed[0].response.tool_calls]


def test_two_hundred_concurrent_streams_all_end_right(sim: Simulator, url: str) -> None:
    sim.faults.append(Fault("slow", seconds=0.02))  # so that they really run at the same time

    async def one(client: AsyncClient) -> str:
        async with aclosing(client.stream(Request(messages=[Message.user("Is Lima worth a visit?")]))) as events:
            async for event in events:
                if isinstance(event, Done):
                    return event.response.text
        return "no end"

    async def all_of_them() -> list[str]:
        clients = [
            AsyncClient(WIRES[wire](MODELS[wire], api_key="k", base_url=base_url(wire, url)), timeout=60) for wire in WIRES
        ]
        try:
            return await asyncio.gather(*(one(clients[number % len(clients)]) for number in range(STREAMS)))
        finally:
            for client in clients:
                await client.aclose()

    texts = asyncio.run(all_of_them())
    assert len(texts) == STREAMS
    assert {"Yes: Lima is mild and dry in May."} == set(texts)


def test_a_client_that_leaves_stops_the_server_and_leaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty streams of ten seconds each, left after one event: no task stays, no connection stays."""
    writing: set[int] = set()
    original = module._write

    async def counted(reply: module.SimReply, send: module.Send) -> None:
        writing.add(id(reply))
        try:
            await original(reply, send)
        finally:
            writing.discard(id(reply))

    monkeypatch.setattr(module, "_write", counted)
    sim = Simulator(faults=[Fault("slow", seconds=0.02)])
    with module.running(sim) as url:
        wire = WIRES["anthropic-messages"](MODELS["anthropic-messages"], api_key="k", base_url=url)
        with Client(wire) as client:
            for _ in range(50):
                with closing(client.stream(Request(messages=[Message.user("Write a lot.")]))) as events:
                    next(events)
        assert eventually(lambda: not writing), f"{len(writing)} streams are still written"


def test_a_hang_is_a_timeout_and_a_cut_is_incomplete(sim: Simulator, url: str) -> None:
    wire = WIRES["anthropic-messages"](MODELS["anthropic-messages"], api_key="k", base_url=url)
    sim.faults[:] = [Fault("hang", bytes=900, at=1), Fault("cut_events", events=4, at=2), Fault("reset", bytes=900, at=3)]
    with Client(wire, timeout=Timeouts(idle=0.3)) as client:
        with pytest.raises(TransportTimeout):
            list(client.stream(asked()))
        with pytest.raises(IncompleteStream):
            list(client.stream(asked()))
        with pytest.raises(TransportError):
            list(client.stream(asked()))


def test_only_this_machine_by_its_own_names(url: str) -> None:
    with httpx.Client() as http:
        stranger = http.post(url + "/v1/messages", headers={"host": "evil.example"}, json={})
        local = http.post(url + "/v1/messages", headers={"host": "localhost"}, json={})
    assert (stranger.status_code, local.status_code) == (403, 401)


def test_it_binds_to_the_loopback_address_only(sim: Simulator) -> None:
    assert module.config(sim, 0).host == "127.0.0.1"


def test_an_unknown_path_and_a_wrong_method_are_404(url: str) -> None:
    with httpx.Client() as http:
        assert (
            http.post(url + "/v2/messages", json={}).status_code,
            http.get(url + "/v1/messages").status_code,
        ) == (404, 404)


def test_a_body_over_the_limit_is_413_and_is_not_kept(url: str, sim: Simulator) -> None:
    sim.max_body = 1000
    with httpx.Client() as http:
        answer = http.post(
            url + "/v1/messages", headers={"x-api-key": "k", "anthropic-version": "2023-06-01"}, content=b"[" * 5000
        )
    assert answer.status_code == 413
    assert len(sim.requests[-1][0].body) <= 1001
