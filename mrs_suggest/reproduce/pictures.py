"""The pictures of a table: heat maps of its metrics, or bars; and the bars of a figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.reproduce.preference import Share
from mrs_suggest.reproduce.results import Figure
from mrs_suggest.reproduce.table import TableSpec

DARK = 0.6  # of a heat map's range: text is white on darker cells
COLOURS = ("#20639b", "#3caea3", "#ed553b", "#8a5fbf", "#b8860b")
MOST_CHARTS = 12  # one below the other, and names in a legend
Fields = Mapping[tuple[str, str | None, str], Figure]  # row, column, metric


def draw_table(grid: TableSpec, fields: Fields, path: Path) -> None:
    """A heat map of each metric of a table with columns, else bars of each metric."""
    count, rows = len(grid.metrics), list(grid.rows)
    if grid.columns:
        printed = any(one.paper is not None for one in fields.values())
        height = (0.5 if printed else 0.36) * len(rows) + 1
        size: dict[str, Any] = {"figsize": (max(7.0, 0.75 * len(grid.columns) + 2.5), count * height), "squeeze": False}
        with drawing(path, count, **size) as (_, axes):
            for axis, (metric, title) in zip(axes[:, 0], grid.metrics.items(), strict=True):
                axis.set_title(f"{title}{' (in brackets: paper)' if printed else ''}", fontsize=10)
                own = {(row, column): one for (row, column, key), one in fields.items() if key == metric}
                _heat_map(axis, own, grid)
                axis.set_yticks(range(len(rows)), rows, fontsize=8)
        return
    shape: dict[str, Any] = {"figsize": (3.2 * count + 2, 0.36 * len(rows) + 1), "squeeze": False, "sharey": True}
    with drawing(path, 1, count, **shape) as (_, axes):
        for axis, (metric, title) in zip(axes[0], grid.metrics.items(), strict=True):
            _bars(axis, [fields[row, None, metric] for row in rows], title)
        axes[0, 0].set_yticks(range(len(rows)), rows, fontsize=8)
        axes[0, 0].invert_yaxis()


def draw_bars(grid: TableSpec, fields: Fields, human: Mapping[str, Share], path: Path) -> None:
    """A chart for each metric with a bar for each row, and one of what people preferred.

    Args:
        human: what was preferred, or `tie` -> share and interval; empty without sheets.
    """
    rows, count = list(grid.rows), len(grid.metrics) + bool(human)
    with drawing(path, 1, count, figsize=(2.6 * count, 3.4), squeeze=False) as (_, axes):
        for axis, (metric, title) in zip(axes[0], grid.metrics.items(), strict=False):
            printed = False
            for place, row in enumerate(rows):
                one = fields[row, None, metric]
                if one.mean is not None:
                    axis.bar(place, one.mean, color=COLOURS[place % len(COLOURS)], yerr=_errors(one), capsize=4)
                if one.paper is not None:
                    axis.plot(
                        place, one.paper, marker="D", color="black", markersize=5, fillstyle="none", linestyle="",
                        label=None if printed else "paper",
                    )  # fmt: skip
                    printed = True
            axis.set_title(title, fontsize=10)
            axis.set_xticks(range(len(rows)), rows, fontsize=9)
        if human:
            axis = axes[0, -1]
            for place, (name, (share, ends)) in enumerate(human.items()):
                colour = COLOURS[rows.index(name) % len(COLOURS)] if name in rows else "#9aa3ab"
                reach = ends and np.array([[share - ends[0]], [ends[1] - share]])
                axis.bar(place, share, color=colour, yerr=reach, capsize=4)
            axis.set(title="Human preference", ylim=(0, 1))
            axis.title.set_fontsize(10)
            axis.set_xticks(range(len(human)), list(human), fontsize=9)
        for axis in axes[0]:
            axis.set_ylim(bottom=0)
            axis.grid(axis="y", alpha=0.3)
            if axis.get_legend_handles_labels()[0]:
                axis.legend(frameon=False, fontsize=8)


def draw_curves_of_rows(rows: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]], path: Path) -> None:
    """Training loss and validation over the steps: a line of charts for each row; one for all, if there are many.

    Args:
        rows: row -> cell -> the curves of its runs, as `draw_curves` returns them.
    """
    if len(rows) > MOST_CHARTS:
        rows = {"all": {cell: runs for cells in rows.values() for cell, runs in cells.items()}}
    size: dict[str, Any] = {"figsize": (10, 2.4 * len(rows) + 0.3), "squeeze": False}
    with drawing(path, len(rows), 2, **size) as (_, axes):
        for (left, right), (row, cells) in zip(axes, rows.items(), strict=True):
            title = next(label for runs in cells.values() for label in runs[0]["validation"])
            for number, (cell, runs) in enumerate(cells.items()):
                colour = f"C{number % 10}"
                for seed, curves in enumerate(runs):
                    points: Sequence[Sequence[float]] = curves["validation"].get(title, [])
                    kept = [point for point in points if point[0] == curves["best_step"]]
                    left.plot(*_columns(curves["loss"]), color=colour, marker=".", label=None if seed else cell)
                    right.plot(*_columns(points), color=colour, marker=".", label=None if seed else cell)
                    right.plot(*_columns(kept), color=colour, marker="o", fillstyle="none", linestyle="", markersize=9)
            left.set_title(f"{row}: training loss", fontsize=9)
            right.set_title(f"{row}: validation, {title}", fontsize=9)
            for axis in (left, right):
                axis.grid(alpha=0.3)
                axis.tick_params(labelsize=8)
            if len(cells) <= MOST_CHARTS:
                right.legend(frameon=False, fontsize=6, ncols=2)
        for axis in axes[-1]:
            axis.set_xlabel("step", fontsize=8)


def _columns(points: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]


def _errors(one: Figure) -> list[list[float]] | None:
    """Deviation over seeds; of one seed its interval."""
    mean = one.mean or 0.0
    if one.deviation is not None:
        return [[one.deviation], [one.deviation]]
    interval = next(iter(one.intervals.values()), None)
    return [[max(0.0, mean - interval[0])], [max(0.0, interval[1] - mean)]] if interval else None


def _bars(axis: Any, rows: Sequence[Figure], title: str) -> None:
    for y, one in enumerate(rows):
        if one.mean is not None:
            axis.barh(y, one.mean, color=COLOURS[1], xerr=_errors(one), capsize=3)
    axis.set_title(title, fontsize=10)
    axis.grid(axis="x", alpha=0.3)


def _heat_map(axis: Any, own: Mapping[tuple[str, str | None], Figure], grid: TableSpec) -> None:
    """Our figures, coloured, with the paper's below in brackets."""
    rows, columns = list(grid.rows), list(grid.columns)
    means = [[own[row, column].mean for column in columns] for row in rows]
    values = np.array([[np.nan if value is None else value for value in line] for line in means])
    image = axis.imshow(values, aspect="auto", cmap="YlGnBu")
    axis.set_xticks(range(len(columns)), columns)
    for y, line in enumerate(means):
        for x, value in enumerate(line):
            one = own[rows[y], columns[x]]
            told = [one.shown(value)] if value is not None else []
            told += [f"({one.printed()})"] if one.paper is not None else []
            dark = value is not None and image.norm(value) > DARK
            axis.text(x, y, "\n".join(told), ha="center", va="center", fontsize=8, color="white" if dark else "black")
