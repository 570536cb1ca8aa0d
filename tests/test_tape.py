"""Tapes: what is written, what is left out, and that playing gives back what was recorded."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lessonlib import tape
from lessonlib.client import AsyncClient, Client
from lessonlib.errors import APIError, IncompleteStream, LessonError, TransportError
from lessonlib.tape import Player, Recorder, Tape, TapeMismatch
from lessonlib.types import Done, Event, Message, Request, Response
from lessonlib.wire.anthropic_messages import AnthropicMessages
from lessonlib.wire.gemini_generate_content import GeminiGenerateContent
from lessonlib.wire.openai_responses import OpenAIResponses
from tests.exchange import (
    ANSWER,
    ASK,
    BEGINNING,
    ERROR,
    KEY,
    STREAM,
    WHOLE,
    AnyClient,
    Body,
    fails,
    generate,
    replies,
    stream,
    wire_at,
)
from tests.servers import EVENT_STREAM, Handler, Peer, Server

Serve = Callable[[Handler], Server]

PIECES = [STREAM[:7], STREAM[7:300], STREAM[300:]]


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def colour(request: pytest.FixtureRequest) -> type[AnyClient]:
    """The class under test."""
    cls: type[AnyClient] = request.param
    return cls


def in_pieces(peer: Peer) -> None:
    peer.head(200, EVENT_STREAM)
    for piece in PIECES:
        peer.chunk(piece)
    peer.end()


def answers(body: bytes, headers: dict[str, str], status: int = 200) -> httpx.MockTransport:
    return replies(body, status, {"content-type": "application/json", **headers})


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def everything_in(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def ticks() -> Callable[[], float]:
    """A clock on which a quarter of a second passes with every look."""
    times: Iterator[int] = iter(range(1000))
    return lambda: next(times) * 0.25


# ---------------------------------------------------------------- record, then play


def test_recorded_answers_play_back_equal(colour: type[AnyClient], serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda peer: peer.stream(STREAM, 50) if peer.asked.json.get("stream") else peer.answer(WHOLE))
    whole = generate(colour(wire_at(server), Recorder(tmp_path / "whole")))
    events = stream(colour(wire_at(server), Recorder(tmp_path / "stream")))
    assert len(server.asked) == 2
    assert generate(colour(wire_at(server), Player(tmp_path / "whole", match="body"))) == whole
    assert stream(colour(wire_at(server), Player(tmp_path / "stream", match="body"))) == events
    assert len(server.asked) == 2


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, None])
def test_any_chunk_size_plays_the_same_events(colour: type[AnyClient], tmp_path: Path, chunk_size: int | None) -> None:
    Tape(bodies={"stream.sse": STREAM}).save(tmp_path)
    expected = stream(colour(wire_at(), replies(STREAM, headers=EVENT_STREAM)))
    assert stream(colour(wire_at(), Player(tmp_path, chunk_size=chunk_size))) == expected


def test_reads_and_their_times_are_recorded(colour: type[AnyClient], tmp_path: Path) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=EVENT_STREAM, stream=Body(list(PIECES))))
    stream(colour(wire_at(), Recorder(tmp_path, transport, clock=ticks())))
    folder = tmp_path / "001"
    assert (folder / "stream.sse").read_bytes() == STREAM
    assert read(folder / "meta.json") == {
        "status": 200,
        "headers": {"content-type": "text/event-stream"},
        "chunks": [[7, 0.25], [293, 0.5], [len(STREAM) - 300, 0.75]],
    }


def test_original_timing_is_played(colour: type[AnyClient], tmp_path: Path) -> None:
    Tape(bodies={"stream.sse": STREAM}, chunks=[(7, 0.5), (293, 2.0), (len(STREAM) - 300, 2.25)]).save(tmp_path)
    waits: list[float] = []
    events = stream(colour(wire_at(), Player(tmp_path, timing=True, sleep=waits.append)))
    assert isinstance(events[-1], Done)
    assert waits == [0.5, 1.5, 0.25]
    stream(colour(wire_at(), Player(tmp_path, sleep=waits.append)))
    assert len(waits) == 3  # without timing=True nobody waits


def test_async_sleep_is_awaited(tmp_path: Path) -> None:
    Tape(bodies={"stream.sse": STREAM}, chunks=[(len(STREAM), 0.5)]).save(tmp_path)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)
        waits.append(seconds)

    stream(AsyncClient(wire_at(), Player(tmp_path, timing=True, sleep=sleep)))
    assert waits == [0.5]


def test_errors_play_back_equal(colour: type[AnyClient], tmp_path: Path) -> None:
    headers = {"retry-after": "7", "x-should-retry": "false", "request-id": "req_1", "set-cookie": "session=secret-cookie"}
    recorded = fails(colour(wire_at(), Recorder(tmp_path, answers(ERROR, headers, 529))))
    played = fails(colour(wire_at(), Player(tmp_path)))
    assert isinstance(recorded, APIError)
    assert isinstance(played, APIError)
    assert (played.status, played.type, played.body) == (recorded.status, recorded.type, recorded.body)
    assert (played.retry_after, played.retryable) == (recorded.retry_after, recorded.retryable) == (7.0, False)
    assert (tmp_path / "001" / "error.json").read_bytes() == ERROR


def test_broken_connection_plays_back_as_one(colour: type[AnyClient], tmp_path: Path) -> None:
    broken: list[bytes | Exception] = [BEGINNING, httpx.ReadError("reset")]
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=EVENT_STREAM, stream=Body(list(broken))))
    recorded = fails(colour(wire_at(), Recorder(tmp_path, transport)))
    assert read(tmp_path / "001" / "meta.json")["end"] == "reset"
    played = fails(colour(wire_at(), Player(tmp_path)))
    assert type(played) is type(recorded) is TransportError
    assert played.partial == recorded.partial
    assert played.partial is not None


def test_early_close_records_what_was_read(colour: type[AnyClient], tmp_path: Path) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=EVENT_STREAM, stream=Body([BEGINNING, STREAM])))
    stream(colour(wire_at(), Recorder(tmp_path, transport)), take=1)
    assert (tmp_path / "001" / "stream.sse").read_bytes() == BEGINNING
    assert isinstance(fails(colour(wire_at(), Player(tmp_path))), IncompleteStream)


def test_compressed_body_is_recorded_as_it_reads(colour: type[AnyClient], serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda peer: peer.answer(gzip.compress(WHOLE), headers={"content-encoding": "gzip"}))
    assert generate(colour(wire_at(server), Recorder(tmp_path))).text == "At the quay."
    assert (tmp_path / "001" / "response.json").read_bytes() == WHOLE
    assert generate(colour(wire_at(server), Player(tmp_path))).text == "At the quay."


def test_answer_of_the_wrong_kind_plays_back_as_one(colour: type[AnyClient], tmp_path: Path) -> None:
    page = replies(b"<html>Sign in</html>", headers={"content-type": "text/html"})
    recorded = fails(colour(wire_at(), Recorder(tmp_path, page)))
    played = fails(colour(wire_at(), Player(tmp_path)))
    assert (type(played), played.message) == (type(recorded), recorded.message)


def test_missing_content_type_stays_missing(colour: type[AnyClient], tmp_path: Path) -> None:
    stream(colour(wire_at(), Recorder(tmp_path, replies(STREAM))))
    assert read(tmp_path / "001" / "meta.json")["headers"] == {"content-type": None}
    assert Tape.load(tmp_path / "001").head("stream.sse") == {}
    assert isinstance(stream(colour(wire_at(), Player(tmp_path)))[-1], Done)


def test_conversation_is_a_sequence_of_folders(colour: type[AnyClient], tmp_path: Path) -> None:
    texts = iter(["one", "two", "three"])

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={**ANSWER, "content": [{"type": "text", "text": next(texts)}]})

    recorder = Recorder(tmp_path, httpx.MockTransport(answer))
    assert three_times(colour, recorder) == ["one", "two", "three"]
    assert recorder.folders == [tmp_path / "001", tmp_path / "002", tmp_path / "003"]
    assert three_times(colour, Player(tmp_path)) == ["one", "two", "three"]
    assert three_times(colour, Player([tmp_path / "002", tmp_path / "001", tmp_path / "003"])) == ["two", "one", "three"]


def three_times(colour: type[AnyClient], transport: Any) -> list[str]:
    client = colour(wire_at(), transport)
    if isinstance(client, Client):
        return [client.generate(ASK).text for _ in range(3)]

    async def ask(client: AsyncClient) -> list[str]:
        return [(await client.generate(ASK)).text for _ in range(3)]

    return asyncio.run(ask(client))


def test_httpx_client_of_ones_own_may_do_the_asking(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda peer: peer.answer(WHOLE))
    with httpx.Client(headers={"x-office": "3"}) as http:
        assert generate(Client(wire_at(server), Recorder(tmp_path / "a", http))).text == "At the quay."
        assert not http.is_closed

    async def ask() -> Response:
        async with httpx.AsyncClient() as http, AsyncClient(wire_at(server), Recorder(tmp_path / "b", http)) as client:
            return await client.generate(ASK)

    assert asyncio.run(ask()).text == "At the quay."


def test_colours_do_not_mix(tmp_path: Path) -> None:
    with httpx.Client() as http, pytest.raises(TypeError, match="asynchronous"):
        generate(AsyncClient(wire_at(), Recorder(tmp_path, http)))
    with pytest.raises(TypeError, match="synchronous"):
        generate(Client(wire_at(), Recorder(tmp_path, httpx.AsyncHTTPTransport())))


# ---------------------------------------------------------------- what is left out


def test_nothing_that_identifies_an_account_is_written(colour: type[AnyClient], tmp_path: Path) -> None:
    """Keys in headers, URL and bodies; organization, project, cookies, request ids, the end user's id."""
    org, project, person = "org-AAAAbbbbCCCCddddEEEEffff", "proj_GGGGhhhhIIIIjjjj", "person-4711-of-the-harbour"

    def answer(request: httpx.Request) -> httpx.Response:
        said = f"Rate limit in organization {org} and org-OTHERother12345678 of {person} with {KEY}"
        body = {**ANSWER, "content": [{"type": "text", "text": said}], "user": person}
        headers = {
            "openai-organization": org, "openai-project": project, "x-request-id": "req_SECRET", "set-cookie": "a=SECRET",
            "cf-ray": "SECRET", "x-ratelimit-remaining-tokens": "17", "date": "SECRET",
        }  # fmt: skip
        return httpx.Response(200, json=body, headers=headers)

    wire = AnthropicMessages(
        model="m", api_key=KEY, headers={"OpenAI-Project": project, "X-Gateway-Token": "token-SECRET-1"}
    )
    request = ASK.replace(extra={"anthropic-messages": {"metadata": {"user_id": person}, "note": f"my key is {KEY}"}})
    response = generate(colour(wire, Recorder(tmp_path, httpx.MockTransport(answer))), request)
    assert KEY in response.text  # whoever asked sees what came
    written = everything_in(tmp_path)
    for secret in ("SECRET", org, project, person, "OTHERother"):
        assert secret.encode() not in written
    assert read(tmp_path / "001" / "meta.json")["headers"] == {
        "content-type": "application/json",
        "x-ratelimit-remaining-tokens": "17",
    }
    asked = read(tmp_path / "001" / "request.json")
    assert sorted(asked["headers"]) == ["accept", "anthropic-version", "content-type"]
    assert asked["body"]["metadata"] == {"user_id": "***"}
    assert asked["body"]["note"] == "my key is ***"
    assert read(tmp_path / "001" / "response.json")["id"] == "msg_1"


def test_masks_keep_the_sizes_of_the_reads(tmp_path: Path) -> None:
    body = BEGINNING.replace(b"At the ", KEY.encode())
    pieces: list[bytes | Exception] = [body[:400], body[400:], STREAM[len(BEGINNING) :]]
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=EVENT_STREAM, stream=Body(pieces)))
    stream(Client(wire_at(), Recorder(tmp_path, transport)))
    recorded = Tape.load(tmp_path / "001")
    assert [len(piece) for piece, _ in recorded.pieces("stream.sse")] == [len(piece) for piece in pieces]  # type: ignore[arg-type]
    assert b"*" * len(KEY) in recorded.bodies["stream.sse"]


def test_keys_in_a_url_are_masked(tmp_path: Path) -> None:
    with httpx.Client(transport=Recorder(tmp_path, replies(f"you said {KEY}".encode()))) as http:
        http.post(f"https://user:pass-SECRET-word@x.invalid/v1/a?key={KEY}&alt=sse&access_token={KEY}", json={})
    url = httpx.URL(read(tmp_path / "001" / "request.json")["url"])
    assert (url.host, url.path, url.userinfo) == ("x.invalid", "/v1/a", b"")
    assert dict(url.params) == {"key": "***", "alt": "sse", "access_token": "***"}
    assert b"SECRET" not in everything_in(tmp_path)


def test_headers_to_keep_can_be_named(tmp_path: Path) -> None:
    generate(Client(wire_at(), Recorder(tmp_path, answers(WHOLE, {"request-id": "req_5"}), keep_headers=["Request-Id"])))
    assert read(tmp_path / "001" / "meta.json")["headers"]["request-id"] == "req_5"


def test_masked_fields_match_anything(tmp_path: Path) -> None:
    request = ASK.replace(extra={"anthropic-messages": {"metadata": {"user_id": "person-4711"}}})
    generate(Client(wire_at(), Recorder(tmp_path, answers(WHOLE, {}))), request)
    assert generate(Client(wire_at(), Player(tmp_path, match="body")), request).text == "At the quay."


def test_text_of_every_kind_survives_the_files(tmp_path: Path) -> None:
    text = "潮は🌊 \u2028 \ud83d end"
    request = Request(messages=[Message.user(text)])
    generate(Client(wire_at(), Recorder(tmp_path, answers(WHOLE, {}))), request)
    assert read(tmp_path / "001" / "request.json")["body"]["messages"][0]["content"][0]["text"] == text
    assert generate(Client(wire_at(), Player(tmp_path, match="body")), request).text == "At the quay."


# ---------------------------------------------------------------- folders


def test_old_tapes_are_not_overwritten_by_accident(tmp_path: Path) -> None:
    generate(Client(wire_at(), Recorder(tmp_path, answers(WHOLE, {}))))
    generate(Client(wire_at(), Recorder(tmp_path / "b", answers(WHOLE, {}))))
    (tmp_path / "001" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        Recorder(tmp_path)
    recorder = Recorder(tmp_path, answers(ERROR, {}, 529), overwrite=True)
    assert (tmp_path / "001" / "response.json").exists()  # until there is something new
    fails(Client(wire_at(), recorder))
    assert sorted(path.name for path in (tmp_path / "001").iterdir()) == [
        "error.json",
        "meta.json",
        "notes.txt",
        "request.json",
    ]


def test_only_tapes_are_removed(tmp_path: Path) -> None:
    for number in ("001", "002"):
        Tape(bodies={"response.json": WHOLE}).save(tmp_path / number)
    generate(Client(wire_at(), Recorder(tmp_path, answers(WHOLE, {}), overwrite=True)))
    assert [path.name for path in tmp_path.iterdir()] == ["001"]


def test_folder_without_a_tape(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no tape"):
        Player(tmp_path)
    with pytest.raises(FileNotFoundError):
        Player(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"response\.json"):
        Tape.load(tmp_path)


def test_hand_written_folder_needs_no_more_than_a_body(colour: type[AnyClient], tmp_path: Path) -> None:
    (tmp_path / "stream.sse").write_bytes(STREAM)
    (tmp_path / "response.json").write_bytes(WHOLE)
    player = Player(tmp_path)
    assert generate(colour(wire_at(), player)).text == "At the quay."
    assert isinstance(stream(colour(wire_at(), player))[-1], Done)
    assert [body.get("stream") for body in player.asked] == [None, True]


def test_folder_with_both_answers_and_a_recorded_head(colour: type[AnyClient], tmp_path: Path) -> None:
    Tape(bodies={"stream.sse": STREAM, "response.json": WHOLE}, headers={"content-type": "text/event-stream"},
         chunks=[(len(STREAM), 0.1)]).save(tmp_path)  # fmt: skip
    assert generate(colour(wire_at(), Player(tmp_path))).text == "At the quay."
    assert isinstance(stream(colour(wire_at(), Player(tmp_path)))[-1], Done)


def test_saved_tape_loads_unchanged(tmp_path: Path) -> None:
    original = Tape(
        request={"method": "POST", "url": "https://x.invalid/v1", "headers": {}, "body": {"a": [1, None]}},
        bodies={"error.json": b"{}"}, status=503, headers={"retry-after": "1"}, chunks=[(2, 0.5)], end="reset",
        name=str(tmp_path / "a"),
    )  # fmt: skip
    original.save(tmp_path / "a")
    assert Tape.load(tmp_path / "a") == original


# ---------------------------------------------------------------- requests that do not match


def mismatch(player: Player, wire: Any = None, request: Request = ASK, streamed: bool = False) -> str:
    """What the player says to a request that it has no answer to."""
    with pytest.raises(TapeMismatch) as caught:
        call(player, wire or wire_at(), request, streamed)
    assert not caught.value.retryable
    return caught.value.message


def call(player: Player, wire: Any, request: Request, streamed: bool) -> Response | list[Event]:
    client = Client(wire, player)
    return stream(client, request) if streamed else generate(client, request)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """One recorded whole answer."""
    generate(Client(wire_at(), Recorder(tmp_path, answers(WHOLE, {}))))
    return tmp_path


OTHER = Request(messages=[Message.user("Where is the lighthouse?")])


def test_other_question_matters_only_if_bodies_are_compared(recorded: Path) -> None:
    assert generate(Client(wire_at(), Player(recorded)), OTHER).text == "At the quay."
    message = mismatch(Player(recorded, match="body"), request=OTHER)
    assert 'body.messages[0].content[0].text: recorded "Where is the ferry?", asked "Where is the lighthouse?"' in message
    assert "match='path'" in message


def test_missing_and_additional_fields_are_named(recorded: Path) -> None:
    message = mismatch(Player(recorded, match="body"), request=ASK.replace(system="Be brief."))
    assert "body.system is only in the asked request" in message
    message = mismatch(Player(recorded, match="body"), request=ASK.replace(messages=[*ASK.messages, *OTHER.messages]))
    assert "body.messages[0].content: recorded" in message


def test_other_path_is_a_mismatch_unless_anything_goes(recorded: Path) -> None:
    wire = OpenAIResponses(model="m", api_key=KEY)
    assert "path: recorded /v1/messages, asked /v1/responses" in mismatch(Player(recorded), wire)
    with pytest.raises(LessonError) as caught:  # it answers, in a format that this wire cannot read
        generate(Client(wire, Player(recorded, match="any")))
    assert not isinstance(caught.value, TapeMismatch)


def test_stream_asked_of_a_whole_answer(recorded: Path) -> None:
    assert "holds no stream, only response.json" in mismatch(Player(recorded), streamed=True)


def test_base_url_may_differ(recorded: Path) -> None:
    wire = AnthropicMessages(model="m", base_url="https://gateway.example", api_key=KEY)
    assert generate(Client(wire, Player(recorded, match="body"))).text == "At the quay."


def test_both_methods_of_generate_content_are_one_path(tmp_path: Path) -> None:
    url = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"
    answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Here."}]}, "finishReason": "STOP"}]}
    body = json.dumps(answer).encode()
    bodies = {"response.json": body, "stream.sse": b"data: " + body + b"\n\n"}
    Tape(request={"method": "POST", "url": url}, bodies=bodies).save(tmp_path)
    wire = GeminiGenerateContent(model="m", api_key=KEY)
    assert generate(Client(wire, Player(tmp_path))).text == "Here."
    assert isinstance(stream(Client(wire, Player(tmp_path)))[-1], Done)
    assert "path" in mismatch(Player(tmp_path), GeminiGenerateContent(model="other", api_key=KEY))


def test_tape_that_is_over_says_so(colour: type[AnyClient], tmp_path: Path) -> None:
    for name in ("001", "002"):
        Tape(bodies={"response.json": WHOLE}).save(tmp_path / name)
    with pytest.raises(TapeMismatch, match=r"2 exchanges were recorded, request 3 \(POST /v1/messages\) was not"):
        three_times(colour, Player(tmp_path))


def test_single_tape_plays_again_and_again(colour: type[AnyClient], recorded: Path) -> None:
    assert three_times(colour, Player(recorded)) == ["At the quay."] * 3


def test_compared_bodies_may_come_in_any_order(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, httpx.MockTransport(lambda request: httpx.Response(200, json=say(request))))
    for question in (ASK, OTHER):
        generate(Client(wire_at(), recorder), question)
    player = Player(tmp_path, match="body")
    assert [generate(Client(wire_at(), player), question).text for question in (OTHER, ASK)] == [
        "You asked: Where is the lighthouse?",
        "You asked: Where is the ferry?",
    ]


def say(request: httpx.Request) -> dict[str, Any]:
    question = json.loads(request.content)["messages"][0]["content"][0]["text"]
    return {**ANSWER, "content": [{"type": "text", "text": f"You asked: {question}"}]}


def test_services_are_told_apart_by_their_urls(tmp_path: Path) -> None:
    Tape(bodies={"response.json": WHOLE}).save(tmp_path / "a")
    answer = {"id": "r", "object": "response", "status": "completed", "output": [], "model": "m"}
    Tape(bodies={"response.json": json.dumps(answer).encode()}).save(tmp_path / "b")
    player = Player({"api.anthropic.com": tmp_path / "a", "/v1/responses": [tmp_path / "b"]})
    assert generate(Client(wire_at(), player)).text == "At the quay."
    assert generate(Client(OpenAIResponses(model="m", api_key=KEY), player)).id == "r"
    message = mismatch(player, GeminiGenerateContent(model="m", api_key=KEY))
    assert "no tape for generativelanguage.googleapis.com" in message


def test_chunk_size_must_be_positive(recorded: Path) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Player(recorded, chunk_size=0)


def test_exchange_without_an_answer_is_not_written(tmp_path: Path) -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    recorder = Recorder(tmp_path, httpx.MockTransport(refuse))
    fails(Client(wire_at(), recorder))
    assert recorder.folders == []
    assert tape.find(tmp_path) == []
