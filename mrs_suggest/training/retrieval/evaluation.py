"""Evaluation of a retriever while it trains, and the weight of the log-probability bonus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from tqdm import tqdm

from mrs_suggest.evaluation.comparison import ValidationLog, evaluate_part
from mrs_suggest.evaluation.language_data import LanguageData
from mrs_suggest.evaluation.results import EvaluationConfig, summary
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.suggest.answering import MODEL, Suggestion
from mrs_suggest.suggest.guard.guard_space import GuardSpace
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.language_detector import LanguageDetector
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.retrieval_suggester import Retriever
from mrs_suggest.training.retrieval.ranker_generator import RankerGenerator

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

METRICS = ("rouge_mrr", "weighted_rouge", "mrr", "p_at_1")
# Ours: on open chat ROUGE alone, the paper's main metric, kept checkpoints whose MRR had fallen (docs/training.md).
BEST_METRIC = METRICS[0]
# Weights of the bonus that are tried first, in units of the scores' spread, and the largest one: there the frequency
# of the replies alone decides.
GRID = (0.0, 0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0)
MOST_UNITS = 64
UNIT_MESSAGES = 256  # whose scores measure the spread


def build_index(model: SentenceTransformer, part: LanguageData, alpha: float = 0.0) -> ResponseIndex:
    """Embed the response set of a language."""
    responses = part.responses
    return ResponseIndex.build(
        lambda texts: encode_replies(model, texts).numpy(),
        responses.replies,
        responses.clusters,
        responses.log_probs,
        alpha,
    )


class ReplyEvaluator(SentenceEvaluator):
    """Weighted ROUGE of the top three, MRR and P@1 in 1-of-100 pools, and the geometric mean of the first two, on
    validation, pooled over languages.

    Each evaluation prints a line with the model beside the baselines, which are evaluated once. ROUGE and MRR of each
    language (`weighted_rouge_es`, `mrr_es`) go to the log only.
    """

    def __init__(self, parts: list[LanguageData], alpha: float, seed: int) -> None:
        super().__init__()
        self.primary_metric = BEST_METRIC
        self._alpha = alpha
        self._log = ValidationLog(parts, seed, ranking=True)

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        figures, lines = self._log.evaluate(
            lambda part: Retriever(model, {part.language: build_index(model, part, self._alpha)})
        )
        tqdm.write(f"validation, step {steps}: " + "; ".join(lines))
        return {
            "rouge_mrr": rouge_mrr(figures["weighted"], figures["mrr"]),
            "weighted_rouge": figures["weighted"],
            "mrr": figures["mrr"],
            "p_at_1": figures["p@1"],
            **{f"weighted_rouge_{code}": own["weighted"] for code, own in self._log.by_language.items()},
            **{f"mrr_{code}": own["mrr"] for code, own in self._log.by_language.items()},
        }


def rouge_mrr(weighted: float, mrr: float) -> float:
    """The geometric mean of weighted ROUGE and MRR: a tenth more of either counts the same, however small it is.

    >>> round(rouge_mrr(0.05, 0.2), 9)
    0.1
    """
    return math.sqrt(weighted * mrr)


def sweep_alpha(model: SentenceTransformer, parts: list[LanguageData], seed: int) -> AlphaSweep:
    """Weighted ROUGE on validation for each weight of the log-probability bonus, until the best lies inside the grid.

    The language-model score of Henderson et al. 2017 encourages frequent replies. The paper leaves it out (section
    4.1); the official training script sweeps around .5. Scores are unscaled dot products, as wide as a model makes
    them, so the grid is in units of their spread over that of the log-probabilities: `GRID` first, then twice the last
    weight while that is the best, then both halves beside the best.

    Args:
        parts: the languages; their figures are averaged.
    """
    prepared = [_Vectors.of(model, part) for part in parts]
    units = [unit for vectors in prepared if (unit := vectors.unit()) > 0]
    unit = sum(units) / len(units) if units else 0.0
    found: dict[float, float] = {}

    def try_weights(weights: Iterable[float]) -> float:
        for weight in (float(f"{weight:.3g}") for weight in weights):
            if weight not in found:
                found[weight] = sum(vectors.rouge(weight, seed) for vectors in prepared) / len(prepared)
        return best_alpha(found)

    best = try_weights(unit * factor for factor in GRID)
    while best == max(found) and 0 < best < MOST_UNITS * unit:
        best = try_weights([2 * best])
    tried = sorted(found)
    at = tried.index(best)
    best = try_weights((best + beside) / 2 for beside in (*tried[max(at - 1, 0) : at], *tried[at + 1 : at + 2]))
    print(f"--alpha sweep: {best:g}; weighted ROUGE on validation {found[best]:.4f}, without a bonus {found[0.0]:.4f}")
    return AlphaSweep(best, unit, dict(sorted(found.items())))


def best_alpha(found: dict[float, float]) -> float:
    """The weight with the highest figure, the smallest if several have it."""
    return max(found, key=lambda weight: (found[weight], -weight))


@dataclass(frozen=True)
class RetrievalParts:
    """A dual encoder and what is derived from it after training.

    Attributes:
        indexes: language -> its response set, embedded.
        sweep: how the weight of the bonus was found; None if it was given.
        rankers: language -> its ranker; empty if none was asked for.
        detector: of the languages; None if there is only one.
        generator: that of the rankers; None if none was asked for.
        guard: what the trained encoder makes of sensitive messages.
    """

    model: SentenceTransformer
    indexes: Mapping[str, ResponseIndex] = field(default_factory=dict)
    sweep: AlphaSweep | None = None
    rankers: Mapping[str, LanguageRanker] = field(default_factory=dict)
    detector: LanguageDetector | None = None
    generator: RankerGenerator | None = None
    guard: GuardSpace | None = None


@dataclass(frozen=True)
class AlphaSweep:
    """The result of a sweep.

    Attributes:
        alpha: the best weight.
        unit: the standard deviation of a message's scores over that of the log-probabilities; 0 where those are equal.
        rouge: weighted ROUGE on validation for each weight that was tried, in their order.
    """

    alpha: float
    unit: float
    rouge: dict[float, float]


@dataclass
class _Vectors:
    """One language, embedded once for all weights; it suggests for the messages of its validation split."""

    part: LanguageData
    index: ResponseIndex
    numbers: dict[str, int]
    messages: NDArray[np.float32]
    name: str = MODEL

    @classmethod
    def of(cls, model: SentenceTransformer, part: LanguageData) -> _Vectors:
        different = list(dict.fromkeys(part.validation["message"][:]))
        numbers = {message: number for number, message in enumerate(different)}
        return cls(part, build_index(model, part), numbers, encode_messages(model, different).numpy())

    def unit(self) -> float:
        """Spread of a message's scores over the spread of the log-probabilities; 0 if either is 0."""
        if len(self.index.replies) < 2 or not (spread := float(self.index.log_probs.std(ddof=1))):
            return 0.0
        return float(self.index.scores(self.messages[:UNIT_MESSAGES]).std(axis=1, ddof=1).mean()) / spread

    def rouge(self, alpha: float, seed: int) -> float:
        system = replace(self, index=replace(self.index, alpha=alpha))
        result = evaluate_part(system, self.part, self.part.validation, seed, EvaluationConfig(ranking=False))
        return float(summary([result], seed, intervals=False)["weighted"])

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        return self.index.suggest(self.messages[[self.numbers[message] for message in messages]], k)
