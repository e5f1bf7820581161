"""The results of a metric for one system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Figure = float | None  # a count is an int; None where there is nothing to compute it from


@dataclass(frozen=True)
class TaskFigures:
    """The figures of a benchmark of several tasks in several languages.

    Attributes:
        missing: task -> languages that were not scored, so that the averages do not compare with published ones.
        languages: task -> language -> figures by name.
        notes: task -> language -> what was unusual in its files, counted.
    """

    missing: Mapping[str, Sequence[str]]
    languages: Mapping[str, Mapping[str, Mapping[str, float]]]
    notes: Mapping[str, Mapping[str, Mapping[str, int]]]


@dataclass(frozen=True)
class ScoreRecord:
    """The figures of one system by one metric.

    Attributes:
        n: examples scored.
        figures: by name, the main one among them.
        signatures: how the figures were computed, by their names in JSON: `signature`, and others that end so.
        interval: 95 % interval of the main figure; empty where it cannot be computed, None where the metric has none.
        interval_method: how the interval was computed.
        skipped: examples left out, by reason; None where the metric leaves none out.
        beside: figures of another metric that are shown with these.
        tasks: of a benchmark, its figures by task.
    """

    n: int
    figures: Mapping[str, Figure]
    signatures: Mapping[str, str]
    interval: tuple[float, ...] | None = None
    interval_method: str = ""
    skipped: Mapping[str, int] | None = None
    beside: Mapping[str, Figure] = field(default_factory=dict)
    tasks: TaskFigures | None = None

    @classmethod
    def of(
        cls,
        found: Mapping[str, float],
        signature: str,
        interval: tuple[float, ...] | None = None,
        skipped: Mapping[str, int] | None = None,
    ) -> ScoreRecord:
        """A record of what the `aggregate` of a topic of `mrs_metrics` returns: `n` and the figures."""
        figures = {name: figure for name, figure in found.items() if name != "n"}
        return cls(int(found["n"]), figures, {"signature": signature}, interval, skipped=skipped)

    def numbers(self) -> dict[str, Figure]:
        """All that a column of a table can show, by name."""
        return {"n": self.n, **self.figures, **self.beside}

    def as_json(self) -> dict[str, object]:
        """The record as `mrs score --json` prints it, flat."""
        found: dict[str, object] = {"n": self.n, **self.figures}
        if self.tasks is not None:
            tasks = self.tasks
            found |= {"missing": tasks.missing, "languages": tasks.languages, "notes": tasks.notes}
        if self.interval is not None:
            found["interval"] = list(self.interval)
        found |= self.beside
        if self.skipped is not None:
            found["skipped"] = self.skipped
        found |= self.signatures
        if self.interval:
            found["interval_method"] = self.interval_method
        return found


class Scored(NamedTuple):
    """A record and what it was computed from.

    Attributes:
        record: the figures.
        values: (n,) per-example scores whose mean is the main figure, nan where one was skipped; empty if the main
            figure is not a mean.
        examples: (n,) texts that identify the examples; empty if the file has none.
    """

    record: ScoreRecord
    values: Sequence[float] = ()
    examples: Sequence[str] = ()


def with_gaps(kept: NDArray[np.int64], values: NDArray[np.float64], n: int) -> list[float]:
    """The scores of the kept examples at the places of all n; nan where an example was skipped."""
    column = [float("nan")] * n
    for place, value in zip(kept.tolist(), values.tolist(), strict=True):
        column[place] = value
    return column
