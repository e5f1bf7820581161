"""A prepared data set to look at: its page (rows by language and split, what was dropped and why, random rows to read),
and the picture of its numbers of examples and lengths."""

from collections.abc import Iterator, Mapping
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from mrs_datasets.describe.describe import SplitDescription, length_quantiles
from mrs_datasets.prepared.funnel import stages_grid
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import REJECTS
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.common.report.pages import Block, Bullets, Grid, Heading, Paragraph, as_html

TRAIN = "train"
COLOURS = {"train": "#20639b", "validation": "#3caea3", "test": "#ed553b"}


PRIVATE = "The texts may be offensive or private: do not publish this page."


def write_view(data: PreparedData, out: Path, rows: int, seed: int) -> None:
    """Write the page, an HTML file that loads nothing, with `rows` random rows of each config and a search in them.

    Raises:
        InputError: `out` is there and is not such a page.
    """
    if out.is_file() and PRIVATE.encode() not in out.read_bytes():
        raise InputError(f"{out} exists already and is not a page of `mrs data view`; choose another file.")
    script = resources.files("mrs_datasets.describe").joinpath("search.js").read_text(encoding="utf-8")
    atomic_write(out, as_html(list(view_blocks(data, rows, seed)), out.parent, contents=True, script=script))


def view_blocks(data: PreparedData, rows: int, seed: int) -> Iterator[Block]:
    report: Mapping[str, Any] = data.report()
    yield Heading(data.title(), 1)
    version = f", version {report['version']}" if "version" in report else ""
    yield Paragraph(f"`{data.name}`{version}. {PRIVATE}")
    yield Heading("Rows")
    splits = list(dict.fromkeys(split for config in data.configs() for split in data.splits(config)))
    counts = {name: {split: entry["rows"] for split, entry in one.items()} for name, one in report["configs"].items()}
    table = [[name, *(f"{one.get(split, 0):,}" for split in splits)] for name, one in counts.items()]
    yield Grid(["config", *splits], table)
    yield from _funnel(report)
    for config in data.configs():
        split = TRAIN if TRAIN in data.splits(config) else data.splits(config)[0]
        found = data.load(config, split)
        drawn = np.random.default_rng(seed).permutation(len(found))[:rows]
        names = found.column_names
        yield Heading(config)
        yield Paragraph(f"{len(drawn):,} random rows of {len(found):,} in {split}.", note=True)
        yield Grid(names, [[str(found[int(row)][name]) for name in names] for row in sorted(drawn)], texts=True)


def _funnel(report: Mapping[str, Any]) -> Iterator[Block]:
    """What the build and later passes dropped, with examples if they were kept (`--keep-rejects`)."""
    build, passes = report.get("pipeline", {}), report.get("passes", [])
    stages = list(build.get("stages", []))
    known = {one["stage"] for one in stages}  # a pass may be a stage of the build
    stages += [{**one, "stage": one["name"]} for one in passes if one["name"] not in known]
    if stages:
        yield Heading("Stages")
        yield stages_grid(stages)
    if report.get("dropped"):
        yield Bullets([f"{why}: {number:,}" for why, number in report["dropped"].items()])
    rejects = [build.get(REJECTS, {}), *(one["about"].get(REJECTS, {}) for one in passes)]
    if any(rejects):
        yield Heading("Dropped texts")
        for why, texts in (entry for one in rejects for entry in one.items()):
            rows = [[one if isinstance(one, str) else " · ".join(map(str, one.values()))] for one in texts]
            yield Grid([why], rows, texts=True, folded=f"{why} ({len(texts)} examples)")


def draw_data(
    rows: list[SplitDescription], title: str, path: Path, curves: dict[str, dict[int | None, float]] | None = None
) -> None:
    """Draw into a PNG (or the format of the name's ending).

    Args:
        curves: split -> k -> weighted F1 of the oracle of the k most likely translations (Table 7 of STAPLE).
    """
    if not rows:
        raise InputError(f"{title}: there is nothing to draw.")
    configs = list(dict.fromkeys(row.config for row in rows))
    height = max(3.2, 0.26 * len(configs) + 1.4)
    with drawing(path, 1, 3 if curves else 2, figsize=(15 if curves else 11, height)) as (figure, axes):
        figure.suptitle(title)
        _draw_examples(axes[0], rows, configs)
        _draw_lengths(axes[1], rows, configs)
        if curves:
            _draw_curves(axes[2], curves)


def _draw_examples(axis: Any, rows: list[SplitDescription], configs: list[str]) -> None:
    for place, config in enumerate(configs):
        own = [row for row in rows if row.config == config]
        width = 0.8 / len(own)
        for number, row in enumerate(own):
            offset = (number - (len(own) - 1) / 2) * width
            axis.barh(place + offset, row.rows, width, color=COLOURS[row.split], label=row.split)
    counts = [row.rows for row in rows]
    if max(counts) > 50 * min(counts):
        axis.set_xscale("log")
    axis.set(title="Examples", xlabel="rows")
    _label(axis, configs)
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))  # one per split
    shown = [split for split in COLOURS if split in handles]
    below = {"loc": "upper right", "bbox_to_anchor": (1, -0.6 / axis.figure.get_figheight()), "ncols": len(shown)}
    axis.legend([handles[split] for split in shown], shown, frameon=False, fontsize=8, **below)


def _draw_lengths(axis: Any, rows: list[SplitDescription], configs: list[str]) -> None:
    """A box per config: quartiles, whiskers from 5 to 95 %, over all its texts."""
    boxes = []
    for config in configs:
        counts = [counts for row in rows if row.config == config for counts in row.lengths.values()]
        totals = np.array([sum(column) for column in zip_longest(*counts, fillvalue=0)], np.int64)
        low, left, middle, right, high = length_quantiles(totals) or [0] * 5
        boxes.append({"whislo": low, "q1": left, "med": middle, "q3": right, "whishi": high, "fliers": []})
    axis.bxp(boxes, positions=range(len(configs)), orientation="horizontal", widths=0.6, showfliers=False)
    axis.set(title="Lengths of texts (5, 25, 50, 75, 95 %)", xlabel="characters")
    _label(axis, configs)


def _draw_curves(axis: Any, curves: dict[str, dict[int | None, float]]) -> None:
    for name, curve in curves.items():
        points = sorted((k, score) for k, score in curve.items() if k is not None)
        axis.plot(*zip(*points, strict=True), marker=".", label=name)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set(title="Oracle that gives the k likeliest", xlabel="k", ylabel="weighted F1", ylim=(0, 1))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8)


def _label(axis: Any, configs: list[str]) -> None:
    axis.set_yticks(range(len(configs)), configs, fontsize=8)
    rows = max(len(configs), 4)  # so that a single bar does not fill the page
    axis.set_ylim((len(configs) + rows) / 2 - 0.5, (len(configs) - rows) / 2 - 0.5)  # the first on top
    axis.grid(axis="x", alpha=0.3)
