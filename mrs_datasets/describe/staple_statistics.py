"""Figures of the STAPLE paper about its data: weights, Table 2 and Table 7 (Mayhew et al. 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mrs_datasets.describe.describe import selected_configs
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.readers.staple.staple import TABLE_2
from mrs_metrics.translations_f1 import oracle_curve
from mrs_suggest.common.errors import InputError

CURVE = range(1, 21)  # Table 7 has 1, 5 and 10


@dataclass(frozen=True)
class StapleStatistics:
    """One row per config and split.

    Attributes:
        prompts, translations, ratio: the columns of Table 2; `ratio` is translations per prompt.
        quartiles: quartiles of the translations per prompt.
        references: prompts with an automatic reference translation.
        paper_prompts, paper_translations: the values of Table 2, for a complete source; None for other data.
    """

    config: str
    language: str
    split: str
    prompts: int
    translations: int
    ratio: float
    quartiles: list[int]
    references: int
    paper_prompts: int | None
    paper_translations: int | None


def lrf_weights(counts: Sequence[int]) -> list[float]:
    """The learner response frequency of each translation of a prompt: w_t = sqrt(c_t + 1) / sum over t' sqrt(c_t' + 1).

    Args:
        counts: how often learners gave each of the prompt's accepted translations (section 2.1).

    Raises:
        InputError: no count, or one that is negative or not finite.

    >>> [round(weight, 4) for weight in lrf_weights([8, 3, 0])]
    [0.5, 0.3333, 0.1667]
    """
    if not counts or not all(0 <= count < math.inf for count in counts):
        raise InputError("lrf_weights: expected one count of 0 or more for each translation of the prompt.")
    roots = [math.sqrt(count + 1) for count in counts]
    total = math.fsum(roots)
    return [root / total for root in roots]


def staple_split_statistics(data: PreparedData, configs: list[str] | None = None) -> Iterator[StapleStatistics]:
    """Yield the rows of every config in the data, or of the named ones.

    Raises:
        InputError: the data lack a named config.
    """
    record = data.record()
    for config in selected_configs(data, configs):
        if "translations" not in record.kind_of(config).columns:
            continue
        for split in data.splits(config):
            rows = data.load(config, split).select_columns(["reference", "translations"]).with_format("arrow")
            lengths, references = [], 0
            for table in rows.iter(batch_size=1000):
                lengths += [len(entries) for entries in table["translations"]]
                references += len(table) - table["reference"].null_count
            yield StapleStatistics(
                config,
                record.languages[record.language_of(config)].name,
                split,
                len(lengths),
                sum(lengths),
                sum(lengths) / len(lengths),
                [int(value) for value in np.percentile(lengths, [25, 50, 75])],
                references,
                *TABLE_2.get(config, {}).get(split, (None, None)),
            )


def oracle_curves(data: PreparedData, rows: Sequence[StapleStatistics], rules: str) -> list[dict[int | None, float]]:
    """Weighted F1 of an oracle that predicts the k most likely translations, for each k of `CURVE` (Table 7).

    Args:
        rows: of `staple_split_statistics`.
        rules: `paper` or `official`, see `mrs_metrics.translations_f1`.

    Returns:
        k -> weighted F1, one for each row; empty for a blind split, which has no gold.
    """
    return [oracle_curve(data.load(row.config, row.split), CURVE, rules) if row.translations else {} for row in rows]
