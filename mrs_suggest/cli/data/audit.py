"""`mrs data audit`: samples of a prepared folder for people to judge, and the shares that they found."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import require_least
from mrs_suggest.common.report.tables import Grid, grid_markdown, print_grid
from mrs_suggest.common.text.text import visible, visible_json

SHARES = ["question", "language", "pairs", "judged", "yes", "undecided", "share", "95 % interval", "undecided as yes"]
AGREEMENT = ["question", "judged by two", "same answer", "kappa"]
SHOWN = 20  # differences in the terminal; --json has all


def add_audit(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    from mrs_datasets.audit.files import ANNOTATORS, SEED
    from mrs_datasets.audit.questions import KINDS

    parser = verbs.add_parser("audit", help="judge a sample of a data set: write sheets and a page, or read them")
    actions = parser.add_subparsers(dest="action", required=True)
    make = actions.add_parser("make", help="draw pairs; write a sheet and a page per annotator, and the key")
    make.add_argument("data", help="a prepared folder, a hub id (also ORG/NAME@REVISION), or `sample`")
    make.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write")
    make.add_argument(
        "--kind",
        choices=tuple(KINDS),
        default="paper",
        help="paper (default): random pairs, judged for toxicity (section 2.2); wide: as many pairs of each language, "
        "also judged for personal data, wrong language, and unrelated replies",
    )
    make.add_argument("--languages", nargs="+", metavar="CODE", help="only these (default all in the data)")
    make.add_argument(
        "--examples",
        type=int,
        default=None,
        metavar="N",
        help=f"paper: pairs in total (default {KINDS['paper'].examples}); wide: pairs per language (default "
        f"{KINDS['wide'].examples})",
    )
    make.add_argument(
        "--annotators", type=int, default=ANNOTATORS, metavar="N", help=f"sheets with all pairs (default {ANNOTATORS})"
    )
    make.add_argument("--seed", type=int, default=SEED, help=f"random seed (default {SEED})")
    make.add_argument("--overwrite", action="store_true", help="replace FOLDER unless its sheets have been filled in")
    make.set_defaults(run=run_make)
    read = actions.add_parser("read", help="check the completed sheets; print shares, intervals and agreement")
    read.add_argument("folder", type=Path, metavar="FOLDER", help="the folder, with completed sheets in FOLDER/sheets")
    read.add_argument("--partial", action="store_true", help="ignore missing or untouched sheets, and missing answers")
    form = read.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as one JSON object")
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")
    read.set_defaults(run=run_read)


def run_make(options: argparse.Namespace) -> None:
    from mrs_datasets.audit.files import PAGES, SHEETS, make_audit
    from mrs_datasets.audit.questions import KINDS
    from mrs_datasets.prepared.prepared import open_prepared

    require_least(options, 1, "annotators", "examples")
    require_least(options, 0, "seed")
    kind = KINDS[options.kind]
    key = make_audit(
        open_prepared(options.data), options.out, kind, options.languages, options.examples, options.annotators,
        options.seed, options.overwrite,
    )  # fmt: skip
    out = visible(options.out)
    by_language = {code: sum(item.language == code for item in key.items) for code in key.languages}
    counts = ", ".join(f"{code} {count:,}" for code, count in by_language.items())
    print(f"{out}: {len(key.items):,} pairs ({counts}); {len(key.files)} annotator{'s' * (len(key.files) > 1)}.")
    short = [code for code, count in by_language.items() if count < key.examples]
    if kind.per_language and short:
        print(f"note: fewer than {key.examples:,} different pairs in {' '.join(short)}: all of them are taken.")
    elif not kind.per_language and len(key.items) < key.examples:
        print(f"note: the data have fewer than {key.examples:,} different pairs: all of them are taken.")
    if key.cut:
        print(f"note: {key.cut:,} texts are too long for a cell and were cut.")
    if not any("toxic" in name for name in key.data["passes"]):
        print("note: report.json lists no toxicity filter; the paper audits after filtering (section 2.2).")
    print(f"Give each annotator one page of {out}/{PAGES}, or one sheet of {out}/{SHEETS} with the instructions.")
    print(f"When the completed sheets are in {out}/{SHEETS}: mrs data audit read {out}")


def run_read(options: argparse.Namespace) -> None:
    from mrs_datasets.audit.files import read_key
    from mrs_datasets.audit.reading import read_judgements, summarize

    key = read_key(options.folder)
    figures = summarize(key, read_judgements(options.folder, key, options.partial))
    if options.json:
        print(visible_json(figures, indent=2))
        return
    who = "1 annotator" if figures["annotators"] == 1 else f"{figures['annotators']} annotators"
    data = figures["data"]
    version = data.get("revision") or data.get("content_hash")
    title = f"{data['title']} ({data['id']}, {version}): {figures['items']:,} pairs, {who}"
    tables = [Grid(SHARES, _share_rows(figures))]
    if figures["agreement"]:
        tables.append(Grid(AGREEMENT, _agreement_rows(figures)))
    if options.markdown:
        parts = [title, *map(grid_markdown, tables), *_remarks(figures)]
        print(visible("\n\n".join([*parts, f"`{figures['signature']}`"]), "\n"))
    else:
        _print(title, tables, figures)


def _print(title: str, tables: list[Grid], figures: dict[str, Any]) -> None:
    print(visible(title))
    for table in tables:
        print_grid(table)
    differences = figures["differences"]
    if differences:
        print(f"Pairs on which annotators differ ({min(SHOWN, len(differences))} of {len(differences):,}):")
    for row in differences[:SHOWN]:
        answers = ", ".join(f"annotator {number} {answer}" for number, answer in row["answers"].items())
        item = f"item {row['item']} ({row['language']}/{row['split']}, row {row['row']})"
        print(visible(f"  {item}, {row['question']}: {answers}"))
    for line in [*_remarks(figures), figures["signature"]]:
        print(visible(line))


def _share_rows(figures: dict[str, Any]) -> list[list[str]]:
    rows = []
    for row in figures["shares"]:
        counts = [f"{row[name]:,}" for name in ("pairs", "judged", "yes", "undecided")]
        interval = " to ".join(map(_percent, row["interval"] or ()))
        share, most = _percent(row["share"]), _percent(row["at_most"])
        rows.append([row["question"], row["language"], *counts, share, interval, most])
    return rows


def _agreement_rows(figures: dict[str, Any]) -> list[list[str]]:
    rows = []
    for row in figures["agreement"]:
        kappa = "undefined" if row["kappa"] is None else f"{row['kappa']:.3f}"
        rows.append([row["question"], f"{row['judged_by_two']:,}", _percent(row["same"]), kappa])
    return rows


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _remarks(figures: dict[str, Any]) -> list[str]:
    paper = figures["paper"]
    lines = [
        f"The paper (section {paper['section']}) found {paper['found']} toxic pairs among {paper['examples']} after "
        f"filtering; its 95 % interval ends at {_percent(paper['interval'][1])}."
    ]
    if figures["kind"] == "wide" and any(row["language"] == "all" for row in figures["shares"]):
        lines.append("all: shares weighted by the pairs of each language in the data.")
    if figures["annotators_missing"]:
        lines.append(f"Annotators left out (missing or untouched sheets): {figures['annotators_missing']}.")
    if missing := sum(row["language"] != "all" and not row["judged"] for row in figures["shares"]):
        lines.append(f"Languages and questions without an answer: {missing}; `all` excludes them.")
    for row in figures["by_annotator"] if figures["annotators"] > 1 else []:
        yes = ", ".join(f"{question} {counts['yes']:,}" for question, counts in row["answers"].items())
        unsure = sum(counts["unsure"] for counts in row["answers"].values())
        lines.append(f"Annotator {row['annotator']}: {row['judged']:,} pairs; yes: {yes}; unsure: {unsure:,}.")
    if figures["comments"]:
        lines.append(f"Comments: {len(figures['comments'])} (--json has them).")
    return lines
