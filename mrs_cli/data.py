"""`mrs data`: prepare a data set, print its statistics, publish it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mrs_cli.metric_errors import metric_errors
from mrs_cli.publishing import add_publish_options, publish_or_print
from mrs_core.errors import InputError
from mrs_core.languages import LANGUAGES, require_language
from mrs_datasets.card import HERE
from mrs_datasets.readers import Chunk, Chunks
from mrs_datasets.responses import MAX_RESPONSES, PAPER_MIN_REPLY_COUNT
from mrs_datasets.schema import RESPONSES_SUFFIX


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mrs data", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    prepare = verbs.add_parser("prepare", help="write a prepared folder: card, Parquet, report")
    prepare.add_argument("name", choices=["mrs"], help="the data set")
    prepare.add_argument(
        "--source",
        required=True,
        help="the official archive (mrs.tgz) or its folder, a folder of LANG.tsv files, or `sample`",
    )
    prepare.add_argument("--out", required=True, type=Path, help="the folder to write")
    prepare.add_argument("--overwrite", action="store_true", help="replace --out where it exists")
    prepare.add_argument(
        "--min-reply-count",
        type=int,
        default=1,
        help="leave rarer replies out of counted response sets (default 1: folders are small; "
        f"the paper takes {PAPER_MIN_REPLY_COUNT} for Reddit, section 2.1)",
    )
    prepare.add_argument(
        "--max-responses",
        type=int,
        default=MAX_RESPONSES,
        help=f"largest counted response set (default {MAX_RESPONSES}, section 2.1)",
    )
    prepare.set_defaults(run=_prepare)
    publish = verbs.add_parser("publish", help="publish a prepared folder on the hub, in one commit")
    publish.add_argument("folder", type=Path, help="a prepared folder")
    publish.add_argument("--repo", required=True, metavar="ORG/NAME")
    add_publish_options(publish)
    publish.set_defaults(run=_publish)
    stats = verbs.add_parser("stats", help="print Table 1's columns per language and split")
    stats.add_argument("data", help="a prepared folder, a hub id, or `sample`")
    stats.add_argument("--language", nargs="+", default=None, help="only these languages")
    stats.add_argument("--json", action="store_true", help="print JSON")
    stats.set_defaults(run=_stats)
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    options.run(options)
    return 0


def _prepare(options: argparse.Namespace) -> None:
    from mrs_datasets.prepare import prepare_mrs

    for option in ("min_reply_count", "max_responses"):
        if getattr(options, option) < 1:
            raise InputError(f"--{option.replace('_', '-')}: expected 1 or more, found {getattr(options, option)}.")
    report = prepare_mrs(
        options.source,
        options.out,
        min_reply_count=options.min_reply_count,
        max_responses=options.max_responses,
        overwrite=options.overwrite,
        progress=_progress,
    )
    configs: dict[str, Any] = report["configs"]
    for code in LANGUAGES:
        if code in configs:
            pairs = ", ".join(f"{split} {facts['rows']:,}" for split, facts in configs[code].items())
            responses = configs.get(code + RESPONSES_SUFFIX, {}).get("train", {}).get("rows", 0)
            print(f"{code}  {pairs}; responses {responses:,}")
    for part, reasons in report["dropped"].items():
        for reason, count in reasons.items():
            print(f"{part}: {count:,} rows dropped ({reason})")
    for note in report["notes"]:
        print(f"note: {note}")
    print(f"wrote {options.out} ({report['name']})")


def _publish(options: argparse.Namespace) -> None:
    from mrs_core import hub

    hub.require_repo_id(options.repo)
    if not (options.folder / "report.json").is_file():
        raise InputError(f"{options.folder}: not a prepared folder; make one with `mrs data prepare`.")
    card = (options.folder / "README.md").read_text(encoding="utf-8").replace(HERE, options.repo)
    what = hub.Publication("dataset", options.repo, options.folder, instead={"README.md": card.encode()})
    publish_or_print(what, options, f'load_dataset("{options.repo}", CONFIG)')


def _progress(chunks: Chunks) -> Iterator[Chunk]:
    from tqdm import tqdm

    with tqdm(unit=" rows", unit_scale=True, desc="prepare", disable=not sys.stderr.isatty()) as bar:
        for config, split, table in chunks:
            bar.set_postfix_str(f"{config}/{split}", refresh=False)
            yield config, split, table
            bar.update(table.num_rows)


def _stats(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from mrs_datasets.prepared import open_prepared
    from mrs_datasets.statistics import split_statistics
    from mrs_metrics.tokenize import get_tokenizer

    for code in options.language or []:
        require_language(code, "--language")
    data = open_prepared(options.data)
    counted = split_statistics(data, get_tokenizer, options.language)
    with metric_errors(options.data):
        rows = list(tqdm(counted, desc="counting", unit=" splits", disable=not sys.stderr.isatty()))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("Language", "Code", "Family", "Split", "Examples", "Tokens", "Response set")
    for column in table.columns[4:]:
        column.justify = "right"
    for row in rows:
        language = LANGUAGES[row.language]
        first = (language.name, row.language, language.family) if row.split == "train" else ("", "", "")
        responses = f"{row.responses:,}" if row.split == "train" else ""
        table.add_row(*first, row.split, f"{row.examples:,}", f"{row.tokens:,}", responses)
    table.caption = "Tokens of messages and replies, by the metric's tokenizer: " + ", ".join(
        dict.fromkeys(f"{get_tokenizer(row.language).name} {get_tokenizer(row.language).version}" for row in rows)
    )
    Console(width=100 if not sys.stdout.isatty() else None).print(table)
