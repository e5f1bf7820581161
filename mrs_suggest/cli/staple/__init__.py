"""`mrs staple`: systems that write all translations of a prompt (STAPLE, Mayhew et al. 2020)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mrs_suggest.cli.staple.combine import add_combine
from mrs_suggest.cli.staple.decode import add_decode
from mrs_suggest.cli.staple.effects import add_effects
from mrs_suggest.cli.staple.export import add_export
from mrs_suggest.cli.staple.filter import add_filter
from mrs_suggest.cli.staple.report import add_report
from mrs_suggest.cli.staple.rescore import add_pairs, add_rescore
from mrs_suggest.cli.staple.tune import add_tune
from mrs_suggest.common.command_parser import CommandParser


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs staple", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    add_decode(verbs)
    add_combine(verbs)
    add_tune(verbs)
    add_filter(verbs)
    add_export(verbs)
    add_effects(verbs)
    add_report(verbs)
    add_rescore(verbs)
    add_pairs(verbs)
    return parser


def main(argv: Sequence[str]) -> None:
    options = make_parser().parse_args(argv)
    options.run(options)
