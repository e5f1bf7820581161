"""Detects a message's language among those that a model answers: naive Bayes over character n-grams.

Character n-grams separate languages even in messages of a few words (Cavnar and Trenkle 1994, "N-gram-based text
categorization"; naive Bayes as in Lui and Baldwin 2012, "langid.py"). The n-grams of the training texts that are most
frequent in any language are kept. The others are ignored, so a message in another script, or of emoji alone, is not
assigned to any language.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.text.language_id import UNDETERMINED
from mrs_suggest.models.starting_points import DETECTOR

# The probability from which a detected language is used: the lowest multiple of .05 with which 97 % of the detected
# languages are right, for two-word pieces of messages of the embedded sample's validation split (whole messages are all
# right); test_language_detection.py checks it.
SURE = 0.8
# Chosen by the loss on the same pieces.
ORDERS = (1, 2, 3, 4)  # among 1-3, 1-4, 1-5 and 2-4
FLOOR = 3e-4  # the share of a language's texts that have an n-gram unseen in training; among 1e-2 to 1e-4
MOST_NGRAMS = 11_000  # ours: 280 kB for ten languages
LONGEST = 1000  # characters of a message that are read
_DIGITS = re.compile(r"\d+")  # of no language


class LanguageDetector:
    """Detects languages; create it with `train` or `load`.

    Args:
        languages: their codes.
        ngrams: G different n-grams.
        weights: (G, languages) natural logarithms of the share of a language's texts that have the n-gram, less their
            mean over the languages.

    Raises:
        ValueError: their sizes differ.

    Example:
        >>> detector = LanguageDetector.train({"en": ["the cat", "the dog"], "es": ["el gato", "el perro"]})
        >>> detector.rank("the bird")[0][0], detector.rank("123")
        ('en', [('en', 0.5), ('es', 0.5)])
    """

    def __init__(self, languages: Sequence[str], ngrams: Sequence[str], weights: NDArray[np.floating]) -> None:
        self.languages = list(languages)
        self._weights = weights.astype(np.float32)
        self._ngrams = {ngram: number for number, ngram in enumerate(ngrams)}
        if weights.shape != (len(self._ngrams), len(set(languages))) or not np.isfinite(weights).all():
            raise ValueError("the tables of the language detector do not match")

    @classmethod
    def train(cls, texts: Mapping[str, Iterable[str]]) -> Self:
        shares: dict[str, dict[str, float]] = {}
        for language, own in texts.items():
            different = dict.fromkeys(own)
            counts = Counter(ngram for text in different for ngram in set(_ngrams(text)))
            shares[language] = {ngram: count / len(different) for ngram, count in counts.items() if count > 1}
        most: dict[str, float] = {}
        for own_shares in shares.values():
            for ngram, share in own_shares.items():
                most[ngram] = max(share, most.get(ngram, 0.0))
        kept = sorted(most, key=lambda ngram: (-most[ngram], ngram))[:MOST_NGRAMS]
        rows = [[own.get(ngram, 0.0) + FLOOR for own in shares.values()] for ngram in kept]
        weights = np.log(np.array(rows).reshape(len(kept), len(shares)))
        weights -= weights.mean(axis=1, keepdims=True)
        return cls(list(shares), kept, weights.astype(np.float16))

    def rank(self, message: str) -> list[tuple[str, float]]:
        """The languages with their probabilities, most probable first; all equal if no n-gram is known."""
        found = [self._ngrams[ngram] for ngram in sorted(self._ngrams.keys() & set(_ngrams(message)))]
        # N-grams that share characters are not independent, so their sum is overconfident. Divided by the root of their
        # number it is calibrated: on the pieces of `SURE`, .91 on average, of which 90 % are right.
        scores = self._weights[found].sum(axis=0) / max(1.0, len(found)) ** 0.5
        probabilities = np.exp(scores - scores.max())
        probabilities /= probabilities.sum()
        order = np.argsort(-probabilities, kind="stable")
        return [(self.languages[number], float(probabilities[number])) for number in order]

    def identify(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        """The most probable language of each text with its probability; `und` with 0.0 if no n-gram is known."""
        rows = map(self.rank, texts)
        return [
            ranked[0] if len(ranked) == 1 or ranked[0][1] > ranked[-1][1] else (UNDETERMINED, 0.0) for ranked in rows
        ]

    def save(self, folder: Path) -> None:
        """Write `languages.safetensors` to a model's folder."""
        tables = {"languages": _as_bytes(self.languages), "ngrams": _as_bytes(self._ngrams)}
        save_file({**tables, "weights": self._weights.astype(np.float16)}, folder / DETECTOR)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file that `save` wrote; InputError if it is damaged."""
        try:
            tables = load_file(path)
            return cls(_as_texts(tables["languages"]), _as_texts(tables["ngrams"]), tables["weights"])
        except (SafetensorError, KeyError, ValueError, OSError) as error:
            raise InputError(f"{path}: damaged ({error}); {again(path)}.") from None


def _ngrams(text: str) -> Iterator[str]:
    plain = _DIGITS.sub(" ", unicodedata.normalize("NFKC", text[:LONGEST])).lower()
    folded = f" {' '.join(plain.split())} "
    return (folded[at : at + order] for order in ORDERS for at in range(len(folded) - order + 1))


def _as_bytes(texts: Iterable[str]) -> NDArray[np.uint8]:
    return np.array(bytearray("\n".join(texts).encode()), np.uint8)


def _as_texts(lines: NDArray[np.uint8]) -> list[str]:
    text = lines.tobytes().decode()
    return text.split("\n") if text else []
