"""One training run, from checked options to a published model: the steps that all families share.

A family's `run` function reads from top to bottom and calls the methods of `Run` in this order: `load`, `begin`,
`build`, `train`, `merge_adapters`, `save`, `evaluate`, `finish`. It returns the record, or None where nothing is
written: of an estimate, and in a process that is not the first. It raises InputError where the options, the data or the
folder cannot be used, the run diverged, or the memory ran out.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import torch
from torch import nn
from transformers import PreTrainedModel, Trainer, TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.utils.logging import disable_progress_bar

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub import hub
from mrs_suggest.common.hub.publishing import Change, publish
from mrs_suggest.common.io.files import atomic_write, umask
from mrs_suggest.common.launcher import LAUNCHER, end_with_launcher
from mrs_suggest.common.text.text import finite_json, visible
from mrs_suggest.models.adapters import add_lora, has_lora, lora_state, merge_lora, read_lora_state, save_adapter
from mrs_suggest.models.saved.families import Family, write_record
from mrs_suggest.models.saved.record import ADAPTER_FOLDER, CURVE_POINTS, CURVES, RECORD, Record
from mrs_suggest.training.estimate import estimate
from mrs_suggest.training.options import (
    LORA_OPTIONS,
    LoraArguments,
    RunArguments,
    has_steps,
    require_integrations,
    trains_lora,
)
from mrs_suggest.training.record import (
    RunFolder,
    draw_curves,
    last_checkpoint,
    plain_arguments,
    require_best_weights,
    run_record,
)
from mrs_suggest.training.sweep import trial_of_sweep
from mrs_suggest.training.trackers import Trackers, inside
from mrs_suggest.training.trainer import Patience, explain_out_of_memory, loss_bar, require_finite_weights

# Arguments of the library that must match when a run is resumed.
SCHEDULE = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "label_smoothing_factor", "optim",
    "adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm",
)  # fmt: skip
Loaded = TypeVar("Loaded")
Built = TypeVar("Built", bound=Any)  # a model, as its `model`, and whatever belongs to it, such as a tokenizer


class Run:
    """A run's folder, clock, trackers and record; a context manager, which closes the trackers.

    Args:
        options, training: checked by `mrs_suggest.training.options.sound`.
        steps: trained when neither epochs nor steps are given.
        advice: what helps when memory runs out, in a training step (True) or in an evaluation (False).

    Raises:
        InputError: the folder cannot be used, or the options cannot go together.
    """

    def __init__(
        self,
        family: Family,
        options: RunArguments,
        training: TrainingArguments,
        *,
        steps: int,
        lower_is_better: Sequence[str] = (),
        advice: Callable[[bool], str] | None = None,
    ) -> None:
        if LAUNCHER in os.environ:
            end_with_launcher()
        disable_progress_bar()  # of loading and saving weights; the trainer's own bar stays
        self._family, self.options, self._training = family, options, training
        self._advice = advice or (lambda trains: lower_batch_size(training, trains))
        self._open, self._started = ExitStack(), time.time()
        self._repo_id = _repository(options, training) if training.push_to_hub and not options.estimate else None
        if options.estimate:
            if not has_steps(training):
                raise InputError("--estimate: times training steps, which --max_steps 0 disables; leave it out.")
            training.output_dir = self._open.enter_context(tempfile.TemporaryDirectory(prefix="mrs-estimate-"))
            training.report_to, training.resume_from_checkpoint, training.push_to_hub = [], None, False
        self.folder = Path(training.output_dir or ".")
        self._run_folder = RunFolder(self.folder, options.overwrite, training.resume_from_checkpoint)
        self._checkpoint = last_checkpoint(self.folder, training.resume_from_checkpoint)
        training.greater_is_better = training.metric_for_best_model not in lower_is_better
        training.dataloader_pin_memory &= torch.cuda.is_available()
        if training.num_train_epochs <= 0 and training.max_steps < 0:
            training.max_steps = steps
        training.load_best_model_at_end &= has_steps(training)

    def __enter__(self) -> Self:
        if trackers := self._training.report_to:
            self._open.enter_context(inside(self.folder, trackers, self._training.project))
            require_integrations(trackers)  # imports them, which read where to write
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def load(self, read: Callable[[], Loaded]) -> Loaded:
        """Read data: the first process before the others, so that those find what it cached."""
        with self._training.main_process_first(local=False):
            return read()

    def begin(self, facts: Record, resume_keys: Sequence[str], **identity: Any) -> None:
        """Refuse to resume a run that was started differently.

        Args:
            facts: of the data, for the record: `data` with `id`, `title`, `revision` or `content_hash`, and `rows`
                (config -> split -> rows used), and keys of the family's own.
        """
        options, training = self.options, self._training
        keys = (*(LORA_OPTIONS if isinstance(options, LoraArguments) else ()), *resume_keys)
        found = {
            "trainer": self._family.name,
            "model": f"{options.model_name_or_path}@{options.model_revision}",
            "seed": training.seed,
            "data": facts["data"].get("revision") or facts["data"].get("content_hash"),
            **identity,
            **{name: getattr(options, name) for name in keys},
            "examples a step": training.train_batch_size * training.world_size * training.gradient_accumulation_steps,
            **{name: getattr(training, name) for name in SCHEDULE},
        }
        self._facts, self._identity = facts, json.loads(json.dumps(found, default=str))  # as read from the file
        if training.resume_from_checkpoint:
            self._run_folder.require_same(self._identity)

    def build(self, make: Callable[[], Built]) -> Built:
        """Build the model, add adapters where they are trained, and move it to its device; else an InputError."""
        options, training = self.options, self._training
        with explain_out_of_memory(lambda: "while the model was loaded; choose a smaller one"):
            parts = make()
            if isinstance(options, LoraArguments) and trains_lora(options):
                settings = options.lora_rank, options.lora_alpha, options.lora_dropout
                add_lora(parts.model, *settings, seed=training.seed)
            parts.model.to(training.device)
        return parts

    def train(
        self,
        trainer: Trainer,
        model: nn.Module,
        *,
        stopping: TrainerCallback | None = None,
        load: Callable[[Path], nn.Module] | None = None,
    ) -> bool:
        """Train or resume, and keep the best checkpoint's weights; with `--estimate`, only print what that takes.

        Args:
            stopping: ends the run before its last step; None: `--patience`.
            load: reads the model of a checkpoint; None: as a model of transformers.

        Returns:
            Whether the run continues in this process, which evaluates on test and writes.

        Raises:
            InputError: the run diverged, or the memory ran out.
        """
        options, training = self.options, self._training
        if options.estimate:
            with explain_out_of_memory(lambda: f"in the trial; {self._advice(True)}"), loss_bar(trainer):
                estimate(trainer, model, self._facts, time.time() - self._started, tests=not options.skip_test)
            return False
        if stopping is None and options.patience:
            stopping = Patience(options.patience)
        if stopping and training.eval_strategy != "no":
            trainer.add_callback(stopping)
        if trial := trial_of_sweep():
            trainer.add_callback(trial)
        self._trackers = Trackers(trainer, plain_arguments([options]))
        self._open.callback(self._trackers.close)
        with training.main_process_first(local=False):
            self._run_folder.begin(self._identity)
            self._trackers.make_folder(self.folder)
        with explain_out_of_memory(lambda: self._memory_advice(trainer)), loss_bar(trainer):
            if not has_steps(training):
                self._trackers.open_without_training()
            elif self._checkpoint is None or not _finished(trainer, self._checkpoint):
                trainer.train(resume_from_checkpoint=self._checkpoint)
        # Without the wrapper of mixed precision: the model is tested as it is loaded later.
        trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
        if training.load_best_model_at_end:
            _require_best(trainer, model, load)
        require_finite_weights(model.state_dict())
        self._state: TrainerState = trainer.state
        return trainer.is_world_process_zero()

    def merge_adapters(self, model: nn.Module, save_beside: Callable[[Path], Any] | None = None) -> None:
        """Write the adapters, if any were trained, and merge them into the model.

        Args:
            save_beside: writes the other files that loading the adapters needs.
        """
        model.eval()
        if has_lora(model):
            folder = self.folder / ADAPTER_FOLDER
            base = self.options.model_name_or_path, self.options.model_revision
            save_adapter(model, folder, *base, self._training.seed)
            if save_beside:
                save_beside(folder)
            merge_lora(model)

    def save(self, write: Callable[[Path], Any]) -> None:
        """Write the model into the folder, which is unfinished until its record is there."""
        (self.folder / RECORD).unlink(missing_ok=True)
        write(self.folder)

    def evaluate(self, measure: Callable[[], Loaded]) -> Loaded:
        """Measure the trained model; InputError if the memory ran out."""
        with explain_out_of_memory(lambda: f"in the evaluation; {self._advice(False)}"):
            return measure()

    def finish(
        self,
        figures: Record,
        milliseconds: dict[str, float] | None = None,
        files: Mapping[str, Callable[[Path], None]] | None = None,
        named: str = "",
        curves: Mapping[str, str] | None = None,
        show: Callable[[Record], None] | None = None,
    ) -> Record:
        """Write the evaluation's files, the curves, the card, and last the record; publish the run where it is asked.

        Args:
            figures: for the record, under `metrics`; equal for equal weights.
            milliseconds: to answer, by system; they vary from run to run.
            files: name in the run's folder, `predictions` at its beginning -> writes that file.
            named: how the last printed line names these files.
            curves: metrics that are drawn -> their labels; None: the metric that chooses the checkpoint.
        """
        options, training, folder, state = self.options, self._training, self.folder, self._state
        for name, write in (files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write(folder / name)
        record = run_record(
            trainer=self._family.name,
            options=options,
            training=training,
            facts=self._facts,
            state=state,
            figures=figures,
            milliseconds=milliseconds or {},
            seconds=time.time() - self._started,
        )
        with suppress(OSError):
            (folder / "eval").rmdir()  # the trainer's, empty
        chosen = str(training.metric_for_best_model)
        shown = curves or {chosen: chosen.replace("_", " ")}
        points = draw_curves(state.log_history, record["best_step"], folder / CURVES, shown)
        atomic_write(folder / CURVE_POINTS, json.dumps(finite_json(points)) + "\n")
        for path in folder.rglob("*.safetensors"):  # written readable by their owner alone
            path.chmod(0o666 & ~umask())
        write_record(folder, record, self._family)
        self._trackers.add_figures(record)
        if show:
            show(record)
        print(f"wrote {visible(folder)}: {', '.join(filter(None, ['model, run.json, curves.png', named]))}")
        if self._repo_id:
            self._publish(record)
        return record

    def _publish(self, record: Record) -> None:
        """Publish the finished run; InputError where the hub refuses or is unreachable: the run itself is complete."""
        repo_id, training = str(self._repo_id), self._training
        change = Change(f"Train a model ({self._family.name})", training.hub_private_repo)
        try:
            what = self._family.publication(self.folder, repo_id, self._family.render(record, repo_id))
            commit = publish(what, change, training.hub_token).commit
        except InputError as error:
            raise InputError(
                f"{error} The run is complete: `mrs models publish {self.folder} --repo {repo_id}` publishes it."
            ) from None
        print(f"published {repo_id} at {commit[:12]}")

    def _memory_advice(self, trainer: Trainer) -> str:
        trains = trainer.is_in_train and bool(trainer.model and trainer.model.training)
        when = f"at step {trainer.state.global_step + 1:,} of the training" if trains else "in the evaluation"
        return f"{when}; {self._advice(trains)}"


def lower_batch_size(training: TrainingArguments, trains: bool) -> str:
    """Advice for a model whose memory depends on its batches."""
    name = f"per_device_{'train' if trains else 'eval'}_batch_size"
    return f"lower --{name} (now {getattr(training, name):,})"


def _repository(options: RunArguments, training: TrainingArguments) -> str:
    """The repository to publish to, checked before hours of training; the library's own push stays off."""
    training.push_to_hub = False
    if not training.hub_model_id:
        raise InputError("--push_to_hub needs --hub_model_id ORG/NAME.")
    hub.require_repo_id(training.hub_model_id)
    if training.process_index == 0:
        hub.require_token(training.hub_model_id, training.hub_token)
    if options.skip_test:
        raise InputError("--skip_test: leaves out the figures of a published model's card; leave --push_to_hub out.")
    return str(training.hub_model_id)


def _finished(trainer: Trainer, checkpoint: str) -> bool:
    """Load the checkpoint of a run that was killed after its last step; false where steps are left.

    The library would take one more step: it looks for the end of training after a step, not before one. A run that
    stopped early (patience, a limit, a sweep that ends it) has no steps left either: its checkpoint says so.
    """
    path = Path(checkpoint) / TRAINER_STATE_NAME
    if not path.is_file():  # the library continues without it
        return False
    state = TrainerState.load_from_json(str(path))
    training = trainer.args
    if training.max_steps > 0:
        left = state.global_step < training.max_steps
    else:
        left = state.global_step < state.max_steps or state.num_train_epochs < training.num_train_epochs
    control = state.stateful_callbacks.get("TrainerControl", {}).get("args", {})
    stopped = state.global_step < state.max_steps and control.get("should_training_stop", False)
    if left and not stopped:
        return False
    trainer.state = state
    trainer._load_from_checkpoint(checkpoint)
    if training.load_best_model_at_end and state.best_model_checkpoint is not None:
        trainer._load_best_model()
    return True


def _require_best(trainer: Trainer, model: nn.Module, load: Callable[[Path], nn.Module] | None) -> None:
    """Make sure that the weights are those of the best checkpoint, which the library only warns about."""
    best = trainer.state.best_model_checkpoint
    if not best:
        if trainer.is_world_process_zero():  # such as with an --eval_delay longer than the run
            print("note: no evaluation chose a checkpoint; the last weights are kept.", file=sys.stderr)
    elif has_lora(model):
        require_best_weights(lora_state(model), read_lora_state(Path(best)), best)
    else:
        found = load(Path(best)) if load else cast("PreTrainedModel", model).from_pretrained(best, use_safetensors=True)
        require_best_weights(model.state_dict(), found.state_dict(), best)
