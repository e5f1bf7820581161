"""The figures that the XCOPA paper gives of its data: Table 3 and Fleiss' kappa (Ponti et al. 2020, section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mrs_core.errors import InputError, MissingExtraError
from mrs_datasets.prepared import PreparedData
from mrs_datasets.readers.xcopa import XCOPA

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class XcopaStatistics:
    """One row a config and split.

    Attributes:
        first_choice: % of labels that are choice1.
        agreement: % of labels that the translator gave as the majority did; None for translations and for English.
        premise_lengths, choice_lengths: quartiles of the lengths in characters.
    """

    config: str
    split: str
    examples: int
    first_choice: float
    agreement: float | None
    premise_lengths: list[int]
    choice_lengths: list[int]


def split_statistics(data: PreparedData, configs: list[str] | None = None) -> Iterator[XcopaStatistics]:
    """Yield the rows of every config that the data have, or of those named.

    Raises:
        InputError: a named config that the data do not have.
    """
    have = data.configs()
    for config in configs or have:
        if config not in have:
            raise InputError(f"--language {config}: {data.name} has {' '.join(have)}.")
    translated = XCOPA.kinds["original"].languages
    for config in [config for config in have if config in (configs or have)]:
        for split in data.splits(config):
            rows = data.load(config, split)
            labels, changed = np.array(rows["label"]), np.array(rows["changed"])
            yield XcopaStatistics(
                config,
                split,
                len(rows),
                100 * float((labels == 0).mean()),
                100 * float(1 - changed.mean()) if config in translated else None,
                _quartiles(rows["premise"]),
                _quartiles([*rows["choice1"], *rows["choice2"]]),
            )


def agreement(data: PreparedData) -> dict[str, float]:
    """Fleiss' kappa of each split over the translators of the languages that the data have.

    A translator's own label is rebuilt from the files: the label, flipped where `changed` (section 2).

    Raises:
        InputError: the languages do not have the same examples.
        MissingExtraError: statsmodels is not installed.
    """
    try:
        from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa
    except ImportError:
        raise MissingExtraError("statsmodels", "analysis", "Fleiss' kappa") from None
    codes = [code for code in XCOPA.kinds["original"].languages if code in data.configs()]
    kappas = {}
    for split in XCOPA.kinds["original"].splits:
        own = [_own_labels(data.load(code, split)) for code in codes if split in data.splits(code)]
        if len(own) < 2:
            continue
        if any(labels.keys() != own[0].keys() for labels in own):
            raise InputError(f"{data.name}: the {split} splits of {' '.join(codes)} do not have the same idx.")
        raters = np.array([[labels[idx] for labels in own] for idx in sorted(own[0])])
        kappas[split] = float(fleiss_kappa(aggregate_raters(raters, n_cat=2)[0]))
    return kappas


def _own_labels(rows: Dataset) -> dict[int, int]:
    return {
        idx: label ^ changed for idx, label, changed in zip(rows["idx"], rows["label"], rows["changed"], strict=True)
    }


def _quartiles(texts: list[str]) -> list[int]:
    return [int(value) for value in np.percentile([len(text) for text in texts], [25, 50, 75])]
