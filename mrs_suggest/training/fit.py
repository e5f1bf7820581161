"""The first part of a run: data, model, the library's trainer, resuming, and the weights of the best checkpoint."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers.utils.logging import disable_progress_bar

from mrs_suggest.models.adapters import Lora, add_lora, has_lora, lora_state, read_lora_state
from mrs_suggest.training.callbacks.divergence import require_finite_weights
from mrs_suggest.training.callbacks.memory import out_of_memory_told
from mrs_suggest.training.callbacks.progress import bar_ended, show_loss_bar
from mrs_suggest.training.callbacks.trackers import Trackers, make_folder, require_packages
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.options import LORA_OPTIONS, LoraArguments, trains_lora, with_model_revision
from mrs_suggest.training.recipe import Built, Data, Fitted, Options, Prepared, Recipe
from mrs_suggest.training.run import RunFolder, last_checkpoint, plain_arguments, require_best_weights
from mrs_suggest.training.search.pruning import trial_of_sweep

if TYPE_CHECKING:
    from transformers import Trainer, TrainingArguments

# Options, and arguments of the library, that must not change when a run is resumed.
SCHEDULE = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "label_smoothing_factor", "optim",
    "adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm",
)  # fmt: skip


def fit(
    recipe: Recipe[Options, Data, Built], options: Options, training: TrainingArguments
) -> Fitted[Options, Data, Built]:
    """Train, or resume training, and keep the best checkpoint's weights.

    Raises:
        InputError: the options, the data or the folder cannot be used; the run diverged; the memory ran out.
    """
    run = RunFolder(Path(training.output_dir or "."), options.overwrite, training.resume_from_checkpoint)
    checkpoint = last_checkpoint(run.folder, training.resume_from_checkpoint)
    started = time.time()
    ready = prepare(recipe, options, training, run)
    options, data, facts, parts, trainer = ready.options, ready.data, ready.facts, ready.parts, ready.trainer
    if (stopping := recipe.stopping(options)) and _evaluates(training):
        trainer.add_callback(stopping)
    if trial := trial_of_sweep():
        trainer.add_callback(trial)
    trackers = Trackers(trainer, plain_arguments([options]))
    with training.main_process_first(local=False):
        run.begin(_identity(recipe, options, training, facts), recipe.family.files)
        make_folder(run.folder, training.report_to or ())
    if has_steps(training):
        with out_of_memory_told(lambda: _memory_advice(recipe, options, training, trainer)), bar_ended(trainer):
            if checkpoint is None or not _take_up_complete(trainer, checkpoint):
                trainer.train(resume_from_checkpoint=checkpoint)
        # Without the wrapper of mixed precision: what is tested answers as what is loaded later.
        trainer.accelerator.unwrap_model(parts.model, keep_fp32_wrapper=False)
    else:
        trackers.open_without_training()
    if training.load_best_model_at_end:
        if best := trainer.state.best_model_checkpoint:
            _require_best(recipe, parts, best)
        elif trainer.is_world_process_zero():  # such as with an --eval_delay longer than the run
            print("note: no evaluation chose a checkpoint; the last weights are kept.", file=sys.stderr)
    finished = recipe.finish(parts, trainer, options)
    require_finite_weights(recipe.weights(parts))
    writes = trainer.is_world_process_zero()
    return Fitted(options, training, data, facts, parts, run, trainer.state, started, writes, trackers, finished)


def prepare(
    recipe: Recipe[Options, Data, Built],
    options: Options,
    training: TrainingArguments,
    run: RunFolder | None = None,
) -> Prepared[Options, Data, Built]:
    """Read the data, build the model and make the library's trainer.

    Args:
        run: its folder, which says whether a resumed run has the same options; None where nothing is written.

    Raises:
        InputError: the options or the data cannot be used; the memory ran out.
    """
    require_packages(training.report_to or ())
    training.load_best_model_at_end &= _evaluates(training)  # without evaluations, no checkpoint is the best
    recipe.require_sound(options, training)
    options = with_model_revision(recipe.resolved(options))
    _complete_arguments(recipe, training)
    disable_progress_bar()  # of loading and saving weights; the trainer's own bar stays
    with training.main_process_first(local=False):  # one rank fills the cache, the others read it
        data = recipe.load(options, training)
    facts = data.facts()
    if run is not None:
        run.require_same(_identity(recipe, options, training, facts))
    with out_of_memory_told(lambda: "while the model was loaded; choose a smaller one"):
        parts = recipe.build(options, training, data)
        if isinstance(options, LoraArguments) and trains_lora(options):
            add_lora(parts.model, Lora(options.lora_rank, options.lora_alpha, options.lora_dropout), training.seed)
        parts.model.to(training.device)
    trainer = recipe.make_trainer(parts, options, training, data)
    show_loss_bar(trainer)
    return Prepared(options, data, facts, parts, trainer)


def _complete_arguments(recipe: Recipe[Options, Data, Built], training: TrainingArguments) -> None:
    """Fill in the library's arguments that follow from the recipe and the machine."""
    training.greater_is_better = training.metric_for_best_model not in recipe.lower_is_better
    training.dataloader_pin_memory &= torch.cuda.is_available()
    if training.num_train_epochs <= 0 and training.max_steps < 0:
        training.max_steps = recipe.steps
    training.load_best_model_at_end &= has_steps(training)


def has_steps(training: TrainingArguments) -> bool:
    """Whether there is anything to train: `--max_steps 0` alone evaluates and exports a model as it is."""
    return training.num_train_epochs > 0 or training.max_steps != 0


def _evaluates(training: TrainingArguments) -> bool:
    return training.eval_strategy != "no"


def _take_up_complete(trainer: Trainer, checkpoint: str) -> bool:
    """Load the checkpoint of a run that was killed after its last step; false where steps are left.

    The library would take one more step: it looks for the end of training after a step, not before one. A run that
    stopped early (patience, a limit, a sweep that ends it) has none left either: its checkpoint says so.
    """
    from transformers import TrainerState
    from transformers.trainer import TRAINER_STATE_NAME

    path = Path(checkpoint) / TRAINER_STATE_NAME
    if not path.is_file():  # the library goes on without it
        return False
    state = TrainerState.load_from_json(str(path))
    training = trainer.args
    if training.max_steps > 0:
        left = state.global_step < training.max_steps
    else:
        left = state.global_step < state.max_steps or state.num_train_epochs < training.num_train_epochs
    stored = state.stateful_callbacks.get("TrainerControl", {}).get("args", {})
    stopped = state.global_step < state.max_steps and stored.get("should_training_stop", False)
    if left and not stopped:
        return False
    trainer.state = state
    trainer._load_from_checkpoint(checkpoint)
    if training.load_best_model_at_end and state.best_model_checkpoint is not None:
        trainer._load_best_model()
    return True


def _identity(
    recipe: Recipe[Options, Data, Built], options: Options, training: TrainingArguments, facts: Record
) -> Record:
    """What must not change when a run is resumed."""
    keys = (*(LORA_OPTIONS if isinstance(options, LoraArguments) else ()), *recipe.resume_keys)
    identity = {
        "trainer": recipe.family.name,
        "model": f"{options.model_name_or_path}@{options.model_revision}",
        "seed": training.seed,
        **recipe.resume_identity(options, facts),
        **{name: getattr(options, name) for name in keys},
        "examples a step": training.train_batch_size * training.world_size * training.gradient_accumulation_steps,
        **{name: getattr(training, name) for name in SCHEDULE},
    }
    return dict(json.loads(json.dumps(identity, default=str)))  # as it will be read from the file


def _require_best(recipe: Recipe[Options, Data, Built], parts: Built, best: str) -> None:
    if has_lora(parts.model):
        require_best_weights(lora_state(parts.model), read_lora_state(Path(best)), best)
    else:
        require_best_weights(recipe.weights(parts), recipe.stored_weights(parts, Path(best)), best)


def _memory_advice(
    recipe: Recipe[Options, Data, Built], options: Options, training: TrainingArguments, trainer: Trainer
) -> str:
    trains = trainer.is_in_train and bool(trainer.model and trainer.model.training)
    when = f"at step {trainer.state.global_step + 1:,} of the training" if trains else "in the evaluation"
    return f"{when}; {recipe.saves_memory(options, training, trains)}"
