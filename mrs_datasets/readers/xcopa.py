"""XCOPA's repository folder, and English COPA as SuperGLUE's JSON lines or as its original XML.

    data/LANG/{val,test}.LANG.jsonl        data-gmt/LANG/{val,test}.LANG.jsonl    (translate-test)
    {train,val,test}.jsonl                 copa-dev.xml, copa-test.xml

Up to two enclosing folders are accepted. Missing parts are left out and noted.

`question_corrected` is the question by the majority of XCOPA's files, since in five languages `question` calls causes
effects. Published files, against `REFERENCES`, by `idx` (wrong rows of 100 validation, of 500 test rows): th 52, 250
(no cause is left); tr 52, 51; sw 6, 37; id 5, 4; it 5, 4; always an effect that should be a cause. The translations to
English repeat the question of their original. No example has more than four wrong languages.
"""

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.sources import Key, Row, checked_row, find_files, lacking, note_size, read_json_rows
from mrs_suggest.common.errors import InputError

XCOPA = read_record("xcopa")
FOLDERS = {"data": "original", "data-gmt": "translation"}  # folder -> kind
SPLITS = {"train": "train", "val": "validation", "test": "test"}
COPA_CONFIG = "en"
COPA_TRAIN_ITEMS = 400  # items 1 to 400 of copa-dev.xml are SuperGLUE's train, 401 to 500 its validation
COLUMNS = {name: column for name, column in XCOPA.columns.items() if name in XCOPA.kinds["original"].columns}
Parts = dict[Key, list[Row]]  # (config, split) -> rows
QUESTION, CORRECTED = "question", "question_corrected"
# In the published files these six agree with each other in all 600 examples, and with English COPA in its 100
# validation examples, so that a single one of them is enough to correct another language.
REFERENCES = ("en", "et", "ht", "qu", "ta", "vi", "zh")


def read_xcopa(sources: list[Path], report: Report) -> Chunks:
    """Read every source; each may hold XCOPA, COPA or both."""
    expected = "neither XCOPA's folder (data/LANG/val.LANG.jsonl) nor COPA's (val.jsonl, or copa-dev.xml) was found"
    found = find_files(sources, lambda source: _files(source, report), expected)
    read: Parts = {}
    for (config, split), path in found.items():
        rows = list(_xml_rows(path, split) if path.suffix == ".xml" else read_json_rows(path))
        if config == COPA_CONFIG and rows and all(row.get("label") in (None, -1) for _, row in rows):
            report.notes.append(f"{config}: {path.name} has no labels, so the {split} split is left out.")
            continue
        read[config, split] = _checked(path, config, rows)
        note_size(report, XCOPA, config, split, len(rows))
    for split in XCOPA.kinds["original"].splits:
        if (COPA_CONFIG, split) in read:
            _note_another_order(read, split, report)
    for (config, split), checked in _with_questions(read, report).items():
        yield config, split, pa.Table.from_pylist(checked, XCOPA.schema(config))
    for name, kind in XCOPA.kinds.items():
        optional = [f"{COPA_CONFIG}/test"]  # SuperGLUE does not have its labels
        missing = [] if kind.on_demand else lacking(XCOPA, kind, read, optional)
        if missing:
            report.notes.append(f"not in the source ({name}): {' '.join(missing)}.")


def _with_questions(read: Parts, report: Report) -> Parts:
    """Every split with `question_corrected`; the report says how many rows differ from `question`."""
    better: Parts = {}
    for split in dict.fromkeys(split for _, split in read):
        own = {config: rows for (config, of), rows in read.items() if of == split}
        originals = [rows for config, rows in own.items() if config in XCOPA.kinds["original"].languages]
        joins = bool(originals) and not any(_labels_differ(own.get(COPA_CONFIG, []), rows) for rows in originals)
        apart = () if joins else (COPA_CONFIG,)  # its idx are not XCOPA's
        reference = reference_questions({config: rows for config, rows in own.items() if config not in apart})
        found = {config: with_corrected(rows, {} if config in apart else reference) for config, rows in own.items()}
        counts = {config: sum(row[CORRECTED] != row[QUESTION] for row in rows) for config, rows in found.items()}
        wrong = [f"{config} {count}" for config, count in counts.items() if count]
        if wrong:
            report.notes.append(f"rows of {split} whose question_corrected differs from question: {', '.join(wrong)}.")
        better |= {(config, split): rows for config, rows in found.items()}
    return {key: better[key] for key in read}


def _note_another_order(read: Parts, split: str, report: Report) -> None:
    """Some copies of English COPA have other idx than XCOPA, so that they join no other language."""
    english = read[COPA_CONFIG, split]
    originals = [read[key] for key in read if key[1] == split and key[0] in XCOPA.kinds["original"].languages]
    differing = max((_labels_differ(english, rows) for rows in originals), default=0)
    outside = sum(row["idx"] >= XCOPA.kind_of(COPA_CONFIG).rows[split] for row in english)
    if outside and originals:
        report.notes.append(
            f"{COPA_CONFIG}: {outside} idx of the {split} split are not XCOPA's, so these rows match no other language."
        )
    if differing:
        report.notes.append(
            f"{COPA_CONFIG}: {differing} labels of the {split} split differ from XCOPA's by idx; the copy may be in "
            "another order; use SuperGLUE's or the original."
        )


def _labels_differ(english: list[Row], original: list[Row]) -> int:
    """How many shared idx have different labels; in the same order, XCOPA's labels equal COPA's (section 2)."""
    labels = {row["idx"]: row["label"] for row in original}
    return sum(labels.get(row["idx"], row["label"]) != row["label"] for row in english)


def _files(source: Path, report: Report) -> Iterator[tuple[Key, Path]]:
    """((config, split), file) of all parts of a source, in the order of the catalogue; others are noted."""
    below = sorted(path for pattern in ("*", "*/*") for path in source.glob(pattern) if path.is_dir())
    for root in [source, *(path for path in below if "__MACOSX" not in path.parts)] if source.is_dir() else []:
        for folder, name in FOLDERS.items():
            kind = XCOPA.kinds[name]
            for code in kind.languages:
                for file, split in SPLITS.items():
                    path = root / folder / code / f"{file}.{code}.jsonl"
                    if path.is_file():
                        yield (kind.config.format(language=code), split), path
            for code in sorted({path.parent.name for path in (root / folder).glob("*/*.*.jsonl")} - {*kind.languages}):
                report.notes.append(f"{folder}/{code} was left out: XCOPA has no {name} in this language.")
        names = [(f"{name}.jsonl", split) for name, split in SPLITS.items()]
        names += [("copa-dev.xml", "train"), ("copa-dev.xml", "validation"), ("copa-test.xml", "test")]
        yield from (((COPA_CONFIG, split), root / name) for name, split in names if (root / name).is_file())


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
        if path.stem == "copa-dev" and (number <= COPA_TRAIN_ITEMS) != (split == "train"):
            continue
        first = {"train": 1, "validation": COPA_TRAIN_ITEMS + 1, "test": 501}[split]
        texts = {name: item.findtext(tag, "") for name, tag in (("premise", "p"), ("choice1", "a1"), ("choice2", "a2"))}
        yield where, {**texts, "question": item.get("asks-for"), "label": answer - 1, "idx": number - first}


def _checked(path: Path, config: str, rows: list[tuple[str, Row]]) -> list[Row]:
    """The rows of a split with all columns except the corrected one; `changed`, which COPA lacks, is false there."""
    columns = {name: column for name, column in COLUMNS.items() if name != CORRECTED}
    default = {"changed": False} if config == COPA_CONFIG else {}
    checked: dict[int, Row] = {}
    places: dict[int, str] = {}
    for where, row in rows:
        value = checked_row(where, {**default, **row}, columns)
        if value["idx"] in checked:
            raise InputError(f"{where}: idx {value['idx']} is in {places[value['idx']]} already.")
        checked[value["idx"]], places[value["idx"]] = value, where
    if not checked:
        raise InputError(f"{path}: the file has no examples.")
    return list(checked.values())


def reference_questions(languages: Mapping[str, Iterable[Row]]) -> dict[int, str]:
    """The question of each idx in one split, by the majority of `REFERENCES`; a tied idx is not in it.

    Args:
        languages: config -> rows with `idx` and `question`. Leave English out if its idx are not XCOPA's.
    """
    votes: dict[int, Counter[str]] = {}
    for code in REFERENCES:
        for row in languages.get(code, ()):
            votes.setdefault(row["idx"], Counter())[row[QUESTION]] += 1
    ranked = {idx: found.most_common(2) for idx, found in votes.items()}
    return {idx: two[0][0] for idx, two in ranked.items() if len(two) == 1 or two[0][1] > two[1][1]}


def with_corrected(rows: Iterable[Row], reference: Mapping[int, str]) -> list[Row]:
    """The rows with `question_corrected`: the reference's question, or their own if the reference lacks the idx."""
    return [{**row, CORRECTED: reference.get(row["idx"], row[QUESTION])} for row in rows]
