"""The installed packages against what mrs-suggest asks for, with and without extras, from the installed metadata."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mrs_suggest.cli.doctor.finding import BROKEN, MISSING, OK, Finding
from mrs_suggest.common.extras import PROJECT, installed_asked

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def check_packages() -> list[Finding]:
    """Python and every package that the base installation asks for."""
    from packaging.specifiers import SpecifierSet

    asked = installed_asked()
    here = platform.python_version()
    fits = here in SpecifierSet(asked.python)
    findings = [
        Finding("packages", PROJECT, OK, metadata.version(PROJECT), {"version": metadata.version(PROJECT)}),
        Finding(
            "packages", "python", OK if fits else BROKEN,
            f"{here} ({sys.executable})" if fits else f"{here}, but mrs-suggest needs {asked.python}; use a newer one",
            {"version": here, "asked": asked.python, "executable": sys.executable},
        ),
    ]  # fmt: skip
    return findings + [_base(one) for one in asked.base]


def check_extras() -> list[Finding]:
    """Every extra: installed, or what it lacks and how to get it."""
    return [_extra(name, asked) for name, asked in sorted(installed_asked().extras.items())]


def problem_of(requirement: Requirement) -> str | None:
    """What is wrong with an installed package, or that it is not installed; None if it fits."""
    version = _version(requirement.name)
    if version is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(version, prereleases=True):
        return f"{requirement.name} {version} is installed, but mrs-suggest needs {requirement.specifier}"
    gone = [module for module in _modules(requirement.name) if not _importable(module)]
    return f"{requirement.name} {version} is listed as installed, but its module {gone[0]} is gone" if gone else None


def _base(requirement: Requirement) -> Finding:
    version, problem = _version(requirement.name), problem_of(requirement)
    facts = {"version": version, "asked": str(requirement.specifier)}
    says = f"{problem}; run `pip install '{requirement}'`" if problem else str(version)
    return Finding("packages", requirement.name, BROKEN if problem else OK, says, facts)


def _extra(name: str, asked: list[Requirement]) -> Finding:
    versions = {one.name: _version(one.name) for one in asked}
    problems = list(filter(None, map(problem_of, asked)))
    line = f"pip install '.[{name}]'"
    facts: Mapping[str, object] = {"packages": versions, "install": line}
    if not problems:
        listed = ", ".join(f"{package} {version}" for package, version in versions.items())
        return Finding("extras", name, OK, listed, facts)
    if not all(versions.values()):
        lacking = ", ".join(package for package, version in versions.items() if version is None)
        return Finding("extras", name, MISSING, f"needs {lacking}: {line} in a clone (docs/install.md)", facts)
    return Finding("extras", name, BROKEN, f"{'; '.join(problems)}; run `{line}` in a clone (docs/install.md)", facts)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _modules(name: str) -> list[str]:
    """The top-level packages of a distribution, as far as its list of files tells."""
    record = metadata.distribution(name).read_text("RECORD") or ""
    paths = (line.partition(",")[0] for line in record.splitlines())
    return sorted({path.partition("/")[0] for path in paths if path.count("/") == 1 and path.endswith("/__init__.py")})


def _importable(module: str) -> bool:
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None
