"""The stages of a build on Spark: those of the local engine, with Spark's shuffle where pairs of several tasks meet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mrs_datasets.builders.pipeline.stages import Advance, Engine, Shard, ShardCounts
from mrs_datasets.builders.pipeline.work_folder import RESUME, remove_leftovers, writing
from mrs_datasets.builders.reddit.cleaning.duplicates import EXACT, NEAR
from mrs_datasets.builders.reddit.cleaning.language import KEPT, languages_with
from mrs_datasets.builders.reddit.pipeline import Build, Stage
from mrs_datasets.builders.reddit.report_page import PAGE, funnel_page
from mrs_datasets.builders.reddit.settings import Settings
from mrs_datasets.builders.reddit.shards.shard_stages import (
    DUPLICATES,
    MONTHS,
    PAIRS,
    finish_duplicates,
    finish_months,
    finish_pairs,
    month_shards,
    pair_files,
    pair_shards,
)
from mrs_datasets.builders.reddit.shards.write_stage import chosen_languages, leave_out, write_data_set
from mrs_datasets.builders.spark.duplicates import marked_duplicates
from mrs_datasets.builders.spark.engine import SparkEngine
from mrs_datasets.builders.spark.pairs import joined_buckets
from mrs_datasets.builders.spark.survey import Buckets, Surveyed, survey_languages
from mrs_datasets.builders.spark.write import write_languages
from mrs_datasets.prepared.prepare import MARKER
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.schema import MRS, responses_config
from mrs_datasets.prepared.writer import finish_prepared, write_split
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.storage import Location, atomic_target

NOTE = "spark"  # of the stage of duplicates: which languages are done, and their counts


@dataclass(frozen=True)
class SparkStage(Stage):
    """A stage whose shards are tasks of Spark."""

    spark: SparkEngine | None = None

    def run(self, build: Build, engine: Engine) -> None:
        """As `Stage.run`, in the engine's session."""
        super().run(build, self.begin(build))

    def begin(self, build: Build) -> SparkEngine:
        """The engine, with its session; paths become absolute, since executors have folders of their own."""
        assert self.spark is not None
        self.spark.open(build.work.scratch)
        files = tuple(path.absolute() if isinstance(path, Path) else path for path in build.plan.files)
        build.plan = replace(build.plan, files=files)
        build.language_model = build.language_model.absolute()
        return self.spark


@dataclass(frozen=True)
class PairsStage(SparkStage):
    """The pairs of each bucket, whose comments Spark brings together."""

    def run(self, build: Build, engine: Engine) -> None:
        """As `Stage.run`: buckets that are done are left out of the shuffle."""
        spark = self.begin(build)
        build.work.stage(self.name)
        shards = pair_shards(build)
        found: dict[int, ShardCounts] = {
            number: noted
            for number, shard in enumerate(shards)
            if shard.is_whole() and (noted := build.work.done(self.name, shard.name)) is not None
        }
        left = [number for number in range(len(shards)) if number not in found]
        if left:
            spark.share(build.language_model)
            frame = joined_buckets(
                spark, build.months, [shards[number] for number in left], left, build.settings,
                build.language_model,
            )  # fmt: skip
            for place, _, data in spark.collect_under_bar(frame, self.name):
                found[left[place]] = json.loads(bytes(data))
        self.finish(build, shards, [found[number] for number in range(len(shards))])


@dataclass(frozen=True)
class DuplicatesStage(SparkStage):
    """The duplicates of all languages together."""

    def run(self, build: Build, engine: Engine) -> None:
        """As `Stage.run`: done in one go, and again if other languages may be kept."""
        spark = self.begin(build)
        build.work.stage(self.name)
        languages = languages_with(build.outcomes, build.settings.min_examples)
        codes = code_files(build)
        noted = build.work.done(self.name, NOTE) or {}
        counts = noted.get("counts")
        if noted.get("languages") != languages or not all(path.is_file() for path in codes):
            pairs = [build.outcomes[language, KEPT] for language in languages]
            files = pair_files(build.work, build.plan.buckets)
            frame = marked_duplicates(spark, languages, pairs, files, codes)
            counts = {language: dict.fromkeys((EXACT, NEAR), 0) for language in languages}
            for _, _, data in spark.collect_under_bar(frame, self.name):
                for language, found in json.loads(bytes(data)).items():
                    for reason, number in found.items():
                        counts[language][reason] += number
            build.work.finish(self.name, NOTE, {"languages": languages, "counts": counts})
        assert isinstance(counts, dict)
        shards = [Shard(language, 0, build.work.folder, _nothing) for language in languages]
        self.finish(build, shards, [counts[language] for language in languages])


def code_files(build: Build) -> list[Location]:
    """The codes of every bucket's pairs."""
    return [build.work.folder / DUPLICATES / f"{path.stem}.npy" for path in pair_files(build.work, build.plan.buckets)]


def _nothing(advance: Advance) -> ShardCounts:
    """The work of a shard that is done already."""
    return {}


@dataclass(frozen=True)
class WriteStage(SparkStage):
    """The data set and its report, whole or not at all."""

    def run(self, build: Build, engine: Engine) -> None:
        """As `write_stage.write_data_set`.

        Raises:
            InputError: as that.
        """
        spark = self.begin(build)
        build.pipeline.engine = spark.about()
        languages = chosen_languages(build)
        pairs = {language: build.pipeline.languages[language][KEPT] for language in languages}
        codes = code_files(build) if build.settings.clean else []
        buckets = Buckets(tuple(pair_files(build.work, build.plan.buckets)), tuple(codes))
        surveyed = survey_languages(spark, pairs, buckets, build.settings)
        report = Report("reddit", dict(build.settings.as_dict()))
        writable = _writable(build, languages, surveyed)
        report.notes += build.pipeline.warnings
        record = MRS.covering([name for language in writable for name in (language, responses_config(language))])
        remove_leftovers(build.out, "partial")
        with atomic_target(build.out, build.overwrite, MARKER, RESUME) as folder, writing(build.out):
            layout = write_languages(spark, folder, writable, surveyed.rows, buckets, build.settings)
            for language in writable:
                name = responses_config(language)
                table = surveyed.found[language].responses
                layout[name] = {"train": write_split(folder, name, "train", record, [table])}
            report.extra["pipeline"] = build.pipeline.as_dict
            ordered = {config: layout[config] for config, _, _ in record.configs() if config in layout}
            build.report = dict(finish_prepared(folder, ordered, report, record))
            atomic_write(folder / PAGE, funnel_page(build.report))
        spark.close()


def _writable(build: Build, languages: list[str], surveyed: Surveyed) -> list[str]:
    """The languages that have all splits and a response set; the others are left out with a warning.

    Raises:
        InputError: none has.
    """
    lacking: list[str] = []
    writable: list[str] = []
    for language in languages:
        found = surveyed.found[language]
        if lack := found.lack(build.settings):
            lacking.append(f"{language}: {lack}")
            leave_out(build, language, lack)
        else:
            writable.append(language)
            build.pipeline.leakage[language] = dict(found.leakage)
    if not writable:
        raise InputError(f"{lacking[0]}.")
    return writable


def stages_on(spark: SparkEngine) -> Callable[[Settings], list[Stage]]:
    """What composes the stages of a build on Spark, for `build(..., stages=...)`."""
    return partial(_stages, spark)


def _stages(spark: SparkEngine, settings: Settings) -> list[Stage]:
    stages: list[Stage] = [
        SparkStage(MONTHS, finish_months, month_shards, "B", scale=True, spark=spark),
        PairsStage(PAIRS, finish_pairs, pair_shards, " buckets", spark=spark),
    ]
    if settings.clean:
        stages.append(DuplicatesStage(DUPLICATES, finish_duplicates, spark=spark))
    return [*stages, WriteStage("write", write_data_set, spark=spark)]
