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
BEGIN, END = "<!-- tables: made by `python -m benchmarks --docs` -->", "<!-- end of the tables -->"
DOCS = Path(__file__).parent.parent / "docs"
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


def run(mode: str, names: Sequence[str], before: dict[str, Any] | None = None) -> dict[str, Any]:
    """The results of these suites, as they stand in results.json. before: those of an earlier run, kept for other suites."""
    rows = rows_of(before) if before else []
    modes: dict[str, str] = dict(before["modes"]) if before else {}
    for name in names:
        began = time.perf_counter()
        new = list(SUITES[name](MODES[mode]))
        made = {row.suite for row in new}
        rows = [row for row in rows if row.suite not in made] + new
        modes |= dict.fromkeys(sorted(made), mode)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return {"machine": machine(), "modes": modes, "rows": [dataclasses.asdict(row) for row in rows]}


def write(results: dict[str, Any], folder: Path, name: str = "results") -> None:
    """The three files. One line of JSON for each row, so that a change can be seen."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in results["rows"])
    head = json.dumps({"machine": results["machine"], "modes": results["modes"]}, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(f'{head[:-2]},\n "rows": [\n{lines}\n]\n}}\n', encoding="utf-8")
    rows = rows_of(results)
    if any(row.suite == "reading" for row in rows):
        (folder / f"{name}.svg").write_text(picture(rows).svg(), encoding="utf-8")


def renewed(page: str, results: dict[str, Any]) -> str:
    """A page with its tables made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{markdown(results)}\n{END}{after}"


def publish(results: dict[str, Any]) -> None:
    """docs/benchmarks.md, .json and .svg, from these results."""
    write(results, DOCS, "benchmarks")
    page = DOCS / "benchmarks.md"
    page.write_text(renewed(page.read_text(encoding="utf-8"), results), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="short streams")
    parser.add_argument("--smallest", action="store_true", help="only whether everything runs")
    parser.add_argument("--only", default="", help=f"some suites, with commas: {', '.join(SUITES)}")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks"), help="where the results go")
    parser.add_argument("--add", action="store_true", help="keep the other suites' results that are there")
    parser.add_argument("--docs", action="store_true", help="measure nothing; put the results that are there into docs/")
    asked = parser.parse_args(arguments)
    names = asked.only.split(",") if asked.only else list(SUITES)
    if unknown := set(names) - SUITES.keys():
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    old = asked.out / "results.json"
    before = json.loads(old.read_text(encoding="utf-8")) if asked.add and old.exists() else None
    if asked.docs:
        publish(json.loads(old.read_text(encoding="utf-8")))
        return
    results = run("smallest" if asked.smallest else "short" if asked.short else "full", names, before)
    write(results, asked.out)
    (asked.out / "results.md").write_text(markdown(results), encoding="utf-8")
    print(ratio_table(ratios(rows_of(results))))


if __name__ == "__main__":
    main()
