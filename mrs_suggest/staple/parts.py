"""Work on many prompts, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tqdm import tqdm

PART = 64  # prompts, the most that are decoded together


def parts_of(lengths: Mapping[str, int], title: str) -> Iterator[list[str]]:
    """The prompts in parts of similar length, the longest first, so that memory fails early; with a progress bar."""
    order = sorted(lengths, key=lambda key: -lengths[key])
    with tqdm(total=len(order), desc=title, unit=" prompts", disable=None) as bar:
        for begin in range(0, len(order), PART):
            yield order[begin : begin + PART]
            bar.update(len(order[begin : begin + PART]))
