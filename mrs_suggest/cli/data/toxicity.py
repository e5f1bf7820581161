"""`mrs data toxicity`: drop toxic pairs and replies from a prepared folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.report.console import make_console
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.builders.passes import FolderPass
    from mrs_datasets.builders.toxicity import Rule
    from mrs_datasets.prepared.report import PassEntry
    from mrs_suggest.common.text.text_services import Scorer

# With the paper's values (Zhang et al. 2021, section 2.2); they are in mrs_datasets/builders/toxicity.py, which
# takes a second to import.
NEEDS_SCORER = {
    "toxicity_threshold": "toxicity",
    "toxicity_label": "toxicity",
    "toxicity_english_threshold": "toxicity_english",
    "toxicity_english_label": "toxicity_english",
}


def add_toxicity(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    parser = verbs.add_parser("toxicity", help="drop toxic pairs and replies from a prepared folder")
    parser.add_argument("data", help="a prepared folder of mrs, or a hub id")
    parser.add_argument("--out", required=True, type=Path, metavar="NEW", help="the folder to write")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    parser.add_argument("--overwrite", action="store_true", help="replace --out, or an interrupted run")
    parser.add_argument("--cache", metavar="FILE", type=Path, help="keep scores here for later runs (SQLite)")
    parser.add_argument(
        "--keep-rejects",
        type=int,
        metavar="N",
        help="keep this many dropped rows per scorer and split in report.json, which then is not published",
    )
    add_toxicity_options(parser)
    parser.set_defaults(run=run_toxicity)


def add_toxicity_options(parser: argparse.ArgumentParser) -> None:
    """Options that `mrs data toxicity` and `mrs data build` share."""
    group = parser.add_argument_group("toxicity", "what drops toxic pairs and replies (docs/pipeline.md)")
    group.add_argument(
        "--toxicity",
        metavar="SCORER",
        help="of all languages: `words`, words:FOLDER with LANG.txt, the address of a service, or a checkpoint "
        "for text classification (folder or hub id)",
    )
    group.add_argument("--toxicity-threshold", type=float, metavar="T", help="drop what is above (paper: .9)")
    group.add_argument("--toxicity-label", metavar="NAME", help="the checkpoint's label (default: toxic, hate, ...)")
    group.add_argument(
        "--toxicity-english",
        metavar="SCORER",
        help="a second one, of English validation, test and response set; also `perspective`",
    )
    group.add_argument("--toxicity-english-threshold", type=float, metavar="T", help="drop what is above (paper: .5)")
    group.add_argument("--toxicity-english-label", metavar="NAME", help="the second checkpoint's label")
    group.add_argument("--toxicity-batch", type=int, metavar="N", help="texts of a forward pass (32) or a request (64)")
    group.add_argument(
        "--requests-per-second", type=float, metavar="R", help="to a service, at most (perspective: 1; else no limit)"
    )


def toxicity_pass(options: argparse.Namespace) -> FolderPass | None:
    """The pass that the options ask for, with its models opened; None: none.

    Raises:
        InputError: an unknown model, or options that do not fit together.
    """
    _check(options)
    if options.toxicity is None and options.toxicity_english is None:
        return None
    from mrs_datasets.builders.toxicity import (
        ENGLISH_THRESHOLD,
        THRESHOLD,
        ToxicityPass,
        english_rule,
        multilingual_rule,
    )

    rules: list[Rule] = []
    for name, make, default in (
        ("toxicity", multilingual_rule, THRESHOLD),
        ("toxicity_english", english_rule, ENGLISH_THRESHOLD),
    ):
        if (scorer := getattr(options, name)) is not None:
            threshold = getattr(options, f"{name}_threshold")
            rules.append(make(_opened(options, name, scorer), default if threshold is None else threshold))
    return ToxicityPass(tuple(rules), options.keep_rejects or 0)


def _opened(options: argparse.Namespace, name: str, scorer: str) -> Scorer:
    from mrs_suggest.services.scorers.opening import open_scorer

    return open_scorer(
        scorer,
        label=getattr(options, f"{name}_label"),
        batch_size=options.toxicity_batch,
        per_second=options.requests_per_second,
        key_variable=f"MRS_{name.upper()}_KEY",  # one for each: a service must not see another one's key
        option=_option(name),
    )


def _check(options: argparse.Namespace) -> None:
    """Refuse values out of range, and options without the scorer that they are about."""
    for name, scorer in NEEDS_SCORER.items():
        value = getattr(options, name)
        if value is not None and getattr(options, scorer) is None:
            raise InputError(f"{_option(name)} {value}: applies only with {_option(scorer)}.")
        if name.endswith("threshold") and value is not None and not 0 <= value <= 1:
            raise InputError(f"{_option(name)} {value:g}: expected a number from 0 to 1.")
    scored = options.toxicity is not None or options.toxicity_english is not None
    for name in ("toxicity_batch", "requests_per_second"):
        value = getattr(options, name)
        if value is not None and not scored:
            raise InputError(f"{_option(name)} {value}: applies only with --toxicity or --toxicity-english.")
        if value is not None and not value > 0:
            raise InputError(f"{_option(name)} {value:g}: expected a number above 0.")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def run_toxicity(options: argparse.Namespace) -> int:
    if options.keep_rejects is not None and options.keep_rejects < 0:
        raise InputError(f"--keep-rejects {options.keep_rejects}: expected 0 or more.")
    each = toxicity_pass(options)
    if each is None:
        raise InputError("mrs data toxicity: no scorer; pass one with --toxicity or --toxicity-english.")
    from mrs_datasets.builders.passes import run_passes

    report = run_passes(
        options.data, [each], options.out, resume=options.resume, overwrite=options.overwrite, cache=options.cache
    )
    _print_entry(report["passes"][-1])
    print(f"wrote {visible(options.out)}: data/, README.md, report.json")
    return 0


def _print_entry(entry: PassEntry) -> None:
    from rich.table import Table

    about = entry["about"]
    rules = [model["rule"] for model in about["models"]]
    table = Table(title="Toxicity", title_justify="left")
    for column in ("split", "rows", "dropped", *rules):
        table.add_column(column, justify="left" if column == "split" else "right")
    for part, counts in about["parts"].items():
        if counts["dropped"]:
            figures = (counts.get(name) for name in ("rows", "dropped", *rules))
            table.add_row(part, *("-" if figure is None else f"{figure:,}" for figure in figures))
    table.caption = f"pairs: {entry['in']:,} in, {entry['out']:,} out"
    make_console(110).print(table)
