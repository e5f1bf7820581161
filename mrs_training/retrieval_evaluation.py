"""Evaluation of a retriever while it trains, and the weight of the log-probability bonus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from tqdm import tqdm

from mrs_models.response_index import ResponseIndex
from mrs_models.suggester import encode_replies
from mrs_models.systems import Retriever
from mrs_training.comparison import ValidationLog, evaluate_part
from mrs_training.data import LanguageData
from mrs_training.evaluation import Measures, summary

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

METRICS = ("weighted_rouge", "mrr", "p_at_1")
BEST_METRIC = METRICS[0]  # the paper's main metric picks the checkpoint (section 3.3)
# Weights of the bonus that are tried; the official training script looks around 0.5.
ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def build_index(model: SentenceTransformer, part: LanguageData, alpha: float = 0.0) -> ResponseIndex:
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
        self._alpha = alpha
        self._log = ValidationLog(parts, seed, ranking=True)

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        figures, lines = self._log.evaluate(lambda part: Retriever(model, build_index(model, part, self._alpha)))
        tqdm.write(f"validation, step {steps}: " + "; ".join(lines))
        return {BEST_METRIC: figures["weighted"], "mrr": figures["mrr"], "p_at_1": figures["p@1"]}


def sweep_alpha(
    model: SentenceTransformer, index: ResponseIndex, part: LanguageData, seed: int, alphas: Sequence[float] = ALPHAS
) -> dict[float, float]:
    """Weighted ROUGE on validation for each weight of the log-probability bonus; the set is embedded once.

    The language-model score of Henderson et al. 2017 encourages frequent replies. The paper leaves it out (section
    4.1); the official training script tries it.
    """
    return {
        alpha: summary(
            [
                evaluate_part(
                    Retriever(model, replace(index, alpha=alpha)), part, part.validation, seed, Measures(ranking=False)
                )
            ],
            seed,
            intervals=False,
        )["weighted"]
        for alpha in alphas
    }
