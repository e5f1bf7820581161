"""Training and validation on understanding tasks: batches of one task each, and an evaluation that all ranks share."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import Trainer

from mrs_suggest.common.errors import diverged
from mrs_suggest.models.understanding.text_rows import Row, RowCollator, logits_of, say, understanding_loss
from mrs_suggest.models.understanding.understanding_start import UnderstandingParts
from mrs_suggest.training.sampling import KeyedCollator, KeyedRows, sampler_of_run
from mrs_suggest.training.trainer import OurTrainer
from mrs_suggest.training.understanding.data import Part, Parts, UnderstandingData, each
from mrs_suggest.training.understanding.figures import Predictions, predictions_of, rows_of, validation_figures
from mrs_suggest.training.understanding.options import MULTITASK, UnderstandingArguments

if TYPE_CHECKING:
    from transformers import TrainingArguments


def collator_of(parts: UnderstandingParts, task: str) -> RowCollator:
    """The batches of a task, as the model takes them."""
    return RowCollator(parts.tokenizer, task if parts.shared else None)


class UnderstandingTrainer(OurTrainer, Trainer):
    """The library's trainer with our batches and our evaluation.

    Attributes:
        validation: task -> language -> examples.
    """

    parts: UnderstandingParts
    validation: Parts
    overlap: int

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The library's, with our loss, which must know the padding."""
        mask = inputs["attention_mask"]
        self.compute_loss_func = lambda outputs, *rest, **more: understanding_loss(
            logits_of(outputs, mask), *rest, **more
        )
        return super().compute_loss(model, inputs, *args, **kwargs)

    def evaluate(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> dict[str, float]:
        """The score of each task and language (`score_xnli-en`), their mean (`score`, first over languages, then over
        tasks), and the mean cross-entropy in nats of what is labelled (`loss`).

        Every row is read once: each rank takes its share, however uneven, and what the model says is gathered.
        """
        self.parts.model.eval()
        predictions: Predictions = {}
        loss, labelled = 0.0, 0
        batch = self.args.per_device_eval_batch_size
        for part, rows in self._encoded:
            collator, kind = collator_of(self.parts, part.task.name), part.task.kind
            said = self.answered(rows, partial(say, self.parts.model, collator, batch_size=batch, kind=kind))
            loss, labelled = loss + sum(one.loss for one in said), labelled + sum(one.labelled for one in said)
            if not abs(loss) < float("inf"):  # NaN fails too
                raise diverged(f"at step {self.state.global_step:,} the loss on validation is {loss:.4g}")
            head = self.parts.heads[part.task.name]
            predictions.setdefault(part.task.name, {})[part.language] = predictions_of(part, head, rows, said)
        found = {**validation_figures(predictions, self.validation), "loss": loss / max(1, labelled)}
        self.print_figures(found)
        metrics = self.log_figures(found, metric_key_prefix)
        self.parts.model.train()
        return metrics

    @cached_property
    def _encoded(self) -> list[tuple[Part, list[Row]]]:
        return [(part, rows_of(part, self.parts, self.overlap)) for part in each(self.validation)]


def make_understanding_trainer(
    parts: UnderstandingParts, options: UnderstandingArguments, training: TrainingArguments, data: UnderstandingData
) -> UnderstandingTrainer:
    """The trainer of a run: sources are drawn by size^alpha, and in multitask a batch has one of them (section 6.1)."""
    sources = [(part.task.name, rows_of(part, parts, options.window_overlap)) for part in each(data.train)]
    rows = KeyedRows(sources)
    trainer = UnderstandingTrainer(
        model=parts.model,
        args=training,
        train_dataset=rows,
        eval_dataset=rows,  # ours is in `validation`
        data_collator=KeyedCollator({task: collator_of(parts, task) for task in parts.heads}),
        compute_loss_func=understanding_loss,
    )
    trainer.sampler = sampler_of_run(
        [len(own) for _, own in sources],
        training,
        alpha=options.sampling_alpha,
        mixed=options.mode != MULTITASK,
        lengths=np.asarray([len(row) for _, own in sources for row in own]),
        window=options.length_window,
    )
    trainer.parts, trainer.validation, trainer.overlap = parts, data.validation, options.window_overlap
    return trainer
