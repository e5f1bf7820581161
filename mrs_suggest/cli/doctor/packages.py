"""The installed packages, compared with the requirements in the project's metadata."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from mrs_suggest.cli.doctor.checks import BROKEN, INSTALL, MISSING, OK, Finding
from mrs_suggest.common.extras import PROJECT, installed_asked

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def base() -> list[Finding]:
    """Python and every package of the base installation."""
    from packaging.specifiers import SpecifierSet

    asked, here = installed_asked(), platform.python_version()
    fits = here in SpecifierSet(asked.python)
    says = f"{here} ({sys.executable})" if fits else f"{here}, but mrs-suggest needs {asked.python}; use a newer one"
    found = [
        Finding(PROJECT, OK, metadata.version(PROJECT)),
        Finding("python", OK if fits else BROKEN, says),
    ]
    for one in asked.base:
        problem = _problem(one)
        says = f"{problem}; run `pip install '{one}'`" if problem else str(_version(one))
        found.append(Finding(one.name, BROKEN if problem else OK, says))
    return found


def extras() -> list[Finding]:
    """Every extra: its versions, or the packages that it lacks and how to install them."""
    return [_extra(name, asked) for name, asked in sorted(installed_asked().extras.items())]


def _extra(name: str, asked: list[Requirement]) -> Finding:
    install = f"pip install '.[{name}]'"
    if lacking := ", ".join(one.name for one in asked if _version(one) is None):
        return Finding(name, MISSING, f"needs {lacking}: {install} {INSTALL}")
    if problems := "; ".join(filter(None, map(_problem, asked))):
        return Finding(name, BROKEN, f"{problems}; run `{install}` {INSTALL}")
    return Finding(name, OK, ", ".join(f"{one.name} {_version(one)}" for one in asked))


def _problem(requirement: Requirement) -> str | None:
    version = _version(requirement)
    if version is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(version, prereleases=True):
        return f"{requirement.name} {version} is installed, but mrs-suggest needs {requirement.specifier}"
    return None


def _version(requirement: Requirement) -> str | None:
    try:
        return metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return None
