"""`mrs data check`: look for errors in a prepared folder; errors give exit code 1, warnings do not."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.report.tables import make_console
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.check.findings import Finding


def add_check(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    parser = verbs.add_parser("check", help="look for errors in a prepared folder: schema, sizes, leaks, labels, texts")
    parser.add_argument("data", help="a prepared folder, a hub id (also ORG/NAME@REVISION), or `sample`")
    parser.add_argument(
        "--language-model",
        metavar="FILE",
        help="fastText's lid.176.ftz or lid.176.bin, to identify the languages of the texts (default: the installed "
        "one; without one only the scripts are checked)",
    )
    parser.add_argument("--findings", action="store_true", help="print every finding with examples, not only counts")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(run=run_check)


def run_check(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from mrs_datasets.catalogue import ERROR
    from mrs_datasets.check.check import check
    from mrs_datasets.prepared.prepared import downloaded, open_prepared
    from mrs_suggest.common.text.language_id import open_identifier

    data = downloaded(open_prepared(options.data, checked=False))
    identifier = open_identifier(options.language_model)
    known = identifier.languages if identifier else frozenset()
    shown = partial(tqdm, desc="check", unit=" configs", disable=None)
    findings = list(check(data, identifier.identify if identifier else None, known, shown))
    errors = sum(finding.level == ERROR for finding in findings)
    if options.json:
        print(json.dumps({"errors": errors, "findings": [asdict(finding) for finding in findings]}, indent=2))
        return 1 if errors else 0
    rules: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        rules[finding.level, finding.rule].append(finding)
    _print_rules(dict(sorted(rules.items())), options.findings)  # errors first
    if not identifier:
        print(
            "Languages were checked by script only; `mrs install --language-model` adds a model that identifies them."
        )
    print(f"{visible(data.name)}: {len(data.configs())} configs, {errors} errors, {len(findings) - errors} warnings.")
    if errors:
        print("Do not train or evaluate on these data: prepare them again from a correct source.")
    elif findings:
        print("The data can be used. Warnings are unusual rows, which may be intended.")
    if findings and not options.findings:
        print("--findings lists the rows.")
    return 1 if errors else 0


def _print_rules(rules: dict[tuple[str, str], list[Finding]], with_examples: bool) -> None:
    """One table with a line for each kind of finding, or a table of findings for each kind."""
    from rich.markup import escape
    from rich.table import Table

    console = make_console(100)
    summary = Table("Level", "Finding", "Splits", "Rows")
    for (level, rule), findings in rules.items():
        table = Table("Where", "Count", "Examples", show_lines=True)
        summary.add_row(level, escape(rule), f"{len(findings):,}", f"{sum(found.count for found in findings):,}")
        for finding in findings:
            table.add_row(finding.where, f"{finding.count:,}", escape("\n".join(finding.examples)))
        if with_examples:
            console.print(escape(f"{level}: {rule}"))
            console.print(table)
    if rules and not with_examples:
        console.print(summary)
