"""What is fuzzed: each target takes any bytes, and raises only if a promise is broken.

Hypothesis drives them in every test run (test_fuzz.py); a coverage-guided fuzzer does in the long run (fuzz.py). Both share
the corpus: every fixture, whole.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

from lessonlib.errors import APIError, LessonError
from lessonlib.explain import explain, to_json, unwrap
from lessonlib.explain.render import harmless, to_pipe
from lessonlib.sse import ServerSentEvent, SSEParser
from lessonlib.types import ReasoningDelta, TextDelta
from lessonlib.wire import WIRES
from tests.contract import TESTDATA
from tests.reliability.verdicts import read

Target = Callable[[bytes], None]


def sse(data: bytes) -> None:
    """The events of a body do not depend on how the network cut it."""
    assert _events(data, len(data) // 2) == _events(data, 0) == _events(data, max(0, len(data) - 1))


def _events(data: bytes, cut: int) -> list[ServerSentEvent]:
    parser = SSEParser()
    return parser.feed(data[:cut]) + parser.feed(data[cut:]) + parser.close()


def stream(wire_name: str) -> Target:
    """Any stream is an answer, or an error with everything that was shown, and no call of it can be run."""

    def target(data: bytes) -> None:
        outcome = read(WIRES[wire_name]("m", api_key=""), data, stream=True)
        if isinstance(outcome.result, LessonError):
            partial = outcome.result.partial
            shown = sum(len(event.text) for event in outcome.events if isinstance(event, (TextDelta, ReasoningDelta)))
            kept = len(partial.text) + len(partial.reasoning) if partial is not None else 0
            # two whole copies that agree are believed against the pieces, so there a part may be shorter than what was shown
            enough = 1 if shown and wire_name == "openai-responses" else shown
            assert kept >= enough, (outcome.result, shown, kept)
            assert partial is None or all(call.args is None for call in partial.tool_calls)

    return target


def whole(wire_name: str) -> Target:
    """Any body is an answer or an error."""

    def target(data: bytes) -> None:
        read(WIRES[wire_name]("m", api_key=""), data, stream=False)

    return target


def error_body(data: bytes) -> None:
    """Any error body is an APIError with the status that it came with, whatever it says."""
    status = 400 + (data[0] % 200 if data else 0)
    for wire in WIRES.values():
        error = wire("m", api_key="").decode_error(status, {"retry-after": data[:40].decode("latin-1")}, data[1:])
        assert isinstance(error, APIError)
        assert error.status == status
        assert str(error)


def explained(data: bytes) -> None:
    """Any bytes give a report; what is printed of it can do a terminal no harm; what a program reads is one line."""
    for capture in unwrap(data):
        report = explain(capture)
        out = io.StringIO()
        to_pipe(report, out)
        text = out.getvalue()
        assert text == harmless(text)
        assert len(to_json(report.line()).splitlines()) == 1


TARGETS: dict[str, Target] = {
    "sse": sse,
    "error": error_body,
    "explain": explained,
    **{f"stream:{name}": stream(name) for name in WIRES},
    **{f"whole:{name}": whole(name) for name in WIRES},
}


def corpus(target: str) -> Iterator[bytes]:
    """The fixtures that a target begins with."""
    kind, _, wire = target.partition(":")
    names = {"stream": ["stream.sse"], "whole": ["response.json"], "error": ["error.json"], "sse": ["stream.sse"]}
    for name in names.get(kind, ["stream.sse", "response.json", "error.json"]):
        for file in sorted(TESTDATA.glob(f"{wire or '*'}/*/{name}")):
            yield file.read_bytes()
