"""The shipped vocabulary is OpenAI's own, needs no network, and others fail loudly and at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiktoken_ext.openai_public

from lessonlib import vocabulary as module
from lessonlib.vocabulary import VocabularyMissing, count_text, pieces, vocabulary


def test_the_definition_is_tiktokens_own_apart_from_its_download(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, str] = {}

    def no_download(url: str, expected_hash: str) -> dict[bytes, int]:
        asked.update(url=url, sha256=expected_hash)
        return {}

    monkeypatch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", no_download)
    official = tiktoken_ext.openai_public.o200k_base()
    assert official["pat_str"] == module._WORDS
    assert official["special_tokens"] == module._SPECIAL
    assert asked["sha256"] == module.SHIPPED_SHA256
    assert asked["url"] == module._TABLES.format(name="o200k_base")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("北京", 1), ("17*23", 3), ("<|endoftext|>", 7), ("half an emoji \ud83d", 4)],
)
def test_text_is_counted_as_text(text: str, tokens: int) -> None:
    assert tokens == count_text(text)


def test_pieces_join_to_the_text_and_may_cut_a_character() -> None:
    text = "a rare sign: 𓂀, and 北京"
    cut = pieces(text)
    assert text == b"".join(cut).decode("utf-8")
    assert any(piece in b"\xf0\x93\x82\x80" and len(piece) < 4 for piece in cut)


def test_an_unknown_vocabulary_is_named_with_the_known_ones() -> None:
    with pytest.raises(VocabularyMissing, match="o200k_base"):
        vocabulary("o999k_base")


def test_a_vocabulary_that_is_not_cached_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(VocabularyMissing, match="never downloads"):
        vocabulary("cl100k_base")


def test_a_download_that_was_cut_is_not_taken_for_a_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    (tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4").write_bytes(b"IQ== 0\n" * 5000 + b"Ig")
    with pytest.raises(VocabularyMissing, match="cl100k_base"):
        vocabulary("cl100k_base")


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000"])
def test_millions_of_blanks_are_counted(blank: str) -> None:
    """tiktoken alone panics on more than a million in a row."""
    assert 0 < count_text("tide" + 2_000_000 * blank + "harbour") < 2_100_000


def test_a_cut_blank_counts_as_much_as_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text around it is cut nowhere, and of plain spaces no token is lost or won."""
    texts = ["tide" + 300_000 * " " + "harbour", " ".join(60_000 * ["tide"]), 200_000 * "\n" + "tide", 400_000 * " "]
    cut = [count_text(text) for text in texts]
    monkeypatch.setattr("lessonlib.vocabulary.LONGEST_BLANK", 10_000_000)
    assert cut == [count_text(text) for text in texts]


def test_the_pieces_of_a_long_blank_are_the_text() -> None:
    """Nothing is lost where it is cut."""
    text = "tide" + 1_100_000 * " " + "harbour"
    assert b"".join(pieces(text)) == text.encode("utf-8")
