"""What both of Google's APIs refuse; `interactions.py` and `generate_content.py` add what only one of them does.

Status and codes are Google's, and so are the few fixed phrases by which people look an error up; the rest of a
message is our own words. `type` of a refusal is the Interactions code in snake_case (`invalid_request`);
generateContent's frontend turns the status into its google.rpc word (`INVALID_ARGUMENT`). The source of a rule is a
section of docs/wire/gemini-interactions.md or gemini-generate-content.md, and, where it stands in neither, a public
report or the official package's own description.
"""

from __future__ import annotations

import re
from typing import Any

from lessonlib.sim.refusal import ALWAYS, NAMED, WINDOW, Context, Refusal, RuleBook, models_hint
from lessonlib.sim.shapes import brackets, kind_of, shown
from lessonlib.types import JSON

INTERACTIONS, GENERATE = "gemini-interactions", "gemini-generate-content"
BOOK = RuleBook(INTERACTIONS, GENERATE)
DOC = "docs/wire/gemini-interactions.md"
GENERATE_DOC = "docs/wire/gemini-generate-content.md"

THOUGHT = "gemini thought"
"""The kind under which thought signatures are signed."""
BAD_KEY = "API_KEY_INVALID"


def refused(message: str, kind: str = "invalid_request", status: int = 400, code: str | None = None) -> Refusal:
    """A refusal in Google's form. `code`: the reason in the error's details, where there is one."""
    return Refusal(status, kind, message, code)


@BOOK.rule(f"{DOC} 1; {GENERATE_DOC} 1, 8", on=ALWAYS)
def goog_key_present(c: Context) -> Refusal | None:
    """The key stands in `x-goog-api-key` (or in the query as `key`). A wrong one is a 400, not a 401."""
    query = re.search(r"[?&]key=([^&]+)", c.path)
    key = c.headers.get("x-goog-api-key", "").strip() or (query[1] if query else "")
    if not key and c.wire == INTERACTIONS:
        return refused("No API key: send x-goog-api-key.", "authentication", 401)
    if not key:
        return refused("Method doesn't allow unregistered callers: send x-goog-api-key.", "permission_denied", 403)
    if c.sim.keys is not None and key not in c.sim.keys:
        return refused("API key not valid. Please pass a valid API key.", code=BAD_KEY)
    return None


@BOOK.rule(f"{DOC} 6")
def goog_request_not_too_large(c: Context) -> Refusal | None:
    """A request that is too large is refused before it is read."""
    if c.size > c.sim.max_body:
        return refused(f"Request payload size exceeds the limit: {c.sim.max_body} bytes.", "invalid_request", 413)
    return None


@BOOK.rule(f"{DOC} 6")
def goog_body_is_json(c: Context) -> Refusal | None:
    """The body is one JSON object."""
    return refused(f"Invalid JSON payload received: {c.broken}.") if c.broken else None


@BOOK.rule(f"{DOC} 1.1; the types of the package google-genai")
def goog_fields_have_their_types(c: Context) -> Refusal | None:
    """Every field has its JSON type, at every level."""
    problem = c.problem("type")
    if problem is None:
        return None
    return refused(
        f"Invalid value at '{brackets(problem.path)}': expected {problem.expected}, got {kind_of(problem.value)}."
    )


@BOOK.rule(f"{DOC} 1.1; the types of the package google-genai")
def goog_words_known(c: Context) -> Refusal | None:
    """A field that takes a few words takes only those."""
    problem = c.problem("word")
    if problem is None:
        return None
    return refused(f"Invalid value at '{brackets(problem.path)}': '{shown(problem.value)}' is none of {problem.expected}.")


@BOOK.rule(f"{DOC} 1.1; {GENERATE_DOC} 1; simonw/llm-gemini#49")
def goog_fields_known(c: Context) -> Refusal | None:
    """A field that the API does not know is refused, at every level; for other places' names the message says the place."""
    problem = c.problem("field")
    if problem is None:
        return None
    where = brackets(problem.path)
    if c.wire == INTERACTIONS:
        hint = f" It is {ELSEWHERE[where]}." if where in ELSEWHERE else ""
        return refused(f"Unknown parameter '{shown(where)}'.{hint}", "parameter_unknown")
    at = brackets(problem.path[:-1])
    place = f" at '{at}'" if at else ""
    hint = f" Here it is {OTHER_NAMES[problem.name]}." if problem.name in OTHER_NAMES else ""
    return refused(f'Invalid JSON payload received. Unknown name "{shown(problem.name)}"{place}: Cannot find field.{hint}')


ELSEWHERE = {"tool_choice": "generation_config.tool_choice", "max_output_tokens": "generation_config.max_output_tokens",
             "temperature": "generation_config.temperature", "stop_sequences": "generation_config.stop_sequences",
             "thinking_level": "generation_config.thinking_level", "contents": "input",
             "systemInstruction": "system_instruction", "generationConfig": "generation_config", "messages": "input",
             "response_mime_type": "response_format.mime_type", "instructions": "system_instruction",
             "previous_response_id": "previous_interaction_id"}  # fmt: skip
OTHER_NAMES = {"messages": "contents", "input": "contents", "system": "systemInstruction", "content": "parts",
               "max_tokens": "generationConfig.maxOutputTokens", "stop": "generationConfig.stopSequences",
               "tool_choice": "toolConfig.functionCallingConfig"}  # fmt: skip


@BOOK.rule(f"{DOC} 6; {GENERATE_DOC} 1", on=NAMED)
def goog_model_exists(c: Context) -> Refusal | None:
    """The model exists: `model` in the body of Interactions, the path of generateContent."""
    if c.model and c.able.provider != "gemini":
        text = f"models/{shown(c.model)} is not found for this API version, or is not supported for this method."
        return refused(f"{text} {models_hint(c.model, 'gemini')}", "model_not_found", 404)
    return None


@BOOK.rule(f"{DOC} 6; lessonlib/data/models.json", on=WINDOW)
def goog_window_not_exceeded(c: Context) -> Refusal | None:
    """The prompt fits the model's window."""
    if c.window is not None and c.tokens > c.window:
        text = f"The input token count ({c.tokens}) exceeds the maximum number of tokens allowed ({c.window})."
        return refused(text)
    return None


MOST = 2**31 - 1
"""The largest number in a field of 32 bits, which output caps are."""


def cap_problem(cap: Any) -> Refusal | None:
    """What is wrong with an output cap."""
    if cap is None or 1 <= cap <= MOST:
        return None
    return refused(f"max_output_tokens must be positive and at most {MOST}, got {cap}.")


def name_problem(name: Any) -> str | None:
    """Why a function's name is not legal, or None. FunctionDeclaration.name in the package google-genai."""
    if not isinstance(name, str) or not name:
        return "is required"
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", name):
        return "must start with a letter or an underscore and have at most 128 letters, digits, _ . : -"
    return None


def first(value: JSON, *names: str) -> Any:
    """The field under its camelCase or its snake_case name: generateContent reads both."""
    return next((value[name] for name in names if value.get(name) is not None), None)
