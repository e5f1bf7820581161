"""The figures of a table's finished runs: printed, and written as JSON, Markdown and a picture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mrs_core.cards import markdown_table
from mrs_core.drawing import drawing
from mrs_core.files import atomic_write
from mrs_core.predictions import read_predictions
from mrs_evaluation.choice_analysis import average
from mrs_evaluation.choice_answers import Views, read_run_answers
from mrs_evaluation.language_data import EVALUATION_SEED
from mrs_evaluation.paper_results import paper_figure
from mrs_metrics.rouge import score_examples
from mrs_metrics.significance import paired_bootstrap_interval
from mrs_models.answering import MODEL
from mrs_models.baselines import BASELINES
from mrs_models.starting_points import MULTIPLE_CHOICE
from mrs_training.card import Record
from mrs_training.reproduce.cells import Setup, States, all_cells, run_of
from mrs_training.reproduce.table import FULL, Place, TableSpec
from mrs_training.run import RunFolder, read_record

Interval = list[float]
DARK = 0.6  # of a heat map's range: text is white on darker cells
LEADS = " Leads are paired 95 % intervals over the same examples, seed by seed."
PAPER = "_paper_"  # the row of the printed figures, below ours
NO_EXPERIMENT = "not an experiment"  # a field that is empty in the table's file


@dataclass(frozen=True)
class Figure:
    """A field of a table.

    Attributes:
        values: seed -> figure; empty where there is none, and `missing` tells why.
        intervals: seed -> its 95 % interval, where the run has one.
        paper: the printed figure, in the unit of the table.
    """

    table: str
    row: str
    column: str | None
    metric: str
    place: Place
    values: dict[str, float]
    intervals: dict[str, Interval]
    missing: str = ""
    paper: float | None = None
    percent: bool = False

    @property
    def mean(self) -> float | None:
        """Over the seeds; None if there is no figure."""
        return float(np.mean(list(self.values.values()))) if self.values else None

    def text(self) -> str:
        """`.3773 (.3754 to .3789)`: mean and range, or the figure of one seed with its interval."""
        if self.mean is None:
            return ""
        if len(self.values) > 1:
            low, high = min(self.values.values()), max(self.values.values())
            return f"{self.shown(self.mean)} ({self.shown(low)} to {self.shown(high)})"
        interval = next(iter(self.intervals.values()), None)
        return self.shown(self.mean) + (f" [{self.shown(interval[0])}, {self.shown(interval[1])}]" if interval else "")

    def shown(self, value: float) -> str:
        """A figure in the unit of the table."""
        return f"{100 * value:.1f}" if self.percent else _short(value)

    def printed(self) -> str:
        """The paper's figure."""
        return "" if self.paper is None else f"{self.paper:.1f}" if self.percent else _short(self.paper)


@dataclass(frozen=True)
class Lead:
    """The paired 95 % intervals of the difference of two rows, by metric and seed."""

    table: str
    row: str
    over: str
    column: str | None
    intervals: dict[str, dict[str, Interval]]
    missing: str = ""


@dataclass
class Results:
    """What the finished runs of a table say.

    Attributes:
        problems: why cells have no run, by name.
    """

    setup: Setup
    problems: Mapping[str, str]
    records: dict[str, Record] = field(default_factory=dict)
    answers: dict[str, Views] = field(default_factory=dict)  # read when a mean over languages is asked for

    @classmethod
    def read(cls, setup: Setup, problems: Mapping[str, str]) -> Results:
        """The records of the finished cells; one that stands from earlier options is not among them."""
        cells = all_cells(setup.table)
        states = States(setup, cells)
        found = {name: read_record(run_of(name, setup)) for name in cells if states.finished(name)}
        why = {name: problems.get(name) or states.told(name) for name in cells if name not in found}
        return cls(setup, why, found)

    def figure(self, table: str, grid: TableSpec, row: str, column: str | None, metric: str) -> Figure:
        """One field."""
        place = grid.place(row, column)
        paper = paper_figure(place.paper, metric) if place.paper else None
        if fields := grid.averaged(row, column):
            means, missing = self._mean([self.figure(table, grid, *one, metric) for one in fields])
            return Figure(table, row, column, metric, place, means, {}, missing, paper, grid.percent)
        values, intervals, missing, key = {}, {}, "", place.metric or metric
        for seed, name in self._names(place):
            found, why = self._scope(name, place)
            if found is None or found.get(key) is None:
                missing = missing or why or f"{place.system} has no {key}"
                continue
            values[seed] = float(found[key])
            own = found.get("interval") if key == metric else None  # it is of the main figure
            interval = found.get(f"{key}_interval", own) or self._average_interval(name, place)
            if interval is not None:
                intervals[seed] = list(interval)
        missing = place.empty or (missing if place.cell else NO_EXPERIMENT)
        return Figure(table, row, column, metric, place, values, intervals, missing, paper, grid.percent)

    def _mean(self, figures: list[Figure]) -> tuple[dict[str, float], str]:
        """The mean of fields, seed by seed, and why there is none."""
        seeds = [seed for seed in figures[0].values if all(seed in one.values for one in figures)]
        if seeds:
            return {seed: float(np.mean([one.values[seed] for one in figures])) for seed in seeds}, ""
        return {}, next((one.missing for one in figures if one.missing), "its runs have no seed in common")

    def lead(self, table: str, grid: TableSpec, row: str, over: str, column: str | None) -> Lead:
        """The difference of two rows."""
        mine, other = grid.place(row, column), grid.place(over, column)
        found: dict[str, dict[str, Interval]] = {}
        missing = "" if mine.cell and other.cell else NO_EXPERIMENT
        for seed, name in self._names(mine):
            others = dict(self._names(other))
            intervals = self._difference(name, mine, others.get(seed, ""), other)
            if isinstance(intervals, str):
                missing = missing or intervals
                continue
            for metric, interval in intervals.items():
                found.setdefault(metric, {})[seed] = interval
        return Lead(table, row, over, column, found, missing)

    def _names(self, place: Place) -> Iterator[tuple[str, str]]:
        """(seed, cell) of the runs whose figures stand in a place."""
        for seed in self.setup.table.cells[place.cell].seeds if place.cell else ():
            if place.seed in ("", str(seed)):
                yield str(seed), f"{place.cell}/{seed}"

    def _scope(self, name: str, place: Place) -> tuple[Record | None, str]:
        if name not in self.records:
            return None, f"{name}: {self.problems[name]}"
        metrics = self.records[name]["metrics"]
        scopes = {**metrics.get("systems", {}), **metrics.get("tasks", {})}.get(place.system)
        wanted = place.scope.split()
        lacking = [scope for scope in wanted if scope not in (scopes or {})]
        if self.setup.scale != FULL and scopes and lacking:  # its data may have fewer languages
            wanted = [scope for scope in wanted if scope in scopes]
            if not wanted:
                return None, NO_EXPERIMENT
            lacking = []
        if scopes is None or lacking:
            return None, f"{name}: its run has no {place.system} for {' '.join(lacking or wanted)}"
        if len(wanted) == 1:
            return scopes[wanted[0]], ""
        shared = set.intersection(*(set(scopes[scope]) for scope in wanted))
        means = {key: [scopes[scope][key] for scope in wanted] for key in shared}
        return {key: float(np.mean(of)) for key, of in means.items() if all(isinstance(one, float) for one in of)}, ""

    def _average_interval(self, name: str, place: Place) -> Interval | None:
        """Of the mean over several languages, from a multiple-choice run's answers; None where they do not allow it."""
        languages = place.scope.split()
        if len(languages) < 2 or self.records[name]["trainer"] != MULTIPLE_CHOICE:
            return None
        if name not in self.answers:
            self.answers[name] = read_run_answers(run_of(name, self.setup), self.records[name])
        found = average(self.answers[name][place.system], languages)
        return [found.low, found.high] if found else None

    def _difference(self, name: str, mine: Place, other_name: str, other: Place) -> dict[str, Interval] | str:
        found, why = self._scope(name, mine)
        if found is None:
            return why
        if mine.system == MODEL and (name == other_name or other.system in BASELINES):  # the same in every run
            return dict(self.records[name]["metrics"]["differences"][other.system][mine.scope])
        if not other_name:
            return f"{name}: the other row has no run with its seed"
        found, why = self._scope(other_name, other)
        if found is None:
            return why
        if (mine.system, other.system) != (MODEL, MODEL):
            return f"the runs store only the suggestions of their own {MODEL!r}"
        return self._paired(name, other_name, mine.scope)

    def _paired(self, name: str, other: str, scope: str) -> dict[str, Interval] | str:
        """The interval of weighted ROUGE, from the suggestions of two runs."""
        every = [list(self.records[one]["metrics"]["signatures"]) for one in (name, other)]
        languages = [scope] if all(scope in codes for codes in every) else every[0]
        if not all(set(languages) <= set(codes) for codes in every):
            return f"{name} and {other} were not tested on the same languages"
        columns = []
        for code in languages:
            ours, theirs = (_weighted(run_of(one, self.setup), code) for one in (name, other))
            if ours[0] != theirs[0]:
                return f"{name} and {other} were not tested on the same examples"
            columns.append((ours[1], theirs[1]))
        first, second = (np.concatenate(column) for column in zip(*columns, strict=True))
        return {"weighted": list(paired_bootstrap_interval(first, second, seed=EVALUATION_SEED))}


@cache
def _weighted(run: Path, language: str) -> tuple[tuple[tuple[str, str], ...], np.ndarray]:
    """Messages with references, and (kept,) weighted ROUGE of a run's suggestions."""
    rows = read_predictions(run / RunFolder.predictions_name(language))
    scores = score_examples([list(row.suggestions) for row in rows], [row.reference for row in rows], language=language)
    return tuple((row.message, row.reference) for row in rows), scores.weighted


def write_report(setup: Setup, problems: Mapping[str, str]) -> list[Path]:
    """Print the table, write `NAME.md`, `NAME.json` and `NAME.png`; return their paths."""
    results = Results.read(setup, problems)
    table = setup.table
    figures = [
        results.figure(name, grid, row, column, metric)
        for name, grid in table.tables.items()
        for metric in grid.metrics
        for row, column in grid.fields()
    ]
    leads = [
        results.lead(name, grid, row, over, column)
        for name, grid in table.tables.items()
        for row, over in grid.leads
        for column in grid.columns or (None,)
    ]
    paths = [setup.output / f"{table.name}.{kind}" for kind in ("md", "json", "png")]
    page = _page(results, figures, leads)
    print(page)
    atomic_write(paths[0], page)
    atomic_write(paths[1], json.dumps(_record(results, figures, leads), indent=2, ensure_ascii=False) + "\n")
    _draw(results, figures, paths[2])
    return paths


def _record(results: Results, figures: list[Figure], leads: list[Lead]) -> Record:
    runs = {
        name: {key: record.get(key) for key in ("seed", "commit", "versions", "hardware", "data", "seconds")}
        for name, record in results.records.items()
    }
    return {
        "table": results.setup.table.name,
        "scale": results.setup.scale,
        "figures": [{**asdict(figure), "mean": figure.mean} for figure in figures],
        "leads": [asdict(lead) for lead in leads],
        "runs": runs,
        "not_run": dict(results.problems),
    }


def _page(results: Results, figures: list[Figure], leads: list[Lead]) -> str:
    setup = results.setup
    table, total = setup.table, len(all_cells(setup.table))
    lines = [f"# {table.title}", "", table.about, ""]
    if setup.tiny:
        lines += ["**Tiny models, a few steps each: these figures only show that the runs work.**", ""]
    lines += [f"{len(results.records)} of {total} runs. Mean over seeds, in brackets their range; of one seed its 95 %"]
    lines += [f"interval.{LEADS if any(grid.leads for grid in table.tables.values()) else ''}", ""]
    if setup.model and not setup.tiny:
        replaced = table.at(setup.scale).base_model or table.base_model
        lines += [f"`{setup.model.resolve().name}` stands for {replaced} in all of it.", ""]
    for name, grid in table.tables.items():
        lines += [f"## {grid.title}", ""]
        own = [figure for figure in figures if figure.table == name]
        for title, header, rows in _grids(grid, own):
            lines += [*([f"{title}:", ""] if title else []), markdown_table(header, rows), ""]
        told = [_lead_row(lead) for lead in leads if lead.table == name and lead.intervals]
        if told:
            lines += [markdown_table(["lead", "over", "", "ROUGE", "MRR"], told), ""]
        missing = [one.missing for one in own] + [lead.missing for lead in leads if lead.table == name]
        lines += [*_reasons([one for one in missing if one], results), ""]
    commits = sorted({str(record.get("commit")) for record in results.records.values()})
    lines += [f"Runs of commit {', '.join(commits)}."] if commits else []
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def _reasons(missing: list[str], results: Results) -> list[str]:
    """Why fields are empty, each reason once with its cells."""
    cells: dict[str, list[str]] = {}
    for told in dict.fromkeys(missing):
        name, _, reason = told.partition(": ")
        named = name in results.problems or name in results.records
        cells.setdefault(reason if named else told, []).extend([name] if named else [])
    cells.pop(NO_EXPERIMENT, None)
    return [f"- empty: {', '.join(names)}{': ' if names else ''}{reason}" for reason, names in cells.items()]


def _grids(grid: TableSpec, figures: list[Figure]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """(title, header, rows) of each Markdown table of a grid."""
    found = {(figure.row, figure.column, figure.metric): figure for figure in figures}

    def lines(row: str, fields: list[tuple[str | None, str]]) -> Iterator[list[str]]:
        own = [found[row, column, key] for column, key in fields]
        yield [row, *(figure.text() for figure in own)]
        if any(figure.paper is not None for figure in own):
            yield [PAPER, *(figure.printed() for figure in own)]

    if not grid.columns:
        fields: list[tuple[str | None, str]] = [(None, key) for key in grid.metrics]
        yield "", ["", *grid.metrics.values()], [line for row in grid.rows for line in lines(row, fields)]
        return
    for key, title in grid.metrics.items():
        fields = [(column, key) for column in grid.columns]
        yield title, ["", *grid.columns], [line for row in grid.rows for line in lines(row, fields)]


def _lead_row(lead: Lead) -> list[str]:
    """The intervals of every seed."""
    cells = (
        "; ".join(f"[{low:+.4f}, {high:+.4f}]" for low, high in lead.intervals.get(metric, {}).values())
        for metric in ("weighted", "mrr")
    )
    return [lead.row, lead.over, lead.column or "", *cells]


def _draw(results: Results, figures: list[Figure], path: Path) -> None:
    """Bars of the main metric of each table, or a heat map of one with columns."""
    grids = results.setup.table.tables
    heights = [0.45 * len(grid.rows) + 1 for grid in grids.values()]
    width = max(9.0, *(0.6 * len(grid.columns) + 2.5 for grid in grids.values()))
    size: dict[str, Any] = {"figsize": (width, sum(heights)), "height_ratios": heights, "squeeze": False}
    with drawing(path, len(grids), **size) as (_, axes):
        for axis, (name, grid) in zip(axes[:, 0], grids.items(), strict=True):
            metric, title = next(iter(grid.metrics.items()))
            own = {(one.row, one.column): one for one in figures if one.table == name and one.metric == metric}
            printed = " (in brackets: paper)" if any(one.paper is not None for one in own.values()) else ""
            axis.set_title(f"{grid.title}: {title}{printed}", fontsize=10)
            if grid.columns:
                _heat_map(axis, own, list(grid.rows), list(grid.columns))
            else:
                _bars(axis, own, list(grid.rows))
            axis.set_yticks(range(len(grid.rows)), list(grid.rows), fontsize=8)


def _bars(axis: Any, own: Mapping[tuple[str, str | None], Figure], rows: list[str]) -> None:
    """Means over the seeds, with their range."""
    for y, row in enumerate(rows):
        mean = own[row, None].mean
        seeds = own[row, None].values.values()
        if mean is not None:
            axis.barh(y, mean, color="#3caea3", xerr=[[mean - min(seeds)], [max(seeds) - mean]], capsize=3)
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)


def _heat_map(axis: Any, own: Mapping[tuple[str, str | None], Figure], rows: list[str], columns: list[str]) -> None:
    """Our figures, coloured, with the paper's below in brackets."""
    means = [[own[row, column].mean for column in columns] for row in rows]
    image = axis.imshow(np.array(means, dtype=float), aspect="auto", cmap="YlGnBu")
    axis.set_xticks(range(len(columns)), columns)
    for y, values in enumerate(means):
        for x, value in enumerate(values):
            one = own[rows[y], columns[x]]
            told = [one.shown(value)] if value is not None else []
            told += [f"({one.printed()})"] if one.paper is not None else []
            dark = value is not None and image.norm(value) > DARK
            axis.text(x, y, "\n".join(told), ha="center", va="center", fontsize=8, color="white" if dark else "black")


def _short(value: float) -> str:
    text = f"{value:.4f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
