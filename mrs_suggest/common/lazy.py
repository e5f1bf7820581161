"""Public names of a package that are imported from its modules on first use (PEP 562)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, so that importing it costs nothing.

    Args:
        package: its `__name__`.
        homes: public name -> `MODULE` of the package, or `MODULE:NAME` where the module has it under another name.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        try:
            return getattr(importlib.import_module(f"{package}.{module}"), attribute or name)
        except ImportError as error:
            from mrs_suggest.common.errors import missing_extra

            if (missing := missing_extra(error, f"{package}.{name}")) is None:
                raise
            raise missing from error

    def names() -> list[str]:
        return sorted({*vars(importlib.import_module(package)), *homes})

    return get, names
