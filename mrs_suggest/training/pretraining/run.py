"""A run of pretraining by one objective or several (XGLUE, Liang et al. 2020, sections 3 and 4)."""

from transformers import TrainingArguments

from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.pretraining import FAMILY
from mrs_suggest.training.pretraining.mixture import OBJECTIVES, mixture, require_sound_mixture
from mrs_suggest.training.pretraining.objective import Pretrained
from mrs_suggest.training.pretraining.options import (
    METRICS,
    STEPS,
    PretrainingArguments,
    PretrainingTrainingArguments,
    load_texts,
    resolved,
    sound_pretraining,
)
from mrs_suggest.training.pretraining.texts import TextData
from mrs_suggest.training.pretraining.training import held_out, make_trainer, mixed_figures
from mrs_suggest.training.run import Run, lower_batch_size

RESUME_KEYS = (
    "objective", "shares", "max_tokens", "packing", "masked_share", "whole_words", "sampling_alpha", "batches",
    "length_window", "frozen_encoder", "noise", "span_share", "span_length", "future_tokens", "decoder",
    "decoder_layers", "tiny_layers",
)  # fmt: skip


def run(options: PretrainingArguments, training: PretrainingTrainingArguments) -> Record | None:
    """Pretrain an encoder or a sequence-to-sequence model, and measure its perplexity on held-out text."""
    require_sound_mixture(options)
    options = resolved(sound_pretraining(options, training))
    with Run(
        FAMILY, options, training, steps=STEPS, lower_is_better=METRICS,
        advice=lambda trains: f"{lower_batch_size(training, trains)}, or --max_tokens (now {options.max_tokens:,})",
    ) as run:  # fmt: skip
        data = load_texts(options, training)
        run.begin(data.facts(), RESUME_KEYS)
        parts = run.build(lambda: OBJECTIVES[options.objective[0]].build(options, training, data))
        trainer = make_trainer(mixture(options, parts), options, training, data)
        if not run.train(trainer, parts.model):
            return None
        run.merge_adapters(parts.model, parts.tokenizer.save_pretrained)
        run.save(parts.save)
        if options.skip_test:
            return run.finish({})
        figures = run.evaluate(lambda: _held_out_figures(options, training, data, parts))
        return run.finish(figures, show=_print_perplexities)


def _print_perplexities(record: Record) -> None:
    for name, value in record["metrics"].items():
        if "_perplexity" in name:
            print(f"{name.replace('_', ' ')}: {value:,.2f}")


def _held_out_figures(
    options: PretrainingArguments, training: TrainingArguments, data: TextData, parts: Pretrained
) -> Record:
    """Perplexity on validation (with the weights kept) and on test, of each objective."""
    objectives = mixture(options, parts)
    found: Record = {**parts.notes, "objective": " ".join(options.objective)}
    found["about"] = " and ".join(part.objective.about for part in objectives)
    for number, part in enumerate(objectives):
        found[f"{part.name}_signature" if number else "signature"] = part.objective.signature(part.parts)
    for split in ("validation", "test"):
        rows = held_out(objectives, options, data, split)
        losses = {name: own.losses(training.per_device_eval_batch_size) for name, own in rows.items()}
        measured = mixed_figures(losses, {part.name: part.share for part in objectives})
        found |= {f"{split}_{name}": value for name, value in measured.items()}
    return found
