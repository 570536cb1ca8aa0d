"""Limiters with two buckets, right and wrong."""

from __future__ import annotations

import time
from fractions import Fraction

from lessonlib.errors import PromptTooLong
from tests.lab_exercises.answers import Answers


class Base:
    """Two levels and the time of the last look."""

    def __init__(self, requests_per_minute, tokens_per_minute, clock=time.monotonic):
        self.rpm, self.tpm, self.clock = requests_per_minute, tokens_per_minute, clock
        self.requests, self.tokens = float(requests_per_minute), float(tokens_per_minute)
        self.last = clock()

    def fill(self):
        now = self.clock()
        passed, self.last = now - self.last, now
        self.requests = min(self.rpm, self.requests + passed * self.rpm / 60)
        self.tokens = min(self.tpm, self.tokens + passed * self.tpm / 60)

    def reserve(self, tokens):
        if tokens > self.tpm:
            raise PromptTooLong("larger than the bucket")
        self.fill()
        self.requests -= 1
        self.tokens -= tokens
        return max(0.0, -self.requests * 60 / self.rpm, -self.tokens * 60 / self.tpm)

    def settle(self, reserved, used):
        self.fill()
        self.tokens = min(self.tpm, self.tokens + reserved - used)


class Bucket:
    def __init__(self, size, clock):
        self.size, self.clock, self.full_at = size, clock, clock()

    def take(self, amount):
        """Another style: one number, the time at which the bucket will be full again."""
        self.full_at = max(self.full_at, self.clock()) + amount * 60 / self.size
        return self.full_at - 60 - self.clock()

    def give(self, amount):
        self.full_at = max(self.full_at, self.clock()) - amount * 60 / self.size


class ByTimes:
    def __init__(self, requests_per_minute, tokens_per_minute, clock):
        self.buckets = Bucket(requests_per_minute, clock), Bucket(tokens_per_minute, clock)

    def reserve(self, tokens):
        if tokens > self.buckets[1].size:
            raise PromptTooLong("never")
        waits = [bucket.take(amount) for bucket, amount in zip(self.buckets, (1, tokens), strict=True)]
        return max(0, *waits)

    def settle(self, reserved, used):
        self.buckets[1].give(reserved - used)


class Sleeps(Base):
    def reserve(self, tokens):
        wait = super().reserve(tokens)
        if wait:
            time.sleep(wait)
        return wait


class YesOrNo(Base):
    def reserve(self, tokens):
        return super().reserve(tokens) == 0


class ByTheMinute(Base):
    """Everything comes back at the end of the minute."""

    def fill(self):
        if self.clock() - self.last >= 60:
            self.requests, self.tokens, self.last = self.rpm, self.tpm, self.clock()

    def reserve(self, tokens):
        wait = super().reserve(tokens)
        return 60.0 - (self.clock() - self.last) if wait else 0.0


class BooksAfter(Base):
    """A request that waits is not taken."""

    def reserve(self, tokens):
        before = self.requests, self.tokens
        wait = super().reserve(tokens)
        if wait and before[1] > 0:
            self.requests, self.tokens = before
        return wait


class ByTheTimeOfFull:
    """No levels: for each bucket the moment at which it will be full again."""

    def __init__(self, requests_per_minute, tokens_per_minute, clock=time.monotonic):
        self.sizes, self.clock = (requests_per_minute, tokens_per_minute), clock
        self.full = [clock(), clock()]

    def book(self, place, amount):
        now = self.clock()
        self.full[place] = max(self.full[place], now) + 60 * amount / self.sizes[place]
        return self.full[place] - now - 60

    def reserve(self, tokens):
        if tokens > self.sizes[1]:
            raise PromptTooLong("it would never fit")
        return max(0.0, self.book(0, 1), self.book(1, tokens))

    def settle(self, reserved, used):
        self.book(1, used - reserved)


class Whole(Base):
    """Waits for all the tokens of the request."""

    def reserve(self, tokens):
        wait = super().reserve(tokens)
        return tokens * 60 / self.tpm if wait else wait


class Refuses(Base):
    def reserve(self, tokens):
        if super().reserve(tokens):
            raise PromptTooLong("not now")
        return 0.0


class RefusedIsBooked(Base):
    def reserve(self, tokens):
        self.tokens -= tokens
        if tokens > self.tpm:
            raise PromptTooLong("larger than the bucket")
        self.tokens += tokens
        return super().reserve(tokens)


class Stuck(Base):
    def reserve(self, tokens):
        self.count = getattr(self, "count", 0) + 1
        return super().reserve(tokens) if self.count < 6 else 0.0 * super().reserve(tokens)


class InFractions(Base):
    """Another style: no floats."""

    def reserve(self, tokens):
        return Fraction(super().reserve(tokens))


ANSWERS = Answers(
    "limiter",
    Base,
    [ByTimes, ByTheTimeOfFull, InFractions],
    [
        ("sleeps", Sleeps),
        ("no_number", YesOrNo),
        ("refills_at_the_minute", ByTheMinute),
        ("books_after", BooksAfter),
        ("waits_for_the_whole", Whole),
        ("refuses_instead_of_waiting", Refuses),
        ("refused_is_booked", RefusedIsBooked),
        ("stuck", Stuck),
        ("not_written", None),
        ("wrong_shape", dict),
    ],
)
