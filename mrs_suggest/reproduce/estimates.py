"""How long the runs of a table take: from those of the same kind that have finished."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import read_object
from mrs_suggest.models.saved.record import Record
from mrs_suggest.reproduce.cells import STATE, Cell, Setup

# Runs that agree in these options, and in the trainer, take the same time for a step.
SAME = ("model_name_or_path", "global_batch_size", "per_device_train_batch_size", "mini_batch_size")


@dataclass(frozen=True)
class Timed:
    """A run that finished in one go.

    Attributes:
        setting: on which the languages of its test depend.
        training: seconds of the steps, with the evaluations on validation.
        rest: seconds of all else: imports, data, test.
    """

    kind: tuple[Any, ...]
    setting: str
    steps: int
    training: float
    rest: float


class Estimates:
    """Seconds of runs, by what the runner wrote next to earlier ones."""

    def __init__(self, output: Path) -> None:
        self._timed: list[Timed] = []
        for path in sorted((output / "cells").glob(f"*/{STATE}")):
            self.add(read_object(path) or {})

    def add(self, note: Record) -> None:
        """Take in what was measured of a run; failed and resumed ones are ignored."""
        steps, training = note.get("steps"), note.get("training_seconds")
        if note.get("code") == 0 and steps and training is not None and not note.get("resumed"):
            rest = max(0.0, note["seconds"] - training)
            self._timed.append(Timed(*kind_of(note["identity"]), steps, training, rest))

    def seconds(self, identity: Record, steps: int | None) -> float | None:
        """Of a run with so many steps, or with as many as earlier ones; None until one of its kind has finished."""
        kind, setting = kind_of(identity)
        timed = [one for one in self._timed if one.kind == kind]
        if not timed:
            return None
        alike = [one for one in timed if one.setting == setting] or timed
        training = [one.training / one.steps * (steps or one.steps) for one in alike]
        return median(training) + median(one.rest for one in alike)


def kind_of(identity: Record) -> tuple[tuple[Any, ...], str]:
    """The trainer and the options of `SAME`, and the setting."""
    options = identity.get("options", {})
    return (identity.get("trainer"), *(str(options.get(key)) for key in SAME)), str(options.get("setting"))


def steps_of(cell: Cell, setup: Setup) -> int | None:
    """Steps of a cell's run; None if epochs decide, or there is no such configuration."""
    try:
        return int({**cell.config(setup), **cell.options(setup)}.get("max_steps") or 0) or None
    except InputError:  # the run says so
        return None


def told_duration(seconds: float) -> str:
    """A duration in words.

    >>> [told_duration(seconds) for seconds in (0.4, 90, 121, 400, 12_000)]
    ['1 s', '90 s', '3 min', '7 min', '3 h 20 min']
    """
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    minutes = -int(-seconds // 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def told_total(estimates: Iterable[float | None], at_once: int = 1) -> str:
    """The time that runs take together, and how many of them are unknown.

    >>> told_total([60.0, 30.0, None], 2)
    'about 60 s, and 1 of unknown length'
    >>> told_total([None])
    'unknown until one of its kind has run'
    """
    values = list(estimates)
    known = [one for one in values if one is not None]
    if not values:
        return "nothing"
    if not known:
        return "unknown until one of its kind has run"
    total = max(sum(known) / max(1, min(at_once, len(values))), max(known))
    more = f", and {len(values) - len(known)} of unknown length" if len(known) < len(values) else ""
    return f"about {told_duration(total)}{more}"
