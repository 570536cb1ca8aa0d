"""The served simulator: many streams at once, clients that leave, faults on a real socket, and who may talk to it."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing, contextmanager

import httpx
import pytest
import uvicorn

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


@contextmanager
def watched(sim: Simulator) -> Iterator[tuple[uvicorn.Server, int]]:
    """A running server that can be looked into, and its port."""
    server, listening = module.server(sim), module.listen(0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield server, listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


def half_read(port: int, kill: bool) -> None:
    """Asks for a long stream, reads its beginning, and goes: closing properly, or with a reset."""
    asked = [{"role": "user", "content": "Write a lot."}]
    body = json.dumps({"model": MODELS["openai-chat"], "stream": True, "messages": asked})
    lines = ["POST /v1/chat/completions HTTP/1.1", "host: 127.0.0.1", "authorization: Bearer k",
             f"content-length: {len(body)}", "", ""]  # fmt: skip
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(("\r\n".join(lines) + body).encode())
        while b"data:" not in connection.recv(4096):
            pass
        if kill:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_clients_that_are_killed_in_mid_stream_leak_no_task_and_no_socket() -> None:
    """Streams of about a minute each, left after the first event: nothing of them stays in the server."""
    sim = Simulator(faults=[Fault("slow", seconds=0.1)])
    with watched(sim) as (server, port):
        for number in range(40):
            half_read(port, kill=number % 2 == 0)
        state = server.server_state
        assert len(sim.requests) == 40
        assert eventually(lambda: not state.connections and not state.tasks), (len(state.connections), len(state.tasks))


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


def test_a_reset_is_one_of_the_connection_and_a_cut_is_not(sim: Simulator, url: str) -> None:
    """What comes before the reset is read; then the client's system says that the peer has reset the connection."""
    sim.faults[:] = [Fault("reset", bytes=300)]
    body = json.dumps({"model": MODELS["openai-chat"], "stream": True, "messages": [{"role": "user", "content": "Hi"}]})
    headers = f"host: 127.0.0.1\r\nauthorization: Bearer k\r\ncontent-length: {len(body)}"
    with socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1]))) as connection:
        connection.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{headers}\r\n\r\n{body}".encode())
        pieces: list[bytes] = []
        with pytest.raises(ConnectionResetError):
            pieces.extend(iter(lambda: connection.recv(4096), b""))
    assert b"chat.completion.chunk" in b"".join(pieces)


def test_only_this_machine_by_its_own_names(url: str) -> None:
    with httpx.Client() as http:
        stranger = http.post(url + "/v1/messages", headers={"host": "evil.example"}, json={})
        local = http.post(url + "/v1/messages", headers={"host": "localhost"}, json={})
    assert (stranger.status_code, local.status_code) == (403, 401)


def test_it_binds_to_the_loopback_address_only() -> None:
    with module.listen(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    with module.listen(0) as taken, pytest.raises(OSError, match=r"in use|10048|10013"):
        module.listen(taken.getsockname()[1])


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
