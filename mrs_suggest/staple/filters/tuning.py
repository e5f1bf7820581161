"""Tuning a rule on a split with accepted translations, and its honest score: on prompts that were not in its fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.filters.choice_scores import score_choice
from mrs_suggest.staple.filters.filter import Filter
from mrs_suggest.staple.hypotheses import Hypotheses
from mrs_suggest.staple.lists import (
    FOLDS,
    Gold,
    Lists,
    available,
    fold_prompts,
    lists_of,
    read_gold,
    require_features,
    require_one_list,
)
from mrs_suggest.staple.pooling import POOL
from mrs_suggest.staple.rules import RULES
from mrs_suggest.staple.rules.base import Fitting, Rule
from mrs_suggest.staple.rules.simple import Top

RAW = 10  # translations of the task's baselines, section 3


def tune(
    found: Hypotheses, path: Path, data: str, rule: str, fitting: Fitting, folds: int = FOLDS
) -> tuple[Filter, list[str]]:
    """Fit a rule, and score it out of fold.

    Args:
        found: pooled hypotheses of a split with accepted translations.
        path: their file, for error messages.
        data: prepared folder or hub id that they were decoded from.
        rule: its name in `RULES`.
        folds: of prompts.

    Returns:
        The filter, fitted on all prompts, whose figures compare the rule out of fold with the raw n-best list of 10 and
        the best K out of fold; and notes for the user.

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
    choices = {
        rule: cross_fitted(kind, lists, gold, fitting, folds),
        f"raw n-best {RAW}": Top(RAW).choose(lists).kept,
    }
    if rule != Top.name:
        choices["best K"] = cross_fitted(Top, lists, gold, Fitting(seed=fitting.seed), folds)
    figures = {name: _figures(lists, gold, kept) for name, kept in choices.items()}
    members = tuple(found.members.get(POOL, {}).get("members", found.members))
    fitted = kind.fit(lists, gold, fitting)
    made = Filter(fitted, found.language, dict(found.data), members, fitting.seed, figures, versions())
    less = f"{path} has {lists.prompts:,} of the {in_split:,} prompts of the split; the scores are over those."
    return made, [less] if lists.prompts < in_split else []


def cross_fitted(kind: type[Rule], lists: Lists, gold: Gold, fitting: Fitting, folds: int = FOLDS) -> NDArray[np.bool_]:
    """(n,) what the rule keeps of each prompt if it is fitted, with all that it tunes, on the other folds' prompts."""
    kept = np.zeros(lists.size, bool)
    for inside, outside in fold_prompts(lists.prompts, folds, fitting.seed):
        fitted = kind.fit(lists.of(inside), gold.of(lists.rows_of(inside)), fitting)
        kept[lists.rows_of(outside)] = fitted.choose(lists.of(outside)).kept
    return kept


def _figures(lists: Lists, gold: Gold, kept: NDArray[np.bool_]) -> dict[str, float]:
    """Means over the prompts, and the 95 % interval of the macro weighted F1."""
    scores = score_choice(lists, gold, kept)
    low, high = bootstrap_interval(scores.weighted_f1)
    return {
        "weighted_f1": float(scores.weighted_f1.mean()),
        "low": low,
        "high": high,
        "precision": float(scores.precision.mean()),
        "weighted_recall": float(scores.weighted_recall.mean()),
        "translations": float(scores.chosen.mean()),
    }
