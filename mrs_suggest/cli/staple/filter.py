"""`mrs staple filter`: the hypotheses that a filter keeps."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.io.files import require_new_file
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.staple.rules import Rule


def add_filter(verbs: Any) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "filter", help="keep the hypotheses that a filter chooses",
        description="Keeps what a tuned filter or a rule given here chooses; the file that it writes has the same "
        "format, so that steps compose.",
    )  # fmt: skip
    verb.add_argument("hypotheses", type=Path, metavar="POOLED", help="hypotheses that `mrs staple combine` wrote")
    rules = verb.add_mutually_exclusive_group(required=True)
    rules.add_argument("--with", dest="filter", type=Path, metavar="FILTER", help="folder of `mrs staple tune`")
    rules.add_argument("--top", type=int, metavar="K", help="the best K of each prompt")
    rules.add_argument("--least-votes", type=int, metavar="N", help="what at least N members found")
    rules.add_argument("--threshold", type=float, metavar="T", help="what scores at least T, and a prompt's best")
    verb.add_argument("--by", metavar="FEATURE", help="what --top and --threshold go by (rank; log_prob_per_token)")
    verb.add_argument("--relative", action="store_true", help="--threshold is for the difference to the prompt's best")
    verb.add_argument("--any-language", action="store_true", help="use a filter that was tuned on another language")
    verb.add_argument("--out", required=True, type=Path, metavar="FILE", help="the file of hypotheses to write")
    verb.add_argument("--overwrite", action="store_true", help="replace --out if it exists")
    verb.set_defaults(run=_filter)


def _filter(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.filters.filter_folder import load_filter
    from mrs_suggest.staple.filters.filtering import apply_filter, apply_rule, doubts
    from mrs_suggest.staple.hypotheses import read_hypotheses, write_hypotheses

    require_new_file(options.out, options.overwrite)
    if options.filter is not None:
        made = load_filter(options.filter)
        found = read_hypotheses(options.hypotheses)
        kept = apply_filter(found, options.hypotheses, made, options.filter, options.any_language)
        for note in doubts(found, made):
            print(f"note: {note}", file=sys.stderr)
    else:
        rule, asked = _rule(options)
        found = read_hypotheses(options.hypotheses)
        kept = apply_rule(found, options.hypotheses, rule, asked)
    write_hypotheses(kept, options.out, options.overwrite)
    print(
        f"wrote {visible(options.out)}: {len(kept.table):,} of {len(found.table):,} translations of "
        f"{len(kept.prompts):,} prompts"
    )


def _rule(options: argparse.Namespace) -> tuple[Rule, str]:
    """The rule that is given by options, and the option."""
    from mrs_suggest.common.errors import InputError
    from mrs_suggest.staple.lists import PER_TOKEN
    from mrs_suggest.staple.rules import Fitting
    from mrs_suggest.staple.rules.simple import Threshold, Top, Votes

    if options.top is not None:
        _require_count("--top", options.top)
        return Top(options.top, options.by or "rank"), "--top"
    if options.least_votes is not None:
        _require_count("--least-votes", options.least_votes)
        return Votes(options.least_votes), "--least-votes"
    if options.threshold != options.threshold or abs(options.threshold) == float("inf"):
        raise InputError(f"--threshold {options.threshold}: expected a finite number.")
    Threshold.needs(Fitting(by=options.by), ())
    return Threshold(options.threshold, options.by or PER_TOKEN, options.relative), "--threshold"


def _require_count(option: str, value: int) -> None:
    from mrs_suggest.common.errors import InputError

    if value < 1:
        raise InputError(f"{option} {value}: expected a whole number from 1.")
