"""A table of experiments as data: its cells, their data, and the places of their figures.

A table is a YAML file:

    title, about                      what the page says
    trainer                           of the cells that name none
    base_model                        a hub id; `--model FOLDER` stands for it, and `--scale tiny` for a tiny one
    other_models                      more hub ids that `--scale tiny` replaces
    checkpoints: FOLDER: TEXT         models that must be there before, and where they come from
    data: NAME: about, files, command a prepared data set: its source files and the `mrs` command that prepares them, or
                                      generates them, where it has no `{source}`;
                                      `tiny`: the command that generates a small one for `--scale tiny`
    scales: SCALE: options            what `--scale SCALE` changes in every cell that does not set the option itself;
                                      null takes an option out of the configuration
                   base_model         the model of that scale, for which `--model FOLDER` stands
                   same               ENDING: OTHER, cells that are one run at that scale; their rows share its figures
                   seeds              of all cells
                   main               the printed tables of a run without `--table` (default: all)
                   trainers           whose cells can run at that scale (default: all)
                   scopes             LANGUAGE: OTHER, the one that stands for it in the data of that scale
    cells: ID: config, options, seeds, data, needs_configs, scales, trainer
    tables: ID: title, metrics, rows, columns, leads, percent, compared, claims
    figures: ID: the same, with `human`   charts of bars, each with a table of its figures

`{data:NAME}` in an option stands for the folder of a data set in addition to the cell's. An option `@ID` stands for the
folder of another cell's run with the same seed, `@ID/SEED` for that with another one: the cell waits for it. A row or a
column names, together, a `cell`, a `system` of its `run.json`, and a `scope` there: a language or `pooled`, or several
languages, for their mean; `{key}` in a value is filled from the others. `paper` is the path of the printed figure (see
`paper_figure`). An empty `cell` leaves the field empty, and `empty` says why. A row with `columns` has fields in these
alone. A row with `average_of` has the means of other rows, a column with it those of other columns. `metric` of a row
is a key in `run.json` in place of the table's. `compared` lists sets of rows that stand for each other: the best of
each column is bold, and letters mark which differ. `claims` are the paper's sentences about rows (`ClaimSpec`), which
are tested.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.comparison import POOLED
from mrs_suggest.suggest.answering import MODEL

REFERENCE = "@"
DATA = re.compile(r"\{data:([\w-]+)\}")
EMBEDDED = "sample"  # data that come with the package
FULL, TINY = "full", "tiny"  # scales: as configured; tiny models, a few steps
CLOSE, WORSE, BETTER = "close", "worse", "better"  # what a claim says of the first of two rows
Options = Mapping[str, Any]
STRICT = ConfigDict(extra="forbid", coerce_numbers_to_str=True)  # a table may be called 5 in YAML


@dataclass(frozen=True, config=STRICT)
class DataSource:
    """Where a data set comes from: `command` holds `{source}` and `{out}`; `files` must be in the source.

    Without a command the source is used as it is. A command without `{source}` generates the data. `tiny` holds `{out}`
    alone.
    """

    about: str
    files: list[str] = field(default_factory=list)
    command: str = ""
    tiny: str = ""

    def generated(self, scale: str) -> str:
        """The command that needs no source, at a scale, if any."""
        if scale == TINY and self.tiny:
            return self.tiny
        return "" if "{source}" in self.command else self.command


@dataclass(frozen=True, config=STRICT)
class CellSpec:
    """One training run per seed.

    Attributes:
        config: of the trainer, below the folder of configurations; empty for a trainer of `measure.MEASURES`.
        needs_configs: configs that the data must have, such as `mt-fr`; without them the cell stays empty.
        scales: scale -> what it changes in this cell, its own options included, beyond the table's `scales`.
    """

    config: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=lambda: [42])
    data: str = EMBEDDED
    needs_configs: list[str] = field(default_factory=list)
    scales: dict[str, dict[str, Any]] = field(default_factory=dict)
    trainer: str = ""

    def chosen(self, scale: str) -> dict[str, Any]:
        """The cell's own options at a scale."""
        return {**self.options, **self.scales.get(scale, {})}

    def data_names(self, scale: str) -> list[str]:
        """The data sets that the cell uses, its own first."""
        return list(dict.fromkeys([self.data, *DATA.findall(str(list(self.chosen(scale).values())))]))


@dataclass(frozen=True, config=STRICT)
class ScaleSpec:
    """The changes of a scale; at `full`, only `main` and `gpu`, which says that its training runs need a GPU."""

    options: dict[str, Any] = field(default_factory=dict)
    base_model: str = ""
    same: dict[str, str] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    main: list[str] = field(default_factory=list)
    trainers: list[str] = field(default_factory=list)
    scopes: dict[str, str] = field(default_factory=dict)
    gpu: bool = False


@plain_dataclass(frozen=True)
class Place:
    """The source of the figures in a field of a table.

    Attributes:
        scope: `pooled`, a language, or several, separated by spaces, whose mean it is.
        seed: of the run; empty for all.
        metric: key in `run.json`, in place of the table's.
    """

    cell: str
    system: str = MODEL
    scope: str = POOLED
    seed: str = ""
    empty: str = ""
    paper: str = ""
    metric: str = ""


@dataclass(frozen=True, config=STRICT)
class ClaimSpec:
    """A sentence of a paper about two rows of a table, tested over the columns that both have.

    Attributes:
        title: the sentence.
        says: how the first row compares with the second.
        columns: test these alone.
        within: how far apart close ones may be, as a share of the second row's figure.
        about: what its words leave open, such as what is close.
    """

    title: str
    says: Literal["close", "worse", "better"]
    rows: list[str]
    paper: str = ""
    columns: list[str] = field(default_factory=list)
    within: float = 0.0
    about: str = ""


@dataclass(frozen=True, config=STRICT)
class TableSpec:
    """One printed table.

    Attributes:
        metrics: key in `run.json` -> title, the main one first; they are the columns, or, where there are `columns`,
            each metric has a table.
        rows, columns: title -> parts of a `Place`; of a row `columns`, the titles of those that it has a field in; of
            both `average_of`, titles of rows or columns.
        leads: pairs of rows whose difference has a paired interval.
        percent: the figures are shares, printed in %.
        same: cell -> the one whose figures stand for its own.
        compared: sets of rows, the best of which is bold in each column, with letters for those that differ.
        human: of a figure, the two rows between which people chose, where sheets are given.
    """

    title: str
    metrics: dict[str, str]
    rows: dict[str, dict[str, Any]]
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    leads: list[list[str]] = field(default_factory=list)
    percent: bool = False
    same: dict[str, str] = field(default_factory=dict)
    compared: list[list[str]] = field(default_factory=list)
    claims: list[ClaimSpec] = field(default_factory=list)
    human: list[str] = field(default_factory=list)
    note: str = ""

    def place(self, row: str, column: str | None) -> Place:
        """The source of the figures in a field; `column` is None in a table without columns."""
        parts = {**self.rows[row], **(self.columns[column] if column is not None else {})}
        if column not in parts.get("columns", [column]):
            return Place("")
        if self.averaged(row, column):
            return Place("", paper=parts.get("paper", "").format(**parts))
        known = {one.name for one in fields(Place)}
        found = Place(**{key: value.format(**parts) for key, value in parts.items() if key in known})
        return replace(found, cell=self.same.get(found.cell, found.cell))

    def averaged(self, row: str, column: str | None) -> list[tuple[str, str | None]]:
        """The fields that a field averages; empty for the figure of a run."""
        if column not in self.rows[row].get("columns", [column]):
            return []
        if names := self.rows[row].get("average_of"):
            return [(name, column) for name in names]
        names = self.columns[column].get("average_of", []) if column is not None else []
        return [(row, name) for name in names]

    def fields(self) -> Iterator[tuple[str, str | None]]:
        for row in self.rows:
            for column in self.columns or (None,):
                yield row, column

    def cells(self) -> list[str]:
        """The cells whose figures stand in it."""
        return [self.place(row, column).cell for row, column in self.fields()]


@dataclass(frozen=True, config=STRICT)
class Table:
    name: str
    title: str
    about: str
    trainer: str
    base_model: str
    cells: dict[str, CellSpec]
    data: dict[str, DataSource] = field(default_factory=dict)
    tables: dict[str, TableSpec] = field(default_factory=dict)
    scales: dict[str, ScaleSpec] = field(default_factory=dict)
    other_models: list[str] = field(default_factory=list)
    checkpoints: dict[str, str] = field(default_factory=dict)
    figures: dict[str, TableSpec] = field(default_factory=dict)

    def grids(self) -> dict[str, TableSpec]:
        """Tables and figures, by titles that differ."""
        return {**self.tables, **{f"figure {name}": grid for name, grid in self.figures.items()}}

    def at(self, scale: str) -> ScaleSpec:
        return self.scales.get(scale, ScaleSpec())

    def scale_names(self) -> list[str]:
        return [FULL, *(name for name in self.scales if name != FULL)]

    def same(self, scale: str) -> dict[str, str]:
        """Cell -> the one that is the same run at a scale."""
        return {
            name: name.removesuffix(ending) + other
            for ending, other in self.at(scale).same.items()
            for name in self.cells
            if name.endswith(ending)
        }


def only_tables(table: Table, names: Sequence[str], figures: Sequence[str] = ()) -> Table:
    """The table with these of its tables and figures, and their cells with all that these wait for."""
    for option, chosen, known in (("table", names, table.tables), ("figure", figures, table.figures)):
        for name in chosen:
            if name not in known:
                there = f"expected {', '.join(known)}" if known else "it has none"
                raise InputError(f"--{option} {name}: {table.name} has no such {option}; {there}.")
    kept = {name: grid for name, grid in table.tables.items() if name in names}
    drawn = {name: grid for name, grid in table.figures.items() if name in figures}
    wanted = [cell for grid in (*kept.values(), *drawn.values()) for cell in grid.cells()]
    drawn |= {name: grid for name, grid in table.figures.items() if set(grid.cells()) <= set(wanted)}
    for cell in wanted:  # it grows
        options = table.cells[cell].options if cell else {}
        wanted += [other for _, one in references(options) if (other := one.partition("/")[0]) not in wanted]
    cells = {name: cell for name, cell in table.cells.items() if name in wanted}
    return replace(table, tables=kept, figures=drawn, cells=cells)


def at_scale(table: Table, scale: str) -> Table:
    """The table with the scale's seeds, and one cell for those that are one run there; else an InputError."""
    if scale not in table.scale_names():
        raise InputError(f"--scale {scale}: {table.name} has no such scale; expected {', '.join(table.scale_names())}.")
    same, seeds = table.same(scale), table.at(scale).seeds
    tables, figures = (
        {name: replace(grid, same=same) for name, grid in grids.items()} for grids in (table.tables, table.figures)
    )
    cells = {}
    for name, cell in table.cells.items():
        if name not in same:
            others = {key: REFERENCE + same.get(one, one) for key, one in references(cell.options)}
            cells[name] = replace(cell, seeds=seeds or cell.seeds, options={**cell.options, **others})
    return replace(table, cells=cells, tables=tables, figures=figures)


def with_checkpoints(table: Table, given: Mapping[str, str]) -> Table:
    """The table with models that are there already in place of the runs that would make them.

    Args:
        given: cell -> folder of a model.

    Raises:
        InputError: there is no such cell, or no other one starts from it.
    """
    users = {reference.partition("/")[0] for cell in table.cells.values() for _, reference in references(cell.options)}
    for name in given:
        if name not in users:
            have = ", ".join(one for one in table.cells if one in users) or "none"
            raise InputError(
                f"--checkpoint {name}=...: expected a cell of {table.name} that others start from ({have})."
            )
    kept = {}
    for name, cell in table.cells.items():
        found = {key: given[one] for key, ref in references(cell.options) if (one := ref.partition("/")[0]) in given}
        if name not in given:
            kept[name] = replace(cell, options={**cell.options, **found})
    return replace(table, cells=kept)


def with_data(options: Options, folder: Callable[[str], str]) -> dict[str, Any]:
    """The options with the folder of each `{data:NAME}`."""

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(one) for one in value]
        return DATA.sub(lambda found: folder(found[1]), value) if isinstance(value, str) else value

    return {key: filled(value) for key, value in options.items()}


def references(options: Options) -> Iterator[tuple[str, str]]:
    """(option, reference without `@`) of the options that name another cell's run."""
    for key, value in options.items():
        if isinstance(value, str) and value.startswith(REFERENCE):
            yield key, value.removeprefix(REFERENCE)


def table_names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def read_table(folder: Path, name: str) -> Table:
    """Read `NAME.yaml`, a file of this project, whose references its tests check; InputError if there is none."""
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise InputError(f"{name}: no such table; expected one of {', '.join(table_names(folder)) or 'none'}.")
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    return TypeAdapter(Table).validate_python({"name": name, **values})
