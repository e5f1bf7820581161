"""Pretrain an encoder or a sequence-to-sequence model on text, by one objective or several (XGLUE, Liang et al. 2020,
sections 3 and 4; XCOPA, Ponti et al. 2020, section 4.4).

    accelerate launch trainers/pretraining.py                              # a small model on the embedded sample
    accelerate launch trainers/pretraining.py --config trainers/configs/pretraining/t.yaml
    accelerate launch trainers/pretraining.py --objective mlm --model_name_or_path intfloat/multilingual-e5-small \
        --text ht=ht.txt en=en.txt
    accelerate launch trainers/pretraining.py --objective mlm tlm --model_name_or_path intfloat/multilingual-e5-small \
        --text ht=ht.txt en=en.txt --parallel en-ht=pairs.tsv
    accelerate launch trainers/pretraining.py --objective xdae --text ht=ht.txt en=en.txt

The result is an encoder with its tokenizer and language-model head, or a seq2seq model (xdae, xfnp); other trainers
start from it by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import TrainingArguments

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.launch import train
from mrs_suggest.training.options import TrainerDefaults
from mrs_suggest.training.pretraining.families import PRETRAINING
from mrs_suggest.training.pretraining.mixture import mixture, require_sound_mixture
from mrs_suggest.training.pretraining.objective import Pretrained
from mrs_suggest.training.pretraining.objectives import OBJECTIVES
from mrs_suggest.training.pretraining.options import METRICS, PretrainingArguments, load_texts, require_sound, resolved
from mrs_suggest.training.pretraining.texts import TextData
from mrs_suggest.training.pretraining.training import held_out, make_trainer, mixed_figures
from mrs_suggest.training.recipe import Evaluation, Fitted, Recipe

if TYPE_CHECKING:
    from transformers import HfArgumentParser, Trainer

STEPS = 500  # when neither epochs nor steps are given: minutes on two cores


@dataclass
class PretrainingTrainingArguments(TrainerDefaults, TrainingArguments):
    """The trainer's own arguments with other defaults: ours, for `tiny`, not tuned."""

    output_dir: str | None = field(default="build/pretraining", metadata={"help": "the folder of the run"})
    per_device_train_batch_size: int = field(default=16, metadata={"help": "rows per batch and device"})
    per_device_eval_batch_size: int = field(default=32, metadata={"help": "held-out sentences at a time: memory only"})
    num_train_epochs: float = field(
        default=0.0, metadata={"help": f"passes over the text; 0: train {STEPS:,} steps (--max_steps sets others)"}
    )
    learning_rate: float = field(default=1e-3, metadata={"help": "peak learning rate (a pre-trained encoder: 5e-5)"})
    warmup_steps: float = field(default=0.06, metadata={"help": "steps, or a share of them if below 1 (RoBERTa: .06)"})
    logging_steps: float = field(default=20, metadata={"help": "steps between two points of the loss curve"})
    eval_steps: float | None = field(default=0.1, metadata={"help": "steps, or a share of the run if below 1"})
    save_steps: float = field(default=0.1, metadata={"help": "steps, or a share of the run if below 1"})
    metric_for_best_model: str | None = field(
        default=METRICS[0], metadata={"help": "what picks the checkpoint (XCOPA, 4.4: perplexity)"}
    )
    remove_unused_columns: bool = field(default=False, metadata={"help": "keep false: rows are made here"})


class Pretraining(Recipe[PretrainingArguments, TextData, Pretrained]):
    """The model in a run."""

    family, metrics, steps, lower_is_better = PRETRAINING, METRICS, STEPS, METRICS
    resume_keys = (
        "objective", "shares", "max_tokens", "packing", "masked_share", "whole_words", "restart_positions",
        "language_ids", "sampling_alpha", "batches", "length_window", "frozen_encoder", "new_pieces", "noise",
        "span_share", "span_length", "future_tokens", "decoder", "decoder_layers", "tiny_layers",
    )  # fmt: skip

    def require_sound(self, options: PretrainingArguments, training: TrainingArguments) -> None:
        require_sound_mixture(options, OBJECTIVES)
        require_sound(options, training)

    def resolved(self, options: PretrainingArguments) -> PretrainingArguments:
        return resolved(options, any(OBJECTIVES[name].reads == "text" for name in options.objective))

    def load(self, options: PretrainingArguments, training: TrainingArguments) -> TextData:
        return load_texts(options, training)

    def build(self, options: PretrainingArguments, training: TrainingArguments, data: TextData) -> Pretrained:
        return OBJECTIVES[options.objective[0]].build(options, training, data)

    def make_trainer(
        self, parts: Pretrained, options: PretrainingArguments, training: TrainingArguments, data: TextData
    ) -> Trainer:
        return make_trainer(mixture(options, OBJECTIVES, parts), options, training, data)

    def saves_memory(self, options: PretrainingArguments, training: TrainingArguments, trains: bool) -> str:
        more = f", or --max_tokens (now {options.max_tokens:,})"
        return super().saves_memory(options, training, trains) + more

    def save(self, parts: Pretrained, folder: Path) -> None:
        parts.model.save_pretrained(folder)
        parts.tokenizer.save_pretrained(folder)

    def save_beside_adapter(self, parts: Pretrained, folder: Path) -> None:
        parts.tokenizer.save_pretrained(folder)

    def evaluate(self, fitted: Fitted[PretrainingArguments, TextData, Pretrained]) -> Evaluation:
        """Perplexity on validation (with the weights kept) and on test, of each objective."""
        options, parts = fitted.options, mixture(fitted.options, OBJECTIVES, fitted.parts)
        found: Record = {**fitted.parts.notes, "objective": " ".join(options.objective)}
        found["about"] = " and ".join(part.objective.about for part in parts)
        for number, part in enumerate(parts):
            found[f"{part.name}_signature" if number else "signature"] = part.objective.signature(part.parts)
        for split in ("validation", "test"):
            losses = {
                part.name: held_out(part, options, texts, f"--{split}_{part.objective.reads}").losses(
                    fitted.training.per_device_eval_batch_size
                )
                for part in parts
                if (texts := part.texts(fitted.data).by_name()[split])
            }
            measured = mixed_figures(losses, {part.name: part.share for part in parts})
            found |= {f"{split}_{name}": value for name, value in measured.items()}
        return Evaluation(found)

    def show(self, record: Record) -> None:
        for name, value in record["metrics"].items():
            if "_perplexity" in name:
                print(f"{name.replace('_', ' ')}: {value:,.2f}")


def make_parser() -> HfArgumentParser:
    """The parser of this trainer; `mrs train pretraining` uses it too."""
    return make_dataclass_parser((PretrainingArguments, PretrainingTrainingArguments), PRETRAINING.name, __doc__ or "")


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence(PRETRAINING.name, lambda: train(Pretraining(), *parse_with_config(make_parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
