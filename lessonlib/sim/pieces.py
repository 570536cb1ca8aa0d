"""Cuts what the model says into the pieces in which a vendor streams it: tokens of the real vocabulary.

A token may hold half a character (an emoji is often two or three tokens). Vendors hold such a half back until the character
is whole, and so does `text_pieces`. Arguments are cut in the same way, so a cut falls anywhere: inside a key, between a
backslash and its letter. Whether a *network read* cuts inside a character is the transport's matter (`faults.py`, chunks).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from lessonlib import vocabulary
from lessonlib.sim.usage import SLICE


def _tokens(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), SLICE):
        yield from vocabulary.pieces(text[start : start + SLICE])


def text_pieces(text: str) -> list[str]:
    """The text in token-sized pieces of whole characters."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = [decoder.decode(piece) for piece in _tokens(text)]
    tail = decoder.decode(b"", final=True)
    return [piece for piece in [*pieces, tail] if piece]


def head(text: str, tokens: int) -> str:
    """The first `tokens` tokens of a text, half a character at the end left out."""
    return b"".join(piece for _, piece in zip(range(max(0, tokens)), _tokens(text), strict=False)).decode("utf-8", "ignore")


def coarse_pieces(text: str, size: int = 12) -> list[str]:
    """Pieces of a fixed number of characters, for vendors that stream arguments in blocks."""
    return [text[start : start + size] for start in range(0, len(text), size)]
