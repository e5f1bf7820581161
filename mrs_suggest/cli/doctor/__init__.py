"""`mrs doctor`: what this installation has, what it lacks, and what is broken (then the exit code is 1)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from mrs_suggest.cli.doctor.examination import AREAS, examine
from mrs_suggest.cli.doctor.finding import BROKEN, Finding
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.text.text import visible, visible_json


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    findings = examine()
    broken = [finding for finding in findings if finding.state == BROKEN]
    if options.json:
        print(visible_json({"broken": len(broken), "findings": [asdict(finding) for finding in findings]}))
    else:
        for area in AREAS:
            _show(area, [finding for finding in findings if finding.area == area])
        listed = ", ".join(finding.name for finding in broken)
        print(visible(f"{len(broken)} broken: {listed}" if broken else "Nothing that is installed is broken."))
    return 1 if broken else 0


def _show(area: str, findings: Sequence[Finding]) -> None:
    print(f"{area}:")
    width = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        print(visible(f"  {finding.state:<8}{finding.name:<{width + 2}}{finding.says}"))
    print()
