"""The lint finds what it is for, and names the cell. Each rule is given the smallest notebook that breaks it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from lessonlib.lab import lint
from lessonlib.lab.author import METADATA, tidy

CARD = """# 00 · Where is the answer?

| | |
|---|---|
| **Question** | Why? |
| **You can, at the end** | say why |
| **Time** | 15 minutes |
| **You need** | Python |
| **Next** | nothing |
"""


def md(source: str, name: str = "text") -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def code(
    source: str, *outputs: dict[str, Any], name: str = "code", count: int | None = 1, **metadata: Any
) -> dict[str, Any]:
    head = {"cell_type": "code", "id": name, "metadata": metadata, "source": source}
    return {**head, "execution_count": count, "outputs": list(outputs)}


def stdout(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def result(text: str = "1", **data: Any) -> dict[str, Any]:
    return {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": text, **data}}


def failure(name: str = "IndexError", words: str = "x") -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": words, "traceback": [f"{name}: {words}"]}


def notebook(*cells: dict[str, Any], card: bool = True) -> dict[str, Any]:
    every = [md(CARD, "card"), *cells] if card else list(cells)
    for number, cell in enumerate(every):
        cell["id"] = f"{cell['id']}-{number}"
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": copy.deepcopy(METADATA), "cells": every}


def found(*cells: dict[str, Any], card: bool = True) -> list[tuple[str, str]]:
    return [(fault.rule, fault.where) for fault in lint.lint(notebook(*cells, card=card))]


def test_a_sound_notebook_has_no_faults() -> None:
    assert found(md("Some words."), code("1 + 1", result("2")), code("print(2)", stdout("2\n"), count=2)) == []


# ---------------------------------------------------------------- form


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        ([code("x = 1", count=None)], "counts"),
        ([code("x = 1", count=2)], "counts"),
        ([code("x = 1", count=1), code("x = 1", count=3)], "counts"),
        ([code("1 + 1")], "outputs"),
        ([code("print(1)")], "outputs"),
        ([code("figure.draw();")], "semicolon"),
        ([code("")], "empty"),
        ([code("x = 1", {"output_type": "stream", "name": "stderr", "text": "a warning"})], "stderr"),
        ([code("x = 1", tags=["hide"])], "tags"),
        ([code("x = 1", tags=["nbval-skip"])], "tags"),
        ([code("x = 1", tags=["reveal"])], "form"),
        ([code("x = 1", exceptions={"anything": "because"})], "tags"),
    ],
)
def test_traps_of_nbval(cells: list[dict[str, Any]], rule: str) -> None:
    assert rule in [name for name, _ in found(*cells)]


@pytest.mark.parametrize(
    "source",
    [
        "clear_output()",
        "update_display(x, display_id=1)",
        "interact(f, x=1)",
        "out = widgets.Output()",
        "%time f()",
        "%%timeit\nf()",
    ],
)
def test_what_shows_itself_later_is_a_trap(source: str) -> None:
    assert ("traps", "cell code-1") in found(code(source))


@pytest.mark.parametrize(
    "source", ["open('x.sse')", "open('x', 'w')", "path.read_text()", "path.write_text('ß')", "path.open()"]
)
def test_a_text_file_without_its_encoding_is_a_fault(source: str) -> None:
    assert ("encoding", "cell code-1") in found(code(f"x = {source}"))


@pytest.mark.parametrize(
    "source", ["open('x', 'rb')", "open('x', encoding='utf-8')", "path.read_bytes()", "path.open('wb')"]
)
def test_bytes_and_named_encodings_are_fine(source: str) -> None:
    assert found(code(f"x = {source}")) == []


def test_names_that_only_look_like_traps_are_fine() -> None:
    assert found(code("interactive = 1\nOutputs = [1]\ntimes = 2")) == []


def test_an_exception_needs_a_reason() -> None:
    assert found(code("x = 1", tags=["nbval-skip"], exceptions={"nbval-skip": "asks the network"})) == []
    assert found(code("x = 1", tags=["nbval-skip"], exceptions={"nbval-skip": " "})) != []


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"kernelspec": {"name": "venv", "display_name": "mine", "language": "python"}, "language_info": {"name": "python"}},
        {**METADATA, "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}}},
        {**METADATA, "language_info": {"name": "python", "version": "3.11.7"}},
    ],
)
def test_other_metadata_than_the_plain_one_is_a_fault(metadata: dict[str, Any]) -> None:
    wrong = {**notebook(code("x = 1")), "metadata": metadata}
    assert [fault.rule for fault in lint.lint(wrong)] == ["form"]


def test_a_hidden_cell_and_random_ids_are_part_of_the_form() -> None:
    right = notebook(code("x = 1", tags=["reveal"], jupyter={"outputs_hidden": True}))
    assert lint.lint(right) == []
    right["cells"][1]["id"] = "3f2b8c1d"
    assert [fault.rule for fault in lint.lint(right)] == ["form"]
    assert lint.lint(tidy(right)) == []


# ---------------------------------------------------------------- errors and paths


def test_an_error_is_stored_where_the_lesson_says_so_and_only_there() -> None:
    assert ("errors", "cell code-1") in found(code("x[9]", failure()))
    assert found(code("x[9]", failure(), tags=["raises-exception"])) == []
    assert ("errors", "cell code-1") in found(code("x = 1", tags=["raises-exception"]))
    assert ("errors", "cell code-1") in found(code("print(a)", stdout("[ERROR] list index out of range\n")))
    assert ("errors", "cell code-1") in found(code("print(a)", stdout("Traceback (most recent call last)\n  File\n")))


@pytest.mark.parametrize("path", ["/home/ada/x.sse", "/Users/ada/x", "C:\\\\Users\\\\ada", "/tmp/x.sse", "/root/x"])
def test_a_path_of_somebodys_machine_is_a_fault(path: str) -> None:
    assert ("paths", "cell code-1 source") in found(code(f'open("{path}")'))
    assert ("paths", "cell code-1 output") in found(code("print(a)", stdout(f"{path}\n")))


@pytest.mark.parametrize("path", ["/v1/messages", "https://example.com/home/x", "../testdata/x", "and/or"])
def test_paths_of_an_api_are_none(path: str) -> None:
    assert found(code("print(a)", stdout(f"{path}\n"))) == []


# ---------------------------------------------------------------- keys


KEYS = [
    "sk-inv-Z9y8X7w6Z9y8X7w6Z9y8X7w6", "AIza" + "Ab1" * 12, "Bearer abcdefghijklmnopqrstuvwx", "ghp_" + "a1" * 15,
    "x-api-key: 0123456789abcdef0123456789", '"x-goog-api-key": "0123456789abcdef01234567"',
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_found_wherever_it_is_and_never_repeated(key: str) -> None:
    widgets = {"application/vnd.jupyter.widget-state+json": {"state": {"w1": {"state": {"value": key}}}}}
    wrong = notebook(
        code(f"key = {key!r}", name="a"),
        code("print(config)", stdout(key), name="b", count=2),
        code("ask()", {**failure(), "traceback": [f"header {key}"]}, name="c", count=3, tags=["raises-exception"]),
        code("x = 1", name="d", count=4, note=key),
        {**md("Text", "e"), "attachments": {"a": {"text/plain": key}}},
        card=False,
    )
    wrong["metadata"] = {**METADATA, "widgets": widgets}
    places = lint.lint(wrong, checks=[lint.secrets])
    assert [fault.where for fault in places] == [
        "cell a-0 source", "cell b-1 output", "cell c-2 traceback", "cell d-3 metadata", "cell e-4 attachment",
        "metadata widget w1",
    ]  # fmt: skip
    assert not any(key in str(fault) for fault in places)


@pytest.mark.parametrize(
    "text",
    ["sk-...", "Authorization: Bearer $OPENAI_API_KEY", "x-api-key: ...", "toolu_01TideWeatherOslo0001",
     "the key sk- begins it", "task-oriented-programming-is-fun-and-long", "call_1aae3c4f561b3c0048a8ff5a"],
)  # fmt: skip
def test_what_only_speaks_of_keys_is_none(text: str) -> None:
    assert lint.lint(notebook(code("print(a)", stdout(text))), checks=[lint.secrets]) == []


# ---------------------------------------------------------------- sizes


def test_sizes_of_texts_code_and_outputs() -> None:
    assert ("size", "cell text-1") in found(md("word " * 81), code("x = 1"))
    assert found(md("word " * 80), code("x = 1")) == []
    assert found(md("word " * 20 + "\n```\n" + "code " * 200 + "\n```\n`" + "code " * 90 + "`"), code("x = 1")) == []
    assert ("size", "cell b-2") in found(md("a", "a"), md("b", "b"), code("x = 1"))  # the card is the first of the three
    assert found(md("a", "a"), code("x = 1")) == []
    thirteen = "\n".join(f"x{n} = 1" for n in range(13))
    short = [code("x = 1", count=n) for n in (2, 3)]
    assert ("size", "cell code-1") in found(code(thirteen), *copy.deepcopy(short))
    assert found(code(thirteen, exceptions={"long-cell": "a decoder"}), *copy.deepcopy(short)) == []
    assert ("size", "") in found(code("\n".join(["x = 1"] * 6)))
    assert ("size", "cell code-1") in found(code("print(a)", stdout("line\n" * 21)))
    assert found(code("print(a)", stdout("line\n" * 20))) == []
    assert ("size", "cell code-1") in found(code("print(a)", stdout("line\n" * 12), result("a\n" * 9)))


def test_folded_html_does_not_count_and_open_html_does() -> None:
    rows = "<table>" + "<tr><td>x</td></tr>" * 21 + "</table>"
    assert ("size", "cell code-1") in found(code("table", result("x", **{"text/html": rows})))
    folded = f"<details><summary>data</summary>{rows}</details>"
    assert found(code("table", result("x\n" * 40, **{"text/html": folded}))) == []
    lines = "<pre>" + "line\n" * 22 + "</pre>"
    assert ("size", "cell code-1") in found(code("table", result("x", **{"text/html": lines})))


# ---------------------------------------------------------------- words, models, links, pictures


PHRASES = [
    *(f"Here {phrase} stands." for phrase in lint.BANNED), "Let’s see.", "We DIVE in.", "As we\ncan see, x.", "Simply put.",
]  # fmt: skip


@pytest.mark.parametrize("phrase", PHRASES)
def test_banned_phrases(phrase: str) -> None:
    assert ("words", "cell text-1") in found(md(phrase), code("x = 1"))


def test_banned_words_inside_code_and_other_words_are_fine() -> None:
    assert found(md("`simply` and simplify, divers and explorers, robustness"), code("x = 1")) == []


@pytest.mark.parametrize(
    "source",
    ['client(model="brot-3-mini-20240307")', "MODEL = 'claude-opus-5-5'", '{"model": "gpt-6-astra"}',
     'x = "gemini-3.8-flash"', "x = 'o3-mini'", "x = 'deepseek-v4-flash'"],
)  # fmt: skip
def test_a_models_name_in_a_cell_is_a_fault(source: str) -> None:
    assert ("models", "cell code-1") in found(code(source))


def test_names_of_wire_formats_and_years_are_no_models() -> None:
    named = code('x = client("gemini-generate-content").wire.model')
    assert found(md("gemini-interactions, Claude 4.5, gpt, openai-chat"), named) == []


def test_links_lead_somewhere(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# One\n\n## 1.2 Two `x` words\n", encoding="utf-8")
    (tmp_path / "n.ipynb").write_text("{}", encoding="utf-8")
    good = notebook(md("[a](page.md) [b](page.md#12-two-x-words) [c](https://example.com) [d](#here)"), code("x = 1"))
    assert lint.lint(good, tmp_path / "n.ipynb", []) == []
    bad = notebook(md("[a](nowhere.ipynb) [b](page.md#three) ![](page.md)"), code("x = 1"))
    assert [fault.rule for fault in lint.lint(bad, tmp_path / "n.ipynb", [])] == ["links", "links", "alt"]


def test_a_drawing_says_its_finding_to_everybody() -> None:
    alt = "Without jitter the load comes back in spikes."
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "aGk=", "text/plain": "[drawing]"}}
    told = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": f"title\n{alt}"}}
    assert ("alt", "cell code-1") in found(code("plot()", picture))
    with_alt = {**picture, "metadata": {"image/png": {"alt": alt}}}
    assert ("alt", "cell code-1") in found(code("plot()", with_alt))
    assert found(code("plot()", with_alt, told)) == []
    large = {**with_alt, "data": {"image/png": "A" * 300_000, "text/plain": "[drawing]"}}
    assert ("size", "cell code-1") in found(code("plot()", large, told))


# ---------------------------------------------------------------- the lesson


def test_the_card_comes_first_and_is_complete() -> None:
    assert ("card", "") in found(code("x = 1"), card=False)
    assert ("card", "cell text-0") in found(md("# Where is the answer?"), code("x = 1"), card=False)
    assert ("card", "cell text-0") in found(md(CARD.replace("**Time**", "Time")), code("x = 1"), card=False)
    assert ("card", "") in found(md("# Another"), code("x = 1"))


OPTIONS = "- **a** in all three\n- **b** in none of them\n- **c** only in Anthropic's\n"


def test_a_prediction_exists_and_its_options_stand_above_it() -> None:
    reveal = code('reveal("00.first", guess)', result("Your guess first"), count=2)
    guess = code("guess = None  # a, b or c")
    assert found(md(OPTIONS), copy.deepcopy(guess), copy.deepcopy(reveal)) == []
    assert ("predictions", "cell code-3") in found(md("Guess."), copy.deepcopy(guess), copy.deepcopy(reveal))
    unknown = code('reveal("00.nothing", guess)', result("x"), count=2)
    assert ("predictions", "cell code-3") in found(md(OPTIONS), copy.deepcopy(guess), unknown)
    assert ("predictions", "cell code-2") in found(md(OPTIONS), code('guess = "b"'), copy.deepcopy(reveal))


def test_a_predictions_data_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from lessonlib.lab import predict

    options = {
        "a": {"text": "one", "belief": None, "feedback": "no"},
        "b": {"text": "two", "belief": "x", "feedback": "a b c d e f"},
    }
    entry = {"question": "?", "answer": "d", "options": options}
    monkeypatch.setattr(predict, "course", lambda lesson: {"predictions": {"bad": entry}})
    assert list(lint.prediction_faults("00.bad")) == [
        "00.bad: the answer 'd' is none of its options", "00.bad has 2 options; two wrong ones at least",
        "00.bad: option a has no feedback", "00.bad: the wrong option a names no belief",
    ]  # fmt: skip
    entry["answer"] = "b"
    assert "00.bad: the right option b names a belief" in list(lint.prediction_faults("00.bad"))


# ---------------------------------------------------------------- the command


def test_the_command_names_file_and_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    file = tmp_path / "x.ipynb"
    file.write_text(json.dumps(notebook(code("1 + 1"))), encoding="utf-8")
    assert lint.main([str(file)]) == 1
    assert "cell code-1: its last line shows a value" in capsys.readouterr().out
    file.write_text(json.dumps(notebook(code("1 + 1", result("2")))), encoding="utf-8")
    assert lint.main([str(file)]) == 0
    assert lint.main([str(tmp_path / "none.ipynb")]) == 2
