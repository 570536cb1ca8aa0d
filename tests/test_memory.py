"""Memory: what compaction takes out can be found again, by rules that a person can follow."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lessonlib.compact import HEAD, Compactor, transcript
from lessonlib.memory import EXCERPT, ConversationMemory, Memory, search
from lessonlib.tool_loop import run_tools
from lessonlib.types import Message, Request, Text, ToolCall, ToolResult, dump_history, load_history
from tests.fakes import AFake, Fake, answer, call

TALK = [
    Message.user("Book a train from Oslo to Bergen on Friday, please."),
    Message.assistant("I look.", ToolCall(call_id="c1", name="next_train", args={"origin": "Oslo", "to": "Bergen"})),
    Message.user(ToolResult(call_id="c1", name="next_train", content="R41 at 08:25, seat 12")),
    Message.assistant("R41 leaves Oslo at 08:25."),
    Message.user("我想知道北京的天气"),
    Message.assistant("北京今天晴"),
    Message.user("And the weather in Lima?"),
]


def sized(request: Request) -> int:
    return len(transcript(request.messages))


def places(query: str, limit: int = 9) -> list[int]:
    return [hit.place for hit in search(query, TALK, limit)]


# ---------------------------------------------------------------- searching


def test_the_passage_with_the_rarest_words_of_the_query_comes_first() -> None:
    assert places("train to Bergen")[0] == 0
    assert places("seat")[0] == 2


def test_a_word_in_every_passage_says_little() -> None:
    messages = [Message.user(f"oslo oslo oslo {number}") for number in range(5)] + [Message.user("oslo bergen")]
    assert search("oslo bergen", messages)[0].place == 5


def test_calls_results_and_both_roles_are_searched() -> None:
    found = {(hit.place, hit.who) for hit in search("Oslo", TALK)}
    assert found == {(0, "user"), (1, "next_train was called"), (3, "assistant")}
    assert search("R41", TALK)[0].who in ("next_train gave", "assistant")


def test_case_does_not_matter_and_parts_of_words_do_not_match() -> None:
    assert places("OSLO") == places("oslo")
    assert places("Os") == []


def test_scripts_without_spaces_are_found_by_pairs_of_characters() -> None:
    assert set(places("北京")) == {4, 5}
    assert places("天气")[0] == 4
    assert places("上海") == []


def test_of_equal_passages_the_newest_comes_first_and_the_limit_holds() -> None:
    same = [Message.user("the same words") for _ in range(9)]
    assert [hit.place for hit in search("same words", same, 3)] == [8, 7, 6]


@pytest.mark.parametrize("query", ["", "  ", "?!", "zeppelin"])
def test_without_a_common_word_nothing_is_found(query: str) -> None:
    assert search(query, TALK) == []
    assert search(query, []) == []


def test_a_score_can_be_computed_by_hand() -> None:
    """Two passages of two words; `fog` stands in one of them, once: idf = ln(1 + 1.5/1.5), tf part = 2.2/2.2."""
    (hit,) = search("fog", [Message.user("fog bank"), Message.user("clear sky")])
    assert hit.score == pytest.approx(0.6931, abs=1e-4)


# ---------------------------------------------------------------- a memory


def memory(*script: Any, colour: type[Fake] = Fake, limit: int = 150) -> ConversationMemory:
    return ConversationMemory(colour(*(script or ("summary",)), for_ever=True), limit=limit,
                              compactor=Compactor(1, prompt="Sum up.", count=sized))  # fmt: skip


def test_what_is_compacted_away_can_be_found_word_by_word() -> None:
    kept: Memory = memory()
    request = kept.compact_if_needed(Request(messages=TALK))
    assert request.messages == [Message.user(f"{HEAD}\nsummary"), TALK[-1]]
    assert kept.search_memory("seat 12") == "[2] next_train gave: R41 at 08:25, seat 12"
    assert kept.search_memory("zeppelin") == "Nothing in the earlier conversation holds a word of 'zeppelin'."


def test_what_fits_is_not_taken_out() -> None:
    kept = memory(limit=10_000)
    assert kept.compact_if_needed(Request(messages=TALK)) == Request(messages=TALK)
    assert kept.messages == []
    kept.force_compact(Request(messages=TALK))
    assert kept.messages == TALK[:-1]


def test_a_summary_of_a_summary_is_not_remembered_as_something_that_was_said() -> None:
    kept = memory()
    request = kept.force_compact(Request(messages=TALK))
    request = request.replace(messages=[*request.messages, Message.assistant("Lima is dry."), Message.user("Thanks.")])
    kept.force_compact(request)
    assert kept.messages == [*TALK, Message.assistant("Lima is dry.")]


def test_it_can_be_stored_and_gone_on_with() -> None:
    kept = memory()
    kept.force_compact(Request(messages=TALK))
    again = ConversationMemory(Fake(), messages=load_history(dump_history(kept.messages)))
    assert again.search_memory("seat") == kept.search_memory("seat")


def test_a_long_passage_is_shown_around_the_word() -> None:
    text = "a " * 500 + "the needle" + " b" * 500
    kept = ConversationMemory(Fake(), messages=[Message.user(text)])
    shown = kept.search_memory("needle")
    assert "the needle" in shown
    assert len(shown) < EXCERPT + 30
    assert shown.count("…") == 2


def test_the_model_can_search_by_itself() -> None:
    kept = memory()
    request = kept.force_compact(Request(messages=TALK))
    provider = Fake(answer("", call("search_memory", query="seat")), "Seat 12.")
    run = run_tools(provider, request, [kept.tool()])
    assert run.messages[-2].tool_results[0].text == "[2] next_train gave: R41 at 08:25, seat 12"
    (offered,) = provider.requests[0].tools
    assert list(offered.parameters["properties"]) == ["query"]


def test_the_async_colour() -> None:
    kept = memory(colour=AFake)

    async def main() -> Request:
        request = await kept.acompact_if_needed(Request(messages=TALK))
        return await kept.aforce_compact(request.replace(messages=[*request.messages, Message.assistant("x"), TALK[0]]))

    assert asyncio.run(main()).messages[-1] == TALK[0]
    assert Message.assistant("x") in kept.messages
    with pytest.raises(TypeError, match="acompact"):
        kept.compact_if_needed(Request(messages=TALK))


def test_blank_passages_are_none() -> None:
    assert search("x", [Message.assistant(Text(text="  "), "x")])[0].text == "x"
