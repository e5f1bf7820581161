"""The examples of a run: from a prepared `xglue`, and files of its columns, to what a model reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset

from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.tasks.task_files import read_task_file
from mrs_metrics.xglue_statistics import query_starts
from mrs_metrics.xglue_tasks import require_label
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, sample_rows
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.understanding.text_rows import ANSWER, TAGS
from mrs_suggest.training.options import asked_languages, own_files
from mrs_suggest.training.understanding.options import ALL, MULTILANGUAGE, MULTITASK, UnderstandingArguments
from mrs_suggest.training.understanding.tasks import Understanding

ENGLISH_ALONE = "XGLUE has training data in English alone"


@dataclass(frozen=True)
class Part:
    """One split of one task in one language, in the order of the data.

    Attributes:
        columns: those of the task -> values; that of the right answers is missing where the publisher hides them.
    """

    task: Understanding
    language: str
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns[self.task.first[0]])

    @property
    def gold(self) -> list[Any] | None:
        """The right answers; None if they are hidden."""
        return self.columns.get(self.task.gold)

    @property
    def name(self) -> str:
        """`xnli-de`"""
        return self.task.config(self.language)

    def text(self, number: int, columns: Sequence[str]) -> str:
        """The texts of one example in these columns, a space between them."""
        return " ".join(part for column in columns if (part := self.columns[column][number]))

    def texts(self) -> Iterator[str]:
        if self.task.kind == TAGS:
            yield from (" ".join(words) for words in self.columns[self.task.first[0]])
        else:
            for number in range(len(self)):
                yield from (self.text(number, self.task.first), self.text(number, self.task.second))


Parts = dict[str, dict[str, Part]]  # task -> language -> examples


@dataclass(frozen=True)
class UnderstandingData:
    """The data that a run trains on, chooses its checkpoint by, and is tested on.

    Attributes:
        origin: ids of the data, and their revisions or content hashes.
    """

    options: UnderstandingArguments
    train: Parts
    validation: Parts
    test: Parts
    origin: Record = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        for part in each(self.train):
            yield from part.texts()

    @property
    def zero_shot(self) -> dict[str, list[str]]:
        """Task -> tested languages of which neither training nor the choice of the checkpoint saw an example."""
        return {
            task: [code for code in tested if code not in self.train[task] and code not in self.validation[task]]
            for task, tested in self.test.items()
        }

    def facts(self) -> Record:
        rows: dict[str, dict[str, int]] = {}
        for split, parts in (("train", self.train), ("validation", self.validation), ("test", self.test)):
            for part in each(parts):
                rows.setdefault(part.name, {})[split] = len(part)
        plan = {
            "mode": self.options.mode,
            "tasks": list(self.test),
            "train": {task: list(of) for task, of in self.train.items()},
            "validation": {task: list(of) for task, of in self.validation.items()},
            "validation_by": self.options.validation,
            "zero_shot": self.zero_shot,
        }
        return {"data": {**self.origin, "rows": rows}, "plan": plan}


def each(parts: Parts) -> Iterator[Part]:
    return (part for of in parts.values() for part in of.values())


def load_understanding_data(options: UnderstandingArguments, seed: int) -> UnderstandingData:
    """Load what the options ask for; each split is cut to a seeded sample if they say so.

    Args:
        seed: draws the training rows; validation and test are drawn with `EVALUATION_SEED`.

    Raises:
        InputError: the data lack a language, a split or a column, or an example breaks the task's layout.
    """
    data = open_prepared(options.data, options.data_revision)
    tasks = options.chosen()
    own = own_files(options.train, "de=xnli_de.parquet")
    tested = _tested(data, tasks, options)
    train = {task.name: _training(data, task, options, own, seed) for task in tasks}
    validation: Parts = {}
    test: Parts = {}
    for task in tasks:
        wanted = tested[task.name] if options.validation == ALL else list(train[task.name])
        limit = options.max_validation_examples
        validation[task.name] = {code: _part(data, task, code, "validation", limit, EVALUATION_SEED) for code in wanted}
        test[task.name] = {
            code: _part(data, task, code, "test", options.max_test_examples, EVALUATION_SEED)
            for code in tested[task.name]
        }
    used = [task.config(code) for task in tasks for code in {**train[task.name], **dict.fromkeys(tested[task.name])}]
    origin: Record = data.identity([], used)
    if own:
        origin["train"] = {code: {"id": place, **_hash_of(place, tasks[0], code)} for code, place in own.items()}
    return UnderstandingData(options, train, validation, test, origin)


def _training(
    data: PreparedData, task: Understanding, options: UnderstandingArguments, own: Mapping[str, str], seed: int
) -> dict[str, Part]:
    """Language -> training examples."""
    have = [code for code in task.task.languages if "train" in _splits(data, task, code)]
    if options.mode == MULTILANGUAGE:
        codes = list(dict.fromkeys([*have, *own]))
        if len(codes) < 2:
            raise InputError(
                f"--mode multilanguage: {data.name} has training data of {task.name} in {' '.join(codes) or 'nothing'} "
                f"({ENGLISH_ALONE}); add others with --train LANG=FILE_OR_FOLDER, such as --train de=xnli_de.parquet."
            )
    else:
        if foreign := [code for code in own if code != options.pivot]:
            raise InputError(
                f"--train {foreign[0]}=...: --mode pivot trains on {options.pivot} alone; pass --pivot {foreign[0]}, "
                "or --mode multilanguage."
            )
        codes = [options.pivot]
        if options.pivot not in have and not own:
            advice = "" if options.mode == MULTITASK else f"; pass --train {options.pivot}=FILE_OR_FOLDER"
            raise InputError(
                f"--pivot {options.pivot}: {data.name} has training data of {task.name} in "
                f"{' '.join(have) or 'no language'} ({ENGLISH_ALONE}){advice}."
            )
    limit = options.max_train_examples
    return {
        code: _own_part(data, own[code], task, code, limit, seed)
        if code in own
        else _part(data, task, code, "train", limit, seed)
        for code in codes
    }


def _tested(
    data: PreparedData, tasks: Sequence[Understanding], options: UnderstandingArguments
) -> dict[str, list[str]]:
    """Task -> the languages to test on, in the order of the scorer's table."""
    have = {task.name: [code for code in task.task.languages if "test" in _splits(data, task, code)] for task in tasks}
    for name, codes in have.items():
        if not codes:
            raise InputError(
                f"{data.name}: has no test split of {name} in any language; pass the folder that `mrs data prepare "
                "xglue` wrote."
            )
    known = dict.fromkeys(chain.from_iterable(have.values()))
    asked = asked_languages(options.languages, list(known), data.name, f"test split of {' or '.join(have)} in it")
    chosen = {name: [code for code in codes if code in asked] for name, codes in have.items()}
    if empty := [name for name, codes in chosen.items() if not codes]:
        raise InputError(f"--languages: {empty[0]} is tested in {' '.join(have[empty[0]])}; name one of them.")
    return chosen


def _splits(data: PreparedData, task: Understanding, code: str) -> list[str]:
    config = task.config(code)
    return data.splits(config) if config in data.configs() else []


def _part(data: PreparedData, task: Understanding, code: str, split: str, limit: int | None, seed: int) -> Part:
    config = task.config(code)
    rows = data.load(config, split)
    where = f"{data.name}, {config}/{split}"
    return _checked(task, code, _limited(task, rows, limit, seed, where), where, split == "test")


def _own_part(data: PreparedData, place: str, task: Understanding, code: str, limit: int | None, seed: int) -> Part:
    """Training examples from a value of `--train`."""
    where = f"--train {code}={place}"
    if Path(place).is_dir():
        return _part(open_prepared(place), task, code, "train", limit, seed)
    if not Path(place).is_file():
        raise InputError(f"{where}: no such file or folder.")
    record, own = data.record(), {task.config(code) for code in task.task.languages}
    whole = record.schema(next(config for config, _, _ in record.configs() if config in own))
    rows = read_task_file(Path(place), pa.schema([whole.field(column) for column in task.columns]))
    return _checked(task, code, _limited(task, rows, limit, seed, where), where, False)


def _hash_of(place: str, task: Understanding, code: str) -> Record:
    path = Path(place)
    files = sorted((path / "data" / task.config(code)).glob("train-*.parquet")) if path.is_dir() else [path]
    return {"content_hash": content_hash(files)}


def _limited(task: Understanding, rows: Dataset, limit: int | None, seed: int, where: str) -> Dataset:
    """A seeded sample; of pages, of whole queries."""
    if missing := [column for column in task.columns if column not in rows.column_names]:
        raise InputError(
            f"{where}: expected the columns {', '.join(task.columns)} of {task.name}, but {missing[0]} is missing; it "
            f"has {', '.join(rows.column_names)}."
        )
    if not len(rows):
        raise InputError(f"{where}: is empty.")
    if task.query is None or limit is None or limit >= len(rows):
        return sample_rows(rows, limit, seed)
    starts = query_starts(rows[task.query][:])
    groups = [range(begin, end) for begin, end in zip(starts, [*starts[1:], len(rows)], strict=True)]
    chosen: list[range] = []
    for number in np.random.default_rng(seed).permutation(len(groups)):
        if not chosen or sum(map(len, chosen)) + len(groups[number]) <= limit:
            chosen.append(groups[number])
    return rows.select([row for group in sorted(chosen, key=lambda one: one.start) for row in group])


def _checked(task: Understanding, code: str, rows: Dataset, where: str, may_hide: bool) -> Part:
    """The columns of the task, after a look at each row."""
    columns = {column: rows[column][:] for column in task.columns}
    gold = columns[task.gold]
    hidden = [number for number, value in enumerate(gold) if value is None]
    if hidden and not (may_hide and len(hidden) == len(gold)):
        what = {TAGS: "tags", ANSWER: "answers"}.get(task.kind, "label")
        raise InputError(f"{where}, row {hidden[0] + 1}: has no {what}; only a whole test split may hide them.")
    if hidden:
        del columns[task.gold]
    part = Part(task, code, columns)
    for number in range(len(part)):
        at = f"{where}, row {number + 1}"
        with metric_errors():
            _check_row(part, number, at)
    return part


def _check_row(part: Part, number: int, at: str) -> None:
    task, gold = part.task, part.gold
    value = gold[number] if gold is not None else None
    if task.kind == TAGS:
        words = part.columns[task.first[0]][number]
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise InputError(f"{at}: expected one word or more, found {words!r:.80}.")
        if gold is not None and (not isinstance(value, list) or len(value) != len(words)):
            raise InputError(f"{at}: expected a tag for each of {len(words)} words, found {value!r:.80}.")
        for tag in value or ():
            require_label(task.task, tag, at)
        return
    for column in (*task.first, *task.second):
        text = part.columns[column][number]
        if text is None:
            part.columns[column][number] = ""
        elif not isinstance(text, str):
            raise InputError(f"{at}: expected {column} to be a text, found {text!r:.80}.")
    if gold is None:
        return
    if task.kind != ANSWER:
        require_label(task.task, value, at)
        return
    try:
        answers = [(str(one["text"]), int(one["start"])) for one in value or ()]
    except (TypeError, KeyError, ValueError):
        answers = []
    if not answers:
        raise InputError(f"{at}: expected answers with text and start, found {value!r:.80}.") from None
    context = part.columns["context"][number]
    for text, start in answers:
        if start < 0 or context[start : start + len(text)] != text:
            raise InputError(f"{at}: the context has no {text!r:.40} at character {start}; prepare the data again.")
