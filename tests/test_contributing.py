"""Limits of size that keep the code readable, no test that depends on the speed of a machine, and gates that run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    assert too_long("a.py", "x = 1\n" * 441) == ["a.py has 441 lines"]
    assert too_long("a.py", "def f():\n" + "    x = 1\n" * 70) == ["a.py::f has 71 lines"]


# Processor time, not a speed: a regular expression that backtracks would need minutes.
BACKTRACKING = "tests/mrs_datasets/builders/reddit/test_clean.py"
CLOCKS = {"perf_counter", "monotonic", "time", "process_time"}


def timed_assertions(text: str) -> list[int]:
    """Lines that assert an upper limit of a difference of two readings of a clock."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            less = isinstance(node.test.ops[0], ast.Lt | ast.LtE)
            clocks = [n for n in ast.walk(node.test) if isinstance(n, ast.Attribute) and n.attr in CLOCKS]
            called = [n for n in clocks if isinstance(n.value, ast.Name) and n.value.id == "time"]
            if less and called and isinstance(node.test.left, ast.BinOp):
                found.append(node.lineno)
    return found


def test_no_test_asserts_a_time(repository: Path) -> None:
    found = [
        f"{name}:{line}"
        for name, text in sources(repository, "tests")
        if not name.startswith("tests/faults/") and name != BACKTRACKING
        for line in timed_assertions(text)
    ]
    assert found == []
    assert timed_assertions("import time\nassert time.monotonic() - start < 3") == [2]


@pytest.mark.parametrize("target", ["test", "quality", "test-floors", "test-faults", "test-properties"])
def test_a_workflow_runs_each_gate(repository: Path, target: str) -> None:
    workflows = [path.read_text(encoding="utf-8") for path in (repository / ".github" / "workflows").glob("*.yml")]
    assert any(re.search(rf"run: make {target}$", text, re.MULTILINE) for text in workflows)
    assert re.search(rf"^{target}:", (repository / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
