"""Search of one message in large response sets: against a product of all rows and `semantic_search`.

Workload: the texts of mrs-everyday in ten languages, encoded as replies by the shipped model, along 256 principal
axes in the set of 500,000, saved and loaded again; what is missing to that number are copies with noise of length
.3. Queries: 500 test messages. Up to 50,000 replies, the search multiplies all rows. Rivals on the same vectors:
numpy's product of all rows with `argpartition`, and `semantic_search`. Times are processor seconds per message, the
best of three rounds; recall is the share of the three best replies that are found. Memory, with 500,000 replies: the
proportional set size (PSS) of a process that has loaded the index and answered 64 messages, and of two.

Run: python benchmarks/bench_large_search.py [--scale F]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import concatenate_datasets
from sentence_transformers.util import dot_score, semantic_search
from timing import write_result

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.memory import principal_axes
from mrs_suggest.suggest.retrieval_suggester import reply_encoder, weights_encoder

SETS, QUERIES, K = ((45_000, 384), (200_000, 384), (500_000, 256)), 500, 3
NOISE = 0.3
READER = """
import sys
from pathlib import Path
import numpy as np
from mrs_suggest.suggest.index.response_index import ResponseIndex
if sys.argv[1]:
    index = ResponseIndex.load(Path(sys.argv[1]))
    random = np.random.default_rng(3)
    for _ in range(64):
        index.search(random.normal(size=(1, index.vectors.shape[1])).astype(np.float32), 3)
print("ready", flush=True)
sys.stdin.read()
"""


def texts_of(split: str) -> tuple[list[str], list[str]]:
    """The different messages and replies of all languages."""
    source = open_prepared("mrs-everyday")
    rows = concatenate_datasets([source.load(language, split) for language in source.languages()])
    return list(dict.fromkeys(rows["message"])), list(dict.fromkeys(rows["reply"]))


def figures_of(rows: np.ndarray, queries: np.ndarray, folder: Path) -> dict[str, Any]:
    """Recall and times in a set of these vectors; its index stays in `folder`."""
    ResponseIndex.build(lambda _: rows, [f"reply {number}" for number in range(len(rows))]).save(folder)
    index = ResponseIndex.load(folder)
    plain = np.array(rows)
    library = torch.from_numpy(plain)

    def by_numpy(query: np.ndarray) -> np.ndarray:
        scores = plain @ query
        best = np.argpartition(-scores, K)[:K]
        return best[np.argsort(-scores[best])]

    found = [set(index.search(query[None], K)[0][0].tolist()) for query in queries]
    recall = float(
        np.mean([len(own & set(by_numpy(query).tolist())) / K for own, query in zip(found, queries, strict=True)])
    )
    some = queries[:50]
    calls: dict[str, Callable[[np.ndarray], object]] = {
        "ours": lambda query: index.search(query[None], K),
        "numpy": by_numpy,
        "semantic_search": lambda query: semantic_search(
            torch.from_numpy(query[None]), library, top_k=K, score_function=dot_score
        ),
    }
    spent = {name: processor_seconds(call, some) for name, call in calls.items()}
    ratio = {name: round(spent[name] / spent["ours"], 2) for name in spent if name != "ours"}
    return {"recall at 3": recall, "seconds": spent, "ratio": ratio}


def processor_seconds(call: Callable[[np.ndarray], object], queries: np.ndarray) -> float:
    rounds = []
    for _ in range(3):
        begin = time.process_time()
        for query in queries:
            call(query)
        rounds.append((time.process_time() - begin) / len(queries))
    return min(rounds)


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
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of replies (default 1)")
    scale = parser.parse_args().scale
    model = resolve_model("everyday-retriever")
    messages, replies = texts_of("train")
    most = int(scale * SETS[-1][0])
    texts = list(dict.fromkeys([*replies, *messages]))[:most]
    vectors = encoded(reply_encoder(model), texts)
    queries = encoded(weights_encoder(model), texts_of("test")[0])
    queries = queries[np.random.default_rng(1).permutation(len(queries))[:QUERIES]]
    random = np.random.default_rng(2)
    order = random.permutation(len(vectors))
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count, dimension in SETS:
            size, name = int(count * scale), f"{count:,} replies of {dimension}"
            axes = (
                principal_axes(vectors[order[:20_000]], dimension)
                if dimension < vectors.shape[1]
                else np.eye(dimension, dtype=np.float32)
            )
            rows = vectors[order[np.arange(size) % len(order)]] @ axes
            noise = random.normal(size=(max(0, size - len(order)), dimension)).astype(np.float32)
            rows[len(order) :] += NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
            place = Path(folder) / f"{count}-{dimension}"
            figures[name] = {"real": min(size, len(order)), **figures_of(rows, queries @ axes, place)}
            print(name, figures[name], flush=True)
        figures["memory in MiB"] = second_process(place)
        print("memory in MiB", figures["memory in MiB"], flush=True)
    result = {"scale": scale, **figures, "threads": torch.get_num_threads()}
    write_result(__file__, __doc__, result, ("torch", "numpy", "sentence-transformers"))


def encoded(encode: Callable[[list[str]], np.ndarray], texts: list[str]) -> np.ndarray:
    return np.concatenate([encode(texts[begin : begin + 1024]) for begin in range(0, len(texts), 1024)])


if __name__ == "__main__":
    main()
