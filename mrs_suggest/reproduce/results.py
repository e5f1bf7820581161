"""Results of the finished runs of a table: the figure of each field, and the difference of two rows."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.significance import paired_bootstrap_interval
from mrs_suggest.common.text.predictions import MESSAGE
from mrs_suggest.common.text.text import interval_text
from mrs_suggest.evaluation.baselines import BASELINES
from mrs_suggest.evaluation.choice.analysis import average
from mrs_suggest.evaluation.choice.answers import Views, read_run_answers
from mrs_suggest.evaluation.comparison import POOLED
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.evaluation.pairing import scored_run
from mrs_suggest.evaluation.paper_results import paper_figure
from mrs_suggest.evaluation.tables import short_number
from mrs_suggest.models.saved.record import Record, read_record
from mrs_suggest.models.starting_points import MULTIPLE_CHOICE, UNDERSTANDING
from mrs_suggest.reproduce.cells import Setup, States, all_cells, run_of
from mrs_suggest.reproduce.table import FULL, Place, TableSpec
from mrs_suggest.suggest.answering import MODEL

Scores = NDArray[np.float64]
WEIGHTED, ACCURACY = "weighted", "accuracy"  # the figures that are means over examples
Interval = list[float]
NO_EXPERIMENT = "not an experiment"  # a field that is empty in the table's file
ONLY_OWN = f"the runs store only suggestions of their {MODEL!r}"
short = partial(short_number, digits=4)  # .0476, as the papers print it
ROW = "row"  # the unit of inference of records that an earlier version wrote
LOWER_IS_BETTER = frozenset({"perplexity", "self_rouge", "wrong_language"})  # keys of run.json


@dataclass(frozen=True)
class Figure:
    """A field of a table.

    Attributes:
        values: seed -> figure; if empty, `missing` gives the reason.
        intervals: seed -> its 95 % interval, if the run has one.
        paper: the printed figure, in the unit of the table.
        own: whether the runs were trained on the language that they are tested on.
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
    own: bool = False

    @property
    def mean(self) -> float | None:
        """Over the seeds; None without a figure."""
        return float(np.mean(list(self.values.values()))) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the seeds, with n - 1; None of fewer than two."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else None

    def text(self) -> str:
        """The mean; empty without a figure."""
        return "" if self.mean is None else self.shown(self.mean)

    def spread(self) -> str:
        """`± .0017`, the deviation over seeds; of one seed `[.3754, .3789]`, its interval."""
        if self.deviation is not None:
            return f"± {self.shown(self.deviation)}"
        interval = next(iter(self.intervals.values()), None)
        return interval_text(interval, self.shown) if self.intervals else ""

    def shown(self, value: float) -> str:
        """A figure in the unit of the table."""
        counts = value == int(value) and (value >= 2 or self.place.metric == "rank")
        return f"{100 * value:.1f}" if self.percent else f"{value:,.0f}" if counts else short(value)

    def printed(self) -> str:
        return "" if self.paper is None else f"{self.paper:.1f}" if self.percent else self.shown(self.paper)


@dataclass(frozen=True)
class Lead:
    """The paired 95 % intervals of the difference of two rows, by metric and seed; None where all scores are equal."""

    table: str
    row: str
    over: str
    column: str | None
    intervals: dict[str, dict[str, Interval | None]]
    missing: str = ""


@dataclass(frozen=True)
class Paired:
    """The scores of two rows on the same n examples, (seeds, n) each, and the unit of each example, its message."""

    seeds: tuple[str, ...]
    first: Scores
    second: Scores
    units: Sequence[Hashable]


class UnpairedError(Exception):
    """A run has no such figure, or two rows no scores of the same examples; the message gives the reason."""


@dataclass
class Results:
    """Results of the finished runs of a table.

    Attributes:
        problems: cell -> why it has no run.
        records: cell -> the record of its run.
    """

    setup: Setup
    problems: Mapping[str, str]
    records: dict[str, Record] = field(default_factory=dict)
    _read: dict[str, Views] = field(default_factory=dict)

    @classmethod
    def read(cls, setup: Setup, problems: Mapping[str, str]) -> Self:
        """The records of the finished cells, without those of earlier options."""
        cells = all_cells(setup.table)
        states = States(setup, cells)
        found = {name: read_record(run_of(name, setup)) for name in cells if states.finished(name)}
        lacking = [name for name in cells if name not in found]
        why = {name: problems.get(name) or states.unavailable(name) or states.state(name) for name in lacking}
        return cls(setup, why, found)

    @property
    def unit(self) -> str:
        """What intervals resample, and tests swap, as a whole."""
        return {MULTIPLE_CHOICE: "question", UNDERSTANDING: "example"}.get(self.setup.table.trainer, MESSAGE)

    def fields(self) -> Iterator[Figure]:
        """Every field of the tables and figures, by metric, row and column."""
        for name, grid in self.setup.table.grids().items():
            for metric in grid.metrics:
                for row, column in grid.fields():
                    yield self.figure(name, grid, row, column, metric)

    def leads(self) -> Iterator[Lead]:
        for name, grid in self.setup.table.grids().items():
            for row, over in grid.leads:
                for column in grid.columns or (None,):
                    yield self.lead(name, grid, row, over, column)

    def figure(self, table: str, grid: TableSpec, row: str, column: str | None, metric: str) -> Figure:
        place = grid.place(row, column)
        paper = paper_figure(place.paper, metric) if place.paper else None
        if fields := grid.averaged(row, column):
            means, missing = self._mean([self.figure(table, grid, *one, metric) for one in fields])
            return Figure(table, row, column, metric, place, means, {}, missing, paper, grid.percent)
        values, intervals, missing, key = {}, {}, "", place.metric or metric
        for seed, name in self.names(place):
            try:
                found = self._scope(name, place)
            except UnpairedError as error:
                missing = missing or str(error)
                continue
            if found.get(key) is None:
                missing = missing or f"{place.system} has no {key}"
                continue
            values[seed] = float(found[key])
            own = found.get("interval") if key == metric else None  # it is of the main figure
            interval = found.get(f"{key}_interval", own) or self._average_interval(name, place)
            if interval is not None:
                intervals[seed] = list(interval)
        missing = place.empty or (missing if place.cell else NO_EXPERIMENT)
        trained = any(
            place.scope in self.records[name].get("plan", {}).get("train", ())
            for seed, name in self.names(place)
            if seed in values
        )
        return Figure(table, row, column, metric, place, values, intervals, missing, paper, grid.percent, trained)

    def _mean(self, figures: list[Figure]) -> tuple[dict[str, float], str]:
        """The mean of fields, seed by seed, and why it is missing."""
        seeds = [seed for seed in figures[0].values if all(seed in one.values for one in figures)]
        if seeds:
            return {seed: float(np.mean([one.values[seed] for one in figures])) for seed in seeds}, ""
        return {}, next((one.missing for one in figures if one.missing), "its runs have no seed in common")

    def lead(self, table: str, grid: TableSpec, row: str, over: str, column: str | None) -> Lead:
        mine, other = grid.place(row, column), grid.place(over, column)
        found: dict[str, dict[str, Interval | None]] = {}
        missing = "" if mine.cell and other.cell else NO_EXPERIMENT
        others = dict(self.names(other))
        for seed, name in self.names(mine):
            try:
                for metric, interval in self._difference(name, mine, others.get(seed, ""), other).items():
                    found.setdefault(metric, {})[seed] = interval
            except UnpairedError as error:
                missing = missing or str(error)
        return Lead(table, row, over, column, found, missing)

    def names(self, place: Place) -> Iterator[tuple[str, str]]:
        """(seed, cell) of the runs whose figures stand in a place."""
        for seed in self.setup.table.cells[place.cell].seeds if place.cell else ():
            if place.seed in ("", str(seed)):
                yield str(seed), f"{place.cell}/{seed}"

    def _scope(self, name: str, place: Place) -> Record:
        """The figures of a run; UnpairedError if it lacks them."""
        if name not in self.records:
            raise UnpairedError(f"{name}: {self.problems[name]}")
        metrics = self.records[name]["metrics"]
        scopes = {**metrics.get("systems", {}), **metrics.get("tasks", {})}.get(place.system)
        instead = self.setup.table.at(self.setup.scale).scopes
        wanted = [instead.get(scope, scope) for scope in place.scope.split()]
        lacking = [scope for scope in wanted if scope not in (scopes or {})]
        if self.setup.scale != FULL and scopes and lacking:  # its data may have fewer languages
            wanted = [scope for scope in wanted if scope in scopes]
            if not wanted:
                raise UnpairedError(NO_EXPERIMENT)
            lacking = []
        if scopes is None or lacking:
            raise UnpairedError(f"{name}: its run has no {place.system} for {' '.join(lacking or wanted)}")
        if len(wanted) == 1:
            return dict(scopes[wanted[0]])
        shared = set.intersection(*(set(scopes[scope]) for scope in wanted))
        means = {key: [scopes[scope][key] for scope in wanted] for key in shared}
        return {key: float(np.mean(of)) for key, of in means.items() if all(isinstance(one, float) for one in of)}

    def _average_interval(self, name: str, place: Place) -> Interval | None:
        """Of the mean over several languages, from a multiple-choice run's answers; None if they do not allow it."""
        languages = place.scope.split()
        if len(languages) < 2 or self.records[name]["trainer"] != MULTIPLE_CHOICE:
            return None
        found = average(self._answers(name)[place.system], languages)
        return [found.low, found.high] if found else None

    def _difference(self, name: str, mine: Place, other_name: str, other: Place) -> dict[str, Interval | None]:
        self._scope(name, mine)
        if (name, mine.system) == (other_name, other.system):
            raise UnpairedError(NO_EXPERIMENT)  # one run stands in both rows
        if mine.system == MODEL and (name == other_name or other.system in BASELINES):  # the same in every run
            return dict(self.records[name]["metrics"]["differences"][other.system][mine.scope])
        if not other_name:
            raise UnpairedError(f"{name}: the other row has no run with its seed")
        self._scope(other_name, other)
        if (mine.system, other.system) != (MODEL, MODEL):
            raise UnpairedError(ONLY_OWN)
        places = Place(name, scope=mine.scope), Place(other_name, scope=mine.scope)
        _, first, second, units = self._pair((name, places[0]), (other_name, places[1]), WEIGHTED)
        return {WEIGHTED: paired_bootstrap_interval(first, second, seed=EVALUATION_SEED, units=units).ends}

    def paired(self, mine: Place, other: Place, metric: str) -> Paired:
        """The scores of the same examples in two places, of the seeds that both have; UnpairedError without any."""
        others = dict(self.names(other))
        found, examples, why = {}, None, ""
        for seed, name in self.names(mine):
            if seed not in others:
                why = why or f"{name}: the other row has no run with its seed"
                continue
            if (name, mine.system) == (others[seed], other.system):
                raise UnpairedError(NO_EXPERIMENT)
            try:
                these, *scores, units = self._pair((name, mine), (others[seed], other), metric)
            except UnpairedError as error:
                why = why or str(error)
                continue
            if examples not in (None, these):
                raise UnpairedError(f"{name} was not tested on the same examples as the other seeds")
            found[seed], examples = scores, these
        if not found:
            raise UnpairedError(why or NO_EXPERIMENT)
        first, second = (np.stack([scores[side] for scores in found.values()]) for side in (0, 1))
        if len(set(units)) < 2:
            raise UnpairedError("one test message is too few for a test")
        return Paired(tuple(found), first, second, units)

    def _pair(
        self, one: tuple[str, Place], other: tuple[str, Place], metric: str
    ) -> tuple[Hashable, Scores, Scores, list[Hashable]]:
        """The identity of the examples of two runs, their (n,) scores, and the examples' units.

        Args:
            one, other: the name of a cell, and the place of its figure.

        Raises:
            UnpairedError: the runs have no scores of the same examples.
        """
        names = f"{one[0]} and {other[0]}"
        for name, place in (one, other):
            self._scope(name, place)
        languages = self._languages(*one, metric)
        if not languages or languages != self._languages(*other, metric):
            raise UnpairedError(f"{names} were not tested on the same languages")
        examples, columns, units = [], [], list[Hashable]()
        for code in languages:
            ours, theirs = (self._scores(name, place, metric, code) for name, place in (one, other))
            if ours[0] != theirs[0]:
                raise UnpairedError(f"{names} were not tested on the same examples")
            examples.append(ours[0])
            columns.append((ours[1], theirs[1]))
            units += [(code, unit) for unit in ours[2]]
        first, second = (np.concatenate(column) for column in zip(*columns, strict=True))
        return tuple(examples), first, second, units

    def _languages(self, name: str, place: Place, metric: str) -> list[str]:
        """The languages of a place's scope; UnpairedError if the run has no scores of that figure's examples."""
        record, metric = self.records[name], place.metric or metric
        if record["trainer"] == MULTIPLE_CHOICE and metric == ACCURACY:
            every = [code for code in record["metrics"]["systems"][place.system] if code in place.scope.split()]
        elif "signatures" not in record["metrics"] or metric != WEIGHTED:
            raise UnpairedError("the runs store no scores of examples for it")
        elif place.system != MODEL:
            raise UnpairedError(ONLY_OWN)
        else:
            every = list(record["metrics"]["signatures"])
        return every if place.scope == POOLED else [code for code in place.scope.split() if code in every]

    def _scores(
        self, name: str, place: Place, metric: str, language: str
    ) -> tuple[Hashable, Scores, Sequence[Hashable]]:
        """The identity of the examples of a language, their (n,) scores, and their units."""
        if (place.metric or metric) == ACCURACY:
            answers = self._answers(name)[place.system][language]
            identity = tuple(zip(answers.idx.tolist(), answers.gold.tolist(), strict=True))
            return identity, answers.correct.astype(float), range(len(identity))
        scored = scored_run(run_of(name, self.setup), language)
        return scored.examples, scored.weighted, scored.units

    def _answers(self, name: str) -> Views:
        """Those of a multiple-choice run, read once."""
        if name not in self._read:
            self._read[name] = read_run_answers(run_of(name, self.setup), self.records[name])
        return self._read[name]
