"""The figures of any metric's scores, for callers that do not know which metric's they are."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrs_metrics.bleu import BleuScores
    from mrs_metrics.language_match import LanguageScores
    from mrs_metrics.perplexity import PerplexityScores
    from mrs_metrics.ranking import RankingScores
    from mrs_metrics.rouge import RougeScores
    from mrs_metrics.similarity import SimilarityScores
    from mrs_metrics.translations_f1 import WeightedF1Scores
    from mrs_metrics.xglue import XglueScores

    Scores = (
        BleuScores
        | LanguageScores
        | PerplexityScores
        | RankingScores
        | RougeScores
        | SimilarityScores
        | WeightedF1Scores
        | XglueScores
    )


def aggregate(scores: Scores) -> dict[str, float]:
    """Return the figures of a metric by name: what `aggregate` of the scores' own topic returns.

    >>> from mrs_metrics import score_rouge
    >>> round(aggregate(score_rouge([["Yes, of course.", "No"]], ["Yes!"]))["weighted"], 4)
    0.0556
    """
    figures: dict[str, float] = importlib.import_module(type(scores).__module__).aggregate(scores)
    return figures
