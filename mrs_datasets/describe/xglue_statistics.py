"""Figures of the XGLUE paper about its data: Tables 2 and 3 (Liang et al. 2020, section 2.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mrs_datasets.describe.describe import selected_configs
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.readers.xglue_files import PIVOT
from mrs_metrics.xglue_tasks import TASKS

SPLITS = ("train", "validation", "test")
# Table 2: examples, in thousands, of English training data and on average of the development and test sets.
PUBLISHED = {
    "NER": (15.0, 2.8, 3.4),
    "POS": (25.4, 1.0, 0.9),
    "NC": (100, 10, 10),
    "MLQA": (87.6, 0.6, 5.7),
    "XNLI": (433, 2.5, 5),
    "PAWSX": (49.4, 2, 2),
    "QADSM": (100, 10, 10),
    "WPR": (100, 10, 10),
    "QAM": (100, 10, 10),
    "QG": (100, 10, 10),
    "NTG": (300, 10, 10),
}


@dataclass(frozen=True)
class XglueStatistics:
    """One row per task, as in Table 2.

    Attributes:
        languages: codes of the languages in the data (Table 3).
        rows: split -> rows: of English for `train`, of the languages that have the split on average for the others;
            a split that no language has is left out.
        published: split -> thousands of rows that Table 2 prints.
    """

    task: str
    languages: tuple[str, ...]
    rows: dict[str, float]
    published: dict[str, float]


def xglue_task_statistics(data: PreparedData, configs: Sequence[str] | None = None) -> Iterator[XglueStatistics]:
    """Yield a row for every task in the data, in the paper's order, counting all configs or the named ones.

    Raises:
        InputError: the data lack a named config.
    """
    have = selected_configs(data, list(configs) if configs else None)
    counted = {config: {split: len(data.load(config, split)) for split in data.splits(config)} for config in have}
    for task in TASKS:
        own = {
            config.partition("-")[2]: rows for config, rows in counted.items() if config.startswith(f"{task.lower()}-")
        }
        if not own:
            continue
        rows: dict[str, float] = {}
        for split in SPLITS:
            found = [n[split] for code, n in own.items() if split in n and (split != "train" or code == PIVOT)]
            if found:
                rows[split] = sum(found) / len(found)
        yield XglueStatistics(task, tuple(own), rows, dict(zip(SPLITS, PUBLISHED[task], strict=True)))
