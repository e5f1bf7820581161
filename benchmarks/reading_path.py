"""How many files a reader opens to follow a call: from a function, through what it calls by name, to the last line.

    python benchmarks/reading_path.py trainers/retrieval.py:main
    python benchmarks/reading_path.py mrs_suggest/cli/suggest.py:main --edges

Imports and calls are followed as text; nothing is run. A method call is followed into every class that the path has
reached and that defines the method, so the count is an upper bound where two classes share a method's name, and misses
what is called through a dictionary or a library's callback.
"""

from __future__ import annotations

import argparse
import ast
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTALLED_AS = {"mrs_trainers": "trainers", "mrs_model_cards": "model_cards"}
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Place = tuple[Path, str]  # a file and a name that it defines, or "" for the file itself


@dataclass(frozen=True)
class Module:
    """What a file defines and imports.

    Attributes:
        defined: name -> function, class, or the statement that assigns it.
        imported: local name -> (file, name there), "" for the module itself.
    """

    defined: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, Place] = field(default_factory=dict)


def file_of(dotted: str) -> Path | None:
    """The file of a module of ours."""
    first, *rest = dotted.split(".")
    path = ROOT.joinpath(INSTALLED_AS.get(first, first), *rest)
    if path.with_suffix(".py").is_file():
        return path.with_suffix(".py")
    return path / "__init__.py" if (path / "__init__.py").is_file() else None


@cache
def read(path: Path) -> Module:
    """Read the definitions and imports of a file, those inside functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    module = Module()
    for node in tree.body:
        if isinstance(node, Definition):
            module.defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            module.defined.update({target.id: node for target in targets if isinstance(target, ast.Name)})
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                if whole := file_of(f"{statement.module}.{alias.name}"):
                    module.imported[alias.asname or alias.name] = (whole, "")
                elif place := file_of(statement.module):
                    module.imported[alias.asname or alias.name] = (place, alias.name)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.asname and (place := file_of(alias.name)):
                    module.imported[alias.asname] = (place, "")
    return module


def resolve(path: Path, name: str) -> Place | None:
    """Where a name that a file uses is defined; re-exports are followed."""
    module = read(path)
    if name in module.defined:
        return path, name
    if name in module.imported:
        place, original = module.imported[name]
        return (place, "") if not original else resolve(place, original)
    return None


class Walk:
    """Follows calls from one function; `visited` has the files in the order of their first visit, `edges` why."""

    def __init__(self, start: Place) -> None:
        self.visited: dict[Path, None] = {}
        self.edges: list[tuple[Place, Place]] = []
        self._seen: set[Place] = set()
        self._classes: dict[Place, ast.ClassDef] = {}
        self._methods: dict[str, Place] = {}  # method names called so far, and by whom first
        self._queue: deque[Place] = deque()
        self._add(start, start)
        while self._queue:
            self._follow(self._queue.popleft())

    def _add(self, place: Place, caller: Place) -> None:
        if place in self._seen:
            return
        self._seen.add(place)
        self.edges.append((caller, place))
        self.visited.setdefault(place[0])
        self._queue.append(place)

    def _follow(self, place: Place) -> None:
        path, name = place
        module = read(path)
        top, _, method = name.partition(".")
        node: ast.AST = module.defined[top]
        if method:
            node = next(part for part in ast.walk(node) if isinstance(part, Definition) and part.name == method)
        elif isinstance(node, ast.ClassDef):
            self._enter_class(place, node)
            return
        self._follow_names(place, node)

    def _enter_class(self, place: Place, node: ast.ClassDef) -> None:
        self._classes[place] = node
        for part in node.body:
            if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                self._follow_names(place, part)
        for base in [*node.bases, *node.decorator_list]:
            self._follow_names(place, base)
        for method in node.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and (
                method.name in self._methods or (method.name.startswith("__") and method.name.endswith("__"))
            ):
                self._add((place[0], f"{place[1]}.{method.name}"), self._methods.get(method.name, place))

    def _follow_names(self, place: Place, node: ast.AST) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                found = resolve(place[0], part.id)
                if found and found[1]:
                    self._add(found, place)
            elif isinstance(part, ast.Attribute):
                owner = resolve(place[0], part.value.id) if isinstance(part.value, ast.Name) else None
                if owner and not owner[1]:  # a module of ours
                    found = resolve(owner[0], part.attr)
                    if found and found[1]:
                        self._add(found, place)
                elif part.attr not in self._methods:
                    self._methods[part.attr] = place
                    for (path, name), known in list(self._classes.items()):
                        if any(isinstance(m, ast.FunctionDef) and m.name == part.attr for m in known.body):
                            self._add((path, f"{name}.{part.attr}"), place)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "start", metavar="FILE:FUNCTION", help="where the path begins, such as mrs_suggest/cli/suggest.py:main"
    )
    parser.add_argument("--edges", action="store_true", help="also print which call led to each file first")
    options = parser.parse_args()
    file, _, function = options.start.partition(":")
    if not (ROOT / file).is_file() or function not in read(ROOT / file).defined:
        parser.error(f"{options.start}: expected FILE:FUNCTION with a function at the top level of the file.")
    walk = Walk((ROOT / file, function))
    first = {target[0]: (caller, target) for caller, target in reversed(walk.edges)}
    for path in walk.visited:
        (caller, by), (_, name) = first[path]
        why = f"  {name}, from {caller.relative_to(ROOT)}:{by}" if options.edges else ""
        print(f"{path.relative_to(ROOT)}{why}")
    print(f"{len(walk.visited)} files")


if __name__ == "__main__":
    main()
