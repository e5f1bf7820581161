"""What the rules drop of each split, as counts and as examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mrs_datasets.builders.passes import Rows
from mrs_datasets.builders.reddit.cleaning.masks import mask
from mrs_datasets.builders.toxicity.rules import Rule
from mrs_datasets.builders.toxicity.scoring import TEXTS, Scores, read_scores
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location

BINS = 10  # of the histogram of scores, each as wide as .1
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Scored:
    """A range of rows, the rules that scored it, and the file with the scores."""

    rows: Rows
    language: str
    rules: tuple[Rule, ...]
    output: Location

    def scores(self) -> Scores:
        """(rules, rows)"""
        return read_scores(self.output, len(self.rules), self.rows.count)

    def above(self) -> Flags:
        """(rules, rows): whether a rule drops a row."""
        thresholds = np.array([rule.threshold for rule in self.rules], np.float32)
        return np.asarray(self.scores() > thresholds[:, None])

    def kept(self) -> pa.Table:
        """The rows that no rule drops."""
        return self.rows.read().filter(pa.array(~self.above().any(axis=0)))


@dataclass
class PartTally:
    """Counts of one split.

    Attributes:
        above: rows above the threshold, by rule; a row may be above both.
        reasons: dropped rows by the first rule that drops them.
    """

    language: str
    rows: int = 0
    above: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def dropped(self) -> int:
        return sum(self.reasons.values())

    def as_dict(self) -> dict[str, int]:
        """For the report."""
        return {"rows": self.rows, "dropped": self.dropped, **self.above}


def tally(ranges: Sequence[Scored]) -> tuple[dict[tuple[str, str], PartTally], dict[str, dict[str, int]]]:
    """The counts by config and split, and by rule how many rows have a score in [0, .1), [.1, .2) ..."""
    parts: dict[tuple[str, str], PartTally] = {}
    scores: dict[str, dict[str, int]] = {}
    for scored in ranges:
        part = parts.setdefault((scored.rows.config, scored.rows.split), PartTally(scored.language))
        part.rows += scored.rows.count
        values, above = scored.scores(), scored.above()
        first = above & (np.cumsum(above, axis=0) == 1)
        for number, rule in enumerate(scored.rules):
            part.above[rule.name] = part.above.get(rule.name, 0) + int(above[number].sum())
            part.reasons[rule.name] = part.reasons.get(rule.name, 0) + int(first[number].sum())
            counts, _ = np.histogram(values[number], bins=BINS, range=(0, 1))
            row = scores.setdefault(rule.name, {})
            for place, count in enumerate(counts.tolist()):
                row[f"from .{place}"] = row.get(f"from .{place}", 0) + count
    return parts, scores


def require_rows_left(parts: dict[tuple[str, str], PartTally], rules: Sequence[Rule]) -> None:
    """Refuse to write an empty split.

    Raises:
        InputError: every row of a split is above a threshold.
    """
    for (config, split), part in parts.items():
        if part.rows and part.dropped == part.rows:
            worst = max(rules, key=lambda rule: part.above.get(rule.name, 0))
            raise InputError(
                f"{config}/{split}: all of its {part.rows:,} rows are above {worst.options[1]} {worst.threshold:g} "
                f"({worst.scorer.facts.name}), so that nothing would be left of it; raise the threshold, or leave the "
                "language out."
            )


def examples(ranges: Sequence[Scored], most: int) -> dict[str, list[dict[str, object]]]:
    """Up to `most` dropped rows of each rule and split, with personal data masked."""
    found: dict[str, list[dict[str, object]]] = {}
    left: dict[tuple[str, str, str], int] = {}
    for scored in ranges if most else ():
        above, values = scored.above(), scored.scores()
        table = None
        for number, rule in enumerate(scored.rules):
            key = (rule.name, scored.rows.config, scored.rows.split)
            chosen = np.flatnonzero(above[number])[: left.get(key, most)].tolist()
            left[key] = left.get(key, most) - len(chosen)
            if chosen and table is None:
                table = scored.rows.read()
            if chosen:
                shown = found.setdefault(rule.name, [])
                shown += _shown(scored, table, chosen, values[number])
    return found


def _shown(scored: Scored, table: pa.Table, chosen: list[int], values: Scores) -> Iterator[dict[str, object]]:
    columns = [name for name in TEXTS if name in table.column_names]
    for place, row in zip(chosen, table.select(columns).take(chosen).to_pylist(), strict=True):
        masked = {name: mask(row[name]) for name in columns}
        score = round(float(values[place]), 4)
        yield {"part": f"{scored.rows.config}/{scored.rows.split}", "score": score, **masked}
