"""The data set of the STAPLE task (Mayhew et al. 2020), from the folder distributed by the task.

    en_XX/{train,dev,test}.en_XX.*.gold.txt           prompts with their accepted translations and weights
    en_XX/{train,dev,test}.en_XX.*.aws_baseline.pred.txt   the automatic reference translation of each prompt
    en_XX/{dev,test}.en_XX.*blind*.txt                prompts without gold, as distributed first

The format of the files is that of `mrs_datasets.readers.staple.staple_files`; they may be `.gz` or `.xz`. A split
without gold takes its prompts from the blind file, or from the reference translations. Enclosing folders are accepted;
other prediction files are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.staple.staple_files import Block, read_blocks, read_gold
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import EDITED
from mrs_suggest.common.text.text import is_blank

STAPLE = read_record("staple")
SPLITS = {"train": "train", "dev": "validation", "test": "test"}
# Table 2: (prompts, accepted translations) of a complete source.
TABLE_2 = {
    "hu": {"train": (4000, 251_442), "validation": (500, 27_647), "test": (500, 33_578)},
    "ja": {"train": (2500, 855_941), "validation": (500, 172_817), "test": (500, 165_095)},
    "ko": {"train": (2500, 700_410), "validation": (500, 140_353), "test": (500, 150_477)},
    "pt": {"train": (4000, 526_466), "validation": (500, 60_294), "test": (500, 67_865)},
    "vi": {"train": (3500, 194_720), "validation": (500, 29_637), "test": (500, 28_242)},
}
WEIGHT_TOLERANCE = 1e-3
CHUNK_TRANSLATIONS = 50_000
_NAME = re.compile(r"(train|dev|test)\.en_(hu|ja|ko|pt|vi)\.(.+)\.txt(?:\.gz|\.xz)?")


def read_staple(sources: list[Path], report: Report) -> Chunks:
    """Read every source; each may hold any of the tracks and splits.

    Raises:
        InputError: a source without a file of the task, two files for one split, or a broken file.
    """
    found: dict[tuple[str, str], dict[str, Path]] = {}
    for source in sources:
        files = list(_files(source))
        if not files:
            raise InputError(
                f"{source}: no file of the STAPLE task (such as en_pt/dev.en_pt.*.gold.txt) was found; unpack the "
                "task's archive and pass its folder."
            )
        for key, kind, path in files:
            other = found.setdefault(key, {}).setdefault(kind, path)
            if other != path:
                raise InputError(f"{path}: the {kind} file of {key[0]}, {key[1]}, is {other} already; keep one.")
    for config in STAPLE.languages:
        for split in STAPLE.kind_of(config).splits:
            if (config, split) in found:
                for table in _tables(found[config, split], config, split, report):
                    yield config, split, table
    missing = [
        f"{config}/{split}"
        for config, _, kind in STAPLE.configs()
        if any(have == config for have, _ in found)
        for split in kind.splits
        if (config, split) not in found
    ]
    absent = [config for config in STAPLE.languages if not any(have == config for have, _ in found)]
    if missing or absent:
        report.notes.append(f"not in the source: {' '.join([*absent, *missing])}.")


def _files(source: Path) -> Iterator[tuple[tuple[str, str], str, Path]]:
    """((config, split), kind, file) of the task's files in a folder and the two levels of folders below it."""
    if not source.is_dir():
        return
    for path in sorted(path for pattern in ("*", "*/*", "*/*/*") for path in source.glob(pattern)):
        name = _NAME.fullmatch(path.name)
        if not name or not path.is_file():
            continue
        key, middle = (name[2], SPLITS[name[1]]), f".{name[3]}"
        if middle.endswith(".gold"):
            yield key, "gold", path
        elif middle.endswith(".aws_baseline.pred"):
            yield key, "reference", path
        elif "blind" in middle and not middle.endswith(".pred"):
            yield key, "blind", path


def _tables(files: dict[str, Path], config: str, split: str, report: Report) -> Iterator[pa.Table]:
    """The rows of one split, in chunks; anything unusual is noted in the report."""
    references = _read_references(files["reference"]) if "reference" in files else {}
    kind = next(kind for kind in ("gold", "blind", "reference") if kind in files)
    path = files[kind]
    schema = STAPLE.schema(config)
    counts = _Counts()
    chunk = _Chunk()
    blocks = read_gold(path) if kind == "gold" else _without_gold(path, kind == "blind")
    for block, texts, weights in blocks:
        line_and_text = references.pop(block.id, None)
        chunk.add(block, line_and_text[1] if line_and_text else None, texts, weights)
        counts.add(block, weights, line_and_text is None)
        if len(chunk.texts) >= CHUNK_TRANSLATIONS or len(chunk.ids) >= CHUNK_TRANSLATIONS:
            yield chunk.table(schema)
            chunk = _Chunk()
    for prompt_id, (number, _) in references.items():  # those without a prompt
        raise InputError(f"{files['reference']}, line {number}: {prompt_id} is not a prompt of {path}.")
    if chunk.ids:
        yield chunk.table(schema)
    report.notes.extend(counts.notes(config, split, kind, "reference" in files))
    if counts.prompts != TABLE_2[config][split][0]:
        report.partial_splits.append(f"{config}/{split}")


def _without_gold(path: Path, prompts_alone: bool) -> Iterator[tuple[Block, list[str], list[float]]]:
    """The blocks of a file, as `read_gold` yields them, without accepted translations."""
    for block in read_blocks(path, prompts_alone):
        yield block, [], []


def _read_references(path: Path) -> dict[str, tuple[int, str]]:
    """(line, translation) of each prompt, which has one automatic translation."""
    references = {}
    for block in read_blocks(path):
        if len(block.lines) != 1:
            raise InputError(
                f"{path}, line {block.number}: expected one translation of {block.id}, found {len(block.lines)}."
            )
        if is_blank(block.lines[0]):
            raise InputError(f"{path}, line {block.number + 1}: the translation of {block.id} is empty; {EDITED}")
        references[block.id] = (block.number, block.lines[0])
    return references


@dataclass
class _Counts:
    """The counts behind the notes of a split."""

    prompts: int = 0
    translations: int = 0
    without_reference: int = 0
    off: int = 0
    furthest: float = 1.0
    example: str = ""

    def add(self, block: Block, weights: list[float], without_reference: bool) -> None:
        self.prompts += 1
        self.translations += len(weights)
        self.without_reference += without_reference
        total = math.fsum(weights) if weights else 1.0
        if abs(total - 1) > WEIGHT_TOLERANCE:
            self.off += 1
            if abs(total - 1) > abs(self.furthest - 1):
                self.furthest, self.example = total, f"{block.id}, line {block.number}"

    def notes(self, config: str, split: str, kind: str, has_references: bool) -> Iterator[str]:
        where = f"{config}: the {split} split"
        whole = TABLE_2[config][split]
        if kind != "gold":
            yield f"{where} is blind: {self.prompts:,} prompts without accepted translations."
        elif (self.prompts, self.translations) != whole:
            yield (
                f"{where} has {self.prompts:,} prompts and {self.translations:,} translations, a complete source has "
                f"{whole[0]:,} and {whole[1]:,}."
            )
        if has_references and self.without_reference:
            yield f"{where} has {self.without_reference:,} prompts without a reference translation."
        if self.off:
            yield (
                f"{where} has {self.off:,} prompts whose weights do not sum to 1; furthest is {self.example}, with "
                f"{self.furthest:.4g}."
            )


class _Chunk:
    """Rows on their way to Arrow, column by column."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.prompts: list[str] = []
        self.references: list[str | None] = []
        self.texts: list[str] = []
        self.weights: list[float] = []
        self.offsets = [0]

    def add(self, block: Block, reference: str | None, texts: list[str], weights: list[float]) -> None:
        self.ids.append(block.id)
        self.prompts.append(block.prompt)
        self.references.append(reference)
        self.texts += texts
        self.weights += weights
        self.offsets.append(len(self.texts))

    def table(self, schema: pa.Schema) -> pa.Table:
        entries = pa.StructArray.from_arrays(
            [pa.array(self.texts, pa.string()), pa.array(self.weights, pa.float64())], names=["text", "weight"]
        )
        translations = pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), entries)
        columns = {
            "id": pa.array(self.ids, pa.string()),
            "prompt": pa.array(self.prompts, pa.string()),
            "reference": pa.array(self.references, pa.string()),
            "translations": translations,
        }
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
