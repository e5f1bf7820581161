"""A character n-gram language model with interpolated modified Kneser-Ney smoothing (Chen and Goodman 1999, section 3).

CCNet filters by a 5-gram Kneser-Ney model of SentencePiece's pieces (Wenzek et al. 2020, section 3.4). Characters are
ours: they take no tokenizer, and a reference text of some hundred sentences is enough. As there, texts are lower-cased
and digits become 0. The estimates are exact, with nothing pruned, and defined as those of KenLM's `lmplz` (Heafield et
al. 2013, section 2): counts of the highest order and of n-grams that begin a text are taken as they are, all others are
numbers of different characters before, and single characters are interpolated with the uniform distribution.

All n-grams are nodes of a trie: one of order k is its first k - 1 characters (a node of order k - 1) and its last one.
"""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from mrs_suggest.common import __version__
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import Table

ORDER = 6  # ours: of 3 to 7, held-out perplexity of dialogues hardly falls after it, and the n-grams double
BATCH_CHARACTERS = 1 << 18  # scored together: 2 MB an array
FORMAT = "mrs-character-ngrams"
# When counts of counts give no discounts, as with an alphabet of which no letter is rare: those of KenLM's
# `--discount_fallback`.
FALLBACK = (0.5, 1.0, 1.5)
_BEGIN, _END, _UNKNOWN = 0, 1, -1  # symbols; characters follow
_BEGIN_MARK, _END_MARK = "\x02", "\x03"  # normalised texts have no control characters
_CODES = 0x110000

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


def _plain(character: str) -> str | None:
    category = unicodedata.category(character)
    return "0" if category == "Nd" else None if category == "Cc" else character


_PLAIN = Table(_plain)


def model_text(text: str) -> str:
    """A text as the model sees it: lower case, digits as 0, no control characters.

    >>> model_text("Am 12. MAI")
    'am 00. mai'
    """
    return text.lower().translate(_PLAIN)


@dataclass(frozen=True)
class Level:
    """The n-grams of one order k; n of them.

    Attributes:
        keys: (n,) ascending: prefix (a node of order k - 1) times the number of symbols, plus the last symbol; of
            order 1 the symbols themselves.
        log_p: (n,) natural logarithm of the interpolated probability of the last symbol after the others.
        backoff: (n,) natural logarithm of the weight of the lower order after this n-gram; empty for the highest order.
    """

    keys: Ids
    log_p: NDArray[np.float32]
    backoff: NDArray[np.float32]


class CharacterModel:
    """The probability of each character after those before it; make it with `train` or `load`.

    Args:
        alphabet: (A,) code points, ascending, that the reference has.
        levels: of order 1 to the model's order.
        unknown: logarithm of the probability of a character that is not in the alphabet, before any context.

    Example:
        >>> model = CharacterModel.train(["a bird sings", "a bird flies"], order=3)
        >>> good, bad = model.perplexities(["a bird", "zq xv"])
        >>> bool(good < bad)
        True
    """

    def __init__(
        self, alphabet: NDArray[np.uint32], levels: Sequence[Level], unknown: float, facts: dict[str, Any] | None = None
    ) -> None:
        self.alphabet, self.levels, self.unknown = alphabet, list(levels), unknown
        self.facts: dict[str, Any] = facts or {}
        self._symbol = _symbols(alphabet)

    @property
    def order(self) -> int:
        """Characters of the longest n-grams."""
        return len(self.levels)

    @classmethod
    def train(cls, texts: Sequence[str], order: int = ORDER) -> Self:
        """Estimate a model of all n-grams of one text or more. Peak memory: about 100 bytes per character."""
        codes = _codes(texts)
        alphabet = np.unique(codes[codes > ord(_END_MARK)])
        ids = _symbols(alphabet)[codes]
        counted = _count(ids, len(alphabet) + 2, order)
        levels, unknown, discounts = _estimate(counted, len(alphabet) + 2)
        facts = {
            "texts": len(texts),
            "characters": len(codes) - 2 * len(texts),
            "ngrams": [len(level.keys) for level in levels],
            "discounts": discounts,
        }
        return cls(alphabet, levels, unknown, facts)

    def log_probabilities(self, texts: Sequence[str]) -> tuple[Floats, Ids]:
        """(P,) natural logarithms of the probabilities of all characters of the texts, and of their ends, in order; and
        (P,) the number of the text of each."""
        codes = _codes(texts)
        ids = self._symbol[codes]
        starts = codes == ord(_BEGIN_MARK)
        width = len(self.alphabet) + 2
        nodes = ids  # of the n-gram of the current order that ends at each position; -1: none
        base = self.levels[0]
        found = np.where(ids >= 0, base.log_p[ids], np.float64(self.unknown))
        for lower, level in zip(self.levels, self.levels[1:], strict=False):
            before = np.where(starts, -1, np.roll(nodes, 1))
            nodes = np.full_like(nodes, -1)
            asked = np.flatnonzero((before >= 0) & (ids >= 0))
            wanted = before[asked] * width + ids[asked]
            places = np.minimum(np.searchsorted(level.keys, wanted), max(len(level.keys) - 1, 0))
            there = level.keys[places] == wanted if len(level.keys) else np.zeros(len(wanted), dtype=bool)
            nodes[asked[there]] = places[there]
            held = nodes >= 0
            weights = np.where(before >= 0, lower.backoff[before], np.float32(0))
            found = np.where(held, level.log_p[nodes] if len(level.keys) else 0.0, found + weights)
        numbers = np.cumsum(starts) - 1
        return found[~starts], numbers[~starts]

    def perplexities(self, texts: Sequence[str]) -> Floats:
        """(n,) perplexity of each text per character, its end counted as one: exp of the mean of -log p.

        A text's perplexity does not depend on the others.
        """
        results = [np.empty(0)]
        start = characters = 0
        for end, text in enumerate(texts, start=1):
            characters += len(text) + 2
            if characters >= BATCH_CHARACTERS or end == len(texts):
                found, numbers = self.log_probabilities(texts[start:end])
                sums = np.bincount(numbers, found, minlength=end - start)  # in order: the same in any batch
                results.append(np.exp(-sums / np.bincount(numbers, minlength=end - start)))
                start, characters = end, 0
        return np.concatenate(results)

    def save(self, path: Path) -> None:
        """Write the model to one safetensors file, its settings as JSON in the header; equal models, equal bytes."""
        tensors: dict[str, NDArray[Any]] = {"alphabet": self.alphabet}
        for number, level in enumerate(self.levels, start=1):  # keys, log_p, backoff
            tensors |= {f"{number}.{name}": array for name, array in vars(level).items()}
        config = {
            "format": FORMAT, "order": self.order, "unknown": self.unknown, "facts": self.facts, "version": __version__,
        }  # fmt: skip
        save_file(tensors, path, {"config": json.dumps(config)})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `save` wrote; InputError if it is missing, damaged, or not such a model."""
        if not path.is_file():
            raise InputError(f"{path}: no such file; expected a model that `mrs data corpus` wrote.")
        try:
            with safe_open(path, "numpy") as file:
                config = json.loads((file.metadata() or {})["config"])
                if config["format"] != FORMAT:
                    raise ValueError(f"its format is {config['format']}")
                alphabet = file.get_tensor("alphabet")
                levels = [
                    Level(*(file.get_tensor(f"{number}.{name}") for name in ("keys", "log_p", "backoff")))
                    for number in range(1, int(config["order"]) + 1)
                ]
            if not _fits(alphabet, levels):
                raise ValueError("its tables do not fit each other")
            return cls(alphabet, levels, float(config["unknown"]), config["facts"])
        except (SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
            raise InputError(
                f"{path}: not a model that `mrs data corpus` wrote, or damaged ({error}); pass another, or train "
                "one with --reference."
            ) from None


def _fits(alphabet: NDArray[np.uint32], levels: Sequence[Level]) -> bool:
    """Whether the tables fit each other, so that no lookup can leave them."""
    width, below = len(alphabet) + 2, 1
    fits = bool(levels) and alphabet.dtype == np.uint32 and bool((alphabet[1:] > alphabet[:-1]).all())
    fits = fits and (not len(alphabet) or int(alphabet[-1]) < _CODES)
    for number, level in enumerate(levels, start=1):
        size = len(level.keys)
        fits = fits and level.keys.dtype == np.int64 and level.log_p.shape == (size,)
        fits = fits and level.backoff.shape == (size if number < len(levels) else 0,)
        fits = fits and bool(np.isfinite(level.log_p).all() and np.isfinite(level.backoff).all())
        fits = fits and (not size or bool((np.diff(level.keys) > 0).all() and level.keys[0] >= 0))
        fits = fits and (not size or int(level.keys[-1]) < below * width) and (number > 1 or size == width)
        below = size
    return fits


def _codes(texts: Sequence[str]) -> NDArray[np.uint32]:
    """The code points of all texts, each between the two marks."""
    joined = "".join(f"{_BEGIN_MARK}{model_text(text)}{_END_MARK}" for text in texts)
    return np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _symbols(alphabet: NDArray[np.uint32]) -> Ids:
    """A table from code points to symbols."""
    table = np.full(_CODES, _UNKNOWN, dtype=np.int64)
    table[alphabet] = np.arange(2, len(alphabet) + 2)
    table[ord(_BEGIN_MARK)], table[ord(_END_MARK)] = _BEGIN, _END
    return table


@dataclass
class _Counted:
    """The n-grams of one order in a text: keys as in `Level`, how often each occurs, its node without the first symbol,
    and whether it begins a text."""

    keys: Ids
    counts: Ids
    suffixes: Ids
    begins: NDArray[np.bool_]


def _count(ids: Ids, width: int, order: int) -> list[_Counted]:
    """All n-grams of texts, order by order, from the symbols of the texts one after the other."""
    symbols = np.arange(width)
    counted = [_Counted(symbols, np.bincount(ids, minlength=width), np.zeros(width, dtype=np.int64), symbols == _BEGIN)]
    nodes = ids
    for _ in range(2, order + 1):
        below = counted[-1]
        before = np.where(ids == _BEGIN, -1, np.roll(nodes, 1))
        there = np.flatnonzero(before >= 0)
        keys, places, counts = np.unique(before[there] * width + ids[there], return_inverse=True, return_counts=True)
        suffixes = np.empty(len(keys), dtype=np.int64)
        suffixes[places] = nodes[there]
        nodes = np.full_like(nodes, -1)
        nodes[there] = places
        counted.append(_Counted(keys, counts, suffixes, below.begins[keys // width]))
    return counted


def _estimate(counted: Sequence[_Counted], width: int) -> tuple[list[Level], float, list[list[float]]]:
    """The levels, the logarithm for an unknown character, and the three discounts of each order."""
    levels: list[Level] = []
    discounts: list[list[float]] = []
    lower = np.full(1, 1 / width)  # the uniform distribution over characters, end and unknown (not the begin)
    unknown = 0.0
    for number, level in enumerate(counted):
        counts = level.counts
        if number + 1 < len(counted):
            different = np.bincount(counted[number + 1].suffixes, minlength=len(counts))
            counts = np.where(level.begins, counts, different)
        prefixes = level.keys // width
        if number == 0:
            counts[_BEGIN], prefixes = 0, np.zeros(width, dtype=np.int64)
        rates = _discounts(counts)
        taken = np.array([0.0, *rates])[np.minimum(counts, 3)]
        contexts = len(lower)
        sums = np.bincount(prefixes, counts, minlength=contexts)
        weights = np.bincount(prefixes, taken, minlength=contexts)
        weights = np.divide(weights, sums, out=np.ones(contexts), where=sums > 0)
        below = lower[level.suffixes]
        p = (counts - taken) / sums[prefixes] + weights[prefixes] * below
        if number == 0:
            p[_BEGIN] = 1.0  # never predicted; its logarithm must be finite
            unknown = float(np.log(weights[0] / width))
        else:
            levels[-1] = Level(levels[-1].keys, levels[-1].log_p, np.log(weights).astype(np.float32))
        levels.append(Level(level.keys, np.log(p).astype(np.float32), np.empty(0, np.float32)))
        discounts.append([round(rate, 6) for rate in rates])
        lower = p
    return levels, unknown, discounts


def _discounts(counts: Ids) -> tuple[float, float, float]:
    """The discounts of n-grams that occur once, twice, more often (Chen and Goodman 1999, equation 17)."""
    t = [int((counts == number).sum()) for number in range(1, 5)]
    if all(t[:3]):
        y = t[0] / (t[0] + 2 * t[1])
        rates = (1 - 2 * y * t[1] / t[0], 2 - 3 * y * t[2] / t[1], 3 - 4 * y * t[3] / t[2])
        if all(0 < rate <= most for most, rate in enumerate(rates, start=1)):
            return rates
    return FALLBACK
