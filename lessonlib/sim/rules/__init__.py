"""The rules that the vendors enforce, one file per vendor. `all_rules()` is what `lesson rules` prints."""

from __future__ import annotations

from lessonlib.sim.refusal import Rule


def all_rules() -> list[Rule]:
    """Every rule of every wire format, in the order in which they are asked."""
    from lessonlib.sim.front import FRONTS

    books = {id(front.book): front.book for front in FRONTS}
    return [rule for book in books.values() for rule in book.rules]
