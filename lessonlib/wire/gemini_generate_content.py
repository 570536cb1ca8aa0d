"""Gemini generateContent: two roles, each content a list of parts, and a stream without an end marker.

    POST {base}/v1beta/models/{model}:generateContent              x-goog-api-key     docs/wire/gemini-generate-content.md
    POST {base}/v1beta/models/{model}:streamGenerateContent?alt=sse

What is peculiar to it: the model stands in the path; the system prompt is a field, not a role; a thought signature is a
sibling of the part that it signs, and goes back on that very part; arguments come whole, as an object; the word for "I want
a tool" is STOP, the same as for "I am done"; a call may have no id; output counts leave the thoughts out. Every event of a
stream is a whole response object with the next few parts. Nothing marks the end: an answer is complete once a finish
reason, or the reason why the prompt was blocked, has been seen.

Exceptions to raw replay, each a small function below: text that is empty and unsigned stays behind (the API refuses it); a
call whose arguments were unusable goes back with an object that says so; for Gemini 3 and later the first call of a step
gets the documented skip value if it has no signature; and a continuation token is sent in place of the answer it came with.

What this file does not do: Vertex AI's addresses and keys (its bodies are read), files, cached contents, the Live API. What
a server-side tool did, code that ran, and pictures that the model made are opaque parts.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar
from urllib.parse import quote

from lessonlib import capabilities
from lessonlib.errors import IncompleteStream, InvalidRequest, ProtocolError
from lessonlib.history import OPENING, arrange, result_pieces
from lessonlib.schema import GEMINI_JSON, adapt
from lessonlib.sse import DONE, ServerSentEvent
from lessonlib.types import (
    JSON,
    ArgumentsDelta,
    Done,
    Event,
    Image,
    Message,
    Opaque,
    Part,
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
)  # fmt: skip
from lessonlib.wire.base import (
    CUT,
    NOTHING,
    ErrorDetails,
    Slot,
    StreamDecoder,
    Table,
    WireFormat,
    an_object,
    as_count,
    as_dict,
    as_list,
    as_place,
    as_text,
    compact,
    cut_call,
    error_object,
    function_call,
    is_daily_quota,
    listed,
    no_text,
    rpc_details,
    rpc_retry_delay,
    said,
    total_count,
    word,
)  # fmt: skip

NAME = "gemini-generate-content"

VERSION = "v1beta"
"""The API version in the path. The reference and all its samples show v1beta, and the fields that this file sends (JSON
Schema for tools and output, thinking levels, continuation tokens) appear there first; the official SDK has moved to v1."""

STOP: Mapping[str, StopReason] = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "CONTINUATION": StopReason.PAUSE,
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY",
         "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "ESCALATION", "PUP_LIMITED_DISABLED"),
        StopReason.REFUSAL,
    ),
    # the enum's numbers, from servers that do not write its names; above 4 the two Google APIs number differently
    "1": StopReason.END,
    "2": StopReason.LENGTH,
    "3": StopReason.REFUSAL,
    "4": StopReason.REFUSAL,
}  # fmt: skip
"""Section 6. What is not listed is `other`: MALFORMED_FUNCTION_CALL above all, which must never pass for an empty answer."""

STILL_RUNNING = (None, "", 0, "FINISH_REASON_UNSPECIFIED")

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""The documented stand-in for a signature that this API never gave: a call made by another model, or lost on the way."""

ONE_CALL = "Call at most one tool at a time, and wait for its result before you call the next one."
"""The API has no switch against parallel calls, so `Request.parallel=False` can only be asked for, in the system
instruction. The model usually follows; a caller must still be ready for two calls."""

LEVELS = ("minimal", "low", "medium", "high", "xhigh")
"""The words of `thinkingLevel`. Which of them a model takes, the model decides."""

BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}
"""Thinking budgets for effort words, on models (2.5) that take a budget only: Google's own table for its OpenAI endpoint."""

CONTINUATION = "continuation"
"""Kind of the opaque part that holds a continuation token."""

STATUS_CODES = {"RESOURCE_EXHAUSTED": 429, "UNAVAILABLE": 503, "INTERNAL": 500, "UNKNOWN": 500, "DEADLINE_EXCEEDED": 504}
"""HTTP statuses of the google.rpc words that a retry can help, for errors that come without a number."""

RESPONSE_FIELDS = ("candidates", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata",
                   "responseId", "response_id", "modelVersion", "model_version")  # fmt: skip

NOT_DATA = frozenset({"thought", "thoughtSignature", "thought_signature", "partMetadata", "part_metadata", "videoMetadata",
                      "video_metadata", "mediaResolution", "media_resolution"})  # fmt: skip
"""Fields of a part that say something about its data, but are not the data."""

NONE: tuple[Any, ...] = ()


class GeminiGenerateContent(WireFormat):
    """The generateContent API of Gemini. `version` is the API version in the path. A model may be given as "models/x"."""

    name: ClassVar[str] = NAME
    provider: ClassVar[str] = "gemini"
    key_variables: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    base_url_variables: ClassVar[tuple[str, ...]] = ("GOOGLE_GEMINI_BASE_URL",)
    default_base_url: ClassVar[str] = "https://generativelanguage.googleapis.com"

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        version: str = VERSION,
    ) -> None:
        super().__init__(model, api_key=api_key, base_url=base_url, headers=headers)
        self.version = version

    # ------------------------------------------------------------ encode

    def path(self, model: str, stream: bool) -> str:
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        resource = model if "/" in model else f"models/{model}"
        return f"/{self.version}/{quote(resource, safe='/@:')}:{method}"

    def auth(self) -> dict[str, str]:
        return {"x-goog-api-key": self._key.reveal()} if self._key is not None else {}

    def body(self, request: Request, model: str, stream: bool) -> JSON:
        messages, token = _split_continuation(request.messages)
        body: JSON = {"contents": encode_contents(messages, model)}
        if not body["contents"] and "contents" not in request.extra.get(NAME, {}):
            raise InvalidRequest("nothing to send: no message has any content")
        system = _system(request)
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        body |= _encode_tools(request)
        generation = _encode_generation(request, capabilities.of(model))
        if generation:
            body["generationConfig"] = generation
        if token:
            body["continuationToken"] = token
        return body

    # ------------------------------------------------------------ decode

    def decode(self, payload: Any) -> Response:
        """A whole answer; also the JSON list of response objects that a stream without `alt=sse` is."""
        if isinstance(payload, list) and not _is_error(payload):
            return self._decode_list(payload)
        if _is_error(payload):
            raise self.api_error(200, payload)
        answer = as_dict(payload)
        if not any(key in answer for key in RESPONSE_FIELDS):
            raise ProtocolError(f"not a generateContent response: none of its fields in {compact(payload)[:120]}")
        return self.respond(answer, decode_parts(_content_parts(_candidate(answer)), _response_id(answer)))

    def _decode_list(self, chunks: list[Any]) -> Response:
        decoder = self.decoder()
        for chunk in chunks:
            decoder.feed(ServerSentEvent("message", json.dumps(chunk).encode("ascii")))
        decoder.close()
        return decoder.result()

    def respond(self, answer: JSON, parts: Sequence[Part]) -> Response:
        """The Response for a whole response object; `parts` are those of its first candidate."""
        candidate = _candidate(answer)
        stop, raw_stop = _stop(answer, candidate, parts)
        token = said(get(candidate, "continuationToken"))
        if stop is StopReason.PAUSE and token:
            parts = [*parts, Opaque(kind=CONTINUATION, wire=NAME, raw={"continuationToken": token})]
        return Response(
            id=_response_id(answer),
            model=as_text(get(answer, "modelVersion")),
            provider=self.provider,
            wire=NAME,
            message=Message(role="assistant", parts=list(parts)),
            stop=stop,
            raw_stop=raw_stop,
            usage=decode_usage(get(answer, "usageMetadata")),
            raw=answer,
        )

    def decoder(self) -> StreamDecoder:
        return GenerateContentDecoder(self)

    @classmethod
    def recognises(cls, payload: Any) -> int:
        if isinstance(payload, list):
            return cls.recognises(payload[0]) if payload and isinstance(payload[0], dict) else 0
        answer = as_dict(payload)
        if isinstance(answer.get("candidates"), list) or isinstance(get(answer, "promptFeedback"), dict):
            return 2
        if isinstance(get(answer, "usageMetadata"), dict):
            return 2
        error = answer.get("error")
        # google.rpc: a number and a word in capitals; Interactions' errors have a word in small letters as their code
        is_rpc = isinstance(error, dict) and isinstance(error.get("code"), int) and as_text(error.get("status")).isupper()
        return 2 if is_rpc else 0

    # ------------------------------------------------------------ errors

    def error_details(self, status: int, payload: Any) -> ErrorDetails:
        """Section 8. A 429 for a quota per day stays one until the day is over, whatever wait it names."""
        error = error_object(payload)
        rpc_word = word(error.get("status"))
        code = as_count(error.get("code")) or STATUS_CODES.get(rpc_word or "", 0)
        http = status if status != 200 else code
        reasons = [word(detail.get("reason")) for detail in rpc_details(error)]
        return ErrorDetails(
            message=as_text(error.get("message")),
            type=rpc_word or word(error.get("code")),
            code=next((reason for reason in reasons if reason), None) or word(error.get("code")),
            retryable=(http in (408, 429) or (http >= 500 and http != 501)) and not is_daily_quota(error),
            retry_after=rpc_retry_delay(error),
        )


# ---------------------------------------------------------------- both spellings


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def get(value: Mapping[str, Any], name: str) -> Any:
    """The field `name` (camelCase), also where it is spelled in snake_case: the API writes the first and reads both, and
    what proxies and SDKs have stored comes in either."""
    found = value.get(name)
    return value.get(_snake(name)) if found is None else found


# ---------------------------------------------------------------- encode: one function per thing


def encode_contents(messages: Sequence[Message], model: str) -> list[JSON]:
    """The `contents` list: roles user and model, neighbours merged, results first, signatures where they were.

    A call may only come after the user, so a conversation that a call opens gets an opening."""
    arranged = arrange(messages, NAME, merge=True, drop=_is_left_out)
    calls = {call.call_id: call for message in arranged for call in message.tool_calls}
    contents = [
        {
            "role": "model" if message.role == "assistant" else "user",
            "parts": _pictures_after_results(message.parts, calls, model),
        }
        for message in arranged
    ]
    if contents and contents[0]["role"] == "model" and _calls_something(contents[0]):
        contents.insert(0, {"role": "user", "parts": [{"text": OPENING}]})
    return _with_skip_values(contents) if _generation(model) >= 3 else contents


def _calls_something(content: JSON) -> bool:
    return any(get(part, "functionCall") is not None for part in content["parts"])


def encode_part(part: Part, calls: Mapping[str, ToolCall]) -> JSON:
    """One part. Own parts go back as they came; foreign ones are rebuilt."""
    raw = part.raw_for(NAME)
    if isinstance(part, ToolCall) and part.args is None:
        return _encode_unusable(part, raw)
    if raw is not None:
        return raw
    match part:
        case Text():
            return {"text": part.text}
        case Image():
            return _encode_image(part)
        case ToolCall():
            return {"functionCall": {"id": part.call_id, "name": part.name, "args": part.args}}
        case ToolResult():
            return {"functionResponse": _encode_result(part, calls)}
        case _:
            raise InvalidRequest(f"a {part.type} part without its own JSON cannot be sent to {NAME}")


def _encode_unusable(call: ToolCall, raw: JSON | None) -> JSON:
    """Arguments must be an object here, so a call that had none goes back with one that shows what there was."""
    part = raw or {}
    sent = get(part, "functionCall") or {"id": call.call_id, "name": call.name}
    siblings = {key: value for key, value in part.items() if key not in ("functionCall", "function_call")}
    return {"functionCall": {**sent, "args": {"INVALID_JSON": call.raw_args}}, **siblings}


def _encode_result(result: ToolResult, calls: Mapping[str, ToolCall]) -> JSON:
    """Section 3.3. `output` and `error` are the keys that the API knows; the id goes back only if the call has one."""
    encoded: JSON = {"name": result.name, "response": {"error" if result.is_error else "output": result.text}}
    call = calls.get(result.call_id)
    raw = call.raw_for(NAME) if call else None
    call_id = get(get(raw, "functionCall"), "id") if raw else result.call_id
    return {"id": call_id, **encoded} if call_id else encoded


def _pictures_after_results(parts: Sequence[Part], calls: Mapping[str, ToolCall], model: str) -> list[JSON]:
    """The parts of one content. Pictures in results stand inside the functionResponse from Gemini 3 on; earlier models
    get them behind the last result, because a part between two results would break up the pairs."""
    results: list[JSON] = []
    pictures: list[JSON] = []
    rest: list[JSON] = []
    for part in parts:
        if part.inside:
            continue
        encoded = encode_part(part, calls)
        if not isinstance(part, ToolResult):
            rest.append(encoded)
            continue
        results.append(encoded)
        rebuilt = part.raw_for(NAME) is None
        images = [_encode_image(piece) for piece in result_pieces(part) if isinstance(piece, Image) and rebuilt]
        if images and _generation(model) >= 3:
            encoded["functionResponse"]["parts"] = images
        else:
            pictures += images
    return [*results, *pictures, *rest]


def _encode_image(image: Image) -> JSON:
    if image.data is not None:
        return {"inlineData": {"mimeType": image.media_type, "data": image.data}}
    kind = image.media_type or mimetypes.guess_type(str(image.url).partition("?")[0])[0]
    return {"fileData": {"mimeType": kind, "fileUri": image.url} if kind else {"fileUri": image.url}}


def _system(request: Request) -> str:
    asks = request.parallel is False and request.tools and request.tool_choice != "none"
    return "\n\n".join(text for text in (request.system, ONE_CALL if asks else None) if text)


def _encode_tools(request: Request) -> JSON:
    """Section 2.2. VALIDATED is the free choice of AUTO with arguments held to the schema: what `strict` asks for."""
    if not request.tools:
        return {}
    fields: JSON = {"tools": [{"functionDeclarations": [_encode_tool(tool) for tool in request.tools]}]}
    choice, words = request.tool_choice, {"auto": "AUTO", "none": "NONE", "required": "ANY"}
    if choice in (None, "auto") and any(tool.strict for tool in request.tools):
        config: JSON = {"mode": "VALIDATED"}
    elif choice is None:
        return fields
    else:
        config = {"mode": words[choice]} if choice in words else {"mode": "ANY", "allowedFunctionNames": [choice]}
    return {**fields, "toolConfig": {"functionCallingConfig": config}}


def _encode_tool(tool: Tool) -> JSON:
    encoded: JSON = {"name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    schema = adapt(tool.schema_for_function(), GEMINI_JSON).schema
    if any(value for key, value in schema.items() if key not in ("type", "title", "description")):
        encoded["parametersJsonSchema"] = schema  # a tool without parameters is declared without a schema
    return encoded


def _encode_generation(request: Request, able: capabilities.Capabilities) -> JSON:
    config: JSON = {}
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    if request.stop:
        config["stopSequences"] = request.stop
    if request.reasoning is not None:
        config["thinkingConfig"] = _encode_reasoning(request.reasoning, able)
    if request.output_schema is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = adapt(request.output_schema, GEMINI_JSON).schema
    return config


def _encode_reasoning(asked: str | int, able: capabilities.Capabilities) -> JSON:
    """Section 2.3: Gemini 3 takes a level (and still accepts a budget), Gemini 2.5 a budget only, 0 for no thinking."""
    if isinstance(asked, int):
        return {"thinkingBudget": asked, "includeThoughts": True}
    if asked == "none" and able.thinking != "level":
        return {"thinkingBudget": 0}
    if able.thinking == "budget":
        if asked not in BUDGETS:
            raise InvalidRequest(f"reasoning {asked!r} is neither a number of tokens nor one of {', '.join(BUDGETS)}")
        return {"thinkingBudget": BUDGETS[asked], "includeThoughts": True}
    levels = able.efforts or LEVELS
    if asked not in levels:
        hint = f'; thinking cannot be switched off here, "{levels[0]}" thinks least' if asked == "none" else ""
        raise InvalidRequest(f"{able.family or 'this API'} has no reasoning {asked!r}, only {', '.join(levels)}{hint}")
    return {"thinkingLevel": asked, "includeThoughts": True}


# ---------------------------------------------------------------- encode: the exceptions to raw replay


def _is_left_out(part: Part) -> bool:
    """Empty text without a signature, which the API refuses, and tokens of continuations that are over."""
    if isinstance(part, Opaque):
        return part.kind == CONTINUATION
    return isinstance(part, Text) and not part.text and not _signature(part.raw or {})


def _signature(part: JSON) -> str:
    return as_text(get(part, "thoughtSignature"))


def _split_continuation(messages: Sequence[Message]) -> tuple[Sequence[Message], str]:
    """Section 7.3: to go on after CONTINUATION the *same* contents are sent again, with the newest token and without the
    answers so far. (Those contents, the token; "" if no answer goes on.)"""
    token = ""
    while messages and messages[-1].role == "assistant" and messages[-1].parts:
        raw = messages[-1].parts[-1].raw_for(NAME) or {}
        if "continuationToken" not in raw:
            break
        token = token or as_text(raw["continuationToken"])
        messages = messages[:-1]
    return messages, token


def _generation(model: str) -> int:
    """The 3 of gemini-3.1-pro. An alias without a number (gemini-flash-latest) follows the newest; 0 for other names."""
    name = model.rsplit("/", 1)[-1].lower()
    if not name.startswith("gemini"):
        return 0
    number = re.match(r"gemini-(\d+)", name)
    return int(number[1]) if number else 99


def _with_skip_values(contents: list[JSON]) -> list[JSON]:
    """Section 4.3: in the current turn, the first call of each step must be signed. One that is not gets the skip value;
    its siblings, which are never signed, stay as they are, and no signature is ever copied or overwritten."""
    starts = [
        place
        for place, content in enumerate(contents)
        if content["role"] == "user" and any(get(part, "functionResponse") is None for part in content["parts"])
    ]
    for content in contents[starts[-1] if starts else 0 :]:
        if content["role"] == "model":
            _sign_first_call(content["parts"])
    return contents


def _sign_first_call(parts: list[JSON]) -> None:
    for place, part in enumerate(parts):
        if get(part, "functionCall") is not None:
            if not _signature(part):
                parts[place] = {**part, "thoughtSignature": SKIP_SIGNATURE}
            return


# ---------------------------------------------------------------- decode: one function per thing


def decode_parts(raws: Sequence[Any], response_id: str) -> list[Part]:
    """The parts of one content. An empty part, or empty text that carries nothing else, is none."""
    parts: list[Part] = []
    calls = 0
    for raw in raws:
        if _is_nothing(raw):
            continue
        part = decode_part(raw, response_id, calls)
        calls += isinstance(part, ToolCall)
        parts.append(part)
    return parts


def _is_nothing(raw: JSON) -> bool:
    return not raw or raw in ({"text": ""}, {"text": "", "thought": True}, {"text": "", "thought": False})


def decode_part(raw: JSON, response_id: str, ordinal: int) -> Part:
    """The part for one whole part of a content; `ordinal` counts the calls before it."""
    call = get(raw, "functionCall")
    if isinstance(call, dict):
        return decode_call(raw, call, response_id, ordinal)
    if call is not None:
        raise ProtocolError(f"a functionCall must be an object, not a {type(call).__name__}")
    text = raw.get("text")
    if isinstance(text, str):
        return Reasoning(text=text, wire=NAME, raw=raw) if raw.get("thought") else Text(text=text, wire=NAME, raw=raw)
    if text is not None:
        raise no_text(text)
    kind = next((key for key in raw if key not in NOT_DATA), None)
    if kind is None:  # a signature alone, of thinking that is not shown
        return Reasoning(wire=NAME, raw=raw)
    return Opaque(kind=kind, wire=NAME, raw=raw)


def decode_call(raw: JSON, call: JSON, response_id: str, ordinal: int) -> Part:
    name, args = as_text(call.get("name")), call.get("args")
    args = {} if args is None else args
    call_id = word(call.get("id")) or made_up_id(response_id, ordinal, name, args)
    return function_call(call_id, name, args if isinstance(args, dict) else compact(args), wire=NAME, raw=raw)


def made_up_id(response_id: str, ordinal: int, name: str, args: Any) -> str:
    """An id for a call that came without one. It pairs call and result in the history and is never sent back here. It is
    made from what the call is, so that the stream and the whole answer, read twice, give the same."""
    seed = json.dumps([response_id, ordinal, name, args])
    return "call_" + hashlib.sha256(seed.encode("ascii")).hexdigest()[:16]


def _candidate(answer: JSON) -> JSON:
    """The candidate that is the answer: number 0. Further ones stay in `Response.raw`."""
    candidates = [as_dict(candidate) for candidate in as_list(answer.get("candidates"))]
    return next((candidate for candidate in candidates if not candidate.get("index")), candidates[0] if candidates else {})


def _content_parts(candidate: JSON) -> list[JSON]:
    content = an_object(candidate.get("content"), "the content of a candidate")
    return [an_object(part, "a part of a content") for part in listed(content.get("parts"), "the parts of a content")]


def _response_id(answer: JSON) -> str:
    return as_text(get(answer, "responseId"))


def _finish_reason(answer: JSON) -> Any:
    """Why candidate 0 ended; None while it goes on."""
    for candidate in answer.get("candidates") or NONE:
        if not candidate.get("index"):
            reason = candidate.get("finishReason") or candidate.get("finish_reason")
            return None if reason in STILL_RUNNING else reason
    return None


def _block_reason(answer: JSON) -> str | None:
    return word(get(as_dict(get(answer, "promptFeedback")), "blockReason"))


def _stop(answer: JSON, candidate: JSON, parts: Sequence[Part]) -> tuple[StopReason, str | None]:
    """Section 6. STOP ends a call, too; where only the prompt has a reason, it is the prompt that was refused."""
    reason = word(get(candidate, "finishReason"))
    blocked = _block_reason(answer)
    if reason is None and blocked:
        return StopReason.REFUSAL, blocked
    stop = STOP.get(reason or "", StopReason.OTHER)
    if stop is StopReason.END and any(isinstance(part, ToolCall) for part in parts):
        stop = StopReason.TOOL_USE
    return stop, reason


def decode_usage(usage: Any) -> Usage | None:
    """Section 5: candidates and thoughts are disjoint, so all output is their sum. A count of zero is left out on the wire
    (protobuf), as is one that is not known, so a missing count stays None."""
    if not isinstance(usage, dict):
        return None
    shown, thought = get(usage, "candidatesTokenCount"), get(usage, "thoughtsTokenCount")
    return Usage(
        input_tokens=as_count(get(usage, "promptTokenCount")),
        output_tokens=None if shown is None and thought is None else total_count(0, shown, thought),
        cached_tokens=as_count(get(usage, "cachedContentTokenCount")),
        reasoning_tokens=as_count(thought),
        raw=usage,
    )


# ---------------------------------------------------------------- errors


def _is_error(payload: Any) -> bool:
    inner = payload[0] if isinstance(payload, list) and payload else payload
    return isinstance(inner, dict) and bool(inner.get("error"))


# ---------------------------------------------------------------- the stream


class GenerateContentDecoder(StreamDecoder):
    """Response objects, each with the next parts; the last value of every other field counts.

    Section 7. Text and thoughts come in pieces: neighbours of the same kind are joined, unless one of them carries
    anything besides its text (a signature). Calls come whole, except Vertex AI's `partialArgs`. A finish reason does not
    forbid more parts (some servers repeat it on every chunk), so the answer is finished by `close`.
    """

    TABLE: ClassVar[Table] = {
        "WAIT": {"chunk": "OPEN", "finish": "ENDING", "blocked": "ENDING", "error": "FAILED"},
        "OPEN": {"chunk": "OPEN", "finish": "ENDING", "blocked": "ENDING", "error": "FAILED"},
        "ENDING": {"chunk": "ENDING", "finish": "ENDING", "blocked": "ENDING", "error": "FAILED"},
    }

    def __init__(self, wire: GeminiGenerateContent) -> None:
        super().__init__(wire)
        self._wire = wire
        self._answer: JSON = {}  # the last value of every top-level field
        self._usage: JSON | None = None
        self._candidate: JSON = {}  # the same for the fields of candidate 0
        self._finish: Any = None
        self._others: dict[int, JSON] = {}
        self._parts: list[Part] = []
        self._calls = 0
        self._text: Slot | None = None  # the text or thought that may go on
        self._is_thought = False
        self._bare: JSON | None = None  # a call without arguments: they may come in the next part
        self._call: PartialCall | None = None  # Vertex AI: the call whose arguments are still coming
        self._in_pieces = False  # Vertex AI: calls come so in this stream

    def kind(self, payload: Any, sse: ServerSentEvent) -> str:
        if not isinstance(payload, dict) or payload.get("error"):
            return "error" if _is_error(payload) else "unknown"
        candidates = payload.get("candidates")
        if candidates:
            for candidate in candidates:
                if "finishReason" in candidate or "finish_reason" in candidate:
                    return "chunk" if _finish_reason(payload) is None else "finish"
            return "chunk"
        if _block_reason(payload):
            return "blocked"
        return "chunk" if any(key in payload for key in RESPONSE_FIELDS) else "unknown"

    def end_words(self) -> str:
        return "a finish reason"

    def close(self, stray: bytes = b"") -> Sequence[Event]:
        if self.state == "ENDING" and self._stray_error(stray) is None:
            return self.feed(ServerSentEvent("message", DONE))
        return super().close(stray)

    def on_done_marker(self) -> Sequence[Event]:
        """Not of this protocol, but some gateways add it; it is no success by itself."""
        return self._end() if self.state == "ENDING" else super().on_done_marker()

    def _end(self) -> Sequence[Event]:
        events = [*self._end_text(), *self._end_bare(), *self._end_call(whole=False)]
        self._response = self.build(finished=True)
        self._move("DONE")
        parts = self._response.message.parts
        events += [PartDone(len(self._parts), part) for part in parts[len(self._parts) :]]  # the token of a pause
        return [*events, Done(self._response)]

    # ------------------------------------------------------------ response objects

    def _on_chunk(self, payload: JSON) -> Sequence[Event]:
        self._answer |= payload
        usage = payload.get("usageMetadata") or payload.get("usage_metadata")
        if usage and (usage.get("totalTokenCount") or get(usage, "promptTokenCount")):  # Vertex AI sends some without counts
            self._usage = usage
        events: list[Event] = []
        for candidate in payload.get("candidates") or NONE:
            if candidate.get("index"):
                self._fold_other(as_place(candidate["index"]), candidate)
            else:
                self._candidate |= candidate
                content = candidate.get("content")
                if content:
                    self._fold(content.get("parts") or NONE, events)
        return events

    _on_blocked = _on_chunk

    def _on_finish(self, payload: JSON) -> Sequence[Event]:
        self._finish = _finish_reason(payload)
        said(get(_candidate(payload), "continuationToken"))  # now: later, what had arrived could not be attached
        return self._on_chunk(payload)

    def _on_error(self, payload: JSON) -> Sequence[Event]:
        raise self.wire.api_error(200, payload)

    def _fold(self, parts: Sequence[JSON], events: list[Event]) -> None:
        """Text and thoughts that carry nothing else are increments of what is open; everything else is a whole part."""
        for part in parts:
            text, slot = part.get("text"), self._text
            if (
                len(part) == 1 and type(text) is str and text and slot is not None and not self._is_thought
            ):  # nearly every one
                slot.pieces.append(text)
                events.append(TextDelta(slot.index, text))
                continue
            thought = "thought" in part
            if text is None or len(part) != 1 + thought:
                self._add_part(part, events)
            elif text:
                if not isinstance(text, str):
                    raise no_text(text)
                thought = bool(thought and part["thought"])
                if slot is None or self._is_thought != thought:
                    slot = self._begin_text(thought, events)
                slot.pieces.append(text)
                events.append(ReasoningDelta(slot.index, text) if thought else TextDelta(slot.index, text))

    def _fold_other(self, index: int, candidate: JSON) -> None:
        """A further candidate is only kept: its parts one after another, the last value of its other fields."""
        kept = self._others.setdefault(index, {"content": {"role": "model", "parts": []}})
        kept["content"]["parts"].extend(_content_parts(candidate))
        kept |= {key: value for key, value in candidate.items() if key != "content"}

    # ------------------------------------------------------------ parts

    def _begin_text(self, thought: bool, events: list[Event]) -> Slot:
        events += [*self._end_text(), *self._end_bare()]
        self._is_thought = thought
        slot = self._text = Slot(len(self._parts), {"text": "", "thought": True} if thought else {"text": ""})
        return slot

    def _end_text(self) -> Sequence[Event]:
        slot, self._text = self._text, None
        if slot is None:
            return NOTHING
        return (self._put({**slot.raw, "text": slot.text()}),)

    def _add_part(self, part: JSON, events: list[Event]) -> None:
        if not part:
            return
        call = get(part, "functionCall")
        if isinstance(call, dict) and (self._call is not None or any(key in call for key in PIECES)):
            events += self._add_piece(part, call)
            return
        if call == {} and self._in_pieces:  # a second end of a call that has ended
            return
        if self._bare is not None:
            if isinstance(call, dict) and call.get("args") and not call.get("name"):
                part, self._bare = _with_arguments(self._bare, part), None
            events += self._end_bare()
        events += self._end_text()
        if isinstance(call, dict) and call.get("name") and call.get("args") in (None, {}):
            self._bare = part
            return
        self._add_whole(part, events)

    def _add_whole(self, part: JSON, events: list[Event]) -> None:
        index = len(self._parts)
        done = self._put(part)
        match done.part:
            case ToolCall(call_id=call_id, raw_args=arguments) if arguments:
                events.append(ArgumentsDelta(index, call_id, arguments))
            case Text(text=text) if text:
                events.append(TextDelta(index, text))
            case Reasoning(text=text) if text:
                events.append(ReasoningDelta(index, text))
        events.append(done)

    def _put(self, raw: JSON) -> PartDone:
        return self._put_part(decode_part(raw, _response_id(self._answer), self._calls))

    def _put_part(self, part: Part) -> PartDone:
        self._calls += isinstance(part, ToolCall)
        self._parts.append(part)
        return PartDone(len(self._parts) - 1, part)

    def _end_bare(self) -> Sequence[Event]:
        """The call that was held back has no arguments. (Some streams name a call in one part and bring its arguments in the
        next, without a name: vscode-unify-chat-provider issue 48.)"""
        events: list[Event] = []
        bare, self._bare = self._bare, None
        if bare is not None:
            self._add_whole(bare, events)
        return events

    # ------------------------------------------------------------ Vertex AI: calls in pieces

    def _add_piece(self, part: JSON, call: JSON) -> Sequence[Event]:
        """The first piece has the name, the others only partialArgs; the last one does not promise another."""
        events: list[Event] = [*self._end_text(), *self._end_bare()]
        if call.get("name"):
            events += self._end_call(whole=False)
        elif self._call is None and self._in_pieces:
            raise ProtocolError("a piece of a call that has ended")
        if self._call is None:
            self._call, self._in_pieces = PartialCall(), True
        self._call.add(part, call)
        if not get(call, "willContinue"):
            events += self._end_call(whole=True)
        return events

    def _end_call(self, *, whole: bool) -> Sequence[Event]:
        call, self._call = self._call, None
        if call is None:
            return NOTHING
        done = self._put_part(call.part(_response_id(self._answer), self._calls, whole=whole))
        match done.part:
            case ToolCall(call_id=call_id, raw_args=arguments):
                return (ArgumentsDelta(done.index, call_id, arguments), done)
            case _:
                return (done,)

    # ------------------------------------------------------------ the answer

    def growing(self) -> Iterable[list[str]]:
        return () if self._text is None else (self._text.pieces,)

    def build(self, *, finished: bool) -> Response:
        if not self._answer:
            raise IncompleteStream("nothing has arrived")
        parts = [*self._parts, *self._unfinished()]
        return self._wire.respond(self._folded(parts), parts)

    def _unfinished(self) -> list[Part]:
        """What has begun but not ended. Its text may be shown; a call can never be run, and nothing of it is replayed."""
        parts: list[Part] = []
        if self._text is not None:
            kind = Reasoning if self._is_thought else Text
            parts.append(kind(text=self._text.text(), wire=NAME))
        if self._bare is not None:
            call = get(self._bare, "functionCall")
            name = as_text(call["name"])
            call_id = word(call.get("id")) or made_up_id(_response_id(self._answer), self._calls, name, {})
            parts.append(cut_call(call_id, name, "", wire=NAME, why=CUT))
        if self._call is not None:
            parts.append(self._call.part(_response_id(self._answer), self._calls, whole=False))
        return parts

    def _folded(self, parts: Sequence[Part]) -> JSON:
        """The response object that is not streamed, with the same content."""
        answer = dict(self._answer)
        if self._candidate:
            first = dict(self._candidate)
            if "content" in first:
                raws = [part.raw for part in parts if part.raw is not None]
                first["content"] = {**as_dict(first["content"]), "parts": raws}
            if get(first, "finishReason") != self._finish:  # a later chunk had none
                first["finishReason"] = self._finish
            answer["candidates"] = [first, *(other for _, other in sorted(self._others.items()))]
        if self._usage is not None and get(answer, "usageMetadata") is not self._usage:
            answer["usageMetadata"] = self._usage
        return answer


def _with_arguments(bare: JSON, part: JSON) -> JSON:
    """A call and, from the part behind it, its arguments and what else stands there (a signature)."""
    siblings = {key: value for key, value in (bare | part).items() if key not in ("functionCall", "function_call")}
    return {"functionCall": {**get(bare, "functionCall"), "args": get(part, "functionCall")["args"]}, **siblings}


# ---------------------------------------------------------------- Vertex AI: arguments in pieces

PIECES = ("partialArgs", "partial_args", "willContinue", "will_continue")
VALUES: Mapping[str, tuple[type, ...]] = {
    "numberValue": (int, float), "boolValue": (bool,), "number_value": (int, float), "bool_value": (bool,),
    "nullValue": (str, type(None)), "null_value": (str, type(None)),
}  # fmt: skip
"""The fields that hold a whole value, and what may stand there."""


@dataclass(slots=True)
class PartialCall:
    """A call whose arguments arrive one JSON path at a time (RFC 9535): `{"jsonPath": "$.a[0].b", "stringValue": "x"}`.

    Section 7.2. A string may come in several pieces under the same path: they are kept in a list and joined once.
    """

    raw: JSON = field(default_factory=dict)  # the part without the pieces: name, id, and siblings such as the signature
    values: dict[str, Any] = field(default_factory=dict)  # by path, in the order in which the paths came
    broken: str | None = None  # why the pieces cannot be the call's arguments

    def add(self, part: JSON, call: JSON) -> None:
        sent = {key: value for key, value in call.items() if key not in PIECES}
        siblings = {key: value for key, value in part.items() if key not in ("functionCall", "function_call")}
        self.raw = {**self.raw, "functionCall": {**self.raw.get("functionCall", {}), **sent}, **siblings}
        for piece in get(call, "partialArgs") or NONE:
            path, text = as_text(get(piece, "jsonPath")), get(piece, "stringValue")
            told = [key for key in VALUES if key in piece]
            if isinstance(text, str):
                self.values.setdefault(path, []).append(text)
            elif text is not None or not told:
                self.broken = f"the piece for {path!r} has no value that can be read"
            for key in told:
                if type(piece[key]) not in VALUES[key]:
                    self.broken = f"the {key} for {path!r} is a {type(piece[key]).__name__}"
                self.values[path] = None if key.startswith("null") else piece[key]

    def part(self, response_id: str, ordinal: int, *, whole: bool) -> Part:
        """The call. One whose last piece never came, or whose pieces contradict each other, cannot be run."""
        call = self.raw["functionCall"]
        values = {path: "".join(value) if isinstance(value, list) else value for path, value in self.values.items()}
        try:
            args, problem = assemble(values, as_dict(call.get("args"))), self.broken if whole else CUT
        except ValueError as error:
            args, problem = values, f"the pieces of the arguments do not fit together: {error}"
        if problem is None:
            return decode_part({**self.raw, "functionCall": {**call, "args": args}}, response_id, ordinal)
        name = as_text(call.get("name"))
        call_id = word(call.get("id")) or made_up_id(response_id, ordinal, name, args)
        return cut_call(call_id, name, compact(args), wire=NAME, why=problem)


_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['(.*?)'\]|\["(.*?)"\]""")


def assemble(values: Mapping[str, Any], start: JSON) -> JSON:
    """The object that these values by JSON path describe, laid over `start`. Raises ValueError where they contradict."""
    arguments: JSON = json.loads(json.dumps(start))
    for path, value in values.items():
        steps = _steps(path)
        place: Any = arguments
        for step, following in pairwise(steps):
            place = _enter(place, step, [] if isinstance(following, int) else {}, path)
        if _enter(place, steps[-1], value, path) is not value:
            raise ValueError(f"{path!r} does not fit what came before")
    return arguments


def _steps(path: str) -> list[str | int]:
    """`$.a[0].b` -> ["a", 0, "b"]."""
    steps = [int(index) if index else name or quoted or double for name, index, quoted, double in _STEP.findall(path)]
    if not steps or "$" + "".join(match[0] for match in _STEP.finditer(path)) != path:
        raise ValueError(f"{path!r} is not a path that can be read")
    return steps


def _enter(place: Any, step: str | int, new: Any, path: str) -> Any:
    """What stands at `step` in `place`; `new` is put there if nothing does."""
    if isinstance(step, str) and isinstance(place, dict):
        return place.setdefault(step, new)
    if isinstance(step, int) and isinstance(place, list) and step <= len(place):
        if step == len(place):
            place.append(new)
        return place[step]
    raise ValueError(f"{path!r} does not fit what came before")
