"""Which examples form a batch: languages by share, lengths sorted in windows, the same for any number of ranks."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Sampler
from transformers import TrainingArguments

from mrs_suggest.common.errors import InputError

BATCHES = ("language", "mixed")  # one language per batch, as in the official code, or all languages in each
RUN = 6  # steps of similar message lengths that are sorted by reply length: about the square root of a window
WINDOW = 50  # batches that are sorted together: enough for near-equal lengths, few enough for random batches


def shares(sizes: Sequence[int], alpha: float) -> np.ndarray:
    """How often each source is drawn: p_i = n_i^alpha / sum_j n_j^alpha.

    Args:
        sizes: examples of each source, at least one each.
        alpha: 0 gives equal shares (Zhang et al. 2021, section 3.2), 0.3 is XGLUE's (Liang et al. 2020, section 3),
            1 leaves the sources in proportion to their size.

    Returns:
        The probabilities, of shape (len(sizes),), summing to 1.

    Raises:
        InputError: no source, a source without examples, or an alpha outside 0 to 1.

    >>> shares([900, 100], 0.5).tolist()
    [0.75, 0.25]
    """
    counts = np.asarray(sizes, dtype=np.float64)
    if counts.ndim != 1 or not counts.size or not (counts >= 1).all():
        found = " ".join(map(str, sizes)) or "none"
        raise InputError(
            f"--train: every source needs at least one training example, found {found}; leave empty ones out."
        )
    require_alpha(alpha)
    weights = np.power(counts / counts.max(), alpha)
    return weights / weights.sum()


def require_alpha(alpha: float | None) -> None:
    """Refuse an exponent of the sources' sizes outside 0 to 1; None passes."""
    if alpha is not None and not 0 <= alpha <= 1:  # refuses NaN too
        raise InputError(
            f"--sampling_alpha {alpha}: expected a number from 0 to 1; pass 0 for equal shares, 1 for shares by size."
        )


class StepSampler(Sampler[list[int]], ABC):
    """Batches of row numbers, for one rank, cut from steps that are the same for all ranks.

    A step's examples depend only on the seed, the epoch and the examples per step: two ranks with batches of 8, one
    rank with 16, and one with 8 and two accumulation steps use the same ones. Each rank takes its slice, so that all
    have the same number of batches.

    Attributes:
        steps: of an epoch.
        told: called with each epoch that is set, such as a collator's `set_epoch`. The library's trainer always sets
            the epoch of the sampler, while it replaces the loader in the first epoch of a resumed run.
    """

    steps: int

    def __init__(self, batch_size: int, world_size: int, rank: int, accumulation: int) -> None:
        self._batch, self._world_size, self._rank, self._accumulation = batch_size, world_size, rank, accumulation
        self._step = batch_size * world_size * accumulation
        self._epoch = 0
        self.told: list[Callable[[int], None]] = []

    @abstractmethod
    def drawn(self, epoch: int) -> Iterable[np.ndarray]:
        """(steps, examples per step) row numbers of an epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass; the same epoch gives the same batches."""
        self._epoch = epoch
        for tell in self.told:
            tell(epoch)

    def __len__(self) -> int:
        return self.steps * self._accumulation

    def __iter__(self) -> Iterator[list[int]]:
        for step in self.drawn(self._epoch):
            for batch in range(self._rank, len(step) // self._batch, self._world_size):
                yield step[batch * self._batch : (batch + 1) * self._batch].tolist()


class PairSampler(StepSampler):
    """Batches, for one rank, of row numbers of several concatenated sources.

    Sources are drawn with shares p_i ~ n_i^alpha: 0 is the paper's equal sizes (Zhang et al. 2021, section 3.2), .3
    that of XGLUE's pretraining (Liang et al. 2020, section 3), 1 proportional. An epoch lasts until all rows of all
    sources were seen; smaller sources repeat. Shares are exact; only the order is random.

    All ranks work on the same language, where a step has one.

    Args:
        mixed: draw each batch from all sources together; else a step has one source.
        lengths: (rows), or (rows, 2) for message and reply, of any unit; with it, rows are sorted by length in windows
            of `window` steps before they are cut into batches, which saves padding. The order of the batches stays
            random.

    >>> sampler = PairSampler([4, 2], batch_size=2, alpha=0.0, seed=1)
    >>> sorted(sorted(rows) for rows in sampler)
    [[0, 1], [2, 3], [4, 5], [4, 5]]
    """

    def __init__(
        self,
        sizes: Sequence[int],
        batch_size: int,
        *,
        alpha: float = 1.0,
        mixed: bool = False,
        lengths: np.ndarray | None = None,
        window: int = WINDOW,
        world_size: int = 1,
        rank: int = 0,
        accumulation: int = 1,
        seed: int = 0,
    ) -> None:
        if not sizes or min(sizes) < 1:
            raise InputError("a training source has no examples; leave it out of --train or --languages.")
        super().__init__(batch_size, world_size, rank, accumulation)
        self._sizes, self._mixed, self._seed = list(sizes), mixed, seed
        self._lengths = lengths if window else None
        self._window = window
        self._shares = shares(sizes, alpha)
        examples = max(size / share for size, share in zip(sizes, self._shares, strict=True))
        # Steps that each source needs; many small ones must not push a large one's rows out of the epoch.
        least = np.maximum(np.asarray(sizes) // self._step, 1)
        steps = max(1 if mixed else int(least.sum()), round(examples) // self._step)
        self._quotas = quotas(self._shares, steps, np.zeros_like(least) if mixed else least)
        self.steps = int(self._quotas.sum())

    def drawn(self, epoch: int) -> Iterable[np.ndarray]:
        rng = np.random.default_rng([self._seed, epoch])
        starts = np.cumsum([0, *self._sizes[:-1]])
        if self._mixed:
            counts = quotas(self._shares, self.steps * self._step, np.zeros_like(starts)).tolist()
            parts = zip(starts, self._sizes, counts, strict=True)
            rows = np.concatenate([_passes(size, count, rng, start) for start, size, count in parts])
            rng.shuffle(rows)
            steps = self._cut(rows)
        else:
            steps = np.concatenate(
                [
                    self._cut(_passes(size, int(quota) * self._step, rng, start))
                    for start, size, quota in zip(starts, self._sizes, self._quotas, strict=True)
                ]
            )
        return steps[rng.permutation(len(steps))]

    def _cut(self, rows: np.ndarray) -> np.ndarray:
        if self._lengths is not None:
            wide = self._window * self._step
            for begin in range(0, len(rows), wide):
                rows[begin : begin + wide] = self._sorted(rows[begin : begin + wide])
        return rows.reshape(-1, self._step)

    def _sorted(self, window: np.ndarray) -> np.ndarray:
        """By the first length, then each run of steps by the second: the steps of a run are similar in the first."""
        assert self._lengths is not None
        if self._lengths.ndim == 1:
            return window[np.argsort(self._lengths[window], kind="stable")]
        window = window[np.argsort(self._lengths[window, 0], kind="stable")]
        run = RUN * self._step
        runs = (window[begin : begin + run] for begin in range(0, len(window), run))
        return np.concatenate([rows[np.argsort(self._lengths[rows, 1], kind="stable")] for rows in runs])


class MixedSampler(StepSampler):
    """Steps of several samplers, such as those of the objectives of a run, each step of one of them.

    An epoch lasts until every sampler's own is through; those that are through begin again, in another order. Shares
    are exact, but for a sampler without a step, which gets one; the order of the steps is random.

    Args:
        sizes: rows that each of them numbers; the numbers of the next one begin after them.
        shares: of the steps, above 0, adding up to 1.
        epoch_of: the sampler whose epoch this one's is; of the others, as much as their shares take, another part in
            each epoch. None: all.

    >>> one, two = (PairSampler([4], batch_size=2), PairSampler([2], batch_size=2))
    >>> sorted(row for rows in MixedSampler([one, two], [4, 2], [0.5, 0.5]) for row in rows)
    [0, 1, 2, 3, 4, 4, 5, 5]
    """

    def __init__(
        self,
        samplers: Sequence[PairSampler],
        sizes: Sequence[int],
        shares: Sequence[float],
        seed: int = 0,
        epoch_of: int | None = None,
    ) -> None:
        first = samplers[0]
        super().__init__(first._batch, first._world_size, first._rank, first._accumulation)
        self._samplers, self._seed = list(samplers), seed
        self._starts = np.cumsum([0, *sizes[:-1]])
        lengths = [sampler.steps / share for sampler, share in zip(samplers, shares, strict=True)]
        longest = max(lengths) if epoch_of is None else lengths[epoch_of]
        total = max(len(self._samplers), int(np.ceil(longest - 1e-9)))
        self._quotas = quotas(np.asarray(shares), total, np.ones(len(self._samplers), dtype=np.int64))
        self.steps = total

    def drawn(self, epoch: int) -> Iterator[np.ndarray]:
        own = []
        for sampler, start, quota in zip(self._samplers, self._starts, self._quotas.tolist(), strict=True):
            passes = -(-quota // sampler.steps)
            steps = chain.from_iterable(map(sampler.drawn, range(epoch * passes, (epoch + 1) * passes)))
            own.append(map(start.__add__, steps))
        order = np.repeat(np.arange(len(own)), self._quotas)
        return (next(own[number]) for number in np.random.default_rng([self._seed, epoch]).permutation(order))


class CountedSampler(StepSampler):
    """Another sampler's steps, with numbers that also encode how often the epoch has used a row before.

    `row + rows * uses`, so that what is drawn for a row, such as one of its targets, can differ at each use.

    >>> [[number % 2 for number in rows] for rows in CountedSampler(PairSampler([2], batch_size=2), 2)]
    [[0, 1]]
    >>> mixed = MixedSampler([PairSampler([1], batch_size=1), PairSampler([4], batch_size=1)], [1, 4], [0.5, 0.5])
    >>> sorted(number for numbers in CountedSampler(mixed, 5) for number in numbers)
    [0, 1, 2, 3, 4, 5, 10, 15]
    """

    def __init__(self, sampler: StepSampler, rows: int) -> None:
        super().__init__(sampler._batch, sampler._world_size, sampler._rank, sampler._accumulation)
        self._sampler, self._rows, self.steps = sampler, rows, sampler.steps

    def drawn(self, epoch: int) -> np.ndarray:
        steps = np.stack([*self._sampler.drawn(epoch)])
        flat = steps.ravel()
        order = np.argsort(flat, kind="stable")
        begins = np.flatnonzero(np.diff(flat[order], prepend=-1))
        uses = np.empty_like(flat)
        uses[order] = np.arange(len(flat)) - np.repeat(begins, np.diff(begins, append=len(flat)))
        return (flat + self._rows * uses).reshape(steps.shape)


def quotas(share: np.ndarray, total: int, least: np.ndarray) -> np.ndarray:
    """Whole numbers that add up to `total` in these shares, by largest remainders, none below its `least`."""
    exact = share * total
    counts = np.maximum(np.floor(exact + 1e-9).astype(np.int64), least)
    while counts.sum() < total:
        counts[np.argmax(exact - counts)] += 1
    while counts.sum() > total:
        counts[np.argmax(np.where(counts > least, counts - exact, -np.inf))] -= 1
    return counts


def _passes(size: int, count: int, rng: np.random.Generator, start: int) -> np.ndarray:
    """`count` of the `size` numbers from `start`: shuffled passes, one after the other."""
    found = np.empty(count, np.int64)
    for begin in range(0, count, size):
        found[begin : begin + size] = rng.permutation(size)[: count - begin]
    found += start
    return found


class PairLoader(DataLoader[Any]):
    """A loader that passes the epoch on to its sampler, as the trainers expect of accelerate's.

    It is not prepared by accelerate: the sampler gives each rank its own rows.
    """

    def set_epoch(self, epoch: int) -> None:
        assert isinstance(self.batch_sampler, StepSampler)
        self.batch_sampler.set_epoch(epoch)


class KeyedRows(Dataset[tuple[Any, Any]]):
    """Rows as (key, row).

    Args:
        sources: key -> rows, which have a length and are read by their number.
        size: number of rows; None: the sum of their lengths; pass it if their lengths only bound the row numbers.
    """

    def __init__(self, sources: Sequence[tuple[Any, Any]], size: int | None = None) -> None:
        self._keys = [key for key, _ in sources]
        self._rows: ConcatDataset[Any] = ConcatDataset([rows for _, rows in sources])
        self._size = len(self._rows) if size is None else size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        return self._keys[bisect_right(self._rows.cumulative_sizes, number)], self._rows[number]


class KeyedCollator:
    """Rows of `KeyedRows`, all with one key -> a batch of that key's collator.

    Args:
        named: the name of the key in a batch; empty: it is left out.
    """

    def __init__(self, collators: Mapping[Any, Callable[..., Mapping[str, Any]]], named: str = "") -> None:
        self._collators, self._named = collators, named

    def __call__(self, rows: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
        key = rows[0][0]
        batch = self._collators[key]([row for _, row in rows])
        return {**batch, self._named: key} if self._named else {**batch}


def make_sampler(
    sizes: Sequence[Any],
    options: Any,
    training: TrainingArguments,
    alpha: float,
    lengths: Any,
    kind: type[PairSampler] = PairSampler,
) -> PairSampler:
    """The sampler of a run whose options are `batches` and `length_window`."""
    mixed, window = options.batches == "mixed", options.length_window
    return sampler_of_run(sizes, training, kind, alpha=alpha, mixed=mixed, lengths=lengths, window=window)


def sampler_of_run(
    sizes: Sequence[Any], training: TrainingArguments, kind: type[PairSampler] = PairSampler, **named: Any
) -> PairSampler:
    """A `PairSampler` with the batch size, ranks, accumulation and seed of a run."""
    return kind(
        sizes,
        training.per_device_train_batch_size,
        world_size=training.world_size,
        rank=training.process_index,
        accumulation=training.gradient_accumulation_steps,
        seed=training.seed,
        **named,
    )
