"""CPU-seconds of the stages of a build that all workers share, with one and with two of them; for bench_scale."""

from __future__ import annotations

import os
import resource
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

BUCKETS = 8
MEMORY = 8e9  # of a build here
REPEATED = 5  # times that a shared stage is measured
VOCABULARY = 1024  # pairs whose words are counted


def cpu_seconds(who: int = resource.RUSAGE_SELF) -> float:
    """User and system time of this process, or of its children that have ended."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def paired(folder: Path, profile: str) -> tuple[Any, Any, Any]:
    """A build with its pairs, the files of the pairs, and how many there are."""
    from mrs_datasets.builders.pipeline.stages import Workers
    from mrs_datasets.builders.pipeline.work_folder import WorkFolder, work_place
    from mrs_datasets.builders.reddit import months, pairs
    from mrs_datasets.builders.reddit.plan import Build, Funnel, find_dumps, make_build_plan, make_settings

    model = Path(os.environ.get("MRS_LANGUAGE_MODEL", folder / "small.bin"))
    plan = make_build_plan(find_dumps([f"{folder}/dumps/RC_*"]), folder / profile, 1, int(MEMORY), 8 * BUCKETS)
    settings = replace(make_settings(profile, min_examples=50, min_reply_count=1), buckets=plan.buckets)
    work = WorkFolder(work_place(folder / profile), {}, resume=False, overwrite=False)
    running = Build(plan, settings, model, work, Funnel({"profile": profile, "departures": {}}), lambda _: None)
    with Workers(1) as engine:
        return running, *pairs.make_pairs(running, months.read_months(running, engine), engine)


def write_twice(folder: Path, pairs_of_part: int) -> dict[str, Any]:
    """CPU-seconds of writing with one and with two workers."""
    from mrs_datasets.builders.reddit import write
    from mrs_datasets.builders.reddit.plan import Part, languages_with

    running, buckets, outcomes = paired(folder, "paper")
    write.PART_PAIRS = pairs_of_part

    def job(engine: Any, workers: int) -> dict[Path, bytes]:
        out = folder / f"{workers}"
        shutil.rmtree(out, ignore_errors=True)
        write.write_data_set(running, buckets, Counter(outcomes), {}, engine, out, False)
        return {path.relative_to(out): path.read_bytes() for path in out.rglob("*.parquet")}

    languages = languages_with(outcomes, running.settings.min_examples)
    parts = sum(len(Part.divide(buckets, language, pairs_of_part)) for language in languages)
    return {"pairs": outcomes.total(), "parts": parts, **twice(running, write.STAGE, job)}


def search_twice(folder: Path) -> dict[str, Any]:
    """CPU-seconds of the search for duplicates with one worker and, all languages shared, with two."""
    from mrs_datasets.builders.reddit import duplicates
    from mrs_datasets.builders.reddit.plan import languages_with

    running, buckets, outcomes = paired(folder, "clean")
    duplicates.VOCABULARY, alone = VOCABULARY, duplicates.FILE_PAIRS
    smallest = min(outcomes[code, "kept"] for code in languages_with(outcomes, running.settings.min_examples))

    def job(engine: Any, workers: int) -> dict[Path, bytes]:
        duplicates.FILE_PAIRS = alone if workers == 1 else smallest - 1
        codes = duplicates.find_duplicates(running, buckets, Counter(outcomes), engine)
        return {path: path.read_bytes() for path, _ in codes.values()}

    return {"pairs": outcomes.total(), **twice(running, duplicates.STAGE, job)}


def twice(running: Any, stage: str, job: Callable[[Any, int], dict[Path, bytes]]) -> dict[str, Any]:
    """The least CPU-seconds of a stage with one and with two workers, which must write the same."""
    from mrs_datasets.builders.pipeline.stages import Workers
    from mrs_datasets.builders.reddit.plan import Funnel

    found: dict[str, Any] = {}
    written = []
    for workers in (1, 2) * REPEATED:
        running.work.forget(stage)
        running.funnel = Funnel({"profile": running.settings.profile, "departures": {}})
        before, children = cpu_seconds(), cpu_seconds(resource.RUSAGE_CHILDREN)
        with Workers(workers) as engine:
            written = [*written[-1:], job(engine, workers)]
        seconds = {"own": cpu_seconds() - before, "workers": cpu_seconds(resource.RUSAGE_CHILDREN) - children}
        least = found.get(f"{workers}", seconds)
        found[f"{workers}"] = {who: round(min(taken, least[who]), 3) for who, taken in seconds.items()}
        assert written[0] == written[-1], f"{stage}: two workers write other bytes than one"
    return {**found, "files": len(written[-1])}
