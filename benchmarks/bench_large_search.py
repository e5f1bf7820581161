"""Search of one message in large tables, in 8-bit codes first: against a float32 product and `semantic_search`.

Workload: replies with seeded random vectors, saved and loaded again: 45,000 of 384 and of 256 dimensions, 500,000 of
256 and 1,000,000 of 384; the three best replies of 1 message. Rivals on float32 copies of the same vectors: numpy's
product of all rows with `argpartition`, and `semantic_search`; 20 answers must be equal, so recall at 3 is 1. Memory:
with 1,000,000 replies, the proportional set size (PSS) of a process that has loaded the index and answered 64 messages,
and of two. Messages: 200,000 and 1,000,000 remembered ones of 384 dimensions, 45,000 replies; cosines and the nearest
of each reply; the rival is numpy's product with the same pooling. "largest difference": of 20 messages' nearest and
votes (T = .02) from those of full products.

Run: python benchmarks/bench_large_search.py [--scale F]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.util import dot_score, semantic_search
from timing import seconds, write_result

from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.index.vector_table import VectorTable
from mrs_suggest.suggest.ranking.memory import MessageMemory

REPLIES = ((45_000, 384), (45_000, 256), (500_000, 256), (1_000_000, 384))
MESSAGES, OF_REPLIES, DIMENSION, K = (200_000, 1_000_000), 45_000, 384, 3
READER = """
import sys
from pathlib import Path
import torch
from mrs_suggest.suggest.index.response_index import ResponseIndex
if sys.argv[1]:
    index = ResponseIndex.load(Path(sys.argv[1]))
    generator = torch.Generator().manual_seed(3)
    for _ in range(64):
        index.search(torch.randn(1, index.vectors.shape[1], generator=generator), 3)
print("ready", flush=True)
sys.stdin.read()
"""


def times(count: int) -> int:
    return 20 if count < 100_000 else 5


def unit(count: int, dimension: int, seed: int) -> torch.Tensor:
    vectors = torch.randn(count, dimension, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(vectors)


def replies(count: int, dimension: int, folder: Path, rounds: int) -> dict[str, Any]:
    """Figures of one size; the index stays in `folder`."""
    vectors = unit(count, dimension, 1)
    ResponseIndex.build(lambda _: vectors, [f"reply {number}" for number in range(count)]).save(folder)
    index = ResponseIndex.load(folder)
    queries = unit(20, dimension, 2)
    whole = torch.from_numpy(index.vectors).float()
    plain, asked = whole.numpy(), queries[:1]

    def by_numpy(query: np.ndarray) -> list[int]:
        scores = plain @ query
        best = np.argpartition(-scores, K)[:K]
        return [int(number) for number in best[np.argsort(-scores[best])]]

    def by_library() -> object:
        return semantic_search(asked, whole, top_k=K, score_function=dot_score)

    for query in queries:
        assert index.search(query[None], K)[0][0].tolist() == by_numpy(query.numpy()), "other replies"
    message = queries[0].numpy()
    return compared(
        lambda: index.search(asked, K), {"numpy": lambda: by_numpy(message), "semantic_search": by_library}, rounds
    )


def messages(count: int, replies: int, rounds: int) -> dict[str, Any]:
    """Figures of a memory."""
    of = np.sort(np.random.default_rng(4).integers(0, replies, count))
    vectors = unit(count, DIMENSION, 5).numpy()
    memory = MessageMemory.build([""] * count, vectors, of, limit=count, ngrams=False)
    del vectors
    full = VectorTable(memory.table.rows.astype(np.float32))
    plain, queries = full.rows, unit(20, DIMENSION, 6).numpy()
    differences = {"nearest": 0.0, "votes": 0.0}
    for query in queries:
        found, true = memory.cosines(query), plain @ query
        for name, pool in (("nearest", memory.nearest), ("votes", lambda cosines: memory.votes(cosines, 0.02))):
            differences[name] = max(differences[name], float(np.abs(pool(found) - pool(true)).max()))
    query = queries[0]
    figures = compared(
        lambda: memory.nearest(memory.cosines(query)), {"numpy": lambda: memory.nearest(plain @ query)}, rounds
    )
    return {**figures, "largest difference": {**differences, "known bound": memory.slack(query)}}


def compared(ours: Callable[[], object], rivals: dict[str, Callable[[], object]], rounds: int) -> dict[str, Any]:
    spent = {"ours": seconds(ours, rounds), **{name: seconds(rival, rounds) for name, rival in rivals.items()}}
    return {"seconds": spent, "ratio": {name: round(spent[name] / spent["ours"], 2) for name in rivals}}


def second_process(folder: Path) -> dict[str, float]:
    """Proportional memory in MiB."""
    alone, _ = pss_of([""])
    first, _ = pss_of([str(folder)])
    both, _ = pss_of([str(folder)] * 2)
    share = (both - first) / first
    return {"without index": alone, "first": first, "both": both, "second over first": round(share, 3)}


def pss_of(folders: list[str]) -> tuple[float, list[float]]:
    """Of processes that hold these indexes at the same time, together and each."""
    started = [
        subprocess.Popen([sys.executable, "-c", READER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for folder in folders
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", "the reader failed"
    found = [_pss(process.pid) for process in started]
    for process in started:
        process.communicate()
    return sum(found), found


def _pss(process: int) -> float:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of replies and messages (default 1)")
    scale = parser.parse_args().scale
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count, dimension in REPLIES:
            name, place = f"{count:,} replies of {dimension}", Path(folder) / f"{count}-{dimension}"
            figures[name] = replies(int(count * scale), dimension, place, times(count))
            print(name, shown(figures[name]), flush=True)
        figures["memory in MiB"] = second_process(place)
        print("memory in MiB", figures["memory in MiB"], flush=True)
    for count in MESSAGES:
        name = f"{count:,} messages of {DIMENSION}"
        figures[name] = messages(int(count * scale), int(OF_REPLIES * scale), times(count))
        print(name, shown(figures[name]), figures[name]["largest difference"], flush=True)
    result = {
        "scale": scale,
        **figures,
        "threads": torch.get_num_threads(),
    }
    write_result(__file__, __doc__, result, ("torch", "numpy", "sentence-transformers"))


def shown(figures: dict[str, Any]) -> str:
    spent = ", ".join(f"{name} {1000 * value:.2f} ms" for name, value in figures["seconds"].items())
    return f"{spent}, ratio {figures['ratio']}"


if __name__ == "__main__":
    main()
