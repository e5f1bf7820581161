"""`--estimate`: what a run would take, from a trial of a few steps with its own data, model and batches.

Nothing is left behind: the trial has a temporary folder, and `--output_dir` is not looked at.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from mrs_suggest.common.report.console import make_console
from mrs_suggest.training.export.card import Record

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import Trainer

WARM_UP, TIMED = 5, 20  # steps: the first ones are slower, and activations are counted in them
LONG = 60.0  # seconds of a validation after which it is not measured a second time
IGNORED = -100  # of labels


@dataclass(frozen=True)
class Estimate:
    """What a run takes. Memory in bytes, times in seconds, all of one rank but for `examples`.

    Attributes:
        parameters, trained: numbers of them.
        weights, gradients, optimizer, activations: memory on this device, in the precision of the trial.
        peak: of the process (CPU), or what was allocated on the accelerator.
        half: whether the trial's activations were in 16 bits.
        examples, tokens: of a step, on all ranks, without padding.
        step, start, save: seconds of a step, until the first one, and of a checkpoint.
        validation: seconds of the first validation, which includes the baselines, and of each other.
        test: seconds, as many for an example as the first validation took; 0 without a test.
        steps, validations, saves: how many the run has.
    """

    device: str
    parameters: int
    trained: int
    weights: int
    gradients: int
    optimizer: int
    activations: int
    peak: int
    half: bool
    examples: int
    tokens: float
    step: float
    start: float
    save: float
    validation: tuple[float, float]
    test: float
    steps: int
    validations: int
    saves: int

    @property
    def seconds(self) -> float:
        """Of the whole run, without early stopping; the model is written once more at its end."""
        first, other = self.validation
        validations = first + other * (self.validations - 1) if self.validations else 0.0
        return self.start + self.steps * self.step + validations + (self.saves + 1) * self.save + self.test

    @property
    def memory(self) -> int:
        """The sum of the four parts."""
        return self.weights + self.gradients + self.optimizer + self.activations

    @property
    def memory_in_bf16(self) -> int:
        """Predicted for mixed precision: weights, gradients and optimizer stay as they are, the weights are copied in
        16 bits for the products, and activations need half."""
        activations = self.activations if self.half else self.activations // 2
        return self.weights + 2 * self.parameters + self.gradients + self.optimizer + activations


def estimate(trainer: Trainer, model: nn.Module, facts: Record, start: float, tests: bool) -> Estimate | None:
    """Try a run; None in a process that is not the first.

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
    peak = _peak()
    validation = _validations(trainer) if validations or tests else (0.0, 0.0)
    save = _seconds(lambda: _save(trainer)) if saves else 0.0
    if not trainer.is_world_process_zero():
        return None
    every = list(model.parameters())
    trained = [one for one in every if one.requires_grad]
    states: Any = trainer.optimizer
    kept = [value for state in states.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
    return Estimate(
        device=torch.cuda.get_device_name() if training.device.type == "cuda" else training.device.type.upper(),
        parameters=sum(one.numel() for one in every),
        trained=sum(one.numel() for one in trained),
        weights=_bytes(every) + _bytes(list(model.buffers())),
        gradients=_bytes(trained),
        optimizer=_bytes(kept),
        activations=trial.saved.peak,
        peak=peak,
        half=training.bf16 or training.fp16,
        examples=training.train_batch_size * training.world_size * training.gradient_accumulation_steps,
        tokens=trial.tokens * training.world_size / TIMED,
        step=(trial.ends[-1] - trial.ends[-1 - TIMED]) / TIMED,
        start=start,
        save=save,
        validation=validation,
        test=validation[0] * _test_share(facts["data"]["rows"]) if tests else 0.0,
        steps=steps,
        validations=validations,
        saves=saves,
    )


class SavedTensors:
    """Counts the bytes that autograd keeps at a time, each storage once, and not those of the parameters.

    The count is that of the tensors themselves: it does not depend on the device or its allocator.

    Args:
        parameters: of the model.

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


def _validations(trainer: Trainer) -> tuple[float, float]:
    first = _seconds(trainer.evaluate)
    return first, (first if first > LONG else _seconds(trainer.evaluate))


def _test_share(rows: Mapping[str, Mapping[str, int]]) -> float:
    """Examples of the test splits for each of the validation splits."""
    validation, test = (sum(counts.get(split, 0) for counts in rows.values()) for split in ("validation", "test"))
    return test / validation if validation else 0.0


def _save(trainer: Trainer) -> None:
    model: Any = trainer.model
    trainer._save_checkpoint(model, None)


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


def print_estimate(found: Estimate | None) -> None:
    """Print it; nothing for None."""
    if found is None:
        return
    from rich.table import Table

    table = Table("", "estimate", title=f"From {WARM_UP + TIMED} steps on {found.device}", title_justify="left")
    table.columns[1].justify = "right"
    for name, value in rows_of(found):
        table.add_row(name, value)
    make_console(100).print(table)


def rows_of(found: Estimate) -> list[tuple[str, str]]:
    """The lines of the table."""
    of = "in 16 bits" if found.half else "in 32 bits"
    first, other = found.validation
    return [
        ("parameters", f"{found.parameters:,}"),
        ("of them trained", f"{found.trained:,}"),
        ("memory: weights", _megabytes(found.weights)),
        ("memory: gradients", _megabytes(found.gradients)),
        ("memory: optimizer", _megabytes(found.optimizer)),
        (f"memory: activations, {of}, at their peak", _megabytes(found.activations)),
        ("memory: sum", _megabytes(found.memory)),
        ("memory: of the whole process, or allocated on the GPU, at its peak", _megabytes(found.peak)),
        ("predicted for bf16 on a GPU (weights also in 16 bits, half the activations)",
         _megabytes(found.memory_in_bf16)),
        ("examples a step", f"{found.examples:,}"),
        ("seconds a step", f"{found.step:.3f}"),
        ("examples a second", f"{found.examples / found.step:,.1f}"),
        ("tokens a second, without padding", f"{found.tokens / found.step:,.0f}"),
        ("time: until the first step", _duration(found.start)),
        (f"time: {found.steps:,} steps", _duration(found.steps * found.step)),
        (f"time: {found.validations} validations", _duration(first + other * max(0, found.validations - 1))
         if found.validations else "0 s"),
        (f"time: {found.saves} checkpoints and the model", _duration((found.saves + 1) * found.save)),
        ("time: test (an example as in the first validation)", _duration(found.test)),
        ("time of the run, unless it stops early", _duration(found.seconds)),
    ]  # fmt: skip


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
