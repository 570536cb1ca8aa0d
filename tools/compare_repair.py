"""Ask JSON repair libraries what testdata/repair.json says, and count: the table of docs/decisions/json-repair.md.

    pip install json_repair demjson3 json5 pyjson5 dirtyjson fix-busted-json      into an environment of its own
    python tools/compare_repair.py                                                what is not installed is left out

What this file does not do: it is no part of the library, which needs none of these packages.
"""

from __future__ import annotations

import ast
import importlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lessonlib.repair import repair_json

ROWS = json.loads((Path(__file__).parent.parent / "testdata" / "repair.json").read_text(encoding="utf-8"))["rows"]
Reader = Callable[[str], Any]


def readers() -> dict[str, Reader]:
    """What can be asked here."""
    found: dict[str, Reader] = {"json": json.loads, "ast.literal_eval": ast.literal_eval}
    for name, module, function, options in (
        ("json5", "json5", "loads", {}),
        ("pyjson5", "pyjson5", "loads", {}),
        ("demjson3", "demjson3", "decode", {}),
        ("dirtyjson", "dirtyjson", "loads", {}),
        ("json_repair", "json_repair", "loads", {}),
        ("json_repair, strict=True", "json_repair", "loads", {"strict": True}),
        ("fix-busted-json", "fix_busted_json", "repair_json", {}),
    ):
        try:
            read = getattr(importlib.import_module(module), function)
        except ImportError:
            continue
        found[name] = _reader(read, options, text=name == "fix-busted-json")
    found["this library"] = lambda text: repair_json(text).value
    return found


def _reader(read: Callable[..., Any], options: dict[str, Any], *, text: bool) -> Reader:
    return lambda source: json.loads(read(source, **options)) if text else read(source, **options)


def judge(read: Reader) -> Counter[str]:
    """How often it was right, gave another value, refused for nothing, refused rightly, or made a value up."""
    verdicts: Counter[str] = Counter()
    for row in ROWS:
        try:
            value = json.dumps(read(row["text"]), sort_keys=True, default=repr)
        except Exception:  # each library has errors of its own
            verdicts["refused rightly" if "refused" in row else "refused for nothing"] += 1
            continue
        if "refused" in row:
            verdicts["made up" if value[:1] in "[{" else "refused rightly"] += 1  # a loop takes objects only
        else:
            verdicts["right" if value == json.dumps(row["value"], sort_keys=True) else "another value"] += 1
    return verdicts


def main() -> None:
    """Print the table."""
    kinds = ("right", "another value", "refused for nothing", "refused rightly", "made up")
    print("| | " + " | ".join(kinds) + " |")
    print("|---" * (len(kinds) + 1) + "|")
    for name, read in readers().items():
        verdicts = judge(read)
        print(f"| {name} | " + " | ".join(str(verdicts[kind]) for kind in kinds) + " |")


if __name__ == "__main__":
    main()
