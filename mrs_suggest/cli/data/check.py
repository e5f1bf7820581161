"""`mrs data check`: find errors in a prepared folder; errors give exit code 1, warnings do not."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from functools import partial

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.report.console import make_console
from mrs_suggest.common.text.text import visible


def add_check(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    parser = verbs.add_parser("check", help="look for errors in a prepared folder: schema, sizes, leaks, labels, texts")
    parser.add_argument("data", help="a prepared folder, a hub id (also ORG/NAME@REVISION), or `sample`")
    parser.add_argument("--revision", help="revision of a hub data set: a branch, a tag or a commit (default main)")
    parser.add_argument(
        "--language-model",
        metavar="FILE",
        help="fastText's lid.176.ftz or lid.176.bin, to identify the languages of the texts (default: the installed "
        "one; without one only the scripts are checked)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_check)


def run_check(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from mrs_datasets.catalogue import ERROR
    from mrs_datasets.check.check import check
    from mrs_datasets.prepared.prepared import downloaded, open_prepared
    from mrs_suggest.common.text.language_id import open_identifier

    data = downloaded(open_prepared(options.data, options.revision, checked=False))
    identifier = open_identifier(options.language_model)
    known = identifier.languages if identifier else frozenset()
    shown = partial(tqdm, desc="check", unit=" configs", disable=not sys.stderr.isatty())
    findings = list(check(data, identifier.identify if identifier else None, known, shown))
    errors = sum(finding.level == ERROR for finding in findings)
    if options.json:
        print(json.dumps({"errors": errors, "findings": [asdict(finding) for finding in findings]}, indent=2))
        return 1 if errors else 0
    from rich.markup import escape
    from rich.table import Table

    console = make_console(100)
    rules = list(dict.fromkeys((finding.level, finding.rule) for finding in findings))
    for level, rule in sorted(rules):  # errors first
        console.print(escape(f"{level}: {rule}"))
        table = Table("Where", "Count", "Examples", show_lines=True)
        table.columns[1].justify = "right"
        for finding in findings:
            if (finding.level, finding.rule) == (level, rule):
                table.add_row(finding.where, f"{finding.count:,}", escape("\n".join(finding.examples)))
        console.print(table)
    if not identifier:
        print(
            "Only the scripts of the texts were checked, not their languages; `mrs install "
            "--language-model` downloads the model for that."
        )
    rows = f"{len(data.configs())} configs"
    print(f"{visible(data.name)}: {rows}, {errors} errors, {len(findings) - errors} warnings.")
    return 1 if errors else 0
