"""The library's trainer with our batches, and held-out perplexity that all ranks share."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor
from torch.utils.data import ConcatDataset
from transformers import Trainer

from mrs_core.errors import diverged
from mrs_metrics.perplexity import aggregate, score_losses
from mrs_training.adapter_checkpoints import AdapterCheckpoints
from mrs_training.divergence import StopsWhenDiverged
from mrs_training.pretraining.objective import Batch, Collator, Objective, Pretrained
from mrs_training.pretraining.options import PretrainingArguments
from mrs_training.pretraining.rows import Encoded, TokenRows
from mrs_training.pretraining.texts import TextData
from mrs_training.sampling import SampledPairs, make_sampler

if TYPE_CHECKING:
    from transformers import TrainingArguments

MOST_NATS = 700.0  # per token; exp of more overflows


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows by language, and how their perplexity is measured.

    Attributes:
        rows: language -> a row for each sentence, cut at the end: perplexities of packed and unpacked runs compare.
    """

    objective: Objective
    parts: Pretrained
    collator: Collator
    rows: Mapping[str, TokenRows]

    def losses(self, batch_size: int, rank: int = 0, world: int = 1) -> dict[str, tuple[list[float], list[int]]]:
        """Summed losses and numbers of predicted tokens of this rank's rows, by language."""
        model = self.parts.model
        found: dict[str, tuple[list[float], list[int]]] = {}
        for language, rows in self.rows.items():
            mine = np.arange(rank, len(rows), world)
            mine = mine[np.argsort(rows.lengths[mine], kind="stable")]
            sums: list[float] = []
            counts: list[int] = []
            for first in range(0, len(mine), batch_size):
                batch = self.collator([rows[int(number)] for number in mine[first : first + batch_size]])
                both = self._batch({name: value.to(model.device) for name, value in batch.items()})
                sums += both[0].tolist()
                counts += both[1].tolist()
            found[language] = sums, counts
        return found

    @torch.no_grad()
    def _batch(self, batch: Batch) -> tuple[Tensor, Tensor]:
        labels = batch.pop("labels")
        with self.objective.forward(self.parts, labels):
            outputs = self.parts.model(**batch)
        return self.objective.row_losses(outputs, labels)


def figures(found: Mapping[str, tuple[Sequence[float], Sequence[int]]]) -> dict[str, float]:
    """`perplexity` and `loss` (nats) over all predicted tokens, and `perplexity_LANG` of each language."""
    sums, counts = ([value for both in found.values() for value in both[column]] for column in (0, 1))
    pooled = aggregate(score_losses(sums, counts))
    own = {f"perplexity_{language}": aggregate(score_losses(*both))["perplexity"] for language, both in found.items()}
    return {"perplexity": pooled["perplexity"], "loss": pooled["loss"], **own}


class PretrainingTrainer(StopsWhenDiverged, SampledPairs, AdapterCheckpoints, Trainer):
    """The library's trainer with our batches, loss and evaluation."""

    objective: Objective
    parts: Pretrained
    held_out: HeldOut

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The library's, with the objective's forward pass."""
        with self.objective.forward(self.parts, inputs["labels"]):
            return super().compute_loss(model, inputs, *args, **kwargs)

    def evaluate(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> dict[str, float]:
        """Perplexity of the held-out text, per language and pooled.

        Every row is evaluated once: each rank takes its share, and the losses are gathered.
        """
        self.parts.model.eval()
        world, rank = self.args.world_size, self.args.process_index
        with self.compute_loss_context_manager():
            found = self.held_out.losses(self.args.per_device_eval_batch_size, rank, world)
        if world > 1:
            shares = gather_object([found])
            found = {
                language: (
                    [loss for share in shares for loss in share[language][0]],
                    [count for share in shares for count in share[language][1]],
                )
                for language in found
            }
        total, tokens = (sum(sum(both[part]) for both in found.values()) for part in (0, 1))
        if not total / max(1, tokens) < MOST_NATS:  # refuses NaN too
            raise diverged(f"the held-out loss is {total / max(1, tokens):g} nats a token")
        own = [figures(found) if rank == 0 else {}]
        if world > 1:
            own = broadcast_object_list(own)  # one rank's rounding for all
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in own[0].items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        self.parts.model.train()
        return metrics

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Do not warn about tied weights, which a checkpoint holds once; that all were read is checked afterwards."""


def make_trainer(
    objective: Objective, parts: Pretrained, options: PretrainingArguments, training: TrainingArguments, data: TextData
) -> PretrainingTrainer:
    """The trainer of a run."""
    encoded = {
        language: objective.encode(texts, parts, options, options.packing, f"--text {language}")
        for language, texts in data.train.items()
    }
    parts.notes["train_tokens"] = {language: found.tokens for language, found in encoded.items()}
    if training.process_index == 0:
        _tell(encoded)
    rows = [found.rows for found in encoded.values()]
    collator = objective.collator(parts, options, training.seed)
    trainer = PretrainingTrainer(
        model=parts.model,
        args=training,
        train_dataset=ConcatDataset(rows),
        eval_dataset=TokenRows([]),  # ours is in `held_out`
        data_collator=collator,
        compute_loss_func=objective.loss(),
    )
    lengths = None if options.packing else np.concatenate([part.lengths for part in rows])
    sizes = [len(part) for part in rows]
    trainer.pair_sampler = make_sampler(sizes, options, training, options.sampling_alpha, lengths)
    trainer.pair_sampler.told.append(collator.set_epoch)
    trainer.objective, trainer.parts = objective, parts
    trainer.held_out = held_out(objective, parts, options, data.validation, "--validation")
    return trainer


def held_out(
    objective: Objective,
    parts: Pretrained,
    options: PretrainingArguments,
    texts: Mapping[str, Sequence[str]],
    option: str,
) -> HeldOut:
    """Held-out sentences, ready to be measured."""
    rows = {
        language: objective.encode(found, parts, options, False, f"{option} {language}").rows
        for language, found in texts.items()
    }
    return HeldOut(objective, parts, objective.held_out_collator(parts), rows)


def _tell(encoded: Mapping[str, Encoded]) -> None:
    for language, found in encoded.items():
        if found.cut:
            print(f"note: {language}: {found.cut:,} sentences are longer than a row and were cut.", file=sys.stderr)
        if found.unknown:
            print(
                f"note: {language}: {found.unknown:,} sentences have no piece that the tokenizer knows, and were left "
                "out; --new_pieces adds some.",
                file=sys.stderr,
            )
