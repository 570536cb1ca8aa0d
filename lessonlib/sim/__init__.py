"""A simulator of the three vendors, five wire formats, strict where they are strict, with no network and no key.

    from lessonlib.sim import Simulator, SimTransport
    client = Client(AnthropicMessages(model="claude-opus-5-5", api_key="sim"), transport=SimTransport(Simulator()))

Deterministic: it looks for plain cues in the prompt (model.py), plays a script, has the faults that it is told to have, and
answers a wrong request with the error that the real service would give. It is no language model, and no proof that a request
is right for the real service: rules change, and what nobody has written down is not in here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessonlib.sim.core import SimReply, SimRequest, Simulator
from lessonlib.sim.faults import Fault
from lessonlib.sim.model import CUES
from lessonlib.sim.rules import all_rules
from lessonlib.sim.script import Call, Refuse, Say, ServerCall, Think, Turn

if TYPE_CHECKING:
    from lessonlib.sim.transport import SimTransport

__all__ = [
    "CUES",
    "Call",
    "Fault",
    "Refuse",
    "Say",
    "ServerCall",
    "SimReply",
    "SimRequest",
    "SimTransport",
    "Simulator",
    "Think",
    "Turn",
    "all_rules",
]


def __getattr__(name: str) -> object:
    """httpx is loaded only by those who want the transport."""
    if name == "SimTransport":
        from lessonlib.sim.transport import SimTransport

        return SimTransport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
