"""Stages 7 and 8: splits, leakage, response sets, Parquet files; then the report of all.

Splits are 80/10/10 by a stable hash (Zhang et al. 2021, section 2). The hash split of a folder of pairs
(`mrs_datasets.readers.pairs.pairs.split_of`) uses the message's text. Here it uses the keys that the join made from the
ids: a thread has many messages, and an example is more than its message.

A language is written in parts of about as many pairs each, by all workers: each part has its own Parquet files, which
do not depend on the workers, and counts of its replies, in batches by the hash of the text. Replies are counted exactly
(section 2.1): as many shards as there are parts each sum the counts of one hash, and another one ranks what is left.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.stages import (
    Advance,
    Engine,
    Shard,
    ShardCounts,
    read_batches,
    read_codes,
    read_pairs,
    run_stage,
    summed,
    write_batches,
)
from mrs_datasets.builders.pipeline.work_folder import RESUME, remove_leftovers, writing
from mrs_datasets.builders.reddit.duplicates import KEPT_CODE
from mrs_datasets.builders.reddit.partition import mix, stable_hashes
from mrs_datasets.builders.reddit.plan import KEPT, PAGE, BucketPairs, Build, Outcomes, Part, Settings, languages_with
from mrs_datasets.prepared.funnel import funnel_page
from mrs_datasets.prepared.report import REPORT, Configs, Report
from mrs_datasets.prepared.responses import response_table
from mrs_datasets.prepared.schema import MRS, SPLITS, responses_config
from mrs_datasets.prepared.writer import SplitWriter, finish_prepared, join_files
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, atomic_write
from mrs_suggest.common.io.storage import Location, atomic_target
from mrs_suggest.common.text.languages import LANGUAGES

STAGE = "write"
RARE = "language with too few pairs"
LACKING = "language without a split or a response set"
REPLIES = "replies.arrow"  # in the folder of a part
PART_PAIRS = 2_000_000  # of a part: its training file has about 200 MB
RUN_BYTES = 128 << 20  # of counts in memory; summing and sorting them take as much again, twice
KEYS = {"thread": "thread", "example": "order"}  # how to split -> the column of 64-bit keys that decides
COUNTED = pa.schema([("reply", pa.string()), ("count", pa.int64())])
_TABLE_BYTES = 1024  # overhead of a table in memory
_TENTHS = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2)  # of the pairs: positions in SPLITS

Jobs: TypeAlias = dict[str, tuple[int, Callable[[Path, Advance], ShardCounts]]]  # name -> size, work


def write_data_set(
    build: Build,
    pairs: BucketPairs,
    outcomes: Outcomes,
    codes: Mapping[str, tuple[Location, int]],
    engine: Engine,
    out: Location,
    overwrite: bool,
) -> dict[str, Any]:
    """Write the data set and its report, whole or not at all; return the report.

    Args:
        codes: what `find_duplicates` returned; empty: all pairs stay.
    """
    build.work.stage(STAGE)
    folder, settings = build.work.scratch / STAGE, build.settings
    chosen = _chosen_languages(build, outcomes)
    parts: dict[str, dict[str, Part]] = {}
    jobs: Jobs = {}
    for language in chosen:
        own = enumerate(Part.divide(pairs, language, PART_PAIRS))
        of = parts[language] = {f"{language}.{number:05d}": part for number, part in own}
        for name, part in of.items():
            work = partial(write_part, part, codes.get(language), language, settings, len(of))
            jobs[name] = part.pairs, work
    written = _run(build, engine, " pairs", jobs)
    found = {language: [written[name] for name in of] for language, of in parts.items()}
    rows = {
        language: summed({split: entry["rows"] for split, entry in part["splits"].items()} for part in of)
        for language, of in found.items()
    }
    lacking = {language: lack for language in chosen if (lack := _lacking_split(rows[language], settings))}
    names = {language: list(of) for language, of in parts.items() if language not in lacking}
    responses = _write_response_sets(build, engine, names, rows)
    where = "in training" if settings.responses_from == "training" else "in all splits together"
    few = f"no reply occurs {settings.min_reply_count} times {where}; lower --min-reply-count"
    lacking |= {language: few for language, entry in responses.items() if not entry["rows"]}
    kept = _leave_out(build, chosen, lacking)
    build.funnel.leakage = {language: dict(summed(part["leakage"] for part in found[language])) for language in kept}
    if versions := engine.about():
        build.funnel.about["engine"] = versions
    report = Report("reddit", settings.as_dict(), notes=build.funnel.warnings)
    report.extra["pipeline"] = build.funnel.as_dict
    record = MRS.with_context(settings.context)
    record = record.covering([name for language in kept for name in (language, responses_config(language))])
    remove_leftovers(out, "partial")  # the replaced data set stays until the new one is there
    with atomic_target(out, overwrite, REPORT, RESUME) as target, writing(out):
        layout: Configs = {}  # of links, so that a resumed build finds the files of its work where they are
        for language in kept:
            of_split = {
                split: [(folder / name, written[name]["splits"][split]) for name in names[language]] for split in SPLITS
            }
            layout[language] = {split: join_files(target, language, split, files) for split, files in of_split.items()}
            config, files = responses_config(language), [(folder / language, responses[language])]
            layout[config] = {"train": join_files(target, config, "train", files)}
        ordered = {config: layout[config] for config, _, _ in record.configs() if config in layout}
        result = dict(finish_prepared(target, ordered, report, record))
        atomic_write(target / PAGE, funnel_page(result))
    return result


def _run(build: Build, engine: Engine, unit: str, jobs: Jobs) -> dict[str, ShardCounts]:
    """Do jobs, each of which writes the file or folder of its name; return their counts."""
    folder = build.work.scratch / STAGE
    shards = [Shard(name, size, folder / name, partial(work, folder / name)) for name, (size, work) in jobs.items()]
    return dict(zip(jobs, run_stage(build.work, STAGE, shards, engine, unit), strict=True))


def _write_response_sets(
    build: Build, engine: Engine, names: Mapping[str, Sequence[str]], rows: Mapping[str, Counter[str]]
) -> dict[str, ShardCounts]:
    """Write the response sets of languages, by the names of their parts and their rows by split; return their entries
    in the report."""
    folder, settings = build.work.scratch / STAGE, build.settings
    jobs: Jobs = {
        f"{name}.replies": (1, partial(count_part, [folder / part / REPLIES for part in of], number, settings))
        for of in names.values()
        for number, name in enumerate(of)
    }
    counted = _run(build, engine, " parts", jobs)
    sets: Jobs = {}
    for language, of in names.items():
        pairs = rows[language][SPLITS[0]] if settings.responses_from == "training" else rows[language].total()
        distinct = sum(counted[f"{name}.replies"]["distinct"] for name in of)
        files = [folder / f"{name}.replies" for name in of]
        sets[language] = (1, partial(write_responses, files, language, settings.max_responses, pairs, distinct))
    return _run(build, engine, " languages", sets)


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


def _leave_out(build: Build, languages: Sequence[str], lacking: Mapping[str, str]) -> list[str]:
    """The languages that have all splits and a response set; the others are left out with a warning."""
    for language in (language for language in languages if language in lacking):
        build.funnel.leave_out(language, LACKING)
        build.funnel.warnings.append(f"{language} was left out: {lacking[language]}.")
        build.say(f"warning: {build.funnel.warnings[-1]}")
    written = [language for language in languages if language not in lacking]
    if not written:
        raise InputError(f"{languages[0]}: {lacking[languages[0]]}.")
    return written


def _lacking_split(rows: Counter[str], settings: Settings) -> str:
    if missing := [split for split in SPLITS if not rows[split]]:
        other = ", or --split-by example" if settings.split_by == "thread" else ""
        return (
            f"none of its {rows.total():,} pairs falls into {' or '.join(missing)}; raise --min-examples, "
            f"pass more months{other}"
        )
    return ""


# --- One part of a language -----------------------------------------------------------------------------------------


def write_part(
    part: Part,
    codes: tuple[Location, int] | None,
    language: str,
    settings: Settings,
    parts: int,
    target: Path,
    advance: Advance,
) -> ShardCounts:
    """Write the pairs of a part into the folder `target`, and counts of its replies.

    Args:
        parts: of the language; the counts are in as many parts.

    Returns:
        `splits`: rows and files of each; `leakage`: how many threads, messages (comments that are answered) and
        comments (on either side) there are, and how many of each are in several splits.
    """
    leakage: Counter[str] = Counter()
    record = MRS.with_context(settings.context).covering([language])
    columns, schema = record.kind_of(language).columns, record.schema(language)
    found = None if codes is None else read_codes(*codes)  # once: a remote file is read as a whole
    with writing(target), atomic_folder(target, overwrite=True) as folder, ExitStack() as opened:
        writers = [opened.enter_context(SplitWriter(folder, language, split, schema)) for split in SPLITS]

        def replies() -> Iterator[pa.ChunkedArray]:
            for path, before, start, rows in part.slices:
                table = read_pairs(path, language, (*columns, "thread", "order", "parent"))[0].slice(start, rows)
                if found is not None:
                    table = table.filter(pa.array(found[before : before + rows] == KEPT_CODE))
                numbers = split_numbers(table[KEYS[settings.split_by]].to_numpy())
                count_leakage(table, numbers, leakage)
                for number, writer in enumerate(writers):
                    of_split = table.select(columns).filter(pa.array(numbers == number))
                    if of_split.num_rows:
                        writer.write(of_split.cast(schema))
                        if number == 0 or settings.responses_from == "all":
                            yield of_split["reply"]
                advance(rows)

        write_batches(folder / REPLIES, COUNTED, counted_runs(replies(), parts))
        splits = {split: writer.finish() for split, writer in zip(SPLITS, writers, strict=True)}
    return {"splits": splits, "leakage": dict(leakage)}


def split_numbers(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int8]:
    """(n,) 64-bit keys -> (n,) positions in `SPLITS`; equal keys get equal splits, on every machine and version.

    >>> [SPLITS[number] for number in split_numbers(np.arange(6, dtype=np.uint64))]
    ['train', 'train', 'train', 'train', 'validation', 'validation']
    """
    return np.asarray(np.array(_TENTHS, dtype=np.int8)[mix(keys) % np.uint64(10)])


def count_leakage(pairs: pa.Table, splits: npt.NDArray[np.int8], leakage: Counter[str]) -> None:
    """Add the leakage in a bucket with the columns `thread`, `order` and `parent`, and (n,) positions in `SPLITS`."""
    thread, order, parent = (pairs[name].to_numpy() for name in ("thread", "order", "parent"))
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


# --- Counts of replies ----------------------------------------------------------------------------------------------


def counted_runs(replies: Iterable[pa.ChunkedArray | pa.Array], parts: int) -> Iterator[pa.RecordBatch]:
    """Counts of replies, without nulls, in bounded memory, with the schema `COUNTED`: runs of `parts` batches each.

    A reply is in the batch of the same number in every run, so that parts can be summed one by one, or by several
    workers (`frequent_replies`).
    """
    held, size = list[pa.Table](), 0
    for batch in replies:
        rows = max(1, len(batch) * RUN_BYTES // (2 * max(1, batch.nbytes)))
        for start in range(0, len(batch), rows):
            part = batch[start : start + rows].cast(pa.large_string())
            held.append(pa.table([part, pa.repeat(pa.scalar(1, pa.int64()), len(part))], COUNTED.names))
            size += held[-1].nbytes + _TABLE_BYTES
            if size > RUN_BYTES:
                held = [_summed(held)]
                if 2 * held[0].nbytes > RUN_BYTES:  # else many replies repeat, and there is room for as much again
                    yield from _in_order_of_parts(held.pop(), parts)
                size = sum(table.nbytes + _TABLE_BYTES for table in held)
    if held:
        yield from _in_order_of_parts(_summed(held), parts)


def _in_order_of_parts(counted: pa.Table, parts: int) -> Iterator[pa.RecordBatch]:
    of = stable_hashes(counted["reply"].combine_chunks()) % np.uint64(parts)
    order = np.argsort(of, kind="stable")
    ordered = counted.take(pa.array(order)).cast(COUNTED).combine_chunks()
    for start, end in pairwise(np.searchsorted(of[order], np.arange(parts + 1, dtype=np.uint64)).tolist()):
        yield pa.RecordBatch.from_arrays([ordered[name].chunk(0)[start:end] for name in COUNTED.names], schema=COUNTED)


def frequent_replies(files: Sequence[Path], part: int, parts: int, least: int, most: int) -> tuple[pa.Table, int]:
    """The `most` most frequent replies of a part of `counted_runs` that were given at least `least` times, with the
    schema `COUNTED`; and how many different replies the part has."""
    batches = [batch for file in files for batch in read_batches(file, COUNTED.names, slice(part, None, parts))]
    read = pa.Table.from_batches(batches, COUNTED)
    counted = read if len(batches) == 1 else _summed([read])  # the replies of one batch all differ
    return _ranked(counted.filter(pc.greater_equal(counted["count"], least)), most).cast(COUNTED), counted.num_rows


def best_replies(parts: Sequence[pa.Table], most: int) -> list[tuple[str, int]]:
    """The `most` most frequent replies of all parts with their counts, ties in the order of the text."""
    best = _ranked(pa.concat_tables(parts), most)
    return list(zip(best["reply"].to_pylist(), best["count"].to_pylist(), strict=True))


def count_part(files: Sequence[Path], part: int, settings: Settings, target: Path, advance: Advance) -> ShardCounts:
    """Write the most frequent replies of a part of a language, from the counts of all its parts, to `target`."""
    best, distinct = frequent_replies(files, part, len(files), settings.min_reply_count, settings.max_responses)
    write_batches(target, COUNTED, best.to_batches())
    advance(1)
    return {"distinct": distinct}


def write_responses(
    files: Sequence[Path], language: str, most: int, pairs: int, distinct: int, target: Path, advance: Advance
) -> ShardCounts:
    """Write the response set of a language from the files of `count_part` into the folder `target`; return its entry in
    the report. `pairs` and `distinct`: see `response_table`."""
    tables = [pa.Table.from_batches(read_batches(file, COUNTED.names), COUNTED) for file in files]
    config = responses_config(language)
    with (
        writing(target),
        atomic_folder(target, overwrite=True) as folder,
        SplitWriter(folder, config, "train", MRS.schema(config)) as writer,
    ):
        writer.write(response_table(best_replies(tables, most), pairs, distinct))
        entry = writer.finish()
    advance(1)
    return dict(entry)


def _ranked(counted: pa.Table, most: int) -> pa.Table:
    return counted.sort_by([("count", "descending"), ("reply", "ascending")])[:most]


def _summed(tables: Sequence[pa.Table]) -> pa.Table:
    """One row per reply, in no particular order; replies as `large_string`."""
    # A quarter of the time of Arrow's `group_by`. The sums are exact, since they stay below 2^53.
    counted = pa.concat_tables(tables)
    replies = counted["reply"].cast(pa.large_string()).dictionary_encode().combine_chunks()
    sums = np.bincount(replies.indices.to_numpy(), counted["count"].to_numpy(), len(replies.dictionary))
    return pa.table([replies.dictionary, pa.array(sums.astype(np.int64))], COUNTED.names)
