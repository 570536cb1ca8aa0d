"""What generateContent refuses, beyond what google.py has for both APIs. docs/wire/gemini-generate-content.md

Names are camelCase; the service reads snake_case as well, and so do the rules.
"""

from __future__ import annotations

import re
from typing import Any

from lessonlib.sim.refusal import Context, Refusal
from lessonlib.sim.rules.google import BOOK, GENERATE, GENERATE_DOC, THOUGHT, cap_problem, first, name_problem, refused
from lessonlib.sim.shapes import Closed, schema_problem, shown
from lessonlib.sim.signing import Verdict, check, digest
from lessonlib.types import JSON
from lessonlib.wire.base import as_dict, as_list, as_text

SKIPPED = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""Documented values that switch the check off for a history from elsewhere."""
TOKEN = "gemini continuation"

# ---------------------------------------------------------------- shapes


def _both(shape: JSON) -> Closed:
    """The fields under their camelCase and their snake_case names."""
    snake = {"".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name): value
             for name, value in shape.items()}  # fmt: skip
    return Closed({**shape, **snake})


BLOB: JSON = {"mimeType": str, "data": str, "fileUri": str, "displayName": str}
CALL = _both({"id": str, "name": str, "args": dict})
RESPONSE = _both({"id": str, "name": str, "response": dict, "parts": [dict], "scheduling": str, "willContinue": bool})
PART = _both({
    "text": str, "thought": bool, "thoughtSignature": str, "functionCall": CALL, "functionResponse": RESPONSE,
    "inlineData": _both(BLOB), "fileData": _both(BLOB), "executableCode": dict, "codeExecutionResult": dict,
    "toolCall": dict, "toolResponse": dict, "videoMetadata": dict, "mediaResolution": object, "partMetadata": dict,
})  # fmt: skip
CONTENT = Closed({"role": str, "parts": [PART]})
FUNCTION = _both({"name": str, "description": str, "parameters": dict, "parametersJsonSchema": dict, "response": dict,
                  "responseJsonSchema": object, "behavior": str})  # fmt: skip
CALLING = _both({"mode": str, "allowedFunctionNames": [str], "streamFunctionCallArguments": bool})
THINKING = _both({"includeThoughts": bool, "thinkingBudget": int, "thinkingLevel": str})
SETTINGS = _both({
    "audioTimestamp": bool, "candidateCount": int, "enableEnhancedCivicAnswers": bool, "frequencyPenalty": float,
    "imageConfig": dict, "logprobs": int, "maxOutputTokens": int, "mediaResolution": str, "presencePenalty": float,
    "responseFormat": object, "responseJsonSchema": dict, "responseLogprobs": bool, "responseMimeType": str,
    "responseModalities": [str], "responseSchema": dict, "seed": int, "speechConfig": dict, "stopSequences": [str],
    "temperature": float, "thinkingConfig": THINKING, "topK": float, "topP": float, "routingConfig": dict,
    "modelConfig": dict, "audioTranscriptionConfig": dict,
})  # fmt: skip
SHAPE = _both(
    {
        "contents": [CONTENT],
        "systemInstruction": CONTENT,
        "tools": [{"functionDeclarations": [FUNCTION], "function_declarations": [FUNCTION]}],
        "toolConfig": _both({"functionCallingConfig": CALLING, "retrievalConfig": dict}),
        "generationConfig": SETTINGS,
        "safetySettings": [dict],
        "cachedContent": str,
        "continuationToken": str,
        "serviceTier": str,
        "store": bool,
        "model": str,
        # countTokens takes either `contents` or a whole request
        "generateContentRequest": dict,
    }
)

# ---------------------------------------------------------------- reading


def contents(body: JSON) -> list[JSON]:
    """The `contents`."""
    return [as_dict(entry) for entry in as_list(body.get("contents"))]


def parts(content: JSON) -> list[JSON]:
    """A content's parts."""
    return [as_dict(part) for part in as_list(content.get("parts"))]


def settings(body: JSON) -> JSON:
    """The `generationConfig`."""
    return as_dict(first(body, "generationConfig", "generation_config"))


def thinking(body: JSON) -> JSON:
    """The `thinkingConfig`."""
    return as_dict(first(settings(body), "thinkingConfig", "thinking_config"))


def calling(body: JSON) -> JSON:
    """The `functionCallingConfig`."""
    config = as_dict(first(body, "toolConfig", "tool_config"))
    return as_dict(first(config, "functionCallingConfig", "function_calling_config"))


def functions(body: JSON) -> list[JSON]:
    """All declared functions."""
    tools = [as_dict(tool) for tool in as_list(body.get("tools"))]
    lists = [as_list(first(tool, "functionDeclarations", "function_declarations")) for tool in tools]
    return [as_dict(function) for some in lists for function in some]


def schema_of(function: JSON) -> Any:
    """The schema of a function's arguments, in either dialect."""
    return first(function, "parametersJsonSchema", "parameters_json_schema", "parameters")


def call_of(part: JSON) -> JSON | None:
    """The function call in a part."""
    return as_dict(first(part, "functionCall", "function_call")) if {"functionCall", "function_call"} & part.keys() else None


def response_of(part: JSON) -> JSON | None:
    """The function response in a part."""
    found = first(part, "functionResponse", "function_response")
    return as_dict(found) if found is not None else None


def signature_of(part: JSON) -> str:
    """The thought signature beside a part's datum."""
    return as_text(first(part, "thoughtSignature", "thought_signature"))


# ---------------------------------------------------------------- parameters


@BOOK.rule(f"{GENERATE_DOC} 2.1", GENERATE)
def contents_present(c: Context) -> Refusal | None:
    """`contents` is a list of contents of role `user` or `model` (no `assistant`, no `system`), each with parts."""
    found = contents(c.body)
    if not found:
        return refused("GenerateContentRequest.contents: contents is not specified.")
    for place, content in enumerate(found):
        if content.get("role") not in (None, "user", "model", "function"):
            return refused(f"Please use a valid role: user, model. (contents[{place}] has '{shown(content['role'])}'.)")
        if not parts(content):
            return refused(f"GenerateContentRequest.contents[{place}].parts must not be empty.")
    return None


@BOOK.rule(f"{GENERATE_DOC} 2.3", GENERATE)
def one_way_to_think(c: Context) -> Refusal | None:
    """`thinkingLevel` and `thinkingBudget` exclude each other; a level is a word that the model knows."""
    level = first(thinking(c.body), "thinkingLevel", "thinking_level")
    budget = first(thinking(c.body), "thinkingBudget", "thinking_budget")
    if level is not None and budget is not None:
        return refused("You can only set only one of thinking budget and thinking level.")
    if level is not None and c.able.thinking == "budget":
        return refused("Thinking level is not supported for this model.")
    if level is not None and c.able.efforts is not None and level.lower() not in c.able.efforts:
        return refused(f"Thinking level {shown(level)} is not supported for this model; use {', '.join(c.able.efforts)}.")
    return None


@BOOK.rule(f"{GENERATE_DOC} 2.4", GENERATE)
def output_cap_positive(c: Context) -> Refusal | None:
    """`maxOutputTokens` is positive, and a number of 32 bits."""
    return cap_problem(first(settings(c.body), "maxOutputTokens", "max_output_tokens"))


@BOOK.rule(f"{GENERATE_DOC} 2.4; GenerateContentConfig.response_schema in the package google-genai", GENERATE)
def schema_needs_its_mime_type(c: Context) -> Refusal | None:
    """An output schema is valid, and goes with `responseMimeType: application/json`."""
    chosen = settings(c.body)
    schema = first(chosen, "responseJsonSchema", "response_json_schema", "responseSchema", "response_schema")
    if schema is None:
        return None
    if first(chosen, "responseMimeType", "response_mime_type") != "application/json":
        return refused("Response schema is only supported with responseMimeType application/json.")
    problem = schema_problem(schema)
    return refused(f"generation_config.response_schema: {problem}.") if problem is not None else None


@BOOK.rule(f"{GENERATE_DOC} 2.2; FunctionDeclaration in the package google-genai", GENERATE)
def functions_well_formed(c: Context) -> Refusal | None:
    """A declared function has a legal, unique name, and a schema in one of the two dialects."""
    names: set[str] = set()
    for place, function in enumerate(functions(c.body)):
        where = f"tools.function_declarations[{place}]"
        problem = name_problem(function.get("name"))
        if problem is not None:
            return refused(f"{where}.name {problem}.")
        if function["name"] in names:
            return refused(f"Duplicate function declaration found: {function['name']}")
        names.add(function["name"])
        both = function.get("parameters") is not None and first(function, "parametersJsonSchema", "parameters_json_schema")
        if both:
            return refused(f"{where}: parameters and parametersJsonSchema exclude each other.")
        schema = schema_of(function)
        if schema is not None and (problem := schema_problem(schema)) is not None:
            return refused(f"{where}.parameters: {problem}.")
    return None


WORDS = _both(dict.fromkeys((
    "anyOf", "default", "defs", "description", "enum", "example", "format", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern", "properties",
    "propertyOrdering", "ref", "required", "title", "type"), object))  # fmt: skip
"""What a schema of Google's own dialect may hold: the fields of Schema in the package google-genai."""


def dialect_problem(schema: Any, where: str) -> str | None:
    """What in a schema is not of Google's own dialect, or None."""
    schema = as_dict(schema)
    for name, value in schema.items():
        if name not in WORDS and not (name in ("additionalProperties", "additional_properties") and value is False):
            return f"Unknown name \"{shown(name)}\" at '{where}': Cannot find field"
    if isinstance(schema.get("type"), list):
        return f"Proto field '{where}.type' is not repeating, cannot start list"
    if as_text(schema.get("type")).lower() == "array" and schema.get("items") is None:
        return f"{where}.items: missing field"
    inner = [(f"{where}.properties[{name}]", value) for name, value in as_dict(schema.get("properties")).items()]
    inner += [(f"{where}.items", schema["items"])] if "items" in schema else []
    inner += [(f"{where}.any_of[{place}]", value) for place, value in enumerate(as_list(first(schema, "anyOf", "any_of")))]
    return next((problem for path, value in inner if (problem := dialect_problem(value, path))), None)


@BOOK.rule(f"{GENERATE_DOC} 2.2; openswarm-ai/openswarm#24, zed-industries/zed#44875, cline/cline#7339", GENERATE)
def own_dialect_kept(c: Context) -> Refusal | None:
    """`parameters` and `responseSchema` are written in Google's own dialect, without `$ref`, `const`, `oneOf` and lists of
    types, and an array says its `items`; JSON Schema goes into `parametersJsonSchema` and `responseJsonSchema`."""
    schemas = [(f"tools.function_declarations[{place}].parameters", function.get("parameters"))
               for place, function in enumerate(functions(c.body))]  # fmt: skip
    schemas.append(("generation_config.response_schema", first(settings(c.body), "responseSchema", "response_schema")))
    for where, schema in schemas:
        problem = dialect_problem(schema, where)
        if problem is not None:
            own = "parametersJsonSchema" if where.startswith("tools") else "responseJsonSchema"
            return refused(f"Invalid JSON payload received. {problem}. (JSON Schema goes into {own}.)")
    return None


MODES = ("", "MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")


@BOOK.rule(f"{GENERATE_DOC} 2.2; FunctionCallingConfig in the package google-genai", GENERATE)
def calling_mode_fits(c: Context) -> Refusal | None:
    """`functionCallingConfig.mode` is AUTO, ANY, NONE or VALIDATED; `allowedFunctionNames` goes with ANY or VALIDATED and
    names declared functions."""
    config = calling(c.body)
    mode = as_text(config.get("mode")).upper()
    allowed = as_list(first(config, "allowedFunctionNames", "allowed_function_names"))
    if mode not in MODES:
        return refused(f"Invalid value at 'tool_config.function_calling_config.mode': '{shown(mode)}'.")
    if allowed and mode not in ("ANY", "VALIDATED"):
        return refused("allowed_function_names should only be set when the mode is ANY or VALIDATED.")
    names = [function.get("name") for function in functions(c.body)]
    for name in allowed:
        if name not in names:
            return refused(f"allowed_function_names: '{shown(name)}' is not a declared function.")
    if mode == "ANY" and not names:
        return refused("Function calling mode ANY needs function declarations.")
    return None


@BOOK.rule(f"{GENERATE_DOC} 7.2", GENERATE)
def arguments_not_streamed(c: Context) -> Refusal | None:
    """`streamFunctionCallArguments` exists on Vertex AI only."""
    if first(calling(c.body), "streamFunctionCallArguments", "stream_function_call_arguments"):
        return refused("stream_function_call_arguments parameter is not supported in Gemini API.")
    return None


# ---------------------------------------------------------------- parts

BESIDE = ("thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata", "mediaResolution",
          "media_resolution", "partMetadata", "part_metadata")  # fmt: skip


@BOOK.rule(f"{GENERATE_DOC} 2.1, 3.1", GENERATE)
def parts_well_formed(c: Context) -> Refusal | None:
    """A part holds one datum: text (not empty, unless a signature stands beside it), a call, a response, a picture."""
    for place, content in enumerate(contents(c.body)):
        for number, part in enumerate(parts(content)):
            where = f"contents[{place}].parts[{number}]"
            data = [name for name, value in part.items() if name not in BESIDE and value is not None]
            if (not data or part.get("text") == "") and len(data) <= 1 and not signature_of(part):
                return refused(f"{where}.data: required oneof field 'data' must have one initialized field.")
            if len(data) > 1:
                return refused(f"{where}: oneof field 'data' is already set; it cannot hold {' and '.join(data)}.")
    return None


@BOOK.rule(f"{GENERATE_DOC} 3.2, 3.3", GENERATE)
def calls_and_responses_named(c: Context) -> Refusal | None:
    """A function call and a function response name their function; a response is an object."""
    for place, content in enumerate(contents(c.body)):
        for number, part in enumerate(parts(content)):
            where = f"contents[{place}].parts[{number}]"
            call, response = call_of(part), response_of(part)
            if call is not None and not call.get("name"):
                return refused(f"{where}.function_call.name: Name cannot be empty.")
            if response is not None and not response.get("name"):
                return refused(f"{where}.function_response.name: Name cannot be empty.")
            if response is not None and not isinstance(response.get("response"), dict):
                return refused(f"{where}.function_response.response must be an object.")
    return None


# ---------------------------------------------------------------- turns


@BOOK.rule(f"{GENERATE_DOC} 3.3; google-gemini/gemini-cli#11814, lobehub/lobehub#10049", GENERATE)
def calls_follow_the_user(c: Context) -> Refusal | None:
    """A content with function calls comes right behind a content of the user: words or function responses."""
    found = contents(c.body)
    for place, content in enumerate(found):
        calls = any(call_of(part) is not None for part in parts(content))
        before = found[place - 1] if place else {"role": "model"}
        if calls and before.get("role") == "model":
            text = "Please ensure that function call turn comes immediately after a user turn or after a function response"
            return refused(f"{text} turn.")
    return None


@BOOK.rule(f"{GENERATE_DOC} 3.3", GENERATE)
def responses_match_calls(c: Context) -> Refusal | None:
    """The content behind a content with function calls has one function response for each, found by its id or, where it has
    none, by its name, and there is no response without its call."""
    calls: list[JSON] = []
    for content in [*contents(c.body), {}]:
        responses = [response for part in parts(content) if (response := response_of(part)) is not None]
        if not _paired(calls, responses):
            text = "the number of function response parts must equal the number of function call parts of the call turn"
            return refused(f"Please ensure that function response turn comes right after a function call turn: {text}.")
        calls = [call for part in parts(content) if (call := call_of(part)) is not None]
    return None


def _paired(calls: list[JSON], responses: list[JSON]) -> bool:
    """Whether every call has its response and every response its call."""
    open_calls = list(calls)
    for response in sorted(responses, key=lambda one: not one.get("id")):  # those with an id first
        name = "id" if response.get("id") else "name"
        match = next((call for call in open_calls if call.get(name) == response.get(name)), None)
        if match is None:
            return False
        open_calls.remove(match)
    return not open_calls


@BOOK.rule(f"{GENERATE_DOC} 4.2", GENERATE)
def first_call_signed(c: Context) -> Refusal | None:
    """In the current turn the first function call of each step brings its `thoughtSignature` (models from Gemini 3 on)."""
    if not checks_signatures(c.able.family):
        return None
    found = contents(c.body)
    last_text = max((place for place, content in enumerate(found) if _is_user_text(content)), default=-1)
    for place, content in enumerate(found[last_text + 1 :], last_text + 1):
        calls = [part for part in parts(content) if call_of(part) is not None]
        if calls and not signature_of(calls[0]):
            name = shown(as_text(as_dict(call_of(calls[0])).get("name")))
            return refused(f"Function call {name} in content {place} is missing a thought_signature in functionCall parts.")
    return None


def checks_signatures(family: str) -> bool:
    """Whether the model asks for the signatures of its calls: from Gemini 3 on."""
    return family.startswith("gemini-") and not family.startswith(("gemini-1", "gemini-2"))


def _is_user_text(content: JSON) -> bool:
    return content.get("role") in (None, "user") and any(part.get("text") for part in parts(content))


@BOOK.rule(f"{GENERATE_DOC} 4.1, 4.3", GENERATE)
def signatures_genuine(c: Context) -> Refusal | None:
    """A `thoughtSignature` comes back on the part it came with, unchanged; the documented skip values pass."""
    for place, content in enumerate(contents(c.body)):
        for number, part in enumerate(parts(content)):
            signature = signature_of(part)
            if not signature or signature in SKIPPED or not checks_signatures(c.able.family):
                continue
            if check(signature, THOUGHT, signed(part)) is not Verdict.OK:
                return refused(f"contents[{place}].parts[{number}]: Thought signature is not valid.")
    return None


def signed(part: JSON) -> Any:
    """What of a part its signature covers: the call's name and arguments, or the text."""
    call = call_of(part)
    return [call.get("name"), call.get("args") or {}] if call is not None else as_text(part.get("text"))


# ---------------------------------------------------------------- continuation, and what is not played


def token_for(body: JSON) -> str:
    """What a continuation token is bound to."""
    return digest(body.get("contents"), first(body, "systemInstruction", "system_instruction"), body.get("tools"))


@BOOK.rule(f"{GENERATE_DOC} 7.3", GENERATE)
def continuation_token_genuine(c: Context) -> Refusal | None:
    """A `continuationToken` comes back with the contents of the request that got it."""
    token = first(c.body, "continuationToken", "continuation_token")
    if token is not None and check(token, TOKEN, token_for(c.body)) is not Verdict.OK:
        return refused("The continuation token does not belong to this request.")
    return None


NOT_PLAYED = ("cachedContent", "responseLogprobs", "logprobs", "candidateCount")


@BOOK.rule("docs/simulator.md 5", GENERATE)
def generate_extras_are_not_simulated(c: Context) -> Refusal | None:
    """The simulator has no explicit caches, log probabilities or second candidates here: it says so, instead of leaving them
    out."""
    fields = {**c.body, **settings(c.body)}
    values = {name: first(fields, name, _snake(name)) for name in NOT_PLAYED}
    asked = [name for name, value in values.items() if value and not (name == "candidateCount" and value == 1)]
    return refused(f"The simulator does not play '{asked[0]}'.", "unimplemented", 501) if asked else None


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
