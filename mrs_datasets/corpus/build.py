"""A corpus for pretraining: its stages in order, resumable at every file (Wenzek et al. 2020, "CCNet", section 3)."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mrs_datasets.builders.pipeline.stages import Engine, Shard, ShardCounts, Workers, name_and_bytes, run_stage, summed
from mrs_datasets.builders.pipeline.work_folder import (
    RESUME,
    WorkFolder,
    remove_finished,
    remove_leftovers,
    work_place,
    writing,
)
from mrs_datasets.corpus.settings import Corpus, CorpusSettings
from mrs_datasets.corpus.shards import clean_shard, duplicates_shard, model_shard, score_shard
from mrs_datasets.corpus.write import REASONS, corpus_card, write_language
from mrs_suggest.common import __version__
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.provenance import versions
from mrs_suggest.common.io.files import atomic_write, file_sha256
from mrs_suggest.common.io.storage import (
    Location,
    atomic_target,
    fetch,
    is_unfinished,
    read_object,
    require_free,
    require_writable,
    sha256_of,
    size,
)

WORK = 1  # version of the work folder's layout and of the rules: increment it if either changes
REPORT, CARD = "corpus.json", "README.md"
MODELS = "models"


def build_corpus(
    corpus: Corpus,
    settings: CorpusSettings,
    out: Location,
    *,
    workers: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Write the folder `out` and return its report.

    The work is in `.NAME.build`, next to `out`, until the corpus is complete. An interrupted run continues with
    `resume` and ends with the same bytes as an uninterrupted one.

    Args:
        out: a local folder, or a remote one with a scratch folder (`mrs_suggest.common.io.storage.location`).

    Raises:
        InputError: a file cannot be read, the disk is full, a worker was killed, or no line stays. Finished work stays
            for `resume`.
    """
    if isinstance(out, Path):
        out = Path(os.path.realpath(out))
    else:
        require_writable(out)
    identity = json.loads(json.dumps(_identity(corpus, settings)))
    if resume and (report := _whole_already(out, identity, settings)):
        remove_finished(out)
        return report
    require_free(out, overwrite, REPORT)
    work = WorkFolder(work_place(out), identity, resume, overwrite)
    if not isinstance(out, Path):
        out = replace(out, scratch=work.scratch)
    with Workers(workers) as engine:
        staged = _run_stages(corpus, settings, work, engine)
    remove_leftovers(out, "partial")  # a replaced corpus stays until the new one is there
    with atomic_target(out, overwrite, REPORT, RESUME) as folder, writing(out):
        languages = _write_languages(corpus, settings, folder, staged, say)
        report = _report(corpus, settings, identity, staged, languages)
        atomic_write(folder / CARD, corpus_card(report))
        atomic_write(folder / REPORT, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    work.remove()
    remove_leftovers(out, "partial", "old")
    return report


def _identity(corpus: Corpus, settings: CorpusSettings) -> dict[str, Any]:
    """Everything that the work depends on; `keep` matters only when the lines are written."""
    values = settings.as_dict()
    del values["keep"]
    identifier = corpus.identifier
    return {
        "format of the work": WORK,
        "settings": {**values, "unchecked": list(corpus.unchecked)},
        "texts": [[source.language, name_and_bytes(source.path)] for source in corpus.sources],
        "language model": [name_and_bytes(identifier.path), file_sha256(identifier.path)] if identifier else None,
        "models": {language: file_sha256(path) for language, path in corpus.models.items()},
        "references": {
            language: [[name_and_bytes(path), sha256_of(path)] for path in paths]
            for language, paths in corpus.references.items()
        },
    }


def _whole_already(out: Location, identity: dict[str, Any], settings: CorpusSettings) -> dict[str, Any] | None:
    """The report at `out`, if it is of this very corpus, interrupted after its last step."""
    report = None if is_unfinished(out) else read_object(out / REPORT)
    wanted = {"work": identity, "settings": settings.as_dict(), "version": __version__}
    return report if report and wanted.items() <= report.items() else None


@dataclass(frozen=True)
class Staged:
    """The results of the stages.

    Attributes:
        cleaned, scored: counts of each source, in their order.
        lines: files of lines with perplexities, of each source.
    """

    cleaned: list[ShardCounts]
    scored: list[ShardCounts]
    lines: list[Location]
    models: dict[str, Path]
    trained: dict[str, dict[str, Any]]


def _run_stages(corpus: Corpus, settings: CorpusSettings, work: WorkFolder, engine: Engine) -> Staged:
    """Run the stages that are divided into shards; finished shards are not run again."""

    def run(stage: str, shards: Sequence[Shard], unit: str) -> list[ShardCounts]:
        return run_stage(work, stage, shards, engine, unit)

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
    cleaned = run("clean", shards, "B")

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
    return Staged(cleaned, run("score", shards, " lines"), scored, models, trained)


def _local(model: Location, work: WorkFolder) -> Path:
    if isinstance(model, Path):
        return model
    copy = work.scratch / model.name
    with writing(copy):
        fetch(model, copy)
    return copy


def _write_languages(
    corpus: Corpus, settings: CorpusSettings, folder: Path, staged: Staged, say: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """Write each language's lines and model; return the counts and files by language."""
    languages: dict[str, dict[str, Any]] = {}
    total = sum(counts["kept"] for counts in staged.scored)
    with tqdm(total=total, desc="write", unit=" lines", unit_scale=True) as bar:
        for language in corpus.languages:
            own = [number for number, source in enumerate(corpus.sources) if source.language == language]
            lines = [staged.lines[number] for number in own]
            facts = write_language(folder, language, lines, settings.keep, bar.update)
            languages[language] = _funnel(
                [staged.cleaned[number] for number in own], [staged.scored[number] for number in own], facts
            )
            if not facts["kept"]:
                say(f"warning: {language}: no line passes.")
            if language in staged.trained:
                (folder / MODELS).mkdir(exist_ok=True)
                shutil.copyfile(staged.models[language], folder / MODELS / f"{language}.safetensors")
    if not any(entry["kept"] for entry in languages.values()):
        reasons = ", ".join(
            f"{reason} {count:,}"
            for reason, count in summed(entry["dropped"] for entry in languages.values()).most_common(3)
        )
        raise InputError(f"no line passes ({reasons or 'the texts are empty'}); pass other texts, or change the rules.")
    return languages


def _funnel(cleaned: list[ShardCounts], scored: list[ShardCounts], facts: dict[str, Any]) -> dict[str, Any]:
    """A language's lines by outcome, and the facts of the files that were written."""
    dropped = summed([*(c["dropped"] for c in cleaned), *(s["dropped"] for s in scored), facts["dropped"]])
    lines = sum(counts["lines"] for counts in cleaned)
    if lines != facts["kept"] + dropped.total():
        raise AssertionError(f"{lines} lines were read, {facts['kept']} + {dropped} were counted")
    return {
        **facts,
        "lines": lines,
        "dropped": {reason: dropped[reason] for reason in REASONS if dropped[reason]},
        "other_languages": dict(summed(counts["languages"] for counts in scored).most_common()),
        "repaired": dict(summed(counts["repairs"] for counts in cleaned)),
    }


def _report(
    corpus: Corpus,
    settings: CorpusSettings,
    identity: dict[str, Any],
    staged: Staged,
    languages: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """`corpus.json`; it does not depend on interruptions."""
    texts = [
        {"language": one.language, **name_and_bytes(one.path), "sha256": counts["sha256"], "lines": counts["lines"]}
        for one, counts in zip(corpus.sources, staged.cleaned, strict=True)
    ]
    models: dict[str, dict[str, Any]] = {}
    for language, path in staged.models.items():
        models[language] = {"sha256": file_sha256(path), **staged.trained.get(language, {"file": path.name})}
        if language in corpus.references:
            models[language]["reference"] = [
                {**name_and_bytes(file), "sha256": sha256_of(file)} for file in corpus.references[language]
            ]
    return {
        "version": __version__,
        "versions": versions(),
        "settings": settings.as_dict(),
        "work": identity,
        "texts": texts,
        "models": models,
        "languages": languages,
    }
