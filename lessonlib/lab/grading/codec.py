"""Plain data as JSON and back, bytes included: what goes between the judge and the learner's process."""

from __future__ import annotations

import base64
from typing import Any


def encode(value: Any) -> Any:
    """Plain data as JSON can hold it. A dictionary with a key that begins with "$" is wrapped, so that it means itself."""
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        inside = {key: encode(item) for key, item in value.items()}
        return {"$dict": inside} if any(key.startswith("$") for key in inside) else inside
    return value


def decode(value: Any) -> Any:
    """What `encode` wrapped."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        if value.keys() == {"$bytes"}:
            return base64.b64decode(value["$bytes"])
        inside = value["$dict"] if value.keys() == {"$dict"} else value
        return {key: decode(item) for key, item in inside.items()}
    return value
