"""Ranks the replies of a language by a mixture of several scores, and chooses suggestions by it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.answering import Suggestion
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.char_tfidf import CharTfidf
from mrs_suggest.suggest.ranking.choice import WIDTH, choose_expected, expected_best, softmax
from mrs_suggest.suggest.ranking.memory import MessageMemory
from mrs_suggest.suggest.ranking.mixture import Mixture, standardised
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.ranking.second_stage import SecondStage
from mrs_suggest.suggest.ranking.trigger import Trigger
from mrs_suggest.suggest.reply_tags import ReplyTags

PARTS = {
    "direct": "message vector . reply vector, as in the paper",
    "nearest": "cosine of the nearest remembered message that got the reply",
    "votes": "all remembered messages that got it: T ln(sum of exp(cosine / T))",
    "tfidf_nearest": "as nearest, by character n-gram TF-IDF",
    "tfidf_votes": "as votes, by character n-gram TF-IDF",
    "log_prob": "log-probability of the reply (the bonus of Zhang et al. 2021, section 4.1)",
}
RESPONSE_SET, MEMORY, GENERATED = "set", "memory", "generated"  # sources of suggestions
DENSE, LEXICAL = ("nearest", "votes"), ("tfidf_nearest", "tfidf_votes")
# Tags of replies that answer a message in one way (the stances of mrs-everyday, without those that say anything).
KINDS = ("yes", "no", "ask", "later", "thanks", "sorry", "greet", "bye", "agree", "wish", "comfort", "congratulate")
SAME_KIND = 0.3  # ours, not tuned
Array = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class RankerSettings:
    """Settings chosen on validation for all languages of a model.

    Attributes:
        names: of the parts that are mixed.
        vote_temperature, tfidf_temperature: of `votes` and `tfidf_votes`.
        choice: how three are chosen, one of `mrs_suggest.suggest.ranking.choice.CHOICES`.
        temperature: of the distribution over the candidates, in units of the mixed score.
        width: number of candidates; `WIDTH` if a stored ranker does not name it.
        trigger: gives the probability that suggestions are used; None if validation had too few examples.
    """

    names: tuple[str, ...] = tuple(PARTS)
    vote_temperature: float = 0.05
    tfidf_temperature: float = 0.1
    choice: str = "expected"
    temperature: float = 0.3
    width: int = WIDTH
    trigger: Trigger | None = None


@dataclass(frozen=True)
class LanguageRanker:
    """The replies of one language with their memory; create it with `build`.

    Attributes:
        index: N replies with their vectors, clusters and log-probabilities.
        memory: messages whose replies are rows of the index.
        remembered: (N,) int64 the place in `memory.replies` of each reply, or of the nearest one that has messages.
        share: (N,) float32 the share of that one's score that counts; 1 for a reply with its own messages.
        ngrams: of the replies, for their similarity.
        mixture: the weights of the parts.
        second: the generator of the second stage (`mrs_suggest.suggest.ranking.reranking`), if there is one.
        own: the first `own` replies belong to the response set, the others only to the memory; None: all to the set.
        kinds: (N,) int64 the kind of answer that each reply is, -1 if none is known (`kinds_of`); None: no kinds.
    """

    index: ResponseIndex
    memory: MessageMemory
    remembered: Rows
    share: Array
    ngrams: ReplyNgrams
    settings: RankerSettings
    mixture: Mixture
    second: SecondStage | None = None
    own: int | None = None
    kinds: Rows | None = None

    @classmethod
    def build(
        cls, index: ResponseIndex, memory: MessageMemory, ngrams: ReplyNgrams, settings: RankerSettings
    ) -> LanguageRanker:
        """Find the nearest remembered reply for each reply without messages."""
        remembered = np.zeros(len(index.replies), np.int64)
        share = np.zeros(len(index.replies), np.float32)
        remembered[memory.replies] = np.arange(len(memory.replies))
        share[memory.replies] = 1
        ranker = cls(index, memory, remembered, share, ngrams, settings, Mixture())
        for row in np.flatnonzero(share == 0):
            remembered[row], share[row] = ranker.nearest_remembered(index.replies[row])
        return ranker

    def suggest(self, message: str, vector: Array, k: int) -> list[Suggestion]:
        """Up to k suggestions with their probability among the candidates, no two of a cluster, in order of choice."""
        parts, scores = self.mixed(self.weighed(message, vector))
        found = []
        for row, probability in zip(*self.choose(scores, k), strict=True):
            shares = dict(zip(self.settings.names, (parts[row] * self.weights).tolist(), strict=True))
            found.append(Suggestion(self.index.replies[row], float(probability), shares, self.source(int(row))))
        return found

    def part(self, rows: Rows) -> LanguageRanker:
        """The ranker of the replies with the numbers `rows`, in this order, to suggest from: it ranks no pools.

        A generator scores them but adds no replies, since those have no tags.
        """
        return replace(
            self,
            index=self.index.part(rows),
            remembered=self.remembered[rows],
            share=self.share[rows],
            ngrams=self.ngrams.part(rows),
            second=None if self.second is None else replace(self.second, generated=0),
            own=None if self.own is None else int(np.count_nonzero(rows < self.own)),
            kinds=None if self.kinds is None else self.kinds[rows],
        )

    def rank(self, message: str, vector: Array) -> Array:
        """(N,) mixed scores."""
        return self.mixed(self.weighed(message, vector))[1]

    def weighed(self, message: str, vector: Array) -> Array:
        """As `parts`, for the parts that have a weight."""
        return self.parts(message, vector, self.weighted_names())

    def weighted_names(self) -> list[str]:
        """The parts that have a weight."""
        return [name for name, weight in zip(self.settings.names, self.weights, strict=True) if weight]

    @cached_property
    def weights(self) -> Array:
        """(p,) of the parts."""
        return self.mixture.vector(self.settings.names)

    def parts(self, message: str, vector: Array, names: Collection[str] | None = None) -> Array:
        """(N, p) score of each reply by each part of the settings, not yet standardised.

        Args:
            names: parts to compute, the others stay 0; default: all of the settings.
        """
        settings, memory = self.settings, self.memory
        names = settings.names if names is None else names
        found: dict[str, Array] = {}
        if "direct" in names:
            found["direct"] = self.index.vectors @ vector
        if any(name in names for name in DENSE):
            found |= dict(zip(DENSE, self._by_messages(memory.cosines(vector), settings.vote_temperature), strict=True))
        if memory.ngrams is not None and any(name in names for name in LEXICAL):
            cosines = memory.ngrams.cosines(message)
            found |= dict(zip(LEXICAL, self._by_messages(cosines, settings.tfidf_temperature), strict=True))
        if "log_prob" in names:
            found["log_prob"] = self.index.log_probs
        columns = np.zeros((len(settings.names), len(self.index.replies)), np.float32)  # each together in memory
        for column, name in zip(columns, settings.names, strict=True):
            if name in names and name in found:
                column[:] = found[name]
        return columns.T

    def _by_messages(self, cosines: Array, temperature: float) -> tuple[Array, Array]:
        """(N,) nearest and votes; a reply without messages has a share of the nearest one's."""
        top = self.memory.nearest(cosines)
        of_groups = top, self.memory.votes(cosines, temperature, top)
        nearest, votes = (_shared(values[self._groups], self.share, values.min()) for values in of_groups)
        return nearest, votes

    def mixed(self, raw: Array) -> tuple[Array, Array]:
        """(N, p) standardised parts and (N,) mixed scores, from (N, p) parts of `weighed`."""
        parts, used = np.zeros(raw.shape, np.float32), np.flatnonzero(self.weights)
        parts[:, used] = standardised(raw.T[used].T)
        return parts, np.asarray(parts @ self.weights)

    def certainty(self, message: str, vector: Array, k: int = SUGGESTIONS) -> tuple[float, float, float]:
        """The features of the trigger (`trigger.FEATURES`) for a message, without the generator's part."""
        _, scores = self.mixed(self.weighed(message, vector))
        rows = self.best(scores, self.settings.width)
        probabilities, table = softmax(scores[rows], self.settings.temperature), self.ngrams.similarities(rows)
        places, _ = self.pick(scores[rows], lambda: table, k)
        nearest = float(self.memory.cosines(vector).max())
        return expected_best(places, probabilities, table), float(probabilities.max()), nearest

    def source(self, row: int) -> str:
        """The source of a reply of the index; empty if the response set is the only one."""
        if self.own is None:
            return RESPONSE_SET if self.second is not None else ""
        return RESPONSE_SET if row < self.own else MEMORY

    def choose(self, scores: Array, k: int) -> tuple[Rows, NDArray[np.float64]]:
        """Rows of up to k replies in the order of choice, and their probabilities, from (N,) mixed scores."""
        rows = self.best(scores, max(self.settings.width, k))
        places, probabilities = self.pick(scores[rows], lambda: self.similarities(rows), k)
        return rows[places], probabilities

    def similarities(self, rows: Rows) -> NDArray[np.float64]:
        """(n, n) how well one reply stands for another: their weighted ROUGE, and at least `SAME_KIND` for replies of
        one kind, so that a question gets yes, no and a question back rather than three ways to say yes."""
        table = self.ngrams.similarities(rows)
        if self.kinds is None:
            return table
        kinds = self.kinds[rows]
        return np.maximum(table, SAME_KIND * ((kinds[:, None] == kinds) & (kinds >= 0)))

    def pick(
        self, scores: Array, similarities: Callable[[], NDArray[np.float64]], k: int
    ) -> tuple[list[int], NDArray[np.float64]]:
        """Places of up to k candidates in the order of choice, and their probabilities among all candidates.

        Args:
            scores: (c,) of the candidates, best first.
            similarities: gives the (c, c) similarities between candidates, if the choice needs them.
        """
        probabilities = softmax(scores, self.settings.temperature)
        if self.settings.choice == "top":
            places = list(range(min(k, len(scores))))
        else:
            places = choose_expected(probabilities, similarities(), k)
        return places, probabilities[places]

    def best(self, scores: Array, width: int) -> Rows:
        """Rows of the best replies, best first, one from each cluster."""
        clusters = self.index.clusters
        reach = min(len(scores), 4 * width)
        while True:
            some = np.sort(np.argpartition(-scores, reach - 1)[:reach])
            order = some[np.argsort(-scores[some], kind="stable")]
            first = order[np.sort(np.unique(clusters[order], return_index=True)[1])]
            if len(first) >= width or reach == len(scores):
                return first[:width]
            reach = min(len(scores), 4 * reach)

    # --- replies that the index may lack

    def score_pool(self, message: str, vector: Array, replies: KnownReplies, rows: Rows, direct: Array) -> Array:
        """(r,) mixed scores of the replies `rows` of `replies`, on the scale of `rank`.

        A reply that the index lacks has a share of its nearest remembered reply's score from the memory, and the lowest
        log-probability.

        Args:
            direct: (r,) their products `message vector . reply vector`.
        """
        own = self.weighed(message, vector)
        return np.asarray(self.pool_parts(own, replies, rows, direct) @ self.weights)

    def pool_parts(self, own: Array, replies: KnownReplies, rows: Rows, direct: Array) -> Array:
        """(r, p) parts of such replies, standardised over the index, whose parts are `own` (N, p)."""
        places, share = replies.rows[rows], replies.share[rows]
        asked = own[places].copy()
        for column, name in enumerate(self.settings.names):
            if name == "direct":
                asked[:, column] = direct
            elif name == "log_prob":
                asked[share < 1, column] = own[:, column].min()
            else:
                asked[:, column] = _shared(asked[:, column], share, own[:, column].min())
        return standardised(asked, own)

    def known(self, replies: Sequence[str]) -> KnownReplies:
        """Find replies in the index, or the nearest remembered replies for those that it lacks."""
        rows, shares = [], []
        for reply in replies:
            row, share = self._rows.get(normalise_reply(reply)), 1.0
            if row is None:
                place, cosine = self.nearest_remembered(reply)
                row, share = int(self.memory.replies[place]), min(cosine, 0.999)  # 1 means a reply of the index
            rows.append(row)
            shares.append(share)
        return KnownReplies(np.array(rows), np.array(shares, np.float32))

    def nearest_remembered(self, reply: str) -> tuple[int, float]:
        """The place in `memory.replies` of the nearest reply by character TF-IDF, and its cosine."""
        cosines = self._reply_texts.cosines(reply)
        place = int(cosines.argmax())
        return place, min(float(cosines[place]), 1.0)

    @cached_property
    def _groups(self) -> Rows:
        """(N,) the group of messages of each reply."""
        return self.memory.groups[self.remembered]

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {normalise_reply(reply): row for row, reply in enumerate(self.index.replies)}

    @cached_property
    def _reply_texts(self) -> CharTfidf:
        return CharTfidf.build([self.index.replies[row] for row in self.memory.replies])


def kinds_of(tags: ReplyTags | None) -> Rows | None:
    """(N,) the place in `KINDS` of each reply's tag, -1 without such a tag; None if no reply has one."""
    if tags is None or not tags.rows.keys() & set(KINDS):
        return None
    kinds = np.full(tags.size, -1, np.int64)
    for number, kind in enumerate(KINDS):
        kinds[tags.rows.get(kind, [])] = number
    return kinds


@dataclass(frozen=True)
class KnownReplies:
    """n replies as rows of an index.

    Attributes:
        rows: (n,) of the reply, or of the nearest remembered one.
        share: (n,) 1 if the index has it, otherwise the cosine with that one.
    """

    rows: Rows
    share: Array


def _shared(values: Array, share: Array, floor: float) -> Array:
    """Scores of which only a share of the part above the lowest score counts."""
    return np.asarray(floor + share * (values - floor), np.float32)
