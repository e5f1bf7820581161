"""Shards of work that are done once: finished ones stay finished, however the process ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypedDict

from tqdm import tqdm

from mrs_datasets.builders.pipeline.work_folder import WorkFolder
from mrs_suggest.common.io.storage import Location, size

Advance = Callable[[int], object]  # called with the number of units done since the last call
ShardCounts: TypeAlias = Mapping[str, object]  # what a shard counted: plain JSON, with the names of its stage


class FileFacts(TypedDict):
    """What distinguishes a file from another one of its name."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Shard:
    """One piece of a stage.

    Attributes:
        name: of its files.
        size: in the stage's unit, for the bar.
        output: the file that it writes, which must appear whole; without it, the shard is not done.
        work: does the shard, given `Advance`, and returns its counts.
        beside: another required output file.
    """

    name: str
    size: int
    output: Location
    work: Callable[[Advance], ShardCounts]
    beside: Location | None = None

    def is_whole(self) -> bool:
        """Whether its files exist."""
        return self.output.is_file() and (self.beside is None or self.beside.is_file())


class Bar(Protocol):
    """A progress bar that an engine updates (such as tqdm's)."""

    n: int  # how far it is, in the stage's unit

    def update(self, n: int) -> object:
        """Move it by `n`, which may be negative."""


class Engine(Protocol):
    """Processes the shards of a stage, such as `mrs_datasets.builders.pipeline.workers.Workers` on one machine."""

    def do(self, shards: Sequence[Shard], bar: Bar) -> Iterator[tuple[Shard, ShardCounts]]:
        """Do every shard, and yield each with its counts once it is done, in any order; `run_stage` sorts them.

        A shard that was yielded is noted as done, and a resumed build does not do it again. So:

        - A shard is done at least once: it may be done again after a failure, with the same files and counts.
        - When it is yielded, its files are whole, and this process sees them (`Shard.is_whole`).
        - Each of `shards` is yielded once. `Shard.work` and the counts can be pickled; the counts are plain JSON.
        - Shards that are done when another one fails are yielded before the error is raised, as far as they are known.
        - Shards read and write the locations that they hold, and a remote one's scratch folder: several machines need a
          remote work folder or a disk that all see, and local paths (language model, scratch) that each of them has.
        - Between calls no work of a stage is running: the next stage reads what this one wrote.
        - It moves `bar` by the sizes of all shards in total, at any intervals.

        Raises:
            InputError: a shard's process was killed; the message says how to continue (`--resume`). An error of the
                shard's own work is raised unchanged.
        """


def run_stage(
    work: WorkFolder, stage: str, shards: Sequence[Shard], engine: Engine, unit: str, scale: bool = False
) -> list[ShardCounts]:
    """Do the shards that are not done, under one bar; return the counts of all, in order.

    Raises:
        InputError: a worker was killed; the finished shards stay.
    """
    found: dict[str, ShardCounts] = {
        shard.name: noted
        for shard in shards
        if shard.is_whole() and (noted := work.done(stage, shard.name)) is not None
    }
    left = [shard for shard in shards if shard.name not in found]
    with tqdm(
        total=sum(shard.size for shard in shards),
        initial=sum(shard.size for shard in shards if shard.name in found),
        desc=stage,
        unit=unit,
        unit_scale=scale,
    ) as bar:
        for shard, counts in engine.do(left, bar):
            work.finish(stage, shard.name, counts)
            found[shard.name] = counts
    return [found[shard.name] for shard in shards]


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Record how long a stage took."""
    started = time.perf_counter()
    yield
    seconds[name] = round(time.perf_counter() - started, 1)


def name_and_bytes(path: Location) -> FileFacts:
    """What distinguishes a file from another one of its name."""
    return {"name": path.name, "bytes": size(path)}


def summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The counts of several shards together."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return total
