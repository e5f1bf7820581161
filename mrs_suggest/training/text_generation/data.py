"""The data of a run of a generation task: sources and targets by language, from a prepared folder and own files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from datasets import Dataset

from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.tasks.task_files import read_task_file
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, examples_hash, sample_rows
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.generation.options import MULTILANGUAGE, PIVOT, GenerationArguments
from mrs_suggest.training.options import asked_languages, own_files
from mrs_suggest.training.text_generation.tasks import TextTask

ALL, SOURCE = "all", "source"
ENGLISH = "en"  # the language of XGLUE's training data
COLUMNS = ("message", "reply")  # names of source and target here, as a generator's encoding knows them
Files = Mapping[str, Path]  # language -> own file


@dataclass(frozen=True)
class TextData:
    """The data that a run trains on, chooses its checkpoint by, and is tested on.

    Attributes:
        train, validation, test: language -> columns `message` (the source) and `reply` (the target; null in a test
            split whose answers the publisher keeps).
        files: languages whose training data are the user's own.
        origin: id of the data, and their revision or content hash.
    """

    task: TextTask
    mode: str
    sampling_alpha: float
    train: dict[str, Dataset]
    validation: dict[str, Dataset]
    test: dict[str, Dataset]
    files: Files = field(default_factory=dict)
    origin: Record = field(default_factory=dict)

    @property
    def languages(self) -> list[str]:
        return list(dict.fromkeys([*self.train, *self.validation, *self.test]))

    @property
    def zero_shot(self) -> bool:
        """Whether nothing of the tested languages but those of training was used to train or to choose."""
        return set(self.validation) <= set(self.train)

    def texts(self) -> Iterator[str]:
        for rows in self.train.values():
            for column in COLUMNS:
                yield from rows[column][:]

    def facts(self) -> Record:
        """Facts for the record of a run: the data and the rows used, a hash of the test examples, and the plan."""
        rows: dict[str, dict[str, int]] = {}
        for split, parts in (("train", self.train), ("validation", self.validation), ("test", self.test)):
            for language, found in parts.items():
                rows.setdefault(self.task.config(language), {})[split] = len(found)
        own = {"own_files": {code: content_hash([path]) for code, path in self.files.items()}} if self.files else {}
        plan = {
            "task": self.task.name,
            "title": self.task.title,
            "mode": self.mode,
            "train": list(self.train),
            "sampling_alpha": self.sampling_alpha,
            "validation": list(self.validation),
            "zero_shot": self.zero_shot,
            "test": list(self.test),
        }
        return {"data": {**self.origin, **own, "rows": rows, "test_hash": examples_hash(self.test)}, "plan": plan}


def load_text_data(task: TextTask, options: GenerationArguments, seed: int) -> TextData:
    """Load what the options ask for; each split is cut to a seeded sample if they say so.

    Args:
        seed: draws the training rows; validation and test are drawn with `EVALUATION_SEED`.

    Raises:
        InputError: the data lack a language, a split or a column.
    """
    source = open_prepared(options.data, options.data_revision)
    have = {code: config for config in source.configs() if (code := task.language(config))}
    if not have:
        raise InputError(
            f"--data {options.data}: {source.name} has no config {task.config('LANG')}; pass a folder that `mrs data "
            "prepare xglue` wrote from an archive with this task."
        )
    tested = _tested(source, task, options, have)
    mode, files = options.mode or PIVOT, _own_files(options, task)
    trained = _trained(source, task, options, have, files)
    limits = options.max_train_examples, options.max_validation_examples, options.max_test_examples
    train = {code: _train_rows(source, task, code, have, files) for code in trained}
    validation = _validated(options, have, trained, tested)
    return TextData(
        task,
        mode,
        1.0 if options.sampling_alpha is None else options.sampling_alpha,
        {code: sample_rows(rows, limits[0], seed) for code, rows in train.items()},
        {code: _split(source, task, code, "validation", limits[1]) for code in validation},
        {code: _split(source, task, code, "test", limits[2]) for code in tested},
        {code: path for code, path in files.items() if code in trained},
        source.identity([], [task.config(code) for code in dict.fromkeys([*trained, *validation, *tested])]),
    )


def _tested(source: PreparedData, task: TextTask, options: GenerationArguments, have: Mapping[str, str]) -> list[str]:
    found = [code for code in have if "test" in source.splits(have[code])]
    if options.languages == [ALL] and not found:
        raise InputError(f"--data {options.data}: {source.name} has no test split of {task.option}.")
    return asked_languages(options.languages, found, source.name, f"test split of {task.option} in it")


def _own_files(options: GenerationArguments, task: TextTask) -> dict[str, Path]:
    found = {language: Path(place) for language, place in own_files(options.train, "de=titles.de.jsonl").items()}
    for language, path in found.items():
        if language not in task.languages:
            raise InputError(
                f"--train {language}={path}: {task.name} is in {' '.join(task.languages)}, not in {language}."
            )
    return found


def _trained(
    source: PreparedData, task: TextTask, options: GenerationArguments, have: Mapping[str, str], files: Files
) -> list[str]:
    there = [code for code, config in have.items() if "train" in source.splits(config)]
    own = f"{source.name} has training data of {task.option} in {' '.join(there) or 'no language'}"
    if options.mode == MULTILANGUAGE:
        codes = list(dict.fromkeys([*there, *files]))
        if len(codes) < 2:
            raise InputError(
                f"--mode {MULTILANGUAGE}: {own} alone; add others with --train LANG=FILE, such as "
                f"de={task.option}.de.jsonl."
            )
        return codes
    pivot = options.pivot or ENGLISH
    for code in files:
        if code != pivot:
            raise InputError(
                f"--train {code}=...: --mode {PIVOT} trains on {pivot} alone; pass --pivot {code}, or --mode "
                f"{MULTILANGUAGE}."
            )
    if pivot not in there and not files:
        raise InputError(f"--pivot {pivot}: {own}; pass --train {pivot}=FILE, or one of these.")
    return [pivot]


def _train_rows(source: PreparedData, task: TextTask, code: str, have: Mapping[str, str], files: Files) -> Dataset:
    if code not in files:
        return _renamed(source.load(have[code], "train"), task, f"{source.name}, {have[code]}/train")
    path = files[code]
    if path.is_dir():
        return _renamed(open_prepared(str(path)).load(task.config(code), "train"), task, str(path))
    return _renamed(read_task_file(path, source.record().schema(next(iter(have.values())))), task, str(path))


def _validated(
    options: GenerationArguments, have: Mapping[str, str], trained: Sequence[str], tested: Sequence[str]
) -> list[str]:
    """The languages that choose the checkpoint."""
    asked = options.validation or [SOURCE]
    if asked == [SOURCE]:
        return list(trained)
    if asked == [ALL]:
        return list(tested)
    for code in asked:
        if code not in have:
            raise InputError(
                f"--validation {code}: expected {SOURCE}, {ALL}, or languages of the data ({' '.join(have)})."
            )
    return list(dict.fromkeys(asked))


def _split(source: PreparedData, task: TextTask, code: str, split: str, limit: int | None) -> Dataset:
    where = f"{source.name}, {task.config(code)}/{split}"
    rows = _renamed(sample_rows(source.load(task.config(code), split), limit, EVALUATION_SEED), task, where)
    if split == "validation" and any(text is None for text in rows[COLUMNS[1]][:]):
        raise InputError(f"{where}: {task.target} is missing in some rows, and it chooses the checkpoint.")
    return rows


def _renamed(rows: Dataset, task: TextTask, where: str) -> Dataset:
    if not len(rows):
        raise InputError(f"{where}: the split is empty.")
    names = [task.source, task.target]
    return rows.select_columns(names).rename_columns(dict(zip(names, COLUMNS, strict=True)))
