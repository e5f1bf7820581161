"""What makes `import mrs_suggest` cheap: names that are imported on first use (PEP 562), and registrations that wait
until the library that they need is imported."""

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
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


def after_import(name: str, call: Callable[[], object]) -> None:
    """Call `call` once, when the module `name` has been imported; immediately if it is there already."""
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Finder(name, call))


class _Finder:
    """Finds the module as the other finders do, with a loader that calls afterwards."""

    def __init__(self, name: str, call: Callable[[], object]) -> None:
        self._name, self._call = name, call

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        from importlib.util import find_spec  # here: it costs as much as the rest of the package

        self._name = ""  # once; another finder may wrap this one, so that it cannot be removed
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._call)  # type: ignore[assignment]  # not derived from the class
        return spec


class _Loader:
    def __init__(self, loader: Any, call: Callable[[], object]) -> None:
        self._loader, self._call = loader, call

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._call()
