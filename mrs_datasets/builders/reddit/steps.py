"""A function of one text with a pattern of the texts that it changes; `columns` applies it to columns of texts.

The pattern is an over-approximation of the function: it finds every text that the function changes, and perhaps others.
It is in the syntax of RE2, which has no look-around, whose `\\s` and `\\w` are ASCII and whose folding of case lacks
the dotted and the dotless i; so a pattern names characters instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """A function of a text, and what a text must have for it to change the text, in RE2's syntax."""

    change: Callable[[str], str]
    may_change: str


def any_of(steps: Sequence[Step]) -> str:
    """What a text must have for any of the steps to change it."""
    return "|".join(step.may_change for step in steps)
