"""`mrs feedback`: how often people choose the suggestions of `mrs serve --feedback PLACE`."""

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
    reporting = verbs.add_parser("report", help="figures of each model, by language and by tag of the replies")
    reporting.set_defaults(run=_report)
    comparing = verbs.add_parser("compare", help="test whether one model's suggestions are chosen more often")
    tuning = verbs.add_parser(
        "tune", help="fit a ranker's weights, and its probability of use, to the clicks on its answers"
    )
    tuning.set_defaults(run=_tune)
    for verb in (reporting, comparing, tuning):
        verb.add_argument("place", metavar="PLACE", help="the file or URL of `mrs serve --feedback PLACE`")
        verb.add_argument("--json", action="store_true", help="print JSON")
    comparing.add_argument("a", metavar="A", help="name of a model in the answers")
    comparing.add_argument("b", metavar="B", help="name of the model to compare with")
    comparing.add_argument(
        "--sequential", action="store_true",
        help="a test that holds at every look, so that the experiment may end as soon as p is small",
    )  # fmt: skip
    comparing.set_defaults(run=_compare)
    tuning.add_argument("--model", required=True, metavar="MODEL", help="retriever that gave the answers")
    tuning.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder for the tuned copy")
    tuning.add_argument("--overwrite", action="store_true", help="replace an earlier copy")
    return parser


def _report(options: argparse.Namespace) -> None:
    from mrs_suggest.evaluation.clicks import FIGURES, clicks_of, report
    from mrs_suggest.serving.clicks import read_answers

    found = report(clicks_of(read_answers(options.place)))
    if options.json:
        print(visible_json(found, indent=2))
        return

    def cells(one: dict[str, Any]) -> list[str]:
        error = one["calibration_error"]
        found = [*(one[name] for name in FIGURES), *([error] if error else [])]
        figures = [f"{figure['mean']:.3f} {interval_text(figure['interval'], '{:.3f}'.format)}" for figure in found]
        name, rest = f"{one['model']} {one['version']}".strip(), [] if error else [""]
        counts = [f"{one['answers']:,}", f"{one['sessions']:,}"]
        return [visible(name), one["language"], visible(one["tag"]), *counts, *figures, *rest]

    header = ["model", "language", "tag", "answers", "sessions", *FIGURES.values(), "calibration error"]
    print_grid(Grid(header, [cells(one) for one in found]), [UNIT])


def _compare(options: argparse.Namespace) -> None:
    from mrs_suggest.evaluation.clicks import clicks_of, compare
    from mrs_suggest.serving.clicks import read_answers

    found = compare(clicks_of(read_answers(options.place)), options.a, options.b, options.sequential)
    if options.json:
        print(visible_json(found, indent=2))
        return
    first, second = found["accepted"]
    low, high = found["interval"]
    print(visible(f"{options.a}: a suggestion is chosen in {first:.1%} of the answers; {options.b}: {second:.1%}."))
    print(f"Difference: {found['difference']:+.1%} [{low:+.1%}, {high:+.1%}], p = {found['p']:.3g}, by session.")
    at_every_look = "The test holds at every look."
    print(at_every_look if options.sequential else "The test is valid if the number of sessions was fixed in advance.")


def _tune(options: argparse.Namespace) -> None:
    from mrs_suggest.common.hub.baselines import resolve_model
    from mrs_suggest.serving.clicks import read_answers
    from mrs_suggest.serving.served import version_of
    from mrs_suggest.training.retrieval.click_tuning import tune

    model = resolve_model(options.model)
    found = tune(model, version_of(model), read_answers(options.place), options.out, options.overwrite)
    if options.json:
        print(visible_json(found, indent=2))
        return
    factors = ", ".join(f"{name} x {one:.2f}" for name, one in found.get("theta", {}).items())
    print(f"{found['clicks']:,} choices of {found['sessions']:,} sessions. Weights: {factors or 'as they were'}.")
    known = [("choices", found), ("answers by the probability that a suggestion is used", found.get("trigger", {}))]
    for what, one in known:
        if "gain" in one:
            ends = interval_text(one["interval"], "{:+.4f}".format)
            print(f"Log-probability of held-out {what}: {one['gain']:+.4f} {ends}, by session.")
    print(f"{options.out}: written; try it on part of the traffic.")
