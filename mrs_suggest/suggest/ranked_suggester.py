"""Suggestions of a retriever with a ranker, to serve and to evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.suggest_arguments import answer_all, require_count, require_messages
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.suggest.answering import MODEL, Suggestion
from mrs_suggest.suggest.index.response_index import Encode, ResponseIndex
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.rankers import Rankers
from mrs_suggest.suggest.ranking.reranking import rerank, rerank_pool
from mrs_suggest.suggest.ranking.trigger import Trigger, as_features
from mrs_suggest.suggest.reply_tags import TagsByLanguage
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester, Retriever, part_of_index

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

AT_A_TIME = 256  # messages whose vectors are held at a time


class RankedSuggester(RetrievalSuggester):
    """Answers through the ranker of the message's language, or from its response set alone where it has none.

    Args:
        encode: messages -> (n, dimension) vectors.
        indexes: language -> its response index.
        rankers: language -> its ranker over that index.
        tags: language -> the tags of its replies; default: none has any.
    """

    def __init__(
        self,
        encode: Encode,
        indexes: Mapping[str, ResponseIndex],
        rankers: Mapping[str, LanguageRanker],
        tags: TagsByLanguage | None = None,
    ) -> None:
        super().__init__(encode, indexes, tags)
        self.rankers = rankers

    @classmethod
    def load_from(cls, path: Path, name: str) -> RankedSuggester:
        """As `RetrievalSuggester.load_from`, with the folder's `ranker/`.

        Raises:
            InputError: its files are missing, damaged or do not fit each other.
        """
        plain = RetrievalSuggester.load_from(path, name)
        return cls(plain._encode, plain.indexes, Rankers(path, plain.indexes), plain.tags)

    def require_language(self, language: str) -> None:
        super().require_language(language)
        if language in self.rankers and (second := self.rankers[language].second):  # a damaged one is found now
            second.generator.load()

    def restricted(self, language: str, rows: NDArray[np.int64]) -> RetrievalSuggester:
        """As `RetrievalSuggester.restricted`; the whole memory of the language still speaks for the replies."""
        if language not in self.rankers:
            return super().restricted(language, rows)
        ranker = part_of_ranker(self.rankers[language], rows)
        return RankedSuggester(self._encode, {language: ranker.index}, {language: ranker})

    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        """As `Suggester.suggest`; a score is the probability among the best candidates."""
        self.require_language(language)
        if language not in self.rankers:
            return super().suggest(messages, language, k)
        texts, count, ranker = require_messages(messages), require_count(k), self.rankers[language]
        return answer_all(texts, lambda asked: _ranked(self._encode, ranker, asked, count))

    @property
    def trigger(self) -> Trigger | None:
        return next((ranker.settings.trigger for ranker in self.rankers.values()), None)

    def used(self, messages: Sequence[str], language: str) -> list[float] | None:
        """Generated replies are not looked at: what the first stage is sure of counts."""
        if language not in self.rankers or (trigger := self.rankers[language].settings.trigger) is None:
            return None
        ranker, vectors = self.rankers[language], self._encode(list(messages))
        features = [ranker.certainty(*row) for row in zip(messages, vectors, strict=True)]
        return list(map(float, trigger.probability(as_features(features))))


def part_of_ranker(ranker: LanguageRanker, rows: NDArray[np.int64]) -> LanguageRanker:
    """A ranker of some replies, in the order of their numbers `rows`, to suggest from: it ranks no pools.

    A generator scores them and adds none of its own, since those have no tags.
    """
    return replace(
        ranker,
        index=part_of_index(ranker.index, rows),
        remembered=ranker.remembered[rows],
        share=ranker.share[rows],
        ngrams=ranker.ngrams.part(rows),
        second=None if ranker.second is None else replace(ranker.second, generated=0),
        own=None if ranker.own is None else int(np.count_nonzero(rows < ranker.own)),
    )


class RankedRetriever:
    """A trained dual encoder with rankers as a system to evaluate.

    Args:
        indexes: language -> its response index; it answers where there is no ranker.
        rankers: language -> its ranker.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        indexes: Mapping[str, ResponseIndex],
        rankers: Mapping[str, LanguageRanker],
        language: str,
        name: str = MODEL,
    ) -> None:
        self.name, self._model, self._rankers, self._language = name, model, rankers, language
        self._plain = Retriever(model, indexes, name)

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        if language not in self._rankers:
            return self._plain.suggest(messages, language, k)
        texts = require_messages(messages)
        return _ranked(lambda some: encode_messages(self._model, some).numpy(), self._rankers[language], texts, k)

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        if self._language not in self._rankers:
            return self._plain.score_pools(messages, candidates, pools)
        ranker = self._rankers[self._language]
        known = ranker.known(candidates)
        replies, vectors = (
            encode(self._model, list(texts)).numpy()
            for encode, texts in ((encode_replies, candidates), (encode_messages, messages))
        )
        scores = []
        for message, vector, rows in zip(messages, vectors, pools, strict=True):
            found = ranker.score_pool(message, vector, known, rows, replies[rows] @ vector)
            pool = [candidates[row] for row in rows]
            scores.append(found if ranker.second is None else rerank_pool(ranker, message, found, pool))
        return np.stack(scores) if scores else np.empty(pools.shape, np.float32)


def _ranked(encode: Encode, ranker: LanguageRanker, messages: list[str], k: int) -> list[list[Suggestion]]:
    answers = []
    for begin in range(0, len(messages), AT_A_TIME):
        some = messages[begin : begin + AT_A_TIME]
        vectors = encode(some)
        if ranker.second is not None:
            answers += rerank(ranker, some, vectors, k)
            continue
        answers += [ranker.suggest(message, vector, k) for message, vector in zip(some, vectors, strict=True)]
    return answers
