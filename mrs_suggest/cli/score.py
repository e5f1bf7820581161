"""`mrs score`: figures of one or several systems, with interval and signature; `--compare` tests their difference."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from mrs_suggest.cli.options.score_input import standard_input
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import finite_json, visible_json
from mrs_suggest.evaluation.metrics import SPECS
from mrs_suggest.evaluation.scores.metric_options import SharedOption, require_options_of, shared_options
from mrs_suggest.evaluation.scores.metric_spec import MetricSpec
from mrs_suggest.evaluation.scores.score_notes import repeated_messages, score_notes
from mrs_suggest.evaluation.scores.score_systems import (
    compare_neighbours,
    load_systems,
    name_systems,
    rank_systems,
    save_values,
)
from mrs_suggest.evaluation.scores.score_tables import Form, ScoreTable, print_tables, shown_columns

DEFAULT = "mrs_rouge"


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs score", description=__doc__)
    parser.add_argument(
        "files",
        type=Path,
        nargs="*",
        metavar="FILE",
        help=f"a system's file, - for standard input; for {DEFAULT}: {SPECS[DEFAULT].reads.what}",
    )
    parser.add_argument(
        "--pred", type=Path, nargs="+", default=[], metavar="FILE", help="another way to name the files"
    )
    parser.add_argument(
        "--metric", choices=SPECS, default=DEFAULT, help=f"default {DEFAULT}, which also prints Dist-1 and -2"
    )
    _add_metric_options(parser.add_argument_group("options of metrics"))
    parser.add_argument(
        "--compare",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="test these systems against each other: prediction files, or what --save-scores wrote",
    )
    parser.add_argument("--holm", action="store_true", help="correct the p-values for several comparisons (Holm 1979)")
    parser.add_argument(
        "--save-scores", type=Path, metavar="OUT.json", help="write the per-example scores of the system"
    )
    form = parser.add_mutually_exclusive_group()
    for name, what in (("json", "JSON"), ("markdown", "a Markdown table"), ("latex", "a LaTeX table (booktabs)")):
        form.add_argument(
            f"--{name}", dest="form", action="store_const", const=name, default="terminal", help=f"print {what}"
        )
    return parser


def _add_metric_options(group: argparse._ArgumentGroup) -> None:
    """Add what the metrics declare; an option that is not given is None."""
    for option in shared_options().values():
        _add_option(group, option, option.first.flag, option.help)
        if former := option.first.about.former:
            _add_option(group, option, f"--{former}", argparse.SUPPRESS)


def _add_option(group: argparse._ArgumentGroup, option: SharedOption, flag: str, text: str) -> None:
    group.add_argument(
        flag,
        dest=option.name,
        type=option.first.type,
        nargs="+" if option.first.several else None,
        choices=option.choices or None,
        metavar=option.first.about.metavar,
        help=text,
    )


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    spec = SPECS[options.metric]
    given = {name: value for name in shared_options() if (value := getattr(options, name)) is not None}
    require_options_of(spec, given)
    files = options.compare or [*options.files, *options.pred]
    _require_fitting(options, spec, files)
    with standard_input(files, folder=spec.reads.folder) as paths:
        systems = load_systems(spec, given, paths, saved=bool(options.compare))
    name_systems(systems, files)
    if options.compare:
        comparison = compare_neighbours(systems, spec, options.holm)
        first = systems[0]
        repeated = repeated_messages(len(first.values), first.messages)
        notes = [comparison.method, *repeated, comparison.signature]
        _print(options.form, comparison.as_json(), comparison.tables(), notes)
        return 0
    if options.save_scores:
        save_values(options.save_scores, spec.name, systems[0])
    notes = rank_systems(systems, spec, options.holm) if len(systems) > 1 else []
    rows = [system.row() for system in systems]
    table = ScoreTable(rows, shown_columns(rows, spec.columns), spec.main)
    content = systems[0].record.as_json() if len(systems) == 1 else [system.as_json() for system in systems]
    _print(options.form, content, [table], [*score_notes(systems, spec), *notes])
    return 0


def _require_fitting(options: argparse.Namespace, spec: MetricSpec, files: Sequence[Path]) -> None:
    """Refuse options of the command that contradict each other or the metric."""
    if options.compare and (options.files or options.pred or options.save_scores):
        raise InputError("--compare takes all files itself and saves no scores; leave the others out.")
    if not files:
        raise InputError("FILE: pass the prediction file of one system or more.")
    if len(options.compare) == 1:
        raise InputError("--compare needs two files or more.")
    if options.compare and not spec.mean_over_examples:
        raise InputError(f"--compare does not apply to {spec.name}, which is not a mean over examples.")
    if options.save_scores and (len(files) > 1 or not spec.mean_over_examples):
        raise InputError("--save-scores takes one system, and a metric that is a mean over examples.")


def _print(form: Form | Literal["json"], content: object, tables: Sequence[ScoreTable], notes: Sequence[str]) -> None:
    if form == "json":
        print(visible_json(finite_json(content), indent=2, allow_nan=False))
        for warning in dict.fromkeys(note for note in notes if note.startswith("warning: ")):
            print(warning, file=sys.stderr)
    else:
        print_tables(tables, notes, form)
