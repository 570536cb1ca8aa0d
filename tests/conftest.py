"""What every test gets: no network but this machine, no API keys, and a local server to ask for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from pytest_socket import socket_allow_hosts

from tests.servers import Handler, Server

LOOPBACK = ["127.0.0.1", "::1", "localhost"]


def pytest_runtest_setup() -> None:
    """A connection to anywhere but this machine raises SocketConnectBlockedError."""
    socket_allow_hosts(LOOPBACK, allow_unix_socket=True)


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, base URLs and proxies of whoever runs the tests must not change what they show."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_BASE_URL", "_PROXY")):
            monkeypatch.delenv(name)


@pytest.fixture
def serve() -> Iterator[Callable[[Handler], Server]]:
    """Starts a local HTTP server that answers with the given function; all are stopped when the test ends."""
    servers: list[Server] = []

    def start(handler: Handler) -> Server:
        servers.append(Server(handler))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
