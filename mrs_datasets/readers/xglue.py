"""XGLUE's archive, or the folder that it unpacks to: all eleven tasks, or some of them, in some languages.

The layout of the files is told by `xglue_released`. One enclosing folder is accepted; missing parts are left out and
noted. Answers that the publisher hides (the first release has none for the test splits) are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from mrs_datasets.catalogue import Kind, read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.xglue_released import (
    PIVOT,
    SOURCE,
    questions,
    released_path,
    sentences,
    table_rows,
    texts,
)
from mrs_metrics.xglue_tasks import TASKS, Task, require_label
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import EDITED, NUL
from mrs_suggest.common.metric_errors import metric_errors

XGLUE = read_record("xglue")
SPLITS = {"train": "train", "dev": "validation", "test": "test"}
CHUNK_ROWS = 20_000  # chosen: 20,000 bodies of news are some 50 MB
OTHER_LABELS = {"XNLI": {"contradictory": "contradiction"}}  # of the training data (MultiNLI's translations)
Row = dict[str, Any]
Found = Callable[[str, str], None]  # (what, where): an unusual row


def read_xglue(sources: list[Path], report: Report) -> Chunks:
    """Read every source; each may hold some tasks, languages or splits.

    Raises:
        InputError: a source without a file of XGLUE, a split that is in two places, or a broken file.
    """
    found: dict[tuple[str, str, str], Path] = {}
    for source in sources:
        files = list(_files(source))
        if not files:
            raise InputError(
                f"{source}: no file of XGLUE was found; expected folders {', '.join(TASKS)} with files such as "
                "NER/en.train or XNLI/de.test."
            )
        for key, path in files:
            if key in found:
                raise InputError(f"{path}: this split is in {found[key]} already; keep one of them.")
            found[key] = path
    sizes: dict[str, list[str]] = {}
    for (name, language, split), path in found.items():
        yield from _chunks(TASKS[name], language, split, path, report, sizes.setdefault(name, []))
    for name, differing in sizes.items():
        if differing:
            report.notes.append(f"rows of {name}, and those of a complete source: {', '.join(differing)}.")
    _note_missing(found, report)


def _files(source: Path) -> Iterator[tuple[tuple[str, str, str], Path]]:
    """((task, language, split), file) of a folder and of its direct subfolders; with QG and NTG, the `src` file."""
    roots = [source, *sorted(path for path in source.iterdir() if path.is_dir())] if source.is_dir() else []
    for root in roots:
        for task in TASKS.values():
            for language in _kind(task).languages:
                for split in SPLITS:
                    path = released_path(root, task, language, split, SOURCE)
                    target = released_path(root, task, language, split)
                    if path.is_file():
                        yield (task.name, language, split), path
                    elif target.is_file():
                        raise InputError(f"{path}: no such file; {target.name} is there, which belongs to it.")


def _chunks(task: Task, language: str, split: str, path: Path, report: Report, differing: list[str]) -> Chunks:
    """The tables of a split; if their rows are not as many as a complete source has, `differing` gets both numbers."""
    config = _kind(task).config.format(language=language)
    part = f"{config}/{SPLITS[split]}"
    rows: list[Row] = []
    row: Row | None = None
    count = 0
    for row in _examples(task, language, split, path, lambda what, where: report.find(part, what, where)):
        rows.append(row)
        count += 1
        if len(rows) == CHUNK_ROWS:
            yield config, SPLITS[split], pa.Table.from_pylist(rows, XGLUE.schema(config))
            rows = []
    if row is None:
        raise InputError(f"{path}: the file has no examples.")
    if rows:
        yield config, SPLITS[split], pa.Table.from_pylist(rows, XGLUE.schema(config))
    answer = _kind(task).hidden[0]
    if row[answer] is None:
        report.notes.append(f"{config}: the source does not tell the answers of {SPLITS[split]}; {answer} is null.")
    whole = _kind(task).rows_of(language).get(SPLITS[split])
    if whole is not None and count != whole:
        differing.append(f"{part} {count:,} ({whole:,})")
        report.partial_splits.append(part)


def _examples(task: Task, language: str, split: str, path: Path, found: Found) -> Iterator[Row]:
    """The rows of a file; only a test split may lack its answers."""
    if task.kind == "tags":
        return _tagged(task, path, split)
    if task.kind == "answer":
        return _asked(path, found)
    if task.generation:
        root = path.parents[1]
        return _pairs(task, path, released_path(root, task, language, split), split, found)
    return _labelled(task, path, split, found)


def _tagged(task: Task, path: Path, split: str) -> Iterator[Row]:
    hidden = None
    for first, pairs in sentences(path):
        tags = [tag for _, tag in pairs]
        if hidden is None:
            hidden = split == "test" and not any(tags)
        for number, tag in enumerate(tags, start=first):
            where = f"{path}, line {number}"
            if hidden and tag:
                raise InputError(f"{where}: a tag, though the sentences before have none.")
            word = pairs[number - first][0]
            if " " in word or "\t" in word or not (hidden or tag):
                raise InputError(f"{where}: expected a word and its tag, found {f'{word} {tag}'.strip()!r:.60}.")
            if not hidden:
                with metric_errors():
                    require_label(task, tag, where)
        yield {"words": [word for word, _ in pairs], "tags": None if hidden else tags}


def _labelled(task: Task, path: Path, split: str, found: Found) -> Iterator[Row]:
    columns = [name for name in _kind(task).columns if name != "label"]
    read = ["id", *columns] if task.name == "PAWSX" else columns
    width = None
    for number, cells in table_rows(path, task):
        where = f"{path}, line {number}"
        if width is None:
            width = len(read) if split == "test" and len(cells) == len(read) else len(read) + 1
        if len(cells) != width:
            names = ", ".join([*read, "label"][:width])
            raise InputError(f"{where}: expected {width} columns between tabs ({names}), found {len(cells)}.")
        row: Row = dict(zip(read, (cell.strip() for cell in cells), strict=False))
        label = None
        if width > len(read):
            label = cells[-1].strip()
            label = OTHER_LABELS.get(task.name, {}).get(label, label)
            with metric_errors():
                require_label(task, label, where)
        _find_empty(row, columns, where, found)
        yield {**{name: row[name] for name in columns}, "label": label}


def _pairs(task: Task, path: Path, target: Path, split: str, found: Found) -> Iterator[Row]:
    given, wanted = _kind(task).columns
    hidden = not target.is_file()
    if hidden and split != "test":
        raise InputError(f"{target}: no such file; {path.name} is there, which belongs to it.")
    lines = texts(path)
    answers: Iterator[tuple[int, str]] = iter(()) if hidden else texts(target)
    for line, answer in zip_longest(lines, answers):
        if line is None or (answer is None and not hidden):
            longer, shorter = (target, path) if line is None else (path, target)
            number = (answer or line)[0]
            raise InputError(f"{longer}, line {number}: {shorter.name} ends before it; it needs as many lines.")
        row = {given: line[1], wanted: None if hidden else answer[1]}
        _find_empty(row, [given, wanted], f"{path}, line {line[0]}", found)
        yield row


def _asked(path: Path, found: Found) -> Iterator[Row]:
    seen: set[str] = set()
    for one in questions(path):
        where = f"{path}, question {one.id!r:.60}"
        if one.id in seen:
            raise InputError(f"{where}: the id is that of an earlier question.")
        seen.add(one.id)
        context, question = one.paragraph.get("context"), one.given.get("question")
        for name, text in (("id", one.id), ("context", context), ("question", question)):
            if not isinstance(text, str) or not text.strip():
                raise InputError(f"{where}: expected {name!r} to be a text, found {text!r:.60}.")
            if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
                raise InputError(f"{where}: {name!r} has {NUL} or half a character (an escape \\ud800 alone); {EDITED}")
        starts = [
            _start(where, str(context), text, answer.get("answer_start"), found)
            for text, answer in zip(one.answers, one.given["answers"], strict=True)
        ]
        answers = [{"text": text, "start": start} for text, start in zip(one.answers, starts, strict=True)]
        yield {"id": one.id, "context": context, "question": question, "answers": answers}


def _start(where: str, context: str, text: str, start: Any, found: Found) -> int:
    """Where an answer starts, in characters; if it is elsewhere than told, the place that is nearest."""
    if not isinstance(start, int) or isinstance(start, bool):
        raise InputError(f"{where}: expected 'answer_start' to be a whole number, found {start!r:.60}.")
    if not text.strip() or text not in context:
        raise InputError(f"{where}: the answer {text!r:.60} is not in the context.")
    if start >= 0 and context.startswith(text, start):
        return start
    found("answer_start that is not where the answer is; the nearest place was taken", where)
    before, after = context.rfind(text, 0, max(0, start) + len(text)), context.find(text, max(0, start))
    return min((place for place in (before, after) if place >= 0), key=lambda place: abs(place - start))


def _find_empty(row: Row, columns: list[str], where: str, found: Found) -> None:
    for name in columns:
        if row[name] == "":
            found(f"empty {name}", where)


def _kind(task: Task) -> Kind:
    return XGLUE.kinds[task.name.lower()]


def _note_missing(found: dict[tuple[str, str, str], Path], report: Report) -> None:
    """One note that names missing tasks, and one for each other task with its missing languages or splits."""
    have = {(name, language) for name, language, _ in found}
    tasks = {name for name, _ in have}
    absent = [name for name in TASKS if name not in tasks]
    if absent:
        report.notes.append(f"not in the source: {', '.join(absent)}.")
    for name in TASKS:
        if name not in tasks:
            continue
        missing = []
        for language in _kind(TASKS[name]).languages:
            config = _kind(TASKS[name]).config.format(language=language)
            wanted = [split for split in SPLITS if split != "train" or language == PIVOT]
            lacks = [SPLITS[split] for split in wanted if (name, language, split) not in found]
            missing += [config] if len(lacks) == len(wanted) else [f"{config}/{split}" for split in lacks]
        if missing:
            report.notes.append(f"not in the source ({name}): {' '.join(missing)}.")
