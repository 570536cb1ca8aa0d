"""Fallback chains, right and wrong."""

from __future__ import annotations

from contextlib import closing

from lessonlib import Fallback
from lessonlib.errors import APIError, IncompleteStream, LessonError, TransportError
from lessonlib.types import Done
from tests.lab_exercises.answers import Answers


class Base:
    """Two loops."""

    def __init__(self, providers):
        self.providers = providers

    def goes_on(self, error):
        if isinstance(error, APIError):
            return error.retryable or error.status == 429
        return isinstance(error, (TransportError, IncompleteStream))

    def generate(self, request):
        last = None
        for provider in self.providers:
            try:
                return self.named(provider.generate(request), provider)
            except LessonError as error:
                if not self.goes_on(error):
                    raise
                last = error
        raise last

    def stream(self, request):
        last = None
        for provider in self.providers:
            started = False
            events = provider.stream(request)
            try:
                for event in events:
                    started = True
                    yield Done(self.named(event.response, provider)) if isinstance(event, Done) else event
                return
            except LessonError as error:
                if started or not self.goes_on(error):
                    raise
                last = error
            finally:
                events.close()
        raise last

    def named(self, response, provider):
        return response.model_copy(update={"provider": provider.name})


class Recursive:
    """Another style: the chain is its head and the rest."""

    def __init__(self, providers):
        self.head, *rest = providers
        self.rest = Recursive(rest) if rest else None

    def stops(self, error):
        return not self.rest or (isinstance(error, APIError) and error.status in (400, 401, 403, 404))

    def generate(self, request):
        try:
            response = self.head.generate(request)
        except LessonError as error:
            if self.stops(error):
                raise
            return self.rest.generate(request)
        return response.model_copy(update={"provider": self.head.name})

    def stream(self, request):
        with closing(self.head.stream(request)) as events:
            try:
                first = next(events)
            except LessonError as error:
                if self.stops(error):
                    raise
                first = None
            while first is not None:
                if isinstance(first, Done):
                    first = Done(first.response.model_copy(update={"provider": self.head.name}))
                yield first
                first = next(events, None)
                if first is None:
                    return
        yield from self.rest.stream(request)


class KeepsOpen(Base):
    """Holds on to the inner stream."""

    def stream(self, request):
        last = None
        for provider in self.providers:
            started, self.events = False, provider.stream(request)
            provider.kept = self.events
            try:
                for event in self.events:
                    started = True
                    yield Done(self.named(event.response, provider)) if isinstance(event, Done) else event
                return
            except LessonError as error:
                if started or not self.goes_on(error):
                    raise
                last = error
        raise last


class AsksAll(Base):
    def generate(self, request):
        answers = []
        for provider in self.providers:
            try:
                answers.append(self.named(provider.generate(request), provider))
            except LessonError:
                continue
        return answers[0]


class Collects(Base):
    def stream(self, request):
        for provider in self.providers:
            try:
                events = list(provider.stream(request))
            except LessonError as error:
                if not self.goes_on(error):
                    raise
                continue
            for event in events:
                yield Done(self.named(event.response, provider)) if isinstance(event, Done) else event
            return


class MakesOnly(Base):
    """Expects a stream to fail where it is made."""

    def stream(self, request):
        for provider in self.providers:
            try:
                events = provider.stream(request)
            except LessonError:
                continue
            with closing(events):
                for event in events:
                    yield Done(self.named(event.response, provider)) if isinstance(event, Done) else event
            return


class TwoOnly(Base):
    def __init__(self, providers):
        super().__init__(providers[:2])


class FirstError(Base):
    def generate(self, request):
        errors = []
        for provider in self.providers:
            try:
                return self.named(provider.generate(request), provider)
            except LessonError as error:
                if not self.goes_on(error):
                    raise
                errors.append(error)
        raise errors[0]


class Retries(Base):
    def generate(self, request):
        try:
            return super().generate(request)
        except LessonError:
            return super().generate(request)

    def named(self, response, provider):
        return super().named(response, provider)


class AsksTwice(Base):
    def __init__(self, providers):
        super().__init__([each for each in providers for _ in range(2)])


class NoDone(Base):
    def stream(self, request):
        for event in super().stream(request):
            if not isinstance(event, Done):
                yield event


class Rewrites(Base):
    def named(self, response, provider):
        return response.model_copy(update={"provider": provider.name, "id": "fallback"})


class ForgetsTheBill(Base):
    def generate(self, request):
        return super().generate(request).model_copy(update={"usage": None})


class HandsOutAList(Base):
    """What it returns cannot even be closed."""

    def stream(self, request):
        return iter(list(super().stream(request)))


ANSWERS = Answers(
    "fallback",
    Base,
    [Fallback, Recursive],
    [
        ("leaves_the_stream_open", KeepsOpen),
        ("asks_all", AsksAll),
        ("collects_the_stream", Collects),
        ("stream_never_goes_on", MakesOnly),
        ("two_only", TwoOnly),
        ("first_error_wins", FirstError),
        ("asks_twice", AsksTwice),
        ("stream_not_passed_on", NoDone),
        ("answer_changed", Rewrites),
        ("answer_changed", ForgetsTheBill),
        ("collects_the_stream", HandsOutAList),
        ("not_written", None),
        ("wrong_shape", lambda: None),
    ],
)
