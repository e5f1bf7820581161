"""Large training data, rehearsed: time to the first step, memory and disk, at three sizes and at that of the papers.

Workload: generated text in one language (mlm) and in several, 10 MB each (languages), generated translations (tlm) and
message-reply pairs (retrieval), of words drawn by Zipf's law from an invented vocabulary, log-normal in length (mean 20
words, sigma .6), seeded; at three sizes, each four times the one before. The trainers are those of `mrs train`, each in
a process of its own that ends after its first step, with a BERT of random weights (one layer, 128 wide). `first` starts
with an empty cache of `datasets`, `second` with the one that `first` left: pretraining has read the text, and written
the rows of the first parts of each language.

seconds      from the start of Python to the end of the first step, with reading, tokenizing and writing what it needs.
             Files that were just written are read from memory: add the time of reading them once from your disk. At the
             paper's size, text needs the seconds of `mlm` and those of `languages`, less those of a start alone.
peak_gb      the most memory that a rank had resident, memory-mapped pages included, which the system may take back at
             any time; of several ranks, the largest.
anonymous_gb what a rank had resident at the end of the step without these pages.
disk_gb      of the cache at the end of the step, in addition to the data; pretraining continues writing rows.
growth       exponent: of the size, between the two largest (1: in proportion, 0: none). error: the largest size as
             predicted from the two smaller ones, over the measured one. at_the_paper: by the line through the two
             largest, at the size in `papers`.

Run: python benchmarks/bench_rehearsal.py [--scale .02] [--only mlm languages tlm retrieval] [--ranks N]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from math import log
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
from timing import write_result

SEED = 20200403
# Ours: so large that what a process needs in any case (some MB more or less, and 5,000 held-out sentences) does not
# decide what is extrapolated.
TEXT = (120_000_000, 480_000_000, 1_920_000_000)  # bytes
PAIRS = (150_000, 600_000, 2_400_000)
LANGUAGES, OF_A_LANGUAGE = (3, 12, 48), 10_000_000  # bytes: more than a part
SIZES = {"mlm": TEXT, "languages": LANGUAGES, "tlm": PAIRS, "retrieval": PAIRS}
PAPERS: Mapping[str, Any] = {
    "mlm": {"size": 101e9, "about": "bytes of text (XGLUE, Liang et al. 2020, section 3)"},
    "languages": {"size": 100, "about": "languages of the smaller corpus (XGLUE, section 3)"},
    "tlm": {"size": 59_518_504 + 9 * 19_000_000, "about": "translations, as many as MRS has pairs"},
    "retrieval": {"size": 59_518_504 + 9 * 19_000_000, "about": "pairs (MRS, Zhang et al. 2021, Table 1)"},
}
TARGETS = {
    "peak_gb": 8.0,
    "anonymous_gb": 8.0,
    "seconds": 600.0,
}  # a rank, at the papers' sizes
FIGURES = ("seconds", "peak_gb", "anonymous_gb", "disk_gb")
WORDS, MEAN, SIGMA = 50_000, 20.0, 0.6
CHUNK = 20_000  # sentences drawn at a time
STEP = "MRS_REHEARSAL_STEP"  # where a rank writes what its first step took
COMMON = "--max_steps 1 --eval_strategy no --save_strategy no --load_best_model_at_end false --use_cpu true --seed 1"


def sentences(seed: int) -> Iterator[str]:
    """Sentences without end."""
    draw = np.random.default_rng([SEED, seed])
    letters = np.random.default_rng(SEED)
    lengths = letters.integers(2, 10, WORDS)
    words = ["".join(map(chr, letters.integers(97, 123, length))) for length in lengths]
    shares = 1 / np.arange(3, WORDS + 3)
    ends = np.cumsum(shares / shares.sum())
    while True:
        counts = np.maximum(1, draw.lognormal(np.log(MEAN) - SIGMA**2 / 2, SIGMA, CHUNK)).astype(int)
        drawn = np.minimum(np.searchsorted(ends, draw.random(counts.sum())), WORDS - 1)
        for row in np.split(drawn, np.cumsum(counts)[:-1]):
            yield " ".join(words[one] for one in row)


def write_data(kind: str, size: int, scale: float, folder: Path) -> list[str]:
    """Write the data of a size into `folder`; return the options that name them."""
    from mrs_suggest.common.text.languages import find_language

    one, two = sentences(1), sentences(2)
    folder.mkdir()
    if kind in ("mlm", "languages"):
        codes = (first + second for first in ascii_lowercase for second in ascii_lowercase)
        count, most = (1, size) if kind == "mlm" else (size, int(OF_A_LANGUAGE * scale))
        files = {code: folder / f"{code}.txt" for code in islice(filter(find_language, codes), count)}
        for path in files.values():
            with path.open("w") as file:
                while file.tell() < most:
                    file.write("".join(f"{next(one)}\n" for _ in range(100)))
        return ["--text", *(f"{code}={path}" for code, path in files.items())]
    if kind == "tlm":
        with (folder / "pairs.tsv").open("w") as file:
            file.writelines(f"{next(one)}\t{next(two)}\n" for _ in range(size))
        return ["--objective", "tlm", "--parallel", f"en-ht={folder / 'pairs.tsv'}"]
    return ["--data", str(prepared_pairs(folder, size, one, two))]


def prepared_pairs(folder: Path, size: int, one: Iterator[str], two: Iterator[str]) -> Path:
    """A prepared folder of 1,000 pairs by `mrs data prepare`, whose training rows are replaced by so many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from mrs_datasets.prepared.prepare import prepare_mrs

    (folder / "source").mkdir()
    (folder / "source" / "en.tsv").write_text("".join(f"{next(one)}\t{next(two)}\n" for _ in range(1000)))
    prepare_mrs(str(folder / "source"), folder / "mrs")
    (train,) = (folder / "mrs" / "data" / "en").glob("train-*.parquet")
    schema = pq.read_schema(train)
    with pq.ParquetWriter(train, schema) as file:
        for begin in range(0, size, CHUNK):
            rows = range(begin, min(begin + CHUNK, size))
            drawn = {"message": [next(one) for _ in rows], "reply": [next(two) for _ in rows]}
            more = {name: [f"{name} {row}" for row in rows] for name in schema.names if name not in drawn}
            table = pa.table({**drawn, **more})
            file.write_table(table.select(schema.names).cast(schema))
    return folder / "mrs"


def started(kind: str, words: list[str], folder: Path, ranks: int) -> dict[str, float]:
    """Start the trainer; what its first step took."""
    trainer = "retrieval" if kind == "retrieval" else "pretraining"
    more = ["--pooling", "mean"] if trainer == "retrieval" else []
    out = folder / "run"
    words = [trainer, *words, *more, *COMMON.split(), "--output_dir", str(out), "--overwrite", "true"]
    launch = ["-m", "torch.distributed.run", "--nproc_per_node", str(ranks)] if ranks > 1 else []
    steps = folder / "steps"
    shutil.rmtree(steps, ignore_errors=True)
    steps.mkdir()
    cache = folder / "cache"
    environment = {**os.environ, STEP: str(steps), "HF_HOME": str(cache), "HF_DATASETS_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, *launch, __file__, "--rank", *words], env={**environment, "HF_HUB_OFFLINE": "1"}, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    found = [json.loads(path.read_text()) for path in steps.iterdir()]
    if done.returncode or len(found) != ranks:
        raise SystemExit(f"{kind}: no first step\n{done.stdout[-3000:]}")
    disk = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file() and not path.is_symlink())
    most = {name: max(one[name] for one in found) for name in FIGURES[:-1]}
    return {**most, "disk_gb": round(disk / 1e9, 4)}


def run_rank(words: list[str]) -> None:
    """A rank of a trainer, up to the end of its first step."""
    import importlib

    import psutil
    from transformers.trainer_callback import DefaultFlowCallback

    def note(self: Any, args: Any, *rest: Any, **named: Any) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        seconds = time.time() - psutil.Process().create_time()
        memory = psutil.Process().memory_info()
        own = memory.rss - getattr(memory, "shared", 0)
        told = {"seconds": round(seconds, 2), "peak_gb": round(peak / 1e9, 4), "anonymous_gb": round(own / 1e9, 4)}
        (Path(os.environ[STEP]) / f"{args.process_index}.json").write_text(json.dumps(told))
        for child in psutil.Process().children():  # that writes the rows of the next steps
            child.kill()
        os._exit(0)

    DefaultFlowCallback.on_step_end = note  # type: ignore[method-assign]
    importlib.import_module(f"mrs_trainers.{words[0]}").main(words[1:])


def growth(sizes: tuple[int, ...], values: list[float], paper: float) -> dict[str, float]:
    """How a figure grows, and what it is at a paper's size.

    >>> growth((1, 4, 16), [3.0, 6.0, 18.0], 100.0)
    {'exponent': 0.792, 'error': 1.0, 'at_the_paper': 102.0}
    """

    def line(first: int, second: int, size: float) -> float:
        slope = (values[second] - values[first]) / (sizes[second] - sizes[first])
        return values[second] + slope * (size - sizes[second])

    exponent = log(values[2] / values[1]) / log(sizes[2] / sizes[1]) if values[1] > 0 < values[2] else 0.0
    error = line(0, 1, sizes[2]) / values[2] if values[2] else 1.0
    return {
        "exponent": round(exponent, 3),
        "error": round(error, 3),
        "at_the_paper": round(max(line(1, 2, paper), values[2]), 1),
    }


def rehearsed(kind: str, scale: float, start: Path, folder: Path, ranks: int) -> dict[str, Any]:
    """Both starts at each size, and how they grow."""
    sizes = tuple(size if kind == "languages" else int(size * scale) for size in SIZES[kind])
    rows = []
    for size in sizes:
        place = folder / f"{kind}-{size}"
        words = [*write_data(kind, size, scale, place), "--model_name_or_path", str(start)]
        data = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        row: dict[str, Any] = {"size": size, "data_gb": round(data / 1e9, 4)}
        row |= {name: started(kind, words, place, ranks) for name in ("first", "second")}
        shutil.rmtree(place)
        print(f"{kind}: {json.dumps(row)}", flush=True)
        rows.append(row)
    grown: Mapping[str, Any] = {
        name: {figure: growth(sizes, [row[name][figure] for row in rows], PAPERS[kind]["size"]) for figure in FIGURES}
        for name in ("first", "second")
    }
    met = {
        name: {figure: grown[name][figure]["at_the_paper"] <= target for figure, target in TARGETS.items()}
        for name in ("first", "second")
    }
    return {"sizes": rows, "growth": grown, "met": met}


def main() -> None:
    """Rehearse; print the figures, and write them."""
    if sys.argv[1:2] == ["--rank"]:
        run_rank(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES), help="default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="of the three sizes; below 1 to try the benchmark")
    parser.add_argument("--ranks", type=int, default=1, help="processes of a run (default 1)")
    options = parser.parse_args()
    from mrs_suggest.models.retrieval.tiny import build_tiny

    figures: dict[str, Any] = {"targets": TARGETS, "papers": PAPERS, "scale": options.scale, "ranks": options.ranks}
    with tempfile.TemporaryDirectory() as folder:
        known = sentences(0)
        start = build_tiny([next(known) for _ in range(5000)], Path(folder) / "start", SEED, mask="[MASK]")
        for kind in options.only:
            figures[kind] = rehearsed(kind, options.scale, start, Path(folder), options.ranks)
            print(f"{kind}: {json.dumps(figures[kind]['growth'], indent=1)} {figures[kind]['met']}", flush=True)
    write_result(__file__, __doc__, figures, ("torch", "transformers", "datasets", "tokenizers"))


if __name__ == "__main__":
    main()
