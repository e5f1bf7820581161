"""How long the runs of a table take, and how much memory: from those of the same kind that have finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.reproduce.cells import Cell, Setup, read_state
from mrs_suggest.reproduce.table import EMBEDDED
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.reply.settings import make_plan
from mrs_suggest.training.sampling import BATCHES, PairSampler

# Runs that agree in these options, and in the trainer, take the same time for a step.
SAME = ("model_name_or_path", "per_device_train_batch_size", "gradient_accumulation_steps", "mini_batch_size")
REPLY_TRAINERS = ("retrieval", "generation")  # whose rows per epoch are known before they run
DEFAULT_BATCH, DEFAULT_EPOCHS = 8, 3  # the library's
Kind = tuple[Any, ...]


def kind_of(identity: Record) -> Kind:
    """What a run has in common with those that take the same time for a step; `identity` is that of `States`."""
    options = identity.get("options", {})
    return (identity.get("trainer"), *(str(options.get(key)) for key in SAME))


@dataclass(frozen=True)
class Timed:
    """A run that finished in one go.

    Attributes:
        setting: of the run, on which the languages of its test depend.
        step: seconds a step, with the evaluations on validation.
        rest: seconds of all else: imports, data, test.
    """

    setting: str
    step: float
    rest: float


class Estimates:
    """Seconds and memory of runs, by kind, from what the runner wrote beside earlier ones."""

    def __init__(self, output: Path) -> None:
        """Read the notes of the cells below `output`."""
        self._timed: dict[Kind, list[Timed]] = {}
        self._peaks: dict[Kind, int] = {}
        for place in sorted((output / "cells").glob("*")):
            self.add(read_state(place) or {})

    def add(self, note: Record) -> None:
        """Take in what was measured of a run; of a failed one nothing, of a resumed one its memory alone."""
        if note.get("code") != 0:
            return
        kind = kind_of(note["identity"])
        if peak := note.get("peak_mib"):
            self._peaks[kind] = max(self._peaks.get(kind, 0), peak * 2**20)
        steps, training = note.get("steps"), note.get("training_seconds")
        if steps and training is not None and not note.get("resumed"):
            setting = str(note["identity"]["options"].get("setting"))
            timed = Timed(setting, training / steps, max(0.0, note["seconds"] - training))
            self._timed.setdefault(kind, []).append(timed)

    def seconds(self, identity: Record, steps: int | None) -> float | None:
        """Of a run with so many steps; None until one of its kind has finished."""
        timed = self._timed.get(kind_of(identity))
        if not timed or steps is None:
            return None
        setting = str(identity["options"].get("setting"))
        alike = [one for one in timed if one.setting == setting] or timed
        return median(one.step for one in alike) * steps + median(one.rest for one in alike)

    def peak(self, identity: Record) -> int | None:
        """Bytes that a run of the kind has held at most; None until one has finished."""
        return self._peaks.get(kind_of(identity))


def steps_of(cell: Cell, setup: Setup) -> int | None:
    """Steps of a cell's run on one device; None where its data are not at hand, or do not tell."""
    try:
        options = {**cell.config(setup), **cell.options(setup)}
        limit = int(options.get("max_steps") or 0)
        return limit if limit > 0 else _steps_of_epochs(cell, setup, options)
    except InputError:  # no such configuration, or the data lack a language: the run says so
        return None


def _steps_of_epochs(cell: Cell, setup: Setup, options: Mapping[str, Any]) -> int | None:
    trainer = cell.spec.trainer or setup.table.trainer
    folder = None if cell.spec.data == EMBEDDED else setup.data.get(cell.spec.data)
    at_hand = cell.spec.data == EMBEDDED or (folder is not None and (folder / "data").is_dir())
    if trainer not in REPLY_TRAINERS or not at_hand or options.get("parallel"):
        return None
    rows, alpha = _rows(str(folder or EMBEDDED), _plan_options(options))
    most = options.get("max_train_examples")
    sampler = PairSampler(
        [min(one, int(most)) if most else one for one in rows],
        int(options.get("per_device_train_batch_size", DEFAULT_BATCH)),
        alpha=alpha,
        mixed=options.get("batches") == BATCHES[1],
        accumulation=int(options.get("gradient_accumulation_steps", 1)),
    )
    return max(1, round(float(options.get("num_train_epochs", DEFAULT_EPOCHS)) * sampler.steps))


def _plan_options(options: Mapping[str, Any]) -> tuple[Any, ...]:
    """Arguments of `make_plan`, as constants."""
    lists = (options.get(key) for key in ("languages", "train", "validation"))
    languages, train, validation = (tuple(one) if isinstance(one, list) else one for one in lists)
    return options.get("setting"), languages or ("all",), train, validation, options.get("sampling_alpha")


@cache
def _rows(data: str, plan_options: tuple[Any, ...]) -> tuple[tuple[int, ...], float]:
    """Training rows of each source, and how they are mixed."""
    source = open_prepared(data)
    plan = make_plan(source.configs(), *plan_options)
    files = [source.files(one.config, "train") for one in plan.sources]
    return tuple(sum(pq.read_metadata(path).num_rows for path in paths) for paths in files), plan.sampling_alpha


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
    'unknown until one of the kind has run'
    """
    values = list(estimates)
    known = [one for one in values if one is not None]
    if not values:
        return "nothing"
    if not known:
        return "unknown until one of the kind has run"
    total = max(sum(known) / max(1, min(at_once, len(values))), max(known))
    more = f", and {len(values) - len(known)} of unknown length" if len(known) < len(values) else ""
    return f"about {told_duration(total)}{more}"
