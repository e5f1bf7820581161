"""What a build read, kept and dropped, and why: the source of `report.json`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

MAX_EXAMPLES = 5
MAX_DEPTH = 50  # chosen: of lists and objects in a report; a build writes fewer than ten
DROPPED = "dropped: "  # starts findings about rows that were left out


class FileEntry(TypedDict):
    """One Parquet file, its path below the folder."""

    path: str
    bytes: int
    sha256: str


class SplitEntry(TypedDict):
    """One split of a config; `bytes` is the size of its texts in memory."""

    rows: int
    bytes: int
    files: list[FileEntry]


class FindingEntry(TypedDict):
    """An `UnusualRows`, with its config/split and rule."""

    part: str
    finding: str
    count: int
    examples: list[str]


Configs = dict[str, dict[str, SplitEntry]]  # config -> split


# What a pass over a prepared folder did: rows that came in and went out, and those dropped, by reason. `about` has what
# else the pass tells: its models and their versions, thresholds, counts per language and split.
PassEntry = TypedDict(
    "PassEntry", {"name": str, "in": int, "out": int, "dropped": dict[str, int], "about": dict[str, Any]}
)


class PreparedReport(TypedDict, total=False):
    """`report.json`; other tools may write fewer keys. `pipeline` is there after a build from dumps, `passes` where
    rows were dropped or added by what a model says (`mrs_datasets.builders.passes`)."""

    data_set: str
    name: str
    version: str
    reader: str
    settings: dict[str, object]
    dropped: dict[str, dict[str, int]]
    findings: list[FindingEntry]
    notes: list[str]
    partial_splits: list[str]
    configs: Configs
    pipeline: dict[str, Any]
    passes: list[PassEntry]


@dataclass
class UnusualRows:
    """How many rows are unusual in one way, and the places of the first of them (such as `es.tsv:17`)."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, where: str) -> None:
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(where)


@dataclass
class Report:
    """Counts per config and split, filled by a reader and the writer; `notes` are sentences for the user."""

    reader: str
    settings: dict[str, object] = field(default_factory=dict)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    findings: dict[tuple[str, str], UnusualRows] = field(default_factory=dict)  # (part, what) of rows, kept or dropped
    notes: list[str] = field(default_factory=list)
    partial: bool = False  # configs may lack splits that the source does not have
    partial_splits: list[str] = field(default_factory=list)  # config/split: the source lacked some of its rows
    extra: dict[str, Callable[[], object]] = field(default_factory=dict)  # added by a reader; called at the end

    def drop(self, part: str, reason: str, rows: int = 1, where: str | None = None) -> None:
        """Count `rows` of `part` (config/split) as dropped for `reason`; `where` is the place of one of them."""
        if rows:
            self.dropped.setdefault(part, Counter())[reason] += rows
        if where:
            self.find(part, DROPPED + reason, where)

    def find(self, part: str, what: str, where: str) -> None:
        """Count a row of `part` as unusual."""
        self.findings.setdefault((part, what), UnusualRows()).add(where)

    def as_dict(self) -> PreparedReport:
        report: PreparedReport = {
            "reader": self.reader,
            "settings": self.settings,
            "dropped": {part: dict(sorted(reasons.items())) for part, reasons in sorted(self.dropped.items())},
            **({"findings": self._findings()} if self.findings else {}),
            "notes": self.notes,
            "partial_splits": self.partial_splits,
        }
        return cast(PreparedReport, {**report, **{name: give() for name, give in self.extra.items()}})

    def _findings(self) -> list[FindingEntry]:
        return [
            {"part": part, "finding": what, "count": found.count, "examples": found.examples}
            for (part, what), found in sorted(self.findings.items())
        ]


def parse_report(text: str) -> PreparedReport:
    """The report in the text of a `report.json`.

    Raises:
        ValueError: it is not a JSON object, or is nested more deeply than `MAX_DEPTH`.
    """
    too_deep = f"nested more than {MAX_DEPTH} levels deep"
    try:
        report = json.loads(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    if not isinstance(report, dict):
        raise ValueError("expected a JSON object")
    level: list[Any] = [report]
    for _ in range(MAX_DEPTH):
        lists = [value for value in level if isinstance(value, list)]
        lists += [list(value.values()) for value in level if isinstance(value, dict)]
        level = [inner for values in lists for inner in values if isinstance(inner, (dict, list))]
    if level:
        raise ValueError(too_deep)
    return cast(PreparedReport, report)
