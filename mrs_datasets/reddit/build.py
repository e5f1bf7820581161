"""MRS from monthly dumps: the stages in order, resumable at every shard (Zhang et al. 2021, section 2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_core import __version__
from mrs_core.errors import InputError
from mrs_core.files import whole_folder, write_whole
from mrs_core.language_id import LanguageIdentifier
from mrs_core.languages import LANGUAGES
from mrs_datasets.prepare import MARKER
from mrs_datasets.readers import Chunks
from mrs_datasets.reddit.clean import ALL, EXACT, clean_pairs, pair_keys
from mrs_datasets.reddit.counts import ReplyCounts
from mrs_datasets.reddit.filter import FilterCounts, Rules, filter_batch
from mrs_datasets.reddit.join import join_bucket
from mrs_datasets.reddit.language import KEPT, Outcomes, identify_pairs, languages_with
from mrs_datasets.reddit.markup import mask
from mrs_datasets.reddit.partition import partition
from mrs_datasets.reddit.plan import Plan, work_place
from mrs_datasets.reddit.read import ReadCounts, read_comments
from mrs_datasets.reddit.report_page import funnel_page
from mrs_datasets.reddit.settings import Settings
from mrs_datasets.reddit.split import assign_splits
from mrs_datasets.reddit.work import MARKER as WORK_MARKER
from mrs_datasets.reddit.work import (
    Advance,
    Shard,
    Workers,
    WorkFolder,
    remove_leftovers,
    remove_work,
    run_stage,
    timed,
    writing,
)
from mrs_datasets.report import Report
from mrs_datasets.responses import response_table
from mrs_datasets.schema import MRS, PAIR_SCHEMA, SPLITS, responses_config
from mrs_datasets.writer import write_prepared

MONTHS, PAIRS = "months", "pairs"
PAGE = "report.html"
COUNT_BYTES = 512 << 20  # for counting the replies of a language; what does not fit goes to disk
NOT_IN_MRS = "not a language of MRS"
OTHER_MONTH = "English of another month"
RARE = "language with too few pairs"
# Settings of the last stage, which is done in one go: a build goes on with other ones.
OF_WRITING = ("profile", "min_examples", "min_reply_count", "max_responses", "split_by", "buckets")


@dataclass
class Pipeline:
    """What the stages did, for `report.json`: counts that add up, and seconds, which do not repeat."""

    plan: Plan
    settings: Settings
    language_model: dict[str, Any]
    stages: list[dict[str, Any]] = field(default_factory=list)
    languages: dict[str, dict[str, int]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    rejects: dict[str, list[str]] = field(default_factory=dict)

    def add(self, stage: str, came: int, dropped: Mapping[str, int]) -> int:
        """Note a stage; what stays is what came less what was dropped."""
        dropped = {reason: count for reason, count in dropped.items() if count}
        self.stages.append({"stage": stage, "in": came, "out": came - sum(dropped.values()), "dropped": dropped})
        return came - sum(dropped.values())

    def count(self, outcomes: Mapping[tuple[str, str], int]) -> None:
        """Add what became of pairs to the languages' funnels."""
        for (language, outcome), pairs in sorted(outcomes.items()):
            row = self.languages.setdefault(language, {})
            row[outcome] = row.get(outcome, 0) + pairs

    def as_dict(self) -> dict[str, Any]:
        return {
            "dumps": [_name_and_bytes(path) for path in self.plan.files],
            "language_model": self.language_model,
            "profile": self.settings.profile,
            "departures": self.settings.departures(),
            "stages": self.stages,
            "languages": self.languages,
            "warnings": self.warnings,
            **({"rejects": self.rejects} if self.rejects else {}),
        }


def build(
    plan: Plan,
    out: Path,
    settings: Settings,
    language_model: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Write the prepared folder `out` and return its report.

    The work lies in `.NAME.build` beside `out` until the data set is whole; a build that was cut off at any moment goes
    on with `resume`, and ends with the same Parquet files as one that was not.

    Raises:
        InputError: an unreadable dump, a wrong language model, a full disk, a killed worker, or nothing left to write;
            what was finished stays for `resume`.
    """
    settings = replace(settings, buckets=plan.buckets)
    pipeline = Pipeline(plan, settings, _name_and_bytes(language_model))
    place = work_place(out)
    if resume and (report := _whole_already(out, pipeline)):
        if place.is_dir() and ((place / WORK_MARKER).is_file() or not any(place.iterdir())):
            remove_work(place)
        remove_leftovers(out, "partial", "old")
        return report
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]) and not overwrite:
        raise InputError(f"{out} exists already; choose another folder, delete it, or pass --overwrite.")
    kept = {name: value for name, value in settings.as_dict().items() if name not in OF_WRITING}
    identity = {
        "settings": kept,
        "dumps": [_name_and_bytes(path) for path in plan.files],
        "buckets": plan.buckets,
        "language model": list(pipeline.language_model.values()),
    }
    # Pairs come from all months and the model. Until they are begun, a broken month may be put in place of another.
    changeable = () if (place / PAIRS).exists() else ("dumps", "language model")
    work = WorkFolder(place, identity, resume, overwrite, changeable)
    seconds: dict[str, float] = {}
    with Workers(plan.workers) as workers:
        with timed(seconds, "months"):
            months = _months(work, plan, settings, workers, pipeline)
        with timed(seconds, "pairs"):
            found = _pairs(work, plan, settings, language_model, months, workers, pipeline)
    chosen = _chosen_languages(found, settings, pipeline)
    with timed(seconds, "write"):
        report = _write(work, out, settings, chosen, plan, pipeline, overwrite)
    work.remove()
    remove_leftovers(out, "partial", "old")
    say(f"seconds: {', '.join(f'{stage} {spent:,.0f}' for stage, spent in seconds.items())}")
    return report


def _name_and_bytes(path: Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size}


def _whole_already(out: Path, pipeline: Pipeline) -> dict[str, Any] | None:
    """The report at `out`, where it is of this very build, which was then cut off after its last step."""
    try:
        report: dict[str, Any] = json.loads((out / MARKER).read_text(encoding="utf-8"))
        buckets = report["settings"]["buckets"]  # they make files, and a resumed build keeps them
        now = {**pipeline.as_dict(), "settings": {**pipeline.settings.as_dict(), "buckets": buckets}}
        there = {**report["pipeline"], "settings": report["settings"]}
        same = all(there[key] == now[key] for key in ("dumps", "language_model", "settings"))
        return report if same and report["version"] == __version__ else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


# --- Months: read, filter, partition --------------------------------------------------------------------------------


def month_shard(path: Path, target: Path, settings: Settings, buckets: int, advance: Advance) -> dict[str, Any]:
    """Read, filter and partition one dump; the counts of all three."""
    read, kept = ReadCounts(), FilterCounts()
    rules = Rules(settings.min_score, settings.drop_bots, settings.min_characters, settings.max_characters)

    def batches() -> Iterator[pa.RecordBatch]:
        told = 0
        for batch in read_comments(path, counts=read):
            yield filter_batch(batch, rules, kept, settings.keep_rejects)
            advance(read.bytes - told)
            told = read.bytes

    stats = partition(batches(), target, buckets)
    return {
        "lines": read.lines,
        "rejected": dict(read.rejected),
        "truncated": dict(read.truncated),
        "comments": kept.seen,
        "dropped": dict(kept.dropped),
        "samples": kept.samples,
        "kept": stats.comments,
        "bytes": stats.bytes,
    }


def _months(work: WorkFolder, plan: Plan, settings: Settings, workers: Workers, pipeline: Pipeline) -> list[Path]:
    folder = work.stage(MONTHS)
    names = [f"{path.name}.{path.stat().st_size}" for path in plan.files]  # fetched again, it is another shard
    targets = [folder / f"{name}.arrow" for name in names]
    shards = [
        Shard(name, path.stat().st_size, target, partial(month_shard, path, target, settings, plan.buckets))
        for name, path, target in zip(names, plan.files, targets, strict=True)
    ]
    counts = run_stage(work, MONTHS, shards, workers, "B", scale=True)
    lines = pipeline.add("read", sum(c["lines"] for c in counts), _summed(c["rejected"] for c in counts))
    comments = sum(c["comments"] for c in counts)
    if lines != comments:
        raise AssertionError(f"{lines} comments were read, {comments} came to the filter")
    pipeline.add("filter", comments, _summed(c["dropped"] for c in counts))
    for found in counts:
        pipeline.warnings += [
            f"{name}: {reason}; what comes before was used." for name, reason in found["truncated"].items()
        ]
        for reason, samples in found["samples"].items():
            kept = pipeline.rejects.setdefault(reason, [])
            kept += samples[: settings.keep_rejects - len(kept)]
    return targets


# --- Pairs: join, language, clean -----------------------------------------------------------------------------------


def pair_shard(
    months: Sequence[Path], bucket: int, target: Path, settings: Settings, model: Path, advance: Advance
) -> dict[str, Any]:
    """Join one bucket, tell languages, mask, and clean where the profile says so; the counts of all."""
    pairs, joined = join_bucket(months, bucket)
    pairs, told = identify_pairs(pairs, _identifier(model), settings.min_language_score)
    outcomes: Outcomes = Counter(told)
    pairs = _of_mrs(pairs, settings, outcomes)
    if settings.clean:
        pairs, cleaned = clean_pairs(pairs, ALL)
        for (language, outcome), count in cleaned.items():
            if outcome != KEPT:
                outcomes[language, outcome] += count
                outcomes[language, KEPT] -= count
    else:
        pairs = _masked(pairs)
    _write_arrow(target, pairs.sort_by([("language", "ascending"), ("order", "ascending"), ("thread", "ascending")]))
    advance(1)
    return {
        "comments": joined.comments,
        "dropped": dict(joined.dropped),
        "pairs": joined.pairs,
        "outcomes": [[language, outcome, count] for (language, outcome), count in sorted(outcomes.items()) if count],
    }


@lru_cache(maxsize=1)
def _identifier(model: Path) -> LanguageIdentifier:
    """The model, read once in a process and not for every bucket."""
    return LanguageIdentifier.open(model)


def _of_mrs(pairs: pa.Table, settings: Settings, outcomes: Outcomes) -> pa.Table:
    """Pairs in a language of MRS, English ones of the months asked for; the outcomes of the others are moved."""
    languages = pairs["language"]
    ours = pc.is_in(languages, value_set=pa.array(list(LANGUAGES)))
    keep = ours
    _move(languages.filter(pc.invert(ours)), NOT_IN_MRS, outcomes)
    if settings.english_months:
        first, last = (int(month.replace("-", "")) for month in settings.english_months)
        other = pc.or_(pc.less(pairs["month"], first), pc.greater(pairs["month"], last))
        late = pc.and_(pc.equal(languages, "en"), other)
        _move(languages.filter(late), OTHER_MONTH, outcomes)
        keep = pc.and_(ours, pc.invert(late))
    return pairs.filter(keep)


def _masked(pairs: pa.Table) -> pa.Table:
    """Links, names and addresses masked, in every profile: links hold ids, and no user's name may be in the data."""
    for side in ("message", "reply"):
        texts = pa.chunked_array(
            [pa.array([mask(text) for text in chunk.to_pylist()], pa.string()) for chunk in pairs[side].chunks],
            pa.string(),
        )
        pairs = pairs.set_column(pairs.schema.get_field_index(side), side, texts)
    return pairs


def _move(languages: pa.ChunkedArray, reason: str, outcomes: Outcomes) -> None:
    for entry in pc.value_counts(languages).to_pylist():
        outcomes[entry["values"], reason] += entry["counts"]
        outcomes[entry["values"], KEPT] -= entry["counts"]


def _pairs(
    work: WorkFolder,
    plan: Plan,
    settings: Settings,
    model: Path,
    months: list[Path],
    workers: Workers,
    pipeline: Pipeline,
) -> Outcomes:
    folder = work.stage(PAIRS)
    shards = [
        Shard(_bucket(number), 1, target, partial(pair_shard, months, number, target, settings, model))
        for number in range(plan.buckets)
        for target in [folder / f"{_bucket(number)}.arrow"]
    ]
    counts = run_stage(work, PAIRS, shards, workers, " buckets")
    pipeline.add("join", sum(c["comments"] for c in counts), _summed(c["dropped"] for c in counts))
    outcomes: Outcomes = Counter()
    for found in counts:
        for language, outcome, count in found["outcomes"]:
            outcomes[language, outcome] += count
    return outcomes


def _bucket(number: int) -> str:
    return f"bucket-{number:05d}"


def _chosen_languages(outcomes: Outcomes, settings: Settings, pipeline: Pipeline) -> list[str]:
    chosen = [code for code in LANGUAGES if code in languages_with(outcomes, settings.min_examples)]
    for language in {language for language, outcome in outcomes if outcome == KEPT} - set(chosen):
        outcomes[language, RARE] += outcomes.pop((language, KEPT))
    dropped: Counter[str] = Counter()
    for (_, outcome), count in sorted(outcomes.items()):
        if outcome != KEPT:
            dropped[outcome] += count
    pipeline.add("language" + (" and cleaning" if settings.clean else ""), sum(outcomes.values()), dropped)
    pipeline.count({key: count for key, count in outcomes.items() if count})
    if not chosen:
        most = {language: count for (language, outcome), count in outcomes.items() if outcome == RARE}
        found = ", ".join(f"{code} {count:,}" for code, count in sorted(most.items(), key=lambda item: -item[1])[:5])
        raise InputError(
            f"no language has {settings.min_examples:,} pairs ({found or 'none has any'}); lower --min-examples or "
            "pass more months."
        )
    return chosen


# --- Write: split, response sets, Parquet ---------------------------------------------------------------------------


def _write(
    work: WorkFolder,
    out: Path,
    settings: Settings,
    languages: list[str],
    plan: Plan,
    pipeline: Pipeline,
    overwrite: bool,
) -> dict[str, Any]:
    report = Report("reddit", settings.as_dict())
    report.notes += pipeline.warnings
    remove_leftovers(out, "partial")  # what was replaced stays until there is something in its place
    with writing(out), whole_folder(out, overwrite, MARKER) as folder:
        chunks = _chunks(work, folder, settings, languages, plan.buckets, pipeline)
        report.extra["pipeline"] = pipeline.as_dict  # complete once the chunks are written
        result = write_prepared(folder, chunks, report, MRS, "the dumps")
        write_whole(folder / PAGE, funnel_page(result))
    return result


def _chunks(
    work: WorkFolder, folder: Path, settings: Settings, languages: list[str], buckets: int, pipeline: Pipeline
) -> Chunks:
    duplicates: Counter[str] = Counter()
    pairs = sum(row.get(KEPT, 0) for row in pipeline.languages.values())
    for language in languages:
        seen = np.empty(0, np.uint64)
        written: Counter[str] = Counter()
        with ReplyCounts(COUNT_BYTES, work.folder / "replies") as replies:
            for number in range(buckets):
                table = _read_language(work.folder / PAIRS / f"{_bucket(number)}.arrow", language)
                if settings.clean:
                    before = table.num_rows
                    table, seen = _first_ones(table, seen)
                    duplicates[language] += before - table.num_rows
                for split, part in _splits(table, settings.split_by):
                    if split == SPLITS[0]:
                        replies.add(part["reply"])
                    written[split] += part.num_rows
                    yield language, split, part
            frequent = replies.frequent(settings.min_reply_count, settings.max_responses)
            responses = response_table(frequent, replies.pairs, replies.distinct)
        if missing := [split for split in SPLITS if not written[split]]:
            raise InputError(
                f"{language}: none of its {written.total():,} pairs falls into {' or '.join(missing)}; raise "
                f"--min-examples, pass more months{', or --split-by example' if settings.split_by == 'thread' else ''}."
            )
        if not responses.num_rows:
            raise InputError(
                f"{language}: no reply comes {settings.min_reply_count} times in training; lower --min-reply-count."
            )
        yield responses_config(language), "train", responses
    if settings.clean:
        pipeline.add("duplicates", pairs, {EXACT: duplicates.total()})
        for language, count in duplicates.items():
            pipeline.count({(language, EXACT): count, (language, KEPT): -count})


def _first_ones(pairs: pa.Table, seen: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """The pairs that no earlier bucket had, and the keys of all so far (sorted): 8 bytes a pair."""
    from mrs_core.text import normalise_reply

    forms = [[normalise_reply(text) for text in pairs[side].to_pylist()] for side in ("message", "reply")]
    keys = pair_keys(*forms)
    place = np.searchsorted(seen, keys)
    known = place < len(seen)
    known[known] = seen[place[known]] == keys[known]
    return pairs.filter(pa.array(~known)), np.union1d(seen, keys)


def _splits(pairs: pa.Table, by: str) -> Iterator[tuple[str, pa.Table]]:
    split = assign_splits(pairs, by)
    for name in SPLITS:
        part = split.filter(pc.equal(split["split"], name))
        if part.num_rows:
            yield name, part.select(["message", "reply"]).cast(PAIR_SCHEMA)


def _read_language(path: Path, language: str) -> pa.Table:
    try:
        with pa.OSFile(str(path), "rb") as source:
            table = pa.ipc.open_file(source).read_all()
            return table.filter(pc.equal(table["language"], language))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise InputError(f"{path}: is damaged ({reason}); delete it and go on with --resume.") from None


def _write_arrow(path: Path, table: pa.Table) -> None:
    temporary = path.with_name(f".{path.name}.partial-0")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with writing(path):
        try:
            sink = pa.OSFile(str(temporary), "wb")
            with sink, pa.ipc.new_file(sink, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=1 << 16)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _summed(counts: Any) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return total
