"""The generator's weight in a ranker, and the temperature of the choice with it, by validation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.suggest.ranking.choice import WIDTH
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.mixture import SHRINKAGE, Mixture, best_of_top
from mrs_suggest.suggest.ranking.reranking import candidate_similarities, find_candidates, mixed
from mrs_suggest.suggest.ranking.second_stage import GENERATOR_PART, SecondStage
from mrs_suggest.training.retrieval.ranker_tuning import SET_TEMPERATURES, Asked

GRID = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # next to weights that add up to 1; ours
TUNED_ON = 300  # validation messages per language, each with some 40 replies to score; ours: enough for one weight
Array = NDArray[np.float32]
_ALL = ""  # no language's code


@dataclass(frozen=True)
class _Example:
    """A validation message with its candidates.

    Attributes:
        scores: weight of the generator -> (c,) scores.
        gains: (c,) weighted ROUGE against the real reply.
        similarities: (c, c).
    """

    scores: Callable[[float], Array]
    gains: Array
    similarities: NDArray[np.float64]

    def best_of_three(self, weight: float) -> float:
        """The best gain among the three best scores."""
        return float(best_of_top(self.scores(weight)[None], self.gains[None])[0])

    def chosen(self, ranker: LanguageRanker, weight: float) -> float:
        """The best gain among the three that the ranker chooses."""
        scores = self.scores(weight)
        order = np.argsort(-scores, kind="stable")
        table = self.similarities[np.ix_(order, order)]
        return float(self.gains[order[ranker.pick(scores[order], lambda: table, SUGGESTIONS)[0]]].max())


def add_generator(
    rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked], stages: Mapping[str, SecondStage]
) -> dict[str, LanguageRanker]:
    """The rankers with a generator as second stage, its weights and the temperature of the choice.

    The weight, on top of the first stage's, which stay as they are, is the one of `GRID` with which the best of
    three gains most; per language, drawn towards the weight that is best for all as in `mixture.tune`. A language
    without validation examples takes that one.

    Args:
        rankers: by language, at least one.
        stages: language -> its second stage; the generator lacks the others.
    """
    staged = {language: replace(ranker, second=stages.get(language)) for language, ranker in rankers.items()}
    examples = {language: _examples(staged[language], of) for language, of in asked.items()}
    with_stage = [language for language in examples if staged[language].second is not None]
    weights = _weights({language: examples[language] for language in with_stage})
    for language, ranker in staged.items():
        if ranker.second is not None:
            mixture = Mixture({**ranker.mixture.weights, GENERATOR_PART: weights.get(language, weights[_ALL])})
            staged[language] = replace(ranker, mixture=mixture)
    settings = next(iter(staged.values())).settings
    if settings.choice != "expected" or not any(examples.values()):
        return staged

    def gain(temperature: float) -> float:
        found: list[float] = []
        for language, own in examples.items():
            ranker = staged[language]
            changed = replace(ranker, settings=replace(settings, temperature=temperature))
            weight = ranker.mixture.weights.get(GENERATOR_PART, 0.0)
            found += [example.chosen(changed, weight) for example in own]
        return float(np.mean(found))

    settings = replace(settings, temperature=max(SET_TEMPERATURES, key=gain))
    return {language: replace(ranker, settings=settings) for language, ranker in staged.items()}


def _examples(ranker: LanguageRanker, asked: Asked) -> list[_Example]:
    messages, vectors = asked.messages[:TUNED_ON], asked.vectors[:TUNED_ON]
    if ranker.second is None:
        return [
            _first_stage(ranker, asked, number, *row) for number, row in enumerate(zip(messages, vectors, strict=True))
        ]
    written = ranker.second.write(messages)
    found = []
    for number, row in enumerate(zip(messages, vectors, written, strict=True)):
        candidates = find_candidates(ranker, *row)
        gains = asked.rouge(candidates.texts(ranker), number)
        found.append(
            _Example(
                lambda weight, candidates=candidates: mixed(ranker, candidates, weight),  # type: ignore[misc]
                gains,
                candidate_similarities(ranker, candidates),
            )
        )
    return found


def _first_stage(ranker: LanguageRanker, asked: Asked, number: int, message: str, vector: Array) -> _Example:
    """An example of a language that the generator lacks: it has a part in the temperature that all languages share."""
    scores = ranker.rank(message, vector)
    rows = ranker.best(scores, WIDTH)
    return _Example(lambda _: scores[rows], asked.gains(ranker, number, rows), ranker.similarities(rows))


def _weights(examples: Mapping[str, Sequence[_Example]]) -> dict[str, float]:
    """Language -> weight of the generator, and under `_ALL` the one that is best for all; 0 without examples."""
    gains = {
        language: np.array([[example.best_of_three(weight) for weight in GRID] for example in own])
        for language, own in examples.items()
        if own
    }
    if not gains:
        return {_ALL: 0.0}
    everything = np.concatenate(list(gains.values())).mean(0)
    found = {_ALL: _best(everything)}
    for language, own in gains.items():
        share = len(own) / (len(own) + SHRINKAGE)
        found[language] = _best(share * own.mean(0) + (1 - share) * everything)
    return found


def _best(gains: NDArray[np.float64]) -> float:
    return GRID[int(np.argmax(gains))]  # the smallest of several
