"""Cosines of character n-gram TF-IDF between a message and stored ones, by an inverted index.

The same vectors as scikit-learn's `TfidfVectorizer(analyzer="char", ngram_range=(1, 4), sublinear_tf=True)` on texts
with a space at both ends (a test compares them). Its text module takes two seconds to import and holds its vocabulary
in a Python dictionary; here n-grams are 64-bit hashes in a sorted array that can be memory-mapped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

ORDERS = (1, 2, 3, 4)  # chosen on the validation split of the embedded sample, among 1-4, 2-4 and 2-5
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, from the golden ratio: spreads neighbouring code points


@dataclass(frozen=True)
class CharTfidf:
    """N stored texts; create it with `build`.

    Attributes:
        grams: (G,) uint64 hashes of the n-grams, ascending.
        idf: (G,) float32 `ln((1 + N) / (1 + texts with it)) + 1`.
        starts: (G + 1,) int64; n-gram g has the entries `starts[g]` to `starts[g + 1]` of `texts` and `weights`.
        texts: (P,) int32 numbers of stored texts.
        weights: (P,) float32 entries of their normalised vectors.
        size: N.
    """

    grams: NDArray[np.uint64]
    idf: NDArray[np.float32]
    starts: NDArray[np.int64]
    texts: NDArray[np.int32]
    weights: NDArray[np.float32]
    size: int

    @classmethod
    def build(cls, texts: Sequence[str]) -> Self:
        """Index texts, at least one."""
        if not texts:
            raise ValueError("Expected at least one text to index.")
        counted = [_counted(text) for text in texts]
        rows = np.repeat(np.arange(len(texts), dtype=np.int32), [len(grams) for grams, _ in counted])
        all_grams = np.concatenate([grams for grams, _ in counted])
        frequencies = np.concatenate([frequency for _, frequency in counted])
        grams, columns, documents = np.unique(all_grams, return_inverse=True, return_counts=True)
        idf = (np.log((1 + len(texts)) / (1 + documents)) + 1).astype(np.float32)
        weights = frequencies * idf[columns]
        norms = np.sqrt(np.bincount(rows, weights.astype(np.float64) ** 2, minlength=len(texts)))
        weights = (weights / norms[rows]).astype(np.float32)
        order = np.argsort(columns, kind="stable")
        starts = np.concatenate([[0], np.cumsum(documents)]).astype(np.int64)
        return cls(grams, idf, starts, rows[order], weights[order], len(texts))

    def cosines(self, text: str) -> NDArray[np.float32]:
        """(N,) cosines of a text with the stored ones."""
        found, frequencies = _counted(text)
        places = np.minimum(np.searchsorted(self.grams, found), len(self.grams) - 1)
        known = self.grams[places] == found
        places, weights = places[known], frequencies[known] * self.idf[places[known]]
        if not len(places):
            return np.zeros(self.size, np.float32)
        weights /= np.linalg.norm(weights)
        lengths = self.starts[places + 1] - self.starts[places]
        entries = np.repeat(self.starts[places] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        products = self.weights[entries] * np.repeat(weights, lengths)
        return np.bincount(self.texts[entries], products, minlength=self.size).astype(np.float32)

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "grams": self.grams.view(np.int64),
            "idf": self.idf,
            "starts": self.starts,
            "texts": self.texts,
            "weights": self.weights.astype(np.float16),
            "size": np.array([self.size]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The index that `arrays` wrote, with weights rounded to float16; KeyError or ValueError if it is damaged."""
        grams, starts, texts = arrays["grams"].view(np.uint64), arrays["starts"], arrays["texts"]
        weights, size = arrays["weights"].astype(np.float32), int(arrays["size"][0])
        fits = len(starts) == len(grams) + 1 == len(arrays["idf"]) + 1 and len(texts) == len(weights) == starts[-1]
        if not fits or size < 1 or (len(texts) and not 0 <= texts.min() <= texts.max() < size):
            raise ValueError("the arrays of the n-gram index do not match")
        return cls(grams, arrays["idf"].astype(np.float32), starts, texts, weights, size)


def _counted(text: str) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
    """The distinct n-grams of a text, and 1 + ln of how often each occurs."""
    folded = f" {' '.join(text.lower().split())} "
    points = np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    hashes = [_hashes(points, order) for order in ORDERS if order <= len(points)]
    grams, counts = np.unique(np.concatenate(hashes), return_counts=True)
    return grams, (1 + np.log(counts)).astype(np.float32)


def _hashes(points: NDArray[np.uint64], order: int) -> NDArray[np.uint64]:
    """(len - order + 1,) hashes of the n-grams of one order, which enters them."""
    length = len(points) - order + 1
    value = np.full(length, order, np.uint64)
    for offset in range(order):
        value = (value ^ points[offset : offset + length]) * _MULTIPLIER
        value ^= value >> np.uint64(29)
    return value
