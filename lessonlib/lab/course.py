"""What the whole course shares: which API each vendor's lessons use, and the model names, all from one dated place."""

from __future__ import annotations

from lessonlib import capabilities

WIRE_OF = {"openai": "openai-responses", "anthropic": "anthropic-messages", "gemini": "gemini-interactions"}
"""The present API of each vendor."""

MODELS = {wire: capabilities.default_model(wire) for wire in (*WIRE_OF.values(), "openai-chat", "gemini-generate-content")}
"""The model of each wire format's lessons; the names and their date are in data/models.json. Lessons never write one."""
