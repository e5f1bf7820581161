"""Limits of size that keep the code readable: a file or function that grows beyond them is split."""

import ast
from collections.abc import Iterator
from pathlib import Path

ABOUT_400, ABOUT_60 = 440, 70
# These are longer, and may get shorter only.
LONGER = {
    "mrs_suggest/models/adapters.py": 522,
    "benchmarks/bench_build.py": 498,
    "mrs_suggest/models/generation/generator.py": 474,
}


def sources(repository: Path, *folders: str) -> Iterator[tuple[str, str]]:
    """(path, text) of every Python file below folders of the checkout."""
    for folder in folders:
        for path in sorted((repository / folder).rglob("*.py")):
            yield path.relative_to(repository).as_posix(), path.read_text(encoding="utf-8")


def code_folders(repository: Path) -> list[str]:
    return [*sorted(path.name for path in repository.glob("mrs_*") if path.suffix != ".egg-info"), "trainers"]


def too_long(name: str, text: str) -> list[str]:
    """What is longer in a file than it may be."""
    found = {name: (len(text.splitlines()), ABOUT_400)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.end_lineno:
            found[f"{name}::{node.name}"] = (node.end_lineno - node.lineno + 1, ABOUT_60)
    return [f"{key} has {lines} lines" for key, (lines, most) in found.items() if lines > LONGER.get(key, most)]


def test_files_and_functions_stay_small(repository: Path) -> None:
    every = sources(repository, *code_folders(repository), "benchmarks")
    assert [long for name, text in every for long in too_long(name, text)] == []
