"""WindowGuard looks before it sends: it refuses with the counts, or compacts first. Metered is in test_ledger.py."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from lessonlib.budget import WindowGuard
from lessonlib.compact import HEAD, Compaction, Compactor, transcript
from lessonlib.errors import APIError, InvalidRequest, PromptTooLong
from lessonlib.limits import Limits
from lessonlib.retry import Retry
from lessonlib.tool_loop import run_tools
from lessonlib.types import Done, Message, Request, Usage
from tests.fakes import (
    AFake,
    Fake,
    answer,
    as_turn,
    both,
    call,
    cancel_everywhere,
    drain,
    first_event,
    overloaded,
    said,
    shown,
    streamed,
    whole,
)


def sized(request: Request) -> int:
    """One token for each character."""
    return len(request.system or "") + len(transcript(request.messages))


def guard(provider: Any, on_full: Literal["raise", "compact"] = "compact", **options: Any) -> WindowGuard[Any]:
    given: dict[str, Any] = {"window": 1000, "buffer": 0, "count": sized} | options
    given.setdefault("compactor", Compactor(prompt="Sum up.", count=sized))
    return WindowGuard(provider, on_full, **given)


def talk(turns: int) -> list[Message]:
    pairs = [
        (Message.user(f"q{number} " + "x" * 100), Message.assistant(f"a{number} " + "x" * 100)) for number in range(turns)
    ]
    return [*(message for pair in pairs for message in pair), Message.user("and now?")]


LONG = Request(messages=talk(5))


# ---------------------------------------------------------------- raise


@pytest.mark.parametrize("body", [whole, streamed])
def test_a_prompt_that_does_not_fit_is_refused_with_the_counts_and_nothing_is_sent(body: Any) -> None:
    def refused(policy: Any) -> tuple[int, int, int]:
        with pytest.raises(PromptTooLong) as refusal:
            body(policy, LONG)
        return refusal.value.tokens, refusal.value.limit, policy._providers[0].calls

    assert both(lambda colour: guard(colour(), "raise"), refused) == (sized(LONG), 1000, 0)


def test_128k_with_a_buffer_of_13k_takes_115k() -> None:
    fits = Request(messages="x" * (115_000 - len("user: ")))
    one_more = Request(messages="x" * (115_001 - len("user: ")))
    policy = WindowGuard(Fake("Hi", model="gpt-4o"), buffer=13_000, count=sized)
    assert policy.generate(fits).text == "Hi"
    with pytest.raises(PromptTooLong) as refusal:
        policy.generate(one_more)
    assert (refusal.value.tokens, refusal.value.limit) == (115_001, 115_000)
    assert "gpt-4o" in str(refusal.value)


def test_the_answer_that_was_asked_for_must_fit_too() -> None:
    request = Request(messages="x" * 500, max_tokens=600)
    with pytest.raises(PromptTooLong):
        guard(Fake(), "raise").generate(request)


def test_an_unknown_window_lets_everything_pass() -> None:
    policy = WindowGuard(Fake("Hi", model="unheard-of"), count=sized)
    assert policy.generate(LONG).text == "Hi"


def test_an_unknown_vocabulary_does_not_switch_the_guard_off() -> None:
    """A counter that gives 0 for a model that it does not know would let everything pass."""
    policy = WindowGuard(Fake(model="unheard-of"), window=100)
    with pytest.raises(PromptTooLong):
        policy.generate(Request(messages="word " * 200))


def test_the_requests_own_model_decides() -> None:
    policy = WindowGuard(Fake("Hi", model="gpt-4o"), buffer=0, count=lambda request: 10_000)
    with pytest.raises(PromptTooLong):
        policy.generate(Request(messages="x", model="gpt-4"))


def test_another_word_for_on_full_is_refused() -> None:
    with pytest.raises(ValueError, match="on_full"):
        guard(Fake(), "truncate")  # type: ignore[arg-type]


# ---------------------------------------------------------------- compact


@pytest.mark.parametrize("body", [whole, streamed])
def test_the_old_turns_are_summed_up_then_the_request_goes_out(body: Any) -> None:
    def sent(policy: Any) -> list[Message]:
        body(policy, LONG)
        assert policy._providers[0].calls == 2
        return policy._providers[0].requests[1].messages

    assert both(lambda colour: guard(colour("summary", "answer")), sent) == [
        Message.user(f"{HEAD}\nsummary"), *LONG.messages[-3:],
    ]  # fmt: skip


def test_the_consumer_of_a_stream_sees_the_answer_and_nothing_of_the_summary() -> None:
    events = streamed(guard(Fake("summary", said("an", "swer"))), LONG)
    assert shown(events) == "answer"
    assert [event.__class__ for event in events].count(Done) == 1


def test_what_the_summary_cost_is_not_lost() -> None:
    response = guard(Fake("summary", "answer")).generate(LONG)
    assert response.usage == Usage(input_tokens=10, output_tokens=1)
    assert response.retried == Usage(input_tokens=10, output_tokens=1)


def test_what_fits_is_sent_as_it_is() -> None:
    fake = Fake("answer")
    guard(fake).generate(Request(messages="Hi"))
    assert fake.requests == [Request(messages="Hi")]


def test_a_conversation_that_goes_on_is_summed_up_once() -> None:
    """The caller's history keeps the old turns; the beginning that the model sees stays the same."""
    fake = Fake("summary", "first", "second")
    policy = guard(fake)
    response = policy.generate(LONG)
    policy.generate(Request(messages=[*LONG.messages, response.message, Message.user("go on")]))
    assert fake.calls == 3
    assert fake.requests[2].messages == [*fake.requests[1].messages, response.message, Message.user("go on")]


def test_a_conversation_that_grows_too_long_again_is_summed_up_from_the_summary() -> None:
    fake = Fake("one", "first", "two, part one", "two", "second", "third")  # the second time it takes two pieces
    policy = guard(fake)
    policy.generate(LONG)
    longer = Request(messages=[*LONG.messages, Message.assistant("y" * 800), Message.user("go on")])
    policy.generate(longer)
    assert HEAD in fake.requests[2].messages[0].text
    policy.generate(longer.replace(messages=[*longer.messages, Message.assistant("ok"), Message.user("more")]))
    assert fake.calls == 6
    assert fake.requests[5].messages[0] == Message.user(f"{HEAD}\ntwo")


def test_another_conversation_gets_none_of_it() -> None:
    fake = Fake("summary", "answer", "other")
    policy = guard(fake)
    policy.generate(LONG)
    other = Request(messages=[Message.user("different"), *LONG.messages[1:3]])
    policy.generate(other)
    assert fake.requests[2] == other


def test_the_hook_is_told() -> None:
    told: list[Compaction] = []
    guard(Fake("summary", "answer"), on_compact=told.append).generate(LONG)
    assert [(each.replaced, each.summary) for each in told] == [(8, "summary")]


class Looking(Fake):
    """A model that calls `look` eight times, then is done; asked for a summary, it writes one."""

    def _next(self, request: Request) -> Any:
        self.requests.append(request)
        if request.messages[-1].text.endswith("Sum up."):
            return said("summary")
        number = sum(not each.messages[-1].text.endswith("Sum up.") for each in self.requests)
        return as_turn(answer("", call("look", f"c{number}")) if number <= 8 else "done")


def test_in_a_tool_loop_each_step_fits() -> None:
    model = Looking()
    run = run_tools(guard(model), Request(messages="Look around."), {"look": lambda: "r" * 200}, max_steps=20)
    assert run.response.text == "done"
    assert all(sized(request) <= 1000 for request in model.requests if not request.messages[-1].text.endswith("Sum up."))
    assert len(run.messages) == 1 + 8 * 2 + 1  # the history itself is whole


# ---------------------------------------------------------------- the service says so


def too_long() -> APIError:
    return APIError("too long", status=400, type="invalid_request_error", code="context_length_exceeded")


@pytest.mark.parametrize("body", [whole, streamed])
def test_a_service_that_finds_the_prompt_too_long_is_asked_once_more(body: Any) -> None:
    def calls(policy: Any) -> int:
        body(policy, Request(messages=talk(2)))
        requests = policy._providers[0].requests
        assert requests[2].messages == [Message.user(f"{HEAD}\nsummary"), Message.user("and now?")]
        return len(requests)

    assert both(lambda colour: guard(colour(too_long(), "summary", "answer")), calls) == 3


def test_it_is_asked_once_more_only() -> None:
    fake = Fake(too_long(), "summary", too_long())
    with pytest.raises(APIError):
        guard(fake).generate(Request(messages=talk(2)))
    assert fake.calls == 3


@pytest.mark.parametrize("on_full", ["raise", "compact"])
def test_other_errors_and_guards_that_only_refuse_change_nothing(on_full: Literal["raise", "compact"]) -> None:
    error = too_long() if on_full == "raise" else APIError("no", status=400)
    fake = Fake(error)
    with pytest.raises(APIError):
        guard(fake, on_full).generate(Request(messages=talk(2)))
    assert fake.calls == 1


def test_after_something_was_shown_nothing_is_asked_again() -> None:
    fake = Fake(said("half", then=too_long()))
    with pytest.raises(APIError):
        streamed(guard(fake), Request(messages=talk(2)))
    assert fake.calls == 1


# ---------------------------------------------------------------- nesting, closing, cancelling


def test_a_refusal_is_not_retried_and_costs_no_limit() -> None:
    limits = Limits(guard(Fake(), "raise"), requests_per_minute=1)  # type: ignore[var-annotated]
    for _ in range(3):  # each gives its place back
        with pytest.raises(PromptTooLong):
            Retry(limits).generate(LONG)


def test_retry_inside_of_the_guard_repeats_the_compacted_request() -> None:
    fake = Fake("summary", overloaded(), "answer")
    inner: Any = Retry(fake, sleep=lambda seconds: None)
    assert guard(inner).generate(LONG).text == "answer"
    assert fake.requests[1] == fake.requests[2]


@pytest.mark.parametrize("colour", [Fake, AFake])
def test_closing_the_stream_closes_what_is_inside(colour: type[Fake]) -> None:
    fake = colour("summary", said("a", "b"))
    first_event(guard(fake), LONG)
    assert fake.open == 0


def test_cancelled_anywhere_it_leaves_nothing_open() -> None:
    def make() -> tuple[Any, Any]:
        fake = AFake("summary", said("a", "b"))

        def check() -> None:
            assert fake.open == 0

        return drain(guard(fake).stream(LONG)), check

    assert cancel_everywhere(make) >= 4


def test_a_request_that_cannot_be_written_is_no_matter_of_the_guards() -> None:
    with pytest.raises(InvalidRequest):
        guard(Fake(InvalidRequest("no"))).generate(Request(messages="Hi"))
