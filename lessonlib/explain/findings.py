"""What is wrong with a capture, and what is merely worth knowing: facts in, findings in plain words out.

Each finding says what is there, what it means for a client, and where; its code is a section of docs/explain.md with the
rule and its source. An error means that there is no answer, or that bytes of it are missing. A warning means that there is
one and a careful client acts on it. A note explains what a reader may stumble over.

What this file does not do: it decides nothing about the answer itself; that is the decoder's word.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from itertools import islice, pairwise

from lessonlib.errors import APIError, LessonError
from lessonlib.explain.capture import Capture
from lessonlib.explain.reading import Framing, Reading
from lessonlib.explain.report import KINDS, Finding, Report, Severity, error_kind, one_line
from lessonlib.types import Opaque, Part, Reasoning, Response, StopReason, Text, ToolCall

ENDS_WITH_DONE = frozenset({"openai-chat", "gemini-interactions"})
"""The wire formats whose streams end with a `[DONE]` line by their own documentation."""

BIG_EVENT = 1 << 20
"""Bytes of data from which on an event is worth a note: many readers stop at 64 KiB or 1 MiB."""

LONG_SILENCE = 15.0
"""Seconds without a byte from which on a wait is worth a note."""


# ---------------------------------------------------------------- the body


def judge_body(report: Report, capture: Capture) -> None:
    if capture.body.startswith(codecs.BOM_UTF8):
        report.add("byte-order-mark", "note", "the body starts with a byte order mark, which is skipped")
    if capture.broken and report.error is None:
        report.add("transport-error", "warning", f"{capture.broken}; the answer was whole before that")
    if (place := _bad_utf8(capture.body)) is not None:
        words = "the body is not valid UTF-8; the bytes were replaced by U+FFFD. A proxy that cuts characters does this"
        report.add("invalid-utf-8", "warning", words, f"byte {place + capture.offset}")
    expected = {"stream": "text/event-stream", "response": "application/json", "error": "application/json"}.get(report.kind)
    told = capture.content_type
    if expected and told and told != expected and not (expected == "application/json" and told.endswith("+json")):
        told = one_line(told, 60)
        words = f"the content type says {told}, but the body is {KINDS[report.kind]}; a client that checks it stops"
        report.add("content-type", "warning", words)
    if capture.asked_stream and report.kind == "response" and report.response is not None:
        report.add("whole-not-stream", "warning", "the request asked for a stream, but a whole JSON answer came")
    if capture.asked_stream is False and report.kind == "stream":
        report.add("stream-not-whole", "warning", "the request asked for a whole answer, but a stream came")


def _bad_utf8(body: bytes) -> int | None:
    """The first byte that is not UTF-8. In slices, so that a big body is not held twice."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body) + 1, 1 << 20):
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(body[start : start + (1 << 20)], final=start + (1 << 20) > len(body))
        except UnicodeDecodeError as error:
            return start - held + error.start
    return None


def judge_framing(report: Report, capture: Capture, framing: Framing) -> None:
    offset = capture.offset
    if report.kind == "json-lines":
        report.add(
            "json-lines",
            "note",
            "one JSON object per line: the `data: ` framing was taken off; read as a stream all the same",
        )
    if report.kind == "json-list":
        report.add("json-list", "note", f"a JSON list of {report.events:,} objects, read as a stream of that many events")
    if framing.no_blank_line:
        words = "no blank line after the last event; its data is whole, so it was read, but the standard says to drop it"
        report.add("no-blank-line", "warning", words)
    if framing.half is not None:
        start, size = framing.half
        words = f"the last {size:,} bytes are an event that never became whole; it was not read"
        report.add("half-event", "warning", words, f"byte {start + offset}")
    for place, text in framing.stray:
        shown = one_line(text.decode("utf-8", "replace"), 160)
        words = f"a line that is no field of an event stream, so every parser skips it: {shown}"
        severity: Severity = "error" if b'"error"' in text else "warning"
        report.add("stray-line", severity, words, f"byte {place + offset}")
    if framing.stray_count > len(framing.stray):
        report.add("stray-line", "warning", f"{framing.stray_count - len(framing.stray):,} more lines of that kind")
    if framing.nameless:
        report.add(
            "event-without-data", "note", f"{framing.nameless:,} events have a name but no data, so the standard drops them"
        )
    if framing.comments and not report.events:
        report.add("comments-only", "error", f"{framing.comments:,} comment lines (keep-alives) and no event")


def judge_reading(report: Report, capture: Capture, reading: Reading) -> None:
    decoder = reading.decoder
    if decoder is not None and decoder.ignored:
        names = ", ".join(f"{one_line(str(name), 60)} ×{count}" for name, count in islice(decoder.ignored.items(), 8))
        report.add(
            "unknown-event", "note", f"events that this wire format's description does not list were ignored: {names}"
        )
    for words, count in reading.misnamed.most_common(3):
        report.add(
            "event-name", "warning", f"the SSE name and the data disagree in {count:,} events: {one_line(words, 120)}"
        )
    if reading.gaps:
        more = f", and {reading.gaps - 1:,} more" if reading.gaps > 1 else ""
        report.add(
            "sequence-gap", "warning", f"events are missing or out of order: sequence number {reading.first_gap}{more}"
        )
    if len(reading.ids) > 1:
        (first, _), (second, place), *_ = reading.ids.items()
        words = (
            f"the answer's id changes: {len(reading.ids):,} ids, {one_line(first, 60)} first, then {one_line(second, 60)}"
        )
        report.add("changing-id", "warning", words, place)
    if reading.second_end:
        report.add("second-end", "warning", f"a second event that ends an answer: {reading.second_end}")
    if reading.after_end:
        words = f"{reading.after_end:,} events after the end were not read"
        report.add("after-end", "note", words, reading.first_after_end)
    if reading.biggest[0] >= BIG_EVENT:
        size, number = reading.biggest
        report.add(
            "big-event",
            "note",
            f"the biggest event has {size:,} bytes of data; many readers have a smaller limit",
            f"event {number}",
        )
    _judge_done_marker(report, reading)
    _judge_silence(report, capture)


def _judge_done_marker(report: Report, reading: Reading) -> None:
    if report.kind != "stream" or report.error is not None or report.wire is None:
        return
    if report.wire in ENDS_WITH_DONE and not reading.done_marker:
        report.add("done-marker", "note", "the closing [DONE] line is missing; the answer is whole without it")
    if report.wire not in ENDS_WITH_DONE and reading.done_marker:
        report.add("done-marker", "note", f"a [DONE] line, which {report.wire} does not have: a gateway has added it")


def _judge_silence(report: Report, capture: Capture) -> None:
    times = [0.0, *(seconds for _, seconds in capture.chunks)]
    longest, number = max(((later - earlier, i) for i, (earlier, later) in enumerate(pairwise(times), 1)),
                          default=(0.0, 0))  # fmt: skip
    if longest >= LONG_SILENCE:
        report.add("silence", "note", f"nothing came for {longest:.1f} seconds before network read {number}")


# ---------------------------------------------------------------- the error


def judge_error(report: Report) -> None:
    """Why there is no answer, whether asking again can help, and what must not be done with what had arrived."""
    error = report.error
    if error is None:
        return
    kind = error_kind(error)
    words = [_what(report, error, kind), *filter(None, [_advice(error, kind)])]
    calls = len(error.partial.tool_calls) if error.partial is not None else 0
    if calls:
        words.append(f"{calls} call{'s' if calls > 1 else ''} in what had arrived must not be run.")
    report.findings.insert(0, Finding(kind.replace("_", "-"), "error", " ".join(words)))


_OPENING = {
    "incomplete_stream": "the answer is cut",
    "protocol_error": "this breaks the rules of its own format",
    "not_a_stream": "this is not a model's answer",
    "transport_error": "the connection failed",
}


def _what(report: Report, error: LessonError, kind: str) -> str:
    if report.kind == "unreadable":
        return _sentence(error.message)
    if not isinstance(error, APIError):
        return f"{_OPENING[kind]}: {_sentence(error.message)}"
    names = ", ".join(one_line(name, 80) for name in dict.fromkeys((error.type, error.code)) if name)
    where = f"with HTTP {error.status}" if error.status != 200 else "in a body that came with HTTP 200"
    if error.status == 200 and report.status is None and not report.rows:
        where = "in a body whose HTTP status the capture does not say"
    return f"the service said no {where}{f' ({names})' if names else ''}: {_sentence(error.message)}"


def _sentence(text: str) -> str:
    text = one_line(text.strip(), 400)
    return text if text[-1:] in (".", "!", "?", "…") else f"{text}."


def _advice(error: LessonError, kind: str) -> str:
    if isinstance(error, APIError) and error.refusal:
        return "It is a refusal: asking again does not help."
    if error.retryable:
        wait = f" after {error.retry_after:g} seconds" if error.retry_after else ""
        return f"Asking again{wait} can help, as long as nothing of this answer was used."
    return {
        "provider_error": "Asking again unchanged does not help.",
        "protocol_error": "Nothing in it can be trusted.",
        "not_a_stream": "Look at the address that was asked, and at what stands in between.",
    }.get(kind, "")


# ---------------------------------------------------------------- the answer


def judge_answer(report: Report) -> None:
    answer = report.response
    if answer is None:
        return
    _judge_stop(report, answer)
    _judge_calls(report, answer)
    _judge_usage(report, answer)
    _judge_text(report, answer)
    opaque = Counter(
        part.kind if isinstance(part, Opaque) else part.type for part in answer.message.parts if _is_opaque(part)
    )
    if opaque:
        kinds = ", ".join(f"{one_line(kind, 60)} ×{count}" for kind, count in opaque.most_common(6))
        report.add("opaque-part", "note", f"parts that only {report.wire} can read, kept as they came: {kinds}")


def _is_opaque(part: Part) -> bool:
    return not isinstance(part, (Text, Reasoning, ToolCall))


def _judge_stop(report: Report, answer: Response) -> None:
    raw = one_line(answer.raw_stop or "none", 60)
    nothing = not answer.text and not answer.tool_calls and not any(_is_opaque(part) for part in answer.message.parts)
    match answer.stop:
        case StopReason.LENGTH:
            words = f"the output cap ended the answer ({raw}); reasoning counts towards it"
            report.add("length", "warning", words + ("; nothing was left for the answer itself" if nothing else ""))
        case StopReason.REFUSAL:
            report.add(
                "refusal", "warning", f"the answer is a refusal ({raw}): not an answer, and asking again does not help"
            )
        case StopReason.PAUSE:
            report.add("pause", "note", f"a pause ({raw}): send the message back as it is to go on")
        case StopReason.OTHER:
            report.add("unknown-stop", "warning", _unknown_stop(answer.raw_stop))
        case StopReason.END if nothing:
            report.add("empty-answer", "warning", "an ordinary end, but no text and no call")
        case StopReason.TOOL_USE if not answer.tool_calls:
            report.add("no-call", "warning", f"the stop reason says that a tool is to be run ({raw}), but there is no call")
        case _:
            pass


def _unknown_stop(raw: str | None) -> str:
    if raw is None:
        return "no stop reason came, so nothing says that the answer is whole"
    if raw in ("in_progress", "queued"):
        return f"the work goes on in the background ({raw}): ask for this answer again later, do not send the request again"
    if raw == "completed":
        return "it ended (completed), but it waits for something that is neither text nor a call: look at the opaque parts"
    return f"the stop reason {one_line(raw, 60)} is not one that means success: do not take this for a finished answer"


def _judge_calls(report: Report, answer: Response) -> None:
    for call in answer.tool_calls:
        if call.args is None:
            name = one_line(f"{call.name} ({call.call_id})", 100)
            words = f"the call {name} cannot be run: {one_line(call.args_error or '', 200)}"
            report.add("unusable-arguments", "warning", words)
    ids = Counter(call.call_id for call in answer.tool_calls if call.call_id)
    repeated = [call_id for call_id, count in ids.items() if count > 1]
    if repeated:
        report.add(
            "repeated-id",
            "warning",
            f"several calls have the same id ({one_line(', '.join(repeated), 100)}): results cannot be paired",
        )
    if any(not call.call_id for call in answer.tool_calls):
        report.add("call-without-id", "note", "a call has no id: its result is paired by name and order")
    if any(not call.name for call in answer.tool_calls):
        report.add("call-without-name", "warning", "a call has no name: no tool can be found for it")


def _judge_usage(report: Report, answer: Response) -> None:
    usage = answer.usage
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        report.add("no-usage", "note", "no token counts were reported; they are unknown, not 0")
        return
    pairs = (
        ("cached", usage.cached_tokens, "input", usage.input_tokens),
        ("reasoning", usage.reasoning_tokens, "output", usage.output_tokens),
    )
    for part, few, whole, many in pairs:
        if few is not None and many is not None and few > many:
            report.add("odd-usage", "warning", f"more {part} tokens ({few:,}) than {whole} tokens ({many:,})")
    _judge_compaction(report, usage.raw)


def _judge_compaction(report: Report, raw: object) -> None:
    """Tokens that Messages counts beside its totals (docs/wire/anthropic.md, usage)."""
    steps = raw.get("iterations") if isinstance(raw, dict) else None
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict) and step.get("type") == "compaction":
            counts = [step.get(name) for name in ("input_tokens", "output_tokens")]
            told = " and ".join(
                f"{count:,} {word}"
                for count, word in zip(counts, ("input", "output"), strict=True)
                if isinstance(count, int)
            )
            if told:
                words = f"a compaction used {told} tokens, which the totals leave out and the bill does not"
                report.add("compaction-usage", "note", words)


def _judge_text(report: Report, answer: Response) -> None:
    text = answer.text + answer.reasoning
    if "\ufffd" in text:
        words = f"the text holds U+FFFD {text.count(chr(0xFFFD))} times: a character was destroyed on the way"
        report.add("replacement-character", "warning", words)
    if _SURROGATE.search(text):
        report.add(
            "lone-surrogate", "note", "the text holds half of a character (a lone surrogate), which UTF-8 cannot write"
        )


_SURROGATE = re.compile("[\ud800-\udfff]")
