"""Metrics of multilingual reply suggestion: pure functions by topic, and thin `evaluate` modules over them.

Each topic is a flat file that works alone (`tokenize`, `rouge`, `distinct`, `ranking`, `significance`, ...); `modules`
has the `evaluate` modules. Bad arguments raise ValueError with one full sentence.
"""

import sys
from typing import Any

from mrs_metrics.bleu import score_suggestions as score_bleu
from mrs_metrics.distinct import distinct_n, expectation_adjusted_distinct
from mrs_metrics.language_match import score_languages
from mrs_metrics.perplexity import score_losses
from mrs_metrics.ranking import score_rankings
from mrs_metrics.rouge import score_examples as score_rouge
from mrs_metrics.significance import bootstrap_interval, paired_bootstrap_interval, permutation_test
from mrs_metrics.similarity import score_similarity
from mrs_metrics.tokenize import get_tokenizer
from mrs_metrics.translations_f1 import score_translations
from mrs_metrics.xglue import score_task as score_xglue_task

__all__ = [
    "aggregate",
    "bootstrap_interval",
    "distinct_n",
    "expectation_adjusted_distinct",
    "get_tokenizer",
    "paired_bootstrap_interval",
    "permutation_test",
    "score_bleu",
    "score_languages",
    "score_losses",
    "score_rankings",
    "score_rouge",
    "score_similarity",
    "score_translations",
    "score_xglue_task",
]


def aggregate(scores: Any) -> dict[str, float]:
    """Return the figures of any metric's scores by name, as the `aggregate` of their topic does.

    >>> round(aggregate(score_rouge([["Yes, of course.", "No"]], ["Yes!"]))["weighted"], 4)
    0.0556
    """
    figures: dict[str, float] = sys.modules[type(scores).__module__].aggregate(scores)
    return figures
