"""The official packages against the served simulator, without a patch: text, streams, tool round trips, errors.

Every streamed event must validate against the package's own types with no unknown field. The one exception is OpenAI's
`obfuscation`, which the service sends on Responses deltas and the package's event types do not name.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from lessonlib.sim import Fault, Simulator
from tests.sim.requests import CITY, MODELS

pytest.importorskip("uvicorn", reason="the served simulator needs lessonlib[serve]")

QUESTION = "What is the weather in Lima and in Oslo?"
PADDING = {"obfuscation"}


@pytest.fixture
def sim() -> Simulator:
    return Simulator()


@pytest.fixture
def url(sim: Simulator) -> Iterator[str]:
    from lessonlib.sim.server import running

    with running(sim) as address:
        yield address


def unknown_fields(value: Any, path: str = "") -> list[str]:
    """Paths of all fields that the package's types do not know."""
    if isinstance(value, BaseModel):
        extra = [f"{path}.{name}" for name in (value.model_extra or {}) if name not in PADDING]
        return extra + [
            found for name in type(value).model_fields for found in unknown_fields(getattr(value, name), f"{path}.{name}")
        ]
    if isinstance(value, list):
        return [found for place, item in enumerate(value) for found in unknown_fields(item, f"{path}[{place}]")]
    return []


# ---------------------------------------------------------------- openai


@pytest.fixture
def openai_client(url: str) -> Iterator[Any]:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(api_key="k", base_url=url + "/v1", max_retries=0) as client:
        yield client


RESPONSES_TOOL = {"type": "function", "name": "get_weather", "description": "Weather", "parameters": CITY, "strict": True}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": CITY}}


def test_responses_round_trip_with_reasoning(openai_client: Any) -> None:
    asked = [{"role": "user", "content": QUESTION}]
    settings = {"model": MODELS["openai-responses"], "store": False, "tools": [RESPONSES_TOOL],
                "reasoning": {"effort": "low", "summary": "auto"}}  # fmt: skip
    with openai_client.responses.stream(input=asked, **settings) as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_response()
    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call", "function_call"]
    assert {"response.created", "response.reasoning_summary_text.delta", "response.completed"} <= set(kinds)
    items = [item.model_dump(exclude_none=True, exclude={"status", "parsed_arguments"}) for item in answer.output]
    outputs = [{"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}
               for item in items if item["type"] == "function_call"]  # fmt: skip
    final = openai_client.responses.create(input=[*asked, *items, *outputs], **settings)
    assert final.output_text == "Lima: sunny. Oslo: sunny."
    assert final.usage.input_tokens_details.cached_tokens > 0
    assert unknown_fields(final) == []


def test_responses_events_have_no_unknown_field(openai_client: Any) -> None:
    stream = openai_client.responses.create(
        model=MODELS["openai-responses"], input=QUESTION, tools=[RESPONSES_TOOL], stream=True, reasoning={"summary": "auto"}
    )
    assert [field for event in stream for field in unknown_fields(event, event.type)] == []


def test_reasoning_that_was_dropped_is_paid_for_again(openai_client: Any) -> None:
    asked = [{"role": "user", "content": QUESTION}]
    settings = {"model": MODELS["openai-responses"], "store": False, "tools": [RESPONSES_TOOL]}
    answer = openai_client.responses.create(input=asked, **settings)
    calls = [item for item in answer.output if item.type == "function_call"]
    outputs = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
    kept = [item.model_dump(exclude_none=True, exclude={"status", "parsed_arguments"}) for item in answer.output]
    bare = [
        {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments} for call in calls
    ]
    with_it = openai_client.responses.create(input=[*asked, *kept, *outputs], **settings).usage
    without = openai_client.responses.create(input=[*asked, *bare, *outputs], **settings).usage
    assert without.output_tokens_details.reasoning_tokens > with_it.output_tokens_details.reasoning_tokens


def test_chat_round_trip(openai_client: Any) -> None:
    asked: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    settings = {"model": MODELS["openai-chat"], "tools": [CHAT_TOOL]}
    with openai_client.chat.completions.stream(messages=asked, stream_options={"include_usage": True}, **settings) as stream:
        chunks = [event.chunk for event in stream if event.type == "chunk"]
        answer = stream.get_final_completion()
    assert [field for chunk in chunks for field in unknown_fields(chunk)] == []
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage.total_tokens > 0
    calls = answer.choices[0].message.tool_calls
    message = {"role": "assistant", "tool_calls": [
        {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
        for call in calls]}  # fmt: skip
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in calls]
    final = openai_client.chat.completions.create(messages=[*asked, message, *results], **settings)
    assert final.choices[0].message.content == "Lima: sunny. Oslo: sunny."


# ---------------------------------------------------------------- anthropic


@pytest.fixture
def anthropic_client(url: str) -> Iterator[Any]:
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        yield client


MESSAGES_TOOL = {"name": "get_weather", "description": "Weather", "input_schema": CITY}


def test_messages_round_trip_with_thinking(anthropic_client: Any) -> None:
    asked: list[Any] = [{"role": "user", "content": QUESTION}]
    settings = {"model": MODELS["anthropic-messages"], "max_tokens": 1000, "tools": [MESSAGES_TOOL],
                "thinking": {"type": "adaptive", "display": "summarized"}}  # fmt: skip
    with anthropic_client.messages.stream(messages=asked, **settings) as stream:
        answer = stream.get_final_message()
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.stop_reason == "tool_use"
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}
               for block in answer.content if block.type == "tool_use"]  # fmt: skip
    history = [*asked, {"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    final = anthropic_client.messages.create(messages=history, **settings)
    assert final.content[-1].text == "Lima: sunny. Oslo: sunny."
    assert unknown_fields(final) == []


def test_messages_events_have_no_unknown_field(anthropic_client: Any) -> None:
    stream = anthropic_client.messages.create(
        model=MODELS["anthropic-messages"], max_tokens=1000, tools=[MESSAGES_TOOL], stream=True,
        messages=[{"role": "user", "content": QUESTION}],
    )  # fmt: skip
    assert [field for event in stream for field in unknown_fields(event, event.type)] == []


# ---------------------------------------------------------------- google-genai


@pytest.fixture
def genai_client(url: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        genai = pytest.importorskip("google.genai")
    return genai.Client(api_key="k", http_options={"base_url": url})


INTERACTIONS_TOOL = {"type": "function", "name": "get_weather", "description": "Weather", "parameters": CITY}


@pytest.mark.filterwarnings("ignore")
def test_interactions_round_trip_with_thoughts(genai_client: Any) -> None:
    settings = {"model": MODELS["gemini-interactions"], "tools": [INTERACTIONS_TOOL], "store": False}
    answer = genai_client.interactions.create(input=QUESTION, **settings)
    assert answer.status == "requires_action"
    steps = [step.model_dump(exclude_none=True, mode="json") for step in answer.steps]
    assert [step["type"] for step in steps] == ["thought", "model_output", "function_call", "function_call"]
    results = [{"type": "function_result", "call_id": step["id"], "name": step["name"], "result": "sunny"}
               for step in steps if step["type"] == "function_call"]  # fmt: skip
    asked = {"type": "user_input", "content": [{"type": "text", "text": QUESTION}]}
    final = genai_client.interactions.create(input=[asked, *steps, *results], **settings)
    assert final.output_text == "Lima: sunny. Oslo: sunny."


@pytest.mark.filterwarnings("ignore")
def test_interactions_events_have_no_unknown_field(genai_client: Any) -> None:
    events = list(
        genai_client.interactions.create(
            model=MODELS["gemini-interactions"], input=QUESTION, tools=[INTERACTIONS_TOOL], store=False, stream=True,
            generation_config={"thinking_summaries": "auto"},
        )
    )  # fmt: skip
    assert events[-1].event_type == "interaction.completed"
    assert [field for event in events for field in unknown_fields(event, event.event_type)] == []
    assert not any(getattr(event, "is_unknown", False) for event in events)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_generate_content_round_trip_with_signature(url: str, version: str) -> None:
    genai = pytest.importorskip("google.genai")
    types = genai.types
    client = genai.Client(api_key="k", http_options={"base_url": url, "api_version": version})
    declared = types.FunctionDeclaration(name="get_weather", description="Weather", parameters_json_schema=CITY)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    model = MODELS["gemini-generate-content"]
    chunks = list(client.models.generate_content_stream(model=model, contents=QUESTION, config=config))
    assert chunks[-1].candidates[0].finish_reason.name == "STOP"
    answer = client.models.generate_content(model=model, contents=QUESTION, config=config)
    calls = [part.function_call for part in answer.candidates[0].content.parts if part.function_call]
    results = [types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "sunny"}))
               for call in calls]  # fmt: skip
    history = [
        types.Content(role="user", parts=[types.Part(text=QUESTION)]),
        answer.candidates[0].content,
        types.Content(role="user", parts=results),
    ]
    final = client.models.generate_content(model=model, contents=history, config=config)
    assert final.text == "Lima: sunny. Oslo: sunny."


# ---------------------------------------------------------------- errors

STATUSES = {
    400: ("BadRequestError", "BadRequestError"),
    401: ("AuthenticationError", "AuthenticationError"),
    403: ("PermissionDeniedError", "PermissionDeniedError"),
    404: ("NotFoundError", "NotFoundError"),
    429: ("RateLimitError", "RateLimitError"),
    500: ("InternalServerError", "InternalServerError"),
    529: ("InternalServerError", "OverloadedError"),
}


@pytest.mark.parametrize("status", STATUSES)
def test_each_status_is_the_packages_own_error(
    sim: Simulator, openai_client: Any, anthropic_client: Any, status: int
) -> None:
    import anthropic
    import openai

    sim.faults.append(Fault("status", status=status))
    with pytest.raises(openai.APIStatusError) as openai_error:
        openai_client.responses.create(model=MODELS["openai-responses"], input="Hi")
    with pytest.raises(openai.APIStatusError) as chat_error:
        openai_client.chat.completions.create(model=MODELS["openai-chat"], messages=[{"role": "user", "content": "Hi"}])
    with pytest.raises(anthropic.APIStatusError) as anthropic_error:
        anthropic_client.messages.create(
            model=MODELS["anthropic-messages"], max_tokens=10, messages=[{"role": "user", "content": "Hi"}]
        )
    names = (type(openai_error.value).__name__, type(chat_error.value).__name__, type(anthropic_error.value).__name__)
    assert (STATUSES[status][0], STATUSES[status][0], STATUSES[status][1]) == names


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("status", "name"), [(400, "ClientError"), (429, "ClientError"), (500, "ServerError"), (503, "ServerError")]
)
def test_googles_errors_are_the_packages_own(sim: Simulator, genai_client: Any, status: int, name: str) -> None:
    from google.genai import errors

    sim.faults.append(Fault("status", status=status))
    with pytest.raises(errors.APIError) as error:
        genai_client.models.generate_content(model=MODELS["gemini-generate-content"], contents="Hi")
    assert (name, status) == (type(error.value).__name__, error.value.code)


def test_an_error_event_inside_a_stream_raises_in_the_packages(
    sim: Simulator, openai_client: Any, anthropic_client: Any
) -> None:
    import anthropic
    import openai

    sim.faults.append(Fault("error_event", events=4, status=529))
    with pytest.raises(openai.APIError):
        list(openai_client.responses.create(model=MODELS["openai-responses"], input="Hi", stream=True))
    with pytest.raises(anthropic.APIStatusError) as error:
        list(
            anthropic_client.messages.create(
                model=MODELS["anthropic-messages"], max_tokens=100, stream=True, messages=[{"role": "user", "content": "Hi"}]
            )
        )
    assert error.value.type == "overloaded_error"
