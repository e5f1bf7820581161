"""The papers' own figures about their data, for a prepared folder.

MRS: Table 1 (Zhang et al. 2021). XCOPA: Table 3 and Fleiss' kappa (Ponti et al. 2020, section 2). STAPLE: weights,
Tables 2 and 7 (Mayhew et al. 2020). XGLUE: Tables 2 and 3 (Liang et al. 2020, section 2.2).

Functions with `configs` count all configs in the data or the named ones; InputError: one of these is not there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mrs_datasets.describe.describe import selected_configs
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.schema import SPLITS, responses_config
from mrs_datasets.readers.staple.staple import TABLE_2
from mrs_datasets.readers.xcopa import XCOPA
from mrs_datasets.readers.xglue_files import PIVOT
from mrs_metrics.agreement import fleiss_kappa
from mrs_metrics.translations_f1 import oracle_curve
from mrs_metrics.xglue_tasks import TASKS
from mrs_suggest.common.errors import InputError, first_line, metric_errors
from mrs_suggest.common.io.packaged import read_packaged

if TYPE_CHECKING:
    from datasets import Dataset

ORACLES = range(1, 21)  # Table 7 of STAPLE has 1, 5 and 10


@dataclass(frozen=True)
class SplitStatistics:
    """A row of MRS; `tokens` counts messages and replies together, `responses` is the language's response set."""

    language: str
    split: str
    examples: int
    tokens: int
    responses: int
    tokenizer: str


def metric_tokenizer(language: str) -> tuple[str, Callable[[str], list[str]]]:
    """The metrics' tokenizer of a language (MeCab for Japanese, else Treebank rules), with its name and version.

    Without an installed tokenizer it splits into characters other than white space, and the name says why.
    """
    from mrs_metrics.tokenize import get_tokenizer

    try:
        tokenizer = get_tokenizer(language)
    except (ImportError, ValueError) as error:
        return f"characters ({first_line(error)})", lambda text: list("".join(text.split()))
    return f"{tokenizer.name} {tokenizer.version}", tokenizer


def split_statistics(data: PreparedData, languages: list[str] | None = None) -> Iterator[SplitStatistics]:
    """Yield the rows of MRS, one per language (default: all in the data) and split."""
    wanted = languages or data.languages()
    order = list(data.record().languages)
    for code in sorted(wanted, key=lambda code: order.index(code) if code in order else len(order)):
        name, tokenize = metric_tokenizer(code)
        try:
            responses = len(data.load(responses_config(code), "train"))
        except InputError:
            responses = 0
        for split in SPLITS:
            pairs = data.load(code, split)
            tokens = sum(
                len(tokenize(text))
                for batch in pairs.iter(batch_size=10_000)
                for column in ("message", "reply")
                for text in batch[column]
            )
            yield SplitStatistics(code, split, len(pairs), tokens, responses, name)


def languages_by_tokenizer(rows: Iterable[SplitStatistics]) -> dict[str, list[str]]:
    """The languages that each tokenizer counted, in the order of the rows."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row.tokenizer, {})[row.language] = None
    return {tokenizer: list(codes) for tokenizer, codes in found.items()}


@dataclass(frozen=True)
class XcopaStatistics:
    """A config and split of XCOPA.

    Attributes:
        agreement: % of the translator's labels that agree with the majority (Table 3); None for translations, views and
            English.
    """

    config: str
    split: str
    examples: int
    agreement: float | None


def xcopa_split_statistics(data: PreparedData, configs: list[str] | None = None) -> Iterator[XcopaStatistics]:
    """Yield the rows of XCOPA."""
    for config in selected_configs(data, configs):
        for split in data.splits(config):
            rows = data.load(config, split)
            agreed = None
            if config in XCOPA.kinds["original"].languages:
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


@dataclass(frozen=True)
class StapleStatistics:
    """A config and split of STAPLE.

    Attributes:
        prompts, translations, ratio: the columns of Table 2; `ratio` is translations per prompt.
        quartiles: of the translations per prompt.
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
    """Yield the rows of STAPLE."""
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
            sizes = len(lengths), sum(lengths), sum(lengths) / len(lengths)
            quartiles = [int(value) for value in np.percentile(lengths, [25, 50, 75])]
            published = TABLE_2.get(config, {}).get(split, (None, None))
            language = record.languages[record.language_of(config)].name
            yield StapleStatistics(config, language, split, *sizes, quartiles, references, *published)


def oracle_curves(data: PreparedData, rows: Sequence[StapleStatistics], rules: str) -> list[dict[int | None, float]]:
    """Weighted F1 of an oracle that predicts the k most likely translations, for each k of `ORACLES` (Table 7).

    Args:
        rules: `paper` or `official`, see `mrs_metrics.translations_f1`.

    Returns:
        k -> weighted F1, one for each row; empty for a blind split, which has no gold.
    """
    return [oracle_curve(data.load(row.config, row.split), ORACLES, rules) if row.translations else {} for row in rows]


@dataclass(frozen=True)
class XglueStatistics:
    """A task of XGLUE, as in Table 2.

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


def xglue_task_statistics(data: PreparedData, configs: list[str] | None = None) -> Iterator[XglueStatistics]:
    """Yield a row for every task in the data, in the paper's order."""
    have = selected_configs(data, configs)
    printed = read_packaged("mrs_datasets.describe", "paper_tables.yaml")["xglue"]
    counted = {config: {split: len(data.load(config, split)) for split in data.splits(config)} for config in have}
    for task in TASKS:
        start = f"{task.lower()}-"
        own = {config.removeprefix(start): rows for config, rows in counted.items() if config.startswith(start)}
        rows: dict[str, float] = {}
        for split in SPLITS:
            found = [n[split] for code, n in own.items() if split in n and (split != "train" or code == PIVOT)]
            if found:
                rows[split] = sum(found) / len(found)
        if own:
            yield XglueStatistics(task, tuple(own), rows, dict(zip(SPLITS, printed[task], strict=True)))
