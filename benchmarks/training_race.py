"""Trainers and bare loops in turns: steps a second of each, and the ratio of the first one to the others."""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import extract_model_from_parallel
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import TrainerCallback
from transformers.optimization import get_scheduler
from transformers.trainer_callback import PrinterCallback

TIMERS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
SKIPPED = 2  # steps before the clock starts


class Clock(TrainerCallback):
    """Steps a second, of `steps` steps but the first ones; a GPU is waited for at both ends alone."""

    def __init__(self, steps: int, options: argparse.Namespace) -> None:
        self._steps, self._now, self._cuda = steps, TIMERS[options.timer], options.device == "cuda"
        self._done, self._start, self.speed = 0, 0.0, 0.0

    def step(self) -> None:
        """A step is done."""
        self._done += 1
        if self._done in (SKIPPED, self._steps):
            if self._cuda:
                torch.cuda.synchronize()
            now = self._now()
            self.speed = (self._steps - SKIPPED) / (now - self._start) if self._done == self._steps else 0.0
            self._start = now

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        self.step()


def train_once(trainer: Any, clock: Clock) -> None:
    """Train once, silently."""
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(clock)
    trainer.train()
    extract_model_from_parallel(trainer.model, keep_fp32_wrapper=False)  # else wrappers pile up from run to run


def bare_loop(trainer: Any, steps: int, loss: Callable[[Any, Any], Tensor], clock: Clock, half: bool) -> None:
    """What a loop over a trainer's batches costs with Accelerate alone: clips and schedules as the trainer does.

    Args:
        trainer: its model, batches, optimizer and arguments are used; it does not train.
        loss: (model, batch) -> loss.
        half: whether in bfloat16.
    """
    training: Any = trainer.args
    accelerator = Accelerator(mixed_precision="bf16" if half else "no", cpu=training.use_cpu)
    optimizer = trainer.create_optimizer()
    schedule = get_scheduler(training.lr_scheduler_type, optimizer, training.get_warmup_steps(steps), steps)
    loader: Any = DataLoader(
        trainer.train_dataset, batch_sampler=trainer.sampler, collate_fn=trainer.data_collator,
        num_workers=training.dataloader_num_workers, pin_memory=training.dataloader_pin_memory,
    )  # fmt: skip
    model, optimizer, loader, schedule = accelerator.prepare(trainer.model, optimizer, loader, schedule)
    model.train()
    for number, batch in enumerate(loader):
        if number == steps:
            break
        accelerator.backward(loss(model, batch))
        accelerator.clip_grad_norm_(model.parameters(), training.max_grad_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        clock.step()
    extract_model_from_parallel(model, keep_fp32_wrapper=False)


def race(
    options: argparse.Namespace,
    steps: int,
    entries: Mapping[str, Callable[[Clock], None]],
    targets: Mapping[str, float],
) -> dict[str, Any]:
    """Run the entries in turns; the first one against each of the others."""
    speeds: dict[str, list[float]] = {name: [] for name in entries}
    for _ in range(options.rounds):
        for name, entry in entries.items():
            clock = Clock(steps, options)
            entry(clock)
            assert clock.speed, f"{name} made fewer than {steps} steps"
            speeds[name].append(clock.speed)
    ours, *rivals = speeds
    pairs = {name: list(zip(speeds[ours], speeds[name], strict=True)) for name in rivals}
    return {
        "steps": steps,
        "steps_per_second": {name: round(max(values), 3) for name, values in speeds.items()},
        "spread": {name: round(1 - min(values) / max(values), 3) for name, values in speeds.items()},
        "ratio": {name: round(max(speeds[ours]) / max(speeds[name]), 3) for name in rivals},
        "ratio_by_round": {name: [round(a / b, 3) for a, b in both] for name, both in pairs.items()},
        "target": {name: targets[name] for name in rivals if name in targets},
    }


def show(name: str, figures: Mapping[str, Any], more: Sequence[str]) -> None:
    """Print the ratios and speeds of a section's races, and the figures with the names `more`."""
    if "ratio" not in figures:
        for part, value in figures.items():
            if "ratio" in value:
                show(f"{name}, {part}", value, more)
        return
    speed, spread = figures["steps_per_second"], figures["spread"]
    for rival, ratio in figures["ratio"].items():
        print(
            f"{name}: ours {speed['ours']:.2f} steps/s (spread {spread['ours']:.0%}), {rival} {speed[rival]:.2f} "
            f"({spread[rival]:.0%}), ratio {ratio:.3f} {figures['ratio_by_round'][rival]}, "
            f"target {figures['target'].get(rival, 'none')}"
        )
    for key in more:
        if key in figures:
            print(f"  {key.replace('_', ' ')}: {figures[key]}")


def add_race_options(parser: argparse.ArgumentParser) -> None:
    """Options of every race."""
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0, help="processes that make batches (default: none)")
    parser.add_argument("--timer", choices=sorted(TIMERS), default="wall", help="cpu: of this process, for trials")


def check_race_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse what cannot be raced."""
    if options.steps is not None and options.steps <= SKIPPED:
        parser.error(f"--steps {options.steps}: expected {SKIPPED + 1} or more.")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: there is no GPU that torch can use; pass --device cpu.")


def machine(options: argparse.Namespace, packages: Sequence[str]) -> dict[str, Any]:
    """Machine and versions, for the record."""
    found = {"cores": os.cpu_count(), "threads": torch.get_num_threads()}
    found |= {"load_at_the_end": round(os.getloadavg()[0], 1)}
    found |= {"gpu": torch.cuda.get_device_name()} if options.device == "cuda" else {}
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}
    return {"machine": found, "versions": versions}
