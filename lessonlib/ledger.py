"""The ledger: what was used, by whom, and what it cost. Each answer is booked once, from however many threads and tasks.

    ledger = Ledger()
    client = Retry(Metered(Client(...), ledger))          budget.py: books every attempt of this client
    print(ledger)

What is told apart, because it is priced or judged apart: by provider and model; input that was fresh, read from a cache or
written to one; reasoning within the output; what failed attempts had used, as far as the service said so before they broke
(such a count is a lower bound: the output of a broken stream is mostly not reported); and what healing used, that is answers
which were only needed because a call before them was faulty.

Nothing is rounded up to known: an answer without usage, an attempt that broke, a stream that the consumer closed are counted
as such, and an answer without a price is `unpriced`. `complete` says whether the sum is the whole truth.

What this file does not do: it asks nobody and refuses nothing (budget.py does), and it is not the vendor's invoice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

from lessonlib.errors import LessonError
from lessonlib.prices import Price, Prices
from lessonlib.types import COUNTS, Response, Usage


@dataclass(slots=True)
class Row:
    """What one model of one provider has used.

    answers: finished ones. usage: theirs. healing: the part of `usage` that healing used.
    failures: attempts that failed; those that a Retry inside has summed up count as one. failed: what they had used, at
    least. unfinished: streams that the consumer closed, of which nobody knows what they used.
    unreported: answers whose usage was not reported. cost: of what has a known price. unpriced: answers and failed attempts
    with usage that have none.
    """

    provider: str
    model: str
    answers: int = 0
    usage: Usage = field(default_factory=Usage)
    healing: Usage = field(default_factory=Usage)
    failures: int = 0
    failed: Usage = field(default_factory=Usage)
    unfinished: int = 0
    unreported: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0

    @property
    def input_tokens(self) -> int:
        """All input: of answers and of failed attempts."""
        return (self.usage.input_tokens or 0) + (self.failed.input_tokens or 0)

    @property
    def output_tokens(self) -> int:
        """All output that was reported."""
        return (self.usage.output_tokens or 0) + (self.failed.output_tokens or 0)

    @property
    def complete(self) -> bool:
        """Whether everything that was used is known and priced."""
        return not (self.failures or self.unfinished or self.unreported or self.unpriced)

    def plus(self, other: Row) -> Row:
        """The sum of two rows, under the name of the first."""
        return Row(
            self.provider,
            self.model,
            self.answers + other.answers,
            self.usage + other.usage,
            self.healing + other.healing,
            self.failures + other.failures,
            self.failed + other.failed,
            self.unfinished + other.unfinished,
            self.unreported + other.unreported,
            self.cost + other.cost,
            self.unpriced + other.unpriced,
        )


class Hold:
    """Money that is put aside for a call under way, so that the calls beside it cannot spend it too."""

    __slots__ = ("amount",)

    def __init__(self, amount: Decimal) -> None:
        self.amount = amount


class Ledger:
    """Rows by provider and model. Safe under threads and tasks; may be shared by many policies.

    prices: the shipped ones if not given. today: the day whose prices hold, for tests.
    """

    def __init__(self, prices: Prices | None = None, today: Callable[[], date] | None = None) -> None:
        self.prices = Prices.shipped() if prices is None else prices
        self._today = today or (lambda: datetime.now(UTC).date())
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], Row] = {}
        self._held: dict[Hold, None] = {}

    # ------------------------------------------------------------ booking

    def add(self, response: Response, provider: str = "", model: str = "") -> None:
        """Book a finished answer, and what attempts before it had used (`response.retried`). Call it once for each answer.

        provider, model: for answers that do not name theirs.
        """
        who = (response.provider or provider, response.model or model)
        usage = response.usage
        cost = self._cost(usage, who[1])
        with self._lock:
            row = self._row(who)
            row.answers += 1
            if usage is None:
                row.unreported += 1
            else:
                row.usage += _counts(usage)
                _charge(row, cost)
        if response.retried is not None:
            self._add_failed(who, response.retried)

    def add_error(self, error: LessonError, provider: str = "", model: str = "") -> None:
        """Book a failed call: what it and the attempts before it had used, each under the name of who was asked."""
        for attempt in (*error.attempts, error):
            partial = attempt.partial
            if partial is None:
                self._add_failed((provider, model), None)
            else:
                self._add_failed((partial.provider or provider, partial.model or model), partial.usage)

    def add_unfinished(self, provider: str, model: str = "") -> None:
        """Book a stream that was closed before its end: it was billed, and nobody knows how much."""
        with self._lock:
            self._row((provider, model)).unfinished += 1

    def heal(self, response: Response, provider: str = "", model: str = "") -> None:
        """Say that an answer, which has been booked, was only needed for healing (`ToolLoop(on_heal=ledger.heal)`)."""
        if response.usage is not None:
            with self._lock:
                self._row((response.provider or provider, response.model or model)).healing += _counts(response.usage)

    def _add_failed(self, who: tuple[str, str], usage: Usage | None) -> None:
        cost = self._cost(usage, who[1])
        with self._lock:
            row = self._row(who)
            row.failures += 1
            if usage is not None:
                row.failed += _counts(usage)
                _charge(row, cost)

    def _cost(self, usage: Usage | None, model: str) -> Decimal | None:
        return self.prices.cost(usage, model, self._today()) if usage is not None else None

    def _row(self, who: tuple[str, str]) -> Row:
        row = self._rows.get(who)
        if row is None:
            row = self._rows[who] = Row(*who)
        return row

    # ------------------------------------------------------------ holding

    def hold(self, amount: Decimal, limit: Decimal) -> Hold | None:
        """Put `amount` aside for a call; None if what is spent and put aside would pass `limit`. `release` it afterwards."""
        hold = Hold(amount)
        with self._lock:
            spent = sum((row.cost for row in self._rows.values()), Decimal(0))
            if spent + sum((other.amount for other in self._held), Decimal(0)) + amount > limit:
                return None
            self._held[hold] = None
        return hold

    def release(self, hold: Hold) -> None:
        """The call is over, and booked."""
        with self._lock:
            self._held.pop(hold, None)

    def price(self, model: str) -> Price | None:
        """Today's price of a model, None if it is not known."""
        return self.prices.of(model, self._today())

    @property
    def held(self) -> Decimal:
        """What is put aside for calls under way."""
        with self._lock:
            return sum((hold.amount for hold in self._held), Decimal(0))

    # ------------------------------------------------------------ reading

    def rows(self) -> list[Row]:
        """One row for each provider and model, copies: what is booked later does not change them."""
        with self._lock:
            return [row.plus(Row("", "")) for row in self._rows.values()]

    def by_provider(self) -> list[Row]:
        """One row for each provider; its `model` is empty."""
        sums: dict[str, Row] = {}
        for row in self.rows():
            sums[row.provider] = sums.get(row.provider, Row(row.provider, "")).plus(row)
        return list(sums.values())

    def total(self) -> Row:
        """Everything in one row, without names."""
        total = Row("", "")
        for row in self.rows():
            total = total.plus(row)
        return total

    @property
    def cost(self) -> Decimal:
        """What everything with a known price cost. `total().complete` says whether that is all."""
        return self.total().cost

    def __str__(self) -> str:
        return "\n".join(_lines([*self.rows(), self.total()], self.prices.currency))


def _counts(usage: Usage) -> Usage:
    """The counts alone: the vendor's own object has no place in a sum."""
    return Usage(**{name: getattr(usage, name) for name in COUNTS})


def _charge(row: Row, cost: Decimal | None) -> None:
    if cost is None:
        row.unpriced += 1
    else:
        row.cost += cost


def _lines(rows: list[Row], currency: str) -> Iterator[str]:
    heads = " ".join(f"{head:>9}" for head in ("cached", "written", "output", "reasoning"))
    yield f"{'model':36} {'answers':>7} {'input':>10} {heads} {currency:>10}"
    for row in rows:
        counts = (row.usage.cached_tokens, row.usage.cache_write_tokens, row.output_tokens, row.usage.reasoning_tokens)
        shown = " ".join(f"{'-' if count is None else format(count, ','):>9}" for count in counts)
        name = f"{row.provider} {row.model}".strip() or "sum"
        mark = "" if row.complete else " at least"
        yield f"{name[:36]:36} {row.answers:7,} {row.input_tokens:10,} {shown} {row.cost:10.4f}{mark}"
