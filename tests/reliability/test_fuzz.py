"""Fuzzing with hypothesis: pieces of real streams cut up and put together anew, and bytes of no kind at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reliability.mutations import blocks
from tests.reliability.scale import examples
from tests.reliability.targets import TARGETS, corpus

BODIES = {name: list(corpus(name)) for name in TARGETS}
PIECES = {
    name: sorted({block.data for body in bodies for block in blocks(body)}, key=lambda data: (len(data), data))
    for name, bodies in BODIES.items()
}


@st.composite
def bodies(draw: st.DrawFn, name: str) -> bytes:
    """Events of several streams of a wire, some of them with bytes put in, taken out, or changed."""
    pieces = draw(st.lists(st.sampled_from(PIECES[name]), max_size=12))
    data = bytearray(b"".join(pieces))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 6))] = draw(st.binary(max_size=6))
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_pieces_of_real_bodies_in_any_order(name: str) -> None:
    @examples(40)
    @given(bodies(name))
    def run(data: bytes) -> None:
        TARGETS[name](data)

    run()


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes(name: str) -> None:
    @examples(40)
    @given(st.binary(max_size=300))
    def run(data: bytes) -> None:
        TARGETS[name](data)

    run()


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_itself_breaks_no_promise(name: str) -> None:
    assert BODIES[name]
    for body in BODIES[name]:
        TARGETS[name](body)
