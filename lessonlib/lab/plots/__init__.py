"""The pictures of the lessons, one function each. What is drawn is computed: by the library, the simulator, a virtual clock.

    turns           00   a conversation as timelines of entries and as turns of two speakers
    cut_character   01   the bytes of a word with a cut, and the two readings
    round_trip      02   which item of the answer travels back, and what a lost one costs
    usage_bars      03   one request under the vendors' ways of counting
    story           04   three streams as lanes of one story (see alignment.py)
    hourglass       05   what of a message survives on which wire
    diagram         06   the state machine of a stream (machine.py)
    load            07   200 clients after an outage, without and with jitter
    staircase       08   what each step of a tool loop sends again
    sieve           09   where eight bad calls stop
    buckets         10   two limits over one minute
    outage          11   a chain and a breaker while a service is down
    slots           12   one call put together under four dialects
    grid            13   four clients and five mishaps, in words

Each gives a `Picture` (style.py): a drawing, its finding in words that are made from the same data, and the data as a table,
which is what tests look at.
"""

from __future__ import annotations

from lessonlib.lab.machine import diagram
from lessonlib.lab.plots.policies import buckets, load, outage
from lessonlib.lab.plots.tools import sieve, slots, staircase
from lessonlib.lab.plots.turns import turns
from lessonlib.lab.plots.wire import cut_character, grid, hourglass, round_trip, story, usage_bars

__all__ = [
    "buckets",
    "cut_character",
    "diagram",
    "grid",
    "hourglass",
    "load",
    "outage",
    "round_trip",
    "sieve",
    "slots",
    "staircase",
    "story",
    "turns",
    "usage_bars",
]
