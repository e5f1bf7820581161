"""`mrs doctor`: check this installation and report missing or broken parts (exit code 1 if something is broken)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from mrs_suggest.cli.doctor import checks
from mrs_suggest.cli.doctor.checks import BROKEN, Finding
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import first_line
from mrs_suggest.common.text.text import visible, visible_json

Check = Callable[[], list[Finding]]
# check -> its area, in the order in which they are shown
CHECKS: dict[Check, str] = {
    checks.base: "packages", checks.extras: "extras", checks.mecab: "models", checks.language_model: "models",
    checks.shipped_models: "models", checks.caches: "caches", checks.hub: "hub", checks.accelerator: "machine",
    checks.java: "machine", checks.memory: "machine",
}  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)
    return parser


def _run(options: argparse.Namespace) -> int:
    found = examine()
    broken = [finding.name for findings in found.values() for finding in findings if finding.state == BROKEN]
    if options.json:
        listed = [{"area": area, **asdict(finding)} for area, findings in found.items() for finding in findings]
        print(visible_json({"broken": len(broken), "findings": listed}))
        return 1 if broken else 0
    for area, findings in found.items():
        width = max((len(finding.name) for finding in findings), default=0) + 2
        print(f"{area}:")
        for finding in findings:
            print(visible(f"  {finding.state:<8}{finding.name:<{width}}{finding.says}"))
        print()
    print(visible(f"{len(broken)} broken: {', '.join(broken)}" if broken else "No installed part is broken."))
    return 1 if broken else 0


def examine(asked: Mapping[Check, str] = CHECKS) -> dict[str, list[Finding]]:
    """The findings by area: all checks run at the same time, since some wait for other programs, and one that fails is
    a finding, too."""

    def run(check: Check) -> list[Finding]:
        try:
            return check()
        except Exception as error:
            reason = f"cannot be examined ({type(error).__name__}: {first_line(error)})"
            return [Finding(check.__name__.replace("_", " "), BROKEN, reason)]

    found: dict[str, list[Finding]] = {area: [] for area in asked.values()}
    with ThreadPoolExecutor(len(asked)) as pool:
        for area, findings in zip(asked.values(), pool.map(run, asked), strict=True):
            found[area] += findings
    return found
