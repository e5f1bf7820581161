"""Human preference between two systems: shares, intervals, agreement (Zhang et al. 2021, section 3.3, Figure 2)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.agreement import fleiss_kappa, krippendorff_alpha
from mrs_metrics.signature import signature
from mrs_metrics.significance import PERMUTATION_SAMPLES, bootstrap_interval, permutation_test
from mrs_suggest.common.errors import metric_errors
from mrs_suggest.evaluation.annotation_files import Key

CONFIDENCE = 0.95
OUTCOMES = {"win": 1, "tie": 0, "loss": -1}  # of system A


def summarize(key: Key, annotations: dict[str, NDArray[np.int64]]) -> dict[str, Any]:
    """The figures of an evaluation.

    Shares are of system A: win, tie, loss. `judgements` counts every judgement, as Figure 2 of the paper does;
    `majority` what more than half of the annotators chose for an item, and a tie without a majority. Intervals
    resample items, since judgements of one item depend on each other. `p` is of the permutation test of the items' net
    preference for A: without a difference, A and B of an item could as well be swapped.

    Args:
        annotations: file -> (items,) 1 for A, 0 for a tie, -1 for B.

    Raises:
        InputError: statsmodels, which has Fleiss' kappa, is not installed.
    """
    choices = np.stack(list(annotations.values()), axis=1)  # (items, annotators)
    n_items, n_annotators = choices.shape
    counts = np.stack([(choices == sign).sum(axis=1) for sign in OUTCOMES.values()], axis=1)  # (items, outcomes)
    clear = 2 * counts > n_annotators
    majority = clear.copy()
    majority[~clear.any(axis=1), list(OUTCOMES).index("tie")] = True
    with metric_errors():
        kappa = fleiss_kappa(counts) if n_annotators > 1 else None
    return {
        "system_a": key.systems[0],
        "system_b": key.systems[1],
        "items": n_items,
        "annotators": n_annotators,
        "annotators_missing": len(key.files) - n_annotators,
        "same_suggestions": key.same_suggestions,
        "judgements": _shares(counts / n_annotators),
        "majority": _shares(majority.astype(float)),
        "no_majority": int((~clear.any(axis=1)).sum()),
        "p": permutation_test(choices.mean(axis=1), np.zeros(n_items)),
        "kappa": kappa,
        "alpha": {level: krippendorff_alpha(choices, level == "ordinal") for level in ("nominal", "ordinal")},
        "by_annotator": [_by_annotator(name, column, key) for name, column in annotations.items()],
        "inputs_sha256": list(key.inputs),
        "signature": signature(
            "human_evaluation",
            annotators=n_annotators,
            items=n_items,
            seed=key.seed,
            majority="over-half",
            interval="clopper-pearson-if-0-or-1,studentised-bootstrap-of-items",
            test=f"permutation-{PERMUTATION_SAMPLES}",
            kappa="fleiss" if n_annotators > 1 else None,
        ),
    }


def _shares(columns: NDArray[np.float64]) -> dict[str, dict[str, Any]]:
    """Mean and interval of each outcome's column (items, outcomes)."""
    return {
        outcome: {"share": float(column.mean()), "interval": bootstrap_interval(column, CONFIDENCE).ends}
        for outcome, column in zip(OUTCOMES, columns.T, strict=True)
    }


def _by_annotator(name: str, choices: NDArray[np.int64], key: Key) -> dict[str, Any]:
    """One annotator's shares, and how often they chose the left side when they chose one: about .5 without a bias."""
    sides = np.array([1 if item.a_side == "left" else -1 for item in key.items])
    decided = choices != 0
    left = float((choices[decided] == sides[decided]).mean()) if decided.any() else None
    return {
        "file": name,
        **{outcome: float((choices == sign).mean()) for outcome, sign in OUTCOMES.items()},
        "left_of_decided": left,
    }
