"""What the tables need before they can be made: a line for each, and what is missing, once."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mrs_suggest.reproduce.cells import DONE, Cell, Setup, States, all_cells
from mrs_suggest.reproduce.estimates import SAME, Estimates, kind_of, steps_of, told_total
from mrs_suggest.reproduce.runner import prepare_data, time_of_trial
from mrs_suggest.reproduce.table import Table, at_scale, only_tables


def lacks_gpu(table: Table, scale: str) -> bool:
    """Whether training at a scale needs a GPU that this machine does not have."""
    from torch.cuda import is_available

    return table.at(scale).gpu and not is_available()


def why_not_timed(setup: Setup, cells: Mapping[str, Cell]) -> dict[str, str]:
    """Why the cells cannot be timed on this machine; empty for those that can."""
    states, found, gpu = States(setup, cells), {}, lacks_gpu(setup.table, setup.scale)
    for name, cell in cells.items():
        why = states.without_command(name)
        if not why and (lacking := states.lacking(name)):
            why = f"lack {' '.join(lacking)}"
        why = why or states.unavailable(name) or (DONE if states.state(name) == DONE else "")
        found[name] = why or ("train no model" if not cell.spec.config else "need a GPU" if gpu else "")
    return found


def trial_lines(setup: Setup, cells: Mapping[str, Cell], jobs: int = 1) -> Iterator[str]:
    """The time on this machine of each group of like cells, of which one is tried, and why other cells have none."""
    states, estimates = States(setup, cells), Estimates(setup.output)
    groups, others = defaultdict[tuple[str, ...], list[Cell]](list), Counter[str]()
    for name, why in why_not_timed(setup, cells).items():
        if why:
            others[why] += 1
        else:
            groups[kind_of(states.work(name))[0]].append(cells[name])
    for kind, alike in groups.items():
        told = ", ".join([kind[0], *(f"{key} {of}" for key, of in zip(SAME, kind[1:], strict=True) if of != "None")])
        ready = [cell for cell in alike if not states.awaited(cell.name)]
        problem = "" if ready else f"unknown until {', '.join(states.awaited(alike[0].name))} has run"
        if ready and estimates.seconds(work := states.work(ready[0].name), 1) is None:
            found, problem = time_of_trial(setup, ready[0])
            estimates.add({"identity": work, **found})
        times = [estimates.seconds(states.work(cell.name), steps_of(cell, setup)) for cell in alike]
        yield f"  {told}: {len(alike)} cell{'s' * (len(alike) != 1)}, {problem or told_total(times, jobs)}"
    yield from (f"  not timed: {count} cell{'s' * (count != 1)}, {why}" for why, count in others.items())


@dataclass
class Overview:
    """The lines of the tables at a scale.

    Attributes:
        output: folder of the tables' folders.
        sources: data set -> folder, as `prepare_data` takes them.
        missing: data set or checkpoint that cells lack -> its description.
        empty: why rows have no cell -> their tables.
    """

    scale: str
    configs: Path
    output: Path
    sources: Mapping[str, Path]
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
        yield "A cell that needs a GPU may also lack data. Times are those of finished cells of the same kind."
        yield "For the other times, run `mrs reproduce TABLE --estimate` on a computer that can run them."
        missing = [f"  {name}: {about}" for name, about in self.missing.items()]
        empty = [f"  {', '.join(of)}: {why}" for why, of in self.empty.items()]
        for heading, lines in (("Missing data and checkpoints:", missing), ("Rows without a cell:", empty)):
            yield from [heading, *lines] if lines else []

    def _of_file(self, table: Table) -> Iterator[str]:
        setup = Setup(table, self.output / table.name / self.scale, self.configs, self.scale)
        sources = {name: folder for name, folder in self.sources.items() if name in table.data}
        setup = prepare_data(setup, sources, list(table.data), True, lambda line: None)
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
        cells, gpu_lacks = all_cells(part), lacks_gpu(part, self.scale)
        for name, cell in cells.items():
            lacking = {} if states.without_command(name) else states.lacking(name)
            self.missing |= lacking
            reason = "" if lacking else states.unavailable(name)
            if not lacking and not reason and states.state(name) == DONE:
                others["finished"] += 1
                continue
            others.update([f"cannot run ({reason})"] if reason else [f"lack {one}" for one in lacking])
            seconds = estimates.seconds(states.work(name), steps_of(cell, setup))
            if gpu_lacks and cell.spec.config:
                gpu.append(seconds)
            elif not (lacking or reason):
                here.append(seconds)
        times = [f" ({told_total(some)})" if any(some) else "" for some in (here, gpu)]
        parts = [f"{len(here)} can run here{times[0]}", *([f"{len(gpu)} need a GPU{times[1]}"] if gpu else [])]
        told = ", ".join([*parts, *(f"{count} {what}" for what, count in others.items())])
        return f"{len(cells)} cell{'s' * (len(cells) != 1)}: {told}" if cells else "no cells"
