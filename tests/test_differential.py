"""The official SDKs read the same fixtures from the same local server, and must agree with us.

Compared are the text that a person sees, the calls, why the answer stopped, and the usage; of failures, that they are
failures, and the HTTP status. The SDKs' objects are turned into that form by the short functions below, which share nothing
with the library.

Where an SDK is wrong, or cannot say what the wire says, the case stands in DIFFERENCES with the reason. Such an entry is
checked too: when the SDK agrees after all, the test fails and the entry must go.

The SDKs are an extra (`pip install lessonlib[sdk]`); without them these tests are skipped, and say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from lessonlib.client import Client
from lessonlib.errors import APIError, LessonError
from lessonlib.tape import Tape
from lessonlib.types import Done, Message, Request, Response
from lessonlib.wire import WIRES
from tests.servers import Handler, Peer, Server

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # what the SDKs warn of

TESTDATA = Path(__file__).parent.parent / "testdata"
KEY = "sk-inv-1234567890"
CHUNK = 7  # bytes in one read: everything is cut somewhere


# ---------------------------------------------------------------- what is compared


Counts = tuple[int | None, int | None, int | None, int | None]
"""All input, all output, and what of them was cached and reasoning."""


@dataclass
class Read:
    """What one reader made of one body. `failed`: None, an HTTP status, or "after 200"; of a failure only that and the text
    that had arrived are compared."""

    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    stop: str | None = None
    usage: Counts | None = None
    failed: int | str | None = None

    def fails(self, status: int) -> None:
        self.failed = status if status >= 400 else "after 200"

    def compared(self) -> Read:
        return Read(self.text, failed=self.failed) if self.failed else self


def arguments(text: str) -> Any:
    """A call's arguments, None where they are no JSON object."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def ours(response: Response, read: Read) -> None:
    read.text, read.stop = response.text, str(response.stop)
    read.calls = [(call.name, call.args) for call in response.tool_calls]
    if (usage := response.usage) is not None:
        read.usage = usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens


def read_ours(wire: str, url: str, streamed: bool) -> Read:
    request, read = Request(messages=[Message.user("What now?")]), Read()
    try:
        with Client(WIRES[wire](model="m", api_key=KEY, base_url=url + BASES[wire])) as client:
            if streamed:
                *_, last = client.stream(request)
                assert isinstance(last, Done)
                ours(last.response, read)
            else:
                ours(client.generate(request), read)
    except LessonError as error:
        read.fails(error.status if isinstance(error, APIError) else 200)
        read.text = error.partial.text if error.partial else ""
    return read.compared()


# ---------------------------------------------------------------- the SDKs


class SDKs:
    """The official clients for one server, each made when it is first asked for. They must not retry: fixtures repeat."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.opened = ExitStack()

    @cached_property
    def openai(self) -> Any:
        openai = pytest.importorskip("openai", reason="the openai package is not installed")
        return self.opened.enter_context(openai.OpenAI(api_key=KEY, base_url=self.url + "/v1", max_retries=0))

    @cached_property
    def anthropic(self) -> Any:
        anthropic = pytest.importorskip("anthropic", reason="the anthropic package is not installed")
        return self.opened.enter_context(anthropic.Anthropic(api_key=KEY, base_url=self.url, max_retries=0))

    @cached_property
    def gemini(self) -> Any:
        genai = pytest.importorskip("google.genai", reason="the google-genai package is not installed")
        once = genai.types.HttpRetryOptions(attempts=1)
        options = genai.types.HttpOptions(base_url=self.url, retry_options=once)
        return self.opened.enter_context(genai.Client(api_key=KEY, http_options=options))


# ---------------------------------------------------------------- OpenAI Responses


def read_responses(sdks: SDKs, streamed: bool, read: Read) -> None:
    create = sdks.openai.responses.create
    from openai import APIError

    try:
        if streamed:
            _of_response_events(create(model="m", input="What now?", stream=True), read)
        else:
            _of_response(create(model="m", input="What now?"), read)
    except APIError as error:
        read.fails(getattr(error, "status_code", 200))


def _of_response(response: Any, read: Read) -> None:
    items = [item.to_dict() for item in response.output or []]
    pieces = [piece for item in items if item["type"] == "message" for piece in item["content"]]
    read.text = "".join(piece.get("text") or piece.get("refusal") or "" for piece in pieces)
    read.calls = [call for item in items for call in _call_of_item(item)]
    read.stop = _stop_of_response(response, read, any(piece["type"] == "refusal" for piece in pieces))
    read.usage = _usage_of_response(response.usage)


def _call_of_item(item: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    match item["type"]:
        case "function_call":
            yield item["name"], arguments(item["arguments"])
        case "custom_tool_call":
            yield item["name"], {"input": item["input"]}
        case "shell_call":
            yield "shell", {name: value for name, value in item["action"].items() if value is not None}


def _stop_of_response(response: Any, read: Read, refused: bool) -> str:
    if response.status == "incomplete":
        return {"max_output_tokens": "length", "content_filter": "refusal"}.get(response.incomplete_details.reason, "other")
    if response.status != "completed":
        return "other"
    return "refusal" if refused else "tool_use" if read.calls else "end"


def _usage_of_response(usage: Any) -> Counts | None:
    if usage is None:
        return None
    given, made = usage.input_tokens_details, usage.output_tokens_details
    return usage.input_tokens, usage.output_tokens, given and given.cached_tokens, made and made.reasoning_tokens


def _of_response_events(events: Any, read: Read) -> None:
    refused, calls = False, {}
    for event in events:
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                read.text += event.delta
                refused = refused or event.type == "response.refusal.delta"
            case "response.output_item.done":
                calls[event.output_index] = list(_call_of_item(event.item.to_dict()))
            case "response.failed":
                read.fails(200)
            case "response.completed" | "response.incomplete":
                read.calls = [call for index in sorted(calls) for call in calls[index]]
                read.stop = _stop_of_response(event.response, read, refused)
                read.usage = _usage_of_response(event.response.usage)


# ---------------------------------------------------------------- OpenAI Chat Completions


def read_chat(sdks: SDKs, streamed: bool, read: Read) -> None:
    create = sdks.openai.chat.completions.create
    from openai import APIError
    from openai.lib.streaming.chat import ChatCompletionStreamState

    ask: Any = {"model": "m", "messages": [{"role": "user", "content": "What now?"}]}
    state = ChatCompletionStreamState()
    try:
        if not streamed:
            return _of_completion(create(**ask), read)
        for chunk in create(**ask, stream=True):
            state.handle_chunk(chunk)
            _of_completion(state.current_completion_snapshot, read)
    except APIError as error:
        read.fails(getattr(error, "status_code", 200))


def _of_completion(completion: Any, read: Read) -> None:
    choice = completion.choices[0]
    message = choice.message.to_dict()
    read.text = (message.get("content") or "") + (message.get("refusal") or "")
    functions = [call["function"] for call in message.get("tool_calls") or []]
    read.calls = [(function["name"], arguments(function["arguments"])) for function in functions]
    words = {"stop": "end", "tool_calls": "tool_use", "length": "length", "content_filter": "refusal"}
    read.stop = words.get(choice.finish_reason, "other")
    if read.stop == "end":
        read.stop = "refusal" if message.get("refusal") else "tool_use" if read.calls else "end"
    if completion.usage is not None:
        usage = completion.usage.to_dict()
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        read.usage = usage["prompt_tokens"], usage["completion_tokens"], cached, thought


# ---------------------------------------------------------------- Anthropic


def read_messages(sdks: SDKs, streamed: bool, read: Read) -> None:
    messages = sdks.anthropic.messages
    from anthropic import APIError

    ask: Any = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "What now?"}]}
    try:
        if not streamed:
            return _of_message(messages.create(**ask), read)
        with messages.stream(**ask) as stream:
            for event in stream:
                read.text += event.text if event.type == "text" else ""
            _of_message(stream.get_final_message(), read)
    except APIError as error:
        read.fails(getattr(error, "status_code", 200))


def _of_message(message: Any, read: Read) -> None:
    blocks = [block.to_dict() for block in message.content]
    read.text = "".join(block["text"] for block in blocks if block["type"] == "text")
    read.calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    words = {
        "end_turn": "end", "stop_sequence": "end", "tool_use": "tool_use", "max_tokens": "length", "refusal": "refusal",
        "pause_turn": "pause", "compaction": "pause", "model_context_window_exceeded": "length",
    }  # fmt: skip
    read.stop = words.get(message.stop_reason, "other")
    usage = message.usage.to_dict()
    written, cached = usage.get("cache_creation_input_tokens"), usage.get("cache_read_input_tokens")
    thought = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
    read.usage = usage["input_tokens"] + (written or 0) + (cached or 0), usage["output_tokens"], cached, thought


# ---------------------------------------------------------------- Gemini, both APIs


def read_interactions(sdks: SDKs, streamed: bool, read: Read) -> None:
    create = sdks.gemini.interactions.create
    from google.genai._interactions_errors import APIStatusError

    ask: Any = {"model": "m", "input": "What now?", "automatic_continuation": False}
    try:
        if streamed:
            _of_interaction_events(create(**ask, stream=True), read)
        else:
            _of_interaction(create(**ask), read)
    except APIStatusError as error:
        read.fails(error.status_code)


def _of_interaction(interaction: Any, read: Read) -> None:
    for step in interaction.model_dump(exclude_none=True).get("steps", []):
        if step["type"] == "model_output":
            read.text += "".join(content.get("text", "") for content in step.get("content", []))
        elif step["type"] == "function_call":
            read.calls.append((step["name"], step.get("arguments") or {}))
    _end_of_interaction(interaction, read)


def _end_of_interaction(interaction: Any, read: Read) -> None:
    words = {
        "completed": "tool_use" if read.calls else "end", "requires_action": "tool_use", "incomplete": "length",
        "budget_exceeded": "length", "requires_continuation": "pause",
    }  # fmt: skip
    if interaction.status == "failed":
        read.fails(200)
    read.stop = words.get(str(interaction.status), "other")
    if (usage := interaction.usage) is not None:
        thought = usage.total_thought_tokens
        output = usage.total_output_tokens + (thought or 0)
        read.usage = usage.total_input_tokens, output, usage.total_cached_tokens, thought


def _of_interaction_events(events: Any, read: Read) -> None:
    calls: dict[int, list[Any]] = {}  # [name, arguments of the start, pieces of arguments ...]
    for event in events:
        data = event.model_dump(exclude_none=True)
        match data["event_type"]:
            case "step.start" if data["step"]["type"] == "model_output":
                read.text += "".join(content.get("text", "") for content in data["step"].get("content", []))
            case "step.start" if data["step"]["type"] == "function_call":
                calls[data["index"]] = [data["step"]["name"], data["step"].get("arguments") or {}]
            case "step.delta" if data["delta"]["type"] == "text":
                read.text += data["delta"]["text"]
            case "step.delta" if data["delta"]["type"] == "arguments_delta":
                calls[data["index"]].append(data["delta"]["arguments"])
            case "error":
                read.fails(200)
            case "interaction.completed":
                for name, given, *pieces in (calls[index] for index in sorted(calls)):
                    read.calls.append((name, arguments("".join(pieces)) if "".join(pieces) else given))
                _end_of_interaction(event.interaction, read)


def read_generate_content(sdks: SDKs, streamed: bool, read: Read) -> None:
    models = sdks.gemini.models
    from google.genai.errors import APIError

    ask: Any = {"model": "m", "contents": "What now?", "config": {"automatic_continuation": False}}
    try:
        if streamed:
            _of_chunks(models.generate_content_stream(**ask), read)
        else:
            _of_chunks([models.generate_content(**ask)], read)
    except APIError as error:
        read.fails(error.code)


def _of_chunks(chunks: Any, read: Read) -> None:
    for chunk in chunks:
        for candidate in (chunk.candidates or [])[:1]:
            for part in (candidate.content and candidate.content.parts) or []:
                read.text += part.text if part.text and not part.thought else ""
                if part.function_call:
                    read.calls.append((part.function_call.name, part.function_call.args or {}))
            if candidate.finish_reason:
                words = {"STOP": "tool_use" if read.calls else "end", "MAX_TOKENS": "length", "SAFETY": "refusal"}
                read.stop = {**words, "CONTINUATION": "pause"}.get(candidate.finish_reason.name, "other")
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            read.stop = "refusal"
        if (usage := chunk.usage_metadata) is not None:
            made = [count for count in (usage.candidates_token_count, usage.thoughts_token_count) if count is not None]
            output = sum(made) if made else None
            read.usage = usage.prompt_token_count, output, usage.cached_content_token_count, usage.thoughts_token_count


# ---------------------------------------------------------------- the cases

READERS: dict[str, Callable[[SDKs, bool, Read], None]] = {
    "openai-responses": read_responses,
    "openai-chat": read_chat,
    "anthropic-messages": read_messages,
    "gemini-interactions": read_interactions,
    "gemini-generate-content": read_generate_content,
}

BASES = {
    "openai-responses": "/v1",
    "openai-chat": "/v1",
    "anthropic-messages": "",
    "gemini-interactions": "/v1",
    "gemini-generate-content": "/v1beta",
}

QUIET_END = "a stream that ends early is no error to the SDK: it returns what had come as if it were all"
FRAGMENTS = "streamed arguments (willContinue) are handed on as fragments, each as a call of its own"
GUIDE = "the SDK reads the events as the reference writes them, and reports those of the migration guide as an error"
OLD_REVISION = "the SDK no longer reads the outputs of the earlier revision"
HALF_CALL = "a call that the output cap cut off is handed out with the arguments {} as if it were whole"
THINK_TAGS = "reasoning in <think> tags is left in the text; models with such templates answer so behind many servers"
APPROVAL = "an answer that waits for an approval has the status completed; only its items say so"

DIFFERENCES: dict[str, str] = {
    "anthropic-messages/cut/streamed": QUIET_END,
    "anthropic-messages/cut_in_call/streamed": QUIET_END,
    "anthropic-messages/invalid_arguments/streamed": "the SDK raises ValueError for a call whose JSON is invalid",
    "anthropic-messages/length_in_call/streamed": HALF_CALL,
    "anthropic-messages/length_open_call/streamed": HALF_CALL,
    "gemini-generate-content/cut/streamed": "the SDK takes the beginning of an event for the whole of it",
    "gemini-generate-content/cut_in_call/streamed": QUIET_END,
    "gemini-generate-content/invalid_arguments/streamed": FRAGMENTS,
    "gemini-generate-content/length_in_call/streamed": FRAGMENTS,
    "gemini-generate-content/partial_arguments/streamed": FRAGMENTS,
    "gemini-interactions/cut/streamed": QUIET_END,
    "gemini-interactions/cut_in_call/streamed": QUIET_END,
    "gemini-interactions/guide_mixed/streamed": GUIDE,
    "gemini-interactions/guide_text/streamed": GUIDE,
    "gemini-interactions/guide_tool_call/streamed": GUIDE,
    "gemini-interactions/old_revision/whole": OLD_REVISION,
    "gemini-interactions/old_revision/streamed": OLD_REVISION,
    "gemini-interactions/old_revision_tool_call/whole": OLD_REVISION,
    "gemini-interactions/old_revision_tool_call/streamed": OLD_REVISION,
    "gemini-interactions/refusal_bare_line/streamed": "a line of JSON that is no event is skipped",
    "openai-chat/content_chunks/whole": "content that is a list of pieces (Mistral) is handed on as it is",
    "openai-chat/cut/streamed": QUIET_END,
    "openai-chat/cut_in_call/streamed": QUIET_END,
    "openai-chat/error_in_200/whole": "an error with status 200 (gateways) is read as a completion without choices",
    "openai-chat/several_choices/streamed": "the SDK's accumulator wants choice 0 before choice 1",
    "openai-chat/think_tags/whole": THINK_TAGS,
    "openai-chat/think_tags/streamed": THINK_TAGS,
    "openai-chat/unknown/streamed": "the SDK's accumulator refuses a chunk whose choices are null",
    "openai-responses/cut/streamed": QUIET_END,
    "openai-responses/cut_in_call/streamed": QUIET_END,
    "openai-responses/error_flat/streamed": "a flat error event ends the stream without an exception",
    "openai-responses/pause/whole": APPROVAL,
    "openai-responses/pause/streamed": APPROVAL,
}


def cases() -> Iterator[Any]:
    for folder in sorted(TESTDATA.glob("*/*/")):
        names = {path.name for path in folder.iterdir()}
        for mode, file in (("whole", "response.json"), ("streamed", "stream.sse")):
            if file in names or "error.json" in names:
                yield pytest.param(folder, mode, id=f"{folder.parent.name}/{folder.name}/{mode}")


def serves(folder: Path) -> Handler:
    """Answers with what is in the folder, whole or in small reads, as it was asked."""
    tape = Tape.load(folder)

    def answer(peer: Peer) -> None:
        streamed = peer.asked.json.get("stream") is True or "stream" in peer.asked.path
        kind = tape.kind(streamed)
        assert kind is not None
        if kind == "stream.sse":
            peer.stream(tape.bodies[kind], CHUNK, tape.head(kind))
        else:
            peer.answer(tape.bodies[kind], tape.status, tape.head(kind))

    return answer


def read_theirs(wire: str, sdks: SDKs, streamed: bool, status: int) -> Read:
    """What the SDK reads. Some report the status in the error's JSON as that of a stream which began with 200."""
    read = Read()
    READERS[wire](sdks, streamed, read)
    if read.failed:
        read.fails(status)
    return read.compared()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for all cases; each test says what it answers."""
    server = Server(lambda peer: peer.answer(b"", 404))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def sdks(server: Server) -> Iterator[SDKs]:
    sdks = SDKs(server.url)
    yield sdks
    sdks.opened.close()


@pytest.mark.parametrize(("folder", "mode"), list(cases()))
def test_official_sdk_agrees(server: Server, sdks: SDKs, folder: Path, mode: str) -> None:
    wire, streamed = folder.parent.name, mode == "streamed"
    server.handler = serves(folder)
    mine = read_ours(wire, server.url, streamed)
    reason = DIFFERENCES.get(f"{wire}/{folder.name}/{mode}")
    try:
        theirs: Read | Exception = read_theirs(wire, sdks, streamed, Tape.load(folder).status)
    except Exception as error:
        if reason is None:
            raise
        theirs = error  # many faults are crashes
    if reason is None:
        assert theirs == mine
    else:
        assert theirs != mine, f"the SDK agrees by now: take the entry out of DIFFERENCES ({reason})"


def test_differences_name_cases_that_exist() -> None:
    assert sorted(DIFFERENCES.keys() - {case.id for case in cases()}) == []
