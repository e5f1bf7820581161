"""XGLUE's archive, or the folder that it unpacks to: all eleven tasks, or some of them, in some languages.

`xglue_files` describes the layout. One enclosing folder is accepted; missing parts are left out and noted. Answers
that the publisher hides (in the first release, those of all test splits) are null.
"""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from mrs_datasets.catalogue import Kind, read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.sources import Key, Row, find_files, folders_of, lacking
from mrs_datasets.readers.xglue_files import PIVOT, SOURCE, questions, released_path, sentences, table_rows, texts
from mrs_metrics.xglue_tasks import TASKS, Task, require_label
from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.common.io.lines import EDITED, NUL

XGLUE = read_record("xglue")
SPLITS = {"train": "train", "validation": "dev", "test": "test"}  # ours -> the publisher's
CHUNK_ROWS = 20_000  # chosen: 20,000 bodies of news are some 50 MB
OTHER_LABELS = {"XNLI": {"contradictory": "contradiction"}}  # of the training data (MultiNLI's translations)
Found = Callable[[str, str], None]  # (what, where): an unusual row


def read_xglue(sources: list[Path], report: Report) -> Chunks:
    """Read every source; each may hold some tasks, languages or splits."""
    expected = (
        f"no file of XGLUE was found; expected folders {', '.join(TASKS)} with files such as NER/en.train or "
        "XNLI/de.test"
    )
    found = find_files(sources, _files, expected)
    absent = []
    for name, task in TASKS.items():
        kind = _kind(task)
        parts = {key: path for key, path in found.items() if XGLUE.kind_of(key[0]) is kind}
        differing: list[str] = []
        for (config, split), path in parts.items():
            yield from _chunks(task, config, split, path, report, differing)
        if differing:
            report.notes.append(f"rows of {name}, and those of a complete source: {', '.join(differing)}.")
        if not parts:
            absent.append(name)
            continue
        english_only = [f"{kind.config.format(language=one)}/train" for one in kind.languages if one != PIVOT]
        if missing := lacking(XGLUE, kind, parts, english_only):
            report.notes.append(f"not in the source ({name}): {' '.join(missing)}.")
    if absent:
        report.notes.append(f"not in the source: {', '.join(absent)}.")


def _files(source: Path) -> Iterator[tuple[Key, Path]]:
    """((config, split), file) of a folder and of its direct subfolders; with QG and NTG, the `src` file."""
    for root in folders_of(source):
        for task in TASKS.values():
            for language in _kind(task).languages:
                for split, name in SPLITS.items():
                    path = released_path(root, task, language, name, SOURCE)
                    target = released_path(root, task, language, name)
                    if path.is_file():
                        yield (_kind(task).config.format(language=language), split), path
                    elif target.is_file():
                        raise InputError(f"{path}: no such file, but {target.name} is there, which needs it.")


def _chunks(task: Task, config: str, split: str, path: Path, report: Report, differing: list[str]) -> Chunks:
    """The tables of a split; if their rows are not as many as a complete source has, `differing` gets both numbers."""
    part = f"{config}/{split}"
    language = XGLUE.language_of(config)
    rows: list[Row] = []
    count = 0
    examples = _examples(task, language, split, path, lambda what, where: report.find(part, what, where))
    for rows in in_batches(examples, CHUNK_ROWS):
        count += len(rows)
        yield config, split, pa.Table.from_pylist(rows, XGLUE.schema(config))
    if not count:
        raise InputError(f"{path}: the file has no examples.")
    answer = _kind(task).hidden[0]
    if rows[-1][answer] is None:
        report.notes.append(f"{config}: the source does not have the answers of {split}; {answer} is null.")
    whole = _kind(task).rows_of(language).get(split)
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
        target = released_path(path.parents[1], task, language, SPLITS[split])
        return _pairs(task, path, target, split, found)
    return _labelled(task, path, split, found)


def _tagged(task: Task, path: Path, split: str) -> Iterator[Row]:
    hidden = None
    for first, pairs in sentences(path):
        tags = [tag for _, tag in pairs]
        if hidden is None:
            hidden = split == "test" and not any(tags)
        for number, (word, tag) in enumerate(pairs, start=first):
            where = f"{path}, line {number}"
            if hidden and tag:
                raise InputError(f"{where}: a tag, but earlier sentences do not have any.")
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
        raise InputError(f"{target}: no such file, but {path.name} is there, which needs it.")
    answers: Iterator[tuple[int, str]] = iter(()) if hidden else texts(target)
    for line, answer in zip_longest(texts(path), answers):
        if line is None or (answer is None and not hidden):
            longer, shorter = (target, path) if line is None else (path, target)
            number = (answer or line)[0]
            raise InputError(f"{longer}, line {number}: {shorter.name} ends before it; both need as many lines.")
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
        row: Row = {"id": one.id, "context": one.context, "question": one.given.get("question")}
        for name, text in row.items():
            if not isinstance(text, str) or not text.strip():
                raise InputError(f"{where}: expected {name!r} to be a text, found {text!r:.60}.")
            if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
                raise InputError(f"{where}: {name!r} has {NUL} or half a character (an escape \\ud800 alone); {EDITED}")
        answers = [
            {"text": text, "start": _start(where, one.context, text, answer.get("answer_start"), found)}
            for text, answer in zip(one.answers, one.given["answers"], strict=True)
        ]
        yield {**row, "answers": answers}


def _start(where: str, context: str, text: str, start: Any, found: Found) -> int:
    """Where an answer starts, in characters; the nearest place if it is not at the stated one."""
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
