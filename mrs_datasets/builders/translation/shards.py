"""The translation of a range of rows: every distinct text once, in blocks that are kept as soon as they are done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from mrs_datasets.builders.passes import Rows
from mrs_datasets.builders.pipeline.checked_files import damaged, read_batches, write_batches
from mrs_datasets.builders.pipeline.stages import Advance, ShardCounts
from mrs_datasets.builders.translation.outcomes import REASONS, Identifier, outcomes
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.io.text_cache import TextCache
from mrs_suggest.common.text.text_services import Translator

BLOCK = 512  # texts; what is translated again after a kill, at most
CODE = "code"
ROWS = "rows"


@dataclass(frozen=True)
class Translation:
    """Translates one range of rows to one language; picklable where translator and identifier are.

    Attributes:
        columns: the texts of a row; it is dropped if one of them is, for the reason of the first.
        output: of the translated columns, with `CODE` of each row.
        cache: a file for finished answers.
    """

    rows: Rows
    columns: tuple[str, ...]
    source: str
    target: str
    translator: Translator
    identifier: Identifier | None
    output: Location
    cache: Path

    def __call__(self, advance: Advance) -> ShardCounts:
        """Do it; return the number of rows, and of those dropped by reason."""
        table = self.rows.read().select(list(self.columns))
        each = [table.column(name).to_pylist() for name in self.columns]
        texts = list(dict.fromkeys(text for column in each for text in column))
        translations = self._translated(texts, advance)
        found = outcomes(translations, self.translator, self.identifier, self.source, self.target)
        codes = np.zeros(table.num_rows, np.uint8)
        for column in reversed(each):
            own = np.fromiter((found[text] for text in column), np.uint8, len(column))
            codes = np.where(own, own, codes)
        arrays = [pa.array([translations[text] for text in column], pa.string()) for column in each]
        batch = pa.record_batch([*arrays, pa.array(codes, pa.uint8())], self.schema)
        write_batches(self.output, self.schema, [batch])
        dropped = {reason: int((codes == code).sum()) for code, reason in REASONS.items()}
        return {ROWS: table.num_rows, **{reason: count for reason, count in dropped.items() if count}}

    @property
    def schema(self) -> pa.Schema:
        """Of the file that it writes."""
        return pa.schema([*((name, pa.string()) for name in self.columns), (CODE, pa.uint8())])

    def read(self) -> pa.Table:
        """What it wrote.

        Raises:
            InputError: the file is damaged.
        """
        table = pa.Table.from_batches(read_batches(self.output, self.schema.names), self.schema)
        if table.num_rows != self.rows.count:
            raise damaged(self.output, f"it has {table.num_rows:,} rows, not {self.rows.count:,}")
        return table

    def _translated(self, texts: Sequence[str], advance: Advance) -> dict[str, str]:
        """text -> its translation."""
        about = f"{self.source}-{self.target} {json.dumps(dict(self.translator.settings), sort_keys=True)}"
        found: dict[str, str] = {}
        done = 0
        with TextCache[str](self.cache, self.translator.facts, about) as cache:
            for block in _blocks(texts):
                known = cache.known(block)
                new = [text for text in block if text not in known]
                if new:
                    answers = self.translator.translate(new, self.source, self.target)
                    known |= dict(zip(new, (answer.strip() for answer in answers), strict=True))
                    cache.add({text: known[text] for text in new})
                found |= known
                done += len(block)
                advance(self.rows.count * done // len(texts) - self.rows.count * (done - len(block)) // len(texts))
        return found


def _blocks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts of similar length together, the longest first, so that a lack of memory shows at once.

    Blocks are made of all texts, known or not: so a resumed run has the same as one that was not interrupted, and its
    batches, in which a model's rounding may differ, are the same.
    """
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    for start in range(0, len(ordered), BLOCK):
        yield ordered[start : start + BLOCK]
