"""STAPLE: preparing a track against a plain Python parse of the same lines.

Workload: a generated track of the size of the largest one, Japanese train (Table 2): 2,500 prompts, 855,941 accepted
translations of 4 to 20 Japanese characters, weights by the paper's formula from Zipf-like counts, and one reference
translation a prompt. Seeded.

The rival reads the gold file line by line, splits at the last `|`, turns the weight into a float and keeps everything
in a dictionary of lists. `prepare` checks the lines, joins the references, and writes Parquet, hashes, report and card.
Each runs three times in turn, each time in its own process, so that the peak memory is its own; the best times count.
Both must find all translations before a time is reported. Target: at most 3 times the rival, below 1 GB.

Run: python benchmarks/bench_staple.py [--translations N]
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "bench_staple.json"
SEED = 20200709
PROMPTS = 2_500
FULL_SIZE = 855_941
RUNS = 3
GOLD = "train.en_ja.generated.gold.txt"
REFERENCES = "train.en_ja.aws_baseline.pred.txt"


def make_track(folder: Path, n_translations: int, seed: int = SEED) -> None:
    """Write the gold file and the references of the workload that the module's docstring describes."""
    from mrs_datasets.describe.paper_tables import lrf_weights

    draw = random.Random(seed)
    letters = [chr(code) for code in (*range(0x3042, 0x3093), *range(0x4E00, 0x4F00))]
    with (
        (folder / GOLD).open("w", encoding="utf-8", newline="\n") as gold,
        (folder / REFERENCES).open("w", encoding="utf-8", newline="\n") as references,
    ):
        for number in range(PROMPTS):
            size = n_translations // PROMPTS + (number < n_translations % PROMPTS)
            head = f"prompt_{draw.getrandbits(128):032x}|a prompt of the course, number {number}."
            texts = ["".join(draw.choices(letters, k=draw.randint(4, 20))) + "。" for _ in range(size)]
            weights = lrf_weights([int(500 / rank**1.2) for rank in range(1, size + 1)])
            lines = [f"{text}|{weight!r}" for text, weight in zip(texts, weights, strict=True)]
            gold.write("\n".join([head, *lines, "", ""]))
            references.write(f"{head}\n{texts[0]}\n\n")


def plain_parse(folder: Path) -> int:
    """The rival; returns the number of translations."""
    data: dict[str, list[tuple[str, float]]] = {}
    entries: list[tuple[str, float]] | None = None
    with (folder / GOLD).open(encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\n")
            if not line:
                entries = None
            elif entries is None:
                entries = data.setdefault(line.split("|", 1)[0], [])
            else:
                text, _, weight = line.rpartition("|")
                entries.append((text, float(weight)))
    return sum(map(len, data.values()))


def prepare(folder: Path) -> dict[str, Any]:
    """This project; returns the report."""
    from mrs_datasets.prepared.prepare import prepare

    return prepare("staple", [str(folder)], folder / "out", overwrite=True)


def prepared_translations(folder: Path) -> int:
    """The number of translations that the prepared Parquet files hold."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    files = (folder / "out" / "data" / "ja").glob("*.parquet")
    columns = [pq.read_table(path, columns=["translations"])["translations"] for path in files]
    return sum(pc.sum(pc.list_value_length(column)).as_py() for column in columns)


def measure(name: str, folder: Path) -> dict[str, float]:
    """Run one of the two in this process; imports stay out of the time and count in the memory."""
    import mrs_datasets.prepared.prepare  # noqa: F401

    start = time.perf_counter()
    result = plain_parse(folder) if name == "rival" else prepare(folder)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "seconds": seconds,
        "peak_mb": peak,
        "translations": result if isinstance(result, int) else prepared_translations(folder),
    }


def in_own_process(name: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", name, "--folder", str(folder)]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))


def race(n_translations: int) -> dict[str, Any]:
    """Run both in turn on one workload; AssertionError where they do not find all translations."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_track(folder, n_translations)
        runs: dict[str, list[dict[str, float]]] = {"ours": [], "rival": []}
        for _ in range(RUNS):
            for who, measured in runs.items():
                measured.append(in_own_process(who, folder))
                if measured[-1]["translations"] != n_translations:
                    raise AssertionError(f"{who}: {measured[-1]['translations']} of {n_translations} translations.")
        size = (folder / GOLD).stat().st_size
    best = {who: min(run["seconds"] for run in measured) for who, measured in runs.items()}
    peaks = {who: max(run["peak_mb"] for run in measured) for who, measured in runs.items()}
    return {
        "gold_bytes": size,
        "seconds": {who: round(seconds, 3) for who, seconds in best.items()},
        "times_the_rival": round(best["ours"] / best["rival"], 2),
        "peak_mb": {who: round(peak) for who, peak in peaks.items()},
    }


def main() -> None:
    """Race both; print and write the ratio."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--translations", type=int, default=FULL_SIZE, help=f"of the workload (default {FULL_SIZE:,})")
    parser.add_argument("--measure", choices=["ours", "rival"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.folder)))
        return
    record = {
        "name": "bench_staple",
        "workload": " ".join(__doc__.split("Workload: ")[1].split("\n\n")[0].split()),
        "translations": options.translations,
        **race(options.translations),
        "versions": {
            "python": platform.python_version(),
            **{package: metadata.version(package) for package in ("pyarrow", "datasets")},
        },
    }
    print(record["workload"])
    ours, rival = record["seconds"]["ours"], record["seconds"]["rival"]
    times, peak = record["times_the_rival"], record["peak_mb"]["ours"]
    print(f"prepare {ours:.2f} s, plain parse {rival:.2f} s: {times} times; peak memory {peak} MB")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
