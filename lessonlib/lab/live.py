"""The one switch to a real service, for one vendor and one notebook session. Off by default.

    live = go_live("anthropic", on=False)      says what would go out and what it may cost; nothing changes
    live = go_live("anthropic", on=True)       from now on client("anthropic") and ask("anthropic", ...) ask the service
    live.price(request)                        about what a request would cost, before it is sent
    live.spent                                 what was spent, as far as it is known
    go_offline()                               back to the simulator

The key comes from the vendor's environment variable, or is asked for without echo; it is held as a Secret and stands in no
variable of the notebook. Two caps stop the session: an amount of money (a request whose price is not known is refused) and
a number of requests. A cell that makes its own simulator stays offline, and so do `send` and `reads`.

With `tape="captures/monday"` every exchange is written down, keys removed, for `explorer("captures/monday/001")`.

What this file does not do: stored outputs are always the offline ones; the author's tool never switches anything on.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Generator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from lessonlib.budget import Metered
from lessonlib.client import Client
from lessonlib.errors import LessonError, SpendLimit
from lessonlib.flow import run_stream
from lessonlib.lab.course import MODELS, WIRE_OF
from lessonlib.lab.offline import live_clients
from lessonlib.ledger import Ledger
from lessonlib.tape import Recorder
from lessonlib.types import Event, Request, Response
from lessonlib.wire import WIRES, WireFormat
from lessonlib.wire.base import first_env

if TYPE_CHECKING:
    from httpx import BaseTransport

LIMIT = "0.50"
"""How much a session may spend unless told otherwise, in the currency of the price list (US dollars)."""

REQUESTS = 20
"""How many requests a session may send unless told otherwise."""

SAY_YES = "go_live({vendor!r}, on=True)"


_sessions: dict[str, Session] = {}
"""The live sessions of this kernel, by wire format."""


class NoKey(LessonError):
    """There is no key in the environment, and nobody can be asked for one."""


class Session:
    """A live session of one vendor. Shown as text it says what it does; the key is nowhere in it."""

    def __init__(
        self,
        wire: WireFormat,
        limit: Decimal,
        requests: int,
        transport: BaseTransport | None = None,
        say: Callable[[str], object] = print,
    ) -> None:
        self.wire, self.limit, self.requests = wire, limit, requests
        self.ledger = Ledger()
        self.sent = 0
        self._say = say
        self._client = Client(wire, transport=transport)
        self._metered = Metered(self._client, self.ledger, limit)

    @property
    def spent(self) -> Decimal:
        """What was spent so far, as far as prices are known."""
        return self.ledger.cost

    def price(self, request: Request) -> Decimal | None:
        """About the most that a request may cost: all of its input fresh, the longest answer. None: not known."""
        return self._metered.price(request)

    def generate(self, request: Request) -> Response:
        """One request to the service, within the caps."""
        self._count()
        try:
            return self._metered.generate(request)
        finally:
            self._tell()

    def stream(self, request: Request) -> Generator[Event, None, None]:
        """The same as a stream."""
        self._count()
        try:
            with closing(run_stream(self._metered.flow(request))) as events:
                yield from events
        finally:
            self._tell()

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def _count(self) -> None:
        if self.sent >= self.requests:
            words = f"this session has sent {self.sent} of {self.requests} requests; go_live again for more"
            raise SpendLimit(words, spent=self.spent, limit=self.limit)
        self.sent += 1

    def _tell(self) -> None:
        currency = self.ledger.prices.currency
        self._say(f"live: request {self.sent} of {self.requests}, {self.spent:.4f} of {self.limit} {currency} spent")

    def __repr__(self) -> str:
        name, currency = self.wire.name, self.ledger.prices.currency
        return (
            f"LIVE: {name} asks {self.wire.base_url} and costs money, at most {self.limit} {currency} and {self.requests} "
            f"requests; {self.sent} sent so far. client() and ask() of this vendor go there until go_offline()."
        )


class LiveClient(Client):
    """A Client whose requests go through a session's caps."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.wire)
        self._session = session

    def generate(self, request: Request) -> Response:
        return self._session.generate(request)

    def stream(self, request: Request) -> Generator[Event, None, None]:
        return self._session.stream(request)


class Off:
    """What `go_live(..., on=False)` gives: nothing is live, and this says what would be."""

    def __init__(self, vendor: str, limit: Decimal, requests: int) -> None:
        self._vendor, self._limit, self._requests = vendor, limit, requests

    def __repr__(self) -> str:
        return (
            f"Offline: {self._vendor} is answered by the simulator and costs nothing.\n"
            f"{SAY_YES.format(vendor=self._vendor)} would send client() and ask() of this notebook to the real service,\n"
            f"for at most {self._limit} USD and {self._requests} requests, with your own key."
        )


def go_live(
    vendor: str,
    on: bool = False,
    *,
    limit: str | int | Decimal = LIMIT,
    requests: int = REQUESTS,
    tape: str | Path | None = None,
    transport: BaseTransport | None = None,
    ask_key: Callable[[str], str] = getpass.getpass,
    say: Callable[[str], object] = print,
) -> Session | Off:
    """Switches one vendor ("openai", "anthropic", "gemini", or a wire format's name) to its real service, if `on` is True.

    limit: amount of money, as text. requests: how many at most. tape: a folder for what is sent and received. transport,
    ask_key, say: for tests. Raises NoKey without a key.
    """
    if isinstance(limit, float):
        raise TypeError('a limit is an amount of money: write it as text, limit="0.50"')
    name, amount = WIRE_OF.get(vendor, vendor), Decimal(limit)
    if name not in WIRES:
        raise ValueError(f"there is no vendor or wire format {vendor!r}; there are {', '.join((*WIRE_OF, *WIRES))}")
    if not on:
        return Off(vendor, amount, requests)
    recorder = Recorder(tape, transport) if tape is not None else transport
    session = Session(WIRES[name](MODELS[name], api_key=_key(name, ask_key)), amount, requests, recorder, say)
    go_offline(vendor)
    _sessions[name] = session
    live_clients[name] = lambda: LiveClient(session)
    return session


def go_offline(vendor: str | None = None) -> None:
    """Ends the live session of one vendor, or all of them."""
    for name in [WIRE_OF.get(vendor, vendor)] if vendor is not None else list(_sessions):
        live_clients.pop(name, None)
        if (session := _sessions.pop(name, None)) is not None:
            session.close()


def _key(name: str, ask_key: Callable[[str], str]) -> str:
    variables = WIRES[name].key_variables
    found = first_env(*variables)
    if found is not None:
        return found
    try:
        given = ask_key(f"API key for {name} (it is not shown; or set {variables[0]}): ").strip()
    except Exception as error:  # a kernel without somebody to ask raises its own kind
        raise NoKey(f"no key: set the environment variable {variables[0]} before you start the notebook") from error
    if not given:
        raise NoKey(f"no key was given; {variables[0]} is not set either. Everything stays offline")
    return given
