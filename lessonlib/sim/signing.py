"""Signatures for what only the vendor may have written: thinking blocks, encrypted reasoning, thought signatures.

A real vendor signs or encrypts the model's reasoning, so that a client can carry it but not change it. Here a keyed digest
(HMAC-SHA-256) does the same: over the content, over what stood before it, and over who wrote it. A changed, invented or
foreign blob fails.

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
_MARK = b"sim"
_MAC = 18
"""Bytes of each digest that are kept: 18 bytes are 24 base64 letters without padding."""


class Verdict(StrEnum):
    """What a check found."""

    OK = "ok"
    FOREIGN = "foreign"  # not one of ours at all
    CHANGED = "changed"  # ours, but the content is not what was signed
    OTHER = "other"  # the content is right, but another model wrote it
    MOVED = "moved"  # content and writer are right, but what precedes it is not


def digest(*values: Any) -> str:
    """A short stable digest of JSON values, for ids and cache keys."""
    return hashlib.sha256(_canonical(values)).hexdigest()


def sign(kind: str, content: Any, before: Any = None, by: str = "") -> str:
    """A signature over `content`, over `before`, and over `by` (the model), as base64 text. `kind` keeps vendors apart."""
    blob = _MARK + b"".join(_mac(kind, value) for value in (content, before, by))
    return base64.b64encode(blob).decode("ascii")


def check(signature: str, kind: str, content: Any, before: Any = None, by: str = "") -> Verdict:
    """Whether `signature` is what `sign` gave for the same values, and if not, what differs. Packages that take it for bytes
    send it back in the base64 of URLs, which is the same."""
    try:
        blob = base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True)
    except (ValueError, binascii.Error):
        return Verdict.FOREIGN
    if len(blob) != len(_MARK) + 3 * _MAC or not blob.startswith(_MARK):
        return Verdict.FOREIGN
    macs = [blob[start : start + _MAC] for start in range(len(_MARK), len(blob), _MAC)]
    right = [hmac.compare_digest(mac, _mac(kind, value)) for mac, value in zip(macs, (content, before, by), strict=True)]
    if not right[0]:
        return Verdict.CHANGED
    if not right[2]:
        return Verdict.OTHER
    return Verdict.OK if right[1] else Verdict.MOVED


def _mac(kind: str, value: Any) -> bytes:
    return hmac.new(_KEY, kind.encode("utf-8") + b"\0" + _canonical(value), hashlib.sha256).digest()[:_MAC]


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
