"""`python -m benchmarks`: runs the suites, writes results.json, results.md and results.svg, prints the ratios."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import apart, loopback, suites
from benchmarks.picture import picture
from benchmarks.report import markdown, ratio_table, ratios, rows_of
from benchmarks.suites import FULL, SHORT, SMALLEST, Suite
from benchmarks.timing import Row

MODES = {"full": FULL, "short": SHORT, "smallest": SMALLEST}
SUITES: dict[str, Suite] = {
    "reading": suites.reading,
    "recorded": suites.recorded,
    "cuts": suites.cuts,
    "helpers": suites.helpers,
    "growth": suites.growth,
    "policies": suites.policies,
    "encode": suites.encode,
    "tool-steps": suites.tool_steps,
    "imports": apart.imports,
    "installed": apart.installed,
    "memory": apart.memory,
    "explain": apart.explain,
    "loopback": loopback.loopback,
    "first-event": loopback.first_event,
    "concurrency": loopback.concurrency,
}
PACKAGES = ("openai", "anthropic", "google-genai", "httpx", "httpx2", "httpx-sse", "orjson", "pydantic")


def machine() -> dict[str, str]:
    """What the figures were measured on; no name of it, nor of anybody."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    versions = {name: _version(name) for name in PACKAGES}
    system = {"system": platform.system(), "processor": model, "cores": str(os.cpu_count())}
    return system | {"python": platform.python_version()} | {name: text for name, text in versions.items() if text}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def run(mode: str, names: Sequence[str], before: Sequence[Row] = ()) -> dict[str, Any]:
    """The results of these suites, as they stand in results.json. before: rows of an earlier run of other suites."""
    rows = list(before)
    for name in names:
        began = time.perf_counter()
        new = list(SUITES[name](MODES[mode]))
        made = {row.suite for row in new}
        rows = [row for row in rows if row.suite not in made] + new
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return {"mode": mode, "machine": machine(), "rows": [dataclasses.asdict(row) for row in rows]}


def write(results: dict[str, Any], folder: Path) -> None:
    """The three files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "results.md").write_text(markdown(results), encoding="utf-8")
    rows = rows_of(results)
    if any(row.suite == "reading" for row in rows):
        (folder / "results.svg").write_text(picture(rows).svg(), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="short streams")
    parser.add_argument("--smallest", action="store_true", help="only whether everything runs")
    parser.add_argument("--only", default="", help=f"some suites, with commas: {', '.join(SUITES)}")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks"), help="where the results go")
    parser.add_argument("--add", action="store_true", help="keep the other suites' results that are there")
    asked = parser.parse_args(arguments)
    names = asked.only.split(",") if asked.only else list(SUITES)
    if unknown := set(names) - SUITES.keys():
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    old = asked.out / "results.json"
    before = rows_of(json.loads(old.read_text(encoding="utf-8"))) if asked.add and old.exists() else []
    results = run("smallest" if asked.smallest else "short" if asked.short else "full", names, before)
    write(results, asked.out)
    print(ratio_table(ratios(rows_of(results))))


if __name__ == "__main__":
    main()
