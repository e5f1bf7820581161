"""Ranking with a generator: the first stage's best replies and those that the generator writes, scored together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.answering import Suggestion
from mrs_suggest.suggest.ranking.choice import WIDTH
from mrs_suggest.suggest.ranking.language_ranker import GENERATED, LanguageRanker
from mrs_suggest.suggest.ranking.second_stage import GENERATOR_PART, SecondStage

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Candidates:
    """The candidates of the second stage: r replies of the index, and w that the generator wrote and the index lacks.

    Attributes:
        rows: (r,) of the index.
        written: w texts.
        parts: (r + w, p) standardised parts of the first stage.
        likely: (r + w,) the generator's part, standardised over them.
    """

    rows: NDArray[np.int64]
    written: list[str]
    parts: Array
    likely: Array

    def texts(self, ranker: LanguageRanker) -> list[str]:
        """The r + w replies."""
        return [*(ranker.index.replies[row] for row in self.rows), *self.written]


def find_candidates(
    ranker: LanguageRanker, message: str, vector: Array, written: Sequence[str], width: int = WIDTH, scored: bool = True
) -> Candidates:
    """The `width` best replies by the first stage, no two of a cluster, and the replies `written`.

    A written reply that is in the index becomes that row. Any other is scored by the first stage as an unknown reply of
    a pool: its own direct score, a share of the score of the nearest remembered reply, and the lowest log-probability.

    Args:
        scored: whether the generator scores them; otherwise `likely` is 0.
    """
    written = list({normalise_reply(reply): reply for reply in reversed(written)}.values())[::-1]  # the first of each
    own = ranker.weighed(message, vector)
    (parts, scores), replies = ranker.mixed(own), ranker.known(written)
    rows = ranker.best(scores, width)
    clusters = ranker.index.clusters
    for row in replies.rows[replies.share == 1]:
        if clusters[row] not in clusters[rows]:
            rows = np.append(rows, row)
    new = np.flatnonzero(replies.share < 1)
    texts, stage = [written[int(number)] for number in new], _stage(ranker)
    first = parts[rows]
    if texts:
        zeros = np.zeros(len(texts), np.float32)
        direct = stage.encode_replies(texts) @ vector if "direct" in ranker.weighted_names() else zeros
        first = np.concatenate([first, ranker.pool_parts(own, replies, new, direct)])
    found = Candidates(rows, texts, first, np.zeros(len(first), np.float32))
    return replace(found, likely=stage.likely(message, found.texts(ranker))) if scored else found


def mixed(ranker: LanguageRanker, candidates: Candidates, weight: float | None = None) -> Array:
    """(r + w,) scores of both stages; `weight` replaces the generator's own."""
    weight = _weight(ranker) if weight is None else weight
    return np.asarray(candidates.parts @ ranker.weights + np.float32(weight) * candidates.likely)


def candidate_similarities(ranker: LanguageRanker, candidates: Candidates) -> NDArray[np.float64]:
    """(r + w, r + w) weighted ROUGE between candidates."""
    rows = candidates.rows
    stored = ranker.similarities(rows)
    if not candidates.written:
        return stored
    table = _stage(ranker).similarities(candidates.texts(ranker))
    table[: len(rows), : len(rows)] = stored
    return table


def rerank(ranker: LanguageRanker, messages: Sequence[str], vectors: Array, k: int) -> list[list[Suggestion]]:
    """As `LanguageRanker.suggest` for several messages, with the generator's part and its replies."""
    written = _stage(ranker).write(messages)
    rows = zip(messages, vectors, written, strict=True)
    width, scored = max(WIDTH, k), _weight(ranker) != 0
    return [_suggest(ranker, find_candidates(ranker, *row, width, scored), k) for row in rows]


def _suggest(ranker: LanguageRanker, candidates: Candidates, k: int) -> list[Suggestion]:
    scores, texts, rows = mixed(ranker, candidates), candidates.texts(ranker), candidates.rows
    order = np.argsort(-scores, kind="stable")
    places, probabilities = ranker.pick(
        scores[order], lambda: candidate_similarities(ranker, candidates)[np.ix_(order, order)], k
    )
    found = []
    for number, probability in zip(order[places], probabilities, strict=True):
        parts = dict(zip(ranker.settings.names, (candidates.parts[number] * ranker.weights).tolist(), strict=True))
        parts[GENERATOR_PART] = _weight(ranker) * float(candidates.likely[number])
        source = ranker.source(int(rows[number])) if number < len(rows) else GENERATED
        found.append(Suggestion(texts[number], float(probability), parts, source))
    return found


def rerank_pool(ranker: LanguageRanker, message: str, scores: Array, replies: Sequence[str]) -> Array:
    """(r,) scores of a pool's replies: the first stage's, and the generator's part over all of the pool."""
    weight = np.float32(_weight(ranker))
    return np.asarray(scores + weight * _stage(ranker).likely(message, replies)) if weight else scores


def _weight(ranker: LanguageRanker) -> float:
    return float(ranker.mixture.weights.get(GENERATOR_PART, 0.0))


def _stage(ranker: LanguageRanker) -> SecondStage:
    assert ranker.second is not None
    return ranker.second
