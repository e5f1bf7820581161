"""The progress bar of a run: one bar with the loss in it, and few lines if the output is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm
from transformers import ProgressCallback, Trainer, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback

SECONDS_BETWEEN_LINES = 20  # in a log file


class LossBar(ProgressCallback):
    """The library's bar; figures go into it instead of being printed as dictionaries between its updates."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if state.is_world_process_zero:
            interval = 0.2 if sys.stderr.isatty() else SECONDS_BETWEEN_LINES
            self.training_bar = tqdm(total=state.max_steps, desc="train", unit=" steps", mininterval=interval)
        self.current_step = 0

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if state.is_world_process_zero and self.training_bar is not None and logs and "loss" in logs:
            self.training_bar.set_postfix_str(f"loss {float(logs['loss']):.3f}", refresh=False)


@contextmanager
def close_bar(trainer: Trainer) -> Iterator[None]:
    """Close the bar if training ends early, so that the next output starts on a new line."""
    try:
        yield
    finally:
        for callback in trainer.callback_handler.callbacks:
            if isinstance(callback, LossBar) and callback.training_bar is not None:
                callback.training_bar.close()


def show_loss_bar(trainer: Trainer) -> None:
    """Put the bar in place of the library's callbacks."""
    for callback in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(callback)
    if not trainer.args.disable_tqdm:
        trainer.add_callback(LossBar)
