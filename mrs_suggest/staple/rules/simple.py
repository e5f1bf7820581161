"""Rules with one or two numbers, which an exact search finds: the best K, a threshold, at least N votes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.filters.choice_scores import best_count, best_threshold, by_score, firsts, reaching, relative
from mrs_suggest.staple.lists import PER_TOKEN, Labels, Lists
from mrs_suggest.staple.rules.base import LOWER_IS_BETTER, Choice, Fitting, Rule, score_by

VOTES = "votes"


class ByScore(Rule):
    """A rule that reads the feature `by` alone."""

    by: str

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        return (fitting.by or cls.by,)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.by,)


@dataclass(frozen=True)
class Top(ByScore):
    """The best `most` of each prompt, ordered by the feature `by`."""

    name: ClassVar[str] = "top"
    most: int
    by: str = "rank"

    @classmethod
    def fit(cls, lists: Lists, gold: Labels, fitting: Fitting) -> Self:
        by = fitting.by or cls.by
        return cls(best_count(lists, gold, by_score(lists, score_by(lists, by)))[0], by)

    def choose(self, lists: Lists) -> Choice:
        kept = np.zeros(lists.size, bool)
        kept[by_score(lists, score_by(lists, self.by))[lists.place < self.most]] = True
        return Choice(kept)


@dataclass(frozen=True)
class Threshold(ByScore):
    """Translations whose score reaches a threshold, and always the first of a prompt: without any it would score 0.

    The default score is the log-probability per token, as jbrem's in the task (Khayrallah et al. 2020).

    Attributes:
        least: the threshold; None: the first alone.
        by: the feature that is the score.
        relative: whether the threshold is for the difference from the highest score of the prompt.
    """

    name: ClassVar[str] = "threshold"
    score_name: ClassVar[str | None] = "score"
    least: float | None
    by: str = PER_TOKEN
    relative: bool = False

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        if fitting.by in LOWER_IS_BETTER:
            raise InputError(
                f"--by {fitting.by}: a threshold needs a feature whose higher values are better; use `--rule top`."
            )
        return super().needs(fitting, features)

    @classmethod
    def fit(cls, lists: Lists, gold: Labels, fitting: Fitting) -> Self:
        """The better of an absolute and a relative threshold."""
        by = fitting.by or PER_TOKEN
        score = lists.features[by]
        found = [(best_threshold(lists, gold, kind), kind is not score) for kind in (score, relative(lists, score))]
        (least, _), is_relative = max(found, key=lambda one: one[0][1])
        return cls(None if math.isinf(least) else least, by, is_relative)

    def choose(self, lists: Lists) -> Choice:
        score = lists.features[self.by]
        if self.relative:
            score = relative(lists, score)
        return Choice(reaching(lists, score, np.inf if self.least is None else self.least), score)


@dataclass(frozen=True)
class Votes(Rule):
    """Translations that at least `least` members found, at most `most` by rank; else the first of the prompt.

    Consensus voting, as nickeilf's in the task (Li et al. 2020).
    """

    name: ClassVar[str] = "votes"
    least: int
    most: int | None = None

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        return ("rank", VOTES)

    @classmethod
    def fit(cls, lists: Lists, gold: Labels, fitting: Fitting) -> Self:
        best, found = -1.0, cls(1)
        longest = int(np.diff(lists.starts).max(initial=1))
        for least in range(1, int(np.nan_to_num(lists.features[VOTES]).max(initial=1)) + 1):
            rows = np.flatnonzero(cls(least).choose(lists).kept)
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
