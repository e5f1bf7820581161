"""Statistics of any prepared data set: rows, lengths of its texts, balance of its labels."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrs_datasets.catalogue import LANGUAGE, DatasetRecord
from mrs_datasets.prepared.prepared import PreparedData
from mrs_suggest.common.errors import InputError

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BATCH_ROWS = 10_000


@dataclass(frozen=True)
class SplitDescription:
    """One split.

    Attributes:
        lengths: text column -> the numbers of its texts with 0, 1, 2 ... characters (code points), without nulls.
        labels: `class_label` column, or column whose kind names its values -> name -> rows (of a list: entries).
    """

    config: str
    split: str
    rows: int
    lengths: dict[str, NDArray[np.int64]]
    labels: dict[str, dict[str, int]]

    def quantiles(self, column: str) -> list[int]:
        """The lengths, in characters, at `QUANTILES` of a column; empty for a column without a text."""
        return length_quantiles(self.lengths[column])

    def shares(self, column: str) -> dict[str, float]:
        """The share of each label among a column's labelled rows, 0 to 1."""
        counts = self.labels[column]
        total = max(1, sum(counts.values()))
        return {name: count / total for name, count in counts.items()}

    def as_dict(self) -> dict[str, object]:
        """For JSON: quantiles instead of counts."""
        return {**vars(self), "lengths": {column: self.quantiles(column) for column in self.lengths}}


def length_quantiles(counts: NDArray[np.int64]) -> list[int]:
    """The smallest lengths that at least the shares `QUANTILES` of all texts do not exceed.

    Args:
        counts: the numbers of texts with 0, 1, 2 ... characters.
    """
    if not counts.sum():
        return []
    shares = np.cumsum(counts) / counts.sum()
    return [int(np.searchsorted(shares, quantile)) for quantile in QUANTILES]


def text_columns(record: DatasetRecord, config: str) -> dict[str, str]:
    """Text column of a config -> its language."""
    own = record.language_of(config)
    return {
        column: own if language == LANGUAGE else language
        for language, columns in record.kind_of(config).texts.items()
        for column in columns
    }


def selected_configs(data: PreparedData, configs: list[str] | None) -> list[str]:
    """All configs of the data, or the named ones, in the order of the catalogue; InputError if one is missing."""
    have = data.configs()
    for config in configs or have:
        if config not in have:
            raise InputError(f"--language {config}: {data.name} has {' '.join(have)}.")
    return [config for config in have if config in (configs or have)]


def describe(data: PreparedData, configs: list[str] | None = None) -> Iterator[SplitDescription]:
    """Yield a description of every split of every config, or of the named configs, in one pass over each."""
    record = data.record()
    for config in selected_configs(data, configs):
        columns = list(text_columns(record, config))
        kind = record.kind_of(config)
        named = {
            name: record.columns[name].names or kind.values[name]
            for name in kind.columns
            if record.columns[name].dtype == "class_label" or name in kind.values
        }
        for split in data.splits(config):
            rows = data.load(config, split).select_columns([*columns, *named]).with_format("arrow")
            lengths = {column: np.zeros(0, np.int64) for column in columns}
            labels = {column: np.zeros(len(names), np.int64) for column, names in named.items()}
            for table in rows.iter(batch_size=BATCH_ROWS):
                for column in columns:
                    characters = pc.drop_null(pc.utf8_length(texts_of(table[column]))).to_numpy()
                    lengths[column] = _added(lengths[column], characters)
                for column in named:
                    labels[column] = _added(labels[column], _labels(table[column], named[column]))
            found = {c: dict(zip(named[c], counts.tolist(), strict=False)) for c, counts in labels.items()}
            yield SplitDescription(config, split, len(rows), lengths, found)


def texts_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of a column: its own, or those in its lists (of texts or of `{text, ...}`)."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = pc.list_flatten(column)
    if pa.types.is_struct(column.type):
        column = pc.struct_field(column, "text")
    return column


def _labels(column: pa.ChunkedArray, names: tuple[str, ...]) -> NDArray[np.int64]:
    """The number of each label; `mrs data check` reports those that are not among the names."""
    column = texts_of(column)
    if pa.types.is_string(column.type):
        column = pc.index_in(column, pa.array(names))
    values = np.asarray(pc.drop_null(column).to_numpy(), np.int64)
    return values[(values >= 0) & (values < len(names))]


def _added(counts: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts with more values added; as long as the largest value needs."""
    more = np.bincount(values, minlength=len(counts)).astype(np.int64)
    more[: len(counts)] += counts
    return more
