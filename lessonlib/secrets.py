"""Keys are secrets: the one place that says what a secret is, keeps it out of sight, and takes it out of what others wrote.

Three uses: a wire format holds its key as a `Secret`; whatever shows headers masks those that `is_secret_header` names; and
whatever shows a text that came from outside (an error body that repeats the key, a tape) lets `blot_out` go over it first.

What this file does not do: it does not find keys that nobody told it of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

MASK = "***"

_WORDS = ("auth", "key", "token", "secret", "cookie", "password", "credential", "session")
_ACCOUNT_WORDS = ("organization", "project", "account", "workspace", "user-id", "profile-id")
_PUBLIC = frozenset({"idempotency-key"})
SHORTEST = 8
"""Blotting out anything shorter would eat words (`api_key="ollama"`); real keys are several times as long."""


class Secret:
    """A text that no repr, str, format, copy or pickle shows. `reveal()` is the one way to it."""

    __slots__ = ("_reveal",)

    def __init__(self, text: str) -> None:
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        """The text itself, for the header that carries it."""
        return self._reveal()

    def __repr__(self) -> str:
        return MASK

    def __reduce__(self) -> Any:
        raise TypeError("an API key is not pickled; set it again from the environment")


def is_secret_header(name: str) -> bool:
    """Whether a header, or a parameter of a URL, may carry a key by its name.

    Gateways invent names (`x-portkey-api-key`, `cf-aig-authorization`), so the words in the name decide, not a list of
    names: masking one header too many costs nothing.
    """
    lower = name.lower()
    return lower not in _PUBLIC and any(word in lower for word in _WORDS)


def is_account_header(name: str) -> bool:
    """Whether a header of this name says who pays or who asks."""
    lower = name.lower()
    return any(word in lower for word in _ACCOUNT_WORDS)


def secrets_in(headers: Mapping[str, str]) -> list[Secret]:
    """The secret values among `headers`, with and without their scheme word ("Bearer"), the longest first."""
    values = {value for name, value in headers.items() if is_secret_header(name)}
    values |= {value.rpartition(" ")[2] for value in values}
    return [Secret(value) for value in sorted(values, key=len, reverse=True) if len(value) >= SHORTEST]


def blot_out(value: Any, secrets: Iterable[Secret], *, same_length: bool = False) -> Any:
    """`value` (a text, bytes, or JSON) with every secret in it masked; `same_length` keeps sizes and offsets right."""
    match value:
        case str():
            for secret in secrets:
                text = secret.reveal()
                value = value.replace(text, "*" * len(text) if same_length else MASK)
            return value
        case bytes():
            for secret in secrets:
                data = secret.reveal().encode("utf-8", "replace")
                value = value.replace(data, b"*" * len(data) if same_length else MASK.encode())
            return value
        case dict():
            return {
                blot_out(key, secrets, same_length=same_length): blot_out(item, secrets, same_length=same_length)
                for key, item in value.items()
            }
        case list() | tuple():
            return type(value)(blot_out(item, secrets, same_length=same_length) for item in value)
        case _:
            return value
