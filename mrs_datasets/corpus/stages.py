"""The stages of a corpus that are divided into shards: models, clean, duplicates, score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from mrs_datasets.builders.pipeline.stages import Engine, Shard, ShardCounts, run_stage
from mrs_datasets.builders.pipeline.work_folder import WorkFolder, writing
from mrs_datasets.corpus.settings import Corpus, CorpusSettings
from mrs_datasets.corpus.shards import CleanCounts, ScoreCounts, clean_shard, duplicates_shard, model_shard, score_shard
from mrs_suggest.common.io.storage import Location, fetch, size

MODELS = "models"


@dataclass(frozen=True)
class Staged:
    """The results of the stages.

    Attributes:
        cleaned, scored: counts of each source, in their order.
        lines: files of lines with perplexities, of each source.
        models: the file of each language's model.
        trained: facts of the models that were trained.
    """

    cleaned: list[CleanCounts]
    scored: list[ScoreCounts]
    lines: list[Location]
    models: dict[str, Path]
    trained: dict[str, dict[str, Any]]


def run_stages(corpus: Corpus, settings: CorpusSettings, work: WorkFolder, engine: Engine) -> Staged:
    """Run all stages; finished shards are not run again.

    Raises:
        InputError: see the shards; finished work stays.
    """

    def run(stage: str, shards: Sequence[Shard], unit: str) -> list[ShardCounts]:
        return run_stage(work, stage, shards, engine, unit, scale=True)

    def targets(stage: str) -> list[Location]:
        folder = work.stage(stage)
        return [folder / f"{number:05d}.{source.language}.arrow" for number, source in enumerate(corpus.sources)]

    # models first: a useless reference is refused before hours of reading
    shards = []
    for language, paths in corpus.references.items():
        target = work.stage(MODELS) / f"{language}.safetensors"
        train = partial(model_shard, paths, target, settings.rules, language)
        shards.append(Shard(language, sum(map(size, paths)), target, train))
    facts = run(MODELS, shards, "B") if shards else []
    trained = {shard.name: dict(found) for shard, found in zip(shards, facts, strict=True)}
    models = {**corpus.models, **{shard.name: _local(shard.output, work) for shard in shards}}

    clean = targets("clean")
    shards = [
        Shard(target.stem, size(source.path), target, partial(clean_shard, source.path, target, settings.rules))
        for source, target in zip(corpus.sources, clean, strict=True)
    ]
    cleaned = [cast(CleanCounts, counts) for counts in run("clean", shards, "B")]

    own = {
        language: [n for n, s in enumerate(corpus.sources) if s.language == language] for language in corpus.languages
    }
    lines = {language: sum(cleaned[number]["kept"] for number in numbers) for language, numbers in own.items()}
    codes = {language: work.stage("duplicates") / f"{language}.npy" for language in corpus.languages}
    shards = []
    for language, target in codes.items():
        find = partial(duplicates_shard, [clean[number] for number in own[language]], target, lines[language])
        shards.append(Shard(language, lines[language], target, find))
    run("duplicates", shards, " lines")

    scored = targets("score")
    done = dict.fromkeys(corpus.languages, 0)
    shards = []
    for source, file, target, counts in zip(corpus.sources, clean, scored, cleaned, strict=True):
        language = source.language
        identifier = None if language in corpus.unchecked else corpus.identifier
        place = (codes[language], lines[language], done[language])
        score = partial(
            score_shard, file, place, target, language, identifier, settings.min_language_score, models.get(language)
        )
        shards.append(Shard(target.stem, counts["kept"], target, score))
        done[language] += counts["kept"]
    counted = [cast(ScoreCounts, counts) for counts in run("score", shards, " lines")]
    return Staged(cleaned, counted, scored, models, trained)


def _local(model: Location, work: WorkFolder) -> Path:
    """A model as a local file."""
    if isinstance(model, Path):
        return model
    copy = work.scratch / model.name
    with writing(copy):
        fetch(model, copy)
    return copy
