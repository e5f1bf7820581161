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


def best_in_turns(calls: Mapping[str, Callable[[], object]], items: int) -> dict[str, float]:
    """Seconds an item, by name: the best of three rounds in which the calls take turns, so that load hits all."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(3):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], (time.perf_counter() - begin) / items)
    return best


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
