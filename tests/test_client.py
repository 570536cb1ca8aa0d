"""Client and AsyncClient: the three checks, the timeouts, closing early, and keys that stay where they belong.

Both colours run every test. Where the socket matters (resets, silence, closing) a real one on 127.0.0.1 is used, elsewhere
httpx's MockTransport.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import logging
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from lessonlib import exchange as exchange_module
from lessonlib.client import AsyncClient, Client, Timeouts
from lessonlib.errors import (
    APIError,
    EventTooLarge,
    IncompleteStream,
    InvalidRequest,
    LessonError,
    NotAStream,
    ProtocolError,
    TransportError,
    TransportTimeout,
)
from lessonlib.exchange import may_be_events
from lessonlib.types import Done, Event, PartDone, TextDelta
from lessonlib.wire import WIRES, WireFormat
from lessonlib.wire.anthropic_messages import AnthropicMessages
from lessonlib.wire.openai_responses import OpenAIResponses
from tests.exchange import (
    ANSWER,
    ASK,
    BEGINNING,
    ERROR,
    KEY,
    PING,
    STREAM,
    WHOLE,
    AnyClient,
    Body,
    delta,
    fails,
    generate,
    replies,
    sse,
    stream,
    text_of,
    wire_at,
)
from tests.servers import EVENT_STREAM, Handler, Peer, Server

Serve = Callable[[Handler], Server]

SILENCE = 0.4
"""A timeout, in seconds. Long enough for what comes before the silence to arrive on a busy machine."""


# ---------------------------------------------------------------- two colours, one test


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def colour(request: pytest.FixtureRequest) -> type[AnyClient]:
    """The class under test."""
    cls: type[AnyClient] = request.param
    return cls


def never(_: httpx.Request) -> httpx.Response:
    raise AssertionError("nothing may be sent")


# ---------------------------------------------------------------- a good answer


def test_generate_returns_the_whole_answer(colour: type[AnyClient], serve: Serve) -> None:
    server = serve(lambda peer: peer.answer(WHOLE))
    response = generate(colour(wire_at(server)))
    assert (response.text, response.stop, response.usage and response.usage.output_tokens) == ("At the quay.", "end", 5)
    asked = server.asked[0]
    assert (asked.method, asked.path, asked.json["messages"]) == (
        "POST", "/v1/messages", [{"role": "user", "content": [{"type": "text", "text": "Where is the ferry?"}]}],
    )  # fmt: skip
    assert asked.headers["x-api-key"] == KEY
    assert "stream" not in asked.json


@pytest.mark.parametrize("size", [1, 2, 3, 7, None])
def test_stream_yields_the_same_events_however_the_network_cuts_them(
    colour: type[AnyClient], serve: Serve, size: int | None
) -> None:
    server = serve(lambda peer: peer.stream(STREAM, size))
    events = stream(colour(wire_at(server)))
    assert [type(event) for event in events] == [TextDelta, TextDelta, PartDone, Done]
    assert text_of(events) == "At the quay."
    assert server.asked[0].json["stream"] is True


def test_stream_and_generate_give_equal_answers(colour: type[AnyClient], serve: Serve) -> None:
    server = serve(lambda peer: peer.stream(STREAM) if peer.asked.json.get("stream") else peer.answer(WHOLE))
    whole = generate(colour(wire_at(server)))
    last = stream(colour(wire_at(server)))[-1]
    assert isinstance(last, Done)
    assert last.response.message == whole.message
    assert last.response.usage == whole.usage


def test_compressed_bodies_are_read(colour: type[AnyClient], serve: Serve) -> None:
    def answer(peer: Peer) -> None:
        assert "gzip" in peer.asked.headers["accept-encoding"]
        if peer.asked.json.get("stream"):
            peer.stream(gzip.compress(STREAM), 20, {**EVENT_STREAM, "content-encoding": "gzip"})
        else:
            peer.answer(gzip.compress(WHOLE), headers={"content-encoding": "gzip"})

    server = serve(answer)
    assert generate(colour(wire_at(server))).text == "At the quay."
    assert text_of(stream(colour(wire_at(server)))) == "At the quay."


def test_connection_is_used_again_for_whole_answers(colour: type[AnyClient], serve: Serve) -> None:
    server = serve(lambda peer: peer.answer(WHOLE))
    client = colour(wire_at(server))
    if isinstance(client, Client):
        with client:
            assert [client.generate(ASK).text for _ in range(3)] == ["At the quay."] * 3
    else:

        async def thrice(client: AsyncClient) -> list[str]:
            async with client:
                return [(await client.generate(ASK)).text for _ in range(3)]

        assert asyncio.run(thrice(client)) == ["At the quay."] * 3
    assert server.connections == 1


def test_sync_client_works_inside_a_running_event_loop(serve: Serve) -> None:
    """A notebook cell runs inside one."""
    server = serve(lambda peer: peer.stream(STREAM))

    async def cell() -> str:
        with Client(wire_at(server)) as client:
            return text_of(list(client.stream(ASK)))

    assert asyncio.run(cell()) == "At the quay."


def test_more_than_a_hundred_streams_at_the_same_time(serve: Serve) -> None:
    """httpx's own limit would let the 101st wait, and in the end fail, while the others are being read."""
    together = threading.Barrier(120)

    def answer(peer: Peer) -> None:
        together.wait(20)
        peer.stream(STREAM)

    server = serve(answer)
    texts: list[str] = []
    with Client(wire_at(server)) as client:
        threads = [threading.Thread(target=lambda: texts.append(text_of(list(client.stream(ASK))))) for _ in range(120)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert texts == ["At the quay."] * 120


def test_one_client_serves_several_threads(serve: Serve) -> None:
    server = serve(lambda peer: peer.answer(WHOLE))
    texts: list[str] = []
    with Client(wire_at(server)) as client:
        threads = [threading.Thread(target=lambda: texts.append(client.generate(ASK).text)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == ["At the quay."] * 8


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_async_client_outlives_its_first_event_loop(serve: Serve) -> None:
    """`asyncio.run` twice, as scripts do: the connection that the first loop kept alive is of no use to the second. (That
    nobody closed it is what the ignored warning says.)"""
    server = serve(lambda peer: peer.answer(WHOLE))
    client = AsyncClient(wire_at(server))
    assert [asyncio.run(client.generate(ASK)).text for _ in range(3)] == ["At the quay."] * 3
    del client
    gc.collect()


# ---------------------------------------------------------------- check 1: the HTTP status

OPENAI_429 = '{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}'
OPENAI_QUOTA = '{"error":{"message":"no money","type":"insufficient_quota","param":null,"code":"credit_balance_exhausted"}}'
OPENAI_400 = '{"error":{"message":"Unsupported parameter","type":"invalid_request_error","param":"temperature","code":"unsupported_parameter"}}'  # noqa: E501
GOOGLE_429 = '{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}'

HTTP_ERRORS = [
    ("openai-responses", 429, OPENAI_429, "requests", "rate_limit_exceeded", True),
    ("openai-responses", 429, OPENAI_QUOTA, "insufficient_quota", "credit_balance_exhausted", False),
    ("openai-responses", 400, OPENAI_400, "invalid_request_error", "unsupported_parameter", False),
    ("openai-responses", 500, "upstream connect error", None, None, True),
    ("openai-chat", 429, OPENAI_429, "requests", "rate_limit_exceeded", True),
    ("openai-chat", 400, OPENAI_400, "invalid_request_error", "unsupported_parameter", False),
    ("openai-chat", 503, "", None, None, True),
    ("anthropic-messages", 529, ERROR.decode(), "overloaded_error", None, True),
    ("anthropic-messages", 401, '{"type":"error","error":{"type":"authentication_error","message":"bad key"}}', "authentication_error", None, False),  # noqa: E501
    ("anthropic-messages", 502, "<html><body>Bad Gateway</body></html>", None, None, True),
    ("gemini-interactions", 429, '{"error":{"code":"rate_limit_exceeded","message":"slow down"}}', "rate_limit_exceeded", "rate_limit_exceeded", True),  # noqa: E501
    ("gemini-interactions", 404, '[{"error":{"code":"model_not_found","message":"no such model"}}]', "model_not_found", "model_not_found", False),  # noqa: E501
    ("gemini-generate-content", 429, GOOGLE_429, "RESOURCE_EXHAUSTED", "429", True),
    ("gemini-generate-content", 503, '[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]', "UNAVAILABLE", "503", True),  # noqa: E501
    ("gemini-generate-content", 404, "", None, None, False),
]  # fmt: skip


def wire_named(name: str) -> WireFormat:
    return WIRES[name](model="m", api_key=KEY)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("name", "status", "body", "type_", "code", "retryable"), HTTP_ERRORS, ids=lambda v: str(v)[:24] if v else "-"
)
def test_http_errors(
    colour: type[AnyClient],
    name: str,
    status: int,
    body: str,
    type_: str | None,
    code: str | None,
    retryable: bool,
    streamed: bool,
) -> None:
    """The lesson's TestHTTPErrors: every vendor's error body gives the same kind of error."""
    transport = replies(body.encode(), status, {"content-type": "application/json", "retry-after": "3"})
    error = fails(colour(wire_named(name), transport), streamed)
    assert isinstance(error, APIError)
    assert (error.status, error.type, error.code, error.retryable) == (status, type_, code, retryable)
    assert error.retry_after == 3.0
    assert error.message


def test_error_body_is_read_only_so_far(colour: type[AnyClient], serve: Serve) -> None:
    def answer(peer: Peer) -> None:
        peer.head(500, {"content-type": "text/plain"})
        for _ in range(100_000):  # 100 MB, if the client wants them
            peer.chunk(b"noise " * 170)
        raise AssertionError("the client read everything")

    error = fails(colour(wire_at(serve(answer))), streamed=False)
    assert isinstance(error, APIError)
    assert error.status == 500
    assert len(error.message) < 1000


def test_status_survives_a_body_that_is_cut_off(colour: type[AnyClient], serve: Serve) -> None:
    def answer(peer: Peer) -> None:
        peer.head(529, {"content-type": "application/json", "content-length": "9999", "retry-after-ms": "1500"})
        peer.send(ERROR)
        peer.hang_up()

    error = fails(colour(wire_at(serve(answer))))
    assert isinstance(error, APIError)
    assert (error.status, error.type, error.retry_after) == (529, "overloaded_error", 1.5)


def test_status_survives_a_body_that_never_comes(colour: type[AnyClient], serve: Serve) -> None:
    def answer(peer: Peer) -> None:
        peer.head(503, {"content-type": "application/json", "content-length": "9999"})
        peer.wait_until_gone(10)

    error = fails(colour(wire_at(serve(answer)), timeout=Timeouts(read=SILENCE)))
    assert isinstance(error, APIError)
    assert (error.status, error.retryable) == (503, True)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_an_error_that_names_the_target_and_sends_nothing_there(
    colour: type[AnyClient], serve: Serve, status: int
) -> None:
    other = serve(lambda peer: peer.answer(WHOLE))
    server = serve(lambda peer: peer.answer(b"", status, {"location": f"{other.url}/v1/messages?key={KEY}"}))
    error = fails(colour(wire_at(server)), streamed=False)
    assert isinstance(error, APIError)
    assert (error.status, error.retryable) == (status, False)
    assert other.url in error.message
    assert "base_url" in error.message
    assert KEY not in str(error)
    assert other.asked == []


def test_redirect_is_not_followed_by_a_client_of_the_users_own_either(serve: Serve) -> None:
    other = serve(lambda peer: peer.answer(WHOLE))
    server = serve(lambda peer: peer.answer(b"", 307, {"location": other.url}))
    with httpx.Client(follow_redirects=True) as http:
        assert isinstance(fails(Client(wire_at(server), http=http)), APIError)
    assert other.asked == []


def test_nothing_is_retried(colour: type[AnyClient], serve: Serve) -> None:
    server = serve(lambda peer: peer.answer(ERROR, 529, {"retry-after": "0"}))
    assert fails(colour(wire_at(server))).retryable
    assert len(server.asked) == 1


# ---------------------------------------------------------------- check 2: the content type

PAGE = b"<!doctype html><html><title>Sign in</title></html>"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html; charset=utf-8", PAGE),
        ("application/json", WHOLE),
        ("text/plain", b"upstream is busy"),
        ("application/x-ndjson", b'{"a":1}\n{"a":2}\n'),
        ("application/json", STREAM),
    ],
)
def test_stream_asked_and_something_else_came(colour: type[AnyClient], kind: str, body: bytes) -> None:
    error = fails(colour(wire_at(), replies(body, headers={"content-type": kind})))
    assert isinstance(error, NotAStream)
    assert error.content_type == kind.partition(";")[0]
    assert error.body == body[:2000].decode()
    assert body[:20].decode().split()[0] in error.message
    assert not error.retryable


def test_mislabelled_stream_is_refused_with_a_hint(colour: type[AnyClient]) -> None:
    error = fails(colour(wire_at(), replies(STREAM, headers={"content-type": "application/json"})))
    assert "mislabels" in error.message


def test_json_error_with_status_200_where_a_stream_was_asked(colour: type[AnyClient]) -> None:
    error = fails(colour(wire_at(), replies(ERROR, headers={"content-type": "application/json"})))
    assert isinstance(error, APIError)
    assert (error.status, error.type, error.retryable) == (200, "overloaded_error", True)


def test_json_error_with_status_200_where_a_whole_answer_was_asked(colour: type[AnyClient]) -> None:
    headers = {"content-type": "application/json", "retry-after": "2", "request-id": "req_9"}
    error = fails(colour(wire_at(), replies(ERROR.replace(b',"request_id":"req_7"', b""), headers=headers)), streamed=False)
    assert isinstance(error, APIError)
    assert (error.type, error.retry_after, error.request_id) == ("overloaded_error", 2.0, "req_9")


@pytest.mark.parametrize("name", ["gemini-interactions", "gemini-generate-content"])
def test_error_in_a_list_of_one(colour: type[AnyClient], name: str) -> None:
    """Google's services answer so when a stream was asked for."""
    transport = replies(f"[{GOOGLE_429}]".encode(), headers={"content-type": "application/json"})
    error = fails(colour(wire_named(name), transport))
    assert isinstance(error, APIError)
    assert error.message == "slow down"


def test_stream_without_a_content_type_is_read_if_it_is_one(colour: type[AnyClient]) -> None:
    assert text_of(stream(colour(wire_at(), replies(b"\n" + STREAM)))) == "At the quay."


@pytest.mark.parametrize(
    ("body", "kind"), [(WHOLE, NotAStream), (PAGE, NotAStream), (ERROR, APIError), (b"", IncompleteStream)]
)
def test_body_without_a_content_type_that_is_no_stream(
    colour: type[AnyClient], body: bytes, kind: type[LessonError]
) -> None:
    assert type(fails(colour(wire_at(), replies(body)))) is kind


@pytest.mark.parametrize("head", [b"data: 1", b"d", b": hi", b"event: x", b"\xef\xbb\xbfdata", b"\xef", b"id: 3"])
def test_first_bytes_that_may_be_a_stream(head: bytes) -> None:
    assert may_be_events(head) is True


@pytest.mark.parametrize(("kind", "body"), [("text/event-stream", STREAM), ("text/html", PAGE), ("text/plain", b"busy")])
def test_whole_answer_asked_and_something_else_came(colour: type[AnyClient], kind: str, body: bytes) -> None:
    error = fails(colour(wire_at(), replies(body, headers={"content-type": kind})), streamed=False)
    assert isinstance(error, NotAStream)
    assert kind in error.message


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "text/plain", "text/event-stream", ""])
def test_whole_answer_is_read_under_any_name(colour: type[AnyClient], kind: str) -> None:
    headers = {"content-type": kind} if kind else {}
    assert generate(colour(wire_at(), replies(WHOLE, headers=headers))).text == "At the quay."


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"", IncompleteStream), (WHOLE[:-20], IncompleteStream), (b"no json", ProtocolError), (b'{"id": 3}', ProtocolError),
     (b"[]", ProtocolError), (b'{"type":"message","content":[3],"usage":7}', None)],
)  # fmt: skip
def test_whole_answer_that_is_none(colour: type[AnyClient], body: bytes, kind: type[LessonError] | None) -> None:
    client = colour(wire_at(), replies(body, headers={"content-type": "application/json"}))
    if kind is None:  # odd, but the wire format can read it
        assert generate(client).usage is None
    else:
        assert type(fails(client, streamed=False)) is kind


def test_whole_answer_has_a_limit(colour: type[AnyClient], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "MAX_BODY_BYTES", 100)
    error = fails(colour(wire_at(), replies(WHOLE, headers={"content-type": "application/json"})), streamed=False)
    assert isinstance(error, ProtocolError)


# ---------------------------------------------------------------- check 3: the protocol's own end


def test_anthropic_stream_truncated_is_error(colour: type[AnyClient], serve: Serve) -> None:
    """The lesson's TestAnthropicStreamTruncatedIsError: text was shown, a call's arguments had begun, then a clean end."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    cut = BEGINNING + sse(
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"city":"Ber'}},
    )
    server = serve(lambda peer: peer.stream(cut))
    seen: list[Event] = []
    with pytest.raises(IncompleteStream) as caught:
        stream(colour(wire_at(server)), seen=seen)
    assert text_of(seen) == "At the "
    partial = caught.value.partial
    assert partial is not None
    assert partial.text == "At the "
    assert [(call.name, call.args) for call in partial.tool_calls] == [("get_weather", None)]


def test_no_prefix_of_a_stream_is_a_success(colour: type[AnyClient]) -> None:
    complete = len(STREAM) - 2  # the blank line may be missing
    for end in range(0, complete, 11):
        client = colour(wire_at(), replies(STREAM[:end], headers=EVENT_STREAM))
        assert isinstance(fails(client), IncompleteStream)


def test_events_before_an_error_in_the_same_read_are_delivered(colour: type[AnyClient]) -> None:
    body = BEGINNING + sse({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    seen: list[Event] = []
    with pytest.raises(APIError) as caught:
        stream(colour(wire_at(), replies(body, headers={**EVENT_STREAM, "request-id": "req_5"})), seen=seen)
    assert text_of(seen) == "At the "
    assert caught.value.partial is not None
    assert (caught.value.partial.text, caught.value.request_id) == ("At the ", "req_5")


def test_bare_error_line_in_a_stream_is_the_error(colour: type[AnyClient]) -> None:
    error = fails(colour(wire_at(), replies(BEGINNING + ERROR + b"\n", headers=EVENT_STREAM)))
    assert isinstance(error, APIError)
    assert error.type == "overloaded_error"


def test_body_after_the_end_is_not_read_and_the_connection_is_closed(colour: type[AnyClient], serve: Serve) -> None:
    gone: list[bool] = []

    def answer(peer: Peer) -> None:
        peer.head(200, EVENT_STREAM)
        peer.chunk(STREAM + b"data: {this is not JSON}\n\n")
        gone.append(peer.wait_until_gone(2))  # no last chunk: a client that waits for it waits for ever

    server = serve(answer)
    assert text_of(stream(colour(wire_at(server)))) == "At the quay."
    server.stop()
    assert gone == [True]


def test_connection_is_closed_before_done_is_handed_out(serve: Serve) -> None:
    """A consumer may keep the iterator after Done, or stop right there."""
    server, gone = until_gone(serve)
    with Client(wire_at(server)) as client:
        events = client.stream(ASK)
        while not isinstance(next(events), Done):
            pass
        assert gone.wait(2)
        events.close()


def test_async_connection_is_closed_before_done_is_handed_out(serve: Serve) -> None:
    server, gone = until_gone(serve)

    async def ask() -> None:
        async with AsyncClient(wire_at(server)) as client, contextlib.aclosing(client.stream(ASK)) as events:
            while not isinstance(await anext(events), Done):
                pass
            assert await asyncio.to_thread(gone.wait, 2)

    asyncio.run(ask())


def until_gone(serve: Serve) -> tuple[Server, threading.Event]:
    """A server that sends a whole stream but not the end of the body, and an event for the client's closing."""
    gone = threading.Event()

    def answer(peer: Peer) -> None:
        peer.head(200, EVENT_STREAM)
        peer.chunk(STREAM)
        if peer.wait_until_gone(2):
            gone.set()

    return serve(answer), gone


# ---------------------------------------------------------------- closing early


def endless(gone: threading.Event) -> Handler:
    """A stream that goes on until the client closes the connection."""

    def answer(peer: Peer) -> None:
        peer.head(200, EVENT_STREAM)
        peer.chunk(BEGINNING)
        peer.chunk(sse(delta("a"), delta("b"), delta("c")))
        if peer.wait_until_gone(2):
            gone.set()

    return answer


def test_stream_break_closes_connection(serve: Serve) -> None:
    """The lesson's TestStreamBreakClosesConnection: three events, then break; the server notices within two seconds."""
    gone = threading.Event()
    seen = []
    with Client(wire_at(serve(endless(gone)))) as client:
        for event in client.stream(ASK):
            seen.append(event)
            if len(seen) == 3:
                break
        assert gone.wait(2)


def test_deleting_the_iterator_closes_connection(serve: Serve) -> None:
    gone = threading.Event()
    with Client(wire_at(serve(endless(gone)))) as client:
        events = client.stream(ASK)
        next(events)
        del events
        gc.collect()
        assert gone.wait(2)


def test_exception_in_the_consumer_closes_connection(serve: Serve) -> None:
    gone = threading.Event()

    def show(client: Client) -> None:
        for _ in client.stream(ASK):
            raise ZeroDivisionError

    with Client(wire_at(serve(endless(gone)))) as client:
        with pytest.raises(ZeroDivisionError):
            show(client)
        assert gone.wait(2)


def test_closing_sync_iterator_closes_connection(serve: Serve) -> None:
    gone = threading.Event()
    with Client(wire_at(serve(endless(gone)))) as client:
        with contextlib.closing(client.stream(ASK)) as events:
            next(events)
        assert gone.wait(2)


def test_aclose_closes_connection(serve: Serve) -> None:
    gone = threading.Event()

    async def show() -> None:
        async with AsyncClient(wire_at(serve(endless(gone)))) as client:
            async with contextlib.aclosing(client.stream(ASK)) as events:
                async for _ in events:
                    break
            assert await asyncio.to_thread(gone.wait, 2)

    asyncio.run(show())


def test_exception_in_the_async_consumer_closes_connection(serve: Serve) -> None:
    gone = threading.Event()

    async def fail_at_first_event(client: AsyncClient) -> None:
        async with contextlib.aclosing(client.stream(ASK)) as events:
            async for _ in events:
                raise ZeroDivisionError

    async def show() -> None:
        async with AsyncClient(wire_at(serve(endless(gone)))) as client:
            with pytest.raises(ZeroDivisionError):
                await fail_at_first_event(client)
            assert await asyncio.to_thread(gone.wait, 2)

    asyncio.run(show())


def test_cancelling_the_task_closes_connection(serve: Serve) -> None:
    gone, begun = threading.Event(), asyncio.Event()

    async def consume(client: AsyncClient) -> None:
        async with contextlib.aclosing(client.stream(ASK)) as events:
            async for event in events:
                if isinstance(event, TextDelta) and event.text == "c":
                    begun.set()  # from here on the task waits for the network

    async def show() -> None:
        async with AsyncClient(wire_at(serve(endless(gone)))) as client:
            task = asyncio.create_task(consume(client))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(gone.wait, 2)

    asyncio.run(show())


def test_cancelling_a_whole_answer_closes_connection(serve: Serve) -> None:
    arrived, gone = threading.Event(), threading.Event()

    def answer(peer: Peer) -> None:
        arrived.set()
        if peer.wait_until_gone(2):
            gone.set()

    async def show() -> None:
        async with AsyncClient(wire_at(serve(answer))) as client:
            task = asyncio.create_task(client.generate(ASK))
            assert await asyncio.to_thread(arrived.wait, 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(gone.wait, 2)

    asyncio.run(show())


@pytest.mark.parametrize(
    ("status", "kind", "pieces", "take"),
    [
        (200, "text/event-stream", [BEGINNING, STREAM[len(BEGINNING) :]], None),
        (200, "text/event-stream", [BEGINNING, STREAM[len(BEGINNING) :]], 1),
        (200, "text/event-stream", [BEGINNING], None),
        (200, "text/event-stream", [BEGINNING, httpx.ReadError("cut")], None),
        (200, "text/event-stream", [b"data: no JSON\n\n", BEGINNING], None),
        (200, "text/html", [b"<html>"] * 20_000, None),
        (500, "text/html", [b"<html>"] * 20_000, None),
        (307, "text/html", [b"<html>"], None),
    ],
)
def test_body_is_closed_however_it_ends(
    colour: type[AnyClient], status: int, kind: str, pieces: list[bytes | Exception], take: int | None
) -> None:
    body = Body(pieces)
    transport = httpx.MockTransport(lambda _: httpx.Response(status, headers={"content-type": kind}, stream=body))
    with contextlib.suppress(LessonError):
        stream(colour(wire_at(), transport), take=take)
    assert body.closed


def test_iterator_that_is_never_started_sends_nothing(colour: type[AnyClient]) -> None:
    client = colour(wire_at(), httpx.MockTransport(never))
    events = client.stream(ASK)
    if isinstance(client, Client):
        events.close()  # type: ignore[union-attr]
    else:
        asyncio.run(events.aclose())  # type: ignore[union-attr]


# ---------------------------------------------------------------- the connection fails


def hangs_up(peer: Peer) -> None:
    peer.head(200, EVENT_STREAM)
    peer.chunk(BEGINNING)
    peer.hang_up()


def resets(peer: Peer) -> None:
    peer.head(200, EVENT_STREAM)
    peer.chunk(BEGINNING)
    peer.sock.recv(0)
    time.sleep(0.05)  # what was sent must have been read, a reset drops it
    peer.reset()


@pytest.mark.parametrize("handler", [hangs_up, resets])
def test_stream_cut_in_the_middle(colour: type[AnyClient], serve: Serve, handler: Handler) -> None:
    """The chunked body never ends: the error is ours, the HTTP library's is its cause, and the text is readable."""
    seen: list[Event] = []
    with pytest.raises(TransportError) as caught:
        stream(colour(wire_at(serve(handler))), seen=seen)
    error = caught.value
    assert text_of(seen) == "At the "
    assert error.partial is not None
    assert error.partial.text == "At the "
    assert isinstance(error.__cause__, (httpx.RemoteProtocolError, httpx.ReadError))
    assert error.retryable
    assert "127.0.0.1" in error.message


def test_whole_body_cut_in_the_middle(colour: type[AnyClient], serve: Serve) -> None:
    def answer(peer: Peer) -> None:
        peer.head(200, {"content-type": "application/json", "content-length": str(len(WHOLE))})
        peer.send(WHOLE[:40])
        peer.hang_up()

    error = fails(colour(wire_at(serve(answer))), streamed=False)
    assert type(error) is TransportError
    assert error.retryable


def test_connection_closed_without_an_answer(colour: type[AnyClient], serve: Serve) -> None:
    error = fails(colour(wire_at(serve(lambda peer: peer.hang_up()))), streamed=False)
    assert type(error) is TransportError
    assert "127.0.0.1" in error.message


def test_broken_compression(colour: type[AnyClient], serve: Serve) -> None:
    server = serve(lambda peer: peer.answer(b"not gzip at all", headers={"content-encoding": "gzip"}))
    error = fails(colour(wire_at(server)), streamed=False)
    assert type(error) is TransportError
    assert isinstance(error.__cause__, httpx.DecodingError)


def test_refused_connection_names_host_and_port(colour: type[AnyClient]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = fails(colour(wire_at(base_url=f"http://127.0.0.1:{port}")))
    assert type(error) is TransportError
    assert error.phase == "connect"
    assert f"127.0.0.1:{port} refused the connection" in error.message


def test_unknown_host_is_named(colour: type[AnyClient], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_host(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)
    error = fails(colour(wire_at(base_url="https://ferry.invalid")))
    assert type(error) is TransportError
    assert error.phase == "connect"
    assert "'ferry.invalid' cannot be resolved" in error.message


@pytest.mark.parametrize(
    "base_url", ["ftp://example.com", "example.com/v1", "http://exa mple.com", "http://[::1", "https://"]
)
def test_base_url_that_is_none(colour: type[AnyClient], base_url: str) -> None:
    try:
        wire = wire_at(base_url=base_url)
    except ValueError:
        return
    assert isinstance(fails(colour(wire), streamed=False), InvalidRequest)


def test_other_exceptions_are_not_ours_to_catch(colour: type[AnyClient]) -> None:
    def broken(_: httpx.Request) -> httpx.Response:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        generate(colour(wire_at(), httpx.MockTransport(broken)))


# ---------------------------------------------------------------- size


def test_event_without_an_end_is_refused_early(colour: type[AnyClient], serve: Serve) -> None:
    sent: list[int] = []

    def answer(peer: Peer) -> None:
        peer.head(200, EVENT_STREAM)
        peer.chunk(BEGINNING + b"data: ")
        for count in range(100):
            sent.append(count)
            peer.chunk(b"x" * 1024 * 1024)
        raise AssertionError("the client read 100 MB")

    server = serve(answer)
    error = fails(colour(wire_at(server), max_event_bytes=2 * 1024 * 1024))
    server.stop()
    assert isinstance(error, EventTooLarge)
    assert "2,097,152 bytes" in error.message
    assert error.partial is not None
    assert error.partial.text == "At the "
    assert len(sent) < 30  # what fits into the buffers between the two


# ---------------------------------------------------------------- timeouts


def stays_silent(before: Callable[[Peer], None]) -> Handler:
    def answer(peer: Peer) -> None:
        before(peer)
        peer.wait_until_gone(10)

    return answer


def starts_a_stream(peer: Peer) -> None:
    peer.head(200, EVENT_STREAM)
    peer.chunk(BEGINNING)


def starts_a_body(peer: Peer) -> None:
    peer.head(200, {"content-type": "application/json", "content-length": "1000"})
    peer.send(b"{")


@pytest.mark.parametrize(
    ("before", "timeout", "streamed", "phase"),
    [
        (lambda peer: None, Timeouts(read=SILENCE), True, "read"),
        (lambda peer: None, Timeouts(read=SILENCE), False, "read"),
        (starts_a_body, Timeouts(read=SILENCE, idle=None), False, "read"),
        (starts_a_stream, Timeouts(idle=SILENCE), True, "idle"),
        (lambda peer: None, Timeouts(total=SILENCE), True, "total"),
        (starts_a_stream, Timeouts(idle=None, total=SILENCE), True, "total"),
        (starts_a_body, Timeouts(read=None, total=SILENCE), False, "total"),
        (starts_a_stream, SILENCE, True, "total"),
    ],
)
def test_silence_ends_with_the_timeout_that_was_set(
    colour: type[AnyClient], serve: Serve, before: Callable[[Peer], None], timeout: Any, streamed: bool, phase: str
) -> None:
    error = fails(colour(wire_at(serve(stays_silent(before))), timeout=timeout), streamed)
    assert isinstance(error, TransportTimeout)
    assert (error.phase, error.retryable) == (phase, True)
    assert f"{SILENCE:g} s" in error.message
    assert "127.0.0.1" in error.message
    if before is starts_a_stream:
        assert error.partial is not None
        assert error.partial.text == "At the "


def test_pings_keep_a_stream_alive_but_not_for_ever(colour: type[AnyClient]) -> None:
    """The total timeout looks at the clock between two reads; here a second passes with each look."""
    seconds = iter(range(1000))
    body: list[bytes | Exception] = [BEGINNING, *[sse(PING)] * 100]
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=EVENT_STREAM, stream=Body(body)))
    error = fails(colour(wire_at(), transport, timeout=Timeouts(total=30), clock=lambda: float(next(seconds))))
    assert isinstance(error, TransportTimeout)
    assert (error.phase, error.message) == ("total", "the whole exchange took longer than 30 s (api.anthropic.com)")
    assert error.partial is not None


def test_no_free_connection(serve: Serve) -> None:
    server = serve(endless(threading.Event()))
    with (
        httpx.Client(limits=httpx.Limits(max_connections=1)) as http,
        Client(wire_at(server), http=http, timeout=Timeouts(connect=SILENCE)) as client,
        contextlib.closing(client.stream(ASK)) as first,
    ):
        next(first)
        with pytest.raises(TransportTimeout) as caught:
            next(client.stream(ASK))
    assert caught.value.phase == "pool"


@pytest.mark.parametrize(
    ("raised", "phase"), [(httpx.ConnectTimeout, "connect"), (httpx.WriteTimeout, "write"), (httpx.PoolTimeout, "pool")]
)
def test_timeouts_of_the_http_library_have_their_phase(
    colour: type[AnyClient], raised: type[httpx.TimeoutException], phase: str
) -> None:
    def late(_: httpx.Request) -> httpx.Response:
        raise raised("")

    error = fails(colour(wire_at(), httpx.MockTransport(late)))
    assert isinstance(error, TransportTimeout)
    assert error.phase == phase
    assert isinstance(error.__cause__, raised)


def test_timeouts_reach_the_transport(colour: type[AnyClient]) -> None:
    """Before the head `connect` and `read` count, after it `idle`; none of them is longer than `total`."""
    before: list[dict[str, float]] = []
    after: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        before.append(dict(request.extensions["timeout"]))
        after.append(request)
        return httpx.Response(200, headers=EVENT_STREAM, stream=Body([STREAM]))

    for timeouts in (Timeouts(connect=3, read=7, idle=5, total=None), Timeouts(connect=3, read=7, idle=5, total=2)):
        stream(colour(wire_at(), httpx.MockTransport(answer), timeout=timeouts, clock=lambda: 0.0))
    assert before == [
        {"connect": 3, "read": 7, "write": 7, "pool": 3},
        {"connect": 2, "read": 2, "write": 2, "pool": 2},
    ]
    assert [request.extensions["timeout"]["read"] for request in after] == [5, 2]


def test_total_timeout_bounds_the_wait_for_the_next_bytes(colour: type[AnyClient]) -> None:
    """Ten seconds have passed when the head comes: of thirty, twenty are left, which is less than `idle`."""
    seen: list[httpx.Request] = []
    seconds = iter([0.0, 0.0, *[10.0] * 100])

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, headers=EVENT_STREAM, stream=Body([STREAM]))

    timeout = Timeouts(idle=25, total=30)
    stream(colour(wire_at(), httpx.MockTransport(answer), timeout=timeout, clock=lambda: next(seconds)))
    assert seen[0].extensions["timeout"]["read"] == 20


def test_a_number_bounds_everything() -> None:
    assert Timeouts.of(30) == Timeouts(connect=10, read=30, idle=30, total=30)
    assert Timeouts.of(2) == Timeouts(connect=2, read=2, idle=2, total=2)
    assert Timeouts.of(None) == Timeouts(None, None, None, None)
    assert Timeouts.of(Timeouts(idle=1)) == Timeouts(idle=1)


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_timeout_must_be_positive(value: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Timeouts(idle=value)


# ---------------------------------------------------------------- keys


def test_key_is_never_sent_over_plain_http(colour: type[AnyClient]) -> None:
    client = colour(wire_at(base_url="http://192.0.2.7:8000"), httpx.MockTransport(never))
    error = fails(client)
    assert isinstance(error, InvalidRequest)
    assert "192.0.2.7" in error.message
    assert "https" in error.message


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "ferry.localhost"])
def test_key_may_go_over_plain_http_to_this_machine(colour: type[AnyClient], host: str) -> None:
    client = colour(wire_at(base_url=f"http://{host}:8000"), replies(STREAM, headers=EVENT_STREAM))
    assert text_of(stream(client)) == "At the quay."


def test_plain_http_without_a_key_is_fine(colour: type[AnyClient]) -> None:
    client = colour(wire_at(api_key="", base_url="http://192.0.2.7:8000"), replies(STREAM, headers=EVENT_STREAM))
    assert text_of(stream(client)) == "At the quay."


@pytest.mark.parametrize("place", ["wire", "client", "http"])
def test_key_in_a_header_of_ones_own_counts_too(place: str) -> None:
    secret = {"X-Gateway-Token": KEY}
    wire = wire_at(api_key="", base_url="http://192.0.2.7", headers=secret if place == "wire" else None)
    with httpx.Client(transport=httpx.MockTransport(never), headers=secret if place == "http" else None) as http:
        client = Client(wire, http=http, headers=secret if place == "client" else None)
        assert isinstance(fails(client), InvalidRequest)


@pytest.mark.parametrize("name", sorted(WIRES))
def test_missing_key_names_the_variable(colour: type[AnyClient], name: str) -> None:
    wire = WIRES[name](model="m")
    error = fails(colour(wire))
    assert isinstance(error, InvalidRequest)
    assert wire.key_variables[0] in error.message
    assert type(wire).__name__ in error.message


def test_missing_key_is_fine_elsewhere(colour: type[AnyClient], serve: Serve) -> None:
    server = serve(lambda peer: peer.answer(WHOLE))
    assert generate(colour(AnthropicMessages(model="m", base_url=server.url))).text == "At the quay."
    transport = replies(WHOLE, headers={"content-type": "application/json"})
    assert generate(colour(AnthropicMessages(model="m"), transport)).text == "At the quay."
    assert "x-api-key" not in server.asked[0].headers


def test_key_in_a_header_of_ones_own_is_a_key(colour: type[AnyClient], monkeypatch: pytest.MonkeyPatch) -> None:
    """The vendor's host without an api_key, but with a header: it may be asked (here it cannot be found)."""

    def no_such_host(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)
    error = fails(colour(AnthropicMessages(model="m"), headers={"Authorization": f"Bearer {KEY}"}))
    assert type(error) is TransportError


def test_base_url_with_a_key_or_a_password_is_refused_without_repeating_it() -> None:
    for base_url in (f"https://x.invalid/v1?key={KEY}", f"https://user:{KEY}@x.invalid/v1"):
        with pytest.raises(InvalidRequest) as caught:
            AnthropicMessages(model="m", base_url=base_url)
        assert KEY not in str(caught.value)


def echo(request: httpx.Request) -> httpx.Response:
    """401, and the body repeats the key; so does a header."""
    key = request.headers["x-api-key"]
    body = {"type": "error", "error": {"type": "authentication_error", "message": f"bad key {key}", key: [key, {"k": key}]}}
    return httpx.Response(401, json=body, headers={"x-request-id": f"req {key}"})


def echo_page(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, html=f"<html>who is {request.headers['x-api-key']}?</html>")


def echo_in_stream(request: httpx.Request) -> httpx.Response:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": f"bad {request.headers['x-api-key']}"}}
    return httpx.Response(200, headers=EVENT_STREAM, stream=Body([BEGINNING, sse(error)]))


def echo_as_noise(request: httpx.Request) -> httpx.Response:
    noise = f"data: bad {request.headers['x-api-key']}\n\n".encode()
    return httpx.Response(200, headers=EVENT_STREAM, stream=Body([BEGINNING, noise]))


def echo_at_the_cut(request: httpx.Request) -> httpx.Response:
    """The message of an error that is no JSON is cut after some hundred characters: here within the key."""
    return httpx.Response(400, text="x" * 285 + request.headers["x-api-key"])


def echo_page_at_the_cut(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, html="x" * 185 + request.headers["x-api-key"] + "y" * 1780 + request.headers["x-api-key"])


def breaks(request: httpx.Request) -> httpx.Response:
    headers = {"x-api-key": request.headers["x-api-key"]}  # the HTTP library has such variables in its frames
    raise httpx.ReadError(f"bad {headers['x-api-key']}", request=request)


@pytest.mark.parametrize(
    "answer", [echo, echo_page, echo_at_the_cut, echo_page_at_the_cut, echo_in_stream, echo_as_noise, breaks]
)
def test_key_is_in_no_error_or_log(
    colour: type[AnyClient], answer: Callable[[httpx.Request], httpx.Response], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = colour(wire_at(), httpx.MockTransport(answer))
    error = fails(client)
    shown = [repr(client), str(client), repr(client.wire), str(error), repr(error), repr(vars(error)), *in_logs(caplog)]
    link: BaseException | None = error
    while link is not None:
        shown.append(repr((link, link.args, getattr(getattr(link, "request", None), "headers", None))))
        link = link.__cause__ or link.__context__
    assert "sk-inv" not in "\n".join(shown)
    assert "***" in "\n".join(shown)


@pytest.mark.parametrize("answer", [echo, echo_page, breaks])
def test_key_is_in_no_variable_that_a_traceback_shows(
    colour: type[AnyClient], answer: Callable[[httpx.Request], httpx.Response]
) -> None:
    """Notebooks and debuggers print the variables of each stack frame; those of the HTTP library hold the headers."""
    error = fails(colour(wire_at(), httpx.MockTransport(answer)))
    assert "SECRET" not in "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def in_logs(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [repr((record.getMessage(), record.args)) for record in caplog.records]


def test_key_is_in_no_log_of_a_real_exchange(
    colour: type[AnyClient], serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """httpcore's debug log shows the headers of the answer: cookies and the account's name are masked in it."""
    caplog.set_level(logging.DEBUG)
    headers = {**EVENT_STREAM, "set-cookie": "a=SECRET; path='/'", "openai-organization": "SECRET", "x-served-by": "pier-3"}
    server = serve(lambda peer: peer.stream(STREAM, headers=headers))
    stream(colour(wire_at(server)))
    assert {"lessonlib", "httpx", "httpcore.http11"} <= {record.name for record in caplog.records}
    shown = "\n".join(in_logs(caplog))
    assert "SECRET" not in shown
    assert "pier-3" in shown


def test_answer_that_repeats_the_key_is_left_as_it_came(colour: type[AnyClient]) -> None:
    """Only errors are cleaned: local servers take a word as their key, and an answer may well hold that word."""
    wire = wire_at(api_key="the harbour")
    body, streamed = (data.replace(b"quay", b"the harbour") for data in (WHOLE, STREAM))
    assert "the harbour" in generate(colour(wire, replies(body, headers={"content-type": "application/json"}))).text
    assert "the harbour" in text_of(stream(colour(wire, replies(streamed, headers=EVENT_STREAM))))


@pytest.mark.parametrize("key", ["sk-SECRET\nx", "sk-SECRET“", "sk\r\nhost: evil SECRET"])
def test_key_that_http_cannot_carry_is_refused_without_repeating_it(colour: type[AnyClient], key: str) -> None:
    error = fails(colour(AnthropicMessages(model="m", api_key=key)), streamed=False)
    assert isinstance(error, InvalidRequest)
    assert "x-api-key" in error.message
    shown = traceback.TracebackException.from_exception(error, capture_locals=True).format()
    assert "SECRET" not in "".join(shown)


def test_client_with_a_key_is_not_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Client(wire_at()))


def test_logger_is_silent_by_default(capfd: pytest.CaptureFixture[str], serve: Serve) -> None:
    stream(Client(wire_at(serve(lambda peer: peer.stream(STREAM)))))
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("lessonlib").handlers)
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- settings


def test_headers_of_ones_own_replace_ours_and_go_once(colour: type[AnyClient], serve: Serve) -> None:
    server = serve(lambda peer: peer.answer(WHOLE))
    wire = wire_at(server, headers={"Anthropic-Beta": "a", "Anthropic-Version": "old"})
    generate(colour(wire, headers={"X-API-Key": "other-key-for-a-gateway", "User-Agent": "course"}))
    sent = server.asked[0].headers
    assert {name: sent[name] for name in ("anthropic-beta", "anthropic-version", "x-api-key", "user-agent")} == {
        "anthropic-beta": "a", "anthropic-version": "old", "x-api-key": "other-key-for-a-gateway", "user-agent": "course",
    }  # fmt: skip


def test_httpx_client_of_ones_own_is_used_and_stays_open(serve: Serve) -> None:
    server = serve(lambda peer: peer.answer(WHOLE))
    with httpx.Client(headers={"x-office": "3"}) as http:
        assert generate(Client(wire_at(server), http=http)).text == "At the quay."
        assert not http.is_closed

    async def ask() -> None:
        async with httpx.AsyncClient(headers={"x-office": "3"}) as http:
            async with AsyncClient(wire_at(server), http=http) as client:
                await client.generate(ASK)
            assert not http.is_closed

    asyncio.run(ask())
    assert [asked.headers["x-office"] for asked in server.asked] == ["3", "3"]


def test_colours_do_not_mix() -> None:
    with httpx.Client() as http, pytest.raises(TypeError, match="AsyncClient"):
        AsyncClient(wire_at(), http=http)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Client"):
        Client(wire_at(), http=httpx.AsyncClient())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="handle_request"):
        Client(wire_at(), httpx.AsyncHTTPTransport())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not both"), httpx.Client() as http:
        Client(wire_at(), replies(), http=http)


def test_closed_client_says_so(colour: type[AnyClient]) -> None:
    client = colour(wire_at(), replies(WHOLE, headers={"content-type": "application/json"}))
    generate(client)
    with pytest.raises(RuntimeError, match="has been closed"):
        generate(client)


def test_client_that_nobody_closed_gives_its_sockets_back(serve: Serve) -> None:
    """Warnings are errors here, an unclosed socket among them."""
    server = serve(lambda peer: peer.answer(WHOLE))
    client = Client(wire_at(server))
    client.generate(ASK)
    del client
    gc.collect()


def test_proxy_of_the_environment_is_not_asked_for_this_machine(
    colour: type[AnyClient], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:3128")
    monkeypatch.setenv("ALL_PROXY", "http://192.0.2.1:3128")
    assert generate(colour(wire_at(serve(lambda peer: peer.answer(WHOLE))))).text == "At the quay."


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "anthropic"),
        ({"base_url": "http://localhost:1"}, "anthropic"),
        ({"base_url": "https://llm.example/x"}, "llm.example"),
    ],
)
def test_response_says_who_answered(colour: type[AnyClient], settings: dict[str, str], name: str) -> None:
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, headers=EVENT_STREAM, stream=Body([STREAM]))
        if b'"stream":true' in request.content else httpx.Response(200, json=ANSWER)
    )  # fmt: skip
    assert colour(wire_at(**settings), transport).name == name
    assert generate(colour(wire_at(**settings), transport)).provider == name
    last = stream(colour(wire_at(**settings), transport))[-1]
    assert isinstance(last, Done)
    assert last.response.provider == name
    assert generate(colour(wire_at(**settings), transport, name="reserve")).provider == "reserve"


def test_partial_says_who_answered(colour: type[AnyClient]) -> None:
    error = fails(colour(wire_at(), replies(BEGINNING, headers=EVENT_STREAM), name="reserve"))
    assert error.partial is not None
    assert error.partial.provider == "reserve"


def test_request_that_cannot_be_written_sends_nothing(colour: type[AnyClient]) -> None:
    client = colour(AnthropicMessages(api_key=KEY), httpx.MockTransport(never))
    error = fails(client)
    assert isinstance(error, InvalidRequest)
    assert "no model" in error.message


def test_is_async_tells_the_colours_apart() -> None:
    assert (Client.is_async, AsyncClient.is_async) == (False, True)


def test_responses_stream_needs_no_end_of_the_body(colour: type[AnyClient]) -> None:
    """OpenAI Responses ends with its terminal event; what comes after it ([DONE] or nothing) is not waited for."""
    done = {"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed", "model": "m",
            "output": [{"type": "message", "id": "i", "role": "assistant", "status": "completed",
                        "content": [{"type": "output_text", "text": "Here.", "annotations": []}]}]}}  # fmt: skip
    created = {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}
    broken: list[bytes | Exception] = [sse(created), sse(done), httpx.ReadError("after the end")]
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=EVENT_STREAM, stream=Body(broken)))
    last = stream(colour(OpenAIResponses(model="m", api_key=KEY), transport))[-1]
    assert isinstance(last, Done)
    assert last.response.text == "Here."
