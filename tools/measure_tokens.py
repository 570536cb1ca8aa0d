"""Count recorded requests and compare with what was billed for them: the table of docs/tokens.md.

    python tools/measure_tokens.py FOLDER            the table, as Markdown, on standard output
    python tools/measure_tokens.py FOLDER --each     one line for each request instead

FOLDER holds recordings as <api>/<name>.meta.json (with `request_body`, `url`, `dialect`) beside <name>.sse or <name>.json. A
request is left out where nobody outside could count it: tools that the service runs, a conversation that it keeps, pictures.

What this file does not do: it is no part of the library, and it reads no network. The requests are read by the simulator's
frontends, which read a vendor's JSON without the client's encoders.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lessonlib.errors import LessonError
from lessonlib.sim import Simulator
from lessonlib.sim.front import FRONTS
from lessonlib.sim.refusal import Context
from lessonlib.sse import SSEParser
from lessonlib.tokens import TokenCount, count_tokens
from lessonlib.types import Reasoning, Request, Response
from lessonlib.wire import WIRES

FOLDERS = {"gemini-generatecontent": "gemini-generate-content"}
OWN = {
    "openai-responses": "api.openai.com",
    "openai-chat": "api.openai.com",
    "anthropic-messages": "api.anthropic.com",
    "gemini-interactions": "generativelanguage.googleapis.com",
    "gemini-generate-content": "generativelanguage.googleapis.com",
}


@dataclass(frozen=True)
class Row:
    """One recorded request: who answered, what was counted, what was billed."""

    group: str
    name: str
    model: str
    count: TokenCount
    billed: int
    request: Request

    @property
    def error(self) -> float:
        """How far the count is off, in per cent of the bill."""
        return 100 * (self.count.tokens - self.billed) / self.billed


def rows(folder: Path) -> Iterator[Row]:
    """All recordings that can be counted."""
    for meta in sorted(folder.glob("*/*.meta.json")):
        recorded = json.loads(meta.read_text(encoding="utf-8"))
        body = recorded.get("request_body")
        wire = FOLDERS.get(meta.parent.name, meta.parent.name)
        if not isinstance(body, dict) or wire not in WIRES or _hidden(body):
            continue
        response = _answer(wire, meta)
        request = _request(wire, body, response)
        if response is None or request is None or response.usage is None or not response.usage.input_tokens:
            continue
        model = body.get("model") or response.model
        counted = count_tokens(request, model, wire)
        if not counted.uncounted:
            name = meta.name.removesuffix(".meta.json")
            yield Row(_group(wire, recorded, model), name, model, counted, response.usage.input_tokens, request)


def _hidden(body: dict[str, Any]) -> bool:
    """Whether the service adds something that the request does not show."""
    if body.get("previous_response_id") or body.get("previous_interaction_id") or body.get("mcp_servers"):
        return True
    client = ("function", "custom")
    for tool in body.get("tools") or []:
        kind = tool.get("type")
        plain = "functionDeclarations" in tool or "function_declarations" in tool or "input_schema" in tool
        if not plain and kind not in client:
            return True
        if set(tool) - {"functionDeclarations", "function_declarations"} and "functionDeclarations" in tool:
            return True
    return bool(body.get("functions"))


def _answer(wire: str, meta: Path) -> Response | None:
    stem = meta.name.removesuffix(".meta.json")
    found = WIRES[wire]("model", api_key="none")
    try:
        if (stream := meta.with_name(f"{stem}.sse")).exists():
            parser, decoder = SSEParser(), found.decoder()
            for event in [*parser.feed(stream.read_bytes()), *parser.close()]:
                decoder.feed(event)
            if not decoder.done:
                decoder.close()
            return decoder.result()
        return found.decode(json.loads(meta.with_name(f"{stem}.json").read_text(encoding="utf-8")))
    except (LessonError, OSError, ValueError):
        return None


def _request(wire: str, body: dict[str, Any], response: Response | None) -> Request | None:
    """The request in unified types, as the simulator reads it. System items of Responses become the system prompt."""
    body = {"max_tokens": 1, **body} if wire == "anthropic-messages" else dict(body)
    if wire == "openai-responses" and isinstance(body.get("input"), list):
        said = [item for item in body["input"] if item.get("role") in ("system", "developer")]
        texts = [body.get("instructions") or "", *(_text(item.get("content")) for item in said)]
        body["input"] = [item for item in body["input"] if item not in said]
        body["instructions"] = "\n".join(text for text in texts if text) or None
    front = next(each for each in FRONTS if each.wire == wire)
    model = body.get("model") or (response.model if response is not None else "")
    try:
        ask = front.read(Context(wire, "answer", "/", {}, body, 0, Simulator(), model))
        if any(isinstance(part, Reasoning) for message in ask.messages for part in message.parts):
            return None
        return Request(messages=ask.messages, system=ask.system or None, tools=ask.tools, output_schema=ask.output_schema)
    except (ValueError, KeyError, TypeError):
        return None


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def _group(wire: str, recorded: dict[str, Any], model: str) -> str:
    own = OWN[wire] in (recorded.get("url") or "") or recorded.get("dialect") in ("openai", "anthropic", "gemini")
    if wire.startswith("openai") and own and model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-")):
        return f"OpenAI, {wire}"
    if not wire.startswith("openai"):
        return f"{'Anthropic' if wire.startswith('anthropic') else 'Gemini'}, {wire}"
    return f"others over {wire}"


def table(found: list[Row]) -> str:
    """One line for each group and for each kind of request in it."""
    lines = [
        "| who answered, by which API | requests | median error | worst | within 2 % or 3 tokens |",
        "|---|---|---|---|---|",
    ]
    for group in sorted({row.group for row in found}):
        for kind, chosen in (("text", False), ("with tools", True)):
            mine = [row for row in found if row.group == group and bool(row.request.tools) is chosen]
            if not mine:
                continue
            errors = sorted((row.error for row in mine), key=abs)
            good = sum(abs(row.count.tokens - row.billed) <= max(3, 0.02 * row.billed) for row in mine)
            lines.append(
                f"| {group}, {kind} | {len(mine)} | {statistics.median(errors):+.1f} % | {errors[-1]:+.1f} % | {good} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Print the table, or each request."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = list(rows(Path(sys.argv[1])))
    if "--each" in sys.argv:
        for row in found:
            print(
                f"{row.group:40} {row.name[-48:]:50} {row.model:28} {row.count.tokens:6} {row.billed:6} {row.error:+7.1f} %"
            )
    else:
        print(table(found))


if __name__ == "__main__":
    main()
