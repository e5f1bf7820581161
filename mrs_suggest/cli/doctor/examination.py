"""All checks, side by side: the slow ones wait for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from mrs_suggest.cli.doctor.finding import BROKEN, Finding

# area, module and function of each check, in the order of the answer; slow ones start first all the same
CHECKS = (
    ("packages", "requirements", "check_packages"),
    ("extras", "requirements", "check_extras"),
    ("models", "machine", "check_mecab"),
    ("models", "machine", "check_language_model"),
    ("caches", "caches", "check_caches"),
    ("hub", "hub_check", "check_hub"),
    ("machine", "machine", "check_torch"),
    ("machine", "machine", "check_java"),
    ("machine", "machine", "check_memory"),
)
SLOW_FIRST = ("check_torch", "check_hub", "check_java")
AREAS = ("packages", "extras", "models", "caches", "hub", "machine")


def examine(checks: Sequence[tuple[str, str, str]] = CHECKS) -> list[Finding]:
    """Run every check; one that fails itself is a finding, too, for an examination must survive a broken patient."""
    with ThreadPoolExecutor(len(checks)) as pool:
        order = sorted(checks, key=lambda check: check[2] not in SLOW_FIRST)
        running = {check: pool.submit(_run, *check) for check in order}
        found = [finding for check in checks for finding in running[check].result()]
    return sorted(found, key=lambda finding: AREAS.index(finding.area))


def _run(area: str, module: str, function: str) -> list[Finding]:
    try:
        check: Callable[[], list[Finding]] = getattr(import_module(f".{module}", __package__), function)
        return check()
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        name = function.removeprefix("check_").replace("_", " ")
        return [Finding(area, name, BROKEN, f"cannot be examined ({type(error).__name__}: {reason})")]
