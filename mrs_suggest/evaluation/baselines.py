"""Baselines for a trained retriever: random replies, the most frequent ones, those of the nearest training message.

Ties in a pool are broken at random (seeded): otherwise the pessimistic treatment of ties would rank a baseline with few
distinct scores below chance.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.answering import Suggestion

TIE_NOISE = 1e-9  # smaller than any difference between counts, and than those between cosines that matter
CHUNK = 64  # messages compared with all training messages at a time: at most 100 MB of similarities
# The most training pairs for TF-IDF (a seeded sample of larger splits): its search is exhaustive.
MAX_TFIDF_PAIRS = 200_000
Tokenize = Callable[[str], list[str]]


class RandomReplies:
    """Different replies drawn at random from the response set; the score is always 0."""

    name = "Random"

    def __init__(self, replies: Sequence[str], seed: int) -> None:
        self._replies = replies
        self._seed = seed

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        rng = np.random.default_rng(self._seed)
        k = min(k, len(self._replies))
        drawn = (rng.choice(len(self._replies), k, replace=False) for _ in messages)
        return [[Suggestion(self._replies[i], 0.0) for i in numbers] for numbers in drawn]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        return np.random.default_rng(self._seed).random(pools.shape)


class MostFrequentReplies:
    """The same replies for every message: the most frequent training replies in the response set, scored by count."""

    name = "Most frequent"

    def __init__(self, training_replies: Iterable[str], replies: Sequence[str], seed: int) -> None:
        self._counts = Counter(normalise_reply(reply) for reply in training_replies)
        counted = (Suggestion(reply, float(self._counts[normalise_reply(reply)])) for reply in replies)
        self._ranked = sorted(counted, key=lambda suggestion: -suggestion.score)
        self._seed = seed

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        return [self._ranked[:k] for _ in messages]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        counts = np.array([self._counts[normalise_reply(reply)] for reply in candidates], dtype=np.float64)
        return np.asarray(counts[pools] + _tie_noise(self._seed, pools))


class TfidfReplies:
    """The replies of the nearest training messages by TF-IDF cosine (scikit-learn), nearest message first.

    It may suggest any training reply, even one that is not in the response set. The score of a candidate is the largest
    cosine between the message and the training messages with this reply.

    Args:
        messages, replies: the training pairs of the language.
        tokenize: text -> tokens; the metric's tokenizer of the language.
    """

    name = "TF-IDF"

    def __init__(self, messages: Sequence[str], replies: Sequence[str], tokenize: Tokenize, seed: int) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._vectorizer = TfidfVectorizer(tokenizer=tokenize, token_pattern=None, lowercase=True)
        numbers = {message: number for number, message in enumerate(dict.fromkeys(messages))}
        self._matrix = self._vectorizer.fit_transform(numbers).T.tocsr()
        self._answers: list[list[str]] = [[] for _ in numbers]
        self._askers: dict[str, list[int]] = {}
        for message, reply in zip(messages, replies, strict=True):
            self._answers[numbers[message]].append(reply)
            self._askers.setdefault(normalise_reply(reply), []).append(numbers[message])
        self._seed = seed

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        rng = np.random.default_rng(self._seed)
        # Equally near messages (often with cosine 0) come in random order, not in the order of the file.
        noisy = (row + TIE_NOISE * rng.random(len(row)) for row in self._similarities(messages))
        return [self._nearest(row, k) for row in noisy]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        askers = [self._askers.get(normalise_reply(reply), []) for reply in candidates]
        rows = [
            [similarity[askers[candidate]].max() if askers[candidate] else 0.0 for candidate in pool]
            for similarity, pool in zip(self._similarities(messages), pools, strict=True)
        ]
        return np.asarray(np.array(rows) + _tie_noise(self._seed, pools))

    def _similarities(self, messages: Sequence[str]) -> Iterator[np.ndarray]:
        for some in in_batches(messages, CHUNK):
            yield from (self._vectorizer.transform(some) @ self._matrix).toarray()

    def _nearest(self, similarity: np.ndarray, k: int) -> list[Suggestion]:
        # Neighbours may share their replies: try few neighbours, then all.
        few = min(16 * k, len(similarity))
        top = np.argpartition(-similarity, few - 1)[:few]
        found = self._answers_of(top[np.argsort(-similarity[top])], similarity, k)
        if len(found) == k or few == len(similarity):
            return found
        return self._answers_of(np.argsort(-similarity), similarity, k)

    def _answers_of(self, order: np.ndarray, similarity: np.ndarray, k: int) -> list[Suggestion]:
        found: dict[str, Suggestion] = {}
        for number in order:
            for reply in self._answers[number]:
                found.setdefault(normalise_reply(reply), Suggestion(reply, float(similarity[number])))
                if len(found) == k:
                    return list(found.values())
        return list(found.values())


def _tie_noise(seed: int, pools: np.ndarray) -> np.ndarray:
    return np.random.default_rng(seed).random(pools.shape) * TIE_NOISE


BASELINES = (RandomReplies.name, MostFrequentReplies.name, TfidfReplies.name)
