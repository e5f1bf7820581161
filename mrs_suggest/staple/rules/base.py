"""The interface of rules: a rule chooses which hypotheses of a prompt are kept."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.lists import Labels, Lists
from mrs_suggest.staple.pooling import Floats

LOWER_IS_BETTER = ("rank", "best_rank", "mean_rank")
UNLEARNED = ("score", "probability", "rank")  # the first two are written by filters and leak what those were tuned on


class Choice(NamedTuple):
    """The choice of a rule.

    Attributes:
        kept: (n,) whether each row is kept.
        score: (n,) the deciding score; None if the file has it already.
    """

    kept: NDArray[np.bool_]
    score: Floats | None = None


@dataclass(frozen=True)
class Fitting:
    """How rules are fitted; each rule reads what concerns it.

    Attributes:
        by: the feature that `top` and `threshold` order by; None: rank, and log-probability per token.
        features: of learned rules; None: those of the file except the scores of other filters.
        seed: of folds, initial weights and draws.
    """

    by: str | None = None
    features: tuple[str, ...] | None = None
    seed: int = 0


class Rule(ABC):
    """A fitted rule: a dataclass whose fields are JSON values, arrays, or mappings of names to arrays.

    Attributes:
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
    def fit(cls, lists: Lists, gold: Labels, fitting: Fitting) -> Self:
        """Fit the rule for macro weighted F1."""

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """The features that `choose` reads, in their order."""

    @abstractmethod
    def choose(self, lists: Lists) -> Choice:
        """Choose among the hypotheses."""

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The fields as JSON values and as arrays, for a file; `stored` is the inverse."""
        settings: dict[str, Any] = {}
        arrays: dict[str, NDArray[Any]] = {}
        for one in fields(self):  # type: ignore[arg-type]  # every rule is a dataclass
            value = getattr(self, one.name)
            if isinstance(value, Mapping):
                arrays |= {f"{one.name}.{key}": array for key, array in value.items()}
            else:
                (arrays if isinstance(value, np.ndarray) else settings)[one.name] = value
        return settings, arrays

    @classmethod
    def stored(cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The rule with these parts; TypeError if a field is missing or unknown."""
        values = dict(settings)
        for name, array in arrays.items():
            field, dot, key = name.partition(".")
            if dot:
                values.setdefault(field, {})[key] = array
            else:
                values[field] = array
        return cls(**values)

    def described(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.parts()[0].items() if key != "names")


@dataclass(frozen=True, eq=False)
class Learned(Rule):
    """A rule that is learned from features.

    Attributes:
        names: of the features, in the order of the model's columns.
    """

    score_name: ClassVar[str | None] = "probability"
    names: Sequence[str]

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        if fitting.features is not None:
            return fitting.features
        chosen = tuple(name for name in features if name not in UNLEARNED)
        if not chosen:
            raise InputError("The file has no features to learn from; add them with `mrs staple combine`.")
        return chosen

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.names)


def score_by(lists: Lists, name: str) -> Floats:
    """(n,) a feature as a score of which higher is better."""
    column = lists.features[name]
    return -column if name in LOWER_IS_BETTER else column
