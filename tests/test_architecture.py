"""The architecture: which package may import which, what is packaged, which names and paths must not appear."""

import ast
import configparser
import re
import sys
from collections import Counter
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from importlib import metadata
from pathlib import Path

# folder -> the other folders that it may import; a folder may always import itself, but for trainers/
COMMON, MODELS, SUGGEST = "mrs_suggest/common", "mrs_suggest/models", "mrs_suggest/suggest"
_BASE = {COMMON, "mrs_metrics"}
_DATA = {*_BASE, "mrs_datasets"}
_ANSWERS = {*_BASE, MODELS, SUGGEST}
_MEASURED = {*_DATA, *_ANSWERS, "mrs_suggest/evaluation"}
_TRAINED = {*_MEASURED, "mrs_suggest/training"}
LAYERS: dict[str, set[str]] = {
    "mrs_metrics": set(),
    COMMON: set(),
    "mrs_datasets": _BASE,
    MODELS: _BASE,
    SUGGEST: {*_BASE, MODELS},
    "mrs_suggest/services": _ANSWERS,
    "mrs_suggest/evaluation": {*_DATA, *_ANSWERS},
    "mrs_suggest/training": _MEASURED,
    "mrs_suggest/staple": _TRAINED,
    "mrs_suggest/reproduce": _TRAINED,
    "mrs_suggest/serving": _ANSWERS,
    "mrs_suggest/integrations": _MEASURED,
    "mrs_suggest/cli": {
        *_TRAINED, "mrs_suggest/services", "mrs_suggest/staple", "mrs_suggest/reproduce", "mrs_suggest/serving",
        "trainers", "model_cards",
    },
    "mrs_suggest": {COMMON, MODELS, SUGGEST, "mrs_suggest/training"},
    "trainers": _TRAINED,
    "model_cards": set(),
}  # fmt: skip
INSTALLED_AS = {"trainers": "mrs_trainers", "model_cards": "mrs_model_cards"}
OURS = {path.split("/")[0] for path in LAYERS} | set(INSTALLED_AS.values())


def layer_of(dotted: str) -> str:
    """The folder of `LAYERS` that a module is in; "" where it is not ours."""
    top, *rest = dotted.split(".")
    top = {installed: folder for folder, installed in INSTALLED_AS.items()}.get(top, top)
    inner = f"{top}/{rest[0]}" if rest else top
    return inner if inner in LAYERS else top if top in LAYERS else ""


def imported_modules(path: Path, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import of a file, also those inside functions, below `if TYPE_CHECKING` and
    by `import_module`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            name = node.args[0]
            if isinstance(name, ast.JoinedStr) and name.values:
                name = name.values[0]
            if function in ("import_module", "__import__") and isinstance(name, ast.Constant):
                yield node.lineno, str(name.value)


def files_of(root: Path) -> Iterator[Path]:
    """The Python files of all packages below `root`."""
    for package in sorted({layer.split("/")[0] for layer in LAYERS}):
        yield from sorted((root / package).rglob("*.py"))


def upward_imports(root: Path) -> list[str]:
    """The forbidden imports below `root`, as `file:line imports module`."""
    found = {}
    siblings = {path.stem for path in (root / "trainers").glob("*.py")} - {"__init__"}
    for path in files_of(root):
        relative = path.relative_to(root)
        own = layer_of(".".join(relative.with_suffix("").parts))
        for line, module in imported_modules(path, relative.parts[:-1]):
            top = module.split(".")[0]
            layer = layer_of(module)
            wrong = bool(layer) and (layer not in LAYERS[own] | {own} or top in INSTALLED_AS)
            if own == "trainers":  # launched by path: its own folder is on sys.path, its name is not its own
                wrong = wrong or top in siblings or layer == "trainers"
            if wrong:
                found.setdefault((relative.as_posix(), line), f"{relative.as_posix()}:{line} imports {module}")
    return list(found.values())


def test_no_package_imports_upward(repository: Path) -> None:
    missing = [package for package in LAYERS if not list((repository / package).glob("*.py"))]
    assert not missing, "a package moved: the test would look at nothing"
    assert upward_imports(repository) == []


def import_circle(root: Path) -> list[str]:
    """A circle of imports among the modules below `root`, its first one again at the end; empty where there is none.

    Imports inside functions and for type checkers count: they hide a circle and do not break it. The `__init__` of
    a package, which every import of its modules runs, counts only where it is imported by name.
    """
    modules: dict[str, Path] = {}
    for path in files_of(root):
        package, *rest = path.relative_to(root).with_suffix("").parts
        parts = [INSTALLED_AS.get(package, package), *rest]
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
        for statement in _by_line(imported_modules(path, tuple(package))):
            found = {_module_of(imported, modules) for imported in statement} - {"", name}
            graph[name] |= {one for one in found if not any(other.startswith(f"{one}.") for other in found)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _by_line(imports: Iterator[tuple[int, str]]) -> list[list[str]]:
    lines: dict[int, list[str]] = {}
    for line, module in imports:
        lines.setdefault(line, []).append(module)
    return list(lines.values())


def _module_of(imported: str, modules: Container[str]) -> str:
    """The module that holds an imported name; empty where it is not ours."""
    parts = imported.split(".")
    return next((name for n in range(len(parts), 0, -1) if (name := ".".join(parts[:n])) in modules), "")


def test_no_modules_import_each_other_in_a_circle(repository: Path) -> None:
    assert " -> ".join(import_circle(repository)) == ""


def listed_packages(repository: Path) -> set[str]:
    setup = configparser.ConfigParser()
    setup.read(repository / "setup.cfg", encoding="utf-8")
    return set(setup["options"]["packages"].split())


def test_every_folder_with_code_is_a_listed_package(repository: Path) -> None:
    folders = {path.parent.relative_to(repository) for path in files_of(repository)}
    names = {".".join((INSTALLED_AS.get(f.parts[0], f.parts[0]), *f.parts[1:])) for f in folders}
    assert names == listed_packages(repository), "setup.cfg, [options] packages: what is not listed is not installed"


def test_no_trainer_carries_the_name_of_a_library(repository: Path) -> None:
    libraries = set(sys.stdlib_module_names) | set(metadata.packages_distributions())
    assert {"torch", "datasets", "evaluate", "yaml"} <= libraries, "the list of libraries must hold what is installed"
    names = {path.stem for path in (repository / "trainers").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not names & (libraries - OURS), "launching by path puts trainers/ first on sys.path"


def test_no_tracked_file_names_a_path_of_one_machine(repository: Path, tracked: list[str]) -> None:
    places = re.compile(rb"(?<![\w./-])/(?:work|tmp|root)/")
    found = []
    for name in tracked:
        content = (repository / name).read_bytes()
        if b"\0" not in content and (hit := places.search(content)):
            found.append(f"{name}:{content.count(10, 0, hit.start()) + 1}")
    assert found == []


def test_no_folder_has_more_than_fifteen_python_files(repository: Path) -> None:
    """A folder that one cannot take in at a glance is split; `mrs_metrics` is flat, because Spaces copy siblings."""
    counts = Counter(path.parent.relative_to(repository).as_posix() for path in files_of(repository))
    assert {folder: n for folder, n in counts.items() if n > 15 and folder != "mrs_metrics"} == {}
