"""The last stage of a build, done in one go: languages with enough pairs, splits, response sets, Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.checked_files import read_codes
from mrs_datasets.builders.pipeline.stages import Shard
from mrs_datasets.builders.pipeline.work_folder import RESUME, remove_leftovers, writing
from mrs_datasets.builders.reddit.cleaning.duplicates import EXACT, KEPT_CODE, NEAR
from mrs_datasets.builders.reddit.cleaning.language import KEPT, languages_with
from mrs_datasets.builders.reddit.pipeline import Build, Counts
from mrs_datasets.builders.reddit.report_page import PAGE, funnel_page
from mrs_datasets.builders.reddit.shards.pair_files import read_pairs
from mrs_datasets.builders.reddit.shards.shard_stages import DUPLICATES, kept, pair_files
from mrs_datasets.builders.reddit.shards.split import KEYS, assign_splits
from mrs_datasets.builders.reddit.survey import COLUMNS, survey
from mrs_datasets.prepared.prepare import MARKER
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.schema import MRS, PAIR_SCHEMA, SPLITS, responses_config
from mrs_datasets.prepared.writer import write_prepared
from mrs_datasets.readers import Chunks
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.storage import atomic_target
from mrs_suggest.common.text.languages import LANGUAGES

RARE = "language with too few pairs"
LACKING = "language without a split or a response set"


def write_data_set(build: Build, shards: Sequence[Shard], counts: Counts) -> None:
    """Write the data set and its report, whole or not at all.

    Raises:
        InputError: no language has enough pairs, all splits and a response set, or the disk is full.
    """
    languages = chosen_languages(build)
    report = Report("reddit", dict(build.settings.as_dict()))
    remove_leftovers(build.out, "partial")  # the replaced data set stays until the new one is there
    with atomic_target(build.out, build.overwrite, MARKER, RESUME) as folder, writing(build.out):
        report.extra["pipeline"] = build.pipeline.as_dict  # complete once the chunks are written
        build.report = dict(write_prepared(folder, _chunks(build, languages, report), report, MRS, "the dumps"))
        atomic_write(folder / PAGE, funnel_page(build.report))


def chosen_languages(build: Build) -> list[str]:
    """The languages with enough pairs, in the order of MRS; the pairs of the others are dropped."""
    outcomes, settings, pipeline = build.outcomes, build.settings, build.pipeline
    chosen = [code for code in LANGUAGES if code in languages_with(outcomes, settings.min_examples)]
    came = kept(outcomes)
    for language in {language for language, outcome in outcomes if outcome == KEPT} - set(chosen):
        outcomes[language, RARE] += outcomes.pop((language, KEPT))
    pipeline.add("enough pairs", came, {RARE: came - kept(outcomes)})
    pipeline.count({key: count for key, count in outcomes.items() if count})
    if not chosen:
        most = {language: count for (language, outcome), count in outcomes.items() if outcome == RARE}
        found = ", ".join(f"{code} {count:,}" for code, count in sorted(most.items(), key=lambda item: -item[1])[:5])
        raise InputError(
            f"no language has {settings.min_examples:,} pairs ({found or 'none has any'}); lower --min-examples or "
            "pass more months."
        )
    return chosen


def _chunks(build: Build, languages: list[str], report: Report) -> Chunks:
    """Splits and response set of every language that has all of them; others are left out with a warning.

    Raises:
        InputError: no language has all of them.
    """
    settings, pipeline = build.settings, build.pipeline
    lacking: list[str] = []
    for language in languages:
        pairs = partial(_kept_pairs, build, language, dict(pipeline.languages[language]))
        found = survey(pairs(COLUMNS), settings, build.work.scratch / "replies")
        if lack := found.lack(settings):
            lacking.append(f"{language}: {lack}")
            leave_out(build, language, lack)
            continue
        pipeline.leakage[language] = dict(found.leakage)
        for table in pairs(("message", "reply", KEYS[settings.split_by])):
            for split, part in split_tables(table, settings.split_by):
                yield language, split, part
        yield responses_config(language), "train", found.responses
    if len(lacking) == len(languages):
        raise InputError(f"{lacking[0]}.")
    report.notes += pipeline.warnings


def leave_out(build: Build, language: str, lack: str) -> None:
    """Leave out a language that cannot be written, with a warning that says why."""
    build.pipeline.leave_out(language, LACKING)
    build.pipeline.warnings.append(f"{language} was left out: {lack}.")
    build.say(f"warning: {build.pipeline.warnings[-1]}")


def _kept_pairs(build: Build, language: str, outcomes: Mapping[str, int], columns: Sequence[str]) -> Iterator[pa.Table]:
    """The kept pairs of a language, bucket by bucket."""
    staying: pa.BooleanArray | None = None
    if build.settings.clean:
        pairs = sum(outcomes.get(outcome, 0) for outcome in (KEPT, EXACT, NEAR))
        staying = pa.array(read_codes(build.work.folder / DUPLICATES / f"{language}.npy", pairs, "pairs") == KEPT_CODE)
    done = 0
    for path in pair_files(build.work, build.plan.buckets):
        table, _ = read_pairs(path, language, columns)
        done += table.num_rows
        yield table if staying is None else table.filter(staying[done - table.num_rows : done])


def split_tables(pairs: pa.Table, by: str) -> Iterator[tuple[str, pa.Table]]:
    """The splits of a bucket's pairs that have rows, as they are written."""
    split = assign_splits(pairs, by)
    for name in SPLITS:
        part = split.filter(pc.equal(split["split"], name))
        if part.num_rows:
            yield name, part.select(["message", "reply"]).cast(PAIR_SCHEMA)
