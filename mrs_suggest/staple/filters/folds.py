"""Folds of prompts: what was fitted on a prompt never scores it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.lists import Gold, Lists
from mrs_suggest.staple.pooling import Ints

FOLDS = 5  # ours, usual: a fold's fit sees four fifths of the prompts
INNER = 3  # ours: of the folds in a fit, where a threshold or a calibration needs unseen prompts, too
Fitted = TypeVar("Fitted")


def fold_prompts(prompts: int, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """The prompts inside and outside of each fit, in their order; each prompt is outside once."""
    order = np.random.default_rng(seed).permutation(prompts)
    parts = [np.sort(order[fold::folds]) for fold in range(folds)]
    return [(np.setdiff1d(np.arange(prompts), part), part) for part in parts]


def left_out(
    lists: Lists,
    gold: Gold,
    fit: Callable[[Lists, Gold], Fitted],
    predict: Callable[[Fitted, Lists], NDArray[np.float64]],
    seed: int,
    folds: int = INNER,
) -> NDArray[np.float64]:
    """What a model predicts for each prompt's rows if it is fitted on the other folds' prompts, (n,) or (n, figures).

    Raises:
        InputError: there is one prompt, or none.
    """
    if lists.prompts < 2:
        raise InputError("There are too few prompts to tune on; decode at least 5, better 100 or more.")
    found: NDArray[np.float64] | None = None
    for inside, outside in fold_prompts(lists.prompts, min(folds, lists.prompts), seed):
        fitted = fit(lists.of(inside), gold.of(lists.rows_of(inside)))
        values = predict(fitted, lists.of(outside))
        if found is None:
            found = np.zeros((lists.size, *values.shape[1:]))
        found[lists.rows_of(outside)] = values
    assert found is not None
    return found
