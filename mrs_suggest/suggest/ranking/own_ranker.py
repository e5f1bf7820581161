"""Ranks replies that the training conversations lack: by their texts, and by example messages if they have any.

Each part of a score is compared with the scores that the same reply gets for foreign messages, which it does not
answer: (score - mean) / deviation. So a reply that is near to every message has no lead, and the weights need neither
conversations nor a certain encoder. The score of a suggestion is the share of the foreign messages whose best reply
fits worse, so it means the same in every set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.array_files import load_arrays, save_arrays
from mrs_suggest.models.starting_points import OWN_RANKER
from mrs_suggest.suggest.answering import Suggestion
from mrs_suggest.suggest.index.response_index import ByLanguage, Encode, ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.ranking.char_tfidf import CharTfidf
from mrs_suggest.suggest.ranking.memory import unit_length

# Chosen on the build half of benchmarks/desk and on pairs of mrs-everyday, with the encoder that ships and e5-small.
WEIGHTS = {
    "direct": 2.0,  # message vector . reply vector
    "text": 1.0,  # cosine of the message's vector and that of the reply read as a message
    "tfidf_text": 1.5,  # character TF-IDF of message and reply
    "nearest": 4.0,  # cosine of the nearest example message
    "tfidf_nearest": 3.0,  # as nearest, by character TF-IDF
}
PRIOR = 0.25  # of a log-probability; ours: a reply that is given ten times as often leads by half a deviation
MIN_SCORE = 0.1  # ours: there, one in ten foreign messages gets nothing, and own messages lose few fitting replies
FITS = 0.5  # the least score of a reply that fits the kind of a short message
LEVELS = 101
Array = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class OwnRanker:
    """N replies with E example messages in all; create it with `build`.

    Attributes:
        index: the R replies to suggest from.
        rows: (R,) int64 their numbers among the N.
        vectors: (N + E, d) message vectors of norm 1 of the replies, then of the examples.
        ngrams: of the same texts.
        owners: (E,) int64 the reply of each example, ascending.
        means: (N, p) of each reply's parts for foreign messages.
        scales: (N, p) what a part's distance from its mean counts; 0 for parts that a reply lacks.
        levels: (101,) quantiles of the best total that a foreign message gets.
        least: the score of a reply that fits worst.
    """

    index: ResponseIndex
    rows: Rows
    vectors: Array
    ngrams: CharTfidf
    owners: Rows
    means: Array
    scales: Array
    levels: Array
    least: float = 0.0

    @classmethod
    def build(
        cls, index: ResponseIndex, examples: Sequence[Sequence[str]], encode: Encode, foreign: Sequence[str]
    ) -> Self:
        """Measure the replies of an index on messages that they do not answer.

        Args:
            examples: of each reply, messages that it answers.
            encode: messages -> (n, d) vectors.
            foreign: at least two messages.
        """
        texts = [*index.replies, *chain.from_iterable(examples)]
        ngrams = _first(CharTfidf.build([*texts, *foreign]), len(texts))
        rows = np.arange(len(index.replies))
        owners = np.repeat(rows, [len(some) for some in examples])
        empty = np.zeros((len(rows), len(WEIGHTS)), np.float32)
        ranker = cls(
            index, rows, unit_length(encode(texts)), ngrams, owners, empty, empty, np.zeros(LEVELS, np.float32)
        )
        asked = list(zip(foreign, encode(list(foreign)), strict=True))
        total, products = np.zeros(empty.shape), np.zeros((*empty.shape, len(WEIGHTS)))
        for message, vector in asked:
            found = ranker.raw(message, vector).astype(np.float64)
            total += found
            products += found[:, :, None] * found[:, None, :]
        means = total / len(foreign)
        covariances = products / len(foreign) - means[:, :, None] * means[:, None, :]
        deviations = np.sqrt(np.maximum(np.einsum("npp->np", covariances), 0))
        scales = np.where(deviations > 1e-4, np.array(list(WEIGHTS.values())) / np.maximum(deviations, 1e-4), 0)
        spread = np.sqrt(np.maximum(np.einsum("np,npq,nq->n", scales, covariances, scales), 1e-12))
        scales /= spread[:, None]
        ranker = replace(ranker, means=means.astype(np.float32), scales=scales.astype(np.float32))
        best = [ranker.totals(ranker.parts(message, vector)).max() for message, vector in asked]
        return replace(ranker, levels=np.quantile(best, np.linspace(0, 1, LEVELS)).astype(np.float32))

    def suggest(self, message: str, vector: Array, k: int) -> list[Suggestion]:
        """The k best replies, no two of a cluster, best first."""
        parts = self.parts(message, vector)
        totals = self.totals(parts)
        scores = self.least + (1 - self.least) * np.interp(totals, self.levels, np.linspace(0, 1, LEVELS))
        order = np.argsort(-totals, kind="stable")
        first = np.sort(np.unique(self.index.clusters[order], return_index=True)[1])[:k]
        named = [dict(zip(WEIGHTS, row, strict=True)) for row in parts.tolist()]
        return [Suggestion(self.index.replies[row], float(scores[row]), named[row]) for row in order[first]]

    def part(self, rows: Rows, fitting: bool = False) -> Self:
        """The ranker of the replies with the numbers `rows` of the index, in this order.

        Args:
            fitting: they fit the kind of the (short) messages, so their least score is `FITS`.
        """
        least = FITS if fitting else self.least
        return replace(self, index=self.index.part(rows), rows=self.rows[rows], least=least)

    def parts(self, message: str, vector: Array) -> Array:
        """(R, p) weighted parts of each reply's total."""
        return (self.raw(message, vector) - self.means[self.rows]) * self.scales[self.rows]

    def totals(self, parts: Array) -> Array:
        """(R,) totals: about mean 0 and deviation 1 for foreign messages; replies that are given often lead."""
        return np.asarray(parts.sum(1) + PRIOR * (self.index.log_probs - self.index.log_probs.mean()))

    def raw(self, message: str, vector: Array) -> Array:
        """(R, p) parts before they are compared; -1 for the examples of a reply without examples."""
        direct = self.index.vectors @ vector
        both = []
        for cosines in (self.vectors @ unit_length(vector), self.ngrams.cosines(message)):
            nearest = np.full(len(self.means), -1, np.float32)
            np.maximum.at(nearest, self.owners, cosines[len(self.means) :])
            both.append((cosines[: len(self.means)][self.rows], nearest[self.rows]))
        (text, near), (tfidf_text, tfidf_near) = both
        return np.stack([direct, text, tfidf_text, near, tfidf_near], -1).astype(np.float32)

    def save(self, folder: Path) -> None:
        arrays: dict[str, np.ndarray] = {"vectors": self.vectors.astype(np.float16), "owners": self.owners}
        arrays |= {"means": self.means, "scales": self.scales, "levels": self.levels}
        ngrams = {f"ngrams.{name}": array for name, array in self.ngrams.arrays().items()}
        save_arrays({**arrays, **ngrams}, folder / OWN_RANKER)

    @classmethod
    def load(cls, folder: Path, index: ResponseIndex) -> Self:
        """Read what `save` wrote.

        Raises:
            InputError: the file is damaged, or belongs to another index.
        """
        try:
            arrays = load_arrays(folder / OWN_RANKER)
            ngrams = {n.removeprefix("ngrams."): array for n, array in arrays.items() if n.startswith("ngrams.")}
            texts, owners = CharTfidf.from_arrays(ngrams), np.asarray(arrays["owners"], np.int64)
            vectors = np.asarray(arrays["vectors"], np.float32)
            rows = np.arange(len(index.replies))
            means, scales, levels = (np.asarray(arrays[name], np.float32) for name in ("means", "scales", "levels"))
            ranker = cls(index, rows, vectors, texts, owners, means, scales, levels)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise InputError(f"{folder / OWN_RANKER}: damaged ({error}); {again(folder)}.") from None
        shape, size = (len(rows), len(WEIGHTS)), len(rows) + len(owners)
        fits = ranker.means.shape == ranker.scales.shape == shape and ranker.levels.shape == (LEVELS,)
        fits = fits and vectors.shape == (size, index.vectors.shape[1])
        if not fits or texts.size != size or (len(owners) and not 0 <= owners.min() <= owners.max() < len(rows)):
            raise InputError(f"{folder / OWN_RANKER}: made for another response index; {again(folder)}.")
        return ranker


class OwnRankers(ByLanguage[OwnRanker]):
    """The rankers of a model's own replies by language, in the folders of its indexes."""

    def __init__(self, model_folder: Path, indexes: ResponseIndexes) -> None:
        self._folder, self._indexes = model_folder / ResponseIndexes.FOLDER, indexes
        super().__init__(code for code in indexes if (self._folder / code / OWN_RANKER).is_file())

    def read(self, language: str) -> OwnRanker:
        return OwnRanker.load(self._folder / language, self._indexes[language])


def _first(ngrams: CharTfidf, size: int) -> CharTfidf:
    """The first texts, with the vocabulary and the weights of all."""
    stay = ngrams.texts < size
    starts = np.concatenate([[0], np.cumsum(stay)])[ngrams.starts].astype(np.int64)
    return replace(ngrams, starts=starts, texts=ngrams.texts[stay], weights=ngrams.weights[stay], size=size)
