"""The `evaluate` modules as a user loads them, and tables of golden figures and of refused calls."""

import json
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from mrs_metrics.spaces import FOLDER
from tests import warm_python
from tests.cases import cases

MODULES = FOLDER / "modules"


def golden(name: str) -> Any:
    """The figures of `golden/NAME.yaml`."""
    return yaml.safe_load((Path(__file__).parent / "golden" / f"{name}.yaml").read_text(encoding="utf-8"))


def refused_calls(file: str, name: str, module: ModuleType) -> list[tuple[Callable[[], object], str]]:
    """A table of functions, arguments, options and sentences as calls, each with the sentence that it raises."""
    return [(partial(getattr(module, call), *given, **more), told) for call, given, more, told in cases(file, name)]


def load(name: str) -> Any:
    """A metric; anew each time, since after an error in `compute` one of evaluate 0.4 cannot be used again."""
    import evaluate

    return evaluate.load(str(MODULES / f"{name}.py"), keep_in_memory=True)


def run_script(script: str, folder: Path, python_path: str = str(FOLDER.parent)) -> Any:
    """What a script prints last, as JSON, in a process of its own with temporary caches and no network."""
    environment = {**warm_python.with_caches_in(folder / "home"), "PYTHONPATH": python_path}
    done = warm_python.run([sys.executable, "-c", textwrap.dedent(script)], cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
