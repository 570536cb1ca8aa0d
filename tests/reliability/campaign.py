"""Tries mutants of the fixtures and counts what came of them; the same code for a sample and for everything.

python -m tests.reliability.campaign     everything, in one process per core; writes tried.json and docs/reliability.md
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from lessonlib.errors import LessonError
from lessonlib.sse import SSEParser
from lessonlib.wire import WireFormat
from lessonlib.wire.base import read_json
from tests.contract import Case, cases
from tests.reliability import report
from tests.reliability.limits import why
from tests.reliability.mutations import FAULTS, WHOLE_FAULTS, Mutant, mutants, whole_mutants
from tests.reliability.scale import sample
from tests.reliability.verdicts import DIFFERENT, Fault, Outcome, judge, read

ONE_IN = {"flip": 8}
"""Of the flips, every eighth byte: each is read anew, and a text has many letters that are alike."""

TRIED = Path(__file__).with_name("tried.json")


@dataclass
class Tally:
    """How often each verdict came. counts: (form, wire, fault, verdict or reason) -> how often. wrong: what must not be."""

    counts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.wrong += other.wrong


def streamed(case: Case, fault: str, one_in: int = 1) -> Tally:
    """Every `one_in`th mutant of a case's stream by one fault."""
    return _tried(case, case.stream, sample(mutants(case.stream, fault, str(case)), one_in, f"{case} {fault}"), stream=True)


def whole(case: Case, fault: str, one_in: int = 1) -> Tally:
    """The same for its whole answer."""
    data = (case.folder / "response.json").read_bytes()
    return _tried(case, data, sample(whole_mutants(data, fault, str(case)), one_in, f"{case} {fault}"), stream=False)


def _tried(case: Case, data: bytes, tries: Iterator[Mutant], *, stream: bool) -> Tally:
    wire, tally = case.wire(), Tally()
    undisturbed = read(wire, data, stream=stream)
    known: dict[Any, tuple[str, frozenset[str]]] = {}
    for mutant in tries:
        form = "stream" if stream else "whole"
        same = _what_the_decoder_sees(mutant.data) if stream and mutant.fault == "cut" else None
        if same is None or same not in known:
            known[same] = _judged(undisturbed, wire, mutant, stream=stream)
        verdict, differs = known[same]
        if verdict == DIFFERENT:
            verdict = why(case.wire_name, mutant, differs, stream=stream) or "wrong success"
        if verdict in ("fault", "foreign exception", "wrong success"):
            tally.wrong.append(f"{case} {form} {mutant.fault} {mutant.place}: {verdict} {sorted(differs)}")
        tally.counts[form, case.wire_name, mutant.fault, verdict] += 1
    return tally


def _judged(undisturbed: Outcome, wire: WireFormat, mutant: Mutant, *, stream: bool) -> tuple[str, frozenset[str]]:
    try:
        return judge(undisturbed, read(wire, mutant.data, stream=stream))
    except Fault as fault:
        return "fault", frozenset({str(fault)})
    except Exception as error:
        return "foreign exception", frozenset({repr(error)})


def _what_the_decoder_sees(data: bytes) -> Any:
    """The events of a body and its stray lines. Two cuts that give the same are read once."""
    parser = SSEParser()
    events = parser.feed(data) + parser.close()
    return len(events), events[-1].data if events else b"", parser.stray


def errors(case: Case, fault: str, one_in: int = 1) -> Tally:
    """The mutants of an HTTP error body: whatever it holds, it is an APIError of the same status."""
    tally, wire = Tally(), case.wire()
    status, data = case.json("meta.json")["status"], (case.folder / "error.json").read_bytes()
    if fault in ("remove", "retype") and not _is_json(data):  # a page of a proxy has no fields
        return tally
    for mutant in sample(whole_mutants(data, fault, str(case)), one_in, f"{case} {fault}"):
        verdict = "error"
        try:
            error = wire.decode_error(status, {}, mutant.data)
            if error.status != status or not isinstance(error, LessonError) or not str(error):
                raise Fault(f"{error!r}")
        except Exception as problem:
            verdict = "foreign exception"
            tally.wrong.append(f"{case} error {mutant.fault} {mutant.place}: {problem!r}")
        tally.counts["error", case.wire_name, mutant.fault, verdict] += 1
    return tally


def _is_json(data: bytes) -> bool:
    try:
        read_json(data)
    except ValueError:
        return False
    return True


def _job(job: tuple[str, Case, str]) -> Tally:
    form, case, fault = job
    return {"stream": streamed, "whole": whole, "error": errors}[form](case, fault, ONE_IN.get(fault, 1))


def everything() -> Tally:
    """Every mutant of every fixture."""
    jobs = chain(
        (("stream", case, fault) for case in cases("stream.sse") for fault in FAULTS),
        (("whole", case, fault) for case in cases("response.json") for fault in WHOLE_FAULTS),
        (("error", case, fault) for case in cases("error.json") for fault in WHOLE_FAULTS),
    )
    tally = Tally()
    with ProcessPoolExecutor() as pool:
        for part in pool.map(_job, list(jobs)):
            tally.add(part)
    return tally


def stored() -> dict[str, dict[str, int]]:
    """What the last run over everything counted: "form wire fault" -> verdict -> how often."""
    counted: dict[str, dict[str, int]] = json.loads(TRIED.read_text(encoding="utf-8"))
    return counted


def main() -> int:
    tally = everything()
    for line in tally.wrong[:50]:
        print(line)
    print(f"{tally.counts.total():,} mutants, {len(tally.wrong)} wrong")
    if tally.wrong:
        return 1
    rows: dict[str, dict[str, int]] = {}
    for (form, wire, fault, verdict), count in sorted(tally.counts.items()):
        rows.setdefault(f"{form} {wire} {fault}", {})[verdict] = count
    TRIED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    report.write(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
