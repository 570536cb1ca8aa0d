"""What four clients do when a stream goes wrong: the official packages and this library, on the same bytes, measured.

    python -m lessonlib.lab.sdk_grid         measures (needs the extra `sdk`) and prints; `--write` stores the result
    stored()                                 the stored result: data/course/sdk_grid.json, with date and versions

Each client reads each mishap in its plain loop over events, which is what the packages' own documentation shows first, from
a server on the loopback address. The outcome is the exception's name, or None where the loop ended as if all was well.

What this file does not do: it judges no helper beyond the plain loop (some of them do check), and no vendor's service.
"""

from __future__ import annotations

import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lessonlib.lab.course import WIRE_OF
from lessonlib.lab.source import stream_of
from lessonlib.types import JSON, Message, Request

MISHAPS = {
    "cut in the text": "cut",
    "cut in a call": "cut_in_call",
    "an error event": "error_midstream",
    "an unknown event": "unknown",
    "an HTML page, status 200": "",
}
"""What happens, and the fixture in which it does; the page is none."""

MUST_FAIL = {name: name != "an unknown event" for name in MISHAPS}
"""Whether a client should say that something is wrong. An unknown event is none of its business."""

CLIENTS = {"openai": "openai", "anthropic": "anthropic", "google-genai": "gemini", "lessonlib": ""}
"""The package, and the vendor whose API it speaks; lessonlib speaks all three."""

PAGE = b"<html><head><title>Sign in</title></head><body>Please sign in to the network.</body></html>"
KEY = "offline"

Outcome = str | None
Reader = Callable[[str], None]


# ---------------------------------------------------------------- the clients


def read_openai(url: str) -> None:
    """The plain loop of the openai package."""
    import openai

    with openai.OpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as client:
        for _ in client.responses.create(model="m", input="Hello", stream=True):
            pass


def read_anthropic(url: str) -> None:
    """The plain loop of the anthropic package."""
    import anthropic

    with anthropic.Anthropic(api_key=KEY, base_url=url, max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "Hello"}]
        for _ in client.messages.create(model="m", max_tokens=100, messages=messages, stream=True):
            pass


def read_gemini(url: str) -> None:
    """The plain loop of the google-genai package."""
    from google import genai

    options = genai.types.HttpOptions(base_url=url, retry_options=genai.types.HttpRetryOptions(attempts=1))
    with genai.Client(api_key=KEY, http_options=options) as client:
        create: Any = client.interactions.create
        for _ in create(model="m", input="Hello", stream=True, automatic_continuation=False):
            pass


def read_ours(vendor: str, url: str) -> None:
    """The plain loop of this library."""
    from lessonlib.client import Client
    from lessonlib.wire import WIRES

    base = {"openai": "/v1", "anthropic": "", "gemini": ""}[vendor]
    with Client(WIRES[WIRE_OF[vendor]]("m", api_key=KEY, base_url=url + base)) as client:
        for _ in client.stream(Request(messages=[Message.user("Hello")])):
            pass


READERS: dict[str, Reader] = {"openai": read_openai, "anthropic": read_anthropic, "google-genai": read_gemini}


# ---------------------------------------------------------------- measuring


def measure() -> JSON:
    """Every client on every mishap. Raises ImportError if one of the packages is missing."""
    cells: dict[str, dict[str, Outcome]] = {}
    for mishap, case in MISHAPS.items():
        row: dict[str, Outcome] = {}
        for name, vendor in CLIENTS.items():
            if vendor:
                row[name] = outcome(READERS[name], _body(vendor, case))
            else:
                row[name] = _common(outcome(partial(read_ours, each), _body(each, case)) for each in WIRE_OF)
        cells[mishap] = row
    return {"versions": {name: version(name) for name in CLIENTS if name != "lessonlib"}, "cells": cells}


def outcome(reader: Reader, body: tuple[bytes, str]) -> Outcome:
    """The name of the exception that the loop raised, None if it ended in peace."""
    with serving(*body) as url, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the packages have to say about themselves
        try:
            reader(url)
        except ImportError:
            raise
        except Exception as error:  # whatever they raise is what is measured
            return type(error).__name__
    return None


def _common(outcomes: Iterator[Outcome]) -> Outcome:
    """Of the three wire formats; if they differ, all of them."""
    every = list(dict.fromkeys(outcomes))
    return every[0] if len(every) == 1 else ", ".join(each or "no error" for each in every)


def _body(vendor: str, case: str) -> tuple[bytes, str]:
    return (stream_of(f"{WIRE_OF[vendor]}/{case}"), "text/event-stream") if case else (PAGE, "text/html")


@contextmanager
def serving(body: bytes, content_type: str) -> Iterator[str]:
    """A server on the loopback address that answers every request with these bytes and status 200."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


# ---------------------------------------------------------------- the stored result


@cache
def stored() -> JSON:
    """What was measured, with the day and the versions."""
    file = resources.files("lessonlib").joinpath("data/course/sdk_grid.json")
    data: JSON = json.loads(file.read_text(encoding="utf-8"))
    return data


def main(arguments: list[str]) -> int:
    """Measures and prints; with --write DAY (an ISO date) stores it."""
    found = measure()
    print(json.dumps(found, indent=1))
    if arguments[:1] == ["--write"] and len(arguments) == 2:
        file = Path(__file__).resolve().parents[1] / "data" / "course" / "sdk_grid.json"
        file.write_text(json.dumps({"checked": arguments[1], **found}, indent=1) + "\n", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
