"""The interface of an objective of pretraining; `mixture.py` has the table of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from torch import Tensor
from transformers import TrainingArguments

from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.understanding.shared_body import Parts
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.rows import TokenRows
from mrs_suggest.training.pretraining.texts import TextData

Batch = dict[str, Any]  # of tensors; `which` is the number of the objective that a batch of training is for


class Collator(Protocol):
    """Rows -> a batch; what is drawn depends on seed, epoch and row alone."""

    def set_epoch(self, epoch: int) -> None: ...

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> Batch: ...


@dataclass(frozen=True)
class Pretrained(Parts):
    """A model to pretrain and its tokenizer.

    Attributes:
        notes: for the record and the card, such as a fresh head.
    """

    notes: Record = field(default_factory=dict)
    state: Any = None


class Objective(ABC):
    """One objective: model, rows, corruption, loss.

    Attributes:
        about: what is trained, for the card, as the end of a sentence.
        trains: the kind of model: objectives of one kind can share a run.
        reads: the option whose text it reads: `text`, sentences, or `parallel`, translations.
        packs: whether its rows are filled by --packing; else they differ in length, and are sorted by it.
        packs_held_out: whether held-out rows are, too; else each is a sentence.
        loss: of a batch, by the library's contract: (outputs, labels, num_items_in_batch).
    """

    about: str
    loss: Callable[..., Tensor]
    trains: str = "a sequence-to-sequence model"
    reads: str = "text"
    packs: bool = True
    packs_held_out: bool = False

    @abstractmethod
    def build(self, options: PretrainingArguments, training: TrainingArguments, data: TextData) -> Pretrained:
        """The model to train; InputError if the checkpoint does not suit the objective."""

    def require_model(self, model: Any, name: str) -> None:  # noqa: B027  (most train any model of their kind)
        """Refuse, by an InputError, a model that another objective of the kind built and this one cannot train."""

    @abstractmethod
    def encoder(self, parts: Pretrained, options: PretrainingArguments, pack: bool) -> partial[TokenRows]:
        """Turns sentences (or pairs, of an objective that reads translations) and `where` into rows of ids."""

    def shared(self, language: str, parts: Pretrained) -> Record:
        """What each row of a language (or of translations between two) has in addition to its ids."""
        return {}

    @abstractmethod
    def collator(self, parts: Pretrained, seed: int, options: PretrainingArguments | None = None) -> Collator:
        """The batches of training; without options those of held-out text, the same in every run, so that perplexities
        can be compared."""

    def forward(self, parts: Pretrained, labels: Tensor) -> AbstractContextManager[None]:
        """A block around the model's forward pass of a batch with these labels."""
        return nullcontext()

    @abstractmethod
    def row_losses(self, outputs: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Summed losses in nats and numbers of predicted tokens of each row, (batch) both."""

    @abstractmethod
    def signature(self, parts: Pretrained) -> str:
        """How the held-out perplexity is computed."""
