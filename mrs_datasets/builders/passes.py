"""Passes over a prepared folder: each reads one and writes the next, in shards that are done once.

A pass drops or adds rows by what a model says, which is too expensive to be done twice: `mrs data toxicity` and `mrs
data translate` run one on a prepared folder, and `mrs data build` runs those it was asked for after its own stages.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.builders.pipeline.stages import Advance, Shard, ShardCounts, Workers, run_stage
from mrs_datasets.builders.pipeline.work_folder import RESUME, WorkFolder, remove_leftovers, work_place, writing
from mrs_datasets.builders.reddit.plan import PAGE
from mrs_datasets.prepared.funnel import funnel_page
from mrs_datasets.prepared.prepared import PreparedData, downloaded, open_prepared
from mrs_datasets.prepared.report import REPORT, PassEntry, PreparedReport
from mrs_datasets.prepared.soundness import require_values, row_of
from mrs_datasets.prepared.writer import write_report
from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write, content_hash
from mrs_suggest.common.io.storage import Location, atomic_target, is_url, location, require_free, same_file
from mrs_suggest.common.io.text_cache import TextCache

ROWS = 100_000  # of a shard; a row group of the writer has as many
PASSES = "passes"  # their key in the identity of a work folder
OF_WRITING = "of writing"  # in a pass's identity: settings that affect only its written folder
WRITING = "writing of passes"  # their key in the identity of a work folder
SOURCE = "source"  # in a pass's folder: the data that its shards are of
Answer = TypeVar("Answer", float, str)


@dataclass(frozen=True)
class Rows:
    """A range of rows of one Parquet file of a prepared folder; picklable.

    Attributes:
        number: of the range within its config and split, from 0.
        first, count: its rows in the file.
    """

    config: str
    split: str
    number: int
    file: Path
    first: int
    count: int

    @property
    def name(self) -> str:
        """Of its shard: names the range within the folder."""
        return f"{self.config}.{self.split}.{self.number:05d}"

    def read(self) -> pa.Table:
        """All columns of its rows."""
        file = pq.ParquetFile(self.file)
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        bounds = list(pairwise(accumulate(sizes, initial=0)))
        groups = [n for n, (start, end) in enumerate(bounds) if start < self.first + self.count and end > self.first]
        table = file.read_row_groups(groups).slice(self.first - bounds[groups[0]][0], self.count)
        texts = [name for name in ("message", "reply") if name in table.column_names]
        require_values(table, texts, partial(row_of, self.file, self.first))
        return table


def ranges(data: PreparedData, parts: Sequence[tuple[str, str]]) -> list[Rows]:
    """The rows of configs and splits, in order, in ranges of at most `ROWS`."""
    found: list[Rows] = []
    for config, split in parts:
        number = 0
        for file in data.files(config, split):
            total = pq.read_metadata(file).num_rows
            for first in range(0, total, ROWS):
                found.append(Rows(config, split, number, file, first, min(ROWS, total - first)))
                number += 1
    return found


def cached_answers(
    cache: TextCache[Answer],
    texts: Sequence[str],
    at_once: int,
    ask: Callable[[list[str]], Sequence[Answer]],
    units: int,
    advance: Advance,
) -> dict[str, Answer]:
    """The answers to distinct texts, `at_once` at a time: new ones are in the cache before the next are asked for.
    `advance` is called by `units` in total."""
    found: dict[str, Answer] = {}
    done = 0
    for block in in_batches(texts, at_once):
        known = cache.known(block)
        new = [text for text in block if text not in known]
        if new:
            answers = dict(zip(new, ask(new), strict=True))
            cache.add(answers)
            known |= answers
        found |= known
        now = units * len(found) // len(texts)
        advance(now - done)
        done = now
    advance(units - done)
    return found


class FolderPass(Protocol):
    """One pass: `ToxicityPass` or `TranslationPass`; `name` is that of its stage and its entry in the report."""

    @property
    def name(self) -> str: ...

    def identity(self) -> dict[str, object]:
        """Models with their versions, and settings, on which its finished shards depend, as plain JSON. Settings under
        the key `OF_WRITING`, such as a threshold, affect only `write`: shards stay if nothing else differs."""

    def require(self, data: PreparedData) -> None:
        """Refuse data that it cannot process, by an InputError, before any work is done."""

    def shards(self, data: PreparedData, folder: Location, cache: Path) -> list[Shard]:
        """Its work in pieces, each of which writes one file into `folder`; `cache` is for a `TextCache`."""

    def write(
        self, data: PreparedData, shards: Sequence[Shard], counts: Sequence[ShardCounts], target: Path
    ) -> tuple[PreparedReport, PassEntry]:
        """Write the next prepared folder to `target`, with `mrs_datasets.prepared.writer.rewrite`; return its
        report, and the pass's own entry, which must not be in the report yet."""


def run_passes(
    source: str,
    passes: Sequence[FolderPass],
    out: Location,
    *,
    resume: bool = False,
    overwrite: bool = False,
    cache: Path | None = None,
) -> PreparedReport:
    """Run passes over a prepared folder; return the report of the folder `out`.

    The work is in `.NAME.build` next to `out` until it is complete; it continues with `resume` after any interruption,
    and ends with the same files.

    Args:
        source: a prepared folder, its URL, or a hub id.
        cache: keeps finished answers for later runs; None: they are removed with the work.

    Raises:
        InputError: as `open_prepared` and the passes; finished work is kept for `resume`.
    """
    data = downloaded(open_prepared(source))
    assert data.folder is not None
    here = location(source) if is_url(source) else data.folder
    if same_file(out, here) if isinstance(out, Path) else str(out) == str(here):
        raise InputError(f"--out must differ from the input folder ({out}).")
    for each in passes:
        each.require(data)
    place = work_place(out)
    if resume and (whole := _whole_already(out, data, passes)):
        if place.is_dir():
            WorkFolder(place, identity_of(passes), True, False, done_again(passes)).remove()
        return whole
    require_free(out, overwrite, REPORT)
    work = WorkFolder(place, identity_of(passes), resume, overwrite, done_again(passes))
    report = apply_passes(data, passes, out, work, cache, overwrite)
    work.remove()
    remove_leftovers(out, "partial", "old")
    return report


def apply_passes(
    data: PreparedData,
    passes: Sequence[FolderPass],
    out: Location,
    work: WorkFolder,
    cache: Path | None,
    overwrite: bool,
) -> PreparedReport:
    """Run passes with the work folder of a build that is under way; the last one writes `out`."""
    report: PreparedReport = {}
    for each in passes:
        last = each is passes[-1]
        target = out if last else work.scratch / _after(each)  # a local folder, also of a remote build
        each.require(data)
        source = {SOURCE: _source(data)}
        same = work.done(each.name, SOURCE) == source
        if not same:  # finished shards are of other data; answers stay in the cache
            work.forget(each.name)
        folder = work.stage(each.name)
        work.finish(each.name, SOURCE, source)
        if last or not same or not (target / REPORT).is_file():
            shards = each.shards(data, folder, cache or work.answers)
            counts = run_stage(work, each.name, shards, Workers(1), " texts")
            remove_leftovers(target, "partial")
            with atomic_target(target, overwrite or not last, REPORT, RESUME) as place, writing(target):
                report, entry = each.write(data, shards, counts, place)
                entry["about"] |= {"identity": each.identity(), **source}
                _note(report, entry, place, data)
        if not last:
            data = open_prepared(str(target))
    return report


def identity_of(passes: Sequence[FolderPass]) -> dict[str, object]:
    """The passes' part of a work folder's identity."""
    identities = [(each.name, dict(each.identity())) for each in passes]
    of_writing = [[name, identity.pop(OF_WRITING, {})] for name, identity in identities]
    return {PASSES: [[name, identity] for name, identity in identities], WRITING: of_writing}


def done_again(passes: Sequence[FolderPass]) -> dict[str, Sequence[str]]:
    """The folders that are rebuilt if a resumed build has other passes; their answers stay in the cache."""
    written = [_after(each) for each in passes]
    return {PASSES: [*(each.name for each in passes), *written], WRITING: written}


def same_passes(entries: Sequence[PassEntry], passes: Sequence[FolderPass]) -> bool:
    """Whether a report's entries are of these passes."""
    done = [(entry["name"], entry["about"]["identity"]) for entry in entries]
    return done == [(each.name, json.loads(json.dumps(each.identity()))) for each in passes]


def _after(each: FolderPass) -> str:
    """The name of the folder that a pass writes for the next one."""
    return f"after-{each.name}"


def _source(data: PreparedData) -> str:
    """A hash of the files that a pass reads."""
    assert data.folder is not None
    files = data.report().get("configs") or content_hash(sorted(data.folder.rglob("*.parquet")))
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]


def _whole_already(out: Location, data: PreparedData, passes: Sequence[FolderPass]) -> PreparedReport | None:
    """The report at `out`, if it is of these very passes, which were interrupted after their last step."""
    try:
        report: PreparedReport = json.loads((out / REPORT).read_text(encoding="utf-8"))
        ours = report["passes"][len(data.report().get("passes", [])) :]
        return report if same_passes(ours, passes) and ours[0]["about"][SOURCE] == _source(data) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _note(report: PreparedReport, entry: PassEntry, folder: Path, data: PreparedData) -> None:
    """Add a pass to the report, the funnel of a build, and the card."""
    report.setdefault("passes", []).append(entry)
    if "pipeline" in report:
        report["pipeline"]["stages"].append(
            {"stage": entry["name"], "in": entry["in"], "out": entry["out"], "dropped": entry["dropped"]}
        )
    write_report(folder, report, data.record().covering(report["configs"]))
    if "pipeline" in report:
        atomic_write(folder / PAGE, funnel_page(dict(report)))
