"""Whether the columns of a row fit together: lists entry by entry, and answers as parts of their text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mrs_datasets.catalogue import ERROR, Kind
from mrs_datasets.check.findings import Examples, Finding, batches, joined


def parts_found(files: list[Path], kind: Kind, shown: list[str], where: str) -> Iterator[Finding]:
    """Rows whose `aligned` lists differ in length, and rows with a span that is not a part of its text.

    Args:
        shown: the columns that an example of a finding shows.
    """
    for column, text in kind.spans.items():
        outside = Examples()
        for start, table in batches(files, list(dict.fromkeys([column, text, *shown]))):
            pairs = zip(table[column].to_pylist(), table[text].to_pylist(), strict=True)
            mask = np.array([not all(_is_part(span, whole) for span in spans or ()) for spans, whole in pairs], bool)
            outside.add(mask, joined(table, shown), start)
        yield from outside.finding(ERROR, f"{column} that are not in {text} where they start", where)
    if kind.aligned:
        uneven = Examples()
        for start, table in batches(files, list(dict.fromkeys([*kind.aligned, *shown]))):
            rows = zip(*(table[name].to_pylist() for name in kind.aligned), strict=True)
            mask = np.array([len({len(held) for held in row if held is not None}) > 1 for row in rows], bool)
            uneven.add(mask, joined(table, shown), start)
        yield from uneven.finding(ERROR, f"{' and '.join(kind.aligned)} of different lengths", where)


def _is_part(span: dict[str, Any] | None, whole: str | None) -> bool:
    if span is None or span["text"] is None or span["start"] is None or whole is None:
        return False
    return bool(span["start"] >= 0 and whole.startswith(span["text"], span["start"]))
