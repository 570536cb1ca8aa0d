"""The ledger and the prices: everything once, nothing guessed, from any number of threads and tasks."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonlib.budget import Metered
from lessonlib.errors import InvalidRequest, LessonError, SpendLimit
from lessonlib.ledger import Ledger, Row
from lessonlib.prices import Price, Prices, Rates
from lessonlib.retry import Retry
from lessonlib.types import Message, Request, Response, StopReason, Text, Usage
from tests.fakes import (
    ASK,
    AFake,
    Fake,
    answer,
    bad_request,
    both,
    cancel_everywhere,
    cut,
    first_event,
    overloaded,
    run_virtually,
    said,
    streamed,
    whole,
)

TODAY = date(2026, 11, 30)


def usage(
    fresh: int = 0, output: int = 0, cached: int = 0, written: int = 0, reasoning: int | None = None, **raw: Any
) -> Usage:
    return Usage(
        input_tokens=fresh + cached + written, output_tokens=output, cached_tokens=cached, cache_write_tokens=written,
        reasoning_tokens=reasoning, raw=raw,
    )  # fmt: skip


def said_by(model: str, used: Usage | None, provider: str = "anthropic") -> Response:
    return answer("Hi").model_copy(update={"provider": provider, "model": model, "usage": used})


PRICES = Prices.from_json({
    "models": {
        "plain": [{"input": "2", "output": "10", "cached": "0.20", "cache_write": "2.50"}],
        "half-known": [{"input": "2", "output": "10"}],
    }
})  # fmt: skip


def ledger() -> Ledger:
    return Ledger(PRICES, today=lambda: TODAY)


# ---------------------------------------------------------------- prices


def test_each_class_has_its_own_rate() -> None:
    """100 fresh at 2, 900 cached at 0.20, 50 written at 2.50, 10 out at 10, per million."""
    cost = PRICES.cost(usage(100, 10, cached=900, written=50), "plain")
    assert cost == (Decimal(200) + Decimal(180) + Decimal(125) + Decimal(100)) / 1_000_000


def test_two_vendors_ways_of_counting_cost_the_same_once_they_are_one_account() -> None:
    openai = Usage(input_tokens=1000, output_tokens=0, cached_tokens=900)
    anthropic = Usage(input_tokens=100 + 900, output_tokens=0, cached_tokens=900, cache_write_tokens=0)
    assert PRICES.cost(openai, "plain") == PRICES.cost(anthropic, "plain") == Decimal("0.00038")


@pytest.mark.parametrize(
    ("used", "model"),
    [
        (usage(10, 1), "unheard-of"),
        (usage(10, 1), ""),
        (None, "plain"),
        (Usage(input_tokens=10), "plain"),
        (Usage(output_tokens=10), "plain"),
        (usage(10, 1, cached=5), "half-known"),
        (usage(10, 1, written=5), "half-known"),
    ],
    ids=["model", "no model", "no usage", "no output", "no input", "cached rate", "written rate"],
)
def test_what_is_not_known_is_none_and_never_0(used: Usage | None, model: str) -> None:
    assert PRICES.cost(used, model, TODAY) is None


def test_a_class_that_was_not_used_needs_no_rate() -> None:
    assert PRICES.cost(usage(10, 1), "half-known") == Decimal("0.00003")


@pytest.mark.parametrize("name", ["plain", "plain-2026-08-01", "plain-20260801", "plain-0613", "plain-latest", "x/PLAIN"])
def test_a_snapshot_costs_what_its_model_costs(name: str) -> None:
    assert PRICES.of(name) is not None


@pytest.mark.parametrize("name", ["plain-mini", "plainer", "plain-2", "plai", "plain-mini-2026-08-01"])
def test_another_model_of_a_similar_name_has_no_known_price(name: str) -> None:
    assert PRICES.of(name) is None


def test_a_long_request_has_its_own_rates_for_all_of_it() -> None:
    astra = Prices.shipped()
    assert astra.cost(usage(272_000), "gpt-6-astra", TODAY) == Decimal("2.72")
    assert astra.cost(usage(272_001), "gpt-6-astra", TODAY) == Decimal("272001") * 20 / 1_000_000


def test_what_is_cached_for_an_hour_is_dearer() -> None:
    """5 a million for five minutes, 8 for an hour; the vendor's usage object says which."""
    mixed = usage(0, 0, written=1000, cache_creation={"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600})
    assert Prices.shipped().cost(mixed, "claude-opus-5-5", TODAY) == Decimal(400 * 5 + 600 * 8) / 1_000_000
    assert Prices.shipped().cost(usage(0, 0, written=1000), "claude-opus-5-5", TODAY) == Decimal("0.005")


def test_a_price_holds_on_its_days() -> None:
    flash = Prices.shipped()
    assert flash.cost(usage(1_000_000), "gemini-3.8-flash", date(2026, 12, 31)) == Decimal("0.75")
    assert flash.cost(usage(1_000_000), "gemini-3.8-flash", date(2027, 1, 1)) == Decimal("1.50")
    old = Prices({"m": [Price(Rates(Decimal(1), Decimal(1)), until=date(2026, 1, 1))]})
    assert old.cost(usage(10, 1), "m", TODAY) is None


def test_every_shipped_price_has_its_day_and_its_source() -> None:
    for name, entries in Prices.shipped().entries.items():
        for price in entries:
            assert date.fromisoformat(price.checked) <= date(2026, 12, 31), name
            assert price.source.startswith("https://"), name


def test_a_file_of_ones_own_takes_the_place_of_an_entry(tmp_path: Path) -> None:
    own = tmp_path / "mine.json"
    own.write_text(json.dumps({"models": {"gpt-4o": [{"input": "1", "output": "1"}]}}), encoding="utf-8")
    prices = Prices.shipped() | Prices.load(own)
    assert prices.cost(usage(1_000_000), "gpt-4o") == 1
    assert prices.of("claude-opus-5-5") is not None


@pytest.mark.parametrize(
    "data", [{}, {"models": {"m": [{"input": "1"}]}}, {"models": {"m": [{"input": "one", "output": "1"}]}}]
)
def test_a_file_that_is_none_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="price file"):
        Prices.from_json(data)


def test_two_currencies_are_not_put_together() -> None:
    with pytest.raises(ValueError, match="EUR"):
        Prices({}) | Prices({}, "EUR")


def test_a_million_small_amounts_are_exactly_their_sum() -> None:
    price = Price(Rates(Decimal("0.1"), Decimal("0.1")))
    one = price.cost(usage(1))
    assert one is not None
    assert one * 1_000_000 == Decimal("0.1")


# ---------------------------------------------------------------- booking


def test_rows_by_model_and_provider_with_the_classes_apart() -> None:
    book = ledger()
    book.add(said_by("plain", usage(100, 60, cached=900, written=50, reasoning=40)))
    book.add(said_by("plain", usage(10, 5)))
    book.add(said_by("half-known", usage(10, 5)))
    book.add(said_by("plain", usage(1, 1), provider="openai"))
    first = book.rows()[0]
    assert (first.provider, first.model, first.answers) == ("anthropic", "plain", 2)
    assert first.usage == Usage(
        input_tokens=1060, output_tokens=65, cached_tokens=900, cache_write_tokens=50, reasoning_tokens=40
    )
    assert [(row.provider, row.answers) for row in book.by_provider()] == [("anthropic", 3), ("openai", 1)]
    assert book.total().answers == 4
    assert book.cost == sum((row.cost for row in book.rows()), Decimal(0))


def test_an_attempt_that_broke_stays_in_the_sum() -> None:
    """The first attempt breaks after its input was reported (800), the second succeeds (800 in, 50 out)."""
    began = answer("The t").model_copy(update={"usage": Usage(input_tokens=800), "model": "plain", "provider": "anthropic"})
    done = said_by("plain", usage(800, 50))
    book = ledger()
    client = Retry(Metered(Fake(cut(partial=began), done), book), sleep=lambda seconds: None)
    assert client.generate(ASK) == done.model_copy(update={"retried": Usage(input_tokens=800)})
    total = book.total()
    assert total.input_tokens == 1600
    assert (total.usage.output_tokens, total.failed.output_tokens) == (50, None)
    assert (total.answers, total.failures, total.unpriced) == (1, 1, 1)
    assert not total.complete


@pytest.mark.parametrize("body", [whole, streamed])
def test_what_a_retry_inside_had_used_is_booked_as_failed(body: Any) -> None:
    def make(colour: type[Fake]) -> Metered[Any]:
        began = answer().model_copy(update={"usage": usage(800, 3), "model": "plain"})
        retry: Any = Retry(colour(cut(partial=began), said_by("plain", usage(800, 50))), sleep=lambda seconds: None)
        return Metered(retry, ledger())

    def counts(metered: Metered[Any]) -> tuple[int, int, int, int]:
        body(metered)
        total = metered.ledger.total()
        return total.input_tokens, total.output_tokens, total.answers, total.failures

    assert both(make, counts) == (1600, 53, 1, 1)


def test_each_failed_attempt_is_booked_under_the_name_of_who_was_asked() -> None:
    def broken(provider: str, tokens: int) -> LessonError:
        partial = answer().model_copy(update={"usage": usage(tokens, 1), "model": "plain", "provider": provider})
        return overloaded() if not tokens else cut(partial=partial)

    last = broken("second", 20)
    last.attempts = [broken("first", 10), broken("first", 0)]
    book = ledger()
    book.add_error(last, "outer", "plain")
    assert {row.provider: (row.failures, row.input_tokens) for row in book.rows()} == {
        "first": (1, 10), "second": (1, 20), "outer": (1, 0),
    }  # fmt: skip


def test_a_call_that_was_never_sent_is_nothing() -> None:
    book = ledger()
    with pytest.raises(InvalidRequest):
        Metered(Fake(InvalidRequest("no")), book).generate(ASK)
    assert book.rows() == []


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_a_stream_that_the_consumer_closes_is_unfinished(colour: type[Fake]) -> None:
    book = ledger()
    first_event(Metered(colour(said("a", "b"), model="plain"), book))
    total = book.total()
    assert (total.answers, total.failures, total.unfinished) == (0, 0, 1)
    assert not total.complete


def test_a_call_that_is_cancelled_anywhere_is_booked_once() -> None:
    def make() -> tuple[Any, Any]:
        book = ledger()
        metered = Metered(AFake("Hi"), book)

        def check() -> None:
            total = book.total()
            assert total.answers + total.failures + total.unfinished == 1

        return metered.generate(ASK), check

    assert cancel_everywhere(make) == 1


def test_an_answer_without_usage_is_counted_as_such() -> None:
    book = ledger()
    book.add(said_by("plain", None))
    assert (book.total().answers, book.total().unreported) == (1, 1)
    assert not book.total().complete


def test_an_answer_without_a_price_makes_the_cost_a_part_of_the_truth() -> None:
    book = ledger()
    book.add(said_by("plain", usage(1_000_000, 0)))
    book.add(said_by("unheard-of", usage(1_000_000, 0)))
    assert (book.cost, book.total().unpriced, book.total().complete) == (Decimal(2), 1, False)


def test_healing_is_told_apart_and_not_added() -> None:
    book = ledger()
    tried = said_by("plain", usage(100, 10))
    book.add(tried)
    book.heal(tried)
    total = book.total()
    assert (total.input_tokens, total.healing.input_tokens, total.healing.output_tokens) == (100, 100, 10)


def test_rows_are_copies() -> None:
    book = ledger()
    book.add(said_by("plain", usage(1, 1)))
    before = book.rows()[0]
    book.add(said_by("plain", usage(1, 1)))
    assert before.answers == 1


def test_it_prints_as_a_table_that_says_where_it_is_a_lower_bound() -> None:
    book = ledger()
    book.add(said_by("plain", usage(1000, 20, cached=500)))
    book.add(said_by("unheard-of", usage(1, 1)))
    lines = str(book).splitlines()
    assert [line.split()[0] for line in lines] == ["model", "anthropic", "anthropic", "sum"]
    assert "1,500" in lines[1]
    assert [line.endswith("at least") for line in lines] == [False, False, True, True]


def test_one_ledger_twice_in_one_stack_is_refused() -> None:
    book = ledger()
    inside: Any = Retry(Metered(Fake("Hi"), book))
    with pytest.raises(ValueError, match="twice"):
        Metered(inside, book)
    Metered(inside, ledger())


# ---------------------------------------------------------------- a limit


def limited(colour: type[Fake], *script: Any, limit: str = "0.01", **options: Any) -> Metered[Any]:
    fake: Any = colour(*script, model=options.pop("model", "plain"))
    return Metered(fake, ledger(), limit, count=lambda request: 1000, **options)


def test_a_call_that_could_pass_the_limit_is_refused_before_it_is_sent() -> None:
    """1,000 tokens of input (as if all were written to the cache) and 500 of output may cost 0.0075."""
    request = Request(messages="Hi", max_tokens=500)

    def spend(metered: Metered[Any]) -> tuple[int, Decimal]:
        whole(metered, request)
        with pytest.raises(SpendLimit) as refusal:
            whole(metered, request)
        assert refusal.value.needed == Decimal("0.0075")
        return metered._providers[0].calls, metered.ledger.cost  # type: ignore[union-attr]

    def make(colour: type[Fake]) -> Metered[Any]:
        return limited(colour, said_by("plain", usage(1000, 500)))

    assert both(make, spend) == (1, Decimal("0.007"))


def test_calls_at_the_same_time_do_not_spend_the_same_money() -> None:
    """Room for one; four start together, and nothing is booked before the first answer is there."""
    metered = limited(AFake, *[said_by("plain", usage(1000, 100))] * 4)

    async def all_at_once() -> list[Any]:
        request = Request(messages="Hi", max_tokens=500)
        return await asyncio.gather(*(metered.generate(request) for _ in range(4)), return_exceptions=True)

    outcomes = asyncio.run(all_at_once())
    assert [isinstance(outcome, SpendLimit) for outcome in outcomes] == [False, True, True, True]
    assert metered.ledger.held == 0


def test_what_was_put_aside_is_given_back_after_a_failure() -> None:
    metered = limited(Fake, bad_request(), said_by("plain", usage(1, 1)), limit="0.02")
    with pytest.raises(LessonError):
        metered.generate(ASK)
    assert metered.ledger.held == 0
    metered.generate(ASK)


def test_under_a_limit_a_call_without_a_price_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(InvalidRequest, match="unheard-of"):
        limited(Fake, model="unheard-of").generate(ASK)
    assert limited(Fake, "Hi", model="unheard-of", unpriced="allow").generate(ASK).text == "Hi"


def test_a_float_is_no_amount_of_money() -> None:
    with pytest.raises(TypeError, match="Decimal"):
        Metered(Fake(), ledger(), 0.1)  # type: ignore[arg-type]


def test_the_price_is_told_without_a_call() -> None:
    """What `price` says is what is put aside."""
    metered = limited(Fake, answer("Hi"))
    asked = Request(messages=[Message.user("Hello")], max_tokens=1000)
    price = metered.price(asked)
    assert price is not None
    assert Decimal(0) < price < Decimal("0.1")
    assert metered.ledger.held == 0
    with pytest.raises(SpendLimit) as error:
        limited(Fake, answer("Hi"), limit="0.00001").generate(asked)
    assert error.value.needed == price
    assert metered.price(asked.replace(model="nobodys-model")) is None


def test_the_price_of_the_requests_own_model_counts() -> None:
    request = Request(messages="Hi", model="unheard-of")
    with pytest.raises(InvalidRequest, match="unheard-of"):
        limited(Fake).generate(request)


# ---------------------------------------------------------------- threads and tasks


def totals(row: Row) -> tuple[int, int, int, int, int, Decimal]:
    return row.answers, row.failures, row.unfinished, row.input_tokens, row.output_tokens, row.cost


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_64_threads_lose_and_double_nothing(seed: int) -> None:
    chance = random.Random(seed)
    script = [_outcome(chance) for _ in range(640)]
    expected = ledger()
    for outcome in script:
        _book(expected, outcome)
    book, start = ledger(), threading.Barrier(64)

    def work(mine: list[Any]) -> None:
        start.wait()
        for outcome in mine:
            try:
                whole(Metered(Fake(outcome), book))
            except LessonError:
                continue

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(work, [script[number::64] for number in range(64)]))
    assert totals(book.total()) == totals(expected.total())
    assert sorted((row.model, totals(row)) for row in book.rows()) == sorted(
        (row.model, totals(row)) for row in expected.rows()
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_1000_tasks_lose_and_double_nothing_even_if_some_are_cancelled(seed: int) -> None:
    chance = random.Random(seed)
    script = [(_outcome(chance), chance.random() * 3, chance.random() < 0.1) for _ in range(1000)]
    book = ledger()
    cancelled = 0

    async def work(loop: Any, outcome: Any, delay: float) -> None:
        class Slow(AFake):
            async def generate(self, request: Request) -> Response:
                await asyncio.sleep(delay)
                return await super().generate(request)

        try:
            await Metered(Slow(outcome), book).generate(ASK)
        except LessonError:
            return

    async def main(loop: Any) -> None:
        nonlocal cancelled
        tasks = [(asyncio.create_task(work(loop, outcome, delay)), doomed) for outcome, delay, doomed in script]
        await asyncio.sleep(1)
        for task, doomed in tasks:
            if doomed and not task.done():
                task.cancel()
                cancelled += 1
        await asyncio.gather(*(task for task, _ in tasks), return_exceptions=True)

    run_virtually(main)
    total = book.total()
    assert total.unfinished == cancelled
    assert total.answers + total.failures + total.unfinished == 1000
    booked = [outcome for (outcome, delay, doomed) in script if not (doomed and delay >= 1)]
    expected = ledger()
    for outcome in booked:
        _book(expected, outcome)
    assert (total.input_tokens, total.output_tokens, total.cost) == totals(expected.total())[3:]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_a_limit_is_never_passed_by_calls_with_a_cap(seed: int) -> None:
    chance = random.Random(seed)
    book = ledger()
    limit = Decimal("0.5")

    async def work(tokens: int, output: int, delay: float) -> None:
        class Slow(AFake):
            async def generate(self, request: Request) -> Response:
                await asyncio.sleep(delay)
                return await super().generate(request)

        used = usage(tokens, chance.randint(0, output))
        metered = Metered(Slow(said_by("plain", used), model="plain"), book, limit, count=lambda request: tokens)
        try:
            await metered.generate(Request(messages=[Message.user("Hi")], max_tokens=output))
        except SpendLimit:
            return

    async def main(loop: Any) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(300):
                group.create_task(work(chance.randint(1, 2000), chance.randint(1, 1000), chance.random()))
                if chance.random() < 0.1:
                    await asyncio.sleep(chance.random())

    run_virtually(main)
    assert Decimal("0.4") < book.cost <= limit
    assert book.held == 0


def _outcome(chance: random.Random) -> Any:
    model = chance.choice(["plain", "half-known"])
    used = usage(chance.randint(0, 1000), chance.randint(0, 100)) if chance.random() < 0.9 else None
    response = Response(
        message=Message(role="assistant", parts=[Text(text="x")]), stop=StopReason.END, model=model, provider="p", usage=used
    )
    return response if chance.random() < 0.8 else cut(partial=response if chance.random() < 0.5 else None)


def _book(book: Ledger, outcome: Any) -> None:
    if isinstance(outcome, Response):
        book.add(outcome)
    else:
        book.add_error(outcome, "fake")
