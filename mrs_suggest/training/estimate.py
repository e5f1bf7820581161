"""`--estimate`: the memory and time of a run, from a trial of a few steps with its own data, model and batches.

Nothing is left behind: the trial has a temporary folder, and `--output_dir` is not looked at.
"""

import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from mrs_suggest.common.report.tables import print_table
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.record import TIMES

WARM_UP, TIMED = 5, 20  # steps: the first ones are slower
LONG = 60.0  # seconds of a validation after which it is not measured a second time
IGNORED = -100  # of labels


def estimate(trainer: Trainer, model: nn.Module, facts: Record, start: float, tests: bool) -> None:
    """Try a run, and print what it takes: memory of this device, times of one rank, examples and tokens of all ranks.

    Args:
        trainer: of the run, which has taken no step; its arguments are changed to those of the trial.
        start: seconds until the trainer was made.
    """
    training = trainer.args
    steps, validations, saves = _plan(trainer, training)
    training.max_steps = WARM_UP + TIMED
    training.eval_strategy = training.save_strategy = "no"
    training.load_best_model_at_end = False
    trial = _Trial(trainer)
    trainer.train()
    peak, first, other, save = _peak(), 0.0, 0.0, 0.0
    if validations or tests:  # the first one includes the baselines
        first = other = _seconds(trainer.evaluate)
        other = first if first > LONG else _seconds(trainer.evaluate)
    if saves:
        save = _seconds(lambda: trainer._save_checkpoint(cast(Any, trainer.model), None))
    if not trainer.is_world_process_zero():
        return
    every = list(model.parameters())
    trained = [one for one in every if one.requires_grad]
    states = cast(Any, trainer.optimizer).state.values()
    memory = {
        "weights": _bytes(every) + _bytes(list(model.buffers())),
        "gradients": _bytes(trained),
        "optimizer": _bytes([one for state in states for one in state.values() if isinstance(one, torch.Tensor)]),
    }
    counts = facts["data"]["rows"].values()
    validated, tested = (sum(rows.get(split, 0) for rows in counts) for split in ("validation", "test"))
    step = (trial.ends[-1] - trial.ends[-1 - TIMED]) / TIMED
    examples = training.train_batch_size * training.world_size * training.gradient_accumulation_steps
    tokens = trial.tokens * training.world_size / TIMED
    times = {
        "until the first step": start,
        f"{steps:,} steps": steps * step,
        f"{validations} validations": first + other * (validations - 1) if validations else 0.0,
        f"{saves} checkpoints and the model": (saves + 1) * save,
        "test (an example as in the first validation)": first * tested / validated if tests and validated else 0.0,
    }
    rows = {
        "parameters": f"{sum(one.numel() for one in every):,}",
        "trained parameters": f"{sum(one.numel() for one in trained):,}",
        **{f"memory: {name}": _megabytes(size) for name, size in memory.items()},
        "memory: peak of the whole process, or allocated on the GPU": _megabytes(peak),
        "examples a step": f"{examples:,}",
        "seconds a step": f"{step:.3f}",
        "examples a second": f"{examples / step:,.1f}",
        "tokens a second, without padding": f"{tokens / step:,.0f}",
        **{f"time: {name}": _duration(seconds) for name, seconds in times.items()},
        "time of the run, unless it stops early": _duration(sum(times.values())),
    }
    device = torch.cuda.get_device_name() if training.device.type == "cuda" else training.device.type.upper()
    print_table(f"From {WARM_UP + TIMED} steps on {device}", ["", "estimate"], list(rows.items()))
    if path := os.environ.get(TIMES):
        seconds = list(times.values())
        note = {"steps": steps, "training_seconds": sum(seconds[1:-1]), "seconds": sum(seconds)}
        Path(path).write_text(json.dumps(note), encoding="utf-8")


class _Trial(TrainerCallback):
    """Times the steps, and counts the tokens of those after the first ones."""

    def __init__(self, trainer: Trainer) -> None:
        model: nn.Module = trainer.model  # type: ignore[assignment]
        self.tokens, self.ends = 0, [time.perf_counter()]
        self._writes = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
        self._training_step: Callable[..., Tensor] = trainer.training_step
        trainer.training_step = self._step  # type: ignore[method-assign,assignment]
        trainer.add_callback(self)

    def _step(self, model: Any, inputs: Any, *rest: Any) -> Tensor:
        if len(self.ends) > WARM_UP:
            self.tokens += tokens_of(inputs, self._writes)
        return self._training_step(model, inputs, *rest)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if args.device.type != "cpu":
            torch.accelerator.synchronize()
        self.ends.append(time.perf_counter())


def tokens_of(inputs: Mapping[str, Any], writes: bool) -> int:
    """The tokens of a batch without padding; those that a seq2seq model is to write (`writes`) count too.

    >>> tokens_of({"a_input_ids": torch.ones(2, 3), "a_attention_mask": torch.tensor([[1, 1, 1], [1, 0, 0]])}, False)
    4
    """
    found = 0
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor):
            continue
        if name.endswith("attention_mask") and not name.startswith("decoder"):
            found += int(value.sum())
        elif name.endswith("input_ids") and name.replace("input_ids", "attention_mask") not in inputs:
            found += 0 if name.startswith("decoder") else value.numel()
        elif name == "labels" and writes:
            found += int((value != IGNORED).sum())
    return found


def _plan(trainer: Trainer, training: TrainingArguments) -> tuple[int, int, int]:
    batches = len(trainer.get_train_dataloader())
    epoch = max(1, math.ceil(batches / training.gradient_accumulation_steps))
    steps = training.max_steps if training.max_steps > 0 else math.ceil(training.num_train_epochs * epoch)

    def times(strategy: Any, every: float | None) -> int:
        name = getattr(strategy, "value", strategy)
        if name == "steps" and every:
            return steps // max(1, math.ceil(steps * every) if every < 1 else int(every))
        return math.ceil(steps / epoch) if name == "epoch" else 0

    return steps, times(training.eval_strategy, training.eval_steps), times(training.save_strategy, training.save_steps)


def _seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _bytes(tensors: list[Any]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)


def _peak() -> int:
    """The most memory that was allocated on the accelerator, or that the process had."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.{1 if size < 1e7 else 0}f} MB"


def _duration(seconds: float) -> str:
    """A time in the unit that a person would use.

    >>> [_duration(seconds) for seconds in (8.04, 75, 5400)]
    ['8.0 s', '1.2 min', '1.5 h']
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
