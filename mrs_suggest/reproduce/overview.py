"""What the tables need before they can be made: a line for each, and what is missing, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mrs_suggest.reproduce.cells import DONE, Setup, States, all_cells
from mrs_suggest.reproduce.estimates import Estimates, steps_of, told_total
from mrs_suggest.reproduce.table import Table, at_scale, only_tables


@dataclass
class Overview:
    """The lines of the tables at a scale.

    Attributes:
        missing: data set or checkpoint that cells lack -> its description.
        empty: why rows have no cell -> their tables.
    """

    scale: str
    configs: Path
    missing: dict[str, str] = field(default_factory=dict)
    empty: dict[str, list[str]] = field(default_factory=dict)

    def lines(self, tables: Mapping[str, Table]) -> Iterator[str]:
        """A line for every table and figure, then each missing thing, and the rows without a cell."""
        for name, table in tables.items():
            if self.scale not in table.scale_names():
                yield f"{name}: no scale {self.scale} (it has {' '.join(table.scale_names())})"
                continue
            yield f"{name}: {table.title}"
            yield from self._of_file(at_scale(table, self.scale))
        yield "Times come from finished cells of the same kind; without one, no time is given."
        yield from (f"lacking: {name}, {about}" for name, about in self.missing.items())
        yield from (f"rows that no cell fills in {', '.join(of)}: {why}" for why, of in self.empty.items())

    def _of_file(self, table: Table) -> Iterator[str]:
        output = Path("build") / "reproduce" / table.name / self.scale
        made = {name: output / "data" / name for name, data in table.data.items() if data.generated(self.scale)}
        setup = Setup(table, output, self.configs, self.scale, data=made)
        states, estimates = States(setup, all_cells(table)), Estimates(setup.output)
        for title, grid in table.grids().items():
            named = ([title], []) if title in table.tables else ([], [title.removeprefix("figure ")])
            needs = self._needs(only_tables(table, *named), setup, states, estimates)
            yield f"  {'table ' * len(named[0])}{title}: {needs}"
            for why in dict.fromkeys(str(row["empty"]) for row in grid.rows.values() if row.get("empty")):
                self.empty.setdefault(why, []).append(f"{table.name} {title}")

    def _needs(self, part: Table, setup: Setup, states: States, estimates: Estimates) -> str:
        """How many cells are in which state; those that need a GPU may lack data, too."""
        here, gpu, others = list[float | None](), list[float | None](), Counter[str]()
        cells = all_cells(part)
        for name, cell in cells.items():
            lacking = states.lacking(name)
            self.missing |= lacking
            reason = "" if lacking else states.unavailable(name)
            if not lacking and not reason and states.state(name) == DONE:
                others["finished"] += 1
                continue
            others.update([reason] if reason else [f"lack {one}" for one in lacking])
            seconds = estimates.seconds(states.identity(name), steps_of(cell, setup))
            if part.at(self.scale).gpu and cell.spec.config:
                gpu.append(seconds)
            elif not (lacking or reason):
                here.append(seconds)
        times = [f" ({told_total(some)})" if any(some) else "" for some in (here, gpu)]
        parts = [f"{len(here)} can run here{times[0]}", *([f"{len(gpu)} need a GPU{times[1]}"] if gpu else [])]
        told = ", ".join([*parts, *(f"{count} {what}" for what, count in others.items())])
        return f"{len(cells)} cell{'s' * (len(cells) != 1)}: {told}"
