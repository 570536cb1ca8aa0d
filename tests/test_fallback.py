"""Fallback: what goes on and what stops, what is checked before the switch, and who is named."""

from __future__ import annotations

from typing import Any

import pytest

from lessonlib import capabilities
from lessonlib.errors import (
    APIError,
    CircuitOpen,
    IncompleteStream,
    InvalidRequest,
    LessonError,
    NotAStream,
    PromptTooLong,
    ProtocolError,
    TransportError,
)
from lessonlib.fallback import Difference, Fallback, Switch, differences, goes_on, with_note
from lessonlib.flow import collect
from lessonlib.types import (
    Image,
    Message,
    ReasoningDelta,
    Request,
    StopReason,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.fakes import (
    ASK,
    AFake,
    Fake,
    Turn,
    answer,
    bad_request,
    both,
    cancel_everywhere,
    cut,
    drain,
    limited,
    overloaded,
    said,
    shown,
    streamed,
    whole,
)

REFUSED = answer("", stop=StopReason.REFUSAL)


def chain(colour: Any, *scripts: Any, **options: Any) -> Fallback[Any]:
    """A chain of providers a, b, c ... with one script entry (or a tuple of them) each."""
    return Fallback(
        [
            colour(*(each if isinstance(each, tuple) else (each,)), name=name)
            for name, each in zip("abcd", scripts, strict=False)
        ],
        **options,
    )


def calls(policy: Fallback[Any]) -> list[int]:
    return [provider.calls for provider in policy._providers]


# ---------------------------------------------------------------- what goes on


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (limited(), True),
        (APIError("no credit left", status=429, code="insufficient_quota"), True),
        (overloaded(), True),
        (APIError("server", status=500), True),
        (APIError("not here", status=501), True),
        (APIError("overloaded", status=200, type="overloaded_error", retryable=True), True),
        (TransportError("refused"), True),
        (TransportError("refused", retryable=False), True),
        (IncompleteStream("cut"), True),
        (CircuitOpen("open"), True),
        (bad_request(), False),
        (APIError("who are you", status=401), False),
        (APIError("broke", status=402), False),
        (APIError("too large", status=413), False),
        (InvalidRequest("cannot be written"), False),
        (PromptTooLong("too long"), False),
        (ProtocolError("nonsense"), False),
        (NotAStream("a page"), False),
        (LessonError("anything"), False),
    ],
)
def test_which_errors_go_on(error: LessonError, expected: bool) -> None:
    """Another service may do better where this one cannot; what is wrong with the request is wrong everywhere."""
    assert goes_on(error) is expected
    for colour in (Fake, AFake):
        policy = chain(colour, error, "Hi")
        if expected:
            assert whole(policy).text == "Hi"
        else:
            with pytest.raises(type(error)):
                whole(policy)
        assert calls(policy) == [1, int(expected)]


def test_the_first_that_answers_is_enough() -> None:
    for colour in (Fake, AFake):
        policy = chain(colour, "Hi", "never")
        assert whole(policy).text == "Hi"
        assert calls(policy) == [1, 0]


def test_when_nobody_answers_the_last_error_carries_the_earlier_ones() -> None:
    for body in (whole, streamed):
        for colour in (Fake, AFake):
            first, second, last = overloaded(), limited(), cut()
            with pytest.raises(IncompleteStream) as caught:
                body(chain(colour, first, second, last))
            assert caught.value is last
            assert caught.value.attempts == [first, second]


def test_a_stream_goes_on_only_before_anything_was_shown() -> None:
    events = both(lambda colour: chain(colour, cut(), said("Hi")), streamed)
    assert shown(events) == "Hi"


def test_reasoning_that_was_shown_counts_too() -> None:
    """A broke off after a thought and half a word; to start over with B would show one answer and a half."""
    for colour in (Fake, AFake):
        policy = chain(colour, Turn([ReasoningDelta(0, "Hm")], TransportError("reset")), said("The tide"))
        with pytest.raises(TransportError):
            streamed(policy)
        assert calls(policy) == [1, 0]


def test_an_error_that_ended_a_tool_loop_goes_on_only_if_the_loop_says_so() -> None:
    """Its tools have run; another loop would run them again."""
    ended = CircuitOpen("open")
    ended.run = object()
    assert not goes_on(ended)


def test_a_rule_of_ones_own() -> None:
    policy = chain(Fake, bad_request(), "Hi", go_on=lambda error: True)
    assert whole(policy).text == "Hi"


# ---------------------------------------------------------------- refusals


def test_a_refusal_is_given_back_unless_asked_otherwise() -> None:
    for colour in (Fake, AFake):
        policy = chain(colour, REFUSED, "never")
        assert whole(policy).stop is StopReason.REFUSAL
        assert calls(policy) == [1, 0]


def test_a_refusal_goes_on_if_asked_to() -> None:
    result = both(lambda colour: chain(colour, REFUSED, "Hi", on_refusal=True), whole, lambda p: collect(streamed(p)))
    assert result.text == "Hi"


def test_a_refusal_with_text_that_was_shown_stays() -> None:
    refused = answer("I will not", stop=StopReason.REFUSAL)
    events = both(lambda colour: chain(colour, Turn(said("I will not").events, refused), "x", on_refusal=True), streamed)
    assert events[-1].response.stop is StopReason.REFUSAL
    assert shown(events) == "I will not"


def test_the_last_refusal_is_the_answer() -> None:
    policy = chain(Fake, overloaded(), REFUSED, on_refusal=True)
    assert whole(policy).stop is StopReason.REFUSAL


def test_a_policy_block_that_comes_as_an_error_is_a_refusal() -> None:
    blocked = APIError("blocked", status=400, refusal=True)
    assert whole(chain(Fake, blocked, "Hi", on_refusal=True)).text == "Hi"
    with pytest.raises(APIError):
        whole(chain(Fake, APIError("blocked", status=400, refusal=True), "never"))
    with pytest.raises(APIError):
        whole(chain(Fake, APIError("blocked", status=500, refusal=True), "never"))


# ---------------------------------------------------------------- who answered, what it cost


def test_the_response_names_who_answered() -> None:
    filled = answer("Hi", provider="vendor", model="m-2-0815")
    assert whole(chain(Fake, overloaded(), filled)).provider == "vendor"
    named = whole(Fallback([Fake(overloaded(), name="a"), Fake("Hi", name="b", model="m-2")]))
    assert (named.provider, named.model) == ("b", "m-2")


def test_what_failed_and_declined_answers_used_stays_in_the_account() -> None:
    broken = cut(partial=answer("", tokens=100))
    refused = answer("", stop=StopReason.REFUSAL, tokens=20)
    response = both(lambda colour: chain(colour, broken, refused, answer("Hi", tokens=3), on_refusal=True), whole)
    assert response.usage == Usage(input_tokens=3, output_tokens=1)
    assert response.retried == Usage(input_tokens=120, output_tokens=2)


def test_a_request_that_names_a_model_is_refused() -> None:
    """Models belong to wires: the name would be wrong for all but one of them."""
    for colour in (Fake, AFake):
        policy = chain(colour, "never", "never")
        with pytest.raises(InvalidRequest, match="'m-1'"):
            whole(policy, ASK.replace(model="m-1"))
        assert calls(policy) == [0, 0]


def test_each_switch_is_visible_to_a_hook_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    for colour in (Fake, AFake):
        seen: list[Switch] = []
        first = overloaded()
        with caplog.at_level("WARNING", logger="lessonlib"):
            whole(chain(colour, first, REFUSED, "Hi", on_refusal=True, on_switch=seen.append))
        assert [(switch.before, switch.after, switch.error, switch.refusal) for switch in seen] == [
            ("a", "b", first, None), ("b", "c", None, REFUSED),
        ]  # fmt: skip
        assert "fallback from a (APIError) to b" in caplog.text
        assert "fallback from b (refusal) to c" in caplog.text


def test_the_hook_may_be_async_in_the_async_colour() -> None:
    seen: list[str] = []

    async def hook(switch: Switch) -> None:
        seen.append(switch.after)

    whole(chain(AFake, overloaded(), "Hi", on_switch=hook))
    assert seen == ["b"]


# ---------------------------------------------------------------- differences


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invented models, so that the tests say what they mean."""
    table = {
        "small": capabilities.Capabilities(family="small", window=100, max_output=50),
        "plain": capabilities.Capabilities(tools=False, structured_output=False, images=False, thinking="none",
                                           parallel_calls=False, prefill=False),
        "budget": capabilities.Capabilities(thinking="budget"),
        "effort": capabilities.Capabilities(thinking="effort", efforts=("low", "high"), can_disable_thinking=False,
                                            forced_tool_choice=False),
    }  # fmt: skip
    monkeypatch.setattr(capabilities, "of", lambda model: table.get(model or "", capabilities.UNKNOWN))


TOOLS = [Tool(name="get_weather")]


@pytest.mark.parametrize(
    ("model", "changes", "found"),
    [
        ("small", {"messages": "x" * 4000}, [("window", True)]),
        ("small", {"max_tokens": 51}, [("max_tokens", True)]),
        ("small", {"max_tokens": 50}, []),
        ("plain", {"tools": TOOLS}, [("tools", True)]),
        ("plain", {"tools": TOOLS, "parallel": True}, [("tools", True), ("parallel_calls", False)]),
        ("plain", {"output_schema": {"type": "object"}}, [("structured_output", True)]),
        ("plain", {"messages": [Message.user(Image(url="https://example.org/a.png"))]}, [("images", True)]),
        ("plain", {"messages": [Message.user("x"), Message.assistant("The answer is")]}, [("prefill", True)]),
        ("plain", {"reasoning": "high"}, [("reasoning", False)]),
        ("effort", {"tools": TOOLS, "tool_choice": "required"}, [("forced_tool_choice", True)]),
        ("effort", {"tools": TOOLS, "tool_choice": "auto"}, []),
        ("effort", {"reasoning": "medium"}, [("reasoning", True)]),
        ("effort", {"reasoning": "low"}, []),
        ("effort", {"reasoning": 2000}, [("reasoning", True)]),
        ("effort", {"reasoning": "none"}, [("reasoning", True)]),
        ("budget", {"reasoning": 2000}, []),
        ("unknown", {"tools": TOOLS, "reasoning": "high", "max_tokens": 10**9}, []),
        (None, {"tools": TOOLS}, []),
    ],
)
@pytest.mark.usefixtures("models")
def test_differences_are_found_before_the_switch(model: str | None, changes: dict[str, Any], found: list[Any]) -> None:
    """What is known not to fit; what is not known is not guessed."""
    request = Request(**{"messages": "Hello", **changes})
    assert [(each.field, each.blocking) for each in differences(request, model)] == found


@pytest.mark.usefixtures("models")
def test_a_picture_in_a_tool_result_counts() -> None:
    result = ToolResult(call_id="c", content=[Text(text="x"), Image(url="https://example.org/a.png")])
    call = Message.assistant(ToolCall(call_id="c", name="t", args={}))
    request = Request(messages=[Message.user("x"), call, Message.user(result)])
    assert [each.field for each in differences(request, "plain")] == ["images"]


@pytest.mark.usefixtures("models")
def test_a_provider_that_would_refuse_is_passed_over_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    for colour in (Fake, AFake):
        seen: list[Switch] = []
        a, b, c = colour(overloaded(), name="a"), colour("never", name="b", model="plain"), colour("Hi", name="c")
        request = ASK.replace(tools=TOOLS)
        with caplog.at_level("WARNING", logger="lessonlib"):
            assert whole(Fallback([a, b, c], on_switch=seen.append), request).text == "Hi"
        assert (b.calls, [(switch.after, switch.passed_over) for switch in seen]) == (0, [("b", True), ("c", False)])
        assert seen[0].differences == [Difference("tools", "yes", "no")]
        assert "to b, which lacks tools (needs yes, takes no)" in caplog.text


@pytest.mark.usefixtures("models")
def test_when_all_others_are_passed_over_the_error_stands() -> None:
    error = overloaded()
    with pytest.raises(APIError) as caught:
        whole(Fallback([Fake(error, name="a"), Fake("never", name="b", model="small")]), Request(messages="x" * 4000))
    assert caught.value is error
    refused = Fallback([Fake(REFUSED), Fake("never", model="small")], on_refusal=True)
    assert whole(refused, Request(messages="x" * 4000)).stop is StopReason.REFUSAL


@pytest.mark.usefixtures("models")
def test_a_difference_that_does_not_block_is_reported_and_the_switch_made() -> None:
    seen: list[Switch] = []
    policy = Fallback([Fake(overloaded()), Fake("Hi", model="plain")], on_switch=seen.append)
    assert whole(policy, ASK.replace(reasoning="high")).text == "Hi"
    assert [str(each) for each in seen[0].differences] == ["reasoning (needs high, takes none)"]
    assert not seen[0].passed_over


def test_the_model_is_found_through_policies_and_wires() -> None:
    class WithWire(Fake):
        class wire:
            model = "m-3"

    assert Fallback([WithWire()]).model == "m-3"
    assert Fallback([Fallback([WithWire()])]).model == "m-3"


# ---------------------------------------------------------------- hand-over


def test_the_old_model_writes_a_summary_that_goes_along() -> None:
    for colour in (Fake, AFake):
        for body in (whole, streamed):
            a = colour(REFUSED, answer("They want the tide table.", tokens=7), name="a")
            b = colour(said("Hi"), name="b")
            seen: list[Switch] = []
            policy = Fallback([a, b], on_refusal=True, handover=True, on_switch=seen.append)
            result = body(policy, ASK.replace(tools=TOOLS))
            assert "cannot see your reasoning" in a.requests[1].messages[-1].text
            assert a.requests[1].tool_choice == "none"
            assert "They want the tide table." in b.requests[0].messages[-1].text
            assert b.requests[0].messages[-1].text.endswith("Hello")
            assert seen[0].summary == "They want the tide table."
            if body is whole:
                assert result.retried == Usage(input_tokens=17, output_tokens=2)
            else:
                assert shown(result) == "Hi", "the summary is nobody's business"


def test_a_prompt_of_ones_own_for_the_hand_over() -> None:
    a = Fake(REFUSED, "Summary.", name="a")
    whole(Fallback([a, Fake("Hi")], on_refusal=True, handover="Sum up."))
    assert a.requests[1].messages[-1].text == "Sum up."


@pytest.mark.parametrize("second", [overloaded(), REFUSED])
def test_a_model_that_cannot_write_a_summary_is_left_without_one(second: Any) -> None:
    b = Fake("Hi", name="b")
    assert whole(Fallback([Fake(REFUSED, second), b], on_refusal=True, handover=True)).text == "Hi"
    assert b.requests[0].messages == ASK.messages


def test_a_service_that_is_down_is_not_asked_for_a_summary() -> None:
    a = Fake(overloaded(), name="a")
    assert whole(Fallback([a, Fake("Hi")], handover=True)).text == "Hi"
    assert a.calls == 1


def test_the_note_stands_before_what_the_user_said_last() -> None:
    call = Message.assistant(ToolCall(call_id="c", name="t", args={}))
    request = Request(messages=[Message.user("x"), call, Message.user(ToolResult(call_id="c", content="1"))])
    last = with_note(request, "N").messages[-1]
    assert [part.type for part in last.parts] == ["text", "tool_result"]
    paused = Request(messages=[Message.user("x"), Message.assistant("half")])
    assert [message.role for message in with_note(paused, "N").messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("streaming", [False, True])
def test_cancellation_at_every_await(streaming: bool) -> None:
    def make() -> Any:
        providers = [AFake(overloaded()), AFake(REFUSED, "Summary."), AFake(said("a", "b"))]
        policy = Fallback(providers, on_refusal=True, handover=True)

        def check() -> None:
            assert all(provider.open == 0 for provider in providers)

        return (drain(policy.stream(ASK)) if streaming else policy.generate(ASK)), check

    assert cancel_everywhere(make) >= 4
