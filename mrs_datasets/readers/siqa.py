"""SIQA as its authors publish it: JSON lines next to a file of labels (Sap et al. 2019).

    {train,dev}.jsonl          {train,dev}-labels.lst

One enclosing folder is accepted. The archive has no labels for the test split: a `test.jsonl` is left out and noted.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.sources import Key, checked_row, find_files, folders_of, note_size, read_json_rows
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines

SIQA = read_record("siqa")
CONFIG = "en"
SPLITS = {"train": "train", "dev": "validation"}
TEXTS = ("context", "question", "answerA", "answerB", "answerC")
LABELS = {"1": 0, "2": 1, "3": 2}


def read_siqa(sources: list[Path], report: Report) -> Chunks:
    """Read every source; each may hold one split or both."""
    expected = "SIQA's files (train.jsonl, train-labels.lst, dev.jsonl ...) were not found"
    found = find_files(sources, lambda source: _files(source, report), expected)
    for split in SPLITS.values():
        if (CONFIG, split) in found:
            yield CONFIG, split, _table(found[CONFIG, split], split, report)
        else:
            report.notes.append(f"not in the source: {split}.")


def _files(source: Path, report: Report) -> Iterator[tuple[Key, Path]]:
    for root in folders_of(source):
        for name, split in SPLITS.items():
            if (root / f"{name}.jsonl").is_file():
                yield (CONFIG, split), root / f"{name}.jsonl"
        if (root / "test.jsonl").is_file():
            report.notes.append(f"{CONFIG}: test.jsonl is left out, since the archive has no labels for it.")


def _table(path: Path, split: str, report: Report) -> pa.Table:
    columns = {name: SIQA.columns[name] for name in TEXTS}
    rows = [checked_row(where, row, columns) for where, row in read_json_rows(path)]
    if not rows:
        raise InputError(f"{path}: the file has no examples.")
    labels_path = path.with_name(f"{path.stem}-labels.lst")
    if not labels_path.is_file():
        raise InputError(f"{labels_path}: no such file; the published archive has the labels of {path.name} there.")
    labels = []
    for number, line in read_lines(labels_path, as_published=True):
        if line.strip() not in LABELS:
            raise InputError(f"{labels_path}, line {number}: expected 1, 2 or 3, found {line[:60]!r}.")
        labels.append(LABELS[line.strip()])
    if len(labels) != len(rows):
        raise InputError(f"{labels_path}: {len(labels):,} labels for the {len(rows):,} examples of {path.name}.")
    note_size(report, SIQA, CONFIG, split, len(rows))
    numbered = ({**row, "label": label, "idx": idx} for idx, (row, label) in enumerate(zip(rows, labels, strict=True)))
    return pa.Table.from_pylist(list(numbered), SIQA.schema(CONFIG))
