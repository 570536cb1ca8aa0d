"""The `lesson` command: through click's runner, and as a real process with pipes, a terminal, signals and a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib.cli import DEFAULT_MODELS, PROVIDERS, WIRE_NAMES, lesson
from lessonlib.curl import KEY, for_powershell, for_shell
from lessonlib.example_tools import calculator, clock
from lessonlib.explain import explain
from lessonlib.explain.render import harmless
from lessonlib.types import Message, Request
from lessonlib.wire import WIRES
from tests.servers import Handler, Peer, Server
from tests.test_explain import ANSWER, HOSTILE, block, start

ROOT = Path(__file__).parent.parent
TESTDATA = ROOT / "testdata"
KEY_VALUE = "sk-inv-SECRET-1234567890"
posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell, terminal or signal")


@pytest.fixture(autouse=True)
def a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated prompt cache outlives a command; it must not outlive a test."""
    home = tmp_path_factory.mktemp("home")
    for variable in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(variable, str(home))


def run(*words: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(lesson, list(words), input=stdin)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "lessonlib", *words]


def process(*words: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(*words), input=stdin, capture_output=True, env={**os.environ, **(env or {})}, check=False)


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.sse"
    path.write_bytes(ANSWER)
    return str(path)


@pytest.fixture
def cut(tmp_path: Path) -> str:
    path = tmp_path / "cut.sse"
    path.write_bytes(start() + block(0, "The fer"))
    return str(path)


# ---------------------------------------------------------------- the command itself


@pytest.mark.parametrize("words", [[], ["chat"], ["curl"], ["explain"]])
def test_help_for_everything(words: list[str]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")
    for name in [] if words else ["chat", "curl", "explain"]:
        assert name in result.output
    params = [param for param in (lesson.commands[words[0]].params if words else []) if param.param_type_name == "option"]
    assert [param.name for param in params if not getattr(param, "help", None)] == []


def test_the_version_is_the_packages() -> None:
    import lessonlib

    assert run("--version").output.strip() == f"lesson, version {lessonlib.__version__}"


def test_python_m_is_the_same_command() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout.strip()) == (0, run("--version").output.strip().encode())


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["explain"],
        ["explain", "--wire", "morse", "x"],
        ["explain", "--status", "99", "x"],
        ["explain", "--problems", "x"],
        ["chat"],
        ["chat", "-p", "nobody", "Hi"],
        ["chat", "--base-url", "http://localhost:1", "Hi"],
        ["curl", "--live", "Hi"],
    ],
)
def test_wrong_usage_is_exit_code_2_with_a_reason(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert result.stdout == ""


def test_help_loads_nothing_that_takes_time() -> None:
    script = (
        "import sys\nfrom lessonlib.cli import lesson\n"
        "try: lesson(['--help'])\nexcept SystemExit: pass\n"
        "slow = {'pydantic', 'httpx', 'rich', 'asyncio', 'tiktoken'} & sys.modules.keys()\n"
        "sys.exit(f'loaded: {sorted(slow)}' if slow else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# ---------------------------------------------------------------- lesson explain


def test_the_exit_code_says_whether_all_captures_are_complete(good: str, cut: str) -> None:
    assert run("explain", good).exit_code == 0
    assert run("explain", good, cut).exit_code == 1
    assert run("explain", "--json", good, good).exit_code == 0
    assert run("explain", "--json", cut).exit_code == 1


def test_a_bad_file_does_not_stop_the_others(good: str, tmp_path: Path) -> None:
    missing, folder = str(tmp_path / "missing"), tmp_path / "folder"
    folder.mkdir()
    result = run("explain", "--json", missing, str(folder), good)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["file"] for line in lines] == [missing, str(folder), good]
    assert [(line["error"] or {}).get("kind") for line in lines] == ["transport_error", "transport_error", None]
    assert (result.exit_code, result.stderr) == (1, "")


def test_standard_input_is_read_as_bytes() -> None:
    result = run("explain", "--json", "-", stdin=ANSWER.replace(b"ferry", b"f\xe4hre"))
    line = json.loads(result.stdout)
    assert (line["file"], line["text"], result.exit_code) == ("-", "The f\ufffdhre leaves at six.", 0)


def test_wire_and_status_can_be_said(good: str) -> None:
    assert json.loads(run("explain", "--json", "--wire", "openai-chat", good).stdout)["wire"] == "openai-chat"
    line = json.loads(run("explain", "--json", "--status", "503", good).stdout)
    assert (line["error"]["kind"], line["error"]["status"], line["text"]) == ("provider_error", 503, "")


def test_a_folder_of_tapes_gives_a_line_per_body() -> None:
    result = run("explain", "--json", str(TESTDATA / "openai-chat" / "tool_call"))
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [Path(line["file"]).name for line in lines] == ["response.json", "stream.sse"]


def test_problems_are_added_to_the_line_only_if_asked_for(cut: str) -> None:
    plain, more = (json.loads(run("explain", "--json", *words, cut).stdout) for words in ([], ["--problems"]))
    problems = more.pop("problems")
    assert more == plain
    assert [problem["code"] for problem in problems] == ["incomplete-stream"]
    assert set(problems[0]) == {"severity", "code", "message", "place", "rule"}


def test_the_report_in_a_pipe_is_plain_text(good: str, cut: str) -> None:
    done = process("explain", good, cut)
    text = done.stdout.decode("utf-8").replace("\r\n", "\n")
    assert (done.returncode, done.stderr) == (1, b"")
    assert harmless(text) == text
    assert re.search(r"^ +3-5 +\d+  content_block_delta +OPEN +part 0: text, 24 characters in 3 events", text, re.MULTILINE)
    assert "no complete answer: incomplete stream" in text
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert not re.search("[\u2500-\u257f]", text)


def test_all_shows_a_row_for_every_event(good: str) -> None:
    assert re.search(r"^ +4 +\d+  content_block_delta", run("explain", "--all", good).stdout, re.MULTILINE)


def test_a_console_that_knows_few_characters_does_not_stop_it(tmp_path: Path) -> None:
    path = tmp_path / "odd.sse"
    path.write_bytes(start() + block(0, "東京 🚲"))
    done = process("explain", str(path), env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (1, b"")
    assert rb"\u6771\u4eac" in done.stdout


@posix
def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "long.sse"
    path.write_bytes(start() + b"".join(block(index, "a") for index in range(3000)))
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -n 1', "sh", *command("explain", "--all", str(path))], capture_output=True, check=False
    )
    assert (done.stdout, done.stderr) == (f"{path}\n".encode(), b"")


def terminal(columns: int, *words: str) -> list[str]:
    """What the command shows on a terminal of that width, without its colours."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")}
    child = subprocess.Popen(
        command(*words), stdout=theirs, stderr=theirs, stdin=theirs, env={**env, "TERM": "xterm-256color"}
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not piece:
            break
        shown += piece
    child.wait()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode("utf-8")).splitlines()


@posix
@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("wire", WIRE_NAMES)
def test_on_a_terminal_every_line_fits(wire: str, columns: int) -> None:
    lines = terminal(columns, "explain", str(TESTDATA / wire / "tool_call" / "stream.sse"))
    assert max(len(line.rstrip()) for line in lines[1:]) <= columns  # the first is the path, which must stay copyable
    text = " ".join(" ".join(lines).split())
    assert "complete: stop is tool_use" in text
    assert "get_weather" in text


@posix
def test_on_a_terminal_nothing_in_a_capture_acts(tmp_path: Path) -> None:
    path = tmp_path / "hostile.sse"
    path.write_bytes(start() + block(0, HOSTILE) + b"\x1b]0;title\x07\n")
    lines = terminal(100, "explain", str(path))
    assert [line for line in lines if harmless(line) != line] == []
    assert any("[bold]x[/bold] :smile:" in line for line in lines)


# ---------------------------------------------------------------- lesson chat, offline


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_live_the_simulator_answers_and_it_says_so(provider: str, stream: str) -> None:
    result = run("chat", "-p", provider, stream, "What is a token?")
    assert result.exit_code == 0
    assert "What is a token?" in result.stdout
    notice, figures = result.stderr.splitlines()
    assert notice.startswith("offline: the simulator answers")
    assert re.fullmatch(r"stop end \(\w+\), input \d+, cached (\d+|not reported), output \d+, reasoning \d+", figures)


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("prompt", ["现在几点？再算一下 17*23", "What time is it? Also compute 17*23"])
def test_tools_really_run_and_the_second_run_is_cached(provider: str, stream: str, prompt: str) -> None:
    results = [run("chat", "-p", provider, stream, "--tools", prompt) for _ in range(2)]
    for result in results:
        assert result.exit_code == 0
        _, *calls, figures = result.stderr.splitlines()
        assert any(call.startswith("tool calculator(") and call.endswith("-> 391") for call in calls)
        assert any(call.startswith("tool clock(") and "UTC" in call for call in calls)
        assert figures.endswith(", 2 requests")
        assert "391" in result.stdout
    cached = [int(re.search(r"cached (\d+)", result.stderr)[1]) for result in results]  # type: ignore[index]
    assert 0 < cached[0] < cached[1]


def test_the_prompt_cache_outlives_the_process(tmp_path: Path) -> None:
    """Two commands are two processes. What lies between them is a file with digests, and no word of the prompt."""
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "APPDATA": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    runs = [process("chat", "--tools", "The time now and 17*23", env=home) for _ in range(2)]
    assert [done.returncode for done in runs] == [0, 0]
    assert all(b"391" in done.stdout for done in runs)
    cached = [int(re.search(rb"cached (\d+)", done.stderr)[1]) for done in runs]  # type: ignore[index]
    assert 0 < cached[0] < cached[1]
    [file] = tmp_path.rglob("simulated-prompt-cache.json")
    assert all(re.fullmatch("[0-9a-f]{64}", key) for key in json.loads(file.read_text(encoding="utf-8")))


def test_offline_needs_no_key_and_no_network() -> None:
    done = process("chat", "Hi", env={"OPENAI_BASE_URL": "http://127.0.0.1:9"})
    assert done.returncode == 0


def test_every_wire_format_has_a_default_model() -> None:
    assert list(DEFAULT_MODELS) == list(PROVIDERS.values()) == list(WIRE_NAMES)
    assert sorted(WIRE_NAMES) == sorted(WIRES)


# ---------------------------------------------------------------- lesson serve, lesson rules


def test_rules_names_each_rule_with_its_source() -> None:
    from lessonlib.sim import all_rules

    result = run("rules")
    assert result.exit_code == 0
    assert [rule.name for rule in all_rules() if f"{rule.name}\n" not in result.stdout] == []
    one = [json.loads(line) for line in run("rules", "--wire", "anthropic-messages", "--json").stdout.splitlines()]
    assert {row["wires"] for row in one} == {"anthropic-messages"}
    assert {"rule", "wires", "says", "source"} == set(one[0])


def test_rules_lists_cues_and_faults() -> None:
    from lessonlib.sim import CUES
    from lessonlib.sim.faults import KINDS

    assert "in parallel" in run("rules", "--cues").stdout
    assert "cut_events=EVENTS" in run("rules", "--faults").stdout
    for option, names in [("--cues", [cue.name for cue in CUES]), ("--faults", list(KINDS))]:
        rows = [json.loads(line) for line in run("rules", option, "--json").stdout.splitlines()]
        assert [next(iter(row.values())).partition("=")[0] for row in rows] == names
    assert run("rules", "--wire", "no-such").exit_code == 2


@pytest.mark.parametrize(("name", "wire"), PROVIDERS.items())
def test_a_wire_format_has_the_same_names_everywhere(name: str, wire: str, good: str) -> None:
    """`-p`, and `--wire` of two commands: the vendor's name means its present API, and each format's own name is taken."""
    assert run("rules", "--wire", name).stdout == run("rules", "--wire", wire).stdout
    for option in (name, wire):
        assert run("chat", "-p", option, "--no-stream", "Hello").stdout == "Hello!\n"
        assert run("explain", "--wire", option, good).exit_code in (0, 1)


def test_rules_says_where_there_is_doubt() -> None:
    from lessonlib.sim import all_rules

    rows = [json.loads(line) for line in run("rules", "--json").stdout.splitlines()]
    assert [row["rule"] for row in rows if "doubt" in row] == [rule.name for rule in all_rules() if rule.doubt]
    assert "  doubt: " in run("rules", "--wire", "anthropic").stdout


@pytest.mark.parametrize(
    ("provider", "model", "said"),
    [
        ("openai", "gpt-6-astar", "Did you mean gpt-6-astra? The simulator knows"),
        ("openai-chat", "gpt-6-astar", "Did you mean gpt-6-astra? The simulator knows"),
        ("anthropic", "unknown-model", "The simulator knows claude-fable-5"),
        ("gemini", "unknown-model", "The simulator knows gemini-2.5"),
        ("gemini-generate-content", "unknown-model", "The simulator knows gemini-2.5"),
    ],
)
def test_an_unknown_model_offline_is_answered_with_those_that_there_are(provider: str, model: str, said: str) -> None:
    result = run("chat", "-p", provider, "-m", model, "Hello")
    assert result.exit_code == 1
    assert said in result.stderr


@pytest.mark.parametrize("words", ["--faults --cues", "--cues --wire openai-chat"])
def test_rules_refuses_options_that_it_would_have_to_ignore(words: str) -> None:
    result = run("rules", *words.split())
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    ("words", "script", "said"),
    [
        (["--fault", "cut=3"], None, "unknown fault 'cut'; the kinds are status"),
        (["--fault", "status=ten"], None, "status takes a number, not 'ten'"),
        ([], "[", "the script is no JSON"),
        (["--without", "version_present"], None, "version_present: no rule in doubt; those that can be left out are"),
        ([], '[{"sing": "la"}]', "turn 1: write a text, or an object with one of say, think, call, search, refuse"),
    ],
)
def test_serve_says_what_it_cannot_read(words: list[str], script: str | None, said: str, tmp_path: Path) -> None:
    if script is not None:
        file = tmp_path / "script.json"
        file.write_text(script, encoding="utf-8")
        words = [*words, "--script", str(file)]
    result = run("serve", *words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_serve_names_a_port_that_is_taken() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port))
    assert result.exit_code == 1
    assert f"cannot listen on port {port}" in result.stderr
    assert "--port 0" in result.stderr


def test_serve_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import lessonlib.sim as sim

    monkeypatch.delitem(sys.modules, "lessonlib.sim.server", raising=False)
    monkeypatch.delattr(sim, "server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("serve")
    assert (result.exit_code, result.stderr) == (1, 'Error: uvicorn is missing: pip install "lessonlib[serve]"\n')


def test_serve_says_where_it_is_answers_and_ends_with_ctrl_c() -> None:
    import signal

    import httpx

    command = [sys.executable, "-m", "lessonlib", "serve", "--port", "0", "--fault", "status=529@1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8") as server:
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(15)]  # up to the fault: it is ready, and waits
        url = re.search(r"http://127\.0\.0\.1:\d+", lines[0])
        assert url is not None
        statuses = [httpx.post(f"{url[0]}/v1/messages", json={}).status_code for _ in range(2)]
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=20)
    assert statuses == [529, 401]
    assert "OpenAI(base_url=" in "".join(lines)
    assert lines[-1] == "fault: status=529@1\n"
    assert (errors, server.returncode) == ("", 0)


def test_serve_refuses_a_fault_that_is_none() -> None:
    result = run("serve", "--fault", "explode")
    assert result.exit_code == 2
    assert "the kinds are" in result.stderr


# ---------------------------------------------------------------- lesson chat, live


def live(server: Server, *words: str) -> subprocess.CompletedProcess[bytes]:
    env = {"ANTHROPIC_API_KEY": KEY_VALUE}
    return process("chat", "-p", "anthropic", "--live", "--base-url", server.url, *words, stdin=b"Where is it?", env=env)


def test_live_asks_the_service_and_prints_its_answer(serve: Callable[[Handler], Server]) -> None:
    server = serve(lambda peer: peer.stream(ANSWER, size=7))
    done = live(server, "-m", "m-1", "-")
    assert (done.returncode, done.stdout.splitlines()) == (0, [b"The ferry leaves at six."])
    assert done.stderr.split(b"\n")[0].startswith(b"stop end (end_turn), input 9, cached not reported, output 5")
    [asked] = server.asked
    assert (asked.path, asked.headers["x-api-key"], asked.json["model"]) == ("/v1/messages", KEY_VALUE, "m-1")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_missing_key_is_named_and_nothing_is_sent(provider: str) -> None:
    first, *others = WIRES[PROVIDERS[provider]].key_variables
    names = first + (f" (or {' or '.join(others)})" if others else "")
    result = run("chat", "-p", provider, "--live", "Hi")
    assert result.exit_code == 1
    assert result.stderr == f"Error: --live needs an API key: set the environment variable {names}\n"


def unauthorized(peer: Peer) -> None:
    error = {"type": "authentication_error", "message": f"invalid x-api-key {KEY_VALUE}\nline 2 \x1b[31m"}
    peer.answer(json.dumps({"type": "error", "error": error}).encode(), status=401)


def test_an_error_is_one_line_without_the_key(serve: Callable[[Handler], Server]) -> None:
    done = live(serve(unauthorized), "Hi")
    assert (done.returncode, done.stdout) == (1, b"")
    [line] = done.stderr.decode().splitlines()
    assert line == r"Error: HTTP 401, authentication_error: invalid x-api-key *** line 2 \x1b[31m"


def test_a_refusal_for_want_of_a_key_names_the_variable(serve: Callable[[Handler], Server]) -> None:
    done = process("chat", "-p", "openai-chat", "--live", "--base-url", serve(unauthorized).url, "Hi")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().strip().endswith(". No key was sent: set the environment variable OPENAI_API_KEY")


def test_what_came_before_an_error_stays_on_the_screen(serve: Callable[[Handler], Server]) -> None:
    done = live(serve(lambda peer: peer.stream(start() + block(0, "The ferry"))), "Hi")
    assert (done.returncode, done.stdout.splitlines()) == (1, [b"The ferry"])
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("Error: the stream ended in state OPEN, before message_stop")


def test_nobody_there_is_one_line() -> None:
    done = process("chat", "-p", "openai-chat", "--live", "--base-url", "http://127.0.0.1:9", "Hi")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == ["Error: 127.0.0.1:9 refused the connection; is a server running there?"]


@posix
def test_ctrl_c_ends_it_with_130_and_closes_the_connection(serve: Callable[[Handler], Server]) -> None:
    gone: list[bool] = []

    def slow(peer: Peer) -> None:
        peer.head(200, {"content-type": "text/event-stream"})
        peer.chunk(start() + block(0, "The ferry"))
        gone.append(peer.wait_until_gone())

    words = command("chat", "-p", "anthropic", "--live", "--base-url", serve(slow).url, "Hi")
    child = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "ANTHROPIC_API_KEY": KEY_VALUE}
    )
    assert child.stdout is not None
    assert child.stdout.read(9) == b"The ferry"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err.strip()) == (130, b"\n", b"")
    assert gone == [True]


# ---------------------------------------------------------------- lesson curl


def encoded(provider: str, prompt: str, *, stream: bool) -> Any:
    wire = WIRES[PROVIDERS[provider]](DEFAULT_MODELS[PROVIDERS[provider]], api_key=KEY)
    return wire, wire.encode(Request(messages=[Message.user(prompt)]), stream=stream)


def arguments(script: str, variable: str) -> list[str]:
    """What a shell gives to curl."""
    catch = "curl() { printf '%s\\0' \"$@\"; }\n"
    env = {"PATH": os.environ["PATH"], variable: "k $X `x` \" ' \\"}
    done = subprocess.run(["sh", "-c", catch + script], capture_output=True, env=env, check=True)
    assert done.stderr == b""
    return done.stdout.decode("utf-8").split("\0")[:-1]


def check_curl(provider: str, prompt: str, stream: bool) -> None:
    wire, request = encoded(provider, prompt, stream=stream)
    variable = wire.key_variables[0]
    got = arguments(for_shell(request, variable, stream=stream), variable)
    assert got[:2] == ["-sSN" if stream else "-sS", request.url]
    headers = [value for flag, value in pairwise(got) if flag == "-H"]
    told = {name: value.replace(KEY, "k $X `x` \" ' \\") for name, value in request.headers.items()}
    assert dict(header.split(": ", 1) for header in headers) == told
    assert json.loads(got[got.index("-d") + 1]) == request.body


@posix
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_shell_reads_the_curl_command_as_it_was_meant(provider: str, stream: bool) -> None:
    check_curl(provider, 'it\'s $HOME `id` $(id) "q" \\ !! 東京 🚲\n\ttab # %s', stream)


@posix
@settings(max_examples=25, deadline=None)
@given(st.text(min_size=1, max_size=60).filter(str.strip), st.sampled_from(list(PROVIDERS)))
def test_no_prompt_leaves_its_quotes(prompt: str, provider: str) -> None:
    check_curl(provider, prompt, True)


@settings(deadline=None)
@given(st.text(min_size=1, max_size=60).filter(str.strip))
def test_the_curl_command_shows_nothing_that_a_terminal_acts_on(prompt: str) -> None:
    _, request = encoded("openai", prompt, stream=True)
    for text in (for_shell(request, "K", stream=True), for_powershell(request, "K", stream=True)):
        assert harmless(text) == text


@settings(deadline=None)
@given(st.text(min_size=1, max_size=60).filter(str.strip))
def test_powershell_gets_the_body_in_ascii_and_single_quotes(prompt: str) -> None:
    _, request = encoded("anthropic", prompt, stream=False)
    text = for_powershell(request, "ANTHROPIC_API_KEY", stream=False)
    literal = re.match(r"'((?:[^']|'')*)' \| curl\.exe -sS '", text)
    assert literal is not None
    assert literal[1].isascii()
    assert json.loads(literal[1].replace("''", "'")) == request.body
    assert '-H "x-api-key: $env:ANTHROPIC_API_KEY"' in text


def test_the_key_is_never_in_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider, wire in PROVIDERS.items():
        variable = WIRES[wire].key_variables[0]
        monkeypatch.setenv(variable, KEY_VALUE)
        result = run("curl", "-p", provider, "Hi")
        assert KEY_VALUE not in result.output
        assert f'${variable}"' in result.output
        assert KEY not in result.output


def test_tools_stand_in_the_body() -> None:
    output = run("curl", "-p", "anthropic", "--no-stream", "--tools", "Hi").output
    body = json.loads(output[output.index("-d '") + 4 : output.rindex("'")])
    assert [tool["name"] for tool in body["tools"]] == ["calculator", "clock"]
    assert "stream" not in body


@posix
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_command_works(serve: Callable[[Handler], Server]) -> None:
    server = serve(lambda peer: peer.stream(ANSWER))
    script = run("curl", "-p", "anthropic", "--base-url", server.url, "it's 6 o'clock").output
    env = {**os.environ, "ANTHROPIC_API_KEY": KEY_VALUE, "no_proxy": "127.0.0.1"}
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=env, check=True)
    assert explain(done.stdout).line()["text"] == "The ferry leaves at six."
    [asked] = server.asked
    assert (asked.headers["x-api-key"], asked.headers["content-type"]) == (KEY_VALUE, "application/json")
    assert "it's 6 o'clock" in json.dumps(asked.json["messages"])


# ---------------------------------------------------------------- the example tools


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(17 + 4) * 2", "42"),
        ("0.1 + 0.2", "0.3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("2 ** 10 / 4", "256"),
        ("1 / 3", "0.3333333333333333333333333333"),
        ("2 ** 200", "1.606938044258990275541962092E+60"),
        ("+-+1_000.50", "-1000.5"),
    ],
)
def test_the_calculator_calculates(expression: str, value: str) -> None:
    assert calculator(expression) == value


@pytest.mark.parametrize(
    "expression",
    ["", "1 +", "9**9**9**9", "1/0", "0**0", "1e999", "True", "1j", "'a' * 9", "__import__('os')", "x", "[1][0]",
     "1 if 1 else 2", "(" * 101 + "1" + ")" * 101, "1" * 201, "lambda: 1", "1 << 999999", "1 == 1", "f'{1}'", "1.5.real",
     "\x00"],
)  # fmt: skip
def test_the_calculator_refuses_everything_else_at_once(expression: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        calculator(expression)


def test_the_clock_knows_zones_and_refuses_what_is_none() -> None:
    assert re.fullmatch(r"\w+day, \d{4}-\d\d-\d\d \d\d:\d\d \(UTC\+0000\)", clock())
    for name in ("Atlantis/Center", "../../etc/passwd", "", "x" * 9999):
        with pytest.raises(ValueError, match="no time zone"):
            clock(name)
