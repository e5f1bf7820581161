"""Tuning a rule on a split with accepted translations, and its honest score: on prompts that were not in its fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.filters.choice_scores import ChoiceScores, score_choice
from mrs_suggest.staple.filters.filter_folder import Filter
from mrs_suggest.staple.filters.folds import FOLDS, fold_prompts
from mrs_suggest.staple.hypotheses import Hypotheses
from mrs_suggest.staple.lists import Gold, Lists, available, lists_of, read_gold, require_one_list
from mrs_suggest.staple.pooling import POOL
from mrs_suggest.staple.rules import RULES, Fitting, Rule
from mrs_suggest.staple.rules.simple import Top

RAW = 10  # translations of the task's baselines, section 3


@dataclass(frozen=True, eq=False)
class Row:
    """A line of the comparison: name, scores of the prompts, 95 % interval of the macro weighted F1."""

    name: str
    scores: ChoiceScores
    interval: tuple[float, float]

    def figures(self) -> dict[str, float]:
        """Its means over the prompts."""
        return {
            "weighted_f1": float(self.scores.weighted_f1.mean()),
            "low": self.interval[0],
            "high": self.interval[1],
            "precision": float(self.scores.precision.mean()),
            "weighted_recall": float(self.scores.weighted_recall.mean()),
            "translations": float(self.scores.chosen.mean()),
        }


@dataclass(frozen=True, eq=False)
class Tuned:
    """A filter and how it compares.

    Attributes:
        made: the filter, fitted on all prompts.
        rows: the rule out of fold, the raw n-best list of 10, the best K out of fold.
        notes: for the user.
    """

    made: Filter
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def tune(found: Hypotheses, path: Path, data: str, rule: str, fitting: Fitting, folds: int = FOLDS) -> Tuned:
    """Fit a rule, and score it out of fold.

    Args:
        found: pooled hypotheses of a split with accepted translations.
        path: their file, for error messages.
        data: prepared folder or hub id that they were decoded from.
        rule: its name in `RULES`.
        folds: of prompts.

    Raises:
        InputError: the rule needs a feature that the file lacks, there are too few prompts, or as for `read_gold`.
    """
    from mrs_suggest.common.hub.provenance import versions

    kind = RULES[rule]
    require_one_list(found, path)
    lists = lists_of(found)
    known = [name for name in available(found) if not np.isnan(lists.features[name]).all()]
    names = kind.needs(fitting, known)
    require_features(lists, names, path, f"--rule {rule}")
    fitting = replace(fitting, features=names)
    if not 2 <= folds <= lists.prompts:
        raise InputError(f"--folds {folds}: expected 2 to {lists.prompts}, the number of prompts in {path}.")
    gold, in_split = read_gold(found, path, data)
    if not gold.accepted.any():
        raise InputError(f"{path}: none of its translations is accepted in {data}, so no rule can be tuned on it.")
    kept = cross_fitted(kind, lists, gold, fitting, folds)
    raw = Top(RAW).choose(lists).kept
    best = cross_fitted(Top, lists, gold, Fitting(seed=fitting.seed), folds)
    named = [(rule, kept), (f"raw n-best {RAW}", raw)] + ([("best K", best)] if rule != Top.name else [])
    rows = tuple(compared(name, lists, gold, choice) for name, choice in named)
    fitted = kind.fit(lists, gold, fitting)
    figures = {row.name: row.figures() for row in rows}
    members = tuple(found.members.get(POOL, {}).get("members", found.members))
    made = Filter(fitted, found.language, found.data, members, fitting.seed, figures, versions())
    less = f"{path} has {lists.prompts:,} of the {in_split:,} prompts of the split; the scores are over those."
    return Tuned(made, rows, (less,) if lists.prompts < in_split else ())


def require_features(lists: Lists, names: Sequence[str], path: Path, asked: str) -> None:
    """Refuse a file that lacks features.

    Raises:
        InputError: one is missing, or has no value in any row.
    """
    missing = [name for name in names if name not in lists.features]
    if missing:
        raise InputError(
            f"{path}: lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}, which {asked} uses; add what is "
            "missing with `mrs staple combine`."
        )
    empty = [name for name in names if lists.size and np.isnan(lists.features[name]).all()]
    if empty:
        raise InputError(f"{path}: the column {empty[0]} has no values, but {asked} uses it; choose another rule.")


def cross_fitted(kind: type[Rule], lists: Lists, gold: Gold, fitting: Fitting, folds: int = FOLDS) -> NDArray[np.bool_]:
    """(n,) what the rule keeps of each prompt if it is fitted, with all that it tunes, on the other folds' prompts."""
    kept = np.zeros(lists.size, bool)
    for inside, outside in fold_prompts(lists.prompts, folds, fitting.seed):
        fitted = kind.fit(lists.of(inside), gold.of(lists.rows_of(inside)), fitting)
        kept[lists.rows_of(outside)] = fitted.choose(lists.of(outside)).kept
    return kept


def compared(name: str, lists: Lists, gold: Gold, kept: NDArray[np.bool_]) -> Row:
    """The scores of a choice."""
    scores = score_choice(lists, gold, kept)
    return Row(name, scores, bootstrap_interval(scores.weighted_f1))
