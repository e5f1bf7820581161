"""`mrs data build --engine spark` on this machine: against the local engine, its growth, and its driver's memory.

Workload: synthetic months (`mrs data synth`), 4 of them, seeded, ten languages, about 1 KB a line, zstd frames that ask
for a window of 2 GiB; profile `paper`, 16 buckets. The language model is the one in MRS_LANGUAGE_MODEL, else the
generator's own. Every run has a process of its own, imports outside of the time; runs take turns, and the best of each
counts. CPU-seconds are those of the process and all that it started, Java and Python. A build on Spark begins with a
session: its seconds are given, and rates and ratios are with and without them.

race       Spark on local[2] against the local engine with two workers, on the smallest and on the largest input.
growth     CPU-seconds a comment at three sizes, 0.5, 1.4 and 4 million comments: the largest against the smallest,
           without the session; and of each further comment, which leaves out what every build costs.
memory     highest resident memory of the driver's Python at these sizes, and of the Java process, which on one machine
           is driver and executor (its heap may grow to spark.driver.memory, 1 GB).

The data sets of both engines are compared, byte for byte.

Run: python benchmarks/bench_spark.py [--scale X] [--runs N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bench_build import MB, fresh, memory_mb, prepare

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "bench_spark.json"
MONTHS = ["2018-01", "2018-02", "2018-03", "2018-04"]
SIZES = (500_000, 1_400_000, 4_000_000)  # comments
BUCKETS = 16
LEAST_RATE, MOST_GROWTH, MOST_MEMORY = 0.25, 1.10, 1.10
TICKS = os.sysconf("SC_CLK_TCK")


def build_on(engine: str, dumps: Sequence[Path], model: Path, out: Path) -> dict[str, Any]:
    """A whole build; its CPU-seconds, the session's apart, and memory."""
    import xxhash

    from mrs_datasets.builders.pipeline.spark import SparkEngine
    from mrs_datasets.builders.reddit.build import build
    from mrs_datasets.builders.reddit.plan import make_build_plan, make_settings

    assert xxhash
    plan = make_build_plan(dumps, out, 2, 8_000_000_000, BUCKETS)
    settings = make_settings("paper", min_examples=500, min_reply_count=2)
    found: dict[str, Any] = {"engine": engine, "start_cpu": 0.0, "start_wall": 0.0}
    begun, cpu = time.perf_counter(), tree_cpu()
    told: list[str] = []
    if engine == "local":
        build(plan, out, settings, model, say=told.append, overwrite=True)
    else:
        with SparkEngine("local[2]") as spark:
            assert spark.session
            found["start_wall"], found["start_cpu"] = round(time.perf_counter() - begun, 1), tree_cpu() - cpu
            java = next(child for child in children().get(os.getpid(), []) if name_of(child) == "java")
            build(plan, out, settings, model, say=told.append, overwrite=True, engine=spark)
            found["java_mb"] = memory_mb("VmHWM", java)
            found["cpu"], found["wall"] = tree_cpu() - cpu, time.perf_counter() - begun
    found.setdefault("cpu", tree_cpu() - cpu)
    found.setdefault("wall", time.perf_counter() - begun)
    found["driver_mb"] = memory_mb("VmHWM")
    found["stages"] = told[-1]
    return {key: round(value, 2) if isinstance(value, float) else value for key, value in found.items()}


def children() -> dict[int, list[int]]:
    """The processes that each process has started."""
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := stat_of(int(entry.name))):
            found.setdefault(int(fields[1]), []).append(int(entry.name))
    return found


def stat_of(process: int) -> list[str]:
    """State, parent and so on, as in /proc; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def name_of(process: int) -> str:
    """The name of a process's program."""
    found = re.search(r"\((.*)\)", Path(f"/proc/{process}/stat").read_text())
    return found[1] if found else ""


def tree_cpu() -> float:
    """User and system time of this process and all below it, those that have ended included."""
    below, total, left = children(), 0, [os.getpid()]
    while left:
        process = left.pop()
        total += sum(map(int, stat_of(process)[11:15]))
        left += below.get(process, [])
    return total / TICKS


def files_of(folder: Path) -> dict[str, bytes]:
    """The Parquet files of a data set."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def race(dumps: Sequence[Path], model: Path, folder: Path, runs: int) -> dict[str, dict[str, Any]]:
    """Both engines in turns; the run with the fewest CPU-seconds of each. AssertionError where the files differ."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(runs):
        for engine in ("local", "spark"):
            found = fresh(build_on, engine, dumps, model, folder / engine)
            if engine not in best or found["cpu"] < best[engine]["cpu"]:
                best[engine] = found
            print(json.dumps(found), flush=True)
        if files_of(folder / "local") != files_of(folder / "spark"):
            raise AssertionError("the engines wrote different data sets.")
    return best


def figures(sizes: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float | None]]:
    """The ratios, with their targets."""
    found: dict[str, tuple[float, float | None]] = {}
    for place, name in ((0, "smallest"), (-1, "largest")):
        local, spark = sizes[place]["local"], sizes[place]["spark"]
        work = spark["cpu"] - spark["start_cpu"]
        found[f"CPU-seconds of the local engine / of Spark, {name}"] = local["cpu"] / spark["cpu"], None
        found[f"the same without the session, {name}"] = local["cpu"] / work, LEAST_RATE
        found[f"wall time of the local engine / of Spark, {name}"] = local["wall"] / spark["wall"], None
    per_comment = [(each["spark"]["cpu"] - each["spark"]["start_cpu"]) / each["comments"] for each in sizes]
    found["CPU-seconds a comment, largest / smallest"] = per_comment[-1] / per_comment[0], MOST_GROWTH
    work = [each["spark"]["cpu"] - each["spark"]["start_cpu"] for each in sizes]
    more = [(work[n + 1] - work[n]) / (sizes[n + 1]["comments"] - sizes[n]["comments"]) for n in range(len(sizes) - 1)]
    found["CPU-seconds of each further comment, upper two sizes / lower two"] = more[-1] / more[0], MOST_GROWTH
    driver = [each["spark"]["driver_mb"] for each in sizes]
    found["memory of the driver, largest / smallest"] = driver[-1] / driver[0], MOST_MEMORY
    return found


def main() -> None:
    """Build at all sizes, print the figures, write the JSON."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes (default 1)")
    parser.add_argument("--runs", type=int, default=2, help="of each engine at each size (default 2)")
    parser.add_argument("--folder", type=Path, help="for dumps and data sets (default: the system's)")
    parser.add_argument("--note", default="", help="about the machine, kept in the result")
    options = parser.parse_args()
    sizes: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for comments in (int(size * options.scale) for size in SIZES):
            folder = Path(name) / str(comments)
            folder.mkdir()
            workload = fresh(prepare, folder, MONTHS, comments // len(MONTHS))
            dumps = sorted((folder / "dumps").glob("RC_*.zst"))
            best = race(dumps, Path(workload["model"]), folder, options.runs)
            sizes.append({"comments": workload["lines"], "dumps_mb": round(workload["compressed"] / MB, 1), **best})
    ratios = figures(sizes)
    for what, (value, target) in ratios.items():
        print(f"{what}: {value:.2f}" + (f" (goal {target})" if target else ""))
    result = {
        "scale": options.scale,
        "runs": options.runs,
        "note": options.note,
        "load": os.getloadavg(),
        "versions": {name: metadata.version(name) for name in ("pyspark", "pyarrow", "msgspec", "zstandard")},
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "sizes": sizes,
        "ratios": {what: {"value": round(value, 3), "goal": target} for what, (value, target) in ratios.items()},
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
