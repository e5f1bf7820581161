"""`mrs staple report`: systems side by side, as a folder with Markdown, HTML, JSON and pictures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import visible


def add_report(verbs: Any) -> None:
    """Add the verb."""
    report = verbs.add_parser("report", help="compare systems: scores, ranks, oracle, plots, errors by kind")
    gold = report.add_mutually_exclusive_group(required=True)
    gold.add_argument("--data", metavar="DIR", help="prepared data (a folder or a hub id)")
    gold.add_argument("--gold", type=Path, metavar="FILE", help="a gold file of the task instead")
    report.add_argument("--split", default="test", help="of --data (default: test, which the paper reports)")
    report.add_argument(
        "--language", help="target language (default: the only one of --data, or that in --gold's name)"
    )
    report.add_argument(
        "--systems",
        nargs="+",
        default=[],
        metavar="NAME=FILE",
        help="predictions of the task, or hypotheses; the data's automatic translation is a row without being named",
    )
    report.add_argument(
        "--rules",
        choices=("paper", "official"),
        default="paper",
        help="how texts are compared: as the paper says (default, as in `mrs score`), or as the official scorer does",
    )
    report.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write")
    report.add_argument("--overwrite", action="store_true", help="replace --out if it is a report")
    report.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    from mrs_suggest.common.io.files import require_replaceable
    from mrs_suggest.common.report.console import make_console
    from mrs_suggest.staple.analysis.report import MARKER, make_report, system_rows, table_notes, write_report
    from mrs_suggest.staple.analysis.scored_systems import score_all
    from mrs_suggest.staple.gold import read_gold_file, read_gold_split

    files = named_files(options.systems)
    require_replaceable(options.out, options.overwrite, MARKER)
    if options.gold:
        gold = read_gold_file(options.gold, options.language, options.rules)
    else:
        gold = read_gold_split(options.data, options.split, options.language, options.rules)
    report = make_report(gold, score_all(gold, files))
    write_report(report, options.out, options.overwrite)
    console = make_console(160)
    console.print(terminal_table(*system_rows(report.systems)))
    for note in table_notes(report):
        console.print(note, style="dim", markup=False)
    print(f"wrote {visible(options.out)}")


def named_files(given: Sequence[str]) -> dict[str, Path]:
    """`NAME=FILE` of each system.

    Raises:
        InputError: one is not of that form, or two have one name.
    """
    files: dict[str, Path] = {}
    for entry in given:
        name, equals, file = entry.partition("=")
        if not (equals and name.strip() and file):
            raise InputError(f"--systems {entry!r}: expected NAME=FILE, such as mine=test.pred.txt.")
        if name in files:
            raise InputError(f"--systems: two systems are called {name!r}; give each its own name.")
        files[name] = Path(file)
    return files


def terminal_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """A table of texts for the terminal; the columns after the first are figures."""
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    table.add_column(header[0], no_wrap=True)
    for name in header[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    return table
