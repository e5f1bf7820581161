"""How `mrs data build` grows: three sizes, a line through the two smaller ones, and what it says of the largest.

Workload: synthetic dumps (`mrs data synth`) of .25, 1 and 4 M comments in two months, seeded, windows of 2 GiB;
profiles `paper` and `clean`, 8 buckets, one worker, a process of its own for each build. CPU-seconds are of all
threads, user and system. Every stage is run by itself: its CPU-seconds, its highest resident memory,
and the bytes of its files; beside them the highest size of the whole folder, looked at every half second.

check        for each stage and profile, a + b C through the two smaller sizes; predicted against measured at the
             largest. Memory of the stage `months` is at most the window and what stands beside it.
shared       the stages `write` of `paper` and `duplicates` of `clean` with one and with two workers, at two sizes; the
             least of five times; the bytes must be the same. With two workers, every language is divided: writing in
             parts of 20,000 pairs, the search in files of as many pairs as the smallest language has, with a vocabulary
             of 1,024 pairs (counting words does not grow with a large language). Model: T(W) = own + W', own the
             CPU-seconds of the process that started the others, per comment (the slope between both sizes, so that
             starting does not count), W' those of the workers over W, rounded up to whole rounds of parts (pieces of
             the search); efficiency = one worker's CPU-seconds, at most those of the two, / (W T(W)). Writing is also
             measured in parts of a quarter: what own takes in addition is per part, and charged to the parts of a real
             build, of 2 million pairs; the rest is per comment.
extrapolated 2018 and 2010-2019, from the line through the smallest and the largest size: CPU-hours, disk, shuffle.
             Spark's figures follow from the local ones and from how many times as much it takes (`--spark-cost`).

The tables of docs/scale.md are written from the JSON, also without a new measurement (`--docs`); a test compares them.

Run: python benchmarks/bench_scale.py [--comments N N N] [--profiles P ...] [--folder DIR] [--spark-cost X] [--docs]
     python benchmarks/bench_scale.py --shared
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from shared_stages import BUCKETS, MEMORY, cpu_seconds, search_twice, write_twice
from timing import write_result

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "bench_scale.json"
PAGE = ROOT / "docs" / "scale.md"
SEED = 20210605
MONTHS = ["2018-01", "2018-02"]
SPANS = {"2018": (1.24e9, 12), "2010-2019": (6.65e9, 120)}  # comments, months
COMPRESSED = 5.8e12 / 6.65e9 / 8  # bytes of a comment in a published dump
READER = 2.7e9  # bytes of a process that reads a month with a window of 2 GiB (`plan.READER_BYTES`)
LEAST_BUCKETS = 64
SPARK_COST = (89.4 - 41.7) / (65.4 - 25.8)  # CPU-seconds of local[2] over the local engine's, bench_spark, 1.4 to 4 M
WORKERS = 16
SHARED = [125_000, 500_000]  # comments
PARTS_OF = [20_000, 5_000]  # pairs that are written together, for that measurement


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
    settings = replace(make_settings(profile, min_examples=50, min_reply_count=1), buckets=BUCKETS)
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


def measured_together(folder: Path | None) -> dict[str, list[dict[str, Any]]]:
    """Writing and the search for duplicates at both sizes, and writing in smaller parts at the second one."""
    record: dict[str, list[dict[str, Any]]] = {"writing": [], "searching": []}
    for comments in SHARED:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            lines = fresh(prepare, Path(name), comments)
            for pairs_of_part in PARTS_OF[: 1 + (comments == SHARED[1])]:
                record["writing"].append({**lines, **fresh(write_twice, Path(name), pairs_of_part)})
                shutil.rmtree(Path(name) / ".paper.build")
            record["searching"].append({**lines, **fresh(search_twice, Path(name))})
        print(f"shared, {comments:,}: {record['writing'][-1]}, {record['searching'][-1]}", flush=True)
    return record


def own_seconds_of_writing(sizes: list[dict[str, Any]]) -> tuple[float, float]:
    """CPU-seconds of the process that starts the others, per comment and per part."""
    one, two, smaller = sizes
    of_part = max(smaller["2"]["own"] - two["2"]["own"], 0) / (smaller["parts"] - two["parts"])
    return max(line(one, two, lambda size: size["2"]["own"] - of_part * size["parts"])[1], 0), of_part


def efficiency(sizes: list[dict[str, Any]], workers: int, parts: float = 1e9, own: float | None = None) -> float:
    """Of so many parts of a stage with so many workers; `own` seconds per comment, if known."""
    one, measured, shared = (
        line(sizes[0], sizes[1], lambda size, at=at, who=who: size[at][who])[1]
        for at, who in (("1", "own"), ("2", "own"), ("2", "workers"))
    )
    rounds = math.ceil(parts / workers) * workers / parts
    own = max(measured, 0) if own is None else own
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
    sizes: list[dict[str, Any]], shared: dict[str, Any], profiles: list[str], spark_cost: float
) -> dict[str, Any]:
    """What a year and a decade cost, if all pairs are in one language."""
    from mrs_datasets.builders.reddit import duplicates
    from mrs_datasets.builders.reddit.write import PART_PAIRS

    of_comment, of_part = own_seconds_of_writing(shared["writing"])

    record: dict[str, Any] = {}
    for profile in profiles:
        values = quantities(profile, sizes)
        slopes = {name: line(sizes[0], sizes[2], value)[1] for name, value in values.items()}
        pairs = sizes[2][profile]["pairs"] / sizes[2]["lines"]
        spans = {}
        for span, (comments, months) in SPANS.items():
            hours = {stage: comments * slopes[f"{stage}, CPU-s"] / 3600 for stage in sizes[0][profile]["stages"]}
            total, search = sum(hours.values()), hours.get("duplicates", 0.0)
            parts = comments * pairs / PART_PAIRS
            written = efficiency(shared["writing"], WORKERS, parts, of_comment + of_part * parts / comments)
            pieces = len(duplicates.pieces_of(math.ceil(comments * pairs)))
            searched = efficiency(shared["searching"], WORKERS, pieces)
            evenly = hours["pairs"] + hours["write"] / written + search / searched
            wall = hours["months"] / min(WORKERS, months) + evenly / WORKERS
            buckets = LEAST_BUCKETS
            bucket_bytes = max(slopes["pairs, memory in MB"], 0) * 1e6 * BUCKETS  # of a bucket, a comment in it
            while comments / buckets * bucket_bytes > READER:
                buckets *= 2
            spans[span] = {
                "comments": comments,
                "CPU-hours, months, pairs and writing": round(total - search, 1),
                "CPU-hours, duplicates": round(search, 1),
                "CPU-hours": round(total, 1),
                f"hours with {WORKERS} workers": round(wall, 1),
                f"efficiency of {WORKERS} workers": f"{total / WORKERS / wall:.0%}",
                f"efficiency of writing with {WORKERS} workers": f"{written:.0%}",
                f"efficiency of the search for duplicates with {WORKERS} workers": f"{searched:.0%}" if search else "",
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
    record |= calculated(record["sizes"], record, list(record["check"]), spark_cost)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


def calculated(
    sizes: list[dict[str, Any]], shared: dict[str, Any], profiles: list[str], spark_cost: float
) -> dict[str, Any]:
    """All that follows from the sizes and the shared stages."""
    of_comment, of_part = own_seconds_of_writing(shared["writing"])
    many = (2, 4, 8, WORKERS, 2 * WORKERS)
    return {
        "check": check(sizes, profiles),
        "extrapolated": extrapolate(sizes, shared, profiles, spark_cost),
        "seconds of the main process, writing": {
            "a million comments": round(of_comment * 1e6, 3),
            "a thousand parts": round(of_part * 1e3, 3),
        },
        "efficiency of writing": {
            f"{n} workers": round(efficiency(shared["writing"], n, own=of_comment), 3) for n in many
        },
        "efficiency of searching": {f"{n} workers": round(efficiency(shared["searching"], n), 3) for n in many},
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
    parser.add_argument("--shared", action="store_true", help="measure the shared stages alone, then the tables")
    options = parser.parse_args()
    if options.shared:
        os.environ.setdefault("TQDM_DISABLE", "1")
        record = json.loads(RESULT.read_text(encoding="utf-8"))
        record |= measured_together(options.folder)
        RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if options.docs or options.shared:
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
    shared = measured_together(options.folder)
    figures = {
        "sizes": sizes,
        **shared,
        **calculated(sizes, shared, options.profiles, options.spark_cost),
        "language model": os.environ.get("MRS_LANGUAGE_MODEL", "the generator's, not lid.176").rpartition("/")[2],
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "machine": {"cores": os.cpu_count(), "load_at_the_end": round(os.getloadavg()[0], 1)},
    }
    for profile, rows in figures["check"].items():
        for name, found in rows.items():
            told = f"predicted {found['predicted']:,}, measured {found['measured']:,} ({found['ratio']})"
            print(f"{profile}, {name}: {told}")
    write_result(__file__, __doc__, figures, ("zstandard", "msgspec", "pyarrow", "numpy", "fasttext"))
    again(options.spark_cost)


if __name__ == "__main__":
    main()
