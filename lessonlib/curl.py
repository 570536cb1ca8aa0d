"""A request as a curl command, for a shell or for PowerShell, with the key as a variable that the shell fills in.

The text can be pasted: the body is JSON in single quotes, quoted by the rules of the shell, and has no character in it that
a terminal would act on or hide (JSON has an escape for each). Only the key's header stands in double quotes, because the
shell must look into it.

    POSIX 2.2.2: in single quotes everything is literal, and there is no way to write a single quote (`'\\''` steps outside)
    PowerShell:  in single quotes everything is literal, a single quote is doubled; arguments with double quotes reach a
                 program garbled before version 7.3, so the body goes to curl's standard input, in ASCII

What this file does not do: it sends nothing, and never sees the key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from lessonlib.wire.base import HTTPRequest

KEY = "key-goes-here"
"""Encode the request with this as `api_key`; it is what the variable replaces."""

_ESCAPED = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def for_shell(request: HTTPRequest, variable: str, *, stream: bool) -> str:
    """The command for a POSIX shell. `variable` is the environment variable that holds the key."""
    words = [f"curl -sS{'N' if stream else ''} {_quoted(request.url)}"]
    words += [f"-H {_header(name, value, f'${variable}', _quoted)}" for name, value in request.headers.items()]
    words.append(f"-d {_quoted(_json(request))}")
    return " \\\n  ".join(words)


def for_powershell(request: HTTPRequest, variable: str, *, stream: bool) -> str:
    """The command for PowerShell. It calls curl.exe; `curl` alone is another program in PowerShell 5."""
    body = json.dumps(request.body, ensure_ascii=True, indent=2)
    words = [f"{_doubled(body)} | curl.exe -sS{'N' if stream else ''} {_doubled(request.url)}"]
    words += [f"-H {_header(name, value, f'$env:{variable}', _doubled)}" for name, value in request.headers.items()]
    words.append("-d '@-'")
    return " `\n  ".join(words)


def _header(name: str, value: str, variable: str, quoted: Callable[[str], str]) -> str:
    if KEY not in value:
        return quoted(f"{name}: {value}")
    before, _, after = f"{name}: {value}".partition(KEY)
    return f'"{before}{variable}{after}"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _json(request: HTTPRequest) -> str:
    """The body for reading: indented, letters of all scripts as they are, everything harmful or invisible as an escape."""
    return _ESCAPED.sub(_escape, json.dumps(request.body, ensure_ascii=False, indent=2))


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
