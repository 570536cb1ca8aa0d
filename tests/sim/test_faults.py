"""Each kind of fault on each wire: in process, in both colours, and on a real socket; and how faults are written."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import pytest

from lessonlib.client import AsyncClient, Client, Timeouts
from lessonlib.errors import APIError, IncompleteStream, LessonError, NotAStream, TransportError, TransportTimeout
from lessonlib.retry import Retry
from lessonlib.sim import Fault, SimRequest, SimTransport, Simulator
from lessonlib.sim.faults import KINDS, parse
from lessonlib.types import Message, Request, Response
from lessonlib.wire import WIRES
from tests.sim.requests import MODELS, second_request, send

REQUEST = Request(messages=[Message.user("Give a long answer.")])

FAULTS: list[tuple[Fault, type[LessonError] | None, type[LessonError] | None]] = [
    # the fault, what a stream makes of it, what a whole answer makes of it (None: a good answer)
    (Fault("status", status=503), APIError, APIError),
    (Fault("status", status=429, retry_after=3), APIError, APIError),
    (Fault("status", status=529), APIError, APIError),
    (Fault("error_event", events=5), APIError, APIError),
    (Fault("cut_events", events=4), IncompleteStream, None),
    (Fault("cut_bytes", bytes=700), IncompleteStream, IncompleteStream),
    (Fault("reset", bytes=700), TransportError, TransportError),
    (Fault("hang", bytes=700), TransportTimeout, TransportTimeout),
    (Fault("content_type"), NotAStream, None),
    (Fault("html", status=502), APIError, APIError),
    (Fault("html", status=200), NotAStream, NotAStream),
    (Fault("json"), NotAStream, None),
    (Fault("slow", seconds=0.001), None, None),
    (Fault("chunks", bytes=100), None, None),  # reads of one byte: test_model.py
]


def test_a_look_at_an_unknown_path_is_no_numbered_request() -> None:
    sim = Simulator(faults=[Fault("status", status=529, at=1)])
    assert sim.handle(SimRequest("GET", "/", {}, b"")).status == 404
    path, headers, body = second_request("openai-chat")
    assert [send(sim, path, headers, body).status for _ in range(2)] == [529, 200]


def wire(name: str, url: str | None = None) -> Any:
    base = f"{url}/v1" if url and name.startswith("openai") else url
    return WIRES[name](MODELS[name], api_key="k", **({"base_url": base} if base else {}))


def outcome(client: Client, stream: bool) -> Response | LessonError:
    try:
        if not stream:
            return client.generate(REQUEST)
        with closing(client.stream(REQUEST)) as events:
            *_, last = events
            return last.response  # type: ignore[union-attr]
    except LessonError as error:
        return error


async def later(client: AsyncClient, stream: bool) -> Response | LessonError:
    try:
        if not stream:
            return await client.generate(REQUEST)
        events = [event async for event in client.stream(REQUEST)]
        return events[-1].response  # type: ignore[union-attr]
    except LessonError as error:
        return error


def right(fault: Fault, found: Response | LessonError, expected: type[LessonError] | None) -> None:
    if expected is None:
        assert isinstance(found, Response)
        assert found.text.endswith("the answer is long.")
        return
    assert type(found) is expected
    if isinstance(found, APIError) and fault.kind == "status":
        assert (found.status, found.retryable, found.retry_after) == (fault.status, True, fault.retry_after)
    if isinstance(found, APIError) and fault.kind == "error_event":
        assert found.status in (200, fault.status)


def test_the_table_has_every_kind() -> None:
    assert {fault.kind for fault, _, _ in FAULTS} == set(KINDS)


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize(("fault", "streamed", "whole"), FAULTS, ids=[f"{f.kind}-{f.status}" for f, _, _ in FAULTS])
def test_each_fault_in_process(name: str, fault: Fault, streamed: Any, whole: Any) -> None:
    slept: list[float] = []
    for stream, expected in ((True, streamed), (False, whole)):
        sim = Simulator(faults=[fault])
        with Client(wire(name), transport=SimTransport(sim, sleep=slept.append)) as client:
            right(fault, outcome(client, stream), expected)

        async def once(stream: bool = stream) -> Response | LessonError:
            async with AsyncClient(wire(name), transport=SimTransport(Simulator(faults=[fault]))) as client:
                return await later(client, stream)

        right(fault, asyncio.run(once()), expected)
    assert bool(slept) is (fault.kind == "slow")


@pytest.mark.parametrize("name", WIRES)
def test_each_fault_on_a_real_socket(name: str) -> None:
    server = pytest.importorskip("lessonlib.sim.server")
    sim = Simulator()
    with server.running(sim) as url, Client(wire(name, url), timeout=Timeouts(read=0.3, idle=0.3)) as client:
        for fault, streamed, whole in FAULTS:
            sim.faults[:] = [fault]
            right(fault, outcome(client, True), streamed)
            found = outcome(client, False)
            if fault.kind in ("cut_bytes", "reset", "hang"):
                assert isinstance(found, (IncompleteStream, TransportError))
            else:
                right(fault, found, whole)


def test_a_fault_at_a_request_or_at_a_cue_leaves_the_others_alone() -> None:
    sim = Simulator(faults=[Fault("status", status=529, at=1), Fault("status", status=429, retry_after=3, at=2),
                            Fault("status", status=500, cue="Lisbon")])  # fmt: skip
    waits: list[float] = []
    client = Client(wire("anthropic-messages"), transport=SimTransport(sim))
    assert Retry(client, sleep=waits.append).generate(REQUEST).text
    assert waits[1] == 3
    assert len(sim.requests) == 3
    with pytest.raises(APIError):
        client.generate(Request(messages=[Message.user("How is LISBON?")]))
    assert client.generate(Request(messages=[Message.user("How is Lima?")])).text


def test_several_faults_of_one_request() -> None:
    sim = Simulator(faults=[Fault("chunks", bytes=3), Fault("slow", seconds=1), Fault("cut_events", events=6)])
    slept: list[float] = []
    with Client(wire("openai-chat"), transport=SimTransport(sim, sleep=slept.append)) as client:
        found = outcome(client, True)
    assert type(found) is IncompleteStream
    assert slept == [1] * 6


def test_quota_is_the_429_that_no_waiting_lifts() -> None:
    fault = Fault("status", status=429, type="insufficient_quota", code="insufficient_quota")
    with Client(wire("openai-responses"), transport=SimTransport(Simulator(faults=[fault]))) as client:
        found = outcome(client, False)
    assert isinstance(found, APIError)
    assert (found.type, found.code, found.retryable) == ("insufficient_quota", "insufficient_quota", False)


# ---------------------------------------------------------------- as they are written

GOOD = {
    "status=529@1": Fault("status", status=529, at=1),
    "status=429@2,retry_after=3": Fault("status", status=429, at=2, retry_after=3.0),
    "status=429,type=insufficient_quota,code=insufficient_quota": Fault(
        "status", status=429, type="insufficient_quota", code="insufficient_quota"
    ),
    "cut_events=5": Fault("cut_events", events=5),
    "cut_events": Fault("cut_events"),
    " reset = 1 ".replace(" ", ""): Fault("reset", bytes=1),
    "slow=0.5": Fault("slow", seconds=0.5),
    "chunks=1@3": Fault("chunks", bytes=1, at=3),
    "json@2": Fault("json", at=2),
    "content_type=text/html": Fault("content_type", text="text/html"),
    "error_event=2,status=529,cue=Lima": Fault("error_event", events=2, status=529, cue="Lima"),
}
BAD = {
    "": "cannot read the fault",
    "@2": "cannot read the fault",
    "status=503 @ 2": "cannot read the fault",
    "explode": "unknown fault 'explode'; the kinds are status",
    "status=abc": "status takes a number, not 'abc'",
    "status=200": "status 200 is no HTTP error",
    "status=99999": "no HTTP error",
    "json=3": "json takes no value",
    "chunks=0": "must be 1 or more",
    "cut_bytes=-1": "must be 0 or more",
    "slow=nan": "must be 0 or more",
    "slow=inf": "must be 0 or more",
    "status=503@0": "at of a status fault is 0",
    "status=503,retry_after": "does not belong to status; it takes status=, retry_after=",
    "cut_events=5,bytes=2": "'bytes=2' does not belong to cut_events",
}


@pytest.mark.parametrize("text", GOOD)
def test_a_fault_is_read_from_the_command_line(text: str) -> None:
    assert parse(text) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_a_wrong_fault_is_explained(text: str) -> None:
    with pytest.raises(ValueError, match=BAD[text]):
        parse(text)


def test_a_fault_of_no_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown fault"):
        Fault("explode")
