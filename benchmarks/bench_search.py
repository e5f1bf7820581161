"""Response search: `ResponseIndex.search` against `sentence_transformers.util.semantic_search`, both exact.

Workload: a response set of 45,000 replies (the size of MRS's largest, Table 1) with seeded random vectors of 768,
every third reply in the cluster of another one; the three best replies of distinct clusters for 1 message at a time
and for 512 messages at once. The rival has no clusters: it is asked for 12 replies and the first three of distinct
clusters are taken from them. Both run on the CPU with the same threads; the answers must be equal.

Run: python benchmarks/bench_search.py [--replies N]
"""

from __future__ import annotations

import argparse

import torch
from sentence_transformers.util import dot_score, semantic_search
from timing import seconds, write_result

from mrs_suggest.suggest.index.response_index import ResponseIndex

FULL_SIZE, DIMENSION, K = 45_000, 768, 3


def make_index(size: int) -> ResponseIndex:
    """The index of the workload."""
    generator = torch.Generator().manual_seed(20210605)
    vectors = torch.randn(size, DIMENSION, generator=generator)
    clusters = [str(number - 1 if number % 3 == 0 and number else number) for number in range(size)]
    return ResponseIndex.build(lambda texts: vectors, [f"reply {number}" for number in range(size)], clusters)


def rival(index: ResponseIndex, vectors: torch.Tensor, messages: torch.Tensor) -> list[list[int]]:
    """Three replies of distinct clusters through the library's search."""
    hits = semantic_search(messages, vectors, top_k=4 * K, score_function=dot_score)
    answers = []
    for row in hits:
        seen: dict[int, int] = {}
        for hit in row:
            seen.setdefault(int(index.clusters[hit["corpus_id"]]), hit["corpus_id"])
        answers.append(list(seen.values())[:K])
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--replies", type=int, default=FULL_SIZE)
    options = parser.parse_args()
    index = make_index(options.replies)
    vectors = torch.from_numpy(index.vectors).float()
    generator = torch.Generator().manual_seed(1)
    figures = {}
    for name, batch, times in (("one message", 1, 50), ("512 messages", 512, 1)):
        messages = torch.randn(batch, DIMENSION, generator=generator)
        assert index.search(messages, K)[0].tolist() == rival(index, vectors, messages), "the answers differ"
        ours = seconds(lambda: index.search(messages, K), times)  # noqa: B023
        other = seconds(lambda: rival(index, vectors, messages), times)  # noqa: B023
        figures[name] = {"seconds": {"ours": ours, "rival": other}, "ratio": round(other / ours, 2)}
        print(f"{name}: ours {1000 * ours:.2f} ms, semantic_search {1000 * other:.2f} ms, ratio {other / ours:.2f}")
    result = {"replies": options.replies, **figures, "threads": torch.get_num_threads()}
    write_result(__file__, __doc__, result, ("torch", "sentence-transformers"))


if __name__ == "__main__":
    main()
