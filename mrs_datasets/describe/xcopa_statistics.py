"""Figures of the XCOPA paper about its data: Table 3 and Fleiss' kappa (Ponti et al. 2020, section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mrs_datasets.describe.describe import selected_configs
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.readers.xcopa import XCOPA
from mrs_metrics.agreement import fleiss_kappa
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.metric_errors import metric_errors

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class XcopaStatistics:
    """One row per config and split.

    Attributes:
        agreement: % of the translator's labels that agree with the majority (Table 3); None for translations, views and
            English.
    """

    config: str
    split: str
    examples: int
    agreement: float | None


def xcopa_split_statistics(data: PreparedData, configs: list[str] | None = None) -> Iterator[XcopaStatistics]:
    """Yield the rows of every config in the data, or of the named ones.

    Raises:
        InputError: the data lack a named config.
    """
    translated = XCOPA.kinds["original"].languages
    for config in selected_configs(data, configs):
        for split in data.splits(config):
            rows = data.load(config, split)
            agreed = None
            if config in translated:
                agreed = 100 * float(1 - np.mean([row["changed"] for row in _labelled(rows)]))
            yield XcopaStatistics(config, split, len(rows), agreed)


def agreement(data: PreparedData) -> dict[str, float]:
    """Fleiss' kappa of each split over the translators of the languages in the data, on the idx that all have.

    A translator's own label is reconstructed from the files: the label, flipped if `changed` (section 2).

    Raises:
        InputError: a label is missing or invalid, or statsmodels is not installed.
    """
    codes = [code for code in XCOPA.kinds["original"].languages if code in data.configs()]
    kappas = {}
    for split in XCOPA.kinds["original"].splits:
        own = [
            {row["idx"]: row["label"] ^ row["changed"] for row in _labelled(data.load(code, split))}
            for code in codes
            if split in data.splits(code)
        ]
        common = sorted(set.intersection(*map(set, own))) if len(own) > 1 else []
        if not common:
            continue
        second = np.array([sum(labels[idx] for labels in own) for idx in common])
        with metric_errors():
            kappa = fleiss_kappa(np.stack([len(own) - second, second], axis=1))
        if kappa is not None:
            kappas[split] = kappa
    return kappas


def _labelled(rows: Dataset) -> list[dict[str, int]]:
    """idx, label and changed of each row, none of which may be missing."""
    found = list(rows.select_columns(["idx", "label", "changed"]))
    for number, row in enumerate(found):
        if row["label"] not in (0, 1) or row["changed"] is None or row["idx"] is None:
            raise InputError(f"row {number} of {rows.split}: no label; run `mrs data check` on the folder.")
    return found
