"""The services that a lesson talks to: the simulator by default, the real ones only behind a switch.

    ask("openai", request)        the raw response body of one round trip, as a lesson wants to see it
    client("anthropic")           a Client on the same simulator
    send("gemini", body)          a body written by hand, sent as it is: (status, response body)

What this file does not do: it never goes live by itself. `go_live` (live.py) is the one switch; while it is on for a vendor,
`client` and `ask` go to the service, unless a call brings its own simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lessonlib.client import Client
from lessonlib.lab.course import MODELS, WIRE_OF
from lessonlib.sim import Simulator
from lessonlib.sim.transport import SimTransport
from lessonlib.types import JSON, Message, Request
from lessonlib.wire import WIRES
from lessonlib.wire.base import read_json

if TYPE_CHECKING:
    import httpx

KEY = "offline"
"""What stands where a key would: the simulator takes any."""

live_clients: dict[str, Callable[[], Client]] = {}
"""What makes a client for each wire format that is live now; filled by live.py, and empty unless somebody asked for it."""


def client(vendor: str, sim: Simulator | None = None, *, live: bool = False, **options: Any) -> Client:
    """A client for "openai", "anthropic" or "gemini" (or a wire format's name). `options` go to the wire format; with them,
    or with a simulator, it is always an offline one. live: switch the vendor on first, as `go_live(vendor, on=True)` does,
    with its caps."""
    name = WIRE_OF.get(vendor, vendor)
    if live and name not in live_clients:
        from lessonlib.lab.live import go_live

        go_live(vendor, on=True)
    if sim is None and not options and name in live_clients:
        return live_clients[name]()
    return Client(WIRES[name](MODELS[name], api_key=KEY, **options), transport=SimTransport(sim or Simulator()))


def ask(vendor: str, request: Request, sim: Simulator | None = None) -> JSON:
    """The raw body of one answer of the simulator to `request`."""
    with client(vendor, sim) as one:
        return one.generate(request).raw


def send(vendor: str, body: JSON, sim: Simulator | None = None, **changes: Any) -> tuple[int, Any]:
    """Sends a request body written by hand, with the right address and headers: (HTTP status, parsed response body).

    changes: `headers={...}` to change single headers (None drops one).
    """
    import httpx

    encoded = client(vendor, sim).wire.encode(Request(messages=[Message.user("x")]))
    headers = {name: value for name, value in {**encoded.headers, **changes.get("headers", {})}.items() if value is not None}
    with httpx.Client(transport=SimTransport(sim or Simulator())) as http:
        answer = http.post(encoded.url, headers=headers, json=body)
    return answer.status_code, _body(answer)


def _body(answer: httpx.Response) -> Any:
    try:
        return read_json(answer.content)
    except ValueError:
        return answer.text
