"""The rules that the vendors enforce. `all_rules()` is what `lesson rules` prints.

One book per vendor: openai.py (with responses.py and chat.py), anthropic.py, google.py (with interactions.py and
generate_content.py). A book asks its rules in the order of these files, and the first that refuses answers.
"""

from __future__ import annotations

from lessonlib.sim.refusal import Rule


def all_rules() -> list[Rule]:
    """Every rule of every wire format, in the order in which they are asked."""
    from lessonlib.sim.front import FRONTS

    books = {id(front.book): front.book for front in FRONTS}
    return [rule for book in books.values() for rule in book.rules]
