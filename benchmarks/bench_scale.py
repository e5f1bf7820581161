"""How `mrs data build` grows: three sizes, a line through the two smaller ones, and what it says of the largest.

Workload: synthetic dumps (`mrs data synth`) of .25, 1 and 4 M comments in two months, seeded, windows of 2 GiB;
profiles `paper` and `clean`, 8 buckets, one worker, a process of its own for each build. CPU-seconds are of all
threads, user and system. Every stage is run by itself: its CPU-seconds, its highest resident memory,
and the bytes of its files; beside them the highest size of the whole folder, looked at every half second.

check        for each stage and profile, a + b C through the two smaller sizes; predicted against measured at the
             largest. Memory of the stage `months` is at most the window and what stands beside it.
writing      the stage `write` of `paper` with one and with two workers, at two sizes, in parts of 20,000 pairs, so that
             the large languages have several; the least of five times; the bytes must be the same. Model: T(W) = own +
             W', own the CPU-seconds of the process that started the others, per comment (the slope between both sizes,
             so that starting does not count; too much if they are per part, as real parts are a hundred times as
             large), W' those of the workers over W, rounded up to whole rounds of parts; efficiency = one worker's
             CPU-seconds, at most those of the two, / (W T(W)).
extrapolated 2018 and 2010-2019, from the line through the smallest and the largest size: CPU-hours, disk, shuffle.
             Spark's figures follow from the local ones and from how many times as much it takes (`--spark-cost`).

The tables of docs/scale.md are written from the JSON, also without a new measurement (`--docs`); a test compares them.

Run: python benchmarks/bench_scale.py [--comments N N N] [--profiles P ...] [--folder DIR] [--spark-cost X] [--docs]
     python benchmarks/bench_scale.py --writing
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import resource
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from timing import write_result

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "bench_scale.json"
PAGE = ROOT / "docs" / "scale.md"
SEED = 20210605
MONTHS = ["2018-01", "2018-02"]
BUCKETS = 8
SPANS = {"2018": (1.24e9, 12), "2010-2019": (6.65e9, 120)}  # comments, months
COMPRESSED = 5.8e12 / 6.65e9 / 8  # bytes of a comment in a published dump
READER = 2.7e9  # bytes of a process that reads a month with a window of 2 GiB (`plan.READER_BYTES`)
MEMORY = 8e9  # of a build here
LEAST_BUCKETS = 64
SPARK_COST = (89.4 - 41.7) / (65.4 - 25.8)  # CPU-seconds of local[2] over the local engine's, bench_spark, 1.4 to 4 M
WORKERS = 16
REPEATED = 5  # times that writing is measured
WRITING = [125_000, 500_000]  # comments
PARTS_OF = 20_000  # pairs, for that measurement


def fresh(job: Callable[..., dict[str, Any]], *values: Any) -> dict[str, Any]:
    """What `job` returns when it is run in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(job, *values).result()


def prepare(folder: Path, comments: int) -> dict[str, Any]:
    """Write two months and a language model."""
    from mrs_datasets.synthetic.dumps import write_dumps
    from mrs_datasets.synthetic.language_models import write_language_model

    manifest = write_dumps(folder / "dumps", MONTHS, comments // len(MONTHS), SEED)
    if "MRS_LANGUAGE_MODEL" not in os.environ:
        write_language_model(folder / "small.bin", SEED)
    files = manifest["files"].values()
    return {"lines": sum(entry["lines"] for entry in files), "compressed": sum(entry["compressed"] for entry in files)}


def build(folder: Path, profile: str) -> dict[str, Any]:
    """One build, stage by stage."""
    from mrs_datasets.builders.pipeline.stages import Workers
    from mrs_datasets.builders.pipeline.work_folder import WorkFolder, work_place
    from mrs_datasets.builders.reddit import duplicates, months, pairs, write
    from mrs_datasets.builders.reddit.plan import Build, Funnel, find_dumps, make_build_plan, make_settings

    model, out = Path(os.environ.get("MRS_LANGUAGE_MODEL", folder / "small.bin")), folder / profile / "mrs"
    plan = make_build_plan(find_dumps([f"{folder}/dumps/RC_*"]), out, 1, int(MEMORY), BUCKETS)
    settings = replace(make_settings(profile, min_examples=500, min_reply_count=1), buckets=BUCKETS)
    out.parent.mkdir()
    work = WorkFolder(work_place(out), {}, resume=False, overwrite=False)
    running = Build(plan, settings, model, work, Funnel({"profile": profile, "departures": {}}), lambda _: None)
    stages: dict[str, dict[str, float]] = {}
    with watched(out.parent) as highest, Workers(1) as engine:

        def measured(name: str, stage: Callable[[], Any]) -> Any:
            before, bytes_before = cpu_seconds(), size_of(out.parent)
            Path("/proc/self/clear_refs").write_text("5")  # the highest resident memory from here on
            result = stage()
            stages[name] = {
                "cpu": round(cpu_seconds() - before, 2),
                "peak_mb": peak_mb(),
                "mb": round((size_of(out.parent) - bytes_before) / 1e6, 2),
            }
            return result

        partitions = measured(months.STAGE, lambda: months.read_months(running, engine))
        buckets, outcomes = measured(pairs.STAGE, lambda: pairs.make_pairs(running, partitions, engine))
        codes: dict[str, Any] = {}
        if settings.clean:
            found = partial(duplicates.find_duplicates, running, buckets, outcomes, engine)
            codes = measured(duplicates.STAGE, found)
        written = partial(write.write_data_set, running, buckets, outcomes, codes, engine, out, False)
        report = measured(write.STAGE, written)
        parquet = sum(path.stat().st_size for path in out.rglob("*.parquet"))
    counts = {entry["stage"]: entry for entry in report["pipeline"]["stages"]}
    return {
        "kept": counts["filter"]["out"],
        "pairs": counts["join"]["out"],
        "written": report["pipeline"]["stages"][-1]["out"],
        "stages": stages,
        "parquet_mb": round(parquet / 1e6, 2),
        "disk_mb": round(max(highest) / 1e6, 2),
    }


def write_twice(folder: Path) -> dict[str, Any]:
    """CPU-seconds of writing with one and with two workers."""
    from mrs_datasets.builders.pipeline.stages import Workers
    from mrs_datasets.builders.pipeline.work_folder import WorkFolder, work_place
    from mrs_datasets.builders.reddit import months, pairs, write
    from mrs_datasets.builders.reddit.plan import Build, Funnel, find_dumps, make_build_plan, make_settings

    model = Path(os.environ.get("MRS_LANGUAGE_MODEL", folder / "small.bin"))
    plan = make_build_plan(find_dumps([f"{folder}/dumps/RC_*"]), folder / "mrs", 1, int(MEMORY), 8 * BUCKETS)
    settings = replace(make_settings("paper", min_examples=500, min_reply_count=1), buckets=plan.buckets)
    work = WorkFolder(work_place(folder / "mrs"), {}, resume=False, overwrite=False)
    running = Build(plan, settings, model, work, Funnel({"profile": "paper", "departures": {}}), lambda _: None)
    with Workers(1) as engine:
        buckets, outcomes = pairs.make_pairs(running, months.read_months(running, engine), engine)
    write.PART_PAIRS = PARTS_OF
    found: dict[str, Any] = {"pairs": outcomes.total()}
    for workers in (1, 2) * REPEATED:
        work.forget(write.STAGE)
        shutil.rmtree(folder / f"{workers}", ignore_errors=True)
        running.funnel = Funnel({"profile": "paper", "departures": {}})
        before, children = cpu_seconds(), cpu_seconds(resource.RUSAGE_CHILDREN)
        with Workers(workers) as engine:
            write.write_data_set(running, buckets, Counter(outcomes), {}, engine, folder / f"{workers}", False)
        seconds = {"own": cpu_seconds() - before, "workers": cpu_seconds(resource.RUSAGE_CHILDREN) - children}
        least = found.get(f"{workers}", seconds)
        found[f"{workers}"] = {who: round(min(taken, least[who]), 3) for who, taken in seconds.items()}
    one, two = (
        {path.relative_to(folder / at): path.read_bytes() for path in (folder / at).rglob("*.parquet")} for at in "12"
    )
    assert one == two, "two workers write other bytes than one"
    return {**found, "files": len(one)}


def measured_writing(folder: Path | None) -> list[dict[str, Any]]:
    """Writing at both sizes."""
    sizes = []
    for comments in WRITING:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            sizes.append({**fresh(prepare, Path(name), comments), **fresh(write_twice, Path(name))})
            print(f"writing, {comments:,}: {sizes[-1]}", flush=True)
    return sizes


def efficiency(sizes: list[dict[str, Any]], workers: int, parts: float = 1e9) -> float:
    """Of writing so many parts with so many workers."""
    one, own, shared = (
        line(sizes[0], sizes[1], lambda size, at=at, who=who: size[at][who])[1]
        for at, who in (("1", "own"), ("2", "own"), ("2", "workers"))
    )
    rounds = math.ceil(parts / workers) * workers / parts
    own = max(own, 0)
    return min(one, own + shared) / (workers * (own + rounds * shared / workers))


@contextmanager
def watched(folder: Path) -> Iterator[list[int]]:
    """The sizes of a folder, in a list that grows while the block runs."""
    sizes, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            sizes.append(size_of(folder))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield sizes
    finally:
        ended.set()
        thread.join()
    sizes.append(size_of(folder))


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    total = 0
    for place, _, names in os.walk(folder):  # which passes over folders that were renamed meanwhile, as rglob does not
        for name in names:
            with suppress(OSError):  # removed meanwhile
                total += (Path(place) / name).stat().st_size
    return total


def cpu_seconds(who: int = resource.RUSAGE_SELF) -> float:
    """User and system time of this process, or of its children that have ended."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def peak_mb() -> float:
    """Highest resident memory since it was reset."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return round(int(found[1]) * 1024 / 1e6, 1)


# --- The model --------------------------------------------------------------------------------------------------------


def line(one: dict[str, Any], two: dict[str, Any], value: Callable[[dict[str, Any]], float]) -> tuple[float, float]:
    """a and b of a + b C through two sizes."""
    slope = (value(two) - value(one)) / (two["lines"] - one["lines"])
    return value(one) - slope * one["lines"], slope


def quantities(profile: str, sizes: list[dict[str, Any]]) -> dict[str, Callable[[dict[str, Any]], float]]:
    """What is predicted: names and how to find them in a size."""
    found: dict[str, Callable[[dict[str, Any]], float]] = {}
    for stage in sizes[0][profile]["stages"]:
        found[f"{stage}, CPU-s"] = lambda size, stage=stage: size[profile]["stages"][stage]["cpu"]
    found["all, CPU-s"] = lambda size: sum(facts["cpu"] for facts in size[profile]["stages"].values())
    found["disk, MB"] = lambda size: size[profile]["disk_mb"]
    found["partition, MB"] = lambda size: size[profile]["stages"]["months"]["mb"]
    for stage in ("months", "pairs", "write"):
        found[f"{stage}, memory in MB"] = lambda size, stage=stage: size[profile]["stages"][stage]["peak_mb"]
    return found


def check(sizes: list[dict[str, Any]], profiles: list[str]) -> dict[str, Any]:
    """Predicted and measured values of the largest size."""
    record: dict[str, Any] = {}
    for profile in profiles:
        rows = record[profile] = {}
        for name, value in quantities(profile, sizes).items():
            a, b = line(sizes[0], sizes[1], value)
            predicted, measured = a + b * sizes[2]["lines"], value(sizes[2])
            if name == "months, memory in MB":
                predicted = min(predicted, READER / 1e6)
            rows[name] = {
                "predicted": round(predicted, 1),
                "measured": round(measured, 1),
                "ratio": round(measured / predicted, 3) if predicted > 0 else None,
            }
    return record


def extrapolate(
    sizes: list[dict[str, Any]], writing: list[dict[str, Any]], profiles: list[str], spark_cost: float
) -> dict[str, Any]:
    """What a year and a decade cost."""
    from mrs_datasets.builders.reddit.write import PART_PAIRS

    record: dict[str, Any] = {}
    for profile in profiles:
        values = quantities(profile, sizes)
        slopes = {name: line(sizes[0], sizes[2], value)[1] for name, value in values.items()}
        pairs = sizes[2][profile]["pairs"] / sizes[2]["lines"]
        spans = {}
        for span, (comments, months) in SPANS.items():
            hours = {stage: comments * slopes[f"{stage}, CPU-s"] / 3600 for stage in sizes[0][profile]["stages"]}
            total, alone = sum(hours.values()), hours.get("duplicates", 0.0)
            written = efficiency(writing, WORKERS, comments * pairs / PART_PAIRS)
            wall = (
                hours["months"] / min(WORKERS, months) + (hours["pairs"] + hours["write"] / written) / WORKERS + alone
            )
            buckets = LEAST_BUCKETS
            bucket_bytes = max(slopes["pairs, memory in MB"], 0) * 1e6 * BUCKETS  # of a bucket, a comment in it
            while comments / buckets * bucket_bytes > READER:
                buckets *= 2
            spans[span] = {
                "comments": comments,
                "CPU-hours, months, pairs and writing": round(total - alone, 1),
                "CPU-hours, duplicates (at worst one process)": round(alone, 1),
                "CPU-hours": round(total, 1),
                f"hours with {WORKERS} workers": round(wall, 1),
                f"efficiency of {WORKERS} workers": f"{total / WORKERS / wall:.0%}",
                f"efficiency of writing with {WORKERS} workers": f"{written:.0%}",
                "dumps, TB": round(comments * COMPRESSED / 1e12, 2),
                "disk in addition to the dumps, GB": round(comments * slopes["disk, MB"] / 1e3),
                "largest shuffle, GB": round(comments * slopes["partition, MB"] / 1e3),
                f"memory with {WORKERS} workers, GB": round(WORKERS * READER / 1e9),
                "buckets that keep a join within the memory of a reader": buckets,
                "one more microsecond per pair, CPU-hours": round(comments * pairs / 3.6e9, 2),
                "Spark, CPU-hours": round(total * spark_cost, 1),
            }
        record[profile] = spans
    return record


# --- The page ---------------------------------------------------------------------------------------------------------


def tables(record: dict[str, Any]) -> dict[str, str]:
    """The tables of docs/scale.md by their names."""
    profiles = list(record["check"])
    spans = [(profile, span) for profile in profiles for span in SPANS]
    rows = [name for name in record["extrapolated"][profiles[0]]["2018"] if name != "comments"]
    local = [[name, *(shown(record["extrapolated"][p][span][name]) for p, span in spans)] for name in rows]
    measured = [
        [
            f"{size['lines']:,}", profile, f"{facts['kept']:,}", f"{facts['pairs']:,}",
            " + ".join(f"{stage['cpu']:,.1f}" for stage in facts["stages"].values()), f"{facts['disk_mb']:,.0f}",
        ]
        for size in record["sizes"]
        for profile, facts in size.items()
        if profile in profiles
    ]  # fmt: skip
    return {
        "measured": table(["comments", "profile", "kept", "pairs", "CPU-seconds by stage", "disk, MB"], measured),
        "extrapolated": table(
            ["", *(f"{span}, `{profile}`" for profile, span in spans)],
            [row for row in local if not row[0].startswith("Spark")],
        ),
        "spark": table(
            ["", *(f"{span}, `{profile}`" for profile, span in spans)],
            [row for row in local if row[0].startswith("Spark")],
        ),
    }


def shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def table(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])


def page_with(text: str, record: dict[str, Any]) -> str:
    """The page with its tables replaced."""
    for name, made in tables(record).items():
        before, begin, rest = text.partition(f"<!-- {name}, by benchmarks/bench_scale.py -->")
        _, end, after = rest.partition("<!-- end -->")
        assert end, f"docs/scale.md: expected {name}"
        text = f"{before}{begin}\n\n{made}\n\n{end}{after}"
    return text


def again(spark_cost: float) -> None:
    """Calculate from the sizes of the JSON again, and write it and the page."""
    record = json.loads(RESULT.read_text(encoding="utf-8"))
    record |= calculated(record["sizes"], record["writing"], list(record["check"]), spark_cost)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


def calculated(
    sizes: list[dict[str, Any]], writing: list[dict[str, Any]], profiles: list[str], spark_cost: float
) -> dict[str, Any]:
    """All that follows from the sizes."""
    return {
        "check": check(sizes, profiles),
        "extrapolated": extrapolate(sizes, writing, profiles, spark_cost),
        "efficiency of writing": {
            f"{workers} workers": round(efficiency(writing, workers), 3) for workers in (2, 4, 8, WORKERS, 2 * WORKERS)
        },
        "spark cost": round(spark_cost, 2),
    }


def main() -> None:
    """Build, fit, print, write."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument(
        "--comments", type=int, nargs=3, default=[250_000, 1_000_000, 4_000_000], metavar="N", help="of the three sizes"
    )
    parser.add_argument("--profiles", nargs="+", default=["paper", "clean"], metavar="P")
    parser.add_argument("--folder", type=Path, help="where the files go for the time (default: the system's)")
    parser.add_argument("--spark-cost", type=float, default=SPARK_COST, help="CPU time over the local engine's")
    parser.add_argument("--docs", action="store_true", help="no builds: the tables again, from the JSON")
    parser.add_argument("--writing", action="store_true", help="measure writing alone, then the tables")
    options = parser.parse_args()
    if options.writing:
        os.environ.setdefault("TQDM_DISABLE", "1")
        record = json.loads(RESULT.read_text(encoding="utf-8"))
        record["writing"] = measured_writing(options.folder)
        RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if options.docs or options.writing:
        again(options.spark_cost)
        return
    os.environ.setdefault("TQDM_DISABLE", "1")
    if "MRS_LANGUAGE_MODEL" not in os.environ:
        print("without lid.176: MRS_LANGUAGE_MODEL is not set, so the generator's model is used")
    start, sizes = time.perf_counter(), []
    for comments in sorted(options.comments):
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            found = fresh(prepare, Path(name), comments)
            for profile in options.profiles:
                found[profile] = fresh(build, Path(name), profile)
                print(f"{comments:,} {profile}: {found[profile]}", flush=True)
        sizes.append(found)
    writing = measured_writing(options.folder)
    figures = {
        "sizes": sizes,
        "writing": writing,
        **calculated(sizes, writing, options.profiles, options.spark_cost),
        "language model": os.environ.get("MRS_LANGUAGE_MODEL", "the generator's, not lid.176").rpartition("/")[2],
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "machine": {"cores": os.cpu_count(), "load_at_the_end": round(os.getloadavg()[0], 1)},
    }
    for profile, rows in figures["check"].items():
        for name, found in rows.items():
            told = f"predicted {found['predicted']:,}, measured {found['measured']:,} ({found['ratio']})"
            print(f"{profile}, {name}: {told}")
    write_result(__file__, __doc__, figures, ("zstandard", "msgspec", "pyarrow", "polars", "numpy", "fasttext"))
    again(options.spark_cost)


if __name__ == "__main__":
    main()
