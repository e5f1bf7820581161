"""The page of a prepared data set: rows by language and split, what was dropped and why, and random rows to read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mrs_datasets.prepared.funnel import stages_grid
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import REJECTS
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.report.pages import Block, Bullets, Grid, Heading, Paragraph, as_html

TRAIN = "train"


def write_view(data: PreparedData, out: Path, rows: int, seed: int) -> None:
    """Write the page, an HTML file without scripts that loads nothing, with `rows` random rows of each config."""
    atomic_write(out, as_html(list(view_blocks(data, rows, seed)), out.parent, contents=True))


def view_blocks(data: PreparedData, rows: int, seed: int) -> Iterator[Block]:
    report: Mapping[str, Any] = data.report()
    yield Heading(data.title(), 1)
    version = f", version {report['version']}" if "version" in report else ""
    yield Paragraph(f"`{data.name}`{version}. The texts may be offensive or private: do not publish this page.")
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
