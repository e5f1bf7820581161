"""`mrs data audit`: samples of a prepared folder that people judge, and the shares that they found."""

from __future__ import annotations

import argparse
from pathlib import Path

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import visible, visible_json


def add_audit(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    from mrs_datasets.audit.files import ANNOTATORS, SEED
    from mrs_datasets.audit.questions import KINDS

    parser = verbs.add_parser("audit", help="write sheets and a page to judge samples of a data set; read them")
    actions = parser.add_subparsers(dest="action", required=True)
    make = actions.add_parser("make", help="draw pairs; write a sheet and a page per annotator, and the key")
    make.add_argument("data", help="a prepared folder, a hub id (also ORG/NAME@REVISION), or `sample`")
    make.add_argument("--revision", help="revision of a hub data set: a branch, a tag or a commit (default main)")
    make.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write")
    make.add_argument(
        "--kind",
        choices=tuple(KINDS),
        default="paper",
        help="paper (default): random pairs, judged for toxicity, as in section 2.2; wide: as many pairs of each "
        "language, also judged for personal data, wrong language, and replies that do not answer",
    )
    make.add_argument("--languages", nargs="+", metavar="CODE", help="only these (default all in the data)")
    make.add_argument(
        "--examples",
        type=int,
        metavar="N",
        help=f"paper: pairs in all (default {KINDS['paper'].examples}, section 2.2); wide: pairs per language "
        f"(default {KINDS['wide'].examples})",
    )
    make.add_argument(
        "--annotators", type=int, default=ANNOTATORS, metavar="N", help=f"sheets of all pairs (default {ANNOTATORS})"
    )
    make.add_argument("--seed", type=int, default=SEED, help=f"random seed (default {SEED})")
    make.add_argument("--overwrite", action="store_true", help="replace FOLDER unless its sheets have been filled in")
    make.set_defaults(run=run_make)
    read = actions.add_parser("read", help="check the completed sheets; print shares, intervals and agreement")
    read.add_argument(
        "folder", metavar="FOLDER", type=Path, help="the folder, with the completed sheets in FOLDER/sheets"
    )
    read.add_argument(
        "--partial", action="store_true", help="leave out sheets that are missing or untouched, and missing answers"
    )
    form = read.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")
    form.add_argument("--tsv", action="store_true", help="print the shares as TSV")
    read.set_defaults(run=run_read)


def run_make(options: argparse.Namespace) -> int:
    from mrs_datasets.audit.files import PAGES, SHEETS, make_audit
    from mrs_datasets.audit.questions import KINDS
    from mrs_datasets.prepared.prepared import open_prepared

    for name, least in (("annotators", 1), ("examples", 1), ("seed", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise InputError(f"--{name} {value}: expected {least} or more.")
    kind = KINDS[options.kind]
    key = make_audit(
        open_prepared(options.data, options.revision), options.out, kind, options.languages, options.examples,
        options.annotators, options.seed, options.overwrite,
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
        print("note: report.json tells of no toxicity filter; the paper audits after filtering (section 2.2).")
    print(f"Give each annotator one page of {out}/{PAGES}, or one sheet of {out}/{SHEETS} with the instructions.")
    print(f"When the completed sheets are in {out}/{SHEETS}: mrs data audit read {out}")
    return 0


def run_read(options: argparse.Namespace) -> int:
    from mrs_datasets.audit.figures import summarize
    from mrs_datasets.audit.files import read_key
    from mrs_datasets.audit.reading import read_judgements
    from mrs_suggest.cli.data.audit_tables import as_markdown, as_tsv, print_tables

    key = read_key(options.folder)
    figures = summarize(key, read_judgements(options.folder, key, options.partial))
    if options.json:
        print(visible_json(figures, indent=2))
    elif options.markdown:
        print(visible(as_markdown(figures), "\n"))
    elif options.tsv:
        print(visible(as_tsv(figures), "\n\t"))
    else:
        print_tables(figures)
    return 0
