"""What a trainer defines, and what its training passes on to evaluation and export."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mrs_suggest.training.callbacks.stopping import Patience
from mrs_suggest.training.callbacks.trackers import Trackers
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.export.family import Family
from mrs_suggest.training.options import RunArguments, require_sound
from mrs_suggest.training.run import RunFolder

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel, Trainer, TrainerCallback, TrainerState, TrainingArguments


class TaskData(Protocol):
    """The data of a run; only its own task looks inside."""

    def facts(self) -> Record:
        """Facts for the record: `data` with `id`, `title`, `revision` or `content_hash`, and `rows` (config -> split
        -> rows used); a task may add keys beside `data`."""


class Parts(Protocol):
    """A model and whatever its trainer built with it, such as a tokenizer or an index."""

    @property
    def model(self) -> nn.Module: ...


Options = TypeVar("Options", bound=RunArguments)
Data = TypeVar("Data", bound=TaskData)
Built = TypeVar("Built", bound=Parts)


@dataclass(frozen=True)
class Fitted(Generic[Options, Data, Built]):
    """The result of training.

    Attributes:
        facts: those of `data`.
        parts: with the weights of the best checkpoint, or the last ones if none was asked for.
        run: the folder to write to.
        state: the library's, with the log and the best checkpoint.
        started: when the run began, in seconds since the epoch.
        writes: whether this process evaluates and writes.
        trackers: of `--report_to`, which the run's figures go to.
        finished: what `Recipe.finish` tells.
    """

    options: Options
    training: TrainingArguments
    data: Data
    facts: Record
    parts: Built
    run: RunFolder
    state: TrainerState
    started: float
    writes: bool
    trackers: Trackers
    finished: Record = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared(Generic[Options, Data, Built]):
    """What a run begins with.

    Attributes:
        options: with the defaults that depend on others.
        facts: those of `data`.
        trainer: the library's, which has taken no step.
    """

    options: Options
    data: Data
    facts: Record
    parts: Built
    trainer: Trainer


@dataclass(frozen=True)
class Evaluation:
    """A task's evaluation of a trained model.

    Attributes:
        figures: JSON for the record, under `metrics`; equal for equal weights.
        milliseconds: to answer, by system; they vary from run to run.
        files: name in the run's folder, `predictions` at its beginning -> writes that file.
        files_told: their name in the last line that a run prints.
    """

    figures: Record = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)
    files: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    files_told: str = ""


class Recipe(ABC, Generic[Options, Data, Built]):
    """The trainer's part of a run: methods that it must define for data, model and training, and optional ones.

    Attributes:
        family: name, files and card of its models.
        metrics: on validation, one of which chooses the checkpoint.
        steps: how many are trained when neither epochs nor steps are given.
        lower_is_better: the metrics for which lower is better.
        without_effect: options of the library's trainer that have no effect, and why.
        resume_keys: its own options that must not change when a run is resumed.
        curves: metrics that are drawn -> their labels; none: the metric that chooses the checkpoint.
    """

    family: Family
    metrics: tuple[str, ...]
    steps: int
    lower_is_better: tuple[str, ...] = ()
    without_effect: Mapping[str, str] = MappingProxyType({})
    resume_keys: tuple[str, ...] = ()
    curves: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def load(self, options: Options, training: TrainingArguments) -> Data:
        """The data of the run. The first process loads before the others, so that those find what it cached."""

    @abstractmethod
    def build(self, options: Options, training: TrainingArguments, data: Data) -> Built:
        """The model to train; adapters are added afterwards."""

    @abstractmethod
    def make_trainer(self, parts: Built, options: Options, training: TrainingArguments, data: Data) -> Trainer:
        """The library's trainer with our batches, loss and validation."""

    @abstractmethod
    def save(self, parts: Built, folder: Path) -> None:
        """Write everything that is needed to load the trained model."""

    # --- optional

    def require_sound(self, options: Options, training: TrainingArguments) -> None:
        """Refuse options that cannot go together, before anything is loaded or replaced.

        Raises:
            InputError: it names the option.
        """
        require_sound(options, training, self.metrics, self.without_effect)

    def resolved(self, options: Options) -> Options:
        """The options with the defaults that depend on others filled in; InputError where they cannot go together."""
        return options

    def resume_identity(self, options: Options, facts: Record) -> Record:
        """What must not change when a run is resumed, beside model, seed, schedule and `resume_keys`."""
        return {"data": facts["data"].get("revision") or facts["data"].get("content_hash")}

    def stopping(self, options: Options) -> TrainerCallback | None:
        """What ends the run before its last step; None where nothing does, or the trainer has it already."""
        return Patience(options.patience) if options.patience else None

    def saves_memory(self, options: Options, training: TrainingArguments, trains: bool) -> str:
        """What to do when the memory runs out in a step (`trains`) or in an evaluation."""
        name = "train" if trains else "eval"
        return f"lower --per_device_{name}_batch_size (now {getattr(training, f'per_device_{name}_batch_size'):,})"

    def weights(self, parts: Built) -> Mapping[str, Tensor]:
        """The weights by the names that they have in a checkpoint."""
        return parts.model.state_dict()

    def stored_weights(self, parts: Built, checkpoint: Path) -> Mapping[str, Tensor]:
        """The weights of a checkpoint of such a model, which is one of transformers."""
        kind: type[PreTrainedModel] = type(parts.model)  # type: ignore[assignment]
        return kind.from_pretrained(checkpoint, use_safetensors=True).state_dict()

    def finish(self, parts: Built, trainer: Trainer, options: Options) -> Record:
        """Change the weights once they are trained, on every rank; return what to tell of it."""
        return {}

    def complete(self, fitted: Fitted[Options, Data, Built]) -> Built:
        """The parts with what is derived from the trained model, such as an index, to be saved and evaluated."""
        return fitted.parts

    def save_beside_adapter(self, parts: Built, folder: Path) -> None:
        """Add the other files that loading the adapters needs."""

    def evaluate(self, fitted: Fitted[Options, Data, Built]) -> Evaluation:
        """Figures of the trained model beyond validation."""
        return Evaluation()

    def validated(self, fitted: Fitted[Options, Data, Built]) -> Evaluation:
        """What a run without the test split (`--skip_test`) tells beside the best figure on validation."""
        return Evaluation()

    def show(self, record: Record) -> None:
        """Print the figures of the finished run."""
