"""Train from Python, as `mrs train` does from the command line: from a data set to a suggester.

Both call the same `run` with the same options, so that they give the same figures for the same data and seed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.saved.record import Record, read_record

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from mrs_suggest.suggest.suggester import Suggester

COLUMNS = ("message", "reply", "language")


@dataclass
class TrainingArguments:
    """The everyday settings of a run; one that is None has the trainer's default (`mrs train retrieval --help`).

    Attributes:
        output_dir: the folder of the run: model, card, `run.json`, predictions.
        num_train_epochs: passes over the pairs.
        max_steps: steps of training, in place of passes; 0 exports the model as it is.
        per_device_train_batch_size: pairs a step and device.
        learning_rate: the highest of the schedule.
        eval_steps, save_steps: steps between two evaluations (equal, so that the best one can be kept), or below 1 a
            share of the run.
        seed: of weights, batches and samples.
        resume_from_checkpoint: continue from the last checkpoint in `output_dir`.
        overwrite: replace a finished run in `output_dir`.
        hub_model_id: `ORG/NAME` to push the trained model to, with `push_to_hub`.
        settings: any other option of the trainer or of the library's trainer by its name, such as
            `{"encoders": "one", "warmup_steps": 0.1, "languages": ["en"]}`.
    """

    output_dir: str | None = None
    num_train_epochs: float | None = None
    max_steps: int | None = None
    per_device_train_batch_size: int | None = None
    learning_rate: float | None = None
    eval_steps: float | None = None
    save_steps: float | None = None
    logging_steps: float | None = None
    seed: int | None = None
    bf16: bool | None = None
    use_cpu: bool | None = None
    report_to: str | None = None
    resume_from_checkpoint: bool | None = None
    overwrite: bool | None = None
    push_to_hub: bool | None = None
    hub_model_id: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def given(self) -> dict[str, Any]:
        """The options that are not left to their defaults, by name; InputError if `settings` repeats a field."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "settings"}
        given = {name: value for name, value in own.items() if value is not None}
        if twice := sorted(given.keys() & self.settings.keys()):
            raise InputError(f"TrainingArguments: {twice[0]!r} is given twice, also in `settings`; leave one out.")
        return {**given, **self.settings}


@contextmanager
def _naming_arguments() -> Iterator[None]:
    """Errors name arguments instead of the command line's options, except in commands."""
    names = {"model_name_or_path": "model", "data": "train_dataset"}
    try:
        yield
    except InputError as error:
        option = r"`[^`]*`|(?<![\w./-])--([a-z]\w*)"
        text = re.sub(option, lambda found: names.get(found[1], found[1] or found[0]), str(error))
        if text == str(error):
            raise
        raise InputError(text) from None


class Trainer:
    """A training run; use `RetrievalTrainer`, `GenerationTrainer` or `CausalTrainer`.

    Args:
        model: a hub id (also ORG/NAME@REVISION), a folder, or `tiny`, a small model built here and trained from
            scratch.
        args: settings; a mapping of options is accepted, too.
        train_dataset: rows with the columns `message` and `reply`, and `language` if they are in several languages. A
            `DatasetDict` brings its validation and test splits. Splits that nothing gives are cut from train by the
            message's hash (80/10/10). Or the name of prepared data: a folder, a hub id, or `sample`.
        eval_dataset: rows that choose the checkpoint, the ranker's weights and the trigger.
        test_dataset: rows that are answered once, after training.
        language: of rows without a `language` column; None: detected from all of them together.
        column_mapping: their names -> `message`, `reply`, `language`; other columns are ignored.

    Attributes:
        record: the contents of `run.json`; None before training.
        data: the prepared data that the run reads. `mrs train ... --data` with it gives the same model.

    Raises:
        InputError: a setting, a column or a language is missing or wrong; the sentence names it.
    """

    _family: ClassVar[str]  # the name of its folder, and of the command line's trainer

    @_naming_arguments()
    def __init__(
        self,
        model: str | Path = "tiny",
        args: TrainingArguments | Mapping[str, Any] | None = None,
        train_dataset: Dataset | DatasetDict | str | Path = "sample",
        eval_dataset: Dataset | None = None,
        test_dataset: Dataset | None = None,
        language: str | None = None,
        column_mapping: Mapping[str, str] | None = None,
    ) -> None:
        given = dict(args) if isinstance(args, Mapping) else (args or TrainingArguments()).given()
        for name in ("model_name_or_path", "data"):
            if name in given:
                raise InputError(f"{name}: pass it to the trainer instead, as `model` or `train_dataset`.")
        if isinstance(train_dataset, (str, Path)):
            if eval_dataset is not None or test_dataset is not None or column_mapping or language:
                raise InputError(
                    f"train_dataset={str(train_dataset)!r}: prepared data bring their splits, columns and languages; "
                    "leave out eval_dataset, test_dataset, language and column_mapping, or pass a Dataset."
                )
            self.data = str(train_dataset)
        else:
            splits = _splits(train_dataset, eval_dataset, test_dataset, column_mapping or {})
            self.data = str(_prepared(splits, language))
        from mrs_suggest.common.arguments import make_dataclass_parser, parse_mapping
        from mrs_suggest.training.options import SHOWN

        options, self._run = (import_module(f"{__package__}.{self._family}.{part}") for part in ("options", "run"))
        kinds = (f"{self._family.capitalize()}{end}" for end in ("Arguments", "TrainingArguments"))
        parser = make_dataclass_parser(
            [getattr(options, kind) for kind in kinds], f"mrs train {self._family}", "", SHOWN
        )
        values = {**given, "model_name_or_path": str(model), "data": self.data}
        self._options, self._training = parse_mapping(parser, values)
        self.record: Record | None = None

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return Path(self._training.output_dir)

    @_naming_arguments()
    def train(self) -> Record:
        """Train, evaluate on test, and write the run; return the contents of its `run.json`.

        Raises:
            InputError: the options contradict each other, `output_dir` holds another run, the loss is not finite, or
                the memory ran out.
        """
        self._run.run(self._options, self._training)
        self.record = read_record(self.folder)
        return self.record

    def evaluate(self, dataset: Dataset | DatasetDict | None = None) -> dict[str, Any]:
        """Figures of the trained model by language: of the run's test split, or of other rows.

        Args:
            dataset: rows with `message` and `reply`, and `language` if the model answers in several; None: the figures
                on the run's own test split, as in its card.
        """
        if dataset is not None:
            return self.suggester(guard=False).evaluate(dataset)
        return self._trained()["metrics"]["systems"]["Model"]

    def suggester(self, guard: bool | str | Path = True, precision: float | None = None) -> Suggester:
        """The trained model, ready to answer; arguments as for `Suggester.from_pretrained`."""
        from mrs_suggest.suggest.suggester import Suggester

        self._trained()
        return Suggester.from_pretrained(self.folder, guard=guard, precision=precision)

    def push_to_hub(self, repo_id: str, private: bool | None = None, commit_message: str | None = None) -> str:
        """Publish the model with its card in one commit, and return the commit.

        Raises:
            InputError: no permission, no hub, or the repository holds something else.
        """
        return self.suggester().push_to_hub(repo_id, private=private, commit_message=commit_message)

    def _trained(self) -> Record:
        if self.record is None:
            raise InputError(f"{type(self).__name__}: is not trained; call train() first.")
        return self.record


class RetrievalTrainer(Trainer):
    """Trains a retriever: an encoder, response sets, a ranker, a language detector and a guard. Arguments and methods
    are those of `Trainer`.

    Example:
        >>> from datasets import load_dataset                                          # doctest: +SKIP
        >>> trainer = RetrievalTrainer("intfloat/multilingual-e5-small",               # doctest: +SKIP
        ...     args=TrainingArguments(output_dir="build/chats", num_train_epochs=1),
        ...     train_dataset=load_dataset("csv", data_files="chats.csv", split="train"), language="es")
        >>> trainer.train()                                                            # doctest: +SKIP
        >>> trainer.suggester().suggest("¿Quedamos mañana?").replies                   # doctest: +SKIP
        ['Sí, perfecto.', 'Vale, ¿a qué hora?', 'Mañana no puedo, lo siento.']
    """

    _family = "retrieval"


class GenerationTrainer(Trainer):
    """Trains a sequence-to-sequence model that writes the replies; used as `RetrievalTrainer`."""

    _family = "generation"


class CausalTrainer(Trainer):
    """Trains a causal language model that writes the replies; used as `RetrievalTrainer`."""

    _family = "causal"


def _splits(
    train: Dataset | DatasetDict, validation: Dataset | None, test: Dataset | None, names: Mapping[str, str]
) -> dict[str, Dataset]:
    """split -> rows with our names for the columns."""
    from datasets import Dataset, DatasetDict

    if wrong := [our for our in names.values() if our not in COLUMNS]:
        raise InputError(f"column_mapping: expected {', '.join(COLUMNS)} on the right, found {wrong[0]!r}.")
    splits = dict(train) if isinstance(train, DatasetDict) else {"train": train}
    splits |= {name: rows for name, rows in (("validation", validation), ("test", test)) if rows is not None}
    for name, rows in splits.items():
        if not isinstance(rows, Dataset):
            raise InputError(f"{name}: expected a Dataset, found {type(rows).__name__}; see Dataset.from_list.")
        if wrong := [their for their in names if their not in rows.column_names]:
            found = ", ".join(rows.column_names)
            raise InputError(f"column_mapping: {name} has no column {wrong[0]!r}; it has {found}.")
        rows = rows.remove_columns([our for our in names.values() if our in rows.column_names and our not in names])
        rows = rows.rename_columns(dict(names))
        if missing := [column for column in ("message", "reply") if column not in rows.column_names]:
            found = ", ".join(rows.column_names)
            raise InputError(f"{name}: expected the column {missing[0]!r}, found {found}; pass column_mapping.")
        splits[name] = rows
    return splits


def _prepared(splits: Mapping[str, Dataset], language: str | None) -> Path:
    """The prepared folder of the rows, in the cache of the hub's libraries; made once for the same rows."""
    from mrs_datasets.prepared.prepare import prepare_pairs
    from mrs_datasets.prepared.remote_data import cache_folder
    from mrs_datasets.prepared.report import REPORT
    from mrs_datasets.readers.pairs.own_pairs import PairOptions

    missing = [rows for rows in splits.values() if "language" not in rows.column_names]
    if missing and language is None:
        language = _detected(missing)
    digest = hashlib.sha256(json.dumps(language).encode())
    for name, rows in sorted(splits.items()):
        digest.update(name.encode())
        for column in (column for column in COLUMNS if column in rows.column_names):
            digest.update(json.dumps([column, rows[column][:]]).encode())
    folder = cache_folder("pairs", digest.hexdigest())
    if not (folder / REPORT).is_file():
        prepare_pairs(splits, folder, pairs=PairOptions(language=language), overwrite=True)
    return folder


def _detected(splits: list[Dataset]) -> str:
    """The language of all rows together, by the detector of the model that ships."""
    import numpy as np

    from mrs_suggest.common.hub.baselines import SHIPPED, resolve_model
    from mrs_suggest.models.starting_points import DETECTOR
    from mrs_suggest.suggest.language_detector import SURE, LanguageDetector

    detector = LanguageDetector.load(resolve_model(SHIPPED) / DETECTOR)
    texts = [text for rows in splits for column in ("message", "reply") for text in rows[:200].get(column, ())]
    ranked = [dict(detector.rank(text)) for text in texts if isinstance(text, str)]
    shares = {code: float(np.mean([row[code] for row in ranked])) for code in detector.languages} if ranked else {}
    best = max(shares, key=lambda code: shares[code], default="")
    if not best or shares[best] < SURE:
        raise InputError("train_dataset: its language is not clear; pass language='es', or add a `language` column.")
    return best
