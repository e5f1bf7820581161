"""`--estimate`: the memory and time of a run, from a trial of a few steps with its own data, model and batches.

Nothing is left behind: the trial has a temporary folder, and `--output_dir` is not looked at.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from mrs_suggest.common.report.console import make_console
from mrs_suggest.models.saved.record import Record

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import Trainer

WARM_UP, TIMED = 5, 20  # steps: the first ones are slower, and activations are counted in them
LONG = 60.0  # seconds of a validation after which it is not measured a second time
IGNORED = -100  # of labels


def estimate(trainer: Trainer, model: nn.Module, facts: Record, start: float, tests: bool) -> None:
    """Try a run, and print what it takes: memory of this device, times of one rank, examples and tokens of all ranks.

    Args:
        trainer: of the run, which has taken no step; its arguments are changed to those of the trial.
        facts: of the run's data, as in its record.
        start: seconds until the trainer was made.
        tests: whether the run ends with a test.
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
    half = training.bf16 or training.fp16
    every = list(model.parameters())
    trained = [one for one in every if one.requires_grad]
    parameters, states = sum(one.numel() for one in every), cast(Any, trainer.optimizer).state.values()
    memory = {
        "weights": _bytes(every) + _bytes(list(model.buffers())),
        "gradients": _bytes(trained),
        "optimizer": _bytes([one for state in states for one in state.values() if isinstance(one, torch.Tensor)]),
        f"activations, in {'16' if half else '32'} bits, peak": trial.saved.peak,
    }
    # With mixed precision, weights are copied in 16 bits for the products, and activations need half.
    in_bf16 = sum(memory.values()) + 2 * parameters - (0 if half else (trial.saved.peak + 1) // 2)
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
    _print(
        torch.cuda.get_device_name() if training.device.type == "cuda" else training.device.type.upper(),
        {
            "parameters": f"{parameters:,}",
            "trained parameters": f"{sum(one.numel() for one in trained):,}",
            **{f"memory: {name}": _megabytes(size) for name, size in memory.items()},
            "memory: sum": _megabytes(sum(memory.values())),
            "memory: peak of the whole process, or allocated on the GPU": _megabytes(peak),
            "predicted for bf16 on a GPU (weights also in 16 bits, half the activations)": _megabytes(in_bf16),
            "examples a step": f"{examples:,}",
            "seconds a step": f"{step:.3f}",
            "examples a second": f"{examples / step:,.1f}",
            "tokens a second, without padding": f"{tokens / step:,.0f}",
            **{f"time: {name}": _duration(seconds) for name, seconds in times.items()},
            "time of the run, unless it stops early": _duration(sum(times.values())),
        },
    )


def _print(device: str, rows: Mapping[str, str]) -> None:
    from rich.table import Table

    table = Table("", "estimate", title=f"From {WARM_UP + TIMED} steps on {device}", title_justify="left")
    table.columns[1].justify = "right"
    for row in rows.items():
        table.add_row(*row)
    make_console(100).print(table)


class SavedTensors:
    """Counts the bytes that autograd keeps at a time, each storage once, and not those of the parameters.

    The count is that of the tensors themselves: it does not depend on the device or its allocator.

    Attributes:
        peak: the most bytes at a time.

    >>> weight = torch.ones(4, requires_grad=True)
    >>> saved = SavedTensors([weight])
    >>> with saved.counted():
    ...     (torch.ones(4) * weight).exp().sum().backward()
    >>> saved.peak  # the first factor and the result of exp, of 4 numbers each
    32
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self._parameters = {one.untyped_storage().data_ptr() for one in parameters}
        self._uses: dict[int, int] = {}
        self._now = 0
        self.peak = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is kept within the block."""
        with torch.autograd.graph.saved_tensors_hooks(self._pack, lambda held: held.tensor):
            yield

    def _pack(self, tensor: Tensor) -> _Held:
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:  # a sparse one
            return _Held(self, tensor, 0, 0)
        place, size = storage.data_ptr(), storage.nbytes()
        if place in self._parameters:
            size = 0
        if size:
            if not self._uses.get(place):
                self._now += size
                self.peak = max(self.peak, self._now)
            self._uses[place] = self._uses.get(place, 0) + 1
        return _Held(self, tensor, place, size)

    def release(self, place: int, size: int) -> None:
        """One use of a storage has ended."""
        self._uses[place] -= 1
        if not self._uses[place]:
            del self._uses[place]
            self._now -= size


class _Held:
    """A tensor that autograd keeps; it is gone when autograd forgets it."""

    def __init__(self, of: SavedTensors, tensor: Tensor, place: int, size: int) -> None:
        self.tensor, self._of, self._place, self._size = tensor.detach(), of, place, size

    def __del__(self) -> None:
        if self._size:
            self._of.release(self._place, self._size)


class _Trial(TrainerCallback):
    """Times the steps, counts their tokens, and in the first ones the activations."""

    def __init__(self, trainer: Trainer) -> None:
        model: nn.Module = trainer.model  # type: ignore[assignment]
        self.saved, self.tokens, self.ends = SavedTensors(model.parameters()), 0, [time.perf_counter()]
        self._writes = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
        self._training_step: Callable[..., Tensor] = trainer.training_step
        trainer.training_step = self._step  # type: ignore[method-assign,assignment]
        trainer.add_callback(self)

    def _step(self, model: Any, inputs: Any, *rest: Any) -> Tensor:
        if len(self.ends) <= WARM_UP:
            with self.saved.counted():
                return self._training_step(model, inputs, *rest)
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
    """The steps, validations and checkpoints of the run."""
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
