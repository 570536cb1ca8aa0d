"""The five wire formats, one file each, all with the same sections in the same order.

A sixth one would be a new file here, one line in `WIRES`, and a folder of fixtures in `testdata/`.
"""

from __future__ import annotations

from lessonlib.wire.anthropic_messages import AnthropicMessages
from lessonlib.wire.base import HTTPRequest, StreamDecoder, WireFormat
from lessonlib.wire.gemini_generate_content import GeminiGenerateContent
from lessonlib.wire.gemini_interactions import GeminiInteractions
from lessonlib.wire.openai_chat import OpenAIChat
from lessonlib.wire.openai_responses import OpenAIResponses

WIRES: dict[str, type[WireFormat]] = {
    wire.name: wire for wire in (OpenAIResponses, AnthropicMessages, GeminiInteractions, OpenAIChat, GeminiGenerateContent)
}
"""Every wire format by its name."""

__all__ = [
    "WIRES",
    "AnthropicMessages",
    "GeminiGenerateContent",
    "GeminiInteractions",
    "HTTPRequest",
    "OpenAIChat",
    "OpenAIResponses",
    "StreamDecoder",
    "WireFormat",
]
