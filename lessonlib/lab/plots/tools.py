"""Pictures of tools: what a loop sends again (08), where bad calls stop (09), how a call is put together (12).

The steps are those of run_tools against the simulator, the checks those of lessonlib.tools, the slots those of the decoder
of Chat Completions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from lessonlib.errors import MaxSteps
from lessonlib.lab.page import Table, plain
from lessonlib.lab.stepper import Stepper
from lessonlib.lab.style import BLUE, GREEN, HATCHES, INK, ORANGE, PALE, RED, Picture, no_axes
from lessonlib.types import Message, Request, Usage
from lessonlib.wire.base import parse_args

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lessonlib.tool_loop import Step

# ---------------------------------------------------------------- 08 the staircase


def staircase(usages: Sequence[Usage] | None = None, *, vendor: str = "anthropic", steps: int = 6) -> Picture:
    """What each step of a tool loop sends: a bar per request, the cached part hatched. Without `usages`, those of a loop of
    so many steps against the simulator."""
    counted = list(usages) if usages is not None else loop_usages(vendor, steps)
    sent = [usage.input_tokens or 0 for usage in counted]
    cached = [usage.cached_tokens or 0 for usage in counted]
    rows = tuple(
        (f"{number}", f"{whole:,}", f"{part:,}", f"{whole - part:,}", f"{sum(sent[:number]):,}")
        for number, (whole, part) in enumerate(zip(sent, cached, strict=True), 1)
    )
    share = sum(cached) / max(1, sum(sent))
    alt = (
        f"Step 1 sends {sent[0]:,} tokens, step {len(sent)} sends {sent[-1]:,}; together {sum(sent):,}. "
        f"{share:.0%} of that is sent again and read from the cache."
    )

    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        places = range(1, len(sent) + 1)
        axes.bar(places, cached, width=0.86, color="#dbe6f3", hatch=HATCHES[1], edgecolor=INK, linewidth=0.8,
                 label="read from the cache")  # fmt: skip
        fresh = [whole - part for whole, part in zip(sent, cached, strict=True)]
        axes.bar(places, fresh, bottom=cached, width=0.86, color=ORANGE, edgecolor=INK, linewidth=0.8, label="new")
        for place, whole in zip(places, sent, strict=True):
            axes.annotate(f"{whole:,}", (place, whole), xytext=(0, 3), textcoords="offset points", ha="center")
        axes.set_xticks(list(places))
        axes.set_xlabel("step of the loop")
        axes.set_ylabel("input tokens")
        axes.set_ylim(0, max(sent) * 1.18)
        axes.legend(loc="upper left")

    header = ("step", "sent", "cached", "new", "sent in all")
    title = f"Each step sends everything again: {sum(sent):,} tokens in {len(sent)} steps"
    return Picture(title, alt, Table(header, rows), draw)


def loop_usages(vendor: str, steps: int) -> list[Usage]:
    """The usage of each step of a loop that does not end by itself, against the simulator."""
    from lessonlib.lab.offline import client
    from lessonlib.tool_loop import run_tools

    def next_train(origin: str, to: str) -> str:
        """The next train between two cities."""
        return f"The next train from {origin} to {to} leaves at 18:40 from platform 4 and takes five hours and ten minutes."

    usages: list[Usage] = []

    def note(step: Step) -> None:
        if step.response.usage is not None:
            usages.append(step.response.usage)

    request = Request(
        messages=[Message.user("Find the next train from Bergen to Oslo, and never stop looking.")],
        system="You are Desk, the assistant of a small travel agency. " * 4,
        extra={"anthropic-messages": {"cache_control": {"type": "ephemeral"}}},  # the others cache without being told
    )
    with suppress(MaxSteps):  # so many steps are what was wanted
        run_tools(client(vendor), request, [next_train], max_steps=steps, on_step=note, max_repeats=None)
    return usages


# ---------------------------------------------------------------- 09 the sieve

LAYERS = ("an object of JSON", "a tool that was offered", "the arguments that it takes", "a value that makes sense")

CALLS: tuple[tuple[str, str], ...] = (
    ("get_weather", '{"city": "Oslo"}'),
    ("refund", '{"booking": "L-204", "amount": 1'),
    ("get_weather", '{city: Oslo}'),
    ("delete_all_bookings", "{}"),
    ("hold_seat", '{"train": "IC 41", "seat": "window"}'),
    ("refund", '{"booking": "L-204", "amount": "ten"}'),
    ("refund", '{"booking": "L-204", "amount": -3}'),
    ("refund", '{"booking": "L-999", "amount": 50}'),
)  # fmt: skip
"""Eight calls, as a model wrote them: a name and a text."""

KNOWN_BOOKINGS = ("L-204", "L-377")


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def hold_seat(train: str) -> str:
    """Holds a seat on a train."""
    return f"a seat on {train} is held"


def refund(booking: str, amount: Annotated[int, Field(ge=1, le=500)]) -> str:
    """Pays back an amount for a booking."""
    if booking not in KNOWN_BOOKINGS:
        raise LookupError(f"there is no booking {booking}")
    return f"{amount} paid back for {booking}"


def sieve(
    calls: Sequence[tuple[str, str]] = CALLS, tools: Sequence[Callable[..., Any]] = (get_weather, hold_seat, refund)
) -> Picture:
    """Four checks, one behind the other, and where each call stops. calls: (name, arguments as text)."""
    offered = {function.__name__: function for function in tools}
    stops = [_stop(name, text, offered) for name, text in calls]
    rows = tuple(
        (f"{number}", f"{name}({text})", LAYERS[layer] if layer < len(LAYERS) else "none: it runs", why)
        for number, ((name, text), (layer, why)) in enumerate(zip(calls, stops, strict=True), 1)
    )
    counts = [sum(layer == place for layer, _ in stops) for place in range(len(LAYERS) + 1)]
    held = ", ".join(f"{count} at “{name}”" for name, count in zip(LAYERS, counts, strict=False))
    alt = f"Of {len(calls)} calls {counts[-1]} {'runs' if counts[-1] == 1 else 'run'}; stopped: {held}."

    def draw(figure: Figure) -> None:
        axes = no_axes(figure, len(calls) + 3.2, 5.6)
        for place, name in enumerate(LAYERS):
            y = place + 1
            axes.plot([0.4, len(calls) + 0.6], [y, y], color=INK, linewidth=5, linestyle=(0, (1.2, 0.5)))
            axes.text(len(calls) + 0.8, y, name, va="center")
        axes.text(len(calls) + 0.8, 5.15, "runs", va="center", fontweight="bold")
        for number, (layer, _) in enumerate(stops, 1):
            runs = layer == len(LAYERS)
            end = 5.0 if runs else layer + 0.78
            axes.plot([number, number], [0.3, end], color=PALE, linewidth=1.2, linestyle=":")
            marker, colour = ("v", GREEN) if runs else ("X", RED)
            axes.plot([number], [end], marker=marker, color=colour, markeredgecolor=INK, markersize=10)
            axes.text(number, 0.12, f"{number}", ha="center", va="center", fontweight="bold")

    table = Table(("call", "as the model wrote it", "stops at", "why"), rows)
    title = f"Of {len(calls)} calls {counts[-1]} {'runs' if counts[-1] == 1 else 'run'}; each layer stops some"
    return Picture(title, alt, table, draw, (7.6, 3.0))


def _stop(name: str, text: str, offered: Mapping[str, Callable[..., Any]]) -> tuple[int, str]:
    """The number of the layer that holds a call, and why; behind the last one it runs."""
    from lessonlib.tools import CallFault, bind, unknown_tool

    arguments, problem = parse_args(text)
    if arguments is None:
        return 0, plain(problem or "", 60)
    if name not in offered:
        return 1, str(unknown_tool(name, offered))
    try:
        bound = bind(offered[name], arguments)
    except CallFault as fault:
        return 2, plain(str(fault), 60)
    try:
        return len(LAYERS), str(offered[name](*bound.args, **bound.kwargs))
    except (LookupError, ValueError) as fault:
        return 3, str(fault).strip("'\"")


# ---------------------------------------------------------------- 12 slots


def _piece(text: str, **fields: Any) -> dict[str, Any]:
    """One entry of `delta.tool_calls`."""
    name, index, call_id = fields.get("name"), fields.get("index"), fields.get("id")
    function = {**({"name": name} if name else {}), "arguments": text}
    head = {**({"index": index} if index is not None else {}), **({"id": call_id} if call_id else {})}
    return {**head, **({"type": "function"} if call_id else {}), "function": function}


DIALECTS: dict[str, tuple[dict[str, Any], ...]] = {
    "an index on every piece": (
        _piece("", index=0, id="c1", name="get_weather"), _piece('{"city":"Oslo"}', index=0),
        _piece("", index=1, id="c2", name="get_weather"), _piece('{"city":"Bergen"}', index=1),
    ),
    "index 0 for every call": (
        _piece("", index=0, id="c1", name="get_weather"), _piece('{"city":"Oslo"}', index=0),
        _piece("", index=0, id="c2", name="get_weather"), _piece('{"city":"Bergen"}', index=0),
    ),
    "no index, the id on every piece": (
        _piece('{"city":', id="c1", name="get_weather"), _piece('{"city":', id="c2", name="get_weather"),
        _piece('"Oslo"}', id="c1"), _piece('"Bergen"}', id="c2"),
    ),
    "neither after the first piece": (
        _piece("", id="c1", name="get_weather"), _piece('{"city":"Oslo"}'),
        _piece("", id="c2", name="get_weather"), _piece('{"city":"Bergen"}'),
    ),
}  # fmt: skip
"""The pieces of two calls, as four kinds of service send them."""


def slots(dialects: Mapping[str, Sequence[Mapping[str, Any]]] | None = None) -> Picture:
    """Into which slot the decoder puts each piece of a call. dialects: name -> the entries of `delta.tool_calls`, one for
    each chunk."""
    dialects = dialects or DIALECTS
    placed = {name: _slots(pieces) for name, pieces in dialects.items()}
    rows = []
    for name, pieces in dialects.items():
        for number, (piece, slot) in enumerate(zip(pieces, placed[name][0], strict=True), 1):
            rows.append((name, f"{number}", _told(piece), f"{slot + 1}"))
    whole = {name: ", ".join(calls) for name, (_, calls) in placed.items()}
    same = len(set(whole.values())) == 1
    alt = (
        f"{len(dialects)} ways to send two calls end in the same two slots: {next(iter(whole.values()))}."
        if same
        else "The dialects end in different calls: " + "; ".join(f"{name}: {calls}" for name, calls in whole.items())
    )

    def draw(figure: Figure) -> None:
        axes = no_axes(figure, 10.6, 1.35 * len(dialects) + 0.1)
        for row, (name, pieces) in enumerate(dialects.items()):
            top = 1.35 * row + 0.35
            axes.text(0, top - 0.12, name, fontweight="bold")
            for number, (piece, slot) in enumerate(zip(pieces, placed[name][0], strict=True)):
                x = number * 2.7
                axes.add_patch(_box(x, top, 2.5, 0.78, (BLUE, ORANGE)[slot % 2], HATCHES[2 * (slot % 2)]))
                axes.text(x + 0.1, top + 0.26, f"slot {slot + 1}", fontweight="bold", va="center", bbox=_LABEL)
                axes.text(x + 0.1, top + 0.57, _told(piece), va="center", fontsize=7, family="DejaVu Sans Mono", bbox=_LABEL)

    table = Table(("dialect", "piece", "what it says", "slot"), tuple(rows))
    title = f"{len(dialects)} dialects, {'the same calls' if same else 'different calls'} in the end"
    return Picture(title, alt, table, draw, (8.6, 1.1 * len(dialects)))


_LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}


def _box(x: float, y: float, width: float, height: float, colour: str, hatch: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=colour, alpha=0.35, hatch=hatch, edgecolor=INK, linewidth=0.8)


def _told(piece: Mapping[str, Any]) -> str:
    """What a piece says, short."""
    words = [f"{key} {piece[key]}" for key in ("index", "id") if key in piece]
    function = piece["function"]
    text = function.get("arguments", "")
    return "; ".join([*words, *([function["name"]] if "name" in function else []), *([text] if text else [])])


def _slots(pieces: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[str]]:
    """The slot of each piece, by what changed in the decoder, and the calls in the end."""
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"tool_calls": [dict(piece)]}}]} for piece in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    walk = Stepper([*chunks, b"[DONE]"], wire="openai-chat")
    places: list[int] = []
    before: list[str] = []
    for number in range(1, len(pieces) + 1):
        now = [f"{part.name}{part.text}" for part in walk.moment(number).parts]
        places.append(next(place for place, text in enumerate(now) if place >= len(before) or before[place] != text))
        before = now
    calls = [f"{part.name}({part.text})" for part in walk.moment(len(walk)).parts]
    return places, calls
