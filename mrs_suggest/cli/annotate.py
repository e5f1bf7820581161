"""`mrs annotate`: human evaluation: write blinded annotation files and summarize the annotations."""

import argparse
from pathlib import Path
from typing import Any

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import require_least
from mrs_suggest.common.report.tables import Grid, print_grid
from mrs_suggest.common.text.text import interval_text, visible, visible_json


def make_parser() -> argparse.ArgumentParser:
    from mrs_suggest.evaluation.annotation_files import ANNOTATORS, EXAMPLES, SEED

    parser = CommandParser(prog="mrs annotate", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("make", help="write one blinded annotation file per annotator, and the key")
    make.add_argument("a", metavar="A.tsv", type=Path, help="predictions of system A (message, reference, suggestions)")
    make.add_argument("b", metavar="B.tsv", type=Path, help="predictions of system B for the same messages")
    make.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write")
    make.add_argument(
        "--annotators", type=int, default=ANNOTATORS, help=f"number of annotators (default {ANNOTATORS}, section 3.3)"
    )
    make.add_argument(
        "--examples", type=int, help=f"messages to draw at random (default: all, up to {EXAMPLES}, section 5.1)"
    )
    make.add_argument("--seed", type=int, default=SEED, help=f"random seed (default {SEED})")
    make.add_argument(
        "--overwrite", action="store_true", help="replace DIR unless its annotation files have been filled in"
    )
    make.set_defaults(run=_make)
    read = verbs.add_parser("read", help="check the annotation files and print shares, intervals and agreement")
    read.add_argument(
        "folder", metavar="DIR", type=Path, help="the folder, with the completed files in DIR/annotations"
    )
    read.add_argument("--partial", action="store_true", help="leave out annotators whose file is missing or untouched")
    read.add_argument("--json", action="store_true", help="print one JSON object")
    read.set_defaults(run=_read)
    return parser


def _make(options: argparse.Namespace) -> None:
    from mrs_suggest.evaluation.annotation_files import ANNOTATIONS, KEY, make_annotation_files

    require_least(options, 1, "annotators", "examples")
    require_least(options, 0, "seed")
    key = make_annotation_files(
        (options.a, options.b), options.out, options.annotators, options.examples, options.seed, options.overwrite
    )
    same = f", {key.same_suggestions} of them with the same suggestions on both sides" if key.same_suggestions else ""
    print(f"{visible(options.out)}: {len(key.items)} items{same}; {len(key.files)} annotation files.")
    print(
        f"Give each annotator one file of {visible(options.out / ANNOTATIONS)} and the instructions; keep {KEY} to "
        "yourself."
    )
    print(f"When all files are back in the folder: mrs annotate read {visible(options.out)}")


def _read(options: argparse.Namespace) -> None:
    from mrs_suggest.evaluation.annotation import summarize
    from mrs_suggest.evaluation.annotation_files import read_annotation_files, read_key

    key = read_key(options.folder)
    figures = summarize(key, read_annotation_files(options.folder, key, options.partial))
    if options.json:
        print(visible_json(figures, indent=2))
    else:
        _print_table(figures)


def _print_table(figures: dict[str, Any]) -> None:
    rows = []
    for outcome, name in (("win", "A preferred"), ("tie", "tie"), ("loss", "B preferred")):
        row = [name]
        for kind in ("judgements", "majority"):
            found = figures[kind][outcome]
            row += [f"{found['share']:.3f}", interval_text(found["interval"], "{:.3f}".format, "{} to {}")]
        rows.append(row)
    header = ["", "judgements", "95 % interval", "items by majority", "95 % interval"]
    title = f"{figures['items']:,} items, {figures['annotators']} annotators"
    print(f"A: {visible(figures['system_a'])}\nB: {visible(figures['system_b'])}")
    print_grid(Grid(header, rows, title=title), [*_remarks(figures), figures["signature"]])


def _remarks(figures: dict[str, Any]) -> list[str]:
    lines = [f"A against B: p = {figures['p']:.4g} (permutation test over items)"]
    if figures["annotators"] > 1:
        kappa = figures["kappa"]
        lines.append(f"Fleiss' kappa: {'undefined, all judgements are the same' if kappa is None else f'{kappa:.3f}'}")
    if None not in (alphas := figures["alpha"].values()):
        lines.append("Krippendorff's alpha: {:.3f} nominal, {:.3f} ordinal (loss, tie, win)".format(*alphas))
    if figures["no_majority"]:
        lines.append(f"items without a majority, counted as ties: {figures['no_majority']:,}")
    if figures["same_suggestions"]:
        lines.append(f"items with the same suggestions on both sides: {figures['same_suggestions']:,}")
    if figures["annotators_missing"]:
        lines.append(f"annotators left out (missing or untouched files): {figures['annotators_missing']}")
    for annotator in figures["by_annotator"]:
        left = annotator["left_of_decided"]
        side = "never chose a side" if left is None else f"left in {100 * left:.0f} % of the choices"
        shares = ", ".join(f"{outcome} {annotator[outcome]:.3f}" for outcome in ("win", "tie", "loss"))
        lines.append(f"{annotator['file']}: {shares}; {side}")
    return lines
