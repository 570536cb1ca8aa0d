"""The pictures' data, apart from how they look; and that each is drawn the same way every time, without any warning."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import version
from itertools import pairwise

import pytest

from lessonlib.lab import Picture, plots, sdk_grid
from lessonlib.lab.plots import policies, tools, wire
from lessonlib.lab.virtual import REQUEST, Clock, Service
from lessonlib.types import Usage

ALL: dict[str, Callable[[], Picture]] = {
    "cut_character": plots.cut_character, "round_trip": plots.round_trip, "usage_bars": plots.usage_bars,
    "story": plots.story, "hourglass": plots.hourglass, "load": plots.load, "staircase": plots.staircase,
    "sieve": plots.sieve, "buckets": plots.buckets, "outage": plots.outage, "slots": plots.slots, "grid": plots.grid,
    "turns": plots.turns,
}  # fmt: skip


@cache
def drawn(name: str) -> tuple[Picture, bytes]:
    """A picture and its drawing; drawing is what takes time here."""
    picture = ALL[name]()
    return picture, picture.png()


# ---------------------------------------------------------------- all of them


def test_every_picture_of_the_course_is_tested() -> None:
    assert set(ALL) | {"diagram"} == set(plots.__all__)


@pytest.mark.parametrize("name", list(ALL))
def test_a_picture_is_the_same_each_time(name: str) -> None:
    pytest.importorskip("matplotlib")
    first, png = drawn(name)
    second = ALL[name]()
    assert (first.alt, first.table) == (second.alt, second.table)
    assert second.png() == png


def test_an_svg_is_the_same_each_time() -> None:
    pytest.importorskip("matplotlib")
    assert plots.sieve().svg() == plots.sieve().svg()


@pytest.mark.parametrize("name", list(ALL))
def test_a_picture_says_its_finding_in_a_sentence(name: str) -> None:
    picture, _ = drawn(name)
    assert picture.alt.endswith(".")
    assert 8 <= len(picture.alt.split()) <= 70
    assert picture.alt in repr(picture)
    assert picture.table.rows


@pytest.mark.parametrize("name", list(ALL))
def test_a_picture_is_small_and_has_no_text_outside_of_it(name: str) -> None:
    pytest.importorskip("matplotlib")
    picture, png = drawn(name)
    assert len(png) < 110_000
    figure = picture.figure()
    figure.canvas.draw()
    box = figure.bbox
    for axes in figure.axes:
        for text in axes.texts:
            where = text.get_window_extent()
            assert where.x0 >= box.x0 - 2, text.get_text()
            assert where.x1 <= box.x1 + 2, text.get_text()


@pytest.mark.parametrize("name", ["load", "staircase", "usage_bars", "buckets", "slots", "story"])
def test_series_differ_without_colour(name: str) -> None:
    """In grey, some pattern or line style still tells the series apart."""
    pytest.importorskip("matplotlib")
    figure = ALL[name]().figure()
    looks = {
        (patch.get_hatch(), patch.get_linestyle())
        for axes in figure.axes
        for patch in axes.patches
        if hasattr(patch, "get_hatch")
    } | {(line.get_linestyle(), line.get_marker()) for axes in figure.axes for line in axes.lines}
    assert len(looks) >= 2


def test_the_notebook_gets_the_drawing_with_its_alternative_text_and_the_finding_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("IPython")
    shown: list[tuple[dict[str, object], dict[str, object]]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata=None: shown.append((data, metadata or {})))
    picture = plots.outage()
    picture._ipython_display_()
    (drawing, about), (words, _) = shown
    assert drawing["image/png"] == picture.png()
    assert about["image/png"]["alt"] == picture.alt  # type: ignore[index]
    assert about["needs_background"] == "light"
    assert picture.alt in str(words["text/plain"])
    assert "<details>" in str(words["text/html"])


@pytest.mark.parametrize("name", list(ALL))
def test_the_title_is_drawn_and_says_a_finding(name: str) -> None:
    """No bare topic: a verb, or numbers that were counted."""
    pytest.importorskip("matplotlib")
    picture, _ = drawn(name)
    figure = picture.figure()
    figure.canvas.draw()
    title = figure.get_suptitle()
    assert title == picture.title
    assert 4 <= len(title.split()) <= 16
    assert figure.texts[0].get_window_extent().x1 <= figure.bbox.x1, "the title is cut off"


def test_a_title_follows_its_data() -> None:
    assert "overdrawn" in plots.buckets().title
    assert "overdrawn" not in plots.buckets((1_000, 1_000), (5.0, 20.0)).title
    assert plots.cut_character("北京", cut=3).title == "A cut between two characters costs nothing"
    assert plots.round_trip("anthropic").title.endswith("is refused")


def test_one_vendor_lets_the_user_say_a_tools_result() -> None:
    table = plots.turns().table
    results = [row for row in table.rows if "result" in row[3] or row[3].endswith("call_output")]
    assert [(row[0], row[2]) for row in results] == [
        ("OpenAI Responses", "-"),
        ("Gemini Interactions", "-"),
        ("Anthropic Messages", "user"),
    ]


def test_importing_the_pictures_draws_nothing() -> None:
    import subprocess
    import sys

    code = "import sys; from lessonlib.lab import plots; plots.load(clients=3); print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "False"


# ---------------------------------------------------------------- each by itself


def test_a_cut_inside_a_character_costs_it_and_a_cut_between_two_costs_nothing() -> None:
    for cut in range(1, 6):
        picture = plots.cut_character("北京", cut)
        assert ("\ufffd" in picture.alt) == (cut != 3), cut
        assert "北京" in picture.alt
    assert [row[3] for row in plots.cut_character("北京", 4).table.rows] == ["1", "1", "1", "1", "2", "2"]
    with pytest.raises(ValueError, match="between 1 and 5"):
        plots.cut_character("北京", 6)


@pytest.mark.parametrize("text", ["é€", "a🚲b", "مرحبا"])
def test_other_characters_are_drawn_without_a_warning(text: str) -> None:
    pytest.importorskip("matplotlib")
    assert plots.cut_character(text, 1).png()


def test_a_lost_reasoning_item_has_its_price() -> None:
    kept, lost = wire.trip("openai"), wire.trip("openai", reasoning=False)
    assert kept.returns("reasoning")
    assert not lost.returns("reasoning")
    assert lost.reasoning > kept.reasoning > 0
    assert f"{lost.reasoning - kept.reasoning} more" in plots.round_trip("openai").alt
    for vendor in ("anthropic", "gemini"):
        assert wire.trip(vendor, reasoning=False).refused
        assert "refuses" in plots.round_trip(vendor).alt


def test_one_request_is_counted_in_three_ways() -> None:
    rows = {row[0]: row[1:] for row in plots.usage_bars().table.rows}
    assert rows["anthropic-messages"] == ("input_tokens 30", "1,000", "1,030")
    assert rows["openai-responses"] == ("input_tokens 1,030", "1,000", "1,030")
    assert rows["gemini-interactions"] == ("total_input_tokens 1,030", "1,000", "1,030")


def test_parts_are_raw_at_home_and_rebuilt_or_lost_elsewhere() -> None:
    table = plots.hourglass().table
    for row in table.rows:
        for target, cell in zip(table.header[2:], row[2:], strict=True):
            home = target == f"to {row[0]}"
            assert cell == ("as it came" if home else "left behind" if row[1] == "reasoning" else "rebuilt")


def test_without_jitter_everybody_comes_back_at_once() -> None:
    picture = plots.load(clients=200, down=12.0)
    rows = {float(row[0]): (int(row[1]), int(row[2])) for row in picture.table.rows}
    assert {second for second, (plain, _) in rows.items() if plain} == {0.0, 1.0, 3.0, 7.0, 15.0}
    assert all(plain in (0, 200) for plain, _ in rows.values())
    assert max(spread for second, (_, spread) in rows.items() if second >= 2) <= 70
    assert sum(plain for plain, _ in rows.values()) == 200 * 5
    assert "at 1, 3, 7, 15 s" in picture.alt


def test_a_chain_asks_the_dead_service_every_time_and_a_breaker_does_not() -> None:
    rows = plots.outage(requests=1000, down=600.0).table.rows
    assert [row[1] for row in rows] == ["1,000", "24"]
    assert rows[1][2].startswith("0, 0.6, 1.2, 1.8, 2.4, 32.4")
    asked = policies._asked(100, 1.0, 100.0, cooldown=10.0)
    assert asked[:5] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [later - earlier for earlier, later in pairwise(asked[4:])] == [10.0] * (len(asked) - 5)


def test_tokens_run_out_while_requests_are_left() -> None:
    rows = plots.buckets().table.rows
    assert [row[2:4] for row in rows] == [("59", "18,000"), ("58", "6,000"), ("57", "-6,000")]
    assert [row[4] for row in rows] == ["5", "20", "65"]  # when the first request's minute is over
    assert [row[4] for row in plots.buckets(sizes=(1000, 1000), times=(0.0, 1.0)).table.rows] == ["0", "1"]


def test_each_step_sends_everything_before_it_again() -> None:
    rows = plots.staircase(steps=6).table.rows
    sent = [int(row[1].replace(",", "")) for row in rows]
    cached = [int(row[2].replace(",", "")) for row in rows]
    assert sent == sorted(set(sent))
    assert cached[0] == 0
    assert cached[1:] == sent[:-1]
    given = [Usage(input_tokens=10, cached_tokens=0), Usage(input_tokens=25, cached_tokens=10)]
    assert plots.staircase(given).table.rows == (("1", "10", "0", "10", "10"), ("2", "25", "10", "15", "35"))


def test_every_bad_call_stops_at_its_layer() -> None:
    stops = [row[2] for row in plots.sieve().table.rows]
    first, second, third, fourth = tools.LAYERS
    assert stops == ["none: it runs", first, first, second, third, third, third, fourth]


@pytest.mark.parametrize("name", list(tools.DIALECTS))
def test_two_calls_come_whole_out_of_every_dialect(name: str) -> None:
    places, calls = tools._slots(tools.DIALECTS[name])
    assert sorted(places) == [0, 0, 1, 1]
    assert [json.loads(call[call.index("(") + 1 : -1]) for call in calls] == [{"city": "Oslo"}, {"city": "Bergen"}]


def test_who_says_that_something_is_wrong() -> None:
    rows = {row[0]: row[1:] for row in plots.grid().table.rows}
    assert rows["cut in the text"] == ("ends, no error", "ends, no error", "ends, no error", "IncompleteStream")
    assert rows["an unknown event"] == ("goes on",) * 4
    assert "lessonlib 0" in plots.grid().alt


@pytest.mark.enable_socket
@pytest.mark.parametrize("client", [name for name in sdk_grid.CLIENTS if name != "lessonlib"])
def test_the_stored_grid_is_what_the_installed_packages_do(client: str) -> None:
    """Where another version is installed, the stored result is about something else: then it is time to measure again."""
    package = {"openai": "openai", "anthropic": "anthropic", "google-genai": "google.genai"}[client]
    pytest.importorskip(package, reason=f"{client} is not installed")
    stored = sdk_grid.stored()
    if version(client).split(".")[:2] != stored["versions"][client].split(".")[:2]:
        pytest.skip(f"measured with {client} {stored['versions'][client]}, installed is {version(client)}")
    vendor = sdk_grid.CLIENTS[client]
    for mishap, case in sdk_grid.MISHAPS.items():
        found = sdk_grid.outcome(sdk_grid.READERS[client], sdk_grid._body(vendor, case))
        assert found == stored["cells"][mishap][client], mishap


@pytest.mark.enable_socket
@pytest.mark.parametrize("vendor", ["openai", "anthropic", "gemini"])
def test_this_library_says_so_on_every_wire(vendor: str) -> None:
    for mishap, case in sdk_grid.MISHAPS.items():
        found = sdk_grid.outcome(partial(sdk_grid.read_ours, vendor), sdk_grid._body(vendor, case))
        assert found == sdk_grid.stored()["cells"][mishap]["lessonlib"], mishap


def test_the_played_service_is_down_as_long_as_it_is_told() -> None:
    from lessonlib.errors import APIError

    clock = Clock()
    service = Service("one", clock, down=lambda now: now < 2, takes=0.5)
    with pytest.raises(APIError):
        service.generate(REQUEST)
    assert clock.now == 0.5
    clock.sleep(2)
    assert service.generate(REQUEST).text == "Yes."
    assert service.asked == [0.0, 2.5]
    assert [event.response.text for event in service.stream(REQUEST)] == ["Yes."]  # type: ignore[union-attr]


def test_pngs_hold_no_date_and_no_software() -> None:
    pytest.importorskip("matplotlib")
    data = io.BytesIO(plots.sieve().png()).getvalue()
    assert b"tEXtSoftware" not in data
    assert b"tIME" not in data
