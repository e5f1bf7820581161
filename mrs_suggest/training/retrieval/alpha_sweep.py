"""The weight of the log-probability bonus in suggestions that is best on validation (`--alpha sweep`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.evaluation.comparison import evaluate_part
from mrs_suggest.evaluation.language_data import LanguageData
from mrs_suggest.evaluation.results import EvaluationConfig, summary
from mrs_suggest.suggest.answering import MODEL, Suggestion
from mrs_suggest.suggest.index.response_index import Encode, ResponseIndex

# Weights of the bonus that are tried first, in units of the scores' spread, and the largest one: there the frequency
# of the replies alone decides.
GRID = (0.0, 0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0)
MOST_UNITS = 64
UNIT_MESSAGES = 256  # whose scores measure the spread


@dataclass(frozen=True)
class AlphaSweep:
    """The result of a sweep.

    Attributes:
        unit: the standard deviation of a message's scores over that of the log-probabilities; 0 where those are equal.
        rouge: weighted ROUGE on validation for each weight that was tried, in their order.
    """

    alpha: float
    unit: float
    rouge: dict[float, float]


def sweep_alpha(encode: Encode, indexed: Sequence[tuple[LanguageData, ResponseIndex]], seed: int) -> AlphaSweep:
    """Weighted ROUGE on validation for each weight of the log-probability bonus, until the best lies inside the grid.

    The language-model score of Henderson et al. 2017 encourages frequent replies. The paper leaves it out (section
    4.1); the official training script sweeps around .5. Scores are unscaled dot products, as wide as a model makes
    them, so the grid is in units of their spread over that of the log-probabilities: `GRID` first, then twice the last
    weight while that is the best, then both midpoints next to the best.

    Args:
        encode: messages -> (n, d) vectors.
        indexed: the languages, each with its response set embedded without a bonus; their figures are averaged.
    """
    prepared = [_Vectors.of(encode, *one) for one in indexed]
    units = [unit for vectors in prepared if (unit := vectors.unit()) > 0]
    unit = sum(units) / len(units) if units else 0.0
    found: dict[float, float] = {}

    def try_weights(weights: Iterable[float]) -> float:
        for weight in (float(f"{weight:.3g}") for weight in weights):
            if weight not in found:
                found[weight] = sum(vectors.rouge(weight, seed) for vectors in prepared) / len(prepared)
        return max(found, key=lambda weight: (found[weight], -weight))  # the smallest of several

    best = try_weights(unit * factor for factor in GRID)
    while best == max(found) and 0 < best < MOST_UNITS * unit:
        best = try_weights([2 * best])
    tried = sorted(found)
    at = tried.index(best)
    best = try_weights((best + beside) / 2 for beside in (*tried[max(at - 1, 0) : at], *tried[at + 1 : at + 2]))
    print(f"--alpha sweep: {best:g}; weighted ROUGE on validation {found[best]:.4f}, without a bonus {found[0.0]:.4f}")
    return AlphaSweep(best, unit, dict(sorted(found.items())))


@dataclass
class _Vectors:
    """One language, embedded once for all weights; it suggests for the messages of its validation split."""

    part: LanguageData
    index: ResponseIndex
    numbers: dict[str, int]
    messages: NDArray[np.float32]
    name: str = MODEL

    @classmethod
    def of(cls, encode: Encode, part: LanguageData, index: ResponseIndex) -> Self:
        different = list(dict.fromkeys(part.validation["message"][:]))
        numbers = {message: number for number, message in enumerate(different)}
        return cls(part, index, numbers, encode(different))

    def unit(self) -> float:
        """Spread of a message's scores over the spread of the log-probabilities; 0 if either is 0."""
        if len(self.index.replies) < 2 or not (spread := float(self.index.log_probs.std(ddof=1))):
            return 0.0
        return float(self.index.scores(self.messages[:UNIT_MESSAGES]).std(axis=1, ddof=1).mean()) / spread

    def rouge(self, alpha: float, seed: int) -> float:
        system = replace(self, index=replace(self.index, alpha=alpha))
        result = evaluate_part(system, self.part, self.part.validation, seed, EvaluationConfig(ranking=False))
        return float(summary([result], seed, intervals=False)["weighted"])

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        return self.index.suggest(self.messages[[self.numbers[message] for message in messages]], k)
