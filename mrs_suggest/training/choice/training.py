"""Training and validation of a multiple-choice model: loss, evaluation on all ranks, checkpoints by language."""

import copy
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.nn import functional
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState

from mrs_suggest.common.errors import diverged
from mrs_suggest.models.adapters import has_lora, merge_lora
from mrs_suggest.models.saved.allowlist import BEST
from mrs_suggest.models.understanding.choice_inputs import Encoded, choice_scores
from mrs_suggest.models.understanding.choice_start import ChoiceParts
from mrs_suggest.training.choice.data import Part
from mrs_suggest.training.choice.figures import cross_entropy, right_answers
from mrs_suggest.training.trainer import OurTrainer, Resumable


def choice_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Cross-entropy over the choices, in nats, as the mean over the questions of the whole step.

    The sum is divided by the questions of all ranks and accumulated batches, so that the gradient does not depend on
    how a step is cut into batches.

    Args:
        outputs: with logits (questions, choices).
        labels: (questions).
        num_items_in_batch: questions of the step.
    """
    total = functional.cross_entropy(outputs["logits"].float(), labels, reduction="sum")
    return total / (len(labels) if num_items_in_batch is None else num_items_in_batch)


class ChoiceTrainer(OurTrainer, Trainer):
    """The library's trainer with our batches and our evaluation.

    Attributes:
        validation: config -> questions.
    """

    parts: ChoiceParts
    view: str
    validation: Mapping[str, Part]

    def evaluate(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> dict[str, float]:
        """Accuracy of each config (`accuracy_et`), their mean (`accuracy`), and the mean cross-entropy in nats.

        Every question is answered once: each rank takes its share, however uneven, and the scores are gathered. The
        precision is that of training (`--bf16`); tests have the model's own.
        """
        self.parts.model.eval()
        found: dict[str, float] = {}
        losses: list[float] = []
        for config, rows in self._encoded.items():
            scores = self.answered(rows, self._scores)
            labels = [question.label for question in self.validation[config].questions]
            losses += cross_entropy(scores, labels)
            right = right_answers(scores, labels)
            found[f"accuracy_{config}"] = sum(right) / len(right)
        found = {"accuracy": sum(found.values()) / len(found), "loss": sum(losses) / len(losses), **found}
        if not abs(found["loss"]) < float("inf"):  # NaN fails too
            raise diverged(f"at step {self.state.global_step:,} the loss on validation is {found['loss']:.4g}")
        self.print_figures(found)
        metrics = self.log_figures(found, metric_key_prefix)
        self.parts.model.train()
        return metrics

    def _scores(self, rows: Sequence[Encoded]) -> list[list[float]]:
        return choice_scores(self.parts.model, self.parts.collator, rows, self.args.per_device_eval_batch_size)

    @cached_property
    def _encoded(self) -> dict[str, list[Encoded]]:
        coder = self.parts.coder
        return {config: coder.encode(part.viewed(self.view)) for config, part in self.validation.items()}


class BestOfEachLanguage(Resumable, TrainerCallback, ExportableState):
    """Keeps the best checkpoint of each language, and ends the run when all have run out of patience (CO-TLV).

    What a language keeps is what a run with its validation split alone would keep: training does not depend on
    validation, and after `patience` evaluations without a better accuracy its later ones no longer count.

    Args:
        folder: of the run; a checkpoint that is the best of some language is in `best/STEP` there.
        patience: 0 never ends.
        parts: the model, saved with its adapters merged.
    """

    def __init__(self, folder: Path, languages: Sequence[str], patience: int, parts: ChoiceParts) -> None:
        self.folder, self.patience, self.parts = folder, patience, parts
        self.best: dict[str, list[float]] = {
            code: [-1.0, 0, 0] for code in languages
        }  # accuracy, step, evaluations since

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Compare the languages that have patience left."""
        metrics: Mapping[str, float] = kwargs["metrics"]
        better = False
        for code, entry in self.best.items():
            if self._is_done(entry):
                continue
            accuracy = metrics[f"eval_accuracy_{code}"]
            if accuracy > entry[0]:
                entry[:] = accuracy, state.global_step, 0
                better = True
            else:
                entry[2] += 1
        if better and state.is_world_process_zero:
            self._save(state.global_step)
        if all(self._is_done(entry) for entry in self.best.values()):
            control.should_training_stop = True

    def _is_done(self, entry: Sequence[float]) -> bool:
        return bool(self.patience) and entry[2] >= self.patience

    def _save(self, step: int) -> None:
        place = self.folder / BEST / str(step)
        model = self.parts.model
        if has_lora(model):
            model = copy.deepcopy(model)
            merge_lora(model)
        shutil.rmtree(place, ignore_errors=True)
        ChoiceParts(model, self.parts.tokenizer).save(place)
        for other in place.parent.iterdir():
            if int(other.name) not in {int(entry[1]) for entry in self.best.values()}:
                shutil.rmtree(other)

    def facts(self) -> dict[str, dict[str, float]]:
        """Language -> the `step` of its best checkpoint and its `accuracy` on the validation split of that language."""
        return {code: {"step": int(step), "accuracy": value} for code, (value, step, _) in self.best.items() if step}

    def folders(self) -> dict[Path, list[str]]:
        """The folder of a checkpoint -> the languages whose best it is."""
        found: dict[Path, list[str]] = {}
        for code, entry in self.facts().items():
            found.setdefault(self.folder / BEST / str(entry["step"]), []).append(code)
        return found

    def state(self) -> dict[str, Any]:
        """The state to store in a checkpoint."""
        return {"args": {}, "attributes": {"best": {code: list(entry) for code, entry in self.best.items()}}}
