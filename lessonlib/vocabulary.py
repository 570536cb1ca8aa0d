"""Vocabularies: which pieces of text are one token. Works with no network.

OpenAI publishes its vocabularies as rank tables. tiktoken downloads such a table at first use and hangs or fails where
there is no network, so `o200k_base` (that of all current OpenAI models) ships with this package. Others (`cl100k_base`)
are used if tiktoken has them in its cache, and are a clear error if not: nothing here ever starts a download.

Anthropic and Google publish no vocabulary. Counting their text with OpenAI's is an estimate, and tokens.py says so.

What this file does not do: it counts text, not requests (roles, tools and framing cost tokens too: tokens.py).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from lessonlib.errors import LessonError

if TYPE_CHECKING:
    import tiktoken

SHIPPED = "o200k_base"
SHIPPED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

# How o200k_base cuts text into words before merging: words in two cases with their English contraction, up to three
# digits, punctuation with the line ends behind it, white space. Part of the vocabulary's definition, like its ranks.
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_WORDS = "|".join([
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}",
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])  # fmt: skip
LONGEST_BLANK = 128 * 1024
"""Characters. In a blank of more than a million, tiktoken's search for the last character before the next word exceeds the
limit of its engine for regular expressions, and it panics. So longer ones are counted in pieces; a cut can cost a token,
except in plain spaces, whose longest token divides the length."""

_SPECIAL = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
_TABLES = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"


class VocabularyMissing(LessonError):
    """The vocabulary is not on this machine. The message says how to fetch it once."""


@cache
def vocabulary(name: str = SHIPPED) -> tiktoken.Encoding:
    """The vocabulary `name`, loaded once (about half a second for the shipped one).

    Raises VocabularyMissing when it neither ships with the package nor lies in tiktoken's cache, or when the file there is
    broken (tiktoken would then try to download it again).
    """
    import tiktoken

    if name == SHIPPED:
        return tiktoken.Encoding(name, pat_str=_WORDS, mergeable_ranks=_shipped_ranks(), special_tokens=_SPECIAL)
    known = tiktoken.list_encoding_names()
    if name not in known:
        raise VocabularyMissing(f"no vocabulary {name!r}; tiktoken knows {', '.join(sorted(known))}")
    if not _in_tiktokens_cache(name):
        raise VocabularyMissing(
            f"the vocabulary {name} is not on this machine and lessonlib never downloads: with a network, run once "
            f"python -c \"import tiktoken; tiktoken.get_encoding('{name}')\""
        )
    return tiktoken.get_encoding(name)


def count_text(text: str, name: str = SHIPPED) -> int:
    """Tokens of a text. Names of special tokens (`<|endoftext|>`) are counted as the plain text that they are here."""
    return len(_tokens(vocabulary(name), text))


def pieces(text: str, name: str = SHIPPED) -> list[bytes]:
    """The text cut into its tokens, as bytes: a token may hold half a character."""
    encoding = vocabulary(name)
    return [encoding.decode_single_token_bytes(token) for token in _tokens(encoding, text)]


def _tokens(encoding: tiktoken.Encoding, text: str) -> list[int]:
    if len(text) <= LONGEST_BLANK:
        return encoding.encode_ordinary(text)
    return [token for part in _without_long_blanks(text) for token in encoding.encode_ordinary(part)]


def _without_long_blanks(text: str) -> Iterator[str]:
    """The text, cut within blanks that are longer than LONGEST_BLANK and nowhere else."""
    start = 0
    for blank in re.finditer(r"\s+", text):
        for cut in range(blank.start() + LONGEST_BLANK, blank.end(), LONGEST_BLANK):
            yield text[start:cut]
            start = cut
    yield text[start:]


def _shipped_ranks() -> dict[bytes, int]:
    packed = resources.files("lessonlib").joinpath(f"data/{SHIPPED}.tiktoken.gz").read_bytes()
    table = gzip.decompress(packed)
    if hashlib.sha256(table).hexdigest() != SHIPPED_SHA256:
        raise VocabularyMissing("the shipped vocabulary is damaged; install lessonlib again")
    lines = (line.split() for line in table.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _in_tiktokens_cache(name: str) -> bool:
    """Where tiktoken looks: a directory from the environment or the temporary one, a file named after the address."""
    chosen = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    folder = Path(chosen) if chosen else Path(tempfile.gettempdir()) / "data-gym-cache"
    key = hashlib.sha1(_TABLES.format(name=name).encode("ascii"), usedforsecurity=False).hexdigest()
    path = folder / key
    return path.is_file() and _is_rank_table(path.read_bytes())


def _is_rank_table(table: bytes) -> bool:
    """A table that was cut in the middle of its download has a last line without its rank."""
    lines = table.split(b"\n")
    return len(lines) > 1000 and lines[-1] == b"" and len(lines[-2].split()) == 2
