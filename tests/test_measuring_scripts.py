"""The scripts that made the tables of the documentation still run."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parent.parent / "tools"


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_recorded_requests_are_counted_and_compared(tmp_path: Path) -> None:
    """One request that can be counted (8 tokens, as billed), and one with a tool that the service runs, which cannot."""
    folder = tmp_path / "openai-responses"
    folder.mkdir()
    for name, tools in (("plain", []), ("search", [{"type": "web_search"}])):
        body = {"model": "gpt-4o", "input": [{"role": "user", "content": "Hello"}], "tools": tools}
        meta = {"url": "https://api.openai.com/v1/responses", "dialect": "openai", "request_body": body}
        answer = {
            "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-4o", "output": [],
            "usage": {"input_tokens": 8, "output_tokens": 1, "total_tokens": 9},
        }  # fmt: skip
        (folder / f"{name}.meta.json").write_text(json.dumps(meta), encoding="utf-8")
        (folder / f"{name}.json").write_text(json.dumps(answer), encoding="utf-8")
    measure = script("measure_tokens")
    (row,) = measure.rows(tmp_path)
    assert (row.name, row.count.tokens, row.billed, row.error) == ("plain", 8, 8, 0.0)
    assert "| OpenAI, openai-responses, text | 1 | +0.0 % | +0.0 % | 1 |" in measure.table([row])


def test_the_table_of_repairs_is_made_of_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    script("compare_repair").main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("| this library | 51 | 0 | 0 | 55 | 0 |")
    assert any(line.startswith("| json |") for line in lines)
