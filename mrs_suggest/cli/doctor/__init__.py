"""`mrs doctor`: check this installation and report missing or broken parts (exit code 1 if something is broken)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from mrs_suggest.cli.doctor import checks, packages
from mrs_suggest.cli.doctor.checks import BROKEN, Finding
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import first_line
from mrs_suggest.common.text.text import visible, visible_json

Check = Callable[[], list[Finding]]
# check -> its area, in the order in which they are shown
CHECKS: dict[Check, str] = {
    packages.base: "packages", packages.extras: "extras", checks.mecab: "models", checks.language_model: "models",
    checks.shipped_models: "models", checks.caches: "caches", checks.hub: "hub", checks.accelerator: "machine",
    checks.java: "machine", checks.memory: "machine",
}  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)
    return parser


def _run(options: argparse.Namespace) -> int:
    findings = examine()
    broken = [finding for finding in findings if finding.state == BROKEN]
    if options.json:
        print(visible_json({"broken": len(broken), "findings": [asdict(finding) for finding in findings]}))
        return 1 if broken else 0
    for area in dict.fromkeys(CHECKS.values()):
        shown = [finding for finding in findings if finding.area == area]
        width = max((len(finding.name) for finding in shown), default=0) + 2
        print(f"{area}:")
        for finding in shown:
            print(visible(f"  {finding.state:<8}{finding.name:<{width}}{finding.says}"))
        print()
    listed = ", ".join(finding.name for finding in broken)
    print(visible(f"{len(broken)} broken: {listed}" if broken else "Nothing that is installed is broken."))
    return 1 if broken else 0


def examine(asked: Mapping[Check, str] = CHECKS) -> list[Finding]:
    """Run all checks at the same time, since some wait for other programs; a check that fails is a finding, too."""

    def run(check: Check) -> list[Finding]:
        try:
            return check()
        except Exception as error:
            reason = f"cannot be examined ({type(error).__name__}: {first_line(error)})"
            return [Finding(asked[check], check.__name__.replace("_", " "), BROKEN, reason)]

    with ThreadPoolExecutor(len(asked)) as pool:
        return [finding for found in pool.map(run, asked) for finding in found]
