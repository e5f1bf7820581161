"""`mrs data`: list the catalogue, prepare a data set, print its statistics, publish it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_cli.metric_errors import metric_errors
from mrs_cli.publishing import add_publish_options, publish_or_print
from mrs_core.errors import InputError
from mrs_core.languages import LANGUAGES, require_language
from mrs_datasets.card import HERE
from mrs_datasets.readers import Chunk, Chunks
from mrs_datasets.responses import MAX_RESPONSES, PAPER_MIN_REPLY_COUNT
from mrs_datasets.schema import RESPONSES_SUFFIX

if TYPE_CHECKING:
    from mrs_datasets.prepared import PreparedData

DATA_SETS = ("mrs", "xcopa", "staple")
NOT_FREE = ("staple",)  # handed out on request, non-commercial: a copy is published only by who may


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mrs data", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="print the catalogue")
    listing.set_defaults(run=_list)
    prepare = verbs.add_parser("prepare", help="write a prepared folder: card, Parquet, report")
    prepare.add_argument("name", choices=DATA_SETS, help="the data set")
    prepare.add_argument(
        "--source",
        default=[],
        action="append",
        help="mrs: the official archive (mrs.tgz) or its folder, a folder of LANG.tsv files, or `sample`; "
        "xcopa: its repository folder, and COPA's (the option may come twice); staple: the folder of the task's files",
    )
    prepare.add_argument("--out", required=True, type=Path, help="the folder to write")
    prepare.add_argument("--overwrite", action="store_true", help="replace --out where it exists")
    prepare.add_argument(
        "--min-reply-count",
        type=int,
        help="mrs: leave rarer replies out of counted response sets (default 1: folders are small; "
        f"the paper takes {PAPER_MIN_REPLY_COUNT} for Reddit, section 2.1)",
    )
    prepare.add_argument(
        "--max-responses",
        type=int,
        help=f"mrs: largest counted response set (default {MAX_RESPONSES}, section 2.1)",
    )
    prepare.set_defaults(run=_prepare)
    publish = verbs.add_parser("publish", help="publish a prepared folder on the hub, in one commit")
    publish.add_argument("folder", type=Path, help="a prepared folder")
    publish.add_argument("--repo", required=True, metavar="ORG/NAME")
    publish.add_argument(
        "--i-have-the-right-to-publish",
        action="store_true",
        help=f"needed for {', '.join(NOT_FREE)}, whose licence does not let everybody pass it on",
    )
    add_publish_options(publish)
    publish.set_defaults(run=_publish)
    stats = verbs.add_parser("stats", help="print the columns of the paper's own table per language and split")
    stats.add_argument("data", help="a prepared folder, a hub id, or `sample`")
    stats.add_argument("--language", nargs="+", default=None, help="only these languages (xcopa, staple: configs)")
    stats.add_argument("--json", action="store_true", help="print JSON")
    stats.set_defaults(run=_stats)
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    options.run(options)
    return 0


def _list(options: argparse.Namespace) -> None:
    from mrs_datasets.catalogue import read_record

    for name in DATA_SETS:
        record = read_record(name)
        print(f"{name}  ({record.homepage}; {record.paper})")
        for kind in record.kinds.values():
            codes = " ".join(kind.languages or record.languages)
            print(f"  {kind.config.replace('{language}', 'LANG')}: {kind.about}")
            print(f"    splits {', '.join(kind.splits)}; columns {', '.join(kind.columns)}; {codes}")


def _prepare(options: argparse.Namespace) -> None:
    from mrs_datasets.prepare import prepare_mrs, prepare_staple, prepare_xcopa

    counted = {
        name: getattr(options, name)
        for name in ("min_reply_count", "max_responses")
        if getattr(options, name) is not None
    }
    for option, value in counted.items():
        if value < 1 or options.name != "mrs":
            problem = f"expected 1 or more, found {value}" if options.name == "mrs" else "is for mrs alone"
            raise InputError(f"--{option.replace('_', '-')}: {problem}.")
    shared: dict[str, Any] = {"overwrite": options.overwrite, "progress": _progress}
    if not options.source and options.name != "staple":  # which says itself where to ask for it
        raise InputError(f"--source: {options.name} needs one; `mrs data prepare --help` names the kinds.")
    if options.name == "mrs":
        if len(options.source) > 1:
            raise InputError("--source: mrs takes one source.")
        report = prepare_mrs(options.source[0], options.out, **counted, **shared)
    else:
        prepare_named = prepare_xcopa if options.name == "xcopa" else prepare_staple
        report = prepare_named(options.source, options.out, **shared)
    _print_report(report)
    print(f"wrote {options.out} ({report['name']})")


def _print_report(report: dict[str, Any]) -> None:
    """Rows per config; a response set on the line of its language."""
    configs: dict[str, Any] = report["configs"]
    for config, splits in configs.items():
        language = config.removesuffix(RESPONSES_SUFFIX)
        if config != language and language in configs:
            continue
        rows = ", ".join(f"{split} {facts['rows']:,}" for split, facts in splits.items())
        responses = configs.get(config + RESPONSES_SUFFIX, {}).get("train")
        print(f"{config}  {rows}" + (f"; responses {responses['rows']:,}" if responses else ""))
    for part, reasons in report["dropped"].items():
        for reason, count in reasons.items():
            print(f"{part}: {count:,} rows dropped ({reason})")
    for note in report["notes"]:
        print(f"note: {note}")


def _publish(options: argparse.Namespace) -> None:
    from mrs_core import hub

    hub.require_repo_id(options.repo)
    for name in ("report.json", "README.md"):
        if not (options.folder / name).is_file():
            raise InputError(f"{options.folder}: not a prepared folder (no {name}); make one with `mrs data prepare`.")
    _require_right(options)
    card = (options.folder / "README.md").read_text(encoding="utf-8").replace(f'"{HERE}"', f'"{options.repo}"')
    what = hub.Publication("dataset", options.repo, options.folder, instead={"README.md": card.encode()})
    publish_or_print(what, options, f'load_dataset("{options.repo}", CONFIG)')


def _require_right(options: argparse.Namespace) -> None:
    from mrs_datasets.prepared import PreparedData

    name = PreparedData(str(options.folder), options.folder, None).data_set()
    if name in NOT_FREE and not options.i_have_the_right_to_publish:
        raise InputError(
            f"{options.folder}: {name} is non-commercial (CC BY-NC 4.0) and handed out on request; pass "
            "--i-have-the-right-to-publish if you may publish a copy."
        )


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

    data = open_prepared(options.data)
    if data.data_set() == "xcopa":
        _xcopa_stats(data, options)
        return
    if data.data_set() == "staple":
        _staple_stats(data, options)
        return
    for code in options.language or []:
        require_language(code, "--language")
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


def _xcopa_stats(data: PreparedData, options: argparse.Namespace) -> None:
    from mrs_datasets.xcopa_statistics import agreement, split_statistics

    rows = list(split_statistics(data, options.language))
    kappas = agreement(data)
    if options.json:
        print(json.dumps({"splits": [asdict(row) for row in rows], "kappa": kappas}, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("Config", "Split", "Examples", "Label choice1", "Agreement", "Premise", "Choices")
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows:
        agreed = f"{row.agreement:.1f}" if row.agreement is not None else ""
        lengths = ["/".join(str(n) for n in quantiles) for quantiles in (row.premise_lengths, row.choice_lengths)]
        table.add_row(row.config, row.split, f"{row.examples:,}", f"{row.first_choice:.1f} %", agreed, *lengths)
    table.caption = (
        "Agreement: % of labels that a translator gave as the majority did (Table 3). Premise, choices: characters, "
        "quartiles."
    )
    Console(width=100 if not sys.stdout.isatty() else None).print(table)
    for split, kappa in kappas.items():
        print(f"Fleiss' kappa of the translators, {split}: {kappa:.3f}")


def _staple_stats(data: PreparedData, options: argparse.Namespace) -> None:
    from mrs_datasets.staple_statistics import split_statistics
    from mrs_metrics.weighted_f1 import TABLE_7_KS, oracle_curve, weighted_f1_signature

    rows = list(split_statistics(data, options.language))
    # blind splits have no gold to score against
    oracles = [oracle_curve(data.load(row.config, row.split)) if row.translations else {} for row in rows]
    if options.json:
        splits = [{**asdict(row), "oracle": oracle} for row, oracle in zip(rows, oracles, strict=True)]
        print(json.dumps({"splits": splits, "signature": weighted_f1_signature()}, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("Language", "Code", "Split", "Prompts", "Trans.", "Ratio", "Quartiles", "Refs.")
    for k in TABLE_7_KS:
        table.add_column(f"k = {k}")
    for column in table.columns[3:]:
        column.justify = "right"
    for row, oracle in zip(rows, oracles, strict=True):
        sizes = [f"{row.prompts:,}", f"{row.translations:,}", f"{row.ratio:.1f}"]
        spread = "/".join(str(n) for n in row.quartiles)
        scores = [f"{oracle[k]:.3f}" if k in oracle else "" for k in TABLE_7_KS]
        table.add_row(row.language, row.config, row.split, *sizes, spread, f"{row.references:,}", *scores)
    table.caption = (
        "Prompts, accepted translations, their ratio: Table 2. Quartiles: translations per prompt. k: weighted F1 of "
        f"an oracle that gives the k likeliest (Table 7); {weighted_f1_signature()}"
    )
    Console(width=110 if not sys.stdout.isatty() else None).print(table)
