"""Runs commands of `mrs` in one process that has only the packages of some extras, by default of none:

    python -m tests.lean_process COMMANDS [EXTRA ...]

COMMANDS is a JSON list of lists of words; what is printed is JSON: exit code, output and errors of each.
"""

import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mrs_suggest.common.extras import installed_asked, modules_by_extra

# What the packages of extras bring along; httpx may come with the base, through huggingface-hub.
BLOCKED = {"multiprocess", "dill", "xxhash", "nltk", "joblib", "aiohttp", "pydantic"}
BLOCKED |= set().union(*modules_by_extra().values()) - {"httpx"}


def lacking(extras: Sequence[str]) -> set[str]:
    """The modules that an installation with these extras lacks."""
    brought = modules_by_extra()
    own = set().union(*(brought[extra] for extra in extras)) | brought_along(extras)
    return set().union(*brought.values()) - {"httpx"} - own if extras else BLOCKED


def brought_along(extras: Sequence[str]) -> set[str]:
    """The modules of all packages that the packages of these extras ask for, and those ask for in turn."""
    modules: dict[str, set[str]] = {}
    for module, names in metadata.packages_distributions().items():
        for name in names:
            modules.setdefault(canonicalize_name(name), set()).add(module)
    found: set[str] = set()
    waiting = [one for extra in extras for one in installed_asked().extras[extra]]
    while waiting:
        name = canonicalize_name(waiting.pop().name)
        if name in found or name not in modules:
            continue
        found.add(name)
        asked = map(Requirement, metadata.requires(name) or [])
        waiting += [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    return set().union(*(modules[name] for name in found))


class Hiding:
    """A finder that does not find the packages that are hidden."""

    def __init__(self, finder: Any, hidden: set[str]) -> None:
        self._finder, self._hidden = finder, hidden

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in self._hidden or not hasattr(self._finder, "find_spec"):
            return None
        found: ModuleSpec | None = self._finder.find_spec(name, path, target)
        return found

    def find_distributions(self, context: Any) -> Iterator[metadata.Distribution]:
        """As some libraries look for others by their metadata."""
        for one in getattr(self._finder, "find_distributions", lambda _: ())(context):
            if str(one.name).lower().replace("-", "_") not in self._hidden:
                yield one

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def run(words: list[str]) -> dict[str, object]:
    """One command; `cd FOLDER` is where the next ones run."""
    from mrs_suggest.cli.main import main

    if words[0] == "cd":
        os.chdir(words[1])
        return {"words": words, "code": 0}
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = main(words)
        except SystemExit as ended:
            code = ended.code or 0
        except Exception:
            traceback.print_exc()
            code = 1
    return {"words": words, "code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    hidden = lacking(sys.argv[2:])
    sys.meta_path[:] = [Hiding(finder, hidden) for finder in sys.meta_path]  # type: ignore[misc]
    print(json.dumps([run(words) for words in json.loads(sys.argv[1])]))
