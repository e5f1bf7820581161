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
from mrs_datasets.corpus.shards import (
    CleanCounts,
    ScoreCounts,
    clean_shard,
    duplicates_shard,
    model_shard,
    score_shard,
)
from mrs_suggest.common.io.storage import Location, fetch, size

CLEAN, DUPLICATES, MODELS, SCORE = "clean", "duplicates", "models", "score"  # their names and folders


@dataclass(frozen=True)
class Staged:
    """What the stages made of a corpus.

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


@dataclass(frozen=True)
class Stages:
    """The stages of one corpus; those that are done are not done again."""

    corpus: Corpus
    settings: CorpusSettings
    work: WorkFolder
    engine: Engine

    def run(self) -> Staged:
        """All of them.

        Raises:
            InputError: as the shards; finished work stays.
        """
        models, trained = self._models()  # first: a useless reference is refused before hours of reading
        files, cleaned = self._clean()
        codes = self._duplicates(files, cleaned)
        lines, scored = self._score(files, cleaned, codes, models)
        return Staged(cleaned, scored, lines, models, trained)

    def _do(self, stage: str, shards: Sequence[Shard], unit: str) -> list[ShardCounts]:
        return run_stage(self.work, stage, shards, self.engine, unit, scale=True)

    def _named(self, stage: str) -> list[Location]:
        """A file of each source."""
        folder = self.work.stage(stage)
        return [folder / f"{number:05d}.{source.language}.arrow" for number, source in enumerate(self.corpus.sources)]

    def _clean(self) -> tuple[list[Location], list[CleanCounts]]:
        targets, rules = self._named(CLEAN), self.settings.rules
        shards = [
            Shard(target.stem, size(source.path), target, partial(clean_shard, source.path, target, rules))
            for source, target in zip(self.corpus.sources, targets, strict=True)
        ]
        return targets, [cast(CleanCounts, counts) for counts in self._do(CLEAN, shards, "B")]

    def _duplicates(self, files: Sequence[Location], cleaned: Sequence[CleanCounts]) -> dict[str, Location]:
        folder = self.work.stage(DUPLICATES)
        targets = {language: folder / f"{language}.npy" for language in self.corpus.languages}
        shards = []
        for language, target in targets.items():
            own = self._own(language)
            lines = sum(cleaned[number]["kept"] for number in own)
            work = partial(duplicates_shard, [files[number] for number in own], target, lines)
            shards.append(Shard(language, lines, target, work))
        self._do(DUPLICATES, shards, " lines")
        return targets

    def _models(self) -> tuple[dict[str, Path], dict[str, dict[str, Any]]]:
        folder = self.work.stage(MODELS)
        shards = []
        for language, paths in self.corpus.references.items():
            target = folder / f"{language}.safetensors"
            work = partial(model_shard, paths, target, self.settings, language)
            shards.append(Shard(language, sum(map(size, paths)), target, work))
        facts = self._do(MODELS, shards, "B") if shards else []
        made = {shard.name: self._here(shard.output) for shard in shards}
        return {**self.corpus.models, **made}, {
            shard.name: dict(found) for shard, found in zip(shards, facts, strict=True)
        }

    def _here(self, model: Location) -> Path:
        """A model as a local file."""
        if isinstance(model, Path):
            return model
        copy = self.work.scratch / model.name
        with writing(copy):
            fetch(model, copy)
        return copy

    def _score(
        self,
        files: Sequence[Location],
        cleaned: Sequence[CleanCounts],
        codes: dict[str, Location],
        models: dict[str, Path],
    ) -> tuple[list[Location], list[ScoreCounts]]:
        targets = self._named(SCORE)
        done = dict.fromkeys(self.corpus.languages, 0)
        total = {
            language: sum(cleaned[number]["kept"] for number in self._own(language))
            for language in self.corpus.languages
        }
        shards = []
        for source, file, target, counts in zip(self.corpus.sources, files, targets, cleaned, strict=True):
            language = source.language
            identifier = None if language in self.settings.unchecked else self.corpus.identifier
            work = partial(
                score_shard, file, (codes[language], total[language], done[language]), target, language,
                identifier, self.settings.min_language_score, models.get(language),
            )  # fmt: skip
            shards.append(Shard(target.stem, counts["kept"], target, work))
            done[language] += counts["kept"]
        return targets, [cast(ScoreCounts, counts) for counts in self._do(SCORE, shards, " lines")]

    def _own(self, language: str) -> list[int]:
        """The numbers of a language's sources."""
        return [number for number, source in enumerate(self.corpus.sources) if source.language == language]
