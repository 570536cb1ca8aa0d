"""docs/tables.md: the tables that two documents behind this course had, rebuilt and brought up to date.

    python tools/reference_tables.py            writes the page
    python tools/reference_tables.py --check    only compares: exit code 1 if it differs

What the library knows is asked of it: stop reasons are decoded, errors are judged, breaks come from their catalogue, the
overview from the lessons' data. The rest is tools/tables.json, where each row names its evidence: a section of a reference
page, or a lesson. Links are checked by `faults`.

What this file does not do: it explains nothing. The lessons do, and fill these tables with the reader.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # run as a script from a checkout
    sys.path.insert(0, str(ROOT))

from lessonlib.errors import LessonError  # noqa: E402
from lessonlib.lab import breaks, lint  # noqa: E402
from lessonlib.lab.course import MODELS  # noqa: E402
from lessonlib.lab.course_suite import behaviours  # noqa: E402
from lessonlib.lab.source import body_of  # noqa: E402
from lessonlib.lab.tables import overview  # noqa: E402
from lessonlib.wire import WIRES  # noqa: E402

PAGE = ROOT / "docs" / "tables.md"
WRITTEN: dict[str, Any] = json.loads((ROOT / "tools" / "tables.json").read_text(encoding="utf-8"))

STOPS: dict[str, dict[str, dict[str, Any]]] = {
    "openai-responses": {
        "completed": {}, "completed, with a call": {"case": "tool_call"},
        "incomplete: max_output_tokens": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        "incomplete: content_filter": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        "completed, with a part `refusal`": {"case": "refusal"}, "queued": {"status": "queued"},
        "in_progress": {"status": "in_progress"}, "failed": {"status": "failed"},
    },
    "anthropic-messages": {
        word: {"stop_reason": word}
        for word in ("end_turn", "stop_sequence", "tool_use", "max_tokens", "model_context_window_exceeded", "pause_turn",
                     "refusal", "a word of next year")
    },
    "gemini-interactions": {
        "completed": {}, "requires_action": {"case": "tool_call"}, "incomplete": {"status": "incomplete"},
        "requires_continuation": {"case": "pause"}, "in_progress": {"status": "in_progress"},
        "cancelled": {"status": "cancelled"}, "failed": {"status": "failed"},
    },
}  # fmt: skip
"""What each vendor says, and how to make an answer that says so: a fixture's case, or changes to its `text` case."""

ERRORS: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("a parameter that the model does not take", "openai-responses", 400,
     {"error": {"type": "invalid_request_error", "code": "unsupported_parameter", "message": "m"}}),
    ("a wrong key", "anthropic-messages", 401, {"type": "error", "error": {"type": "authentication_error", "message": "m"}}),
    ("payment required", "openai-chat", 402, {"error": {"code": 402, "message": "m"}}),
    ("a limit per minute", "openai-responses", 429,
     {"error": {"type": "requests", "code": "rate_limit_exceeded", "message": "m"}}),
    ("a balance that is spent", "openai-responses", 429,
     {"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "m"}}),
    ("a daily quota", "gemini-interactions", 429, {"error": {"code": "quota_exceeded", "message": "m"}}),
    ("a limit, Google's older form", "gemini-generate-content", 429,
     {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m"}}),
    ("overloaded", "anthropic-messages", 529, {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
    ("unavailable", "gemini-interactions", 503, {"error": {"code": "service_unavailable", "message": "m"}}),
    ("not implemented", "gemini-generate-content", 501, {"error": {"code": 501, "status": "UNIMPLEMENTED", "message": "m"}}),
    ("overloaded, inside a stream that began with 200", "anthropic-messages", 200,
     {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
)  # fmt: skip


# ---------------------------------------------------------------- computed tables


def stop_rows() -> Iterator[tuple[str, ...]]:
    """wire, the vendor's word, ours."""
    for wire, words in STOPS.items():
        for word, how in words.items():
            yield wire, f"`{word}`" if " " not in word else word, stop_of(wire, how)


def stop_of(wire: str, how: dict[str, Any]) -> str:
    """What the library makes of such an answer."""
    changes = {name: value for name, value in how.items() if name != "case"}
    body = {**body_of(f"{wire}/{how.get('case', 'text')}"), **changes}
    try:
        return f"`{WIRES[wire](MODELS[wire], api_key='').decode(body).stop}`"
    except LessonError as error:
        return f"an error ({type(error).__name__})"


def error_rows() -> Iterator[tuple[str, ...]]:
    """what happened, wire, status, body, whether asking again can help."""
    for what, wire, status, body in ERRORS:
        error = WIRES[wire](MODELS[wire], api_key="").decode_error(status, {}, json.dumps(body).encode())
        again = "yes, until something was shown" if error.retryable else "no"
        yield what, wire, f"{status}", f"`{json.dumps(body)}`", again


def break_rows() -> Iterator[tuple[str, ...]]:
    """number, edit, who notices, what life would have seen."""
    sentences = behaviours()
    for broken in sorted(
        (each for each in breaks.catalogue() if each.number is not None), key=lambda each: (each.number, each.name)
    ):
        noticed = (
            "; ".join(each.sentence for name, each in sentences.items() if name in broken.fails) or "nobody: write the test"
        )
        yield f"{broken.number}", broken.title, broken.lesson, noticed, " ".join(broken.production.split())


# ---------------------------------------------------------------- the page

HEAD = """\
# Tables

<!-- made by tools/reference_tables.py; edit tools/tables.json, or the library -->

One place to look things up. The lessons fill these tables cell by cell; here they are whole. *Changed* marks what older
pages say differently.
"""


STOP_LEAD = "What the library makes of each vendor's word, decoded for this table. Unknown is `other`, never `end`."
ERROR_LEAD = (
    "Judged for this table: the code first, then the type, then the status; never the message. Bodies have three shapes, "
    "and one reader. A refusal is no error, but for Interactions, where it is one that asking again cannot help."
)
BREAK_LEAD = "One edit each. Remember 3, 5 and 8: a green suite is not a right answer. These are the answers to exercises."


def page() -> str:
    """The page's text."""
    whole = overview()
    parts = [HEAD, *section("Three vendors", "", whole.header, whole.rows), *written("interfaces")]
    parts += section("Why it stopped", STOP_LEAD, ("wire", "the vendor's word", "ours"), stop_rows())
    parts += [*written("usage"), *written("spellings"), *written("generate_content"), *written("iterators")]
    heads = ("what happened", "wire", "status", "body", "again?")
    parts += section("Errors, and whether asking again can help", ERROR_LEAD, heads, error_rows())
    parts += written("clients")
    found = section("The eight breaks", BREAK_LEAD, ("no.", "the edit", "lesson", "who notices", "in life"), break_rows())
    parts += [*found[:4], "<details><summary>The answers</summary>", "", *found[4:], "</details>", ""]
    return "\n".join(parts)


def written(name: str) -> list[str]:
    """A table of tools/tables.json."""
    data = WRITTEN[name]
    rows = [(*row[:-1], f"[{Path(row[-1].partition('#')[0]).stem}]({row[-1]})") for row in data["rows"]]
    return section(data["title"], data["lead"], data["heads"], rows)


def section(title: str, lead: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A heading, a sentence and a table, as lines."""
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return [
        f"## {title}",
        "",
        *([lead, ""] if lead else []),
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *body,
        "",
    ]


def faults() -> Iterator[str]:
    """Evidence that leads nowhere."""
    for name, table in WRITTEN.items():
        for row in table["rows"]:
            if len(row) != len(table["heads"]):
                yield f"{name}: {row[0]!r} has {len(row)} cells, not {len(table['heads'])}"
            file, _, anchor = row[-1].partition("#")
            path = (ROOT / "docs" / file).resolve()
            if not path.is_file() or (anchor and anchor not in lint.anchors(path)):
                yield f"{name}: {row[0]!r}: there is no {row[-1]}"


def main(arguments: list[str]) -> int:
    wrong = list(faults())
    if "--check" in arguments:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page():
            wrong.append("docs/tables.md is not what tools/reference_tables.py makes; run it")
    else:
        PAGE.write_text(page(), encoding="utf-8", newline="\n")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
