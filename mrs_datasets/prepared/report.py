"""`report.json` of a prepared folder: rows read, kept and dropped, with reasons, and the files that were written."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from pydantic import ConfigDict, NonNegativeInt, StringConstraints, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from mrs_datasets.catalogue import STRICT
from mrs_suggest.common.errors import first_problem

REPORT = "report.json"
MAX_EXAMPLES = 5
DROPPED = "dropped: "  # starts findings about rows that were left out
REJECTS = "rejects"  # in a pass's `about`: examples of what it dropped, which are for inspection alone
NOTES = "notes"  # in a pass's `about`: sentences for whoever reads the card
SILENT = ("identity", REJECTS, NOTES)
ParquetPath = Annotated[str, StringConstraints(pattern=r"^data/[^/\\.][^/\\]*/[^/\\]+\.parquet$")]


@with_config(STRICT)
class FileEntry(TypedDict):
    """One Parquet file; its path is relative to the folder."""

    path: ParquetPath
    bytes: NonNegativeInt
    sha256: str


@with_config(STRICT)
class SplitEntry(TypedDict):
    """One split of a config; `bytes` is the size of its texts in memory."""

    rows: NonNegativeInt
    bytes: NonNegativeInt
    files: list[FileEntry]


class FindingEntry(TypedDict):
    """How many rows of a config/split are unusual in one way, and the places of the first (such as `es.tsv:17`)."""

    part: str
    finding: str
    count: int
    examples: list[str]


Configs = dict[str, dict[str, SplitEntry]]  # config -> split

# What a pass over a prepared folder did: rows in and out, and those dropped, by reason. `about` has the pass's own
# facts: its models and their versions, thresholds, counts per language and split.
PassEntry = TypedDict(
    "PassEntry", {"name": str, "in": int, "out": int, "dropped": dict[str, int], "about": dict[str, Any]}
)


@with_config(ConfigDict(extra="allow"))
class PreparedReport(TypedDict, total=False):
    """`report.json`; other tools may write fewer or more keys.

    `pipeline` exists after a build from dumps, `passes` after toxicity filtering or translation
    (`mrs_datasets.builders.passes`).
    """

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


_REPORTS = TypeAdapter(PreparedReport)


@dataclass
class Report:
    """Counts per config and split, filled by a reader and the writer.

    Attributes:
        findings: (part, finding) -> its rows, kept or dropped.
        notes: sentences for the user.
        partial: whether configs may lack splits that the source does not have.
        partial_splits: config/split of which the source lacked some rows.
        extra: further entries, called when the report is complete.
    """

    reader: str
    settings: dict[str, object] = field(default_factory=dict)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    findings: dict[tuple[str, str], FindingEntry] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    partial: bool = False
    partial_splits: list[str] = field(default_factory=list)
    extra: dict[str, Callable[[], object]] = field(default_factory=dict)

    def drop(self, part: str, reason: str, where: str | None = None) -> None:
        """Count a row of `part` (config/split) as dropped for `reason`; `where` is its place."""
        self.dropped.setdefault(part, Counter())[reason] += 1
        if where:
            self.find(part, DROPPED + reason, where)

    def find(self, part: str, what: str, where: str) -> None:
        """Count a row of `part` as unusual."""
        entry: FindingEntry = {"part": part, "finding": what, "count": 0, "examples": []}
        found = self.findings.setdefault((part, what), entry)
        found["count"] += 1
        if found["count"] <= MAX_EXAMPLES:
            found["examples"].append(where)

    def as_dict(self) -> PreparedReport:
        """The entries of `report.json` that come from the reader."""
        findings = [self.findings[key] for key in sorted(self.findings)]
        report = {
            "reader": self.reader,
            "settings": self.settings,
            "dropped": {part: dict(sorted(reasons.items())) for part, reasons in sorted(self.dropped.items())},
            **({"findings": findings} if findings else {}),
            "notes": self.notes,
            "partial_splits": self.partial_splits,
            **{name: give() for name, give in self.extra.items()},
        }
        return cast(PreparedReport, report)


def parse_report(text: str) -> PreparedReport:
    """The report in the text of a `report.json`; ValueError if it is not JSON, or a known key has another type."""
    try:
        return _REPORTS.validate_json(text)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def pass_tables(entry: PassEntry) -> list[tuple[str, list[list[str]]]]:
    """The tables in a pass's `about`: lists of mappings (a row each), and mappings of mappings (a named row each).

    Returns:
        Titles and cells; the first row of cells is the header.
    """
    found: list[tuple[str, list[list[str]]]] = []
    for title, content in entry["about"].items():
        if title in SILENT or not content:
            continue
        if isinstance(content, Mapping) and all(isinstance(row, Mapping) for row in content.values()):
            rows: list[Mapping[str, Any]] = [{"": name, **row} for name, row in content.items()]
        elif isinstance(content, list) and all(isinstance(row, Mapping) for row in content):
            rows = content
        else:
            continue
        columns = list(dict.fromkeys(name for row in rows for name in row))
        found.append((title, [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]))
    return found


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).replace("|", "/").split())
