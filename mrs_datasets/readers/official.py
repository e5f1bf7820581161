"""The official MRS archive (`mrs.tgz`), or the folder that it unpacks to.

    {train,valid,test}/LANG/*.tsv*             message, tab, reply; further columns ignored
    rsp_set/LANG/response_lm_cluster.txt*      log-probability, tab, text, tab, cluster
    mt/LANG/*.tsv*                             machine-translated training pairs, where a copy has them

One enclosing folder is accepted; files may be plain, gzip or xz. Folders of languages that MRS does not have are left
out, with a note.
"""

import math
import sys
from pathlib import Path

import pyarrow as pa

from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.schema import MT_PREFIX, RESPONSE_SCHEMA, responses_config
from mrs_datasets.readers import Chunk, Chunks
from mrs_datasets.readers.pairs.pairs import chunked, read_pairs
from mrs_datasets.readers.sources import as_number, folders_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.common.text.text import visible

SPLIT_FOLDERS = {"train": "train", "valid": "validation", "test": "test"}
RESPONSE_FOLDER, RESPONSE_FILE = "rsp_set", "response_lm_cluster.txt"
MT_FOLDER = "mt"


def find_official_root(folder: Path) -> Path | None:
    """The folder that contains train/, valid/ or test/: `folder` itself or one folder below it."""
    return next((root for root in folders_of(folder) if any((root / name).is_dir() for name in SPLIT_FOLDERS)), None)


def read_official(root: Path, report: Report) -> Chunks:
    """Read the official layout below `root` (see `find_official_root`)."""
    folders = {name: folders_of(root / name)[1:] for name in (*SPLIT_FOLDERS, RESPONSE_FOLDER, MT_FOLDER)}
    named = {path.name for name, found in folders.items() if name != MT_FOLDER for path in found}
    languages = [code for code in LANGUAGES if code in named]
    others = [f"{name}/{path.name}" for name, found in folders.items() for path in found if path.name not in LANGUAGES]
    if others:
        note = f"left out {', '.join(others)}: MRS has the languages {' '.join(LANGUAGES)}."
        report.notes.append(note)
        print(f"note: {visible(note)}", file=sys.stderr)
    if not languages:
        raise InputError(f"{root}: no language folder below {', '.join(SPLIT_FOLDERS)}; expected train/LANG/*.tsv.")
    for language in languages:
        for name, split in SPLIT_FOLDERS.items():
            files = _data_files(root / name / language)
            if not files:
                raise InputError(
                    f"{root / name / language}: the {split} split of {language} is missing; expected "
                    f"{name}/{language}/*.tsv (also .gz, .xz)."
                )
            for path in files:
                yield from chunked(language, split, read_pairs(path, report, f"{language}/{split}"))
        responses = [root / RESPONSE_FOLDER / language / (RESPONSE_FILE + end) for end in ("", ".gz", ".xz")]
        found = [path for path in responses if path.is_file()]
        if found:
            yield read_responses(found[0], language)
        else:
            report.notes.append(f"{language}: no {RESPONSE_FOLDER}/{language}/{RESPONSE_FILE}, so no response set.")
    for folder in folders[MT_FOLDER]:
        config = MT_PREFIX + folder.name
        for path in _data_files(folder) if folder.name in LANGUAGES else []:
            yield from chunked(config, "train", read_pairs(path, report, f"{config}/train"))


def read_responses(path: Path, language: str) -> Chunk:
    """Read `response_lm_cluster.txt` of a language, which has no counts.

    `source` is organic for English, whose set is not augmented (section 2.1), and null for the others, whose sets mix
    both kinds unmarked.
    """
    log_probs, replies, clusters = [], [], []
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) < 3:
            raise InputError(
                f"{path}, line {number}: expected log-probability, reply and cluster separated by tabs, found "
                f"{len(fields)} column{'s' * (len(fields) != 1)}."
            )
        log_probs.append(as_number(fields[0]))
        if not math.isfinite(log_probs[-1]):
            raise InputError(
                f"{path}, line {number}: expected a log-probability in the first column, found {fields[0]!r}."
            )
        if not fields[1].strip():
            raise InputError(f"{path}, line {number}: the reply is empty; expected log-probability, reply, cluster.")
        replies.append(fields[1])
        clusters.append(fields[2])
    if not replies:
        raise InputError(f"{path}: the response set is empty; expected log-probability, reply, cluster a line.")
    source = "organic" if language == "en" else None
    columns = [replies, [None] * len(replies), log_probs, clusters, [source] * len(replies)]
    arrays = [pa.array(c, t) for c, t in zip(columns, RESPONSE_SCHEMA.types, strict=True)]
    return responses_config(language), "train", pa.table(arrays, RESPONSE_SCHEMA)


def _data_files(folder: Path) -> list[Path]:
    endings = (".tsv", ".tsv.gz", ".tsv.xz")
    return sorted(path for path in folder.glob("*") if path.is_file() and path.name.endswith(endings))
