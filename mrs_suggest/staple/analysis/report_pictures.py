"""The pictures of a report: precision against weighted recall (Figure 3 of the paper), and the oracle curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.common.text.text import visible
from mrs_suggest.staple.analysis.scored_systems import System

# Shape and filling tell systems apart without colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "d")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
COLOURS = ("#20639b", "#ed553b", "#3caea3", "#8a5fbf", "#b8860b", "#173f5f")
LEVELS = np.arange(0.1, 1.0, 0.1)  # F1 in increments of .1, as in Figure 3
SHOWN_NAME = 28  # characters of a system's name


def draw_precision_recall(systems: Sequence[System], path: Path) -> None:
    """Draw the mean precision and weighted recall of each system, with contours of F1.

    The crosses are the 95 % intervals of the two means; the dashed line is where both are equal.
    """
    with drawing(path, figsize=(8, 5.4)) as (figure, axis):
        _draw_contours(axis)
        for system, (marker, colour, filled) in zip(systems, _looks(), strict=False):
            x, y = system.mean("weighted_recall"), system.mean("precision")
            across = _arms(x, system.intervals["weighted_recall"])
            upwards = _arms(y, system.intervals["precision"])
            label = f"{_short(system.name)} ({system.mean('weighted_f1'):.3f})"
            axis.errorbar(
                x, y, xerr=across, yerr=upwards, fmt=marker, color=colour, label=label, markersize=8, elinewidth=0.8,
                markerfacecolor=colour if filled else "white",
            )  # fmt: skip
        axis.set(xlabel="weighted recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        legend = {"title": "system (weighted F1)", "fontsize": 8, "title_fontsize": 8, "frameon": False}
        figure.legend(loc="outside right upper", **legend)


def draw_oracle(curve: Mapping[int, float], systems: Sequence[System], path: Path) -> None:
    """Draw weighted F1 of the oracle that gives the k heaviest translations, and that of each system as a line.

    Args:
        curve: k -> weighted F1.
    """
    with drawing(path, figsize=(8.6, 4.6)) as (figure, axis):
        axis.plot(list(curve), list(curve.values()), color="black", marker="o", markersize=4, label="oracle")
        for number, (system, (_, colour, _)) in enumerate(zip(systems, _looks(), strict=False)):
            value, style = system.mean("weighted_f1"), DASHES[number % len(DASHES)]
            axis.axhline(value, color=colour, linestyle=style, linewidth=1.2, label=_short(system.name))
        axis.set_xscale("log")
        ticks = [k for k in curve if k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)]
        axis.set_xticks(ticks, [str(k) for k in ticks])
        axis.minorticks_off()
        axis.set(xlabel="k heaviest accepted translations of each prompt", ylabel="weighted F1", ylim=(0, 1.02))
        axis.grid(alpha=0.3)
        figure.legend(loc="outside right upper", fontsize=8, frameon=False)


def _draw_contours(axis: Any) -> None:
    """Curves of equal F1, each named where it meets the right edge, and the diagonal."""
    for level in LEVELS:
        recall = np.linspace(level / (2 - level), 1, 200)
        axis.plot(recall, level * recall / (2 * recall - level), color="#999999", linewidth=0.7, zorder=0)
        place = (1.01, level / (2 - level))
        axis.annotate(f"{level:.1f}", place, fontsize=7, color="#666666", va="center", annotation_clip=False)
    axis.annotate("F1", (1.01, 0.92), fontsize=7, color="#666666", annotation_clip=False)
    axis.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=0.8, zorder=0)


def _looks() -> Any:
    """Marker, colour and whether it is filled; shapes repeat after twelve systems, then hollow."""
    shapes = [(marker, filled) for filled in (True, False) for marker in MARKERS]
    return ((marker, colour, filled) for (marker, filled), colour in zip(cycle(shapes), cycle(COLOURS), strict=False))


def _arms(mean: float, interval: tuple[float, float]) -> list[list[float]]:
    low, high = interval
    return [[max(0.0, mean - low)], [max(0.0, high - mean)]]


def _short(name: str) -> str:
    shown = visible(name).replace("$", r"\$")  # no formulas
    return shown if len(shown) <= SHOWN_NAME else f"{shown[: SHOWN_NAME - 1]}…"
