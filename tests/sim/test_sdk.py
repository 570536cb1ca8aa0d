"""The official packages against the served simulator, without a patch: text, streams, tool round trips, the packages' own
tool runners and parsers, counting, stored answers, errors. (test_sdk_types.py: every event against the packages' types.)
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from lessonlib.sim import Fault, Simulator
from tests.sim.requests import CITY, MODELS
from tests.sim.test_sdk_types import unknown_fields

pytest.importorskip("uvicorn", reason="the served simulator needs lessonlib[serve]")

QUESTION = "What is the weather in Lima and in Oslo?"
ANSWER = "Lima: sunny. Oslo: sunny."
HI: list[Any] = [{"role": "user", "content": "Hello"}]
RESPONSES, CHAT, MESSAGES = (MODELS[name] for name in ("openai-responses", "openai-chat", "anthropic-messages"))
GEMINI = MODELS["gemini-interactions"]


class Leg(BaseModel):
    port: str
    hours: int | None


class Trip(BaseModel):
    """An output schema with everything in it: nesting, a list, a choice of words, something that may be null."""

    city: str
    season: Literal["spring", "autumn"]
    legs: list[Leg]


@pytest.fixture
def sim() -> Simulator:
    return Simulator()


@pytest.fixture
def url(sim: Simulator) -> Iterator[str]:
    from lessonlib.sim.server import running

    with running(sim) as address:
        yield address


# ---------------------------------------------------------------- openai


@pytest.fixture
def openai_client(url: str) -> Iterator[Any]:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(api_key="k", base_url=url + "/v1", max_retries=0) as client:
        yield client


RESPONSES_TOOL = {"type": "function", "name": "get_weather", "description": "Weather", "parameters": CITY, "strict": True}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": CITY}}


def outputs(calls: list[Any]) -> list[Any]:
    return [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]


def test_responses_round_trip_with_reasoning_as_the_guide_writes_it(openai_client: Any) -> None:
    """`input += response.output`, in a stream, with summaries, without stored state."""
    asked: list[Any] = [{"role": "user", "content": QUESTION}]
    settings = {"model": RESPONSES, "store": False, "tools": [RESPONSES_TOOL],
                "reasoning": {"effort": "low", "summary": "auto"}}  # fmt: skip
    with openai_client.responses.stream(input=asked, **settings) as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_response()
    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call", "function_call"]
    assert {"response.created", "response.reasoning_summary_text.delta", "response.completed"} <= set(kinds)
    whole = openai_client.responses.create(input=asked, **settings)
    calls = [item for item in whole.output if item.type == "function_call"]
    final = openai_client.responses.create(input=[*asked, *whole.output, *outputs(calls)], **settings)
    assert final.output_text == ANSWER
    assert final.usage.input_tokens_details.cached_tokens > 0
    assert unknown_fields(final) == []


def test_a_model_dump_with_its_nulls_is_refused_as_in_life(openai_client: Any) -> None:
    import openai

    settings = {"model": RESPONSES, "store": False, "tools": [RESPONSES_TOOL]}
    answer = openai_client.responses.create(input=QUESTION, **settings)
    dumped = [item.model_dump() for item in answer.output]
    calls = [item for item in answer.output if item.type == "function_call"]
    with pytest.raises(openai.BadRequestError) as error:
        openai_client.responses.create(input=[{"role": "user", "content": QUESTION}, *dumped, *outputs(calls)], **settings)
    assert error.value.code == "unknown_parameter"


def test_responses_state_on_the_server(openai_client: Any) -> None:
    """previous_response_id through a tool turn, an item_reference, retrieving, deleting."""
    import openai

    first = openai_client.responses.create(model=RESPONSES, input=QUESTION, tools=[RESPONSES_TOOL])
    calls = [item for item in first.output if item.type == "function_call"]
    final = openai_client.responses.create(
        model=RESPONSES, input=outputs(calls), previous_response_id=first.id, tools=[RESPONSES_TOOL]
    )
    assert final.output_text == ANSWER
    assert openai_client.responses.retrieve(final.id) == final
    references = [{"type": "item_reference", "id": item.id} for item in first.output]
    again = openai_client.responses.create(
        model=RESPONSES, input=[{"role": "user", "content": QUESTION}, *references, *outputs(calls)], tools=[RESPONSES_TOOL]
    )
    assert again.output_text == ANSWER
    events = list(openai_client.responses.retrieve(final.id, stream=True, starting_after=3))
    assert (events[0].sequence_number, events[-1].type) == (4, "response.completed")
    openai_client.responses.delete(final.id)
    with pytest.raises(openai.NotFoundError):
        openai_client.responses.retrieve(final.id)


def test_responses_in_the_background(openai_client: Any) -> None:
    queued, other = (openai_client.responses.create(model=RESPONSES, input="Hello", background=True) for _ in range(2))
    seen = [queued, *(openai_client.responses.retrieve(queued.id) for _ in range(2))]
    assert [one.status for one in seen] == ["queued", "in_progress", "completed"]
    assert seen[-1].output_text == "Hello!"
    assert openai_client.responses.cancel(other.id).status == "cancelled"
    assert openai_client.responses.retrieve(other.id).status == "cancelled"


@pytest.mark.parametrize("stream", [False, True])
def test_the_openai_packages_own_tool_runner(openai_client: Any, stream: bool) -> None:
    from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner

    function = RegisteredFunction(tool=RESPONSES_TOOL, execute=lambda arguments: f"{arguments['city']} is sunny")  # type: ignore[arg-type]
    runner = ResponsesToolRunner(functions=[function])
    params: Any = {"model": RESPONSES, "input": QUESTION, "store": False}
    assert runner.run(openai_client, params, stream=stream).output_text == "Lima: Lima is sunny. Oslo: Oslo is sunny."


def test_openai_parsers_get_what_their_schema_says(openai_client: Any) -> None:
    asked: list[Any] = [{"role": "user", "content": "A trip to Lima in spring."}]
    response = openai_client.responses.parse(model=RESPONSES, input=asked, text_format=Trip)
    completion = openai_client.chat.completions.parse(model=CHAT, messages=asked, response_format=Trip)
    for trip in (response.output_parsed, completion.choices[0].message.parsed):
        assert (trip.city, trip.season, len(trip.legs)) == ("Lima", "spring", 1)


def test_openai_counting_and_models(openai_client: Any) -> None:
    counted = openai_client.responses.input_tokens.count(model=RESPONSES, input=QUESTION, tools=[RESPONSES_TOOL])
    answered = openai_client.responses.create(model=RESPONSES, input=QUESTION, tools=[RESPONSES_TOOL])
    assert counted.input_tokens == answered.usage.input_tokens
    assert RESPONSES in [model.id for model in openai_client.models.list()]
    assert openai_client.models.retrieve("gpt-4o").owned_by == "openai"


def test_chat_round_trip(openai_client: Any) -> None:
    asked: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    settings = {"model": CHAT, "tools": [CHAT_TOOL]}
    with openai_client.chat.completions.stream(messages=asked, stream_options={"include_usage": True}, **settings) as stream:
        list(stream)
        answer = stream.get_final_completion()
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage.total_tokens > 0
    whole = openai_client.chat.completions.create(messages=asked, **settings).choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in whole.tool_calls]
    final = openai_client.chat.completions.create(messages=[*asked, whole, *results], n=2, **settings)
    assert [choice.message.content for choice in final.choices] == [ANSWER, ANSWER]


def test_chat_says_stop_after_a_named_choice(openai_client: Any) -> None:
    named: Any = {"type": "function", "function": {"name": "get_weather"}}
    for choice, reason in ((named, "stop"), ("required", "tool_calls")):
        answer = openai_client.chat.completions.create(model=CHAT, messages=HI, tools=[CHAT_TOOL], tool_choice=choice)
        assert (answer.choices[0].finish_reason, len(answer.choices[0].message.tool_calls)) == (reason, 1)


def test_openai_asynchronous(url: str) -> None:
    openai = pytest.importorskip("openai")

    async def talk() -> tuple[str, str, str]:
        async with openai.AsyncOpenAI(api_key="k", base_url=url + "/v1", max_retries=0) as client:
            whole = await client.responses.create(model=RESPONSES, input="Hello")
            async with client.responses.stream(model=RESPONSES, input="Hello") as stream:
                text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
            chunks = await client.chat.completions.create(model=CHAT, messages=HI, stream=True)
            said = "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])
            return whole.output_text, text, said

    assert asyncio.run(talk()) == ("Hello!", "Hello!", "Hello!")


# ---------------------------------------------------------------- anthropic


@pytest.fixture
def anthropic_client(url: str) -> Iterator[Any]:
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        yield client


MESSAGES_TOOL = {"name": "get_weather", "description": "Weather", "input_schema": CITY}


def test_messages_round_trip_with_thinking(anthropic_client: Any) -> None:
    asked: list[Any] = [{"role": "user", "content": QUESTION}]
    settings = {"model": MESSAGES, "max_tokens": 1000, "tools": [MESSAGES_TOOL],
                "thinking": {"type": "adaptive", "display": "summarized"}}  # fmt: skip
    with anthropic_client.messages.stream(messages=asked, **settings) as stream:
        answer = stream.get_final_message()
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.stop_reason == "tool_use"
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}
               for block in answer.content if block.type == "tool_use"]  # fmt: skip
    history = [*asked, {"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    final = anthropic_client.messages.create(messages=history, **settings)
    assert final.content[-1].text == ANSWER
    assert unknown_fields(final) == []


@pytest.mark.parametrize("question", [QUESTION, QUESTION + " With redacted thinking."])
def test_a_system_message_may_stand_behind_the_results(anthropic_client: Any, question: str) -> None:
    settings = {"model": MESSAGES, "max_tokens": 1000, "tools": [MESSAGES_TOOL]}
    asked: list[Any] = [{"role": "user", "content": question}]
    answer = anthropic_client.messages.create(messages=asked, **settings)
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}
               for block in answer.content if block.type == "tool_use"]  # fmt: skip
    history = [*asked, {"role": "assistant", "content": answer.content}, {"role": "user", "content": results},
               {"role": "system", "content": "Be brief."}]  # fmt: skip
    assert anthropic_client.messages.create(messages=history, **settings).content[-1].text == ANSWER


@pytest.mark.parametrize("stream", [False, True])
def test_the_anthropic_packages_own_tool_runner(anthropic_client: Any, stream: bool) -> None:
    from anthropic import beta_tool

    @beta_tool
    def get_weather(city: str) -> str:
        """Weather of a city."""
        return f"{city} is sunny"

    runner = anthropic_client.beta.messages.tool_runner(
        model=MESSAGES, max_tokens=1000, tools=[get_weather], messages=[{"role": "user", "content": QUESTION}], stream=stream
    )
    assert runner.until_done().content[-1].text == "Lima: Lima is sunny. Oslo: Oslo is sunny."


def test_the_tool_runner_resumes_a_paused_turn(sim: Simulator, anthropic_client: Any) -> None:
    runner = anthropic_client.beta.messages.tool_runner(
        model=MESSAGES, max_tokens=1000, tools=[MESSAGES_TOOL],
        messages=[{"role": "user", "content": "Please search the web."}],
    )  # fmt: skip
    assert runner.until_done().content[-1].text.startswith("The search found one page")
    refused = [refusal.code for _, _, refusal in sim.requests if refusal is not None]
    assert (refused, len(sim.requests)) == (["thread_unsupported_request"], 3)  # it offers a thread first, and does without


def test_anthropic_parser_counting_and_models(anthropic_client: Any) -> None:
    asked: list[Any] = [{"role": "user", "content": "A trip to Lima in spring."}]
    parsed = anthropic_client.messages.parse(model=MESSAGES, max_tokens=1000, messages=asked, output_format=Trip)
    assert (parsed.parsed_output.city, parsed.parsed_output.season) == ("Lima", "spring")
    counted = anthropic_client.messages.count_tokens(model=MESSAGES, messages=asked, tools=[MESSAGES_TOOL])
    answered = anthropic_client.messages.create(model=MESSAGES, max_tokens=1000, messages=asked, tools=[MESSAGES_TOOL])
    assert counted.input_tokens == answered.usage.input_tokens
    assert MESSAGES in [model.id for model in anthropic_client.models.list()]
    assert anthropic_client.models.retrieve(MESSAGES).type == "model"


def test_anthropic_asynchronous(url: str) -> None:
    anthropic = pytest.importorskip("anthropic")
    from anthropic import beta_async_tool

    @beta_async_tool
    async def get_weather(city: str) -> str:
        """Weather of a city."""
        return "sunny"

    async def talk() -> tuple[str, str]:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as client:
            async with client.messages.stream(model=MESSAGES, max_tokens=1000, messages=HI) as stream:
                text = "".join([piece async for piece in stream.text_stream])
            runner = client.beta.messages.tool_runner(
                model=MESSAGES, max_tokens=1000, tools=[get_weather], messages=[{"role": "user", "content": QUESTION}]
            )
            return text, (await runner.until_done()).content[-1].text

    assert asyncio.run(talk()) == ("Hello!", ANSWER)


# ---------------------------------------------------------------- google-genai


@pytest.fixture
def genai_client(url: str) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        genai = pytest.importorskip("google.genai")
    with closing(genai.Client(api_key="k", http_options={"base_url": url})) as client:
        yield client


INTERACTIONS_TOOL = {"type": "function", "name": "get_weather", "description": "Weather", "parameters": CITY}


@pytest.mark.filterwarnings("ignore")
def test_interactions_round_trip_with_thoughts(genai_client: Any) -> None:
    settings = {"model": GEMINI, "tools": [INTERACTIONS_TOOL], "store": False}
    answer = genai_client.interactions.create(input=QUESTION, **settings)
    assert answer.status == "requires_action"
    steps = [step.model_dump(exclude_none=True, mode="json") for step in answer.steps]
    assert [step["type"] for step in steps] == ["thought", "model_output", "function_call", "function_call"]
    results = [{"type": "function_result", "call_id": step["id"], "name": step["name"], "result": "sunny"}
               for step in steps if step["type"] == "function_call"]  # fmt: skip
    asked = {"type": "user_input", "content": [{"type": "text", "text": QUESTION}]}
    final = genai_client.interactions.create(input=[asked, *steps, *results], **settings)
    assert final.output_text == ANSWER


@pytest.mark.filterwarnings("ignore")
def test_interactions_state_on_the_server(genai_client: Any) -> None:
    first = genai_client.interactions.create(model=GEMINI, input=QUESTION, tools=[INTERACTIONS_TOOL])
    results = [{"type": "function_result", "call_id": step.id, "name": step.name, "result": {"sky": "sunny"}}
               for step in first.steps if step.type == "function_call"]  # fmt: skip
    final = genai_client.interactions.create(
        model=GEMINI, input=results, previous_interaction_id=first.id, tools=[INTERACTIONS_TOOL]
    )
    assert "sunny" in final.output_text
    assert genai_client.interactions.get(final.id).output_text == final.output_text
    events = list(genai_client.interactions.get(final.id, stream=True, last_event_id="1"))
    assert (events[0].event_id, events[-1].event_type) == ("2", "interaction.completed")
    running = genai_client.interactions.create(model=GEMINI, input="Hello", background=True)
    assert running.status == "in_progress"
    assert [genai_client.interactions.get(running.id).status for _ in range(2)] == ["in_progress", "completed"]
    genai_client.interactions.delete(final.id)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("store", [False, True])
def test_the_genai_package_continues_an_interaction_by_itself(sim: Simulator, genai_client: Any, store: bool) -> None:
    answer = genai_client.interactions.create(
        model=GEMINI, input="Please search the web.", store=store, automatic_continuation=True
    )
    assert answer.output_text.endswith("it says yes.")
    assert [refusal for _, _, refusal in sim.requests] == [None, None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_generate_content_round_trip_with_signature(url: str, version: str) -> None:
    genai = pytest.importorskip("google.genai")
    types = genai.types
    with closing(genai.Client(api_key="k", http_options={"base_url": url, "api_version": version})) as client:
        round_trip(types, client)


def round_trip(types: Any, client: Any) -> None:
    declared = types.FunctionDeclaration(name="get_weather", description="Weather", parameters_json_schema=CITY)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    chunks = list(client.models.generate_content_stream(model=GEMINI, contents=QUESTION, config=config))
    assert chunks[-1].candidates[0].finish_reason.name == "STOP"
    answer = client.models.generate_content(model=GEMINI, contents=QUESTION, config=config)
    calls = [part.function_call for part in answer.candidates[0].content.parts if part.function_call]
    results = [types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "sunny"}))
               for call in calls]  # fmt: skip
    history = [
        types.Content(role="user", parts=[types.Part(text=QUESTION)]),
        answer.candidates[0].content,
        types.Content(role="user", parts=results),
    ]
    final = client.models.generate_content(model=GEMINI, contents=history, config=config)
    assert final.text == ANSWER


@pytest.mark.filterwarnings("ignore")
def test_the_genai_package_calls_python_functions_by_itself(genai_client: Any) -> None:
    def get_weather(city: str) -> str:
        """Weather of a city."""
        return f"{city} is sunny"

    answer = genai_client.models.generate_content(model=GEMINI, contents=QUESTION, config={"tools": [get_weather]})
    assert answer.text == "Lima: Lima is sunny. Oslo: Oslo is sunny."


@pytest.mark.filterwarnings("ignore")
def test_genai_parser_counting_models_and_continuation(sim: Simulator, genai_client: Any) -> None:
    config = {"response_mime_type": "application/json", "response_schema": Trip}
    parsed = genai_client.models.generate_content(model=GEMINI, contents="A trip to Lima in spring.", config=config).parsed
    assert (parsed.city, parsed.season) == ("Lima", "spring")
    assert genai_client.models.count_tokens(model=GEMINI, contents=QUESTION).total_tokens > 5
    assert f"models/{GEMINI}" in [model.name for model in genai_client.models.list()]
    before = len(sim.requests)
    answer = genai_client.models.generate_content(model=GEMINI, contents="Please search the web.")
    assert answer.text.endswith("it says yes.")
    assert len(sim.requests) == before + 2


@pytest.mark.filterwarnings("ignore")
def test_genai_asynchronous(genai_client: Any) -> None:
    async def talk() -> tuple[str, str]:
        whole = await genai_client.aio.models.generate_content(model=GEMINI, contents="Hello")
        stream = await genai_client.aio.models.generate_content_stream(model=GEMINI, contents="Hello")
        text = "".join([chunk.text or "" async for chunk in stream])
        await genai_client.aio.aclose()
        return whole.text, text

    assert asyncio.run(talk()) == ("Hello!", "Hello!")


# ---------------------------------------------------------------- errors

STATUSES = {
    400: ("BadRequestError", "BadRequestError"),
    401: ("AuthenticationError", "AuthenticationError"),
    402: ("APIStatusError", "PaymentRequiredError"),
    403: ("PermissionDeniedError", "PermissionDeniedError"),
    404: ("NotFoundError", "NotFoundError"),
    408: ("APIStatusError", "RequestTimeoutError"),
    409: ("ConflictError", "ConflictError"),
    413: ("APIStatusError", "ContentTooLargeError"),
    422: ("UnprocessableEntityError", "UnprocessableEntityError"),
    429: ("RateLimitError", "RateLimitError"),
    500: ("InternalServerError", "InternalServerError"),
    503: ("InternalServerError", "ServiceUnavailableError"),
    504: ("InternalServerError", "GatewayTimeoutError"),
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
        openai_client.responses.create(model=RESPONSES, input="Hi")
    with pytest.raises(openai.APIStatusError) as chat_error:
        openai_client.chat.completions.create(model=CHAT, messages=HI)
    with pytest.raises(anthropic.APIStatusError) as anthropic_error:
        anthropic_client.messages.create(model=MESSAGES, max_tokens=10, messages=HI)
    names = (type(openai_error.value).__name__, type(chat_error.value).__name__, type(anthropic_error.value).__name__)
    assert (STATUSES[status][0], STATUSES[status][0], STATUSES[status][1]) == names
    assert anthropic_error.value.request_id == anthropic_error.value.body["request_id"]  # type: ignore[index]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("status", "name", "interactions"),
    [(400, "ClientError", "BadRequestError"), (401, "ClientError", "AuthenticationError"),
     (403, "ClientError", "PermissionDeniedError"), (404, "ClientError", "NotFoundError"),
     (409, "ClientError", "ConflictError"), (422, "ClientError", "UnprocessableEntityError"),
     (429, "ClientError", "RateLimitError"), (500, "ServerError", "InternalServerError"),
     (503, "ServerError", "InternalServerError")],
)  # fmt: skip
def test_googles_errors_are_the_packages_own(
    sim: Simulator, genai_client: Any, url: str, status: int, name: str, interactions: str
) -> None:
    from google.genai import errors

    sim.faults.append(Fault("status", status=status, retry_after=0.01))
    with pytest.raises(errors.APIError) as error:
        genai_client.models.generate_content(model=GEMINI, contents="Hi")
    assert (name, status) == (type(error.value).__name__, error.value.code)
    assert error.value.details["error"]["details"][0]["retryDelay"] == "0.01s"  # type: ignore[index]
    with pytest.raises(Exception, match="told to fail") as other:
        genai_client.interactions.create(model=GEMINI, input="Hi")
    assert type(other.value).__name__ == interactions


def test_an_error_event_inside_a_stream_raises_in_the_packages(
    sim: Simulator, openai_client: Any, anthropic_client: Any
) -> None:
    import anthropic
    import openai

    sim.faults.append(Fault("error_event", events=4, status=529))
    with pytest.raises(openai.APIError):
        list(openai_client.responses.create(model=RESPONSES, input="Hi", stream=True))
    with pytest.raises(openai.APIError):
        list(openai_client.chat.completions.create(model=CHAT, messages=HI, stream=True))
    with pytest.raises(anthropic.APIStatusError) as error:
        list(anthropic_client.messages.create(model=MESSAGES, max_tokens=100, stream=True, messages=HI))
    assert error.value.type == "overloaded_error"


def test_the_packages_wait_as_they_are_told(sim: Simulator, url: str) -> None:
    """529, then success: the package asks again by itself."""
    openai = pytest.importorskip("openai")
    sim.faults.append(Fault("status", status=503, retry_after=0.01, at=1))
    with openai.OpenAI(api_key="k", base_url=url + "/v1") as client:
        assert client.responses.create(model=RESPONSES, input="Hello").output_text == "Hello!"
    assert len(sim.requests) == 2
