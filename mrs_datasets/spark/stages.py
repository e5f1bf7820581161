"""The stages of a build on Spark: those of the local engine, with Spark's shuffle where pairs of several tasks meet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mrs_datasets.pipeline.stages import Engine, ShardCounts
from mrs_datasets.reddit.pipeline import Build, Stage
from mrs_datasets.reddit.settings import Settings
from mrs_datasets.reddit.shard_stages import (
    DUPLICATES,
    MONTHS,
    PAIRS,
    duplicates_shards,
    finish_duplicates,
    finish_months,
    finish_pairs,
    month_shards,
    pair_shards,
)
from mrs_datasets.reddit.write_stage import write_data_set
from mrs_datasets.spark.engine import SparkEngine
from mrs_datasets.spark.pairs import joined_buckets


@dataclass(frozen=True)
class SparkStage(Stage):
    """A stage whose shards are tasks of Spark."""

    spark: SparkEngine | None = None

    def run(self, build: Build, engine: Engine) -> None:
        """As `Stage.run`, in the engine's session."""
        assert self.spark is not None
        self.spark.open(build.work.scratch)
        super().run(build, self.spark)


@dataclass(frozen=True)
class PairsStage(SparkStage):
    """The pairs of each bucket, whose comments Spark brings together."""

    def run(self, build: Build, engine: Engine) -> None:
        """As `Stage.run`: buckets that are done are left out of the shuffle."""
        assert self.spark is not None
        self.spark.open(build.work.scratch)
        build.work.stage(self.name)
        shards = pair_shards(build)
        found: dict[int, ShardCounts] = {
            number: noted
            for number, shard in enumerate(shards)
            if shard.is_whole() and (noted := build.work.done(self.name, shard.name)) is not None
        }
        left = [number for number in range(len(shards)) if number not in found]
        if left:
            self.spark.share(build.language_model)
            frame = joined_buckets(
                self.spark.session, build.months, [shards[number] for number in left], left, build.settings,
                build.language_model,
            )  # fmt: skip
            for place, _, data in self.spark.collect_under_bar(frame, self.name):
                found[left[place]] = json.loads(bytes(data))
        self.finish(build, shards, [found[number] for number in range(len(shards))])


def stages_on(spark: SparkEngine) -> Callable[[Settings], list[Stage]]:
    """What composes the stages of a build on Spark, for `build(..., stages=...)`."""
    return partial(_stages, spark)


def _stages(spark: SparkEngine, settings: Settings) -> list[Stage]:
    stages: list[Stage] = [
        SparkStage(MONTHS, finish_months, month_shards, "B", scale=True, spark=spark),
        PairsStage(PAIRS, finish_pairs, pair_shards, " buckets", spark=spark),
    ]
    if settings.clean:
        stages.append(SparkStage(DUPLICATES, finish_duplicates, duplicates_shards, " pairs", scale=True, spark=spark))
    return [*stages, Stage("write", write_data_set)]
