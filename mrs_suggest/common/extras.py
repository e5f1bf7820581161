"""What the installed project asks for with and without extras (setup.cfg), and which extra brings a missing package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PROJECT = "mrs-suggest"
WHOLE = ("all", "test", "bench")  # extras that are never advised: others say better what is needed
# Where the module has another name than its distribution.
_MODULES = {"scikit_learn": "sklearn", "mlflow_skinny": "mlflow", "pyyaml": "yaml"}
# Brought by what an extra asks for, and imported by ours.
_BROUGHT_ALONG = {"starlette": "fastapi"}


@dataclass(frozen=True)
class Asked:
    """What the project's metadata ask for.

    Attributes:
        python: the versions of Python, such as `>=3.11`.
        base: the requirements without extras.
        extras: those of each extra; an extra that is made of others has theirs.
    """

    python: str
    base: list[Requirement]
    extras: dict[str, list[Requirement]]


def read_asked(lines: list[str], extras: list[str], python: str) -> Asked:
    """Sort the requirements of a distribution by the extra that they belong to.

    Args:
        lines: as metadata have them, such as `rich>=13.8` or `fugashi>=1.3; extra == "ja"`.
        extras: the names of all extras.
        python: the versions of Python.
    """
    from packaging.requirements import Requirement

    every = [Requirement(line) for line in lines]

    def of(extra: str, above: frozenset[str] = frozenset()) -> Iterator[Requirement]:
        for one in every:
            if one.marker is None or one.marker.evaluate({"extra": ""}) or not one.marker.evaluate({"extra": extra}):
                continue
            if one.name == PROJECT:
                for part in sorted(one.extras - above):
                    yield from of(part, above | {part})
            else:
                yield one

    base = [one for one in every if one.marker is None or one.marker.evaluate({"extra": ""})]
    return Asked(python, base, {extra: list(of(extra, frozenset({extra}))) for extra in extras})


def installed_asked() -> Asked:
    """What the installed mrs-suggest asks for.

    Raises:
        PackageNotFoundError: the packages are on the path, but were not installed.
    """
    found = metadata.metadata(PROJECT)
    return read_asked(metadata.requires(PROJECT) or [], found.get_all("Provides-Extra") or [], found["Requires-Python"])


def lacking(error: BaseException, extra: str | None = None) -> tuple[str, str] | None:
    """The package that was not found, and the extra that brings it; None where that was not what went wrong.

    Args:
        error: its cause and context are looked at, too: libraries wrap what they catch.
        extra: the one that is named if it brings the package; default: the smallest that does.
    """
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, ModuleNotFoundError):
        seen = seen.__cause__ or seen.__context__
    module = (seen.name or "").partition(".")[0] if seen is not None else ""
    if not module or _is_there(module):
        return None
    found = _extra_of(_BROUGHT_ALONG.get(module, module), extra)
    return None if found is None else (module, found)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # ValueError: None stands for it in `sys.modules`
        return False


def _extra_of(module: str, wished: str | None) -> str | None:
    brought = _modules_by_extra()
    if wished is not None and module in brought.get(wished, ()):
        return wished
    bringing = [extra for extra in brought if module in brought[extra] and extra not in WHOLE]
    return min(bringing, key=lambda extra: (len(brought[extra]), extra), default=None)


def modules_of_extras() -> set[str]:
    """The modules that only extras bring."""
    return set().union(*_modules_by_extra().values())


@cache
def _modules_by_extra() -> dict[str, set[str]]:
    """Extra -> the modules that it brings to the base; empty in a bare checkout."""
    try:
        asked = installed_asked()
    except metadata.PackageNotFoundError:
        return {}
    base = set(map(_module, asked.base))
    return {extra: set(map(_module, found)) - base for extra, found in asked.extras.items()}


def _module(requirement: Requirement) -> str:
    plain = requirement.name.lower().replace("-", "_").replace(".", "_")
    return _MODULES.get(plain, plain)
