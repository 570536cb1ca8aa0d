"""The simulator as an httpx transport: no socket, no thread, no waiting, so that it works in a browser's Python too.

    Client(AnthropicMessages(model="...", api_key="sim"), transport=SimTransport(Simulator()))

Delays are handed to `sleep` (by default nobody waits). A reset becomes httpx.ReadError, a hang httpx.ReadTimeout, so the
client meets them exactly as on a network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import httpx

from lessonlib.sim.core import Hang, Reset, SimReply, SimRequest, Simulator


class SimTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """One transport for both colours over one Simulator."""

    def __init__(
        self,
        sim: Simulator | None = None,
        *,
        sleep: Callable[[float], object] | None = None,
        async_sleep: Callable[[float], Awaitable[object]] | None = None,
    ) -> None:
        self.sim = sim or Simulator()
        self._sleep = sleep
        self._async_sleep = async_sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to a synchronous request."""
        reply = self.sim.handle(_sim_request(request, request.read()))
        return httpx.Response(reply.status, headers=reply.headers, stream=_Body(reply, self._sleep, None), request=request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to an asynchronous request."""
        reply = self.sim.handle(_sim_request(request, await request.aread()))
        return httpx.Response(
            reply.status, headers=reply.headers, stream=_Body(reply, None, self._async_sleep), request=request
        )


class _Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The reply's chunks as a body in either colour."""

    def __init__(
        self,
        reply: SimReply,
        sleep: Callable[[float], object] | None,
        async_sleep: Callable[[float], Awaitable[object]] | None,
    ) -> None:
        self._reply, self._sleep, self._async_sleep = reply, sleep, async_sleep

    def __iter__(self) -> Iterator[bytes]:
        try:
            for delay, data in self._reply.chunks:
                if delay and self._sleep is not None:
                    self._sleep(delay)
                yield data
        except (Reset, Hang) as fault:
            raise _as_httpx(fault) from None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for delay, data in self._reply.chunks:
                if delay and self._async_sleep is not None:
                    await self._async_sleep(delay)
                yield data
        except (Reset, Hang) as fault:
            raise _as_httpx(fault) from None


def _as_httpx(fault: Exception) -> httpx.TransportError:
    if isinstance(fault, Reset):
        return httpx.ReadError("connection reset by the simulator")
    return httpx.ReadTimeout("the simulator sends nothing more")


def _sim_request(request: httpx.Request, body: bytes) -> SimRequest:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return SimRequest(request.method, request.url.raw_path.decode("ascii"), headers, body)
