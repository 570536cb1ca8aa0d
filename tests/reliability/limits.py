"""What a protocol gives no means to notice, and why: the answers that differ and are no fault of ours.

Each row says where: the wire formats, the fault, the place (as mutations.py names it), and which fields of the answer may
differ. An answer that differs and fits no row is a wrong success: a test fails. docs/reliability.md is written from the same
rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.reliability.mutations import Mutant

MESSAGES, RESPONSES, INTERACTIONS = "anthropic-messages", "openai-responses", "gemini-interactions"
CHAT, GENERATE = "openai-chat", "gemini-generate-content"

REASONS = {
    "unnumbered": "The pieces of an answer carry no number and nothing repeats them, so one that is missing, comes twice or "
    "comes in another order leaves no trace.",
    "no checksum": "Nothing checks a value: another text, name, number or type that is legal in its place is another "
    "answer. A type that nobody knows may be a new one, so the part is kept opaque or the piece is left out.",
    "optional": "The field may be left out, and then the message says something else: no text, no count, a tool without "
    "parameters, another default.",
    "null": "Vendors write null where they mean nothing, so it counts as left out.",
    "last report": "Token counts are reported several times and the last report counts; without it an earlier one does.",
    "model's own": "What stands inside a call's arguments is the model's own JSON; the protocol says nothing about it. The "
    "tool's schema does (lessonlib.tools checks it before a tool is run).",
    "other form": "Some services write this field in another form (a list for a text, an object for a JSON text), so that "
    "form is read.",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """One row. `place` must match the whole place; `differs` are all fields that may differ."""

    wires: tuple[str, ...]
    faults: tuple[str, ...]
    place: str
    differs: frozenset[str]
    reason: str

    def holds(self, wire: str, mutant: Mutant, differs: Iterable[str]) -> bool:
        return (
            wire in self.wires
            and mutant.fault in self.faults
            and self.differs.issuperset(differs)
            and re.fullmatch(self.place, mutant.place) is not None
        )


def _row(wires: str | tuple[str, ...], faults: str, place: str, differs: str, reason: str) -> Limit:
    return Limit(
        (wires,) if isinstance(wires, str) else wires, tuple(faults.split()), place, frozenset(differs.split()), reason
    )


PIECES = r"(content_block_delta|step\.delta|content\.delta)/\w+"

LIMITS = (
    # ------------------------------------------------ events that are missing, come twice, or change places
    _row(MESSAGES, "drop double", r"content_block_delta/\w+", "text reasoning calls opaque", "unnumbered"),
    _row(MESSAGES, "swap", r"(content_block_delta/\w+) <> \1", "text reasoning calls", "unnumbered"),
    _row(INTERACTIONS, "drop double", PIECES, "text reasoning calls opaque", "unnumbered"),
    _row(INTERACTIONS, "swap", r"((step|content)\.delta/\w+) <> \2\.delta/\w+", "text reasoning calls", "unnumbered"),
    _row((CHAT, GENERATE), "drop double", "chunk", "text reasoning calls opaque stop usage", "unnumbered"),
    _row((CHAT, GENERATE), "swap", "chunk <> (chunk|note)", "text reasoning calls opaque stop usage", "unnumbered"),
    # ------------------------------------------------ a bit that is another
    _row((MESSAGES, INTERACTIONS, CHAT, GENERATE), "flip", ".*", "text reasoning calls opaque stop usage", "no checksum"),
    _row(INTERACTIONS, "flip", r"interaction\.completed?", "error", "no checksum"),  # the name of its status
    _row(RESPONSES, "flip", r"response\.(completed|incomplete)", "usage stop", "no checksum"),
    # ------------------------------------------------ a field that is missing
    _row(MESSAGES, "remove", r"message_delta usage(\.\w+)*", "usage", "last report"),
    _row(INTERACTIONS, "remove", r"(interaction\.completed?|note) interaction\.usage", "usage", "last report"),
    _row(INTERACTIONS, "remove", r"(interaction\.completed?|note) interaction\.usage\.\w+", "usage", "optional"),
    _row(INTERACTIONS, "remove", r".*\.arguments\.\w+", "calls", "model's own"),
    _row(INTERACTIONS, "remove", r"(step|content)\.(start|delta)\S* \S+", "text reasoning calls opaque", "optional"),
    _row(INTERACTIONS, "remove", r"interaction\.completed? interaction\.(status|continuation_token)", "error stop opaque",
         "optional"),
    _row(GENERATE, "remove", r".*\.args\.[^.]+", "calls", "model's own"),
    _row(GENERATE, "remove", "(chunk|note) .*", "text reasoning calls opaque stop usage", "optional"),
    _row(CHAT, "remove", "(chunk|note) .*", "text reasoning calls opaque stop usage", "optional"),
    # ------------------------------------------------ a field of another type
    _row((MESSAGES, INTERACTIONS, CHAT, GENERATE), "retype", ".* = null", "text reasoning calls opaque stop usage error",
         "null"),
    _row((INTERACTIONS, GENERATE), "retype", r".*\.arg(ument)?s\.[^.]+ = .*", "calls", "model's own"),
    _row(INTERACTIONS, "retype", r'step\.start/\w+ step\.(summary|content) = "x"', "text reasoning", "other form"),
    _row(INTERACTIONS, "retype", r'.*\.arguments = \{"x": 1\}', "calls", "other form"),
    _row(CHAT, "retype", r'.*\.(tool_calls|arguments) = \{"x": 1\}', "calls", "other form"),
    _row(CHAT, "retype", r'.*\.(content|content\[\]|thinking) = (\["x"\]|"x")', "text reasoning", "other form"),
    _row(CHAT, "retype", r'.*\.(content|refusal|reasoning|reasoning_content) = "x"', "text reasoning stop", "no checksum"),
)  # fmt: skip

ALL = (MESSAGES, RESPONSES, INTERACTIONS, CHAT, GENERATE)
ANY = "text reasoning calls opaque stop usage error"

WHOLE_LIMITS = (
    _row(ALL, "flip", ".*", ANY, "no checksum"),
    _row(ALL, "remove", r".*\.(arguments|args|input|action)\..+", "calls", "model's own"),
    _row(ALL, "remove", ".*", ANY, "optional"),
    _row(ALL, "retype", ".* = null", ANY, "null"),
    _row(ALL, "retype", r".*\.(arguments|args|input|action)\..+", "calls", "model's own"),
    _row(INTERACTIONS, "retype", r'steps\[\]\.(summary|content) = "x"', "text reasoning opaque", "other form"),
    _row((CHAT, RESPONSES), "retype", r'.*\.(tool_calls|arguments) = \{"x": 1\}', "calls", "other form"),
    _row((CHAT, RESPONSES), "retype", r'.*\.(content|content\[\]|thinking) = (\["x"\]|"x")', "text reasoning stop",
         "other form"),
    _row(CHAT, "retype", r'.*\.(refusal|reasoning|reasoning_content) = "x"', "text reasoning stop", "no checksum"),
    _row(CHAT, "retype", r".*\.annotations = .*", "opaque", "no checksum"),
)  # fmt: skip
"""A whole answer says everything once: no copy contradicts it, and what is missing is missing."""


def why(wire: str, mutant: Mutant, differs: Iterable[str], *, stream: bool) -> str | None:
    """Why the protocol gives no means to notice what the mutant changed; None if there is no such reason."""
    differs = tuple(differs)
    rows = LIMITS if stream else WHOLE_LIMITS
    return next((row.reason for row in rows if row.holds(wire, mutant, differs)), None)
