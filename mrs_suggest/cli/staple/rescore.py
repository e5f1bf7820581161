"""`mrs staple rescore` and `mrs staple pairs`: what another run makes of hypotheses, and pairs to train one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import require_new_file
from mrs_suggest.common.text.text import visible


def add_rescore(verbs: Any) -> None:
    """Add the verb."""
    rescore = verbs.add_parser("rescore", help="add each hypothesis's log-probability under another run")
    _add_files(rescore, "the file of hypotheses to write")
    rescore.add_argument(
        "--with", required=True, dest="by", metavar="RUN",
        help="the folder of a generator, or ORG/NAME@REVISION; NAME=RUN names the feature log_prob_NAME",
    )  # fmt: skip
    rescore.add_argument(
        "--reverse", action="store_true",
        help="score the prompt given the translation, by a run that translates back (default: as the run says)",
    )  # fmt: skip
    rescore.add_argument("--batch_size", type=int, metavar="N", help="texts scored together (default: as many as fit)")
    rescore.set_defaults(run=_rescore)


def add_pairs(verbs: Any) -> None:
    """Add the verb."""
    pairs = verbs.add_parser("pairs", help="write prompts with their translations as pairs to train on")
    _add_files(pairs, "the text to write: prompt, tab, translation")
    pairs.add_argument("--top", type=int, default=1, metavar="N", help="translations of a prompt (default 1)")
    pairs.add_argument("--swap", action="store_true", help="the translation first, as back-translation needs it")
    pairs.set_defaults(run=_pairs)


def _add_files(parser: argparse.ArgumentParser, out: str) -> None:
    parser.add_argument("hypotheses", type=Path, metavar="HYPOTHESES", help="the file of hypotheses")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=out)
    parser.add_argument("--overwrite", action="store_true", help="replace --out if it exists")


def _rescore(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.hypotheses import read_hypotheses
    from mrs_suggest.staple.members import open_run
    from mrs_suggest.staple.rescore import rescore

    if options.batch_size is not None and options.batch_size < 1:
        raise InputError(f"--batch_size {options.batch_size}: expected a whole number from 1.")
    require_new_file(options.out, options.overwrite)
    found, run = read_hypotheses(options.hypotheses), open_run(options.by)
    made = rescore(found, run, options.out, options.reverse, options.batch_size, options.overwrite)
    print(f"wrote {visible(options.out)}: {len(made.table):,} translations with log_prob_{visible(run.name)}")


def _pairs(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.hypotheses import read_hypotheses
    from mrs_suggest.staple.pairs import write_pairs

    count = write_pairs(read_hypotheses(options.hypotheses), options.out, options.top, options.swap, options.overwrite)
    print(f"wrote {visible(options.out)}: {count:,} pairs")
