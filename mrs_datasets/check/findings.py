"""Findings of `mrs data check`: the number of rows in a split that break a rule, and the first of them; and whether
texts are in their config's language: by their script, and by fastText if a model is given.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mrs_datasets.catalogue import ERROR, WARNING
from mrs_datasets.describe.describe import BATCH_ROWS
from mrs_suggest.common.text.language_id import MIN_LANGUAGE_SCORE, Identify, is_other_language
from mrs_suggest.common.text.languages import find_language
from mrs_suggest.common.text.scripts import in_other_script, knows_script

EXAMPLES = 3
SEPARATOR = "\x1f"  # between the columns of a row
# Chosen so that a file in the wrong language is an error, but no published file is.
MIN_ROWS = 20  # of a split; in smaller ones chance decides
MOST = 0.5  # of the rows: more of them in one other language (in another script) ...
FEW = 0.1  # ... and fewer in their own


@dataclass(frozen=True)
class Finding:
    """One rule that a split breaks.

    Attributes:
        level: `error` or `warning`.
        where: config/split, or a config.
        count: how many rows (texts, files) break it.
        examples: at most three, each with its row (from 0).
    """

    level: str
    rule: str
    where: str
    count: int
    examples: tuple[str, ...]


class Examples:
    """How many rows break a rule, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.shown: list[str] = []

    def add(self, mask: Any, texts: pa.Array | pa.ChunkedArray, start: int) -> None:
        """Count the rows where `mask` is true; `start` is the number of the first row, `texts` the example of each."""
        rows = np.flatnonzero(np.asarray(mask, bool))
        self.count += len(rows)
        for row in rows[: EXAMPLES - len(self.shown)]:
            text = " | ".join(str(texts[int(row)].as_py()).split(SEPARATOR))
            self.shown.append(f"row {start + row}: {text if len(text) <= 120 else text[:119] + '…'}")

    def finding(self, level: str, rule: str, where: str) -> Iterator[Finding]:
        if self.count:
            yield Finding(level, rule, where, self.count, tuple(self.shown))


def batches(files: list[Path], columns: list[str]) -> Iterator[tuple[int, pa.Table]]:
    """(number of the first row, rows) of all files."""
    start = 0
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=BATCH_ROWS, columns=columns):
            yield start, pa.Table.from_batches([batch])
            start += batch.num_rows


def joined(table: pa.Table, columns: list[str]) -> pa.ChunkedArray:
    """The columns of each row as one text, lists with spaces between their texts."""
    texts = [
        pc.binary_join(column, " ") if pa.types.is_list(column.type) else column.cast(pa.string())
        for column in (table[name] for name in columns)
    ]
    texts = [pc.fill_null(text, "") for text in texts]
    return pc.binary_join_element_wise(*texts, SEPARATOR) if len(texts) > 1 else texts[0]


def languages_found(
    files: list[Path], language: str, names: list[str], where: str, identify: Identify, known: frozenset[str]
) -> Iterator[Finding]:
    """Rows whose texts are identified as another language: a warning; an error if most are identified as the same one.

    Args:
        names: the columns in `language`; the texts of a row are identified together.
    """
    plain = language.partition("-")[0]
    if plain not in known:
        return
    other, rows, labels = Examples(), 0, Counter[str]()
    for start, texts in _texts(files, names):
        found = identify(texts)
        rows += len(texts)
        labels.update(label for label, score in found if score > MIN_LANGUAGE_SCORE)
        shown = [f"{label} {score:.2f}: {text}" for (label, score), text in zip(found, texts, strict=True)]
        other.add([is_other_language(one, language) for one in found], pa.array(shown, pa.string()), start)
    own = labels.pop(plain, 0)
    most, count = labels.most_common(1)[0] if labels else ("", 0)
    if rows >= MIN_ROWS and count > MOST * rows and own < FEW * rows:
        yield from other.finding(ERROR, f"most texts identified as {most}, not {language}", where)
    else:
        yield from other.finding(WARNING, f"identified as another language than {language}", where)


def scripts_found(files: list[Path], language: str, names: list[str], where: str) -> Iterator[Finding]:
    """Rows without a letter of their language's script: a warning; an error if most rows are."""
    described = find_language(language)
    if described is None or not knows_script(described.script):
        return
    other, rows = Examples(), 0
    for start, texts in _texts(files, names):
        rows += len(texts)
        mask = [in_other_script(text, described.script) for text in texts]
        other.add(mask, pa.array(texts, pa.string()), start)
    most = rows >= MIN_ROWS and other.count > MOST * rows
    rule = f"{'most texts ' * most}without a letter of {language}'s script"
    yield from other.finding(ERROR if most else WARNING, rule, where)


def _texts(files: list[Path], names: list[str]) -> Iterator[tuple[int, list[str]]]:
    """(number of the first row, text of each row) of batches; several texts are joined, of `{text, ...}` the first."""
    for start, table in batches(files, names):
        columns = []
        for name in names:
            values, kind = table[name].to_pylist(), table[name].type
            if pa.types.is_list(kind) and pa.types.is_string(kind.value_type):
                values = [" ".join(word or "" for word in words or ()) for words in values]
            elif pa.types.is_list(kind):
                values = [entries[0]["text"] if entries else "" for entries in values]
            columns.append(values)
        yield start, [" ".join(text or "" for text in row) for row in zip(*columns, strict=True)]
