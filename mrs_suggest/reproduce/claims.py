"""The sentences of a paper about two rows of a table, tested on the runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mrs_metrics.seeds import seeds_interval
from mrs_suggest.evaluation.paper_results import paper_figure
from mrs_suggest.reproduce.results import LOWER_IS_BETTER, NO_EXPERIMENT, Paired, Results, UnpairedError
from mrs_suggest.reproduce.table import CLOSE, WORSE, ClaimSpec, TableSpec

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim: for one column, or for all together.

    Attributes:
        n: test examples; `seeds` runs of each row.
        low, high: 95 % interval of first - second; None if it is the same in all examples, which decides nothing.
    """

    verdict: str
    n: int
    seeds: int
    first: float
    second: float
    low: float | None
    high: float | None

    @property
    def share(self) -> tuple[float, list[float] | None]:
        """Difference and its interval as shares of the second row's mean; zeros where that is 0."""
        of = self.second or np.inf
        ends = None if self.low is None or self.high is None else [self.low / of, self.high / of]
        return (self.first - self.second) / of, ends


@dataclass(frozen=True)
class ClaimResult:
    """A claim with its test.

    Attributes:
        metric: that it was tested on, the table's main one.
        pooled: over the examples of all columns; None without any.
        paper: the means of the two rows over the same columns, as printed; None where a figure is not.
    """

    table: str
    spec: ClaimSpec
    metric: str
    pooled: Verdict | None
    columns: dict[str, Verdict] = field(default_factory=dict)
    paper: tuple[float, float] | None = None
    missing: dict[str, str] = field(default_factory=dict)


def check_claims(results: Results) -> Iterator[ClaimResult]:
    for table, grid in results.setup.table.grids().items():
        for claim in grid.claims:
            yield _check(results, table, grid, claim)


def judge(spec: ClaimSpec, metric: str, pair: Paired) -> Verdict:
    """Whether a claim holds on the scores: only if the whole interval of the difference says so."""
    first, second = float(pair.first.mean()), float(pair.second.mean())
    ends = seeds_interval(pair.first - pair.second, units=pair.units).ends
    if ends is None:
        return Verdict(UNDECIDED, pair.first.shape[1], len(pair.seeds), first, second, None, None)
    low, high = ends
    if spec.says == CLOSE:
        margin = spec.within * abs(second)
        holds, fails = -margin < low and high < margin, high < -margin or low > margin
    else:
        lower = (spec.says == WORSE) != (metric in LOWER_IS_BETTER)
        holds, fails = (high < 0, low > 0) if lower else (low > 0, high < 0)
    verdict = HOLDS if holds else FAILS if fails else UNDECIDED
    return Verdict(verdict, pair.first.shape[1], len(pair.seeds), first, second, low, high)


def _check(results: Results, table: str, grid: TableSpec, spec: ClaimSpec) -> ClaimResult:
    metric = next(iter(grid.metrics))
    pairs: dict[str | None, Paired] = {}
    missing: dict[str, str] = {}
    for column in spec.columns or list(grid.columns) or (None,):
        places = [grid.place(row, column) for row in spec.rows]
        try:
            pairs[column] = results.paired(places[0], places[1], metric)
        except UnpairedError as error:
            if str(error) != NO_EXPERIMENT:
                missing[str(column)] = str(error)
    columns = {str(column): judge(spec, metric, pair) for column, pair in pairs.items() if column is not None}
    pooled = judge(spec, metric, _pooled(list(pairs.values()))) if pairs else None
    return ClaimResult(table, spec, metric, pooled, columns, _papers(grid, spec, metric, list(pairs)), missing)


def _pooled(pairs: Sequence[Paired]) -> Paired:
    """The examples of all columns, of the seeds that all have; if they share no seed, of any one."""
    shared = [seed for seed in pairs[0].seeds if all(seed in pair.seeds for pair in pairs)]
    chosen = [[pair.seeds.index(seed) for seed in shared] or [0] for pair in pairs]
    first, second = (
        np.concatenate(
            [(pair.second if side else pair.first)[rows] for pair, rows in zip(pairs, chosen, strict=True)], axis=1
        )
        for side in (0, 1)
    )
    units = [(place, unit) for place, pair in enumerate(pairs) for unit in pair.units]
    return Paired(tuple(shared) or ("any",), first, second, units)


def _papers(grid: TableSpec, spec: ClaimSpec, metric: str, columns: Sequence[str | None]) -> tuple[float, float] | None:
    """The paper's means, over the columns that we have or else all columns of the claim."""
    wanted = columns or spec.columns or list(grid.columns)
    places = [grid.place(row, column) for row in spec.rows for column in wanted]
    printed = [paper_figure(place.paper, metric) if place.paper else None for place in places]
    known = [value for value in printed if value is not None]
    if not printed or len(known) < len(printed):
        return None
    half = len(known) // 2
    return float(np.mean(known[:half])), float(np.mean(known[half:]))
