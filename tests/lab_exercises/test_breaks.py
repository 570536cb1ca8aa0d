"""The catalogue of breaks as data, the feedback, and the tests that learners write. That the catalogue is true is proved in
test_breaks_are_noticed.py and test_breaks_full_suite.py."""

from __future__ import annotations

import hashlib
import time

import pytest

from lessonlib.lab import breaks, progress, scratch
from lessonlib.lab.breaks import NONE, Break, Outcome
from lessonlib.lab.course_suite import behaviours, gaps
from lessonlib.lab.scratch import PACKAGE, Run, Scratch, ScratchError

each = pytest.mark.parametrize("broken", breaks.catalogue(), ids=lambda broken: broken.name)
surviving = pytest.mark.parametrize(
    "broken", [broken for broken in breaks.catalogue() if broken.survives], ids=lambda broken: broken.name
)


# ---------------------------------------------------------------- the catalogue as data


def test_there_are_at_least_thirty_breaks_in_all_lessons() -> None:
    assert len(breaks.catalogue()) >= 30
    assert {broken.lesson for broken in breaks.catalogue()} == {f"{number:02d}" for number in range(14)}


def test_names_are_unique() -> None:
    names = [broken.name for broken in breaks.catalogue()]
    assert len(set(names)) == len(names)


def test_the_eight_breaks_of_the_source_lesson_are_among_them_and_the_sixth_in_both_directions() -> None:
    numbers = sorted(broken.number for broken in breaks.catalogue() if broken.number is not None)
    assert numbers == [1, 2, 3, 4, 5, 6, 6, 7, 8]
    assert [broken.survives for broken in breaks.catalogue() if broken.number in (5, 8)] == [True, True]


@each
def test_the_anchor_occurs_once(broken: Break) -> None:
    for edit in broken.edits:
        assert scratch.source(edit.file).count(edit.old) == 1
        assert edit.old != edit.new


@each
def test_five_to_eight_behaviours_are_offered_and_the_right_ones_are_among_them(broken: Break) -> None:
    assert 5 <= len(broken.offered) <= 8
    assert broken.fails <= broken.offered.keys() <= behaviours().keys()
    assert len(broken.offered.keys() - broken.fails) >= 2, "near misses"
    assert list(broken.choices.values())[-1] == NONE


@each
def test_there_is_something_to_say_to_every_guess(broken: Break) -> None:
    texts = [*broken.offered.values(), broken.none, broken.production, broken.why, broken.title, *broken.hints]
    assert all(len(text) > 10 for text in texts)
    assert len(broken.hints) == 3


@surviving
def test_a_break_that_nothing_notices_has_a_gap_and_a_test_that_would_notice(broken: Break) -> None:
    assert broken.name in {gap.shown_by for gap in gaps().values()}
    assert "def test_" in broken.killing_test


def test_every_gap_is_shown_by_a_break_that_nothing_notices() -> None:
    assert {gap.shown_by for gap in gaps().values()} == {broken.name for broken in breaks.catalogue() if broken.survives}


# ---------------------------------------------------------------- the sound library


def test_the_sound_library_passes_the_course_suite_in_five_seconds() -> None:
    began = time.process_time()
    with Scratch() as copy:
        run = copy.run()
    assert (run.trouble, run.failed) == ("", ())
    assert {test.behaviour for test in run.tests} == behaviours().keys()
    assert time.process_time() - began < 5


def test_the_installed_package_is_never_touched() -> None:
    def state() -> str:
        return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(PACKAGE.rglob("*.py")))).hexdigest()

    before = state()
    breaks.run("decode-per-read", {"sse_any_cut"})
    assert state() == before


# ---------------------------------------------------------------- feedback


def outcome(name: str, *predicted: str) -> Outcome:
    """What the feedback is about, without a run."""
    broken = breaks.get(name)
    return Outcome(broken, frozenset(predicted), tuple(sorted(broken.fails)), Run())


def test_hit_missed_and_surprising() -> None:
    found = outcome("recorded-spelling-dropped", "gemini_recorded_arguments", "gemini_guide_arguments")
    assert (found.hit, found.right) == (["gemini_recorded_arguments"], False)
    assert found.missed == ["pieces_by_number", "stream_equals_whole"]
    assert found.surprising == ["gemini_guide_arguments"]
    text = repr(found)
    for word in ("hit ", "missed ", "surprising ", "In production:", "Why:"):
        assert word in text
    assert breaks.get("recorded-spelling-dropped").offered["gemini_guide_arguments"] in " ".join(text.split())


def test_a_right_prediction_says_so() -> None:
    assert outcome("cache-left-out", "anthropic_input_is_the_sum").right
    assert "exactly as you said" in repr(outcome("cache-left-out", "anthropic_input_is_the_sum"))


def test_no_test_notices_is_a_prediction_like_any_other() -> None:
    assert outcome("end-of-body-is-the-end", NONE).right
    wrong = outcome("cache-left-out", NONE)
    assert not wrong.right
    assert breaks.get("cache-left-out").none in " ".join(repr(wrong).split())


def test_where_nothing_notices_the_next_step_is_to_write_the_test() -> None:
    assert "write_test" in repr(outcome("end-of-body-is-the-end", NONE))


def test_letters_and_names_mean_the_same() -> None:
    broken = breaks.get("cache-left-out")
    letter = next(letter for letter, key in broken.choices.items() if key == "stream_equals_whole")
    for guess in ({letter}, letter, [letter.upper()], "stream_equals_whole", {"stream_equals_whole"}):
        assert breaks.meant(broken, guess) == ({"stream_equals_whole"}, [])


def test_without_a_prediction_nothing_is_run() -> None:
    assert "prediction first" in repr(breaks.run("cache-left-out", None))
    assert "not among the choices" in repr(breaks.run("cache-left-out", {"z"}))
    assert "leave one of the two out" in repr(breaks.run("cache-left-out", {"none", "stream_equals_whole"}))
    assert progress.state().breaks == {}


def test_a_run_is_recorded_and_html_is_escaped() -> None:
    found = breaks.run("no-raw-replay", set(breaks.get("no-raw-replay").fails))
    assert isinstance(found, Outcome)
    assert found.right
    assert progress.state().breaks["no-raw-replay"].first_right
    evil = Outcome(found.broken, found.predicted, found.noticed, Run((scratch.Tested("t", "b", False, "", "<script>&"),)))
    assert "<script>" not in evil._repr_html_()
    assert "&lt;script&gt;&amp;" in evil._repr_html_()


def test_the_edit_is_shown_as_a_diff_before_the_guess() -> None:
    shown = repr(breaks.show("cache-left-out"))
    assert "-        input_tokens=None if fresh is None" in shown
    assert "+        input_tokens=fresh," in shown
    assert "No test notices." in shown
    assert breaks.get("cache-left-out").why not in shown


def test_hints_say_more_each_time_and_end_at_the_third() -> None:
    texts = [repr(breaks.hint("cache-left-out", number)) for number in (1, 2, 3, 9)]
    assert texts[2] == texts[3]
    assert len(set(texts)) == 3


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(KeyError, match="cache-left-out"):
        breaks.get("cache")


# ---------------------------------------------------------------- scratch copies


def test_a_text_that_is_not_there_once_cannot_be_replaced() -> None:
    with Scratch() as copy:
        with pytest.raises(ScratchError, match="0 times"):
            copy.replace("sse.py", "no such text", "")
        with pytest.raises(ScratchError, match="exactly once"):
            copy.replace("sse.py", "self", "")
        for outside in ("../pyproject.toml", "no_such_file.py"):
            with pytest.raises(ScratchError, match="no file"):
                copy.read(outside)


def test_code_that_does_not_import_gives_no_result_but_says_why() -> None:
    with Scratch() as copy:
        copy.write("sse.py", "this is no Python\n")
        run = copy.run()
    assert "SyntaxError" in run.trouble


def test_code_that_never_ends_is_given_up() -> None:
    with Scratch() as copy:
        copy.replace(
            "sse.py", "    def close(self) -> list[ServerSentEvent]:\n", "    def close(self):\n        while True: pass\n"
        )
        run = copy.run(time_limit=6)
    assert "did not end within 6 s" in run.trouble


# ---------------------------------------------------------------- tests of a learner's own


NOTICES_NOTHING = """
def test_something():
    assert fold("anthropic-messages", sse(*anthropic_events())).text
"""
RED_FOR_EVER = """
def test_something():
    assert fold("anthropic-messages", sse(*anthropic_events())).text == "what I wish"
"""
READS_THE_SOURCE = """
def test_something():
    import lessonlib.wire.base, hashlib, pathlib
    text = pathlib.Path(lessonlib.wire.base.__file__).read_text()
    assert len(text) == LENGTH and "IncompleteStream(f" in text
""".replace("LENGTH", str(len(scratch.source("wire/base.py"))))


@pytest.mark.parametrize(
    ("source", "belief"),
    [
        (NOTICES_NOTHING, "notices_nothing"),
        (RED_FOR_EVER, "fails_on_sound"),
        (READS_THE_SOURCE, "reads_the_source"),
        ("def test_something():\n    raise NotImplementedError\n", "not_written"),
        ("def test_something(: pass", "does_not_run"),
        ("def something(): pass", "does_not_run"),
    ],
)
def test_a_test_that_does_not_do_is_refused_and_told_why(source: str, belief: str) -> None:
    verdict = breaks.judge_test(breaks.get("end-of-body-is-the-end"), source)
    assert (verdict.accepted, verdict.belief) == (False, belief)
    assert len(verdict.message) > 20


def test_a_test_that_looks_for_words_of_the_source_is_refused() -> None:
    """It would notice this edit and no other that does the same."""
    broken = breaks.get("line-without-limit")
    edit = broken.edits[0]
    source = f"""
def test_something():
    import lessonlib, pathlib
    text = (pathlib.Path(lessonlib.__file__).parent / {edit.file!r}).read_text(encoding="utf-8")
    assert {edit.old!r} in text
"""
    assert breaks.judge_test(broken, source).belief == "reads_the_source"


@pytest.mark.parametrize("test", [42, len])
def test_what_has_no_source_is_no_test(test: object) -> None:
    assert breaks.write_test("end-of-body-is-the-end", test).belief == "does_not_run"  # type: ignore[arg-type]


def test_a_guess_that_is_no_collection_is_asked_again() -> None:
    assert "not among the choices" in repr(breaks.run("decode-per-read", 42))  # type: ignore[arg-type]


def test_an_accepted_test_is_recorded() -> None:
    broken = breaks.get("stop-wins-over-the-call")
    assert breaks.write_test(broken.name, broken.killing_test).accepted
    assert progress.state().breaks[broken.name].test


def test_nothing_is_no_test() -> None:
    assert breaks.write_test("end-of-body-is-the-end", None).belief == "not_written"
