"""XCOPA's repository folder, and English COPA as SuperGLUE's JSON lines or as its original XML.

    data/LANG/{val,test}.LANG.jsonl        data-gmt/LANG/{val,test}.LANG.jsonl    (translate-test)
    {train,val,test}.jsonl                 copa-dev.xml, copa-test.xml

One enclosing folder is accepted. Missing parts are left out and noted.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.copa_order import joined_by_text, labels_differ
from mrs_datasets.readers.json_lines import read_json_rows, require_text
from mrs_datasets.readers.xcopa_questions import corrections, reference_questions, with_corrected
from mrs_suggest.common.errors import InputError

XCOPA = read_record("xcopa")
FOLDERS = {"data": "{}", "data-gmt": "translation-{}"}
SPLITS = {"train": "train", "val": "validation", "test": "test"}
COPA_CONFIG = "en"
COPA_TRAIN_ITEMS = 400  # items 1 to 400 of copa-dev.xml are SuperGLUE's train, 401 to 500 its validation
TYPES = {"premise": str, "choice1": str, "choice2": str, "question": str, "label": int, "idx": int}
QUESTIONS = ("cause", "effect")
MAX_IDX = 1 << 31  # copies of COPA have any numbering
Row = dict[str, Any]


def read_xcopa(sources: list[Path], report: Report) -> Chunks:
    """Read every source; each may hold XCOPA, COPA or both.

    Raises:
        InputError: a source with none of the layouts, a config in two sources, or a broken row.
    """
    found: dict[tuple[str, str], Path] = {}
    for source in sources:
        files = list(_files(source))
        if not files:
            raise InputError(
                f"{source}: neither XCOPA's folder (data/LANG/val.LANG.jsonl) nor COPA's (val.jsonl, or copa-dev.xml) "
                "was found."
            )
        for key, path in files:
            if key in found:
                raise InputError(
                    f"{path}: the {key[1]} split of {key[0]} is in {found[key]} already; keep one of them."
                )
            found[key] = path
    read: dict[tuple[str, str], list[Row]] = {}
    for (config, split), path in found.items():
        rows = list(_xml_rows(path, split) if path.suffix == ".xml" else read_json_rows(path))
        if config == COPA_CONFIG and rows and all(row.get("label") in (None, -1) for _, row in rows):
            report.notes.append(f"{config}: {path.name} has no labels, so the {split} split is left out.")
            continue
        read[config, split] = _all_checked(path, config, split, iter(rows), report)
    for split in XCOPA.kinds["original"].splits:
        if (COPA_CONFIG, split) in read:
            read[COPA_CONFIG, split] = _in_order(read, split, str(found[COPA_CONFIG, split]), report)
    for (config, split), checked in _with_questions(read, report).items():
        yield config, split, pa.Table.from_pylist(checked, XCOPA.schema(config))
    _note_missing(set(read), report)


def _with_questions(read: dict[tuple[str, str], list[Row]], report: Report) -> dict[tuple[str, str], list[Row]]:
    """Every split with `question_corrected`; the report says how many rows differ from `question`."""
    better: dict[tuple[str, str], list[Row]] = {}
    for split in dict.fromkeys(split for _, split in read):
        own = {config: rows for (config, of), rows in read.items() if of == split}
        originals = [rows for config, rows in own.items() if config in XCOPA.kinds["original"].languages]
        joins = bool(originals) and not any(labels_differ(own.get(COPA_CONFIG, []), rows) for rows in originals)
        apart = () if joins else (COPA_CONFIG,)  # its idx are not XCOPA's
        reference = reference_questions({config: rows for config, rows in own.items() if config not in apart})
        found = {config: with_corrected(rows, {} if config in apart else reference) for config, rows in own.items()}
        wrong = [f"{config} {len(idx)}" for config, rows in found.items() if (idx := corrections(rows))]
        if wrong:
            report.notes.append(f"rows of {split} whose question_corrected differs from question: {', '.join(wrong)}.")
        better |= {(config, split): rows for config, rows in found.items()}
    return {key: better[key] for key in read}


def _in_order(read: dict[tuple[str, str], list[Row]], split: str, where: str, report: Report) -> list[Row]:
    """English rows with XCOPA's idx, which joins the languages; some copies of COPA have another order."""
    english = read[COPA_CONFIG, split]
    pattern = FOLDERS["data-gmt"]
    translations = [read[key] for code in XCOPA.languages if (key := (pattern.format(code), split)) in read]
    if translations and len(english) <= len({row["idx"] for rows in translations for row in rows}):
        joined = joined_by_text(english, translations, where)
        if joined.moved:
            report.notes.append(
                f"{COPA_CONFIG}: the {split} split is not in XCOPA's order; {joined.moved} of {len(english)} rows were "
                "joined by text, through the translations to English, and got another idx."
            )
            if joined.in_doubt:
                report.notes.append(
                    f"{COPA_CONFIG}: {len(joined.in_doubt)} of these matches in {split} are not clear: idx "
                    f"{', '.join(map(str, joined.in_doubt[:10]))}."
                )
        return joined.rows
    originals = [rows for (config, own), rows in read.items() if own == split and config in XCOPA.languages]
    differing = max((labels_differ(english, rows) for rows in originals if rows is not english), default=0)
    outside = sum(not row["idx"] < XCOPA.kind_of(COPA_CONFIG).rows[split] for row in english)
    if outside and originals:
        report.notes.append(
            f"{COPA_CONFIG}: {outside} idx of the {split} split are not XCOPA's, so these rows join no other language; "
            "only with the translations (data-gmt) can they be joined by text."
        )
    if differing:
        report.notes.append(
            f"{COPA_CONFIG}: {differing} labels of the {split} split differ from XCOPA's by idx; the copy may be in "
            "another order, and only with the translations (data-gmt) can it be joined by text."
        )
    return english


def _files(source: Path) -> Iterator[tuple[tuple[str, str], Path]]:
    """((config, split), file) of all parts of a source, in the order of the catalogue."""
    below = sorted(path for pattern in ("*", "*/*") for path in source.glob(pattern) if path.is_dir())
    roots = [source, *(path for path in below if "__MACOSX" not in path.parts)] if source.is_dir() else []
    for root in roots:
        for folder, pattern in FOLDERS.items():
            for code in XCOPA.languages:
                for name, split in SPLITS.items():
                    path = root / folder / code / f"{name}.{code}.jsonl"
                    if path.is_file():
                        yield (pattern.format(code), split), path
        for name, split in SPLITS.items():
            if (root / f"{name}.jsonl").is_file():
                yield (COPA_CONFIG, split), root / f"{name}.jsonl"
        for name, splits in (("copa-dev.xml", ("train", "validation")), ("copa-test.xml", ("test",))):
            if (root / name).is_file():
                yield from (((COPA_CONFIG, split), root / name) for split in splits)


def _xml_rows(path: Path, split: str) -> Iterator[tuple[str, Row]]:
    try:
        items = ElementTree.parse(path).getroot().findall("item")
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # LookupError, ValueError: unknown encoding
        raise InputError(f"{path}: not valid XML ({error}); fetch the file again.") from None
    for item in items:
        where = f"{path}, item {item.get('id')}"
        try:
            number, answer = int(item.get("id", "")), int(item.get("most-plausible-alternative", ""))
        except ValueError:
            raise InputError(
                f"{where}: expected the attributes id and most-plausible-alternative as numbers."
            ) from None
        train = number <= COPA_TRAIN_ITEMS
        if path.stem == "copa-dev" and train != (split == "train"):
            continue
        first = 1 if split == "train" else COPA_TRAIN_ITEMS + 1 if split == "validation" else 501
        texts = {name: item.findtext(tag, "") for name, tag in (("premise", "p"), ("choice1", "a1"), ("choice2", "a2"))}
        yield where, {**texts, "question": item.get("asks-for"), "label": answer - 1, "idx": number - first}


def _all_checked(path: Path, config: str, split: str, rows: Iterator[tuple[str, Row]], report: Report) -> list[Row]:
    """The rows of a split; if their number differs from a complete source's, that is noted."""
    checked: list[Row] = []
    lines: dict[int, str] = {}
    for where, row in rows:
        value = _checked(where, row, config)
        if value["idx"] in lines:
            raise InputError(f"{where}: idx {value['idx']} is in {lines[value['idx']]} already.")
        lines[value["idx"]] = where
        checked.append(value)
    if not checked:
        raise InputError(f"{path}: the file has no examples.")
    expected = XCOPA.kind_of(config).rows.get(split)
    if expected is not None and len(checked) != expected:
        report.notes.append(f"{config}: the {split} split has {len(checked)} rows, a complete source has {expected}.")
        report.partial_splits.append(f"{config}/{split}")
    return checked


def _checked(where: str, row: Row, config: str) -> Row:
    """A row with every column in its type; `changed`, which COPA lacks, is false there."""
    for name, kind in TYPES.items():
        if kind is str:
            require_text(where, row, name)
        elif not isinstance(row.get(name), kind) or isinstance(row[name], bool):
            found = "nothing" if name not in row else repr(row[name])[:60]
            raise InputError(f"{where}: expected {name!r} to be a whole number, found {found}.")
    if row["question"] not in QUESTIONS:
        raise InputError(f"{where}: expected 'question' to be cause or effect, found {row['question']!r}.")
    if row["label"] not in (0, 1):
        raise InputError(f"{where}: expected 'label' to be 0 or 1, found {row['label']!r:.60}.")
    if not 0 <= row["idx"] < MAX_IDX:
        raise InputError(f"{where}: expected 'idx' to be the number of the example, from 0, found {row['idx']!r:.60}.")
    changed = row.get("changed", False if config == COPA_CONFIG else None)
    if not isinstance(changed, bool):
        found = repr(changed)[:60] if "changed" in row else "nothing"
        raise InputError(f"{where}: expected 'changed' to be true or false, found {found}.")
    return {**{name: row[name] for name in TYPES}, "changed": changed}


def _note_missing(found: set[tuple[str, str]], report: Report) -> None:
    """One note per kind that names the missing configs, and the missing splits of other configs."""
    have = {config for config, _ in found}
    for name, kind in XCOPA.kinds.items():
        if kind.on_demand:
            continue
        configs = [config for config, _, own in XCOPA.configs() if own is kind]
        missing = [config for config in configs if config not in have]
        for config in configs:
            absent = [f"{config}/{split}" for split in kind.splits if config in have and (config, split) not in found]
            missing += [part for part in absent if part != f"{COPA_CONFIG}/test"]  # SuperGLUE lacks its labels
        if missing:
            report.notes.append(f"not in the source ({name}): {' '.join(missing)}.")
