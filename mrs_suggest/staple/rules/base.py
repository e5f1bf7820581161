"""What every rule has in common: a rule chooses, among the hypotheses of a prompt, those that are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.staple.lists import Gold, Lists
from mrs_suggest.staple.pooling import Floats

LOWER_IS_BETTER = ("rank", "best_rank", "mean_rank")


class Choice(NamedTuple):
    """What a rule chooses.

    Attributes:
        kept: (n,) whether a row is.
        score: (n,) what that was decided by; None if the file has it already.
    """

    kept: NDArray[np.bool_]
    score: Floats | None = None


@dataclass(frozen=True)
class Fitting:
    """How rules are fitted; each reads what concerns it.

    Attributes:
        by: the feature that `top` and `threshold` order by; None: the rank, and the log-probability by the number of
            tokens.
        features: that learned rules use; None: those of the file but the scores of other filters.
        sample_weights: `none`, or `learner`: accepted translations count in the fit by their learner weight.
        calibration: `isotonic`, `platt`, or `auto`, see `mrs_suggest.staple.rules.expected_f1`.
        seed: of folds, initial weights and draws.
    """

    by: str | None = None
    features: tuple[str, ...] | None = None
    sample_weights: str = "none"
    calibration: str = "auto"
    seed: int = 0


class Rule(ABC):
    """A fitted rule.

    Attributes:
        name: in commands and files.
        score_name: the column that a filtered file gets; None: none.
    """

    name: ClassVar[str]
    score_name: ClassVar[str | None] = None

    @classmethod
    @abstractmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        """The features that a fit uses, of those that a file has."""

    @classmethod
    @abstractmethod
    def fit(cls, lists: Lists, gold: Gold, fitting: Fitting) -> Self:
        """Fit it for macro weighted F1.

        Raises:
            InputError: the lists do not suffice.
        """

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """Those that `choose` reads, in their order."""

    @abstractmethod
    def choose(self, lists: Lists) -> Choice:
        """Choose among the hypotheses."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What makes up the rule, for JSON."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What makes up the rule, for safetensors."""
        return {}

    @classmethod
    @abstractmethod
    def stored(cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], features: tuple[str, ...]) -> Self:
        """The rule that `settings`, `arrays` and `features` came from.

        Raises:
            ValueError, KeyError, TypeError: they are no such rule's.
        """

    def described(self) -> str:
        """What it does, in a few words."""
        return " ".join(f"{key}={value}" for key, value in self.settings().items())


def score_by(lists: Lists, name: str) -> Floats:
    """(n,) a feature as a score of which higher is better."""
    column = lists.features[name]
    return -column if name in LOWER_IS_BETTER else column
