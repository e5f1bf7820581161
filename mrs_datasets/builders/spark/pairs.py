"""The join on Spark: pieces of the partitioned months are shuffled to their buckets, and a bucket is a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_datasets.builders.pipeline.stages import Shard, ShardCounts
from mrs_datasets.builders.pipeline.work_folder import note
from mrs_datasets.builders.reddit.settings import Settings
from mrs_datasets.builders.reddit.shards.join import join_comments
from mrs_datasets.builders.reddit.shards.partition_files import PARTITION, opened
from mrs_datasets.builders.reddit.shards.shards import write_joined
from mrs_datasets.builders.spark.rows import Piece, Row, counts_row, grouped, pack, source, unpack
from mrs_suggest.common.io.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mrs_datasets.builders.spark.engine import SparkEngine


def joined_buckets(
    spark: SparkEngine, months: Sequence[Location], shards: Sequence[Shard], buckets: Sequence[int], settings: Settings,
    model: Path,
) -> DataFrame:  # fmt: skip
    """Join the buckets, write the pairs of each and note it as done; rows with the counts, by the shards' numbers.

    A task reads a month's partition; Spark's shuffle brings the pieces of a bucket together, in the order of the months
    and of their rows. The files are those of the local engine, byte for byte, so that either goes on where the other
    ended.

    Args:
        buckets: the number of each shard's bucket.
    """
    number_of = {bucket: number for number, bucket in enumerate(buckets)}

    def parts(month: int) -> Iterator[Row]:
        if month == 0:  # every bucket has a row, also one without comments
            yield from ((number, -1, b"") for number in range(len(buckets)))
        with opened(months[month]) as file:
            for bucket, segment, batch in file.pieces(number_of):
                if batch.num_rows:
                    yield number_of[bucket], month << 32 | segment, pack(batch)

    def join(number: int, pieces: Iterator[Piece]) -> Iterable[Row]:
        shard = shards[number]
        pairs, joined = join_comments(unpack(pieces, PARTITION))
        counts: ShardCounts = write_joined(pairs, joined, shard.output, settings, model_here(model))
        note(shard.output.parent, shard.name, counts)
        yield counts_row(number, counts)

    return grouped(source(spark.session, len(months), parts), spark.tasks(len(shards)), join)


def model_here(model: Path) -> Path:
    """The language model on the machine of a task: at the same path, or as Spark has sent it."""
    if model.is_file():
        return model
    from pyspark import SparkFiles

    return Path(SparkFiles.get(model.name))
