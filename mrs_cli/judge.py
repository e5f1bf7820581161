"""`mrs judge`: let people compare two systems' suggestions, blind, and read what they say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_core.console import make_console
from mrs_core.errors import InputError
from mrs_core.text import visible, visible_json


def make_parser() -> argparse.ArgumentParser:
    from mrs_evaluation.annotation_sheets import EXAMPLES, JUDGES, SEED

    parser = argparse.ArgumentParser(prog="mrs judge", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("make", help="write one blind sheet a judge, and the key")
    make.add_argument("a", metavar="A.tsv", type=Path, help="predictions of system A (message, reference, suggestions)")
    make.add_argument("b", metavar="B.tsv", type=Path, help="predictions of system B for the same messages")
    make.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write")
    make.add_argument("--judges", type=int, default=JUDGES, help=f"sheets (default {JUDGES}, section 3.3)")
    make.add_argument(
        "--examples", type=int, help=f"messages to judge, drawn (default: all, up to {EXAMPLES}, section 5.1)"
    )
    make.add_argument("--seed", type=int, default=SEED, help=f"of all draws (default {SEED})")
    make.add_argument("--overwrite", action="store_true", help="replace DIR if nobody has filled in its sheets")
    make.set_defaults(run=_make)
    read = verbs.add_parser("read", help="check the sheets and print shares, intervals and agreement")
    read.add_argument("folder", metavar="DIR", type=Path, help="the folder, with the filled-in sheets in DIR/sheets")
    read.add_argument("--partial", action="store_true", help="read without judges whose sheet is missing or untouched")
    read.add_argument("--json", action="store_true", help="print one JSON object")
    read.set_defaults(run=_read)
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    options.run(options)
    return 0


def _make(options: argparse.Namespace) -> None:
    from mrs_evaluation.annotation_sheets import KEY, SHEETS, make_sheets

    for name, least in (("judges", 1), ("examples", 1), ("seed", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise InputError(f"--{name} {value}: expected a number from {least}.")
    key = make_sheets(
        (options.a, options.b), options.out, options.judges, options.examples, options.seed, options.overwrite
    )
    same = f", {key.same_suggestions} of them with the same suggestions on both sides" if key.same_suggestions else ""
    print(f"{visible(options.out)}: {len(key.items)} items{same}; {len(key.sheets)} sheets.")
    print(
        f"Give a sheet of {visible(options.out / SHEETS)} to each judge, with the instructions; keep {KEY} to yourself."
    )
    print(f"When all are back in their place: mrs judge read {visible(options.out)}")


def _read(options: argparse.Namespace) -> None:
    from mrs_evaluation.annotation import summarize
    from mrs_evaluation.annotation_sheets import read_key, read_sheets

    key = read_key(options.folder)
    figures = summarize(key, read_sheets(options.folder, key, options.partial))
    if options.json:
        print(visible_json(figures, indent=2))
    else:
        _print_table(figures)


def _print_table(figures: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    console = make_console(110)
    table = Table(title=f"{figures['items']:,} items, {figures['judges']} judges", title_justify="left")
    for column in ("", "judgements", "95 % interval", "items by majority", "95 % interval"):
        table.add_column(column, justify="right" if column else "left")
    names = {"win": "A preferred", "tie": "tie", "loss": "B preferred"}
    for outcome, name in names.items():
        cells = []
        for kind in ("judgements", "majority"):
            low, high = figures[kind][outcome]["interval"]
            cells += [f"{figures[kind][outcome]['share']:.3f}", f"{low:.3f} to {high:.3f}"]
        table.add_row(name, *cells)
    console.print(f"A: {escape(figures['system_a'])}\nB: {escape(figures['system_b'])}", soft_wrap=True)
    console.print(table)
    for line in _remarks(figures):
        console.print(escape(line), soft_wrap=True)
    console.print(escape(figures["signature"]), style="dim", soft_wrap=True)


def _remarks(figures: dict[str, Any]) -> list[str]:
    lines = [f"A against B: p = {figures['p']:.4g} (permutation test over items)"]
    if figures["judges"] > 1:
        kappa = figures["kappa"]
        lines.append(f"Fleiss' kappa: {'undefined, all judgements are one' if kappa is None else f'{kappa:.3f}'}")
    if figures["no_majority"]:
        lines.append(f"items without a majority, counted as ties: {figures['no_majority']:,}")
    if figures["same_suggestions"]:
        lines.append(f"items with the same suggestions on both sides: {figures['same_suggestions']:,}")
    if figures["judges_missing"]:
        lines.append(f"judges left out, their sheets being missing or untouched: {figures['judges_missing']}")
    for judge in figures["by_judge"]:
        left = judge["left_of_decided"]
        side = "never chose a side" if left is None else f"left in {100 * left:.0f} % of the choices"
        shares = ", ".join(f"{outcome} {judge[outcome]:.3f}" for outcome in ("win", "tie", "loss"))
        lines.append(f"{judge['sheet']}: {shares}; {side}")
    return lines
