"""What the benchmarks share: how calls are timed, and how a result is written."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any


def seconds(call: Callable[[], object], times: int) -> float:
    """The best of three rounds, a call."""
    rounds = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(times):
            call()
        rounds.append((time.perf_counter() - start) / times)
    return min(rounds)


def write_result(script: str, doc: str | None, figures: Mapping[str, Any], packages: Sequence[str]) -> None:
    """Write `results/NAME.json` beside a script, with what it measured and the versions of the packages it measured.

    Args:
        script: its `__file__`.
        doc: its docstring, whose second paragraph tells the workload.
    """
    path = Path(script).resolve()
    result = {
        "name": path.stem,
        "workload": (doc or "").split("\n\n")[1],
        **figures,
        "versions": {name: metadata.version(name) for name in packages},
    }
    folder = path.parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{path.stem}.json").write_text(json.dumps(result, indent=2) + "\n")
