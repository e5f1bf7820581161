"""Metrics of multilingual reply suggestion: pure functions by topic, and thin `evaluate` modules over them.

Each topic is a flat file that works alone (`tokenize`, `ngrams`, `rouge`, `distinct`, `ranking`, `significance`,
`signature`); the folders `mrs_rouge` and `dist_n` hold the `evaluate` modules. The names below are imported from
their topics on first use (PEP 562), so that `import mrs_metrics` costs nothing. Bad arguments raise
ValueError with one full sentence.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrs_metrics.bleu import score_suggestions as score_bleu
    from mrs_metrics.distinct import distinct_n, expectation_adjusted_distinct
    from mrs_metrics.figures import aggregate
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
# name -> topic, and the name there if it differs. Not by `mrs_suggest.common.lazy`: this package imports nothing of the
# project.
_HOMES = {
    "aggregate": "figures",
    "bootstrap_interval": "significance",
    "distinct_n": "distinct",
    "expectation_adjusted_distinct": "distinct",
    "get_tokenizer": "tokenize",
    "paired_bootstrap_interval": "significance",
    "permutation_test": "significance",
    "score_bleu": "bleu:score_suggestions",
    "score_languages": "language_match",
    "score_losses": "perplexity",
    "score_rankings": "ranking",
    "score_rouge": "rouge:score_examples",
    "score_similarity": "similarity",
    "score_translations": "translations_f1",
    "score_xglue_task": "xglue:score_task",
}

if not TYPE_CHECKING:  # else a type checker would accept any name of the package

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        topic, _, attribute = _HOMES[name].partition(":")
        return getattr(importlib.import_module(f"{__name__}.{topic}"), attribute or name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
