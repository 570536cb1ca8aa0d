"""The learner's process: runs cells in one namespace, uses the learner's objects, and answers with plain data.

    python -m lessonlib.lab.grading.student       questions on standard input, answers on standard output, one JSON line each

It knows no right answer. What the learner's code prints goes nowhere, and it meets no network: connecting raises OSError.

What this file does not do: it is no sandbox. See the package's docstring for what that means.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import itertools
import json
import linecache
import os
import socket
import sys
from types import CodeType
from typing import IO, Any

from lessonlib.lab import checks
from lessonlib.lab.checks import predicted
from lessonlib.lab.checks.core import Check, plain, told
from lessonlib.lab.checks.patience import patience
from lessonlib.lab.confined import limit_resources
from lessonlib.lab.grading.codec import decode, encode


def main() -> None:
    """Answers until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever prints, a C library too, must not look like an answer
    questions = io.TextIOWrapper(os.fdopen(os.dup(0), "rb"), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    limit_resources()
    _no_network()
    names: dict[str, Any] = {"__name__": "__main__"}
    for line in questions:
        _say(answers, _answer(json.loads(line), names))


def _say(answers: IO[str], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _answer(question: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    try:
        match question["do"]:
            case "run":
                _run(question["source"], names)
                return {}
            case "value":
                return {"value": encode(plain(_listed(names[question["name"]])))}
            case _:
                learner = names.get(question["name"])
                if learner is None:
                    return {"raised": "NotImplementedError"}
                observe = _check(question["call"], question["about"]).observe
                with patience():
                    return {"value": encode(plain(observe(learner, decode(question["given"])), bare=True))}
    except BaseException as error:
        return {"raised": type(error).__name__, "message": told(error)}


def _check(call: str, about: str) -> Check:
    match call:
        case "check.cells":
            return predicted.cells_check(about)
        case "check.order":
            return predicted.order_check(about)
        case _:
            return checks.get(call.removeprefix("check."))


def _listed(value: Any) -> Any:
    """A set of words as a list: predictions are sets."""
    return sorted(value) if type(value) in (set, frozenset) and all(type(word) is str for word in value) else value


def _run(source: str, names: dict[str, Any]) -> None:
    """One cell. Magics and shell lines are passed over; `await` at the top level works as in a notebook."""
    if source.lstrip().startswith("%%"):
        return
    try:
        code = _compiled(source)
    except SyntaxError:  # a line of a text or of a calculation may begin like a magic; only where it must be one it is
        code = _compiled("\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()))
    if inspect.CO_COROUTINE & code.co_flags:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)


def _compiled(source: str) -> CodeType:
    """The code of a cell, under a name of its own by which its lines can be found and shown."""
    name = f"<cell {next(_NUMBERS)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    code: CodeType = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


_NUMBERS = itertools.count(1)


def _no_network() -> None:
    def refuse(*arguments: Any, **named: Any) -> Any:
        raise OSError("there is no network while a notebook is graded")

    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]
    socket.create_connection = refuse


if __name__ == "__main__":
    main()
