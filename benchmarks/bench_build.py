"""`mrs data build`: its stages against zstandard alone, json with pandas, bare fastText, and one worker against two.

Workload: synthetic dumps (`mrs data synth`): 2 months of 400,000 lines of about 1 KB, seeded, ten languages, zstd
frames that ask for a window of 2 GiB. Profile `paper`, 8 buckets, of about 85,000 comments (real ones have a million
and more). Every run has a process of its own, imports outside of the time; the runs of a
race take turns, and the best of each counts. CPU-seconds are those of the process and its children, all threads, user
and system; rates are lines a CPU-second. The pairs of all must be as many as the generator says.

pairs      read, filter, partition, join. Against zstandard's stream reader on the same files, which does nothing with
           the bytes; and against the script that one would write first: a loop over lines with `json` (and again with
           `orjson`, where it is installed), the paper's filters, pandas for duplicates and merge. It holds everything
           in memory, and the pairs of both end there.
language   the same and fastText on message and reply. Against 1 / (1/r1 + 1/r2): r1 the rate up to pairs, r2 that of
           bare `predict` on the same texts, 1,024 a call. The model is the one in MRS_LANGUAGE_MODEL, whose
           name is recorded. Without one it is the generator's own (`--language-model` of `mrs data synth`), as
           wide as lid.176 but not compressed, and the run says so.
workers    the build's stages `months` and `pairs`, with languages, masks, order and files, workers' start included:
           wall time of one worker against two. Beside it what the machine gives at most: two processes at once, each
           of which does the whole as one worker, against one after the other.
memory     highest resident memory of a process that reads, filters and partitions one month, at two lengths, both
           longer than the window (the month's lines again and again); of one that joins a bucket, a comment.
disk       bytes of the partition a kept comment, of a pair before and after writing.

Run: python benchmarks/bench_build.py [--comments N] [--months N] [--long N N] [--runs N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import platform
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import metadata, util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "bench_build.json"
SEED = 20210605
BUCKETS = 8
FEW_BUCKETS = 2  # for the memory of a join, which should be far above that of the libraries
PIECE = 1 << 20
TEXTS = 1024  # a call of fastText
MB = 1e6
TARGETS = {"zstandard": 0.2, "json + pandas": 2.5, "language": 0.85, "workers": 1.7}
MOST_READER_MB, MOST_GROWTH = 2700, 1.05


# --- Each run in a process of its own -------------------------------------------------------------------------------


def fresh(job: Callable[..., dict[str, Any]], *values: Any) -> dict[str, Any]:
    """What `job` returns when it is run in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(job, *values).result()


@contextmanager
def measured(found: dict[str, Any]) -> Iterator[None]:
    """Put CPU-seconds, wall seconds and memory (MB: before, and at most) of the block into `found`."""
    before, found["base_mb"] = cpu_seconds(), memory_mb("VmRSS")
    start = time.perf_counter()
    yield
    found["wall"] = round(time.perf_counter() - start, 2)
    found["precise"] = cpu_seconds() - before
    found["cpu"] = round(found["precise"], 2)
    found["peak_mb"] = memory_mb("VmHWM")


def cpu_seconds() -> float:
    """User and system time of this process, and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def memory_mb(field: str, process: int | str = "self") -> float:
    """Resident memory now (VmRSS) or at most (VmHWM). `ru_maxrss` would begin with that of the parent."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    assert found
    return round(int(found[1]) * 1024 / MB, 1)


def prepare(folder: Path, months: list[str], comments: int) -> dict[str, Any]:
    """Write the dumps and, where none is named, train a language model; what the dumps hold."""
    from mrs_datasets.synthetic.dumps import write_dumps
    from mrs_datasets.synthetic.language_models import write_language_model

    start = time.perf_counter()
    manifest = write_dumps(folder / "dumps", months, comments, SEED)
    model = Path(os.environ.get("MRS_LANGUAGE_MODEL", folder / "small.bin"))
    if model.parent == folder:
        write_language_model(model, SEED)
    return {
        "lines": sum(entry["lines"] for entry in manifest["files"].values()),
        "bytes": sum(entry["bytes"] for entry in manifest["files"].values()),
        "compressed": sum(entry["compressed"] for entry in manifest["files"].values()),
        "kept": manifest["profiles"]["paper"]["kept"],
        "pairs": manifest["profiles"]["paper"]["pairs"],
        "model": str(model),
        "seconds": round(time.perf_counter() - start, 1),
    }


def repeat_month(source: Path, target: Path, lines: int) -> dict[str, Any]:
    """Write the lines of a dump again and again, up to so many, as one frame with a window of 2 GiB."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    content = decompressor.stream_reader(source.read_bytes()).read()
    whole, rest = divmod(lines, content.count(b"\n"))
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=31)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    with target.open("wb") as file, compressor.stream_writer(file) as writer:
        for _ in range(whole):
            writer.write(content)
        for line in content.splitlines(keepends=True)[:rest]:
            writer.write(line)
    return {"bytes": target.stat().st_size}


# --- Ours -----------------------------------------------------------------------------------------------------------


def our_pairs(dumps: Sequence[Path], model: Path | None = None) -> dict[str, Any]:
    """Up to pairs, in one process; with a model, up to their languages."""
    from mrs_datasets.builders.reddit.months import month_shard
    from mrs_datasets.builders.reddit.pairs import identify_pairs, join_buckets
    from mrs_datasets.builders.reddit.plan import Settings
    from mrs_suggest.common.text.language_id import LanguageIdentifier

    _load_libraries()
    identifier = model and LanguageIdentifier.open(model)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=dumps[0].parent) as folder:
        targets = [Path(folder) / f"{path.name}.arrow" for path in dumps]
        with measured(found):
            for path, target in zip(dumps, targets, strict=True):
                month_shard(path, target, Settings(), BUCKETS, _ignore)
            pairs = 0
            for bucket in range(BUCKETS):
                table, _ = join_buckets(targets, range(bucket, bucket + 1), BUCKETS)
                pairs += table.num_rows
                if identifier:
                    identify_pairs(table, identifier, Settings().min_language_score)
        spill = sum(target.stat().st_size for target in targets)
    return {**found, "pairs": pairs, "spill": spill}


def our_stages(dumps: Sequence[Path], model: Path, workers: int) -> dict[str, Any]:
    """The stages `months` and `pairs` of the build, as it runs them."""
    from mrs_datasets.builders.pipeline.stages import Shard, Workers, run_stage
    from mrs_datasets.builders.pipeline.work_folder import WorkFolder
    from mrs_datasets.builders.reddit.months import month_shard
    from mrs_datasets.builders.reddit.pairs import pair_shard
    from mrs_datasets.builders.reddit.plan import Settings

    _load_libraries()
    found: dict[str, Any] = {}
    settings = Settings(buckets=BUCKETS)
    with tempfile.TemporaryDirectory(dir=dumps[0].parent) as folder:
        with measured(found), Workers(workers) as processes:
            work = WorkFolder(Path(folder) / "work", {}, resume=False, overwrite=False)
            place, months = work.stage("months"), []
            for path in dumps:
                target = place / f"{path.name}.arrow"
                shard = partial(month_shard, path, target, settings, BUCKETS)
                months.append(Shard(path.name, path.stat().st_size, target, shard))
            run_stage(work, "months", months, processes, "B")
            place, buckets = work.stage("pairs"), []
            for number in range(BUCKETS):
                target = place / f"{number}.arrow"
                files = [month.output for month in months]
                shard = partial(pair_shard, files, range(number, number + 1), target, settings, model)
                buckets.append(Shard(str(number), 1, target, shard))
            counts = run_stage(work, "pairs", buckets, processes, "bucket")
        found["pairs"] = sum(count["pairs"] for count in counts)
        found["written_pairs"] = sum(n for c in counts for _, outcome, n in c["outcomes"] if outcome == "kept")
        found["pair_bytes"] = sum(path.stat().st_size for path in place.glob("*.arrow"))
    return found


def our_build(dumps: Sequence[Path], model: Path) -> dict[str, Any]:
    """The whole build with one worker."""
    from mrs_datasets.builders.reddit.build import build
    from mrs_datasets.builders.reddit.plan import make_build_plan, make_settings

    _load_libraries()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=dumps[0].parent) as folder:
        out = Path(folder) / "mrs"
        plan = make_build_plan(dumps, out, 1, 8_000_000_000, BUCKETS)
        told: list[str] = []
        with measured(found):
            build(plan, out, make_settings("paper", min_examples=500, min_reply_count=1), model, say=told.append)
        found["stages"] = told[-1]
        writing = re.search(r"write ([\d,]+)", told[-1])
        assert writing
        found["write_wall"] = max(int(writing[1].replace(",", "")), 0.5)  # whole seconds
        parquet = (path for path in out.rglob("*.parquet") if not path.parent.name.endswith("-responses"))
        found["parquet"] = sum(path.stat().st_size for path in parquet)
    return found


def read_month(dump: Path, buckets: int) -> dict[str, Any]:
    """Read, filter and partition one dump; the partition stays beside it."""
    from mrs_datasets.builders.reddit.months import month_shard
    from mrs_datasets.builders.reddit.plan import Settings

    found: dict[str, Any] = {}
    with measured(found):
        counts = month_shard(dump, dump.with_suffix(".arrow"), Settings(), buckets, _ignore)
    return {**found, "lines": counts["lines"], "kept": counts["kept"]}


def join_one(partitions: Sequence[Path]) -> dict[str, Any]:
    """Join one bucket."""
    from mrs_datasets.builders.reddit.pairs import join_buckets

    _load_libraries()
    found: dict[str, Any] = {}
    with measured(found):
        table, unpaired = join_buckets(partitions, range(1), FEW_BUCKETS)
    grown, comments = (found["peak_mb"] - found["base_mb"]) * MB, table.num_rows + sum(unpaired.values())
    return {**found, "comments": comments, "bytes_a_comment": round(grown / comments)}


def _load_libraries() -> None:
    """Import now what the stages import when they first run."""
    from mrs_datasets.builders.pipeline.stages import settle

    settle()
    import xxhash

    import mrs_datasets.builders.reddit.write

    assert xxhash
    assert mrs_datasets.builders.reddit.write


def _ignore(_: object) -> None:
    pass


# --- The rivals -----------------------------------------------------------------------------------------------------


def zstandard_alone(dumps: Sequence[Path]) -> dict[str, Any]:
    """Decompress the files, and nothing else."""
    import zstandard

    found: dict[str, Any] = {}
    with measured(found):
        for path in dumps:
            with path.open("rb") as file:
                reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(file)
                while reader.read(PIECE):
                    pass
    return found


def script(dumps: Sequence[Path], parser: str) -> dict[str, Any]:
    """The same job as a short script: `json` or `orjson` line by line, then pandas."""
    import importlib

    import pandas as pd
    import zstandard

    loads = importlib.import_module(parser).loads
    pd.DataFrame({"a": ["t1_"]}).merge(pd.DataFrame({"a": ["t1_"]}), on="a")["a"].str.startswith("t1_")
    found: dict[str, Any] = {}
    with measured(found):
        rows = []
        for path in dumps:
            with path.open("rb") as file:
                reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(file)
                for line in io.BufferedReader(reader, PIECE):
                    try:
                        comment = loads(line)
                        body, score = comment["body"], comment.get("score")
                        body.encode()  # json lets half a surrogate pair pass
                    except (ValueError, KeyError, AttributeError):
                        continue
                    if body.startswith(("[removed]", "[deleted]")) or not body.strip():
                        continue
                    if (score is not None and score < 1) or (comment.get("_meta") or {}).get("was_deleted_later"):
                        continue
                    rows.append((comment["id"], comment["parent_id"], comment["link_id"], body))
        frame = pd.DataFrame(rows, columns=["id", "parent_id", "link_id", "body"])
        frame = frame.drop_duplicates(["link_id", "id"])
        replies = frame[frame["parent_id"].str.startswith("t1_")]
        replies = replies.assign(parent=replies["parent_id"].str[3:])
        messages = frame[["link_id", "id", "body"]].rename(columns={"id": "parent", "body": "message"})
        pairs = replies.merge(messages, on=["link_id", "parent"])
    return {**found, "pairs": len(pairs)}


def bare_fasttext(dumps: Sequence[Path], model: Path) -> dict[str, Any]:
    """`predict` on message, space, reply of all pairs, which are made outside of the time."""
    import fasttext

    from mrs_datasets.builders.reddit.months import month_shard
    from mrs_datasets.builders.reddit.pairs import join_buckets
    from mrs_datasets.builders.reddit.plan import Settings

    texts: list[str] = []
    with tempfile.TemporaryDirectory(dir=dumps[0].parent) as folder:
        targets = [Path(folder) / f"{path.name}.arrow" for path in dumps]
        for path, target in zip(dumps, targets, strict=True):
            month_shard(path, target, Settings(), BUCKETS, _ignore)
        for bucket in range(BUCKETS):
            pairs, _ = join_buckets(targets, range(bucket, bucket + 1), BUCKETS)
            sides = zip(pairs["message"].to_pylist(), pairs["reply"].to_pylist(), strict=True)
            texts += [f"{message} {reply}".replace("\n", " ") for message, reply in sides]
    predictor = fasttext.load_model(str(model))
    found: dict[str, Any] = {}
    with measured(found):
        for start in range(0, len(texts), TEXTS):
            predictor.predict(texts[start : start + TEXTS])
    return {**found, "pairs": len(texts)}


# --- All of it ------------------------------------------------------------------------------------------------------


def at_once(job: Callable[..., dict[str, Any]], *values: Any) -> dict[str, Any]:
    """The slower of two processes that do the same at the same time."""
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(fresh, job, *values) for _ in range(2)]
        return max((one.result() for one in both), key=lambda found: found["wall"])


def race(dumps: list[Path], model: Path, runs: int, workload: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Run everybody in turns; keep the least time of each. AssertionError where the pairs are not as many."""
    jobs: dict[str, Callable[[], dict[str, Any]]] = {
        "zstandard": lambda: fresh(zstandard_alone, dumps),
        "pairs": lambda: fresh(our_pairs, dumps),
        "json + pandas": lambda: fresh(script, dumps, "json"),
        "orjson + pandas": lambda: fresh(script, dumps, "orjson"),
        "fastText": lambda: fresh(bare_fasttext, dumps, model),
        "with language": lambda: fresh(our_pairs, dumps, model),
        "one worker": lambda: fresh(our_stages, dumps, model, 1),
        "two workers": lambda: fresh(our_stages, dumps, model, 2),
        "one worker, twice at once": lambda: at_once(our_stages, dumps, model, 1),
    }
    if not util.find_spec("orjson"):
        del jobs["orjson + pandas"]
    best: dict[str, dict[str, Any]] = {}
    for _ in range(runs):
        for name, job in jobs.items():
            found = job()
            if found.get("pairs", workload["pairs"]) != workload["pairs"]:
                raise AssertionError(f"{name}: {found['pairs']} pairs, the generator made {workload['pairs']}.")
            old = best.get(name, found)
            best[name] = {**found, **{clock: min(found[clock], old[clock]) for clock in ("cpu", "wall")}}
    return best


def memory(folder: Path, dumps: list[Path], lengths: list[int]) -> dict[str, Any]:
    """Peaks of readers and of a join."""
    readers = []
    for lines in lengths:
        long = folder / "long.zst"
        fresh(repeat_month, dumps[0], long, lines)
        readers.append(fresh(read_month, long, BUCKETS))
        long.unlink()
        long.with_suffix(".arrow").unlink()
    for dump in dumps:
        fresh(read_month, dump, FEW_BUCKETS)
    return {"readers": readers, "join": fresh(join_one, [dump.with_suffix(".arrow") for dump in dumps])}


def compare(workload: dict[str, Any], best: dict[str, dict[str, Any]], readers: list[dict[str, Any]]) -> dict[str, Any]:
    """The ratios with their targets."""
    cpu = {name: found["cpu"] for name, found in best.items()}
    rivals = [name for name in best if name.endswith("pandas")]
    ratios = {
        "rate up to pairs / zstandard alone": (cpu["zstandard"] / cpu["pairs"], TARGETS["zstandard"]),
        **{f"rate up to pairs / {name}": (cpu[name] / cpu["pairs"], TARGETS.get(name)) for name in rivals},
        "rate with language / 1 / (1/r1 + 1/r2)": (
            (cpu["pairs"] + cpu["fastText"]) / cpu["with language"],
            TARGETS["language"],
        ),
        "wall of one worker / two": (best["one worker"]["wall"] / best["two workers"]["wall"], TARGETS["workers"]),
        "the same of two processes with nothing in common": (
            2 * best["one worker"]["wall"] / best["one worker, twice at once"]["wall"],
            None,
        ),
    }
    record = {
        name: {"ratio": round(ratio, 3), **({"at least": least, "met": ratio >= least} if least else {})}
        for name, (ratio, least) in ratios.items()
    }
    short, long = (reader["peak_mb"] for reader in readers)
    record["reader's memory, MB"] = {"ratio": long, "at most": MOST_READER_MB, "met": long <= MOST_READER_MB}
    growth = round(long / short, 3)
    record["reader's memory, long / short"] = {"ratio": growth, "at most": MOST_GROWTH, "met": growth <= MOST_GROWTH}
    return record


def main() -> None:
    """Race, measure, print, write."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--comments", type=int, default=400_000, help="lines of a month (default 400,000)")
    parser.add_argument("--months", type=int, default=2, choices=range(1, 13), metavar="N", help="1 to 12 (default 2)")
    parser.add_argument(
        "--long", type=int, nargs=2, default=[2_500_000, 6_000_000], metavar="N", help="lines of the two long months"
    )
    parser.add_argument("--runs", type=int, default=3, help="of everybody (default 3)")
    parser.add_argument("--folder", type=Path, help="where the files go for the time (default: the system's)")
    options = parser.parse_args()
    os.environ.setdefault("TQDM_DISABLE", "1")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        months = [f"2018-{month + 1:02d}" for month in range(options.months)]
        workload = fresh(prepare, folder, months, options.comments)
        dumps, model = sorted((folder / "dumps").glob("RC_*.zst")), Path(workload["model"])
        if "MRS_LANGUAGE_MODEL" not in os.environ:
            print("without lid.176: MRS_LANGUAGE_MODEL is not set, so the generator's model is used")
        workload["model"] = model.name if "MRS_LANGUAGE_MODEL" in os.environ else "the generator's, not lid.176"
        best = race(dumps, model, options.runs, workload)
        whole = fresh(our_build, dumps, model)
        peaks = memory(folder, dumps, options.long)
    one, pairs = best["one worker"], workload["pairs"]
    record = {
        "name": "bench_build",
        "workload": workload,
        "runs": options.runs,
        "seconds": best,
        "lines_per_cpu_second": {name: round(workload["lines"] / found["cpu"]) for name, found in best.items()},
        "comparison": compare(workload, best, peaks["readers"]),
        "memory": peaks,
        "disk": {
            "spill bytes a kept comment": round(best["pairs"]["spill"] / workload["kept"], 1),
            "bytes a pair before writing": round(one["pair_bytes"] / one["written_pairs"], 1),
            "bytes a pair as Parquet": round(whole["parquet"] / one["written_pairs"], 1),
        },
        "texts_per_cpu_second": round(pairs / best["fastText"]["cpu"]),
        "writing": {"pairs_per_second": round(one["written_pairs"] / whole["write_wall"]), "whole_build": whole},
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "machine": {"cores": os.cpu_count(), "load_at_the_end": round(os.getloadavg()[0], 1)},
        "versions": {
            "python": platform.python_version(),
            **{
                package: metadata.version(package)
                for package in ("zstandard", "msgspec", "pyarrow", "numpy", "pandas", "fasttext", "orjson")
                if util.find_spec(package)
            },
        },
    }
    show(record)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def show(record: dict[str, Any]) -> None:
    """Print the record."""
    work = record["workload"]
    print(
        f"{work['lines']:,} lines, {work['bytes'] / MB:,.0f} MB, zstd {work['compressed'] / MB:,.0f} MB; "
        f"{work['kept']:,} kept, {work['pairs']:,} pairs, the same for all; language model: {work['model']}"
    )
    for name, found in record["seconds"].items():
        rate = record["lines_per_cpu_second"][name]
        print(
            f"{name}: {found['cpu']:.2f} CPU-s ({rate:,} lines/CPU-s), {found['wall']:.2f} s, "
            f"{found['peak_mb']:,.0f} MB"
        )
    for name, found in record["comparison"].items():
        bound = next((key for key in ("at least", "at most") if key in found), "")
        told = f" ({bound} {found[bound]}: {'met' if found['met'] else 'MISSED'})" if bound else ""
        print(f"{name}: {found['ratio']}{told}")
    join = record["memory"]["join"]
    print(f"join of {join['comments']:,} comments: {join['bytes_a_comment']:,} bytes a comment")
    for name, size in record["disk"].items():
        print(f"{name}: {size}")
    print(f"fastText alone: {record['texts_per_cpu_second']:,} texts/CPU-s", end="; ")
    print(f"writing: {record['writing']['pairs_per_second']:,} pairs/s; {record['minutes']} minutes in all")


if __name__ == "__main__":
    main()
