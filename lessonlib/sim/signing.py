"""Signatures for what only the vendor may have written: thinking blocks, encrypted reasoning, thought signatures.

A real vendor signs or encrypts the model's reasoning, so that a client can carry it but not change it. Here a keyed digest
(HMAC-SHA-256) does the same: over the content, and over what stood before it. A changed, invented or foreign blob fails.

The key is not secret (it stands below): this keeps learners honest, not attackers out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from enum import StrEnum
from typing import Any

_KEY = b"lessonlib simulator: not a secret"
_MAC = 18
"""Bytes of each digest that are kept: 18 bytes are 24 base64 letters without padding."""


class Verdict(StrEnum):
    """What a check found."""

    OK = "ok"
    FOREIGN = "foreign"  # not one of ours at all
    CHANGED = "changed"  # ours, but the content is not what was signed
    MOVED = "moved"  # the content is right, but what precedes it is not


def digest(*values: Any) -> str:
    """A short stable digest of JSON values, for ids and cache keys."""
    return hashlib.sha256(_canonical(values)).hexdigest()


def sign(kind: str, content: Any, before: Any = None) -> str:
    """A signature over `content` and over `before`, as base64 text. `kind` keeps vendors and models apart."""
    blob = b"sim" + _mac(kind, content) + _mac(kind, before)
    return base64.b64encode(blob).decode("ascii")


def check(signature: str, kind: str, content: Any, before: Any = None) -> Verdict:
    """Whether `signature` is what `sign` gave for the same values."""
    try:
        blob = base64.b64decode(signature, validate=True)
    except (ValueError, binascii.Error):
        return Verdict.FOREIGN
    if len(blob) != 3 + 2 * _MAC or not blob.startswith(b"sim"):
        return Verdict.FOREIGN
    content_mac, before_mac = blob[3 : 3 + _MAC], blob[3 + _MAC :]
    if not hmac.compare_digest(content_mac, _mac(kind, content)):
        return Verdict.CHANGED
    return Verdict.OK if hmac.compare_digest(before_mac, _mac(kind, before)) else Verdict.MOVED


def _mac(kind: str, value: Any) -> bytes:
    return hmac.new(_KEY, kind.encode("utf-8") + b"\0" + _canonical(value), hashlib.sha256).digest()[:_MAC]


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
