"""The requirements of the installed project (setup.cfg), and the extra that brings a missing package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
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
    """The requirements in the project's metadata; an extra that is made of others has theirs."""

    base: list[Requirement]
    extras: dict[str, list[Requirement]]


def installed_asked() -> Asked:
    """The requirements of the installed mrs-suggest; PackageNotFoundError if it was not installed."""
    from packaging.requirements import Requirement

    about = metadata.metadata(PROJECT)
    every = [Requirement(line) for line in metadata.requires(PROJECT) or []]
    base = [one for one in every if one.marker is None or one.marker.evaluate({"extra": ""})]

    def brought(extra: str) -> Iterator[Requirement]:
        for one in every:
            if one in base or one.marker is None or not one.marker.evaluate({"extra": extra}):
                continue
            if one.name == PROJECT:
                for part in sorted(one.extras):
                    yield from brought(part)
            else:
                yield one

    extras = {
        extra: list({one.name: one for one in brought(extra)}.values())
        for extra in about.get_all("Provides-Extra") or []
    }
    return Asked(base, extras)


def lacking(error: BaseException, extra: str | None = None) -> tuple[str, str] | None:
    """The package that was not found, and the extra that brings it; None if the error has another reason.

    Args:
        error: its cause and context are looked at, too: libraries wrap what they catch.
        extra: the one that is named if it brings the package; default: the smallest that does.
    """
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, ModuleNotFoundError):
        seen = seen.__cause__ or seen.__context__
    module = (seen.name or "").partition(".")[0] if seen is not None else ""
    with suppress(ImportError, ValueError):  # ValueError: `sys.modules` has None for it
        if not module or find_spec(module) is not None:
            return None
    found = _extra_of(_BROUGHT_ALONG.get(module, module), extra)
    return None if found is None else (module, found)


def _extra_of(module: str, wished: str | None) -> str | None:
    brought = modules_by_extra()
    if wished is not None and module in brought.get(wished, ()):
        return wished
    bringing = [extra for extra in brought if module in brought[extra] and extra not in WHOLE]
    return min(bringing, key=lambda extra: (len(brought[extra]), extra), default=None)


@cache
def modules_by_extra() -> dict[str, set[str]]:
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
