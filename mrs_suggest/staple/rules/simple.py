"""Rules with one or two numbers, which an exact search finds: the best K, a threshold, at least N votes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.filters.choice_scores import best_count, best_threshold, by_score, firsts, reaching, relative
from mrs_suggest.staple.lists import PER_TOKEN, Gold, Lists
from mrs_suggest.staple.pooling import Ints
from mrs_suggest.staple.rules.base import LOWER_IS_BETTER, Choice, Fitting, Rule, score_by

VOTES = "votes"


@dataclass(frozen=True)
class Top(Rule):
    """The best K of each prompt.

    Attributes:
        most: K.
        by: the feature that orders them.
    """

    name: ClassVar[str] = "top"
    most: int
    by: str = "rank"

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        return (fitting.by or "rank",)

    @classmethod
    def fit(cls, lists: Lists, gold: Gold, fitting: Fitting) -> Top:
        by = fitting.by or "rank"
        return cls(best_count(lists, gold, by_score(lists, score_by(lists, by)))[0], by)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.by,)

    def choose(self, lists: Lists) -> Choice:
        return Choice(_first_rows(lists, by_score(lists, score_by(lists, self.by)), self.most))

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def stored(cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], features: tuple[str, ...]) -> Top:
        return cls(_count(settings["most"]), _text(settings["by"]))


@dataclass(frozen=True)
class Threshold(Rule):
    """Those whose score reaches a threshold, and always the first of a prompt: without any it would score 0.

    The default score is the log-probability by the number of tokens, as jbrem's in the task (Khayrallah et al. 2020).

    Attributes:
        least: the threshold; None: the first alone.
        by: the feature that is the score.
        relative: whether the threshold is for the difference to the highest score of the prompt.
    """

    name: ClassVar[str] = "threshold"
    score_name: ClassVar[str | None] = "score"
    least: float | None
    by: str = PER_TOKEN
    relative: bool = False

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        by = fitting.by or PER_TOKEN
        if by in LOWER_IS_BETTER:
            raise InputError(f"--by {by}: a threshold takes a feature of which higher is better; use `--rule top`.")
        return (by,)

    @classmethod
    def fit(cls, lists: Lists, gold: Gold, fitting: Fitting) -> Threshold:
        """The better of the two kinds of thresholds."""
        by = fitting.by or PER_TOKEN
        score = lists.features[by]
        found = [(best_threshold(lists, gold, kind), kind is not score) for kind in (score, relative(lists, score))]
        (least, _), is_relative = max(found, key=lambda one: one[0][1])
        return cls(None if math.isinf(least) else least, by, is_relative)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.by,)

    def choose(self, lists: Lists) -> Choice:
        score = lists.features[self.by]
        if self.relative:
            score = relative(lists, score)
        return Choice(reaching(lists, score, np.inf if self.least is None else self.least), score)

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def stored(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], features: tuple[str, ...]
    ) -> Threshold:
        least = settings["least"]
        return cls(None if least is None else finite(least), _text(settings["by"]), _flag(settings["relative"]))


@dataclass(frozen=True)
class Votes(Rule):
    """Those that at least N members found, at most K; the first of a prompt where there are none.

    Consensus voting, as nickeilf's in the task (Li et al. 2020).

    Attributes:
        least: N.
        most: K, by rank; None: all.
    """

    name: ClassVar[str] = "votes"
    least: int
    most: int | None = None

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        return ("rank", VOTES)

    @classmethod
    def fit(cls, lists: Lists, gold: Gold, fitting: Fitting) -> Votes:
        """The best N and K of all."""
        best, found = -1.0, cls(1)
        longest = int(np.diff(lists.starts).max(initial=1))
        for least in range(1, int(np.nan_to_num(lists.features[VOTES]).max(initial=1)) + 1):
            attested = cls(least).choose(lists).kept
            rows = np.flatnonzero(attested)
            starts = np.concatenate([[0], np.cumsum(np.bincount(lists.prompt[rows], minlength=lists.prompts))])
            left = Lists(starts.astype(np.int64), {"rank": lists.features["rank"][rows]})
            most, f1 = best_count(left, gold.of(rows), by_score(left, -left.features["rank"]))
            if f1 > best + 1e-12:
                best, found = f1, cls(least, None if most >= longest else most)
        return found

    @property
    def features(self) -> tuple[str, ...]:
        return ("rank", VOTES)

    def choose(self, lists: Lists) -> Choice:
        rank = -lists.features["rank"]
        kept = lists.features[VOTES] >= self.least
        first = firsts(lists, rank)
        attested = np.bincount(lists.prompt[kept], minlength=lists.prompts)
        kept[first[attested[lists.prompt[first]] == 0]] = True
        if self.most is not None:
            order = by_score(lists, rank)
            before = np.repeat(np.concatenate([[0], np.cumsum(kept[order])])[lists.starts[:-1]], np.diff(lists.starts))
            place = np.empty(lists.size, np.int64)
            place[order] = np.cumsum(kept[order]) - before
            kept &= place <= self.most
        return Choice(kept)

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def stored(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], features: tuple[str, ...]
    ) -> Votes:
        most = settings["most"]
        return cls(_count(settings["least"]), None if most is None else _count(most))


def _first_rows(lists: Lists, order: Ints, most: int) -> NDArray[np.bool_]:
    kept = np.zeros(lists.size, bool)
    place = np.arange(lists.size) - np.repeat(lists.starts[:-1], np.diff(lists.starts))
    kept[order[place < most]] = True
    return kept


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"expected a whole number from 1, found {value!r:.40}")
    return value


def finite(value: object) -> float:
    """A stored number.

    Raises:
        ValueError: it is none, or not finite.
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"expected a finite number, found {value!r:.40}")
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a name, found {value!r:.40}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {value!r:.40}")
    return value
