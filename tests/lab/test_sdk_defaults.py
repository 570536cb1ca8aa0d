"""What the official packages retry unasked. Lesson 07 says it in words and names the versions; this measures it.

A server on the loopback address counts requests; nobody sleeps. Where a package is missing the test is skipped and says so.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lessonlib.lab import sdk_grid

pytestmark = [pytest.mark.enable_socket, pytest.mark.filterwarnings("ignore")]
LESSON = Path(__file__).parents[2] / "notebooks" / "07_errors_and_retries.ipynb"


@contextmanager
def failing(status: int, body: Any, headers: dict[str, str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything alike; the paths that were asked for."""
    asked: list[str] = []
    data = json.dumps(body).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in {
                "content-type": "application/json",
                "content-length": str(len(data)),
                **(headers or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, instead of waiting."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def ask_openai(url: str) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(api_key="offline", base_url=f"{url}/v1") as client:
        client.responses.create(model="m", input="Hello")


def ask_anthropic(url: str) -> None:
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(api_key="offline", base_url=url) as client:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hello"}])


def ask_interactions(url: str) -> None:
    genai = pytest.importorskip("google.genai")
    with genai.Client(api_key="offline", http_options=genai.types.HttpOptions(base_url=url)) as client:
        client.interactions.create(model="m", input="Hello")


def ask_generate_content(url: str) -> None:
    genai = pytest.importorskip("google.genai")
    with genai.Client(api_key="offline", http_options=genai.types.HttpOptions(base_url=url)) as client:
        client.models.generate_content(model="m", contents="Hello")


@pytest.mark.parametrize(
    ("ask", "attempts"), [(ask_openai, 3), (ask_anthropic, 3), (ask_interactions, 5), (ask_generate_content, 1)]
)
def test_how_often_a_package_asks_a_service_that_is_down(ask: Any, attempts: int, slept: list[float]) -> None:
    with failing(503, {"error": {"type": "api_error", "message": "down"}}) as (url, asked), suppress(Exception):
        ask(url)
    assert len(asked) == attempts


def test_the_openai_package_asks_again_for_a_balance_that_is_spent(slept: list[float]) -> None:
    spent = {"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "spent"}}
    with failing(429, spent) as (url, asked), suppress(Exception):
        ask_openai(url)
    assert len(asked) == 3


def test_the_anthropic_package_waits_as_long_as_it_is_told(slept: list[float]) -> None:
    with failing(429, {"type": "error", "error": {}}, {"retry-after": "600"}) as (url, _), suppress(Exception):
        ask_anthropic(url)
    assert [wait for wait in slept if wait >= 1] == [600.0, 600.0]


def test_the_lesson_names_the_versions_of_the_stored_measurements() -> None:
    """One date for all that is said of the packages: a new measurement renews the sentence as well."""
    text = LESSON.read_text(encoding="utf-8").replace("\\n", " ")
    named = {name: ".".join(number.split(".")[:2]) for name, number in sdk_grid.stored()["versions"].items()}
    assert [f"{name} {number}" for name, number in named.items() if f"{name} {number}" not in " ".join(text.split())] == []
