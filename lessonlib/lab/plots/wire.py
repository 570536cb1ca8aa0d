"""Pictures of the wire: a cut character (01), a round trip (02), usage (03), lanes (04), the hourglass (05), clients (13).

What is drawn comes from the codec, from the encoders and decoders, and from the simulator's answers.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lessonlib.errors import APIError
from lessonlib.lab import sdk_grid
from lessonlib.lab.alignment import GAP, NOTHING, Lanes, lanes
from lessonlib.lab.course import MODELS, WIRE_OF
from lessonlib.lab.page import Table, plain
from lessonlib.lab.style import BLUE, GREEN, HATCHES, INK, PALE, RED, Picture, no_axes
from lessonlib.types import JSON, Message, Part, Reasoning, Request, Response, Text, Tool, ToolCall, ToolResult, Usage
from lessonlib.wire import WIRES, WireFormat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "openai-responses": "OpenAI Responses",
    "anthropic-messages": "Anthropic Messages",
    "gemini-interactions": "Gemini Interactions",
    "openai-chat": "Chat Completions",
    "gemini-generate-content": "generateContent",
}

WEATHER = Tool(
    name="get_weather", description="Weather of a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
                "additionalProperties": False},
)  # fmt: skip

# ---------------------------------------------------------------- 01 a cut character


def cut_character(text: str = "北京", cut: int = 4) -> Picture:
    """The bytes of a word, cut after `cut` of them, and two readings: each read decoded for itself, and both in one."""
    data = text.encode("utf-8")
    if not 0 < cut < len(data):
        raise ValueError(f"the cut must be between 1 and {len(data) - 1}")
    reads = (data[:cut], data[cut:])
    apart = "".join(read.decode("utf-8", "replace") for read in reads)
    decoder = codecs.getincrementaldecoder("utf-8")()
    together = decoder.decode(reads[0]) + decoder.decode(reads[1], final=True)
    owners = [place for place, character in enumerate(text) for _ in character.encode("utf-8")]
    in_read = [1 if number < cut else 2 for number in range(len(data))]
    cells = zip(data, owners, in_read, strict=True)
    rows = tuple((f"{at}", f"{byte:02X}", text[owner], f"{read}") for at, (byte, owner, read) in enumerate(cells))
    inside = owners[cut - 1] == owners[cut]
    lost = apart.count("\ufffd")
    alt = (
        f"A read ends after byte {cut} of {len(data)}, inside {text[owners[cut]]}. Decoded read by read the text becomes "
        f"{apart}, with {lost} replacement signs; decoded over both reads it stays {together}."
        if inside
        else f"A read ends after byte {cut} of {len(data)}, between two characters: both ways give {together}."
    )

    readings = (("decoded read by read", apart), ("decoded over both reads", together))
    draw = partial(_draw_cut, text, owners, cut, readings)
    title = (
        f"A cut inside a character makes {lost} wrong signs of it"
        if inside
        else "A cut between two characters costs nothing"
    )
    return Picture(title, alt, Table(("byte", "value", "character", "read"), rows), draw, (7.2, 3.3))


def _draw_cut(text: str, owners: Sequence[int], cut: int, readings: Sequence[tuple[str, str]], figure: Figure) -> None:
    """owners: the place of the character that each byte belongs to."""
    axes = no_axes(figure, len(owners) + 4.6, 4.3)
    for number, byte in enumerate(text.encode("utf-8")):
        x, owner = number + (0.85 if number >= cut else 0.35), owners[number]
        _rectangle(axes, x, 1.25, 0.92, 0.7, ("#dbe6f3", "#fbe7cc")[owner % 2], HATCHES[owner % 2])
        axes.text(x + 0.46, 1.6, f"{byte:02X}", family="DejaVu Sans Mono", **_MIDDLE)
    for place, character in enumerate(text):
        columns = [number for number, owner in enumerate(owners) if owner == place]
        _character(axes, character, sum(columns) / len(columns) + 0.71, 0.25, 0.8)
    axes.plot([cut + 0.57] * 2, [0.95, 2.3], color=RED, linewidth=2, linestyle="--")
    axes.text(cut + 0.57, 2.42, "the read ends here", ha="center", va="top", color=RED)
    for row, (name, reading) in enumerate(readings):
        y = 3.0 + 0.68 * row
        axes.text(0.4, y + 0.25, name, va="center")
        for place, character in enumerate(reading):
            _character(axes, character, 4.4 + 0.75 * place, y, 0.55)


_LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "bbox": _LABEL}

_STROKES: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    "北": (
        ((0.38, 0.06), (0.38, 0.94)), ((0.10, 0.34), (0.38, 0.34)), ((0.05, 0.80), (0.38, 0.66)),
        ((0.92, 0.24), (0.62, 0.46)), ((0.62, 0.06), (0.62, 0.80), (0.68, 0.88), (0.90, 0.88), (0.94, 0.70)),
    ),
    "京": (
        ((0.46, 0.02), (0.54, 0.13)), ((0.07, 0.20), (0.93, 0.20)),
        ((0.25, 0.55), (0.25, 0.34), (0.75, 0.34), (0.75, 0.55), (0.25, 0.55)),
        ((0.50, 0.55), (0.50, 0.95), (0.41, 0.90)), ((0.30, 0.68), (0.14, 0.88)), ((0.68, 0.68), (0.86, 0.88)),
    ),
}  # fmt: skip
"""The strokes of two characters, because matplotlib's own font has no Chinese ones. Others are drawn from the font."""


def _character(axes: Axes, character: str, x: float, y: float, size: float) -> None:
    """One character in a square whose upper left corner is (x, y)."""
    strokes = _STROKES.get(character)
    for stroke in strokes or ():
        axes.plot([x + size * point[0] for point in stroke], [y + size * point[1] for point in stroke], color=INK,
                  linewidth=size * 2.6, solid_capstyle="round", solid_joinstyle="round")  # fmt: skip
    if strokes is None:
        shown = character if ord(character) < 0x2E80 or character == "\ufffd" else f"U+{ord(character):X}"
        axes.text(x + size / 2, y + size / 2, shown, ha="center", va="center", fontsize=size * 28 if len(shown) == 1 else 7)


def _rectangle(
    axes: Axes, x: float, y: float, width: float, height: float, colour: str, hatch: str = "", **more: Any
) -> None:
    from matplotlib.patches import Rectangle

    settings = {"edgecolor": INK, "linewidth": 0.8, **more}
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, hatch=hatch, **settings))


# ---------------------------------------------------------------- 02 a round trip


@dataclass(frozen=True)
class Trip:
    """A tool round trip on one wire: the types of the answer's items, and of those in the second request.

    reasoning: how many tokens the second answer thought. refused: the service's words, if there was no second answer.
    """

    answer: list[str]
    request: list[str]
    reasoning: int = 0
    refused: str = ""

    def returns(self, kind: str) -> bool:
        """Whether an item of that type travels back."""
        return kind in self.request


def round_trip(vendor: str = "openai") -> Picture:
    """The answer's items and the second request's, with arrows for what travels back; and the price of a lost reasoning
    item, which is measured: the same second request without it, asked of the simulator."""
    kept, lost = trip(vendor), trip(vendor, reasoning=False)
    said = {True: "yes", False: "no"}
    rows = tuple(
        (f"{number}", kind, said[kept.returns(kind)], said[lost.returns(kind)]) for number, kind in enumerate(kept.answer, 1)
    )
    more = lost.reasoning - kept.reasoning
    price = f"400: {plain(lost.refused, 60)}" if lost.refused else f"+{more} reasoning tokens"
    alt = f"All {len(kept.answer)} items of the answer travel back in the second request. " + (
        f"Without the reasoning item the service refuses it: {lost.refused}"
        if lost.refused
        else f"The next answer thinks {kept.reasoning} tokens; without the reasoning item it thinks {lost.reasoning}, "
        f"{more} more, and no error says so."
    )

    def draw(figure: Figure) -> None:
        axes = no_axes(figure, 12, max(len(kept.answer), len(kept.request)) + 1.0)
        axes.text(0.2, 0.45, "answer 1", fontweight="bold")
        axes.text(7.6, 0.45, "request 2", fontweight="bold")
        for x, width, kinds, colour in ((0.2, 3.6, kept.answer, "#dbe6f3"), (7.6, 4.2, kept.request, "#f3f3f3")):
            for number, kind in enumerate(kinds):
                _rectangle(axes, x, number + 0.8, width, 0.66, colour)
                axes.text(x + width / 2, number + 1.13, kind, ha="center", va="center")
        for number, kind in enumerate(kept.answer):
            end = kept.request.index(kind) if kept.returns(kind) else number
            _travels(axes, number + 1.13, end + 1.13, "" if lost.returns(kind) else f"if it is lost:\n{price}")

    table = Table(("item", "type", "travels back", "when reasoning is dropped"), rows)
    cost = "request 2 is refused" if lost.refused else f"answer 2 thinks {more} tokens more"
    title = f"All {len(kept.answer)} items go back; without the reasoning {cost}"
    return Picture(title, alt, table, draw, (7.6, 3.0))


def _travels(axes: Axes, start: float, end: float, price: str) -> None:
    """An arrow from the answer to the request; a cut one with its price."""
    colour, line = (RED, "--") if price else (INK, "-")
    arrow = {"arrowstyle": "-|>", "color": colour, "linestyle": line, "linewidth": 1.5}
    axes.annotate("", (7.55, end), (3.85, start), arrowprops=arrow)
    if price:
        tag = {**_MIDDLE, "bbox": {"facecolor": "white", "edgecolor": RED, "pad": 2.0}}
        axes.text(5.7, (start + end) / 2, price, color=RED, **tag)


def trip(vendor: str, *, reasoning: bool = True) -> Trip:
    """A question with a tool, and the request that brings the result, against the simulator. reasoning: whether the answer
    goes back as it came; if not, then as a tidy history holds it, rebuilt from clean fields and without the reasoning."""
    from lessonlib.lab.offline import client

    provider = client(vendor)
    first = Request(messages=[Message.user("What is the weather in Beijing (北京)?")], tools=[WEATHER], reasoning="low")
    answer = provider.generate(first)
    parts: list[Part] = list(answer.message.parts)
    if not reasoning:
        parts = [part.model_copy(update={"raw": None}) for part in parts if not isinstance(part, Reasoning)]
    results: list[Part] = [ToolResult(call_id=call.call_id, content="sunny, 25 °C") for call in answer.tool_calls]
    turns = [Message(role="assistant", parts=parts), Message(role="user", parts=results)]
    second = first.replace(messages=[*first.messages, *turns])
    got, sent = _kinds(_entries(answer.raw)), _kinds(_entries(provider.wire.encode(second).body))
    try:
        usage = provider.generate(second).usage or Usage()
    except APIError as error:
        return Trip(got, sent, refused=error.message)
    return Trip(got, sent, reasoning=usage.reasoning_tokens or 0)


def _entries(body: JSON) -> list[JSON]:
    """The list that a request or an answer is made of."""
    return next(
        body[name] for name in ("output", "input", "steps", "content", "messages") if isinstance(body.get(name), list)
    )


def _kinds(items: list[JSON]) -> list[str]:
    """The types of the items; of Anthropic's messages those of their blocks."""
    blocks = [block for item in items for block in (item["content"] if _is_message(item) else [item])]
    return [str(block.get("type") or {"assistant": "message"}.get(block["role"], block["role"])) for block in blocks]


def _is_message(item: JSON) -> bool:
    return "role" in item and "type" not in item and isinstance(item.get("content"), list)


# ---------------------------------------------------------------- 03 usage

FIELDS = {
    "openai-responses": "input_tokens", "anthropic-messages": "input_tokens", "gemini-interactions": "total_input_tokens",
    "openai-chat": "prompt_tokens", "gemini-generate-content": "promptTokenCount",
}  # fmt: skip
"""The field that looks like the whole input, by wire format."""


def usage_bars(bodies: Mapping[str, JSON] | None = None) -> Picture:
    """One request as each vendor counts it: what the field that looks like the input says, and what really was read. bodies:
    whole answers by vendor; without them, the simulator's to a request whose long beginning it has just seen."""
    bodies = bodies if bodies is not None else cached_bodies()
    rows = [_usage_row(WIRE_OF.get(vendor, vendor), body) for vendor, body in bodies.items()]
    missing = [row for row in rows if row.total > row.told]
    sentences = [f"{TITLES[row.wire]} says {row.told:,} where {row.total:,} were read: {row.total - row.told:,} stand in "
                 "another field, because they came from the cache." for row in missing]  # fmt: skip
    others = [f"{TITLES[row.wire]} says {row.told:,}" for row in rows if row not in missing]
    if others:
        sentences.append(f"{', '.join(others)}, the cache included.")
    cells = tuple((row.wire, f"{FIELDS[row.wire]} {row.told:,}", f"{row.cached:,}", f"{row.total:,}") for row in rows)

    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        for place, row in enumerate(rows):
            inside = min(row.cached, row.told) if row not in missing else 0
            axes.barh(place, inside, color="#dbe6f3", hatch=HATCHES[1], edgecolor=INK, height=0.6)
            axes.barh(place, row.told - inside, left=inside, color=BLUE, edgecolor=INK, height=0.6)
            if row in missing:
                gap = row.total - row.told
                axes.barh(place, gap, left=row.told, color="white", edgecolor=RED, linestyle="--", linewidth=1.6, height=0.6)
                axes.text(row.told + gap / 2, place, f"{gap:,} in another field", color=RED, **_MIDDLE)
            axes.text(row.total, place, f"  {FIELDS[row.wire]} = {row.told:,}", va="center")
        axes.set_yticks(range(len(rows)), [TITLES[row.wire] for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, max(row.total for row in rows) * 1.45)
        axes.set_xlabel("input tokens of the same request; striped: read from the cache")

    table = Table(("wire", "the field says", "of it or beside it cached", "read in all"), cells)
    said = [f"{TITLES[row.wire]} says {row.told:,} of {row.total:,}" for row in missing]
    title = f"One request, {len(rows)} ways to count: {', '.join(said) or 'all say the same'}"
    return Picture(title, " ".join(sentences), table, draw, (7.6, 2.5))


HANDBOOK = (
    "You are Desk, the assistant of Lanternway, a small travel agency. You know the trains, the hotels and the weather. "
    * 38
    + "Answer in three short sentences at most."
)
"""A system prompt of a thousand tokens."""

QUESTION = (
    "And what will the weather be like in Oslo on Saturday, and should we take the night train or the early one on Sunday?"
)


@dataclass(frozen=True)
class _Counted:
    wire: str
    told: int
    cached: int
    total: int


def _usage_row(wire: str, body: JSON) -> _Counted:
    usage = _wire(wire).decode(body).usage or Usage()
    return _Counted(wire, int(usage.raw.get(FIELDS[wire]) or 0), usage.cached_tokens or 0, usage.input_tokens or 0)


def cached_bodies(vendors: Sequence[str] = ("openai", "anthropic", "gemini")) -> dict[str, JSON]:
    """Each vendor's answer to a question behind a system prompt that it has just seen. Anthropic is told to cache it, the
    others do so unasked."""
    from lessonlib.lab.offline import ask
    from lessonlib.sim import Simulator

    marked = [{"type": "text", "text": HANDBOOK, "cache_control": {"type": "ephemeral"}}]
    first = Request(messages=[Message.user("Hello.")], system=HANDBOOK, extra={"anthropic-messages": {"system": marked}})
    second = first.replace(messages=[Message.user(QUESTION)])
    bodies = {}
    for vendor in vendors:
        sim = Simulator()
        ask(vendor, first, sim)
        bodies[vendor] = ask(vendor, second, sim)
    return bodies


def _wire(name: str) -> WireFormat:
    return WIRES[name](MODELS[name], api_key="", base_url=WIRES[name].default_base_url)


# ---------------------------------------------------------------- 04 lanes


def story(found: Lanes | str = "tool_call") -> Picture:
    """Streams as lanes of the same story: a box where a vendor says something, a gap where not."""
    found = lanes(found) if isinstance(found, str) else found
    rows = [row for row in found.rows if row != NOTHING]
    gaps = [(row, wire) for row, wire in found.gaps() if row != NOTHING]
    alt = (
        f"{len(found.lanes)} streams tell the same story in {len(rows)} moments. "
        + (f"{len(gaps)} places are empty: " + ", ".join(f"{wire} has no “{row}”" for row, wire in gaps[:4]) + "."
           if gaps else "No place is empty.")
    )  # fmt: skip

    def draw(figure: Figure) -> None:
        width = 1.0 * len(rows) + 2.2
        axes = no_axes(figure, width, len(found.lanes) * 1.15 + 1.9)
        for column, row in enumerate(rows):
            axes.text(column + 2.6, 1.7, row, rotation=40, ha="left", va="bottom", fontsize=8)
        for number, lane in enumerate(found.lanes):
            y = 1.85 + 1.15 * number
            axes.plot([2.1, width], [y + 0.42] * 2, color=PALE, linewidth=1, zorder=0)
            axes.text(0, y + 0.42, TITLES[lane.wire].replace(" ", "\n"), va="center", fontsize=8.5)
            for column, row in enumerate(rows):
                beat = lane.beats.get(row)
                if beat is None:
                    _rectangle(axes, column + 2.2, y, 0.82, 0.84, "white", edgecolor=RED, linestyle=":", linewidth=1.3)
                    axes.text(column + 2.61, y + 0.42, "gap", ha="center", va="center", color=RED, fontsize=8)
                    continue
                _rectangle(axes, column + 2.2, y, 0.82, 0.84, "#dbe6f3", HATCHES[1] if row.startswith("calls") else "")
                count = f"×{len(beat.steps)}" if len(beat.steps) > 1 else "1"
                axes.text(column + 2.61, y + 0.42, count, fontsize=8.5, **_MIDDLE)

    table = Table(("moment", *(lane.wire for lane in found.lanes)), tuple(
        (row, *(lane.beats[row].words if row in lane.beats else GAP for lane in found.lanes)) for row in rows
    ))  # fmt: skip
    title = f"{len(found.lanes)} streams, one story, {len(gaps) or 'no'} gap{'' if len(gaps) == 1 else 's'}"
    return Picture(title, alt, table, draw, (9.0, 3.1))


# ---------------------------------------------------------------- 05 the hourglass

FATES = ("as it came", "rebuilt", "left behind")


def fates(vendors: Sequence[str] = ("openai", "anthropic", "gemini")) -> Table:
    """What becomes of each part of an answer when it is sent back, to its own wire format and to others; by encoding."""
    answers = {vendor: _tool_answer(vendor) for vendor in vendors}
    rows = []
    for source, answer in answers.items():
        for part in answer.message.parts:
            cells = [_fate(answer.message, part, WIRE_OF[target]) for target in vendors]
            rows.append((TITLES[WIRE_OF[source]], part.type, *cells))
    return Table(("from", "part", *(f"to {TITLES[WIRE_OF[vendor]]}" for vendor in vendors)), tuple(rows))


def hourglass(vendors: Sequence[str] = ("openai", "anthropic", "gemini")) -> Picture:
    """The small model between the wires: what passes through its waist, and the lanes of raw JSON that pass it by."""
    table = fates(vendors)
    names = [TITLES[WIRE_OF[vendor]] for vendor in vendors]
    cells = [(row[0] == name, row[1], cell) for row in table.rows for name, cell in zip(names, row[2:], strict=True)]
    own = [cell for same, _, cell in cells if same]
    cross = [(part, cell) for same, part, cell in cells if not same]
    passing = sorted({part for part, cell in cross if cell == "rebuilt"})
    staying = sorted({part for part, cell in cross if cell == "left behind"})
    alt = (
        f"To its own wire format every part goes back as it came ({own.count('as it came')} of {len(own)}). To another one "
        f"{' and '.join(passing)} are rebuilt through the waist, and {' and '.join(staying)} stays behind."
    )

    def draw(figure: Figure) -> None:
        axes = no_axes(figure, 12, 7)
        centres = [2.0 + 4.0 * number for number in range(len(names))]
        for centre, name in zip(centres, names, strict=True):
            for top in (0.3, 5.9):
                _rectangle(axes, centre - 1.7, top, 3.4, 0.8, "#dbe6f3")
                axes.text(centre, top + 0.4, name, ha="center", va="center")
            axes.plot([centre, 6.0], [1.1, 3.0], color=INK, linewidth=1.4)
            axes.annotate("", (centre, 5.9), (6.0, 4.0), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.4})
        for centre, bend in zip(centres, (-1.0, 0.0, 1.0), strict=False):
            raw = [centre, centre + bend * 0.9 if bend else centre + 2.3, centre]
            axes.plot([raw[0], raw[1], raw[1]], [1.1, 2.2, 4.8], color=GREEN, linewidth=2.4, linestyle="--")
            axes.annotate("", (raw[2], 5.9), (raw[1], 4.8),
                          arrowprops={"arrowstyle": "-|>", "color": GREEN, "linewidth": 2.4, "linestyle": "--"})  # fmt: skip
            axes.text(raw[1], 3.5, "raw", ha="center", va="center", color=GREEN, bbox=_LABEL, fontsize=8.5)
        _rectangle(axes, 4.3, 3.0, 3.4, 1.0, "#fbe7cc", HATCHES[0], linewidth=2)
        axes.text(6.0, 3.5, "text, calls, results", ha="center", va="center", fontweight="bold")

    title = f"To the same wire as it came; to another one only {' and '.join(passing)}"
    return Picture(title, alt, table, draw, (7.6, 3.9))


def _tool_answer(vendor: str) -> Response:
    from lessonlib.lab.offline import client

    request = Request(messages=[Message.user("What is the weather in Beijing?")], tools=[WEATHER], reasoning="low")
    return client(vendor).generate(request)


def _fate(message: Message, part: Part, wire: str) -> str:
    """What the encoder of `wire` does with a part of this message."""
    with_it = _encoded(message.parts, wire)
    without = _encoded([other for other in message.parts if other is not part], wire)
    if with_it == without:
        return "left behind"
    return "as it came" if part.raw_for(wire) is not None else "rebuilt"


def _encoded(parts: Sequence[Part], wire: str) -> JSON:
    history = [Message.user("What is the weather in Beijing?")]
    if parts:
        results: list[Part] = [
            ToolResult(call_id=part.call_id, content="sunny") for part in parts if isinstance(part, ToolCall)
        ]
        history += [
            Message(role="assistant", parts=list(parts)),
            Message(role="user", parts=results or [Text(text="Go on.")]),
        ]
    return _wire(wire).encode(Request(messages=history, tools=[WEATHER])).body


# ---------------------------------------------------------------- 13 four clients


def grid(measured: JSON | None = None) -> Picture:
    """Four clients, five mishaps: who says that something is wrong. measured: a result of `sdk_grid.measure()`, taken now;
    without it the stored one, with its date."""
    found = measured if measured is not None else sdk_grid.stored()
    cells: dict[str, dict[str, str | None]] = found["cells"]
    rows = tuple((mishap, *(_verdict(mishap, row[client]) for client in sdk_grid.CLIENTS)) for mishap, row in cells.items())
    silent = {
        client: [mishap for mishap, row in cells.items() if sdk_grid.MUST_FAIL[mishap] and row[client] is None]
        for client in sdk_grid.CLIENTS
    }
    told = "; ".join(f"{client} {len(missed)}" for client, missed in silent.items())
    shared = [
        mishap for mishap in cells if all(mishap in silent[client] for client in sdk_grid.CLIENTS if client != "lessonlib")
    ]
    alt = (
        f"Of {sum(sdk_grid.MUST_FAIL.values())} faults the plain loop ends without a word on so many: {told}. "
        f"The three packages all say nothing about: {', '.join(shared) or 'none of them'}."
    )

    def draw(figure: Figure) -> None:
        axes = no_axes(figure, 12.4, len(rows) + 1.0)
        for column, client in enumerate(sdk_grid.CLIENTS):
            axes.text(4.6 + 2.1 * column, 0.5, client, ha="center", va="center", fontweight="bold")
        for number, row in enumerate(rows):
            axes.text(3.4, number + 1.4, row[0], ha="right", va="center")
            for column, words in enumerate(row[1:]):
                bad = words == SILENT
                shade, hatch = ("#f6dcdb", HATCHES[1]) if bad else ("#eaf5ec", "")
                _rectangle(axes, 3.6 + 2.1 * column, number + 1.0, 2.0, 0.8, shade, hatch)
                axes.text(4.6 + 2.1 * column, number + 1.4, words, fontsize=7.5, **_MIDDLE)

    versions = ", ".join(f"{name} {number}" for name, number in found.get("versions", {}).items())
    when = f", {found['checked']}" if "checked" in found else ""
    table = Table(("mishap", *sdk_grid.CLIENTS), rows, notes=(f"measured with {versions}{when}",))
    title = f"{len(shared)} of {sum(sdk_grid.MUST_FAIL.values())} faults pass all three packages' plain loops without a word"
    return Picture(title, alt, table, draw, (8.2, 2.8))


SILENT = "ends, no error"


def _verdict(mishap: str, outcome: str | None) -> str:
    if outcome is not None:
        return outcome
    return SILENT if sdk_grid.MUST_FAIL[mishap] else "goes on"


__all__ = ["cached_bodies", "cut_character", "fates", "grid", "hourglass", "round_trip", "story", "trip", "usage_bars"]
