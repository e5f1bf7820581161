"""A ranker's steps: `LanguageRanker` against the same steps through sentence-transformers and scikit-learn.

Workload: 45,000 replies of six random words and 200,000 remembered messages of eight, with seeded random vectors of
384; one message at a time. Search in replies and in messages: exact scores of all, and of each reply its nearest
message; the rival is `semantic_search` with the messages' replies pooled from its hits. Choice of three: among the 100
best; the rival scores each pair with `mrs_metrics.rouge`, as a reranker without stored n-grams must. Character TF-IDF:
cosines with 20,000 of the messages (an inverted index of all takes minutes to build); the rival is scikit-learn's
TfidfVectorizer and a sparse product. Answers must be equal.

Run: python benchmarks/bench_ranker.py [--scale F]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from sentence_transformers.util import dot_score, semantic_search
from sklearn.feature_extraction.text import TfidfVectorizer
from timing import seconds, write_result

from mrs_metrics.rouge import WEIGHTS, f1_by_order, prepare_official
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.char_tfidf import CharTfidf
from mrs_suggest.suggest.ranking.choice import choose_expected, softmax
from mrs_suggest.suggest.ranking.memory import MessageMemory
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.training.retrieval.ranker_tuning import WIDTH

REPLIES, MESSAGES, LEXICAL, DIMENSION = 45_000, 200_000, 20_000, 384


def texts(rng: np.random.Generator, count: int, words: int) -> list[str]:
    """Random words, frequent ones more often (Zipf's law)."""
    drawn = np.minimum(rng.zipf(1.3, (count, words)), 5_000)
    return [" ".join(f"w{number}" for number in row) for row in drawn]


def unit(rng: np.random.Generator, count: int) -> np.ndarray:
    vectors = rng.standard_normal((count, DIMENSION), np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def compare(ours: Callable[[], object], rival: Callable[[], object], times: int = 20) -> dict[str, float]:
    return {"ours": seconds(ours, times), "rival": seconds(rival, times)}


def searches(rng: np.random.Generator, replies: int, messages: int) -> dict[str, dict[str, float]]:
    vectors, query = torch.from_numpy(unit(rng, replies)), unit(rng, 1)
    index = ResponseIndex.build(lambda _: vectors, [f"reply {number}" for number in range(replies)])
    asked, whole = torch.from_numpy(query), torch.from_numpy(index.vectors).float()
    found = semantic_search(asked, whole, top_k=3, score_function=dot_score)[0]
    assert index.search(asked, 3)[0][0].tolist() == [hit["corpus_id"] for hit in found], "other replies"
    of = np.sort(rng.integers(0, replies, messages))
    kept = unit(rng, messages)
    memory = MessageMemory.build([""] * messages, kept, of, limit=messages, ngrams=False)
    remembered = torch.from_numpy(memory.vectors).float()

    def rival() -> np.ndarray:
        hits = semantic_search(asked, remembered, top_k=messages, score_function=dot_score)[0]
        best = np.full(replies, -1.0, np.float32)
        for hit in hits:
            reply = of[hit["corpus_id"]]
            best[reply] = max(best[reply], hit["score"])
        return best

    def ours() -> np.ndarray:
        return memory.nearest(memory.cosines(query[0]))

    np.testing.assert_allclose(ours(), rival()[memory.replies], atol=1e-5)
    return {
        "search in replies": compare(
            lambda: index.search(asked, 3), lambda: semantic_search(asked, whole, top_k=3, score_function=dot_score)
        ),
        "search in messages": {"ours": seconds(ours, 20), "rival": seconds(rival, 1)},
    }


def choice(rng: np.random.Generator) -> dict[str, float]:
    replies, tokenizer = texts(rng, WIDTH, 6), get_tokenizer("en")
    ngrams, probabilities = ReplyNgrams.build(replies, tokenizer), softmax(rng.standard_normal(WIDTH), 0.3)

    def rival() -> list[int]:
        read = [prepare_official(reply, tokenizer) for reply in replies]
        table = [[sum(w * f for w, f in zip(WEIGHTS, f1_by_order(a, b), strict=True)) for b in read] for a in read]
        return choose_expected(probabilities, table, 3)

    def ours() -> list[int]:
        return choose_expected(probabilities, ngrams.similarities(range(WIDTH)), 3)

    assert ours() == rival(), "other choices"
    return compare(ours, rival)


def lexical(rng: np.random.Generator, messages: int) -> dict[str, float]:
    stored, asked = texts(rng, messages, 8), texts(rng, 1, 8)[0]
    index = CharTfidf.build(stored)
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 4), sublinear_tf=True)
    matrix = vectorizer.fit_transform(f" {text} " for text in stored).T.tocsr()

    def rival() -> np.ndarray:
        return np.asarray((vectorizer.transform([f" {asked} "]) @ matrix).toarray()[0])

    np.testing.assert_allclose(index.cosines(asked), rival(), atol=1e-5)
    return compare(lambda: index.cosines(asked), rival)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of replies and messages (default 1)")
    scale = parser.parse_args().scale
    rng = np.random.default_rng(20241108)
    figures = {
        **searches(rng, int(REPLIES * scale), int(MESSAGES * scale)),
        "choice of three": choice(rng),
        "character TF-IDF": lexical(rng, int(LEXICAL * scale)),
    }
    for name, found in figures.items():
        ratio = found["rival"] / found["ours"]
        print(f"{name}: ours {1000 * found['ours']:.2f} ms, rival {1000 * found['rival']:.2f} ms, ratio {ratio:.2f}")
    result = {
        "scale": scale,
        **{n: {"seconds": s, "ratio": round(s["rival"] / s["ours"], 2)} for n, s in figures.items()},
        "threads": torch.get_num_threads(),
    }
    write_result(__file__, __doc__, result, ("torch", "numpy", "scikit-learn"))


if __name__ == "__main__":
    main()
