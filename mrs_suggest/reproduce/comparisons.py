"""Which rows of a table differ: the best of each column, and letters that rows share if they do not differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from string import ascii_lowercase

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
    p: list[dict[str, object]] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)


def compare(results: Results, figures: Sequence[Figure]) -> Comparisons:
    """Compare the rows that the tables want compared."""
    found = Comparisons()
    by_field = {(one.table, one.row, one.column, one.metric): one for one in figures}
    for table, grid in results.setup.table.grids().items():
        for rows in grid.compared:
            for metric in grid.metrics:
                for column in grid.columns or (None,):
                    own = {row: by_field[table, row, column, metric] for row in rows}
                    own = {row: figure for row, figure in own.items() if figure.mean is not None}
                    if len(own) > 1:
                        _compare_rows(results, grid, own, found)
    return found


def _compare_rows(results: Results, grid: TableSpec, own: Mapping[str, Figure], found: Comparisons) -> None:
    first = next(iter(own.values()))
    table, column, metric = first.table, first.column, first.metric
    sign = 1 if metric in LOWER_IS_BETTER else -1
    order = sorted(own, key=lambda row: sign * (own[row].mean or 0))
    found.best |= {(table, row, column, metric) for row in own if own[row].mean == own[order[0]].mean}
    if metric not in (WEIGHTED, ACCURACY):
        return
    pairs, p_values = list(combinations(order, 2)), []
    for one, other in pairs:
        try:
            scores = results.paired(grid.place(one, column), grid.place(other, column), metric)
            p_values.append(
                permutation_test(scores.first.mean(axis=0), scores.second.mean(axis=0), SAMPLES, units=scores.units)
            )
        except UnpairedError as error:
            if str(error) != NO_EXPERIMENT:  # one run in both rows does not differ from itself
                found.untested.append(str(error))
                return
            p_values.append(1.0)
    corrected = dict(zip(pairs, holm(p_values), strict=True))
    for pair, p in corrected.items():
        found.p.append({"table": table, "column": column, "metric": metric, "rows": list(pair), "p": p})
    alike = {frozenset(pair) for pair, p in corrected.items() if p >= ALPHA}
    for row, letters in letter_groups(order, alike).items():
        found.letters[table, row, column, metric] = letters


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
