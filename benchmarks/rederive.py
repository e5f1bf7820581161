"""Recomputes the figures of the shipped model, `everyday-retriever`, on the test split of mrs-everyday.

The model that ships remembers all splits of its data, so its answers to test messages say nothing. This takes its
weights as they ship, gives it the memory and the replies that it was measured with (the training split, and the
response set of the data), and compares weighted ROUGE and MRR with those of its `run.json`. They differ slightly: the
figures were measured before the weights were stored as 8-bit floats.

Run: python benchmarks/rederive.py [LANGUAGE ...]  (all ten in about four minutes; needs `pip install '.[all]'`)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mrs_datasets.prepared.prepared import open_prepared
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.hub.baselines import SHIPPED, read_baselines
from mrs_suggest.evaluation.comparison import POOLED
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, load_language
from mrs_suggest.evaluation.results import EvaluationConfig, SystemResult, evaluate_system, summary
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.suggest.answering import MODEL, Suggestion
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker, kinds_of
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.reply_tags import ReplyTags
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester, reply_encoder
from mrs_suggest.training.retrieval.ranker_tuning import RankerOptions, remember

DATA = "mrs-everyday"
# Of one language and of all ten together; the 95 % intervals of the recorded figures are several times as wide.
TOLERANCE = {"weighted": 0.006, "mrr": 0.008}
POOLED_TOLERANCE = {"weighted": 0.002, "mrr": 0.003}


class Measured:
    """The shipped model as it was measured: a system of one language that suggests, and ranks given replies."""

    name = MODEL

    def __init__(self, model: RetrievalSuggester, language: str) -> None:
        self.encode, self.replies = model.message_vectors, reply_encoder(read_baselines()[SHIPPED].folder)
        self.part = load_language(open_prepared(DATA), language, {}, EVALUATION_SEED)
        shipped, own = model.rankers[language], self.part.responses
        index = ResponseIndex.build(self.replies, own.replies, own.clusters, own.log_probs, shipped.index.alpha)
        options = RankerOptions(shipped.settings.names, dimension=shipped.memory.vectors.shape[1])
        memory = remember(self.encode, index, [self.part.train], options, EVALUATION_SEED)
        assert memory is not None
        ngrams = ReplyNgrams.build(index.replies, get_tokenizer(language))
        kinds = kinds_of(ReplyTags.of([[tag] for tag in own.tags or []]))
        built = LanguageRanker.build(index, memory, ngrams, shipped.settings)
        self.ranker = replace(built, mixture=shipped.mixture, kinds=kinds)

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        return [self.ranker.suggest(*row, k) for row in zip(messages, self.encode(messages), strict=True)]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        replies, known = self.replies(list(candidates)), self.ranker.known(candidates)
        different = list(dict.fromkeys(messages))
        vectors = dict(zip(different, self.encode(different), strict=True))
        rows = ((text, vectors[text], own) for text, own in zip(messages, pools, strict=True))
        return np.stack([self.ranker.score_pool(text, of, known, own, replies[own] @ of) for text, of, own in rows])

    def result(self) -> SystemResult:
        """Its scores on the test split."""
        texts, seed = (self.part.test["message"][:], self.part.test["reply"][:]), EVALUATION_SEED
        return evaluate_system(self, self.part.language, *texts, self.part.responses.replies, seed, EvaluationConfig())


def differences(languages: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """How much higher the recomputed figures are than the recorded ones, by language (default: all, and `pooled`)."""
    folder = read_baselines()[SHIPPED].folder
    model = RetrievalSuggester.load_from(folder, SHIPPED)
    recorded = read_record(folder)["metrics"]["systems"][MODEL]
    results = {code: [Measured(model, code).result()] for code in languages or model.languages}
    if len(results) == len(model.languages):
        results[POOLED] = [one for (one,) in results.values()]
    found: dict[str, dict[str, float]] = {}
    for scope, some in results.items():
        figures: dict[str, Any] = summary(some, EVALUATION_SEED, intervals=False)
        assert figures["n"] == recorded[scope]["n"]
        found[scope] = {key: figures[key] - recorded[scope][key] for key in TOLERANCE}
    return found


def main(languages: Sequence[str]) -> int:
    """Print the differences; 1 if one is larger than it may be."""
    found = differences(languages)
    print(json.dumps(found, indent=2))
    wrong = [
        f"{scope} {key}"
        for scope, one in found.items()
        for key, most in (POOLED_TOLERANCE if scope == POOLED else TOLERANCE).items()
        if abs(one[key]) > most
    ]
    print(f"further from the record than they may be: {', '.join(wrong)}" if wrong else "as recorded")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
