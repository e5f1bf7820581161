"""What CONTRIBUTING.md promises is checked: each habit names its tests, and those that had none are below."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# the beginning of a habit -> the tests that hold it; by eye: what no program can judge
HABITS: dict[str, tuple[str, ...]] = {
    "*Pure function, thin adapter.*": (
        "tests/test_architecture.py::test_no_package_imports_upward",
        "tests/test_contributing.py::test_verbs_are_thin",
    ),
    "*A signature with every score*": ("tests/test_contributing.py::test_every_metric_gives_a_signature",),
    "*Every default names its source*": (
        "tests/mrs_suggest/training/reply/test_configs.py::test_a_file_says_what_it_is_for",
        "tests/mrs_suggest/training/reply/test_configs.py::test_every_printed_cell_is_planned_by_one_file_with_its_figure",
    ),
    "*One sentence for bad input*": (
        "tests/mrs_suggest/common/text/test_languages_and_errors.py::test_an_error_of_the_input_is_one_line_and_an_exit_code",
        "tests/mrs_suggest/common/text/test_languages_and_errors.py::test_a_bug_keeps_its_traceback",
    ),
    "*Output appears whole or not at all*": (
        "tests/mrs_suggest/common/io/test_files.py::test_after_an_error_nothing_is_left",
        "tests/mrs_suggest/common/io/test_files.py::test_a_file_is_replaced_whole",
    ),
    "Names are the field's": (),
    "Files up to about 400 lines": ("tests/test_contributing.py::test_files_and_functions_stay_small",),
    "*A floor is a tested version.*": (
        "tests/test_constraints.py::test_the_lowest_versions_are_the_floors",
        "tests/test_contributing.py::test_a_workflow_runs_each_gate",
    ),
    "Speed claims live in `benchmarks/`": ("tests/test_contributing.py::test_no_test_asserts_a_time",),
    "A test that needs a process of its own": (
        "tests/test_warm_python.py::test_each_has_its_own_environment_folder_and_end",
    ),
}
CHECK_LISTS: dict[str, tuple[str, ...]] = {
    "**A new data set**": (
        "tests/integration/test_cli_data_stats.py::test_the_list_has_every_record",
        "tests/test_contributing.py::test_every_data_set_has_its_files_and_its_row",
    ),
    "**A new metric**": (
        "tests/mrs_suggest/evaluation/test_metrics.py::test_each_metric_is_an_evaluate_module_and_each_option_belongs_to_one",
        "tests/mrs_suggest/evaluation/test_metrics.py::test_the_tables_of_the_documentation_are_those_of_the_metrics",
        "tests/test_architecture.py::test_every_folder_with_code_is_a_listed_package",
    ),
    "**A new trainer**": ("tests/test_contributing.py::test_every_trainer_has_its_parts",),
    "**A sentence for the embedded sample**": (),
}
ABOUT_400, ABOUT_60 = 440, 70
# These are longer, and may get shorter only.
LONGER = {
    "mrs_suggest/models/adapters.py": 522,
    "benchmarks/bench_build.py": 498,
    "mrs_suggest/models/generation/generator.py": 474,
}


def test_every_habit_names_its_tests(repository: Path) -> None:
    text = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    habits = re.findall(r"^- (.+)$", text.partition("## Habits")[2].partition("## ")[0], re.MULTILINE)
    lists = re.findall(r"^(\*\*A .+?\*\*)", text.partition("## Check-lists")[2], re.MULTILINE)
    assert [habit for habit in habits if not habit.startswith(tuple(HABITS))] == []
    assert [habit for habit in HABITS if not any(stated.startswith(habit) for stated in habits)] == []
    assert lists == list(CHECK_LISTS)


@pytest.mark.parametrize("name", sorted({test for tests in (HABITS | CHECK_LISTS).values() for test in tests}))
def test_the_tests_of_a_promise_exist(repository: Path, name: str) -> None:
    path, _, function = name.partition("::")
    tree = ast.parse((repository / path).read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


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


def test_verbs_are_thin(repository: Path) -> None:
    """A verb parses, calls and prints: no arithmetic library at its top."""
    for name, text in sources(repository, "mrs_suggest.cli"):
        tops = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name for node in tops for alias in node.names} | {getattr(n, "module", "") or "" for n in tops}
        assert not {one.partition(".")[0] for one in names} & {"numpy", "torch", "scipy", "transformers"}, name


def test_every_metric_gives_a_signature(repository: Path) -> None:
    for path in (repository / "mrs_metrics" / "modules").glob("[!_]*.py"):
        assert "signature" in path.read_text(encoding="utf-8").partition("def _compute")[2], path.name


# Processor time, not a speed: a regular expression that backtracks would need minutes.
BACKTRACKING = "tests/mrs_datasets/builders/reddit/cleaning/test_clean.py"
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


def test_every_data_set_has_its_files_and_its_row(repository: Path) -> None:
    from mrs_datasets.catalogue import catalogued

    page = (repository / "docs" / "data_sets.md").read_text(encoding="utf-8")
    for name in catalogued():
        file = "official" if name == "mrs" else name.removeprefix("synthetic-")
        assert list((repository / "mrs_datasets").rglob(f"{file}.py")), name
        assert list((repository / "tests" / "mrs_datasets").rglob(f"test_{file}.py")), name
        assert name in page, f"docs/data_sets.md has no row for {name}"


NOT_KILLED = {"understanding"}  # shares fit, checkpoints and resuming with multiple_choice; a row of its own is missing


def test_every_trainer_has_its_parts(repository: Path) -> None:
    trainers = [path for path in sorted((repository / "trainers").glob("*.py")) if path.name != "__init__.py"]
    assert len(trainers) > 3
    faults = (repository / "tests" / "faults" / "test_training_killed.py").read_text(encoding="utf-8")
    for path in trainers:
        functions = {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}
        assert {"make_parser", "main"} <= functions, path.name
        assert path.stem in NOT_KILLED or f'"{path.stem}"' in faults, f"no row for {path.stem} in the faults' FAMILIES"
        assert list((repository / "trainers" / "configs" / path.stem).rglob("*.yaml")), path.name


@pytest.mark.parametrize("target", ["test", "quality", "test-floors", "test-faults", "test-properties"])
def test_a_workflow_runs_each_gate(repository: Path, target: str) -> None:
    workflows = [path.read_text(encoding="utf-8") for path in (repository / ".github" / "workflows").glob("*.yml")]
    assert any(re.search(rf"run: make {target}$", text, re.MULTILINE) for text in workflows)
    assert re.search(rf"^{target}:", (repository / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_floors_are_run_with_every_extra_that_has_unit_tests(repository: Path) -> None:
    """The packages that record runs and sweep options, too, which the tests of whole runs use."""
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    floors = makefile.partition("\ntest-floors:")[2].partition("\n\n")[0]
    listed = re.findall(r"\.\[([\w,]+)\]", floors)[0].split(",")
    assert {"tensorboard", "wandb", "trackio", "mlflow", "sweep", "test"} <= set(listed)
    assert "tests/integration/test_trackers.py" in floors


def test_the_page_of_first_contributions_is_linked(repository: Path) -> None:
    assert "docs/first_contribution.md" in (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = subprocess.run(["make", "--dry-run", "release-check"], cwd=repository, capture_output=True, text=True)
    assert "release_check.py" in listed.stdout
