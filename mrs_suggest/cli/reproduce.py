"""`mrs reproduce`: run the experiments behind a table that are missing, and print the table."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mrs_trainers

from mrs_suggest.cli.options import say
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError, require_least
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.reproduce.cells import Cell, Setup

CONFIGS = Path(mrs_trainers.__path__[0]) / "configs"
TABLES = CONFIGS / "reproduce"
ALL = "all"
NOT_CHOSEN = "not chosen by --only"
HUB_ID = re.compile(r"\w[\w.-]*/[\w.-]+(@[\w./-]+)?")


def make_parser() -> argparse.ArgumentParser:
    from mrs_suggest.reproduce.table import table_names

    parser = CommandParser(prog="mrs reproduce", description=__doc__)
    lists: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
    parser.add_argument(
        "table", choices=[*table_names(TABLES), ALL], help=f"the table; {ALL}: list what each needs, and stop"
    )
    parser.add_argument(
        "--table", **lists, dest="printed", metavar="TABLE",
        help="print and run only these of its tables, such as 5 or 8 of xcopa (default: its main tables)",
    )  # fmt: skip
    parser.add_argument(
        "--figure", **lists, dest="figures", metavar="FIGURE", help="print and run only these figures, such as 2"
    )  # fmt: skip
    parser.add_argument(
        "--sheets", type=Path, metavar="FOLDER",
        help="`mrs annotate` folder with completed files on the two systems of a figure on human preference",
    )  # fmt: skip
    parser.add_argument("--page", action="store_true", help="run nothing; write the page from finished runs")
    parser.add_argument(
        "--only", **lists, metavar="CELL",
        help="run only these cells and their dependencies: ID, ID/SEED or a pattern such as 'persona-*'",
    )  # fmt: skip
    parser.add_argument(
        "--scale", default="full",
        help="full (default), or a scale of the table; tiny: tiny models, a few steps each; small: a model and steps "
        "for a computer without a GPU",
    )  # fmt: skip
    parser.add_argument(
        "--model", "--model_name_or_path", metavar="FOLDER",
        help="replace the table's base model by this folder or hub id, such as ORG/NAME@REVISION",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoint", **lists, metavar="CELL=FOLDER",
        help="use this model instead of running a cell that others start from, such as a pretraining",
    )  # fmt: skip
    parser.add_argument(
        "--data", **lists, metavar="NAME=FOLDER", help="location of a data set: a prepared folder or its source files"
    )  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="DIR", help="output folder (default build/reproduce/TABLE)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cells to run in parallel (default 1)")
    parser.add_argument(
        "--dry-run", action="store_true", help="list the cells with state, steps, estimated time and command, and stop"
    )  # fmt: skip
    parser.add_argument(
        "--estimate", action="store_true",
        help="time one cell of each kind that can run here, for a few steps, print the time of all, and stop",
    )  # fmt: skip
    parser.set_defaults(run=_run)
    return parser


def _run(options: argparse.Namespace) -> int:
    from mrs_suggest.reproduce.cells import Setup, States, all_cells, chosen_cells
    from mrs_suggest.reproduce.overview import trial_lines, why_not_timed
    from mrs_suggest.reproduce.preference import read_sheets
    from mrs_suggest.reproduce.processes import Stopped, StopSignals
    from mrs_suggest.reproduce.report import write_report
    from mrs_suggest.reproduce.runner import FAILED_NOW, prepare_data, run_cells
    from mrs_suggest.reproduce.table import at_scale, only_tables, read_table, with_checkpoints

    if options.estimate and (options.dry_run or options.page or options.sheets):
        raise InputError("--estimate: stops after the times; leave out --dry-run, --page and --sheets.")
    require_least(options, 1, "jobs")
    if options.table == ALL:
        return list_tables(options)
    table = at_scale(read_table(TABLES, options.table), options.scale)
    sheets = read_sheets(options.sheets) if options.sheets else None
    printed = options.printed or ([] if options.figures else table.at(options.scale).main)
    if printed or options.figures:
        table = only_tables(table, printed, options.figures)
    checkpoints = _named(options.checkpoint, "checkpoint", "CELL")
    for folder in checkpoints.values():
        if not folder.is_dir():
            raise InputError(f"--checkpoint {folder}: no such folder.")
    table = with_checkpoints(table, {name: str(folder) for name, folder in checkpoints.items()})
    model = Path(options.model) if options.model else None
    if model and not model.is_dir() and (not HUB_ID.fullmatch(options.model) or model.parent.exists()):
        raise InputError(f"--model {options.model}: no such folder.")
    cells = chosen_cells(table, options.only)
    output = (options.output or Path("build") / "reproduce" / table.name) / options.scale
    if options.page and not any(output.glob("cells/*/run/run.json")):
        raise InputError(f"--page: {visible(output)} has no finished run; run cells without --page, or name --output.")
    setup = Setup(table, output, CONFIGS, options.scale, model, checkpoints=tuple(checkpoints.values()))
    used = list(dict.fromkeys(name for cell in cells.values() for name in cell.spec.data_names(setup.scale)))
    sources = _named(options.data, "data", "NAME")
    try:
        with StopSignals() as signals:
            if options.estimate:
                setup = prepare_data(setup, sources, used, True, lambda line: None)
                states, reasons = States(setup, cells), why_not_timed(setup, cells)
                timed = [name for name, why in reasons.items() if not (why or states.awaited(name))]
                used = [data for name in timed for data in cells[name].spec.data_names(setup.scale)]
            setup = prepare_data(setup, sources, used, options.dry_run, say)
            if options.estimate:
                _print_all(trial_lines(setup, cells, options.jobs))
                return 0
            if options.dry_run:
                list_cells(setup, cells, options.jobs)
                return 0
            problems = {} if options.page else run_cells(setup, cells, say, options.jobs, signals)
    except Stopped as stopped:
        say(f"mrs reproduce: stopped by {stopped.name}; run the same command to continue.")
        return stopped.code
    left_out = {name: NOT_CHOSEN for name in all_cells(table) if name not in cells}
    for path in write_report(setup, {**left_out, **problems}, sheets):
        print(f"wrote {visible(path)}")
    failed = [name for name, problem in problems.items() if problem.startswith(FAILED_NOW)]
    if failed:
        print(f"mrs reproduce: {len(failed)} of {len(cells)} cells failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _named(words: Sequence[str], option: str, what: str) -> dict[str, Path]:
    found = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not (name and equals and folder):
            raise InputError(f"--{option} {word}: expected {what}=FOLDER.")
        found[name] = Path(folder)
    return found


def list_tables(options: argparse.Namespace) -> int:
    """Print what every table and figure needs, and with `--estimate` how long its cells take on this machine."""
    from mrs_suggest.reproduce.overview import Overview
    from mrs_suggest.reproduce.table import read_table, table_names

    tables = {name: read_table(TABLES, name) for name in table_names(TABLES)}
    scales = list(dict.fromkeys(one for table in tables.values() for one in table.scale_names()))
    if (scale := options.scale) not in scales:
        raise InputError(f"--scale {scale}: no table has such a scale; expected one of {', '.join(scales)}.")
    if options.checkpoint or options.only or options.figures or options.printed:
        raise InputError(f"--table, --figure, --only and --checkpoint: name one table instead of `{ALL}`.")
    given = _named(options.data, "data", "NAME")
    if unknown := given.keys() - {name for table in tables.values() for name in table.data}:
        raise InputError(f"--data {min(unknown)}: no table has such data.")
    output = options.output or Path("build") / "reproduce"
    _print_all(Overview(scale, CONFIGS, output, given).lines(tables))
    for name, table in tables.items():
        if options.estimate and scale in table.scale_names():
            print(f"{name}, timed on this machine:", flush=True)
            own = {"table": name, "printed": list(table.tables), "output": output / name}
            own["data"] = [f"{one}={folder}" for one, folder in given.items() if one in table.data]
            if code := _run(argparse.Namespace(**{**vars(options), **own})):
                return code
    return 0


def list_cells(setup: Setup, cells: Mapping[str, Cell], jobs: int) -> None:
    """Print each cell with its state, steps, estimated time and command, and the time of all."""
    from mrs_suggest.reproduce.cells import DONE, INTERRUPTED, States
    from mrs_suggest.reproduce.estimates import Estimates, steps_of, told_duration, told_total

    states, estimates = States(setup, cells), Estimates(setup.output)
    left: list[float | None] = []
    finished = 0
    for name, cell in cells.items():
        reason = states.unavailable(name)
        state = reason or states.state(name)
        steps = None if reason else steps_of(cell, setup)
        told = [f"{name}  ({visible(state)})", *([] if steps is None else [f"{steps:,} steps"])]
        if state == DONE:
            finished += 1
            told.append(f"of commit {states.commit(name)}")
        elif not reason:
            left.append(estimates.seconds(states.work(name), steps))
            told.append("time unknown" if left[-1] is None else f"about {told_duration(left[-1])}")
        print(f"{told[0]}  {', '.join(told[1:])}".rstrip())
        if not states.without_command(name):
            print(f"  {visible(shlex.join(cell.command(setup, state == INTERRUPTED)))}")
    at_once = f", {jobs} at once" if jobs > 1 else ""
    time = f" (time{at_once}: {told_total(left, jobs)})" if left else ""
    empty = len(cells) - finished - len(left)
    print(f"{len(cells)} cells: {finished} finished, {empty} cannot run, {len(left)} to run{time}")


def _print_all(lines: Iterable[str]) -> None:
    for line in lines:
        print(visible(line), flush=True)
