"""The simulator's frontends, one per wire format, and the way from a path to its frontend."""

from __future__ import annotations

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


def route(method: str, path: str) -> Front | None:
    """The frontend that serves this path, None if nobody does."""
    return next((front for front in FRONTS if front.serves(method, path)), None)
