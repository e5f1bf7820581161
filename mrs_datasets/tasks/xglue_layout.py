"""Writes prepared tasks of XGLUE as the archive's files, which the official scorer and `mrs score` accept as gold."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.readers.xglue import SPLITS
from mrs_datasets.readers.xglue_files import SOURCE, TARGET, released_path
from mrs_metrics.xglue_tasks import Task, get_task
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder

DATA_SETS = ("xglue", "synthetic-xglue")
HEADERS = {"PAWSX": ("id", "sentence1", "sentence2", "label"), "XNLI": ("premise", "hypo", "label")}
Row = dict[str, Any]


def write_layout(data: PreparedData, folder: Path, configs: Sequence[str] | None = None) -> list[Path]:
    """Write the files of every config in the data, or of the named ones, below a new folder; return their paths.

    A text is one line of a file: tabs and line ends in it become spaces. Hidden answers are left out, as in the
    archive's first release.
    """
    if data.data_set() not in DATA_SETS:
        raise InputError(f"{data.name}: expected prepared data of {' or '.join(DATA_SETS)}, found {data.data_set()}.")
    have = data.configs()
    written = []
    with atomic_folder(folder, overwrite=False) as partial:
        for config in configs or have:
            if config not in have:
                raise InputError(f"{data.name}: no config {config!r}; it has {' '.join(have)}.")
            name, _, language = config.partition("-")
            for split in data.splits(config):
                rows = data.load(config, split).to_list()
                written += write_split_files(partial, get_task(name), language, split, rows)
    return [folder / path.relative_to(partial) for path in written]


def write_split_files(folder: Path, task: Task, language: str, split: str, rows: Sequence[Row]) -> list[Path]:
    """Write the file or files of one split (`train`, `validation` or `test`) below a folder; return their paths."""
    published = SPLITS[split]
    path = released_path(folder, task, language, published)
    if task.generation:
        given, wanted = rows[0]
        files = [_write(released_path(folder, task, language, published, SOURCE), (_line(row[given]) for row in rows))]
        if rows[0][wanted] is not None:
            target = released_path(folder, task, language, published, TARGET)
            files.append(_write(target, (_line(row[wanted]) for row in rows)))
        return files
    if task.kind == "tags":
        return [_write(path, (line for row in rows for line in _sentence(row)))]
    if task.kind == "answer":
        return [_write(path, [json.dumps({"data": list(_articles(rows))}, ensure_ascii=False)])]
    return [_write(path, _table(task, rows, headed=path.suffix == ".tsv"))]


def _write(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def _line(text: str) -> str:
    return " ".join(text.split())


def _sentence(row: Row) -> Iterator[str]:
    for place, word in enumerate(row["words"]):
        yield f"{word} {row['tags'][place]}" if row["tags"] is not None else word
    yield ""


def _table(task: Task, rows: Sequence[Row], headed: bool) -> Iterator[str]:
    hidden = rows[0]["label"] is None
    if headed:
        yield "\t".join(HEADERS[task.name])
    for number, row in enumerate(rows, start=1):
        cells = [_line(value) for name, value in row.items() if not (hidden and name == "label")]
        yield "\t".join([str(number), *cells] if task.name == "PAWSX" else cells)


def _articles(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        answers = [{"text": answer["text"], "answer_start": answer["start"]} for answer in row["answers"] or ()]
        question = {"id": row["id"], "question": row["question"], "answers": answers}
        yield {"title": "", "paragraphs": [{"context": row["context"], "qas": [question]}]}
