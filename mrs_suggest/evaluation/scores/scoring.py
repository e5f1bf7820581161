"""From a system's file to its figures, by one of the metrics."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.metric_errors import metric_errors
from mrs_suggest.evaluation.metrics.mrs_rouge import MrsRouge
from mrs_suggest.evaluation.scores.metric_record import ScoreRecord
from mrs_suggest.evaluation.scores.metric_spec import Metric, MetricSpec
from mrs_suggest.evaluation.scores.score_tables import Row


@dataclass
class ScoredSystem:
    """One system.

    Attributes:
        system: its name.
        record: its figures.
        values: (n,) per-example scores whose mean is the main figure, nan where one was skipped; empty if it is not
            a mean.
        examples: (n,) what the system was scored on; empty where only their digest is known.
        digest: of the examples; two systems with the same one can be compared.
        messages: how many different messages the examples have; 0 where that is not known.
        rank: of its group, from 1; None where systems were not compared.
        common: `n` and main figure of the examples that all systems have a score for, where some have more.
    """

    system: str
    record: ScoreRecord
    values: Sequence[float] = ()
    examples: Sequence[str] = ()
    digest: str = ""
    messages: int = 0
    rank: int | None = None
    common: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.examples and not self.digest:
            self.digest = hashlib.sha256("\n".join(self.examples).encode()).hexdigest()
            self.messages = len({example.partition("\t")[0] for example in self.examples})

    def row(self) -> Row:
        """Its row of a table."""
        return Row(self.system, self.record.numbers(), self.record.interval or (), best=self.rank == 1)

    def as_json(self) -> dict[str, object]:
        """Its record among those of several systems."""
        found: dict[str, object] = {"system": self.system, **self.record.as_json()}
        if self.common is not None:
            found["common"] = self.common
        if self.rank:
            found["rank"] = self.rank
        return found


def score_system(spec: MetricSpec, metric: Metric, path: Path) -> ScoredSystem:
    """Score one file.

    Args:
        spec: what the metric declares.
        metric: the metric with its options set.
        path: the system's file or folder.

    Raises:
        InputError: the file is missing or broken, or the metric refuses it; the sentence names the file.
    """
    with metric_errors(str(path)):
        record, values, examples = metric.score(path)
    if record.interval:
        record = dataclasses.replace(record, interval_method=_interval_method(spec))
    return ScoredSystem(str(path), record, values, examples)


def _interval_method(spec: MetricSpec) -> str:
    from mrs_metrics.resampling import PERCENTILE, STUDENTISED

    return PERCENTILE if spec.interval == "percentile" else STUDENTISED


def score_file(path: Path, language: str) -> dict[str, float]:
    """The figures of one prediction file by the main metric with its defaults, by the names of `mrs score --json`.

    Raises:
        InputError: the file is missing or broken.
    """
    with metric_errors(str(path)):
        record = MrsRouge(language=language).score(path).record
    return {name: figure for name, figure in record.numbers().items() if figure is not None}
