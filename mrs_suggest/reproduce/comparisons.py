"""Which rows of a table differ: the best of each column, and letters that rows share if they do not differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from string import ascii_lowercase
from typing import Any

from mrs_metrics.significance import ALPHA, holm, permutation_test
from mrs_suggest.reproduce.results import (
    ACCURACY,
    LOWER_IS_BETTER,
    NO_EXPERIMENT,
    WEIGHTED,
    Figure,
    Results,
    UnpairedError,
)
from mrs_suggest.reproduce.table import TableSpec

SAMPLES = 10_000  # of a permutation test: the standard error of p is .002 at .05, and a table has some sixty tests
Field = tuple[str, str, str | None, str]  # table, row, column, metric


@dataclass
class Comparisons:
    """Comparisons of the figures of a table.

    Attributes:
        best: the fields whose figure is the best of its column.
        letters: of each field that was tested; two without a common one differ.
        p: of each pair of rows, after Holm's correction over the pairs of the column.
    """

    best: set[Field] = field(default_factory=set)
    letters: dict[Field, str] = field(default_factory=dict)
    p: list[Mapping[str, Any]] = field(default_factory=list)


def compare(results: Results, figures: Sequence[Figure]) -> Comparisons:
    p, grids = list[Mapping[str, Any]](), results.setup.table.grids()
    for table, column, metric, own in _compared(grids, figures):
        if metric in (WEIGHTED, ACCURACY):
            found = _tested(results, grids[table], column, metric, list(own))
            p += [{"table": table, "column": column, "metric": metric, **one} for one in found]
    return grouped(grids, figures, p)


def grouped(grids: Mapping[str, TableSpec], figures: Sequence[Figure], p: list[Mapping[str, Any]]) -> Comparisons:
    """The best of each column, and letters by p-values, which are those of `Comparisons`."""
    found = Comparisons(p=p)
    known = {(one["table"], one["column"], one["metric"], frozenset(one["rows"])): one["p"] for one in p}
    for table, column, metric, own in _compared(grids, figures):
        found.best |= {(table, row, column, metric) for row, mean in own.items() if mean == next(iter(own.values()))}
        pairs = {pair: known.get((table, column, metric, pair)) for pair in map(frozenset, combinations(own, 2))}
        if None not in pairs.values():
            alike = {pair for pair, value in pairs.items() if value is not None and value >= ALPHA}
            for row, letters in letter_groups(list(own), alike).items():
                found.letters[table, row, column, metric] = letters
    return found


def _compared(
    grids: Mapping[str, TableSpec], figures: Sequence[Figure]
) -> Iterator[tuple[str, str | None, str, dict[str, float]]]:
    """Table, column, metric and means by row, best first, of each set of two rows or more with a figure."""
    means = {(one.table, one.row, one.column, one.metric): one.mean for one in figures}
    for table, grid in grids.items():
        for rows, metric, column in product(grid.compared, grid.metrics, grid.columns or (None,)):
            own = {row: mean for row in rows if (mean := means[table, row, column, metric]) is not None}
            if len(own) > 1:
                order = sorted(own, key=lambda row: own[row], reverse=metric not in LOWER_IS_BETTER)
                yield table, column, metric, {row: own[row] for row in order}


def _tested(
    results: Results, grid: TableSpec, column: str | None, metric: str, order: Sequence[str]
) -> list[dict[str, object]]:
    """Each pair of rows with its corrected p-value; none if a pair cannot be tested."""
    pairs, p_values = list(combinations(order, 2)), []
    for one, other in pairs:
        try:
            scores = results.paired(grid.place(one, column), grid.place(other, column), metric)
            p_values.append(
                permutation_test(scores.first.mean(axis=0), scores.second.mean(axis=0), SAMPLES, units=scores.units)
            )
        except UnpairedError as error:
            if str(error) != NO_EXPERIMENT:  # one run in both rows does not differ from itself
                return []
            p_values.append(1.0)
    return [{"rows": list(pair), "p": p} for pair, p in zip(pairs, holm(p_values), strict=True)]


def letter_groups(order: Sequence[str], alike: set[frozenset[str]]) -> dict[str, str]:
    """Row -> its letters: two rows share one just where they are alike.

    Each letter stands for a largest set of rows that are all alike (Piepho 2004, "An Algorithm for a Letter-Based
    Representation of All-Pairwise Comparisons").

    >>> letter_groups(["x", "y", "z"], {frozenset("xy"), frozenset("yz")})
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    groups = [list(order)]
    for one, other in combinations(order, 2):
        if frozenset((one, other)) in alike:
            continue
        for group in [group for group in groups if one in group and other in group]:
            groups.remove(group)
            groups += [[row for row in group if row != out] for out in (other, one)]
        groups = [
            group
            for place, group in enumerate(groups)
            if not any(set(group) < set(more) or (group == more and place > n) for n, more in enumerate(groups))
        ]
    groups.sort(key=lambda group: [order.index(row) for row in group])
    return {
        row: "".join(ascii_lowercase[number] for number, group in enumerate(groups) if row in group) for row in order
    }
