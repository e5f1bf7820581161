"""The pages of the Python interface: each public name of a package, for mkdocstrings to read from its docstring."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGES = ("mrs_suggest", "mrs_metrics", "mrs_datasets", "mrs_suggest.serving")
# What most people import.
FIRST = ("Suggester", "RetrievalTrainer", "GenerationTrainer", "CausalTrainer", "Trainer", "TrainingArguments")


def api_pages(root: Path) -> dict[str, str]:
    """File name -> page, one per package."""
    return {f"{package}.md": _page(root, package) for package in PACKAGES}


def _page(root: Path, package: str) -> str:
    tree = ast.parse((root / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    about = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    names = public_names(tree, package)
    parts = [f"# {package}\n\n{about}\n\n"]
    for name, module in names.items():
        parts.append(f"::: {module}.{name}\n\n")
    return "".join(parts)


def public_names(tree: ast.Module, package: str) -> dict[str, str]:
    """Each name that a package offers, with the module that defines it."""
    lists = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    offered = {name for value in lists for name in ast.literal_eval(value) if not name.startswith("_")}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}."):
            found |= {alias.name: node.module for alias in node.names if alias.name in offered}
    place = {name: number for number, name in enumerate(FIRST)}
    return dict(sorted(found.items(), key=lambda pair: (place.get(pair[0], len(FIRST)), pair[1], pair[0])))
