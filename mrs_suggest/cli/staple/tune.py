"""`mrs staple tune`: a filter fitted on a split with accepted translations."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.staple.filters.tuning import Row


RULE_NAMES = (
    "top",
    "threshold",
    "votes",
    "classifier",
    "soft-f1",
    "expected-f1",
)  # as `mrs_suggest.staple.rules.RULES`


def add_tune(verbs: Any) -> None:
    """Add the verb."""
    tune = verbs.add_parser(
        "tune", help="fit a filter for weighted F1 on a split with accepted translations",
        description="Fits a rule for macro weighted F1 and prints its score out of fold: each prompt is scored by a "
        "rule that was fitted on other prompts.",
    )  # fmt: skip
    tune.add_argument("hypotheses", type=Path, metavar="POOLED", help="hypotheses that `mrs staple combine` wrote")
    tune.add_argument("--data", required=True, help="prepared folder or hub id that the hypotheses were decoded from")
    tune.add_argument("--rule", required=True, choices=RULE_NAMES, help="how to choose")
    tune.add_argument("--out", required=True, type=Path, metavar="FILTER", help="the folder to write")
    tune.add_argument("--overwrite", action="store_true", help="replace --out if it exists")
    tune.add_argument("--by", metavar="FEATURE", help="what top and threshold order by (rank; log_prob_per_token)")
    tune.add_argument(
        "--features", nargs="+", metavar="FEATURE", help="that the learned rules use (all, but other filters' scores)"
    )
    tune.add_argument(
        "--sample-weights", choices=("none", "learner"), default="none",
        help="classifier: accepted translations count in the fit by their learner weight (none)",
    )  # fmt: skip
    tune.add_argument(
        "--calibration", choices=("auto", "isotonic", "platt"), default="auto",
        help="expected-f1: of the probabilities (auto: isotonic from 1,000 translations on)",
    )  # fmt: skip
    tune.add_argument("--folds", type=int, default=5, help="folds of prompts for the out-of-fold score (5)")
    tune.add_argument("--seed", type=int, default=0, help="of folds, initial weights and draws (0)")
    tune.set_defaults(run=_tune)


def _tune(options: argparse.Namespace) -> None:
    from mrs_suggest.common.errors import InputError
    from mrs_suggest.common.io.files import require_replaceable
    from mrs_suggest.staple.filters.filter_folder import SETTINGS, save_filter
    from mrs_suggest.staple.filters.tuning import tune
    from mrs_suggest.staple.hypotheses import read_hypotheses
    from mrs_suggest.staple.rules import Fitting

    require_replaceable(options.out, options.overwrite, SETTINGS)
    if options.seed < 0:
        raise InputError(f"--seed {options.seed}: expected a whole number from 0.")
    features = tuple(dict.fromkeys(options.features)) if options.features else None
    fitting = Fitting(options.by, features, options.sample_weights, options.calibration, options.seed)
    found = read_hypotheses(options.hypotheses)
    tuned = tune(found, options.hypotheses, options.data, options.rule, fitting, options.folds)
    save_filter(tuned.made, options.out, options.overwrite)
    for note in tuned.notes:
        print(f"note: {note}", file=sys.stderr)
    prompts, split = len(found.prompts), found.data["split"]
    print(f"weighted F1 on {split} ({prompts:,} prompts), out of fold: each prompt by a rule fitted on others")
    for row in tuned.rows:
        print(_line(row))
    print(f"wrote {visible(options.out)}: {options.rule} {tuned.made.rule.described()}, fitted on all prompts")


def _line(row: Row) -> str:
    figures = row.figures()
    return (
        f"  {row.name:<14} {figures['weighted_f1']:.4f} [{figures['low']:.4f}, {figures['high']:.4f}]  "
        f"precision {figures['precision']:.4f}  weighted recall {figures['weighted_recall']:.4f}  "
        f"{figures['translations']:.1f} translations a prompt"
    )
