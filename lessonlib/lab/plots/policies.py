"""Pictures of the policies: many clients after an outage (07), two limits over a minute (10), a chain and a breaker (11).

The library's own Retry, Limiter, Fallback and Breaker run on a virtual clock (virtual.py).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from lessonlib.breaker import Breaker
from lessonlib.errors import LessonError
from lessonlib.fallback import Fallback
from lessonlib.lab.page import Table
from lessonlib.lab.style import BLUE, HATCHES, INK, ORANGE, PALE, RED, Picture
from lessonlib.lab.virtual import REQUEST, Clock, Service
from lessonlib.limits import Limiter
from lessonlib.retry import Retry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# ---------------------------------------------------------------- 07 load


def load(clients: int = 200, down: float = 12.0, *, seed: int = 7, bin_width: float = 0.5) -> Picture:
    """Requests per `bin_width` seconds after `clients` clients failed in the same moment: without jitter, and with full
    jitter. The service stays down for `down` seconds; everybody retries up to six times, waits are capped at 32 seconds."""
    dice = random.Random(seed)
    plain = _arrivals(clients, down, lambda: 1.0)
    spread = _arrivals(clients, down, dice.random)
    charts = [(name, _binned(times, bin_width)) for name, times in (("without jitter", plain), ("with jitter", spread))]
    spikes = sorted(second for second, count in charts[0][1].items() if count >= clients and second > 0)
    most = max((count for second, count in charts[1][1].items() if second >= 2), default=0)
    seconds = sorted(set(charts[0][1]) | set(charts[1][1]))
    rows = tuple((f"{second:g}", *(f"{chart.get(second, 0)}" for _, chart in charts)) for second in seconds)
    times = ", ".join(f"{second:g}" for second in spikes)
    alt = (
        f"Without jitter all {clients} clients come back together, at {times} s. "
        f"With jitter they spread out: from second 2 on no stretch of {bin_width:g} s sees more than {most}."
    )

    def draw(figure: Figure) -> None:
        axes: list[Axes] = list(figure.subplots(2, 1, sharex=True, sharey=True))
        for axis, (name, chart), hatch, colour in zip(axes, charts, HATCHES[1:], (ORANGE, BLUE), strict=False):
            axis.bar(list(chart), list(chart.values()), width=bin_width * 0.9, align="edge", color=colour, hatch=hatch,
                     edgecolor=INK, linewidth=0.6)  # fmt: skip
            axis.set_title(name)
            axis.set_ylabel("requests")
            axis.axvline(down, color=INK, linestyle=":", linewidth=1.2)
        axes[0].text(down, 0.86, "  service is back", transform=axes[0].get_xaxis_transform())
        axes[1].set_xlabel(f"seconds after the first failure ({bin_width:g} s per bar)")

    table = Table(("from second", *(name for name, _ in charts)), rows)
    title = f"Without jitter {clients} clients come back all at once, with it a few at a time"
    return Picture(title, alt, table, draw, (7.6, 4.2))


def _arrivals(clients: int, down: float, dice: Callable[[], float]) -> list[float]:
    """When requests reach the service, of all clients together. Each has a clock of its own that starts at 0."""
    times: list[float] = []
    for _ in range(clients):
        clock = Clock()
        service = Service("service", clock, down=lambda now: now < down)
        with suppress(LessonError):  # who gives up has asked all the same
            Retry(service, max_attempts=7, base=1.0, cap=32.0, sleep=clock.sleep, random=dice).generate(REQUEST)
        times += service.asked
    return times


def _binned(times: list[float], width: float) -> dict[float, int]:
    counts = Counter(int(time / width) * width for time in times)
    return dict(sorted(counts.items()))


# ---------------------------------------------------------------- 10 two limits


def buckets(
    sizes: Sequence[int] = (12_000, 12_000, 12_000),
    times: Sequence[float] = (5.0, 20.0, 40.0),
    *,
    requests_per_minute: int = 60,
    tokens_per_minute: int = 30_000,
) -> Picture:
    """What is left of two limits over one minute when only requests are counted before sending; and what a limiter that
    counts both does with the same requests."""
    rows, left_requests, left_tokens = [], requests_per_minute, tokens_per_minute
    waits = _waits(sizes, times, requests_per_minute, tokens_per_minute)
    points = [(0.0, 1.0, 1.0)]
    for size, time, wait in zip(sizes, times, waits, strict=True):
        left_requests, left_tokens = left_requests - 1, left_tokens - size
        rows.append((f"{time:g}", f"{size:,}", f"{left_requests}", f"{left_tokens:,}", f"{time + wait:g}"))
        points.append((time, left_requests / requests_per_minute, left_tokens / tokens_per_minute))
    points.append((60.0, *points[-1][1:]))
    over = next((row[0] for row in rows if row[3].startswith("-")), None)
    alt = (
        f"After {len(sizes)} requests {left_requests} of {requests_per_minute} are left, but tokens stand at {left_tokens:,}"
        + (f": the limit is passed at {over} s." if over is not None else ", within the limit.")
    )
    late = [row for row, wait in zip(rows, waits, strict=True) if wait > 0]
    if late:
        alt += f" A limiter that counts both lets the one from {late[0][0]} s go at {late[0][4]} s."

    draw = partial(_draw_buckets, points, (requests_per_minute, tokens_per_minute), list(zip(times, sizes, strict=True)))
    header = ("second", "tokens", "requests left", "tokens left", "a limiter on both sends it at")
    left = f"{left_requests} of {requests_per_minute} requests are left"
    title = f"{left}, and the tokens are overdrawn" if over is not None else f"{left}, and tokens too"
    return Picture(title, alt, Table(header, tuple(rows)), draw)


def _draw_buckets(
    points: Sequence[tuple[float, float, float]], limits: tuple[int, int], sent: Sequence[tuple[float, int]], figure: Figure
) -> None:
    """points: (second, share of the requests left, share of the tokens left)."""
    axes: Axes = figure.subplots()
    seconds = [point[0] for point in points]
    tokens = [100 * point[2] for point in points]
    inner = range(1, len(seconds) - 1)
    axes.step(seconds, [100 * point[1] for point in points], where="post", color=BLUE, linestyle="--", marker="o",
              markevery=inner, label=f"requests, of {limits[0]}")  # fmt: skip
    axes.step(seconds, tokens, where="post", color=RED, marker="s", markevery=inner, label=f"tokens, of {limits[1]:,}")
    axes.axhline(0, color=INK, linewidth=1.2)
    axes.fill_between(seconds, 0, tokens, where=[value <= 0 for value in tokens], step="post", hatch=HATCHES[3],
                      facecolor="#f6dcdb", edgecolor=RED, linewidth=0)  # fmt: skip
    label = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    for (time, size), value in zip(sent, tokens[1:], strict=False):
        axes.annotate(f"-{size:,}", (time, value), xytext=(6, 6), textcoords="offset points", bbox=label)
    axes.set_xlabel("second of the minute")
    axes.set_ylabel("left of the limit, %")
    axes.set_xlim(0, 60)
    axes.set_ylim(min(-30, min(tokens) - 10), 115)
    axes.legend(loc="center right")


def _waits(sizes: Sequence[int], times: Sequence[float], requests: int, tokens: int) -> list[float]:
    """How long the library's limiter holds each request."""
    clock = Clock()
    limiter = Limiter(requests, tokens, clock=clock)
    waits = []
    for size, time in zip(sizes, times, strict=True):
        clock.now = max(clock.now, time)
        ticket = limiter.reserve(size)
        while (delay := limiter.wait(ticket)) > 0:
            clock.sleep(delay)
        waits.append(clock.now - time)
    return waits


# ---------------------------------------------------------------- 11 an outage


def outage(requests: int = 1000, down: float = 600.0, *, cooldown: float = 30.0) -> Picture:
    """When the dead service is asked during an outage, with one request every `down / requests` seconds: by a chain alone,
    and by a chain around a breaker."""
    step = down / requests
    chain = _asked(requests, step, down, None)
    breaker = _asked(requests, step, down, cooldown)
    trips = 5
    probes = len(breaker) - trips
    alt = (
        f"While one service is down for {down / 60:g} minutes, a chain asks it {len(chain):,} times, once for every "
        f"request. With a breaker it is asked {len(breaker)} times: {trips} failures, then {probes} probes, one every "
        f"{cooldown:g} s."
    )
    rows = (("chain", f"{len(chain):,}", _sample(chain)), ("chain and breaker", f"{len(breaker):,}", _sample(breaker)))

    def draw(figure: Figure) -> None:
        axes: list[Axes] = list(figure.subplots(2, 1, sharex=True))
        for axis, name, times in zip(axes, ("a chain alone", "a chain around a breaker"), (chain, breaker), strict=True):
            axis.vlines([time / 60 for time in times], 0, 1, color=INK, linewidth=0.9 if len(times) > 100 else 1.6)
            axis.set_title(f"{name}: {len(times):,}")
            axis.set_yticks([])
            axis.spines["left"].set_visible(False)
            axis.axvspan(0, down / 60, color=PALE, alpha=0.15)
        axes[1].set_xlabel("minutes since it went down; one line per request that it got")
        axes[1].set_xlim(0, down / 60)

    title = f"{len(chain):,} requests to a dead service without a breaker, {len(breaker)} with one"
    return Picture(title, alt, Table(("policy", "asked", "at second"), rows), draw, (7.6, 3.0))


def _asked(requests: int, step: float, down: float, cooldown: float | None) -> list[float]:
    """When the first service of a chain is asked while it is down."""
    clock = Clock()
    first, second = Service("first", clock, down=lambda now: now < down), Service("second", clock)
    chain = Fallback([first if cooldown is None else Breaker(first, cooldown=cooldown, clock=clock), second])
    for _ in range(requests):
        chain.generate(REQUEST)
        clock.sleep(step)
    return [time for time in first.asked if time < down]


def _sample(times: list[float]) -> str:
    shown = [f"{time:.1f}".rstrip("0").rstrip(".") for time in times]
    return ", ".join(shown) if len(shown) <= 12 else f"{', '.join(shown[:7])}, … {', '.join(shown[-2:])}"
