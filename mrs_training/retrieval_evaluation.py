"""Evaluation of a retriever: on validation while it trains, on test beside the three baselines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from tqdm import tqdm

from mrs_metrics.tokenize import get_tokenizer
from mrs_models.baselines import MAX_TFIDF_PAIRS, MostFrequentReplies, RandomReplies, TfidfReplies
from mrs_models.response_index import ResponseIndex
from mrs_models.suggester import encode_replies
from mrs_models.systems import Retriever, System
from mrs_training.data import LanguageData, sample_rows
from mrs_training.evaluation import SystemResult, difference, evaluate_system, summary

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

METRICS = ("weighted_rouge", "mrr", "p_at_1")
BEST_METRIC = METRICS[0]  # the paper's main metric picks the checkpoint (section 3.3)
POOLED = "pooled"


def build_index(model: SentenceTransformer, part: LanguageData, alpha: float) -> ResponseIndex:
    """Embed the response set of a language."""
    responses = part.responses
    return ResponseIndex.build(
        lambda texts: encode_replies(model, texts), responses.replies, responses.clusters, responses.log_probs, alpha
    )


class ReplyEvaluator(SentenceEvaluator):
    """Weighted ROUGE of the top three, MRR and P@1 in 1-of-100 pools, on validation, pooled over languages.

    Each evaluation prints a line with the model beside the baselines, which are evaluated once.
    """

    def __init__(self, parts: list[LanguageData], alpha: float, seed: int) -> None:
        super().__init__()
        self.primary_metric = BEST_METRIC
        self._parts, self._alpha, self._seed = parts, alpha, seed
        self._baselines: dict[str, dict[str, Any]] = {}

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        indexes = [build_index(model, part, self._alpha) for part in self._parts]
        results = [
            _evaluate(Retriever(model, index), part, part.validation, self._seed)
            for part, index in zip(self._parts, indexes, strict=True)
        ]
        figures = summary(results, self._seed, intervals=False)
        self._baselines = self._baselines or self._evaluate_baselines(indexes)
        lines = [_line(name, facts) for name, facts in {Retriever.name: figures, **self._baselines}.items()]
        tqdm.write(f"validation, step {steps}: " + "; ".join(lines))
        return {BEST_METRIC: figures["weighted"], "mrr": figures["mrr"], "p_at_1": figures["p@1"]}

    def _evaluate_baselines(self, indexes: list[ResponseIndex]) -> dict[str, dict[str, Any]]:
        results: dict[str, list[SystemResult]] = {}
        for part, index in zip(self._parts, indexes, strict=True):
            for system in _baselines(part, index, self._seed):
                results.setdefault(system.name, []).append(_evaluate(system, part, part.validation, self._seed))
        return {name: summary(rows, self._seed, intervals=False) for name, rows in results.items()}


def compare_on_test(
    model: SentenceTransformer, parts: list[LanguageData], indexes: dict[str, ResponseIndex], seed: int
) -> tuple[dict[str, Any], dict[str, list[list[str]]]]:
    """The model and the three baselines on the test split.

    Returns:
        The figures: `systems` -> name -> language or `pooled` -> figures, `differences` -> baseline -> intervals of
        the model's lead, pooled and per language, `signatures` -> language -> metric -> signature. And the model's
        suggestions by language, in the order of the test split.
    """
    results: dict[str, list[SystemResult]] = {}
    for part in parts:
        index = indexes[part.language]
        for system in (Retriever(model, index), *_baselines(part, index, seed)):
            results.setdefault(system.name, []).append(_evaluate(system, part, part.test, seed))
    own = results[Retriever.name]
    scopes: dict[str, slice] = {POOLED: slice(None)} | {part.language: slice(i, i + 1) for i, part in enumerate(parts)}
    figures = {
        "systems": {
            name: {scope: summary(rows[where], seed) for scope, where in scopes.items()}
            for name, rows in results.items()
        },
        "differences": {
            name: {scope: difference(own[where], rows[where], seed) for scope, where in scopes.items()}
            for name, rows in results.items()
            if name != Retriever.name
        },
        "pool_size": min(result.pool_size for result in own),
        "signatures": {result.language: result.signatures for result in own},
    }
    return figures, {result.language: result.suggestions for result in own}


def _baselines(part: LanguageData, index: ResponseIndex, seed: int) -> Iterator[System]:
    yield RandomReplies(index, seed)
    yield MostFrequentReplies(
        (reply for batch in part.train.iter(batch_size=100_000) for reply in batch["reply"]), index, seed
    )
    nearest = sample_rows(part.train, MAX_TFIDF_PAIRS, seed)
    yield TfidfReplies(nearest["message"][:], nearest["reply"][:], get_tokenizer(part.language), seed)


def _evaluate(system: System, part: LanguageData, examples: Any, seed: int) -> SystemResult:
    return evaluate_system(
        system,
        part.language,
        examples["message"][:],
        examples["reply"][:],
        part.responses.replies,
        seed,
    )


def _line(name: str, figures: dict[str, Any]) -> str:
    return f"{name} ROUGE {figures['weighted']:.4f} MRR {figures['mrr']:.3f}"


def grouped_signatures(figures: dict[str, Any]) -> list[str]:
    """Every signature of the figures once, with all languages that share it."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for language, texts in figures["signatures"].items():
        for text in texts.values():
            before, _, after = text.partition(f"|lang:{language}")
            grouped.setdefault((before, after), []).append(language)
    return sorted(f"{before}|lang:{','.join(codes)}{after}" for (before, after), codes in grouped.items())
