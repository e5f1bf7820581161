"""Settings of a build of MRS from dumps; what it needs before it begins: files, disk, memory; and the counts of what
its stages did, for `report.json` and `report.html`.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from mrs_datasets.builders.pipeline.work_folder import MARKER, WorkFolder, work_place
from mrs_datasets.builders.reddit.forms import check_form
from mrs_datasets.prepared.responses import MAX_RESPONSES, PAPER_MIN_REPLY_COUNT
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import require_regular
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.io.storage import Location, files_below, find_files, is_url, same_file, scratch_folder
from mrs_suggest.common.io.storage import size as size_of

SPLITS_BY = ("example", "thread")
RESPONSES_FROM = ("all", "training")
ALL_MONTHS = "all"
MAX_BUCKETS = 1 << 16  # numpy uses radix sort for 16-bit numbers, which is several times faster
FROM_PAIRS = ("pairs", "duplicates", "write")  # stages that are done again if the inputs of the pairs differ

# Every stage counts its pairs as (language, outcome) -> pairs. Each input pair has exactly one outcome, `kept` or the
# reason why it was dropped, so that a stage's counts add up to its input.
Outcomes = Counter[tuple[str, str]]
BucketPairs = dict[Location, dict[str, list[int]]]  # file of neighbouring buckets -> language -> pairs of each bucket
KEPT = "kept"
UNKNOWN_LANGUAGE = "no language found"
LOW_SCORE = "language uncertain"

PAGE = "report.html"  # in folders that are built from dumps
# Of monthly dumps: bytes of JSON per comment, and zstd's ratio (2010-2019: 5.8 TB in 6.65 billion comments).
LINE_BYTES = 872
RATIOS = {".zst": 8.0, ".xz": 9.0, ".bz2": 7.0, ".gz": 5.5}
# Measured on the generator's months (benchmarks/bench_build.py, bench_scale.py); rounded up.
SPILL_BYTES = 180  # on disk, per comment of a partition
PAIR_BYTES = 300  # on disk, per pair, before and after it is written as Parquet, with the counts of replies
SIGNED_BYTES = 600  # on disk, in addition per pair if duplicates are searched: its keys twice and its texts
PAIRS_PER_COMMENT = 0.6
READER_BYTES = int(0.55e9)  # of a process that reads a month, in addition to its window
BUCKET_BYTES = 1800  # in memory, per comment of the bucket that a worker joins, masks and identifies
RESERVE = 1.1  # of the disk


@dataclass(frozen=True)
class Settings:
    """The values of a build; the defaults are the paper's (Zhang et al. 2021, section 2).

    Attributes:
        profile: the name of the profile that the values come from.
        min_score: comments below are dropped (section 2: "score less than one").
        min_language_score: fastText's probability must be above (section 2: 0.7).
        min_examples: languages with fewer pairs are left out (section 2: 100,000).
        english_months: first and last month of English replies that are kept (section 2: 2018 only); empty: all.
        min_reply_count, max_responses: of the response sets (section 2.1: twenty times; 30,000 to 50,000).
        responses_from: where those replies are counted: `all` splits (section 2.1: "in the dataset"), or `training`, so
            that no test reply gets into the response set.
        drop_bots: leave out bots' comments (ours; section 2 has no such step).
        clean: turn Markdown into text, leave out quotes and HTML tags, repair mojibake, drop duplicates (ours). Links,
            users' names, e-mail and IP addresses and telephone numbers are masked in every profile, which section 2
            does not mention.
        split_by: `example` (section 2: 80/10/10 at random), or `thread`, so that no thread is in two splits.
        min_characters, max_characters: of both sides; None: no bound (as section 2).
        buckets: parts of the join; changes memory and files, not results.
        keep_rejects: texts to store for inspection, per reason.
        context: turns before each message to keep in a column, see `pairs.with_context`; 0: no such column.
    """

    profile: str = "paper"
    min_score: int = 1
    min_language_score: float = 0.7
    min_examples: int = 100_000
    english_months: tuple[str, str] | tuple[()] | None = ("2018-01", "2018-12")
    min_reply_count: int = PAPER_MIN_REPLY_COUNT
    max_responses: int = MAX_RESPONSES
    responses_from: str = "all"
    drop_bots: bool = False
    clean: bool = False
    split_by: str = "example"
    min_characters: int | None = None
    max_characters: int | None = None
    buckets: int = 64
    keep_rejects: int = 0
    context: int = 0

    def __post_init__(self) -> None:
        least = {"keep_rejects": 0, "min_characters": 0, "context": 0}
        counts = ("min_examples", "min_reply_count", "max_responses", "buckets", "max_characters", *least)
        low, high = self.min_characters, self.max_characters
        for name in counts:
            value = getattr(self, name)
            if value is not None and value < least.get(name, 1):
                raise InputError(f"--{name.replace('_', '-')}: expected {least.get(name, 1)} or more, found {value}.")
        if self.buckets > MAX_BUCKETS:
            raise InputError(f"--buckets: expected {MAX_BUCKETS} or fewer, found {self.buckets}.")
        if not 0 <= self.min_language_score < 1:
            raise InputError(f"--min-language-score: expected 0 or more and below 1, found {self.min_language_score}.")
        for name, values in (("split_by", SPLITS_BY), ("responses_from", RESPONSES_FROM)):
            if getattr(self, name) not in values:
                flag, found = name.replace("_", "-"), getattr(self, name)
                raise InputError(f"--{flag}: expected one of {', '.join(values)}, found {found!r}.")
        if low is not None and high is not None and low > high:
            raise InputError(f"--min-characters {low}: is more than --max-characters, which is {high}; lower it.")

    def departures(self) -> dict[str, Any]:
        """The values that differ from the profile's, for JSON."""
        profile = PROFILES[self.profile].as_dict()
        return {name: value for name, value in self.as_dict().items() if value != profile.get(name)}

    def as_dict(self) -> dict[str, Any]:
        """All values, for JSON; `context` only if it is set."""
        values = {**asdict(self), "english_months": ":".join(self.english_months or ()) or ALL_MONTHS}
        return {name: value for name, value in values.items() if name != "context" or value}


PAPER = Settings()
PROFILES = {
    "paper": PAPER,
    "clean": Settings(profile="clean", drop_bots=True, clean=True, split_by="thread", responses_from="training"),
}


def make_settings(profile: str, **changes: Any) -> Settings:
    """A profile with changes; those that are None are left out.

    >>> make_settings("paper", min_examples=10, buckets=None).departures()
    {'min_examples': 10}
    """
    if profile not in PROFILES:
        raise InputError(f"--profile {profile}: expected one of {', '.join(PROFILES)}.")
    return replace(PROFILES[profile], **{name: value for name, value in changes.items() if value is not None})


def read_months(text: str) -> tuple[str, str]:
    """`2018-01:2018-12`, or one month, as its first and last month."""
    first, _, last = text.partition(":")
    last = last or first
    if not all(re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month) for month in (first, last)) or first > last:
        raise InputError(f"--english-months {text}: expected YYYY-MM:YYYY-MM, first month first, or `all`.")
    return first, last


def read_size(text: str) -> int:
    """Bytes from `8GB`, `512MB` or `2GiB`.

    >>> read_size("8GB"), read_size("2GiB")
    (8000000000, 2147483648)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?)B?", text.strip(), re.IGNORECASE)
    if not found:
        raise InputError(f"--memory {text}: expected a size such as 8GB.")
    power = "KMGT".index(found[2].upper()) + 1
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


# --- The plan -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BuildPlan:
    """A build's plan; all figures but `files` and `bytes` are estimates.

    Attributes:
        files: the dumps, in the order of their names.
        disk: peak bytes that the build needs in addition to the dumps.
        memory: bytes that all of them need together.
    """

    files: tuple[Location, ...]
    bytes: int
    comments: int
    disk: int
    workers: int
    memory: int
    buckets: int

    def lines(self) -> list[str]:
        """The lines printed before the build begins."""
        names = [path.name for path in self.files]
        shown = ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:2])} ... {names[-1]}"
        return [
            f"{len(names)} files, {readable(self.bytes)}: {shown}",
            f"about {self.comments:,} comments; {readable(self.disk)} more on disk, {readable(self.memory)} of memory "
            f"with {self.workers} {'worker' if self.workers == 1 else 'workers'}, {self.buckets} buckets",
        ]


@dataclass
class Build:
    """Shared by the stages of one build; each adds its counts to the funnel. If `strict`, a dump that cannot be read
    completely stops the build."""

    plan: BuildPlan
    settings: Settings
    language_model: Path
    work: WorkFolder
    funnel: Funnel
    say: Callable[[str], None]
    strict: bool = False


def find_dumps(patterns: Sequence[str]) -> tuple[Location, ...]:
    """The files of the patterns, each once, in the order of their names.

    Raises:
        InputError: a pattern matches nothing, or a pipe or device; two files have one name, or a storage cannot be
            reached.
    """
    found: dict[str, Location] = {}
    for pattern in patterns:
        files = find_files(pattern) if is_url(pattern) else _local_files(pattern)
        if not files:
            raise InputError(f"--dumps {masked(pattern)}: no such file; pass monthly dumps such as 'RC_*.zst'.")
        for path in files:
            if not same_file(found.setdefault(path.name, path), path):
                raise InputError(f"--dumps: {path} and {found[path.name]} have the same name; pass one of them.")
    return tuple(found[name] for name in sorted(found))


def _local_files(pattern: str) -> list[Location]:
    files = [path for name in sorted(glob.glob(os.path.expanduser(pattern))) if not (path := Path(name)).is_dir()]
    for path in files:
        require_regular(path)
    return [path for path in files if path.is_file()]


def begun_buckets(out: Location) -> int | None:
    """The number of buckets of an interrupted build to `out`, which a resumed one must keep; None without such work."""
    try:
        return int(json.loads((work_place(out) / MARKER).read_text(encoding="utf-8"))["buckets"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_build_plan(
    files: Sequence[Location], out: Location, workers: int | None, memory: int, buckets: int, settings: Settings = PAPER
) -> BuildPlan:
    """Estimate a build, and refuse an impossible one.

    Args:
        out: the data set's folder, which the work is next to. For a remote one, the scratch folder's disk is checked.
        workers: at most this many; None: as many as cores and memory allow.
        memory: bytes that the build may use.
        buckets: at least this many; more if a bucket would not fit into memory.
        settings: whose duplicates and context take room.

    Raises:
        InputError: the disk or the memory is too small, or a file has another form than a dump (`check_form`).
    """
    window = max(map(check_form, files))
    reader = READER_BYTES + window
    if memory < reader:
        raise InputError(
            f"--memory {readable(memory)}: reading a month takes {readable(reader)} (its window alone is "
            f"{readable(window)}); pass {-(-reader // 10**8) / 10}GB or more."
        )
    fit = max(1, min(memory // reader, os.cpu_count() or 1))
    workers = min(workers, fit) if workers else fit
    months = [size_of(path) * RATIOS.get(path.suffix, 1.0) / LINE_BYTES for path in files]
    comments = int(sum(months))
    pair_bytes = PAIR_BYTES * (1 + settings.context / 2) + (SIGNED_BYTES + 2 * workers) * settings.clean  # two texts
    disk = int(RESERVE * comments * (SPILL_BYTES + PAIRS_PER_COMMENT * pair_bytes))
    needed = -(-comments * (BUCKET_BYTES + settings.context * PAIR_BYTES) * workers // memory)
    while buckets < needed:
        buckets *= 2
    if isinstance(out, Path):
        folder, option, room = out, f"--out {out}", disk
        missing = disk - sum(map(size_of, files_below(work_place(out))))  # existing work is used, or replaced
    else:  # a month per worker, in groups and in buckets; then the pairs, before they are sent
        folder, option = scratch_folder(out), f"--scratch {scratch_folder(out)}"
        missing = room = int(
            RESERVE * max(2 * workers * max(months) * SPILL_BYTES, comments * PAIRS_PER_COMMENT * pair_bytes)
        )
    place = next(there for there in (folder, *folder.absolute().parents) if there.is_dir())
    free = shutil.disk_usage(place).free
    if missing > free:
        raise InputError(
            f"{option}: the build needs about {readable(room)}, and {place} has {readable(free)} free; choose "
            "another disk, or build fewer months."
        )
    memory = min(workers, len(files)) * reader
    return BuildPlan(tuple(files), sum(map(size_of, files)), comments, disk, workers, memory, buckets)


def readable(size: float) -> str:
    """Bytes for people: 1.5 GB.

    >>> readable(1_500_000_000)
    '1.5 GB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


# --- Parts of a language ----------------------------------------------------------------------------------------------


class Slice(NamedTuple):
    """Consecutive pairs of a language in one file."""

    path: Location
    before: int  # pairs of the language that precede these, in all files
    start: int  # those of them that are in this file
    rows: int


@dataclass(frozen=True)
class Part:
    """Consecutive pairs of a language, in one file or several."""

    slices: tuple[Slice, ...]

    @property
    def pairs(self) -> int:
        return sum(own.rows for own in self.slices)

    @classmethod
    def divide(cls, pairs: BucketPairs, language: str, size: int) -> list[Part]:
        """The buckets of a language in parts of about `size` pairs, whatever the number of workers."""
        total = sum(sum(kept.get(language, ())) for kept in pairs.values())
        parts: dict[int, list[Slice]] = {}
        before = 0
        for path, kept in pairs.items():
            of_part, start = Counter[int](), 0
            for rows in filter(None, kept.get(language, ())):
                of_part[(before + of_part.total()) * -(-total // size) // total] += rows
            for number, rows in of_part.items():
                parts.setdefault(number, []).append(Slice(path, before, start, rows))
                before, start = before + rows, start + rows
        return [cls(tuple(slices)) for slices in parts.values()]


# --- The funnel -----------------------------------------------------------------------------------------------------


def languages_with(outcomes: Mapping[tuple[str, str], int], min_examples: int) -> list[str]:
    """The languages with at least `min_examples` kept pairs, most pairs first, ties by code.

    >>> languages_with({("en", "kept"): 7, ("sv", "kept"): 2, ("sv", "language uncertain"): 9}, min_examples=3)
    ['en']
    """
    kept = {language: pairs for (language, outcome), pairs in outcomes.items() if outcome == KEPT}
    return sorted((code for code in kept if kept[code] >= min_examples), key=lambda code: (-kept[code], code))


@dataclass
class Funnel:
    """Counts that add up from stage to stage, and what else the report says about a build.

    Attributes:
        about: language model, profile, departures from it, and the engine's versions.
        dumps: `name`, `bytes`, `sha256` and `lossy` (why it was not read completely) of each.
        stages: `stage`, `in`, `out` and `dropped` (by reason) of each.
        languages: language -> outcome -> pairs.
        rejects: samples of dropped texts, by reason.
    """

    about: dict[str, Any]
    dumps: list[dict[str, Any]] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    languages: dict[str, dict[str, int]] = field(default_factory=dict)
    leakage: dict[str, dict[str, int]] = field(default_factory=dict)
    repairs: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    rejects: dict[str, list[str]] = field(default_factory=dict)

    def add(self, stage: str, came: int, dropped: Mapping[str, int]) -> int:
        """Record a stage; return its input less what was dropped."""
        dropped = {reason: count for reason, count in dropped.items() if count}
        left = came - sum(dropped.values())
        self.stages.append({"stage": stage, "in": came, "out": left, "dropped": dropped})
        return left

    def leave_out(self, language: str, reason: str) -> None:
        """Count a language's kept pairs as dropped, in its own counts and in the last stage."""
        row, stage = self.languages[language], self.stages[-1]
        pairs = row.pop("kept")
        row[reason] = row.get(reason, 0) + pairs
        stage["dropped"][reason] = stage["dropped"].get(reason, 0) + pairs
        stage["out"] -= pairs

    def as_dict(self) -> dict[str, Any]:
        """The part `pipeline` of `report.json`."""
        parts = vars(self).copy()
        about, rejects = parts.pop("about"), parts.pop("rejects")
        return {"dumps": parts.pop("dumps"), **about, **parts, **({"rejects": rejects} if rejects else {})}
