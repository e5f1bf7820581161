"""Run something right after a library's module is imported, without importing it: for registrations that cost nothing
until the library is used."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


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
