"""The pages of the Python interface: each public name of a package, for mkdocstrings to read from its docstring."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGES = (
    "mrs_suggest.common",
    "mrs_metrics",
    "mrs_datasets",
    "mrs_suggest",
    "mrs_suggest.evaluation",
    "mrs_suggest.serving",
)


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
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}."):
            for alias in node.names:
                if alias.name != "lazy_names":
                    found[alias.name] = node.module
    return dict(sorted(found.items(), key=lambda pair: (pair[1], pair[0])))
