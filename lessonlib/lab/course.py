"""What the whole course shares: which API each vendor's lessons use, and the model names, all from one dated place."""

from __future__ import annotations

WIRE_OF = {"openai": "openai-responses", "anthropic": "anthropic-messages", "gemini": "gemini-interactions"}
"""The present API of each vendor."""

MODELS = {
    "openai-responses": "gpt-6-astra",
    "anthropic-messages": "claude-opus-5-5",
    "gemini-interactions": "gemini-3.8-flash",
    "openai-chat": "gpt-6-astra",
    "gemini-generate-content": "gemini-3.8-flash",
}
"""The model of each wire format's lessons, as of November 2026. Lessons never write a model's name themselves."""
