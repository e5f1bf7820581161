"""The data set of the STAPLE task (Mayhew et al. 2020), from the folder distributed by the task.

    en_XX/{train,dev,test}.en_XX.*.gold.txt           prompts with their accepted translations and weights
    en_XX/{train,dev,test}.en_XX.*.aws_baseline.pred.txt   the automatic reference translation of each prompt
    en_XX/{dev,test}.en_XX.*blind*.txt                prompts without gold, as distributed first

The format of the files is that of `mrs_datasets.readers.staple.staple_files`; they may be `.gz` or `.xz`. A split
without gold takes its prompts from the blind file, or from the reference translations. Enclosing folders are accepted;
other prediction files are ignored.
"""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.sources import Key, Row, find_files, lacking
from mrs_datasets.readers.staple.staple_files import Block, read_blocks, read_gold
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import EDITED
from mrs_suggest.common.text.text import is_blank

STAPLE = read_record("staple")
SPLITS = {"train": "train", "dev": "validation", "test": "test"}
GOLD, BLIND, REFERENCE = KINDS = ("gold", "blind", "reference")  # of files; prompts come from the first that is there
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
    """Read every source; each may hold any of the tracks and splits."""
    expected = (
        "no file of the STAPLE task (such as en_pt/dev.en_pt.*.gold.txt) was found; unpack the task's archive and "
        "pass its folder"
    )
    found = find_files(sources, _files, expected)
    kind = STAPLE.kinds["track"]
    for config in STAPLE.languages:
        for split in kind.splits:
            files = {name: found[config, split, name] for name in KINDS if (config, split, name) in found}
            if files:
                for rows in _chunks(files, config, split, report):
                    yield config, split, pa.Table.from_pylist(rows, STAPLE.schema(config))
    if missing := lacking(STAPLE, kind, found):
        report.notes.append(f"not in the source: {' '.join(missing)}.")


def _files(source: Path) -> Iterator[tuple[Key, Path]]:
    """((config, split, kind), file) of the task's files in a folder and the two levels of folders below it."""
    below = [path for pattern in ("*", "*/*", "*/*/*") for path in source.glob(pattern)] if source.is_dir() else []
    for path in sorted(below):
        name = _NAME.fullmatch(path.name)
        if not name or not path.is_file():
            continue
        key, middle = (name[2], SPLITS[name[1]]), f".{name[3]}"
        if middle.endswith(".gold"):
            yield (*key, GOLD), path
        elif middle.endswith(".aws_baseline.pred"):
            yield (*key, REFERENCE), path
        elif "blind" in middle and not middle.endswith(".pred"):
            yield (*key, BLIND), path


def _chunks(files: dict[str, Path], config: str, split: str, report: Report) -> Iterator[list[Row]]:
    """The rows of one split, in chunks; anything unusual is noted in the report."""
    references = _read_references(files[REFERENCE]) if REFERENCE in files else {}
    kind, path = next(iter(files.items()))
    rows: list[Row] = []
    held = prompts = translations = without_reference = off = 0
    furthest, example = 1.0, ""
    blocks: Iterable[tuple[Block, list[str], list[float]]] = (
        read_gold(path) if kind == GOLD else ((block, [], []) for block in read_blocks(path, kind == BLIND))
    )
    for block, texts, weights in blocks:
        _, reference = references.pop(block.id, (0, None))
        entries = [{"text": text, "weight": weight} for text, weight in zip(texts, weights, strict=True)]
        rows.append({"id": block.id, "prompt": block.prompt, "reference": reference, "translations": entries})
        prompts, translations, held = prompts + 1, translations + len(texts), held + len(texts)
        without_reference += reference is None
        total = math.fsum(weights) if weights else 1.0
        off += abs(total - 1) > WEIGHT_TOLERANCE
        if abs(total - 1) > max(WEIGHT_TOLERANCE, abs(furthest - 1)):
            furthest, example = total, f"{block.id}, line {block.number}"
        if held >= CHUNK_TRANSLATIONS or len(rows) >= CHUNK_TRANSLATIONS:
            yield rows
            rows, held = [], 0
    for name, (number, _) in references.items():  # those without a prompt
        raise InputError(f"{files[REFERENCE]}, line {number}: {name} is not a prompt of {path}.")
    if rows:
        yield rows
    where, whole = f"{config}: the {split} split", TABLE_2[config][split]
    if kind != GOLD:
        report.notes.append(f"{where} is blind: {prompts:,} prompts without accepted translations.")
    elif (prompts, translations) != whole:
        report.notes.append(
            f"{where} has {prompts:,} prompts and {translations:,} translations, a complete source has "
            f"{whole[0]:,} and {whole[1]:,}."
        )
    if REFERENCE in files and without_reference:
        report.notes.append(f"{where} has {without_reference:,} prompts without a reference translation.")
    if off:
        report.notes.append(
            f"{where} has {off:,} prompts whose weights do not sum to 1; furthest is {example}, with {furthest:.4g}."
        )
    if prompts != whole[0]:
        report.partial_splits.append(f"{config}/{split}")


def _read_references(path: Path) -> dict[str, tuple[int, str | None]]:
    """(line, translation) of each prompt, which has one automatic translation."""
    references: dict[str, tuple[int, str | None]] = {}
    for block in read_blocks(path):
        if len(block.lines) != 1:
            raise InputError(
                f"{path}, line {block.number}: expected one translation of {block.id}, found {len(block.lines)}."
            )
        if is_blank(block.lines[0]):
            raise InputError(f"{path}, line {block.number + 1}: the translation of {block.id} is empty; {EDITED}")
        references[block.id] = (block.number, block.lines[0])
    return references
