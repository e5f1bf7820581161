"""The curves of a run, drawn from the trainer's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from mrs_suggest.common.report.drawing import drawing

COLOURS = ("#3caea3", "#ed553b", "#f6d55c", "#173f5f")


def draw_curves(
    log_history: Sequence[Mapping[str, float]], best_step: int | None, path: Path, shown: Mapping[str, str]
) -> None:
    """Draw training loss (left) and validation figures (right) over the steps into a PNG.

    Args:
        log_history: `trainer.state.log_history`.
        best_step: the kept checkpoint's step, marked by a line.
        shown: figures on validation, such as `mrr` -> their labels.
    """
    with drawing(path, 1, 2, figsize=(10, 3.8)) as (_, (left, right)):
        loss = _points(log_history, "loss")
        left.plot(*zip(*loss, strict=True) if loss else ([], []), color="#20639b", marker=".", label="training loss")
        left.set(xlabel="step", ylabel="loss", title="Training loss")
        for (key, label), colour in zip(shown.items(), cycle(COLOURS), strict=False):
            points = _points(log_history, f"eval_{key}")
            if points:
                right.plot(*zip(*points, strict=True), marker=".", color=colour, label=label)
        right.set(xlabel="step", ylim=(0, None), title="Validation")
        for axis in (left, right):
            axis.grid(alpha=0.3)
            if best_step is not None:
                axis.axvline(best_step, color="black", linestyle=":", linewidth=1, label=f"kept: step {best_step}")
            if axis.get_legend_handles_labels()[0]:
                axis.legend(frameon=False, fontsize=8)


def curve_points(
    log_history: Sequence[Mapping[str, float]], best_step: int | None, shown: Mapping[str, str]
) -> dict[str, Any]:
    """What `draw_curves` draws, as data: `loss`, `validation` by label, each as (step, value), and `best_step`."""
    return {
        "best_step": best_step,
        "loss": _points(log_history, "loss"),
        "validation": {label: _points(log_history, f"eval_{key}") for key, label in shown.items()},
    }


def _points(log_history: Sequence[Mapping[str, float]], key: str) -> list[tuple[float, float]]:
    return [(entry["step"], entry[key]) for entry in log_history if key in entry]
