"""Which accepted translation of a prompt is trained on: rows whose target is drawn at each use, or pairs as they are.

What an epoch is follows from the draw. `weighted`, `uniform`: every prompt once, with one of its translations, drawn
anew at each use. `top`, `copies`, `all`: every pair of prompt and translation once (the heaviest of `copies` so often).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from datasets import Dataset

from mrs_suggest.models.pretraining.noising import DrawsByEpoch
from mrs_suggest.training.staple.options import COPIES, TO_ENGLISH, TOP, UNIFORM, WEIGHTED


@dataclass(frozen=True)
class Pairs:
    """Pairs of a source, and the rows that they belong to.

    Attributes:
        pairs: columns `message` and `reply`.
        sizes: (rows,) pairs of each row, one after the other; of more than one, one is drawn.
        weights: (pairs,) how likely, in proportion; their sum in a row is above 0.
    """

    pairs: Dataset
    sizes: np.ndarray
    weights: np.ndarray


def pairs_of(prompts: Dataset, draw: str, number: int | None, direction: str) -> Pairs:
    """The pairs of a track's prompts.

    Args:
        prompts: columns `prompt` and `translations`, each with at least one, and weights that do not sum to 0.
        number: `top_k` or `copies`.
    """
    table = prompts.select_columns(["prompt", "translations"]).with_format("arrow")[:]
    lists = table["translations"].combine_chunks()
    sizes = np.asarray(lists.value_lengths()).astype(np.int64)
    entries = lists.flatten()
    texts, weights = pc.struct_field(entries, "text"), np.asarray(pc.struct_field(entries, "weight"), np.float64)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    sides = [table["prompt"].take(pa.array(owners)), texts]
    message, reply = reversed(sides) if direction == TO_ENGLISH else sides
    pairs = Dataset(pa.table({"message": message, "reply": reply}))
    if draw in (WEIGHTED, UNIFORM):
        return Pairs(pairs, sizes, weights if draw == WEIGHTED else np.ones_like(weights))
    chosen = _chosen(owners, sizes, weights, draw, number)
    return fixed(pairs.select(chosen) if len(chosen) != len(pairs) else pairs)


def fixed(pairs: Dataset) -> Pairs:
    """Pairs that are separate rows."""
    return Pairs(pairs, np.ones(len(pairs), np.int64), np.ones(len(pairs)))


def _chosen(owners: np.ndarray, sizes: np.ndarray, weights: np.ndarray, draw: str, number: int | None) -> np.ndarray:
    """The numbers of the pairs of an epoch, in the order of the data."""
    everything = np.arange(len(owners))
    if number is None:
        return everything
    order = np.lexsort((everything, -weights, owners))  # of equal weights the first
    rank = np.empty_like(order)
    rank[order] = everything - np.repeat(np.cumsum(sizes) - sizes, sizes)
    if draw == TOP:
        return everything[rank < number]
    assert draw == COPIES
    return np.repeat(everything, np.where(rank == 0, number, 1))


class DrawnPairs(DrawsByEpoch, torch.utils.data.Dataset[Mapping[str, Any]]):
    """Training rows, each an encoded pair that is drawn at each use.

    What is drawn depends on the seed, the epoch, the row and how often the epoch has used it before: not on the batch,
    the rank, the number of workers, or the place where a run was resumed.
    """

    def __init__(self, pairs: Dataset, sizes: np.ndarray, weights: np.ndarray, seed: int) -> None:
        super().__init__()
        self._pairs, self._seed = pairs, seed
        self._bounds = np.concatenate([[0], np.cumsum(sizes)])
        self._weights = weights

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, number: int) -> Mapping[str, Any]:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Mapping[str, Any]]:
        """The rows of a batch; `row + len(self) * uses`, as `CountedSampler` numbers them."""
        return list(self._pairs.__getitems__([self.drawn(number) for number in numbers]))

    def drawn(self, number: int) -> int:
        """The pair that is used for a row."""
        uses, row = divmod(number, len(self))
        begin, end = self._bounds[row : row + 2].tolist()
        if end - begin == 1:
            return int(begin)
        chance = np.random.default_rng([self._seed, int(self._epoch), row, uses]).random()
        return int(begin) + place_of(chance, self._weights[begin:end])


def place_of(chance: float, weights: np.ndarray) -> int:
    """The place that a number from 0 to 1 falls on, where each takes room by its weight.

    >>> [place_of(chance, np.array([0.2, 0.0, 0.6])) for chance in (0.0, 0.24, 0.26, 1.0)]
    [0, 0, 2, 2]
    """
    sums = np.cumsum(weights)
    place = int(np.searchsorted(sums, chance * sums[-1], side="right"))
    return min(place, int(np.flatnonzero(weights)[-1]))


def spread(weights: np.ndarray, count: int, first: float) -> np.ndarray:
    """`count` places, evenly spread over the weights: each comes about `count` times its share, in expectation so.

    Systematic sampling: the places of (first + i) / count. The mean of any figure over these places is an unbiased
    estimate of its mean under the weights, with less noise than independent draws.

    Args:
        first: from 0 to 1, drawn at random.

    >>> spread(np.array([0.5, 0.3, 0.2]), 4, 0.5).tolist()
    [0, 0, 1, 2]
    """
    return np.array([place_of((first + number) / count, weights) for number in range(count)])
