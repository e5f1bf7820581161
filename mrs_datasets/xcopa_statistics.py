"""The figures that the XCOPA paper gives of its data: Table 3 and Fleiss' kappa (Ponti et al. 2020, section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mrs_core.errors import InputError, MissingExtraError
from mrs_datasets.describe import selected_configs
from mrs_datasets.prepared import PreparedData
from mrs_datasets.readers.xcopa import XCOPA

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class XcopaStatistics:
    """One row a config and split.

    Attributes:
        agreement: % of labels that the translator gave as the majority did (Table 3); None for translations, views and
            English.
    """

    config: str
    split: str
    examples: int
    agreement: float | None


def split_statistics(data: PreparedData, configs: list[str] | None = None) -> Iterator[XcopaStatistics]:
    """Yield the rows of every config that the data have, or of those named.

    Raises:
        InputError: a named config that the data do not have.
    """
    translated = XCOPA.kinds["original"].languages
    for config in selected_configs(data, configs):
        for split in data.splits(config):
            rows = data.load(config, split)
            agreed = 100 * float(1 - np.mean(rows["changed"])) if config in translated else None
            yield XcopaStatistics(config, split, len(rows), agreed)


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
