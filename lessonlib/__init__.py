"""lessonlib: one client for five LLM wire formats, and all that is between the bytes and the answer open to look at.

    from lessonlib import AnthropicMessages, Client, Message, Request

    with Client(AnthropicMessages(model="...")) as client:
        print(client.generate(Request(messages=[Message.user("Hello")])).text)

This file holds no code of its own, only the public names. Each is imported from its module when it is first used (PEP 562),
so that `import lessonlib` costs next to nothing and a program loads only what it needs: a test measures it. What is not
listed here (`lessonlib.tape`, `lessonlib.sim`, `lessonlib.lab`, ...) is public under its module's own name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lessonlib.client import AsyncClient, Client
    from lessonlib.errors import (
        APIError,
        IncompleteStream,
        LessonError,
        MaxSteps,
        NotAStream,
        ProtocolError,
        TransportError,
        is_retryable,
    )
    from lessonlib.fallback import Fallback
    from lessonlib.flow import collect
    from lessonlib.retry import Retry
    from lessonlib.tool_loop import arun_tools, run_tools
    from lessonlib.tools import tool
    from lessonlib.types import (
        ArgumentsDelta,
        Done,
        Image,
        Message,
        Opaque,
        PartDone,
        Reasoning,
        ReasoningDelta,
        Request,
        Response,
        StopReason,
        Text,
        TextDelta,
        Tool,
        ToolCall,
        ToolResult,
        Usage,
    )
    from lessonlib.wire import (
        WIRES,
        AnthropicMessages,
        GeminiGenerateContent,
        GeminiInteractions,
        OpenAIChat,
        OpenAIResponses,
    )

__version__ = "0.1.0"

__all__ = [
    "WIRES",
    "APIError",
    "AnthropicMessages",
    "ArgumentsDelta",
    "AsyncClient",
    "Client",
    "Done",
    "Fallback",
    "GeminiGenerateContent",
    "GeminiInteractions",
    "Image",
    "IncompleteStream",
    "LessonError",
    "MaxSteps",
    "Message",
    "NotAStream",
    "Opaque",
    "OpenAIChat",
    "OpenAIResponses",
    "PartDone",
    "ProtocolError",
    "Reasoning",
    "ReasoningDelta",
    "Request",
    "Response",
    "Retry",
    "StopReason",
    "Text",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolResult",
    "TransportError",
    "Usage",
    "arun_tools",
    "collect",
    "is_retryable",
    "run_tools",
    "tool",
]

_TYPES = (
    "ArgumentsDelta Done Image Message Opaque PartDone Reasoning ReasoningDelta Request Response StopReason Text TextDelta "
    "Tool ToolCall ToolResult Usage"
)
_MODULES = {
    "client": "AsyncClient Client",
    "errors": "APIError IncompleteStream LessonError MaxSteps NotAStream ProtocolError TransportError is_retryable",
    "fallback": "Fallback",
    "flow": "collect",
    "retry": "Retry",
    "tool_loop": "arun_tools run_tools",
    "tools": "tool",
    "types": _TYPES,
    "wire": "WIRES AnthropicMessages GeminiGenerateContent GeminiInteractions OpenAIChat OpenAIResponses",
}
_HOME = {name: f"lessonlib.{module}" for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
