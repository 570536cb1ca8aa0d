"""A line to the simulator that knows what went over it: how much was sent, and whether the client hung up.

    line = Line("anthropic")
    events = line.client.stream(request)         line.async_client: the other colour
    next(events)
    line.sent, line.is_open                      network reads so far, and whether the client still listens

A real service sees the same on its socket: it writes while the client reads, and stops when the connection closes. The
simulator writes one event per read.

What this file does not do: no socket and no clock. `Line` tells about the last request only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx

from lessonlib.client import AsyncClient, Client
from lessonlib.lab.course import MODELS, WIRE_OF
from lessonlib.lab.offline import KEY
from lessonlib.sim import Simulator
from lessonlib.sim.transport import SimTransport
from lessonlib.wire import WIRES, WireFormat


class Line(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport for both colours. sent: network reads of the last answer. is_open: its connection has not been closed."""

    def __init__(self, vendor: str, sim: Simulator | None = None) -> None:
        self._vendor = vendor
        self._service = SimTransport(sim)
        self.sent = 0
        self.is_open = False

    @property
    def client(self) -> Client:
        """A new client at the other end of the line."""
        return Client(self._wire(), transport=self)

    @property
    def async_client(self) -> AsyncClient:
        """The same in the other colour."""
        return AsyncClient(self._wire(), transport=self)

    def _wire(self) -> WireFormat:
        name = WIRE_OF.get(self._vendor, self._vendor)
        return WIRES[name](MODELS[name], api_key=KEY)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Passes a request on to the simulator."""
        return self._opened(self._service.handle_request(request), request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The same in the other colour."""
        return self._opened(await self._service.handle_async_request(request), request)

    def _opened(self, answer: httpx.Response, request: httpx.Request) -> httpx.Response:
        self.sent, self.is_open = 0, True
        return httpx.Response(answer.status_code, headers=answer.headers, stream=_Body(answer, self), request=request)


class _Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The simulator's body; the line is told what happens to it."""

    def __init__(self, answer: httpx.Response, line: Line) -> None:
        self._answer, self._line = answer, line

    def __iter__(self) -> Iterator[bytes]:
        for read in self._answer.iter_raw():
            self._line.sent += 1
            yield read

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for read in self._answer.aiter_raw():
            self._line.sent += 1
            yield read

    def close(self) -> None:
        self._answer.close()
        self._line.is_open = False

    async def aclose(self) -> None:
        await self._answer.aclose()
        self._line.is_open = False
