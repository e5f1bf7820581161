"""Our changes to the library's trainer: batches, validation, checkpoints of adapters, the check for NaN, the
progress bar, patience across a resume, and the error when memory runs out."""

import errno
import math
import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor, nn
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import EarlyStoppingCallback, ProgressCallback, Trainer, TrainerCallback, TrainerState
from transformers.trainer_callback import PrinterCallback

from mrs_suggest.common.errors import InputError, diverged
from mrs_suggest.models.adapters import has_lora, load_lora_state, read_lora_state, write_lora_state
from mrs_suggest.training.sampling import PairLoader, StepSampler

SECONDS_BETWEEN_LINES = 20  # of the progress bar, in a log file
# Parts of the libraries' RuntimeErrors for want of memory: CPU, MPS and XPU, cuBLAS, a mapped file.
SIGNS = ("can't allocate memory", "cannot allocate memory", "not enough memory", "out of memory", "alloc_failed")
AMOUNT = re.compile(r"tried to allocate ([\d.]+ ?[a-z]+)", re.IGNORECASE)
Row = TypeVar("Row")
Answer = TypeVar("Answer")


class OurTrainer(Trainer):
    """The base of every trainer here, placed before another one of the libraries'.

    - Training batches come from `sampler`.
    - A run stops at the first loss or gradient that is not finite, before the weights are updated with it. The losses
      of accumulated batches are summed on the device, and those of the ranks by reducing one number per step, so that
      all ranks stop together. The library's own check of each batch (`logging_nan_inf_filter`, which only hides such a
      loss from the log) is turned off: the host waits for the device once per step instead of twice per batch.
    - Checkpoints of a model with adapters hold only the adapters. The library itself would silently write and read
      such a model without its adapted layers.
    """

    sampler: StepSampler

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.args.logging_nan_inf_filter = False
        self._losses: Tensor | None = None
        self._norm: Tensor | float | None = None
        self.add_callback(_BeforeEachUpdate(self))

    def get_train_dataloader(self) -> DataLoader[Any]:
        return PairLoader(
            self.train_dataset,  # type: ignore[arg-type]
            batch_sampler=self.sampler,
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory,
            persistent_workers=self.args.dataloader_persistent_workers,
            prefetch_factor=self.args.dataloader_prefetch_factor,
        )

    # --- losses and gradients that are not finite

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """The library's step; its loss is kept for the check."""
        loss: Tensor = super().training_step(*args, **kwargs)
        self._losses = loss if self._losses is None else self._losses + loss
        return loss

    def _get_grad_norm(self, *args: Any, **kwargs: Any) -> Any:
        self._norm = super()._get_grad_norm(*args, **kwargs)
        return self._norm

    def stop_if_diverged(self) -> None:
        """Refuse to update the weights from a loss or a gradient that is not finite.

        With a gradient scaler (`--fp16`) only the loss is checked: the scaler finds its scale by letting gradients
        overflow, and skips those steps.
        """
        loss, norm, self._losses, self._norm = self._losses, self._norm, None, None
        if loss is None:
            return
        if self.args.world_size > 1:
            loss = self.accelerator.reduce(loss.float(), reduction="sum")
        assert loss is not None
        if norm is None or self.accelerator.scaler is not None:
            norm = 0.0
        if math.isfinite(loss + norm):  # one wait for the device
            return
        what = f"the loss is {float(loss):g}" if not math.isfinite(loss) else f"the gradient's norm is {float(norm):g}"
        advice = ", or leave --fp16 out" if self.args.fp16 else ""
        raise diverged(f"at step {self.state.global_step + 1:,} {what}", advice)

    # --- checkpoints of adapters

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        model = cast(nn.Module, self.model)
        if not has_lora(model):
            super()._save(output_dir, state_dict)
            return
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        write_lora_state(model, folder)

    def _load_from_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        if has_lora(model := cast(nn.Module, self.model)):
            load_lora_state(model, read_lora_state(Path(args[0])))
        else:
            super()._load_from_checkpoint(*args, **kwargs)

    def _load_best_model(self) -> None:
        if has_lora(model := cast(nn.Module, self.model)):
            load_lora_state(model, read_lora_state(Path(str(self.state.best_model_checkpoint))))
        else:
            super()._load_best_model()

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Do not warn about tied weights, which a checkpoint holds once; that all were read is checked afterwards."""

    # --- validation by ourselves, in place of the library's loop

    def answered(self, rows: Sequence[Row], answer: Callable[[Sequence[Row]], Sequence[Answer]]) -> list[Answer]:
        """The answers to all rows, on every rank: each takes its share, however uneven, and they are gathered."""
        world, rank = self.args.world_size, self.args.process_index
        own = rows[rank::world]
        mine = answer(own) if own else []
        if world == 1:
            return list(mine)
        shares = gather_object([mine])
        return [shares[number % world][number // world] for number in range(len(rows))]

    def print_figures(self, figures: Mapping[str, float]) -> None:
        """Print the figures above the bar, once."""
        if self.is_world_process_zero():
            lines = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
            tqdm.write(f"validation, step {self.state.global_step}: {lines}")

    def log_figures(self, figures: Mapping[str, float], prefix: str) -> dict[str, float]:
        """Pass the figures to the log and to the callbacks, which choose the checkpoint and stop the run.

        Returns:
            The figures, each name with the prefix before it.
        """
        metrics = {f"{prefix}_{name}": value for name, value in figures.items()}
        self.log(metrics)
        callbacks: Any = self.callback_handler
        self.control = callbacks.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


class MeasuringTrainer(OurTrainer):
    """The base of trainers whose validation is their own instead of the library's loop."""

    @abstractmethod
    def figures(self) -> dict[str, float]:
        """The figures on validation, of all ranks' shares; the first rank's count. The model is in evaluation mode."""

    def measured(self) -> dict[str, float]:
        """The figures on validation, on every rank."""
        cast(nn.Module, self.model).eval()
        return broadcast_object_list([self.figures()])[0]

    def evaluate(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> dict[str, float]:
        """Evaluate each example once: each rank takes its share, however uneven, and the results are gathered."""
        metrics = self.log_figures(self.measured(), metric_key_prefix)
        cast(nn.Module, self.model).train()
        return metrics


class _BeforeEachUpdate(TrainerCallback):
    def __init__(self, trainer: OurTrainer) -> None:
        self._trainer = trainer

    def on_pre_optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        self._trainer.stop_if_diverged()


def require_finite_weights(weights: Mapping[str, Tensor]) -> None:
    """Refuse to keep a model whose weights are not all finite; the InputError names the first such weight."""
    for name, value in weights.items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise diverged(f"the weights {name} are not finite at the end; nothing was saved")


# --- callbacks


class Resumable(TrainerCallback):
    """Mixin, placed before a callback that is an `ExportableState`: its attributes are those of the checkpoint.

    The library does so only where it may build the callback anew.
    """

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Read the attributes that `state` of the callback gave when the checkpoint was written."""
        super().on_train_begin(args, state, control, **kwargs)
        stored: Any = state.stateful_callbacks or {}
        for name, value in stored.get(type(self).__name__, {}).get("attributes", {}).items():
            setattr(self, name, value)


class Patience(Resumable, EarlyStoppingCallback):
    """The library's, which alone would count from 0 again in a resumed run."""


class LossBar(ProgressCallback):
    """The library's bar; figures go into it instead of being printed as dictionaries between its updates."""

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            interval = 0.2 if sys.stderr.isatty() else SECONDS_BETWEEN_LINES
            self.training_bar = tqdm(total=state.max_steps, desc="train", unit=" steps", mininterval=interval)
        self.current_step = 0

    def on_log(self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if state.is_world_process_zero and self.training_bar is not None and logs and "loss" in logs:
            self.training_bar.set_postfix_str(f"loss {float(logs['loss']):.3f}", refresh=False)


@contextmanager
def loss_bar(trainer: Trainer) -> Iterator[None]:
    """Put our bar in place of the library's callbacks, and close it if training ends early, so that the next output
    starts on a new line."""
    for callback in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(callback)
    bar = LossBar()
    if not trainer.args.disable_tqdm:
        trainer.add_callback(bar)
    try:
        yield
    finally:
        if bar.training_bar is not None:
            bar.training_bar.close()


# --- memory


@contextmanager
def explain_out_of_memory(advice: Callable[[], str]) -> Iterator[None]:
    """Turn the libraries' out-of-memory errors into one sentence; others pass.

    Args:
        advice: gives what was being done and what helps, such as "in training; lower --mini_batch_size".
    """
    try:
        yield
    except (RuntimeError, MemoryError, OSError) as error:
        if isinstance(error, OSError):
            ours = error.errno == errno.ENOMEM
        else:
            kinds = (torch.OutOfMemoryError, MemoryError)
            ours = isinstance(error, kinds) or any(sign in str(error).lower() for sign in SIGNS)
        if not ours:
            raise
        amount = AMOUNT.search(str(error))
        tried = f" (tried to allocate {amount[1]})" if amount else ""
        raise InputError(f"out of memory{tried} {advice()}.") from None
