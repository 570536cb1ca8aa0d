"""Retry, right and wrong."""

from __future__ import annotations

import random as chance
import time
from typing import ClassVar

from lessonlib import Retry, is_retryable
from lessonlib.errors import LessonError
from tests.lab_exercises.answers import Answers


class Base:
    """Two loops, one for whole answers and one for streams."""

    def __init__(self, provider, max_attempts=4, base=1.0, cap=10.0, max_wait=60.0, sleep=time.sleep, random=chance.random):
        self.provider, self.max_attempts, self.base, self.cap, self.max_wait = provider, max_attempts, base, cap, max_wait
        self.sleep, self.random = sleep, random

    def delay(self, n, error):
        """Seconds to wait after attempt number n, None if there must be no other."""
        if not is_retryable(error) or n + 1 >= self.max_attempts:
            return None
        if error.retry_after:
            return error.retry_after if error.retry_after <= self.max_wait else None
        return self.random() * min(self.base * 2**n, self.cap)

    def generate(self, request):
        for n in range(self.max_attempts):
            try:
                return self.provider.generate(request)
            except LessonError as error:
                wait = self.delay(n, error)
                if wait is None:
                    raise
            self.sleep(wait)

    def stream(self, request):
        for n in range(self.max_attempts):
            started = False
            events = self.provider.stream(request)
            try:
                for event in events:
                    started = True
                    yield event
                return
            except LessonError as error:
                wait = None if started else self.delay(n, error)
                if wait is None:
                    raise
            finally:
                events.close()
            self.sleep(wait)


class ByRecursion:
    """Another style: no loop, and `yield from`."""

    def __init__(
        self, provider, max_attempts=4, base=1.0, cap=10.0, max_wait=60.0, *, sleep=time.sleep, random=chance.random
    ):
        self.__dict__.update(locals())

    def again(self, error, tries):
        wait = error.retry_after or self.random() * min(self.cap, self.base * 2 ** (tries - 1))
        if not error.retryable or tries >= self.max_attempts or wait > self.max_wait:
            raise error
        self.sleep(wait)

    def generate(self, request, tries=1):
        try:
            return self.provider.generate(request)
        except LessonError as error:
            self.again(error, tries)
        return self.generate(request, tries + 1)

    def stream(self, request, tries=1):
        events = iter(self.provider.stream(request))
        try:
            first = next(events)
        except StopIteration:
            return
        except LessonError as error:
            self.again(error, tries)
            yield from self.stream(request, tries + 1)
            return
        yield first
        yield from events


class KeepsOpen(Base):
    """Holds on to the inner stream when its reader stops."""

    kept: ClassVar[list] = []

    def stream(self, request):
        for n in range(self.max_attempts):
            started, events = False, self.provider.stream(request)
            self.kept.append(events)
            try:
                for event in events:
                    started = True
                    yield event
                return
            except LessonError as error:
                wait = None if started else self.delay(n, error)
                if wait is None:
                    raise
            self.sleep(wait)


class Rounds(Base):
    """Gives back a text instead of the answer."""

    def generate(self, request):
        return str(super().generate(request).stop)


class Negative(Base):
    """Waits between tries, and after the last one in streams."""

    def stream(self, request):
        try:
            yield from super().stream(request)
        except LessonError as error:
            if error.retryable and not error.partial and type(error).__name__ == "APIError":
                self.sleep(1.0)
            raise


ANSWERS = Answers(
    "retry",
    Base,
    [Retry, ByRecursion],
    [
        ("leaves_the_stream_open", KeepsOpen),
        ("loses_the_answer", Rounds),
        ("sleeps_after_the_last", Negative),
        ("not_written", None),
        ("wrong_shape", lambda provider: provider),
    ],
)  # fmt: skip
