"""Which extra brings a package that is not installed, by the metadata of the installed project (setup.cfg)."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from importlib import metadata
from importlib.util import find_spec

from mrs_core.errors import MissingExtraError

PROJECT = "mrs-suggest"
WHOLE = ("all", "test", "bench")  # extras that are never advised: others say better what is needed
# Where the module has another name than its distribution.
_MODULES = {"scikit_learn": "sklearn", "mlflow_skinny": "mlflow", "pyyaml": "yaml"}
# Brought by what an extra asks for, and imported by ours.
_BROUGHT_ALONG = {"pandas": "datasets", "starlette": "fastapi", "pydantic": "fastapi"}
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([^\]]*)\])?[^;]*;.*extra == ['\"]([^'\"]+)['\"]")


def missing_extra(error: BaseException, purpose: str, extra: str | None = None) -> MissingExtraError | None:
    """The sentence for an import that failed since an extra is not installed; None where that was not the reason.

    Args:
        error: its cause and context are looked at, too: libraries wrap what they catch.
        purpose: what needs the package, at the beginning of the sentence.
        extra: the one that is named if it brings the package; default: the smallest that asks for it itself.
    """
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, ModuleNotFoundError):
        seen = seen.__cause__ or seen.__context__
    module = (seen.name or "").partition(".")[0] if seen is not None else ""
    if not module or _is_there(module):
        return None
    found = _extra_of(_BROUGHT_ALONG.get(module, module), extra)
    return None if found is None else MissingExtraError(module, found, purpose)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # ValueError: None stands for it in `sys.modules`
        return False


def _extra_of(module: str, wished: str | None) -> str | None:
    own, _ = _extras()
    if wished in own and module in _all_modules(wished):
        return wished
    bringing = [name for name in own if module in own[name] and name not in WHOLE]
    return min(bringing, key=lambda name: (len(_all_modules(name)), name), default=None)


def _all_modules(extra: str) -> set[str]:
    own, included = _extras()
    return own.get(extra, set()).union(*map(_all_modules, included.get(extra, ())))


@cache
def _extras() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Extra -> the modules that it asks for, and the other extras that it includes; empty in a bare checkout."""
    own: defaultdict[str, set[str]] = defaultdict(set)
    included: defaultdict[str, set[str]] = defaultdict(set)
    try:
        lines = metadata.requires(PROJECT) or []
    except metadata.PackageNotFoundError:
        lines = []
    for line in lines:
        if match := _REQUIREMENT.match(line):
            name, others, extra = match[1].lower().replace("-", "_").replace(".", "_"), match[2], match[3]
            if name == PROJECT.replace("-", "_"):
                included[extra].update(part.strip() for part in (others or "").split(","))
                own.setdefault(extra, set())
            else:
                own[extra].add(_MODULES.get(name, name))
    return dict(own), dict(included)
