"""Which extra brings a package that is not installed, by the metadata of the installed project (setup.cfg)."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from importlib import metadata
from importlib.util import find_spec

PROJECT = "mrs-suggest"
WHOLE = ("all", "test", "bench")  # extras that are never advised: others say better what is needed
# Where the module has another name than its distribution.
_MODULES = {"scikit_learn": "sklearn", "mlflow_skinny": "mlflow", "pyyaml": "yaml"}
# Brought by what an extra asks for, and imported by ours.
_BROUGHT_ALONG = {"pandas": "datasets", "starlette": "fastapi", "pydantic": "fastapi"}
# A line of the metadata: distribution, its own extras, versions, and the extra of ours that asks for it.
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([^\]]*)\])?\s*([^;]*?)\s*(?:;.*extra == ['\"]([^'\"]+)['\"].*)?")
_BASE = ""  # stands for no extra


def lacking(error: BaseException, extra: str | None = None) -> tuple[str, str] | None:
    """The package that was not found, and the extra that brings it; None where that was not what went wrong.

    Args:
        error: its cause and context are looked at, too: libraries wrap what they catch.
        extra: the one that is named if it brings the package; default: the smallest that asks for it itself.
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
    own, _ = _extras()
    if wished is not None and module in _brought_by(wished):
        return wished
    bringing = [name for name in own if module in own[name] and name not in (_BASE, *WHOLE)]
    return min(bringing, key=lambda name: (len(_brought_by(name)), name), default=None)


def requirements(extra: str) -> list[str]:
    """What the project asks for with an extra, such as `numpy>=1.26`, sorted."""
    return sorted({*_brought_by(_BASE).values(), *_brought_by(extra).values()})


def modules_of_extras() -> set[str]:
    """The modules that only extras bring."""
    own, _ = _extras()
    return set().union(*own.values()) - set(own.get(_BASE, ()))


def _brought_by(extra: str) -> dict[str, str]:
    """Module -> requirement, with those of the extras that the extra includes."""
    own, included = _extras()
    found = dict(own.get(extra, {}))
    for other in included.get(extra, ()):
        found |= _brought_by(other)
    return found


@cache
def _extras() -> tuple[dict[str, dict[str, str]], dict[str, set[str]]]:
    """Extra -> module -> requirement, and extra -> the others that it includes; empty in a bare checkout."""
    own: defaultdict[str, dict[str, str]] = defaultdict(dict)
    included: defaultdict[str, set[str]] = defaultdict(set)
    try:
        lines = metadata.requires(PROJECT) or []
    except metadata.PackageNotFoundError:
        lines = []
    for line in lines:
        if match := _REQUIREMENT.fullmatch(line):
            plain, extra = re.sub(r"[-.]", "_", match[1].lower()), match[4] or _BASE
            if plain == PROJECT.replace("-", "_"):
                included[extra].update(part.strip() for part in (match[2] or "").split(","))
            else:
                own[extra][_MODULES.get(plain, plain)] = line.partition(";")[0].strip()
    return dict(own), dict(included)
