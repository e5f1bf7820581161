"""Runs paired on their test examples: the suggestions of `predictions.LANG.tsv`, scored again example by example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.interval import Interval
from mrs_metrics.power import detectable_difference
from mrs_metrics.rouge import score_examples
from mrs_metrics.significance import paired_bootstrap_interval
from mrs_suggest.common.text.predictions import predictions_name, read_predictions
from mrs_suggest.evaluation.language_data import EVALUATION_SEED

Examples = tuple[tuple[str, str], ...]  # (message, reference) of each example, in the order of the test split


@dataclass(frozen=True)
class Scored:
    """A run's suggestions in one language.

    Attributes:
        weighted: (kept,) weighted ROUGE of the best suggestion; equal examples keep the same ones.
    """

    examples: Examples
    messages: list[str]
    weighted: NDArray[np.float64]
    signature: str


@cache
def examples_of(run: Path, language: str) -> Examples:
    """Messages and references of a run's test, in their order; InputError if the file is missing or damaged."""
    rows = read_predictions(run / predictions_name(language))
    return tuple((row.message, row.reference) for row in rows)


@cache
def scored_run(run: Path, language: str) -> Scored:
    """The scores of a run's suggestions; InputError if the file is missing or damaged."""
    rows = read_predictions(run / predictions_name(language))
    scores = score_examples([list(row.suggestions) for row in rows], [row.reference for row in rows], language=language)
    kept = [rows[place].message for place in scores.kept]
    return Scored(examples_of(run, language), kept, scores.weighted, scores.signature)


def paired_interval(
    mine: Sequence[Path], others: Sequence[Path], languages: Sequence[str]
) -> tuple[Interval, float | None] | None:
    """The 95 % interval of the difference in weighted ROUGE, and the smallest difference that the examples show (None
    where no score differs); None if two runs were not tested on the same ones.

    Args:
        mine, others: folders of runs; those of several seeds are averaged example by example, so that the interval is
            of the difference between the means over the seeds, for these seeds and other examples.
        languages: their examples are pooled.
    """
    columns, units = [], list[tuple[str, str]]()
    for code in languages:
        ours, theirs = ([scored_run(run, code) for run in runs] for runs in (mine, others))
        if len({scored.examples for scored in (*ours, *theirs)}) > 1:
            return None
        units += [(code, message) for message in ours[0].messages]
        columns.append([np.mean([scored.weighted for scored in runs], axis=0) for runs in (ours, theirs)])
    first, second = (np.concatenate(column) for column in zip(*columns, strict=True))
    interval = paired_bootstrap_interval(first, second, seed=EVALUATION_SEED, units=units)
    return interval, detectable_difference(first - second, units)[0]
