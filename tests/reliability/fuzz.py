"""The long run of the fuzzer: coverage-guided, with atheris (the extra `fuzz`; CPython 3.11 to 3.14 on Linux and macOS).

    python -m tests.reliability.fuzz TARGET [SECONDS]      one target; without a name, all of them, SECONDS each (60)

It begins with the fixtures, keeps every input that reaches new code, and stops at the first input that breaks a promise;
that one it writes to build/fuzz/. Each target runs in a process of its own, because the fuzzer ends its process.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path("build") / "fuzz"


def _fuzz(name: str, seconds: int) -> None:
    import atheris

    with atheris.instrument_imports(include=["lessonlib"]):
        from tests.reliability.targets import TARGETS, corpus

    found = FOLDER / name.replace(":", "-")
    start = found / "corpus"
    start.mkdir(parents=True, exist_ok=True)
    for number, body in enumerate(corpus(name)):
        (start / f"fixture-{number}").write_bytes(body)
    options = ["-rss_limit_mb=2048", "-timeout=20", "-max_len=20000", "-print_final_stats=1", f"-max_total_time={seconds}"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={found}/", str(start)], TARGETS[name])
    atheris.Fuzz()


def _all(seconds: int) -> int:
    from tests.reliability.targets import TARGETS

    broken = 0
    for name in TARGETS:
        command = [sys.executable, "-m", "tests.reliability.fuzz", name, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
        runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        print(
            f"{name:34} {int(runs[1]) if runs else 0:>10,} executions  {'ok' if done.returncode == 0 else 'BROKEN'}",
            flush=True,
        )
        if done.returncode != 0:
            print("\n".join(done.stderr.splitlines()[-40:]))
            broken += 1
    return 1 if broken else 0


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and not arguments[0].isdecimal():
        _fuzz(arguments[0], int(arguments[1]) if len(arguments) > 1 else 60)
        return 0
    return _all(int(arguments[0]) if arguments else 60)


if __name__ == "__main__":
    sys.exit(main())
