"""Reading captures: what they are, what each event did, every finding, and no bytes on which it fails."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib.errors import APIError, IncompleteStream, NotAStream, ProtocolError, TransportError
from lessonlib.explain import Capture, Report, explain, read, to_json, unreadable, unwrap
from lessonlib.explain.reading import UNKNOWN
from lessonlib.explain.render import harmless, to_pipe, to_terminal
from lessonlib.explain.report import error_kind, note
from lessonlib.types import StopReason
from lessonlib.wire import WIRES

ROOT = Path(__file__).parent.parent
TESTDATA = ROOT / "testdata"
KINDS = {"incomplete_stream", "provider_error", "protocol_error", "not_a_stream", "transport_error"}


# ---------------------------------------------------------------- an answer of our own


def event(kind: str, /, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode("utf-8", "replace")


def start(**usage: int) -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [], "stop_reason": None}
    return event("message_start", message={**message, "usage": usage or {"input_tokens": 9, "output_tokens": 1}})


def block(index: int, *pieces: str, kind: str = "text") -> bytes:
    deltas = b"".join(
        event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece}) for piece in pieces
    )
    opening = event("content_block_start", index=index, content_block={"type": kind, "text": ""})
    return opening + deltas + event("content_block_stop", index=index)


def call(index: int, arguments: str, *, call_id: str = "toolu_1", name: str = "get_tide") -> bytes:
    opening = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": arguments}
    return (
        event("content_block_start", index=index, content_block=opening)
        + event("content_block_delta", index=index, delta=delta)
        + event("content_block_stop", index=index)
    )


def end(reason: str = "end_turn", **usage: int) -> bytes:
    return event("message_delta", delta={"stop_reason": reason}, usage=usage or {"output_tokens": 5}) + event("message_stop")


ANSWER = start() + block(0, "The ferry ", "leaves ", "at six.") + end()
WHOLE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "At six."}], "usage": {"input_tokens": 9, "output_tokens": 5},
}  # fmt: skip
CHUNK = {"candidates": [{"content": {"parts": [{"text": "Ebb "}], "role": "model"}, "index": 0}], "modelVersion": "g-1"}
LAST_CHUNK = {"candidates": [{"content": {"parts": [{"text": "now."}]}, "finishReason": "STOP", "index": 0}]}
SNAPSHOT = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "o-1", "output": []}
CHAT = {"id": "c-1", "object": "chat.completion.chunk", "model": "d-1"}


def responses(*numbers: int) -> bytes:
    """A Responses stream whose events have the given sequence numbers; the last one ends it."""
    middle = [event("response.in_progress", response=SNAPSHOT, sequence_number=number) for number in numbers[1:-1]]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}  # fmt: skip
    final = {**SNAPSHOT, "status": "completed", "output": [item], "usage": {"input_tokens": 1, "output_tokens": 1}}
    return b"".join(
        [
            event("response.created", response=SNAPSHOT, sequence_number=numbers[0]),
            *middle,
            event("response.completed", response=final, sequence_number=numbers[-1]),
        ]
    )


def chat(*choices: dict[str, Any], done: bool = True, usage: dict[str, int] | None = None) -> bytes:
    chunks = [{**CHAT, "choices": [{"index": 0, "finish_reason": None, **choice}]} for choice in choices]
    if usage is not None:
        chunks.append({**CHAT, "choices": [], "usage": usage})
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + (b"data: [DONE]\n\n" if done else b"")


def sse(*payloads: Any) -> bytes:
    return b"".join(f"data: {json.dumps(payload)}\n\n".encode() for payload in payloads)


def one(data: bytes) -> Capture:
    [capture] = unwrap(data)
    return capture


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


# ---------------------------------------------------------------- what it is


def test_of_a_list_of_events_that_was_cut_the_whole_ones_are_read() -> None:
    """generateContent without `alt=sse`, cut in the middle of its last element."""
    body = json.dumps([CHUNK, LAST_CHUNK], indent=1).encode()
    report = explain(one(body[:-30]))
    assert (report.kind, report.wire, type(report.error)) == ("json-list", "gemini-generate-content", IncompleteStream)
    assert report.error is not None
    assert report.error.partial is not None
    assert report.error.partial.text == "Ebb "
    assert explain(one(body[:-2])).response is not None  # only the bracket is missing: the finish reason has come
    assert explain(one(b'[{"half": ')).kind == "response"
    assert explain(one(b"[1, 2, ")).kind == "response"


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        (ANSWER, "stream", None),
        (json.dumps(WHOLE).encode(), "response", None),
        (b"\xef\xbb\xbf" + json.dumps(WHOLE).encode(), "response", None),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', "error", APIError),
        (b'[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]', "error", APIError),
        (json.dumps([CHUNK, LAST_CHUNK]).encode(), "json-list", None),
        (b"\n".join(json.dumps(chunk).encode() for chunk in (CHUNK, LAST_CHUNK)), "json-lines", None),
        (b"<!DOCTYPE html><html><body>Bad gateway</body></html>", "html", NotAStream),
        (b"upstream connect error", "text", NotAStream),
        (b'{"weather": "fine"}', "response", NotAStream),
        (b"[1, 2, 3]", "json-list", ProtocolError),
        (b"", "empty", IncompleteStream),
        (b" \r\n ", "empty", IncompleteStream),
        (b": keep-alive\n\n: keep-alive\n\n", "stream", IncompleteStream),
        (json.dumps(WHOLE).encode()[:-30], "response", IncompleteStream),
        (b'{"type": message}', "response", ProtocolError),
        (b"data: hello\n\n", "stream", ProtocolError),
    ],
)
def test_every_kind_of_body_is_told_apart(body: bytes, kind: str, error: type[Exception] | None) -> None:
    report = explain(body)
    assert (report.kind, type(report.error) if report.error else None) == (kind, error)
    assert (report.response is None) == (report.error is not None)


@pytest.mark.parametrize("name", ["a.json", "a.sse", "a"])
def test_the_content_decides_and_not_the_name_of_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(ANSWER)
    [capture] = read(path)
    report = explain(capture)
    assert (report.name, report.kind, report.wire) == (str(path), "stream", "anthropic-messages")


def test_an_http_error_is_an_error_whatever_the_body_is() -> None:
    for body in (b"<html>Bad gateway</html>", b"", b"no healthy upstream", ANSWER, json.dumps(WHOLE).encode()):
        report = explain(body, status=502)
        assert isinstance(report.error, APIError)
        assert (report.error.status, report.error.retryable, report.response) == (502, True, None)


def test_an_http_error_that_is_written_as_an_event_is_read() -> None:
    report = explain(b'data: {"error":{"message":"The model is overloaded.","type":"server_error"}}\n\n', status=503)
    assert isinstance(report.error, APIError)
    assert (report.error.message, report.error.status) == ("The model is overloaded.", 503)


def test_a_body_that_no_wire_format_has_says_what_it_holds() -> None:
    report = explain(b'{"weather": "fine", "wind": 3}')
    assert report.wire is None
    assert "weather, wind" in report.findings[0].message


# ---------------------------------------------------------------- the fixtures of every wire format


def cases() -> list[Any]:
    return [
        pytest.param(capture, wanted, id="/".join(Path(capture.name).parts[-3:]))
        for wanted in sorted(TESTDATA.glob("*/*/expect.json"))
        for capture in read(wanted.parent)
    ]


def expected(folder: Path) -> dict[str, Any]:
    """What is wanted of one line, without what only other tests look at."""
    want = json.loads(folder.read_text(encoding="utf-8"))
    return {name: value for name, value in want.items() if name in explain(b"").line()}


def seen(want: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    """Of the line what is wanted. A reason counts as one; an id that the wire does not have may be made up."""
    got = {name: line[name] for name in want}
    if isinstance(want.get("error"), dict) and got["error"] is not None:
        got["error"] = {name: got["error"][name] for name in want["error"]}
    for mine, theirs in zip(got.get("tool_calls", []), want.get("tool_calls", []), strict=False):
        mine["args_error"] = theirs["args_error"] if bool(mine["args_error"]) == bool(theirs["args_error"]) else "differs"
        mine["id"] = mine["id"] if theirs["id"] is not None else None
    return got


@pytest.mark.parametrize(("capture", "folder"), cases())
def test_each_fixture_is_recognised_and_read_as_its_folder_expects(capture: Capture, folder: Path) -> None:
    want = expected(folder)
    line = explain(capture).line()
    assert seen(want, json.loads(to_json(line))) == want


def streams(*names: str) -> list[Any]:
    found = [folder / "stream.sse" for name in names for folder in sorted(TESTDATA.glob(f"*/{name}"))]
    return [pytest.param(path, id="/".join(path.parts[-3:-1])) for path in found if path.is_file()]


@pytest.mark.parametrize("path", streams("text", "tool_call", "reasoning", "parallel_calls"))
def test_a_cut_before_the_last_byte_of_the_completing_event_is_never_complete(path: Path) -> None:
    wire, body = path.parts[-3], path.read_bytes()
    done = len(body)
    while explain(body[:done], wire=wire).error is None:  # where the completing event's data ends
        done -= 1
    for size in range(0, done + 1, 7):
        report = explain(body[:size], wire=wire, max_rows=0)
        assert report.error is not None
        assert all(item["args"] is None for item in report.line()["tool_calls"])


@pytest.mark.parametrize("path", streams("text", "tool_call", "unknown", "unicode"))
def test_each_row_begins_where_its_event_begins(path: Path) -> None:
    body = path.read_bytes()
    rows = [row for row in explain(body, wire=path.parts[-3], each=True).rows if row.first]
    assert [row.first for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        assert re.match(rb"(event|data|id):", body[row.offset :])
        assert row.offset == 0 or body[: row.offset].endswith((b"\n\n", b"\r\n\r\n"))


@pytest.mark.parametrize("path", streams("text", "tool_call", "reasoning", "length", "error_midstream", "cut", "unknown"))
def test_rows_in_runs_tell_the_same_as_single_ones(path: Path) -> None:
    body = path.read_bytes()
    single, runs = (explain(body, wire=path.parts[-3], each=each, max_rows=None).rows for each in (True, False))
    assert sum(row.chars for row in single) == sum(row.chars for row in runs)
    numbers = [number for row in runs if row.first for number in range(row.first, row.last + 1)]
    assert numbers == [row.first for row in single if row.first]


@pytest.mark.parametrize(("capture", "folder"), cases())
def test_no_event_of_a_fixture_is_left_without_words(capture: Capture, folder: Path) -> None:
    assert [row.event for row in explain(capture).rows if not row.did] == []


def test_every_event_of_every_wire_format_has_words() -> None:
    """Text deltas and the like say what they add; for the others the words stand in data/events.json."""
    for name, wire in WIRES.items():
        decoder = wire("m", api_key="").decoder()
        for state, row in type(decoder).TABLE.items():
            missing = [kind for kind in row if kind not in ("error", "end") and not note(name, state, kind, {})]
            assert missing in ([], ["response.failed"], ["response.completed", "response.incomplete", "response.failed"]), (
                name
            )


# ---------------------------------------------------------------- rows


def test_a_row_says_state_before_and_after_and_what_the_event_did() -> None:
    rows = explain(ANSWER).rows
    assert [(row.first, row.last, row.event, row.before, row.after) for row in rows] == [
        (1, 1, "message_start", "WAIT", "OPEN"),
        (2, 2, "content_block_start", "OPEN", "OPEN"),
        (3, 5, "content_block_delta", "OPEN", "OPEN"),
        (6, 6, "content_block_stop", "OPEN", "OPEN"),
        (7, 7, "message_delta", "OPEN", "ENDING"),
        (8, 8, "message_stop", "ENDING", "DONE"),
    ]
    assert [row.did for row in rows] == [
        "the answer begins: m-1, 9 input tokens outside the cache",
        "part 0 begins: text",
        "part 0: text, 24 characters in 3 events: “The ferry leaves at six.”",
        "part 0 is whole: text, 24 characters",
        "why it ended: end_turn; 5 output tokens in all",
        "the answer is whole: stop is end (end_turn)",
    ]


def test_the_end_of_a_cut_body_is_a_row_of_its_own() -> None:
    last = explain(start() + block(0, "The fer")).rows[-1]
    assert (last.event, last.before, last.after, last.failed) == ("(end of body)", "OPEN", "FAILED", True)
    assert last.did.startswith("incomplete stream: the stream ended in state OPEN, before message_stop")


def test_events_after_an_error_are_listed_but_not_read() -> None:
    body = start() + event("error", error={"type": "overloaded_error", "message": "busy"}) + end()
    assert [row.did for row in explain(body).rows][-2:] == ["after the error, not read"] * 2


def test_of_too_many_rows_the_middle_ones_are_left_out() -> None:
    body = start() + b"".join(block(index, "a") for index in range(100)) + end()
    report = explain(body, max_rows=10)
    everything = explain(body, max_rows=None)
    assert len(report.rows) == 10
    assert report.omitted == len(everything.rows) - 10 == 293
    assert [row.first for row in report.rows] == [1, 2, 3, 4, 5, 299, 300, 301, 302, 303]
    assert report.line() == everything.line()


def test_times_come_from_the_network_reads_of_a_tape() -> None:
    sizes = [len(start()), len(block(0, "Hi")), len(end())]
    capture = Capture("-", start() + block(0, "Hi") + end(), chunks=list(zip(sizes, (0.5, 0.8, 20.8), strict=True)))
    report = explain(capture)
    assert [row.seconds for row in report.rows] == [0.5, 0.8, 0.8, 0.8, 20.8, 20.8]
    assert [finding.message for finding in report.findings] == ["nothing came for 20.0 seconds before network read 3"]


def test_elements_of_a_list_have_no_place() -> None:
    assert [row.offset for row in explain(json.dumps([CHUNK, LAST_CHUNK]).encode()).rows] == [UNKNOWN] * 3


# ---------------------------------------------------------------- findings

TOO_LARGE = b'data: {"type":"' + b"x" * (11 << 20) + b'"}\n\n'
HAR = {
    "log": {
        "version": "1.2",
        "entries": [
            {"request": {"url": "https://example.com/style.css"}, "response": {"status": 200, "content": {"text": "a {}"}}},
            {
                "request": {"url": "https://api.example.com/v1/messages", "postData": {"text": '{"stream": true}'}},
                "response": {
                    "status": 200,
                    "headers": [{"name": "Content-Type", "value": "text/event-stream"}],
                    "content": {"text": base64.b64encode(ANSWER).decode(), "encoding": "base64"},
                },
            },
        ],
    }
}


def head(body: bytes, *headers: str, status: int = 200) -> bytes:
    lines = [f"HTTP/1.1 {status} OK", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


FINDINGS: dict[str, tuple[str, Callable[[], Report]]] = {
    # errors
    "incomplete-stream": ("error", lambda: explain(start() + block(0, "The fer"))),
    "provider-error": ("error", lambda: explain(b'{"error":{"message":"No credit","code":"x"}}', status=429)),
    "protocol-error": ("error", lambda: explain(start() + start())),
    "not-a-stream": ("error", lambda: explain(b"<html>Sign in</html>")),
    "transport-error": ("error", lambda: explain(one(head(start(), "Content-Length: 9999")))),
    # what was captured
    "har": ("note", lambda: explain(one(json.dumps(HAR).encode()))),
    "compressed": ("note", lambda: explain(one(gzip.compress(ANSWER)))),
    "utf-16": ("note", lambda: explain(one(b"\xff\xfe" + ANSWER.decode().encode("utf-16-le")))),
    "byte-order-mark": ("note", lambda: explain(b"\xef\xbb\xbf" + ANSWER)),
    "invalid-utf-8": ("warning", lambda: explain(ANSWER.replace(b"ferry", b"f\xe4hre"))),
    "content-type": ("warning", lambda: explain(one(head(ANSWER, "Content-Type: application/json; charset=utf-8")))),
    "whole-not-stream": ("warning", lambda: explain(Capture("-", json.dumps(WHOLE).encode(), asked_stream=True))),
    "stream-not-whole": ("warning", lambda: explain(Capture("-", ANSWER, asked_stream=False))),
    "wire-guessed": ("note", lambda: explain(b'{"error":{"message":"No such model","type":"invalid_request_error"}}')),
    "wire-mismatch": ("warning", lambda: explain(ANSWER, wire="openai-chat")),
    "json-lines": ("note", lambda: explain(b"\n".join(json.dumps(chunk).encode() for chunk in (CHUNK, LAST_CHUNK)))),
    "json-list": ("note", lambda: explain(json.dumps([CHUNK, LAST_CHUNK]).encode())),
    # framing
    "no-blank-line": ("warning", lambda: explain(ANSWER[:-1])),
    "half-event": ("warning", lambda: explain(ANSWER[:-20])),
    "stray-line": ("warning", lambda: explain(b"* Connected to api.example.com\n" + ANSWER)),
    "event-without-data": ("note", lambda: explain(b"event: ping\n\n" + ANSWER)),
    "comments-only": ("error", lambda: explain(b": keep-alive\n\n", wire="openai-chat")),
    "big-event": ("note", lambda: explain(start() + block(0, "x" * (1 << 20)) + end())),
    "silence": ("note", lambda: explain(Capture("-", ANSWER, chunks=[(len(ANSWER), 30.0)]))),
    # the events
    "unknown-event": ("note", lambda: explain(start() + event("tide_turned") + block(0, "Hi") + end())),
    "event-name": ("warning", lambda: explain(ANSWER.replace(b"event: message_stop", b"event: message_end"))),
    "sequence-gap": ("warning", lambda: explain(responses(0, 1, 4))),
    "changing-id": ("warning", lambda: explain(
        chat({"delta": {"content": "Hi"}}, done=False)
        + chat({"delta": {}, "finish_reason": "stop"}).replace(b"c-1", b"c-2"))),
    "second-end": ("warning", lambda: explain(responses(0, 1) + responses(2, 3))),
    "after-end": ("note", lambda: explain(responses(0, 1) + responses(2, 3))),
    "done-marker": ("note", lambda: explain(ANSWER + b"data: [DONE]\n\n")),
    # the answer
    "length": ("warning", lambda: explain(start() + block(0, "The fer") + end("max_tokens"))),
    "refusal": ("warning", lambda: explain(start() + end("refusal"))),
    "pause": ("note", lambda: explain(start() + block(0, "Let me look.") + end("pause_turn"))),
    "unknown-stop": ("warning", lambda: explain(start() + block(0, "Hi") + end("tea_break"))),
    "empty-answer": ("warning", lambda: explain(start() + end())),
    "no-call": ("warning", lambda: explain(start() + block(0, "I will call.") + end("tool_use"))),
    "unusable-arguments": ("warning", lambda: explain(start() + call(0, '{"port": Kiel}') + end("tool_use"))),
    "repeated-id": ("warning", lambda: explain(start() + call(0, "{}") + call(1, "{}") + end("tool_use"))),
    "call-without-id": ("note", lambda: explain(start() + call(0, "{}", call_id="") + end("tool_use"))),
    "call-without-name": ("warning", lambda: explain(start() + call(0, "{}", name="") + end("tool_use"))),
    "opaque-part": ("note", lambda: explain(start() + block(0, kind="tide_table") + end())),
    "no-usage": ("note", lambda: explain(chat({"delta": {"content": "Hi"}}, {"delta": {}, "finish_reason": "stop"}))),
    "odd-usage": ("warning", lambda: explain(one(json.dumps({
        "candidates": LAST_CHUNK["candidates"],
        "usageMetadata": {"promptTokenCount": 5, "cachedContentTokenCount": 9, "candidatesTokenCount": 1}}).encode()))),
    "compaction-usage": ("note", lambda: explain((TESTDATA / "anthropic-messages/compaction/stream.sse").read_bytes())),
    "replacement-character": ("warning", lambda: explain(ANSWER.replace(b"ferry", "f\ufffdhre".encode()))),
    "lone-surrogate": ("note", lambda: explain(ANSWER.replace(b"ferry", b"\\ud83d"))),
}  # fmt: skip


@pytest.mark.parametrize("code", FINDINGS)
def test_each_finding_is_found(code: str) -> None:
    severity, make = FINDINGS[code]
    report = make()
    found = [finding for finding in report.findings if finding.code == code]
    assert [(finding.severity, finding.rule) for finding in found] == [(severity, f"docs/explain.md#{code}")]


def test_a_good_answer_has_no_finding() -> None:
    assert explain(ANSWER).findings == []
    assert explain(one(head(json.dumps(WHOLE).encode(), "Content-Type: application/json"))).findings == []
    assert explain(responses(0, 1, 2)).findings == []
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    assert explain(chat({"delta": {"content": "Hi"}}, {"delta": {}, "finish_reason": "stop"}, usage=usage)).findings == []


def test_every_finding_has_its_section_and_every_section_its_finding() -> None:
    sections = re.findall(r"^#### (\S+)$", (ROOT / "docs/explain.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(sections) == sorted(FINDINGS)


def test_findings_begin_with_why_there_is_no_answer() -> None:
    body = b'event: x\n\n{"error":{"message":"busy"}}\n\n' + start()
    report = explain(body)
    assert report.findings[0].code == "provider-error"
    order = [finding.severity for finding in report.findings]
    assert order == sorted(order, key=["error", "warning", "note"].index)


def test_a_bare_error_line_is_an_error_and_quoted() -> None:
    report = explain(start() + b'{"error": {"type": "overloaded_error", "message": "busy"}}\n')
    assert isinstance(report.error, APIError)
    [stray] = [finding for finding in report.findings if finding.code == "stray-line"]
    assert (stray.severity, stray.place) == ("error", f"byte {len(start())}")
    assert '{"error": {"type": "overloaded_error", "message": "busy"}}' in stray.message


def test_what_had_arrived_stays_readable_and_its_calls_cannot_be_run() -> None:
    report = explain(start() + block(0, "I will look.") + call(1, '{"port": "Kiel"}'))
    line = report.line()
    assert (line["text"], line["stop"], line["error"]["kind"]) == ("I will look.", None, "incomplete_stream")
    assert [(item["name"], item["args"], bool(item["args_error"])) for item in line["tool_calls"]] == [
        ("get_tide", None, True)
    ]
    assert "1 call in what had arrived must not be run" in report.findings[0].message


def test_an_error_says_whether_and_when_asking_again_helps() -> None:
    body = b'{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."}}'
    report = explain(one(head(body, "retry-after: 7", status=429)))
    assert report.findings[0].message == (
        "the service said no with HTTP 429 (rate_limit_error): Slow down. "
        "Asking again after 7 seconds can help, as long as nothing of this answer was used."
    )
    assert explain(body, status=401).findings[0].message.endswith("Asking again unchanged does not help.")


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ({"status": "queued", "output": []}, "ask for this answer again later"),
        ({"status": "completed", "output": [{"type": "mcp_approval_request", "id": "mcpr_1"}]}, "look at the opaque parts"),
        ({"status": "taken_by_the_tide", "output": []}, "not one that means success"),
    ],
)
def test_an_end_that_is_no_success_says_what_to_do(response: dict[str, Any], words: str) -> None:
    report = explain(json.dumps({**SNAPSHOT, **response}).encode())
    [found] = [finding for finding in report.findings if finding.code == "unknown-stop"]
    assert words in found.message


def test_an_event_without_end_is_a_named_error() -> None:
    report = explain(start() + TOO_LARGE)
    assert isinstance(report.error, ProtocolError)
    assert "larger than 10,485,760 bytes" in report.error.message
    assert report.rows[-1].event == "(too large)"


def test_the_end_marker_is_missed_where_it_belongs_and_noted_where_it_does_not() -> None:
    whole = [{"delta": {"content": "Hi"}}, {"delta": {}, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    assert codes(explain(chat(*whole, done=False, usage=usage))) == {"done-marker"}
    assert codes(explain(ANSWER + b"data: [DONE]\n\n")) == {"done-marker"}


def test_numbers_that_repeat_count_as_a_gap_too() -> None:
    [gap] = explain(responses(0, 1, 1, 2)).findings
    assert "1 is followed by 1 (event 3, byte" in gap.message


# ---------------------------------------------------------------- captures


def test_the_head_of_curl_is_taken_off_and_offsets_count_in_the_file() -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\n" + head(ANSWER, "Content-Type: text/event-stream", "Request-Id: req_1")
    report = explain(one(data))
    assert (report.status, report.error, report.size, report.request_id) == (200, None, len(ANSWER), "req_1")
    assert data[report.rows[0].offset :].startswith(b"event: message_start")


def test_after_a_redirect_or_a_proxy_the_last_head_counts() -> None:
    data = b"HTTP/1.1 200 Connection established\r\n\r\n" + b"HTTP/2 529 \r\nretry-after: 3\r\n\r\n" + b'{"error": "busy"}'
    report = explain(one(data))
    assert isinstance(report.error, APIError)
    assert (report.error.status, report.error.retry_after) == (529, 3.0)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_head_without_a_body_is_an_empty_body(newline: bytes) -> None:
    capture = one(newline.join([b"HTTP/2 200", b"content-type: text/event-stream", b"", b""]))
    assert (capture.body, capture.content_type) == (b"", "text/event-stream")


def test_the_chunked_coding_is_taken_off() -> None:
    pieces = [ANSWER[place : place + 100] for place in range(0, len(ANSWER), 100)]
    coded = b"".join(b"%x;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    whole = one(head(coded + b"0\r\n\r\n", "Transfer-Encoding: chunked"))
    assert (whole.body, whole.broken) == (ANSWER, "")
    cut = explain(one(head(coded[:300], "Transfer-Encoding: chunked")))
    assert isinstance(cut.error, TransportError)
    assert cut.error.partial is not None


def test_a_break_after_the_protocols_own_end_is_only_a_warning() -> None:
    report = explain(one(head(ANSWER, f"Content-Length: {len(ANSWER) + 9}")))
    assert report.error is None
    assert [(finding.code, finding.severity) for finding in report.findings] == [("transport-error", "warning")]


def test_a_cut_whole_answer_is_a_broken_connection_if_the_head_says_so() -> None:
    body = json.dumps(WHOLE).encode()
    report = explain(one(head(body[:60], f"Content-Length: {len(body)}")))
    assert isinstance(report.error, TransportError)


def test_compressed_bodies_are_unpacked_also_halves_of_them() -> None:
    packed = gzip.compress(ANSWER, mtime=0)
    assert one(packed).body == ANSWER
    half = one(head(packed[: len(packed) // 2], "Content-Encoding: gzip"))
    assert ANSWER.startswith(half.body)
    assert half.broken == "the gzip data ends in the middle"
    assert one(head(ANSWER, "Content-Encoding: gzip")).body == ANSWER  # curl --compressed had unpacked it


def test_a_har_file_gives_the_exchanges_with_models() -> None:
    [capture] = unwrap(json.dumps(HAR).encode(), "browser.har")
    assert (capture.name, capture.body, capture.asked_stream) == ("browser.har#2", ANSWER, True)
    assert explain(capture).findings[0].message == "entry 2 of a HAR file"


def test_a_tape_folder_tells_status_headers_and_address(tmp_path: Path) -> None:
    folder = tmp_path / "tapes" / "001"
    folder.mkdir(parents=True)
    (folder / "error.json").write_bytes(b'{"error":{"code":"x","message":"no"}}')
    (folder / "request.json").write_text(
        '{"url":"https://api.example.com/v1/responses","body":{"stream":true}}', encoding="utf-8"
    )
    (folder / "meta.json").write_text('{"status":429,"headers":{"Retry-After":"9"}}', encoding="utf-8")
    [capture] = read(tmp_path)
    report = explain(capture)
    assert isinstance(report.error, APIError)
    assert (report.wire, report.how) == ("openai-responses", "by the address of the request")
    assert (report.error.status, report.error.retry_after) == (429, 9.0)


def test_a_tape_whose_connection_broke_says_so(tmp_path: Path) -> None:
    (tmp_path / "stream.sse").write_bytes(start() + block(0, "The fer"))
    (tmp_path / "meta.json").write_text('{"status": 200, "end": "reset"}', encoding="utf-8")
    [capture] = read(tmp_path)
    assert isinstance(explain(capture).error, TransportError)


def test_nonsense_beside_a_tape_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "stream.sse").write_bytes(ANSWER)
    for name, text in (("request.json", "[1"), ("meta.json", '{"status":"ok","headers":7,"chunks":[["a",1],[5],null]}')):
        (tmp_path / name).write_text(text, encoding="utf-8")
    [capture] = read(tmp_path)
    assert (capture.status, capture.headers, capture.chunks, explain(capture).error) == (None, {}, [], None)


def test_a_folder_without_tapes_and_a_missing_file_are_os_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"response\.json"):
        read(tmp_path)
    report = unreadable("gone.sse", FileNotFoundError(2, "No such file or directory"))
    assert report.line()["error"] == {
        "kind": "transport_error", "message": "the file cannot be read: No such file or directory",
        "retryable": False, "status": None, "type": None, "code": None,
    }  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
def test_a_broken_environment_does_not_matter_to_a_reader(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "https://user:word@example.com/?key=1")
    assert explain(b"", wire=wire).wire == wire


# ---------------------------------------------------------------- one line for programs


def test_the_line_has_exactly_the_fields_of_the_contract() -> None:
    line = explain(start() + block(0, "Hi") + call(1, '{"port":"Kiel"}') + end("tool_use")).line()
    assert line == {
        "file": "-",
        "wire": "anthropic-messages",
        "id": "msg_1",
        "model": "m-1",
        "text": "Hi",
        "reasoning": "",
        "tool_calls": [{"id": "toolu_1", "name": "get_tide", "args": {"port": "Kiel"}, "args_error": None}],
        "stop": "tool_use",
        "raw_stop": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 5, "cached_tokens": None, "cache_write_tokens": None,
                  "reasoning_tokens": None},
        "parts": [
            {"type": "text", "text": "Hi"},
            {"type": "tool_call", "id": "toolu_1", "name": "get_tide", "args": {"port": "Kiel"}, "args_error": None},
        ],
        "error": None,
    }  # fmt: skip


def no_constants(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ("\ud83d", "\ud83d"),
        (10**5000, hex(10**5000)),
        ({"a": [1, 2.5, None, True, {"b": "東京"}]}, {"a": [1, 2.5, None, True, {"b": "東京"}]}),
    ],
    ids=["NaN", "infinity", "lone surrogate", "endless number", "plain"],
)
def test_a_line_is_json_that_every_reader_takes(value: Any, shown: Any) -> None:
    text = to_json({"value": value, "list": [value]})
    assert text.isascii()
    assert json.loads(text, parse_constant=no_constants) == {"value": shown, "list": [shown]}


def test_arguments_that_are_nested_without_end_are_refused_and_printable() -> None:
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    line = explain(start() + call(0, deep) + end("tool_use")).line()
    assert json.loads(to_json(line))["tool_calls"][0]["args"] is None


# ---------------------------------------------------------------- any bytes at all

PIECES = [
    *ANSWER.split(b"\n\n"), *responses(0, 1, 2).split(b"\n\n"), *sse(CHUNK, LAST_CHUNK).split(b"\n"),
    *chat({"delta": {"content": "a"}}, {"delta": {}, "finish_reason": "stop"}).split(b"\n\n"),
    b"data:", b"data: [DONE]", b"event: error", b"\r", b"\n\n", b"\r\n\r\n", b": c\n\n", b'{"error":', b"[", b"null",
    b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b\x08", b"HTTP/1.1 200 OK\r\n", b"content-length: 5\r\n",
    b"transfer-encoding: chunked\r\n\r\n",
    b"5\r\ndata:\r\n", b'{"log":{"entries":[', b'data: {"type":', b'data: {"event_type":"step.delta"}', b"\xe2\x80\xa8",
]  # fmt: skip

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**30) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["type", "event_type", "index", "delta", "error", "message", "choices", "candidates", "content", "parts", "step",
         "item", "response", "output", "usage", "code", "status", "id", "text", "tool_calls", "function", "arguments",
         "interaction"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def check_total(report: Report) -> None:
    """What holds for every report, whatever the bytes were."""
    assert (report.response is None) == (report.error is not None)
    line = json.loads(to_json(report.line()), parse_constant=no_constants)
    assert line["error"] is None or line["error"]["kind"] in KINDS
    assert line["stop"] in (None, *StopReason)
    assert all(item["args"] is not None or item["args_error"] for item in line["tool_calls"])
    if report.error is not None:
        assert all(item["args"] is None for item in line["tool_calls"])
        assert report.findings[0].code == error_kind(report.error).replace("_", "-")
    out = io.StringIO()
    to_pipe(report, out, everything=True)
    shown = out.getvalue()
    assert harmless(shown) == shown
    shown.encode("utf-8")


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from([None, *WIRES]), st.sampled_from([None, 200, 404, 529]))
def test_no_bytes_make_it_fail(data: bytes, wire: str | None, status: int | None) -> None:
    for capture in unwrap(data):
        check_total(explain(capture, wire=wire, status=status))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from([b"", b"\n", b"\n\n"]), st.sampled_from([None, *WIRES])
)
def test_no_mixture_of_real_pieces_makes_it_fail(pieces: list[bytes], between: bytes, wire: str | None) -> None:
    for capture in unwrap(between.join(pieces)):
        check_total(explain(capture, wire=wire))


@settings(max_examples=300, deadline=None)
@given(st.lists(JSON_VALUES, min_size=1, max_size=4), st.sampled_from([None, *WIRES]), st.booleans())
def test_no_json_makes_it_fail(payloads: list[Any], wire: str | None, stream: bool) -> None:
    body = sse(*payloads) if stream else json.dumps(payloads[0]).encode()
    check_total(explain(body, wire=wire))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([path.values[0] for path in streams("text", "tool_call", "reasoning")]), st.data())
def test_no_damage_to_a_real_stream_makes_it_fail(path: Path, data: st.DataObject) -> None:
    body = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place : place + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=6))
    check_total(explain(bytes(body)))


# ---------------------------------------------------------------- size


def seconds_for(body: bytes) -> float:
    """Processor time, so that other processes do not count; the best of three."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        explain(body)
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.parametrize(
    "make",
    [
        lambda n: start() + block(0, *["word "] * n) + end(),
        lambda n: start() + block(0, "x" * 400 * n) + end(),
        lambda n: start() + call(0, json.dumps({"text": "y" * 300 * n})) + end("tool_use"),
        lambda n: start() + b"".join(event(f"unknown_{number}") for number in range(n)) + end(),
        lambda n: b"stray\n" * n + ANSWER,
        lambda n: start() + b"data: {}\r" * 10 * n,
        lambda n: b"\n".join([json.dumps(CHUNK).encode()] * n),
    ],
    ids=["many events", "one big event", "long arguments", "unknown events", "stray lines", "many data lines", "JSON lines"],
)
def test_time_grows_with_the_size_and_not_with_its_square(make: Callable[[int], bytes]) -> None:
    """Four times the size may take four times as long; a square would take sixteen times."""
    small, large = seconds_for(make(4000)), seconds_for(make(16_000))
    assert large < 10 * small


# ---------------------------------------------------------------- for the eyes

HOSTILE = "\x1b[31mred\x9b\u202egnp.exe\u2066 [bold]x[/bold] :smile: \x07\r\x00\u2028\ud83d\U000e0041"


def test_nothing_in_a_text_can_act_on_the_terminal() -> None:
    safe = harmless(HOSTILE)
    assert safe == ("\\x1b[31mred\\x9b\\u202egnp.exe\\u2066 [bold]x[/bold] :smile: \\x07\\x0d\\x00\\u2028\\ud83d\\U000e0041")
    assert harmless("東京\tKöln\n🚲 e\u0301 👨\u200d👩\u200d👧") == "東京\tKöln\n🚲 e\u0301 👨\u200d👩\u200d👧"


def hostile_report() -> Report:
    body = (
        b"stray \x1b]0;title\x07\n"
        + start()
        + block(0, HOSTILE)
        + call(1, json.dumps({"a": HOSTILE}), name=HOSTILE, call_id=HOSTILE)
        + event(HOSTILE.replace("\r", "").replace("\u2028", ""))
        + end(HOSTILE)
    )
    return explain(Capture(HOSTILE, body))


def test_no_control_character_reaches_a_pipe() -> None:
    out = io.StringIO()
    to_pipe(hostile_report(), out, everything=True)
    text = out.getvalue()
    assert harmless(text) == text
    assert "\\x1b[31mred" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_control_character_and_no_markup_reaches_a_terminal(width: int) -> None:
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, highlight=False)
    to_terminal(hostile_report(), console)
    text = out.getvalue()
    assert harmless(text) == text
    assert "[bold]x[/bold] :smile:" in " ".join(text.split())
    assert all(len(line.rstrip()) <= width for line in text.splitlines()[1:])  # the name of the file is not wrapped


def test_a_pipe_has_one_line_per_row_and_no_trailing_blanks() -> None:
    out = io.StringIO()
    to_pipe(explain(ANSWER), out)
    assert out.getvalue() == (
        "-\n"
        "  anthropic-messages (by content), a stream of server-sent events, HTTP status not known, 993 bytes, 8 events\n"
        "  complete: stop is end (end_turn)\n"
        "\n"
        "events\n"
        "  event  byte  name                 state           what it did\n"
        "      1     0  message_start        WAIT -> OPEN    the answer begins: m-1, 9 input tokens outside the cache\n"
        "      2   224  content_block_start  OPEN            part 0 begins: text\n"
        "    3-5   349  content_block_delta  OPEN            "
        "part 0: text, 24 characters in 3 events: “The ferry leaves at six.”\n"
        "      6   742  content_block_stop   OPEN            part 0 is whole: text, 24 characters\n"
        "      7   818  message_delta        OPEN -> ENDING  why it ended: end_turn; 5 output tokens in all\n"
        "      8   941  message_stop         ENDING -> DONE  the answer is whole: stop is end (end_turn)\n"
        "\n"
        "answer\n"
        "  id     msg_1\n"
        "  model  m-1\n"
        "  stop   end (end_turn)\n"
        "  usage  input 9, cached not reported, cache written not reported, output 5, reasoning not reported\n"
        "  text   The ferry leaves at six.\n"
    )


def test_long_texts_are_shown_in_part_unless_all_is_asked_for() -> None:
    report = explain(start() + block(0, "x" * 5000) + end())
    short, whole = io.StringIO(), io.StringIO()
    to_pipe(report, short)
    to_pipe(report, whole, everything=True)
    assert "… (5,000 characters; --all shows them)" in short.getvalue()
    assert "x" * 5000 in whole.getvalue()


def test_left_out_rows_are_announced() -> None:
    out = io.StringIO()
    to_pipe(explain(start() + b"".join(block(index, "a") for index in range(9)) + end(), max_rows=6), out)
    assert "24 rows left out; --all shows them" in out.getvalue()


def test_a_file_that_cannot_be_read_is_no_connection_that_failed() -> None:
    report = unreadable("gone.sse", FileNotFoundError(2, "No such file or directory"))
    assert [finding.message for finding in report.findings] == ["the file cannot be read: No such file or directory."]


def test_no_status_is_claimed_that_the_capture_does_not_tell() -> None:
    body = b'{"type":"error","error":{"type":"authentication_error","message":"bad"}}'
    (finding,) = explain(body).findings
    assert "HTTP 200" not in finding.message
    assert "the capture does not say" in finding.message


@pytest.mark.parametrize("body", [b"data: [DONE]\n\n", b"data:[DONE]", b": ping\n\ndata: [DONE]\n\ndata: [DONE]\n\n"])
@pytest.mark.parametrize("wire", [None, *WIRES])
def test_an_end_marker_alone_is_the_end_of_nothing(body: bytes, wire: str | None) -> None:
    """Whichever wire format it was: nothing came, and asking again can help. It contradicts nothing."""
    report = explain(one(body), wire=wire)
    assert isinstance(report.error, IncompleteStream)
    assert report.error.retryable
