"""Stages 7 and 8, language by language: splits, leakage, response set, Parquet files; then the report of all.

Splits are 80/10/10 by a stable hash (Zhang et al. 2021, section 2). The hash split of a folder of pairs
(`mrs_datasets.readers.pairs.pairs.split_of`) uses the message's text. Here it uses the keys that the join made from the
ids: a thread has many messages, and an example is more than its message.

Replies are counted exactly in bounded memory (section 2.1): in memory until the budget is used up, and then appended
to a temporary file, in parts by the hash of the text. All counts of a reply are in one part, so that counts and totals
are exact, and only one part is in memory at a time.
"""

from __future__ import annotations

import io
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.stages import Advance, Engine, Shard, ShardCounts, read_codes, read_pairs, run_stage
from mrs_datasets.builders.pipeline.work_folder import RESUME, remove_leftovers, writing
from mrs_datasets.builders.reddit.duplicates import KEPT_CODE
from mrs_datasets.builders.reddit.partition import mix
from mrs_datasets.builders.reddit.plan import KEPT, PAGE, Build, Outcomes, Settings, languages_with
from mrs_datasets.prepared.funnel import funnel_page
from mrs_datasets.prepared.report import REPORT, Configs, Report
from mrs_datasets.prepared.responses import response_table
from mrs_datasets.prepared.schema import MRS, SPLITS, responses_config
from mrs_datasets.prepared.writer import finish_prepared, take_over, write_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, atomic_write
from mrs_suggest.common.io.storage import Location, atomic_target
from mrs_suggest.common.text.languages import LANGUAGES

STAGE = "write"
RARE = "language with too few pairs"
LACKING = "language without a split or a response set"
COUNT_BYTES = 512 << 20  # for counting the replies of a language; the rest goes to disk
COUNT_PARTS = 256  # of the temporary file; with this budget, about .5 MB are appended to each at a time
KEYS = {"thread": "thread", "example": "order"}  # how to split -> the column of 64-bit keys that decides
_COUNTED = pa.schema([("reply", pa.large_string()), ("count", pa.int64())])
_TABLE_BYTES = 1024  # overhead of a table in memory
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
        codes: what `find_duplicates` returned; empty: all pairs stay.
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
    names = [name for language in written for name in (language, responses_config(language))]
    record = MRS.with_context(build.settings.context).covering(names)
    remove_leftovers(out, "partial")  # the replaced data set stays until the new one is there
    with atomic_target(out, overwrite, REPORT, RESUME) as target, writing(out):
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
    """The languages that have all splits and a response set; the others are left out with a warning."""
    funnel = build.funnel
    lacking = {language: found["lack"] for language, found in counts.items() if found["lack"]}
    for language, lack in lacking.items():
        funnel.leave_out(language, LACKING)
        funnel.warnings.append(f"{language} was left out: {lack}.")
        build.say(f"warning: {funnel.warnings[-1]}")
    written = [language for language in counts if language not in lacking]
    if not written:
        raise InputError(": ".join(next(iter(lacking.items()))) + ".")
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
    """
    rows: Counter[str] = Counter()
    leakage: Counter[str] = Counter()
    pairs = partial(_kept_pairs, files, language, codes)
    configs: Configs = {}
    record = MRS.with_context(settings.context).covering([language])
    columns = record.kind_of(language).columns
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
            for table in pairs((*columns, KEYS[settings.split_by])):
                split = assign_splits(table, settings.split_by)
                for name in SPLITS:
                    part = split.filter(pc.equal(split["split"], name))
                    if part.num_rows:
                        yield language, name, part.select(columns).cast(record.schema(language))
                advance(table.num_rows)
            yield responses_config(language), "train", responses

        if not lack:
            configs = write_prepared(folder, chunks(), Report("reddit"), record, "the dumps")["configs"]
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
    staying = None if codes is None else pa.array(read_codes(*codes) == KEPT_CODE)
    done = 0
    for path in files:
        table, _ = read_pairs(path, language, columns)
        done += table.num_rows
        yield table if staying is None else table.filter(staying[done - table.num_rows : done])


def assign_splits(pairs: pa.Table, by: str) -> pa.Table:
    """Append the column `split` to pairs with the column `thread` or `order`.

    By "thread", all pairs of a thread are in one split, so that no test message was seen as a training reply; by
    "example", every pair is split independently, as in the paper.
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


# --- Counts of replies ----------------------------------------------------------------------------------------------


class ReplyCounts:
    """How often every reply of a language was given, like `collections.Counter` but in bounded memory.

    Args:
        budget_bytes: approximate memory, without Arrow's buffers and the batch that is added.
        folder: for the temporary file, which has no name and is removed at the end of the block.

    Attributes:
        pairs: how many replies were added.
        distinct: how many different replies there are, after `frequent`.

    >>> with tempfile.TemporaryDirectory() as folder, ReplyCounts(1 << 20, Path(folder)) as counts:
    ...     counts.add(pa.array(["yes", "no", "yes", "maybe", "no", "yes"]))
    ...     counts.frequent(min_count=2, most=10), counts.pairs, counts.distinct
    ([('yes', 3), ('no', 2)], 6, 3)
    """

    def __init__(self, budget_bytes: int, folder: Path) -> None:
        self.pairs = self.distinct = 0
        self._folder = folder
        self._limit = max(1, budget_bytes // 4)  # of the counts: grouping and splitting need as much again, twice
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(COUNT_PARTS)]  # place and bytes in the file

    def __enter__(self) -> ReplyCounts:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, replies: pa.Array | pa.ChunkedArray) -> None:
        """Count a batch of replies, none of which is null."""
        rows = max(1, len(replies) * self._limit // (2 * max(1, replies.nbytes)))
        for start in range(0, len(replies), rows):
            part = replies[start : start + rows].cast(pa.large_string())
            self._hold(_summed(pa.table([part, pa.repeat(pa.scalar(1, pa.int64()), len(part))], _COUNTED)))
        self.pairs += len(replies)

    def frequent(self, min_count: int, most: int) -> list[tuple[str, int]]:
        """The `most` most frequent replies that were given at least `min_count` times, with their counts.

        Returns:
            Most frequent first, ties in the order of the text.
        """
        best: pa.Table = _COUNTED.empty_table()
        self.distinct = 0
        for part in self._parts():
            self.distinct += part.num_rows
            enough = part.filter(pc.greater_equal(part["count"], min_count))
            best = pa.concat_tables([best, enough])
            if best.num_rows > most:
                best = _ranked(best)[:most].combine_chunks()
        best = _ranked(best)
        return list(zip(best["reply"].to_pylist(), best["count"].to_pylist(), strict=True))

    def _hold(self, counted: pa.Table) -> None:
        self._held.append(counted)
        self._held_bytes += counted.nbytes + _TABLE_BYTES
        if self._held_bytes <= self._limit:
            return
        summed = _summed(pa.concat_tables(self._held))
        self._held, self._held_bytes = [summed], summed.nbytes + _TABLE_BYTES
        if 2 * self._held_bytes > self._limit:  # else many replies repeat, and the memory suffices for as much again
            self._append(summed)
            self._held, self._held_bytes = [], 0

    def _append(self, counted: pa.Table) -> None:
        """Append counts to the file, part by part."""
        of = np.fromiter(map(hash, counted["reply"].to_pylist()), np.int64, counted.num_rows) % COUNT_PARTS
        order = np.argsort(of, kind="stable")
        ordered = counted.take(pa.array(order)).combine_chunks()
        bounds = np.searchsorted(of[order], np.arange(COUNT_PARTS + 1))
        options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
        with writing(self._folder):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (`__exit__` closes it)
            for part, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
                if start == end:
                    continue
                sink = io.BytesIO()
                with pa.ipc.new_stream(sink, _COUNTED, options=options) as out:
                    out.write_table(ordered.slice(start, end - start))
                place = self._file.seek(0, io.SEEK_END)
                self._pieces[part].append((place, self._file.write(sink.getbuffer())))

    def _parts(self) -> Iterator[pa.Table]:
        """All replies with their counts, each reply once."""
        if self._file is None:
            if self._held:
                yield _summed(pa.concat_tables(self._held))
            return
        if self._held:
            self._append(_summed(pa.concat_tables(self._held)))
            self._held, self._held_bytes = [], 0
        for pieces in self._pieces:
            tables = []
            for place, size in pieces:
                self._file.seek(place)
                tables.append(pa.ipc.open_stream(self._file.read(size)).read_all())
            if tables:
                yield _summed(pa.concat_tables(tables))


def _ranked(counted: pa.Table) -> pa.Table:
    return counted.sort_by([("count", "descending"), ("reply", "ascending")])


def _summed(counted: pa.Table) -> pa.Table:
    """One row per reply, in no particular order."""
    # A quarter of the time of Arrow's `group_by`. The sums are exact, since they stay below 2^53.
    replies = counted["reply"].combine_chunks().dictionary_encode()
    sums = np.bincount(replies.indices.to_numpy(), counted["count"].to_numpy(), len(replies.dictionary))
    return pa.table([replies.dictionary, pa.array(sums.astype(np.int64))], _COUNTED)
