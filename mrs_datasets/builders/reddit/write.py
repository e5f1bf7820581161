"""Stages 7 and 8, language by language: splits, leakage, response set, Parquet files; then the report of all.

Splits are 80/10/10 by a stable hash (Zhang et al. 2021, section 2). The hash split of a folder of pairs
(`mrs_datasets.readers.pairs.pairs.split_of`) uses the message's text. Here it uses the keys that the join made from the
ids: a thread has many messages, and an example is more than its message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.checked_files import read_codes, read_pairs
from mrs_datasets.builders.pipeline.stages import Advance, Engine, Shard, ShardCounts, run_stage
from mrs_datasets.builders.pipeline.work_folder import RESUME, remove_leftovers, writing
from mrs_datasets.builders.reddit.cleaning.columns import mix
from mrs_datasets.builders.reddit.cleaning.language import KEPT, Outcomes, languages_with
from mrs_datasets.builders.reddit.counts import ReplyCounts
from mrs_datasets.builders.reddit.duplicates import KEPT_CODE
from mrs_datasets.builders.reddit.funnel import MARKER, PAGE, funnel_page
from mrs_datasets.builders.reddit.plan import Build, Settings
from mrs_datasets.prepared.report import Configs, Report
from mrs_datasets.prepared.responses import response_table
from mrs_datasets.prepared.schema import MRS, PAIR_SCHEMA, SPLITS, responses_config
from mrs_datasets.prepared.writer import finish_prepared, take_over, write_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, atomic_write
from mrs_suggest.common.io.storage import Location, atomic_target
from mrs_suggest.common.text.languages import LANGUAGES

STAGE = "write"
RARE = "language with too few pairs"
LACKING = "language without a split or a response set"
COUNT_BYTES = 512 << 20  # for counting the replies of a language; the rest goes to disk
KEYS = {"thread": "thread", "example": "order"}  # how to split -> the column of 64-bit keys that decides
_TENTHS = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2)  # of the pairs: positions in SPLITS


def write_data_set(
    build: Build,
    pairs: Sequence[Location],
    outcomes: Outcomes,
    codes: Mapping[str, tuple[Location, int]],
    engine: Engine,
    out: Location,
    overwrite: bool,
) -> dict[str, Any]:
    """Write the data set and its report, whole or not at all; return the report.

    Args:
        pairs: the file of each bucket.
        codes: what `find_duplicates` returned; empty: all pairs stay.

    Raises:
        InputError: no language has enough pairs, all splits and a response set, or the disk is full.
    """
    build.work.stage(STAGE)
    folder, shards = build.work.scratch / STAGE, []
    for language in _chosen_languages(build, outcomes):
        work = partial(write_language, pairs, codes.get(language), language, build.settings, folder / language)
        shards.append(Shard(language, outcomes[language, KEPT], folder / language, work))
    found = run_stage(build.work, STAGE, shards, engine, " pairs", scale=True)
    counts = {shard.name: counted for shard, counted in zip(shards, found, strict=True)}
    written = _leave_out_lacking(build, counts)
    if versions := engine.about():
        build.funnel.about["engine"] = versions
    report = Report("reddit", build.settings.as_dict(), notes=build.funnel.warnings)
    report.extra["pipeline"] = build.funnel.as_dict
    record = MRS.covering([name for language in written for name in (language, responses_config(language))])
    remove_leftovers(out, "partial")  # the replaced data set stays until the new one is there
    with atomic_target(out, overwrite, MARKER, RESUME) as target, writing(out):
        layout: Configs = {}
        for language in written:
            take_over(folder / language, target, ())  # not moved: a resumed build finds finished languages here
            layout |= counts[language]["configs"]
        ordered = {config: layout[config] for config, _, _ in record.configs() if config in layout}
        result = dict(finish_prepared(target, ordered, report, record))
        atomic_write(target / PAGE, funnel_page(result))
    return result


def _chosen_languages(build: Build, outcomes: Outcomes) -> list[str]:
    """The languages with enough pairs, in the order of MRS; the pairs of the others are dropped."""
    funnel, least = build.funnel, build.settings.min_examples
    chosen = [code for code in LANGUAGES if code in languages_with(outcomes, least)]
    pairs = {language: count for (language, outcome), count in outcomes.items() if outcome == KEPT}
    rare = {language: count for language, count in pairs.items() if language not in chosen}
    for language, count in rare.items():
        outcomes[language, RARE] += count
        del outcomes[language, KEPT]
    funnel.add("enough pairs", sum(pairs.values()), {RARE: sum(rare.values())})
    for (language, outcome), count in sorted(outcomes.items()):
        if count:
            funnel.languages.setdefault(language, {})[outcome] = count
    if not chosen:
        most = sorted(rare.items(), key=lambda item: -item[1])[:5]
        found = ", ".join(f"{code} {count:,}" for code, count in most) or "none has any"
        raise InputError(f"no language has {least:,} pairs ({found}); lower --min-examples or pass more months.")
    return chosen


def _leave_out_lacking(build: Build, counts: Mapping[str, ShardCounts]) -> list[str]:
    """The languages that have all splits and a response set; the others are left out with a warning.

    Raises:
        InputError: none has.
    """
    funnel = build.funnel
    lacking = {language: found["lack"] for language, found in counts.items() if found["lack"]}
    for language, lack in lacking.items():
        funnel.leave_out(language, LACKING)
        funnel.warnings.append(f"{language} was left out: {lack}.")
        build.say(f"warning: {funnel.warnings[-1]}")
    written = [language for language in counts if language not in lacking]
    if not written:
        raise InputError(f"{next(f'{language}: {lack}' for language, lack in lacking.items())}.")
    funnel.leakage = {language: counts[language]["leakage"] for language in written}
    return written


# --- One language ---------------------------------------------------------------------------------------------------


def write_language(
    files: Sequence[Location],
    codes: tuple[Location, int] | None,
    language: str,
    settings: Settings,
    target: Path,
    advance: Advance,
) -> ShardCounts:
    """Write the splits and the response set of a language, as a prepared folder that has no other language.

    Returns:
        `lack`: why it was not written, with a remedy, or empty; `leakage`: how many threads, messages (comments that
        are answered) and comments (on either side) there are, and how many of each are in several splits; `configs`:
        the files.

    Raises:
        InputError: a file is damaged, or the disk reports an error.
    """
    rows: Counter[str] = Counter()
    leakage: Counter[str] = Counter()
    pairs = partial(_kept_pairs, files, language, codes)
    configs: Configs = {}
    with writing(target), atomic_folder(target, overwrite=True) as folder:
        with ReplyCounts(COUNT_BYTES, folder) as replies:
            for table in pairs(("reply", "thread", "order", "parent")):
                table = assign_splits(table, settings.split_by)
                for entry in pc.value_counts(table["split"]).to_pylist():
                    rows[entry["values"]] += entry["counts"]
                count_leakage(table, leakage)
                if settings.responses_from == "training":
                    table = table.filter(pc.equal(table["split"], SPLITS[0]))
                replies.add(table["reply"])
            frequent = replies.frequent(settings.min_reply_count, settings.max_responses)
            responses = response_table(frequent, replies.pairs, replies.distinct)
        lack = _lack(rows, responses, settings)

        def chunks() -> Iterator[tuple[str, str, pa.Table]]:
            for table in pairs(("message", "reply", KEYS[settings.split_by])):
                split = assign_splits(table, settings.split_by)
                for name in SPLITS:
                    part = split.filter(pc.equal(split["split"], name))
                    if part.num_rows:
                        yield language, name, part.select(["message", "reply"]).cast(PAIR_SCHEMA)
                advance(table.num_rows)
            yield responses_config(language), "train", responses

        if not lack:
            configs = write_prepared(folder, chunks(), Report("reddit"), MRS, "the dumps")["configs"]
    return {"lack": lack, "leakage": dict(leakage), "configs": configs}


def _lack(rows: Counter[str], responses: pa.Table, settings: Settings) -> str:
    if missing := [split for split in SPLITS if not rows[split]]:
        other = ", or --split-by example" if settings.split_by == "thread" else ""
        return (
            f"none of its {rows.total():,} pairs falls into {' or '.join(missing)}; raise --min-examples, "
            f"pass more months{other}"
        )
    if not responses.num_rows:
        where = "in training" if settings.responses_from == "training" else "in all splits together"
        return f"no reply occurs {settings.min_reply_count} times {where}; lower --min-reply-count"
    return ""


def _kept_pairs(
    files: Sequence[Location], language: str, codes: tuple[Location, int] | None, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """The kept pairs of a language, bucket by bucket: all pairs of a thread are in one bucket."""
    staying = None if codes is None else pa.array(read_codes(*codes, "pairs") == KEPT_CODE)
    done = 0
    for path in files:
        table, _ = read_pairs(path, language, columns)
        done += table.num_rows
        yield table if staying is None else table.filter(staying[done - table.num_rows : done])


def assign_splits(pairs: pa.Table, by: str) -> pa.Table:
    """Append the column `split` to `pairs`; rows and order stay.

    Args:
        pairs: with the column `thread` (by="thread") or `order` (by="example"), uint64.
        by: "thread": all pairs of a thread are in one split, so that no test message was seen as a training reply;
            "example": every pair on its own, as in the paper.
    """
    numbers = split_numbers(pairs[KEYS[by]].to_numpy())
    column = pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(SPLITS, pa.string()))
    return pairs.append_column("split", column.cast(pa.string()))


def split_numbers(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int8]:
    """(n,) 64-bit keys -> (n,) positions in `SPLITS`; equal keys get equal splits, on every machine and version.

    >>> [SPLITS[number] for number in split_numbers(np.arange(6, dtype=np.uint64))]
    ['train', 'train', 'train', 'train', 'validation', 'validation']
    """
    return np.asarray(np.array(_TENTHS, dtype=np.int8)[mix(keys) % np.uint64(10)])


def count_leakage(pairs: pa.Table, leakage: Counter[str]) -> None:
    """Add the leakage in a bucket with the columns `thread`, `order`, `parent` and `split`."""
    thread, order, parent = (pairs[name].to_numpy() for name in ("thread", "order", "parent"))
    splits = pc.index_in(pairs["split"], pa.array(SPLITS)).to_numpy().astype(np.uint8)
    own = mix(thread)  # equal ids of different threads differ
    for name, keys, of in (
        ("threads", thread, splits),
        ("messages", own ^ parent, splits),
        ("comments", np.concatenate([own ^ parent, own ^ order]), np.tile(splits, 2)),
    ):
        distinct, inverse = np.unique(keys, return_inverse=True)
        there = np.zeros((len(SPLITS), len(distinct)), bool)
        there[of, inverse] = True
        leakage[name] += len(distinct)
        leakage[f"{name} in several splits"] += int((there.sum(axis=0) > 1).sum())
