"""Healing: what the tool loop does about a faulty call besides telling the model what was wrong with it.

* Read again: arguments that are JSON but for their presentation are put right (repair.py), then bound as strictly as any
  others. Only a call that came whole can be; one that was cut has nothing to be read again.
* Count tries: faulty calls of one tool in answers that follow each other. A model that has failed three times mostly fails a
  fourth time, and each try costs a request with the whole conversation in it. Then an honest error is worth more.
* Keep or fold. The failed tries stay in the history, where the model sees them and may do better for it; or, once a step
  succeeds, they are taken out, and every later request is shorter. Folding changes what stands before the newest answer,
  so it is not done where that, or anything taken out, is signed or encrypted: services refuse such parts once moved.
* Tell apart what it costs: an answer that calls again after a fault would not have been needed; its usage is healing.

What this file does not do: it runs nothing, and knows no service and no loop (tool_loop.py). The words for the model are
those of tools.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lessonlib.repair import Unrepairable, repair_json
from lessonlib.tools import BadArguments, BadFormat, UnknownTool, bad_format
from lessonlib.types import Message, Opaque, Part, Reasoning, ToolCall

Strategy = Literal["keep", "fold"]

FAULTS = (BadFormat, UnknownTool, BadArguments)
"""What a model can mend by calling again. A call that a person refused is none."""


def read_again(call: ToolCall) -> tuple[ToolCall, str]:
    """A call whose arguments could not be read, with arguments after all, and a note for the model on how they were read.
    Raises BadFormat where they cannot be put right without inventing anything."""
    whole = call.raw is not None or call.wire is None  # a call that was cut has no JSON of its own
    try:
        repaired = repair_json(call.raw_args) if whole else None
    except Unrepairable:
        repaired = None
    if repaired is None or not isinstance(repaired.value, dict):
        raise bad_format(call)
    read = json.dumps(repaired.value, ensure_ascii=not _has_utf8(repaired.value))
    note = f"[The arguments were not valid JSON ({', '.join(repaired.changes)}) and were read as {read}]\n"
    update = {"args": repaired.value, "args_error": None, "raw": call.raw}
    return call.model_copy(update=update), note


def _has_utf8(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


# ---------------------------------------------------------------- tries


@dataclass(slots=True)
class Tries:
    """The faulty tries so far, answer by answer.

    open: the last answer had a faulty call. begin: the place in the history at which the answers began that had nothing but
    faulty calls, up to the last one; None if the last one was none of these.
    """

    open: bool = False
    begin: int | None = None
    _by_tool: dict[str, int] = field(default_factory=dict)

    def count(self, calls: Sequence[ToolCall], outcomes: Sequence[Any], place: int) -> int | None:
        """Take in the calls of an answer that stands at `place`, and what came of them. Returns where the failed tries began
        that this answer has made good, if it has."""
        faulty = [isinstance(outcome, FAULTS) for outcome in outcomes]
        failed = {call.name for call, fault in zip(calls, faulty, strict=True) if fault}
        failed -= {call.name for call, fault in zip(calls, faulty, strict=True) if not fault}
        self._by_tool = {name: self._by_tool.get(name, 0) + 1 for name in sorted(failed)}
        self.open = any(faulty)
        began = self.begin
        self.begin = (place if began is None else began) if all(faulty) else None
        return began if not self.open else None

    def most(self) -> tuple[str, int]:
        """The tool that was called in vain most often in a row, and how often."""
        return max(self._by_tool.items(), key=lambda entry: entry[1], default=("", 0))


# ---------------------------------------------------------------- folding


def may_fold(messages: Iterable[Message]) -> bool:
    """Whether a history may lose some of these messages: not if anything in them is signed or encrypted."""
    return not any(_is_sealed(part) for message in messages for part in message.parts)


def _is_sealed(part: Part) -> bool:
    return isinstance(part, (Reasoning, Opaque)) or _holds_seal(part.raw, 3)


def _holds_seal(value: Any, depth: int) -> bool:
    if not isinstance(value, dict) or depth == 0:
        return False
    return any(
        "signature" in key.lower() or key == "encrypted_content" or _holds_seal(inner, depth - 1)
        for key, inner in value.items()
    )
