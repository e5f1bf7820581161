"""Public names of a package that are imported from its modules on first use (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, cast


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, so that importing it is cheap.

    The names, and the modules that have them, are those that its `__init__.py` imports for type checkers below
    `if TYPE_CHECKING`.
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        import ast

        source = cast(Any, sys.modules[package].__loader__).get_source(package)
        blocks = [node.body for node in ast.parse(source).body if isinstance(node, ast.If)]
        imports = [node for body in blocks for node in body if isinstance(node, ast.ImportFrom)]
        return {name.asname or name.name: (str(node.module), name.name) for node in imports for name in node.names}

    def get(name: str) -> object:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes()[name]
        try:
            return getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            from mrs_suggest.common.errors import missing_extra

            if (missing := missing_extra(error, f"{package}.{name}")) is None:
                raise
            raise missing from error

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes()})

    return get, names
