"""Fits on validation how likely it is that a ranker's suggestions are used; see
`mrs_suggest.suggest.ranking.trigger`."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.reranking import rerank
from mrs_suggest.suggest.ranking.trigger import USED, Trigger, as_features, risk_coverage
from mrs_suggest.training.retrieval.ranker_tuning import Asked

FEWEST = 50  # examples, and at least a tenth of these on either side; ours: fewer give no table to speak of
FOLDS = 5  # ours


def add_trigger(
    rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked], seed: int = 0, used: float = USED
) -> dict[str, LanguageRanker]:
    """The rankers with one trigger for all languages; without one where validation has too few examples.

    Args:
        rankers: tuned, with their generator.
        asked: language -> its validation messages.
        used: weighted ROUGE of the best of three against the real reply from which it counts as used.
    """
    features, hits = _outcomes(rankers, asked, used)
    trigger = fit_trigger(features, hits, seed, used)
    return {
        language: replace(one, settings=replace(one.settings, trigger=trigger)) for language, one in rankers.items()
    }


def coverage(rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked]) -> list[tuple[float, float, float]]:
    """The risk/coverage curve of rankers with a trigger on other messages, such as those of the test split; see
    `mrs_suggest.suggest.ranking.trigger.risk_coverage`. Empty without a trigger."""
    trigger = next(iter(rankers.values())).settings.trigger
    if trigger is None:
        return []
    features, hits = _outcomes(rankers, asked, trigger.used)
    return risk_coverage(trigger.probability(features), hits)


def _outcomes(
    rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked], used: float
) -> tuple[NDArray[np.float64], list[bool]]:
    """(n, 3) features of all messages, and whether one of three suggestions is as near to the reply as `used`."""
    features, hits = [], []
    for language, of in asked.items():
        ranker = rankers[language]
        for number, (message, vector) in enumerate(of.rows()):
            features.append(ranker.certainty(message, vector))
            hits.append(bool(of.rouge(_suggested(ranker, message, vector), number).max(initial=0.0) >= used))
    return as_features(features), hits


def fit_trigger(features: NDArray[np.float64], used: ArrayLike, seed: int = 0, level: float = USED) -> Trigger | None:
    """A logistic model, and an isotonic table of what it says of examples that it was not fitted on.

    Args:
        features: (n, 3), see `mrs_suggest.suggest.ranking.trigger.FEATURES`.
        used: (n,) whether one of the suggestions was.
        seed: of the folds by which examples are left out.
        level: weighted ROUGE that `used` stands for.

    Returns:
        None where there are too few examples, or too few of either outcome.
    """
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    hits = np.asarray(used, bool)
    if len(hits) < FEWEST or min(hits.sum(), (~hits).sum()) < FEWEST // 10:
        return None
    centre, scale = features.mean(0), features.std(0)
    scaled = (features - centre) / np.where(scale > 0, scale, 1)
    left_out = np.zeros(len(hits))
    for fitted, tested in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(scaled, hits):
        left_out[tested] = LogisticRegression().fit(scaled[fitted], hits[fitted]).decision_function(scaled[tested])
    whole = LogisticRegression().fit(scaled, hits)
    least = 1 / (len(hits) + 2)  # Laplace's rule: nothing is certain
    table = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(left_out, hits)
    weights = whole.coef_[0] / np.where(scale > 0, scale, 1)
    return Trigger(
        tuple(map(float, weights)),
        float(whole.intercept_[0] - weights @ centre),
        tuple(map(float, table.X_thresholds_)),
        tuple(map(float, table.y_thresholds_)),
        level,
        tuple(risk_coverage(table.predict(left_out), hits)),
    )


def _suggested(ranker: LanguageRanker, message: str, vector: NDArray[np.float32]) -> list[str]:
    """The three replies that are served."""
    if ranker.second is None:
        found = ranker.suggest(message, vector, SUGGESTIONS)
    else:
        (found,) = rerank(ranker, [message], vector[None], SUGGESTIONS)
    return [suggestion.reply for suggestion in found]
