"""The tables of exercises 07 to 10 say what the library does: every cell is computed here, by whatever decides it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from lessonlib import Message, Opaque, Request, Response, StopReason, ToolCall, run_tools, tool
from lessonlib.errors import IncompleteStream, LessonError, PromptTooLong, TransportError
from lessonlib.flow import Call
from lessonlib.lab import check, client
from lessonlib.lab.checks.predicted import data
from lessonlib.repair import Unrepairable, repair_json
from lessonlib.retry import Retry
from lessonlib.sse import SSEParser
from lessonlib.tools import CallFault, bind
from lessonlib.types import Done, Event, Text
from tests.lab_exercises.answers.limiter import Base

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def cells(key: str) -> dict[str, str]:
    """The right words, by "row" or "row / column"."""
    return {name: cell["is"] for name, cell in data(key[:2])[key]["cells"].items()}


def source_of(lesson: str, name: str) -> str:
    """The solution's cell that holds `name`."""
    (path,) = SOLUTIONS.glob(f"{lesson}_*.ipynb")
    sources = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    return next(source for source in sources if name in source)


@pytest.mark.parametrize("key", ["07.twelve", "08.endings", "09.texts", "09.stops", "10.waits"])
def test_a_wrong_word_that_is_diagnosed_is_no_right_one_and_may_be_filled_in(key: str) -> None:
    about = data(key[:2])[key]
    for name, cell in about["cells"].items():
        assert cell["is"] not in cell["wrong"], name
        assert not set(cell["wrong"]) - set(about.get("words", cell["wrong"])), name
        assert cell["is"] in about.get("words", [cell["is"]]), name


def test_a_number_may_be_computed_or_written_as_a_word() -> None:
    right = cells("10.waits")
    as_floats = {name: word if word == "error" else float(word) for name, word in right.items()}
    assert [check.cells("10.waits", answer).passed for answer in (right, as_floats)] == [True, True]
    assert not check.cells("10.waits", {**as_floats, "F": 17.5}).passed


# ---------------------------------------------------------------- 07.twelve

TWELVE = cells("07.twelve")
STATUSES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "1 temperature": ("openai", 400, {"code": "unsupported_parameter", "param": "temperature"}),
    "2 no such key": ("anthropic", 401, {"type": "authentication_error"}),
    "3 payment": ("anthropic", 402, {"type": "billing_error"}),
    "4 rate limit": ("openai", 429, {"type": "requests", "code": "rate_limit_exceeded"}),
    "5 balance": ("openai", 429, {"type": "insufficient_quota", "code": "credit_balance_exhausted"}),
    "6 overloaded": ("anthropic", 529, {"type": "overloaded_error"}),
    "7 unavailable": ("gemini", 503, {"code": "service_unavailable"}),
}


def asked_again(error: LessonError, *, shown: bool) -> bool:
    """Whether the library's Retry makes a second request after this error."""
    flow = Retry(client("anthropic"), random=lambda: 0.5).flow(Request(messages=[Message.user("Hello")]))
    call = next(flow)
    assert isinstance(call, Call)
    call.started = shown
    try:
        flow.throw(error)
    except LessonError:
        return False
    return True


@pytest.mark.parametrize("row", STATUSES)
def test_an_error_with_a_status_is_asked_again_as_the_table_says(row: str) -> None:
    vendor, status, fields = STATUSES[row]
    error = client(vendor).wire.decode_error(status, {}, json.dumps({"error": {"message": "no", **fields}}).encode())
    assert asked_again(error, shown=False) == (TWELVE[f"{row} / what"] == "again")


def in_stream(vendor: str, *events: dict[str, Any]) -> LessonError:
    """The error that the decoder raises for these events."""
    parser, decoder = SSEParser(), client(vendor).wire.decoder()
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    *before, last = parser.feed(body.encode())
    for event in before:
        decoder.feed(event)
    with pytest.raises(LessonError) as raised:
        decoder.feed(last)
    return raised.value


def test_an_error_in_a_stream_is_asked_again_by_what_was_shown() -> None:
    overloaded = in_stream("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    found = {True: "again", False: "never"}
    assert TWELVE["8 in stream, nothing shown / what"] == found[asked_again(overloaded, shown=False)]
    assert TWELVE["9 in stream, half shown / what"] == found[asked_again(overloaded, shown=True)]


def test_a_context_that_is_too_long_is_never_asked_again_though_the_status_was_200() -> None:
    error = in_stream("openai", {"type": "error", "code": "context_length_exceeded", "message": "too long"})
    assert not asked_again(error, shown=False)
    assert TWELVE["10 context length / what"] == "never"


def test_a_reset_depends_on_what_was_shown() -> None:
    reset = TransportError("connection reset", phase="read")
    assert [asked_again(reset, shown=shown) for shown in (False, True)] == [True, False]
    assert [asked_again(IncompleteStream("cut"), shown=shown) for shown in (False, True)] == [True, False]
    assert (TWELVE["12 reset / what"], TWELVE["12 reset / why"]) == ("ask", "shown")


# ---------------------------------------------------------------- 08.endings

ENDINGS = cells("08.endings")
LIMA, CUSCO = {"city": "Lima"}, {"city": "Cusco"}


def ended(stop: StopReason, *parts: Any) -> Response:
    return Response(id="r", message=Message(role="assistant", parts=list(parts)), stop=stop)


def called(name: str, args: dict[str, Any] | None, call_id: str = "c1") -> ToolCall:
    raw = '{"city": Lima}' if args is None else ""
    return ToolCall(call_id=call_id, name=name, args=args, args_error=None if args else "no JSON", raw_args=raw)


HELD = called("hold_seat", {"train": "R7"})
ROWS = {
    "1 tool_use, two calls": ended(StopReason.TOOL_USE, called("get_weather", LIMA), called("get_weather", CUSCO, "c2")),
    "2 tool_use, no call": ended(StopReason.TOOL_USE, Text(text="Hm.")),
    "3 tool_use, one of two unknown": ended(
        StopReason.TOOL_USE, called("get_weather", LIMA), called("get_wether", LIMA, "c2")
    ),
    "4 tool_use, arguments are no JSON": ended(StopReason.TOOL_USE, called("get_weather", None)),
    "5 pause, a search is running": ended(
        StopReason.PAUSE, Opaque(kind="server_tool_use", wire="anthropic-messages", raw={"type": "server_tool_use"})
    ),
    "6 length, one whole call": ended(StopReason.LENGTH, HELD),
    "7 refusal": ended(StopReason.REFUSAL, Text(text="I cannot help with that.")),
    "8 an unknown word, one call": ended(StopReason.OTHER, HELD),
}


class Scripted:
    """Gives one answer, then a last one."""

    name, is_async = "scripted", False

    def __init__(self, first: Response) -> None:
        self.answers = [first, ended(StopReason.END, Text(text="Done."))]
        self.asked: list[Request] = []

    def generate(self, request: Request) -> Response:
        self.asked.append(request)
        return self.answers[len(self.asked) - 1]

    def stream(self, request: Request) -> Iterator[Event]:
        yield Done(self.generate(request))


@pytest.mark.parametrize("row", dict.fromkeys(name.rpartition(" / ")[0] for name in ENDINGS))
def test_the_loop_does_after_an_ending_what_the_table_says(row: str) -> None:
    ran: list[str] = []

    def get_weather(city: str) -> str:
        ran.append(city)
        return "fog"

    def hold_seat(train: str) -> str:
        ran.append(train)
        return "held"

    provider = Scripted(ROWS[row])
    run_tools(provider, Request(messages=[Message.user("?")]), [get_weather, hold_seat])
    again = provider.asked[1:]
    found = "stop" if not again else "results" if again[0].messages[-1].tool_results else "resend"
    assert {"next": found, "run": str(len(ran))} == {"next": ENDINGS[f"{row} / next"], "run": ENDINGS[f"{row} / run"]}


# ---------------------------------------------------------------- 09


def verdict(text: str) -> str:
    try:
        return "repair" if repair_json(text).changes else "valid"
    except Unrepairable:
        return "refuse"


def test_each_of_the_twelve_texts_is_read_as_the_table_says() -> None:
    tree = ast.parse(source_of("09", "texts = {"))
    texts = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    assert {name: verdict(text) for name, text in texts.items()} == cells("09.texts")


@tool
def get_weather(city: str) -> str:
    """Weather of a city."""
    return city


@tool
def hold_seat(train: str, seats: Annotated[int, Field(ge=1, le=4)] = 1) -> str:
    """Hold seats on a train."""
    return f"{seats} on {train}"


@tool
def refund(booking: str, amount: Annotated[float, Field(gt=0)]) -> str:
    """Pay money back."""
    if booking != "L-204":
        raise LookupError(booking)
    return f"{amount} to {booking}"


OFFERED: dict[str, Any] = {"get_weather": get_weather, "hold_seat": hold_seat, "refund": refund}


def stop_of(name: str, text: str) -> str:
    try:
        arguments = repair_json(text).value
    except Unrepairable:
        return "format"
    if not isinstance(arguments, dict):
        return "format"
    if name not in OFFERED:
        return "tool"
    try:
        bound = bind(OFFERED[name], arguments)
    except CallFault:
        return "arguments"
    try:
        OFFERED[name](*bound.args, **bound.kwargs)
    except LookupError:
        return "meaning"
    return "runs"


def test_each_of_the_eight_calls_stops_where_the_table_says() -> None:
    written = source_of("09", "1  get_weather")
    calls = re.findall(r"(\d)  (\w+) +([\[{].*?)(?= {3,}|$)", written, re.MULTILINE)
    assert {number: stop_of(name, text) for number, name, text in calls} == cells("09.stops")


# ---------------------------------------------------------------- 10.waits


TWO_BUCKETS: Any = Base


def test_each_of_the_ten_requests_waits_as_long_as_the_table_says() -> None:
    lines = source_of("10", "second   0").splitlines()
    names = next(line for line in lines if line.split()[:2] == ["A", "B"]).split()
    seconds = next(line for line in lines if line.startswith("second ")).split()[1:]
    tokens = [int(word.replace(",", "")) for word in next(line for line in lines if line.startswith("tokens ")).split()[1:]]
    now = [0.0]
    limiter: Any = TWO_BUCKETS(5, 6_000, clock=lambda: now[0])
    found = {}
    for name, second, amount in zip(names, seconds, tokens, strict=True):
        now[0] = float(second)
        try:
            found[name] = f"{limiter.reserve(amount):g}"
        except PromptTooLong:
            found[name] = "error"
    assert found == cells("10.waits")
