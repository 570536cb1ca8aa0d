"""The simulator's frontends, one per wire format, and the way from a path to its frontend."""

from __future__ import annotations

from collections.abc import Mapping

from lessonlib.sim.front.anthropic_messages import AnthropicMessagesFront
from lessonlib.sim.front.base import Front
from lessonlib.sim.front.gemini_generate_content import GeminiGenerateContentFront
from lessonlib.sim.front.gemini_interactions import GeminiInteractionsFront
from lessonlib.sim.front.openai_chat import OpenAIChatFront
from lessonlib.sim.front.openai_responses import OpenAIResponsesFront

FRONTS: tuple[Front, ...] = (
    OpenAIResponsesFront(),
    AnthropicMessagesFront(),
    GeminiInteractionsFront(),
    OpenAIChatFront(),
    GeminiGenerateContentFront(),
)


def route(method: str, path: str, headers: Mapping[str, str]) -> tuple[Front, str, str] | None:
    """(frontend, operation, target) of a request, None if no vendor has that path."""
    for front in FRONTS:
        found = front.find(method, path, headers)
        if found is not None:
            return front, *found
    return None
