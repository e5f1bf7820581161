"""SIQA as its authors publish it: JSON lines beside a file of labels (Sap et al. 2019).

    {train,dev}.jsonl          {train,dev}-labels.lst

One enclosing folder is accepted. The archive has no labels for the test split: a `test.jsonl` is left out and noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.json_lines import read_json_rows, require_text
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines

SIQA = read_record("siqa")
CONFIG = "en"
SPLITS = {"train": "train", "dev": "validation"}
TEXTS = ("context", "question", "answerA", "answerB", "answerC")
LABELS = {"1": 0, "2": 1, "3": 2}


def read_siqa(sources: list[Path], report: Report) -> Chunks:
    """Read every source; each may hold one split or both.

    Raises:
        InputError: a source without a split, a split that is in two places, or a broken file.
    """
    found: dict[str, Path] = {}
    for source in sources:
        files = list(_files(source, report))
        if not files:
            raise InputError(f"{source}: SIQA's files (train.jsonl, train-labels.lst, dev.jsonl ...) were not found.")
        for split, path in files:
            if split in found:
                raise InputError(f"{path}: the {split} split is in {found[split]} already; keep one of them.")
            found[split] = path
    for split in SIQA.kind_of(CONFIG).splits:
        if split in found:
            yield CONFIG, split, _table(found[split], split, report)
        else:
            report.notes.append(f"not in the source: {split}.")


def _files(source: Path, report: Report) -> Iterator[tuple[str, Path]]:
    """(split, JSON lines) of a folder and of its direct subfolders."""
    roots = [source, *sorted(path for path in source.iterdir() if path.is_dir())] if source.is_dir() else []
    for root in roots:
        for name, split in SPLITS.items():
            if (root / f"{name}.jsonl").is_file():
                yield split, root / f"{name}.jsonl"
        if (root / "test.jsonl").is_file():
            report.notes.append(f"{CONFIG}: test.jsonl is left out, since the archive has no labels for it.")


def _table(path: Path, split: str, report: Report) -> pa.Table:
    rows = [_texts(where, row) for where, row in read_json_rows(path)]
    if not rows:
        raise InputError(f"{path}: the file has no examples.")
    labels_path = path.with_name(f"{path.stem}-labels.lst")
    if not labels_path.is_file():
        raise InputError(f"{labels_path}: no such file; the published archive has the labels of {path.name} there.")
    labels = [_label(labels_path, number, line) for number, line in read_lines(labels_path, as_published=True)]
    if len(labels) != len(rows):
        raise InputError(f"{labels_path}: {len(labels):,} labels for the {len(rows):,} examples of {path.name}.")
    expected = SIQA.kind_of(CONFIG).rows[split]
    if len(rows) != expected:
        report.notes.append(f"{CONFIG}: the {split} split has {len(rows):,} rows, a complete source has {expected:,}.")
        report.partial_splits.append(f"{CONFIG}/{split}")
    columns: dict[str, list[object]] = {name: [row[name] for row in rows] for name in TEXTS}
    return pa.table({**columns, "label": labels, "idx": list(range(len(rows)))}, SIQA.schema(CONFIG))


def _texts(where: str, row: dict[str, object]) -> dict[str, object]:
    for name in TEXTS:
        require_text(where, row, name)
    return row


def _label(path: Path, number: int, line: str) -> int:
    try:
        return LABELS[line.strip()]
    except KeyError:
        raise InputError(f"{path}, line {number}: expected 1, 2 or 3, found {line[:60]!r}.") from None
