"""Tables of experiments read from a text, after checking that their references name what there is."""

from collections.abc import Iterator

import yaml
from pydantic import TypeAdapter

from mrs_suggest.common.errors import InputError
from mrs_suggest.reproduce.table import CLOSE, EMBEDDED, Table, TableSpec, references


def parse_table(text: str, name: str = "test") -> Table:
    """The table that a YAML text describes; InputError if a cell, a row or a reference names what is not there."""
    table = TypeAdapter(Table).validate_python({"name": name, **yaml.safe_load(text)})
    for problem in _problems(table):
        raise InputError(f"{name}: {problem}.")
    return table


def _problems(table: Table) -> Iterator[str]:
    """References to things that do not exist."""
    for name, cell in table.cells.items():
        for data in (data for scale in table.scale_names() for data in cell.data_names(scale)):
            if data != EMBEDDED and data not in table.data:
                yield f"cells {name}: data {data!r} is not described under `data`"
        for _, reference in references(cell.options):
            other, _, seed = reference.partition("/")
            seeds = table.cells[other].seeds if other in table.cells else []
            if any(wanted not in seeds for wanted in ([int(seed)] if seed.isdigit() else cell.seeds)):
                yield f"cells {name}: @{reference} is not a cell with that seed"
    for name, grid in table.grids().items():
        yield from (f"tables {name}, {problem}" for problem in _problems_of(grid, table))
    for scale, spec in table.scales.items():
        for main in (one for one in spec.main if one not in table.tables):
            yield f"scales {scale}, main: unknown table {main!r}"
        for mine, instead in table.same(scale).items():
            if instead not in table.cells:
                yield f"scales {scale}, same: unknown cell {instead!r} for {mine}"


def _problems_of(grid: TableSpec, table: Table) -> Iterator[str]:
    for row, column in grid.fields():
        try:
            place = grid.place(row, column)
        except (KeyError, TypeError) as error:
            yield f"{row}: {error}"
            return
        for above, beside in grid.averaged(row, column):
            if above not in grid.rows or (beside is not None and beside not in grid.columns):
                yield f"{row}: average_of names no row or column {above!r}"
        if place.cell and place.cell not in table.cells:
            yield f"{row}: unknown cell {place.cell!r}"
    pairs = [("leads", pair) for pair in grid.leads] + [("human", grid.human)] * bool(grid.human)
    for what, pair in [*pairs, *(("claims", claim.rows) for claim in grid.claims)]:
        if len(pair) != 2 or any(row not in grid.rows for row in pair):
            yield f"{what}: expected two rows of the table, found {' and '.join(pair)}"
    for row in (row for rows in grid.compared for row in rows if row not in grid.rows):
        yield f"compared: unknown row {row!r}"
    for claim in grid.claims:
        for column in (column for column in claim.columns if column not in grid.columns):
            yield f"claims: unknown column {column!r}"
        if (claim.says == CLOSE) != (claim.within > 0):
            yield f"claims: {claim.title!r} says {claim.says!r}; only {CLOSE} has `within`, a share above 0"
