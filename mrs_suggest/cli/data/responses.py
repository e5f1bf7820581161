"""`mrs data responses`: make response sets for a prepared folder, or add one from a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from mrs_datasets.prepared.responses import MAX_RESPONSES, PAPER_MIN_REPLY_COUNT
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError, require_least


def add_responses(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    parser = verbs.add_parser("responses", help="make the response sets that a prepared mrs folder lacks")
    parser.add_argument("folder", type=Path, help="a prepared folder; the sets are added to it")
    parser.add_argument("--language", nargs="+", default=[], metavar="CODE", help="only these (default: those without)")
    parser.add_argument(
        "--file",
        type=Path,
        help="read one language's set: a reply per line, or reply, tab, count, or the official response_lm_cluster.txt "
        "(default: count the training replies)",
    )
    parser.add_argument("--out", type=Path, help="write a copy of the folder with the sets here instead")
    parser.add_argument("--overwrite", action="store_true", help="replace --out if it exists")
    parser.add_argument("--replace", action="store_true", help="replace existing sets")
    parser.add_argument(
        "--min-reply-count",
        type=int,
        default=PAPER_MIN_REPLY_COUNT,
        help=f"leave rarer replies out (default {PAPER_MIN_REPLY_COUNT}; use 1 for small folders)",
    )
    parser.add_argument(
        "--max-responses", type=int, default=MAX_RESPONSES, help=f"largest set (default {MAX_RESPONSES})"
    )
    parser.set_defaults(run=run_responses)


def run_responses(options: argparse.Namespace) -> None:
    from mrs_datasets.prepared import add_responses as adding
    from mrs_datasets.prepared.schema import RESPONSES_SUFFIX

    require_least(options, 1, "min-reply-count", "max-responses")
    if options.overwrite and options.out is None:
        raise InputError("--overwrite: needs --out; existing sets are replaced with --replace.")
    names = ("file", "out", "min_reply_count", "max_responses", "replace", "overwrite")
    given = {name: getattr(options, name) for name in names}
    report = adding.add_responses(options.folder, options.language, **given)
    for config, splits in report["configs"].items():
        if config.endswith(RESPONSES_SUFFIX):
            print(f"{config}  {splits['train']['rows']:,}")
    print(f"wrote {options.out or options.folder} ({report['name']})")
