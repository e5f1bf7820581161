"""`mrs feedback`: how often people choose the suggestions of `mrs serve --feedback FILE`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.report.tables import Grid, print_grid
from mrs_suggest.common.text.text import interval_text, visible, visible_json

UNIT = "In brackets: 95 % intervals by session. Answers without feedback count as not chosen."


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs feedback", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    reporting = verbs.add_parser("report", help="figures of each model, by language")
    reporting.set_defaults(run=_report)
    comparing = verbs.add_parser("compare", help="test whether one model's suggestions are chosen more often")
    for verb in (reporting, comparing):
        verb.add_argument("file", type=Path, metavar="FILE", help="a file that `mrs serve --feedback FILE` wrote")
        verb.add_argument("--json", action="store_true", help="print JSON")
    comparing.add_argument("a", metavar="A", help="name of a model in the answers")
    comparing.add_argument("b", metavar="B", help="name of the model to compare with")
    comparing.set_defaults(run=_compare)
    return parser


def _report(options: argparse.Namespace) -> None:
    from mrs_suggest.evaluation.clicks import FIGURES, clicks_of, report
    from mrs_suggest.serving.clicks import read_answers

    found = report(clicks_of(read_answers(options.file)))
    if options.json:
        print(visible_json(found, indent=2))
        return

    def cells(one: dict[str, Any]) -> list[str]:
        error = one["calibration_error"]
        found = (one[name] for name in FIGURES)
        figures = [f"{figure['mean']:.3f} {interval_text(figure['interval'], '{:.3f}'.format)}" for figure in found]
        name = f"{one['model']} {one['version']}".strip()
        rest = ["" if error is None else f"{error:.3f}"]
        return [visible(name), one["language"], f"{one['answers']:,}", f"{one['sessions']:,}", *figures, *rest]

    header = ["model", "language", "answers", "sessions", *FIGURES.values(), "calibration error"]
    print_grid(Grid(header, [cells(one) for one in found]), [UNIT])


def _compare(options: argparse.Namespace) -> None:
    from mrs_suggest.evaluation.clicks import clicks_of, compare
    from mrs_suggest.serving.clicks import read_answers

    found = compare(clicks_of(read_answers(options.file)), options.a, options.b)
    if options.json:
        print(visible_json(found, indent=2))
        return
    first, second = found["accepted"]
    low, high = found["interval"]
    print(visible(f"{options.a}: a suggestion is chosen in {first:.1%} of the answers; {options.b}: {second:.1%}."))
    print(f"Difference: {found['difference']:+.1%} [{low:+.1%}, {high:+.1%}], p = {found['p']:.3g}, by session.")
    print("The test is valid if the number of sessions was fixed in advance.")
