"""The `evaluate` modules as a user loads them."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from mrs_metrics.spaces import FOLDER
from tests import warm_python

MODULES = FOLDER / "modules"


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
