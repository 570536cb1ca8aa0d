"""A request's body, read and judged without being answered: for checks of what a program would send.

    found = read("anthropic-messages", {"model": "claude-opus-5-5", "max_tokens": 99, "messages": []})
    found.message if isinstance(found, Refusal) else found.messages

What this file does not do: no headers and no paths. The key counts as sent, and nothing of an earlier request is remembered.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from lessonlib.sim.ask import Ask
from lessonlib.sim.core import SimRequest, Simulator
from lessonlib.sim.front import FRONTS
from lessonlib.sim.refusal import Refusal
from lessonlib.types import JSON

HEADERS = {"authorization": "Bearer any", "x-api-key": "any", "x-goog-api-key": "any", "anthropic-version": "2026-10-21"}
"""What each vendor wants to see beside the body."""


def read(wire: str, body: JSON, *, model: str = "", without: Collection[str] = ()) -> Ask | Refusal:
    """What the request asks for, or the first rule's refusal. model: for generateContent, which names it in the path.
    without: names of rules that are not asked. A body that is no JSON (a set in it, say) is a TypeError or ValueError."""
    front = next(front for front in FRONTS if front.wire == wire)
    request = SimRequest("POST", "/", HEADERS, json.dumps(body).encode("ascii"))
    context = Simulator().context(front, "answer", model, request)
    refusal = front.book.first_refusal(context, without=without)
    return refusal if refusal is not None else front.read(context)
