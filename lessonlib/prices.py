"""What tokens cost, as dated data: a rate for each class of token, with its source and its days.

    prices = Prices.shipped()                     data/prices.json; or Prices.load("mine.json"), or shipped() | load(...)
    prices.cost(usage, "claude-opus-5-5")         Decimal('0.0103'), or None: not known

One rule above all: an unknown price stays unknown. A model that is not listed, a day on which no entry holds, a class of
token that an answer used and the entry does not price, an answer whose usage was not reported: each gives None, never a
guess and never 0. A model matches its own name, with or without a date behind it; `gpt-4o-mini` is not a `gpt-4o`.

Input is fresh, read from a cache or written to one, at three rates; output includes reasoning. Amounts are Decimal from the
file on, because a sum of cents in binary fractions drifts.

What this file does not do: no currency but the file's, no discounts for batches or tiers, no fees for tools. It books
nothing (ledger.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from lessonlib.types import JSON, Usage

MILLION = Decimal(1_000_000)

_DATED = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest)")
"""What may follow a listed name: a snapshot's date."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Amounts per 1,000,000 tokens. None is not known."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    cache_write: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a class that has a rate of its own: of which class, where the vendor's usage object counts it, the rate."""

    of: str
    count: tuple[str, ...]
    price: Decimal

    def tokens(self, usage: Usage) -> int:
        """How many tokens of `usage` it is."""
        value: Any = usage.raw
        for key in self.count:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, int) else 0


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs on the days from `since` to `until` (None: open). above: from how much input on `long` holds."""

    rates: Rates
    long: Rates | None = None
    above: int | None = None
    shares: tuple[Share, ...] = ()
    since: date | None = None
    until: date | None = None
    checked: str = ""
    source: str = ""

    def holds(self, on: date) -> bool:
        """Whether this is the price on that day."""
        return (self.since is None or self.since <= on) and (self.until is None or on <= self.until)

    def cost(self, usage: Usage) -> Decimal | None:
        """What `usage` costs; None where a count or a rate is missing."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        rates = self.rates
        if self.long is not None and self.above is not None and usage.input_tokens > self.above:
            rates = self.long
        cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        amounts = [
            (usage.input_tokens - cached - written) * rates.input,
            _amount(cached, rates.cached),
            self._written(written, rates, usage),
            usage.output_tokens * rates.output,
        ]
        known = [amount for amount in amounts if amount is not None]
        return sum(known, Decimal(0)) / MILLION if len(known) == len(amounts) else None

    def _written(self, tokens: int, rates: Rates, usage: Usage) -> Decimal | None:
        """Input written to the cache; a part of it may be dearer, because it is kept for longer."""
        amount = Decimal(0)
        for share in self.shares:
            part = min(share.tokens(usage), tokens)
            amount += part * share.price
            tokens -= part
        rest = _amount(tokens, rates.cache_write)
        return None if rest is None else amount + rest


def _amount(tokens: int, rate: Decimal | None) -> Decimal | None:
    if not tokens:
        return Decimal(0)
    return None if rate is None else tokens * rate


class Prices:
    """The prices of models. `a | b` has b's entries for the models that both list."""

    def __init__(self, entries: Mapping[str, Sequence[Price]], currency: str = "USD") -> None:
        self.entries = {name: tuple(found) for name, found in entries.items()}
        self.currency = currency

    @classmethod
    @cache
    def shipped(cls) -> Prices:
        """The prices that come with this package, as of the days in the file."""
        from importlib import resources

        text = resources.files("lessonlib").joinpath("data/prices.json").read_text(encoding="utf-8")
        return cls.from_json(json.loads(text))

    @classmethod
    def load(cls, path: str | Path) -> Prices:
        """Prices from a file of your own, in the form of data/prices.json. Raises ValueError where it is not."""
        return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")))

    @classmethod
    def from_json(cls, data: JSON) -> Prices:
        """Prices from that form."""
        try:
            entries = {name: [_price(entry) for entry in found] for name, found in data["models"].items()}
        except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"not a price file: {type(error).__name__}: {error}") from error
        return cls(entries, data.get("currency", "USD"))

    def __or__(self, other: Prices) -> Prices:
        if other.currency != self.currency:
            raise ValueError(f"prices in {self.currency} and in {other.currency} cannot be put together")
        return Prices({**self.entries, **other.entries}, self.currency)

    def of(self, model: str | None, on: date | None = None) -> Price | None:
        """The price of a model on a day (today), None if it is not known."""
        day = on or datetime.now(UTC).date()
        name = (model or "").rsplit("/", 1)[-1].lower()
        listed = self.entries.get(name) or self.entries.get(_without_date(name), ())
        return next((price for price in listed if price.holds(day)), None)

    def cost(self, usage: Usage | None, model: str | None, on: date | None = None) -> Decimal | None:
        """What `usage` of `model` costs, None if that is not known."""
        price = self.of(model, on)
        return None if price is None or usage is None else price.cost(usage)


def _without_date(name: str) -> str:
    found = _DATED.search(name)
    return name[: found.start()] if found is not None and found.end() == len(name) else name


def _price(entry: JSON) -> Price:
    above = entry.get("above")
    return Price(
        rates=_rates(entry),
        long=_rates(above) if above else None,
        above=above["tokens"] if above else None,
        shares=tuple(Share(more["of"], tuple(more["count"]), Decimal(more["price"])) for more in entry.get("more", ())),
        since=date.fromisoformat(entry["since"]) if "since" in entry else None,
        until=date.fromisoformat(entry["until"]) if "until" in entry else None,
        checked=entry.get("checked", ""),
        source=entry.get("source", ""),
    )


def _rates(entry: JSON) -> Rates:
    return Rates(
        input=Decimal(entry["input"]),
        output=Decimal(entry["output"]),
        cached=Decimal(entry["cached"]) if "cached" in entry else None,
        cache_write=Decimal(entry["cache_write"]) if "cache_write" in entry else None,
    )
