"""Runs paired on their test examples: the suggestions of `predictions.LANG.tsv`, scored again example by example."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.interval import Interval
from mrs_metrics.power import detectable_difference
from mrs_metrics.rouge import score_examples
from mrs_metrics.significance import paired_bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import MESSAGE, predictions_name, read_predictions
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, sample_rows
from mrs_suggest.models.saved.record import read_record

Examples = tuple[tuple[str, str], ...]  # (message, reference) of each example, in the order of the test split


@dataclass(frozen=True)
class Scored:
    """A run's suggestions in one language.

    Attributes:
        units: (kept,) messages, or another column of the data.
        weighted: (kept,) weighted ROUGE of the best suggestion; equal examples keep the same ones.
    """

    examples: Examples
    units: list[Hashable]
    weighted: NDArray[np.float64]
    signature: str


@cache
def examples_of(run: Path, language: str) -> Examples:
    """Messages and references of a run's test, in their order; InputError if the file is missing or damaged."""
    rows = read_predictions(run / predictions_name(language))
    return tuple((row.message, row.reference) for row in rows)


@cache
def scored_run(run: Path, language: str, unit: str = MESSAGE) -> Scored:
    """The scores of a run's suggestions; InputError if the file is missing or damaged, or the data lack the unit."""
    rows = read_predictions(run / predictions_name(language))
    scores = score_examples([list(row.suggestions) for row in rows], [row.reference for row in rows], language=language)
    column = [row.message for row in rows] if unit == MESSAGE else _test_column(run, language, unit, len(rows))
    units = [column[place] for place in scores.kept]
    return Scored(examples_of(run, language), units, scores.weighted, scores.signature)


def _test_column(run: Path, language: str, unit: str, n: int) -> list[Hashable]:
    from mrs_datasets.prepared.prepared import open_prepared  # here: only this needs pyarrow

    arguments = read_record(run)["arguments"]
    data = open_prepared(arguments["data"], arguments.get("data_revision"))
    test = sample_rows(data.load(language, "test"), arguments.get("max_test_examples"), EVALUATION_SEED)
    if unit not in test.column_names or len(test) != n:
        raise InputError(
            f"--unit {unit}: {run} answered {n} rows of {language}, and the test split of {data.name} has {len(test)} "
            f"with the columns {' '.join(test.column_names)}; name one of these, and use the data of the run."
        )
    return [own or message for own, message in zip(test[unit][:], test["message"][:], strict=True)]


def paired_interval(
    mine: Sequence[Path], others: Sequence[Path], languages: Sequence[str], unit: str = MESSAGE
) -> tuple[Interval, float | None] | None:
    """The 95 % interval of the difference in weighted ROUGE, and the smallest difference that the examples show (None
    where no score differs); None if two runs were not tested on the same ones.

    Args:
        mine, others: folders of runs; those of several seeds are averaged example by example, so that the interval is
            of the difference between the means over the seeds, for these seeds and other examples.
        languages: their examples are pooled.
        unit: what is resampled, a column of the data.
    """
    columns, units = [], list[Hashable]()
    for code in languages:
        ours, theirs = ([scored_run(run, code, unit) for run in runs] for runs in (mine, others))
        if len({scored.examples for scored in (*ours, *theirs)}) > 1:
            return None
        units += [(code, one) for one in ours[0].units]
        columns.append([np.mean([scored.weighted for scored in runs], axis=0) for runs in (ours, theirs)])
    first, second = (np.concatenate(column) for column in zip(*columns, strict=True))
    interval = paired_bootstrap_interval(first, second, seed=EVALUATION_SEED, units=units)
    return interval, detectable_difference(first - second, units)[0]
