"""What the benchmarks share: how calls are timed, and how a result is written."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from mrs_suggest.common.hub.provenance import commit
from mrs_suggest.common.io.files import file_sha256


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


def write_result(
    script: str, doc: str | None, figures: Mapping[str, Any], packages: Sequence[str], model: Path | None = None
) -> None:
    """Write `results/NAME.json` beside a script: figures, commit, model, machine, date and versions.

    Args:
        script: its `__file__`.
        doc: its docstring, whose second paragraph tells the workload.
        packages: whose versions are noted, next to Python's.
        model: the folder of the model that was measured, if there is one.
    """
    path = Path(script).resolve()
    result = {
        "name": path.stem,
        "workload": (doc or "").split("\n\n")[1],
        **figures,
        "commit": commit(),
        "date": date.today().isoformat(),
        "machine": machine(),
        **({} if model is None else {"model_sha256": weights_sha256(model)}),
        "versions": {"python": platform.python_version()} | {name: metadata.version(name) for name in packages},
    }
    folder = path.parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{path.stem}.json").write_text(json.dumps(result, indent=2) + "\n")


def machine() -> dict[str, object]:
    """The processor and the cores that may be used."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    processor = platform.processor() or platform.machine()
    if (told := Path("/proc/cpuinfo")).is_file():
        names = [
            line.partition(":")[2].strip() for line in told.read_text().splitlines() if line.startswith("model name")
        ]
        processor = names[0] if names else processor
    return {"processor": processor, "cores": cores}


def weights_sha256(folder: Path) -> str:
    """One hash of all weights in a model's folder, with their names."""
    files = sorted(path for path in folder.rglob("*.safetensors"))
    told = "".join(f"{file_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    return hashlib.sha256(told.encode()).hexdigest()
